"""`enqueue` completes points with missing parameters, and `add` rejects them; both methods accept arrays of points."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import belated as bl
from tests.unit.optimizers.problem import ROWS, both

SPACE = {
    "x": (0.0, 1.0),
    "n": bl.Integer(0, 9),
    "kernel": ["rbf", "poly"],
    "degree": bl.Integer(1, 5, when={"kernel": "poly"}),
    "cache": 200,
}


def ordered(params):
    """A constraint that holds for a tenth of the points."""
    return params["x"] + params["n"] / 9 >= 1.55


parts = st.fixed_dictionaries(
    {},
    optional={
        "x": st.floats(0.6, 1.0),
        "n": st.integers(6, 9),
        "kernel": st.sampled_from(["rbf", "poly"]),
        "degree": st.integers(1, 5),
        "cache": st.just(200),
    },
).filter(lambda part: not (part.get("kernel") == "rbf" and "degree" in part))


@given(st.lists(parts, min_size=1, max_size=3), st.booleans(), st.integers(0, 99))
def test_a_completed_point_is_in_the_space_and_feasible(given_parts, constrained, seed):
    constraints = [ordered] if constrained else None
    opt = bl.RandomSearch(SPACE, constraints=constraints, seed=seed)
    feasible = [part for part in given_parts if not {"x", "n"} <= part.keys() or not constrained or ordered(part)]
    opt.enqueue(feasible)
    for part, trial in zip(feasible, opt.suggest(n=len(feasible)), strict=True):
        assert {name: trial.params[name] for name in part} == part
        assert trial.params.keys() - {"degree"} == SPACE.keys() - {"degree"}
        assert ("degree" in trial.params) == (trial.params["kernel"] == "poly")
        assert not constrained or ordered(trial.params)


def test_missing_values_are_uniform_over_the_space():
    opt = bl.RandomSearch({"x": (0.0, 1.0), "n": bl.Integer(1, 5), "kernel": ["rbf", "poly", "linear"]}, seed=0)
    n = 1000
    opt.enqueue([{"x": 0.5}] * n)
    params = [trial.params for trial in opt.suggest(n=n)]
    for name, values in (("n", range(1, 6)), ("kernel", ["rbf", "poly", "linear"])):
        counts = np.array([sum(each[name] == value for each in params) for value in values])
        expected = n / len(values)
        # 99.99 % quantiles of chi-squared with 2 and 4 degrees of freedom are 18.4 and 23.5.
        assert ((counts - expected) ** 2 / expected).sum() < 25
    opt.enqueue([{"n": 1}] * n)
    x = np.sort([trial.params["x"] for trial in opt.suggest(n=n)])
    assert np.abs(x - (np.arange(n) + 0.5) / n).max() < 2.2 / np.sqrt(n)


@both
def test_missing_values_depend_on_the_seed_and_the_history(kind):
    def drawn(seed, before=0):
        opt = kind(SPACE, seed=seed)
        opt.suggest(n=before)
        opt.enqueue({"n": 0})
        opt.enqueue({"n": 0})
        return [trial.params for trial in opt.suggest(n=2)]

    first, second = drawn(0)
    assert first != second and drawn(1)[0] != first != drawn(0, before=1)[0]
    assert drawn(0) == [first, second]


@both
def test_a_partial_point_is_not_added_with_a_value(kind):
    opt = kind(SPACE, seed=0)
    for part in ({"x": 0.5}, {"x": 0.5, "n": 1, "kernel": "poly"}, {}):
        for value in (1.0, None):
            with pytest.raises(bl.errors.InvalidPoint, match="misses .*enqueue"):
                opt.add(part, value)
    assert opt.n_trials == 0
    # A constant and inactive names may be missing.
    whole = opt.add({"x": 0.5, "n": 1, "kernel": "rbf"}, 1.0)
    assert whole.params == {"x": 0.5, "n": 1, "kernel": "rbf", "cache": 200}


@both
@pytest.mark.parametrize(
    "part",
    [{"z": 1}, {"n": 10}, {"x": np.nan}, {"kernel": "rbf", "degree": 3}, {"cache": 3}],
    ids=repr,
)
def test_partial_points_that_cannot_be_completed_are_refused(kind, part):
    opt = kind(SPACE, constraints=[ordered], seed=0)
    with pytest.raises(bl.errors.InvalidPoint):
        opt.enqueue([{"n": 9}, part])
    assert opt._log.n_events() == 0


@both
def test_linear_constraints_that_given_values_contradict_are_refused_at_once(kind):
    opt = kind(
        {"x": (0.0, 1.0), "y": (0.0, 1.0), "z": (0.0, 1.0)},
        constraints=[bl.Linear({"x": 1, "y": 1}, at_most=1.0)],
        seed=0,
    )
    with pytest.raises(bl.errors.InvalidPoint, match=r"params contradicts the linear constraints"):
        opt.enqueue([{"z": 0.5}, {"x": 0.8, "y": 0.7}])
    assert opt._log.n_events() == 0
    opt.enqueue({"x": 0.8})
    assert opt.suggest().params["y"] <= 0.2 + 1e-9


STRATEGIES = [
    bl.RandomSearch,
    lambda *args, **arguments: bl.BayesOpt(*args, **arguments, initial=bl.Initial(2), surrogate=bl.GP(n_restarts=1)),
    lambda *args, **arguments: bl.TreeSearch(*args, **arguments),
]


@pytest.mark.parametrize("kind", STRATEGIES, ids=["RandomSearch", "BayesOpt", "TreeSearch"])
def test_a_point_without_a_feasible_completion_is_suggested_with_a_warning(kind):
    opt = kind(SPACE, constraints=[ordered], seed=0)
    opt.enqueue([{"x": 0.1, "kernel": "rbf"}, {"x": 0.9}])
    with pytest.warns(bl.BelatedWarning, match="violates"):
        violating, satisfying = opt.suggest(n=2)
    assert violating.params["x"] == 0.1 and violating.params["kernel"] == "rbf" and not ordered(violating.params)
    assert satisfying.params["x"] == 0.9 and ordered(satisfying.params)
    for trial in (violating, satisfying):
        trial.observe(0.0)
    assert ordered(opt.suggest().params)


@pytest.mark.parametrize("kind", STRATEGIES, ids=["RandomSearch", "BayesOpt", "TreeSearch"])
def test_values_are_chosen_at_the_suggestion(kind):
    """Two optimizers with equal histories suggest equal points, whenever the points were enqueued."""
    early, late = kind(SPACE, seed=3), kind(SPACE, seed=3)
    early.enqueue([{"n": 1}, {"n": 2}])
    for n in (1, 2):
        late.enqueue({"n": n})
        first, second = early.suggest(), late.suggest()
        assert first.params == second.params and first.params["n"] == n
        for trial in (first, second):
            trial.observe(float(n))


def test_a_series_may_lack_values():
    opt = bl.RandomSearch(SPACE, seed=0)
    opt.enqueue(pd.Series({"x": 0.25}))
    assert opt.suggest().params["x"] == 0.25


# Arrays.


@both
def test_add_and_enqueue_accept_the_arrays_that_predict_accepts(kind):
    points = np.array([[0.25, 3.0], [0.75, 8.0]])
    as_dicts = [{"x": 0.25, "n": 3}, {"x": 0.75, "n": 8}]
    opt = kind({"x": (0.0, 1.0), "n": bl.Integer(0, 9), "cache": 200}, seed=0)
    added = opt.add(points, [1.0, 2.0])
    opt.enqueue(points)
    expected = [each | {"cache": 200} for each in as_dicts]
    assert [trial.params for trial in added] == [trial.params for trial in opt.suggest(n=2)] == expected
    for wrong in (points[0], np.zeros((2, 3)), np.array(0.5)):
        with pytest.raises(bl.errors.InvalidPoint, match="shape"):
            opt.enqueue(wrong)
    opt = kind(SPACE, seed=0)
    with pytest.raises(bl.errors.InvalidPoint):
        opt.add(np.zeros((2, 4)), [1.0, 2.0])
    assert opt.n_trials == 0
    opt.enqueue(pd.DataFrame({"n": [1, 2]}))
    assert [trial.params["n"] for trial in opt.suggest(n=2)] == [1, 2]


@both
def test_add_and_enqueue_accept_the_indices_that_predict_accepts(kind):
    opt = kind(candidates=ROWS, seed=0)
    for indices in ([3, 4, 5], np.array([3, 4, 5]), (3,)):
        opt.enqueue(indices)
        assert [trial.index for trial in opt.suggest(n=len(indices))] == list(indices)
        assert [trial.index for trial in opt.add(indices)] == list(indices)
    # A list with one number per column counts as a row.
    opt.enqueue([4, 1])
    assert opt.suggest().index == 4
