"""Test the sockets of belated with crowds of clients that lack the token or the key: python campaigns/strangers.py.

The sockets are `belated serve` and the socket to which worker processes of a run report. A crowd has connections of one
kind: silent connections, then connections that do not read answers, that write without an end, and that use another
protocol. While a crowd of 0.8 times the limit is connected, a client with the token (or the key) must be answered
within one second. While a crowd of 1.2 times the limit is connected, the client tries again until it is answered, which
must take at most 60 seconds. A connection may take at most 150 kB of memory. After each crowd, the server must have as
many threads and open files as before, and at the end about as much memory. Finally, many workers must be able to report
at the same time. The program needs fastapi, uvicorn and httpx, and prints JSON.
"""

import json
import os
import resource
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import harness
import service

import belated as bl
from belated.optimizers.curve import Curve
from belated.run.report_server import MOST_STRANGERS, RemoteReports

BELOW, ABOVE = 1.0, 60.0  # seconds
MEMORY = 150.0  # kB for a connection
REMAINS = 10_000.0  # kB that the server may keep
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
    """Connections of one kind, which stay until `close`."""

    def __init__(self, port, kind, size):
        super().__init__(daemon=True)
        self.kind, self.connections, self.is_closed = kind, [], False
        for _ in range(size):
            connection = socket.socket()
            if kind == "does not read":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            connection.settimeout(10)
            with suppress(OSError):
                connection.connect(("127.0.0.1", port))
            connection.setblocking(False)
            self.connections.append(connection)

    def run(self):
        """Write until the crowd is closed. Only clients that continue to write also read the answers."""
        data, is_first = KINDS[self.kind], True
        while data is not None and not self.is_closed and (is_first or self.kind.startswith("writes")):
            for connection in self.connections:
                with suppress(OSError):
                    connection.send(data if is_first or self.kind == "writes requests" else data[-0x4000:])
                    if self.kind.startswith("writes"):
                        connection.recv(1 << 20)
            is_first = False
            time.sleep(0.01)

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


def measure(pid, port, limit, answered, failures, quiet):
    """Return the results of all kinds of crowds at one socket. `answered` returns whether a client is answered."""
    results = {}
    for kind in KINDS:  # caches grow with the first connections
        crowd = Crowd(port, kind, 5)
        crowd.start()
        assert answered()
        crowd.close()
    time.sleep(quiet)
    start = usage(pid)
    for kind in KINDS:
        found = results[kind] = {}
        for name, size, longest in (("below", int(0.8 * limit), BELOW), ("above", int(1.2 * limit), ABOVE)):
            before = usage(pid)
            crowd = Crowd(port, kind, size)
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
            if memory > MEMORY:
                failures.note(f"{kind}, {name} the limit: {memory:.0f} kB for a connection")
    end = usage(pid)
    if end[0] > start[0] + REMAINS:
        failures.note(f"memory was {start[0]} kB and is {end[0]} kB")
    names = ("memory_kB", "threads", "files")
    return results | {"before": dict(zip(names, start, strict=True)), "after": dict(zip(names, end, strict=True))}


def serve(limit, failures):
    """Return the results for `belated serve`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with harness.folder() as folder:
        url = f"sqlite:///{folder}/studies.db"
        bl.Study("study", url, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (2 * limit, hard))  # connections get half of the files
        try:
            running = service.Service(url)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

        def answered():
            import httpx

            try:
                with running.client() as client:
                    return client.post("/v1/studies/study/suggest").status_code == 200
            except httpx.TransportError:
                return False

        with running:
            return measure(running.process.pid, running.port, limit, answered, failures, 1.0)


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


def run(connections=500, workers=500, limit=None):
    """Return all results."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4 * connections, 4 * workers)), hard))
    failures, results = harness.Failures(), {}
    if connections:
        results["serve"] = serve(connections, failures)
    if workers:
        results["reports"] = reports(workers, failures)
    return json.loads(json.dumps(results)) | failures.figures()


if __name__ == "__main__":
    sys.exit(harness.main(__doc__, run, connections=500, workers=500))
