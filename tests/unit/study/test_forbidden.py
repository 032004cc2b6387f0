"""Pending trials that a revision has forbidden are named wherever somebody may run them."""

import warnings

import pytest

import belated as bl
from belated.errors import InvalidValue
from belated.warn import BelatedWarning

SPACE = {"heat": (20.0, 90.0), "dose": (0.0, 1.0)}


def heat_is_low(params):
    return params["heat"] <= 65.0


def cold_or_small(params):
    return params["heat"] <= 65.0 or params["dose"] < 0.1


@pytest.fixture
def study(tmp_path):
    study = bl.Study("oven", tmp_path / "a.db", bl.RandomSearch(SPACE, seed=0))
    study.suggest(n=2)
    for number in range(2):
        study.observe(number, 0.5)
    study.suggest(n=3, fixed={"heat": (70.0, 90.0), "dose": (0.2, 1.0)}, key="plate")
    study.suggest(n=2, fixed={"heat": (20.0, 60.0)})
    return study


CHANGES = {
    "bound": {"space": SPACE | {"heat": (20.0, 65.0)}},
    "function": {"constraints": [cold_or_small]},
    "functions": {"constraints": [cold_or_small, heat_is_low]},
    "linear": {"constraints": [bl.Linear({"heat": 1.0}, at_most=65.0)]},
    "left out": {"space": {"heat": (20.0, 65.0), "dose": bl.Categorical([0.0, 1.0])}},
}


@pytest.mark.parametrize("change", CHANGES)
def test_forbidden_trials_are_named(study, change, tmp_path):
    pytest.importorskip("pandas")
    assert study.forbidden == {} and "forbidden" not in study.worklist_html()
    with pytest.warns(BelatedWarning, match="pending trials of study 'oven' must not be run any longer"):
        study.revise(**CHANGES[change])
    forbidden = study.forbidden
    assert [number for number in forbidden if number < 5] == [2, 3, 4]
    assert change == "left out" or len(forbidden) == 3
    table = study.worklist().set_index("number")["forbidden"]
    assert table.to_dict() == {
        number: forbidden.get(number, "") for number in (trial.number for trial in study.pending)
    }
    page = study.worklist_html()
    assert f"{len(forbidden)} of them forbidden: do not run these" in page
    with pytest.warns(BelatedWarning, match=r"3 \(numbers 2, 3, 4\) of the 5 pending"):
        again = study.suggest(n=3, fixed={"heat": (70.0, 90.0), "dose": (0.2, 1.0)}, key="plate")
    assert [trial.number for trial in again] == [2, 3, 4]
    # A value that arrives all the same is accepted.
    study.observe(2, 0.75)
    study.abandon([3, 4])
    assert study.trial(2).value == 0.75
    assert not {2, 3, 4} & study.forbidden.keys()


def test_a_process_with_the_functions_names_them(study, tmp_path):
    with pytest.warns(BelatedWarning):
        study.revise(constraints=[heat_is_low])
    other = bl.Study.load("oven", tmp_path / "a.db", constraints=[heat_is_low])
    assert other.forbidden == study.forbidden and len(study.forbidden) == 3
    assert all("heat_is_low" in reason for reason in study.forbidden.values())


def test_constraints_are_not_examined_again_without_a_revision(tmp_path):
    calls = []

    def counted(params):
        calls.append(params)
        return True

    study = bl.Study("oven", tmp_path / "a.db", bl.RandomSearch(SPACE, constraints=[counted], seed=0))
    study.suggest(n=20, key="plate")
    n_calls = len(calls)
    study.suggest(n=20, key="plate")
    assert study.forbidden == {} and len(calls) == n_calls


def test_a_constraint_that_fails_at_a_pending_point_is_a_reason(study):
    tables = {"cold": 65.0}

    def is_cold(params):
        return params["heat"] <= tables["cold"]

    with pytest.warns(BelatedWarning, match="must not be run any longer"):
        study.revise(constraints=[is_cold])
    tables.clear()  # from now on, the constraint raises KeyError
    assert len(study.forbidden) == 5
    assert all("is_cold) raised KeyError" in reason for reason in study.forbidden.values())


def test_a_wider_problem_forbids_nothing(study):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study.revise(space=SPACE | {"heat": (10.0, 100.0)})
    assert study.forbidden == {}


def test_candidates_that_are_gone_are_forbidden(tmp_path):
    study = bl.Study("rows", tmp_path / "a.db", bl.RandomSearch(candidates=[[0.0], [0.5], [1.0]], seed=0))
    trials = study.suggest(n=3)
    gone = next(trial.number for trial in trials if trial.x[0] == 1.0)
    with pytest.warns(BelatedWarning, match=rf"1 \(number {gone}\)"):
        study.revise(candidates=[[0.0], [0.5]])
    assert [*study.forbidden] == [gone]


def test_trials_that_lack_a_new_outcome_are_listed(tmp_path):
    outcomes = {"error": "minimize", "size": bl.AtMost(0.9)}
    study = bl.Study("oven", tmp_path / "a.db", bl.RandomSearch(SPACE, outcomes=outcomes, seed=0))
    study.suggest(n=5)
    for number in range(3):
        study.observe(number, {"error": 0.5, "size": 0.1})
    study.fail(3)
    with pytest.warns(BelatedWarning, match="3 trials of study 'oven' lack a value of the new outcome 'price'"):
        study.revise(outcomes=outcomes | {"price": bl.AtMost(2.0)})
    assert [trial.number for trial in study.lacking("price")] == [0, 1, 2]
    study.observe(1, {"price": 1.0})
    assert [trial.number for trial in study.lacking("price")] == [0, 2]
    assert study.lacking("error") == []
    with pytest.raises(InvalidValue, match="cost"):
        study.lacking("cost")


def test_a_process_without_the_functions_knows_what_they_refused(study, tmp_path):
    with pytest.warns(BelatedWarning, match="must not be run any longer"):
        study.revise(constraints=[cold_or_small])
    other = bl.Study.load("oven", tmp_path / "a.db")
    assert other.forbidden.keys() == study.forbidden.keys() == {2, 3, 4}
    assert set(other.forbidden.values()) == {"it violates a constraint that is a function"}
    study.revise(constraints=None)
    assert bl.Study.load("oven", tmp_path / "a.db").forbidden == {}
