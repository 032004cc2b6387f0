"""Candidates with numbers that are far from all others: their scale, and the warning that names their row."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

import belated as bl
from belated.space import read_candidates


def rows(n=60, width=3, seed=0):
    return np.random.default_rng(seed).random((n, width))


def with_far(x, value=1000.0):
    """Return the rows and one more, with a wrong unit in two columns."""
    return np.vstack([x, [[value, 0.5, value]]])


def value(row):
    return float(np.sin(5 * np.asarray(row)[:3]).sum())


@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, lambda x: {f"c{i}": x[:, i] for i in range(3)}])
@pytest.mark.parametrize("far", [1000.0, -1e6, 1e300])
def test_far_rows_do_not_compress_the_others(far, form):
    with pytest.warns(bl.BelatedWarning, match="in row 60 and column") as given:
        candidates = read_candidates(form(with_far(rows(), far)))
    assert len(given) == 1
    encoded = candidates.core.encode(with_far(rows(), far))
    assert encoded.min() == 0.0 and encoded.max() == 1.0
    # The other rows keep their proportions.
    plain = read_candidates(rows()).core.encode(rows())
    for column, expected in zip(encoded[:-1].T, plain.T, strict=True):
        span = column.max() - column.min()
        assert span > 0.6
        np.testing.assert_allclose((column - column.min()) / span, expected, atol=1e-12)
    np.testing.assert_array_equal(encoded[:-1, 1], plain[:, 1])


def test_rows_without_far_numbers_are_scaled_by_their_range():
    rng = np.random.default_rng(0)
    x = np.column_stack(
        [
            rng.random(80),
            rng.normal(size=80),
            rng.exponential(size=80),
            rng.random(80) < 0.05,
            np.full(80, 7.0),
            rng.poisson(0.3, 80),
        ]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        candidates = read_candidates(x)
    low, high = x.min(0), x.max(0)
    expected = (x / 2 - low / 2) / np.where(high > low, high / 2 - low / 2, 1.0)
    np.testing.assert_array_equal(candidates.core.encode(x), expected)


def test_numbers_over_several_decades_are_scaled_by_their_ranks():
    rng = np.random.default_rng(0)
    levels = rng.choice([1.0, 10.0, 100.0, 1000.0], 80)
    x = np.column_stack([10.0 ** rng.uniform(-6, 0, 80), -np.exp(2 * rng.normal(size=80)), levels])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoded = read_candidates(x).core.encode(x)
    for column, numbers in zip(encoded.T, x.T, strict=True):
        distinct = np.unique(numbers)
        np.testing.assert_allclose(column, np.searchsorted(distinct, numbers) / (len(distinct) - 1), atol=1e-12)


def test_numbers_over_several_decades_do_not_hide_the_best_row():
    u = np.random.default_rng(1).random((200, 2))
    values = -((u - [0.3, 0.6]) ** 2).sum(1)
    optimizer = bl.BayesOpt(candidates=10.0 ** (4 * u), seed=0)
    for _ in range(20):
        trial = optimizer.suggest()
        trial.observe(values[trial.index])
    assert optimizer.best_value_ == values.max()


def test_the_warning_is_given_once_and_says_how_many_rows(tmp_path):
    x = np.vstack([rows(), [[50.0, 0.5, 0.5]], [[0.5, 0.5, -90.0]], [[0.5, 0.5, -70.0]]])
    with pytest.warns(bl.BelatedWarning, match=r"has 50.0 in row 60 and column 0, .*\(2 more rows") as given:
        study = bl.Study("far", f"sqlite:///{tmp_path}/a.db", bl.BayesOpt(candidates=x, seed=0))
    assert len(given) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study.suggest()
        again = bl.Study("far", f"sqlite:///{tmp_path}/a.db")
        pickle.loads(pickle.dumps(bl.BayesOpt(candidates=read_candidates(rows()), seed=0)))
    assert again.n_trials == 1


@pytest.mark.filterwarnings("ignore::belated.BelatedWarning")
def test_one_far_row_does_not_hinder_the_search():
    """The second route is the same search without the far row."""
    regrets = []
    for far in (None, 1000.0):
        x = rows(200, seed=1) if far is None else with_far(rows(200, seed=1), far)
        best = max(map(value, rows(200, seed=1)))
        for seed in range(3):
            optimizer = bl.BayesOpt(candidates=x, seed=seed)
            for _ in range(22):
                trial = optimizer.suggest()
                optimizer.observe(trial, value(trial.params) if trial.index < 200 else -3.0)
            regrets.append(best - optimizer.best_value_)
    assert max(regrets[3:]) <= max(regrets[:3]) + 0.05


@pytest.mark.filterwarnings("ignore::belated.BelatedWarning")
def test_measured_numbers_between_and_beyond_far_numbers_keep_their_order():
    candidates = read_candidates(np.array([*np.arange(10) / 10, 80.0])[:, None])
    numbers = np.array([-1e6, -1.0, 0.05, 0.9, 5.0, 60.0, 80.0, 200.0, 1e9])[:, None]
    assert (np.diff(candidates.core.encode(numbers)[:, 0]) > 0).all()
