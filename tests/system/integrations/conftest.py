"""Fixtures that tests of integrations share."""

import pytest


@pytest.fixture(scope="module")
def ray():
    """Ray on this machine, with four workers, started for the tests of a file.

    Its threads end with the file, because the processes that later tests fork would inherit locks of these threads.
    """
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    if ray.is_initialized():  # started outside of these tests
        pytest.skip("Ray was started elsewhere")
    arguments = {
        "num_cpus": 4,
        "include_dashboard": False,
        "object_store_memory": 80_000_000,
        "log_to_driver": False,
        "logging_level": "ERROR",
    }
    try:
        ray.init(**arguments)
    except Exception as error:
        # By default Ray waits 30 s for its processes, which may be too short on a busy machine.
        if "timed out during startup" not in str(error):
            raise
        ray.shutdown()
        ray.init(**arguments)
    yield ray
    ray.shutdown()
