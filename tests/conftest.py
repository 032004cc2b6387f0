"""Settings that all tests share."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import settings

import belated
from campaigns import server

# Deadlines of hypothesis are disabled, because they would measure the speed of the machine. In continuous integration,
# hypothesis uses the same examples in each run; elsewhere, each run draws new examples.
settings.register_profile("belated", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("belated")

# If a shell starts pytest in the background, pytest and its child processes ignore SIGINT. Some tests must interrupt
# child processes by SIGINT.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module", autouse=True)
def handler_of_sigterm():
    """Restore the handler of SIGTERM after the tests of a file.

    Ray replaces the handler. A forked process that inherits Ray's handler waits for Ray's threads, which it does not
    have, when `multiprocessing` terminates it.
    """
    handler = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, handler)


@pytest.fixture(scope="module")
def fixed_time():
    """Use a constant wall-clock time, so that tests can compare the events of two optimizers bit for bit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("belated.optimizers.problem.clocks", SimpleNamespace(time=lambda: 1e9))
        yield


MYPY_SETTINGS = """
[mypy]
strict = true
mypy_path = {path}

[mypy-joblib.*,matplotlib.*,openpyxl.*,pandas.*,scipy.*,sklearn.*,tqdm.*]
ignore_missing_imports = true

# Not installed everywhere.
[mypy-distributed.*,lightgbm.*,loky.*,mlflow.*,optuna.*,pyarrow.*,ray.*,tensorboardX.*,xgboost.*]
ignore_missing_imports = true
follow_imports = skip
"""


@pytest.fixture(scope="session")
def mypy(tmp_path_factory):
    """Return a function that checks the programs in a folder with mypy in strict mode and returns the lines of its
    output.

    mypy spends most of its time on imported packages, so the function keeps mypy's cache for the next call.
    """
    pytest.importorskip("mypy")
    package = Path(belated.__file__).parents[1]
    # mypy must find an installed package by its name, because a path to an installed package is an error.
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
