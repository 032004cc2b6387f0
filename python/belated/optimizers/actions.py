"""Convert the arguments of `observe`, `add` and `enqueue` to observations and actions, which the log stores."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from belated import _core
from belated._core import (
    Action,
    InvalidFidelity,
    InvalidPoint,
    InvalidSpace,
    InvalidValue,
    Observation,
    TrialRecord,
)
from belated.optimizers.constraints import Constraints
from belated.optimizers.outcomes import values_of
from belated.optimizers.problem import Problem
from belated.optimizers.report import as_amount, as_number, attrs_as_json
from belated.short_repr import short_repr
from belated.space.arguments import is_list
from belated.space.candidates import NamedCandidates
from belated.space.space import Place, Space

# The std, cost, duration, params and attrs that are reported with a value; each may be None.
Facts: TypeAlias = tuple[Any, Any, Any, Any, Any]


def observation_of(problem: Problem, number: int, started: TrialRecord | None, value: Any, facts: Facts) -> Observation:
    """Return the observation of a trial.

    If params were given, `started` is the record of the trial, whose suggested point is compared with the params.
    """
    std, cost, duration, params, attrs = facts
    what = f"trial {number}"
    y = as_number("value", value, what)
    if std is None and cost is None and duration is None and params is None and attrs is None:
        return Observation(y, what=what)  # the most frequent case
    place = None if started is None else problem.domain.locate(params, measured=True)
    if started is not None and place == started.place and started.run is None and started.left_out is None:
        place = None  # the params equal the suggested point, and no other point was reported before
    return Observation(
        y,
        as_amount("std", std, what, problem.warn_once),
        as_amount("cost", cost, what, problem.warn_once),
        as_amount("duration", duration, what, problem.warn_once),
        place,
        attrs_as_json(attrs),
        what=what,
    )


def outcome_observations(
    problem: Problem, number: int, started: TrialRecord | None, value: Any, facts: Facts
) -> list[tuple[int, Observation]]:
    """Return the observations of the outcomes of a trial, by their positions; see `observation_of`.

    The first observation has the data of the trial.
    """
    std, *data = facts
    found: list[tuple[int, Observation]] = []
    for outcome, y, own in values_of(problem.outcomes, f"trial {number}", value, std, problem.warn_once):
        given = (own, *data) if not found else (own, None, None, None, None)
        found.append((outcome, observation_of(problem, number, None if found else started, y, given)))
    if not found:
        raise InvalidValue(
            f"value={short_repr(value)} for trial {number} has no value: pass the value of at least one of "
            f"{list(problem.outcomes)}, or report nothing yet (nothing was changed)"
        )
    return found


def check_same_fidelity(problem: Problem, number: int, given: Any, known: float | None) -> None:
    """Raise an error if a fidelity differs from the trial's fidelity, `known`, which comes from the core."""
    wanted, started = problem.check_fidelity(given), problem.fidelity_of(known)
    if wanted != started:
        raise InvalidFidelity(
            f"fidelity={short_repr(given)} for trial {number}, which was started at {started!r}: report a value at "
            f"another fidelity by add(params, value, fidelity={short_repr(given)}) (nothing was changed)"
        )


def added_actions(
    problem: Problem, params: Any, value: Any, context: Any, facts: Mapping[str, Any]
) -> tuple[list[Action], bool]:
    """Return the actions that `add` logs, one for each point; also return whether the points were given as a list.

    `facts` has the entries std, cost, duration, attrs and fidelity; each is a single value for all points or a
    list of values. All arguments are checked before an action is returned.
    """
    several = problem.domain.several(params, listed=is_list(value))
    points = [params] if several is None else several
    n = len(points)
    if several is not None and value is not None and not is_list(value):
        raise InvalidValue(f"value={short_repr(value)} for {n} points: pass one value for each")
    values = [value] if several is None else _for_each("value", value, n, "pass one for each")
    amounts = {name: _for_each(name, facts[name], n) for name in ("std", "cost", "duration")}
    attrs, fidelities = (_for_each(name, facts[name], n) for name in ("attrs", "fidelity"))
    contexts = problem.contexts(context, n)
    actions = []
    for i, point in enumerate(points):
        what = "params" if several is None else f"params[{i}]"
        place = _place_of(problem, point)
        cost, duration = (as_amount(name, amounts[name][i], what, problem.warn_once) for name in ("cost", "duration"))
        parts, observation = None, None
        if problem.outcomes and values[i] is not None:
            found = values_of(problem.outcomes, what, values[i], amounts["std"][i], problem.warn_once)
            parts = [
                (outcome, Observation(y, own, None if k else cost, None if k else duration, what=what))
                for k, (outcome, y, own) in enumerate(found)
            ]
        elif values[i] is not None:
            y, std = as_number("value", values[i], what), as_amount("std", amounts["std"][i], what, problem.warn_once)
            observation = Observation(y, std, cost, duration, what=what)
        # If no fidelity is given, the value is assumed to come from an evaluation at the highest fidelity.
        fidelity = problem.check_fidelity(fidelities[i])
        if fidelity is None and problem.fidelity is not None:
            fidelity = problem.fidelity.high
        text = attrs_as_json(attrs[i], f"attrs[{i}]" if is_list(facts["attrs"]) else "attrs")
        action = Action.add(place, contexts[i], observation, fidelity, text)
        actions.append(action if parts is None else action.with_outcomes(parts))
    return actions, several is not None


def enqueued_actions(
    problem: Problem, constraints: Constraints | None, params: Any, fidelity: Any, seed: list[int]
) -> list[Action]:
    """Return the actions that `enqueue` logs, one for each point.

    All arguments are checked before an action is returned. If a point lacks the value of a parameter, the value is
    drawn at random, and the action contains the positions of the given parameters, so that a strategy can replace the
    drawn values. The draw depends on `seed` and on the position of the point in the list.
    """
    domain = problem.domain
    several = domain.several(params)
    points = [params] if several is None else several
    actions = []
    for i, (point, wanted) in enumerate(zip(points, _for_each("fidelity", fidelity, len(points)), strict=True)):
        what = "params" if several is None else f"params[{i}]"
        positions = None
        if isinstance(domain, NamedCandidates):
            point = domain.completed(point, [*seed, i])
        elif isinstance(domain, Space):
            given, point = point, _filled_in(domain, point, constraints, what, [*seed, i])
            if point is not given:
                names = domain.flat(given)
                positions = [k for k, name in enumerate(domain.searched) if name in names]
        place = domain.locate(point)
        if isinstance(domain, Space) and not isinstance(place, int):
            domain.core.check_linear(place)
        if constraints is not None:
            constraints.check(place, what)
        actions.append(Action.enqueue(place, problem.check_fidelity(wanted), positions))
    return actions


def _for_each(name: str, given: Any, n: int, advice: str = "pass one for each, or one for all") -> list[Any]:
    """Return n values, one for each point; `given` is a single value for all points, or a list of values."""
    each = list(given) if is_list(given) else [given] * n
    if len(each) != n:
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
            and _missing(domain, domain.checked_part(point, measured=True))
        ):
            raise InvalidPoint(
                f"{error} (the model cannot use a value whose point is not known; enqueue chooses missing values)"
            ) from None
        raise


def _missing(space: Space, given: Mapping[str, Any]) -> list[str]:
    """Return the names of active parameters that are missing from `given`, except constants.

    The given values must be in range.
    """
    return [name for name in space.active_names(given) if name not in given and name in space.searched]


def _filled_in(space: Space, params: Any, constraints: Constraints | None, what: str, seed: list[int]) -> Any:
    """Return params with a value for each active name; missing values are drawn uniformly at random.

    The completed point satisfies the constraints, and all given parameters are active at this point. The draw depends
    only on `seed`.

    Raises
    ------
    InvalidPoint
        A value is out of range, or a point with these values was not found.
    """
    if not isinstance(params, Mapping):
        return params
    given = space.checked_part(params)
    missing = _missing(space, given)
    if not missing:
        return params
    # Draw a value for every parameter, also for inactive parameters, because a given value may make them active. With
    # linear constraints, draw a point of the space, because only active parts count.
    fixed: list[Any] | None = None
    free = Space({name: replace(dimension, when=None) for name, dimension in space.items()})
    if space.linear:
        free = space
        fixed = [[space[name].to_number(given[name])] if name in given else None for name in space.searched]

    def completed(numbers: list[float | None]) -> dict[str, Any]:
        return space.active_part(free.named(numbers) | given)

    def is_feasible(point: dict[str, Any]) -> bool:
        # Refuse a point at which a given parameter is inactive.
        if not given.keys() <= point.keys():
            return False
        return constraints is None or constraints.first_violated(space.nested(point)) is None

    def feasible(points: list[list[float | None]]) -> Any:
        return np.array([is_feasible(completed(numbers)) for numbers in points], dtype=np.bool_)

    number = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
    core = _core.Optimizer(_core.Problem(free.core), number, '{"kind": "RandomSearch"}')
    try:
        core.suggest(1, None, None, feasible, fixed=fixed)
    except (InvalidPoint, InvalidSpace):
        raise InvalidPoint(
            f"{what}={short_repr(given)} misses {missing}, and no values were found for these with which the given "
            "names are active and the constraints hold: pass them as well"
        ) from None
    return completed(free.core.numbers(core.trial(0)))
