"""Reading what `belated study export` wrote: studies whose every line is checked before any is written to a store."""

import json
import re
from collections.abc import Iterable
from typing import NamedTuple

from belated.store.checksums import read_header, verified
from belated.store.interface import Header, Record, Store, StoreError
from belated.study.definition import optimizer_from
from belated.study.shared_log import SharedLog

# Definition and event are taken as text, since a checksum covers them to the last digit. Quotes within strings are
# escaped, so that the first place with this form is where one of them begins.
_BODY = re.compile(r', "(definition|event)": ')

_HEADER_FACTS = {"study": (str,), "id": (int,), "version": (int,), "at": (float,), "checksum": (str,)}
_EVENT_FACTS = {
    **_HEADER_FACTS,
    "study": (str, type(None)),
    "seq": (int,),
    "key": (str, type(None)),
}


class Exported(NamedTuple):
    """A study as it was exported."""

    header: Header
    records: list[Record]


def read_exported(lines: Iterable[str], name: str | None, store: Store) -> list[Exported]:
    """The studies of an export, or the one of this name, each complete, intact and possible.

    Raises
    ------
    StoreError
        A line that is not as it was written, an event that is missing, or a study that there is not.
    """
    headers: dict[int, Header] = {}
    events: dict[int, dict[int, Record]] = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            study, found = _read_line(number, line.rstrip("\r\n"))
            if isinstance(found, Header):
                what, same = "the definition of a study", headers.setdefault(study, found) == found
            else:
                known = events.setdefault(study, {})
                what, same = f"event {found.seq} of a study", known.setdefault(found.seq, found) == found
            if not same:
                raise StoreError(f"line {number} has {what} that an earlier line has otherwise: export it again")
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
    return [_checked(header, events.get(header.id, {}), store) for header in wanted]


def _checked(header: Header, events: dict[int, Record], store: Store) -> Exported:
    definition = read_header(header)
    missing = next((seq for seq in range(len(events)) if seq not in events), None)
    if missing is not None:
        raise StoreError(f"event {missing} of study {header.name!r} is missing, and there are later ones")
    records = verified(header.name, header.id, 0, [events[seq] for seq in range(len(events))])
    # As a study does that is opened: what it could not open is not written.
    optimizer = optimizer_from(definition, lambda: header.at)
    SharedLog(optimizer._log, store, header.name, header.id, lambda: header.at).apply(records)
    return Exported(header, records)


def _read_line(number: int, line: str) -> tuple[int, Header | Record]:
    """(study's id, header or record) of a line."""
    found = _BODY.search(line)
    try:
        if found is None or not line.endswith("}"):
            raise ValueError
        facts = json.loads(f"{line[: found.start()]}}}")
        expected = _HEADER_FACTS if found[1] == "definition" else _EVENT_FACTS
        if not isinstance(facts, dict) or set(facts) != set(expected):
            raise ValueError
        if any(type(facts[name]) not in kinds for name, kinds in expected.items()):
            raise ValueError
        body, checksum = line[found.end() : -1], bytes.fromhex(facts["checksum"])
        if found[1] == "definition":
            return facts["id"], Header(facts["id"], facts["study"], body, facts["at"], facts["version"], checksum)
        return facts["id"], Record(facts["seq"], facts["version"], facts["key"], facts["at"], body, checksum)
    except (ValueError, RecursionError):
        raise StoreError(
            f"line {number} is not one that `belated study export` wrote: it begins with {line[:60]!r}"
        ) from None
