"""Failures do not make exact points attractive again, and a failing point waits before it is tried again."""

import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import belated as bl

GRID = {"a": (0, 24), "b": (0, 7)}
ROWS = np.random.default_rng(0).random((80, 2))
EXACT = bl.GP(noise_std=0.0)
SOLVERS = {"solver": ["lbfgs", "saga", "liblinear"], "penalty": ["l1", "l2", "none"], "C": bl.Ordinal([0.01, 1, 100])}
INVALID = {("lbfgs", "l1"), ("liblinear", "none")}


def on_grid(params):
    return -abs(params["a"] - 12) - abs(params["b"] - 4.0) ** 2 / 4


def on_rows(x):
    return -float(((x - 0.4) ** 2).sum())


def of_solver(params):
    invalid = (params["solver"], params["penalty"]) in INVALID
    return None if invalid else len(params["solver"]) / 10 - (np.log10(params["C"]) - 1) ** 2


def key(trial):
    return trial.index if trial.index is not None else tuple(trial.params.values())


def run(opt, f, n, accident=None):
    """Run n trials. A trial fails if f returns None, and trial number `accident` fails. Return the points and the
    number of warnings that the domain is exhausted."""
    points = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(n):
            trial = opt.suggest()
            points.append(key(trial))
            value = None if trial.number == accident else f(trial.params)
            trial.fail() if value is None else trial.observe(value)
    return points, sum("every point" in str(each.message) for each in caught)


@pytest.mark.parametrize("accident", [0, 4, 20])
@pytest.mark.parametrize(("arguments", "f"), [({"space": GRID}, on_grid), ({"candidates": ROWS}, on_rows)])
def test_an_accident_does_not_lead_to_repeats(arguments, f, accident):
    points, _ = run(bl.BayesOpt(**arguments, seed=0), f, 45, accident)
    without, _ = run(bl.BayesOpt(**arguments, seed=0), f, 45)
    assert len(set(points)) >= len(set(without)) - 4 and max(Counter(points).values()) <= 3


@pytest.mark.parametrize("acquisition", ["log_ei", "ucb", "thompson"])
def test_all_good_points_are_tried_before_failing_points_are_drilled(acquisition):
    opt = bl.BayesOpt(SOLVERS, acquisition=acquisition, surrogate=EXACT, seed=0)
    points, n_warnings = run(opt, of_solver, 60)
    good = {point for point in points if point[:2] not in INVALID}
    failed = Counter(point for point in points if point[:2] in INVALID)
    assert len(good) == 21 and max(failed.values()) <= 2 and n_warnings == 1
    # When the domain is exhausted, the best point is repeated.
    assert {trial.value for trial in opt.trials[-15:]} == {opt.best_value_} and len(set(points[-15:])) == 1


def test_a_failing_region_of_an_exact_function_is_not_drilled():
    opt = bl.BayesOpt({"a": (0, 9), "b": (0, 5)}, surrogate=EXACT, seed=0)
    points, _ = run(opt, lambda p: None if p["a"] > 6 else p["a"] + 0.1 * p["b"], 90)
    assert max(Counter(points).values()) <= 3
    assert len({point for point in points if point[0] <= 6}) >= 35


def failures_wait(opt):
    """Check the wait between two failures of a point, from the log alone."""
    observed, last, times = 0, {}, Counter()
    for trial in opt.trials:
        point = key(trial)
        if trial.state == "failed":
            if point in last:
                before, wait = last[point]
                assert observed - before >= wait
            times[point] += 1
            failing = set(times)
            n_left = N_POINTS - len(failing)
            last[point] = observed, min(n_left, 10 * 2 ** times[point])
        else:
            observed += 1


N_POINTS = 18


@settings(max_examples=15, deadline=None)
@given(failing=st.sets(st.integers(0, N_POINTS - 1), min_size=1, max_size=8), seed=st.integers(0, 99))
def test_a_failing_point_waits_for_other_values(failing, seed):
    """Values have declared noise, so points remain available unless they fail."""
    rng = np.random.default_rng(seed)
    rows = np.linspace(0, 1, N_POINTS)[:, None]
    opt = bl.BayesOpt(
        candidates=rows, seed=seed, surrogate=bl.GP(lengthscale=0.3, signal_std=1.0, noise_std=0.3), acquisition="ucb"
    )
    for _ in range(45):
        trial = opt.suggest()
        trial.fail() if trial.index in failing else trial.observe(float(trial.x[0]) + 0.3 * rng.standard_normal())
    failures_wait(opt)


def test_equal_values_of_a_point_are_exact_after_failures():
    """The fitted noise is not considered here, because many trials have failed."""
    opt = bl.BayesOpt(candidates=np.arange(30.0)[:, None], surrogate=bl.GP(lengthscale=0.2, signal_std=1.0), seed=0)
    for number in range(20, 26):
        opt.fail(opt.add(number))
    opt.add([0, 2, 4, 6, 8, 10, 6], [0.1, 0.3, 0.2, 0.6, 0.4, 0.2, 0.6])
    points, _ = run(opt, lambda x: 0.1, 6)
    assert 6 not in points


def test_failures_in_other_contexts_do_not_count():
    opt = bl.BayesOpt(
        candidates=np.arange(12.0)[:, None], context={"c": ["u", "v"]}, surrogate=bl.GP(noise_std=0.1), seed=0
    )
    for c in ("u", "v"):
        opt.add(list(range(12)), np.linspace(0, 1, 12).tolist(), context={"c": c})
    opt.fail(opt.add(11, context={"c": "u"}))
    assert opt.suggest(context={"c": "u"}).index != 11
    assert opt.suggest(context={"c": "v"}).index == 11


def test_random_search_tries_every_point_once():
    opt = bl.RandomSearch({"a": (0, 9), "b": (0, 5)}, seed=0)
    points, _ = run(opt, lambda p: None if p["a"] > 6 else p["a"] + 0.1 * p["b"], 60)
    assert len(set(points)) == 60
