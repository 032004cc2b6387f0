"""Fill in arguments that a docstring describes by a reference to another class, as in::

space, seed
    As for `RandomSearch`.
"""

import inspect
import re
from typing import Any

from sphinx.application import Sphinx

import belated


def described(cls: type) -> dict[str, list[str]]:
    """Return the lines that describe each argument in the docstring of a class."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w+\n-+$|\Z)", inspect.getdoc(cls) or "", re.DOTALL | re.MULTILINE)
    found: dict[str, list[str]] = {}
    for line in filled_in(section[1].rstrip().splitlines() if section else []):
        if not line.startswith(" "):
            lines = found[line.split(" : ")[0]] = []
        lines.append(line)
    return found


def filled_in(lines: list[str]) -> list[str]:
    """Return the lines of a docstring, with the lines of another class in place of each reference to it."""
    lines = list(lines)
    for i in reversed(range(1, len(lines))):
        reference = re.fullmatch(r"    As for `(\w+)`\.", lines[i])
        if reference and hasattr(belated, reference[1]):
            known = described(getattr(belated, reference[1]))
            names = lines[i - 1].split(" : ")[0].split(", ")
            lines[i - 1 : i + 1] = [line for name in names for line in known[name]]
    return lines


def change(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Change a docstring."""
    lines[:] = filled_in(lines)


def setup(app: Sphinx) -> dict[str, bool]:
    """Change docstrings before numpydoc reads them."""
    app.connect("autodoc-process-docstring", change, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
