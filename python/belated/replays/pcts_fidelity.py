"""Wang et al. 2022: `TreeSearch` with late, noisy results of cheap, biased evaluations, also on Schwefel's function.

The paper calls this feedback DNF: delayed, noisy and multi-fidelity. PCTS runs with both bounds on the five functions
of the paper that have a fidelity z. The search with fidelities evaluates a cell of height h at the fidelity z_h, whose
bias is at most ν·ρ^h. The search at full fidelity evaluates all cells at z = 1. The noise has the paper's variance. In
every unit of time an evaluation starts. Delays are constant, 4 units, or geometric with mean 10 units; as in the
paper, they do not depend on the fidelity. ν, ρ, C and the range b of DUCBV are as in the replay ``pcts``.

A value is the noiseless value of the recommended point at full fidelity. Regret is measured from the optimum of f. The
table has medians over the runs of three values: the search with fidelities at the end, and the search at full fidelity
at the end and at the time at which it has spent the same cost. The unit of cost is an evaluation at full fidelity.

The paper also defines Schwefel's function in 20 dimensions. The function does not have a fidelity, and the paper does
not report a result. Here ν and ρ have the defaults of `TreeSearch`, and random search is the rival.

``--iterations T`` is the duration of a run, 600 by default. ``--quick`` makes 2 runs of 100 units.
"""

import heapq
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import belated as bl
from belated import functions
from belated.functions import Function, MultiFidelityFunction
from belated.replays import report, wang
from belated.replays.report import Report
from belated.replays.runner import Options, Replay, run_all, seed_of

SCHWEFEL = "Schwefel20"
FUNCTIONS: dict[str, Function | MultiFidelityFunction] = {
    name: problem.function for name, problem in wang.PROBLEMS.items()
} | {SCHWEFEL: functions.SCHWEFEL20}
#: The exponents of the costs λ(z) = base + factor·z^exponent in the paper.
EXPONENTS = {"Hartmann3": 3.0, "Hartmann6": 3.0, "CurrinExp": 2.0, "Branin": 3.0, "Borehole": 1.5}
BOUNDS = ("DUCB1-sigma", "DUCBV")
OWN, FULL, RANDOM = "fidelities", "full", "random"


class Setting(NamedTuple):
    """A tree search on a function: its bound, and whether it evaluates at the fidelity of a cell."""

    function: str
    delays: str
    bound: str
    evaluates: str


def make(options: Options) -> Report:
    """Run both bounds with fidelities and without, and all searches on Schwefel's function."""
    settings = list(itertools.starmap(Setting, itertools.product(wang.PROBLEMS, wang.DELAYS, BOUNDS, (OWN, FULL))))
    settings += [Setting(SCHWEFEL, delays, bound, FULL) for delays in wang.DELAYS for bound in BOUNDS]
    settings += [Setting(SCHWEFEL, delays, RANDOM, FULL) for delays in wang.DELAYS]
    described = [describe(*each) for each in run_all(run_task, settings, options, "pcts-fidelity").items()]
    return {"duration": options.iterations, "settings": described}


def optimizer(setting: Setting, seed: int) -> bl.Optimizer:
    """Return the optimizer of a setting."""
    function = FUNCTIONS[setting.function]
    if setting.bound == RANDOM:
        return bl.RandomSearch(function.space, seed=seed)
    std = function.noise_std
    bound = bl.papers.DUCBV(b=wang.B) if setting.bound == "DUCBV" else bl.papers.DUCB1Sigma(noise_std=std)
    if setting.function == SCHWEFEL:
        return bl.TreeSearch(function.space, bound=bound, seed=seed)
    assert isinstance(function, MultiFidelityFunction)
    bias = wang.bias_constant(wang.PROBLEMS[setting.function])
    cost = bl.PowerCost(function.cost(0.0) / function.cost(1.0), EXPONENTS[setting.function])
    fidelity = bl.Fidelity(0.0, 1.0, cost=cost, bias=bias) if setting.evaluates == OWN else None
    return bl.TreeSearch(function.space, bound=bound, nu=bias, rho=wang.rhos(), fidelity=fidelity, seed=seed)


def run_task(setting: Setting, run: int, options: Options) -> dict[str, Any]:
    """Return the noiseless values of the recommendations at equally spaced times, and the cost of the evaluations."""
    function, duration = FUNCTIONS[setting.function], options.iterations
    made = optimizer(setting, seed_of(options.seed, *setting, run))
    # Both searches of a run have the same delays and the same noise.
    rng = np.random.default_rng(seed_of(options.seed, setting.function, setting.delays, run))
    delays, noise = wang.endless(wang.DELAYS[setting.delays], rng), function.noise_std * rng.standard_normal(duration)
    in_flight: list[tuple[float, int, float]] = []
    times, values, cost, arrived = [], [], 0.0, False
    for now in range(duration + 1):
        while in_flight and in_flight[0][0] <= now:
            _, number, value = heapq.heappop(in_flight)
            made.observe(number, value)
            arrived = True
        if arrived and now * wang.N_READINGS % duration < wang.N_READINGS:
            times.append(now)
            values.append(function(made.recommend()))
        if now == duration:
            break
        trial = made.suggest()
        if isinstance(function, MultiFidelityFunction):
            z = 1.0 if trial.fidelity is None else trial.fidelity
            cost, value = cost + function.cost(z) / function.cost(1.0), function(trial.params, z)
        else:
            cost, value = cost + 1.0, function(trial.params)
        heapq.heappush(in_flight, (now + next(delays), trial.number, value + noise[now]))
    curve = wang.at_readings(np.array(times, dtype=float), np.array(values), duration)
    return {"value": float(curve[-1]), "curve": curve, "cost": cost}


def describe(setting: Setting, results: Sequence[dict[str, Any]]) -> Report:
    """Return the results of a search on a function."""
    optimum, curves = FUNCTIONS[setting.function].optimum, report.values_of(results, "curve")
    cost = float(np.median(report.values_of(results, "cost")))
    return setting._asdict() | {
        "cost": cost,
        "values": curves[:, -1],
        "median_regret": optimum - np.median(curves[:, -1]),
        "curve_regret": wang.curve_regret(optimum, curves),
    }


def shown_in(found: Report, function: str, delays: str) -> list[Report]:
    """Return the results of all searches on a function with one kind of delay."""
    return [each for each in found["settings"] if (each["function"], each["delays"]) == (function, delays)]


def table(found: Report) -> str:
    """Return the median regret of both searches after equal times and after equal costs."""
    duration = found["duration"]
    rows = []
    for each in found["settings"]:
        if each["function"] == SCHWEFEL or each["evaluates"] == FULL:
            continue
        full = report.find(found["settings"], **{k: each[k] for k in ("function", "delays", "bound")}, evaluates=FULL)
        at = math.floor(each["cost"] / duration * wang.N_READINGS)
        same = full["curve_regret"][1][at]
        regrets = [f"{regret:.3g}" for regret in (each["median_regret"], full["median_regret"], same)]
        name = f"{each['function']}, {each['delays']}, {each['bound']}"
        rows.append([name, *regrets, f"{each['cost']:.0f}"])
    header = ["", "with fidelities", "full, equal time", "full, equal cost", "cost"]
    title = f"PCTS with delays, noise and fidelities: median regret after {duration} units, {found['runs']} runs\n"
    schwefel = [
        [f"{each['delays']}, {each['bound']}", f"{each['median_regret']:.4g}"]
        for each in found["settings"]
        if each["function"] == SCHWEFEL
    ]
    second = f"{SCHWEFEL}: median regret\n{report.format_table(['', 'full fidelity'], schwefel)}"
    return f"{title}{report.format_table(header, rows)}\n\n{second}"


def figure(found: Report) -> Any:
    """Return the median regret against time, constant delays above geometric delays."""
    panels: dict[str, list[Report]] = {}
    for delays, function in itertools.product(wang.DELAYS, FUNCTIONS):
        shown = shown_in(found, function, delays)
        named = [
            each | {"algorithm": "random" if each["bound"] == RANDOM else f"PCTS+{each['bound']}, {each['evaluates']}"}
            for each in shown
        ]
        panels[f"{function}, {delays} delays"] = named
    return wang.regret_figure(panels, found["duration"], len(FUNCTIONS))


REPLAYS = [
    Replay(
        "pcts-fidelity",
        __doc__,
        make,
        table,
        figure,
        10,
        wang.DURATION,
        quick_runs=2,
        quick_iterations=100,
        options=["quick"],
    )
]
