"""Check that the model does not depend on the order of results: python campaigns/histories.py.

Each random history is run in three ways. The first run alternates suggestions and reports. Reports may be late,
repeated, amended or refused. A report may be for an unknown trial, for a failed trial, or for a trial whose lease has
ended. From time to time the study is closed and opened again. The second run does not close the study, and leaves out
the calls that must not change it. The suggestions of the second run must equal the suggestions of the first run, bit
for bit. The third run has the same points and reports, but reports about different trials are shuffled. With the same
hyperparameters, the posterior of the third run must equal the posterior of the first run within 1e-9. The program
prints JSON.
"""

import random
import sys
import time
from pathlib import Path

import harness
import numpy as np

import belated as bl

POSTERIOR = 1e-9
THETA = {"surrogate": bl.GP(kernel="matern52", lengthscale=0.4, signal_std=1.0, noise_std=1e-3**0.5), "initial": 0}
GRID = np.random.default_rng(0).random((40, 2))
PROBES = [{"x": x, "y": y} for x, y in np.random.default_rng(1).random((5, 2)).tolist()]


def optimizer(chance, seed):
    """Return an optimizer with fixed hyperparameters. Most of these optimizers search candidates, because this takes
    the least time."""
    settings = THETA | {"pending": chance.choice(["hallucinate", "ignore", "censor"]), "seed": seed}
    if settings["pending"] == "censor":
        settings |= {"pending": bl.Censor(-3.0), "window": 5.0}
    if chance.random() < 0.9:
        return lambda: bl.BayesOpt(candidates=GRID, **settings)
    return lambda: bl.BayesOpt(harness.BOX, **settings)


def history(chance, length):
    """Return a random history as a list of calls: ("suggest", lease), (report, trial number, value), ("reopen",) …"""
    calls, n, values, touched = [("suggest", None)], 1, {}, set()
    while len(calls) < length:
        kind = chance.random()
        number = chance.randrange(n)
        value = round(chance.gauss(0, 1), 3)
        if kind < 0.35:
            calls.append(("suggest", chance.choice([None, None, 1.0])))
            n += 1
        elif kind < 0.65:
            if number in values:
                calls.append(("again", number, values[number]))
            else:
                calls.append(("observe", number, value))
                values[number] = value
        elif kind < 0.72 and values:
            number = chance.choice(sorted(values))
            calls.append(("amend", number, value))
            values[number] = value
        elif kind < 0.77 and values:
            number = chance.choice(sorted(values))
            calls.append(("refused", number, values[number] + 1.0))
        elif kind < 0.82:
            calls.append(("unknown", n + chance.randrange(5), value))
        elif kind < 0.90 and number not in values and number not in touched:
            calls.append((chance.choice(["fail", "abandon"]), number, None))
            touched.add(number)
        elif kind > 0.92:
            calls.append(("reopen",))
    return [*calls, ("suggest", None)]


def live(make, name, store, calls, plain=False):
    """Run a history; return the final study and a list of errors."""
    wrong, now = [], [1000.0]
    study = bl.Study(name, store=store, optimizer=make(), time=lambda: now[0])
    for call, *arguments in calls:
        now[0] += 1.0
        if call == "suggest":
            study.suggest(expires_after=arguments[0])
        elif call in ("observe", "amend"):
            study.observe(*arguments, amend=call == "amend")
        elif call in ("fail", "abandon"):
            getattr(study, call)(arguments[0])
        elif plain:
            continue
        elif call == "reopen":
            study = bl.Study.load(name, store, time=lambda: now[0])
        elif call == "again":
            study.observe(*arguments)
        else:
            expected = bl.errors.UnknownTrial if call == "unknown" else bl.errors.AlreadyObserved
            try:
                study.observe(*arguments)
                wrong.append(f"{call} {arguments} was accepted")
            except expected:
                pass
    return study, wrong


def shuffled(make, name, store, calls, trials, chance):
    """Run a history with the same points, but with the reports in another order; return the final study."""
    study = bl.Study(name, store=store, optimizer=make(), time=lambda: 1000.0)
    points = [trial.params if trial.index is None else trial.index for trial in trials]
    for point in points:
        study.add(point)
    reports = [call for call in calls if call[0] in ("observe", "amend", "fail", "abandon")]
    order = [call[1] for call in reports]
    chance.shuffle(order)
    waiting = {number: [call for call in reports if call[1] == number] for number in order}
    for number in order:
        call, _, value = waiting[number].pop(0)
        if call in ("fail", "abandon"):
            getattr(study, call)(number)
        else:
            study.observe(number, value, amend=call == "amend")
    study.suggest()
    return study


def facts(study):
    """Return all data of the trials in a form that can be compared exactly."""
    return [
        (trial.params if trial.index is None else None, trial.index, trial.state, trial.value) for trial in study.trials
    ]


def posterior(study):
    """Return the posterior mean and standard deviation at a few fixed points."""
    return np.array(study.predict(None if study.trials[0].x is not None else PROBES))


def one(number, seed, length, store):
    """Run one history in the three ways; return the errors and the largest difference between the posteriors."""
    chance = random.Random(f"{seed} {number}")
    make = optimizer(chance, number)
    calls = history(chance, chance.randint(4, length))
    study, wrong = live(make, f"{number} lived", store, calls)
    plain, _ = live(make, f"{number} plain", store, calls, plain=True)
    trials = study.trials
    if facts(study) != facts(plain):
        wrong.append("reopening, or calls that must change nothing, changed the trials")
    if facts(bl.Study.load(f"{number} lived", store)) != facts(study):
        wrong.append("opened once more it has other trials")
    if not any(trial.state == "observed" for trial in trials):
        return wrong, 0.0
    other = shuffled(make, f"{number} shuffled", store, calls, trials[:-1], chance)
    difference = float(np.abs(posterior(study) - posterior(other)).max())
    again = float(np.abs(posterior(study) - posterior(plain)).max())
    if again != 0.0:
        wrong.append(f"the posterior after reopening differs by {again}")
    if not difference <= POSTERIOR:
        wrong.append(f"the posterior depends on the order: {difference}")
    return wrong, difference


def some(numbers, seed, length, folder, per_file, results, deadline):
    """Run several histories, and start a new file from time to time; report (number of histories, failures, largest
    difference)."""
    failures, largest, lived, path = harness.Failures(), 0.0, 0, None
    for number in numbers:
        if deadline.over():
            break
        if lived % per_file == 0:
            for file in harness.files(path) if path else ():
                file.unlink(missing_ok=True)
            path = Path(folder) / f"{number}.db"
        try:
            wrong, difference = one(number, seed, length, harness.url(path))
        except Exception as error:
            wrong, difference = [f"{type(error).__name__}: {error}"], 0.0
        for what in wrong:
            failures.note(f"history {number}: {what}")
        largest, lived = max(largest, difference), lived + 1
    results.put((lived, len(failures), failures[:5], largest))


def run(histories=100_000, length=16, per_file=4, workers=2, seed=0, limit=None):
    """Return all results."""
    deadline, context = harness.Deadline(limit), harness.processes()
    with harness.folder(memory=True) as folder:
        results = context.SimpleQueue()
        crowd = [
            context.Process(
                target=some,
                args=(range(slot, histories, workers), seed, length, folder, per_file, results, deadline),
            )
            for slot in range(workers)
        ]
        for process in crowd:
            process.start()
        while any(process.is_alive() for process in crowd):
            time.sleep(0.05)
        reports = []
        while not results.empty():
            reports.append(results.get())
    return {
        "histories": sum(report[0] for report in reports),
        "largest_difference": max((report[3] for report in reports), default=None),
        "failures": sum(report[1] for report in reports) + (len(reports) != workers),
        "first_failures": [what for report in reports for what in report[2]][:5],
    }


if __name__ == "__main__":
    sys.exit(harness.main(__doc__, run, histories=100_000, length=16, per_file=4, workers=2, seed=0))
