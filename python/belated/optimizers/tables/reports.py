"""Reading a table of results back to the trials that it lists, for ``observe(table)``."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from belated._core import Action, BelatedError, InvalidPoint, InvalidSetting, InvalidValue, TrialRecord
from belated.optimizers.actions import actions_of
from belated.optimizers.log import Log
from belated.optimizers.marks import Marked, marked_values
from belated.optimizers.problem import Problem
from belated.optimizers.report import attrs_as_json, merged_attrs
from belated.optimizers.request import Carrier, Facts, ObserveArguments, Submission
from belated.optimizers.tables.cells import UnreadableCell, as_read, number_in, shown, text_in
from belated.optimizers.tables.table import REMARKS, WORKLIST_COLUMNS, TableReader, trial_columns
from belated.short_repr import short_repr
from belated.space.arguments import finite, is_gap, is_table, real_number
from belated.space.candidates import NamedCandidates
from belated.space.dimensions import choices_of
from belated.space.space import Space

# A cell with at most this number of significant digits is compared with the suggested number at this number of digits,
# because files lack trailing zeros.
_LEAST_DIGITS = 3

# The share of the rows of a table without ids that may have other points than their trials.
_MOVED_SHARE = 0.25

# The number of moved cells of a column from which values of other rows are taken for a shifted column.
_SHIFTED_CELLS = 3

# The maximum number of refused cells in a warning or an error.
_SHOWN = 5

# The share of the numbers of a column that show its number of decimals; the others may have been edited.
_ROUNDED_SHARE = 0.6

# The booleans as spreadsheets write them in German, French, Spanish, Italian and Dutch.
_LOCAL_BOOLEANS = {
    True: ("wahr", "vrai", "verdadero", "vero", "waar"),
    False: ("falsch", "faux", "falso", "onwaar"),
}

# The states in a column ``state`` that have no effect, as in a table of all trials.
_STATES_OF_ROWS = ("observed", "pending", "withdrawn", "stopped")

# A trial and an outcome; the outcome is None if outcomes are not declared.
Part: TypeAlias = tuple[int, str | None]


class RefusedCell(NamedTuple):
    """A cell of a table that was not stored, with the value that the trial has."""

    #: The label of the row in the index of the table.
    row: Any
    number: int | None
    column: str
    cell: Any
    stored: Any
    reason: str


class ChangedValue(NamedTuple):
    """A value of a table that is stored."""

    number: int
    outcome: str | None
    #: The value, or "failed" or "abandoned".
    value: float | str
    #: The value that it replaces.
    stored: float | None


@dataclass(frozen=True)
class Reported:
    """A summary of ``observe(table)``. A part is a number of a trial and an outcome (None without outcomes)."""

    #: The parts with a first value or a failure, and those whose earlier value was replaced.
    new: list[Part] = field(default_factory=list)
    corrected: list[Part] = field(default_factory=list)
    #: The values of these parts.
    changes: list[ChangedValue] = field(default_factory=list)
    #: The parts whose cells have the value that is stored or that the table had when it was written.
    unchanged: list[Part] = field(default_factory=list)
    #: The trials whose rows have no values.
    empty: list[int] = field(default_factory=list)
    #: The trials that were run at another point than the suggested point, according to the table.
    moved: list[int] = field(default_factory=list)
    #: The trials that got remarks or attributes.
    noted: list[int] = field(default_factory=list)
    refused: list[RefusedCell] = field(default_factory=list)
    #: The values that are far from what the model expects without them; see `Trial.marks`.
    marked: list[Marked] = field(default_factory=list)
    #: The columns that have cells and were not read.
    ignored: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        counts = {
            "new": len(self.new),
            "corrected": len(self.corrected),
            "unchanged": len(self.unchanged),
            "rows without values": len(self.empty),
            "run at another point": len(self.moved),
            "with new remarks or attributes": len(self.noted),
            "refused": len(self.refused),
        }
        always = ("new", "unchanged", "refused")
        lines = [", ".join(f"{n} {name}" for name, n in counts.items() if n or name in always)]
        lines += map(refusal, self.refused)
        lines += (each.text for each in self.marked)
        if self.ignored:
            lines.append(f"ignored columns: {', '.join(map(repr, self.ignored))}")
        return "\n".join(lines)


def refusal(cell: RefusedCell) -> str:
    """Return a line about a refused cell."""
    stored = "" if cell.stored is None else f" (stored: {short_repr(cell.stored)})"
    of_trial = "" if cell.number is None else f", trial {cell.number}"
    return (
        f"row {short_repr(cell.row)}{of_trial}, column {cell.column!r}: {short_repr(cell.cell)}{stored}: {cell.reason}"
    )


def check_refused(summary: Reported, on_error: str) -> str | None:
    """Return a warning about the refused cells, or None; raise an error instead if `on_error` is "raise"."""
    refused = summary.refused
    if not refused:
        return None
    listed = "; ".join(map(refusal, refused[:_SHOWN])) + ("; …" if len(refused) > _SHOWN else "")
    text = f"{len(refused)} cells of the table were refused: {listed}"
    if on_error == "raise":
        raise InvalidValue(f'{text} (nothing was changed; on_error="skip" stores the other cells)')
    return text


class Sheet(NamedTuple):
    """The problem and the trials as they were when a table was written."""

    problem: Problem
    problem_of: Callable[[int], Problem]
    records: Log
    n_trials: int
    #: Returns what carries values from this problem to the present one.
    carrier: Callable[[], Carrier | None]


class _Result(NamedTuple):
    """The present result of an outcome."""

    state: str = "pending"
    value: float | None = None
    std: float | None = None
    withdrawal: tuple[Any, ...] | None = None


def _result_of(problem: Problem, record: TrialRecord, outcome: str | None) -> _Result:
    if not problem.outcomes:
        return _Result(record.state, record.value, record.std, record.withdrawal)
    name = problem.objective if outcome is None else outcome
    for known, (state, value, std, _, _, withdrawal) in zip(problem.outcomes, record.outcomes, strict=True):
        if known == name:
            return _Result(state, value, std, withdrawal)
    return _Result()


@dataclass
class _Report:
    """The cells of the rows of a trial that are accepted."""

    sheet: Sheet
    values: dict[str | None, float] = field(default_factory=dict)
    stds: dict[str | None, float] = field(default_factory=dict)
    failed: list[str | None] = field(default_factory=list)
    abandoned: list[str | None] = field(default_factory=list)
    corrected: set[str | None] = field(default_factory=set)
    params: Any = None
    cost: float | None = None
    duration: float | None = None
    attrs: dict[str, Any] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    cells: dict[str | None, _Cell] = field(default_factory=dict)

    @property
    def is_news(self) -> bool:
        """Whether a cell is to be stored."""
        return bool(self.values or self.failed or self.abandoned or self.attrs or self.remarks)


class _Cell(NamedTuple):
    """A cell of a value: its row, its column and its content."""

    row: Any
    column: str
    content: Any


def is_empty(cell: Any) -> bool:
    """Return whether a cell has no content."""
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _digits(number: float) -> tuple[int, int]:
    """Return how many significant digits and how many decimals a number shows."""
    _, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    return len(digits), max(-int(exponent), 0)


def is_shown(cell: Any, known: Any, decimals: int | None = None, *, digits: bool = True) -> bool:
    """Return whether a cell shows a value that is known, perhaps rounded.

    A number may be rounded to `decimals` or, if `digits`, to the digits that the cell shows, of which at least three
    count.
    """
    if known is None:
        return is_empty(cell)
    if isinstance(cell, UnreadableCell):
        return False
    if isinstance(known, bool):
        # pandas reads the booleans of Excel as numbers if the column has empty cells.
        text = str(_number(cell) == 1.0 if _number(cell) in (0.0, 1.0) else cell).strip().lower()
        return text == str(known).lower() or text in _LOCAL_BOOLEANS[known]
    exact = real_number(known)
    if exact is None:
        return as_read(shown(known)) == as_read(shown(text_in(cell)))
    number = _number(cell)
    if number is None:
        return False
    gap = abs(number - exact)
    if gap <= 1e-14 * abs(exact):
        return True
    if not isinstance(known, float):
        return False
    n_digits, n_decimals = _digits(number)
    if decimals is not None and n_decimals <= decimals and gap <= 0.5000001 * 10.0**-decimals:
        return True
    largest = max(abs(number), abs(exact))
    unit = math.floor(math.log10(largest)) + 1 - max(n_digits, _LEAST_DIGITS)
    return digits and gap <= 0.5000001 * 10.0**unit


class _ReportReader(TableReader):
    """Reads the cells of a table of results, in the problem in which the table was written."""

    needs_points = False

    def __init__(self, problem: Problem, table: Any, value: Any) -> None:
        given = dict.fromkeys(("value", "std", "cost", "duration", "fidelity")) | {"value": value}
        super().__init__(problem, table, given, None, None, "pending")

    @property
    def cells(self) -> dict[str, list[Any]]:
        """The cells of the table by column; empty cells are None."""
        return self._cells

    @property
    def labels(self) -> list[Any]:
        """The labels of the rows."""
        return self._labels

    def value_columns(self) -> dict[str | None, str]:
        """Return the column of the values of each outcome."""
        if not self._problem.outcomes:
            return {None: self._columns["value"]} if "value" in self._columns else {}
        columns: dict[str | None, str] = dict(self._outcomes.items())
        if self._is_of_objective and self._problem.objective not in columns:
            columns[self._problem.objective] = "value"
        return columns

    def point_columns(self) -> dict[str, str]:
        """Return the columns of the point, each with the column of `trials_dataframe`."""
        if isinstance(self._problem.domain, Space):
            return {column: f"params_{name}" for name, column in self._point.items()}
        names = ["index", *(f"x_{k}" for k in range(self._problem.domain.width))]
        return {name: name for name in names if name in self._cells}

    def start_columns(self) -> dict[str, str]:
        """Return the columns of the context and the fidelity, each with the column of `trials_dataframe`."""
        found = {column: f"context_{name}" for name, column in self._context.items()}
        if self._problem.fidelity is not None and "fidelity" in self._columns:
            found[self._columns["fidelity"]] = "fidelity"
        return found

    def is_another_level(self, column: str, cell: Any, known: Any) -> bool:
        """Return whether a cell has another choice or level than the one that it shows when it is rounded.

        Examples are the texts "7" and "007", and levels such as 100.0 and 100.25.
        """
        domain = self._problem.domain
        if not isinstance(domain, Space) or cell == known:
            return False
        name = next(name for name, each in self._point.items() if each == column)
        choices, y, exact = choices_of(domain[name]), _number(cell), real_number(known)
        if isinstance(cell, str) and cell in (choices or ()):
            return True
        step, low = getattr(domain[name], "step", None), getattr(domain[name], "low", None)
        if y is None or exact is None:
            return False
        if choices is None and step is not None and low is not None:
            return bool(round((y - low) / step) != round((exact - low) / step))
        levels = [each for choice in choices or () if (each := real_number(choice)) is not None]
        return any(abs(y - each) < abs(y - exact) for each in levels)

    def number(self, column: str, i: int) -> Any:
        """Return the number in a cell."""
        return self._number(column, i)

    def params(self, i: int, known: Mapping[str, Any], moved: Collection[str]) -> Any:
        """Return the point of a row: the values that are known, except for the cells that were moved."""
        domain = self._problem.domain
        if not isinstance(domain, Space):
            return self._point_of(i)
        values = {name.removeprefix("params_"): each for name, each in known.items()}
        edited = [name for name, column in self._point.items() if column in moved]
        values |= {name: self._value(domain, name, self._point[name], i) for name in edited}
        values = {
            name: each
            for name, each in values.items()
            if each is not None or (name not in edited and None in (choices_of(domain[name]) or ()))
        }
        if isinstance(domain, NamedCandidates):
            return values
        # If an edited choice makes parameters inactive, their suggested values do not count.
        active = {*domain.active_names(values), *edited}
        return {name: each for name, each in values.items() if name in active}

    def std(self, outcome: str | None, i: int) -> float | None:
        """Return the standard deviation of a value."""
        if outcome is None or (outcome == self._problem.objective and "std" in self._columns):
            return self._amount("std", self._columns["std"], self._fact("std", i)) if "std" in self._columns else None
        return self._std_of(outcome, i)

    def amount_column(self, name: str) -> str | None:
        """Return the column of the cost or the duration."""
        return self._columns.get(name)

    def amount(self, name: str, i: int) -> float | None:
        """Return the cost or the duration."""
        return self._amount(name, self._columns[name], self._fact(name, i))

    def attrs_columns(self) -> dict[str, str]:
        """Return the columns of the attrs by their keys."""
        return self._attrs_columns

    def read_columns(self) -> set[str]:
        """Return the columns that are read."""
        parts = (self._point, self._run, self._outcomes, self._columns, self._attrs_columns, self._context)
        return {*self._of_outcomes, *self._curve, *(name for part in parts for name in part.values())}


def whole_cell(cell: Any) -> int | None:
    """Return the integer in a cell, which a file may have as 7, 7.0 or "7"; None if there is none."""
    number = _number(cell)
    return int(number) if number is not None and number.is_integer() and 0 <= number < 2**53 else None


def times_of(table: Any) -> list[int | None]:
    """Return the different numbers of events in the column ``as_of``; None stands for empty cells."""
    cells = table["as_of"].tolist() if "as_of" in table.columns else [None]
    found: set[int | None] = {whole_cell(cell) for cell in cells} or {None}
    return sorted(found, key=lambda at: -1 if at is None else at)


def numbers_of(table: Any) -> list[int]:
    """Return the numbers of the trials of a table."""
    cells = table["number"].tolist() if "number" in table.columns else []
    return [found for cell in cells if (found := whole_cell(cell)) is not None]


def rows_of_pending(
    table: Any, problem: Problem, problem_of: Callable[[int], Problem], log: Log, study_id: str | None
) -> list[Any]:
    """Return the labels of the rows that are trials of this log: by the study's id, or pending by number and point."""
    names = set(map(str, table.columns))
    if study_id is not None and "study_id" in names:
        return [label for label, cell in zip(table.index, table["study_id"].tolist(), strict=True) if cell == study_id]
    if "number" not in names or log.n_events() == 0:
        return []
    pending, found = set(log.numbers("pending")), []
    columns = [name for name in map(str, table.columns) if name == "index" or name.startswith(("params_", "x_"))]
    if not columns and isinstance(problem.domain, Space):
        columns = [name for name in problem.domain if name in names]
    for i, cell in enumerate(table["number"].tolist()):
        number = whole_cell(cell)
        if number in pending and number is not None and columns:
            record = log.trial(number)
            if record.left_out is not None and "left_out" in names:
                continue  # `add` refuses the row because of this column
            known = trial_columns(problem, [record], None, False, problem_of)
            cells = [(table[name].iloc[i], known.get(name, known.get(f"params_{name}", [None]))[0]) for name in columns]
            if all(is_shown(None if is_gap(cell) else cell, each) for cell, each in cells):
                found.append(table.index[i])
    return found


def check_table_options(
    trial: Any, facts: Facts, fidelity: Any, amend: Any, replicate: Any, moved: Any, dry_run: Any, on_error: Any
) -> None:
    """Check which arguments of `observe` belong to a table, and which to a single trial."""
    if on_error not in ("raise", "skip"):
        raise InvalidSetting(f'on_error={short_repr(on_error)} is not usable: pass "raise" or "skip"')
    if not is_table(trial):
        if moved or dry_run or on_error != "skip" or not isinstance(amend, (bool, np.bool_)):
            raise InvalidSetting(
                "moved, dry_run, on_error and a list of numbers as amend are for tables: pass a pandas DataFrame"
            )
        return
    single = facts._asdict() | {"fidelity": fidelity, "replicate": replicate or None}
    given = [name for name, each in single.items() if each is not None]
    if given:
        raise InvalidSetting(f"{given[0]} is for a single trial: a table has columns of these data, such as 'std'")


class Reports:
    """Reads a table of results: judges its cells, and converts those that are accepted to actions.

    Parameters
    ----------
    table : DataFrame
        The table.
    value
        The column of the values, or a dict of the columns of outcomes; None for the default names.
    sheets
        For each number of events in the column ``as_of`` (None if the cell is empty), the trials at that time.
    present, records
        The present problem and trials.
    study_id
        The id of the study; None for an optimizer.
    amend
        Whether other values replace earlier values; or the trials in which they do, even if these changed after the
        table was written.
    moved
        Whether many rows may have other points than their trials.
    """

    def __init__(
        self,
        table: Any,
        value: Any,
        sheets: Mapping[int | None, Sheet],
        present: Problem,
        records: Any,
        study_id: str | None,
        amend: bool | Collection[int],
        moved: bool,
    ) -> None:
        if "number" not in map(str, table.columns):
            raise InvalidValue(
                "the table lacks the column 'number' of the trials to which its rows belong: take the rows of a "
                "worklist, or add the rows as new trials by add(table)"
            )
        self._present, self._records, self._study_id = present, records, study_id
        self._forced = frozenset() if isinstance(amend, bool) else frozenset(amend)
        self._amend, self._moved_is_allowed = amend is True, moved
        self._sheets = sheets
        readers: dict[int, _ReportReader] = {}
        for sheet in sheets.values():
            if id(sheet.problem) not in readers:
                readers[id(sheet.problem)] = _ReportReader(sheet.problem, table, value)
        self._readers = {as_of: readers[id(sheet.problem)] for as_of, sheet in sheets.items()}
        self._first = next(iter(readers.values()))
        self._cells, self._labels = self._first.cells, self._first.labels
        self._summary = Reported()
        self._listed: set[tuple[str, Part | int]] = set()
        self._reports: dict[int, _Report] = {}
        # The different contents of the cells of each part, and the different points of the rows of each trial.
        self._contents: dict[Part, set[Any]] = {}
        self._points: dict[int, set[tuple[Any, ...]]] = {}
        # The cells of a trial as the table had them, and the trials that were pending, by the number of events.
        self._known_cells: dict[tuple[int | None, int], dict[str, Any]] = {}
        self._pending_at: dict[int | None, set[int]] = {}
        self._indices: dict[tuple[int | None, str], _Index] = {}
        self._others: dict[int | None, set[int]] = {}

    def read(self) -> tuple[list[Action], Reported]:
        """Return the actions that store the table, and the summary."""
        rows = list(self._rows())
        columns = {column for reader in self._readers.values() for column in reader.value_columns().values()}
        if not columns:
            wanted = [f"outcome_{name}" for name in self._present.outcomes] or ["value"]
            raise InvalidValue(f"the table has no column of values: it needs {' or '.join(map(repr, wanted))}")
        self._find_rounding(rows)
        for row in rows:
            self._compare_point(row, rows)
        self._check_moved(rows)
        rows = [row for row in rows if not row.is_refused]
        for row in rows:
            for outcome, (_, content) in self._contents_of(row).items():
                self._contents.setdefault((row.trial, outcome), set()).add(_plain(content))
            if row.has_values:
                moved = tuple(sorted((column, str(self._cell(column, row.i))) for column in row.moved))
                self._points.setdefault(row.trial, set()).add(moved)
        for row in rows:
            self._read_row(row)
        actions = [action for number in self._reports for action in self._actions_of(number)]
        self._list_ignored()
        return actions, self._summary

    def _cell(self, column: str, i: int) -> Any:
        cells = self._cells.get(column)
        return None if cells is None or is_empty(cells[i]) else cells[i]

    def _refuse(self, row: _Row, column: str, reason: str, stored: Any = None) -> None:
        cell = self._cell(column, row.i)
        text = reason.removesuffix(" (nothing was changed)")
        self._summary.refused.append(RefusedCell(self._labels[row.i], row.number, column, cell, stored, text))

    def _refuse_row(self, row: _Row, column: str, reason: str, stored: Any = None) -> None:
        """Refuse a cell because of which no value of the row is stored."""
        self._refuse(row, column, reason, stored)
        row.is_refused = True

    def _rows(self) -> Iterator[_Row]:
        """Yield the rows of known trials; refuse rows of other studies, and rows with cells and without a number."""
        for i in range(len(self._labels)):
            row = _Row(i)
            known = self._cell("study_id", i)
            number, as_of = self._cell("number", i), self._cell("as_of", i)
            row.has_id = known is not None and self._study_id is not None
            if row.has_id and str(_text(known)).strip() != self._study_id:
                self._refuse(row, "study_id", "the row belongs to another study, or to a study that was created again")
                continue
            if number is None:
                columns = [*self._first.value_columns().values(), "state", REMARKS]
                filled = [column for column in columns if self._cell(column, i) is not None]
                if filled:
                    self._refuse(row, filled[0], "the row lacks the number of a trial: add it by add(table)")
                continue
            row.number = whole_cell(number)
            row.at = whole_cell(as_of)
            if (as_of is not None and row.at is None) or row.at not in self._sheets:
                self._refuse(row, "as_of", "the study had fewer events, so the table is not one of its tables")
                continue
            if row.number is None or row.number >= self._sheets[row.at].n_trials:
                self._refuse(row, "number", "there is no trial with this number")
                continue
            yield row

    # Points.

    def _known(self, at: int | None, number: int) -> dict[str, Any]:
        """Return the cells of a trial as the table had them."""
        key = (at, number)
        if key not in self._known_cells:
            sheet = self._sheets[at]
            columns = trial_columns(sheet.problem, [sheet.records.trial(number)], None, False, sheet.problem_of)
            self._known_cells[key] = {name: cells[0] for name, cells in columns.items()}
        return self._known_cells[key]

    def _find_rounding(self, rows: Sequence[_Row]) -> None:
        """Find the columns whose numbers were rounded to the same number of decimals, as a spreadsheet does."""
        self._decimals: dict[str, int] = {}
        n_rounded, found = 0, {}
        columns = self._first.point_columns() | self._first.start_columns()
        columns |= {column: f"outcome_{name}" for name, column in self._first.value_columns().items() if name}
        for column, key in columns.items():
            pairs = [(_number(self._cell(column, row.i)), self._known(row.at, row.trial).get(key)) for row in rows]
            shown_as = [(y, known) for y, known in pairs if y is not None and isinstance(known, float)]
            if not shown_as:
                continue
            # Some of the cells may have been edited.
            n_needed = math.ceil(_ROUNDED_SHARE * len(shown_as))
            for decimals in sorted({_digits(y)[1] for y, _ in shown_as}, reverse=True):
                rounded = [y != known for y, known in shown_as if is_shown(y, known, decimals)]
                if len(rounded) >= n_needed:
                    found[column] = decimals
                    n_rounded += sum(rounded)
                    break
        # A single number that is rounded to one or two digits is a number that somebody typed.
        if n_rounded > 1:
            self._decimals = found

    def _moved_columns(self, row: _Row, number: int) -> Iterator[str]:
        """Yield the columns of the point whose cells differ from the suggestion of a trial."""
        known, reader = self._known(row.at, number), self._readers[row.at]
        for column, key in reader.point_columns().items():
            cell, value = self._cell(column, row.i), known.get(key)
            if cell is None:
                continue
            is_same = is_shown(cell, value, self._decimals.get(column))
            if not is_same or reader.is_another_level(column, cell, value):
                yield column

    def _compare_point(self, row: _Row, rows: Sequence[_Row]) -> None:
        """Find the cells of the point that differ, and refuse the point of another trial."""
        known = self._known(row.at, row.trial)
        columns = self._readers[row.at].point_columns()
        row.n_points = sum(self._cell(column, row.i) is not None for column in columns)
        row.moved = list(self._moved_columns(row, row.trial))
        for column, key in self._readers[row.at].start_columns().items():
            cell = self._cell(column, row.i)
            if cell is not None and not is_shown(cell, known.get(key), self._decimals.get(column)):
                reason = "the trial was started otherwise: add the row as a new trial"
                self._refuse_row(row, column, reason, known.get(key))
                return
        if not row.moved:
            return
        for number in self._near(row, rows):
            if number == row.number or next(self._moved_columns(row, number), None) is not None:
                continue
            n_known = sum(each is not None for each in map(self._known(row.at, number).get, columns.values()))
            if row.n_points > 1 or n_known <= 1:
                reason = (
                    f"the row has the point of trial {number} and the number {row.number}, as if cells were shifted"
                )
                self._refuse_row(row, row.moved[0], reason, known.get(columns[row.moved[0]]))
                return

    def _near(self, row: _Row, rows: Sequence[_Row]) -> list[int]:
        """Return the trials of which a number in the point may be the one of the row: the number that few trials have.

        The trials are those of the table, and those that were pending when it was written.
        """
        if row.at not in self._others:
            self._others[row.at] = {other.trial for other in rows if other.at == row.at} | self._pending(row.at)
        numbers, best, n_best = self._others[row.at], None, len(self._others[row.at])
        for column, key in self._readers[row.at].point_columns().items():
            y = _number(self._cell(column, row.i))
            if y is not None:
                at = (row.at, column)
                if at not in self._indices:
                    found = {number: self._known(row.at, number).get(key) for number in numbers}
                    self._indices[at] = _Index(found)
                n = self._indices[at].n_near(y, self._decimals.get(column))
                if best is None or n < n_best:
                    best, n_best = (at, y), n
        if best is None:
            return sorted(numbers)
        at, y = best
        return self._indices[at].near(y, self._decimals.get(at[1]))

    def _pending(self, at: int | None) -> set[int]:
        if at not in self._pending_at:
            sheet = self._sheets[at]
            self._pending_at[at] = {n for n in range(sheet.n_trials) if sheet.records.trial(n).state == "pending"}
        return self._pending_at[at]

    def _check_moved(self, rows: Sequence[_Row]) -> None:
        """Refuse columns that were sorted or shifted alone, and tables without ids that are probably other tables."""
        if self._moved_is_allowed:
            return
        without_id = [row for row in rows if not row.has_id]
        if without_id and not any(row.n_points for row in without_id):
            raise InvalidValue(
                "the table has neither the column 'study_id' nor the points of its trials, so its numbers cannot be "
                "checked: keep the columns of the worklist, or pass moved=True"
            )
        n_moved = sum(bool(row.moved) for row in without_id)
        if n_moved > _MOVED_SHARE * len(without_id):
            raise InvalidValue(
                f"{n_moved} of the {len(without_id)} rows without study_id have other points than the trials with "
                "these numbers: pass the table of this study or, if they were run there, moved=True (nothing changed)"
            )
        for column, key in self._first.point_columns().items():
            moved = [row for row in rows if column in row.moved and not row.is_refused]
            if len(moved) < 2:
                continue
            known = {row.i: self._known(row.at, row.trial).get(key) for row in rows}
            index, decimals = _Index(known), self._decimals.get(column)
            origins = []
            for row in moved:
                cell, y = self._cell(column, row.i), _number(self._cell(column, row.i))
                near = index.alike(cell) if y is None else index.near(y, decimals)
                found = (i for i in near if i != row.i and is_shown(cell, known[i], decimals))
                origins.append(list(islice(found, 2)))
            single = {found[0] for found in origins if len(found) == 1}
            is_permuted = single == {row.i for row in moved}
            if len(single) == len(moved) and (is_permuted or len(moved) >= _SHIFTED_CELLS):
                for row in moved:
                    reason = (
                        "the cells of this column have the suggestions of other rows, as if it was sorted or shifted: "
                        "correct it, or pass moved=True"
                    )
                    self._refuse_row(row, column, reason, known[row.i])

    # Values.

    def _contents_of(self, row: _Row) -> dict[str | None, tuple[str, Any]]:
        """Return the column and the content of the cell of each outcome: a value, or "failed" or "abandoned"."""
        found: dict[str | None, tuple[str, Any]] = {}
        reader = self._readers[row.at]
        columns = reader.value_columns()
        row.has_values = any(self._cell(column, row.i) is not None for column in columns.values())
        for name in self._sheets[row.at].problem.outcomes or (None,):
            column = columns.get(name)
            cell = None if column is None else self._cell(column, row.i)
            if cell is not None and column is not None:
                found[name] = column, _end_in(cell) or cell
                continue
            for state in ("state", f"state_{name}"):
                end = _end_in(self._cell(state, row.i))
                if end is not None and name not in found:
                    found[name] = state, end
        return found

    def _read_row(self, row: _Row) -> None:
        """Judge each cell of a row."""
        number, sheet = row.trial, self._sheets[row.at]
        record, contents = self._records.trial(number), self._contents_of(row)
        state = self._cell("state", row.i)
        end = _end_in(state)
        if state is not None and end is None and (not isinstance(state, str) or state.strip() not in _STATES_OF_ROWS):
            self._refuse(
                row, "state", "the state is not one of 'failed' and 'abandoned': correct it, or empty the cell"
            )
        if end is not None and row.has_values:
            for column, _ in contents.values():
                if column != "state":
                    self._refuse(row, column, f"the row has a value and the state {end!r}: empty one of the two cells")
            contents = {}
        report = self._reports.get(number) or _Report(sheet)
        params: Any = None
        if row.moved:
            try:
                params = self._params(row, record)
            except BelatedError as error:
                self._refuse(row, row.moved[0], str(error))
                for column, _ in contents.values():
                    self._refuse(row, column, "the point of the row is refused, so its values are not stored")
                contents = {}
        before = dict(report.values)
        for outcome, (column, content) in contents.items():
            if len(self._contents.get((number, outcome), ())) > 1:
                self._refuse(row, column, "another row of the table has another value of this trial")
                continue
            try:
                if _end_in(content) is not None:
                    self._end(row, report, outcome, column, content, record)
                else:
                    self._read_value(row, report, outcome, column, record)
            except BelatedError as error:
                self._refuse(row, column, str(error))
        if not contents and not row.has_values:
            self._summary.empty.append(number)
        if row.moved and params is not None:
            self._move(row, report, record, params, is_news=report.values != before)
        self._read_facts(row, report, record, is_news=report.values != before)
        if report.is_news:
            self._reports[number] = report

    def _params(self, row: _Row, record: TrialRecord) -> Any:
        """Return the point at which a row says that its trial was run."""
        number, reader, sheet = row.trial, self._readers[row.at], self._sheets[row.at]
        if len(self._points.get(number, ())) > 1:
            raise InvalidPoint("another row of the table has another point of this trial")
        domain, known = sheet.problem.domain, self._known(row.at, number)
        columns = reader.point_columns()
        wanted = [f"params_{name}" for name in domain] if isinstance(domain, Space) else list(columns.values())
        params = reader.params(row.i, {key: known.get(key) for key in wanted}, row.moved)
        place = domain.locate(params, measured=True)
        if isinstance(domain, NamedCandidates) and isinstance(place, list):
            texts = [name for name in domain if choices_of(domain[name]) is not None]
            if any(columns[column].removeprefix("params_") in texts for column in row.moved):
                raise InvalidPoint("the row is not a row of the candidates: correct all of its cells")
        carrier = sheet.carrier()
        stored = carrier.point(place, record) if carrier is not None else place
        row.is_stored_there = stored == record.run
        if not row.is_stored_there and row.trial not in self._forced:
            earlier = sheet.records.trial(number)
            if row.at is not None and carrier is None and record.run != earlier.run:
                raise InvalidPoint(
                    "the trial was reported at another point after the table was written: pass "
                    f"amend=[{number}] to move it"
                )
        return params

    def _move(self, row: _Row, report: _Report, record: TrialRecord, params: Any, is_news: bool) -> None:
        """Store where the trial was run: with the values of the row or, to correct it, with its earlier values."""
        number, reader = row.trial, self._readers[row.at]
        if row.is_stored_there and not is_news:
            return
        if not is_news:
            known = {name: _result_of(self._present, record, name) for name in reader.value_columns()}
            values = {name: each for name, each in known.items() if each.value is not None}
            if not values or not row.has_values:
                reason = "no value of the row is stored, and a point is stored together with a value"
                self._refuse(row, row.moved[0], reason)
                return
            if not (self._amend or number in self._forced):
                reason = "the trial was reported at another point: pass amend=True to move it"
                self._refuse(row, row.moved[0], reason)
                return
            self._keep(report, values)
        report.params = params
        self._list("moved", number)

    @staticmethod
    def _keep(report: _Report, known: Mapping[str | None, _Result]) -> None:
        """Report the earlier values again, because a report of other data needs values."""
        for name, each in known.items():
            if each.value is not None:
                report.values[name] = each.value
                report.corrected.add(name)
                if each.std is not None:
                    report.stds[name] = each.std

    def _read_facts(self, row: _Row, report: _Report, record: TrialRecord, is_news: bool) -> None:
        """Read the cost, the duration, the attrs and the remark of a row."""
        reader = self._readers[row.at]
        for name in ("cost", "duration"):
            column = reader.amount_column(name)
            if column is None or self._cell(column, row.i) is None:
                continue
            try:
                amount = reader.amount(name, row.i)
            except BelatedError as error:
                self._refuse(row, column, str(error))
                continue
            stored = getattr(record, name)
            if is_news:
                setattr(report, name, amount)
            elif amount is not None and stored != amount:
                known = {each: _result_of(self._present, record, each) for each in reader.value_columns()}
                has_value = any(each.value is not None for each in known.values())
                if has_value and (self._amend or row.trial in self._forced):
                    self._keep(report, known)
                    setattr(report, name, amount)
                else:
                    reason = f"a {name} is stored together with a value: pass amend=True to store it later"
                    self._refuse(
                        row, column, reason if has_value else f"a {name} is stored together with a value", stored
                    )
        for key, column in reader.attrs_columns().items():
            cell = self._cell(column, row.i)
            if isinstance(cell, UnreadableCell):
                self._refuse(row, column, cell.reason)
            elif cell is not None and as_read(cell) not in {as_read(each) for each in _ever(record, key)}:
                report.attrs[key] = cell.isoformat() if isinstance(cell, date) else text_in(cell)
        remark = self._cell(REMARKS, row.i) if REMARKS not in reader.read_columns() else None
        if isinstance(remark, UnreadableCell):
            self._refuse(row, REMARKS, remark.reason)
        elif remark is not None:
            report.remarks.append(str(text_in(remark)).strip())

    def _end(
        self, row: _Row, report: _Report, outcome: str | None, column: str, state: str, record: TrialRecord
    ) -> None:
        """Read that an outcome failed or was abandoned."""
        known, before = self._known_results(row, outcome, record)
        part = (row.trial, outcome)
        withdrawn = None if known.withdrawal is None else known.withdrawal[0]
        if known.state == state or (known.state == "withdrawn" and withdrawn == state):
            self._list("unchanged", part)
        elif known.value is not None and column == "state" and record.state == "pending":
            return  # the outcomes that are missing end
        elif known.value is not None:
            self._refuse(row, column, "the outcome has a value: withdraw the value first", known.value)
        elif known.state != before.state and row.trial not in self._forced:
            reason = f"the state was changed after the table was written: pass amend=[{row.trial}] to change it"
            self._refuse(row, column, reason, known.state)
        else:
            ends = report.failed if state == "failed" else report.abandoned
            if outcome not in ends:
                ends.append(outcome)
                report.cells[outcome] = _Cell(self._labels[row.i], column, self._cell(column, row.i))
                self._summary.new.append(part)

    def _list(self, name: str, each: Part | int) -> None:
        """List a part or a trial once in the summary."""
        if (name, each) not in self._listed:
            self._listed.add((name, each))
            getattr(self._summary, name).append(each)

    def _known_results(self, row: _Row, outcome: str | None, record: TrialRecord) -> tuple[_Result, _Result]:
        """Return the present result of an outcome, and its result when the table was written."""
        sheet = self._sheets[row.at]
        if outcome is not None and self._present.outcomes and outcome not in self._present.outcomes:
            raise InvalidValue("the outcome was removed from the study: its value is not stored")
        known = _result_of(self._present, record, outcome)
        if row.at is None:
            return known, known
        return known, _result_of(sheet.problem, sheet.records.trial(row.trial), outcome)

    def _read_value(self, row: _Row, report: _Report, outcome: str | None, column: str, record: TrialRecord) -> None:
        """Read a value."""
        number, reader = row.trial, self._readers[row.at]
        given = reader.number(column, row.i)
        y, part = finite(given), (number, outcome)
        if y is None:
            raise InvalidValue(f"{short_repr(given)} is not a finite number: correct it, or empty the cell")
        known, before = self._known_results(row, outcome, record)
        std = reader.std(outcome, row.i)
        is_forced, withdrawn = number in self._forced, None if known.withdrawal is None else known.withdrawal[1]
        is_unedited = before.value is not None and is_shown(y, before.value, self._decimals.get(column), digits=False)
        if known.value is None:
            # A withdrawn value is not restored.
            if (withdrawn == y or is_unedited) and not is_forced:
                self._list("unchanged", part)
                return
            if known.withdrawal != before.withdrawal and not is_forced:
                reason = "the value was withdrawn after the table was written"
                self._refuse(row, column, f"{reason}: pass amend=[{number}] to store it", withdrawn)
                return
            listed = "new"
        else:
            is_same = abs(known.value - y) <= 1e-14 * abs(y)
            if (is_same or is_unedited) and (std is None or std == known.std):
                self._list("unchanged", part)
                return
            if not is_forced and before.value != known.value:
                reason = "the trial got another value after the table was written"
                self._refuse(row, column, f"{reason}: pass amend=[{number}] to replace it", known.value)
                return
            if not is_forced and not self._amend:
                what = "std" if is_same else "value"
                self._refuse(row, column, f"the trial has another {what}: pass amend=True to replace it", known.value)
                return
            report.corrected.add(outcome)
            listed = "corrected"
        self._list(listed, part)
        if withdrawn is not None and is_forced:
            report.corrected.add(outcome)
        report.values[outcome] = y
        report.cells[outcome] = _Cell(self._labels[row.i], column, self._cell(column, row.i))
        if std is not None:
            report.stds[outcome] = std

    # Actions.

    def _actions_of(self, number: int) -> list[Action]:
        """Return the actions of a trial that the log accepts; refuse the cells of the others."""
        report, record = self._reports[number], self._records.trial(number)
        carrier, problem, time = report.sheet.carrier(), report.sheet.problem, self._present.wall_time()
        done: list[Action] = []

        def act(verb: str, trial: Any, *given: Any) -> None:
            """Read the actions, and check them in the log; the values are judged without the others of the table."""
            found = actions_of(Submission(verb, trial, None, given), problem, self._records, carrier)
            drafts = [self._records.validate(action, time, True) for action in found]
            for draft in drafts:
                marks = [] if draft is None else draft.marks
                self._summary.marked.extend(marked_values(self._present.outcomes, number, marks))
            done.extend(found)

        if report.values:
            value: Any = report.values.get(None, report.values)
            std: Any = report.stds.get(None) if None in report.values else report.stds or None
            facts = Facts(std, report.cost, report.duration, report.params, None)
            try:
                act("observe", number, *ObserveArguments(value, facts, None, bool(report.corrected)))
                for outcome, y in report.values.items():
                    stored = _result_of(self._present, record, outcome).value
                    part = (number, outcome)
                    if {("new", part), ("corrected", part)} & self._listed:  # other values are only moved
                        self._summary.changes.append(ChangedValue(number, outcome, y, stored))
            except BelatedError as error:
                self._drop(number, report, report.values, record, str(error))
        ends = [("fail", report.failed), ("abandon", report.abandoned)]
        for verb, outcomes in ends:
            for outcome in outcomes:
                try:
                    act(verb, [number], *((None, None, None) if verb == "fail" else ()), outcome)
                    stored = _result_of(self._present, record, outcome).value
                    state = "failed" if verb == "fail" else "abandoned"
                    self._summary.changes.append(ChangedValue(number, outcome, state, stored))
                except BelatedError as error:
                    self._drop(number, report, [outcome], record, str(error))
        before = {remark[0] for remark in record.remarks}
        remarks: list[str | None] = [text for text in dict.fromkeys(report.remarks) if text not in before]
        if report.attrs or remarks:
            self._summary.noted.append(number)
        text = attrs_as_json(report.attrs) if report.attrs else None
        for remark in remarks or ([None] if text else []):
            act("note", [number], remark, text)
            text = None
        return done

    def _drop(
        self, number: int, report: _Report, outcomes: Collection[str | None], record: TrialRecord, reason: str
    ) -> None:
        """Refuse the cells of a trial that the log does not accept."""
        for listed in (self._summary.new, self._summary.corrected):
            listed[:] = [part for part in listed if part[0] != number or part[1] not in outcomes]
        self._summary.moved[:] = [each for each in self._summary.moved if each != number]
        for outcome in outcomes:
            cell = report.cells.get(outcome, _Cell(None, str(outcome or "value"), report.values.get(outcome)))
            stored = _result_of(self._present, record, outcome).value
            text = reason.removesuffix(" (nothing was changed)")
            self._summary.refused.append(RefusedCell(cell.row, number, cell.column, cell.content, stored, text))

    def _list_ignored(self) -> None:
        """List the columns that have cells and are not read."""
        known = {*WORKLIST_COLUMNS, *(name for reader in self._readers.values() for name in reader.read_columns())}
        known |= {"state", "index", *self._first.point_columns()}
        for column, cells in self._cells.items():
            if column not in known and not all(map(is_empty, cells)):
                self._summary.ignored.append(column)


class _Index:
    """Finds the keys whose numbers or texts a cell may show, without comparing it with all of them."""

    def __init__(self, known: Mapping[int, Any]) -> None:
        numbers = [(y, key) for key, each in known.items() if (y := real_number(each)) is not None and y == y]
        self._others = [key for key, each in known.items() if real_number(each) is None]
        # Each boolean, and each text as it is read, in a tuple.
        self._alike: dict[Any, list[int]] = {}
        for key in self._others:
            each = known[key]
            self._alike.setdefault(each if isinstance(each, bool) else (as_read(shown(each)),), []).append(key)
        self._sorted = sorted(numbers)
        self._numbers = [y for y, _ in self._sorted]

    def near(self, y: float, decimals: int | None) -> list[int]:
        """Return the keys of the numbers that differ from y at most by rounding, and of those that are not numbers."""
        low, high = self._range(y, decimals)
        return sorted({*(key for _, key in self._sorted[low:high]), *self._others})

    def alike(self, cell: Any) -> list[int]:
        """Return the keys of the texts and booleans that a text may show."""
        if isinstance(cell, UnreadableCell):
            return []
        texts, booleans = (as_read(shown(text_in(cell))),), [each for each in (True, False) if is_shown(cell, each)]
        return [key for each in (texts, *booleans) for key in self._alike.get(each, ())]

    def n_near(self, y: float, decimals: int | None) -> int:
        """Return the number of keys that `near` returns."""
        low, high = self._range(y, decimals)
        return high - low + len(self._others)

    def _range(self, y: float, decimals: int | None) -> tuple[int, int]:
        tolerance = 0.006 * abs(y) + (0.0 if decimals is None else 10.0**-decimals)
        return bisect_left(self._numbers, y - tolerance), bisect_right(self._numbers, y + tolerance)


def _number(cell: Any) -> float | None:
    """Return the finite number in a cell, or None."""
    return None if isinstance(cell, UnreadableCell) else finite(number_in(cell))


def _text(cell: Any) -> Any:
    return cell if isinstance(cell, UnreadableCell) else text_in(cell)


def _plain(content: Any) -> Any:
    """Return the content of a cell of a value so that equal contents are equal: "0.50" equals 0.5."""
    number = _number(content)
    return repr(content) if number is None else number


def _end_in(cell: Any) -> str | None:
    """Return "failed" or "abandoned" if a cell says so."""
    text = cell.strip().lower() if isinstance(cell, str) else None
    return text if text in ("failed", "abandoned") else None


def _ever(record: TrialRecord, key: str) -> list[Any]:
    """Return all values that an attribute of a trial has had."""
    found = (merged_attrs([text]) for text in record.attrs)
    return [each[key] for each in found if key in each]


@dataclass
class _Row:
    """A row: its position, its trial, and the number of events of the study when the table was written."""

    i: int
    number: int | None = None
    at: int | None = None
    has_id: bool = False
    is_refused: bool = False
    #: The number of cells of the point, and the columns of those that differ from the suggestion.
    n_points: int = 0
    moved: list[str] = field(default_factory=list)
    has_values: bool = False
    #: Whether the trial is stored at the point of the row.
    is_stored_there: bool = False

    @property
    def trial(self) -> int:
        """The number of the trial of a row that has one."""
        assert self.number is not None
        return self.number
