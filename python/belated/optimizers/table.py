"""Conversion of trials to a pandas DataFrame and back. The DataFrame may have been stored in a CSV file.

A CSV file stores values as text. Numbers read from the file may have a rounding error in the last digit. None and the
empty string are read as missing values, and tuples are read as text. JSON, pickles and studies keep values exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from belated._core import InvalidSpace, InvalidValue, TrialRecord
from belated.optimizers.delays import Delays, InFlight
from belated.optimizers.problem import Problem
from belated.optimizers.report import TrialError, merged_attrs
from belated.optimizers.trial import Trial, utc
from belated.short_repr import short_repr
from belated.space.arguments import finite, is_table, real_number
from belated.space.dimensions import Dimension, choices_of
from belated.space.fidelity import Fidelity
from belated.space.space import Space

if TYPE_CHECKING:
    from belated.optimizers.life_cycle import LifeCycle

_STATES = ("observed", "pending", "failed", "abandoned", "stopped")

# Cells that pandas.read_csv reads as missing values, like empty cells.
_READ_AS_MISSING = frozenset(
    ["#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"]
    + ["NULL", "NaN", "None", "n/a", "nan", "null"]
)

# Number of digits of a number that a CSV file preserves. pandas may read further digits with an error.
_DIGITS = 14


def _run_prefix(space: Space) -> str:
    """Return the prefix of parameter names in the columns that contain the points that were run.

    If the space has both ``x`` and ``run_x``, the column of the parameter ``run_x`` is ``params_run_x``. Underscores
    are therefore added to the prefix until all columns have different names.
    """
    prefix = "run_"
    while any(f"{prefix}{name}" in space for name in space):
        prefix += "_"
    return prefix


def trials_dataframe(problem: Problem, records: Sequence[TrialRecord], delays: Delays | None, curves: bool) -> Any:
    """Return the trials as a DataFrame, for `Optimizer.trials_dataframe`."""
    try:
        import pandas
    except ImportError:
        raise ImportError("trials_dataframe needs pandas: pip install pandas") from None
    facts = ("number", "state", "value", "std", "cost", "duration", "suggested_at", "observed_at")
    columns: dict[str, list[Any]] = {name: [getattr(record, name) for record in records] for name in facts}
    columns["delay"] = [
        None if end is None else end - start
        for start, end in zip(columns["suggested_at"], columns["observed_at"], strict=True)
    ]
    columns["started_at"] = [utc(record.started_at) for record in records]
    columns["finished_at"] = [utc(record.finished_at) for record in records]
    columns["error"] = [None if record.error is None else str(TrialError(*record.error)) for record in records]
    if delays is not None:
        forecasts = delays._in_flight()
        for name in InFlight._fields:
            columns[name] = [getattr(forecasts.get(record.number), name, None) for record in records]
    if problem.fidelity is not None:
        columns["fidelity"] = [problem.fidelity_of(record.fidelity) for record in records]
    domain, runs = problem.domain, [record.run for record in records]
    has_runs = any(run is not None for run in runs)
    if isinstance(domain, Space):
        columns |= _columns("params_", domain, [domain.named_at(record.place) for record in records])
        if has_runs:
            points = [{} if run is None else domain.named_at(run) for run in runs]
            columns |= _columns(f"params_{_run_prefix(domain)}", domain, points)
    else:
        columns |= {"index": [record.place for record in records]} | ({"index_run": runs} if has_runs else {})
    contexts = problem.context_space
    if contexts is not None:
        columns |= _columns("context_", contexts, [contexts.named_at(list(record.context)) for record in records])
    if curves:
        rows = [dict(record.curve) for record in records]
        columns |= _columns("curve_", sorted({step for row in rows for step in row}), rows)
    attrs = [merged_attrs(record.attrs) for record in records]
    columns |= _columns("attrs_", dict.fromkeys(key for each in attrs for key in each), attrs)
    return pandas.DataFrame(columns)


def _columns(prefix: str, names: Iterable[Any], rows: Sequence[Mapping[Any, Any]]) -> dict[str, list[Any]]:
    return {f"{prefix}{name}": [row.get(name) for row in rows] for name in names}


def is_trials_table(params: Any) -> bool:
    """Return whether `params` is a table from `trials_dataframe`. False for a table that has only parameters."""
    if not is_table(params):
        return False
    columns = [str(name) for name in params.columns]
    points = any(name == "index" or name.startswith("params_") for name in columns)
    return points and {"number", "state", "value"} <= set(columns)


def add_trials_table(owner: LifeCycle[Any], table: Any) -> list[Trial]:
    """Add the trials of a table, each in its state.

    All trials are checked before the first trial is added.
    """
    problem, contexts = owner._problem, owner._problem.context_space
    cells = table.astype(object).where(table.notna(), None).to_dict("records")
    rows = [{str(name): cell for name, cell in row.items() if cell is not None} for row in cells]
    for i, row in enumerate(rows):
        if row.get("state") not in _STATES:
            raise InvalidValue(
                f"state={short_repr(row.get('state'))} in row {i} is not one of {list(_STATES)}; correct it"
            )
        if row["state"] == "observed" and "value" not in row:
            raise InvalidValue(f"row {i} is observed and has no value: fill it in, or write another state")
    trials: list[Trial] = owner.add(
        [_point(problem, row, i) for i, row in enumerate(rows)],
        [row["value"] if row["state"] == "observed" else None for row in rows],
        None if contexts is None else [_values(contexts, _part(row, "context_"), i) for i, row in enumerate(rows)],
        std=[row.get("std") for row in rows],
        cost=[row.get("cost") for row in rows],
        duration=[row.get("duration") for row in rows],
        attrs=[_part(row, "attrs_") for row in rows],
        fidelity=[_in_range(problem.fidelity, row.get("fidelity")) for row in rows],
    )
    for trial, row in zip(trials, rows, strict=True):
        for step, value in _part(row, "curve_").items():
            trial.report(value, int(step))
        if row["state"] == "failed":
            trial.fail(error=str(row["error"]) if "error" in row else None, duration=row.get("duration"))
        elif row["state"] == "abandoned":
            trial.abandon()
        elif row["state"] == "stopped":
            trial.stop()
    return trials


def _part(row: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the cells of the columns with this prefix in a dict; the keys are column names without the prefix."""
    return {name.removeprefix(prefix): cell for name, cell in row.items() if name.startswith(prefix)}


def _point(problem: Problem, row: Mapping[str, Any], i: int) -> Any:
    """Return the point that was run (not the suggested point), because the model uses the point that was run."""
    space = problem.domain
    if not isinstance(space, Space):
        index = row.get("index_run", row.get("index"))
        # pandas reads a column of integers with empty cells as floats.
        return int(index) if isinstance(index, float) and index.is_integer() else index
    prefix, cells = _run_prefix(space), _part(row, "params_")
    run = {name: cells.pop(f"{prefix}{name}") for name in space if f"{prefix}{name}" in cells}
    if run:
        # Keep names that do not belong to the space, so that the space raises an error for them.
        cells = run | {name: cell for name, cell in cells.items() if name not in space}
    return _values(space, cells, i)


def _values(space: Space, cells: Mapping[str, Any], i: int) -> dict[str, Any]:
    """Return the values in the cells of a row, by name; the cells of inactive parameters are empty."""
    values = {name: _value(space[name], cell, name, i) if name in space else cell for name, cell in cells.items()}
    # If the cell of an active parameter is empty, its value is a choice that is written as an empty cell, such as None.
    # This choice may make further parameters active.
    empty = [name for name in space if name not in cells and None in map(_as_read, choices_of(space[name]) or ())]
    for _ in empty:
        for name in empty:
            if name not in values and name in space.active_names(values):
                values[name] = _value(space[name], None, name, i)
    return values


def _as_read(value: Any) -> float | str | None:
    """Return a value as it is read from a CSV file.

    If two values have the same text in the file, this function returns equal results for them.
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


def _value(dimension: Dimension, cell: Any, name: str, i: int) -> Any:
    """Return the value of a cell.

    If a cell is not a value of the dimension, return the cell unchanged; the space later raises an error for it.
    """
    choices = choices_of(dimension)
    if choices is None:
        return _in_range(dimension, cell)
    alike = [choice for choice in choices if _as_read(choice) == _as_read(cell)]
    if len(alike) > 1:
        raise InvalidSpace(
            f"{name}={short_repr(cell)} in row {i} may be any of the choices {alike}, which print alike: "
            "keep the trials as JSON and add them as dicts, or rename choices"
        )
    return alike[0] if alike else cell


def _in_range(dimension: Dimension | Fidelity | None, cell: Any) -> Any:
    """If a rounding error moved a number out of range, return the nearest bound. Return other cells unchanged."""
    number = finite(cell)
    low, high = getattr(dimension, "low", None), getattr(dimension, "high", None)
    if number is None or low is None or high is None or low <= number <= high:
        return cell
    end = low if number < low else high
    return end if abs(number - end) <= abs(end) * 10.0**-_DIGITS else cell
