"""The utilisation of 16 workers in runs with 1,000 trials of 50 ms, for each kind of executor.

    python benchmarks/engines.py --engines threads,processes,loky,dask,ray

The function sleeps, so the number of workers may exceed the number of processors. All workers are started before the
measurement. Utilisation is the total time spent in the function, divided by the number of workers and by the time from
the first start to the last end. The rows named "engine" use the executor without belated: whenever a call has finished,
the program submits a new call. The idle time is the mean time that a worker waits between the end of one call and the
start of the next call. The CPU time is the time that the main process, without the workers, spends on each call. All
calls take the same time, so all workers finish nearly at once, and the last worker waits until all others have a new
call. The program alternates between the workloads and prints the medians over the rounds. The figure "load" is the
number of processes on the whole machine that were ready to run. The program prints JSON.
"""

import argparse
import json
import os
import queue
import statistics
import threading
import time
from contextlib import contextmanager
from functools import partial

import belated as bl

BOX = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


@contextmanager
def threads(n_workers):
    """Threads of this process."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(n_workers) as executor:
        yield executor


@contextmanager
def processes(n_workers):
    """The executor behind processes=True."""
    from belated.run.processes import WorkerProcesses

    with WorkerProcesses() as executor:
        yield executor


@contextmanager
def loky(n_workers):
    """Processes of loky."""
    from loky import ProcessPoolExecutor

    with ProcessPoolExecutor(n_workers) as executor:
        yield executor


@contextmanager
def dask(n_workers):
    """A cluster of Dask on this machine. Each worker is a process with one thread."""
    from distributed import Client, LocalCluster

    arguments = {"n_workers": n_workers, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with LocalCluster(**arguments, silence_logs=60) as cluster, Client(cluster) as client:
        yield client.get_executor(pure=False)


@contextmanager
def on_ray(n_workers):
    """A cluster of Ray on this machine."""
    import ray

    from belated.integrations.ray import executor

    ray.init(num_cpus=n_workers, include_dashboard=False, object_store_memory=80_000_000, log_to_driver=False)
    try:
        yield executor()
    finally:
        ray.shutdown()


# Each function takes the number of workers and returns a context manager that gives an executor.
ENGINES = {"threads": threads, "processes": processes, "loky": loky, "dask": dask, "ray": on_ray}


class Sleeps:
    """Sleep. The runs of belated evaluate this function, and the runs without belated submit it to the executor
    directly. Returns the start time and the end time of the call."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __call__(self, params):
        start = time.monotonic()
        time.sleep(self.seconds)
        value = -((params["x"] - 0.3) ** 2) - (params["y"] - 0.6) ** 2
        return {"value": value, "attrs": {"start": start, "end": time.monotonic()}}


def worker(seconds):
    """Return the name of this worker."""
    time.sleep(seconds)
    return os.getpid(), threading.get_ident()


def warm(executor, n_workers):
    """Wait until every worker is running a call, so that all workers have been started."""
    while len({future.result() for future in [executor.submit(worker, 0.2) for _ in range(n_workers)]}) < n_workers:
        pass


def alone(executor, n_workers, n_trials, seconds):
    """Run the calls without belated; return when each call started and ended."""
    finished, f, point = queue.Queue(), Sleeps(seconds), {"x": 0.5, "y": 0.5}
    calls, n_submitted = [], 0
    while len(calls) < n_trials:
        while n_submitted < n_trials and n_submitted - len(calls) < n_workers:
            executor.submit(f, point).add_done_callback(finished.put)
            n_submitted += 1
        attrs = finished.get().result()["attrs"]
        calls.append((attrs["start"], attrs["end"]))
    return calls


def of_run(optimizer, executor, n_workers, n_trials, seconds):
    """Make a run; return when each evaluation started and ended."""
    f = Sleeps(seconds)
    result = bl.maximize(f, optimizer=optimizer, n_trials=n_trials, n_workers=n_workers, executor=executor)
    return [(trial.attrs["start"], trial.attrs["end"]) for trial in result.trials]


def figures_of(run, n_workers):
    """Return the utilisation, the mean idle time per call in ms, and the CPU time of this process per call in ms."""
    cpu = time.process_time()
    calls = run()
    cpu = time.process_time() - cpu
    start, end = min(start for start, _ in calls), max(end for _, end in calls)
    busy, there = sum(end - start for start, end in calls), n_workers * (end - start)
    return busy / there, 1e3 * (there - busy) / len(calls), 1e3 * cpu / len(calls)


def measure(engine, optimizers, n_workers, n_trials, seconds, rounds):
    """Return the results of one engine."""
    found, loads = {name: [] for name in ["engine", *optimizers]}, []
    with ENGINES[engine](n_workers) as executor:
        warm(executor, n_workers)
        size = (executor, n_workers, n_trials, seconds)
        for seed in range(rounds):
            loads.append(round(os.getloadavg()[0], 1))
            found["engine"].append(figures_of(partial(alone, *size), n_workers))
            for name in optimizers:
                optimizer = getattr(bl, name)(BOX, seed=seed)
                found[name].append(figures_of(partial(of_run, optimizer, *size), n_workers))
    figures = {}
    for name, rows in found.items():
        share, idle, cpu = (statistics.median(column) for column in zip(*rows, strict=True))
        figures[name] = {"utilisation": round(share, 4), "idle_ms": round(idle, 2), "cpu_ms": round(cpu, 3)}
    return figures | {"load": loads}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", default=",".join(ENGINES), help="default: all")
    parser.add_argument("--optimizers", default="RandomSearch,BayesOpt", help="default: both")
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    for engine in given.engines.split(","):
        optimizers = given.optimizers.split(",")
        figures = measure(engine, optimizers, given.workers, given.trials, given.seconds, given.rounds)
        print(json.dumps({engine: figures}), flush=True)
