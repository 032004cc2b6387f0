"""Runs on Ray tasks: calls, errors, workers that die, cancellation, and the number of simultaneous calls."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError

import pytest

pytest.importorskip("ray", reason="Ray is not installed")

import belated as bl  # noqa: E402
from belated.integrations.ray import executor  # noqa: E402
from tests.unit.run.runs import STEPS, reports, search, wait_for_file  # noqa: E402

SPACE = {"x": (0.0, 1.0), "n": bl.Integer(1, 8)}
SECONDS = 60.0


@pytest.fixture
def pool(ray):
    with executor(2) as pool:
        yield pool


def f(params):
    return params["x"] + params["n"]


class KillsItsWorker:
    """A function that kills its worker process if x is large, at every call of a trial or only at the first call."""

    def __init__(self, folder, always):
        self.folder, self.always = str(folder), always

    def __call__(self, params, trial):
        mark = os.path.join(self.folder, str(trial.number))
        if params["x"] > 0.5 and (self.always or not os.path.exists(mark)):
            open(mark, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return params["x"]


def test_functions_return_mappings_of_outcomes(pool):
    goals = {"error": "minimize", "memory": bl.AtMost(4.0), "note": bl.Record()}
    optimizer = bl.RandomSearch(SPACE, outcomes=goals, seed=0)
    measured = {"error": 0.5, "memory": 3.0}
    trials = bl.minimize(lambda params: measured, optimizer=optimizer, n_trials=4, executor=pool).trials
    assert [trial.values for trial in trials] == [measured] * 4 and trials[0].missing == ["note"]


def test_a_run_evaluates_in_other_processes_and_finds_the_number_of_workers(pool):
    def in_process(params, trial):
        trial.attrs["pid"] = os.getpid()
        return f(params)

    result = bl.maximize(in_process, SPACE, n_trials=12, executor=pool, seed=0, initial=12)
    assert [trial.value for trial in result.trials] == [f(trial.params) for trial in result.trials]
    assert os.getpid() not in {trial.attrs["pid"] for trial in result.trials}


def test_one_worker_gives_the_trials_of_a_run_without_an_executor(ray):
    arguments = {"n_trials": 8, "seed": 0}
    with executor(1) as pool:
        there = bl.maximize(f, SPACE, executor=pool, **arguments)
    here = bl.maximize(f, SPACE, **arguments)
    assert [trial.params for trial in there.trials] == [trial.params for trial in here.trials]


def test_calls_return_and_raise_as_in_threads(pool):
    assert list(pool.map(divmod, range(20), [3] * 20)) == [divmod(i, 3) for i in range(20)]
    with pytest.raises(ZeroDivisionError):
        pool.submit(lambda: 1 / 0).result(SECONDS)
    with pytest.raises(TypeError, match="serialize"):
        pool.submit(lambda lock: lock, threading.Lock())
    # A call that cannot be sent does not occupy a worker.
    assert [each.result(SECONDS) for each in [pool.submit(abs, -i) for i in range(4)]] == [0, 1, 2, 3]


def test_waiting_calls_can_be_cancelled_and_submitted_ones_cannot(pool, tmp_path):
    go_on = str(tmp_path / "go_on")
    futures = [pool.submit(wait_for_file, go_on) for _ in range(5)]
    assert [future.running() for future in futures] == [True, True, False, False, False]
    assert [future.cancel() for future in futures[:4]] == [False, False, True, True]
    open(go_on, "w").close()
    futures[4].result(SECONDS)
    with pytest.raises(CancelledError):
        futures[2].result(SECONDS)
    assert pool.submit(abs, -1).result(SECONDS) == 1


def test_shutdown_waits_or_cancels_and_takes_no_further_calls(ray, tmp_path):
    go_on = str(tmp_path / "go_on")
    pool = executor(1)
    running, waiting = (pool.submit(wait_for_file, go_on) for _ in range(2))
    pool.shutdown(wait=False, cancel_futures=True)
    assert waiting.cancelled() and not running.done()
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(abs, -1)
    open(go_on, "w").close()
    pool.shutdown()
    assert running.done()
    with executor(1) as pool:
        futures = [pool.submit(time.sleep, 0.05) for _ in range(3)]
    assert all(future.done() for future in futures)


def test_calls_that_wait_when_the_interpreter_ends_have_an_error(ray, tmp_path):
    go_on = str(tmp_path / "go_on")
    pool = executor(1)
    running, *waiting = (pool.submit(wait_for_file, go_on) for _ in range(3))
    pool._starter.shutdown()  # as when Python exits
    open(go_on, "w").close()
    assert running.result(SECONDS) is None
    assert [type(future.exception(SECONDS)) for future in waiting] == [RuntimeError] * 2


def test_a_timeout_leaves_running_trials_pending(ray, tmp_path):
    go_on = str(tmp_path / "go_on")
    with executor(2) as pool:
        with pytest.warns(bl.BelatedWarning, match="still ran at the timeout and are pending: 0, 1;"):
            result = bl.maximize(lambda params: wait_for_file(go_on), SPACE, timeout=0.5, executor=pool)
        assert result.stop_reason == "timeout" and [trial.state for trial in result.trials] == ["pending"] * 2
        open(go_on, "w").close()


def test_a_trial_is_started_again_if_its_worker_died(pool, tmp_path):
    with pytest.warns(bl.BelatedWarning, match="was lost and is started again: its worker died: The worker died"):
        result = bl.maximize(
            KillsItsWorker(tmp_path, always=False), SPACE, n_trials=6, executor=pool, retries=1, seed=0
        )
    assert [trial.value for trial in result.trials] == [trial.params["x"] for trial in result.trials]
    assert os.listdir(tmp_path)


def test_a_trial_whose_worker_always_dies_has_failed(pool, tmp_path):
    opt = bl.RandomSearch(SPACE, seed=0)
    opt.enqueue([{"x": x, "n": 1} for x in (0.25, 0.75)])
    with pytest.warns(bl.BelatedWarning, match="trial 1 failed: its worker died"):
        result = bl.maximize(KillsItsWorker(tmp_path, always=True), optimizer=opt, n_trials=2, executor=pool)
    assert [trial.state for trial in result.trials] == ["observed", "failed"]


# Learning curves.


class Rises:
    """A generator whose values rise to x. At its end, it writes its last step to a file of its trial."""

    def __init__(self, folder, step_of_death=None):
        self.folder, self.step_of_death = str(folder), step_of_death

    def __call__(self, params, trial):
        begun, step = os.path.join(self.folder, f"begun {trial.number}"), 0
        attempt = int(os.path.exists(begun))
        open(begun, "w").close()
        try:
            for step in range(1, STEPS + 1):
                # Each attempt reports different values.
                yield params["x"] * step / STEPS - attempt * (step < STEPS)
                if attempt == 0 and step == self.step_of_death:
                    os.kill(os.getpid(), signal.SIGKILL)
        finally:
            with open(os.path.join(self.folder, f"ended {trial.number}"), "w", encoding="utf-8") as file:
                file.write(str(step))

    def last_step(self, number):
        with open(os.path.join(self.folder, f"ended {number}"), encoding="utf-8") as file:
            return int(file.read())


@pytest.mark.parametrize("by_generator", [True, False], ids=["generator", "function"])
def test_curves_and_stops_are_those_of_threads(ray, by_generator, tmp_path):
    rises = Rises(tmp_path)
    with executor(1) as pool:
        there = bl.maximize(rises if by_generator else reports, optimizer=search(), n_trials=9, executor=pool)
    here = bl.maximize(reports, optimizer=search(), n_trials=9)
    facts = [[(trial.params, trial.state, trial.value, trial.curve) for trial in each.trials] for each in (there, here)]
    assert facts[0] == facts[1]
    assert {trial.state for trial in there.trials} == {"stopped", "observed"}
    if by_generator:
        assert [rises.last_step(trial.number) for trial in there.trials] == [len(trial.curve) for trial in there.trials]


@pytest.mark.filterwarnings("ignore:the evaluation of trial:belated.BelatedWarning")
def test_the_curve_of_a_restarted_trial_is_that_of_its_last_attempt(pool, tmp_path):
    rises = Rises(tmp_path, step_of_death=3)
    result = bl.maximize(rises, optimizer=search(stopping=None), n_trials=3, executor=pool, retries=1)
    for trial in result.trials:
        x = trial.params["x"]
        assert trial.curve == {i: x * i / STEPS - (i < STEPS) for i in range(1, STEPS + 1)}
        assert (trial.state, trial.value, rises.last_step(trial.number)) == ("observed", x, STEPS)


class NotImportedElsewhere:
    """An object whose pickle can be read only in the process that made the object."""

    def __init__(self):
        self.home = os.getpid()

    def __setstate__(self, state):
        if state["home"] != os.getpid():
            raise ModuleNotFoundError("No module named 'at_home'")

    def __call__(self, params):
        return 1.0


def test_a_function_that_workers_cannot_import_is_not_tried_again(pool):
    # A retry would give a warning.
    with pytest.raises(
        bl.errors.RunError, match="(?s)No module named 'at_home'.*; define it at the top level of a module"
    ):
        bl.maximize(NotImportedElsewhere(), SPACE, n_trials=3, executor=pool, retries=3)


def test_default_number_of_workers_is_the_capacity_of_the_cluster(ray):
    assert [executor(num_cpus=n).num_workers for n in (1, 2, 3, 0.1)] == [4, 2, 1, 40]
    assert executor(3, num_cpus=0).num_workers == 3


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"n_workers": 0}, "n_workers=0 is not usable"),
        ({"n_workers": True}, "n_workers=True is not usable"),
        ({"num_cpus": 100}, "a call needs {'CPU': 100}: ask for less, or pass n_workers"),
        ({"resources": {"lab": 1}}, "the cluster has {'CPU': 4.0, 'lab': 0}"),
        ({"num_cpus": 0}, "n_workers is missing"),
        ({"num_cpu": 1}, "ray.remote does not take .*num_cpu"),
        ({"num_returns": 2}, "num_returns=2: a call returns one object"),
    ],
)
def test_invalid_arguments_are_refused(ray, arguments, message):
    with pytest.raises(bl.errors.InvalidSetting, match=message):
        executor(**arguments)


CTRL_C = """
import os, sys, time
import ray
import belated as bl
from belated.integrations.ray import executor

address, folder = sys.argv[1:]
ray.init(address=address, log_to_driver=False, logging_level="ERROR")

def f(params, trial):
    open(os.path.join(folder, str(trial.number)), "w").close()
    time.sleep(1000)

try:
    bl.maximize(f, {"x": (0.0, 1.0)}, n_trials=50, executor=executor(2))
except KeyboardInterrupt as interrupt:
    result = interrupt.result
print(result.stop_reason, *[trial.state for trial in result.trials], flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="sends signals to processes")
def test_ctrl_c_ends_a_run_and_the_program(ray, tmp_path):
    address = ray.get_runtime_context().gcs_address
    command = [sys.executable, "-c", CTRL_C, address, str(tmp_path)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        for number in range(2):
            wait_for_file(tmp_path / str(number))
        child.send_signal(signal.SIGINT)
        output, _ = child.communicate(timeout=SECONDS)
    finally:
        child.kill()
    assert output == "interrupted pending pending\n" and child.returncode == 0


ALONE = """
import sys
import belated
assert "ray" not in sys.modules
from belated.integrations.ray import executor
assert "ray" in sys.modules and "ray.tune" not in sys.modules
try:
    executor()
except belated.errors.InvalidSetting as error:
    print(error)
"""


def test_ray_is_imported_late_without_tune_and_must_have_been_started():
    run = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, timeout=SECONDS)
    assert "Ray is not started: call ray.init()" in run.stdout, run.stderr
