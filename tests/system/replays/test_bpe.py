"""The replay of BPE-Delay: functions, settings, and runs that the authors recorded."""

from __future__ import annotations

import itertools
import math
import os
from pathlib import Path

import numpy as np
import pytest

import belated as bl
from belated import replays
from belated.replays import bpe
from belated.replays.runner import Options
from belated.simulate import Poisson, simulate

DATA = Path(os.environ["BELATED_DATA"]) if "BELATED_DATA" in os.environ else None
recorded = None if DATA is None else bpe.read_reference(DATA)
needs_data = pytest.mark.skipif(recorded is None, reason=f"BELATED_DATA names no folder with {bpe.REFERENCE}")


@needs_data
@pytest.mark.parametrize("mean", bpe.REFERENCE_STEPS)
def test_mean_regret_is_within_the_range_of_the_authors_runs(mean):
    setting = bpe.Setting("reference", "BPE-Delay", mean)
    options = Options(iterations=bpe.REFERENCE_HORIZON, faithful=True, data=DATA)
    regrets = [bpe.run_task(setting, i, options)["regret"] for i in range(10)]
    assert len(regrets[0]) - 1 == {25: 497, 50: 597}[mean]
    for step in bpe.REFERENCE_STEPS[mean]:
        theirs = recorded.curves[mean][:, step // 10 - 1]
        assert len(theirs) == 10 and theirs.min() <= np.mean([regret[step] for regret in regrets]) <= theirs.max()


@needs_data
def test_regret_grows_with_the_mean_delay():
    """On the recorded f with T = 1000 the regret grows about linearly with the mean delay."""
    ends = {}
    for mean in bpe.MEANS:
        setting = bpe.Setting("reference", "BPE-Delay", mean)
        options = Options(iterations=1000, data=DATA)
        ends[mean] = np.mean([bpe.run_task(setting, i, options)["regret"][-1] for i in range(3)])
    added = {mean: ends[mean] - ends[0] for mean in (25, 50)}
    assert 0 < added[25] < added[50] and 1.4 < added[50] / added[25] < 2.8


def test_figure_1_has_the_functions_and_figure_5_the_mean_over_drawn_functions(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(bpe, "DRAWN", 2)
    monkeypatch.setattr(bpe, "RIVAL_DRAWN", 1)
    report = replays.found()["bpe"].run(Options(runs=1, seed=4, iterations=110, workers=0))
    made = bpe.figure(report)
    surfaces = [ax for ax in made.axes if ax.name == "3d"]
    assert [ax.get_title() for ax in surfaces] == ["1: f1", "1: f2"]
    for f, ax in zip(bpe.LENGTHSCALES, surfaces, strict=True):
        values = bpe.sample(f, 4)
        shown = ax.get_zlim()
        assert shown[0] <= values.min() and values.max() <= shown[1]
        # Another way to the mean: each run alone.
        ends = {name: [] for name in bpe.COMPARED}
        for name, d, run in itertools.product(bpe.COMPARED, range(2), range(bpe.RUNS_DRAWN)):
            setting = bpe.Setting(f, name, 50, d)
            ends[name].append(bpe.run_task(setting, run, Options(runs=1, seed=4, iterations=110))["regret"][110])
        (panel,) = [ax for ax in made.axes if ax.get_title().endswith(f"mean of 2 functions like {f}")]
        curves = {line.get_label(): line.get_ydata()[-1] for line in panel.lines}
        for name, regrets in ends.items():
            assert curves[f"{name}, λ = 50"] == pytest.approx(np.mean(regrets), rel=1e-12)


def test_functions_are_smooth_samples_and_the_same_for_a_seed():
    for name, lengthscale in bpe.LENGTHSCALES.items():
        f = bpe.sample(name, 3)
        assert np.array_equal(f, bpe.sample(name, 3)) and not np.array_equal(f, bpe.sample(name, 4))
        # The interpolation passes through the 25 values that it is given. The corners of the square are also
        # candidates.
        corners = [0, 49, 49 * 50, 2499]
        points = np.array([[-5.0, -5.0], [-5.0, 5.0], [5.0, -5.0], [5.0, 5.0]])
        assert np.array_equal(bpe.grid()[corners], points)
        again = bpe.interpolated(points, f[corners], lengthscale)
        assert np.allclose(again[corners], f[corners], atol=1e-6)
    x = bpe.grid()
    assert [bpe.index_of(row) for row in x] == list(range(len(x)))


def test_settings_agree_with_the_paper_and_its_code():
    for faithful, lengthscale in ((False, 0.08), (True, 0.1)):
        ours = bpe.optimizer(bpe.Setting("f1", "BPE-Delay", 50), 1000, faithful, 0)
        assert isinstance(ours, bl.BPEDelay) and ours.lengthscale == lengthscale and ours.beta == math.sqrt(6)
        lengths = [each.length for each in ours.rounds_]
        assert lengths == ([98, 250, 497, 726] if faithful else [128, 275, 520, 77])
        rival = bpe.optimizer(bpe.Setting("f1", "GP-UCB-SDF", 50), 1000, faithful, 0)
        assert rival.window == 100 and rival.surrogate.lengthscale == lengthscale
        assert rival._settings()["acquisition"].beta == math.sqrt(6)
        assert isinstance(rival._settings()["pending"], bl.Ignore if faithful else bl.Censor)
        added = bpe.optimizer(bpe.Setting("f1", bpe.RIVAL, 50), 1000, faithful, 0)
        assert added.surrogate == rival.surrogate and added._settings()["acquisition"].beta == math.sqrt(6)


def test_observing_the_floor_first_equals_censoring_pending_trials(monkeypatch):
    rng = np.random.default_rng(7)
    x, f = rng.uniform(-5, 5, (150, 2)), rng.normal(size=150)
    monkeypatch.setattr(bpe, "grid", lambda: x)
    table = {tuple(row): value for row, value in zip(x, f, strict=True)}
    points = []
    for wrap in (bpe.FloorFirst, lambda optimizer, floor: optimizer):
        made = bpe.optimizer(bpe.Setting("f1", "GP-UCB-SDF", 6), 60, False, 3, f.min())
        history = simulate(wrap(made, f.min()), lambda row: table[tuple(row)], 60, Poisson(6.0), noise=0.02, seed=5)
        assert max(history.delays) <= 12
        points.append([tuple(row) for row in history.points])
    assert points[0] == points[1]


@pytest.mark.parametrize("faithful", [False, True])
def test_a_small_replay_from_end_to_end(faithful, tmp_path):
    pytest.importorskip("matplotlib")
    options = Options(runs=1, seed=1, iterations=110, workers=0, faithful=faithful, data=DATA)
    replay = replays.found()["bpe"]
    report = replay.run(options)
    text = bpe.table(report)
    assert (bpe.RIVAL in text) == (not faithful)
    for part in ("f1 (lengthscale 0.8)", "GP-UCB-SDF, λ = 25", "BPE, λ = 50", bpe.ESTIMATED, "below it in"):
        assert part in text
    assert ("f on record" in text) == (faithful and recorded is not None)
    for described in report["settings"]:
        assert np.all(np.diff(described["curve_mean"]) >= 0) and described["step"] == [100, 110]
    for f, drawn in [*report["drawn"].items(), *report["rival"].items()]:
        assert f"{drawn['functions']} functions like {f}, λ = 50, step 110" in text
        first, second = (drawn[name]["mean"] for name in drawn["names"])
        difference = first - second
        assert np.allclose(difference, drawn["difference"]["mean"])
    replay.draw(report, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000


@pytest.mark.parametrize("name", bpe.LENGTHSCALES)
def test_the_bound_of_theorem_6_1_exceeds_the_trivial_bound(name):
    """In the proof (Eq. 26), a step of round r + 1 has a regret of at most 4 beta sqrt(c_1 Gamma(q_r)/q_r). The greedy
    information is at most Gamma, so the bound of the proof is at least the bound with it."""
    planned = bpe.optimizer(bpe.Setting(name, "BPE-Delay", 50), 1000, False, 0).rounds_
    model = bl.GP(kernel="squared_exponential", lengthscale=bpe.LENGTHSCALES[name] / bpe.SIDE, signal_std=1.0)
    points = bpe.grid() / bpe.SIDE
    values = bpe.sample(name, 0)
    # The norm of f for the kernel k(x, x) = 1 is at least its largest absolute value.
    norm = np.abs(values).max()
    beta = norm + math.sqrt(2 * math.log(4 * len(planned) * len(points) / bpe.DELTA))
    for each in planned[:-1]:
        greedy = (1 - math.exp(-1)) * bl.papers.largest_information_gain(points, each.n_explored, model, bpe.NOISE)
        step = 4 * beta * math.sqrt(2 / math.log1p(bpe.NOISE**-2) * greedy / each.n_explored)
        assert step > 2 * norm


def test_verdicts_are_about_paired_runs_and_paired_functions():
    pytest.importorskip("scipy")
    rng = np.random.default_rng(0)
    levels = {("GP-UCB-SDF", 0): 100, ("GP-UCB-SDF", 25): 700, ("GP-UCB-SDF", 50): 900, ("GP-BUCB", 25): 120}
    levels |= {("GP-BUCB", 50): 130, ("BPE-Delay", 0): 400, ("BPE-Delay", 25): 500, ("BPE-Delay", 50): 600}
    levels[bpe.ESTIMATED, 50] = 600
    shift, noise = rng.normal(0, 200, 10), rng.permutation([-1.0, 1.0] * 5)
    settings = []
    for f, ((name, mean), level) in itertools.product(bpe.LENGTHSCALES, levels.items()):
        regrets = level + shift + noise * (name == bpe.ESTIMATED)  # runs differ much more than their differences
        described = {"function": f, "algorithm": name, "poisson_mean": mean}
        settings.append(described | {"regret_per_run": np.stack([np.zeros(10), regrets], axis=1)})
    per_function = [shift[:, None] + [0, 0], shift[:, None] + [-1.0, 1.0]]
    drawn = {"functions": 10, "step": [200, 1000], "names": ["BPE", "BPE-Delay"], "regret_per_function": per_function}
    found = {"horizon": 1000, "settings": settings, "drawn": dict.fromkeys(bpe.LENGTHSCALES, drawn), "rival": {}}
    decided = {tuple(each.values())[:4]: each["verdict"] for each in bpe.decided(found)}
    assert len(decided) == 2 * 6 + 2 * 2
    assert decided["f1", 1000, "BPE-Delay, λ = 50", "GP-UCB-SDF, λ = 50"] == "better"
    assert decided["f2", 1000, f"{bpe.ESTIMATED}, λ = 50", "BPE-Delay, λ = 50"] == "undecided"
    assert decided["f2", 1000, "GP-UCB-SDF, λ = 25", "GP-UCB-SDF, λ = 0"] == "worse"
    assert decided["10 functions like f1", 200, "BPE-Delay", "BPE"] == "better"
    assert decided["10 functions like f1", 1000, "BPE-Delay", "BPE"] == "worse"
    found["rival"] = dict.fromkeys(bpe.LENGTHSCALES, drawn | {"names": ["BPE-Delay", "GP-BUCB"]})
    decided = {tuple(each.values())[:4]: each["verdict"] for each in bpe.decided(found)}
    assert decided["f1", 1000, "GP-BUCB, λ = 25", "BPE-Delay, λ = 25"] == "better"
    assert decided["10 functions like f2", 1000, "GP-BUCB", "BPE-Delay"] == "worse"
