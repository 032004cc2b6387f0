"""Definitions: an optimizer's class and constructor arguments as data, and back."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from reprlib import repr as short_repr
from typing import Any

import numpy as np

from belated._core import BelatedError, InvalidSetting, InvalidSpace
from belated.optimizers.bayes import BayesOpt
from belated.optimizers.life_cycle import Optimizer
from belated.optimizers.random_search import RandomSearch
from belated.space.dimensions import Categorical, Integer, Real
from belated.space.space import Candidates, Space
from belated.store.interface import StoreError

_CLASSES: dict[str, type[Optimizer]] = {"BayesOpt": BayesOpt, "RandomSearch": RandomSearch}
_DIMENSIONS = {"Real": Real, "Integer": Integer, "Categorical": Categorical}
_KINDS_OF_NUMBER = {"b": bool, "i": np.int64, "u": np.uint64, "f": np.float64}


def _plain(value: Any, what: str, error: type[BelatedError]) -> Any:
    """A JSON scalar equal to `value` in every respect."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value)):
        return value
    raise error(
        f"{what}={short_repr(value)} cannot be stored: a study keeps strings, finite numbers, booleans and None; "
        "name the choice by a string, and look the object up by it"
    )


def _dimensions_as_data(space: Space, argument: str) -> list[Any]:
    data = []
    for name, dimension in space.items():
        what = f"{argument}[{name!r}]"
        entry: dict[str, Any] = {"name": name, "type": type(dimension).__name__}
        if isinstance(dimension, Categorical):
            entry["choices"] = [_plain(choice, what, InvalidSpace) for choice in dimension.choices]
        else:
            entry |= {"low": dimension.low, "high": dimension.high, "log": dimension.log}
        data.append(entry)
    return data


def _dimensions(data: list[dict[str, Any]]) -> dict[str, Any]:
    made = {}
    for entry in data:
        rest = {name: value for name, value in entry.items() if name not in ("name", "type")}
        made[entry["name"]] = _DIMENSIONS[entry["type"]](**rest)
    return made


def _candidates_as_data(candidates: Candidates) -> dict[str, Any]:
    x = candidates.x
    kind = x.dtype.kind
    exact = x.astype(_KINDS_OF_NUMBER[kind])
    if x.dtype.itemsize > 8:
        raise InvalidSpace(f"candidates has dtype {x.dtype}, which a study cannot store exactly: pass float64")
    return {"kind": kind, "rows": exact.tolist()}


def _argument_as_data(optimizer: Optimizer, name: str, value: Any) -> Any:
    if name == "space" and isinstance(optimizer.domain_, Space):
        return _dimensions_as_data(optimizer.domain_, name)
    if name == "candidates" and isinstance(optimizer.domain_, Candidates):
        return _candidates_as_data(optimizer.domain_)
    if name == "context" and optimizer.context_space_ is not None:
        return _dimensions_as_data(optimizer.context_space_, name)
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(entry, name, InvalidSetting) for entry in value]
    return _plain(value, name, InvalidSetting)


def definition_of(optimizer: Optimizer) -> dict[str, Any]:
    """An optimizer's class, arguments and seed, as data; the clock it reads is not part of it."""
    kind = type(optimizer)
    if _CLASSES.get(kind.__name__) is not kind:
        raise InvalidSetting(f"a study keeps one of {sorted(_CLASSES)}, not {kind.__name__}: pass one of these")
    arguments = {
        field.name: _argument_as_data(optimizer, field.name, getattr(optimizer, field.name))
        for field in fields(optimizer)
        if field.name != "time"
    }
    return {"optimizer": kind.__name__, "arguments": arguments | {"seed": optimizer.seed_}}


def differences(stored: Mapping[str, Any], given: Optimizer) -> list[str]:
    """What a given optimizer has otherwise than the stored definition, in words; a seed left out agrees with any."""
    definition = definition_of(given)
    if stored["optimizer"] != definition["optimizer"]:
        return [f"optimizer is {stored['optimizer']} there and {definition['optimizer']} here"]
    ours, theirs = definition["arguments"], stored["arguments"]
    if given.seed is None:
        ours = ours | {"seed": theirs.get("seed")}
    names = [name for name in ours | theirs if not _same(theirs.get(name), ours.get(name))]
    return [f"{name} is {short_repr(theirs.get(name))} there and {short_repr(ours.get(name))} here" for name in names]


def _same(a: Any, b: Any) -> bool:
    # As text, because 1, 1.0 and True are equal to Python.
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True) or (
        type(a) in (int, float) and type(b) in (int, float) and a == b
    )


def optimizer_from(definition: Mapping[str, Any], time: Callable[[], float] | None) -> Optimizer:
    """The optimizer that a definition defines, with an empty log."""
    kind = definition["optimizer"]
    made = _CLASSES.get(kind) if isinstance(kind, str) else None
    if made is None:
        raise StoreError(f"the study has the optimizer {short_repr(kind)}, unknown to this belated: upgrade belated")
    arguments = dict(definition["arguments"])
    unknown = set(arguments) - {field.name for field in fields(made)}
    if unknown or "time" in arguments:
        raise StoreError(f"the study has arguments {sorted(unknown)}, unknown to this belated: upgrade belated")
    try:
        for name in ("space", "context"):
            if arguments.get(name) is not None:
                arguments[name] = _dimensions(arguments[name])
        if arguments.get("candidates") is not None:
            data = arguments["candidates"]
            arguments["candidates"] = np.array(data["rows"], dtype=_KINDS_OF_NUMBER[data["kind"]])
        return made(**arguments, time=time if arguments.get("clock") == "seconds" else None)
    except (BelatedError, TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        raise StoreError(f"the study's definition makes no optimizer: {error}") from error
