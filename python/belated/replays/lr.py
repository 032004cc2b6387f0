"""Verma et al. 2022, Figure 3: logistic regression on breast cancer, six algorithms, late results.

The paper (appendix C.2) tunes the batch size in [32, 128], the learning rate in [1e-6, 1], and the decay of the
learning rate in [1e-6, 1]. The data are a 70/30 split of the Wisconsin diagnostic data. The paper does not state the
other settings, so our results may differ from the paper's. Here training is 20 epochs of mini-batch gradient descent on
the logistic loss. The learning rate in epoch e is lr / (1 + decay·e). The learning rate and the decay have log scales;
the batch size has a linear scale. Features are standardised with the means and standard deviations of the training
part. Initial weights are uniform in ±1/sqrt(30), as usual for linear layers. If the initial weights were zero, even a
tiny learning rate would give a good classifier. The split is stratified and the same in all runs. Initial weights and
shuffling are the same for all trials of a run.
"""

from functools import lru_cache, partial
from typing import Any

import numpy as np

import belated as bl
from belated.replays import verma
from belated.replays.report import Array, Report
from belated.replays.runner import Options, Replay, run_all, seed_of

EPOCHS = 20
BATCH_SIZE = (32, 128)
RATE = (1e-6, 1.0)


def make(options: Options) -> Report:
    """All runs of the six algorithms under both delay settings."""
    settings = verma.summarise(run_all(run_task, verma.SETTINGS, options, "lr"))
    return {"settings": settings, "rivals": verma.of_tasks(settings)}


def space(batch_size: tuple[int, int] = BATCH_SIZE) -> dict[str, Any]:
    """The three hyperparameters."""
    rate = bl.Real(*RATE, log=True)
    return {"batch_size": bl.Integer(*batch_size), "learning_rate": rate, "decay": rate}


def initial_points(rng: np.random.Generator, batch_size: tuple[int, int] = BATCH_SIZE) -> list[dict[str, Any]]:
    """Points drawn uniformly from the space, on its scales."""
    points = []
    for _ in range(verma.N_INITIAL):
        size = int(rng.integers(batch_size[0], batch_size[1] + 1))
        rates = {name: float(RATE[1] * (RATE[0] / RATE[1]) ** rng.random()) for name in ("learning_rate", "decay")}
        points.append({"batch_size": size, **rates})
    return points


def run_task(setting: tuple[str, str], run: int, options: Options) -> dict[str, Any]:
    """One run of one algorithm."""
    started = verma.start(setting, run, options, initial_points)
    train = partial(accuracy, seed=seed_of(options.seed, "training", run))
    return verma.run_task(setting, run, options, started, space(), train)


def accuracy(params: dict[str, Any], seed: int) -> float:
    """Train with these hyperparameters and return the validation accuracy."""
    x, y, x_validation, y_validation = breast_cancer()
    rng = np.random.default_rng(seed)
    w, b = train(x, y, int(params["batch_size"]), params["learning_rate"], params["decay"], rng)
    return float(np.mean((x_validation @ w + b > 0) == y_validation))


def train(
    x: Array, y: Array, batch_size: int, learning_rate: float, decay: float, rng: np.random.Generator
) -> tuple[Array, float]:
    """Run mini-batch gradient descent on the mean logistic loss; return the weights and the intercept."""
    n, d = x.shape
    w, b = rng.uniform(-1, 1, d) / np.sqrt(d), rng.uniform(-1, 1) / np.sqrt(d)
    for epoch in range(EPOCHS):
        rate = learning_rate / (1 + decay * epoch)
        order = rng.permutation(n)
        x_epoch, y_epoch = x[order], y[order]
        for start in range(0, n, batch_size):
            x_batch, y_batch = x_epoch[start : start + batch_size], y_epoch[start : start + batch_size]
            # ∂/∂z of the loss is σ(z) − y, where σ(z) = (1 + tanh(z/2))/2 does not overflow.
            error = 0.5 * (1 + np.tanh(0.5 * (x_batch @ w + b))) - y_batch
            w -= rate / len(y_batch) * (error @ x_batch)
            b -= rate / len(y_batch) * error.sum()
    return w, b


@lru_cache(maxsize=1)
def breast_cancer() -> tuple[Array, Array, Array, Array]:
    """Return training features and labels, and validation features and labels; features are standardised."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split

    x, y = load_breast_cancer(return_X_y=True)
    x, x_validation, y, y_validation = train_test_split(x, y.astype(float), test_size=0.3, stratify=y, random_state=0)
    center, scale = x.mean(axis=0), x.std(axis=0)
    return (x - center) / scale, y, (x_validation - center) / scale, y_validation


REPLAYS = [
    Replay("lr", __doc__, make, verma.table, verma.figure, runs=10, iterations=verma.ITERATIONS, needs=["sklearn"])
]
