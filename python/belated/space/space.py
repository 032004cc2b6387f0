"""Search spaces of named parameters, and their encoding as points.

A *point* is a row of ``width`` float64 columns in [0, 1]. The models of the core use points as inputs.
"""

import contextlib
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from belated import _core
from belated._core import InvalidContext, InvalidPoint, InvalidSpace
from belated.short_repr import short_repr
from belated.space.arguments import axes, is_gap, is_table, real_number
from belated.space.dimensions import Categorical, Dimension
from belated.space.linear import CoreLinear
from belated.space.nested import Nesting
from belated.space.shorthand import read

# The values of one point by name: numbers, choices and constants. `suggest` returns these values, and f takes them.
Params: TypeAlias = dict[str, Any]


# A point in the form that the core takes. In a space, this is a list with one number for each searched parameter, and
# None for an inactive parameter. For candidates, it is the row number, or the d numbers of a measurement that is not a
# row.
Place: TypeAlias = list[float | None] | int


class Space(Mapping[str, Dimension]):
    """Named parameters, in order, and their encoding as a row in the unit cube.

    Parameters
    ----------
    dimensions : mapping or iterable of pairs
        Name → `Real`, `Integer`, `Ordinal` or `Categorical`. Shorthand is accepted: a tuple of two integers
        is an `Integer`, any other tuple of two numbers is a `Real`, and a list is a `Categorical`. None, a boolean, a
        number, a string, and a range with equal bounds are constants.
        A list of pairs of numbers, as in ``[(-2.0, 2.0), (0.0, 5.0)]``, declares parameters with the names x0, x1, ….
        A dict is a group of parameters, and `Choice` is a choice between groups. Params are then nested in the same
        way, and the names of this mapping have dots, as in ``"model.svm.C"``.

    Raises
    ------
    InvalidSpace
        There are no dimensions, or only constants; a name is not a string or occurs twice; a dimension is invalid; a
        condition names an unknown parameter, an unknown value or a continuous `Real`; or conditions depend on each
        other in a cycle.

    Warns
    -----
    BelatedWarning
        A list of two increasing numbers is given: it is a choice between two values, not a range.

    Notes
    -----
    A parameter with ``when=`` is *inactive* if its conditions do not hold: suggested params then omit it. Params
    may include it with the value None or NaN, and are refused if they include it with another value.

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
    #: The linear constraints on the parameters, in the form that the core takes.
    linear: Sequence[CoreLinear] = ()

    def __init__(
        self, dimensions: Mapping[str, Any] | Iterable[tuple[str, Any]] | Iterable[tuple[float, float]]
    ) -> None:
        self._dimensions: dict[str, Dimension]
        #: The conversion between nested and flat params, or None for a flat space.
        self.nesting: Nesting | None
        if isinstance(dimensions, Space):
            self._dimensions, self.nesting = dimensions._dimensions, dimensions.nesting
        else:
            self._dimensions, self.nesting = read(dimensions, self.argument)
        self._prepare()

    def _prepare(self) -> None:
        self._conditional = [name for name, dimension in self.items() if dimension.when is not None]
        declared = [(escaped(name), dimension.core, self._conditions(name)) for name, dimension in self.items()]
        #: The core's space.
        linear = [([(escaped(name), a) for name, a in each[0]], *each[1:]) for each in self.linear]
        self.core = _core.Space(declared, self.point_argument == "context", linear)
        #: Number of encoded columns of a point.
        self.width: int = self.core.width
        self._readers: list[tuple[str, Callable[[float], Any]]] = [
            (name, dimension.from_number) for name, dimension in self.items()
        ]
        #: The names of the parameters that params may lack.
        self.optional: Collection[str] = self._conditional

    @classmethod
    def from_flat(
        cls, dimensions: Mapping[str, Dimension], nesting: Nesting | None, linear: Sequence[CoreLinear] = ()
    ) -> "Space":
        """Return the space with the given dimensions, by flat name, and the given nesting of its params.

        `linear` has the linear constraints in the form that the core takes.
        """
        space = cls.__new__(cls)
        space._dimensions, space.nesting = dict(dimensions), nesting
        if linear:
            space.linear = tuple(linear)
        space._prepare()
        return space

    def __reduce__(self) -> Any:
        # Unpickling recreates the core's space from the parameters.
        return type(self).from_flat, (self._dimensions, self.nesting, self.linear)

    def _conditions(self, child: str) -> list[tuple[str, list[int]]]:
        """Return the parents of a parameter, each with the levels of the parent at which the parameter is active."""
        when = self[child].when or {}
        return [(escaped(parent), self._levels(child, parent, values)) for parent, values in when.items()]

    def _levels(self, child: str, parent: str, values: list[Any]) -> list[int]:
        what = f"{self.argument}[{child!r}]"
        if parent not in self:
            from belated.hints import nearest

            near = nearest(parent, (other for other in self if other != child))
            advice = f"did you mean {near!r}?" if near else f"name one of {list(self)}"
            raise InvalidSpace(
                f"{what} has when={{{parent!r}: …}}, which is not a parameter of {self.argument}: {advice}"
            )
        found = self[parent]
        if found.n_levels is None:
            return []  # the core refuses conditions on continuous parameters
        levels = set()
        for value in values:
            try:
                levels.add(found.level(value))
            except ValueError as expected:
                raise InvalidSpace(
                    f"{what} has when={{{parent!r}: {short_repr(value)}}}, which is not a value of {parent!r}: name "
                    f"{expected}, several of them in a list"
                ) from None
        return sorted(levels)

    def __getitem__(self, name: str) -> Dimension:
        return self._dimensions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._dimensions)

    def __len__(self) -> int:
        return len(self._dimensions)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Space) and (self.nesting != other.nesting or self.linear != other.linear):
            return False
        return super().__eq__(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._dimensions!r})"

    @property
    def searched(self) -> list[str]:
        """The names of the parameters that are searched, which are all parameters except constants."""
        names = list(self)
        return [names[i] for i in self.core.searched]

    @property
    def constant_numbers(self) -> dict[str, float]:
        """The values of those constants that are numbers and always active."""
        constants = {name: each.member(0) for name, each in self.items() if not each.width and each.when is None}
        return {name: float(number) for name, number in constants.items() if real_number(number) is not None}

    @property
    def array_names(self) -> list[str]:
        """The names of the columns of an array of points."""
        return self.searched

    def encode(self, params: Mapping[str, Any]) -> NDArray[np.float64]:
        """Encode one value for each name.

        Parameters
        ----------
        params : mapping or Series
            A value in range for each active name of this space, and for no other name; constants may be left out.

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
        return self.core.encode(self._numbers(params))

    def _numbers(self, params: Any, measured: bool = False) -> list[float | None]:
        """Return the numbers of a complete point. The number of an inactive parameter is None.

        If `measured` is True, numbers may lie beyond bounds and between steps.
        """
        if hasattr(params, "to_dict") and not is_table(params):
            params = params.to_dict()
        if not isinstance(params, Mapping):
            raise self.point_error(
                f"{self.point_argument}={short_repr(params)} is not usable: pass a dict with the names {list(self)}"
            )
        params = self.without_missing(self.flat(params))
        unknown = [repr(name) for name in params if name not in self._dimensions]
        numbers: list[float | None] = [None] * len(self)
        refused: list[_core.BelatedError] = []
        for i, name in enumerate(self):
            if name in params:
                try:
                    numbers[i] = self._number(name, params[name], measured)
                except self.point_error as error:
                    numbers[i] = math.nan
                    refused.append(error)
        # The core refuses inactive parameters, with any value.
        numbers = self.core.complete(numbers, unknown)
        if refused:
            raise refused[0]
        return numbers

    def checked_part(self, params: Mapping[str, Any], measured: bool = False) -> dict[str, Any]:
        """Return the values of some parameters, by flat name, after checking their ranges, but not conditions."""
        params = self.without_missing(self.flat(params), is_complete=False)
        self.core.check_known([repr(name) for name in params if name not in self._dimensions])
        return {name: self[name].from_number(self._number(name, value, measured)) for name, value in params.items()}

    def _number(self, name: str, value: Any, measured: bool) -> float:
        try:
            return self._dimensions[name].to_number(value, measured)
        except ValueError as expected:
            raise self.point_error(
                f"{self.point_argument}[{name!r}]={short_repr(value)} is not usable: pass {expected}"
            ) from None

    def decode(self, point: ArrayLike) -> dict[str, Any]:
        """Return values by name from a point of shape (width,). Inactive parameters are left out."""
        return self.params(self.core.decode(np.asarray(point, dtype=np.float64).tolist()))

    def params_at(self, place: Place) -> dict[str, Any]:
        """Return params from a point in the form that the core takes. Inactive parameters are left out."""
        assert not isinstance(place, int)
        return self.params(self.core.spread(place))

    def params_of(self, record: _core.TrialRecord) -> dict[str, Any]:
        """Return the params at which a trial was started."""
        return self.params(self.core.numbers(record))

    def params(self, numbers: list[float | None]) -> dict[str, Any]:
        """Return params from the numbers of all parameters. The number of an inactive parameter is None."""
        return self.nested(self.named(numbers))

    def nested(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return params from values by flat name."""
        return values if self.nesting is None else self.nesting.nested(values)

    def flat(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return values by flat name from params."""
        if self.nesting is None:
            return params
        try:
            return self.nesting.flat(params)
        except ValueError as error:
            raise self.point_error(f"{self.point_argument} has {error}: pass it once") from None

    def named_at(self, place: Place) -> dict[str, Any]:
        """Return values by flat name from a point in the form that the core takes."""
        assert not isinstance(place, int)
        return self.named(self.core.spread(place))

    def named(self, numbers: list[float | None]) -> dict[str, Any]:
        """Return values by flat name from the numbers of all parameters."""
        pairs = zip(self._readers, numbers, strict=True)
        return {name: read(number) for (name, read), number in pairs if number is not None}

    def active_names(self, values: Mapping[str, Any]) -> list[str]:
        """Return the names that are active for these values. A name whose parent lacks a value is inactive."""
        if not self._conditional:
            return list(self)
        numbers: list[float | None] = [None] * len(self)
        for i, (name, dimension) in enumerate(self.items()):
            # An unusable value counts as missing; the code that reads the point raises an error for this value.
            with contextlib.suppress(KeyError, ValueError):
                numbers[i] = dimension.to_number(values[name], measured=True)
        return [name for name, active in zip(self, self.core.active(numbers), strict=True) if active]

    def active_part(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return those of the values whose parameters are active."""
        return {name: values[name] for name in self.active_names(values) if name in values}

    def locate(self, params: Any, measured: bool = False) -> list[float | None]:
        """Convert one set of params to a point in the form that the core takes.

        If `measured` is True, numbers may lie beyond bounds and between steps.
        """
        return self.core.only_searched(self._numbers(params, measured))

    def part_at(self, place: Place) -> dict[str, Any]:
        """Return the given values by flat name from a partial point in the form that the core takes."""
        assert not isinstance(place, int)
        pairs = zip(self.searched, place, strict=True)
        return {name: self[name].from_number(number) for name, number in pairs if number is not None}

    def missing(self, given: Mapping[str, Any]) -> list[str]:
        """Return the searched names that are active for these values, by flat name, and have no value.

        The given values must be in range.
        """
        return [name for name in self.active_names(given) if name not in given and name in self.searched]

    def locate_part(self, params: Any) -> tuple[list[float | None], bool]:
        """As `locate`, for params of which any may be missing, and return whether an active parameter is missing.

        Refuse values that no point of the space has.
        """
        if hasattr(params, "to_dict"):  # a Series
            params = params.to_dict()
        given = self.checked_part(params) if isinstance(params, Mapping) else None
        if given is None or not self.missing(given):
            place, partial = self.locate(params), False
            self.core.check_linear(place)
            return place, partial
        numbers = [dimension.to_number(given[name]) if name in given else None for name, dimension in self.items()]
        place = self.core.only_searched(numbers)
        self.core.check_part(place)
        return place, True

    def contains(self, values: Mapping[str, Any]) -> bool:
        """Return whether each of the values, by flat name, is a value of its parameter."""
        try:
            return all(
                self[name].core.checked(self[name].to_number(each, True)) is not None for name, each in values.items()
            )
        except ValueError:
            return False

    def without_missing(self, record: Mapping[str, Any], is_complete: bool = True) -> Mapping[str, Any]:
        """Return values by flat name without those inactive parameters whose value is None or NaN.

        Unless `is_complete`, None is kept if it is a choice of the parameter, which may be active at missing values.
        """
        gaps = [name for name in self._conditional if name in record and is_gap(record[name])]
        gaps = [name for name in gaps if is_complete or not self.contains({name: record[name]})]
        if not gaps:
            return record
        inactive = {*gaps} - {*self.active_names(record)}
        return {name: value for name, value in record.items() if name not in inactive}

    def several(self, params: Any, listed: bool = False) -> list[Any] | None:
        """Return the points in a list, a table or an array; None for a single point. Only `Candidates` use `listed`."""
        if is_table(params):
            return [self.without_missing(record) for record in params.to_dict("records")]
        if hasattr(params, "shape") and not hasattr(params, "to_dict"):  # an array, and not a Series
            return self._rows(params)
        return list(params) if isinstance(params, (list, tuple)) else None

    def _rows(self, array: Any) -> list[Mapping[str, Any]]:
        """Return the rows of an array of numbers as values by name. NaN means that the parameter is inactive."""
        what, names = self.point_argument, self.array_names
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

    def points(self, params: Any, measured: bool = False) -> NDArray[np.float64]:
        """Encode one set of params, or several in a list, table or array; return the points, shape (n, width).

        If `measured` is True, numbers may lie beyond bounds and between steps.
        """
        several = self.several(params)
        points = [params] if several is None else several
        return np.array([self.core.encode(self._numbers(one, measured)) for one in points]).reshape(-1, self.width)


def escaped(name: str) -> str:
    """Return a name as valid Unicode, which the core needs. A lone surrogate becomes its escape sequence."""
    return name.encode("utf-8", "backslashreplace").decode()


class ContextSpace(Space):
    """A `Space` for contexts; its errors name ``context``."""

    argument = "context"
    point_argument = "context"
    point_error = InvalidContext

    def __init__(self, dimensions: Any) -> None:
        super().__init__(dimensions)
        if self._conditional:
            raise InvalidSpace(
                f"context has conditions, of {self._conditional}: a context needs all values; drop when= and bl.Choice"
            )

    def numbers(self, context: Any) -> list[float]:
        """Return one number for each searched parameter of a context."""
        return [0.0 if number is None else number for number in self.locate(context)]
