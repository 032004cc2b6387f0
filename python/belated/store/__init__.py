"""Where studies are kept: the face that every store has, and the way from a URL to a store."""

import os
from reprlib import repr as short_repr

from belated._core import InvalidSetting
from belated.store.interface import Header, Record, Store, StoreError, Transaction

__all__ = ["Header", "Record", "Store", "StoreError", "Transaction", "open_store"]


def open_store(store: "str | os.PathLike[str] | Store") -> Store:
    """The store that a URL (``sqlite:///relative.db``, ``sqlite:////absolute.db``) or the path of a file names."""
    from belated.store.sqlite import SqliteStore

    if isinstance(store, os.PathLike):
        return SqliteStore(os.fspath(store))
    if not isinstance(store, str):
        if all(hasattr(store, name) for name in ("names", "create", "header", "events", "writing")):
            return store
        raise InvalidSetting(f"store={short_repr(store)} is not usable: pass 'sqlite:///file.db'")
    scheme, separator, path = store.partition(":///")
    if not separator or scheme != "sqlite":
        raise InvalidSetting(f"store={short_repr(store)} is not usable: pass 'sqlite:///file.db'")
    if not path or path == ":memory:" or "\0" in path:
        raise InvalidSetting(f"store={short_repr(store)} names no file, which a study needs to outlive its process")
    return SqliteStore(path)
