"""An optimizer run by simulated workers, whose evaluations take simulated time.

Notation: M workers, T the duration of a run, θ the mean evaluation time. Trials are numbered k = 0, 1, … in the order
in which they start. Arrays over trials have shape (number of trials,).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from reprlib import repr as short_repr
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from belated._core import InvalidSetting
from belated.simulate.delay_distributions import ByPoint, DelayDistribution, Listed, as_distribution, valid_delays
from belated.simulate.iteration_clock import History, InFlight, point_of, streams

Mode = Literal["asynchronous", "synchronous", "sequential"]
_MODES = ("asynchronous", "synchronous", "sequential")
_BLOCK = 256  # how many numbers are drawn at once


def simulate_workers(
    optimizer: Any,
    objective: Callable[[Any], float],
    *,
    workers: int,
    times: DelayDistribution | Callable[[Any], Any] | ArrayLike,
    duration: float | None = None,
    n_trials: int | None = None,
    mode: Mode = "asynchronous",
    initial: Iterable[Any] = (),
    noise: float = 0.0,
    seed: int = 0,
) -> History:
    """Run an optimizer on M workers in simulated time, as Kandasamy et al. 2017 do (section 4).

    Parameters
    ----------
    optimizer : BayesOpt, RandomSearch, …
        Only its suggest, observe and enqueue are used. One with ``clock="seconds"`` must be without trials: it reads
        simulated time from here on, which is the end of the run when the run is over.
    objective : callable
        f(params) for a space, f(x) for candidates, where x is the suggested row.
    workers : int
        M, at least 1.
    times : DelayDistribution, callable, number or array of shape (n_trials,)
        How long evaluations take, in simulated seconds: their distribution, a function of the point (see `ByPoint`),
        one time for all, or the time of each trial. Finite and ≥ 0.
    duration : float, optional
        T: no trial starts at T or later, and no result that comes later than T is observed. Default None: no limit.
    n_trials : int, optional
        How many trials are started, the initial points included; their results are waited for, unless duration ends
        the run before. Default None: no limit. At least one of duration and n_trials is given.
    mode : {"asynchronous", "synchronous", "sequential"}, default "asynchronous"
        Whether a free worker gets a new trial at once, or M trials are suggested together when all workers are free.
        Sequential is one worker.
    initial : iterable
        Points that are suggested first, in this order; they take their time like all others.
    noise : float
        Standard deviation of Gaussian noise added to what the optimizer observes.
    seed : int
        Seeds the evaluation times and the noise: trial k has the same whatever the optimizer and the mode. The times
        are the same whatever the noise, and conversely.

    Returns
    -------
    History
        ``started`` and ``arrivals`` are simulated times from 0, ``delays`` evaluation times. It includes trials that
        are unfinished at the end of the run: their arrivals are later than T.

    Raises
    ------
    InvalidSetting
        An argument that is not usable; an evaluation time that is negative, NaN or infinite, or 0 in a run that
        duration alone would end.

    Examples
    --------
    >>> import belated as bl
    >>> from belated.simulate import Uniform, simple_regret, simulate_workers
    >>> optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
    >>> history = simulate_workers(optimizer, lambda p: p["x"], workers=4, times=Uniform(0, 2), duration=30, seed=0)
    >>> bool((history.started < 30).all())
    True
    >>> regret = simple_regret(history, optimum=1.0, at=[0, 10, 20, 30], before=1.0)
    """
    workers = _whole("workers", workers)
    n_trials = None if n_trials is None else _whole("n_trials", n_trials)
    if mode not in _MODES:
        raise InvalidSetting(f"mode={short_repr(mode)} is not usable: pass one of {list(_MODES)}")
    if mode == "sequential" and workers != 1:
        raise InvalidSetting(f"mode='sequential' is one worker, got workers={workers}: pass workers=1, or another mode")
    if duration is None and n_trials is None:
        raise InvalidSetting("neither duration nor n_trials is given: pass one of them, or both")
    end = math.inf if duration is None else _number("duration", duration)
    noise = _number("noise", noise)
    distribution = as_distribution(times, n_trials, "times")
    time_stream, noise_stream = streams(seed)
    drawn = None if isinstance(distribution, ByPoint) else _drawn(distribution, time_stream)
    errors = _normals(noise_stream)

    clock = _SimulatedTime()
    if getattr(optimizer, "clock", "iterations") == "seconds":
        _set_time(optimizer, clock)
    for point in initial:
        optimizer.enqueue(point)

    points: list[Any] = []
    values: list[float] = []
    observed: list[float] = []
    delays: list[float] = []
    started: list[float] = []
    seconds: list[float] = []
    in_flight = InFlight()
    while True:
        free = workers - len(in_flight)
        starts = free == workers or (free > 0 and mode == "asynchronous")
        left = math.inf if n_trials is None else n_trials - len(points)
        if starts and left > 0 and clock.now < end:
            begin = perf_counter()
            # All M workers are free, or one of those that are gets the next trial.
            trials = optimizer.suggest(n=int(min(workers, left))) if mode == "synchronous" else [optimizer.suggest()]
            seconds += [(perf_counter() - begin) / len(trials)] * len(trials)
            for trial in trials:
                k, point = len(points), point_of(trial)
                points.append(point)
                values.append(float(objective(point)))
                observed.append(values[k] + noise * next(errors))
                started.append(clock.now)
                delays.append(distribution.draw(time_stream, point) if drawn is None else next(drawn))
                _check_time(delays[k], k, clock.now, n_trials)
                in_flight.put(clock.now + delays[k], k, (trial, observed[k]))
        elif in_flight and in_flight.next_arrival <= end:
            # Results that arrive together are all known to the next suggestion.
            clock.now = in_flight.next_arrival
            for trial, observation in in_flight.due(clock.now):
                optimizer.observe(trial, observation)
        else:
            break
    if duration is not None:
        clock.now = end
    return History(
        points=points,
        values=np.array(values),
        observed=np.array(observed),
        delays=np.array(delays),
        started=np.array(started),
        arrivals=np.array(started) + np.array(delays),
        seconds=np.array(seconds),
        direction=getattr(optimizer, "direction", "maximize"),
    )


@dataclass
class _SimulatedTime:
    """The time of a simulation, as the function that an optimizer asks for seconds."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def _set_time(optimizer: Any, clock: _SimulatedTime) -> None:
    """Let an optimizer read simulated time."""
    if not hasattr(optimizer, "set_params"):
        raise InvalidSetting(
            f"a {type(optimizer).__name__} with clock='seconds' cannot read simulated time: pass an optimizer"
        )
    try:
        optimizer.set_params(time=clock)
    except InvalidSetting as error:
        raise InvalidSetting(
            "an optimizer with clock='seconds' has trials or enqueued points already, by another clock: pass one "
            "without, and points as initial"
        ) from error


def _drawn(distribution: DelayDistribution, rng: np.random.Generator) -> Iterator[float]:
    """The evaluation times of trials k = 0, 1, …, which depend on no point."""
    if isinstance(distribution, Listed):
        yield from distribution.delays
        raise InvalidSetting(
            f"times lists {len(distribution.delays)} evaluation times and more trials start: list more"
        )
    while True:
        yield from valid_delays(distribution.sample(rng, _BLOCK)).tolist()


def _normals(rng: np.random.Generator) -> Iterator[float]:
    """Independent standard normal variates."""
    while True:
        yield from rng.standard_normal(_BLOCK).tolist()


def _check_time(time: float, k: int, now: float, n_trials: int | None) -> None:
    if not 0 <= time < math.inf:
        raise InvalidSetting(f"times gave {time} for trial {k}: an evaluation takes a finite time ≥ 0")
    if n_trials is None and now + time <= now:
        raise InvalidSetting(
            f"times gave {time} for trial {k}, so that a run might never reach its duration: pass n_trials as well, "
            "or times > 0"
        )


def _whole(name: str, value: Any) -> int:
    try:
        number = 0 if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except TypeError:
        number = 0
    if number < 1:
        raise InvalidSetting(f"{name}={short_repr(value)} is not usable: pass an integer ≥ 1")
    return number


def _number(name: str, value: Any) -> float:
    try:
        number = math.nan if isinstance(value, (bool, np.bool_)) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number < math.inf:
        raise InvalidSetting(f"{name}={short_repr(value)} is not usable: pass a finite number ≥ 0")
    return number
