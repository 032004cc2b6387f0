"""Trials whose start, run point, context or fidelity a revision cannot express."""

import csv
import io

import pytest

import belated as bl
from belated.errors import InvalidPoint

pytestmark = pytest.mark.filterwarnings("ignore::belated.BelatedWarning")

X = {"x": (0.0, 1.0)}
THREE = X | {"c": ["a", "b", "c"]}
TWO = X | {"c": ["a", "b"]}
SITES = {"site": ["p", "q", "r"]}
OUTCOMES = {"f": "maximize", "p": bl.Record(), "q": bl.Record()}


@pytest.fixture
def new_study(tmp_path):
    """A function that creates a study, and a function that loads it again."""
    url = f"sqlite:///{tmp_path}/lab.db"

    def make(space=THREE, **arguments):
        return bl.Study("s", url, bl.RandomSearch(space, seed=0, **arguments)), lambda: bl.Study.load("s", url)

    return make


def run_elsewhere(study, **situation):
    """Suggest a point with the choice "c", which later revisions remove, and report a value at another point."""
    trial = study.suggest(fixed={"c": "c"}, **situation)
    study.observe(trial, 1.0, params={"x": 0.5, "c": "a"})
    return trial


def test_a_replicate_has_the_context_of_its_trial(new_study):
    study, load = new_study(context=SITES)
    run_elsewhere(study, context={"site": "p"})
    study.revise(space=TWO, context={"site": ["q", "p", "r"]})
    assert study.trials[0].left_out is None
    assert study.trials[0].context == {"site": "p"}
    study.observe(0, 2.0, replicate=True)
    for each in (study, load()):
        assert [trial.context for trial in each.trials] == [{"site": "p"}] * 2
        assert each.trials[1].params == {"x": 0.5, "c": "a"}


@pytest.mark.parametrize("params", [None, {"x": 0.25, "c": "b"}])
def test_a_replicate_has_a_context_that_was_added_later(new_study, params):
    study, load = new_study()
    run_elsewhere(study)
    study.revise(space=TWO, context=SITES, fill={"site": "q"})
    study.observe(0, 2.0, params=params, replicate=True)
    for each in (study, load()):
        assert [trial.context for trial in each.trials] == [{"site": "q"}] * 2
        assert each.trials[1].params == (params or {"x": 0.5, "c": "a"})


def test_contexts_are_converted_at_each_revision(new_study):
    study, load = new_study(context=SITES)
    run_elsewhere(study, context={"site": "p"})
    study.revise(space=TWO, map={"site": {"p": "q", "q": "p"}})
    study.revise(map={"site": {"q": "r", "r": "q"}})
    for each in (study, load()):
        assert each.trials[0].context == {"site": "r"}
        assert each.trials[0].params == study.trials[0].params  # the suggested point of the first problem
        assert each.trials[0].params["c"] == "c"


def test_a_context_from_a_parameter_is_the_value_at_which_the_trial_was_run(new_study):
    study, load = new_study(X | {"t": (0.0, 1.0)})
    study.suggest(fixed={"t": 0.25})
    study.observe(0, 1.0, params={"x": 0.5, "t": 0.75})
    study.revise(space=X, context={"t": (0.0, 1.0)})
    for each in (study, load()):
        assert each.trials[0].context == {"t": 0.75}
        assert each.trials[0].params_run == {"x": 0.5}


def test_fidelities_are_converted_at_each_revision(new_study):
    study, load = new_study(fidelity=bl.Fidelity(1, 27))
    run_elsewhere(study, fidelity=27)
    study.revise(space=TWO, fidelity=None)
    assert study.trials[0].fidelity is None
    study.revise(fidelity=bl.Fidelity(1, 81))
    study.observe(0, 2.0, fidelity=81, replicate=True)
    for each in (study, load()):
        assert [trial.fidelity for trial in each.trials] == [81, 81]
        assert [float(row["fidelity"]) for row in csv.DictReader(io.StringIO(each.to_csv()))] == [81, 81]


def test_a_context_is_converted_while_the_fidelity_is_unknown(new_study):
    study, load = new_study(context=SITES, fidelity=bl.Fidelity(1, 27))
    study.add({"x": 0.5, "c": "a"}, 1.0, context={"site": "p"}, fidelity=9)
    study.revise(fidelity=None, map={"site": {"p": "q", "q": "p"}})
    assert "below the full fidelity" in study.trials[0].left_out
    assert (study.trials[0].fidelity, study.trials[0].context) == (9, {"site": "q"})
    with pytest.raises(InvalidPoint, match="add the value as a new trial"):
        study.observe(0, 2.0, params={"x": 0.5, "c": "a"}, replicate=True)
    study.revise(fidelity=bl.Fidelity(1, 27), map={"site": {"q": "r", "r": "q"}})
    for each in (study, load()):
        assert each.trials[0].left_out is None
        assert (each.trials[0].fidelity, each.trials[0].context) == (9, {"site": "r"})


@pytest.mark.parametrize("outcomes", [None, OUTCOMES])
def test_a_replicate_of_a_trial_that_is_left_out_needs_a_point(new_study, outcomes):
    study, load = new_study(outcomes=outcomes)
    first, second = (1.0, 2.0) if outcomes is None else ({"f": 1.0}, {"f": 2.0})
    study.add({"x": 0.5, "c": "c"}, first)
    study.revise(space=TWO, drop=True)
    with pytest.raises(InvalidPoint, match="pass params= of the present problem"):
        study.observe(0, second, replicate=True)
    study.observe(0, second, params={"x": 0.5, "c": "a"}, replicate=True)
    for each in (study, load()):
        assert each.trials[0].left_out is not None
        assert [trial.value for trial in each.trials] == [1.0, 2.0]
        assert each.trials[1].params == {"x": 0.5, "c": "a"}


@pytest.mark.parametrize("outcomes", [None, OUTCOMES])
def test_an_equal_number_of_another_choice_is_another_point(new_study, outcomes):
    study, load = new_study(outcomes=outcomes)
    value = 5.0 if outcomes is None else {"f": 5.0}
    study.add({"x": 0.5, "c": "a"}, value)
    study.revise(space=X | {"c": ["b", "c"]}, drop=True)  # "b" has the number that "a" had, and trial 0 is left out
    study.observe(0, value, params={"x": 0.5, "c": "b"}, amend=True)
    for each in (study, load()):
        assert (each.trials[0].left_out, each.trials[0].params_run) == (None, {"x": 0.5, "c": "b"})


@pytest.mark.parametrize("kept", [["p", "q"], ["f", "p", "q"]])
def test_a_trial_without_missing_outcomes_is_not_pending(new_study, kept):
    study, load = new_study(outcomes=OUTCOMES | {"r": bl.Record()})
    study.suggest(2, fixed={"c": "c"})
    study.observe(0, {name: 1.0 for name in kept})
    study.revise(space=TWO, drop=True)
    assert (study.trials[0].state, study.trials[1].state) == ("pending", "pending")
    study.revise(outcomes={name: OUTCOMES[name] for name in kept})
    for each in (study, load()):
        assert (each.trials[0].state, each.trials[0].missing) == ("observed", [])
        assert [trial.number for trial in each.pending] == [1]
    study.revise(outcomes={name: OUTCOMES[name] for name in kept} | {"late": bl.Record()})
    assert study.trials[0].missing == []


def test_a_withdrawn_outcome_of_a_trial_that_is_left_out_is_missing_again(tmp_path):
    url = f"sqlite:///{tmp_path}/lab.db"
    outcomes = {"f": "maximize", "p": bl.AtMost(1.0)}
    study = bl.Study("s", url, bl.BayesOpt(THREE, seed=0, initial=2, outcomes=outcomes))
    study.suggest(fixed={"c": "c"})
    study.observe(0, {"f": 1.0})
    study.revise(space=TWO, drop=True)
    for i in range(3):
        study.add({"x": i / 4, "c": "ab"[i % 2]}, {"f": i * 1.0, "p": i / 2})
    study.withdraw(0)
    assert (study.trials[0].state, study.trials[0].missing) == ("pending", ["f", "p"])
    assert [trial.number for trial in study.pending] == [0]
    loaded = bl.Study.load("s", url)
    assert study.suggest().params["c"] in "ab"  # the models do not read the point of trial 0
    point = {"x": 0.5, "c": "a"}
    assert study.optimizer.predict(point) == loaded.optimizer.predict(point)


def test_a_withdrawal_keeps_the_value_of_a_trial_that_is_left_out(new_study):
    study, load = new_study(outcomes={"f": "minimize", "p": bl.Record()})
    study.add({"x": 0.5, "c": "c"}, {"f": 1.0, "p": 2.0})
    study.revise(space=TWO, drop=True)
    study.withdraw(0, reason="typo")
    for each in (study, load()):
        withdrawal = each.trials[0].withdrawal
        assert (withdrawal.state, withdrawal.value, withdrawal.reason) == ("observed", 1.0, "typo")


NAMED = [{"ligand": "B", "load": 1.0}, {"ligand": "P", "load": 2.0}, {"ligand": "X", "load": 3.0}]


@pytest.mark.parametrize(
    ("before", "after"), [(NAMED, NAMED[1:]), ([[1.0], [2.0], [3.0]], [[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])]
)
def test_an_index_is_a_row_number_of_the_present_candidates(tmp_path, before, after):
    study = bl.Study("s", f"sqlite:///{tmp_path}/lab.db", bl.RandomSearch(candidates=before, seed=0))
    study.add(0, 1.0)
    trial = study.add(1)
    trial.observe(2.0, params=0)
    assert [(each.index, each.index_run) for each in study.trials] == [(0, 0), (1, 0)]
    study.revise(candidates=after)
    now = 0 if before is NAMED else None  # row 1 of the named rows is row 0 now
    assert [(each.index, each.index_run) for each in study.trials] == [(None, None), (now, None)]
