"""Results of Tune: steps of the learning curves of an optimizer's trials, values and durations."""

import math
from collections.abc import Mapping
from typing import Any

from belated.optimizers.optimizer import Optimizer
from belated.space.arguments import finite, whole_number
from belated.warn import warn

# The key under which Tune counts the results of a trial, from 1.
_STEP = "training_iteration"


class Steps:
    """Reports results as steps."""

    def __init__(self) -> None:
        self._warned = False

    def report(self, optimizer: Optimizer, number: int, result: Mapping[str, Any], metric: str) -> bool:
        """Report a result. Return True if a trial that ends with this result was stopped early.

        If the user's function returns, its last result was reported earlier. If Tune stops a trial, the end comes with
        the last result, or without a result if the trial was paused.
        """
        curve = optimizer.curve
        if curve is None:
            return False
        record = optimizer._log.trial(number)
        known, step = dict(record.curve), whole_number(result.get(_STEP))
        if step is None or metric not in result:
            return bool(known) and max(known) < curve.steps
        if step > curve.steps:
            # A function may also return its value after it has reported the last step.
            if step > curve.steps + 1 and not self._warned:
                self._warned = True
                warn(
                    f"a trial of Tune has more results than curve={curve!r} has steps, and the further results are not "
                    "steps: pass curve=bl.Curve(steps) with the largest number of results of a trial"
                )
            return False
        value = finite(result[metric])
        y = math.nan if value is None else value
        is_known = step in known and (known[step] == y or math.isnan(known[step]) and math.isnan(y))
        # A step with another value comes from a trial that Tune has started again.
        optimizer.report(number, y, step, attempt=record.attempt + (step in known and not is_known))
        return not is_known and step < curve.steps


def declared_value(optimizer: Optimizer, number: int, last: float) -> float:
    """Return the value of a trial whose last result is `last`, as its curve declares it."""
    if optimizer.curve is None or optimizer.curve.value == "last":
        return last
    reported = [value for _, value in optimizer._log.trial(number).curve if not math.isnan(value)]
    return (min if optimizer.direction == "minimize" else max)([last, *reported])


def duration_of(result: Mapping[str, Any]) -> float | None:
    """Return the seconds that a trial has taken, if Tune has measured them."""
    duration = finite(result.get("time_total_s"))
    return None if duration is None or duration < 0 else duration
