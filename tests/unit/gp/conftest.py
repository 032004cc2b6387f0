"""A fixture for the tests of the Gaussian process."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="module")
def one_thread():
    """With small matrices, most of the time of many threads is spent waiting."""
    with threadpool_limits(1):
        yield
