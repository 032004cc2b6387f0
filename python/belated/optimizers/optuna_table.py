"""Tables of `trials_dataframe` of Optuna, converted to the columns that `add` reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from belated._core import InvalidValue
from belated.optimizers.optuna_outcomes import outcome_of
from belated.optimizers.outcomes import Outcomes
from belated.space.arguments import is_gap, real_number
from belated.warn import warn

_STATES = ("COMPLETE", "PRUNED", "FAIL", "RUNNING", "WAITING")

# The prefixes of columns, and the columns that belated's tables do not have.
_USER_ATTRS, _SYSTEM_ATTRS = "user_attrs_", "system_attrs_"
_TIMES = ("datetime_start", "datetime_complete")

# A number in the repr of a list; NumPy's types have names such as float64.
_NUMBER = re.compile(r"(?<![\w.])-?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan)")

Columns = dict[str, list[Any]]


def converted(outcomes: Outcomes, table: Any, value: Any, missing: str) -> Any:
    """Return a table of Optuna with the columns and states of belated; None for other tables.

    `outcomes` are declared; `value` and `missing` are the arguments of `add`. Only complete trials have a value:
    Optuna's table has the last report of a pruned trial in its place.
    """
    names = ["_".join(filter(None, map(str, name))) if isinstance(name, tuple) else str(name) for name in table.columns]
    if len(set(names)) < len(names) or not len(table):
        return None
    states = [_state(cell) for cell in table.iloc[:, names.index("state")]] if "state" in names else None
    if not all(state in _STATES for state in states or ()):
        return None
    if states is None and not ("number" in names and any(name in names for name in _TIMES)):
        return None
    columns: Columns = {
        name: [None if is_gap(cell) else cell for cell in table.iloc[:, i].astype(object)]
        for i, name in enumerate(names)
    }
    columns = _renamed(columns, outcomes, value)
    named = [*value.values()] if isinstance(value, Mapping) else [value] if isinstance(value, str) else []
    measured = [str(name) for name in named or ["value", *outcomes] if str(name) in columns]
    if states is not None:
        _set_states(columns, states, measured, not outcomes)
    else:
        _check_values(columns, measured, missing)
    kept = {name: cells for name, cells in columns.items() if not name.startswith(_SYSTEM_ATTRS)}
    return type(table)(kept, index=table.index, dtype=object)


def _state(cell: Any) -> str:
    """Return the name of a state, which may be an object of Optuna or its text."""
    return str(getattr(cell, "name", cell)).removeprefix("TrialState.")


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
        found = outcome_of(trial, constrained)
        for name in measured:
            number = real_number(columns[name][i])
            if found.state == "observed" and number is not None and abs(number) == float("inf"):
                trial.values = [number]
                found = outcome_of(trial, constrained)
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
    advice = "the last report of a pruned trial stands in place of its value: keep the column 'state'"
    if not any(cell is None for name in measured for cell in columns[name]):
        warn(f"the table of Optuna has no column 'state', so all values are used; if trials were pruned, {advice}")
        return
    # The rows were not selected by their states.
    problem = f"the table of Optuna has trials without a value and no column 'state', and {advice}"
    if missing == "raise":
        raise InvalidValue(f"{problem} (nothing was added)")
    warn(f"{problem}; all values count as missing")
    for name in measured:
        columns[name] = [None] * len(columns[name])
