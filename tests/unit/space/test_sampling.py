"""The share of uniform draws that each value of a discrete dimension gets."""

import numpy as np
import pytest

import belated as bl

logarithmic = pytest.mark.parametrize(("low", "high"), [(1, 4), (2, 3), (1, 12)])


def optimizer(kind, low, high, seed, **arguments):
    return kind({"n": bl.Integer(low, high, log=True)}, seed=seed, **arguments)


def shares(low, high):
    """The share of integer i is the length of [i − ½, i + ½] on the logarithmic scale. The first and the last interval
    are not truncated at the bounds."""
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
    # An interval of length l contains about l·n of the first n points of the golden-ratio sequence; the error is a few
    # points.
    n, p = 300, shares(low, high)
    # The design may repeat points in flight, so it does not skip points of the sequence.
    opt = optimizer(bl.BayesOpt, low, high, 0, initial=n, pending=bl.Hallucinate(repeats=True))
    drawn = [trial.params["n"] for trial in opt.suggest(n=n)]
    found = np.bincount(drawn, minlength=high + 1)[low:]
    assert (np.abs(found - n * p) <= 4).all()
