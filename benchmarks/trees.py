"""Tree search compared with PyXAB, and with CMA-ES, random search and TPE for equal numbers of evaluations.

    python benchmarks/trees.py run --out trees.jsonl
    python benchmarks/trees.py table trees.jsonl
    python benchmarks/trees.py pyxab

The regret is the distance between the optimum of f and f at the best observed point without noise, or at the
recommended point with noise. The score is log10 of (regret / median regret of random points). Random points have a
score of about 0, and lower scores are better. Noise is normal, and its standard deviation is a twentieth of the median
regret of random points. With a delay, a result arrives after 100 further points have been suggested. The problem, the
noise and the seeds of a run are the same for every optimizer.
"""

import argparse
import json
import math
import os
import sys
import time
from collections import deque
from itertools import product
from statistics import median

if __name__ == "__main__":
    # Linear algebra uses one thread, which is fastest for such small matrices. At import, numpy reads this environment
    # variable.
    for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402
import tree_problems  # noqa: E402
from compare import append, print_row, read, seed_range  # noqa: E402
from tree_problems import GROUPS, Unavailable  # noqa: E402

import belated as bl  # noqa: E402

SMALLEST = 1e-8  # smaller scaled regrets (regret / median regret of random points) are treated as equal
READINGS = (2_000, 10_000, 100_000)
NOISE = 0.05  # in medians of random points
DELAY = 100
CONDITIONS = {"plain": (0.0, 0), "noise": (NOISE, 0), "delay": (0.0, DELAY), "noise and delay": (NOISE, DELAY)}
TPE_LIMIT = 2_000
#: The maximum of PyXAB's function Garland, which is at the cusp x = π/6. PyXAB declares a maximum of 1.
GARLAND_BEST = 4 * (math.pi / 6) * (1 - math.pi / 6)
OF_PYXAB = ("Himmelblau_Normalized", "Garland", "DifficultFunc")


class OfBelated:
    """An optimizer of belated."""

    def __init__(self, optimizer, problem, seed, **settings):
        space = {f"x{j}": (float(a), float(b)) for j, (a, b) in enumerate(zip(problem.low, problem.high, strict=True))}
        self.optimizer = optimizer(space, direction="minimize", seed=seed, **settings)

    def ask(self):
        trial = self.optimizer.suggest()
        return trial, np.array(list(trial.params.values()))

    def tell(self, trial, x, value):
        self.optimizer.observe(trial, value)

    def recommended(self):
        return np.array(list(self.optimizer.recommend().values()))


def tree(problem, seed, n, delay):
    return OfBelated(bl.TreeSearch, problem, seed)


def tree_poo(problem, seed, n, delay):
    return OfBelated(bl.TreeSearch, problem, seed, horizon=n)


class Random:
    """Uniformly random points, as drawn by `RandomSearch`; the recommendation is the best observed point."""

    def __init__(self, problem, seed, n, delay):
        self.problem, self.rng = problem, np.random.default_rng([seed, 3])
        self.best = math.inf, None

    def ask(self):
        return None, self.rng.uniform(self.problem.low, self.problem.high)

    def tell(self, handle, x, value):
        self.best = min(self.best, (value, x), key=lambda each: each[0])

    def recommended(self):
        return self.best[1]


class CMAES:
    """CMA-ES with restarts; each restart doubles the population size: IPOP, as in the documentation of `cmaes`.

    Points are scaled from the box to [0, 1]^d. With a delay, a population has at least as many points as the delay, and
    the next population starts when all results of the population have arrived. The recommendation is the mean of the
    search distribution in the restart whose last population has the best average.
    """

    def __init__(self, problem, seed, n, delay):
        try:
            from cmaes import CMA
        except ImportError:
            raise Unavailable("the package cmaes is not installed") from None
        self.new, self.problem, self.rng = CMA, problem, np.random.default_rng([seed, 1])
        self.best, self.solutions, self.n_asked = (math.inf, None), [], 0
        default = 4 + math.floor(3 * math.log(len(problem.low)))
        self.restart(max(delay, default))

    def restart(self, population):
        d = len(self.problem.low)
        bounds, seed = np.repeat([[0.0, 1.0]], d, axis=0), int(self.rng.integers(2**31))
        # By default, `cmaes` draws a point up to 100 times. In many dimensions this rarely helps, because most points
        # of the first populations are outside the box.
        fixed = {"bounds": bounds, "n_max_resampling": 10, "seed": seed}
        self.cma = self.new(self.rng.random(d), 0.2, population_size=population, **fixed)
        self.finished, self.last = self.best, (math.inf, None)

    def ask(self):
        if self.n_asked == self.cma.population_size:
            return None
        self.n_asked += 1
        u = self.cma.ask()
        return u, self.in_box(u)

    def tell(self, u, x, value):
        self.solutions.append((u, value))
        if len(self.solutions) < self.cma.population_size:
            return
        self.cma.tell(self.solutions)
        self.last = float(np.mean([value for _, value in self.solutions])), np.clip(self.cma.mean, 0, 1)
        self.best = min(self.finished, self.last, key=lambda each: each[0])
        self.solutions, self.n_asked = [], 0
        if self.cma.should_stop():
            self.restart(2 * self.cma.population_size)

    def recommended(self):
        return self.in_box(self.best[1])

    def in_box(self, u):
        return self.problem.low + u * (self.problem.high - self.problem.low)


class TPE:
    """Optuna's TPE with its default settings, for up to 2,000 evaluations. The recommendation is the best observed
    point."""

    def __init__(self, problem, seed, n, delay):
        if n > TPE_LIMIT:
            raise Unavailable(f"TPE is run for {TPE_LIMIT} evaluations at most")
        try:
            import optuna
        except ImportError:
            raise Unavailable("the package optuna is not installed") from None
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        ends = enumerate(zip(problem.low, problem.high, strict=True))
        self.space = {f"x{j}": optuna.distributions.FloatDistribution(low, high) for j, (low, high) in ends}
        self.study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))

    def ask(self):
        trial = self.study.ask(self.space)
        return trial, np.array([trial.params[name] for name in self.space])

    def tell(self, trial, x, value):
        self.study.tell(trial, value)

    def recommended(self):
        return np.array([self.study.best_params[name] for name in self.space])


OPTIMIZERS = {"tree": tree, "tree, POO": tree_poo, "CMA-ES": CMAES, "random": Random, "TPE": TPE}


def measure(function, d, condition, optimizer, n, seed):
    """Return the record of one run."""
    problem = tree_problems.make(function, d, seed)
    noise, delay = CONDITIONS[condition]
    errors = noise * problem.typical * np.random.default_rng([seed, 2]).standard_normal(n)
    start = time.process_time()
    peer = OPTIMIZERS[optimizer](problem, seed, n, delay)
    waiting, best, score = deque(), math.inf, {}

    def tell():
        nonlocal best
        handle, x, value, error = waiting.popleft()
        best = min(best, value)
        peer.tell(handle, x, value + error)

    for k in range(n):
        while (asked := peer.ask()) is None:
            tell()
        handle, x = asked
        waiting.append((handle, x, problem.f(x), errors[k]))
        if len(waiting) > delay:
            tell()
        if k + 1 in READINGS or k + 1 == n:
            regret = problem.f(peer.recommended()) if noise else best
            score[k + 1] = round(math.log10(max(regret / problem.typical, SMALLEST)), 4)
    seconds = time.process_time() - start
    named = {"function": function, "d": d, "condition": condition, "optimizer": optimizer, "n": n, "seed": seed}
    return named | {"score": score, "us": round(1e6 * seconds / n, 1)}


def key(record):
    return tuple(record[name] for name in ("function", "d", "condition", "optimizer", "n", "seed"))


def run(arguments):
    """Make the runs that are not in the file yet. All runs with one seed are made before the runs with the next seed.
    Return the number of failed runs."""
    done, failed = {key(record) for record in read([arguments.out])}, 0
    for seed, condition, name, d, optimizer in product(
        arguments.seeds, arguments.conditions, arguments.functions, arguments.d, arguments.optimizers
    ):
        task = name, d, condition, optimizer, arguments.evaluations, seed
        if task in done:
            continue
        try:
            append(arguments.out, measure(*task))
        except Unavailable as error:
            print(f"{task}: {error}", file=sys.stderr, flush=True)
            failed += 1
    return failed


def table(arguments):
    """Return a Markdown table of median scores by group of functions and optimizer, or JSON with every function."""
    records = read(arguments.results)
    scores = {}
    for record in records:
        for n, score in record["score"].items():
            # A run of POO is valid only for the horizon for which it was made.
            if record["optimizer"] != "tree, POO" or int(n) == record["n"]:
                where = record["condition"], int(n), record["function"], record["d"], record["optimizer"]
                scores.setdefault(where, {})[record["seed"]] = score
    optimizers = [each for each in OPTIMIZERS if any(where[-1] == each for where in scores)]
    groups = {name: [name] for name in tree_problems.FUNCTIONS} if arguments.each else GROUPS
    rows = product(CONDITIONS, READINGS, groups, sorted({where[3] for where in scores}))
    if arguments.json:
        names = ("condition", "n", "function", "d", "optimizer")
        print(json.dumps([dict(zip(names, at, strict=True)) | {"scores": by} for at, by in scores.items()], indent=1))
        return 0
    print_row("condition", "evaluations", "functions", "d", *optimizers)
    print_row(*["---"] * (4 + len(optimizers)))
    for condition, n, group, d in rows:
        at = [[scores.get((condition, n, f, d, o)) for f in groups[group]] for o in optimizers]
        medians = [[median(by.values()) for by in each if by] for each in at]
        if sum(len(each) == len(groups[group]) for each in medians) > 1:
            cells = (f"{median(each):.2f}" if len(each) == len(groups[group]) else "–" for each in medians)
            print_row(condition, f"{n:,}", group, d, *cells)
    for optimizer in optimizers:
        each = [record["us"] for record in records if record["optimizer"] == optimizer]
        print(f"\n{optimizer}: {median(each):.0f} µs of processor time an evaluation (median of {len(each)} runs)")
    return 0


def pyxab(arguments):
    """Print JSON lines with the processor time and regret of PyXAB's T_HOO and HCT and of tree search on PyXAB's
    functions."""
    try:
        from PyXAB.algos.HCT import HCT
        from PyXAB.algos.HOO import T_HOO
        from PyXAB.partition.BinaryPartition import BinaryPartition
        from PyXAB.synthetic_obj.DifficultFunc import DifficultFunc
        from PyXAB.synthetic_obj.Garland import Garland
        from PyXAB.synthetic_obj.Himmelblau import Himmelblau_Normalized
    except ImportError:
        print("the package PyXAB is not installed", file=sys.stderr)
        return 0
    n = arguments.evaluations
    partition = {"partition": BinaryPartition}

    def theirs(algorithm, objective, domain, seed):
        np.random.seed(seed)  # BinaryPartition draws from this generator
        algorithm, best = algorithm(domain), -math.inf
        for t in range(1, n + 1):
            value = objective.f(algorithm.pull(t))
            best = max(best, value)
            algorithm.receive_reward(t, value)
        return best, objective.f(algorithm.get_last_point())

    def ours(settings, objective, domain, seed):
        space = {f"x{j}": (float(low), float(high)) for j, (low, high) in enumerate(domain)}
        optimizer = bl.TreeSearch(space, seed=seed, **settings)
        for _ in range(n):
            trial = optimizer.suggest()
            trial.observe(float(objective.f(list(trial.params.values()))))
        return optimizer.best_value_, float(objective.f(list(optimizer.recommend().values())))

    contenders = {
        "TreeSearch": lambda *at: ours({}, *at),
        "TreeSearch, nu and rho of PyXAB": lambda *at: ours(
            {"nu": 1.0, "rho": 0.5, "bound": bl.papers.DUCB1(1.0)}, *at
        ),
        "PyXAB HCT": lambda *at: theirs(lambda domain: HCT(domain=domain, **partition), *at),
        "PyXAB T_HOO": lambda *at: theirs(lambda domain: T_HOO(rounds=n, domain=domain, **partition), *at),
    }
    objectives = {
        "Himmelblau_Normalized": (Himmelblau_Normalized(), [[-5, 5], [-5, 5]], 0.0),
        "Garland": (Garland(), [[0, 1]], GARLAND_BEST),
        "DifficultFunc": (DifficultFunc(), [[0, 1]], 0.0),
    }
    for name, (label, contender) in product(arguments.functions, contenders.items()):
        objective, domain, optimum = objectives[name]
        seconds, regrets, last = [], [], []
        for seed in arguments.seeds:
            start = time.process_time()
            best, recommended = contender(objective, domain, seed)
            seconds.append(time.process_time() - start)
            regrets.append(optimum - best)
            last.append(optimum - recommended)
        result = {"function": name, "optimizer": label, "evaluations": n, "runs": len(seconds)}
        result |= {"seconds": round(median(seconds), 3), "regret": median(regrets), "recommended": median(last)}
        print(json.dumps(result), flush=True)
    return 0


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    runner = commands.add_parser("run", help="make the missing runs, and append a JSON line for each")
    runner.set_defaults(command=run)
    runner.add_argument("--out", default="trees.jsonl")
    runner.add_argument("--seeds", type=seed_range, default="0:5")
    runner.add_argument("--evaluations", type=int, default=10_000, help="also scored after 2000, 10000 and 100000")
    runner.add_argument("--optimizers", nargs="+", choices=OPTIMIZERS, default=["tree", "CMA-ES", "random"])
    runner.add_argument("--conditions", nargs="+", choices=CONDITIONS, default=list(CONDITIONS))
    runner.add_argument("--functions", nargs="+", choices=tree_problems.FUNCTIONS, default=[*tree_problems.FUNCTIONS])
    runner.add_argument("--d", type=int, nargs="+", choices=[2, 6, 20], default=[2, 6, 20])
    viewer = commands.add_parser("table", help="medians as markdown")
    viewer.set_defaults(command=table)
    viewer.add_argument("results", nargs="+", help="files written by run")
    viewer.add_argument("--each", action="store_true", help="show each function separately")
    viewer.add_argument("--json", action="store_true", help="all scores, by function")
    beside = commands.add_parser("pyxab", help="time and regret compared with PyXAB")
    beside.set_defaults(command=pyxab)
    beside.add_argument("--evaluations", type=int, default=10_000)
    beside.add_argument("--functions", nargs="+", choices=OF_PYXAB, default=list(OF_PYXAB))
    beside.add_argument("--seeds", type=seed_range, default="0:3")
    arguments = parser.parse_args(argv)
    return arguments.command(arguments)


if __name__ == "__main__":
    sys.exit(main())
