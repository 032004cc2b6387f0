"""Runs with several objectives."""

import pytest

import belated as bl
from belated.errors import InvalidSetting, RunError

SPACE = {"x": (0.0, 1.0)}
OUTCOMES = {"yield": "maximize", "cost": "minimize"}


def trade_off(params):
    return {"yield": params["x"], "cost": params["x"] ** 2}


@pytest.mark.parametrize("optimize", [bl.maximize, bl.minimize])
@pytest.mark.parametrize("outcomes", [OUTCOMES, {"cost": "minimize", "error": "minimize"}])
def test_maximize_and_minimize_accept_a_front(optimize, outcomes):
    def f(params):
        return dict(zip(outcomes, (params["x"], 1 - params["x"]), strict=True))

    result = optimize(f, SPACE, n_trials=4, outcomes=outcomes, seed=0)
    assert result.stop_reason == "n_trials" and result.pareto_
    again = optimize(f, optimizer=result.optimizer, n_trials=2)
    assert len(again.optimizer.trials) == 6


def test_a_number_is_refused_and_the_objectives_are_named():
    with pytest.raises(RunError, match="yield.*cost"), pytest.warns(bl.BelatedWarning):
        bl.maximize(lambda p: p["x"], SPACE, n_trials=9, outcomes=OUTCOMES, seed=0)


def test_two_numbers_are_refused_with_advice_on_fronts():
    with pytest.raises(RunError, match="several objectives, declare each"), pytest.warns(bl.BelatedWarning):
        bl.maximize(lambda p: (p["x"], -1.0), SPACE, n_trials=9, seed=0)


def test_results_that_do_not_enter_the_front_end_a_run():
    values = iter([1.0, 2.0, 3.0, 3.0, 1.0, 2.0, 9.0])

    def f(params):
        value = next(values)
        return {"yield": value, "cost": 1.0}

    stop = bl.NoImprovement(3)
    result = bl.maximize(f, SPACE, n_trials=50, outcomes=OUTCOMES, callbacks=[stop], seed=0)
    assert result.stop_reason == "stopped" and len(result.trials) == 6
    assert [trial.number for trial in result.pareto_] == [2, 3]


def test_a_value_cannot_be_reached_by_a_front():
    calls = []
    with pytest.raises(InvalidSetting, match="hypervolume"):
        bl.maximize(calls.append, SPACE, n_trials=5, outcomes=OUTCOMES, callbacks=[bl.ValueReached(0.5)])
    assert not calls

    def large_enough(optimizer, trial):
        if optimizer.hypervolume({"yield": 0.0, "cost": 1.0}) > 0.2:
            raise bl.StopRun

    result = bl.maximize(trade_off, SPACE, n_trials=60, outcomes=OUTCOMES, callbacks=[large_enough], seed=0)
    assert result.stop_reason == "stopped"


def test_progress_shows_the_front(monkeypatch):
    tqdm = pytest.importorskip("tqdm.auto")
    shown = []
    monkeypatch.setattr(tqdm.tqdm, "set_postfix", lambda self, facts, refresh: shown.append(dict(facts)))
    result = bl.maximize(trade_off, SPACE, n_trials=3, outcomes=OUTCOMES, seed=0, progress=True)
    assert shown[-1]["front"] == len(result.pareto_) and shown[-1]["hypervolume"] == result.hypervolume()
    assert not any("best" in facts for facts in shown)
