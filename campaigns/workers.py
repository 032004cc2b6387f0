"""Check that a run does not lose or repeat trials if its workers are killed: python campaigns/workers.py --engine dask.

During a run with learning curves, the program kills random workers with SIGKILL, mostly in the middle of an evaluation,
and sometimes while other workers are still being replaced. Every evaluation writes its start, every accepted report of
a step, and its end to a file. At the end, every trial must have been observed or stopped exactly once, and the events
must contain every accepted report exactly once. An evaluation may be started a second time only if its worker was
killed; the curve of its trial is then the curve of the last start. After the last kill, all workers must be evaluating
at the same time. The program prints JSON.
"""

import json
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import harness

import belated as bl

# The maximum number of seconds for which an evaluation waits until all workers are evaluating. The time is limited,
# because an engine may have put an evaluation into the queue of its worker while the other workers were dead.
MAX_WAIT = 1.0
# After the last kill, the run continues for this number of evaluations per worker.
N_LAST = 20
# The number of steps of each curve, and the rule that stops trials.
STEPS = 9
STOPPING = bl.MedianStopping(min_step=4)


@contextmanager
def processes(n_workers):
    """The run's own processes."""
    yield {"processes": True}


@contextmanager
def dask(n_workers):
    """A cluster of Dask on this machine. Each worker is a process with one thread. Dask replaces dead workers."""
    import dask
    from distributed import Client, LocalCluster

    # By default, Dask stops waiting for a new worker after 15 s. On a busy machine a start may take longer.
    dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes"})
    arguments = {"n_workers": n_workers, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with LocalCluster(**arguments, silence_logs=60) as cluster, Client(cluster) as client:
        yield {"executor": client.get_executor(pure=False)}


@contextmanager
def on_ray(n_workers):
    """A cluster of Ray on this machine, which replaces its workers itself."""
    import ray

    from belated.integrations.ray import executor

    # Workers import this program under the module name that the program has in this process.
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    ray.init(
        num_cpus=n_workers,
        include_dashboard=False,
        object_store_memory=80_000_000,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": path}},
    )
    try:
        yield {"executor": executor()}
    finally:
        ray.shutdown()


# Each function takes the number of workers and returns a context manager that gives the arguments of the run.
ENGINES = {"processes": processes, "dask": dask, "ray": on_ray}


class Evaluation:
    """Report the steps of a curve within about `seconds`; return the value of the objective. After the last kill, wait
    until all workers are evaluating.

    Before the last step, each start of an evaluation reports other values.
    """

    def __init__(self, folder, n_workers, seconds):
        self.folder, self.n_workers, self.seconds = str(folder), n_workers, seconds

    def __call__(self, params, trial):
        facts, value = {"number": trial.number, "pid": os.getpid()}, harness.objective(params)
        note(self.folder, what="begin", **facts)
        seconds = random.uniform(0.5, 1.5) * self.seconds
        for step in range(1, STEPS + 1):
            time.sleep(seconds / STEPS)
            reported = value - (random.random() if step < STEPS else 0.0)
            trial.report(reported, step)
            note(self.folder, what="reported", step=step, value=reported, **facts)
            if trial.should_stop():
                break
        if has(self.folder, "last kill"):
            self.wait_for_all()
        note(self.folder, what="end", **facts)
        return value

    def wait_for_all(self):
        """Wait until all workers are evaluating at the same time. When a worker finds that all workers are evaluating,
        it writes a file that informs the other workers."""
        end, reader = time.monotonic() + MAX_WAIT, Reader(self.folder)
        while not has(self.folder, "all at work") and time.monotonic() < end:
            if len(reader.update().at_work) == self.n_workers:
                note(self.folder, what="all at work", time=time.time())
                tell(self.folder, "all at work")
            time.sleep(0.05)


def note(folder, **what):
    """Write a line by one system call, so that the line is complete even if the process is killed immediately
    afterwards."""
    with open(Path(folder) / "notes", "ab", buffering=0) as file:
        file.write((json.dumps(what) + "\n").encode())


def notes(folder):
    """Return the lines that evaluations have written so far; the file may not exist yet."""
    path = Path(folder) / "notes"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def tell(folder, fact):
    (Path(folder) / fact).touch()


def has(folder, fact):
    return (Path(folder) / fact).exists()


class Reader:
    """Reads the trial that each worker is evaluating, and the number of finished evaluations, from the evaluations'
    file."""

    def __init__(self, folder):
        self.path, self.position = Path(folder) / "notes", 0
        self.at_work, self.n_ended = {}, 0

    def update(self):
        """Read the new notes."""
        if self.path.exists():
            with open(self.path, "rb") as file:
                file.seek(self.position)
                added = file.read()
            # The last line of the file may still be incomplete.
            added = added[: added.rfind(b"\n") + 1]
            self.position += len(added)
            for line in map(json.loads, added.splitlines()):
                if line["what"] == "begin":
                    self.at_work[line["pid"]] = line["number"]
                elif line["what"] in ("end", "killed"):
                    self.at_work.pop(line["pid"], None)
                    self.n_ended += line["what"] == "end"
        return self


def kill(folder, kills, n_workers, every, seconds, seed, is_over):
    """Kill random workers. The i-th kill happens when i x `every` evaluations have ended and enough workers are
    evaluating, after a random pause of up to `seconds`."""
    chance, reader = random.Random(seed), Reader(folder)
    for i in range(kills):
        least, pause = chance.randint(1, n_workers), chance.uniform(0.0, seconds)
        while reader.update().n_ended < i * every or len(reader.at_work) < least:
            if is_over.wait(0.01):
                return
        is_over.wait(pause)
        while not reader.update().at_work:
            if is_over.wait(0.01):
                return
        pid = chance.choice(sorted(reader.at_work))
        os.kill(pid, signal.SIGKILL)
        while is_running(pid):
            time.sleep(0.001)
        # The process is dead, so its lines in the file show whether its evaluation had ended.
        note(folder, what="killed", pid=pid, time=time.time())
    tell(folder, "last kill")


def is_running(pid):
    """Return whether a process runs. A process that has ended, but has not been waited for, counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def compare(folder, study, n_trials, failures):
    """Check that the evaluations' file and the study agree; return how many evaluations were started again."""
    begun, had, reasons, unfinished = Counter(), {}, Counter(), Counter()
    # The values that the last start of each evaluation reported.
    curves = {}
    for line in notes(folder):
        if line["what"] == "begin":
            begun[line["number"]] += 1
            had.setdefault(line["pid"], []).append((line["number"], False))
            curves[line["number"]] = []
        elif line["what"] == "reported":
            curves[line["number"]].append(line["value"])
        elif line["what"] == "end":
            had[line["pid"]][-1] = (line["number"], True)
        elif line["what"] == "killed":
            reasons.update({number for number, _ in had[line["pid"]]})
            number, ended = had[line["pid"]][-1]
            unfinished[number] += not ended
    if set(begun) != set(range(n_trials)) or study.n_trials != n_trials:
        failures.note(f"{study.n_trials} trials, {len(begun)} evaluated, instead of {n_trials}")
    for trial in study.trials:
        number, stopped = trial.number, trial.state == "stopped"
        again = begun[number] - 1
        # A worker may be killed when its trial has been stopped, but its evaluation has not ended. The evaluation is
        # then not started again.
        if not unfinished[number] - stopped <= again <= reasons[number]:
            failures.note(
                f"trial {number} began {again + 1} times, and {unfinished[number]} of its workers were killed"
            )
        if (trial.state, trial.value) not in (("observed", harness.objective(trial.params)), ("stopped", None)):
            failures.note(f"trial {number} is {trial.state} with {trial.value}")
        compare_curve(trial, curves.get(number, []), again < unfinished[number], failures)
    return sum(begun.values()) - len(begun)


def compare_curve(trial, values, was_killed, failures):
    """Check that the curve of a trial has the values that the last start of its evaluation reported."""
    curve = list(trial.curve.values())
    # If the worker of the last start was killed, its last report may have been accepted, but not noted.
    if curve[: len(values)] != values or len(curve) > len(values) + was_killed:
        failures.note(f"trial {trial.number} has the curve {curve}, and its last start reported {values}")
    if list(trial.curve) != list(range(1, len(curve) + 1)) or (len(curve) == STEPS) != (trial.state == "observed"):
        failures.note(f"trial {trial.number} is {trial.state} with the steps {list(trial.curve)}")


def compare_reports(folder, events, failures):
    """Check that the events contain every accepted report exactly once; return the number of accepted reports, and how
    many workers were killed in the middle of a curve."""
    stored, steps, accepted = Counter(), Counter(), Counter()
    for event in (event["what"]["Reported"] for event in events if "Reported" in event["what"]):
        stored[event["trial"], event["step"], event["value"]] += 1
        steps[event["trial"], event["step"], event["attempt"]] += 1
    # The last note of each process, and the number of kills.
    last, kills, in_curves = {}, 0, 0
    for line in notes(folder):
        if line["what"] == "reported":
            accepted[line["number"], line["step"], line["value"]] += 1
        elif line["what"] == "killed":
            kills += 1
            in_curves += last[line["pid"]] == "reported"
        last[line.get("pid")] = line["what"]
    if accepted - stored:
        failures.note(f"lost: {accepted - stored}")
    if any(n > 1 for n in steps.values()):
        failures.note("a step is reported twice in an attempt")
    # A killed worker may have been unable to note its last report.
    if (stored - accepted).total() > kills:
        failures.note(f"{(stored - accepted).total()} reports were not made")
    return accepted.total(), in_curves


def run(kills=100, workers=4, every=30, seconds=0.1, seed=0, engine="processes", limit=None):
    """Return all results."""
    failures, is_over = harness.Failures(), threading.Event()
    n_trials = kills * every + N_LAST * workers
    with harness.folder() as folder, ENGINES[engine](workers) as arguments:
        path = Path(folder) / "store.db"
        search = bl.RandomSearch(harness.BOX, seed=seed, curve=bl.Curve(STEPS), stopping=STOPPING)
        study = bl.Study("study", store=harness.url(path), optimizer=search)
        killer = threading.Thread(target=kill, args=(folder, kills, workers, every, seconds, seed, is_over))
        killer.start()
        f = Evaluation(folder, workers, seconds)
        try:
            bl.maximize(
                f, optimizer=study, n_trials=n_trials, n_workers=workers, retries=kills, timeout=limit, **arguments
            )
        except bl.BelatedError as error:
            failures.note(error)
        finally:
            is_over.set()
            killer.join()
        killed = [line["time"] for line in notes(folder) if line["what"] == "killed"]
        at = [line["time"] for line in notes(folder) if line["what"] == "all at work"]
        again = compare(folder, study, n_trials, failures)
        bodies = [json.loads(body) for _, _, _, body in harness.rows(path)]
        reports, in_curves = compare_reports(folder, bodies, failures)
        events = Counter(harness.kind_of(body) for body in bodies)
        if len(killed) != kills:
            failures.note(f"{len(killed)} of {kills} kills by the end of the run")
        if events["New"] + events["Stopped"] != n_trials:
            failures.note(f"{events['New']} observations and {events['Stopped']} stops of {n_trials} trials")
        if not at:
            failures.note("not all workers were evaluating at the same time after the last kill")
    return {
        "engine": engine,
        "kills": len(killed),
        "workers": workers,
        "trials": n_trials,
        "begun_again": again,
        "killed_in_curves": in_curves,
        "accepted_reports": reports,
        "events": dict(events),
        "seconds_until_all_at_work": round(at[0] - killed[-1], 2) if at and killed else None,
        **failures.figures(),
    }


if __name__ == "__main__":
    sys.exit(harness.main(__doc__, run, kills=100, workers=4, every=30, seconds=0.1, seed=0, engine="processes"))
