"""The PostgreSQL store: passwords, privileges, layouts, damage, forks, and errors of the server."""

import logging
import os
import pickle
import re
import subprocess
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import pytest

import belated as bl
from belated import cli
from belated.store import open_store, postgres_connection
from belated.store import postgres as module
from campaigns.server import USERS
from tests.contract.store.test_contract import header, record
from tests.unit.study.forks import suggests_in_a_fork

psycopg = pytest.importorskip("psycopg")
PASSWORD = USERS["locked"]


def random_search():
    return bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)


@pytest.fixture
def locked(postgres):
    """The URL of a store whose user has a password; the URL does not contain the password."""
    bl.Study("s", postgres.url(), random_search()).suggest()
    postgres.execute("GRANT USAGE ON SCHEMA belated TO locked")
    postgres.execute("GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA belated TO locked")
    postgres_connection.PASSWORDS.clear()
    return postgres.url(user="locked")


# Passwords.


def with_password(url, password=PASSWORD):
    return url.replace("locked@", f"locked:{password}@")


def test_a_password_is_used_and_never_shown(locked, capsys, caplog):
    caplog.set_level(logging.DEBUG)
    study = bl.Study.load("s", with_password(locked))
    study.suggest().observe(0.5)
    store = open_store(with_password(locked))
    assert store.url == study.store == locked and store.names() == ["s"]
    with pytest.raises(bl.errors.StoreError) as caught:
        bl.Study.load("other", with_password(locked))
    shown = [repr(study), repr(store), study._repr_html_(), str(vars(store)), str(vars(store._server))]
    shown += [*map(str, (pickle.dumps(study), pickle.dumps(store))), "".join(traceback.format_exception(caught.value))]
    for command in ("list", "show", "export", "check"):
        assert cli.main(["study", command, with_password(locked)]) == cli.DONE
    assert cli.main(["study", "show", with_password(locked), "other"]) == cli.FAILED
    out, err = capsys.readouterr()
    for text in (*shown, out, err, caplog.text):
        assert PASSWORD not in text


def test_a_wrong_password_is_refused_at_once_and_not_shown(locked):
    wrong = with_password(locked, "wr0ng")
    message = f"^store {re.escape(locked)}: the server refuses this user and password: correct them"
    with pytest.raises(bl.errors.StoreError, match=message) as caught:
        bl.Study.load("s", wrong)
    frames = list(traceback.walk_tb(caught.value.__traceback__))
    seen = "".join(str(frame.f_locals) for frame, _ in frames if "belated/store" in frame.f_code.co_filename)
    seen += "".join(traceback.format_exception(caught.value)) + str(caught.value.__context__)
    assert locked not in postgres_connection.PASSWORDS
    # The password may appear only in the argument that the caller passed.
    assert "wr0ng" not in seen.replace(wrong, "").replace(wrong.partition("://")[2], "")


def test_a_password_is_kept_if_the_server_refuses_it_later(locked, monkeypatch):
    study = bl.Study.load("s", with_password(locked))
    study.sync()
    study._store._server.close()
    connect = psycopg.connect
    with monkeypatch.context() as patch:
        patch.setattr(psycopg, "connect", lambda **given: connect(**given | {"password": "wr0ng"}))
        with pytest.raises(bl.errors.StoreError, match="the server refuses this user and password"):
            study.sync()
    study.sync()


def test_pickles_omit_the_password_and_the_error_explains_it(locked):
    study = bl.Study.load("s", with_password(locked))
    data = pickle.dumps(study)
    assert pickle.loads(data).n_trials == 1  # in the same process, the study still has the password
    program = "import pickle, sys; print(pickle.loads(bytes.fromhex(sys.argv[1])).n_trials)"
    settings = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PGPASSFILE": os.devnull}
    for given in ({}, {"PGPASSWORD": PASSWORD}):
        command = [sys.executable, "-c", program, data.hex()]
        run = subprocess.run(command, env=settings | given, capture_output=True, text=True)
        if given:
            assert run.stdout == "1\n"
        else:
            assert run.returncode == 1 and "PGPASSWORD or in a password file. A pickle keeps none" in run.stderr


# Privileges.


@pytest.fixture
def roles(postgres):
    bl.Study("s", postgres.url(), random_search()).suggest()
    for statement in (
        *("DROP ROLE IF EXISTS worker", "DROP ROLE IF EXISTS reader", "CREATE ROLE worker LOGIN"),
        *("CREATE ROLE reader LOGIN", "GRANT USAGE ON SCHEMA belated TO worker, reader"),
        "GRANT SELECT ON ALL TABLES IN SCHEMA belated TO worker, reader",
        "GRANT INSERT ON belated.studies, belated.heads, belated.events TO worker",
        "GRANT UPDATE ON belated.heads TO worker",
    ):
        postgres.execute(statement)
    yield
    postgres.execute("DROP OWNED BY worker, reader")
    postgres.execute("DROP ROLE worker")
    postgres.execute("DROP ROLE reader")


def test_the_privileges_that_are_documented_suffice(roles, postgres, capsys):
    worker = bl.Study.load("s", postgres.url(user="worker"))
    worker.suggest().observe(0.5)
    bl.Study("t", postgres.url(user="worker"), random_search()).suggest()
    reader = bl.Study.load("s", postgres.url(user="reader"))
    assert reader.best_value_ == 0.5 and reader.n_trials == 2
    for command in ("list", "show", "check", "export"):
        assert cli.main(["study", command, postgres.url(user="reader")]) == cli.DONE
    calls = [reader.suggest, lambda: reader.observe(0, 1.0)]
    calls += [lambda: worker.set_attrs({"a": 1}), lambda: bl.Study.delete("t", worker.store)]
    for call in calls:
        with pytest.raises(
            bl.errors.StoreError, match="the user lacks a privilege: docs/postgresql.md lists the required"
        ):
            call()
    assert worker.n_trials == 2 and bl.Study.load("t", worker.store).n_trials == 1
    postgres.execute("GRANT UPDATE ON belated.studies TO worker")
    postgres.execute("GRANT DELETE ON belated.studies, belated.heads, belated.events TO worker")
    worker.set_attrs({"a": 1})
    bl.Study.delete("t", worker.store)
    assert [(each.name, each.attrs) for each in bl.Study.list(postgres.url())] == [("s", {"a": 1})]


def test_a_worker_cannot_change_or_remove_records(roles, postgres):
    for statement in ("DELETE FROM belated.events", "UPDATE belated.events SET body = ''", "DROP TABLE belated.events"):
        with psycopg.connect(postgres.url(user="worker")) as connection, pytest.raises(psycopg.Error):
            connection.execute(statement)


def test_error_for_a_user_who_may_not_create_tables(postgres, roles):
    postgres.empty()
    with pytest.raises(bl.errors.StoreError, match="the user lacks a privilege"):
        bl.Study("s", postgres.url(user="worker"), random_search())


# Databases and layouts.


def test_reading_a_database_without_tables_is_refused_and_creates_none(postgres, url):
    opened = open_store(url)
    for call in (opened.names, opened.check, lambda: opened.events(7, 0), lambda: opened.writing(7).__enter__()):
        with pytest.raises(bl.errors.StoreError, match="no tables of belated|has no study 's'"):
            call()
    assert opened.header("s") is None
    with pytest.raises(bl.errors.StoreError, match="there is no study 's' in .*, which has .*: bl.Study"):
        bl.Study.load("s", url)
    assert postgres.execute("SELECT to_regnamespace('belated')") == [(None,)]


def test_tables_that_another_process_creates_meanwhile_are_found(postgres, url):
    postgres.empty()
    with ThreadPoolExecutor(1) as pool, psycopg.connect(url) as other:
        other.execute("SELECT pg_advisory_xact_lock(hashtext('belated'))")
        created = pool.submit(open_store(url).create, header(), [record(0)])
        while not postgres.execute("SELECT FROM pg_locks WHERE NOT granted"):
            time.sleep(0.01)
        module._create_tables(other)
        other.commit()
        assert created.result(60) and open_store(url).events(7, 0) == [record(0)]


def test_an_unknown_database_or_user_is_an_error(postgres):
    for url in (postgres.url("nowhere"), postgres.url(user="nobody_here")):
        with pytest.raises(
            bl.errors.StoreError, match="the database or the user does not exist: create it, or correct the"
        ):
            bl.Study.load("s", url)


def test_another_encoding_is_refused(postgres):
    postgres.execute("DROP DATABASE IF EXISTS latin")
    postgres.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(
        bl.errors.StoreError, match="its encoding is not UTF8: make another database WITH ENCODING 'UTF8'"
    ):
        bl.Study("s", postgres.url("latin"), random_search())
    postgres.execute("DROP DATABASE latin")


def test_a_newer_layout_is_refused(opened, url, postgres, capsys):
    postgres.execute("UPDATE belated.layout SET layout = layout + 1")
    for call in (lambda: bl.Study.load("s", url), lambda: bl.Study("t", url, random_search())):
        with pytest.raises(
            bl.errors.StoreError, match="it was written by a newer belated .*layout 2.* 1.*: upgrade belated"
        ):
            call()
    for command in ("list", "show", "check", "export"):
        assert cli.main(["study", command, url]) == cli.FAILED


def test_an_older_layout_is_refused(opened, url, monkeypatch):
    monkeypatch.setattr(module, "LAYOUT", 3)
    with pytest.raises(bl.errors.StoreError, match="older belated .*layout 1.* 3.*: read it with that version"):
        open_store(url).names()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("DELETE FROM belated.events WHERE seq = 0", r"1 of the 2 events|s: 2 events expected, 1 found"),
        ("DELETE FROM belated.heads", r"count of events is missing|s: None events expected, 2 found"),
        (
            "DELETE FROM belated.heads; DELETE FROM belated.studies",
            r"there is no study|study \d+: None events",
        ),
        ("UPDATE belated.events SET body = '[]' WHERE seq = 0", r"event 0 of study 's' is damaged"),
        ("ALTER TABLE belated.events RENAME TO other", r"its tables differ from belated"),
        ("DELETE FROM belated.layout", r"belated.layout does not have one row"),
    ],
)
def test_damage_is_found(url, postgres, damage, message, capsys):
    bl.Study("s", url, random_search()).suggest(n=2)
    for statement in damage.split("; "):
        postgres.execute(statement)
    with pytest.raises(bl.errors.StoreError, match=message):
        bl.Study.load("s", url)
    assert cli.main(["study", "check", url]) == cli.FAILED
    out, err = capsys.readouterr()
    assert re.search(message, out + err)


def test_salvage_leaves_out_damaged_records(opened, url, postgres, capsys):
    opened.create(header("t", 8), [record(0, study=8)])
    postgres.execute("UPDATE belated.events SET body = '[]' WHERE study = 7 AND seq = 0")
    postgres.execute("UPDATE belated.studies SET definition = '{}' WHERE name = 't'")
    assert opened.salvage() == ([header()], [(7, record(1)), (8, record(0, study=8))])
    assert cli.main(["study", "export", "--salvage", url]) == cli.DONE
    assert "1 studies and 2 events are intact" in capsys.readouterr().err


# Writers, threads, forks.


def test_error_for_a_writer_that_waits_too_long(opened, url, postgres, monkeypatch):
    monkeypatch.setattr(postgres_connection, "LOCK_TIMEOUT", 0.2)
    message = "other processes have been writing to the study for"
    with opened.writing(7) as log:
        with pytest.raises(bl.errors.StoreError, match=message), open_store(url).writing(7):
            pass
        log.append([record(2)])
    assert opened.events(7, 2) == [record(2)]


def test_a_silent_writer_loses_its_lock_but_not_its_events(url, postgres, monkeypatch):
    monkeypatch.setattr(postgres_connection, "_SILENCE", 0.2)
    opened = open_store(url)
    opened.create(header(), [])
    with opened.writing(7) as log:
        other = open_store(url)
        with other.writing(7) as others:  # this call waits until the server has ended the first session
            assert others.events(0) == []
        log.append([record(0)])
    assert other.events(7, 0) == [record(0)]


def test_a_transaction_within_another_is_refused(opened):
    with opened.writing(7) as log:
        with pytest.raises(bl.errors.StoreError, match="a study is being written to by this process already"):
            opened.writing(7).__enter__()
        with pytest.raises(bl.errors.StoreError):
            opened.create(header("t", 8), [])
        log.append([record(2)])
    assert opened.events(7, 2) == [record(2)]


def test_writing_is_synced_with_any_default_of_the_server(opened, url, postgres):
    for default, wanted in (("off", "on"), ("remote_apply", "remote_apply"), ("on", "on")):
        postgres.execute(f"ALTER DATABASE postgres SET synchronous_commit = {default}")
        try:
            with open_store(url).writing(7) as log:
                connection = log._connection
                within = connection.execute("SHOW synchronous_commit").fetchone()
            # The server logs a line when the writer waits for the disk after its transaction.
            found = connection.execute("SHOW synchronous_commit").fetchone()
        finally:
            postgres.execute("ALTER DATABASE postgres RESET synchronous_commit")
        assert within == ("off",) and found == (wanted,)


def test_limits_and_formats_of_the_server_have_no_effect(url, postgres):
    settings = {"extra_float_digits": 0, "statement_timeout": 200, "default_transaction_read_only": "on"}
    for name, value in settings.items():
        postgres.execute(f"ALTER DATABASE postgres SET {name} = {value}")
    try:
        study, other = bl.Study("s", url, random_search()), bl.Study.load("s", url)
        for _ in range(10):
            study.suggest()
            other.add({"x": 0.5}, 0.5)
        study._store._fetch("SELECT pg_sleep(0.3)")
        # In this test a check is replaced, as if the user lacked the privilege to wait for the disk after the commit.
        study._store._server.may_sync_later = False
        study._store.flush(study._log.id)
    finally:
        for name in settings:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("SET default_transaction_read_only = off")
                connection.execute(f"ALTER DATABASE postgres RESET {name}")
    assert bl.Study.load("s", url).n_trials == 20


def test_isolation_levels_of_the_server_have_no_effect(opened, url, postgres):
    postgres.execute("ALTER DATABASE postgres SET default_transaction_isolation = 'serializable'")
    try:
        stores = [open_store(url) for _ in range(4)]

        def append(store):
            for _ in range(10):
                with store.writing(7) as log:
                    log.append([record(2 + len(log.events(2)))])

        threads = [threading.Thread(target=append, args=(store,)) for store in stores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        postgres.execute("ALTER DATABASE postgres RESET default_transaction_isolation")
    assert opened.events(7, 0) == [record(k) for k in range(42)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_use_its_parents_connection(opened, postgres):
    with opened.writing(7) as log:
        before = opened._server._connection
        child = os.fork()
        if child == 0:
            code = 1
            try:
                assert opened._server._connection is None and opened.names() == ["s"]
                assert opened._server._connection is not before
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        log.append([record(2)])
        assert opened._server._connection is before and not before.closed
    assert opened._server._connection is before and opened.events(7, 2) == [record(2)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_without_pythons_hooks_is_detected(opened, monkeypatch):
    opened.names()
    before, child = opened._server._connection, os.getpid() + 1
    monkeypatch.setattr(postgres_connection.os, "getpid", lambda: child)
    assert opened.names() == ["s"] and opened._server._connection is not before and not before.closed
    monkeypatch.undo()
    before.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_during_a_call_of_another_thread_leaves_a_usable_child(url):
    """In the child, the store has a new lock and a new connection before the study is opened again."""
    study = bl.Study("s", url, random_search())
    study.suggest()
    assert suggests_in_a_fork(study, study._log.lock, study._store._server.lock)
    assert study.n_trials == 2
