"""The plot of parallel coordinates; the tests read the artists."""

import math

import numpy as np
import pytest

import belated as bl
from belated import plotting
from belated.errors import InvalidSetting
from tests.unit.plotting.searches import drawn

pytest.importorskip("matplotlib").use("Agg")

SPACE = {
    "x": (-2.0, 2.0),
    "C": bl.Real(1e-3, 10.0, log=True),
    "kernel": ["rbf", "poly"],
    "degree": bl.Integer(1, 5, when={"kernel": "poly"}),
}
POINTS = [
    {"x": -2.0, "C": 1e-3, "kernel": "rbf"},
    {"x": 0.0, "C": 10.0, "kernel": "poly", "degree": 2},
    {"x": 1.0, "C": 0.1, "kernel": "poly", "degree": 5},
    {"x": 2.0, "C": 0.01, "kernel": "rbf"},
]
HEIGHTS = [[0.0, 0.0, 0.25, None], [0.5, 1.0, 0.75, 0.25], [0.75, 0.5, 0.75, 1.0], [1.0, 0.25, 0.25, None]]


def searched(direction="minimize"):
    """Return a search with the values 1, 10 and 100, and a failed trial."""
    search = bl.RandomSearch(SPACE, direction=direction, seed=0)
    search.enqueue(POINTS)
    for value, trial in zip((1.0, 100.0, 10.0), search.suggest(n=4)[:3], strict=True):
        trial.observe(value)
    search.trial(3).fail()
    return search


def lines_of(ax):
    """Return the lines of observed trials, with their colours."""
    [found] = [each for each in ax.collections if len(each.get_segments()[0]) > 2]
    return [(line[:, 1], tuple(colour)) for line, colour in zip(found.get_segments(), found.get_colors(), strict=True)]


@pytest.mark.parametrize("log", [False, True])
def test_each_trial_is_a_line_with_the_colour_of_its_value(log):
    ax = plotting.plot_parallel_coordinates(searched(), log=log)
    lines = lines_of(ax)
    last = {1.0: 0.0, 10.0: 0.5 if log else 9 / 99, 100.0: 1.0}
    # The best value is drawn last.
    for (heights, colour), i, value in zip(lines, (1, 2, 0), (100.0, 10.0, 1.0), strict=True):
        expected = HEIGHTS[i]
        active = [j for j in range(4) if expected[j] is not None]
        assert heights[active] == pytest.approx([expected[j] for j in active])
        assert all(heights[j] < -0.1 for j in range(4) if j not in active)
        assert heights[-1] == pytest.approx(last[value])
        [strip] = ax.images
        assert colour[:3] == pytest.approx(strip.cmap(last[value])[:3])
    assert np.array_equal(drawn(ax)["best"].get_ydata(), lines[-1][0])
    texts = [text.get_text() for text in ax.texts]
    assert texts.count("inactive") == 1 and texts.count("no value") == 1 and {"rbf", "poly"} <= set(texts)


def test_the_best_line_is_dark_in_both_directions():
    for direction, best in (("minimize", 1.0), ("maximize", 100.0)):
        colours = [sum(colour[:3]) for _, colour in lines_of(plotting.plot_parallel_coordinates(searched(direction)))]
        assert colours == sorted(colours, reverse=True)
        assert searched(direction).best_value_ == best


def test_failed_and_pending_trials_end_below_the_axis_of_values():
    search = searched()
    search.enqueue([POINTS[0], POINTS[1]])
    search.suggest(n=2)
    lines = drawn(plotting.plot_parallel_coordinates(search))
    at, heights = lines["failed"].get_data()
    assert heights[:3] == pytest.approx(HEIGHTS[3][:3]) and heights[3] == heights[4] < -0.1
    at, heights = lines["pending"].get_data()
    ends = np.arange(len(at))[lines["pending"].get_markevery()]
    assert at[ends].tolist() == [4, 4] and all(heights[ends] < -0.1)
    assert np.isnan(heights).sum() == 2  # the lines are separated
    assert lines["failed"].get_linestyle() != lines["pending"].get_linestyle() != "-"


def test_parameters_are_ordered_by_importance_and_the_others_are_named():
    names = [f"p{i}" for i in range(9)]
    search = bl.BayesOpt({name: (0.0, 1.0) for name in names}, initial=14, seed=0)
    for trial in search.suggest(n=14):
        trial.observe(5 * trial.params["p8"] + 2 * trial.params["p3"])
    ax = plotting.plot_parallel_coordinates(search, max_params=3)
    shown = [label.get_text() for label in ax.get_xticklabels()]
    assert shown[:2] == ["p8", "p3"] and shown[-1] == "Value\n(maximized)" and len(shown) == 4
    title = ax.figure.get_suptitle()
    assert all(name in title for name in set(names) - set(shown)) and not any(name in title for name in shown)
    ax = plotting.plot_parallel_coordinates(search, ["p0", "p8"])
    assert [label.get_text() for label in ax.get_xticklabels()][:2] == ["p0", "p8"]
    assert ax.figure.get_suptitle() == ""
    for settings in ({"max_params": 0}, {"names": ["q"]}):
        with pytest.raises(InvalidSetting):
            plotting.plot_parallel_coordinates(search, **settings)


def test_the_ticks_of_an_axis_are_at_their_values():
    ax = plotting.plot_parallel_coordinates(searched())
    ticks = {float(text.get_text()): text.xy[1] for text in ax.texts if text.xy[0] == 1}
    assert min(ticks) == 1e-3 and max(ticks) == 10.0 and len(ticks) > 2
    assert all(height == pytest.approx((math.log10(tick) + 3) / 4) for tick, height in ticks.items())
