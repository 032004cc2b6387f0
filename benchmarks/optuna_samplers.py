"""Samplers of Optuna, and `BayesOpt` without Optuna, on the open tables. Eight processes share an Optuna study in
SQLite.

    python benchmarks/optuna_samplers.py run results.jsonl --seeds 0:10 [--processes 1]
    python benchmarks/optuna_samplers.py times results.jsonl
    python benchmarks/optuna_samplers.py speed
    python benchmarks/compare.py table results.jsonl --settings tables --against belated \
        --optimizers belated sampler-belated sampler-gp sampler-tpe

Runs follow the rules in tables.py. With eight processes, each of the eight workers is a process with a separate
connection, study object and sampler. The processes take turns in the order of simulated time, so a run does not depend
on the speed of the machine. With one process, the workers share one sampler and a study in memory, which is faster.
Ordered columns of a table are integer parameters for Optuna. The optimizer `belated` is `BayesOpt` with suggest and
observe, without Optuna. The figure "seconds" is the mean CPU time of a suggestion in the sampler's methods
`infer_relative_search_space`, `sample_relative` and `sample_independent`. This includes the reads and writes of the
study in these methods.
"""

import argparse
import os
import sys
import tempfile
import time
import traceback
import warnings
from multiprocessing import get_context
from pathlib import Path

if __name__ == "__main__":
    for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BELATED_NUM_THREADS"):
        os.environ.setdefault(_name, "1")

import compare  # noqa: E402
import numpy as np  # noqa: E402
import peers  # noqa: E402
import tables  # noqa: E402

import belated as bl  # noqa: E402
from belated.simulate import simple_regret  # noqa: E402

N_WORKERS = 8


def sampler(kind, seed, worker):
    """Return the sampler of one process of a run. Random samplers need a different seed in each process."""
    import optuna

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "sampler-belated":
            from belated.integrations.optuna import BelatedSampler

            return BelatedSampler(seed=seed, warn_independent_sampling=False)
        if kind == "sampler-gp":
            import torch

            torch.set_num_threads(1)
            return optuna.samplers.GPSampler(seed=N_WORKERS * seed + worker, warn_independent_sampling=False)
        return optuna.samplers.TPESampler(
            seed=N_WORKERS * seed + worker, multivariate=True, constant_liar=True, warn_independent_sampling=False
        )


class Timed:
    """A sampler that measures the CPU seconds spent in its methods."""

    def __init__(self, sampler):
        # CPU time is measured, because other programs may be running.
        self.sampler, self.seconds, self.clock = sampler, 0.0, time.process_time

    def __getattr__(self, name):
        found = getattr(self.sampler, name)
        if name not in ("infer_relative_search_space", "sample_relative", "sample_independent"):
            return found

        def call(*arguments):
            begin = self.clock()
            try:
                return found(*arguments)
            finally:
                self.seconds += self.clock() - begin

        return call


def serve(connection, worker):
    """Open a study in a process. Then call ask or tell whenever a request arrives through the pipe."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    trials = {}
    while True:
        call, *arguments = connection.recv()
        if call == "stop":
            return
        try:
            reply = None
            if call == "open":
                url, kind, seed, levels = arguments
                timed = Timed(sampler(kind, seed, worker))
                if url is None:
                    study = optuna.create_study(direction="maximize", sampler=timed)
                else:
                    study = optuna.load_study(study_name="run", storage=url, sampler=timed)
                trials = {}
            elif call == "ask":
                trial = study.ask()
                params = {name: choose(trial, name, choices) for name, choices in levels.items()}
                trials[trial.number] = trial
                reply, timed.seconds = (trial.number, params, timed.seconds), 0.0
            else:
                number, value = arguments
                study.tell(trials.pop(number), value, state=None if value is not None else optuna.trial.TrialState.FAIL)
            connection.send((True, reply))
        except Exception:
            connection.send((False, traceback.format_exc()))


def choose(trial, name, choices):
    """Return the parameter's value for Optuna: the choice of a category, or the level number of an ordered
    dimension."""
    return trial.suggest_int(name, 0, choices - 1) if isinstance(choices, int) else trial.suggest_categorical(
        name, choices
    )  # fmt: skip


class Processes:
    """The one or eight worker processes, which make one run after another."""

    def __init__(self, n):
        context = get_context("spawn")
        self.pipes, self.processes = [], []
        for worker in range(n):
            ours, theirs = context.Pipe()
            process = context.Process(target=serve, args=(theirs, worker), daemon=True)
            process.start()
            self.pipes.append(ours)
            self.processes.append(process)

    def __len__(self):
        return len(self.pipes)

    def call(self, worker, *call):
        pipe = self.pipes[worker % len(self)]
        pipe.send(call)
        succeeded, reply = pipe.recv()
        if not succeeded:
            raise RuntimeError(reply)
        return reply

    def stop(self):
        for pipe, process in zip(self.pipes, self.processes, strict=True):
            pipe.send(("stop",))
            process.join()


class SharedStudy:
    """A study of Optuna that processes share, with the interface that `compare` expects of an optimizer. A free process
    asks for a trial."""

    def __init__(self, processes, kind, space, seed, url):
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        if url is not None:
            optuna.create_study(study_name="run", storage=url, direction="maximize")
        self.space = bl.Space(space)
        levels = {
            name: list(each.choices) if isinstance(each, bl.Categorical) else each.n_levels
            for name, each in self.space.items()
        }
        self.processes, self.free, self.seconds = processes, list(range(N_WORKERS)), []
        for worker in range(len(processes)):
            processes.call(worker, "open", url, kind, seed, levels)

    def suggest(self):
        worker = self.free.pop(0)
        number, params, seconds = self.processes.call(worker, "ask")
        self.seconds.append(seconds)
        ordered = {name for name, each in self.space.items() if not isinstance(each, bl.Categorical)}
        point = {
            name: self.space[name].member(value) if name in ordered else value for name, value in params.items()
        }  # fmt: skip
        return (worker, number), point

    def observe(self, handle, value):
        worker, number = handle
        self.processes.call(worker, "tell", number, value)
        self.free.append(worker)

    def fail(self, handle):
        self.observe(handle, None)


def measure(processes, kind, name, seed):
    """Return the record of one run, in the format of `compare`."""
    if kind == "belated":
        return compare.measure(kind, name, seed)
    setting = tables.SETTINGS[name]
    table = setting.problem(seed)
    with tempfile.TemporaryDirectory() as folder:
        url = None if len(processes) == 1 else f"sqlite:///{folder}/optuna.db"
        study = SharedStudy(processes, kind, table.space, seed, url)
        history = compare.run_one(study, table, setting, seed)
    at = compare.readings(setting, history.arrivals)
    regret = setting.regret(table, simple_regret(history, table.optimum, at=at))
    score = compare.log10(regret, setting.smallest)
    return {
        "setting": name,
        "optimizer": kind,
        "seed": seed,
        "score": round(float(score.mean()), 6),
        "final": round(float(score[-1]), 6),
        "seconds": round(float(np.mean(study.seconds)), 6),
        "seconds_last": round(float(np.mean(study.seconds[-10:])), 6),
        "seconds_with_storage": round(float(history.seconds.mean()), 6),
        "regret": [float(f"{r:.6g}") for r in regret],
        "spec": f"{kind}, {len(processes)} processes",
        "versions": peers.versions("belated") | {"optuna": __import__("optuna").__version__},
    }


def run(arguments):
    """Make the runs that are missing in the file."""
    kinds = arguments.optimizers
    tasks = [(kind, name, seed) for seed in arguments.seeds for name in arguments.settings for kind in kinds]
    processes = Processes(arguments.processes)
    try:
        for kind, name, seed in tasks:
            if (name, kind, seed) not in {compare.key(record) for record in compare.read([arguments.out])}:
                begin = time.monotonic()
                compare.append(arguments.out, measure(processes, kind, name, seed))
                print(f"{kind}, {name}, seed {seed}: {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    finally:
        processes.stop()


def times(arguments):
    """Print three mean times for each optimizer, in seconds per suggestion: the time in the sampler over all
    suggestions and over the last ten suggestions, and the time including the storage."""
    records = compare.read([arguments.out])
    for kind in dict.fromkeys(record["optimizer"] for record in records):
        own = [record for record in records if record["optimizer"] == kind]
        means = [
            np.mean([record[column] for record in own]) if column in own[0] else float("nan")
            for column in ("seconds", "seconds_last", "seconds_with_storage")
        ]
        print(kind, f"{len(own)} runs", *(f"{mean:.4f}" for mean in means))


def speed(arguments):
    """Print the CPU seconds of a suggestion of each sampler in studies with 50 and 200 trials.

    Suggestions are made in this process, one at a time, with the study in SQLite. The figures are medians of ten
    suggestions. The program also prints the time of `BayesOpt` without Optuna, and the time of a sampler that is
    constructed anew for each suggestion, as in a process that has just started.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    table = tables.open_table("protein_structure")
    distributions = {name: peers.Optuna._distribution(optuna, each) for name, each in table.space.items()}
    found = {}
    for n in (50, 200):
        with tempfile.TemporaryDirectory() as folder:
            url = f"sqlite:///{folder}/optuna.db"
            filler = sampler("sampler-belated", 0, 0)
            study = optuna.create_study(study_name="run", storage=url, direction="maximize", sampler=filler)
            rng = np.random.default_rng(0)
            optimizer = bl.BayesOpt(table.space, seed=0)

            def step(study, optimizer=optimizer, rng=rng):
                asked, own = study.ask(distributions), time.process_time()
                ours = optimizer.suggest()
                own = time.process_time() - own
                study.tell(asked, table.replicate(_point(table, asked.params), rng.random()))
                optimizer.observe(ours, table.replicate(ours.params, rng.random()))
                return own

            for _ in range(n - 10):
                step(study)
            took = {"own loop": [step(study) for _ in range(10)]}
            for kind in ("sampler-belated", "sampler-tpe", "sampler-gp"):
                for fresh in (False, True) if kind == "sampler-belated" else (False,):
                    seconds = []
                    timed = Timed(sampler(kind, 0, 0))
                    study = optuna.load_study(study_name="run", storage=url, sampler=timed)
                    for _ in range(11):
                        if fresh:
                            timed.sampler = sampler(kind, 0, 0)
                        timed.seconds = 0.0
                        asked = study.ask(distributions)
                        seconds.append(timed.seconds)
                        study.tell(asked, state=optuna.trial.TrialState.PRUNED)
                    took[f"{kind}, new" if fresh else kind] = seconds[1:]
        found[n] = {kind: round(float(np.median(seconds)), 4) for kind, seconds in took.items()}
        print(n, found[n], flush=True)


def _point(table, params):
    """Convert the parameters of an Optuna trial to params of the table."""
    return {
        name: value if isinstance(table.space[name], bl.Categorical) else table.space[name].member(value)
        for name, value in params.items()
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["run", "times", "speed"])
    parser.add_argument("out", nargs="?", type=Path, default="results.jsonl", help="the file of all records")
    parser.add_argument("--seeds", type=compare.seed_range, default="0:10")
    parser.add_argument("--settings", nargs="+", default=list(tables.OPEN), choices=list(tables.OPEN))
    parser.add_argument("--processes", type=int, default=N_WORKERS, choices=[1, N_WORKERS])
    kinds = ["belated", "sampler-belated", "sampler-tpe", "sampler-gp"]
    parser.add_argument("--optimizers", nargs="+", default=kinds, choices=kinds)
    arguments = parser.parse_args()
    {"run": run, "times": times, "speed": speed}[arguments.command](arguments)


if __name__ == "__main__":
    main()
