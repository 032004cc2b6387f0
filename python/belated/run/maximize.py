"""`maximize` and `minimize`: a function of params, evaluated by the workers of an executor."""

from __future__ import annotations

import difflib
import inspect
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import fields
from multiprocessing.reduction import ForkingPickler
from reprlib import repr as short_repr
from time import monotonic
from typing import Any, Concatenate, Literal, ParamSpec, TypeAlias

from numpy.typing import ArrayLike

from belated._core import InvalidSetting
from belated.optimizers.bayes import BayesOpt
from belated.optimizers.names import nearest_argument
from belated.optimizers.optimizer import Optimizer
from belated.optimizers.problem import SpaceLike
from belated.optimizers.trial import Trial
from belated.run.evaluations import PICKLING_ADVICE, CallingThread, Evaluations, RunError, StopRun, format_error
from belated.run.result import Result, StopReason
from belated.space.arguments import finite, whole_number
from belated.study.study import Study

Objective: TypeAlias = Callable[[Any], float]
Catch: TypeAlias = type[BaseException] | Sequence[type[BaseException]]
Callback: TypeAlias = Callable[[Any, Trial], object]
Direction: TypeAlias = Literal["maximize", "minimize"]
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
    timeout: float | None = None,
    n_workers: int | None = None,
    executor: Executor | None = None,
    catch: Catch = Exception,
    callbacks: Iterable[Callback] = (),
    progress: bool | None = None,
    **settings: Any,
) -> Result:
    chosen = _chosen_optimizer(direction, space, candidates, optimizer, settings)
    if not callable(f):
        raise InvalidSetting(f"f={short_repr(f)} is not usable: pass a function of the params")
    if n_trials is None and timeout is None:
        raise InvalidSetting("n_trials and timeout are both missing: pass one of them, or the run would never end")
    total = None if n_trials is None else _count("n_trials", n_trials)
    start = monotonic()
    deadline = math.inf if timeout is None else start + _seconds(timeout)
    size = _size(n_workers, executor)
    exceptions, functions = _exception_types(catch), _functions(callbacks)
    if isinstance(executor, ProcessPoolExecutor):
        _check_picklable(f)
    bar = _progress_bar(progress, total)
    pool = executor if executor is not None else _own_pool(size, timeout)
    limit = math.inf if total is None else total
    evaluations = Evaluations(f, chosen, pool, size, limit, deadline, exceptions, functions, bar)

    def result(stop_reason: StopReason) -> Result:
        return Result(chosen, evaluations.trials, stop_reason, monotonic() - start)

    stop_reason: StopReason
    try:
        stop_reason = evaluations.run()
    except KeyboardInterrupt:
        stop_reason = "interrupted"
    except StopRun:
        stop_reason = "stopped"
    except RunError as error:
        # f may call maximize itself: an error of such a run has its own result.
        if not hasattr(error, "result"):
            error.result = result("error")
        raise
    finally:
        evaluations.finalize()
        if executor is None:
            pool.shutdown(wait=all(map(Future.done, evaluations.running)), cancel_futures=True)
        if bar is not None:
            bar.close()
    outcome = result(stop_reason)
    # A run that the user ended may well be without a value.
    if stop_reason in ("n_trials", "timeout") and outcome.n_failed_ and all(t.value is None for t in outcome.trials):
        failed = RunError(
            f"none of {len(outcome.trials)} trials succeeded, and {outcome.n_failed_} failed: "
            f"the last time {evaluations.failure}"
        )
        failed.result = outcome
        raise failed from evaluations.error
    return outcome


def _with_arguments_of(
    optimize: Callable[Concatenate[Direction, Arguments], Result],
) -> Callable[[Callable[..., Result]], Callable[Arguments, Result]]:
    """A decorator: help() and type checkers show the arguments of `optimize`, without its first, for the function."""
    signature = inspect.signature(optimize)
    _, *parameters = signature.parameters.values()

    def decorate(function: Callable[..., Result]) -> Callable[Arguments, Result]:
        function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return function

    return decorate


@_with_arguments_of(_optimize)
def maximize(*args: Any, **kwargs: Any) -> Result:
    """Find the parameters with the highest value of f, evaluated on parallel workers.

    Whenever a worker is free it gets a new trial, chosen with the others pending: no worker waits for another.

    Parameters
    ----------
    f : callable
        f(params), with a dict; for candidates f(x), with a row of shape (d,). Returns one finite number.
    space : mapping, optional
        Name → `Real`, `Integer`, `Categorical`, or their shorthand (see `Space`).
    candidates : array-like of shape (N, d), optional
        Choose among rows of this array instead.
    optimizer : Optimizer or Study, optional
        Continue with this one, in place of space, candidates and settings. Trials that it has pending are left
        as they are.
    n_trials : int, optional
        How many trials to start, besides those that the optimizer has. None: until the timeout.
    timeout : float, optional
        Seconds until the run ends, whether or not evaluations are still running.
    n_workers : int, optional
        How many evaluations run at a time. By default as many as the executor has workers; without an executor 1,
        and f is called in this thread unless there is a timeout. More than 1 calls f in threads.
    executor : concurrent.futures.Executor, optional
        Where f is called: processes, loky, MPI, Dask (``client.get_executor(pure=False)``: otherwise it evaluates
        equal points once). It is not shut down.
    catch : exception class or sequence of them
        What f may raise: the trial has failed, and the run continues. Anything else is raised, after the trial has
        been marked as failed; pass `optimizer` to keep the trials even then.
    callbacks : iterable of callable
        Each is called in this thread as callback(optimizer, trial) after every trial that was observed or
        failed. Raise `StopRun` there to end the run.
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
        The first time that f raises, and the first time that it returns something else than one finite number.
        In both cases the trial has failed.

    Raises
    ------
    InvalidSetting
        An argument that is not usable; an optimizer that minimizes.
    InvalidSpace
        A space or candidates that cannot be searched.
    RunError
        All trials failed; or the executor does not work, for example because a worker process died.
    ImportError
        progress is True and tqdm is not installed.

    Notes
    -----
    Ctrl-C ends the run, too, and returns the result so far; a second one, while the first is handled, is raised.

    When a run ends early, results that have arrived are reported, and evaluations that have not started are cancelled
    and their trials abandoned. Evaluations that are running are not waited for. Their trials stay pending, and a value
    may still be reported by ``optimizer.observe``. Threads cannot be stopped: they finish f, and Python waits for that
    at exit.

    With one worker, the same seed gives the same trials. With more, they depend on the order of the results as well.

    Examples
    --------
    >>> import belated as bl
    >>> best = bl.maximize(lambda params: -((params["x"] - 0.3) ** 2), {"x": (0.0, 1.0)}, n_trials=20, seed=0)
    >>> abs(best.best_params_["x"] - 0.3) < 0.05
    True
    """
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
    return _optimize("minimize", *args, **kwargs)


# Reading the arguments.


def _chosen_optimizer(
    direction: Direction, space: Any, candidates: Any, given: Optimizer | Study | None, settings: dict[str, Any]
) -> Optimizer | Study:
    """The optimizer given, or a new one of the right direction."""
    if isinstance(space, (Optimizer, Study)):
        raise InvalidSetting(f"space={short_repr(space)} is not usable: pass it as optimizer=")
    if "direction" in settings:
        raise InvalidSetting(f"direction is fixed by the name of {direction}: leave it out, or call the other one")
    known = [each.name for each in fields(BayesOpt)]
    for name in settings:
        if name not in known:
            *own, _ = inspect.signature(maximize).parameters
            close: list[str] = difflib.get_close_matches(name, own, n=1)
            near = close[0] if close else nearest_argument(name, BayesOpt)
            advice = f"did you mean {near}?" if near else f"it takes those of BayesOpt, {known}"
            raise InvalidSetting(f"{name}={short_repr(settings[name])} is not an argument of {direction}: {advice}")
    chosen: Optimizer | Study
    if given is None:
        chosen = BayesOpt(space, candidates=candidates, direction=direction, **settings)
    elif isinstance(given, (Optimizer, Study)):
        named = {"space": space, "candidates": candidates} | settings
        unused = [name for name, value in named.items() if value is not None]
        if unused:
            raise InvalidSetting(f"{unused} would make a new optimizer, and one is given: leave them out")
        chosen = given
    else:
        raise InvalidSetting(f"optimizer={short_repr(given)} is not usable: pass an optimizer or a Study of belated")
    params = chosen.get_params()
    if params["direction"] != direction:
        other = "minimize" if direction == "maximize" else "maximize"
        raise InvalidSetting(f"optimizer has direction={params['direction']!r}: call {other}, or pass another one")
    if params["context"] is not None:
        raise InvalidSetting(
            f"optimizer has a context, which {direction} cannot give with its suggestions: use suggest and observe"
        )
    return chosen


def _count(name: str, value: Any) -> int:
    number = whole_number(value)
    if number is None or number < 1:
        raise InvalidSetting(f"{name}={short_repr(value)} is not usable: pass an integer >= 1")
    return number


def _seconds(timeout: Any) -> float:
    seconds = finite(timeout)
    if seconds is None or seconds <= 0:
        raise InvalidSetting(f"timeout={short_repr(timeout)} is not usable: pass seconds > 0, or None")
    return seconds


def _size(n_workers: Any, executor: Any) -> int:
    """How many evaluations are to run at a time."""
    if executor is not None and not isinstance(executor, Executor):
        raise InvalidSetting(
            f"executor={short_repr(executor)} is not usable: pass a concurrent.futures.Executor "
            "(of a Dask client: client.get_executor(pure=False))"
        )
    if n_workers is not None:
        return _count("n_workers", n_workers)
    if executor is None:
        return 1
    # Not part of the interface of executors: the attribute's name in MPI, and in the standard library and loky.
    for name in ("num_workers", "_max_workers"):
        number = whole_number(getattr(executor, name, None))
        if number is not None and number >= 1:
            return number
    raise InvalidSetting(
        f"n_workers is missing: {type(executor).__name__} has no attribute with its number of workers; "
        "pass how many evaluations are to run at a time"
    )


def _own_pool(size: int, timeout: float | None) -> Executor:
    # Only a thread that is not waiting for f can end the run at its timeout.
    if size == 1 and timeout is None:
        return CallingThread()
    return ThreadPoolExecutor(size, thread_name_prefix="belated")


def _exception_types(catch: Any) -> tuple[type[BaseException], ...]:
    types = tuple(catch) if isinstance(catch, (tuple, list)) else (catch,)
    if not all(isinstance(each, type) and issubclass(each, BaseException) for each in types):
        raise InvalidSetting(f"catch={short_repr(catch)} is not usable: pass exception classes, () for none")
    return types


def _functions(callbacks: Any) -> list[Callback]:
    functions: list[Any] = list(callbacks) if isinstance(callbacks, Iterable) else [None]
    if not all(map(callable, functions)):
        raise InvalidSetting(
            f"callbacks={short_repr(callbacks)} is not usable: pass a list of functions callback(optimizer, trial)"
        )
    return functions


def _check_picklable(f: Objective) -> None:
    # A process pool would notice only after trials have been started; other executors have their own way to send f.
    try:
        ForkingPickler.dumps(f)
    except Exception as error:
        raise InvalidSetting(
            f"f={short_repr(f)} cannot be sent to another process: {format_error(error)}; {PICKLING_ADVICE}"
        ) from error


def _is_interactive() -> bool:
    """Whether this is a notebook or a terminal, found without importing IPython."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel") or (sys.stderr is not None and sys.stderr.isatty())


def _progress_bar(progress: Any, total: int | None) -> Any:
    """A progress bar of tqdm, or None."""
    if progress is not None and not isinstance(progress, bool):
        raise InvalidSetting(f"progress={short_repr(progress)} is not usable: pass True, False or None")
    if progress is False or (progress is None and not _is_interactive()):
        return None
    try:
        with warnings.catch_warnings():
            # In a notebook without ipywidgets, tqdm warns that it draws text.
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm
    except ImportError:
        if progress:
            raise ImportError("progress=True needs tqdm: pip install 'belated[progress]', or leave it out") from None
        return None
    return tqdm(total=total, unit="trial")
