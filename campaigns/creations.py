"""Test that many jobs may create one store at the same time: python campaigns/creations.py.

In each round, processes wait for each other and then open one study in a store that does not exist. Every fourth
process first lists the studies. In some rounds, the store is a file that is empty. No call may raise an error, and all
processes must share one study, which must contain the trial of each process. The program prints JSON.
"""

import sys
import threading
from pathlib import Path

import harness

import belated as bl


def work(slot, target, start, results):
    """Open the study in each round, as a job does, and send its id or the error."""
    for path in iter(target.get, None):
        try:
            start.wait(60)
            if slot % 4 == 3:
                try:
                    bl.Study.list(harness.url(path))
                except bl.errors.StoreError as error:
                    if "the file does not exist" not in str(error) and "has no tables" not in str(error):
                        raise
            study = harness.random_study(path)
            study.observe(study.suggest(), float(slot))
            results.put((slot, study._log.id, None))
            del study
        except threading.BrokenBarrierError:
            return
        except Exception as error:
            results.put((slot, None, f"{type(error).__name__}: {error}"))


def run(rounds=50, jobs=20, store="sqlite", limit=None):
    """Return all results."""
    failures, deadline, context = harness.Failures(), harness.Deadline(limit), harness.processes()
    start, results = context.Barrier(jobs), context.Queue()
    targets = [context.Queue() for _ in range(jobs)]
    crowd = [context.Process(target=work, args=(i, targets[i], start, results), daemon=True) for i in range(jobs)]
    for process in crowd:
        process.start()
    done = calls = 0
    with harness.folder() as folder, harness.place(store, folder) as place:
        while done < rounds and not deadline.over():
            path = place if harness.is_url(place) else Path(folder) / f"{done}.db"
            if harness.is_url(place):
                import psycopg

                with psycopg.connect(place) as connection:
                    connection.execute("DROP SCHEMA IF EXISTS belated CASCADE")
            elif done % 3 == 2:
                path.touch()
            for target in targets:
                target.put(path)
            answers = [results.get(timeout=120) for _ in range(jobs)]
            for slot, _, error in answers:
                if error is not None:
                    failures.note(f"round {done}, job {slot}: {error}")
            ids = {id for _, id, error in answers if error is None}
            try:
                values = sorted(trial.value for trial in bl.Study.load("study", harness.url(path)).trials)
                expected = sorted(float(slot) for slot, _, error in answers if error is None)
                if len(ids) != 1 or values != expected:
                    failures.note(f"round {done}: {len(ids)} studies, and trials with the values {values}")
                for problem in harness.audit(path):
                    failures.note(f"round {done}: {problem}")
            except bl.errors.StoreError as error:
                failures.note(f"round {done}: {error}")
            done, calls = done + 1, calls + jobs
    for target in targets:
        target.put(None)
    for process in crowd:
        process.join(60)
    return {"rounds": done, "jobs": jobs, "creations": calls, **failures.figures()}


if __name__ == "__main__":
    sys.exit(harness.main(__doc__, run, rounds=50, jobs=20, store="sqlite"))
