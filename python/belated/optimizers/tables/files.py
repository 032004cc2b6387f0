"""CSV and Excel files of trials, which `add` reads, and of worklists, which `observe` reads.

Texts that a spreadsheet would execute as formulas are marked by an apostrophe; see `shown`.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from pathlib import Path, PurePath
from typing import Any

from belated._core import InvalidSetting, InvalidValue, TrialRecord
from belated.optimizers.problem import Problem
from belated.optimizers.tables.cells import AMBIGUOUS, DECIMAL, UnreadableCell, shown
from belated.optimizers.tables.table import REMARKS, imported_pandas, trial_columns

# The longest text in a cell of Excel.
_LONGEST_CELL = 32_767

# The first year of Excel's calendar.
_FIRST_YEAR = 1900


def write_csv(
    problem: Problem,
    records: Sequence[TrialRecord],
    path: Any,
    problem_of: Callable[[int], Problem],
    front: Collection[int] | None,
) -> str | None:
    """Write trials to a CSV file, for `Optimizer.to_csv`. The arguments are as for `trial_columns`."""
    pandas = imported_pandas("to_csv")
    columns = _file_columns(problem, records, problem_of, front)
    # Lists of objects are written by their repr, which has all digits of a float.
    text: str | None = pandas.DataFrame(columns, dtype=object).to_csv(path, index=False)
    return text


def write_excel(
    problem: Problem,
    records: Sequence[TrialRecord],
    path: Any,
    problem_of: Callable[[int], Problem],
    front: Collection[int] | None,
) -> None:
    """Write trials to an Excel file, for `Optimizer.to_excel`. The arguments are as for `trial_columns`."""
    check_packages("to_excel")
    columns = _file_columns(problem, records, problem_of, front)
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
    problem: Problem,
    records: Sequence[TrialRecord],
    problem_of: Callable[[int], Problem],
    front: Collection[int] | None,
) -> dict[str, list[Any]]:
    """Return the columns of a file."""
    columns = trial_columns(problem, records, None, True, problem_of, front)
    times = ("started_at", "finished_at")
    return {name: cells if name in times else [shown(cell) for cell in cells] for name, cells in columns.items()}


# The characters that separate the cells of a file, and the marks that tell its encoding.
_SEPARATORS = (";", "\t", ",")
_ENCODINGS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


def read_table(path: Any, decimal: str | None = None, sheet: str | None = None, texts: Collection[str] = ()) -> Any:
    """Read a .csv, .txt, .tsv or .xlsx file as a DataFrame of texts, whose index has the lines of the file.

    Empty cells are None. Cells of an Excel file keep their types; those without a usable content are `UnreadableCell`.

    Parameters
    ----------
    path : str or path
        The file. Cells are separated by commas, semicolons or tabs, in UTF-8, UTF-16 or Windows-1252.
    decimal : {",", "."}, optional
        The decimal separator of all numbers. Default None: the one that the file uses.
    sheet : str, optional
        The sheet of an Excel file. Default None: "worklist", "trials", or the only sheet that has cells.
    texts : collection of str, optional
        The columns whose cells are texts, such as choices, also if they look like numbers.

    Raises
    ------
    InvalidValue
        The file cannot be read, or the decimal separator is unclear.
    """
    if decimal not in (None, ",", "."):
        raise InvalidSetting(f"decimal={decimal!r} is not usable: pass ',' or '.'")
    suffix = PurePath(path).suffix.lower()
    if suffix not in (".csv", ".txt", ".tsv", ".xlsx"):
        raise InvalidSetting(f"path={str(path)!r} is not usable: pass a file whose name ends with .csv or .xlsx")
    if sheet is not None and suffix != ".xlsx":
        raise InvalidSetting(f"sheet={sheet!r} is for Excel files, and the file is {path}")
    first, rows = _sheet_rows(path, sheet) if suffix == ".xlsx" else _csv_rows(path)
    return table_of_rows(rows, path, decimal, texts, first)


def table_of_rows(
    rows: Sequence[Sequence[Any]], path: Any, decimal: str | None, texts: Collection[str], first: int = 1
) -> Any:
    """Return the rows of a file as a DataFrame; see `read_table`.

    The first row has the names of the columns, and `first` is its line. `path` is the name of the file, for messages.
    """
    pandas = imported_pandas("a table")
    names = ["" if each is None else str(each).strip() for each in rows[0]] if rows else []
    n_cells = len(names)
    while names and not names[-1] and all(len(row) < len(names) or row[len(names) - 1] is None for row in rows[1:]):
        names.pop()
    twice = [name for name, n in Counter(names).items() if n > 1 and name]
    if twice:
        raise InvalidValue(f"{path} has the column {twice[0]!r} twice: rename or remove one of them")
    for line, row in enumerate(rows[1:], first + 1):
        if (
            len(row) > n_cells
            or any(each is not None for each in row[len(names) :])
            or any(each is not None and not name for each, name in zip(row, names, strict=False))
        ):
            raise InvalidValue(
                f"{path} has a line with more cells than the first line has names (line {line}): name every column, "
                "and remove separators at the ends of lines"
            )
    body = [[*row[: len(names)], *[None] * (len(names) - len(row))] for row in rows[1:]]
    lines = [i for i, row in enumerate(body) if any(each is not None for each in row)]
    columns = {name: [body[i][k] for i in lines] for k, name in enumerate(names) if name}
    numbers = {name: cells for name, cells in columns.items() if name not in (REMARKS, *texts) and name[:6] != "attrs_"}
    if _decimal_of(path, numbers, lines, first + 1, decimal) == ",":
        columns |= {name: [_with_point(cell) for cell in cells] for name, cells in numbers.items()}
    return pandas.DataFrame(columns, dtype=object, index=[first + 1 + i for i in lines])


def _csv_rows(path: Any) -> tuple[int, list[list[Any]]]:
    """Return the number of the line with the names, and the lines from there on."""
    data = Path(path).read_bytes()
    known = [encoding for mark, encoding in _ENCODINGS.items() if data.startswith(mark)]
    try:
        text = data.decode(known[0] if known else "utf-8")
    except UnicodeDecodeError:
        try:
            text = data.decode("cp1252")
        except UnicodeDecodeError as error:
            raise InvalidValue(f"{path} is not text in UTF-8, UTF-16 or Windows-1252: {error}") from None
    if "\0" in text:
        raise InvalidValue(f"{path} is not a text file: save the table as .csv in UTF-8")
    first = 1
    separator = None
    if text[:4].lower() == "sep=" and len(text) > 4:
        separator, first = text[4], 2
        text = text.partition("\n")[2]
    line = re.sub(r'"[^"]*"', "", text.partition("\n")[0])
    if separator is None:
        separator = max(_SEPARATORS, key=line.count) if any(map(line.count, _SEPARATORS)) else ","
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True))
    except csv.Error as error:
        raise InvalidValue(f"{path} cannot be read as a table: {error}") from None
    return first, [[cell if cell.strip() else None for cell in row] for row in rows]


def _sheet_rows(path: Any, name: str | None) -> tuple[int, list[list[Any]]]:
    """Return 1 and the rows of a sheet of an Excel file."""
    check_packages("a table")
    import openpyxl

    try:
        values = openpyxl.load_workbook(path, data_only=True)
        formulas = openpyxl.load_workbook(path)
    except FileNotFoundError:
        raise
    except Exception as error:  # a damaged file may cause any error in openpyxl
        raise InvalidValue(f"{path} cannot be read as an Excel file: {error}") from None
    names = [each.title for each in values.worksheets]
    filled = [each.title for each in values.worksheets if each.max_row > 1 or each.max_column > 1]
    if name is None:
        known = [each for each in ("worklist", "trials") if each in names]
        if not known and len(filled) > 1:
            raise InvalidValue(f"{path} has the sheets {names}: pass the name of one of them as sheet=")
        name = known[0] if known else (filled or names)[0]
    if name not in names:
        raise InvalidValue(f"sheet={name!r} is not a sheet of {path}, which has {names}")
    rows = []
    for found, written in zip(values[name].iter_rows(), formulas[name].iter_rows(), strict=True):
        rows.append([_content(value, formula) for value, formula in zip(found, written, strict=True)])
    return 1, rows


def _content(value: Any, formula: Any) -> Any:
    """Return the content of a cell of a sheet."""
    if value.data_type == "e":
        return UnreadableCell(str(value.value), "the cell is an error of the spreadsheet: correct it")
    if formula.data_type == "f" and value.value is None:
        return UnreadableCell(str(formula.value), "the formula has no value: open and save the file in a spreadsheet")
    content = value.value
    return None if isinstance(content, str) and not content.strip() else content


def _decimal_of(path: Any, columns: dict[str, list[Any]], lines: list[int], first: int, decimal: str | None) -> str:
    """Return the decimal separator of a file, after checking that all of its numbers have the same one."""
    found: dict[str, str] = {}
    unclear: tuple[str, str] | None = None
    for name, cells in columns.items():
        marked: list[tuple[str, str, bool]] = []
        for i, cell in zip(lines, cells, strict=True):
            text = cell.strip() if isinstance(cell, str) else ""
            match = DECIMAL.fullmatch(text)
            if match is not None and any(map(str.isdigit, text)):
                what = f"{text!r} in line {first + i}, column {name!r}"
                marked.append((match[1], what, AMBIGUOUS.fullmatch(text) is not None))
        if marked and all(is_unclear for *_, is_unclear in marked):
            unclear = unclear or marked[0][:2]
            continue
        for mark, what, _ in marked:
            found.setdefault(mark, what)
    if decimal is not None:
        other = found.get("." if decimal == "," else ",")
        if other is not None:
            raise InvalidValue(f"{path} has the number {other}, and decimal={decimal!r}: correct one of the two")
        return decimal
    if len(found) > 1:
        raise InvalidValue(
            f"{path} has the numbers {found[',']} and {found['.']}: write all numbers with the same decimal separator"
        )
    if not found and unclear is not None:
        raise InvalidValue(
            f"{path} has the number {unclear[1]}, in which {unclear[0]!r} may separate decimals or thousands: pass "
            "decimal=',' or decimal='.'"
        )
    mark = next(iter(found), ".")
    if unclear is not None and unclear[0] != mark:
        raise InvalidValue(
            f"{path} has the numbers {found[mark]} and {unclear[1]}: write all numbers with the same decimal "
            "separator, and without separators of thousands"
        )
    return mark


def _with_point(cell: Any) -> Any:
    """Return a number that has a decimal comma with a point; return other cells unchanged."""
    is_decimal = isinstance(cell, str) and "," in cell and DECIMAL.fullmatch(cell.strip()) is not None
    return cell.replace(",", ".") if is_decimal else cell
