"""Reading a table of results back to the trials that it lists, for ``observe(table)``."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from belated._core import Action, BelatedError, InvalidSetting, InvalidValue, TrialRecord
from belated.optimizers.actions import actions_of
from belated.optimizers.log import Log
from belated.optimizers.problem import Problem
from belated.optimizers.report import attrs_as_json, merged_attrs
from belated.optimizers.request import Carrier, Facts, ObserveArguments, Submission
from belated.optimizers.tables.cells import UnreadableCell, as_read, number_in, shown, text_in
from belated.optimizers.tables.table import TableReader, trial_columns
from belated.optimizers.tables.worklist import REMARKS, WORKLIST_COLUMNS
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


@dataclass(frozen=True)
class Reported:
    """A summary of ``observe(table)``. A part is a number of a trial and an outcome (None without outcomes)."""

    #: The parts with a first value or a failure, and those whose earlier value was replaced.
    new: list[Part] = field(default_factory=list)
    corrected: list[Part] = field(default_factory=list)
    #: The parts whose cells have the value that is stored or that the table had when it was written.
    unchanged: list[Part] = field(default_factory=list)
    #: The trials whose rows have no values.
    empty: list[int] = field(default_factory=list)
    #: The trials that were run at another point than the suggested point, according to the table.
    moved: list[int] = field(default_factory=list)
    #: The trials that got remarks or attributes.
    noted: list[int] = field(default_factory=list)
    refused: list[RefusedCell] = field(default_factory=list)
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


def is_shown(cell: Any, known: Any, decimals: int | None = None) -> bool:
    """Return whether a cell shows a value that is known, perhaps rounded.

    A number may be rounded to the digits that the cell shows, of which at least three count, or to `decimals`.
    """
    if known is None:
        return is_empty(cell)
    if isinstance(cell, UnreadableCell):
        return False
    exact = real_number(known)
    if exact is None:
        return as_read(shown(known)) == as_read(shown(text_in(cell)))
    number = finite(number_in(cell))
    if number is None:
        return False
    gap = abs(number - exact)
    if gap <= 1e-14 * abs(exact):
        return True
    if not isinstance(known, float):
        return False
    if decimals is not None and gap <= 0.5000001 * 10.0**-decimals:
        return True
    digits = max(_digits(number)[0], _LEAST_DIGITS)
    largest = max(abs(number), abs(exact))
    return gap <= 0.5000001 * 10.0 ** (math.floor(math.log10(largest)) + 1 - digits)


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

    def is_another_choice(self, column: str, cell: Any, known: Any) -> bool:
        """Return whether a cell is the text of another choice that prints like the known one, as "7" and "007" do."""
        domain = self._problem.domain
        if not isinstance(domain, Space) or not isinstance(cell, str) or cell == known:
            return False
        names = [name for name, each in self._point.items() if each == column]
        return any(cell in (choices_of(domain[name]) or ()) for name in names)

    def number(self, column: str, i: int) -> Any:
        """Return the number in a cell."""
        return self._number(column, i)

    def params(self, i: int, known: Mapping[str, Any], moved: Collection[str]) -> Any:
        """Return the point of a row: the values that are known, except for the cells that were moved."""
        domain = self._problem.domain
        if not isinstance(domain, Space):
            return self._point_of(i)
        values = {name.removeprefix("params_"): each for name, each in known.items() if each is not None}
        for name, column in self._point.items():
            if column in moved:
                values[name] = self._value(domain, name, column, i)
        if isinstance(domain, NamedCandidates):
            return values
        active = domain.active_names(values)
        return {name: each for name, each in values.items() if name in active}

    def std(self, outcome: str | None, i: int) -> float | None:
        """Return the standard deviation of a value."""
        if outcome is None or (outcome == self._problem.objective and "std" in self._columns):
            return self._amount("std", self._columns["std"], self._fact("std", i)) if "std" in self._columns else None
        return self._std_of(outcome, i)

    def amount(self, name: str, i: int) -> float | None:
        """Return the cost or the duration."""
        return self._amount(name, self._columns[name], self._fact(name, i)) if name in self._columns else None

    def attrs(self, i: int) -> dict[str, Any]:
        """Return the attrs of a row."""
        return merged_attrs([text]) if (text := self._attrs_at(i)) is not None else {}

    def read_columns(self) -> set[str]:
        """Return the columns that are read."""
        parts = (self._point, self._run, self._outcomes, self._columns, self._attrs_columns, self._context)
        return {*self._of_outcomes, *self._curve, *(name for part in parts for name in part.values())}


def read_reports(
    table: Any,
    value: Any,
    sheets: Mapping[int | None, Sheet],
    present: Problem,
    records: Any,
    study_id: str | None,
    amend: bool | Collection[int],
    moved: bool,
) -> tuple[list[Action], Reported]:
    """Return the actions that store a table, and the summary.

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
        Whether other values replace earlier values; or the trials in which they do, whatever happened since the table
        was written.
    moved
        Whether many rows may have other points than their trials.
    """
    return _Reports(table, value, sheets, present, records, study_id, amend, moved).read()


def whole_cell(cell: Any) -> int | None:
    """Return the integer in a cell, which a file may have as 7, 7.0 or "7"; None if there is none."""
    number = None if isinstance(cell, UnreadableCell) else finite(number_in(cell))
    return int(number) if number is not None and number.is_integer() and 0 <= number < 2**53 else None


def times_of(table: Any) -> list[int | None]:
    """Return the different numbers of events in the column ``as_of``."""
    cells = table["as_of"].tolist() if "as_of" in table.columns else []
    return [None, *sorted({found for cell in cells if (found := whole_cell(cell)) is not None})]


def numbers_of(table: Any) -> list[int]:
    """Return the numbers of the trials of a table."""
    cells = table["number"].tolist() if "number" in table.columns else []
    return [found for cell in cells if (found := whole_cell(cell)) is not None]


def rows_of_pending(table: Any, problem: Problem, log: Log, study_id: str | None) -> list[Any]:
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
            known = trial_columns(problem, [record], None, False, lambda _: problem)
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


class _Reports:
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
        self._reports: dict[int, _Report] = {}
        # The cell that was read for each part.
        self._values: dict[Part, _Cell] = {}
        # The cells of a trial as the table had them, and the trials that were pending, by the number of events.
        self._known_cells: dict[tuple[int | None, int], dict[str, Any]] = {}
        self._pending_at: dict[int | None, set[int]] = {}

    def read(self) -> tuple[list[Action], Reported]:
        rows = list(self._rows())
        columns = {column for reader in self._readers.values() for column in reader.value_columns().values()}
        if not columns:
            wanted = [f"outcome_{name}" for name in self._present.outcomes] or ["value"]
            raise InvalidValue(f"the table has no column of values: it needs {' or '.join(map(repr, wanted))}")
        self._find_rounding(rows)
        for row in rows:
            self._compare_point(row, rows)
        self._check_moved(rows)
        for row in rows:
            if row.is_refused:
                continue
            try:
                self._read_row(row)
            except BelatedError as error:
                self._refuse(row, row.column or "number", str(error))
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

    def _rows(self) -> Iterator[_Row]:
        """Yield the rows of known trials; refuse rows of other studies, and rows with cells and without a number."""
        for i in range(len(self._labels)):
            row = _Row(i)
            known = self._cell("study_id", i)
            number, as_of = self._cell("number", i), self._cell("as_of", i)
            if known is not None and self._study_id is not None and str(text_in(known)).strip() != self._study_id:
                self._refuse(row, "study_id", "the row belongs to another study, or to a study that was created again")
                continue
            if number is None:
                filled = [
                    column for column in self._first.value_columns().values() if self._cell(column, i) is not None
                ]
                if filled:
                    self._refuse(row, filled[0], "the row has no number, so it was not planned: pass it to add")
                continue
            row.number = whole_cell(number)
            row.has_id = known is not None and self._study_id is not None
            at = whole_cell(as_of)
            if as_of is not None and at not in self._sheets:
                self._refuse(row, "as_of", "the study had fewer events, so the table is not one of its tables")
                continue
            sheet = self._sheets[at]
            if row.number is None or row.number >= sheet.n_trials:
                self._refuse(row, "number", "there is no trial with this number")
                row.number = None
                continue
            row.at = at
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
        """Find the columns whose numbers were all rounded to the same number of decimals, as a spreadsheet does."""
        self._decimals: dict[str, int] = {}
        n_rounded, found = 0, {}
        for column, key in self._first.point_columns().items():
            pairs = [(self._cell(column, row.i), self._known(row.at, row.number or 0).get(key)) for row in rows]
            shown_as = [
                (number, known)
                for cell, known in pairs
                if isinstance(known, float) and (number := finite(number_in(cell))) is not None
            ]
            decimals = max((_digits(number)[1] for number, _ in shown_as), default=0)
            if shown_as and all(is_shown(number, known, decimals) for number, known in shown_as):
                found[column] = decimals
                n_rounded += sum(number != known for number, known in shown_as)
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
            if not is_same or reader.is_another_choice(column, cell, value):
                yield column

    def _compare_point(self, row: _Row, rows: Sequence[_Row]) -> None:
        """Find the cells of the point that differ, and refuse the point of another trial."""
        assert row.number is not None
        known = self._known(row.at, row.number)
        columns = self._readers[row.at].point_columns()
        row.n_points = sum(self._cell(column, row.i) is not None for column in columns)
        row.moved = list(self._moved_columns(row, row.number))
        for column, key in self._readers[row.at].start_columns().items():
            cell = self._cell(column, row.i)
            if cell is not None and not is_shown(cell, known.get(key)):
                self._refuse(row, column, "the trial was started otherwise: add the row as a new trial", known.get(key))
                row.is_refused = True
                return
        if not row.moved or row.n_points < sum(known.get(key) is not None for key in columns.values()):
            return
        others = {other.number for other in rows if other.at == row.at} | self._pending(row.at)
        for number in sorted(other for other in others if other is not None and other != row.number):
            if next(self._moved_columns(row, number), None) is None:
                self._refuse(
                    row,
                    row.moved[0],
                    f"the row has the point of trial {number} and the number {row.number}, as if cells were shifted",
                    known.get(columns[row.moved[0]]),
                )
                row.is_refused = True
                return

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
            known = {row.i: self._known(row.at, row.number or 0).get(key) for row in rows}
            origins = [
                [i for i, each in known.items() if i != row.i and is_shown(self._cell(column, row.i), each)]
                for row in moved
            ]
            single = {found[0] for found in origins if len(found) == 1}
            is_permuted = len(moved) > 1 and single == {row.i for row in moved}
            if len(single) == len(moved) and (is_permuted or len(moved) >= _SHIFTED_CELLS):
                for row in moved:
                    self._refuse(
                        row,
                        column,
                        "the cells of this column have the suggestions of other rows, as if it was sorted or shifted: "
                        "correct it, or pass moved=True",
                        known[row.i],
                    )
                    row.is_refused = True

    # Values.

    def _read_row(self, row: _Row) -> None:
        """Judge each cell of a row."""
        assert row.number is not None
        number, reader, sheet = row.number, self._readers[row.at], self._sheets[row.at]
        record = self._records.trial(number)
        columns = reader.value_columns()
        row.column = "state"
        state = self._cell("state", row.i)
        ends = str(state).strip().lower() if isinstance(state, str) else None
        is_end = ends in ("failed", "abandoned")
        filled = {name: column for name, column in columns.items() if self._cell(column, row.i) is not None}
        report = self._reports.get(number) or _Report(sheet)
        has_report = False
        if is_end and not filled:
            has_report = self._end(row, report, None, "state", str(ends), record)
        for name, column in filled.items():
            row.column = column
            content = self._cell(column, row.i)
            text = content.strip().lower() if isinstance(content, str) else None
            if is_end:
                self._refuse(row, column, f"a value and the state {state!r}: empty one of the two cells")
            elif text in ("failed", "abandoned"):
                has_report |= self._end(row, report, name, column, str(text), record)
            else:
                try:
                    has_report |= self._read_value(row, report, name, column, record)
                except BelatedError as error:
                    self._refuse(row, column, str(error))
        if not filled and not is_end:
            self._summary.empty.append(number)
        if row.moved and filled:
            row.column = row.moved[0]
            has_report |= self._read_point(row, report, record)
        if has_report:
            for amount in ("cost", "duration"):
                row.column = amount
                found = reader.amount(amount, row.i)
                if found is not None:
                    setattr(report, amount, found)
        row.column = "attrs"
        report.attrs |= reader.attrs(row.i)
        remark = self._cell(REMARKS, row.i)
        if remark is not None:
            report.remarks.append(str(text_in(remark)).strip())
        if has_report or report.attrs or report.remarks:
            self._reports[number] = report

    def _end(
        self, row: _Row, report: _Report, outcome: str | None, column: str, state: str, record: TrialRecord
    ) -> bool:
        """Read that an outcome failed or was abandoned; return whether this is news."""
        assert row.number is not None
        known = _result_of(self._present, record, outcome)
        if known.state == state or (known.value is None and record.state == state):
            self._summary.unchanged.append((row.number, outcome))
            return False
        if known.value is not None:
            self._refuse(row, column, "the trial has a value: withdraw the value first", known.value)
            return False
        (report.failed if state == "failed" else report.abandoned).append(outcome)
        self._summary.new.append((row.number, outcome))
        return True

    def _read_value(self, row: _Row, report: _Report, outcome: str | None, column: str, record: TrialRecord) -> bool:
        """Read a value; return whether it is news."""
        assert row.number is not None
        number, reader, sheet = row.number, self._readers[row.at], self._sheets[row.at]
        given = reader.number(column, row.i)
        y, part = finite(given), (number, outcome)
        if y is None:
            raise InvalidValue(f"{short_repr(given)} is not a finite number: correct it, or empty the cell")
        known = _result_of(self._present, record, outcome)
        before = known if row.at is None else _result_of(sheet.problem, sheet.records.trial(number), outcome)
        std = reader.std(outcome, row.i)
        is_same_std = std is None or std == known.std
        cell = _Cell(self._labels[row.i], column, self._cell(column, row.i))
        other = self._values.get(part)
        if other is not None and real_number(number_in(other.content)) != y:
            self._refuse(row, column, f"row {short_repr(other.row)} has another value of this trial", known.value)
            if outcome in report.values:
                del report.values[outcome]
                for listed in (self._summary.new, self._summary.corrected):
                    if part in listed:
                        listed.remove(part)
                self._summary.refused.append(
                    RefusedCell(other.row, number, column, other.content, known.value, "another row has another value")
                )
            return False
        self._values[part] = cell
        is_forced = number in self._forced
        withdrawn = None if known.withdrawal is None else known.withdrawal[1]
        if known.value is None:
            if withdrawn == y and not is_forced:
                self._summary.unchanged.append(part)  # a withdrawn value is not restored
                return False
            if before.value is not None and is_shown(y, before.value) and not is_forced:
                self._summary.unchanged.append(part)
                return False
            if known.withdrawal != before.withdrawal and not is_forced:
                reason = "the value was withdrawn after the table was written"
                self._refuse(row, column, f"{reason}: pass amend=[{number}] to store it", withdrawn)
                return False
            listed = self._summary.new
        else:
            is_same = abs(known.value - y) <= 1e-14 * abs(y)
            is_unedited = is_same or (before.value is not None and is_shown(y, before.value))
            if is_unedited and is_same_std:
                self._summary.unchanged.append(part)
                return False
            if not is_forced and before.value != known.value:
                reason = "the trial got another value after the table was written"
                self._refuse(row, column, f"{reason}: pass amend=[{number}] to replace it", known.value)
                return False
            if not is_forced and not self._amend:
                self._refuse(row, column, "the trial has another value: pass amend=True to replace it", known.value)
                return False
            report.corrected.add(outcome)
            listed = self._summary.corrected
        if part not in listed:
            listed.append(part)
        if withdrawn is not None and is_forced:
            report.corrected.add(outcome)
        report.values[outcome] = y
        report.cells[outcome] = cell
        if std is not None:
            report.stds[outcome] = std
        return True

    def _read_point(self, row: _Row, report: _Report, record: TrialRecord) -> bool:
        """Read where the trial was run; return whether this is news."""
        assert row.number is not None
        number, reader, sheet = row.number, self._readers[row.at], self._sheets[row.at]
        columns = reader.point_columns()
        known = {key: each for key, each in self._known(row.at, number).items() if key in columns.values()}
        if isinstance(sheet.problem.domain, Space):
            names = [f"params_{name}" for name in sheet.problem.domain]
            known = {key: each for key, each in self._known(row.at, number).items() if key in names}
        params = reader.params(row.i, known, row.moved)
        place = sheet.problem.domain.locate(params, measured=True)
        if number not in self._summary.moved:
            self._summary.moved.append(number)
        if report.values:
            report.params = params
            return True
        carrier = sheet.carrier()
        stored = carrier.point(place, record) if carrier is not None else place
        if stored == record.run:
            return False
        if not (self._amend or number in self._forced):
            self._refuse(row, row.moved[0], "the trial was reported at another point: pass amend=True to move it")
            return False
        for name, column in reader.value_columns().items():
            y = _result_of(self._present, record, name).value
            if y is not None and self._cell(column, row.i) is not None:
                report.values[name] = y
        report.params = params
        report.corrected |= set(report.values)
        return bool(report.values)

    # Actions.

    def _actions_of(self, number: int) -> Iterator[Action]:
        """Yield the actions of a trial that the log accepts; refuse the cells of the others."""
        report, record = self._reports[number], self._records.trial(number)
        carrier, problem = report.sheet.carrier(), report.sheet.problem

        def actions(verb: str, trial: Any, *given: Any) -> list[Action]:
            found = actions_of(Submission(verb, trial, None, given), problem, self._records, carrier)
            for action in found:
                self._records.validate(action, self._present.wall_time())
            return found

        if report.values:
            value: Any = report.values.get(None, report.values)
            std: Any = report.stds.get(None) if None in report.values else report.stds or None
            facts = Facts(std, report.cost, report.duration, report.params, None)
            given = ObserveArguments(value, facts, None, bool(report.corrected))
            try:
                yield from actions("observe", number, *given)
            except BelatedError as error:
                self._drop(number, report, record, str(error))
        for verb, outcomes in (("fail", report.failed), ("abandon", report.abandoned)):
            for outcome in outcomes:
                more = (None, None, None) if verb == "fail" else ()
                yield from actions(verb, [number], *more, outcome)
        known = merged_attrs(record.attrs)
        attrs = {key: each for key, each in report.attrs.items() if key not in known or str(known[key]) != str(each)}
        before = {text for text, _ in record.remarks}
        remarks = [text for text in dict.fromkeys(report.remarks) if text not in before]
        if attrs or remarks:
            self._summary.noted.append(number)
        text = attrs_as_json(attrs) if attrs else None
        texts: list[str | None] = [*remarks] or ([None] if attrs else [])
        for remark in texts:
            yield from actions("note", [number], remark, text)
            text = None

    def _drop(self, number: int, report: _Report, record: TrialRecord, reason: str) -> None:
        """Refuse the values of a trial that the log does not accept."""
        for listed in (self._summary.new, self._summary.corrected):
            listed[:] = [part for part in listed if part[0] != number or part[1] not in report.values]
        for outcome in report.values:
            cell = report.cells.get(outcome, _Cell(None, str(outcome or "value"), report.values[outcome]))
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
    #: The column that is being read, for messages.
    column: str = ""
