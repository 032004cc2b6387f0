"""Candidate sets. The candidates are the rows of an array, or of a table with named columns."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from belated import _core
from belated._core import InvalidPoint, InvalidSpace
from belated.short_repr import short_repr
from belated.space.arguments import axes, copied, finite, is_gap, is_table, one_line, real_number, whole_number
from belated.space.dimensions import Categorical, Dimension, Real
from belated.space.space import Place, Space, escaped
from belated.warn import warn


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

    Numbers that a long gap separates from at least 90 % of their column are scaled by their ranks, so that they do not
    compress the others. The gap is more than ten times as long as the range of the others. A column is scaled by ranks
    if more than half of its different numbers are within 10 % of its range, as numbers over several decades are.

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
                index = self.core.find(numbers.tolist())
                if index is None and measured and np.isfinite(numbers).all():
                    return [number + 0.0 for number in numbers.tolist()]
        else:
            return _checked_index(index, len(self))
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


#: The candidates of an optimizer: an array, a table with names, a list of dicts, or a mapping of columns.
CandidatesLike: TypeAlias = ArrayLike | Mapping[str, Any] | Sequence[Mapping[str, Any]]

# The largest integer of a column. Larger integers may not be exact as floats.
_MAX_INTEGER = 2**53

# The largest relative difference between a number and the entry that it denotes, which a file may cause.
_ROUNDING = 1e-14

_KINDS = {bool: "booleans", str: "text", int: "numbers", float: "numbers"}


def read_candidates(given: Any) -> "Candidates | NamedCandidates":
    """Return the candidates of an array, or the named candidates of a table, a list of dicts or a mapping."""
    if isinstance(given, (Candidates, NamedCandidates)):
        return given
    if is_table(given):
        # A table whose columns have their default names is an array.
        n = len(given.columns)
        found = Candidates(given) if n and list(given.columns) == list(range(n)) else NamedCandidates(given)
    else:
        listed = isinstance(given, (list, tuple)) and any(isinstance(each, Mapping) for each in given)
        found = NamedCandidates(given) if listed or isinstance(given, Mapping) else Candidates(given)
    _warn_of_far_rows(found)
    return found


def _warn_of_far_rows(candidates: "Candidates | NamedCandidates") -> None:
    """Warn of rows with a number that is far from the other numbers of its column."""
    far = candidates.core.far_rows()
    if not far:
        return
    row, column, (low, high) = far[0]
    name = list(candidates)[column] if isinstance(candidates, NamedCandidates) else column
    n_more = len({each[0] for each in far} - {row})
    warn(
        f"candidates has {short_repr(float(candidates.x[row, column]))} in row {row} and column {name!r}, far from the "
        f"numbers from {low:.6g} to {high:.6g} in other rows{f' ({n_more} more rows have far numbers)' * bool(n_more)}:"
        " correct it if it has another unit, or leave out the row; such numbers are scaled by their ranks"
    )


class NamedCandidates(Space):
    """A finite set of points with named columns. As a mapping, it has the range or the choices of each column.

    Parameters
    ----------
    table : DataFrame, mapping of columns, or list of dicts
        The candidates, one per row. A column has finite numbers, booleans or text. Columns of booleans and of text are
        categories. None, NaN, and a name that a dict lacks, are *gaps*: the parameter does not apply to this row, and
        its params do not have the name.
    descriptors : mapping, optional
        Descriptors of the choices of columns, by name: a list of columns of numbers that describe the choice, or a
        table as for `Categorical`. The listed columns are not parameters: params do not have their names. Default None:
        no choices have descriptors.

    Raises
    ------
    InvalidSpace
        The descriptors of a choice differ between rows, or name a column that does not exist or has no text. Or the
        table is empty, its columns have different lengths, a name is not a text or occurs twice, or a column has
        entries of different kinds, infinite numbers or other objects.

    Examples
    --------
    >>> from belated.space import NamedCandidates
    >>> candidates = NamedCandidates({"T": [20, 60, 60], "solvent": ["water", "DMF", None]})
    >>> candidates.locate({"T": 60, "solvent": "DMF"})
    1
    >>> candidates.params_at(2)
    {'T': 60}
    >>> candidates["solvent"]
    Categorical(['water', 'DMF'])

    The column "logP" describes the solvents:

    >>> table = {"T": [20, 60, 60], "solvent": ["water", "DMF", "water"], "logP": [-1.4, -1.0, -1.4]}
    >>> candidates = NamedCandidates(table, descriptors={"solvent": ["logP"]})
    >>> candidates["solvent"].descriptors
    [{'logP': -1.4}, {'logP': -1.0}]
    """

    argument = "candidates"

    def __init__(self, table: Any, descriptors: Mapping[str, Any] | None = None) -> None:
        columns = _columns(table)
        tables, describing = _descriptor_tables(columns, descriptors)
        #: The columns with descriptors. Params may have these names, which are ignored.
        self.describing = describing
        columns = {name: column for name, column in columns.items() if name not in describing}
        if not columns or not len(next(iter(columns.values()))):
            raise InvalidSpace("candidates is empty: pass a table with at least one row and one column")
        self.nesting = None
        self._conditional = []
        self._dimensions = {}
        self._readers = []
        numbers = []
        for name, entries in columns.items():
            column, self._dimensions[name], reader = _column(name, entries, tables.get(name))
            numbers.append(column)
            self._readers.append((name, reader))
        #: The entries as numbers, shape (N, d). A choice is its position, and a gap is NaN.
        self.x: NDArray[np.float64] = np.column_stack(numbers)
        self.x.flags.writeable = False
        #: The names of the columns with gaps.
        self.optional = frozenset(name for name, column in zip(self, self.x.T, strict=True) if np.isnan(column).any())
        self._varying = [
            name
            for name, column in zip(self, self.x.T, strict=True)
            if not ((column == column[0]).all() or np.isnan(column).all())
        ]
        self._constants = {
            name: value for name, value in self.params_at(0).items() if name not in {*self._varying, *self.optional}
        }
        declared = [
            (escaped(name), each.core if isinstance(each, Categorical) else None)
            for name, each in self._dimensions.items()
        ]
        #: The candidates as an object of the core.
        self.core: _core.Candidates = _core.Candidates(self.x, declared)  # type: ignore[assignment]
        self.width = self.core.width

    def __reduce__(self) -> Any:
        # Unpickling recreates the core's object from the columns.
        return type(self), (self.columns(), self.descriptors()), {"describing": self.describing}

    def descriptors(self) -> dict[str, list[dict[str, float]]]:
        """Return the descriptors of the choices of each column, in the order of the choices."""
        named = self._dimensions.items()
        return {name: each.descriptors for name, each in named if isinstance(each, Categorical) and each.descriptors}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NamedCandidates):
            return False
        return list(self) == list(other) and super().__eq__(other) and np.array_equal(self.x, other.x, equal_nan=True)

    __hash__ = None

    def __repr__(self) -> str:
        return f"<{self.n_rows} candidates with the columns {short_repr(list(self))}>"

    @property
    def n_rows(self) -> int:
        """The number of candidates."""
        return len(self.x)

    @property
    def searched(self) -> list[str]:
        """The names of the columns that have different entries."""
        return self._varying

    @property
    def array_names(self) -> list[str]:
        """The names of the columns of an array of points."""
        return list(self)

    def columns(self) -> dict[str, list[Any]]:
        """Return the entries of each column by name; a gap is None."""
        pairs = zip(self._readers, self.x.T.tolist(), strict=True)
        return {name: [None if each != each else read(each) for each in column] for (name, read), column in pairs}

    def params_at(self, place: Place) -> dict[str, Any]:
        """Return the params of the row with this number, or the measured params. Gaps are left out."""
        if not isinstance(place, int):
            return self.named(place)
        return self.named([None if number != number else number for number in self.x[place].tolist()])

    def params_of(self, record: _core.TrialRecord) -> dict[str, Any]:
        """Return the params at which a trial was started."""
        return self.params_at(record.place)

    def named_at(self, place: Place) -> dict[str, Any]:
        """As `params_at`."""
        return self.params_at(place)

    def encode(self, params: Any) -> NDArray[np.float64]:
        """Encode params, which need not be a candidate. Numbers beyond the range of a column are outside [0, 1]."""
        point: NDArray[np.float64] = self.points([params], measured=True)[0]
        return point

    def decode(self, point: ArrayLike) -> dict[str, Any]:
        """Return the params of the candidate that is nearest to a point of shape (width,)."""
        distances = ((self.core.encode(self.x) - np.asarray(point, dtype=np.float64)) ** 2).sum(axis=1)
        return self.params_at(int(distances.argmin()))

    def _numbers(self, params: Any, measured: bool = False) -> list[float | None]:
        if hasattr(params, "to_dict") and not is_table(params):
            params = params.to_dict()
        if isinstance(params, Mapping):
            params = self._constants | {name: value for name, value in params.items() if name not in self.describing}
        return super()._numbers(params, measured)

    def _number(self, name: str, value: Any, measured: bool) -> Any:
        if name in self.optional and is_gap(value):
            return None
        dimension = self[name]
        if isinstance(dimension, Categorical):
            return super()._number(name, value, measured)
        number = finite(value)
        if number is None:
            raise InvalidPoint(f"params[{name!r}]={short_repr(value)} is not usable: pass a finite number")
        if number in self._known[name]:
            return number + 0.0
        nearest = self._nearest(name, number)
        return nearest if abs(nearest - number) <= _ROUNDING * abs(nearest) else number + 0.0

    def _nearest(self, name: str, number: float) -> float:
        """Return the entry of a column of numbers that is nearest to a number."""
        column = self.x[:, list(self).index(name)]
        if np.isnan(column).all():
            return math.nan
        return float(column[np.nanargmin(np.abs(column / 2 - number / 2))])

    def locate(self, params: Any, measured: bool = False) -> Any:
        """Return the index of a candidate; `params` is its index or its params.

        If `measured` is True, params that are not a candidate are returned as a list of numbers.

        Raises
        ------
        InvalidPoint
            The index is out of range, or the params are not among the candidates.
        """
        index = whole_number(params)
        if index is not None:
            return _checked_index(index, self.n_rows)
        numbers = self._numbers(params, measured=True)
        index = self._first_rows.get(np.array(numbers, dtype=np.float64).tobytes())  # None becomes NaN
        if index is None and not measured:
            raise self._no_candidate(numbers)
        return numbers if index is None else index

    @functools.cached_property
    def _first_rows(self) -> dict[bytes, int]:
        """The index of the first of the equal rows, by the bytes of its numbers."""
        return {row.tobytes(): self.n_rows - 1 - i for i, row in enumerate(self.x[::-1])}

    @functools.cached_property
    def _known(self) -> dict[str, frozenset[float]]:
        """The entries of each column as numbers."""
        return {name: frozenset(column) for name, column in zip(self, self.x.T.tolist(), strict=True)}

    def _no_candidate(self, numbers: list[float | None]) -> InvalidPoint:
        """Return the error for params that are not a candidate. It names a column in which the value does not occur."""
        for name, number, column in zip(self, numbers, self.x.T, strict=True):
            if number is not None and not (column == number).any():
                near = short_repr(self.named(self._only(name, self._nearest(name, number))).get(name))
                return InvalidPoint(
                    f"params[{name!r}]={number!r} is not usable: no candidate has this value in column {name!r}; the "
                    f"nearest is {near}"
                )
        return InvalidPoint(
            f"params={short_repr(self.named(numbers))} is not a candidate: each value occurs in its column, but not "
            "all of them in one row; pass a candidate's index, or the params of a row"
        )

    def _only(self, name: str, number: float) -> list[float | None]:
        return [number if each == name and number == number else None for each in self]

    def completed(self, params: Any, seed: list[int]) -> Any:
        """Return params, or the index of a random candidate with the given values if names are missing."""
        if not isinstance(params, Mapping):
            return params
        self.core.check_known([repr(name) for name in params if name not in self and name not in self.describing])
        is_complete = all(name in params for name in self._varying if name not in self.optional)
        if is_complete and isinstance(self.locate(params, measured=True), int):
            return params
        found = np.ones(self.n_rows, dtype=bool)
        for name, column in zip(self, self.x.T, strict=True):
            if name in params:
                number = self._number(name, params[name], True)
                found &= np.isnan(column) if number is None else column == number
        rows = np.flatnonzero(found)
        if not len(rows) and not is_complete:
            raise InvalidPoint(f"no candidate has params={short_repr(dict(params))}: pass values of a row")
        return int(np.random.default_rng(seed).choice(rows)) if len(rows) else params

    def several(self, params: Any, listed: bool = False) -> list[Any] | None:
        """Return the params or indices in a list, a table or an array; None for a single point."""
        if whole_number(params) is not None:
            return None
        if isinstance(params, np.ndarray) and params.ndim == 1:
            return list(params)
        return super().several(params)

    def points(self, params: Any, measured: bool = False) -> NDArray[np.float64]:
        """Return encoded points, shape (n, width), for params or indices, or for all candidates if `params` is None.

        If `measured` is True, params need not be candidates.
        """
        if params is None:
            return self.core.encode(self.x)
        several = self.several(params)
        places = [self.locate(one, measured) for one in ([params] if several is None else several)]
        rows = [
            self.x[place] if isinstance(place, int) else np.array(place, dtype=np.float64)  # None becomes NaN
            for place in places
        ]
        return self.core.encode(np.array(rows).reshape(-1, len(self)))

    def quantiles(self, shares: NDArray[np.float64]) -> dict[str, Any]:
        """Return an entry of each column by name: the entry at each share of the sorted column. Gaps are left out."""
        at = [column[int(share * self.n_rows)] for column, share in zip(self._sorted, shares, strict=True)]
        return self.named([None if number != number else float(number) for number in at])

    @functools.cached_property
    def _sorted(self) -> Any:
        return np.sort(self.x, axis=0).T

    def active_names(self, values: Mapping[str, Any]) -> list[str]:
        """Return the names that are given, and the names of columns without gaps."""
        return [name for name in self if name in values or name not in self.optional]

    def checked_part(self, params: Mapping[str, Any], measured: bool = False) -> dict[str, Any]:
        """Return the given entries, without gaps, after checking their types and choices."""
        return super().checked_part(self.without_missing(params), measured)

    def contains(self, values: Mapping[str, Any]) -> bool:
        """Return whether these values are a candidate."""
        return isinstance(self.locate(values, measured=True), int)

    def without_missing(self, record: Mapping[str, Any], is_complete: bool = True) -> Mapping[str, Any]:
        """Return a row of a table as a dict, without gaps."""
        return {name: value for name, value in record.items() if not (name in self.optional and is_gap(value))}


#: The kinds of finite domains, for `isinstance`.
LISTS = (Candidates, NamedCandidates)


def _columns(table: Any) -> dict[str, Any]:
    """Return the columns of a table by name. They have the same length."""
    if is_table(table):
        names = list(table.columns)
        twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
        if twice is not None:
            raise InvalidSpace(f"candidates has the column {twice!r} twice: keep one of them")
        found = {name: table[name] for name in names}
    elif isinstance(table, Mapping):
        found = dict(table)
    else:
        other = next((each for each in table if not isinstance(each, Mapping)), None)
        if other is not None:
            raise InvalidSpace(f"candidates has {one_line(other)} in a list of dicts: pass a dict for each row")
        found = {
            name: [row.get(name) for row in table] for name in dict.fromkeys(name for row in table for name in row)
        }
    for name, column in found.items():
        if not isinstance(name, str):
            raise InvalidSpace(f"candidates has the column {short_repr(name)}: names must be text, so rename it")
        if isinstance(column, (str, bytes, Mapping)) or not hasattr(column, "__len__") or axes(column) != 1:
            raise InvalidSpace(
                f"candidates[{name!r}]={one_line(column)} is not a column: pass a list with one entry for each row"
            )
    lengths = {name: len(column) for name, column in found.items()}
    if len(set(lengths.values())) > 1:
        (first, n), *others = lengths.items()
        name, other = next(each for each in others if each[1] != n)
        raise InvalidSpace(
            f"candidates[{name!r}] has {other} entries, and candidates[{first!r}] has {n}: pass one for each row"
        )
    return found


def _descriptor_tables(
    columns: Mapping[str, Any], descriptors: Mapping[str, Any] | None
) -> tuple[dict[str, Any], frozenset[str]]:
    """Return the descriptors of each described column as a table, and the names of the columns that describe choices.

    A list of columns becomes a table with the entries of these columns in the first row of each choice.
    """
    if descriptors is None:
        return {}, frozenset()
    if not isinstance(descriptors, Mapping):
        raise InvalidSpace(f"descriptors={one_line(descriptors)} is not usable: pass a dict of column → descriptors")
    tables: dict[str, Any] = {}
    describing: set[str] = set()
    for name, given in descriptors.items():
        listed = isinstance(given, (list, tuple)) and all(isinstance(each, str) for each in given)
        wanted = list(given) if listed else []
        unknown = next((each for each in [name, *wanted] if each not in columns), None)
        if unknown is not None:
            raise InvalidSpace(
                f"descriptors[{name!r}] needs the column {one_line(unknown)}, which candidates lacks: name some of "
                f"{list(columns)}"
            )
        tables[name] = _first_entries(columns, name, wanted) if listed else given
        describing.update(wanted)
    both = next((name for name in tables if name in describing), None)
    if both is not None:
        raise InvalidSpace(f"descriptors has {both!r} as a described and as a describing column: use it once")
    return tables, frozenset(describing)


def _first_entries(columns: Mapping[str, Any], name: str, wanted: list[str]) -> dict[Any, dict[str, Any]]:
    """Return the entries of the wanted columns for each choice, which must be equal in all rows with the choice."""
    table: dict[Any, dict[str, Any]] = {}
    rows = zip(*(list(columns[each]) for each in wanted), strict=True) if wanted else [()] * len(columns[name])
    for row, (choice, values) in enumerate(zip(columns[name], rows, strict=True)):
        if not isinstance(choice, (str, bool, np.bool_)):
            continue  # a gap; other entries are refused where the column is read
        entries = {each: None if is_gap(value) else value for each, value in zip(wanted, values, strict=True)}
        first = table.setdefault(choice, entries)
        differs = next((each for each in wanted if first[each] != entries[each]), None)
        if differs is not None:
            raise InvalidSpace(
                f"candidates[{differs!r}] has {short_repr(first[differs])} and {short_repr(entries[differs])} (row "
                f"{row}) for {short_repr(choice)} in column {name!r}: descriptors of a choice must be equal in all rows"
            )
    return table


def _column(
    name: str, entries: Any, descriptors: Any = None
) -> tuple[NDArray[np.float64], Dimension, Callable[[float], Any]]:
    """Return a column as numbers, its range or choices, and the conversion of a number to an entry."""
    what = f"candidates[{name!r}]"
    dtype = getattr(entries, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf" and not np.ma.isMaskedArray(entries):
        entries = np.asarray(entries).tolist()  # numbers of Python are faster to read
    given = [None if is_gap(each) else each if type(each) in _KINDS else copied(each) for each in entries]
    kinds: dict[str, tuple[int, Any]] = {}
    for row, entry in enumerate(given):
        if entry is not None and type(entry) not in _KINDS:
            number = real_number(entry)
            entry = given[row] = entry if number is None else number
        if entry is not None:
            kind = _KINDS.get(type(entry))
            if kind is None:
                raise InvalidSpace(
                    f"{what} has {one_line(entry)} in row {row}: pass numbers, booleans or text, and None for a gap"
                )
            kinds.setdefault(kind, (row, entry))
    if len(kinds) > 1:
        (a, (i, one)), (b, (j, other)) = list(kinds.items())[:2]
        raise InvalidSpace(
            f"{what} has {a} ({short_repr(one)} in row {i}) and {b} ({short_repr(other)} in row {j}): pass one kind"
        )
    if "text" in kinds or "booleans" in kinds:
        choices = Categorical(
            list(dict.fromkeys(entry for entry in given if entry is not None)), descriptors=descriptors
        )
        place = {choice: float(i) for i, choice in enumerate(choices.options)}
        return np.array([place.get(entry, math.nan) for entry in given]), choices, choices.from_number
    if descriptors is not None:
        raise InvalidSpace(f"{what} does not have text or booleans: descriptors describe the choices of such a column")
    is_whole = all(isinstance(entry, int) for entry in given if entry is not None)
    wrong = next((i for i, entry in enumerate(given) if entry is not None and not _is_usable(entry)), None)
    if wrong is not None:
        raise InvalidSpace(
            f"{what} has {short_repr(given[wrong])} in row {wrong}: pass finite numbers, integers within ±2**53, and "
            "None for a gap"
        )
    column = np.array([math.nan if entry is None else float(entry) for entry in given]) + 0.0
    known = column[~np.isnan(column)]
    range_of = Real(float(known.min()), float(known.max())) if len(known) else Real(0.0, 0.0)
    return column, range_of, _whole if is_whole else float


def _is_usable(number: float) -> bool:
    return abs(number) <= _MAX_INTEGER if isinstance(number, int) else math.isfinite(number)


def _whole(number: float) -> int | float:
    """Return a number of a column of integers; a measured number may have a fraction."""
    return int(number) if number.is_integer() else number


def _checked_index(index: int, n: int) -> int:
    if not 0 <= index < n:
        raise InvalidPoint(f"params={index} is not the index of a candidate: pass one from 0 to {n - 1}")
    return index
