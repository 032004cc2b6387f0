"""Evaluations that are lost: their workers died before they returned."""

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


def worker_died(error: BaseException) -> WorkerDied | None:
    """The error of a future as `WorkerDied`; None where it is another one."""
    if isinstance(error, WorkerDied):
        return error
    names = {f"{each.__module__}.{each.__qualname__}" for each in type(error).__mro__}
    if names.isdisjoint(_ERRORS_OF_ENGINES):
        return None
    died = WorkerDied(f"its worker died: {str(error).rstrip('.')}")
    died.__cause__ = error
    return died
