"""Stores of studies: the interface that every store has, and a function that opens the store at a URL."""

import os
from pkgutil import resolve_name

from belated._core import InvalidSetting
from belated.store.interface import Header, Record, Store, Transaction
from belated.store.urls import shown

__all__ = ["STORES", "Header", "Record", "Store", "Transaction", "open_store"]

#: Scheme of a URL → the class of its stores, as "module:class". A module is imported when its scheme is first used.
STORES = {
    "sqlite": "belated.store.sqlite:SqliteStore",
    "postgresql": "belated.store.postgres:PostgresStore",
}


def open_store(store: "str | os.PathLike[str] | Store") -> Store:
    """Open the store at a URL (``sqlite:///relative.db``, ``sqlite:////absolute.db``, ``postgresql://user@host/db``).

    A path without a scheme is the path of an SQLite file.
    """
    if isinstance(store, Store):
        return store
    if isinstance(store, os.PathLike):
        scheme, location = "sqlite", "/" + os.fspath(store)
    else:
        scheme, _, location = store.partition("://") if isinstance(store, str) and "://" in store else ("", "", "")
    if scheme not in STORES:
        urls = " or ".join(f"'{scheme}://…'" for scheme in STORES)
        raise InvalidSetting(f"store={shown(store)} is not usable: pass a URL {urls}, as in 'sqlite:///file.db'")
    opened: Store = resolve_name(STORES[scheme]).from_location(location)
    return opened
