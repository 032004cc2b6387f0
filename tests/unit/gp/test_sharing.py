"""The methods of `GaussianProcess` share one posterior: reading does not copy it, and rows added by threads are
kept."""

import threading
import time

import numpy as np
import pytest

import belated as bl
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
    """The shortest of several durations, because a busy machine lengthens the others."""
    durations = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        durations.append(time.perf_counter() - start)
    return min(durations)


def test_reading_does_not_copy_the_factor():
    gp = fitted(3000)
    point = np.full((1, 2), 0.4)
    # A copy of the factor takes 50 ms.
    assert fastest(lambda: gp.n_observed) < 1e-3
    assert fastest(lambda: gp.jitter) < 1e-3
    assert fastest(lambda: gp.log_marginal_likelihood()) < 10e-3
    assert fastest(lambda: gp.predict(point)) < 15e-3


def test_refused_rows_leave_the_model_unchanged():
    gp = fitted(50)
    x, y = data(3, seed=1)
    probe = data(10, seed=2)[0]
    before = [gp.x, gp.y, *gp.predict(probe)]
    for bad in (np.array([0.1, 1.7e308, 0.2]), y[:2]):
        with pytest.raises(bl.BelatedError):
            gp.append(x, bad)
        assert all(np.array_equal(a, b) for a, b in zip(before, [gp.x, gp.y, *gp.predict(probe)], strict=True))
    gp.append(x, y)
    assert gp.n_observed == 53


def test_rows_that_are_appended_during_a_fit_of_hyperparameters_are_kept():
    gp = fitted(500)
    worker = threading.Thread(target=gp.optimize, kwargs={"n_restarts": 8})
    worker.start()
    while worker.is_alive():
        gp.append(*data(1, seed=gp.n_observed))
        time.sleep(0.02)
    worker.join()
    appended = gp.n_observed
    x, _ = data(500)
    assert appended > 500
    assert np.array_equal(gp.x[:500], x)
    assert len(gp.y) == appended
    expected = [data(1, seed=n)[0][0] for n in range(500, appended)]
    assert np.array_equal(gp.x[500:], expected)


def test_threads_that_append_and_predict_see_consistent_models():
    gp = fitted(200)
    probe = data(5, seed=3)[0]
    failures = []

    def predict():
        for _ in range(200):
            mean, std = gp.predict(probe)
            if not (np.isfinite(mean).all() and (std > 0).all()):
                failures.append((mean, std))

    def append(seed):
        for i in range(20):
            gp.append(*data(1, seed=100 * seed + i))

    threads = [threading.Thread(target=predict) for _ in range(2)]
    threads += [threading.Thread(target=append, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert gp.n_observed == 240
