"""Algorithms with which Wang et al. 2022 compare PCTS, in simulated time: gradient ascent, and rejection of cells.

An algorithm is a function that requests values until the time is over. The function takes ``evaluate(x, z)``, d and a
random generator. The function does not return: an exception in ``evaluate`` ends it. `belated.replays.rivals_bayesian`
contains the algorithms with a model.

Notation: x is in the unit cube of d dimensions, and z is a fidelity in [0, 1]. e_k are the unit vectors. δ is the step
of the finite differences, and η is the step of the ascent. All algorithms maximise.
"""

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from belated.replays.reference_tree import Cell, centre, halved, longest_side
from belated.replays.report import Array


class TimeIsUp(Exception):
    """Raised if a value would arrive after the end of the run."""


@dataclass
class WaitAndAct:
    """Evaluations for algorithms without delayed feedback. Each evaluation starts when the last result has arrived.

    Parameters
    ----------
    f : callable
        f(x, z) on the unit cube.
    delays : iterator
        The delay of each value.
    duration : float
        The duration of a run. A value that would arrive later raises `TimeIsUp`.
    noise : callable, optional
        A function that draws the noise of a value.
    """

    f: Callable[[Array, float], float]
    delays: Iterator[float]
    duration: float
    noise: Callable[[], float] | None = None
    now: float = 0.0
    times: list[float] = field(default_factory=list)
    points: list[Array] = field(default_factory=list)
    fidelities: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    chosen: dict[int, Array] = field(default_factory=dict)

    def __call__(self, x: Array, z: float = 1.0) -> float:
        arrival = self.now + next(self.delays)
        if arrival > self.duration:
            raise TimeIsUp
        value = float(self.f(x, z)) + (0.0 if self.noise is None else self.noise())
        self.now = arrival
        self.record(arrival, x, z, value)
        return value

    def record(self, time: float, x: Array, z: float, value: float) -> None:
        """Record a value that has arrived."""
        self.times.append(time)
        self.points.append(np.array(x, dtype=float))
        self.fidelities.append(float(z))
        self.values.append(value)

    def recommend(self, x: Array) -> None:
        """Record the point that an algorithm with a model recommends after the values so far."""
        self.chosen[len(self.values) - 1] = np.array(x, dtype=float)

    def recommendations(self) -> list[Array]:
        """For each value, return the last recommended point or, without a recommendation, the best point at the highest
        fidelity."""
        found: list[Array] = []
        best, highest = -math.inf, -math.inf
        for i, (x, z, value) in enumerate(zip(self.points, self.fidelities, self.values, strict=True)):
            better = not self.chosen and (z > highest or (z == highest and value > best))
            if better:
                best, highest = value, z
            found.append(self.chosen[i] if i in self.chosen else x if better or not found else found[-1])
        return found


def wait_and_act(rival: Callable[..., None], evaluate: WaitAndAct, *arguments: Any, **settings: Any) -> WaitAndAct:
    """Run a rival until the time is over."""
    with suppress(TimeIsUp):
        rival(evaluate, *arguments, **settings)
    return evaluate


@dataclass
class Batches:
    """Workers that evaluate many points in parallel. The caller waits for all evaluations."""

    f: Callable[[Array, float], float]
    delays: Iterator[float]
    duration: float
    workers: int = 1
    noise: Callable[[], float] | None = None
    now: float = 0.0
    n: int = 0

    def __call__(self, points: Sequence[Array]) -> list[float]:
        free = [self.now] * self.workers
        for _ in points:
            # The next free worker takes the point. At the end of the run the loop stops without drawing further delays.
            heapq.heapreplace(free, free[0] + next(self.delays))
            if max(free) > self.duration:
                raise TimeIsUp
        self.now, self.n = max(free), self.n + len(points)
        return [float(self.f(x, 1.0)) + (0.0 if self.noise is None else self.noise()) for x in points]


def gradient_at(values: Sequence[float], step: float) -> Array:
    """Return (1/δ)·Σ_k (f(x + δ·e_k) − f(x))·e_k from f at x, x + δ·e_1, …, x + δ·e_d (Agarwal et al. 2010)."""
    return (np.array(values[1:]) - values[0]) / step


def query_points(x: Array, step: float) -> Array:
    """Return x and x + δ·e_k, shape (d + 1, d)."""
    return np.vstack([x, x + step * np.eye(len(x))])


def ogd(evaluate: WaitAndAct, d: int, rng: np.random.Generator, eta: float = 0.05, step: float = 0.02) -> None:
    """Run gradient ascent with d + 1 values per step (Agarwal et al. 2010; DBGD of Li et al. 2019 without delays).

    The gradient is divided by the root mean square of the norms of all gradients so far, because the η of the theory
    assumes known Lipschitz constants. x is clipped so that x + δ·e_k is in the cube.
    """
    x = rng.random(d) * (1 - step)
    square, n = 0.0, 0
    while True:
        gradient = gradient_at([evaluate(point) for point in query_points(x, step)], step)
        square, n = square + float(gradient @ gradient), n + 1
        x = np.clip(x + eta * gradient / (math.sqrt(square / n) or 1.0), 0.0, 1 - step)


def dbgd(clock: WaitAndAct, d: int, rng: np.random.Generator, eta: float = 0.05, step: float = 0.02) -> None:
    """Run DBGD (Li et al. 2019, Algorithm 2), which is `ogd` with one new evaluation in every unit of time.

    A slot is the d + 1 units of time in which the evaluations for a gradient start. A gradient is used when its d + 1
    values have arrived. After each slot, x makes a step for each gradient that has arrived since the last slot. The
    function uses f, the delays and the noise of `clock`, but does not wait for results.
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


def rejecting_cells(
    evaluate: Callable[[Sequence[Array]], Sequence[float]], d: int, delta: float = 0.1, alpha: float = 2.0
) -> Iterator[Array]:
    """Run "SR" of Wang et al. 2022, appendix D.5; yield the centre of the best cell after each level.

    SR is Algorithm 2 of Locatelli and Carpentier 2018, with the settings of Wang et al.'s script. At level l, the
    centre of every active cell is evaluated t_l times, and all these evaluations start together. Cells are rejected if
    their mean is more than B_l below the best mean. The remaining cells are halved.
    """
    active: list[Cell] = [((0.0, 1.0),) * d]
    level = 0
    while True:
        delta_l = delta * 0.5 ** (level * (d + 1))
        b_l = 0.5 ** (level * alpha)
        t_l = int(0.5 * math.log(1 / delta_l) / b_l**2)
        values = evaluate([centre(cell) for cell in active for _ in range(t_l)])
        means = np.reshape(values, (len(active), t_l)).mean(axis=1)
        yield centre(active[int(np.argmax(means))])
        wide = 2 * (math.sqrt(math.log(1 / delta_l) / (2 * t_l)) + b_l)
        kept = [cell for cell, mean in zip(active, means, strict=True) if means.max() - mean <= wide]
        active = [half for cell in kept for half in halved(cell, longest_side(cell))]
        level += 1
