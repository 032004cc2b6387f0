"""Runs whose function returns a mapping of outcomes, or a part of them."""

import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest

import belated as bl
from belated.errors import InvalidSetting, RunError
from belated.run.objective import objective, read_returned
from tests.unit.run.runs import failures_expected, states

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
OUTCOMES = {"error": "minimize", "memory": bl.AtMost(4.0), "note": bl.Record()}


def whole(params):
    return {"error": params["x"], "memory": 8 * (1 - params["x"]) + params["y"], "note": 1.0}


def only_error(params):
    return {"error": params["x"]}


def make(**arguments):
    return bl.RandomSearch(SPACE, **({"outcomes": OUTCOMES, "seed": 0} | arguments))


def best_within(trials):
    """The best error within the bound, without the log."""
    return min((each.values["error"] for each in trials if each.values["memory"] <= 4.0), default=None)


def test_the_result_of_a_run_respects_the_bounds():
    result = bl.minimize(whole, SPACE, outcomes=OUTCOMES, n_trials=12, seed=0)
    assert states(result) == ["observed"] * 12 and result.n_pending == 0
    assert result.best_value_ == best_within(result.trials) > min(each.value for each in result.trials)
    assert result.best_trial_.values["memory"] <= 4.0


@pytest.mark.parametrize("kind", ["thread", "threads", "pool", "processes"])
def test_every_executor_returns_mappings(kind):
    # The points of `RandomSearch` do not depend on the order of the results.
    pools = {"pool": ProcessPoolExecutor, "threads": ThreadPoolExecutor}
    arguments = {"processes": True, "n_workers": 2} if kind == "processes" else {}
    if kind in pools:
        with pools[kind](2) as executor:
            result = bl.minimize(whole, optimizer=make(), n_trials=6, executor=executor)
    else:
        result = bl.minimize(whole, optimizer=make(), n_trials=6, **arguments)
    expected = [whole(each.params) for each in make().suggest(n=6)]
    assert [each.values for each in result.trials] == expected


def test_workers_are_free_while_outcomes_are_missing():
    optimizer, in_flight = make(), []

    def free(optimizer, trial):
        in_flight.append(len(optimizer.pending))

    result = bl.minimize(only_error, optimizer=optimizer, n_trials=5, n_workers=1, callbacks=[free])
    assert states(result) == ["pending"] * 5 and in_flight == [1, 2, 3, 4, 5]
    assert result.n_pending == 5 and result.best_trial_ is None and result.stop_reason == "n_trials"
    for trial in result.trials:
        trial.observe({"memory": trial.number + 2.0, "note": 0.0})
    assert states(result) == ["observed"] * 5
    assert result.best_value_ == min(each.values["error"] for each in result.trials[:3])


def test_trials_with_an_outcome_are_not_evaluated_again():
    optimizer = make()
    returned, lost = optimizer.suggest(n=2)
    returned.observe({"error": 0.5})
    result = bl.minimize(whole, optimizer=optimizer, n_trials=1, retry_pending=True)
    assert [each.number for each in result.trials] == [lost.number, 2] and returned.missing == ["memory", "note"]


def test_trials_with_an_outcome_count_in_the_total_without_a_warning(recwarn):
    optimizer = make()
    optimizer.suggest().observe({"error": 0.5})
    result = bl.minimize(whole, optimizer=optimizer, n_trials_total=3)
    assert len(result.trials) == 2 and not recwarn.list


@failures_expected
@pytest.mark.parametrize(
    "wrong",
    [
        {"error": "small", "memory": "much"},
        {"errors": 0.5},
        {"value": {"error": 0.5}, "std": -1.0},
        {"value": {"error": 0.5}, "memory": 3.0},
        {"error": None},
        {},
        0.5,
        None,
    ],
)
def test_wrong_mappings_fail_their_trial_only(wrong):
    def f(params, trial):
        trial.attrs["seen"] = True
        return wrong if trial.number == 1 else whole(params)

    result = bl.minimize(f, optimizer=make(), n_trials=3)
    assert states(result) == ["observed", "failed", "observed"]
    failed = result.trials[1]
    others = {"errors": 0.5} if wrong == {"errors": 0.5} else {}
    assert failed.values == {} and failed.attrs == {"seen": True} | others and "f returned" in failed.error.message
    assert {each.state for each in failed.outcomes.values()} == {"failed"}


def test_the_long_form_has_stds_costs_and_attrs():
    names = ("error", "memory")
    given = {"value": {"error": 0.5, "memory": 3}, "std": {"memory": 0.25}, "cost": 2, "attrs": {"a": 1}}
    read = read_returned(given, {"b": 2}, 0.5, names)
    assert (read.value, read.std, read.cost) == ({"error": 0.5, "memory": 3.0}, {"memory": 0.25}, 2.0)
    assert read.attrs == {"b": 2, "a": 1} and pickle.loads(pickle.dumps(read)) == read
    assert read_returned({"value": {"error": 1.0}, "std": 0.5}, {}, 0.0, names).std == {"error": 0.5}
    result = bl.minimize(lambda params: given, optimizer=make(), n_trials=1)
    assert result.trials[0].outcomes["memory"].std == 0.25 and result.cost == 2.0


def test_one_outcome_takes_numbers():
    # An outcome may have the name of a key of the long form.
    assert read_returned(0.5, {}, 0.0, ("error",)).value == {"error": 0.5}
    assert read_returned({"value": 0.5, "std": 0.1}, {}, 0.0, ("error",)).std == {"error": 0.1}
    assert read_returned({"value": 0.5}, {}, 0.0, ("value",)).value == {"value": 0.5}
    assert read_returned({"value": {"value": 0.5}, "cost": 1.0}, {}, 0.0, ("value",)).cost == 1.0
    values = [
        bl.minimize(lambda params: params["x"], SPACE, n_trials=12, seed=0, **more).trials_dataframe()["params_x"]
        for more in ({}, {"outcomes": {"error": "minimize"}})
    ]
    assert list(values[0]) == list(values[1])


def test_the_directions_of_runs_and_goals_agree():
    for run, goal in ((bl.maximize, "minimize"), (bl.minimize, "maximize")):
        with pytest.raises(InvalidSetting):
            run(whole, SPACE, outcomes={"error": goal}, n_trials=1)


@failures_expected
def test_a_run_without_any_value_raises():
    def broken(params):
        raise OSError("no disk")

    with pytest.raises(RunError):
        bl.minimize(broken, optimizer=make(), n_trials=2)

    def partly(params, trial):
        if trial.number:
            raise OSError("no disk")
        return {"memory": 3.0}

    assert states(bl.minimize(partly, optimizer=make(), n_trials=2)) == ["pending", "failed"]


def test_no_improvement_counts_results_within_the_bounds():
    memory = iter([9.0, 9.0, 1.0, 9.0, 1.0, 1.0, 1.0])
    error = iter([0.0, 0.0, 5.0, 0.0, 6.0, 7.0, 8.0])

    def f(params):
        return {"error": next(error), "memory": next(memory)}

    result = bl.minimize(f, optimizer=make(), n_trials=9, callbacks=[bl.NoImprovement(3)])
    assert len(result.trials) == 6 and result.stop_reason == "stopped" and result.best_value_ == 5.0


def test_no_improvement_ends_a_run_without_a_trial_within_the_bounds():
    result = bl.minimize(
        lambda params: {"error": 0.0, "memory": 9.0}, optimizer=make(), n_trials=9, callbacks=[bl.NoImprovement(4)]
    )
    assert len(result.trials) == 4 and result.stop_reason == "stopped" and result.best_value_ is None


def test_no_improvement_waits_for_bounded_outcomes():
    result = bl.minimize(only_error, optimizer=make(), n_trials=6, callbacks=[bl.NoImprovement(2)])
    assert result.stop_reason == "n_trials"


def test_a_value_is_reached_within_the_bounds():
    errors = iter([0.0, 0.5, 0.2, 0.3])

    def f(params, trial):
        return {"error": next(errors), "memory": 9.0 if trial.number == 0 else 1.0}

    result = bl.minimize(f, optimizer=make(), n_trials=4, callbacks=[bl.ValueReached(0.25)])
    assert len(result.trials) == 3


@pytest.mark.parametrize("memory", [3.0, None])
def test_a_curve_belongs_to_the_objective(memory):
    def f(params):
        yield from (3.0, 2.0, 1.0)
        if memory is not None:
            return {"error": 1.0, "memory": memory}

    result = bl.minimize(f, optimizer=make(curve=bl.Curve(3)), n_trials=2)
    known = {"error": 1.0} | ({} if memory is None else {"memory": memory})
    assert [each.values for each in result.trials] == [known] * 2
    assert result.trials[0].curve == {1: 3.0, 2: 2.0, 3: 1.0}


def test_a_stopped_trial_keeps_its_other_outcomes():
    def measure(params, trial):
        for step in range(1, 5):
            trial.report(params["x"], step)
            if trial.should_stop():
                break
        return {"value": {"error": params["x"], "memory": params["y"]}, "std": {"error": 0.1, "memory": 0.2}}

    result = bl.minimize(measure, optimizer=make(curve=bl.Curve(4), stopping=bl.ASHA()), n_trials=12)
    stopped = [trial for trial in result.trials if trial.outcomes["error"].state == "stopped"]
    assert stopped
    for trial in stopped:
        assert trial.values == {"memory": trial.params["y"]} and trial.outcomes["memory"].std == 0.2


def test_a_study_is_shared_by_runs(tmp_path):
    store = f"sqlite:///{tmp_path}/outcomes.db"
    study = bl.Study("mine", store, make())
    first = bl.minimize(only_error, optimizer=study, n_trials=3)
    again = bl.Study.load("mine", store)
    second = bl.minimize(whole, optimizer=again, n_trials_total=5)
    assert states(first) == ["pending"] * 3 and len(second.trials) == 2
    for trial in again.pending:
        trial.observe({"memory": 1.0})
    study.sync()
    assert study.best_value_ == min(each.values["error"] for each in study.trials if each.values["memory"] <= 4.0)


def test_unpickled_functions_know_the_outcomes():
    f = pickle.loads(pickle.dumps(objective(whole, ["x", "y"], (Exception,), ("error", "memory", "note"), "error")))
    assert f(0, {"x": 0.5, "y": 0.25}).value == {"error": 0.5, "memory": 4.25, "note": 1.0}
