"""The part that the callbacks of XGBoost and LightGBM share: the report of a boosting round."""

from collections.abc import Mapping

from belated._core import InvalidSetting
from belated.optimizers.trial import Trial
from belated.run.objective import RunningTrial
from belated.short_repr import short_repr
from belated.space.arguments import finite


class RoundReporter:
    """The base class of callbacks, which reports a metric of a trial after each boosting round."""

    def __init__(self, trial: RunningTrial | Trial, metric: str) -> None:
        if not isinstance(trial, (RunningTrial, Trial)):
            raise InvalidSetting(
                f"trial={short_repr(trial)} is not usable: pass the argument trial of the function of a run, or the "
                "result of suggest()"
            )
        if not isinstance(metric, str):
            raise InvalidSetting(f"metric={short_repr(metric)} is not usable: pass a name such as 'validation-auc'")
        self.trial = trial
        self.metric = metric

    def _report(self, step: int, evaluated: Mapping[str, float]) -> bool:
        """Report the value of the metric after a boosting round; return whether the training should stop.

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
        if self.metric not in evaluated:
            known = ", ".join(map(repr, evaluated))
            raise InvalidSetting(
                f"metric={self.metric!r} is not evaluated: "
                + (f"pass one of {known}" if known else "pass data for the evaluation to the training, too")
            )
        value = finite(evaluated[self.metric])
        self.trial.report(float("nan") if value is None else value, step)
        return self.trial.should_stop()
