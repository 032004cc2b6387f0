"""Evaluations on an executor: trials are sent out, and what comes of them is reported.

One thread alone touches the optimizer. Evaluations that are over come to it through a queue, and all of them are
reported before the next suggestion is made.
"""

import pickle
import queue
import traceback
import warnings
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import suppress
from dataclasses import dataclass, field
from reprlib import repr as short_repr
from time import monotonic
from typing import Any, Literal

from belated._core import AlreadyObserved, BelatedError, BelatedWarning
from belated.space.arguments import finite
from belated.optimizers.optimizer import Optimizer
from belated.study.study import Study
from belated.optimizers.trial import Trial

# No wait is longer, in seconds: on Windows, Ctrl-C is not answered during one.
_PATIENCE = 0.5

# Warnings name the line that called maximize: it is this far from where they are given.
_CALLER = 7

# Advice on functions that cannot be pickled.
HOW_TO_SEND = "define it at the top level of a module, or leave executor out and pass n_workers, for threads"


class RunError(BelatedError, RuntimeError):
    """A run without a single success, or with an executor that does not work.

    Attributes
    ----------
    result : Result
        What there was until then.
    """

    result: Any


@dataclass
class Outcome:
    """What f returned or raised: never both, and always something that can be sent to another process."""

    value: float | None = None
    shown: str = ""
    error: BaseException | None = None
    caught: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        if self.error is None:
            return Outcome, (self.value, self.shown)
        text = "".join(traceback.format_exception(self.error))
        return _raised_elsewhere, (_portable(self.error), self.caught, text)


def evaluate(f: Callable[[Any], Any], point: Any, catch: tuple[type[BaseException], ...]) -> Outcome:
    """f(point), with what it raises put into the outcome: so what a future raises is the executor's own fault."""
    try:
        value = f(point)
        number = finite(value)
        return Outcome(number, "" if number is not None else short_repr(value))
    except BaseException as error:
        return Outcome(error=error, caught=isinstance(error, catch) and not isinstance(error, KeyboardInterrupt))


def _raised_elsewhere(error: BaseException, caught: bool, text: str) -> Outcome:
    error.__cause__ = _Elsewhere(text)
    return Outcome(error=error, caught=caught)


def _portable(error: BaseException) -> BaseException:
    """The error, or where it does not survive pickling, one that says the same."""
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        return RuntimeError(said(error))


def said(error: BaseException) -> str:
    """The last line of a traceback: the type and the message."""
    return "".join(traceback.format_exception_only(error)).strip()


class _Elsewhere(Exception):
    """The traceback of an error in another process, as text."""

    def __str__(self) -> str:
        return f"in a worker:\n\n{self.args[0]}"


class CallingThread(Executor):
    """Calls in the thread that submits, so that Ctrl-C and debuggers reach what is called."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@dataclass
class Evaluations:
    """A run on its way: which evaluations are running, and what is to happen when one is over."""

    f: Callable[[Any], Any]
    optimizer: Optimizer | Study
    executor: Executor
    n_workers: int
    n_trials: float
    deadline: float
    catch: tuple[type[BaseException], ...]
    callbacks: list[Callable[[Any, Trial], object]]
    bar: Any
    trials: list[Trial] = field(default_factory=list)
    running: dict[Future[Outcome], Trial] = field(default_factory=dict)
    # Not a SimpleQueue: in some releases of Python its get may wait for ever when the timeout is tiny.
    over: queue.Queue[Future[Outcome]] = field(default_factory=queue.Queue)
    n_failed: int = 0
    # Of the last trial that failed.
    complaint: str = ""
    error: BaseException | None = None
    warned: set[str] = field(default_factory=set)

    def until_it_ends(self) -> Literal["n_trials", "timeout"]:
        """Keep the workers busy; what ended it, unless that was an exception."""
        while True:
            to_start = len(self.trials) < self.n_trials
            if not to_start and not self.running:
                return "n_trials"
            free = to_start and len(self.running) < self.n_workers and monotonic() < self.deadline
            # Results first: the next suggestion is to know all that has come in.
            future = self.next(wait=not free)
            if future is not None:
                self.take_in(future)
            elif free:
                self.start()
            else:
                return "timeout"

    def start(self) -> None:
        """Suggest a trial and have it evaluated."""
        trial = self.optimizer.suggest()
        self.trials.append(trial)
        try:
            future = self.executor.submit(evaluate, self.f, self.optimizer._point_of(trial), self.catch)
        except Exception as error:
            _give_up(trial)
            raise self.out_of_order(trial, error) from error
        self.running[future] = trial
        future.add_done_callback(self.over.put)

    def next(self, wait: bool) -> Future[Outcome] | None:
        """An evaluation that is over; None if there is none now, or, with `wait`, before the deadline."""
        while True:
            left = max(0.0, self.deadline - monotonic()) if wait else 0.0
            try:
                return self.over.get(timeout=min(left, _PATIENCE))
            except queue.Empty:
                if left <= _PATIENCE:
                    return None

    def take_in(self, future: Future[Outcome]) -> None:
        """Report on an evaluation that is over, and say so."""
        trial = self.running[future]
        try:
            outcome = future.result()
        except Exception as error:
            # What f raises is in the outcome: this is the executor's own.
            raise self.out_of_order(trial, error) from error
        self.report(trial, outcome)
        del self.running[future]
        if outcome.error is not None and not outcome.caught:
            raise outcome.error
        if self.bar is not None:
            facts = {"best": self.optimizer.best_value_, "failed": self.n_failed or None}
            self.bar.set_postfix({name: fact for name, fact in facts.items() if fact is not None}, refresh=False)
            self.bar.update()
        for callback in self.callbacks:
            callback(self.optimizer, trial)

    def report(self, trial: Trial, outcome: Outcome) -> None:
        """Tell the optimizer; a trial that was interrupted stays pending."""
        if isinstance(outcome.error, KeyboardInterrupt):
            return
        try:
            if outcome.value is not None:
                trial.observe(outcome.value)
                return
            trial.fail()
        except AlreadyObserved as error:
            self.warn("reported elsewhere", f"{error}; that value stays")
            return
        self.n_failed += 1
        self.error = outcome.error
        if outcome.error is None:
            self.complaint = f"f returned {outcome.shown}, which is not one finite number"
            self.warn("no number", f"trial {trial.number} failed: {self.complaint}; this is said once")
        else:
            self.complaint = f"f raised {said(outcome.error)}"
            if outcome.caught:
                self.warn("raised", f"trial {trial.number} failed: {self.complaint}; this is said once")

    def warn(self, kind: str, message: str) -> None:
        """Warn of each kind of trouble once."""
        if kind not in self.warned:
            self.warned.add(kind)
            warnings.warn(message, BelatedWarning, stacklevel=_CALLER)

    def out_of_order(self, trial: Trial, error: Exception) -> RunError:
        """What to say where the executor itself raises."""
        advice = ""
        if isinstance(error, BrokenExecutor):
            advice = (
                "; a worker was killed, ran out of memory, or could not import f (which must stand in a module, "
                "not in a notebook or at the prompt); what it was given is still pending"
            )
        elif isinstance(error, CancelledError):
            advice = "; somebody cancelled it, or shut the executor down"
        elif isinstance(error, AttributeError) or any(word in said(error).lower() for word in ("pickl", "serializ")):
            # Functions that Python does not find by name may be an AttributeError.
            advice = f"; {HOW_TO_SEND}"
        name = type(self.executor).__name__
        return RunError(f"{name} could not evaluate trial {trial.number}: {said(error).rstrip('.')}{advice}")

    def wind_up(self) -> None:
        """Report what has arrived, give up what never began, and leave the rest pending."""
        for future, trial in self.running.items():
            if future.cancel():
                _give_up(trial)
            elif future.done():
                error = future.exception()
                if error is None:
                    self.report(trial, future.result())
                elif not isinstance(error, BrokenExecutor):
                    _give_up(trial)


def _give_up(trial: Trial) -> None:
    with suppress(AlreadyObserved):
        trial.abandon()
