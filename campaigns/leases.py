"""Check that the model uses a value that arrives 400 days late, long after a lease of an hour has ended: python
campaigns/leases.py.

The program controls the clock of the study. Three trials get leases of an hour, then 400 days pass. The trials must
still be pending, but not in the model: the next suggestion must equal the suggestion of a copy in which the trials were
abandoned, and differ from the suggestion of a copy in which they do not have a lease. Then another process opens the
study and observes the value of one trial. This value must change the model's mean at the trial's point. The program
prints JSON.
"""

import sys
from pathlib import Path

import harness

import belated as bl

DAY = 86_400.0
THETA = {"surrogate": bl.GP(lengthscale=0.3, signal_std=1.0, noise_std=1e-3), "initial": 0}


def leased(path, now, seconds):
    """Make a study with three trials whose leases have the given length; return the trials."""
    study = harness.bayes_study(path, time=lambda: now[0], **THETA)
    study.add([{"x": 0.1, "y": 0.1}, {"x": 0.9, "y": 0.1}, {"x": 0.1, "y": 0.9}], [0.0, 0.2, 0.1])
    trials = [study.suggest(expires_after=seconds) for _ in range(3)]
    return trials


def run(days=400, hours=1, limit=None):
    """Return all results."""
    failures = harness.Failures()
    now = [1e9]
    with harness.folder(memory=True) as folder:
        path, abandoned, held = (Path(folder) / f"{name}.db" for name in ("store", "abandoned", "held"))
        trials = leased(path, now, 3600.0 * hours)
        leased(held, now, None)
        point, expired = trials[0].params, [trial.number for trial in trials]
        now[0] += days * DAY
        harness.copy_store(path, abandoned)
        opened, other, waiting = (
            bl.Study.load("study", harness.url(file), time=lambda: now[0]) for file in (path, abandoned, held)
        )
        numbers = [trial.number for trial in opened.pending]
        if numbers != expired:
            failures.note(f"the expired trials are {expired}, pending are {numbers}")
        for number in expired:
            other.abandon(number)
        for one in (opened, other, waiting):
            one.add({"x": 0.5, "y": 0.5}, 0.1)  # an abandoned point may be suggested again only after another result
        next_expired, next_abandoned, next_held = (one.suggest().params for one in (opened, other, waiting))
        if next_expired != next_abandoned:
            failures.note(f"the expired trials are still in the model: {next_expired}, without them {next_abandoned}")
        if next_expired == next_held:
            failures.note("the lease does not affect the model, so the test is void")
        opened.observe(expired[0], 0.9)
        seen = opened.trials[expired[0]]
        if (seen.state, seen.value) != ("observed", 0.9) or opened.best_value_ != 0.9:
            failures.note(f"the late value was not accepted: {seen}, best {opened.best_value_}")
        mean_before, _ = other.predict([point])
        opened.suggest()
        mean, std = opened.predict([point])
        if not (abs(mean[0] - 0.9) < 0.01 and std[0] < 0.05):
            failures.note(f"the late value is not in the model: mean {mean[0]}, std {std[0]}")
        for problem in harness.audit(path):
            failures.note(problem)
    return {
        "days": days,
        "next_while_held": next_held,
        "next_when_expired": next_expired,
        "next_when_abandoned": next_abandoned,
        "mean_before": round(float(mean_before[0]), 4),
        "mean_after": round(float(mean[0]), 4),
        "value": 0.9,
        **failures.figures(),
    }


if __name__ == "__main__":
    sys.exit(harness.main(__doc__, run, days=400, hours=1))
