"""Gradient ascent on values: d + 1 values give a gradient, which may arrive late.

Notation: x is in the unit cube of d dimensions, and e_k are its unit vectors. δ is the step of the differences, and η
is the step of the ascent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from belated.experiments.rivals.clock import Evaluate, TimeIsUp, WaitAndAct

Array = NDArray[np.float64]


def gradient_at(values: Sequence[float], step: float) -> Array:
    """Return (1/δ)·Σ_k (f(x + δ·e_k) − f(x))·e_k from f at x, x + δ·e_1, …, x + δ·e_d (Agarwal et al. 2010)."""
    return (np.array(values[1:]) - values[0]) / step


def query_points(x: Array, step: float) -> Array:
    """Return x and x + δ·e_k, shape (d + 1, d)."""
    return np.vstack([x, x + step * np.eye(len(x))])


def ogd(evaluate: Evaluate, d: int, rng: np.random.Generator, eta: float = 0.05, step: float = 0.02) -> None:
    """Run gradient ascent with d + 1 values a step (Agarwal et al. 2010; DBGD of Li et al. 2019 without delays).

    The gradient is divided by the running root mean square of its norm, because the η of the theory assumes known
    Lipschitz constants. x is clipped so that x + δ·e_k is in the cube.
    """
    x = rng.random(d) * (1 - step)
    square, n = 0.0, 0
    while True:
        gradient = gradient_at([evaluate(point) for point in query_points(x, step)], step)
        square, n = square + float(gradient @ gradient), n + 1
        x = np.clip(x + eta * gradient / (math.sqrt(square / n) or 1.0), 0.0, 1 - step)


def dbgd(clock: WaitAndAct, d: int, rng: np.random.Generator, eta: float = 0.05, step: float = 0.02) -> None:
    """Run DBGD (Li et al. 2019, Algorithm 2). It is the same as `ogd`, but one evaluation starts in every unit of time.

    A gradient is used when its d + 1 values have arrived. x makes a step for each gradient that has arrived since the
    last slot. Only f, the delays and the noise of the clock are used.
    """
    x = rng.random(d) * (1 - step)
    square, n = 0.0, 0
    slots: list[tuple[float, list[float]]] = []  # for each slot: its last arrival, and its values
    arrivals: list[tuple[float, Array, float]] = []
    started = 0.0
    while started < clock.duration:
        first = len(arrivals)
        for point in query_points(x, step):
            value = float(clock.f(point, 1.0)) + (0.0 if clock.noise is None else clock.noise())
            arrivals.append((started + next(clock.delays), point, value))
            started += 1.0
        slots.append((max(time for time, _, _ in arrivals[first:]), [value for _, _, value in arrivals[first:]]))
        due = [each for each in slots if each[0] <= started]
        slots = [each for each in slots if each[0] > started]
        for _, values in sorted(due, key=lambda each: each[0]):
            gradient = gradient_at(values, step)
            square, n = square + float(gradient @ gradient), n + 1
            x = np.clip(x + eta * gradient / (math.sqrt(square / n) or 1.0), 0.0, 1 - step)
    for time, point, value in sorted(arrivals, key=lambda each: each[0]):
        if time <= clock.duration:
            clock.record(time, point, 1.0, value)
    raise TimeIsUp
