"""The fixture that tests of the Gaussian process share."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="module")
def one_thread():
    """Small matrices on many threads spend their time waiting."""
    with threadpool_limits(1):
        yield
