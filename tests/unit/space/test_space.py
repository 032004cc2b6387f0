"""Points of spaces and of candidates are encoded and decoded; points outside the domain raise errors."""

import math
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from belated import Categorical, Integer, Real, Space
from belated.errors import InvalidContext, InvalidPoint, InvalidSpace
from belated.space import Candidates, ContextSpace

EPS = sys.float_info.epsilon
MAX = sys.float_info.max
TINY = math.ulp(0.0)

finite = st.floats(allow_nan=False, allow_infinity=False)
positive = st.floats(min_value=0, exclude_min=True, allow_nan=False, allow_infinity=False)
fractions = st.floats(0, 1)


@st.composite
def ranges(draw, numbers):
    low, high = sorted((draw(numbers), draw(numbers)))
    assume(low < high)
    return low, high


@given(ranges(finite), fractions)
@example((-MAX, MAX), 0.3)
@example((1.0, math.nextafter(1.0, 2.0)), 0.5)
@example((0.0, TINY), 0.5)
@example((-1e308, 1e308), math.nextafter(1.0, 0.0))
def test_real_round_trip(bounds, fraction):
    low, high = bounds
    dimension = Real(low, high)
    value = dimension.decode(np.array([fraction]))
    assert low <= value <= high
    column = dimension.encode(value)
    assert column.shape == (1,) and 0.0 <= column[0] <= 1.0
    # The differences are taken between halves, because high - low may overflow.
    error = abs(dimension.decode(column) / 2 - value / 2)
    assert error <= 2 * EPS * max(abs(low), abs(high)) + TINY


@given(ranges(positive), fractions)
@example((1e-300, 1e300), 0.3)
@example((TINY, MAX), 0.5)
@example((TINY, MAX), math.nextafter(0.5, 0.0))
@example((1e300, math.nextafter(1e300, MAX)), 0.5)
@example((1e-323, 1.0), 0.0625)
@example((1.4203570016181692e307, 1.4810085284270394e308), 0.5)
def test_log_real_round_trip(bounds, fraction):
    low, high = bounds
    dimension = Real(low, high, log=True)
    value = dimension.decode(np.array([fraction]))
    assert low <= value <= high
    column = dimension.encode(value)
    assert 0.0 <= column[0] <= 1.0
    span = math.log(high) - math.log(low)
    assert dimension.decode(column) == pytest.approx(value, rel=4 * EPS * (1 + span), abs=TINY)


@given(ranges(finite), st.booleans())
@example((1e-300, 1e300), True)
@example((-MAX, MAX), False)
def test_real_is_exact_at_its_ends(bounds, log):
    low, high = bounds
    dimension = Real(low, high, log=log and low > 0)
    assert dimension.encode(low)[0] == 0.0
    assert dimension.encode(high)[0] == 1.0
    assert dimension.decode(np.array([0.0])) == low
    assert dimension.decode(np.array([1.0])) == high


@given(ranges(positive), st.lists(fractions, min_size=2, max_size=2, unique=True), st.booleans())
def test_real_keeps_order(bounds, columns, log):
    dimension = Real(*bounds, log=log)
    below, above = (dimension.decode(np.array([u])) for u in sorted(columns))
    # Because of rounding, neighbouring fractions may give equal values, or values in the wrong order that differ by
    # about an ulp.
    assert below <= above or below == pytest.approx(above, rel=1e-12)


def test_log_real_is_even_in_the_logarithm():
    dimension = Real(1e-4, 100, log=True)
    decades = [dimension.encode(10.0**power)[0] for power in range(-4, 3)]
    assert decades == pytest.approx(np.linspace(0, 1, 7), abs=1e-15)


@given(ranges(st.integers(-(2**40), 2**40)), st.data())
@example((-(2**40), 2**40), None)
def test_integer_round_trip(bounds, data):
    low, high = bounds
    dimension = Integer(low, high)
    value = high - 1 if data is None else data.draw(st.integers(low, high))
    assert dimension.decode(dimension.encode(value)) == value
    assert isinstance(dimension.decode(dimension.encode(value)), int)
    assert dimension.encode(value)[0] == (value - low) / (high - low)


@given(ranges(st.integers(1, 2**40)), st.data())
@example((1, 2**40), None)
def test_log_integer_round_trip(bounds, data):
    low, high = bounds
    dimension = Integer(low, high, log=True)
    value = high - 1 if data is None else data.draw(st.integers(low, high))
    assert dimension.decode(dimension.encode(value)) == value
    assert dimension.encode(low)[0] == 0.0 and dimension.encode(high)[0] == 1.0


@given(st.lists(st.one_of(st.text(), st.integers(), st.none(), st.booleans(), st.tuples(st.integers())), unique=True))
def test_categorical_round_trip(choices):
    # hypothesis treats 1 and True as equal, but as choices all these values differ.
    assume(len(choices) >= 2)
    dimension = Categorical(choices)
    for i, choice in enumerate(choices):
        columns = dimension.encode(choice)
        assert columns.tolist() == [float(i == j) for j in range(len(choices))]
        assert dimension.decode(columns) is dimension.choices[i]


def test_given_params_are_kept_bit_for_bit():
    # On this scale, encoding and decoding would change 45 of 76 short decimal numbers.
    space = Space({"C": Real(1e-4, 100, log=True), "n": Integer(1, 10**6, log=True), "c": [None, (1, 2), "u", 1.5]})
    for C in [m * 10.0**k for k in range(-4, 2) for m in (1, 1.1, 1.2, 1.5, 2, 2.5, 3, 5, 7, 9)]:
        given = {"C": C, "n": 123_457, "c": (1, 2)}
        place = space.locate(given)
        assert place == [C, 123_457.0, 1.0]
        again = space.params_at(place)
        assert again == given and [type(value) for value in again.values()] == [float, int, tuple]


@pytest.mark.parametrize("choice", [Real(0.0, 1.0), Integer(1, 3), Categorical(["a", "b"])])
def test_dimensions_as_choices_are_refused(choice):
    for choices in ([choice, 3], ["a", choice]):
        with pytest.raises(InvalidSpace, match=r"write the dimension itself, as in \{\"x\""):
            Space({"x": choices})


def test_categorical_tells_one_from_true():
    dimension = Categorical([0, 1, False, True])
    assert [int(np.argmax(dimension.encode(choice))) for choice in (0, 1, False, True)] == [0, 1, 2, 3]


def test_choices_may_be_unhashable():
    array, layers = np.array([1, 2]), [64, 64]
    dimension = Categorical([array, layers, math.sin])
    found = [dimension.decode(dimension.encode(given)) for given in ([64, 64], array, math.sin)]
    assert found[0] == layers and found[1].tolist() == [1, 2] and found[2] is math.sin


@pytest.mark.parametrize(
    "bounds",
    [(2.0, 1.0), (0.0, math.nan), (math.nan, 1.0), (-math.inf, 0.0), (0.0, math.inf)]
    + [("0", "1"), (0.0, 1j), (True, 2.0), (None, 1.0), (0.0, [1.0]), (0.0, np.array([1.0])), (0, 10**400)],
)
def test_real_refuses_bounds(bounds):
    with pytest.raises(InvalidSpace, match="Real"):
        Real(*bounds)


@pytest.mark.parametrize("bounds", [(2, 1), (1.0, 2.0), (False, 2), ("1", "2"), (0, math.inf), (0, 2**41)])
def test_integer_refuses_bounds(bounds):
    with pytest.raises(InvalidSpace, match="Integer"):
        Integer(*bounds)


@pytest.mark.parametrize("kind, bounds", [(Real, (0.0, 1.0)), (Real, (-1.0, 1.0)), (Integer, (0, 4))])
def test_log_needs_positive_bounds(kind, bounds):
    with pytest.raises(InvalidSpace, match="low > 0"):
        kind(*bounds, log=True)


@pytest.mark.parametrize("kind", [Real, Integer])
def test_log_is_a_bool(kind):
    with pytest.raises(InvalidSpace, match="True or False"):
        kind(1, 2, log="yes")


@pytest.mark.parametrize("choices", [[], ["a", "b", "a"], [1, 1.0], "abc", {"a", "b"}, None, 3])
def test_categorical_refuses_choices(choices):
    with pytest.raises(InvalidSpace, match="choices"):
        Categorical(choices)


def test_numbers_of_other_kinds_are_numbers():
    dimension = Real(np.float32(0.0), Fraction(3, 2))
    assert dimension == Real(0.0, 1.5)
    for half in (Fraction(1, 2), Decimal("0.5"), np.float16(0.5), np.array(0.5)):
        assert dimension.check(half) == 0.5
    assert Integer(np.int8(0), np.uint64(9)) == Integer(0, 9)
    assert Integer(0, 9).check(3.0) == 3


def test_shorthand():
    space = Space({"a": (0.0, 1.0), "b": Integer(1, 2), "c": (1, 2.5), "d": ["x", "y"], "e": Real(1, 2)})
    assert list(space.values()) == [Real(0, 1), Integer(1, 2), Real(1, 2.5), Categorical(["x", "y"]), Real(1, 2)]
    assert space.width == 6
    assert dict(Space({"b": (1, 2)})) == {"b": Integer(1, 2)}
    assert Space(space.items()).encode(space.decode(np.zeros(6))).shape == (6,)


@pytest.mark.parametrize(
    "dimensions",
    [{}, [], None, 3, "ab", np.zeros((3, 2, 1)), [("a", (0.0, 1.0)), ("a", (0.0, 2.0))], {1: (0.0, 1.0)}]
    + [{"a": given} for given in (None, 3, "uniform", (1.0,), (0.0, 1.0, 2.0), (2.0, 1.0), ["x"], np.zeros(2))],
)
def test_invalid_spaces_are_refused(dimensions):
    with pytest.raises(InvalidSpace, match="space"):
        Space(dimensions)


def test_a_bad_dimension_is_named():
    with pytest.raises(InvalidSpace, match="space\\['gamma'\\].*swap them"):
        Space({"C": (0.0, 1.0), "gamma": (2.0, 1.0)})


SPACE = Space({"C": Real(1e-4, 100, log=True), "depth": (1, 5), "kernel": ["rbf", "linear"]})
GOOD = {"C": 1.0, "depth": 2, "kernel": "rbf"}


def test_space_round_trip():
    point = SPACE.encode(GOOD)
    assert point.shape == (SPACE.width,) and point.dtype == np.float64
    assert SPACE.decode(point) == pytest.approx(GOOD)
    assert list(SPACE.encode(pd.Series(GOOD))) == list(point)
    assert SPACE.points(pd.DataFrame([GOOD, GOOD])).tolist() == [list(point)] * 2
    assert SPACE.points([]).shape == (0, SPACE.width)


@pytest.mark.parametrize(
    "change",
    [{"C": value} for value in (0.0, 101.0, math.nan, math.inf, "1", None, True, 1j, [1.0], np.array([1.0]))]
    + [{"depth": value} for value in (0, 6, 2.5, "2", True, None, math.nan, math.inf)]
    + [{"kernel": value} for value in ("poly", None, 0, ["rbf"])],
)
def test_space_refuses_values(change):
    (name,) = change
    with pytest.raises(InvalidPoint, match=f"params\\['{name}'\\].*pass"):
        SPACE.encode(GOOD | change)


def test_space_refuses_names():
    with pytest.raises(InvalidPoint, match="misses \\['depth', 'kernel'\\]"):
        SPACE.encode({"C": 1.0})
    with pytest.raises(InvalidPoint, match="unknown \\['degree'\\]"):
        SPACE.encode(GOOD | {"degree": 3})
    for params in (None, 3, "C", [1.0, 2, "rbf"]):
        with pytest.raises(InvalidPoint, match="pass a dict"):
            SPACE.encode(params)


def test_names_may_be_any_strings_and_unknown_names_any_objects():
    space = Space({"it's": (0.0, 1.0), "\ud800": ["x", "\ud801"], "c": Integer(1, 3, when={"\ud800": "\ud801"})})
    params = {"it's": 0.5, "\ud800": "\ud801", "c": 2}
    assert space.decode(space.encode(params)) == params
    with pytest.raises(InvalidPoint, match=r"has unknown \[1, '\\ud802'\]"):
        space.encode(params | {1: 2, "\ud802": 3})
    with pytest.raises(InvalidPoint, match=r"misses .*\\ud800"):
        space.encode({"it's": 0.5})


def test_errors_for_contexts_name_the_context():
    with pytest.raises(InvalidContext, match="context\\['age'\\]"):
        ContextSpace({"age": (0.0, 100.0)}).encode({"age": 101.0})
    with pytest.raises(InvalidSpace, match="context is empty"):
        ContextSpace({})


@given(st.integers(1, 20), st.integers(1, 4), st.randoms(use_true_random=False))
def test_candidates_round_trip(n, d, random):
    x = np.array([[random.choice([-MAX, -1e-5, 0.0, 3.0, MAX]) for _ in range(d)] for _ in range(n)])
    candidates = Candidates(x)
    points = candidates.points(None)
    assert points.shape == (n, d) and points.min() >= 0.0 and points.max() <= 1.0
    for column, scaled in zip(x.T, points.T, strict=True):
        constant = column.min() == column.max()
        assert scaled[column.argmin()] == 0.0 and scaled[column.argmax()] == (0.0 if constant else 1.0)
    for i in range(n):
        assert candidates.locate(i) == i
        assert (candidates.points(i) == points[i]).all()
        assert (candidates.params_at(i) == x[i]).all()
        again = candidates.locate(x[i])
        assert again <= i and (points[again] == points[i]).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8, bool])
def test_given_candidates_are_returned_unchanged(dtype):
    x = np.array([[0, 1], [1, 1], [1, 0]], dtype=dtype)
    candidates = Candidates(x)
    row = candidates.params_at(1)
    assert row.dtype == x.dtype and row.tolist() == x[1].tolist()
    x[1] = 0
    assert candidates.params_at(1).all()


def test_candidates_from_a_table():
    table = pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4]})
    candidates = Candidates(table)
    assert candidates.locate(table.iloc[1]) == 1
    assert candidates.points(table).tolist() == [[0.0, 0.0], [1.0, 1.0]]


@pytest.mark.parametrize(
    "x",
    [[], [[]], [1.0, 2.0], np.zeros((2, 0)), np.zeros((0, 2)), np.zeros((2, 2, 2)), [[math.nan]], [[math.inf], [0.0]]]
    + [[["a"]], [[1j]], [[1.0], [1.0, 2.0]], None, [[None]], 3, [[object()]]]
    + [np.ma.array([[1.0], [2.0]], mask=[[0], [1]])],
)
def test_invalid_candidates_are_refused(x):
    with pytest.raises(InvalidSpace, match="candidate"):
        Candidates(x)


@pytest.mark.parametrize(
    "params",
    [-1, 3, 1.5, True, None, "a", [0.0], [0.0, 5.0], [[0.0, 1.0]], {"a": 1}, [math.nan, 0.0], ["a", "b"]],
)
def test_locate_refuses_points_that_are_not_candidates(params):
    with pytest.raises(InvalidPoint, match="params"):
        Candidates([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]]).locate(params)
