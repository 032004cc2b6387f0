"""Constrained spaces for tests and benchmarks. The predicates can be pickled."""

import math
from typing import Any

import belated as bl

CUBE = {"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 1.0)}
BOX = {"x": (-1.0, 1.0), "y": (-1.0, 1.0)}
MIXED = {"n": bl.Integer(1, 20), "kind": ["small", "large"], "share": (0.0, 1.0)}

# The ring covers 5 % of the box: pi (R² - r²) = 0.2.
OUTER, INNER = 0.9, math.sqrt(0.81 - 0.2 / math.pi)


def below_one(p: dict[str, Any]) -> bool:
    """A constraint whose feasible set is a simplex, a sixth of the cube."""
    return p["a"] + p["b"] + p["c"] <= 1


def in_ring(p: dict[str, Any]) -> bool:
    """A constraint whose feasible set is a ring, 5 % of the box."""
    return INNER <= math.hypot(p["x"], p["y"]) <= OUTER


def affordable(p: dict[str, Any]) -> bool:
    """A bound on the product of an integer and a number. The bound is lower if the category is "small"."""
    return p["n"] * p["share"] <= (2.0 if p["kind"] == "small" else 6.0)


def even_if_small(p: dict[str, Any]) -> bool:
    """If the category is "small", only even integers are allowed."""
    return p["kind"] == "large" or p["n"] % 2 == 0


SPACES: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "simplex": (CUBE, [below_one]),
    "ring": (BOX, [in_ring]),
    "mixed": (MIXED, [affordable, even_if_small]),
}


def value(p: dict[str, Any]) -> float:
    """A smooth function for each space; the maximum of each function is at an infeasible point."""
    numbers = [float(v) for v in p.values() if not isinstance(v, str)]
    waves = sum(math.sin(3 * v + i) + 0.3 * v for i, v in enumerate(numbers))
    return waves + (0.5 if p.get("kind") == "small" else 0.0)
