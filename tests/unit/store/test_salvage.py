"""Salvage finds the same data in the bytes of a file as SQLite, for any layout of the file."""

import json
import os
import random
import sqlite3

import pytest

import belated as bl
from belated import cli
from belated.store import checksums as form
from belated.store.salvage import salvage
from belated.store.sqlite import SqliteStore

DEFINITION = {"problem": {}, "strategy": {"kind": "none"}, "stopping": None, "seed": 0}
WIDE = 1 << 47


def text(n):
    """JSON of exactly n characters."""
    return json.dumps("a" * (n - 2))


def write(path, headers=(), events=(), page_size=4096):
    """Use SQLite to write a store with the given headers, pairs (study, record) and page size."""
    store = SqliteStore(path)
    store.create(form.header(5, "first", DEFINITION, 0.5), [])
    store._disconnect()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute(f"PRAGMA page_size = {page_size}")
    connection.execute("VACUUM")
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO studies VALUES (?, ?, ?, ?, ?, ?)", headers)
    connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", [(study, *row) for study, row in events])
    connection.execute("COMMIT")
    assert connection.execute("PRAGMA page_size").fetchone()[0] == page_size
    connection.close()


def read(path):
    """Return the data in the order in which SQLite reads them."""
    connection = sqlite3.connect(path)
    headers = connection.execute("SELECT * FROM studies ORDER BY id").fetchall()
    events = connection.execute("SELECT * FROM events ORDER BY study, seq").fetchall()
    connection.close()
    return headers, [(row[0], row[1:]) for row in events]


def assert_all_is_found(path, n_headers, n_events):
    headers, events = salvage(path)
    assert (headers, events) == read(path)
    assert (len(headers), len(events)) == (n_headers, n_events)


@pytest.mark.parametrize("page_size", [512, 1024, 4096, 16384])
def test_short_and_long_records_are_found_at_every_page_size(path, page_size):
    lengths = [10, 100, page_size - 40, page_size + 7, 5 * page_size, 20_000]
    events = [(5, form.with_checksum(5, seq, None, 0.5, text(n))) for seq, n in enumerate(lengths)]
    write(path, [], events, page_size)
    assert_all_is_found(path, 1, len(events))


def test_numbers_of_every_width_are_found(path):
    numbers = [0, 1, 2, 127, 128, 255, 256, 32767, 32768, 65536, (1 << 23) - 1, 1 << 23, (1 << 31) - 1]
    ids = [*numbers, 1 << 31, (1 << 32) + 1, WIDE - 1]
    times = [0.0, 1.0, -1.0, 100.0, 200.0, 40_000.0, 1e7, 1.7e9, 1e12, 1e15, 0.1, 1.7e9 + 0.25]
    headers = [form.header(id, f"s{id}", DEFINITION, times[k % len(times)]) for k, id in enumerate(ids)]
    events = [(id, form.with_checksum(id, seq, None, 0.25, "{}")) for id in ids for seq in numbers]
    events += [(9, form.with_checksum(9, seq, None, at, "{}")) for seq, at in enumerate(times)]
    write(path, headers, events)
    assert_all_is_found(path, 1 + len(headers), len(events))


def test_keys_and_texts_of_every_kind_are_found(path):
    keys = [None, "", "k", "é", "k" * 57, "k" * 58, "k" * 500, "日本" * 3000]
    bodies = ["0", "null", '"é日本"', json.dumps({"a": ["\n", "\u2028"]}), text(1_100_000)]
    contents = [(None, body) for body in bodies] + [(key, "{}") for key in keys]
    events = [(5, form.with_checksum(5, seq, key, 0.5, body)) for seq, (key, body) in enumerate(contents)]
    write(path, [form.header(8, "é" * 300, DEFINITION, 0.5)], events)
    assert_all_is_found(path, 2, len(events))


def test_salvaged_events_are_in_order_and_checked(path):
    headers = [form.header(id, f"s{id}", DEFINITION, 0.5) for id in (300, 200)]
    events = [(id, form.with_checksum(id, seq, None, 0.5, "{}")) for id in (300, 200) for seq in (2, 0)]
    strange = ["nonsense", "", "[" * 100_000, "1\n"]  # texts with right checksums
    events += [(200, form.with_checksum(200, 10 + k, None, 0.5, body)) for k, body in enumerate(strange)]
    events.append((300, form.with_checksum(200, 1, None, 0.5, "{}")))  # the event of another study
    headers.append(form.header(400, "s400", DEFINITION, 0.5)._replace(name="t"))
    write(path, headers, events)
    found, records = salvage(path)
    assert [header.id for header in found] == [5, 200, 300]
    assert [(study, record.seq) for study, record in records] == [(200, 0), (200, 2), (300, 0), (300, 2)]


def test_the_write_ahead_log_is_read_by_its_latest_pages(path):
    """The transaction rewrites pages that are already in the write-ahead log. Salvage must read only the latest version
    of each page."""
    store = SqliteStore(path)
    store.create(form.header(5, "first", DEFINITION, 0.5), [])
    for seq in range(12):
        with store.writing(5) as log:
            log.append([form.with_checksum(5, seq, f"k{seq}", 0.5, text(700 * seq + 5))])
        if seq == 6:
            store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        headers, events = salvage(path)
        assert [header.name for header in headers] == ["first"]
        assert events == [(5, record) for record in store.events(5, 0)] and len(events) == seq + 1
    assert os.path.getsize(path + "-wal") > 0


def test_the_write_ahead_log_is_found_through_symbolic_links(path, tmp_path, capsys):
    study = bl.Study("s", tmp_path / "studies.db", bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
    study.suggest(n=10)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "folder").symlink_to(tmp_path, target_is_directory=True)
    first, second = tmp_path / "elsewhere" / "link.db", tmp_path / "link.db"
    second.symlink_to("studies.db")
    first.symlink_to(second)
    for link in (first, second, tmp_path / "folder" / "studies.db"):
        # The data are still in the write-ahead log, not in the file.
        assert salvage(str(link)) == salvage(path) and len(salvage(str(link))[1]) == 10
        capsys.readouterr()
        assert cli.main(["study", "export", "--salvage", str(link)]) == cli.DONE
        assert len(capsys.readouterr().out.splitlines()) == 11


def test_the_command_fails_if_nothing_is_found(path, tmp_path, capsys):
    for data in (b"", b"text" * 1000):
        (tmp_path / "studies.db").write_bytes(data)
        assert cli.main(["study", "export", "--salvage", path]) == cli.FAILED
        assert capsys.readouterr().out == ""
    os.unlink(path)
    bl.Study("s", tmp_path / "studies.db", bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
    assert cli.main(["study", "export", "--salvage", path, "s"]) == cli.DONE
    assert cli.main(["study", "export", "--salvage", path, "other"]) == cli.FAILED


def test_a_file_cut_anywhere_gives_only_written_records(path):
    events = [(5, form.with_checksum(5, seq, None, 0.5, text(400 * seq + 5))) for seq in range(30)]
    write(path, [], events)
    expected = set(events)
    with open(path, "rb") as file:
        data = file.read()
    found = []
    for end in range(0, len(data), 3001):
        with open(path, "wb") as file:
            file.write(data[:end])
        _, events = salvage(path)
        assert set(events) <= expected
        found.append(len(events))
    assert found[0] == 0 < found[-1] and found == sorted(found)


def like_records(generator, n):
    """Generate bytes that look like the beginning of a record's header, followed by lengths and types of every kind."""

    def one_of(*values):
        return bytes([generator.choice(values)])

    def varint():
        return bytes(generator.choices(range(128, 256), k=generator.randrange(4))) + one_of(*range(128))

    parts = []
    for _ in range(n):
        if generator.random() < 0.5:
            parts += [one_of(*range(8, 25)), *(one_of(*range(1, 10)) for _ in range(3)), varint()]
            parts += [one_of(*range(1, 10)), varint()]
        else:
            parts += [one_of(*range(7, 25)), b"\0", varint(), varint(), *(one_of(*range(1, 10)) for _ in range(2))]
        parts += [b"\x2c", bytes(generator.choices(range(256), k=generator.randrange(40)))]
    return b"".join(parts)


@pytest.mark.parametrize("seed", range(3))
def test_bytes_that_resemble_records_are_ignored(path, seed):
    noise = like_records(random.Random(seed), 500)
    store = SqliteStore(path)
    store.create(form.header(5, "first", DEFINITION, 0.5), [form.with_checksum(5, 0, None, 0.5, "{}")])
    store._disconnect()
    with open(path, "ab") as file:
        file.write(noise)
    with open(path + "-wal", "wb") as file:
        file.write(noise[: len(noise) // 3])
    headers, events = salvage(path)
    assert [header.id for header in headers] == [5] and [(study, each.seq) for study, each in events] == [(5, 0)]


def test_the_last_attributes_are_found(path):
    """Earlier headers remain in the write-ahead log, and may remain in the file."""
    study = bl.Study("s", f"sqlite:///{path}", bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
    for n in [1, 2000, 3, 4, 9000, 6, 7, 8]:
        study.set_attrs({"n": "a" * n})
        [found], _ = salvage(path)
        assert form.read_header(found)["attrs"] == {"n": "a" * n}
    [header] = [study._store.header("s")]
    study._store._disconnect()
    assert salvage(path)[0] == [header]


@pytest.mark.parametrize("clock", [None, lambda: 5.0])
def test_a_deleted_study_does_not_prevent_the_import_of_a_later_study_of_its_name(path, tmp_path, capsys, clock):
    url, exported = f"sqlite:///{path}", tmp_path / "exported"

    def create(name):
        return bl.Study(name, url, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0), time=clock)

    create("dose").suggest(5)
    # An open study keeps the write-ahead log, which still has the pages of deleted studies.
    other = create("other")
    other.observe(other.suggest(), 7.0)
    for value in (1.0, 2.0):
        bl.Study.delete("dose", url)
        dose = create("dose")
        dose.observe(dose.suggest(), value)
    assert cli.main(["study", "export", "--salvage", url]) == cli.DONE
    lines = capsys.readouterr().out
    exported.write_text(lines, encoding="utf-8")
    names = sorted(json.loads(line)["study"] for line in lines.splitlines() if '"definition": ' in line)
    assert names[0] == "dose" and names[-1] == "other" and all("dose (deleted, " in name for name in names[1:-1])
    assert len(names) == 4
    assert cli.main(["study", "import", str(exported), f"{url}.all"]) == cli.DONE
    assert cli.main(["study", "import", str(exported), f"{url}.one", "dose"]) == cli.DONE
    for end in (".all", ".one"):
        assert bl.Study.load("dose", url + end).best_value_ == 2.0
    assert bl.Study.load("other", f"{url}.all").best_value_ == 7.0
    assert sorted(each.n_trials for each in bl.Study.list(f"{url}.all")) == [1, 1, 1, 5]
    capsys.readouterr()
    assert cli.main(["study", "export", "--salvage", url, "dose"]) == cli.DONE
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_a_file_that_cannot_be_read_is_a_store_error(path, tmp_path):
    with pytest.raises(bl.errors.StoreError, match=f"store {path}: cannot be read: "):
        salvage(path)
    with pytest.raises(bl.errors.StoreError):
        salvage(str(tmp_path))
    open(path, "wb").close()
    assert salvage(path) == ([], [])
