"""Fixed and shared values together with linear constraints."""

import itertools

import numpy as np
import pytest

import belated as bl
from belated import errors

SPACE = {"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 1.0), "T": (20.0, 90.0), "s": ["x", "y", "z"]}
CONSTRAINTS = {
    "mixture": [bl.Mixture(["a", "b", "c"])],
    "steps": [bl.Mixture(["a", "b", "c"], step=0.05)],
    "two": [bl.Linear({"a": 1, "b": 1, "c": 1}, equals=1.0), bl.Linear({"a": 1, "b": -1}, at_most=0.2)],
}


def f(p):
    return -((p["a"] - 0.4) ** 2) - (p["b"] - 0.5) ** 2 - ((p["T"] - 50) / 70) ** 2


@pytest.fixture(params=CONSTRAINTS)
def constraints(request):
    return CONSTRAINTS[request.param]


@pytest.mark.parametrize("make", [bl.BayesOpt, bl.RandomSearch])
def test_suggestions_have_the_fixed_values_and_satisfy_the_constraints(make, constraints):
    optimizer = make(SPACE, constraints=constraints, seed=0)
    kinds = [{"a": 0.3}, {"a": (0.1, 0.2)}, {"T": 60.0, "b": 0.25, "s": ["x", "z"]}, None]
    for fixed in kinds + kinds:
        for trial in optimizer.suggest(n=3, fixed=fixed):
            p = trial.params
            assert abs(p["a"] + p["b"] + p["c"] - 1) < 1e-9
            if len(constraints) == 2:
                assert p["a"] - p["b"] <= 0.2 + 1e-9
            for name, value in (fixed or {}).items():
                if isinstance(value, tuple):
                    assert value[0] <= p[name] <= value[1]
                else:
                    assert p[name] in value if isinstance(value, list) else p[name] == value
            trial.observe(f(p))
    optimizer.enqueue({"a": 0.2})
    p = optimizer.suggest().params
    assert p["a"] == 0.2 and abs(sum(p[name] for name in "abc") - 1) < 1e-9
    for shared in (["T"], ["a"], ["a", "b"]):
        batch = [trial.params for trial in optimizer.suggest(n=3, shared=shared)]
        assert all(abs(p["a"] + p["b"] + p["c"] - 1) < 1e-9 for p in batch)
        assert len({tuple(p[name] for name in shared) for p in batch}) == 1


def test_contradictions_and_lists_are_refused(constraints):
    optimizer = bl.BayesOpt(SPACE, constraints=constraints, seed=0)
    for fixed in ({"a": 0.6, "b": 0.6}, {"a": 0.6, "b": 0.6, "c": 0.6}, {"a": [0.1, 0.2]}):
        if isinstance(fixed["a"], list) and constraints == CONSTRAINTS["steps"]:
            continue  # values of a finite set
        with pytest.raises(errors.InvalidPoint):
            optimizer.suggest(fixed=fixed)
    assert not optimizer.trials
    everything = {"a": 0.2, "b": 0.3, "c": 0.5, "T": 30.0, "s": "x"}
    assert optimizer.suggest(fixed=everything).params == everything


def test_constraints_are_exact_where_all_but_one_part_are_fixed():
    optimizer = bl.BayesOpt({name: (0.0, 1.0) for name in "abc"}, constraints=[bl.Mixture(list("abc"))], seed=0)
    p = optimizer.suggest(fixed={"a": 0.1, "b": 0.7}).params
    assert p == {"a": 0.1, "b": 0.7, "c": pytest.approx(0.2, abs=1e-9)}


@pytest.mark.parametrize("fixed", [{"b": 0.2}, {"b": (0.2, 0.5)}, {"a": (0.0, 0.3), "c": (0.1, 0.4)}])
def test_the_points_of_a_stepped_mixture_with_fixed_values(fixed):
    space, mixture = {name: (0.0, 1.0) for name in "abcd"}, bl.Mixture(list("abcd"), step=0.1)
    steps = [k for k in itertools.product(range(11), repeat=4) if sum(k) == 10]
    bounds = {name: value if isinstance(value, tuple) else (value, value) for name, value in fixed.items()}
    allowed = {
        k for k in steps
        if all(10 * low - 0.01 <= k["abcd".index(name)] <= 10 * high + 0.01 for name, (low, high) in bounds.items())
    }  # fmt: skip

    def steps_of(trial):
        return tuple(round(10 * trial.params[name]) for name in "abcd")

    # Random points in flight are different, so as many suggestions as points are all points.
    search = bl.RandomSearch(space, constraints=[mixture], seed=1)
    assert {steps_of(trial) for trial in search.suggest(n=len(allowed), fixed=fixed)} == allowed

    optimizer = bl.BayesOpt(space, constraints=[mixture], seed=1)
    for trial in optimizer.suggest(n=8):
        trial.observe(-sum((trial.params[name] - x) ** 2 for name, x in zip("abcd", (0.1, 0.4, 0.2, 0.3), strict=True)))
    points = [{name: k / 10 for name, k in zip("abcd", each, strict=True)} for each in sorted(allowed)]
    scores = np.asarray(optimizer.acquisition_at(points))
    chosen = steps_of(optimizer.suggest(fixed=fixed))
    assert scores[sorted(allowed).index(chosen)] >= scores.max() - 1e-6 * np.ptp(scores)
