"""Test a run of Ray Tune that is killed and restored repeatedly: python campaigns/tune.py.

Sessions of `Tuner.fit` with `BelatedSearch` run in separate processes on one local Ray. Each session except the last is
killed by SIGKILL, and the next session continues the run by `Tuner.restore`. The last session completes the run.
Between two sessions, the program sometimes replaces one of two files by an earlier version: the file of the search, or
Tune's table of trials. In reality this happens if only one of the two files was copied to the storage before the kill.
At the end, Tune and the search must have the same trials, with the same params and values. No two trials may have the
same point. If the restored table contains the result of a trial, the session must not evaluate this trial again. The
program prints JSON.
"""

import json
import multiprocessing
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path

import harness

import belated as bl

NAME = "run"


def session(address, folder, samples, workers, seconds, period):
    """Run one session, which starts a new run or restores the run in the folder. If the session completes the run,
    write a file."""
    os.environ.update(TUNE_GLOBAL_CHECKPOINT_S=str(period), TUNE_DISABLE_AUTO_CALLBACK_LOGGERS="1")
    import ray
    from ray import tune as ray_tune

    from belated.integrations.ray import BelatedSearch

    def train(config):
        with open(config["notes"], "a") as notes:
            print("begin", repr(config["box"]["x"]), file=notes, flush=True)
            time.sleep(config["seconds"])
            print("end", repr(config["box"]["x"]), file=notes, flush=True)
        return {"loss": (config["box"]["x"] - 0.3) ** 2}

    ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    path = f"{folder}/{NAME}"
    space = {"box": {"x": ray_tune.uniform(0.0, 1.0)}, "notes": f"{folder}/notes", "seconds": seconds}
    if list(Path(path).glob("experiment_state-*")):
        tuner = ray_tune.Tuner.restore(path, train, param_space=space)
    else:
        tuner = ray_tune.Tuner(
            train,
            param_space=space,
            tune_config=ray_tune.TuneConfig(
                search_alg=BelatedSearch(optimizer=bl.RandomSearch),
                metric="loss",
                mode="min",
                num_samples=samples,
                max_concurrent_trials=workers,
                reuse_actors=True,
            ),
            run_config=ray_tune.RunConfig(name=NAME, storage_path=str(folder), verbose=0),
        )
    tuner.fit()
    Path(folder, "done").touch()


class Files:
    """The three files in which Tune stores a run, and the earlier contents of these files."""

    KINDS = ("experiment_state", "searcher-state", "search_gen_state")

    def __init__(self, folder):
        self.folder = Path(folder, NAME)
        self.versions = {kind: [] for kind in self.KINDS}

    def newest(self, kind):
        """Return the newest file of a kind, or None. Tune would restore a session from the newest file."""
        return max(self.folder.glob(f"{kind}-*.json"), default=None)

    def watch(self):
        """Store the contents of complete new files; return the kinds of files that are incomplete."""
        damaged = []
        for kind, versions in self.versions.items():
            path = self.newest(kind)
            text = None if path is None else path.read_bytes()
            if text is not None and (not versions or text != versions[-1]):
                try:
                    # Tune's counter of trials is a pickle, which Tune always replaces as a whole.
                    if kind != "search_gen_state":
                        json.loads(text)
                    versions.append(text)
                except ValueError:
                    damaged.append(kind)
        return damaged

    def repair(self):
        """After Tune was killed, return the kinds of files that are damaged. Replace Tune's table by its last complete
        content."""
        damaged = self.watch()
        for kind in damaged:
            if kind != "searcher-state" and self.versions[kind]:
                self.newest(kind).write_bytes(self.versions[kind][-1])
        return damaged

    def mix(self, chance):
        """Replace the file of the search or Tune's table by an earlier version. Tune's counter of trials is replaced by
        the version from the same time."""
        older, *with_it = chance.choice(
            [("searcher-state",), ("searcher-state", "search_gen_state"), ("experiment_state", "search_gen_state")]
        )
        back = chance.randrange(2, 5)
        if min(len(versions) for versions in self.versions.values()) < back:
            return None
        for kind in (older, *with_it):
            self.newest(kind).write_bytes(self.versions[kind][-back])
        return older

    def table(self):
        """Return Tune's trials: id → (whether it has ended, x, value)."""
        found = {}
        for state, data in json.loads(self.newest("experiment_state").read_bytes())["trial_data"]:
            state, data = json.loads(state), json.loads(data)
            is_over = state["status"] in ("TERMINATED", "ERROR")
            found[state["trial_id"]] = (is_over, state["config"]["box"]["x"], data["last_result"].get("loss"))
        return found

    def search(self):
        """Return the search's trials, [(x, state, value)], and a dict from Tune's ids to the numbers of the trials."""
        from belated.integrations.ray import BelatedSearch
        from belated.integrations.ray.checkpoint import SavedSearch

        path = str(self.newest("searcher-state"))
        restored = BelatedSearch(optimizer=bl.RandomSearch)
        try:
            restored.restore(path)
        except bl.errors.InvalidSetting:
            return [], {}  # damaged: Tune's table must be enough
        trials = [(each.params["box/x"], each.state, each.value) for each in restored.optimizer_.trials]
        return trials, SavedSearch.read(path).trials


def lines(folder):
    """Return the notes of the evaluations: [("begin" or "end", x)]."""
    path = Path(folder, "notes")
    if not path.exists():
        return []
    return [(what, float(x)) for what, x in (line.split() for line in path.read_text().splitlines())]


def done_with(files):
    """Return the points that must not be evaluated again: points of trials that have ended in Tune's table, and points
    that the search has observed although the table does not contain them."""
    table = files.table()
    trials, numbers = files.search()
    unknown = {numbers[each] for each in numbers.keys() - table.keys()}
    ended = {x for is_over, x, _ in table.values() if is_over}
    return ended | {trials[number][0] for number in unknown if trials[number][1] == "observed"}


def compare(files, notes, failures):
    """Compare Tune's trials, the search's trials and the evaluations."""
    table = files.table()
    trials, numbers = files.search()
    for trial_id, (is_over, x, loss) in table.items():
        if not is_over:
            failures.note(f"trial {trial_id} of Tune has not ended")
        elif trial_id not in numbers:
            failures.note(f"trial {trial_id} of Tune is lost to the search")
        elif trials[numbers[trial_id]] != (x, "observed", loss):
            failures.note(f"trial {trial_id} of Tune has {x, loss}, and in the search {trials[numbers[trial_id]]}")
    of_tune = [numbers[each] for each in table if each in numbers]
    if len(set(of_tune)) < len(of_tune):
        failures.note("two trials of Tune are one trial of the search")
    begun = Counter(x for what, x in notes if what == "begin")
    for x, state, _ in trials:
        if state != "observed" or not begun[x]:
            failures.note(f"the search has a trial at {x} that is {state}, evaluated {begun[x]} times")
    if len({x for x, *_ in trials}) < len(trials):
        failures.note("two trials of the search are at one point")
    return {
        "trials_of_tune": len(table),
        "trials_of_the_search": len(trials),
        "evaluations_begun": sum(begun.values()),
        "points_that_neither_file_knew": len(begun.keys() - {x for x, *_ in trials}),
    }


def run(stops=10, samples=60, workers=4, seconds=0.2, period=0.5, longest=3.0, mixed=0.5, seed=0, limit=None):
    """Return all results."""
    import ray

    chance, failures, deadline = random.Random(seed), harness.Failures(), harness.Deadline(limit)
    context = multiprocessing.get_context("spawn")
    stopped, damaged, older = 0, Counter(), Counter()
    # For each restart: the number of lines that evaluations had written, and the points that must not be evaluated
    # again.
    restarts = []
    with harness.folder() as folder:
        files = Files(folder)
        cluster = ray.init(
            num_cpus=workers, include_dashboard=False, object_store_memory=80_000_000, logging_level="ERROR"
        )
        try:
            while not Path(folder, "done").exists() and not deadline.over():
                arguments = (cluster.address_info["gcs_address"], folder, samples, workers, seconds, period)
                process = context.Process(target=session, args=arguments)
                known = len(lines(folder))
                process.start()
                while len(lines(folder)) == known and process.is_alive() and not deadline.over():
                    time.sleep(0.05)
                end = time.monotonic() + (chance.uniform(0.0, longest) if stopped < stops else float("inf"))
                while process.is_alive() and time.monotonic() < end and not deadline.over():
                    files.watch()
                    process.join(0.1)
                if process.is_alive():
                    process.kill()
                    process.join()
                    if Path(folder, "done").exists():
                        continue  # killed after its end
                    # Wait until the workers of the killed session have ended, because the lines that they still write
                    # belong to this session.
                    time.sleep(1.0)
                    stopped += 1
                    if files.newest("search_gen_state") is None:
                        continue  # nothing was saved: the next session is a new run
                    wrong = files.repair()
                    damaged.update(wrong)
                    if chance.random() < mixed:
                        older[files.mix(chance)] += 1
                    restarts.append((len(lines(folder)), done_with(files)))
                elif process.exitcode != 0:
                    failures.note(f"a session ended with {process.exitcode}")
                    break
        finally:
            ray.shutdown()
        if not Path(folder, "done").exists():
            failures.note("the run did not end")
        notes = lines(folder)
        for since, done in restarts:
            again = {x for what, x in notes[since:] if what == "begin"} & done
            if again:
                failures.note(f"evaluated again: {sorted(again)}")
        figures = compare(files, notes, failures)
    return {
        "stops": stopped,
        "older_search": older["searcher-state"],
        "older_table": older["experiment_state"],
        "damaged_when_killed": dict(damaged),
        **figures,
        **failures.figures(),
    }


if __name__ == "__main__":
    sys.exit(
        harness.main(
            __doc__, run, stops=10, samples=60, workers=4, seconds=0.2, period=0.5, longest=3.0, mixed=0.5, seed=0
        )
    )
