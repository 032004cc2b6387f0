"""The socket through which worker processes report the steps of curves to the process of the run."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from multiprocessing.connection import Client, Connection, Listener
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from belated.optimizers.curve import Curve
    from belated.run.curves import DirectReports


class ReportServer:
    """A socket that receives the reports of processes on this host."""

    def __init__(self, direct: DirectReports) -> None:
        self._direct = direct
        self._key = os.urandom(32)
        self._listener = Listener(authkey=self._key)
        self._is_closed = False
        self.remote = RemoteReports(direct.curve, direct.minimizes, self._listener.address, self._key)
        threading.Thread(target=self._accept, name="belated-reports", daemon=True).start()

    def _accept(self) -> None:
        while not self._is_closed:
            # A client that fails the authentication, or ends during it, must not end this loop.
            with suppress(Exception):
                connection = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: Connection[Any, Any]) -> None:
        with connection, suppress(EOFError, OSError):
            while True:
                name, arguments = connection.recv()
                answer: Any
                try:
                    answer = getattr(self._direct, name)(*arguments)
                except Exception as error:
                    answer = error
                connection.send(answer)

    def close(self) -> None:
        """End the thread that accepts connections, and close the socket."""
        self._is_closed = True
        with suppress(Exception):
            Client(self._listener.address, authkey=self._key).close()
        self._listener.close()


# The connection of this process to each server.
_CONNECTIONS: dict[Any, Connection[Any, Any]] = {}
_LOCK = threading.Lock()


class RemoteReports:
    """Reports of a process to the `ReportServer` of its run."""

    def __init__(self, curve: Curve, minimizes: bool, address: Any, key: bytes) -> None:
        self.curve, self.minimizes, self._address, self._key = curve, minimizes, address, key

    def report(self, number: int, step: int, value: float, attempt: int) -> bool:
        return self._call("report", number, step, value, attempt)

    def should_stop(self, number: int) -> bool:
        return self._call("should_stop", number)

    def _call(self, name: str, *arguments: Any) -> bool:
        with _LOCK:
            if self._address not in _CONNECTIONS:
                _CONNECTIONS[self._address] = Client(self._address, authkey=self._key)
            connection = _CONNECTIONS[self._address]
            connection.send((name, arguments))
            answer = connection.recv()
        if isinstance(answer, Exception):
            raise answer
        return bool(answer)
