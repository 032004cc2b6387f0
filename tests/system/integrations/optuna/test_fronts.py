"""`BelatedSampler` reads the directions of an Optuna study as the objectives of a front."""

import math

import pytest

import belated as bl

optuna = pytest.importorskip("optuna")

from optuna.trial import TrialState  # noqa: E402

from belated.integrations.optuna import BelatedPruner, BelatedSampler, withdraw  # noqa: E402
from tests.system.integrations.optuna.studies import DISTRIBUTIONS, SPACE, f, sampler_of  # noqa: E402

NAMES = ["values_0", "values_1", "values_2"]


def values_of(params, n=2):
    return [f(params), params["rate"] - params["share"], (params["rate"] - 1.0) ** 2][:n]


def front_of(storage=None, directions=("minimize", "maximize"), **arguments):
    """Open the study again, with a new sampler."""
    sampler = sampler_of(**arguments)
    return optuna.create_study(
        storage=storage, study_name="s", directions=directions, sampler=sampler, load_if_exists=True
    )


def outcomes(study, **arguments):
    """Return the states and values of the outcomes of each trial of a study, in the log of a new sampler."""
    study.sampler = sampler_of(**arguments)
    study.ask(DISTRIBUTIONS)
    core = study.sampler._log._core
    return [[each[:2] for each in core.trial(number).outcomes] for number in range(len(core))]


@pytest.mark.parametrize("directions", [("minimize", "maximize"), ("maximize", "minimize", "minimize")])
@pytest.mark.parametrize("constrained", [False, True])
def test_the_points_are_those_of_an_optimizer_with_several_objectives(directions, constrained, url):
    goals = dict(zip(NAMES, directions, strict=False))
    if constrained:
        goals["constraints[0]"] = bl.AtMost(0.0)
    own = bl.BayesOpt(SPACE, outcomes=goals, seed=3)
    arguments = {"constraints_func": lambda trial: [trial.params["rate"] - 0.5]} if constrained else {}
    for k in range(16):
        if k % 5 == 0:  # the study is resumed from its storage
            study = front_of(optuna.storages.RDBStorage(url), directions, **arguments)
        trial, mine = study.ask(DISTRIBUTIONS), own.suggest()
        assert trial.params == mine.params
        if k % 7 == 3:
            study.tell(trial, state=TrialState.FAIL)
            own.fail(mine)
            continue
        values = values_of(trial.params, len(directions))
        study.tell(trial, values)
        if constrained:
            values.append(trial.params["rate"] - 0.5)
        own.observe(mine, dict(zip(goals, values, strict=True)))
    assert [trial.number for trial in study.best_trials] == [trial.number for trial in own.pareto_]


def test_states_of_trials():
    study = front_of(constraints_func=lambda trial: [trial.number - 0.5])
    for values in ([1.0, 2.0], [math.inf, 3.0], [4.0, -math.inf]):
        study.tell(study.ask(DISTRIBUTIONS), values)
    for state in (TrialState.FAIL, TrialState.PRUNED):
        study.tell(study.ask(DISTRIBUTIONS), state=state)
    for reports in ({}, {1: 0.5}):
        params = study.ask(DISTRIBUTIONS).params
        arguments = {"params": params, "distributions": DISTRIBUTIONS, "intermediate_values": reports}
        study.add_trial(optuna.trial.create_trial(state=TrialState.PRUNED, **arguments))
    withdraw(study, 0)
    found = outcomes(study)
    assert found[:5] == [
        [("withdrawn", None)] * 3,
        [("failed", None), ("observed", 3.0), ("observed", 0.5)],
        [("observed", 4.0), ("failed", None), ("observed", 1.5)],
        [("failed", None)] * 3,
        [("failed", None), ("failed", None), ("observed", 3.5)],
    ]
    # Trials that were added in the state PRUNED have failed, also if they have a report.
    assert [found[number] for number in (6, 8)] == [[("failed", None)] * 3] * 2
    assert found[5] == [("pending", None)] * 3
    # The import gives the outcomes the same states, except those of pruned trials.
    imported = bl.Study.from_optuna(study._storage, "s")
    states = [[(each.state, each.value) for each in trial.outcomes.values()] for trial in imported.trials]
    assert states[:4] == found[:4]


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_names_of_metrics_do_not_change_the_points():
    plain, named = front_of(), front_of()
    for k in range(12):
        if k == 6:
            named.set_metric_names(["cost", "yield"])
        trials = [study.ask(DISTRIBUTIONS) for study in (plain, named)]
        assert trials[0].params == trials[1].params
        for study, trial in zip((plain, named), trials, strict=True):
            study.tell(trial, values_of(trial.params))
    log = named.sampler._log
    assert log.optimizer.outcomes == {"cost": bl.Minimize(), "yield": bl.Maximize()}
    assert log._core.trial(10).suggested


def test_optimizers_get_the_goals_and_may_declare_references():
    called = []

    def make(space, **arguments):
        called.append(arguments)
        return bl.RandomSearch(space, seed=3, outcomes=arguments["outcomes"] | {"values_0": bl.Minimize(at_most=9.0)})

    study = front_of(optimizer=make)
    study.tell(study.ask(DISTRIBUTIONS), [1.0, 2.0])
    assert called == [{"seed": 3, "outcomes": {"values_0": bl.Minimize(), "values_1": bl.Maximize()}}]
    wrong = front_of(
        optimizer=lambda space, **_: bl.RandomSearch(space, seed=3, outcomes=dict.fromkeys(NAMES[:2], "minimize"))
    )
    with pytest.raises(bl.errors.InvalidSetting, match="optimizer has other outcomes"):
        wrong.ask(DISTRIBUTIONS)


def test_two_threads():
    study = optuna.create_study(directions=["minimize"] * 3, sampler=BelatedSampler(seed=0))

    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        return x**2, (x - 0.5) ** 2, (x - 1.0) ** 2

    study.optimize(objective, n_trials=14, n_jobs=2)
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE] * 14


def test_pruners_refuse_several_objectives():
    study = front_of()
    trial = study.ask(DISTRIBUTIONS)
    with pytest.raises(bl.errors.InvalidSetting, match="has 2 objectives, and learning curves need one"):
        BelatedPruner("asha", curve=bl.Curve(3)).prune(study, study.trials[trial.number])
