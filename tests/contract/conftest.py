"""The wall clock stands still in tests of contracts, which compare logs bit for bit."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def still(fixed_time):
    """Use a fixed wall-clock time in every test."""
