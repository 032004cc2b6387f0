"""The argmax of an acquisition over integers, against all of them."""

import numpy as np
import pytest

import belated as bl
from belated._core import Acquisition, GaussianProcess


def bump(seed):
    """A posterior with a narrow top that lies between the integers of the box, and the box."""
    rng = np.random.default_rng(seed)
    top = (rng.integers(5, 35, size=2) + rng.uniform(0.3, 0.7, size=2)) / 39
    gp = GaussianProcess("squared_exponential", 0.03, 1.0, 1e-4)
    gp.fit(np.vstack([top, rng.random((6, 2))]), np.array([5.0, *np.zeros(6)]))
    return gp, bl.Space({"m": bl.Integer(1, 40), "n": bl.Integer(1, 40)}).domain()


@pytest.mark.parametrize("seed", range(8))
def test_the_value_is_that_of_the_point_and_the_largest_of_all_integers(seed):
    gp, box = bump(seed)
    levels = np.arange(40) / 39
    members = np.array(np.meshgrid(levels, levels)).reshape(2, -1).T
    for acquisition in (
        Acquisition.upper_confidence_bound(gp, 0.1),
        Acquisition.log_expected_improvement(gp, 2.0),
        Acquisition.thompson(gp, nu=0.1, seed=seed),
    ):
        point, index, value = acquisition.maximize(box, seed)
        assert index is None and np.abs(point * 39 - np.round(point * 39)).max() < 1e-9
        assert value == pytest.approx(acquisition(point[None])[0], rel=1e-9)
        assert value == pytest.approx(acquisition(members).max(), rel=1e-9)
