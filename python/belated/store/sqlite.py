"""Studies in an SQLite file: locks, transactions, and errors of the file or the disk.

Layout: `studies` has a row for each study. `events` has the events of each study, numbered from 0 without gaps. `heads`
has the number of events of each study; without this number, the loss of the last event would not be noticed. See
docs/store.md.
"""

import os
import random
import sqlite3
import stat
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from belated.errors import InvalidSetting, StoreError
from belated.short_repr import short_repr
from belated.store.checksums import complete
from belated.store.closing import close_with
from belated.store.forks import never_collect, register_connection
from belated.store.interface import Header, Record, Store, Transaction
from belated.store.mounts import SHARED, file_system, is_mount_point
from belated.warn import warn

T = TypeVar("T")

# SQLite's application id, which is "bela" in ASCII; and the number of the layout below.
APPLICATION, LAYOUT = 0x62656C61, 1

SCHEMA = (
    "CREATE TABLE studies (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, definition TEXT NOT NULL, "
    "at REAL NOT NULL, version INTEGER NOT NULL, checksum BLOB NOT NULL)",
    "CREATE TABLE heads (study INTEGER PRIMARY KEY REFERENCES studies, n INTEGER NOT NULL)",
    "CREATE TABLE events (study INTEGER NOT NULL REFERENCES studies, seq INTEGER NOT NULL, version INTEGER NOT NULL, "
    "key TEXT, at REAL NOT NULL, body TEXT NOT NULL, checksum BLOB NOT NULL, PRIMARY KEY (study, seq)) WITHOUT ROWID",
    "CREATE UNIQUE INDEX keys ON events (study, key) WHERE key IS NOT NULL",
)

# Chosen by measurement; see docs/store.md.
JOURNAL = "WAL"

# Bytes 18 and 19 of a file that has a write-ahead log.
_WAL_VERSIONS = b"\x02\x02"

# Times in seconds: how long a call waits for other writers; the longest pause between two attempts; the waiting time
# after which the pauses are half as long; and how long a fork waits for transactions of other threads.
BUSY_TIMEOUT = 60.0
_MAX_PAUSE = 0.02
_PAUSE_HALVED_AFTER = 0.03
_FORK_TIMEOUT = 10.0

# The maximum size of a cell in bytes. All data of belated fit, even a million candidates.
_MAX_CELL = 1 << 28

# SQLite's primary result codes; and words of the messages, because the exceptions of Python 3.10 do not have the codes.
_BUSY = ((5, "database is locked"), (6, "table is locked"))
_DAMAGED = "it is damaged: restore a copy, or save what is intact with: belated study export --salvage"
_BUSY_MESSAGE = f"other processes have been writing to it for {BUSY_TIMEOUT:.0f} s: is one of them stopped?"
_MESSAGES = (
    *((*kind, _BUSY_MESSAGE) for kind in _BUSY),
    (13, "disk is full", "the disk is full: free some space and call again"),
    (8, "readonly", "it is read-only: give this user the right to write to the file and to its folder"),
    (3, "access permission", "it is not accessible: give this user the right to read and write"),
    (14, "unable to open", "it cannot be opened: does its folder exist, and may this user write there?"),
    (26, "not a database", "it is not a database: is the path right? If it is, restore a copy of the file"),
    (11, "malformed", _DAMAGED),
    (0, "decode to UTF-8", _DAMAGED),
    (10, "disk I/O error", "disk I/O error: is the disk full, or failing? Then call again"),
    (18, "too big", "it holds a field larger than any that belated writes"),
)


class _NoTables(StoreError):
    """The file is empty, as it is while another process creates the store."""


def _has_code(error: sqlite3.Error, code: int, words: str) -> bool:
    known = getattr(error, "sqlite_errorcode", None)
    return words in str(error) if known is None else known & 0xFF == code


class SqliteStore(Store):
    """A store in one file. Many processes of one machine may use a store at the same time.

    Each process opens a connection at its first call. A forked child opens its own connection and does not use the
    parent's connection.
    """

    _connection: sqlite3.Connection | None = None
    # Closes the connection with this store: the last connection that is closed removes the write-ahead log.
    _closing: "weakref.finalize[..., Any] | None" = None

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self.url = f"sqlite:///{self.path}"
        self._lock = threading.RLock()
        _STORES.add(self)
        register_connection(self)
        self._file: tuple[int, int] | None = None
        # For the present connection: whether its file is a mount point, and whether it can only read.
        self._is_mounted = self._reads_only = False

    def __repr__(self) -> str:
        return f"SqliteStore({self.path!r})"

    def __reduce__(self) -> tuple[type[Store], tuple[str]]:
        return SqliteStore, (self.path,)

    # The interface of a store.

    @classmethod
    def from_location(cls, location: str) -> "SqliteStore":
        """Open ``/relative.db`` or ``//absolute.db``, the part of ``sqlite:///relative.db`` after the second slash."""
        path = os.path.expanduser(location[1:])
        if not location.startswith("/") or not path or path == ":memory:" or "\0" in path:
            raise InvalidSetting(
                f"store={short_repr(f'sqlite://{location}')} does not name a file: pass 'sqlite:///file.db', "
                "since a study is kept for longer than its process lives"
            )
        return cls(path)

    def names(self) -> list[str]:
        """Return the names of all studies, the oldest first."""
        statement = "SELECT name FROM studies ORDER BY at, name"
        rows = self._run_if_not_empty(lambda connection: self._fetch(connection, statement))
        return [name for (name,) in rows or ()]

    def header(self, name: str) -> Header | None:
        """Return the study of this name, or None if it does not exist."""
        if not os.path.exists(self.path):
            return None
        return self._run_if_not_empty(lambda connection: self._header(connection, name))

    def create_all(self, studies: Sequence[tuple[Header, Sequence[Record]]]) -> list[str]:
        """Create studies with their events in one transaction. If some names already exist, only return these names."""

        def start(connection: sqlite3.Connection) -> list[str]:
            taken = [header.name for header, _ in studies if self._header(connection, header.name) is not None]
            if taken:
                return taken
            # If damage hides a study, the study must not be created again. The table of events may be large.
            self._check_integrity(connection, with_events=False)
            for header, records in studies:
                connection.execute("INSERT INTO studies VALUES (?, ?, ?, ?, ?, ?)", header)
                connection.execute("INSERT INTO heads VALUES (?, 0)", (header.id,))
                _Transaction(connection, header.id).append(records)
            return []

        return self._run(lambda connection: self._in_transaction(connection, start), create=True)

    def replace_header(self, old: Header, new: Header) -> bool:
        """Replace a header by a header with the same id and name. Return False if `old` is no longer stored."""
        statement = "UPDATE studies SET definition = ?, version = ?, checksum = ? WHERE id = ? AND checksum = ?"
        values = (new.definition, new.version, new.checksum, old.id, old.checksum)

        def update(connection: sqlite3.Connection) -> bool:
            return connection.execute(statement, values).rowcount == 1

        return self._run(lambda connection: self._in_transaction(connection, update), write=True)

    def delete(self, study: int) -> bool:
        """Delete the study with this id and its events. Return False if it does not exist."""

        def remove(connection: sqlite3.Connection) -> bool:
            for table in ("events", "heads"):
                connection.execute(f"DELETE FROM {table} WHERE study = ?", (study,))
            return connection.execute("DELETE FROM studies WHERE id = ?", (study,)).rowcount == 1

        return self._run(lambda connection: self._in_transaction(connection, remove), write=True)

    def events(self, study: int, start: int) -> list[Record]:
        """Return the events from number `start` on of the study with this id."""
        return self._run(lambda connection: self._when_free(lambda: _events(connection, study, start)))

    @contextmanager
    def writing(self, study: int) -> Iterator[Transaction]:
        """Return a context in which the caller is the only writer of the file."""
        with self._lock:
            try:
                connection = self._ready(write=True)
                # The steps of `_in_transaction` are repeated in this frame, so that an interrupt cannot come between
                # the lock and its release.
                try:
                    self._when_free(lambda: connection.execute("BEGIN IMMEDIATE"))
                    yield _Transaction(connection, study)
                    self._when_free(lambda: connection.execute("COMMIT"))
                finally:
                    if connection.in_transaction:
                        try:
                            connection.execute("ROLLBACK")
                        except sqlite3.Error:
                            self._disconnect()
            except (sqlite3.Error, UnicodeDecodeError) as error:
                raise self._failed(error) from error

    def check(self) -> None:
        """Raise StoreError if SQLite finds that the file is damaged, or if its tables are in a lost log."""
        self._run_if_not_empty(self._check_integrity)
        lost = self.lost_tables()
        if lost is not None:
            raise self._error(lost)

    def lost_tables(self) -> str | None:
        """Return why a file without tables is probably a copy of an open store; None for all other files.

        Until the first checkpoint, the tables of a store are only in its write-ahead log.
        """
        try:
            self._run(lambda connection: None)
        except _NoTables:
            with suppress(OSError), open(self.path, "rb") as file:
                versions = file.read(20)[18:]
                # A process that creates the store has a log beside the file.
                if versions == _WAL_VERSIONS and not os.path.exists(f"{self.path}-wal"):
                    return (
                        "it has no tables, because it was copied without its -wal file while it was open, or because "
                        "its creation was interrupted: copy it again with sqlite3 file.db '.backup copy.db'"
                    )
        return None

    def salvage(self) -> tuple[list[Header], list[tuple[int, Record]]]:
        """Return the intact headers, and (study id, event) of all intact events, which are found without SQLite."""
        from belated.store.salvage import salvage

        return salvage(self.path)

    # Helpers of the methods above.

    def _check_integrity(self, connection: sqlite3.Connection, with_events: bool = True) -> None:
        # SQLite before 3.33 checks all tables in each case.
        one, orphans = ("(5)", "") if with_events else ("(studies)", "(heads)")
        found = [text for (text,) in self._fetch(connection, f"PRAGMA integrity_check{one}")]
        rows = self._fetch(connection, f"PRAGMA foreign_key_check{orphans}")
        found += [f"{row[0]} without its study" for row in rows]
        if found != ["ok"]:
            raise self._error(f"it is damaged ({'; '.join(map(str, found))}): restore a copy, or use --salvage")

    def _header(self, connection: sqlite3.Connection, name: str) -> Header | None:
        statement = "SELECT id, name, definition, at, version, checksum FROM studies WHERE name = ?"
        return next((Header(*row) for row in self._fetch(connection, statement, (name,))), None)

    def _fetch(self, connection: sqlite3.Connection, statement: str, arguments: Sequence[Any] = ()) -> list[Any]:
        return self._when_free(lambda: connection.execute(statement, arguments).fetchall())

    def _run(self, action: Callable[[sqlite3.Connection], T], create: bool = False, write: bool = False) -> T:
        """Call an action with this process's connection, and turn errors of SQLite into StoreError."""
        with self._lock:
            try:
                return action(self._ready(create, write=create or write))
            except (sqlite3.Error, UnicodeDecodeError) as error:
                raise self._failed(error) from error

    def _run_if_not_empty(self, action: Callable[[sqlite3.Connection], T]) -> T | None:
        """Call an action that reads, as `_run` does. Return None for an empty file, which lacks studies."""
        with suppress(_NoTables):
            return self._run(action)
        return None

    def _ready(self, create: bool = False, write: bool = False) -> sqlite3.Connection:
        """Return this process's connection to the file, opened if necessary. With `write`, the connection may write."""
        connection = self._connection
        is_closed = self._closing is not None and not self._closing.alive  # the interpreter ends
        if connection is None or is_closed:
            connection = self._connect(create)
        elif self._file != self._identity():
            raise self._error(
                "the file was moved, removed or replaced while in use, so that other processes may write to "
                "another one: put the file back, or open the study again"
            )
        if write:
            problem = self._second_name()
            if problem is not None:
                raise self._error(problem)
            if self._reads_only:
                self._disconnect()
                connection = self._connect(create)
        return connection

    def _failed(self, error: sqlite3.Error | UnicodeDecodeError) -> StoreError:
        """Return the error to raise after an error of SQLite. Drop the connection, whose cached pages may be wrong."""
        self._disconnect()
        # SQLite's messages may quote bytes of a damaged file, which Python cannot always decode as text.
        return self._translated(error) if isinstance(error, sqlite3.Error) else self._error(_DAMAGED)

    def _identity(self) -> tuple[int, int] | None:
        status = self._status()
        return None if status is None else (status.st_dev, status.st_ino)

    def _status(self) -> os.stat_result | None:
        with suppress(OSError):
            return os.stat(self.path)
        return None

    def _connect(self, create: bool) -> sqlite3.Connection:
        kind = file_system(self.path)
        if kind in SHARED:
            raise self._error(
                f"it is on {kind}, a file system shared between machines, where locks are not reliable: "
                "use a path on a local disk"
            )
        if not create and not os.path.exists(self.path):
            raise self._error("the file does not exist")
        self._is_mounted = is_mount_point(self.path)
        problem = self._second_name()
        if problem is not None and create:
            raise self._error(problem)
        self._reads_only = problem is not None
        if problem is not None:
            warn(f"store {self.path} is opened for reading only, and may lack the last events: {problem}")
        # If a connection that only reads had write access, closing it would copy its own log over pages that other
        # processes wrote.
        uri = f"{Path(self.path).as_uri()}?mode={'rwc' if create else 'ro' if self._reads_only else 'rw'}"
        connection = sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            if sys.version_info >= (3, 11):
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_CELL)
                connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            for setting in ("trusted_schema = OFF", "foreign_keys = ON", "cell_size_check = ON", "synchronous = FULL"):
                # These statements also read the file, which other processes may be recovering after a crash.
                self._fetch(connection, f"PRAGMA {setting}")
            self._check_layout(connection, create)
            self._file = self._identity()
        except BaseException:
            connection.close()
            raise
        self._connection, self._closing = connection, close_with(self, connection, self._lock)
        return connection

    def _check_layout(self, connection: sqlite3.Connection, create: bool) -> None:
        if self._is_empty(connection):
            if not create:
                raise _NoTables(f"store {self.path}: it has no studies yet")
            self._when_free(lambda: connection.execute(f"PRAGMA journal_mode = {JOURNAL}").fetchall())
            self._in_transaction(connection, self._create_tables)
        [(application,)] = self._fetch(connection, "PRAGMA application_id")
        [(layout,)] = self._fetch(connection, "PRAGMA user_version")
        if application != APPLICATION:
            raise self._error("it is not a store of belated: pass another path")
        if layout > LAYOUT:
            raise self._error("it was written by a newer belated than this one: upgrade belated")
        found = self._fetch(connection, "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        if layout != LAYOUT or sorted(str(sql) for (sql,) in found) != sorted(SCHEMA):
            raise self._error("its tables differ from belated's: another program changed it, or it is damaged")

    def _create_tables(self, connection: sqlite3.Connection) -> None:
        if self._is_empty(connection):
            for statement in SCHEMA:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {LAYOUT}")

    def _is_empty(self, connection: sqlite3.Connection) -> bool:
        [(application,)] = self._fetch(connection, "PRAGMA application_id")
        return application == 0 and not self._fetch(connection, "SELECT 1 FROM sqlite_master LIMIT 1")

    def _second_name(self) -> str | None:
        """Return why the file may be open under another name with another log; None for a file with only one name."""
        status = self._status()
        if status is None:
            return None
        if status.st_nlink > 1 and stat.S_ISREG(status.st_mode):
            return (
                f"the file has {status.st_nlink} names (hard links), and SQLite keeps a write-ahead log for each, so "
                "that events would be lost: remove all names but one, and keep one with a -wal file beside it, if any "
                f"has (find / -xdev -samefile {self.path} lists them)"
            )
        if self._is_mounted:
            return (
                "the file itself is mounted, without the write-ahead log beside it, so that events would be lost: "
                "mount the folder that holds the file"
            )
        return None

    def _in_transaction(self, connection: sqlite3.Connection, action: Callable[[sqlite3.Connection], T]) -> T:
        """Call an action in a write transaction, and commit it unless the action raises an error."""
        try:
            self._when_free(lambda: connection.execute("BEGIN IMMEDIATE"))
            result = action(connection)
            self._when_free(lambda: connection.execute("COMMIT"))
            return result
        finally:
            # Python does not raise an interrupt just before it calls a C function; `in_transaction` and `execute` are C
            # functions.
            if connection.in_transaction:
                try:
                    connection.execute("ROLLBACK")
                except sqlite3.Error:
                    self._disconnect()

    def _disconnect(self) -> None:
        connection = self._without_connection()
        if connection is not None:
            # If closing fails, garbage collection closes the connection.
            with suppress(sqlite3.Error):
                connection.close()

    def _without_connection(self) -> sqlite3.Connection | None:
        """Forget the connection, and return it."""
        connection, self._connection = self._connection, None
        if self._closing is not None:
            self._closing.detach()
            self._closing = None
        return connection

    def _when_free(self, action: Callable[[], T]) -> T:
        """Call `action`, and repeat it while other writers hold the lock."""
        start = time.monotonic()
        while True:
            try:
                return action()
            except sqlite3.OperationalError as error:
                waited = time.monotonic() - start
                if not any(_has_code(error, *kind) for kind in _BUSY) or waited > BUSY_TIMEOUT:
                    raise
            # A call that has waited longer tries more often, so it will probably get the lock before other calls.
            pause = _MAX_PAUSE / (1 + (waited / _PAUSE_HALVED_AFTER) ** 2)
            time.sleep(random.uniform(0, max(pause, 0.0005 if waited < 1.0 else 0.003)))

    def _error(self, text: str) -> StoreError:
        return StoreError(f"store {self.path}: {text}")

    def _translated(self, error: sqlite3.Error) -> StoreError:
        for code, words, message in _MESSAGES:
            if _has_code(error, code, words):
                return self._error(f"{message} ({short_repr(str(error))})")
        return self._error(f"SQLite refused: {error}")

    def _after_fork(self) -> None:
        """Keep the parent's connection open and unused in a forked child, which starts without a connection."""
        self._lock = threading.RLock()
        connection = self._without_connection()
        if connection is not None:
            never_collect(connection)


_STORES: "weakref.WeakSet[SqliteStore]" = weakref.WeakSet()
_HELD = threading.local()


def _before_fork() -> None:
    """Wait until other threads have ended their transactions. In a child, SQLite would never release their locks."""
    _HELD.stores = [each for each in list(_STORES) if each._lock.acquire(timeout=_FORK_TIMEOUT)]


def _after_fork_in_parent() -> None:
    for each in _HELD.stores:
        each._lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent)


class _Transaction:
    """The `Transaction` of this store."""

    def __init__(self, connection: sqlite3.Connection, study: int) -> None:
        self._connection = connection
        self._study = study

    def events(self, start: int) -> list[Record]:
        """Return the events from number `start` on."""
        return _events(self._connection, self._study, start)

    def append(self, records: Sequence[Record]) -> None:
        """Add events; their numbers continue after the last event."""
        if not records:
            return
        statement = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)"
        self._connection.executemany(statement, [(self._study, *record) for record in records])
        moved = self._connection.execute(
            "UPDATE heads SET n = ? WHERE study = ? AND n = ?", (records[-1].seq + 1, self._study, records[0].seq)
        )
        if moved.rowcount != 1:
            raise StoreError("the store's count of events changed within a transaction: it is damaged; restore a copy")


_EVENTS = (
    "SELECT n, seq, version, key, at, body, checksum FROM heads LEFT JOIN events "
    "ON events.study = heads.study AND seq >= ? WHERE heads.study = ? ORDER BY seq"
)


def _events(connection: sqlite3.Connection, study: int, start: int) -> list[Record]:
    rows = connection.execute(_EVENTS, (start, study)).fetchall()
    return complete([row[1:] for row in rows if row[1] is not None], start, rows[0][0] if rows else None)
