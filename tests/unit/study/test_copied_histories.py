"""A copy of a study has the finished trials of arbitrary histories, with errors, withdrawals and times."""

import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import belated as bl
from belated.store.memory import MemoryStore

OUTCOMES = {
    "no outcomes": None,
    "one outcome": {"y": "maximize"},
    "two outcomes": {"p": bl.AtLeast(0.5), "y": "minimize"},
    "four outcomes": {"y": "maximize", "p": bl.AtMost(1.0), "q": bl.Record(), "r": bl.AtLeast(0.0)},
}
STEPS = st.tuples(
    st.sampled_from(["observe", "observe", "amend", "fail", "abandon", "withdraw", "report", "stop"]),
    st.integers(0, 3),  # the trial
    st.sets(st.integers(0, 3)),  # the outcomes; empty for all that the call concerns
    st.integers(0, 5),  # the value, the error or the reason
)


def facts(trial):
    """Return all that a copy has of a trial."""
    outcomes = {
        name: (each.state, each.value, each.std, each.finished_at, each.withdrawal)
        for name, each in trial.outcomes.items()
    }
    data = (trial.value, trial.std, trial.cost, trial.duration, trial.error, trial.attrs, trial.params_run, trial.curve)
    return trial.state, trial.withdrawal, outcomes, data, trial.started_at


def apply(study, names, step):
    """Carry out a step of a history; refused steps change nothing."""
    kind, number, chosen, n = step
    names = list(names)
    names = [names[k] for k in sorted(chosen) if k < len(names)] or names
    one = {"outcome": names[0]} if names and chosen else {}
    try:
        if kind in ("observe", "amend"):
            value = {name: n / 4 + k for k, name in enumerate(names)} if names else n / 4
            data = {"cost": 1.0 + n, "duration": 2.0 + n, "attrs": {"lot": n}} if n % 2 else {}
            study.observe(number, value, amend=kind == "amend", std=0.5 if n == 3 else None, **data)
        elif kind == "fail":
            study.fail(number, error=f"error {n}" if n else None, duration=3.0 if n == 5 else None, **one)
        elif kind == "abandon":
            study.abandon(number, **one)
        elif kind == "withdraw":
            study.withdraw(number, reason=f"reason {n}" if n else None, **one)
        elif kind == "report":
            study.report(number, n / 4, 1 + n % 3)
        else:
            study.stop(number)
    except bl.BelatedError:
        pass


@pytest.mark.parametrize("kind", list(OUTCOMES))
@pytest.mark.parametrize("clock", ["iterations", "seconds"])
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(STEPS, max_size=25))
def test_a_copy_equals_the_finished_trials(kind, clock, steps):
    now = [1.7e9]
    settings = {"outcomes": OUTCOMES[kind]} if OUTCOMES[kind] else {}
    optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0, clock=clock, curve=bl.Curve(3), **settings)
    study = bl.Study("a", MemoryStore(), optimizer, time=lambda: now[0])
    study.suggest(4)
    withdrawn = set()
    for step in steps:
        now[0] += 1.0
        # The record of a trial has the last withdrawal only. A stop after a withdrawal may abandon withdrawn outcomes.
        if step[0] in ("withdraw", "stop") and step[1] in withdrawn:
            continue
        if step[0] == "withdraw":
            withdrawn.add(step[1])
        apply(study, OUTCOMES[kind] or (), step)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        copy = study.copy("b")
    finished = [trial for trial in study.trials if trial.state != "pending"]
    assert [facts(trial) for trial in copy.trials] == [facts(trial) for trial in finished]
