"""Salvage of a damaged SQLite file: records are found by their format, even if the tables are not readable.

A record in SQLite's format consists of a header and then the bytes of each column. The header consists of the length of
the header and a serial type for each column. A serial type is a varint that encodes the type and the length of the
column. A record that does not fit its page continues in a chain of overflow pages. The last column of an event is a
checksum of 16 bytes, with serial type 0x2C. The whole file and its write-ahead log are searched for records in this
format. A match is an event if its checksum is right.
"""

import json
import os
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from belated.errors import StoreError
from belated.store.checksums import is_intact, read_header
from belated.store.interface import Header, Record

_NUMBER = rb"[\x01-\x09]"
_VARINT = rb"[\x80-\xff]{0,5}[\x00-\x7f]"
# The pattern is a lookahead, because one match may begin within another.
_EVENT = re.compile(rb"(?=[\x08-\x18]" + _NUMBER * 3 + _VARINT + _NUMBER + _VARINT + rb"\x2c)", re.DOTALL)
_HEADER = re.compile(rb"(?=[\x07-\x18]\x00" + _VARINT * 2 + _NUMBER * 2 + rb"\x2c)", re.DOTALL)
_PAGE_SIZES = [1 << k for k in range(9, 17)]
_WIDTHS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}


def salvage(path: str) -> tuple[list[Header], list[tuple[int, Record]]]:
    """Return the studies whose definitions are intact, and (study id, event) of all intact events in order."""
    # SQLite follows symbolic links, so the write-ahead log is beside the target.
    path = os.path.realpath(path)
    try:
        data = Path(path).read_bytes()
        log = Path(path + "-wal").read_bytes() if os.path.exists(path + "-wal") else b""
    except OSError as error:
        raise StoreError(f"store {path}: cannot be read: {error}") from error
    headers: dict[int, Header] = {}
    events: dict[tuple[int, int], Record] = {}
    # All page sizes are tried. Short records are found with any page size. Records on several pages are found only with
    # the right page size.
    layouts = [_Pages(data, log, size) for size in _PAGE_SIZES]
    for in_log, offset in _matches(_EVENT, data, log):
        for pages in layouts:
            row = pages.record(in_log, offset, 7)
            if row is None or type(row[0]) is not int:
                continue
            study, record = row[0], Record._make(row[1:])
            if is_intact(study, record) and _is_json(record.body):
                events.setdefault((study, record.seq), record)
                break
    for in_log, offset in _matches(_HEADER, data, log):
        for pages in layouts:
            row = pages.record(in_log, offset, 6, of_table=True)
            found = None if row is None else _intact_header(log if in_log else data, offset, row)
            if found is not None:
                # A change of attributes may leave the previous header in the file.
                known = headers.get(found.id)
                if known is None or _revision(found) > _revision(known):
                    headers[found.id] = found
                break
    return sorted(headers.values()), [(study, record) for (study, _), record in sorted(events.items())]


def _matches(form: "re.Pattern[bytes]", data: bytes, log: bytes) -> Iterator[tuple[bool, int]]:
    """For each possible start of a record, yield whether it is in the write-ahead log, and its offset."""
    for in_log, content in ((False, data), (True, log)):
        for match in form.finditer(content):
            yield in_log, match.start()


def _revision(header: Header) -> int:
    """Return the number of changes of the study's attributes."""
    return int(read_header(header).get("revision", 0))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return "\n" not in text


def _intact_header(content: bytes, start: int, row: tuple[Any, ...]) -> Header | None:
    # The id of a study is the row's number, a varint before the record. A varint of 48 bits takes up to 7 bytes.
    for begin in range(max(start - 7, 0), start):
        study, end = _varint(content, begin)
        if end == start:
            found = Header(study, *row[1:])
            with suppress(StoreError):
                read_header(found)
                return found
    return None


class _Pages:
    """The pages of a database and of its write-ahead log, for a given page size."""

    def __init__(self, data: bytes, log: bytes, size: int) -> None:
        self.size = size
        self.data, self.log = memoryview(data), memoryview(log)
        # For each page in the write-ahead log, the offset of its last version.
        self.latest: dict[int, int] = {}
        for start in range(32, len(log) - 23, 24 + size):
            [number] = struct.unpack(">I", log[start : start + 4])
            self.latest[number] = start + 24

    def page(self, number: int) -> memoryview:
        """Return the last version of a page, numbered from 1, or an empty view if the file does not have this page."""
        start = self.latest.get(number)
        if start is not None:
            return self.log[start : start + self.size]
        return self.data[(number - 1) * self.size : number * self.size] if number > 0 else self.data[:0]

    def record(self, in_log: bool, offset: int, columns: int, of_table: bool = False) -> tuple[Any, ...] | None:
        """Return the `columns` columns of a possible record in the database or the log; None for an invalid record."""
        content = self.log if in_log else self.data
        start = (offset - 32) % (24 + self.size) - 24 if in_log else offset % self.size
        if start < 0 or (in_log and offset < 56):
            return None
        page = content[offset - start : offset - start + self.size]
        end = start + page[start]
        at, types = start + 1, []
        while at < min(end, len(page)):
            kind, at = _varint(page, at)
            types.append(kind)
        if at != end or len(types) != columns or 10 in types or 11 in types:
            return None
        widths = [(kind - 12) // 2 if kind >= 12 else {7: 8}.get(kind, _WIDTHS.get(kind, 0)) for kind in types]
        total = page[start] + sum(widths)
        payload = self._payload(page, start, total, of_table)
        if payload is None:
            return None
        row, at = [], page[start]
        for kind, width in zip(types, widths, strict=True):
            try:
                row.append(_value(kind, payload[at : at + width]))
            except UnicodeDecodeError:
                return None
            at += width
        # The time is a REAL column, which keeps whole numbers as integers.
        time = 4 if len(row) == 7 else 3
        if type(row[time]) is int:
            row[time] = float(row[time])
        return tuple(row)

    def _payload(self, page: memoryview, start: int, total: int, of_table: bool) -> bytes | None:
        """Return `total` bytes from `start` on, including overflow pages; None if the file ends earlier.

        See SQLite's file format, section 1.6. U is the usable page size. If the payload P is above X, K = M + (P - M)
        mod (U - 4) bytes are on the page of the record if K <= X, else M bytes. The other bytes are on overflow pages.
        """
        if total > len(self.data) + len(self.log):
            return None
        usable = self.size
        min_local = (usable - 12) * 32 // 255 - 23  # M
        max_local = usable - 35 if of_table else (usable - 12) * 64 // 255 - 23  # X
        local = total if total <= max_local else min_local + (total - min_local) % (usable - 4)
        if local > max_local:
            local = min_local
        parts = [page[start : start + local]]
        link, missing = page[start + local : start + local + 4], total - local
        while missing > 0 and len(link) == 4:
            [number] = struct.unpack(">I", link)
            following = self.page(number)
            link, part = following[:4], following[4 : 4 + missing]
            if not part:
                break
            parts.append(part)
            missing -= len(part)
        payload = b"".join(parts)
        return payload if len(payload) == total else None


def _varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """Return the varint at an offset, and the offset after the varint."""
    value = 0
    for _ in range(8):
        if at >= len(data):
            return value, at + 1
        byte = data[at]
        at += 1
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at
    last = data[at] if at < len(data) else 0
    return value << 8 | last, at + 1


def _value(kind: int, data: bytes) -> Any:
    if kind in _WIDTHS:
        return int.from_bytes(data, "big", signed=True)
    if kind == 7:
        return struct.unpack(">d", data)[0]
    if kind in (8, 9):
        return kind - 8
    if kind >= 12:
        return data if kind % 2 == 0 else data.decode()
    return None
