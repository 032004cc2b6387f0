"""Definitions: everything that a study stores about an optimizer, and the comparison of two definitions."""

import json

import numpy as np
import pytest

import belated as bl
from belated.study.definition import definition_of, differences, optimizer_from, space_from

BOX = {"x": (0.0, 1.0)}
ROWS = [[0, 1], [1, 0], [1, 1]]


def stored(optimizer):
    """Return a definition after it was written to a store and read again."""
    return json.loads(json.dumps(definition_of(optimizer), allow_nan=False))


# Candidates.


@pytest.mark.parametrize(
    "rows",
    [
        np.array([[True, False], [False, False]]),
        np.array([[-128, 127]], dtype=np.int8),
        np.array([[-(2**63), 2**63 - 1]]),
        np.array([[2**64 - 1, 2**63 + 1]], dtype=np.uint64),
        np.array([[0.1, 5e-324], [-0.0, 1.7976931348623157e308]]),
        np.array([[1 / 3, 65504.0]], dtype=np.float16),
    ],
    ids=lambda rows: rows.dtype.name,
)
def test_candidates_come_back_exactly(rows):
    again = optimizer_from(stored(bl.RandomSearch(candidates=rows, seed=0)), None).domain.x
    # Values are compared as text, because in Python -0.0 equals 0.0, and 1, 1.0 and True are equal.
    assert repr(again.tolist()) == repr(rows.tolist()) and again.dtype.kind == rows.dtype.kind


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="long doubles are doubles here")
def test_candidates_that_json_cannot_store_exactly_are_refused(store):
    rows = np.array([[0.5, 1.0]], dtype=np.longdouble)
    with pytest.raises(
        bl.errors.InvalidSpace, match=r"^candidates has dtype \w+, which a study cannot store.*pass float64"
    ):
        bl.Study("s", store, bl.RandomSearch(candidates=rows))


# Differences.


def optimizer(**arguments):
    return bl.RandomSearch(**({"space": BOX, "seed": 0} | arguments))


@pytest.mark.parametrize(
    ("there", "here"),
    [
        ({"space": {"x": bl.Real(0, 1)}}, {}),
        ({"context": {"age": (0, 9)}}, {"context": {"age": bl.Integer(0, 9)}}),
        ({"space": None, "candidates": ROWS}, {"space": None, "candidates": np.array(ROWS)}),
        ({"space": {"n": (1, 4), "m": [1, 2]}}, {"space": {"n": bl.Integer(1, 4), "m": bl.Categorical([1, 2])}}),
        ({"space": {"x": bl.Real(1, 8, step=0.5)}}, {"space": {"x": bl.Real(1.0, 8.0, step=0.5)}}),
    ],
)
def test_equal_definitions_do_not_differ(there, here):
    assert differences(stored(optimizer(**there)), definition_of(optimizer(**here))) == []


@pytest.mark.parametrize(
    ("there", "here", "name", "values"),
    [
        ({}, {"seed": 1}, "seed", ("0", "1")),
        ({}, {"clock": "seconds"}, "clock", ("'iterations'", "'seconds'")),
        ({"context": {"age": (0, 9)}}, {}, "context", ("'Integer'", "None")),
        ({}, {"context": {"age": (0, 9)}}, "context", ("None", "'Integer'")),
        ({"context": {"a": (0, 9)}}, {"context": {"b": (0, 9)}}, "the names of context", ("['a']", "['b']")),
        (
            {"context": {"a": (0, 9)}},
            {"context": {"a": (0, 8)}},
            "context['a']",
            ("Integer(0, 9)", "Integer(0, 8)"),
        ),
        ({"space": {"x": (0, 1)}}, {}, "space['x']", ("Integer(0, 1)", "Real(0.0, 1.0)")),
        ({"space": {"c": [1, 2]}}, {"space": {"c": [1.0, 2]}}, "space['c']", ("([1, 2])", "([1.0, 2])")),
        ({"space": {"c": [1, 0]}}, {"space": {"c": [True, 0]}}, "space['c']", ("([1, 0])", "([True, 0])")),
        (
            {"space": None, "candidates": ROWS},
            {"space": None, "candidates": ROWS[:2]},
            "candidates.rows",
            ("[[0, 1], [1, 0], [1, 1]]", "[[0, 1], [1, 0]]"),
        ),
        (
            {"space": None, "candidates": ROWS},
            {"space": None, "candidates": np.array(ROWS, dtype=float)},
            "candidates",
            ("'i'", "'f'"),
        ),
    ],
)
def test_differences_are_named(there, here, name, values):
    [difference] = differences(stored(optimizer(**there)), definition_of(optimizer(**here)))
    assert difference.startswith(f"{name} is ")
    assert all(value in part for value, part in zip(values, difference.split(" there and "), strict=True))


def test_all_differences_are_named(store):
    first = bl.BayesOpt({"x": (0.0, 1.0), "y": (0.0, 1.0)}, surrogate=bl.GP(kernel="matern32"), window=3, seed=1)
    bl.Study("s", store, first)
    other = bl.BayesOpt({"x": (0.0, 2.0), "y": (0.0, 1.0)}, surrogate=bl.GP(kernel="matern52"), window=4, seed=2)
    with pytest.raises(bl.errors.InvalidSetting) as raised:
        bl.Study("s", store, other)
    *parts, advice = str(raised.value).removeprefix("study 's' exists with other settings: ").split("; ")
    assert {part.split(" is ")[0] for part in parts} == {"space['x']", "seed", "surrogate.kernel", "window"}
    assert len(parts) == 4
    assert advice == (
        "leave optimizer out to go on with the study, change it by study.revise(…), or choose another name"
    )


# Definitions that cannot be read.


@pytest.mark.parametrize(
    ("part", "changed", "message"),
    [
        ("problem", {"more": 1, "extra": 2}, r"^the study has arguments \['extra', 'more'\], unknown to this belated"),
        ("problem", {"time": None}, r"^the study has arguments \['time'\], unknown"),
        (
            "problem",
            {"seed": 1, "window": 2, "kind": "x"},
            r"^the study has arguments \['kind', 'seed', 'window'\]",
        ),
        (
            "strategy",
            {"clock": "seconds", "stopping": None},
            r"^the study has arguments \['clock', 'stopping'\]",
        ),
        ("problem", {"direction": "up"}, "^the study's definition does not define an optimizer: direction='up'"),
        (
            "problem",
            {"space": [{"name": "x", "kind": "Path"}]},
            "^the study's definition does not define an optimizer: ",
        ),
        ("problem", {"space": [{"name": "x", "kind": "Categorical", "choices": [{"object": "A"}]}]}, r"objects \(A\)"),
    ],
)
def test_unknown_arguments_are_named(part, changed, message):
    definition = stored(optimizer())
    with pytest.raises(bl.errors.StoreError, match=message):
        optimizer_from(definition | {part: definition[part] | changed}, None)


@pytest.mark.parametrize("kind", ["Later", "Optimizer", ["RandomSearch"], None])
def test_unknown_optimizers_are_named(kind):
    with pytest.raises(
        bl.errors.StoreError, match="^the study has the optimizer .*unknown to this belated: upgrade belated$"
    ):
        optimizer_from(stored(optimizer()) | {"strategy": {"kind": kind}}, None)


# The four parts.


def full(**arguments):
    given = {"context": {"age": (0, 9)}, "fidelity": bl.Fidelity(1, 9, cost=bl.PowerCost(0.5)), "direction": "minimize"}
    return optimizer(constraints=[bool], curve=bl.Curve(9, "best"), **given | arguments)


def test_each_part_has_its_arguments():
    definition = stored(full(stopping="asha"))
    bounds = {"low": 0, "high": 9, "log": False}
    assert definition == {
        "problem": {
            "space": [{"name": "x", "kind": "Real", "low": 0.0, "high": 1.0, "log": False}],
            "context": [{"name": "age", "kind": "Integer"} | bounds],
            "fidelity": bounds | {"low": 1, "cost": {"base": 0.5, "exponent": 1.0, "full": 1.0}, "bias": None},
            "curve": {"steps": 9, "value": "best"},
            "constraints": ["bool"],
            "direction": "minimize",
            "clock": "iterations",
        },
        "strategy": {"kind": "RandomSearch"},
        "stopping": {"kind": "ASHA", "reduction": 3.0, "min_step": 1},
        "seed": 0,
    }


@pytest.mark.parametrize("made", [optimizer(), full(), full(stopping="median"), bl.TreeSearch(BOX, seed=3)], ids=str)
def test_an_optimizer_that_was_read_has_the_same_definition_and_text(made):
    again = optimizer_from(stored(made), None, made.constraints)
    assert definition_of(again) == definition_of(made)
    assert again.stopping == made.stopping or made.curve is not None


def test_parts_with_defaults_may_be_left_out():
    least = {
        "problem": {"space": [{"name": "x", "kind": "Real", "low": 0, "high": 1}]},
        "strategy": {"kind": "BayesOpt"},
    }
    made = optimizer_from(least, None)
    assert definition_of(made) == definition_of(bl.BayesOpt(BOX, seed=made.seed_))
    least["problem"]["curve"] = {"steps": 3}
    made = optimizer_from(least, None)
    assert definition_of(made) == definition_of(bl.BayesOpt(BOX, curve=bl.Curve(3), seed=made.seed_))


def test_any_seed_matches_none():
    assert differences(stored(optimizer(seed=3)), definition_of(optimizer()) | {"seed": None}) == []
    assert differences(stored(optimizer(seed=3)), definition_of(optimizer())) == ["seed is 3 there and 0 here"]


class Unstorable:
    """A choice that JSON does not have."""


def test_an_incomplete_definition_replaces_objects_by_their_types():
    choices = [Unstorable(), [1, (2, None)], {"a": 0.5, 3: "b"}, float("inf")]
    made = optimizer(space={"c": bl.Categorical(choices)})
    with pytest.raises(bl.errors.InvalidSpace):
        definition_of(made)
    [entry] = definition_of(made, complete=False)["problem"]["space"]
    pairs = {"dict": [["a", 0.5], [3, "b"]]}
    assert entry["choices"] == [{"object": "Unstorable"}, {"list": [1, {"tuple": [2, None]}]}, pairs, float("inf")]
    with pytest.raises(bl.errors.InvalidSpace):
        space_from([entry])
    entry["choices"].pop(0)
    assert space_from([entry])["c"] == bl.Categorical(choices[1:])


@pytest.mark.parametrize("clock", ["iterations", "seconds"])
def test_a_definition_is_read_with_a_given_clock(clock):
    made = optimizer_from(stored(optimizer(clock=clock)), lambda: 12.5)
    assert (made.clock, made.time()) == (clock, 12.5)
    made.suggest()
    assert made.trial(0).suggested_at == (12.5 if clock == "seconds" else 0.0)
