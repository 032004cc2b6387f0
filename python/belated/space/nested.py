"""Nested spaces: groups of parameters, and choices between groups.

A nested space is searched as a flat space. The flat name of a parameter consists of the names of its groups and its own
name, joined by dots. Users write and receive nested params; tables, plots and stores use the flat names.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from belated._core import InvalidSpace
from belated.short_repr import short_repr
from belated.space.dimensions import Categorical, Parameter

# The keys of dicts with which other packages declare ranges and lists of values. These dicts are not groups.
_RANGES = ({"min", "max"}, {"low", "high"}, {"lower", "upper"})
_LISTS = ("values", "choices", "bounds", "options", "categories")


@dataclass(frozen=True)
class Choice:
    """A choice between groups of parameters, such as models with different parameters.

    Parameters
    ----------
    options : mapping of str → mapping
        The space of each option, in the form of `Space`, which may contain further groups and choices. An option
        without parameters has the space ``{}``.

    Raises
    ------
    InvalidSpace
        There are fewer than two options, the name of an option is not a string, or its space is not a mapping.

    Notes
    -----
    The value of the choice in the params is a dict with one entry, the chosen option → its params. ``add`` and
    ``enqueue`` also accept the name of an option whose params are not given.

    Examples
    --------
    >>> import belated as bl
    >>> space = bl.Space({"model": bl.Choice({"svm": {"C": (0.1, 10.0)}, "forest": {"depth": (1, 9)}})})
    >>> list(space)
    ['model', 'model.svm.C', 'model.forest.depth']
    >>> space.decode(space.encode({"model": {"forest": {"depth": 5}}}))
    {'model': {'forest': {'depth': 5}}}
    """

    options: Mapping[str, Mapping[str, Any]]

    def __post_init__(self) -> None:
        given = self.options
        if not isinstance(given, Mapping) or len(given) < 2:
            raise InvalidSpace(
                f"options={short_repr(given)} is not usable: pass a dict with two or more names of options → their "
                "parameters; a choice between values is bl.Categorical"
            )
        for name, group in given.items():
            if not isinstance(name, str) or not isinstance(group, Mapping):
                raise InvalidSpace(
                    f"options has {short_repr(name)}: {short_repr(group)}: pass a name → dict of its parameters, {{}} "
                    "if there are none"
                )
        object.__setattr__(self, "options", {name: dict(group) for name, group in given.items()})


class Leaf(NamedTuple):
    """A parameter of a nested space, or the shorthand for a parameter."""

    #: The names of the groups and the options that contain the entry, followed by its name.
    path: tuple[str, ...]
    given: Any
    #: Flat name of a choice → its option, on which the entry depends.
    when: dict[str, Any]
    #: The names in the group that contains the entry.
    group: frozenset[str]
    #: Whether the entry is the choice between options.
    is_choice: bool

    @property
    def name(self) -> str:
        """The flat name."""
        return ".".join(self.path)

    def conditional(self, dimension: Any) -> Any:
        """Return a dimension with its own conditions and `when`. A name in its own conditions means the parameter of
        its group that has this name, if there is one."""
        own = {
            ".".join((*self.path[:-1], parent)) if parent in self.group else parent: values
            for parent, values in (dimension.when or {}).items()
        }
        for parent in own.keys() & self.when.keys():
            raise InvalidSpace(
                f"{self.name!r} belongs to an option of {parent!r} and has when={{{parent!r}: …}}: leave {parent!r} "
                "out of when="
            )
        together = self.when | own
        return replace(dimension, when=together) if together else dimension


def leaves(pairs: Iterable[tuple[Any, Any]], argument: str) -> list[Leaf]:
    """Return the parameters of a space, in order. A choice comes before the parameters of its options.

    Raises
    ------
    InvalidSpace
        A name is not a string, or the space has groups and a name contains a dot.
    """
    found = list(_leaves(list(pairs), argument, (), {}))
    dotted = [name for leaf in found for name in leaf.path if "." in name]
    if dotted and any(len(leaf.path) > 1 for leaf in found):
        raise InvalidSpace(
            f"{argument} has the name {dotted[0]!r}: in a space with groups, names must not contain a dot"
        )
    return found


def _leaves(
    pairs: list[tuple[Any, Any]], argument: str, prefix: tuple[str, ...], when: dict[str, Any]
) -> Iterator[Leaf]:
    group = frozenset(name for name, _ in pairs if isinstance(name, str))
    for name, each in pairs:
        if not isinstance(name, str):
            raise InvalidSpace(f"{argument} has the name {short_repr(name)}: names must be strings")
        path = (*prefix, name)
        if isinstance(each, Choice):
            yield Leaf(path, Categorical(list(each.options)), when, group, True)
            for option, inner in each.options.items():
                yield from _leaves(list(inner.items()), argument, (*path, option), {".".join(path): [option]})
        elif isinstance(each, Mapping) and not _is_range(each):
            yield from _leaves(list(each.items()), argument, path, when)
        elif isinstance(each, list) and any(map(_has_parameters, each)):
            raise InvalidSpace(
                f"{argument}[{'.'.join(path)!r}] is a list of groups of parameters: name them, as in "
                "bl.Choice({'a': {…}, 'b': {…}})"
            )
        else:
            yield Leaf(path, each, when, group, False)


def _has_parameters(value: Any) -> bool:
    """Return whether a value of a list is a group with parameters, or a choice between groups."""
    if isinstance(value, Mapping):
        return any(isinstance(each, Parameter) or _has_parameters(each) for each in value.values())
    return isinstance(value, Choice)


def _is_range(given: Mapping[Any, Any]) -> bool:
    """Return whether a mapping declares a range or a list of values in the form of another package."""
    names = set(given)
    if any(isinstance(value, (Parameter, Mapping, Choice, tuple)) for value in given.values()):
        return False
    return any(names >= pair for pair in _RANGES) or any(isinstance(given.get(name), list) for name in _LISTS)


class Nesting:
    """The conversion between nested and flat params.

    Parameters
    ----------
    paths : mapping of str → tuple of str
        For each flat name: its parts.
    choices : iterable of str
        The flat names of choices between groups.
    """

    def __init__(self, paths: Mapping[str, tuple[str, ...]], choices: Iterable[str]) -> None:
        self.paths, self.choices = dict(paths), frozenset(choices)
        self._groups = {path[:i] for path in self.paths.values() for i in range(1, len(path))}

    @classmethod
    def of(cls, found: Iterable[Leaf]) -> "Nesting | None":
        """Return the nesting of the parameters, or None for a flat space."""
        found = list(found)
        nested = any(leaf.is_choice or len(leaf.path) > 1 for leaf in found)
        choices = [leaf.name for leaf in found if leaf.is_choice]
        return cls({leaf.name: leaf.path for leaf in found}, choices) if nested else None

    def nested(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return nested params from values by flat name."""
        made: dict[str, Any] = {}
        for name, value in values.items():
            *groups, last = self.paths[name]
            inner = made
            for group in groups:
                inner = inner.setdefault(group, {})
            inner[last] = {value: {}} if name in self.choices else value
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Nesting) and (self.paths, self.choices) == (other.paths, other.choices)

    __hash__ = None  # type: ignore[assignment]

    def flat(self, params: Mapping[Any, Any], prefix: tuple[str, ...] = ()) -> dict[Any, Any]:
        """Return values by flat name from nested params. Flat names and unknown names stay as they are.

        Raise ValueError, which names the value, if a value is given twice.
        """
        values: dict[Any, Any] = {}
        for key, value in params.items():
            path = (*prefix, key)
            name = ".".join(map(str, path)) if prefix else key
            found: dict[Any, Any] = {name: value}
            if name in self.choices:
                if isinstance(value, Mapping) and len(value) == 1:
                    [(option, inner)] = value.items()
                    if isinstance(inner, Mapping):
                        found = {name: option} | self.flat(inner, (*path, option))
            elif path in self._groups and isinstance(value, Mapping):
                found = self.flat(value, path)
            for twice in found.keys() & values.keys():
                raise ValueError(f"the value of {twice!r} twice, nested and by its flat name")
            values |= found
        return values
