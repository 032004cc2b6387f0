"""Riegler, Odgers & Fortuin 2026: is an acquisition without regard to pending trials sufficient?

Riegler et al. claim that mu + sqrt(2) sigma, with pending trials left out of the model, is as good as algorithms that
are made for asynchronous workers. The methods run on five functions, with 3d initial points and without noise as in
the paper, and also with noise of standard deviation 0.2. Three kinds of delay are simulated on Hartmann6, and workers
on the other functions; M evaluations are in flight:

* workers: M asynchronous workers with half-normal evaluation times of mean 1 s, as in the paper. One result arrives
  before each suggestion, except the first M.
* delay: a suggestion is made every 1/M s, and its result arrives after M further suggestions.
* batches: M points are suggested together, and the next batch follows when all results have arrived.

The initial points are a Halton sequence with a random shift. Their values are known at the start, and all methods of a
run share them. The k-th trial has the same evaluation time and noise for every method. Regret is the distance between
the optimum and the best noise-free value among the arrived results. It is reported by the number of evaluations and by
time. In the paper, the seconds of a decision are added to the clock. The report contains the regret with and without
these seconds. They delay all later events, and do not change the order of the events.

The share "uninformed" is the share of the suggestions before which no result arrived since the previous suggestion. The
share "repeated" is the share of the suggestions that lie near a pending point: the root mean square difference of the
parameters is below 0.001 of their ranges.

All methods except BayesOpt, which is the default of belated, have the same model with a Matérn 5/2 kernel.

``--iterations N`` is the number of evaluations after the initial points, 96 by default. ``--quick`` makes 2 runs of 24
evaluations. ``--keep DIR`` keeps each finished run, so that a stopped replay can continue.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import belated as bl
from belated import functions, simulate
from belated.replays import report, verdicts
from belated.replays.report import Array, Report
from belated.replays.runner import Options, Replay, run_all, seed_of

FUNCTIONS = {
    function.name: function
    for function in (
        functions.BRANIN,
        functions.CURRIN_EXPONENTIAL,
        functions.HARTMANN3,
        functions.HARTMANN6,
        functions.ACKLEY10,
    )
}
#: M, the number of evaluations in flight.
WORKERS = 8
NOISES = (0.0, 0.2)
MODES = ("workers", "delay", "batches")
#: The function and the kind of delay of each panel.
PANELS = [(name, "workers") for name in FUNCTIONS] + [("hartmann6", mode) for mode in MODES[1:]]
METHODS = ("UCB", "LP", "PLAyBOOK", "AEGiS", "asyTS", "asyUCB", "BayesOpt")
#: Points nearer than this root mean square difference of the parameters, as shares of their ranges, are repeats.
NEAR = 1e-3
N_READINGS = 50
PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)


class Setting(NamedTuple):
    """A method on a function under one kind of delay."""

    function: str
    mode: str
    noise: float
    method: str


def make(options: Options) -> Report:
    """Run all methods on all functions under all delays."""
    settings = [Setting(*panel, noise, method) for noise in NOISES for panel in PANELS for method in METHODS]
    found = run_all(run_task, settings, options, "riegler")
    described = [describe(*each) for each in found.items()]
    made = {"evaluations": options.iterations, "workers": WORKERS, "settings": described}
    return made | {"verdicts": against_rivals(described)}


def against_rivals(described: Sequence[Report]) -> list[Report]:
    """Return the verdicts on the final regret of the standard acquisition, against its rivals in each panel."""
    named = [each | {"algorithm": each["method"], "value": -each["regret"]["final"]} for each in described]
    pairs = [(METHODS[0], each) for each in METHODS[1:]]
    return verdicts.comparisons(named, ("function", "mode", "noise"), pairs, "value")


def optimizer(method: str, space: Mapping[str, Any], seed: int) -> bl.Optimizer:
    """Return the optimizer for a method."""
    if method == "BayesOpt":
        return bl.BayesOpt(space, initial=0, seed=seed)
    model = bl.GP(kernel="matern52", targets="standardized", inputs="plain")
    bound = bl.UCB(math.sqrt(2.0))
    if method == "UCB":
        return bl.BayesOpt(space, acquisition=bound, pending="ignore", surrogate=model, initial=0, seed=seed)
    fields = {"acquisition": bound} if method in ("LP", "PLAyBOOK") else {}
    return bl.algorithm(method, space, surrogate=model, initial=0, seed=seed, **fields)


def initial_points(d: int, rng: np.random.Generator) -> Array:
    """Return 3d points of a Halton sequence in the unit cube with a random shift, as rows."""
    n = 3 * d
    halton = [[_radical_inverse(i + 1, base) for base in PRIMES[:d]] for i in range(n)]
    return (np.array(halton) + rng.random(d)) % 1.0


def _radical_inverse(i: int, base: int) -> float:
    """Return the number in [0, 1) whose digits in a base are the digits of i in reverse order."""
    inverse, digit = 0.0, 1.0 / base
    while i:
        inverse += digit * (i % base)
        i, digit = i // base, digit / base
    return inverse


def run_task(setting: Setting, run: int, options: Options) -> dict[str, Any]:
    """Return the regret of one run by evaluations and by time, and the shares of suggestions."""
    name, mode, noise, method = setting
    function, low, widths = FUNCTIONS[name], *box(name)
    rng = np.random.default_rng(seed_of(options.seed, "initial", name, run))
    rows = low + widths * initial_points(len(low), rng)
    points = [dict(zip(function.space, row, strict=True)) for row in rows.tolist()]
    values = np.array([function(point) for point in points])
    made = optimizer(method, function.space, seed_of(options.seed, "optimizer", name, mode, str(noise), method, run))
    made.add(points, values + noise * rng.standard_normal(len(points)))
    common: dict[str, Any] = {"noise": noise, "seed": seed_of(options.seed, "simulation", name, run)}
    if mode == "delay":
        history = simulate.simulate(made, function, options.iterations, WORKERS, **common)
        started, arrivals = history.started / WORKERS, history.arrivals / WORKERS
    else:
        common["mode"] = "asynchronous" if mode == "workers" else "synchronous"
        history = simulate.simulate_workers(
            made, function, workers=WORKERS, times=simulate.HalfNormal(), n_trials=options.iterations, **common
        )
        started, arrivals = history.started, history.arrivals
    regret, before = function.optimum - history.values, function.optimum - values.max()
    at = report.readings(options.iterations / WORKERS, N_READINGS)
    x = np.array([list(point.values()) for point in history.points])
    return {
        "regret": least(arrivals, regret, before, np.sort(arrivals)),
        "by_time": least(arrivals, regret, before, at),
        "with_decisions": least(arrivals + np.cumsum(history.seconds), regret, before, at),
        "uninformed": uninformed(started, arrivals),
        "repeated": repeated((x - low) / widths, started, arrivals),
        "seconds_per_suggestion": history.seconds.mean(),
    }


def least(arrivals: Array, regret: Array, before: float, at: Array) -> Array:
    """Return the least regret, at each time, of the results that have arrived and of the initial points."""
    order = np.argsort(arrivals, kind="stable")
    running = np.minimum.accumulate(np.concatenate([[before], regret[order]]))
    return running[np.searchsorted(arrivals[order], at, side="right")]


def uninformed(started: Array, arrivals: Array) -> float:
    """Return the share of the trials before which no result arrived since the start of the previous trial."""
    arrived = np.searchsorted(np.sort(arrivals), started, side="right")
    return float(np.mean(np.diff(arrived) == 0))


def box(name: str) -> tuple[Array, Array]:
    """Return the lower bounds and the widths of the box of a function."""
    low, high = np.array([(each.low, each.high) for each in FUNCTIONS[name].space.values()]).T
    return low, high - low


def repeated(unit: Array, started: Array, arrivals: Array) -> float:
    """Return the share of the trials that started near the point of a pending trial. The rows are in the unit cube."""
    repeats = 0
    for k in range(len(unit)):
        pending = unit[:k][arrivals[:k] > started[k]]
        repeats += bool((np.sqrt(((pending - unit[k]) ** 2).mean(axis=1)) < NEAR).any())
    return repeats / len(unit)


def describe(setting: Setting, results: Sequence[Mapping[str, Any]]) -> Report:
    """Return the results of a method under one kind of delay."""
    described: Report = setting._asdict()
    for key in ("regret", "by_time", "with_decisions"):
        curves = report.values_of(results, key)
        mean, stderr = report.mean_stderr(curves)
        described |= {key: {"mean": mean, "stderr": stderr, "final": curves[:, -1]}}
    for key in ("uninformed", "repeated", "seconds_per_suggestion"):
        described[key] = float(np.mean(report.values_of(results, key)))
    return described


def shown_in(found: Report, function: str, mode: str, noise: float) -> list[Report]:
    """Return the results of all methods in a panel."""
    return [s for s in found["settings"] if (s["function"], s["mode"], s["noise"]) == (function, mode, noise)]


def table(found: Report) -> str:
    """Return a table for each panel and noise."""
    n, workers = found["evaluations"], found["workers"]
    early = max(n // 3, 1)
    header = ["method", f"regret, n = {early}", f"n = {n}", f"at {n / workers:.3g} s", "with decisions", "uninformed"]
    parts = [f"{workers} evaluations in flight, {found['runs']} runs: mean simple regret"]
    for noise in NOISES:
        for panel in PANELS:
            rows = [[s["method"], *_cells(s, early)] for s in shown_in(found, *panel, noise)]
            title = f"{', '.join(panel)}, noise {noise:g}"
            parts.append(f"{title}\n{report.format_table([*header, 'repeated', 's'], rows)}")
    return "\n\n".join([*parts, verdicts.table(found["verdicts"])])


def _cells(setting: Report, early: int) -> list[str]:
    read = [(setting["regret"], early - 1), *((setting[key], -1) for key in ("regret", "by_time", "with_decisions"))]
    regret = [f"{curve['mean'][at]:.2g} ± {curve['stderr'][at]:.1g}" for curve, at in read]
    shares = [f"{100 * setting[key]:.1f} %" for key in ("uninformed", "repeated")]
    return [*regret, *shares, report.seconds(setting)]


def figure(found: Report) -> Any:
    """Return a figure with the regret by the number of evaluations, for each panel and noise."""
    panels = []
    for panel in PANELS:
        for noise in NOISES:
            shown = shown_in(found, *panel, noise)
            curves = [{"curve_mean": s["regret"]["mean"], "curve_stderr": s["regret"]["stderr"]} for s in shown]
            labels = ["UCB (standard)" if s["method"] == "UCB" else s["method"] for s in shown]
            title = f"{', '.join(panel)}, noise {noise:g}"
            axes: dict[str, Any] = {"title": title, "xlabel": "Evaluations", "ylabel": "Simple regret", "log": True}
            panels.append(report.panel(curves, labels, bands=False, **axes))
    return report.draw_panels(panels, 2 * len(NOISES), below=len(METHODS))


REPLAYS = [
    Replay(
        "riegler", __doc__, make, table, figure, 20, 96, quick_runs=2, quick_iterations=24, options=["quick", "keep"]
    )
]
