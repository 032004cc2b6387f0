"""Clients without a token cannot occupy memory, and can hold only a few connections for a short time."""

import os
import socket
import subprocess
import sys
import time
from contextlib import suppress

import pytest

import belated as bl
from campaigns import service

pytestmark = [
    pytest.mark.skipif(service.missing() is not None, reason="fastapi, uvicorn or httpx is not installed"),
    pytest.mark.skipif(os.name != "posix", reason="limits the files of a process"),
]

# The program of a server that has a timeout of half a second and at most 100 open files, and whose suggestions take
# longer than the timeout.
PROGRAM = """
import resource, sys, time
from belated import Study, cli
from belated.serve import connections

def suggest(study, *arguments, suggest=Study.suggest, **settings):
    time.sleep(2)
    return suggest(study, *arguments, **settings)

Study.suggest = suggest
connections.PATIENCE = float(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.fixture
def start(tmp_path):
    """Return a function that starts a server with a timeout and returns its process and its port."""
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    bl.Study("study", url, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
    started = []

    def start(patience):
        environment = os.environ | {"BELATED_TOKEN": service.TOKEN, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", PROGRAM, str(patience), "serve", url, "--port", "0"]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process, int(process.stdout.readline().split(" served at ")[1].split(",")[0].rpartition(":")[2])

    yield start
    for process in started:
        process.kill()
        process.communicate()


def ask(port, data):
    """Open a connection and send bytes."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=10)
    connection.sendall(data)
    return connection


def wait_until_closed(connection):
    with suppress(ConnectionResetError):
        while connection.recv(4096):
            pass


def request(line, *headers):
    shown = [line, "Host: x", f"Authorization: Bearer {service.TOKEN}", *headers, "", ""]
    return "\r\n".join(shown).encode()


@pytest.mark.parametrize("path", ["/", "/docs", "/openapi.json"])
def test_a_body_for_a_path_without_token_is_refused_before_it_is_read(running, path):
    with ask(running.port, f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n".encode()) as sent:
        assert sent.recv(4096).split()[1] == b"405"


def test_only_silent_connections_are_closed(start):
    _, port = start(0.5)
    body = ["Content-Type: application/json", "Content-Length: 2"]
    silent = [
        ask(port, b""),
        ask(port, b"GET /v1/studies HTTP/1.1\r\nHost"),
        ask(port, request("POST /v1/studies/study/suggest HTTP/1.1", *body) + b"{"),
        ask(port, request("GET /v1/studies HTTP/1.1")),
    ]
    slow = ask(port, request("POST /v1/studies/study/suggest HTTP/1.1", *body) + b"{}")
    assert silent[3].recv(4096).split()[1] == b"200"
    for connection in silent:
        wait_until_closed(connection)
    assert slow.recv(4096).split()[1] == b"200"


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", None], ids=["stranger", "token"])
def test_clients_that_do_not_read_are_closed(start, sent, tmp_path):
    study = bl.Study.load("study", f"sqlite:///{tmp_path / 'studies.db'}")
    study.suggest().observe(0.5, attrs={"text": "x" * 100_000})
    _, port = start(0.5)
    connections = []
    for _ in range(50):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        connection.connect(("127.0.0.1", port))
        connection.settimeout(0.5)
        with suppress(OSError):
            connection.sendall((sent or request("GET /v1/studies/study/trials/0 HTTP/1.1")) * 200)
        connections.append(connection)
    end = time.monotonic() + 60
    answer = b""
    while b" 200 " not in answer and time.monotonic() < end:
        with suppress(ConnectionResetError), ask(port, request("GET /v1/studies HTTP/1.1")) as later:
            answer = later.recv(4096)
        time.sleep(0.1)
    assert b" 200 " in answer
    for connection in connections:
        connection.close()


@pytest.mark.parametrize("line", [b"a: " + b"b" * 60000 + b"\r\n", b"b" * 60000])
def test_endless_headers_are_refused(running, line):
    with ask(running.port, b"GET / HTTP/1.1\r\nHost: x\r\n") as sent, suppress(ConnectionError):
        for _ in range(1000):
            sent.sendall(line)
        pytest.fail("60 MB of headers were accepted")


@pytest.mark.parametrize(
    "line", ["POST /v1/studies HTTP/1.1", "POST /v1/studies/study/suggest HTTP/1.1", "GET / HTTP/1.1"]
)
@pytest.mark.parametrize("has_token", [False, True])
def test_a_malformed_body_is_400_and_is_not_logged(start, line, has_token):
    process, port = start(20.0)
    chunked = ["Transfer-Encoding: chunked", "Content-Type: application/json"]
    head = request(line, *chunked) if has_token else "\r\n".join([line, "Host: x", *chunked, "", ""]).encode()
    for body in (b"zz\r\n", b"4000\r\n" + b"b" * 0x5000, b"2\r\n{}" + b"b" * 100):
        with ask(port, head + body) as connection:
            assert connection.recv(4096).split()[1] in (b"400", b"401")
            wait_until_closed(connection)
        # The server may detect a malformed body after the answer has begun.
        with ask(port, head) as connection, suppress(ConnectionError):
            time.sleep(0.05)
            connection.sendall(body)
            wait_until_closed(connection)
    with ask(port, request("GET /v1/studies HTTP/1.1")) as later:
        assert later.recv(4096).split()[1] == b"200"
    process.terminate()
    assert process.communicate(timeout=30)[1] == ""


def test_the_server_does_not_use_httptools():
    # The protocol of uvicorn with httptools keeps headers of any length.
    program = """
import sys, types
sys.modules["httptools"] = types.ModuleType("httptools")
from belated.serve.connections import limited_protocol
assert not any("httptools" in each.__module__ for each in limited_protocol().__mro__)
"""
    assert (
        subprocess.run(
            [sys.executable, "-c", program], env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        ).returncode
        == 0
    )


def test_more_connections_than_files_are_refused_in_few_lines(start):
    process, port = start(3.0)
    crowd = [ask(port, b"") for _ in range(150)]
    # Connections up to the limit still work.
    crowd[0].sendall(request("GET /v1/studies HTTP/1.1"))
    assert crowd[0].recv(4096).split()[1] == b"200"
    with ask(port, b"") as refused:
        assert refused.recv(4096).split()[1] == b"503"
    # The server accepts new connections after it has closed the silent connections.
    for connection in crowd[1:]:
        wait_until_closed(connection)
    with ask(port, request("GET /v1/studies HTTP/1.1")) as later:
        assert later.recv(4096).split()[1] == b"200"
    process.terminate()
    _, said = process.communicate(timeout=30)
    # The log is one line, which states the server's own limit and not the system's limit of open files.
    assert process.returncode == 0 and len(said.splitlines()) == 1, said
    for connection in crowd:
        connection.close()
