"""The methods of `GaussianProcess` share one posterior, which they do not copy, and which several threads may read at
the same time."""

import threading
import time

import numpy as np

from belated._core import GaussianProcess


def data(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.random((n, 2))
    return x, np.sin(5.0 * x[:, 0]) + x[:, 1]


def fitted(n):
    gp = GaussianProcess(lengthscale=0.3, noise=1e-2)
    gp.fit(*data(n))
    return gp


def fastest(call, repeats=15):
    """Return the shortest duration of several calls, because other programs may slow down some of the calls."""
    durations = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        durations.append(time.perf_counter() - start)
    return min(durations)


def test_reading_does_not_copy_the_factor():
    gp = fitted(3000)
    point = np.full((1, 2), 0.4)
    # A copy of the Cholesky factor would take 50 ms.
    assert fastest(lambda: gp.n_observed) < 1e-3
    assert fastest(lambda: gp.log_marginal_likelihood()) < 10e-3
    assert fastest(lambda: gp.predict(point)) < 15e-3


def test_threads_that_fit_and_predict_see_consistent_models():
    gp = fitted(200)
    probe = data(5, seed=3)[0]
    failures = []

    def predict():
        for _ in range(200):
            mean, std = gp.predict(probe)
            if not (np.isfinite(mean).all() and (std > 0).all()):
                failures.append((mean, std))

    def fit(seed):
        for i in range(20):
            gp.fit(*data(200 + i, seed=seed))

    threads = [threading.Thread(target=predict) for _ in range(2)]
    threads += [threading.Thread(target=fit, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert gp.n_observed == 219
