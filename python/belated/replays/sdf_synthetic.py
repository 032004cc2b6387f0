"""Verma et al. 2022, Figures 1 and 5: samples of a Gaussian process on a grid, delays and windows of several lengths.

f is drawn on 1000 equally spaced points of [0, 1] from a Gaussian process with squared-exponential kernel of
lengthscale 0.02, and rescaled to [0, 1]. Each run has a different f (appendix C.1). The paper does not state the other
settings. Here the observation noise has standard deviation 0.01. Five initial points are drawn uniformly, and 150
iterations follow. The regret is 1 before the first result. If an algorithm has a window, results that arrive after the
window are lost, as defined in section 3.1. All settings of a run share f, the initial points and the noise. Poisson
delays are quantiles of the same uniform numbers in all settings, so a larger mean does not shorten the delay of any
trial.

With ``--given``, hyperparameters are not fitted, but have the values in `GIVEN`. In a further version of panel 1(a),
the kernel of the model has k(x, x) = 1, the largest value that the paper allows (section 3.1). The figure shows this
version, and the tests use both versions.

The ranking of the algorithms depends on the hyperparameters. There are therefore three versions of the results. By
default, the kernel is fitted to the observed values. With ``--given``, the kernel is known. With ``--faithful``, the
kernel is also fitted to the zeros of censored trials, as in the authors' code.

The curves show the regret of the results that have arrived (*converted* results in the paper). For an algorithm with a
window, the curves show only results within the window, as the authors' code does. A short window then has two costs:
the model gets fewer results, and late results at good points do not count. To separate the two costs, the report also
contains a regret in which every result counts, however late it arrives.

The replay ``sdf-by-point`` has two further variants, which the paper describes without an experiment. Delays depend on
the point (section 3.3): they are Poisson with mean 20x, so that the mean over the domain is 10. And a pending trial is
assumed to have the mean of the predictions at the nearest observed points (footnote 3), with the acquisition of
GP-BUCB. Hyperparameters have the values in `GIVEN`."""

import itertools
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

import belated as bl
from belated.replays import report, verma
from belated.replays.report import Array, Report
from belated.replays.runner import Options, Replay, run_all, seed_of
from belated.replays.verdicts import verdicts
from belated.simulate import ByPoint, DelayDistribution, Poisson, simple_regret, simulate

N_CANDIDATES = 1000
LENGTHSCALE = 0.02
NOISE = 0.01  # standard deviation, where f ranges over [0, 1]
REPORTED = (25, 50, 100, 150)
TESTED = 100
#: Approximately the standard deviation of the rescaled draws.
SIGNAL_STD = math.sqrt(0.05)
#: Settings with --given: the lengthscale with which f is drawn, the true noise, and the floor of f as the prior mean.
STDS: Mapping[str, Any] = {"signal_std": SIGNAL_STD, "noise_std": NOISE}
GIVEN: Mapping[str, Any] = {
    "surrogate": bl.GP(kernel="squared_exponential", lengthscale=LENGTHSCALE, mean=0.0, targets="raw", **STDS),
    "initial__n": 0,
}
#: Settings without --faithful and --given: the kernel and the refit interval of the paper (appendix C), else defaults.
SETTINGS: Mapping[str, Any] = {
    "surrogate__kernel": "squared_exponential",
    "surrogate__refit_every": 10,
    "initial__n": 0,  # the initial points are enqueued
}


class Setting(NamedTuple):
    """An algorithm under a delay distribution, "poisson", "constant" or "by point".

    The distribution has mean ``mu``, and ``window`` is the window of the algorithm. With --given, ``signal_std`` is the
    algorithm's standard deviation of f around its mean; the default is right for draws rescaled to [0, 1].
    """

    algorithm: str
    law: str
    mu: int
    window: int | Literal["auto"]
    signal_std: float = SIGNAL_STD


def sdf(mu: int, window: int | Literal["auto"], signal_std: float = SIGNAL_STD) -> Setting:
    """GP-UCB-SDF under Poisson delays."""
    return Setting("GP-UCB-SDF", "poisson", mu, window, signal_std)


def family(members: Sequence[str], law: str, window: int) -> list[Setting]:
    """Return the settings of these algorithms under delays of mean 10."""
    return [Setting(algorithm, law, 10, window) for algorithm in members]


PANELS = {  # figure and panel of the paper: (title, settings)
    "1(a)": ("Poisson(μ), m = 2μ", [sdf(mu, 2 * mu) for mu in (2, 5, 10, 15, 20, 30)]),
    "1(b)": ("Poisson(10)", [sdf(10, window) for window in (5, 10, 20, 40)]),
    "1(c)": ("Poisson(10), m = 20", family(verma.UCB_FAMILY, "poisson", 20)),
    "1(d)": ("constant 10, m = 10", family(verma.UCB_FAMILY, "constant", 10)),
    "5(a)": ("Poisson(10), m = 20", family(verma.TS_FAMILY, "poisson", 20)),
    "5(b)": ("constant 10, m = 10", family(verma.TS_FAMILY, "constant", 10)),
}
#: The panels of the replay `sdf-by-point`. The smallest probability that a result arrives within the window 20 is 0.56,
#: at x = 1. For the window 40 it is above 0.9999.
NEAREST, BY_POINT, MEAN_BY_POINT = "3 nearest", "by point", 10
BY_POINT_PANELS = {
    title: [Setting(algorithm, law, MEAN_BY_POINT, window) for algorithm, window in members]
    for title, law, members in (
        ("Poisson(10)", "poisson", [("GP-UCB-SDF", 20), ("GP-UCB", 20), ("GP-BUCB", 20), (NEAREST, 20)]),
        (
            "Poisson(20x)",
            BY_POINT,
            [("GP-UCB-SDF", 20), *itertools.product(("GP-UCB-SDF", "GP-UCB", "GP-BUCB", NEAREST), [40])],
        ),
    )
}
#: With --given, there is also a panel with a kernel of variance 1, the largest that the paper allows (section 3.1).
UNIT = "1(a), k(x, x) = 1"
UNIT_VARIANCE = {UNIT: ("Poisson(μ), m = 2μ", [sdf(mu, 2 * mu, 1.0) for mu in (2, 5, 10, 15, 20, 30)])}
#: Title of a panel → the algorithms in the panel; together the panels have the six algorithms.
SIX = {
    "Poisson(10), m = 20": family(verma.ALGORITHMS, "poisson", 20),
    "constant 10, m = 10": family(verma.ALGORITHMS, "constant", 10),
}


def panels(given: bool) -> dict[str, tuple[str, list[Setting]]]:
    """Return the panels that are computed."""
    return PANELS | UNIT_VARIANCE if given else PANELS


def drawn_panels(given: bool) -> dict[str, tuple[str, list[Setting]]]:
    """Return the panels of the figure: 1 (a)-(d) and 5 (a), (b)."""
    return UNIT_VARIANCE | {name: panel for name, panel in PANELS.items() if name != "1(a)"} if given else PANELS


def make(options: Options) -> Report:
    """Run all settings. A setting that several panels show is run once."""
    if options.given and options.faithful:
        raise bl.errors.InvalidSetting(
            "--given and --faithful exclude each other: the authors' code fits the kernel; pass one"
        )
    settings = [setting for _, members in panels(options.given).values() for setting in members]
    described = [describe(*each) for each in run_all(run_task, settings, options, "sdf-synthetic").items()]
    six = {title: [find(described, setting) for setting in members] for title, members in SIX.items()}
    made = {"given": options.given, "noise": NOISE, "settings": described}
    made["tests"] = tests(described, options.given)
    made["longer_delays"] = longer_delays(described, options.given)
    made["rivals"] = rivals(six)
    return made | {"ranking": {title: by_iteration(ranking, chosen) for title, chosen in six.items()}}


def by_iteration(function: Any, chosen: Sequence[Report]) -> Report:
    """Call a function with the six algorithms and with each reported iteration; return a dict of iteration → result."""
    return {str(i): function(chosen, k) for k, i in enumerate(chosen[0]["iteration"])}


def ranking(chosen: Sequence[Report], k: int) -> list[tuple[str, float]]:
    """Rank the six algorithms by mean regret, best first."""
    return sorted(((s["algorithm"], float(s["mean"][k])) for s in chosen), key=lambda pair: pair[1])


def table(found: Report) -> str:
    """Return a table of simple regret for each panel, and sentences about the tests and the ranking."""
    parts = []
    for panel, (title, members) in panels(found["given"]).items():
        chosen = [find(found["settings"], setting) for setting in members]
        header = ["iteration", *map(str, chosen[0]["iteration"]), "s/suggestion"]
        rows = verma.rows_of(chosen, digits=4, cells=lambda setting: [report.seconds(setting)])
        rows = [[label, *cells] for label, (_, *cells) in zip(labels(members), rows, strict=True)]
        parts.append(f"Figure {panel}, {title}: simple regret\n" + report.format_table(header, rows))
    return "\n\n".join([*parts, "\n".join(_sentences(found))])


def figure(found: Report) -> Any:
    """Return Figures 1 (a)-(d) and 5 (a), (b)."""
    drawn = []
    for name, (title, members) in drawn_panels(found["given"]).items():
        chosen = [find(found["settings"], setting) for setting in members]
        axes = {"title": f"{name}: {title}", "ylabel": "Simple regret"}
        drawn.append(report.panel(chosen, labels(members), **axes))
    return report.draw_panels(drawn, columns=3)


def run_task(setting: Setting, run: int, options: Options) -> dict[str, Any]:
    """Return the simple regret after 0, 1, 2, … iterations, as the paper counts it, and also with late results."""
    n_trials = verma.N_INITIAL + options.iterations
    f = sample(seed_of(options.seed, "f", run))
    settings = {**(GIVEN if options.given else SETTINGS), **verma.censoring(setting.algorithm, "discard")}
    if options.given:
        settings["surrogate__signal_std"] = setting.signal_std
    if options.faithful:
        settings = verma.settings_of(setting.algorithm, True, on_a_box=False)
    settings |= {"candidates": grid().reshape(-1, 1), "window": setting.window}
    name = "GP-BUCB" if setting.algorithm == NEAREST else setting.algorithm
    optimizer = bl.algorithm(name, seed=seed_of(options.seed, "optimizer", run), **settings)
    if setting.algorithm == NEAREST:
        optimizer.set_params(pending=bl.papers.Nearest())
    delay: Any = ByPoint(delay_at)
    if setting.law != BY_POINT:
        delay = delays(setting, verma.rng_of(options, "delays", run).random(n_trials))
    first = verma.rng_of(options, "initial", run).choice(N_CANDIDATES, verma.N_INITIAL, replace=False).tolist()
    noise: dict[str, Any] = {"noise": NOISE, "seed": seed_of(options.seed, "noise", run)}
    with warnings.catch_warnings():
        # One of the windows of Figure 1(b) is too short on purpose.
        warnings.simplefilter("ignore", bl.BelatedWarning)
        history = simulate(
            optimizer, lambda x: f[round(float(x[0]) * (N_CANDIDATES - 1))], n_trials, delay, initial=first, **noise
        )
    # A chosen window changes during the run, so every result counts, as in the regret with late results.
    fixed = verma.is_sdf(setting.algorithm) and setting.window != "auto"
    longest = float(setting.window) if fixed else np.inf
    return {
        "regret": simple_regret(history, 1.0, before=1.0, longest=longest)[verma.N_INITIAL :],
        "regret_late_too": simple_regret(history, 1.0, before=1.0)[verma.N_INITIAL :],
        "seconds": float(history.seconds[verma.N_INITIAL :].mean()),
    }


def delay_at(x: Array) -> DelayDistribution:
    """Return the distribution of the delay at a point, if delays depend on the point."""
    return Poisson(2 * MEAN_BY_POINT * float(x[0]))


def delays(setting: Setting, u: Array) -> Array:
    """Return delays for uniform numbers u: Poisson quantiles, or, if delays are constant, their mean."""
    from scipy.stats import poisson

    constant = np.full(len(u), float(setting.mu))
    return np.asarray(poisson.ppf(u, setting.mu), dtype=float) if setting.law == "poisson" else constant


def grid() -> Array:
    """Return the domain, shape (N,)."""
    return np.linspace(0.0, 1.0, N_CANDIDATES)


def sample(seed: int) -> Array:
    """Return a draw of f on the grid, rescaled to [0, 1]."""
    f: Array = covariance_root() @ np.random.default_rng(seed).standard_normal(N_CANDIDATES)
    return np.asarray((f - f.min()) / (f.max() - f.min()), dtype=float)


@lru_cache(maxsize=1)
def covariance_root() -> Array:
    """Return L with L·Lᵀ = K + 1e-10·I. The kernel is so smooth that the factorisation needs this jitter."""
    x = grid()
    k = np.exp(-0.5 * ((x[:, None] - x) / LENGTHSCALE) ** 2)
    return np.asarray(np.linalg.cholesky(k + 1e-10 * np.eye(N_CANDIDATES)), dtype=float)


def describe(setting: Setting, runs: Sequence[dict[str, Any]]) -> Report:
    """Return the entry of the report for a setting."""
    regrets, late_too = report.values_of(runs, "regret"), report.values_of(runs, "regret_late_too")
    last = regrets.shape[1] - 1
    iteration = [i for i in REPORTED if i < last] + [last]
    described = setting._asdict() | verma.curves(regrets, iteration)
    described["seconds_per_suggestion"] = float(np.mean(report.values_of(runs, "seconds")))
    described["regret_per_run"] = {str(i): regrets[:, i] for i in iteration}
    return described | {"regret_per_run_late_too": {str(i): late_too[:, i] for i in iteration}}


def find(described: Sequence[Report], setting: Setting) -> Report:
    """Return the description of a setting."""
    return report.find(described, **setting._asdict())


def labels(members: Sequence[Setting]) -> list[str]:
    """Return the labels of a panel's curves: algorithms if they differ, otherwise mean delays and windows."""
    if len({setting.algorithm for setting in members}) > 1:
        return [setting.algorithm for setting in members]
    return [f"μ = {setting.mu}, m = {setting.window}" for setting in members]


def tests(described: Sequence[Report], given: bool) -> Report:
    """Test whether long delays, short windows and long windows increase the regret of GP-UCB-SDF."""
    iteration = TESTED if TESTED in described[0]["iteration"] else described[0]["iteration"][-1]

    def at(setting: Setting, counted: str = "regret_per_run") -> Array:
        return np.asarray(find(described, setting)[counted][str(iteration)], dtype=float)

    mean, stderr = (float(each) for each in report.mean_stderr(at(sdf(10, 40)) - at(sdf(10, 20))))
    late_too = "regret_per_run_late_too"
    short, long = sdf(10, 5), sdf(10, 20)
    close = {"mean_difference": mean, "stderr": stderr, "within_two_standard_errors": abs(mean) <= 2 * stderr}
    compared = {
        "mu=30 worse than mu=5": verma.worse(at(sdf(30, 60)), at(sdf(5, 10))),
        "m=5 worse than m=20": verma.worse(at(short), at(long)),
        "m=5 worse than m=20, late results counted": verma.worse(at(short, late_too), at(long, late_too)),
    }
    if given:
        compared["mu=30 worse than mu=5, k(x, x) = 1"] = verma.worse(at(sdf(30, 60, 1.0)), at(sdf(5, 10, 1.0)))
    return {"iteration": iteration, "wilcoxon": compared, "m=40 against m=20": close}


def longer_delays(described: Sequence[Report], given: bool) -> list[Report]:
    """Return the verdicts on the regret of GP-UCB-SDF with each mean delay, against the next shorter one."""
    pairs = {}
    for name, (_, members) in panels(given).items():
        if name in ("1(a)", UNIT):
            at = [find(described, setting)["regret_per_run"] for setting in members]
            for k, iteration in itertools.product(range(1, len(members)), at[0]):
                key = name, int(iteration), members[k].mu, members[k - 1].mu
                pairs[key] = at[k][iteration], at[k - 1][iteration]
    keys = "panel", "iteration", "mean", "shorter"
    return [dict(zip(keys, key, strict=True)) | {"verdict": each} for key, each in verdicts(pairs).items()]


def rivals(six: Mapping[str, Sequence[Report]]) -> list[Report]:
    """Return the verdicts on the regret of the paper's algorithms, against each of their rivals."""
    regrets = {}
    for title, chosen in six.items():
        for i in chosen[0]["regret_per_run"]:
            regrets[title, int(i)] = {each["algorithm"]: each["regret_per_run"][i] for each in chosen}
    return verma.rivals(regrets, ("delays", "iteration"))


def _sentences(found: Report) -> list[str]:
    """Describe the tests and the ranking in words."""
    lines = [f"GP-UCB-SDF at iteration {found['tests']['iteration']}, paired over {found['runs']} runs:"]
    for name, test in found["tests"]["wilcoxon"].items():
        verdict = "yes" if test["holds"] else "no"
        lines.append(
            f"  {name}: {verdict} (regret {test['mean']:.4f} against {test['mean_of_the_other']:.4f}, "
            f"Wilcoxon p = {test['p']:.2g}, limit 0.01)"
        )
    close = found["tests"]["m=40 against m=20"]
    (difference,) = report.plus_minus(close["mean_difference"], close["stderr"], digits=4)
    verdict = "yes" if close["within_two_standard_errors"] else "no"
    lines.append(f"  m=20 and m=40 within two standard errors: {verdict} (difference {difference})")
    for each in found["longer_delays"]:
        compared = f"mean {each['mean']} against {each['shorter']}: {each['verdict']}"
        lines.append(f"  {each['panel']}, iteration {each['iteration']}: {compared}")
    lines.append(verma.in_words(found["rivals"]))
    for title, at in found["ranking"].items():
        for iteration, order in at.items():
            ordered = ", ".join(f"{name} {regret:.4f}" for name, regret in order)
            lines.append(f"Ranking, {title}, iteration {iteration}: {ordered}")
    return lines


def make_by_point(options: Options) -> Report:
    """Run the variants that the paper describes without an experiment, with given hyperparameters."""
    settings = [setting for members in BY_POINT_PANELS.values() for setting in members]
    found = run_all(run_task, settings, replace(options, given=True), "sdf-by-point")
    described = [describe(*each) for each in found.items()]
    return {"settings": described, "verdicts": by_point_verdicts(described)}


def by_point_verdicts(described: Sequence[Report]) -> list[Report]:
    """Return the verdicts on the regret of the first algorithm of a pair, in each panel and at each iteration."""
    pairs = {}
    for title, members in BY_POINT_PANELS.items():
        for first, second in itertools.combinations(members, 2):
            regrets = [find(described, setting)["regret_per_run"] for setting in (first, second)]
            for iteration in regrets[0]:
                key = title, int(iteration), _label(first), _label(second)
                pairs[key] = regrets[0][iteration], regrets[1][iteration]
    keys = "delays", "iteration", "algorithm", "rival"
    return [dict(zip(keys, key, strict=True)) | {"verdict": each} for key, each in verdicts(pairs).items()]


def _label(setting: Setting) -> str:
    return f"{setting.algorithm}, m = {setting.window}" if verma.is_sdf(setting.algorithm) else setting.algorithm


def table_by_point(found: Report) -> str:
    """Return a table of simple regret for each panel, and the verdicts."""
    parts = []
    for title, members in BY_POINT_PANELS.items():
        chosen = [find(found["settings"], setting) for setting in members]
        rows = verma.rows_of(chosen, digits=4)
        rows = [[_label(setting), *cells] for setting, (_, *cells) in zip(members, rows, strict=True)]
        parts.append(f"{title}: simple regret\n" + report.format_table(["", *map(str, chosen[0]["iteration"])], rows))
    lines = ["Verdicts (two-sided Wilcoxon tests at the level 0.05, with Holm's correction):"]
    for each in found["verdicts"]:
        compared = f"{each['algorithm']} against {each['rival']}: {each['verdict']}"
        lines.append(f"  {each['delays']}, iteration {each['iteration']}: {compared}")
    return "\n\n".join([*parts, "\n".join(lines)])


def figure_by_point(found: Report) -> Any:
    """Return a panel for each kind of delays."""
    drawn = []
    for title, members in BY_POINT_PANELS.items():
        chosen = [find(found["settings"], setting) for setting in members]
        drawn.append(report.panel(chosen, map(_label, members), title=title, ylabel="Simple regret"))
    return report.draw_panels(drawn, columns=2)


BY_POINT_LINE = (
    "Verma et al. 2022, section 3.3 and footnote 3: delays that depend on the point, and the nearest points."
)

REPLAYS = [
    Replay("sdf-synthetic", __doc__, make, table, figure, runs=50, iterations=150, needs=["scipy"], options=["given"]),
    Replay("sdf-by-point", BY_POINT_LINE, make_by_point, table_by_point, figure_by_point, 100, 150, needs=["scipy"]),
]
