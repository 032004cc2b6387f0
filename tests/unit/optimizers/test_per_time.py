"""Tests of choices per unit of time or cost."""

import warnings

import numpy as np
import pytest

import belated as bl
from belated.optimizers.request import Request

CANDIDATES = np.random.default_rng(0).random((60, 2))


def value(x):
    return float(np.sin(9 * x[1]) + 0.1 * np.sin(20 * x[0]))


def seconds(x):
    return float(np.exp(4 * x[0]))


def chosen(n, *, told=seconds, unit=1.0, limit=None, **acquisition):
    """Return the indices of n suggestions, each of which is observed with its duration and cost."""
    optimizer = bl.BayesOpt(candidates=CANDIDATES, seed=1, acquisition=bl.LogEI(**acquisition))
    indices = []
    for _ in range(n):
        trial = bl.Trial(optimizer, optimizer._start_trials(Request(1), limit=limit)[0])
        x = CANDIDATES[trial.index]
        amount = None if told is None else unit * told(x)
        optimizer.observe(trial, value(x), duration=amount, cost=amount)
        indices.append(trial.index)
    return indices


def test_by_hand_auto_is_per_trial():
    assert chosen(15) == chosen(15, per="trial")
    assert chosen(15, per="trial", power=3.0) == chosen(15, per="trial")


@pytest.mark.filterwarnings("ignore:per=.* has no effect yet")
@pytest.mark.parametrize("per", ["time", "cost"])
def test_without_amounts_choices_are_per_trial(per):
    assert chosen(15, told=None, per=per) == chosen(15, told=None, per="trial")


@pytest.mark.parametrize("per", ["time", "cost"])
def test_equal_amounts_do_not_change_choices(per):
    assert chosen(15, told=lambda x: 7.0, per=per) == chosen(15, per="trial")


@pytest.mark.parametrize("per", ["time", "cost"])
def test_choices_per_amount_are_cheaper_and_do_not_depend_on_the_unit(per):
    per_trial, per_amount = chosen(20, per="trial"), chosen(20, per=per)
    mean = [np.mean([seconds(CANDIDATES[i]) for i in indices[4:12]]) for indices in (per_trial, per_amount)]
    assert mean[1] < mean[0]
    assert chosen(20, per=per, unit=1 / 86400) == per_amount


def test_auto_follows_the_limit_of_the_run():
    for of in ("time", "cost"):
        assert chosen(15, limit=(of, 0.5)) == chosen(15, per=of)


def test_a_cooled_power_falls_to_zero():
    assert chosen(15, limit=("time", 1.0), power="cooled") == chosen(15, per="trial")
    assert chosen(15, limit=("time", 0.0), power="cooled") == chosen(15, per="time", power=1.0)


def test_a_cooled_power_needs_a_limit():
    with pytest.raises(bl.errors.InvalidSetting, match="timeout= or budget="):
        chosen(15, per="time", power="cooled")
    with pytest.raises(bl.errors.InvalidSetting):
        chosen(15, per="cost", power="cooled", limit=("time", 0.5))


@pytest.mark.parametrize("wrong", [{"per": "second"}, {"power": -0.1}, {"power": float("nan")}, {"power": "hot"}])
def test_invalid_settings_are_refused(wrong):
    with pytest.raises(bl.errors.InvalidSetting):
        bl.BayesOpt({"x": (0.0, 1.0)}, acquisition=bl.LogEI(**wrong))


def test_other_acquisitions_have_no_such_setting():
    with pytest.raises(bl.BelatedError, match="per"):
        bl.UCB(per="time")


def chosen_in_study(store, clock, *, reopens):
    """Return the indices of 15 suggestions of a study, of which every fifth fails. `clock` returns the time."""
    indices = []
    study = bl.Study("s", store, bl.BayesOpt(candidates=CANDIDATES, seed=1, acquisition=bl.LogEI(per="time")), clock)
    for i in range(15):
        trial = study.suggest()
        x = CANDIDATES[trial.index]
        indices.append(trial.index)
        trial.fail(duration=seconds(x)) if i % 5 == 4 else study.observe(trial, value(x), duration=seconds(x))
        if reopens:
            study = bl.Study.load("s", store, time=clock)
    return indices


def test_a_study_that_is_opened_again_with_another_clock_chooses_the_same(tmp_path):
    times = iter(np.random.default_rng(0).uniform(-1e6, 1e9, 10_000))
    again = chosen_in_study(f"sqlite:///{tmp_path}/s.db", lambda: float(next(times)), reopens=True)
    assert again == chosen_in_study(f"sqlite:///{tmp_path}/t.db", lambda: 5.0, reopens=False)


@pytest.mark.parametrize("amounts", [[0.0], [1e-300, 1e300], [0.0, 1.0, 1e9]], ids=str)
@pytest.mark.parametrize("per", ["time", "cost"])
def test_unusual_amounts_give_finite_choices(per, amounts):
    optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, seed=0, acquisition=bl.LogEI(per=per))
    for i in range(12):
        trial = optimizer.suggest()
        assert 0.0 <= trial.params["x"] <= 1.0
        amount = amounts[i % len(amounts)]
        optimizer.observe(trial, trial.params["x"], duration=amount, cost=amount)


def test_ages_of_a_clock_that_runs_backwards_are_not_used():
    now = iter(range(1000, 0, -1))
    optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, seed=0, time=lambda: next(now), acquisition=bl.LogEI(per="time"))
    in_flight = optimizer.suggest(n=3)
    for _ in range(8):
        trial = optimizer.suggest()
        optimizer.observe(trial, trial.params["x"], duration=1.0 + trial.params["x"])
    assert {trial.state for trial in in_flight} == {"pending"}


def test_a_failure_keeps_its_duration():
    optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
    trial = optimizer.suggest()
    with pytest.raises(bl.errors.InvalidValue, match="duration"):
        trial.fail(duration=-1.0)
    assert trial.state == "pending"
    trial.fail()
    trial.fail(duration=2.5)  # the duration may be reported later than the failure
    trial.fail(duration=3.5)
    assert (trial.state, trial.duration) == ("failed", 2.5)


def test_added_trials_have_durations():
    optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, seed=0)
    trials = optimizer.add([{"x": 0.1}, {"x": 0.2}], [1.0, 2.0], duration=[3.0, None])
    assert [trial.duration for trial in trials] == [3.0, None]
    with pytest.raises(bl.errors.InvalidValue, match="duration"):
        optimizer.add({"x": 0.3}, 1.0, duration=float("inf"))


@pytest.mark.parametrize(
    ("arguments", "per"),
    [
        ({"n_trials": 2}, "trial"),
        ({"timeout": 0.2}, "time"),
        ({"budget": 2}, "cost"),
        ({"budget": 2, "timeout": 1000}, "cost"),
        ({"budget": 2, "n_trials": 2}, "trial"),
        ({"n_trials": 2, "acquisition": bl.LogEI(per="time")}, "time"),
        ({"n_trials": 2, "acquisition": "ucb"}, None),
    ],
    ids=str,
)
def test_a_result_has_the_resource_of_the_improvement(arguments, per):
    result = bl.maximize(lambda params: params["x"], {"x": (0.0, 1.0)}, seed=0, **arguments)
    assert result.per == per
    assert bl.maximize(lambda params: 1.0, optimizer=bl.RandomSearch({"x": (0.0, 1.0)}), n_trials=1).per is None


def test_a_run_tells_how_much_time_or_budget_has_been_used():
    used = []

    class Listening(bl.BayesOpt):
        def _start_read(self, *arguments, limit=None):
            used.append(limit)
            return super()._start_read(*arguments, limit=limit)

    def run(**limits):
        used.clear()
        optimizer = Listening({"x": (0.0, 1.0)})
        bl.maximize(lambda params: {"value": params["x"], "cost": 1.0}, optimizer=optimizer, **limits)
        return list(used)

    assert run(budget=4.0) == [("cost", share) for share in (0.0, 0.25, 0.5, 0.75)]
    assert {of for of, _ in run(timeout=0.2)} == {"time"}
    assert run(n_trials=3, timeout=100.0) == [None] * 3


def warnings_of(opt, n, **told):
    """Return the warnings of n suggestions that are observed."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for i in range(n):
            trial = opt.suggest()
            if i % 5 == 4:
                trial.fail()
            else:
                trial.observe(float(i % 3), **told)
    return [str(each.message) for each in found]


@pytest.mark.parametrize(("per", "how"), [("time", "observe(duration=) and fail"), ("cost", "observe(cost=)")])
def test_missing_amounts_are_warned_of_once(per, how, tmp_path):
    def new():
        return bl.BayesOpt({"x": (0.0, 1.0)}, acquisition=bl.LogEI(per=per), seed=0)

    opt, what = new(), {"time": "duration", "cost": "cost"}[per]
    assert warnings_of(opt, 10) == []
    [warning] = warnings_of(opt, 10)
    assert warning.startswith(f'per="{per}" has no effect yet, because none of 10 ended trials has a {what}: ')
    assert how in warning
    study = bl.Study("s", f"sqlite:///{tmp_path}/s.db", new())
    assert warnings_of(study, 14) == [warning]
    assert warnings_of(new(), 14, **{what: 0.0}) == []


def test_only_explicit_choices_per_amount_warn_of_missing_amounts():
    for acquisition in (bl.LogEI(), bl.LogEI(per="trial"), bl.UCB()):
        assert warnings_of(bl.BayesOpt({"x": (0.0, 1.0)}, acquisition=acquisition, seed=0), 14) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # A run measures durations; trials without a reported cost count 1 toward the budget.
        bl.maximize(lambda p: p["x"], {"x": (0.0, 1.0)}, acquisition=bl.LogEI(per="time"), n_trials=14, seed=0)
        bl.maximize(lambda p: p["x"], {"x": (0.0, 1.0)}, budget=14.0, seed=0)
