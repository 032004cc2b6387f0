"""Fixtures for tests of stores."""

import pytest

from belated import store
from tests.contract.store import memory


@pytest.fixture(params=["sqlite", "postgresql", "memory"])
def url(request, tmp_path, monkeypatch):
    """The URL of an empty store."""
    if request.param == "postgresql":
        return request.getfixturevalue("postgres").url()
    monkeypatch.setitem(store.STORES, "memory", "tests.contract.store.memory:MemoryStore")
    monkeypatch.setattr(memory, "_LOCATIONS", {})
    return f"{request.param}:///{tmp_path / 'studies.db'}"
