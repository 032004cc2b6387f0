"""The number of requests per second, and the latency of requests, on one RandomSearch study of `belated serve`: python
benchmarks/serve.py.

Each client has one connection. Clients send requests at scheduled times with a given rate, even if earlier requests
have not been answered. The latency of a request is measured from the scheduled time of the request, so latencies grow
if the server cannot keep up. The requests are 35 % suggestions, 30 % observed values, 5 % failures, 15 % requests for
the status, 10 % for pages of trials and 5 % for the best trial. At the end, the study must contain each acknowledged
call exactly once. The program needs fastapi and uvicorn, and prints JSON.

With --pages N, the requests are sent a second time while N windows of a headless Chromium show the page; the results
have both latencies, and the seconds from the navigation of each window to the first boxes of the worklist. --trials
adds trials to the study before, and --model makes a second study, of BayesOpt with this number of trials, which every
second window shows while one more client gets suggestions and reports values. This needs selenium.
"""

import http.client
import json
import os
import random
import shutil
import sys
import time
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "campaigns"))

import harness
import service

import belated as bl

CALLS = ["suggest"] * 35 + ["observe"] * 30 + ["fail"] * 5 + ["status"] * 15 + ["page"] * 10 + ["best"] * 5


def ask(address, token, slot, clients, rate, seconds, seed, phase, barrier, results):
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
            status, data = request(f"{path}/suggest", {"key": f"{phase}-{slot}-{i}"})
        elif kind == "observe":
            number = pending.pop(chance.randrange(len(pending)))
            body = {"value": chance.random(), "key": f"{phase}-{slot}-{i}"}
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


def learn(address, token, seconds, phase, barrier, results):
    """Get suggestions of the study "model" and report values, one after another with pauses; report the latencies."""
    found, errors, headers = [], [], {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)

    def post(kind, where, body):
        start = time.perf_counter()
        connection.request("POST", f"/v1/studies/model/{where}", json.dumps(body), headers)
        answer = connection.getresponse()
        data = json.loads(answer.read())
        found.append((f"model {kind}", time.perf_counter() - start, None))
        if answer.status != 200:
            errors.append(f"model {kind}: {answer.status} {data}")
        return data

    barrier.wait()
    start = time.perf_counter()
    for i in range(int(seconds)):
        [trial] = post("suggest", "suggest", {"key": f"{phase}-{i}"})["trials"]
        value = harness.objective(trial["params"])
        post("observe", f"trials/{trial['number']}/observe", {"value": value, "key": f"{phase}-{i}-value"})
        time.sleep(max(0.0, start + i + 1 - time.perf_counter()))
    results.put((found, errors))


def prepare(place, trials, model):
    """Make the studies, with trials that have values, and ten trials in flight."""
    chance = random.Random(0)
    studies = [(harness.random_study(place), trials)]
    if model:
        studies.append((harness.bayes_study(place, "model"), model))
    for study, n in studies:
        points = [{"x": chance.random(), "y": chance.random()} for _ in range(n)]
        if n:
            study.add(points, [harness.objective(point) + 0.01 * chance.gauss(0, 1) for point in points])
            study.suggest(n=10)
        harness.close(study)


@contextmanager
def windows(running, n, names):
    """A context in which n windows of a browser show the page; the value has the seconds to each first view."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome")
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        browser.set_script_timeout(60)
        views = []
        for i in range(n):
            if i:
                browser.switch_to.new_window("window")
            browser.get(running.address + "/no-such-page")
            browser.execute_script("sessionStorage.setItem('belated-token', arguments[0])", running.token)
            start = time.perf_counter()
            browser.get(f"{running.address}/#{names[i % len(names)]}")
            while not browser.execute_script("return document.querySelectorAll('.box').length"):
                time.sleep(0.01)
            views.append(round(time.perf_counter() - start, 2))
            assert not browser.execute_script("return document.hidden")
        yield views
    finally:
        browser.quit()


def send(running, rate, seconds, clients, seed, phase, model, failures):
    """Let the clients send their requests; return the calls, the seconds and the processor time of the server."""
    context = harness.processes()
    barrier, results = context.Barrier(clients + bool(model) + 1), context.SimpleQueue()
    given = [(slot, clients, rate, seconds, seed + slot, phase) for slot in range(clients)]
    crowd = [context.Process(target=ask, args=(running.address, running.token, *it, barrier, results)) for it in given]
    if model:
        crowd.append(
            context.Process(target=learn, args=(running.address, running.token, seconds, phase, barrier, results))
        )
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
    return calls, took, busy


def figures(calls, took, busy):
    """Return the rates and the latencies of calls."""
    times = {}
    for kind, latency, _ in calls:
        times.setdefault(kind, []).append(latency)
    return {
        "calls": len(calls),
        "calls_per_second": round(len(calls) / took, 1),
        "server_processor_ms_per_call": round(1e3 * busy / len(calls), 2),
        "latency_ms": harness.milliseconds([latency for _, latency, _ in calls]),
        "latency_ms_by_call": {kind: harness.milliseconds(times[kind]) for kind in sorted(times)},
    }


def run(rate=200, seconds=60, clients=8, seed=0, store="sqlite", memory=0, pages=0, trials=0, model=0, limit=None):
    """Return all results."""
    failures = harness.Failures()
    with harness.folder(memory=bool(memory)) as folder, harness.place(store, folder) as place:
        prepare(place, trials, model)
        with service.Service(harness.url(place)) as running:
            phases = [send(running, rate, seconds, clients, seed, 0, model, failures)]
            views = []
            if pages:
                with windows(running, pages, ["study", "model"] if model else ["study"]) as views:
                    phases.append(send(running, rate, seconds, clients, seed + clients, 1, model, failures))
            code, said = running.stop()
            if code != 0 or said:
                failures.note(f"the server ended with {code}: {said}")
        study = bl.Study.load("study", harness.url(place))
        calls = [call for phase in phases for call in phase[0]]
        started = [number for kind, _, number in calls if kind == "suggest"]
        before = trials + 10 * bool(trials)
        if sorted(started) != list(range(before, study.n_trials)):
            failures.note(f"{len(started)} trials were given out, {study.n_trials - before} are stored")
        for kind, state in (("observe", "observed"), ("fail", "failed")):
            reported = sorted(number for each, _, number in calls if each == kind)
            stored = [trial.number for trial in study.trials[before:] if trial.state == state]
            if reported != stored:
                failures.note(f"{len(reported)} were reported {state}, {len(stored)} are stored")
        with_pages = {"first_views_s": views} | figures(*phases[-1]) if pages else {}
        return {
            "rate": rate,
            "store": f"{store}{' in memory' if memory else ''}",
            "events": study._log.n_events(),
            **figures(*phases[0]),
            **({"pages": pages, "trials": trials, "model": model, "with_pages": with_pages} if pages else {}),
            **failures.figures(),
        }


if __name__ == "__main__":
    defaults = {"rate": 200, "seconds": 60, "clients": 8, "seed": 0, "store": "sqlite", "memory": 0}
    sys.exit(harness.main(__doc__, run, **defaults, pages=0, trials=0, model=0))
