"""The SQLite store, and the command line, with damaged, hostile and busy files."""

from __future__ import annotations

import json
import os
import random
import re
import sqlite3
import sys

import pytest

import belated as bl
from belated import cli
from belated.store import checksums as form
from belated.store import sqlite
from belated.store.salvage import salvage
from belated.study.definition import definition_of


def random_search():
    return bl.RandomSearch({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=1)


@pytest.fixture
def filled(path):
    """A closed store with a study "s" that has 120 events."""
    study = bl.Study("s", f"sqlite:///{path}", random_search())
    for k in range(60):
        study.observe(study.suggest(key=f"k{k}"), k / 7)
    del study
    assert os.listdir(os.path.dirname(path)) == ["studies.db"]
    return path


def load(path):
    return bl.Study.load("s", f"sqlite:///{path}")


def edit(path, *statements):
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(*statement) if isinstance(statement, tuple) else connection.execute(statement)
    connection.close()


# Damage.


def test_damaged_files_give_right_data_or_a_store_error(filled):
    full = load(filled)._log.events(0)
    with open(filled, "rb") as file:
        sound = file.read()
    generator = random.Random(0)
    outcomes = set()
    for k in range(150):
        data = bytearray(sound)
        if k % 4:
            data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
        else:
            del data[generator.randrange(len(data)) :]
        with open(filled, "wb") as file:
            file.write(data)
        study = None
        try:
            study = bl.Study("s", f"sqlite:///{filled}", random_search() if k % 2 and data else None)
            assert study._log.events(0) == full
            outcomes.add("right")
        except bl.errors.StoreError:
            outcomes.add("refused")
    assert outcomes == {"right", "refused"}


def test_salvage_returns_the_intact_events(filled):
    headers, records = salvage(filled)
    assert [header.name for header in headers] == ["s"]
    assert [record.seq for _, record in records] == list(range(120))
    with open(filled, "rb") as file:
        data = bytearray(file.read())
    lost = 7
    at = data.index(records[lost][1].body.encode())
    data[at + 20] ^= 4
    data[:100] = bytes(100)
    with open(filled, "wb") as file:
        file.write(data)
    _, again = salvage(filled)
    assert again == records[:lost] + records[lost + 1 :]


def test_salvage_reads_the_write_ahead_log_and_overflow_pages(path):
    space = {f"x{k}": (0.0, 1.0) for k in range(400)}
    study = bl.Study("wide", f"sqlite:///{path}", bl.RandomSearch(space, seed=0))
    study.suggest(5)
    assert os.path.getsize(path + "-wal") > 0
    for _ in range(2):
        headers, records = salvage(path)
        assert [header.name for header in headers] == ["wide"]
        assert [record.body for _, record in records] == study._log.events(0)
        study.suggest(5)
        study._store._disconnect()  # closing the connection moves all data into the main file


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET body = replace(body, '\"trial\":3', '\"trial\":4') WHERE seq = 7",
        "UPDATE events SET at = at + 1 WHERE seq = 7",
        "UPDATE events SET key = 'suggest:0:other' WHERE seq = 0",
        "UPDATE events SET seq = -1 WHERE seq = 7",
        "UPDATE events SET body = x'00ff' WHERE seq = 7",
        "UPDATE events SET body = CAST(x'80ff' AS TEXT) WHERE seq = 7",
        "UPDATE events SET version = 'one' WHERE seq = 7",
        "UPDATE events SET checksum = zeroblob(300000000) WHERE seq = 7",
        "DELETE FROM events WHERE seq = 119",
        "DELETE FROM events WHERE seq = 0",
        "DELETE FROM events",
        "DELETE FROM heads",
        "UPDATE heads SET n = 'many'",
        "UPDATE heads SET n = 119",
        "UPDATE heads SET n = -1",
        "UPDATE studies SET definition = replace(definition, 'maximize', 'minimize')",
        "UPDATE studies SET id = 5",
        "DELETE FROM studies",
    ],
)
def test_events_that_were_changed_are_refused(filled, statement):
    edit(filled, statement)
    with pytest.raises(bl.errors.StoreError):
        load(filled)
    assert cli.main(["study", "check", filled]) == cli.FAILED


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events; END",
        "CREATE VIEW v AS SELECT load_extension('x')",
        "CREATE TABLE more (x)",
        "CREATE INDEX more ON events (abs(seq))",
        "DROP INDEX keys",
        "DROP TABLE heads",
        "PRAGMA application_id = 0",
        "PRAGMA application_id = 77",
        "PRAGMA user_version = 0",
        "PRAGMA user_version = 2",
    ],
)
def test_databases_of_other_programs_are_refused(filled, statement):
    edit(filled, statement)
    for optimizer in (None, random_search()):
        with pytest.raises(bl.errors.StoreError, match="newer" if statement.endswith("= 2") else "store"):
            bl.Study("s", f"sqlite:///{filled}", optimizer)


def forge(path, definition=None, bodies=(), version=form.VERSION):
    """Write a study with hostile content and right checksums."""
    if definition is None:
        definition = definition_of(random_search())
    header = form.header(7, "s", {}, 0.0)._replace(
        definition=definition if isinstance(definition, str) else json.dumps(definition), version=version
    )
    header = header._replace(checksum=form._digest(*header[:-1]))
    records = [form.with_checksum(7, seq, None, 0.0, body) for seq, body in enumerate(bodies)]
    sqlite.SqliteStore(path).create(header, records)


def other(**parts):
    return definition_of(random_search()) | parts


def altered(**problem):
    definition = definition_of(random_search())
    return definition | {"problem": definition["problem"] | problem}


@pytest.mark.parametrize(
    "definition",
    [
        "",
        "[]",
        "nonsense",
        "[" * 100_000,
        '{"problem": {}, "strategy": {"kind": "RandomSearch"}, "stopping": null, "seed": NaN}',
        *[other(strategy={"kind": kind}) for kind in ("os.system", ["RandomSearch"], "Optimizer")],
        other(problem=[]),
        other(problem={}),
        other(strategy={}),
        other(stopping={"kind": "Rule"}),
        *[other(seed=seed) for seed in (-1, 10**400, None, True, "0")],
        altered(time="print"),
        altered(unknown=1),
        altered(space=3),
        altered(space=[3]),
        altered(space=[{"name": "x", "type": "Path"}]),
        altered(space=[{"name": "x", "type": ["Real"]}]),
        altered(space=[{"name": "x", "type": "Real", "low": "0", "high": 1}]),
        altered(space=[{"name": "x", "type": "Real", "low": 0, "high": 1, "extra": 1}]),
        altered(space=[{"name": ["x"], "type": "Real", "low": 0, "high": 1}]),
        altered(space=None, candidates={"kind": "O", "rows": [[1]]}),
        altered(space=None, candidates={"kind": "f", "rows": [[1], [1, 2]]}),
        altered(space=None, candidates={"kind": "f", "rows": "abc"}),
        altered(space=None, candidates=[[1, 2]]),
        altered(seed=1),
        altered(kind="RandomSearch"),
        altered(clock=["seconds"]),
        altered(direction={}),
    ],
)
def test_hostile_definitions_are_refused(path, definition):
    forge(path, definition)
    with pytest.raises(bl.errors.StoreError):
        load(path)


SUGGESTED = '{"now":0.0,"what":{"Suggested":{"point":{"numbers":[0.5,0.5]},"context":[],"queued":false}}}'
OBSERVED = '{"now":0.0,"what":{"Resulted":{"trial":0,"results":[[0,{"New":{"value":1.0}}]]}}}'


@pytest.mark.parametrize(
    "bodies",
    [
        ["nonsense"],
        ["null"],
        ["[" * 100_000],
        ['{"now":0.0,"what":{"Exploded":{}}}'],
        [OBSERVED],
        [SUGGESTED, OBSERVED.replace("1.0", "1e999")],
        [SUGGESTED, OBSERVED.replace("1.0", '"1"')],
        [SUGGESTED, OBSERVED.replace("New", "Amended")],
        [SUGGESTED, OBSERVED, OBSERVED],
        [SUGGESTED.replace("0.5,0.5", "0.5")],
        [SUGGESTED.replace("0.5,0.5", "null,0.5")],
    ],
)
def test_hostile_events_are_refused(path, bodies):
    forge(path, bodies=bodies)
    with pytest.raises(bl.errors.StoreError):
        load(path)


def test_newer_formats_are_refused_by_name(path, filled):
    edit(filled, f"UPDATE events SET version = {form.VERSION + 1} WHERE seq = 7")
    with pytest.raises(bl.errors.StoreError, match="newer"):
        load(filled)
    os.remove(filled)
    forge(path, version=form.VERSION + 1)
    with pytest.raises(bl.errors.StoreError, match="newer"):
        load(path)


@pytest.mark.parametrize("what", ["header", "event"])
def test_an_older_format_is_refused_by_its_number_although_its_checksums_fit(path, monkeypatch, what):
    monkeypatch.setattr(form, "VERSION", form.VERSION - 1)
    forge(path, version=form.VERSION if what == "header" else form.VERSION + 1, bodies=[SUGGESTED])
    monkeypatch.undo()
    with pytest.raises(
        bl.errors.StoreError, match=f"older belated.*format {form.VERSION - 1}, this one reads {form.VERSION}"
    ):
        load(path)


# The file and its place.


def test_files_that_are_not_stores(path, tmp_path):
    with pytest.raises(bl.errors.StoreError, match="no study"):
        load(path)
    assert not os.path.exists(path)
    with open(path, "w") as file:
        file.write("this is a letter, not a database " * 100)
    with pytest.raises(bl.errors.StoreError, match="not a database"):
        bl.Study("s", f"sqlite:///{path}", random_search())
    with pytest.raises(bl.errors.StoreError):
        bl.Study("s", f"sqlite:///{tmp_path}", random_search())
    with pytest.raises(bl.errors.StoreError, match="folder"):
        bl.Study("s", f"sqlite:///{tmp_path}/none/a.db", random_search())


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_file_system_is_found(path):
    assert sqlite.file_system("/proc/self/x") == "proc"
    assert sqlite.file_system(path) not in ("", "proc")


def test_a_call_that_waited_for_a_locked_file_raises_an_error(filled, monkeypatch):
    study = load(filled)
    holder = sqlite3.connect(filled, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT", 0.3)
    with pytest.raises(bl.errors.StoreError, match="stopped"):
        study.suggest()
    assert study.n_trials == 60  # reading still works
    holder.execute("ROLLBACK")
    holder.close()
    assert study.suggest().number == 60


def test_settings_of_a_connection(filled):
    connection = load(filled)._store
    connection.names()
    asked = {
        name: connection._connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("trusted_schema", "foreign_keys", "synchronous", "journal_mode", "application_id")
    }
    assert asked == {
        "trusted_schema": 0,
        "foreign_keys": 1,
        "synchronous": 2,
        "journal_mode": "wal",
        "application_id": 0x62656C61,
    }


# The command line.


def run(*arguments):
    return cli.main(["study", *arguments])


def test_list_show_and_check(filled, capsys):
    assert run("list", filled) == cli.DONE
    assert capsys.readouterr().out.startswith("s: RandomSearch, 60 trials, 0 pending, best 8.4")
    assert run("show", f"sqlite:///{filled}", "s") == cli.DONE
    assert "best: Trial(number=59" in capsys.readouterr().out
    assert run("check", filled) == cli.DONE
    assert capsys.readouterr().out == "s: ok, 120 events\n"
    assert run("show", filled, "other") == cli.FAILED
    assert run("list", os.path.dirname(filled)) == cli.FAILED
    assert run("list", filled + "x") == cli.FAILED
    assert run() == cli.DONE


def test_export_is_the_log_with_or_without_salvage(filled, capsys):
    assert run("export", filled) == cli.DONE
    plain = capsys.readouterr().out
    first, *rest = map(json.loads, plain.splitlines())
    assert first["study"] == "s" and first["definition"]["strategy"] == {"kind": "RandomSearch"}
    assert [line["seq"] for line in rest] == list(range(120))
    assert re.fullmatch("suggest:0-[0-9a-f]{16}:k0", rest[0]["key"]) and "Suggested" in rest[0]["event"]["what"]
    assert run("export", "--salvage", filled, "s") == cli.DONE
    assert capsys.readouterr().out == plain


def test_list_and_check_report_a_damaged_study_and_continue(filled, capsys):
    other = bl.Study("t", f"sqlite:///{filled}", random_search())
    other.suggest()
    edit(filled, "UPDATE events SET at = at + 1 WHERE seq = 7")
    assert run("list", filled) == cli.FAILED
    damaged, intact = sorted(capsys.readouterr().out.splitlines())
    assert damaged.startswith("s: event 7 of study 's' is damaged")
    assert intact == "t: RandomSearch, 1 trials, 1 pending, best None"
    assert run("check", filled) == cli.FAILED
    assert sorted(capsys.readouterr().out.splitlines()) == [damaged, "t: ok, 1 events"]


def test_a_damaged_store_is_listed_and_salvaged(filled, capsys):
    edit(filled, "UPDATE events SET at = 1.0 WHERE seq = 7", "DELETE FROM studies")
    assert run("check", filled) == cli.FAILED
    assert run("export", "--salvage", filled) == cli.DONE
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {line["seq"] for line in lines if "seq" in line} >= set(range(120)) - {7}
