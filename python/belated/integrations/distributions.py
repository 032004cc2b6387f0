"""Search spaces in the form that scikit-learn's users write, including frozen distributions of scipy.stats.

A distribution is replaced by a `Real` or an `Integer` if uniform draws from this dimension have the same distribution.
Otherwise the optimizer chooses u in [0, 1], and the value of the parameter is Q(u), where Q is the quantile function.
If u is uniform, Q(u) has the given distribution.
"""

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from belated._core import InvalidSpace
from belated.short_repr import short_repr
from belated.space.arguments import finite
from belated.space.dimensions import Categorical, Dimension, Integer, Ordinal, Real
from belated.space.space import Space

# The probability that is cut off at an infinite end of the support.
_TAIL = 1e-6
# The quantiles at which two distributions are compared.
_CHECKED = (0.1, 0.3, 0.5, 0.7, 0.9)


class DistributionSpace:
    """A space for an optimizer, and the conversion of its params to the values of the parameters.

    Parameters
    ----------
    given : mapping
        Parameter's name → dimension, or a shorthand of `belated.Space` for a dimension, or:

        * a frozen distribution of scipy.stats, or any object with ``ppf`` and ``support``;
        * a list of choices; or an array or a range, whose numbers are treated as ordered if they are monotonic.

    Attributes
    ----------
    space : Space
        The space that the optimizer searches. A distribution without an equivalent `Real` or `Integer` is replaced by a
        `Real` for u in [0, 1].

    Raises
    ------
    InvalidSpace
        The argument is not a mapping, or an entry cannot be searched.

    Examples
    --------
    >>> from scipy.stats import expon, loguniform
    >>> from belated.integrations.distributions import DistributionSpace
    >>> found = DistributionSpace({"C": loguniform(1e-3, 1e3), "tol": expon(), "kernel": ["rbf", "poly"]})
    >>> found.space["C"]
    Real(0.001, 1000.0, log=True)
    >>> found.values({"C": 1.0, "tol": 0.5, "kernel": "rbf"})
    {'C': 1.0, 'tol': 0.6931471805599453, 'kernel': 'rbf'}
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        if not isinstance(given, Mapping):
            raise InvalidSpace(
                f"space={short_repr(given)} is not usable: pass a dict of parameter's name → dimension, "
                "distribution or list"
            )
        self._quantiles: dict[str, Any] = {}
        if isinstance(given, Space):
            self.space = given
        else:
            self.space = Space({name: self._read(name, each) for name, each in given.items()})
        if self.space.nesting is not None:
            raise InvalidSpace(
                "space has nested groups, and the names of scikit-learn are flat, as in 'model__C': write these names, "
                f"with when= for conditions, instead of {short_repr(list(self.space))}"
            )

    def _read(self, name: str, given: Any) -> Any:
        """Return the optimizer's dimension for one entry."""
        what = f"space[{name!r}]"
        try:
            if isinstance(given, range) or (isinstance(given, np.ndarray) and given.ndim == 1):
                return _of_listed(given)
            if isinstance(given, list):
                # Make the `Categorical` explicitly: `Space` would give a warning for a list of two floats, although the
                # list means choices here.
                return Categorical(given)
        except InvalidSpace as error:
            raise InvalidSpace(f"{what}: {error}") from None
        if hasattr(given, "ppf") and hasattr(given, "support"):
            dimension = _with_the_same_law(given)
            if dimension is None:
                dimension = Real(*_ends(given, what))
                self._quantiles[name] = given
            return dimension
        if hasattr(given, "rvs"):
            raise InvalidSpace(
                f"{what}={short_repr(given)} cannot be searched, because it has no quantile function ppf: "
                "write bl.Real(low, high), or a frozen distribution of scipy.stats, as in scipy.stats.norm(0, 1)"
            )
        return given

    def values(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Convert an optimizer's params to the values of the parameters."""
        values = dict(params)
        for name in params.keys() & self._quantiles.keys():
            distribution = self._quantiles[name]
            quantile = float(distribution.ppf(params[name]))
            values[name] = int(quantile) if _is_discrete(distribution) else quantile
        return values


def _of_listed(given: Any) -> Dimension:
    """Return the dimension of an array or a range."""
    values = given.tolist() if isinstance(given, np.ndarray) else list(given)
    if len(values) > 1 and all(finite(value) is not None for value in values):
        steps = np.diff(values)
        if (steps > 0).all() or (steps < 0).all():
            return Ordinal(values)
    return Categorical(values)


def _is_discrete(distribution: Any) -> bool:
    return hasattr(distribution, "pmf") or hasattr(getattr(distribution, "dist", None), "pmf")


def _with_the_same_law(distribution: Any) -> Dimension | None:
    """Return the `Real` or `Integer` whose uniform draws on its scale have this distribution, or None."""
    low, high = map(float, distribution.support())
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    if _is_discrete(distribution):
        if getattr(getattr(distribution, "dist", None), "name", "") == "randint":  # its law is uniform
            # An `Integer` refuses bounds that are too large.
            with suppress(InvalidSpace):
                return Integer(int(low), int(high)) if low < high else Categorical([int(low)])
        return None
    for dimension in [Real(low, high)] + ([Real(low, high, log=True)] if low > 0 else []):
        own = [dimension.decode([u]) for u in _CHECKED]
        if np.allclose(distribution.ppf(_CHECKED), own, rtol=1e-9, atol=0.0):
            return dimension
    return None


def _ends(distribution: Any, what: str) -> tuple[float, float]:
    """Return the lowest and the highest u at which Q(u) is finite."""
    low, high = map(float, distribution.support())
    ends = (0.0 if math.isfinite(low) else _TAIL, 1.0 if math.isfinite(high) else 1.0 - _TAIL)
    if _is_discrete(distribution) and ends[0] == 0.0:
        # Q(0) of scipy's discrete distributions is the lowest value of the support minus 1.
        ends = (math.ulp(0.5), ends[1])
    if any(finite(float(distribution.ppf(u))) is None for u in ends):
        raise InvalidSpace(
            f"{what}={short_repr(distribution)} has no finite quantiles at {ends}: check its arguments, or write "
            "bl.Real(low, high)"
        )
    return ends
