"""`forecast` warns once if results are handed over together."""

import warnings

import numpy as np
import pytest

import belated as bl

DAY = 86400.0


def replay(starts, ends, clock="seconds", until=None):
    """Return an optimizer whose trials started and arrived at these times, with one more trial in flight."""
    now = [0.0]
    opt = bl.RandomSearch({"x": (0.0, 1.0)}, clock=clock, time=lambda: now[0], seed=0)
    until = max(ends) if until is None else until
    events = [(start, 0, i) for i, start in enumerate(starts)] + [(end, 1, i) for i, end in enumerate(ends)]
    trials = {}
    for now[0], kind, i in sorted(event for event in events if event[0] <= until):
        if kind == 0:
            trials[i] = opt.suggest()
        else:
            trials[i].observe(0.5)
    now[0] = until
    opt.suggest()
    return opt


def n_warnings(opt, calls=3):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(calls):
            opt.forecast()
            opt.delays_.forecast()
    assert all(issubclass(each.category, bl.BelatedWarning) for each in caught)
    return len(caught)


def weekly(spread=0.0):
    """Return starts and ends of trials whose results are handed over once a week, in an interval of `spread` days."""
    rng = np.random.default_rng(0)
    starts = np.sort(rng.uniform(0, 56, 60))
    ends = np.ceil((starts + rng.exponential(4, 60)) / 7) * 7 + spread * rng.random(60)
    return DAY * starts, DAY * ends


@pytest.mark.parametrize("spread", [0.0, 0.02])
def test_weekly_results_give_one_warning(spread):
    opt = replay(*weekly(spread), until=57 * DAY)
    with pytest.warns(bl.BelatedWarning, match="the results came together at 8 times"):
        opt.forecast()
    assert n_warnings(opt) == 0


def test_many_trials_per_hand_over_give_one_warning():
    # All starts are closer together than a hundredth of a day.
    starts = np.linspace(0, 4 * DAY, 600, endpoint=False)
    opt = replay(starts, (np.floor(starts / DAY) + 1) * DAY)
    with pytest.warns(bl.BelatedWarning, match="the results came together at 4 times"):
        assert opt.forecast().n_pending == 1
    assert n_warnings(opt) == 0


def test_a_study_warns_once(tmp_path):
    now = [0.0]
    opt = bl.RandomSearch({"x": (0.0, 1.0)}, clock="seconds", time=lambda: now[0], seed=0)
    study = bl.Study("s", f"sqlite:///{tmp_path}/s.db", opt, time=lambda: now[0])
    for _ in range(5):
        for _ in range(3):
            now[0] += DAY
            study.suggest()
        now[0] += DAY
        for trial in study.pending:
            trial.observe(0.5)
    study.suggest()
    assert n_warnings(study) == 1


def test_few_hand_overs_do_not_warn():
    opt = replay(*weekly(), until=22 * DAY)
    assert opt.delays_.n_arrived > 8 and n_warnings(opt) == 0


def test_batches_of_equal_durations_do_not_warn():
    starts = np.repeat(np.arange(8) * 1000.0, 4)
    assert n_warnings(replay(starts, starts + 900)) == 0
    jitter = np.random.default_rng(0).uniform(0, 1, 32)
    assert n_warnings(replay(starts, starts + 900 + jitter)) == 0
    # The suggestions of a batch take a second each, and all trials of a batch end together.
    assert n_warnings(replay(starts + np.tile(np.arange(4.0), 8), starts + 900)) == 0


def test_durations_that_are_multiples_do_not_warn():
    rng = np.random.default_rng(1)
    starts = np.repeat(np.arange(12) * 600.0, 3) + rng.uniform(0, 1, 36)
    assert n_warnings(replay(starts, starts + 600 * rng.integers(1, 4, 36))) == 0


@pytest.mark.parametrize("clock", ["seconds", "iterations"])
def test_replays_in_whole_numbers_do_not_warn(clock):
    rng = np.random.default_rng(2)
    starts = np.repeat(np.arange(40.0), 2)
    assert n_warnings(replay(starts, starts + 1 + rng.poisson(5, 80), clock)) == 0


def test_results_that_are_imported_at_equal_times_do_not_warn():
    starts = np.repeat(np.arange(6) * DAY, 5)
    assert n_warnings(replay(starts, starts)) == 0
    opt = bl.RandomSearch({"x": (0.0, 1.0)}, clock="seconds", time=lambda: 0.0, seed=0)
    for _ in range(20):
        opt.add({"x": 0.5}, 1.0)
    opt.suggest(n=12)
    for trial in opt.pending[:10]:
        trial.observe(0.5)
    assert n_warnings(opt) == 0


@pytest.mark.parametrize("draw", ["exponential", "normal"])
def test_workers_whose_results_come_one_by_one_do_not_warn(draw):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        free, starts, ends = np.zeros(4), [], []
        for _ in range(80):
            worker = int(np.argmin(free))
            starts.append(free[worker] + 0.01)
            duration = rng.exponential(100) if draw == "exponential" else abs(rng.normal(100, 0.1))
            free[worker] = starts[-1] + duration
            ends.append(free[worker])
        assert n_warnings(replay(starts, ends), calls=1) == 0
