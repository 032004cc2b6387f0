"""The arguments that `simulate` and the delay distributions accept, and the data that `simulate` records."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest

import belated as bl
from belated import simulate as sim

EVERY = [
    sim.Constant(3.0),
    sim.Listed((1.0, 2.0, 6.0)),
    sim.Poisson(2.0),
    sim.Geometric(4.0),
    sim.Uniform(0.5, 1.5),
    sim.HalfNormal(0.5),
    sim.Exponential(0.5),
    sim.Pareto(0.5, 1.5),
    sim.Pareto(math.inf, 0.5, 1.0),
    sim.ByPoint(abs, mean=2.0),
]


@pytest.mark.parametrize("distribution", EVERY, ids=lambda each: type(each).__name__)
def test_distributions_are_frozen_and_hashable(distribution):
    for field in dataclasses.fields(distribution):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(distribution, field.name, 9.0)
    assert {distribution: 1}[dataclasses.replace(distribution)] == 1


@pytest.mark.parametrize("distribution", EVERY[:-1], ids=lambda each: type(each).__name__)
def test_delays_are_floats_for_one_draw_and_for_many(distribution):
    rng = np.random.default_rng(0)
    assert distribution.sample(rng, 3).dtype == np.float64
    if not isinstance(distribution, sim.Listed):
        assert np.ndim(distribution.sample(rng)) == 0
        assert type(distribution.draw(rng, None)) is float


def test_listed_delays_come_in_their_order():
    listed = sim.Listed((1.0, 2.0, 6.0))
    assert listed.mean == 3.0
    assert list(listed.sample(np.random.default_rng(0))) == [1.0, 2.0, 6.0]
    assert list(listed.sample(np.random.default_rng(0), 2)) == [1.0, 2.0]


def test_the_smallest_means_are_constants():
    rng = np.random.default_rng(0)
    assert not sim.Constant(0.0).sample(rng, 5).any()
    assert not sim.Poisson(0.0).sample(rng, 5).any()
    assert (sim.Geometric(1.0).sample(rng, 5) == 1.0).all()
    assert (sim.Uniform(1.5, 1.5).sample(rng, 5) == 1.5).all()
    assert sim.Constant(math.inf).sample(rng) == math.inf  # a result that never arrives


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sim.Constant(-0.5), "Constant(mean=-0.5): the delay must be ≥ 0"),
        (lambda: sim.Constant(math.nan), "the delay must be ≥ 0"),
        (lambda: sim.Poisson(-0.5), "Poisson(mean=-0.5): the mean must be a finite number ≥ 0"),
        (lambda: sim.Poisson(math.nan), "the mean must be a finite number ≥ 0"),
        (lambda: sim.Geometric(0.99), "Geometric(mean=0.99): the mean must be a finite number ≥ 1"),
        (lambda: sim.Geometric(math.inf), "the mean must be a finite number ≥ 1"),
        (lambda: sim.Uniform(2.0, 1.0), "Uniform(low=2.0, high=1.0): needs 0 ≤ low ≤ high"),
        (lambda: sim.Uniform(-0.5, 1.0), "needs 0 ≤ low ≤ high"),
        (lambda: sim.Uniform(0.0, math.inf), "needs 0 ≤ low ≤ high"),
        (lambda: sim.HalfNormal(0.0), "HalfNormal(mean=0.0): the mean must be a finite number > 0"),
        (lambda: sim.HalfNormal(math.inf), "the mean must be a finite number > 0"),
        (lambda: sim.Exponential(0.0), "Exponential(mean=0.0): the mean must be a finite number > 0"),
        (lambda: sim.Exponential(math.inf), "the mean must be a finite number > 0"),
        (lambda: sim.Pareto(0.0), "Pareto(mean=0.0, power=5.0): the mean must be a finite number > 0"),
        (lambda: sim.Pareto(math.inf), "a power > 1 has a finite mean: give the mean"),
        (lambda: sim.Pareto(1.0, 1.0), "a power ≤ 1 has an infinite mean: give mean=math.inf and offset"),
        (lambda: sim.Pareto(1.0, math.inf), "the power must be a finite number > 0"),
        (lambda: sim.Pareto(1.0, 0.0), "the power must be a finite number > 0"),
        (lambda: sim.Pareto(math.inf, 0.5), "Pareto(mean=inf, power=0.5): an infinite mean needs offset"),
        (lambda: sim.Pareto(math.inf, 0.5, 0.0), "an infinite mean needs offset"),
        (lambda: sim.Pareto(1.0, 5.0, 0.8), "the mean determines the offset: leave it out"),
    ],
)
def test_unusable_distributions_are_refused_by_their_arguments(make, message):
    with pytest.raises(bl.errors.InvalidSetting, match=re.escape(message)):
        make()


class Plain:
    """An optimizer that does not have a clock, a direction or a queue."""

    def __init__(self):
        self.n, self.observed = 0, {}

    def suggest(self):
        self.n += 1
        return SimpleNamespace(number=self.n - 1, params={"x": float(self.n - 1)}, x=None)

    def observe(self, trial, value):
        self.observed[trial.number] = value


def run(delay, n_trials=4, **kwargs):
    return sim.simulate(Plain(), lambda params: params["x"], n_trials, delay, **kwargs)


@pytest.mark.parametrize(
    ("delay", "message"),
    [
        ([1.0, -2.0, 3.0, -4.0], "delays must be numbers ≥ 0, got -2.0"),
        ([1.0, math.nan, 3.0, 4.0], "delays must be numbers ≥ 0, got nan"),
        (sim.ByPoint(lambda params: None), "delays must be numbers ≥ 0, got nan"),
        ([1.0, 2.0], "delay must hold one number for each of the 4 trials, got shape (2,)"),
        ([[1.0], [2.0], [3.0], [4.0]], "delay must hold one number for each of the 4 trials, got shape (4, 1)"),
    ],
)
def test_the_first_unusable_delay_is_named(delay, message):
    with pytest.raises(bl.errors.InvalidSetting, match=re.escape(message)):
        run(delay)


def test_a_delay_by_point_needs_a_point():
    by_point = sim.ByPoint(abs)
    assert math.isnan(by_point.mean) and by_point.draw(np.random.default_rng(0), -3) == 3.0
    with pytest.raises(bl.errors.InvalidSetting, match=re.escape("use draw(rng, point)")):
        by_point.sample(np.random.default_rng(0), 2)


def test_an_optimizer_without_clock_and_direction_maximizes_on_the_iteration_clock():
    history = run(2)
    assert history.direction == "maximize" and len(history) == 4
    np.testing.assert_array_equal(history.started, [0.0, 1.0, 2.0, 3.0])
    np.testing.assert_array_equal(history.arrivals, [2.0, 3.0, 4.0, 5.0])
    for times in (history.started, history.arrivals, history.delays):
        assert times.dtype == np.float64


def test_the_noise_is_a_standard_deviation():
    n = 20_000
    errors = {noise: (history := run(1, n, noise=noise, seed=5)).observed - history.values for noise in (0.25, 1.0)}
    np.testing.assert_allclose(errors[0.25], 0.25 * errors[1.0], rtol=1e-9, atol=1e-9)
    assert abs(errors[1.0].mean()) <= 5 / math.sqrt(n)
    assert abs(errors[1.0].std() - 1.0) <= 5 / math.sqrt(2 * n)
    np.testing.assert_array_equal(run(1, noise=1.0).observed, run(1, noise=1.0, seed=0).observed)
    assert not np.array_equal(run(1, noise=1.0).observed, run(1, noise=1.0, seed=1).observed)


def test_the_seconds_are_those_of_each_suggestion(monkeypatch):
    # The k-th call of the clock returns k². Suggestion t is made between the calls 2t and 2t + 1.
    readings = itertools.count()
    monkeypatch.setattr("belated.simulate.iteration_clock.perf_counter", lambda: next(readings) ** 2)
    np.testing.assert_array_equal(run(1).seconds, [1.0, 5.0, 9.0, 13.0])


def test_arrivals_are_whole_steps_and_the_first_is_one():
    np.testing.assert_array_equal(sim.arrival_steps([0.0, 0.5, 1.0, 1.5, math.inf]), [1.0, 2.0, 3.0, 5.0, math.inf])
    assert sim.arrival_steps([0, 3]).dtype == np.float64


def test_results_in_flight_arrive_once_in_order():
    in_flight = sim.InFlight()
    for arrival, number in [(3.0, 0), (1.0, 1), (3.0, 2), (2.0, 3)]:
        in_flight.put(arrival, number, f"result {number}")
    assert list(in_flight.due(0.5)) == []
    assert list(in_flight.due(2.0)) == ["result 1", "result 3"]
    assert list(in_flight.due(9.0)) == ["result 0", "result 2"]
    assert list(in_flight.due(9.0)) == []


def test_regret_takes_times_and_a_longest_delay():
    history = run([1.0, 3.0, 1.0, 1.0])
    history.values[:] = [0.0, 9.0, 1.0, 2.0]  # arrivals 1, 4, 3, 4
    np.testing.assert_array_equal(sim.simple_regret(history, 10.0, at=[0.5, 3.5, 4.0], before=7.0), [7.0, 9.0, 1.0])
    np.testing.assert_array_equal(sim.simple_regret(history, 10.0, longest=2.0), [math.nan, 10.0, 10.0, 9.0, 8.0])
    np.testing.assert_array_equal(sim.best_converted(history, before=-1.0)[:2], [-1.0, 0.0])
