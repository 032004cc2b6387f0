"""The regret at the recommended point, compared with other rules for choosing a point; prints tables as Markdown.

Every function is maximised in 80 sequential trials. After 10, 20, 40 and 80 trials, each rule chooses a point, and the
regret is the optimum minus the noise-free value at this point, in units of the range of the function. The range is the
optimum minus the 1 % quantile of 4,000 random points. A regret below 1e-4 counts as 1e-4. All rules choose from the
same trials, so the differences are paired.

* *noise*: the standard deviation of the noise in percent of the range. "declared" noise differs between trials (1 to 30
  %, log-uniform) and is reported with each value. In the case "random", the trials are at random points.
* *rules*: `recommend()`; the best observed point; the point of the domain with the largest mean, or with the largest
  mean − std, found by a search in this file; and, in a finite set, the point with the largest mean, mean − ½ std, mean
  − std or mean − 2 std. The set contains the observed points, with or without the point of the domain with the largest
  mean. Means and standard deviations are from `predict`.

With `--contexts`, trials run in random contexts, and each rule chooses a point for each of four contexts after 20, 40
and 60 trials. The level of a function depends on the context; in some problems, the place of the optimum also does.

With `--exact`, values do not have noise. The figures are the shares of readings in which the value at the recommended
point is below `best_value_` by more than 1 % of the range, and by more than 5 %.

Usage: python benchmarks/recommend.py [--exact | --contexts] [--seeds 4] [--jobs 1] [--only branin jump]
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from itertools import product

import numpy as np

import belated as bl
from belated.functions import BRANIN, HARTMANN3, HARTMANN6, Function, box

AFTER = (10, 20, 40, 80)
NOISES = (1, 5, 20, "declared", "random")
LEAST = 1e-4


def ackley(x):
    x = np.asarray(x)
    waves = np.exp(np.mean(np.cos(2 * np.pi * x)))
    return 20 * np.exp(-0.2 * np.sqrt(np.mean(x**2))) + waves - 20 - np.e


def mixed(x):
    """A peak whose place and height depend on a choice; the second parameter is an integer."""
    place, height = {"a": (0.2, 1.0), "b": (0.6, 0.8), "c": (0.8, 0.5)}[x[2]]
    return height * np.exp(-8 * (x[0] - place) ** 2 - ((x[1] - 7) / 5) ** 2)


UNIT = (0.0, 1.0)
MIXED = {"x": bl.Real(*UNIT), "k": bl.Integer(0, 12), "c": bl.Categorical(["a", "b", "c"])}
FUNCTIONS = {
    "branin": BRANIN,
    "hartmann3": HARTMANN3,
    "hartmann6": HARTMANN6,
    "waves": Function(
        "waves", box(UNIT), 0.9562894872308605, lambda x: np.sin(9 * x[0]) * (1 - x[0] / 4) + x[0] / 5 - 0.035
    ),
    "rosenbrock": Function(
        "rosenbrock", box((-2, 2), (-1, 3)), 0.0, lambda x: -100 * (x[1] - x[0] ** 2) ** 2 - (1 - x[0]) ** 2
    ),
    "ackley": Function("ackley", box(*[(-5.0, 10.0)] * 3), 0.0, ackley),
    "jump": Function(
        "jump", box(UNIT, UNIT), 0.0, lambda x: -((x[0] - 0.7) ** 2) - (x[1] - 0.2) ** 2 - 5 * (x[0] + x[1] > 0.95)
    ),
    "rastrigin": Function(
        "rastrigin",
        box((-4, 6), (-4, 6)),
        0.0,
        lambda x: -sum(10 + t**2 - 10 * np.cos(2 * np.pi * t) for t in x),
    ),
    "needle": Function(
        "needle", box(UNIT, UNIT), 0.0, lambda x: np.exp(-((x[0] - 0.31) ** 2 + (x[1] - 0.72) ** 2) / 2e-3) - 1
    ),
    "mixed": Function("mixed", MIXED, 1.0, mixed),
}
# The rules that choose from a set of points, as (set, multiplier of std).
SETS = ("observed", "and maximiser")
MULTIPLIERS = (0.0, 0.5, 1.0, 2.0)


class Cube:
    """A function on the unit cube."""

    def __init__(self, name):
        self.function = FUNCTIONS[name]
        self.space = self.function.space
        self.optimum = self.function.optimum
        random = self.values(np.random.default_rng(0).random((4000, len(self.space))))
        self.optimum = max(self.optimum, random.max()) if name in ("waves", "jump") else self.optimum
        self.range = self.optimum - np.quantile(random, 0.01)

    def params(self, u):
        """Return the point at `u` as a dict."""
        params = {}
        for (name, its), t in zip(self.space.items(), np.clip(u, 0, 1), strict=True):
            if isinstance(its, bl.Categorical):
                params[name] = its.choices[min(int(t * len(its.choices)), len(its.choices) - 1)]
            elif isinstance(its, bl.Integer):
                params[name] = its.low + min(int(t * (its.high - its.low + 1)), its.high - its.low)
            else:
                params[name] = its.low + t * (its.high - its.low)
        return params

    def values(self, points):
        return np.array([self.function(self.params(u)) for u in points])

    def maximiser(self, opt, multiplier, starts, rng):
        """Return the point with the largest mean - multiplier * std, by random search and by steps that shrink."""
        d = len(self.space)

        def scores(points):
            mean, std = opt.predict(points)
            return mean - multiplier * std

        points = starts + [self.params(u) for u in rng.random((500 * d, d))]
        units = np.concatenate([[self.unit(p) for p in starts], rng.random((0, d))])
        units = np.concatenate([units, [self.unit(p) for p in points[len(starts) :]]])
        values = scores(points)
        for step in 0.1 / 3.0 ** np.arange(7):
            order = np.argsort(-values)[:5]
            near = np.repeat(units[order], 20 * d, axis=0)
            near = np.clip(near + step * rng.standard_normal(near.shape) * (rng.random(near.shape) < 0.7), 0, 1)
            units = np.concatenate([units[order], near])
            values = np.concatenate([values[order], scores([self.params(u) for u in near])])
        return self.params(units[np.argmax(values)])

    def unit(self, params):
        """Return a point of the unit cube at which `params` returns these params."""
        u = []
        for name, its in self.space.items():
            if isinstance(its, bl.Categorical):
                u.append((list(its.choices).index(params[name]) + 0.5) / len(its.choices))
            elif isinstance(its, bl.Integer):
                u.append((params[name] - its.low + 0.5) / (its.high - its.low + 1))
            else:
                u.append((params[name] - its.low) / (its.high - its.low))
        return np.array(u)


def choices(cube, opt, rng):
    """Return the point that each rule chooses."""
    rows = [trial.params for trial in opt.trials]
    best = cube.maximiser(opt, 0.0, rows, rng)
    mean, std = opt.predict([*rows, best])
    chosen = {"recommend()": opt.recommend(), "best observed": opt.best_params_}
    for (label, more), multiplier in product(zip(SETS, (0, 1), strict=True), MULTIPLIERS):
        last = len(rows) + more
        row = np.argmax((mean - multiplier * std)[:last])
        chosen[f"mean − {multiplier:g} std, {label}"] = [*rows, best][row]
    chosen["mean, domain"] = best
    chosen["mean − 1 std, domain"] = cube.maximiser(opt, 1.0, [*rows, best], rng)
    return chosen


def run(name, noise, seed):
    """Return log10 of the regret of each rule after each number of trials."""
    cube, rng = Cube(name), np.random.default_rng([seed, 7])
    opt, result = bl.BayesOpt(cube.space, seed=seed), {}
    for n in range(1, AFTER[-1] + 1):
        declared = np.exp(rng.uniform(np.log(0.01), np.log(0.3))) * cube.range
        std = {"declared": declared, "random": 0.05 * cube.range}.get(noise) or noise / 100 * cube.range
        if noise == "random":
            trial = opt.enqueue(cube.params(rng.random(len(cube.space))))
        trial = opt.suggest()
        value = cube.function(trial.params) + std * rng.standard_normal()
        trial.observe(value, std=std if noise == "declared" else None)
        if n in AFTER:
            chosen = choices(cube, opt, np.random.default_rng(seed))
            regrets = {rule: cube.optimum - cube.function(dict(point)) for rule, point in chosen.items()}
            result[n] = {rule: np.log10(max(regret / cube.range, LEAST)) for rule, regret in regrets.items()}
    return result


def context_run(kind, name, noise, seed):
    """Return log10 of the regret of each rule, averaged over four contexts and three numbers of trials."""
    shapes = {
        "bump": lambda x, y: np.exp(-((x - 0.3) ** 2 + (y - 0.6) ** 2) / 0.05),
        "jump": lambda x, y: 1 - ((x - 0.7) ** 2 + (y - 0.2) ** 2) / 2 - 2 * (x + y > 0.95),
        "rastrigin": lambda x, y: (
            1 - sum(10 + t**2 - 10 * np.cos(2 * np.pi * t) for t in (6 * x - 2, 6 * y - 2.6)) / 60
        ),
    }
    levels = {"level": (0.0, 100.0, -50.0, 3.0), "shift": (0.0, 5.0, -2.0, 3.0)}.get(kind)

    def f(params, z):
        level, shift = (3 * z, 0.3 * z) if levels is None else (levels[z], 0.08 * z * (kind == "shift"))
        return level + shapes[name](params["x"] - shift, params["y"])

    rng = np.random.default_rng([seed, 9])
    declared = {"z": UNIT} if levels is None else {"z": bl.Categorical([0, 1, 2, 3])}
    surrogate = bl.GP(noise_std=0.0) if noise == "exact" else bl.GP()
    opt, result = bl.BayesOpt({"x": UNIT, "y": UNIT}, context=declared, seed=seed, surrogate=surrogate), []
    grid = [{"x": x, "y": y} for x in np.linspace(0, 1, 101) for y in np.linspace(0, 1, 101)]
    contexts = (0.05, 0.35, 0.65, 0.95) if levels is None else (0, 1, 2, 3)
    best = [max(f(params, z) for params in grid) for z in contexts]
    for n in range(1, 61):
        trial = opt.suggest(context={"z": float(rng.random()) if levels is None else int(rng.integers(4))})
        trial.observe(f(trial.params, trial.context["z"]) + (noise == "fitted") * 0.1 * rng.standard_normal())
        for z, optimum in zip(contexts if n % 20 == 0 else (), best, strict=False):
            context = {"z": z}
            rows = [trial.params for trial in opt.trials]
            mean, _ = opt.predict(grid, context=context)
            points = [*rows, grid[np.argmax(mean)]]
            mean, std = opt.predict(points, context=context)
            chosen = {f"mean − {k:g} std, and maximiser": points[np.argmax(mean - k * std)] for k in MULTIPLIERS}
            chosen["recommend()"] = opt.recommend(context)
            here = [trial for trial in opt.trials if trial.context == context]
            if levels is not None and here:
                chosen["best observed in this context"] = max(here, key=lambda trial: trial.value).params
            else:
                chosen["best observed in this context"] = chosen["recommend()"]
            result.append({rule: np.log10(max(optimum - f(it, z), LEAST)) for rule, it in chosen.items()})
    return {n: {rule: np.mean([it[rule] for it in result]) for rule in result[0]} for n in AFTER}


def exact_run(name, declared, seed):
    """Return the shortfalls of the recommended point after 10, 20, 30, … trials."""
    cube = Cube(name)
    opt, short = bl.BayesOpt(cube.space, seed=seed, surrogate=bl.GP(noise_std=0.0) if declared else bl.GP()), []
    for n in range(1, AFTER[-1] + 1):
        trial = opt.suggest()
        trial.observe(cube.function(trial.params))
        if n % 10 == 0:
            short.append((opt.best_value_ - cube.function(dict(opt.recommend()))) / cube.range)
    return short


def paired(runs, rules, base):
    """Print the mean of log10 of the regret, and the mean difference from the rule `base` with its standard error."""
    for rule in rules:
        scores = np.array([[run[n][rule] for n in AFTER] for run in runs])
        differences = (scores - np.array([[run[n][base] for n in AFTER] for run in runs])).mean(axis=1)
        error = differences.std(ddof=1) / np.sqrt(len(runs))
        by_n = " | ".join(f"{x:.2f}" for x in scores.mean(axis=0))
        print(f"| {rule} | {by_n} | {scores.mean():.3f} | {differences.mean():+.3f} ± {error:.3f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--contexts", action="store_true")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=FUNCTIONS, default=list(FUNCTIONS))
    arguments = parser.parse_args()
    if arguments.contexts:
        grid = list(
            product(
                ("level", "shift", "continuous"),
                ("bump", "jump", "rastrigin"),
                ("exact", "fitted"),
                range(arguments.seeds),
            )
        )
        with ProcessPoolExecutor(arguments.jobs) as pool:
            runs = list(pool.map(context_run, *zip(*grid, strict=True)))
        paired(runs, list(runs[0][AFTER[0]]), "mean − 1 std, and maximiser")
        return
    cases = (False, True) if arguments.exact else NOISES
    grid = list(product(arguments.only, cases, range(arguments.seeds)))
    with ProcessPoolExecutor(arguments.jobs) as pool:
        runs = list(pool.map(exact_run if arguments.exact else run, *zip(*grid, strict=True)))
    if arguments.exact:
        print("| function | noise | checks | more than 1 % | more than 5 % | largest |\n|---|---|---|---|---|---|")
        for name, declared in product(arguments.only, cases):
            found = [short for short, it in zip(runs, grid, strict=True) if it[:2] == (name, declared)]
            short = np.concatenate(found)
            shares = f"{(short > 0.01).sum()} | {(short > 0.05).sum()} | {short.max():.1%}"
            print(f"| {name} | {'declared' if declared else 'fitted'} | {len(short)} | {shares} |")
        return
    rules = list(runs[0][AFTER[0]])
    groups = {"all": runs}
    groups |= {f"noise {noise}": [r for r, it in zip(runs, grid, strict=True) if it[1] == noise] for noise in NOISES}
    groups |= {name: [r for r, it in zip(runs, grid, strict=True) if it[0] == name] for name in arguments.only}
    for group, members in groups.items():
        print(f"\n{group}\n\n| rule | {' | '.join(map(str, AFTER))} | mean | minus the largest mean |")
        print("|" + "---|" * (len(AFTER) + 3))
        paired(members, rules, "mean, domain")


if __name__ == "__main__":
    main()
