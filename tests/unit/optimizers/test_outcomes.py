"""Outcomes: values of a trial that are declared by name and arrive apart."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import belated as bl
from belated.errors import AlreadyObserved, InvalidSetting, InvalidValue, NotFitted

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
OUTCOMES = {"error": "minimize", "memory": bl.AtMost(4.0), "note": bl.Record()}


def make(kind=bl.RandomSearch, **arguments):
    return kind(SPACE, **({"outcomes": OUTCOMES, "seed": 0} | arguments))


def states(trial):
    return {name: each.state for name, each in trial.outcomes.items()}


def test_outcomes_arrive_apart():
    optimizer = make()
    trial = optimizer.suggest()
    assert trial.missing == ["error", "memory", "note"]
    trial.observe({"error": 0.5})
    assert trial.state == "pending" and trial.missing == ["memory", "note"] and trial.values == {"error": 0.5}
    assert optimizer.best_trial_ is None and optimizer.pending == [trial]
    trial.observe({"memory": 3.0})
    assert optimizer.best_value_ == 0.5  # a recorded outcome may be missing
    trial.observe({"note": 1.0})
    assert trial.state == "observed" and trial.missing == [] and optimizer.pending == []


@pytest.mark.parametrize(
    ("memory", "best"),
    [([3.0, 3.5, 5.0], 1), ([4.0, 4.1, 5.0], 0), ([4.1, 5.0, 6.0], None)],
)
def test_the_best_trial_satisfies_the_bounds(memory, best):
    optimizer = make()
    for trial, error, used in zip(optimizer.suggest(n=3), [0.3, 0.2, 0.1], memory, strict=True):
        trial.observe({"error": error, "memory": used})
    assert (optimizer.best_trial_ and optimizer.best_trial_.number) == best


def test_a_mapping_is_one_transaction():
    optimizer = make()
    trial = optimizer.suggest()
    trial.observe({"error": 0.5})
    n_events = optimizer._log.n_events()
    with pytest.raises(AlreadyObserved, match="error"):
        trial.observe({"memory": 3.0, "error": 0.6})
    assert optimizer._log.n_events() == n_events and trial.values == {"error": 0.5}
    trial.observe({"memory": 3.0, "error": 0.5})
    assert trial.values == {"error": 0.5, "memory": 3.0} and optimizer._log.n_events() == n_events + 1


def test_an_outcome_with_a_value_cannot_fail():
    trial = make().suggest()
    trial.observe({"error": 1.0})
    with pytest.raises(AlreadyObserved, match="values {'error': 1.0} already and cannot fail"):
        trial.fail(outcome="error")


def test_a_withdrawal_keeps_the_delay():
    optimizer = make()
    trial, *_ = optimizer.suggest(n=3)
    trial.observe({"error": 0.5, "memory": 3.0, "note": 0.0})
    observed_at = trial.observed_at
    optimizer.suggest(n=4)
    trial.withdraw(reason="wrong sample")
    assert trial.state == "withdrawn" and trial.observed_at == observed_at == 3
    assert trial.withdrawal.reason == "wrong sample"


def test_delays_keep_the_arrival_of_a_withdrawn_outcome_that_is_awaited_again():
    optimizer = make()
    trial, *_ = optimizer.suggest(n=3)
    trial.observe({"error": 0.5})
    optimizer.suggest(n=4)
    trial.withdraw(outcome="error")
    assert states(trial)["error"] == "pending" and trial.outcomes["error"].observed_at == 3
    assert sorted(optimizer._log.delays(None, 0)[1].records()[0]) == [1, 2, 3, 3, 4, 5, 6]
    optimizer.suggest()
    trial.observe({"error": 0.6})
    assert trial.outcomes["error"].observed_at == 3


@pytest.mark.parametrize("kind", [bl.RandomSearch, bl.BayesOpt])
def test_a_value_of_an_outcome_releases_the_points_of_abandoned_trials(kind):
    for seed in range(6):
        optimizer = kind(candidates=[[0.0], [1.0], [2.0]], outcomes=OUTCOMES, seed=seed)
        lost, other = optimizer.suggest(n=2)
        lost.abandon()
        last = optimizer.suggest()
        assert {lost.index, other.index, last.index} == {0, 1, 2}
        other.observe({"memory": 2.0})
        assert optimizer.suggest().index == lost.index


def test_the_point_of_a_trial_that_is_abandoned_outcome_by_outcome_is_blocked():
    for seed in range(6):
        optimizer = bl.RandomSearch(candidates=[[0.0], [1.0], [2.0]], outcomes=OUTCOMES, seed=seed)
        trial = optimizer.suggest()
        trial.abandon()
        trial.fail(outcome="error")
        trial.abandon(outcome="error")
        assert trial.state == "abandoned" and optimizer.suggest().index != trial.index


def test_predictions_of_an_outcome_condition_on_trials_in_which_this_outcome_is_missing():
    optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, outcomes={"a": "minimize", "b": bl.AtMost(1.0)}, initial=2, seed=0)
    for i in range(8):
        optimizer.add({"x": i / 10}, {"a": (i - 3.0) ** 2, "b": (i - 4.0) ** 2 / 9})
    for x, known in [(0.95, "a"), (0.85, "b")]:
        optimizer.add({"x": x}).observe({known: 1.0})

    def stds(outcome, pending):
        return optimizer.predict([{"x": 0.95}, {"x": 0.85}], outcome=outcome, pending=pending)[1]

    (missing_b, known_b), (known_a, missing_a) = stds("b", True), stds("a", True)
    assert missing_b < 0.2 * stds("b", False)[0] and missing_a < 0.2 * stds("a", False)[1]
    assert known_b > 0.9 * stds("b", False)[1] and known_a > 0.9 * stds("a", False)[0]


def test_durations_may_arrive_with_any_outcome():
    predictions = []
    for give in (
        lambda trial, d: trial.observe({"error": 1.0}, duration=d),
        lambda trial, d: trial.observe({"memory": 1.0}, duration=d),
        lambda trial, d: (trial.observe({"memory": 1.0}, duration=d), trial.abandon()),
        lambda trial, d: (trial.fail(outcome="memory", duration=d), trial.abandon()),
        lambda trial, d: trial.fail(duration=d),
    ):
        optimizer = make(bl.BayesOpt)
        for i in range(6):
            give(optimizer.add({"x": i / 6, "y": 0.5}), i + 1.0)
        durations = optimizer.durations_
        assert durations.n_known == 6
        predictions.append(str(durations.predict([{"x": 0.25, "y": 0.5}])))
    assert len(set(predictions)) == 1


def test_durations_keep_the_duration_of_a_withdrawn_outcome_that_is_awaited_again():
    optimizer = make(bl.BayesOpt)
    points = [{"x": i / 4, "y": 0.5} for i in range(4)]
    for i, point in enumerate(points):
        optimizer.add(point, {"error": 1.0}, duration=1.0 + i)
    before = optimizer.durations_.predict(points)
    optimizer.withdraw(0, outcome="error")
    assert str(optimizer.durations_.predict(points)) == str(before)


def test_predictions_equal_those_of_a_copy_after_events_of_another_outcome():
    optimizer = make(bl.BayesOpt)

    def predictions(source):
        points = [{"x": i / 4, "y": 0.5} for i in range(5)]
        return str([source.recommend(n=3), source.predict(points), source.durations_.predict(points)])

    for i in range(9):
        optimizer.add({"x": i / 9, "y": (i * 5 % 9) / 9}, {"error": (i - 4.0) ** 2}, duration=1.0 + i % 4)
    for number in range(4):
        optimizer.fail(number, outcome="memory")
    for number in range(4, 9):
        optimizer.observe(number, {"memory": 2.0}, duration=10.0 * number)
        assert predictions(optimizer) == predictions(pickle.loads(pickle.dumps(optimizer)))


def test_replicates_measure_the_given_outcomes_only():
    optimizer = make()
    trial = optimizer.suggest()
    trial.observe({"error": 0.5, "memory": 3.0})
    trial.observe({"memory": 3.2}, replicate=True)
    replicate = optimizer.trials[-1]
    assert replicate.params == trial.params and replicate.values == {"memory": 3.2}
    assert replicate.state == "observed" and trial.values == {"error": 0.5, "memory": 3.0}


def test_trials_are_added_with_the_outcomes_that_are_known():
    optimizer = make()
    points = [{"x": 0.1, "y": 0.2}, {"x": 0.3, "y": 0.4}, {"x": 0.5, "y": 0.6}]
    values = [{"error": 0.5, "memory": 3.0, "note": 2.0}, {"memory": 1.0}, None]
    trials = optimizer.add(points, values, std=[0.1, {"memory": 0.2}, None])
    assert [trial.values for trial in trials] == [values[0], values[1], {}]
    assert [trial.state for trial in trials] == ["observed", "pending", "pending"]
    assert trials[0].outcomes["memory"].std == 0.1 and trials[1].outcomes["memory"].std == 0.2


def test_data_of_a_trial_come_with_any_outcome():
    optimizer = make()
    trial = optimizer.suggest()
    trial.observe({"memory": 3.0}, cost=2.0, duration=5.0, attrs={"lot": "a"}, params={"x": 0.25, "y": 0.5})
    trial.observe({"error": 1.0}, attrs={"lot": "b"})
    assert (trial.cost, trial.duration, trial.attrs) == (2.0, 5.0, {"lot": "b"})
    assert trial.params_run == {"x": 0.25, "y": 0.5}


@pytest.mark.parametrize(
    ("value", "std"),
    [
        (0.5, None),
        ({}, None),
        ({"errors": 0.5}, None),
        ({"error": float("nan")}, None),
        ({"error": 0.5}, {"memory": 0.1}),
        ({"error": 0.5}, -1.0),
        ("error", None),
    ],
)
def test_wrong_reports_are_refused(value, std):
    optimizer = make()
    trial = optimizer.suggest()
    with pytest.raises(InvalidValue):
        trial.observe(value, std=std)
    assert trial.values == {} and optimizer._log.n_events() == 1


@pytest.mark.parametrize(
    "outcomes",
    [
        {},
        ["error"],
        {"error": "min"},
        {"error": "minimize", "memory": 4.0},
        dict.fromkeys("abcd", "minimize"),
        {"memory": bl.AtMost(4.0)},
        {1: "minimize"},
    ],
)
def test_wrong_declarations_are_refused(outcomes):
    with pytest.raises(InvalidSetting):
        make(bl.BayesOpt, outcomes=outcomes)


@pytest.mark.parametrize("bounds", [(1.0, 1.0), (2.0, 1.0)])
def test_bounds_without_a_range_are_refused(bounds):
    with pytest.raises(InvalidSetting):
        bl.Between(*bounds)
    with pytest.raises(InvalidSetting):
        bl.Minimize(*bounds)


def test_direction_is_refused_beside_outcomes():
    with pytest.raises(InvalidSetting):
        make(direction="minimize", outcomes={"yield": "maximize"})


@pytest.mark.parametrize(
    "make_other",
    [
        lambda: bl.TreeSearch(SPACE, outcomes=OUTCOMES),
        lambda: bl.BPEDelay(candidates=[[0.0], [1.0]], horizon=10, outcomes={"error": "minimize"}),
        lambda: bl.BayesOpt(SPACE, outcomes=OUTCOMES, pending="censor", acquisition="ucb", window=5),
        lambda: bl.BayesOpt(SPACE, outcomes=OUTCOMES, window=5),
        lambda: bl.BayesOpt(SPACE, outcomes=OUTCOMES, curve=bl.Curve(5), stopping="model"),
        lambda: bl.algorithm("GP-UCB-SDF", SPACE, window=5, outcomes=OUTCOMES),
        lambda: bl.algorithm("asyTS", SPACE, outcomes=OUTCOMES),
    ],
)
def test_what_does_not_support_outcomes_refuses_them(make_other):
    with pytest.raises((InvalidSetting, TypeError)):
        make_other()


def test_one_outcome_takes_numbers():
    optimizer = make(outcomes={"error": "minimize"})
    first, second = optimizer.suggest(n=2)
    first.observe(0.5)
    second.observe({"error": 0.25})
    assert optimizer.best_value_ == 0.25 and optimizer.direction == "minimize"


NAMES = list(OUTCOMES)
ACTIONS = st.one_of(
    st.tuples(st.just("observe"), st.dictionaries(st.sampled_from(NAMES), st.sampled_from([0.0, 1.0]), min_size=1)),
    st.tuples(st.sampled_from(["fail", "abandon", "withdraw"]), st.sampled_from([*NAMES, None])),
)


def expected(known, withdrawn, action, argument):
    """A plain program for the states of one trial: name → state or value. Returns None if the action is refused.

    `withdrawn` has the results of each outcome that were taken back.
    """
    new = dict(known)
    has_value = {name: isinstance(state, float) for name, state in known.items()}
    if action == "observe":
        for name, value in argument.items():
            if has_value[name] and known[name] != value:
                return None
            if value not in withdrawn[name]:
                new[name] = value
        return new
    named = NAMES if argument is None else [argument]
    if action == "withdraw":
        chosen = [name for name in named if has_value[name] or known[name] == "failed"]
        if not chosen:
            return None
        for name in chosen:
            withdrawn[name].add(known[name])
            new[name] = "withdrawn"
        if "pending" in new.values():
            # The outcome is missing again.
            new = {name: "pending" if state == "withdrawn" else state for name, state in new.items()}
        return new
    if argument is None:
        missing = [name for name in NAMES if known[name] == "pending"]
        named = missing or [name for name in NAMES if not has_value[name]]
        if not named:
            return None
    elif has_value[argument]:
        return None
    for name in named:
        repeated = action == "fail" and known[name] == "withdrawn" and "failed" in withdrawn[name]
        dropped = action == "abandon" and known[name] == "withdrawn"
        if not (repeated or dropped):
            new[name] = {"fail": "failed", "abandon": "abandoned"}[action]
    return new


@given(st.lists(ACTIONS, max_size=12))
def test_states_follow_a_plain_program(actions):
    optimizer = make(bl.RandomSearch)
    trial = optimizer.suggest()
    known, withdrawn = dict.fromkeys(NAMES, "pending"), {name: set() for name in NAMES}
    for action, argument in actions:
        new = expected(known, withdrawn, action, argument)
        call = {
            "observe": lambda given: trial.observe(given),
            "fail": lambda name: trial.fail(outcome=name),
            "abandon": lambda name: trial.abandon(outcome=name),
            "withdraw": lambda name: trial.withdraw(outcome=name),
        }[action]
        if new is None:
            with pytest.raises((AlreadyObserved, InvalidValue)):
                call(argument)
        else:
            call(argument)
            known = new
        shown = {name: "observed" if isinstance(state, float) else state for name, state in known.items()}
        assert states(trial) == shown
        order = ["pending", "observed", "withdrawn", "failed", "abandoned"]
        assert trial.state == min(shown.values(), key=order.index)
        assert trial.values == {name: state for name, state in known.items() if isinstance(state, float)}
    copy = pickle.loads(pickle.dumps(optimizer)).trials[0]
    assert states(copy) == states(trial) and copy.state == trial.state


# Suggestions.


def error(params):
    return (params["x"] - 0.6) ** 2 + 0.3 * params["y"]


def memory(params):
    return 8 * (1 - params["x"]) * (1 - params["y"])


@pytest.mark.parametrize("other", [{}, {"note": bl.Record()}])
def test_one_outcome_without_bounds_equals_a_single_value(other):
    single = bl.BayesOpt(SPACE, direction="minimize", seed=3)
    named = bl.BayesOpt(SPACE, outcomes={"error": "minimize", **other}, seed=3)
    for k in range(14):
        one, two = single.suggest(), named.suggest()
        assert one.params == two.params
        if k % 3:
            one.observe(error(one.params))
            two.observe({"error": error(two.params)})
            if other:
                two.abandon()
    assert single.recommend() == named.recommend() and single.predict({"x": 0.1, "y": 0.2}) == named.predict(
        {"x": 0.1, "y": 0.2}, outcome="error"
    )


def test_reports_of_parts_equal_a_report_of_the_whole():
    whole, parts = make(bl.BayesOpt), make(bl.BayesOpt)
    for _ in range(14):
        one, two = whole.suggest(), parts.suggest()
        assert one.params == two.params
        one.observe({"error": error(one.params), "memory": memory(one.params), "note": 0.0})
        two.observe({"memory": memory(two.params)})
        two.observe({"note": 0.0, "error": error(two.params)})


def test_a_fast_outcome_does_not_change_the_posterior_of_a_slow_one():
    optimizer = make(bl.BayesOpt)
    trials = optimizer.suggest(n=10)
    for trial in trials[:8]:
        trial.observe({"error": error(trial.params)})
    for trial in trials[:5]:
        trial.observe({"memory": memory(trial.params)})
    point = {"x": 0.3, "y": 0.7}
    slow, fast = optimizer.predict(point, outcome="memory"), optimizer.predict(point, outcome="error")
    trials[8].observe({"error": error(trials[8].params)})
    assert optimizer.predict(point, outcome="memory") == slow
    assert optimizer.predict(point, outcome="error") != fast


@pytest.mark.parametrize("acquisition", ["log_ei", "ucb", "thompson"])
def test_suggestions_move_to_the_feasible_optimum(acquisition):
    outcomes = {"error": "minimize", "memory": bl.AtMost(2.0)}
    optimizer = bl.BayesOpt(SPACE, outcomes=outcomes, acquisition=acquisition, seed=0)
    waiting = []
    for _ in range(35):
        trial = optimizer.suggest()
        trial.observe({"error": error(trial.params)})
        waiting.append(trial)
        if len(waiting) > 3:
            late = waiting.pop(0)
            late.observe({"memory": memory(late.params)})
    # On a fine grid, the best error with memory <= 2 is 0.0225 at x = 0.75, y = 0.
    assert optimizer.best_value_ < 0.03
    best = optimizer.recommend()
    assert memory(best) < 2.05 and error(best) < 0.03
    assert optimizer.predict_feasible(best) >= 0.89


def test_recommend_says_that_no_point_is_probably_feasible():
    optimizer = make(bl.BayesOpt, outcomes={"error": "minimize", "memory": bl.AtMost(-1.0)})
    for trial in optimizer.suggest(n=12):
        trial.observe({"error": error(trial.params), "memory": 1 + memory(trial.params)})
    with pytest.warns(bl.BelatedWarning, match="within their bounds"):
        optimizer.recommend()
    assert optimizer.best_trial_ is None


def test_importances_and_predictions_of_an_outcome():
    optimizer = make(bl.BayesOpt)
    for trial in optimizer.suggest(n=20):
        trial.observe({"error": trial.params["x"], "memory": trial.params["y"]})
    assert optimizer.importances()["x"] > 0.9 and optimizer.importances(outcome="memory")["y"] > 0.9
    with pytest.raises(InvalidSetting):
        optimizer.predict({"x": 0.1, "y": 0.2}, outcome="note")
    with pytest.raises(InvalidValue):
        optimizer.predict({"x": 0.1, "y": 0.2}, outcome="noted")


def test_notebooks_show_values_and_what_is_missing():
    optimizer = make()
    first, second = optimizer.suggest(n=2)
    first.observe({"error": 0.5, "memory": 3.0})
    second.fail(outcome="memory")
    page = optimizer._repr_html_()
    assert "<th>error</th><th>memory</th><th>note</th>" in page
    assert "<td>0.5</td><td>3</td><td>missing</td>" in page
    assert "<td>missing</td><td>failed</td><td>missing</td>" in page
    assert "values={'error': 0.5, 'memory': 3.0}, missing=['note']" in repr(first)
    assert "values memory" in first._repr_html_()


def test_delays_are_known_for_each_outcome():
    optimizer = make()
    lost = optimizer.suggest()
    lost.observe({"error": 0.5})
    for _ in range(20):
        trial = optimizer.suggest()
        trial.observe({"error": 0.5})
        trial.observe({"memory": 3.0, "note": 0.0})
    assert optimizer.overdue(outcome="error") == []
    assert (
        [late.trial for late in optimizer.overdue(outcome="memory")]
        == [lost]
        == [late.trial for late in optimizer.overdue()]
    )
    assert optimizer.forecast(by=30, outcome="error").n_pending == 0
    assert optimizer.forecast(by=30, outcome="memory").n_pending == 1


def test_set_params_replaces_the_direction_of_earlier_outcomes():
    optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, outcomes={"error": "minimize"}, seed=0)
    optimizer.set_params(outcomes={"yield": "maximize"})
    assert optimizer.direction == "maximize"
    with pytest.raises(InvalidSetting):
        optimizer.set_params(outcomes={"yield": "maximize"}, direction="minimize")


def test_a_stopped_trial_with_a_value_still_has_to_stop():
    optimizer = make(curve=bl.Curve(4), stopping=bl.ASHA())
    trials = optimizer.suggest(n=6)
    for i, trial in enumerate(trials):
        trial.observe({"memory": 1.0})
        trial.report(float(i), 1)
    stopped = [trial for trial in trials if trial.should_stop()]
    assert stopped and all(trial.state == "observed" for trial in stopped)
    assert all(trial.should_stop() for trial in stopped)


def test_suggestions_stay_near_the_best_point_at_an_active_bound():
    outcomes = {"e": "maximize", "m": bl.AtMost(0.5)}
    optimizer = bl.BayesOpt(SPACE, outcomes=outcomes, seed=1, initial=4)
    rng = np.random.default_rng(0)
    for x, y in rng.random((20, 2)).tolist():
        optimizer.add({"x": x, "y": y}, {"e": x, "m": x})
    found = [optimizer.suggest().params["x"] for _ in range(8)]
    assert sum(abs(x - 0.5) < 0.02 for x in found) >= 7


def test_an_outcome_without_a_value_is_not_called_feasible():
    optimizer = make(bl.BayesOpt)
    for trial in optimizer.suggest(n=6):
        trial.observe({"error": trial.params["x"]})
    with pytest.raises(NotFitted, match="memory"):
        optimizer.predict_feasible({"x": 0.5, "y": 0.5})
    with pytest.warns(bl.BelatedWarning, match="memory"):
        optimizer.recommend()


def test_another_point_for_a_later_outcome_is_a_contradiction():
    trial = make().suggest()
    trial.observe({"error": 1.0}, params={"x": 0.5, "y": 0.5})
    with pytest.raises(AlreadyObserved):
        trial.observe({"memory": 2.0}, params={"x": 0.6, "y": 0.5})
    assert trial.params_run == {"x": 0.5, "y": 0.5} and trial.values == {"error": 1.0}
    trial.observe({"memory": 2.0}, params={"x": 0.6, "y": 0.5}, amend=True)
    assert trial.params_run == {"x": 0.6, "y": 0.5} and trial.values == {"error": 1.0, "memory": 2.0}


@pytest.mark.parametrize("names", [("error", "memory"), ("memory", "error")])
def test_data_given_with_a_repeated_value_belong_to_the_new_value(names):
    values = {"error": 1.0, "memory": 2.0}
    known, new = names
    trial = make().suggest()
    trial.observe({known: values[known]})
    report = {name: values[name] for name in names}
    trial.observe(report, cost=3.0, duration=2.0, params={"x": 0.5, "y": 0.5}, amend=True)
    assert (trial.cost, trial.duration, trial.params_run) == (3.0, 2.0, {"x": 0.5, "y": 0.5})
    trial.observe(report, cost=3.0)
    assert trial.values == values
    with pytest.raises(AlreadyObserved):
        trial.observe({known: 7.0, new: values[new]}, cost=4.0)
    assert trial.cost == 3.0


def test_data_given_with_a_withdrawn_value_belong_to_the_new_value():
    trial = make().suggest()
    trial.observe({"error": 1.0, "memory": 2.0})
    trial.abandon(outcome="note")
    trial.withdraw(outcome="error")
    trial.observe({"error": 1.0, "note": 3.0}, cost=7.0)
    assert trial.values == {"memory": 2.0, "note": 3.0} and trial.cost == 7.0


def test_a_failed_record_does_not_affect_suggestions():
    plain, failing = make(bl.BayesOpt), make(bl.BayesOpt)
    for _ in range(10):
        one, two = plain.suggest(), failing.suggest()
        assert one.params == two.params
        for trial in (one, two):
            trial.observe({"error": error(trial.params), "memory": memory(trial.params)})
        two.fail(outcome="note")
