"""Simulated time for algorithms without delayed feedback. They wait for each evaluation, or for each batch."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class TimeIsUp(Exception):
    """A value would come after the end of the run."""


class Evaluate(Protocol):
    """A function that returns the value at a point. The caller waits until the value has arrived."""

    def __call__(self, x: Array, z: float = 1.0) -> float: ...


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
        The duration of a run. Later values raise `TimeIsUp`.
    noise : callable, optional
        The noise of each value.
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
        """Record the point that an algorithm with a model recommends, given the values so far."""
        self.chosen[len(self.values) - 1] = np.array(x, dtype=float)

    def recommendations(self) -> list[Array]:
        """Return, after each value, the last recommended point, or the best point so far at the highest fidelity."""
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
    """Evaluations of many points at once by a number of workers. The caller waits for all of them."""

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
            # The next free worker takes the point. The loop stops at the end of the run, before it draws further
            # delays.
            heapq.heapreplace(free, free[0] + next(self.delays))
            if max(free) > self.duration:
                raise TimeIsUp
        self.now, self.n = max(free), self.n + len(points)
        return [float(self.f(x, 1.0)) + (0.0 if self.noise is None else self.noise()) for x in points]
