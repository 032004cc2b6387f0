"""The values, encodings and errors of dimensions with steps, ordinals and constants."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import belated as bl
from belated import Categorical, Integer, Ordinal, Real, Space
from belated.errors import InvalidPoint, InvalidSpace

decimals = st.decimals(-1000, 1000, places=3)


@given(decimals, st.decimals("0.001", 100, places=3), st.integers(1, 500), st.decimals(0, "0.999", places=3))
def test_a_stepped_real_has_exact_decimal_values(low, step, n, part):
    # The expected values are computed in decimal arithmetic, because low + k * step in floats is not exact.
    dimension = Real(float(low), float(low + n * step + part * step), step=float(step))
    assert dimension.n_levels == n + 1
    for k in {0, 1, n // 2, n}:
        value = dimension.decode(np.array([k / n]))
        assert value == float(low + k * step) and dimension.low <= value <= dimension.high
        assert dimension.encode(value)[0] == k / n and dimension.level(value) == k
        assert dimension.check(dimension.low + k * dimension.step) == value  # with rounding errors


@given(st.integers(-(2**30), 2**30), st.integers(1, 1000), st.integers(1, 1000), st.integers(0, 999))
def test_a_stepped_integer_ends_at_the_last_member_within(low, step, n, part):
    dimension = Integer(low, low + n * step + part % step, step=step)
    members = range(low, dimension.high + 1, step)
    assert dimension.n_levels == len(members) == n + 1
    for k in {0, n // 2, n}:
        value = dimension.decode(np.array([k / n]))
        assert type(value) is int and value == members[k]
        assert dimension.encode(value)[0] == k / n and dimension.check(float(value)) == value


@pytest.mark.parametrize(
    ("space", "value", "expected"),
    [
        (Real(0.0, 1.0, step=0.1), 0.25, "in steps of 0.1"),
        (Real(0.0, 1.0, step=0.3), 1.0, "0.9"),
        (Real(0.0, 1.0, step=0.1), math.nan, "in steps of 0.1"),
        (Integer(1, 9, step=4), 3, "in steps of 4 from 1"),
        (Integer(1, 8, step=4), 9, r"\[1, 8\]"),
        (Ordinal([16, 32]), 24, r"one of \[16, 32\]"),
        (Ordinal([1, 2]), True, r"one of \[1, 2\]"),
        (Categorical([3, 4]), 5, r"one of \[3, 4\]"),
    ],
)
def test_values_that_are_not_members_are_refused(space, value, expected):
    with pytest.raises(InvalidPoint, match=r"params\['n'\].*pass .*" + expected):
        Space({"n": space}).encode({"n": value})


@pytest.mark.parametrize(
    ("dimension", "values"),
    [
        (Integer(32, 1024, log=True, step=32), [32 * k for k in range(1, 33)]),
        (Integer(6, 20, log=True, step=3), [6, 9, 12, 15, 18]),
        (Real(0.3, 1.2, log=True, step=0.1), [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2]),
    ],
)
def test_steps_on_a_logarithmic_scale(dimension, values):
    assert [dimension.member(i) for i in range(dimension.n_levels)] == values
    expected = np.log(np.array(values) / values[0]) / np.log(values[-1] / values[0])
    assert np.allclose([dimension.encode(value)[0] for value in values], expected, atol=1e-12)
    assert [dimension.decode(dimension.encode(value)) for value in values] == values
    # On a logarithmic scale, all values are drawn, the first values more often than the last.
    draws = [trial.params["x"] for trial in bl.RandomSearch({"x": dimension}, seed=0).suggest(n=400)]
    assert set(draws) == set(values) and draws.count(values[0]) > draws.count(values[-1])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Real(0.0, 1.0, step=0), "step must be a positive number"),
        (lambda: Real(0.0, 1.0, step=-0.1), "step must be a positive number"),
        (lambda: Real(0.0, 1.0, step=math.inf), "step must be a positive number"),
        (lambda: Real(0.0, 1.0, step="0.1"), "step must be a positive number"),
        (lambda: Real(0.0, 1.0, step=1.5), "has one value: make step at most"),
        (lambda: Real(0.15, 1.0, log=True, step=0.1), "low must be a multiple of step"),
        (lambda: Real(0.0, 1.0, step=1e-18), "too many values.*leave step out"),
        (lambda: Integer(0, 9, step=0), "step must be a positive number"),
        (lambda: Integer(9, 9, step=0), "step must be a positive number"),
        (lambda: Real(0.5, 0.5, step=-1.0), "step must be a positive number"),
        (lambda: Integer(0, 9, step=1.5), "step must be an integer.*use Real"),
        (lambda: Integer(0, 9, step=True), "step must be a positive number"),
        (lambda: Integer(0, 9, step=10), "has one value: make step at most"),
        (lambda: Integer(1, 9, log=True, step=2), "low must be a multiple of step"),
        (lambda: Ordinal([1]), "give at least two, or write a constant as its value"),
        (lambda: Ordinal([1, 2, 1.0]), "values has 1.0 twice"),
        (lambda: Ordinal("abc"), "pass a list of values"),
        (lambda: Ordinal(range(3)), "pass a list of values"),
        (lambda: Ordinal({1, 2}), "pass a list of values"),
        (lambda: Ordinal([Real(0, 1), 3]), "write the dimension itself"),
        (lambda: Categorical([]), "give at least one"),
        (lambda: Integer(4, 3), "is empty: low must not be greater than high"),
        (lambda: Real(3.5, 3.0), "is empty: low must not be greater than high"),
    ],
)
def test_impossible_dimensions_are_refused(make, message):
    with pytest.raises(InvalidSpace, match=message):
        make()


@given(st.lists(st.one_of(st.text(), st.integers(), st.none(), st.tuples(st.booleans())), unique=True, min_size=2))
def test_ordinal_round_trip(values):
    dimension = Ordinal(values)
    columns = [dimension.encode(value)[0] for value in values]
    assert columns == [k / (len(values) - 1) for k in range(len(values))]
    assert [dimension.decode(np.array([u])) for u in columns] == values
    assert [dimension.from_number(dimension.to_number(value)) for value in values] == values


def test_equal_numbers_of_other_types_are_other_choices_within_tuples_too():
    dimension = Categorical([(1, "a"), (True, "a"), ((1,),), ((True,),)])
    assert [int(np.argmax(dimension.encode(choice))) for choice in dimension.choices] == [0, 1, 2, 3]


def test_constants_are_in_the_params_but_are_not_searched():
    space = Space({"a": None, "x": (0.0, 1.0), "b": True, "c": 3, "d": 0.5, "e": "adam", "f": ["one"]})
    assert space.searched == ["x"] and space.width == 1
    params = {"a": None, "x": 0.25, "b": True, "c": 3, "d": 0.5, "e": "adam", "f": "one"}
    assert space.decode(space.encode(params)) == params
    place = space.locate(params)
    assert place == [0.25] and space.params_at(place) == params
    with pytest.raises(InvalidPoint, match=r"params\['e'\]='sgd'.*pass one of \['adam'\]"):
        space.encode(params | {"e": "sgd"})
    for opt in (bl.BayesOpt(space, seed=0), bl.RandomSearch(space, seed=0)):
        for trial in opt.suggest(n=12):
            assert trial.params == params | {"x": trial.params["x"]}
            trial.observe(trial.params["x"])
        assert opt.add(params, 1.0).params == params


def test_numpy_scalars_are_constants_of_python():
    space = Space({"x": (0.0, 1.0), "n": np.int64(3), "b": np.bool_(True), "f": np.float32(0.5)})
    constants = [space[name].choices[0] for name in ("n", "b", "f")]
    assert constants == [3, True, 0.5] and [type(value) for value in constants] == [int, bool, float]


@pytest.mark.parametrize("dimensions", [{"a": 1}, {"a": ["x"], "b": None}, [("a", "b")]])
def test_constants_alone_are_refused(dimensions):
    with pytest.raises(InvalidSpace, match=r"space has constants alone: give at least one parameter to search"):
        Space(dimensions)


@pytest.mark.parametrize("value", [math.nan, math.inf, Decimal(3), Fraction(1, 2), 1j, b"x", object(), print])
def test_objects_that_cannot_be_constants_are_refused(value):
    with pytest.raises(InvalidSpace, match=r"space\['a'\]=.*constants as bl.Categorical\(\[object\]\)"):
        Space({"x": (0.0, 1.0), "a": value})


@given(st.integers(0, 3), st.floats(0, 1))
def test_optimizers_suggest_members_of_every_kind(seed, part):
    assume(part > 0.01)
    space = {"x": Real(0.0, 1.0, step=round(part, 3)) if part < 1 else (0.0, 1.0), "n": Integer(3, 40, step=7)}
    space |= {"o": Ordinal(["low", "mid", "high"]), "c": Categorical([(1, 2), None, True])}
    opt = bl.BayesOpt(space, seed=seed, initial=4)
    for _ in range(6):
        trial = opt.suggest()
        for name, dimension in opt.domain.items():
            assert dimension.check(trial.params[name]) == trial.params[name]
        trial.observe(trial.params["x"])
        assert opt.add(trial.params).params == trial.params


ODD = [True, 1, 1.0, 0.1, math.nan, "a", "1", b"a", None, (), (1,), (1.0,), (True,), ((1, "a"),), ([1],), [1], [1.0]]
ODD += [np.True_, np.int64(1), np.float32(0.1), np.str_("a"), Decimal(1), frozenset({1}), {1}, np.ones(2), print, len]
ODD += [
    np.float64("nan"),
    (float("nan"),),
    [float("nan")],
    {"a": [1, math.nan]},
    {"a": [1.0, np.nan]},
    np.array([1, np.nan]),
]


def same_by_definition(a, b):
    a, b = (each.item() if isinstance(each, np.generic) else each for each in (a, b))
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        a, b = a.tolist(), b.tolist()
    if isinstance(a, dict) and isinstance(b, dict):
        a, b = list(a.items()), list(b.items())
    if isinstance(a, (tuple, list)) and type(a) is type(b):
        return len(a) == len(b) and all(same_by_definition(*pair) for pair in zip(a, b, strict=True))
    if a is b or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b)):
        return True
    bools = [isinstance(each, (bool, np.bool_)) for each in (a, b)]
    try:
        return bools[0] == bools[1] and bool(a == b)
    except (TypeError, ValueError):
        return False


@given(st.lists(st.sampled_from(range(len(ODD))), min_size=1, max_size=6), st.sampled_from(range(len(ODD))))
def test_repeated_choices_are_found_as_by_comparing_all_pairs(members, asked):
    values, value = [ODD[i] for i in members], ODD[asked]
    pairs = [(earlier, later) for i, later in enumerate(values) for earlier in values[:i]]
    if any(same_by_definition(*pair) for pair in pairs):
        with pytest.raises(InvalidSpace, match="twice"):
            Categorical(values)
        return
    choices = Categorical(values)
    places = [i for i, other in enumerate(values) if same_by_definition(other, value)]
    if places:
        assert choices.level(value) == places[0]
    else:
        with pytest.raises(ValueError, match="one of"):
            choices.level(value)


def test_choices_with_a_key_are_not_compared_with_each_other(monkeypatch):
    monkeypatch.setattr("belated.space.dimensions._same_choice", lambda other, value: 1 / 0)
    names = [f"choice {i}" for i in range(40)]
    choices = Categorical(names)
    assert [choices.level(name) for name in names] == list(range(40))


# The next tests check dimensions with a single value, and which value of a dimension is nearest to a column.


@pytest.mark.parametrize(
    "constant",
    [(3, 3), (0.5, 0.5), Integer(3, 3), Real(0.5, 0.5), Integer(3, 3, log=True)]
    + [Integer(32, 32, step=32), Integer(32, 32, step=5), Real(0.5, 0.5, step=0.1), Real(0.5, 0.5, log=True, step=0.5)],
    ids=repr,
)
def test_equal_bounds_are_a_constant(constant, tmp_path):
    value = constant[0] if isinstance(constant, tuple) else constant.low
    given = {"x": (0.0, 1.0), "c": constant, "d": Integer(1, 5, when={"c": value})}
    study = bl.Study("s", f"sqlite:///{tmp_path / 's.db'}", bl.BayesOpt(given, seed=0, initial=2))
    for trial in study.suggest(n=4):
        assert trial.params["c"] == value and type(trial.params["c"]) is type(value) and "d" in trial.params
        study.observe(trial, trial.params["x"])
    again = bl.Study.load("s", study.store)
    assert again.domain.width == 2 and [each.params for each in again.trials] == [each.params for each in study.trials]
    assert again.recommend()["c"] == again.suggest().params["c"] == value
    whole = again.add({"x": 0.5, "c": value, "d": 2}, 1.0)
    assert again.trial(whole.number).params == {"x": 0.5, "c": value, "d": 2}
    with pytest.raises(InvalidPoint, match=r"params\['c'\]"):
        again.add({"x": 0.5, "c": value + 1, "d": 2}, 1.0)
    with pytest.raises(InvalidSpace, match="constants alone"):
        Space({"c": constant})


ranges_of_integers = st.tuples(st.integers(1, 2**40 - 1), st.integers(1, 2**40)).map(lambda pair: (pair[0], sum(pair)))
small_ranges = st.tuples(st.integers(1, 30), st.integers(1, 30)).map(lambda pair: (pair[0], sum(pair)))


@given(small_ranges | ranges_of_integers, st.floats(0, 1), st.floats(0, 1))
def test_a_log_integer_is_the_nearest_by_ratio(bounds, u, part):
    low, high = bounds[0], min(bounds[1], 2**40)
    assume(low < high)
    dimension = Integer(low, high, log=True)
    value = dimension.decode([u])
    assert low <= value <= high
    # low * (high / low) ** u lies between two geometric means: of the value and its lower neighbour, and of the value
    # and its upper neighbour.
    with localcontext() as context:
        context.prec = 60
        at = Decimal(low) * (Decimal(high) / low) ** Decimal(u)
        if value > low:
            assert at >= (Decimal(value) * (value - 1)).sqrt() * (1 - Decimal("1e-13"))
        if value < high:
            assert at <= (Decimal(value) * (value + 1)).sqrt() * (1 + Decimal("1e-13"))
    inside = low + round(part * (high - low))
    assert dimension.decode(dimension.encode(inside)) == inside


@given(small_ranges, st.booleans(), st.integers(0, 2**32))
def test_columns_are_decoded_as_the_core_reads_them(bounds, log, seed):
    low, high = bounds
    dimension = Integer(low, high, log=log)
    opt = bl.RandomSearch({"n": dimension}, seed=seed)
    core = opt._new_core()
    for number in core.suggest(5, None, None):
        [value] = core.trial(number).place
        assert dimension.decode(dimension.encode(value)) == value
    for u in np.random.default_rng(seed).random(20):
        value = dimension.decode([u])
        distances = [abs(dimension.encode(n)[0] - u) for n in range(low, high + 1)]
        assert distances[value - low] <= min(distances) + 1e-12
