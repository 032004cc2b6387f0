"""Learning curves: their declaration, and the rules that stop trials before the last step."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from belated._core import InvalidSetting
from belated.optimizers.report import as_index, as_number
from belated.optimizers.values import Value, checked
from belated.short_repr import short_repr

# "auto", or a string that stands for a rule with default fields.
StoppingName: TypeAlias = Literal["auto", "asha", "median", "model"]


@dataclass(frozen=True)
class Curve:
    """The learning curve of each trial, such as the validation accuracy after each epoch.

    A trial reports a value at each of the steps 1, 2, …, `steps`. Steps may be left out.

    Parameters
    ----------
    steps : int
        The last step, at least 1.
    value : {"last", "best"}, default "last"
        Which value of the curve is the value of the trial: the value at the last step, or the best value at any step.

    Raises
    ------
    InvalidSetting
        steps is not an integer >= 1, or value is another string.

    Examples
    --------
    >>> import belated as bl
    >>> def f(params):  # a generator: each value is reported as the next step
    ...     accuracy = 0.0
    ...     for epoch in range(20):
    ...         accuracy += params["lr"] * (0.9 - accuracy)
    ...         yield accuracy
    >>> optimizer = bl.RandomSearch({"lr": (0.01, 0.5)}, curve=bl.Curve(20), stopping="asha", seed=0)
    >>> result = bl.maximize(f, optimizer=optimizer, n_trials=20)
    >>> len(result.best_trial_.curve), any(trial.state == "stopped" for trial in result.trials)
    (20, True)
    """

    steps: int
    value: Literal["last", "best"] = "last"

    def __post_init__(self) -> None:
        steps = checked(self.steps, int, "steps")
        if not 1 <= steps < 2**32:
            raise InvalidSetting(f"steps={steps} of Curve is not usable: pass an integer from 1 to 2**32 - 1")
        object.__setattr__(self, "steps", steps)
        checked(self.value, Literal["last", "best"], "value")


def check_curve(curve: Any) -> None:
    """Raise InvalidSetting unless the argument `curve` is a `Curve` or None."""
    if curve is not None and not isinstance(curve, Curve):
        raise InvalidSetting(f"curve={short_repr(curve)} is not usable: pass bl.Curve(steps), or None")


def converted_report(curve: Curve | None, number: int, step: Any, value: Any) -> tuple[int, float]:
    """Return the step and the value of a report as numbers, whose ranges the core checks."""
    what = f"trial {number}"
    # Without a curve, the core refuses any step.
    return 0 if curve is None else as_index("step", step, 1, what), as_number("value", value, what)


class Stopping(Value, argument=True):
    """A rule that stops trials before the last step of their curves."""

    # Whether the rule uses the model of the optimizer, and therefore the points of the trials.
    _uses_model: ClassVar[bool] = False


@dataclass(frozen=True, repr=False)
class ASHA(Stopping, name="asha"):
    """Asynchronous successive halving, in the variant that stops trials (Li et al. 2020, section 3.2).

    At each of the rungs ``min_step``, ``min_step * reduction``, ``min_step * reduction**2``, …, a trial continues if
    its value is among the best ``max(1, floor(n / reduction))`` of the n values at this rung so far. A trial is
    compared once at each rung, after the report that reaches it; so call ``should_stop`` after each report.

    Parameters
    ----------
    reduction : float, default 3.0
        At least 1.01.
    min_step : int, default 1
        The first rung, at least 1.
    """

    reduction: float = 3.0
    min_step: int = 1


@dataclass(frozen=True, repr=False)
class MedianStopping(Stopping, name="median"):
    """A trial is stopped if its best value so far is below the median of the finished trials at the same step.

    This is the median rule of Golovin et al. (2017), section 3.2.1, with values in place of running averages. If values
    are minimised, a trial is stopped if its best value is above the median.

    Parameters
    ----------
    min_trials : int, default 5
        While fewer trials have a value at the step and a result, all trials continue.
    min_step : int, default 1
        The first step at which a trial may be stopped.
    """

    min_trials: int = 5
    min_step: int = 1


@dataclass(frozen=True, repr=False)
class ModelStopping(Stopping, name="model"):
    """A trial is stopped if its curve makes it much less promising than its params alone.

    The model of `BayesOpt` forecasts the value at the last step, with and without the curve of the trial. A trial is
    stopped if the expected improvement given its curve, divided by the number of steps that are left, is below a third
    of the expected improvement without its curve, divided by the number of all steps. No trial is stopped before five
    curves have ended, or after half of its steps, because the model learns from complete curves how curves end.

    Parameters
    ----------
    power : float, default 1.0
        Expected improvements are divided by numbers of steps to this power, from 0 to 10. With 0, numbers of steps have
        no effect.
    """

    power: float = 1.0

    _uses_model = True
