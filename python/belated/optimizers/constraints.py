"""Known constraints: functions of the params that return whether a suggestion is allowed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from belated._core import InvalidPoint, InvalidSetting
from belated.short_repr import short_repr
from belated.space import arguments
from belated.space.arguments import name_of
from belated.space.candidates import LISTS, Candidates
from belated.space.linear import AnyLinear
from belated.space.space import Place, Space

Constraint: TypeAlias = Callable[[dict[str, Any]], bool] | AnyLinear
Function: TypeAlias = Callable[[dict[str, Any]], bool]


class Constraints:
    """The constraints of an optimizer, as a function that the core calls with a list of points."""

    def __init__(self, functions: Sequence[Function], space: Space) -> None:
        self.functions = tuple(functions)
        self._space = space

    @classmethod
    def from_argument(cls, given: Any, domain: Space | Candidates) -> Constraints | None:
        """Return the constraints in the argument `given`; return None if `given` is None or empty."""
        functions = checked_functions(given)
        if functions and isinstance(domain, LISTS):
            raise InvalidSetting(
                "constraints are for spaces, and candidates are given: leave out the rows that violate them"
            )
        return cls(functions, domain) if functions and isinstance(domain, Space) else None

    @property
    def names(self) -> list[str]:
        """The names of the functions, for messages."""
        return [name_of(function) for function in self.functions]

    def first_violated(self, params: dict[str, Any]) -> int | None:
        """Return the index of the first constraint that the params violate, or None if they satisfy all of them."""
        for i, function in enumerate(self.functions):
            try:
                found = function(params)
            except Exception as error:
                raise InvalidSetting(
                    f"{self.describe(i)} raised {type(error).__name__}: {error} for params={params!r}; a constraint "
                    "takes the dict of params, in which inactive ones are missing, and returns True or False"
                ) from error
            if not isinstance(found, (bool, np.bool_)):
                raise InvalidSetting(
                    f"{self.describe(i)} returned {short_repr(found)} for params={params!r}: return True or False"
                )
            if not found:
                return i
        return None

    def params_at(self, place: Place) -> dict[str, Any]:
        """Convert a point in the form that the core takes to params."""
        return self._space.params_at(place)

    def check(self, place: Place, what: str) -> None:
        """Raise an error if the params of a point violate a constraint."""
        params = self.params_at(place)
        violated = self.first_violated(params)
        if violated is not None:
            raise InvalidPoint(
                f"{what}={params!r} violates {self.describe(violated)}: enqueue a point that satisfies it; one that "
                "has been evaluated already can be passed to add with its value"
            )

    def __call__(self, points: list[list[float | None]]) -> NDArray[np.bool_]:
        """Return whether each point satisfies all constraints; a point is a list of the numbers of all parameters."""
        params, violated = self._space.params, self.first_violated
        return np.array([violated(params(numbers)) is None for numbers in points], dtype=np.bool_)

    def describe(self, i: int) -> str:
        """Return the index and the name of a constraint as text, for messages."""
        return f"constraints[{i}] ({name_of(self.functions[i])})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Constraints:
        return self  # immutable

    def __reduce__(self) -> tuple[Any, ...]:
        check_picklable(self.functions)
        return type(self), (self.functions, self._space)


def checked_functions(given: Any) -> Sequence[Function]:
    """Return the functions in the argument `given`; return an empty sequence if `given` is None.

    Raise an error if the argument is not a list, or if an item is neither a function nor a linear constraint.
    """
    if given is None:
        return ()
    if not isinstance(given, (list, tuple)):
        raise InvalidSetting(
            f"constraints={short_repr(given)} is not usable: pass a list of functions of the params, such as "
            '[lambda p: p["a"] + p["b"] <= 1], and of bl.Linear, bl.Mixture and bl.Cardinality'
        )
    for i, item in enumerate(given):
        if not callable(item) and not isinstance(item, AnyLinear):
            raise InvalidSetting(
                f"constraints[{i}]={short_repr(item)} is not usable: pass a function that takes the dict of "
                "params and returns True or False, bl.Linear, bl.Mixture or bl.Cardinality"
            )
    return [item for item in given if not isinstance(item, AnyLinear)]


def linear_of(given: Sequence[Constraint] | None) -> Sequence[AnyLinear]:
    """Return the linear constraints in a checked argument."""
    return [item for item in given or () if isinstance(item, AnyLinear)]


def check_picklable(functions: Sequence[Function]) -> None:
    """Raise an error if a function cannot be sent to another process."""
    for i, function in enumerate(functions):
        arguments.check_picklable(function, f"constraints[{i}]", "define it with def at the top level of a module")
