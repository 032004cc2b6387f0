"""The end of connections: they are closed with their store, or before the interpreter ends."""

import os
import weakref
from contextlib import suppress
from typing import Any

# How long the end of the interpreter waits for the transaction of another thread, in seconds.
_WAIT = 1.0


def close_with(owner: object, connection: Any, lock: Any) -> "weakref.finalize[..., Any]":
    """Close a connection when its owner is deleted, or when the interpreter ends.

    A method ``__del__`` may run after the modules that it uses were deleted. The lock of the owner is held meanwhile.
    The result is no longer alive once the connection is closed: functions that are called later, for example by
    `atexit`, have to connect again.
    """
    return weakref.finalize(owner, _close, connection, lock, os.getpid())


def _close(connection: Any, lock: Any, process: int) -> None:
    if process != os.getpid() or not lock.acquire(timeout=_WAIT):
        return
    try:
        # If closing fails, garbage collection closes the connection.
        with suppress(Exception):
            connection.close()
    finally:
        lock.release()
