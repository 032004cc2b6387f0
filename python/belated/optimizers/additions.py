"""Conversion of the arguments of `add` and `enqueue` (points, values and facts) to actions for the log."""

from collections.abc import Mapping
from typing import Any

from belated._core import Action, InvalidFidelity, InvalidPoint, InvalidValue
from belated.optimizers.constraints import Constraints
from belated.optimizers.log import Observation
from belated.optimizers.partial import filled_in, missing_names
from belated.optimizers.problem import Problem
from belated.optimizers.report import attrs_as_json, check_amount
from belated.short_repr import short_repr
from belated.space.arguments import is_list
from belated.space.space import Place, Space


def added_actions(
    problem: Problem, owner: str, params: Any, value: Any, context: Any, facts: Mapping[str, Any]
) -> tuple[list[Action], bool]:
    """Return the actions that `add` has to log, one for each point, and whether the points were given as a list.

    `facts` has the entries std, cost, attrs and fidelity; each is a single value for all points or a list of values.
    `owner` is the name of the optimizer's class, for messages. All arguments are checked before an action is returned.
    """
    several = problem.domain.holds_several(params, listed=is_list(value))
    points = problem.domain.split(params) if several else [params]
    values = [value]
    if several:
        if value is not None and not is_list(value):
            raise InvalidValue(f"value={short_repr(value)} for {len(points)} points: pass one value for each")
        values = [None] * len(points) if value is None else list(value)
    if len(values) != len(points):
        raise InvalidValue(f"value has {len(values)} entries for {len(points)} points: pass one for each")
    n = len(points)
    contexts = problem.contexts(context, n)
    located = [_place_of(problem, point) for point in points]
    numbers = [problem.context_numbers(one, owner) for one in contexts]
    names = [f"params[{i}]" if several else "params" for i in range(n)]
    checked = [None if y is None else problem.check_value(y, name) for y, name in zip(values, names, strict=True)]
    given = {name: _for_each(name, facts[name], n) for name in ("std", "cost", "attrs")}
    deviations = [problem.check_std(sd, name) for sd, name in zip(given["std"], names, strict=True)]
    costs = [check_amount("cost", cost, name) for cost, name in zip(given["cost"], names, strict=True)]
    listed = is_list(facts["attrs"])
    texts = [attrs_as_json(each, f"attrs[{i}]" if listed else "attrs") for i, each in enumerate(given["attrs"])]
    observations = [
        None if y is None else Observation(y, sd, cost) for y, sd, cost in zip(checked, deviations, costs, strict=True)
    ]
    # The default fidelity is the highest, for a value from a full evaluation.
    full = None if problem.fidelity is None else problem.fidelity.high
    fidelities = _fidelities(problem, owner, facts["fidelity"], n, full)
    actions = [
        Action.add(place, z, observation, fidelity, text)
        for place, z, observation, fidelity, text in zip(located, numbers, observations, fidelities, texts, strict=True)
    ]
    return actions, several


def _place_of(problem: Problem, point: Any) -> Place:
    """Return the place of a point that is passed to `add`."""
    domain = problem.domain
    try:
        return domain.locate(point)
    except InvalidPoint as error:
        if not isinstance(domain, Space) or not isinstance(point, Mapping):
            raise
        if not missing_names(domain, domain.checked_part(point)):
            raise
        raise InvalidPoint(
            f"{error} (the model cannot use a value whose point is not known; enqueue draws missing names)"
        ) from None


def enqueued_actions(
    problem: Problem, owner: str, constraints: Constraints | None, params: Any, fidelity: Any, seed: list[int]
) -> list[Action]:
    """Return the actions that `enqueue` has to log, one for each point.

    All arguments are checked before an action is returned. Values of missing names are drawn at random. The draws
    depend on `seed` and on the point's position in the list.
    """
    domain = problem.domain
    several = domain.holds_several(params)
    located: list[Place] = []
    for i, point in enumerate(domain.split(params) if several else [params]):
        what = f"params[{i}]" if several else "params"
        if isinstance(domain, Space):
            point = filled_in(domain, point, constraints, what, [*seed, i])
        place = domain.locate(point)
        if constraints is not None:
            constraints.check(place, what)
        located.append(place)
    shares = _fidelities(problem, owner, fidelity, len(located), None)
    return [Action.enqueue(place, share) for place, share in zip(located, shares, strict=True)]


def check_same_fidelity(problem: Problem, owner: str, number: int, given: Any, known: float | None) -> None:
    """Raise an error if a fidelity differs from the fidelity of the trial, which the core gives as `known`."""
    wanted = problem.check_fidelity(given, owner)
    started = problem.fidelity_of(known)
    if wanted != started:
        raise InvalidFidelity(
            f"fidelity={short_repr(given)} for trial {number}, which was started at {started!r}: report a value at "
            f"another fidelity by add(params, value, fidelity={short_repr(given)}) (nothing was changed)"
        )


def _fidelities(problem: Problem, owner: str, fidelity: Any, n: int, default: float | None) -> list[float | None]:
    """Return the fidelity of each of n points, from a single fidelity or a list; `default` replaces None."""
    given = _for_each("fidelity", fidelity, n)
    return [default if each is None else problem.check_fidelity(each, owner) for each in given]


def _for_each(name: str, given: Any, n: int) -> list[Any]:
    """Return n values, one for each point, from a single value for all points or a list."""
    each = list(given) if is_list(given) else [given] * n
    if len(each) != n:
        raise InvalidValue(f"{name} has {len(each)} entries for {n} points: pass one for each, or one for all")
    return each
