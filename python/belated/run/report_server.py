"""The socket through which workers in other processes report the steps of curves to the process of the run.

Both sides prove that they have the key of the run. Messages are JSON, because in a network the data of a connection is
not encrypted, and reading JSON never executes code.
"""

from __future__ import annotations

import json
import math
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Client, Connection, Listener, answer_challenge, deliver_challenge
from typing import Any

from belated import _core
from belated.errors import InvalidSetting, StoreError
from belated.optimizers.curve import Curve, converted_report
from belated.run.local_listener import local_listener
from belated.run.objective import Reports

#: Maximum number of connections that have not proved that they have the key. Connections of workers are not limited.
MOST_STRANGERS = 64

#: A connection is closed if it does not prove within this number of seconds that it has the key. If there are too many
#: such connections, the oldest is closed, but not before `LEAST_PATIENCE`.
PATIENCE, LEAST_PATIENCE = 10.0, 3.0

# A peer that has not acknowledged any data for this number of seconds is lost.
_LOST_AFTER = 120

# The interval in seconds at which the thread that accepts connections checks their age, and whether the run has ended.
_CHECK_EVERY = 0.5

# Maximum number of bytes of a request.
_LARGEST_REQUEST = 1 << 20


class ReportServer:
    """A socket that receives the reports of other processes.

    Parameters
    ----------
    direct : Reports
        The reports of this process.
    host : str, optional
        The address of this machine at which workers on other machines can reach the socket. None: all workers are on
        this machine.

    Raises
    ------
    InvalidSetting
        A socket cannot be opened at the host.
    """

    def __init__(self, direct: Reports, host: str | None = None) -> None:
        self._methods = {name: getattr(direct, name) for name in ("start", "report", "should_stop")}
        self._key = os.urandom(32)
        try:
            self._listener = local_listener() if host is None else Listener((host, 0), backlog=2048)
        except OSError as error:
            where = "" if host is None else f" at {host}"
            raise InvalidSetting(f"the run cannot open a socket{where} for the reports of workers: {error}") from error
        listening = self._listener._listener._socket  # type: ignore[attr-defined]
        listening.settimeout(_CHECK_EVERY)
        _keep_alive(listening)  # connections inherit this
        self._is_closed = False
        # For each connection without the key, the time of its start, in order of time; infinity for workers. A
        # connection is closed by its thread after it has left this dict.
        self._open: dict[Connection[Any, Any], float] = {}
        self._changed = threading.Condition()
        self.remote = RemoteReports(direct.curve, direct.minimizes, self._listener.address, self._key)
        self._start_thread(self._accept)

    @staticmethod
    def _start_thread(target: Callable[..., None], *arguments: Any) -> None:
        threading.Thread(target=target, args=arguments, name="belated-reports", daemon=True).start()

    def _accept(self) -> None:
        while not self._is_closed:
            self._end_old_strangers()
            try:
                connection = self._listener.accept()
            except TimeoutError:
                continue
            except OSError:  # for example, the process has too many open files
                time.sleep(_CHECK_EVERY)
                continue
            with self._changed:
                self._open[connection] = time.monotonic()
            try:
                # Authenticate in the new thread, because other programs may connect and then send nothing.
                self._start_thread(self._serve, connection)
            except RuntimeError:  # the process has too many threads
                self._close(connection)

    def _end_old_strangers(self) -> None:
        """End connections that do not prove that they have the key, until a further connection is allowed."""
        with self._changed:
            while not self._is_closed:
                strangers = [(since, each) for each, since in self._open.items() if since < math.inf]
                is_full = len(strangers) >= MOST_STRANGERS
                since, oldest = strangers[0] if strangers else (math.inf, None)
                rest = since + (LEAST_PATIENCE if is_full else PATIENCE) - time.monotonic()
                if oldest is not None and rest <= 0:
                    del self._open[oldest]
                    _stop_receiving(oldest)
                elif is_full:
                    self._changed.wait(rest)
                else:
                    return

    def _serve(self, connection: Connection[Any, Any]) -> None:
        with suppress(Exception):  # the connection is lost, or speaks another protocol
            deliver_challenge(connection, self._key)
            answer_challenge(connection, self._key)
            with self._changed:
                if connection in self._open:
                    self._open[connection] = math.inf
                self._changed.notify_all()
            while not self._is_closed:
                name, *arguments = json.loads(connection.recv_bytes(_LARGEST_REQUEST))
                connection.send_bytes(json.dumps(self._answer(name, arguments)).encode())
        self._close(connection)

    def _close(self, connection: Connection[Any, Any]) -> None:
        with self._changed:
            self._open.pop(connection, None)
            self._changed.notify_all()
        connection.close()

    def _answer(self, name: str, arguments: list[Any]) -> dict[str, Any]:
        try:
            return {"result": self._methods[name](*arguments)}
        except Exception as error:
            name = "StoreError" if isinstance(error, StoreError) else type(error).__name__
            return {"error": name, "message": str(error)}

    def close(self) -> None:
        """End the threads of the server, and close the socket. Evaluations that continue can no longer report."""
        with self._changed:
            self._is_closed = True
            for connection in self._open:
                _stop_receiving(connection)
            self._changed.notify_all()
        self._listener.close()


def _stop_receiving(connection: Connection[Any, Any]) -> None:
    """Shut down the receiving side of a connection; the thread that waits for its data reads end-of-file."""
    shared = socket.socket(fileno=connection.fileno())
    with suppress(OSError):
        shared.shutdown(socket.SHUT_RD)
    shared.detach()


def _keep_alive(connected: socket.socket) -> None:
    """Let calls of a socket fail if they wait for a machine that has vanished from the network."""
    if connected.family == getattr(socket, "AF_UNIX", None):
        return
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    values = {"KEEPIDLE": _LOST_AFTER // 2, "KEEPALIVE": _LOST_AFTER // 2, "KEEPINTVL": _LOST_AFTER // 8, "KEEPCNT": 4}
    # The last option is about sent data, in milliseconds. Each system has some of the options.
    for name, value in (values | {"USER_TIMEOUT": 1000 * _LOST_AFTER}).items():
        if option := getattr(socket, f"TCP_{name}", None):
            connected.setsockopt(socket.IPPROTO_TCP, option, value)


# The last connection of each thread, the address of its server, and the process that opened it. A forked process cannot
# use the connection of its parent.
_OF_THREAD = threading.local()


class RemoteReports:
    """Reports of a process to the `ReportServer` of its run."""

    def __init__(self, curve: Curve, minimizes: bool, address: Any, key: bytes) -> None:
        self.curve, self.minimizes, self._address, self._key = curve, minimizes, address, key

    def start(self, number: int) -> int | None:
        attempt = self._call("start", number)
        return None if attempt is None else int(attempt)

    def report(self, number: int, step: int, value: float, attempt: int) -> bool:
        return bool(self._call("report", number, *converted_report(self.curve, number, step, value), attempt))

    def should_stop(self, number: int) -> bool:
        return bool(self._call("should_stop", number))

    def _call(self, *request: Any) -> Any:
        sent = json.dumps(request).encode()
        try:
            try:
                answer = self._exchange(sent)
            except (EOFError, OSError):
                # The network may have closed a connection that was not used for a long time, or the server a connection
                # that did not prove its key in time. Repeating a call does not have an effect, except that `start` may
                # skip a number.
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
            connection = _OF_THREAD.connection = Client(self._address)
            shared = socket.socket(fileno=connection.fileno())
            _keep_alive(shared)
            shared.detach()
            answer_challenge(connection, self._key)
            deliver_challenge(connection, self._key)
        # If an exception interrupts the exchange, the next call needs a new connection.
        _OF_THREAD.owner = None
        _OF_THREAD.connection.send_bytes(sent)
        answer = json.loads(_OF_THREAD.connection.recv_bytes())
        _OF_THREAD.owner = owner
        return answer


def _in_words(address: Any) -> str:
    return f"{address[0]}:{address[1]}" if isinstance(address, tuple) else str(address).replace("\0", "@")
