"""The share of uniform draws of each member of a discrete dimension."""

import numpy as np
import pytest

import belated as bl

logarithmic = pytest.mark.parametrize(("low", "high"), [(1, 4), (2, 3), (1, 12)])


def optimizer(kind, low, high, seed, **arguments):
    return kind({"n": bl.Integer(low, high, log=True)}, seed=seed, **arguments)


def shares(low, high):
    """Integer i stands for [i − ½, i + ½], whose length counts on the logarithmic scale; the ends count in full."""
    edges = np.log(np.arange(low, high + 2) - 0.5)
    return np.diff(edges) / (edges[-1] - edges[0])


def counts(opt, low, high, n):
    drawn = [trial.params["n"] for trial in opt.suggest(n=n)]
    return np.bincount(drawn, minlength=high + 1)[low:]


@logarithmic
@pytest.mark.parametrize("seed", [0, 1])
def test_random_draws_of_a_log_integer_have_the_right_shares(low, high, seed):
    n, p = 4000, shares(low, high)
    found = counts(optimizer(bl.RandomSearch, low, high, seed), low, high, n)
    assert (np.abs(found - n * p) <= 5 * np.sqrt(n * p * (1 - p))).all()


@logarithmic
def test_an_initial_design_gives_each_log_integer_its_share_almost_exactly(low, high):
    # Every interval contains its length times n of the first n points of the golden-ratio sequence, up to a few points.
    n, p = 300, shares(low, high)
    # Points in flight may be repeated, so points of the sequence are not skipped.
    opt = optimizer(bl.BayesOpt, low, high, 0, initial=n, pending=bl.Hallucinate(repeats=True))
    drawn = [trial.params["n"] for trial in opt.suggest(n=n)]
    found = np.bincount(drawn, minlength=high + 1)[low:]
    assert (np.abs(found - n * p) <= 4).all()
