"""Candidate sets. The candidates are the rows of an array, which are encoded as points."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from belated import _core
from belated._core import InvalidPoint, InvalidSpace
from belated.short_repr import short_repr
from belated.space.arguments import axes, is_table, whole_number
from belated.space.space import Place


def _numbers(given: Any) -> NDArray[Any] | None:
    """Return a copy of `given` as an array, or None if `given` is not an array of real numbers."""
    if np.ma.is_masked(given):
        return None
    try:
        array: NDArray[Any] = np.array(given)
        if array.dtype.kind == "O":
            array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    return array if array.dtype.kind in "biuf" else None


class Candidates:
    """A finite set of points, given as the rows of an array. Each column is scaled to [0, 1].

    Parameters
    ----------
    x : array-like of shape (N, d)
        Finite real numbers (booleans count as 0 and 1). A copy is kept.

    Raises
    ------
    InvalidSpace
        The array is empty or does not have two axes, or an entry is not a finite real number.

    Examples
    --------
    >>> from belated.space import Candidates
    >>> candidates = Candidates([[10, 7], [20, 7], [30, 7]])
    >>> candidates.locate([20, 7])
    1
    """

    def __init__(self, x: ArrayLike) -> None:
        array = _numbers(x)
        if array is None:
            raise InvalidSpace("candidates is not an array of real numbers: pass an (N, d) array")
        if array.ndim != 2:
            raise InvalidSpace(
                f"candidates has shape {array.shape}: pass an (N, d) array; x.reshape(-1, 1) makes one of a list"
            )
        self.x = array
        self.x.flags.writeable = False
        #: The candidates as an object of the core, which refuses empty arrays and entries that are not finite.
        self.core = _core.Candidates(array.astype(np.float64))
        #: Number of columns d.
        self.width = int(array.shape[1])

    def __reduce__(self) -> Any:
        # Unpickling recreates the core's object from the array.
        return type(self), (self.x,)

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        return f"<{len(self)} candidates of {self.width} columns>"

    def params_at(self, place: Place) -> NDArray[Any]:
        """Return the row with this number, or the measured row, shape (d,)."""
        row: NDArray[Any] = self.x[place].copy() if isinstance(place, int) else np.array(place, dtype=np.float64)
        return row

    def params_of(self, record: _core.TrialRecord) -> NDArray[Any]:
        """Return the suggested or added row of a trial, shape (d,)."""
        return self.params_at(record.place)

    def locate(self, params: Any, measured: bool = False) -> Place:
        """Return the index of a candidate; `params` is its index or its row.

        If `measured` is True, a row that is not a candidate is returned as a list of numbers.

        Raises
        ------
        InvalidPoint
            The index is out of range, or the row is not among the candidates.
        """
        index = whole_number(params)
        if index is None:
            row = _numbers(params)
            if row is not None and row.shape == (self.width,):
                numbers = row.astype(np.float64)
                index = self.core.find(numbers)
                if index is None and measured and np.isfinite(numbers).all():
                    return [number + 0.0 for number in numbers.tolist()]
        elif not 0 <= index < len(self):
            raise InvalidPoint(f"params={index} is not the index of a candidate: pass one from 0 to {len(self) - 1}")
        if index is None:
            expected = f"a row of {self.width} finite numbers" if measured else f"its row of {self.width} numbers"
            what = "a measured row" if measured else "a candidate"
            raise InvalidPoint(f"params={short_repr(params)} is not {what}: pass a candidate's index, or {expected}")
        return index

    def several(self, params: Any, listed: bool = False) -> list[Any] | None:
        """Return the rows or indices in a collection; return None if `params` is a single row or index.

        A flat list of d numbers is a single row, and any other flat list is a list of indices. However, if `listed` is
        True, because the values of the points are given as a list, every flat list is a list of indices.
        """
        if is_table(params):
            return list(np.asarray(params))
        if axes(params) == 1 and not listed:
            listed = len(params) != self.width and all(whole_number(entry) is not None for entry in params)
        return list(params) if axes(params) == 2 or (axes(params) == 1 and listed) else None

    def points(self, params: Any, measured: bool = False) -> NDArray[np.float64]:
        """Return encoded points, shape (n, d), for rows or indices, or for all candidates if `params` is None.

        If `measured` is True, rows need not be candidates.
        """
        if params is None:
            rows = self.x
        else:
            several = self.several(params, listed=True)
            places = [self.locate(one, measured) for one in ([params] if several is None else several)]
            rows = np.array([self.params_at(place) for place in places])
        return self.core.encode(rows.astype(np.float64).reshape(-1, self.width))
