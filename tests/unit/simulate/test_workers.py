"""Workers in simulated time: the queue of events agrees with a direct definition; further tests check modes, regret and
errors."""

from __future__ import annotations

import heapq
import math
import pickle
import re
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import belated as bl
from belated import simulate as sim

BOX = {"x": (-1.0, 1.0), "y": (0.0, 1.0)}
CANDIDATES = np.linspace(-1.0, 1.0, 41).reshape(-1, 1)
MODES = ["asynchronous", "synchronous", "sequential"]


class Recorder:
    """An optimizer that records the size of each batch, and which trials have been observed at each suggestion."""

    clock = "iterations"

    def __init__(self):
        self.known, self.batches, self.observed, self.queue = [], [], {}, []

    def enqueue(self, point):
        self.queue.append(point)

    def suggest(self, n=None):
        self.batches.append(1 if n is None else n)
        trials = []
        for _ in range(self.batches[-1]):
            number = len(self.known)
            self.known.append(set(self.observed))
            point = self.queue.pop(0) if self.queue else {"x": float(number)}
            trials.append(SimpleNamespace(number=number, params=point, x=None))
        return trials[0] if n is None else trials

    def observe(self, trial, value):
        assert trial.number not in self.observed
        self.observed[trial.number] = value


def run(times=1.0, workers=2, **kwargs):
    recorder = Recorder()
    if "duration" not in kwargs:
        kwargs = {"n_trials": 8} | kwargs
    history = sim.simulate_workers(recorder, lambda p: math.sin(37.0 * p["x"]), workers=workers, times=times, **kwargs)
    return recorder, history


# The event queue.


def batches(times, size):
    """Split times into groups of a given size; the last group may be smaller."""
    return [times[i : i + size] for i in range(0, len(times), size)]


def starts(times, workers, mode):
    """Return the start of each trial. A trial starts when all workers are free in the synchronous mode, and when one
    worker is free in other modes."""
    free, started = [0.0] * workers, []
    for batch in batches(times, workers if mode == "synchronous" else 1):
        now = max(free) if mode == "synchronous" else heapq.heappop(free)
        started += [now] * len(batch)
        if mode == "synchronous":
            free = [now + time for time in batch]
        else:
            heapq.heappush(free, now + batch[0])
    return np.array(started)


evaluation_times = st.lists(
    st.one_of(st.integers(0, 3).map(float), st.floats(0.0, 5.0, allow_subnormal=False)), min_size=1, max_size=25
)


@given(evaluation_times, st.integers(1, 5), st.sampled_from(MODES[:2]), st.one_of(st.none(), st.floats(0.1, 20.0)))
def test_workers_start_when_they_are_free_and_know_what_has_arrived(times, workers, mode, duration):
    recorder, history = run(times, workers, mode=mode, n_trials=len(times), duration=duration)
    end = math.inf if duration is None else duration
    expected = starts(times, workers, mode)
    n = int(np.sum(expected < end))
    np.testing.assert_array_equal(history.started, expected[:n])
    np.testing.assert_array_equal(history.delays, times[:n])
    np.testing.assert_array_equal(history.arrivals, expected[:n] + times[:n])
    assert history.clock == "seconds" and len(history) == n == len(history.points)
    for k in range(n):
        first = k - k % workers if mode == "synchronous" else k  # the number of the first trial of the same batch
        assert recorder.known[k] == {s for s in range(first) if history.arrivals[s] <= history.started[k]}
    arrived = [s for s in range(n) if history.arrivals[s] <= end]
    assert list(recorder.observed) == sorted(arrived, key=lambda s: (history.arrivals[s], s))


def test_batches_are_suggested_together_and_the_last_may_be_smaller():
    assert run(workers=3, mode="synchronous")[0].batches == [3, 3, 2]
    assert run(workers=3)[0].batches == [1] * 8
    assert run(workers=99, mode="synchronous")[0].batches == [8]


def test_at_the_end_of_the_duration_results_count_but_trials_do_not_start():
    recorder, history = run(1.0, workers=2, duration=3.0)
    np.testing.assert_array_equal(history.started, [0, 0, 1, 1, 2, 2])
    assert len(recorder.observed) == 6
    recorder, history = run(1.0, workers=2, duration=2.5)
    assert len(history) == 6 and set(recorder.observed) == {0, 1, 2, 3}
    np.testing.assert_array_equal(sim.n_converted(history, at=[0.0, 0.9, 1.0, 2.5, 3.0]), [0, 0, 2, 4, 6])


def test_the_first_limit_that_is_reached_ends_the_run():
    assert len(run(1.0, workers=2, duration=3.0, n_trials=4)[1]) == 4
    assert len(run(1.0, workers=2, duration=3.0, n_trials=40)[1]) == 6


def test_initial_points_come_first_and_take_their_time():
    recorder, history = run(1.0, workers=2, initial=[{"x": 0.25}, {"x": 0.5}, {"x": 0.75}])
    assert history.points[:4] == [{"x": 0.25}, {"x": 0.5}, {"x": 0.75}, {"x": 3.0}]
    assert recorder.known[:3] == [set(), set(), {0, 1}]


@pytest.mark.parametrize("wrapped", [True, False])
def test_times_may_depend_on_the_point(wrapped):
    def slower(point):
        return sim.Constant(4.0) if point["x"] < 1 else point["x"]

    _, history = run(sim.ByPoint(slower) if wrapped else slower, workers=2, n_trials=4)
    np.testing.assert_array_equal(history.delays, [4, 1, 2, 3])
    np.testing.assert_array_equal(history.started, [0, 0, 1, 3])
    assert list(sim.simulate(Recorder(), lambda p: 0.0, 4, slower).delays) == [4, 1, 2, 3]


# Randomness.


def test_times_and_noise_do_not_depend_on_the_mode():
    runs = {
        (mode, noise): run(
            sim.HalfNormal(), 1 if mode == "sequential" else 4, mode=mode, noise=noise, n_trials=600, seed=5
        )
        for mode in MODES
        for noise in (0.0, 0.5)
    }
    _, reference = runs["sequential", 0.5]
    for (_, noise), (recorder, history) in runs.items():
        np.testing.assert_array_equal(history.delays, reference.delays)
        errors = reference.observed - reference.values if noise else 0.0
        np.testing.assert_allclose(history.observed - history.values, errors, atol=1e-12)
        assert all(recorder.observed[k] == observed for k, observed in enumerate(history.observed))
    assert 0.45 < np.std(reference.observed - reference.values) < 0.55


def test_times_and_noise_equal_those_on_the_iteration_clock():
    _, history = run(sim.Pareto(), workers=3, noise=0.3, n_trials=300, seed=2)
    iterations = sim.simulate(Recorder(), lambda p: math.sin(37.0 * p["x"]), 300, sim.Pareto(), noise=0.3, seed=2)
    np.testing.assert_array_equal(history.delays, iterations.delays)
    np.testing.assert_array_equal(history.observed, iterations.observed)


def test_a_seed_determines_a_run():
    def once(seed):
        opt = bl.BayesOpt(BOX, initial=4, surrogate=bl.GP(n_restarts=1), seed=1)
        return sim.simulate_workers(opt, bowl, workers=3, times=sim.Exponential(), duration=4, noise=0.1, seed=seed)

    one, again, other = once(0), once(0), once(1)
    assert one.points == again.points and one.points != other.points
    for name in ("values", "observed", "delays", "started", "arrivals"):
        np.testing.assert_array_equal(getattr(one, name), getattr(again, name))


# Comparisons of the modes.


def bowl(point):
    if isinstance(point, dict):
        return -((point["x"] - 0.3) ** 2) - (point["y"] - 0.6) ** 2
    return -float((point[0] - 0.3) ** 2)


def optimizers(clock, time=None):
    """Optimizers that differ in their pending policies and clocks."""
    common = {"clock": clock, "time": time, "seed": 3}
    quick = {"surrogate": bl.GP(n_restarts=1, refit_every=4), "initial": 4} | common
    named = {"surrogate__lengthscale": 0.5, "surrogate__noise_std": 0.1, "initial": 4} | common
    return {
        "random": bl.RandomSearch(BOX, **common),
        "integrate": bl.BayesOpt(BOX, **quick),
        "minimize": bl.BayesOpt(BOX, direction="minimize", **quick),
        "GP-BUCB": bl.algorithm("GP-BUCB", BOX, **named),
        "asy-TS": bl.algorithm("asy-TS", BOX, **named),
        "GP-UCB-SDF": bl.algorithm("GP-UCB-SDF", BOX, window=1.5 if clock == "seconds" else 5, **named),
        "candidates": bl.BayesOpt(candidates=CANDIDATES, **quick),
    }


each_optimizer = pytest.mark.parametrize("name", optimizers("iterations"))
each_clock = pytest.mark.parametrize("clock", ["iterations", "seconds"])


def by_hand(name, clock, times, workers):
    """Return the points of a run that suggests each batch after the last result of the previous batch."""
    now = 0.0
    opt = optimizers(clock, (lambda: now) if clock == "seconds" else None)[name]
    points = []
    for batch in batches(times, workers):
        start = now
        trials = opt.suggest(n=len(batch))
        points += [trial.params if trial.x is None else trial.x for trial in trials]
        for time, trial in sorted(zip(batch, trials, strict=True), key=lambda pair: (pair[0], pair[1].number)):
            now = start + time
            opt.observe(trial, bowl(trial.params if trial.x is None else trial.x))
    return points


def in_workers(name, clock, times, **kwargs):
    opt = optimizers(clock)[name]
    return sim.simulate_workers(opt, bowl, times=times, n_trials=len(times), **kwargs).points


@each_clock
@each_optimizer
def test_one_worker_is_the_same_in_all_modes(name, clock):
    times = [0.5, 2.0, 1.0, 0.7, 1.2, 0.4, 2.2]
    sequential, synchronous, asynchronous = (
        in_workers(name, clock, times, workers=1, mode=mode) for mode in MODES[::-1]
    )
    np.testing.assert_equal(sequential, synchronous)
    np.testing.assert_equal(sequential, asynchronous)
    np.testing.assert_equal(sequential, by_hand(name, clock, times, 1))


@each_clock
@each_optimizer
def test_results_that_arrive_together_give_batches_of_suggest_n(name, clock):
    times = [1.0] * 11
    np.testing.assert_equal(
        in_workers(name, clock, times, workers=3, mode="asynchronous"), by_hand(name, clock, times, 3)
    )


@each_clock
@each_optimizer
def test_results_that_arrive_one_by_one_give_batches_of_suggest_n(name, clock):
    times = [0.5, 2.0, 1.0, 0.7, 1.2, 0.4, 2.2, 1.1, 0.3, 1.0]
    np.testing.assert_equal(
        in_workers(name, clock, times, workers=3, mode="synchronous"), by_hand(name, clock, times, 3)
    )


@each_optimizer
def test_batches_on_the_iteration_clock_equal_suggest_n(name):
    delays = [3.0, 2.0, 1.0] * 4  # when the next batch begins, all results of the previous batch are known
    history = sim.simulate(optimizers("iterations")[name], bowl, 12, delays)
    np.testing.assert_equal(history.points, by_hand(name, "iterations", [1.0] * 12, 3))


# Simulated time.


@pytest.mark.parametrize("mode", MODES[:2])
def test_an_optimizer_in_seconds_reads_simulated_time(mode):
    opt = bl.RandomSearch(BOX, clock="seconds", seed=0)
    history = sim.simulate_workers(opt, bowl, workers=3, times=sim.Uniform(), duration=7.25, mode=mode, seed=4)
    assert opt.n_trials == len(history)
    for k, trial in enumerate(opt.trials):
        assert trial.params == history.points[k] and trial.suggested_at == history.started[k]
        if history.arrivals[k] <= 7.25:
            assert trial.value == history.observed[k] and trial.observed_at == history.arrivals[k]
        else:
            assert trial.state == "pending"
    copy = pickle.loads(pickle.dumps(opt))
    assert copy.suggest().suggested_at == opt.suggest().suggested_at == 7.25


def test_a_run_ends_with_its_last_result_or_its_duration():
    for limits, end in (({"n_trials": 4}, 5.0), ({"n_trials": 4, "duration": 9.0}, 5.0), ({"duration": 3.5}, 3.5)):
        opt = bl.RandomSearch(BOX, clock="seconds", seed=0)
        sim.simulate_workers(opt, bowl, workers=2, times=2.5, **limits)
        assert opt.suggest().suggested_at == end


def test_windows_are_in_simulated_seconds():
    """GP-UCB-SDF discards results that arrive after its window, so its suggestions do not depend on these results."""

    def points(values, window):
        named = {"surrogate__lengthscale": 0.5, "surrogate__noise_std": 0.1, "initial": 2, "seed": 0}
        opt = bl.algorithm("GP-UCB-SDF", BOX, window=window, clock="seconds", **named)
        results = iter(values)
        times = [1.0, 2.0, 1.0, 1.0, 1.0, 1.0]
        return sim.simulate_workers(opt, lambda p: next(results), workers=2, times=times, n_trials=6).points

    values = [0.1, 0.2, 0.4, 0.3, 0.6, 0.5]
    changed = [0.1, 0.9, 0.4, 0.3, 0.6, 0.5]  # the second result, which takes two seconds, is different
    assert points(values, 1.5) == points(changed, 1.5)
    assert points(values, 2.0) != points(changed, 2.0)


# The next tests check the regret as a function of simulated time.


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_regret_counts_the_results_that_have_arrived(direction):
    opt = bl.RandomSearch({"x": (-1.0, 1.0)}, direction=direction, seed=2)
    sign = 1.0 if direction == "maximize" else -1.0
    history = sim.simulate_workers(opt, lambda p: sign * p["x"], workers=3, times=sim.Pareto(), duration=9.0, noise=0.4)
    at = np.linspace(0.0, 9.0, 40)
    regret = sim.simple_regret(history, sign, at=at, before=2.0)
    for time, value in zip(at, regret, strict=True):
        known = [
            abs(1 - sign * v) for v, arrival in zip(history.values, history.arrivals, strict=True) if arrival <= time
        ]
        assert value == pytest.approx(min(known, default=2.0))
    assert regret[0] == 2.0 and np.all(np.diff(regret) <= 0) and regret[-1] < 2.0


def test_times_of_simulated_seconds_must_be_given():
    _, history = run()
    for read in (sim.best_converted, sim.n_converted, lambda history: sim.simple_regret(history, 1.0)):
        with pytest.raises(bl.errors.InvalidSetting, match="at is missing: pass the simulated times"):
            read(history)


# Errors.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"workers": 0}, "workers=0 is not usable: pass an integer >= 1"),
        ({"workers": -3}, "workers=-3 is not usable"),
        ({"workers": 2.5}, "workers=2.5 is not usable"),
        ({"workers": True}, "workers=True is not usable"),
        ({"workers": None}, "workers=None is not usable"),
        ({"n_trials": 0}, "n_trials=0 is not usable: pass an integer >= 1"),
        ({"n_trials": None}, "neither duration nor n_trials is given"),
        ({"duration": 0.0}, "duration=0.0 is not usable: pass a finite number > 0"),
        ({"duration": -1.0}, "duration=-1.0 is not usable"),
        ({"duration": math.nan}, "duration=nan is not usable"),
        ({"duration": math.inf}, "duration=inf is not usable"),
        ({"duration": "long"}, "duration='long' is not usable"),
        ({"noise": -0.1}, "noise=-0.1 is not usable: pass a finite number >= 0"),
        ({"noise": math.nan}, "noise=nan is not usable"),
        (
            {"mode": "parallel"},
            "mode='parallel' is not usable: pass one of ['asynchronous', 'synchronous', 'sequential']",
        ),
        ({"mode": "sequential"}, "mode='sequential' is one worker, got workers=2"),
        ({"times": -1.0}, "times must be numbers ≥ 0, got -1.0"),
        ({"times": math.nan}, "times must be numbers ≥ 0, got nan"),
        ({"times": None}, "times must be numbers ≥ 0, got nan"),
        (
            {"times": "slow"},
            "times='slow' is not usable: pass a DelayDistribution, a function of the point, or numbers",
        ),
        ({"times": [1.0, -2.0, 3.0, 1.0]}, "times must be numbers ≥ 0, got -2.0"),
        ({"times": [1.0, 2.0]}, "times must hold one number for each of the 4 trials, got shape (2,)"),
        (
            {"times": [1.0, 2.0], "n_trials": None, "duration": 3.0},
            "times holds a number for each trial: pass n_trials",
        ),
        ({"times": math.inf}, "times gave inf for trial 0: an evaluation takes a finite time ≥ 0"),
        ({"times": [1.0, 1.0, math.inf, 1.0]}, "times gave inf for trial 2"),
        ({"times": 0.0, "n_trials": None, "duration": 3.0}, "times gave 0.0 for trial 0, so that the run might never"),
    ],
)
def test_unusable_arguments_are_refused_and_change_nothing(arguments, message):
    opt = bl.RandomSearch(BOX, clock="seconds", seed=0)
    with pytest.raises(bl.errors.InvalidSetting, match=re.escape(message)):
        sim.simulate_workers(
            opt, bowl, initial=[{"x": 0.0, "y": 0.0}], **({"workers": 2, "times": 1.0, "n_trials": 4} | arguments)
        )
    assert opt.n_trials == 0 and opt.time is None
    assert opt.suggest().params == bl.RandomSearch(BOX, seed=0).suggest().params


class Broken(sim.DelayDistribution):
    """A distribution of times whose third draw is the given value."""

    mean = 1.0

    def __init__(self, bad):
        self.bad = bad

    def sample(self, rng, size=None):
        return np.where(np.arange(1 if size is None else size) == 2, self.bad, 1.0)


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
@pytest.mark.parametrize("by_point", [True, False])
def test_an_unusable_time_ends_the_run_with_an_error(bad, by_point):
    times = (lambda p: bad if p["x"] == 2 else 1.0) if by_point else Broken(bad)
    message = f"for trial 2: an evaluation takes a finite time|must be numbers ≥ 0, got {bad}"
    with pytest.raises(bl.errors.InvalidSetting, match=message):
        run(times)


def test_times_that_may_be_0_need_a_number_of_trials():
    with pytest.raises(bl.errors.InvalidSetting, match="times gave 0.0 for trial 2, so that the run might never"):
        run(Broken(0.0), duration=9.0)
    assert list(run(Broken(0.0), duration=9.0, n_trials=4)[1].started) == [0, 0, 1, 1]


def test_a_list_of_times_that_ends_before_the_run_is_refused():
    with pytest.raises(bl.errors.InvalidSetting, match="times lists 3 numbers, and more trials start"):
        run(sim.Listed((1.0, 1.0, 1.0)), duration=9.0)
    assert len(run(sim.Listed((1.0, 1.0, 1.0)), n_trials=3)[1]) == 3


def test_an_optimizer_in_seconds_must_be_a_new_optimizer(tmp_path):
    used = bl.RandomSearch(BOX, clock="seconds", seed=0)
    used.suggest()
    waiting = bl.RandomSearch(BOX, clock="seconds", seed=0)
    waiting.enqueue({"x": 0.0, "y": 0.0})
    for opt in (used, waiting):
        with pytest.raises(bl.errors.InvalidSetting, match="must be new to read simulated time"):
            sim.simulate_workers(opt, bowl, workers=1, times=1.0, n_trials=2)
    assert used.time is None and used.n_trials == 1
    study = bl.Study("s", f"sqlite:///{tmp_path}/s.db", bl.RandomSearch(BOX, clock="seconds", seed=0))
    with pytest.raises(bl.errors.InvalidSetting, match="a Study with clock='seconds' cannot read simulated time"):
        sim.simulate_workers(study, bowl, workers=1, times=1.0, n_trials=2)
