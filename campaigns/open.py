"""Measure the time for opening large studies and the time for reading one new event: python campaigns/open.py.

Each study is opened in a new process; the time of imports is not included. The first study uses Bayesian optimisation
and has 2,000 observations. The first suggestion after opening must not refit the hyperparameters. A study with random
search and a study with tree search have 100,000 events each. In the last test, one study is open twice, and one
instance reads the events that the other instance has written. The program prints JSON with times in milliseconds.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

import harness
import numpy as np

import belated as bl

LIMITS = {"bayes_opt": 1000.0, "large": 2000.0, "sync": 1.0}  # ms


def opened(path, repeats=5):
    """Return the median time for opening a study, and the median time of the first suggestion after opening. Each
    measurement is a process."""
    times = []
    for _ in range(repeats):
        command = [sys.executable, __file__, "--open", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            raise RuntimeError(done.stderr[-500:])
        times.append(json.loads(done.stdout))
    return [sorted(column)[len(column) // 2] for column in zip(*times, strict=True)]


def open_here(path):
    """Open a study and make a suggestion in this process; print the two durations in seconds."""
    start = time.perf_counter()
    study = bl.Study.load("study", harness.url(path))
    between = time.perf_counter()
    study.suggest()
    print(json.dumps([between - start, time.perf_counter() - between]))
    return 0


def bayes_opt(path, observations, failures):
    """Return the results for the study with Bayesian optimisation."""
    study = harness.bayes_study(path)
    points = np.random.default_rng(0).random((observations, 2)).tolist()
    params = [dict(zip(harness.BOX, point, strict=True)) for point in points]
    values = [harness.objective(point) + 0.01 * np.sin(100 * index) for index, point in enumerate(params)]
    last = max(1, observations - 5)
    study.add(params[:last], values[:last])
    start = time.perf_counter()
    study.suggest()
    fitting = time.perf_counter() - start
    study.add(params[last:], values[last:])
    harness.close(study)
    opening, suggesting = opened(path)
    suggested = [json.loads(body)["what"]["Suggested"] for *_, body in harness.rows(path) if "Suggested" in body]
    notes = [fields.get("note") for fields in suggested]
    if len(notes) < 2 or notes[0] is None or any(notes[1:]):
        failures.note(f"refitted after opening: {notes}")
    total = 1e3 * (opening + suggesting)
    if total > LIMITS["bayes_opt"]:
        failures.slow.append(f"opening {observations} observations and suggesting took {total:.0f} ms")
    return {
        "observations": observations,
        "fit_before_ms": round(1e3 * fitting, 1),
        "open_ms": round(1e3 * opening, 1),
        "first_suggestion_ms": round(1e3 * suggesting, 1),
        "refits": sum(note is not None for note in notes[1:]),
    }


def large(make, path, events, failures):
    """Return the results for a study with many events, half of them observations."""
    study = make(path)
    while study.n_trials < events // 2:
        for trial in study.suggest(n=min(1000, events // 2 - study.n_trials)):
            study.observe(trial, harness.objective(trial.params))
    harness.close(study)
    opening, suggesting = opened(path)
    total = 1e3 * (opening + suggesting)
    if total > LIMITS["large"]:
        failures.slow.append(f"opening {events} events and suggesting took {total:.0f} ms")
    return {
        "events": len(harness.rows(path)),
        "open_ms": round(1e3 * opening, 1),
        "first_suggestion_ms": round(1e3 * suggesting, 1),
    }


def sync(path, calls, failures):
    """Open a study twice, write an event by one instance and read it by the other; return the results."""
    writer = bl.Study.load("study", harness.url(path))
    reader = bl.Study.load("study", harness.url(path))
    times, idle = [], []
    for call in range(calls):
        if call % 2:
            writer.observe(writer.trials[-1], 0.5)
        else:
            writer.suggest()
        start = time.perf_counter()
        reader.sync()
        middle = time.perf_counter()
        reader.sync()
        times.append(middle - start)
        idle.append(time.perf_counter() - middle)
    if harness.state(writer) != harness.state(reader):
        failures.note("the reader sees something else")
    result = harness.milliseconds(times)
    if result["p50"] > LIMITS["sync"]:
        failures.slow.append(f"a sync of one event took {result['p50']} ms")
    return {"calls": calls, "one_event_ms": result, "nothing_new_ms": harness.milliseconds(idle)}


def run(observations=2000, events=100_000, calls=1000, limit=None):
    """Return all results."""
    failures = harness.Failures()
    with harness.folder() as folder, harness.folder(memory=True) as memory:
        result = {"bayes_opt": bayes_opt(Path(folder) / "bayes.db", observations, failures)}
        for name, make in (("tree_search", harness.tree_study), ("random_search", harness.random_study)):
            result[name] = large(make, Path(memory) / f"{name}.db", events, failures)
        copy = Path(folder) / "large.db"
        harness.copy_store(Path(memory) / "random_search.db", copy)
        result["sync"] = sync(copy, calls, failures)
    return {**result, **failures.figures()}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--open"]:
        sys.exit(open_here(sys.argv[2]))
    sys.exit(harness.main(__doc__, run, observations=2000, events=100_000, calls=1000))
