"""The parts that the callbacks of XGBoost and LightGBM share: the check of arguments, and the report of a round."""

from collections.abc import Mapping
from typing import Any

from belated._core import InvalidSetting
from belated.optimizers.trial import Trial
from belated.run.objective import RunningTrial
from belated.short_repr import short_repr
from belated.space.arguments import finite


def check_arguments(trial: Any, metric: Any) -> None:
    """Raise InvalidSetting unless the arguments of a callback are a trial and the name of a metric."""
    if not isinstance(trial, (RunningTrial, Trial)):
        raise InvalidSetting(
            f"trial={short_repr(trial)} is not usable: pass the argument trial of the function of a run, or the result "
            "of suggest()"
        )
    if not isinstance(metric, str):
        raise InvalidSetting(f"metric={short_repr(metric)} is not usable: pass a name such as 'validation-auc'")


def report_round(trial: RunningTrial | Trial, metric: str, step: int, evaluated: Mapping[str, float]) -> bool:
    """Report the value of a metric after a boosting round; return whether the training should stop.

    A value that is not finite is reported as NaN, which means that the step failed.

    Parameters
    ----------
    evaluated : mapping of str to float
        The values of all evaluated metrics, by "<data>-<metric>".

    Raises
    ------
    InvalidSetting
        The metric is not evaluated.
    """
    if metric not in evaluated:
        known = ", ".join(map(repr, evaluated))
        raise InvalidSetting(
            f"metric={metric!r} is not evaluated: "
            + (f"pass one of {known}" if known else "pass data for the evaluation to the training, too")
        )
    value = finite(evaluated[metric])
    trial.report(float("nan") if value is None else value, step)
    return trial.should_stop()
