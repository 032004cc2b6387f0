"""Revisions that declare outcomes, add and remove them."""

import pytest

import belated as bl
from belated.errors import InvalidSetting
from belated.store.memory import MemoryStore

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


@pytest.fixture
def store(tmp_path):
    return f"sqlite:///{tmp_path}/study.db"


@pytest.fixture
def new_study(store):
    return lambda optimizer: bl.Study("laboratory", store=store, optimizer=optimizer)


def states(trial):
    return {name: (each.state, each.value) for name, each in trial.outcomes.items()}


def check_reloaded(study, store):
    copy = bl.Study.load("laboratory", store)
    assert [states(trial) for trial in copy.trials] == [states(trial) for trial in study.trials]
    assert [trial.state for trial in copy.trials] == [trial.state for trial in study.trials]
    proposals = [each._log.core.propose(1, None, 0.0) for each in (study, copy)]
    assert proposals[0][0].text == proposals[1][0].text


def test_a_value_without_a_name_becomes_the_objective(new_study, store):
    study = new_study(bl.BayesOpt(SPACE, direction="minimize", seed=0))
    trials = study.suggest(n=8)
    for trial in trials[:6]:
        trial.observe(trial.params["x"])
    trials[6].fail()
    study.revise(outcomes={"error": "minimize", "memory": bl.AtMost(1.0)})
    assert states(trials[0]) == {"error": ("observed", trials[0].params["x"]), "memory": ("abandoned", None)}
    assert states(trials[6]) == {"error": ("failed", None), "memory": ("abandoned", None)}
    assert trials[7].missing == ["error", "memory"] and trials[0].state == "observed"
    # The first trials were not measured, so none is known to lie within the bounds.
    assert study.best_trial_ is None
    trials[0].observe({"memory": 0.5})
    trials[7].observe({"memory": 2.0, "error": 0.0})
    assert study.best_trial_ == trials[0]
    check_reloaded(study, store)


def test_outcomes_are_added_and_removed(new_study, store):
    study = new_study(bl.BayesOpt(SPACE, outcomes={"error": "minimize", "memory": bl.AtMost(1.0)}, seed=0))
    complete, half, pending = study.suggest(n=3)
    complete.observe({"error": 0.5, "memory": 0.5})
    half.observe({"error": 0.25})
    study.revise(outcomes={"error": "minimize", "memory": bl.AtMost(2.0), "purity": bl.AtLeast(0.9)})
    assert complete.state == "observed" and states(complete)["purity"] == ("abandoned", None)
    assert half.missing == ["memory", "purity"] and pending.missing == ["error", "memory", "purity"]
    half.observe({"memory": 1.5, "purity": 0.95})
    complete.observe({"purity": 0.99})
    assert study.best_trial_ == half
    check_reloaded(study, store)
    # Nothing of the trial is missing without the removed outcome.
    pending.observe({"error": 0.0, "purity": 1.0})
    with pytest.warns(bl.BelatedWarning, match="'memory' is removed"):
        study.revise(outcomes={"error": "minimize", "purity": bl.AtLeast(0.9)})
    assert pending.state == "observed" and study.best_trial_ == pending
    assert states(half) == {"error": ("observed", 0.25), "purity": ("observed", 0.95)}
    check_reloaded(study, store)


def test_an_added_outcome_is_modelled(new_study):
    study = new_study(bl.BayesOpt(SPACE, outcomes={"error": "minimize"}, seed=0))
    for trial in study.suggest(n=10):
        trial.observe({"error": (trial.params["x"] - 0.7) ** 2 + trial.params["y"]})
    study.revise(outcomes={"error": "minimize", "memory": bl.AtMost(0.5)})
    for _ in range(12):
        trial = study.suggest()
        trial.observe({"error": (trial.params["x"] - 0.7) ** 2 + trial.params["y"], "memory": trial.params["x"]})
    assert study.best_params_["x"] <= 0.5 and study.best_value_ < 0.06
    assert study.predict({"x": 0.9, "y": 0.5}, outcome="memory")[0] == pytest.approx(0.9, abs=0.05)


def test_outcomes_cannot_all_be_removed(new_study):
    study = new_study(bl.RandomSearch(SPACE, outcomes={"error": "minimize"}, seed=0))
    study.suggest().observe({"error": 1.0})
    with pytest.raises(InvalidSetting):
        study.revise(outcomes=None)
    assert study.best_value_ == 1.0


def test_a_copy_has_the_outcomes_of_trials(new_study, store):
    study = new_study(bl.BayesOpt(SPACE, outcomes={"error": "minimize", "memory": bl.AtMost(1.0)}, seed=0))
    trials = study.suggest(n=7)
    trials[0].observe({"error": 0.5, "memory": 0.25}, std={"memory": 0.1}, cost=2.0, duration=3.0)
    trials[1].observe({"error": 0.25})
    trials[1].fail(outcome="memory", error="no signal", duration=4.0)
    trials[2].observe({"memory": 2.0})
    trials[2].withdraw(outcome="memory", reason="dirty cell")
    trials[2].fail()
    trials[3].observe({"error": 1.0, "memory": 1.0})
    trials[3].withdraw(reason="another sample")
    trials[4].observe({"memory": 0.75})
    trials[5].abandon()
    with pytest.warns(bl.BelatedWarning, match="5 of the 7 trials"):
        copy = study.copy("copy")
    assert [states(trial) for trial in copy.trials[:4]] == [states(trial) for trial in trials[:4]]
    assert [trial.state for trial in copy.trials[:4]] == [trial.state for trial in trials[:4]]
    assert copy.best_trial_.number == 0 and copy.best_value_ == 0.5
    first, second, third, fourth = copy.trials[:4]
    assert (first.outcomes["memory"].std, first.cost, first.duration) == (0.1, 2.0, 3.0)
    assert (second.duration, str(second.error)) == (4.0, str(trials[1].error))
    assert third.outcomes["memory"].withdrawal.reason == "dirty cell"
    assert {each.withdrawal.reason for each in fourth.outcomes.values()} == {"another sample"}
    for trial, original in zip(copy.trials[:4], trials, strict=False):
        for name, outcome in trial.outcomes.items():
            assert outcome.finished_at == original.outcomes[name].finished_at
    # Trials that miss an outcome are pending and are not copied; no outcome of theirs is ended.
    assert copy.trials[4].state == "abandoned" and copy.n_trials == 5


def test_a_copy_declares_removes_and_reorders_outcomes(new_study, store):
    study = new_study(bl.BayesOpt(SPACE, direction="minimize", seed=0))
    first, second = study.suggest(n=2)
    first.observe(0.5, std=0.1)
    second.fail()
    several = study.copy("several", outcomes={"memory": bl.AtMost(1.0), "error": "minimize"})
    assert states(several.trials[0]) == {"memory": ("abandoned", None), "error": ("observed", 0.5)}
    assert states(several.trials[1]) == {"memory": ("abandoned", None), "error": ("failed", None)}
    several.observe(0, {"memory": 0.25})
    fewer = several.copy("fewer", outcomes={"error": "minimize"})
    assert [trial.values for trial in fewer.trials] == [{"error": 0.5}, {}]
    swapped = several.copy("swapped", outcomes={"error": "minimize", "memory": bl.AtMost(1.0)})
    assert swapped.trials[0].values == {"error": 0.5, "memory": 0.25}


def test_a_trial_that_lost_its_objective_keeps_the_value_as_withdrawn(new_study, store):
    study = new_study(bl.RandomSearch(SPACE, outcomes={"f": "maximize", "p": bl.AtMost(0.5)}, seed=0))
    trial = study.suggest()
    trial.observe({"f": 1.5, "p": 0.25})
    study.withdraw(trial, outcome="p", reason="leak")
    assert trial.state == "observed"
    study.revise(outcomes={"p": bl.AtMost(0.5)})
    assert (trial.state, trial.withdrawal.state, trial.withdrawal.value) == ("withdrawn", "observed", 1.5)
    check_reloaded(study, store)


def test_a_repeated_value_changes_nothing_after_its_plausible_range_was_narrowed():
    study = bl.Study("s", MemoryStore(), bl.RandomSearch({"x": (0.0, 1.0)}, seed=0, outcomes={"y": "maximize"}))
    for trial in study.suggest(3):
        trial.observe({"y": 5.0})
    study.withdraw(2)
    study.revise(outcomes={"y": bl.Maximize(plausible=(0.0, 1.0))})
    n_events = study._log.n_events()
    for number in (0, 2):  # the stored value, and the withdrawn value
        study.observe(number, {"y": 5.0})
        assert study._log.n_events() == n_events
    study.observe(0, {"y": 5.0}, cost=2.0, amend=True)
    assert study.trial(0).cost == 2.0 and study.trial(0).value == 5.0
    for refused in (
        lambda: study.observe(1, {"y": 6.0}, amend=True),
        lambda: study.observe(1, {"y": 5.0}, replicate=True),
        lambda: study.observe(2, {"y": 5.0}, amend=True),
        lambda: study.add({"x": 0.5}, {"y": 5.0}),
    ):
        with pytest.raises(bl.errors.InvalidValue, match="plausible range, from 0 to 1"):
            refused()
    assert study.n_trials == 3 and study.trial(1).value == 5.0
