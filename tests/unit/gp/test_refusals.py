"""Invalid points, targets and settings raise errors and leave the Gaussian process unchanged."""

import numpy as np
import pytest

import belated as bl
from belated._core import Acquisition, Domain, GaussianProcess
from tests.unit.gp.problems import acquisitions, cube, fitted

pytestmark = pytest.mark.usefixtures("one_thread")


def with_nan(x):
    x = np.array(x)
    x.flat[-1] = np.nan
    return x


X, Y = np.random.default_rng(0).random((5, 2)), np.arange(5.0)


@pytest.mark.parametrize(
    "call",
    [
        lambda gp: gp.fit(X[:, :1], Y),
        lambda gp: gp.fit(np.hstack([X, X]), Y),
        lambda gp: gp.fit(X[:, :0], Y),
        lambda gp: gp.fit(X, Y[:4]),
        lambda gp: gp.fit(X[:0], Y),
        lambda gp: gp.fit(with_nan(X), Y),
        lambda gp: gp.fit(X, with_nan(Y)),
        lambda gp: gp.fit(X, Y - np.inf),
        lambda gp: gp.predict(X[:, :1]),
        lambda gp: gp.predict(with_nan(X)),
        lambda gp: gp.sample(X[:, :1], 2, 0),
        lambda gp: gp.sample(with_nan(X), 2, 0),
    ]
    + [
        lambda gp, i=i, call=call: call(acquisitions(gp)[i])
        for i in range(6)
        for call in (
            lambda acquisition: acquisition(X[:, :1]),
            lambda acquisition: acquisition(with_nan(X)),
            lambda acquisition: acquisition.gradient(X[0, :1]),
            lambda acquisition: acquisition.gradient(with_nan(X[0])),
            lambda acquisition: acquisition.maximize(cube(1)),
            lambda acquisition: acquisition.maximize(Domain.candidates(np.hstack([X, X]))),
        )
    ],
)
def test_points_and_targets_that_are_refused(call):
    gp = fitted()
    before = [gp.x, gp.y, *gp.predict(X)]
    with pytest.raises(bl.errors.InvalidPoint) as caught:
        call(gp)
    assert isinstance(caught.value, ValueError)
    assert all(np.array_equal(a, b) for a, b in zip([gp.x, gp.y, *gp.predict(X)], before, strict=True))


@pytest.mark.parametrize(
    "name, call",
    [(name, lambda a={name: value}: GaussianProcess(**a)) for name in ("variance", "noise") for value in (-1.0, np.nan)]
    + [("variance", lambda: GaussianProcess(variance=0.0)), ("noise", lambda: GaussianProcess(noise=np.inf))]
    + [
        ("lengthscale", lambda value=value: GaussianProcess(lengthscale=value))
        for value in (0.0, -1.0, np.nan, np.inf, [1.0, 0.0], [])
    ]
    + [("kernel", lambda value=value: GaussianProcess(kernel=value)) for value in ("rbf", "", 3)]
    + [("nu", lambda nu=nu: Acquisition.upper_confidence_bound(fitted(), nu)) for nu in (np.nan, np.inf)]
    + [("nu", lambda nu=nu: Acquisition.thompson(fitted(), nu)) for nu in (np.nan, -np.inf)]
    + [("incumbent", lambda f=f: Acquisition.log_expected_improvement(fitted(), f)) for f in (np.nan, np.inf)]
    + [("n_features", lambda: Acquisition.thompson(fitted(), n_features=0))]
    + [("n_restarts", lambda: fitted().optimize(n_restarts=0))],
)
def test_settings_that_are_refused(name, call):
    with pytest.raises(bl.errors.InvalidSetting, match=f"^{name}="):
        call()


@pytest.mark.parametrize("call", ["log_marginal_likelihood", "optimize"])
def test_calls_that_need_data_are_refused_without_data(call):
    gp = GaussianProcess()
    with pytest.raises(bl.errors.InvalidPoint, match="fit"):
        getattr(gp, call)()
    for make in (Acquisition.thompson, lambda gp: Acquisition.upper_confidence_bound(gp, 1.0)):
        with pytest.raises(bl.errors.InvalidPoint, match="fit"):
            make(gp)


def test_arrays_of_other_types_are_refused():
    for z in ([[0.0, 0.0]], X.astype(np.float32), X[0], X[None], "x"):
        with pytest.raises(TypeError):
            fitted().predict(z)
