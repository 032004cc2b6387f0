"""Wang et al. 2022, tables 4, 5, 8 and 9: tree search under delays on five functions, with its rivals.

Runs have equal time, not equal evaluations: 600 units, with a constant delay of 4 or geometric delays of mean 10. PCTS
starts one evaluation per unit, also while results are in flight. Algorithms without delayed feedback start the next
evaluation when the last result has arrived. The value of a run is the noiseless value of the recommended point at full
fidelity. Tables show the median, and regret is measured from the paper's optimum. `belated.experiments.papers.wang` has
the settings.

By default algorithms follow the papers, and values are noisy. ``--faithful`` is the authors' program
(`belated.experiments.reference_tree`): no noise, full fidelity, cell centres, and the settings of the scripts. This
option runs the four tree searches, and a second version of each with the settings of tables 5 and 9. This version has
POO with three instances, 600 units of cost for each instance, and the fidelity of the cells. Its results are late by
milliseconds, as in real time. The tables have both measures of a run: ``full`` is the value of the recommended point at
full fidelity; ``node`` is the largest value of a node at the fidelity of this node, which the program prints.
``--data`` adds the published medians. ``--iterations T`` is the time of a run. ``--quick`` is three runs of 200 units
on the functions in two and three dimensions. ``--keep DIR`` keeps each finished run.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import belated as bl
from belated import plotting
from belated.experiments import rivals
from belated.experiments.papers import wang
from belated.experiments.papers.wang import DELAYS, PROBLEMS
from belated.experiments.reference_tree import Instance, best_so_far
from belated.experiments.report import format_table
from belated.experiments.runner import Options, about, kept_map, seed_of
from belated.simulate import simulate

DEFAULT_RUNS = wang.RUNS
NEEDS = ("scipy",)
OPTIONS = ("quick", "keep")
QUICK_RUNS, QUICK_DURATION = 3, 200
QUICK_FUNCTIONS = ("Hartmann3", "CurrinExp", "Branin")
N_READINGS = 60
#: The two values of a run (at full fidelity, and as the authors' program prints it) → their medians over runs.
MEASURES = {"full": "median", "node": "node_median"}
#: Label of the program with the settings of the paper's tables of trees; see `belated.experiments.papers.wang`.
AS_TABLES = ", as the tables"

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """One run of an algorithm."""

    delays: str
    function: str
    algorithm: str
    run: int
    duration: int
    seed: int
    faithful: bool

    def name(self) -> str:
        """Return a name that contains all data that the result depends on."""
        algorithm = self.algorithm.replace(AS_TABLES, "-tables")
        parts = (self.delays, self.function, algorithm, f"T{self.duration}", f"seed{self.seed}", f"run{self.run}")
        return "_".join([*parts, *(["faithful"] if self.faithful else [])])


def run(options: Options) -> dict[str, Any]:
    """All runs of all algorithms."""
    n_runs = options.runs or (QUICK_RUNS if options.quick else DEFAULT_RUNS)
    duration = options.iterations or (QUICK_DURATION if options.quick else wang.DURATION)
    names = QUICK_FUNCTIONS if options.quick else tuple(PROBLEMS)
    settings = [(delays, name, each) for delays in DELAYS for name in names for each in algorithms(options.faithful)]
    tasks = [
        Task(*setting, run, duration, options.seed, options.faithful) for run in range(n_runs) for setting in settings
    ]
    results = kept_map(run_task, {task.name(): task for task in tasks}, options.keep, options.workers, "pcts")
    by_setting: dict[tuple[str, str, str], list[dict[str, Any]]] = {setting: [] for setting in settings}
    for task in tasks:
        by_setting[task.delays, task.function, task.algorithm].append(results[task.name()])
    known = wang.published(options.data)
    described = [describe(*setting, found, known) for setting, found in by_setting.items()]
    report = about(options, n_runs) | {"duration": duration, "settings": described}
    return report | {"cells": cells(described, known)}


def algorithms(faithful: bool) -> tuple[str, ...]:
    """Return the algorithms of a replay."""
    if faithful:
        return (*wang.TREES, *(each + AS_TABLES for each in wang.TREES))
    return (*wang.TREES, *wang.OTHERS)


def run_task(task: Task) -> dict[str, Any]:
    """Return the noiseless value of the recommendation at equally spaced times, and properties of the tree."""
    rng = np.random.default_rng(seed_of(task.seed, task.delays, task.function, task.algorithm, task.run))
    if task.faithful:
        return _run_program(task, rng)
    if task.algorithm.startswith("PCTS"):
        return _run_tree_search(task, rng)
    if task.algorithm.startswith("MFPOO"):
        return _run_mfpoo(task, rng)
    return _run_rival(task, rng)


def _run_program(task: Task, rng: np.random.Generator) -> dict[str, Any]:
    """Run the authors' program, without noise and at full fidelity."""
    problem = PROBLEMS[task.function]
    tables = task.algorithm.endswith(AS_TABLES)
    algorithm = task.algorithm.removesuffix(AS_TABLES)
    instances = wang.run_program(
        problem, task.delays, algorithm, rng, duration=task.duration, fidelity=tables, as_tables=tables
    )
    return _of_instances(task, instances, wang.program_value(problem), side_by_side=tables)


def _run_mfpoo(task: Task, rng: np.random.Generator) -> dict[str, Any]:
    """Run MFPOO of Sen et al. 2018, with noise, and with fidelity by height."""
    problem = PROBLEMS[task.function]
    instances = wang.run_program(
        problem,
        task.delays,
        task.algorithm,
        rng,
        duration=task.duration,
        noise=wang.noise("Gaussian", problem.variance, rng),
        fidelity=True,
        f=problem.value,
        width=wang.paper_width(task.algorithm, problem.variance),
    )
    return _of_instances(task, instances, problem.value)


def _of_instances(
    task: Task, instances: Sequence[Instance], f: Callable[[Array, float], float], side_by_side: bool = False
) -> dict[str, Any]:
    times, values = best_so_far(instances, lambda x: f(x, 1.0), side_by_side=side_by_side)
    best = max(instances, key=lambda each: f(each.points[-1], 1.0))
    return {
        "value": float(values[-1]),
        "node_value": max(each.largest for each in instances),
        "curve": at_readings(times, values, task.duration),
        "n_evaluations": sum(each.n_nodes for each in instances),
        "height": best.height,
        "n_nodes": best.n_nodes,
        "nu": best.nu,
        "rho": best.rho,
    }


def _run_rival(task: Task, rng: np.random.Generator) -> dict[str, Any]:
    problem = PROBLEMS[task.function]
    clock = rivals.WaitAndAct(
        problem.value,
        wang.endless(DELAYS[task.delays], rng),
        task.duration,
        wang.noise("Gaussian", problem.variance, rng),
    )
    rival, settings = RIVALS[task.algorithm], {}
    if task.algorithm in WITH_COST:
        settings["cost"] = problem.function.cost
    rivals.wait_and_act(rival, clock, problem.d, rng, **settings)
    values = [problem.value(x) for x in clock.recommendations()]
    return {
        "value": values[-1] if values else float("nan"),
        "curve": at_readings(np.array(clock.times), np.array(values), task.duration),
        "n_evaluations": len(values),
    }


def _run_tree_search(task: Task, rng: np.random.Generator) -> dict[str, Any]:
    problem = PROBLEMS[task.function]
    noise = wang.noise("Gaussian", problem.variance, rng)
    std = math.sqrt(problem.variance)
    value, n = paper_search(problem, task.algorithm, task.delays, task.duration, noise, std, rng)
    return {"value": value, "curve": np.full(N_READINGS + 1, value), "n_evaluations": n}


def paper_search(
    problem: wang.Problem,
    algorithm: str,
    delays: str,
    duration: int,
    noise: Callable[[], float] | None,
    noise_std: float,
    rng: np.random.Generator,
) -> tuple[float, int]:
    """Return the noiseless value of the recommendation of the paper's PCTS, and the number of its values.

    One evaluation starts in every unit, at a uniform point of its cell, and its leaf is expanded at once. The
    evaluation is at full fidelity, because the delay is the same at any fidelity and a lower fidelity would not save
    time.
    """
    optimizer = tree_search(problem, algorithm, noise_std, int(rng.integers(2**31)))

    def noisy(params: Mapping[str, float]) -> float:
        return problem.function(params) + (0.0 if noise is None else noise())

    history = simulate(optimizer, noisy, duration, DELAYS[delays], seed=int(rng.integers(2**31)))
    return problem.function(optimizer.recommend()), int(np.sum(history.arrivals <= duration))


def tree_search(problem: wang.Problem, algorithm: str, noise_std: float, seed: int) -> bl.TreeSearch:
    """Return the optimizer of PCTS as in the paper; other code of the replays calls this function."""
    bound = bl.DUCBV(b=wang.B) if algorithm == "PCTS+DUCBV" else bl.DUCB1Sigma(noise_std=noise_std)
    return bl.TreeSearch(
        problem.function.space, bound=bound, nu=wang.bias_constant(problem), rho=wang.smoothness(), seed=seed
    )


def at_readings(times: Array, values: Array, duration: float) -> Array:
    """Return values at equally spaced times; NaN before the first value."""
    at = np.searchsorted(times, np.linspace(0, duration, N_READINGS + 1), side="right")
    return np.concatenate([[math.nan], values])[at]


def describe(
    delays: str,
    function: str,
    algorithm: str,
    results: Sequence[dict[str, Any]],
    known: Mapping[tuple[str, str, str], dict[str, float]],
) -> dict[str, Any]:
    """Return the figures of an algorithm on a function."""
    values = np.array([result["value"] for result in results], dtype=float)
    optimum = PROBLEMS[function].optimum
    curves = np.array([result["curve"] for result in results], dtype=float)
    described = {
        "delays": delays,
        "function": function,
        "algorithm": algorithm,
        "values": values,
        "max": values.max(),
        "median": np.median(values),
        "std": values.std(),
        "regret": optimum - np.median(values),
        "n_evaluations": np.median([result["n_evaluations"] for result in results]),
        "published": known.get((delays, function, algorithm.removesuffix(AS_TABLES))),
        "curve_median_regret": optimum - np.median(curves, axis=0),
    }
    for key in ("height", "n_nodes"):
        if key in results[0]:
            described[key] = np.median([result[key] for result in results])
    if "node_value" in results[0]:
        described["node_median"] = np.median([result["node_value"] for result in results])
    return described


def cells(
    described: Sequence[dict[str, Any]], known: Mapping[tuple[str, str, str], dict[str, float]]
) -> dict[str, list[dict[str, Any]]]:
    """Return version and measure → for each setting, whether the better PCTS is as good as published.

    The median regret may be at most 1.1 times the published median plus the published standard deviation.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    versions = (("", "as the scripts"), (AS_TABLES, "as the tables of trees show it"))
    for (end, version), (measure, key) in itertools.product(versions, MEASURES.items()):
        rows = []
        for delays in DELAYS:
            for function, problem in PROBLEMS.items():
                ours = [
                    each[key]
                    for each in described
                    if key in each
                    and (each["delays"], each["function"]) == (delays, function)
                    and each["algorithm"] in ("PCTS+DUCB1-sigma" + end, "PCTS+DUCBV" + end)
                ]
                theirs = [known.get((delays, function, each)) for each in ("PCTS+DUCB1-sigma", "PCTS+DUCBV")]
                published = [each for each in theirs if each is not None]
                if not ours or not published:
                    continue
                best = max(published, key=lambda each: each["median"])
                allowed = 1.1 * (problem.optimum - best["median"]) + best["std"]
                regret = problem.optimum - max(ours)
                rows.append(
                    {
                        "delays": delays,
                        "function": function,
                        "regret": regret,
                        "published": problem.optimum - best["median"],
                        "allowed": allowed,
                        "within": bool(regret <= allowed),
                    }
                )
        if rows:
            found[f"{version}, measure {measure}"] = rows
    return found


def table(report: dict[str, Any]) -> str:
    """Return tables 4 and 8, 5 and 9, and the comparison with the published medians."""
    parts = []
    for delays, distribution in DELAYS.items():
        shown = [each for each in report["settings"] if each["delays"] == delays]
        header = ["", "max", "median", "std", "regret", "node median", "evaluations", "published median", "std"]
        rows = [
            [
                f"{each['function']}, {each['algorithm']}",
                *(f"{each[key]:.6g}" for key in ("max", "median")),
                *(f"{each[key]:.2e}" for key in ("std", "regret")),
                f"{each['node_median']:.8g}" if "node_median" in each else "",
                f"{each['n_evaluations']:.0f}",
                *_published(each["published"]),
            ]
            for each in shown
        ]
        title = f"Table {4 if delays == 'constant' else 8}: {distribution}, {report['duration']} units, "
        parts.append(title + f"{report['runs']} runs\n" + format_table(header, rows))
        parts.append(_trees(delays, shown))
    parts.extend(_sentences(report))
    return "\n\n".join(part for part in parts if part)


def _published(known: Mapping[str, float] | None) -> list[str]:
    return ["", ""] if known is None else [f"{known['median']:.6g}", f"{known['std']:.2e}"]


def _trees(delays: str, shown: Sequence[dict[str, Any]]) -> str:
    rows = []
    for each in shown:
        if "height" not in each:
            continue
        sizes = wang.PUBLISHED_TREES[delays, each["function"]]
        height, n_nodes = sizes[wang.TREES.index(each["algorithm"].removesuffix(AS_TABLES))]
        rows.append(
            [
                f"{each['function']}, {each['algorithm']}",
                *(f"{each[key]:.0f}" for key in ("height", "n_nodes")),
                str(height),
                str(n_nodes),
            ]
        )
    title = f"Table {5 if delays == 'constant' else 9}: the best instance's tree, median over runs\n"
    return title + format_table(["", "height", "nodes", "published height", "nodes"], rows) if rows else ""


def _sentences(report: dict[str, Any]) -> list[str]:
    parts = []
    for version, rows in report["cells"].items():
        header = ["better PCTS", "regret", "published", "allowed", ""]
        lines = [
            [
                f"{each['function']}, {each['delays']}",
                *(f"{each[key]:.3g}" for key in ("regret", "published", "allowed")),
                "within" if each["within"] else "not within",
            ]
            for each in rows
        ]
        n = sum(each["within"] for each in rows)
        title = f"PCTS {version}: within 1.1 times the published regret + std in {n} of {len(rows)} cells\n"
        parts.append(title + format_table(header, lines))
    return parts


def draw(report: dict[str, Any], path: Path) -> None:
    """Draw figures 2 and 4: median regret against time, constant delays above geometric ones."""
    names = list(dict.fromkeys(each["function"] for each in report["settings"]))
    figure, axes = plotting.grid(len(DELAYS), len(names))
    panels = [(delays, name) for delays in DELAYS for name in names]
    x = np.linspace(0, report["duration"], N_READINGS + 1)
    for (delays, name), ax in zip(panels, axes, strict=True):
        curves = []
        for each in report["settings"]:
            if (each["delays"], each["function"]) == (delays, name):
                # A regret below the precision of the paper's optimum is 0 or less.
                regret = np.maximum(np.asarray(each["curve_median_regret"], dtype=float), 1e-7)
                curves.append((each["algorithm"], regret, np.zeros_like(regret)))
        plotting.plot_curves(
            curves,
            ax,
            x=x,
            title=f"{name}, {delays} delays",
            xlabel="Time",
            ylabel="Median simple regret",
            log=True,
            bands=False,
            dashes=["-" if name.startswith("PCTS") else "--" for name, _, _ in curves],
        )
        # Only one panel has a legend, because the algorithms are the same in all panels.
        legend = ax.get_legend()
        if legend is not None and ax is not axes[0]:
            legend.remove()
    plotting.save(figure, path)


RIVALS: Mapping[str, Callable[..., None]] = {
    "GP-UCB": rivals.gp_ucb,
    "MF-GP-UCB": rivals.mf_gp_ucb,
    "BOCA": rivals.boca,
    "GP-EI": rivals.gp_ei,
    "MF-SKO": rivals.mf_sko,
    "OGD": rivals.ogd,
    "DBGD": rivals.dbgd,
}
#: Algorithms that choose fidelities by their cost.
WITH_COST = ("MF-GP-UCB", "BOCA", "MF-SKO")
