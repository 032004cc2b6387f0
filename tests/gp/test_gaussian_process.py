"""The Gaussian process and its acquisitions against scikit-learn, dense algebra, quadrature and finite differences."""

import os
import warnings

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.linalg import cho_factor, cho_solve
from scipy.special import erfcx
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from threadpoolctl import threadpool_limits

import belated as bl
from belated._core import Acquisition, Domain, GaussianProcess

FULL = os.environ.get("BELATED_FULL") == "1"
NU = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}
KERNELS = ["squared_exponential", *NU]

both = pytest.mark.parametrize("kernel", KERNELS)
# Means and draws of the roughest have kinks and waves below any step.
SMOOTH = [kernel for kernel in KERNELS if kernel != "matern12"]
smooth = pytest.mark.parametrize("kernel", SMOOTH)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small matrices on many threads spend their time waiting."""
    with threadpool_limits(1):
        yield


def shape(kernel, lengthscale, bounds=(1e-5, 1e5)):
    """scikit-learn's kernel of the same name, without its variance."""
    if kernel == "squared_exponential":
        return RBF(lengthscale, length_scale_bounds=bounds)
    return Matern(lengthscale, nu=NU[kernel], length_scale_bounds=bounds)


def wave(x, rng, noise=0.1):
    """Noisy targets of order one over points of the unit cube."""
    return np.sin(3 * x.sum(axis=1)) + x[:, 0] + noise * rng.normal(size=len(x))


def fitted(kernel="matern52", n=20, d=2, noise=1e-2, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.random((n, d))
    gp = GaussianProcess(kernel, np.linspace(0.3, 0.6, d), 1.3, noise)
    gp.fit(x, wave(x, rng))
    return gp


def close(a, b, tolerance):
    """Equal up to `tolerance` times the largest entry."""
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and np.all(np.abs(a - b) <= tolerance * max(np.abs(b).max(initial=0), 1e-300))


@st.composite
def problems(draw):
    """Kernel, θ, data and test points; θ over several decades, the noise at least a thousandth of the signal.

    That much noise bounds the condition of the covariance by n·1000, and with it the difference that two
    correct ways of computing may show.
    """
    n, d = draw(st.integers(1, 500 if FULL else 60)), draw(st.integers(1, 10))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    lengthscale = 10 ** rng.uniform(-1, 1, size=d)
    variance = 10 ** rng.uniform(-2, 2)
    noise = variance * 10 ** rng.uniform(-3, 0)
    x = rng.random((n, d))
    y = np.sqrt(variance) * wave(x, rng)
    return draw(st.sampled_from(KERNELS)), lengthscale, variance, noise, x, y, rng.random((30, d))


def extreme(kernel):
    """The largest problem that is promised, and nearly the worst conditioned."""
    rng = np.random.default_rng(1)
    x = rng.random((500, 10))
    return kernel, np.full(10, 3.0), 2.0, 2e-3, x, wave(x, rng), rng.random((30, 10))


@settings(max_examples=300 if FULL else 30)
@given(problem=problems())
@example(problem=extreme("squared_exponential"))
@example(problem=extreme("matern52"))
def test_posterior_and_evidence_are_those_of_scikit_learn(problem):
    kernel, lengthscale, variance, noise, x, y, z = problem
    gp = GaussianProcess(kernel, lengthscale, variance, noise)
    gp.fit(x, y)
    base = ConstantKernel(variance) * shape(kernel, lengthscale)
    mean, std = gp.predict(z)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        reference = GaussianProcessRegressor(base, alpha=noise, optimizer=None).fit(x, y)
        reference_mean, reference_std = reference.predict(z, return_std=True)
        # For the derivative by the noise it has to be a part of the kernel.
        reference = GaussianProcessRegressor(base + WhiteKernel(noise), alpha=0.0, optimizer=None).fit(x, y)
        evidence, by = reference.log_marginal_likelihood(reference.kernel_.theta, eval_gradient=True)
    assert close(mean, reference_mean, 1e-8)
    np.testing.assert_allclose(std, reference_std, rtol=1e-8)
    # Two terms that may cancel make up the evidence; n is the size of each.
    assert abs(gp.log_marginal_likelihood() - evidence) <= 1e-8 * max(abs(evidence), len(y))
    # Theirs stands as (variance, lengthscales, noise), each on the log scale.
    assert close(gp.log_marginal_likelihood_gradient(), [*by[1:-1], by[0], by[-1]], 1e-8)
    assert gp.jitter == 0 and gp.n_observed == len(y)
    assert close(gp.y, y, 1e-10) and np.array_equal(gp.x, x)


@settings(max_examples=200 if FULL else 30)
@given(problem=problems(), cuts=st.lists(st.floats(0, 1), min_size=1, max_size=4))
def test_extended_is_the_same_as_fresh(problem, cuts):
    kernel, lengthscale, variance, noise, x, y, z = problem
    fresh, grown = (GaussianProcess(kernel, lengthscale, variance, noise) for _ in range(2))
    fresh.fit(x, y)
    at = [0, *sorted(int(cut * len(y)) for cut in cuts), len(y)]
    grown.fit(x[: at[1]], y[: at[1]])
    for start, end in zip(at[1:], at[2:], strict=False):
        grown.append(x[start:end], y[start:end])
    for a, b in zip(grown.predict(z), fresh.predict(z), strict=True):
        assert close(a, b, 1e-10)
    assert close(grown.log_marginal_likelihood(), fresh.log_marginal_likelihood(), 1e-10)
    assert grown.n_observed == len(y)


@both
def test_without_data_it_is_the_prior(kernel):
    z = np.random.default_rng(0).random((4, 3))
    for prior in (GaussianProcess(kernel, 0.5, 2.0, 0.1), GaussianProcess(kernel, [0.5] * 3, 2.0, 0.1)):
        mean, std = prior.predict(z)
        assert (mean == 0).all() and (std == np.sqrt(2.0)).all()
        prior.fit(np.empty((0, 3)), np.empty(0))
        assert prior.n_observed == 0 and prior.log_marginal_likelihood() == 0
        assert np.array_equal(prior.predict(z), (mean, std))
    assert [a.shape for a in fitted().predict(np.empty((0, 2)))] == [(0,), (0,)]


def test_arrays_of_any_layout():
    rng = np.random.default_rng(0)
    x, z = rng.random((24, 4)), rng.random((9, 4))
    y = wave(x, rng)
    gp, same = GaussianProcess(noise=0.1), GaussianProcess(noise=0.1)
    gp.fit(x[::-2, 1:3], y[::-2])
    same.fit(x[::-2, 1:3].copy(), y[::-2].copy())
    for view in (z[::3, 1:3], z.T[1:3, :].T, z[::-1, 2:0:-1], np.broadcast_to(z[0, :2], (5, 2))):
        assert np.array_equal(gp.predict(view), same.predict(view.copy()))


# Gradients.


def slope(f, x, h=1e-4):
    """Central differences, with the error term of order h² extrapolated away."""

    def at(h):
        steps = h * np.eye(len(x))
        return np.array([(f(x + step) - f(x - step)) / (2 * h) for step in steps])

    return (4 * at(h / 2) - at(h)) / 3


def farthest(points, x):
    """The point farthest from the rows, where rough kernels have kinks."""
    distance = np.linalg.norm(points[:, None] - x[None], axis=2).min(axis=1)
    return points[distance.argmax()]


@settings(max_examples=300 if FULL else 40)
@given(problem=problems())
def test_gradients_of_mean_and_std_are_finite_differences(problem):
    kernel, lengthscale, variance, noise, x, y, z = problem
    gp = GaussianProcess(kernel, lengthscale, variance, noise)
    gp.fit(x, y)
    z = farthest(z, x)
    mean, std, by_mean, by_std = gp.predict_gradient(z)
    assert close([mean, std], np.ravel(gp.predict(z[None])), 1e-9)
    # Rounding in the values, divided by the step, is the error here.
    scale = np.sqrt(variance) * max(1, 1 / lengthscale.min())
    assert np.allclose(by_mean, slope(lambda p: gp.predict(p[None])[0][0], z), rtol=1e-6, atol=1e-6 * scale)
    assert np.allclose(by_std, slope(lambda p: gp.predict(p[None])[1][0], z), rtol=1e-6, atol=1e-6 * scale)


def test_gradients_are_finite_where_std_is_zero():
    gp = GaussianProcess("squared_exponential", 1.0, 1.0, 0.0)
    gp.fit(np.array([[0.5]]), np.array([2.0]))
    mean, std, by_mean, by_std = gp.predict_gradient(np.array([0.5]))
    assert mean == 2.0 and std == 0.0 and by_mean == [0.0] and np.isfinite(by_std).all()
    for acquisition in (Acquisition.upper_confidence_bound(gp, 1.0), Acquisition.log_expected_improvement(gp, 1.0)):
        value, gradient = acquisition.gradient(np.array([0.5]))
        assert np.isfinite(value) and np.isfinite(gradient).all()


def acquisitions(gp, seed=0):
    return [
        Acquisition.upper_confidence_bound(gp, 1.7),
        Acquisition.upper_confidence_bound(gp, 0.0),
        Acquisition.log_expected_improvement(gp, 0.5),
        Acquisition.log_expected_improvement(gp, 30.0),
        Acquisition.log_expected_improvement(gp, -30.0),
        Acquisition.thompson(gp, nu=1.5, n_features=64, seed=seed),
    ]


@smooth
@pytest.mark.parametrize("d", [1, 3, 10])
def test_gradients_of_acquisitions_are_finite_differences(kernel, d):
    for seed in range(40 if FULL else 4):
        gp = fitted(kernel, n=25, d=d, seed=seed)
        rng = np.random.default_rng(seed)
        for point in (farthest(rng.random((20, d)), gp.x) for _ in range(3)):
            for acquisition in acquisitions(gp, seed):
                value, gradient = acquisition.gradient(point)
                expected = slope(lambda p, f=acquisition: f(p[None])[0], point)
                assert close(value, acquisition(point[None])[0], 1e-9)
                assert np.allclose(gradient, expected, rtol=1e-5, atol=1e-6 * max(1, abs(value)))


# Hyperparameters.


def data_sets():
    """(n, d, f, standard deviation of the noise), each by name.

    All with a signal: over noise alone the evidence has dozens of equal tops, and luck decides who finds which.
    """
    sets = [
        ("smooth", 40, 2, lambda x: np.sin(3 * x.sum(axis=1)), 0.05),
        ("rough", 60, 1, lambda x: np.sin(25 * x[:, 0]) + x[:, 0], 0.2),
        ("one column matters", 50, 5, lambda x: np.exp(x[:, 2]) * np.sin(6 * x[:, 2]), 0.1),
        ("much noise", 80, 3, lambda x: np.sin(4 * x).sum(axis=1), 1.0),
        ("without noise", 35, 2, lambda x: np.cos(4 * x[:, 0]) * x[:, 1], 0.0),
        ("of many rows", 260, 3, lambda x: np.sin(4 * x).sum(axis=1), 0.3),
    ]
    return [pytest.param(*rest, id=name) for name, *rest in sets]


@both
@pytest.mark.parametrize("n, d, f, noise", data_sets())
def test_optimize_reaches_what_scikit_learn_reaches(kernel, n, d, f, noise):
    for seed in range(5 if FULL else 1):
        rng = np.random.default_rng(seed)
        x = rng.random((n, d))
        y = f(x) + noise * rng.normal(size=n)
        y = (y - y.mean()) / y.std()
        # Their search within our bounds.
        reference = GaussianProcessRegressor(
            ConstantKernel(1.0, (1e-6, 1e6)) * shape(kernel, np.ones(d), (1e-3, 1e3)) + WhiteKernel(0.1, (1e-8, 1e4)),
            alpha=0.0,
            n_restarts_optimizer=10 if FULL else 1,
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            best = reference.fit(x, y).log_marginal_likelihood_value_
        gp = GaussianProcess(kernel, np.ones(d), 1.0, 0.1)
        gp.fit(x, y)
        before = gp.log_marginal_likelihood()
        gp.optimize(n_restarts=10, seed=seed, priors=False)
        after = gp.log_marginal_likelihood()
        assert after >= before and after >= best - 0.5
        assert np.array_equal(gp.x, x) and close(gp.y, y, 1e-7)


@pytest.mark.parametrize("seed", range(150) if FULL else [1, 36, 86, 88, 101, 102])
def test_optimize_never_lowers_the_evidence(seed):
    rng = np.random.default_rng(seed)
    # With many rows a fit starts from a part of them, which must not lead away from what is better for all.
    n, d = int(rng.integers(152, 420) if seed < 100 else rng.integers(1, 152)), int(rng.integers(1, 7))
    x = rng.random((n, d))
    y = np.sin(x @ rng.normal(size=d) * rng.choice([1, 5, 15])) + rng.choice([0.01, 0.1, 0.5, 2.0]) * rng.normal(size=n)
    y = (y - y.mean()) / (y.std() or 1.0)
    gp = GaussianProcess(KERNELS[seed % 2], np.full(d, 0.5), 1.0, 0.1)
    gp.fit(x, y)
    for restarts in (8, 1, 4):
        for again in range(2):
            before = gp.log_marginal_likelihood()
            gp.optimize(restarts, seed + again, priors=False)
            assert gp.log_marginal_likelihood() >= before - 1e-6


def test_priors_keep_theta_sober_where_there_is_nothing_to_learn_from():
    rng = np.random.default_rng(0)
    gp = GaussianProcess(noise=0.1)
    x = rng.random((4, 3))
    gp.fit(x, rng.normal(size=4))
    gp.optimize(priors=True)
    assert (gp.lengthscale > 1e-2).all() and 1e-2 < gp.variance < 1e2 and 1e-6 < gp.noise < 1


# Draws.


def covariance(kernel, lengthscale, variance, a, b):
    r = np.sqrt((((a[:, None] - b[None]) / lengthscale) ** 2).sum(axis=-1))
    if kernel == "squared_exponential":
        return variance * np.exp(-(r**2) / 2)
    r *= np.sqrt(2 * NU[kernel])
    return variance * {"matern12": 1, "matern32": 1 + r, "matern52": 1 + r + r**2 / 3}[kernel] * np.exp(-r)


def posterior(gp, z):
    """Mean and covariance by one dense solve."""
    k = [covariance(gp.kernel, gp.lengthscale, gp.variance, a, b) for a, b in ((z, z), (z, gp.x), (gp.x, gp.x))]
    factor = cho_factor(k[2] + gp.noise * np.eye(len(gp.x)))
    return k[1] @ cho_solve(factor, gp.y), k[0] - k[1] @ cho_solve(factor, k[1].T)


def assert_moments(draws, mean, covariance, slack=0.0):
    """Sample means and covariances within five standard errors."""
    n, sd = len(draws), np.sqrt(np.diag(covariance))
    assert (np.abs(draws.mean(axis=0) - mean) <= 5 * sd / np.sqrt(n) + slack).all()
    centred = draws - mean
    error = np.sqrt((np.outer(sd, sd) ** 2 + covariance**2) / n)
    assert (np.abs(centred.T @ centred / n - covariance) <= 5 * error + slack).all()


@both
def test_draws_have_the_moments_of_the_posterior(kernel):
    rng = np.random.default_rng(3)
    for n in (1, 12):
        gp = fitted(kernel, n=n)
        z = rng.random((6, 2))
        mean, cov = posterior(gp, z)
        draws = gp.sample(z, 200_000 if FULL else 20_000, 5)
        assert_moments(draws, mean, cov, slack=1e-6)
        assert np.array_equal(draws[:7], gp.sample(z, 7, 5)) and not np.array_equal(draws[:7], gp.sample(z, 7, 6))
    twice = gp.sample(np.repeat(z, 2, axis=0), 50, 1)  # a singular covariance
    assert np.abs(twice[:, ::2] - twice[:, 1::2]).max() < 1e-3


@both
def test_paths_have_the_moments_of_the_posterior(kernel):
    # Spectral features stand for the prior part only: where there are data, paths follow them.
    gp = fitted(kernel, n=12)
    z = np.random.default_rng(3).random((4, 2))
    mean, cov = posterior(gp, z)
    count = 20_000 if FULL else 3000
    for nu in (1.0, 2.5):
        draws = np.array([Acquisition.thompson(gp, nu, 128, seed)(z) for seed in range(count)])
        assert_moments(draws, mean, nu**2 * cov, slack=0.01 * nu**2 * np.diag(cov).max())


# Expected improvement.


def quadrature(u):
    """log E max(0, u + N(0, 1)) = log φ(u) + log ∫ t exp(ut − t²/2) dt over t > 0: nothing cancels."""
    integral, _ = quad(lambda t: t * np.exp(u * t - t * t / 2), 0, np.inf, epsabs=0, epsrel=1e-13, limit=500)
    return -0.5 * u * u - 0.5 * np.log(2 * np.pi) + np.log(integral)


def closed_form(u):
    """log(φ(u) + u Φ(u)) for u < 0, through the scaled complementary error function."""
    ratio = np.sqrt(np.pi / 2) * erfcx(-u / np.sqrt(2))
    return -0.5 * u * u - 0.5 * np.log(2 * np.pi) + np.log1p(u * ratio)


def log_improvement(u):
    """What the acquisition makes of u, at a point so far from the data that mean and std are those of the prior."""
    gp = GaussianProcess("squared_exponential", 0.01, 1.0, 0.1)
    gp.fit(np.array([[0.0]]), np.array([1.0]))
    far = np.array([[1.0]])
    assert np.ravel(gp.predict(far)).tolist() == [0.0, 1.0]
    return Acquisition.log_expected_improvement(gp, -u)(far)[0]


@settings(max_examples=2000 if FULL else 200)
@given(u=st.floats(-38, 5))
@example(u=-38.0)
@example(u=-1.0)
@example(u=0.0)
def test_log_expected_improvement(u):
    value = log_improvement(u)
    assert abs(value - quadrature(u)) <= 1e-11 * max(1, abs(value))
    if u < -0.1:
        assert abs(value - closed_form(u)) <= 1e-11 * max(1, abs(value))


def test_log_expected_improvement_far_out():
    # h(u) → φ(u)/u² (1 − 3/u²), and h(u) → u on the other side.
    for u in (-1e2, -1e3, -1e6):
        expected = -0.5 * u * u - 0.5 * np.log(2 * np.pi) - 2 * np.log(-u) + np.log1p(-3 / u**2)
        assert log_improvement(u) == pytest.approx(expected, rel=1e-9)
    assert log_improvement(1e6) == pytest.approx(np.log(1e6), rel=1e-12)
    for u in (-40.0, -1.0):  # where one formula takes over from another
        a, b = log_improvement(np.nextafter(u, -np.inf)), log_improvement(np.nextafter(u, np.inf))
        assert abs(a - b) <= 1e-10 * abs(a)


def test_expected_improvement_is_that_of_draws():
    gp = fitted(n=6)
    z = np.random.default_rng(1).random((3, 2))
    draws = gp.sample(z, 200_000, 0)
    for incumbent in (-1.0, 0.5, 1.0):
        improvement = np.maximum(draws - incumbent, 0)
        error = improvement.std(axis=0) / np.sqrt(len(draws))
        value = np.exp(Acquisition.log_expected_improvement(gp, incumbent)(z))
        assert (np.abs(value - improvement.mean(axis=0)) <= 5 * error + 1e-6).all()


def test_upper_confidence_bound_is_mean_and_std():
    gp, z = fitted(), np.random.default_rng(1).random((300, 2))
    mean, std = gp.predict(z)
    assert close(Acquisition.upper_confidence_bound(gp, 2.5)(z), mean + 2.5 * std, 1e-12)


# The maximum over a domain.


def cube(d):
    return bl.Space({f"x{k}": (0.0, 1.0) for k in range(d)}).domain()


@settings(max_examples=300 if FULL else 40)
@given(
    ends=st.lists(st.sampled_from([0.0, 1.0, None]), min_size=1, max_size=6),
    kernel=st.sampled_from(SMOOTH),
    seed=st.integers(0, 1000),
)
def test_the_maximum_is_reached_on_faces_and_corners_exactly(ends, kernel, seed):
    """Of f linear in some coordinates, and of a parabola with its top inside in the others (None)."""
    d = len(ends)
    x = np.random.default_rng(seed).random((40 * d, d))
    y = sum(-2 * (x[:, k] - 0.4) ** 2 if end is None else (2 * end - 1) * x[:, k] for k, end in enumerate(ends))
    gp = GaussianProcess(kernel, np.full(d, 2.0), 10.0, 1e-4)
    gp.fit(x, y)
    point, index, value = Acquisition.upper_confidence_bound(gp, 0.0).maximize(cube(d), seed)
    assert index is None and value == pytest.approx(gp.predict(point[None])[0][0], rel=1e-9)
    # Between rows the posterior mean may turn just before a face although f does not.
    corner = np.array([p if end is None else end for end, p in zip(ends, point, strict=True)])
    gradient = gp.predict_gradient(corner)[2]
    assume(all(end is None or (2 * end - 1) * slope > 0 for end, slope in zip(ends, gradient, strict=True)))
    for end, p in zip(ends, point, strict=True):
        assert p == end if end is not None else abs(p - 0.4) < 0.1


@smooth
def test_the_maximum_beats_a_grid(kernel):
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
    box = bl.Space({"i": bl.Integer(3, 9), "c": ["u", "v", "w"], "j": bl.Integer(1, 4, log=True)}).domain()
    low = np.log([1, 2, 3, 4]) / np.log(4)
    members = np.array([[i / 6, *one, j] for i in range(7) for one in np.eye(3) for j in low])
    for acquisition in acquisitions(gp):
        values = acquisition(members)
        point, index, value = acquisition.maximize(box)
        assert index is None and value == pytest.approx(values.max(), rel=1e-9)
        assert np.abs(members - point).max(axis=1).min() < 1e-12
        point, index, value = acquisition.maximize(Domain.candidates(members))
        assert index == values.argmax() and np.array_equal(point, members[index]) and value == values.max()


# What is refused, and what then stays the same.


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
        lambda gp: gp.append(X[:, :1], Y),
        lambda gp: gp.append(X[:, :0], Y),
        lambda gp: gp.append(X, Y[:4]),
        lambda gp: gp.append(X[:0], Y),
        lambda gp: gp.append(with_nan(X), Y),
        lambda gp: gp.append(X, with_nan(Y)),
        lambda gp: gp.predict(X[:, :1]),
        lambda gp: gp.predict(with_nan(X)),
        lambda gp: gp.predict_gradient(X[0, :1]),
        lambda gp: gp.predict_gradient(with_nan(X[0])),
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
    with pytest.raises(bl.InvalidPoint) as caught:
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
    with pytest.raises(bl.InvalidSetting, match=f"^{name}="):
        call()


@pytest.mark.parametrize("call", ["log_marginal_likelihood", "log_marginal_likelihood_gradient", "optimize"])
def test_what_needs_data(call):
    gp = GaussianProcess()
    with pytest.raises(bl.InvalidPoint, match="fit"):
        getattr(gp, call)()
    for make in (Acquisition.thompson, lambda gp: Acquisition.upper_confidence_bound(gp, 1.0)):
        with pytest.raises(bl.InvalidPoint, match="fit"):
            make(gp)


def test_arrays_of_other_types_are_no_arrays_of_doubles():
    for z in ([[0.0, 0.0]], X.astype(np.float32), X[0], X[None], "x"):
        with pytest.raises(TypeError):
            fitted().predict(z)
