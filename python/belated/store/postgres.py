"""Studies in a PostgreSQL database: locks, transactions, lost connections, and errors of the server.

Layout: a schema `belated` with the same tables as the SQLite store. A writer locks the row of its study in `heads`, and
numbers its events while it holds the lock. See docs/postgresql.md.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from belated.errors import InvalidSetting, StoreError
from belated.store.checksums import complete, is_intact, read_header
from belated.store.interface import Header, NotWritten, Record, Store, Transaction
from belated.store.postgres_connection import PASSWORDS, Server, driver, one_line
from belated.store.urls import split_passwords

T = TypeVar("T")

#: The number of the layout below. Other layouts are refused.
LAYOUT = 1

_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"

# A writer commits without waiting for the disk, so that the next writer can continue. The writer then waits until the
# server's log is on disk. One sync serves all waiting writers. A standby server does not write to its log.
_SYNC = "SELECT CASE WHEN NOT pg_is_in_recovery() THEN pg_logical_emit_message(true, 'belated', '') END"
_WITHOUT_WAITING = "SET LOCAL synchronous_commit TO OFF; "
# If a user does not have the right to call this function, this statement replaces the sync: locking a row also writes
# to the server's log.
_SYNC_BY_LOCK = "SELECT n FROM belated.heads WHERE study = %s FOR UPDATE"
# The number of times that a sync is repeated if an administrator cancels it.
_SYNCS = 3
_BEFORE_REPEATING = "look at the study before you repeat it, or repeat it with the same key"

# `events` does not have a foreign key. With a foreign key, each insertion would lock the row of the study, and locking
# a row writes to the row. The client draws a `write_key` for each transaction. If the answer to a commit is lost, the
# key shows whether the commit took place.
SCHEMA = (
    "CREATE SCHEMA IF NOT EXISTS belated",
    "CREATE TABLE belated.layout (layout integer NOT NULL)",
    "CREATE TABLE belated.studies (id bigint PRIMARY KEY, name text NOT NULL UNIQUE, definition text NOT NULL, "
    "at double precision NOT NULL, version integer NOT NULL, checksum bytea NOT NULL)",
    "CREATE TABLE belated.heads (study bigint PRIMARY KEY REFERENCES belated.studies, n bigint NOT NULL)",
    "CREATE TABLE belated.events (study bigint NOT NULL, seq bigint NOT NULL, version integer NOT NULL, key text, "
    "at double precision NOT NULL, body text NOT NULL, checksum bytea NOT NULL, write_key bytea NOT NULL, "
    "PRIMARY KEY (study, seq))",
    "CREATE UNIQUE INDEX keys ON belated.events (study, key) WHERE key IS NOT NULL",
)

_EVENTS = (
    "SELECT n, seq, version, key, at, body, checksum FROM belated.heads LEFT JOIN belated.events "
    "ON events.study = heads.study AND seq >= %s WHERE heads.study = %s ORDER BY seq"
)
_ROW = "(%s, %s, %s, %s, %s, %s, %s, %s)"
_WRITE_KEY = "SELECT write_key FROM belated.events WHERE study = %s AND seq = %s"
_HEADER = "SELECT id, name, definition, at, version, checksum FROM belated.studies"
_REPLACE = "UPDATE belated.studies SET definition = %s, version = %s, checksum = %s WHERE id = %s AND checksum = %s"


class PostgresStore(Store):
    """A store in a database. Many processes, on different machines, may use a store at the same time.

    A process opens a connection at its first call, and another connection if the first is lost. A forked child opens
    its own connection and does not use the parent's connection. Passwords stay in this process; they are neither shown
    nor pickled.
    """

    shows_unsynced = True

    def __init__(self, url: str) -> None:
        self.url = url
        self._server = Server(url)
        # The connection on which the layout of the database was checked, and the process that is writing.
        self._checked: Any = None
        self._writer: int | None = None
        # Study → number of the last event that this store has read. The next read probably starts there.
        self._known: dict[int, int] = {}

    def __repr__(self) -> str:
        return f"PostgresStore({self.url!r})"

    def __reduce__(self) -> tuple[type[Store], tuple[str]]:
        return PostgresStore, (self.url,)

    # The interface of a store.

    @classmethod
    def from_location(cls, location: str) -> "PostgresStore":
        """Open ``user:password@host:port/database?name=value``. Missing parts are read from environment
        variables such as PGHOST."""
        place, secrets = split_passwords(location)
        url = f"postgresql://{place}"
        psycopg = driver()
        try:
            psycopg.conninfo.conninfo_to_dict(url)
        except (psycopg.Error, UnicodeError) as error:
            raise InvalidSetting(f"store={url!r} is not a URL of PostgreSQL: {one_line(error)}") from None
        if secrets:
            PASSWORDS[url] = secrets
        return cls(url)

    def names(self) -> list[str]:
        """Return the names of all studies, the oldest first."""
        rows = self._fetch('SELECT name FROM belated.studies ORDER BY at, name COLLATE "C"')
        return [name for (name,) in rows]

    def header(self, name: str) -> Header | None:
        """Return the study of this name, or None if it does not exist."""
        with self._server.lock:
            if self._server.run(_layout) is None:
                return None
            return next((Header(*row) for row in self._fetch(f"{_HEADER} WHERE name = %s", name)), None)

    def create_all(self, studies: Sequence[tuple[Header, Sequence[Record]]]) -> list[str]:
        """Create studies with their events in one transaction. If some names already exist, only return these names."""
        tried = False

        def start(connection: Any) -> list[str]:
            nonlocal tried
            connection.execute(_BEGIN)
            taken = []
            # Use a fixed order, so that two creations do not wait for each other.
            for header, _ in sorted(studies, key=lambda study: study[0].name):
                added = connection.execute(
                    "INSERT INTO belated.studies VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (name) DO NOTHING", header
                )
                if added.rowcount != 1:
                    taken.append(header)
            if taken:
                connection.execute("ROLLBACK")
                # Ids are drawn at random. If the database contains these ids, the commit took place, although its
                # answer was lost.
                statement = "SELECT 1 FROM belated.studies WHERE name = %s AND id = %s"
                if tried and all(connection.execute(statement, (each.name, each.id)).fetchone() for each in taken):
                    return []
                return [header.name for header, _ in studies if header in taken]
            key = os.urandom(16)
            for header, records in studies:
                connection.execute("INSERT INTO belated.heads VALUES (%s, %s)", (header.id, len(records)))
                rows = [(header.id, *record, key) for record in records]
                connection.cursor().executemany(f"INSERT INTO belated.events VALUES {_ROW}", rows)
            tried = True
            connection.execute("COMMIT")
            return []

        return self._transact(start, create=True)

    def replace_header(self, old: Header, new: Header) -> bool:
        """Replace a header by a header with the same id and name. Return False if `old` is no longer stored."""
        values = (new.definition, new.version, new.checksum, old.id, old.checksum)

        def update(connection: Any) -> bool:
            connection.execute(_BEGIN)
            updated: bool = connection.execute(_REPLACE, values).rowcount == 1
            connection.execute("COMMIT")
            return updated

        return self._transact(update)

    def delete(self, study: int) -> bool:
        """Delete the study with this id and its events. Return False if it does not exist."""
        deleted = False

        def remove(connection: Any) -> bool:
            nonlocal deleted
            connection.execute(_BEGIN)
            # Wait for the study's writers.
            connection.execute("SELECT pg_advisory_xact_lock(%s::bigint)", (study,))
            connection.execute("DELETE FROM belated.events WHERE study = %s", (study,))
            connection.execute("DELETE FROM belated.heads WHERE study = %s", (study,))
            found = connection.execute("DELETE FROM belated.studies WHERE id = %s", (study,)).rowcount == 1
            # If the answer to the commit is lost, a repetition may not find the study that the commit has deleted.
            deleted = deleted or found
            connection.execute("COMMIT")
            return deleted

        return self._transact(remove)

    def events(self, study: int, start: int) -> list[Record]:
        """Return the events from number `start` on of the study with this id."""
        with self._server.lock:
            return self._noted(study, self._run(lambda connection: _events(connection, study, start)))

    def flush(self, study: int) -> None:
        """Wait until all events that readers could see before this call are on disk."""

        def wait(connection: Any) -> None:
            if self._server.may_sync_later:
                connection.execute(_SYNC)
            else:
                connection.execute(_SYNC_BY_LOCK, (study,))

        self._run(wait)

    @contextmanager
    def writing(self, study: int) -> Iterator[Transaction]:
        """Return a context in which the caller is the only writer of the study with this id."""
        with self._server.lock:
            self._refuse_nested()
            log = _Transaction(self, study)
            self._writer = os.getpid()
            try:
                self._run(log._lock)
                yield log
                log.commit()
            finally:
                self._writer = None
                try:
                    self._server.roll_back()
                except BaseException:
                    # The transaction was interrupted, perhaps before it began. Closing the connection releases the
                    # lock.
                    self._server.close()
                    raise

    def check(self) -> None:
        """Raise StoreError if events are missing or do not belong to a study."""
        problems = self._fetch(
            "SELECT coalesce(name, 'study ' || e.study), n, count, least, most FROM (SELECT study, count(*), min(seq) "
            "AS least, max(seq) AS most FROM belated.events GROUP BY study) AS e FULL JOIN belated.heads USING (study) "
            "FULL JOIN belated.studies ON id = coalesce(e.study, heads.study) WHERE n IS NULL OR name IS NULL "
            "OR n <> coalesce(count, 0) OR (count > 0 AND (least <> 0 OR most <> n - 1)) ORDER BY 1 LIMIT 5"
        )
        if problems:
            found = "; ".join(f"{name}: {n} events expected, {count or 0} found" for name, n, count, *_ in problems)
            raise self._server.error(f"it is damaged ({found}): restore a backup, or use --salvage")

    def salvage(self) -> tuple[list[Header], list[tuple[int, Record]]]:
        """Return the intact headers, and (study id, event) of all intact events that the server can read."""
        headers = []
        for row in self._fetch(f"{_HEADER} ORDER BY at"):
            with suppress(StoreError):
                read_header(Header(*row))
                headers.append(Header(*row))
        rows = self._fetch(
            "SELECT study, seq, version, key, at, body, checksum FROM belated.events ORDER BY study, seq"
        )
        events = [(study, Record(*row)) for study, *row in rows]
        return headers, [(study, record) for study, record in events if is_intact(study, record)]

    # Helpers of the methods above.

    def _noted(self, study: int, records: list[Record]) -> list[Record]:
        if records:
            self._known[study] = records[-1].seq
        return records

    def _fetch(self, statement: str, *arguments: Any) -> list[Any]:
        rows: list[Any] = self._run(lambda connection: connection.execute(statement, arguments, binary=True).fetchall())
        return rows

    def _refuse_nested(self) -> None:
        if self._writer == os.getpid():
            raise self._server.error("a study is being written to by this process already: end that `with` first")

    def _run(self, action: Callable[[Any], T], create: bool = False) -> T:
        """Call an action with a connection to a database of this layout. With `create`, missing tables are created."""

        def checked(connection: Any) -> T:
            if connection is not self._checked:
                if create and _layout(connection) is None:
                    _create_tables(connection)
                self._check_layout(_layout(connection))
                self._checked = connection
            return action(connection)

        return self._server.run(checked)

    def _transact(self, action: Callable[[Any], T], create: bool = False) -> T:
        """Call an action that begins and commits a transaction. If the action does not commit, roll back."""
        with self._server.lock:
            self._refuse_nested()
            try:
                return self._run(action, create)
            finally:
                try:
                    self._server.roll_back()
                except BaseException:
                    # The transaction was interrupted, perhaps before it began. Closing the connection releases the
                    # lock.
                    self._server.close()
                    raise

    def _check_layout(self, layout: int | None) -> None:
        if layout is None:
            raise self._server.error("it has no tables of belated: create a study there first, or pass another URL")
        if layout != LAYOUT:
            is_newer = layout > LAYOUT
            age, advice = ("a newer", "upgrade belated") if is_newer else ("an older", "read it with that version")
            raise self._server.error(
                f"it was written by {age} belated than this one (layout {layout}, this one has {LAYOUT}): {advice}"
            )


class _Transaction:
    """The `Transaction` of this store. A commit writes its events in one round trip."""

    def __init__(self, store: PostgresStore, study: int) -> None:
        self._store = store
        self._study = study
        self._added: list[Record] = []
        # The connection that holds the lock, and the data that were read with the lock: the events from number `_start`
        # on, the checksum of the last event, and the length of the log.
        self._connection: Any = None
        self._stored: list[Record] = []
        self._last: bytes | None = None
        self._start = self._n = 0

    def events(self, start: int) -> list[Record]:
        """Return the events from number `start` on."""

        def read(connection: Any) -> list[Record]:
            if connection is not self._connection:
                # Nothing has been written yet. If the connection is lost, the lock may therefore be taken again.
                self._lock(connection)
            return _events(connection, self._study, start)

        stored = self._stored[start - self._start :]
        if start < self._start or start > self._n:
            stored = self._store._run(read)
        return self._store._noted(self._study, stored) + [record for record in self._added if record.seq >= start]

    def append(self, records: Sequence[Record]) -> None:
        """Add events; their numbers continue after the last event."""
        if records and records[0].seq != self._n + len(self._added):
            raise StoreError("the store's count of events changed within a transaction: it is damaged; restore a copy")
        self._added.extend(records)

    def commit(self) -> None:
        """Write the appended events exactly once, even if the connection is lost in the meantime."""
        if not self._added:
            return
        # `before` is the checksum of the event before the first appended event. `sent` is True if a commit may have
        # taken place but its answer was lost.
        first, before, key, sent = self._added[0].seq, self._last, os.urandom(16), False

        def is_stored(connection: Any) -> bool:
            found = connection.execute(_WRITE_KEY, (self._study, first), binary=True).fetchone()
            return bool(found == (key,))

        def write(connection: Any) -> None:
            nonlocal sent
            if connection is not self._connection:
                # Once the lock is free again, the transaction of the lost connection has ended, with or without a
                # commit.
                self._lock(connection)
                if sent and self._n > first and is_stored(connection):
                    connection.execute("COMMIT")
                    sent = False
                    if self._store._server.may_sync_later:
                        self._wait_for_disk(connection)
                    return
                sent = False
                if self._n != first or self._last != before:
                    raise NotWritten(
                        f"store {self._store.url}: the connection was lost before anything was written, and other "
                        "processes wrote meanwhile: call again"
                    )
            sent = True
            try:
                self._send(connection, key)
                return
            except driver().Error:
                if connection.closed:
                    raise
                stored = connection.info.transaction_status.name == "IDLE" and is_stored(connection)
                sent = False
                if not stored:
                    raise
            # The events are stored. Only the wait for the disk was cancelled, for example by an administrator.
            self._wait_for_disk(connection)

        try:
            self._store._run(write)
        except StoreError as error:
            if sent:
                raise StoreError(f"{error}; the call may have been carried out: {_BEFORE_REPEATING}") from None
            raise
        self._store._noted(self._study, self._added)

    def _send(self, connection: Any, key: bytes) -> None:
        """Send the appended events, the commit and the request to wait for the disk in one message."""
        n, later = self._added[-1].seq + 1, self._store._server.may_sync_later
        rows = ", ".join([_ROW] * len(self._added))
        driver().ClientCursor(connection).execute(
            f"INSERT INTO belated.events VALUES {rows}; "
            f"UPDATE belated.heads SET n = {n:d} WHERE study = {self._study:d}; COMMIT{'; ' + _SYNC if later else ''}",
            [fact for record in self._added for fact in (self._study, *record, key)],
        )

    def _wait_for_disk(self, connection: Any) -> None:
        """Wait for the disk after a commit that did not wait."""
        for _ in range(_SYNCS):
            try:
                connection.execute(_SYNC)
                return
            except driver().Error as error:
                if connection.closed:
                    raise
                refused = error
        raise StoreError(
            f"store {self._store.url}: the events were written, but the server does not say whether they are on disk "
            f"({one_line(refused)}): {_BEFORE_REPEATING}"
        )

    def _lock(self, connection: Any) -> None:
        start, later = self._store._known.get(self._study, 0), self._store._server.may_sync_later
        # Send all statements in one message, because the server's limit on silence applies between two messages. The
        # advisory lock is a queue. Without this queue, other writers may repeatedly overtake a writer that waits for a
        # row. Read the events in a separate statement: a statement that waits for a lock sees the other tables as they
        # were before the wait.
        found = connection.execute(
            f"{_BEGIN}; {_WITHOUT_WAITING if later else ''}"
            f"SELECT pg_advisory_xact_lock({self._study:d}); "
            f"SELECT n FROM belated.heads WHERE study = {self._study:d} FOR UPDATE; "
            "SELECT seq, version, key, at, body, checksum FROM belated.events "
            f"WHERE study = {self._study:d} AND seq >= {start:d} ORDER BY seq"
        )
        for _ in range(3 if later else 2):
            found.nextset()
        n = found.fetchone()
        found.nextset()
        # `events` raises an error if events that were read before are missing.
        gone = n is not None and n[0] < start
        self._stored = [] if gone else complete(found.fetchall(), start, None if n is None else n[0])
        self._start = n[0] if gone else start
        self._n = self._start + len(self._stored)
        self._last = self._stored[-1].checksum if self._stored else None
        self._connection = connection


def _events(connection: Any, study: int, start: int) -> list[Record]:
    rows = connection.execute(_EVENTS, (start, study), binary=True).fetchall()
    return complete([row[1:] for row in rows if row[1] is not None], start, rows[0][0] if rows else None)


def _create_tables(connection: Any) -> None:
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('belated'))")
        if _layout(connection) is None:
            for statement in SCHEMA:
                connection.execute(statement)
            connection.execute("INSERT INTO belated.layout VALUES (%s)", (LAYOUT,))


def _layout(connection: Any) -> int | None:
    """Return the number of the database's layout, or None for a database without belated's tables."""
    # `to_regclass` reads a cache, which may lack a table that another process has just created.
    statement = "SELECT FROM pg_catalog.pg_tables WHERE schemaname = 'belated' AND tablename = 'layout'"
    if not connection.execute(statement).fetchall():
        return None
    found = connection.execute("SELECT layout FROM belated.layout").fetchall()
    if len(found) != 1:
        raise StoreError("the table belated.layout does not have one row: the store is damaged; restore a backup")
    return int(found[0][0])
