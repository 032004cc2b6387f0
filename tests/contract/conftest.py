"""Contract tests compare logs bit for bit, so they use a constant wall-clock time."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def still(fixed_time):
    """Use a constant wall-clock time in every contract test."""
