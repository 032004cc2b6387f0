"""Limits on connections: their number, and the time in which a connection has to send a request; and encryption."""

import asyncio
import logging
import ssl
import sys
import time
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from belated._core import InvalidSetting

#: Maximum number of connections at a time. Connections use at most half of the files that the process may open, because
#: studies need the other half.
MOST_CONNECTIONS = 1000

#: A connection is closed if it does not send its whole next request within this number of seconds, or does not read the
#: answers to its earlier requests.
PATIENCE = 20.0

#: An encrypted connection is closed if its handshake, or its end, takes more than this number of seconds.
HANDSHAKE = 10.0

# Seconds between two messages about refused connections.
_BETWEEN_MESSAGES = 60.0

_FULL = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


def most_connections() -> int:
    """Return the maximum number of connections at a time."""
    try:
        import resource
    except ImportError:  # Windows
        return MOST_CONNECTIONS
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST_CONNECTIONS if files == resource.RLIM_INFINITY else min(MOST_CONNECTIONS, files // 2)


def accepted_at_once() -> int:
    """Return the number of connections that are accepted before connections above the limit are refused.

    asyncio accepts up to this number of connections in each pass of its loop, and closes a refused connection about
    three passes later. Until then, each refused connection has an open file. If the number were larger, studies would
    have too few files.
    """
    return max(1, most_connections() // 8)


class _Message:
    """The log message about refused connections, which is logged at most once a minute."""

    def __init__(self) -> None:
        self._last = -_BETWEEN_MESSAGES

    def log(self, reason: str) -> None:
        now = time.monotonic()
        if now - self._last >= _BETWEEN_MESSAGES:
            self._last = now
            logging.getLogger("belated").error("connections are refused: %s", reason)


def encryption(certificate: Path, key: Path | None) -> ssl.SSLContext:
    """Return the settings of TLS. Raise InvalidSetting if the files of the certificate or its key are not usable."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # Without a password, OpenSSL would ask for the password of a key at the terminal.
        context.load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:  # SSLError is an OSError
        raise InvalidSetting(
            f"the certificate {certificate} and its key {key or 'in this file'} are not usable: pass files in PEM "
            f"format, with a key that has no password ({error})"
        ) from None
    return context


def limited_protocol(context: Callable[[], ssl.SSLContext] | None = None) -> Callable[..., asyncio.BaseProtocol]:
    """Return what makes Uvicorn's protocol with limits, and with encryption if `context` is given.

    `context` returns the settings of TLS for a new connection.
    """
    most, message = most_connections(), _Message()

    # Do not let uvicorn choose the protocol: its other protocol, based on httptools, does not limit headers.
    class Limited(H11Protocol):
        # The request at the last check, or None before the first check.
        checked: Any = None
        check: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            if len(self.connections) > most:
                message.log(f"{most} are open; set ulimit -n higher if it is less than {2 * MOST_CONNECTIONS}")
                transport.write(_FULL)
                transport.close()
            else:
                self.check = self.loop.call_later(PATIENCE, self.close_if_silent)

        def connection_lost(self, exc: Exception | None) -> None:
            if self.check is not None:
                self.check.cancel()
            super().connection_lost(exc)

        def send_400_response(self, msg: str) -> None:
            # Prevent the answer to a request that has already begun: uvicorn would log a traceback for each request
            # with a malformed body.
            if self.cycle is not None:
                self.cycle.disconnected = True
                self.cycle.message_event.set()
            if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                super().send_400_response(msg)
            else:
                self.transport.abort()

        def close_if_silent(self) -> None:
            """Close a connection that has not sent a whole request, or not read an answer, since the last check."""
            request = self.cycle
            is_carried_out = request is not None and not request.more_body and not request.response_complete
            is_carried_out = is_carried_out and not self.flow.write_paused
            if request is self.checked and not is_carried_out:
                # `close` would wait until the client has read all data.
                self.transport.abort()
                return
            self.checked = request
            self.check = self.loop.call_later(PATIENCE, self.close_if_silent)

    if context is None:
        return Limited
    times = {"ssl_handshake_timeout": HANDSHAKE}
    if sys.version_info >= (3, 11):
        times["ssl_shutdown_timeout"] = HANDSHAKE
    opened: set[SSLProtocol] = set()

    class Encrypted(SSLProtocol):
        """The encryption of a connection. Connections count from the start of their handshakes."""

        # Size in bytes of the buffer that each connection has while it is open. TLS divides data into parts of this
        # size; asyncio's default is 256 kB.
        max_size = 1 << 14

        def connection_made(self, transport: Any) -> None:
            opened.add(self)
            if len(opened) > most:
                message.log(f"{most} are open; set ulimit -n higher if it is less than {2 * MOST_CONNECTIONS}")
                transport.abort()
            else:
                super().connection_made(transport)

        def connection_lost(self, exc: BaseException | None) -> None:
            opened.discard(self)
            super().connection_lost(exc)

    def encrypted(**settings: Any) -> asyncio.BaseProtocol:
        loop = asyncio.get_running_loop()
        return Encrypted(loop, Limited(**settings), context(), None, server_side=True, **times)  # type: ignore[arg-type]

    return encrypted


def log_refusals_rarely() -> None:
    """Log refused connections at most once a minute; asyncio would log a traceback for each refused connection."""
    message = _Message()

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if "socket.accept()" in context.get("message", ""):
            message.log(str(context.get("exception")))
        else:
            loop.default_exception_handler(context)

    asyncio.get_running_loop().set_exception_handler(handle)
