"""The format of a stored log: records and headers, each with a checksum.

The checksum of a record covers the study and all other fields of the record. If a record was changed, moved or
exchanged, its checksum is wrong.

Times are written without the sign of zero, because databases do not keep the sign.
"""

import json
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

from belated.errors import StoreError
from belated.short_repr import short_repr
from belated.store.interface import EventsGone, Header, Record

#: The version of the format of headers and records. A store with another version is refused, and the error names the
#: version.
VERSION = 12


def _digest(*parts: object) -> bytes:
    # The fields are written as a JSON list, because different lists never give the same text.
    return blake2b(json.dumps(parts).encode(), digest_size=16).digest()


def _checksum(study: int, seq: int, version: int, key: str | None, at: float, body: str) -> bytes:
    name = "" if key is None else json.dumps(key)
    text = f"{study} {seq} {version} {at!r} {name}\n{body}"
    return blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()


def with_checksum(study: int, seq: int, key: str | None, at: float, body: str) -> Record:
    """Return the record of an event of the study with this id."""
    at += 0.0  # turns -0.0 into 0.0
    return Record(seq, VERSION, key, at, body, _checksum(study, seq, VERSION, key, at, body))


def is_intact(study: int, record: Record) -> bool:
    """Return whether a record is, bit by bit, the record that was written for this study."""
    seq, version, key, at, body, checksum = record
    has_types = [type(each) for each in (seq, version, at, body)] == [int, int, float, str]
    has_types = has_types and (key is None or type(key) is str)
    return has_types and checksum == _checksum(study, seq, version, key, at, body)


def verified(name: str, study: int, start: int, records: Iterable[Record]) -> list[Record]:
    """Return the records from number `start` on. Raise StoreError at the first damaged record."""
    checked = []
    for seq, record in enumerate(records, start):
        what = f"event {seq} of study {name!r}"
        is_newer = type(record.version) is int and record.version > VERSION
        if not is_newer and (record.seq != seq or not is_intact(study, record)):
            raise StoreError(
                f"{what} is damaged or missing: restore a copy of the store, "
                "or save what is intact with: belated study export --salvage STORE"
            )
        if record.version != VERSION:
            raise _other_version(what, record.version)
        checked.append(record)
    return checked


def complete(rows: list[Any], start: int, n: Any) -> list[Record]:
    """Return the events from number `start` on. Raise an error if events are missing among the study's n events."""
    if type(n) is not int:
        raise StoreError("the study's count of events is missing: the study was deleted, or the store is damaged")
    if n < start:
        raise EventsGone(
            f"the store has {n} events of a study of which this process knows {start}: it was replaced by an "
            "earlier copy; open the study again"
        )
    if len(rows) != n - start:
        raise StoreError(
            f"the store has {len(rows)} of the {n - start} events from number {start} on: it is damaged; "
            "restore a copy, or save what is intact with: belated study export --salvage"
        )
    return [Record._make(row) for row in rows]


def _other_version(what: str, version: int) -> StoreError:
    age, advice = ("a newer", "upgrade belated") if version > VERSION else ("an older", "read it with that version")
    return StoreError(
        f"{what} was written by {age} belated than this one (format {version}, this one reads {VERSION}): {advice}"
    )


def header(study: int, name: str, definition: Mapping[str, Any], at: float) -> Header:
    """Return the header of a new study."""
    at += 0.0  # turns -0.0 into 0.0
    text = json.dumps(definition, allow_nan=False, separators=(",", ":"))
    return Header(study, name, text, at, VERSION, _digest(study, name, text, at, VERSION))


def read_header(stored: Header) -> dict[str, Any]:
    """Return the definition in a header; raise StoreError if the header is damaged or has an unknown version.

    Attributes of the study are under the key "attrs". They exist only with the key "revision", which counts changes.
    """
    _, name, text, _, version, checksum = stored
    facts = stored[:-1]
    if type(version) is int and version > VERSION:
        raise _other_version(f"study {name!r}", version)
    try:
        if [type(fact) for fact in facts] != [int, str, str, float, int] or checksum != _digest(*facts):
            raise ValueError("its checksum does not fit")
        if version != VERSION:
            raise _other_version(f"study {name!r}", version)
        definition: dict[str, Any] = json.loads(text, parse_constant=_refuse_constant)
        keys = set(definition) if isinstance(definition, dict) else set()
        types = {"problem": dict, "strategy": dict, "seed": int}
        types |= {"attrs": dict, "revision": int} if "attrs" in keys else {}
        if keys != {"stopping", *types} or any(type(definition[key]) is not kind for key, kind in types.items()):
            raise ValueError("it is not a definition")
    except (ValueError, RecursionError) as error:
        raise StoreError(
            f"the definition of study {short_repr(name)} is damaged ({error}): restore a copy of the store"
        ) from None
    return definition


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not a number")
