"""If connections or answers of the PostgreSQL server are lost, every event is still written exactly once."""

import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

import belated as bl
from belated.store import open_store, postgres_connection
from belated.store import postgres as module
from belated.store.interface import NotWritten
from tests.contract.store.test_contract import header, record

psycopg = pytest.importorskip("psycopg")


def random_search():
    return bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)


def hang_up(server):
    """End all sessions of belated on the server, as an administrator or a network failure would."""
    server.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'belated'")


# Interrupts.


class Interrupted(Exception):
    """The exception that a signal handler raises, for example for a time limit."""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there is no timer that sends a signal")
@pytest.mark.parametrize("call", ["names", "events", "writing"])
def test_a_store_is_usable_after_an_interrupt_within_a_statement(opened, url, call):
    def interrupt(*_):
        raise Interrupted

    opened.names()
    handler = signal.signal(signal.SIGALRM, interrupt)
    try:
        with psycopg.connect(url) as other:
            other.execute("LOCK TABLE belated.studies, belated.events IN ACCESS EXCLUSIVE MODE")
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with pytest.raises(Interrupted):
                if call == "names":
                    opened.names()
                elif call == "events":
                    opened.events(7, 0)
                else:
                    with opened.writing(7) as log:
                        log.append([record(2)])
    finally:
        signal.signal(signal.SIGALRM, handler)
    assert opened.names() == ["s"]
    with opened.writing(7) as log:
        log.append([record(2)])
    assert opened.events(7, 2) == [record(2)]


def test_a_partly_configured_connection_is_not_used(opened, url, monkeypatch):
    set_up, interrupted = postgres_connection.Server._set_up, []

    def interrupt(server, connection):
        if not interrupted:
            interrupted.append(connection)
            raise KeyboardInterrupt
        set_up(server, connection)

    monkeypatch.setattr(postgres_connection.Server, "_set_up", interrupt)
    store = open_store(url)
    with pytest.raises(KeyboardInterrupt):
        store.names()
    assert interrupted[0].closed and store.names() == ["s"]
    assert store._fetch("SELECT current_setting('lock_timeout')") == [("1min",)]


# Lost connections.


def test_a_lost_connection_is_replaced(opened, postgres):
    before = opened._server._connection
    hang_up(postgres)
    assert opened.names() == ["s"] and opened._server._connection is not before
    hang_up(postgres)
    with opened.writing(7) as log:
        log.append([record(2)])
    hang_up(postgres)
    assert opened.create(header("t", 8), []) and opened.events(7, 2) == [record(2)]


@pytest.mark.parametrize("when", ["before events", "before append", "after append"])
def test_a_connection_that_is_lost_within_a_transaction_does_not_lose_it(opened, postgres, when):
    with opened.writing(7) as log:
        if when == "before events":
            hang_up(postgres)
        # With the lock, only the events that this process did not know were read, so `events(0)` must query the server.
        assert log.events(0) == [record(0), record(1)]
        if when == "before append":
            hang_up(postgres)
        log.append([record(2)])
        if when == "after append":
            hang_up(postgres)
        log.append([record(3)])
        assert log.events(1) == [record(1), record(2), record(3)]
    assert opened.events(7, 0) == [record(k) for k in range(4)]


def test_events_are_not_written_if_other_processes_wrote_meanwhile(opened, postgres, url):
    with pytest.raises(NotWritten, match="other processes wrote meanwhile: call again"), opened.writing(7) as log:
        log.append([record(2, '"mine"')])
        hang_up(postgres)
        with open_store(url).writing(7) as other:
            other.append([record(2, '"theirs"')])
    assert opened.events(7, 2) == [record(2, '"theirs"')]


@pytest.fixture
def lose_answers(monkeypatch):
    """A list of functions: for each, the server's answer to a commit is lost, and then the function is called."""
    send, waiting = module._Transaction._send, []

    def losing(log, connection, key):
        send(log, connection, key)
        if waiting:
            happens = waiting.pop(0)
            connection.close()
            happens()
            raise psycopg.OperationalError("the answer was lost")

    monkeypatch.setattr(module._Transaction, "_send", losing)
    return waiting


def test_a_commit_whose_answer_was_lost_is_recognised(opened, url, lose_answers):
    def overtaken():
        with open_store(url).writing(7) as log:
            log.append([record(log.events(0)[-1].seq + 1)])

    lose_answers += [lambda: None]
    with opened.writing(7) as log:
        log.append([record(2), record(3)])
    lose_answers += [overtaken]
    with opened.writing(7) as log:
        log.append([record(4)])
    assert not lose_answers and [each.seq for each in opened.events(7, 0)] == list(range(6))


def test_error_for_a_call_of_unknown_outcome(opened, lose_answers, monkeypatch):
    lock, lost = module._Transaction._lock, []

    def lock_once(log, connection):
        if lost:
            raise psycopg.errors.LockNotAvailable("canceling statement due to lock timeout")
        lock(log, connection)

    monkeypatch.setattr(module._Transaction, "_lock", lock_once)
    lose_answers += [lambda: lost.append(True)]
    with (
        pytest.raises(bl.errors.StoreError, match="the call may have been carried out: look"),
        opened.writing(7) as log,
    ):
        log.append([record(2)])
    assert opened.events(7, 2) == [record(2)]


@pytest.fixture
def lost(monkeypatch):
    """A list. If the list is empty, the answer to the next commit is lost, and the connection is added to the list."""
    real, lost = psycopg.Connection.execute, [None]

    def execute(self, statement, *arguments, **settings):
        result = real(self, statement, *arguments, **settings)
        if statement == "COMMIT" and not lost:
            lost.append(self)
            self.close()
            raise psycopg.OperationalError("the answer was lost")
        return result

    monkeypatch.setattr(psycopg.Connection, "execute", execute)
    return lost


def test_a_study_is_deleted_once_even_if_the_answer_was_lost(opened, url, lost):
    opened.create(header("t", 8), [record(0, study=8)])
    lost.clear()
    assert opened.delete(7) and lost and opened.names() == ["t"]
    assert not opened.delete(7)
    # Another process creates a study of the same name before the call is repeated.
    connected = module.Server._connected

    def overtaken(server):
        if lost and server is opened._server:
            module.Server._connected = connected
            assert open_store(url).create(header("t", 9), [record(0, study=9)])
        return connected(server)

    lost.clear()
    module.Server._connected = overtaken
    try:
        assert opened.delete(8) and lost
    finally:
        module.Server._connected = connected
    assert opened.events(9, 0) == [record(0, study=9)]
    opened.check()


def test_attributes_are_kept_even_if_the_answer_was_lost(url, lost):
    study = bl.Study("s", url, random_search())
    lost.clear()
    study.set_attrs({"a": 1})
    assert lost and study.attrs == bl.Study.load("s", url).attrs == {"a": 1}


def test_a_study_is_created_once_even_if_the_answer_was_lost(opened, lost):
    lost.clear()
    assert opened.create(header("t", 8), [record(0, study=8)]) and lost
    assert not opened.create(header("t", 9), []) and opened.events(8, 0) == [record(0, study=8)]
    lost.clear()
    several = [(header("u", 10), [record(0, study=10)]), (header("v", 11), [record(0, study=11)])]
    assert opened.create_all(several) == [] and lost
    assert opened.create_all(several[::-1]) == ["v", "u"] and opened.events(11, 0) == [record(0, study=11)]


def test_every_call_of_a_study_is_carried_out_once(url, lose_answers):
    study = bl.Study("s", url, random_search())
    lost = []

    def calls(study):
        first = study.suggest()
        study.observe(first, 0.5)
        study.observe(study.suggest(), 0.25)
        study.add([{"x": 0.5}, {"x": 0.75}], [1.0, None])
        study.enqueue({"x": 0.1})
        study.fail(study.suggest())
        study.abandon(study.suggest(n=2)[1])

    alone = random_search()
    lose_answers += [lambda: lost.append(1)] * 10
    calls(study)
    calls(alone)
    assert not lose_answers and len(lost) == 10 and study._log.n_events() == alone._log.n_events()
    assert [trial.params for trial in study.trials] == [trial.params for trial in alone.trials]
    assert [trial.state for trial in study.trials] == [trial.state for trial in alone.trials]


def test_calls_that_were_overtaken_are_made_again(url, postgres, monkeypatch):
    study, other = bl.Study("s", url, random_search()), bl.Study.load("s", url)
    commit, overtaken = module._Transaction.commit, []

    def overtake(log):
        if log._store is study._store and not overtaken and log._added:
            overtaken.append(1)
            hang_up(postgres)
            other.suggest()
        commit(log)

    monkeypatch.setattr(module._Transaction, "commit", overtake)
    numbers = [study.suggest().number]
    overtaken.clear()
    numbers.append(study.add({"x": 0.5}, 1.0).number)
    overtaken.clear()
    study.observe(0, 0.5)
    assert numbers == [1, 3] and study.n_trials == 5 and study.trial(0).value == 0.5
    assert [trial.params for trial in study.trials] == [trial.params for trial in other.trials]


def test_a_restarted_server_is_reached_again(url, postgres):
    study = bl.Study("s", url, random_search())
    trials = study.suggest(n=3)
    for trial, mode in zip(trials, ("immediate", "fast"), strict=False):
        postgres.stop(mode)
        with ThreadPoolExecutor(1) as pool:
            pending = pool.submit(study.observe, trial, 0.5)
            postgres.start()
            pending.result()
    assert [trial.state for trial in bl.Study.load("s", url).trials] == ["observed", "observed", "pending"]


def test_an_unreachable_server_is_an_error_and_acknowledged_calls_are_kept(url, postgres, monkeypatch):
    monkeypatch.setattr(postgres_connection, "RECONNECT_TIMEOUT", 0.3)
    study = bl.Study("s", url, random_search())
    first, second = study.suggest(n=2)
    study.observe(first, 0.5)
    postgres.stop()
    try:
        for call in (study.suggest, study.sync, lambda: study.observe(second, 0.25)):
            with pytest.raises(
                bl.errors.StoreError, match=r"^store postgresql://.*: the server cannot be reached \(.*socket"
            ):
                call()
        with pytest.raises(bl.errors.StoreError, match="the server cannot be reached"):
            bl.Study.load("s", url)
    finally:
        postgres.start()
    assert [trial.state for trial in study.trials] == ["observed", "pending"]
    study.observe(second, 0.25)
    assert [trial.value for trial in bl.Study.load("s", url).trials] == [0.5, 0.25]
