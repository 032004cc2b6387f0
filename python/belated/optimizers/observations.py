"""Conversion of the arguments of `observe` to the form that the core takes."""

from typing import Any

from belated._core import TrialRecord
from belated.optimizers.log import Observation
from belated.optimizers.problem import Problem
from belated.optimizers.report import attrs_as_json, check_amount
from belated.short_repr import short_repr
from belated.space.space import Place


def observation_of(
    problem: Problem,
    number: int,
    started: TrialRecord | None,
    value: Any,
    std: Any,
    cost: Any,
    duration: Any,
    params: Any,
    attrs: Any,
) -> Observation:
    """Return the observation of a trial.

    `started` is the record of the trial if params were given; they are compared with its suggested point.
    """
    what = f"trial {number}"
    checked = problem.check_value(value, what)
    if std is None and cost is None and duration is None and params is None and attrs is None:
        return Observation(checked)
    return Observation(
        checked,
        problem.check_std(std, what),
        check_amount("cost", cost, what),
        check_amount("duration", duration, what),
        None if started is None else _place_run(problem, started, params),
        attrs_as_json(attrs),
    )


def _place_run(problem: Problem, started: TrialRecord, params: Any) -> Place | None:
    """Return the place of the evaluated point.

    Return None if it is the suggested point, and another point has not been reported before.
    """
    place = problem.domain.locate(params)
    return None if place == started.place and started.run is None else place


def in_words(**facts: Any) -> str:
    """Return the arguments that are not None as text, for messages."""
    return "".join(f", {name}={short_repr(fact)}" for name, fact in facts.items() if fact is not None)
