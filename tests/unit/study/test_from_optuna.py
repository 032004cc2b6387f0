"""Studies converted from Optuna: the states of the trials, the space, and errors."""

import math
import pickle
import re
import sys
import warnings
from datetime import datetime

import numpy as np
import pytest

import belated as bl

optuna = pytest.importorskip("optuna")

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution  # noqa: E402
from optuna.trial import TrialState, create_trial  # noqa: E402

RATE = {"rate": FloatDistribution(1e-3, 1.0, log=True)}


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


@pytest.fixture
def storage():
    return optuna.storages.InMemoryStorage()


def create(storage, trials=(), name="theirs", **arguments):
    study = optuna.create_study(storage=storage, study_name=name, **arguments)
    study.add_trials(trials)
    return study


def trial_of(params, value=None, **arguments):
    distributions = arguments.pop("distributions", RATE)
    state = TrialState.COMPLETE if value is not None else TrialState.RUNNING
    return create_trial(params=params, distributions=distributions, value=value, **{"state": state} | arguments)


@pytest.mark.parametrize("clock", ["iterations", "seconds"])
@pytest.mark.parametrize("first", [0, 1])
def test_with_a_curve_reports_are_read_and_pruned_trials_are_stopped(first, clock):
    storage = optuna.storages.InMemoryStorage()
    theirs = create(storage, direction="maximize")

    def add(rate, state, values, **arguments):
        reported = dict(enumerate(values, first))
        theirs.add_trial(trial_of({"rate": rate}, state=state, intermediate_values=reported, **arguments))

    add(0.1, TrialState.COMPLETE, [1.0, 2.0, 3.0], value=3.0)
    add(0.2, TrialState.PRUNED, [1.0, float("nan")])
    add(0.3, TrialState.PRUNED, [float("nan"), 1.5])
    add(0.4, TrialState.PRUNED, [])
    add(0.5, TrialState.RUNNING, [0.5])
    add(0.6, TrialState.FAIL, [0.7])
    given = bl.BayesOpt({"rate": (0.0, 1.0)}, curve=bl.Curve(3), clock=clock)
    ours = bl.Study.from_optuna(storage, "theirs", optimizer=given)
    assert [(t.params["rate"], t.state) for t in ours.trials] == [
        (0.1, "observed"),
        (0.2, "failed"),
        (0.3, "stopped"),
        (0.4, "failed"),
        (0.5, "pending"),
        (0.6, "failed"),
    ]
    assert ours.trials[0].curve == {1: 1.0, 2: 2.0, 3: 3.0} and ours.trials[5].curve == {1: 0.7}
    assert math.isnan(ours.trials[2].curve[1]) and ours.trials[2].curve[2] == 1.5
    with pytest.raises(bl.errors.InvalidSetting, match=r"beyond|steps"):
        short = bl.BayesOpt({"rate": (0.0, 1.0)}, curve=bl.Curve(2))
        bl.Study.from_optuna(storage, "theirs", optimizer=short)


def conditional(trial):
    """An objective in which one parameter depends on a choice, and another parameter on a number."""
    if trial.suggest_categorical("model", ["svc", "forest", "none"]) == "svc":
        value = trial.suggest_float("C", 1e-2, 1e2, log=True)
    else:
        value = 3.0
    n_layers = trial.suggest_int("n_layers", 1, 4)
    for i in range(1, n_layers):
        value += trial.suggest_int(f"units_{i}", 4, 128, log=True) / 100
    return value


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_every_state_of_optuna_is_converted(storage, direction):
    theirs = create(storage, direction=direction)
    theirs.add_trial(trial_of({"rate": 0.5}, 1.0, user_attrs={"who": "Ada", "n": [1, 2]}))
    theirs.add_trial(trial_of({"rate": 0.25}, state=TrialState.FAIL))
    theirs.add_trial(trial_of({"rate": 0.125}, state=TrialState.PRUNED, intermediate_values={1: 7.0}))
    theirs.add_trial(trial_of({}, state=TrialState.FAIL, distributions={}))  # the trial failed without a point
    theirs.add_trial(trial_of({"rate": 0.75}, user_attrs={"gpu": 3}))
    theirs.add_trial(trial_of({}, distributions={}))
    theirs.add_trial(trial_of({"rate": 0.3}, 2.0, system_attrs={"constraints": [-1.0, 0.5]}))
    theirs.add_trial(trial_of({"rate": 0.4}, 3.0, system_attrs={"constraints:memory": 0.0}))
    theirs.add_trial(trial_of({"rate": 0.6}, float("inf")))
    theirs.enqueue_trial({"rate": 0.01})
    theirs.enqueue_trial({"other": 0.01})

    ours = bl.Study.from_optuna(storage, "theirs")
    states = [(trial.params["rate"], trial.state, trial.value) for trial in ours.trials]
    assert states == [
        (0.5, "observed", 1.0),
        (0.25, "failed", None),
        (0.125, "abandoned", None),
        (0.75, "pending", None),
        (0.3, "failed", None),
        (0.4, "observed", 3.0),
        (0.6, "failed", None),
    ]
    assert ours.trials[0].attrs == {"who": "Ada", "n": [1, 2]} and ours.trials[3].attrs == {"gpu": 3}
    assert str(ours.trials[4].error) == "infeasible: constraints at [0.5] are above 0"
    assert ours.best_value_ == (1.0 if direction == "minimize" else 3.0)
    assert ours.suggest().params == {"rate": 0.01}
    ours.observe(3, 0.5)
    assert ours.trials[3].value == 0.5


def test_user_attributes_that_are_not_json_data_are_changed_with_a_warning(storage, tmp_path):
    nan, inf = float("nan"), float("inf")
    theirs = create(storage)
    theirs.add_trial(
        trial_of({"rate": 0.5}, 1.0, user_attrs={"a": [1, nan], "b": {"c": -inf, 2: {3.5: "d"}}, "e": "f"})
    )
    theirs.add_trial(trial_of({"rate": 0.25}, 2.0, user_attrs={"e": np.float64(nan), "g": inf, "h": np.int64(3)}))
    theirs.add_trial(trial_of({"rate": 0.75}, 3.0, user_attrs={"s": {1}, "x": np.arange(3), "t": (1, "\udc00")}))
    deep = [nan]
    for _ in range(200):
        deep = [deep]
    theirs.add_trial(trial_of({"rate": 0.3}, 4.0, user_attrs={"deep": deep, "e": True}))
    theirs.add_trial(trial_of({"rate": 0.4}, 5.0, user_attrs={"whole": {"n": [1, None, "é"]}}))
    with pytest.warns(bl.BelatedWarning, match="None") as caught:
        ours = bl.Study.from_optuna(storage, "theirs", tmp_path / "ours.db")
    # There is a single warning, which names exactly the attributes that were changed.
    assert len(caught) == 1
    named = set(re.findall(r"'(\w+)'", str(caught[0].message).split(":")[0])) - {"theirs"}
    assert named == {"a", "b", "e", "g", "s", "x", "t", "deep"}
    for study in (ours, bl.Study.load("theirs", tmp_path / "ours.db")):
        attrs = [trial.attrs for trial in study.trials]
        assert attrs[0] == {"a": [1, None], "b": {"c": None, "2": {"3.5": "d"}}, "e": "f"}
        assert attrs[1] == {"e": None, "g": None, "h": 3}
        assert attrs[2] == {"s": "{1}", "x": [0, 1, 2], "t": [1, "\\udc00"]}
        assert attrs[3]["deep"] and attrs[3]["e"] is True
        assert attrs[4] == {"whole": {"n": [1, None, "é"]}}


def test_converted_study_equals_a_study_built_by_calls(storage):
    theirs = create(storage)
    theirs.optimize(lambda t: t.suggest_float("x", -1.0, 2.0) ** 2 + t.suggest_int("n", 1, 9), 12)
    study = bl.Study.from_optuna(storage, "theirs", optimizer=None)
    reference = bl.BayesOpt(
        {"x": (-1.0, 2.0), "n": bl.Integer(1, 9)}, direction="minimize", seed=study.get_params()["seed"]
    )
    for trial in theirs.trials:
        reference.observe(reference.add(trial.params), trial.value)
    assert dict(study.get_params()["space"]) == dict(reference.domain)
    np.testing.assert_array_equal(study.predict([{"x": 0.5, "n": 3}]), reference.predict([{"x": 0.5, "n": 3}]))


def test_converted_study_is_kept_in_the_given_store(storage, tmp_path):
    url = f"sqlite:///{tmp_path / 'optuna.db'}"
    create(url).optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), 4)
    store = f"sqlite:///{tmp_path / 'belated.db'}"
    made = bl.Study.from_optuna(url, "theirs", store, bl.RandomSearch({"x": (0.0, 1.0)}, direction="minimize", seed=1))
    again = bl.Study.load("theirs", store)
    assert again.trials_dataframe().equals(made.trials_dataframe()) and len(again.trials) == 4
    again.suggest()
    with pytest.raises(bl.errors.InvalidSetting, match="study 'theirs' exists already in .*: pass another study_name"):
        bl.Study.from_optuna(url, "theirs", store)
    assert bl.Study.from_optuna(url, "theirs", store, study_name="second").name == "second"
    assert len(optuna.load_study(study_name="theirs", storage=url).trials) == 4


def test_times_equal_those_of_optuna(storage):
    theirs = create(storage)
    trial = trial_of({"rate": 0.5}, 1.0)
    trial.datetime_start, trial.datetime_complete = datetime(2026, 1, 2, 3, 4, 5), datetime(2026, 1, 2, 3, 5, 6)
    theirs.add_trial(trial)
    iterations = bl.Study.from_optuna(storage, "theirs").trials[0]
    assert (iterations.duration, iterations.suggested_at) == (61.0, 0.0)
    optimizer = bl.BayesOpt({"rate": bl.Real(1e-3, 1.0, log=True)}, direction="minimize", clock="seconds")
    seconds = bl.Study.from_optuna(storage, "theirs", optimizer=optimizer).trials[0]
    assert datetime.fromtimestamp(seconds.suggested_at) == trial.datetime_start
    assert datetime.fromtimestamp(seconds.ended_at) == trial.datetime_complete and seconds.delay == 61.0


def test_a_condition_on_one_parameter_is_found(storage):
    theirs = create(storage, sampler=optuna.samplers.RandomSampler(seed=0))
    theirs.optimize(conditional, 40)
    study = bl.Study.from_optuna(storage, "theirs")
    space = study.get_params()["space"]
    assert space["C"].when == {"model": ("svc",)} or dict(space["C"].when) == {"model": ["svc"]}
    for i in (1, 2, 3):
        [(parent, values)] = space[f"units_{i}"].when.items()
        assert parent == "n_layers" and list(values) == list(range(i + 1, 5))
    assert [trial.params for trial in study.trials] == [trial.params for trial in theirs.trials]
    for _ in range(5):
        params = study.suggest().params
        assert ("C" in params) is (params["model"] == "svc")


def test_a_threshold_includes_unobserved_numbers(storage):
    trials = [
        trial_of(
            {"n": n} | ({"x": 0.5} if n >= 4 else {}),
            float(n),
            distributions={"n": IntDistribution(1, 9)} | ({"x": FloatDistribution(0.0, 1.0)} if n >= 4 else {}),
        )
        for n in (1, 3, 4, 7)
    ]
    create(storage, trials)
    assert list(bl.Study.from_optuna(storage, "theirs").get_params()["space"]["x"].when["n"]) == [4, 5, 6, 7, 8, 9]


def test_parameters_of_unknown_condition_are_refused_without_a_space(storage):
    both = RATE | {"x": FloatDistribution(0.0, 1.0)}
    trials = [trial_of({"rate": 0.1}, 1.0), trial_of({"rate": 0.1, "x": 0.5}, 2.0, distributions=both)]
    create(storage, trials)
    with pytest.raises(
        bl.errors.InvalidSpace, match="parameter 'x' is in some trials only, and no other parameter tells"
    ):
        bl.Study.from_optuna(storage, "theirs")
    # If the caller passes an optimizer, the space of this optimizer may omit the parameter.
    optimizer = bl.RandomSearch({"rate": bl.Real(1e-3, 1.0, log=True)}, direction="minimize")
    assert bl.Study.from_optuna(storage, "theirs", optimizer=optimizer).n_trials == 2


def test_all_kinds_of_distributions_are_read(storage):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        distributions = {
            "a": FloatDistribution(0.0, 1.0, step=0.25),
            "b": FloatDistribution(1e-3, 1.0, log=True),
            "c": IntDistribution(0, 10, step=5),
            "d": IntDistribution(1, 64, log=True),
            "e": CategoricalDistribution([None, True, 3, 2.5, "x"]),
            "f": IntDistribution(7, 7),
            "g": CategoricalDistribution(["only"]),
        }
    study = create(storage)
    for _ in range(3):
        study.tell(study.ask(distributions), 1.0)
    assert dict(bl.Study.from_optuna(storage, "theirs").get_params()["space"]) == {
        "a": bl.Real(0.0, 1.0, step=0.25),
        "b": bl.Real(1e-3, 1.0, log=True),
        "c": bl.Integer(0, 10, step=5),
        "d": bl.Integer(1, 64, log=True),
        "e": bl.Categorical([None, True, 3, 2.5, "x"]),
        "f": bl.Categorical([7]),
        "g": bl.Categorical(["only"]),
    }


def test_a_study_in_memory_is_not_pickled(storage):
    create(storage, [trial_of({"rate": 0.5}, 1.0)])
    with pytest.raises(bl.errors.InvalidSetting, match="study 'theirs' is kept in .* memory and cannot be pickled"):
        pickle.dumps(bl.Study.from_optuna(storage, "theirs"))


# Refusals.


def test_a_study_that_does_not_exist_is_refused(storage, tmp_path):
    create(storage, name="other")
    with pytest.raises(
        bl.errors.InvalidSetting, match=r"there is no study 'theirs' of Optuna .*: pass one of \['other'\]"
    ):
        bl.Study.from_optuna(storage, "theirs")


def test_error_names_optuna_if_it_is_missing(storage, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ImportError, match=r"from_optuna needs optuna: pip install 'belated\[optuna\]'"):
        bl.Study.from_optuna(storage, "theirs")


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("names", [None, ["cost", "yield"], ["same", "same"]])
def test_several_objectives_are_outcomes(storage, names):
    theirs = create(storage, directions=["minimize", "maximize"])
    if names is not None:
        theirs.set_metric_names(names)

    def add(rate, values=None, constraints=None, **arguments):
        state = TrialState.RUNNING if values is None else TrialState.COMPLETE
        attrs = {"state": state, "system_attrs": constraints or {}} | arguments
        theirs.add_trial(create_trial(params={"rate": rate}, distributions=RATE, values=values, **attrs))

    add(0.1, [1.0, 5.0])
    add(0.2, [2.0, 6.0], {"constraints:memory": -1.0})
    add(0.3, [3.0, 1.0], {"constraints": [-1.0]})
    add(0.4, [0.5, 9.0], {"constraints": [0.5]})
    add(0.5, [float("-inf"), 7.0])
    add(0.6, [4.0, float("-inf")])
    add(0.7, state=TrialState.FAIL)
    add(0.8, state=TrialState.PRUNED)
    add(0.9)
    ours = bl.Study.from_optuna(storage, "theirs")
    first, second = names if names == ["cost", "yield"] else ["values_0", "values_1"]
    outcomes = {first: bl.Minimize(), second: bl.Maximize()}
    outcomes |= {"constraints[0]": bl.AtMost(0.0), "constraints:memory": bl.AtMost(0.0)}
    assert ours.get_params()["outcomes"] == outcomes and list(ours.get_params()["outcomes"]) == list(outcomes)
    assert [trial.values for trial in ours.trials] == [
        {first: 1.0, second: 5.0},
        {first: 2.0, second: 6.0, "constraints:memory": -1.0},
        {first: 3.0, second: 1.0, "constraints[0]": -1.0},
        {first: 0.5, second: 9.0, "constraints[0]": 0.5},
        {second: 7.0},
        {first: 4.0},
        {},
        {},
        {},
    ]
    states = [[each.state for each in trial.outcomes.values()] for trial in ours.trials]
    assert states[4:] == [
        ["failed", "observed", "abandoned", "abandoned"],
        ["observed", "failed", "abandoned", "abandoned"],
        ["failed"] * 4,
        ["abandoned"] * 4,
        ["pending"] * 4,
    ]
    # Objectives are matched by the names of metrics, or else by their order.
    order = (second, first) if first == "cost" else (first, second)
    given = bl.RandomSearch(ours.domain, outcomes={"constraints[0]": bl.AtMost(0.0)} | {k: outcomes[k] for k in order})
    again = bl.Study.from_optuna(storage, "theirs", optimizer=given, study_name="again")
    assert [trial.values.get(second) for trial in again.trials] == [trial.values.get(second) for trial in ours.trials]
    # The trials without a constraint are not in the front, because the constraint is an outcome that they lack.
    assert [trial.number for trial in again.pareto_] == [2]


@pytest.mark.parametrize(
    ("outcomes", "message"),
    [
        (None, r"optimizer has the objectives \[\], and Optuna's study 'theirs' has"),
        ({"a": "minimize", "b": "minimize"}, r"objectives \['a', 'b'\]"),
        ({"a": "minimize", "b": bl.Record()}, r"objectives \['a'\]"),
        ({"a": "minimize", "b": "maximize", "c": bl.AtMost(4.0)}, "at most 0"),
    ],
)
def test_optimizers_with_other_objectives_are_refused(storage, outcomes, message):
    create(storage, directions=["minimize", "maximize"])
    with pytest.raises(bl.errors.InvalidSetting, match=message):
        bl.Study.from_optuna(storage, "theirs", optimizer=bl.RandomSearch({"rate": (0.0, 1.0)}, outcomes=outcomes))


def test_four_objectives_are_refused(storage):
    create(storage, directions=["minimize"] * 4)
    with pytest.raises(bl.errors.InvalidSetting, match="study 'theirs' has 4 objectives, and at most 3"):
        bl.Study.from_optuna(storage, "theirs")


@pytest.mark.parametrize(
    ("distributions", "message"),
    [
        ({"rate": IntDistribution(0, 2**45)}, "parameter 'rate' has .* which cannot be searched"),
        ({"rate": CategoricalDistribution([1, 1.0])}, "parameter 'rate' has .* which cannot be searched"),
    ],
)
def test_distributions_that_cannot_be_searched_are_refused(storage, distributions, message):
    create(storage, [trial_of({"rate": 1}, 1.0, distributions=distributions)])
    with pytest.raises(bl.errors.InvalidSpace, match=message):
        bl.Study.from_optuna(storage, "theirs")


def test_a_parameter_of_several_distributions_is_refused_without_a_space(storage):
    wide = {"rate": FloatDistribution(1e-3, 10.0, log=True)}
    create(storage, [trial_of({"rate": 0.5}, 1.0), trial_of({"rate": 5.0}, 2.0, distributions=wide)])
    with pytest.raises(bl.errors.InvalidSpace, match="parameter 'rate' has .* in one trial and .* in another"):
        bl.Study.from_optuna(storage, "theirs")
    optimizer = bl.RandomSearch({"rate": bl.Real(1e-3, 10.0, log=True)}, direction="minimize")
    assert bl.Study.from_optuna(storage, "theirs", optimizer=optimizer).n_trials == 2
    narrow = bl.RandomSearch({"rate": bl.Real(1e-3, 1.0, log=True)}, direction="minimize")
    with pytest.raises(bl.errors.InvalidPoint, match="trial 1 of Optuna's study 'theirs': "):
        bl.Study.from_optuna(storage, "theirs", optimizer=narrow)


def test_a_study_without_trials_needs_a_space(storage):
    create(storage)
    with pytest.raises(bl.errors.InvalidSpace, match="has no trial with parameters"):
        bl.Study.from_optuna(storage, "theirs")
    optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, direction="minimize")
    assert bl.Study.from_optuna(storage, "theirs", optimizer=optimizer).n_trials == 0


def test_the_given_optimizer_keeps_no_trials(storage, tmp_path):
    study = create(storage, [trial_of({"rate": 0.5}, 1.0), trial_of({"rate": 0.25}, 2.0)])
    store = f"sqlite:///{tmp_path / 'belated.db'}"
    given = bl.BayesOpt({"rate": bl.Real(1e-3, 1.0, log=True)}, direction="minimize", seed=1)
    made = bl.Study.from_optuna(storage, "theirs", store, given)
    assert made.n_trials == 2 and given.n_trials == 0
    with pytest.raises(bl.errors.InvalidSetting):
        bl.Study.from_optuna(storage, "theirs", store, given)
    assert made.n_trials == 2 and given.n_trials == 0
    with pytest.raises(bl.errors.InvalidSetting, match="there is no study 'none'"):
        bl.Study.from_optuna(storage, "none", store, given)
    wide = {"rate": FloatDistribution(1e-3, 10.0, log=True)}
    study.add_trial(trial_of({"rate": 5.0}, 2.0, distributions=wide))
    for _ in range(2):
        with pytest.raises(bl.errors.InvalidPoint, match="trial 2 of Optuna's study 'theirs': "):
            bl.Study.from_optuna(storage, "theirs", store, given, study_name="second")
    assert given.n_trials == 0
    assert bl.Study("second", store, given).n_trials == 0  # a conversion that raises an error does not create a study


def test_an_optimizer_is_taken_over_with_its_clock_and_its_constraints(storage):
    create(storage, [trial_of({"rate": 0.5}, 1.0)])
    given = bl.BayesOpt(
        {"rate": bl.Real(1e-3, 1.0, log=True)},
        direction="minimize",
        constraints=[lambda params: params["rate"] < 0.1],
        clock="seconds",
        time=lambda: 2e9,
        acquisition=bl.UCB(3.0),
        seed=5,
    )
    study = bl.Study.from_optuna(storage, "theirs", optimizer=given)
    assert study.get_params()["seed"] == 5 and study.get_params()["acquisition"] == bl.UCB(3.0)
    trial = study.suggest()
    assert trial.params["rate"] < 0.1 and trial.suggested_at == 2e9


@pytest.mark.parametrize("kind", [bl.BayesOpt, bl.RandomSearch])
def test_constraints_are_outcomes_of_an_optimizer_that_declares_them(storage, kind):
    theirs = create(storage)

    def add(rate, value=None, constraints=None, **arguments):
        theirs.add_trial(trial_of({"rate": rate}, value, system_attrs=constraints or {}, **arguments))

    add(0.1, 1.0, {"constraints": [-1.0, 0.5]})
    add(0.2, 2.0, {"constraints:size": -0.5, "constraints:memory": -0.25})
    add(0.3, float("inf"), {"constraints": [-1.0]})
    add(0.4, state=TrialState.PRUNED, constraints={"constraints": [0.5, 0.5]})
    add(0.5, state=TrialState.FAIL)
    add(0.6)
    space = {"rate": bl.Real(1e-3, 1.0, log=True)}
    outcomes = {"memory": bl.AtMost(0.0), "loss": "minimize", "size": bl.AtMost(0.0)}
    ours = bl.Study.from_optuna(storage, "theirs", optimizer=kind(space, outcomes=outcomes))
    assert [trial.values for trial in ours.trials] == [
        {"memory": -1.0, "loss": 1.0, "size": 0.5},
        {"memory": -0.25, "loss": 2.0, "size": -0.5},
        {"memory": -1.0},
        {"memory": 0.5, "size": 0.5},
        {},
        {},
    ]
    states = [[each.state for each in trial.outcomes.values()] for trial in ours.trials]
    assert states[2:] == [
        ["observed", "failed", "abandoned"],
        ["observed", "abandoned", "observed"],
        ["failed"] * 3,
        ["pending"] * 3,
    ]
    assert ours.best_trial_.number == 1
    # The best trial of Optuna is the same.
    assert theirs.best_trial.number == 1
    for wrong, message in [
        ({"loss": "minimize", "memory": bl.AtMost(0.0)}, "trial 0 of .* 2 constraints"),
        ({"loss": "minimize", "memory": bl.AtMost(4.0)}, "at most 0"),
    ]:
        with pytest.raises(bl.errors.InvalidSetting, match=message):
            bl.Study.from_optuna(storage, "theirs", optimizer=kind(space, outcomes=wrong), study_name="wrong")


def used():
    optimizer = bl.RandomSearch({"rate": (0.0, 1.0)}, direction="minimize")
    optimizer.suggest()
    return optimizer


@pytest.mark.parametrize(
    ("optimizer", "message"),
    [
        (lambda: bl.RandomSearch, "optimizer=.* is not usable"),
        (lambda: bl.RandomSearch({"rate": (0.0, 1.0)}), "optimizer has direction='maximize', and .* minimizes"),
        (lambda: bl.RandomSearch(candidates=[[1.0], [2.0]], direction="minimize"), "optimizer has candidates"),
        (used, "optimizer has trials already"),
    ],
)
def test_optimizers_that_are_not_usable_are_refused(storage, optimizer, message):
    create(storage, [trial_of({"rate": 0.5}, 1.0)])
    with pytest.raises(bl.errors.InvalidSetting, match=message):
        bl.Study.from_optuna(storage, "theirs", optimizer=optimizer())
