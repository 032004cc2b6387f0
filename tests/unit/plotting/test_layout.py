"""Texts of plots do not overlap and lie within the figure, legends are beside the data, and arguments agree."""

import inspect
import math
from itertools import combinations

import numpy as np
import pytest

import belated as bl
from belated import plotting
from belated.plotting.figures import short_choices

pytest.importorskip("matplotlib").use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")

SPACE = {
    "learning_rate": bl.Real(1e-5, 1.0, log=True),
    "optimizer": ["sgd", "adam", "rmsprop"],
    "layers": bl.Integer(1, 8),
    "momentum": bl.Real(0.0, 0.99, when={"optimizer": "sgd"}),
    "batch_size": bl.Ordinal([2**k for k in range(4, 16)]),
    "weight_decay": bl.Real(1e-8, 1e-2, log=True),
    "activation_function": ["relu", "gelu", "leaky_relu(negative_slope=0.01)", "tanh", None],
    "dropout": bl.Real(0.0, 0.5),
    "units_of_the_hidden_layer": bl.Integer(16, 4096, log=True),
    "beta_1": bl.Real(0.8, 0.999, when={"optimizer": "adam"}),
    "augmentation_strength_of_the_images": bl.Real(0.0, 1.0),
    "warmup": bl.Integer(0, 2000),
}
FEW = {name: SPACE[name] for name in ("learning_rate", "optimizer", "momentum")}
OF_TRIALS = [
    "plot_convergence",
    "plot_delays",
    "plot_parallel_coordinates",
    "plot_slice",
    "plot_trials",
    "plot_workers",
]
OF_VALUES = ["plot_convergence", "plot_learning_curves", "plot_parallel_coordinates", "plot_predictions", "plot_slice"]
NAMES = [name for name in plotting.__all__ if name.startswith("plot_") and name not in ("plot_curves", "plot_pareto")]


@pytest.fixture(scope="module", params=[2, 6, 12])
def search(request):
    """Return a search with trials in every state, whose delays and durations are about two minutes."""
    now = [1e9]
    opt = bl.BayesOpt(
        dict(list(SPACE.items())[: request.param]),
        direction="minimize",
        curve=bl.Curve(10),
        stopping=None,
        time=lambda: now[0],
        seed=0,
    )
    for i in range(24):
        trial = opt.suggest()
        now[0] += 50.0
        if i >= 3:
            trial = opt.trial(i - 3)
            value = 0.1 + (math.log10(trial.params["learning_rate"]) + 2.5) ** 2
            for step in range(1, 5 if i % 5 == 0 else 11):
                trial.report(value + 1 / step, step)
            if i % 7 == 0:
                trial.fail()
            elif i % 5 == 0:
                trial.stop()
            elif i == 4:
                trial.abandon()
            else:
                trial.observe(value, duration=100.0 + i)
    return opt


def boxes_of_texts(figure):
    """Return the visible texts of a figure with their boxes: tick labels, labels, titles, annotations and legends."""
    from matplotlib.text import Text

    found = list(figure.texts)
    for axis in [axis for ax in figure.axes if ax.axison for axis in (ax.xaxis, ax.yaxis)]:
        low, high = sorted(axis.get_view_interval())
        ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
        found += [tick.label1 for tick in ticks if tick.label1.get_visible()]
        found += [axis.label, axis.get_offset_text()]
    for ax in figure.axes:
        found += [ax.title, *ax.texts]
    for legend in [*figure.legends, *(ax.get_legend() for ax in figure.axes)]:
        found += [] if legend is None else legend.get_texts()
    assert all(isinstance(text, Text) for text in found)
    return [(text.get_text(), text.get_window_extent()) for text in found if text.get_text()]


def pixels(line):
    """Return the pixels of a line's markers, or of many points of the line."""
    path = line.get_path() if line.get_linestyle() == "None" else line.get_path().interpolated(50)
    return line.get_transform().transform(path.vertices)


def check(figure):
    figure.canvas.draw()
    texts = boxes_of_texts(figure)
    overlapping = [(one, other) for (one, a), (other, b) in combinations(texts, 2) if a.overlaps(b)]
    assert overlapping == []
    x, y = figure.bbox.size
    outside = [text for text, box in texts if box.x0 < 0 or box.y0 < 0 or box.x1 > x or box.y1 > y]
    assert outside == []
    for legend in [*figure.legends, *(ax.get_legend() for ax in figure.axes)]:
        if legend is not None:
            box = legend.get_window_extent()
            for ax in figure.axes:
                if ax.get_legend() is legend and ax.bbox.containsy(box.y0) and ax.bbox.containsx(box.x1):
                    assert [line.get_label() for line in ax.lines if box.count_contains(pixels(line))] == []
                else:
                    assert not box.overlaps(ax.get_window_extent())
            # Each entry is an artist of the figure.
            entries = [text.get_text() for text in legend.get_texts()]
            artists = {label for ax in figure.axes for label in ax.get_legend_handles_labels()[1]}
            assert len(set(entries)) == len(entries) and set(entries) <= artists
    for ax in figure.axes:
        assert ax.has_data() or ax.texts


@pytest.mark.parametrize("name", NAMES)
def test_texts_and_legends_have_space(name, search):
    check(np.ravel(getattr(plotting, name)(search))[0].figure)


@pytest.mark.parametrize("name", OF_VALUES)
def test_logarithmic_axes_of_values_have_space(name, search):
    check(np.ravel(getattr(plotting, name)(search, log=True))[0].figure)


def test_one_slice_and_six_long_names_have_space():
    names = [f"a_long_name_of_the_parameter_{i}" for i in range(6)]
    opt = bl.BayesOpt({name: [f"choice {k} of {i}" for k in range(9)] for i, name in enumerate(names)}, seed=0)
    for trial in opt.suggest(8):
        trial.observe(1.0)
    check(plotting.plot_slice(opt, names[0])[0].figure)
    check(plotting.plot_slice(opt)[0].figure)
    check(plotting.plot_contour(opt)[0, 0].figure)
    check(plotting.plot_importance(opt).figure)


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("n_trials", [0, 24])
def test_fronts_have_space(n, n_trials):
    goals = {f"a long name of objective {i}": bl.Minimize(at_most=2.0 * i or None) for i in range(n)}
    opt = bl.BayesOpt(FEW, outcomes=goals | {"purity": bl.AtLeast(0.1)}, seed=0)
    values = np.random.default_rng(0).random((n_trials, n + 1)).tolist()
    for trial, row in zip(opt.suggest(n_trials + 4), values, strict=False):
        trial.observe(dict(zip(opt.outcomes, row, strict=True)))
    for number in range(n_trials, n_trials + 2 * bool(n_trials)):
        opt.observe(number, {"a long name of objective 0": 0.5})
    axes = plotting.plot_pareto(opt)
    assert len(axes) == {2: 1, 3: 3}[n]
    check(axes[0].figure)


def test_searches_without_trials_have_axes_with_a_text():
    for name in OF_TRIALS:
        for ax in np.ravel(getattr(plotting, name)(bl.BayesOpt(FEW, seed=0))):
            check(ax.figure)
            assert [text.get_text() for text in ax.texts][-1:] == ["no trials"]


@pytest.mark.parametrize("name", OF_TRIALS)
def test_searches_without_a_value_say_so(name):
    for report in (bl.Trial.fail, bl.Trial.abandon, None):
        opt = bl.BayesOpt(FEW, seed=0)
        for trial in opt.suggest(3):
            if report is not None:
                report(trial)
        for ax in np.ravel(getattr(plotting, name)(opt)):
            check(ax.figure)
            notes = {text.get_text() for text in ax.texts} & {"no trials", "no values", "no trial has ended"}
            # The bars of plots of times, and delays until a failure, do not depend on values.
            is_full = name in ("plot_trials", "plot_workers") or (name == "plot_delays" and report is bl.Trial.fail)
            assert len(notes) == (not is_full)


def test_new_figures_are_opaque_in_dark_notebooks():
    with pyplot.rc_context({"figure.facecolor": (1.0, 1.0, 1.0, 0.0)}):
        opt = bl.BayesOpt(FEW, seed=0)
        for name in OF_TRIALS:
            assert np.ravel(getattr(plotting, name)(opt))[0].figure.get_facecolor() == (1.0, 1.0, 1.0, 1.0)


def test_shortened_choices_differ():
    assert short_choices(["relu", None, "leaky_relu(slope=0.01)"]) == ["relu", "None", "leaky_…0.01)"]
    assert short_choices([f"a long choice number {i} of 9" for i in range(3)]) == ["…0…", "…1…", "…2…"]
    assert short_choices(["begin long middle end!!", "begin long long middle end!!"]) == ["……", "…long …"]
    assert short_choices(["the same name"]) == ["the sa… name"]


def test_legends_are_within_axes_of_figures_without_a_layout(search):
    figure, ax = pyplot.subplots()
    plotting.plot_trials(search, ax)
    figure.canvas.draw()
    box = ax.get_legend().get_window_extent()
    assert ax.get_window_extent().containsx(box.x0) and ax.get_window_extent().containsx(box.x1)


def test_arguments_have_the_same_names_order_and_defaults():
    order = ["search", "names", "ax", "context", "clock", "optimum", "log", "outcome", "max_params"]
    defaults = {"search": inspect.Parameter.empty, "clock": "seconds", "log": False}
    for name in [*NAMES, "plot_pareto"]:
        parameters = inspect.signature(getattr(plotting, name)).parameters
        assert list(parameters) == [each for each in order if each in parameters], name
        assert {"search", "ax"} <= set(parameters), name
        for each, parameter in parameters.items():
            positional = each in ("search", "names", "ax")
            # Without a clock, convergence is drawn over the clock of the search.
            own = {"clock": None} if name == "plot_convergence" else {}
            assert parameter.default == (defaults | own).get(each) or each == "max_params", name
            assert (parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD) == positional, name


def test_mean_curves_have_a_legend_beside_the_data_of_a_new_figure():
    curves = [(f"curve {i}", np.arange(1.0, 9.0) + i, 0.1) for i in range(3)]
    check(plotting.plot_curves(curves, ylabel="Regret", log=True).figure)


def test_a_mean_that_is_not_positive_is_below_a_logarithmic_axis():
    opt = bl.BayesOpt({"x": (0.0, 1.0)}, direction="minimize", surrogate=bl.GP(targets="raw"), seed=0)
    opt.add([{"x": x} for x in (0.0, 0.2, 0.8, 1.0)], [4.0, 1.0, 1.0, 4.0])
    for ax in (plotting.plot_slice(opt, log=True)[0], plotting.plot_predictions(opt, log=True)):
        check(ax.figure)
        assert ax.get_ylim()[0] == 0.5
