"""The evidence reached by belated's fits without priors, by scikit-learn (ten restarts) and by BoTorch; prints a table.

All libraries fit a Matern 5/2 kernel with a lengthscale for each column, within the same bounds. There are 50 data sets
of 20 to 350 rows in 1 to 7 dimensions. One function computes the evidence of the hyperparameters that each library
finds.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from belated._core import GaussianProcess

FUNCTIONS = [
    lambda x: np.sin(3 * x.sum(axis=1)),
    lambda x: np.sin(12 * x[:, 0]) + x.sum(axis=1),
    lambda x: np.exp(x[:, -1]) * np.sin(6 * x[:, -1]),
    lambda x: ((x - 0.4) ** 2).sum(axis=1),
    lambda x: np.sign(x[:, 0] - 0.5) + np.cos(4 * x).sum(axis=1),
]
NOISE = [0.0, 0.03, 0.1, 0.3, 1.0]


def data_set(number):
    """Return points in the unit cube and standardised targets."""
    rng = np.random.default_rng(number)
    n, d = int(rng.integers(20, 351)), int(rng.integers(1, 8))
    x = rng.random((n, d))
    y = FUNCTIONS[number % 5](x) + NOISE[number // 5 % 5] * rng.normal(size=n)
    return x, (y - y.mean()) / y.std()


def own(x, y):
    gp = GaussianProcess("matern52", np.ones(x.shape[1]), 1.0, 0.1)
    gp.fit(x, y)
    gp.optimize(priors=False)
    return gp.lengthscale, gp.variance, gp.noise


def of_scikit_learn(x, y):
    matern = Matern(np.ones(x.shape[1]), nu=2.5, length_scale_bounds=(1e-3, 1e3))
    kernel = ConstantKernel(1.0, (1e-6, 1e6)) * matern + WhiteKernel(0.1, (1e-8, 1e4))
    gp = GaussianProcessRegressor(kernel, alpha=0.0, n_restarts_optimizer=10, random_state=0).fit(x, y)
    scaled, noise = gp.kernel_.k1, gp.kernel_.k2.noise_level
    return scaled.k2.length_scale, scaled.k1.constant_value, noise


def of_botorch(x, y):
    import torch
    from botorch.exceptions import ModelFittingError
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.constraints import Interval
    from gpytorch.kernels import MaternKernel, ScaleKernel
    from gpytorch.likelihoods import GaussianLikelihood
    from gpytorch.means import ZeroMean
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.manual_seed(0)
    bounds = Interval(1e-3, 1e3, initial_value=1.0)
    matern = MaternKernel(nu=2.5, ard_num_dims=x.shape[1], lengthscale_constraint=bounds)
    model = SingleTaskGP(
        torch.tensor(x),
        torch.tensor(y)[:, None],
        likelihood=GaussianLikelihood(noise_constraint=Interval(1e-8, 1e4, initial_value=0.1)),
        covar_module=ScaleKernel(matern, outputscale_constraint=Interval(1e-6, 1e6, initial_value=1.0)),
        mean_module=ZeroMean(),
        outcome_transform=None,
    )
    try:
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    except ModelFittingError:
        return None
    covariance = model.covar_module
    lengthscale = covariance.base_kernel.lengthscale.detach().numpy().ravel()
    return lengthscale, covariance.outputscale.item(), model.likelihood.noise.item()


def evidence(x, y, theta):
    """Return log p(y), or -inf if theta is missing."""
    if theta is None:
        return -np.inf
    gp = GaussianProcess("matern52", *theta)
    gp.fit(x, y)
    return gp.log_marginal_likelihood()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-sets", type=int, default=50)
    parser.add_argument("--cache", help="JSON file that keeps the results of the other libraries")
    arguments = parser.parse_args()
    fits = {"belated": own, "scikit-learn": of_scikit_learn, "botorch": of_botorch}
    seconds, reached = dict.fromkeys(fits, 0.0), {name: [] for name in fits}
    kept = json.loads(Path(arguments.cache).read_text()) if arguments.cache and Path(arguments.cache).exists() else {}
    for number in range(arguments.data_sets):
        x, y = data_set(number)
        for name, fit in fits.items():
            if name != "belated" and f"{name} {number}" in kept:
                value, spent = kept[f"{name} {number}"]
                reached[name].append(value)
                seconds[name] += spent
                continue
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                theta = fit(x, y)
            spent = time.perf_counter() - start
            seconds[name] += spent
            reached[name].append(evidence(x, y, theta))
            kept[f"{name} {number}"] = reached[name][-1], spent
    if arguments.cache:
        Path(arguments.cache).write_text(json.dumps(kept))
    nats = {name: np.array(values) for name, values in reached.items()}
    best_other = np.maximum(nats["scikit-learn"], nats["botorch"])
    for name in fits:
        others = np.max([nats[other] for other in fits if other != name], axis=0)
        short = others - nats[name]
        lost = f", no result in {np.isinf(nats[name]).sum()}" if np.isinf(nats[name]).any() else ""
        below = f"more than 0.5 nat below the best other in {(short > 0.5).sum()} sets"
        print(f"{name:13} {seconds[name]:7.1f} s{lost}, {below}")
    short = best_other - nats["belated"]
    print(f"belated short of the best other: median {np.median(short):.2g}, worst {short.max():.2g} nat")
    for number in np.flatnonzero(short > 0.5):
        x, _ = data_set(number)
        found = {name: round(float(v[number]), 2) for name, v in nats.items()}
        print(f"  data set {number}: {x.shape}, {found}")


if __name__ == "__main__":
    main()
