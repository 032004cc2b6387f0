"""The throughput of many processes that share one study in PostgreSQL, compared with Optuna's RDBStorage on the same
server, in completed trials per second.

Each process repeatedly requests a trial and reports its value, without pauses. Trials are sampled at random, so the
storage takes most of the time. The program starts the server, which syncs each commit to the disk, and alternates
between rounds of belated and rounds of Optuna. Usage: python benchmarks/databases.py. The program needs optuna and
psycopg, and prints JSON.
"""

import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "campaigns"))

import harness
import server

import belated as bl


def belated_trials(url, trials, barrier, results):
    """Call belated's suggest and observe repeatedly, and report the seconds of each call."""
    study, times = bl.Study.load("study", url), []
    barrier.wait()
    for _ in range(trials):
        start = time.perf_counter()
        trial = study.suggest()
        times.append(time.perf_counter() - start)
        start = time.perf_counter()
        study.observe(trial, harness.objective(trial.params))
        times.append(time.perf_counter() - start)
    results.put(times)


def optuna_trials(url, trials, barrier, results):
    """Call Optuna's ask and tell repeatedly, and report the seconds of each call, including the sampling of
    parameters."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.load_study(study_name="study", storage=url, sampler=optuna.samplers.RandomSampler())
    times = []
    barrier.wait()
    for _ in range(trials):
        start = time.perf_counter()
        trial = study.ask()
        params = {name: trial.suggest_float(name, *bounds) for name, bounds in harness.BOX.items()}
        times.append(time.perf_counter() - start)
        start = time.perf_counter()
        study.tell(trial, harness.objective(params))
        times.append(time.perf_counter() - start)
    results.put(times)


def measure(target, url, processes, trials):
    """Return the trials per second, and the times of the calls. The measurement starts when all processes are ready."""
    context = harness.processes()
    barrier, results = context.Barrier(processes + 1), context.SimpleQueue()
    crowd = [context.Process(target=target, args=(url, trials, barrier, results)) for _ in range(processes)]
    for process in crowd:
        process.start()
    barrier.wait()
    start = time.monotonic()
    times = [time for _ in crowd for time in results.get()]
    seconds = time.monotonic() - start
    for process in crowd:
        process.join()
    return processes * trials / seconds, times


def run(processes=64, trials=20, rounds=3, limit=None):
    """Return all results."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    deadline, rates, times = harness.Deadline(limit), {"belated": [], "optuna": []}, {"belated": [], "optuna": []}
    with server.Server() as database:
        for _ in range(rounds):
            if deadline.over():
                break
            database.empty()
            harness.random_study(database.url())
            database.execute("DROP DATABASE IF EXISTS optuna WITH (FORCE)")
            database.execute("CREATE DATABASE optuna")
            storage = database.url("optuna").replace("postgresql://", "postgresql+psycopg://")
            optuna.create_study(study_name="study", storage=storage)
            for name, target, url in (
                ("belated", belated_trials, database.url()),
                ("optuna", optuna_trials, storage),
            ):
                rate, took = measure(target, url, processes, trials)
                rates[name].append(round(rate, 1))
                times[name] += took
    medians = {name: statistics.median(found) for name, found in rates.items() if found}
    return {
        "processes": processes,
        "trials_per_second": rates,
        "median": medians,
        "ratio": round(medians["belated"] / medians["optuna"], 2),
        "latency_ms": {name: harness.milliseconds(took) for name, took in times.items()},
    }


if __name__ == "__main__":
    sys.exit(harness.main(__doc__, run, processes=64, trials=20, rounds=3))
