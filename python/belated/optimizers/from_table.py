"""Trials from a table as `trials_dataframe` makes it, in memory or back from a CSV file.

A CSV file keeps what a value prints as, not what it is: numbers come back with rounding in the last digit, None and the
empty string as missing, lists as their text. Exact round trips are those of JSON, pickles and studies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from belated._core import BelatedError, InvalidPoint, InvalidSpace, InvalidValue
from belated.optimizers.table import run_prefix
from belated.short_repr import short_repr
from belated.space.activity import choices_of, is_active
from belated.space.arguments import finite, is_table, real_number
from belated.space.dimensions import Dimension
from belated.space.fidelity import Fidelity
from belated.space.space import Space

if TYPE_CHECKING:
    from belated.optimizers.life_cycle import LifeCycle
    from belated.optimizers.trial import Trial

_STATES = ("observed", "pending", "failed", "abandoned")

# What pandas.read_csv takes for a missing value, besides the empty cell.
_READ_AS_MISSING = frozenset(
    ["#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"]
    + ["NULL", "NaN", "None", "n/a", "nan", "null"]
)

# Digits that survive a file: pandas reads quickly rather than exactly.
_DIGITS = 14


def is_trials_table(params: Any) -> bool:
    """Whether this is a table as `trials_table` makes it, and not one of parameters alone."""
    if not is_table(params):
        return False
    columns = [str(name) for name in params.columns]
    points = any(name == "index" or name.startswith("params_") for name in columns)
    return points and {"number", "state", "value"} <= set(columns)


def add_trials_table(owner: LifeCycle[Any], table: Any) -> list[Trial]:
    """Add the trials of a table, each in the state that it has there; all are checked before the first is added."""
    domain, contexts = owner.domain_, owner.context_space_
    rows = [{str(name): cell for name, cell in row.items() if not _missing(cell)} for row in table.to_dict("records")]
    columns = [str(name) for name in table.columns]
    states = [_state(row, i) for i, row in enumerate(rows)]
    if isinstance(domain, Space):
        space = domain
        _check_columns(space, columns, "params_", InvalidPoint, run_prefix(space))
        params: Any = [_params(space, row, i) for i, row in enumerate(rows)]
    else:
        if "index" not in columns:
            raise InvalidPoint("the table has no column 'index': candidates are found by it; keep the column")
        params = [_index(row, i) for i, row in enumerate(rows)]
    context: Any = None
    if contexts is not None:
        _check_columns(contexts, columns, "context_", contexts.point_error)
        context = [_read_space(contexts, row, "context_", i) for i, row in enumerate(rows)]
    values = [_value(row, state, i) for i, (row, state) in enumerate(zip(rows, states, strict=True))]
    stds, costs = (
        [_number(row[fact], fact, i) if fact in row else None for i, row in enumerate(rows)] for fact in ("std", "cost")
    )
    attrs = [_attrs(row) for row in rows]
    declared = owner._problem.fidelity
    fidelities = [row.get("fidelity") if declared is None else _in_range(declared, row.get("fidelity")) for row in rows]
    trials: list[Trial] = owner.add(params, values, context, std=stds, cost=costs, attrs=attrs, fidelity=fidelities)
    for trial, state, row in zip(trials, states, rows, strict=True):
        if state == "failed":
            trial.fail(error=str(row["error"]) if "error" in row else None)
        elif state == "abandoned":
            trial.abandon()
    return trials


def _check_columns(
    space: Space, columns: list[str], prefix: str, error: type[BelatedError], optional: str | None = None
) -> None:
    """Refuses a table whose columns are not those of the space; those that begin with `optional` may be missing."""
    names = [f"{prefix}{name}" for name in space]
    known = names if optional is None else names + [f"{optional}{name}" for name in space]
    missing = [name for name in names if name not in columns]
    unknown = [name for name in columns if name.startswith(prefix) and name not in known]
    wrong = [f"{kind} {those}" for kind, those in (("misses", missing), ("has unknown", unknown)) if those]
    if wrong:
        raise error(f"the table {' and '.join(wrong)}: its columns must be {names}; rename or drop columns")


def _state(row: Mapping[str, Any], i: int) -> str:
    state = row.get("state")
    if state not in _STATES:
        raise InvalidValue(f"state={short_repr(state)} in row {i} is not one of {list(_STATES)}; correct it")
    return str(state)


def _value(row: Mapping[str, Any], state: str, i: int) -> float | None:
    if state != "observed":
        return None
    if "value" not in row:
        raise InvalidValue(f"row {i} is observed and has no value: fill it in, or write another state")
    return _number(row["value"], "value", i)


def _number(cell: Any, column: str, i: int) -> float:
    number = finite(cell)
    if number is None:
        raise InvalidValue(f"{column}={short_repr(cell)} in row {i} is not a finite number; correct or drop it")
    return number


def _params(space: Space, row: Mapping[str, Any], i: int) -> dict[str, Any]:
    """Where the trial of a row was run, which is what the model learns from."""
    prefix = run_prefix(space)
    was_run_elsewhere = any(f"{prefix}{name}" in row for name in space)
    return _read_space(space, row, prefix if was_run_elsewhere else "params_", i)


def _index(row: Mapping[str, Any], i: int) -> int:
    """As `_params`, of a candidate."""
    number = _number(row.get("index_run", row.get("index")), "index", i)
    if not number.is_integer():
        raise InvalidPoint(f"index={number} in row {i} is not an integer; correct it")
    return int(number)


def _read_space(space: Space, row: Mapping[str, Any], prefix: str, i: int) -> dict[str, Any]:
    """Values by name from the cells of a row; empty ones are left out, as of parameters that are not active."""
    cells = {name: row[f"{prefix}{name}"] for name in space if f"{prefix}{name}" in row}
    values = {name: _read_cell(space[name], cell, f"{prefix}{name}", i) for name, cell in cells.items()}
    # An empty cell of an active parameter may be a choice that reads as empty; others may depend on it in turn.
    empty = [name for name in space if name not in cells and _is_missing_choice(space[name])]
    for _ in empty:
        for name in empty:
            if name not in values and is_active(space, name, values):
                values[name] = _read_cell(space[name], None, f"{prefix}{name}", i)
    return values


def _attrs(row: Mapping[str, Any]) -> dict[str, Any]:
    cells = {name.removeprefix("attrs_"): cell for name, cell in row.items() if name.startswith("attrs_")}
    return {key: cell.item() if hasattr(cell, "item") else cell for key, cell in cells.items()}


# Cells.


def _missing(cell: Any) -> bool:
    """Whether a cell is empty: None or one of the kinds of NaN."""
    if cell is None:
        return True
    try:
        # NaN and NaT differ from themselves; what pandas.NA answers is neither True nor False.
        return bool(cell != cell)
    except TypeError:
        return True
    except ValueError:  # an array, as a cell of a table that was never a file
        return False


def _is_missing_choice(dimension: Dimension) -> bool:
    return any(_as_read(choice) is None for choice in choices_of(dimension) or ())


def _as_read(value: Any) -> float | str | bool | None:
    """What a value is after it was written to a CSV file and read: equal for values that print alike."""
    text = "" if value is None else str(value)
    if text == "" or text in _READ_AS_MISSING:
        return None
    if text in ("True", "False", "TRUE", "FALSE", "true", "false"):
        return text.lower()
    number = real_number(value)
    if number is None:
        try:
            number = float(text)
        except ValueError:
            return text
    return float(f"{number:.{_DIGITS}g}")


def _read_cell(dimension: Dimension, cell: Any, column: str, i: int) -> Any:
    """The value that a cell stands for; what it cannot be is left to the space to refuse."""
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


def _in_range(dimension: Dimension | Fidelity, cell: Any) -> Any:
    """A number that lies outside of the range by no more than the rounding of a file, moved to its end."""
    number = finite(cell)
    low, high = getattr(dimension, "low", None), getattr(dimension, "high", None)
    if number is None or low is None or high is None:
        return cell
    for end in (low, high):
        if number != end and abs(number - end) <= abs(end) * 10.0**-_DIGITS and not low <= number <= high:
            return end
    return cell
