"""Evaluations on an executor: trials are sent to its workers, and their outcomes reported to the optimizer.

One thread alone uses the optimizer. Finished evaluations reach it through a queue, and all of them are reported before
the next suggestion is made.
"""

import pickle
import queue
import traceback
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import suppress
from dataclasses import dataclass, field
from reprlib import repr as short_repr
from time import monotonic
from typing import Any, Literal

from belated._core import AlreadyObserved, BelatedError
from belated.optimizers.optimizer import Optimizer
from belated.optimizers.trial import Trial
from belated.space.arguments import finite
from belated.study.study import Study
from belated.warn import warn

# Seconds. On Windows, Ctrl-C is not answered during a wait, so none is longer.
_MAX_WAIT = 0.5

# Advice on functions that cannot be pickled.
PICKLING_ADVICE = "define it at the top level of a module, or leave executor out and pass n_workers, for threads"


class RunError(BelatedError, RuntimeError):
    """A run in which no trial succeeded, or whose executor does not work.

    Attributes
    ----------
    result : Result
        The result until then.
    """

    result: Any


class StopRun(Exception):
    """Raised by a callback to end the run; `maximize` then returns the result so far."""


@dataclass
class Outcome:
    """The value that f returned, or the error that it raised; can always be pickled."""

    value: float | None = None
    #: The repr of what f returned, where that is not a finite number.
    returned: str = ""
    error: BaseException | None = None
    #: Whether the error is one that the run shall survive.
    caught: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        if self.error is None:
            return Outcome, (self.value, self.returned)
        text = "".join(traceback.format_exception(self.error))
        return _outcome_of_worker, (_picklable(self.error), self.caught, text)


def evaluate(f: Callable[[Any], Any], point: Any, catch: tuple[type[BaseException], ...]) -> Outcome:
    """The outcome of f(point); it holds what f raises, so that only the executor's own errors come from a future."""
    try:
        value = f(point)
        number = finite(value)
        return Outcome(number, "" if number is not None else short_repr(value))
    except BaseException as error:
        return Outcome(error=error, caught=isinstance(error, catch) and not isinstance(error, KeyboardInterrupt))


def _outcome_of_worker(error: BaseException, caught: bool, text: str) -> Outcome:
    error.__cause__ = _WorkerTraceback(text)
    return Outcome(error=error, caught=caught)


def _picklable(error: BaseException) -> BaseException:
    """The error, or a RuntimeError with its message where it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        return RuntimeError(format_error(error))


def format_error(error: BaseException) -> str:
    """The last line of a traceback: the type and the message."""
    return "".join(traceback.format_exception_only(error)).strip()


class _WorkerTraceback(Exception):
    """The traceback of an error in another process, as text."""

    def __str__(self) -> str:
        return f"in a worker:\n\n{self.args[0]}"


class CallingThread(Executor):
    """Calls in the thread that submits, so that Ctrl-C and debuggers reach the function."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@dataclass
class Evaluations:
    """The evaluations of one run: its settings, its trials, and those that are running now."""

    f: Callable[[Any], Any]
    optimizer: Optimizer | Study
    executor: Executor
    n_workers: int
    n_trials: float
    deadline: float
    catch: tuple[type[BaseException], ...]
    callbacks: list[Callable[[Any, Trial], object]]
    progress_bar: Any
    trials: list[Trial] = field(default_factory=list)
    running: dict[Future[Outcome], Trial] = field(default_factory=dict)
    # Not a SimpleQueue: in some releases of Python its get may wait for ever when the timeout is tiny.
    finished: queue.Queue[Future[Outcome]] = field(default_factory=queue.Queue)
    n_failed: int = 0
    # Of the last trial that failed: the reason as text, and the error where f raised one.
    failure: str = ""
    error: BaseException | None = None
    warned: set[str] = field(default_factory=set)

    def run(self) -> Literal["n_trials", "timeout"]:
        """Keep the workers busy until the run ends; returns the reason, unless an exception ended it."""
        while True:
            to_start = len(self.trials) < self.n_trials
            if not to_start and not self.running:
                return "n_trials"
            can_start = to_start and len(self.running) < self.n_workers and monotonic() < self.deadline
            # Outcomes first, so that the next suggestion uses all results that have arrived.
            future = self.next_finished(wait=not can_start)
            if future is not None:
                self.complete(future)
            elif can_start:
                self.start()
            else:
                return "timeout"

    def start(self) -> None:
        """Suggest a trial and submit its evaluation."""
        trial = self.optimizer.suggest()
        self.trials.append(trial)
        try:
            future = self.executor.submit(evaluate, self.f, self.optimizer._point_of(trial), self.catch)
        except Exception as error:
            _abandon(trial)
            raise self.executor_error(trial, error) from error
        self.running[future] = trial
        future.add_done_callback(self.finished.put)

    def next_finished(self, wait: bool) -> Future[Outcome] | None:
        """A finished evaluation; None if there is none now or, with `wait`, until the deadline."""
        while True:
            left = max(0.0, self.deadline - monotonic()) if wait else 0.0
            try:
                return self.finished.get(timeout=min(left, _MAX_WAIT))
            except queue.Empty:
                if left <= _MAX_WAIT:
                    return None

    def complete(self, future: Future[Outcome]) -> None:
        """Report a finished evaluation to the optimizer, the progress bar and the callbacks."""
        trial = self.running[future]
        try:
            outcome = future.result()
        except Exception as error:
            # What f raises is in the outcome: this is the executor's own.
            raise self.executor_error(trial, error) from error
        self.report(trial, outcome)
        del self.running[future]
        if outcome.error is not None and not outcome.caught:
            raise outcome.error
        if self.progress_bar is not None:
            facts = {"best": self.optimizer.best_value_, "failed": self.n_failed or None}
            known = {name: fact for name, fact in facts.items() if fact is not None}
            self.progress_bar.set_postfix(known, refresh=False)
            self.progress_bar.update()
        for callback in self.callbacks:
            callback(self.optimizer, trial)

    def report(self, trial: Trial, outcome: Outcome) -> None:
        """Report an outcome to the optimizer; a trial that was interrupted stays pending."""
        if isinstance(outcome.error, KeyboardInterrupt):
            return
        try:
            if outcome.value is not None:
                trial.observe(outcome.value)
                return
            trial.fail()
        except AlreadyObserved as error:
            self.warn_once("reported elsewhere", f"{error}; that value stays")
            return
        self.n_failed += 1
        self.error = outcome.error
        if outcome.error is None:
            self.failure = f"f returned {outcome.returned}, which is not one finite number"
            self.warn_once("not a number", f"trial {trial.number} failed: {self.failure}; further ones do not warn")
        else:
            self.failure = f"f raised {format_error(outcome.error)}"
            if outcome.caught:
                self.warn_once("raised", f"trial {trial.number} failed: {self.failure}; further ones do not warn")

    def warn_once(self, kind: str, message: str) -> None:
        """Warn, unless the run has given a warning of this kind."""
        if kind not in self.warned:
            self.warned.add(kind)
            warn(message)

    def executor_error(self, trial: Trial, error: Exception) -> RunError:
        """The exception for an error of the executor itself, with advice where its cause is known."""
        advice = ""
        if isinstance(error, BrokenExecutor):
            advice = (
                "; a worker was killed, ran out of memory, or could not import f (which must be defined in a module, "
                "not in a notebook or at the prompt); the trials that were running are still pending"
            )
        elif isinstance(error, CancelledError):
            advice = "; the future was cancelled, or the executor shut down, from elsewhere"
        elif isinstance(error, AttributeError) or any(
            word in format_error(error).lower() for word in ("pickl", "serializ")
        ):
            # For a function that cannot be found by its name, pickling raises AttributeError.
            advice = f"; {PICKLING_ADVICE}"
        name = type(self.executor).__name__
        return RunError(f"{name} could not evaluate trial {trial.number}: {format_error(error).rstrip('.')}{advice}")

    def finalize(self) -> None:
        """Report outcomes that have arrived, abandon trials that were not started, and leave the rest pending."""
        for future, trial in self.running.items():
            if future.cancel():
                _abandon(trial)
            elif future.done():
                error = future.exception()
                if error is None:
                    self.report(trial, future.result())
                elif not isinstance(error, BrokenExecutor):
                    _abandon(trial)


def _abandon(trial: Trial) -> None:
    with suppress(AlreadyObserved):
        trial.abandon()
