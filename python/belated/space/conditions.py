"""Conditions: the values of other parameters at which a parameter is active, as users declare them."""

import difflib
from collections.abc import Mapping
from typing import Any

from belated._core import InvalidSpace
from belated.short_repr import short_repr
from belated.space.dimensions import Dimension


def levels_of_parents(dimensions: Mapping[str, Dimension], argument: str) -> dict[str, list[tuple[str, list[int]]]]:
    """Return the conditions of each parameter: the names of its parents, with the levels that activate the parameter.

    Parameters
    ----------
    dimensions : mapping
        Name → dimension.
    argument : str
        The name of the space, for messages.

    Raises
    ------
    InvalidSpace
        A condition names an unknown parameter, or a value that the parameter cannot have.
    """
    return {
        name: [
            (parent, _levels(dimensions, parent, values, argument, name))
            for parent, values in (dimension.when or {}).items()
        ]
        for name, dimension in dimensions.items()
    }


def _levels(
    dimensions: Mapping[str, Dimension], parent: str, values: list[Any], argument: str, child: str
) -> list[int]:
    what = f"{argument}[{child!r}]"
    if parent not in dimensions:
        near = difflib.get_close_matches(parent, [other for other in dimensions if other != child], n=1)
        advice = f"did you mean {near[0]!r}?" if near else f"name one of {list(dimensions)}"
        raise InvalidSpace(f"{what} has when={{{parent!r}: …}}, which is not a parameter of {argument}: {advice}")
    found = dimensions[parent]
    if found.n_levels is None:
        return []  # the core refuses conditions on continuous parameters
    levels = set()
    for value in values:
        try:
            levels.add(found.level(value))
        except ValueError as expected:
            condition = f"has when={{{parent!r}: {short_repr(value)}}}"
            if found.n_levels == 1:
                raise InvalidSpace(
                    f"{what} can never be active: it {condition}, and {parent!r} is the constant {found.member(0)!r}; "
                    "correct the value, or leave the parameter out"
                ) from None
            raise InvalidSpace(
                f"{what} {condition}, which is not a value of {parent!r}: name {expected}, several of them in a list"
            ) from None
    return sorted(levels)
