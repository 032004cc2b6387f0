"""Kandasamy et al. 2017, Figures 2, 4 and 5: eleven methods on ten functions, with workers in simulated time.

M workers evaluate a noisy function. For synchronous and asynchronous methods, the curves show the simple regret of the
arrived results against simulated time. For seqTS, synTS and asyTS on Hartmann6, the curves show the regret against the
number of evaluations. In these runs, DIRECT finds the maximum of each draw, as in the paper. All methods of a run share
the initial points, and the k-th trial has the same evaluation time and noise for every method. One of the two
distributions of evaluation times is half-normal for every function. For these panels, the replay counts the functions
on which asyTS has less regret than synTS and asyRAND.

The paper states the methods, the functions, the noise and the distributions of evaluation times, which have mean 1. All
methods share random initial points, and curves begin after these points. For Hartmann6 the paper states about 12·30
evaluations of an asynchronous method, and 12·30/log(8) of a synchronous method, so M is 12 or 8; here M = 12 and
T = 30. For the other panels, M and the distributions appear only in the titles of the figures, which the text of the
paper does not repeat. M and the two distributions of each function below are our choice, with more workers in more
dimensions. The number of initial points is max(M, min(6d, 25)), as in the authors' code. Here the values of the initial
points are known at time 0. In the authors' code, workers evaluate the initial points like all other points, and do so
asynchronously even if the method is synchronous.

``--iterations T`` is the simulated time of a run, 30 by default. The runs whose regret is plotted against the number of
evaluations have M·T evaluations.
``--quick`` makes 20 runs on five functions with T = 10. ``--keep DIR`` keeps each finished run, so that a stopped
replay can continue.

The replay ``asyts-workers`` varies M from 1 to 32, on two functions with exponential times, T = 10 by default. All
numbers of workers share min(6d, 25) initial points. With one worker, asyTS and synTS are seqTS. A second group of runs
has `N_EVALUATIONS` evaluations instead of a duration.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import belated as bl
from belated import functions, simulate
from belated.functions import Function
from belated.replays import report
from belated.replays.report import Report
from belated.replays.runner import Options, Replay, run_all, seed_of
from belated.replays.verdicts import verdicts

METHODS = ("synRAND", "synBUCB", "synUCBPE", "synTS", "asyRAND", "asyUCB", "asyHUCB", "asyEI", "asyHTS", "asyTS")
#: Methods that are compared by the number of evaluations.
SEQUENTIAL = ("seqTS", "synTS", "asyTS")
EVERY_METHOD = tuple(dict.fromkeys((*METHODS, *SEQUENTIAL)))
#: Methods whose wins are counted, and the distribution of evaluation times in these panels.
COMPARED, COUNTED = ("asyRAND", "synTS", "asyTS"), "half-normal"
MODES: Mapping[str, Any] = {"syn": "synchronous", "asy": "asynchronous", "seq": "sequential"}
DASHES: Mapping[str, str] = {"syn": "--", "asy": "-", "seq": ":"}

#: Function → number of workers M, and evaluation times of the panels of figures 4 and 5; our choice. The paper's text
#: has 12·30 evaluations on Hartmann6. Figure 2 shows some of these panels.
SETUP: Mapping[Function, tuple[int, Sequence[str]]] = {
    functions.BRANIN: (4, ["uniform", "half-normal"]),
    functions.CURRIN_EXPONENTIAL: (4, ["Pareto", "half-normal"]),
    functions.HARTMANN3: (8, ["half-normal", "exponential"]),
    functions.PARK1: (10, ["half-normal", "uniform"]),
    functions.PARK2: (10, ["half-normal", "uniform"]),
    functions.HARTMANN6: (12, ["exponential", "half-normal"]),
    functions.HARTMANN12: (12, ["half-normal", "exponential"]),
    functions.CURRIN_EXPONENTIAL_14: (25, ["Pareto", "half-normal"]),
    functions.PARK2_16: (20, ["half-normal", "uniform"]),
    functions.HARTMANN18: (25, ["half-normal", "Pareto"]),
}
FUNCTIONS = {function.name: function for function in SETUP}
WORKERS = {function.name: workers for function, (workers, _) in SETUP.items()}
PANELS = [(function.name, times) for function, (_, listed) in SETUP.items() for times in listed]
QUICK_FUNCTIONS = ("branin", "currin-exponential", "hartmann3", "park1", "hartmann6")
BY_EVALUATIONS = "hartmann6"
#: Numbers of evaluations after which these regrets are shown, and after which they are compared.
SHOWN_AFTER, COMPARED_AFTER = (1, 3, 10, 30, 60, 100, 300), (10, 30, 100)
#: All distributions have mean 1. The power 5 of Pareto's distribution comes from the authors' code.
TIMES: Mapping[str, simulate.DelayDistribution] = {
    "uniform": simulate.Uniform(0.0, 2.0),
    "half-normal": simulate.HalfNormal(),
    "exponential": simulate.Exponential(),
    "Pareto": simulate.Pareto(power=5.0),
}
N_READINGS = 60
#: The regret below which the axis of a panel is linear, if methods reach a regret of 0.
LINEAR = 1e-3
#: A smaller regret counts as 0.
ZERO = 1e-9

#: Number of evaluations by DIRECT. The paper does not state this number. N_DIRECT is the smallest number of points that
# the authors' code scores.
N_DIRECT = 2000
#: Arguments of `belated.algorithm` with ``--faithful``: settings that the authors' code has and the paper omits or
#: states differently.
FAITHFUL: Mapping[str, Any] = {"surrogate__refit_every": 27, "surrogate__priors": False}
#: Additional arguments for methods with upper confidence bounds.
FAITHFUL_UCB: Mapping[str, Any] = {"acquisition__beta": "kandasamy_code"}


#: Numbers of workers that are compared, the functions and the distribution of evaluation times in these runs, the
#: number of evaluations in the runs without a duration, and the numbers of evaluations in the table.
COMPARED_WORKERS, WORKERS_FUNCTIONS, WORKERS_TIMES = (1, 2, 4, 8, 16, 32), ("hartmann3", "hartmann6"), "exponential"
N_EVALUATIONS, TABLED_EVALUATIONS = 100, (50, 100)


class Setting(NamedTuple):
    """A method on a function. ``times`` is "evaluations" if the regret is plotted against the number of evaluations."""

    function: str
    times: str
    method: str


class WorkersSetting(NamedTuple):
    """A method with a number of workers, on a function. ``times`` is as in `Setting`."""

    function: str
    times: str
    method: str
    workers: int


def make(options: Options) -> Report:
    """Run all methods. If two panels show the same run, the run is made once."""
    settings = every_setting(QUICK_FUNCTIONS if options.quick else tuple(FUNCTIONS))
    described = [describe(*each) for each in run_all(run_task, settings, options, "asyts").items()]
    found = {"duration": options.iterations, "settings": described, "counts": counts(described)}
    return found | {"verdicts": against_rivals(found)}


def every_setting(names: Sequence[str]) -> list[Setting]:
    """Return the settings of the panels for these functions, and of the regret by number of evaluations."""
    panels = [panel for panel in PANELS if panel[0] in names]
    settings = [Setting(*panel, method) for panel in panels for method in METHODS]
    return settings + [Setting(BY_EVALUATIONS, "evaluations", method) for method in SEQUENTIAL]


def n_initial(function: Function) -> int:
    """Return the number of random initial points of a run."""
    return max(WORKERS[function.name], min(6 * len(function.space), 25))


def initial_points(function: Function, n: int, rng: np.random.Generator) -> list[dict[str, float]]:
    """Return uniformly random points."""
    low, high = np.array([(dimension.low, dimension.high) for dimension in function.space.values()]).T
    rows = low + (high - low) * rng.random((n, len(low)))
    return [dict(zip(function.space, row, strict=True)) for row in rows.tolist()]


def optimizer(
    method: str, function: Function, seed: int, *, n_trials: int, faithful: bool, direct: bool = False
) -> bl.Optimizer:
    """Return the optimizer for a method.

    By default the method follows the paper, except that belated's own search maximises the acquisitions. With `direct`,
    DIRECT maximises them, as in the paper; in many dimensions it finds lower maxima than belated's search. With
    `faithful`, the best of `n_scored` random points is suggested, as in the authors' code.
    """
    settings: dict[str, Any] = {}
    if faithful and not method.endswith("RAND"):
        n_points = n_scored(len(function.space), n_trials)
        settings = {**FAITHFUL, "search__multistart": (n_points, 0), **(FAITHFUL_UCB if "UCB" in method else {})}
    elif direct and not method.endswith("RAND"):
        settings = {"search__direct": N_DIRECT}
    return bl.algorithm(method, function.space, seed=seed, **settings)


def n_scored(d: int, j: int) -> int:
    """Return the number of random points that the authors' code scores at trial j. Here every trial scores as many
    points as the last trial."""
    return int(np.clip(10 * min(5, d) ** 2 * np.sqrt(min(j, 1000)), 2000, 30_000))


def run_task(setting: Setting, run: int, options: Options) -> dict[str, Any]:
    """Return regret at equally spaced times, or after 0, 1, 2, … evaluations."""
    name, times, method = setting
    function, workers = FUNCTIONS[name], WORKERS[name]
    limits: dict[str, Any] = {"n_trials": workers * options.iterations, "direct": times == "evaluations"}
    limits |= {"workers": 1 if method == "seqTS" else workers, "law": COUNTED if times == "evaluations" else times}
    return run_with(setting, run, options, n_first=n_initial(function), **limits)


def run_with_workers(setting: WorkersSetting, run: int, options: Options) -> dict[str, Any]:
    """Return what `run_task` returns, for a number of workers."""
    d, by_evaluations = len(FUNCTIONS[setting.function].space), setting.times == "evaluations"
    n_trials = N_EVALUATIONS if by_evaluations else setting.workers * options.iterations
    limits: dict[str, Any] = {"n_trials": n_trials, "workers": setting.workers, "law": WORKERS_TIMES}
    return run_with(setting, run, options, n_first=min(6 * d, 25), **limits)


def run_with(
    setting: Setting | WorkersSetting,
    run: int,
    options: Options,
    *,
    n_first: int,
    n_trials: int,
    workers: int,
    law: str,
    direct: bool = False,
) -> dict[str, Any]:
    """Run a method after `n_first` initial points; `law` is the name of the distribution of evaluation times."""
    (name, times, method), duration = setting[:3], options.iterations
    function, by_evaluations = FUNCTIONS[name], times == "evaluations"
    rng = np.random.default_rng(seed_of(options.seed, "initial", name, run))
    points = initial_points(function, n_first, rng)
    values = np.array([function(point) for point in points])
    seed = seed_of(options.seed, "optimizer", *setting, run)
    settings = {"faithful": options.faithful, "direct": direct}
    made = optimizer(method, function, seed, n_trials=n_first + n_trials, **settings)
    if not method.endswith("RAND"):
        made.set_params(initial__n=0)  # all initial points are added
    made.add(points, values + function.noise_std * rng.standard_normal(n_first))
    simulated: dict[str, Any] = {"mode": MODES[method[:3]], "times": TIMES[law]}
    simulated |= {"workers": workers, "noise": function.noise_std}
    simulated |= {"n_trials": n_trials} if by_evaluations else {"duration": duration}
    simulated["seed"] = seed_of(options.seed, "simulation", name, times, run)
    history = simulate.simulate_workers(made, function, **simulated)
    before = function.optimum - values.max()
    at = np.sort(history.arrivals) if by_evaluations else report.readings(duration, N_READINGS)
    regret = np.minimum(before, simulate.simple_regret(history, function.optimum, at=at, before=before))
    return {
        "regret": [before, *regret] if by_evaluations else regret,
        "n_evaluations": len(history) if by_evaluations else int(simulate.n_converted(history, at=[duration])[0]),
        "seconds_per_suggestion": history.seconds.mean(),
    }


def describe(setting: Setting | WorkersSetting, results: Sequence[dict[str, Any]]) -> Report:
    """Return the results of a method in a panel."""
    curves = report.values_of(results, "regret")
    mean, stderr = report.mean_stderr(curves)
    described = {"final": curves[:, -1], "mean": mean[-1], "stderr": stderr[-1], "median": np.median(curves[:, -1])}
    described |= {key: np.mean(report.values_of(results, key)) for key in ("n_evaluations", "seconds_per_suggestion")}
    if setting.times == "evaluations":
        described["regret_after"] = {str(n): curves[:, n] for n in COMPARED_AFTER if n < curves.shape[1]}
    workers = 1 if setting.method == "seqTS" else WORKERS[setting.function]
    return {"workers": workers} | setting._asdict() | described | {"curve_mean": mean, "curve_stderr": stderr}


def counts(described: Sequence[Report]) -> Report:
    """Count the functions with half-normal times on which asyTS ends with less regret than asyRAND.

    Also count the functions on which asyTS is not clearly worse than synTS: the paired difference of their regrets is
    at most two standard errors.
    """
    found: Report = {"functions": {}}
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


def shown_in(found: Report, function: str, times: str) -> dict[str, Report]:
    """Return a dict from each method of a panel to the results of the method; methods are in the order of the paper."""
    shown = {s["method"]: s for s in found["settings"] if (s["function"], s["times"]) == (function, times)}
    return {method: shown[method] for method in EVERY_METHOD if method in shown}


def panels_of(found: Report) -> dict[str, dict[str, Report]]:
    """Return a dict from the title of each panel of a report to the methods of the panel."""
    panels = {}
    for name, times in PANELS:
        title = f"{name}, d = {len(FUNCTIONS[name].space)}, M = {WORKERS[name]}, {times}"
        panels[title] = shown_in(found, name, times)
    return {title: shown for title, shown in panels.items() if shown}


def against_rivals(found: Report) -> list[Report]:
    """Return the verdicts on the final regret of asyTS, against each of its rivals in each panel.

    Further verdicts are about the regret of seqTS, synTS and asyTS after equal numbers of evaluations.
    """
    pairs = {}
    for title, shown in panels_of(found).items():
        for rival in METHODS[:-1]:
            pairs[title, "asyTS", rival] = shown["asyTS"]["final"], shown[rival]["final"]
    after = {each: s["regret_after"] for each, s in shown_in(found, BY_EVALUATIONS, "evaluations").items()}
    for first, second in itertools.combinations(SEQUENTIAL, 2):
        for n in after[first]:
            pairs[f"{BY_EVALUATIONS}, {n} evaluations", first, second] = after[first][n], after[second][n]
    keys = "panel", "method", "rival"
    return [dict(zip(keys, key, strict=True)) | {"verdict": each} for key, each in verdicts(pairs).items()]


def table(found: Report) -> str:
    """Return tables: the final regret by panel and method, the regret by number of evaluations, and the counts."""
    columns = {"mean": ".3g", "stderr": ".2g", "median": ".3g", "n_evaluations": ".0f"}
    rows = []
    for title, shown in panels_of(found).items():
        names = (title, "  standard error", "  median", "  evaluations")
        for name, (key, layout) in zip(names, columns.items(), strict=True):
            rows.append([name, *(format(shown[method][key], layout) for method in METHODS)])
    parts = [f"Figures 2, 4 and 5: simple regret at time {found['duration']}, {found['runs']} runs"]
    parts += [report.format_table(["panel", *METHODS], rows), _by_evaluations(found), "\n".join(_sentences(found))]
    verdicts = [
        [title, *(each["verdict"] for each in found["verdicts"] if each["panel"] == title)]
        for title in panels_of(found)
    ]
    title = "asyTS against its rivals: Wilcoxon tests of paired runs at the level 0.05, with Holm's correction\n"
    return "\n\n".join([*parts, title + report.format_table(["panel", *METHODS[:-1]], verdicts)])


def _by_evaluations(found: Report) -> str:
    shown = shown_in(found, BY_EVALUATIONS, "evaluations")
    n = len(next(iter(shown.values()))["curve_mean"]) - 1
    at = [k for k in SHOWN_AFTER if k <= n]
    rows = [
        [method, *(f"{s['curve_mean'][k]:.2g} ± {s['curve_stderr'][k]:.1g}" for k in at)] for method, s in shown.items()
    ]
    title = f"Figure 2, first panel: {BY_EVALUATIONS}, simple regret after n evaluations\n"
    lines = [title + report.format_table(["n", *map(str, at)], rows)]
    for each in found["verdicts"]:
        if each["panel"].endswith("evaluations"):
            lines.append(f"{each['panel']}: {each['method']} against {each['rival']}: {each['verdict']}")
    return "\n".join(lines)


def _sentences(found: Report) -> list[str]:
    outcome = found["counts"]
    n, within = len(outcome["functions"]), outcome["no_worse_than_synTS"]
    counted = "one run cannot tell" if within is None else f"{within} of {n}"
    rows = []
    for name, each in outcome["functions"].items():
        regrets = [f"{each['mean'][method]:.3g} ({each['median'][method]:.3g})" for method in COMPARED]
        rows.append([name, *regrets, f"{each['difference_to_synTS']:.2g} ± {each['stderr']:.2g}"])
    return [
        f"asyTS with {COUNTED} times, {found['runs']} runs of {n} functions:",
        f"  less regret than asyRAND at the end: {outcome['beats_random']} of {n}",
        f"  regret at most two standard errors of the paired difference above synTS: {counted}",
        report.format_table(["mean (median) regret", *COMPARED, "asyTS - synTS"], rows),
    ]


def figure(found: Report) -> Any:
    """Return figures 2, 4 and 5, which show regret on a logarithmic axis.

    The lines of synchronous methods are dashed, and those of seqTS are dotted.

    If methods reach a regret of 0 (in corners, which belated's search reaches exactly), the axis of the panel is linear
    below `LINEAR`, so that it contains 0, and time ends soon after the last of these methods reached 0.
    """
    first = f"{BY_EVALUATIONS}, M = {WORKERS[BY_EVALUATIONS]}"
    drawn = [_panel(shown_in(found, BY_EVALUATIONS, "evaluations"), first, xlabel="Evaluations n")]
    common: dict[str, Any] = {
        "xlabel": "Simulated time T",
        "x": report.readings(found["duration"], N_READINGS),
        "bands": False,
    }
    drawn += [_panel(shown, title, **common) for title, shown in panels_of(found).items()]
    made = report.draw_panels(drawn, 3, below=6)
    for ax, (curves, _, _) in zip(made.axes[1:], drawn[1:], strict=False):
        at_zero = [np.asarray(mean) < ZERO for _, mean, _ in curves]
        if reached := [int(np.argmax(each)) for each in at_zero if each.any()]:
            ax.set_yscale("symlog", linthresh=LINEAR)
            end = min(2 * max(reached), N_READINGS)
            ax.set(ylim=(-LINEAR / 5, None), xlim=(0.0, common["x"][end]))
    return made


def _panel(shown: dict[str, Report], title: str, **arguments: Any) -> report.Panel:
    arguments |= {"title": title, "ylabel": "Simple regret", "log": True}
    dashes = [DASHES[method[:3]] for method in EVERY_METHOD]
    return report.panel(shown.values(), shown, among=EVERY_METHOD, dashes=dashes, **arguments)


def workers_settings() -> list[WorkersSetting]:
    """Return the settings of the replay that varies the number of workers."""
    settings = []
    for name, times, workers in itertools.product(WORKERS_FUNCTIONS, (WORKERS_TIMES, "evaluations"), COMPARED_WORKERS):
        methods = ["seqTS"] if workers == 1 else ["synTS", "asyTS"]
        random = ["asyRAND"] if times == WORKERS_TIMES else []
        settings += [WorkersSetting(name, times, method, workers) for method in (*methods, *random)]
    return settings


def make_workers(options: Options) -> Report:
    """Run all methods with all numbers of workers."""
    runs = run_all(run_with_workers, workers_settings(), options, "workers")
    described = [describe(*each) | {"compared": compared(*each)} for each in runs.items()]
    return {"duration": options.iterations, "settings": described, "verdicts": workers_verdicts(described)}


def compared(setting: WorkersSetting, results: Sequence[dict[str, Any]]) -> Report:
    """Return the regrets that are compared: at the end, or after the numbers of evaluations in the table."""
    curves = report.values_of(results, "regret")
    at = TABLED_EVALUATIONS if setting.times == "evaluations" else [-1]
    return {str(n): curves[:, n] for n in at}


def with_workers(described: Sequence[Report], function: str, times: str, method: str, workers: int) -> Report:
    """Return the results of a method with M workers; with one worker, asyTS and synTS are seqTS."""
    named = "seqTS" if workers == 1 and method.endswith("TS") else method
    return report.find(described, function=function, times=times, method=named, workers=workers)


def workers_verdicts(described: Sequence[Report]) -> list[Report]:
    """Return the verdicts on the regret, for pairs of methods and for pairs of numbers of workers.

    At time T, asyTS is compared with synTS, with random search and with asyTS on half the number of workers. After n
    evaluations, synTS and asyTS are compared with seqTS, and asyTS with synTS.
    """
    timed = ("asyTS", "synTS", 1), ("asyTS", "asyRAND", 1), ("asyTS", "asyTS", 2)
    counted = ("synTS", "seqTS", None), ("asyTS", "seqTS", None), ("asyTS", "synTS", 1)
    pairs = {}
    for name, (times, comparisons), workers in itertools.product(
        WORKERS_FUNCTIONS, ((WORKERS_TIMES, timed), ("evaluations", counted)), COMPARED_WORKERS[1:]
    ):
        for method, rival, share in comparisons:
            others = workers // share if share else 1
            first = with_workers(described, name, times, method, workers)["compared"]
            second = with_workers(described, name, times, rival, others)["compared"]
            for n in first:
                pairs[name, times, n, method, workers, rival, others] = first[n], second[n]
    keys = "function", "times", "n", "method", "workers", "rival", "rival_workers"
    return [dict(zip(keys, key, strict=True)) | {"verdict": each} for key, each in verdicts(pairs).items()]


def table_workers(found: Report) -> str:
    """Return two tables for each function, by the number of workers, and the verdicts."""
    parts = []
    for name in WORKERS_FUNCTIONS:
        rows = []
        for workers in COMPARED_WORKERS:
            chosen = [
                with_workers(found["settings"], name, WORKERS_TIMES, method, workers)
                for method in ("synTS", "asyTS", "asyRAND")
            ]
            counts = [f"{each['n_evaluations']:.0f}" for each in chosen[:2]]
            regrets = [f"{each['mean']:.2g} ± {each['stderr']:.1g}" for each in chosen]
            rows.append([f"M = {workers}", *counts, *regrets])
        header = ["", "n synTS", "n asyTS", "synTS", "asyTS", "asyRAND"]
        title = f"{name}: evaluations n and simple regret until time {found['duration']}, {WORKERS_TIMES} times\n"
        parts.append(title + report.format_table(header, rows))
        rows = []
        for workers in COMPARED_WORKERS:
            chosen = [with_workers(found["settings"], name, "evaluations", m, workers) for m in ("synTS", "asyTS")]
            rows.append([f"M = {workers}", *(_after(each, n) for n in TABLED_EVALUATIONS for each in chosen)])
        header = ["", *(f"{method}, {n}" for n in TABLED_EVALUATIONS for method in ("synTS", "asyTS"))]
        parts.append(f"{name}: simple regret after n evaluations\n" + report.format_table(header, rows))
    lines = ["Verdicts (two-sided Wilcoxon tests at the level 0.05, with Holm's correction):"]
    for each in found["verdicts"]:
        pair = f"{each['method']} with M = {each['workers']} against {each['rival']} with M = {each['rival_workers']}"
        when = f"after {each['n']} evaluations" if each["times"] == "evaluations" else f"at time {found['duration']}"
        lines.append(f"  {each['function']}, {when}: {pair}: {each['verdict']}")
    return "\n\n".join([*parts, "\n".join(lines)])


def _after(setting: Report, n: int) -> str:
    return f"{setting['curve_mean'][n]:.2g} ± {setting['curve_stderr'][n]:.1g}"


def figure_workers(found: Report) -> Any:
    """Return a row of panels for each function: the regret of asyTS by M, against time and against evaluations."""
    drawn = []
    axes: Mapping[str, Mapping[str, Any]] = {
        WORKERS_TIMES: {"xlabel": "Simulated time T", "x": report.readings(found["duration"], N_READINGS)},
        "evaluations": {"xlabel": "Evaluations n"},
    }
    labels = [f"M = {workers}" for workers in COMPARED_WORKERS]
    for name, times in itertools.product(WORKERS_FUNCTIONS, axes):
        chosen = [with_workers(found["settings"], name, times, "asyTS", workers) for workers in COMPARED_WORKERS]
        common: dict[str, Any] = {"title": f"asyTS, {name}", "ylabel": "Simple regret", "log": True, "bands": False}
        drawn.append(report.panel(chosen, labels, **common, **axes[times]))
    return report.draw_panels(drawn, 2, below=6)


WORKERS_LINE = (
    "Kandasamy et al. 2017, Theorems 1 and 3: asyTS, synTS, seqTS and random search by the number of workers."
)

REPLAYS = [
    Replay(
        "asyts",
        __doc__,
        make,
        table,
        figure,
        15,
        30,
        quick_runs=20,
        quick_iterations=10,
        needs=["scipy"],
        options=["quick", "keep"],
    ),
    Replay(
        "asyts-workers",
        WORKERS_LINE,
        make_workers,
        table_workers,
        figure_workers,
        30,
        10,
        needs=["scipy"],
        options=["keep"],
    ),
]
