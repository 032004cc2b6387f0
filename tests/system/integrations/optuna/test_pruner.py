"""`BelatedPruner`: the decisions of belated's rules in studies of Optuna."""

import pickle

import numpy as np
import pytest

import belated as bl

optuna = pytest.importorskip("optuna")

from optuna.trial import TrialState  # noqa: E402

from belated.integrations.optuna import BelatedPruner, BelatedSampler  # noqa: E402
from tests.system.integrations.optuna.studies import DISTRIBUTIONS, SPACE, sampler_of  # noqa: E402

RULES = {
    "asha": bl.ASHA(reduction=2),
    "late asha": bl.ASHA(reduction=3, min_step=2),
    "median": bl.MedianStopping(min_trials=2, min_step=2),
}
N_STEPS = 12


def curve_of(rng):
    """Return the values of a curve at all steps, of which one may be NaN."""
    values = rng.normal() + rng.normal(size=N_STEPS) * 0.3
    if rng.random() < 0.2:
        values[rng.integers(N_STEPS - 1)] = np.nan
    return values


def decisions(study, pruners, *, rule, direction, first=0, every=1, n_trials=40):
    """Run trials with random curves, three at a time, in Optuna and in belated; return the last step of each.

    `pruners` has a pruner for each process. The objective calls `should_prune` after every `every` reports.
    """
    own = bl.RandomSearch(SPACE, direction=direction, seed=0, curve=bl.Curve(N_STEPS), stopping=rule)
    rng = np.random.default_rng(0)
    running, ends = [], []
    while len(ends) < n_trials:
        if len(running) < 3:
            running.append((study.ask(DISTRIBUTIONS), own.suggest(), curve_of(rng), [0]))
        i = int(rng.integers(len(running)))
        trial, mine, values, n = running[i]
        ours = False
        for _ in range(every):
            n[0] += 1
            trial.report(values[n[0] - 1], n[0] - 1 + first)
            own.report(mine, values[n[0] - 1], n[0])
            ours |= own.should_stop(mine)
        study.pruner = pruners[trial.number % len(pruners)]
        theirs = [trial.should_prune() for _ in range(2)]
        assert theirs == [ours, ours]
        if ours:
            study.tell(trial, state=TrialState.PRUNED)
        elif n[0] == N_STEPS and trial.number % 5 == 4:
            study.tell(trial, state=TrialState.FAIL)
            own.fail(mine)
        elif n[0] == N_STEPS:
            study.tell(trial, float(values[-1]))
            own.observe(mine, float(values[-1]))
        else:
            continue
        ends.append(n[0])
        running.pop(i)
    return ends


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("rule", RULES)
def test_decisions_equal_the_decisions_of_belated(rule, first, direction):
    study = optuna.create_study(direction=direction, sampler=optuna.samplers.RandomSampler(seed=0))
    pruner = BelatedPruner(RULES[rule], curve=bl.Curve(N_STEPS))
    ends = decisions(study, [pruner], rule=RULES[rule], direction=direction, first=first)
    assert 2 <= ends.count(N_STEPS) <= 30


@pytest.mark.parametrize("every", [2, 3, 4])
def test_no_rung_is_missed_if_the_objective_asks_rarely(every):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    pruner = BelatedPruner("asha", curve=bl.Curve(N_STEPS))
    ends = decisions(study, [pruner], rule="asha", direction="minimize", every=every)
    assert sum(end < N_STEPS for end in ends) > 8


@pytest.mark.parametrize("rule", RULES)
def test_processes_have_one_pruner_each(rule, url):
    study = optuna.create_study(storage=url, sampler=optuna.samplers.RandomSampler(seed=0))
    pruners = [BelatedPruner(RULES[rule], curve=bl.Curve(N_STEPS)) for _ in range(3)]
    decisions(study, pruners, rule=RULES[rule], direction="minimize", n_trials=15)


@pytest.mark.parametrize("sampler", ["belated", "random"])
def test_a_rule_that_uses_the_model_has_the_points_and_the_optimizer_of_the_sampler(sampler, monkeypatch):
    """The median rule does not use points, so its decisions do not depend on them."""
    monkeypatch.setattr(bl.MedianStopping, "_uses_model", True)
    curve = bl.Curve(N_STEPS)
    made = {"belated": sampler_of(curve=curve), "random": optuna.samplers.RandomSampler(seed=0)}[sampler]
    study = optuna.create_study(sampler=made)
    pruner = BelatedPruner(RULES["median"], curve=None if sampler == "belated" else curve)
    decisions(study, [pruner], rule=RULES["median"], direction="minimize", n_trials=30)
    log = pruner._log._log
    for trial in study.trials[:25]:
        place = pruner._log._places[trial.number]
        assert log.space.params_of(log._core.trial(place)) == pytest.approx(trial.params)
    if sampler == "belated":
        assert log.definition == study.sampler._log.definition
        # The log of the pruner has the sampler's fits.
        assert any(log._core.trial(number).note for number in log._core.numbers(None))


def test_a_trial_without_parameters_is_not_judged_by_a_model(monkeypatch):
    monkeypatch.setattr(bl.MedianStopping, "_uses_model", True)
    study = optuna.create_study(pruner=BelatedPruner("median", curve=bl.Curve(3)))
    for _ in range(7):
        trial = study.ask()
        trial.report(float(trial.number), 1)
        assert not trial.should_prune()
        study.tell(trial, 1.0)


def test_trials_with_any_parameters_are_compared():
    study = optuna.create_study(pruner=BelatedPruner("asha", curve=bl.Curve(9)))
    pruned = []
    for k in range(6):
        trial = study.ask()
        trial.suggest_float(f"x{k}", 0.0, 1.0 + k)
        trial.report(float(k), 1)
        pruned.append(trial.should_prune())
        study.tell(trial, float(k))
    assert pruned == [False, True, True, True, True, True]


def test_steps_that_begin_at_0_are_found_late():
    """Until trial 1 reports step 0, step 1 of trial 0 is the first step. Afterwards step 1 is the second step of all
    trials, at which the rule does not decide."""
    study = optuna.create_study(pruner=BelatedPruner(bl.ASHA(reduction=2), curve=bl.Curve(9)))
    first, second, third = (study.ask() for _ in range(3))
    first.report(1.0, 1)
    assert not first.should_prune()
    second.report(2.0, 0)
    assert second.should_prune() is False
    core, places = study.pruner._log._log._core, study.pruner._log._places
    assert [dict(core.trial(places[number]).curve) for number in range(2)] == [{2: 1.0}, {1: 2.0}]
    third.report(3.0, 0)
    assert third.should_prune()


@pytest.mark.parametrize("rule", ["median", "model"])
def test_both_together_find_the_best_point(rule):
    def objective(trial):
        value = sum((trial.suggest_float(f"x{i}", -5.0, 5.0) - i) ** 2 for i in range(3))
        for step in range(10):
            trial.report(value + 1 / (step + 1), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    study = optuna.create_study(sampler=BelatedSampler(seed=0, curve=bl.Curve(10)), pruner=BelatedPruner(rule))
    study.optimize(objective, 40)
    assert any(trial.state == TrialState.PRUNED for trial in study.trials)
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 40
    # The best of 40 random points is above 0.2 in 98 % of runs.
    assert study.best_value < 0.05


def test_threads_share_a_pruner():
    def objective(trial):
        value = trial.suggest_float("x", 0.0, 1.0)
        for step in range(20):
            trial.report(value, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    sampler = optuna.samplers.RandomSampler(seed=0)
    study = optuna.create_study(sampler=sampler, pruner=BelatedPruner("asha", curve=bl.Curve(20)))
    study.optimize(objective, 40, n_jobs=4)
    values = {True: [], False: []}
    for trial in study.trials:
        values[trial.state == TrialState.COMPLETE].append(trial.params["x"])
    assert len(values[True]) + len(values[False]) == 40 and len(values[False]) > 15
    assert np.mean(values[True]) < np.mean(values[False])


def test_a_pruner_can_be_pickled_and_may_serve_several_studies():
    pruner = BelatedPruner("median", curve=bl.Curve(4))
    for direction, expected in (("minimize", True), ("maximize", False)):
        study = optuna.create_study(direction=direction, pruner=pruner)
        for k in range(5):
            trial = study.ask()
            trial.report(float(k), 0)
            assert not trial.should_prune()
            study.tell(trial, 1.0)
        trial = study.ask()
        trial.report(9.0, 0)
        assert pickle.loads(pickle.dumps(pruner)).prune(study, study.trials[5]) is expected
        assert trial.should_prune() is expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"stopping": None}, "stopping=None is not usable: pass a rule"),
        ({"stopping": "hyperband"}, "stopping='hyperband' is not usable"),
        ({"stopping": "asha", "curve": 9}, "curve=9 is not usable: pass bl.Curve"),
    ],
)
def test_arguments_that_are_not_usable_are_refused(arguments, message):
    with pytest.raises(bl.errors.InvalidSetting, match=message):
        BelatedPruner(**arguments)


@pytest.mark.parametrize(
    ("theirs", "curve", "message"),
    [
        (None, None, "curve is missing: pass curve="),
        (bl.Curve(9), bl.Curve(8), "curve=Curve\\(steps=8.* in BelatedPruner, and Curve\\(steps=9.* in BelatedSampler"),
        (None, bl.Curve(3), "trial 0 of Optuna reported step 4, .* has the steps 1 to 3"),
    ],
)
def test_curves_that_are_not_usable_are_refused(theirs, curve, message):
    study = optuna.create_study(sampler=BelatedSampler(curve=theirs), pruner=BelatedPruner("asha", curve=curve))
    trial = study.ask(DISTRIBUTIONS)
    trial.report(1.0, 4)
    for _ in range(2):
        with pytest.raises(bl.errors.InvalidSetting, match=message):
            trial.should_prune()
