"""Connections are closed with their store, and silently when the interpreter ends."""

import gc
import subprocess
import sys
import threading

import pytest

import belated as bl
from belated.store.closing import close_with
from belated.store.sqlite import SqliteStore

_STUDY = """
import belated as bl
s = bl.Study("a", "sqlite:///{path}", bl.BayesOpt({{"x": (0.0, 1.0)}}, seed=0))
s.observe(s.suggest(), 1.0)
"""

_LATE = """
import atexit

def late():
    s.observe(s.suggest(), 2.0)
    print(len(s.trials))

atexit.register(late)
"""


def ended(path, before="", *flags):
    code = before + _STUDY.format(path=path)
    return subprocess.run([sys.executable, *flags, "-c", code], capture_output=True, text=True)


@pytest.mark.parametrize("imports", ["", "import optuna", "import belated, sklearn.svm, optuna"])
def test_the_end_of_the_interpreter_prints_nothing_and_removes_the_log_of_the_store(tmp_path, imports):
    for package in ("optuna", "sklearn"):
        if package in imports:
            pytest.importorskip(package)
    end = ended(tmp_path / "s.db", imports)
    assert (end.returncode, end.stdout, end.stderr) == (0, "", "")
    assert [each.name for each in tmp_path.iterdir()] == ["s.db"]


def test_the_connection_of_an_open_study_does_not_give_a_warning_at_the_end(tmp_path):
    assert ended(tmp_path / "s.db", "", "-W", "always::ResourceWarning").stderr == ""


def test_a_study_is_usable_after_its_connection_was_closed_at_the_end(tmp_path):
    # Functions that were registered before the first connection are called after it was closed.
    end = ended(tmp_path / "s.db", _LATE)
    assert (end.returncode, end.stdout.split(), end.stderr) == (0, ["2"], "")
    study = bl.Study("a", f"sqlite:///{tmp_path / 's.db'}")
    assert [trial.value for trial in study.trials] == [1.0, 2.0]


def test_a_store_that_is_deleted_closes_its_connection(tmp_path):
    store = SqliteStore(str(tmp_path / "s.db"))
    bl.Study("a", store, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)).suggest()
    assert (tmp_path / "s.db-wal").exists()
    del store
    gc.collect()
    assert [each.name for each in tmp_path.iterdir()] == ["s.db"]


class Held:
    """A lock that another thread holds."""

    def acquire(self, timeout):
        return False


def test_a_connection_that_another_thread_uses_stays_open():
    class Owner:
        pass

    closed = []

    class Connection:
        def close(self):
            closed.append(True)
            raise OSError("the server has gone")

    for lock, n_closed in ((Held(), 0), (threading.RLock(), 1)):
        owner = Owner()
        closing = close_with(owner, Connection(), lock)
        assert closing.alive
        del owner
        gc.collect()
        assert not closing.alive
        assert len(closed) == n_closed
