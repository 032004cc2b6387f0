"""The output and the exit codes of `belated study`, for a file with several studies."""

import contextlib
import json
import re
import sqlite3

import pytest

import belated as bl
from belated import cli

NAMES = ("first", "second")


@pytest.fixture
def path(tmp_path):
    """A store with two studies of 3 and 6 events."""
    path = str(tmp_path / "studies.db")
    for i, name in enumerate(NAMES, 1):
        study = bl.Study(name, f"sqlite:///{path}", bl.RandomSearch({"x": (0.0, 1.0)}, seed=i))
        study.suggest(n=2 * i)
        for trial in study.trials[:i]:
            study.observe(trial, 0.5 * i)
    del study
    return path


def run(capsys, *arguments):
    """Run a command; return the exit code and the printed lines."""
    code = cli.main(["study", *arguments])
    return code, capsys.readouterr().out.splitlines()


def execute(path, statement):
    connection = sqlite3.connect(path, isolation_level=None)
    rows = connection.execute(statement).fetchall()
    connection.close()
    return rows


@pytest.mark.parametrize(("name", "n_events"), [("first", 3), ("second", 6)])
@pytest.mark.parametrize("salvage", [[], ["--salvage"]], ids=["plain", "salvage"])
def test_an_export_of_one_study_has_only_its_lines(path, capsys, name, n_events, salvage):
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


def test_an_export_has_every_column_of_the_tables(path, capsys):
    study = bl.Study.load("first", f"sqlite:///{path}")
    study.suggest(key="é: one")
    study.add({"x": 0.5}, 1 / 3, attrs={"a": ["ü"]})
    del study
    expected = []
    for id, name, definition, at, version, checksum in execute(path, "SELECT * FROM studies ORDER BY at"):
        facts = {"study": name, "id": id, "version": version, "at": at, "checksum": checksum.hex()}
        [(n,)] = execute(path, f"SELECT count(*) FROM events WHERE study = {id}")
        expected.append(facts | {"events": n, "studies": 2, "definition": json.loads(definition)})
        for _, seq, version, key, at, body, checksum in execute(path, f"SELECT * FROM events WHERE study = {id}"):
            facts = {"study": name, "id": id, "seq": seq, "version": version, "key": key, "at": at}
            expected.append(facts | {"checksum": checksum.hex(), "event": json.loads(body)})
    assert len(expected) == 2 + 5 + 6
    code, lines = run(capsys, "export", path)
    found = [json.loads(line) for line in lines]
    assert code == cli.DONE and found == expected
    assert [list(each) for each in found] == [list(each) for each in expected]
    # `export --salvage` prints the same lines, but all definitions first.
    assert cli.main(["study", "export", "--salvage", path]) == cli.DONE
    out, err = capsys.readouterr()
    assert sorted(out.splitlines()) == sorted(lines) and err == "belated: 2 studies and 11 events are intact\n"
    assert ["definition" in json.loads(line) for line in out.splitlines()] == [True] * 2 + [False] * 11


def test_events_whose_definition_is_lost_are_salvaged_without_a_name(path, capsys):
    [(id,)] = execute(path, "SELECT id FROM studies WHERE name = 'first'")
    with open(path, "rb") as file:
        data = file.read()
    [(definition,)] = execute(path, "SELECT definition FROM studies WHERE name = 'first'")
    with open(path, "wb") as file:
        file.write(data.replace(definition.encode(), definition.replace("maximize", "maximise").encode()))
    code, lines = run(capsys, "export", "--salvage", path)
    found = [json.loads(line) for line in lines]
    assert code == cli.DONE and [each["study"] for each in found if "definition" in each] == ["second"]
    assert [each["seq"] for each in found if each["id"] == id and each["study"] is None] == [0, 1, 2]
    for name, n in (("first", 0), ("second", 7)):
        assert len(run(capsys, "export", "--salvage", path, name)[1]) == n


def test_show_has_the_settings_the_best_and_the_last_trials(path, capsys):
    study = bl.Study("third", f"sqlite:///{path}", bl.RandomSearch({"x": (0.0, 1.0)}, seed=3))
    study.suggest(n=13)
    study.observe(2, 5.0)
    expected = [repr(study), "13 trials, 12 pending", f"best: {study.trial(2)!r}"]
    expected.append(f"forecast: {study.forecast()}")
    expected += [f"  {trial!r}" for trial in study.trials[3:]]
    assert run(capsys, "show", path, "third") == (cli.DONE, expected)
    code, lines = run(capsys, "show", path)
    assert code == cli.DONE and lines[-len(expected) :] == expected
    assert [line.split("'")[1] for line in lines if line.startswith("Study(")] == [*NAMES, "third"]


def test_a_list_has_the_optimizer_and_the_counts(path, capsys):
    assert run(capsys, "list", path) == (
        cli.DONE,
        [
            "first: RandomSearch, 2 trials, 1 pending, best 0.5",
            "second: RandomSearch, 4 trials, 2 pending, best 1.0",
        ],
    )


@pytest.mark.parametrize("command", ["show", "export"])
def test_error_for_an_unknown_name_lists_the_studies(path, capsys, command):
    assert cli.main(["study", command, path, "third"]) == cli.FAILED
    out, err = capsys.readouterr()
    assert out == "" and f"there is no study 'third' in sqlite:///{path}: it has ['first', 'second']" in err


@pytest.mark.parametrize("change", ["version = version + 1", "definition = replace(definition, 'max', 'min')"])
def test_a_plain_export_of_a_damaged_definition_fails(path, capsys, change):
    execute(path, f"UPDATE studies SET {change} WHERE name = 'first'")
    assert cli.main(["study", "export", path]) == cli.FAILED
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("belated: ") and "'first'" in err


def test_a_plain_export_ends_before_a_damaged_event(path, capsys):
    execute(path, "UPDATE events SET at = at + 1 WHERE seq = 1")
    assert cli.main(["study", "export", path]) == cli.FAILED
    out, err = capsys.readouterr()
    assert all("definition" in json.loads(line) for line in out.splitlines())
    assert err.startswith("belated: event 1 of study 'first' is damaged")


USAGES = {
    "list": "STORE",
    "show": "STORE [NAME]",
    "suggest": "[--by NAME] [-n N] [--key KEY] [--output FILE] STORE NAME",
    "observe": (
        "[--by NAME] [--std STD] [--amend] [--value COLUMN] [--moved] [--dry-run] [--remark TEXT] [--sheet SHEET]"
        " [--decimal MARK] STORE NAME NUMBER|FILE [VALUE ...]"
    ),
    "worklist": "[--output FILE] STORE NAME",
    "report": "--output FILE STORE NAME",
    "export": "[--salvage] [--table FILE] STORE [NAME]",
    "import": "[--sheet SHEET] [--decimal MARK] [--value COLUMN] [--missing WHAT] [--skip] [--new] FILE STORE [NAME]",
    "delete": "STORE NAME",
    "withdraw": "[--by NAME] [--reason TEXT] [--outcome OUTCOME] STORE NAME NUMBER [NUMBER ...]",
    "check": "STORE",
}


def test_help_names_every_command_with_its_arguments(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")  # wide enough for every line

    def helped(*arguments):
        with contextlib.suppress(SystemExit):
            assert cli.main([*arguments]) == cli.DONE
        return capsys.readouterr().out

    described = [line.split(maxsplit=1) for line in helped("study").partition("COMMAND\n")[2].splitlines()]
    assert [name for name, _ in described] == list(USAGES)
    for name, text in described:
        shown = helped("study", name, "--help")
        assert shown.startswith(f"usage: belated study {name} [-h] {USAGES[name]}\n")
        assert text.lower() in shown.lower()
        for argument in re.findall(r"--?[\w-]+|[A-Z|]+", re.sub(r"(--?[\w-]+) [A-Z]+", r"\1", USAGES[name])):
            # Every argument is explained.
            assert re.search(rf"^ +{re.escape(argument)} +\w", shown, re.MULTILINE)


def called(capsys, *arguments):
    """Return the exit code, the output and the errors of `belated study`."""
    code = cli.main(["study", *map(str, arguments)])
    return code, *capsys.readouterr()


def test_trials_are_started_and_reported(tmp_path, capsys):
    path = tmp_path / "a.db"
    study = bl.Study("oven", path, bl.RandomSearch({"heat": (20.0, 90.0)}, seed=0))
    for _ in range(2):  # the second request repeats the first one
        code, out, _ = called(capsys, "suggest", path, "oven", "-n", 3, "--key", "plate-7")
        assert (code, out.count("Trial(number="), study.n_trials) == (cli.DONE, 3, 3)
    code, out, _ = called(capsys, "observe", path, "oven", 1, "-0.25", "--std", 0.1, "--remark", "cloudy")
    trial = study.trial(1)
    assert code == cli.DONE and "value=-0.25" in out
    assert (trial.value, trial.std, [each.text for each in trial.remarks]) == (-0.25, 0.1, ["cloudy"])
    code, _, err = called(capsys, "observe", path, "oven", 1, 7)
    assert code == cli.FAILED and "already" in err
    assert called(capsys, "observe", path, "oven", 1, 7, "--amend")[0] == cli.DONE and study.trial(1).value == 7.0
    for given, text in [(["0,5"], "'0,5' is not a number"), ([1, 2], "2 values for one trial"), (["nan"], "value")]:
        code, _, err = called(capsys, "observe", path, "oven", 2, *given)
        assert code == cli.FAILED and text in err and study.trial(2).state == "pending"


def test_values_of_outcomes_are_reported_by_name(tmp_path, capsys):
    path, outcomes = tmp_path / "a.db", {"error": "minimize", "size = 2": bl.AtMost(2.0)}
    study = bl.Study("oven", path, bl.RandomSearch({"heat": (20.0, 90.0)}, outcomes=outcomes, seed=0))
    assert called(capsys, "suggest", path, "oven")[0] == cli.DONE
    assert called(capsys, "observe", path, "oven", 0, "error=-0.5", "--std", 0.1)[0] == cli.DONE
    assert study.trial(0).values == {"error": -0.5} and study.trial(0).outcomes["error"].std == 0.1
    assert called(capsys, "observe", path, "oven", 0, "size = 2=1e0")[0] == cli.DONE
    assert study.trial(0).values == {"error": -0.5, "size = 2": 1.0}
    for given, text in [
        (["error=1", "error=2"], "named twice"),
        (["error"], "'error' lacks its outcome"),
        (["0.5"], "'0.5' lacks its outcome"),
        (["error=high"], "'high' is not a number"),
        (["cost=1"], "cost"),
    ]:
        code, _, err = called(capsys, "observe", path, "oven", 0, *given, "--amend")
        assert code == cli.FAILED and text in err
    assert study.trial(0).values["error"] == -0.5


@pytest.mark.parametrize("suffix", [".csv", ".xlsx", ".html"])
def test_a_worklist_of_new_trials_is_a_new_file(suffix, tmp_path, capsys):
    pytest.importorskip("openpyxl")
    path, sheet = tmp_path / "a.db", tmp_path / f"plate{suffix}"
    study = bl.Study("oven", path, bl.RandomSearch({"heat": (20.0, 90.0)}, seed=0))
    request = ("suggest", path, "oven", "-n", 4, "--output", sheet)
    assert called(capsys, *request)[0] == cli.DONE and study.n_trials == 4
    written = sheet.read_bytes()
    assert len(written) > 100
    code, _, err = called(capsys, *request)
    assert code == cli.FAILED and "exists: pass the name of a new file (no trial was started)" in err
    assert study.n_trials == 4 and sheet.read_bytes() == written
    # Both commands take both names of the option.
    for option in ("--output", "--worklist"):
        written = tmp_path / f"{option[2:]}{suffix}"
        assert called(capsys, "worklist", path, "oven", option, written)[0] == cli.DONE and written.stat().st_size > 100
    code, _, err = called(capsys, "suggest", path, "oven", "--worklist", tmp_path / "plate.txt")
    assert code == cli.FAILED and ".csv" in err
    code, _, _ = called(capsys, "suggest", path, "oven", "--worklist", tmp_path / "missing" / f"plate{suffix}")
    assert code == cli.FAILED and study.n_trials == 4


def test_a_failed_request_leaves_no_file(tmp_path, capsys):
    path, sheet = tmp_path / "a.db", tmp_path / "plate.csv"
    study = bl.Study("oven", path, bl.RandomSearch({"heat": (20.0, 90.0)}, seed=0))
    study.suggest(key="plate")
    code, _, err = called(capsys, "suggest", path, "oven", "-n", 4, "--key", "plate", "--worklist", sheet)
    assert code == cli.FAILED and "plate" in err and not sheet.exists()
