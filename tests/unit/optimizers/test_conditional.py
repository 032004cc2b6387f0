"""Optimizers on conditional spaces: suggestions, accepted params, storage and repeated points."""

import itertools
import math
import pickle
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import belated as bl
from tests.unit.space.spaces import active_names, conditional_spaces

few = settings(max_examples=25, deadline=None)
SVM = {
    "kernel": ["linear", "rbf", "poly"],
    "C": bl.Real(1e-3, 1e3, log=True),
    "gamma": bl.Real(1e-4, 1.0, log=True, when={"kernel": ["rbf", "poly"]}),
    "degree": bl.Integer(1, 5, when={"kernel": "poly"}),
}
# This space has 1 + 3 + 2 * (1 + 2) = 10 active configurations.
FINITE = {
    "kind": ["none", "line", "tree"],
    "slope": bl.Ordinal([0.1, 1.0, 10.0], when={"kind": "line"}),
    "depth": bl.Integer(1, 2, when={"kind": "tree"}),
    "prune": bl.Categorical([False, True], when={"kind": "tree"}),
    "alpha": bl.Real(0.0, 0.1, step=0.1, when={"prune": True}),
    "library": "own",
}
MIXED = {"kind": ["one", "two", "many"], "n": bl.Integer(1, 3, when={"kind": "two"})}
MIXED |= {"x": bl.Real(0.0, 1.0, when={"kind": "many"})}


def value(params):
    """A function of the active params. The params may have values of any type."""
    return zlib.crc32(repr(params).encode()) / 2**32


def key(trial):
    return repr(trial.params)


def finite_configurations():
    yield {"kind": "none"}
    yield from ({"kind": "line", "slope": slope} for slope in (0.1, 1.0, 10.0))
    for depth in (1, 2):
        yield {"kind": "tree", "depth": depth, "prune": False}
        yield from ({"kind": "tree", "depth": depth, "prune": True, "alpha": alpha} for alpha in (0.0, 0.1))


CONFIGURATIONS = [params | {"library": "own"} for params in finite_configurations()]


@few
@given(conditional_spaces(), st.integers(0, 5), st.lists(st.integers(0, 10**6), min_size=8, max_size=16), st.data())
def test_params_are_kept_exactly(space, seed, steps, data):
    make = data.draw(st.sampled_from([bl.BayesOpt, bl.RandomSearch]))
    opt = make(space, seed=seed, **({"initial": 3} if make is bl.BayesOpt else {}))
    for number in steps:
        trial = opt.suggest()
        params = trial.params
        assert list(params) == active_names(space, params)
        for name in params:
            checked = space[name].check(params[name])
            assert checked is params[name] or checked == params[name]
        if number % 3:
            trial.observe(np.sin(number))
        if number % 4 == 0:
            assert opt.add(params, 0.5).params == params
        if number % 4 == 1:
            opt.enqueue(params)
            assert opt.suggest().params == params


@few
@given(conditional_spaces(), st.integers(0, 5))
def test_studies_keep_spaces_and_params_exactly(tmp_path_factory, space, seed):
    store = f"sqlite:///{tmp_path_factory.mktemp('s')}/s.db"
    study = bl.Study("s", store, bl.BayesOpt(space, seed=seed, initial=3))
    for i in range(6):
        trial = study.suggest()
        trial.observe(float(i % 3))
    study.add(study.trials[0].params, 0.25)
    again = bl.Study.load("s", store)
    assert repr(again.domain) == repr(study.domain) == repr(bl.Space(space))
    assert [repr(trial.params) for trial in again.trials] == [repr(trial.params) for trial in study.trials]
    # Setting the same space again is allowed.
    bl.Study("s", store, bl.BayesOpt(space, seed=seed, initial=3))


def test_studies_name_the_dimension_that_differs(tmp_path):
    store = f"sqlite:///{tmp_path}/s.db"
    bl.Study("s", store, bl.RandomSearch(SVM, seed=0))
    degree = r"is Integer\(1, 5, when=\{'kernel': 'poly'\}\) there and Integer\(1, 5\) here"
    kernel = (
        r"is Categorical\(\['linear', 'rbf', 'poly'\]\) there and Categorical\(\['linear', 'rbf', 'poly', None\]\) here"
    )
    for change, message in [
        ({"degree": bl.Integer(1, 5)}, r"space\['degree'\] " + degree),
        ({"kernel": ["linear", "rbf", "poly", None]}, r"space\['kernel'\] " + kernel),
        ({"n": (1, 5)}, r"the names of space is \['kernel', .*there and \['kernel'"),
    ]:
        with pytest.raises(bl.errors.InvalidSetting, match=message):
            bl.Study("s", store, bl.RandomSearch(SVM | change, seed=0))
    choices = {"c": [1, (1, True, ("a", None)), "1"], "o": bl.Ordinal([1, 2.0, 4])}
    bl.Study("t", store, bl.RandomSearch(choices, seed=0))
    again = bl.Study.load("t", store).domain
    assert repr(again) == repr(bl.Space(choices))
    for other in (
        [1.0, (1, True, ("a", None)), "1"],
        [1, (1.0, True, ("a", None)), "1"],
        [1, (1, 1, ("a", None)), "1"],
    ):
        with pytest.raises(bl.errors.InvalidSetting, match=r"space\['c'\] is"):
            bl.Study("t", store, bl.RandomSearch(choices | {"c": other}, seed=0))


@few
@given(conditional_spaces(), st.integers(0, 5))
def test_a_refused_point_leaves_the_optimizer_unchanged(space, seed):
    opt = bl.BayesOpt(space, seed=seed, initial=2)
    for trial in opt.suggest(n=4):
        trial.observe(value(trial.params))
    params, before = pickle.loads(pickle.dumps(opt)).suggest().params, opt._log.to_bytes()
    for name, dimension in opt.domain.items():
        bad, refusals = dict(params), [opt.add, lambda bad: opt.add([params, bad], [1.0, 2.0])]
        if name not in params:
            bad[name] = dimension.decode(np.zeros(max(dimension.width, 1)))
            if bad[name] is None:
                continue  # None may be given for an inactive parameter
            refusals.append(opt.enqueue)
        elif dimension.width:
            del bad[name]
        else:
            continue  # a constant may be left out
        for refuse in refusals:
            with pytest.raises(bl.errors.InvalidPoint, match=rf"'{name}'"):
                refuse(bad)
    assert opt._log.to_bytes() == before


@pytest.mark.parametrize("make", [bl.BayesOpt, bl.RandomSearch])
def test_a_number_that_is_never_active_does_not_make_a_space_infinite(make):
    space = {
        "a": bl.Integer(0, 1),
        "b": bl.Integer(0, 1, when={"a": 0}),
        "c": bl.Integer(0, 1, when={"a": 1, "b": 0}),
        "x": bl.Real(0.0, 1.0, when={"c": 1}),
    }
    opt = make(space, seed=0)
    configurations = [{"a": 0, "b": 0}, {"a": 0, "b": 1}, {"a": 1}]
    assert sorted(map(repr, (trial.params for trial in opt.suggest(n=3)))) == sorted(map(repr, configurations))
    assert opt.suggest().params in configurations


def test_inactive_differences_do_not_make_two_configurations():
    opt = bl.BayesOpt(SVM, seed=0)
    for params in ({"kernel": "linear", "C": 1.0}, {"kernel": "rbf", "C": 1.0, "gamma": 0.1}):
        places = [opt._log.trial(opt.add(params).number).place for _ in range(3)]
        assert places[0] == places[1] == places[2]
    batch = bl.BayesOpt(SVM, seed=1).suggest(n=60)
    for trial in batch:
        row = trial._owner.domain.encode(trial.params)
        kernel = trial.params["kernel"]
        assert (row[4] == 0.5) or kernel != "linear"
        assert (row[5] == 0.5) or kernel == "poly"


@pytest.mark.parametrize("acquisition", ["log_ei", "ucb", "thompson", "max_variance", "ucb_pe"])
def test_all_active_configurations_are_in_flight_once(acquisition):
    # The batch contains each configuration once and then repeats configurations.
    opt = bl.BayesOpt(FINITE, seed=2, acquisition=acquisition, initial=3)
    opt.suggest().observe(1.0)
    batch = opt.suggest(n=len(CONFIGURATIONS) - 1)
    found = [key(trial) for trial in batch]
    assert len(set(found)) == len(CONFIGURATIONS) - 1
    last = opt.suggest()
    assert {*found, key(last)} == {repr(params) for params in CONFIGURATIONS}
    assert key(opt.suggest()) in {*found, key(last)}


@pytest.mark.parametrize("seed", range(5))
def test_a_first_batch_has_every_active_configuration(seed):
    batch = bl.BayesOpt(FINITE, seed=seed).suggest(n=len(CONFIGURATIONS))
    assert {key(trial) for trial in batch} == {repr(params) for params in CONFIGURATIONS}


@pytest.mark.parametrize("acquisition", ["log_ei", "ucb", "thompson"])
@pytest.mark.parametrize("seed", range(3))
def test_discrete_points_beside_a_continuous_branch_are_not_in_flight_twice(acquisition, seed):
    opt = bl.BayesOpt(MIXED, seed=seed, acquisition=acquisition, initial=3)
    # The branches with discrete parameters have the largest values, so the model prefers these branches.
    in_flight = []
    for _ in range(24):
        trial = opt.suggest()
        assert key(trial) not in map(key, in_flight)
        in_flight.append(trial)
        if len(in_flight) > 6:
            done = in_flight.pop(0)
            done.observe({"one": 1.0, "two": 0.9, "many": 0.0}[done.params["kind"]])


def test_values_without_noise_are_not_observed_twice():
    opt = bl.BayesOpt(FINITE, seed=0, surrogate=bl.GP(noise_std=0.0), initial=3)
    for _ in range(len(CONFIGURATIONS)):
        trial = opt.suggest()
        trial.observe(value(trial.params))
    assert {key(trial) for trial in opt.trials} == {repr(params) for params in CONFIGURATIONS}


def test_a_conditional_space_may_have_a_context():
    opt = bl.BayesOpt(FINITE, context={"site": ["a", "b"]}, seed=0)
    for site in "ab":
        batch = [opt.suggest(context={"site": site}) for _ in CONFIGURATIONS]
        assert {key(trial) for trial in batch} == {repr(params) for params in CONFIGURATIONS}


def test_the_optimum_of_a_deep_branch_is_found():
    space = {
        "a": ["left", "right"],
        "b": bl.Categorical(["up", "down"], when={"a": "right"}),
        "n": bl.Integer(1, 40, when={"b": "down"}),
        "x": bl.Real(0.0, 1.0, when={"b": "down"}),
        "y": bl.Real(0.0, 1.0, when={"a": "left"}),
    }

    def f(params):
        if "n" in params:
            return 1 - ((params["n"] - 23) / 40) ** 2 - (params["x"] - 0.3) ** 2
        return 0.5 - (params["y"] - 0.6) ** 2 if "y" in params else 0.4

    opt = bl.BayesOpt(space, seed=0)
    for _ in range(40):
        trial = opt.suggest()
        trial.observe(f(trial.params))
    assert opt.best_value_ > 0.995
    best = opt.recommend()
    assert list(best) == ["a", "b", "n", "x"] and f(best) > 0.99


def test_random_search_draws_parents_uniformly():
    trials = bl.RandomSearch(FINITE, seed=3).suggest(n=3000)
    kinds = [trial.params["kind"] for trial in trials]
    for kind in FINITE["kind"]:
        assert abs(kinds.count(kind) - 1000) < 5 * np.sqrt(3000 * 2 / 9)
    pruned = [trial.params["prune"] for trial in trials if trial.params["kind"] == "tree"]
    assert abs(sum(pruned) - len(pruned) / 2) < 5 * np.sqrt(len(pruned)) / 2


def test_every_configuration_of_a_finite_space_is_counted_once():
    # The space has more combinations of values than the optimizer enumerates, but only few active configurations. Every
    # active configuration is tried before one of them is repeated.
    space = {"k": bl.Integer(0, 9)}
    space |= {f"p{i}": bl.Integer(0, 8, when={"k": i}) for i in range(10)}
    batch = bl.BayesOpt(space, seed=0, initial=5).suggest(n=90)
    assert {key(trial) for trial in batch} == {
        repr({"k": i, f"p{i}": n}) for i, n in itertools.product(range(10), range(9))
    }


NETS = {"net": ["N2", "N3"], "hidden": (1, 100), "hidden2": bl.Integer(1, 100, when={"net": "N3"})}


@pytest.mark.parametrize("gap", [None, math.nan])
def test_none_and_nan_leave_out_an_inactive_parameter(gap):
    opt = bl.BayesOpt(NETS, seed=0)
    point, expected = {"net": "N2", "hidden": 50, "hidden2": gap}, {"net": "N2", "hidden": 50}
    opt.enqueue(point)
    assert opt.suggest().params == expected
    assert opt.add(point, 1.0).params == opt.add([point], [1.0])[0].params == expected
    trial = opt.suggest()
    trial.observe(1.0, params=point)
    assert trial.params_run == expected
    assert opt.predict(point)[0] == opt.predict(expected)[0]
    opt.enqueue({"hidden": 7, "hidden2": gap})
    assert opt.suggest().params["hidden"] == 7


def test_none_for_an_active_parameter_and_numbers_for_an_inactive_parameter_are_refused():
    opt = bl.BayesOpt(NETS, seed=0)
    for add in (opt.enqueue, lambda point: opt.add(point, 1.0)):
        with pytest.raises(bl.errors.InvalidPoint, match=r"\['hidden2'\]=None is not usable"):
            add({"net": "N3", "hidden": 50, "hidden2": None})
        with pytest.raises(bl.errors.InvalidPoint, match=r"\['hidden2'\]=3 is inactive here: leave it out"):
            add({"net": "N2", "hidden": 50, "hidden2": 3})


def test_a_choice_none_is_kept_where_the_parent_is_missing():
    opt = bl.RandomSearch({"a": [1, 2], "b": bl.Categorical([None, "x"], when={"a": 2}), "x": (0.0, 1.0)}, seed=0)
    opt.enqueue([{"b": None}] * 5)
    assert all(trial.params["a"] == 2 and trial.params["b"] is None for trial in opt.suggest(n=5))
