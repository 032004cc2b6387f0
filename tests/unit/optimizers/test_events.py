"""Events contain numbers in the user's units and sign, in the form that docs/store_file.md describes."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import belated as bl
from belated._core import Action, Observation

SPACE = {
    "C": bl.Real(1e-4, 1e3, log=True),
    "n": bl.Integer(1, 1000, log=True),
    "step": bl.Real(0.0, 1.0, step=0.1),
    "kernel": ["rbf", "poly", None],
    "size": bl.Ordinal([16, 32, 64]),
    "degree": bl.Integer(2, 5, when={"kernel": "poly"}),
    "version": "constant",
}


def events(opt):
    return [json.loads(event) for event in opt._log.events(0)]


@given(C=st.floats(1e-4, 1e3), n=st.integers(1, 1000), k=st.integers(0, 10), value=st.floats(-1e300, 1e300))
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_added_points_are_logged_bit_for_bit(direction, C, n, k, value):
    age = bl.Real(1.0, 90.0, log=True)
    opt = bl.RandomSearch(SPACE, direction=direction, context={"age": age}, time=lambda: 7.5, seed=0)
    step = float(f"{k}e-1")
    params = {"C": C, "n": n, "step": step, "kernel": None, "size": 64, "version": "constant"}
    trial = opt.add(params, value, context={"age": 33.3})
    [event] = events(opt)
    added = {
        "point": {"numbers": [C, n, step, 2, 2, None]},
        "context": [33.3],
        "results": [[0, {"value": value}]],
        "awaited": True,
    }
    assert event == {"at": 7.5, "now": 0.0, "what": {"Added": added}}
    assert (trial.params, trial.value, trial.context) == (params, value, {"age": 33.3})
    opt.observe(trial, -value, amend=True, params=params | {"kernel": "poly", "degree": 3})
    resulted = {
        "trial": 0,
        "results": [[0, {"Amended": {"value": -value}}]],
        "data": {"point": {"numbers": [C, n, step, 1, 2, 3]}},
    }
    assert events(opt)[1] == {"at": 7.5, "now": 0.0, "what": {"Resulted": resulted}}
    assert opt.best_value_ == -value


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_suggested_points_are_logged_as_trials_show_them(direction):
    fidelity = bl.Fidelity(100, 5000, log=True)
    opt = bl.TreeSearch({"C": SPACE["C"], "n": SPACE["n"]}, direction=direction, fidelity=fidelity, seed=0)
    for _ in range(20):
        trial = opt.suggest()
        trial.observe(trial.params["C"])
    logged = [event["what"]["Suggested"] for event in events(opt) if "Suggested" in event["what"]]
    assert [each["point"]["numbers"] for each in logged] == [list(trial.params.values()) for trial in opt.trials]
    assert [each["fidelity"] for each in logged] == [trial.fidelity for trial in opt.trials]
    assert all(100 <= trial.fidelity <= 5000 and type(trial.fidelity) is int for trial in opt.trials)


def test_candidates_are_logged_by_their_row():
    candidates = np.random.default_rng(0).normal(size=(30, 2)) * 1e6
    opt = bl.BayesOpt(candidates=candidates, seed=0)
    for _ in range(5):
        opt.suggest().observe(0.5)
    places = [event["what"]["Suggested"]["point"] for event in events(opt) if "Suggested" in event["what"]]
    assert places == [{"candidate": trial.index} for trial in opt.trials]


def test_drafts_are_logged_as_their_texts():
    opts = [bl.BayesOpt(SPACE, outcomes={"f": "maximize", "g": bl.AtMost(1.0)}, initial=2, seed=0) for _ in range(2)]
    drafted, read = (opt._log for opt in opts)
    for i in range(5):
        drafts = drafted.propose(2, None, None)
        assert drafted.commit(drafts) == read.extend([draft.text for draft in drafts]) == [2 * i, 2 * i + 1]
        draft = drafted.validate(
            Action.observe(2 * i, Observation([(0, i / 4, None), (1, 0.5, 0.1)]), False, False), None
        )
        assert drafted.commit([draft]) == read.extend([draft.text]) == [draft.number]
        assert drafted.events(0) == read.events(0)
    assert opts[0].suggest().params == opts[1].suggest().params


def test_drafts_for_another_place_in_the_log_are_checked():
    opt = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
    number = opt.suggest().number
    [failure, value] = (
        opt._log.validate(action, None)
        for action in (Action.fail(number, None, None), Action.observe(number, Observation(0.5), False, False))
    )
    opt.observe(number, 0.25)
    for draft in (failure, value):
        with pytest.raises(bl.BelatedError, match="event 2 of the log could not have happened"):
            opt._log.commit([draft])
    assert opt._log.n_events() == 2 and opt.trial(number).value == 0.25
