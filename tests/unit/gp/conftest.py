"""A fixture for the tests of the Gaussian process."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="module")
def one_thread():
    """For small matrices several threads spend most of their time waiting."""
    with threadpool_limits(1):
        yield
