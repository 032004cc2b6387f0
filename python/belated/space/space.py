"""Search spaces of named parameters, and their encoding as points.

A *point* is a row of ``width`` float64 columns in [0, 1]: what the compiled core works on.
"""

import json
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from belated import _core
from belated._core import InvalidContext, InvalidPoint, InvalidSpace
from belated.space.arguments import is_table, whole_number
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


@dataclass(frozen=True)
class Location:
    """A point as the core takes it: encoded, with its row number among candidates, and with the numbers given."""

    point: NDArray[np.float64]
    index: int | None
    # One number for each named parameter, see `to_number` of the dimensions; None for candidates.
    given: list[float] | None


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

    @property
    def coordinates(self) -> list[dict[str, Any]]:
        """The dimensions as the core takes them."""
        return [dimension.coordinate for dimension in self.values()]

    def domain(self) -> _core.Domain:
        """This space as the core searches it."""
        return _core.Domain.box(json.dumps(self.coordinates))

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
        return self._encoded(self._checked(params))

    def _encoded(self, values: Mapping[str, Any]) -> NDArray[np.float64]:
        return np.concatenate([self._dimensions[name].encode(value) for name, value in values.items()])

    def _checked(self, params: Any) -> dict[str, Any]:
        """One value in range for each name, in the order of the space."""
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
        values = {}
        for name, dimension in self._dimensions.items():
            try:
                values[name] = dimension.check(params[name])
            except ValueError as expected:
                raise self.point_error(
                    f"{what}[{name!r}]={reprlib.repr(params[name])} is not usable: pass {expected}"
                ) from None
        return values

    def decode(
        self, point: ArrayLike, index: int | None = None, given: Sequence[float] | None = None
    ) -> dict[str, Any]:
        """Values by name of a point of shape (width,), or of the numbers `given` for it, one for each name.

        `index` is None; only `Candidates` use it.
        """
        if given is not None:
            pairs = zip(self.items(), given, strict=True)
            return {name: dimension.from_number(number) for (name, dimension), number in pairs}
        point = np.asarray(point, dtype=np.float64)
        params, start = {}, 0
        for name, dimension in self.items():
            params[name] = dimension.decode(point[start : start + dimension.width])
            start += dimension.width
        return params

    def locate(self, params: Any) -> Location:
        """Where one set of params lies; its index is None."""
        values = self._checked(params)
        given = [self._dimensions[name].to_number(value) for name, value in values.items()]
        return Location(self._encoded(values), None, given)

    def holds_several(self, params: Any, listed: bool = False) -> bool:
        """Whether `params` is a list or table of points; only `Candidates` use `listed`."""
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
    """A `Space` for contexts: the same, but its errors are about ``context``."""

    argument = "context"
    point_argument = "context"
    point_error = InvalidContext
