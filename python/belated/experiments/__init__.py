"""Replayed experiments; `belated replay NAME` runs them.

A replay is a module in `belated.experiments.replays`, found by its file name: ``sdf_synthetic.py`` is the replay
``sdf-synthetic``. The first line of its docstring is its description. The module has ``DEFAULT_RUNS``, ``NEEDS`` (the
libraries it imports), ``run(options) -> report``, ``table(report) -> str`` and ``draw(report, path)``. If it takes
options that not all replays have, it also has ``OPTIONS``.
"""

from __future__ import annotations

import ast
import pkgutil
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from belated.experiments import replays


def names() -> list[str]:
    """Return the names of all replays."""
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(replays.__path__))


def description(name: str) -> str:
    """Return one line about a replay. The line is read from the file, because an import may need missing libraries."""
    spec = find_spec(_module(name))
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"there is no replay {name!r}: pass one of {names()}")
    source = Path(spec.origin).read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]


def load(name: str) -> ModuleType:
    """Return the module of a replay."""
    return import_module(_module(name))


def _module(name: str) -> str:
    return f"{replays.__name__}.{name.replace('-', '_')}"
