"""`belated study` on a file of several studies: what each command prints, and its exit code."""

import json
import sqlite3

import pytest

import belated as bl
from belated import cli

NAMES = ("first", "second")


@pytest.fixture
def path(tmp_path):
    """A store of two studies, of 3 and 6 events."""
    path = str(tmp_path / "studies.db")
    for i, name in enumerate(NAMES, 1):
        study = bl.Study(name, f"sqlite:///{path}", bl.RandomSearch({"x": (0.0, 1.0)}, seed=i))
        study.suggest(n=2 * i)
        for trial in study.trials[:i]:
            study.observe(trial, 0.5 * i)
    del study
    return path


def run(capsys, *arguments):
    """Exit code, and the lines printed."""
    code = cli.main(["study", *arguments])
    return code, capsys.readouterr().out.splitlines()


def execute(path, statement):
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(("name", "n_events"), [("first", 3), ("second", 6)])
@pytest.mark.parametrize("salvage", [[], ["--salvage"]], ids=["plain", "salvage"])
def test_an_export_of_one_study_has_nothing_of_the_others(path, capsys, name, n_events, salvage):
    code, lines = run(capsys, "export", *salvage, path, name)
    header, *events = map(json.loads, lines)
    assert code == cli.DONE and "definition" in header
    assert {line["study"] for line in (header, *events)} == {name}
    assert {line["id"] for line in events} == {header["id"]}
    assert [line["seq"] for line in events] == list(range(n_events))


@pytest.mark.parametrize("salvage", [[], ["--salvage"]], ids=["plain", "salvage"])
def test_an_export_without_a_name_has_every_study(path, capsys, salvage):
    code, lines = run(capsys, "export", *salvage, path)
    found = [(line["study"], "definition" in line) for line in map(json.loads, lines)]
    assert code == cli.DONE
    assert {name: (found.count((name, True)), found.count((name, False))) for name in NAMES} == {
        "first": (1, 3),
        "second": (1, 6),
    }


@pytest.mark.parametrize("command", ["list", "check"])
def test_a_damaged_study_gives_an_exit_code_and_the_others_are_listed(path, capsys, command):
    code, sound = run(capsys, command, path)
    assert code == cli.DONE and [line.split(":")[0] for line in sound] == list(NAMES)
    execute(
        path, "UPDATE events SET at = at + 1 WHERE study = (SELECT id FROM studies WHERE name = 'first') AND seq = 1"
    )
    code, lines = run(capsys, command, path)
    assert code == cli.FAILED and [line.split(":")[0] for line in lines] == list(NAMES)
    assert lines[0] != sound[0] and lines[1] == sound[1]
