"""CSV and Excel files of trials, which `add` reads bit for bit, and of worklists.

Texts that a spreadsheet would execute as formulas are marked by an apostrophe; see `shown`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import PurePath
from typing import Any

from belated._core import InvalidSetting, InvalidValue, TrialRecord
from belated.optimizers.cells import LONGEST_CELL, exact_choice, is_restored, shown
from belated.optimizers.problem import Problem
from belated.optimizers.report import merged_attrs
from belated.optimizers.table import EXACT, imported_pandas, run_prefix, trial_columns
from belated.space.candidates import NamedCandidates
from belated.space.dimensions import choices_of
from belated.space.space import Space

# Columns of numbers that `add` does not read.
_NOT_READ = ("suggested_at", "observed_at", "delay")

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
    _check_packages("to_excel")
    columns = _file_columns(problem, records, problem_of)
    for i, text in enumerate(columns.get(EXACT, ())):
        if text is not None and len(text) > LONGEST_CELL:
            raise InvalidValue(
                f"trial {records[i].number} has data of {len(text)} characters, and a cell of Excel has at most "
                f"{LONGEST_CELL}: use to_csv"
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
    _check_packages("worklist")
    _write_sheet({name: list(map(_excel_number, cells)) for name, cells in columns.items()}, path, "worklist")


def _check_packages(caller: str) -> None:
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
    """Return the columns of a file; the last one has the values that the others do not restore."""
    columns = trial_columns(problem, records, None, True, problem_of)
    exact: list[dict[str, Any]] = [{} for _ in records]
    for name, cells in columns.items():
        if name not in _NOT_READ and not name.startswith(("params_", "context_", "attrs_")):
            for i, cell in enumerate(cells):
                _add(exact[i], name, _exact_number(cell))
    for prefix, space, rows in _points(problem, records, problem_of):
        for name, dimension in space.items():
            choices = choices_of(dimension)
            if choices is not None and isinstance(space, NamedCandidates) and name in space.optional:
                choices = [*choices, None]  # a gap is an empty cell
            for i, row in enumerate(rows):
                if name in row:
                    entry = _exact_number(row[name]) if choices is None else exact_choice(choices, row[name])
                    _add(exact[i], f"{prefix}{name}", entry)
    for i, record in enumerate(records):
        for key, value in merged_attrs(record.attrs).items():
            if not (isinstance(value, str) and is_restored(value)):
                exact[i][f"attrs_{key}"] = value
        if record.error is not None and (record.error[0] or not is_restored(record.error[1])):
            exact[i]["error"] = record.error[:2]
        withdrawals = {"withdrawn_reason": record.withdrawal}
        for name, outcome in zip(problem.outcomes, record.outcomes, strict=True):
            withdrawals[f"withdrawn_reason_{name}"] = outcome[5]
        for column, withdrawal in withdrawals.items():
            if withdrawal is not None and withdrawal[2] is not None and not is_restored(withdrawal[2]):
                exact[i][column] = withdrawal[2]
    times = ("started_at", "finished_at")
    made = {name: cells if name in times else [shown(cell) for cell in cells] for name, cells in columns.items()}
    if any(exact):
        made[EXACT] = [json.dumps(each) if each else None for each in exact]
    return made


def _add(entries: dict[str, Any], column: str, entry: Any) -> None:
    if entry is not None:
        entries[column] = entry


def _exact_number(cell: Any) -> float | None:
    return cell if isinstance(cell, float) and not is_restored(cell) else None


def _points(
    problem: Problem, records: Sequence[TrialRecord], problem_of: Callable[[int], Problem]
) -> Iterator[tuple[str, Space, list[dict[str, Any]]]]:
    """Yield the prefix of the columns, the space, and the values by name, of contexts and of points.

    Points of earlier problems are left out.
    """
    contexts, domain = problem.context_space, problem.domain

    def is_here(number: int) -> bool:
        return problem_of(number) is problem

    if contexts is not None:
        yield (
            "context_",
            contexts,
            [contexts.named_at(list(each.context)) if is_here(each.era_of_context) else {} for each in records],
        )
    if isinstance(domain, Space):
        yield "params_", domain, [domain.named_at(each.place) if is_here(each.era) else {} for each in records]
        runs = [
            {} if each.run is None or not is_here(each.era_of_run) else domain.named_at(each.run) for each in records
        ]
        yield f"params_{run_prefix(domain)}", domain, runs
