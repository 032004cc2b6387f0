"""Evaluations that are lost, because their workers died before they returned, and those that no worker can begin."""

from __future__ import annotations

from belated._core import BelatedError

# What futures of engines raise whose workers died: found by name, so that no engine is imported.
_ERRORS_OF_ENGINES = (
    "distributed.scheduler.KilledWorker",
    *(
        f"ray.exceptions.{name}"
        for name in ("WorkerCrashedError", "OutOfMemoryError", "NodeDiedError", "ObjectLostError")
    ),
)


class WorkerDied(BelatedError, RuntimeError):
    """The worker of an evaluation died before it returned; raised by futures, and the error of trials that failed so.

    Executors may set it, or a subclass, as the exception of a future.
    """


class WorkersDoNotStart(BelatedError, RuntimeError):
    """Worker processes died again and again before they could take an evaluation."""


def worker_died(error: BaseException) -> WorkerDied | None:
    """The error of a future as `WorkerDied`; None where it is another one."""
    if isinstance(error, WorkerDied):
        return error
    if _names(error).isdisjoint(_ERRORS_OF_ENGINES):
        return None
    died = WorkerDied(f"its worker died: {str(error).rstrip('.')}")
    died.__cause__ = error
    return died


def is_of_ray_task(error: BaseException) -> bool:
    """Whether a worker of Ray raised an error outside f: it could not read f, or send what f returned."""
    return "ray.exceptions.RayTaskError" in _names(error)


def _names(error: BaseException) -> set[str]:
    """The full names of the type of an error and of those that it is derived from."""
    return {f"{each.__module__}.{each.__qualname__}" for each in type(error).__mro__}
