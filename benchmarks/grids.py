"""Represent the points of a discrete space as rows of level numbers.

Notation: d searched dimensions with m_1, …, m_d levels; a row has shape (d,). An inactive dimension has level 0 in a
row. The *code* of a row is the number Σ_j level_j · m_{j+1} ⋯ m_d. The rows are sorted by code.
"""

import numpy as np

from belated import Space


class Grid:
    """All points of a space.

    Parameters
    ----------
    space : mapping
        Dimensions with levels. A dimension comes after the dimensions on which it depends. Constants are allowed.

    Attributes
    ----------
    rows : array (n, d)
        The levels of all points.
    active : array (n, d)
        Whether a dimension is active.

    Examples
    --------
    >>> from belated import Ordinal
    >>> grid = Grid({"kernel": ["linear", "rbf"], "gamma": Ordinal([0.1, 1.0], when={"kernel": "rbf"})})
    >>> grid.rows.tolist()
    [[0, 0], [1, 0], [1, 1]]
    >>> [grid.params(i) for i in range(3)]
    [{'kernel': 'linear'}, {'kernel': 'rbf', 'gamma': 0.1}, {'kernel': 'rbf', 'gamma': 1.0}]
    >>> grid.find({"kernel": "rbf", "gamma": 1.0})
    2
    """

    def __init__(self, space):
        space = Space(space)
        self.names = space.searched
        self.dimensions = [space[name] for name in self.names]
        self.constants = {name: each.member(0) for name, each in space.items() if not each.width}
        self.sizes = np.array([dimension.n_levels for dimension in self.dimensions])
        self._levels = [{each.member(i): i for i in range(each.n_levels)} for each in self.dimensions]
        self.rows = self._expand()
        self.active = self.active_of(self.rows)
        self.codes = self.codes_of(self.rows)

    def _expand(self):
        rows = np.zeros((1, len(self.names)), dtype=np.int64)
        for j, size in enumerate(self.sizes):
            repeats = np.where(self.active_of(rows)[:, j], size, 1)
            starts = np.repeat(np.cumsum(repeats) - repeats, repeats)
            rows = np.repeat(rows, repeats, axis=0)
            rows[:, j] = np.arange(len(rows)) - starts
        return rows

    def active_of(self, rows):
        """Return an array (n, d) of booleans: whether each dimension is active in each row."""
        active = np.ones(rows.shape, dtype=bool)
        for j, dimension in enumerate(self.dimensions):
            for parent, values in (dimension.when or {}).items():
                p = self.names.index(parent)
                wanted = [self._levels[p][value] for value in values]
                active[:, j] &= active[:, p] & np.isin(rows[:, p], wanted)
        return active

    def codes_of(self, rows):
        """Return the codes of rows; inactive dimensions are ignored."""
        return np.ravel_multi_index(np.where(self.active_of(rows), rows, 0).T, self.sizes)

    def numbers_of(self, rows):
        """Return the index of each given row among all rows of the grid."""
        return np.searchsorted(self.codes, self.codes_of(rows))

    def find(self, params):
        """Return the index of a point among all points of the grid."""
        code = 0
        for name, size, levels in zip(self.names, self.sizes.tolist(), self._levels, strict=True):
            code = code * size + (levels[params[name]] if name in params else 0)
        return int(np.searchsorted(self.codes, code))

    def params(self, i):
        """Return the params of the row with this index: the values of the active dimensions and of the constants."""
        members = (each.member(level) for each, level in zip(self.dimensions, self.rows[i].tolist(), strict=True))
        params = dict(zip(self.names, members, strict=True))
        return {name: params[name] for name, there in zip(self.names, self.active[i], strict=True) if there} | (
            self.constants
        )

    def neighbours(self, i):
        """Return the indices of the points that differ from a point in one dimension: by one level in an ordered
        dimension, by any level in a category."""
        changed = []
        for j in np.flatnonzero(self.active[i]):
            level, size = int(self.rows[i, j]), int(self.sizes[j])
            ordered = not hasattr(self.dimensions[j], "choices")
            for other in {level - 1, level + 1} & set(range(size)) if ordered else set(range(size)) - {level}:
                changed.append(self.rows[i].copy())
                changed[-1][j] = other
        return np.unique(self.numbers_of(np.array(changed)))
