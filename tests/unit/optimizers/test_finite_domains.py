"""Domains with finitely many points: points in flight are not suggested again while untried points are left."""

import itertools

import numpy as np
import pytest

import belated as bl

GRID = {"a": bl.Integer(0, 7), "c": ["p", "q", "r"], "b": bl.Integer(1, 8)}
SMALL = {"a": bl.Integer(0, 4), "b": bl.Integer(0, 4)}


def key(trial):
    return trial.index if trial.x is not None else tuple(trial.params.values())


def value(trial):
    if trial.x is not None:
        return -float(((trial.x - 0.4) ** 2).sum())
    return -sum((x - 3.0) ** 2 for x in trial.params.values() if not isinstance(x, str))


@pytest.mark.parametrize("acquisition", ["log_ei", "ucb", "thompson", "max_variance", "ucb_pe"])
@pytest.mark.parametrize("candidates", [False, True])
def test_points_in_flight_are_not_suggested_again(acquisition, candidates):
    grid = np.array(list(itertools.product(range(8), range(8)))) / 7.0
    domain = {"candidates": grid} if candidates else {"space": GRID}
    opt = bl.BayesOpt(acquisition=acquisition, seed=1, **domain)
    in_flight = []
    for _ in range(40):
        trial = opt.suggest()
        assert key(trial) not in map(key, in_flight)
        in_flight.append(trial)
        if len(in_flight) == 8:
            done = in_flight.pop(0)
            done.observe(value(done))


@pytest.mark.parametrize("seed", range(25))
def test_points_of_a_first_batch_differ(seed):
    for domain in ({"space": SMALL}, {"candidates": np.linspace(0, 1, 25).reshape(-1, 1)}):
        opt = bl.BayesOpt(seed=seed, **domain)
        batch = opt.suggest(25)
        assert len(set(map(key, batch))) == 25
        # All points have been tried, so the next suggestion repeats a point.
        assert key(opt.suggest()) in set(map(key, batch))


@pytest.mark.parametrize("declared", ["std", "noise_std"])
def test_values_without_noise_are_not_observed_twice(declared):
    surrogate = bl.GP(noise_std=0.0) if declared == "noise_std" else "gp"
    opt = bl.BayesOpt(candidates=np.linspace(0, 1, 25).reshape(-1, 1), surrogate=surrogate, seed=3)
    seen = []
    for _ in range(4):
        for trial in opt.suggest(6):
            assert trial.index not in seen
            seen.append(trial.index)
            trial.observe(value(trial), std=0.0 if declared == "std" else None)
    assert sorted(seen) != list(range(25)) and len(seen) == 24
    assert opt.suggest().index not in seen


def test_equal_points_in_different_contexts_are_different():
    opt = bl.BayesOpt({"k": bl.Integer(0, 3)}, context={"z": (0.0, 1.0)}, seed=0)
    for z in (0.0, 0.5, 1.0):
        batch = [opt.suggest(context={"z": z}) for _ in range(4)]
        assert {trial.params["k"] for trial in batch} == {0, 1, 2, 3}


def test_expired_points_may_be_suggested_again():
    opt = bl.BayesOpt({"k": bl.Integer(0, 3)}, window=2.0, seed=0)
    opt.add({"k": 0}, 0.0)
    seen = [opt.suggest().params["k"] for _ in range(12)]
    for recent in itertools.pairwise(seen):
        assert len(set(recent)) == 2


@pytest.mark.parametrize("space", [{"k": bl.Integer(0, 3)}, {"c": ["p", "q", "r", "s"]}])
def test_a_point_that_keeps_failing_is_avoided(space):
    opt = bl.BayesOpt(space, seed=0)
    trials = opt.suggest(4)
    bad = trials[2].params
    for trial in trials:
        if trial.params == bad:
            trial.fail()
        else:
            trial.observe(0.1 * trial.number)
    again = 0
    for _ in range(30):
        trial = opt.suggest()
        again += trial.params == bad
        if trial.params == bad:
            trial.fail()
        else:
            trial.observe(0.1 * trial.number % 0.4)
    # The failing point is tried a few times, because its first failures may have been random.
    assert again <= 3


def numbers(opt, n):
    """Run n trials and observe each of them at once and without noise; return the suggested candidates."""
    rows = []
    for _ in range(n):
        trial = opt.suggest()
        rows.append(trial.index)
        trial.observe(value(trial))
    return rows


@pytest.mark.parametrize("kind", [bl.RandomSearch, bl.BayesOpt])
@pytest.mark.parametrize("n", [3, 6, 10])
def test_few_candidates_are_all_tried_before_any_is_repeated(kind, n):
    for seed in range(5):
        opt = kind(candidates=np.linspace(0, 1, n).reshape(-1, 1), seed=seed)
        assert sorted(numbers(opt, n)) == list(range(n))
        assert opt.suggest().index in range(n)


@pytest.mark.parametrize("declared", ["noise_std", "std"])
def test_known_noise_allows_repeats_while_others_are_untried(declared):
    surrogate = bl.GP(noise_std=0.5) if declared == "noise_std" else "gp"
    points = np.linspace(0, 1, 10).reshape(-1, 1)
    opt = bl.BayesOpt(candidates=points, acquisition="ucb", surrogate=surrogate, seed=0)
    rows = []
    for _ in range(10):
        trial = opt.suggest()
        rows.append(trial.index)
        trial.observe(float(trial.x[0]), std=0.2 if declared == "std" else None)
    assert len(set(rows)) < 10


@pytest.mark.parametrize("kind", [bl.RandomSearch, bl.BayesOpt])
def test_equal_candidates_are_one_point_in_flight(kind):
    points = np.random.default_rng(0).random((40, 2))
    points[0] = 0.0
    listed = np.repeat(points, 5, axis=0)
    listed[1] = -0.0
    opt = kind(candidates=listed, seed=0)
    for trial in opt.suggest(6):
        trial.observe(value(trial))
    batch = opt.suggest(30)
    assert len({tuple(trial.x + 0.0) for trial in batch}) == 30


def test_an_exhausted_domain_warns_once_and_repeats_the_largest_mean():
    opt = bl.BayesOpt(candidates=np.linspace(0, 1, 12).reshape(-1, 1), surrogate=bl.GP(noise_std=0.0), seed=2)
    assert sorted(numbers(opt, 12)) == list(range(12))
    best = max(opt.trials, key=lambda trial: trial.value)
    with pytest.warns(bl.BelatedWarning) as caught:
        again = numbers(opt, 4)
    assert again == [best.index] * 4 and len(caught) == 1


def test_points_are_rarely_repeated_if_values_are_exact():
    space = {"a": bl.Integer(0, 20), "b": bl.Integer(1, 8), "c": ["p", "q"]}
    opt = bl.BayesOpt(space, seed=0)
    repeats, seen = 0, set()
    for _ in range(40):
        trial = opt.suggest()
        repeats += key(trial) in seen
        seen.add(key(trial))
        trial.observe(-((trial.params["a"] - 7.0) ** 2) - (trial.params["b"] - 3) ** 2 - (trial.params["c"] == "p"))
    assert repeats <= 8


def test_random_search_tries_an_abandoned_point_before_it_repeats_another():
    for seed in range(8):
        opt = bl.RandomSearch({"n": (0, 3)}, seed=seed)
        opt.abandon(opt.suggest())
        failed = opt.suggest()
        failed.fail()
        assert {*map(key, opt.suggest(3)), key(failed)} == {(0,), (1,), (2,), (3,)}
