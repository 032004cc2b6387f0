"""Linear constraints on the parameters of a space, mixtures, and bounds of the number of nonzero parameters."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypeAlias

from belated._core import InvalidSpace
from belated.short_repr import short_repr
from belated.space.arguments import finite
from belated.space.dimensions import Dimension

# A constraint in the form that the core takes: terms, at_least, at_most, the step and the tolerance of a mixture, and
# whether nonzero parameters are counted. The terms of a count have the numbers that stand for zero.
CoreLinear: TypeAlias = tuple[list[tuple[str, float]], float | None, float | None, float | None, float, bool]

# The share of the total by which the sum of weighed parts usually misses the total.
_WEIGHED = 0.01


@dataclass(frozen=True)
class Linear:
    r"""A linear constraint on parameters, for the argument `constraints` of an optimizer.

    Every suggestion satisfies the constraint: a weighted sum of parameters equals a number, or lies between bounds.

    Parameters
    ----------
    coefficients : mapping
        The coefficient of each parameter by name. The parameters are `Real` without ``log``, `Integer` without
        ``log``, or constant numbers. Either all of them have steps, as integers do, or none.
    equals : float, optional
        The value of the sum.
    at_most, at_least : float, optional
        The bounds of the sum, one or both.

    Raises
    ------
    InvalidSpace
        A name or a number is not usable. The optimizer also raises this error if a parameter has the wrong kind, or if
        constraints contradict each other.

    Warns
    -----
    BelatedWarning
        The constraint holds at every point that satisfies the other constraints.

    See Also
    --------
    Mixture : Parts of a fixed total.
    Cardinality : A bound of the number of nonzero parameters.

    Notes
    -----
    Constraints on integers and steps hold for the integers k of a common unit: random points are uniform among the
    points that satisfy them, and are drawn by dynamic programming over the partial sums. The acquisition is maximised
    by changes of single parameters and by exchanges between two. The following holds for real numbers.

    A parameter that is inactive counts as 0. The sum of a suggestion may miss its bounds by 1e-9 · Σ \|a_i\| · r_i,
    where a_i is a coefficient and r_i is the width of the parameter's range.

    Constraints that hold with equality at every point are found by linear programs. The other directions are
    parametrised by an orthonormal basis of the null space, in which the body is rounded. Uniform points of simplices
    are exact, also if other bounds leave at least 2 % of the simplex: points outside are drawn again. Other bodies have
    a Gibbs chain [1]_ that starts at stored points of a long chain. The first suggestions are spread over the body: of
    many random subsets of a uniform sample, the subset with the largest smallest distance is used. The acquisition is
    maximised by sequential least-squares programming [2]_, or by spectral projected gradients [3]_ in more than 16
    columns, from vertices, edges and uniform points. Lengthscales belong to the parameters, as without
    constraints.

    References
    ----------
    .. [1] R. L. Smith, "Efficient Monte Carlo procedures for generating points uniformly distributed over bounded
       regions", Operations Research 32 (1984), 1296-1308.
    .. [2] D. Kraft, "A software package for sequential quadratic programming", DFVLR-FB 88-28 (1988).
    .. [3] E. G. Birgin, J. M. Martínez and M. Raydan, "Nonmonotone spectral projected gradient methods on convex sets",
       SIAM Journal on Optimization 10 (2000), 1196-1211.

    Examples
    --------
    >>> import belated as bl
    >>> space = {"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 5.0)}
    >>> limits = [bl.Linear({"a": 1, "b": 1}, equals=1.0), bl.Linear({"a": 2, "c": 1}, at_most=3.0)]
    >>> params = bl.BayesOpt(space, constraints=limits, seed=0).suggest().params
    >>> round(params["a"] + params["b"], 9), 2 * params["a"] + params["c"] <= 3.0
    (1.0, True)
    """

    coefficients: Mapping[str, float]
    _: KW_ONLY
    equals: float | None = None
    at_most: float | None = None
    at_least: float | None = None

    def __post_init__(self) -> None:
        given = self.coefficients
        if not isinstance(given, Mapping) or not given:
            raise InvalidSpace(f"Linear({short_repr(given)}) is not usable: pass a dict with a number for each name")
        checked = {_name(name): _number(value, f"Linear of {name!r}") for name, value in given.items()}
        object.__setattr__(self, "coefficients", checked)
        _check_bounds(self)

    @property
    def core(self) -> CoreLinear:
        """The constraint in the form that the core takes."""
        return list(self.coefficients.items()), *_low_and_high(self), None, 0.0, False

    def as_data(self) -> dict[str, Any]:
        """Return the constraint as JSON data."""
        data: dict[str, Any] = {"kind": "Linear", "coefficients": [[*each] for each in self.coefficients.items()]}
        return data | _bounds(self)

    def __hash__(self) -> int:
        return hash((tuple(self.coefficients.items()), self.equals, self.at_most, self.at_least))


@dataclass(frozen=True)
class Mixture:
    """Parts that have a fixed total, for the argument `constraints` of an optimizer.

    ``Mixture(["a", "b"], total=1.0)`` is ``Linear({"a": 1, "b": 1}, equals=1.0)``, and may have a step.

    Parameters
    ----------
    names : list of str
        The names of the parts, at least two. The parts are `Real` without ``log`` and ``step``, or constant numbers.
    total : float, default 1.0
        The sum of the parts.
    step : float, optional
        The step of the parts: each is its lower bound plus a multiple of the step. The mixture is then a finite set.
        Up to 100,000 points are searched exhaustively, and larger sets by exchanges, in which one part loses as many
        steps as another one gains. Default None: any real number.
    tolerance : float, optional
        By how much the sum of the parts of a *measured* point (`add`, ``observe(params=…)``) may differ from the total,
        because weighed amounts are rarely exact. Such a point is stored and modelled as it is given, and may be the
        best trial. Beyond the tolerance, the model uses the point, too, and `Trial.outside` is True. Suggestions and
        enqueued points have the total. Default None: 1 % of the total.

    Raises
    ------
    InvalidSpace
        A name or a number is not usable. The optimizer also raises this error if no point has the total.

    See Also
    --------
    Linear : Other weighted sums, with the method.
    Cardinality : A bound of the number of parts.

    Examples
    --------
    >>> import belated as bl
    >>> alloy = {"Ni": (0.0, 1.0), "Fe": (0.0, 1.0), "Co": (0.0, 0.5)}
    >>> optimizer = bl.BayesOpt(alloy, constraints=[bl.Mixture(["Ni", "Fe", "Co"], step=0.05)], seed=0)
    >>> params = optimizer.suggest().params
    >>> round(sum(params.values()), 9)
    1.0
    """

    names: Sequence[str]
    total: float = 1.0
    step: float | None = None
    tolerance: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", _names("Mixture", self.names))
        object.__setattr__(self, "total", _number(self.total, "Mixture(total)"))
        if self.step is not None:
            step = _number(self.step, "Mixture(step)")
            if step <= 0:
                raise InvalidSpace(f"Mixture(step)={step!r} is not usable: pass a number above 0, or None")
            object.__setattr__(self, "step", step)
        if self.tolerance is not None:
            tolerance = _number(self.tolerance, "Mixture(tolerance)")
            if tolerance < 0:
                raise InvalidSpace(f"Mixture(tolerance)={tolerance!r} is not usable: pass a number >= 0, or None")
            object.__setattr__(self, "tolerance", tolerance)

    @property
    def core(self) -> CoreLinear:
        """The constraint in the form that the core takes."""
        tolerance = _WEIGHED * abs(self.total) if self.tolerance is None else self.tolerance
        return [(name, 1.0) for name in self.names], self.total, self.total, self.step, tolerance, False

    def as_data(self) -> dict[str, Any]:
        """Return the constraint as JSON data."""
        data: dict[str, Any] = {"kind": "Mixture", "names": [*self.names], "total": self.total}
        return data | self._options()

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self._options().items())
        return f"Mixture({list(self.names)!r}, total={self.total!r}{options})"

    def _options(self) -> dict[str, float]:
        """Return the step and the tolerance by name, if they are given."""
        given = {"step": self.step, "tolerance": self.tolerance}
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True)
class Cardinality:
    """A bound of the number of parameters that are not zero, for the argument `constraints` of an optimizer.

    Every suggestion satisfies the constraint, as in "at most five of forty additives".

    Parameters
    ----------
    names : list of str
        The names of the parameters, at least two. Each has the value 0 or False: booleans, `Integer`, `Ordinal` or
        `Categorical` with 0, `Real` with a ``step``, parts of a `Mixture` with a step, or constants.
    equals : int, optional
        The number of parameters that are neither 0 nor False.
    at_most, at_least : int, optional
        The bounds of this number, one or both.

    Raises
    ------
    InvalidSpace
        A name or a number is not usable. The optimizer also raises this error if a parameter cannot be 0, is a `Real`
        without a step, or has conditions, or if constraints contradict each other.

    Warns
    -----
    BelatedWarning
        The constraint holds at every point.

    See Also
    --------
    Linear : A bound of a weighted sum, with the method for integers.

    Examples
    --------
    >>> import belated as bl
    >>> names = [f"additive_{k}" for k in range(40)]
    >>> space = dict.fromkeys(names, [False, True])
    >>> optimizer = bl.BayesOpt(space, constraints=[bl.Cardinality(names, at_most=5)], seed=0)
    >>> sum(optimizer.suggest().params.values()) <= 5
    True
    """

    names: Sequence[str]
    _: KW_ONLY
    equals: int | None = None
    at_most: int | None = None
    at_least: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", _names("Cardinality", self.names))
        _check_bounds(self)
        for name, value in _bounds(self).items():
            if value < 0 or value != int(value):
                raise InvalidSpace(f"Cardinality({name})={value!r} is not usable: pass a whole number, at least 0")
            object.__setattr__(self, name, int(value))

    def core_in(self, space: Mapping[str, Dimension]) -> CoreLinear | None:
        """Return the constraint in the form that the core takes, in which constants are subtracted from the bounds.

        Return None if all of its parameters are constants and satisfy it.
        """
        terms, held = [], 0
        for name in self.names:
            zero = _zero(space[name]) if name in space else 0.0
            if name in space and not space[name].width and space[name].when is None:
                held += zero is None
            elif zero is None:
                raise InvalidSpace(
                    f"constraint {self!r} has {name!r}, which cannot be 0 or False: leave it out, or add this value"
                )
            else:
                terms.append((name, zero))
        low, high = (None if bound is None else bound - held for bound in _low_and_high(self))
        if terms and (high is None or high >= 0):
            return terms, low, high, None, 0.0, True
        if (low is not None and low > 0) or (high is not None and high < 0):
            raise InvalidSpace(f"constraint {self!r} cannot hold: {held} of its parameters are constants other than 0")
        return None

    def as_data(self) -> dict[str, Any]:
        """Return the constraint as JSON data."""
        return {"kind": "Cardinality", "names": [*self.names]} | _bounds(self)

    def __repr__(self) -> str:
        bounds = ", ".join(f"{name}={value!r}" for name, value in _bounds(self).items())
        return f"Cardinality({list(self.names)!r}, {bounds})"


AnyLinear: TypeAlias = Linear | Mixture | Cardinality


def without_constants(
    linear: AnyLinear, space: Mapping[str, Dimension], constants: Mapping[str, float]
) -> CoreLinear | None:
    """Return a constraint in the form that the core takes, in which constants are subtracted from the bounds.

    Return None if all of its parameters are constants and their sum lies within the bounds.
    """
    if isinstance(linear, Cardinality):
        return linear.core_in(space)
    terms, low, high, step, tolerance, counts = linear.core
    held = sum(a * constants[name] for name, a in terms if name in constants)
    searched = [(name, a) for name, a in terms if name not in constants]
    if len(searched) == len(terms):
        return linear.core
    slack = 1e-9 * sum(abs(a * constants[name]) for name, a in terms if name in constants)
    if searched:
        low, high = (None if bound is None else bound - held for bound in (low, high))
        return searched, low, high, step, tolerance, counts
    if (low is not None and held < low - slack) or (high is not None and held > high + slack):
        raise InvalidSpace(f"constraint {linear!r} cannot hold: all of its parameters are constants, with sum {held!r}")
    return None


def linear_from(data: Mapping[str, Any]) -> AnyLinear:
    """Return the constraint from the data that `as_data` returned."""
    arguments = {name: value for name, value in data.items() if name != "kind"}
    if data["kind"] == "Linear":
        return Linear(dict(arguments.pop("coefficients")), **arguments)
    if data["kind"] == "Cardinality":
        return Cardinality(**arguments)
    if data["kind"] != "Mixture":
        raise InvalidSpace(f"the kind {short_repr(data['kind'])} is not usable: pass Linear, Mixture or Cardinality")
    return Mixture(**arguments)


def _check_bounds(constraint: Linear | Cardinality) -> None:
    """Replace the bounds by finite numbers. Refuse a constraint without bounds, or with too many."""
    kind = type(constraint).__name__
    for name, value in _bounds(constraint).items():
        object.__setattr__(constraint, name, _number(value, f"{kind}({name})"))
    if (constraint.equals is None) == (constraint.at_most is None and constraint.at_least is None):
        raise InvalidSpace(f"{constraint!r} is not usable: pass equals, or at_most, at_least or both of these")


def _bounds(constraint: Linear | Cardinality) -> dict[str, Any]:
    """Return the bounds that are given, by name."""
    bounds = {name: getattr(constraint, name) for name in ("equals", "at_most", "at_least")}
    return {name: value for name, value in bounds.items() if value is not None}


def _low_and_high(constraint: Linear | Cardinality) -> tuple[float | None, float | None]:
    exact = constraint.equals
    return (constraint.at_least, constraint.at_most) if exact is None else (exact, exact)


def _zero(dimension: Dimension) -> float | None:
    """Return the number of the value False or 0; None if the dimension has neither."""
    for value in (False, 0):
        with contextlib.suppress(ValueError):
            return dimension.to_number(value)
    return None


def _names(kind: str, given: Any) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidSpace(f"{kind}({short_repr(given)}) is not usable: pass a list of names")
    names = tuple(_name(name) for name in given)
    if len(set(names)) < max(2, len(names)):
        raise InvalidSpace(f"{kind}({short_repr(list(names))}) is not usable: pass two or more different names")
    return names


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise InvalidSpace(f"the name {short_repr(name)} in a constraint is not usable: pass the name of a parameter")
    return name


def _number(value: Any, what: str) -> float:
    number = finite(value)
    if number is None:
        raise InvalidSpace(f"{what}={short_repr(value)} is not usable: pass a finite number")
    return number
