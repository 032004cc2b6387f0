"""Functions that studies and connections register, and that a forked child calls before its other code runs."""

import os
import weakref
from typing import Any, Protocol


class Forked(Protocol):
    """An object with a connection, a lock or another resource that a forked child must not use."""

    def _after_fork(self) -> None: ...


# Connections are called before studies, because a study may read from its store, which then opens a new connection.
_CONNECTIONS: "weakref.WeakSet[Forked]" = weakref.WeakSet()
_STUDIES: "weakref.WeakSet[Forked]" = weakref.WeakSet()


def register_connection(connection: Forked) -> None:
    """Call `_after_fork` of a connection in every forked child from now on."""
    _CONNECTIONS.add(connection)


def register_study(study: Forked) -> None:
    """Call `_after_fork` of a study in every forked child from now on, after all connections."""
    _STUDIES.add(study)


def never_collect(connection: Any) -> None:
    """Keep a connection of the parent open and unused. If the child closed it, the parent would lose the connection."""
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def _after_fork() -> None:
    errors = []
    for each in [*_CONNECTIONS, *_STUDIES]:
        try:
            each._after_fork()
        except Exception as error:  # a study that was deleted must not keep the others from being usable
            errors.append(error)
    if errors:
        raise errors[0]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
