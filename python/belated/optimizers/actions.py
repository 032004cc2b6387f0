"""Convert submissions to actions, which the log stores."""

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any, Protocol

from belated._core import (
    Action,
    InvalidFidelity,
    InvalidPoint,
    InvalidSetting,
    InvalidValue,
    Observation,
    TrialRecord,
)
from belated.optimizers.constraints import Constraints
from belated.optimizers.curve import converted_report
from belated.optimizers.outcomes import floats_of, position, values_of
from belated.optimizers.problem import Problem
from belated.optimizers.report import as_amount, as_index, as_number, attrs_as_json
from belated.optimizers.request import Carrier, Facts, Submission
from belated.short_repr import short_repr
from belated.space.arguments import is_list
from belated.space.candidates import Candidates, NamedCandidates
from belated.space.space import Place, Space


class Records(Protocol):
    """The part of a log that conversions read."""

    def trial(self, number: int) -> TrialRecord:
        """Return the record of a trial in its current state."""


def actions_of(submission: Submission, problem: Problem, log: Records, carrier: Carrier | None = None) -> list[Action]:
    """Return the actions of a submission, whose arguments are read in `problem`.

    `log` has the present records of the trials. If `problem` is not the present problem of the study, `carrier` carries
    what was read to the present problem.
    """
    verb, arguments = submission.verb, (problem, log, carrier, submission.trial, *submission.given)
    return [READERS_OF_ONE[verb](*arguments)] if verb in READERS_OF_ONE else READERS_OF_SEVERAL[verb](*arguments)


def _observed(
    problem: Problem,
    log: Records,
    carrier: Carrier | None,
    number: int,
    value: Any,
    facts: Facts,
    fidelity: Any,
    amend: bool,
    replicate: bool,
) -> Action:
    if amend and replicate:
        raise InvalidSetting("amend and replicate exclude each other: a value is replaced, or another one added")
    if fidelity is not None:
        _check_same_fidelity(problem, carrier, number, fidelity, log.trial(number))
    observation = _observation_of(problem, log, carrier, number, value, facts)
    return Action.observe(number, observation, amend, replicate)


def _observation_of(
    problem: Problem, log: Records, carrier: Carrier | None, number: int, value: Any, facts: Facts
) -> Observation:
    """Return the observation of a trial: the values of outcomes by their positions in the present problem."""
    std, cost, duration, params, attrs = facts
    has_data = cost is not None or duration is not None or params is not None or attrs is not None
    if std is None and not has_data and carrier is None:  # the most frequent case: floats, which need no conversion
        if problem.outcomes:
            if floats := floats_of(problem.outcomes, value):
                return Observation(floats)
        elif type(value) is float and isfinite(value):
            return Observation(value)
    what = f"trial {number}"
    if problem.outcomes:
        read = values_of(problem.outcomes, what, value, std, problem.warn_once)
    else:
        read = [(0, as_number("value", value, what), as_amount("std", std, what, problem.warn_once))]
    if carrier is not None and (problem.outcomes or carrier.problem.outcomes):
        names = list(problem.outcomes) or [""]
        positions = carrier.outcomes([names[i] for i, *_ in read])
        read = [(positions[names[i]], y, own) for i, y, own in read if names[i] in positions]
    if not read:
        raise InvalidValue(
            f"value={short_repr(value)} for trial {number} has no value: pass the value of at least one of "
            f"{list(problem.outcomes)}, or report nothing yet (nothing was changed)"
        )
    if not has_data:
        return Observation(read, what=what)
    place = None
    if params is not None:
        started = log.trial(number)
        place = problem.domain.locate(params, measured=True)
        if carrier is not None:
            place = carrier.point(place, started)
        if place == started.place and started.run is None and started.left_out is None:
            place = None  # the params equal the suggested point, and no other point was reported before
    return Observation(
        read,
        as_amount("cost", cost, what, problem.warn_once),
        as_amount("duration", duration, what, problem.warn_once),
        place,
        attrs_as_json(attrs),
        what=what,
    )


def positions_of(problem: Problem, carrier: Carrier | None, names: Sequence[str]) -> dict[str, int]:
    """Return the positions of outcomes in the present problem, by their names in `problem`."""
    if carrier is not None:
        return carrier.outcomes(names)
    known = list(problem.outcomes)
    return {name: known.index(name) for name in names}


def _check_same_fidelity(
    problem: Problem, carrier: Carrier | None, number: int, given: Any, record: TrialRecord
) -> None:
    """Raise an error if a fidelity differs from the fidelity of the trial."""
    wanted = problem.check_fidelity(given)
    started = problem.fidelity_of(record.fidelity)
    if wanted != started if carrier is None else not carrier.has_fidelity(wanted, record):
        started = started if carrier is None else carrier.problem.fidelity_of(record.fidelity)
        raise InvalidFidelity(
            f"fidelity={short_repr(given)} for trial {number}, which was started at {started!r}: report a value at "
            f"another fidelity by add(params, value, fidelity={short_repr(given)}) (nothing was changed)"
        )


def _failed(
    problem: Problem,
    log: Records,
    carrier: Carrier | None,
    numbers: list[int],
    error: tuple[str, str, str | None] | None,
    attrs: str | None,
    duration: float | None,
    outcome: str | None,
) -> list[Action]:
    i = _position(problem, carrier, outcome)
    return [Action.fail(number, error, attrs, duration, i) for number in numbers]


def _abandoned(
    problem: Problem, log: Records, carrier: Carrier | None, numbers: list[int], outcome: str | None
) -> list[Action]:
    i = _position(problem, carrier, outcome)
    return [Action.abandon(number, i) for number in numbers]


def _withdrawn(
    problem: Problem, log: Records, carrier: Carrier | None, numbers: list[int], reason: str | None, outcome: str | None
) -> list[Action]:
    i = _position(problem, carrier, outcome)
    return [Action.withdraw(number, reason, i) for number in numbers]


def _noted(
    problem: Problem,
    log: Records,
    carrier: Carrier | None,
    numbers: list[int],
    remark: str | None,
    attrs: str | None,
) -> list[Action]:
    return [Action.note(number, attrs, remark) for number in numbers]


def _confirmed(
    problem: Problem, log: Records, carrier: Carrier | None, numbers: list[int], outcome: str | None
) -> list[Action]:
    i = _position(problem, carrier, outcome)
    return [Action.confirm(number, i) for number in numbers]


def _position(problem: Problem, carrier: Carrier | None, outcome: str | None) -> int | None:
    """Return the position of the outcome of this name in the present problem; None for the whole trial."""
    if outcome is None:
        return None
    i = position(problem.outcomes, outcome)
    return i if carrier is None else carrier.outcome(outcome)


def _stopped(problem: Problem, log: Records, carrier: Carrier | None, number: int) -> Action:
    return Action.stop(number)


def _reported(
    problem: Problem, log: Records, carrier: Carrier | None, number: int, value: Any, step: Any, attempt: Any
) -> Action:
    given, y = converted_report(problem.curve, number, step, value)
    if carrier is not None:
        carrier.check_step(given)
    start = log.trial(number).attempt if attempt is None else as_index("attempt", attempt, 0, f"trial {number}")
    return Action.report(number, given, y, start)


def _added(
    problem: Problem,
    log: Records,
    carrier: Carrier | None,
    _: None,
    params: Any,
    several: Sequence[Any] | None,
    value: Any,
    context: Any,
    facts: Mapping[str, Any],
) -> list[Action]:
    """Return an action for each point. All arguments are checked before an action is returned.

    `several` has the points of `params`, or is None for a single point. `facts` has the entries std, cost, duration,
    attrs and fidelity; each is a single value for all points or a list of values.
    """
    points = [params] if several is None else several
    n = len(points)
    if several is not None and value is not None and not is_list(value):
        raise InvalidValue(f"value={short_repr(value)} for {n} points: pass one value for each")
    values = [value] if several is None else for_each("value", value, n)
    amounts = {name: for_each(name, facts[name], n) for name in ("std", "cost", "duration")}
    attrs, fidelities = (for_each(name, facts[name], n) for name in ("attrs", "fidelity"))
    contexts = problem.contexts(context, n)
    actions = []
    for i, point in enumerate(points):
        what = "params" if several is None else f"params[{i}]"
        place, numbers = _place_of(problem, point), contexts[i]
        cost, duration = (as_amount(name, amounts[name][i], what, problem.warn_once) for name in ("cost", "duration"))
        parts: list[tuple[str, float, float | None]] = []
        if problem.outcomes and values[i] is not None:
            names = list(problem.outcomes)
            found = values_of(problem.outcomes, what, values[i], amounts["std"][i], problem.warn_once)
            parts = [(names[k], y, own) for k, y, own in found]
        elif values[i] is not None:
            own = as_amount("std", amounts["std"][i], what, problem.warn_once)
            parts = [("", as_number("value", values[i], what), own)]
        # If no fidelity is given, the value is assumed to come from an evaluation at the highest fidelity.
        fidelity = full_fidelity(problem, problem.check_fidelity(fidelities[i]))
        text = attrs_as_json(attrs[i], f"attrs[{i}]" if is_list(facts["attrs"]) else "attrs")
        if carrier is not None:
            place, numbers = carrier.start(place, numbers)
            fidelity = carrier.fidelity(fidelity)
        actions.append(added_action(problem, carrier, (place, numbers, fidelity, text), parts, (cost, duration), what))
    return actions


def full_fidelity(problem: Problem, fidelity: float | None) -> float | None:
    """Return a fidelity; the highest fidelity for None if a fidelity was declared."""
    return problem.fidelity.high if fidelity is None and problem.fidelity is not None else fidelity


def added_action(
    problem: Problem,
    carrier: Carrier | None,
    start: tuple[Place, list[float] | None, float | None, str | None],
    values: Sequence[tuple[str, float, float | None]],
    amounts: tuple[float | None, float | None],
    what: str,
) -> Action:
    """Return the action that adds a trial.

    `start` has the point, the context, the fidelity and the attrs in the present problem. `values` has the name, value
    and std of each outcome that is known, with an empty name if `problem` has no outcomes. `amounts` are the cost and
    the duration, which belong to the first value.
    """
    place, context, fidelity, attrs = start
    present = problem if carrier is None else carrier.problem
    positions = positions_of(problem, carrier, [name for name, *_ in values]) if present.outcomes else {"": 0}
    known = [(positions[name], y, own) for name, y, own in values if name in positions]
    return Action.add(place, context, Observation(known, *amounts, what=what) if known else None, fidelity, attrs)


def _enqueued(
    problem: Problem,
    log: Records,
    carrier: Carrier | None,
    _: None,
    params: Any,
    fidelity: Any,
    constraints: Callable[[], Constraints | None],
    seed: Callable[[], list[int]],
) -> list[Action]:
    """Return an action for each point. All arguments are checked before an action is returned.

    A candidate with the given values is drawn at random if values are missing. The draw depends on the result of
    `seed` and on the position of the point in the list. In a space, missing values are chosen at the suggestion.
    `constraints` returns the constraints of the present problem.
    """
    known, numbers = constraints(), seed()
    several = problem.domain.several(params)
    points = [params] if several is None else several
    fidelities = for_each("fidelity", fidelity, len(points))
    actions = []
    for i, (point, wanted) in enumerate(zip(points, fidelities, strict=True)):
        what, present = "params" if several is None else f"params[{i}]", problem
        checked = problem.check_fidelity(wanted)
        if carrier is not None:
            point, present = _carried(problem, carrier, point), carrier.problem
            checked = None if checked is None else carrier.fidelity(checked)
        try:
            place, partial = _queued_place(present.domain, point, known, what, [*numbers, i])
        except InvalidPoint as error:
            if carrier is None:
                raise
            raise carrier.refusal(error) from None
        actions.append(Action.enqueue(place, checked, partial))
    return actions


def _carried(problem: Problem, carrier: Carrier, point: Any) -> Any:
    """Return a point, perhaps only a part of its values, with the names and values of the present problem."""
    domain = problem.domain
    if isinstance(domain, Candidates):
        return carrier.row(domain.locate(point))
    if isinstance(point, Mapping) and isinstance(domain, NamedCandidates):
        values, complete = {name: each for name, each in point.items() if name not in domain.describing}, True
    elif isinstance(point, Mapping):
        values = domain.checked_part(point)
        complete = not domain.missing(values)
    else:
        values, complete = domain.named_at(domain.locate(point)), True
    present = carrier.problem.domain
    assert isinstance(present, Space)
    return present.nested(carrier.part(values, complete))


def _queued_place(
    domain: Space | Candidates, point: Any, constraints: Constraints | None, what: str, seed: list[int]
) -> tuple[Place, bool]:
    """Return an enqueued point, and whether it is partial."""
    place: Place
    partial = False
    if isinstance(domain, NamedCandidates):
        place = domain.locate(domain.completed(point, seed))
    elif isinstance(domain, Space):
        place, partial = domain.locate_part(point)
    else:
        place = domain.locate(point)
    if constraints is not None and not partial:
        constraints.check(place, what)
    return place, partial


def for_each(name: str, given: Any, n: int) -> list[Any]:
    """Return n values, one for each point; `given` is a single value for all points, or a list of values."""
    each = list(given) if is_list(given) else [given] * n
    if len(each) != n:
        advice = "pass one for each" if name == "value" else "pass one for each, or one for all"
        raise InvalidValue(f"{name} has {len(each)} entries for {n} points: {advice}")
    return each


def _place_of(problem: Problem, point: Any) -> Place:
    """Convert a point that is passed to `add` to the form that the core takes."""
    domain = problem.domain
    try:
        return domain.locate(point, measured=True)
    except InvalidPoint as error:
        if (
            isinstance(domain, Space)
            and isinstance(point, Mapping)
            and domain.missing(domain.checked_part(point, measured=True))
        ):
            raise InvalidPoint(
                f"{error} (the model cannot use a value whose point is not known; enqueue chooses missing values)"
            ) from None
        raise


# The functions that read the arguments of calls, by the name of the method. They take the problem of the arguments, the
# records of the trials, the carrier to the present problem, the number of the trial, and the arguments.
READERS_OF_ONE: Mapping[str, Callable[..., Action]] = {
    "observe": _observed,
    "stop": _stopped,
    "report": _reported,
}
READERS_OF_SEVERAL: Mapping[str, Callable[..., list[Action]]] = {
    "fail": _failed,
    "abandon": _abandoned,
    "withdraw": _withdrawn,
    "note": _noted,
    "confirm": _confirmed,
    "add": _added,
    "enqueue": _enqueued,
}
