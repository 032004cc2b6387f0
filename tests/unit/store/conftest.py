"""Fixtures for tests of stores."""

import pytest


@pytest.fixture
def path(tmp_path):
    """The path of a file that does not exist yet."""
    return str(tmp_path / "studies.db")
