"""What tests of integrations share."""

import os

import pytest


@pytest.fixture(scope="session")
def ray():
    """Ray on this machine, with four workers, started once for the tests."""
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    if ray.is_initialized():  # not by these tests
        pytest.skip("Ray was started elsewhere")
    os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
    ray.init(
        num_cpus=4,
        include_dashboard=False,
        object_store_memory=80_000_000,
        log_to_driver=False,
        logging_level="ERROR",
    )
    yield ray
    ray.shutdown()
