"""Functions that all fault programs use: making stores, reading the event table without belated, printing JSON."""

import argparse
import contextlib
import io
import json
import multiprocessing
import os
import platform
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path

import server

import belated as bl
from belated import cli

BOX = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
MEMORY = Path("/dev/shm")  # a file system in memory, where fsync takes almost no time


def processes():
    """Return the multiprocessing context of workers: processes forked from a server that has imported belated and does
    not run threads."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["belated", "belated.cli", "psycopg"])
    return context


def folder(memory=False):
    """Return a context manager for a temporary folder, on a file system in memory if this is requested and
    available."""
    where = MEMORY if memory and MEMORY.is_dir() and os.access(MEMORY, os.W_OK) else None
    return tempfile.TemporaryDirectory(prefix="belated-faults-", dir=where)


@contextlib.contextmanager
def place(store, folder):
    """A context manager that gives the location of a program's store: a file in the folder, or a database of a new
    server."""
    if store == "sqlite":
        yield Path(folder) / "store.db"
    elif store == "postgresql":
        with server.Server() as started:
            yield started.url()
    else:
        raise SystemExit(f"--store {store}: write sqlite or postgresql")


def is_url(path):
    """Return whether the location of a store is the URL of a database."""
    return str(path).startswith("postgresql://")


def url(path):
    """Return the URL of a store, given a file or the URL of a database."""
    return path if is_url(path) else f"sqlite:///{Path(path).absolute()}"


CURVE = bl.Curve(10**6)


def random_study(path, name="study", seed=0, **arguments):
    """Return a new study of random search in the unit square."""
    return bl.Study(name, store=url(path), optimizer=bl.RandomSearch(BOX, seed=seed, curve=CURVE), **arguments)


def tree_study(path, name="study", seed=0, **arguments):
    """Return a new study of tree search in the unit square."""
    return bl.Study(name, store=url(path), optimizer=bl.TreeSearch(BOX, seed=seed), **arguments)


def bayes_study(path, name="study", seed=0, time=None, **settings):
    """Return a new study of Bayesian optimisation in the unit square."""
    return bl.Study(name, store=url(path), optimizer=bl.BayesOpt(BOX, seed=seed, curve=CURVE, **settings), time=time)


def close(*studies):
    """Close the studies' connections. When the last connection is closed, SQLite removes the additional files next to
    the database."""
    for study in studies:
        study._store._disconnect()


def objective(params):
    """Return the value of a smooth function at the params. The programs observe this value."""
    return -((params["x"] - 0.3) ** 2) - (params["y"] - 0.6) ** 2


def state(study):
    """Return the state of a study's trials as plain data that can be compared exactly."""
    return [(trial.number, trial.params, trial.state, trial.value) for trial in study.trials]


def files(path):
    """Return the files of a store: the database and SQLite's additional files next to it."""
    path = Path(path)
    return [path, *(path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal"))]


def copy_store(source, target):
    """Copy a store with all its files, and replace the files of the target."""
    for old, new in zip(files(source), files(target), strict=True):
        new.unlink(missing_ok=True)
        if old.exists():
            new.write_bytes(old.read_bytes())


def kind_of(event):
    """Return the kind of an event. The kind of a report is what happened to its first result."""
    [(kind, fields)] = event["what"].items()
    if kind == "Resulted":
        [_, kind] = fields["results"][0]
    return kind if isinstance(kind, str) else next(iter(kind))


def rows(path):
    """Return (study's name, sequence number, the caller's key, body) of all events, in order."""
    prefix = "belated." if is_url(path) else ""
    found = fetch(
        path,
        f"SELECT s.name, e.seq, e.key, e.body FROM {prefix}events e JOIN {prefix}studies s ON s.id = e.study "
        "ORDER BY s.name, e.seq",
    )
    # A key is stored as "call:i:key", where i is the number of the trial within the call.
    return [(name, seq, key and key.split(":", 2)[2], body) for name, seq, key, body in found]


def fetch(path, statement):
    """Execute an SQL statement without belated and return its rows."""
    if is_url(path):
        import psycopg

        with psycopg.connect(path) as connection:
            return connection.execute(statement).fetchall()
    with closing(sqlite3.connect(path, timeout=60)) as connection:
        return connection.execute(statement).fetchall()


def audit(path):
    """Return the errors of a store: the errors found by SQLite, gaps in the sequence, and the errors found by `belated
    study check`."""
    problems = []
    if not is_url(path):
        verdict = [row[0] for row in fetch(path, "PRAGMA integrity_check")]
        if verdict != ["ok"]:
            problems.append(f"integrity_check: {verdict[:3]}")
    sequences = {}
    for name, seq, _, _ in rows(path):
        sequences.setdefault(name, []).append(seq)
    for name, sequence in sequences.items():
        if sequence != list(range(len(sequence))):
            problems.append(f"the sequence of {name} has gaps or doubles")
    code, out, err = command("check", url(path))
    if code != 0:
        problems.append(f"study check: {code} {out[-200:]} {err[-500:]}")
    return problems


def kill_workers(work, arguments, kills, chance, longest, failures, deadline):
    """Run workers, kill each of them after a random time, and start another one in its place. At the end, kill all.

    Parameters
    ----------
    work : callable
        What a worker does.
    arguments : list of tuples
        The arguments of each worker; the second is the name of its study. A random seed is added to them.
    kills : int
        Stop after this number of workers has ended. The workers that still run are then killed and counted, too.
    chance : random.Random
    longest : float
        A worker is killed after a random time of 0.05 s to this number of seconds plus 0.05 s.
    failures : Failures
        Workers that end by themselves are noted here.
    deadline : Deadline

    Returns
    -------
    int
        The number of workers that have ended.
    """
    context, killed = processes(), 0
    alive, ends = [None] * len(arguments), [0.0] * len(arguments)
    while killed < kills and not deadline.over():
        for slot, process in enumerate(alive):
            if process is None:
                alive[slot] = context.Process(target=work, args=(*arguments[slot], chance.randrange(2**32)))
                alive[slot].start()
                ends[slot] = time.monotonic() + chance.uniform(0.0, longest) + 0.05
            elif not process.is_alive():
                failures.note(f"a worker of {arguments[slot][1]} ended by itself with {process.exitcode}")
                alive[slot] = None
                killed += 1
            elif time.monotonic() > ends[slot] and killed < kills:
                process.kill()
                process.join()
                process.close()
                alive[slot] = None
                killed += 1
        time.sleep(0.002)
    for process in filter(None, alive):
        process.kill()
        process.join()
        killed += 1
    return killed


def command(*arguments):
    """Run `belated study …` in this process; return its exit code, its output and its error output."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = cli.main(["study", *map(str, arguments)])
        except SystemExit as end:  # argparse raises this exception for an invalid command line
            code = end.code
    return code, out.getvalue(), err.getvalue()


def percentile(values, share):
    """Return a quantile: the smallest value that is greater than or equal to the given share of all values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]


def milliseconds(seconds):
    """Return the median, the 99th percentile and the maximum of times, converted from seconds to milliseconds."""
    named = {"p50": percentile(seconds, 0.5), "p99": percentile(seconds, 0.99), "max": max(seconds)}
    return {name: round(1e3 * value, 3) for name, value in named.items()}


class Failures(list):
    """The failures of a program. The calls that took too long are counted separately, because the machine may have been
    busy. The output contains only the first few failures."""

    def __init__(self):
        super().__init__()
        self.slow = []

    def note(self, what):
        what = str(what)
        self.append(what if len(what) < 600 else f"{what[:150]} … {what[-400:]}")

    def figures(self):
        return {"failures": len(self), "first_failures": self[:5], "too_slow": self.slow}


class Deadline:
    """The time limit of a long run, in seconds. A run that stops at the limit reports its progress."""

    def __init__(self, seconds=None):
        self.end = None if seconds is None else time.monotonic() + seconds

    def over(self):
        return self.end is not None and time.monotonic() > self.end


def main(document, run, **options):
    """Run a fault program with the arguments of the command line and print its results. Each option of the program is a
    number, passed as --name.

    The exit code is 1 if the results contain failures or calls that took too long.
    """
    parser = argparse.ArgumentParser(description=document, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in options.items():
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, type=type(default), default=default, help=f"default {default}")
    parser.add_argument("--limit", type=float, metavar="SECONDS", help="stop after this time and report the progress")
    started = time.monotonic()
    result = run(**vars(parser.parse_args()))
    result["seconds"] = round(time.monotonic() - started, 1)
    result["machine"] = f"{os.cpu_count()} processors, {platform.system()}, SQLite {sqlite3.sqlite_version}"
    print(json.dumps(result, indent=2))
    return 1 if failures_in(result, times=True) else 0


def failures_in(figures, times=False):
    """Return the number of failures in nested results. With `times=True`, also count calls that took too long."""
    if not isinstance(figures, dict):
        return 0
    here = figures.get("failures", 0) + (len(figures.get("too_slow", ())) if times else 0)
    return here + sum(failures_in(value, times) for value in figures.values())
