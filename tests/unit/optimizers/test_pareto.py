"""Fronts of several objectives: the trials in them, their hypervolume, and the members that need one objective."""

import copy
import inspect
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import belated as bl
from belated.errors import InvalidSetting, InvalidValue, NotFitted, ObjectivesError

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
OUTCOMES = {"yield": "maximize", "cost": bl.Minimize(at_most=40.0), "purity": bl.AtLeast(0.95), "note": bl.Record()}


def make(outcomes=OUTCOMES, kind=bl.RandomSearch, **arguments):
    return kind(SPACE, outcomes=outcomes, seed=0, **arguments)


def filled(kind=bl.RandomSearch):
    """Three trials are in the front; the others are dominated, impure, incomplete, failed or pending."""
    optimizer = make(kind=kind)
    results = [(50.0, 30.0, 0.99), (60.0, 35.0, 0.96), (40.0, 31.0, 0.97), (99.0, 1.0, 0.9), (50.0, 30.0, 0.95)]
    for trial, (produced, cost, purity) in zip(optimizer.suggest(n=5), results, strict=True):
        trial.observe({"yield": produced, "cost": cost, "purity": purity})
    incomplete, failed, _ = optimizer.suggest(n=3)
    incomplete.observe({"yield": 200.0, "purity": 1.0})
    failed.observe({"yield": 200.0, "purity": 1.0})
    failed.fail(outcome="cost")
    return optimizer


@pytest.mark.parametrize("kind", [bl.RandomSearch, bl.BayesOpt])
def test_front_has_the_complete_trials_within_the_bounds_that_no_other_dominates(kind):
    optimizer = filled(kind)
    assert [trial.number for trial in optimizer.pareto_] == [0, 1, 4]
    assert optimizer.trial(0).value is None
    optimizer.withdraw(1)
    assert [trial.number for trial in optimizer.pareto_] == [0, 4]
    optimizer.observe(5, {"cost": 100.0})  # the reference is not a bound
    assert [trial.number for trial in optimizer.pareto_] == [0, 4, 5]


def test_front_leaves_out_trials_outside_and_trials_that_violate_constraints():
    constrained = make(constraints=[lambda p: p["x"] <= 0.5])
    good = {"purity": 1.0}
    constrained.add({"x": 0.25, "y": 0.0}, good | {"yield": 1.0, "cost": 9.0})
    constrained.add({"x": 0.3, "y": 0.0}, good | {"yield": 0.5, "cost": 8.0})
    trial = constrained.suggest()
    trial.observe(good | {"yield": 3.0, "cost": 5.0}, params={"x": 0.75, "y": 0.0})  # dominates both
    assert [trial.number for trial in constrained.pareto_] == [0, 1]
    trial = constrained.suggest()
    trial.observe(good | {"yield": 9.0, "cost": 1.0}, params={"x": -1.0, "y": 0.0})
    assert trial.outside and [trial.number for trial in constrained.pareto_] == [0, 1]


def dominates(a, b):
    return a != b and all(x >= y for x, y in zip(a, b, strict=True))


def volume_by_boxes(points, reference):
    """Return the volume of the union of boxes between the reference and the points, by inclusion and exclusion."""
    total = 0.0
    for n in range(1, len(points) + 1):
        for chosen in itertools.combinations(points, n):
            sides = [
                max(min(values) - low, 0.0) for values, low in zip(zip(*chosen, strict=True), reference, strict=True)
            ]
            total += (-1) ** (n + 1) * np.prod(sides)
    return total


GRID = st.integers(-3, 3).map(float)


@given(st.data(), st.integers(2, 3), st.lists(st.sampled_from(["maximize", "minimize"]), min_size=3, max_size=3))
def test_fronts_and_volumes_equal_those_by_enumeration(data, n, goals):
    names = ["a", "b", "c"][:n]
    optimizer = make(dict(zip(names, goals, strict=False)))
    points = data.draw(st.lists(st.tuples(*[GRID] * n), max_size=7))
    optimizer.add([{"x": 0.5, "y": 0.5}] * len(points), [dict(zip(names, point, strict=True)) for point in points])
    signs = [1.0 if goal == "maximize" else -1.0 for goal in goals[:n]]
    oriented = [tuple(s * x for s, x in zip(signs, point, strict=True)) for point in points]
    front = [i for i, point in enumerate(oriented) if not any(dominates(other, point) for other in oriented)]
    assert [trial.number for trial in optimizer.pareto_] == front
    reference = data.draw(st.tuples(*[GRID] * n))
    found = optimizer.hypervolume(dict(zip(names, reference, strict=True)))
    lows = [s * r for s, r in zip(signs, reference, strict=True)]
    assert found == pytest.approx(volume_by_boxes([oriented[i] for i in front], lows))
    if front:
        chosen = np.array([oriented[i] for i in front])
        ranges = np.ptp(chosen, axis=0)
        everything = np.ptp(np.array(oriented), axis=0)
        ranges = np.where(ranges > 0, ranges, np.where(everything > 0, everything, 1.0))
        computed = chosen.min(axis=0) - 0.1 * ranges
        assert optimizer.hypervolume() == pytest.approx(volume_by_boxes([oriented[i] for i in front], computed))


def test_reference_is_given_or_declared_or_computed():
    optimizer = filled()
    # The front is (50, 30), (60, 35); the range of the yield is 10, and the declared reference of the cost is 40.
    assert optimizer.hypervolume() == pytest.approx((50 - 49) * 10 + (60 - 50) * 5)
    assert optimizer.hypervolume({"yield": 40.0}) == pytest.approx(10 * 10 + 10 * 5)
    assert optimizer.hypervolume({"yield": 40.0, "cost": 36.0}) == pytest.approx(10 * 6 + 10 * 1)
    assert optimizer.hypervolume({"cost": 1.0}) == 0.0
    assert make().hypervolume() == make().hypervolume({"yield": 1.0}) == 0.0
    for wrong in [{"purity": 1.0}, {"yield": float("nan")}, {"yield": "a"}, 3.0, ["yield"]]:
        with pytest.raises(InvalidValue, match="reference"):
            optimizer.hypervolume(wrong)


@pytest.mark.parametrize("kind", [bl.BayesOpt, bl.RandomSearch])
def test_recommendations_name_the_objectives_without_values(kind):
    optimizer = kind({"x": (0.0, 1.0)}, outcomes={"a": "maximize", "b": "maximize"}, seed=0)
    trial = optimizer.suggest()
    optimizer.fail(trial, outcome="a")
    trial.observe({"b": 1.0})
    with pytest.raises(NotFitted, match=r"values of \['a', 'b'\]"):
        optimizer.recommend()


def test_long_fronts_are_shortened_in_the_repr_of_a_result():
    optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, outcomes={"a": "maximize", "b": "minimize"}, seed=0)
    result = bl.maximize(lambda params: {"a": params["x"], "b": params["x"]}, optimizer=optimizer, n_trials=100)
    assert len(result.pareto_) == 100 and len(repr(result)) < 200


def test_volumes_that_are_too_large_for_a_float_are_infinite():
    optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, outcomes={"a": "maximize", "b": "maximize"}, seed=0)
    optimizer.add([{"x": 0.1}, {"x": 0.2}], [{"a": 1e200, "b": 1e180}, {"a": 2e200, "b": 0.5e180}])
    assert optimizer.hypervolume({"a": 0.0, "b": 0.0}) == np.inf
    assert len(optimizer.recommend(n=2)) == 2


def test_members_for_one_objective_raise_one_error_that_names_the_front():
    optimizer = filled()
    result = bl.maximize(lambda p: dict.fromkeys(OUTCOMES, 1.0), optimizer=optimizer, n_trials=1)
    with pytest.raises(ObjectivesError, match="pareto_") as first:
        optimizer.best_trial()
    for each in (optimizer, result, copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        for name in ("best_trial_", "best_params_", "best_value_"):
            assert not hasattr(each, name) and getattr(each, name, None) is None
            with pytest.raises(ObjectivesError) as error:
                getattr(each, name)
            assert str(error.value) == str(first.value) and isinstance(error.value, bl.BelatedError)
    plain = bl.RandomSearch(SPACE)
    assert not hasattr(plain, "pareto_") and hasattr(plain, "best_value_")
    for call in (lambda: plain.pareto_, plain.hypervolume, make({"a": "minimize"}).hypervolume):
        with pytest.raises(ObjectivesError, match="best_trial_"):
            call()


@pytest.mark.parametrize("kind", [bl.RandomSearch, bl.BayesOpt])
@pytest.mark.parametrize("fill", [filled, lambda kind: make(kind=kind)])
def test_objects_are_shown_copied_and_listed(kind, fill, tmp_path):
    optimizer = fill(kind)
    study = bl.Study("s", tmp_path / "s.db", optimizer)
    result = bl.maximize(lambda p: dict.fromkeys(OUTCOMES, 1.0), optimizer=study, n_trials=1)
    n = len(optimizer.pareto_)
    front = f"front of {n} trial"
    view = study.optimizer
    objects = [optimizer, study, view, result, *optimizer.trials, *bl.Study.list(tmp_path / "s.db")]
    for each in objects:
        repr(each), str(each), dir(each)
        if each is not view:  # its copies are refused
            copy.copy(each)
        if hasattr(each, "_repr_html_"):
            each._repr_html_()
        for name, _ in inspect.getmembers(type(each), lambda it: isinstance(it, property)):
            try:
                getattr(each, name)
            except bl.BelatedError as error:
                assert name.endswith("_") and isinstance(error, (AttributeError, ValueError))
    assert front in optimizer._repr_html_() and optimizer._repr_html_().count("bold") >= n
    assert f"pareto_={[trial.number for trial in result.pareto_]}" in repr(result)
    assert pickle.loads(pickle.dumps(optimizer)).n_trials == optimizer.n_trials


@pytest.mark.parametrize(
    "arguments",
    [
        {"curve": bl.Curve(5)},
        {"curve": bl.Curve(5), "stopping": bl.ASHA()},
        {"fidelity": bl.Fidelity(1, 10)},
    ],
)
def test_curves_and_fidelities_are_refused(arguments):
    with pytest.raises(InvalidSetting, match=r"\['yield', 'cost'\]") as error:
        make(**arguments)
    assert "\n" not in str(error.value)


def test_the_bound_on_the_better_side_is_refused():
    with pytest.raises(InvalidSetting, match="worse side"):
        make({"yield": bl.Maximize(at_most=1.0), "cost": "minimize"})


def test_models_need_the_name_of_an_outcome():
    optimizer = filled(bl.BayesOpt)
    for call in (lambda: optimizer.predict({"x": 0.5, "y": 0.5}), optimizer.importances):
        with pytest.raises(InvalidValue, match="outcome is missing"):
            call()


def test_tables_have_a_column_for_the_front_and_are_read_again(tmp_path):
    pandas = pytest.importorskip("pandas")
    optimizer = filled()
    table = optimizer.trials_dataframe()
    assert not {"value", "std"} & set(table.columns)
    assert table["pareto"].tolist() == [number in (0, 1, 4) for number in range(8)]
    optimizer.to_csv(tmp_path / "t.csv")
    for each in (table, pandas.read_csv(tmp_path / "t.csv")):
        other = make()
        other.add(each)
        assert [trial.values for trial in other.trials] == [trial.values for trial in optimizer.trials]
        assert [trial.state for trial in other.trials] == [trial.state for trial in optimizer.trials]
        assert [trial.number for trial in other.pareto_] == [0, 1, 4]
    with pytest.raises(InvalidValue, match="pass a dict"):
        other.add(pandas.DataFrame({"x": [0.5], "y": [0.5], "v": [1.0]}), value="v")


def test_random_search_recommends_the_smallest_violation_before_the_bounds_are_met():
    outcomes = {"a": "maximize", "b": "maximize", "c": bl.AtMost(0.0)}
    optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, outcomes=outcomes, seed=0)
    for trial in optimizer.suggest(n=4):
        optimizer.observe(trial, {"a": 1.0, "b": 1.0, "c": 1 + trial.params["x"]})
    assert optimizer.recommend() == min((trial.params for trial in optimizer.trials), key=lambda params: params["x"])
