"""`BelatedSearch`, called as Ray Tune calls it but without a cluster: spaces, results, limits and errors."""

import numpy as np
import pytest

pytest.importorskip("ray", reason="Ray is not installed")
tune = pytest.importorskip("ray.tune", reason="Ray Tune is not installed")

from hypothesis import assume, given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from ray.tune.search import ConcurrencyLimiter, Searcher  # noqa: E402

import belated as bl  # noqa: E402
from belated.integrations.ray import BelatedSearch  # noqa: E402
from belated.integrations.ray.space import TuneSpace  # noqa: E402
from tests.ids import without_address  # noqa: E402

PARAM_SPACE = {
    "optim": {"lr": tune.loguniform(1e-4, 1e-1), "momentum": tune.quniform(0.0, 0.9, 0.1)},
    "layers": tune.randint(1, 4),
    "units": tune.choice([[16, 16], [32], "wide", (1, None)]),
    "epochs": 10,
}


def searched(**arguments):
    search = BelatedSearch(seed=0, **arguments)
    assert search.set_search_properties("loss", "min", PARAM_SPACE, num_samples=10)
    return search


def states(search):
    return [(trial.state, trial.value) for trial in search.optimizer_.trials]


# Spaces.


@pytest.mark.parametrize(
    "domain, dimension",
    [
        (tune.uniform(-1, 2), bl.Real(-1.0, 2.0)),
        (tune.loguniform(1e-3, 10), bl.Real(1e-3, 10.0, log=True)),
        (tune.quniform(0.3, 0.9, 0.1), bl.Real(0.3, 0.9, step=0.1)),
        (tune.randint(2, 9), bl.Integer(2, 8)),
        (tune.lograndint(1, 100), bl.Integer(1, 99, log=True)),
        (tune.qrandint(2, 10, 4), bl.Integer(4, 8, step=4)),
        (tune.qloguniform(1, 8, 0.5), bl.Real(1.0, 8.0, log=True, step=0.5)),
        (tune.qlograndint(4, 64, 4), bl.Integer(4, 64, log=True, step=4)),
        (tune.qrandint(2, 10, 1), bl.Integer(2, 9)),
        (tune.randint(3, 4), bl.Categorical([3])),
        (tune.choice(["a", None, (1, 2)]), bl.Categorical(["a", None, (1, 2)])),
    ],
    ids=without_address,
)
def test_domains(domain, dimension):
    assert TuneSpace({"x": domain, "y": (0.0, 1.0)}).space["x"] == dimension


@given(
    st.sampled_from([tune.uniform, tune.quniform, tune.randint, tune.lograndint, tune.qrandint, tune.loguniform]),
    st.integers(1, 40),
    st.integers(1, 40),
    st.sampled_from([1, 2, 5]),
)
def test_spaces_of_tune_and_belated_have_the_same_values(domain, low, width, q):
    # Some releases of Ray ignore a step of 1.
    assume(domain is not tune.quniform or q > 1)
    low, high = low * q, (low + width) * q
    drawn = domain(low, high, q) if domain in (tune.quniform, tune.qrandint) else domain(low, high)
    space = TuneSpace({"x": drawn, "y": (0.0, 1.0)}).space
    if space["x"].width:
        for value in drawn.sample(size=5):
            space["x"].check(value)
    for u in (0.0, 0.3, 1.0):
        value = space["x"].decode([u])
        assert type(value) is type(drawn.sample()) and drawn.is_valid(value)
        assert not isinstance(value, int) or value < high or domain is tune.qrandint


def test_configs_are_nested_and_without_constants():
    config = searched().suggest("a")
    assert config.keys() == {"optim", "layers", "units"} and config["optim"].keys() == {"lr", "momentum"}


def test_a_space_of_belated_with_names_of_nested_parameters_and_conditions():
    space = {
        "model/kind": ["svc", "tree"],
        "model/depth": bl.Integer(1, 9, when={"model/kind": "tree"}),
        "optim": {"lr": tune.uniform(0, 1), "decay": bl.Real(1e-3, 1.0, log=True)},
        "epochs": 3,
    }
    search = BelatedSearch(space, metric="loss", mode="min", seed=0, optimizer=bl.RandomSearch)
    configs = [search.suggest(str(i)) for i in range(20)]
    assert {"depth" in config["model"] for config in configs} == {True, False}
    assert all(("depth" in config["model"]) == (config["model"]["kind"] == "tree") for config in configs)
    assert all(config["epochs"] == 3 and config["optim"].keys() == {"lr", "decay"} for config in configs)


@pytest.mark.parametrize(
    "space, message",
    [
        ({"x": tune.grid_search([1, 2])}, "'x' is a grid_search, .* write tune.choice"),
        (
            {"x": {"y": tune.sample_from(lambda _: 1)}},
            "space\\['x/y'\\]: Function .* cannot be searched: write tune.uni",
        ),
        ({"x": tune.randn(0, 1)}, "space\\['x'\\]: Float drawn by Normal cannot be searched"),
        ({"x": [tune.uniform(0, 1)]}, "'x' is a list with .* in it: give each parameter a name"),
        ({"x": [[{"a": tune.uniform(0, 1)}]]}, "'x' is a list with .* in it: give each parameter a name"),
        (
            {"x": tune.choice([{"a": tune.uniform(0, 1)}, {"b": 1}])},
            "space\\['x'\\]: a choice has the domain .* with when=",
        ),
        ({"x": tune.choice(["a", ("b", [{"c": tune.randint(0, 9)}])])}, "space\\['x'\\]: a choice has the domain .*"),
        ({"x": tune.choice([{"a": tune.grid_search([1, 2])}, None])}, "space\\['x'\\]: a choice has the domain .*"),
        ({"x": tune.choice([1, tune.uniform(0, 1)])}, "a choice has the domain"),
        ({"x": tune.choice([1, 2, 1])}, "space\\['x'\\]: choices has 1 twice"),
        ({"x/y": tune.uniform(0, 1)}, "the name 'x/y' is not usable: keys are strings without '/'"),
        ({"x": 1, "y": {"z": "constant"}}, "param_space has only constants"),
    ],
    ids=without_address,
)
def test_param_spaces_that_cannot_be_searched(space, message):
    search = BelatedSearch()
    with pytest.raises(bl.errors.InvalidSpace, match=message):
        search.set_search_properties("loss", "min", space)
    assert search.set_search_properties("loss", "min", PARAM_SPACE)


def test_a_parameter_cannot_be_a_dict_of_parameters_too():
    with pytest.raises(bl.errors.InvalidSpace, match="'x' is a parameter, and a dict with \\['x/y'\\]"):
        BelatedSearch({"x": (0.0, 1.0), "x/y": (0.0, 1.0)})


# Results.


def test_values_reach_the_optimizer_in_its_direction_and_any_order():
    search = searched()
    for trial_id in "abc":
        search.suggest(trial_id)
    search.on_trial_complete("c", {"loss": np.float32(0.5), "time_total_s": 2.0})
    search.on_trial_result("a", {"loss": 0.75})
    search.on_trial_complete("a", {"loss": 0.25, "config/epochs": 10})
    assert states(search) == [("observed", 0.25), ("pending", None), ("observed", 0.5)]
    assert search.optimizer_.best_value_ == 0.25 and search.optimizer_.direction == "minimize"
    assert search.optimizer_.trials[2].duration == 2.0
    assert search.optimizer_.trials[2].attrs == {"tune_trial": "c"}


def test_suggestions_equal_the_suggestions_of_the_optimizer():
    search, opt = searched(), bl.BayesOpt(TuneSpace(PARAM_SPACE["optim"]).space, direction="minimize", seed=0)
    search = BelatedSearch(PARAM_SPACE["optim"], metric="loss", mode="min", seed=0)
    for i in range(12):
        trial = opt.suggest()
        assert search.suggest(str(i)) == trial.params
        opt.observe(trial, trial.params["lr"])
        search.on_trial_complete(str(i), {"loss": trial.params["lr"]})


def test_a_second_request_for_a_trial_returns_the_same_config():
    search = searched()
    assert search.suggest("a") == search.suggest("a") and len(search.optimizer_.trials) == 1


def test_trials_without_a_value_have_failed_or_are_abandoned():
    search = searched()
    for trial_id in "abcde":
        search.suggest(trial_id)
    search.on_trial_complete("a", error=True)
    search.on_trial_complete("b")
    with pytest.warns(bl.BelatedWarning, match="trial c of Tune counts as failed: the metric 'loss' is not among its"):
        search.on_trial_complete("c", {"accuracy": 0.5})
    with pytest.warns(bl.BelatedWarning, match="the metric 'loss' is nan, not a finite number"):
        search.on_trial_complete("d", {"loss": float("nan")})
    search.on_trial_complete("e", {"accuracy": 0.5})
    expected = ["failed", "abandoned", "failed", "failed", "failed"]
    assert [trial.state for trial in search.optimizer_.trials] == expected
    assert search.optimizer_.trials[4].error.message == "the metric 'loss' is not among its results"
    # If Tune runs a trial again, a failed trial may get a value, and a value may be replaced.
    for value in (1.0, 2.0):
        search.on_trial_complete("a", {"loss": value})
    assert states(search)[0] == ("observed", 2.0)
    search.on_trial_complete("a", error=True)
    assert states(search)[0] == ("observed", 2.0)


def test_a_trial_that_is_stopped_while_it_is_paused_has_its_last_value():
    search = searched()
    search.suggest("a")
    for value in (0.5, 0.25, float("nan")):
        search.on_trial_result("a", {"loss": value})
    search.on_trial_complete("a")
    assert states(search) == [("observed", 0.25)]


def test_evaluated_points_are_added_and_points_to_evaluate_come_first():
    first = {"optim": {"lr": 1e-2, "momentum": 0.5}, "layers": 2, "units": "wide"}
    search = searched(points_to_evaluate=[first])
    search.add_evaluated_point({"optim/lr": 1e-3, "optim/momentum": 0.1, "layers": 1, "units": [32], "epochs": 1}, 3.0)
    search.add_evaluated_point(first, 2.0, pruned=True)
    search.add_evaluated_point(first, None, error=True)
    search.add_evaluated_point(first, None)
    assert states(search) == [("observed", 3.0), ("observed", 2.0), ("failed", None), ("abandoned", None)]
    assert search.suggest("a") == first
    with pytest.raises(bl.errors.InvalidPoint, match="misses \\['layers', 'units'\\]"):
        search.add_evaluated_point({"optim/lr": 1e-3, "optim/momentum": 0.1}, 3.0)


def test_the_number_of_simultaneous_trials_is_limited():
    search = searched()
    limiter = ConcurrencyLimiter(search, max_concurrent=2)
    assert limiter.suggest("a") and limiter.suggest("b") and limiter.suggest("c") is None
    limiter.on_trial_complete("a", {"loss": 1.0})
    assert limiter.suggest("c") and limiter.suggest("d") is None
    with pytest.raises(bl.errors.InvalidSetting, match="max_concurrent=0 is not usable"):
        search.set_max_concurrency(0)


def test_a_horizon_ends_the_search():
    def made(space, **arguments):
        return bl.BPEDelay(space, horizon=20, lengthscale=0.2, noise_std=0.1, delay="none", **arguments)

    search = BelatedSearch({"x": (0.0, 1.0)}, metric="loss", mode="min", optimizer=made)
    found = [search.suggest(str(i)) for i in range(22)]
    assert found[20:] == [Searcher.FINISHED] * 2 and all(isinstance(config, dict) for config in found[:20])


# The optimizer.


def test_an_optimizer_object_is_accepted():
    opt = bl.RandomSearch({"x": (0.0, 1.0)}, direction="minimize", seed=0)
    search = BelatedSearch(optimizer=opt, metric="loss")
    assert search.mode == "min"
    search.suggest("a")
    search.on_trial_complete("a", {"loss": 1.0})
    assert search.optimizer_ is opt and opt.best_value_ == 1.0


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"metric": ["a", "b"], "mode": ["min", "max"]}, "metric=\\['a', 'b'\\]: belated optimises one metric"),
        ({"mode": "maximize"}, "mode='maximize' is not usable: pass 'max' or 'min'"),
        ({"metric": 3}, "metric=3 is not usable"),
        ({"optimizer": 3}, "optimizer=3 is not usable: pass an optimizer's class, or a function"),
        ({"optimizer": bl.RandomSearch({"x": (0.0, 1.0)}), "mode": "min"}, "has direction='maximize': let them agree"),
        ({"optimizer": bl.RandomSearch({"x": (0.0, 1.0)}), "seed": 1}, "leave space, seed and curve out"),
        ({"optimizer": bl.RandomSearch(candidates=[[0.0], [1.0]])}, "optimizer has candidates"),
        (
            {"optimizer": bl.RandomSearch({"x": (0.0, 1.0)}, context={"c": (0.0, 1.0)})},
            "optimizer has a context, which trials of Tune do not have",
        ),
        (
            {"optimizer": bl.RandomSearch({"x": (0.0, 1.0)}, outcomes={"error": "minimize"}), "mode": "min"},
            "optimizer has outcomes, which trials of Tune do not have",
        ),
        ({"space": {"x": (0.0, 1.0)}, "mode": "min", "optimizer": lambda space, **_: 3}, "optimizer returned 3"),
        (
            {"space": {"x": (0.0, 1.0)}, "mode": "min", "optimizer": lambda space, **_: bl.RandomSearch(space)},
            "use the given direction",
        ),
        (
            {
                "space": {"x": (0.0, 1.0)},
                "mode": "max",
                "optimizer": lambda space, **_: bl.RandomSearch({"y": (0.0, 1.0)}),
            },
            "does not search the given space",
        ),
        ({"space": 3}, "space=3 is not usable: pass a dict"),
    ],
    ids=without_address,
)
def test_arguments_that_are_refused(arguments, message):
    with pytest.raises(bl.BelatedError, match=message):
        BelatedSearch(**arguments)


def test_metric_and_mode_of_tune_are_used():
    search = BelatedSearch({"x": (0.0, 1.0)})
    with pytest.raises(bl.errors.InvalidSetting, match="space, metric or mode is missing: .*without a param_space"):
        search.suggest("a")
    with pytest.raises(bl.errors.InvalidSetting):
        search.save("nowhere")
    with pytest.raises(bl.errors.InvalidSetting):
        _ = search.optimizer_
    with pytest.raises(bl.errors.InvalidSetting, match="mode is missing"):
        search.set_search_properties("loss", None, {"epochs": 1})
    with pytest.raises(bl.errors.InvalidSetting, match="metric=\\['a', 'b'\\]"):
        search.set_search_properties(["a", "b"], ["min", "min"], {"epochs": 1})
    # The search already has a space, so it refuses a second one by returning False, and Tune then raises an error.
    assert search.set_search_properties("loss", "min", PARAM_SPACE) is False
    assert search.set_search_properties("loss", "min", {"epochs": 1}) is True
    with pytest.raises(bl.errors.InvalidSetting, match="mode='max' in Tune's configuration, and 'min' in the searcher"):
        search.set_search_properties("loss", "max", {"epochs": 1})
    # Setting the same space a second time is allowed.
    search = searched()
    assert search.set_search_properties("loss", "min", PARAM_SPACE) is True
    assert search.set_search_properties("loss", "min", PARAM_SPACE | {"layers": tune.randint(1, 5)}) is False
    # If no metric is given, the value is the number that the function returns.
    search = BelatedSearch()
    search.set_search_properties(None, "min", PARAM_SPACE)
    search.suggest("a")
    search.on_trial_complete("a", {"_metric": 2.0})
    assert states(search) == [("observed", 2.0)]
