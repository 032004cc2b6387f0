"""Constrained spaces for tests and measurements, with predicates that can be pickled."""

import math
from typing import Any

import belated as bl

CUBE = {"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 1.0)}
BOX = {"x": (-1.0, 1.0), "y": (-1.0, 1.0)}
MIXED = {"n": bl.Integer(1, 20), "kind": ["small", "large"], "share": (0.0, 1.0)}

# 5 % of the area of the box: pi (R² - r²) = 0.2.
OUTER, INNER = 0.9, math.sqrt(0.81 - 0.2 / math.pi)


def below_one(p: dict[str, Any]) -> bool:
    """A simplex: a sixth of the cube."""
    return p["a"] + p["b"] + p["c"] <= 1


def in_ring(p: dict[str, Any]) -> bool:
    """A ring that is 5 % of the box."""
    return INNER <= math.hypot(p["x"], p["y"]) <= OUTER


def affordable(p: dict[str, Any]) -> bool:
    """A bound on the product of an integer and a number; it is lower for one of the two categories."""
    return p["n"] * p["share"] <= (2.0 if p["kind"] == "small" else 6.0)


def even_if_small(p: dict[str, Any]) -> bool:
    """Half of the integers, for one of two categories."""
    return p["kind"] == "large" or p["n"] % 2 == 0


SPACES: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "simplex": (CUBE, [below_one]),
    "ring": (BOX, [in_ring]),
    "mixed": (MIXED, [affordable, even_if_small]),
}


def value(p: dict[str, Any]) -> float:
    """A smooth function on each of the spaces, larger at infeasible points than at feasible ones."""
    numbers = [float(v) for v in p.values() if not isinstance(v, str)]
    waves = sum(math.sin(3 * v + i) + 0.3 * v for i, v in enumerate(numbers))
    return waves + (0.5 if p.get("kind") == "small" else 0.0)
