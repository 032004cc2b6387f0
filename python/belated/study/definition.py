"""Definitions: conversion of an optimizer's class and constructor arguments to data, and back."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from belated._core import BelatedError
from belated.errors import InvalidSetting, InvalidSpace, StoreError
from belated.optimizers.constraints import Constraint
from belated.optimizers.curve import Curve
from belated.optimizers.optimizer import Optimizer
from belated.optimizers.values import as_data, from_data
from belated.short_repr import short_repr
from belated.space.candidates import Candidates
from belated.space.dimensions import KINDS, Categorical, Dimension
from belated.space.fidelity import Fidelity, PowerCost
from belated.space.nested import Nesting
from belated.space.space import Space

T = TypeVar("T")

_KINDS_OF_NUMBER = {"b": bool, "i": np.int64, "u": np.uint64, "f": np.float64}


def _value_as_data(value: Any, what: str) -> Any:
    """Return a choice as JSON data; a tuple becomes {"tuple": [...]}. `_value` restores the value and its type."""
    value = value.item() if isinstance(value, np.generic) else value
    if type(value) is tuple:
        return {"tuple": [_value_as_data(entry, what) for entry in value]}
    if value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value)):
        return value
    raise InvalidSpace(
        f"{what}={short_repr(value)} cannot be stored: a study keeps strings, finite numbers, booleans, None and "
        "tuples of these; name the choice by a string, and look the object up by it"
    )


def _value(data: Any) -> Any:
    """Return the choice from the data that `_value_as_data` returned; raise InvalidSpace for other data."""
    if isinstance(data, dict):
        return tuple(_value(entry) for entry in data["tuple"])
    if isinstance(data, list):
        raise InvalidSpace(f'the choice {short_repr(data)} is a list: write a tuple as {{"tuple": [...]}}')
    return data


def _dimension_as_data(dimension: Dimension, what: str) -> dict[str, Any]:
    """Return a dimension as JSON data. The entries "step" and "when" are left out if the dimension lacks them."""
    data: dict[str, Any] = {"kind": type(dimension).__name__}
    for field in fields(dimension):
        given = getattr(dimension, field.name)
        if field.name in ("choices", "values"):
            data[field.name] = [_value_as_data(value, what) for value in given]
        elif field.name == "when" and given is not None:
            # A condition is stored as pairs, because comparisons of JSON objects ignore the order.
            data["when"] = [
                [name, [_value_as_data(value, f"{what} when {name}") for value in values]]
                for name, values in given.items()
            ]
        elif given is not None:
            data[field.name] = given
    return data


def _dimension(data: Mapping[str, Any]) -> Dimension:
    """Return the dimension from the data that `_dimension_as_data` returned."""
    arguments = {name: value for name, value in data.items() if name not in ("name", "kind", "path", "options")}
    for name in ("choices", "values"):
        if name in arguments:
            arguments[name] = [_value(value) for value in arguments[name]]
    if "when" in arguments:
        arguments["when"] = _by_name((name, [_value(value) for value in values]) for name, values in arguments["when"])
    made: Dimension = KINDS[data["kind"]](**arguments)
    return made


def _dimensions_as_data(space: Space, argument: str) -> list[Any]:
    """Return the dimensions as JSON data. In a nested space, each has its path, and choices of groups are marked."""
    nesting = space.nesting
    return [
        {"name": name}
        | ({} if nesting is None else {"path": nesting.paths[name]})
        | ({"options": True} if nesting is not None and name in nesting.choices else {})
        | _dimension_as_data(dimension, f"{argument}[{name!r}]")
        for name, dimension in space.items()
    ]


def _dimensions(data: list[dict[str, Any]]) -> Space | dict[str, Dimension]:
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


def _candidates_as_data(candidates: Candidates) -> dict[str, Any]:
    x = candidates.x
    if x.dtype.itemsize > 8:
        raise InvalidSpace(f"candidates has dtype {x.dtype}, which a study cannot store exactly: pass float64")
    return {"kind": x.dtype.kind, "rows": x.astype(_KINDS_OF_NUMBER[x.dtype.kind]).tolist()}


def _fidelity_as_data(fidelity: Fidelity) -> Any:
    if not (fidelity.cost is None or isinstance(fidelity.cost, PowerCost)):
        raise InvalidSetting(
            f"{fidelity!r} has a function for its cost, which a study cannot store: pass a bl.PowerCost(…), or leave "
            "it out and report the cost of each trial"
        )
    return as_data(fidelity)


def definition_of(optimizer: Optimizer) -> dict[str, Any]:
    """Return an optimizer's class, arguments and seed as data; its clock function is not included."""
    kind = type(optimizer)
    if Optimizer.registry.get(kind.__name__) is not kind:
        names = sorted(Optimizer.registry)
        raise InvalidSetting(f"a study cannot store {kind.__name__}: pass one of {names}")
    settings = {name: as_data(value) for name, value in optimizer._settings().items()}
    domain, contexts = optimizer.domain, optimizer.context_space
    arguments: dict[str, Any] = {
        "space": _dimensions_as_data(domain, "space") if isinstance(domain, Space) else None,
        "candidates": _candidates_as_data(domain) if isinstance(domain, Candidates) else None,
        "context": None if contexts is None else _dimensions_as_data(contexts, "context"),
        "clock": optimizer.clock,
        "direction": optimizer.direction,
        "seed": optimizer.seed_,
    }
    arguments = {name: data for name, data in arguments.items() if name not in kind._lacks}
    # Leave out arguments that most optimizers do not use.
    if optimizer.fidelity is not None:
        arguments["fidelity"] = _fidelity_as_data(optimizer.fidelity)
    if optimizer.curve is not None:
        arguments |= {"curve": as_data(optimizer.curve), "stopping": as_data(optimizer._rule)}
    if optimizer._constraints is not None:
        # Functions cannot be stored, so the number and the names of the constraints are stored instead.
        arguments["constraints"] = optimizer._constraints.names
    return {"optimizer": kind.__name__, "arguments": arguments | settings}


def differences(stored: Mapping[str, Any], given: Optimizer) -> list[str]:
    """Describe how an optimizer differs from a stored definition. An optimizer without a seed matches any seed."""
    definition = definition_of(given)
    if stored["optimizer"] != definition["optimizer"]:
        return [f"optimizer is {stored['optimizer']} there and {definition['optimizer']} here"]
    ours, theirs = definition["arguments"], stored["arguments"]
    if given.seed is None:
        ours = ours | {"seed": theirs.get("seed")}
    n_here, n_there = (len(each.get("constraints", ())) for each in (ours, theirs))
    ours, theirs = ({name: each[name] for name in each if name != "constraints"} for each in (ours, theirs))
    found = [each for name in ours | theirs for each in _differences(name, theirs.get(name), ours.get(name))]
    different = [f"{name} is {_shown(there)} there and {_shown(here)} here" for name, there, here in found]
    if n_here != n_there:
        different.append(f"constraints has {n_there} functions there and {n_here} here")
    return different


def _shown(data: Any) -> str:
    """Return data for an error message; a dimension is shown as source code."""
    return repr(data) if isinstance(data, tuple(KINDS.values())) else short_repr(data)


def _differences(name: str, there: Any, here: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield (nested name, stored value, given value) for each difference between two pieces of data."""
    if name in ("space", "context") and there and here:
        names, our_names = [entry["name"] for entry in there], [entry["name"] for entry in here]
        if names != our_names:
            yield f"the names of {name}", names, our_names
        elif [entry.get("path") for entry in there] != [entry.get("path") for entry in here]:
            stored, given = ([entry.get("path", entry["name"]) for entry in each] for each in (there, here))
            yield f"the nesting of {name}", stored, given
        else:
            for ours, theirs in zip(here, there, strict=True):
                if not _same(theirs, ours):
                    yield f"{name}[{ours['name']!r}]", _dimension(theirs), _dimension(ours)
    elif _kind(there) is not None and _kind(there) == _kind(here):
        for field in there | here:
            yield from _differences(f"{name}.{field}", there.get(field), here.get(field))
    elif not _same(there, here):
        yield name, _kind(there) or there, _kind(here) or here


def _kind(data: Any) -> Any:
    """Return the class of a stored value; for candidates, the type of the numbers; for other data, None."""
    return data["kind"] if isinstance(data, dict) and "rows" not in data else None


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
    """Return the optimizer of a definition with an empty log. Constraints have to be passed; they are not stored."""
    kind = definition["optimizer"]
    made = Optimizer.registry.get(kind) if isinstance(kind, str) else None
    if made is None:
        raise StoreError(f"the study has the optimizer {short_repr(kind)}, unknown to this belated: upgrade belated")
    arguments = {name: data for name, data in definition["arguments"].items() if name != "constraints"}
    unknown = set(arguments) - ({field.name for field in fields(made)} - {"time"})
    if unknown:
        raise StoreError(f"the study has arguments {sorted(unknown)}, unknown to this belated: upgrade belated")
    read: dict[str, Callable[[Any], Any]] = {
        "space": _dimensions,
        "context": _dimensions,
        "fidelity": lambda data: from_data(data, {"Fidelity": Fidelity, "PowerCost": PowerCost}),
        "curve": lambda data: from_data(data, {"Curve": Curve}),
        "candidates": lambda data: np.array(data["rows"], dtype=_KINDS_OF_NUMBER[data["kind"]]),
    }
    try:
        for name, data in arguments.items():
            arguments[name] = None if data is None else read.get(name, from_data)(data)
        return made(**arguments, time=time, constraints=constraints)
    except (BelatedError, TypeError, ValueError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise StoreError(f"the study's definition does not define an optimizer: {error}") from error
