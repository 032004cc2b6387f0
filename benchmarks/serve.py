"""The number of requests per second, and the latency of requests, on one RandomSearch study of `belated serve`: python
benchmarks/serve.py.

Each client has one connection. Clients send requests at scheduled times with a given rate, even if earlier requests
have not been answered. The latency of a request is measured from the scheduled time of the request, so latencies grow
if the server cannot keep up. The requests are 35 % suggestions, 30 % observed values, 5 % failures, 15 % requests for
the status, 10 % for pages of trials and 5 % for the best trial. At the end, the study must contain each acknowledged
call exactly once. The program needs fastapi and uvicorn, and prints JSON.
"""

import http.client
import json
import multiprocessing
import os
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "campaigns"))

import harness
import service

import belated as bl

CALLS = ["suggest"] * 35 + ["observe"] * 30 + ["fail"] * 5 + ["status"] * 15 + ["page"] * 10 + ["best"] * 5


def ask(address, token, slot, clients, rate, seconds, seed, barrier, results):
    """Send every `clients`-th request of the schedule; report (kind, latency from the scheduled time, trial number) for
    each."""
    chance, pending, found, errors = random.Random(seed), [], [], []
    path, headers = "/v1/studies/study", {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    # The HTTP client of the standard library leaves most of the processor time to the server.
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)

    def request(where, body=None):
        connection.request("GET" if body is None else "POST", where, body and json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, answer.read()

    request(path)
    barrier.wait()
    start = time.perf_counter()
    for i in range(slot, int(rate * seconds), clients):
        due = start + i / rate
        time.sleep(max(0.0, due - time.perf_counter()))
        kind = chance.choice(CALLS)
        if kind in ("observe", "fail") and not pending:
            kind = "suggest"
        number = None
        if kind == "suggest":
            status, data = request(f"{path}/suggest", {"key": f"{slot}-{i}"})
        elif kind == "observe":
            number = pending.pop(chance.randrange(len(pending)))
            body = {"value": chance.random(), "key": f"{slot}-{i}"}
            status, data = request(f"{path}/trials/{number}/observe", body)
        elif kind == "fail":
            number = pending.pop(chance.randrange(len(pending)))
            status, data = request(f"{path}/trials/{number}/fail", {"error": "crashed"})
        elif kind == "page":
            status, data = request(f"{path}/trials?limit=50&state=pending")
        else:
            status, data = request(path if kind == "status" else f"{path}/best")
        took = time.perf_counter() - due
        if status != 200:
            errors.append(f"{kind}: {status} {data[:200]}")
        elif kind == "suggest":
            (trial,) = json.loads(data)["trials"]
            number = trial["number"]
            pending.append(number)
        found.append((kind, took, number))
    results.put((found, errors))


def processor_seconds(process):
    """Return the processor time that a process has used, or NaN if the time cannot be read."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return float("nan")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(rate=200, seconds=60, clients=8, seed=0, store="sqlite", memory=0, limit=None):
    """Return all results."""
    failures = harness.Failures()
    context = multiprocessing.get_context("forkserver")
    with harness.folder(memory=bool(memory)) as folder, harness.place(store, folder) as place:
        harness.random_study(place)
        with service.Service(harness.url(place)) as running:
            barrier, results = context.Barrier(clients + 1), context.SimpleQueue()
            crowd = [
                context.Process(
                    target=ask,
                    args=(running.address, running.token, slot, clients, rate, seconds, seed + slot, barrier, results),
                )
                for slot in range(clients)
            ]
            for process in crowd:
                process.start()
            barrier.wait()
            start, before = time.monotonic(), processor_seconds(running.process.pid)
            calls = []
            for _ in crowd:
                found, errors = results.get()
                calls += found
                for error in errors:
                    failures.note(error)
            took = time.monotonic() - start
            busy = processor_seconds(running.process.pid) - before
            for process in crowd:
                process.join()
            code, said = running.stop()
            if code != 0 or said:
                failures.note(f"the server ended with {code}: {said}")
        study = bl.Study.load("study", harness.url(place))
        started = [number for kind, _, number in calls if kind == "suggest"]
        if sorted(started) != list(range(study.n_trials)):
            failures.note(f"{len(started)} trials were given out, {study.n_trials} are stored")
        for kind, state in (("observe", "observed"), ("fail", "failed")):
            reported = sorted(number for each, _, number in calls if each == kind)
            stored = [trial.number for trial in study.trials if trial.state == state]
            if reported != stored:
                failures.note(f"{len(reported)} were reported {state}, {len(stored)} are stored")
    kinds = sorted(set(CALLS))
    times = {kind: [took for each, took, _ in calls if each == kind] for kind in kinds}
    return {
        "rate": rate,
        "store": f"{store}{' in memory' if memory else ''}",
        "calls": len(calls),
        "calls_per_second": round(len(calls) / took, 1),
        "server_processor_ms_per_call": round(1e3 * busy / len(calls), 2),
        "events": study._log.n_events(),
        "latency_ms": harness.milliseconds([took for _, took, _ in calls]),
        "latency_ms_by_call": {kind: harness.milliseconds(found) for kind, found in times.items() if found},
        **failures.figures(),
    }


if __name__ == "__main__":
    sys.exit(harness.main(__doc__, run, rate=200, seconds=60, clients=8, seed=0, store="sqlite", memory=0))
