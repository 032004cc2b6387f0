"""Conditions: which parameters of a space are active, given the values of others.

A parameter declared with ``when={parent: values}`` is a *child* of its *parents*. It is active if every parent is
active and has one of the listed values. A *level* is the number of a value among its dimension's values, from 0.
"""

import difflib
from collections.abc import Mapping, Set
from typing import Any

from belated._core import InvalidSpace
from belated.short_repr import short_repr
from belated.space.dimensions import Dimension


class Conditions:
    """The conditions of a space, checked.

    Parameters
    ----------
    dimensions : mapping
        Name → dimension.
    argument : str
        The name of the space in messages.

    Raises
    ------
    InvalidSpace
        A condition names an unknown parameter, a continuous one, or a value that the parameter cannot have; a condition
        can never hold; or parameters depend on each other in a circle.
    """

    def __init__(self, dimensions: Mapping[str, Dimension], argument: str) -> None:
        # The levels of each parent at which a child is active. Parents that are constants are replaced by their own
        # parents.
        self.levels: dict[str, dict[str, frozenset[int]]] = {}
        # Parents stand before their children.
        self.order: list[str] = _ordered(dimensions, argument)
        for name in self.order:
            self.levels[name] = self._resolved(name, dimensions, f"{argument}[{name!r}]")
        self.parents = {parent for own in self.levels.values() for parent in own}

    def _resolved(self, name: str, dimensions: Mapping[str, Dimension], what: str) -> dict[str, frozenset[int]]:
        found: dict[str, frozenset[int]] = {}
        for parent, values in (dimensions[name].when or {}).items():
            levels = _levels(dimensions[parent], parent, values, what)
            if dimensions[parent].n_levels == 1:
                # A constant parent is active exactly when its own conditions hold.
                for grandparent, allowed in self.levels[parent].items():
                    found[grandparent] = found.get(grandparent, allowed) & allowed
            else:
                found[parent] = found.get(parent, levels) & levels
        for parent, allowed in found.items():
            if not allowed:
                raise InvalidSpace(f"{what} can never be active: its conditions on {parent!r} exclude each other")
        return found

    def holds(self, name: str, levels: Mapping[str, int]) -> bool:
        """Whether a parameter is active, given the `levels` of its active parents."""
        return all(levels.get(parent) in allowed for parent, allowed in self.levels[name].items())

    def may_hold(self, name: str, levels: Mapping[str, int], unsettled: Set[str]) -> bool:
        """Whether a parameter could be active if the `unsettled` parents may have any value."""
        own = self.levels[name].items()
        return all(parent in unsettled or levels.get(parent) in allowed for parent, allowed in own)


def in_words(dimension: Dimension) -> str:
    """Return the conditions of a dimension as part of a sentence: ``kernel='poly' and n in [1, 2]``."""
    conditions = (dimension.when or {}).items()
    return " and ".join(
        f"{parent}={values[0]!r}" if len(values) == 1 else f"{parent} in {values!r}" for parent, values in conditions
    )


def _levels(parent: Dimension, name: str, values: list[Any], what: str) -> frozenset[int]:
    if parent.n_levels is None:
        raise InvalidSpace(
            f"{what} has when={{{name!r}: …}}, and {name!r} is a continuous Real: give that one a step, or make it an "
            "Integer, Ordinal or Categorical"
        )
    levels = set()
    for value in values:
        try:
            levels.add(parent.level(parent.check(value)))
        except ValueError as expected:
            if parent.n_levels == 1:
                raise InvalidSpace(
                    f"{what} can never be active: it has when={{{name!r}: {short_repr(value)}}}, and {name!r} is the "
                    f"constant {parent.member(0)!r}; correct the value, or leave the parameter out"
                ) from None
            raise InvalidSpace(
                f"{what} has when={{{name!r}: {short_repr(value)}}}, which is not a value of {name!r}: name "
                f"{expected}, several of them in a list"
            ) from None
    return frozenset(levels)


def _ordered(dimensions: Mapping[str, Dimension], argument: str) -> list[str]:
    """Return the names with parents before their children, and otherwise in the given order."""
    waiting = {name: set(dimension.when or {}) for name, dimension in dimensions.items()}
    for name, parents in waiting.items():
        for parent in parents:
            if parent not in dimensions:
                near = difflib.get_close_matches(parent, [other for other in dimensions if other != name], n=1)
                advice = f"did you mean {near[0]!r}?" if near else f"name one of {list(dimensions)}"
                raise InvalidSpace(
                    f"{argument}[{name!r}] has when={{{parent!r}: …}}, which is not a parameter of {argument}: {advice}"
                )
    order: list[str] = []
    while waiting:
        ready = next((name for name, parents in waiting.items() if not parents & waiting.keys()), None)
        if ready is None:
            circle = _circle(waiting)
            raise InvalidSpace(
                f"{argument}: {circle} depend on each other in a circle by when=: drop the condition of one of them"
            )
        order.append(ready)
        del waiting[ready]
    return order


def _circle(waiting: Mapping[str, set[str]]) -> list[str]:
    """Return names in a circle: each name waits for the next, and the last for the first."""
    path = [next(iter(waiting))]
    while True:
        following = min(waiting[path[-1]] & waiting.keys())
        if following in path:
            return path[path.index(following) :]
        path.append(following)
