"""Candidate sets: the rows of an array, and their encoding as points."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from belated import _core
from belated._core import InvalidPoint, InvalidSpace
from belated.short_repr import short_repr
from belated.space.arguments import axes, is_table, whole_number
from belated.space.space import Place


def _numbers(given: Any) -> NDArray[np.float64] | None:
    """Return `given` as a float array, or None if it is not an array of real numbers."""
    try:
        array = np.asarray(given)
        return array.astype(np.float64) if array.dtype.kind in "biufO" else None
    except (TypeError, ValueError):
        return None


def _whole(params: Any, width: int) -> bool:
    """Return whether a flat list contains only integers, and is not as long as a row."""
    return len(params) != width and all(whole_number(entry) is not None for entry in params)


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
        try:
            self.x: NDArray[Any] = np.array(x)
            if self.x.dtype.kind == "O":
                self.x = self.x.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            raise InvalidSpace("candidates is not an array of numbers: pass an (N, d) array") from None
        if self.x.dtype.kind not in "biuf":
            raise InvalidSpace(f"candidates has dtype {self.x.dtype}: pass an (N, d) array of real numbers")
        if self.x.ndim != 2:
            raise InvalidSpace(
                f"candidates has shape {self.x.shape}: pass an (N, d) array; x.reshape(-1, 1) makes one of a list"
            )
        if 0 in self.x.shape:
            raise InvalidSpace(f"candidates has shape {self.x.shape}: it needs at least one row and one column")
        bad = np.flatnonzero(~np.isfinite(self.x).all(axis=1))
        if bad.size:
            raise InvalidSpace(
                f"candidates has NaN or infinite entries in {bad.size} rows, first in row {bad[0]}: drop or fill them"
            )
        self.x.flags.writeable = False
        self._core = _core.Candidates(self.x.astype(np.float64))

    def __reduce__(self) -> Any:
        # Unpickling makes the core's object again from the array.
        return type(self), (self.x,)

    @property
    def width(self) -> int:
        """Number of columns d."""
        return int(self.x.shape[1])

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        return f"<{self.x.shape[0]} candidates of {self.x.shape[1]} columns>"

    @property
    def core(self) -> _core.Candidates:
        """The candidates as an object of the core."""
        return self._core

    def params_at(self, place: Place) -> NDArray[Any]:
        """Return the row at a place, shape (d,)."""
        assert isinstance(place, int)
        row: NDArray[Any] = self.x[place].copy()
        return row

    def params_of(self, record: _core.TrialRecord) -> NDArray[Any]:
        """Return the suggested row of a trial, shape (d,)."""
        return self.params_at(record.place)

    def locate(self, params: Any) -> int:
        """Return the index of a candidate; `params` is its index or its row.

        Raises
        ------
        InvalidPoint
            The index is out of range, or the row is not among the candidates.
        """
        index = whole_number(params)
        if index is None:
            index = self._find(params)
        elif not 0 <= index < len(self):
            raise InvalidPoint(f"params={index} is not the index of a candidate: pass one from 0 to {len(self) - 1}")
        return index

    def _find(self, params: Any) -> int:
        row = _numbers(params)
        if row is None or row.shape != (self.width,):
            raise InvalidPoint(
                f"params={short_repr(params)} is not a candidate: pass its index, or its row of {self.width} numbers"
            )
        index = self._core.find(row)
        if index is None:
            raise InvalidPoint(f"params={short_repr(params)} is not a row of candidates: pass the index of one")
        return index

    def _encoded(self, indices: Any) -> NDArray[np.float64]:
        """Return the encoded points of the candidates with these indices, shape (n, d)."""
        return self._core.encode(self.x[indices].astype(np.float64))

    def holds_several(self, params: Any, listed: bool = False) -> bool:
        """Return whether `params` is a collection of rows or indices instead of a single row or index.

        A flat list of d numbers is a single row, and any other flat list is a list of indices. If the values of the
        points are also a list (`listed`), every flat list is a list of indices.
        """
        n_axes = axes(params)
        return is_table(params) or n_axes == 2 or (n_axes == 1 and (listed or _whole(params, self.width)))

    def split(self, params: Any) -> list[Any]:
        """Return a list of the rows or indices in `params`."""
        if is_table(params):
            params = np.asarray(params)
        return list(params) if axes(params) else [params]

    def points(self, params: Any) -> NDArray[np.float64]:
        """Return encoded points, shape (n, d), for rows or indices, or for all candidates if `params` is None."""
        if params is None:
            return self._encoded(slice(None))
        return self._encoded([self.locate(one) for one in self.split(params)]).reshape(-1, self.width)
