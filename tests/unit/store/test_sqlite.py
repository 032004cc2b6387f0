"""The SQLite store: connections, waiting for other writers, and errors of SQLite, which are raised as errors of
belated."""

import contextlib
import os
import pickle
import re
import shutil
import sqlite3
import sys
import threading
from pathlib import Path
from reprlib import repr as short

import pytest

import belated as bl
from belated import cli
from belated.store import checksums, sqlite
from belated.store.sqlite import SqliteStore

ID = 7


def header(name="s", id=ID, at=1.5):
    return checksums.header(id, name, {"problem": {}, "strategy": {"kind": "none"}, "stopping": None, "seed": 0}, at)


def record(seq, study=ID):
    return checksums.with_checksum(study, seq, None, 2.5, "{}")


@pytest.fixture
def opened(path):
    """A store with one study of two events, and a connection to it."""
    store = SqliteStore(path)
    store.create(header(), [record(0), record(1)])
    return store


def edit(path, *statements):
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


# Errors of SQLite.


class Failing:
    """A connection on which every call fails."""

    in_transaction = False
    closed = False

    def __init__(self, error):
        self.error = error

    def execute(self, *arguments):
        raise self.error

    def close(self):
        self.closed = True


def failing(store, error):
    store._disconnect()
    store.names()
    store._connection.close()
    store._connection = Failing(error)
    return store._connection


ERRORS = [
    (13, "database or disk is full", "the disk is full"),
    (8, "attempt to write a readonly database", "it is read-only"),
    (3, "access permission denied", "it is not accessible"),
    (14, "unable to open database file", "it cannot be opened"),
    (26, "file is not a database", "it is not a database"),
    (11, "database disk image is malformed", "it is damaged"),
    (0, "Could not decode to UTF-8 column", "it is damaged"),
    (10, "disk I/O error", "disk I/O error"),
    (18, "string or blob too big", "it holds a field larger than any that belated writes"),
    (21, "bad parameter or other API misuse", "SQLite refused: bad parameter or other API misuse"),
]


@pytest.mark.parametrize(("code", "words", "message"), ERRORS, ids=[str(code) for code, *_ in ERRORS])
@pytest.mark.parametrize("known", [True, False], ids=["code", "words"])
def test_errors_of_sqlite_have_advice(opened, code, words, message, known):
    error = sqlite3.DatabaseError(words if not known else f"in other words ({words})" if code == 21 else "?")
    if known:
        # The lowest byte of an extended error code is the primary code. In Python 3.10 the exception has only a
        # message.
        error.sqlite_errorcode = code | 3 << 8
    if known and code == 21:
        message = "SQLite refused: in other words"
    connection = failing(opened, error)
    with pytest.raises(bl.errors.StoreError, match=f"^store {re.escape(opened.path)}: {re.escape(message)}") as caught:
        opened.names()
    assert caught.value.__cause__ is error and (code == 21 or str(caught.value).endswith(f"({short(str(error))})"))
    # The connection must not use its cached pages any more.
    assert connection.closed and opened.names() == ["s"]


def test_text_that_cannot_be_decoded_is_damage(opened):
    error = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
    connection = failing(opened, error)
    with pytest.raises(bl.errors.StoreError, match="it is damaged: restore a copy, or save"):
        opened.names()
    assert connection.closed and opened.names() == ["s"]


def test_other_errors_leave_the_connection(opened):
    before = opened._connection
    with pytest.raises(ZeroDivisionError), opened.writing(7):
        raise ZeroDivisionError
    assert opened._connection is before and not before.in_transaction


# Waiting for other processes.


@pytest.fixture
def waits(monkeypatch):
    """Record the maximum length of each pause. A pause advances the time by the pause's length plus `step`."""
    made = {"now": 100.0, "step": 0.0, "pauses": [], "waited": []}

    def sleep(seconds):
        made["now"] += seconds + made["step"]

    def uniform(low, high):
        assert low == 0
        made["pauses"].append(high)
        made["waited"].append(made["now"] - 100.0)
        return high

    monkeypatch.setattr(sqlite.time, "monotonic", lambda: made["now"])
    monkeypatch.setattr(sqlite.time, "sleep", sleep)
    monkeypatch.setattr(sqlite.random, "uniform", uniform)
    return made


BUSY = [(5, "database is locked"), (6, "database table is locked"), (5 | 1 << 8, "database is locked")]


def busy(code, words, times):
    """Return a function whose first `times` calls fail because the file is locked."""
    left = [times]

    def action():
        if left[0]:
            left[0] -= 1
            error = sqlite3.OperationalError(words)
            if sys.version_info >= (3, 11):
                error.sqlite_errorcode = code
            raise error
        return "done"

    return action


@pytest.mark.parametrize(("code", "words"), BUSY)
def test_pauses_between_attempts_on_a_locked_file_become_shorter(opened, waits, code, words):
    waits["step"] = 0.01
    assert opened._when_free(busy(code, words, 1000)) == "done"
    pauses, waited = waits["pauses"], waits["waited"]
    assert len(pauses) == 1000 and waited[0] == 0 and pauses[0] == sqlite._MAX_PAUSE
    for pause, after in zip(pauses, waited, strict=True):
        shrunk = sqlite._MAX_PAUSE / (1 + (after / sqlite._PAUSE_HALVED_AFTER) ** 2)
        assert pause == pytest.approx(max(shrunk, 0.0005 if after < 1.0 else 0.003), rel=1e-12)
    assert waited[-1] > 1.0


def test_after_the_longest_wait_the_error_is_raised(opened, waits):
    waits["step"] = 25.0
    with pytest.raises(sqlite3.OperationalError):
        opened._when_free(busy(5, "database is locked", 99))
    assert [round(after) for after in waits["waited"]] == [0, 25, 50]
    waits["now"] = 100.0
    with pytest.raises(sqlite3.OperationalError):
        opened._when_free(busy(1, "no such table", 1))
    assert len(waits["waited"]) == 3


def test_error_names_other_processes_that_hold_the_lock(opened, waits):
    waits["step"] = 25.0
    failing(opened, sqlite3.OperationalError("database is locked"))
    if sys.version_info >= (3, 11):
        opened._connection.error.sqlite_errorcode = 5
    with pytest.raises(bl.errors.StoreError, match="other processes have been writing to it for 60 s"):
        opened.names()


# Connections.


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_neither_its_parents_connection_nor_its_lock(opened, monkeypatch):
    monkeypatch.setattr(sqlite, "_FORK_TIMEOUT", 0.1)
    holds, done = threading.Event(), threading.Event()

    def hold():
        with opened._lock:
            holds.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    holds.wait(60)
    before = opened._connection
    child = os.fork()
    if child == 0:
        code = 1
        try:
            assert opened._connection is None
            with opened.writing(7) as log:
                log.append([record(2)])
            assert opened._connection is not before
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    done.set()
    thread.join()
    assert opened._connection is before and opened.events(7, 0) == [record(0), record(1), record(2)]


def test_reading_does_not_create_a_missing_file(path):
    store = SqliteStore(path)
    for call in (store.names, store.check, lambda: store.events(7, 0)):
        with pytest.raises(bl.errors.StoreError, match=f"^store {re.escape(path)}: the file does not exist$"):
            call()
    assert store.header("s") is None and not os.path.exists(path)


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_an_empty_file_is_a_store_without_studies(path, mode):
    """A file is empty while another process creates the store, and after a program that was killed at that time."""
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA journal_mode = {mode}")
    Path(path).touch()
    before, url = Path(path).read_bytes(), f"sqlite:///{path}"
    store = SqliteStore(path)
    assert store.names() == [] and store.header("s") is None
    # With a write-ahead log, the file may also be a copy of an open store; see below.
    assert (store.lost_tables() is None) == (mode == "DELETE")
    if mode == "DELETE":
        store.check()
        assert bl.Study.list(url) == []
        for command in ("list", "show", "check", "export"):
            assert cli.main(["study", command, url]) == cli.DONE
    for call in (lambda: bl.Study.load("s", url), lambda: bl.Study.delete("s", url), lambda: store.events(7, 0)):
        with pytest.raises(bl.errors.StoreError, match="no stud"):
            call()
    assert Path(path).read_bytes() == before
    # The store object that has seen the empty file can create a study.
    assert store.create(header(), [record(0)]) and store.events(7, 0) == [record(0)] and store.names() == ["s"]
    store.check()


def test_a_copy_of_an_open_store_without_its_log_is_named(path, tmp_path, capsys):
    url, copy = f"sqlite:///{path}", str(tmp_path / "copy.db")
    study = bl.Study("s", url, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
    for i in range(20):
        study.suggest().observe(float(i))
    shutil.copy(path, copy)
    for command in ("list", "show", "check", "export"):
        assert cli.main(["study", command, copy]) == cli.FAILED
        assert "copied without its -wal file" in capsys.readouterr().err
    with pytest.warns(bl.BelatedWarning, match="copied without its -wal file"):
        assert bl.Study.list(f"sqlite:///{copy}") == []
    with pytest.raises(bl.errors.StoreError, match="copied without its -wal file"):
        bl.Study.load("s", f"sqlite:///{copy}")
    # A copy with the log, and a store from which all studies were deleted, are complete.
    shutil.copy(f"{path}-wal", f"{copy}-wal")
    assert cli.main(["study", "check", copy]) == cli.DONE
    assert [each.name for each in bl.Study.list(f"sqlite:///{copy}")] == ["s"]
    bl.Study.delete("s", url)
    for command in ("list", "show", "check", "export"):
        assert cli.main(["study", command, url]) == cli.DONE


def test_a_file_that_another_process_completes_meanwhile_is_a_store(path, monkeypatch):
    """Two processes find an empty file and create the store; one process creates it before a given step of the
    other."""
    real, opened = SqliteStore._fetch, []

    def fetch(self, connection, statement, arguments=()):
        found = real(self, connection, statement, arguments)
        if statement == "SELECT 1 FROM sqlite_master LIMIT 1" and not opened:
            opened.append(SqliteStore(path))
            opened[0].create(header("t", 8), [])
        return found

    monkeypatch.setattr(SqliteStore, "_fetch", fetch)
    Path(path).touch()
    store = SqliteStore(path)
    assert store.header("s") is None and opened[0].names() == ["t"]
    opened.clear()
    os.remove(path)
    assert store.create(header(), [record(0)]) and store.names() == ["s", "t"]


def test_a_file_replaced_while_in_use_is_refused_until_it_is_restored(opened, path):
    other = SqliteStore(path + ".other")
    other.create(header("t", 8), [])
    other._disconnect()
    os.rename(path, path + ".old")
    for _ in range(2):
        with pytest.raises(bl.errors.StoreError, match="the file was moved, removed or replaced while in use"):
            opened.names()
        if not os.path.exists(path):
            # A new file with the same name is not the file that the store has opened.
            os.rename(path + ".other", path)
    os.replace(path + ".old", path)
    assert opened.names() == ["s"]


def test_other_files_cannot_be_attached_and_schemas_are_not_trusted(opened):
    opened.names()
    with pytest.raises(sqlite3.OperationalError, match="too many attached databases"):
        opened._connection.execute("ATTACH DATABASE ':memory:' AS other")
    assert opened._connection.execute("PRAGMA cell_size_check").fetchone() == (1,)


NETWORK = """9p afs beegfs ceph cifs coda davfs gfs gfs2 glusterfs gpfs lustre ncpfs nfs nfs4 ocfs2 orangefs pvfs2 smb2
smb3 smbfs vboxsf vmhgfs fuse.ceph fuse.gcsfuse fuse.glusterfs fuse.rclone fuse.s3fs fuse.sshfs fuse.vmhgfs-fuse
fuse.davfs2 fuse.drive fuse.mfs fuse.juicefs fuse.cephfs fuse.blobfuse fuse.goofys virtiofs fakeowner fuse.grpcfuse
osxfs fuse.osxfs prl_fs"""


def test_every_shared_file_system_is_refused(path, monkeypatch):
    for kind in NETWORK.split():
        monkeypatch.setattr(sqlite, "file_system", lambda given, kind=kind: kind if given == path else "ext4")
        with pytest.raises(bl.errors.StoreError, match=f"^store {re.escape(path)}: .* {kind}, a file system shared"):
            SqliteStore(path).create(header(), [])
    for kind in ("ext4", "xfs", "btrfs", "tmpfs", "overlay", "apfs", "fuse", ""):
        monkeypatch.setattr(sqlite, "file_system", lambda given, kind=kind: kind)
        assert SqliteStore(path).create(header(kind, hash(kind) & 0xFFFF), []) is True


def test_a_pickled_store_is_opened_by_its_path(opened, path, monkeypatch):
    monkeypatch.chdir(os.path.dirname(path))
    for store in (SqliteStore.from_location("/studies.db"), SqliteStore.from_location(f"/{path}")):
        again = pickle.loads(pickle.dumps(store))
        monkeypatch.chdir("/")
        assert (again.path, again.url, repr(again)) == (path, f"sqlite:///{path}", f"SqliteStore({path!r})")
        assert again.names() == ["s"]
        monkeypatch.chdir(os.path.dirname(path))


@pytest.mark.parametrize("location", ["", "x.db", "/", "/:memory:", "/a\0b"])
def test_locations_without_a_file_are_refused(location):
    with pytest.raises(
        bl.errors.InvalidSetting, match=f"^store={re.escape(short(f'sqlite://{location}'))} .*sqlite:///file.db"
    ):
        SqliteStore.from_location(location)


def test_creating_an_existing_study_does_not_replace_it(opened):
    assert opened.create(header(id=9, at=0.5), [record(0, 9)]) is False
    assert opened.header("s") == header() and opened.events(7, 0) == [record(0), record(1)]
    assert SqliteStore(opened.path).salvage() == ([header()], [(ID, record(0)), (ID, record(1))])


# The content of the file.


def test_names_are_sorted_by_time_and_then_alphabetically(path):
    store = SqliteStore(path)
    for id, (name, at) in enumerate([("c", 3.0), ("b", 2.0), ("a", 2.0), ("d", 1.0)]):
        store.create(header(name, id, at), [])
    assert store.names() == ["d", "a", "b", "c"]


def test_events_that_do_not_follow_the_last_one_are_refused_whole(opened):
    for wrong in (1, 4):
        with pytest.raises(bl.errors.StoreError), opened.writing(7) as log:
            log.append([record(2)])
            log.append([record(wrong)])
    with pytest.raises(bl.errors.StoreError, match="changed within a transaction"), opened.writing(7) as log:
        log.append([record(5)])
    assert opened.events(7, 0) == [record(0), record(1)]
    with opened.writing(7) as log:
        log.append([])
    assert opened.events(7, 2) == []


@pytest.mark.parametrize(
    ("statement", "start", "message"),
    [
        ("DELETE FROM heads", 0, "the study's count of events is missing"),
        ("UPDATE heads SET n = 'two'", 0, "the study's count of events is missing"),
        ("UPDATE heads SET n = 3", 1, "the store has 1 of the 2 events from number 1 on"),
        ("UPDATE heads SET n = 3", 0, "the store has 2 of the 3 events from number 0 on"),
        ("DELETE FROM events", 1, "the store has 0 of the 1 events from number 1 on"),
        ("SELECT 1", 3, "the store has 2 events of a study of which this process knows 3"),
    ],
)
def test_wrong_counts_of_events_are_refused(opened, path, statement, start, message):
    opened.events(7, 0)
    edit(path, statement)
    with pytest.raises(bl.errors.StoreError, match=f"^{re.escape(message)}"):
        opened.events(7, start)
    with pytest.raises(bl.errors.StoreError, match=f"^{re.escape(message)}"), opened.writing(7) as log:
        log.events(start)


# Damage that SQLite finds.


def lose_the_name(path, name):
    """Change a name in the index of SQLite, but not in the row of the table."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    [(page,)] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_studies_1'")
    [(size,)] = connection.execute("PRAGMA page_size")
    connection.close()
    with open(path, "rb+") as file:
        file.seek((page - 1) * size)
        data = file.read(size)
        assert data.count(name.encode()) == 1
        file.seek((page - 1) * size)
        file.write(data.replace(name.encode(), name[::-1].encode()))


def test_a_study_hidden_by_damage_is_not_created_again(path):
    store = SqliteStore(path)
    store.create(header("dose-finding"), [record(0)])
    store._disconnect()
    lose_the_name(path, "dose-finding")
    assert store.header("dose-finding") is None
    for given in (header("dose-finding", 8), header("other", 9)):
        with pytest.raises(
            bl.errors.StoreError, match=r"it is damaged \(.*index.*\): restore a copy, or use --salvage"
        ):
            store.create(given, [])
    with pytest.raises(bl.errors.StoreError, match=r"it is damaged \(.*missing from index.*\)"):
        store.check()
    assert store.salvage() == ([header("dose-finding")], [(ID, record(0))])


def test_a_creation_does_not_read_the_events_of_other_studies(path):
    """The number of steps of SQLite's virtual machine under the write lock is independent of the number of events."""
    store = SqliteStore(path)
    store.create(header(), [record(seq) for seq in range(20_000)])
    steps = []
    for n in range(2):
        ticks = []
        store._connection.set_progress_handler(lambda ticks=ticks: ticks.append(1), 100)
        store.create(header(f"new {n}", 8 + n), [])
        steps.append(len(ticks))
        store.delete(7)
    assert steps[0] <= steps[1] + 5 and steps[0] < 50


@pytest.mark.parametrize(
    ("statement", "table"),
    [("INSERT INTO heads VALUES (99, 0)", "heads"), ("UPDATE studies SET id = 8", "events")],
)
def test_rows_without_their_study_are_damage(opened, path, statement, table):
    opened.check()
    edit(path, statement)
    with pytest.raises(bl.errors.StoreError, match=rf"it is damaged \(.*{table} without its study.*\): restore a copy"):
        opened.check()
    with pytest.raises(bl.errors.StoreError):
        opened.create(header("t", 9), [])
    assert "t" not in opened.names()


def test_a_file_that_was_replaced_by_another_copy_is_noticed(tmp_path):
    def copied(source, target):
        with contextlib.closing(sqlite3.connect(source)) as theirs, contextlib.closing(sqlite3.connect(target)) as ours:
            theirs.backup(ours)

    path, copy = tmp_path / "study.db", tmp_path / "copy.db"
    study = bl.Study("s", path, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
    copied(path, copy)
    study.add({"x": 0.25}, 1.0)
    for n in (1, 2):
        bl.Study.load("s", copy).add({"x": 0.75}, 2.0)
        copied(copy, path)
        with pytest.raises(
            bl.errors.StoreError, match="has another event in place of number 0, which this process has read"
        ):
            study.suggest()
        assert study._log.n_events() == 1 and bl.Study.load("s", path).n_trials == n
