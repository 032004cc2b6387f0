"""The plot of the best value so far, for one run and for several runs; the tests read matplotlib's artists."""

import numpy as np
import pytest

import belated as bl
from belated import plotting
from tests.unit.plotting.searches import drawn, labels

pytest.importorskip("matplotlib").use("Agg")


def test_convergence_shows_the_highest_fidelity():
    rng = np.random.default_rng(0)
    for direction in ("maximize", "minimize"):
        search = bl.RandomSearch({"x": (0.0, 1.0)}, fidelity=bl.Fidelity(0, 2000), direction=direction, seed=0)
        best = []
        for fidelity in [0, 0, 1000, 0, 999, 1001, 2000, 1000, 1999, 2000]:
            search.suggest(fidelity=fidelity).observe(float(rng.integers(-5, 6)))
            best.append(search.best_value_)
        ax = plotting.plot_convergence(search)
        assert list(ax.lines[1].get_ydata()) == best


def test_convergence():
    space = {"x": (0.0, 1.0)}
    now = [1000.0]
    search = bl.RandomSearch(space, clock="seconds", time=lambda: now[0], seed=0)
    for value in (1.0, 3.0, 2.0):
        trial = search.suggest()
        now[0] += 10.0
        trial.observe(value)
    ax = plotting.plot_convergence(search)
    assert labels(ax) == ("Time (seconds)", "Value (maximized)")
    assert drawn(ax)["observed"].get_xydata().tolist() == [[10, 1], [20, 3], [30, 2]]
    assert drawn(ax)["best so far"].get_ydata().tolist() == [1, 3, 3]


def run_of(values, direction="minimize"):
    search = bl.RandomSearch({"x": (0.0, 1.0)}, direction=direction, seed=0)
    for value in values:
        search.suggest().observe(value)
    return search


def test_several_runs_have_a_median_and_quartiles():
    runs = [run_of(values) for values in ([4, 3, 1], [8, 8, 2, 1], [6, 9, 7])]
    ax = plotting.plot_convergence({"several": runs, "one": runs[0]})
    lines = drawn(ax)
    assert lines["several"].get_xydata().tolist() == [[1, 6], [2, 6], [3, 2], [4, 1]]
    assert lines["one"].get_xydata().tolist() == [[1, 4], [2, 3], [3, 1]]
    band = ax.collections[0].get_paths()[0].vertices
    # At time 1, the best values are 4, 6 and 8; at time 3 they are 1, 2 and 6.
    assert {5.0, 7.0} <= set(band[band[:, 0] == 1, 1]) and {1.5, 4.0} <= set(band[band[:, 0] == 3, 1])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["several", "one"]
    assert all(float(tick).is_integer() for tick in ax.get_xticks())
    assert list(drawn(plotting.plot_convergence(runs))) == ["best so far"]
    with pytest.raises(bl.errors.InvalidSetting, match="different directions, clocks or objectives"):
        plotting.plot_convergence([runs[0], run_of([1], "maximize")])


def test_a_logarithmic_axis_needs_positive_values_or_an_optimum():
    for sign, direction in ((1, "minimize"), (-1, "maximize")):
        search = run_of([sign * value for value in (3.0, 0.0, -1.0)], direction)
        with pytest.raises(bl.errors.InvalidSetting, match="log=True needs positive values, and the lowest is -[13]:"):
            plotting.plot_convergence(search, log=True)
        ax = plotting.plot_convergence(search, optimum=sign * -1.5, log=True)
        assert labels(ax)[1] == "Regret" and ax.get_yscale() == "log"
        assert drawn(ax)["best so far"].get_ydata().tolist() == [4.5, 1.5, 0.5]


def test_trials_without_a_value_are_marked_at_the_bottom():
    now = [1000.0]
    for clock, suggested in (("seconds", 10.0), ("iterations", 1.0)):
        search = bl.RandomSearch({"x": (0.0, 1.0)}, clock=clock, curve=bl.Curve(5), time=lambda: now[0], seed=0)
        for i, end in enumerate(("observe", "fail", "observe", "fail", "stop", None, None)):
            trial = search.suggest()
            now[0] += 10.0
            if end is not None:
                trial.report(1.0, 1)
                getattr(trial, end)(*[float(i)] * (end == "observe"))
        ax = plotting.plot_convergence(search)
        lines = drawn(ax)
        ends = {"failed": [2, 4], "stopped": [5], "pending": [5, 6]}
        for state, times in ends.items():
            assert lines[state].get_xdata().tolist() == [time * suggested for time in times]
            low, high = ax.transAxes.inverted().transform(lines[state].get_transform().transform([[0, 0.04], [0, 1]]))
            assert set(lines[state].get_ydata()) == {0.04} and (low[1], high[1]) == pytest.approx((0.04, 1.0))
        # The marks do not cover values.
        assert ax.transAxes.inverted().transform(ax.transData.transform((0.0, 0.0)))[1] > 0.08
        ax.figure.canvas.draw()
        assert ax.bbox.containsx(ax.get_legend().get_window_extent().x1)
        numbers = [child for child in ax.child_axes if child.get_xlabel() == "Trial number"]
        assert len(numbers) == (clock == "seconds")
        for top in numbers:
            ticks = {label.get_text(): at for at, label in zip(top.get_xticks(), top.get_xticklabels(), strict=True)}
            assert ticks.items() >= {"2": 20.0, "6": 60.0}.items() and all(10 * int(n) == ticks[n] for n in ticks)


def test_a_legend_that_would_cover_values_is_beside_the_axes():
    rng = np.random.default_rng(0)
    ax = plotting.plot_convergence(run_of(rng.random(600).tolist()))
    ax.figure.canvas.draw()
    assert ax.get_legend().get_window_extent().x0 > ax.bbox.x1
