"""A socket for the processes of one machine."""

from __future__ import annotations

import os
import socket
import struct
import sys
from multiprocessing.connection import Connection, Listener
from typing import Any


def local_listener() -> Listener:
    """Return a listener for processes on this machine."""
    if sys.platform == "linux":
        return _AbstractListener("\0belated-" + os.urandom(16).hex(), backlog=2048)
    return Listener(("127.0.0.1", 0), backlog=2048)


class _AbstractListener(Listener):
    """A listener in the abstract namespace of Linux, which only processes of the same user can use.

    A socket with a file needs a short path, and its file would remain if the process was killed.
    """

    @property
    def address(self) -> str:
        return os.fsdecode(super().address)  # Python returns bytes

    def accept(self) -> Connection[Any, Any]:
        while True:
            connection = super().accept()
            with socket.socket(fileno=os.dup(connection.fileno())) as peer:
                _, user, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            if user == os.geteuid():
                return connection
            connection.close()
