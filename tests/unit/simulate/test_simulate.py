"""Delay distributions agree with closed forms; the iteration clock and regrets agree with their definitions."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import belated as bl
from belated import simulate as sim

# Each entry is (distribution, a point q, P(d ≤ q) in closed form, variance).
DISTRIBUTIONS = [
    (sim.Constant(3.0), 3.0, 1.0, 0.0),
    (sim.Poisson(2.0), 1.0, 3 * math.exp(-2), 2.0),
    (sim.Geometric(4.0), 2.0, 1 - 0.75**2, 12.0),
    (sim.Uniform(0.0, 2.0), 0.5, 0.25, 1 / 3),
    (sim.HalfNormal(), 1.0, math.erf(1 / math.sqrt(math.pi)), math.pi / 2 - 1),
    (sim.Exponential(2.0), 2.0, 1 - math.exp(-1), 4.0),
    (sim.Pareto(), 1.0, 1 - 0.8**5, 1 / 15),
]
names = [type(distribution).__name__ for distribution, *_ in DISTRIBUTIONS]


class Recorder:
    """An optimizer that records at each suggestion which trials have been observed."""

    def __init__(self, direction: str = "maximize") -> None:
        self.direction, self.clock = direction, "iterations"
        self.known: list[set[int]] = []
        self.observed: dict[int, float] = {}
        self.queue: list[Any] = []

    def enqueue(self, point: Any) -> None:
        self.queue.append(point)

    def suggest(self) -> Any:
        number = len(self.known)
        self.known.append(set(self.observed))
        point = self.queue.pop(0) if self.queue else {"x": float(number)}
        return SimpleNamespace(number=number, params=point, x=None)

    def observe(self, trial: Any, value: float) -> None:
        assert trial.number not in self.observed
        self.observed[trial.number] = value


def run(delay: Any, n_trials: int = 8, direction: str = "maximize", **kwargs: Any) -> tuple[Recorder, sim.History]:
    recorder = Recorder(direction)
    return recorder, sim.simulate(recorder, lambda p: math.sin(37.0 * p["x"]), n_trials, delay, **kwargs)


@pytest.mark.parametrize(("distribution", "q", "probability", "variance"), DISTRIBUTIONS, ids=names)
def test_a_delay_distribution_has_its_mean_variance_and_distribution(distribution, q, probability, variance):
    n = 200_000
    d = distribution.sample(np.random.default_rng(0), n)
    assert d.shape == (n,)
    assert (d >= 0).all()
    assert abs(d.mean() - distribution.mean) <= 5 * math.sqrt(variance / n) + 1e-12
    assert abs(np.mean(d <= q) - probability) <= 5 * math.sqrt(probability * (1 - probability) / n) + 1e-12
    assert d.var() == pytest.approx(variance, rel=0.1)


@pytest.mark.parametrize("distribution", [distribution for distribution, *_ in DISTRIBUTIONS], ids=names)
def test_a_delay_distribution_is_reproducible_and_draws_single_delays(distribution):
    a, b = (distribution.sample(np.random.default_rng(1), 5) for _ in range(2))
    np.testing.assert_array_equal(a, b)
    assert distribution.draw(np.random.default_rng(1), None) == a[0]


def test_pareto_of_power_5_and_mean_1_starts_at_0_8():
    assert sim.Pareto().sample(np.random.default_rng(0), 10_000).min() == pytest.approx(0.8, abs=1e-3)


def test_delays_with_an_infinite_mean_have_their_distribution():
    d = sim.Pareto(math.inf, power=0.5, offset=2.0).sample(np.random.default_rng(0), 200_000)
    for t in (2.0, 8.0, 200.0, 2e6):
        probability = (2.0 / t) ** 0.5
        assert abs(np.mean(d > t) - probability) <= 5 * math.sqrt(probability * (1 - probability) / len(d))


@pytest.mark.parametrize("name, regret", [("BayesOpt", 1e-4), ("GP-UCB-SDF", 0.02)])
def test_an_optimizer_finds_the_maximum_under_delays_of_infinite_mean(name, regret):
    """A share of (1/10)^0.5 of the results has a delay above 10."""
    late, lost = sim.Pareto(math.inf, power=0.5, offset=1.0), []
    for seed in range(3):
        space = {"x": (0.0, 1.0)}
        opt = bl.BayesOpt(space, seed=seed) if name == "BayesOpt" else bl.algorithm(name, space, window=10, seed=seed)
        history = sim.simulate(opt, lambda params: -((params["x"] - 0.3) ** 2), 80, late, seed=seed)
        lost.extend(history.delays > 10)
        assert sim.simple_regret(history, 0.0)[-1] < regret
        assert opt.delays_.quantile(0.5).low < 5
    probability = 0.1**0.5
    assert abs(np.mean(lost) - probability) <= 4 * math.sqrt(probability * (1 - probability) / len(lost))


def test_the_iteration_clock_alone_is_simulated():
    optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, clock="seconds", seed=0)
    with pytest.raises(bl.errors.InvalidSetting, match="iteration clock"):
        sim.simulate(optimizer, lambda p: p["x"], 3, 1)


@given(st.lists(st.one_of(st.integers(0, 12), st.floats(0, 12), st.just(math.inf)), min_size=1, max_size=30))
def test_results_are_known_once_their_delay_has_passed(delays):
    recorder, history = run(delays, len(delays))
    for t, known in enumerate(recorder.known):
        assert known == {s for s in range(t) if delays[s] <= t - s}
    best = sim.best_converted(history, before=-2.0)
    for t in range(len(delays) + 1):
        assert best[t] == max([-2.0, *(history.values[s] for s in range(t) if delays[s] <= t - s)])


def test_results_arrive_in_the_order_of_arrival_then_number():
    recorder, _ = run([3, 2, 1, 9, 9, 9, 9, 9])
    assert list(recorder.observed) == [0, 1, 2]
    recorder, _ = run([4, 1, 1, 9, 9, 9, 9, 9])
    assert list(recorder.observed) == [1, 2, 0]


def test_initial_points_come_first_and_late():
    recorder, history = run(2, initial=[{"x": 0.25}, {"x": 0.75}])
    assert history.points[:3] == [{"x": 0.25}, {"x": 0.75}, {"x": 2.0}]
    assert recorder.known[:4] == [set(), set(), {0}, {0, 1}]


def test_a_delay_may_depend_on_the_point():
    late = sim.ByPoint(lambda point: sim.Constant(5.0) if point["x"] < 2 else point["x"])
    assert list(run(late, 5)[1].delays) == [5, 5, 2, 3, 4]


def test_noise_is_added_to_observed_values_but_not_to_the_regret():
    quiet = run(sim.Poisson(2), seed=3)
    noisy = run(sim.Poisson(2), seed=3, noise=0.5)
    np.testing.assert_array_equal(quiet[1].values, noisy[1].values)
    np.testing.assert_array_equal(quiet[1].delays, noisy[1].delays)
    for number, value in noisy[0].observed.items():
        assert value == noisy[1].observed[number] != noisy[1].values[number]


@pytest.mark.parametrize(("direction", "optimum", "sign"), [("maximize", 5.0, 1), ("minimize", -5.0, -1)])
def test_regrets_agree_with_their_definitions(direction, optimum, sign):
    history = run([2, 1, 1, 1], 4, direction)[1]
    history.values[:] = sign * np.array([1.0, 0.0, 4.0, 2.0])
    np.testing.assert_array_equal(sim.simple_regret(history, optimum, before=7.0), [7, 7, 4, 1, 1])
    np.testing.assert_array_equal(sim.cumulative_regret(history, optimum), [0, 4, 9, 10, 13])
    np.testing.assert_array_equal(sim.best_converted(history, at=[2.5, 99.0]), sign * np.array([1.0, 4.0]))


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_real_optimizer_on_candidates(direction):
    x = np.linspace(0, 1, 21).reshape(-1, 1)
    optimizer = bl.RandomSearch(candidates=x, direction=direction, seed=0)
    history = sim.simulate(optimizer, lambda row: float(row[0]), 10, sim.Poisson(2), initial=[20, 0], seed=1)
    assert [float(point[0]) for point in history.points[:2]] == [1.0, 0.0]
    best = sim.best_converted(history)
    assert best[-1] == (1.0 if direction == "maximize" else 0.0)
    observed = [trial for trial in optimizer.trials if trial.value is not None]
    assert {t.number for t in observed} == {int(s) for s in np.flatnonzero(history.arrivals < 10)}
    for trial in observed:
        assert trial.value == history.values[trial.number]
        assert trial.observed_at - trial.suggested_at == history.arrivals[trial.number] - trial.number


def test_each_trial_is_suggested_and_evaluated_in_its_context():
    contexts = [{"z": 0.1 * t} for t in range(8)]
    optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, context={"z": (0.0, 1.0)}, seed=0)
    calls: list[Any] = []

    def objective(params: Any, context: Any) -> float:
        calls.append((params, context))
        return float(context["z"] - params["x"])

    history = sim.simulate(optimizer, objective, 8, 2.0, initial=[{"x": 0.5}], contexts=contexts)
    assert [trial.context for trial in optimizer.trials] == [context for _, context in calls] == contexts
    assert [trial.params for trial in optimizer.trials] == history.points
    assert history.points[0] == {"x": 0.5}
    optimum = np.array([context["z"] for context in contexts])
    regret = sim.cumulative_regret(history, optimum)
    assert regret == pytest.approx(np.cumsum([0.0, *(point["x"] for point in history.points)]))


@pytest.mark.parametrize(
    ("contexts", "error", "what"),
    [
        ([{"z": 0.5}] * 3, bl.errors.InvalidSetting, "one for each of the 4 trials, got 3"),
        (None, bl.errors.InvalidContext, "context is missing"),
        ([{}] * 4, bl.errors.InvalidContext, r"\['z'\]"),
        ([{"z": 0.5, "age": 1.0}] * 4, bl.errors.InvalidContext, "age"),
        ([{"z": 1.5}] * 4, bl.errors.InvalidContext, r"context\['z'\]"),
    ],
)
def test_wrong_contexts_are_refused(contexts, error, what):
    optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, context={"z": (0.0, 1.0)}, seed=0)
    with pytest.raises(error, match=what):
        sim.simulate(optimizer, lambda params, context: 0.0, 4, 1.0, contexts=contexts)
    assert optimizer.n_trials == 0


def test_contexts_are_refused_if_the_optimizer_does_not_declare_them():
    optimizer = bl.RandomSearch({"x": (0.0, 1.0)})
    with pytest.raises(bl.errors.InvalidContext):
        sim.simulate(optimizer, lambda p, c: 0.0, 1, 1.0, contexts=[{"z": 0.5}])
    assert optimizer.n_trials == 0
