"""Reading the arguments of `observe` in the core's terms."""

from typing import Any

from belated._core import TrialRecord
from belated.optimizers.log import Report
from belated.optimizers.problem import Problem
from belated.optimizers.report import attrs_as_json, check_amount
from belated.short_repr import short_repr
from belated.space.space import Location, Space


def report_of(
    problem: Problem,
    number: int,
    started: TrialRecord | None,
    std: Any,
    cost: Any,
    duration: Any,
    params: Any,
    attrs: Any,
) -> Report | None:
    """Return the report of a trial, or None if only its value is given; `params` is compared with record `started`."""
    if std is None and cost is None and duration is None and params is None and attrs is None:
        return None
    what = f"trial {number}"
    return Report(
        problem.check_std(std, what),
        check_amount("cost", cost, what),
        check_amount("duration", duration, what),
        None if started is None else _run_location(problem, started, params),
        attrs_as_json(attrs),
    )


def _run_location(problem: Problem, started: TrialRecord, params: Any) -> Location | None:
    """Return the location that was run, or None if it is the suggested one and no other was reported before."""
    domain = problem.domain
    place = domain.locate(params)
    # Compare decoded params: encoding a decoded value may change the last bit.
    if isinstance(domain, Space):
        same = domain.decode(place.point, None, place.given) == domain.decode(started.point, None, started.given)
    else:
        same = place.index == started.index
    if not same:
        return place
    return None if started.run is None else Location(started.point, started.index, started.given)


def in_words(**facts: Any) -> str:
    """Return the arguments given beside a value as text, for messages."""
    return "".join(f", {name}={short_repr(fact)}" for name, fact in facts.items() if fact is not None)
