"""Robust targets compress a long tail of bad values if the data support this; predictions are in the original units."""

import json
import math

import numpy as np
import pytest

import belated as bl
from belated.functions import HARTMANN6

SPACE = {"x": (-2.0, 2.0), "y": (-2.0, 2.0)}


def cliff(params, bad):
    """A smooth function with very bad values in one corner."""
    x, y = params["x"], params["y"]
    return bad if x > 0.8 and y > -0.5 else -((x - 0.4) ** 2) - (y + 0.3) ** 2


def searched(bad=-1e6, n=24, direction="maximize", **arguments):
    opt = bl.BayesOpt(SPACE, seed=3, direction=direction, **arguments)
    sign = 1 if direction == "maximize" else -1
    for _ in range(n):
        trial = opt.suggest()
        trial.observe(sign * cliff(trial.params, bad))
    return opt


def last_note(opt):
    """Return the note of the last fit."""
    notes = [json.loads(event)["what"].get("Suggested", {}).get("note") for event in opt._log.events(0)]
    return json.loads([note for note in notes if note][-1])


def last_warp(opt):
    """Return the transformation in the note of the last fit, or None."""
    return last_note(opt).get("warp")


@pytest.mark.parametrize("seed", [21, 22, 23])
def test_values_stay_compressed_at_later_fits(seed):
    """A fit that starts only from the hyperparameters for the untransformed values would end in a poor local
    optimum."""
    opt = bl.BayesOpt(HARTMANN6.space, seed=seed)
    bad = 0
    for _ in range(50):
        trial = opt.suggest()
        note = json.loads(opt._log.events(0)[-1])["what"]["Suggested"].get("note")
        assert not note or not bad or "warp" in json.loads(note)
        diverges = trial.params["x5"] + trial.params["x6"] > 1.55
        bad += diverges
        trial.observe(-1e6 if diverges else HARTMANN6(trial.params))
    assert bad


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_targets_follow_the_formula(direction):
    opt = searched(direction=direction)
    opt.suggest()
    note, warp = last_note(opt), last_warp(opt)
    assert warp is not None
    model = opt._log.surrogate(None, False)[0]
    y = np.array([trial.value for trial in opt.trials if trial.state == "observed"])
    y = y if direction == "maximize" else -y
    k, w = warp["knee"], warp["width"]
    below = np.maximum(k - np.where(y < warp["diverging"], warp["limit"], y), 0.0)
    t = np.where(y < k, k - w * np.log1p(below / w), y)
    np.testing.assert_allclose(model.y, (t - note["center"]) / note["scale"], atol=1e-9)
    # The values at the time of the fit determine the unit.
    fitted = t[: note["rows"]]
    np.testing.assert_allclose([note["center"], note["scale"]], [fitted.mean(), fitted.std()], rtol=1e-9)


def test_predictions_are_in_units_of_f_and_follow_the_good_values():
    opt = searched()
    near, far = opt.predict([{"x": 0.4, "y": -0.3}, {"x": 1.9, "y": 1.9}])[0]
    assert near == pytest.approx(0.0, abs=0.05) and far < -1.0
    assert opt.recommend()["x"] == pytest.approx(0.4, abs=0.1)


@pytest.mark.parametrize("bad", [-1e5, -1e12, -1e100])
def test_the_scale_of_bad_values_does_not_matter(bad):
    """The model treats all extremely bad values as equal."""
    points = [trial.params for trial in searched(n=20).trials]
    targets = []
    for value in (-1e6, bad):
        opt = bl.BayesOpt(SPACE, seed=3)
        opt.add(points, [cliff(params, value) for params in points])
        opt.suggest()
        assert last_warp(opt) is not None
        targets.append(opt._log.surrogate(None, False)[0].y)
    np.testing.assert_allclose(*targets, atol=1e-9)


def test_values_without_a_tail_are_not_transformed():
    opt = bl.BayesOpt(SPACE, seed=0)
    rng = np.random.default_rng(0)
    for trial in opt.suggest(40):
        trial.observe(math.sin(2 * trial.params["x"]) + math.cos(2 * trial.params["y"]) + 0.01 * rng.normal())
    opt.suggest()
    assert last_warp(opt) is None


@pytest.mark.parametrize(
    "arguments",
    [
        {"surrogate": bl.GP(targets="standardized")},
        {"surrogate": bl.GP(targets="raw")},
        {"acquisition": "ucb", "pending": bl.Censor(-1e7), "window": 5.0},
    ],
)
def test_robust_targets_can_be_turned_off(arguments):
    opt = searched(n=14, **arguments)
    opt.suggest()
    assert last_warp(opt) is None


def test_named_algorithms_scale_targets_as_the_papers_do():
    assert bl.algorithm("GP-EI", SPACE).get_params()["surrogate__targets"] == "standardized"


def test_unknown_names_of_targets_are_refused():
    with pytest.raises(bl.errors.InvalidSetting, match="targets"):
        bl.GP(targets="robus")
