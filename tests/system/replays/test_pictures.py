"""Pictures of replays: titles, legends, styles and axes."""

from __future__ import annotations

import numpy as np
import pytest

from belated import replays
from belated.replays import asyts, pcts, pcts_tuning, report, riegler, sdf_synthetic, verma, wang
from belated.replays.runner import Replay

pytest.importorskip("matplotlib")


def style(line):
    return line.get_color(), line.get_linestyle()


def labels(legend):
    return [text.get_text() for text in legend.get_texts()]


def legend_styles(legend):
    return {label: style(line) for label, line in zip(labels(legend), legend.get_lines(), strict=True)}


def curve(values, stderr=0.0):
    return {"curve_mean": np.asarray(values, dtype=float), "curve_stderr": np.full(len(values), stderr)}


@pytest.mark.parametrize("columns", [1, 2, 6])
def test_the_title_is_within_the_figure_and_above_the_panels(columns, tmp_path):
    panel = report.panel([curve([1.0, 2.0])], ["a"], title="panel")
    made = report.draw_panels([panel] * columns, columns)
    text = max((each.text for each in replays.found().values()), key=lambda text: len(text.partition("\n")[0]))
    replay = Replay("long", text, None, None, lambda found: made, 1)
    replay.draw({"runs": 1 if columns == 1 else 12}, tmp_path / "figure.png")
    n = "1 run" if columns == 1 else "12 runs"
    assert " ".join(made.get_suptitle().split()) == f"{replay.description} ({n})"
    made.draw_without_rendering()  # at the resolution of the figure
    box = made._suptitle.get_window_extent()
    assert 0 <= box.x0 < box.x1 <= made.bbox.x1 and box.y1 <= made.bbox.y1
    assert all(ax.title.get_window_extent().y1 <= box.y0 for ax in made.axes)
    # The title takes no height from the panels.
    assert made.axes[0].get_window_extent().height > 0.5 * made.dpi * 74 / 25.4


def test_a_method_of_asyts_has_one_style_and_the_legend_has_every_method():
    shown = {"function": "hartmann6", "times": "evaluations"}, {"function": "branin", "times": "uniform"}
    methods = asyts.SEQUENTIAL, asyts.METHODS
    settings = [
        panel | {"method": method} | curve(1.0 / (1 + k + np.arange(asyts.N_READINGS + 1)))
        for panel, names in zip(shown, methods, strict=True)
        for k, method in enumerate(names)
    ]
    made = asyts.figure({"duration": 30, "settings": settings})
    (legend,) = made.legends
    styles = legend_styles(legend)
    assert list(styles) == [*asyts.METHODS, "seqTS"] and len(set(styles.values())) == 11
    for ax, names in zip(made.axes, methods, strict=False):
        drawn = {line.get_label(): style(line) for line in ax.lines if not np.isnan(line.get_ydata()).all()}
        assert drawn == {name: styles[name] for name in names}
    assert all(ax.get_legend() is None for ax in made.axes)


def test_a_legend_of_regret_has_the_algorithms_of_all_panels():
    regret = np.array([[1.0], [2.0], [3.0]]) / (1 + np.arange(wang.N_READINGS + 1))
    a, b, c = ({"algorithm": name, "curve_regret": regret} for name in "abc")
    panels = {"first": [a, b], "second": [b, c]}
    made = wang.regret_figure(panels, 600, 2)
    assert labels(made.legends[0]) == ["a", "b", "c"]


def test_one_run_has_no_bars():
    for lowest, has_bars in ((1.0, False), (0.5, True)):
        regret = np.array([[lowest], [1.0], [1.0]]) / (1 + np.arange(wang.N_READINGS + 1))
        made = wang.regret_figure({"a": [{"algorithm": "a", "curve_regret": regret}]}, 600, 1)
        (drawn,) = made.axes[0].containers
        assert drawn.has_yerr is has_bars
        # The legend draws this container, with a bar only if it has bars.
        assert made.axes[0].get_legend_handles_labels()[0] == [drawn]


def test_the_regret_axis_begins_a_decade_below_the_smallest_regret_above_the_floor():
    median = np.geomspace(1.0, 1e-3, wang.N_READINGS + 1)
    settings = [
        {"algorithm": "bars to 0", "curve_regret": np.stack([0 * median, median, median])},
        {"algorithm": "0", "curve_regret": np.stack([0 * median] * 3)},
    ]
    made = wang.regret_figure({"a": settings, "b": settings[1:]}, 600, 2)
    assert made.axes[0].get_ylim()[0] == pytest.approx(1e-4)
    # Regrets that do not reach the floor keep the axis of matplotlib.
    close = {"algorithm": "close", "curve_regret": np.stack([median, median, median])}
    assert 1e-4 < wang.regret_figure({"a": [close]}, 600, 1).axes[0].get_ylim()[0] < 1e-3


def test_the_legend_of_riegler_names_the_standard_method(monkeypatch):
    monkeypatch.setattr(riegler, "PANELS", riegler.PANELS[:1])
    settings = [
        {"function": function, "mode": mode, "noise": noise, "method": method}
        | {"regret": {"mean": np.ones(5), "stderr": np.zeros(5)}}
        for function, mode in riegler.PANELS
        for noise in riegler.NOISES
        for method in riegler.METHODS
    ]
    made = riegler.figure({"settings": settings})
    assert labels(made.legends[0]) == ["UCB (standard)", *riegler.METHODS[1:]]
    assert all(ax.get_legend() is None for ax in made.axes)


def test_algorithms_of_a_tuned_classifier_differ_in_colour_and_accuracies_end_at_1():
    times = np.arange(5.0)
    settings = [
        {"algorithm": name, "curve_best_median": np.array([np.nan, 0.1, 0.2, 0.9, 1.0 - 0.01 * k])}
        for k, name in enumerate(pcts_tuning.ALGORITHMS)
    ]
    made = pcts_tuning.figure({"data": "the data", "times": times, "settings": settings})
    (ax,) = made.axes
    low, high = ax.get_ylim()
    assert low < 0.1 and high == 1.0 and ax.get_title() == "the data"
    assert len({line.get_color() for line in ax.lines}) == len(labels(made.legends[0])) == len(pcts_tuning.ALGORITHMS)


def test_noises_are_not_joined_by_lines():
    settings = [
        {"function": name, "noise": noise, "algorithm": algorithm, "regret": 0.1}
        for name in ("Branin", "Hartmann3")
        for noise in pcts.NOISES
        for algorithm in pcts.NOISE_ALGORITHMS
    ]
    made = pcts.figure_noise({"settings": settings})
    for ax in made.axes:
        assert {line.get_linestyle() for line in ax.lines} == {"None"} and ax.get_xlabel() == "Noise"
        assert len({line.get_marker() for line in ax.lines}) == len(pcts.NOISE_ALGORITHMS)
        places = np.array([line.get_xdata() for line in ax.lines])
        assert (abs(places - np.arange(len(pcts.NOISES))) < 0.5).all()
    assert labels(made.legends[0]) == list(pcts.NOISE_ALGORITHMS)


@pytest.mark.parametrize("is_published", [False, True])
def test_late_errors_set_the_axis_and_the_legend_says_what_is_dotted(is_published):
    errors = np.array([np.nan, 80.0, 40.0, *np.full(98, 4.0)])
    settings = [
        {"algorithm": algorithm, "delays": delays} | curve(errors if delays == "fixed10" else errors[::-1])
        for algorithm, delays in verma.SETTINGS
    ]
    published = {"published_mean": [6.0], "published_curve_mean": np.full(101, 6.0)}
    made = verma.figure({"settings": [s | published for s in settings] if is_published else settings})
    largest = 1.5 * (6.0 if is_published else 4.0)
    families = [members for members in verma.FAMILIES.values() for _ in verma.DELAYS]
    for ax, family in zip(made.axes, families, strict=True):
        # In the panels of random delays, the errors increase, so that the last errors are the largest.
        assert ax.get_ylim()[1] == (largest if "constant" in ax.get_title() else pytest.approx(84, abs=1))
        assert labels(ax.get_legend()) == [*family, *["Dotted: as published"] * is_published]


def test_a_delay_mean_has_the_same_colour_with_and_without_given():
    colours = {}
    for given in (False, True):
        settings = {setting for _, members in sdf_synthetic.panels(given).values() for setting in members}
        described = [setting._asdict() | curve([1.0, 0.5]) for setting in settings]
        ax = sdf_synthetic.figure({"given": given, "settings": described}).axes[0]
        colours[given] = legend_styles(ax.get_legend())
        assert ax.get_title().startswith("1(a), k" if given else "1(a): ")
    assert colours[False] == colours[True] and len(set(colours[True].values())) == 6
