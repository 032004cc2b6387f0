"""Withdrawn trials of Optuna studies: a user attribute of the study records them."""

import itertools

import pytest

import belated as bl

optuna = pytest.importorskip("optuna")

from belated.integrations.optuna import BelatedPruner, withdraw  # noqa: E402
from belated.study.from_optuna import withdrawn_trials  # noqa: E402
from tests.system.integrations.optuna.studies import DISTRIBUTIONS, SPACE, f, sampler_of, study_of  # noqa: E402


def filled(own, study, n):
    for _ in range(n):
        trial, mine = study.ask(DISTRIBUTIONS), own.suggest()
        assert trial.params == mine.params
        study.tell(trial, f(trial.params))
        own.observe(mine, f(mine.params))


def test_sampler_withdraws_as_an_optimizer_does():
    own, study = bl.BayesOpt(SPACE, direction="minimize", seed=3), study_of()
    filled(own, study, 8)
    withdraw(study, [2, study.trials[5], 2], reason="contaminated")
    own.withdraw([2, 5], reason="contaminated")
    filled(own, study, 4)
    # A running trial does not have its result when another trial is withdrawn.
    running, mine = study.ask(DISTRIBUTIONS), own.suggest()
    withdraw(study, 9)
    own.withdraw(9)
    study.tell(running, 0.0)
    own.observe(mine, 0.0)
    # A sampler of another process derives the same log.
    again = study.sampler
    study.sampler = sampler_of()
    filled(own, study, 1)
    study.sampler = again
    filled(own, study, 1)


def test_import_has_withdrawn_trials():
    study = study_of()
    for value in (1.0, 2.0, float("inf")):
        study.tell(study.ask(DISTRIBUTIONS), value)
    withdraw(study, [0, 2], reason="power cut")
    imported = bl.Study.from_optuna(study._storage, study.study_name)
    assert [trial.state for trial in imported.trials] == ["withdrawn", "observed", "withdrawn"]
    assert imported.trials[0].withdrawal.reason == "power cut" and imported.best_value_ == 2.0


@pytest.mark.parametrize("rule", ["asha", "median"])
def test_pruner_ignores_withdrawn_curves(rule):
    """The decisions equal those in a study that never had the withdrawn trials."""
    rule = bl.MedianStopping(min_trials=2) if rule == "median" else rule

    def decisions(with_outage):
        study = optuna.create_study(pruner=BelatedPruner(rule, curve=bl.Curve(9)))
        losses = [1.0, 2.0, 3.0]
        for loss in losses + [-50.0, -60.0] * with_outage:
            trial = study.ask()
            for step in range(1, 10):
                trial.report(loss, step)
            study.tell(trial, loss)
        if with_outage:
            assert study.ask().number == 5
            withdraw(study, [3, 4], reason="outage")
        found = []
        for loss in (0.5, 2.5, 9.0):
            trial = study.ask()
            for step in range(1, 10):
                trial.report(loss, step)
                found.append(trial.should_prune())
        return found

    assert decisions(True) == decisions(False)
    assert len(set(decisions(True))) == 2


def test_refused_withdrawals_change_nothing():
    study = study_of()
    study.tell(study.ask(DISTRIBUTIONS), 1.0)
    study.tell(study.ask(DISTRIBUTIONS), 2.0)
    running = study.ask(DISTRIBUTIONS)
    withdraw(study, 0)
    before = study.user_attrs
    for wrong, error in [
        (0, bl.errors.InvalidValue),
        (running.number, bl.errors.InvalidValue),
        (7, bl.errors.UnknownTrial),
        ("1", bl.errors.UnknownTrial),
    ]:
        for trials in itertools.chain([wrong], [[1, wrong]]):
            with pytest.raises(error):
                withdraw(study, trials)
    with pytest.raises(bl.errors.InvalidValue):
        withdraw(study, 1, reason=3)
    assert study.user_attrs == before


@pytest.mark.parametrize("lists", [([3, 5], [3, 7]), ([4], [4, 0, 1]), ([2, 6], [2, 6])])
def test_simultaneous_withdrawals_are_all_kept(lists, monkeypatch):
    """Two processes read the withdrawals before either of them writes."""
    study = study_of()
    for value in range(9):
        study.tell(study.ask(DISTRIBUTIONS), float(value))
    monkeypatch.setattr("belated.integrations.optuna._withdrawn", lambda study: {})
    for numbers in lists:
        withdraw(study, numbers, reason=f"list {numbers}")
    found = withdrawn_trials(study.user_attrs)
    assert sorted(found) == sorted({number for numbers in lists for number in numbers})
    # Every process uses the same record of a trial: the earlier one.
    shuffled = dict(reversed(study.user_attrs.items()))
    assert withdrawn_trials(shuffled) == found and found[lists[0][0]].reason == f"list {lists[0]}"
