"""`maximize` and `minimize`: a function of params, evaluated by the workers of an executor."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias

from numpy.typing import ArrayLike

from belated._core import InvalidSetting
from belated.optimizers.bayes import BayesOpt
from belated.optimizers.optimizer import Optimizer
from belated.optimizers.problem import SpaceLike
from belated.optimizers.trial import Trial
from belated.run import arguments
from belated.run.arguments import NOT_PASSED_ON, BayesOptSettings, Direction
from belated.run.budget import Budget
from belated.run.evaluations import Evaluations, RunError
from belated.run.objective import objective
from belated.run.progress import progress_bar
from belated.run.result import Result, StopReason
from belated.run.stoppers import StopRun
from belated.run.total import Total
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
    candidates: ArrayLike | None = None,
    optimizer: Optimizer | Study | None = None,
    n_trials: int | None = None,
    n_trials_total: int | None = None,
    timeout: float | None = None,
    budget: float | None = None,
    n_workers: int | None = None,
    executor: Executor | None = None,
    processes: bool = False,
    retries: int = 0,
    retry_pending: bool = False,
    catch: Catch = Exception,
    callbacks: Iterable[Callback] = (),
    progress: bool | None = None,
    **settings: Unpack[BayesOptSettings],
) -> Result:
    chosen = arguments.chosen_optimizer(direction, space, candidates, optimizer, settings)
    names = list(chosen.domain_) if isinstance(chosen.domain_, Space) else []
    function = objective(f, names, arguments.exception_types(catch))
    arguments.check_takes_fidelity(f, function, chosen)
    if n_trials is None and n_trials_total is None and timeout is None and budget is None:
        raise InvalidSetting(
            "n_trials, n_trials_total, timeout and budget are all missing: pass one, or the run would never end"
        )
    limit = math.inf if n_trials is None else arguments.count("n_trials", n_trials, 0)
    total = None
    if n_trials_total is not None:
        total = Total(chosen, arguments.count("n_trials_total", n_trials_total, 0))
    spending = None if budget is None else Budget(chosen, arguments.budget_limit(budget))
    start = monotonic()
    deadline = math.inf if timeout is None else start + arguments.timeout_seconds(timeout)
    size = arguments.size(n_workers, executor)
    n_retries = arguments.count("retries", retries, 0)
    arguments.check_processes(processes, executor)
    arguments.check_retry_pending(retry_pending)
    functions = arguments.functions(callbacks)
    arguments.check_picklable(f, executor, processes)
    waiting = chosen.pending_ if retry_pending else []
    expected = len(waiting) + (limit if total is None else min(limit, max(total.left(), 0)))
    limit += len(waiting)
    bar = progress_bar(progress, None if expected == math.inf else int(expected))
    pool = executor if executor is not None else arguments.own_pool(size, timeout, processes)
    evaluations = Evaluations(
        function, chosen, pool, size, limit, total, spending, deadline, n_retries, functions, bar, waiting
    )

    def result(stop_reason: StopReason) -> Result:
        return Result(chosen, evaluations.trials, stop_reason, monotonic() - start)

    stop_reason: StopReason
    interrupt: KeyboardInterrupt | None = None
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
    if stop_reason == "n_trials" and total is not None:
        total.warn_pending([trial.number for trial in evaluations.trials])
    if interrupt is not None and not _is_at_a_prompt():
        # This overwrites the result of an inner run: if f calls maximize itself, the script gets the result of the
        # outer run.
        interrupt.result = outcome  # type: ignore[attr-defined]
        raise interrupt
    # If the user ended a run, it may have no value. Its trials are read last, because they may be many.
    is_over = stop_reason not in ("interrupted", "stopped") and outcome.n_failed_
    if is_over and all(t.value is None for t in outcome.trials):
        failed = RunError(
            f"none of {len(outcome.trials)} trials succeeded, and {outcome.n_failed_} failed: "
            f"the last time {evaluations.failure}"
        )
        failed.result = outcome
        raise failed from evaluations.error
    return outcome


def _attach(error: BaseException, result: Result) -> None:
    """Attach the result to an exception that ends the run."""
    # f may call maximize itself: an error of that run has its own result. Some exceptions do not take attributes.
    if not isinstance(getattr(error, "result", None), Result):
        with suppress(Exception):
            error.result = result  # type: ignore[attr-defined]


def _is_at_a_prompt() -> bool:
    """Whether this process has a prompt: a notebook or an interactive interpreter has one, a script has not."""
    return hasattr(sys, "ps1")


def _with_arguments_of(
    optimize: Callable[Concatenate[Direction, Arguments], Result],
) -> Callable[[Callable[..., Result]], Callable[Arguments, Result]]:
    """Decorate a function so that type checkers, help() and Jupyter show the arguments of `optimize` and BayesOpt."""
    signature = inspect.signature(optimize)
    _, *parameters, _ = signature.parameters.values()
    own = inspect.signature(BayesOpt).parameters
    passed_on = [own[name].replace(kind=inspect.Parameter.KEYWORD_ONLY) for name in own if name not in NOT_PASSED_ON]
    # The docstring has the types, as with optimizers.
    shown = [each.replace(annotation=inspect.Parameter.empty) for each in [*parameters, *passed_on]]

    def decorate(function: Callable[..., Result]) -> Callable[Arguments, Result]:
        function.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        return function

    return decorate


@_with_arguments_of(_optimize)
def maximize(*args: Any, **kwargs: Any) -> Result:
    """Find the parameters with the highest value of f, evaluated on parallel workers.

    Whenever a worker is free, it gets a new trial chosen with the pending trials in mind: no worker waits for another.

    Parameters
    ----------
    f : callable
        f(params), with a dict of values by name (as a type, ``bl.Params``); for candidates f(x), with a row of shape
        (d,). An argument named ``trial`` receives a `RunningTrial`. f returns one finite number (or an array with one
        element), or a mapping with ``value`` and optionally ``std``, the standard deviation of the value's noise,
        ``cost``, and ``attrs``, a dict of anything else to keep. Two numbers without names are refused.
    space : mapping, optional
        Name → `Real`, `Integer`, `Ordinal`, `Categorical`, a constant, or their shorthand (see `Space`).
    candidates : array-like of shape (N, d), optional
        Choose among rows of this array instead.
    optimizer : Optimizer or Study, optional
        The optimizer to continue with, in place of space, candidates and settings. Its pending trials do not change,
        unless `retry_pending` is True.
    n_trials : int, optional
        How many trials to start, besides the trials that the optimizer has; 0 returns at once. None: no limit.
    n_trials_total : int, optional
        Start trials until this number has been suggested, to continue an interrupted run. It counts the trials of the
        optimizer, including trials that other processes of a study suggest, but not abandoned trials. Pending trials
        also count, even if their process died: see `retry_pending`.
    timeout : float, optional
        Seconds until the run ends, even if evaluations are still running; their trials stay pending.
    budget : float, optional
        The total cost that the trials of this run may have. A trial is charged the cost that f returns with its value,
        else the cost that the `Fidelity` of the optimizer declares, else 1; failed trials are charged, too. A trial is
        started only if the budget covers its declared cost and the costs of the running trials. The budget is therefore
        exceeded only by trials that report more than is declared.
    n_workers : int, optional
        How many evaluations run at a time. The default is the number of the executor's workers, or 1 without an
        executor; then f is called in this thread unless there is a timeout. More than 1 calls f in threads.
    executor : concurrent.futures.Executor, optional
        Where f is called: processes, loky, MPI, Dask (``client.get_executor(pure=False)``, because otherwise Dask
        evaluates equal points once). The run does not shut it down.
    processes : bool
        Call f in `n_workers` processes that the run starts. If one dies, it is replaced; all end with the run. They
        import f, so define it in a module, or in a script that calls this under ``if __name__ == "__main__":``.
    retries : int
        How often the evaluation of a trial is restarted, under the same number, if its worker dies or the executor
        loses it for another reason. After that, if its worker died, the trial has failed for any `catch`; any other
        error of the executor ends the run. Errors that f raises are not retried.
    retry_pending : bool, default False
        Evaluate first, under their numbers, the trials that are pending when the run begins, besides `n_trials`: use it
        to continue after a process died. Other processes must not be evaluating these trials, because each would then
        be evaluated twice and keep only its first value.
    catch : exception class or sequence of them
        Exceptions of f after which the run continues; the trial has failed. Any other exception is raised, after the
        trial has been marked as failed.
    callbacks : iterable of callable
        Each is called in this thread as callback(optimizer, trial) after every observed or failed trial (a failed one
        has the value None). Raise `StopRun` in it to end the run, or pass `NoImprovement` or `ValueReached`.
    progress : bool, optional
        Show a progress bar, which needs tqdm. None: show it if tqdm is installed and this is a terminal or notebook.
    **settings
        Further arguments of `BayesOpt`, such as seed.

    Returns
    -------
    Result
        With `best_params_`, `best_value_`, and `recommend()` for noisy values.

    Warns
    -----
    BelatedWarning
        At the first exception of f, and at the first invalid result of f; in both cases the trial has failed. At the
        first death of a worker. Also if evaluations are still running at the timeout, and if `n_trials_total` is
        reached while trials from before the run are still pending.

    Raises
    ------
    UnknownArgument
        Neither this function nor `BayesOpt` has the argument.
    InvalidSetting
        An argument is invalid, for example a function that cannot be called with one dict, or an optimizer that
        minimizes.
    InvalidSpace
        The space or the candidates cannot be searched.
    RunError
        All trials failed. Or there is no value, and the first trials, as many as there are workers and at least 3, all
        raised the same error at the same line, or all returned unusable values of one type. Or the executor does not
        work, for example because a worker process of a given pool died; the running trials then stay pending.
    ImportError
        progress is True and tqdm is not installed.

    Notes
    -----
    Every exception that ends a run has the result so far in its attribute ``result``. Ctrl-C also ends a run: results
    that have arrived are reported first. Then a script gets the ``KeyboardInterrupt``, with the result, and ends with a
    non-zero exit code unless it handles it. In a notebook, and at the prompt of Python or IPython, the result is
    returned, with "interrupted" as its `stop_reason`. A second Ctrl-C, while the first is handled, is always raised.

    The logger ``logging.getLogger("belated")`` gets each result at the level INFO and each warning at WARNING.

    When a run ends early, results that have arrived are reported; evaluations that have not started are cancelled, and
    their trials abandoned. The run does not wait for running evaluations. Their trials stay pending, and a value may
    still be reported by ``optimizer.observe``. Threads cannot be stopped: they finish f, and Python waits for them at
    exit. The processes of ``processes=True`` are ended by SIGTERM, and killed if they do not end within seconds.

    With one worker, the same seed gives the same trials. With more, they also depend on the order of the results.

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
    """Find the parameters with the lowest value of f; all other behaviour is as in `maximize`.

    Examples
    --------
    >>> import belated as bl
    >>> best = bl.minimize(lambda params: (params["x"] - 0.3) ** 2, {"x": (0.0, 1.0)}, n_trials=20, seed=0)
    >>> best.best_value_ < 0.01
    True
    """
    arguments.check_names("minimize", args, kwargs)
    return _optimize("minimize", *args, **kwargs)
