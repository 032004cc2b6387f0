"""A crash of the PostgreSQL server loses commits that were not yet on the disk. Afterwards, readers read the log
again."""

import contextlib
import time

import pytest

import belated as bl
from belated.store import open_store
from belated.store import postgres as module
from belated.store.interface import EventsGone, NotWritten
from tests.contract.store.test_contract import record

psycopg = pytest.importorskip("psycopg")


def random_search():
    return bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)


@pytest.fixture
def lazy(postgres):
    """A server that writes an unsynced commit to the disk only when the next synced commit is written."""
    # The WAL writer syncs at once if it has just woken up, or if its last run was longer ago than the delay.
    postgres.execute("SET synchronous_commit = off; SELECT pg_logical_emit_message(true, 'test', '')")
    end = time.monotonic() + 10
    while postgres.execute("SELECT pg_current_wal_flush_lsn() < pg_current_wal_insert_lsn()") == [(True,)]:
        assert time.monotonic() < end
        time.sleep(0.02)
    postgres.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
    postgres.execute("SELECT pg_reload_conf()")
    yield postgres
    postgres.execute("ALTER SYSTEM RESET wal_writer_delay")
    postgres.execute("SELECT pg_reload_conf()")


@contextlib.contextmanager
def unsynced():
    """A context in which writers do not wait for the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_SYNC", "SELECT 1")
        yield


def crash(server):
    server.stop("immediate")
    server.start()


def test_readers_of_undone_events_read_the_log_again(url, lazy):
    study = bl.Study("s", url, random_search())
    study.observe(study.suggest(), 0.5)
    with unsynced():
        bl.Study.load("s", url).suggest(n=3)
    assert study.n_trials == 4
    crash(lazy)
    assert study.n_trials == 1 and study.trials[0].value == 0.5
    # After the loss, writers add as many events as were lost, so the number of events does not show the loss.
    with unsynced():
        bl.Study.load("s", url).add({"x": 0.25}, 1.0)
    assert study.n_trials == 2
    crash(lazy)
    bl.Study.load("s", url).add({"x": 0.75}, 2.0)
    assert [trial.params["x"] for trial in study.trials][1:] == [0.75]
    with unsynced():
        bl.Study.load("s", url).suggest(n=2)
    study.sync()
    crash(lazy)
    assert study.suggest().number == 2
    assert [trial.params for trial in bl.Study.load("s", url).trials] == [trial.params for trial in study.trials]


@pytest.mark.parametrize("default", ["on", "off"])
def test_acknowledged_calls_are_on_disk(url, lazy, default):
    lazy.execute(f"ALTER DATABASE postgres SET synchronous_commit = {default}")
    study, other = bl.Study("s", url, random_search()), bl.Study.load("s", url)
    with unsynced():
        other.suggest(n=2)
    study.observe(1, 0.5)
    crash(lazy)
    lazy.execute("ALTER DATABASE postgres RESET synchronous_commit")
    assert bl.Study.load("s", url).trials[1].value == 0.5


@pytest.fixture
def crash_before_sync(monkeypatch, lazy):
    """A list of functions. After each of the next commits, the server crashes before the sync, and the next function of
    the list is called."""
    send, waiting = module._Transaction._send, []

    def crashing(log, connection, key):
        if not waiting:
            send(log, connection, key)
            return
        happens = waiting.pop(0)
        with unsynced():
            send(log, connection, key)
        crash(lazy)
        happens()
        connection.close()
        raise psycopg.OperationalError("the server crashed")

    monkeypatch.setattr(module._Transaction, "_send", crashing)
    return waiting


def test_a_writer_whose_commit_was_undone_writes_again(opened, crash_before_sync):
    crash_before_sync += [lambda: None]
    with opened.writing(7) as log:
        log.append([record(2), record(3)])
    assert not crash_before_sync and [each.seq for each in opened.events(7, 0)] == [0, 1, 2, 3]


def test_a_writer_notices_that_earlier_events_have_changed(opened, url, crash_before_sync):
    def others():
        with open_store(url).writing(7) as log:
            if log.events(2):
                pytest.skip("the server wrote the unsynced event to the disk before it crashed")
            log.append([record(2, '"theirs"')])

    with unsynced(), open_store(url).writing(7) as log:
        log.append([record(2, '"undone"')])
    crash_before_sync += [others]
    with pytest.raises(NotWritten, match="call again"), opened.writing(7) as log:
        assert log.events(2) == [record(2, '"undone"')]
        log.append([record(3)])
    assert opened.events(7, 2) == [record(2, '"theirs"')]


def test_calls_of_a_study_are_carried_out_once_though_the_server_crashes_before_the_sync(url, crash_before_sync):
    study, other = bl.Study("s", url, random_search()), bl.Study.load("s", url)
    crash_before_sync += [lambda: other.add({"x": 0.25}, 1.0), lambda: None]
    study.observe(study.suggest(), 0.5)
    assert not crash_before_sync
    assert [(trial.value, trial.state) for trial in other.trials] == [(1.0, "observed"), (0.5, "observed")]
    assert [trial.params for trial in other.trials] == [trial.params for trial in study.trials]


CALLS = {
    "observe with a key": lambda study: study.observe(0, 0.5, key="report"),
    "observe": lambda study: study.observe(1, 0.25),
    "suggest": lambda study: study.suggest(n=2, key="two"),
    "fail": lambda study: study.fail(2),
    "abandon": lambda study: study.abandon(3),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_call_that_another_process_made_before_is_on_disk_when_it_returns(url, lazy, call):
    study = bl.Study("s", url, random_search())
    study.suggest(n=4)
    with unsynced():
        call(bl.Study.load("s", url))
    call(study)
    n = study._log.n_events()
    crash(lazy)
    assert bl.Study.load("s", url)._log.n_events() == study._log.n_events() == n > 4


def test_a_call_is_repeated_if_a_crash_lost_the_events_it_depends_on(url, lazy, monkeypatch):
    study = bl.Study("s", url, random_search())
    study.suggest(n=4)
    with unsynced():
        bl.Study.load("s", url).fail(2)
    flush, crashes = module.PostgresStore.flush, [1]

    def crash_before(store, name):
        if crashes:
            crashes.pop()
            crash(lazy)
        flush(store, name)

    monkeypatch.setattr(module.PostgresStore, "flush", crash_before)
    study.fail(2)
    crash(lazy)
    assert not crashes and bl.Study.load("s", url).trial(2).state == "failed" == study.trial(2).state


def test_synced_events_survive_a_crash(url, lazy):
    study = bl.Study("s", url, random_search())
    with unsynced():
        bl.Study.load("s", url).suggest(n=3)
    assert study._log.sync_to_disk() == 3
    crash(lazy)
    assert study._log.sync_to_disk() == 0 and study.n_trials == 3


def test_without_the_privilege_to_wait_later_the_commit_waits_for_the_disk(url, lazy):
    study, other = bl.Study("s", url, random_search()), bl.Study.load("s", url)
    lazy.execute("CREATE ROLE worker LOGIN")
    for statement in (
        "REVOKE EXECUTE ON FUNCTION pg_logical_emit_message(boolean, text, text) FROM PUBLIC",
        "GRANT USAGE ON SCHEMA belated TO worker",
        "GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA belated TO worker",
        "GRANT UPDATE ON belated.heads TO worker",
    ):
        lazy.execute(statement)
    try:
        worker = bl.Study.load("s", lazy.url(user="worker"))
        worker.suggest(n=2)
        crash(lazy)
        assert study.n_trials == 2
        with unsynced():
            other.fail(1)
        worker.fail(1)
        crash(lazy)
        assert [trial.state for trial in bl.Study.load("s", url).trials] == ["pending", "failed"]
    finally:
        lazy.execute("GRANT EXECUTE ON FUNCTION pg_logical_emit_message(boolean, text, text) TO PUBLIC")
        lazy.execute("DROP OWNED BY worker")
        lazy.execute("DROP ROLE worker")


def test_an_interrupted_wait_for_the_disk_does_not_undo_the_commit(opened, postgres, monkeypatch):
    monkeypatch.setattr(module, "_SYNC", "SELECT 1/0")
    written = "the events were written, but the server does not say whether they are on disk"
    with pytest.raises(bl.errors.StoreError, match=written), opened.writing(7) as log:
        log.append([record(2)])
    assert opened.events(7, 2) == [record(2)]
    # Both calls raise an error.
    postgres.execute("CREATE SEQUENCE tries")
    monkeypatch.setattr(module, "_SYNC", "SELECT 1 / (nextval('tries') / 3)")
    try:
        with opened.writing(7) as log:
            log.append([record(3)])
        [(tries,)] = postgres.execute("SELECT last_value FROM tries")
    finally:
        postgres.execute("DROP SEQUENCE tries")
    assert tries == 3 and [each.seq for each in opened.events(7, 0)] == [0, 1, 2, 3]


def test_the_loss_of_an_acknowledged_call_is_an_error(url, postgres):
    study = bl.Study("s", url, random_search())
    study.suggest(n=3)
    postgres.execute("DELETE FROM belated.events WHERE seq = 2")
    postgres.execute("UPDATE belated.heads SET n = 2")
    for call in (study.sync, study.suggest):
        with pytest.raises(EventsGone, match=r"^study 's' in postgresql://.* has no longer event number 2, which"):
            call()
    bl.Study.load("s", url).suggest()
    with pytest.raises(EventsGone, match="has another event in place of number 2"):
        study.suggest()
    postgres.execute("DELETE FROM belated.events WHERE seq > 0")
    postgres.execute("UPDATE belated.heads SET n = 1")
    with pytest.raises(EventsGone, match=r"^the store has 1 events of a study of which this process knows 2"):
        study.sync()
    assert study._log.n_events() == 3
