"""Public data classes for the rounds of `BPEDelay` and the trees of `TreeSearch`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Round:
    """A round of `BPEDelay` that has begun or is planned.

    Attributes
    ----------
    number : int
        The number of the round, counted from 1.
    n_explored : int
        q_r: the number of suggestions whose results the bounds of the round require.
    length : int, optional
        t_r: the number of suggestions in the round. None if the length of the round is not known yet.
    n_suggested : int
        The number of suggestions in the round so far.
    n_arrived : int
        The number of results that the bounds of the round are computed from; in the last round, the number so far.
    n_surviving : int, optional
        The number of points that the round chooses from; None for a planned round.
    delay : tuple (mean, xi, b), optional
        The delay model that determines the length of the round, given or estimated. None before the first result.
    """

    number: int
    n_explored: int
    length: int | None
    n_suggested: int
    n_arrived: int
    n_surviving: int | None
    delay: tuple[float, float, float] | None


def round_from(status: Mapping[str, Any]) -> Round:
    """Return a round from its status in the core."""
    delay = status["delay"]
    return Round(**{**status, "delay": None if delay is None else (delay["mean"], delay["xi"], delay["b"])})


@dataclass(frozen=True)
class Tree:
    """A tree of a `TreeSearch`.

    Attributes
    ----------
    nu, rho : float
        The assumed smoothness: f varies by at most nu rho**h in a cell of depth h. nu is in units of f.
    n_cells : int
        Number of visited cells.
    depth : int
        Depth of the deepest cell; the whole space has depth 0.
    """

    nu: float
    rho: float
    n_cells: int
    depth: int
