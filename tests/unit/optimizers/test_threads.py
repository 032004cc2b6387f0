"""The number of threads is a setting that does not change suggestions."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest

import belated as bl
import belated.run.maximize  # noqa: F401
from tests.unit.run.runs import SPACE, f

# The arguments are a number of observations and a number of busy workers. The program prints the threads that the first
# suggestion starts, and the suggestion with the model that chose it.
PROGRAM = """
import json, os, sys
import numpy as np
import belated as bl
from belated import _core

n, busy = map(int, sys.argv[1:])
rows = np.random.default_rng(0).random((n, 3))
opt = bl.BayesOpt({"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 1.0)}, seed=1)
opt.add([dict(zip("abc", row)) for row in rows.tolist()], np.sin(5 * rows).sum(axis=1).tolist())
_core.add_busy_workers(busy)
count = lambda: len(os.listdir("/proc/self/task")) if sys.platform == "linux" else 0
before = count()
trial = opt.suggest()
started = count() - before
model = opt._log.surrogate(None, True)[0]
event = _core.without_time(opt._log.events(n)[-1])
print(json.dumps([started, [trial.params, event, list(model.lengthscale), model.variance, model.noise]]))
"""


def run(threads, n, busy=0):
    """Run the program with this value of the environment variable; None: without the variable."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    environment.pop("BELATED_NUM_THREADS", None)
    environment |= {} if threads is None else {"BELATED_NUM_THREADS": threads}
    command = [sys.executable, "-c", PROGRAM, str(n), str(busy)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)


def started_and_chosen(*arguments):
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# Factors use several threads from 700 rows on, other computations from 40 and 300 rows on.
@pytest.mark.parametrize("n", [350, 720])
def test_suggestions_and_models_are_the_same_with_any_number_of_threads(n):
    started, chosen = started_and_chosen("1", n)
    assert started == 0
    for threads in (2, 5):
        started, found = started_and_chosen(str(threads), n)
        assert found == chosen
        assert started == (threads if sys.platform == "linux" else 0)


@pytest.mark.parametrize("text", ["", "0", "-1", "two", "1.5", "2 ", "1025", "99999999999999999999"])
def test_other_texts_are_refused(monkeypatch, text):
    monkeypatch.setenv("BELATED_NUM_THREADS", text)
    for make in (bl.BayesOpt, bl.RandomSearch):
        with pytest.raises(bl.errors.InvalidSetting) as raised:
            make({"a": (0.0, 1.0)})
        assert str(raised.value) == (
            f'BELATED_NUM_THREADS="{text}" is not usable: set this environment variable to an integer from 1 to 1024, '
            "or unset it"
        )


@pytest.mark.skipif("sys.platform != 'linux'", reason="counts the threads in /proc")
def test_busy_workers_leave_fewer_threads_by_default():
    n, chosen = started_and_chosen(None, 120)
    for busy in (1, n, n + 5):
        left = n - busy
        assert started_and_chosen(None, 120, busy) == [left if left > 1 else 0, chosen]
    assert started_and_chosen("3", 120, n) == [3, chosen]


@pytest.mark.parametrize("error", [None, KeyError])
@pytest.mark.parametrize(
    ("engine", "busy"), [({}, 0), ({"n_workers": 3}, 2), ({"n_workers": 3, "processes": True}, 2), ({"executor": 3}, 0)]
)
def test_all_workers_of_a_run_except_one_are_busy_until_its_end(monkeypatch, engine, busy, error):
    changes, seen = [], []
    # The package belated.run has a function of the same name as this module.
    monkeypatch.setattr(sys.modules["belated.run.maximize"], "add_busy_workers", changes.append)

    def callback(opt, trial):
        seen.append(sum(changes))
        if error is not None:
            raise error

    if "executor" in engine:
        engine = {"executor": ThreadPoolExecutor(3)}
    with nullcontext() if error is None else pytest.raises(error):
        bl.maximize(f, SPACE, n_trials=4, seed=0, callbacks=[callback], **engine)
    assert set(seen) == {busy} and sum(changes) == 0
