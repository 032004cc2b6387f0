"""If a name comes from another package, the error states belated's name for the same thing."""

import inspect
import re

import numpy as np
import pytest

import belated as bl
from belated.hints import ELSEWHERE, RUN_ARGUMENTS
from belated.run.arguments import PASSED_ON
from tests.unit.optimizers.problem import BOX

OPTIMIZERS = pytest.mark.parametrize("make", [bl.BayesOpt, bl.RandomSearch])


def f(params):
    return 1.0


def message_of(call):
    with pytest.raises(bl.errors.UnknownArgument) as raised:
        call()
    assert isinstance(raised.value, (TypeError, ValueError)) and isinstance(raised.value, bl.BelatedError)
    assert isinstance(raised.value, TypeError) and isinstance(raised.value, bl.errors.InvalidSetting)
    return str(raised.value)


# Arguments.

MEANT = {
    **dict.fromkeys(["random_state", "random_seed", "rng", "rstate"], "seed"),
    **dict.fromkeys(["bounds", "pbounds", "dimensions", "search_space", "parameters"], "space"),
    **dict.fromkeys(["n_startup_trials", "n_initial_points", "init_points", "n_random_starts"], "initial"),
    **dict.fromkeys(["acq_func", "acquisition_function"], "acquisition"),
    "base_estimator": "surrogate",
}
MEANT_BY_RUNS = {
    **dict.fromkeys(["n_iter", "n_calls", "max_evals", "num_samples", "total_trials", "n_trails"], "n_trials"),
    **dict.fromkeys(["n_jobs", "max_workers", "num_workers"], "n_workers"),
    **dict.fromkeys(["verbose", "show_progress_bar", "disp"], "progress"),
    **dict.fromkeys(["func", "fn", "objective"], "f"),
    **dict.fromkeys(["callback", "timeout_seconds", "study", "sampler"], None),
}
NEAREST = {"callback": "callbacks", "timeout_seconds": "timeout", "study": "optimizer", "sampler": "optimizer"}


@pytest.mark.parametrize(("name", "meant"), (MEANT | MEANT_BY_RUNS | NEAREST).items())
def test_arguments_of_runs(name, meant):
    message = message_of(lambda: bl.minimize(f, BOX, n_trials=3, **{name: 3}))
    if meant == "surrogate":
        meant = "optimizer=bl.BayesOpt(…, surrogate=…)"
    assert message.startswith(f"{name}=3 ") and f"minimize: did you mean {meant}?" in message


def test_each_argument_of_a_run_is_listed_once():
    _, _, listed = message_of(lambda: bl.maximize(f, BOX, n_trials=3, qqqq=3)).partition(": it has ")
    assert listed.split(", ") == list(dict.fromkeys(listed.split(", ")))
    assert set(listed.split(", ")) == {*RUN_ARGUMENTS, *PASSED_ON}


@pytest.mark.parametrize(("name", "meant"), MEANT.items())
def test_arguments_of_bayes_opt(name, meant):
    message = message_of(lambda: bl.BayesOpt(BOX, **{name: 3}))
    assert message.startswith(f"{name}=3 ") and f"BayesOpt: did you mean {meant}?" in message


@OPTIMIZERS
@pytest.mark.parametrize("name", ["n_iter", "n_calls", "max_evals", "n_jobs", "verbose", "n_trials", "timeout"])
def test_arguments_of_runs_given_to_an_optimizer(make, name):
    meant = MEANT_BY_RUNS.get(name, name)
    assert message_of(lambda: make(BOX, **{name: 3})).endswith(f"{meant} is an argument of bl.maximize and bl.minimize")


@OPTIMIZERS
@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("x0", r"enqueue(params) for points to evaluate, or its add(params, value)"),
        ("points_to_evaluate", "enqueue(params)"),
        ("storage", "bl.Study(name, store, optimizer)"),
        ("stop", "callbacks=[bl.NoImprovement(n)]"),
        ("early_stop_fn", "callbacks=[bl.ValueReached(value)]"),
        ("pruner", "stopping=bl.ASHA()"),
        ("directions", "declare the goals by outcomes"),
        ("constraints_func", "raise an exception in f and name its class in catch="),
        ("trials", "result.trials"),
        ("xi", "LogEI has no margin"),
    ],
)
def test_error_for_an_argument_without_counterpart_gives_advice(make, name, advice):
    assert advice in message_of(lambda: bl.minimize(f, BOX, n_trials=3, **{name: 3}))
    assert advice in message_of(lambda: make(BOX, **{name: 3}))


@pytest.mark.parametrize("name", ["mode", "maximize", "minimize"])
def test_error_for_a_direction_names_maximize_and_minimize(name):
    assert "call bl.maximize or bl.minimize" in message_of(lambda: bl.maximize(f, BOX, n_trials=3, **{name: "min"}))
    assert message_of(lambda: bl.BayesOpt(BOX, **{name: "min"})).endswith("did you mean direction?")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: bl.maximize(f, BOX, n_trials=3, kappa=2.0),
            r"did you mean acquisition=bl.UCB\(beta=…\)\?",
        ),
        (
            lambda: bl.maximize(f, BOX, n_trials=3, alpha=2.0),
            r"did you mean optimizer=bl.BayesOpt\(…, surrogate=bl.GP\(noise_std=…\)\)\?",
        ),
        (lambda: bl.GP(alpha=2.0), r"alpha=2.0 .*GP: did you mean noise_std\?"),
        (
            lambda: bl.algorithm("GP-UCB", BOX, random_state=0),
            r"random_state=0 .*GP-UCB: did you mean",
        ),
        (
            lambda: bl.algorithm("GP-UCB", BOX, n_calls=0),
            "n_calls=0 .*GP-UCB: n_trials is an argument of",
        ),
        (lambda: bl.BayesOpt(BOX, zzz=3), "zzz=3 .*BayesOpt: it has space, acquisition"),
    ],
)
def test_other_calls(call, message):
    assert re.search(message, message_of(call))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bl.Real(1e-3, 1.0, prior="log-uniform"), "prior='log-uniform' is not an argument of Real: .* log?"),
        (lambda: bl.Real(0.0, 1.0, q=0.1), "q=0.1 is not an argument of Real: did you mean step?"),
        (lambda: bl.Integer(0, 8, q=2), "q=2 is not an argument of Integer: did you mean step?"),
        (lambda: bl.Integer(0, 8, steps=2), "steps=2 is not an argument of Integer: did you mean step?"),
        (
            lambda: bl.Categorical(["a"], prior=[1]),
            "is not an argument of Categorical: it has choices, when",
        ),
        (lambda: bl.Ordinal([1, 2], where={"x": 1}), "is not an argument of Ordinal: did you mean when?"),
    ],
)
def test_arguments_of_parameters(call, message):
    assert re.match(f".*{message}", message_of(call))
    assert list(inspect.signature(bl.Real).parameters) == ["low", "high", "log", "step", "when", "offered"]


@pytest.mark.parametrize(
    ("given", "name"),
    [("random", "RandomSearch"), ("RandomSearch", "RandomSearch"), (bl.RandomSearch, "RandomSearch")]
    + [("random_search", "RandomSearch"), ("bayes", "BayesOpt"), ("tree", "TreeSearch"), (bl.BayesOpt, "BayesOpt")],
)
def test_error_for_the_name_of_an_optimizer_names_its_class(given, name):
    for call in (
        lambda: bl.maximize(f, {"x": (0.0, 1.0)}, optimizer=given, n_trials=1),
        lambda: bl.minimize(f, optimizer=given, n_trials=1),
    ):
        with pytest.raises(bl.errors.InvalidSetting, match=rf"is not usable: .*; use bl.{name}\(space\)$"):
            call()


def test_an_unknown_argument_does_not_start_a_trial():
    opt = bl.RandomSearch(BOX)
    message_of(lambda: bl.maximize(f, optimizer=opt, n_trials=3, n_jobs=3))
    assert opt.n_trials == 0


def test_the_table_of_hints_names_arguments_that_exist():
    assert tuple(inspect.signature(bl.maximize).parameters)[: len(RUN_ARGUMENTS)] == RUN_ARGUMENTS
    own = {*inspect.signature(bl.BayesOpt).parameters, *RUN_ARGUMENTS, "constraints"}
    assert not set(ELSEWHERE) & own and all(name == name.lower() for name in ELSEWHERE)
    for answer in ELSEWHERE.values():
        kind, _, field = answer.rpartition(".")
        if " " not in answer and kind:
            assert field in inspect.signature(getattr(bl, kind)).parameters
        elif " " not in answer:
            assert answer in own


# Attributes.


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("ask", "use suggest()"),
        ("tell", "use observe(trial, value)"),
        ("register", "use observe(trial, value)"),
        ("probe", "use enqueue(params)"),
        ("maximize", "use bl.maximize(f, optimizer=…, n_trials=…)"),
        ("minimize", "use bl.minimize(f, optimizer=…, n_trials=…)"),
        ("optimize", "use bl.maximize(f, optimizer=…, n_trials=…)"),
        ("max", "use best_trial_"),
        ("best_params", "use best_params_"),
        ("best_value", "use best_value_"),
        ("get_best_trial", "use best_trial_"),
        ("res", "use trials"),
        ("func_vals", "use trials_dataframe()"),
        ("sugest", "did you mean suggest?"),
    ],
)
def test_attributes(name, advice, tmp_path):
    study = bl.Study("s", f"sqlite:///{tmp_path / 'studies.db'}", bl.RandomSearch(BOX))
    for optimizer in (bl.BayesOpt(BOX), bl.RandomSearch(BOX), study):
        with pytest.raises(AttributeError, match=f"^'{type(optimizer).__name__}' .*'{name}': {re.escape(advice)}$"):
            getattr(optimizer, name)
        # The names in the hints exist in belated.
        there = re.search(r"(bl\.)?(\w+)(\(.*\))?\??$", advice)
        assert hasattr(bl if there[1] else optimizer, there[2])


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("x", "use best_params_"),
        ("fun", "use best_value_"),
        ("best_params", "use best_params_"),
        ("res", "use trials"),
        ("ask", "use optimizer.suggest()"),
        ("tell", "use optimizer.observe(trial, value)"),
        ("trails", "did you mean trials?"),
    ],
)
def test_attributes_of_results(name, advice):
    with pytest.raises(AttributeError, match="'Result' object has no attribute") as raised:
        getattr(bl.maximize(f, BOX, n_trials=1), name)
    assert str(raised.value).endswith(f": {advice}")


@OPTIMIZERS
def test_private_names_are_not_affected_by_hints(make):
    opt = make(BOX, seed=0)
    opt.suggest()
    for private in ("_repr_png_", "_ipython_canary_method_should_not_exist_", "__array__", "__len__", "_ask"):
        with pytest.raises(AttributeError, match=f"object has no attribute {private!r}$"):
            getattr(opt, private)
    bare = make.__new__(make)
    with pytest.raises(AttributeError, match="use suggest"):
        _ = bare.ask
    assert not hasattr(bare, "_log")


def test_an_attribute_error_within_a_property_is_not_hidden():
    class Broken(bl.RandomSearch):
        @property
        def best_value_(self):
            return [].missing

    with pytest.raises(AttributeError, match="'list' object has no attribute 'missing'"):
        _ = Broken(BOX).best_value_


def test_a_subclass_may_take_other_keywords():
    class Named(bl.RandomSearch):
        def __init__(self, space, label="", **settings):
            super().__init__(space, **settings)
            self.label = label

    made = Named(BOX, label="a", seed=3)
    assert (made.label, made.seed_) == ("a", 3)
    with pytest.raises(TypeError, match="sead"):
        Named(BOX, sead=3)


def test_ipython_shows_optimizers_and_results():
    display = pytest.importorskip("IPython.core.formatters").DisplayFormatter()
    for shown in (bl.RandomSearch(BOX), bl.maximize(f, BOX, n_trials=1)):
        data, _ = display.format(shown)
        assert set(data) == {"text/plain", "text/html"}


@pytest.mark.parametrize(
    ("argument", "given", "wanted"),
    [
        ("acquisition", "EI", "log_ei"),
        ("acquisition", "expected_improvement", "log_ei"),
        ("acquisition", "LCB", "ucb"),
        ("acquisition", "TS", "thompson"),
        ("pending", "constant_liar", "liar"),
        ("pending", "fantasies", "integrate"),
    ],
)
def test_error_for_a_value_name_of_another_package_gives_advice(argument, given, wanted):
    with pytest.raises(bl.errors.InvalidSetting, match=f"did you mean '{wanted}'"):
        bl.BayesOpt({"x": (0.0, 1.0)}, **{argument: given})
    assert bl.BayesOpt({"x": (0.0, 1.0)}, **{argument: wanted})


@pytest.mark.parametrize("kind", ["BayesOpt", "RandomSearch", "Study"])
def test_error_for_an_unknown_argument_of_a_method_names_the_public_class(kind, tmp_path):
    space = {"x": (0.0, 1.0)}
    opt = bl.BayesOpt(space) if kind == "BayesOpt" else bl.RandomSearch(space)
    if kind == "Study":
        opt = bl.Study("s", f"sqlite:///{tmp_path / 's.db'}", opt)
    trial = opt.suggest()
    for call, message in (
        (lambda: opt.recommend(k=3), rf"^k=3 is not an argument of {kind}.recommend: it has context, n"),
        (lambda: opt.suggest(count=3), rf"^count=3 is not an argument of {kind}.suggest: it has n, context, fidelity"),
        (lambda: opt.observe(trial, 1.0, stdev=1), rf"^stdev=1 is not an argument of {kind}.observe: did you mean std"),
        (
            lambda: opt.add({"x": 0.5}, 1.0, noise=3),
            rf"^noise=3 is not an argument of {kind}.add: it has params, value",
        ),
        (lambda: opt.enqueue({"x": 0.5}, value=3), rf"^value=3 is not an argument of {kind}.enqueue: "),
        (lambda: opt.fail(trial, reason="x"), rf"^reason='x' is not an argument of {kind}.fail: "),
    ):
        with pytest.raises(TypeError, match=message) as raised:
            call()
        assert isinstance(raised.value, bl.errors.InvalidSetting)
    assert [each.state for each in opt.trials] == ["pending"]


def test_error_for_params_in_place_of_a_trial_names_add():
    opt = bl.RandomSearch({"x": (0.0, 1.0)})
    opt.suggest()
    for params in ({"x": 0.5}, [0.5], [[1, 2], [3]], np.array([0.5])):
        with pytest.raises(bl.errors.UnknownTrial, match=r"is not a trial: .*add\(params, value\)"):
            opt.observe(params, 1.0)


def test_messages_have_one_line():
    opt = bl.RandomSearch({"x": (0.0, 1.0)})
    opt.suggest()
    calls = [
        lambda: opt.observe(0, np.eye(3)),
        lambda: opt.observe(0, 1.0, std=np.eye(3)),
        lambda: bl.BayesOpt({"x": np.eye(3)}),
    ]
    for call in calls:
        with pytest.raises(bl.BelatedError) as raised:
            call()
        assert len(str(raised.value).splitlines()) == 1


KINDS = {
    "BayesOpt": bl.BayesOpt,
    "RandomSearch": bl.RandomSearch,
    "TreeSearch": bl.TreeSearch,
    "BPEDelay": lambda *args, **kwargs: bl.BPEDelay(*args, horizon=10, lengthscale=0.3, noise_std=0.1, **kwargs),
}


@pytest.mark.parametrize(
    "asked",
    [
        {"fidelity": bl.Fidelity(1, 5)},
        {"context": {"age": (0.0, 1.0)}},
        {"space": {"k": ["a", "b"], "d": bl.Integer(1, 5, when={"k": "a"})}},
        {"candidates": np.eye(3), "space": None},
    ],
    ids=lambda asked: next(iter(asked)),
)
def test_optimizers_named_in_an_error_support_the_feature(asked):
    supported, named = set(), set()
    for name, kind in KINDS.items():
        try:
            kind(**({"space": {"x": (0.0, 1.0)}} | asked))
            supported.add(name)
        except bl.errors.InvalidSetting as error:
            [words] = re.findall("leave it out, or use (.*)$", str(error))
            named.add(frozenset(re.split(", | or ", words)))
    assert supported != KINDS.keys() and named == {frozenset(supported)}


# Names of the package, and methods that belated lacks.


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("gp_minimize", "use bl.minimize(f, space, n_trials=…)"),
        ("create_study", "use bl.Study(name, store, optimizer), or bl.maximize and bl.minimize without a store"),
        ("RandomSampler", "use bl.RandomSearch(space)"),
        ("CmaEsSampler", "belated has no evolutionary algorithms: use bl.BayesOpt"),
        ("forest_minimize", "belated has no forests or boosted trees: bl.BayesOpt fits"),
        ("minimise", "did you mean minimize?"),
        ("AlreadyObserved", "use belated.errors.AlreadyObserved"),
        ("UCBPE", "use belated.papers.UCBPE"),
    ],
)
def test_names_of_the_package(name, advice):
    with pytest.raises(AttributeError) as raised:
        getattr(bl, name)
    assert str(raised.value).startswith(f"module 'belated' has no attribute {name!r}: {advice}")
    for named in re.findall(r"bl\.(\w+)", str(raised.value)):
        assert hasattr(bl, named)


def test_names_of_the_package_without_counterpart_and_private_names_have_no_advice():
    for name in ("qqqq", "__wrapped__", "_minimize"):
        with pytest.raises(AttributeError, match=f"^module 'belated' has no attribute {name!r}$"):
            getattr(bl, name)


@pytest.mark.parametrize(
    ("method", "advice"),
    [
        ("CMA-ES", "no evolutionary algorithms: use bl.BayesOpt, or the package cma"),
        ("nsga-ii", "no evolutionary algorithms"),
        ("RF", "no forests or boosted trees: bl.BayesOpt fits a Gaussian process"),
        ("random forest", "no forests or boosted trees"),
        ("TPE", "no TPE: use bl.BayesOpt"),
        ("Hyperband", r"no Hyperband: pass curve=bl.Curve\(steps\) and stopping=bl.ASHA\(\)"),
    ],
)
def test_methods_that_belated_lacks(method, advice):
    calls = [
        lambda: bl.algorithm(method, BOX),
        lambda: bl.BayesOpt(BOX, surrogate=method),
        lambda: bl.minimize(f, optimizer=method, n_trials=1),
    ]
    for call in calls:
        with pytest.raises(bl.errors.InvalidSetting, match=f"{re.escape(repr(method))} is not .*{advice}"):
            call()
