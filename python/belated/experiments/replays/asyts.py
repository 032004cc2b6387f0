"""Kandasamy et al. 2017, Figures 2, 4 and 5: workers in simulated time on ten functions, eleven methods.

M workers evaluate with noise. For synchronous and asynchronous methods, the curves show the simple regret of the
arrived results against simulated time. For seqTS, synTS and asyTS on Hartmann6, they show it against the number of
evaluations. The maximum of a draw is then found by DIRECT, as in the paper. `belated.experiments.papers.kandasamy`
gives the sources of the settings. All methods of a run share initial points, and the k-th trial has the same evaluation
time and noise. In addition, asyTS, synTS and asyRAND run on all ten functions with half-normal times, to count the
functions on which asyTS is better.

``--iterations T`` is the simulated time of a run, 30 by default. The runs whose regret is plotted against the number of
evaluations have M·T evaluations.
``--quick`` is five functions, T = 10 and 3 runs. ``--keep DIR`` keeps each finished run, so that a stopped replay can
continue. All methods make their first run before the second runs begin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from belated import plotting
from belated.experiments.papers import kandasamy
from belated.experiments.papers.kandasamy import FUNCTIONS, PANELS, TIMES, WORKERS
from belated.experiments.report import format_table, mean_stderr
from belated.experiments.runner import Options, about, kept_map, seed_of
from belated.simulate import History, n_converted, simple_regret, simulate_workers

DEFAULT_RUNS = 15
NEEDS: tuple[str, ...] = ()
OPTIONS = ("quick", "keep")
DURATION = 30
QUICK_RUNS, QUICK_DURATION = 3, 10
QUICK_FUNCTIONS = ("branin", "currin-exponential", "hartmann3", "park1", "hartmann6")
COUNTED = "half-normal"
COMPARED = ("asyRAND", "synTS", "asyTS")
BY_EVALUATIONS = "hartmann6"
N_READINGS = 60

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """One run of a method. ``times`` is "evaluations" if the regret is plotted against the number of evaluations."""

    function: str
    times: str
    method: str
    run: int
    duration: int
    seed: int
    faithful: bool

    def name(self) -> str:
        """Return a name that contains all data that the result depends on."""
        parts = (self.function, self.times, self.method, f"T{self.duration}", f"seed{self.seed}", f"run{self.run}")
        return "_".join([*parts, *(["faithful"] if self.faithful else [])])


def run(options: Options) -> dict[str, Any]:
    """Run all methods. A run that two panels show is made once."""
    n_runs = options.runs or (QUICK_RUNS if options.quick else DEFAULT_RUNS)
    duration = options.iterations or (QUICK_DURATION if options.quick else DURATION)
    settings = list(dict.fromkeys(every_setting(QUICK_FUNCTIONS if options.quick else tuple(FUNCTIONS))))
    tasks = [
        Task(*setting, run, duration, options.seed, options.faithful) for run in range(n_runs) for setting in settings
    ]
    results = kept_map(run_task, {task.name(): task for task in tasks}, options.keep, options.workers, "asyts")
    by_setting: dict[tuple[str, str, str], list[dict[str, Any]]] = {setting: [] for setting in settings}
    for task in tasks:
        by_setting[task.function, task.times, task.method].append(results[task.name()])
    described = [describe(*setting, found) for setting, found in by_setting.items()]
    return about(options, n_runs) | {"duration": duration, "settings": described, "counts": counts(described)}


def every_setting(names: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return (function, times, method) of the panels of these functions, and of the runs that are counted."""
    panels = [panel for panel in PANELS if panel.function in names]
    settings = [(panel.function, panel.times, method) for panel in panels for method in kandasamy.METHODS]
    settings += [(BY_EVALUATIONS, "evaluations", method) for method in kandasamy.BY_EVALUATIONS]
    return settings + [(name, COUNTED, method) for name in names for method in COMPARED]


def run_task(task: Task) -> dict[str, Any]:
    """Return regret at equally spaced times, or after 0, 1, 2, … evaluations."""
    function, workers = FUNCTIONS[task.function], WORKERS[task.function]
    by_evaluations = task.times == "evaluations"
    mode = kandasamy.mode(task.method)
    n_trials = workers * task.duration
    n_initial = kandasamy.n_initial(function, workers)
    rng = np.random.default_rng(seed_of(task.seed, "initial", task.function, task.run))
    points = kandasamy.initial_points(function, n_initial, rng)
    values = np.array([function(point) for point in points])
    optimizer = kandasamy.optimizer(
        task.method,
        function,
        seed_of(task.seed, "optimizer", task.function, task.times, task.method, task.run),
        n_trials=n_initial + n_trials,
        faithful=task.faithful,
        direct=by_evaluations,
    )
    optimizer.add(points, values + function.noise_std * rng.standard_normal(n_initial))
    history = simulate_workers(
        optimizer,
        function,
        workers=1 if mode == "sequential" else workers,
        times=TIMES[COUNTED if by_evaluations else task.times],
        duration=None if by_evaluations else task.duration,
        n_trials=n_trials if by_evaluations else None,
        mode=mode,
        noise=function.noise_std,
        seed=seed_of(task.seed, "simulation", task.function, task.times, task.run),
    )
    before = function.optimum - values.max()
    at = np.sort(history.arrivals) if by_evaluations else readings(task.duration)
    regret = np.minimum(before, simple_regret(history, function.optimum, at=at, before=before))
    return {
        "regret": [before, *regret] if by_evaluations else regret,
        "n_evaluations": finished(history, by_evaluations, task.duration),
        "seconds_per_suggestion": history.seconds.mean(),
    }


def readings(duration: int) -> Array:
    """Return the times at which regret is read."""
    return np.linspace(0, duration, N_READINGS + 1)


def finished(history: History, all_of_them: bool, duration: int) -> int:
    """Return the number of results that had arrived at the end."""
    return len(history) if all_of_them else int(n_converted(history, at=[duration])[0])


def describe(function: str, times: str, method: str, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of a method in a panel."""
    curves = np.array([result["regret"] for result in results])
    mean, stderr = mean_stderr(curves)
    return {
        "function": function,
        "times": times,
        "method": method,
        "workers": 1 if method == "seqTS" else WORKERS[function],
        "final": curves[:, -1],
        "mean": mean[-1],
        "stderr": stderr[-1],
        "median": np.median(curves[:, -1]),
        "n_evaluations": np.mean([result["n_evaluations"] for result in results]),
        "seconds_per_suggestion": np.mean([result["seconds_per_suggestion"] for result in results]),
        "curve_mean": mean,
        "curve_stderr": stderr,
    }


def counts(described: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Count the functions with half-normal times on which asyTS ends with less regret than asyRAND.

    Also count the functions on which asyTS is worse than synTS by at most two standard errors of the paired difference.
    """
    found: dict[str, Any] = {"functions": {}}
    for name in FUNCTIONS:
        final = {s["method"]: s["final"] for s in described if (s["function"], s["times"]) == (name, COUNTED)}
        if not set(COMPARED) <= set(final):
            continue
        difference = final["asyTS"] - final["synTS"]
        n = len(difference)
        stderr = float(difference.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
        found["functions"][name] = {
            "mean": {method: float(final[method].mean()) for method in COMPARED},
            "median": {method: float(np.median(final[method])) for method in COMPARED},
            "beats_random": bool(final["asyTS"].mean() < final["asyRAND"].mean()),
            "difference_to_synTS": float(difference.mean()),
            "stderr": stderr,
            # A single run has no standard error.
            "no_worse_than_synTS": bool(difference.mean() <= 2 * stderr) if n > 1 else None,
        }
    for claim in ("beats_random", "no_worse_than_synTS"):
        claims = [each[claim] for each in found["functions"].values()]
        found[claim] = None if None in claims else sum(claims)
    return found


def find(report: dict[str, Any], function: str, times: str) -> dict[str, dict[str, Any]]:
    """Return method → its figures in a panel, with the methods in the order of the paper."""
    found = {s["method"]: s for s in report["settings"] if (s["function"], s["times"]) == (function, times)}
    order = dict.fromkeys((*kandasamy.METHODS, *kandasamy.BY_EVALUATIONS))
    return {method: found[method] for method in order if method in found}


def table(report: dict[str, Any]) -> str:
    """Return tables of the regret at the end by panel and method, the curves by evaluations, and the counts."""
    panels = [panel for panel in PANELS if find(report, panel.function, panel.times)]
    parts = [f"Figures 2, 4 and 5: simple regret at time {report['duration']}, {report['runs']} runs"]
    header = ["panel", *kandasamy.METHODS]
    rows = []
    for panel in panels:
        shown = find(report, panel.function, panel.times)
        rows.append([str(panel), *(f"{shown[method]['mean']:.3g}" for method in kandasamy.METHODS)])
        rows.append(["  standard error", *(f"{shown[method]['stderr']:.2g}" for method in kandasamy.METHODS)])
        rows.append(["  median", *(f"{shown[method]['median']:.3g}" for method in kandasamy.METHODS)])
        rows.append(["  evaluations", *(f"{shown[method]['n_evaluations']:.0f}" for method in kandasamy.METHODS)])
    parts.append(format_table(header, rows))
    parts.append(_by_evaluations(report))
    parts.append("\n".join(_sentences(report)))
    return "\n\n".join(parts)


def _by_evaluations(report: dict[str, Any]) -> str:
    shown = find(report, BY_EVALUATIONS, "evaluations")
    n = len(next(iter(shown.values()))["curve_mean"]) - 1
    at = [k for k in (1, 3, 10, 30, 100, 300) if k <= n]
    rows = [
        [method, *(f"{s['curve_mean'][k]:.2g} ± {s['curve_stderr'][k]:.1g}" for k in at)] for method, s in shown.items()
    ]
    title = f"Figure 2, first panel: {BY_EVALUATIONS}, simple regret after n evaluations\n"
    return title + format_table(["n", *map(str, at)], rows)


def _sentences(report: dict[str, Any]) -> list[str]:
    outcome = report["counts"]
    n = len(outcome["functions"])
    lines = [f"asyTS with {COUNTED} times, {report['runs']} runs of {n} functions:"]
    lines.append(f"  less regret than asyRAND at the end: {outcome['beats_random']} of {n}")
    within = outcome["no_worse_than_synTS"]
    counted = "one run cannot tell" if within is None else f"{within} of {n}"
    lines.append(f"  no worse than synTS by two standard errors of the paired difference: {counted}")
    rows = [
        [
            name,
            *(f"{each['mean'][method]:.3g} ({each['median'][method]:.3g})" for method in COMPARED),
            f"{each['difference_to_synTS']:.2g} ± {each['stderr']:.2g}",
        ]
        for name, each in outcome["functions"].items()
    ]
    header = ["mean (median) regret", *COMPARED, "asyTS - synTS"]
    return lines + format_table(header, rows).splitlines()


def draw(report: dict[str, Any], path: Path) -> None:
    """Draw figures 2, 4 and 5: regret on a logarithmic axis, dashed for synchronous methods."""
    panels = [panel for panel in PANELS if find(report, panel.function, panel.times)]
    columns = 3
    figure, axes = plotting.grid(-(-(len(panels) + 1) // columns), columns)
    shown = find(report, BY_EVALUATIONS, "evaluations")
    _draw_panel(axes[0], shown, f"{BY_EVALUATIONS}, M = {WORKERS[BY_EVALUATIONS]}", None)
    for panel, ax in zip(panels, axes[1:], strict=False):
        _draw_panel(ax, find(report, panel.function, panel.times), str(panel), readings(report["duration"]))
        # Only one panel has a legend, because the methods are the same in all panels, and a legend of ten lines hides
        # curves.
        legend = ax.get_legend()
        if legend is not None and ax is not axes[1]:
            legend.remove()
    for ax in axes[len(panels) + 1 :]:
        ax.axis("off")
    plotting.save(figure, path)


def _draw_panel(ax: Any, shown: dict[str, dict[str, Any]], title: str, x: Array | None) -> None:
    curves = [(method, s["curve_mean"], s["curve_stderr"]) for method, s in shown.items()]
    dashes = ["--" if method.startswith("syn") else "-" for method in shown]
    plotting.plot_curves(
        curves,
        ax,
        x=x,
        title=title,
        xlabel="Evaluations n" if x is None else "Simulated time T",
        ylabel="Simple regret",
        log=True,
        bands=x is None,
        dashes=dashes,
    )
    ax.title.set_fontsize("small")
