"""Plots of searches with outcomes: feasible points, the values of one outcome, and the best value within the bounds."""

import numpy as np
import pytest

import belated as bl
from belated import plotting
from belated.errors import InvalidValue
from belated.plotting.figures import INFEASIBLE
from tests.unit.plotting.searches import drawn, labels

pytest.importorskip("matplotlib").use("Agg")

SPACE = {"x": (0.0, 1.0), "k": ["a", "b"], "y": (0.0, 1.0)}
OUTCOMES = {"error": "minimize", "memory": bl.AtMost(4.0), "note": bl.Record()}


def measured(params):
    """The bound holds for x <= 0.5 and k = "a" only."""
    return {"error": 1 - params["x"], "memory": 8 * params["x"] + (9.0 if params["k"] == "b" else 0.0)}


@pytest.fixture(scope="module")
def searched():
    optimizer = bl.BayesOpt(SPACE, outcomes=OUTCOMES, seed=0)
    for trial in bl.RandomSearch(SPACE, seed=0).suggest(n=24):
        optimizer.add(trial.params, measured(trial.params))
    optimizer.add({"x": 0.25, "k": "a", "y": 0.5}, {"memory": 2.0})
    return optimizer


def shaded(ax):
    """Return the horizontal ranges of the grey background."""
    [areas] = [each for each in ax.collections if each.get_label() == INFEASIBLE]
    return [(path.vertices[:, 0].min(), path.vertices[:, 0].max()) for path in areas.get_paths()]


def test_slices_show_where_a_bound_is_probably_violated(searched):
    x, k, y = plotting.plot_slice(searched)
    [(low, high)] = shaded(x)
    grid = np.linspace(0.0, 1.0, 1001)
    points = [searched.recommend() | {"x": each} for each in grid]
    [boundary] = np.flatnonzero(np.diff(searched.predict_feasible(points) < 0.5))
    assert high == 1.0 and abs(low - grid[boundary]) < 0.02
    assert shaded(k) == [(0.5, 1.5)]  # the choice "b"
    assert INFEASIBLE not in y.get_legend_handles_labels()[1]
    texts = [text.get_text() for text in x.figure.legends[0].get_texts()]
    assert texts.count(INFEASIBLE) == 1


def test_slices_of_an_outcome_have_its_values(searched):
    axes = plotting.plot_slice(searched, "x", outcome="memory")
    heights = [*drawn(axes[0])["observed"].get_ydata(), *drawn(axes[0])["beyond a bound"].get_ydata()]
    assert sorted(heights) == sorted(each.values["memory"] for each in searched.trials)
    assert "pending" not in drawn(axes[0])  # the memory of the pending trial is known
    assert axes[0].figure.get_supylabel() == "memory"
    objective = plotting.plot_slice(searched, "x")[0]
    assert objective.figure.get_supylabel() == "error (minimized)" and "pending" in drawn(objective)
    line = drawn(axes[0])["mean ± std"]
    points = [searched.recommend() | {"x": each} for each in line.get_xdata()]
    assert np.allclose(line.get_ydata(), searched.predict(points, outcome="memory")[0])


def test_contours_are_hatched_where_a_bound_is_probably_violated(searched):
    for outcome in (None, "memory"):
        axes = plotting.plot_contour(searched, ["x", "y"], outcome=outcome)
        for ax in axes:
            hatched = [each for each in ax.collections if getattr(each, "hatches", [None])[0]]
            assert len(hatched) == 1
            vertices = np.vstack([path.vertices for path in hatched[0].get_paths()])
            assert 0.4 < vertices[:, 0].min() < 0.6 and vertices[:, 0].max() == 1.0
        texts = [text.get_text() for text in axes[0].figure.legends[0].get_texts()]
        assert texts.count(INFEASIBLE) == 1
        name = outcome or "error"
        assert [each.get_ylabel() for each in axes[0].figure.axes[2:]] == [
            f"Mean of {name}",
            f"Standard deviation of {name}",
        ]


def test_without_bounds_nothing_is_marked():
    optimizer = bl.BayesOpt(SPACE, outcomes={"error": "minimize", "note": bl.Record()}, seed=0)
    optimizer.add([{"x": 0.1, "k": "a", "y": 0.5}, {"x": 0.6, "k": "b", "y": 0.2}], [{"error": 1.0}, {"error": 2.0}])
    for ax in [*plotting.plot_slice(optimizer), *plotting.plot_contour(optimizer, ["x", "y"])]:
        assert INFEASIBLE not in ax.get_legend_handles_labels()[1]


def test_importances_and_predictions_are_of_an_outcome(searched):
    ax = plotting.plot_importance(searched, outcome="memory")
    effects = {label.get_text(): bar.get_width() for label, bar in zip(ax.get_yticklabels(), ax.patches, strict=True)}
    assert max(effects, key=effects.get) == "k" and "memory" in labels(ax)[0]
    assert max(searched.importances(), key=searched.importances().get) == "x"
    ax = plotting.plot_predictions(searched, outcome="memory")
    known = ax.lines[0].get_xdata()
    assert sorted(known) == sorted(each.values["memory"] for each in searched.trials)
    assert labels(ax)[0] == "Observed: memory"


@pytest.mark.parametrize("plot", [plotting.plot_slice, plotting.plot_contour, plotting.plot_importance])
def test_unknown_outcomes_are_refused(searched, plot):
    with pytest.raises(InvalidValue):
        plot(searched, outcome="colour")
    with pytest.raises(InvalidValue):
        plot(bl.BayesOpt({"x": (0.0, 1.0), "y": (0.0, 1.0)}), outcome="error")


def test_convergence_begins_with_the_first_trial_within_the_bounds():
    optimizer = bl.BayesOpt(SPACE, outcomes=OUTCOMES, seed=0)
    trials = optimizer.suggest(n=5)
    for trial, error in zip(trials, [5.0, 4.0, 3.0, 2.0, 1.0], strict=True):
        trial.observe({"error": error, "note": 0.0})
    trials[0].observe({"memory": 9.0})
    optimizer.suggest()
    trials[2].observe({"memory": 4.0})  # it is decided one suggestion after the others
    optimizer.suggest()
    trials[3].observe({"memory": 1.0})
    trials[4].fail(outcome="memory")
    lines = drawn(plotting.plot_convergence(optimizer))
    at, best = lines["best so far"].get_data()
    expected = {5.0: np.nan, 6.0: 3.0, 7.0: 2.0}
    assert len(at) == 5 and all(np.array_equal(b, expected[t], equal_nan=True) for t, b in zip(at, best, strict=True))
    assert sorted(lines["observed"].get_ydata()) == [1.0, 2.0, 3.0, 4.0]
    assert lines["beyond a bound"].get_ydata() == [5.0] and lines["beyond a bound"].get_markerfacecolor() == "none"
