"""Settings that all tests share."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import settings

import belated
from campaigns import server

# Deadlines would measure the speed of the machine, so they are off. Continuous integration runs the same examples each
# time; other runs draw new examples.
settings.register_profile("belated", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("belated")

# A background job of a shell ignores Ctrl-C, and child processes inherit this setting. Tests interrupt such processes.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# This hook must run before the hook of pytest-xdist, which reads the groups.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Assign tests to groups, each of which runs in one process when tests run in parallel.

    A group is a file, so that its fixtures are made once. Tests that start Ray, which takes much memory, are one group.
    """
    for item in items:
        uses_ray = re.search(r"(?<![a-z])ray(?![a-z])", item.nodeid)
        item.add_marker(pytest.mark.xdist_group("ray" if uses_ray else item.nodeid.partition("::")[0]))


@pytest.fixture(scope="module")
def fixed_time():
    """The wall clock stands still, so that the events of two optimizers can be compared bit for bit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("belated.optimizers.problem.clocks", SimpleNamespace(time=lambda: 1e9))
        yield


MYPY_SETTINGS = """
[mypy]
strict = true
mypy_path = {path}

[mypy-joblib.*,matplotlib.*,pandas.*,scipy.*,sklearn.*,tqdm.*]
ignore_missing_imports = true

# Not installed everywhere.
[mypy-distributed.*,loky.*,optuna.*,pyarrow.*,ray.*]
ignore_missing_imports = true
follow_imports = skip
"""


@pytest.fixture(scope="session")
def mypy(tmp_path_factory):
    """A function that checks the programs of a folder with mypy in strict mode and returns the printed lines.

    Most of the time is spent on imported packages, so mypy's cache is kept from one call to the next.
    """
    pytest.importorskip("mypy")
    package = Path(belated.__file__).parents[1]
    # mypy finds an installed package by its name; a path to it is an error.
    path = "" if package.name == "site-packages" else package
    cache = tmp_path_factory.mktemp("mypy_cache")

    def check(folder):
        (folder / "mypy.ini").write_text(MYPY_SETTINGS.format(path=path), encoding="utf-8")
        command = [sys.executable, "-m", "mypy", "--config-file=mypy.ini", f"--cache-dir={cache}", "."]
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert run.returncode in (0, 1), run.stdout + run.stderr
        return run.stdout.splitlines()

    return check


@pytest.fixture(scope="session")
def postgres_server():
    """A PostgreSQL server, started for the tests."""
    reason = server.missing()
    if reason is not None:
        pytest.skip(reason)
    with server.Server(fsync=False) as started:
        yield started


@pytest.fixture
def postgres(postgres_server):
    """A PostgreSQL server without studies."""
    postgres_server.empty()
    return postgres_server
