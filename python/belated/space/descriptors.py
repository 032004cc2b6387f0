"""Descriptors of choices: reading tables, and the vectors that the model uses."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from belated._core import InvalidSpace
from belated.short_repr import short_repr
from belated.space.arguments import is_table, one_line, real_number
from belated.warn import warn

#: For each choice, the numbers that describe it, by name.
Descriptors: TypeAlias = list[dict[str, float]]

#: The largest number of entries of a vector. Few results do not determine distances in more directions.
_MOST_COMPONENTS = 5

# The largest number of descriptors that the repr of a dimension shows.
_MOST_SHOWN = 40

# Numbers of a column are equal if they differ by less than this share of the largest.
_ROUNDING = 1e-12

_FORMS = "pass a mapping of choice → {name: number}, a DataFrame indexed by choice, or an array of shape (choices, k)"


def read_descriptors(given: Any, options: Sequence[Any], find: Callable[[Any], int | None], call: str) -> Descriptors:
    """Return the descriptors of each choice, without columns that do not distinguish the choices.

    One warning names the columns that are dropped, and the columns with missing entries, which are replaced by the mean
    of the column. `find` returns the position of a choice, and `call` is the user's declaration, for messages.
    """

    def refuse(message: str) -> InvalidSpace:
        return InvalidSpace(f"the descriptors of {call} {message}")

    if is_table(given) and not hasattr(given, "index"):
        raise refuse("are a table without an index of choices: pass a mapping of choice → {name: number}")
    if is_table(given):
        names = [str(name) for name in given.columns]
        rows = _in_order(given.index, list(given.to_numpy(dtype=object)), options, find, refuse)
    else:
        if isinstance(given, Mapping):
            rows = _in_order(given, list(given.values()), options, find, refuse)
        else:
            rows = _rows_of(given)
        if len(rows) != len(options):
            raise refuse(f"are {one_line(given)}, with {len(rows)} rows for {len(options)} choices: {_FORMS}")
        names, rows = _named(rows, options, refuse)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise refuse(f"have the column {twice!r} twice: give each column once")
    if len(options) == 1:
        return [{}]
    kept: dict[str, list[float]] = {}
    dropped: dict[str, list[str]] = {"text": [], "equal": [], "empty": []}
    filled: list[str] = []
    for k, name in enumerate(names):
        column = [_cell(row[k]) for row in rows]
        if None in column:
            dropped["text"].append(name)
            continue
        numbers = np.array(column, dtype=float)
        for i in np.flatnonzero(np.isinf(numbers))[:1]:
            raise refuse(f"have {name!r} = {numbers[i]} for {short_repr(options[i])}: pass finite numbers")
        is_missing = np.isnan(numbers)
        if is_missing.all():
            dropped["empty"].append(name)
            continue
        scale = np.nanmax(np.abs(numbers)) or 1.0
        scaled = numbers / scale
        if np.nanmax(scaled) - np.nanmin(scaled) <= _ROUNDING:
            dropped["equal"].append(name)
            continue
        if is_missing.any():
            filled.append(name)
            numbers[is_missing] = np.nanmean(scaled) * scale
        kept[name] = numbers.tolist()
    _warn(call, dropped, filled, len(names))
    return [{name: column[i] for name, column in kept.items()} for i in range(len(options))]


def _cell(value: Any) -> float | None:
    """Return a cell as a number: NaN if the cell is missing, None if it does not contain a number."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return math.nan
    return float(value) if isinstance(value, (bool, np.bool_)) else real_number(value)


def _in_order(
    choices: Any,
    rows: list[Any],
    options: Sequence[Any],
    find: Callable[[Any], int | None],
    refuse: Callable[[str], InvalidSpace],
) -> list[Any]:
    """Return the rows in the order of the choices."""
    found: dict[int, Any] = {}
    for choice, row in zip(choices, rows, strict=True):
        place = find(choice)
        if place is None:
            raise refuse(f"have {short_repr(choice)}, which is not one of the choices: leave it out, or add the choice")
        if place in found:
            raise refuse(f"have {short_repr(choice)} twice: give each choice once")
        found[place] = row
    missing = [option for place, option in enumerate(options) if place not in found]
    if missing:
        raise refuse(f"miss {short_repr(missing)}: give numbers for every choice, or NaN where unknown")
    return [found[place] for place in range(len(options))]


def _rows_of(given: Any) -> list[Any]:
    """Return the rows of an array or a list; an empty list for other objects."""
    if isinstance(given, (str, bytes)):
        return []
    try:
        return list(given)
    except TypeError:
        return []


def _named(
    rows: list[Any], options: Sequence[Any], refuse: Callable[[str], InvalidSpace]
) -> tuple[list[str], list[list[Any]]]:
    """Return the names of the descriptors, and the rows as lists in the order of the names.

    The entries of a list have the names "0", "1", …. A name that a mapping lacks has a missing entry.
    """
    if all(isinstance(row, Mapping) for row in rows):
        names = list(dict.fromkeys(name for row in rows for name in row))
        return [str(name) for name in names], [[row.get(name) for name in names] for row in rows]
    for option, row in zip(options, rows, strict=True):
        if isinstance(row, (str, bytes, Mapping)) or not (hasattr(row, "__len__") and hasattr(row, "__getitem__")):
            raise refuse(f"have {one_line(row)} for {short_repr(option)}: {_FORMS}")
    lengths = [len(row) for row in rows]
    if len(set(lengths)) > 1:
        raise refuse(f"have {min(lengths)} numbers for one choice and {max(lengths)} for another: give equally many")
    return [str(k) for k in range(lengths[0])], [list(row) for row in rows]


def _warn(call: str, dropped: dict[str, list[str]], filled: list[str], n: int) -> None:
    """Warn about columns that are dropped or filled."""
    kinds = {"text": "do not contain numbers", "equal": "are equal for all choices", "empty": "are empty"}
    parts = [f"{short_repr(names)} {kinds[kind]}" for kind, names in dropped.items() if names]
    n_dropped = sum(map(len, dropped.values()))
    said = []
    if n_dropped:
        rest = "; the choices are treated as without descriptors" if n_dropped == n else ""
        said.append(f"{n_dropped} of {n} columns are dropped, because {' and '.join(parts)}{rest}")
    if filled:
        said.append(f"missing entries of {short_repr(filled)} are replaced by the mean")
    if said:
        warn(f"descriptors of {call}: {'; '.join(said)}")


class _Many:
    """The repr of a large table in the repr of a dimension."""

    def __init__(self, n: int, k: int) -> None:
        self.n, self.k = n, k

    def __repr__(self) -> str:
        return f"<{self.k} numbers for each of {self.n} choices>"


def written(descriptors: Descriptors | None) -> Any:
    """Return an object whose repr shows the descriptors. A large table is shown by its size."""
    if descriptors is None or sum(map(len, descriptors)) <= _MOST_SHOWN:
        return descriptors
    return _Many(len(descriptors), len(descriptors[0]))


def vectors(descriptors: Descriptors) -> NDArray[np.float64] | None:
    """Return the vectors z of the choices, shape (choices, components), or None if they do not help.

    The vectors are the first principal components of the standardized columns. They are scaled such that the mean
    square distance between two random choices equals 2 − 2/n, as between the one-hot columns of n choices. Therefore
    the same priors of lengthscales apply. Vectors do not help if there are only two choices, which have one distance.
    """
    n = len(descriptors)
    if n <= 2 or not descriptors[0]:
        return None
    # The order of the columns matters by rounding errors alone. In a fixed order, equal tables have equal vectors.
    columns = np.array([[row[name] for name in sorted(row)] for row in descriptors])
    columns = columns / np.abs(columns).max(axis=0)
    columns = columns - columns.mean(axis=0)
    columns = columns / np.abs(columns).max(axis=0)
    columns = columns / columns.std(axis=0)
    u, s, _ = np.linalg.svd(columns, full_matrices=False)
    k = min(_MOST_COMPONENTS, n - 1, int((s > 1e-9 * s[0]).sum()))
    z: NDArray[np.float64] = u[:, :k] * s[:k]
    return z * math.sqrt((1.0 - 1.0 / n) * n / float(np.square(z).sum()))
