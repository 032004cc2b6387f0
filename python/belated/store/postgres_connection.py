"""A connection to a PostgreSQL server, opened when needed and reopened when lost. Forked children do not use it."""

import os
import random
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from belated.errors import StoreError
from belated.store.closing import close_with
from belated.store.forks import never_collect, register_connection

T = TypeVar("T")

# Limits in seconds: how long a call waits for other writers; how long a writer with the lock may be silent (its process
# may be stopped, or its machine unreachable); and how long a call tries to reach the server again.
LOCK_TIMEOUT = 60
_SILENCE = 30
RECONNECT_TIMEOUT = 60.0
_MAX_PAUSE = 1.0

# Defaults of a connection in seconds, except for the last default, which is in milliseconds. The URL may override them.
_CONNECTION = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
    "fallback_application_name": "belated",
}
# Whether the user may wait for the disk after a commit. To wait, the user needs the right to call this function. All
# users have this right unless it was revoked. The function's arguments differ between versions of the server.
_MAY_SYNC_LATER = (
    "SELECT coalesce(bool_and(has_function_privilege(oid, 'EXECUTE')), false) FROM pg_catalog.pg_proc "
    "WHERE proname = 'pg_logical_emit_message'"
)

# These settings ensure that an acknowledged commit is on disk, for any default of the server; a stricter setting for
# standby servers is kept. Only the first two settings limit the time of a call. Times are read back bit for bit. By
# default, transactions are not read-only.
_SESSION = (
    "SELECT set_config('lock_timeout', %s, false), set_config('idle_in_transaction_session_timeout', %s, false), "
    "set_config('statement_timeout', '0', false), set_config('extra_float_digits', '3', false), "
    "set_config('default_transaction_read_only', 'off', false), "
    "CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END"
)

# Errors do not have a code before a connection exists. Words in the server's messages then distinguish two kinds of
# errors: errors that would occur again in a new attempt, and errors of a server that will soon be ready.
_FINAL = ("authentication failed", "no password supplied", "does not exist", "pg_hba.conf", "permission denied")
_NOT_READY = ("starting up", "shutting down", "recovery mode", "not yet accepting", "too many clients", "slots are")
_REFUSALS = (
    ("authentication failed", "the server refuses this user and password: correct them"),
    (
        "no password supplied",
        "the server wants a password: give one in the URL, in PGPASSWORD or in a password file. A pickle keeps none",
    ),
    ("does not exist", "the database or the user does not exist: create it, or correct the URL"),
)
_CODES = {
    "55P03": f"other processes have been writing to the study for {LOCK_TIMEOUT} s: is one of them stopped?",
    "53100": "the server's disk is full: free some space and call again",
    "53300": "the server has no connection left: raise max_connections, or start fewer processes",
    "25006": "the server is read-only, perhaps a standby: pass the URL of a server that can be written to",
    "42501": "the user lacks a privilege: docs/postgresql.md lists the required ones",
    "42P01": "its tables differ from belated's: another program changed them",
    "42703": "its tables differ from belated's: another program changed them",
    "XX001": "it is damaged: restore a backup, or save what is intact with: belated study export --salvage",
    "XX002": "it is damaged: restore a backup, or save what is intact with: belated study export --salvage",
}

# URL without passwords → the passwords that this process used to open the URL. If this process unpickles a store, the
# store uses these passwords.
PASSWORDS: dict[str, dict[str, str]] = {}


def driver() -> Any:
    """Return the package psycopg, which only URLs of PostgreSQL need."""
    try:
        import psycopg
    except ImportError as error:
        raise StoreError(
            f"a store in PostgreSQL needs the package psycopg ({error}): pip install 'belated[postgres]'"
        ) from None
    return psycopg


class Server:
    """A server and this process's connection to it. There is at most one connection, which one thread uses at a time.

    The URL does not contain passwords. This module keeps the passwords, and they are neither shown nor pickled.
    """

    _connection: Any = None
    _closing: "weakref.finalize[..., Any] | None" = None

    def __init__(self, url: str) -> None:
        self.url = url
        self.lock = threading.RLock()
        self._process = os.getpid()
        self._was_connected = False
        # Whether the present connection may wait for the disk after a commit.
        self.may_sync_later = False
        register_connection(self)

    def run(self, action: Callable[[Any], T]) -> T:
        """Call an action with this process's connection. If it was lost, repeat the call with a new connection."""
        psycopg = driver()
        with self.lock:
            end, pause = None, 0.0
            while True:
                try:
                    return action(self._connected())
                except psycopg.Error as error:
                    again, problem = self._is_lost(error), self._translated(error)
                except BaseException:
                    self._close_if_interrupted()
                    raise
                now = time.monotonic()
                end = now + RECONNECT_TIMEOUT if end is None else end
                if again:
                    self.close()
                if not again or now > end:
                    # Leave out the cause of the error, because its frames contain the password.
                    raise problem
                time.sleep(random.uniform(pause / 2, pause))
                pause = min(max(2 * pause, 0.05), _MAX_PAUSE)

    def roll_back(self) -> None:
        """End a transaction that is still open, for example after an error. Close the connection if this fails."""
        connection = self._connection
        if connection is None:
            return
        try:
            self._close_if_interrupted()
            if self._connection is not None and connection.info.transaction_status.name != "IDLE":
                connection.execute("ROLLBACK")
        except driver().Error:
            self.close()
        except BaseException:
            # The lock must be released even after an interrupt.
            self.close()
            raise

    def _close_if_interrupted(self) -> None:
        """Close a connection that was interrupted in a statement, because it cannot send another statement."""
        if self._connection is not None and self._connection.info.transaction_status.name == "ACTIVE":
            self.close()

    def _is_lost(self, error: Exception) -> bool:
        """Return whether an error means that the connection is lost, and that a new connection may succeed."""
        if self._connection is not None:
            return bool(self._connection.closed)
        text = str(error)
        if not isinstance(error, driver().OperationalError) or any(word in text for word in _FINAL):
            return False
        # If the server was never reached, a wrong address is more likely than a server that is starting.
        return self._was_connected or any(word in text for word in _NOT_READY)

    def _connected(self) -> Any:
        if self._process != os.getpid():
            self._after_fork()
        is_closed = self._closing is not None and not self._closing.alive  # the interpreter ends
        if self._connection is None or is_closed:
            psycopg = driver()
            given = psycopg.conninfo.conninfo_to_dict(self.url)
            settings = {**_CONNECTION, **given, **PASSWORDS.get(self.url, {}), "client_encoding": "UTF8"}
            connection = psycopg.connect(**settings, autocommit=True)
            self._was_connected = True
            try:
                self._set_up(connection)
            except BaseException:
                connection.close()
                raise
            # Set this attribute last, so that a connection is used only after its setup is complete.
            self._connection, self._closing = connection, close_with(self, connection, self.lock)
        return self._connection

    def _set_up(self, connection: Any) -> None:
        """Give a new connection its settings."""
        if connection.info.parameter_status("server_encoding") != "UTF8":
            raise self.error("its encoding is not UTF8: make another database WITH ENCODING 'UTF8'")
        connection.isolation_level = driver().IsolationLevel.READ_COMMITTED
        connection.execute(_SESSION, (f"{LOCK_TIMEOUT}s", f"{_SILENCE}s"))
        [(self.may_sync_later,)] = connection.execute(_MAY_SYNC_LATER).fetchall()

    def close(self) -> None:
        """Close the connection; the next call opens another connection."""
        connection = self._without_connection()
        if connection is not None and self._process == os.getpid():
            connection.close()

    def _without_connection(self) -> Any:
        """Forget the connection, and return it."""
        connection, self._connection = self._connection, None
        if self._closing is not None:
            self._closing.detach()
            self._closing = None
        return connection

    def error(self, text: str) -> StoreError:
        """Return a StoreError about this server's store."""
        return StoreError(f"store {self.url}: {text}")

    def _translated(self, error: Any) -> StoreError:
        said = one_line(error)
        for secret in PASSWORDS.get(self.url, {}).values():
            said = said.replace(secret, "***") if secret else said
        if "authentication failed" in said and not self._was_connected:
            # Forget this wrong password, so that it is not used for a later URL without a password.
            PASSWORDS.pop(self.url, None)
        message = _CODES["25006"] if "during recovery" in said else _CODES.get(error.sqlstate)
        if message is None and self._connection is None:
            message = next((text for words, text in _REFUSALS if words in said), "the server cannot be reached")
        if message is None and self._connection.closed:
            message = "the connection was lost"
        return self.error(f"PostgreSQL refused: {said}" if message is None else f"{message} ({said})")

    def _after_fork(self) -> None:
        """Keep the parent's connection open and unused in a forked child, which starts without a connection."""
        self.lock = threading.RLock()
        self._process = os.getpid()
        connection = self._without_connection()
        if connection is not None:
            never_collect(connection)


def one_line(error: object) -> str:
    """Return the message of an error in one line."""
    return " ".join(str(error).split())
