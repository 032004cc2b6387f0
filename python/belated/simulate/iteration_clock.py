"""Runs of an optimizer with simulated delays on the iteration clock.

Notation: T trials are started. s and t are trial numbers from 0 to T−1, and d_s is the delay of trial s. When trial t
is chosen on the iteration clock, the result of an earlier trial s is known if d_s ≤ t − s. If all delays are d, then d
trials are in flight. The delays 0 and 1 are equivalent (Verma, Dai and Low 2022, section 3.1). Arrays over trials have
shape (T,).
"""

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from belated._core import InvalidSetting
from belated.simulate.delay_distributions import ByPoint, DelayDistribution, as_distribution, valid_delays

Array = NDArray[np.float64]
#: A trial's value, observed value, delay and start time, and the real time of its suggestion in seconds.
Row = tuple[float, float, float, float, float]


@dataclass
class History:
    """The record of a simulated run, trial by trial.

    Attributes
    ----------
    points : list
        Parameters, or rows of the candidates.
    values, observed : arrays (T,)
        The values of f at the points, and the values with noise. The optimizer observes the values with noise.
    delays : array (T,)
        The delay of each trial.
    started, arrivals : arrays (T,)
        The time on the clock at which each trial started, and the time at which its result arrives.
    seconds : array (T,)
        The real time of each suggestion, in seconds.
    direction : "maximize" or "minimize"
    clock : "iterations" or "seconds"
        The unit of times and delays: suggestions started, or simulated seconds.
    """

    points: list[Any]
    values: Array
    observed: Array
    delays: Array
    started: Array
    arrivals: Array
    seconds: Array
    direction: str = "maximize"
    clock: str = "iterations"

    def __len__(self) -> int:
        return len(self.values)


def simulate(
    optimizer: Any,
    objective: Callable[..., float],
    n_trials: int,
    delay: DelayDistribution | Callable[[Any], Any] | ArrayLike,
    *,
    initial: Iterable[Any] = (),
    contexts: Sequence[Mapping[str, Any]] | None = None,
    noise: float = 0.0,
    seed: int = 0,
) -> History:
    """Run an optimizer with delayed results on the iteration clock.

    Parameters
    ----------
    optimizer : BayesOpt, RandomSearch, …
        An optimizer with ``clock="iterations"`` that does not have trials yet. Only its methods suggest, observe and
        enqueue are called.
    objective : callable
        f(params) for a space, or f(x) for candidates, where x is the suggested row. If there are contexts, the function
        is called as f(params, context) or f(x, context).
    n_trials : int
        T, the number of trials, including the initial points.
    delay : DelayDistribution, callable, number or array of shape (T,)
        The distribution of the delays, a function of the point (see `ByPoint`), a single delay for all trials, or the
        delay of each trial.
    initial : iterable
        Points that are suggested first, in this order. The results of initial points are delayed like other results.
    contexts : sequence of mappings of length T, optional
        The context of each trial. Contexts are required if the optimizer was made with ``context=``.
    noise : float
        Standard deviation of the Gaussian noise of the observations.
    seed : int
        Seeds the delays and the noise. The delays and the noise are independent.

    Returns
    -------
    History
        The points, values, delays and arrivals. Results that are in flight at the end of the run are not observed.

    Raises
    ------
    InvalidSetting
        The optimizer has another clock, a delay is negative or NaN, or the number of delays or contexts differs from
        the number of trials.
    InvalidContext
        Contexts are missing, or do not belong to the context space of the optimizer.
    """
    if getattr(optimizer, "clock", "iterations") != "iterations":
        raise InvalidSetting(
            "simulate runs on the iteration clock: pass an optimizer with clock='iterations', or use simulate_workers"
        )
    if contexts is not None and len(contexts) != n_trials:
        raise InvalidSetting(f"contexts must hold one for each of the {n_trials} trials, got {len(contexts)}")
    delay_stream, noise_stream = streams(seed)
    distribution = as_distribution(delay, n_trials, "delay", "delays")
    drawn = None if isinstance(distribution, ByPoint) else valid_delays(distribution.sample(delay_stream, n_trials))
    errors = noise * noise_stream.standard_normal(n_trials)
    for point in initial:
        optimizer.enqueue(point)

    points: list[Any] = []
    rows: list[Row] = []
    in_flight = InFlight()
    for t in range(n_trials):
        for trial, observation in in_flight.due(t):
            optimizer.observe(trial, observation)
        context = {} if contexts is None else {"context": contexts[t]}
        start = perf_counter()
        trial = optimizer.suggest(**context)
        seconds = perf_counter() - start
        point = point_of(trial)
        value = float(objective(point, *context.values()))
        time = distribution.draw(delay_stream, point) if drawn is None else drawn[t]
        points.append(point)
        rows.append((value, value + errors[t], time, t, seconds))
        in_flight.put(t + steps_in_flight(time), t, (trial, value + errors[t]))
    return history_of(optimizer, points, rows, "iterations")


def history_of(optimizer: Any, points: list[Any], rows: Sequence[Row], clock: str) -> History:
    """Return the history of a run on a clock. `points` and `rows` have an entry for each trial."""
    values, observed, delays, started, seconds = np.array(rows, dtype=float).reshape(-1, 5).T.copy()
    arrivals = arrival_steps(delays) if clock == "iterations" else started + delays
    direction = getattr(optimizer, "direction", "maximize")
    return History(points, values, observed, delays, started, arrivals, seconds, direction, clock)


def streams(seed: int) -> tuple[np.random.Generator, np.random.Generator]:
    """Return two independent random generators, for the delays and for the noise."""
    delays, noise = (np.random.default_rng(sequence) for sequence in np.random.SeedSequence(seed).spawn(2))
    return delays, noise


def point_of(trial: Any) -> Any:
    """Return the first argument of the objective: the params of a trial, or its row for candidates."""
    return trial.params if trial.x is None else trial.x


def steps_in_flight(delays: ArrayLike) -> Any:
    """Return for how many iterations a trial with delay d is in flight: the least integer >= max(d, 1)."""
    return np.maximum(1.0, np.ceil(delays))


def arrival_steps(delays: ArrayLike) -> Array:
    """Return, for each trial s, the number t of the first trial that is chosen when the result of s is known."""
    return np.asarray(np.arange(np.size(delays)) + steps_in_flight(delays), dtype=float)


@dataclass
class InFlight:
    """The results of trials in flight on any clock, ordered by arrival time and, for equal times, by trial number."""

    _heap: list[tuple[float, int, Any]] = field(default_factory=list)

    def put(self, arrival: float, number: int, result: Any) -> None:
        """Add a result that arrives at `arrival`."""
        heapq.heappush(self._heap, (float(arrival), number, result))

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def next_arrival(self) -> float:
        """The time of the next arrival; infinite if no trial is in flight."""
        return self._heap[0][0] if self._heap else math.inf

    def due(self, now: float) -> Iterator[Any]:
        """Remove and yield the results that have arrived by the time ``now``."""
        while self._heap and self._heap[0][0] <= now:
            yield heapq.heappop(self._heap)[2]
