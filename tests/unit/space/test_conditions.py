"""Conditional parameters: which parameters are active, how parameters are encoded, and errors for invalid conditions
and params."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from belated import Categorical, Integer, Ordinal, Real, Space
from belated.errors import InvalidPoint, InvalidSpace
from belated.space import ContextSpace
from tests.unit.space.spaces import active_names, conditional_spaces

SVM = Space(
    {
        "degree": Integer(1, 5, when={"kernel": "poly"}),
        "kernel": ["rbf", "poly", None],
        "gamma": Real(1e-3, 1.0, log=True, when={"kernel": ["rbf", "poly"]}),
        "coef": Categorical(["low", "high"], when={"degree": [2, 3], "kernel": "poly"}),
        "cache": Categorical([200], when={"kernel": "rbf"}),
        "C": (0.1, 10.0),
    }
)

RBF = {"kernel": "rbf", "gamma": 0.1, "cache": 200, "C": 1.0}
POLY = {"kernel": "poly", "gamma": 1.0, "C": 1.0}


def test_inactive_parameters_are_absent_and_have_fixed_columns():
    params = {"kernel": None, "C": 0.1}
    assert SVM.encode(params).tolist() == [0.5, 0, 0, 1, 0.5, 0, 0, 0]
    place = SVM.locate(params)
    assert place == [None, 2.0, None, None, 0.1]
    assert SVM.decode(SVM.encode(params)) == SVM.params_at(place) == params
    params = {"degree": 2, "kernel": "poly", "gamma": 1.0, "coef": "high", "C": 10.0}
    assert SVM.encode(params).tolist() == [0.25, 0, 1, 0, 1, 0, 1, 1]
    assert list(SVM.decode(SVM.encode(params)).items()) == list(params.items())
    assert SVM.decode(SVM.encode({"kernel": "rbf", "gamma": 1.0, "cache": 200, "C": 0.1}))["cache"] == 200


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (RBF | {"degree": 2}, r"params\['degree'\]=2 is inactive.*leave it out.*kernel='poly'"),
        ({"kernel": None, "C": 1.0, "gamma": 0.1}, r"params\['gamma'\]=0.1 is inactive.*kernel in \['rbf', 'poly'\]"),
        ({"kernel": None, "C": 1.0, "cache": 200}, r"params\['cache'\]=200 is inactive"),
        (POLY | {"degree": 1, "coef": "low"}, r"'coef'.*degree in \[2, 3\] and kernel='poly'"),
        (POLY | {"degree": 2}, r"misses \['coef'\]: pass exactly .*\['degree', 'kernel', 'gamma', 'coef', 'C'\]"),
        ({"kernel": "poly", "C": 1.0}, r"misses \['degree', 'gamma'\]"),
        ({"degree": 2, "C": 1.0}, r"misses \['kernel'\]"),
        ({"kernel": None, "C": 1.0, "depth": 1}, r"has unknown \['depth'\]: pass exactly the names \['kernel', 'C'\]"),
        ({"kernel": "poly", "degree": 9, "gamma": 1.0, "C": 1.0}, r"params\['degree'\]=9 is not usable"),
        ({"kernel": "sigmoid", "C": 1.0}, r"params\['kernel'\]='sigmoid' is not usable"),
    ],
)  # fmt: skip
def test_params_that_do_not_fit_are_refused(params, message):
    for method in (SVM.encode, SVM.locate):
        with pytest.raises(InvalidPoint, match=message):
            method(params)


KERNEL = {"kernel": ["rbf", "poly"], "x": (0.0, 1.0), "r": Real(0.0, 1.0, step=0.25), "k": "one"}


@pytest.mark.parametrize(
    ("child", "message"),
    [
        (Integer(1, 5, when={"kernal": "poly"}), r"space\['c'\] has when=\{'kernal'.*did you mean 'kernel'\?"),
        (Integer(1, 5, when={"zzz": 1}), r"has when=\{'zzz'.*name one of \['kernel', 'x', 'r', 'k', 'c'\]"),
        (Integer(1, 5, when={"x": 0.5}), r"space\['c'\].*'x' is a continuous Real: give that one a step"),
        (Integer(1, 5, when={"kernel": "sigmoid"}), r"'sigmoid'\}, which is not .*: name one of \['rbf', 'poly'\]"),
        (Integer(1, 5, when={"kernel": ("rbf", "poly")}), r"not a value of 'kernel'.*several of them in a list"),
        (Integer(1, 5, when={"r": 0.3}), r"not a value of 'r': name one of 0.0, 0.25, …, 1.0"),
        (Integer(1, 5, when={"k": "two"}), r"'two'\}, which is not a value of 'k': name one of \['one'\]"),
        (Integer(1, 5, when={"c": 2}), r"\['c'\] depend on each other in a circle.*drop the condition"),
    ],
)  # fmt: skip
def test_impossible_conditions_are_refused(child, message):
    with pytest.raises(InvalidSpace, match=message):
        Space(KERNEL | {"c": child})


@pytest.mark.parametrize("when", ["kernel", {}, ["kernel"], {"kernel": []}, {"kernel": {"rbf"}}, {1: 2}, 3, True])
def test_conditions_that_are_not_mappings_are_refused(when):
    for make in (
        lambda: Real(0, 1, when=when),
        lambda: Integer(0, 1, when=when),
        lambda: Ordinal([1, 2], when=when),
        lambda: Categorical([1, 2], when=when),
    ):
        with pytest.raises(InvalidSpace, match="has when=.*: pass "):
            make()


def test_longer_circles_and_exclusive_conditions_are_refused():
    circle = {name: Integer(1, 3, when={other: 1}) for name, other in ["ab", "bc", "ca"]}
    with pytest.raises(InvalidSpace, match=r"depend on each other in a circle"):
        Space(circle | {"d": Integer(1, 3, when={"a": 2}), "x": (0.0, 1.0)})
    with pytest.raises(InvalidSpace, match=r"space\['b'\] can never be active: its conditions on 'kernel' exclude"):
        Space(
            KERNEL
            | {"a": Categorical([1], when={"kernel": "rbf"}), "b": Integer(1, 3, when={"a": 1, "kernel": "poly"})}
        )


def test_conditions_in_contexts_are_refused():
    with pytest.raises(InvalidSpace, match=r"context has conditions, of \['b'\].*drop when="):
        ContextSpace({"a": ["u", "v"], "b": Integer(1, 5, when={"a": "u"})})


def test_a_condition_on_a_constant_holds_if_the_constant_is_active():
    space = Space(
        {
            "kind": ["tree", "line"],
            "library": "sklearn",
            "criterion": Categorical(["gini"], when={"kind": "tree"}),
            "depth": Integer(1, 9, when={"criterion": "gini", "library": "sklearn"}),
            "slope": Integer(1, 9, when={"library": "sklearn"}),
        }
    )
    params = {"kind": "line", "library": "sklearn", "slope": 3}
    assert space.decode(space.encode(params)) == params
    params = {"kind": "tree", "library": "sklearn", "criterion": "gini", "depth": 2, "slope": 3}
    assert space.decode(space.encode(params)) == params


@pytest.mark.parametrize(
    ("parent", "value", "others"),
    [
        (Integer(-3, 3), -1, [0, 3]),
        (Integer(1, 10**6, log=True), 999_999, [1, 10]),
        (Integer(0, 100, step=25), 75, [0, 100]),
        (Real(0.0, 1.0, step=0.1), 0.3, [0.0, 0.4]),
        (Ordinal([16, 32, (64, 64)]), (64, 64), [16, 32]),
        (Categorical([1, True, "1"]), True, [1, "1"]),
        (Categorical([[64, 64], 3]), [[64, 64]], [3]),
    ],
)
def test_every_discrete_kind_can_be_a_parent(parent, value, others):
    space = Space({"p": parent, "c": Integer(1, 5, when={"p": value})})
    value = value[0] if isinstance(value, list) else value
    assert space.decode(space.encode({"p": value, "c": 4})) == {"p": value, "c": 4}
    for other in others:
        assert space.decode(space.encode({"p": other})) == {"p": other}


@given(conditional_spaces(), st.data())
def test_encoding_is_idempotent_and_inactive_differences_vanish(dimensions, data):
    space = Space(dimensions)
    columns = st.lists(st.floats(0, 1), min_size=space.width, max_size=space.width)
    row = np.array(data.draw(columns))
    params = space.decode(row)
    assert list(params) == active_names(dimensions, params)
    point = space.encode(params)
    for name, value in space.decode(point).items():
        assert value == (pytest.approx(params[name]) if isinstance(space[name], Real) else params[name])
    np.testing.assert_allclose(space.encode(space.decode(point)), point, atol=1e-12)
    assert space.params_at(space.locate(params)) == params
    # Two rows that differ only in inactive columns give the same params, and therefore the same point.
    other, start = np.array(data.draw(columns)), 0
    for name, dimension in space.items():
        if name in params:
            other[start : start + dimension.width] = row[start : start + dimension.width]
        start += dimension.width
    assert space.decode(other) == params and (space.encode(space.decode(other)) == point).all()


@given(conditional_spaces(), st.data())
def test_missing_and_additional_params_are_refused(dimensions, data):
    space = Space(dimensions)
    params = space.decode(np.array(data.draw(st.lists(st.floats(0, 1), min_size=space.width, max_size=space.width))))
    space.encode(params)
    for name, dimension in space.items():
        if name in params and not dimension.width:
            # A constant may be left out.
            others = {other: params[other] for other in params if other != name}
            np.testing.assert_array_equal(space.encode(others), space.encode(params))
        elif name in params:
            with pytest.raises(InvalidPoint, match=rf"misses \[.*'{name}'"):
                space.encode({other: params[other] for other in params if other != name})
        else:
            np.testing.assert_array_equal(space.encode(params | {name: None}), space.encode(params))
            value = dimension.decode(np.zeros(max(dimension.width, 1)))
            if value is not None:
                with pytest.raises(InvalidPoint, match=rf"params\['{name}'\].* is inactive"):
                    space.encode(params | {name: value})


def test_inactive_parameters_are_absent_from_rows_of_tables():
    rows = [
        {"kernel": None, "C": 0.5},
        {"kernel": "poly", "degree": 1, "gamma": 0.5, "C": 0.5},
        {"kernel": "rbf", "gamma": 0.5, "cache": 200, "C": 0.5},
    ]
    table = pd.DataFrame(rows, columns=["degree", "kernel", "gamma", "coef", "cache", "C"], dtype=object)
    table["degree"] = table["degree"].astype(float)
    assert SVM.several(table) == rows
    np.testing.assert_array_equal(SVM.points(table), [SVM.encode(row) for row in rows])
    # A missing active parameter raises an error.
    table.loc[1, "gamma"] = np.nan
    with pytest.raises(InvalidPoint, match=r"params\['gamma'\]=nan is not usable"):
        SVM.points(table)


def test_chains_are_followed_in_any_order_of_declaration():
    for order in itertools.permutations("abcd"):
        chain = {
            "a": ["on", "off"],
            "b": Integer(1, 2, when={"a": "on"}),
            "c": Integer(1, 2, when={"b": 2}),
            "d": Integer(1, 2, when={"c": 2}),
        }
        space = Space({name: chain[name] for name in order})
        for params in ({"a": "off"}, {"a": "on", "b": 1}, {"a": "on", "b": 2, "c": 2, "d": 1}):
            params = {name: params[name] for name in order if name in params}
            assert list(space.decode(space.encode(params)).items()) == list(params.items())
        with pytest.raises(InvalidPoint, match=r"params\['d'\]=1 is inactive"):
            space.encode({"a": "off", "d": 1})
