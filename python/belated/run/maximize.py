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
        # Also where f runs maximize itself: the script then gets the result of the outer run.
        interrupt.result = outcome  # type: ignore[attr-defined]
        raise interrupt
    # A run that the user ended may well be without a value. Its trials are read last, as there may be many.
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
    """Leave the result at an exception that ends the run."""
    # f may run maximize itself: an error of that run has its own result. And not every exception takes attributes.
    if not isinstance(getattr(error, "result", None), Result):
        with suppress(Exception):
            error.result = result  # type: ignore[attr-defined]


def _is_at_a_prompt() -> bool:
    """Whether this process has a prompt, as a notebook and an interactive interpreter have, and a script has not."""
    return hasattr(sys, "ps1")


def _with_arguments_of(
    optimize: Callable[Concatenate[Direction, Arguments], Result],
) -> Callable[[Callable[..., Result]], Callable[Arguments, Result]]:
    """A decorator: type checkers, help() and Jupyter show the arguments of `optimize`, and of BayesOpt, by name."""
    signature = inspect.signature(optimize)
    _, *parameters, _ = signature.parameters.values()
    own = inspect.signature(BayesOpt).parameters
    passed_on = [own[name].replace(kind=inspect.Parameter.KEYWORD_ONLY) for name in own if name not in NOT_PASSED_ON]
    # Types stand in the docstring, as with optimizers.
    shown = [each.replace(annotation=inspect.Parameter.empty) for each in [*parameters, *passed_on]]

    def decorate(function: Callable[..., Result]) -> Callable[Arguments, Result]:
        function.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        return function

    return decorate


@_with_arguments_of(_optimize)
def maximize(*args: Any, **kwargs: Any) -> Result:
    """Find the parameters with the highest value of f, evaluated on parallel workers.

    Whenever a worker is free it gets a new trial, chosen with the others pending: no worker waits for another.

    Parameters
    ----------
    f : callable
        f(params), with a dict of values by name (as a type, ``bl.Params``); for candidates f(x), with a row of shape
        (d,). A parameter named ``trial`` gets a `RunningTrial`. Returns one finite number (an array with one element
        will do), or a mapping with ``value`` and optionally ``std``, the standard deviation of the value's noise,
        ``cost``, and ``attrs``, a dict of anything else to keep. Two numbers without names are refused.
    space : mapping, optional
        Name → `Real`, `Integer`, `Ordinal`, `Categorical`, a constant, or their shorthand (see `Space`).
    candidates : array-like of shape (N, d), optional
        Choose among rows of this array instead.
    optimizer : Optimizer or Study, optional
        Continue with this one, in place of space, candidates and settings. Trials that it has pending are left
        as they are, unless `retry_pending` is True.
    n_trials : int, optional
        How many trials to start, besides those that the optimizer has; 0 returns at once. None: until another end.
    n_trials_total : int, optional
        Start trials until this number has been suggested, counting those that the optimizer has and those that other
        processes of a study suggest, but not abandoned ones: for going on with an interrupted run. Pending ones count,
        also those of a process that died: see `retry_pending`.
    timeout : float, optional
        Seconds until the run ends, whether or not evaluations are still running: their trials stay pending.
    budget : float, optional
        What the trials of this run may cost together. A trial is charged the cost that f returns with its value, else
        what the `Fidelity` of the optimizer declares, else 1; a failed one, too. One is started only if its declared
        cost fits in beside the costs of the running trials. So the budget is exceeded only by trials that report
        more than is declared.
    n_workers : int, optional
        How many evaluations run at a time. By default as many as the executor has workers; without an executor 1,
        and f is called in this thread unless there is a timeout. More than 1 calls f in threads.
    executor : concurrent.futures.Executor, optional
        Where f is called: processes, loky, MPI, Dask (``client.get_executor(pure=False)``: otherwise it evaluates
        equal points once). It is not shut down.
    processes : bool
        Call f in `n_workers` processes of the run's own. One that dies is replaced, and they end with the run. They
        import f: it is defined in a module, or in a script that calls this under ``if __name__ == "__main__":``.
    retries : int
        How often the evaluation of a trial is started again, under the same number, where its worker dies or the
        executor loses it otherwise. After that, a trial whose worker died has failed for any `catch`, and any
        other error of the executor ends the run. What f raises is not tried again.
    retry_pending : bool, default False
        Evaluate first, under their numbers, the trials that the optimizer has pending when the run begins, besides
        `n_trials`: for going on after a process that died. Other processes must not be evaluating them, because each
        would be evaluated twice; its first value stays.
    catch : exception class or sequence of them
        What f may raise: the trial has failed, and the run continues. Anything else is raised, after the trial has
        been marked as failed.
    callbacks : iterable of callable
        Each is called in this thread as callback(optimizer, trial) after every trial that was observed or failed
        (then its value is None). Raise `StopRun` there to end the run, or pass `NoImprovement` or `ValueReached`.
    progress : bool, optional
        Show a progress bar, which needs tqdm. None: if tqdm is installed and this is a terminal or notebook.
    **settings
        Further arguments of `BayesOpt`, such as seed.

    Returns
    -------
    Result
        With `best_params_`, `best_value_`, and `recommend()` for noisy values.

    Warns
    -----
    BelatedWarning
        The first time that f raises, and the first time that it returns something that is not usable. In both cases
        the trial has failed. The first time that a worker dies. Also if evaluations are still running at the timeout,
        and if `n_trials_total` is reached with trials that were pending before the run and still are.

    Raises
    ------
    UnknownArgument
        An argument that neither this function nor `BayesOpt` has.
    InvalidSetting
        An argument that is not usable, such as a function that cannot be called with one dict; an optimizer that
        minimizes.
    InvalidSpace
        A space or candidates that cannot be searched.
    RunError
        All trials failed; or the first ones, as many as there are workers and at least 3, all raised the same at the
        same line or all returned unusable values of one type, and there is no value; or the executor does not work, for
        example because a worker process of a pool that was passed in died. The trials that were running are then still
        pending.
    ImportError
        progress is True and tqdm is not installed.

    Notes
    -----
    Every exception that ends a run has the result so far as its attribute ``result``. Ctrl-C ends a run, too: results
    that have arrived are reported first. Then a script gets the ``KeyboardInterrupt``, with the result, and ends with a
    non-zero exit code unless it handles it. In a notebook, and at the prompt of Python or IPython, the result is
    returned, with "interrupted" as its `stop_reason`. A second Ctrl-C, while the first is handled, is always raised.

    The logger ``logging.getLogger("belated")`` gets each result at the level INFO and each warning at WARNING.

    When a run ends early, results that have arrived are reported, and evaluations that have not started are cancelled
    and their trials abandoned. Evaluations that are running are not waited for. Their trials stay pending, and a value
    may still be reported by ``optimizer.observe``. Threads cannot be stopped: they finish f, and Python waits for that
    at exit. The processes of ``processes=True`` are ended by SIGTERM, and killed where they do not end within seconds.

    With one worker, the same seed gives the same trials. With more, they depend on the order of the results as well.

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

    With the noise of each value, and something to remember:

    >>> def measured(params, trial):
    ...     return {"value": params["x"], "std": 0.1, "attrs": {"machine": trial.number % 2}}
    >>> bl.maximize(measured, {"x": (0.0, 1.0)}, n_trials=3, seed=0).trials[2].attrs
    {'machine': 0}
    """
    arguments.check_names("maximize", args, kwargs)
    return _optimize("maximize", *args, **kwargs)


@_with_arguments_of(_optimize)
def minimize(*args: Any, **kwargs: Any) -> Result:
    """Find the parameters with the lowest value of f; everything else is as in `maximize`.

    Examples
    --------
    >>> import belated as bl
    >>> best = bl.minimize(lambda params: (params["x"] - 0.3) ** 2, {"x": (0.0, 1.0)}, n_trials=20, seed=0)
    >>> best.best_value_ < 0.01
    True
    """
    arguments.check_names("minimize", args, kwargs)
    return _optimize("minimize", *args, **kwargs)
