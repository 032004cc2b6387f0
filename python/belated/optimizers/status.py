"""The rounds of `BPEDelay` and the trees of `TreeSearch`, as they can be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Round:
    """A round of `BPEDelay`, begun or planned.

    Attributes
    ----------
    number : int
        From 1 on.
    n_explored : int
        q_r: how many suggestions its bounds wait for.
    length : int, optional
        t_r: how many suggestions it has; None for a round that lasts until the delays are known.
    n_suggested : int
        How many of them were started so far.
    n_arrived : int
        How many results its bounds are drawn from; so far, in the last round.
    n_surviving : int, optional
        How many points it chooses from; None for a planned one.
    delay : tuple (mean, xi, b), optional
        The delay model that its length follows from, as given or as estimated; None before there is any result.
    """

    number: int
    n_explored: int
    length: int | None
    n_suggested: int
    n_arrived: int
    n_surviving: int | None
    delay: tuple[float, float, float] | None


def round_from(status: Mapping[str, Any]) -> Round:
    """A round from its status in the core."""
    delay = status["delay"]
    return Round(**{**status, "delay": None if delay is None else (delay["mean"], delay["xi"], delay["b"])})


@dataclass(frozen=True)
class Tree:
    """A tree of a `TreeSearch`.

    Attributes
    ----------
    nu, rho : float
        The assumed smoothness: f varies by nu rho**h at most in a cell of depth h; nu is in units of f.
    n_cells : int
        How many cells were visited.
    depth : int
        Of the deepest one; the whole space has depth 0.
    """

    nu: float
    rho: float
    n_cells: int
    depth: int
