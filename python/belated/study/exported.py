"""Read the output of `belated study export`, and check all lines of a study before the study is written to a store."""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from belated.errors import StoreError
from belated.short_repr import short_repr
from belated.store.checksums import read_header, verified
from belated.store.interface import Header, Record, Store
from belated.study.definition import optimizer_from
from belated.study.revisions import Stage
from belated.study.shared_log import KEY_PARTS, SharedLog
from belated.study.study import LONGEST_NAME, is_usable_name

# Definitions and events are read as text, because a checksum covers every digit of the text. Quotes within strings are
# escaped. The definition or the event in a line therefore begins at the first match of this pattern.
_BODY = re.compile(r', "(definition|event)": ')

# The number of random bits of an id.
_ID_BITS = 48

# A study as it was exported.
Exported: TypeAlias = tuple[Header, list[Record]]

# A function that checks an entry of a line, and a description of the valid entries.
_Check: TypeAlias = tuple[Callable[[Any], bool], str]


def _is_key(fact: Any) -> bool:
    parts = KEY_PARTS.fullmatch(fact) if type(fact) is str else None
    return fact is None or (parts is not None and is_usable_name(parts[4]))


_KEY: _Check = (_is_key, "a printable key of a call, or null")
_INTEGER: _Check = (lambda fact: type(fact) is int, "a whole number")
_COMMON: dict[str, _Check] = {
    "id": (lambda id: type(id) is int and 0 <= id < 1 << _ID_BITS, f"a whole number from 0 to 2**{_ID_BITS} - 1"),
    "version": _INTEGER,
    "at": (lambda at: type(at) is float and math.isfinite(at), "a finite number of seconds"),
    "checksum": (lambda checksum: type(checksum) is str, "a string"),
}
_NAME: _Check = (is_usable_name, f"a printable name of 1 to {LONGEST_NAME} bytes")
# The line of a definition contains the number of the study's events in the file, and the number of studies in the file.
_DEFINITION = _COMMON | {"study": _NAME, "events": _INTEGER, "studies": _INTEGER}
# If the definition is lost, the name of the study is lost too.
_NAME_OR_NONE: _Check = (lambda name: name is None or is_usable_name(name), _NAME[1])
_EVENT = _COMMON | {"study": _NAME_OR_NONE, "seq": _INTEGER, "key": _KEY}


def read_exported(lines: Iterable[str], name: str | None, store: Store) -> list[Exported]:
    """Return the studies of an export, or only the study of this name. Each study is checked.

    Raises
    ------
    StoreError
        A line was changed, or cannot belong to a study; an event or a study is missing; or a study has the same id as a
        study of another name in `store`.
    """
    headers: dict[int, Header] = {}
    n_events: Counter[int] = Counter()
    n_studies = 0
    events: defaultdict[int, dict[int, Record]] = defaultdict(dict)
    keys: dict[tuple[int, str], int] = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            facts, found = _read_line(number, line.rstrip("\r\n"))
            study: int = facts["id"]
            if isinstance(found, Header):
                what, same = "the definition of a study", headers.setdefault(study, found) == found
                # The file may hold several exports.
                n_events[study] = max(n_events[study], facts["events"])
                n_studies = max(n_studies, facts["studies"])
            else:
                what, same = f"event {found.seq} of a study", events[study].setdefault(found.seq, found) == found
            if not same:
                raise StoreError(f"line {number} has {what} that differs from an earlier line: export it again")
            if isinstance(found, Record) and found.key is not None:
                parts = KEY_PARTS.fullmatch(found.key)
                unique = found.key if parts is None else ":".join(parts.group(1, 2, 4))
                first = keys.setdefault((study, unique), found.seq)
                if first != found.seq:
                    raise StoreError(
                        f"line {number} has event {found.seq} with the key {short_repr(found.key)} of event {first}, "
                        "and keys are unique in a study: export it again"
                    )
    names = [header.name for header in headers.values()]
    if name is not None and name not in names:
        raise StoreError(f"there is no study {name!r} in the file: it has {names}")
    lost = [study for study in events if study not in headers]
    if name is None and (lost or not names):
        what = "events of a study whose definition is lost" if lost else "no study"
        raise StoreError(f"the file has {what}: import those that are complete by their names, which are {names}")
    if len(set(names)) != len(names):
        raise StoreError(f"the file has two studies of one name: {names}")
    wanted = [header for header in headers.values() if name in (None, header.name)]
    _check_ids(wanted, store)
    studies = [_checked(header, events[header.id], n_events[header.id], store) for header in wanted]
    if name is None and len(names) < n_studies:
        raise StoreError(f"the file was cut off: it has {len(names)} of {n_studies} studies: export it again")
    return studies


def _check_ids(headers: list[Header], store: Store) -> None:
    """Raise an error if the id of a study to import belongs to a study of another name in the store. Writing refuses
    equal names."""
    try:
        names = {header.id: header.name for name in store.names() if (header := store.header(name)) is not None}
    except StoreError:
        return  # the store does not exist yet, or writing to it will raise the same error
    for header in headers:
        other = names.get(header.id, header.name)
        if other != header.name:
            raise StoreError(
                f"study {header.name!r} has the id {header.id}, which study {other!r} in {store.url} has, too: import "
                "it into another store"
            )


def _checked(header: Header, events: dict[int, Record], n_events: int, store: Store) -> Exported:
    definition = read_header(header)
    missing = next((seq for seq in range(len(events)) if seq not in events), None)
    if missing is not None:
        raise StoreError(f"event {missing} of study {header.name!r} is missing, and there are later ones")
    records = verified(header.name, header.id, 0, [events[seq] for seq in range(len(events))])
    if len(events) < n_events:
        raise StoreError(
            f"the file was cut off: it has {len(events)} of {n_events} events of study {header.name!r}: export it again"
        )
    # Opening a study makes the same check, so a study that cannot be opened is not written.
    optimizer = optimizer_from(definition, lambda: header.at)
    SharedLog(Stage(optimizer, definition), store, header.name, header.id).apply(records)
    return header, records


def _read_line(number: int, line: str) -> tuple[dict[str, Any], Header | Record]:
    """Parse a line: return its metadata, and the header or record that the metadata describe."""
    found = _BODY.search(line)
    try:
        if found is None or not line.endswith("}"):
            raise ValueError
        facts = json.loads(f"{line[: found.start()]}}}")
        line.encode()  # raises UnicodeEncodeError, a ValueError, if the bytes were not UTF-8
        checks = _DEFINITION if found[1] == "definition" else _EVENT
        if not isinstance(facts, dict) or set(facts) != set(checks):
            raise ValueError
        for name, (is_right, needed) in checks.items():
            if not is_right(facts[name]):
                raise StoreError(
                    f"line {number} has {name}={short_repr(facts[name])}, and a study has {needed} there: export it "
                    "again"
                )
        checksum = bytes.fromhex(facts["checksum"])
    except (ValueError, RecursionError):
        raise StoreError(
            f"line {number} is not one that `belated study export` wrote: it begins with {line[:60]!r}"
        ) from None
    body = line[found.end() : -1]
    if found[1] == "definition":
        return facts, Header(facts["id"], facts["study"], body, facts["at"], facts["version"], checksum)
    return facts, Record(facts["seq"], facts["version"], facts["key"], facts["at"], body, checksum)
