"""The form of a stored log: what a record holds, how it is sealed, and how definitions become data and back.

A record is one event of one study. Its checksum covers everything else in it and the study it belongs to, so
that no record can change, move or be mistaken for another unnoticed.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from hashlib import blake2b
from reprlib import repr as short_repr
from typing import Any, NamedTuple

import numpy as np

from belated import optimizers
from belated._core import BelatedError, InvalidSetting, InvalidSpace
from belated.dimensions import Categorical, Integer, Real
from belated.lifecycle import Optimizer
from belated.space import Candidates, Space

VERSION = 1


class StoreError(BelatedError):
    """A store that cannot be read or written, or that holds something no study of belated could have written."""


class Record(NamedTuple):
    """One event as it is stored."""

    seq: int
    version: int
    key: str | None
    at: float
    body: str
    checksum: bytes


class Header(NamedTuple):
    """A study as it is stored: everything about it but its events. Its id is drawn at random, once."""

    id: int
    name: str
    definition: str
    at: float
    version: int
    checksum: bytes


def _digest(*parts: object) -> bytes:
    # As a JSON list: no two lists of parts give the same text.
    return blake2b(json.dumps(parts).encode(), digest_size=16).digest()


def _checksum(study: int, seq: int, version: int, key: str | None, at: float, body: str) -> bytes:
    name = "" if key is None else json.dumps(key)
    text = f"{study} {seq} {version} {at!r} {name}\n{body}"
    return blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()


def sealed(study: int, seq: int, key: str | None, at: float, body: str) -> Record:
    """The record of an event of the study with this id."""
    return Record(seq, VERSION, key, at, body, _checksum(study, seq, VERSION, key, at, body))


def intact(study: int, record: Record) -> bool:
    """Whether a record is, to the last bit, one that was written for the study with this id."""
    seq, version, key, at, body, checksum = record
    return (
        type(body) is str
        and type(seq) is int
        and type(version) is int
        and type(at) is float
        and (key is None or type(key) is str)
        and checksum == _checksum(study, seq, version, key, at, body)
    )


def opened(name: str, study: int, start: int, records: Iterable[Record]) -> list[Record]:
    """Records from number `start` on, each checked; StoreError at the first that is not what was written."""
    checked = []
    for seq, record in enumerate(records, start):
        if type(record.version) is int and record.version > VERSION:
            raise _newer(f"event {seq} of study {name!r}")
        if record.seq != seq or not intact(study, record):
            raise StoreError(
                f"event {seq} of study {name!r} is damaged or missing: restore a copy of the store, "
                "or save what is intact with: belated study export --salvage STORE"
            )
        checked.append(record)
    return checked


def _newer(what: str) -> StoreError:
    return StoreError(f"{what} was made by a newer belated than this one: upgrade belated")


# Definitions: an optimizer's class and constructor arguments as data.

_CLASSES: dict[str, type[Optimizer]] = {
    name: made
    for name, made in vars(optimizers).items()
    if isinstance(made, type) and issubclass(made, Optimizer) and made is not Optimizer
}
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


def header(study: int, name: str, definition: Mapping[str, Any], at: float) -> Header:
    """The header of a new study."""
    text = json.dumps(definition, allow_nan=False, separators=(",", ":"))
    return Header(study, name, text, at, VERSION, _digest(study, name, text, at, VERSION))


def read_header(stored: Header) -> dict[str, Any]:
    """The definition in a header; StoreError where it is damaged, or newer than this belated."""
    study, name, text, at, version, checksum = stored
    if type(version) is int and version > VERSION:
        raise _newer(f"study {name!r}")
    whole = (
        type(study) is int and type(name) is str and type(text) is str and type(at) is float and type(version) is int
    )
    try:
        if not whole or checksum != _digest(study, name, text, at, version):
            raise ValueError("its checksum does not fit")
        definition = json.loads(text, parse_constant=_refuse_constant)
        if not isinstance(definition, dict) or set(definition) != {"optimizer", "arguments"}:
            raise ValueError("it is no definition")
        if not isinstance(definition["arguments"], dict):
            raise ValueError("it is no definition")
    except (ValueError, RecursionError) as error:
        raise StoreError(
            f"the definition of study {short_repr(name)} is damaged ({error}): restore a copy of the store"
        ) from None
    return definition


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is no number")


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
