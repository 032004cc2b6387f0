"""Wang et al. 2022: `TreeSearch` with late, noisy results of cheap, biased evaluations, also on Schwefel's function.

The paper calls this feedback DNF: delayed, noisy and multi-fidelity. PCTS runs with both bounds on the five functions
of the paper that have a fidelity z. The search with fidelities evaluates a cell of height h at the fidelity z_h, whose
bias is at most ν·ρ^h. The search at full fidelity evaluates all cells at z = 1. The noise has the paper's variance. In
every unit of time an evaluation starts. Delays are constant, 4 units, or geometric with mean 10 units; as in the
paper, they do not depend on the fidelity. ν, ρ, C and the range b of DUCBV are as in the replay ``pcts``.

A value is the noiseless value of the recommended point at full fidelity. Regret is measured from the optimum of f. The
table has the median and the quartiles over the runs of three values: the search with fidelities at the end, and the
search at full fidelity at the end and at the time at which it has spent the same cost. The unit of cost is an
evaluation at full fidelity. The verdicts compare the search with fidelities with the search at full fidelity, at equal
time and at equal cost.

The paper also has Schwefel's function in 20 dimensions, which does not have a fidelity. Here ν and ρ have the defaults
of `TreeSearch`, and the verdicts compare PCTS with random search. PCTS of the paper has ``front=False``. The rows with
a front have the default of `TreeSearch`, where every second suggestion halves the cell with the best mean.

``--iterations T`` is the duration of a run, 600 by default. ``--quick`` makes 2 runs of 100 units.
"""

import heapq
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import belated as bl
from belated import functions
from belated.functions import Function, MultiFidelityFunction
from belated.replays import report, wang
from belated.replays.report import Report
from belated.replays.runner import Options, Replay, run_all, seed_of
from belated.replays.verdicts import verdicts

SCHWEFEL = "Schwefel20"
FUNCTIONS: dict[str, Function | MultiFidelityFunction] = {
    name: problem.function for name, problem in wang.PROBLEMS.items()
} | {SCHWEFEL: functions.SCHWEFEL20}
#: The exponents of the costs λ(z) = base + factor·z^exponent in the paper.
EXPONENTS = {"Hartmann3": 3.0, "Hartmann6": 3.0, "CurrinExp": 2.0, "Branin": 3.0, "Borehole": 1.5}
BOUNDS = ("DUCB1-sigma", "DUCBV")
OWN, FULL, FRONT, RANDOM = "fidelities", "full", "full, with a front", "random"


class Setting(NamedTuple):
    """A tree search on a function: its bound, and whether it evaluates at the fidelity of a cell."""

    function: str
    delays: str
    bound: str
    evaluates: str


def make(options: Options) -> Report:
    """Run both bounds with fidelities and without, and all searches on Schwefel's function."""
    settings = list(itertools.starmap(Setting, itertools.product(wang.PROBLEMS, wang.DELAYS, BOUNDS, (OWN, FULL))))
    settings += list(itertools.starmap(Setting, itertools.product([SCHWEFEL], wang.DELAYS, BOUNDS, (FULL, FRONT))))
    settings += [Setting(SCHWEFEL, delays, RANDOM, FULL) for delays in wang.DELAYS]
    results = run_all(run_task, settings, options, "pcts-fidelity")
    described = [describe(*each) for each in results.items()]
    return {"duration": options.iterations, "settings": described, "comparisons": comparisons(results)}


def comparisons(results: Mapping[Setting, Sequence[dict[str, Any]]]) -> list[Report]:
    """Return the regrets of the paired runs and the verdicts: on the search with fidelities against the search at full
    fidelity, at equal time and at equal cost, and on PCTS against random search on Schwefel's function.
    """
    pairs = {}
    for setting in results:
        name, delays, bound, evaluates = setting
        optimum, own = FUNCTIONS[name].optimum, report.values_of(results[setting], "value")
        if evaluates == OWN:
            full = results[Setting(name, delays, bound, FULL)]
            share = report.values_of(results[setting], "cost") / report.values_of(full, "cost")
            at = np.floor(share * wang.N_READINGS).astype(int)
            same = report.values_of(full, "curve")[np.arange(len(full)), at]
            pairs[setting, "equal time"] = optimum - own, optimum - report.values_of(full, "value")
            pairs[setting, "equal cost"] = optimum - own, optimum - same
        elif name == SCHWEFEL and bound != RANDOM:
            random = report.values_of(results[Setting(name, delays, RANDOM, FULL)], "value")
            pairs[setting, RANDOM] = optimum - own, optimum - random
    found = verdicts(pairs)
    return [
        setting._asdict() | {"at": at, "regrets": ours, "others": others, "verdict": found[setting, at]}
        for (setting, at), (ours, others) in pairs.items()
    ]


def optimizer(setting: Setting, seed: int) -> bl.Optimizer:
    """Return the optimizer of a setting."""
    function = FUNCTIONS[setting.function]
    if setting.bound == RANDOM:
        return bl.RandomSearch(function.space, seed=seed)
    std = function.noise_std
    bound = bl.papers.DUCBV(b=wang.B) if setting.bound == "DUCBV" else bl.papers.DUCB1Sigma(noise_std=std)
    if setting.function == SCHWEFEL:
        return bl.TreeSearch(function.space, bound=bound, seed=seed, front=setting.evaluates == FRONT)
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
    """Return the median regret with quartiles, of both searches after equal times and after equal costs."""
    rows, schwefel = [], []
    for each in found["settings"]:
        name = ", ".join([each["delays"], each["bound"]] + [each["evaluates"]] * (each["evaluates"] == FRONT))
        key = {k: each[k] for k in ("function", "delays", "bound", "evaluates")}
        compared = [it for it in found["comparisons"] if all(it[k] == key[k] for k in key)]
        if each["function"] == SCHWEFEL:
            regrets = FUNCTIONS[SCHWEFEL].optimum - np.asarray(each["values"], dtype=float)
            schwefel.append([name, report.quartiles(regrets, 4), *(it["verdict"] for it in compared)])
        elif each["evaluates"] == OWN:
            time, cost = compared
            cells = [report.quartiles(values) for values in (time["regrets"], time["others"], cost["others"])]
            cells += [f"{each['cost']:.0f}", time["verdict"], cost["verdict"]]
            rows.append([f"{each['function']}, {name}", *cells])
    header = ["", "with fidelities", "full, equal time", "full, equal cost", "cost", "equal time", "equal cost"]
    title = f"PCTS with delays, noise and fidelities: median regret (quartiles) after {found['duration']} units, "
    first = f"{title}{found['runs']} runs\n{report.format_table(header, rows)}"
    schwefel = [row + [""] * (3 - len(row)) for row in schwefel]
    second = report.format_table(["", "full fidelity", "against random"], schwefel)
    return f"{first}\n\n{SCHWEFEL}: median regret (quartiles)\n{second}"


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
        30,
        wang.DURATION,
        quick_runs=2,
        quick_iterations=100,
        options=["quick"],
    )
]
