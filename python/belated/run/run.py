"""Runs: `maximize` and `minimize` a function with the workers of an executor, and get a `Result`."""

import difflib
import inspect
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, fields
from multiprocessing.reduction import ForkingPickler
from reprlib import repr as short_repr
from time import monotonic
from typing import Any, Literal, TypeAlias

from numpy.typing import ArrayLike

from belated._core import InvalidSetting
from belated.space.arguments import finite, whole_number
from belated.run.evaluations import HOW_TO_SEND, CallingThread, Evaluations, RunError, said
from belated.optimizers.optimizer import Optimizer
from belated.optimizers.problem import SpaceLike
from belated.optimizers.bayes import BayesOpt
from belated.study.study import Study
from belated.optimizers.trial import Trial, html_table

Objective: TypeAlias = Callable[[Any], float]
Catch: TypeAlias = type[BaseException] | Sequence[type[BaseException]]
Callback: TypeAlias = Callable[[Any, Trial], object]
Direction: TypeAlias = Literal["maximize", "minimize"]


class StopRun(Exception):
    """Raised by a callback to end the run; `maximize` then returns what there is."""


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """What came of a run; it reads the optimizer, and so counts values that are reported to it later, too.

    Attributes
    ----------
    optimizer : Optimizer or Study
        To go on with, by `suggest` and `observe` or in another run.
    trials : list of Trial
        Those that the run started, in this order, whatever their state.
    why : {"n_trials", "timeout", "interrupted", "stopped", "error"}
        What ended it: all were done, the time was up, Ctrl-C, a callback, or an executor that does not work.
    seconds : float
        How long it took.
    """

    optimizer: Optimizer | Study
    trials: list[Trial]
    why: Literal["n_trials", "timeout", "interrupted", "stopped", "error"]
    seconds: float

    @property
    def best_trial(self) -> Trial | None:
        """The trial with the best observed value, of all that the optimizer has; None before the first."""
        return self.optimizer.best_trial_

    @property
    def best_params(self) -> Any:
        """Its params (the row, for candidates)."""
        return self.optimizer.best_params_

    @property
    def best_value(self) -> float | None:
        """Its value."""
        return self.optimizer.best_value_

    @property
    def n_failed(self) -> int:
        """Number of the run's trials that failed."""
        return sum(trial.state == "failed" for trial in self.trials)

    def recommend(self) -> Any:
        """The point to use in the end, where values are noisy; see `Optimizer.recommend`."""
        return self.optimizer.recommend()

    def _facts(self) -> dict[str, Any]:
        names = ("best_value", "best_params", "n_failed", "why")
        return {"n_trials": len(self.trials)} | {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        facts = [f"{name}={fact!r}" for name, fact in self._facts().items()]
        return f"Result({', '.join(facts)}, seconds={self.seconds:.3g})"

    def _repr_html_(self) -> str:
        return html_table(["Result", ""], (self._facts() | {"seconds": f"{self.seconds:.3g}"}).items())


def maximize(
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
    """Find the parameters with the highest value of f, on as many workers as there are.

    Whenever a worker is free it gets a new trial, chosen with the others pending: nobody waits for the slowest.

    Parameters
    ----------
    f : callable
        f(params), with a dict; for candidates f(x), with a row of shape (d,). Returns one finite number.
    space : mapping, optional
        Name → `Real`, `Integer`, `Categorical`, or their shorthand (see `Space`).
    candidates : array-like of shape (N, d), optional
        Choose among rows of this array instead.
    optimizer : Optimizer or Study, optional
        Go on with this one, in place of space, candidates and settings. Trials that it has pending are left
        to whoever started them.
    n_trials : int, optional
        How many trials to start, besides those that there are. None: until the timeout.
    timeout : float, optional
        Seconds until the run ends, whether or not evaluations are still running.
    n_workers : int, optional
        How many evaluations run at a time. By default as many as the executor has workers; without one it is 1,
        and f is called in this very thread unless there is a timeout. More than 1 calls f in threads.
    executor : concurrent.futures.Executor, optional
        Where f is called: processes, loky, MPI, Dask (``client.get_executor(pure=False)``: else it takes equal
        points for one). It is not shut down.
    catch : exception class or sequence of them
        What f may raise: the trial has failed, and the run goes on. Anything else surfaces, after the trial has
        been marked as failed; pass `optimizer` to keep the trials even then.
    callbacks : iterable of callable
        Each is called in this thread as callback(optimizer, trial) after every trial that was observed or
        failed. Raise `StopRun` there to end the run.
    progress : bool, optional
        Show a bar, which needs tqdm. None: if there is tqdm and a terminal or notebook to show it.
    **settings
        Further arguments of `BayesOpt`, such as seed.

    Returns
    -------
    Result
        With `best_params`, `best_value`, and `recommend()` for noisy values.

    Warns
    -----
    BelatedWarning
        The first time that f raises, and the first time that it returns something else than one finite number.
        Either way the trial has failed.

    Raises
    ------
    InvalidSetting
        An argument that is not usable; an optimizer that minimizes.
    InvalidSpace
        A space or candidates that cannot be searched.
    RunError
        All trials failed; or the executor does not work: a worker process died, say.
    ImportError
        progress is True and tqdm is not installed.

    Notes
    -----
    Ctrl-C ends the run, too, and returns what there is; a second one, during that, is raised.

    Where a run ends early, what has arrived is reported, and what was not started yet is cancelled and abandoned.
    Evaluations that are running are not waited for. Their trials stay pending, and a value may still be
    reported by ``optimizer.observe``. Threads cannot be stopped: they finish f, and Python waits for that at exit.

    With one worker, the same seed gives the same trials. With more, the order in which results come in counts, too.

    Examples
    --------
    >>> import belated as bl
    >>> best = bl.maximize(lambda params: -((params["x"] - 0.3) ** 2), {"x": (0.0, 1.0)}, n_trials=20, seed=0)
    >>> abs(best.best_params["x"] - 0.3) < 0.05
    True
    """
    chosen = _optimizer("maximize", space, candidates, optimizer, settings)
    return _run(f, chosen, n_trials, timeout, n_workers, executor, catch, callbacks, progress)


def minimize(
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
    """Find the parameters with the lowest value of f; everything else is as in `maximize`.

    Examples
    --------
    >>> import belated as bl
    >>> best = bl.minimize(lambda params: (params["x"] - 0.3) ** 2, {"x": (0.0, 1.0)}, n_trials=20, seed=0)
    >>> best.best_value < 0.01
    True
    """
    chosen = _optimizer("minimize", space, candidates, optimizer, settings)
    return _run(f, chosen, n_trials, timeout, n_workers, executor, catch, callbacks, progress)


# Reading the arguments.


def _optimizer(
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
            near = difflib.get_close_matches(name, own + known, n=1)
            advice = f"did you mean {near[0]}?" if near else f"it passes these on to BayesOpt: {known}"
            raise InvalidSetting(f"{name}={short_repr(settings[name])} is no argument of {direction}: {advice}")
    chosen: Optimizer | Study
    if given is None:
        chosen = BayesOpt(space, candidates=candidates, direction=direction, **settings)
    elif isinstance(given, (Optimizer, Study)):
        named = {"space": space, "candidates": candidates} | settings
        twice = [name for name, value in named.items() if value is not None]
        if twice:
            raise InvalidSetting(f"{twice} belong to an optimizer, and one is given already: leave them out")
        chosen = given
    else:
        raise InvalidSetting(f"optimizer={short_repr(given)} is not usable: pass an optimizer or a Study of belated")
    its = chosen.get_params()
    if its["direction"] != direction:
        other = "minimize" if direction == "maximize" else "maximize"
        raise InvalidSetting(f"optimizer has direction={its['direction']!r}: call {other}, or pass another one")
    if its["context"] is not None:
        raise InvalidSetting(f"a context is given with each suggestion, and {direction} has none: use suggest, observe")
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
    # Executors do not promise to tell: these are the names in MPI, and in the standard library and loky.
    for name in ("num_workers", "_max_workers"):
        number = whole_number(getattr(executor, name, None))
        if number is not None and number >= 1:
            return number
    raise InvalidSetting(
        f"n_workers is missing: {type(executor).__name__} does not tell how many workers it has; "
        "pass how many evaluations are to run at a time"
    )


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


def _check_that_it_can_be_sent(f: Objective) -> None:
    # Such a pool finds out only when trials have been started for it. Others have ways of their own to send f.
    try:
        ForkingPickler.dumps(f)
    except Exception as error:
        raise InvalidSetting(
            f"f={short_repr(f)} cannot be sent to another process: {said(error)}; {HOW_TO_SEND}"
        ) from error


def _somebody_watches() -> bool:
    """Whether this is a notebook or a terminal, told without importing IPython."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel") or (sys.stderr is not None and sys.stderr.isatty())


def _progress_bar(progress: Any, total: int | None) -> Any:
    """A bar of tqdm, or None."""
    if progress is not None and not isinstance(progress, bool):
        raise InvalidSetting(f"progress={short_repr(progress)} is not usable: pass True, False or None")
    if progress is False or (progress is None and not _somebody_watches()):
        return None
    try:
        with warnings.catch_warnings():
            # In a notebook without ipywidgets tqdm draws text, which needs no warning.
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm
    except ImportError:
        if progress:
            raise ImportError("progress=True needs tqdm: pip install 'belated[progress]', or leave it out") from None
        return None
    return tqdm(total=total, unit="trial")


def _run(
    f: Objective,
    optimizer: Optimizer | Study,
    n_trials: int | None,
    timeout: float | None,
    n_workers: int | None,
    executor: Executor | None,
    catch: Catch,
    callbacks: Iterable[Callback],
    progress: bool | None,
) -> Result:
    if not callable(f):
        raise InvalidSetting(f"f={short_repr(f)} is not usable: pass a function of the params")
    if n_trials is None and timeout is None:
        raise InvalidSetting("n_trials and timeout are both missing: pass one of them, or the run would never end")
    total = None if n_trials is None else _count("n_trials", n_trials)
    start = monotonic()
    deadline = math.inf if timeout is None else start + _seconds(timeout)
    size = _size(n_workers, executor)
    types, functions = _exception_types(catch), _functions(callbacks)
    if isinstance(executor, ProcessPoolExecutor):
        _check_that_it_can_be_sent(f)

    bar = _progress_bar(progress, total)
    if executor is not None:
        pool = executor
    elif size == 1 and timeout is None:
        pool = CallingThread()
    else:
        pool = ThreadPoolExecutor(size, thread_name_prefix="belated")
    run = Evaluations(f, optimizer, pool, size, math.inf if total is None else total, deadline, types, functions, bar)

    def result(why: Any) -> Result:
        return Result(optimizer, run.trials, why, monotonic() - start)

    try:
        why: str = run.until_it_ends()
    except KeyboardInterrupt:
        why = "interrupted"
    except StopRun:
        why = "stopped"
    except RunError as error:
        # f may have runs of its own, with results of their own.
        if not hasattr(error, "result"):
            error.result = result("error")
        raise
    finally:
        run.wind_up()
        if executor is None:
            pool.shutdown(wait=all(map(Future.done, run.running)), cancel_futures=True)
        if bar is not None:
            bar.close()
    outcome = result(why)
    # Whoever ends a run by hand knows why; otherwise nothing found is an error.
    if why in ("n_trials", "timeout") and outcome.n_failed and all(t.value is None for t in run.trials):
        failed = RunError(
            f"none of {len(run.trials)} trials succeeded, and {outcome.n_failed} failed: the last time {run.complaint}"
        )
        failed.result = outcome
        raise failed from run.error
    return outcome
