"""CSV and Excel files of trials, which `add` reads, and of worklists.

Texts that a spreadsheet would execute as formulas are marked by an apostrophe; see `shown`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import PurePath
from typing import Any

from belated._core import InvalidSetting, InvalidValue, TrialRecord
from belated.optimizers.problem import Problem
from belated.optimizers.tables.cells import shown
from belated.optimizers.tables.table import imported_pandas, trial_columns

# The longest text in a cell of Excel.
_LONGEST_CELL = 32_767

# The first year of Excel's calendar.
_FIRST_YEAR = 1900


def write_csv(
    problem: Problem, records: Sequence[TrialRecord], path: Any, problem_of: Callable[[int], Problem]
) -> str | None:
    """Write trials to a CSV file, for `Optimizer.to_csv`. `problem_of` is as for `trial_columns`."""
    pandas = imported_pandas("to_csv")
    columns = _file_columns(problem, records, problem_of)
    # Lists of objects are written by their repr, which has all digits of a float.
    text: str | None = pandas.DataFrame(columns, dtype=object).to_csv(path, index=False)
    return text


def write_excel(
    problem: Problem, records: Sequence[TrialRecord], path: Any, problem_of: Callable[[int], Problem]
) -> None:
    """Write trials to an Excel file, for `Optimizer.to_excel`. `problem_of` is as for `trial_columns`."""
    check_packages("to_excel")
    columns = _file_columns(problem, records, problem_of)
    for name, cells in columns.items():
        for record, cell in zip(records, cells, strict=True):
            if isinstance(cell, str) and len(cell) > _LONGEST_CELL:
                raise InvalidValue(
                    f"trial {record.number} has a text of {len(cell)} characters in the column {name!r}, and a cell of "
                    f"Excel has at most {_LONGEST_CELL}: use to_csv"
                )
    timed = {"started_at": "started_at_utc", "finished_at": "finished_at_utc"}
    columns = {
        timed.get(name, shown(name)): [_excel_time(cell) if name in timed else _excel_number(cell) for cell in cells]
        for name, cells in columns.items()
    }
    _write_sheet(columns, path, "trials")


def write_worklist(table: Any, path: Any) -> None:
    """Write the table of `Study.worklist` to a file whose name ends with .csv or .xlsx."""
    suffix = PurePath(path).suffix.lower()
    if suffix not in (".csv", ".xlsx"):
        raise InvalidSetting(f"path={str(path)!r} is not usable: pass a name that ends with .csv or .xlsx")
    columns = {
        shown(name): [cell if isinstance(cell, datetime) else shown(cell) for cell in table[name].tolist()]
        for name in table.columns
    }
    if suffix == ".csv":
        imported_pandas("worklist").DataFrame(columns, dtype=object).to_csv(path, index=False)
        return
    check_packages("worklist")
    _write_sheet({name: list(map(_excel_number, cells)) for name, cells in columns.items()}, path, "worklist")


def check_packages(caller: str) -> None:
    """Raise ImportError if a package that writes Excel files is not installed."""
    imported_pandas(caller)
    try:
        import openpyxl  # noqa: F401
    except ImportError:
        raise ImportError(f"{caller} needs openpyxl: pip install 'belated[excel]'") from None


def _write_sheet(columns: dict[str, list[Any]], path: Any, name: str) -> None:
    table = imported_pandas(name).DataFrame(columns, dtype=object)
    table.to_excel(path, index=False, sheet_name=name, engine="openpyxl")


def _excel_time(time: datetime | None) -> Any:
    """Return a time without its time zone, or as a text if it is before the calendar of Excel."""
    if time is None:
        return None
    return time.replace(tzinfo=None) if time.year > _FIRST_YEAR else time.isoformat()


def _excel_number(cell: Any) -> Any:
    """Return a number beyond the range of Excel as a text, and other cells unchanged."""
    if isinstance(cell, float) and cell != 0.0 and not 1e-307 < abs(cell) < 1e307:
        return repr(cell)
    return cell


def _file_columns(
    problem: Problem, records: Sequence[TrialRecord], problem_of: Callable[[int], Problem]
) -> dict[str, list[Any]]:
    """Return the columns of a file."""
    columns = trial_columns(problem, records, None, True, problem_of)
    times = ("started_at", "finished_at")
    return {name: cells if name in times else [shown(cell) for cell in cells] for name, cells in columns.items()}
