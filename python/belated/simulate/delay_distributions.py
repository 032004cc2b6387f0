"""Distributions of delays, whose names and parameters are the same as in the papers.

The unit of a delay depends on the simulation: suggestions started (on the iteration clock), or a unit of time.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from belated._core import InvalidSetting
from belated.short_repr import short_repr

Array = NDArray[np.float64]


def valid_delays(delays: ArrayLike, what: str = "delays") -> Array:
    """Return delays as floats; raise an error if a delay is negative or NaN.

    A result with an infinite delay never arrives.
    """
    delays = np.asarray(delays, dtype=float)
    if not np.all(delays >= 0):
        raise InvalidSetting(f"{what} must be numbers ≥ 0, got {delays[~(delays >= 0)].flat[0]}")
    return delays


def as_distribution(given: Any, n_trials: int | None, name: str, what: str) -> "DelayDistribution":
    """Convert an argument to a distribution.

    `name` and `what` are used in messages: the name of the argument, and a word for the numbers in the argument.
    """
    if isinstance(given, DelayDistribution):
        return given
    if callable(given):
        return ByPoint(given)
    try:
        numbers = np.asarray(given, dtype=float)
    except (TypeError, ValueError) as error:
        raise InvalidSetting(
            f"{name}={short_repr(given)} is not usable: pass a DelayDistribution, a function of the point, or numbers"
        ) from error
    if numbers.ndim == 0:
        return Constant(float(valid_delays(numbers, what)))
    if n_trials is None:
        raise InvalidSetting(f"{name} holds a number for each trial: pass n_trials, or the distribution of {what}")
    if numbers.shape != (n_trials,):
        raise InvalidSetting(
            f"{name} must hold one number for each of the {n_trials} trials, got shape {numbers.shape}"
        )
    return Listed(tuple(valid_delays(numbers, what).tolist()))


def _require(distribution: "DelayDistribution", ok: bool, what: str) -> None:
    if not ok:
        raise InvalidSetting(f"{distribution!r}: {what}")


class DelayDistribution(ABC):
    """The base class of distributions of delays ≥ 0.

    A subclass defines ``mean`` and ``sample(rng, size)``, which returns independent draws. The method ``draw(rng,
    point)`` returns the delay of a single point; only in `ByPoint` does the delay depend on the point. Distributions
    are immutable and can be pickled.
    """

    mean: float

    @abstractmethod
    def sample(self, rng: np.random.Generator, size: int | None = None) -> Any:
        """Return independent delays: a single number, or an array of ``size`` numbers."""

    def draw(self, rng: np.random.Generator, point: Any) -> float:
        """Return the delay of a point."""
        return float(valid_delays(self.sample(rng)))


@dataclass(frozen=True)
class Constant(DelayDistribution):
    """The same delay for every trial."""

    mean: float

    def __post_init__(self) -> None:
        _require(self, self.mean >= 0, "the delay must be ≥ 0")

    def sample(self, rng: np.random.Generator, size: int | None = None) -> Any:
        return np.full(() if size is None else size, float(self.mean))


@dataclass(frozen=True)
class Listed(DelayDistribution):
    """Delays that are known in advance, one for each trial, for example from a log."""

    delays: tuple[float, ...]

    @property
    def mean(self) -> float:  # type: ignore[override]
        return float(np.mean(self.delays))

    def sample(self, rng: np.random.Generator, size: int | None = None) -> Any:
        """Return the first ``size`` delays in order; the delays are not random."""
        return np.array(self.delays if size is None else self.delays[:size])


@dataclass(frozen=True)
class Poisson(DelayDistribution):
    """The Poisson distribution (Verma et al. 2022, section 6; Vakili et al. 2023, section 7)."""

    mean: float

    def __post_init__(self) -> None:
        _require(self, 0 <= self.mean < math.inf, "the mean must be a finite number ≥ 0")

    def sample(self, rng: np.random.Generator, size: int | None = None) -> Any:
        return np.asarray(rng.poisson(self.mean, size), dtype=float)


@dataclass(frozen=True)
class Geometric(DelayDistribution):
    """The geometric distribution on 1, 2, 3, …: P(d = k) = p·(1 − p)^(k−1) with p = 1/mean (Wang et al. 2022)."""

    mean: float

    def __post_init__(self) -> None:
        _require(self, 1 <= self.mean < math.inf, "the mean must be a finite number ≥ 1, since 1 is the shortest delay")

    def sample(self, rng: np.random.Generator, size: int | None = None) -> Any:
        return np.asarray(rng.geometric(1.0 / self.mean, size), dtype=float)


@dataclass(frozen=True)
class Uniform(DelayDistribution):
    """The uniform distribution on [low, high]; Kandasamy et al. 2017 use [0, 2]."""

    low: float = 0.0
    high: float = 2.0

    def __post_init__(self) -> None:
        _require(self, 0 <= self.low <= self.high < math.inf, "needs 0 ≤ low ≤ high")

    @property
    def mean(self) -> float:  # type: ignore[override]
        return 0.5 * (self.low + self.high)

    def sample(self, rng: np.random.Generator, size: int | None = None) -> Any:
        return np.asarray(rng.uniform(self.low, self.high, size))


@dataclass(frozen=True)
class _WithMean(DelayDistribution):
    """The base class of distributions with a finite mean > 0."""

    mean: float = 1.0

    def __post_init__(self) -> None:
        _require(self, 0 < self.mean < math.inf, "the mean must be a finite number > 0")


@dataclass(frozen=True)
class HalfNormal(_WithMean):
    r"""The half-normal distribution, \|N(0, ζ²)\|, with mean ζ·sqrt(2/π).

    Kandasamy et al. 2017 use mean 1, so that ζ = sqrt(π/2).
    """

    def sample(self, rng: np.random.Generator, size: int | None = None) -> Any:
        zeta = self.mean * math.sqrt(math.pi / 2)
        return np.abs(zeta * np.asarray(rng.standard_normal(size)))


@dataclass(frozen=True)
class Exponential(_WithMean):
    """The exponential distribution, with density exp(−t/mean)/mean; Kandasamy et al. 2017 use mean 1."""

    def sample(self, rng: np.random.Generator, size: int | None = None) -> Any:
        return np.asarray(rng.exponential(self.mean, size))


@dataclass(frozen=True)
class Pareto(_WithMean):
    """The Pareto distribution: P(d > t) = (offset/t)^power for t ≥ offset.

    Parameters
    ----------
    mean : float, default 1.0
        The mean, which determines the offset mean·(power − 1)/power. ``math.inf`` requires a power of 1 or less, and
        `offset`.
    power : float, default 5.0
        The smaller the power, the more delays are extremely long.
    offset : float, optional
        The smallest delay, for an infinite mean.

    Examples
    --------
    >>> import math
    >>> from belated import simulate
    >>> simulate.Pareto()  # all delays are 0.8 or longer
    Pareto(mean=1.0, power=5.0)
    >>> simulate.Pareto(math.inf, power=0.5, offset=1.0)  # a delay is longer than 100 with probability 0.1
    Pareto(mean=inf, power=0.5, offset=1.0)
    """

    power: float = 5.0
    offset: float | None = None

    def __post_init__(self) -> None:
        _require(self, 0 < self.power < math.inf, "the power must be a finite number > 0")
        if self.mean == math.inf:
            _require(self, self.power <= 1, "a power > 1 has a finite mean: give the mean")
            given = self.offset is not None and 0 < self.offset < math.inf
            _require(self, given, "an infinite mean needs offset, the smallest delay: give a finite number > 0")
        else:
            super().__post_init__()
            _require(self, self.power > 1, "a power ≤ 1 has an infinite mean: give mean=math.inf and offset")
            _require(self, self.offset is None, "the mean determines the offset: leave it out")

    def __repr__(self) -> str:
        offset = "" if self.offset is None else f", offset={self.offset}"
        return f"Pareto(mean={self.mean}, power={self.power}{offset})"

    def sample(self, rng: np.random.Generator, size: int | None = None) -> Any:
        offset = self.mean * (self.power - 1) / self.power if self.offset is None else self.offset
        return np.asarray(offset * (1.0 + rng.pareto(self.power, size)))  # numpy's pareto is shifted to start at 0


@dataclass(frozen=True)
class ByPoint(DelayDistribution):
    """A delay that depends on the point: ``function(point)`` returns a number or a distribution.

    Parameters
    ----------
    function : callable
        A function of the point, which is the first argument of the objective. The distribution can be pickled only if
        the function is defined at the top level of a module.
    """

    function: Callable[[Any], float | DelayDistribution]
    mean: float = math.nan  #: unknown by default

    def sample(self, rng: np.random.Generator, size: int | None = None) -> Any:
        raise InvalidSetting("a delay that depends on the point cannot be drawn without a point: use draw(rng, point)")

    def draw(self, rng: np.random.Generator, point: Any) -> float:
        delay = self.function(point)
        return delay.draw(rng, point) if isinstance(delay, DelayDistribution) else float(valid_delays(delay))
