"""The model of curves forecasts simulated curves correctly, and checks its arguments."""

import numpy as np
import pytest

from belated._core import CurveModel

STEPS = list(range(1, 21))


def simulated(n, seed=0):
    """Return curves (n, 20) without noise that end at normal values."""
    rng = np.random.default_rng(seed)
    size = 2 + 0.3 * rng.normal(size=(n, 1))
    return rng.normal(size=(n, 1)) - size * np.array(STEPS) ** -0.5


def known(curve, n):
    return np.where(np.arange(len(curve)) < n, curve, np.nan)


def test_pseudo_observations_of_simulated_curves():
    model = CurveModel(STEPS, simulated(40))
    assert 0 < model.noise < 0.01
    for curve in simulated(20, seed=1):
        value, variance = model.pseudo_observation(known(curve, 8))
        assert abs(curve[-1] - value) < 4 * np.sqrt(variance + model.noise) < 1
        assert model.pseudo_observation(curve) is None
        assert model.pseudo_observation(known(curve, 0)) is None


def test_without_five_curves_there_is_no_model():
    model = CurveModel(STEPS, simulated(4))
    assert model.noise is None
    assert model.pseudo_observation(known(simulated(1)[0], 8)) is None


@pytest.mark.parametrize("steps", [[], [0, 1], [2, 2], [3, 1]])
def test_steps_ascend_from_one(steps):
    with pytest.raises(ValueError, match="ascending"):
        CurveModel(steps, np.zeros((6, len(steps))))


def test_every_step_has_a_value():
    with pytest.raises(ValueError, match="ended has 19 values per curve, but there are 20 steps"):
        CurveModel(STEPS, simulated(6)[:, 1:])
    with pytest.raises(ValueError, match="values has 3 values per curve, but there are 20 steps"):
        CurveModel(STEPS, simulated(6)).pseudo_observation(np.zeros(3))
