"""Convert the arguments `fixed` and `shared` of `suggest` to the form that the core takes."""

from collections.abc import Mapping
from typing import Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from belated._core import InvalidPoint, InvalidSetting
from belated.optimizers.problem import Problem
from belated.short_repr import short_repr
from belated.space.arguments import is_gap, is_list, real_number, whole_in_text, whole_number
from belated.space.candidates import Candidates, NamedCandidates
from belated.space.dimensions import Dimension, Range
from belated.space.space import Space

# The values that a parameter may have: (low, high), or a list of numbers; None for any value.
Held: TypeAlias = tuple[float, float] | list[float] | None
# The values of each searched parameter, or the numbers of the candidates that may be suggested.
Fixed: TypeAlias = list[Held] | list[int]
# The positions of the shared parameters, or the candidates for each combination of the shared values.
Shared: TypeAlias = list[int] | list[list[int]]


def fixed_of(problem: Problem, fixed: Any) -> Fixed | None:
    """Return the fixed values in the form that the core takes, or None without fixed values."""
    if fixed is None:
        return None
    domain = problem.domain
    if not isinstance(fixed, Mapping):
        raise InvalidPoint(f"fixed={short_repr(fixed)} is not usable: pass a dict of name → value")
    return _held(domain, fixed) if _is_box(domain) else _rows(domain, fixed)


def _is_box(domain: Space | Candidates) -> TypeGuard[Space]:
    """Return whether a domain is a space of parameters, and not a list of candidates."""
    return isinstance(domain, Space) and not isinstance(domain, NamedCandidates)


def shared_of(problem: Problem, shared: Any) -> Shared | None:
    """Return the shared parameters in the form that the core takes, or None without shared parameters."""
    if shared is None:
        return None
    names = list(shared) if is_list(shared) else None
    if names is None:
        raise InvalidSetting(f"shared={short_repr(shared)} is not usable: pass a list of names")
    domain = problem.domain
    if _is_box(domain):
        for name in names:
            if not isinstance(name, str) or name not in domain:
                raise InvalidSetting(f"shared has {name!r}, which is not a parameter: name some of {list(domain)}")
            if domain[name].when is not None:
                raise InvalidSetting(f"shared has {name!r}, which has conditions: share the parameters in its when=")
        searched = domain.searched
        return [searched.index(name) for name in dict.fromkeys(names) if name in searched] or None
    if not names:
        return None
    columns = np.column_stack([_column(domain, name, "shared", InvalidSetting)[1] for name in names])
    _, groups = np.unique(columns, axis=0, return_inverse=True)
    groups = groups.reshape(-1)
    return [np.flatnonzero(groups == group).tolist() for group in range(groups.max() + 1)]


def _held(space: Space, fixed: Mapping[str, Any]) -> list[Held]:
    """Return the values of each searched parameter of a space."""
    given = space.flat(fixed)
    for name in given:
        if name not in space:
            from belated.hints import nearest

            near = nearest(name, space) if isinstance(name, str) else None
            advice = f"did you mean {near!r}?" if near else f"name some of {list(space)}"
            raise InvalidPoint(f"fixed has {name!r}, which is not a parameter: {advice}")
    held = {name: _values(name, space[name], value) for name, value in given.items() if not is_gap(value)}
    for name, value in given.items():
        # None stands for an inactive parameter, unless it is a choice.
        if is_gap(value) and not _is_inactive(space, name, held):
            try:
                held[name] = _values(name, space[name], value)
            except InvalidPoint as error:
                parents = list(space[name].when or ())
                advice = f"; or fix {parents} to values at which {name!r} is inactive" if parents else ""
                raise InvalidPoint(f"{error}{advice}") from None
    return [held.get(name) for name in space.searched]


def _is_inactive(space: Space, name: str, held: Mapping[str, Held]) -> bool:
    """Return whether a parameter is inactive at all points with these values."""
    for parent, values in (space[name].when or {}).items():
        dimension = space[parent]
        found, numbers = held.get(parent), map(dimension.known, values)
        if found is None and dimension.offered is not None:
            found = list(map(dimension.to_number, dimension.offered))
        if isinstance(found, tuple):
            is_met = any(found[0] <= number <= found[1] for number in numbers if number is not None)
        else:
            is_met = found is None or not set(found).isdisjoint(numbers)
        if not is_met or _is_inactive(space, parent, held):
            return True
    return False


def _values(name: str, dimension: Dimension, value: Any) -> Held:
    """Return the allowed values of a parameter."""
    is_number = isinstance(dimension, Range)
    try:
        try:
            return [dimension.to_number(value)]
        except ValueError:
            if isinstance(value, Mapping) and is_number and value.keys() == {"low", "high"}:
                value = (value["low"], value["high"])
            if isinstance(value, tuple) and len(value) == 2 and is_number:
                low, high = (real_number(end) for end in value)
                if low is None or high is None or low > high:
                    raise
                return (float(low), float(high))
            if is_list(value) and len(value):
                return [dimension.to_number(each) for each in value]
            raise
    except ValueError as expected:
        more = ", a list of such values, or a range (low, high)" if is_number else ", or a list of such values"
        raise InvalidPoint(f"fixed[{name!r}]={short_repr(value)} is not usable: pass {expected}{more}") from None


def _rows(candidates: Any, fixed: Mapping[Any, Any]) -> list[int]:
    """Return the numbers of the candidates that have the fixed values."""
    matches = np.ones(len(candidates.x), dtype=np.bool_)
    for key, value in fixed.items():
        name, column = _column(candidates, key, "fixed", InvalidPoint)
        if isinstance(candidates, Mapping):
            held = None if value is None else _values(name, candidates[name], value)
        else:
            held = _numbers_of(value)
        if held is None:  # a gap
            found = np.isnan(column)
        elif isinstance(held, tuple):
            found = (column >= held[0]) & (column <= held[1])
        else:
            found = np.isin(column, held)
        if not found.any():
            raise InvalidPoint(
                f"fixed[{name!r}]={short_repr(value)} matches no candidate: pass a value of this column, a list of "
                "such values, or a range (low, high)"
            )
        matches &= found
    if not matches.any():
        raise InvalidPoint(f"fixed={short_repr(dict(fixed))} matches no candidate: fix fewer columns, or other values")
    rows: list[int] = np.flatnonzero(matches).tolist()
    return rows


def _numbers_of(value: Any) -> tuple[float, float] | list[float]:
    """Return a range, or a list of numbers; entries that are not numbers are left out."""
    if isinstance(value, Mapping) and value.keys() == {"low", "high"}:
        value = (value["low"], value["high"])
    listed = list(value) if is_list(value) else [value]
    numbers = [float(number) for number in map(real_number, listed) if number is not None]
    if isinstance(value, tuple) and len(value) == len(numbers) == 2:
        return (numbers[0], numbers[1])
    return numbers


def _column(
    candidates: Any, key: Any, argument: str, error: type[InvalidPoint] | type[InvalidSetting]
) -> tuple[Any, NDArray[np.float64]]:
    """Return the name and the entries of a column of candidates. In JSON, the number of a column is a string."""
    if isinstance(candidates, Mapping):
        names = list(candidates)
        number = names.index(key) if key in names else None
        known = f"name some of {names}"
    else:
        number = whole_in_text(key) if isinstance(key, str) else whole_number(key)
        known = f"pass numbers from 0 to {candidates.width - 1}"
    if number is None or not 0 <= number < candidates.x.shape[1]:
        raise error(f"{argument} has {short_repr(key)}, which is not a column: {known}")
    return key if isinstance(candidates, Mapping) else number, candidates.x[:, number].astype(np.float64)
