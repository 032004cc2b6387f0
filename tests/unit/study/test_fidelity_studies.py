"""Studies with a fidelity: the stored data, and errors."""

import multiprocessing

import pytest

import belated as bl
from belated.study.definition import definition_of, optimizer_from

SPACE = {"x": (0.0, 1.0)}
SAMPLES = bl.Fidelity(100, 7000, log=True, cost=bl.PowerCost(0.02, 1.5, full=3), bias=0.5)
SECONDS = 120


def search(fidelity=SAMPLES):
    return bl.RandomSearch(SPACE, fidelity=fidelity, seed=0)


def double(fidelity):
    return 2.0 * fidelity


def test_refused_calls_leave_the_study_unchanged(store):
    study = bl.Study("s", store, search())
    trial = study.suggest(fidelity=500)
    before = study._log.events(0)
    for call in (
        lambda: study.suggest(fidelity=99),
        lambda: study.add([{"x": 0.1}] * 2, [1, 2], fidelity=[500, 7001]),
        lambda: study.enqueue({"x": 0.1}, fidelity=float("nan")),
        lambda: study.observe(trial, 1.0, fidelity=501),
        lambda: study.observe(trial, 1.0, fidelity=501, key="k"),
    ):
        with pytest.raises(bl.errors.InvalidFidelity):
            call()
    with pytest.raises(bl.errors.InvalidValue):
        study.observe(trial, 1.0, cost=-1.0)
    assert study._log.events(0) == before
    with pytest.raises(bl.errors.InvalidFidelity, match="was not declared: pass .* to RandomSearch"):
        bl.Study("plain", store, search(None)).suggest(fidelity=500)


def test_a_key_is_for_one_fidelity(store):
    study = bl.Study("s", store, search())
    study.enqueue({"x": 0.5}, fidelity=300)
    trials = study.suggest(n=2, fidelity=500, key="k")
    assert [trial.fidelity for trial in trials] == [300, 500]
    for each in (study, bl.Study.load("s", store)):
        assert each.suggest(n=2, fidelity=500, key="k") == trials
        for other in (501, None):
            with pytest.raises(bl.errors.InvalidSetting, match="^key='k' started 2 trials before"):
                each.suggest(n=2, fidelity=other, key="k")
    assert study.n_trials == 2


# Definitions.


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (None, "fidelity is None there and {'bias': 0.5, "),
        (bl.Fidelity(100, 7000, log=True, cost=SAMPLES.cost), "fidelity.bias is None there and 0.5 here"),
        (
            bl.Fidelity(200, 7000, log=True, cost=bl.PowerCost(0.02, 1.0, full=3), bias=0.5),
            "fidelity.low is 200 there and 100 here; fidelity.cost.exponent is 1.0 there and 1.5 here",
        ),
    ],
)
def test_differences_are_named(store, other, difference):
    bl.Study("s", store, search(other))
    with pytest.raises(bl.errors.InvalidSetting) as raised:
        bl.Study("s", store, search())
    assert "study 's'" in str(raised.value) and difference in str(raised.value)
    assert bl.Study("s", store, search(other)).name == "s"


def test_a_function_for_the_cost_is_refused(store):
    with pytest.raises(
        bl.errors.InvalidSetting, match=r"^Fidelity\(1, 3, cost=.*a function for its cost.*bl.PowerCost"
    ):
        bl.Study("s", store, search(bl.Fidelity(1, 3, cost=double)))
    with pytest.raises(bl.errors.StoreError):
        bl.Study.load("s", store)


def test_a_definition_that_cannot_be_read_is_refused(store):
    study = bl.Study("s", store, search())
    definition = definition_of(study._optimizer)
    for wrong in ({"low": 7000, "high": 100}, {"zeta": 1}, {"cost": {"base": 2}}, {"cost": {"kind": "Free"}}):
        fidelity = definition["problem"]["fidelity"] | wrong
        with pytest.raises(bl.errors.StoreError, match="^the study's definition does not define an optimizer: "):
            optimizer_from(definition | {"problem": definition["problem"] | {"fidelity": fidelity}}, None)


# Other processes.


def go_on(store, channel):
    study = bl.Study.load("s", store)
    study.observe(0, 0.5, fidelity=500)
    channel.send([(trial.params, trial.fidelity) for trial in study.suggest(n=2, fidelity=900)])


def test_another_process_sees_the_same_fidelities(store):
    study = bl.Study("s", store, search())
    study.suggest(fidelity=500)
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    child = context.Process(target=go_on, args=(store, there))
    child.start()
    try:
        assert here.poll(SECONDS), "the child never answered"
        suggested = here.recv()
    finally:
        child.join(SECONDS)
        child.kill()
    assert study.best_value_ == 0.5
    assert suggested == [(trial.params, 900) for trial in study.trials[1:]]
