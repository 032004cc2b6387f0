"""`importances`: shares of the parameters in the variance of f."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import belated as bl
from belated import plotting
from belated.optimizers.importance import paired_points, shares


def searched(space, f, n=24, **arguments):
    opt = bl.BayesOpt(space, initial=n, seed=0, **arguments)
    for trial in opt.suggest(n):
        trial.observe(f(trial.params))
    return opt


@given(st.integers(5, 99), st.integers(1, 5), st.integers(0, 99))
def test_points_are_evenly_spread_in_each_dimension_and_pair(n, d, seed):
    a, b = paired_points(n, d, np.random.default_rng(seed))
    assert a.shape == b.shape == (n, d)
    assert (np.sort((a * n).astype(int), axis=0) == np.arange(n)[:, None]).all()
    assert ((a - b) ** 2).mean(axis=0) == pytest.approx(np.full(d, 1 / 6), abs=1 / n)


@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 99))
def test_effects_of_all_pairs_are_the_shares_of_the_variance(n_rows, n_columns, seed):
    """All pairs of points are listed, and the conditional variances are computed from the table of f."""
    table = np.random.default_rng(seed).normal(size=(n_rows, n_columns)) * 10.0 ** (seed % 9 - 4)
    i, j, k, m = np.array(list(itertools.product(*map(range, table.shape * 2)))).T
    values = np.array([[table[i, j], table[k, j], table[i, m]]])
    variance = table.var() or 1.0
    expected = [table.var(axis=0).mean() / variance, table.var(axis=1).mean() / variance]
    assert shares(values) == pytest.approx(np.array([expected]), abs=1e-12)


@given(st.integers(1, 4), st.integers(1, 9), st.integers(0, 9999))
def test_no_effect_exceeds_one(d, n, seed):
    values = np.random.default_rng(seed).normal(size=(3, d + 1, n)).round(seed % 3)
    found = shares(values)
    assert found.shape == (3, d) and (found >= 0).all() and (found <= 1).all()


def test_intervals_of_a_function_of_one_parameter_end_at_one():
    space = {"x": (0.0, 1.0), "y": (0.0, 1.0), "z": (0.0, 1.0)}
    for seed in range(4):
        rng = np.random.default_rng(seed)
        opt = bl.BayesOpt(space, seed=seed)
        points = [dict(zip(space, row, strict=True)) for row in rng.random((27, 3))]
        opt.add(points, [(p["x"] - 0.4) ** 2 + 0.002 * rng.standard_normal() for p in points])
        _, (low, middle, high) = opt._effect_intervals(None, "test")
        assert 0.97 < low[0] <= middle[0] <= high[0] <= 1 and (high <= 1).all() and (low >= 0).all()


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_shares_of_an_additive_function(direction):
    """f = 3 a + b + (-2 or 2): the variances are 9/12, 1/12 and 4."""
    space = {"c": 7, "n": bl.Integer(1, 5), "b": (0.0, 1.0), "k": ["u", "v"], "a": (0.0, 1.0)}
    opt = searched(space, lambda p: 3 * p["a"] + p["b"] + (2 if p["k"] == "u" else -2), 40, direction=direction)
    shares = opt.importances()
    assert list(shares)[:3] == ["k", "a", "b"] and set(shares) == {"k", "a", "b", "n"}
    assert list(shares.values()) == sorted(shares.values(), reverse=True)
    assert sum(shares.values()) == pytest.approx(1)
    total = 9 / 12 + 1 / 12 + 4
    expected = {"k": 4 / total, "a": 0.75 / total, "b": 1 / 12 / total, "n": 0}
    assert shares == pytest.approx(expected, abs=0.03)


def test_shares_are_the_medians_of_the_plot_divided_by_their_sum():
    pytest.importorskip("matplotlib").use("Agg")
    space = {"kernel": ["rbf", "poly"], "degree": bl.Integer(1, 5, when={"kernel": "poly"}), "C": (0.0, 1.0)}
    opt = bl.BayesOpt(space, context={"t": (0.0, 1.0)}, seed=0)
    points = [{"kernel": "poly", "degree": i % 5 + 1, "C": i / 20} for i in range(20)]
    points += [{"kernel": "rbf", "C": i / 10} for i in range(10)]
    opt.add(points, [p.get("degree", 0) + math.sin(5 * p["C"]) for p in points], context={"t": 0.5})
    ax = plotting.plot_importance(opt, context={"t": 0.2})
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    widths = {name: bar.get_width() for name, bar in zip(names, ax.patches, strict=True)}
    shares = opt.importances(context={"t": 0.2})
    assert list(shares) == names[::-1]
    assert shares == pytest.approx({name: width / sum(widths.values()) for name, width in widths.items()})
    with pytest.raises(bl.errors.InvalidContext):
        opt.importances()


@pytest.mark.parametrize(("n", "d"), [(20, 2), (200, 12)])
def test_functions_that_are_smooth_and_almost_known(n, d):
    """The covariances of close points are below the rounding errors. The shares of a linear function are known."""
    weights = {f"x{i}": i + 1 for i in range(d)}
    opt = searched(dict.fromkeys(weights, (0.0, 1.0)), lambda p: sum(weights[name] * p[name] for name in weights), n)
    total = sum(weight**2 for weight in weights.values())
    shares = {name: weight**2 / total for name, weight in weights.items()}
    assert opt.importances() == pytest.approx(shares, abs=0.005)


@settings(max_examples=10, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(-1e6, 1e6)), min_size=2, max_size=12))
def test_any_two_values_give_shares_or_an_error(data):
    opt = bl.BayesOpt({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=0)
    opt.add([{"x": x, "y": 1 - x} for x, _ in data], [value for _, value in data])
    try:
        shares = opt.importances()
    except bl.errors.NotFitted:
        return
    assert sum(shares.values()) == pytest.approx(1) and min(shares.values()) >= 0


def test_too_few_values():
    opt = bl.BayesOpt({"x": (0.0, 1.0)}, seed=0)
    with pytest.raises(bl.errors.NotFitted, match="importances needs values: observe at least one trial first"):
        opt.importances()
    opt.add([{"x": 0.1}, {"x": 0.5}, {"x": 0.9}], [1.0, 1.0, None])
    with pytest.raises(bl.errors.NotFitted, match="the trials have a single value: observe more trials"):
        opt.importances()
    opt.observe(2, 2.0)
    assert opt.importances() == {"x": 1.0}


def test_searches_without_importances():
    with pytest.raises(
        bl.errors.InvalidSetting, match="importances needs a model, and RandomSearch has none: use BayesOpt"
    ):
        bl.RandomSearch({"x": (0.0, 1.0)}).importances()
    with pytest.raises(bl.errors.InvalidSetting, match="importances needs a space of named parameters"):
        bl.BayesOpt(candidates=np.eye(3)).importances()


# Intervals.


def test_intervals_begin_at_zero_if_the_evidence_without_the_parameter_is_not_much_smaller():
    """The evidences are computed with numpy."""
    gp = bl.GP(kernel="squared_exponential", lengthscale=0.5, signal_std=1.0, noise_std=0.5, mean=0.0, targets="raw")
    found = set()
    for seed, weight in enumerate((0.0, 0.3, 0.5, 0.7, 0.9, 2.0)):
        rng = np.random.default_rng(seed)
        x = rng.random((15, 2))
        y = x[:, 0] + weight * x[:, 1] - (1 + weight) / 2 + rng.normal(0, 0.5, 15)

        def log_evidence(columns, x=x, y=y):
            squares = ((x[:, None, columns] - x[None, :, columns]) ** 2).sum(axis=2)
            covariance = np.exp(-0.5 * squares / 0.5**2) + 0.25 * np.eye(15)
            return -0.5 * y @ np.linalg.solve(covariance, y) - 0.5 * np.linalg.slogdet(covariance)[1]

        opt = bl.BayesOpt({"a": (0.0, 1.0), "c": 3, "b": (0.0, 1.0)}, surrogate=gp, seed=0)
        opt.add([{"a": a, "b": b} for a, b in x], y)
        names, (low, middle, high) = opt._effect_intervals(None, "test")
        without = [log_evidence([1]), log_evidence([0])]
        expected = [log_evidence([0, 1]) - each <= math.log(19) for each in without]
        assert names == ["a", "b"] and (low == 0).tolist() == expected
        assert (low <= middle).all() and (middle <= high).all()
        found |= set(expected)
    assert found == {True, False}


@pytest.mark.parametrize("is_table", [False, True])
def test_most_intervals_of_parameters_without_effect_begin_at_zero(is_table):
    n_zero = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        columns = {f"x{i}": rng.random(80).round(3).tolist() for i in range(4)}
        columns = {"fixed": [2.0] * 80, "long": columns.pop("x0"), "k": rng.choice(["u", "v"], 80).tolist(), **columns}
        points = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        space = {"fixed": 2.0, "k": ["u", "v"], **dict.fromkeys(["long", "x1", "x2", "x3"], (0.0, 1.0))}
        opt = bl.BayesOpt(**({"candidates": columns} if is_table else {"space": space}), seed=seed)
        opt.add(points, [3 * p["long"] + rng.normal(0, 0.3) for p in points])
        names, (low, _, _) = opt._effect_intervals(None, "test")
        lows = dict(zip(names, low, strict=True))
        assert lows.pop("long") > 0.5
        n_zero += sum(each == 0 for each in lows.values())
    assert n_zero >= 14  # of 16


def test_a_plot_of_few_values_says_so():
    pytest.importorskip("matplotlib").use("Agg")
    titles = []
    for n in (4, 30):
        opt = searched(dict.fromkeys("abcd", (0.0, 1.0)), lambda p: math.sin(3 * p["a"]) * p["b"], n)
        titles.append(plotting.plot_importance(opt).get_title())
    assert titles == ["The 4 values do not show that a parameter has an effect", ""]
