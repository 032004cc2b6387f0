"""The experiments of Wang et al. 2022 on synthetic functions: functions, delays, settings of the scripts, results.

Notation: z is a fidelity, C is the bias constant, b is the range in DUCBV's bound, and T is the duration of a run. T
and delays are in units of time; in the paper, the unit is a second.

The paper states five functions, ten runs of 600 s, a delay of 4 s or geometric delays of mean 10 s, and the noise.
However, the authors' program does not add noise, because its search never calls the method that draws the noise. Its
released version evaluates only at z = 1. This file has the settings of the authors' scripts; where the settings of the
paper differ, both are given. The scripts and the paper differ in the variances for DUCB1σ on CurrinExp and Borehole, in
the b of DUCBV and a factor of its last term, and in the number of instances of POO. At lower fidelities, the program's
functions also differ from the functions in the paper. CurrinExp is the full function at z = 0, and Branin has only the
first of its three shifts. These functions determine nu = C = sqrt(2)·|f_0.8 − f_0.2|/0.6, where f_z is the value at the
centre with fidelity z. With the program's functions, nu agrees with tables 5 and 9 of the paper in all digits. The
settings behind these tables differ from the scripts. The best instance of DUCBV has the rho of the second or third of
three instances. For some functions nu is 1.4·C, which is possible only if an earlier instance evaluated a cell at two
fidelities. Each single tree has about as many nodes as 600 s allow.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import belated as bl
from belated import functions, plotting
from belated.functions import MultiFidelityFunction
from belated.plotting.figures import DASHES, PALETTE
from belated.replays import report
from belated.replays.reference_tree import RHO_MAX, UCBV, Act, Evaluations, Instance, Rng, UCB1Sigma, run_poo
from belated.replays.report import Array, Report
from belated.simulate import Constant, DelayDistribution, Geometric, simulate

Noise = Callable[[], float] | None

DURATION = 600
N_READINGS = 60
B = 5.0  # a loose bound on f for (D)UCBV (appendix D.2.1); not used with the settings of the scripts
#: The maximum delay of the program's results beyond the nominal delay, according to the time stamps of recorded runs.
LATENESS = 0.01
#: Number of instances of POO, in the scripts.
INSTANCES: Mapping[str, int] = {"UCB1-sigma": 3, "UCBV": 1}

#: Name of the delays (a key of `TABLES`) → distribution.
DELAYS: Mapping[str, DelayDistribution] = {"constant": Constant(4.0), "geometric": Geometric(10.0)}
TABLES = {"constant": "constant_delay_4s", "geometric": "geometric_delay_mean_10s"}
DATA_FILE = "wang2022_tables.json"

#: Regrets below this value are drawn at it, because a logarithmic axis does not contain 0.
FLOOR = 1e-7
#: One marker for each algorithm of a figure. Colours and dashes repeat with different periods, so that styles differ.
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "<", ">", "*", "h", "p")

TREES = ("MFPOO+UCB1-sigma", "MFPOO+UCBV", "PCTS+DUCB1-sigma", "PCTS+DUCBV")


@dataclass(frozen=True)
class Problem:
    """A function, the optimum from which the paper measures regret, and the settings of the authors' scripts.

    ``variance`` is the variance of the noise in the paper, and ``given`` the variance that the scripts give to
    (D)UCB1σ. ``b`` and ``factor`` are parameters of (D)UCBV. ``program`` computes f(x, z) as the authors' program does,
    if the program's function differs from ``function``.
    """

    function: MultiFidelityFunction
    optimum: float
    variance: float
    given: float
    b: float
    factor: float
    program: "Callable[[Problem, Array, float], float] | None" = None

    @property
    def d(self) -> int:
        return len(self.function.space)

    def scaled(self, x: Array) -> list[float]:
        """Return a point of the unit cube in the units of the function."""
        bounds = [(each.low, each.high) for each in self.function.space.values()]
        return [low + (high - low) * each for (low, high), each in zip(bounds, x.tolist(), strict=True)]

    def value(self, x: Array, z: float = 1.0) -> float:
        """Return f on the unit cube."""
        return self.function.formula(self.scaled(x), z)


def _program_currin(problem: Problem, x: Array, z: float) -> float:
    """CurrinExp in the program: the full function is at z = 0, and its values are clipped at the optimum."""
    return min(problem.value(x, 1.0 - z), problem.optimum)


def _program_branin(problem: Problem, x: Array, z: float) -> float:
    """Branin in the program: of the three coefficients, only b depends on z."""
    x1, x2 = problem.scaled(x)
    b = 5.1 / (4 * math.pi**2) - 0.01 * (1 - z)
    return -((x2 - b * x1**2 + 5 / math.pi * x1 - 6) ** 2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x1) + 10)


def _program_borehole(problem: Problem, x: Array, z: float) -> float:
    """Borehole in the program: the full function is clipped at the optimum."""
    full, low = problem.value(x, 1.0), problem.value(x, 0.0)
    return z * min(full, problem.optimum) + (1 - z) * low


PROBLEMS: Mapping[str, Problem] = {
    "Hartmann3": Problem(functions.HARTMANN3_MF, 3.86278, 0.01, 0.01, 5.0, 0.02),
    "Hartmann6": Problem(functions.HARTMANN6_MF, 3.32237, 0.05, 0.05, 5.0, 0.02),
    "CurrinExp": Problem(functions.CURRIN_EXPONENTIAL_MF, 13.798685, 0.05, 0.5, 5.0, 0.02, _program_currin),
    "Branin": Problem(functions.BRANIN_MF, -0.397887, 0.05, 0.05, 1.0, 0.8, _program_branin),
    "Borehole": Problem(functions.BOREHOLE_MF, 309.523221, 0.01, 5.0, 350.0, 0.0095, _program_borehole),
}

#: Function → the product of b and the factor of (D)UCBV that was chosen after the published values were known.
CHOSEN: Mapping[str, float] = {"Hartmann6": 0.01, "Branin": 0.05, "Borehole": 0.01}

#: Height and number of nodes of the best instance in table 5 (constant delays) and table 9 (geometric delays).
PUBLISHED_TREES: Mapping[tuple[str, str], tuple[tuple[int, int], ...]] = {
    ("constant", "Hartmann3"): ((21, 151), (10, 151), (27, 603), (18, 681)),
    ("constant", "Hartmann6"): ((25, 151), (25, 151), (36, 593), (39, 427)),
    ("constant", "CurrinExp"): ((15, 151), (12, 151), (25, 607), (18, 915)),
    ("constant", "Borehole"): ((42, 151), (35, 151), (65, 597), (60, 601)),
    ("constant", "Branin"): ((20, 151), (13, 151), (29, 599), (25, 619)),
    ("geometric", "Hartmann3"): ((17, 67), (12, 67), (26, 407), (28, 339)),
    ("geometric", "Hartmann6"): ((16, 69), (9, 63), (30, 323), (33, 327)),
    ("geometric", "CurrinExp"): ((15, 69), (10, 69), (19, 407), (21, 385)),
    ("geometric", "Borehole"): ((21, 63), (34, 69), (53, 399), (73, 321)),
    ("geometric", "Branin"): ((18, 67), (10, 69), (23, 389), (22, 385)),
}


def published_tables(data: Path | None) -> dict[str, Any]:
    """Return the tables of the paper; empty without the file."""
    return report.read_json(data, DATA_FILE) or {}


def statistics(row: Mapping[str, Any]) -> dict[str, float]:
    """Return maximum, median and standard deviation of a row of a table."""
    return {key: row[key] for key in ("max", "median", "std")}


def published(data: Path | None) -> dict[tuple[str, str, str], dict[str, float]]:
    """Return (delays, function, algorithm) → max, median and std of tables 4 and 8; empty without the file."""
    tables = published_tables(data)
    return {
        (delays, row["task"], row["algorithm"].replace(" ", "")): statistics(row)
        for delays, key_of in TABLES.items()
        for row in tables.get(key_of, [])
    }


def figures_of(values: Array) -> Report:
    """Return the values of all runs and their statistics."""
    return {"values": values, "max": values.max(), "median": np.median(values), "std": values.std()}


def at_readings(times: Array, values: Array, duration: float) -> Array:
    """Return values at equally spaced times; NaN before the first value."""
    at = np.searchsorted(times, report.readings(duration, N_READINGS), side="right")
    return np.concatenate([[math.nan], values])[at]


def regret_figure(panels: Mapping[str, Sequence[Report]], duration: float, columns: int) -> Any:
    """Return a figure with a panel for each title: median regret against time, one curve for each algorithm.

    Bars extend from the minimum to the maximum over the runs, as in the paper; one run has no bars. An algorithm has
    the same style in all panels, and the legend is below the panels. The regret axis begins at most a decade below the
    smallest median above `FLOOR`, so bars may be cut.
    """
    figure, axes = plotting.grid(-(-len(panels) // columns), columns)
    names = list(dict.fromkeys(each["algorithm"] for settings in panels.values() for each in settings))
    at = report.readings(duration, N_READINGS)
    for ax, (title, settings) in zip(axes, panels.items(), strict=True):
        least = math.inf
        for each in settings:
            # The computed regret may be 0 or negative, because the paper's optimum is rounded.
            low, median, high = np.maximum(np.asarray(each["curve_regret"], dtype=float), FLOOR)
            least = min(least, np.min(median, where=median > FLOOR, initial=math.inf))
            k = names.index(each["algorithm"])
            errors = (median - low, high - median) if (high > low).any() else None
            bars: dict[str, Any] = {"yerr": errors, "elinewidth": 0.8, "capsize": 2}
            bars |= {"errorevery": (k, len(MARKERS)), "markevery": (k, len(MARKERS)), "markersize": 4}
            bars |= {"color": PALETTE[k % len(PALETTE)], "linestyle": DASHES[k % len(DASHES)], "marker": MARKERS[k]}
            ax.errorbar(at, median, label=each["algorithm"], **bars)
        ax.set(title=title, xlabel="Time", ylabel="Median simple regret", yscale="log")
        if ax.get_ylim()[0] < least / 10 < math.inf:
            ax.set_ylim(bottom=least / 10)
        ax.grid(alpha=0.3)
    report.legend_below(figure, 2 * columns)
    return figure


def curve_regret(optimum: float, curves: Array) -> Array:
    """Return the minimum, median and maximum regret over the runs (axis 0 of `curves`) at each reading."""
    return np.stack([function(optimum - curves, axis=0) for function in (np.min, np.median, np.max)])


def rhos() -> list[float]:
    """Return rho of the three instances of POO in tables 5 and 9, rho_i = rho_max^(3/(3 − i))."""
    return [RHO_MAX ** (3 / (3 - i)) for i in range(3)]


def bias_constant(problem: Problem) -> float:
    """Return C = sqrt(2)·|f_0.8 − f_0.2|/0.6, where f_z is the value at the centre with fidelity z. nu equals C."""
    x = np.full(problem.d, 0.5)
    return math.sqrt(2) * abs(problem.value(x, 0.8) - problem.value(x, 0.2)) / 0.6


def program_value(problem: Problem) -> Callable[[Array, float], float]:
    """Return f(x, z) of the authors' program on the unit cube."""
    return problem.value if problem.program is None else partial(problem.program, problem)


def paper_search(
    problem: Problem, algorithm: str, delays: str, duration: int, noise: Noise, noise_std: float, rng: Rng
) -> tuple[Array, int]:
    """Run PCTS as in the paper; return the noiseless values of its recommendations at equally spaced times, and the
    number of its evaluations.

    In every unit of time an evaluation starts at a uniformly random point of a leaf, and the leaf is expanded at once.
    Evaluations are at full fidelity: the delay is the same at any fidelity, so a lower fidelity would not save time.
    """
    bound = bl.papers.DUCBV(b=B) if algorithm == "PCTS+DUCBV" else bl.papers.DUCB1Sigma(noise_std=noise_std)
    seed = int(rng.integers(2**31))
    optimizer = bl.TreeSearch(problem.function.space, bound=bound, nu=bias_constant(problem), rho=rhos(), seed=seed)
    recommended: list[float] = []

    def noisy(params: Mapping[str, float]) -> float:
        # The evaluation of a unit of time starts after the results that have arrived by then are observed.
        with suppress(bl.errors.NotFitted):
            recommended.append(problem.function(optimizer.recommend()))
        return problem.function(params) + (0.0 if noise is None else noise())

    history = simulate(optimizer, noisy, duration, DELAYS[delays], seed=int(rng.integers(2**31)))
    times = np.arange(duration - len(recommended), duration, dtype=float)
    return at_readings(times, np.array(recommended), duration), int(np.sum(history.arrivals <= duration))


def run_program(
    problem: Problem,
    delays: str,
    algorithm: str,
    rng: Rng,
    *,
    duration: float = DURATION,
    noise: Noise = None,
    variance: float | None = None,
    as_tables: bool = False,
) -> list[Instance]:
    """Run instances of PCTS or MFPOO as in the authors' program, see `belated.replays.reference_tree`.

    By default this function runs the released program: the program's function, the bound of the scripts, and exact
    delays. With ``variance``, the function, the bound and the fidelities are as in the paper, and the noise has this
    variance. With ``as_tables``, three instances run for the whole duration each. Each result is then late by up to
    `LATENESS`, so evaluations that start together have results at different times.
    """
    times, is_ucbv = endless(DELAYS[delays], rng), algorithm.endswith("UCBV")
    if as_tables:
        times = (delay + LATENESS * float(rng.random()) for delay in endless(DELAYS[delays], rng))
    f, width = program_value(problem), UCBV(problem.b, problem.factor) if is_ucbv else UCB1Sigma(problem.given)
    if variance is not None:
        f, width = problem.value, UCBV(B) if is_ucbv else UCB1Sigma(variance)
    evaluations = Evaluations(f, problem.d, times, noise, fidelity=as_tables or variance is not None)
    at_most = 3 if as_tables else INSTANCES["UCBV" if is_ucbv else "UCB1-sigma"]
    act: Act = "delayed" if algorithm.startswith("PCTS") else "wait"
    unit = DELAYS[delays].mean
    return run_poo(evaluations, width, duration, unit, rng, at_most=at_most, act=act, whole_each=as_tables)


def noise(kind: str, variance: float, rng: Rng) -> Noise:
    """Return a function that draws "Gaussian" or "Laplace" noise of mean 0, or None if the noise is "none"."""
    if kind == "none":
        return None
    if kind == "Laplace":
        return partial(rng.laplace, 0.0, math.sqrt(variance / 2))  # of variance 2·scale²
    return partial(rng.normal, 0.0, math.sqrt(variance))


def endless(distribution: DelayDistribution, rng: Rng) -> Iterator[float]:
    """Yield delays one after the other."""
    while True:
        yield from np.atleast_1d(distribution.sample(rng, 256)).tolist()
