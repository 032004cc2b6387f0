"""Errors for lost evaluations: a worker died during an evaluation, or workers could not start."""

from __future__ import annotations

from belated._core import BelatedError

# Names of the errors that futures raise if their workers died. Names are used so that packages need not be imported.
_ERRORS_OF_ENGINES = (
    "distributed.scheduler.KilledWorker",
    *(
        f"ray.exceptions.{name}"
        for name in ("WorkerCrashedError", "OutOfMemoryError", "NodeDiedError", "ObjectLostError")
    ),
)


class WorkerDied(BelatedError, RuntimeError):
    """The worker of an evaluation died before the evaluation ended.

    Futures raise this error, and failed trials store it. An executor may set this error, or an error of a subclass, as
    the exception of a future.
    """


class WorkersDoNotStart(BelatedError, RuntimeError):
    """Worker processes died repeatedly before they could take an evaluation."""


def worker_died(error: BaseException) -> WorkerDied | None:
    """Return the error of a future as `WorkerDied`, or None if the error has another cause."""
    if isinstance(error, WorkerDied):
        return error
    if _names(error).isdisjoint(_ERRORS_OF_ENGINES):
        return None
    died = WorkerDied(f"its worker died: {str(error).rstrip('.')}")
    died.__cause__ = error
    return died


def is_of_ray_task(error: BaseException) -> bool:
    """Return whether a worker of Ray could not read f or could not send the result of f."""
    return "ray.exceptions.RayTaskError" in _names(error)


def _names(error: BaseException) -> set[str]:
    """Return the full names of the error's class and of its base classes."""
    return {f"{each.__module__}.{each.__qualname__}" for each in type(error).__mro__}
