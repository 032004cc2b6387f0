"""Simulated lateness: delay laws, an optimizer run under them on the iteration clock, and the regret of what it did.

Notation: T trials are started, numbered s, t = 0 … T−1; d_s is the delay of trial s. On the iteration clock
trial s is known when trial t is chosen if d_s ≤ t − s, so a delay d means d trials in flight, and the delays
0 and 1 coincide (Verma, Dai and Low 2022, section 3.1). Arrays over trials have shape (T,); curves over the
clock have one entry per reading, on the iteration clock t = 0 … T: what is known after t trials were started.
"""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from belated._core import InvalidSetting

__all__ = [
    "ByPoint",
    "Constant",
    "DelayLaw",
    "Exponential",
    "Geometric",
    "HalfNormal",
    "History",
    "Listed",
    "Pareto",
    "Poisson",
    "Uniform",
    "arrival_steps",
    "best_converted",
    "cumulative_regret",
    "simple_regret",
    "simulate",
]

Array = NDArray[np.float64]


def simulate(
    optimizer: Any,
    objective: Callable[[Any], float],
    n_trials: int,
    delay: DelayLaw | float | ArrayLike,
    *,
    initial: Iterable[Any] = (),
    noise: float = 0.0,
    seed: int = 0,
) -> History:
    """Run an optimizer for a number of suggestions whose results come late, on the iteration clock.

    Parameters
    ----------
    optimizer : BayesOpt, RandomSearch, …
        A fresh optimizer with ``clock="iterations"``. It is driven by ``suggest`` and ``observe`` alone.
    objective : callable
        f(params) for a space, f(x) for candidates, where x is the suggested row.
    n_trials : int
        T, the initial points included.
    delay : DelayLaw, number or array of shape (T,)
        The law of the delays, one delay for all, or the delay of each trial.
    initial : iterable
        Points that are suggested first, in this order; their results are late like all others.
    noise : float
        Standard deviation of Gaussian noise added to what the optimizer observes.
    seed : int
        Seeds the delays and the noise. The delays are the same whatever the noise, and conversely.

    Returns
    -------
    History
        Points, values, delays and arrivals. Results that are still out at the end stay out.
    """
    if getattr(optimizer, "clock", "iterations") != "iterations":
        raise InvalidSetting("simulate runs on the iteration clock: give it an optimizer with clock='iterations'")
    delay_stream, noise_stream = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(2))
    law = delay if isinstance(delay, DelayLaw) else _given(delay, n_trials)
    drawn = None if isinstance(law, ByPoint) else _valid_delays(law.sample(delay_stream, n_trials))
    errors = noise * noise_stream.standard_normal(n_trials)
    for point in initial:
        optimizer.enqueue(point)

    points: list[Any] = []
    values, delays, seconds = np.empty(n_trials), np.empty(n_trials), np.empty(n_trials)
    in_flight = InFlight()
    for t in range(n_trials):
        for trial, observation in in_flight.due(t):
            optimizer.observe(trial, observation)
        start = perf_counter()
        trial = optimizer.suggest()
        seconds[t] = perf_counter() - start
        point = trial.params if trial.x is None else trial.x
        points.append(point)
        values[t] = objective(point)
        delays[t] = law.draw(delay_stream, point) if drawn is None else drawn[t]
        in_flight.put(t + steps_in_flight(delays[t]), t, (trial, values[t] + errors[t]))
    return History(
        points=points,
        values=values,
        observed=values + errors,
        delays=delays,
        started=np.arange(n_trials, dtype=float),
        arrivals=arrival_steps(delays),
        seconds=seconds,
        direction=getattr(optimizer, "direction", "maximize"),
    )


def steps_in_flight(delays: ArrayLike) -> Any:
    """Steps of the iteration clock that a delay lasts: the least whole t − s > 0 with d ≤ t − s."""
    return np.maximum(1.0, np.ceil(delays))


def arrival_steps(delays: ArrayLike) -> Array:
    """For each trial s the first t whose choice can use its result, shape (T,)."""
    return np.asarray(np.arange(np.size(delays)) + steps_in_flight(delays), dtype=float)


def best_converted(
    history: History, *, at: ArrayLike | None = None, before: float = math.nan, longest: float = math.inf
) -> Array:
    """The best value among the results that are in, at each reading of the clock.

    Parameters
    ----------
    at : array, optional
        Readings of the clock; by default t = 0 … T of the iteration clock.
    before : float
        What stands where no result is in yet.
    longest : float
        Results with a longer delay never count: the window of an algorithm that discards them.
    """
    at = np.arange(len(history) + 1) if at is None else np.asarray(at, dtype=float)
    sign = 1.0 if history.direction == "maximize" else -1.0
    counted = np.flatnonzero(history.delays <= longest)
    order = counted[np.argsort(history.arrivals[counted], kind="stable")]
    running = np.maximum.accumulate(sign * history.values[order])
    n_in = np.searchsorted(history.arrivals[order], at, side="right")
    return np.asarray(np.concatenate([[before], sign * running])[n_in])


def simple_regret(
    history: History,
    optimum: float,
    *,
    at: ArrayLike | None = None,
    before: float = math.nan,
    longest: float = math.inf,
) -> Array:
    """Distance of the best converted value from the optimum, at each reading of the clock.

    ``before`` is the regret before the first result: Kandasamy et al. 2017 (Eq. 3) take max_x |f* − f(x)|.
    """
    best = best_converted(history, at=at, longest=longest)
    regret = optimum - best if history.direction == "maximize" else best - optimum
    return np.where(np.isnan(best), before, regret)


def cumulative_regret(history: History, optimum: float) -> Array:
    """The sum of the regrets of the first t trials, t = 0 … T; a trial counts when it starts, not when it arrives."""
    regret = optimum - history.values if history.direction == "maximize" else history.values - optimum
    return np.concatenate([[0.0], np.cumsum(regret)])


def _given(delay: ArrayLike, n_trials: int) -> DelayLaw:
    """The law behind delays that were given as one number, or as one number per trial."""
    given = np.asarray(delay, dtype=float)
    if given.ndim == 0:
        return Constant(float(given))
    if given.shape != (n_trials,):
        raise InvalidSetting(f"delay must hold one number for each of the {n_trials} trials, got shape {given.shape}")
    return Listed(tuple(given))


def _valid_delays(delays: ArrayLike) -> Array:
    """Delays as floats, none of them negative or NaN; an infinite one means that the result never comes."""
    delays = np.asarray(delays, dtype=float)
    if not np.all(delays >= 0):
        raise InvalidSetting(f"delays must be numbers ≥ 0, got {delays[~(delays >= 0)].flat[0]}")
    return delays


def _require(law: DelayLaw, ok: bool, what: str) -> None:
    if not ok:
        raise InvalidSetting(f"{law!r}: {what}")


class DelayLaw(ABC):
    """A distribution of delays ≥ 0: small, immutable, picklable.

    A law offers ``mean``, ``sample(rng, size)`` for independent draws, and ``draw(rng, point)`` for the delay of one
    point, which only `ByPoint` looks at. Write your own by subclassing it and giving it ``mean`` and ``sample``.
    """

    mean: float

    @abstractmethod
    def sample(self, rng: np.random.Generator, size: int | None = None) -> Any:
        """Independent delays: a number, or an array of ``size`` of them."""

    def draw(self, rng: np.random.Generator, point: Any) -> float:
        """The delay of one point."""
        return float(_valid_delays(self.sample(rng)))


@dataclass(frozen=True)
class Constant(DelayLaw):
    """Always the same delay."""

    mean: float

    def __post_init__(self) -> None:
        _require(self, self.mean >= 0, "the delay must be ≥ 0")

    def sample(self, rng: np.random.Generator, size: int | None = None) -> Any:
        return np.full(() if size is None else size, float(self.mean))


@dataclass(frozen=True)
class Listed(DelayLaw):
    """Delays that are known beforehand, one per trial, for example from a log."""

    delays: tuple[float, ...]

    @property
    def mean(self) -> float:  # type: ignore[override]
        return float(np.mean(self.delays))

    def sample(self, rng: np.random.Generator, size: int | None = None) -> Any:
        """The first ``size`` of them, in order, without randomness."""
        return np.array(self.delays if size is None else self.delays[:size])


@dataclass(frozen=True)
class Poisson(DelayLaw):
    """Poisson distributed steps (Verma et al. 2022, section 6; Vakili et al. 2023, section 7)."""

    mean: float

    def __post_init__(self) -> None:
        _require(self, 0 <= self.mean < math.inf, "the mean must be a finite number ≥ 0")

    def sample(self, rng: np.random.Generator, size: int | None = None) -> Any:
        return np.asarray(rng.poisson(self.mean, size), dtype=float)


@dataclass(frozen=True)
class Geometric(DelayLaw):
    """Geometric steps 1, 2, 3, …: P(d = k) = p·(1 − p)^(k−1) with p = 1/mean (Wang et al. 2022)."""

    mean: float

    def __post_init__(self) -> None:
        _require(self, 1 <= self.mean < math.inf, "the mean must be a finite number ≥ 1, since 1 is the shortest delay")

    def sample(self, rng: np.random.Generator, size: int | None = None) -> Any:
        return np.asarray(rng.geometric(1.0 / self.mean, size), dtype=float)


@dataclass(frozen=True)
class Uniform(DelayLaw):
    """Uniform on [low, high]; Kandasamy et al. 2017 use [0, 2]."""

    low: float = 0.0
    high: float = 2.0

    def __post_init__(self) -> None:
        _require(self, 0 <= self.low <= self.high < math.inf, "needs 0 ≤ low ≤ high")

    @property
    def mean(self) -> float:  # type: ignore[override]
        return 0.5 * (self.low + self.high)

    def sample(self, rng: np.random.Generator, size: int | None = None) -> Any:
        return np.asarray(rng.uniform(self.low, self.high, size))


@dataclass(frozen=True)
class HalfNormal(DelayLaw):
    """|N(0, ζ²)|; mean ζ·sqrt(2/π), so ζ = sqrt(π/2) at mean 1 (Kandasamy et al. 2017)."""

    mean: float = 1.0

    def __post_init__(self) -> None:
        _require(self, 0 < self.mean < math.inf, "the mean must be a finite number > 0")

    def sample(self, rng: np.random.Generator, size: int | None = None) -> Any:
        zeta = self.mean * math.sqrt(math.pi / 2)
        return np.abs(zeta * np.asarray(rng.standard_normal(size)))


@dataclass(frozen=True)
class Exponential(DelayLaw):
    """Density exp(−t/mean)/mean; Kandasamy et al. 2017 use mean 1."""

    mean: float = 1.0

    def __post_init__(self) -> None:
        _require(self, 0 < self.mean < math.inf, "the mean must be a finite number > 0")

    def sample(self, rng: np.random.Generator, size: int | None = None) -> Any:
        return np.asarray(rng.exponential(self.mean, size))


@dataclass(frozen=True)
class Pareto(DelayLaw):
    """Density ∝ t^−(power+1) for t ≥ offset = mean·(power − 1)/power: power 5 has offset 0.8 at mean 1."""

    mean: float = 1.0
    power: float = 5.0

    def __post_init__(self) -> None:
        _require(self, 0 < self.mean < math.inf, "the mean must be a finite number > 0")
        _require(self, 1 < self.power < math.inf, "the power must be > 1, or else the mean is infinite")

    def sample(self, rng: np.random.Generator, size: int | None = None) -> Any:
        offset = self.mean * (self.power - 1) / self.power
        return np.asarray(offset * (1.0 + rng.pareto(self.power, size)))  # numpy's pareto is shifted to start at 0


@dataclass(frozen=True)
class ByPoint(DelayLaw):
    """A delay that depends on the point: ``function(point)`` gives a number, or the law to draw from.

    Parameters
    ----------
    function : callable
        Takes what the objective takes. Give a module-level function where the law has to be pickled.
    """

    function: Callable[[Any], float | DelayLaw]
    mean: float = math.nan  #: unknown, unless you say it

    def sample(self, rng: np.random.Generator, size: int | None = None) -> Any:
        raise InvalidSetting("a delay that depends on the point cannot be drawn without one: use draw(rng, point)")

    def draw(self, rng: np.random.Generator, point: Any) -> float:
        delay = self.function(point)
        return delay.draw(rng, point) if isinstance(delay, DelayLaw) else float(_valid_delays(delay))


@dataclass
class History:
    """What a simulated run did, trial by trial.

    Attributes
    ----------
    points : list
        Parameters, or rows of the candidates.
    values, observed : arrays (T,)
        f at the points; and what the optimizer was, or would have been, told: f plus noise.
    delays : array (T,)
        The delay of each trial.
    started, arrivals : arrays (T,)
        The reading of the clock at which a trial began, and at which its result is in.
    seconds : array (T,)
        Real time that each suggestion took.
    direction : "maximize" or "minimize"
    """

    points: list[Any]
    values: Array
    observed: Array
    delays: Array
    started: Array
    arrivals: Array
    seconds: Array
    direction: str = "maximize"

    def __len__(self) -> int:
        return len(self.values)


@dataclass
class InFlight:
    """Results on their way, handed out in the order of (arrival, trial number), whatever the clock."""

    _heap: list[tuple[float, int, Any]] = field(default_factory=list)

    def put(self, arrival: float, number: int, result: Any) -> None:
        """Send a result on its way."""
        heapq.heappush(self._heap, (float(arrival), number, result))

    def due(self, now: float) -> Iterator[Any]:
        """The results that are in at ``now``, each once."""
        while self._heap and self._heap[0][0] <= now:
            yield heapq.heappop(self._heap)[2]
