"""The results that trials of Optuna have in belated's terms.

Trials are recognised by their attributes, without importing Optuna.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from belated.optimizers.imported import Result
from belated.short_repr import short_repr

# Optuna keeps the values of constraints in a list under this key, or keeps each value under "constraints:name".
CONSTRAINTS = "constraints"


class OptunaResult(NamedTuple):
    """The state of a trial in belated's terms."""

    state: Literal["pending", "observed", "failed", "abandoned", "stopped"]
    value: float | None = None
    error: str | None = None


def result_of_trial(trial: Any, constrained: bool = True) -> OptunaResult:
    """Return the outcome of a trial of Optuna.

    A COMPLETE trial is observed, or failed if a constraint is violated (its value is above 0) or the value is not
    finite. A FAIL trial is failed. A PRUNED trial is abandoned. A RUNNING or WAITING trial is pending. If `constrained`
    is False, constraints are ignored.
    """
    state = trial.state.name
    if state == "COMPLETE":
        [value] = trial.values
        return result_of_value(trial, value, constrained)
    if state == "FAIL":
        return OptunaResult("failed")
    return OptunaResult("abandoned" if state == "PRUNED" else "pending")


def result_beside_curve(trial: Any, constrained: bool = True) -> OptunaResult:
    """Return the outcome of a trial of Optuna whose reports are in the log.

    A PRUNED trial counts as stopped, or as failed if it does not have reports, its last report is not finite or a
    constraint is violated. If `constrained` is False, constraints are ignored.
    """
    if trial.state.name != "PRUNED":
        return result_of_trial(trial, constrained)
    reported = trial.intermediate_values
    if not reported:
        return OptunaResult("failed")
    outcome = result_of_value(trial, reported[max(reported)], constrained)
    return OptunaResult("stopped") if outcome.state == "observed" else outcome


def result_of_value(trial: Any, value: float, constrained: bool = True) -> OptunaResult:
    """Return "observed" with this value, or "failed" if the value is not finite or the trial violates a constraint.

    If `constrained` is False, constraints are ignored.
    """
    violated = [each for each in constraint_values(trial.system_attrs).values() if constrained and not each <= 0]
    if violated:
        return OptunaResult("failed", error=f"infeasible: constraints at {short_repr(violated)} are above 0")
    if not math.isfinite(value):
        return OptunaResult("failed", error=f"its value is {value}")
    return OptunaResult("observed", value)


def constraint_values(system_attrs: Mapping[str, Any]) -> dict[str, float]:
    """Return the values of a trial's constraints by name. A constraint without a name is named by its position."""
    listed = system_attrs.get(CONSTRAINTS) or ()
    named = sorted(key for key in system_attrs if key.startswith(f"{CONSTRAINTS}:"))
    values = {f"{CONSTRAINTS}[{i}]": value for i, value in enumerate(listed)}
    return values | {key: system_attrs[key] for key in named}


def results_of(outcome: OptunaResult, constraints: Sequence[float | None], at: float | None) -> list[Result]:
    """Return the results of the value and of the constraints of a trial, which are outcomes of an optimizer.

    A constraint at infinity has failed. A constraint at -infinity, which holds, cannot be modelled and is abandoned.
    Missing constraints of an ended trial are abandoned; if the evaluation has failed, they have failed, too.
    """
    # The error of a trial that was evaluated is an infinite value.
    is_crash = outcome.state == "failed" and outcome.error is None
    missing = "pending" if outcome.state == "pending" else "failed" if is_crash else "abandoned"
    found = [Result(outcome.state, outcome.value, at=at)]
    for c in constraints:
        if c is not None and math.isfinite(c):
            found.append(Result("observed", c, at=at))
        else:
            found.append(Result(missing if c is None else "failed" if _fails(c) else "abandoned", at=at))
    return found


def error_of(outcome: OptunaResult, constraints: Sequence[float | None]) -> tuple[str, str, str | None] | None:
    """Return why outcomes of a trial have failed, in the form that the core takes."""
    infinite = [c for c in constraints if c is not None and _fails(c)]
    if outcome.state == "failed":
        return None if outcome.error is None else ("", outcome.error, None)
    return ("", f"the value of a constraint is {infinite[0]}", None) if infinite else None


def _fails(constraint: float) -> bool:
    return not math.isfinite(constraint) and constraint != -math.inf
