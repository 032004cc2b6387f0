"""The plot of learning curves; the test reads the artists."""

import math

import numpy as np
import pytest

import belated as bl
from belated import plotting
from belated.errors import NotFitted
from belated.plotting.figures import LOOKS

pytest.importorskip("matplotlib").use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")


def test_each_trial_is_a_line_and_stopped_trials_are_marked(tmp_path):
    optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0, curve=bl.Curve(5))
    first, second, third, _ = optimizer.suggest(n=4)
    for step, value in enumerate((1.0, math.nan, 3.0), start=1):
        first.report(value, step)
        second.report(-1.0, step)
    third.report(0.5, 2)
    first.observe(3.0)
    second.stop()
    ax = plotting.plot_learning_curves(optimizer)
    lines = {line.get_label(): line for line in ax.get_lines()}
    assert set(lines) == {"observed", "stopped", "pending"}
    np.testing.assert_array_equal(lines["observed"].get_xydata(), [[1, 1.0], [3, 3.0]])
    np.testing.assert_array_equal(lines["pending"].get_xydata(), [[2, 0.5]])
    assert lines["stopped"].get_markevery() == [2] and lines["observed"].get_marker() == "None"
    assert lines["stopped"].get_marker() == "s"
    assert lines["observed"].get_linewidth() > lines["stopped"].get_linewidth()
    ax.figure.savefig(tmp_path / "curves.png")
    own = pyplot.figure().subplots()
    assert plotting.plot_learning_curves(optimizer, own) is own
    with pytest.raises(bl.errors.InvalidSetting):
        plotting.plot_learning_curves(optimizer, log=True)


def test_forecasts_of_running_trials_are_drawn():
    optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, seed=0, curve=bl.Curve(5), stopping=None)
    for trial in optimizer.suggest(n=6):
        for step in range(1, 6):
            trial.report(trial.params["x"] - 1 / step, step)
        trial.observe(trial.params["x"] - 0.2)
    running = optimizer.suggest()
    running.report(-0.5, 1)
    running.report(0.0, 2)
    ax = plotting.plot_learning_curves(optimizer)
    mean, std = optimizer.predict_final(running)
    [line] = [line for line in ax.get_lines() if line.get_linestyle() == "--"]
    np.testing.assert_array_equal(line.get_xydata(), [[2, 0.0], [5, mean]])
    [(low, high)] = [segment[:, 1] for bars in ax.collections for segment in bars.get_segments()]
    np.testing.assert_allclose([low, high], [mean - 1.96 * std, mean + 1.96 * std])


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_diverged_curves_end_where_they_leave_the_range_of_the_others(direction):
    sign = 1.0 if direction == "minimize" else -1.0
    optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, direction=direction, seed=0, curve=bl.Curve(5))
    usual, crashed, huge, missing = optimizer.suggest(n=4)
    reports = {
        usual: [3.0, 2.0, 1.5, 1.2, 1.0],
        crashed: [4.5, 4.0],
        huge: [2.0, 1e3, 1e30, 1.0],
        missing: [2.5, 2.0, math.nan, math.nan],
    }
    for trial, values in reports.items():
        for step, value in enumerate(values, start=1):
            trial.report(sign * value, step)
        if trial != usual:
            trial.fail(error=ValueError("diverged"))
    usual.observe(sign)
    for log in (False, True) if sign > 0 else (False,):
        ax = plotting.plot_learning_curves(optimizer, log=log)
        failed = [line.get_xydata().tolist() for line in ax.get_lines() if line.get_color() == LOOKS["failed"][0]]
        # The range of the other curve is 1 to 3, and the crashed curve is within 2 of this range.
        assert failed[0] == [[1, sign * 4.5], [2, sign * 4.0]]
        assert failed[1] == [[1, sign * 2.0], [2, pytest.approx(sign * 4.5)]]
        assert failed[2] == [[1, sign * 2.5], [2, sign * 2.0]]
        assert max(abs(end) for end in ax.get_ylim()) < 6.0


def test_curves_are_drawn_if_all_trials_failed():
    optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0, curve=bl.Curve(9))
    trial = optimizer.suggest()
    for step, value in enumerate([1.0, 0.9, 0.8, 0.7, 0.8, 0.9, 1e20], start=1):
        trial.report(value, step)
    trial.fail()
    ax = plotting.plot_learning_curves(optimizer)
    assert ax.get_ylim()[1] < 2.0 and len(ax.get_lines()[0].get_xdata()) == 7


def test_a_search_without_curves_is_refused():
    with pytest.raises(bl.errors.InvalidSetting, match="curve=bl.Curve"):
        plotting.plot_learning_curves(bl.RandomSearch({"x": (0.0, 1.0)}))
    with pytest.raises(NotFitted, match="no trial has reported"):
        plotting.plot_learning_curves(bl.RandomSearch({"x": (0.0, 1.0)}, curve=bl.Curve(5)))
