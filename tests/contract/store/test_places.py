"""Locations of stores: URLs with unknown schemes, network file systems, mounted files, and files with two names."""

import io
import os
import re
import subprocess
import sys

import pytest

import belated as bl
from belated import cli, store
from belated.store import mounts, sqlite


@pytest.mark.parametrize("given", ["sqlite", "studies.db", "mysql:///x", "", "://x", 3, None, b"sqlite:///x"])
def test_unknown_urls_are_refused_with_the_known_schemes(given):
    message = f"store={given!r} is not usable: pass a URL 'sqlite://…' or 'postgresql://…', as in 'sqlite:///file.db'"
    with pytest.raises(bl.errors.InvalidSetting, match=f"^{re.escape(message)}$"):
        store.open_store(given)


def test_error_names_all_url_schemes(monkeypatch):
    monkeypatch.setitem(store.STORES, "memory", "tests.contract.store.memory:MemoryStore")
    with pytest.raises(
        bl.errors.InvalidSetting, match="pass a URL 'sqlite://…' or 'postgresql://…' or 'memory://…', as in"
    ):
        store.open_store("other://x")


MOUNTS = r"""
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda rw
22 21 0:20 / /none/data rw shared:2 master:3 - nfs4 host:/data rw
23 22 0:21 / /none/data/local rw - xfs /dev/sdb rw
24 21 0:22 / /none/my\040disk rw - cifs //host/share rw
25 21 0:23 / /none/a\134b rw - vfat /dev/sdc rw
26 21 0:24 / /none/twice rw - ext2 /dev/sdd rw
27 21 0:25 / /none/twice rw - btrfs /dev/sde rw
28 21 0:26 / /none/short rw - tmpfs tmpfs rw
29 21 8:1 /home/a.db /none/c/b.db rw - ext4 /dev/sda rw
30 21 0:27 /a.db /none/c/a\040\134b.db rw shared:1 - virtiofs host rw
31 21 8:1 /x /none/a<separators>b rw - xfs /dev/sda rw
""".strip().replace("<separators>", "\u00a0\r")


@pytest.fixture
def mountinfo(monkeypatch):
    """The mounts above."""

    def opened(name, **kwargs):
        assert name == "/proc/self/mountinfo"
        return io.TextIOWrapper(io.BytesIO(MOUNTS.encode()), **kwargs)

    monkeypatch.setattr(mounts, "open", opened, raising=False)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/none/x.db", "ext4"),
        ("/none/data/x.db", "nfs4"),
        ("/none/data/a/b/x.db", "nfs4"),
        ("/none/database/x.db", "ext4"),
        ("/none/c/x.db", "ext4"),
        ("/none/c/a \\b.db", "virtiofs"),  # the file is a mount point
        ("/none/a\u00a0\rb/x.db", "xfs"),
        ("/none/data/local/x.db", "xfs"),
        ("/none/data/../x.db", "ext4"),
        ("/none/my disk/x.db", "cifs"),
        ("/none/a\\b/x.db", "vfat"),
        ("/none/twice/x.db", "btrfs"),  # the later mount at the same mount point hides the earlier mount
        ("/none/short/x.db", "tmpfs"),
    ],
)
def test_a_file_belongs_to_the_innermost_mount_that_contains_it(mountinfo, path, kind):
    assert mounts.file_system(path) == kind


def test_a_file_system_that_cannot_be_found_is_unknown(monkeypatch):
    def missing(name, **kwargs):
        raise FileNotFoundError(name)

    monkeypatch.setattr(mounts, "open", missing, raising=False)
    assert mounts.file_system("/none/x.db") == "" and not mounts.is_mount_point("/none/x.db")


def test_files_that_are_mount_points_are_found(mountinfo, tmp_path):
    for path in ("/none/c/b.db", "/none/c/../c/b.db", "/none/c/a \\b.db"):
        assert mounts.is_mount_point(path)
    (tmp_path / "link.db").symlink_to("/none/c/b.db")
    assert mounts.is_mount_point(str(tmp_path / "link.db"))
    for path in ("/none/c/a.db", "/none/c/b.db-wal", "/none/data/b.db", "/none/c"):
        assert not mounts.is_mount_point(path)


def test_a_study_can_be_created_and_read_where_the_file_system_is_unknown(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite, "file_system", lambda path: "")
    opened = store.open_store(tmp_path / "studies.db")
    assert opened.header("s") is None and repr(opened) == f"SqliteStore({opened.path!r})"
    bl.Study("s", opened, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)).suggest()
    assert opened.names() == ["s"]


def search():
    return bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)


# A program that opens a study by a name of the study's file, reads the study and tries to write. The program prints the
# number of trials and the error.
WORKER = """
import sys, warnings
import belated as bl
warnings.simplefilter("ignore")
study = bl.Study.load("s", f"sqlite:///{sys.argv[1]}")
print(len(study.trials))
try:
    study.suggest()
except bl.errors.StoreError as error:
    print(error)
"""


def run_worker(path, *prefix):
    command = [*prefix, sys.executable, "-c", WORKER, str(path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    n, *error = run.stdout.splitlines()
    return int(n), "".join(error)


@pytest.mark.filterwarnings("ignore:store .* is opened for reading only")
def test_a_file_with_a_second_hard_link_is_opened_read_only(tmp_path, capsys):
    one, other = (tmp_path / name for name in ("one.db", "other.db"))
    bl.Study("s", one, search()).suggest(n=2)
    study = bl.Study.load("s", one)
    os.link(one, other)
    for path in (one, other):
        n, error = run_worker(path)
        assert "2 names" in error and str(path) in error
    # The process that opened the file before it had two names may not write either. A refused call does not change the
    # study.
    with pytest.raises(bl.errors.StoreError, match="2 names"):
        study.observe(0, 1.0)
    assert study.n_trials == 2 and study.best_value_ is None
    del study
    again = bl.Study.load("s", other)
    assert again.n_trials == 2
    for command in ("export", "check", "show", "list"):
        assert cli.main(["study", command, str(other)]) == cli.DONE
    with pytest.raises(bl.errors.StoreError, match="2 names"):
        bl.Study("new", other, search())
    # After one of the names is removed, writing is allowed again, even by a study that was opened while the file had
    # two names.
    one.unlink()
    again.observe(0, 1.0)
    assert run_worker(other) == (2, "") and again.n_trials == 3


def test_a_reader_under_a_second_name_does_not_write_its_log_into_the_file(tmp_path):
    one, other = (tmp_path / name for name in ("one.db", "other.db"))
    study = bl.Study("s", one, search())
    study.suggest()
    # The files are now as a killed process would leave them.
    (tmp_path / "other.db-wal").write_bytes((tmp_path / "one.db-wal").read_bytes())
    study.suggest(n=5)
    del study
    os.link(one, other)
    before = one.read_bytes()
    with pytest.warns(bl.BelatedWarning, match="reading only"):
        reader = bl.Study.load("s", other)
    assert reader.trials
    del reader
    assert one.read_bytes() == before


def test_a_file_that_is_a_mount_point_is_opened_read_only(tmp_path):
    inside = tmp_path / "container"
    inside.mkdir()
    one, other = tmp_path / "one.db", inside / "other.db"
    study = bl.Study("s", one, search())
    study.suggest()
    other.touch()
    # The mount is made in a separate namespace, so it disappears when the process ends. The test is skipped if the user
    # is not allowed to mount.
    prefix = ["unshare", "--mount", "sh", "-c", f"mount --bind '{one}' '{other}' && exec \"$@\"", "sh"]
    try:
        subprocess.run([*prefix, "true"], check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs Linux and the right to mount")
    del study
    n, error = run_worker(other, *prefix)
    assert n == 1 and "mount the folder" in error
    # If the folder of a file is mounted, the file can be written.
    assert run_worker(one, *prefix) == (1, "")
    prefix = ["unshare", "--mount", "sh", "-c", f"mount --bind '{tmp_path}' /mnt && exec \"$@\"", "sh"]
    assert run_worker("/mnt/one.db", *prefix) == (2, "")
    assert bl.Study.load("s", one).n_trials == 3
