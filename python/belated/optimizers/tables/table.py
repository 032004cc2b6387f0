"""Conversion of trials to a pandas DataFrame and back."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

from belated._core import (
    Action,
    BelatedError,
    InvalidContext,
    InvalidPoint,
    InvalidSetting,
    InvalidSpace,
    InvalidValue,
    Observation,
    TrialRecord,
)
from belated.optimizers import optuna_table
from belated.optimizers.actions import for_each, full_fidelity
from belated.optimizers.delays import Delays, InFlight
from belated.optimizers.imported import Dated, ImportedTrial, Result
from belated.optimizers.outcomes import position, values_of
from belated.optimizers.problem import Problem
from belated.optimizers.report import (
    TrialError,
    as_amount,
    as_number,
    as_text,
    attrs_as_json,
    error_facts,
    merged_attrs,
)
from belated.optimizers.request import Carrier
from belated.optimizers.tables.cells import (
    as_read,
    choice_in,
    in_range,
    number_in,
    seconds_in,
    text_in,
)
from belated.optimizers.trial import utc
from belated.short_repr import short_repr
from belated.space.arguments import is_list, is_table
from belated.space.candidates import Candidates, NamedCandidates
from belated.space.dimensions import Dimension, choices_of
from belated.space.fidelity import Fidelity
from belated.space.space import Place, Space
from belated.warn import warn

_STATES = ("observed", "pending", "failed", "abandoned", "stopped", "withdrawn")

# The data of a trial that may be given by a column of any name, or by a column of this name.
_FACTS = ("value", "std", "cost", "duration", "fidelity")

# The other columns of `trials_dataframe`, which `add` reads or ignores.
_WITHDRAWN_VALUE, _WITHDRAWN_REASON, _LEFT_OUT = "withdrawn_value", "withdrawn_reason", "left_out"
_PARETO = "pareto"
_OTHERS = (
    *("number", "state", "error", "suggested_at", "observed_at", "delay", "started_at", "finished_at"),
    *("started_by", "finished_by", "outside", _WITHDRAWN_VALUE, _WITHDRAWN_REASON, _LEFT_OUT, _PARETO),
)

#: The last column of a worklist, which is to be filled in.
REMARKS = "remarks"

#: The columns of a worklist that `observe` does not read as values, points or attrs.
WORKLIST_COLUMNS = (
    *("study", "study_id", "number", "as_of", "missing", "since_utc", "due_utc", "due_from", "late", "forbidden"),
    REMARKS,
)

# The names that stand for other facts in tables whose columns of parameters and outcomes have prefixes.
_NAMES = (*_FACTS, *_OTHERS, *WORKLIST_COLUMNS)

# The prefixes of the columns of an outcome: its value, std and state, and the value and reason of its last withdrawal.
_OUTCOME, _STD, _STATE = "outcome_", "std_", "state_"
_OF_OUTCOME = (_OUTCOME, _STD, _STATE, f"{_WITHDRAWN_VALUE}_", f"{_WITHDRAWN_REASON}_")

# The maximum number of further rows that an error names.
_SHOWN = 10


class SkippedRow(NamedTuple):
    """A row of a table that was not added: its label in the index, the column with the error, and the reason."""

    row: Any
    column: str
    reason: str


class Added(NamedTuple):
    """The result of ``add(table, on_error="skip")``: the new trials, and the rows that were not added."""

    trials: list[Any]
    skipped: list[SkippedRow]


def run_prefix(space: Space) -> str:
    """Return the prefix of parameter names in the columns that contain the points that were run.

    If the space has both ``x`` and ``run_x``, the column of the parameter ``run_x`` is ``params_run_x``. Underscores
    are therefore added to the prefix until all columns have different names.
    """
    prefix = "run_"
    while any(f"{prefix}{name}" in space for name in space):
        prefix += "_"
    return prefix


def imported_pandas(caller: str) -> Any:
    """Import pandas, which only tables need."""
    try:
        import pandas
    except ImportError:
        raise ImportError(f"{caller} needs pandas: pip install pandas") from None
    return pandas


def trials_dataframe(
    problem: Problem,
    records: Sequence[TrialRecord],
    delays: Delays | None,
    curves: bool,
    problem_of: Callable[[int], Problem],
    front: Collection[int] | None,
) -> Any:
    """Return the trials as a DataFrame, for `Optimizer.trials_dataframe`; the arguments are as for `trial_columns`."""
    pandas = imported_pandas("trials_dataframe")
    return pandas.DataFrame(trial_columns(problem, records, delays, curves, problem_of, front))


def trial_columns(
    problem: Problem,
    records: Sequence[TrialRecord],
    delays: Delays | None,
    curves: bool,
    problem_of: Callable[[int], Problem],
    front: Collection[int] | None = None,
) -> dict[str, list[Any]]:
    """Return the columns of `trials_dataframe` as lists, in which None is a missing value.

    `problem_of` returns the problem after a number of revisions. `front` has the numbers of the trials in the front,
    for the column ``pareto``.
    """
    of_objective = () if problem.front else ("value", "std")
    facts = ("number", "state", *of_objective, "cost", "duration", "suggested_at", "observed_at")
    columns: dict[str, list[Any]] = {name: [getattr(record, name) for record in records] for name in facts}
    if front is not None:
        columns[_PARETO] = [record.number in front for record in records]
    columns["delay"] = [
        None if end is None else end - start
        for start, end in zip(columns["suggested_at"], columns["observed_at"], strict=True)
    ]
    columns["started_at"] = [utc(record.started_at) for record in records]
    columns["finished_at"] = [utc(record.finished_at) for record in records]
    for name in ("started_by", "finished_by"):
        authors = [getattr(record, name) for record in records]
        if any(author is not None for author in authors):
            columns[name] = authors
    columns["error"] = [None if record.error is None else str(TrialError(*record.error)) for record in records]
    withdrawn = [record.withdrawal for record in records]
    if any(each is not None for each in withdrawn):
        columns[_WITHDRAWN_VALUE] = [None if each is None else each[1] for each in withdrawn]
        columns[_WITHDRAWN_REASON] = [None if each is None else each[2] for each in withdrawn]
    for i, name in enumerate(problem.outcomes):
        columns |= _outcome_columns(name, [record.outcomes[i] for record in records])
    if delays is not None:
        forecasts = delays._forecasts()
        for name in InFlight._fields:
            columns[name] = [getattr(forecasts.get(record.number), name, None) for record in records]
    if problem.fidelity is not None:
        columns["fidelity"] = [problem_of(each.era_of_fidelity).fidelity_of(each.fidelity) for each in records]
    if any(record.outside for record in records):
        columns["outside"] = [record.outside for record in records]
    domain, runs = problem.domain, [record.run for record in records]
    has_runs = any(run is not None for run in runs)
    if isinstance(domain, Space):
        points = [_named_at(problem_of(record.era), record.place) for record in records]
        # Trials that a revision left out may have further parameters.
        columns |= _columns("params_", dict.fromkeys([*domain, *(name for point in points for name in point)]), points)
        if has_runs:
            points = [{} if each.run is None else _named_at(problem_of(each.era_of_run), each.run) for each in records]
            columns |= _columns(f"params_{run_prefix(domain)}", domain, points)
    else:
        columns |= _candidate_columns("", [row_at(problem_of(each.era), problem, each.place) for each in records])
        if has_runs:
            places = [
                None if each.run is None else row_at(problem_of(each.era_of_run), problem, each.run) for each in records
            ]
            columns |= _candidate_columns("_run", places)
    contexts = problem.context_space
    if contexts is not None:
        found = [(problem_of(record.era_of_context).context_space, record.context) for record in records]
        columns |= _columns("context_", contexts, [each.named_at(list(at)) if each else {} for each, at in found])
    if curves:
        rows = [dict(record.curve) for record in records]
        columns |= _columns("curve_", sorted({step for row in rows for step in row}), rows)
    attrs = [merged_attrs(record.attrs) for record in records]
    columns |= _columns("attrs_", dict.fromkeys(key for each in attrs for key in each), attrs)
    if any(record.left_out is not None for record in records):
        columns[_LEFT_OUT] = [record.left_out for record in records]
    return columns


def _outcome_columns(name: str, found: Sequence[tuple[Any, ...]]) -> dict[str, list[Any]]:
    """Return the columns of an outcome, from its entries in the records of the trials."""
    states = [each[0] for each in found]
    withdrawn = [each[5] or (None, None, None) for each in found]
    told = any(state not in ("observed", "pending") for state in states)
    more = [
        [each[2] for each in found],
        states if told else [],
        [value for _, value, *_ in withdrawn],
        [reason for _, _, reason, *_ in withdrawn],
    ]
    columns = {f"{prefix}{name}": cells for prefix, cells in zip(_OF_OUTCOME[1:], more, strict=True)}
    values = {f"{_OUTCOME}{name}": [each[1] for each in found]}
    return values | {column: cells for column, cells in columns.items() if any(cell is not None for cell in cells)}


def _named_at(problem: Problem, place: Place) -> dict[str, Any]:
    assert isinstance(problem.domain, Space)
    return problem.domain.named_at(place)


def row_at(earlier: Problem, problem: Problem, place: Place) -> Place:
    """Return the place of a trial. The index of a candidate of an earlier problem is replaced by its row."""
    if earlier is problem or not isinstance(earlier.domain, Candidates):
        return place
    row: list[float | None] = earlier.domain.params_at(place).tolist()
    return row


def _candidate_columns(suffix: str, places: Sequence[Place | None]) -> dict[str, list[Any]]:
    """Return the column of row numbers and, if a point is not a candidate, a column for each of its numbers."""
    columns: dict[str, list[Any]] = {
        f"index{suffix}": [place if isinstance(place, int) else None for place in places],
    }
    rows = [dict(enumerate(place)) if isinstance(place, list) else {} for place in places]
    return columns | _columns(f"x{suffix}_", range(max(map(len, rows), default=0)), rows)


def _columns(prefix: str, names: Iterable[Any], rows: Sequence[Mapping[Any, Any]]) -> dict[str, list[Any]]:
    return {f"{prefix}{name}": [row.get(name) for row in rows] for name in names}


def is_trials_table(params: Any) -> bool:
    """Return whether `params` is a table from `trials_dataframe`. False for a table that has only parameters."""
    if not is_table(params):
        return False
    columns = [str(name) for name in params.columns]
    points = any(name == "index" or name.startswith("params_") for name in columns)
    return points and {"number", "state"} <= set(columns) and ("value" in columns or _PARETO in columns)


# The result of an outcome that has not arrived.
_MISSING = Result("pending")


def _without_marks(name: str) -> str:
    """Return the name of a column without spaces at its ends, and without the number of a repeated name in pandas."""
    return re.sub(r"(\.[0-9]+)+$", "", name.strip("\ufeff").strip()).strip()


class Row(NamedTuple):
    """A row of a table: the action that adds the trial, and a function from the trial's number to the others."""

    add: Action
    rest: Callable[[int], Iterator[Dated]]
    label: Any
    #: Returns a text that equals the result of `facts_of_record` for a trial with the same data.
    facts: Callable[[], str]
    has_value: bool


def facts_of_record(record: TrialRecord) -> str:
    """Return the point, the values and the other data of a trial as a text, to find equal trials.

    A withdrawn value counts, so that a table that is added again does not restore it.
    """
    point = record.place if record.run is None else record.run
    results = [(value, std, withdrawn) for _, value, std, *_, withdrawn in record.outcomes]
    results = results or [(record.value, record.std, record.withdrawal)]
    values = [
        (withdrawn[1] if value is None and withdrawn is not None else value, std) for value, std, withdrawn in results
    ]
    start = (point, list(record.context), record.fidelity)
    return _as_text((*start, values, record.cost, record.duration, merged_attrs(record.attrs)))


def _as_text(data: Any) -> str:
    """Return data as a text, in which numbers have the digits that a file preserves."""
    if isinstance(data, (list, tuple)):
        return f"[{','.join(map(_as_text, data))}]"
    return f"{data:.12g}" if isinstance(data, float) else repr(data)


class Rows(NamedTuple):
    """The rows of a table that can be added, and those that cannot."""

    rows: list[Row]
    skipped: list[SkippedRow]


class TableReader:
    """Reads the rows of a table for `add`.

    `given` has the arguments for `_FACTS`. If `problem` is not the present problem of the study, `carrier` carries what
    was read to the present problem.
    """

    #: Whether each row must have a complete point and a context.
    needs_points = True

    def __init__(
        self,
        problem: Problem,
        table: Any,
        given: Mapping[str, Any],
        context: Any,
        attrs: Any,
        missing: str,
        carrier: Carrier | None = None,
    ) -> None:
        of_optuna = None
        if self.needs_points:
            of_optuna = optuna_table.converted(problem.outcomes, table, given["value"], missing)
        self._is_of_optuna = of_optuna is not None
        table = table if of_optuna is None else of_optuna
        self._problem, self._missing, self._carrier = problem, missing, carrier
        # The name of the column that is being read, for messages.
        self._n, self._column = len(table), ""
        self._labels = [getattr(label, "item", lambda label=label: label)() for label in table.index]
        names = [str(name) for name in table.columns]
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if twice:
            raise InvalidValue(f"the table has the column {twice[0]!r} twice: keep one of them")
        objects = table.astype(object).where(table.notna(), None)
        self._cells: dict[str, list[Any]] = {name: objects.iloc[:, i].tolist() for i, name in enumerate(names)}
        for name, cells in self._cells.items():
            # pandas reads empty cells as empty texts if the column has an integer of more than 64 bits.
            if name != "error" and not name.startswith("attrs_"):
                self._cells[name] = [None if isinstance(cell, str) and cell == "" else cell for cell in cells]
        # The choices that cells mean, by the name of the parameter and the repr of the cell.
        self._choices: dict[tuple[str, str], Any] = {}
        self._locate_columns(table, given)
        self._read_facts(given, attrs)
        self._read_contexts(context)
        self._curve = [name for name in names if re.fullmatch(r"curve_[0-9]{1,9}", name) and name in self._others]
        self._check_alike()
        if not self._curve:
            return
        curve, last = problem.curve, max(int(name.removeprefix("curve_")) for name in self._curve)
        if curve is None or last > curve.steps:
            declared = "no learning curve was declared" if curve is None else f"the curve has {curve.steps} steps"
            raise InvalidValue(f"the table has the column 'curve_{last}', and {declared}: leave the column out")

    # Columns.

    def _locate_columns(self, table: Any, given: Mapping[str, Any]) -> None:
        """Find the columns of the point, and whether the table contains values."""
        space, names = self._problem.domain, self._cells
        self._point: dict[str, str] = {}
        self._run: dict[str, str] = {}
        # The rows as they are given, if the table has only parameters.
        self._plain: list[Any] | None = None
        prefixed = isinstance(space, Space) and any(f"params_{name}" in names for name in space)
        if isinstance(space, Space):
            for name in space:
                found = [each for each in (f"params_{name}", name) if each in names]
                if prefixed and name in _NAMES:
                    found = [each for each in found if each != name]  # the plain column contains another fact
                if len(found) > 1:
                    raise InvalidPoint(f"the table has the columns {found[0]!r} and {found[1]!r}: keep one of them")
                if found:
                    self._point[name] = found[0]
            prefix = run_prefix(space)
            self._run = {name: f"params_{prefix}{name}" for name in space if f"params_{prefix}{name}" in names}
        known = {*self._point.values(), *self._run.values()}
        self._others = [name for name in names if name not in known]
        self._locate_outcomes(table, given["value"])
        named = [name for name in (*given.values(), *self._outcomes.values()) if isinstance(name, str)]
        self._has_values = (
            bool(named)
            or not self.needs_points
            or (given["value"] is None and any(name in self._others for name in ("value", "state")))
        )
        is_table_of_trials = self._has_values and {"state", _LEFT_OUT} <= set(self._others)
        self._left_out: list[Any] = self._cells[_LEFT_OUT] if is_table_of_trials else [None] * self._n
        if isinstance(space, Candidates):
            self._locate_row(table, named)
        elif self._has_values or prefixed:
            if self.needs_points:
                unknown = [name.removeprefix("params_") for name in self._others if self._is_unknown(name)]
                space.core.check_known([repr(name) for name in unknown])
                self._check_complete(space)
        else:
            contexts = set(self._problem.context_space or ())
            kept = [name for name in table.columns if str(name) not in contexts]
            self._plain = [space.without_missing(row) for row in table[kept].to_dict("records")]
        # Parameters whose empty cell may be a choice, such as None, that is written as an empty cell.
        self._emptied: list[str] = []
        if isinstance(space, Space):
            self._emptied = [name for name in space if None in map(as_read, choices_of(space[name]) or ())]

    def _locate_outcomes(self, table: Any, value: Any) -> None:
        """Find the columns with the values of the outcomes. `value` is the argument of this name."""
        outcomes, objective = self._problem.outcomes, self._problem.objective
        self._outcomes: dict[str, str] = {}
        # The columns of stds, states and withdrawals of outcomes.
        self._of_outcomes: set[str] = set()
        # Whether the column ``value`` belongs to the objective.
        self._is_of_objective = False
        if not outcomes:
            return
        prefixed = any(f"{_OUTCOME}{name}" in self._others for name in outcomes)
        for name in outcomes:
            found = [each for each in (f"{_OUTCOME}{name}", name) if each in self._others]
            if (prefixed or is_trials_table(table)) and name in _NAMES:
                found = [each for each in found if each != name]  # the plain column contains another fact
            if len(found) > 1:
                raise InvalidValue(f"the table has the columns {found[0]!r} and {found[1]!r}: keep one of them")
            if found:
                self._outcomes[name] = found[0]
        if isinstance(value, Mapping):
            for name, column in value.items():
                position(outcomes, name)
                self._check_column(f"value[{name!r}]", str(column))
                self._outcomes[name] = str(column)
        elif isinstance(value, str):
            if objective is None:
                raise InvalidValue(
                    f"value={value!r} is the column of one outcome, and there is not one objective: pass a dict, as "
                    f"{{{next(iter(outcomes))!r}: {value!r}}}"
                )
            self._outcomes[objective] = value
        elif value is None and objective is not None and (prefixed or objective not in self._outcomes):
            self._is_of_objective = "value" in self._others
        elif value is not None:
            self._outcomes.clear()  # the values are given
        self._of_outcomes = {f"{prefix}{name}" for prefix in _OF_OUTCOME for name in outcomes} & set(self._others)
        taken = {*self._of_outcomes, *self._outcomes.values()}
        self._others = [name for name in self._others if name not in taken]

    def _is_unknown(self, name: str) -> bool:
        """Return whether the column of a parameter is unknown. Trials that were left out may have other parameters."""
        if not name.startswith("params_") or not any(self._left_out):
            return name.startswith("params_")
        cells = zip(self._cells[name], self._left_out, strict=True)
        return any(cell is not None and reason is None for cell, reason in cells)

    def _locate_row(self, table: Any, named: list[str]) -> None:
        """Find the column with the indices of candidates, or the columns of their rows."""
        if "index" in self._others or "index_run" in self._others or not self.needs_points:
            return
        if not self._has_values:
            self._plain = list(self._problem.domain.several(table) or ())
            return
        skipped = {*named, *_FACTS, *_OTHERS}
        columns = [name for name in self._others if name not in skipped and not name.startswith(("attrs_", "curve_"))]
        contexts = {f"{prefix}{name}" for name in self._problem.context_space or () for prefix in ("", "context_")}
        self._point = {name: name for name in columns if name not in contexts}
        if is_trials_table(table) or len(self._point) != self._problem.domain.width:
            raise InvalidPoint(
                f"params=None is not a candidate: pass its index in a column 'index', or {self._problem.domain.width} "
                f"columns with its row; the table has {list(self._point)}"
            )

    def _check_complete(self, space: Space) -> None:
        """Raise an error if the column of a parameter that every point has is missing."""
        needed = [name for name in space.searched if name not in space.optional]
        lacking = [name for name in needed if name not in self._point]
        if lacking and self._n:
            from belated.hints import nearest

            near = nearest(lacking[0], self._others)
            advice = (
                f"did you mean the column {near!r} for {lacking[0]!r}?" if near else "add them, without empty cells"
            )
            advice = separator_advice(list(self._cells)) or advice
            if "params" in self._others and "number" in self._others:
                advice = (
                    "a table of Optuna has two lines of names here: write it with trials_dataframe(multi_index=False), "
                    "or read both lines with header=[0, 1]"
                )
            raise InvalidPoint(
                f"the table lacks columns of params {lacking}, with or without the prefix params_: {advice}"
            )

    def _read_facts(self, given: Mapping[str, Any], attrs: Any) -> None:
        """Find the columns or the lists of value, std, cost, duration and fidelity."""
        self._columns: dict[str, str] = {}
        self._lists: dict[str, list[Any]] = {}
        for name, each in given.items():
            if name == "value" and self._problem.outcomes and isinstance(each, Mapping):
                continue  # columns of outcomes
            if isinstance(each, str):
                self._check_column(name, each)
                self._columns[name] = each
            elif name == "value" and each is not None and not is_list(each):
                raise InvalidValue(
                    f"value={short_repr(each)} for {self._n} points: pass one value for each, or a column"
                )
            elif each is not None:
                self._lists[name] = for_each(name, each, self._n)
            elif self._has_values and name in self._others:
                self._columns[name] = name
        self._amounts = [name for name in ("std", "cost", "duration") if name in {*self._columns, *self._lists}]
        has_state = self._has_values and "state" in self._others
        self._states = self._cells["state"] if has_state else [None] * self._n
        self._errors = self._cells["error"] if self._has_values and "error" in self._others else [None] * self._n
        self._attrs_columns = {
            name.removeprefix("attrs_"): name
            for name in self._others
            if name.startswith("attrs_") and self._plain is None
        }
        wanted = [attrs] if isinstance(attrs, str) else attrs if is_list(attrs) else []
        if len(wanted) and all(isinstance(name, str) for name in wanted):
            for name in wanted:
                self._check_column("attrs", name)
                self._attrs_columns[name] = name
            attrs = None
        self._attrs = for_each("attrs", attrs, self._n)

    def _check_alike(self) -> None:
        """Refuse columns that repeat the name of a column that is read, and warn of those that almost do."""
        parts = (self._point, self._run, self._outcomes, self._columns, self._attrs_columns, self._context)
        read = {*self._of_outcomes, *self._curve, *(name for part in parts for name in part.values())}
        read |= {"state", "error"} & set(self._others) if self._has_values else set()
        known = {_without_marks(name): name for name in read}
        folded = {name.casefold(): known[name] for name in known}
        for name in self._others:
            if name in read or name.startswith("params_"):  # trials that were left out may have other parameters
                continue
            plain = _without_marks(name)
            if plain in known:
                raise InvalidValue(
                    f"the table has the columns {known[plain]!r} and {name!r}, which seem to be the same name twice: "
                    "rename or remove one of them"
                )
            if plain.casefold() in folded:
                warn(
                    f"the table has the columns {folded[plain.casefold()]!r}, which is read, and {name!r}, which is "
                    "ignored: rename or remove one of them"
                )

    def _check_column(self, argument: str, name: str) -> None:
        if name not in self._cells:
            from belated.hints import nearest

            near = nearest(name, self._cells)
            advice = f"did you mean {near!r}?" if near else f"it has {list(self._cells)}"
            raise InvalidValue(f"{argument}={name!r} is not a column of the table: {advice}")

    def _read_contexts(self, context: Any) -> None:
        """Find the columns of the context, or convert the argument `context`."""
        contexts = self._problem.context_space
        self._contexts: list[list[float] | None] | None = None
        self._context: dict[str, str] = {}
        if context is not None or contexts is None:
            self._contexts = self._problem.contexts(context, self._n)
            return
        for name in contexts:
            found = [each for each in (f"context_{name}", name) if each in self._others]
            if len(found) > 1 and name in _NAMES:
                found = found[:1]  # the plain column contains another fact
            if len(found) > 1:
                raise InvalidContext(f"the table has the columns {found[0]!r} and {found[1]!r}: keep one of them")
            if found:
                self._context[name] = found[0]
            elif self._n and contexts[name].width and self.needs_points:
                raise InvalidContext(
                    f"context misses [{name!r}]: the table has no column {name!r} or {f'context_{name}'!r}; add it, or "
                    "pass context="
                )

    def _column_of(self, reason: str) -> str:
        """Return the column to which an error belongs. Errors about points and contexts name the parameter."""
        known: dict[str, str] = {}
        domain = self._problem.domain
        if self._column == "point":
            if self._plain is None and isinstance(domain, Space):
                known = {name: f"params_{name}" for name in domain}
                known |= self._point | (self._run if self._in_run else {})
            elif isinstance(domain, Space):
                known = {name: name for name in (*self._cells, *domain)}
            else:
                known = self._point or {
                    name: name for name in ("index_run", "index", *self._cells) if name in self._cells
                }
        elif self._column == "context":
            known = dict(self._context)
        if self._column not in ("point", "context"):
            return self._column
        # The error names its parameter first, as in params['T'] or misses ['T'].
        named = {reason.find(f"[{name!r}"): column for name, column in known.items() if f"[{name!r}" in reason}
        return named[min(named)] if named else next(iter(known.values()), "index")

    # Rows.

    def rows(self, on_error: str) -> Rows:
        """Read all rows, and then raise an error if a row cannot be added.

        Errors name the row by its label in the index, and the column.
        """
        rows, skipped, first = [], [], None
        for i in range(self._n):
            try:
                row = self._row(i)
            except BelatedError as error:
                # A trial of Optuna may have ended before all of its parameters were suggested, or may not have started.
                is_left_out = self._is_of_optuna and self._column == "point" and self._states[i] != "observed"
                if is_left_out and on_error == "raise":
                    continue
                reason = str(error).removesuffix(" (nothing was changed)")
                skipped.append(SkippedRow(self._labels[i], self._column_of(reason), reason))
                first = first or (None if is_left_out else error)
            else:
                if row is not None:
                    rows.append(row)
                elif on_error == "skip":
                    skipped.append(SkippedRow(self._labels[i], self._column, "the value is missing"))
        if first is not None and on_error == "raise":
            label, column, reason = skipped[0]
            others = [short_repr(each.row) for each in skipped[1:]]
            more = f"; other rows with errors: {', '.join(others[:_SHOWN])}" if others else ""
            more += f", … ({len(others)})" if len(others) > _SHOWN else ""
            raise type(first)(
                f'row {short_repr(label)}, column {column!r}: {reason} (nothing was added{more}; on_error="skip" adds '
                "the rows without errors)"
            )
        return Rows(rows, skipped)

    def _row(self, i: int) -> Row | None:
        """Return the actions of a row; None if its value is missing and such rows are left out."""
        self._column, reason = _LEFT_OUT, self._left_out[i]
        if reason is not None:
            raise InvalidPoint(
                f"the trial was left out by a revision ({reason}): correct its point, and empty this cell"
            )
        if self._problem.outcomes:
            results = self._states_of_outcomes(i)
        else:
            state, y = self._state(i)
            self._column = self._columns.get("value", "value")
            results = [] if state is None else [Result(state, y)]
        for result in results:
            if result.value is not None and not math.isfinite(result.value):
                Observation([(0, result.value, None)], what="this row")  # raises an error
        if not results:
            return None
        amounts: dict[str, Any] = {}
        for name in self._amounts:
            amount = self._amount(name, self._columns.get(name, name), self._fact(name, i))
            if amount is not None:
                amounts[name] = amount
        if not self._problem.outcomes and "std" in amounts:
            results = [Result(results[0].state, results[0].value, amounts["std"])]
        fidelity = self._fidelity(i)
        self._column = "point"
        place = self._place(i)
        self._column = "context"
        context = self._context_at(i)
        if self._carrier is not None:
            self._column = "point"
            place, context = self._carrier.start(place, context)
        self._column = "attrs"
        attrs = self._attrs_at(i)
        curve = self._curve_reports(i) if self._curve else []
        states = [each.state for each in results]
        error, whole = None, None
        if "withdrawn" in states:
            results = self._with_withdrawals(i, results)
            withdrawals = [each.withdrawal for each in results if each.withdrawal is not None]
            states += [each[0] for each in withdrawals]
            whole = withdrawals[0] if self._states[i] == "withdrawn" else None
        if "failed" in states:
            self._column = "error"
            cell = self._errors[i]
            error = error_facts(None if cell is None else str(text_in(cell)))
        has_outcomes = bool(self._problem.outcomes)
        if self._carrier is not None and self._carrier.problem.outcomes:
            results, has_outcomes = self._carried(results, self._carrier), True
        trial = ImportedTrial(
            results,
            has_outcomes,
            whole,
            error,
            amounts.get("cost"),
            amounts.get("duration"),
            curve=curve,
            what="this row",
        )
        values = [(each.value, each.std) for each in results]
        costs = (amounts.get("cost"), amounts.get("duration"))

        def facts() -> str:
            known = {} if attrs is None else merged_attrs([attrs])
            return _as_text((place, list(context or ()), fidelity, values, *costs, known))

        has_value = any(each.value is not None for each in results)
        return Row(*trial.adding(place, context, fidelity, attrs), self._labels[i], facts, has_value)

    def _amount(self, name: str, column: str, given: Any) -> float | None:
        """Check the std, cost or duration that is given in a column."""
        self._column = column
        given = seconds_in(given) if name == "duration" else given
        amount = as_amount(name, given, "this row", self._problem.warn_once)
        if amount is None:
            return None
        cost, duration = amount if name == "cost" else None, amount if name == "duration" else None
        std = amount if name == "std" else None
        Observation([(0, 0.0, std)], cost, duration, what="this row")  # checks the range
        return amount

    def _fidelity(self, i: int) -> float | None:
        self._column = self._columns.get("fidelity", "fidelity")
        # If no fidelity is given, the value is assumed to come from an evaluation at the highest fidelity.
        found = full_fidelity(self._problem, self._problem.check_fidelity(self._fact("fidelity", i)))
        return found if self._carrier is None else self._carrier.fidelity(found)

    def _number(self, column: str, i: int, dimension: Dimension | Fidelity | None = None) -> Any:
        """Return the number in a cell; in the range of the dimension, up to rounding errors."""
        cell = self._cells[column][i]
        if type(cell) is not float:
            cell = number_in(cell)
        return cell if dimension is None else in_range(dimension, cell)

    def _fact(self, name: str, i: int) -> Any:
        if name in self._columns:
            return self._number(self._columns[name], i, self._problem.fidelity if name == "fidelity" else None)
        return self._lists[name][i] if name in self._lists else None

    def _state(self, i: int) -> tuple[str | None, float | None]:
        """Return the state of a row, and its value. The state is None if the row is left out."""
        state = self._checked_state("state", self._states[i])
        self._column = self._columns.get("value", "value")
        given = self._fact("value", i)
        if given is not None:
            return "observed", self._value_in_state(given, state)
        if state in (None, "observed") and (state == "observed" or "value" in self._columns):
            return self._without_value(), None
        return state or "pending", None

    def _checked_state(self, column: str, state: Any) -> str | None:
        self._column = column
        if state is not None and state not in _STATES:
            raise InvalidValue(f"state={short_repr(state)} is not one of {list(_STATES)}: correct it")
        return None if state is None else str(state)

    def _value_in_state(self, given: Any, state: str | None) -> float:
        """Check a value, and that its state allows a value."""
        if state not in (None, "observed", "pending"):
            raise InvalidValue(f"value={short_repr(given)} and state={state!r}: empty one of the two cells")
        return as_number("value", given, "this row")

    def _without_value(self) -> str | None:
        """Return the state of a trial whose value is missing; None if its row is left out."""
        if self._missing == "raise":
            raise InvalidValue(
                'the value is missing: fill it in, or pass missing="skip" to leave such rows out, or missing="pending"'
            )
        return None if self._missing == "skip" else "pending"

    def _place(self, i: int) -> Place:
        self._in_run = False
        return self._problem.domain.locate(self._point_of(i), measured=True)

    def _point_of(self, i: int) -> Any:
        """Return the point of a row: values by name, or the index or the numbers of a candidate."""
        domain = self._problem.domain
        if self._plain is not None:
            return self._plain[i]
        if isinstance(domain, Space):
            return self._values(domain, self._point_cells(i), i)
        if self._point:
            return [self._number(name, i) for name in self._point]
        index = None
        for suffix in ("_run", ""):
            names = [f"x{suffix}_{k}" for k in range(domain.width)]
            if all(self._cells.get(name, [None] * self._n)[i] is not None for name in names):
                return [self._number(name, i) for name in names]  # the point is not a candidate
            index = number_in(self._cells.get(f"index{suffix}", [None] * self._n)[i])
            if index is not None:
                break
        # pandas reads a column of integers with empty cells as floats.
        return int(index) if isinstance(index, float) and index.is_integer() else index

    def _point_cells(self, i: int) -> dict[str, str]:
        """Return the columns of the point that was run (not of the suggested point), because the model uses it.

        A parameter without a column for runs has the suggested value.
        """
        self._in_run = any(self._cells[column][i] is not None for column in self._run.values())
        found = self._point | self._run if self._in_run else self._point
        return {name: column for name, column in found.items() if self._cells[column][i] is not None}

    def _values(self, space: Space, columns: Mapping[str, str], i: int) -> dict[str, Any]:
        """Return the values in the cells of a row, by name; the cells of inactive parameters are empty."""
        values = {name: self._value(space, name, column, i) for name, column in columns.items()}
        # If the cell of an active parameter is empty, its value is a choice that is written as an empty cell, such as
        # None. This choice may make further parameters active.
        empty = [name for name in self._emptied if name not in columns and name in self._point]
        for name in empty:
            # pandas reads the choice "NA" from a file as an empty cell, so a column with this text is not from a file.
            cells = self._cells[self._point[name]]
            is_from_file = not any(isinstance(cell, str) and as_read(cell) is None for cell in cells)
            if isinstance(space, NamedCandidates) and name in space.optional and is_from_file:
                choices = [each for each in choices_of(space[name]) or () if as_read(each) is None]
                raise InvalidSpace(
                    f"{space.point_argument}[{name!r}] is empty, which may be a gap or one of the choices {choices}: "
                    "add the trials as dicts, or rename choices"
                )
        for _ in empty:
            for name in empty:
                column = self._run.get(name, self._point[name]) if self._in_run else self._point[name]
                if name not in values and name in space.active_names(values):
                    values[name] = self._value(space, name, column, i)
        return values

    def _value(self, space: Space, name: str, column: str, i: int) -> Any:
        """Return the value of a cell.

        If a cell is not a value of the parameter, return the cell unchanged; the space later raises an error for it.
        """
        dimension, cell = space[name], self._cells[column][i]
        choices = choices_of(dimension)
        if choices is None:
            return self._number(column, i, dimension)
        key = (name, repr(cell))
        if key not in self._choices:
            self._choices[key] = choice_in(dimension, f"{space.point_argument}[{name!r}]", cell)
        return self._choices[key]

    def _context_at(self, i: int) -> list[float] | None:
        contexts = self._problem.context_space
        if self._contexts is not None or contexts is None:
            return None if self._contexts is None else self._contexts[i]
        self._in_run = False
        columns = {name: column for name, column in self._context.items() if self._cells[column][i] is not None}
        values = {name: self._value(contexts, name, column, i) for name, column in columns.items()}
        for name, column in self._context.items():
            if name not in values and None in map(as_read, choices_of(contexts[name]) or ()):
                values[name] = self._value(contexts, name, column, i)
        return contexts.numbers(values)

    def _attrs_at(self, i: int) -> str | None:
        if not self._attrs_columns and self._attrs[i] is None:
            return None
        found = {}
        for key, column in self._attrs_columns.items():
            cell = self._cells[column][i]
            if cell is not None:
                found[key] = cell.isoformat() if isinstance(cell, date) else text_in(cell)
        given = self._attrs[i]
        if found and isinstance(given, Mapping):
            found |= given
        return attrs_as_json(found or given)

    def _curve_reports(self, i: int) -> list[tuple[int, float]]:
        """Return the steps of the learning curve, and their values."""
        found = []
        for column in self._curve:
            self._column, value = column, self._number(column, i)
            if value is not None:
                y = as_number("value", value, "this row")
                if abs(y) == float("inf"):
                    raise InvalidValue(f"value={y} for this row is not usable: pass a finite number")
                step = int(column.removeprefix("curve_"))
                if self._carrier is not None:
                    self._carrier.check_step(step)
                found.append((step, y))
        return found

    def _with_withdrawals(self, i: int, results: Sequence[Result]) -> list[Result]:
        """Return the results of a row, with their withdrawals. A withdrawn result without a value has failed."""
        names = [f"_{name}" for name in self._problem.outcomes] or [""]
        found = []
        for name, each in zip(names, results, strict=True):
            withdrawal = None
            if each.state == "withdrawn":
                y = self._withdrawn_value(f"{_WITHDRAWN_VALUE}{name}", i)
                state = "failed" if y is None else "observed"
                withdrawal = (state, y, self._reason(i, f"{_WITHDRAWN_REASON}{name}"), None)
            found.append(each._replace(withdrawal=withdrawal))
        return found

    def _carried(self, results: Sequence[Result], carrier: Carrier) -> list[Result]:
        """Return the results of a row for the outcomes of the present problem."""
        names = list(self._problem.outcomes) or [""]
        positions = carrier.outcomes([name for name, each in zip(names, results, strict=True) if each != _MISSING])
        rest, state = _MISSING, results[0].state
        if not self._problem.outcomes and state in ("failed", "abandoned", "stopped"):
            # The end of a trial ends all its outcomes.
            rest = Result("failed" if state == "failed" else "abandoned")
        found = [rest] * len(carrier.problem.outcomes)
        for name, each in zip(names, results, strict=True):
            if name in positions:
                found[positions[name]] = each
        return found

    def _withdrawn_value(self, column: str, i: int) -> float | None:
        self._column = column
        value = self._number(column, i) if column in self._cells else None
        if value is None:
            return None
        y = as_number("value", value, "this row")
        Observation([(0, y, None)], what="this row")  # checks the range
        return y

    def _reason(self, i: int, column: str) -> str | None:
        """Return the reason of a withdrawal, which is in a column."""
        self._column = column
        cell = self._cells.get(column, [None] * self._n)[i]
        return None if cell is None else as_text("reason", str(text_in(cell)))

    # Outcomes.

    def _states_of_outcomes(self, i: int) -> list[Result]:
        """Return the state, value and std of each outcome; an empty list if the row is left out."""
        outcomes = self._problem.outcomes
        found: list[Result] = []
        of_row = self._checked_state("state", self._states[i])
        # The state of outcomes without a value and without a state.
        rest = "pending" if of_row in (None, "observed") else of_row
        listed = self._lists["value"][i] if "value" in self._lists else None
        self._column = "value"
        known = {} if listed is None else {k: y for k, y, _ in self._values_of(listed)}
        for k, name in enumerate(outcomes):
            state = self._checked_state(f"{_STATE}{name}", self._of_outcome(f"{_STATE}{name}", i))
            self._column, value = self._outcomes.get(name, name), known.get(k)
            if name in self._outcomes:
                value = self._number(self._column, i)
            if self._is_of_objective and name == self._problem.objective:
                value = self._value_of_objective(value, i)
            if value is not None:
                found.append(Result("observed", self._value_in_state(value, state), self._std_of(name, i)))
            else:
                if state == "observed" and self._without_value() is None:
                    return []
                found.append(Result(rest if state in (None, "observed") else state))
        self._column = next(iter(self._outcomes.values()), "value")
        is_given = of_row == "observed" or (of_row is None and "value" not in self._lists)
        if is_given and all(each.state == "pending" for each in found):
            return [] if self._without_value() is None else found
        return found

    def _values_of(self, listed: Any) -> list[tuple[int, float, float | None]]:
        return values_of(self._problem.outcomes, "this row", listed, None, self._problem.warn_once)

    def _value_of_objective(self, value: Any, i: int) -> Any:
        """Return the value of the objective, which may be in the column ``value``, too."""
        other, column = self._fact("value", i), self._column
        if other is None or value == other:
            return value
        if value is not None:
            raise InvalidValue(
                f"{column}={short_repr(value)} and value={short_repr(other)}: correct one of the two cells"
            )
        self._column = "value"
        return other

    def _std_of(self, name: str, i: int) -> float | None:
        column = f"{_STD}{name}"
        if self._of_outcome(column, i) is not None:
            return self._amount("std", column, self._number(column, i))
        # A column of the table belongs to the objective, and the argument std to all values.
        if name != self._problem.objective and "std" in self._columns:
            return None
        return self._amount("std", self._columns.get("std", "std"), self._fact("std", i))

    def _of_outcome(self, column: str, i: int) -> Any:
        return self._cells[column][i] if column in self._of_outcomes else None


def separator_advice(names: Sequence[str]) -> str:
    """Return advice for a table from a file whose cells are not separated by commas; "" for other tables."""
    line = ",".join(names)
    for separator in (";", "\t"):
        if line.count(separator) > 0 and line.count(separator) >= line.count(","):
            return (
                f"its cells seem to be separated by {separator!r}: save the file with ',' between cells and '.' in "
                f"numbers, or as .xlsx, or read it with pandas.read_csv(…, sep={separator!r}, decimal=',')"
            )
    return ""


def check_policies(missing: Any, on_error: Any, duplicates: Any, table: bool) -> None:
    """Check the arguments `missing`, `on_error` and `duplicates` of `add`."""
    if missing not in ("raise", "skip", "pending"):
        raise InvalidSetting(f'missing={short_repr(missing)} is not usable: pass "raise", "skip" or "pending"')
    if on_error not in ("raise", "skip"):
        raise InvalidSetting(f'on_error={short_repr(on_error)} is not usable: pass "raise" or "skip"')
    if duplicates not in ("warn", "skip"):
        raise InvalidSetting(f'duplicates={short_repr(duplicates)} is not usable: pass "warn" or "skip"')
    if not table and (missing, on_error, duplicates) != ("raise", "raise", "warn"):
        raise InvalidSetting("missing, on_error and duplicates are for tables: pass params as a pandas DataFrame")
