"""Search spaces and candidate sets, and their encoding as points.

A *point* is a row of ``width`` float64 columns in [0, 1]: what the compiled core works on.
"""

import reprlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from belated import _core
from belated._core import InvalidContext, InvalidPoint, InvalidSpace
from belated.space.arguments import axes, is_table, whole_number
from belated.space.dimensions import Categorical, Dimension, Integer, Real


def _dimension(name: str, given: Any, argument: str) -> Dimension:
    """The dimension that `given` is, or is shorthand for."""
    if isinstance(given, (Real, Integer, Categorical)):
        return given
    try:
        if isinstance(given, list):
            return Categorical(given)
        if isinstance(given, tuple) and len(given) == 2:
            low, high = given
            integers = whole_number(low) is not None and whole_number(high) is not None
            return Integer(low, high) if integers else Real(low, high)
    except InvalidSpace as error:
        raise InvalidSpace(f"{argument}[{name!r}]: {error}") from None
    raise InvalidSpace(
        f"{argument}[{name!r}]={reprlib.repr(given)} is not a dimension: pass Real, Integer or Categorical, "
        "a tuple (low, high), or a list of choices"
    )


def _numbers(given: Any) -> NDArray[np.float64] | None:
    """`given` as a float array, or None where it is not one of real numbers."""
    try:
        array = np.asarray(given)
        return array.astype(np.float64) if array.dtype.kind in "biufO" else None
    except (TypeError, ValueError):
        return None


class Space(Mapping[str, Dimension]):
    """Named parameters, in order, and their encoding as a row in the unit cube.

    Parameters
    ----------
    dimensions : mapping or iterable of pairs
        Name → `Real`, `Integer` or `Categorical`. As shorthand, a tuple of two integers is an
        `Integer`, any other tuple of two numbers a `Real`, and a list a `Categorical`.

    Raises
    ------
    InvalidSpace
        No dimensions, a name that is not a string or comes twice, or a bad dimension.

    Examples
    --------
    >>> from belated import Real, Space
    >>> space = Space({"C": Real(1e-4, 100, log=True), "depth": (1, 5), "kernel": ["rbf", "linear"]})
    >>> space.encode({"C": 0.1, "depth": 2, "kernel": "rbf"})
    array([0.5 , 0.25, 1.  , 0.  ])
    >>> space.decode([0.0, 0.5, 0.0, 1.0])
    {'C': 0.0001, 'depth': 3, 'kernel': 'linear'}
    """

    argument = "space"
    point_argument = "params"
    point_error: type[_core.BelatedError] = InvalidPoint

    def __init__(self, dimensions: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        self._dimensions: dict[str, Dimension] = {}
        for name, given in self._pairs(dimensions):
            if not isinstance(name, str):
                raise InvalidSpace(f"{self.argument} has the name {reprlib.repr(name)}: names must be strings")
            if name in self._dimensions:
                raise InvalidSpace(f"{self.argument} has the name {name!r} twice: give each name once")
            self._dimensions[name] = _dimension(name, given, self.argument)
        if not self._dimensions:
            raise InvalidSpace(f"{self.argument} is empty: give at least one dimension")
        self.width: int = sum(dimension.width for dimension in self.values())

    def _pairs(self, dimensions: Any) -> list[tuple[Any, Any]]:
        if hasattr(dimensions, "shape"):
            raise InvalidSpace(f"{self.argument} is an array: pass a dict of name → dimension; points are candidates=")
        try:
            pairs = dimensions.items() if isinstance(dimensions, Mapping) else dimensions
            return [(name, given) for name, given in pairs]
        except (TypeError, ValueError):
            raise InvalidSpace(
                f"{self.argument}={reprlib.repr(dimensions)} is not usable: pass a dict of name → dimension"
            ) from None

    def __getitem__(self, name: str) -> Dimension:
        return self._dimensions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._dimensions)

    def __len__(self) -> int:
        return len(self._dimensions)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._dimensions!r})"

    def domain(self) -> _core.Domain:
        """This space as the core searches it."""
        return _core.Domain.box([dimension.coordinate for dimension in self.values()])

    def encode(self, params: Mapping[str, Any]) -> NDArray[np.float64]:
        """Encode one value for each name.

        Parameters
        ----------
        params : mapping or Series
            Exactly the names of this space, with values in range.

        Returns
        -------
        ndarray of shape (width,)
            Columns in [0, 1].

        Raises
        ------
        InvalidPoint
            Names missing or unknown, values of the wrong type or out of range (for a context: InvalidContext).
        """
        what = self.point_argument
        if hasattr(params, "to_dict") and not is_table(params):
            params = params.to_dict()
        if not isinstance(params, Mapping):
            raise self.point_error(
                f"{what}={reprlib.repr(params)} is not usable: pass a dict with the names {list(self)}"
            )
        if params.keys() != self._dimensions.keys():
            missing = [name for name in self if name not in params]
            unknown = [name for name in params if name not in self._dimensions]
            found = [f"{kind} {names}" for kind, names in (("misses", missing), ("has unknown", unknown)) if names]
            raise self.point_error(f"{what} {' and '.join(found)}: pass exactly the names {list(self)}")
        columns = []
        for name, dimension in self._dimensions.items():
            try:
                value = dimension.check(params[name])
            except ValueError as expected:
                raise self.point_error(
                    f"{what}[{name!r}]={reprlib.repr(params[name])} is not usable: pass {expected}"
                ) from None
            columns.append(dimension.encode(value))
        return np.concatenate(columns)

    def decode(self, point: ArrayLike, index: int | None = None) -> dict[str, Any]:
        """Values by name of a point of shape (width,); `index` is there for the sake of `Candidates`."""
        point = np.asarray(point, dtype=np.float64)
        params, start = {}, 0
        for name, dimension in self.items():
            params[name] = dimension.decode(point[start : start + dimension.width])
            start += dimension.width
        return params

    def locate(self, params: Any) -> tuple[NDArray[np.float64], int | None]:
        """(point, candidate index) of one set of params; here the index is None."""
        return self.encode(params), None

    def holds_several(self, params: Any, listed: bool = False) -> bool:
        """Whether `params` is a list or table of points; `listed` is there for the sake of `Candidates`."""
        return is_table(params) or isinstance(params, (list, tuple))

    def split(self, params: Any) -> list[Any]:
        """The single points in a list or table of points (or in one point)."""
        if is_table(params):
            return list(params.to_dict("records"))
        return list(params) if self.holds_several(params) else [params]

    def points(self, params: Any) -> NDArray[np.float64]:
        """The points, shape (n, width), of a list or table of params (or of one)."""
        return np.array([self.encode(one) for one in self.split(params)]).reshape(-1, self.width)


class ContextSpace(Space):
    """A `Space` for contexts: the same, but its complaints are about ``context``."""

    argument = "context"
    point_argument = "context"
    point_error = InvalidContext


class Candidates:
    """A finite set of points, the rows of an array, scaled to [0, 1] column by column.

    Parameters
    ----------
    x : array-like of shape (N, d)
        Finite real numbers (booleans count as 0 and 1). A copy is kept.

    Raises
    ------
    InvalidSpace
        No rows or columns, another number of axes, or entries that are not finite real numbers.

    Examples
    --------
    >>> from belated.space import Candidates
    >>> candidates = Candidates([[10, 7], [20, 7], [30, 7]])
    >>> candidates.locate([20, 7])
    (array([0.5, 0. ]), 1)
    """

    def __init__(self, x: ArrayLike) -> None:
        try:
            self.x: NDArray[Any] = np.array(x)
            if self.x.dtype.kind == "O":
                self.x = self.x.astype(np.float64)
        except (TypeError, ValueError):
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
        self._low = self.x.min(axis=0).astype(np.float64)
        self._high = self.x.max(axis=0).astype(np.float64)

    @property
    def width(self) -> int:
        """Number of columns d."""
        return int(self.x.shape[1])

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        return f"<{self.x.shape[0]} candidates of {self.x.shape[1]} columns>"

    def _scaled(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        # In halves, because the difference of two large floats can overflow.
        span = self._high / 2 - self._low / 2
        span[span == 0] = 1.0
        return np.asarray(np.clip((rows / 2 - self._low / 2) / span, 0.0, 1.0), dtype=np.float64)

    def domain(self) -> _core.Domain:
        """These candidates as the core searches them."""
        return _core.Domain.candidates(np.ascontiguousarray(self._scaled(self.x)))

    def decode(self, point: ArrayLike, index: int | None = None) -> NDArray[Any]:
        """The row, shape (d,), that stands at `index` in the array given."""
        if index is None:
            raise InvalidPoint("a candidate is found by its index: pass index")
        row: NDArray[Any] = self.x[index].copy()
        return row

    def locate(self, params: Any) -> tuple[NDArray[np.float64], int | None]:
        """(point, index) of a candidate, given as its index or as its row.

        Raises
        ------
        InvalidPoint
            An index out of range, or a row that is not among the candidates.
        """
        index = whole_number(params)
        if index is None:
            index = self._find(params)
        elif not 0 <= index < len(self):
            raise InvalidPoint(f"params={index} is not the index of a candidate: pass one from 0 to {len(self) - 1}")
        return self._scaled(self.x[index]), index

    def _find(self, params: Any) -> int:
        row = _numbers(params)
        if row is None or row.shape != (self.width,):
            raise InvalidPoint(
                f"params={reprlib.repr(params)} is not a candidate: pass its index, or its row of {self.width} numbers"
            )
        matches = np.flatnonzero((self.x.astype(np.float64) == row).all(axis=1))
        if not matches.size:
            raise InvalidPoint(f"params={reprlib.repr(params)} is not a row of candidates: pass the index of one")
        return int(matches[0])

    def holds_several(self, params: Any, listed: bool = False) -> bool:
        """Whether `params` is rows rather than one row or index.

        A flat list of numbers is one row, unless its values are `listed` too: then it is several indices.
        """
        return is_table(params) or axes(params) == 2 or (listed and axes(params) == 1)

    def split(self, params: Any) -> list[Any]:
        """The single candidates in a table of rows or a list of indices (or in one index)."""
        if is_table(params):
            params = np.asarray(params)
        return list(params) if axes(params) else [params]

    def points(self, params: Any) -> NDArray[np.float64]:
        """The points, shape (n, d), of rows or indices; of all candidates where `params` is None."""
        if params is None:
            return self._scaled(self.x)
        return np.array([self.locate(one)[0] for one in self.split(params)]).reshape(-1, self.width)
