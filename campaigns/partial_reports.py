"""Check that partial observations are not lost if writers are killed at any time: python campaigns/partial_reports.py.

The trials of a study have three outcomes. Workers suggest, and report one or several outcomes in one call, or a failure
of one outcome. Each worker records every call in a file, before the call and after it has returned. Each worker is
killed with SIGKILL after a random time and replaced; the new worker repeats the interrupted call. At the end, each
outcome of each trial must have the acknowledged value or state, no outcome may be logged twice, and the outcomes of a
call must all be there or none of them. Every second study uses Bayesian optimisation, and every fourth has a front of
two objectives. With --store postgresql, the
studies are stored in PostgreSQL. The program prints JSON.
"""

import json
import os
import random
import sys
from collections import Counter

import harness
from kill import note, read

import belated as bl

OUTCOMES = {"error": "minimize", "memory": bl.AtMost(1.0), "note": bl.Record()}
FRONT = OUTCOMES | {"memory": bl.Minimize(at_most=1.0)}


def values_at(params):
    """Return the outcomes at a point."""
    x, y = params["x"], params["y"]
    return {"error": harness.objective(params), "memory": x + y, "note": x * y}


def work(store, name, slot, notes, seed):
    """Make calls on the study until the process is killed."""
    descriptor = os.open(notes, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    known = read(notes)
    done = {line["key"] for line in known if line["what"] == "done"}
    unfinished = [line for line in known if line["what"] == "begin" and line["key"] not in done][-1:]
    missing = {
        line["number"]: (line["params"], list(OUTCOMES))
        for line in known
        if line["what"] == "done" and line["call"] == "suggest"
    }
    for line in known:
        for outcome in line.get("names", ()):
            if line["what"] == "done":
                missing[line["number"]][1].remove(outcome)
    chance, calls = random.Random(seed), len(known)
    try:
        study = bl.Study.load(name, store)
        while True:
            if unfinished:
                line = unfinished.pop()
            else:
                open_trials = {number: left for number, (_, left) in missing.items() if left}
                call = chance.choice(["suggest", *(["observe"] * 3 + ["fail"] if open_trials else [])])
                calls += 1
                line = {"call": call, "key": f"{slot}-{calls}-{seed}"}
                if call != "suggest":
                    number = chance.choice(list(open_trials))
                    left = open_trials[number]
                    count = 1 if call == "fail" else chance.randint(1, len(left))
                    line |= {"number": number, "names": chance.sample(left, count)}
                note(descriptor, what="begin", **line)
            if line["call"] == "suggest":
                trial = study.suggest(key=line["key"])
                missing[trial.number] = trial.params, list(OUTCOMES)
                line |= {"number": trial.number, "params": trial.params}
            else:
                params, left = missing[line["number"]]
                if line["call"] == "fail":
                    study.fail(line["number"], outcome=line["names"][0])
                else:
                    every = values_at(params)
                    study.observe(line["number"], {name: every[name] for name in line["names"]}, key=line["key"])
                for outcome in line["names"]:
                    left.remove(outcome)
            note(descriptor, **line | {"what": "done"})
    except BaseException as error:
        note(descriptor, what="error", error=f"{type(error).__name__}: {error}")
        raise


def compare(study, notes, failures):
    """Check that the study contains every acknowledged outcome; return their number."""
    acknowledged = 0
    lines = [line for file in notes for line in read(file)]
    trials = {trial.number: (trial.params, trial.outcomes) for trial in study.trials}
    for line in lines:
        if line["what"] == "error":
            failures.note(line["error"])
        if "number" not in line or line["call"] == "suggest":
            continue
        params, outcomes = trials[line["number"]]
        wanted = values_at(params)
        states = [(outcomes[each].state, outcomes[each].value) for each in line["names"]]
        expected = [
            ("failed", None) if line["call"] == "fail" else ("observed", wanted[each]) for each in line["names"]
        ]
        if line["what"] == "done":
            acknowledged += len(states)
            if states != expected:
                failures.note(f"lost: {line}, the study has {states}")
        elif states not in (expected, [("pending", None)] * len(states)):
            failures.note(f"a part of a call was logged: {line}, the study has {states}")
    return acknowledged


def run(kills=500, workers=4, kills_per_study=50, longest=0.4, seed=0, store="sqlite", limit=None):
    """Return all results."""
    chance, failures, deadline = random.Random(seed), harness.Failures(), harness.Deadline(limit)
    killed = acknowledged = studies = 0
    with harness.folder() as folder, harness.place(store, folder) as path:
        while killed < kills and not deadline.over():
            name = f"study-{studies}"
            made = bl.BayesOpt if studies % 2 else bl.RandomSearch
            outcomes = FRONT if studies % 4 == 1 else OUTCOMES
            bl.Study(name, store=harness.url(path), optimizer=made(harness.BOX, outcomes=outcomes, seed=studies))
            studies += 1
            notes = [f"{folder}/{name}-{slot}" for slot in range(workers)]
            arguments = [(harness.url(path), name, slot, file) for slot, file in enumerate(notes)]
            count = min(kills - killed, kills_per_study)
            killed += harness.kill_workers(work, arguments, count, chance, longest, failures, deadline)
            acknowledged += compare(bl.Study.load(name, harness.url(path)), notes, failures)
        for problem in harness.audit(path):
            failures.note(problem)
        table = harness.rows(path)
        bodies = [(name, json.loads(body)["what"].get("Resulted")) for name, _, _, body in table]
        logged = Counter(
            (name, each["trial"], outcome) for name, each in bodies if each for outcome, _ in each["results"]
        )
        if any(n > 1 for n in logged.values()):
            failures.note("an outcome is logged twice")
    return {
        "kills": killed,
        "workers": workers,
        "studies": studies,
        "events": len(table),
        "acknowledged": acknowledged,
        **failures.figures(),
    }


if __name__ == "__main__":
    sys.exit(harness.main(__doc__, run, kills=500, workers=4, kills_per_study=50, longest=0.4, seed=0, store="sqlite"))
