"""`BelatedSearch` with a learning curve: results of Tune are steps, and trials that Tune stops early are stopped."""

import functools
import math

import pytest

pytest.importorskip("ray", reason="Ray is not installed")
tune = pytest.importorskip("ray.tune", reason="Ray Tune is not installed")

from ray.tune.schedulers import ASHAScheduler  # noqa: E402

import belated as bl  # noqa: E402
from belated.integrations.ray import BelatedSearch  # noqa: E402
from tests.system.integrations.test_ray_restore import write_table  # noqa: E402

SPACE = {"x": (0.0, 1.0)}


def searched(curve=bl.Curve(4), **arguments):  # noqa: B008
    return BelatedSearch(SPACE, **{"metric": "loss", "mode": "min", "curve": curve, "seed": 0} | arguments)


def result(step, loss, **others):
    return {"training_iteration": step, "loss": loss, **others}


def told(search):
    return [(trial.state, trial.value, trial.curve) for trial in search.optimizer_.trials]


def test_results_are_steps_and_the_end_of_a_function_is_its_value():
    search = searched()
    for trial_id in "abc":
        search.suggest(trial_id)
    for step, loss in ((1, 4.0), (2, 2.0), (3, 3.0)):
        search.on_trial_result("a", result(step, loss))
        search.on_trial_result("b", result(step, loss + 1))
    search.on_trial_complete("a", result(3, 3.0, done=True))  # the function ended, and its last result is known
    search.on_trial_complete("b", result(4, 2.5, done=True))  # the last step
    search.on_trial_result("c", result(1, math.nan))
    assert told(search)[:2] == [
        ("observed", 3.0, {1: 4.0, 2: 2.0, 3: 3.0}),
        ("observed", 2.5, {1: 5.0, 2: 3.0, 3: 4.0, 4: 2.5}),
    ]
    state, _, curve = told(search)[2]
    assert state == "pending" and curve == pytest.approx({1: math.nan}, nan_ok=True)


@pytest.mark.parametrize(("mode", "best"), [("min", 2.0), ("max", 4.0)])
def test_the_best_value_of_a_curve_is_declared(mode, best):
    search = searched(bl.Curve(3, value="best"), mode=mode)
    search.suggest("a")
    for step, loss in ((1, 4.0), (2, 2.0)):
        search.on_trial_result("a", result(step, loss))
    search.on_trial_complete("a", result(3, 3.0))
    assert told(search) == [("observed", best, {1: 4.0, 2: 2.0, 3: 3.0})]


def test_trials_that_tune_stops_early_are_stopped():
    search = searched()
    for trial_id in "abcd":
        search.suggest(trial_id)
        search.on_trial_result(trial_id, result(1, 4.0))
    search.on_trial_complete("a", result(2, 3.0, done=True))  # a scheduler stopped the trial at this result
    search.on_trial_complete("b")  # the trial was paused
    search.on_trial_complete("c", error=True)
    with pytest.warns(bl.BelatedWarning, match="trial d of Tune counts as failed: the metric 'loss' is nan"):
        search.on_trial_complete("d", result(2, math.nan))
    states = [(state, value) for state, value, _ in told(search)]
    assert states == [("stopped", None)] * 2 + [("failed", None)] * 2
    assert [curve for _, _, curve in told(search)][:3] == [{1: 4.0, 2: 3.0}, {1: 4.0}, {1: 4.0}]
    # A trial that is run again may end later, and a value is kept.
    search.on_trial_complete("a", result(4, 1.0))
    search.on_trial_complete("a", result(3, 2.0))
    assert told(search)[0] == ("observed", 1.0, {1: 4.0, 2: 3.0, 3: 2.0, 4: 1.0})


def test_a_trial_that_tune_starts_again_replaces_its_curve():
    search = searched()
    search.suggest("a")
    for step, loss in ((1, 4.0), (2, 3.0), (3, 2.0)):
        search.on_trial_result("a", result(step, loss))
    search.on_trial_result("a", result(1, 4.0))  # the value is unchanged
    search.on_trial_result("a", result(2, 5.0))
    assert told(search) == [("pending", None, {1: 4.0, 2: 5.0})]
    search.on_trial_complete("a", result(3, 4.5))
    assert told(search) == [("stopped", None, {1: 4.0, 2: 5.0, 3: 4.5})]


def test_further_results_are_not_steps():
    search = searched()
    search.suggest("a")
    for step in (4, 5):  # a function may return its value after the last step
        search.on_trial_result("a", result(step, 1.0 / step))
    with pytest.warns(bl.BelatedWarning, match="more results than curve=Curve\\(steps=4.* has steps") as caught:
        for step in (6, 7):
            search.on_trial_result("a", result(step, 1.0 / step))
    assert len(caught) == 1
    search.on_trial_complete("a", result(8, 0.125))
    assert told(search) == [("observed", 0.125, {4: 0.25})]


def test_results_without_a_curve_are_not_reported():
    search = searched(None)
    search.suggest("a")
    search.on_trial_result("a", result(1, 4.0))
    search.on_trial_complete("a", result(2, 3.0))
    assert told(search) == [("observed", 3.0, {})]


def test_a_saved_search_has_its_curves(tmp_path):
    search = searched()
    for trial_id in "ab":
        search.suggest(trial_id)
        search.on_trial_result(trial_id, result(1, 4.0))
    search.save(str(tmp_path / "search"))
    restored = searched()
    restored.restore(str(tmp_path / "search"))
    restored.on_trial_complete("a", result(2, 3.0))
    restored.on_trial_complete("b", result(1, 4.0))
    assert told(restored) == [("stopped", None, {1: 4.0, 2: 3.0}), ("observed", 4.0, {1: 4.0})]
    with pytest.raises(bl.errors.InvalidSetting, match="curve.steps is 4 there and 5 here"):
        searched(bl.Curve(5)).restore(str(tmp_path / "search"))


def test_steps_that_are_only_in_the_table_of_tune_are_reported(tmp_path):
    search = searched()
    configs = {trial_id: search.suggest(trial_id) for trial_id in "abcd"}
    for trial_id in "abcd":
        search.on_trial_result(trial_id, result(1, 4.0))
    search.save_to_dir(str(tmp_path), "1")
    rows = [
        ("a", "RUNNING", configs["a"], result(2, 3.0)),
        ("b", "TERMINATED", configs["b"], result(2, 3.0)),
        ("c", "TERMINATED", configs["c"], result(4, 2.0)),
        ("d", "TERMINATED", configs["d"], result(1, 4.0)),
    ]
    write_table(tmp_path, rows)
    restored = searched()
    restored.restore_from_dir(str(tmp_path))
    assert told(restored) == [
        ("pending", None, {1: 4.0, 2: 3.0}),
        ("stopped", None, {1: 4.0, 2: 3.0}),
        ("observed", 2.0, {1: 4.0, 4: 2.0}),
        ("observed", 4.0, {1: 4.0}),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"curve": 4}, "curve=4 is not usable: pass bl.Curve"),
        ({"optimizer": bl.TreeSearch}, "TreeSearch does not support curves"),
    ],
)
def test_curves_that_are_not_usable_are_refused(arguments, message):
    with pytest.raises(bl.errors.InvalidSetting, match=message):
        searched(**arguments)


def test_a_given_optimizer_has_its_own_curve():
    optimizer = bl.RandomSearch(SPACE, direction="minimize", curve=bl.Curve(4))
    with pytest.raises(bl.errors.InvalidSetting, match="leave space, seed and curve out"):
        BelatedSearch(optimizer=optimizer, curve=bl.Curve(4))
    for search in (
        BelatedSearch(optimizer=optimizer, metric="loss"),
        searched(None, optimizer=functools.partial(bl.RandomSearch, curve=bl.Curve(4))),
    ):
        search.suggest("a")
        search.on_trial_result("a", result(1, 4.0))
        assert told(search) == [("pending", None, {1: 4.0})]


def train(config):
    for step in range(1, config["n_steps"] + 1):
        tune.report({"loss": config["x"] + 1 / step})


@pytest.mark.usefixtures("ray")
@pytest.mark.parametrize("n_steps", [9, 6])
def test_a_run_with_a_scheduler(n_steps, tmp_path, monkeypatch):
    """If the function ends after 6 of 9 steps, its last value is observed."""
    monkeypatch.setenv("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS", "1")
    search = BelatedSearch(curve=bl.Curve(9), optimizer=bl.RandomSearch, seed=0)
    results = tune.Tuner(
        train,
        param_space={"x": tune.uniform(0.0, 1.0), "n_steps": n_steps},
        tune_config=tune.TuneConfig(
            search_alg=search,
            scheduler=ASHAScheduler(max_t=9, grace_period=1, reduction_factor=3),
            metric="loss",
            mode="min",
            num_samples=10,
            max_concurrent_trials=2,
            reuse_actors=True,
        ),
        run_config=tune.RunConfig(storage_path=str(tmp_path), verbose=0),
    ).fit()
    found = {trial.params["x"]: trial for trial in search.optimizer_.trials}
    for each in results:
        trial, metrics = found[each.config["x"]], each.metrics
        last = metrics["training_iteration"]
        assert list(trial.curve) == list(range(1, last + 1))
        assert trial.curve[last] == metrics["loss"]
        expected = ("stopped", None) if last < n_steps else ("observed", metrics["loss"])
        assert (trial.state, trial.value) == expected
    states = [trial.state for trial in found.values()]
    assert len(found) == 10 and states.count("stopped") > 1 and states.count("observed") > 0
