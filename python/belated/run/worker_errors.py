"""Lost evaluations: their workers died before they returned, or no worker could begin them."""

from __future__ import annotations

from belated._core import BelatedError

# Errors of futures whose workers died; found by name, so that no engine is imported.
_ERRORS_OF_ENGINES = (
    "distributed.scheduler.KilledWorker",
    *(
        f"ray.exceptions.{name}"
        for name in ("WorkerCrashedError", "OutOfMemoryError", "NodeDiedError", "ObjectLostError")
    ),
)


class WorkerDied(BelatedError, RuntimeError):
    """The worker of an evaluation died before it returned. Futures raise this error, and failed trials keep it.

    Executors may set it, or a subclass, as the exception of a future.
    """


class WorkersDoNotStart(BelatedError, RuntimeError):
    """Worker processes died repeatedly before they could take an evaluation."""


def worker_died(error: BaseException) -> WorkerDied | None:
    """Return the error of a future as `WorkerDied`, or None if it is another error."""
    if isinstance(error, WorkerDied):
        return error
    if _names(error).isdisjoint(_ERRORS_OF_ENGINES):
        return None
    died = WorkerDied(f"its worker died: {str(error).rstrip('.')}")
    died.__cause__ = error
    return died


def is_of_ray_task(error: BaseException) -> bool:
    """Whether a worker of Ray raised an error outside f, because it could not read f or send its result."""
    return "ray.exceptions.RayTaskError" in _names(error)


def _names(error: BaseException) -> set[str]:
    """Return the full names of the types in an error's class hierarchy."""
    return {f"{each.__module__}.{each.__qualname__}" for each in type(error).__mro__}
