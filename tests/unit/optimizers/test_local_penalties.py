"""Local penalisation, PLAyBOOK and AEGiS agree with programs that are written from the papers' formulas."""

import copy

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

import belated as bl

SPACE = {"x": (-1.0, 3.0), "lr": bl.Real(1e-4, 1.0, log=True), "y": (0.0, 10.0)}
LENGTHSCALES, SIGNAL, NOISE = np.array([0.4, 0.3, 0.6]), 1.3, 0.1
GIVEN = bl.GP(
    kernel="matern52",
    lengthscale=list(LENGTHSCALES),
    signal_std=SIGNAL,
    noise_std=NOISE,
    mean="zero",
    targets="raw",
    inputs="plain",
)
PENALTIES = ["local_penalization", "playbook"]


def params(z):
    """The params of a point of the unit cube."""
    return {"x": -1.0 + 4.0 * z[0], "lr": 10 ** (-4.0 + 4.0 * z[1]), "y": 10.0 * z[2]}


def row_of(params):
    """The inverse of `params`."""
    return [(params["x"] + 1.0) / 4.0, np.log10(params["lr"]) / 4.0 + 1.0, params["y"] / 10.0]


class Model:
    """A Gaussian process with a Matérn 5/2 kernel, whose mean has a gradient."""

    def __init__(self, x, y):
        self.x = x
        self.inverse = np.linalg.inv(self.kernel(x, x) + NOISE**2 * np.eye(len(x)))
        self.alpha = self.inverse @ y

    def kernel(self, a, b):
        r = np.sqrt(5.0) * np.linalg.norm((a[:, None] - b[None]) / LENGTHSCALES, axis=2)
        return SIGNAL**2 * (1.0 + r + r**2 / 3.0) * np.exp(-r)

    def predict(self, z):
        k = self.kernel(z, self.x)
        return k @ self.alpha, np.sqrt(SIGNAL**2 - np.einsum("ij,jk,ik->i", k, self.inverse, k))

    def slope(self, z):
        """The norm of the gradient of the mean. dk/dz = -(5/3) s^2 (1 + r) exp(-r) (z - x) / l^2."""
        offsets = (z - self.x) / LENGTHSCALES**2
        r = np.sqrt(5.0) * np.linalg.norm((z - self.x) / LENGTHSCALES, axis=1)
        weights = -5.0 / 3.0 * SIGNAL**2 * (1.0 + r) * np.exp(-r) * self.alpha
        return np.linalg.norm(weights @ offsets)


def largest(f, lower, upper, rng):
    """The largest value of f in a box, by searches from the best 15 of 500 random points."""
    bounds = np.stack([lower, upper], axis=1)
    starts = lower + (upper - lower) * rng.random((500, len(lower)))
    starts = starts[np.argsort([-f(z) for z in starts])[:15]]
    options = {"ftol": 1e-15, "gtol": 1e-10}
    ends = [minimize(lambda z: -f(z), z, bounds=bounds, method="L-BFGS-B", options=options) for z in starts]
    return max(-end.fun for end in ends)


def penalties(pending, model, z, x, best, rng):
    """The penalty of every pending point x_j at z, as the two papers define it."""
    product = np.ones(len(z))
    slope = largest(model.slope, np.zeros(3), np.ones(3), rng)
    for each in x:
        mean, std = (moment[0] for moment in model.predict(each[None]))
        distance = np.linalg.norm(z - each, axis=1)
        if pending == "local_penalization":
            product *= norm.cdf((distance - (best - mean) / slope) / (std / slope))
        else:
            lower, upper = np.maximum(each - LENGTHSCALES, 0.0), np.minimum(each + LENGTHSCALES, 1.0)
            slope = largest(model.slope, lower, upper, rng)
            ratio = distance / (abs(mean - best) / slope + std / slope)
            product *= (ratio**-5.0 + 1.0) ** (-1 / 5)
    return product


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("acquisition", [bl.UCB(1.5), bl.LogEI(incumbent="best_value")], ids=["ucb", "log_ei"])
@pytest.mark.parametrize("pending", PENALTIES)
def test_penalised_acquisition_equals_an_independent_program(pending, acquisition, direction):
    rng = np.random.default_rng(3)
    x, y, busy, z = rng.random((12, 3)), rng.normal(size=12), rng.random((3, 3)), rng.random((40, 3))
    busy[1] = x[np.argmax(y)] + 0.02  # near the best observed point, so that penalties matter there
    sign = 1.0 if direction == "maximize" else -1.0
    opt = bl.BayesOpt(
        SPACE, acquisition=acquisition, pending=pending, surrogate=GIVEN, direction=direction, initial=0, seed=5
    )
    opt.add([params(row) for row in x], list(sign * y))
    opt.add([params(row) for row in busy])
    model = Model(x, y)

    def positive(z):
        mean, std = model.predict(z)
        if isinstance(acquisition, bl.UCB):
            return mean + 1.5 * std
        u = (mean - y.max()) / std
        return std * (norm.pdf(u) + u * norm.cdf(u))

    least = 0.0
    if isinstance(acquisition, bl.UCB):
        least = -largest(lambda z: -positive(z[None])[0], np.zeros(3), np.ones(3), rng)
    expected = np.log(positive(z) - least) + np.log(penalties(pending, model, z, busy, y.max(), rng))
    found = opt.acquisition_at([params(row) for row in z])
    assert (np.abs(found - expected) < 1e-9 * np.maximum(1.0, np.abs(expected))).all()
    # The search finds the maximum.
    chosen = opt.acquisition_at(copy.deepcopy(opt).suggest().params)
    assert chosen >= opt.acquisition_at([params(row) for row in rng.random((3000, 3))]).max()


@pytest.mark.parametrize("pending", PENALTIES)
def test_penalties_keep_a_batch_apart(pending):
    def spread(policy):
        opt = bl.BayesOpt(SPACE, acquisition="ucb", pending=policy, surrogate=GIVEN, initial=0, seed=1)
        rng = np.random.default_rng(0)
        opt.add([params(row) for row in rng.random((10, 3))], list(rng.normal(size=10)))
        x = np.array([row_of(trial.params) for trial in opt.suggest(n=5)])
        return min(np.linalg.norm(a - b) for i, a in enumerate(x) for b in x[:i])

    assert spread("ignore") < 1e-2 and spread(pending) > 0.1


@pytest.mark.parametrize("name", ["LP", "PLAyBOOK", "AEGiS"])
def test_only_continuous_spaces_are_supported(name):
    spaces = [
        {"space": {"x": (0.0, 1.0), "c": ["u", "v"]}},
        {"space": {"n": (1, 9)}},
        {"space": {"x": bl.Real(0.0, 1.0, step=0.1)}},
        {"space": {"c": ["u", "v"], "x": bl.Real(0.0, 1.0, when={"c": "u"})}},
        {"space": {"x": (0.0, 1.0)}, "context": {"age": (0.0, 9.0)}},
        {"candidates": np.linspace(0.0, 1.0, 9)[:, None]},
    ]
    for arguments in spaces:
        with pytest.raises(bl.errors.InvalidSetting):
            bl.algorithm(name, **arguments)
    assert bl.algorithm(name.lower(), {"x": bl.Real(1e-3, 1.0, log=True), "k": 7}, seed=0).suggest().number == 0


@pytest.mark.parametrize("pending", PENALTIES)
def test_penalties_need_a_bound_or_an_improvement(pending):
    for acquisition in ("thompson", "max_variance", "ucb_pe", "aegis"):
        with pytest.raises(bl.errors.InvalidSetting):
            bl.BayesOpt(SPACE, acquisition=acquisition, pending=pending)


def chosen_by_aegis(d, n):
    """The moments of the model, and n independent choices of AEGiS on the same data in d dimensions."""
    names = [f"x{i}" for i in range(d)]
    rng = np.random.default_rng(7)
    x, y = rng.random((4 * d, d)), rng.normal(size=4 * d)
    surrogate = bl.GP(lengthscale=0.5, signal_std=1.0, noise_std=0.1, mean="zero", targets="raw", inputs="plain")
    chosen = []
    for seed in range(n):
        opt = bl.algorithm("AEGiS", dict.fromkeys(names, (0.0, 1.0)), surrogate=surrogate, initial=0, seed=seed)
        opt.add([dict(zip(names, row, strict=True)) for row in x], list(y))
        chosen.append(list(opt.suggest().params.values()))
    return opt, names, np.array(chosen)


def moments(opt, names, z):
    return opt.predict([dict(zip(names, row, strict=True)) for row in np.clip(z, 0.0, 1.0)])


def test_aegis_maximises_the_mean_in_a_share_of_the_suggestions():
    d, n = 9, 100
    opt, names, x = chosen_by_aegis(d, n)
    means = moments(opt, names, x)[0]
    rng = np.random.default_rng(0)
    greatest = largest(lambda z: moments(opt, names, z[None])[0][0], np.zeros(d), np.ones(d), rng)
    greedy = np.abs(means - greatest) < 1e-9 * abs(greatest)
    share = 1.0 - 2.0 / np.sqrt(d)
    assert means.max() < greatest * (1.0 + 1e-9)
    assert abs(greedy.mean() - share) < 4.0 * np.sqrt(share * (1.0 - share) / n)


def test_aegis_chooses_points_of_the_pareto_set():
    n = 120
    opt, names, x = chosen_by_aegis(2, n)
    grid = np.stack(np.meshgrid(*[np.linspace(0.0, 1.0, 141)] * 2), axis=-1).reshape(-1, 2)
    (mean, std), (grid_mean, grid_std) = moments(opt, names, x), moments(opt, names, grid)
    # The margin by which the point of the grid that dominates a choice the most has a larger mean and deviation.
    margin = np.minimum(grid_mean[None] - mean[:, None], grid_std[None] - std[:, None]).max(axis=1)
    in_set = margin < 1e-3
    # Half of the choices are points of the Pareto set, and the maximum of the mean is never chosen on purpose.
    assert in_set.mean() > 0.5 - 4.0 * np.sqrt(0.25 / n)
    # The choices spread over the whole set.
    largest_std = grid_std.max()
    std_of_best = grid_std[np.argmax(grid_mean)]
    assert std[in_set].max() > largest_std - 0.1 * (largest_std - std_of_best)
    assert std[in_set].min() < std_of_best + 0.1 * (largest_std - std_of_best)
