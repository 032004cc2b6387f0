"""Test studies on a PostgreSQL server that is stopped and started again under load: python campaigns/stops.py.

Workers suggest, observe, fail and add in one study, without pauses. Meanwhile the program repeatedly stops the server
in the mode `immediate`, as in a crash, and sometimes waits before it starts the server again. Calls must not raise an
error. At the end, the event table must contain every acknowledged call exactly once, even if the connection was lost
before, during or after the call's commit. The program prints JSON.
"""

import json
import random
import sys
import time
from collections import Counter
from pathlib import Path

import harness
import kill
import server

import belated as bl

KINDS = {"suggest": "Suggested", "observe": "New", "fail": "Failed", "add": "Added", "report": "Reported"}
KINDS |= {"withdraw": "Withdrawn", "revise": "Revised"}


def run(stops=50, workers=8, longest=1.0, down=0.5, seed=0, limit=None):
    """Return all results."""
    chance, failures, deadline = random.Random(seed), harness.Failures(), harness.Deadline(limit)
    context = harness.processes()
    stopped, lost = 0, 0.0
    with harness.folder() as folder, server.Server() as database:
        url, end = database.url(), Path(folder) / "end"
        harness.random_study(url)
        notes = [f"{folder}/{slot}" for slot in range(workers)]
        crowd = [
            context.Process(target=kill.work, args=(url, "study", slot, notes[slot], chance.randrange(2**32), end))
            for slot in range(workers)
        ]
        for process in crowd:
            process.start()
        while not all(kill.read(file) for file in notes) and not deadline.over():
            time.sleep(0.05)
        while stopped < stops and not deadline.over():
            time.sleep(chance.uniform(0.05, longest))
            start = time.monotonic()
            database.stop("immediate")
            time.sleep(chance.choice([0.0, 0.0, down]))
            database.start()
            lost += time.monotonic() - start
            stopped += 1
        time.sleep(1.0)
        end.touch()
        for process in crowd:
            process.join(120)
            if process.exitcode != 0:
                failures.note(f"a worker ended with {process.exitcode}")
                process.kill()
        acknowledged = kill.compare(bl.Study.load("study", url), notes, failures)
        for problem in harness.audit(url):
            failures.note(problem)
        table = harness.rows(url)
        keys = [key for _, _, key, _ in table if key is not None]
        if len(keys) != len(set(keys)):
            failures.note("a key occurs twice")
        # A worker ends only after its last call was answered, so the table must contain exactly the acknowledged calls.
        done = Counter(KINDS[line["call"]] for file in notes for line in kill.read(file) if line["what"] == "done")
        stored = Counter(harness.kind_of(json.loads(body)) for *_, body in table)
        if done != stored:
            failures.note(f"acknowledged: {dict(done)}, stored: {dict(stored)}")
    return {
        "stops": stopped,
        "workers": workers,
        "seconds_without_server": round(lost, 1),
        "events": len(table),
        "acknowledged": acknowledged,
        **failures.figures(),
    }


if __name__ == "__main__":
    sys.exit(harness.main(__doc__, run, stops=50, workers=8, longest=1.0, down=0.5, seed=0))
