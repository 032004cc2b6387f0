"""Wang et al. 2022, tables 4, 5, 8 and 9: tree search and its rivals under delays on five functions.

All runs have the same duration, but different numbers of evaluations. The duration is 600 units of time. Delays are
constant, 4 units, or geometric with mean 10 units. PCTS starts one evaluation in each unit of time, also while results
are in flight. Algorithms without delayed feedback start an evaluation when the result of the previous evaluation has
arrived. The value of a run is the noiseless value of the recommended point at full fidelity. Tables show the median
over runs, and regret is measured from the optimum that the paper states. The figure also shows the minimum and the
maximum over runs as bars. `belated.replays.wang` has the settings.

MFPOO and the authors' program grow several trees. Their result is the recommendation with the largest noiseless value
among the trees. In the program, too, an oracle makes this choice. PCTS as in the paper (the default) and all rivals
choose by their observations.

By default algorithms follow the papers, and values are noisy. ``--faithful`` runs the authors' program
(`belated.replays.reference_tree`). The program evaluates cell centres without noise at full fidelity, and has the
settings of the authors' scripts. With this option, the four tree searches run in two versions. The first has these
settings. The second has the settings of tables 5 and 9: POO has three instances, each instance has 600 units of cost,
and each cell is evaluated at its own fidelity. In the second version, results also arrive some milliseconds after their
delay, as in real time. The tables have two measures of a run: ``full`` is the value of the recommended point at full
fidelity; ``node`` is the largest value of a node at the fidelity of the node, which the program prints. ``--data`` adds
the published medians. A third version has other constants of DUCBV, which were chosen after the published values were
known. The verdicts compare the heights of the trees of PCTS and of MFPOO. Without the option, they compare the values
of PCTS and of its rivals. ``--iterations T`` sets the duration of a run. ``--quick`` makes three runs of 200 units on
the functions in two and three dimensions. ``--keep DIR`` keeps each finished run.

The replay ``pcts-noise`` compares bounds under noise. DUCB1σ and UCB1σ know the variance of the noise; DUCBV and UCBV
estimate the variance (sections 3.3 and D.2 of the paper). Section D.2.3 states that with Laplace noise of variance
0.05, PCTS reaches 3.2942 on Hartmann6, and that the second best method reaches 3.2562. Here the noise has the paper's
variances, or variances four times as large. MFPOO and GP-UCB wait for each result before they start the next
evaluation. The delay is 4, and there are ten runs of 600 units. The table shows the median over the runs of the
noiseless value at the recommended point, and its quartiles. The verdicts are about the claim: PCTS with Laplace noise
on Hartmann6 (with ``--quick``, on Branin) against the methods that wait.

PCTS is the authors' program. The replay adds noise to its values, which the program itself does not do. With
``--faithful``, the program runs at full fidelity and with the settings of the scripts. Otherwise the program evaluates
each cell at the cell's own fidelity and has the settings of the paper. The table also shows PCTS as the paper describes
it, with uniformly random points of cells. ``--iterations T`` is the time of a run. ``--quick`` makes three runs on two
functions.

The replay ``pcts-sr`` compares PCTS with the paper's "SR", Algorithm 2 of Locatelli and Carpentier 2018. At each level
of a partition, SR evaluates the centre of every remaining cell many times. Each cell is then halved or rejected. PCTS
and SR evaluate at full fidelity, in ten runs of 600 units. An algorithm that waits for each result has one evaluation
in flight. In the authors' script, SR has 30 evaluations in flight. This replay runs SR with one and with 30 evaluations
in flight.

By default values are noisy, and PCTS follows the paper. ``--faithful`` runs the authors' program, without noise. Then
all runs are equal, and there is one run without a seed. ``--iterations T`` is the time of a run. ``--quick`` uses three
functions.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np

from belated import plotting
from belated._core import InvalidSetting
from belated.plotting.figures import PALETTE
from belated.replays import report, rivals, rivals_bayesian, verdicts, wang
from belated.replays.reference_tree import Instance, best_so_far
from belated.replays.report import Array, Report
from belated.replays.runner import Options, Replay, run_all, seed_of
from belated.replays.wang import DELAYS, PROBLEMS

QUICK_FUNCTIONS = ("Hartmann3", "CurrinExp", "Branin")
#: Measure of a run → name of its median over runs. "full": the value at full fidelity. "node": the value that the
#: authors' program prints.
MEASURES = {"full": "median", "node": "node_median"}
VALUES = {"full": "values", "node": "node_values"}
#: The verdict on the regrets against the allowed regret → the verdict on a cell.
WITHIN = {verdicts.BETTER: "within", verdicts.WORSE: "not within", verdicts.UNDECIDED: "undecided"}
#: Suffix of the label of the authors' program if it has the settings of tables 5 and 9; see `belated.replays.wang`.
AS_TABLES = ", as the tables"
#: Suffix of this label with the constants `wang.CHOSEN`.
OTHER_B = ", other b"
RIVALS: Mapping[str, Callable[..., None]] = {
    "GP-UCB": rivals_bayesian.gp_ucb,
    "MF-GP-UCB": rivals_bayesian.mf_gp_ucb,
    "BOCA": rivals_bayesian.boca,
    "GP-EI": rivals_bayesian.gp_ei,
    "MF-SKO": rivals_bayesian.mf_sko,
    "OGD": rivals.ogd,
    "DBGD": rivals.dbgd,
}
#: PCTS with both bounds, and the trees with these bounds that wait for each result.
BOTH, WAITING = wang.TREES[2:], wang.TREES[:2]
#: The rival whose runs take much longer than those of all other rivals, and the largest number of its runs.
SLOW, SLOW_RUNS = "MF-SKO", 3
#: Algorithms that take the cost of fidelities into account.
WITH_COST = ("MF-GP-UCB", "BOCA", "MF-SKO")

#: Line below tables.
ORACLE = "The best tree of MFPOO and of the authors' program is chosen by noiseless values (an oracle)."

Published = Mapping[tuple[str, str, str], dict[str, float]]


class Setting(NamedTuple):
    """An algorithm on a function."""

    delays: str
    function: str
    algorithm: str


def make(options: Options) -> Report:
    """All runs of all algorithms."""
    names = QUICK_FUNCTIONS if options.quick else tuple(PROBLEMS)
    settings = []
    for where in itertools.product(DELAYS, names):
        settings += [Setting(*where, each) for each in algorithms(options.faithful)]
        if options.faithful and where[1] in wang.CHOSEN:
            settings.append(Setting(*where, BOTH[1] + AS_TABLES + OTHER_B))
    known = wang.published(options.data)
    results = run_all(run_task, [each for each in settings if each.algorithm != SLOW], options, "pcts")
    if slow := [each for each in settings if each.algorithm == SLOW]:
        results |= run_all(run_task, slow, replace(options, runs=min(options.runs, SLOW_RUNS)), f"pcts, {SLOW}")
    described = [describe(each, results[each], known) for each in settings]
    found = {"duration": options.iterations, "settings": described, "cells": cells(described, known)}
    pairs, key = list(itertools.product(BOTH, (*WAITING, *RIVALS))), "values"
    if options.faithful:
        pairs, key = [(one + AS_TABLES, other + AS_TABLES) for one, other in zip(BOTH, WAITING, strict=True)], "heights"
    return found | {"verdicts": verdicts.comparisons(described, ("delays", "function"), pairs, key)}


def algorithms(faithful: bool) -> tuple[str, ...]:
    """Return the algorithms of a replay."""
    return (*wang.TREES, *([each + AS_TABLES for each in wang.TREES] if faithful else RIVALS))


def run_task(setting: Setting, run: int, options: Options) -> dict[str, Any]:
    """Return the noiseless values of the recommendations at equally spaced times, and properties of the tree."""
    delays, function, algorithm = setting
    problem, duration = PROBLEMS[function], options.iterations
    rng = np.random.default_rng(seed_of(options.seed, *setting, run))
    if options.faithful:  # the authors' program, without noise
        if algorithm.endswith(OTHER_B):
            problem = replace(problem, b=wang.CHOSEN[function], factor=1.0)
        algorithm, tables, _ = algorithm.partition(AS_TABLES)
        settings: dict[str, Any] = {"duration": duration, "as_tables": bool(tables)}
        instances = wang.run_program(problem, delays, algorithm, rng, **settings)
        return _of_instances(instances, wang.program_value(problem), duration, side_by_side=bool(tables))
    noise = wang.noise("Gaussian", problem.variance, rng)
    if algorithm.startswith("PCTS"):
        curve, n = wang.paper_search(problem, algorithm, delays, duration, noise, math.sqrt(problem.variance), rng)
        return {"value": float(curve[-1]), "curve": curve, "n_evaluations": n}
    if algorithm.startswith("MFPOO"):  # MFPOO of Sen et al. 2018; the height of a cell determines the fidelity
        settings = {"duration": duration, "noise": noise, "variance": problem.variance}
        return _of_instances(wang.run_program(problem, delays, algorithm, rng, **settings), problem.value, duration)
    clock = rivals.WaitAndAct(problem.value, wang.endless(DELAYS[delays], rng), duration, noise)
    settings = {"cost": problem.function.cost} if algorithm in WITH_COST else {}
    rivals.wait_and_act(RIVALS[algorithm], clock, problem.d, rng, **settings)
    values = [problem.value(x) for x in clock.recommendations()]
    curve = wang.at_readings(np.array(clock.times), np.array(values), duration)
    return {"value": values[-1] if values else math.nan, "curve": curve, "n_evaluations": len(values)}


def _of_instances(
    instances: Sequence[Instance], f: Callable[[Array, float], float], duration: float, side_by_side: bool = False
) -> dict[str, Any]:
    times, values = best_so_far(instances, lambda x: f(x, 1.0), side_by_side=side_by_side)
    best = max(instances, key=lambda each: f(each.points[-1], 1.0))
    return {
        "value": float(values[-1]),
        "node_value": max(each.largest for each in instances),
        "curve": wang.at_readings(times, values, duration),
        "n_evaluations": sum(each.n_nodes for each in instances),
        **{key: getattr(best, key) for key in ("height", "n_nodes", "nu", "rho")},
    }


def describe(setting: Setting, results: Sequence[dict[str, Any]], known: Published) -> Report:
    """Return the results of an algorithm on a function."""
    values, optimum = report.values_of(results, "value"), PROBLEMS[setting.function].optimum
    described = setting._asdict() | wang.figures_of(values)
    described["regret"] = optimum - described["median"]
    described["published"] = known.get((*setting[:2], setting.algorithm.partition(AS_TABLES)[0]))
    described["curve_regret"] = wang.curve_regret(optimum, report.values_of(results, "curve"))
    for key in ("n_evaluations", "height", "n_nodes", "node_value"):
        if key in results[0]:
            described["node_median" if key == "node_value" else key] = np.median(report.values_of(results, key))
    for key, name in (("height", "heights"), ("node_value", "node_values")):
        if key in results[0]:
            described[name] = report.values_of(results, key)
    return described


def cells(described: Sequence[Report], known: Published) -> dict[str, list[Report]]:
    """For each version and measure, return a list with an entry for each function and delay: whether the better of the
    two PCTS algorithms is as good as published.

    The allowed regret is 1.1 times the published median plus the published standard deviation. The verdict compares the
    regrets of all runs with it.
    """
    found: dict[str, list[Report]] = {}
    versions = (
        (("", ""), "as the scripts"),
        ((AS_TABLES, AS_TABLES), "as the tables of trees show it"),
        ((AS_TABLES, AS_TABLES + OTHER_B), "with other b"),
    )
    for (ends, version), (measure, key), delays, (function, problem) in itertools.product(
        versions, MEASURES.items(), DELAYS, PROBLEMS.items()
    ):
        ends = ends if function in wang.CHOSEN else (ends[0], ends[0])
        settings = [(delays, function, each + end) for each, end in zip(BOTH, ends, strict=True)]
        ours = [s for s in described if key in s and (s["delays"], s["function"], s["algorithm"]) in settings]
        theirs = [known[delays, function, each] for each in BOTH if (delays, function, each) in known]
        if not ours or not theirs:
            continue
        best = max(theirs, key=lambda each: each["median"])
        better = max(ours, key=lambda each: each[key])
        regret, published = problem.optimum - better[key], problem.optimum - best["median"]
        row = {"delays": delays, "function": function, "regret": regret, "published": published}
        row["regrets"] = problem.optimum - np.asarray(better[VALUES[measure]], dtype=float)
        row["allowed"] = 1.1 * published + best["std"]
        found.setdefault(f"{version}, measure {measure}", []).append(row)
    rows = {(name, k): row for name, each in found.items() for k, row in enumerate(each)}
    pairs = {where: (row["regrets"], np.full(len(row["regrets"]), row["allowed"])) for where, row in rows.items()}
    for where, verdict in verdicts.verdicts(pairs).items():
        rows[where]["verdict"] = WITHIN[verdict]
    return found


def table(found: Report) -> str:
    """Return tables 4, 8, 5 and 9, and the comparison with the published medians."""
    parts = []
    header = ["", "max", "median", "std", "regret", "node median", "evaluations", "published median", "std"]
    layouts = dict(max=".6g", median=".6g", std=".2e", regret=".2e", node_median=".8g", n_evaluations=".0f")
    at_most = "" if found["faithful"] else f", {SLOW} at most {SLOW_RUNS}"
    for delays, distribution in DELAYS.items():
        shown = [each for each in found["settings"] if each["delays"] == delays]
        rows = []
        for each in shown:
            row = [format(each[key], layout) if key in each else "" for key, layout in layouts.items()]
            known = each["published"]
            row += ["", ""] if known is None else [f"{known['median']:.6g}", f"{known['std']:.2e}"]
            rows.append([f"{each['function']}, {each['algorithm']}", *row])
        title = f"Table {4 if delays == 'constant' else 8}: {distribution}, {found['duration']} units, "
        parts.append(title + f"{found['runs']} runs{at_most}\n" + report.format_table(header, rows))
        parts.append(_trees(delays, shown))
    parts += [_cells(*each) for each in found["cells"].items()] + [verdicts.table(found["verdicts"]), ORACLE]
    return "\n\n".join(part for part in parts if part)


def _trees(delays: str, shown: Sequence[Report]) -> str:
    rows = []
    for each in shown:
        if "height" in each:
            tree = wang.TREES.index(each["algorithm"].partition(AS_TABLES)[0])
            height, n_nodes = wang.PUBLISHED_TREES[delays, each["function"]][tree]
            ours = [f"{each['height']:.0f}", f"{each['n_nodes']:.0f}"]
            rows.append([f"{each['function']}, {each['algorithm']}", *ours, str(height), str(n_nodes)])
    title = f"Table {5 if delays == 'constant' else 9}: the best instance's tree, median over runs\n"
    return title + report.format_table(["", "height", "nodes", "published height", "nodes"], rows) if rows else ""


def _cells(version: str, rows: Sequence[Report]) -> str:
    lines = []
    for each in rows:
        numbers = [report.quartiles(each["regrets"]), *(f"{each[key]:.3g}" for key in ("published", "allowed"))]
        lines.append([f"{each['function']}, {each['delays']}", *numbers, each["verdict"]])
    n = sum(each["verdict"] == WITHIN[verdicts.BETTER] for each in rows)
    title = f"PCTS {version}: within 1.1 times the published regret + std in {n} of {len(rows)} cells\n"
    return title + report.format_table(["better PCTS", "regret (quartiles)", "published", "allowed", ""], lines)


def figure(found: Report) -> Any:
    """Return figures 2 and 4: median regret against time, constant delays above geometric delays."""
    panels: dict[str, list[Report]] = {}
    for each in sorted(found["settings"], key=lambda each: list(DELAYS).index(each["delays"])):
        panels.setdefault(f"{each['function']}, {each['delays']} delays", []).append(each)
    return wang.regret_figure(panels, found["duration"], len(panels) // len(DELAYS))


QUICK_NOISE = ("Hartmann3", "Branin")
#: Name → kind of noise, and the ratio of the variance here to the paper's variance.
NOISES = {
    "none": ("none", 0.0),
    "Gaussian": ("Gaussian", 1.0),
    "Laplace": ("Laplace", 1.0),
    "Gaussian, 4 times the variance": ("Gaussian", 4.0),
}
GP_UCB = "GP-UCB"
#: Suffix of the label of PCTS as the paper describes it, in contrast to the authors' program.
PAPER = ", uniform in cells"
NOISE_ALGORITHMS = (*wang.TREES, GP_UCB, *(each + PAPER for each in wang.TREES if each.startswith("PCTS")))


class NoiseSetting(NamedTuple):
    """An algorithm on a function with a kind of noise."""

    function: str
    noise: str
    algorithm: str


def make_noise(options: Options) -> Report:
    """All runs."""
    names = QUICK_NOISE if options.quick else tuple(PROBLEMS)
    settings = itertools.starmap(NoiseSetting, itertools.product(names, NOISES, NOISE_ALGORITHMS))
    described = [describe_noise(*each) for each in run_all(run_noise, settings, options, "pcts-noise").items()]
    # The paper's claim is about Hartmann6, the second function.
    claimed = [each for each in described if (each["function"], each["noise"]) == (names[1], "Laplace")]
    compared = verdicts.comparisons(claimed, ("function", "noise"), itertools.product(BOTH, (*WAITING, GP_UCB)))
    return {"duration": options.iterations, "settings": described, "verdicts": compared}


def run_noise(setting: NoiseSetting, run: int, options: Options) -> dict[str, Any]:
    """Return the noiseless value of the last recommendation of a run."""
    problem, algorithm, duration = PROBLEMS[setting.function], setting.algorithm, options.iterations
    kind, factor = NOISES[setting.noise]
    variance = factor * problem.variance
    rng = np.random.default_rng(seed_of(options.seed, *setting, run))
    noise = wang.noise(kind, variance, rng)
    if algorithm.endswith(PAPER):
        algorithm, std = algorithm.removesuffix(PAPER), math.sqrt(variance)
        curve, _ = wang.paper_search(problem, algorithm, "constant", duration, noise, std, rng)
        return {"value": float(curve[-1])}
    if algorithm == GP_UCB:
        clock = rivals.WaitAndAct(problem.value, wang.endless(DELAYS["constant"], rng), duration, noise)
        rivals.wait_and_act(rivals_bayesian.gp_ucb, clock, problem.d, rng)
        return {"value": problem.value(clock.recommendations()[-1])}
    settings: dict[str, Any] = {"duration": duration, "noise": noise}
    if not options.faithful:
        settings["variance"] = variance
    instances = wang.run_program(problem, "constant", algorithm, rng, **settings)
    return {"value": max(problem.value(each.points[-1]) for each in instances)}


def describe_noise(setting: NoiseSetting, results: Sequence[dict[str, Any]]) -> Report:
    """Return the results of an algorithm under one kind of noise."""
    described = setting._asdict() | wang.figures_of(report.values_of(results, "value"))
    return described | {"regret": PROBLEMS[setting.function].optimum - described["median"]}


def table_noise(found: Report) -> str:
    """Return median values with quartiles, with functions and noises as rows, and the verdicts."""
    rows: dict[str, list[str]] = {}
    for each in found["settings"]:
        rows.setdefault(f"{each['function']}, {each['noise']}", []).append(report.quartiles(each["values"], 5))
    title = f"Noise: median values (quartiles) after {found['duration']} units, {found['runs']} runs\n"
    shown = report.format_table(["", *NOISE_ALGORITHMS], [[name, *medians] for name, medians in rows.items()])
    return "\n\n".join([title + shown, verdicts.table(found["verdicts"]), ORACLE])


def figure_noise(found: Report) -> Any:
    """Return a figure of the median regret by noise, with a panel for each function."""
    names = dict.fromkeys(each["function"] for each in found["settings"])
    made, axes = plotting.grid(1, len(names))
    for name, ax in zip(names, axes, strict=True):
        for k, algorithm in enumerate(NOISE_ALGORITHMS):
            # The algorithms are side by side, so that equal values are seen.
            at = np.arange(len(NOISES)) + 0.1 * (k - (len(NOISE_ALGORITHMS) - 1) / 2)
            style: dict[str, Any] = {"color": PALETTE[k], "marker": wang.MARKERS[k], "linestyle": "none"}
            shown = [s for s in found["settings"] if (s["function"], s["algorithm"]) == (name, algorithm)]
            ax.plot(at, [max(each["regret"], wang.FLOOR) for each in shown], label=algorithm, markersize=5, **style)
        ax.set(title=name, yscale="log", xlabel="Noise", ylabel="Median simple regret")
        ax.set_xticks(range(len(NOISES)), [fill(noise, 12) for noise in NOISES], fontsize="x-small")
        ax.grid(alpha=0.3, axis="y")
    report.legend_below(made, len(names))
    return made


PCTS = "PCTS+DUCBV"
#: Name → number of evaluations in flight.
SR = {"SR, one at a time": 1, "SR, 30 at once": 30}


class RejectsSetting(NamedTuple):
    """An algorithm on a function."""

    function: str
    algorithm: str


def make_rejects(options: Options) -> Report:
    """All runs. Without noise all runs are equal, so there is one run."""
    if options.faithful and options.seed:
        problem = "--seed has no effect on pcts-sr --faithful, which has no noise and a constant delay: leave it out"
        raise InvalidSetting(problem)
    options = replace(options, runs=1) if options.faithful else options
    names = QUICK_FUNCTIONS if options.quick else tuple(PROBLEMS)
    settings = itertools.starmap(RejectsSetting, itertools.product(names, (PCTS, *SR)))
    described = [describe_rejects(*each) for each in run_all(run_rejects, settings, options, "pcts-sr").items()]
    made = {"runs": options.runs, "duration": options.iterations, "settings": described}
    if options.faithful:
        return made
    return made | {"verdicts": verdicts.comparisons(described, ("function",), [(PCTS, each) for each in SR])}


def run_rejects(setting: RejectsSetting, run: int, options: Options) -> dict[str, Any]:
    """Return the noiseless value of the recommendation at equally spaced times."""
    function, algorithm = setting
    if algorithm == PCTS:
        return run_task(Setting("constant", function, PCTS), run, options)
    problem = PROBLEMS[function]
    rng = np.random.default_rng(seed_of(options.seed, "SR", function, run))
    f = wang.program_value(problem) if options.faithful else problem.value
    noise = None if options.faithful else wang.noise("Gaussian", problem.variance, rng)
    delays = wang.endless(DELAYS["constant"], rng)
    evaluate = rivals.Batches(f, delays, options.iterations, SR[algorithm], noise)
    times, values = [], []
    with suppress(rivals.TimeIsUp):
        for point in rivals.rejecting_cells(evaluate, problem.d):
            times.append(evaluate.now)
            values.append(f(point, 1.0))
    curve = wang.at_readings(np.array(times), np.array(values), options.iterations)
    return {"value": values[-1], "curve": curve, "n_evaluations": evaluate.n, "levels": len(values)}


def describe_rejects(setting: RejectsSetting, results: Sequence[dict[str, Any]]) -> Report:
    """Return the results of an algorithm on a function."""
    optimum, values = PROBLEMS[setting.function].optimum, report.values_of(results, "value")
    described = {"values": values, "median_regret": optimum - np.median(values)}
    described["curve_regret"] = wang.curve_regret(optimum, report.values_of(results, "curve"))
    counted = [key for key in ("n_evaluations", "levels") if key in results[0]]
    described |= {key: np.median(report.values_of(results, key)) for key in counted}
    return {"levels": None} | setting._asdict() | described


def table_rejects(found: Report) -> str:
    """Return the median regret at the end, and its ratio to the median regret of PCTS."""
    rows = []
    for each in found["settings"]:
        regret, levels = each["median_regret"], each["levels"]
        best = report.find(found["settings"], function=each["function"], algorithm=PCTS)["median_regret"]
        regrets = PROBLEMS[each["function"]].optimum - np.asarray(each["values"], dtype=float)
        ratio = f"{regret / best:.3g}" if best > 0 else ""
        cells = [report.quartiles(regrets), ratio, f"{each['n_evaluations']:.0f}"]
        name = f"{each['function']}, {each['algorithm']}"
        rows.append([name, *cells, "" if levels is None else f"{levels:.0f}"])
    header = ["", "median regret (quartiles)", "ratio to PCTS", "evaluations", "levels"]
    parts = [f"Figure 5: {found['duration']} units, {found['runs']} runs\n{report.format_table(header, rows)}"]
    return "\n\n".join([*parts, *([verdicts.table(found["verdicts"])] if "verdicts" in found else [])])


def figure_rejects(found: Report) -> Any:
    """Return Figure 5: median regret against time."""
    panels: dict[str, list[Report]] = {}
    for each in found["settings"]:
        panels.setdefault(each["function"], []).append(each)
    return wang.regret_figure(panels, found["duration"], len(panels))


NOISE_LINE = (
    "Wang et al. 2022 on noise: tree search whose noise variance is known or not, Gaussian and Laplace, under delays"
)
REJECTS_LINE = "Wang et al. 2022, Figure 5: PCTS with DUCBV and the rejection of cells, with a constant delay of 4"
REPLAYS = [
    Replay("pcts", __doc__, make, table, figure, 10, wang.DURATION, 3, 200, ["scipy"], ["quick", "keep"]),
    Replay("pcts-noise", NOISE_LINE, make_noise, table_noise, figure_noise, 10, wang.DURATION, 3, options=["quick"]),
    Replay("pcts-sr", REJECTS_LINE, make_rejects, table_rejects, figure_rejects, 10, wang.DURATION, options=["quick"]),
]
