"""Where a store may be: URLs that name none, and the file system that a path is on."""

import io
import re

import pytest

import belated as bl
from belated import store
from belated.store import sqlite


@pytest.mark.parametrize("given", ["sqlite", "studies.db", "mysql:///x", "", "://x", 3, None, b"sqlite:///x"])
def test_what_is_no_url_of_a_store_is_refused_with_those_that_are(given):
    message = f"store={given!r} is not usable: pass a URL 'sqlite://…' or 'postgresql://…', as in 'sqlite:///file.db'"
    with pytest.raises(bl.InvalidSetting, match=f"^{re.escape(message)}$"):
        store.open_store(given)


def test_all_schemes_are_named(monkeypatch):
    monkeypatch.setitem(store.STORES, "memory", "tests.store.memory:MemoryStore")
    with pytest.raises(bl.InvalidSetting, match="pass a URL 'sqlite://…' or 'postgresql://…' or 'memory://…', as in"):
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
""".strip()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/none/x.db", "ext4"),
        ("/none/data/x.db", "nfs4"),
        ("/none/data/a/b/x.db", "nfs4"),
        ("/none/database/x.db", "ext4"),
        ("/none/data", "ext4"),  # a file of that name: its folder counts
        ("/none/data/local/x.db", "xfs"),
        ("/none/data/../x.db", "ext4"),
        ("/none/my disk/x.db", "cifs"),
        ("/none/a\\b/x.db", "vfat"),
        ("/none/twice/x.db", "btrfs"),  # the later mount covers the earlier one
        ("/none/short/x.db", "tmpfs"),
    ],
)
def test_a_file_is_on_the_innermost_mount_that_holds_its_folder(monkeypatch, path, kind):
    def mountinfo(name, **kwargs):
        assert name == "/proc/self/mountinfo"
        return io.StringIO(MOUNTS)

    monkeypatch.setattr(sqlite, "open", mountinfo, raising=False)
    assert sqlite.file_system(path) == kind


def test_a_file_system_that_cannot_be_found_is_unknown(monkeypatch):
    def missing(name, **kwargs):
        raise FileNotFoundError(name)

    monkeypatch.setattr(sqlite, "open", missing, raising=False)
    assert sqlite.file_system("/none/x.db") == ""


def test_a_study_can_be_created_and_read_where_the_file_system_is_unknown(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite, "file_system", lambda path: "")
    opened = store.open_store(tmp_path / "studies.db")
    assert opened.header("s") is None and repr(opened) == f"SqliteStore({opened.path!r})"
    bl.Study("s", opened, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)).suggest()
    assert opened.names() == ["s"]
