"""Tests of learning curves: reports, stopped trials, and the rules that stop trials."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import belated as bl

SPACE = {"x": (0.0, 1.0)}
CURVE = bl.Curve(9)


def search(**arguments):
    return bl.RandomSearch(SPACE, seed=0, **({"curve": CURVE} | arguments))


def test_reports_may_come_late_in_any_order_and_twice():
    optimizer = search()
    trial = optimizer.suggest()
    trial.report(0.5, 3)
    trial.report(0.25, 1)
    trial.report(0.5, 3)
    trial.observe(1.0)
    trial.report(float("nan"), 2)
    assert list(trial.curve) == [1, 2, 3]
    assert trial.curve[3] == 0.5 and math.isnan(trial.curve[2])
    assert (trial.state, trial.value) == ("observed", 1.0)
    n_events = optimizer._log.n_events()
    trial.report(math.nan, 2)
    assert optimizer._log.n_events() == n_events
    with pytest.raises(bl.errors.AlreadyObserved, match="step 3 of trial 0 has the value 0.5"):
        trial.report(0.75, 3)


@pytest.mark.parametrize("step", [0, -1, 10, 1.5, True, "2", None])
def test_steps_outside_the_curve_are_refused(step):
    trial = search().suggest()
    with pytest.raises(bl.errors.InvalidValue, match="step"):
        trial.report(0.5, step)
    assert trial.curve == {}


@pytest.mark.parametrize("value", [math.inf, -math.inf, "0.5", None, 1j, [1.0]])
def test_values_that_are_not_numbers_are_refused(value):
    trial = search().suggest()
    with pytest.raises(bl.errors.InvalidValue, match="value"):
        trial.report(value, 1)
    assert trial.curve == {}


def has_failed(trial):
    return trial.should_stop() and trial.state == "failed" and trial.error.type == "CurveDiverged"


@pytest.mark.parametrize("rule", ["asha", "median"])
def test_two_reports_of_nan_fail_and_one_does_not(rule):
    optimizer = search(stopping=rule)
    one, two = optimizer.suggest(n=2)
    for step, value in enumerate([0.5, math.nan, 0.5, math.nan], start=1):
        one.report(value, step)
        assert not one.should_stop() and one.state == "pending"
    for step, value in enumerate([0.75, math.nan, math.nan], start=1):
        assert not two.should_stop()
        two.report(value, step)
    assert has_failed(two) and list(two.curve) == [1, 2, 3]
    assert two.should_stop()
    two.observe(0.25)  # the value of an evaluation that went on
    assert (two.state, two.value, two.should_stop()) == ("observed", 0.25, False)


def test_without_a_rule_nothing_diverges():
    trial = search(stopping=None).suggest()
    for step in (1, 2, 3):
        trial.report(math.nan, step)
    assert not trial.should_stop() and trial.state == "pending"


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_values_far_beyond_the_range_of_finished_curves_diverge(direction):
    sign = 1.0 if direction == "maximize" else -1.0
    # The median rule with this number of trials never stops a trial.
    optimizer = search(stopping=bl.MedianStopping(min_trials=100), direction=direction)
    for n_finished in range(6):
        bad, good, late = optimizer.suggest(n=3)
        for step in (1, 2):
            bad.report(sign * -101.0, step)
            good.report(sign * -99.0, step)
            late.report(sign * 1e6, step)
        assert has_failed(bad) == (n_finished >= 5)
        assert not good.should_stop() and not late.should_stop()
        trial = optimizer.suggest()
        trial.report(0.0, 1)
        trial.report(sign * 1.0, 9)
        trial.observe(sign * 1.0)


def test_a_diverged_curve_fails_in_all_handles_of_a_study(tmp_path):
    one, other = (bl.Study("s", f"sqlite:///{tmp_path}/a.db", search(stopping="asha")) for _ in range(2))
    trial = one.suggest()
    trial.report(math.nan, 1)
    trial.report(math.nan, 2)
    assert has_failed(other.trials[0]) and has_failed(trial)


def test_values_of_other_outcomes_are_kept_when_the_curve_diverges():
    optimizer = search(stopping="asha", outcomes={"loss": "minimize", "memory": bl.AtMost(1.0), "size": bl.Record()})
    trial = optimizer.suggest()
    trial.observe({"memory": 0.5})
    trial.report(math.nan, 1)
    trial.report(math.nan, 2)
    assert trial.should_stop() and trial.should_stop()
    assert trial.outcomes["loss"].state == "failed" and trial.error.type == "CurveDiverged"
    trial.observe({"size": 3.0})
    assert trial.values == {"memory": 0.5, "size": 3.0} and trial.should_stop()


def test_reports_need_a_declared_curve():
    trial = bl.RandomSearch(SPACE, seed=0).suggest()
    for step in (1, 0, -1, 2**32, 2**64, 10**30, 1.5, None):
        with pytest.raises(bl.errors.InvalidValue, match=r"curve=bl\.Curve"):
            trial.report(0.5, step)
    assert not trial.should_stop()


def test_a_new_attempt_replaces_the_curve_from_its_first_step():
    trial = search().suggest()
    for step in (1, 2, 3):
        trial.report(float(step), step)
    trial.report(20.0, 2, attempt=1)
    trial.report(3.0, 3, attempt=0)  # a late report of the earlier attempt
    assert trial.curve == {1: 1.0, 2: 20.0}
    trial.report(30.0, 3)
    assert trial.curve == {1: 1.0, 2: 20.0, 3: 30.0}


def test_a_stopped_trial_has_a_curve_and_no_value():
    optimizer = search()
    first, second = optimizer.suggest(n=2)
    first.report(5.0, 1)
    first.stop()
    second.observe(1.0)
    assert first.state == "stopped" and first.should_stop() and not second.should_stop()
    assert optimizer.best_trial_ == second
    assert [trial.number for trial in optimizer.pending] == []
    first.report(6.0, 2)
    assert first.curve == {1: 5.0, 2: 6.0}
    with pytest.raises(bl.errors.AlreadyObserved, match="stopped"):
        second.stop()
    # A value is accepted in every state of a trial.
    first.observe(7.0)
    assert (first.state, optimizer.best_value_) == ("observed", 7.0)


def test_halving_keeps_the_best_third_of_a_rung():
    optimizer = search(stopping="asha")
    stopped = []
    for value in [1.0, 0.0, 2.0, 1.5, 1.9, 1.95, 1.96]:
        trial = optimizer.suggest()
        trial.report(value, 1)
        stopped.append(trial.should_stop())
    assert stopped == [False, True, False, True, True, False, False]


def test_rules_follow_the_direction():
    optimizer = search(stopping=bl.ASHA(reduction=2), direction="minimize")
    stopped = []
    for value in [1.0, 0.0, 2.0, 0.0, -1.0]:
        trial = optimizer.suggest()
        trial.report(value, 1)
        stopped.append(trial.should_stop())
    assert stopped == [False, False, True, False, False]


def test_the_median_of_finished_trials_is_the_bound():
    optimizer = search(stopping=bl.MedianStopping(min_trials=3, min_step=2))
    for value in (1.0, 2.0, 3.0):
        trial = optimizer.suggest()
        for step in (1, 2):
            trial.report(value, step)
            assert not trial.should_stop()
        trial.observe(value)
    for values, stops in [((0.0, 1.9), True), ((0.0, 2.0), False), ((2.5, 1.0), False), ((0.0,), False)]:
        trial = optimizer.suggest()
        for step, value in enumerate(values, start=1):
            trial.report(value, step)
        assert trial.should_stop() is stops


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: bl.Curve(0),
        lambda: bl.Curve(5, value="mean"),
        lambda: search(stopping=bl.ASHA(reduction=1.0)),
        lambda: search(stopping=bl.ASHA(min_step=0)),
        lambda: search(stopping=bl.MedianStopping(min_step=0)),
        lambda: bl.RandomSearch(SPACE, stopping="asha"),
        lambda: bl.RandomSearch(SPACE, curve=9),
        lambda: search(stopping="hyperband"),
        lambda: bl.TreeSearch(SPACE, curve=CURVE),
        lambda: bl.BPEDelay(SPACE, curve=CURVE),
    ],
)
def test_invalid_declarations_are_refused(wrong):
    with pytest.raises(bl.errors.InvalidSetting):
        wrong()


@pytest.mark.parametrize("backend", ["sqlite"])
def test_a_decision_is_read_by_other_processes(tmp_path, backend):
    store = f"{backend}:///{tmp_path}/s.db"
    study = bl.Study("s", store, search(stopping="asha"))
    trials = study.suggest(n=4, expires_after=60.0)
    for trial, value in zip(trials, (1.0, 2.0, 3.0, 0.0), strict=True):
        trial.report(value, 1)
    assert trials[3].should_stop()
    again = bl.Study.load("s", store)
    assert again.trials[3].state == "stopped" and again.should_stop(3)
    assert [trial.curve for trial in again.trials] == [{1: 1.0}, {1: 2.0}, {1: 3.0}, {1: 0.0}]
    # The definition contains the curve and the rule.
    assert again._optimizer.curve == CURVE and again._optimizer.stopping == bl.ASHA()
    with pytest.raises(bl.BelatedError, match="curve"):
        bl.Study("s", store, search(curve=bl.Curve(5), stopping="asha"))


def test_a_report_renews_the_lease(tmp_path):
    now = [0.0]
    study = bl.Study("s", f"sqlite:///{tmp_path}/s.db", search(), lambda: now[0])
    trial = study.suggest(expires_after=60.0)
    assert trial.expires_at == 60.0
    now[0] = 50.0
    trial.report(0.5, 1)
    assert trial.expires_at == 110.0
    assert bl.Study.load("s", f"sqlite:///{tmp_path}/s.db").trials[0].expires_at == 110.0


def test_a_table_of_trials_keeps_stopped_trials():
    pytest.importorskip("pandas")
    optimizer = search()
    first, second = optimizer.suggest(n=2)
    first.report(0.5, 2)
    second.report(0.25, 1)
    second.stop()
    table = optimizer.trials_dataframe(curves=True)
    assert [name for name in table if name.startswith("curve_")] == ["curve_1", "curve_2"]
    other = search()
    other.add(table)
    assert [(trial.state, trial.curve) for trial in other.trials] == [("pending", {2: 0.5}), ("stopped", {1: 0.25})]
    assert not any(name.startswith("curve_") for name in optimizer.trials_dataframe())


@settings(deadline=None, max_examples=50)
@given(
    st.permutations([(trial, step) for trial in range(3) for step in (1, 2, 3)]),
    st.sampled_from([bl.BayesOpt, bl.RandomSearch]),
)
def test_the_order_of_reports_does_not_matter(order, kind):
    def run(order):
        optimizer = kind(SPACE, seed=0, curve=CURVE)
        trials = optimizer.suggest(n=3)
        for trial, step in order:
            trials[trial].report(trial / step, step)
        trials[0].stop()
        trials[1].observe(0.5)
        return [trial.curve for trial in trials], optimizer.suggest().params

    assert run(order) == run(sorted(order))
