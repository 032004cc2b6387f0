"""Studies with several objectives: revisions, summaries, commands and worklists."""

import pytest

import belated as bl
from belated import cli
from belated.errors import InvalidSetting, ObjectivesError

SPACE = {"x": (0.0, 1.0)}
FRONT = {"yield": "maximize", "cost": bl.Minimize(at_most=40.0), "purity": bl.AtLeast(0.95)}
RESULTS = [(50.0, 30.0, 0.99), (60.0, 35.0, 0.96), (40.0, 31.0, 0.97), (99.0, 1.0, 0.9)]


def filled(study):
    for trial, result in zip(study.suggest(n=4), RESULTS, strict=True):
        trial.observe(dict(zip(("yield", "cost", "purity"), result, strict=True)))
    return study


def numbers(reading):
    return [trial.number for trial in reading.pareto_]


@pytest.fixture(params=[bl.RandomSearch, bl.BayesOpt])
def study(request, store):
    return filled(bl.Study("laboratory", store, request.param(SPACE, outcomes=FRONT, seed=0)))


@pytest.mark.parametrize("kind", [bl.RandomSearch, bl.BayesOpt])
@pytest.mark.parametrize(
    "before",
    [
        {"yield": "maximize", "cost": bl.AtMost(40.0), "purity": bl.AtLeast(0.95)},
        {"purity": bl.Maximize(at_least=0.95), "yield": bl.Record(), "cost": bl.Record()},
    ],
)
def test_bounds_and_records_become_objectives_and_back(store, kind, before):
    study = filled(bl.Study("laboratory", store, kind(SPACE, outcomes=before, seed=0)))
    values, best = [trial.values for trial in study.trials], study.best_trial_
    study.revise(outcomes=FRONT)
    assert numbers(study) == [0, 1] and not hasattr(study, "best_trial_")
    study.suggest().observe({"yield": 100.0, "cost": 20.0, "purity": 1.0})
    assert numbers(study) == numbers(bl.Study.load("laboratory", store)) == [4]
    study.withdraw(4)
    study.revise(outcomes=before)
    assert study.best_trial_ == best and not hasattr(study, "pareto_")
    assert [trial.values for trial in study.trials[:4]] == values
    study.revise(outcomes={"yield": "maximize", "cost": "minimize", "purity": "maximize"})
    assert numbers(study) == [0, 1, 3]
    assert [trial.values for trial in bl.Study.load("laboratory", store).trials[:4]] == values


def test_values_without_a_name_cannot_be_those_of_several_objectives(store):
    study = bl.Study("laboratory", store, bl.RandomSearch(SPACE, seed=0))
    study.suggest().observe(0.5)
    with pytest.raises(InvalidSetting, match="one objective"):
        study.revise(outcomes=FRONT)
    assert study.revision == 1 and study.best_value_ == 0.5
    with pytest.raises(InvalidSetting, match="one objective"):
        study.copy("other", outcomes=FRONT)
    study.revise(outcomes={"yield": "maximize"})
    with pytest.warns(bl.BelatedWarning, match="lack"):
        study.revise(outcomes=FRONT)
    assert study.trial(0).values == {"yield": 0.5} and study.pareto_ == []
    copied = study.copy("copied", outcomes=FRONT)
    assert copied.trial(0).values == {"yield": 0.5}


def test_trials_beyond_a_narrower_space_leave_the_front(study):
    study.add({"x": 1.0}, {"yield": 99.0, "cost": 1.0, "purity": 1.0})
    assert numbers(study) == [4]
    study.revise(space={"x": (0.0, 0.99)})
    assert numbers(study) == [0, 1]
    study.revise(space={"x": (0.0, 1.0)})
    assert numbers(study) == [4]


def test_curves_and_fidelities_are_refused_by_revisions(study):
    with pytest.raises(InvalidSetting, match="curve"):
        study.revise(curve=bl.Curve(5))
    assert study.revision == 1


def test_summaries_have_the_numbers_of_the_front(study, store):
    [summary] = bl.Study.list(store)
    assert summary.pareto == [0, 1] and summary.best_value is None and summary.best_params is None
    bl.Study("plain", store, bl.RandomSearch(SPACE, seed=0)).suggest().observe(0.5)
    assert [(each.pareto, each.best_value) for each in bl.Study.list(store)] == [([0, 1], None), (None, 0.5)]


def test_commands_show_the_front_and_report_outcomes(study, store, capsys):
    number = study.suggest().number
    assert cli.main(["study", "observe", store, "laboratory", str(number), "yield=70", "cost=38", "purity=1"]) == 0
    capsys.readouterr()
    assert cli.main(["study", "list", store]) == 0
    assert "front of 3 trials" in capsys.readouterr().out
    assert cli.main(["study", "show", store]) == 0
    assert "front of 3 trials: [0, 1, 4]" in capsys.readouterr().out
    for command in (["check", store], ["export", store], ["worklist", store, "laboratory"]):
        assert cli.main(["study", *command]) == 0


def test_worklists_are_filled_in_and_reported(study):
    pytest.importorskip("pandas")
    first, second = study.suggest(n=2)
    table = study.worklist()
    columns = {"outcome_yield", "outcome_cost", "outcome_purity"}
    assert columns <= set(table.columns) and not {"value", "pareto"} & set(table.columns)
    table.loc[table["number"] == first.number, sorted(columns)] = [10.0, 1.0, 70.0]
    reported = study.observe(table)
    assert reported.new and study.trial(first.number).values == {"cost": 10.0, "purity": 1.0, "yield": 70.0}
    assert second.state == "pending" and numbers(study) == [first.number]


def test_tables_of_trials_are_added_to_a_study(study, store):
    pytest.importorskip("pandas")
    other = bl.Study("copy", store, bl.RandomSearch(SPACE, outcomes=FRONT, seed=1))
    other.add(study.trials_dataframe())
    assert numbers(other) == numbers(study) and other.hypervolume() == study.hypervolume()
    copied = bl.Study.load("laboratory", store)
    assert numbers(copied) == numbers(study)
    with pytest.raises(ObjectivesError):
        copied.best_trial(outside=True)
