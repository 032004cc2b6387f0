"""Batched pure exploration under delays: each round explores the region that the previous bounds did not eliminate."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from belated._core import InvalidSetting
from belated.optimizers.optimizer import Optimizer
from belated.optimizers.status import Round, round_from
from belated.optimizers.values import Value, checks_keywords, in_units_of_f, takes
from belated.space.candidates import Candidates

DelayName: TypeAlias = Literal["estimated", "none"]


@dataclass(frozen=True, repr=False)
class Delay(Value, argument=True):
    """The delay model: `EstimatedDelay`, `NoDelay` or `SubExponential`."""

    @classmethod
    def from_argument(cls, given: Any, name: str) -> Any:
        """Return the given value, or the value that a string names."""
        try:
            return super().from_argument(given, name)
        except InvalidSetting as error:
            # There is no string for it, because its numbers need values for each problem.
            raise InvalidSetting(f"{error}, or SubExponential(mean=…, xi=…, b=…)") from None


@checks_keywords
@dataclass(frozen=True, repr=False)
class EstimatedDelay(Delay, name="estimated"):
    """Delays are estimated from the results that have arrived and from the ages of the trials in flight.

    A round then lasts until, by the estimate, its first results have arrived. If there is no result yet, it lasts until
    the first one. Results that never come are not counted.
    """


@checks_keywords
@dataclass(frozen=True, repr=False)
class NoDelay(Delay, name="none"):
    """Every result arrives before the next suggestion: BPE (Li and Scarlett 2022)."""


@checks_keywords
@dataclass(frozen=True, repr=False)
class SubExponential(Delay):
    """Delays whose distribution is known: E exp(η(τ - mean)) <= exp(η² xi²/2) for \\|η\\| <= 1/b.

    This is the assumption of Vakili et al. 2023 (Assumption 3.3), who take xi = 9 and b = 1 for Poisson delays of mean
    50. All numbers are in suggestions.

    Parameters
    ----------
    mean : float, default 0.0
        The expected delay.
    xi : float, default 0.0
        The scale of small deviations: about the standard deviation.
    b : float, default 0.0
        The scale of large deviations.

    Examples
    --------
    >>> import belated as bl
    >>> bl.SubExponential(mean=50, xi=9, b=1)
    SubExponential(mean=50.0, xi=9.0, b=1.0)
    """

    mean: float = 0.0
    _: KW_ONLY
    xi: float = 0.0
    b: float = 0.0


@checks_keywords
@dataclass(eq=False, repr=False)
class BPEDelay(Optimizer, strategy="BPEDelay"):
    """Batched pure exploration with elimination, for results that come late (BPE-Delay, Vakili et al. 2023).

    Suggestions come in rounds. Within a round they are the points with the largest uncertainty. The uncertainty does
    not depend on the observed values, so late results cost nothing within a round. A round lasts until its first
    results have most probably arrived. At its end confidence bounds are computed only from the results of this round,
    and points that cannot be the maximum are eliminated permanently. If the kernel, the noise and the number of
    suggestions are known beforehand, the regret has a bound to which delays add only a term that does not grow with
    time.

    Results after the end of a round do not change the eliminated points. Enqueued and added trials belong to no round.
    Points may be suggested more than once. A space is searched on a quasi-random set of points. Contexts, conditions,
    constraints and fidelities are refused, and so is ``clock="seconds"``, because rounds count suggestions.

    Parameters
    ----------
    space, candidates, direction, seed
        As for `RandomSearch`.
    horizon : int
        The number of all suggestions of the search. The lengths of the rounds follow from it, and a suggestion beyond
        it raises `HorizonReached`.
    lengthscale : float or list of float
        Lengthscale of the kernel in encoded units, in which columns range over [0, 1]: one for all columns, or one for
        each.
    noise_std : float
        Standard deviation of the observations' noise, in units of f, 0 for none. Values that are reported with a
        ``std`` use that instead.
    regularization : float, optional
        λ of Theorem 6.1: the standard deviation that the model takes for the noise. Default None: `noise_std`.
    signal_std : float, default 1.0
        Standard deviation of f around its mean, in units of f.
    kernel : {"matern52", "matern32", "matern12", "squared_exponential", "linear"}, default "matern52"
        The covariance function.
    mean : float, default 0.0
        Prior mean of f, in units of f.
    delay : {"estimated", "none"} or SubExponential, default "estimated"
        The delay model, in suggestions: "estimated", "none", or a `SubExponential`.
    beta : float or "theory", default 2.5
        Multiplies the standard deviation in the bounds. The paper's experiments have sqrt(6). "theory" is the
        multiplier of Theorem 6.1 for candidates and for spaces of no more than `n_points` points: for N points in R
        rounds B + noise_std/regularization sqrt(2 log(4 R N/delta)). For other spaces it is the multiplier of Theorem
        6.2, whose bounds are so wide that little is ever eliminated.
    rkhs_bound : float, optional
        B, needed with ``beta="theory"``: a bound on the norm of f - mean in the space of the kernel (the norm of
        sum a_i k(., x_i) is the square root of sum a_i a_j k(x_i, x_j)).
    delta : float, default 0.1
        The bounds of the theory hold with probability 1 - delta.
    n_points : int, default 2500
        The number of points that represent a space. If the space has no more points than this, all of them are used.
    keep_rounds : bool, default False
        Whether rounds also use the data of earlier rounds. It saves suggestions, but no theorem holds then.

    For replays
        tail : {"max", "min"}, default "max"
            Which term of the bound on delays (Eq. 6) is used: the larger one, or the smaller one as printed. The
            smaller one is not a bound: with delays of mean 50 some delay is longer with probability 0.31.
        lengths : {"paper", "code"}, default "paper"
            Lengths of rounds. "paper": as in Algorithm 1, with the last round cut to the horizon. "code": as in the
            authors' code, whose last round is whole and ends beyond the horizon.

    Raises
    ------
    InvalidSpace
        The space or the candidates cannot be searched.
    InvalidSetting
        Another argument is missing or invalid, or the horizon is shorter than the first round.

    Examples
    --------
    >>> import belated as bl
    >>> import numpy as np
    >>> x = np.linspace(0, 1, 200).reshape(-1, 1)
    >>> optimizer = bl.BPEDelay(candidates=x, horizon=100, lengthscale=0.2, noise_std=0.01, delay="none", seed=0)
    >>> for _ in range(100):
    ...     trial = optimizer.suggest()
    ...     trial.observe(np.sin(5 * trial.x[0]))
    >>> [round.length for round in optimizer.rounds_]
    [10, 32, 57, 1]
    >>> len(optimizer.surviving_) < 50
    True
    """

    _: KW_ONLY
    horizon: int | None = None
    lengthscale: float | Sequence[float] | None = None
    noise_std: float | None = None
    regularization: float | None = None
    signal_std: float = 1.0
    kernel: Literal["matern52", "matern32", "matern12", "squared_exponential", "linear"] = "matern52"
    mean: float = in_units_of_f(0.0)
    delay: Delay | DelayName = takes(Delay, "estimated")
    beta: float | Literal["theory"] = 2.5
    rkhs_bound: float | None = None
    delta: float = 0.1
    n_points: int = 2500
    keep_rounds: bool = False
    tail: Literal["max", "min"] = "max"
    lengths: Literal["paper", "code"] = "paper"

    def __post_init__(self) -> None:
        if self.constraints is not None:
            raise InvalidSetting(
                "BPEDelay does not support constraints: leave them out, pass as candidates the points that satisfy "
                "them, or use another optimizer"
            )
        super().__post_init__()

    @property
    def round_(self) -> int:
        """The number of the round that the last suggestion belongs to, 1 before the first."""
        return int(self._status()["round"])

    @property
    def rounds_(self) -> list[Round]:
        """The rounds that have begun and, if the delays are known, the rounds that will follow."""
        return [round_from(each) for each in self._status()["rounds"]]

    @property
    def surviving_(self) -> Any:
        """The points that the round chooses from: all points that were not eliminated.

        An array of indices for candidates; for a space a list of params, from the points that represent it. At the
        first suggestion of the next round, points are eliminated again.
        """
        status, domain = self._status(), self._problem.domain
        if isinstance(domain, Candidates):
            return np.array(status["surviving"], dtype=np.int64)
        return [domain.decode(np.array(point)) for point in status["points"]]
