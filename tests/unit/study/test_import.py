"""`belated study import` adds an exported study unchanged to another store, or leaves the store unchanged after an
error."""

import io
import json

import pytest

import belated as bl
from belated import cli
from belated.store import open_store

EMPTY_AGAIN = "nothing was imported"


@pytest.fixture
def url(tmp_path):
    """A store with two studies, whose events contain every field that an event may have."""
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    space = {"x": bl.Real(1e-4, 1.0, log=True), "kind": [("a", 1), "b", None]}
    context = {"day": (0.0, 7.0)}
    study = bl.Study("é, \"event\": 'one'", url, bl.BayesOpt(space, context=context, direction="minimize", seed=1))
    trials = study.suggest(n=6, context={"day": 1.5}, key='k:1, "event": ', expires_after=60.0)
    for i, trial in enumerate(trials[:4]):
        study.observe(trial, i / 3, std=1e-300, cost=2.0, attrs={"a": ["ü", ', "definition": ']}, key=f"o{i}")
    study.fail(trials[4], error="boom\n")
    study.abandon(trials[5])
    study.add({"x": 0.5, "kind": "b"}, 1 / 3, {"day": 2.0})
    study.enqueue({"x": 0.25, "kind": None})
    other = bl.Study("two", url, bl.RandomSearch({"x": (0.0, 1.0)}, seed=2))
    other.observe(other.suggest(), 0.5)
    other.set_attrs({'a, "definition": ': ["ü", 0.1]})
    return url


@pytest.fixture
def run(capsys):
    """Return a function that runs `belated study …` and returns the exit code, the printed lines and the error
    output."""

    def run(*arguments):
        code = cli.main(["study", *map(str, arguments)])
        printed = capsys.readouterr()
        return code, printed.out.splitlines(keepends=True), printed.err

    return run


@pytest.fixture
def exported(run, url, tmp_path):
    """Return a function that writes lines to a file, by default the lines of the store's export."""

    def write(lines=None, name="export.json"):
        path = tmp_path / name
        path.write_bytes("".join(run("export", url)[1] if lines is None else lines).encode())
        return path

    return write


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request, tmp_path):
    """The URL of a store without studies."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'other.db'}"
    return request.getfixturevalue("postgres").url()


def test_an_imported_study_is_exported_byte_by_byte_and_continues_unchanged(run, url, exported, target):
    file = exported()
    code, lines, _ = run("import", file, target)
    assert code == cli.DONE and [line.split(": ")[-1] for line in lines] == [
        "imported, 14 events\n",
        "imported, 2 events\n",
    ]
    assert run("export", target)[1] == run("export", url)[1]
    assert run("check", target)[0] == cli.DONE
    for name in open_store(url).names():
        old, new = bl.Study.load(name, url), bl.Study.load(name, target)
        assert [repr(trial) for trial in new.trials] == [repr(trial) for trial in old.trials]
        assert new.attrs == old.attrs
        context = None if old.context_space is None else {"day": 3.0}
        assert new.suggest(context=context).params == old.suggest(context=context).params
    # The new store recognises the keys of requests.
    first = bl.Study.load(open_store(url).names()[0], target)
    n = first.n_trials
    assert [t.number for t in first.suggest(6, {"day": 1.5}, key='k:1, "event": ')] == list(range(6))
    assert first.n_trials == n


def test_an_existing_name_prevents_the_whole_import(run, url, exported, target):
    bl.Study("two", target, bl.RandomSearch({"y": (0.0, 1.0)}, seed=0)).suggest()
    before = run("export", target)[1]
    code, lines, errors = run("import", exported(), target)
    assert (code, lines) == (cli.FAILED, []) and "['two'] already" in errors and EMPTY_AGAIN in errors
    assert run("export", target)[1] == before
    # The file's other study can be imported by its name, but only once.
    name = open_store(url).names()[0]
    assert run("import", exported(), target, name)[0] == cli.DONE
    assert run("import", exported(), target, name)[0] == cli.FAILED
    assert sorted(open_store(target).names()) == sorted([name, "two"])


def test_standard_input_is_read(run, url, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(run("export", url)[1])))
    other = f"sqlite:///{tmp_path / 'other.db'}"
    assert run("import", "-", other, "two")[0] == cli.DONE
    assert open_store(other).names() == ["two"]


def test_salvaged_lines_are_imported_in_any_order_and_if_repeated(run, url, exported, tmp_path):
    lines = run("export", "--salvage", url)[1]
    file = exported([*reversed(lines), "\n", *lines])
    other = f"sqlite:///{tmp_path / 'other.db'}"
    assert run("import", file, other)[0] == cli.DONE
    assert sorted(run("export", other)[1]) == sorted(run("export", url)[1])


def changed(line, **facts):
    """Return a line of an export with changed fields and the old checksum."""
    found = json.loads(line) | facts
    return json.dumps(found) + "\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: [], "the file has no study"),
        (lambda lines: ["{}\n"], "line 1 is not one that"),
        (lambda lines: ["[" * 100_000], "line 1 is not one that"),
        (lambda lines: [lines[0], "text\n"], "line 2 is not one that"),
        (lambda lines: [lines[0], lines[1][:-7]], "line 2 is not one that"),
        (lambda lines: [lines[0].replace('"id": ', '"ID": ')], "line 1 is not one that"),
        (lambda lines: [changed(lines[0], version="3")], "line 1 has version='3'"),
        (lambda lines: [changed(lines[0], checksum="zz")], "line 1 is not one that"),
        (lambda lines: lines[1:], "definition is lost"),
        (lambda lines: lines[:2] + lines[3:], "event 1 of study"),
        (lambda lines: [lines[0].replace("minimize", "maximize"), *lines[1:]], "is damaged"),
        (lambda lines: [lines[0], lines[1].replace('"now":', '"now": ')], "event 0 of study"),
        (lambda lines: [*lines, lines[2].replace('"now":', '"now": ')], "that differs from an earlier line"),
        (lambda lines: [*lines, changed(lines[0], at=0.0)], "that differs from an earlier line"),
        (lambda lines: [*lines, changed(lines[0], id=5)], "two studies of one name"),
        (lambda lines: [changed(lines[0], version=99)], "upgrade belated"),
    ],
)
def test_a_changed_file_is_refused_and_the_store_is_unchanged(run, url, exported, tmp_path, change, message):
    lines = run("export", url)[1]
    changed_lines = change(lines)
    assert changed_lines != lines
    other = tmp_path / "other.db"
    code, printed, errors = run("import", exported(changed_lines), other)
    assert (code, printed) == (cli.FAILED, []) and message in errors
    assert not other.exists()


def test_a_file_truncated_anywhere_is_refused(run, exported, tmp_path):
    names = "abc"
    for name, n in zip(names, (3, 0, 2), strict=True):
        study = bl.Study(name, tmp_path / "three.db", bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
        if n:
            study.suggest(n=n)
    lines = run("export", tmp_path / "three.db")[1]
    text, other = "".join(lines), tmp_path / "other.db"
    assert len(lines) == 8
    cuts = {sum(map(len, lines[:n])) + shift for n in range(len(lines)) for shift in (0, 1, len(lines[n]) // 2)}
    for cut in sorted(cuts | {len(text) - 2}):
        code, printed, errors = run("import", exported([text[:cut]]), other)
        assert (code, printed) == (cli.FAILED, []) and errors.startswith("belated: ") and not other.exists()
    # A study whose lines are complete can still be imported by its name.
    file = exported(lines[:5])
    for name, code in zip(names, (cli.DONE, cli.DONE, cli.FAILED), strict=True):
        assert run("import", file, other, name)[0] == code
    # The last line of the file may lack its line feed.
    assert run("import", exported([text[:-1]]), tmp_path / "another.db")[0] == cli.DONE


def study_as_lines(name="s", study=7, at=1.0, keys=(None,), definition=None, made=None, n_studies=1):
    """Return the lines of a study as `export` prints them, with the right checksums."""
    from belated.store.checksums import header, with_checksum
    from belated.study.commands import event_line, header_line
    from belated.study.definition import definition_of

    if definition is None:
        definition = definition_of(bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
    optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
    for _ in keys:
        optimizer.suggest()
    bodies = optimizer._log.events(0)
    records = [with_checksum(study, i, key, at, body) for i, (key, body) in enumerate(zip(keys, bodies, strict=True))]
    # `made` is the time in the header; tests pass a finite time if the events have an infinite time.
    made = header(study, name, definition, at if made is None else made)
    lines = [header_line(made, len(records), n_studies)]
    return [f"{line}\n" for line in lines + [event_line(name, study, record) for record in records]]


@pytest.mark.parametrize("usable", ["s", "é: 'x'", "é" * 1250])
def test_lines_made_for_these_tests_equal_an_export(run, exported, tmp_path, usable):
    lines = study_as_lines(name=usable, study=2**48 - 1, keys=(f"suggest:0:{usable}", "suggest:1:b", None))
    other = f"sqlite:///{tmp_path / 'other.db'}"
    code, _, errors = run("import", exported(lines), other)
    assert (code, errors) == (cli.DONE, "") and run("export", other)[1] == lines
    assert bl.Study.load(usable, other).n_trials == 3


@pytest.mark.parametrize(
    ("facts", "line", "fact"),
    [
        *[({"name": name}, 1, "study") for name in ("", "a\nb", "a\0b", "n" * 2501, "é" * 1251, "\ud800")],
        *[({"study": study}, 1, "id") for study in (-1, 2**48, 2**63, 2**70)],
        *[({"at": at}, 1, "at") for at in (float("inf"), float("-inf"), float("nan"))],
        ({"at": float("inf"), "made": 1.0}, 2, "at"),
        *[
            ({"keys": (f"suggest:0:{key}",)}, 2, "key")
            for key in ("", "a\nb", "a\0b", "k" * 2501, "é" * 1251, "\udc00")
        ],
        *[({"keys": (key,)}, 2, "key") for key in ("", "k", "suggest", "suggest:0", "revise:0:k", "suggest:x:k")],
    ],
)
def test_impossible_records_are_refused_by_file_and_line(run, exported, tmp_path, facts, line, fact):
    other = tmp_path / "other.db"
    file = exported(study_as_lines(**facts))
    code, printed, errors = run("import", file, other)
    assert (code, printed) == (cli.FAILED, []) and len(errors) < 400
    assert f"{file}: line {line} has {fact}=" in errors and "export it again" in errors
    assert not other.exists()


def test_a_key_of_two_events_is_refused(run, exported, tmp_path):
    file = exported(study_as_lines(keys=("suggest:0:k", "suggest:1:k", "suggest:0:k")))
    code, _, errors = run("import", file, tmp_path / "other.db")
    assert code == cli.FAILED and f"{file}: line 4 has event 2 with the key 'suggest:0:k' of event 0" in errors
    # Two studies may have the same keys.
    lines = study_as_lines(keys=("suggest:0:k",)) + study_as_lines("t", 8, keys=("suggest:0:k",))
    assert run("import", exported(lines), tmp_path / "other.db")[0] == cli.DONE


def test_an_id_of_another_study_of_the_store_is_refused(run, exported, target):
    assert run("import", exported(study_as_lines("one")), target)[0] == cli.DONE
    before = run("export", target)[1]
    file = exported(study_as_lines("another"))
    code, printed, errors = run("import", file, target)
    assert (code, printed) == (cli.FAILED, []) and "import it into another store" in errors
    assert f"{file}: study 'another' has the id 7, which study 'one' in " in errors
    assert run("export", target)[1] == before
    assert "['one'] already" in run("import", exported(study_as_lines("one")), target)[2]


def test_a_definition_that_is_nested_too_deeply_is_refused(run, exported, tmp_path):
    nested = [1]
    for _ in range(900):
        nested = [nested]
    space = [{"name": "x", "kind": "Categorical", "choices": ["a", nested]}]
    definition = {"problem": {"space": space}, "strategy": {"kind": "RandomSearch"}, "stopping": None, "seed": 0}
    lines = study_as_lines(definition=definition)
    code, _, errors = run("import", exported(lines), tmp_path / "other.db")
    assert code == cli.FAILED and f"{tmp_path / 'export.json'}: " in errors and len(errors) < 1000


def test_standard_input_that_is_not_text_is_refused(run, tmp_path, monkeypatch):
    lines = "".join(study_as_lines()).replace('"now"', '"\udcff"')
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    code, _, errors = run("import", "-", tmp_path / "other.db")
    assert code == cli.FAILED and "standard input: line 2 is not one that" in errors


def test_events_that_cannot_have_happened_are_refused(run, exported, tmp_path):
    from belated.store.checksums import header, with_checksum
    from belated.study.commands import event_line, header_line
    from belated.study.definition import definition_of

    made = header(7, "s", definition_of(bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)), 1.0)
    record = with_checksum(7, 0, None, 1.0, '{"Abandoned":{"number":3,"now":0.0}}')
    file = exported([header_line(made, 1, 1) + "\n", event_line("s", 7, record) + "\n"])
    code, _, errors = run("import", file, tmp_path / "other.db")
    assert code == cli.FAILED and "has an event that cannot have happened" in errors
    assert not (tmp_path / "other.db").exists()


def test_missing_names_and_files_are_named(run, exported, tmp_path):
    other = tmp_path / "other.db"
    code, _, errors = run("import", exported(), other, "three")
    assert code == cli.FAILED and "there is no study 'three' in the file" in errors
    assert run("import", tmp_path / "none.json", other)[0] == cli.FAILED
    (tmp_path / "binary").write_bytes(b"\xff\xfe\n")
    code, _, errors = run("import", tmp_path / "binary", other)
    assert code == cli.FAILED and "is not text in UTF-8" in errors
    assert not other.exists()
