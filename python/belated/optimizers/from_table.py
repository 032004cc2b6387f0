"""Trials from a table that `trials_dataframe` returned, either directly or read from a CSV file.

A CSV file stores values as text. Numbers read from it may have a rounding error in the last digit. None and the empty
string are read as missing values, and tuples are read as text. JSON, pickles and studies are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from belated._core import BelatedError, InvalidPoint, InvalidSpace, InvalidValue
from belated.optimizers.table import run_prefix
from belated.short_repr import short_repr
from belated.space.arguments import finite, is_table, real_number
from belated.space.dimensions import Dimension, choices_of
from belated.space.fidelity import Fidelity
from belated.space.space import Space

if TYPE_CHECKING:
    from belated.optimizers.life_cycle import LifeCycle
    from belated.optimizers.trial import Trial

_STATES = ("observed", "pending", "failed", "abandoned")

# Besides the empty cell, these cells are read by pandas.read_csv as missing values.
_READ_AS_MISSING = frozenset(
    ["#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"]
    + ["NULL", "NaN", "None", "n/a", "nan", "null"]
)

# Number of digits that a CSV file preserves: pandas may read the last digits of a number with an error.
_DIGITS = 14


def is_trials_table(params: Any) -> bool:
    """Return whether `params` is a table from `trials_dataframe`; a table of only parameters is not."""
    if not is_table(params):
        return False
    columns = [str(name) for name in params.columns]
    points = any(name == "index" or name.startswith("params_") for name in columns)
    return points and {"number", "state", "value"} <= set(columns)


def add_trials_table(owner: LifeCycle[Any], table: Any) -> list[Trial]:
    """Add the trials of a table, each in its state.

    All trials are checked before the first one is added.
    """
    problem, columns = owner._problem, [str(name) for name in table.columns]
    cells = table.astype(object).where(table.notna(), None).to_dict("records")
    rows = [{str(name): cell for name, cell in row.items() if cell is not None} for row in cells]
    states = [_state(row, i) for i, row in enumerate(rows)]
    params: Any
    if isinstance(problem.domain, Space):
        params = _points(problem.domain, columns, rows)
    elif "index" in columns:
        params = [_index(row, i) for i, row in enumerate(rows)]
    else:
        raise InvalidPoint("the table has no column 'index': it identifies the candidates; keep the column")
    context: Any = None
    if problem.context_space is not None:
        space = problem.context_space
        _check_columns(columns, "context_", [f"context_{name}" for name in space], space.point_error)
        context = [_read_space(space, row, "context_", i) for i, row in enumerate(rows)]
    values = [
        _value(row, i) if state == "observed" else None for i, (row, state) in enumerate(zip(rows, states, strict=True))
    ]
    stds, costs = ([_number(row.get(name), name, i) for i, row in enumerate(rows)] for name in ("std", "cost"))
    attrs = [{name[6:]: cell for name, cell in row.items() if name.startswith("attrs_")} for row in rows]
    fidelities = [_in_range(problem.fidelity, row.get("fidelity")) for row in rows]
    trials: list[Trial] = owner.add(params, values, context, std=stds, cost=costs, attrs=attrs, fidelity=fidelities)
    for trial, state, row in zip(trials, states, rows, strict=True):
        if state == "failed":
            trial.fail(error=str(row["error"]) if "error" in row else None)
        elif state == "abandoned":
            trial.abandon()
    return trials


def _check_columns(columns: list[str], prefix: str, names: list[str], error: type[BelatedError]) -> None:
    """Raise an error unless the columns with this prefix are exactly `names`."""
    missing = [name for name in names if name not in columns]
    unknown = [name for name in columns if name.startswith(prefix) and name not in names]
    wrong = [f"{kind} {those}" for kind, those in (("misses", missing), ("has unknown", unknown)) if those]
    if wrong:
        raise error(f"the table {' and '.join(wrong)}: its columns must be {names}; rename or drop columns")


def _state(row: Mapping[str, Any], i: int) -> str:
    state = row.get("state")
    if state not in _STATES:
        raise InvalidValue(f"state={short_repr(state)} in row {i} is not one of {list(_STATES)}; correct it")
    return str(state)


def _value(row: Mapping[str, Any], i: int) -> float | None:
    if "value" not in row:
        raise InvalidValue(f"row {i} is observed and has no value: fill it in, or write another state")
    return _number(row["value"], "value", i)


def _number(cell: Any, column: str, i: int) -> float | None:
    number = finite(cell)
    if number is None and cell is not None:
        raise InvalidValue(f"{column}={short_repr(cell)} in row {i} is not a finite number; correct or drop it")
    return number


def _points(space: Space, columns: list[str], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return for each row the params of the point that was run, because the model uses this point."""
    prefix, names = run_prefix(space), [f"params_{name}" for name in space]
    run_names = [f"{prefix}{name}" for name in space]
    has_runs = any(name in columns for name in run_names)
    _check_columns(columns, "params_", names + run_names * has_runs, InvalidPoint)
    return [
        _read_space(space, row, prefix if any(name in row for name in run_names) else "params_", i)
        for i, row in enumerate(rows)
    ]


def _index(row: Mapping[str, Any], i: int) -> int:
    """Return the index of the candidate that was run."""
    number = _number(row.get("index_run", row.get("index")), "index", i)
    if number is None or not number.is_integer():
        raise InvalidPoint(f"index={number} in row {i} is not an integer; correct it")
    return int(number)


def _read_space(space: Space, row: Mapping[str, Any], prefix: str, i: int) -> dict[str, Any]:
    """Return the values by name in the cells of a row; the cells of inactive parameters are empty."""
    cells = {name: row[f"{prefix}{name}"] for name in space if f"{prefix}{name}" in row}
    values = {name: _read_cell(space[name], cell, f"{prefix}{name}", i) for name, cell in cells.items()}
    # An empty cell of an active parameter stands for a choice that is written as an empty cell, such as None. This
    # choice may make further parameters active.
    empty = [name for name in space if name not in cells and None in map(_as_read, choices_of(space[name]) or ())]
    for _ in empty:
        for name in empty:
            if name not in values and name in space.active_names(values):
                values[name] = _read_cell(space[name], None, f"{prefix}{name}", i)
    return values


def _as_read(value: Any) -> float | str | None:
    """Return a value as it is read from a CSV file.

    Values that have the same text in the file give equal results.
    """
    text = "" if value is None else str(value)
    if text == "" or text in _READ_AS_MISSING:
        return None
    if text.lower() in ("true", "false"):
        return text.lower()
    number = real_number(value)
    if number is None:
        try:
            number = float(text)
        except ValueError:
            return text
    return float(f"{number:.{_DIGITS}g}")


def _read_cell(dimension: Dimension, cell: Any, column: str, i: int) -> Any:
    """Return the value of a cell.

    A cell that is not a value of the dimension is returned unchanged, because the space reports the error.
    """
    choices = choices_of(dimension)
    if choices is None:
        return _in_range(dimension, cell)
    alike = [choice for choice in choices if _as_read(choice) == _as_read(cell)]
    if len(alike) > 1:
        raise InvalidSpace(
            f"{column}={short_repr(cell)} in row {i} may be any of the choices {alike}, which print alike: "
            "keep the trials as JSON and add them as dicts, or rename choices"
        )
    return alike[0] if alike else cell


def _in_range(dimension: Dimension | Fidelity | None, cell: Any) -> Any:
    """Return the nearest bound for a number that a rounding error moved out of range; return other cells unchanged."""
    number = finite(cell)
    low, high = getattr(dimension, "low", None), getattr(dimension, "high", None)
    if number is None or low is None or high is None or low <= number <= high:
        return cell
    end = low if number < low else high
    return end if abs(number - end) <= abs(end) * 10.0**-_DIGITS else cell
