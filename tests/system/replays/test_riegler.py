"""The replay of Riegler et al. 2026: shares and regrets of small histories, and a small run."""

import json

import numpy as np
import pytest

from belated import cli
from belated.replays import riegler
from belated.replays.runner import Options

OPTIONS = Options(iterations=18)


def run(mode="workers", noise=0.0, method="UCB"):
    return riegler.run_task(riegler.Setting("hartmann6", mode, noise, method), 0, OPTIONS)


def test_initial_points_are_a_shifted_halton_sequence():
    one, other = (riegler.initial_points(6, np.random.default_rng(seed)) for seed in (0, 1))
    assert one.shape == (18, 6) and (one >= 0).all() and (one < 1).all()
    shifts = (other - one) % 1.0
    assert np.allclose(shifts, shifts[0])
    first = np.array([0.5, 0.25, 0.75, 0.125]) - 0.5
    assert np.allclose((one[:4, 0] - one[0, 0]) % 1.0, first % 1.0)
    thirds = np.array([1 / 3, 2 / 3, 1 / 9, 4 / 9]) - 1 / 3
    assert np.allclose((one[:4, 1] - one[0, 1]) % 1.0, thirds % 1.0)


def test_shares_of_a_small_history():
    started, arrivals = np.array([0.0, 0.0, 1.0, 2.0, 2.0]), np.array([3.0, 1.0, 2.0, 9.0, 9.0])
    # Results arrive between the trials 1 and 2 and between the trials 2 and 3.
    assert riegler.uninformed(started, arrivals) == 0.5
    x = np.array([[0.1] * 6, [0.5] * 6, [0.1] * 6, [0.5] * 6, [0.1 + 5e-4] * 6])
    # Trial 2 repeats trial 0, which is pending. Trial 1 has arrived when trial 3 starts. Trial 4 is near trial 0.
    assert riegler.repeated(x, started, arrivals) == 0.4


def test_regret_counts_the_results_that_have_arrived():
    regret, arrivals = np.array([5.0, 1.0, 3.0]), np.array([1.0, 3.0, 2.0])
    found = riegler.least(arrivals, regret, 4.0, np.array([0.0, 1.0, 2.0, 2.5, 3.0]))
    assert found.tolist() == [4.0, 4.0, 3.0, 3.0, 1.0]


@pytest.mark.parametrize("mode, uninformed", [("workers", 7 / 17), ("delay", 7 / 17), ("batches", 15 / 17)])
def test_a_suggestion_is_informed_as_the_mode_says(mode, uninformed):
    found = run(mode)
    assert found["uninformed"] == pytest.approx(uninformed, abs=1.01 / 17)
    assert len(found["regret"]) == 18 and len(found["by_time"]) == riegler.N_READINGS + 1
    for key in ("regret", "by_time", "with_decisions"):
        assert (np.diff(found[key]) <= 0).all() and found[key][-1] > 0
    # Decisions delay results, so the regret at a time is not smaller with them.
    assert (found["with_decisions"] >= found["by_time"]).all()


def test_methods_share_initial_points_and_the_standard_acquisition_repeats_points_in_batches():
    found = {method: run("batches", 0.2, method) for method in riegler.METHODS}
    assert len({each["by_time"][0] for each in found.values()}) == 1
    assert found["UCB"]["repeated"] > 0.5
    for method in ("LP", "PLAyBOOK", "BayesOpt"):
        assert found[method]["repeated"] == 0.0


def test_report_table_and_figure(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(riegler, "METHODS", ("UCB", "PLAyBOOK"))
    numbers, picture = tmp_path / "numbers.json", tmp_path / "figure.png"
    arguments = ["--runs", "1", "--iterations", "3", "--workers", "0", "--json", str(numbers), "--plot", str(picture)]
    assert cli.main(["replay", "riegler", *arguments]) == cli.DONE
    shown = capsys.readouterr().out
    assert "hartmann6, batches, noise 0.2" in shown and "PLAyBOOK" in shown and picture.stat().st_size > 1000
    settings = json.loads(numbers.read_text(encoding="utf-8"))["settings"]
    assert len(settings) == len(riegler.NOISES) * len(riegler.PANELS) * len(riegler.METHODS)
