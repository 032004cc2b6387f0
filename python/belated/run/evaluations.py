"""The evaluations of a run: an executor evaluates trials, and their outcomes are reported to the optimizer.

Only one thread uses the optimizer. A queue passes finished evaluations to this thread. All finished evaluations are
reported before the next suggestion.
"""

import errno
import logging
import math
import queue
from collections import Counter
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Literal

from belated._core import BelatedError
from belated.errors import AlreadyObserved, InvalidValue, RunError, StoreError
from belated.optimizers.log import Limit
from belated.optimizers.optimizer import Optimizer
from belated.optimizers.outcomes import Record
from belated.optimizers.report import attrs_as_json, error_facts, format_error
from belated.optimizers.request import Facts, ObserveArguments, Request
from belated.optimizers.trial import Trial
from belated.run.budget import Budget
from belated.run.objective import Evaluation, Objective, Reports, evaluate
from belated.run.pace import Pace
from belated.run.progress import Progress, arriving_text
from belated.run.raised import Place, without_objects
from belated.run.total import Total
from belated.run.worker_errors import WorkerDied, WorkersDoNotStart, is_of_ray_task, worker_died
from belated.study.study import Study
from belated.warn import logger, warn

LOGGER = logger()

# The maximum length of a wait in seconds. On Windows, Ctrl-C has no effect before a wait ends.
_MAX_WAIT = 0.5

# The seconds between two forecasts for the progress bar. Runs that are shorter do not show a forecast.
_FORECAST_EVERY = 60.0

# A run ends if its first evaluations all fail in the same way. The number of these evaluations is the number of
# workers, but at least this constant.
_MIN_SAME_ERRORS = 3

# Advice on functions that cannot be pickled.
PICKLING_ADVICE = (
    "define it at the top level of a module that the workers can import, or pass "
    "executor=loky.get_reusable_executor(), which sends functions by value, as notebooks need it, or leave executor "
    "and processes out and pass n_workers, for threads"
)


@dataclass
class Evaluations:
    """The evaluations of a run, with the settings and trials of the run."""

    f: Objective
    optimizer: Optimizer | Study
    executor: Executor
    n_workers: int
    n_trials: float
    total: Total | None
    budget: Budget | None
    deadline: float
    retries: int
    callbacks: list[Callable[[Any, Trial], object]]
    progress: Progress | None
    # The limit on time or cost that ends the run. None: a number of trials ends the run.
    limit: Callable[[], Limit] | None = None
    # Trials that were pending before the run; these trials are evaluated first.
    waiting: list[Trial] = field(default_factory=list)
    # What the optimizer is asked for when a new trial is started.
    request: Request = field(default_factory=lambda: Request(1))
    # What workers use to report the steps of curves.
    reports: "Reports | None" = None
    # The number of the problem at the start of the run, whose outcomes f returns; see `Submission`.
    revision: int | None = None
    trials: list[Trial] = field(default_factory=list)
    running: dict[Future[Evaluation], Trial] = field(default_factory=dict)
    # Do not use a SimpleQueue: in some releases of Python, SimpleQueue.get may never return if the timeout is tiny.
    finished: queue.Queue[Future[Evaluation]] = field(default_factory=queue.Queue)
    # The number of restarts of each trial's evaluation, by trial number.
    n_retried: Counter[int] = field(default_factory=Counter)
    n_failed: int = 0
    # The forecast in the progress bar, and the time at which it is made again.
    arriving: str | None = None
    forecast_due: float = field(default_factory=lambda: monotonic() + _FORECAST_EVERY)
    # The reason of the last failure as text; and, if an error was raised, this error.
    failure: str = ""
    error: BaseException | None = None
    warned: set[str] = field(default_factory=set)
    # For each of the first evaluations, the type and line of its error, or the type of its invalid result. The entry of
    # a successful evaluation is None.
    first: list[Place | None] = field(default_factory=list)
    # For each of the first results, the declared outcomes that it lacks; see `Evaluation`.
    absent: list[tuple[str, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pace = Pace(self.n_workers)

    def run(self) -> Literal["n_trials", "timeout", "budget"]:
        """Evaluate trials until the run ends; return the reason for the end.

        If a trial cannot be started, the running evaluations are completed before the error is raised.
        """
        refused: Exception | None = None
        while True:
            to_start = refused is None and len(self.trials) < self.n_trials
            if not to_start and not self.running:
                break
            can_start = to_start and len(self.running) < self.n_workers and monotonic() < self.deadline
            if can_start and self.budget is not None and not self.budget.has_room(next(iter(self.waiting), None)):
                if not self.running:
                    return "budget"
                # Wait for the running trials. If one of them costs less than declared, another trial may start.
                can_start = False
            # Report all finished evaluations first, so that the next suggestion uses their results.
            future = self.next_finished(wait=not can_start)
            if future is not None:
                self.complete(future)
            elif can_start:
                try:
                    self.start()
                except Exception as error:
                    refused = error
            elif refused is None:
                return "timeout"
            else:
                break
        if refused is not None:
            raise refused
        return "n_trials"

    def start(self) -> None:
        """Submit the evaluation of a waiting trial. If no trial is waiting, start a new trial.

        A new trial is not started if the total is reached.
        """
        trial = self.next_waiting()
        if trial is None and len(self.trials) < self.n_trials:
            with self.pace.suggestion():
                trial = self.suggest() if self.total is None else self.total.suggest(self.request)
        if trial is None:
            self.n_trials = len(self.trials)
            return
        self.trials.append(trial)
        if self.budget is not None:
            self.budget.start(trial)
        self.submit(trial)

    def suggest(self) -> Trial:
        """Start a new trial. If a limit on time or cost alone ends the run, the optimizer is told which share of the
        limit has been used."""
        if self.limit is None and self.request.fixed is None:
            return self.optimizer.suggest()
        limit = None if self.limit is None else self.limit()
        return Trial(self.optimizer, self.optimizer._start_trials(self.request, limit=limit)[0])

    def next_waiting(self) -> Trial | None:
        """Return the next waiting trial that is still pending, or None."""
        while self.waiting:
            trial = self.waiting.pop(0)
            if trial.number in self.optimizer._current_log().numbers("pending"):
                return trial
            self.n_trials -= 1
        return None

    def submit(self, trial: Trial) -> None:
        """Submit the evaluation of a trial."""
        fidelity = None if self.optimizer._problem.fidelity is None else trial.fidelity
        self.pace.submit(trial.number)
        try:
            curve = () if self.reports is None else (self.reports,)
            future = self.executor.submit(evaluate, self.f, trial.number, trial.params, fidelity, *curve)
        except Exception as error:
            _abandon(trial)
            raise self.executor_error(trial, error) from error
        self.running[future] = trial
        future.add_done_callback(self.finished.put)

    def next_finished(self, wait: bool) -> Future[Evaluation] | None:
        """Return a finished evaluation, or None.

        With `wait`, wait until an evaluation finishes or the deadline is reached.
        """
        if not wait and self.finished.empty():  # avoid the exception, which is slow, in the most frequent case
            return None
        while True:
            left = max(0.0, self.deadline - monotonic()) if wait else 0.0
            try:
                return self.finished.get(timeout=min(left, _MAX_WAIT))
            except queue.Empty:
                if left <= _MAX_WAIT:
                    return None
                if self.progress is not None:
                    self.update_forecast()
                    left = self.deadline - monotonic()
                    self.progress.update(left=left, in_flight=len(self.running), arriving=self.arriving)

    def update_forecast(self) -> None:
        """Update the forecast in the progress bar, if it is due and the optimizer's clock counts seconds."""
        if self.optimizer.clock == "seconds" and monotonic() >= self.forecast_due:
            delays = self.optimizer.delays_
            self.arriving = arriving_text(delays.now, delays.forecast())
            self.forecast_due = monotonic() + _FORECAST_EVERY

    def complete(self, future: Future[Evaluation]) -> None:
        """Report a finished evaluation to the optimizer, the log, the progress bar and the callbacks."""
        trial = self.running[future]
        try:
            evaluation = future.result()
        except Exception as error:
            # An error here is an error of the executor, because the evaluation contains any error that f raises.
            if self.may_retry(trial, error):
                del self.running[future]
                self.start_again(trial, error)
                return
            died = worker_died(error)
            if died is None:
                raise self.executor_error(trial, error) from error
            evaluation = _lost_evaluation(died)
        self.report(trial, evaluation)
        del self.running[future]
        self.pace.finished(trial.number, evaluation.duration)
        if "pace" not in self.warned and (advice := self.pace.advice(self.optimizer)) is not None:
            self.warn_once("pace", advice)
        if self.budget is not None:
            self.budget.end(trial)
        if evaluation.error is not None and not evaluation.caught:
            raise evaluation.error
        if self.progress is not None:
            best, left = self.best(), self.deadline - monotonic()
            # Count the next trial as in flight, so that the bar is drawn only once for the end of a trial and the start
            # of the next.
            to_start = self.n_trials - len(self.trials) if left > 0 else 0
            in_flight = int(min(self.n_workers, len(self.running) + to_start))
            self.update_forecast()
            counts = {"in_flight": in_flight, "failed": self.n_failed or None}
            self.progress.update(done=1, left=left, arriving=self.arriving, **best, **counts)
        for callback in self.callbacks:
            callback(self.optimizer, trial)
        self.end_if_all_fail_the_same(evaluation)
        self.end_if_all_lack_an_outcome(evaluation)

    def best(self) -> dict[str, Any]:
        """Return the best value, or the size of the front and its hypervolume, by name."""
        optimizer = self.optimizer
        if not optimizer._problem.front:
            return {"best": optimizer.best_value_}
        return {"front": len(optimizer.pareto_), "hypervolume": optimizer.hypervolume()}

    def may_retry(self, trial: Trial, error: Exception) -> bool:
        """Return whether an evaluation that the executor lost may be started again."""
        # These errors would occur again: the call was cancelled, cannot be started or cannot be pickled, or the
        # executor is broken.
        lasts = isinstance(error, (BrokenExecutor, CancelledError, WorkersDoNotStart)) or _is_of_pickling(error)
        return self.n_retried[trial.number] < self.retries and not (lasts and worker_died(error) is None)

    def start_again(self, trial: Trial, error: Exception) -> None:
        """Submit an evaluation again after the executor lost it; after the deadline, abandon its trial."""
        if monotonic() >= self.deadline:
            _abandon(trial)
            return
        self.n_retried[trial.number] += 1
        cause = worker_died(error) or format_error(error)
        message = f"the evaluation of trial {trial.number} was lost and is started again: {cause}"
        LOGGER.info(message)
        self.warn_once("retried", f"{message}; further ones do not warn")
        self.submit(trial)

    def report(self, trial: Trial, evaluation: Evaluation) -> None:
        """Report an evaluation; the trial stays pending after an interrupt or an error of the store."""
        if isinstance(evaluation.error, KeyboardInterrupt) or evaluation.stays_pending:
            return
        try:
            if self.reports is not None and (end := trial._record.ended_early):
                if end == "diverged":
                    self.diverged(trial, evaluation)
                else:
                    LOGGER.info("trial %d was stopped; %s", trial.number, _point_in_words(trial))
                # The curve of the objective ended early. The other outcomes count.
                values = evaluation.value if isinstance(evaluation.value, dict) else {}
                for by_name in (values, evaluation.std):
                    if isinstance(by_name, dict):
                        by_name.pop(self.f.of_curve or "", None)
                failed = tuple(name for name in evaluation.failed if name != self.f.of_curve)
                evaluation.value, evaluation.failed = values, failed
                if not evaluation.value and not evaluation.failed:
                    return
            for kind, note in evaluation.notes.items():
                self.warn_once(kind, f"trial {trial.number}: {note}; further ones do not warn")
            if evaluation.value is not None and evaluation.value != {}:
                self.observe(trial, evaluation.value, evaluation)
            if evaluation.value is None or evaluation.failed:
                self.fail(trial, evaluation)
        except AlreadyObserved as error:
            self.warn_once("reported elsewhere", f"{error}; that value stays")
        except StoreError as error:
            if evaluation.value is None:
                raise
            # The value may be expensive, and the user can still report it.
            value = f"the value of trial {trial.number}, which may still be pending, is {evaluation.value!r}"
            raise StoreError(f"{error}; {value}") from error

    def observe(self, trial: Trial, value: float | dict[str, float], evaluation: Evaluation) -> None:
        """Report a value, and the data that f returned with the value, to the optimizer and the logger."""
        std, cost, duration = evaluation.std, evaluation.cost, evaluation.duration
        final = value.get(self.f.of_curve or "") if isinstance(value, dict) else value
        if final is not None:
            self.check_curve(trial, final)
        given = ObserveArguments(value, Facts(std, cost, duration, attrs=evaluation.attrs))

        def notice(text: str) -> None:
            self.warn_once(text, f"{text}; further ones do not warn")

        self.optimizer._observe(trial.number, given, self.revision, None, notice)
        self.observe_added(trial, evaluation, notice)
        if LOGGER.isEnabledFor(logging.INFO):
            facts = {"std": std, "cost": cost, "duration": duration}
            known = [f"{name}={fact!r}" for name, fact in ({"value": value} | facts).items() if fact is not None]
            known.append(_point_in_words(trial))
            front = self.optimizer._numbers_in_front()
            known.append(f"best_value_={self.optimizer.best_value_!r}" if front is None else f"pareto_={front}")
            LOGGER.info("trial %d observed: %s", trial.number, ", ".join(known))

    def observe_added(self, trial: Trial, evaluation: Evaluation, notice: Callable[[str], None]) -> None:
        """Report the entries of a result that a revision during the run has declared as outcomes."""
        study = self.optimizer
        if not evaluation.undeclared or not isinstance(study, Study):
            return
        revision = study.revision
        names = study._problem_of(revision - 1).outcomes.keys() - {*self.f.outcomes}
        added = {name: y for name, y in evaluation.undeclared.items() if name in names and y is not None}
        if added:
            study._observe(trial.number, ObserveArguments(added, Facts()), revision, None, notice)

    def check_curve(self, trial: Trial, value: float) -> None:
        """Warn once if a value differs from the value of the reported curve."""
        declared = self.optimizer._problem.curve
        known = [] if declared is None else [y for y in trial.curve.values() if not math.isnan(y)]
        if declared is None or not known:
            return
        best = min if self.optimizer.direction == "minimize" else max
        expected = best(known) if declared.value == "best" else known[-1]
        if not math.isclose(value, expected, rel_tol=1e-6, abs_tol=1e-12):
            self.warn_once(
                "curve",
                f"f returned {value!r} for trial {trial.number}, and the {declared.value} value of its curve is "
                f"{expected!r}; the returned value is used, and further ones do not warn",
            )

    def fail(self, trial: Trial, evaluation: Evaluation) -> None:
        """Report a failure and its reason to the optimizer and the logger; warn at the first failure of each kind.

        If some outcomes have values, the others in `evaluation.failed` have failed.
        """
        if evaluation.error is None:
            failure, kind = evaluation.problem, "not a number"
        elif isinstance(evaluation.error, WorkerDied):
            times = self.n_retried[trial.number] + 1
            failure, kind = f"{evaluation.error}" + (f"; it was started {times} times" if times > 1 else ""), "died"
        else:
            failure, kind = f"f raised {format_error(evaluation.error)}", "raised"
        reason = evaluation.problem if evaluation.error is None else evaluation.error
        # If outcomes have values, the duration and the attrs were reported with these.
        seconds, attrs = (None, None) if evaluation.value else (evaluation.duration, attrs_as_json(evaluation.attrs))
        for name in evaluation.failed if evaluation.value is not None else (None,):
            given = (error_facts(reason), attrs, seconds, name)
            with suppress(*([] if name is None else [InvalidValue])):  # a revision may have removed the outcome
                self.optimizer._resolve("fail", [trial.number], given, self.revision)
        self.n_failed += 1
        if evaluation.error is not None and evaluation.caught:
            evaluation.error = without_objects(evaluation.error)
        self.failure, self.error = failure, evaluation.error
        of_outcomes = "" if evaluation.value is None else f"{list(evaluation.failed)} of "
        what = f"{of_outcomes}trial {trial.number}"
        if LOGGER.isEnabledFor(logging.INFO):
            LOGGER.info("%s failed: %s; %s", what, failure, _point_in_words(trial))
        if evaluation.error is None or evaluation.caught:
            self.warn_once(kind, f"{what} failed: {failure}; further ones do not warn")

    def diverged(self, trial: Trial, evaluation: Evaluation) -> None:
        """Count a trial whose curve diverged, and add the duration and the attrs of its evaluation."""
        trial.fail(duration=evaluation.duration, attrs=evaluation.attrs)
        self.n_failed += 1
        self.failure, self.error = str(trial.error), None
        if all(map(math.isnan, trial.curve.values())):
            # Curves may diverge at some points. A curve without any finite value is a defect of f.
            evaluation.place = Place("CurveDiverged", "", 0)
        LOGGER.info("trial %d failed: %s; %s", trial.number, self.failure, _point_in_words(trial))
        self.warn_once("diverged", f"trial {trial.number} failed: {self.failure}; further ones do not warn")

    def end_if_all_fail_the_same(self, evaluation: Evaluation) -> None:
        """Raise RunError if the first evaluations all failed in the same way, and the optimizer does not have a value.

        Two evaluations fail in the same way if they raise an error of the same type at the same line, or return invalid
        values of the same type.
        """
        n_first = max(_MIN_SAME_ERRORS, self.n_workers)
        if len(self.first) == n_first:
            return
        self.first.append(evaluation.place)
        place = evaluation.place
        same = len(self.first) == n_first and place is not None and self.first.count(place) == n_first
        if same and not self.optimizer._best_trials():
            raise RunError(
                f"the first {n_first} evaluations all failed in the same way: {self.failure}{place}; the run ends "
                "here, because the others would most likely fail, too"
            ) from evaluation.error

    def end_if_all_lack_an_outcome(self, evaluation: Evaluation) -> None:
        """Raise RunError if the first results all lack the objective or an outcome with bounds, and have entries that
        were not declared."""
        n_first = max(_MIN_SAME_ERRORS, self.n_workers)
        if len(self.absent) == n_first or not isinstance(evaluation.value, dict) or evaluation.stopped:
            return
        self.absent.append(evaluation.absent)
        goals = self.optimizer._problem.outcomes
        common = [name for name in evaluation.absent if all(name in each for each in self.absent)]
        lacking = [name for name in common if not isinstance(goals.get(name, Record()), Record)]
        if len(self.absent) == n_first and lacking:
            raise RunError(
                f"the first {n_first} results of f all lack {lacking}, and have {list(evaluation.undeclared)}, which "
                f"was not declared: correct the name. If {lacking[0]} is measured later, return {lacking[0]}=None, "
                "and further data as attrs={...}. The run ends here; the values are stored"
            )

    def warn_once(self, kind: str, message: str) -> None:
        """Give a warning, unless the run has already given a warning of this kind."""
        if kind not in self.warned:
            self.warned.add(kind)
            warn(message)

    def executor_error(self, trial: Trial, error: Exception) -> RunError:
        """Return the exception to raise for an error of the executor; add advice if the cause is known."""
        advice = ""
        if isinstance(error, BrokenExecutor):
            advice = (
                "; a worker was killed, ran out of memory, or could not import f (which must be defined in a module, "
                "not in a notebook or at the prompt); the trials that were running are still pending; "
                "processes=True, in place of executor, replaces workers that die"
            )
        elif isinstance(error, CancelledError):
            advice = "; the future was cancelled, or the executor shut down, from elsewhere"
        elif isinstance(error, WorkersDoNotStart):
            advice = f"; if f is defined in a notebook or not in a file, {PICKLING_ADVICE}"
        elif _is_of_pickling(error):
            advice = f"; {PICKLING_ADVICE}"
        elif isinstance(error, OSError) and error.errno == errno.EMFILE:
            advice = (
                f"; a worker process takes about 8 files: pass a smaller n_workers than {self.n_workers}, or raise the "
                "limit with ulimit -n"
            )
        name = type(self.executor).__name__
        return RunError(f"{name} could not evaluate trial {trial.number}: {format_error(error).rstrip('.')}{advice}")

    def finalize(self) -> None:
        """Report finished evaluations, and abandon the trials whose evaluations have not started.

        Other trials stay pending. If an evaluation cannot be stored, the others are stored before the error is raised.
        """
        refused: BelatedError | None = None
        for future, trial in self.running.items():
            try:
                self.finalize_one(future, trial)
            except StoreError:
                raise
            except BelatedError as error:
                refused = refused or error
        if refused is not None:
            raise refused

    def finalize_one(self, future: Future[Evaluation], trial: Trial) -> None:
        """Report an evaluation if it is finished; abandon its trial if it has not started."""
        if future.cancel():
            _abandon(trial)
        elif future.done():
            error = future.exception()
            died = None if error is None else worker_died(error)
            if error is None:
                self.report(trial, future.result())
            elif died is not None and self.n_retried[trial.number] >= self.retries:
                self.report(trial, _lost_evaluation(died))
            elif not isinstance(error, BrokenExecutor):
                _abandon(trial)

    def warn_missing(self) -> None:
        """Warn about trials that are pending because f did not return all outcomes."""
        if not self.optimizer._problem.outcomes:
            return
        missing = [trial.missing for trial in self.trials if trial.state == "pending" and trial.values]
        if missing:
            names = list(dict.fromkeys(name for each in missing for name in each))
            n = f"{len(missing)} trials of this run are" if len(missing) > 1 else "1 trial of this run is"
            warn(
                f"{n} pending, because outcomes are missing: {names}; report them by observe when they are known, or "
                "end the trials by fail or abandon"
            )

    def warn_pending(self) -> None:
        """Warn about evaluations that still run at the timeout."""
        numbers = [str(trial.number) for trial in self.running.values() if trial.state == "pending"]
        if numbers:
            warn(
                f"these trials still ran at the timeout and are pending: {', '.join(numbers)}; report a value with "
                "observe when it is known, or abandon them"
            )


def _is_of_pickling(error: Exception) -> bool:
    """Return whether an error means that the executor could not send a function or the result of a function."""
    # Pickling raises AttributeError if a function is not found by its name, and ImportError if a module is not found.
    text = format_error(error).lower()
    is_by_type = isinstance(error, (AttributeError, ImportError)) or is_of_ray_task(error)
    return is_by_type or "pickl" in text or "serializ" in text


def _lost_evaluation(died: WorkerDied) -> Evaluation:
    """Return the evaluation of a trial whose worker died: the trial has failed, independent of `catch`."""
    return Evaluation(error=died, caught=True, place=Place(WorkerDied.__qualname__, "", 0))


def _point_in_words(trial: Trial) -> str:
    """Return the point of a trial as text, for the log."""
    return f"params={trial.params!r}" if trial.index is None else f"index={trial.index}"


def _abandon(trial: Trial) -> None:
    with suppress(AlreadyObserved):
        trial.abandon()
