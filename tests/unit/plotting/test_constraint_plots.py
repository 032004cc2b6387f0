"""Plots of searches with constraints: excluded points, triangles of mixtures, Cox's directions, and trials that cannot
be used as they are."""

from contextlib import nullcontext

import numpy as np
import pytest

import belated as bl
from belated import plotting
from belated._core import Action, Observation
from belated.errors import InvalidSetting
from belated.plotting.figures import HOLLOW
from belated.plotting.regions import EXCLUDED, allowed, completed
from belated.plotting.ternary import triangle_of
from tests.unit.plotting.searches import drawn

pytest.importorskip("matplotlib").use("Agg")
tri = pytest.importorskip("matplotlib.tri")

BOX = {"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 1.0)}
BLEND = {"water": (0.5, 0.8), "oil": (0.1, 0.4), "salt": (0.0, 0.1), "gum": (0.0, 0.2), "T": (20.0, 80.0)}


def searched(space, constraints, f, n=16, **settings):
    optimizer = bl.BayesOpt(space, constraints=constraints, initial=n, seed=0, **settings)
    for trial in optimizer.suggest(n=n):
        trial.observe(f(trial.params))
    return optimizer


def of_parts(params):
    return 5 * params["a"] - 4 * (params["b"] - 0.3) ** 2


def of_blend(params):
    return params["water"] * params["oil"] + 5 * params["salt"] - params["gum"] ** 2 + params["T"] / 100


@pytest.fixture(scope="module")
def mixture():
    return searched(BOX, [bl.Mixture(["a", "b", "c"])], of_parts)


@pytest.fixture(scope="module")
def blend():
    return searched(BLEND, [bl.Mixture(["water", "oil", "salt", "gum"])], of_blend, n=20)


def legend_of(axes):
    return [text.get_text() for text in np.ravel(axes)[0].figure.legends[0].get_texts()]


def is_coloured(ax, points):
    """Return whether each point lies in a filled contour that is not a hatch."""
    sets = [each for each in ax.collections if hasattr(each, "levels") and not any(each.hatches)]
    places = np.array([path for each in sets for path in each.get_paths() if len(path.vertices)], dtype=object)
    return np.array([any(path.contains_point(point) for path in places) for point in points])


def is_hatched(ax, points):
    sets = [each for each in ax.collections if hasattr(each, "levels") and any(each.hatches)]
    return np.array([any(path.contains_point(p) for s in sets for path in s.get_paths()) for p in points])


CONSTRAINTS = {
    "function": (lambda p: p["a"] + p["b"] <= 1, lambda a, b: a + b <= 1),
    "linear": (bl.Linear({"a": 2, "b": -1}, at_least=0.25, at_most=1.0), lambda a, b: 0.25 <= 2 * a - b <= 1.0),
    "mixture": (bl.Mixture(["a", "b", "c"]), lambda a, b: a + b <= 1),
}


@pytest.mark.parametrize("kind", CONSTRAINTS)
def test_contours_are_coloured_where_the_constraint_holds(kind):
    constraint, holds = CONSTRAINTS[kind]
    optimizer = searched(BOX, [constraint], of_parts)
    axes = plotting.plot_contour(optimizer, ["a", "b"])
    # Points at least two cells of the grid away from the border of the constraint.
    points = np.random.default_rng(0).uniform(0.06, 0.94, (400, 2))
    around = [
        np.array([holds(*(p + 0.05 * np.array(d))) for d in ((1, 1), (-1, 1), (1, -1), (-1, -1))]) for p in points
    ]
    clear = [(p, bool(each[0])) for p, each in zip(points, around, strict=True) if each.all() or not each.any()]
    inside = np.array([each for _, each in clear])
    assert 0 < inside.sum() < len(inside)
    for ax in axes:
        assert np.array_equal(is_coloured(ax, [p for p, _ in clear]), inside)
        assert np.array_equal(is_hatched(ax, [p for p, _ in clear]), ~inside)
    assert legend_of(axes).count(EXCLUDED) == 1 and "constraint" in EXCLUDED


def test_counts_exclude_combinations():
    space = {"a": bl.Integer(0, 2), "b": bl.Integer(0, 2), "c": bl.Integer(0, 2)}
    optimizer = searched(space, [bl.Cardinality(["a", "b", "c"], at_most=1)], lambda p: p["a"] + 2.0 * p["c"], n=6)
    points = [{"a": a, "b": b, "c": c} for a in range(3) for b in range(3) for c in range(3)]
    expected = [sum(value != 0 for value in point.values()) <= 1 for point in points]
    assert allowed(optimizer, optimizer.domain, points).tolist() == expected
    assert EXCLUDED in legend_of(plotting.plot_slice(optimizer))


def test_slices_end_where_constraints_exclude_the_line():
    optimizer = searched(BOX, [lambda p: p["a"] + p["b"] <= 1], of_parts)
    best = optimizer.recommend()
    a, b, c = plotting.plot_slice(optimizer)
    for ax, other in ((a, "b"), (b, "a")):
        at, mean = drawn(ax)["mean ± std"].get_data()
        assert np.array_equal(np.isnan(mean), at + best[other] > 1)
        [area] = [each for each in ax.collections if each.get_label() == EXCLUDED]
        edges = area.get_paths()[0].vertices[:, 0]
        assert edges.max() == 1.0 and edges.min() == at[~np.isnan(mean)].max()
    assert EXCLUDED not in c.get_legend_handles_labels()[1]
    assert legend_of([a]).count(EXCLUDED) == 1


def test_an_excluded_choice_is_hatched_over_its_width():
    optimizer = searched(BOX | {"k": ["u", "v", "w"]}, [lambda p: p["k"] != "v"], of_parts)
    [ax] = plotting.plot_slice(optimizer, "k")
    [area] = [each for each in ax.collections if each.get_label() == EXCLUDED]
    assert [(p.vertices[:, 0].min(), p.vertices[:, 0].max()) for p in area.get_paths()] == [(0.5, 1.5)]
    mean, _ = plotting.plot_contour(optimizer, ["a", "k"])
    assert is_hatched(mean, [(0.5, 0), (0.5, 1), (0.5, 2)]).tolist() == [False, True, False]


def shared(rest, amounts, bounds):
    """Return min(max(t x, low), high) for the amounts x, with the t at which the sum is `rest`, by bisection."""
    low, high = np.array(bounds).T
    (least, most) = (0.0, 1e6)
    for _ in range(200):
        t = 0.5 * (least + most)
        least, most = (t, most) if np.clip(t * amounts, low, high).sum() < rest else (least, t)
    return np.clip(t * amounts, low, high)


def test_slices_of_parts_keep_the_total_and_the_proportions_of_the_other_parts(blend, monkeypatch):
    best = {"water": 0.61, "oil": 0.23, "salt": 0.05, "gum": 0.11, "T": 50.0}
    monkeypatch.setattr(blend, "recommend", lambda context=None: best)
    parts = [name for name in BLEND if name != "T"]
    for name in parts:
        others = [each for each in parts if each != name]
        amounts, bounds = np.array([best[each] for each in others]), [BLEND[each] for each in others]
        [ax] = plotting.plot_slice(blend, name)
        at, mean = drawn(ax)["mean ± std"].get_data()
        kept = 0
        for value, own in zip(at, mean, strict=True):
            # The mean is drawn wherever a blend with this part exists.
            exists = sum(low for low, _ in bounds) - 1e-9 <= 1 - value <= sum(high for _, high in bounds) + 1e-9
            assert np.isfinite(own) == exists
            if exists:
                point = dict(zip(others, shared(1 - value, amounts, bounds), strict=True)) | {name: value, "T": 50.0}
                assert own == pytest.approx(blend.predict(point)[0], rel=1e-6)
                found = completed(blend.domain, best | {name: value}, [name])
                assert found == pytest.approx(point, abs=1e-9)
                assert sum(found[each] for each in parts) == pytest.approx(1.0, abs=1e-12)
                ratios = np.array([found[each] for each in others]) / amounts
                kept += np.ptp(ratios) < 1e-12
        assert kept > 10  # no other part has reached a bound


def test_a_changed_point_satisfies_equalities():
    rng = np.random.default_rng(0)
    limits = [bl.Linear({"a": 2, "b": 1, "c": -1}, equals=0.5)]
    optimizer = bl.BayesOpt(BOX | {"d": (0.0, 1.0)}, constraints=limits, seed=0)
    n_inside = 0
    for _ in range(200):
        point = dict(zip("abcd", rng.random(4), strict=True))
        found = completed(optimizer.domain, point, ["a", "d"])
        assert (found["a"], found["d"]) == (point["a"], point["d"])
        if all(0.0 < found[name] < 1.0 for name in "bc"):
            n_inside += 1
            assert 2 * found["a"] + found["b"] - found["c"] == pytest.approx(0.5)
            assert found["b"] * point["c"] == pytest.approx(found["c"] * point["b"])
    assert n_inside > 10
    # Without proportions, the other parts get equal shares.
    optimizer = bl.BayesOpt(BOX, constraints=[bl.Mixture(["a", "b", "c"], total=0.8)], seed=0)
    assert completed(optimizer.domain, {"a": 0.2, "b": 0.0, "c": 0.0}, ["a"]) == pytest.approx(
        {"a": 0.2, "b": 0.3, "c": 0.3}
    )


def test_mixtures_in_steps_are_drawn_between_their_steps():
    optimizer = searched(BOX, [bl.Mixture(["a", "b", "c"], step=0.1)], of_parts)
    for ax in plotting.plot_slice(optimizer):
        assert np.isfinite(drawn(ax)["mean ± std"].get_ydata()).all()


def barycentric(place, corners):
    """Return the weights w with place = Σ w_i corner_i and Σ w_i = 1."""
    return np.linalg.solve(np.vstack([np.transpose(corners), np.ones(3)]), [*place, 1.0])


def test_places_in_a_triangle_are_barycentric(blend):
    best = blend.recommend()
    names = ["oil", "water", "gum"]
    triangle = triangle_of(blend.domain, best, names)
    rest = sum(best[name] for name in names)
    corners = np.array([[0.5, np.sqrt(3) / 2], [0.0, 0.0], [1.0, 0.0]])
    values = triangle.values(9)
    assert len(values) == 45 and values.sum(axis=1) == pytest.approx(np.full(45, rest))
    for parts, place in zip(values, triangle.places(values), strict=True):
        weights = barycentric(place, corners)
        assert weights.min() > -1e-12
        assert triangle.lowest + weights * triangle.width == pytest.approx(parts)


def test_triangles_are_not_larger_than_the_parts_need():
    space = {"a": (0.0, 1.0), "b": (0.05, 0.2), "c": (0.0, 0.15), "d": (0.0, 0.1)}
    optimizer = bl.BayesOpt(space, constraints=[bl.Mixture(list(space))], seed=0)
    triangle = triangle_of(optimizer.domain, {"a": 0.7, "b": 0.1, "c": 0.1, "d": 0.1}, ["a", "b", "c"])
    # With d = 0.1, the smallest values of the parts in possible blends are found on a fine grid.
    grid = [(round(0.9 - b - c, 9), b, c) for b in np.arange(0.05, 0.201, 0.01) for c in np.arange(0.0, 0.151, 0.01)]
    assert triangle.lowest == pytest.approx(np.min(grid, axis=0))
    assert triangle.width == pytest.approx(0.9 - np.min(grid, axis=0).sum())


def test_three_parts_are_a_triangle_of_the_mean(mixture):
    for axes in (plotting.plot_contour(mixture), plotting.plot_contour(mixture, ["a", "b", "c"])):
        assert axes.shape == (2,)
        for which, ax in enumerate(axes):
            [contours] = [each for each in ax.collections if hasattr(each, "levels")]
            # The level at the border of a filled contour is the mean there.
            corners = np.array([[0.5, np.sqrt(3) / 2], [0.0, 0.0], [1.0, 0.0]])
            grid = [(i / 40, j / 40, 1 - (i + j) / 40) for i in range(41) for j in range(41 - i)]
            known = mixture.predict([dict(zip("abc", p, strict=True)) for p in grid])[which]
            linear = tri.LinearTriInterpolator(tri.Triangulation(*(np.array(grid) @ corners).T), known)
            step = contours.levels[1] - contours.levels[0]
            checked = 0
            for level, path in zip(contours.levels, contours.get_paths()[1:], strict=False):
                inner = [p for p in path.vertices if barycentric(p, corners).min() > 0.01]
                values = np.array([float(linear(*p)) for p in inner])
                assert np.minimum(abs(values - level), abs(values - level - step)).max(initial=0.0) < 1e-3 * step
                checked += len(inner)
            assert checked > 20
            trials = np.array([[t.params[name] for name in "abc"] for t in mixture.trials])
            assert drawn(ax)["observed"].get_xydata() == pytest.approx(trials @ corners)
    assert "a = 1" in [text.get_text() for text in axes[0].texts]


def test_triangles_are_for_three_parts_of_one_mixture(blend):
    assert plotting.plot_contour(blend, ["water", "oil", "T"]).shape == (2, 2)
    assert plotting.plot_contour(blend, ["water", "oil", "gum"]).shape == (2,)
    best = blend.recommend()
    assert triangle_of(blend.domain, best, ["water", "oil"]) is None
    two = searched({"a": (0.0, 1.0), "b": (0.0, 1.0)}, [bl.Mixture(["a", "b"])], lambda p: p["a"], n=4)
    with pytest.raises(InvalidSetting, match="one of them determines the other, so use plot_slice"):
        plotting.plot_contour(two)


def test_trials_with_other_sums_are_drawn_at_their_proportions(blend):
    names = ["water", "oil", "gum"]
    triangle = triangle_of(blend.domain, blend.recommend(), names)
    parts = np.array([[0.5, 0.3, 0.1], [1.0, 0.6, 0.2]])
    one, other = triangle.places(parts)
    assert one == pytest.approx(other)
    corners = np.array([[0.5, np.sqrt(3) / 2], [0.0, 0.0], [1.0, 0.0]])
    shares = triangle.lowest + barycentric(one, corners) * triangle.width
    assert shares / shares.sum() == pytest.approx(parts[0] / parts[0].sum())


# Scales and digits.


def test_a_corner_without_data_does_not_fill_the_scale():
    optimizer = bl.BayesOpt({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=1)
    for point in 0.5 * np.random.default_rng(0).random((14, 2)):
        optimizer.add({"x": point[0], "y": point[1]}, float(1000 + np.exp(3 * point.sum())))
    mean, std = plotting.plot_contour(optimizer)
    grid = np.linspace(0.0, 1.0, 41)
    predicted = optimizer.predict([{"x": x, "y": y} for x in grid for y in grid])
    values = [trial.value for trial in optimizer.trials]
    known = [*values, *predicted[0][predicted[1] <= 0.5 * np.std(values)]]
    [contours] = [each for each in mean.collections if hasattr(each, "levels")]
    step = contours.levels[1] - contours.levels[0]
    assert predicted[0].max() > max(known) + step
    assert max(known) <= contours.levels[-1] < max(known) + step
    left, right = mean.figure.axes[2:]
    assert left._colorbar.extend == "max" and right._colorbar.extend in ("neither", "max")
    # The points beyond the scale have the colour of its end.
    assert is_coloured(mean, [(0.9, 0.9), (0.2, 0.2)]).all()
    texts = [text.get_text() for text in left.get_yticklabels()]
    assert len(set(texts)) == len(texts) and all(text.isdigit() for text in texts)


@pytest.mark.parametrize("span", [1e-9, 0.02, 1.0, 7.0, 300.0, 1e6, 1e9])
def test_numbers_have_the_digits_that_their_range_earns(span):
    rng = np.random.default_rng(0)
    for number in [0.0, -1e-17 * span, 2.857e-15 * span, *(span * rng.normal(size=50))]:
        text = plotting.figures.digits(number, span)
        assert abs(float(text) - number) <= 0.0005 * span * (1 + 1e-9)
        significant = text.lstrip("-").split("e")[0].replace(".", "").strip("0")
        assert len(significant) <= 5 + (abs(number) >= 10 * span)
    assert plotting.figures.digits(2.857e-15, 1.0) == "0" and plotting.figures.digits(0.5, 1.0) == "0.5"


# Trials that cannot be used as they are.

OUTCOMES = {"yield": "maximize", "purity": bl.AtLeast(0.6)}


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory):
    """Return a study whose trials 0 to 19 have values: trial 9 is marked, and 20 to 22 are pending, 20 forbidden."""
    now = [1e9]
    optimizer = bl.BayesOpt({"x": (0.0, 1.0), "y": (0.0, 1.0)}, outcomes=OUTCOMES, time=lambda: now[0], seed=0)
    study = bl.Study("laboratory", f"sqlite:///{tmp_path_factory.mktemp('lab')}/lab.db", optimizer)
    for i in range(20):
        x = 0.05 * i
        trial = study.add({"x": x, "y": (7 * i % 20) / 25}, None)
        now[0] += 43200.0
        with pytest.warns(bl.BelatedWarning) if i == 9 else nullcontext():
            trial.observe({"yield": 100.0 if i == 9 else np.sin(3 * x), "purity": 1 - 0.8 * x})
    for point in ({"x": 0.1, "y": 0.95}, {"x": 0.2, "y": 0.1}, {"x": 0.3, "y": 0.2}):
        study.add(point, None)
    with pytest.warns(bl.BelatedWarning, match="must not be run"):
        study.revise(constraints=[lambda p: p["y"] <= 0.7])
    return study


def expected_categories(study):
    def category(trial):
        if trial.state == "pending":
            return "forbidden" if trial.number in study.forbidden else "pending"
        if trial.params["y"] > 0.7:
            return "outside the space"
        if trial.values["purity"] < 0.6:
            return "beyond a bound"
        return "marked" if trial.marks else "observed"

    found = {}
    for trial in study.trials:
        found.setdefault(category(trial), []).append(trial)
    assert {*found} == {"observed", "pending", *HOLLOW}
    return found


def test_trials_that_cannot_be_used_are_hollow_and_named(laboratory):
    expected = expected_categories(laboratory)
    [x, _] = plotting.plot_slice(laboratory)
    contour = plotting.plot_contour(laboratory)
    lanes = plotting.plot_trials(laboratory)
    plots = {
        x: lambda trial: trial.params["x"],
        contour[0]: lambda trial: trial.params["x"],
        plotting.plot_convergence(laboratory, clock="trials"): lambda trial: trial.number,
    }
    for ax, at in plots.items():
        lines = drawn(ax)
        for label, trials in expected.items():
            assert sorted(lines[label].get_xdata()) == sorted(at(trial) for trial in trials)
            assert (lines[label].get_markerfacecolor() == "none") == (label in HOLLOW)
    lines = drawn(lanes)
    assert all(len(lines[label].get_xdata()) == len(expected[label]) for label in HOLLOW)
    for axes in (x, contour[0]):
        assert {*expected} <= {*legend_of([axes])}


def test_best_so_far_leaves_out_trials_that_violate_a_constraint():
    search = bl.RandomSearch({"x": (0.0, 1.0)}, constraints=[lambda p: p["x"] <= 0.5], seed=0)
    best = []
    for x, value in ((0.1, 1.0), (0.9, 5.0), (0.2, 3.0), (1.4, 7.0), (0.3, 2.0)):
        search.add({"x": x}, value)
        best.append(search.best_value_)
    lines = drawn(plotting.plot_convergence(search))
    assert best == [1.0, 1.0, 3.0, 3.0, 3.0] == lines["best so far"].get_ydata().tolist()
    assert lines["outside the space"].get_ydata().tolist() == [5.0, 7.0]


# Axes of time.


@pytest.mark.parametrize(("clock", "label"), [("seconds", "Time (days)"), ("trials", "Trial number")])
def test_convergence_over_days_or_trial_numbers(laboratory, clock, label):
    ax = plotting.plot_convergence(laboratory, clock=clock)
    assert ax.get_xlabel() == label and laboratory.clock == "iterations"
    start = min(trial.started_at for trial in laboratory.trials)
    days = [(trial.finished_at - start).total_seconds() / 86400 for trial in laboratory.trials[:20]]
    expected = days if clock == "seconds" else list(range(20))
    lines = drawn(ax)
    at, best = lines["best so far"].get_data()
    assert at == pytest.approx(expected)
    counted = [t for t in laboratory.trials[:20] if t.values["purity"] >= 0.6 and t.params["y"] <= 0.7]
    for i in range(20):
        so_far = [trial.value for trial in counted if trial.number <= i]
        assert best[i] == pytest.approx(max(so_far)) if so_far else np.isnan(best[i])


def test_unknown_clocks_are_refused(laboratory):
    with pytest.raises(InvalidSetting, match="clock='days' is not usable: pass 'seconds', 'trials' or"):
        plotting.plot_convergence(laboratory, clock="days")
    with pytest.raises(InvalidSetting, match="clock='iterations' is not usable"):
        plotting.plot_convergence(bl.RandomSearch({"x": (0.0, 1.0)}, clock="seconds"), clock="iterations")


def test_trials_without_known_times_are_left_out_of_wall_clock_time():
    search = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
    search.suggest().observe(1.0)
    search._log.record(Action.add([0.5], None, Observation(2.0)), None)  # the time of this trial is not known
    assert search.trial(1).finished_at is None and search.trial(1).value == 2.0
    assert drawn(plotting.plot_convergence(search, clock="seconds"))["observed"].get_ydata() == [1.0]
    assert drawn(plotting.plot_convergence(search, clock="trials"))["observed"].get_xdata().tolist() == [0, 1]


# Figures.


def test_a_figure_is_laid_out_once_and_not_for_each_panel(mixture, monkeypatch):
    from matplotlib import pyplot
    from matplotlib.figure import Figure

    count = []
    draw = Figure.draw_without_rendering
    monkeypatch.setattr(Figure, "draw_without_rendering", lambda self: (count.append(self), draw(self))[1])
    plotting.plot_slice(mixture)
    plotting.plot_contour(mixture, ["a", "b"])
    assert len(count) == 2
    figure, axes = pyplot.subplots(2, 3, layout="constrained")
    for ax in axes[0]:
        plotting.plot_convergence(mixture, ax)
    for ax in axes[1]:
        plotting.plot_predictions(mixture, ax)
    assert len(count) == 2


def test_notebooks_do_not_print_arrays_of_axes(mixture):
    for axes in (plotting.plot_slice(mixture), plotting.plot_contour(mixture), plotting.plot_slice(mixture)[:2]):
        assert axes._ipython_display_() is None
        assert repr(axes).startswith("AxesArray([<Axes") and isinstance(axes, np.ndarray)
    [ax] = plotting.plot_slice(mixture, "a")
    assert not isinstance(ax, np.ndarray)
    formatters = pytest.importorskip("IPython.core.formatters")
    assert formatters.DisplayFormatter().format(axes) == ({}, {})
