"""The intermediate values of Optuna's trials as reports of a learning curve of belated."""

import math
from collections.abc import Iterable
from typing import Any, TypeAlias

from belated import _core
from belated._core import Action, InvalidSetting
from belated.optimizers.curve import Curve

# The steps of a trial, in ascending order as Optuna counts them, and their values. The value of a step that failed is
# None, because NaN differs from itself and reports are compared.
Reports: TypeAlias = tuple[tuple[int, float | None], ...]
NO_REPORTS: Reports = ()


def reports_of(trial: Any) -> Reports:
    """Return the reports of a trial of Optuna. A step whose value is not finite has failed."""
    values = trial.intermediate_values.items()
    return tuple(sorted((step, value if math.isfinite(value) else None) for step, value in values))


def shift_of(curve: Curve | None, trials: Iterable[tuple[int, Reports]]) -> int:
    """Return the number that is added to Optuna's steps, which begin at 0 or 1, so that they begin at 1.

    `trials` are the numbers of trials and their reports. The result is 1 if a trial has reported step 0.

    Raises
    ------
    InvalidSetting
        A step is beyond the curve.
    """
    reporting = [(number, reports) for number, reports in trials if reports]
    shift = int(any(reports[0][0] == 0 for _, reports in reporting))
    for number, reports in reporting:
        check_last_step(curve, shift, number, reports[-1][0])
    return shift


def check_last_step(curve: Curve | None, shift: int, number: int, step: int) -> None:
    """Raise InvalidSetting if the step of a trial is beyond the curve."""
    if curve is not None and step + shift > curve.steps:
        raise InvalidSetting(
            f"trial {number} of Optuna reported step {step}, and curve={curve!r} has the steps {1 - shift} to "
            f"{curve.steps - shift}: pass curve=bl.Curve(steps) with the largest number of steps of a trial"
        )


def log_reports(
    core: _core.Optimizer, number: int, shift: int, reports: Iterable[tuple[int, float | None]], time: float | None
) -> None:
    """Add reports to a trial of a log."""
    for step, value in shifted(reports, shift):
        core.record(Action.report(number, step, value), time)


def shifted(reports: Iterable[tuple[int, float | None]], shift: int) -> list[tuple[int, float]]:
    """Return reports in the form that the core takes, with steps from 1 and NaN for steps that failed."""
    return [(step + shift, math.nan if value is None else value) for step, value in reports]
