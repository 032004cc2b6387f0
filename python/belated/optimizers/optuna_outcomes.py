"""The results that trials of Optuna have in belated's terms.

Trials are recognised by their attributes, without importing Optuna.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
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
    is False, constraints are ignored. Of several objectives, this is the outcome of the first one.
    """
    state = trial.state.name
    if state == "COMPLETE":
        return result_of_value(trial, trial.values[0], constrained)
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


def constraints_of(trials: Iterable[Any]) -> list[str]:
    """Return the names of the constraints of finished trials, in the order of their first appearance."""
    finished = (trial for trial in trials if trial.state.is_finished())
    return list(dict.fromkeys(name for trial in finished for name in constraint_values(trial.system_attrs)))


def further_values(trial: Any, n_objectives: int) -> list[float | None]:
    """Return the values of the objectives after the first; None if the trial does not have values.

    A value that is not finite is given as infinity, which `results_of` reads as a failure.
    """
    if trial.state.name != "COMPLETE":
        return [None] * (n_objectives - 1)
    return [value if math.isfinite(value) else math.inf for value in trial.values[1:]]


def results_of(outcome: OptunaResult, others: Sequence[float | None], at: float | None) -> list[Result]:
    """Return the results of a trial for the outcomes of an optimizer: the first objective, and other outcomes.

    `others` has the values of further objectives and of constraints. A value at infinity has failed. A constraint at
    -infinity, which holds, cannot be modelled and is abandoned. Missing values of an ended trial are abandoned; if the
    evaluation has failed, they have failed, too.
    """
    # The error of a trial that was evaluated is an infinite value.
    is_crash = outcome.state == "failed" and outcome.error is None
    missing = "pending" if outcome.state == "pending" else "failed" if is_crash else "abandoned"
    found = [Result(outcome.state, outcome.value, at=at)]
    for y in others:
        if y is not None and math.isfinite(y):
            found.append(Result("observed", y, at=at))
        else:
            found.append(Result(missing if y is None else "failed" if _fails(y) else "abandoned", at=at))
    return found


def error_of(outcome: OptunaResult, others: Sequence[float | None]) -> tuple[str, str, str | None] | None:
    """Return why outcomes of a trial have failed, in the form that the core takes."""
    if outcome.state == "failed":
        return None if outcome.error is None else ("", outcome.error, None)
    is_infinite = any(y is not None and _fails(y) for y in others)
    return ("", "the value of an objective or a constraint is infinite", None) if is_infinite else None


def _fails(value: float) -> bool:
    return not math.isfinite(value) and value != -math.inf
