"""Fixtures for stores in PostgreSQL: an empty store, and a store with one study."""

import pytest

from belated.store import open_store
from tests.contract.store.test_contract import header, record


@pytest.fixture
def url(postgres):
    """The URL of a store without studies."""
    return postgres.url()


@pytest.fixture
def opened(url):
    """A store with a study "s" of two events."""
    opened = open_store(url)
    opened.create(header(), [record(0), record(1)])
    return opened
