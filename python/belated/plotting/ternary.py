"""A triangle of three parts of a mixture: its points, its axes, and filled contours on it.

At corner i, part i has its largest value, and the two others have their smallest values. p is a point in shares: p_i is
1 at corner i and 0 on the opposite edge, and p_1 + p_2 + p_3 = 1. Corner 1 is above, 2 on the left and 3 on the right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from belated.plotting import figures
from belated.plotting.figures import Axes
from belated.plotting.regions import equalities, range_of
from belated.space.space import Space

Array = NDArray[np.float64]

_CORNERS = np.array([[0.5, np.sqrt(0.75)], [0.0, 0.0], [1.0, 0.0]])


class Triangle(NamedTuple):
    """The smallest values of three parts, and by how much a part can exceed its smallest value."""

    lowest: Array
    width: float

    def values(self, n: int) -> Array:
        """Return the parts at the points of a triangular grid with n points on each edge, shape (k, 3)."""
        steps = [(i, j, n - 1 - i - j) for i in range(n) for j in range(n - i)]
        return self.lowest + self.width * np.array(steps) / (n - 1)

    def places(self, values: ArrayLike) -> Array:
        """Return the places of parts on the axes, shape (k, 2). Parts with another sum are scaled to the sum."""
        given = np.asarray(values, dtype=float)
        scaled = given / given.sum(axis=-1, keepdims=True) * (self.lowest.sum() + self.width)
        found: Array = (scaled - self.lowest) / self.width @ _CORNERS
        return found


def triangle_of(space: Space, point: Mapping[str, Any], names: Sequence[str]) -> Triangle | None:
    """Return the smallest upright triangle that contains the possible values of three parts.

    The other parts have their values at `point`. Return None if the three are not parts of one mixture, or if they can
    have one value only.
    """
    for terms, total in equalities(space):
        if len(names) == 3 and all(name in terms and name in point for name in names):
            if len({terms[name] for name in names}) > 1:
                continue
            others = sum(a * point[name] for name, a in terms.items() if name in point and name not in names)
            rest = (total - others) / terms[names[0]]
            low, high = np.array([range_of(space[name]) for name in names]).T
            lowest = np.maximum(low, rest - high.sum() + high)
            if rest - lowest.sum() > 0:
                return Triangle(lowest, float(rest - lowest.sum()))
    return None


def draw_axes(ax: Axes, triangle: Triangle, names: Sequence[str]) -> None:
    """Draw the edges with the names at the corners, and lines at fifths of each part with its values."""
    ax.set(xlim=(-0.16, 1.16), ylim=(-0.16, 1.0), aspect="equal")
    ax.set_axis_off()
    look: Any = {"color": figures.ink(ax), "zorder": 2}
    ax.plot(*np.vstack([_CORNERS, _CORNERS[:1]]).T, linewidth=0.8, **look)
    aligned: Any = ({"ha": "right", "va": "center"}, {"ha": "center", "va": "top"}, {"ha": "left", "va": "center"})
    for i, name in enumerate(names):
        corner, start, end = np.roll(_CORNERS, -i, axis=0)
        for share in (0.2, 0.4, 0.6, 0.8):
            # The line on which part i has this share joins the edges to the two other corners.
            line = share * corner + (1 - share) * np.array([start, end])
            ax.plot(*line.T, linewidth=0.4, alpha=0.5, **look)
            text = figures.digits(triangle.lowest[i] + share * triangle.width, triangle.width)
            ax.annotate(
                text, line[0], 0.03 * (line[0] - line[1]) / (1 - share) + line[0], fontsize="x-small", **aligned[i]
            )
        label = f"{figures.shortened(name)} = {figures.digits(triangle.lowest[i] + triangle.width, triangle.width)}"
        where = corner + (0, 0.03 if i == 0 else -0.09)
        ax.annotate(label, corner, where, ha="center", va="bottom" if i == 0 else "top", fontsize="small")


def draw_contours(ax: Axes, places: Array, n: int, values: Any, **look: Any) -> None:
    """Draw filled contours of values at the places of a grid of `Triangle.values`. Cells with a NaN are blank."""
    from matplotlib.tri import Triangulation

    first = np.cumsum([0, *range(n, 0, -1)])  # row i of the grid begins at first[i], and has n - i points
    up = [(first[i] + j, first[i] + j + 1, first[i + 1] + j) for i in range(n - 1) for j in range(n - 1 - i)]
    down = [(first[i] + j + 1, first[i + 1] + j + 1, first[i + 1] + j) for i in range(n) for j in range(n - 2 - i)]
    cells = np.array(up + down)
    known = cells[~np.isnan(values[cells]).any(axis=1)]
    if len(known):
        ax.tricontourf(Triangulation(places[:, 0], places[:, 1], known), np.nan_to_num(values), **look)
