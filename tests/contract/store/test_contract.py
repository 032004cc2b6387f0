"""Requirements on every store. The tested stores are SQLite, PostgreSQL, and a store in memory that is registered in
`STORES`."""

import os
import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

import belated as bl
from belated import cli, store
from belated.store import checksums


def header(name="s", id=7):
    return checksums.header(id, name, {"problem": {}, "strategy": {"kind": "none"}, "stopping": None, "seed": 0}, 1.5)


def record(seq, body="{}", key=None, study=7):
    return checksums.with_checksum(study, seq, key, 2.5, body)


def test_written_records_are_read_back(url):
    opened = store.open_store(url)
    assert opened.url == url and opened.header("s") is None
    assert opened.create(header(), [record(0), record(1, '{"é":"\\n"}', "suggest:0:k")])
    assert opened.create(header("t", 8), [])
    assert not opened.create(header("t", 9), [record(0, study=9)])
    again = store.open_store(url)
    assert again.names() == ["s", "t"]
    assert again.header("s") == header() and again.header("t") == header("t", 8)
    assert again.events(7, 0) == [record(0), record(1, '{"é":"\\n"}', "suggest:0:k")]
    assert again.events(7, 1) == again.events(7, 0)[1:] and again.events(7, 2) == again.events(8, 0) == []
    again.check()


def test_studies_are_not_created_if_one_of_the_names_exists(url):
    opened = store.open_store(url)
    assert opened.create_all([]) == [] and opened.header("s") is None
    first, second = (header(), [record(0), record(1)]), (header("t", 8), [record(0, study=8)])
    assert opened.create_all([first, second]) == []
    assert opened.names() == ["s", "t"] and opened.events(8, 0) == second[1]
    third = (header("u", 9), [record(0, study=9)])
    assert opened.create_all([third, (header("t", 10), []), (header(id=11), [])]) == ["t", "s"]
    again = store.open_store(url)
    assert again.names() == ["s", "t"] and again.events(7, 0) == first[1]
    assert again.create_all([third]) == [] and again.events(9, 0) == third[1]
    again.check()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_several_studies_are_started_in_one_transaction(kind, request, tmp_path):
    url = request.getfixturevalue("postgres").url() if kind == "postgresql" else f"sqlite:///{tmp_path / 'studies.db'}"
    opened = store.open_store(url)
    opened.create(header(), [])
    # The second of the two new studies has the id of a stored study. The store detects the repeated id only after it
    # has written the first study.
    with pytest.raises(bl.errors.StoreError):
        opened.create_all([(header("t", 8), [record(0, study=8)]), (header("u", 7), [])])
    assert opened.names() == store.open_store(url).names() == ["s"]
    assert opened.create(header("t", 8), [record(0, study=8)])


def test_a_transaction_is_written_completely_or_not_at_all(url):
    opened, other = store.open_store(url), store.open_store(url)
    opened.create(header(), [record(0)])
    with pytest.raises(ZeroDivisionError), opened.writing(7) as log:
        log.append([record(1)])
        assert log.events(0) == [record(0), record(1)]
        1 / 0  # noqa: B018
    assert opened.events(7, 0) == other.events(7, 0) == [record(0)]
    with opened.writing(7) as log:
        log.append([record(1)])
        log.append([record(2)])
    assert other.events(7, 1) == [record(1), record(2)]
    with other.writing(7) as log:
        assert log.events(2) == [record(2)]


def test_writers_take_turns(url):
    store.open_store(url).create(header(), [])

    def append(_):
        with store.open_store(url).writing(7) as log:
            log.append([record(len(log.events(0)))])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(append, range(40)))
    assert [each.seq for each in store.open_store(url).events(7, 0)] == list(range(40))


def test_names_and_keys_have_the_same_maximum_length(url):
    # Random characters of 1 to 4 bytes, which a database cannot compress.
    letters = random.Random(0).choices(
        [chr(n) for n in (*range(0x4E00, 0x9000), *range(0x20000, 0x24000), *b"ab")], k=990
    )
    text = "".join(letters).encode()[:2500].decode(errors="ignore")
    longest = text + "a" * (2500 - len(text.encode()))
    search = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
    with pytest.raises(bl.errors.InvalidSetting, match="2501 bytes"):
        bl.Study(f"{longest}a", url, search)
    study = bl.Study(longest, url, search)
    for call in (study.suggest, partial(study.observe, 0, 1.0)):
        with pytest.raises(bl.errors.InvalidSetting, match="2500 bytes"):
            call(key=f"{longest}a")
        assert study._log.n_events() == (call != study.suggest)
        call(key=longest)
    again = bl.Study.load(longest, url)
    assert again.suggest(key=longest).number == 0 and again.n_trials == 1
    with store.open_store(url).writing(again._log.id) as log:
        longer = checksums.with_checksum(again._log.id, 2, f"suggest:{10**9 - 1}:{longest}", 1.0, log.events(0)[0].body)
        log.append([longer])
    assert again.sync() == 1


def test_a_longer_name_of_an_older_study_is_opened(url, monkeypatch):
    name = "n" * 3000
    with monkeypatch.context() as older:
        older.setattr(bl.study.study, "LONGEST_NAME", 4000)
        bl.Study(name, url, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)).suggest()
    assert bl.Study.load(name, url).n_trials == 1


def test_an_unknown_study_is_an_error(url):
    opened = store.open_store(url)
    opened.create(header(), [])
    with pytest.raises(bl.errors.StoreError, match="the study was deleted"):
        opened.events(8, 0)
    with pytest.raises(bl.errors.StoreError), opened.writing(8) as log:
        log.events(0)
    assert not opened.delete(8) and opened.header("other") is None


def test_the_store_keeps_a_study(url, capsys):
    study = bl.Study("s", url, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
    first, second = study.suggest(n=2, key="two")
    again = bl.Study.load("s", url)
    again.observe(second.number, 0.5)
    assert study.best_value_ == 0.5 and [trial.number for trial in again.suggest(n=2, key="two")] == [0, 1]
    alone = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
    assert [trial.params for trial in [*study.trials, study.suggest()]] == [alone.suggest().params for _ in range(3)]
    assert pickle.loads(pickle.dumps(study)).n_trials == 3
    for command in ("list", "show", "check", "export"):
        assert cli.main(["study", command, url]) == cli.DONE
    assert "s: ok, 4 events" in capsys.readouterr().out


def test_the_store_keeps_every_fact_of_a_trial(url, capsys):
    study = bl.Study("s", url, bl.BayesOpt({"x": (0.0, 1.0)}, direction="minimize", seed=0), time=lambda: 100.0)
    observed, failed, pending = (study.suggest(expires_after=50.0) for _ in range(3))
    observed.observe(1 / 3, std=0.1, cost=2.5, duration=0.7, params={"x": 0.1}, attrs={"ü": [10**30, 0.1], "b": None})
    failed.fail(error=ValueError("no such\nkernel"), attrs={"worker": 3})
    study.observe(0, 2 / 3, replicate=True, attrs={"run": 2})
    study.add({"x": 0.5}, 0.25, cost=1.5, attrs={"source": "lab"})

    def facts(study):
        names = ["params", "params_run", "state", "value", "std", "cost", "duration", "attrs", "error", "ended_at"]
        return [[getattr(trial, name) for name in [*names, "expires_at"]] for trial in study.trials]

    again = bl.Study.load("s", url)
    assert facts(again) == facts(study) == facts(pickle.loads(pickle.dumps(again)))
    assert again.trial(0).attrs == {"ü": [10**30, 0.1], "b": None} and again.trial(0).expires_at == 150.0
    assert str(again.trial(1).error) == "ValueError: no such\nkernel" and again.trial(1).state == "failed"
    assert again.trial(3).params == again.trial(0).params_run == {"x": 0.1} and again.trial(3).value == 2 / 3
    assert again.best_params_ == {"x": 0.5} and (again.trial(4).cost, again.trial(4).attrs) == (1.5, {"source": "lab"})
    assert pending.state == "pending" and pending.ended_at is None
    assert again.trials_dataframe().equals(study.trials_dataframe())
    for command, shown in (
        ("show", "error='ValueError: no such'"),
        ("export", '"cost":2.5'),
        ("check", "ok, 7 events"),
    ):
        assert cli.main(["study", command, url]) == cli.DONE
        assert shown in capsys.readouterr().out


def test_the_store_keeps_fidelities(url, capsys):
    fidelity = bl.Fidelity(0.1, 0.7, log=True, cost=bl.PowerCost(0.05, 3), bias=2)
    study = bl.Study("s", url, bl.RandomSearch({"x": (0.0, 1.0)}, fidelity=fidelity, seed=0))
    study.enqueue({"x": 0.5}, fidelity=0.2)
    study.suggest(n=2, fidelity=0.3)
    study.suggest().observe(1.0, fidelity=0.7)
    study.add({"x": 0.25}, 9.0, fidelity=0.1)
    again = bl.Study.load("s", url)
    for each in (study, again, pickle.loads(pickle.dumps(again))):
        assert [trial.fidelity for trial in each.trials] == [0.2, 0.3, 0.7, 0.1]
        assert each.get_params()["fidelity"] == fidelity and each.best_value_ == 1.0
    assert again.trials_dataframe().equals(study.trials_dataframe())
    for command, shown in (("show", "fidelity=0.1"), ("export", '"fidelity":'), ("check", "ok, 6 events")):
        assert cli.main(["study", command, url]) == cli.DONE
        assert shown in capsys.readouterr().out


def test_salvage_works_or_is_refused(url):
    opened = store.open_store(url)
    opened.create(header(), [record(0)])
    if not url.startswith("memory"):
        assert opened.salvage() == ([header()], [(7, record(0))])
    else:
        with pytest.raises(bl.errors.StoreError, match="MemoryStore cannot salvage"):
            opened.salvage()


@pytest.mark.parametrize(
    "given", ["studies.db", "mysql:///x", "sqlite:x.db", "sqlite://", "sqlite:///", "sqlite:///:memory:", 3, None]
)
def test_objects_that_are_not_stores_are_refused(given):
    with pytest.raises(bl.errors.InvalidSetting, match=r"^store=.*sqlite:///"):
        store.open_store(given)


def test_a_path_is_an_sqlite_file(tmp_path):
    opened = store.open_store(tmp_path / "a.db")
    assert opened.url == f"sqlite:///{os.path.abspath(tmp_path / 'a.db')}"
    assert store.open_store(opened) is opened
