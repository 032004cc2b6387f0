"""Tables of `trials_dataframe` of Optuna, converted to the columns that `add` reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from belated._core import InvalidValue
from belated.optimizers.optuna_outcomes import result_of_trial
from belated.optimizers.outcomes import Outcomes
from belated.space.arguments import is_gap, real_number, whole_number
from belated.warn import warn

# In the order of their numbers.
_STATES = ("RUNNING", "COMPLETE", "PRUNED", "FAIL", "WAITING")

# The prefixes of columns, and the columns that belated's tables do not have.
_USER_ATTRS, _SYSTEM_ATTRS = "user_attrs_", "system_attrs_"
_TIMES = ("datetime_start", "datetime_complete")

# The names of all columns of Optuna, and of the index in a file.
_COLUMN = re.compile(
    r"(number|state|duration|intermediate_values|datetime_(start|complete)|values?(_.*)?"
    r"|(params|user_attrs|system_attrs)_.*|Unnamed: 0)?",
    re.DOTALL,
)

_ADVICE = "the last report of a pruned trial stands in place of its value: keep the column 'state'"

# A number in the repr of a list; NumPy's types have names such as float64.
_NUMBER = re.compile(r"(?<![\w.])-?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan)")

Columns = dict[str, list[Any]]


def converted(outcomes: Outcomes, table: Any, value: Any, missing: str) -> Any:
    """Return a table of Optuna with the columns and states of belated; None for other tables.

    `outcomes` are declared; `value` and `missing` are the arguments of `add`. Only complete trials have a value:
    Optuna's table has the last report of a pruned trial in its place.
    """
    names = list(map(_name, table.columns))
    if len(set(names)) < len(names) or not len(table):
        return None

    def cells(name: str) -> list[Any]:
        column = table.iloc[:, names.index(name)] if name in names else ()
        return [None if is_gap(cell) else cell for cell in column]

    is_certain = _is_of_optuna(names, cells)
    states = [_state(cell, is_certain) for cell in cells("state")] if "state" in names else None
    if not all(state in _STATES for state in states or ()):
        return None
    if states is None and not is_certain:
        if _may_be_of_optuna(names, cells):
            warn(f"the table has no column 'state': if it is a table of Optuna, and trials were pruned, {_ADVICE}")
        return None
    columns: Columns = {name: cells(name) for name in names if name}
    columns = _renamed(columns, outcomes, value)
    named = [*value.values()] if isinstance(value, Mapping) else [value] if isinstance(value, str) else []
    measured = [str(name) for name in named or ["value", *outcomes] if str(name) in columns]
    if states is not None:
        _set_states(columns, states, measured, not outcomes)
    else:
        _check_values(columns, measured, missing)
    kept = {name: cells for name, cells in columns.items() if not name.startswith(_SYSTEM_ATTRS)}
    return type(table)(kept, index=table.index, dtype=object)


def _name(name: Any) -> str:
    """Return the name of a column. In a file, the second line of names has gaps, which pandas fills."""
    if not isinstance(name, tuple):
        return str(name)
    return "_".join(part for part in map(str, name) if not re.match(r"$|Unnamed: \d+_level_\d+$", part))


def _is_of_optuna(names: list[str], cells: Callable[[str], list[Any]]) -> bool:
    """Return whether a table has columns that only tables of Optuna have. `cells` returns a column."""
    has_times = any(name in names for name in _TIMES)
    if has_times and "number" in names:
        return True
    if not _has_names_of_optuna(names):
        return False
    if has_times or any(name.startswith((_USER_ATTRS, _SYSTEM_ATTRS)) for name in names):
        return True
    durations = [cell for cell in cells("duration") if cell is not None]
    return bool(durations) and all(
        isinstance(cell, timedelta) or (isinstance(cell, str) and " days " in cell) for cell in durations
    )


def _may_be_of_optuna(names: list[str], cells: Callable[[str], list[Any]]) -> bool:
    """Return whether a table has the columns of Optuna, and trial numbers from 0, which belated's tables have, too."""
    if not _has_names_of_optuna(names):
        return False
    numbers = list(map(whole_number, cells("number")))
    return 0 in numbers and None not in numbers and len(set(numbers)) == len(numbers)


def _has_names_of_optuna(names: list[str]) -> bool:
    has_values = any(re.match(r"values?(_|$)", name) for name in names)
    has_params = any(name.startswith("params_") for name in names)
    return has_values and has_params and all(_COLUMN.fullmatch(name) for name in names)


def _state(cell: Any, may_be_number: bool) -> str:
    """Return the name of a state, which may be an object of Optuna, its text or its number."""
    number = whole_number(cell) if may_be_number else None
    if number is not None and 0 <= number < len(_STATES):
        return _STATES[number]
    return str(getattr(cell, "name", cell)).upper().removeprefix("TRIALSTATE.")


def _renamed(columns: Columns, outcomes: Outcomes, value: Any) -> Columns:
    """Return columns with the names of belated; raise InvalidValue if it is not known which one has the values."""
    new = {name: f"attrs_{name.removeprefix(_USER_ATTRS)}" for name in columns if name.startswith(_USER_ATTRS)}
    if value is None and "value" not in columns:
        # The metrics may have names.
        several = [name for name in columns if name.startswith("values_")]
        single = [name for name in columns if name.startswith("value_")]
        if several and not all(name.removeprefix("values_") in outcomes for name in several):
            example = {name: column for name, column in zip(outcomes or ("yield", "purity"), several, strict=False)}
            raise InvalidValue(
                f"the table of Optuna has {len(several)} objectives, {several}: name the column to use, as "
                f"value={several[0]!r}, or declare outcomes and name the column of each, as value={example!r}"
            )
        new |= {name: name.removeprefix("values_") for name in several}
        if len(single) == 1:
            new[single[0]] = "value"
    return {new.get(name, name) if new.get(name) not in columns else name: cells for name, cells in columns.items()}


def _set_states(columns: Columns, states: list[str], measured: list[str], constrained: bool) -> None:
    """Replace Optuna's states, and remove the values of trials that are not complete."""
    errors: list[str | None] = []
    for i, state in enumerate(states):
        trial = SimpleNamespace(state=SimpleNamespace(name=state), values=[0.0], system_attrs=_system_attrs(columns, i))
        found = result_of_trial(trial, constrained)
        for name in measured:
            number = real_number(columns[name][i])
            if found.state == "observed" and number is not None and abs(number) == float("inf"):
                trial.values = [number]
                found = result_of_trial(trial, constrained)
        columns["state"][i] = found.state
        errors.append(found.error)
        if found.state != "observed":
            for name in measured:
                columns[name][i] = None
    columns["error"] = errors


def _system_attrs(columns: Columns, i: int) -> dict[str, Any]:
    """Return the system attributes of a row that have the values of constraints. A file has the repr of a list."""
    found: dict[str, Any] = {}
    for name, cells in columns.items():
        if name.startswith(f"{_SYSTEM_ATTRS}constraints") and cells[i] is not None:
            key, cell = name.removeprefix(_SYSTEM_ATTRS), cells[i]
            listed = [float(each) for each in _NUMBER.findall(cell)] if isinstance(cell, str) else cell
            found[key] = listed[0] if ":" in key and isinstance(cell, str) else listed
    return found


def _check_values(columns: Columns, measured: list[str], missing: str) -> None:
    """Check the values of a table without states. Pruned trials cannot be told from complete ones."""
    if not any(cell is None for name in measured for cell in columns[name]):
        warn(f"the table of Optuna has no column 'state', so all values are used; if trials were pruned, {_ADVICE}")
        return
    # The rows were not selected by their states.
    problem = f"the table of Optuna has trials without a value and no column 'state', and {_ADVICE}"
    if missing == "raise":
        raise InvalidValue(f"{problem} (nothing was added)")
    warn(f"{problem}; all values count as missing")
    for name in measured:
        columns[name] = [None] * len(columns[name])
