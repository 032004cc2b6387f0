"""Test one study that many processes use at the same time: python campaigns/crowd.py.

First, 32 processes make 500 mixed calls each on one study of random search, with pauses of 5 ms between calls. No call
may raise an error, and the log must contain each call exactly once. The sequence numbers of the events must not have
gaps. The 99th percentile of the calls' durations must be at most 250 ms. Then 16 processes request suggestions from one
study of Bayesian optimisation that hallucinates pending trials. Two points that are pending at the same time must be at
least a thousandth of the box's diagonal apart. With --store postgresql, the studies are stored in PostgreSQL. The
option --p99 changes the limit on the durations. The program prints JSON.
"""

import json
import random
import sys
import time

import harness
import numpy as np

import belated as bl

P99 = 250.0  # ms
NEAREST = 1e-3  # of the diagonal
CALLS = ["suggest"] * 40 + ["observe"] * 40 + ["again"] * 5 + ["fail"] * 5 + ["abandon"] * 5 + ["add"] * 5


def mix(store, slot, calls, think, barrier, results):
    """Make the calls of one process and report (kinds of calls, durations in seconds, errors)."""
    chance, times, errors, done = random.Random(slot), [], [], []
    pending, observed = [], []
    study = bl.Study.load("study", store)
    barrier.wait()
    for call in range(calls):
        time.sleep(think)
        what = chance.choice(CALLS)
        if (what in ("observe", "fail", "abandon") and not pending) or (what == "again" and not observed):
            what = "suggest"
        key = f"{slot}-{call}"
        start = time.perf_counter()
        try:
            if what == "suggest":
                trial = study.suggest(key=key)
                pending.append(trial)
                done.append([what, key, trial.number, None])
            elif what == "observe":
                trial = pending.pop(chance.randrange(len(pending)))
                observed.append((trial, chance.random()))
                study.observe(trial, observed[-1][1], key=key)
                done.append([what, key, trial.number, observed[-1][1]])
            elif what == "again":  # observing the same value a second time must not change the study
                study.observe(*chance.choice(observed))
            elif what == "add":
                trial = study.add({"x": chance.random(), "y": chance.random()}, 0.5)
                done.append([what, None, trial.number, 0.5])
            else:
                trial = pending.pop()
                getattr(study, what)(trial)
                done.append([what, None, trial.number, None])
        except Exception as error:
            errors.append(f"{what}: {type(error).__name__}: {error}")
        times.append(time.perf_counter() - start)
    results.put((done, times, errors))


def suggest(store, slot, share, barrier, results):
    """Request suggestions in one process, observe every fourth suggested trial later, and report (durations,
    errors)."""
    study = bl.Study.load("study", store)
    times, errors, mine = [], [], []
    barrier.wait()
    for call in range(share):
        start = time.perf_counter()
        try:
            mine.append(study.suggest())
            times.append(time.perf_counter() - start)
            if call % 4 == 3:
                trial = mine.pop(0)
                study.observe(trial, harness.objective(trial.params))
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}")
    results.put((times, errors))


def together(target, store, workers, *arguments):
    """Run a function in several processes that start at the same time, and return each process's report."""
    context = harness.processes()
    barrier, results = context.Barrier(workers), context.SimpleQueue()
    given = [(store, slot, *arguments, barrier, results) for slot in range(workers)]
    crowd = [context.Process(target=target, args=one) for one in given]
    for process in crowd:
        process.start()
    reports = []
    while len(reports) < workers:
        if results.empty():
            if any(process.exitcode not in (None, 0) for process in crowd):
                break
            time.sleep(0.05)
        else:
            reports.append(results.get())
    for process in crowd:
        if len(reports) < workers:
            process.kill()
        process.join()
    return reports


def mixed(workers, calls, think, store="sqlite", p99=P99):
    """Run the processes with random search, and return the results of the processes."""
    failures = harness.Failures()
    with harness.folder() as folder, harness.place(store, folder) as path:
        harness.random_study(path)
        start = time.monotonic()
        reports = together(mix, harness.url(path), workers, calls, think)
        seconds = time.monotonic() - start
        if len(reports) != workers:
            failures.note(f"only {len(reports)} of {workers} processes finished")
        done = [entry for report in reports for entry in report[0]]
        times = [time for report in reports for time in report[1]]
        for error in (error for report in reports for error in report[2]):
            failures.note(error)
        for problem in harness.audit(path):
            failures.note(problem)
        table = harness.rows(path)
        if len(table) != len(done):
            failures.note(f"{len(done)} calls that write, {len(table)} events")
        keys = sorted(key for _, key, _, _ in done if key is not None)
        numbers = sorted(number for what, _, number, _ in done if what in ("suggest", "add"))
        if numbers != list(range(len(numbers))):
            failures.note("trial numbers were given out twice or not at all")
        stored = sorted(key for _, _, key, _ in table if key in set(keys))
        if stored != keys:
            failures.note(f"{len(keys)} keys were used, {len(stored)} are stored")
        states = {number: end for number, _, *end in harness.state(bl.Study.load("study", harness.url(path)))}
        ends = {"observe": "observed", "add": "observed", "fail": "failed", "abandon": "abandoned"}
        for what, _, number, value in done:
            if what in ends and states[number] != [ends[what], value]:
                failures.note(f"{what} of trial {number} with {value}: the study has {states[number]}")
    latency = harness.milliseconds(times)
    if latency["p99"] > p99:
        failures.slow.append(f"p99 is {latency['p99']} ms")
    return {
        "processes": workers,
        "calls": len(times),
        "events": len(table),
        "calls_per_second": round(len(times) / seconds, 1),
        "latency_ms": latency,
        **failures.figures(),
    }


def separation(workers, suggestions, store="sqlite"):
    """Run the processes with Bayesian optimisation, and return the results of the processes."""
    failures = harness.Failures()
    with harness.folder() as folder, harness.place(store, folder) as path:
        study = harness.bayes_study(path, pending="hallucinate")
        for trial in study.suggest(n=10):
            study.observe(trial, harness.objective(trial.params))
        reports = together(suggest, harness.url(path), workers, -(-suggestions // workers))
        if len(reports) != workers:
            failures.note(f"only {len(reports)} of {workers} processes finished")
        times = [time for report in reports for time in report[0]]
        for error in (error for report in reports for error in report[1]):
            failures.note(error)
        for problem in harness.audit(path):
            failures.note(problem)
        pending, number, nearest, fits = {}, 0, float("inf"), 0
        for *_, body in harness.rows(path):
            (kind, fields), *_ = json.loads(body)["what"].items()
            if kind == "Suggested":
                point = np.array(fields["point"]["numbers"])
                near = min((float(np.linalg.norm(point - other)) for other in pending.values()), default=float("inf"))
                nearest = min(nearest, near / np.sqrt(len(point)))
                fits += "note" in fields
                pending[number] = point
                number += 1
            elif kind == "Resulted":
                pending.pop(fields["trial"], None)
    if nearest < NEAREST:
        failures.note(f"two pending points are {nearest} of the diagonal apart")
    return {
        "processes": workers,
        "suggestions": len(times),
        "pending_at_the_end": len(pending),
        "fits": fits,
        "nearest_of_diagonal": nearest,
        "latency_ms": harness.milliseconds(times),
        **failures.figures(),
    }


def run(workers=32, calls=500, think=0.005, suggesters=16, suggestions=1000, store="sqlite", p99=P99, limit=None):
    """Return all results."""
    result = {}
    if workers:
        result["mixed"] = mixed(workers, calls, think, store, p99)
    if suggesters:
        result["separation"] = separation(suggesters, suggestions, store)
    return result


if __name__ == "__main__":
    options = {"workers": 32, "calls": 500, "think": 0.005, "suggesters": 16, "suggestions": 1000}
    sys.exit(harness.main(__doc__, run, **options, store="sqlite", p99=P99))
