"""Fidelities in the user's units, and how the cost and the bias of an evaluation depend on the fidelity.

Notation: v is a fidelity in the user's units, from low to high. z in [0, 1] is the position of v on the scale of the
range, where z = 1 is a full evaluation. f_z is the function that is evaluated at fidelity z.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, fields
from functools import cached_property
from typing import Any

from belated import _core
from belated._core import InvalidFidelity, InvalidSetting, InvalidSpace
from belated.short_repr import short_repr
from belated.space.arguments import check_picklable, finite, name_of, shown, whole_number
from belated.space.dimensions import Integer, Real


@dataclass(frozen=True, repr=False)
class PowerCost:
    """The cost of an evaluation at fidelity z in [0, 1]: ``base + (full - base) * z**exponent``.

    Parameters
    ----------
    base : float
        The cost at the lowest fidelity, from 0 to `full`.
    exponent : float, default 1.0
        Above 0. With exponent 1, the cost is linear in z.
    full : float, default 1.0
        The cost at the highest fidelity, above 0. With the default 1, the unit of costs is a full evaluation. If trials
        report costs or a run has a budget in another unit, pass the cost in this unit.

    Raises
    ------
    InvalidSetting
        A number is out of its range.

    Examples
    --------
    The cost is proportional to the number of samples, from 100 to 5000:

    >>> import belated as bl
    >>> samples = bl.Fidelity(100, 5000, cost=bl.PowerCost(100 / 5000))
    >>> samples.cost_of(100), samples.cost_of(2550), samples.cost_of(5000)
    (0.02, 0.51, 1.0)
    """

    base: float
    exponent: float = 1.0
    full: float = 1.0

    def __post_init__(self) -> None:
        numbers = {field.name: finite(getattr(self, field.name)) for field in fields(self)}
        base, exponent, full = numbers.values()
        for name, number, fits, expected in (
            ("full", full, full is not None and full > 0, "a finite number > 0"),
            ("base", base, base is not None and full is not None and 0 <= base <= full, "a number from 0 to full"),
            ("exponent", exponent, exponent is not None and exponent > 0, "a finite number > 0"),
        ):
            if not fits:
                given = short_repr(getattr(self, name))
                raise InvalidSetting(f"{name}={given} of PowerCost is not usable: pass {expected}")
            object.__setattr__(self, name, number)

    def __repr__(self) -> str:
        return shown(self)

    def at(self, z: float) -> float:
        """Return the cost at fidelity z in [0, 1]."""
        return self.base + (self.full - self.base) * float(z**self.exponent)


@dataclass(frozen=True, repr=False)
class Fidelity:
    """The range of fidelities of an optimizer; a fidelity is a number of samples or epochs, for example.

    Evaluations at low fidelities (few samples, few epochs, a coarse grid) are cheap and biased. If an optimizer has a
    fidelity, each trial has the attribute `fidelity`. `best_params_` and `recommend` then refer to the highest
    fidelity. Only some optimizers support fidelities.

    Parameters
    ----------
    low, high : int or float
        The lowest and the highest fidelity, in your units; low < high. If both are integers, all fidelities are
        integers.
    log : bool, default False
        Whether fidelities are on a logarithmic scale; needs low > 0.
    cost : PowerCost or callable, optional
        The cost of an evaluation: a `PowerCost`, or a function that takes the fidelity in your units and returns a
        number >= 0. If a trial does not report its cost, a run with a budget charges this cost. A study supports only a
        `PowerCost`. A function can be pickled only if it is defined at the top level of a module. Default None: the
        cost is 1 at any fidelity.
    bias : float, optional
        A bound on the error of values at low fidelities, above 0 and in units of f: \\|f_z - f\\| is at most ``bias *
        (1 - z)``, where z increases from 0 at `low` to 1 at `high`. Default None: the bound is unknown, and an
        optimizer that needs the bound estimates it.

    Raises
    ------
    InvalidSpace
        The bounds are not finite numbers or are in the wrong order, or low <= 0 on a logarithmic scale.
    InvalidSetting
        Another argument is invalid, or the cost is not a finite number >= 0 at low or at high.

    Examples
    --------
    >>> import belated as bl
    >>> samples = bl.Fidelity(100, 5000, cost=bl.PowerCost(0.02))
    >>> optimizer = bl.RandomSearch({"C": bl.Real(1e-3, 1e3, log=True)}, fidelity=samples, seed=0)
    >>> optimizer.suggest().fidelity, optimizer.suggest(fidelity=500).fidelity
    (5000, 500)
    """

    low: float
    high: float
    _: KW_ONLY
    log: bool = False
    cost: PowerCost | Callable[[Any], float] | None = None
    bias: float | None = None

    def __post_init__(self) -> None:
        call = f"Fidelity({short_repr(self.low)}, {short_repr(self.high)})"
        try:
            axis = self._axis
        except InvalidSpace as error:
            raise InvalidSpace(f"{call}: {error}") from None
        if axis.low == axis.high:
            raise InvalidSpace(f"{call} is empty: low must be less than high; swap them")
        for name in ("low", "high", "log"):
            object.__setattr__(self, name, getattr(axis, name))
        if self.bias is not None:
            bias = finite(self.bias)
            if bias is None or bias <= 0:
                raise InvalidSetting(
                    f"bias={short_repr(self.bias)} is not usable: pass a finite number > 0 in units of f, or None to "
                    "have it estimated"
                )
            object.__setattr__(self, "bias", bias)
        if self.cost is None or isinstance(self.cost, PowerCost):
            return
        if not callable(self.cost) or isinstance(self.cost, type):
            raise InvalidSetting(
                f"cost={short_repr(self.cost)} is not usable: pass a bl.PowerCost(…), or a function of the fidelity "
                "that returns a number >= 0"
            )
        for end in (self.low, self.high):
            self.cost_of(end)

    @cached_property
    def _axis(self) -> Real | Integer:
        whole = whole_number(self.low) is not None and whole_number(self.high) is not None
        return (Integer if whole else Real)(self.low, self.high, log=self.log)  # type: ignore[arg-type]

    @property
    def core(self) -> tuple[_core.Parameter, float | None, tuple[float, float, float] | None]:
        """The range, the bias and the cost, in the form that the core takes. A cost function is replaced by None."""
        cost = (self.cost.base, self.cost.exponent, self.cost.full) if isinstance(self.cost, PowerCost) else None
        return self._axis.core, self.bias, cost

    def check(self, value: Any) -> float:
        """Return a fidelity in the user's units as an int or float; raise InvalidFidelity if it is out of range."""
        try:
            checked: float = self._axis.check(value)
        except ValueError as expected:
            raise InvalidFidelity(
                f"fidelity={short_repr(value)} is not usable: pass {expected} (nothing was changed)"
            ) from None
        return checked

    def encode(self, value: Any) -> float:
        """Return z in [0, 1] for a fidelity in the user's units."""
        return float(self._axis.encode(self.check(value))[0])

    def from_number(self, number: float | None) -> float:
        """Return the fidelity for a number of the core as an int or float; None means the highest fidelity."""
        return self.high if number is None else self._axis.from_number(number)

    def cost_of(self, value: Any) -> float:
        """Return the declared cost of an evaluation at a fidelity in the user's units; 1.0 if no cost was declared."""
        value, cost = self.check(value), self.cost
        if cost is None:
            return 1.0
        if isinstance(cost, PowerCost):
            return cost.at(self.encode(value))
        try:
            returned = cost(value)
        except Exception as error:
            raise InvalidSetting(
                f"cost ({name_of(cost)}) raised {type(error).__name__}: {error} for the fidelity {value!r}; it takes "
                "a fidelity in your units and returns what an evaluation costs there"
            ) from error
        amount = finite(returned)
        if amount is None or amount < 0:
            raise InvalidSetting(
                f"cost ({name_of(cost)}) returned {short_repr(returned)} for the fidelity {value!r}: return a "
                "finite number >= 0"
            )
        return amount

    def __repr__(self) -> str:
        return shown(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Fidelity":
        return self  # immutable

    def __getstate__(self) -> dict[str, Any]:
        check_picklable(self.cost, "cost", "pass a bl.PowerCost(…), or define it with def at the top level of a module")
        return {field.name: getattr(self, field.name) for field in fields(self)}
