"""Verma et al. 2022, Figures 1 and 5: samples of a Gaussian process on a grid, delays and windows of several lengths.

f is drawn on 1000 equally spaced points of [0, 1] from a Gaussian process with squared-exponential kernel of
lengthscale 0.02, and rescaled to [0, 1]. Each run has a different f (appendix C.1). The paper does not state the other
settings. Here the observation noise has standard deviation 0.01. There are five initial points drawn uniformly, and 150
iterations after them. The regret is 1 before the first result. For algorithms with a window, results later than the
window are lost, as defined in section 3.1. All settings of a run share f, the initial points and the noise. Their
Poisson delays are quantiles of the same uniform numbers, so that a larger mean delays every trial at least as much.

With ``--given``, hyperparameters are not fitted, but have the values in `GIVEN`. Hyperparameters decide how the
algorithms compare, so there are three versions of the results: with a given kernel; with a kernel fitted to the
observed values (the default); and with a kernel that is also fitted to the censored zeros, as in the authors' code
(``--faithful``).

The curves show the regret of the results that have arrived (*converted* results in the paper). For an algorithm with a
window, they show only results within the window, as the authors' code does. A short window then has two costs: the
model gets fewer results, and late results at good points do not count. To separate the two costs, the report also has
the regret in which every result counts from its arrival."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import belated as bl
from belated import plotting
from belated.experiments.papers import verma
from belated.experiments.report import format_table, mean_stderr, plus_minus, seconds
from belated.experiments.runner import Options, about, parallel_map, seed_of
from belated.simulate import simple_regret, simulate

DEFAULT_RUNS = 50
NEEDS = ("scipy",)
OPTIONS = ("given",)
N_CANDIDATES = 1000
LENGTHSCALE = 0.02
NOISE = 0.01  # standard deviation, where f ranges over [0, 1]
ITERATIONS = 150
REPORTED = (25, 50, 100, 150)
TESTED = 100
#: Approximately the standard deviation of the rescaled draws.
SIGNAL_STD = math.sqrt(0.05)
#: With --given: the lengthscale with which f is drawn, the true noise, and the floor of f as prior mean.
GIVEN: Mapping[str, Any] = {
    "surrogate": bl.GP(
        kernel="squared_exponential",
        lengthscale=LENGTHSCALE,
        signal_std=SIGNAL_STD,
        noise_std=NOISE,
        mean=0.0,
        targets="raw",
    ),
}
#: Without --faithful and --given: the paper's kernel and refit interval (appendix C), otherwise belated's defaults.
SETTINGS: Mapping[str, Any] = {
    "surrogate__kernel": "squared_exponential",
    "surrogate__refit_every": 10,
}

Array = NDArray[np.float64]


def run(options: Options) -> dict[str, Any]:
    """Run all settings. A setting that several panels show is run once."""
    if options.given and options.faithful:
        raise bl.InvalidSetting(
            "--given and --faithful exclude each other: the authors' code fits the kernel; pass one"
        )
    n_runs = options.runs or DEFAULT_RUNS
    n_iterations = ITERATIONS if options.iterations is None else options.iterations
    settings = list(dict.fromkeys(setting for _, members in panels(options.given).values() for setting in members))
    tasks = [
        Task(s, i, n_iterations, options.seed, options.faithful, options.given)
        for s, i in product(settings, range(n_runs))
    ]
    results = parallel_map(run_task, tasks, options.workers, "sdf-synthetic")
    described = []
    for k, setting in enumerate(settings):
        described.append(describe(setting, results[k * n_runs : (k + 1) * n_runs]))
    report = about(options, n_runs) | {"given": options.given, "noise": NOISE, "settings": described}
    return report | {
        "tests": tests(described),
        "ranking": ranking(described),
        "against_rivals": against_rivals(described),
    }


def table(report: dict[str, Any]) -> str:
    """Return simple regret per panel, tests of the mechanism and against the rivals, and the ranking."""
    parts = []
    for panel, (title, members) in panels(report["given"]).items():
        chosen = [find(report["settings"], setting) for setting in members]
        header = ["iteration", *map(str, chosen[0]["iteration"]), "s/suggestion"]
        rows = [
            [
                label,
                *(plus_minus(*pair, digits=4) for pair in zip(s["mean"], s["stderr"], strict=True)),
                seconds(s),
            ]
            for label, s in zip(labels(members), chosen, strict=True)
        ]
        parts.append(f"Figure {panel}, {title}: simple regret\n" + format_table(header, rows))
    parts.append("\n".join(_sentences(report)))
    return "\n\n".join(parts)


def draw(report: dict[str, Any], path: Path) -> None:
    """Draw Figures 1 (a)-(d) and 5 (a), (b)."""
    figure, axes = plotting.grid(2, 3)
    for (panel, (title, members)), ax in zip(PANELS.items(), axes, strict=True):
        chosen = [find(report["settings"], setting) for setting in members]
        curves = [(label, s["curve_mean"], s["curve_stderr"]) for label, s in zip(labels(members), chosen, strict=True)]
        plotting.plot_curves(curves, ax, title=f"{panel}: {title}", ylabel="Simple regret", dashes=["-"])
    plotting.save(figure, path)


def run_task(task: Task) -> RunResult:
    """One run of one setting."""
    setting = task.setting
    n_trials = verma.N_INITIAL + task.n_iterations
    f = sample(seed_of(task.seed, "f", task.run))
    first = np.random.default_rng(seed_of(task.seed, "initial", task.run))
    delay_rng = np.random.default_rng(seed_of(task.seed, "delays", task.run))
    sdf = verma.is_sdf(setting.algorithm)
    censoring = verma.censoring(setting.algorithm, "discard")
    settings = {**(GIVEN if task.given else SETTINGS), **censoring}
    if task.given:
        settings["surrogate__signal_std"] = setting.signal_std
    if task.faithful:
        settings = verma.faithful_settings(setting.algorithm, on_a_box=False)
    optimizer = bl.algorithm(
        setting.algorithm,
        candidates=grid().reshape(-1, 1),
        window=setting.window,
        seed=seed_of(task.seed, "optimizer", task.run),
        **settings,
    )
    history = simulate(
        optimizer,
        lambda x: f[round(float(x[0]) * (N_CANDIDATES - 1))],
        n_trials,
        delays(setting, delay_rng.random(n_trials)),
        initial=[int(i) for i in first.choice(N_CANDIDATES, verma.N_INITIAL, replace=False)],
        noise=NOISE,
        seed=seed_of(task.seed, "noise", task.run),
    )
    return RunResult(
        regret=simple_regret(history, 1.0, before=1.0, longest=setting.window if sdf else np.inf)[verma.N_INITIAL :],
        regret_late_too=simple_regret(history, 1.0, before=1.0)[verma.N_INITIAL :],
        seconds=float(history.seconds[verma.N_INITIAL :].mean()),
    )


def delays(setting: Setting, u: Array) -> Array:
    """Return delays from uniform numbers u: Poisson quantiles, or the mean itself."""
    from scipy.stats import poisson

    constant = np.full(len(u), float(setting.mu))
    return np.asarray(poisson.ppf(u, setting.mu), dtype=float) if setting.distribution == "poisson" else constant


def grid() -> Array:
    """Return the domain, shape (N,)."""
    return np.linspace(0.0, 1.0, N_CANDIDATES)


def sample(seed: int) -> Array:
    """Return a draw of f on the grid, rescaled to [0, 1]."""
    f: Array = covariance_root() @ np.random.default_rng(seed).standard_normal(N_CANDIDATES)
    return np.asarray((f - f.min()) / (f.max() - f.min()), dtype=float)


@lru_cache(maxsize=1)
def covariance_root() -> Array:
    """Return L with L·Lᵀ = K + 1e-10·I. K is so smooth that the factorisation needs the jitter."""
    x = grid()
    k = np.exp(-0.5 * ((x[:, None] - x) / LENGTHSCALE) ** 2)
    return np.asarray(np.linalg.cholesky(k + 1e-10 * np.eye(N_CANDIDATES)), dtype=float)


def describe(setting: Setting, runs: Sequence[RunResult]) -> dict[str, Any]:
    """Return the part of the report about one setting."""
    regrets = np.array([run.regret for run in runs])
    late_too = np.array([run.regret_late_too for run in runs])
    last = regrets.shape[1] - 1
    iteration = [i for i in REPORTED if i < last] + [last]
    mean, stderr = mean_stderr(regrets)
    return {
        "algorithm": setting.algorithm,
        "law": setting.distribution,  # the key in earlier reports
        "mu": setting.mu,
        "window": setting.window,
        "signal_std": setting.signal_std,
        "iteration": iteration,
        "mean": mean[iteration],
        "stderr": stderr[iteration],
        "seconds_per_suggestion": float(np.mean([run.seconds for run in runs])),
        "regret_per_run": {str(i): regrets[:, i] for i in iteration},
        "regret_per_run_late_too": {str(i): late_too[:, i] for i in iteration},
        "curve_mean": mean,
        "curve_stderr": stderr,
    }


def find(described: Sequence[dict[str, Any]], setting: Setting) -> dict[str, Any]:
    """Return the description of a setting."""
    key = (setting.algorithm, setting.distribution, setting.mu, setting.window, setting.signal_std)
    return next(d for d in described if (d["algorithm"], d["law"], d["mu"], d["window"], d["signal_std"]) == key)


def labels(members: Sequence[Setting]) -> list[str]:
    """Return the labels of a panel's curves: algorithms, or mean delays and windows if the algorithm is the same."""
    if len({setting.algorithm for setting in members}) > 1:
        return [setting.algorithm for setting in members]
    return [f"μ = {setting.mu}, m = {setting.window}" for setting in members]


def tests(described: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Test on paired regrets of GP-UCB-SDF that long delays and short windows hurt, and long windows do not."""
    iteration = TESTED if TESTED in described[0]["iteration"] else described[0]["iteration"][-1]

    def at(setting: Setting, counted: str = "regret_per_run") -> Array:
        return np.asarray(find(described, setting)[counted][str(iteration)], dtype=float)

    mean, stderr = mean_stderr(at(sdf(10, 40)) - at(sdf(10, 20)))
    late_too = "regret_per_run_late_too"
    short, long = sdf(10, 5), sdf(10, 20)
    return {
        "iteration": iteration,
        "wilcoxon": {
            "mu=30 worse than mu=5": verma.worse(at(sdf(30, 60)), at(sdf(5, 10))),
            "m=5 worse than m=20": verma.worse(at(short), at(long)),
            "m=5 worse than m=20, late results counted": verma.worse(at(short, late_too), at(long, late_too)),
        },
        "m=40 against m=20": {
            "mean_difference": float(mean),
            "stderr": float(stderr),
            "within_two_standard_errors": bool(abs(mean) <= 2 * stderr),
        },
    }


def ranking(described: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Rank the six algorithms by mean regret, best first, at each reported iteration under both delay distributions."""
    ranked: dict[str, Any] = {}
    for title, chosen in _six(described).items():
        ranked[title] = {
            str(i): sorted(((s["algorithm"], float(s["mean"][k])) for s in chosen), key=lambda pair: pair[1])
            for k, i in enumerate(chosen[0]["iteration"])
        }
    return ranked


def against_rivals(described: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Test the paper's claim with paired tests at each reported iteration under both delay distributions."""
    return {
        title: {
            str(i): verma.against_rivals({s["algorithm"]: s["regret_per_run"][str(i)] for s in chosen})
            for i in chosen[0]["iteration"]
        }
        for title, chosen in _six(described).items()
    }


def _six(described: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the descriptions of the six algorithms, by the title of the delay distribution."""
    panels = {"Poisson(10), m = 20": ("1(c)", "5(a)"), "constant 10, m = 10": ("1(d)", "5(b)")}
    return {
        title: [find(described, setting) for panel in pair for setting in PANELS[panel][1]]
        for title, pair in panels.items()
    }


def _sentences(report: dict[str, Any]) -> list[str]:
    """Describe the tests and the ranking in words."""
    outcome = report["tests"]
    lines = [f"GP-UCB-SDF at iteration {outcome['iteration']}, paired over {report['runs']} runs:"]
    for name, test in outcome["wilcoxon"].items():
        verdict = "yes" if test["holds"] else "no"
        lines.append(
            f"  {name}: {verdict} (regret {test['mean']:.4f} against {test['mean_of_the_other']:.4f}, "
            f"Wilcoxon p = {test['p']:.2g}, limit 0.01)"
        )
    close = outcome["m=40 against m=20"]
    lines.append(
        f"  m=20 and m=40 within two standard errors: {'yes' if close['within_two_standard_errors'] else 'no'} "
        f"(difference {plus_minus(close['mean_difference'], close['stderr'], digits=4)})"
    )
    lines.append("Paired one-sided Wilcoxon tests against the rivals:")
    for title, by_iteration in report["against_rivals"].items():
        for iteration, comparisons in by_iteration.items():
            words = verma.in_words(comparisons, digits=4)
            lines += [f"  {title}, iteration {iteration}: {line}" for line in words]
    for title, at in report["ranking"].items():
        for iteration, order in at.items():
            ordered = ", ".join(f"{name} {regret:.4f}" for name, regret in order)
            lines.append(f"Ranking, {title}, iteration {iteration}: {ordered}")
    return lines


@dataclass(frozen=True)
class Setting:
    """An algorithm under a delay distribution ("poisson" or "constant") of mean mu, with the window m.

    With --given, the standard deviation of f around its mean is the value for the rescaled draws, or another given
    value.
    """

    algorithm: str
    distribution: str
    mu: int
    window: int
    signal_std: float = SIGNAL_STD


@dataclass(frozen=True)
class Task:
    """One run of one setting."""

    setting: Setting
    run: int
    n_iterations: int
    seed: int
    faithful: bool
    given: bool


@dataclass(frozen=True)
class RunResult:
    """Simple regret after 0, 1, 2, … iterations, counted as in the paper, and counted with late results included."""

    regret: Array
    regret_late_too: Array
    seconds: float  # : seconds per suggestion


def sdf(mu: int, window: int) -> Setting:
    """GP-UCB-SDF under Poisson delays."""
    return Setting("GP-UCB-SDF", "poisson", mu, window)


def family(members: Sequence[str], distribution: str, window: int) -> list[Setting]:
    """Algorithms under delays of mean 10."""
    return [Setting(algorithm, distribution, 10, window) for algorithm in members]


PANELS = {  # figure and panel of the paper: (title, settings)
    "1(a)": ("Poisson(μ), m = 2μ", [sdf(mu, 2 * mu) for mu in (2, 5, 10, 15, 20, 30)]),
    "1(b)": ("Poisson(10)", [sdf(10, window) for window in (5, 10, 20, 40)]),
    "1(c)": ("Poisson(10), m = 20", family(verma.UCB_FAMILY, "poisson", 20)),
    "1(d)": ("constant 10, m = 10", family(verma.UCB_FAMILY, "constant", 10)),
    "5(a)": ("Poisson(10), m = 20", family(verma.TS_FAMILY, "poisson", 20)),
    "5(b)": ("constant 10, m = 10", family(verma.TS_FAMILY, "constant", 10)),
}
#: With --given, there is also a panel with variance 1, which the paper assumes of its kernels (section 2).
UNIT_VARIANCE = {
    "1(a), k(x, x) = 1": (
        "Poisson(μ), m = 2μ",
        [Setting("GP-UCB-SDF", "poisson", mu, 2 * mu, signal_std=1.0) for mu in (5, 10, 15, 20, 30)],
    ),
}


def panels(given: bool) -> dict[str, tuple[str, list[Setting]]]:
    """Return the panels that are computed."""
    return PANELS | UNIT_VARIANCE if given else PANELS
