"""Compare the search for the best mixture with BoTorch's under an equality constraint.

Twelve weeks of five suggestions together; the results of a week arrive two weeks later. The functions are
interpolations of two tables of measured mixtures, and three synthetic functions of 3, 6 and 12 parts. The score of a
run is the mean over weeks of log10 of the regret of the best point so far. A regret is divided by the difference
between the mean of uniform points and the optimum.

    python benchmarks/mixtures.py run --optimizers ours random botorch --seeds 0:20 --tables ../shared/data/lab
    python benchmarks/mixtures.py show results.jsonl
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np

WEEKS, BATCH, LATE = 12, 5, 2
SMALLEST = 1e-4
TABLES = {"oer_plate": ("oer_plate_3496.csv", "overpotential"), "photo_pce10": ("photo_pce10.csv", "degradation")}


class Function:
    """A function of mixtures to minimise, with its optimum and the mean of uniform points."""

    def __init__(self, d, f, points=None):
        self.d, self.f = d, f
        rng = np.random.default_rng(12345)
        uniform = rng.dirichlet(np.ones(d), 20000)
        values = f(uniform)
        self.mean = values.mean()
        starts = np.vstack([uniform, *([] if points is None else [points])])
        values = f(starts)
        best = starts[np.argsort(values)[:20]]
        for scale in (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001) * 3:
            steps = best[:, None, :] + scale * rng.standard_normal((len(best), 500, d))
            steps = np.clip(steps, 0, None)
            steps = np.concatenate([best[:, None, :], steps / steps.sum(-1, keepdims=True)], axis=1)
            values = f(steps.reshape(-1, d)).reshape(len(best), -1)
            best = steps[np.arange(len(best)), values.argmin(1)]
        self.optimum = f(best).min()

    def regret(self, points):
        """The regret of the best of the points, between 1e-4 and 1 for the mean of uniform points."""
        return max((self.f(points).min() - self.optimum) / (self.mean - self.optimum), SMALLEST)


def synthetic(d):
    """Two wells of a quadratic form, one of them on a face, and a wave."""
    rng = np.random.default_rng(d)
    inside, face = rng.dirichlet(np.ones(d)), rng.dirichlet(np.ones(d))
    face[rng.permutation(d)[: d // 2]] = 0
    face /= face.sum()
    weights = rng.uniform(0.5, 2, d)

    def f(x):
        a, b = (((x - centre) ** 2 * weights).sum(-1) for centre in (inside, face))
        return -np.exp(-8 * a) - 1.3 * np.exp(-12 * b) + 0.1 * np.cos(6 * x @ weights)

    return Function(d, f)


def interpolated(folder, name):
    """The inverse-distance interpolation of a table on its nearest rows."""
    from scipy.spatial import cKDTree

    file, outcome = TABLES[name]
    with (Path(folder) / file).open() as lines:
        header = lines.readline().strip().split(",")
    table = np.loadtxt(Path(folder) / file, delimiter=",", skiprows=1)
    target = header.index(outcome)
    names = [i for i, column in enumerate(header) if column.startswith("mat_") or column.endswith("_load")]
    points, values = table[:, names], table[:, target]
    tree = cKDTree(points)

    def f(x):
        distances, rows = tree.query(np.atleast_2d(x), k=8)
        # The weights fall to 0 at the last neighbour, so that f is continuous.
        weights = (1 - distances / (distances[:, -1:] + 1e-9)) ** 2 / (distances + 1e-3) ** 2 + 1e-12
        return (weights * values[rows]).sum(1) / weights.sum(1)

    return Function(len(names), f, points)


def functions(folder):
    made = {f"synthetic_{d}": lambda d=d: synthetic(d) for d in (3, 6, 12)}
    return made | {name: lambda name=name: interpolated(folder, name) for name in TABLES}


class Ours:
    def __init__(self, d, seed, kind="BayesOpt", step=None):
        import belated as bl

        self.names = [f"x{i}" for i in range(d)]
        space = dict.fromkeys(self.names, (0.0, 1.0))
        constraints = [bl.Mixture(self.names, step=step)]
        self.optimizer = getattr(bl, kind)(space, constraints=constraints, direction="minimize", seed=seed)

    def suggest(self, n):
        self.trials = self.optimizer.suggest(n=n)
        return np.array([[trial.params[name] for name in self.names] for trial in self.trials]), self.trials

    def observe(self, trials, points, values):
        for trial, value in zip(trials, values, strict=True):
            trial.observe(value)


class BoTorch:
    """qLogNEI with pending points and the equality constraint, with BoTorch's defaults."""

    restarts = 4

    def __init__(self, d, seed):
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self.d, self.rng = d, np.random.default_rng(seed)
        self.x, self.y, self.pending = np.zeros((0, d)), np.zeros(0), np.zeros((0, d))

    def suggest(self, n):
        points = self.rng.dirichlet(np.ones(self.d), n) if not len(self.y) else self._model(n)
        self.pending = np.vstack([self.pending, points])
        return points, None

    def _model(self, n):
        import torch
        from botorch.acquisition import qLogNoisyExpectedImprovement
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.optim import optimize_acqf
        from gpytorch.mlls import ExactMarginalLogLikelihood

        warnings.simplefilter("ignore")
        x, y = torch.tensor(self.x), torch.tensor(-self.y)[:, None]
        model = SingleTaskGP(x, y)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        pending = torch.tensor(self.pending) if len(self.pending) else None
        acquisition = qLogNoisyExpectedImprovement(model, x, X_pending=pending, prune_baseline=True)
        bounds = torch.stack([torch.zeros(self.d), torch.ones(self.d)]).double()
        total = (torch.arange(self.d), torch.ones(self.d).double(), 1.0)
        # The default burn-in of 10,000 steps and 32 steps between points take most of the time, and start from a point
        # inside a simplex, where far fewer suffice.
        options = {"n_burnin": 500, "n_thinning": 4}
        found, _ = optimize_acqf(
            acquisition,
            bounds,
            n,
            num_restarts=self.restarts,
            raw_samples=256,
            sequential=True,
            equality_constraints=[total],
            options=options,
        )
        return found.numpy()

    def observe(self, trials, points, values):
        self.x, self.y = np.vstack([self.x, points]), np.append(self.y, values)
        self.pending = self.pending[len(points) :]


OPTIMIZERS = {
    "ours": Ours,
    "random": lambda d, seed: Ours(d, seed, "RandomSearch"),
    "lattice": lambda d, seed: Ours(d, seed, step=0.05),
    "botorch": BoTorch,
}


def run_one(function, optimizer):
    """Return the regret after each week, and after the last result."""
    regrets, out, seen = [], [], np.zeros((0, function.d))
    for week in range(WEEKS + LATE):
        if week >= LATE:
            trials, points = out[week - LATE]
            optimizer.observe(trials, points, function.f(points))
            seen = np.vstack([seen, points])
            regrets.append(function.regret(seen))
        if week < WEEKS:
            points, trials = optimizer.suggest(BATCH)
            assert np.abs(points.sum(1) - 1).max() < 1e-6
            out.append((trials, points))
    return regrets


def run(arguments):
    done = set()
    if Path(arguments.out).exists():
        done = {(r["function"], r["optimizer"], r["seed"]) for r in read([arguments.out])}
    first, last = map(int, arguments.seeds.split(":"))
    made = {name: make() for name, make in functions(arguments.tables).items() if name in arguments.functions}
    for seed in range(first, last):
        for name, function in made.items():
            for kind in arguments.optimizers:
                if (name, kind, seed) in done:
                    continue
                start = time.perf_counter()
                regrets = run_one(function, OPTIMIZERS[kind](function.d, seed))
                record = {"function": name, "optimizer": kind, "seed": seed, "regrets": regrets}
                record["seconds"] = time.perf_counter() - start
                with Path(arguments.out).open("a") as file:
                    file.write(json.dumps(record) + "\n")


def read(paths):
    return [json.loads(line) for path in paths for line in Path(path).read_text().splitlines()]


def show(arguments):
    records = read(arguments.results)
    scores = {(r["function"], r["optimizer"], r["seed"]): np.log10(r["regrets"]) for r in records}
    kinds = list(dict.fromkeys(r["optimizer"] for r in records))
    names = list(dict.fromkeys(r["function"] for r in records))
    for label, of in (("mean of log10 regret over weeks", np.mean), ("log10 regret at the end", lambda r: r[-1])):
        print(f"\n{label}; in brackets: ours minus the other one, with its standard error, and the number of seeds")
        total = {kind: [] for kind in kinds}
        for name in names:
            cells = [f"{name:14}"]
            for kind in kinds:
                seeds = [s for n, k, s in scores if (n, k) == (name, kind)]
                found = [of(scores[name, kind, s]) for s in seeds]
                both = [s for s in seeds if (name, "ours", s) in scores]
                gaps = [of(scores[name, "ours", s]) - of(scores[name, kind, s]) for s in both]
                cell = f"{kind} {np.mean(found):6.2f}" if found else ""
                if kind != "ours" and len(gaps) > 1:
                    error = np.std(gaps, ddof=1) / len(gaps) ** 0.5
                    total[kind].append((np.mean(gaps), error))
                    cell += f" ({np.mean(gaps):+.2f} ± {error:.2f}, {len(gaps)})"
                cells.append(f"{cell:38}")
            print("  ".join(cells))
        for kind, gaps in total.items():
            if gaps:
                mean = np.mean([gap for gap, _ in gaps])
                error = sum(error**2 for _, error in gaps) ** 0.5 / len(gaps)
                print(f"  mean over functions, ours minus {kind}: {mean:+.3f} ± {error:.3f}")
    for kind in kinds:
        seconds = [r["seconds"] for r in records if r["optimizer"] == kind]
        print(f"{kind}: {np.median(seconds):.2f} s a run (median)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    runner = commands.add_parser("run", help="run optimizers and append the results to a file")
    runner.add_argument("--optimizers", nargs="+", default=["ours"], choices=OPTIMIZERS)
    runner.add_argument("--seeds", default="0:20")
    runner.add_argument("--out", default="results.jsonl")
    runner.add_argument("--tables", default="../shared/data/lab", help="the folder of the tables")
    names = list(functions(""))
    runner.add_argument("--functions", nargs="+", default=names, choices=names)
    runner.set_defaults(call=run)
    viewer = commands.add_parser("show", help="print the scores and the differences")
    viewer.add_argument("results", nargs="+")
    viewer.set_defaults(call=show)
    arguments = parser.parse_args()
    arguments.call(arguments)


if __name__ == "__main__":
    main()
