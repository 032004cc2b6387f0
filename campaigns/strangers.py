"""Test the sockets of belated with crowds of clients that lack the token or the key: python campaigns/strangers.py.

The sockets are `belated serve` and the socket to which worker processes of a run report. A crowd has connections of one
kind: silent connections, then connections that do not read answers, that write without an end, and that use another
protocol. While a crowd of 0.8 times the limit is connected, a client with the token (or the key) must be answered
within one second. While a crowd of 1.2 times the limit is connected, the client tries again until it is answered, which
must take at most 60 seconds. A connection may take at most 150 kB of memory. After each crowd, the server must have as
many threads and open files as before, and at the end about as much memory. Finally, many workers must be able to report
at the same time. The program needs fastapi, uvicorn and httpx, and prints JSON.

Then --silent clients connect to `belated serve` at once and send nothing. A client that is connected must be answered
within one second. The server must close all silent connections within 60 seconds, and new clients must be answered in
this time. With --secured 1 the server uses TLS and a file of users with roles; some crowds then have no handshake, and
others end it. A connection may then take 250 kB. The program then also needs OpenSSL.
"""

import json
import os
import resource
import socket
import ssl
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import harness
import service

import belated as bl
from belated.optimizers.curve import Curve
from belated.run.report_server import MOST_STRANGERS, RemoteReports

BELOW, ABOVE = 1.0, 60.0  # seconds
MEMORY, ENCRYPTED_MEMORY = 150.0, 250.0  # kB for a connection
REMAINS = 10_000.0  # kB that the server may keep, beside the memory of encrypted connections, which is used again
KINDS = {
    "silent": None,
    "does not read": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 2000,
    "writes a header": b"GET / HTTP/1.1\r\nHost: x\r\n" + b"a: " + b"b" * 60_000,
    "writes a body": b"POST /v1/studies HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    + b"4000\r\n"
    + b"b" * 0x4000,
    "writes requests": b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 500,
    "another protocol": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)) * 2,
}
# Crowds that do not encrypt, and a crowd of servers with TLS only
PLAIN = ("silent", "another protocol")
ENCRYPTED = "silent after the handshake"
REPORTS = """
import sys
import belated as bl
from belated.run.curves import DirectReports
from belated.run.report_server import ReportServer

search = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0, curve=bl.Curve(9))
search.suggest(n=1000)
server = ReportServer(DirectReports(search), "127.0.0.1")
print(server.remote._address[1], server._key.hex(), flush=True)
sys.stdin.read()
"""


class Crowd(threading.Thread):
    """Connections of one kind, which stay until `close`. With `context`, all except those of PLAIN kinds encrypt."""

    def __init__(self, port, kind, size, context=None):
        super().__init__(daemon=True)
        self.kind, self.connections, self.is_closed = kind, [], False
        for _ in range(size):
            connection = socket.socket()
            if kind == "does not read":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            connection.settimeout(10)
            try:
                connection.connect(("127.0.0.1", port))
                if context is not None and kind not in PLAIN:
                    connection = context.wrap_socket(connection, server_hostname="127.0.0.1")
            except OSError:  # the server has refused the connection
                connection.close()
                continue
            connection.setblocking(False)
            self.connections.append(connection)

    def run(self):
        """Write until the crowd is closed. Only clients that continue to write also read the answers."""
        data, is_first = KINDS.get(self.kind), True
        while data is not None and not self.is_closed and (is_first or self.kind.startswith("writes")):
            for connection in self.connections:
                with suppress(OSError):
                    connection.send(data if is_first or self.kind == "writes requests" else data[-0x4000:])
                    if self.kind.startswith("writes"):
                        connection.recv(1 << 20)
            is_first = False
            time.sleep(0.01)

    def n_open(self):
        """Return how many connections the server has not closed, and forget the others."""
        for connection in list(self.connections):
            try:
                is_closed = connection.recv(1 << 16) == b""
            except (BlockingIOError, ssl.SSLWantReadError):
                is_closed = False
            except OSError:
                is_closed = True
            if is_closed:
                connection.close()
                self.connections.remove(connection)
        return len(self.connections)

    def close(self):
        """Close all connections."""
        self.is_closed = True
        self.join()
        for connection in self.connections:
            connection.close()


def usage(pid):
    """Return the resident memory of a process in kB, and its numbers of threads and open files."""
    status = Path(f"/proc/{pid}/status").read_text()
    memory = int(status.partition("VmRSS:")[2].split()[0])
    return memory, len(os.listdir(f"/proc/{pid}/task")), len(os.listdir(f"/proc/{pid}/fd"))


def measure(pid, port, limit, answered, failures, quiet, context=None):
    """Return the results of all kinds of crowds at one socket. `answered` returns whether a client is answered."""
    results, kinds = {}, [*KINDS, *([] if context is None else [ENCRYPTED])]
    most = MEMORY if context is None else ENCRYPTED_MEMORY
    for kind in kinds:  # caches grow with the first connections
        crowd = Crowd(port, kind, 5, context)
        crowd.start()
        assert answered()
        crowd.close()
    time.sleep(quiet)
    start = usage(pid)
    for kind in kinds:
        found = results[kind] = {}
        for name, size, longest in (("below", int(0.8 * limit), BELOW), ("above", int(1.2 * limit), ABOVE)):
            before = usage(pid)
            crowd = Crowd(port, kind, size, context)
            crowd.start()
            time.sleep(1.0)
            begin, n_tries = time.monotonic(), 1
            while not answered() and time.monotonic() < begin + 2 * longest:
                n_tries += 1
                time.sleep(0.2)
            seconds = time.monotonic() - begin
            memory = (usage(pid)[0] - before[0]) / size
            crowd.close()
            end = time.monotonic() + 60
            while usage(pid)[1] > start[1] + 1 or usage(pid)[2] > start[2]:
                if time.monotonic() > end:
                    failures.note(f"{kind}, {name}: threads and files were {start[1:]} and are {usage(pid)[1:]}")
                    break
                time.sleep(0.1)
            found[name] = {"seconds": round(seconds, 2), "tries": n_tries, "kB": round(memory, 1)}
            if seconds > longest:
                failures.note(f"{kind}, {name} the limit: answered after {seconds:.1f} s")
            if memory > most:
                failures.note(f"{kind}, {name} the limit: {memory:.0f} kB for a connection")
    end = usage(pid)
    if end[0] > start[0] + REMAINS + (0 if context is None else most * limit):
        failures.note(f"memory was {start[0]} kB and is {end[0]} kB")
    names = ("memory_kB", "threads", "files")
    return results | {"before": dict(zip(names, start, strict=True)), "after": dict(zip(names, end, strict=True))}


@contextmanager
def server(files, is_secured):
    """A context manager that gives a server with a study; the server may open `files` files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with harness.folder() as folder:
        url = f"sqlite:///{folder}/studies.db"
        bl.Study("study", url, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
        arguments, pair = (), None
        if is_secured:
            users = [("read", "display", f"{service.TOKEN}-read"), ("work", "anna", service.TOKEN)]
            arguments = ("--token-file", str(service.token_file(folder, users)))
            pair = service.certificate(folder)
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
        try:
            running = service.Service(url, *arguments, pair=pair)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        with running:
            yield running


def is_answered(client):
    """Return whether the server answers a client."""
    import httpx

    try:
        return client.post("/v1/studies/study/suggest").status_code == 200
    except httpx.TransportError:
        return False


def serve(limit, failures, is_secured):
    """Return the results for `belated serve`."""
    with server(2 * limit, is_secured) as running:  # connections get half of the files

        def answered():
            with running.client() as client:
                return is_answered(client)

        return measure(running.process.pid, running.port, limit, answered, failures, 1.0, running.context)


def silence(size, failures, is_secured):
    """Return the results for clients that connect to `belated serve` at once and send nothing."""
    with server(2500, is_secured) as running, running.client() as client:
        pid, port = running.process.pid, running.port
        assert is_answered(client)
        before = most = usage(pid)
        begin, times, found = time.monotonic(), [], {}
        sizes = {"silent": size, ENCRYPTED: 0}
        if is_secured:
            sizes = {"silent": size - size // 2, ENCRYPTED: size // 2}
        crowds, ended = [], threading.Event()

        def connect():
            crowds.extend(Crowd(port, kind, n, running.context) for kind, n in sizes.items())
            ended.set()

        connecting = threading.Thread(target=connect)
        connecting.start()
        n_refused, waits, asked = 0, [], None
        while not ended.is_set() or any(crowd.connections for crowd in crowds):
            start = time.monotonic()
            if not is_answered(client):
                failures.note("a client that was connected before was not answered")
                break
            times.append(time.monotonic() - start)
            # A new client tries again until it is answered.
            asked = asked or start
            with running.client() as new:
                if is_answered(new):
                    waits.append(time.monotonic() - asked)
                    asked = None
                else:
                    n_refused += 1
            most = tuple(map(max, zip(most, usage(pid), strict=True)))
            if ended.is_set():
                for crowd in crowds:
                    if crowd.n_open() == 0:
                        found.setdefault(crowd.kind, round(time.monotonic() - begin, 1))
            if time.monotonic() > begin + ABOVE:
                failures.note(f"{[len(crowd.connections) for crowd in crowds]} silent connections are open")
                break
            time.sleep(0.05)
        connecting.join()
        for crowd in crowds:
            for connection in crowd.connections:
                connection.close()
        time.sleep(1.0)
        after = usage(pid)
    if max(times, default=0) > BELOW:
        failures.note(f"silent clients: a client was answered after {max(times):.1f} s")
    if not waits or asked is not None or max(waits) > ABOVE:
        failures.note(f"silent clients: new clients waited {waits}, and {asked}")
    if most[0] > before[0] + MEMORY * 1000:
        failures.note(f"silent clients: memory was {before[0]} kB, and then {most[0]} kB")
    if most[2] > before[2] + 1400 or after[2] > before[2] + 1 or most[1] > before[1] + 1:
        failures.note(f"silent clients: threads and files were {before[1:]}, then {most[1:]}, and are {after[1:]}")
    names = ("memory_kB", "threads", "files")
    return {
        "clients": sizes,
        "seconds_until_all_were_closed": found,
        "answers": len(times),
        "answers_ms": harness.milliseconds(times),
        "new_clients": {"answered": len(waits), "refused": n_refused, "longest_s": round(max(waits, default=0), 1)},
        **{
            name: dict(zip(names, each, strict=True))
            for name, each in (("before", before), ("most", most), ("after", after))
        },
    }


def reports(workers, failures):
    """Return the results for the socket of a run, and the number of workers that have reported at the same time."""
    process = subprocess.Popen(
        [sys.executable, "-c", REPORTS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    port, key = process.stdout.readline().split()
    remote = RemoteReports(Curve(9), False, ("127.0.0.1", int(port)), bytes.fromhex(key))

    def report(number=0):
        return isinstance(remote.report(number, 1, 0.5, 0), bool)

    def answered():
        with ThreadPoolExecutor(1) as pool, suppress(ConnectionError):  # a new thread has a new connection
            return pool.submit(report).result()
        return False

    try:
        results = measure(process.pid, int(port), MOST_STRANGERS, answered, failures, 1.0)
        crowd, barrier = Crowd(int(port), "silent", 2 * MOST_STRANGERS), threading.Barrier(workers)
        crowd.start()

        def work(number):
            done = report(number)
            barrier.wait(120)  # all connections are open
            return done and report(number)

        begin = time.monotonic()
        with ThreadPoolExecutor(workers) as pool:
            done = sum(pool.map(work, range(workers)))
        results["workers"] = {"reported": done, "seconds": round(time.monotonic() - begin, 2)}
        crowd.close()
        if done != workers:
            failures.note(f"{done} of {workers} workers reported")
        return results
    finally:
        process.stdin.close()
        process.wait(30)


def run(connections=500, workers=500, silent=2000, secured=0, limit=None):
    """Return all results."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = max(soft, 4 * connections, 4 * workers, 2 * silent)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, most), hard))
    failures, results = harness.Failures(), {}
    if connections:
        results["serve"] = serve(connections, failures, secured)
    if silent:
        results["silent"] = silence(silent, failures, secured)
    if workers:
        results["reports"] = reports(workers, failures)
    return json.loads(json.dumps(results)) | failures.figures()


if __name__ == "__main__":
    sys.exit(harness.main(__doc__, run, connections=500, workers=500, silent=2000, secured=0))
