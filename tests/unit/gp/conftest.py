"""Settings for all tests of the Gaussian process."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="module")
def one_thread():
    """Tests use one thread, because with small matrices several threads mostly wait for each other."""
    with threadpool_limits(1):
        yield
