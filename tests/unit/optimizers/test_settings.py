"""Settings: their shorthand, nested names, hints for unknown names, and how a definition stores settings."""

import contextlib
import dataclasses
import inspect
import itertools
import json
import re
import typing

import numpy as np
import pytest
from sklearn.base import clone

import belated as bl
from belated import _core
from belated.optimizers.outcomes import Goal
from belated.optimizers.values import Value, as_data, family_of
from belated.study.definition import definition_of
from tests.unit.optimizers.definitions import REQUIRED

SPACE = {"x": (0.0, 1.0), "n": (1, 5), "c": ["a", "b", "d"]}

SHORTHAND = [
    ("acquisition", "log_ei", bl.LogEI()),
    ("acquisition", "ucb", bl.UCB()),
    ("acquisition", "thompson", bl.ThompsonSampling()),
    ("acquisition", "max_variance", bl.papers.MaxVariance()),
    ("acquisition", "ucb_pe", bl.papers.UCBPE()),
    ("acquisition", "aegis", bl.papers.AEGiS()),
    ("pending", "integrate", bl.Integrate()),
    ("pending", "hallucinate", bl.Hallucinate()),
    ("pending", "ignore", bl.Ignore()),
    ("pending", "censor", bl.Censor()),
    ("pending", "liar", bl.Liar()),
    ("pending", "nearest", bl.papers.Nearest()),
    ("pending", "local_penalization", bl.papers.LocalPenalization()),
    ("pending", "playbook", bl.papers.PLAyBOOK()),
    ("surrogate", "gp", bl.GP()),
    ("initial", 7, bl.Initial(7)),
    ("initial", None, bl.Initial()),
    ("search", None, bl.Search()),
]


def refusal(call):
    with pytest.raises(bl.errors.InvalidSetting) as caught:
        call()
    return str(caught.value)


# Values.


@pytest.mark.parametrize("argument, short, value", SHORTHAND, ids=str)
def test_a_string_is_the_value_with_its_defaults(argument, short, value):
    space = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
    one, other = (bl.BayesOpt(space, seed=0, **{argument: given}) for given in (short, value))
    assert definition_of(one) == definition_of(other)
    assert one.get_params()[argument] is short and other.get_params()[argument] is value


def test_values_are_compared_and_shown_as_values():
    assert bl.GP(noise_std=0.5) == bl.GP(noise_std=np.float32(0.5)) != bl.GP()
    assert len({bl.UCB(2), bl.UCB(2.0), bl.UCB()}) == 1 and bl.Censor(-1.0) == bl.Censor(-1)
    assert bl.GP(lengthscale=np.array([0.5, 1])) == bl.GP(lengthscale=[0.5, 1.0])
    assert repr(bl.GP()) == "GP()" and repr(bl.UCB("kandasamy")) == "UCB(beta='kandasamy')"
    assert repr(bl.UCB(theory=bl.papers.Theory(delta=0.5))) == "UCB(theory=Theory(delta=0.5))"
    assert repr(bl.Search(multistart=(10, 1))) == "Search(multistart=(10, 1))"
    assert (
        repr(bl.BayesOpt(SPACE, pending=bl.papers.Nearest(k=5))) == f"BayesOpt(space={SPACE!r}, pending=Nearest(k=5))"
    )
    with pytest.raises(dataclasses.FrozenInstanceError):
        bl.GP().kernel = "linear"


def test_every_docstring_states_its_defaults():
    for kind in Value.kinds.values():
        for parameter in inspect.signature(kind).parameters.values():
            if parameter.default is parameter.empty:
                continue
            default = json.dumps(parameter.default) if isinstance(parameter.default, str) else repr(parameter.default)
            text = inspect.getdoc(kind).split(f"{parameter.name} : ")[1]
            assert f"default {default}" in text.split(" : ")[0] or (parameter.default is None and "optional" in text)


def test_defaults_equal_those_of_the_core():
    # The goals of outcomes belong to the problem.
    ours = {name: as_data(kind()) for name, kind in Value.kinds.items() if not issubclass(kind, Goal)}
    for name, cls in bl.Optimizer.registry.items():
        required = REQUIRED.get(name, {})
        ours[name] = definition_of(cls(SPACE, **required))["strategy"] | dict.fromkeys(required)
    # Definitions are compared as text, because 1, 1.0 and True are equal in Python. The core writes the float 2.0 as
    # 2.0, not as 2.
    defaults = json.loads(_core.defaults())
    assert json.dumps(ours, sort_keys=True) == json.dumps(defaults, sort_keys=True)


def literals(cls, field):
    """Return the strings that a field of a settings class accepts."""
    annotation = typing.get_type_hints(cls)[field]
    parts = [annotation, *typing.get_args(annotation)]
    return list(
        itertools.chain(*(typing.get_args(part) for part in parts if typing.get_origin(part) is typing.Literal))
    )


def test_the_core_knows_every_string_of_a_setting():
    for argument in ("acquisition", "pending", "surrogate", "initial"):
        family = family_of(bl.BayesOpt, argument)
        for kind in family.shorthand.values() or [family]:
            for field in dataclasses.fields(kind):
                for word in literals(kind, field.name):
                    acquisition = {} if argument == "acquisition" else {"acquisition": "log_ei"}
                    # The core reads "theory" before it refuses it without its constants.
                    refused = contextlib.nullcontext()
                    if word == "theory":
                        refused = pytest.raises(bl.errors.InvalidSetting, match="theory.rkhs_bound=None")
                    with refused:
                        bl.BayesOpt(SPACE, window=5, **acquisition, **{argument: kind(**{field.name: word})})
    with pytest.raises(bl.errors.InvalidSetting) as caught:
        _core.GaussianProcess(kernel="zebra")
    known = set(re.findall(r'"(\w+)"', str(caught.value))) - {"zebra"}
    assert {"auto", *known} == set(literals(bl.GP, "kernel"))


def test_settings_for_replays_are_not_public():
    made = bl.BPEDelay(SPACE, **REQUIRED["BPEDelay"], lengths="code", tail="min")
    private = {"GP": "refit_clock", "UCB": "predictive_std", "Search": "multistart", "ThompsonSampling": "draws"}
    for name, field in {**private, "BPEDelay": "lengths", "TreeSearch": "refresh"}.items():
        kind = getattr(bl, name)
        assert field not in inspect.signature(kind).parameters and f"{field} :" not in inspect.getdoc(kind)
    assert clone(made).lengths == "code" and made.set_params(seed=1).tail == "min"
    opt = bl.algorithm("GP-UCB", SPACE, surrogate__refit_clock="trials")
    assert opt.surrogate.refit_clock == "trials" and "refit_clock='trials'" in repr(opt)


def test_signatures_have_strings_and_numbers_as_defaults():
    for cls in (bl.BayesOpt, bl.RandomSearch, bl.UCB):
        assert not re.search("<|object", str(inspect.signature(cls))), cls


# Nested names.


def test_nested_names_are_read_and_set():
    opt = bl.BayesOpt(SPACE, acquisition="ucb", seed=3)
    params = opt.get_params()
    assert params["acquisition"] == "ucb" and params["acquisition__beta"] == 2.0
    assert params["surrogate__kernel"] == "auto" and params["initial__how"] == "quasi_random"
    assert not any(name.startswith("pending__") for name in params)
    assert opt.get_params(deep=False) == {name: value for name, value in params.items() if "__" not in name}
    assert opt.set_params(surrogate__kernel="matern52", surrogate__noise_std=0.1, acquisition__beta=3, seed=1) is opt
    assert opt.surrogate == bl.GP(kernel="matern52", noise_std=0.1) and opt.acquisition == bl.UCB(3.0)
    assert opt.seed == opt.seed_ == 1
    assert opt.set_params(initial__n=3).initial == bl.Initial(3)
    assert opt.set_params(pending="censor", pending__floor=-1).get_params()["pending"] == bl.Censor(-1.0)
    assert definition_of(opt.set_params(**opt.get_params())) == definition_of(opt)
    assert clone(opt).get_params() == opt.get_params()
    twin = bl.BayesOpt(
        SPACE,
        surrogate=opt.surrogate,
        acquisition=opt.acquisition,
        pending=opt.get_params()["pending"],
        initial=3,
        seed=1,
    )
    assert definition_of(twin) == definition_of(opt)


def test_a_refused_change_leaves_the_settings_unchanged():
    opt = bl.BayesOpt(SPACE, acquisition=bl.UCB(), seed=3)
    before = opt.get_params()
    for change in ({"surrogate__noise_std": -1.0}, {"acquisition__draws": "pathwise"}, {"pending__k": 3}):
        refusal(lambda change=change: opt.set_params(seed=5, **change))
        assert opt.get_params() == before


# Unknown names.


@pytest.mark.parametrize(
    "make, name, advice",
    [
        (bl.RandomSearch, "random_state", "seed"),
        (bl.BayesOpt, "n_initial", "initial"),
        (bl.BayesOpt, "seeed", "seed"),
        (bl.BayesOpt, "noise", "surrogate=bl.GP(noise_std=…)"),
        (bl.BayesOpt, "kernel", "surrogate=bl.GP(kernel=…)"),
        (bl.BayesOpt, "floor", "pending=bl.Censor(floor=…)"),
        (bl.BayesOpt, "kappa", "acquisition=bl.UCB(beta=…)"),
        (bl.BayesOpt, "n_feature", "acquisition=bl.ThompsonSampling(n_features=…)"),
        (bl.BayesOpt, "surrogate__kernel", "surrogate=bl.GP(kernel=…)"),
        (bl.GP, "noise", "noise_std"),
        (bl.GP, "kernal", "kernel"),
        (bl.Censor, "flor", "floor"),
        (bl.UCB, "kappa", "beta"),
    ],
)
def test_an_unknown_keyword_is_refused_with_the_nearest_name(make, name, advice):
    message = refusal(lambda: make(**{name: 1}))
    assert message.startswith(f"{name}=1 ") and message.endswith(f"{make.__name__}: did you mean {advice}?")


def test_an_unknown_keyword_without_a_near_name_is_refused_with_all_names():
    assert refusal(lambda: bl.papers.Nearest(zebra=1)).endswith("it has k")
    assert refusal(lambda: bl.Ignore(zebra=1)).endswith("it has no arguments")
    assert "it has space, context" in refusal(lambda: bl.RandomSearch(SPACE, zzz=1))


@pytest.mark.parametrize(
    "name, advice",
    [
        ("random_state", "did you mean seed?"),
        ("noise", "did you mean surrogate__noise_std?"),
        ("surrogate__noise", "did you mean surrogate__noise_std?"),
        ("surrogate__krnel", "did you mean surrogate__kernel?"),
        ("acquisition__n_features", "did you mean acquisition=bl.ThompsonSampling(n_features=…)?"),
    ],
)
def test_set_params_knows_nested_names(name, advice):
    assert refusal(lambda: bl.BayesOpt(SPACE).set_params(**{name: 1})).endswith(advice)


@pytest.mark.parametrize(
    "argument, value, near",
    [("acquisition", "ubc", "ucb"), ("pending", "censored", "censor"), ("surrogate", "gpp", "gp")],
)
def test_an_unknown_string_is_refused_with_the_names_and_the_nearest(argument, value, near):
    message = refusal(lambda: bl.BayesOpt(SPACE, **{argument: value}))
    assert message.startswith(f"{argument}={value!r} ") and message.endswith(f"did you mean {near!r}?")
    assert "'auto' or 'matern52'" in refusal(lambda: bl.GP(kernel="matern"))


# The definition.


def test_a_definition_is_json_and_its_numbers_are_plain():
    opt = bl.BayesOpt(
        {"x": (0.0, 1.0)},
        acquisition=bl.UCB("kandasamy", theory=bl.papers.Theory(delta=0.5)),
        pending=bl.Censor(np.float64(-1.5), late="discard"),
        surrogate=bl.GP(lengthscale=np.array([0.5, 1.0]), mean=2, initial_theta=(0.1, 1, 1e-3)),
        initial=4,
        window=np.int64(20),
        context={"age": bl.Integer(1, 9, log=True)},
        clock="seconds",
        seed=2**64 - 1,
    )
    definition = json.loads(json.dumps(definition_of(opt)))
    assert (definition["problem"]["clock"], definition["seed"]) == ("seconds", 2**64 - 1)
    strategy = definition["strategy"]
    assert (strategy["kind"], strategy["window"], strategy["initial"]["n"]) == ("BayesOpt", 20.0, 4)
    assert (strategy["acquisition"]["beta"], strategy["acquisition"]["theory"]["delta"]) == ("kandasamy", 0.5)
    assert (strategy["pending"]["floor"], strategy["pending"]["late"]) == (-1.5, "discard")
    surrogate = strategy["surrogate"]
    assert (surrogate["lengthscale"], surrogate["mean"]) == ([0.5, 1.0], 2.0)
    assert surrogate["initial_theta"] == [0.1, 1.0, 1e-3]


# Settings in the core.


def test_given_params_are_returned_unchanged():
    space = {"C": bl.Real(1e-4, 100, log=True), "n": bl.Integer(1, 10**6, log=True), "c": [None, (1, 2), "u"]}
    for opt in (bl.RandomSearch(space, seed=0), bl.BayesOpt(space, direction="minimize", seed=0)):
        given = [{"C": m / 10, "n": 7 * m, "c": [None, (1, 2), "u"][m % 3]} for m in range(1, 100)]
        opt.enqueue(given)
        added, suggested = opt.add(given), opt.suggest(n=len(given))
        for trials in (added, suggested):
            params = [trial.params for trial in trials]
            assert params == given
            assert {type(each["C"]) for each in params} == {float} and {type(each["n"]) for each in params} == {int}
        opt.observe(added[9], -1.0 if opt.direction == "minimize" else 1.0)
        assert opt.best_params_ == given[9]
        assert opt.suggest().params["C"] not in [each["C"] for each in given]


def test_predict_without_a_model_is_refused():
    message = refusal(lambda: bl.RandomSearch(SPACE).predict(SPACE))
    assert "RandomSearch" in message and "use BayesOpt" in message
