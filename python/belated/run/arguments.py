"""Checks and conversions of the arguments of a run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, Literal, TypeAlias, TypedDict

from belated.errors import InvalidSetting, UnknownArgument
from belated.hints import ELSEWHERE, RUN_ARGUMENTS, argument_advice, optimizer_advice
from belated.optimizers.bayes import BayesOpt
from belated.optimizers.constraints import Constraint
from belated.optimizers.curve import Curve, Stopping, StoppingName
from belated.optimizers.optimizer import Optimizer
from belated.optimizers.outcomes import OutcomesLike
from belated.optimizers.report import format_error
from belated.optimizers.settings import Acquisition, AcquisitionName, Initial
from belated.run.calling_thread import CallingThread
from belated.run.evaluations import PICKLING_ADVICE
from belated.run.objective import Objective, signature_of
from belated.run.stoppers import NoImprovement, ValueReached
from belated.run.threads import DaemonThreads
from belated.short_repr import short_repr
from belated.space.arguments import finite, in_seconds, whole_number
from belated.study.study import Study

Direction: TypeAlias = Literal["maximize", "minimize"]


class BayesOptSettings(TypedDict, total=False):
    """The arguments that a run passes on to `BayesOpt`."""

    acquisition: Acquisition | AcquisitionName
    initial: Initial | int | None
    constraints: Sequence[Constraint] | None
    seed: int | None
    curve: Curve | None
    stopping: Stopping | StoppingName | None
    outcomes: OutcomesLike | None


PASSED_ON = tuple(BayesOptSettings.__annotations__)


def check_names(direction: Direction, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
    """Raise UnknownArgument if the call of `maximize` or `minimize` has an unknown argument, or if f is missing."""
    if len(arguments) > 2:
        raise UnknownArgument(
            f"{direction} takes f and space by position, and got {short_repr(arguments[2])} besides: name the others, "
            "as in n_trials=50"
        )
    for name, value in keywords.items():
        if name in RUN_ARGUMENTS or name in PASSED_ON:
            continue
        shown = f"{name}={short_repr(value)} is not an argument of {direction}"
        if name == "direction":
            raise UnknownArgument(f"direction is fixed by the name of {direction}: leave it out, or call the other one")
        if ELSEWHERE.get(name.lower()) == "direction":
            raise UnknownArgument(f"{shown}: call bl.maximize or bl.minimize, by what you want")
        if name == "context":
            raise UnknownArgument(f"{shown}, which cannot give contexts: use suggest and observe")
        if name in BayesOpt.__dataclass_fields__:
            kind = "RandomSearch" if name in BayesOpt._lacks else "BayesOpt"
            raise UnknownArgument(f"{shown}: pass optimizer=bl.{kind}(…, {name}=…)")
        raise UnknownArgument(f"{shown}: {argument_advice(name, BayesOpt, more=RUN_ARGUMENTS, passed_on=PASSED_ON)}")
    if not arguments and "f" not in keywords:
        raise UnknownArgument(f"f is missing: call {direction}(f, space, n_trials=…), with a function of the params")


def chosen_optimizer(
    direction: Direction, space: Any, candidates: Any, given: Optimizer | Study | None, settings: Mapping[str, Any]
) -> Optimizer | Study:
    """Check and return the given optimizer; by default, return a new `BayesOpt` with the direction of the run."""
    if isinstance(space, (Optimizer, Study)):
        raise InvalidSetting(f"space={short_repr(space)} is not usable: pass it as optimizer=")
    chosen: Optimizer | Study
    if given is None:
        # The goals of outcomes have directions.
        own = direction if settings.get("outcomes") is None else "maximize"
        chosen = BayesOpt(space, candidates=candidates, direction=own, **settings)
    elif isinstance(given, (Optimizer, Study)):
        named = {"space": space, "candidates": candidates} | dict(settings)
        unused = [name for name, value in named.items() if value is not None]
        if unused:
            raise InvalidSetting(f"{unused} would make a new optimizer, and one is given: leave them out")
        chosen = given
    else:
        raise InvalidSetting(
            f"optimizer={short_repr(given)} is not usable: pass an optimizer or a Study of belated"
            f"{optimizer_advice(given)}"
        )
    if chosen.direction != direction and not chosen._problem.front:
        other = "minimize" if direction == "maximize" else "maximize"
        raise InvalidSetting(f"optimizer has direction={chosen.direction!r}: call {other}, or pass another one")
    if chosen.context_space is not None:
        raise InvalidSetting(
            f"optimizer has a context, which {direction} cannot give with its suggestions: use suggest and observe"
        )
    return chosen


def count(name: str, value: Any, least: int) -> int:
    """Return an integer argument that is at least `least`."""
    number = whole_number(value)
    if number is None or number < least:
        raise InvalidSetting(f"{name}={short_repr(value)} is not usable: pass an integer >= {least}")
    return number


def positive(name: str, value: Any, what: str) -> float | None:
    """Return an optional argument as a float above 0; `what` is the name of the argument's unit, for the message."""
    number = finite(value)
    if value is not None and (number is None or number <= 0):
        raise InvalidSetting(f"{name}={short_repr(value)} is not usable: pass {what} > 0, or None")
    return number


def positive_seconds(name: str, value: Any) -> float | None:
    """Return an optional time as a number of seconds above 0."""
    return positive(name, in_seconds(value), "seconds")


def check_takes_fidelity(f: Any, function: Objective, optimizer: Optimizer | Study) -> None:
    """Raise InvalidSetting if trials have a fidelity, but the function does not take the trial."""
    if optimizer._problem.fidelity is not None and not function.takes_trial:
        raise InvalidSetting(
            f"f={short_repr(f)} does not take the trial, and so not its fidelity: write f(params, trial), and read "
            "trial.fidelity"
        )


def size(n_workers: Any, executor: Any) -> int:
    """Return the number of evaluations that run at the same time."""
    if executor is not None and not isinstance(executor, Executor):
        raise InvalidSetting(
            f"executor={short_repr(executor)} is not usable: pass a concurrent.futures.Executor "
            "(of a Dask client: client.get_executor(pure=False))"
        )
    if n_workers is not None:
        return count("n_workers", n_workers, 1)
    if executor is None:
        return 1
    # The interface of executors does not include the number of workers. The first of these attributes belongs to
    # executors of MPI; the second belongs to executors of the standard library and of loky.
    for name in ("num_workers", "_max_workers"):
        number = whole_number(getattr(executor, name, None))
        if number is not None and number >= 1:
            return number
    # The executor of Dask has a client. The client returns the number of threads of each current worker.
    if type(executor).__module__.startswith("distributed."):
        number = sum(executor._client.nthreads().values())  # type: ignore[attr-defined]
        if number >= 1:
            return number
    raise InvalidSetting(
        f"n_workers is missing: {type(executor).__name__} has no attribute with its number of workers; "
        "pass the number of evaluations at a time"
    )


def check_processes(processes: Any, executor: Any) -> None:
    """Raise InvalidSetting if the argument processes is invalid."""
    if not isinstance(processes, bool):
        raise InvalidSetting(
            f"processes={short_repr(processes)} is not usable: pass True or False, and their number as n_workers"
        )
    if processes and executor is not None:
        raise InvalidSetting(
            f"processes=True starts workers, and executor={short_repr(executor)} has workers: leave one of them out"
        )


def own_pool(size: int, timeout: Any, processes: bool) -> Executor:
    """Return a new executor for a run to which the user did not pass an executor."""
    if processes:
        # This import is slow, and only processes need it.
        from belated.run.processes import WorkerProcesses

        return WorkerProcesses()
    # If there is a timeout, f runs in another thread, so that this thread can end the run at the timeout.
    if size == 1 and timeout is None:
        return CallingThread()
    return DaemonThreads(size)


def exception_types(catch: Any) -> tuple[type[BaseException], ...]:
    """Return the classes of exceptions after which the run continues."""
    types = tuple(catch) if isinstance(catch, (tuple, list)) else (catch,)
    if not all(isinstance(each, type) and issubclass(each, BaseException) for each in types):
        raise InvalidSetting(f"catch={short_repr(catch)} is not usable: pass exception classes, () for none")
    return types


def functions(callbacks: Any, optimizer: Optimizer | Study) -> list[Any]:
    """Return the callbacks as a list; stoppers with a state are copied for this run."""
    given: list[Any] = list(callbacks) if isinstance(callbacks, Iterable) else [None]
    if not all(map(callable, given)):
        raise InvalidSetting(
            f"callbacks={short_repr(callbacks)} is not usable: pass a list of functions callback(optimizer, trial)"
        )
    for i, each in enumerate(given):
        if isinstance(each, type):
            raise InvalidSetting(f"callbacks has the class {each.__name__}: pass an instance, {each.__name__}(…)")
        signature = signature_of(each)
        try:
            if signature is not None:
                signature.bind(None, None)
        except TypeError as error:
            raise InvalidSetting(
                f"callbacks[{i}]={short_repr(each)} cannot be called as callback(optimizer, trial) ({error}): write "
                "def callback(optimizer, trial), with these two parameters"
            ) from None
        if isinstance(each, ValueReached):
            each.check(optimizer)
    return [NoImprovement(each.n) if isinstance(each, NoImprovement) else each for each in given]


def check_picklable(f: Any, executor: Executor | None, processes: bool) -> None:
    """Raise InvalidSetting if the function cannot be sent to a pool of processes."""
    if executor is None and not processes:
        return
    # These imports are slow, and only processes need them.
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing.reduction import ForkingPickler

    # Check f before the run starts trials. Executors other than ProcessPoolExecutor may send f without pickle.
    if executor is not None and not isinstance(executor, ProcessPoolExecutor):
        return
    try:
        sent = bytes(ForkingPickler.dumps(f))
    except Exception as error:
        raise InvalidSetting(
            f"f={short_repr(f)} cannot be sent to another process: {format_error(error)}; {PICKLING_ADVICE}"
        ) from error
    # The processes of the run import the main module by its name or from its file, which notebooks and prompts lack.
    main = sys.modules["__main__"]
    is_importable = getattr(main, "__spec__", None) is not None or os.path.isfile(getattr(main, "__file__", None) or "")
    if processes and b"__main__" in sent and not is_importable:
        raise InvalidSetting(
            f"f={short_repr(f)} is defined in a notebook or at a prompt, from where the processes of processes=True "
            f"cannot import it: {PICKLING_ADVICE}"
        )
