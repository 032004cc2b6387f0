"""Test `belated serve` with definitions that have random settings: python campaigns/fuzzed_settings.py.

A client creates studies whose spaces and settings are random, from harmless to extreme. In each study that the server
accepts, the client starts trials one by one, reports steps and values, and reads all answers about the study. No answer
may have a status of 5xx, and no request may take more than two seconds of the server's processor time. From time to
time, and at random moments during a request, SIGTERM must end the server within five seconds. The program needs
fastapi, uvicorn and httpx, and prints JSON.
"""

import os
import random
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import harness
import service

CPU = 2.0  # seconds of processor time for a request
END = 5.0  # seconds from SIGTERM to the end of the server
READS = ("", "/trials", "/best", "/forecast", "/finals", "/importance", "/definition", "/trials/0")
NUMBERS = (0, 1, 2, 3, 10, 100, 10**4, 10**6, 2**31, 2**53, 2**64, -1, 0.5, 1e-300, 1e300, 1.0000000000000002, 0.99)
SETTINGS = {
    "search": [("Search", ["effort", "multistart", "direct"])],
    "pending": [("Integrate", ["n"]), ("Hallucinate", []), ("Ignore", []), ("Censor", ["floor"]), ("Nearest", ["k"])],
    "acquisition": [
        ("LogEI", ["power"]),
        ("UCB", ["beta"]),
        ("ThompsonSampling", ["n_features", "beta"]),
        ("MaxVariance", []),
    ],
    "surrogate": [("GP", ["n_restarts", "n_refit_restarts", "refit_every", "lengthscale", "noise_std", "signal_std"])],
    "initial": [("Initial", ["n"])],
    "stopping": [("ASHA", ["reduction", "min_step"]), ("MedianStopping", ["min_trials"]), ("ModelStopping", ["power"])],
}


def size(chance, most):
    """Return a random number from 1 to `most`; small numbers are more frequent."""
    return round(most ** chance.random())


def number(chance):
    """Return a random number: extreme, or moderate."""
    return chance.choice(NUMBERS) if chance.random() < 0.4 else chance.choice([size(chance, 10**6), chance.random()])


def parameter(chance, name, kind):
    """Return a random parameter."""
    if kind == "Categorical":
        data = {"choices": list(range(size(chance, 300) + 1))}
    elif kind == "Integer":
        data = {"low": 0, "high": size(chance, 10**6)}
    elif kind == "Ordinal":
        data = {"values": list(range(size(chance, 300) + 1))}
    else:
        data = {"low": 0.0, "high": 1.0}
    return {"name": name, "kind": kind} | data


def constraint(chance, names):
    """Return a random linear constraint: parts of a total, perhaps in steps, or a weighted sum."""
    names = chance.sample(names, chance.randint(2, len(names)))
    if chance.random() < 0.5:
        data = {"kind": "Mixture", "names": names, "total": chance.choice([1.0, len(names) / 2, number(chance)])}
        return data | ({"step": chance.choice([0.1, 0.01])} if chance.random() < 0.2 else {})
    coefficients = [[name, chance.choice([1, -1, chance.random(), number(chance)])] for name in names]
    return {"kind": "Linear", "coefficients": coefficients, "at_most": chance.choice([1.0, number(chance)])}


def definition(chance):
    """Return a random definition."""
    problem = {}
    if chance.random() < 0.15:
        rows, columns = size(chance, 50_000), size(chance, 10)
        rows = min(rows, 100_000 // columns)
        problem["candidates"] = {
            "kind": "f",
            "rows": [[i % (7 + j) + i / rows for j in range(columns)] for i in range(rows)],
        }
    else:
        kinds = chance.choice([["Real"], ["Integer"], ["Categorical"], ["Real", "Integer", "Ordinal", "Categorical"]])
        space = [parameter(chance, f"x{i}", chance.choice(kinds)) for i in range(size(chance, 1200))]
        if chance.random() < 0.2:
            for each in space:
                each["when"] = [["c", [1]]]
            space.append({"name": "c", "kind": "Categorical", "choices": [0, 1]})
        problem["space"] = space
        parts = [each["name"] for each in space if each["kind"] == "Real"][: size(chance, 80)]
        if len(parts) > 1 and chance.random() < 0.4:
            problem["linear"] = [constraint(chance, parts) for _ in range(size(chance, 5))]
    optimizer = chance.choices(["BayesOpt", "RandomSearch", "TreeSearch", "BPEDelay"], [7, 1, 1, 1])[0]
    strategy, stopping = {"kind": optimizer}, {}
    if chance.random() < 0.4:
        problem["curve"] = {"steps": chance.choice([3, 27, 1000, 2**32 - 1])}
    for name, kinds in SETTINGS.items():
        if (
            chance.random() < 0.3
            and (optimizer == "BayesOpt" or name == "stopping")
            and (name != "stopping" or "curve" in problem)
        ):
            kind, fields = chance.choice(kinds)
            value = {"kind": kind} | {field: number(chance) for field in fields if chance.random() < 0.5}
            if "multistart" in value:
                value["multistart"] = [number(chance), number(chance)]
            (stopping if name == "stopping" else strategy)[name] = value
    if optimizer == "BPEDelay":
        strategy |= {"horizon": number(chance), "lengthscale": number(chance), "noise_std": number(chance)}
        strategy["n_points"] = chance.choice([2500, number(chance)])
    if optimizer == "TreeSearch" and chance.random() < 0.5:
        strategy |= {"horizon": number(chance), "rho": chance.random(), "nu": number(chance)}
    if chance.random() < 0.1:
        strategy["window"] = number(chance)
    return {"problem": problem, "strategy": strategy, "seed": 0} | stopping


def steps(chance, name):
    """Yield the requests for a study as (method, path, body)."""
    path = f"/v1/studies/{name}"
    for i in range(20):
        yield "POST", f"{path}/suggest", {}
        if chance.random() < 0.2:
            for step in sorted({size(chance, 30) for _ in range(3)}):
                yield "POST", f"{path}/trials/{i}/report", {"step": step, "value": chance.random()}
        value = chance.choice([chance.random(), chance.random(), number(chance)])
        yield "POST", f"{path}/trials/{i}/observe", {"value": float(value)}
    for each in READS:
        yield "GET", path + each, None


def processor_time(process):
    """Return the processor time of a process in seconds."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def end_during(running, client, name):
    """End the server by SIGTERM during a request; return the seconds until the end."""
    chance = random.Random(name)

    def ask():
        with suppress(Exception):  # the server may end before the answer
            client.post(f"/v1/studies/{name}/suggest", json={})

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    time.sleep(chance.random() * 0.3)
    start = time.monotonic()
    running.stop(timeout=120)
    return time.monotonic() - start


def described(given):
    """Return the settings of a definition, and the size of its domain, as text."""
    domains = ("space", "candidates")
    problem = {key: len(value) if key in domains else value for key, value in given["problem"].items()}
    return str(given | {"problem": problem})


class Client:
    """A client that checks the status and the processor time of each request."""

    def __init__(self, running, failures):
        self.running, self.failures, self.statuses, self.times = running, failures, Counter(), []
        self.http = running.client()

    def send(self, given, method, path, body):
        """Send a request for the study of a definition; return the status."""
        before = processor_time(self.running.process)
        answer = self.http.request(method, path, json=body)
        used = processor_time(self.running.process) - before
        what = f"{method} {path} of {described(given)}"[:500]
        self.statuses[answer.status_code] += 1
        self.times.append((round(used, 2), what))
        if answer.status_code >= 500:
            self.failures.note(f"{answer.status_code}: {answer.text[:200]}: {what}")
        if used > CPU:
            self.failures.note(f"{used:.1f} s of processor time: {what}")
        return answer.status_code

    def restart(self):
        """Connect to the server after a restart."""
        self.http.close()
        self.running.start()
        self.http = self.running.client()


def run(requests=5000, every=100, seed=0, limit=None):
    """Return all results."""
    failures, deadline, chance = harness.Failures(), harness.Deadline(limit), random.Random(seed)
    ends, n_studies = [], 0
    with harness.folder() as folder, service.Service(f"sqlite:///{folder}/studies.db") as running:
        client = Client(running, failures)
        while len(client.times) < requests and not deadline.over():
            name, given = f"s{n_studies}", definition(chance)
            n_studies += 1
            if client.send(given, "POST", "/v1/studies", {"name": name, "definition": given}) != 201:
                continue
            for request in steps(chance, name):
                client.send(given, *request)
            if len(client.times) // every > len(ends):
                ends.append(end_during(running, client.http, name))
                if ends[-1] > END:
                    failures.note(f"SIGTERM ended the server after {ends[-1]:.1f} s: {described(given)[:400]}")
                client.restart()
        client.http.close()
    return {
        "requests": len(client.times),
        "studies": n_studies,
        "statuses": dict(sorted(client.statuses.items())),
        "longest_processor_times": sorted(client.times, reverse=True)[:3],
        "ends": len(ends),
        "longest_end": round(max(ends, default=0.0), 2),
        **failures.figures(),
    }


if __name__ == "__main__":
    sys.exit(harness.main(__doc__, run, requests=5000, every=100, seed=0))
