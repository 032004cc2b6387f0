"""Fixtures for tests with studies of Optuna."""

import warnings

import pytest


@pytest.fixture(autouse=True)
def quiet():
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        yield


@pytest.fixture
def url(tmp_path):
    """An Optuna storage in an SQLite file."""
    return f"sqlite:///{tmp_path / 'optuna.db'}"
