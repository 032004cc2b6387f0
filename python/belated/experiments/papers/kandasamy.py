"""The experiments of Kandasamy et al. 2017 on synthetic functions: methods, functions, workers and evaluation times.

Notation: M is the number of workers, T the duration of a run in simulated time, and d the number of dimensions. j
counts trials, including the initial trials.

The paper states the methods, the functions, the noise and the distributions of evaluation times, which have mean 1. All
methods share random initial points, and curves begin after these points. For Hartmann6 the paper states about 12·30
evaluations, so M = 12 and T = 30. For the other panels, only the titles of the figures give M and the distributions.
The values below are ours, with more workers in more dimensions. The number of initial points is max(M, min(6d, 25)), as
in the authors' code. Here the values of the initial points are known at time 0. The authors' code starts initial points
like all others, and asynchronously even for synchronous methods.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

import belated as bl
from belated import functions
from belated.functions import Function
from belated.simulate import DelayDistribution, Exponential, HalfNormal, Pareto, Uniform

SYNCHRONOUS = ("synRAND", "synBUCB", "synUCBPE", "synTS")
ASYNCHRONOUS = ("asyRAND", "asyUCB", "asyHUCB", "asyEI", "asyHTS", "asyTS")
METHODS = (*SYNCHRONOUS, *ASYNCHRONOUS)
#: Methods that are compared by the number of evaluations.
BY_EVALUATIONS = ("seqTS", "synTS", "asyTS")

FUNCTIONS: Mapping[str, Function] = {
    function.name: function
    for function in (
        functions.BRANIN,
        functions.CURRIN_EXPONENTIAL,
        functions.HARTMANN3,
        functions.PARK1,
        functions.PARK2,
        functions.HARTMANN6,
        functions.HARTMANN12,
        functions.CURRIN_EXPONENTIAL_14,
        functions.PARK2_16,
        functions.HARTMANN18,
    )
}
#: The number of workers, M.
WORKERS = dict(zip(FUNCTIONS, (4, 4, 8, 10, 10, 12, 12, 25, 20, 25), strict=True))
#: All distributions have mean 1. The power 5 of Pareto's distribution comes from the code.
TIMES: Mapping[str, DelayDistribution] = {
    "uniform": Uniform(0.0, 2.0),
    "half-normal": HalfNormal(),
    "exponential": Exponential(),
    "Pareto": Pareto(power=5.0),
}

#: Number of evaluations by DIRECT. The paper does not state it; this is the smallest number of points that the code
#: scores.
N_DIRECT = 2000

#: Settings of the authors' code that the paper omits or states differently, as arguments of `belated.algorithm`.
FAITHFUL: Mapping[str, Any] = {"surrogate__refit_every": 27, "surrogate__priors": False}
#: The same settings for methods with upper confidence bounds.
FAITHFUL_UCB: Mapping[str, Any] = {"acquisition__beta": "kandasamy_code"}


@dataclass(frozen=True)
class Panel:
    """A function under a distribution of evaluation times."""

    function: str
    times: str

    @property
    def workers(self) -> int:
        return WORKERS[self.function]

    def __str__(self) -> str:
        return f"{self.function}, d = {len(FUNCTIONS[self.function].space)}, M = {self.workers}, {self.times}"


#: The panels of figures 4 and 5; Figure 2 shows some of them.
PANELS = (
    Panel("branin", "uniform"),
    Panel("currin-exponential", "Pareto"),
    Panel("hartmann3", "half-normal"),
    Panel("park1", "half-normal"),
    Panel("park2", "half-normal"),
    Panel("hartmann6", "exponential"),
    Panel("hartmann6", "half-normal"),
    Panel("hartmann12", "half-normal"),
    Panel("currin-exponential-14", "Pareto"),
    Panel("park2-16", "half-normal"),
    Panel("hartmann18", "half-normal"),
)


def mode(method: str) -> Literal["synchronous", "asynchronous", "sequential"]:
    """Return the mode in which a method uses its workers."""
    modes: Mapping[str, Literal["synchronous", "asynchronous", "sequential"]]
    modes = {"syn": "synchronous", "asy": "asynchronous", "seq": "sequential"}
    return modes[method[:3]]


def n_initial(function: Function, workers: int) -> int:
    """Return the number of random points with which a run begins."""
    return max(workers, min(6 * len(function.space), 25))


def initial_points(function: Function, n: int, rng: np.random.Generator) -> list[dict[str, float]]:
    """Return uniformly random points."""
    low, high = np.array([(dimension.low, dimension.high) for dimension in function.space.values()]).T
    rows = low + (high - low) * rng.random((n, len(low)))
    return [dict(zip(function.space, row, strict=True)) for row in rows.tolist()]


def optimizer(
    method: str, function: Function, seed: int, *, n_trials: int, faithful: bool, direct: bool = False
) -> bl.Optimizer:
    """A method by its name.

    By default the method follows the paper, but belated's own search maximises the acquisitions. The paper uses DIRECT,
    which finds lower values in many dimensions. `direct` uses DIRECT. `faithful` follows the authors' code, which
    scores random points.
    """
    if method.endswith("RAND") or not faithful:
        settings = {"search__direct": N_DIRECT} if direct and not method.endswith("RAND") else {}
        return bl.algorithm(method, function.space, seed=seed, **settings)
    settings = dict(FAITHFUL) | {"search__multistart": (n_scored(len(function.space), n_trials), 0)}
    if "UCB" in method:
        settings |= FAITHFUL_UCB
    return bl.algorithm(method, function.space, seed=seed, **settings)


def n_scored(d: int, j: int) -> int:
    """Return the number of random points that the authors' code scores at the last trial, for use at all trials."""
    return int(np.clip(10 * min(5, d) ** 2 * np.sqrt(min(j, 1000)), 2000, 30_000))
