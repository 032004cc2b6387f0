"""Choices of every kind: containers are copied, other objects stay the same, and scalars of NumPy and NaN become values
that equality finds and that JSON can store."""

import copy
import json
import math
import pickle
from collections import OrderedDict, namedtuple
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import belated as bl
from belated.space.dimensions import Categorical, Ordinal

Pair = namedtuple("Pair", "a b")


class Model:
    """An object that is compared by its identity."""


def activation(x):
    return x


CONTAINERS = [
    [16],
    [[1], [2, {"a": [3]}]],
    {"a": 1, "b": [2]},
    {"a": 1},
    {1, 2},
    ([1], 2),
    Pair([1], "x"),
    OrderedDict(a=[1]),
    bytearray(b"ab"),
    np.array([1.0, math.nan]),
    [np.array([1, 2])],
]
LEAVES = [activation, Model, Model(), print, "a", None, True, 3, 2.5, ("a", 1), frozenset({1}), b"a"]
SCALARS = [
    (np.float32(0.25), 0.25),
    (np.float64(1.5), 1.5),
    (np.int64(4), 4),
    (np.uint8(5), 5),
    (np.bool_(True), True),
    (np.str_("x"), "x"),
    (np.array(7), 7),
    ((np.int64(8), "y"), (8, "y")),
    ([np.float32(0.5)], [0.5]),
    ({"n": np.int64(9)}, {"n": 9}),
]


def changed(value):
    """Change a value in place at any depth."""
    if isinstance(value, dict):
        for each in value.values():
            changed(each)
        value["new"] = 0
    elif isinstance(value, (list, tuple)):
        for each in value:
            changed(each)
        if isinstance(value, list):
            value.append(0)
    elif isinstance(value, set):
        value.add(0)
    elif isinstance(value, bytearray):
        value.append(0)
    elif isinstance(value, np.ndarray):
        value += 1


@pytest.mark.parametrize("kind", [Categorical, Ordinal])
def test_changes_of_a_container_do_not_change_the_parameter(kind):
    given = copy.deepcopy(CONTAINERS)
    dimension = kind(given)
    for value in given:
        changed(value)
    for level, expected in enumerate(CONTAINERS):
        value = dimension.member(level)
        assert repr(value) == repr(expected) and type(value) is type(expected)
        # A copy is recognised as the same choice.
        assert dimension.level(copy.deepcopy(value)) == dimension.level(value) == level
        changed(value)
        assert repr(dimension.member(level)) == repr(expected)
    again = pickle.loads(pickle.dumps(dimension))
    assert [again.level(value) for value in CONTAINERS] == list(range(len(CONTAINERS)))


def test_other_objects_stay_the_same_objects():
    inside = [[each] for each in LEAVES] + [{"a": each} for each in LEAVES]
    dimension = Categorical(LEAVES + inside)
    for level, leaf in enumerate(LEAVES):
        assert dimension.member(level) is leaf and dimension.level(leaf) == level
        assert dimension.member(len(LEAVES) + level)[0] is leaf
        assert dimension.member(2 * len(LEAVES) + level)["a"] is leaf


def test_scalars_of_numpy_become_objects_of_python():
    dimension = Categorical([given for given, _ in SCALARS])
    for level, (given, expected) in enumerate(SCALARS):
        value = dimension.member(level)
        assert value == expected and repr(value) == repr(expected)
        json.dumps(value)
        assert dimension.level(given) == dimension.level(expected) == level
    assert bl.Space({"x": (0.0, 1.0), "c": np.array(2), "d": np.str_("a")}).decode([0.5])["c"] == 2
    dates = [np.datetime64("2026-01-01T00:00:00.000000001"), np.timedelta64(1, "ns")]
    assert [Categorical(dates).member(level) for level in (0, 1)] == dates


NANS = [float("nan"), np.float32("nan"), (1, float("nan")), [float("nan")], {"a": [float("nan")]}]


@pytest.mark.parametrize("level", range(len(NANS)))
def test_any_nan_is_the_same_choice(level):
    def fresh():
        return [float("nan"), (1, float("nan")), [float("nan")], {"a": [float("nan")]}]

    dimension = Categorical([*fresh(), 0.0])
    value = [fresh()[0], np.float32("nan"), *fresh()[1:]][level]
    assert dimension.level(value) == max(level - 1, 0)
    assert dimension == Categorical([*fresh(), 0.0])
    with pytest.raises(bl.errors.InvalidSpace, match="twice"):
        Categorical([*fresh(), value])
    when = bl.Real(0.0, 1.0, when={"k": [value]})
    space = bl.Space({"k": dimension, "x": when})
    assert space.active_names({"k": value}) == ["k", "x"] and space.active_names({"k": 0.0}) == ["k"]


SPACE = {
    "layers": bl.Categorical([[16], [32, 32]]),
    "weight": bl.Ordinal([{"a": 1}, {"a": 2, "b": [3]}]),
    "f": [activation, abs],
    "number": bl.Categorical([np.float32(0.25), np.float32(0.5)]),
    "missing": [float("nan"), 0.0],
    "x": (0.0, 1.0),
}


def changing(params, trial):
    n = len(params["layers"]) + len(params["weight"])
    trial.attrs["json"] = params["number"]
    params["layers"].append(1)
    params["weight"].clear()
    del params["x"]
    # Changes of the params do not reach the trial.
    assert len(trial.params["layers"]) < 3 and trial.params["weight"]["a"] and "x" in trial.params
    trial.params["layers"].append(1)
    return float(n)


@pytest.mark.parametrize("optimizer", [bl.BayesOpt, bl.RandomSearch, bl.TreeSearch])
@pytest.mark.parametrize("workers", [{}, {"executor": True}])
def test_a_function_that_changes_its_params_does_not_change_the_record(optimizer, workers):
    given = {name: copy.copy(each) for name, each in SPACE.items()}
    opt = optimizer(given, seed=0)
    with ThreadPoolExecutor(2) as pool:
        arguments = {"executor": pool} if workers else {}
        result = bl.maximize(changing, optimizer=opt, n_trials=8, **arguments)
    assert [trial.state for trial in result.trials] == ["observed"] * 8
    for trial in [*result.trials, opt.suggest()]:
        params = trial.params
        assert params["layers"] in ([16], [32, 32]) and params["weight"] in ({"a": 1}, {"a": 2, "b": [3]})
        assert any(params["f"] is each for each in (activation, abs))
        assert type(params["number"]) is float and "x" in params
        # The params of a trial can be passed to other methods, which recognise them.
        assert repr(opt.add(params, 1.0).params) == repr(params)
        params["layers"].append(0)
        assert 0 not in trial.params["layers"]
    assert result.best_value_ <= 4
    opt.enqueue({"missing": np.float64("nan"), "layers": [32, 32], "number": 0.5})
    params = opt.suggest().params
    assert math.isnan(params["missing"]) and params["layers"] == [32, 32] and params["number"] == 0.5


def test_a_context_that_is_changed_does_not_change_the_record():
    opt = bl.BayesOpt({"x": (0.0, 1.0)}, context={"days": [[1], [2]]}, seed=0)
    given = {"days": [2]}
    trial = opt.suggest(context=given)
    given["days"].append(3)
    trial.context["days"].append(3)
    assert trial.context == {"days": [2]}
