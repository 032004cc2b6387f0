"""Replays of published experiments; `belated replay NAME` runs them.

Each file of this folder lists its replays in ``REPLAYS``, a list of `belated.replays.runner.Replay`. A new file is
found without being registered. Libraries other than numpy are imported inside functions, so that a file can be imported
without these libraries.
"""

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from typing import Any


def found() -> Mapping[str, Any]:
    """Return name → `belated.replays.runner.Replay`, sorted by name."""
    files = [import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    listed = {replay.name: replay for file in files for replay in getattr(file, "REPLAYS", ())}
    return dict(sorted(listed.items()))
