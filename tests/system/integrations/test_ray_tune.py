"""Complete runs of Ray Tune with `BelatedSearch`: results, restored runs, failed trials, missing metrics."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="Ray is not installed")
tune = pytest.importorskip("ray.tune", reason="Ray Tune is not installed")

from belated.integrations.ray import BelatedSearch  # noqa: E402

pytestmark = pytest.mark.usefixtures("ray")


@pytest.fixture(autouse=True)
def every_step_is_saved(monkeypatch):
    monkeypatch.setenv("TUNE_GLOBAL_CHECKPOINT_S", "0")
    monkeypatch.setenv("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS", "1")
    monkeypatch.setenv("TUNE_PRINT_ALL_TRIAL_ERRORS", "0")


@pytest.fixture(autouse=True)
def handler_of_sigint():
    """Restore the handler of SIGINT, because Tune replaces the handler and does not restore it."""
    handler = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, handler)


class Stop(Exception):
    """The exception that ends a session without saving anything, as if the process had been killed."""


class StopsAfter(tune.Callback):
    """Ends the session once `n` trials have ended. `n` is an attribute of the class, because Tune copies the
    instance."""

    n = None

    def on_step_begin(self, iteration, trials, **info):
        if self.n is None or sum(trial.status == "TERMINATED" for trial in trials) < self.n:
            return
        # Tune copies the state of the run to the storage in a thread, while later steps write the original: a copy may
        # be empty or cut off. In this case the session continues, because Tune could not restore it.
        deadline = time.monotonic() + 1.0
        while time.monotonic() < deadline:
            if state_is_stored(Path(trials[0].storage.experiment_fs_path)):
                raise Stop
            time.sleep(0.01)


def state_is_stored(run):
    """Return True if the newest state of the run in the storage is complete."""
    files = sorted(run.glob("experiment_state-*.json"))
    try:
        return bool(files) and bool(json.loads(files[-1].read_text()))
    except json.JSONDecodeError:
        return False


def tuner_of(train, search, folder, n, callbacks=(), metric="loss", **space):
    return tune.Tuner(
        train,
        param_space={"box": {"x": tune.uniform(0.0, 1.0)}, "units": tune.choice([(16,), (32, 32)]), **space},
        tune_config=tune.TuneConfig(
            search_alg=search, metric=metric, mode="min", num_samples=n, max_concurrent_trials=2, reuse_actors=True
        ),
        run_config=tune.RunConfig(name="run", storage_path=str(folder), verbose=0, callbacks=list(callbacks)),
    )


def train(config):
    with open(config["notes"], "a") as notes:
        print(repr(config["box"]["x"]), file=notes)
    return {"loss": (config["box"]["x"] - 0.3) ** 2 + len(config["units"])}


def trials_of(folder, **arguments):
    """Return the trials of the search that is stored in the folder of a run."""
    search = BelatedSearch(**arguments)
    search.restore_from_dir(str(folder / "run"))
    return search.optimizer_.trials


def test_a_stopped_and_restored_run_has_every_trial_once(tmp_path, monkeypatch):
    notes, run = tmp_path / "notes", tmp_path / "run"
    monkeypatch.setattr(StopsAfter, "n", 2)
    with pytest.raises(Stop):
        tuner_of(train, BelatedSearch(seed=0), tmp_path, 6, [StopsAfter()], notes=str(notes)).fit()
    evaluated = [float(line) for line in notes.read_text().split()]
    # The file of the search is replaced by an earlier version, as if the later version had not reached the storage.
    [first] = run.glob("searcher-state-*")
    older = first.read_bytes()
    monkeypatch.setattr(StopsAfter, "n", 4)
    with pytest.raises(Stop):
        tune.Tuner.restore(str(run), train).fit()
    max(run.glob("searcher-state-*")).write_bytes(older)
    monkeypatch.setattr(StopsAfter, "n", None)
    results = tune.Tuner.restore(str(run), train).fit()
    assert len(results) == 6 and not results.errors
    table = {result.metrics["trial_id"]: (result.config["box"]["x"], result.metrics["loss"]) for result in results}
    trials = trials_of(tmp_path)
    assert {trial.attrs["tune_trial"]: (trial.params["box/x"], trial.value) for trial in trials} == table
    assert len({x for x, _ in table.values()}) == len(trials) == 6
    # After the restore, completed trials are not evaluated again.
    lines = [float(line) for line in notes.read_text().split()]
    assert sum(lines.count(x) == 1 for x in evaluated) >= 2


def test_a_failed_trial_is_restarted(tmp_path):
    mark = str(tmp_path / "failed")

    def fails_first(config):
        if config["box"]["x"] == 0.5 and not os.path.exists(mark):
            open(mark, "w").close()
            raise ValueError("not yet")
        return {"loss": config["box"]["x"]}

    points = [{"box": {"x": x}, "units": (16,)} for x in (0.5, 0.125)]
    search = BelatedSearch(seed=0, points_to_evaluate=points)
    results = tuner_of(fails_first, search, tmp_path, 2).fit()
    assert results.num_errors == 1
    assert [trial.state for trial in search.optimizer_.trials] == ["failed", "observed"]
    # A trial that Tune runs again gets a new id.
    results = tune.Tuner.restore(str(tmp_path / "run"), fails_first, restart_errored=True).fit()
    assert not results.errors
    assert [trial.value for trial in trials_of(tmp_path)] == [0.5, 0.125]


def test_a_trial_that_fails_again_is_one_trial(tmp_path):
    def fails(config):
        if config["box"]["x"] == 0.5:
            raise ValueError("again")
        return {"loss": config["box"]["x"]}

    points = [{"box": {"x": x}, "units": (16,)} for x in (0.5, 0.125)]
    tuner_of(fails, BelatedSearch(seed=0, points_to_evaluate=points), tmp_path, 2).fit()
    tune.Tuner.restore(str(tmp_path / "run"), fails, restart_errored=True).fit()
    assert [trial.state for trial in trials_of(tmp_path)] == ["failed", "observed"]


def test_a_metric_that_is_never_reported(tmp_path):
    search = BelatedSearch(seed=0)
    with pytest.raises(Exception, match="did not include the specified metric"):
        tuner_of(lambda config: {"accuracy": 1.0}, search, tmp_path, 1).fit()
    assert [trial.state for trial in search.optimizer_.trials] == ["pending"]


def test_errors_of_tune_for_two_spaces_and_for_grids(tmp_path):
    with pytest.raises(ValueError, match="already instantiated with a search space"):
        tuner_of(train, BelatedSearch({"x": (0.0, 1.0)}), tmp_path, 2).fit()
    with pytest.raises(Exception, match="grid_search"):
        tuner_of(train, BelatedSearch(), tmp_path, 2, x=tune.grid_search([1, 2])).fit()
