"""Studies and connections that act in a forked child before anything else runs there."""

import os
import weakref
from typing import Any, Protocol


class Forked(Protocol):
    """An object with something that a forked child must not use, such as a connection or a lock."""

    def _after_fork(self) -> None: ...


# Connections come first: a study may open its own anew, and reads from its store for that.
_CONNECTIONS: "weakref.WeakSet[Forked]" = weakref.WeakSet()
_STUDIES: "weakref.WeakSet[Forked]" = weakref.WeakSet()


def register_connection(connection: Forked) -> None:
    """Call `_after_fork` of a connection in every forked child from now on."""
    _CONNECTIONS.add(connection)


def register_study(study: Forked) -> None:
    """Call `_after_fork` of a study in every forked child from now on, after all connections."""
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
