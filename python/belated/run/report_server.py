"""The socket through which workers in other processes report the steps of curves to the process of the run.

Both sides prove that they have the key of the run. Messages are JSON, because in a network the data of a connection is
not encrypted, and reading JSON never executes code.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Client, Connection, Listener, answer_challenge, deliver_challenge
from typing import TYPE_CHECKING, Any

from belated import _core
from belated._core import InvalidSetting
from belated.optimizers.curve_reports import checked_report
from belated.run.local_listener import local_listener
from belated.store import StoreError

if TYPE_CHECKING:
    from belated.optimizers.curve import Curve
    from belated.run.curves import DirectReports

# The interval in seconds at which the threads of a server check whether the run has ended.
_CHECK_EVERY = 0.5


class ReportServer:
    """A socket that receives the reports of other processes.

    Parameters
    ----------
    direct : DirectReports
    host : str, optional
        The address of this machine at which workers on other machines can reach the socket. None: all workers are on
        this machine.

    Raises
    ------
    InvalidSetting
        A socket cannot be opened at the host.
    """

    def __init__(self, direct: DirectReports, host: str | None = None) -> None:
        self._direct = direct
        self._key = os.urandom(32)
        try:
            self._listener = local_listener() if host is None else Listener((host, 0), backlog=128)
        except OSError as error:
            where = "" if host is None else f" at {host}"
            raise InvalidSetting(f"the run cannot open a socket{where} for the reports of workers: {error}") from error
        self._is_closed = False
        self.remote = RemoteReports(direct.curve, direct.minimizes, self._listener.address, self._key)
        self._start_thread(self._accept)

    @staticmethod
    def _start_thread(target: Callable[..., None], *arguments: Any) -> None:
        threading.Thread(target=target, args=arguments, name="belated-reports", daemon=True).start()

    def _accept(self) -> None:
        while not self._is_closed:
            with suppress(Exception):
                connection = self._listener.accept()
                # Authenticate in the new thread, because other programs may connect and then send nothing.
                self._start_thread(self._serve, connection)

    def _serve(self, connection: Connection[Any, Any]) -> None:
        with connection, suppress(Exception):
            deliver_challenge(connection, self._key)
            answer_challenge(connection, self._key)
            while not self._is_closed:
                if connection.poll(_CHECK_EVERY):
                    name, *arguments = json.loads(connection.recv_bytes())
                    connection.send_bytes(json.dumps(self._answer(name, arguments)).encode())

    def _answer(self, name: str, arguments: list[Any]) -> dict[str, Any]:
        try:
            return {"result": getattr(self._direct, name)(*arguments)}
        except Exception as error:
            name = "StoreError" if isinstance(error, StoreError) else type(error).__name__
            return {"error": name, "message": str(error)}

    def close(self) -> None:
        """End the threads of the server, and close the socket. Evaluations that continue can no longer report."""
        self._is_closed = True
        with suppress(Exception):
            Client(self._listener.address).close()
        self._listener.close()


# The last connection of each thread, and the address and process that this connection belongs to. A forked process
# cannot use the connection of its parent.
_OF_THREAD = threading.local()


class RemoteReports:
    """Reports of a process to the `ReportServer` of its run."""

    def __init__(self, curve: Curve, minimizes: bool, address: Any, key: bytes) -> None:
        self.curve, self.minimizes, self._address, self._key = curve, minimizes, address, key

    def start(self, number: int) -> int | None:
        attempt = self._call("start", number)
        return None if attempt is None else int(attempt)

    def report(self, number: int, step: int, value: float, attempt: int) -> bool:
        return bool(self._call("report", number, *checked_report(self.curve, number, step, value), attempt))

    def should_stop(self, number: int) -> bool:
        return bool(self._call("should_stop", number))

    def _call(self, *request: Any) -> Any:
        sent = json.dumps(request).encode()
        try:
            try:
                answer = self._exchange(sent)
            except (EOFError, OSError):
                # The network may have closed a connection that was not used for a long time. Repeated calls do not have
                # an effect, except that `start` may skip a number.
                answer = self._exchange(sent)
        except (EOFError, OSError) as error:
            raise ConnectionError(
                f"this worker cannot report to the run at {_in_words(self._address)}: the run has ended, or the worker "
                f"cannot connect to the machine of the run ({type(error).__name__}: {error})"
            ) from error
        if "error" in answer:
            kind = StoreError if answer["error"] == "StoreError" else getattr(_core, answer["error"], RuntimeError)
            raise kind(answer["message"])
        return answer["result"]

    def _exchange(self, sent: bytes) -> Any:
        """Send a request over the connection of this thread; return the answer."""
        owner = (self._address, os.getpid())
        if getattr(_OF_THREAD, "owner", None) != owner:
            _OF_THREAD.connection = Client(self._address, authkey=self._key)
        # If an exception interrupts the exchange, the next call needs a new connection.
        _OF_THREAD.owner = None
        _OF_THREAD.connection.send_bytes(sent)
        answer = json.loads(_OF_THREAD.connection.recv_bytes())
        _OF_THREAD.owner = owner
        return answer


def _in_words(address: Any) -> str:
    return f"{address[0]}:{address[1]}" if isinstance(address, tuple) else str(address).replace("\0", "@")
