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
from belated.plotting.regions import equalities
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
        return np.asarray((scaled - self.lowest) / self.width @ _CORNERS)


def triangle_of(space: Space, point: Mapping[str, Any], names: Sequence[str]) -> Triangle | None:
    """Return the smallest upright triangle that contains the possible values of three parts.

    The other parts have their values at `point`. Return None if the three are not parts of one mixture, or if they can
    have one value only.
    """
    for terms, total in equalities(space):
        own = [a for name, a in terms.items() if name in names and name in point]
        if len(names) == 3 == len(own) and len({*own}) == 1:
            others = sum(a * point[name] for name, a in terms.items() if name in point and name not in names)
            rest = (total - others) / own[0]
            dimensions: Any = [space[name] for name in names]
            low, high = np.array([(each.low, each.high) for each in dimensions]).T
            lowest = np.maximum(low, rest - high.sum() + high)
            if rest - lowest.sum() > 0:
                return Triangle(lowest, float(rest - lowest.sum()))
    return None


def draw_axes(ax: Axes, triangle: Triangle, names: Sequence[str]) -> None:
    """Draw the edges with the names at the corners, and lines on which a part has a round value, with the values."""
    from matplotlib.ticker import MaxNLocator

    ax.set(xlim=(-0.16, 1.16), ylim=(-0.16, 1.0), aspect="equal")
    ax.set_axis_off()
    look: Any = {"color": figures.ink(ax), "zorder": 2}
    ax.plot(*np.vstack([_CORNERS, _CORNERS[:1]]).T, linewidth=0.8, **look)
    alignments = (("right", "center"), ("center", "top"), ("left", "center"))
    for i, (name, (ha, va)) in enumerate(zip(names, alignments, strict=True)):
        corner, *others = np.roll(_CORNERS, -i, axis=0)
        ends = triangle.lowest[i], triangle.lowest[i] + triangle.width
        for value in MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(*ends):
            share = (value - ends[0]) / triangle.width
            if 0.03 < share < 0.97:
                # The line on which part i has this value joins the edges to the two other corners.
                line = share * corner + (1 - share) * np.array(others)
                ax.plot(*line.T, linewidth=0.4, alpha=0.5, **look)
                x, y = line[0] + 0.03 * (line[0] - line[1]) / (1 - share)
                ax.text(x, y, figures.digits(value, triangle.width), fontsize="x-small", ha=ha, va=va)
        text = f"{figures.shortened(name)} = {figures.digits(ends[1], triangle.width)}"
        y, va = (-0.1, "top") if i else (corner[1] + 0.03, "bottom")
        ax.text(corner[0], y, text, fontsize="small", ha="center", va=va)


def draw_contours(ax: Axes, places: Array, values: Any, **look: Any) -> None:
    """Draw filled contours of values at the places of a grid of `Triangle.values`. Cells with a NaN are blank."""
    from matplotlib.tri import Triangulation

    cells = Triangulation(places[:, 0], places[:, 1])
    is_blank = np.isnan(values[cells.triangles]).any(axis=1)
    if not is_blank.all():
        cells.set_mask(is_blank)
        ax.tricontourf(cells, np.nan_to_num(values), **look)
