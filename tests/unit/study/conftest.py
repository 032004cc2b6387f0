"""Fixtures for tests of studies."""

import pytest


@pytest.fixture
def store(tmp_path):
    """The URL of an SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'studies.db'}"
