"""Test functions for comparing tree searches. All functions are minimised. The minima are not at points where a tree
search halves its cells.

Notation: x in [low, high] is a point, and f(x) >= 0 is its regret, the value minus the minimum.
"""

import math
import os
import tempfile
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

N_RANDOM = 1000
BBOB_BOX = (-4.9, 4.8)  # an interval inside [-5, 5]; BBOB's f24 has its minimum at ±1.25 in every coordinate


class Unavailable(Exception):
    """Raised if a package is not installed or a problem does not exist."""


@dataclass(frozen=True)
class Problem:
    """A function on a box, and the median of its regret at random points."""

    low: np.ndarray
    high: np.ndarray
    f: Callable[[np.ndarray], float]
    typical: float


def ackley(x):
    waves = float(np.mean(np.cos(2 * math.pi * x)))
    return 20 - 20 * math.exp(-0.2 * math.sqrt(float(np.mean(x * x)))) + math.e - math.exp(waves)


def rastrigin(x):
    return float(np.sum(x * x + 10 - 10 * np.cos(2 * math.pi * x)))


#: The point in [0, 500] at which x·sin √x is largest, and the maximum.
SCHWEFEL_AT, SCHWEFEL_BEST = 420.968746, 418.982887


def schwefel(x):
    return max(0.0, SCHWEFEL_BEST * len(x) - float(np.sum(x * np.sin(np.sqrt(np.abs(x))))))


def shifted(formula, half, d, rng):
    """Return a function on [-half, half]^d. The function is the formula, shifted so that the minimum is at a random
    point of [-half/2, half/2]^d."""
    shift = rng.uniform(-half / 2, half / 2, d)
    return np.full(d, -half), np.full(d, half), lambda x: formula(x - shift)


def mirrored_schwefel(d, rng):
    """Return Schwefel's function, with some coordinates mirrored, on a box that begins between -500 and -400."""
    sign, low = rng.choice([-1.0, 1.0], d), rng.uniform(-500.0, -400.0, d)
    ends = sign * low, sign * 500.0
    return np.minimum(*ends), np.maximum(*ends), lambda x: schwefel(sign * x)


@cache
def bbob_suite():
    try:
        import cocoex
    except ImportError:
        raise Unavailable("the package coco-experiment is not installed") from None
    return cocoex.Suite("bbob", "instances: 1-15", "")


def bbob(number, d, seed):
    """Return an instance of a function from the BBOB suite; the instance has 5 dimensions if d is 6."""
    problem = bbob_suite().get_problem_by_function_dimension_instance(number, 5 if d == 6 else d, 1 + seed % 15)
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        problem._best_parameter("print")
        optimum = problem(np.loadtxt(next(os.scandir(folder)).path))
    low, high = (np.full(problem.dimension, end) for end in BBOB_BOX)
    return low, high, lambda x: max(0.0, float(problem(x)) - optimum)


FUNCTIONS = {
    "ackley": lambda d, seed, rng: shifted(ackley, 32.768, d, rng),
    "rastrigin": lambda d, seed, rng: shifted(rastrigin, 5.12, d, rng),
    "schwefel": lambda d, seed, rng: mirrored_schwefel(d, rng),
}
FUNCTIONS |= {
    f"bbob-f{number}": partial(lambda number, d, seed, rng: bbob(number, d, seed), number)
    for number in (1, 3, 8, 15, 20, 21, 24)
}

#: The problems, grouped by the property that makes a problem difficult.
GROUPS = {
    "one valley": ["bbob-f1", "bbob-f8"],
    "many regular optima": ["ackley", "rastrigin", "bbob-f3", "bbob-f15"],
    "many irregular optima": ["schwefel", "bbob-f20", "bbob-f21", "bbob-f24"],
}


def make(name, d, seed):
    """Return the function for the seed in d dimensions."""
    rng = np.random.default_rng([seed, d])
    low, high, f = FUNCTIONS[name](d, seed, rng)
    points = rng.uniform(low, high, (N_RANDOM, len(low)))
    return Problem(low, high, f, float(np.median([f(x) for x in points])))
