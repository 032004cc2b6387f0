"""Vakili et al. 2023, Figures 1-5: cumulative regret of BPE-Delay, BPE and GP-UCB-SDF under Poisson delays.

f1 and f2 are drawn as in section 7. The kernel model interpolates 25 values on a 5 × 5 grid of [-5, 5]². These values
are drawn from a Gaussian process with squared-exponential kernel of lengthscale 0.8 or 1.0. Candidates are a 50 × 50
grid, and the noise has standard deviation 0.02. Delays are Poisson with mean λ = 0, 25 or 50. BPE-Delay knows λ, and
uses ξ = 9 and b = 1. The functions of the paper's figures are not published. Here the functions are drawn from the seed
and are the same in all runs.

All algorithms know the kernel of f, and their bounds are sqrt(6) standard deviations wide, as in the authors' code.
GP-UCB-SDF is the algorithm of Verma et al. 2022, with window 2λ; it knows the floor of f. BPE-Delay bounds delays by
the larger term of Eq. 6, and the last round ends at the horizon. A version of BPE-Delay that estimates the delays is
added to the paper's algorithms, and so is GP-BUCB (Desautels et al. 2014), with the same kernel and multiplier, which
the paper does not compare. The paper's Figure 5 shows BPE and BPE-Delay on f1 and f2. Here both also run on many
functions drawn like f1 and like f2, and Figure 5 is the mean over these functions.

``--faithful`` follows the authors' code in three points. The model has lengthscale 1 for both functions. Rounds have
the lengths of the authors' code, so the last round is not cut and ends after the horizon. For GP-UCB-SDF, the
multiplier does not include the sum of standard deviations, and f is shifted so that its floor is the prior mean, 0. The
authors recorded regrets for one function f (T = 200). With ``--data``, the replay also runs this f, and compares its
regrets with the recorded regrets.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import belated as bl
from belated.replays import report
from belated.replays.report import Array, Report
from belated.replays.runner import Options, Replay, run_all, seed_of
from belated.replays.verdicts import verdicts
from belated.simulate import Poisson, cumulative_regret, simulate

MEANS = (0, 25, 50)
REPORTED = (100, 200, 500, 1000)
#: Number of functions drawn for each run of the figures, and number of runs on each function.
DRAWN, RUNS_DRAWN = 5, 3
LENGTHSCALES = {"f1": 0.8, "f2": 1.0}
SIDE = 10.0  # side of the square, which is the unit of encoded lengthscales
N_SIDE = 50
NOISE = 0.02
BETA = math.sqrt(6.0)
DELTA = 0.01
XI, B = 9.0, 1.0
ESTIMATED = "BPE-Delay, delays estimated"
#: An algorithm that the paper does not compare, the λ at which it runs, and the number of drawn functions on which it
#: runs once. Without delays it equals GP-UCB.
RIVAL, RIVAL_MEANS, RIVAL_DRAWN = "GP-BUCB", (25, 50), 12
#: The recorded runs of the authors' code: the name of the file in --data, T, and the steps at which regrets are
#: compared.
REFERENCE, REFERENCE_HORIZON = "vakili2023_reference.json", 200
REFERENCE_STEPS: Mapping[int, tuple[int, ...]] = {25: (100, 200, 490), 50: (100, 200, 590)}


class Setting(NamedTuple):
    """A function ("f1", "f2", or the recorded function "reference"), an algorithm, and the mean λ of the delays.

    ``drawn`` is the number of a further function that is drawn like f1 or f2.
    """

    function: str
    algorithm: str
    poisson_mean: int
    drawn: int | None = None


#: Number of a figure → its title, and (algorithm, λ) of its curves.
FIGURES: Mapping[int, tuple[str, Sequence[tuple[str, int]]]] = {
    2: ("BPE-Delay and GP-UCB-SDF", (("BPE-Delay", 50), ("GP-UCB-SDF", 50))),
    3: ("BPE-Delay", [("BPE-Delay", mean) for mean in MEANS]),
    4: ("GP-UCB-SDF", [("GP-UCB-SDF", mean) for mean in MEANS]),
    5: ("BPE and BPE-Delay", (("BPE", 50), ("BPE-Delay", 50))),
}
#: The algorithms of Figure 5, which also run on the drawn functions.
COMPARED = [name for name, _ in FIGURES[5][1]]
WITH_RIVAL = ["BPE-Delay", RIVAL]
CURVES = sorted({curve for _, members in FIGURES.values() for curve in members})


def make(options: Options) -> Report:
    """Run all settings. If recorded runs are available, compare their regrets with ours."""
    n_runs, horizon = options.runs, options.iterations
    added = [(ESTIMATED, 50), *((RIVAL, mean) for mean in RIVAL_MEANS if not options.faithful)]
    settings = [Setting(f, *rest) for f in LENGTHSCALES for rest in (*CURVES, *added)]
    # Slow runs start first, so that all processors are busy until the end.
    found = run_all(run_task, sorted(settings, key=lambda s: not s.algorithm.startswith("GP-")), options, "bpe")
    described = [describe(setting, horizon, found[setting]) for setting in settings]
    made = {"horizon": horizon, "noise": NOISE, "beta": BETA, "settings": described}
    made |= {"excess": {f: excess(described, f) for f in LENGTHSCALES}}
    made["drawn"] = on_drawn(COMPARED, DRAWN * n_runs, replace(options, runs=RUNS_DRAWN))
    made["rival"] = {} if options.faithful else on_drawn(WITH_RIVAL, RIVAL_DRAWN, replace(options, runs=1))
    made["verdicts"] = decided(made)
    recorded = read_reference(options.data) if options.faithful else None
    if recorded is not None:
        references = [Setting("reference", "BPE-Delay", mean) for mean in REFERENCE_STEPS]
        theirs = replace(options, iterations=REFERENCE_HORIZON)
        made["reference"] = compare(recorded, run_all(run_task, references, theirs, "bpe: recorded function"))
    return made


def table(found: Report) -> str:
    """Return tables: cumulative regret by function and setting, the cost of delays, and the comparison."""
    parts = []
    for f, lengthscale in LENGTHSCALES.items():
        members = [s for s in found["settings"] if s["function"] == f]
        header = ["step", *map(str, members[0]["step"]), "left", "s/suggestion"]
        rows = []
        for s in members:
            left = "" if s["surviving"] is None else f"{s['surviving']:.0f}"
            regrets = report.plus_minus(s["mean"], s["stderr"], digits=0)
            rows.append([f"{s['algorithm']}, λ = {s['poisson_mean']}", *regrets, left, report.seconds(s)])
        parts.append(f"{f} (lengthscale {lengthscale}): cumulative regret\n" + report.format_table(header, rows))
    return "\n\n".join([*parts, "\n".join(_sentences(found))])


def figure(found: Report) -> Any:
    """Return figures 1 to 5, f1 above f2.

    Bands in figures 2 to 4 are half a standard deviation, as in the paper. Figure 5 is the mean over the drawn
    functions, with bands of one standard error.
    """
    panels: list[report.Panel] = []
    for f in LENGTHSCALES:
        panels.append(([], {}, ()))  # the place of Figure 1
        for number, (title, members) in FIGURES.items():
            if number == 5:
                shown = found["drawn"][f]["curves"]
                title = f"mean of {found['drawn'][f]['functions']} functions like {f}"
            else:
                chosen = [find(found["settings"], f, *member) for member in members]
                shown = [s | {"curve_stderr": 0.5 * np.asarray(s["curve_std"])} for s in chosen]
                title = f"{title}, {f}"
            axes = {"title": f"{number}: {title}", "xlabel": "Steps", "ylabel": "Cumulative regret"}
            panels.append(report.panel(shown, [f"{name}, λ = {mean}" for name, mean in members], **axes))
    made = report.draw_panels(panels, 1 + len(FIGURES))
    for ax, f in zip(made.axes[:: 1 + len(FIGURES)], LENGTHSCALES, strict=True):
        place = ax.get_subplotspec()
        ax.remove()
        surface = made.add_subplot(place, projection="3d")
        x, y = (column.reshape(N_SIDE, N_SIDE) for column in grid().T)
        surface.plot_surface(x, y, sample(f, found["seed"]).reshape(N_SIDE, N_SIDE), cmap="viridis")
        surface.set(title=f"1: {f}", xlabel="x1", ylabel="x2")
    return made


def run_task(setting: Setting, run: int, options: Options) -> dict[str, Any]:
    """Return the cumulative regret after 0, 1, 2, … steps, the surviving candidates, and the seconds per suggestion."""
    seed, horizon = options.seed, options.iterations
    if setting.drawn is not None:
        seed = seed_of(seed, "drawn", setting.drawn)
    recorded = read_reference(options.data) if setting.function == "reference" else None
    f = sample(setting.function, seed) if recorded is None else recorded.f
    if setting.algorithm == "GP-UCB-SDF" and options.faithful:
        f = f - f.min()
    optimizer_seed = seed_of(seed, "optimizer", setting.function, run)
    made = optimizer(setting, horizon, options.faithful, optimizer_seed, float(f.min()))
    asked = FloorFirst(made, float(f.min())) if setting.algorithm == "GP-UCB-SDF" else made
    if isinstance(made, bl.BPEDelay) and made.lengths == "code":  # the last round has its full length
        horizon = sum(each.length for each in made.rounds_ if each.length is not None)
    noise: dict[str, Any] = {"noise": NOISE, "seed": seed_of(seed, "delays and noise", run)}
    delay = Poisson(float(setting.poisson_mean))
    history = simulate(asked, lambda x: float(f[index_of(x)]), horizon, delay, **noise)
    surviving = len(made.surviving_) if isinstance(made, bl.BPEDelay) else math.nan
    regret = cumulative_regret(history, float(f.max()))
    return {"regret": regret, "surviving": surviving, "seconds": float(history.seconds.mean())}


def optimizer(setting: Setting, horizon: int, faithful: bool, seed: int, floor: float = 0.0) -> bl.Optimizer:
    """Return the optimizer of a setting; `floor` is the floor of f. The candidates are scaled to the unit square."""
    of_f = LENGTHSCALES.get(setting.function, 1.0)
    kernel: dict[str, Any] = {"lengthscale": (1.0 if faithful else of_f) / SIDE, "noise_std": NOISE, "signal_std": 1.0}
    common: dict[str, Any] = {"candidates": grid(), "seed": seed}
    surrogate = bl.GP(kernel="squared_exponential", mean="zero", targets="raw", **kernel)
    if setting.algorithm == RIVAL:
        return bl.algorithm(RIVAL, surrogate=surrogate, initial=0, acquisition__beta=BETA, **common)
    if setting.algorithm == "GP-UCB-SDF":
        window = max(1, 2 * setting.poisson_mean)
        common |= {"surrogate": surrogate, "window": window, "initial": 0}
        if faithful:
            # The multiplier leaves out the sum of standard deviations, because trials are never pending; see
            # `FloorFirst`.
            return bl.BayesOpt(acquisition=bl.UCB(BETA), pending="ignore", **common)
        return bl.algorithm("GP-UCB-SDF", acquisition__beta=BETA, pending__floor=floor, **common)
    common |= kernel | {"horizon": horizon, "beta": BETA, "theory__delta": DELTA}
    if setting.algorithm == "BPE-Delay":
        common["delay"] = bl.papers.SubExponential(float(setting.poisson_mean), xi=XI, b=B)
    if faithful and setting.algorithm != ESTIMATED:
        common["lengths"] = "code"
    return bl.algorithm("BPE" if setting.algorithm == "BPE" else "BPE-Delay", **common)


class FloorFirst:
    """GP-UCB-SDF in a tenth of the time: a trial is observed at the floor at once, and amended when the result arrives.

    With a given kernel, the posterior equals the posterior with pending trials at the floor. Rows keep their positions
    in the model, so a step adds a single row instead of a row for every trial in flight. The sum in the multiplier is
    over the trials within the window, as for pending trials. A result that arrives after the window is lost.
    """

    clock, direction = "iterations", "maximize"

    def __init__(self, optimizer: bl.Optimizer, floor: float) -> None:
        self.optimizer, self.floor = optimizer, floor
        self.window: float = optimizer.get_params(deep=False)["window"]

    def suggest(self) -> bl.Trial:
        """Suggest the next trial and observe it at the floor."""
        trial = self.optimizer.suggest()
        trial.observe(self.floor)
        return trial

    def observe(self, trial: bl.Trial, value: float) -> None:
        """Replace the observed floor of a trial by its value."""
        if self.optimizer.n_trials - trial.number <= self.window:
            trial.observe(value, amend=True)


@lru_cache(maxsize=1)
def grid() -> Array:
    """Return the candidates, shape (2500, 2)."""
    side = np.linspace(-SIDE / 2, SIDE / 2, N_SIDE)
    return np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)


def index_of(x: Array) -> int:
    """Return the number of a candidate."""
    row, column = np.rint((np.asarray(x) / SIDE + 0.5) * (N_SIDE - 1)).astype(int)
    return int(row * N_SIDE + column)


def covariance(a: Array, b: Array, lengthscale: float) -> Array:
    """Return the matrix of the squared-exponential kernel."""
    squares = np.sum((a[:, None] - b[None]) ** 2, axis=2)
    return np.asarray(np.exp(-0.5 * squares / lengthscale**2), dtype=float)


def interpolated(points: Array, values: Array, lengthscale: float) -> Array:
    """Return f(x) = k(x, X)·(K + 1e-10·I)⁻¹·y on the candidates."""
    k = covariance(points, points, lengthscale) + 1e-10 * np.eye(len(points))
    return np.asarray(covariance(grid(), points, lengthscale) @ np.linalg.solve(k, values), dtype=float)


def sample(function: str, seed: int) -> Array:
    """Return the values of f1 or f2 at the candidates."""
    side = np.linspace(-SIDE / 2, SIDE / 2, 5)
    points = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    lengthscale = LENGTHSCALES[function]
    root = np.linalg.cholesky(covariance(points, points, lengthscale) + 1e-10 * np.eye(len(points)))
    values = root @ np.random.default_rng(seed_of(seed, function)).standard_normal(len(points))
    return interpolated(points, values, lengthscale)


def describe(setting: Setting, horizon: int, runs: Sequence[dict[str, Any]]) -> Report:
    """Return the entry of the report for a setting."""
    regrets = np.array([run["regret"][: horizon + 1] for run in runs])
    steps = [step for step in REPORTED if step < horizon] + [horizon]
    mean, stderr = report.mean_stderr(regrets)
    surviving, seconds = (float(np.mean(report.values_of(runs, key))) for key in ("surviving", "seconds"))
    described: Report = dict(zip(("function", "algorithm", "poisson_mean"), setting, strict=False))
    described |= {"step": steps, "mean": mean[steps], "stderr": stderr[steps], "regret_per_run": regrets[:, steps]}
    described |= {"curve_mean": mean, "curve_std": regrets.std(axis=0), "seconds_per_suggestion": seconds}
    described["surviving"] = None if math.isnan(surviving) else surviving
    ends = [float(run["regret"][-1]) for run in runs]
    return described | {"steps_played": len(runs[0]["regret"]) - 1, "regret_at_the_end": ends}


def find(described: Sequence[Report], function: str, algorithm: str, mean: int) -> Report:
    """Return the description of a setting."""
    return report.find(described, function=function, algorithm=algorithm, poisson_mean=mean)


def excess(described: Sequence[Report], function: str) -> Report:
    """Return the regret that delays add to BPE-Delay until the horizon; compare it with GP-UCB-SDF at λ = 50."""
    ends = {mean: find(described, function, "BPE-Delay", mean)["mean"][-1] for mean in MEANS}
    added = {str(mean): float(ends[mean] - ends[0]) for mean in MEANS[1:]}
    ours, theirs = (find(described, function, name, 50) for name in ("BPE-Delay", "GP-UCB-SDF"))
    return {
        "added": added,
        "added_per_step_of_delay": {mean: each / int(mean) for mean, each in added.items()},
        "below_gp_ucb_sdf_in": int(np.sum(ours["regret_per_run"][:, -1] < theirs["regret_per_run"][:, -1])),
        "bpe_delay": float(ours["mean"][-1]),
        "gp_ucb_sdf": float(theirs["mean"][-1]),
    }


def decided(found: Report) -> list[Report]:
    """Return the verdicts on the cumulative regret of pairs of settings, and of pairs of algorithms on drawn functions.

    On f1 and f2, the regrets of runs at the horizon are compared; on drawn functions, the mean regrets of functions.
    """
    chosen = [(("BPE-Delay", 50), ("GP-UCB-SDF", 50)), ((ESTIMATED, 50), ("BPE-Delay", 50))]
    for name in ("BPE-Delay", "GP-UCB-SDF"):
        chosen += [((name, longer), (name, shorter)) for shorter, longer in itertools.pairwise(MEANS)]
    if found["rival"]:
        chosen += [((RIVAL, mean), ("BPE-Delay", mean)) for mean in RIVAL_MEANS]
    pairs = {}
    for f, each in itertools.product(LENGTHSCALES, chosen):
        first, second = (find(found["settings"], f, *setting)["regret_per_run"][:, -1] for setting in each)
        (a, mean_a), (b, mean_b) = each
        pairs[f, found["horizon"], f"{a}, λ = {mean_a}", f"{b}, λ = {mean_b}"] = first, second
    for f, drawn in [*found["drawn"].items(), *found["rival"].items()]:
        second, first = drawn["regret_per_function"]
        for k, step in enumerate(drawn["step"]):
            title = f"{drawn['functions']} functions like {f}"
            pairs[title, step, drawn["names"][1], drawn["names"][0]] = first[:, k], second[:, k]
    keys = "function", "step", "first", "second"
    return [dict(zip(keys, key, strict=True)) | {"verdict": each} for key, each in verdicts(pairs).items()]


def on_drawn(names: Sequence[str], n_functions: int, options: Options) -> Report:
    """Run two algorithms on functions that are drawn like f1 and like f2, and compare them."""
    settings = [Setting(f, name, 50, d) for f in LENGTHSCALES for d in range(n_functions) for name in names]
    found = run_all(run_task, settings, options, "bpe: drawn functions")
    return {f: over_functions(names, [found[s] for s in settings if s.function == f], options) for f in LENGTHSCALES}


def over_functions(names: Sequence[str], results: Sequence[Sequence[dict[str, Any]]], options: Options) -> Report:
    """Compare two algorithms on each function; `results` has the runs of both for each function."""
    horizon = options.iterations
    regret = np.array([[run["regret"][: horizon + 1] for run in runs] for runs in results])
    first, second = regret.mean(axis=1).reshape(-1, len(names), horizon + 1).transpose(1, 0, 2)
    steps = [step for step in (200, 1000) if step < horizon] + [horizon]
    lower = (second < first)[:, steps].sum(axis=0)
    described: Report = {"functions": len(first), "step": steps, "lower_in": lower, "names": names, "curves": []}
    described["regret_per_function"] = [first[:, steps], second[:, steps]]
    for name, curves in zip([*names, "difference"], (first, second, first - second), strict=True):
        mean, stderr = report.mean_stderr(curves)
        described[name] = {"mean": mean[steps], "stderr": stderr[steps]}
        if name in names:
            described["curves"].append({"curve_mean": mean, "curve_stderr": stderr})
    return described


@dataclass(frozen=True)
class Recorded:
    """The values of f on the candidates, and the regrets of the authors' runs at steps 10, 20, … for each λ."""

    f: Array
    curves: Mapping[int, Array]


@lru_cache(maxsize=1)
def read_reference(data: Path | None) -> Recorded | None:
    """Return the recorded runs, or None if they are missing."""
    found = report.read_json(data, REFERENCE)
    if found is None:
        return None
    ours = [each for each in found["runs"] if each["algorithm"] == "BPE-Delay"]
    curves = {
        mean: np.array([each["regret_every_10"] for each in ours if each["poisson_mean"] == mean])
        for mean in REFERENCE_STEPS
    }
    return Recorded(interpolated(np.array(found["grid"]), np.array(found["y"]), 1.0), curves)


def compare(recorded: Recorded, found: Mapping[Setting, Sequence[dict[str, Any]]]) -> list[Report]:
    """Return the mean regrets of our runs, and the range of the recorded regrets."""
    compared = []
    for (_, _, mean, _), runs in found.items():
        for step in REFERENCE_STEPS[mean]:
            theirs = recorded.curves[mean][:, step // 10 - 1]
            ours = float(np.mean([run["regret"][step] for run in runs]))
            low, high = float(theirs.min()), float(theirs.max())
            ranges = {"recorded_mean": float(theirs.mean()), "recorded_range": [low, high]}
            compared.append({"poisson_mean": mean, "step": step, "mean": ours, **ranges, "within": low <= ours <= high})
    return compared


def _sentences(found: Report) -> list[str]:
    """Describe the cost of delays and the comparisons in words."""
    lines = []
    for f, cost in found["excess"].items():
        rates = cost["added_per_step_of_delay"]
        added = [
            f"λ = {mean} adds {each:.0f} ({rates[mean]:.2f} per step of delay)" for mean, each in cost["added"].items()
        ]
        lines.append(f"{f}, BPE-Delay at step {found['horizon']}: {', '.join(added)}")
        lines.append(
            f"{f}, λ = 50: BPE-Delay {cost['bpe_delay']:.0f}, GP-UCB-SDF {cost['gp_ucb_sdf']:.0f}; below it in "
            f"{cost['below_gp_ucb_sdf_in']} of {found['runs']} runs"
        )
    for f, drawn in [*found["drawn"].items(), *found["rival"].items()]:
        for k, step in enumerate(drawn["step"]):
            regrets = [
                f"{name} {drawn[name]['mean'][k]:.0f} ± {drawn[name]['stderr'][k]:.0f}"
                for name in (*reversed(drawn["names"]), "difference")
            ]
            counted = f"lower on {drawn['lower_in'][k]}"
            lines.append(
                f"{drawn['functions']} functions like {f}, λ = 50, step {step}: {', '.join(regrets)}; {counted}"
            )
    lines.append("Verdicts (two-sided Wilcoxon tests at the level 0.05, with Holm's correction):")
    for each in found["verdicts"]:
        lines.append(
            f"  {each['function']}, step {each['step']}: {each['first']} against {each['second']}: {each['verdict']}"
        )
    for each in found.get("reference", []):
        low, high = each["recorded_range"]
        lines.append(
            f"f on record, λ = {each['poisson_mean']}, step {each['step']}: {each['mean']:.1f}; the authors' code "
            f"{each['recorded_mean']:.1f}, from {low:.1f} to {high:.1f}: {'within' if each['within'] else 'outside'}"
        )
    return lines


REPLAYS = [Replay("bpe", __doc__, make, table, figure, runs=10, iterations=1000, needs=["scipy"])]
