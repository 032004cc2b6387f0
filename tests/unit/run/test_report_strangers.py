"""Programs without the key can hold few connections to the socket for reports, for a short time."""

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from multiprocessing.connection import Client

import pytest

import belated as bl
from belated.run import report_server
from belated.run.curves import DirectReports
from belated.run.report_server import ReportServer
from tests.unit.run.runs import SECONDS

N_STRANGERS = 4


@pytest.fixture
def search():
    """An optimizer with one pending trial."""
    search = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0, curve=bl.Curve(9))
    search.suggest()
    return search


@pytest.fixture(params=[None, "127.0.0.1"], ids=["local", "network"])
def server(search, request, monkeypatch):
    """A server with a low limit of connections without the key."""
    monkeypatch.setattr(report_server, "MOST_STRANGERS", N_STRANGERS)
    monkeypatch.setattr(report_server, "PATIENCE", SECONDS)
    monkeypatch.setattr(report_server, "LEAST_PATIENCE", 0.0)
    server = ReportServer(DirectReports(search), request.param)
    yield server
    server.close()


def connect(server):
    address = server.remote._address
    connection = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
    connection.settimeout(SECONDS)
    connection.connect(address)
    return connection


def wait_until_closed(connection):
    with suppress(ConnectionResetError):
        while connection.recv(4096):
            pass


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "belated-reports"]


def test_the_oldest_stranger_is_dropped_and_workers_still_report(search, server):
    with ExitStack() as stack:
        crowd = [stack.enter_context(connect(server)) for _ in range(5 * N_STRANGERS)]
        for each in crowd[: -2 * N_STRANGERS]:
            wait_until_closed(each)
        server.remote.report(0, 1, 0.5, 0)
        assert search.trials[0].curve == {1: 0.5}
        assert len(threads()) <= N_STRANGERS + 3  # for accepting, for a worker, and ending


def test_a_stranger_is_not_dropped_before_it_had_time_for_the_handshake(server, monkeypatch):
    monkeypatch.setattr(report_server, "LEAST_PATIENCE", SECONDS)
    with ExitStack() as stack:
        crowd = [stack.enter_context(connect(server)) for _ in range(N_STRANGERS + 1)]
        for each in crowd[:-1]:
            assert each.recv(4)  # the challenge
        crowd[-1].settimeout(0.2)
        with pytest.raises(TimeoutError):
            crowd[-1].recv(4)
        # When a connection without the key ends, another is accepted.
        crowd[0].close()
        crowd[-1].settimeout(SECONDS)
        assert crowd[-1].recv(4)


@pytest.mark.parametrize("sent", [b"", b"\0", b"\0\0\0\x20abc"], ids=["nothing", "a byte", "a part"])
def test_an_unfinished_handshake_is_ended(server, monkeypatch, sent):
    monkeypatch.setattr(report_server, "PATIENCE", 0.2)
    with connect(server) as connection:
        connection.sendall(sent)
        wait_until_closed(connection)


@pytest.mark.parametrize(
    "sent", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\0" * 9, b"\x7f\xff\xff\xff", b"\xff" * 64]
)
def test_other_protocols_and_long_messages_are_ended_at_once(server, sent):
    with connect(server) as connection:
        connection.sendall(sent)
        wait_until_closed(connection)


def test_workers_are_not_limited(server, monkeypatch):
    monkeypatch.setattr(report_server, "LEAST_PATIENCE", SECONDS)
    n_workers = 5 * N_STRANGERS
    barrier = threading.Barrier(n_workers, timeout=SECONDS)

    def work(_):
        with suppress(AttributeError):
            del report_server._OF_THREAD.owner
        barrier.wait()
        server.remote.should_stop(0)
        connection = report_server._OF_THREAD.connection
        barrier.wait()
        server.remote.should_stop(0)
        return report_server._OF_THREAD.connection is connection

    with ThreadPoolExecutor(n_workers) as pool:
        assert all(pool.map(work, range(n_workers)))


@pytest.mark.parametrize("name", ["close", "curve", "_optimizer", "__init__", "", None])
def test_workers_call_only_methods_for_reports(search, server, name):
    with pytest.raises(RuntimeError):
        server.remote._call(name)
    assert server.remote.start(0) == 0


def test_a_request_of_a_worker_is_bounded(server):
    with Client(server.remote._address, authkey=server._key) as connection, pytest.raises((EOFError, OSError)):
        connection.send_bytes(b" " * (report_server._LARGEST_REQUEST + 1))
        connection.recv_bytes()


def test_connections_in_a_network_find_that_the_other_machine_has_vanished(search):
    server = ReportServer(DirectReports(search), "127.0.0.1")
    try:
        server.remote.start(0)
        [of_server] = server._open
        for connection in (of_server, report_server._OF_THREAD.connection):
            shared = socket.socket(fileno=connection.fileno())
            assert shared.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            if hasattr(socket, "TCP_USER_TIMEOUT"):
                assert 0 < shared.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) <= 300_000
            if hasattr(socket, "TCP_KEEPIDLE"):
                assert shared.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) <= 300
            shared.detach()
    finally:
        server.close()


def test_a_worker_does_not_wait_forever_for_the_handshake(search, monkeypatch):
    # If the system has discarded the connection of a worker, because too many were waiting, only keepalive detects
    # this.
    def challenge(connection, key):
        shared = socket.socket(fileno=connection.fileno())
        seen.append(shared.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))
        shared.detach()
        raise EOFError

    seen, server = [], ReportServer(DirectReports(search), "127.0.0.1")
    try:
        with monkeypatch.context() as patch:
            patch.setattr(report_server, "answer_challenge", challenge)
            with pytest.raises(ConnectionError):
                server.remote.start(0)
        assert seen and all(seen)
    finally:
        server.close()


def test_connections_that_cannot_be_accepted_do_not_use_the_processor(search, monkeypatch):
    server = ReportServer(DirectReports(search))
    calls, pauses = [], []

    def accept():
        calls.append(None)
        server._is_closed = len(calls) == 3
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(server._listener, "accept", accept)
    monkeypatch.setattr(time, "sleep", pauses.append)
    server._accept()
    assert len(pauses) >= 3 and min(pauses) > 0
    server.close()


def test_a_connection_is_closed_if_there_is_no_thread_for_it(server, monkeypatch):
    def start(*_):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(server, "_start_thread", start)
        with connect(server) as connection:
            wait_until_closed(connection)
    assert server.remote.start(0) == 0


def test_idle_connections_end_with_the_run(server):
    with connect(server) as stranger:
        server.remote.start(0)
        server.close()
        end = time.monotonic() + SECONDS
        while threads() and time.monotonic() < end:
            time.sleep(0.01)
        assert not threads()
        wait_until_closed(stranger)
