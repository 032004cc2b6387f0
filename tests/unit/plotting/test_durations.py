"""The plot of predicted durations; the test reads the artists."""

import numpy as np
import pytest

import belated as bl
from belated import plotting

pytest.importorskip("matplotlib").use("Agg")

SPACE = {"x": (0.0, 1.0), "k": ["a", "b"]}
POINTS = [{"x": 0.1, "k": "a"}, {"x": 0.4, "k": "b"}, {"x": 0.6, "k": "a"}, {"x": 0.9, "k": "b"}]


def searched(durations):
    """Return an optimizer with two observed trials and one or two failed trials, which have these durations."""
    opt = bl.BayesOpt(SPACE, seed=0)
    for i, (point, duration) in durations.items():
        opt.enqueue(point)
        trial = opt.suggest()
        if i < 2:
            trial.observe(0.0, duration=duration)
        else:
            trial.fail(duration=duration)
    return opt


def test_each_duration_is_predicted_from_the_others(tmp_path):
    durations = dict(enumerate(zip(POINTS, [1.0, 3.0, 2.0, 0.0], strict=True)))
    opt = searched(durations)
    ax = plotting.plot_durations(opt)
    drawn = [(container.get_label(), container.lines[0].get_xydata()) for container in ax.containers]
    known = [1.0, 3.0, 2.0, 0.1]  # 0 is drawn at a tenth of the smallest positive duration
    assert [(name, rows[:, 0].tolist()) for name, rows in drawn] == [
        ("observed", pytest.approx(known[:2])),
        ("failed", pytest.approx(known[2:])),
    ]
    # With 4 durations, the model does not have hyperparameters that are fitted to all durations.
    for i, predicted in enumerate(np.concatenate([rows[:, 1] for _, rows in drawn])[:3]):
        others = {j: (point, d or 0.1) for j, (point, d) in durations.items() if j != i}
        assert predicted == pytest.approx(searched(others).durations_.predict(POINTS[i]).median, rel=1e-9)
    intervals = [segment[:, 1] for container in ax.containers for segment in container.lines[2][0].get_segments()]
    within = sum(low <= d <= high for d, (low, high) in zip(known, intervals, strict=True))
    assert ax.get_title() == f"{within} of 4 durations in their interval"
    assert (ax.get_xscale(), ax.get_yscale(), ax.get_legend() is None) == ("log", "log", False)

    study = bl.Study("s", f"sqlite:///{tmp_path}/s.db", bl.BayesOpt(SPACE, seed=0))
    study.add(POINTS, [0.0] * 4, duration=known)
    ax = plotting.plot_durations(study)
    [container] = ax.containers
    assert container.lines[0].get_xdata().tolist() == pytest.approx(known) and ax.get_legend() is None


def test_the_lines_of_many_durations_are_pale_unless_they_miss_the_diagonal():
    opt = bl.BayesOpt(SPACE, initial=60, seed=0)
    rng = np.random.default_rng(0)
    for trial in opt.suggest(n=60):
        trial.observe(0.0, duration=float(rng.lognormal(0.0, 1.0)))
    ax = plotting.plot_durations(opt)
    [container] = ax.containers
    bars, known = container.lines[2][0], container.lines[0].get_xdata()
    within = [low <= x <= high for x, (low, high) in zip(known, (s[:, 1] for s in bars.get_segments()), strict=True)]
    assert 0 < sum(within) < 60
    for colour, each in zip(bars.get_colors(), within, strict=True):
        assert (tuple(colour[:3]) == (0.0, 0.0, 0.0)) != each and (colour[3] < 0.5) == each


def test_durations_are_needed():
    opt = bl.BayesOpt(SPACE, seed=0)
    with pytest.raises(bl.errors.NotFitted, match=r"plot_durations needs durations: no duration is known: .*duration="):
        plotting.plot_durations(opt)
    with pytest.raises(bl.errors.InvalidSetting):
        plotting.plot_durations(bl.RandomSearch(SPACE))
