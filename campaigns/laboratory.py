"""Play a month in a laboratory, one process each week: python campaigns/laboratory.py --store sqlite.

* Week 1: batches of experiments, values that come late, replicates, and a temperature that differed from the request.
* Week 2: the late values arrive, and a contaminated value is withdrawn. A process opens the study and stays open.
* Week 3: a constraint is found, the reaction time becomes a parameter, and a solvent is renamed. The process of week 2
  reports a value. A spreadsheet of 200 rows, 15 of which are not usable, is added.
* Week 4: an oven exceeds its bound. The trials are exported and read back, and the next week is planned.

Every step is checked. The program prints JSON.
"""

import sys
import time
from pathlib import Path

import harness
import numpy as np

import belated as bl

NAME = "yield"
SPACE = {"T": (20.0, 120.0), "equivalents": (1.0, 3.0), "solvent": ["Water ", "ethanol", "toluene"]}
DAY = 86_400.0
HOURS = 12.0  # the reaction time of the first two weeks
N_ROWS, N_BAD = 200, 15


def measured(params):
    """Return the yield of an experiment, in per cent."""
    of_solvent = {"water": 0.0, "Water ": 0.0, "ethanol": 8.0, "toluene": 4.0}[params["solvent"]]
    hours = params.get("hours", HOURS)
    heat = ((params["T"] - 85.0) / 30.0) ** 2
    return 80.0 + of_solvent - 20.0 * heat - 6.0 * (params["equivalents"] - 1.8) ** 2 - 0.02 * (hours - 16.0) ** 2


def check(is_true, message):
    """Raise AssertionError with a message, unless the condition is true."""
    if not is_true:
        raise AssertionError(message)


def refused(error, call, *words):
    """Call a function that must raise an error with these words in one line."""
    try:
        call()
    except error as raised:
        message = str(raised)
        check("\n" not in message and all(word in message for word in words), f"unclear message: {message}")
        return message
    raise AssertionError(f"{error.__name__} was not raised")


def week_1(url, folder):
    """Start the study. Two values of the second batch are late."""
    study = bl.Study(NAME, store=url, optimizer=bl.BayesOpt(SPACE, seed=0))
    for trial in study.suggest(n=6, expires_after=7 * DAY):
        ran = trial.params | ({"T": trial.params["T"] - 0.3} if trial.number == 1 and trial.params["T"] > 21 else {})
        study.observe(trial, measured(ran), params=ran, attrs={"flask": f"A{trial.number}"})
    best = study.best_params_
    for value in (-0.4, 0.4):  # replicates
        study.add(best, measured(best) + value)
    for trial in study.suggest(n=4, expires_after=14 * DAY)[:2]:
        study.observe(trial, measured(trial.params))
    check(study.n_trials == 12 and len(study.pending) == 2, "week 1 has 12 trials, 2 of which are pending")


def week_2(url, folder):
    """Observe the late values, one of which is contaminated and withdrawn."""
    study = bl.Study.load(NAME, url)
    late = study.pending
    study.observe(late[0], measured(late[0].params))
    before = study.best_value_
    study.observe(late[1], 99.0)
    check(study.best_value_ == 99.0, "the contaminated value is best")
    refused(bl.BelatedError, lambda: study.fail(late[1], error="contaminated"), "withdraw")
    study.withdraw(late[1], reason="contaminated")
    check(study.best_value_ == before, "the best value falls back")
    again = study.trial(late[1].number)
    check(again.state == "withdrawn", f"the state is {again.state}")
    study.observe(late[1], 99.0)  # a retry of the same report
    check(study.trial(late[1].number).state == "withdrawn", "a retry revived the contaminated value")
    refused(bl.BelatedError, lambda: study.withdraw(late[1], reason="twice"), "withdrawn")
    broken = study.suggest()
    study.fail(broken, error="power cut")
    study.withdraw(broken, reason="power cut")
    check(study.trial(broken.number).state == "withdrawn", "a failure can be withdrawn")
    for trial in study.suggest(n=3):
        study.observe(trial, measured(trial.params))


def opened_early(url, folder):
    """Open the study before it is revised, and report after the revision."""
    study = bl.Study.load(NAME, url)
    trial = study.suggest()
    (Path(folder) / "opened").touch()
    wait(Path(folder) / "revised")
    study.observe(trial, measured(trial.params))
    check(study.trial(trial.number).value == measured(trial.params), "the early handle reported")


def wait(file):
    """Wait for a file."""
    end = time.monotonic() + 120
    while not file.exists():
        if time.monotonic() > end:
            raise AssertionError(f"{file.name} did not appear")
        time.sleep(0.02)


def possible(params):
    """The constraint of week 3: ethanol boils."""
    return params["solvent"] != "ethanol" or params["T"] <= 78.0


def revised_space():
    """Return the space from week 3 on."""
    return {
        "T": (20.0, 120.0),
        "equivalents": (1.0, 3.0),
        "solvent": ["water", "ethanol", "toluene"],
        "hours": (1.0, 24.0),
    }


def week_3(url, folder):
    """Revise the study, and add a spreadsheet."""
    study = bl.Study.load(NAME, url)
    numbers, values = [t.number for t in study.trials], [t.value for t in study.trials]
    space, named = revised_space(), {"solvent": {"Water ": "water"}}
    refused(bl.BelatedError, lambda: study.revise(space=space, map=named), "hours")
    refused(bl.BelatedError, lambda: study.revise(space=space, fill={"hours": "long"}, map=named), "hours")
    refused(bl.BelatedError, lambda: study.revise(space=space, fill={"hours": HOURS}, map={"solvens": {}}), "solvens")
    study.revise(space=space, fill={"hours": HOURS}, map=named, constraints=[possible])
    check([t.number for t in study.trials] == numbers, "trials keep their numbers")
    check([t.value for t in study.trials] == values, "trials keep their values")
    check({t.params["solvent"] for t in study.trials} <= {"water", "ethanol", "toluene"}, "the solvent is renamed")
    check(all(t.params["hours"] == HOURS for t in study.trials), "old trials ran 12 hours")
    (Path(folder) / "revised").touch()
    early = study.pending[0]
    end = time.monotonic() + 120
    while study.trial(early.number).state == "pending" and time.monotonic() < end:
        time.sleep(0.05)
    check(study.trial(early.number).state == "observed", "the value of the handle that was opened earlier arrives")
    check(all(possible(trial.params) for trial in study.suggest(n=5)), "suggestions satisfy the constraint")
    for trial in study.pending:
        study.observe(trial, measured(trial.params))
    table = spreadsheet()
    before = study.n_trials
    start = time.monotonic()
    skipped = study.add(table, value="yield", on_error="skip").skipped
    check(study.n_trials == before + N_ROWS - N_BAD, f"{study.n_trials - before} rows were added")
    check(len(skipped) == N_BAD, f"{len(skipped)} rows were skipped")
    check(time.monotonic() - start < 5.0, "the table takes long")


def spreadsheet():
    """Return a table with 15 rows that are not usable."""
    import pandas as pd

    rng = np.random.default_rng(0)
    rows = []
    for _ in range(N_ROWS):
        solvent = ["water", "ethanol", "toluene"][int(rng.integers(3))]
        row = {"T": rng.uniform(20, 78), "equivalents": rng.uniform(1, 3), "solvent": solvent}
        row["hours"] = rng.uniform(1, 24)
        rows.append(row | {"yield": measured(row)})
    table = pd.DataFrame(rows, index=[f"old-{k}" for k in range(N_ROWS)])
    for k in range(N_BAD):
        column, bad = [("solvent", "methanol"), ("T", np.nan), ("yield", np.nan)][k % 3]
        table.loc[f"old-{13 * k}", column] = bad
    return table


def week_4(url, folder):
    """Report a measurement beyond a bound, export and import, and plan the next week."""
    import pandas as pd

    study = bl.Study.load(NAME, url, constraints=[possible])
    trial = study.suggest()
    ran = trial.params | {"T": 120.2, "solvent": "toluene"}
    study.observe(trial, 99.5, params=ran)
    check(study.trial(trial.number).outside, "the trial is marked")
    check(study.best_value_ < 99.5, "a trial beyond a bound is not best")
    check(study.best_trial(outside=True).number == trial.number, "it is best on request")
    file = Path(folder) / "trials.csv"
    study.to_csv(file)
    other = bl.Study("read back", store=url, optimizer=bl.BayesOpt(revised_space(), seed=1))
    other.add(pd.read_csv(file))
    # A trial that was run elsewhere is added where it was run.
    check([t.params for t in other.trials] == [t.params_run for t in study.trials], "the points are read back")
    check([t.value for t in other.trials] == [t.value for t in study.trials], "the values are read back")
    check([t.state for t in other.trials] == [t.state for t in study.trials], "the states are read back")
    study.suggest(n=4, expires_after=7 * DAY)
    plan = study.worklist()
    check(len(plan) == 4, f"the worklist has {len(plan)} rows")
    old = bl.Study.load(NAME, url, revision=1)
    check(set(old.trials[0].params) == set(SPACE), "the earlier problem can be read")


WEEKS = (week_1, week_2, week_3, week_4)


def run(store="sqlite", limit=None):
    """Return all results."""
    failures, context = harness.Failures(), harness.processes()
    played = []
    with harness.folder() as folder, harness.place(store, folder) as place:
        url = harness.url(place)
        early = context.Process(target=opened_early, args=(url, folder))
        for week in WEEKS:
            if week is week_3:
                early.start()
                wait(Path(folder) / "opened")
            process = context.Process(target=week, args=(url, folder))
            process.start()
            process.join(300)
            if process.exitcode != 0:
                failures.note(f"{week.__name__} ended with {process.exitcode}")
                break
            played.append(week.__name__)
        if early.pid is not None:
            early.join(120)
            if early.exitcode != 0:
                failures.note(f"the handle that was opened early ended with {early.exitcode}")
                early.kill()
        for problem in harness.audit(place):
            failures.note(problem)
        n_events = len(harness.rows(place))
    return {"store": store, "weeks": played, "events": n_events, **failures.figures()}


if __name__ == "__main__":
    sys.exit(harness.main(__doc__, run, store="sqlite"))
