"""Maximising an acquisition: maxima on faces and corners of a box, and comparisons with a grid and with all points of a
finite domain."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import belated as bl
from belated._core import Acquisition, Domain, GaussianProcess
from tests.unit.gp.problems import FULL, SMOOTH, acquisitions, both, cube, fitted, smooth

pytestmark = pytest.mark.usefixtures("one_thread")


def bump(seed):
    """Return a box of integers, and a posterior with a narrow maximum between two integers."""
    rng = np.random.default_rng(seed)
    top = (rng.integers(5, 35, size=2) + rng.uniform(0.3, 0.7, size=2)) / 39
    gp = GaussianProcess("squared_exponential", 0.03, 1.0, 1e-4)
    gp.fit(np.vstack([top, rng.random((6, 2))]), np.array([5.0, *np.zeros(6)]))
    return gp, bl.Space({"m": bl.Integer(1, 40), "n": bl.Integer(1, 40)}).core.domain()


@pytest.mark.parametrize("seed", range(8))
def test_the_value_belongs_to_the_point_and_is_the_largest_of_all_integers(seed):
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


@settings(max_examples=300 if FULL else 40)
@given(
    ends=st.lists(st.sampled_from([0.0, 1.0, None]), min_size=1, max_size=6),
    kernel=st.sampled_from(SMOOTH),
    seed=st.integers(0, 1000),
)
def test_the_maximum_is_reached_on_faces_and_corners_exactly(ends, kernel, seed):
    """f is linear in the coordinates for which `ends` gives a face, and a parabola with its maximum inside the box in
    the others."""
    d = len(ends)
    x = np.random.default_rng(seed).random((40 * d, d))
    y = sum(-2 * (x[:, k] - 0.4) ** 2 if end is None else (2 * end - 1) * x[:, k] for k, end in enumerate(ends))
    gp = GaussianProcess(kernel, np.full(d, 2.0), 10.0, 1e-4)
    gp.fit(x, y)
    point, index, value = Acquisition.upper_confidence_bound(gp, 0.0).maximize(cube(d), seed)
    assert index is None and value == pytest.approx(gp.predict(point[None])[0][0], rel=1e-9)
    # Between rows, the maximum of the posterior mean may lie just inside a face, although the maximum of f lies on the
    # face.
    corner = np.array([p if end is None else end for end, p in zip(ends, point, strict=True)])
    gradient = Acquisition.upper_confidence_bound(gp, 0.0).gradient(corner)[1]
    assume(all(end is None or (2 * end - 1) * slope > 0 for end, slope in zip(ends, gradient, strict=True)))
    for end, p in zip(ends, point, strict=True):
        assert p == end if end is not None else abs(p - 0.4) < 0.1


@smooth
def test_the_maximum_is_at_least_the_maximum_of_a_grid(kernel):
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 101)] * 2), axis=-1).reshape(-1, 2)
    for seed in range(30 if FULL else 4):
        gp = fitted(kernel, n=15, seed=seed)
        for acquisition in acquisitions(gp, seed):
            point, _, value = acquisition.maximize(cube(2), seed)
            assert ((point >= 0) & (point <= 1)).all()
            assert value >= acquisition(grid).max() - 1e-6 * max(1, abs(value))


@both
def test_the_maximum_of_few_members_is_the_largest_of_all(kernel):
    gp = fitted(kernel, n=30, d=5)
    box = bl.Space({"i": bl.Integer(3, 9), "c": ["u", "v", "w"], "j": bl.Integer(1, 4, log=True)}).core.domain()
    low = np.log([1, 2, 3, 4]) / np.log(4)
    members = np.array([[i / 6, *one, j] for i in range(7) for one in np.eye(3) for j in low])
    for acquisition in acquisitions(gp):
        values = acquisition(members)
        point, index, value = acquisition.maximize(box)
        assert index is None and value == pytest.approx(values.max(), rel=1e-9)
        assert np.abs(members - point).max(axis=1).min() < 1e-12
        point, index, value = acquisition.maximize(Domain.candidates(members))
        assert index == values.argmax() and np.array_equal(point, members[index]) and value == values.max()
