"""`maximize` and `minimize`: optimize a function, which the workers of an executor evaluate."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from datetime import timedelta
from functools import partial
from operator import itemgetter
from time import monotonic
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias

from belated._core import add_busy_workers
from belated.errors import InvalidSetting, RunError
from belated.optimizers.bayes import BayesOpt
from belated.optimizers.log import Limit
from belated.optimizers.optimizer import Optimizer
from belated.optimizers.problem import SpaceLike
from belated.optimizers.request import Request
from belated.optimizers.trial import Trial
from belated.optimizers.values import checked
from belated.run import arguments
from belated.run.arguments import PASSED_ON, BayesOptSettings, Direction
from belated.run.budget import Budget
from belated.run.curves import reports_for
from belated.run.evaluations import Evaluations
from belated.run.objective import objective
from belated.run.progress import progress_bar
from belated.run.result import Result, StopReason
from belated.run.stoppers import StopRun
from belated.run.total import Total
from belated.space.candidates import CandidatesLike
from belated.space.space import Space
from belated.study.study import Study
from belated.warn import logger

LOGGER = logger()

if TYPE_CHECKING:
    from typing_extensions import Unpack

Objective: TypeAlias = Callable[..., Any]
Catch: TypeAlias = type[BaseException] | Sequence[type[BaseException]]
Callback: TypeAlias = Callable[[Any, Trial], object]
Arguments = ParamSpec("Arguments")


def _optimize(
    direction: Direction,
    /,
    f: Objective,
    space: SpaceLike | None = None,
    *,
    candidates: CandidatesLike | None = None,
    optimizer: Optimizer | Study | None = None,
    n_trials: int | None = None,
    n_trials_total: int | None = None,
    timeout: float | timedelta | None = None,
    budget: float | None = None,
    n_workers: int | None = None,
    executor: Executor | None = None,
    processes: bool = False,
    retries: int = 0,
    retry_pending: bool = False,
    catch: Catch = Exception,
    callbacks: Iterable[Callback] = (),
    progress: bool | None = None,
    fixed: Mapping[Any, Any] | None = None,
    **settings: Unpack[BayesOptSettings],
) -> Result:
    chosen = arguments.chosen_optimizer(direction, space, candidates, optimizer, settings)
    names = list(chosen.domain) if isinstance(chosen.domain, Space) else []
    revision, outcomes, of_curve = chosen._n_read(), tuple(chosen._problem.outcomes), chosen._problem.objective
    function = objective(f, names, arguments.exception_types(catch), outcomes, of_curve)
    arguments.check_takes_fidelity(f, function, chosen)
    if n_trials is None and n_trials_total is None and timeout is None and budget is None:
        raise InvalidSetting(
            "n_trials, n_trials_total, timeout and budget are all missing: pass one, or the run would never end"
        )
    limit = math.inf if n_trials is None else arguments.count("n_trials", n_trials, 0)
    total = None
    if n_trials_total is not None:
        total = Total(chosen, arguments.count("n_trials_total", n_trials_total, 0))
    allowed = arguments.positive("budget", budget, "a finite number")
    spending = None if allowed is None else Budget(chosen, allowed)
    start = monotonic()
    seconds = arguments.positive_seconds("timeout", timeout)
    deadline = math.inf if seconds is None else start + seconds
    used = None
    if n_trials is None and total is None:
        used = partial(_used, start, seconds, spending)
    # Without fixed values, a request has the present problem, also after a revision during the run.
    request = Request(1, fixed=fixed, revision=None if fixed is None else revision)
    request.read_in(chosen._problem)  # checks the fixed values
    size = arguments.size(n_workers, executor)
    n_retries = arguments.count("retries", retries, 0)
    arguments.check_processes(processes, executor)
    # If an outcome of a trial is known, f has returned, and the other outcomes are reported later.
    unknown = (trial for trial in chosen.pending if not trial.values)
    waiting = list(unknown) if checked(retry_pending, bool, "retry_pending") else []
    functions = arguments.functions(callbacks, chosen)
    arguments.check_picklable(f, executor, processes)
    expected = len(waiting) + (limit if total is None else min(limit, max(total.left(), 0)))
    limit += len(waiting)
    bar = progress_bar(progress, None if expected == math.inf else int(expected))
    pool = executor if executor is not None else arguments.own_pool(size, timeout, processes)
    reports, server = reports_for(chosen, pool, executor is None, function.is_generator)
    # While one worker waits for a trial, the other workers keep processors of this machine busy, unless they belong to
    # a given executor and may run elsewhere.
    busy = size - 1 if executor is None else 0
    evaluations = Evaluations(
        function,
        chosen,
        pool,
        size,
        limit,
        total,
        spending,
        deadline,
        n_retries,
        functions,
        bar,
        used,
        waiting,
        request,
        reports=reports,
        revision=revision,
    )

    def result(stop_reason: StopReason) -> Result:
        return Result(chosen, evaluations.trials, stop_reason, monotonic() - start, _per(chosen, used))

    stop_reason: StopReason
    interrupt: KeyboardInterrupt | None = None
    add_busy_workers(busy)
    try:
        try:
            stop_reason = evaluations.run()
        except KeyboardInterrupt as error:
            stop_reason, interrupt = "interrupted", error
        except StopRun as stop:
            stop_reason = "stopped"
            LOGGER.info("a callback ended the run: %s", stop)
        finally:
            try:
                evaluations.finalize()
            finally:
                add_busy_workers(-busy)
                if server is not None:
                    server.close()
                if executor is None:
                    pool.shutdown(wait=all(future.done() for future in evaluations.running), cancel_futures=True)
                if bar is not None:
                    bar.close()
    except BaseException as error:
        _attach(error, result("error"))
        raise
    outcome = result(stop_reason)
    LOGGER.info("the run ended by %s: %r", stop_reason, outcome)
    if stop_reason == "timeout":
        evaluations.warn_pending()
    evaluations.warn_missing()
    if stop_reason == "n_trials" and total is not None:
        total.warn_pending([trial.number for trial in evaluations.trials])
    if interrupt is not None and not _is_at_a_prompt():
        # f may call maximize itself. Overwrite the result of this inner run with the result of the outer run.
        interrupt.result = outcome  # type: ignore[attr-defined]
        raise interrupt
    # If the user or a callback ended the run, the run may not have a value. Check the trials last, because there may be
    # many.
    is_over = stop_reason not in ("interrupted", "stopped") and outcome.n_failed
    if is_over and all(t.value is None and not t.values and t.state != "stopped" for t in outcome.trials):
        # An evaluation may still run after the curve of its trial diverged.
        failure = evaluations.failure or next(str(t.error) for t in outcome.trials[::-1] if t.state == "failed")
        failed = RunError(
            f"none of {len(outcome.trials)} trials succeeded, and {outcome.n_failed} failed: the last time {failure}"
        )
        failed.result = outcome
        raise failed from evaluations.error
    return outcome


def _used(start: float, seconds: float | None, budget: Budget | None) -> Limit:
    """Return the limit of which the larger share has been used, and this share."""
    shares: list[Limit] = []
    if seconds is not None:
        shares.append(("time", min((monotonic() - start) / seconds, 1.0)))
    if budget is not None:
        shares.append(("cost", budget.used))
    return max(shares, key=itemgetter(1))


def _per(optimizer: Optimizer | Study, used: Callable[[], Limit] | None) -> Any:
    """Return the resource per unit of which the improvement is maximised; None for other acquisitions."""
    per: Any = getattr(optimizer._optimizer._settings().get("acquisition"), "per", None)
    return per if per != "auto" else "trial" if used is None else used()[0]


def _attach(error: BaseException, result: Result) -> None:
    """Attach the result to an exception that ends the run."""
    # f may itself call maximize: keep the result that this inner run attached to its error. Some exceptions do not
    # allow new attributes.
    if not isinstance(getattr(error, "result", None), Result):
        with suppress(Exception):
            error.result = result  # type: ignore[attr-defined]


def _is_at_a_prompt() -> bool:
    """Return whether this process is a notebook or an interactive interpreter, instead of a script."""
    return hasattr(sys, "ps1")


def _with_arguments_of(
    optimize: Callable[Concatenate[Direction, Arguments], Result],
) -> Callable[[Callable[..., Result]], Callable[Arguments, Result]]:
    """Decorate a function so that type checkers, help() and Jupyter show the arguments of `optimize`, and those that it
    passes on to `BayesOpt`."""
    signature = inspect.signature(optimize)
    _, *parameters, _ = signature.parameters.values()
    own = inspect.signature(BayesOpt).parameters
    passed_on = [own[name].replace(kind=inspect.Parameter.KEYWORD_ONLY) for name in PASSED_ON]
    # The signature omits types, because the docstring has them.
    shown = [each.replace(annotation=inspect.Parameter.empty) for each in [*parameters, *passed_on]]

    def decorate(function: Callable[..., Result]) -> Callable[Arguments, Result]:
        function.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        return function

    return decorate


@_with_arguments_of(_optimize)
def maximize(*args: Any, **kwargs: Any) -> Result:
    """Find the parameters at which f has its highest value; parallel workers evaluate f.

    Whenever a worker is free, it gets a new trial. The choice of a trial takes the pending trials into account, so a
    worker does not wait for the other workers.

    Parameters
    ----------
    f : callable
        f(params), where params is a dict of values by name (of type ``bl.Params``). For candidates without names f(x),
        where x is a row of shape (d,). An argument named ``trial`` receives a `RunningTrial`. f returns a finite number
        (or an array with one element), or a mapping with ``value`` and optional further keys. ``std`` is the standard
        deviation of the value's noise, ``cost`` is the cost of the evaluation, and ``attrs`` is a dict of further data
        to store. A pair of numbers is not allowed. If outcomes were declared, f returns a mapping of the outcomes that
        are known, such as ``{"error": 0.1, "memory": 3.2}``, or this mapping as ``value``. The trial stays pending
        until the other outcomes are reported with `observe`, and the worker takes another trial. Outcomes that are None
        or NaN are missing, too. Other outcomes that are not finite numbers have failed. ``std``, ``cost`` and ``attrs``
        may stand beside the outcomes. Entries that were not declared become attrs, with a warning.
    space : mapping, optional
        Name → `Real`, `Integer`, `Ordinal`, `Categorical`, a constant, or their shorthand (see `Space`).
    candidates : array-like of shape (N, d), DataFrame, mapping of columns, or list of dicts, optional
        A finite set of points, as for `RandomSearch`. Pass either `space` or `candidates`.
    optimizer : Optimizer or Study, optional
        An existing optimizer, which replaces space, candidates and settings, as in ``bl.BayesOpt(space, window=20)``.
        Its pending trials do not change, unless `retry_pending` is True.
    n_trials : int, optional
        The number of trials to start in this run. With 0, the run returns immediately. None: without limit.
    n_trials_total : int, optional
        Start trials until the optimizer has this number of suggested trials; use this argument to continue an
        interrupted run. Trials that other processes of a study suggested also count, but abandoned trials do not count.
        Pending trials count even if the process that evaluated them has died; see `retry_pending`.
    timeout : float or timedelta, optional
        The maximum duration of the run; a number is in seconds. If evaluations are still running at the timeout, their
        trials stay pending.
    budget : float, optional
        The total cost that the trials of this run may have. The cost of a trial is the cost that f returns. If f does
        not return a cost, the cost is the declared cost of the optimizer's `Fidelity`, or 1. Failed and stopped
        trials are also charged. A trial is started only if the budget covers its declared cost and the costs of the
        running trials. The budget is therefore exceeded only if f returns a cost above the declared cost.
    n_workers : int, optional
        The number of evaluations that run at the same time. The default is the number of workers of the executor, or 1
        without an executor. If neither an executor nor processes are used, f is called in threads. If there is also
        only one worker and no timeout, f is called in the thread of the caller.
    executor : concurrent.futures.Executor, optional
        The executor that calls f, for example of processes, loky, MPI or Dask. For Dask, pass
        ``client.get_executor(pure=False)``; with ``pure=True`` Dask evaluates equal points only once. The run does not
        shut down the executor.
    processes : bool
        Whether to call f in `n_workers` processes, which the run starts. A process that dies is replaced. All processes
        end with the run. The processes import f, so define f in a module, or in a script that calls this function under
        ``if __name__ == "__main__":``. A function that is defined in a notebook or at a prompt is refused.
    retries : int
        If a worker dies, or the executor loses an evaluation for another reason, the evaluation is started again at
        most this number of times. If the worker dies again after the last restart, the trial has failed, independent of
        `catch`. Any other error of the executor ends the run. If f raises an error, the evaluation is not started
        again.
    retry_pending : bool, default False
        Whether to evaluate first the trials that are pending at the start of the run, for example after a process died.
        Trials of which an outcome is known are left out, because f has returned. The other trials keep their numbers
        and do not count in `n_trials`. Other processes must not be evaluating these
        trials: otherwise a trial is evaluated twice, and only its first value is kept.
    catch : exception class or sequence of them
        Exceptions of f after which the run continues; the trial has failed. Any other exception is raised after the
        trial has been marked as failed. If the first evaluations all raise the same error, the run ends with a
        `RunError`, unless the class of the error (or a base class other than Exception) is named here.
    callbacks : iterable of callable
        Functions that are called as callback(optimizer, trial) after every observed or failed trial, in the thread of
        the caller. The value of a failed trial is None. If outcomes were declared, a trial of which only some outcomes
        are known counts as observed. To end the run, raise `StopRun` in a callback, or pass `NoImprovement` or
        `ValueReached`.
    progress : bool, optional
        Whether to show a progress bar, which requires tqdm. None: show a progress bar in a terminal or notebook if tqdm
        is installed.
    fixed : mapping, optional
        The values that the new trials of this run have, as for `Optimizer.suggest`. Trials that are pending at the
        start of the run keep their values.
    acquisition, initial, constraints, seed, curve, stopping, outcomes
        As for `BayesOpt`.

    Returns
    -------
    Result
        The result of the run. `best_params_` and `best_value_` belong to the trial with the best value; use
        `recommend()` if values are noisy.

    Warns
    -----
    BelatedWarning
        A warning is given at the first exception of f and at the first invalid result of f; in both cases the trial
        has failed. A warning is also given when a worker dies for the first time, and if evaluations are still running
        at the timeout. Another warning is given if `n_trials_total` is reached, but trials from before the run are
        still pending, or if trials of the run are pending because outcomes are missing.

    Raises
    ------
    UnknownArgument
        This function and `BayesOpt` do not have the argument.
    InvalidSetting
        An argument is invalid, for example a function that cannot be called with one dict, or an optimizer that
        minimizes.
    InvalidSpace
        The space or the candidates cannot be searched.
    RunError
        All trials failed. The error is also raised if the optimizer does not have a value and all of the first trials
        raised the same error at the same line, or returned invalid values of the same type. The number of these first
        trials is the number of workers, but at least 3. Errors that `catch` names do not count. A run also ends
        if these results all lack the objective or an outcome with bounds and have undeclared entries. The error is also
        raised if the executor does not work, for example because a worker process of the given pool died; the running
        trials then stay pending.
    ImportError
        progress is True and tqdm is not installed.

    Notes
    -----
    If an exception ends a run, its attribute ``result`` contains the result so far. Ctrl-C also ends a run; before the
    end, results that have arrived are reported. In a script, ``KeyboardInterrupt`` is raised with the result. In a
    notebook, and at the prompt of Python or IPython, the result is returned, and its `stop_reason` is "interrupted". A
    second Ctrl-C during the end of the run is always raised.

    The logger ``logging.getLogger("belated")`` receives each result at the level INFO and each warning at WARNING.

    When a run ends early, results that have arrived are reported. Evaluations that have not started are cancelled, and
    their trials are abandoned. The run does not wait for running evaluations, unless it ends because a trial could not
    be started. The trials of running evaluations stay pending, and values may be reported later by
    ``optimizer.observe``. Threads cannot be stopped: each thread continues until f returns or the program ends, and the
    program does not wait for these threads at its exit. With ``processes=True``, the processes are ended by SIGTERM; a
    process that is still running after a few seconds is killed.

    With one worker, the same seed gives the same trials. With several workers, the trials also depend on the order of
    the results. If only `timeout` ends the run, they also depend on the durations of f: see `per` of `LogEI`.

    Examples
    --------
    >>> import belated as bl
    >>> def f(params):
    ...     return -((params["x"] - 0.3) ** 2)
    >>> def show(optimizer, trial):  # a callback
    ...     if trial.value is None:  # it failed
    ...         print(trial.number, trial.error)
    >>> result = bl.maximize(f, {"x": (0.0, 1.0)}, n_trials=20, seed=0, callbacks=[show])
    >>> abs(result.best_params_["x"] - 0.3) < 0.05
    True

    A function that also returns the noise of each value, and an attribute:

    >>> def measured(params, trial):
    ...     return {"value": params["x"], "std": 0.1, "attrs": {"machine": trial.number % 2}}
    >>> bl.maximize(measured, {"x": (0.0, 1.0)}, n_trials=3, seed=0).trials[2].attrs
    {'machine': 0}
    """
    arguments.check_names("maximize", args, kwargs)
    return _optimize("maximize", *args, **kwargs)


@_with_arguments_of(_optimize)
def minimize(*args: Any, **kwargs: Any) -> Result:
    """Find the parameters at which f has its lowest value; all other behaviour is as in `maximize`.

    Examples
    --------
    >>> import belated as bl
    >>> best = bl.minimize(lambda params: (params["x"] - 0.3) ** 2, {"x": (0.0, 1.0)}, n_trials=20, seed=0)
    >>> best.best_value_ < 0.01
    True
    """
    arguments.check_names("minimize", args, kwargs)
    return _optimize("minimize", *args, **kwargs)
