"""Runs of an optimizer with simulated workers, whose evaluations take simulated time.

Notation: M is the number of workers, T is the duration of a run, and θ is the mean evaluation time. Trials are numbered
k = 0, 1, … in the order of their starts. Arrays over trials have shape (number of trials,).
"""

import math
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from belated._core import InvalidSetting
from belated.short_repr import short_repr
from belated.simulate.delay_distributions import ByPoint, Constant, DelayDistribution, Listed, as_distribution
from belated.simulate.iteration_clock import History, InFlight, Row, history_of, point_of, streams

Mode = Literal["asynchronous", "synchronous", "sequential"]
_BLOCK = 256  # number of values in a block of draws


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
    """Run an optimizer on M workers in simulated time, as in section 4 of Kandasamy et al. 2017.

    Parameters
    ----------
    optimizer : BayesOpt, RandomSearch, …
        Only the methods suggest, observe and enqueue of the optimizer are called. If the optimizer has
        ``clock="seconds"``, it must not have trials yet. The run then sets the optimizer's argument ``time`` to a clock
        that shows the simulated time. At the end of the run, this clock stops.
    objective : callable
        f(params) for a space, or f(x) for candidates, where x is the suggested row.
    workers : int
        M, at least 1.
    times : DelayDistribution, callable, number or array of shape (n_trials,)
        The durations of evaluations in simulated seconds: a distribution, a function of the point (see `ByPoint`), a
        single duration for all trials, or the duration of each trial. Times are finite and ≥ 0.
    duration : float, optional
        T, the duration of the run. Trials start before T, and only results that arrive until T are observed. Default
        None: the duration is not limited.
    n_trials : int, optional
        The number of trials, including the initial points. The run waits for the results of all trials, unless
        `duration` ends the run earlier. Default None: the number of trials is not limited. Pass duration or n_trials,
        or both.
    mode : {"asynchronous", "synchronous", "sequential"}, default "asynchronous"
        "asynchronous": a free worker immediately gets a new trial. "synchronous": M trials are suggested together when
        all workers are free. "sequential": the run has a single worker.
    initial : iterable
        Points that are suggested first, in this order. The evaluations of initial points take time like other
        evaluations.
    noise : float
        Standard deviation of the Gaussian noise of the observations.
    seed : int
        Seed of the evaluation times and the noise, which are independent. With the same seed, trial k has the same time
        and noise for any optimizer and mode.

    Returns
    -------
    History
        ``started`` and ``arrivals`` are simulated times, counted from 0. ``delays`` are evaluation times. Trials that
        are unfinished at the end of the run are included; their arrivals are later than T.

    Raises
    ------
    InvalidSetting
        An argument is invalid; an evaluation time is negative, NaN or infinite; or an evaluation time is 0 and
        `n_trials` is not given.

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
    if mode not in get_args(Mode):
        raise InvalidSetting(f"mode={short_repr(mode)} is not usable: pass one of {list(get_args(Mode))}")
    if mode == "sequential" and workers != 1:
        raise InvalidSetting(f"mode='sequential' is one worker, got workers={workers}: pass workers=1, or another mode")
    if duration is None and n_trials is None:
        raise InvalidSetting("neither duration nor n_trials is given: pass one of them, or both")
    end = math.inf if duration is None else _number("duration", duration, "> 0")
    noise = _number("noise", noise, ">= 0")
    distribution = as_distribution(times, n_trials, "times", "times")
    time_stream, noise_stream = streams(seed)
    if isinstance(distribution, (Constant, Listed)):
        for number, time in enumerate(np.atleast_1d(distribution.sample(time_stream))):
            _check_time(time, number, 0.0, n_trials)
    evaluation_time = _evaluation_time(distribution, time_stream)
    errors = _in_blocks(noise_stream.standard_normal)

    clock = _SimulatedTime()
    if getattr(optimizer, "clock", "iterations") == "seconds":
        _set_time(optimizer, clock)
    for point in initial:
        optimizer.enqueue(point)

    points: list[Any] = []
    rows: list[Row] = []
    in_flight = InFlight()
    while True:
        left = math.inf if n_trials is None else n_trials - len(points)
        free = workers - len(in_flight)
        ready = free == workers or (free > 0 and mode == "asynchronous")
        # Before the next suggestion, observe all results that arrive at the same time.
        if ready and left > 0 and clock.now < min(end, in_flight.next_arrival):
            begin = perf_counter()
            trials = optimizer.suggest(n=int(min(workers, left))) if mode == "synchronous" else [optimizer.suggest()]
            seconds = (perf_counter() - begin) / len(trials)
            for trial in trials:
                number, point = len(points), point_of(trial)
                value = float(objective(point))
                observed = value + noise * next(errors)
                time = evaluation_time(point)
                _check_time(time, number, clock.now, n_trials)
                points.append(point)
                rows.append((value, observed, time, clock.now, seconds))
                in_flight.put(clock.now + time, number, (trial, observed))
        elif in_flight and in_flight.next_arrival <= end:
            clock.now = in_flight.next_arrival
            for trial, observed in in_flight.due(clock.now):
                optimizer.observe(trial, observed)
        else:
            break
    if left > 0 or in_flight:
        clock.now = end  # the duration ended the run
    return history_of(optimizer, points, rows, "seconds")


@dataclass
class _SimulatedTime:
    """The clock of a simulation: a function that returns the simulated time in seconds."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def _set_time(optimizer: Any, clock: _SimulatedTime) -> None:
    """Set the argument `time` of an optimizer to the simulated time."""
    if not hasattr(optimizer, "set_params"):
        raise InvalidSetting(
            f"a {type(optimizer).__name__} with clock='seconds' cannot read simulated time: pass an optimizer"
        )
    try:
        optimizer.set_params(time=clock)
    except InvalidSetting as error:
        raise InvalidSetting(
            "an optimizer with clock='seconds' must be new to read simulated time, and this one has trials or enqueued "
            "points: pass a new optimizer, and points as initial"
        ) from error


def _evaluation_time(distribution: DelayDistribution, rng: np.random.Generator) -> Callable[[Any], float]:
    """Return a function of the point that returns an evaluation time. Call it once for each trial, in order."""
    if isinstance(distribution, ByPoint):
        return partial(distribution.draw, rng)
    times = _listed(distribution) if isinstance(distribution, Listed) else _in_blocks(partial(distribution.sample, rng))
    return lambda point: next(times)


def _listed(distribution: Listed) -> Iterator[float]:
    yield from distribution.delays
    raise InvalidSetting(f"times lists {len(distribution.delays)} numbers, and more trials start: list more")


def _in_blocks(draw: Callable[[int], Any]) -> Iterator[float]:
    """Yield independent draws one by one. For speed, draws are made in blocks."""
    while True:
        yield from np.asarray(draw(_BLOCK), dtype=float).tolist()


def _check_time(time: float, number: int, now: float, n_trials: int | None) -> None:
    if not 0 <= time < math.inf:
        raise InvalidSetting(f"times gave {time} for trial {number}: an evaluation takes a finite time ≥ 0")
    if n_trials is None and now + time <= now:
        raise InvalidSetting(
            f"times gave {time} for trial {number}, so that the run might never reach its duration: pass n_trials too, "
            "or times > 0"
        )


def _whole(name: str, value: Any) -> int:
    """Return an argument as an integer; raise an error if it is not an integer ≥ 1."""
    try:
        number = 0 if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except TypeError:
        number = 0
    if number < 1:
        raise InvalidSetting(f"{name}={short_repr(value)} is not usable: pass an integer >= 1")
    return number


def _number(name: str, value: Any, limit: Literal["> 0", ">= 0"]) -> float:
    """Return an argument as a float; raise an error if it is not a finite number within the limit."""
    try:
        number = math.nan if isinstance(value, (bool, np.bool_)) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (0 <= number < math.inf) or (number == 0 and limit == "> 0"):
        raise InvalidSetting(f"{name}={short_repr(value)} is not usable: pass a finite number {limit}")
    return number
