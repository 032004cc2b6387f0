"""Check that acknowledged events are not lost if writers are killed at any time: python campaigns/kill.py.

Workers suggest, report steps of learning curves, observe, fail, withdraw, add and revise the space in one study. Each
worker records every call in a file, before the call and after it has returned. Each worker is killed with SIGKILL after
a random time and replaced. The new worker repeats the interrupted call with the same key. At the end, the event table
must contain every acknowledged event, and no key and no step more than once. The sequence numbers must not have gaps,
and the database must be intact. The program starts a new study from time to time; every fourth study uses Bayesian
optimisation. With --store postgresql, the studies are stored in PostgreSQL. The program prints JSON.
"""

import json
import os
import random
import sys
from collections import Counter
from pathlib import Path

import harness

import belated as bl

# The shares of the calls that revise the space, and that withdraw a result.
REVISIONS, WITHDRAWALS = 0.03, 0.05


def note(descriptor, **what):
    """Write a line by one system call, so that the line is complete even if the process is killed immediately
    afterwards."""
    os.write(descriptor, (json.dumps(what) + "\n").encode())


def work(store, name, slot, notes, seed, end=None):
    """Make calls on the study until the process is killed or the file `end` exists."""
    descriptor = os.open(notes, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    known = read(notes)
    done = {line["key"] for line in known if line["what"] == "done"}
    unfinished = [line for line in known if line["what"] == "begin" and line["key"] not in done][-1:]
    pending = {line["number"]: line["params"] for line in known if line["what"] == "done" and line["call"] == "suggest"}
    for line in known:
        if line["what"] == "done" and line["call"] in ("observe", "fail"):
            pending.pop(line["number"], None)
    ended = [line["number"] for line in known if line["what"] == "done" and line["call"] in ("observe", "fail")]
    ended = [number for number in ended if number not in withdrawn(known)]
    steps = Counter(line["number"] for line in known if line["what"] == "done" and line["call"] == "report")
    chance = random.Random(seed)
    calls = len(known)
    try:
        study = bl.Study.load(name, store)
        while end is None or not end.exists():
            if unfinished:
                line = unfinished.pop()
                call, key, arguments = line["call"], line["key"], line["arguments"]
            else:
                reports = (["report"] * 5) if study._optimizer.curve is not None else []
                others = (["observe"] * 5 + ["fail"] + reports) if pending else []
                call = chance.choice(["suggest"] * 5 + others + ["add"])
                if chance.random() < REVISIONS:
                    call = "revise"
                elif ended and chance.random() < WITHDRAWALS:
                    call = "withdraw"
                calls += 1
                key = f"{slot}-{calls}-{seed}"
                arguments = {}
                if call in ("observe", "fail", "report"):
                    number = chance.choice(list(pending))
                    arguments = {"number": number}
                    if call != "fail":
                        arguments["value"] = harness.objective(pending[number])
                    if call == "report":
                        arguments["step"] = steps[number] + 1
                elif call == "withdraw":
                    arguments = {"number": ended.pop(chance.randrange(len(ended)))}
                elif call == "revise":
                    arguments = {"high": chance.choice([1.0, 2.0])}
                elif call == "add":
                    arguments = {"params": {"x": chance.random(), "y": chance.random()}, "value": chance.random()}
                note(descriptor, what="begin", call=call, key=key, arguments=arguments)
            if call == "suggest":
                trial = study.suggest(key=key)
                pending[trial.number] = trial.params
                answer = {"number": trial.number, "params": trial.params}
            elif call == "add":
                # The call `add` does not take a key, so a repeated call may add two events.
                trial = study.add(arguments["params"], arguments["value"])
                answer = {"number": trial.number, "params": trial.params, "value": trial.value}
            elif call == "revise":
                study.revise(space={"x": (0.0, 1.0), "y": (0.0, arguments["high"])})
                answer = arguments
            elif call == "withdraw":
                # A withdrawal does not take a key, so the repeated call looks whether the first call succeeded.
                if study.trial(arguments["number"]).state != "withdrawn":
                    study.withdraw(arguments["number"], reason=key)
                ended = [number for number in ended if number != arguments["number"]]
                answer = arguments
            elif call == "report":
                study.report(arguments["number"], arguments["value"], arguments["step"])
                steps[arguments["number"]] = arguments["step"]
                answer = arguments
            else:
                if call == "observe":
                    study.observe(arguments["number"], arguments["value"])
                else:
                    study.fail(arguments["number"])
                pending.pop(arguments["number"], None)
                ended.append(arguments["number"])
                answer = arguments
            note(descriptor, what="done", call=call, key=key, **answer)
    except BaseException as error:
        note(descriptor, what="error", error=f"{type(error).__name__}: {error}")
        raise


def read(notes):
    """Return the lines that a worker has written to its file; the file may not exist yet."""
    path = Path(notes)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def withdrawn(lines):
    """Return the numbers of the trials whose results were withdrawn by acknowledged calls."""
    return {line["number"] for line in lines if line["what"] == "done" and line["call"] == "withdraw"}


def compare(study, notes, failures):
    """Check that the study contains every acknowledged call; return the number of acknowledged calls."""
    trials = {number: (params, state, value) for number, params, state, value in harness.state(study)}
    curves = {trial.number: trial.curve for trial in study.trials}
    acknowledged = revisions = 0
    lines = [line for file in notes for line in read(file)]
    gone = withdrawn(lines)
    # The last call of a killed worker may have withdrawn a result without being acknowledged.
    begun = {
        line["arguments"].get("number") for line in lines if line["what"] == "begin" and line["call"] == "withdraw"
    }
    for line in lines:
        if line["what"] == "error":
            failures.note(line["error"])
        if line["what"] != "done":
            continue
        acknowledged += 1
        if line["call"] == "revise":
            revisions += 1
            continue
        params, state, value = trials.get(line["number"], (None, None, None))
        if line["call"] in ("suggest", "add") and params != line["params"]:
            failures.note(f"lost: {line}, the study has {params}")
        if line["call"] == "withdraw" and state != "withdrawn":
            failures.note(f"lost: {line}, the study has {state}")
        if line["number"] in gone or (line["number"] in begun and state == "withdrawn"):
            continue
        if line["call"] in ("observe", "add") and (state, value) != ("observed", line["value"]):
            failures.note(f"lost: {line}, the study has {state} {value}")
        if line["call"] == "report" and curves[line["number"]].get(line["step"]) != line["value"]:
            failures.note(f"lost: {line}, the study has {curves[line['number']]}")
        if line["call"] == "fail" and state != "failed":
            failures.note(f"lost: {line}, the study has {state}")
    if study.revision <= revisions:
        failures.note(f"the study has revision {study.revision} after {revisions} revisions")
    return acknowledged


def run(kills=1000, workers=8, kills_per_study=100, longest=0.4, seed=0, store="sqlite", limit=None):
    """Return all results."""
    chance, failures, deadline = random.Random(seed), harness.Failures(), harness.Deadline(limit)
    killed = acknowledged = events = studies = 0
    with harness.folder() as folder, harness.place(store, folder) as path:
        while killed < kills and not deadline.over():
            name = f"study-{studies}"
            make = (harness.random_study, harness.tree_study, harness.random_study, harness.bayes_study)[studies % 4]
            make(path, name, seed=studies)
            studies += 1
            notes = [f"{folder}/{name}-{slot}" for slot in range(workers)]
            arguments = [(harness.url(path), name, slot, file) for slot, file in enumerate(notes)]
            count = min(kills - killed, kills_per_study)
            killed += harness.kill_workers(work, arguments, count, chance, longest, failures, deadline)
            acknowledged += compare(bl.Study.load(name, harness.url(path)), notes, failures)
        for problem in harness.audit(path):
            failures.note(problem)
        table = harness.rows(path)
        events = len(table)
        bodies = [(name, json.loads(body)["what"].get("Reported")) for name, _, _, body in table]
        steps = Counter((name, report["trial"], report["step"]) for name, report in bodies if report is not None)
        if any(n > 1 for n in steps.values()):
            failures.note("a step is reported twice in a study")
        keys = [(name, key) for name, _, key, _ in table if key is not None]
        if len(keys) != len(set(keys)):
            failures.note("a key occurs twice in a study")
    return {
        "kills": killed,
        "workers": workers,
        "studies": studies,
        "events": events,
        "acknowledged": acknowledged,
        "steps": steps.total(),
        **failures.figures(),
    }


if __name__ == "__main__":
    sys.exit(
        harness.main(__doc__, run, kills=1000, workers=8, kills_per_study=100, longest=0.4, seed=0, store="sqlite")
    )
