"""The socket for reports of workers: lost connections, connections without the key, errors, and the end of a run."""

import os
import pickle
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client

import pytest

import belated as bl
from belated.run import report_server
from belated.run.curves import DirectReports
from belated.run.report_server import RemoteReports, ReportServer
from tests.unit.run.runs import SECONDS

HOST = "127.0.0.1"


@pytest.fixture
def search():
    """An optimizer with one pending trial."""
    search = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0, curve=bl.Curve(9))
    search.suggest()
    return search


@pytest.fixture(params=[None, HOST], ids=["local", "network"])
def server(search, request):
    server = ReportServer(DirectReports(search), request.param)
    yield server
    server.close()


def test_reports_arrive_and_decisions_return(search, server):
    remote = pickle.loads(pickle.dumps(server.remote))
    assert remote.start(0) == 0
    assert [remote.report(0, step, step / 2, 0) for step in (1, 2)] == [False, False]
    assert remote.report(0, 3, float("nan"), 0) is False
    assert list(search.trials[0].curve) == [1, 2, 3] and search.trials[0].curve[2] == 1.0
    assert remote.should_stop(0) is False


def test_every_start_of_an_evaluation_is_another_attempt(search, server):
    remote = server.remote
    assert [remote.start(0), remote.start(0)] == [0, 1]
    remote.report(0, 1, 0.5, 1)
    remote.report(0, 1, 0.25, 0)  # of the replaced attempt
    assert search.trials[0].curve == {1: 0.5}
    # In a further run, the numbers of attempts continue after the last attempt that has reported.
    assert DirectReports(search).start(0) == 2


def test_errors_have_the_types_and_messages_that_they_have_in_threads(search, server):
    direct, remote = DirectReports(search), server.remote
    remote.report(0, 1, 0.5, 0)
    for call in [
        lambda reports: reports.report(0, 10, 0.5, 0),
        lambda reports: reports.report(0, 1.5, 0.5, 0),
        lambda reports: reports.report(0, 1, "a", 0),
        lambda reports: reports.report(0, 1, object, 0),
        lambda reports: reports.report(0, 1, 0.75, 0),
        lambda reports: reports.report(5, 1, 0.5, 0),
        lambda reports: reports.start(5),
    ]:
        with pytest.raises(bl.BelatedError) as expected:
            call(direct)
        with pytest.raises(type(expected.value)) as raised:
            call(remote)
        assert str(raised.value) == str(expected.value)


def test_a_lost_connection_is_opened_again(search, server):
    server.remote.report(0, 1, 0.5, 0)
    report_server._OF_THREAD.connection.close()
    server.remote.report(0, 2, 0.75, 0)
    assert search.trials[0].curve == {1: 0.5, 2: 0.75}


class Interrupted:
    """A connection that is interrupted between a request and its answer."""

    def __init__(self, connection):
        self.connection = connection
        self.send_bytes = connection.send_bytes

    def recv_bytes(self):
        raise KeyboardInterrupt


def test_an_interrupted_call_does_not_shift_the_answers_of_later_calls(search, server):
    remote = server.remote
    assert remote.start(0) == 0
    report_server._OF_THREAD.connection = Interrupted(report_server._OF_THREAD.connection)
    with pytest.raises(KeyboardInterrupt):
        remote.should_stop(0)
    assert remote.start(0) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_has_its_own_connection(search, server):
    server.remote.report(0, 1, 0.5, 0)
    child = os.fork()
    if child == 0:
        server.remote.report(0, 2, 0.75, 0)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    server.remote.report(0, 3, 1.0, 0)
    assert search.trials[0].curve == {1: 0.5, 2: 0.75, 3: 1.0}


def test_threads_report_at_the_same_time(search, server):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda step: server.remote.report(0, step, float(step), 0), range(1, 10)))
    assert search.trials[0].curve == {step: float(step) for step in range(1, 10)}


def test_programs_that_connect_and_send_nothing_do_not_disturb_reports(search):
    server = ReportServer(DirectReports(search), HOST)
    silent = [socket.create_connection(server.remote._address) for _ in range(3)]
    try:
        silent[0].sendall(b"GET / HTTP/1.1\r\n\r\n")
        server.remote.report(0, 1, 0.5, 0)
        assert search.trials[0].curve == {1: 0.5}
    finally:
        for each in silent:
            each.close()
        server.close()


def test_a_connection_without_the_key_is_refused(search, server):
    remote = server.remote
    other = RemoteReports(remote.curve, remote.minimizes, remote._address, b"another key")
    with pytest.raises(AuthenticationError):
        other.report(0, 1, 0.5, 0)
    with Client(remote._address) as connection:
        connection.recv_bytes()  # the challenge
        connection.send_bytes(b'["report", 0, 1, 0.5, 0]')
        connection.recv_bytes()  # the refusal
        with pytest.raises((EOFError, OSError)):
            connection.recv_bytes()
    assert search.trials[0].curve == {}


def test_after_a_run_its_reports_are_refused_and_its_threads_end(search, server):
    remote = server.remote
    remote.report(0, 1, 0.5, 0)
    server.close()
    with pytest.raises(ConnectionError, match="cannot report to the run at .*: the run has ended, or"):
        # One report may still arrive on the open connection.
        for step in (2, 3):
            remote.report(0, step, 0.5, 0)
    end = time.monotonic() + SECONDS
    while any(thread.name == "belated-reports" for thread in threading.enumerate()) and time.monotonic() < end:
        time.sleep(0.01)
    assert time.monotonic() < end


def test_a_host_of_another_machine_is_refused(search):
    with pytest.raises(
        bl.errors.InvalidSetting, match=r"cannot open a socket at 203\.0\.113\.1 for the reports of workers"
    ):
        ReportServer(DirectReports(search), "203.0.113.1")
