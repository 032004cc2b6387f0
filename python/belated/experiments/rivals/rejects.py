"""Rejection of the worst: arms by successive rejects, and cells of a partition."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from belated.experiments.reference_tree import Cell, centre

Array = NDArray[np.float64]


def successive_rejects(draw: Callable[[int], float], n_arms: int, budget: int) -> int:
    """Return the last remaining arm (Audibert et al. 2010, Figure 3). Each of K − 1 phases rejects the worst mean.

    n_k = ⌈(n − K)/(logbar(K)·(K + 1 − k))⌉, logbar(K) = 1/2 + Σ_(i=2)^K 1/i.
    """
    log_bar = 0.5 + sum(1 / i for i in range(2, n_arms + 1))
    active = list(range(n_arms))
    totals, counts = np.zeros(n_arms), np.zeros(n_arms)
    n_before = 0
    for k in range(1, n_arms):
        n_k = math.ceil((budget - n_arms) / (log_bar * (n_arms + 1 - k)))
        for arm in active:
            for _ in range(n_k - n_before):
                totals[arm] += draw(arm)
                counts[arm] += 1
        n_before = n_k
        means = totals / np.maximum(counts, 1)
        active.remove(min(active, key=means.__getitem__))
    return active[0]


def rejecting_cells(
    evaluate: Callable[[Sequence[Array]], Sequence[float]], d: int, delta: float = 0.1, alpha: float = 2.0
) -> Iterator[Array]:
    """Run "SR" of Wang et al. 2022, appendix D.5 (Locatelli and Carpentier 2018, Algorithm 2), with the settings of
    their script; return the centre of the best cell after each level.

    At level l the centre of every active cell is evaluated t_l times, all at once. Cells are rejected if their mean is
    more than B_l below the best mean. The other cells are halved.
    """
    active: list[Cell] = [((0.0, 1.0),) * d]
    level = 0
    while True:
        delta_l = delta * 0.5 ** (level * (d + 1))
        b_l = 0.5 ** (level * alpha)
        t_l = int(0.5 * math.log(1 / delta_l) / b_l**2)
        values = evaluate([centre(cell) for cell in active for _ in range(t_l)])
        means = np.reshape(values, (len(active), t_l)).mean(axis=1)
        yield centre(active[int(np.argmax(means))])
        wide = 2 * (math.sqrt(math.log(1 / delta_l) / (2 * t_l)) + b_l)
        kept = [cell for cell, mean in zip(active, means, strict=True) if means.max() - mean <= wide]
        active = [half for cell in kept for half in _halved(cell)]
        level += 1


def _halved(cell: Cell) -> tuple[Cell, Cell]:
    """Return both halves along the longest side."""
    j = int(np.argmax([high - low for low, high in cell]))
    low, high = cell[j]
    middle = 0.5 * (low + high)
    return (*cell[:j], (low, middle), *cell[j + 1 :]), (*cell[:j], (middle, high), *cell[j + 1 :])
