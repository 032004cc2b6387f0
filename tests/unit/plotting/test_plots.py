"""The tests read the artists of plots and their data; the figures are not shown."""

import math

import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator

import belated as bl
from belated import plotting
from tests.unit.plotting.searches import SPACE, drawn, f, labels, late

pytest.importorskip("matplotlib").use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")

# Other files test the plots of mean curves, of learning curves and of fronts.
OTHER = ("plot_curves", "plot_learning_curves", "plot_pareto")
PLOTS = [getattr(plotting, name) for name in plotting.__all__ if name.startswith("plot_") and name not in OTHER]
OF_A_SPACE = [plotting.plot_slice, plotting.plot_contour, plotting.plot_importance]
OF_A_MODEL = [plotting.plot_contour, plotting.plot_importance, plotting.plot_predictions]
OF_TIMES = [plotting.plot_trials, plotting.plot_workers, plotting.plot_delays]
OF_DURATIONS = [plotting.plot_durations]


# The durations of runs are measured.
@pytest.mark.parametrize("plot", [plot for plot in PLOTS if plot not in OF_DURATIONS])
def test_results_studies_and_optimizers_are_drawn_alike(plot, tmp_path):
    def new():
        return bl.BayesOpt({"x": (-2.0, 2.0), "C": bl.Real(1e-3, 10.0, log=True)}, direction="minimize", seed=0)

    study = bl.Study("s", f"sqlite:///{tmp_path}/s.db", new())
    searches = [bl.minimize(f, optimizer=new(), n_trials=7), bl.minimize(f, optimizer=study, n_trials=7), study]
    found = []
    for search in searches:
        # The searches have different wall-clock times, so times are compared in iterations.
        clock = {"clock": "iterations"} if plot in OF_TIMES else {}
        axes = plot(search, **clock)
        lines = [np.ma.filled(line.get_xydata(), -1.0).tolist() for ax in np.ravel(axes) for line in ax.lines]
        # Which trials are late depends on wall-clock times, so observed and late trials are compared together.
        found.append(sorted(point for line in lines for point in line) if plot in OF_TIMES else lines)
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("plot", PLOTS)
def test_axes_can_be_given(plot, opt):
    made = pyplot.subplots(2, 3)[1]
    if plot not in (plotting.plot_slice, plotting.plot_contour):
        assert plot(opt, ax=made[0, 0]) is made[0, 0]
        return
    # Three parameters have three slices and two rows of two contours.
    given = made[0] if plot is plotting.plot_slice else made[:, :2]
    assert (plot(opt, ax=given) == given).all()
    with pytest.raises(
        bl.errors.InvalidSetting, match="ax has 1 axes, and [34] are needed: pass as many, or leave it out"
    ):
        plot(opt, ax=given[:1, :1] if given.ndim == 2 else given[:1])


@pytest.mark.parametrize("plot", PLOTS)
def test_what_a_plot_returns_can_be_saved(plot, opt, tmp_path):
    drawings = [plot(opt)]
    if plot is plotting.plot_contour:
        drawings += [plot(opt, ["x", "C"]), drawings[0][:, 0], list(drawings[0][:, 0])]
    for i, made in enumerate(drawings):
        plotting.save(made, tmp_path / f"{i}.svg")
        assert (tmp_path / f"{i}.svg").read_text().startswith("<?xml")


# Trials.


def test_slices_show_values_and_the_mean_through_the_recommended_point(opt):
    x, c, k = plotting.plot_slice(opt)
    assert [ax.get_xlabel() for ax in (x, c, k)] == list(SPACE)
    assert [ax.get_xscale() for ax in (x, c, k)] == ["linear", "log", "linear"]
    assert x.figure.get_supylabel() == "Value (minimized)"
    best = opt.recommend()
    for name, ax in (("x", x), ("C", c)):
        lines = drawn(ax)
        observed = [(trial.params[name], trial.value) for trial in opt.trials if trial.value is not None]
        assert lines["observed"].get_xydata().tolist() == [list(each) for each in observed]
        at, mean = lines["mean ± std"].get_data()
        expected = opt.predict([best | {name: value} for value in at])
        assert np.array_equal(mean, expected[0]) and len(at) == 101
        band = ax.collections[0].get_paths()[0].vertices
        assert band[:, 1].max() == pytest.approx((expected[0] + expected[1]).max())
        assert lines["recommended"].get_xdata() == [best[name]] * 2
    assert [tick.get_text() for tick in k.get_xticklabels()] == ["a", "b", "None"]
    assert sorted(set(drawn(k)["observed"].get_xdata())) <= [0, 1, 2]
    (bars,) = k.containers
    assert np.array_equal(bars.lines[0].get_ydata(), opt.predict([best | {"k": choice} for choice in SPACE["k"]])[0])


def test_slices_of_some_parameters_without_a_model():
    opt = late(bl.RandomSearch(SPACE, seed=0))
    (ax,) = plotting.plot_slice(opt, "C")
    shown = {label: line.get_xdata() for label, line in drawn(ax).items()}
    assert {label: len(at) for label, at in shown.items()} == {"observed": 9, "failed": 1, "pending": 3}
    assert shown["failed"] == [opt.trial(2).params["C"]]
    (ax,) = plotting.plot_slice(bl.BayesOpt(SPACE, seed=0), ["x"])
    assert drawn(ax) == {} and ax.get_xlim() == (-2, 2) and ax.texts[0].get_text() == "no trials"
    with pytest.raises(
        bl.errors.InvalidSetting, match=r"names=\['y'\] is not usable: pass names out of \['x', 'C', 'k'\]"
    ):
        plotting.plot_slice(opt, ["y"])


def test_contours_are_the_mean_and_std_around_the_recommended_point(opt):
    axes = plotting.plot_contour(opt, ["x", "C"])
    best = opt.recommend()
    grid = np.linspace(-2, 2, 41), np.geomspace(1e-3, 10, 41)
    both = opt.predict([best | {"x": x, "C": c} for x in grid[0] for c in grid[1]])
    for i, ax in enumerate(axes):
        assert (ax.get_xlabel(), ax.get_xscale(), ax.get_yscale()) == ("x", "linear", "log")
        (contours,) = [each for each in ax.collections if hasattr(each, "levels")]
        step = contours.levels[1] - contours.levels[0]
        # A contour crosses the edges of the cells of a grid. On an edge, the drawn function is linear.
        drawn_function = RegularGridInterpolator(grid, both[i].reshape(41, 41))
        for level, path in zip(contours.levels, contours.get_paths()[1:], strict=False):
            inner = [(x, c) for x, c in path.vertices if abs(x) < 1.99 and 1.1e-3 < c < 9.9]
            # On the boundary of a filled contour, the function has the lower or the upper level.
            values = drawn_function(inner) if inner else np.empty(0)
            assert np.minimum(abs(values - level), abs(values - level - step)).max(initial=0.0) < 1e-6 * step
        pending = [[trial.params["x"], trial.params["C"]] for trial in opt.pending]
        assert drawn(ax)["pending"].get_xydata().tolist() == pending
        assert len(drawn(ax)["observed"].get_xdata()) == 9
        assert drawn(ax)["recommended"].get_xydata().tolist() == [[best["x"], best["C"]]]
    assert [ax.get_ylabel() for ax in axes] == ["C", ""]


def test_contours_of_choices_have_a_block_for_each_choice(opt):
    mean, _ = plotting.plot_contour(opt, ["x", "k"])
    best = opt.recommend()
    blocks = [each for each in mean.collections if hasattr(each, "levels")]
    assert len(blocks) == 3 and [each.get_text() for each in mean.get_yticklabels()] == ["a", "b", "None"]
    for place, (choice, contours) in enumerate(zip(SPACE["k"], blocks, strict=True)):
        known = opt.predict([best | {"x": x, "k": choice} for x in np.linspace(-2, 2, 41)])[0]
        used = [
            level
            for level, path in zip(contours.levels, contours.get_paths()[1:], strict=False)
            if len(path.vertices) and np.allclose(abs(path.vertices[:, 1] - place), 0.5)
        ]
        step = contours.levels[1] - contours.levels[0]
        assert used[0] <= known.min() < used[0] + step and used[-1] <= known.max() <= used[-1] + step


def test_contours_of_several_parameters_are_a_matrix(opt):
    made = plotting.plot_contour(opt)
    assert made.shape == (2, 2) and made[0, 1].figure is None
    assert [made[1, j].get_xlabel() for j in range(2)] == ["x", "C"]
    assert [made[i, 0].get_ylabel() for i in range(2)] == ["C", "k"]
    assert [made[0, 0].get_xlabel(), made[1, 1].get_ylabel()] == ["", ""]
    names = [f"p{i}" for i in range(8)]
    many = bl.BayesOpt({name: (0.0, 1.0) for name in names}, initial=12, seed=0)
    for trial in many.suggest(12):
        trial.observe(sum(trial.params[name] for name in names[2:]))
    for settings, n in (({}, 4), ({"max_params": 3}, 3), ({"max_params": 2}, 2)):
        made = plotting.plot_contour(many, **settings)
        if n > 2:
            labelled = {made[i, 0].get_ylabel() for i in range(n - 1)} | {ax.get_xlabel() for ax in made[-1]}
        else:
            labelled = {made[0].get_xlabel(), made[0].get_ylabel()}
        figure = made.ravel()[0].figure
        left_out = figure.get_suptitle().replace("\n", " ").removeprefix("Less important and not shown: ").split(", ")
        # The value does not depend on the first two parameters.
        assert len(labelled) == n and set(left_out[-2:]) == set(names[:2])
        assert labelled | set(left_out) == set(names) and len(left_out) == 8 - n
    for max_params in (1, 2.5, True):
        with pytest.raises(bl.errors.InvalidSetting, match=f"max_params={max_params} is not usable"):
            plotting.plot_contour(many, max_params=max_params)


@pytest.mark.parametrize("names", [["x"], ["x", "x"], ["x", "C", "x"], "x", ["x", "y"]])
def test_contours_need_different_parameters(names, opt):
    with pytest.raises(
        bl.errors.InvalidSetting, match=r"pass (two or more different .*|names) out of \['x', 'C', 'k'\]"
    ):
        plotting.plot_contour(opt, names)


def test_importance_of_a_linear_function_is_exact():
    """f = 3 a + b with uniform a and b. Nine tenths of the variance are due to a, one tenth to b, and none to c and
    d."""
    opt = bl.BayesOpt({"a": (0.0, 1.0), "b": (0.0, 1.0), "c": bl.Integer(1, 5), "d": ["u", "v"]}, initial=30, seed=0)
    for trial in opt.suggest(30):
        trial.observe(3 * trial.params["a"] + trial.params["b"])
    ax = plotting.plot_importance(opt)
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    widths = dict(zip(names, (bar.get_width() for bar in ax.patches), strict=True))
    assert names[2:] == ["b", "a"]
    assert widths["a"] == pytest.approx(0.9, abs=0.05) and widths["b"] == pytest.approx(0.1, abs=0.05)
    assert widths["c"] < 0.01 and widths["d"] < 0.01
    (segments,) = [each.get_segments() for each in ax.collections]
    for (low, _), (high, _) in segments:
        assert 0 <= low <= high


def test_intervals_of_importance_are_wider_with_fewer_values():
    def width(n):
        opt = bl.BayesOpt({"a": (0.0, 1.0), "b": (0.0, 1.0)}, initial=n, seed=0)
        for trial in opt.suggest(n):
            trial.observe(math.sin(6 * trial.params["a"]) * trial.params["b"])
        return max(high[0] - low[0] for low, high in plotting.plot_importance(opt).collections[0].get_segments())

    assert width(25) < width(6)


# Conditional spaces.


@pytest.fixture(scope="module")
def conditional():
    space = {
        "kernel": ["rbf", "poly"],
        "degree": bl.Integer(1, 5, when={"kernel": "poly"}),
        "width": bl.Ordinal(["s", "m", "l"]),
        "C": bl.Real(0.1, 10.0, log=True),
        "cache": 200,
    }
    opt = bl.BayesOpt(space, initial=24, seed=0)
    for trial in opt.suggest(24):
        params = trial.params
        trial.observe(params.get("degree", 0) - math.log10(params["C"]) ** 2 + 3 * (params["kernel"] == "poly"))
    return opt


def test_slices_leave_out_inactive_parameters(conditional):
    axes = {ax.get_xlabel(): ax for ax in plotting.plot_slice(conditional)}
    assert list(axes) == ["kernel", "degree", "width", "C"]
    n_poly = sum("degree" in trial.params for trial in conditional.trials)
    assert len(drawn(axes["degree"])["observed"].get_xdata()) == n_poly < 24
    assert [tick.get_text() for tick in axes["width"].get_xticklabels()] == ["s", "m", "l"]
    best = conditional.recommend()
    assert best["kernel"] == "poly"
    rbf = {name: value for name, value in best.items() if name != "degree"} | {"kernel": "rbf"}
    (bars,) = axes["kernel"].containers
    assert bars.lines[0].get_ydata() == pytest.approx(conditional.predict([rbf, best])[0])


def test_an_inactive_parameter_is_shown_at_the_best_trial_in_which_it_is_active():
    space = {"kernel": ["rbf", "poly"], "degree": bl.Integer(1, 5, when={"kernel": "poly"}), "C": (0.0, 1.0)}
    opt = bl.BayesOpt(space, initial=12, seed=0)
    for trial in opt.suggest(12):
        trial.observe((trial.params["kernel"] == "rbf") + 0.01 * trial.params.get("degree", 0) * trial.params["C"])
    best = opt.recommend()
    assert "degree" not in best
    other = max((t for t in opt.trials if "degree" in t.params), key=lambda t: t.value).params
    kernel, degree, _ = plotting.plot_slice(opt)
    mean = drawn(degree)["mean ± std"].get_ydata()
    assert mean == pytest.approx(opt.predict([other | {"degree": d} for d in range(1, 6)])[0])
    assert "recommended" not in drawn(degree)
    # For the other kernel, the plot uses the recommended C and the best degree.
    points = [best, other | {"C": best["C"]}]
    assert kernel.containers[0].lines[0].get_ydata() == pytest.approx(opt.predict(points)[0])
    mean, _ = plotting.plot_contour(opt, ["kernel", "degree"])
    # The contour is filled only for the kernel for which the degree is active.
    (contours,) = [each for each in mean.collections if hasattr(each, "levels")]
    assert {round(x, 9) for path in contours.get_paths() for x in path.vertices[:, 0]} == {0.5, 1.5}


def test_parameters_that_are_never_active_together_are_named():
    space = {"kernel": ["a", "b"], "p": bl.Real(0, 1, when={"kernel": "a"}), "q": bl.Real(0, 1, when={"kernel": "b"})}
    opt = bl.BayesOpt(space, initial=6, seed=0)
    for trial in opt.suggest(6):
        trial.observe(1.0)
    mean, std = plotting.plot_contour(opt, ["p", "q"])
    assert [ax.texts[0].get_text().split() for ax in (mean, std)] == [["never", "active", "together"]] * 2


def test_importance_of_parameters_that_are_not_always_active(conditional):
    """f is degree + 3 for poly and 0 for rbf, minus log10(C)². The effects are computed by enumeration."""
    ax = plotting.plot_importance(conditional)
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    widths = dict(zip(names, (bar.get_width() for bar in ax.patches), strict=True))
    part = np.array([0] * 5 + [4, 5, 6, 7, 8])
    of_c = np.linspace(-1, 1, 10001) ** 2
    total = part.var() + of_c.var()
    of_kernel = np.mean([np.var([0, poly]) for poly in (4, 5, 6, 7, 8)])
    expected = {
        "kernel": of_kernel / total,
        "degree": 0.5 * np.var(range(5)) / total,
        "C": of_c.var() / total,
        "width": 0,
    }
    assert widths == pytest.approx(expected, abs=0.12)


GIVEN = bl.GP(kernel="matern52", lengthscale=0.4, signal_std=2.0, noise_std=0.5, mean=1.0, targets="raw")


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_predictions_equal_those_of_models_without_the_value(direction):
    """The closed form agrees with the predictions of n models, each fitted without one of the values."""
    points = np.random.default_rng(0).random(9)
    values = np.sin(6 * points)
    stds = [0.25 if i % 3 == 0 else None for i in range(9)]

    def model(kept):
        opt = bl.BayesOpt({"x": (0.0, 1.0)}, surrogate=GIVEN, direction=direction, seed=0)
        opt.add([{"x": points[i]} for i in kept], [values[i] for i in kept], std=[stds[i] for i in kept])
        return opt

    everything = model(range(9))
    ax = plotting.plot_predictions(everything)
    container = ax.containers[0]
    observed, mean = container.lines[0].get_data()
    assert observed.tolist() == values.tolist()
    intervals = [segment[:, 1] for segment in container.lines[2][0].get_segments()]
    for i, (low, high) in enumerate(intervals):
        expected, std = model([j for j in range(9) if j != i]).predict({"x": points[i]})
        spread = math.hypot(std, stds[i] or 0.5)
        assert mean[i] == pytest.approx(expected, rel=1e-9)
        assert (high - low) / 2 == pytest.approx(1.96 * spread, rel=1e-9)
    within = sum(low <= value <= high for value, (low, high) in zip(values, intervals, strict=True))
    assert ax.get_title() == f"{within} of 9 values in their interval"
    assert labels(ax) == (f"Observed: value ({direction}d)", "Predicted from the others, 95 % interval")


def test_predictions_leave_failed_trials_out(opt):
    ax = plotting.plot_predictions(opt)
    observed = ax.containers[0].lines[0].get_xdata()
    assert sorted(observed) == sorted(trial.value for trial in opt.trials if trial.value is not None)


# Refusals.


@pytest.mark.parametrize("plot", PLOTS)
def test_objects_without_trials_are_refused(plot):
    with pytest.raises(bl.errors.InvalidSetting, match=r"search=\[\] cannot be drawn by plot_\w+: pass the result of"):
        plot([])


def test_candidates_with_names_are_drawn():
    rng = np.random.default_rng(0)
    table = {
        "T": rng.choice([20, 40, 60], 40),
        "c": rng.choice(["u", "v", "w"], 40),
        "gap": [None, 1.0] * 20,
        "k": [1] * 40,
    }
    opt = bl.BayesOpt(candidates=table, seed=0)
    for _ in range(8):
        trial = opt.suggest()
        trial.observe(trial.params["T"] / 20 + (trial.params["c"] == "v"))
    axes = plotting.plot_slice(opt)
    assert [ax.get_xlabel() for ax in axes] == ["T", "c"]
    assert [label.get_text() for label in axes[1].get_xticklabels()] == list(opt.domain["c"].choices)
    plotting.plot_contour(opt)
    plotting.plot_importance(opt)


@pytest.mark.parametrize("plot", OF_A_SPACE)
def test_candidates_have_no_named_parameters(plot):
    opt = bl.BayesOpt(candidates=[[0.0], [1.0]], seed=0)
    opt.add(0, 1.0)
    with pytest.raises(bl.errors.InvalidSetting):
        plot(opt)


@pytest.mark.parametrize("plot", OF_A_MODEL)
def test_a_model_with_values_is_needed(plot):
    with pytest.raises(bl.errors.NotFitted):
        plot(bl.BayesOpt(SPACE, seed=0))
    with pytest.raises(bl.errors.InvalidSetting):
        plot(bl.RandomSearch(SPACE, seed=0))


@pytest.mark.parametrize("plot", [plotting.plot_contour, plotting.plot_predictions])
def test_values_are_needed_after_the_fitted_ones_are_withdrawn(plot):
    opt = bl.BayesOpt({"x": (0.0, 1.0), "y": (0.0, 1.0)}, initial=2, seed=0)
    for trial in opt.suggest(n=4):
        opt.observe(trial, trial.params["x"])
    opt.suggest()  # stores a fit
    opt.withdraw(opt.trials[:4])
    with pytest.raises(bl.errors.NotFitted):
        plot(opt)


@pytest.mark.parametrize("plot", [plotting.plot_slice, plotting.plot_contour, plotting.plot_importance])
def test_a_declared_context_is_needed(plot):
    opt = bl.BayesOpt({"x": (0.0, 1.0), "y": (0.0, 1.0)}, context={"z": (0.0, 1.0)}, seed=0)
    opt.add([{"x": 0.1, "y": 0.2}, {"x": 0.7, "y": 0.4}], [1.0, 2.0], context={"z": 0.5})
    with pytest.raises(bl.errors.InvalidContext):
        plot(opt)
    plot(opt, context={"z": 0.25})


@pytest.mark.parametrize("plot", [each for each in PLOTS if each not in OF_A_MODEL + OF_DURATIONS])
def test_searches_without_trials_are_drawn(plot):
    plot(bl.BayesOpt(SPACE, seed=0))


def test_error_without_matplotlib_names_the_package_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="plots need matplotlib: pip install matplotlib"):
        plotting.plot_convergence(bl.RandomSearch(SPACE))
