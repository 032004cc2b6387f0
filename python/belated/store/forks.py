"""What is told of a fork, in the child and before anything else runs there."""

import os
import weakref
from typing import Any, Protocol


class Forked(Protocol):
    """What has something that a forked child must not use as it is, such as a connection or a lock."""

    def _after_fork(self) -> None: ...


# Connections come first: a study may open its own anew, and reads from its store for that.
_CONNECTIONS: "weakref.WeakSet[Forked]" = weakref.WeakSet()
_STUDIES: "weakref.WeakSet[Forked]" = weakref.WeakSet()


def tell_connection(connection: Forked) -> None:
    """From now on call its `_after_fork` in every forked child."""
    _CONNECTIONS.add(connection)


def tell_study(study: Forked) -> None:
    """From now on call its `_after_fork` in every forked child, after those of all connections."""
    _STUDIES.add(study)


def never_collect(connection: Any) -> None:
    """Leave a connection of the parent open and unused: closing it here would end what the parent does with it."""
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def _after_fork() -> None:
    for each in [*_CONNECTIONS, *_STUDIES]:
        each._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
