"""Batched pure exploration with delays: each round explores the points that earlier rounds did not eliminate."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from belated.optimizers.optimizer import Optimizer
from belated.optimizers.settings import KernelName, Theory
from belated.optimizers.values import Value, private
from belated.space.candidates import LISTS

DelayName: TypeAlias = Literal["estimated", "none"]


@dataclass(frozen=True, repr=False)
class Delay(Value, argument=True):
    """The base class of delay models: `EstimatedDelay`, `NoDelay` and `SubExponential`."""


@dataclass(frozen=True, repr=False)
class EstimatedDelay(Delay, name="estimated"):
    """Delay model that is estimated from the results so far and from the ages of the trials in flight.

    A round lasts until, according to the estimate, the results of its first `Round.n_explored` suggestions have
    arrived. Before any result of the search has arrived, a round lasts until the first result arrives. The estimate
    describes only trials that return a result.
    """


@dataclass(frozen=True, repr=False)
class NoDelay(Delay, name="none"):
    """Delay model for results that always arrive before the next suggestion: BPE (Li and Scarlett 2022)."""


@dataclass(frozen=True, repr=False)
class SubExponential(Delay):
    """Delay model for delays τ with a known bound: E exp(η(τ - mean)) <= exp(η² xi²/2) for \\|η\\| <= 1/b.

    The bound is Assumption 3.3 of Vakili et al. 2023. The authors use xi = 9 and b = 1 for Poisson delays of mean 50.
    All numbers are in suggestions.

    Parameters
    ----------
    mean : float, default 0.0
        The expected delay.
    xi : float, default 0.0
        The scale of small deviations, about the standard deviation of the delays.
    b : float, default 0.0
        The scale of large deviations.

    Examples
    --------
    >>> import belated as bl
    >>> bl.papers.SubExponential(mean=50, xi=9, b=1)
    SubExponential(mean=50.0, xi=9.0, b=1.0)
    """

    mean: float = 0.0
    _: KW_ONLY
    xi: float = 0.0
    b: float = 0.0


@dataclass(frozen=True)
class Round:
    """A round of `BPEDelay` that has begun or is planned.

    Attributes
    ----------
    number : int
        The number of the round, counted from 1.
    n_explored : int
        q_r: the bounds of the round require the results of this number of suggestions.
    length : int, optional
        t_r: the number of suggestions in the round. None if the length of the round is not known yet.
    n_suggested : int
        The number of suggestions in the round so far.
    n_arrived : int
        The bounds of the round are computed from this number of results. In the last round: the number of results so
        far.
    n_surviving : int, optional
        The round chooses among this number of points; None for a planned round.
    delay : tuple (mean, xi, b), optional
        The given or estimated delay model that determines the length of the round. None before the first result.
    """

    number: int
    n_explored: int
    length: int | None
    n_suggested: int
    n_arrived: int
    n_surviving: int | None
    delay: tuple[float, float, float] | None


@dataclass(eq=False, repr=False)
class BPEDelay(
    Optimizer, strategy="BPEDelay", lacks=("context", "constraints", "fidelity", "curve", "stopping", "outcomes")
):
    """Batched pure exploration with elimination for delayed results (BPE-Delay, Vakili et al. 2023).

    The search consists of rounds. Within a round, each suggestion is the point with the largest uncertainty. The
    uncertainty does not depend on the observed values, so delays do not matter within a round. A round lasts until the
    results of its first `Round.n_explored` suggestions have most probably arrived. Then confidence bounds are computed
    only from the results of this round, and points that cannot be the maximum are eliminated permanently. If the
    kernel, the noise and the number of suggestions are known beforehand, the regret has a known bound, to which delays
    add a term that does not grow with time.

    Results that arrive after the end of a round do not change the eliminated points. Enqueued and added trials do not
    belong to a round. Points may be suggested more than once. A space is represented by a quasi-random set of points.
    Contexts, conditions, constraints, fidelities, learning curves and outcomes are not supported.

    With ``clock="seconds"``, a round ends when the bound on the delays, in seconds, has passed since its suggestion
    number `Round.n_explored`. The number of suggestions in a round then depends on the time between suggestions.

    Parameters
    ----------
    space, candidates, direction, clock, seed, time
        As for `RandomSearch`.
    horizon : int
        The total number of suggestions, which determines the lengths of the rounds. After this number of suggestions,
        ``suggest`` raises `HorizonReached`.
    lengthscale : float or list of float
        Lengthscale of the kernel: a single number for all columns, or one number for each column. The unit is the range
        of an encoded column, [0, 1].
    noise_std : float
        Standard deviation of the observations' noise, in units of f; 0 means exact values. If a value is reported with
        a ``std``, this ``std`` is used for the value instead.
    signal_std : float, default 1.0
        Standard deviation of f around its mean, in units of f.
    kernel : {"matern52", "matern32", "matern12", "squared_exponential", "linear"}, default "matern52"
        The covariance function.
    mean : float, default 0.0
        Prior mean of f, in units of f.
    delay : {"estimated", "none"} or SubExponential, default "estimated"
        The delay model, in units of the clock. "estimated" estimates the delays from the results so far. "none" means
        that results arrive before the next suggestion.
    beta : float or "theory", default 2.5
        The multiplier of the standard deviation in the bounds. The paper's experiments use sqrt(6). For candidates and
        for spaces of at most `n_points` points, "theory" is the multiplier of Theorem 6.1: for N points in R rounds it
        is B + noise_std/regularization sqrt(2 log(4 R N/delta)). For other spaces, "theory" is the multiplier of
        Theorem 6.2, which makes the bounds so wide that few points are eliminated.
    theory : Theory, optional
        B (`rkhs_bound`), delta and the regularization. ``beta="theory"`` requires B, which bounds the norm of f - mean.
        The bound on the delays uses delta, and the model uses the regularization. Default None: ``Theory()``.
    n_points : int, default 2500
        The number of points that represent a space. If the space has at most this number of points, all its points are
        used.
    keep_rounds : bool, default False
        Whether a round also uses the data of earlier rounds. Using earlier data saves suggestions, but is not covered
        by the theorems.

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
    signal_std: float = 1.0
    kernel: KernelName = "matern52"
    mean: float = 0.0
    delay: Delay | DelayName = "estimated"
    beta: float | Literal["theory"] = 2.5
    theory: Theory | None = None
    n_points: int = 2500
    keep_rounds: bool = False
    # Whether the larger or the smaller of the two terms in Eq. 6 bounds the delays. The paper prints the smaller term,
    # which is not a valid bound: delays of mean 50 exceed the smaller term with probability 0.31.
    tail: Literal["max", "min"] = private("max")
    # "code": rounds have the same lengths as in the authors' code. The last round has its full length and ends after
    # the horizon.
    lengths: Literal["paper", "code"] = private("paper")

    @property
    def round_(self) -> int:
        """The number of the current round, which contains the last suggestion; 1 before the first suggestion."""
        return int(self._status()["round"])

    @property
    def rounds_(self) -> list[Round]:
        """The rounds that have begun; if the delays are known, also the planned rounds."""
        rounds = self._status()["rounds"]
        delays = [each["delay"] and (each["delay"]["mean"], each["delay"]["xi"], each["delay"]["b"]) for each in rounds]
        return [Round(**(each | {"delay": delay})) for each, delay in zip(rounds, delays, strict=True)]

    @property
    def surviving_(self) -> Any:
        """The points among which the current round chooses: all points that were not eliminated.

        For candidates, the result is an array of indices. For a space, it is a list of params, taken from the points
        that represent the space. Further points are eliminated at the first suggestion of the next round.
        """
        status, domain = self._status(), self._problem.domain
        if isinstance(domain, LISTS):
            return np.array(status["surviving"], dtype=np.int64)
        return [domain.decode(np.array(point)) for point in status["points"]]
