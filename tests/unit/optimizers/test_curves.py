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


NAN = math.nan
NEVER = bl.MedianStopping(min_trials=100)  # stops no trial in these tests


def has_failed(trial):
    return trial.should_stop() and trial.state == "failed" and trial.error.type == "CurveDiverged"


def finish(optimizer, *values):
    """Add a finished trial with this curve."""
    trial = optimizer.suggest()
    for step, value in enumerate(values, start=1):
        trial.report(value, step)
    trial.observe(values[-1])


def steps_until_failure(optimizer, values):
    """Report a curve; return the step after which the trial fails, or None."""
    trial = optimizer.suggest()
    for step, value in enumerate(values, start=1):
        trial.report(value, step)
        if trial.should_stop():
            assert has_failed(trial) and list(trial.curve) == list(range(1, step + 1))
            return step
    return None


@pytest.mark.parametrize(
    "values, step",
    [
        ([0.5, NAN, NAN, NAN, NAN], 4),
        ([0.5, NAN, NAN, 0.5, NAN, NAN], None),
        ([0.5, NAN, 0.5, NAN, NAN, NAN, NAN, NAN], 8),  # the gap of one step allows four
        ([NAN, NAN, 0.5, NAN, NAN, NAN, NAN, NAN], None),  # validated at every third step
        ([NAN] * 8, None),  # it is unknown whether a first value follows
    ],
)
def test_reports_of_nan_fail_if_they_are_more_than_a_gap(values, step):
    assert steps_until_failure(search(stopping=NEVER), values) == step


def test_finished_curves_show_which_gaps_are_usual():
    optimizer = search(stopping=NEVER)
    for _ in range(5):
        assert steps_until_failure(optimizer, [NAN] * 6) is None
        finish(optimizer, NAN, 0.5, 0.75)
    assert steps_until_failure(optimizer, [NAN] * 8) == 5
    finish(optimizer, NAN, NAN, 0.5)
    assert steps_until_failure(optimizer, [NAN] * 8) is None


@pytest.mark.parametrize("arguments", [{"stopping": None}, {"curve": bl.Curve(9, value="best"), "stopping": NEVER}])
def test_without_a_rule_and_for_the_best_value_nothing_diverges(arguments):
    assert steps_until_failure(search(**arguments), [0.5] + [NAN] * 7) is None


def test_a_failed_trial_still_takes_a_value():
    trial = (optimizer := search(stopping="asha")).suggest()
    for step, value in enumerate([0.5, NAN, NAN, NAN], start=1):
        trial.report(value, step)
    assert has_failed(trial) and trial.should_stop()
    trial.observe(0.25)
    assert (trial.state, trial.value, trial.should_stop(), optimizer.best_value_) == ("observed", 0.25, False, 0.25)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("level", [0.0, -50.0])
def test_values_far_beyond_the_range_of_finished_curves_diverge(direction, level):
    sign = 1.0 if direction == "maximize" else -1.0
    # The finished curves have values from level - 2 to level + 1, with the worst value in the middle.
    bound = level - 2 - 100 * max(3.0, abs(level - 2))
    for n_finished in range(3, 6):
        optimizer = search(stopping=NEVER, direction=direction)
        for _ in range(n_finished):
            finish(optimizer, *(sign * (level + y) for y in (0.0, -2.0, 1.0)))
        fails = 2 if n_finished >= 5 else None
        assert steps_until_failure(optimizer, [sign * (bound - 1)] * 8) == fails
        assert steps_until_failure(optimizer, [sign * (bound + 1)] * 8) is None
        assert steps_until_failure(optimizer, [sign * (bound - 1), sign * level] * 4) is None
        assert steps_until_failure(optimizer, [sign * 1e9] * 8) is None


def test_curves_that_hardly_differ_do_not_make_other_values_implausible():
    optimizer = search(stopping=NEVER, direction="minimize")
    for i in range(5):
        finish(optimizer, 2.302585, 2.302585 + 1e-12 * i)
    assert steps_until_failure(optimizer, [3.0, 2.6, 2.2, 1.5, 1.0, 0.5]) is None


def test_a_diverged_curve_fails_in_all_handles_of_a_study(tmp_path):
    one, other = (bl.Study("s", f"sqlite:///{tmp_path}/a.db", search(stopping="asha")) for _ in range(2))
    trial = one.suggest()
    for step, value in enumerate([0.5, NAN, NAN, NAN], start=1):
        trial.report(value, step)
    assert has_failed(other.trials[0]) and has_failed(trial)


def test_values_of_other_outcomes_are_kept_when_the_curve_diverges():
    outcomes = {"loss": "minimize", "memory": bl.AtMost(1.0), "size": bl.Record()}
    optimizer = search(stopping=NEVER, outcomes=outcomes)
    one, two = optimizer.suggest(n=2)
    one.observe({"memory": 0.5})
    for trial in (one, two):
        for step, value in enumerate([0.5, NAN, NAN, NAN], start=1):
            trial.report(value, step)
    assert one.should_stop() and one.should_stop()
    assert one.outcomes["loss"].state == "failed" and one.error.type == "CurveDiverged"
    one.observe({"size": 3.0})
    assert one.values == {"memory": 0.5, "size": 3.0} and one.should_stop()
    one.observe({"loss": 0.25})
    assert one.values["loss"] == 0.25 and not one.should_stop()
    # A trial whose objective is known cannot diverge.
    two.observe({"loss": 0.5})
    assert not two.should_stop() and two.state == "pending"


def test_diverged_curves_do_not_count_as_finished():
    optimizer = search(stopping=NEVER, outcomes={"loss": "minimize", "memory": bl.Record()})
    for _ in range(5):
        trial = optimizer.suggest()
        trial.report(1.0, 1)
        trial.report(0.5, 9)
        trial.observe({"loss": 0.5, "memory": 1.0})
    for value in (1e4, 1e7):
        trial = optimizer.suggest()
        trial.observe({"memory": 1.0})
        trial.report(value, 1)
        trial.report(value, 2)
        assert trial.should_stop() and trial.outcomes["loss"].state == "failed"


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
