"""Search spaces of named parameters, and their encoding as points.

A *point* is a row of ``width`` float64 columns in [0, 1]; the compiled core works on points.
"""

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from belated import _core
from belated._core import InvalidContext, InvalidPoint, InvalidSpace
from belated.short_repr import short_repr
from belated.space.arguments import axes, is_table
from belated.space.conditions import Conditions, in_words
from belated.space.dimensions import Categorical, Dimension
from belated.space.reading import read

# The values of one point by name, as `suggest` returns and f takes them: numbers, choices, constants.
Params: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Location:
    """A point in the form that the core takes: encoded, with its row number among candidates and the given numbers."""

    point: NDArray[np.float64]
    index: int | None
    # One number for each parameter that the core knows, see `to_number` of the dimensions; 0.0 for inactive parameters.
    # None for candidates.
    given: list[float] | None


class Space(Mapping[str, Dimension]):
    """Named parameters, in order, and their encoding as a row in the unit cube.

    Parameters
    ----------
    dimensions : mapping or iterable of pairs
        Name → `Real`, `Integer`, `Ordinal` or `Categorical`. There is shorthand: a tuple of two integers is an
        `Integer`, any other tuple of two numbers a `Real`, and a list a `Categorical`. None, a boolean, a number, a
        string, and a range with equal bounds are constants.
        Pairs of numbers alone, as in ``[(-2.0, 2.0), (0.0, 5.0)]``, are called x0, x1, ….

    Raises
    ------
    InvalidSpace
        There are no dimensions, or only constants; a name is not a string or comes twice; a dimension is invalid; or
        conditions name unknown parameters or values, a continuous `Real`, or each other in a circle.

    Warns
    -----
    BelatedWarning
        A list of two increasing numbers is given: it is a choice between two values, not a range.

    Notes
    -----
    A parameter with ``when=`` is *inactive* if its conditions do not hold: suggested params then omit it, and params
    that include it are refused.

    Examples
    --------
    >>> from belated import Real, Space
    >>> space = Space({"C": Real(1e-4, 100, log=True), "depth": (1, 5), "kernel": ["rbf", "linear"]})
    >>> space.encode({"C": 0.1, "depth": 2, "kernel": "rbf"})
    array([0.5 , 0.25, 1.  , 0.  ])
    >>> space.decode([0.0, 0.5, 0.0, 1.0])
    {'C': 0.0001, 'depth': 3, 'kernel': 'linear'}

    A parameter that matters for only one kernel, and a constant:

    >>> from belated import Integer
    >>> space = Space({"kernel": ["rbf", "poly"], "degree": Integer(1, 5, when={"kernel": "poly"}), "cache": 200})
    >>> space.decode(space.encode({"kernel": "rbf", "cache": 200}))
    {'kernel': 'rbf', 'cache': 200}
    """

    argument = "space"
    point_argument = "params"
    point_error: type[_core.BelatedError] = InvalidPoint

    def __init__(
        self, dimensions: Mapping[str, Any] | Iterable[tuple[str, Any]] | Iterable[tuple[float, float]]
    ) -> None:
        given = dimensions._dimensions if isinstance(dimensions, Space) else dimensions
        self._dimensions: dict[str, Dimension] = read(given, self.argument)
        conditional = [name for name, dimension in self._dimensions.items() if dimension.when is not None]
        if conditional:
            self._check_may_be_conditional(conditional)
        self._conditions = Conditions(self._dimensions, self.argument) if conditional else None
        # Constants may be left out of params.
        self._constants = {name: dimension.member(0) for name, dimension in self.items() if dimension.n_levels == 1}
        self.width: int = sum(dimension.width for dimension in self.values())
        if not self.width:
            raise InvalidSpace(
                f"{self.argument} has constants alone: give at least one parameter to search, as {{'x': (0.0, 1.0)}}"
            )

    def _check_may_be_conditional(self, names: list[str]) -> None:
        """Raise an error for conditions in a space that does not support them."""

    def __getitem__(self, name: str) -> Dimension:
        return self._dimensions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._dimensions)

    def __len__(self) -> int:
        return len(self._dimensions)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._dimensions!r})"

    @property
    def searched(self) -> list[str]:
        """The names of the parameters that the core knows: all except constants."""
        return [name for name, dimension in self.items() if dimension.width]

    @property
    def coordinates(self) -> list[dict[str, Any]]:
        """The dimensions in the form that the core takes."""
        names = self.searched
        coordinates = [self[name].coordinate for name in names]
        if self._conditions is not None:
            for coordinate, name in zip(coordinates, names, strict=True):
                own = self._conditions.levels[name]
                if own:
                    coordinate["when"] = [[names.index(parent), sorted(levels)] for parent, levels in own.items()]
        return coordinates

    def domain(self) -> _core.Domain:
        """This space as the domain that the core searches."""
        try:
            return _core.Domain.box(json.dumps(self.coordinates))
        except InvalidSpace as error:
            # Each parameter is already checked, so that only the number of columns can be wrong.
            widest = max(self, key=lambda name: self[name].width)
            if self[widest].width == 1:
                raise
            raise InvalidSpace(
                f"{error}, of which {self.argument}[{widest!r}] has {self[widest].width}, one for each choice; "
                "bl.Ordinal and bl.Integer have one column"
            ) from None

    def encode(self, params: Mapping[str, Any]) -> NDArray[np.float64]:
        """Encode one value for each name.

        Parameters
        ----------
        params : mapping or Series
            Values in range for exactly the active names of this space; constants may be left out.

        Returns
        -------
        ndarray of shape (width,)
            Columns in [0, 1].

        Raises
        ------
        InvalidPoint
            Names are missing, unknown or inactive, or values have the wrong type or are out of range (InvalidContext
            for a context).
        """
        return self._encoded(self._checked(params))

    def _encoded(self, values: Mapping[str, Any]) -> NDArray[np.float64]:
        if self._conditions is None:
            return np.concatenate([self._dimensions[name].encode(value) for name, value in values.items()])
        columns = (
            dimension.encode(values[name]) if name in values else _inactive(dimension)
            for name, dimension in self.items()
        )
        return np.concatenate(list(columns))

    def _checked(self, params: Any) -> dict[str, Any]:
        """Return one value in range for each active name, in the order of the space."""
        what = self.point_argument
        if hasattr(params, "to_dict") and not is_table(params):
            params = params.to_dict()
        if not isinstance(params, Mapping):
            raise self.point_error(
                f"{what}={short_repr(params)} is not usable: pass a dict with the names {list(self)}"
            )
        values: dict[str, Any] = {}
        if self._conditions is None:
            if self._constants:
                params = {**self._constants, **params}
            self._check_names(params, list(self))
            for name in self:
                values[name] = self._checked_value(name, params[name])
            return values
        levels: dict[str, int] = {}
        # Missing active parameters, which are refused below, and the children that depend on them.
        unsettled: set[str] = set()
        for name in self._conditions.order:
            if self._conditions.holds(name, levels):
                if name in params:
                    values[name] = self._checked_value(name, params[name])
                elif name in self._constants:
                    values[name] = self._constants[name]
                else:
                    unsettled.add(name)
                    continue
                if name in self._conditions.parents:
                    levels[name] = self._dimensions[name].level(values[name])
            elif self._conditions.may_hold(name, levels, unsettled):
                unsettled.add(name)
            elif name in params:
                raise self.point_error(
                    f"{what}[{name!r}]={short_repr(params[name])} is inactive here: leave it out, as it needs "
                    f"{in_words(self._dimensions[name])}"
                )
        active = [name for name in self if name in values or self._conditions.holds(name, levels)]
        self._check_names(dict.fromkeys([*values, *(name for name in params if name not in self)]), active)
        return {name: values[name] for name in active}

    def _check_names(self, params: Mapping[str, Any], names: list[str]) -> None:
        """Raise an error if params have other names than these."""
        if params.keys() != set(names):
            missing = [name for name in names if name not in params]
            unknown = [name for name in params if name not in names]
            found = [f"{kind} {those}" for kind, those in (("misses", missing), ("has unknown", unknown)) if those]
            raise self.point_error(f"{self.point_argument} {' and '.join(found)}: pass exactly the names {names}")

    def checked_part(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return values of some of the names, each checked to be in range, but not to be active."""
        self._check_names(dict.fromkeys([*self, *params]), list(self))
        return {name: self._checked_value(name, value) for name, value in params.items()}

    def _checked_value(self, name: str, value: Any) -> Any:
        try:
            return self._dimensions[name].check(value)
        except ValueError as expected:
            raise self.point_error(
                f"{self.point_argument}[{name!r}]={short_repr(value)} is not usable: pass {expected}"
            ) from None

    def decode(
        self, point: ArrayLike, index: int | None = None, given: Sequence[float] | None = None
    ) -> dict[str, Any]:
        """Return values by name from a point of shape (width,), or from the numbers `given` for the searched names.

        Inactive parameters are left out. `index` is None; only `Candidates` use it.
        """
        values: dict[str, Any] = {}
        if given is not None:
            numbers = iter(given)
            for name, dimension in self._dimensions.items():
                values[name] = dimension.from_number(next(numbers) if dimension.width else 0.0)
        else:
            # A list, because reading the numbers of an array one by one takes several times as long.
            columns, start = np.asarray(point, dtype=np.float64).tolist(), 0
            for name, dimension in self._dimensions.items():
                end = start + dimension.width
                values[name] = dimension.decode(columns[start:end])
                start = end
        return values if self._conditions is None else {name: values[name] for name in self.active_names(values)}

    def active_names(self, values: Mapping[str, Any]) -> list[str]:
        """Return the active names, given values in range; names whose parents are missing are inactive."""
        if self._conditions is None:
            return list(self)
        active: set[str] = set()
        levels: dict[str, int] = {}
        for name in self._conditions.order:
            if self._conditions.holds(name, levels):
                active.add(name)
                if name in self._conditions.parents and name in values:
                    levels[name] = self._dimensions[name].level(values[name])
        return [name for name in self if name in active]

    def locate(self, params: Any) -> Location:
        """Return the location of one set of params; its index is None."""
        values = self._checked(params)
        given = [self[name].to_number(values[name]) if name in values else 0.0 for name in self.searched]
        return Location(self._encoded(values), None, given)

    def without_missing(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row of a table without the entries None and NaN of parameters that are inactive in it."""
        if self._conditions is None:
            return dict(record)
        levels: dict[str, int] = {}
        kept = dict(record)
        for name in self._conditions.order:
            if name not in record:
                continue
            if self._conditions.holds(name, levels):
                if name in self._conditions.parents:
                    # Reading the row raises an error for an invalid value of a parent.
                    with contextlib.suppress(ValueError):
                        levels[name] = self[name].level(self[name].check(record[name]))
            elif record[name] is None or record[name] != record[name]:
                del kept[name]
        return kept

    def holds_several(self, params: Any, listed: bool = False) -> bool:
        """Whether `params` is a list, a table or an array of points; only `Candidates` use `listed`."""
        return is_table(params) or isinstance(params, (list, tuple)) or _is_array(params)

    def split(self, params: Any) -> list[Any]:
        """Return the single points in a list, a table or an array of points (or in one point)."""
        if is_table(params):
            return [self.without_missing(record) for record in params.to_dict("records")]
        if _is_array(params):
            return self._rows(params)
        return list(params) if self.holds_several(params) else [params]

    def _rows(self, array: Any) -> list[dict[str, Any]]:
        """Return the rows of an array of numbers as values by name; NaN stands for an inactive parameter."""
        what, names = self.point_argument, self.searched
        choices = [name for name in names if isinstance(self[name], Categorical)]
        if choices:
            raise self.point_error(
                f"{what} is an array, and {choices} have choices: pass a list of dicts, or a DataFrame with the "
                f"columns {list(self)}"
            )
        if axes(array) != 2 or array.shape[1] != len(names):
            raise self.point_error(
                f"{what}={short_repr(array)} has shape {tuple(array.shape)}: pass (n, {len(names)}) values, one "
                f"column for each of {names} (x.reshape(1, -1) makes a row of one point)"
            )
        return [self.without_missing(dict(zip(names, row, strict=True))) for row in np.asarray(array).tolist()]

    def points(self, params: Any) -> NDArray[np.float64]:
        """Return the points, shape (n, width), of a list, a table or an array of params (or of one)."""
        return np.array([self.encode(one) for one in self.split(params)]).reshape(-1, self.width)


def _is_array(params: Any) -> bool:
    """Whether `params` is an array, and not a table or a Series."""
    return hasattr(params, "shape") and not hasattr(params, "to_dict")


def _inactive(dimension: Dimension) -> NDArray[np.float64]:
    """Return the columns of an inactive parameter: the middle for a single column, zeros for a one-hot group."""
    return np.full(dimension.width, 0.5 if dimension.width == 1 else 0.0)


class ContextSpace(Space):
    """A `Space` for contexts, whose errors are about ``context``."""

    argument = "context"
    point_argument = "context"
    point_error = InvalidContext

    def _check_may_be_conditional(self, names: list[str]) -> None:
        raise InvalidSpace(
            f"context has conditions, of {names}: a context is given in full; drop when=, and give these a value always"
        )
