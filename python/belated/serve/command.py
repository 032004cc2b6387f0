"""`belated serve`: its arguments, and the server's process."""

from __future__ import annotations

import argparse
import logging
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from belated._core import InvalidSetting
from belated.serve.tokens import read_tokens
from belated.space.arguments import whole_in_text
from belated.store import open_store
from belated.study.commands import add_store

# After the signal to end, clients may wait this number of seconds for answers. Requests are completed even if clients
# do not get an answer.
_PATIENCE = 30

# Maximum number of connections that wait to be accepted.
_WAITING = 2048

# The system keeps this number of bytes of requests, and of answers, for a connection. By default, it may keep megabytes
# of answers for a client that does not read.
_BUFFER = 1 << 16


def add_to(commands: Any) -> None:
    """Add the command ``serve``."""
    text = "serve the studies of a store over HTTP"
    serve = commands.add_parser("serve", help=text, description=f"{text[0].upper()}{text[1:]}.")
    add_store(serve)
    serve.add_argument(
        "--host", metavar="HOST", default="127.0.0.1", help="the address to listen at (default: %(default)s)"
    )
    serve.add_argument(
        "--port", metavar="PORT", type=_port, default=8350, help="the port (default: %(default)s; 0: a free port)"
    )
    serve.add_argument(
        "--token-file",
        metavar="FILE",
        type=Path,
        help="a file with the token that requests must show, or with a line ROLE NAME TOKEN for each user "
        "(default: the environment variable BELATED_TOKEN)",
    )
    serve.add_argument("--tls-cert", metavar="FILE", type=Path, help="encrypt with this certificate (PEM)")
    serve.add_argument("--tls-key", metavar="FILE", type=Path, help="its key (default: in the file of the certificate)")
    serve.add_argument(
        "--allow-unencrypted",
        action="store_true",
        help="listen at an address that other machines reach, although tokens are sent unencrypted",
    )
    serve.set_defaults(command=serve_command)


def serve_command(arguments: argparse.Namespace) -> None:
    """Serve until SIGINT or SIGTERM."""
    tokens = read_tokens(arguments.token_file)
    missing = [name for name in ("fastapi", "uvicorn") if find_spec(name) is None]
    if missing:
        raise InvalidSetting(f"this needs {' and '.join(missing)}: pip install 'belated[serve]'")
    import uvicorn

    from belated.serve.app import make_app
    from belated.serve.connections import accepted_at_once, encryption, limited_protocol
    from belated.serve.studies import OpenStudies
    from belated.serve.watched import Watched

    certificate, key = arguments.tls_cert, arguments.tls_key
    if certificate is None and key is not None:
        raise InvalidSetting(f"--tls-key {key} is given without --tls-cert: pass both")
    context = None
    if certificate is not None:
        files = [certificate] if key is None else [certificate, key]
        context = Watched(lambda: encryption(certificate, key), files, "certificate stays").get
    store = open_store(arguments.store)
    studies = OpenStudies(store)
    studies.read_names()  # raise an error now and not at the first request
    with _ended_by_signals(), _listening(arguments.host, arguments.port) as listener:
        host, port = listener.getsockname()[:2]
        is_open = context is None and not _is_loopback(host)
        if is_open and not arguments.allow_unencrypted:
            raise InvalidSetting(
                f"host={arguments.host!r} can be reached from other machines, and tokens would be sent unencrypted: "
                "pass --tls-cert, listen at 127.0.0.1 behind a proxy with TLS, or pass --allow-unencrypted"
            )
        app = make_app(studies, tokens)
        # Log only errors. Warnings are about requests that are not valid HTTP, so any client could fill the log with
        # warnings.
        settings = {"http": limited_protocol(context), "lifespan": "on", "ws": "none", "log_level": "error"}
        settings |= {"backlog": accepted_at_once(), "timeout_graceful_shutdown": _PATIENCE}
        if context is not None:
            settings["loop"] = "asyncio"  # whose class encrypts
        settings |= dict.fromkeys(("access_log", "server_header", "proxy_headers"), False)
        server = uvicorn.Server(uvicorn.Config(app, **settings))
        app.closing = lambda: server.should_exit
        shown, scheme = f"[{host}]" if ":" in host else host, "http" if context is None else "https"
        print(f"belated: {store.url} is served at {scheme}://{shown}:{port}, its API is described at /docs", flush=True)
        if is_open:
            message = "tokens are sent unencrypted: let only a proxy that adds TLS reach this port"
            print(f"belated: {message}", file=sys.stderr, flush=True)
        logging.basicConfig(level=logging.ERROR, format="belated: %(message)s")
        # Requests that have begun are completed before this call returns.
        server.run(sockets=[listener])


def _port(text: str) -> int:
    number = whole_in_text(text)
    if number is None or number > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: pass a whole number from 0 to 65535")
    return number


class _Listener(socket.socket):
    """A socket at which many connections can wait, although asyncio accepts only a few at a time.

    asyncio uses one number, `backlog`, for both limits. If the queue is full, a client tries again after a second.
    """

    def listen(self, backlog: int = _WAITING, /) -> None:
        super().listen(_WAITING)


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=_WAITING)
    except OSError as error:
        raise InvalidSetting(f"host={host!r}, port={port} cannot be listened at: {error}") from None
    # Connections inherit these options.
    for option, value in ((socket.SO_KEEPALIVE, 1), (socket.SO_RCVBUF, _BUFFER), (socket.SO_SNDBUF, _BUFFER)):
        listening.setsockopt(socket.SOL_SOCKET, option, value)
    # If the socket names its protocol, asyncio sends small packets at once. Otherwise each answer waits 40 ms for the
    # client's delayed acknowledgement of its headers.
    return _Listener(listening.family, listening.type, socket.IPPROTO_TCP, listening.detach())


def _is_loopback(host: str) -> bool:
    import ipaddress

    return ipaddress.ip_address(host.partition("%")[0]).is_loopback


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Return a context in which SIGINT and SIGTERM end the program with the exit code of success."""
    before = {kind: signal.signal(kind, _stop) for kind in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


def _stop(number: int, frame: Any) -> None:
    # uvicorn calls this function after it has stopped, or before it starts.
    raise SystemExit(0)
