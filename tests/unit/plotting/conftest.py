"""Fixtures for the tests of plots."""

import sys

import pytest

import belated as bl
from tests.unit.plotting.searches import SPACE, late


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="module")
def opt():
    return late(bl.BayesOpt(SPACE, direction="minimize", seed=0))
