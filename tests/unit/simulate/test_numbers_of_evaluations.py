"""The number of evaluations in simulated time (Table 1 of Kandasamy et al. 2017), compared with renewal theory.

Notation: M is the number of workers, T is the duration, and F is the distribution function (cdf) of the evaluation
times. N(T) is the number of results that arrived by T, and cv² is the squared coefficient of variation.
"""

from __future__ import annotations

import functools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from belated import simulate as sim

# (distribution, its cdf, E[max of M], squared coefficient of variation)
LAWS = {
    "uniform": (sim.Uniform(0, 2), lambda t: np.clip(t / 2, 0, 1), lambda m: 2 * m / (m + 1), 1 / 3),
    "half-normal": (sim.HalfNormal(), np.vectorize(lambda t: math.erf(t / math.sqrt(math.pi))), None, math.pi / 2 - 1),
    "exponential": (sim.Exponential(), lambda t: -np.expm1(-t), lambda m: sum(1 / i for i in range(1, m + 1)), 1.0),
}
PARETO = (sim.Pareto(), lambda t: 1 - (np.maximum(t, 0.8) / 0.8) ** -5.0, None, 1 / 15)
T = 30.0


@functools.cache
def renewal(cdf, workers, duration=T, n=3000):
    """Return the expected number of evaluations that M synchronous workers finish in a duration, including evaluations
    of unfinished batches.

    A batch starts at each renewal of G(t) = F(t)^M. The expected number of renewals solves
    U(t) = 1 + ∫ U(t − s) dG(s). A batch that starts at s finishes M·F(T − s) evaluations by T on average, so
    E[N(T)] = M ∫ F(T − s) dU(s).
    """
    h = duration / n
    steps = np.diff(cdf(np.arange(n + 1) * h) ** workers)
    u = np.ones(n + 1)
    for i in range(1, n + 1):
        # U in the middle of a step is approximated by the mean of U at its ends, of which one is the unknown U(t) in
        # the first step.
        middles = 0.5 * (u[1:i] + u[: i - 1])[::-1]
        u[i] = (1 + 0.5 * steps[0] * u[i - 1] + middles @ steps[1:i]) / (1 - 0.5 * steps[0])
    # The first batch starts at 0; all later batches are assumed to start in the middle of a step of U.
    finished = cdf(duration - (np.arange(n) + 0.5) * h)
    return workers * float(cdf(np.array([duration]))[0] + finished @ np.diff(u))


class Idle:
    """An optimizer whose suggestions take almost no time."""

    def suggest(self, n=None):
        trial = SimpleNamespace(params=None, x=None)
        return trial if n is None else [trial] * n

    def observe(self, trial, value):
        pass


def evaluations(law, workers, mode):
    """Return the mean of N(T) over runs and its standard error."""
    n_runs = {1: 400, 4: 200, 12: 100, 30: 60}[workers]
    counts = []
    for seed in range(n_runs):
        history = sim.simulate_workers(
            Idle(), lambda p: 0.0, workers=workers, times=law, duration=T, mode=mode, seed=seed
        )
        counts.append(sim.n_converted(history, at=T))
    return np.mean(counts), np.std(counts, ddof=1) / math.sqrt(n_runs)


@pytest.mark.parametrize("workers", [1, 4, 12, 30])
@pytest.mark.parametrize("name", [*LAWS, "pareto"])
def test_asynchronous_workers_finish_as_many_evaluations_as_renewal_theory_predicts(name, workers):
    """E[N(T)] = M·(T/θ + (cv² − 1)/2), θ = 1, by the elementary renewal theorem's second term."""
    law, cdf, _, cv2 = LAWS.get(name, PARETO)
    expected = workers * (T + (cv2 - 1) / 2)
    assert renewal(cdf, 1) * workers == pytest.approx(expected, rel=1e-3)
    mean, error = evaluations(law, workers, "sequential" if workers == 1 else "asynchronous")
    assert abs(mean - expected) <= 3 * error


@pytest.mark.parametrize("workers", [1, 4, 12, 30])
@pytest.mark.parametrize("name", LAWS)
def test_synchronous_workers_follow_the_renewal_equation(name, workers):
    law, cdf, _, _ = LAWS[name]
    mean, error = evaluations(law, workers, "synchronous")
    assert abs(mean - renewal(cdf, workers)) <= 3 * error


def test_the_renewal_equation_gives_the_known_numbers():
    """The expected numbers were computed by another simulation, with M = 8 and T = 30."""
    assert renewal(LAWS["uniform"][1], 8) == pytest.approx(134.7, abs=0.2)
    assert renewal(LAWS["exponential"][1], 8) == pytest.approx(90.2, abs=0.2)


@pytest.mark.parametrize("workers", [4, 12, 30])
@pytest.mark.parametrize("name", LAWS)
def test_a_synchronous_batch_takes_the_longest_of_m_times(name, workers):
    """E[max] = ∫ 1 − F(t)^M dt, for which Table 1 has closed forms for the uniform and the exponential."""
    law, cdf, closed_form, _ = LAWS[name]
    t = np.linspace(0, 60, 60_001)
    longest = np.sum(1 - cdf(t) ** workers) * t[1] - 0.5 * t[1]
    if closed_form is not None:
        assert longest == pytest.approx(closed_form(workers), rel=1e-6)
    history = sim.simulate_workers(
        Idle(), lambda p: 0.0, workers=workers, times=law, n_trials=200 * workers, mode="synchronous"
    )
    lasted = np.diff(np.unique(history.started))
    assert len(lasted) == 199
    assert abs(lasted.mean() - longest) <= 3 * lasted.std(ddof=1) / math.sqrt(199)
