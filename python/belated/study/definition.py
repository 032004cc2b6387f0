"""Definitions: conversion of an optimizer to JSON data ``{"problem", "strategy", "stopping", "seed"}``, and back.

`strategy` and `stopping` have the form that the core reads. `problem` contains values as users write them, because the
core knows only numbers. The functions of an optimizer are not part of its definition.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from typing import Any, TypeVar

import numpy as np

from belated._core import BelatedError
from belated.errors import InvalidSetting, InvalidSpace, StoreError
from belated.optimizers.constraints import Constraint, checked_functions
from belated.optimizers.curve import Curve
from belated.optimizers.optimizer import Optimizer
from belated.optimizers.values import Value, as_data, from_data
from belated.short_repr import short_repr
from belated.space.candidates import LISTS, Candidates, NamedCandidates
from belated.space.dimensions import KINDS, Categorical, Dimension, choices_of
from belated.space.fidelity import Fidelity, PowerCost
from belated.space.linear import linear_from
from belated.space.nested import Nesting
from belated.space.space import Space

T = TypeVar("T")

_PROBLEM = {
    "space",
    "candidates",
    "context",
    "fidelity",
    "curve",
    "constraints",
    "linear",
    "direction",
    "clock",
    "outcomes",
}

_KINDS_OF_NUMBER = {"b": bool, "i": np.int64, "u": np.uint64, "f": np.float64}


def value_as_data(value: Any, what: str, complete: bool) -> Any:
    """Return a choice as JSON data; a tuple becomes {"tuple": [...]}. `value_from` restores the value and its type."""
    value = value.item() if isinstance(value, np.generic) else value
    kind = type(value)
    if value is None or kind in (bool, int, str) or (kind is float and (math.isfinite(value) or not complete)):
        return value
    if kind is tuple or (kind is list and not complete):
        return {kind.__name__: [value_as_data(entry, what, complete) for entry in value]}
    if complete:
        raise InvalidSpace(
            f"{what}={short_repr(value)} cannot be stored: a study keeps strings, finite numbers, booleans, None and "
            "tuples of these; name the choice by a string, and look the object up by it"
        )
    if kind is dict:
        return {"dict": [[value_as_data(each, what, complete) for each in pair] for pair in value.items()]}
    return {"object": kind.__name__}


def value_from(data: Any) -> Any:
    """Return the choice from the data that `value_as_data` returned; raise InvalidSpace for other data."""
    if isinstance(data, list):
        raise InvalidSpace(f'the choice {short_repr(data)} is a list: write a tuple as {{"tuple": [...]}}')
    if not isinstance(data, dict):
        return data
    [(kind, content)] = data.items()
    if kind == "object":
        raise InvalidSpace(f"there are objects ({content}) among the choices: pass the space again")
    if kind == "dict":
        return {value_from(key): value_from(value) for key, value in content}
    return {"tuple": tuple, "list": list}[kind](map(value_from, content))


def _dimension_as_data(dimension: Dimension, what: str, complete: bool) -> dict[str, Any]:
    """Return a dimension as JSON data. The entries "step" and "when" are left out if the dimension lacks them."""
    data: dict[str, Any] = {"kind": type(dimension).__name__}
    for field in fields(dimension):
        given = getattr(dimension, field.name)
        if field.name in ("choices", "values", "offered") and given is not None:
            data[field.name] = [value_as_data(value, what, complete) for value in given]
        elif field.name == "when" and given is not None:
            # A condition is stored as pairs, because comparisons of JSON objects ignore the order.
            data["when"] = [
                [name, [value_as_data(value, f"{what} when {name}", complete) for value in values]]
                for name, values in given.items()
            ]
        elif given is not None:
            data[field.name] = given
    return data


def _dimension(data: Mapping[str, Any]) -> Dimension:
    """Return the dimension from the data that `_dimension_as_data` returned."""
    arguments = {name: value for name, value in data.items() if name not in ("name", "kind", "path", "options")}
    for name in ("choices", "values", "offered"):
        if name in arguments:
            arguments[name] = [value_from(value) for value in arguments[name]]
    if "when" in arguments:
        arguments["when"] = _by_name(
            (name, [value_from(value) for value in values]) for name, values in arguments["when"]
        )
    made: Dimension = KINDS[data["kind"]](**arguments)
    return made


def space_as_data(space: Space, argument: str = "space", complete: bool = False) -> list[Any]:
    """Return the dimensions as JSON data. In a nested space, each has its path, and choices of groups are marked."""
    nesting = space.nesting
    return [
        {"name": name}
        | ({} if nesting is None else {"path": nesting.paths[name]})
        | ({"options": True} if nesting is not None and name in nesting.choices else {})
        | _dimension_as_data(dimension, f"{argument}[{name!r}]", complete)
        for name, dimension in space.items()
    ]


def space_from(data: list[dict[str, Any]]) -> Space | dict[str, Dimension]:
    """Return the dimensions from the data that `space_as_data` returned."""
    dimensions = _by_name((entry["name"], _dimension(entry)) for entry in data)
    if not any("path" in entry for entry in data):
        return dimensions
    paths = {entry["name"]: tuple(entry["path"]) for entry in data}
    choices = {entry["name"] for entry in data if "options" in entry}
    options = {
        name: each.options for name, each in dimensions.items() if name in choices and isinstance(each, Categorical)
    }
    for name, path in paths.items():
        above = [(".".join(path[:i]), path[i]) for i in range(1, len(path))]
        # A group of this path may not have the name of a parameter, except for the options of a choice.
        wrong = [group for group, below in above if group in paths and below not in options.get(group, ())]
        if ".".join(path) != name or wrong or (name in choices and name not in options):
            raise InvalidSpace(f"the path {list(path)} of {name!r} does not belong to a nested space")
    return Space.from_flat(dimensions, Nesting(paths, choices))


def _by_name(pairs: Iterable[tuple[str, T]]) -> dict[str, T]:
    """Convert pairs (name, dimension) to a dict; raise InvalidSpace if two names are equal."""
    found: dict[str, T] = {}
    for name, value in pairs:
        if name in found:
            raise InvalidSpace(f"the name {short_repr(name)} is given twice: give each name once")
        found[name] = value
    return found


def _candidates_as_data(candidates: Candidates | NamedCandidates) -> dict[str, Any]:
    """Return candidates as JSON data. The rows of named candidates have the entries of the columns; None is a gap."""
    if isinstance(candidates, NamedCandidates):
        columns, descriptors = candidates.columns(), candidates.descriptors()
        data = {"names": list(columns), "rows": list(map(list, zip(*columns.values(), strict=True)))}
        described = {"descriptors": descriptors, "describing": sorted(candidates.describing)}
        return data | described if descriptors else data
    x = candidates.x
    if x.dtype.itemsize > 8:
        raise InvalidSpace(f"candidates has dtype {x.dtype}, which a study cannot store exactly: pass float64")
    return {"kind": x.dtype.kind, "rows": x.astype(_KINDS_OF_NUMBER[x.dtype.kind]).tolist()}


def _candidates_from(data: Mapping[str, Any]) -> Any:
    """Return the candidates from the data that `_candidates_as_data` returned."""
    if "names" not in data:
        return Candidates(np.array(data["rows"], dtype=_KINDS_OF_NUMBER[data["kind"]]))
    columns = map(list, zip(*data["rows"], strict=True))
    found = NamedCandidates(_by_name(zip(data["names"], columns, strict=True)), data.get("descriptors"))
    found.describing = frozenset(data.get("describing", ()))
    return found


def _fidelity_as_data(fidelity: Fidelity) -> Any:
    if not (fidelity.cost is None or isinstance(fidelity.cost, PowerCost)):
        raise InvalidSetting(
            f"{fidelity!r} has a function for its cost, which a study cannot store: pass a bl.PowerCost(…), or leave "
            "it out and report the cost of each trial"
        )
    return asdict(fidelity)


def definition_of(optimizer: Optimizer, complete: bool = True) -> dict[str, Any]:
    """Return the definition of an optimizer.

    If `complete`, raise an error if the optimizer cannot be read from its definition. Otherwise the class of an
    optimizer may be any class, and choices that are objects are replaced by their types.
    """
    kind = type(optimizer)
    if complete and Optimizer.registry.get(kind.__name__) is not kind:
        names = sorted(Optimizer.registry)
        raise InvalidSetting(f"a study cannot store {kind.__name__}: pass one of {names}")
    domain, contexts = optimizer.domain, optimizer.context_space
    problem: dict[str, Any] = {
        "space": None if isinstance(domain, LISTS) else space_as_data(domain, "space", complete),
        "candidates": _candidates_as_data(domain) if isinstance(domain, LISTS) else None,
        "context": None if contexts is None else space_as_data(contexts, "context", complete),
        "fidelity": optimizer.fidelity and _fidelity_as_data(optimizer.fidelity),
        "curve": optimizer.curve and asdict(optimizer.curve),
        # Functions cannot be stored, so the names of the constraints are stored instead.
        "constraints": optimizer._constraints and optimizer._constraints.names,
        "linear": [each.as_data() for each in optimizer._problem.linear] or None,
        "direction": optimizer.direction,
        "clock": optimizer.clock,
        # A list, because the order counts.
        "outcomes": [[name, as_data(goal)] for name, goal in optimizer._problem.outcomes.items()] or None,
    }
    return {
        "problem": {name: data for name, data in problem.items() if data is not None and name not in kind._lacks},
        "strategy": optimizer._strategy_data(),
        "stopping": as_data(optimizer._rule),
        "seed": optimizer.seed_,
    }


def _arguments(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return the constructor arguments in a definition as JSON data, without the functions that are constraints."""
    problem, stopping = definition["problem"], definition.get("stopping", "auto")
    if stopping is None and "curve" not in problem:
        stopping = "auto"  # None would differ from the default, which has the same meaning without a curve
    arguments = problem | definition["strategy"] | {"stopping": stopping, "seed": definition.get("seed")}
    return {name: data for name, data in arguments.items() if name not in ("kind", "constraints")}


def differences(
    there: Mapping[str, Any], here: Mapping[str, Any], text: str = "{} is {} there and {} here"
) -> list[str]:
    """Describe how two definitions differ. If the seed here is None, it matches any seed."""
    kinds = [each["strategy"]["kind"] for each in (there, here)]
    if kinds[0] != kinds[1]:
        return [text.format("optimizer", *kinds)]
    theirs, ours = _arguments(there), _arguments(here)
    if ours["seed"] is None:
        ours["seed"] = theirs["seed"]
    found = [each for name in ours | theirs for each in _differences(name, theirs.get(name), ours.get(name))]
    different = [text.format(name, _shown(a), _shown(b)) for name, a, b in found]
    functions_there, functions_here = (list(each["problem"].get("constraints", ())) for each in (there, here))
    if functions_here != functions_there:
        different.append(f"constraints has the functions {functions_there} there and {functions_here} here")
    return different


def _shown(data: Any) -> str:
    """Return data for an error message; a dimension is shown as source code, unless its choices are objects."""
    kind = data.get("kind") if isinstance(data, dict) else None
    if kind in KINDS:
        with suppress(InvalidSpace):
            return repr(_dimension(data))
    return short_repr(kind if kind in Value.kinds else data)


def _differences(name: str, there: Any, here: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield (nested name, stored value, given value) for each difference between two pieces of data."""
    if name in ("space", "context") and there and here:
        stored = _in_place_of(there, here)
        names, our_names = [entry["name"] for entry in stored], [entry["name"] for entry in here]
        if names != our_names:
            yield f"the names of {name}", names, our_names
        elif [entry.get("path") for entry in stored] != [entry.get("path") for entry in here]:
            paths, given = ([entry.get("path", entry["name"]) for entry in each] for each in (stored, here))
            yield f"the nesting of {name}", paths, given
        else:
            for ours, theirs in zip(here, stored, strict=True):
                if not _same(theirs, ours) and not _offers(theirs, ours):
                    yield f"{name}[{ours['name']!r}]", theirs, ours
    elif isinstance(there, dict) and isinstance(here, dict) and there.get("kind") == here.get("kind"):
        for field in there | here:
            yield from _differences(f"{name}.{field}", there.get(field), here.get(field))
    elif not _same(there, here):
        yield name, there, here


def _in_place_of(there: Sequence[Mapping[str, Any]], here: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return a stored space in the form in which a user may give it: without what only earlier trials have."""
    stored, suggested = {entry["name"]: entry for entry in there}, _as_suggested(there)
    if [entry["name"] for entry in suggested] != [entry["name"] for entry in here]:
        return there
    pairs = zip(suggested, here, strict=True)
    return [ours if _same(stored[ours["name"]], ours) else theirs for theirs, ours in pairs]


def _as_suggested(space: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the parameters of a space that suggestions may have, with the conditions that they may satisfy."""
    offered = {entry["name"]: _dimension(entry) for entry in space if "offered" in entry}

    def conditions(entry: Mapping[str, Any]) -> list[Any]:
        return [
            [parent, [each for each in values if parent not in offered or offered[parent].offers(value_from(each))]]
            for parent, values in entry["when"]
        ]

    found = [{**entry, "when": conditions(entry)} if "when" in entry else entry for entry in space]
    while True:
        names = {entry["name"] for entry in found}
        left = [entry for entry in found if all(parent in names and values for parent, values in entry.get("when", ()))]
        if len(left) == len(found):
            return found
        found = left


def _offers(there: Mapping[str, Any], here: Mapping[str, Any]) -> bool:
    """Return whether a parameter that keeps other values for its model offers exactly the values of another one."""
    if "offered" not in there or "offered" in here:
        return False
    same = [_same(there.get(name), here.get(name)) for name in ("name", "when", "path", "options")]
    if not all(same):
        return False
    dimension = _dimension(here)
    values = choices_of(dimension)
    if values is None:
        values = [] if dimension.width else [dimension.member(0)]
    return _same(there["offered"], [value_as_data(value, "", False) for value in values])


def _same(a: Any, b: Any) -> bool:
    # Values are compared as text, because 1, 1.0 and True are equal in Python.
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True) or (
        type(a) in (int, float) and type(b) in (int, float) and a == b
    )


def optimizer_from(
    definition: Mapping[str, Any],
    time: Callable[[], float] | None,
    constraints: Sequence[Constraint] | None = None,
) -> Optimizer:
    """Return the optimizer of a definition with an empty log.

    The functions among its constraints have to be passed, because they are not stored.
    """
    kind = definition["strategy"].get("kind")
    made = Optimizer.registry.get(kind) if isinstance(kind, str) else None
    if made is None:
        raise StoreError(f"the study has the optimizer {short_repr(kind)}, unknown to this belated: upgrade belated")
    settings = {field.name for field in fields(made)} - {field.name for field in fields(Optimizer)}
    unknown = {*definition["problem"]} - _PROBLEM | {*definition["strategy"]} - settings - {"kind"}
    if unknown:
        raise StoreError(f"the study has arguments {sorted(unknown)}, unknown to this belated: upgrade belated")
    read: dict[str, Callable[[Any], Any]] = {
        "space": space_from,
        "context": space_from,
        "fidelity": lambda data: Fidelity(**data | {"cost": data.get("cost") and PowerCost(**data["cost"])}),
        "curve": lambda data: Curve(**data),
        "candidates": _candidates_from,
        "linear": lambda data: [linear_from(each) for each in data],
        "outcomes": lambda data: _by_name((name, from_data(goal)) for name, goal in data),
    }
    try:
        arguments = _arguments(definition)
        for name, data in arguments.items():
            arguments[name] = None if data is None else read.get(name, from_data)(data)
        both = [*arguments.pop("linear", ()), *checked_functions(constraints)]
        return made(**arguments, time=time, constraints=both or None)
    except (BelatedError, TypeError, ValueError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise StoreError(f"the study's definition does not define an optimizer: {error}") from error
