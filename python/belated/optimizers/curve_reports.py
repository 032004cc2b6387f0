"""The methods of optimizers and studies for learning curves: reports of steps, and the end of trials."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from belated._core import Action, AlreadyObserved, InvalidSetting, InvalidValue
from belated.optimizers.curve import Curve, ModelStopping, Stopping
from belated.optimizers.values import checked
from belated.short_repr import short_repr
from belated.space.arguments import real_number, whole_number

if TYPE_CHECKING:
    from belated.optimizers.life_cycle import LifeCycle
    from belated.optimizers.optimizer import Optimizer
    from belated.optimizers.trial import Trial


def check_curve(curve: Any) -> None:
    """Raise InvalidSetting unless the argument `curve` is a `Curve` or None."""
    if curve is not None and not isinstance(curve, Curve):
        raise InvalidSetting(f"curve={short_repr(curve)} is not usable: pass bl.Curve(steps), or None")


def checked_rule(owner: type[Optimizer], curve: Any, stopping: Any) -> Stopping | None:
    """Check the arguments `curve` and `stopping` of an optimizer of a class, and return the rule that they denote."""
    name = owner.__name__
    check_curve(curve)
    if curve is not None and not owner._supports_curves:
        raise InvalidSetting(f"{name} does not support curves: leave curve out, or use BayesOpt or RandomSearch")
    if isinstance(stopping, str) and stopping == "auto":
        return ModelStopping() if curve is not None and owner._has_model else None
    if stopping is not None and curve is None:
        raise InvalidSetting(f"stopping={short_repr(stopping)} needs a curve: pass curve=bl.Curve(steps), too")
    rule: Stopping | None = checked(stopping, Stopping | None, "stopping")
    if isinstance(rule, ModelStopping) and not owner._has_model:
        raise InvalidSetting(f"stopping={short_repr(stopping)} needs a model, and {name} has none: pass bl.ASHA()")
    return rule


def checked_report(curve: Curve | None, number: int, step: Any, value: Any) -> tuple[int, float]:
    """Return the step and the value of a report; raise InvalidValue if a trial cannot have them."""
    given = whole_number(step)
    if curve is not None and (given is None or not 1 <= given <= curve.steps):
        raise InvalidValue(
            f"step={short_repr(step)} for trial {number} is not usable: pass an integer from 1 to {curve.steps}"
        )
    y = real_number(value)
    if y is None or math.isinf(y):
        raise InvalidValue(
            f"value={short_repr(value)} at step {step} of trial {number} is not usable: pass a finite number, or NaN "
            "for a step that failed"
        )
    # Without a curve, the core refuses any step.
    return given if curve is not None and given is not None else 0, y


def report(owner: LifeCycle[Any], number: int, step: Any, value: Any, attempt: Any) -> None:
    """Check and log a report of a step."""
    record = owner._current_log().trial(number)
    given, y = checked_report(owner._optimizer.curve, number, step, value)
    start = record.attempt if attempt is None else whole_number(attempt)
    if start is None or not 0 <= start < 2**32:
        raise InvalidValue(f"attempt={short_repr(attempt)} for trial {number} is not usable: pass an integer >= 0")
    owner._log.record(Action.report(number, given, y, start), owner._problem.wall_time())


def should_stop(owner: LifeCycle[Any], number: int) -> bool:
    """Return whether the evaluation of a trial should end; log the decision if it is new."""
    state = owner._current_log().trial(number).state
    if state != "pending":
        return state == "stopped"
    if owner._optimizer._rule is None or not owner._log.stops(number, owner._problem.wall_time()):
        return False
    try:
        owner._log.record(Action.stop(number), owner._problem.wall_time())
    except AlreadyObserved:  # another process has reported the value
        return False
    return True


def curve_of(trial: Trial) -> dict[int, float]:
    """Return the reported steps of a trial and their values."""
    return dict(trial._record.curve)
