"""The values that configure `BayesOpt`: acquisitions, pending policies, the surrogate and the initial design.

A test compares their defaults with the core.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, TypeAlias

from belated._core import InvalidSetting
from belated.optimizers.values import Value, checks_keywords, in_units_of_f
from belated.space.arguments import whole_number

__all__ = [
    "GP",
    "UCB",
    "UCBPE",
    "Censor",
    "Hallucinate",
    "Ignore",
    "Initial",
    "Integrate",
    "Liar",
    "LogEI",
    "MaxVariance",
    "Nearest",
    "ThompsonSampling",
]

# The strings that name values with their defaults.
AcquisitionName: TypeAlias = Literal["log_ei", "ucb", "thompson", "max_variance", "ucb_pe"]
PendingName: TypeAlias = Literal["integrate", "hallucinate", "ignore", "censor", "liar", "nearest"]

# Acquisitions.


@dataclass(frozen=True, repr=False)
class Acquisition(Value, argument=True):
    """The function that is maximised: `LogEI`, `UCB`, `ThompsonSampling`, `MaxVariance` or `UCBPE`."""

    multistart: tuple[int, int] | None = field(default=None, kw_only=True)
    direct: int | None = field(default=None, kw_only=True)
    effort: float = field(default=1.0, kw_only=True)


@checks_keywords
@dataclass(frozen=True, repr=False)
class LogEI(Acquisition, name="log_ei"):
    """The acquisition is the expected improvement over the best posterior mean, in logs because it may be tiny.

    Under `Integrate` it is averaged over the values that pending trials and the best observed points may have (noisy
    expected improvement).

    Parameters
    ----------
    incumbent : {"posterior_mean", "best_value"}, default "posterior_mean"
        The reference for improvement under the other policies: the largest posterior mean at an observed point, or the
        largest observed value, noise included.
    effort : float, default 1.0
        The effort of the search for the best point of a space; time is proportional to it.

    For replays
        multistart : tuple of int (n_raw, n_starts), optional
            How the acquisition is maximised in a space: the best of n_raw uniform points and of L-BFGS-B runs from
            n_starts others. Default None: belated's own search.
        direct : int, optional
            About how many evaluations, if the acquisition is maximised by DIRECT instead (dividing rectangles:
            deterministic and without gradients). Default None.
    """

    _: KW_ONLY
    incumbent: Literal["posterior_mean", "best_value"] = "posterior_mean"


@checks_keywords
@dataclass(frozen=True, repr=False)
class UCB(Acquisition, name="ucb"):
    """The acquisition is the upper confidence bound: posterior mean plus a multiple of the standard deviation.

    Under `Censor` the multiple is beta plus the sum of the standard deviations at the points that may still arrive
    (GP-UCB-SDF).

    Parameters
    ----------
    beta : float, "kandasamy", "kandasamy_code" or "theory", default 2.0
        Multiplies the standard deviation (Optuna and BoTorch take the square root of theirs: their 4.0 is this 2.0).
        "kandasamy" is sqrt(0.2 d log(2j + 1)) at suggestion j in d dimensions (Kandasamy et al. 2017).
        "kandasamy_code" is sqrt(5 d log(2 d j + 1)), the formula in their code. "theory" is
        B + R sqrt(2 (gamma + 1 + log(1/delta))), under `Censor` B + (R + V) sqrt(2 (gamma + 1 + log(2/delta))), in the
        model's units: B is `rkhs_bound`, V `value_bound`, R the standard deviation of the noise and gamma the maximum
        information gain, bounded from above by the gain of greedy choices. It is far too wide for practice.
    rkhs_bound : float, default 1.0
        B of ``beta="theory"``: a bound on the norm of f, in the model's units.
    delta : float, default 0.1
        ``beta="theory"`` holds with probability 1 - delta.
    value_bound : float, optional
        B_y of Verma et al. (2022), under `Censor`: a bound on the distance of values from the prior mean, in the
        model's units. It multiplies the sum of the standard deviations, and enters ``beta="theory"``. Default None:
        1, as in their experiments; with ``beta="theory"`` the largest distance observed so far.
    effort : float, default 1.0
        As for `LogEI`.

    For replays
        predictive_std : bool, default False
            Count the noise in the standard deviations.
        per_batch : bool, default False
            Whether j leaves out the trials in flight, so that all points of a batch have the same beta.
        multistart : tuple of int (n_raw, n_starts), optional
            As for `LogEI`.
        direct : int, optional
            As for `LogEI`.
    """

    beta: float | Literal["kandasamy", "kandasamy_code", "theory"] = 2.0
    _: KW_ONLY
    rkhs_bound: float = 1.0
    delta: float = 0.1
    value_bound: float | None = None
    predictive_std: bool = False
    per_batch: bool = False


@checks_keywords
@dataclass(frozen=True, repr=False)
class ThompsonSampling(Acquisition, name="thompson"):
    """The acquisition is a draw of f from the posterior; the maximum of the draw is suggested.

    Parameters
    ----------
    beta : float, "kandasamy", "kandasamy_code" or "theory", default 1.0
        Under `Censor` draws deviate from the mean nu times as far as the posterior does (GP-TS-SDF): nu is beta plus
        the sum of the standard deviations at the points that may still arrive. The names denote formulas, as in `UCB`.
        Other policies do not use it.
    draws : {"pathwise", "weight_space"}, default "pathwise"
        How functions are drawn if an exact draw is impossible: by Matheron's rule, or by the weights of the random
        features ("weight_space", in a space only).
    n_features : int, default 1024
        Number of random features of a draw.
    rkhs_bound : float, default 1.0
        For ``beta="theory"``, as in `UCB`.
    delta : float, default 0.1
        For ``beta="theory"``, as in `UCB`.
    value_bound : float, optional
        As in `UCB`.
    effort : float, default 1.0
        As for `LogEI`.

    For replays
        widen : bool, default True
            Whether draws under `Censor` deviate nu times as far.
        predictive_std : bool, default False
            Count the noise in the standard deviations that nu sums.
        multistart : tuple of int (n_raw, n_starts), optional
            As for `LogEI`.
        direct : int, optional
            As for `LogEI`.
    """

    beta: float | Literal["kandasamy", "kandasamy_code", "theory"] = 1.0
    _: KW_ONLY
    draws: Literal["pathwise", "weight_space"] = "pathwise"
    n_features: int = 1024
    rkhs_bound: float = 1.0
    delta: float = 0.1
    value_bound: float | None = None
    widen: bool = True
    predictive_std: bool = False


@checks_keywords
@dataclass(frozen=True, repr=False)
class MaxVariance(Acquisition, name="max_variance"):
    """The acquisition is the posterior variance: pure exploration.

    Parameters
    ----------
    effort : float, default 1.0
        As for `LogEI`.
    multistart : tuple of int (n_raw, n_starts), optional
        For replays, as for `LogEI`. Default None.
    direct : int, optional
        For replays, as for `LogEI`. Default None.
    """


@checks_keywords
@dataclass(frozen=True, repr=False)
class UCBPE(Acquisition, name="ucb_pe"):
    """GP-UCB-PE: the first point of a batch has the largest upper bound, the others explore (Contal et al. 2013).

    A point that is suggested while nothing is in flight is the first point of a batch. Each other point has the largest
    standard deviation s in the region where the maximum may be, {x : mu(x) + 2 beta sigma(x) > max mu - beta sigma}. mu
    and sigma are given only the observed values. s is given also the points in flight with their predicted values, so
    this acquisition needs `Hallucinate`. It is made for synchronous batches: if results come one by one, it keeps
    exploring.

    Parameters
    ----------
    beta : float, "kandasamy", "kandasamy_code" or "theory", default 2.0
        As in `UCB`; j counts the trials before the batch, so that all its points have the same beta.
    rkhs_bound : float, default 1.0
        For ``beta="theory"``, as in `UCB`.
    delta : float, default 0.1
        For ``beta="theory"``, as in `UCB`.
    effort : float, default 1.0
        As for `LogEI`.

    For replays
        multistart : tuple of int (n_raw, n_starts), optional
            As for `LogEI`.
        direct : int, optional
            As for `LogEI`.

    Examples
    --------
    >>> import belated as bl
    >>> optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, acquisition=bl.UCBPE("kandasamy"), initial=4, seed=0)
    >>> for _ in range(3):
    ...     for trial in optimizer.suggest(n=4):
    ...         trial.observe(-((trial.params["x"] - 0.3) ** 2))
    >>> abs(optimizer.best_params_["x"] - 0.3) < 0.1
    True
    """

    beta: float | Literal["kandasamy", "kandasamy_code", "theory"] = 2.0
    _: KW_ONLY
    rkhs_bound: float = 1.0
    delta: float = 0.1


# Pending policies: how the model treats a trial without a result.


@dataclass(frozen=True, repr=False)
class PendingPolicy(Value, argument=True):
    """How the model treats a trial without a result: `Integrate`, `Hallucinate`, `Ignore`, `Censor`, `Liar` or
    `Nearest`."""


@checks_keywords
@dataclass(frozen=True, repr=False)
class Integrate(PendingPolicy, name="integrate"):
    """Pending policy: `LogEI` is averaged over the values that pending trials may have.

    Parameters
    ----------
    n : int, default 32
        The number of values, which are quasi-random draws from the model's prediction.
    """

    n: int = 32


@checks_keywords
@dataclass(frozen=True, repr=False)
class Hallucinate(PendingPolicy, name="hallucinate"):
    """Pending policy: a pending trial counts as observed at the predicted mean, and only reduces the uncertainty.

    For replays
        repeats : bool, default False
            Whether a point in flight may be suggested again while untried points are left, in a finite domain.
    """

    _: KW_ONLY
    repeats: bool = False


@checks_keywords
@dataclass(frozen=True, repr=False)
class Ignore(PendingPolicy, name="ignore"):
    """Pending policy: pending trials are ignored; the model has only trials with results."""


@checks_keywords
@dataclass(frozen=True, repr=False)
class Censor(PendingPolicy, name="censor"):
    """Pending policy: a pending trial counts as observed at the floor until its value comes (GP-UCB-SDF, GP-TS-SDF).

    Parameters
    ----------
    floor : float, optional
        The smallest value that f can take (the largest, if f is minimised), in units of f. Default None: the worst
        observed value.
    late : {"accept", "discard"}, default "accept"
        "accept": a value that comes after the window is used. "discard": the trial stays at the floor (this needs a
        window).

    For replays
        repeats : bool, default False
            As for `Hallucinate`.
    """

    floor: float | None = in_units_of_f(None)
    _: KW_ONLY
    late: Literal["accept", "discard"] = "accept"
    repeats: bool = False


@checks_keywords
@dataclass(frozen=True, repr=False)
class Liar(PendingPolicy, name="liar"):
    """Pending policy: all pending trials count as observed at one value (the constant liar).

    Parameters
    ----------
    value : {"min", "mean", "max"} or float, default "mean"
        The smallest, mean or largest observed value, or a number in units of f.
    """

    value: float | Literal["min", "mean", "max"] = in_units_of_f("mean")


@checks_keywords
@dataclass(frozen=True, repr=False)
class Nearest(PendingPolicy, name="nearest"):
    """Pending policy: a pending trial counts as observed at the mean of the predictions at the nearest observed points.

    Parameters
    ----------
    k : int, default 3
        The number of nearest points.
    """

    k: int = 3


# The surrogate and the initial design.


@dataclass(frozen=True, repr=False)
class Surrogate(Value, argument=True):
    """The model of f: `GP`."""


@checks_keywords
@dataclass(frozen=True, repr=False)
class GP(Surrogate, name="gp"):
    """A Gaussian process.

    Hyperparameters that are not given are fitted: they maximise the posterior density under priors that scale
    with dimension. *Encoded* columns are in [0, 1], see `Space`. The *unit of the targets* is the unit of f for raw
    targets, else about the standard deviation of the observed values.

    If networks diverge, or a loss is 1e6, the differences between good points are small compared with the distance to
    the bad points. Robust targets are therefore a monotone transformation of the values, which may move the values
    worse than the median nearer to it. With k the median, the values below it (above, if f is minimised) become k - w
    log(1 + (k - y)/w), for one of three widths w or none, whichever explains the values best (the evidence, with the
    slope of the transformation, has to be larger by 3 nats); values far beyond count as equal. Predictions are
    transformed back: `predict` and `recommend` then give the median of f and, as ``std``, the width of its central 95 %
    interval divided by 2 · 1.96. The transformation and the unit of the targets stay until the next fit. A fit comes
    early after an outlier or the correction of a wrong value.

    Parameters
    ----------
    kernel : {"auto", "matern52", "matern32", "matern12", "squared_exponential", "linear"}, default "auto"
        "auto" is "matern52", or "matern32" if a parameter is discrete. It is "squared_exponential" instead if, at a
        fit, this explains the observations clearly better.
    ard : bool, default True
        One lengthscale for each dimension, whatever its number of choices, or one for all.
    lengthscale : float or list of float, optional
        In encoded units: one for all columns, or one for each column of the point and then of the context. Default
        None: fitted, as are the two below.
    signal_std : float, optional
        Standard deviation of f around its mean, in the unit of the targets.
    noise_std : float, optional
        Standard deviation of the observations' noise, in the unit of the targets, 0 for none. Values that are reported
        with a ``std`` use that instead.
    mean : {"auto", "estimated", "zero", "median"} or float, default "auto"
        Prior mean of f; a number is in units of f. "zero" is zero after rescaling: the mean of the observed values, or
        the floor under `Censor`. "estimated" is a constant fitted with the hyperparameters; under `Censor` and for raw
        targets it is the same as "zero". "auto" is "estimated" from five dimensions on, else "zero".
    priors : bool, default True
        Fit with priors, or by maximum likelihood.
    targets : {"robust", "standardized", "raw"}, default "robust"
        How the model sees values. "robust": rescaled, and a long tail of bad values compressed (never under `Censor`,
        whose targets are distances from the floor). "standardized": rescaled. "raw": unchanged.
    inputs : {"warped", "plain"}, default "warped"
        How the model sees a box's real parameters, and integers of many values. "warped": each parameter is stretched
        toward one of its ends by a power if that explains the values clearly better, for example a learning rate
        without ``log=True`` (Kumaraswamy's distribution functions, after Snoek et al. 2014; up to 20 such parameters).
        "plain": unchanged.
    n_restarts : int, default 4
        Starts of the first fit.
    refit_every : int, default 10
        Fit again after this many new observations: earlier while there are few, later (5 %) when there are many.

    For replays
        n_refit_restarts : int, default 2
            Starts of the fits after the first; the first of them is the last result.
        refit_clock : {"observations", "trials"}, default "observations"
            "trials": fit whenever refit_every divides the number of trials instead.
        fit_rows : {"observed", "policy", "all"}, default "observed"
            Rows that are fitted to: rows with values; also the rows that `Censor` holds at the floor; or every row.
        initial_theta : tuple (lengthscale, signal_std, noise_std), optional
            Start of the first fit. Default None: the mode of the priors.
    """

    _: KW_ONLY
    kernel: Literal["auto", "matern52", "matern32", "matern12", "squared_exponential", "linear"] = "auto"
    ard: bool = True
    lengthscale: float | Sequence[float] | None = None
    signal_std: float | None = None
    noise_std: float | None = None
    mean: float | Literal["auto", "estimated", "zero", "median"] = in_units_of_f("auto")
    priors: bool = True
    targets: Literal["robust", "standardized", "raw"] = "robust"
    inputs: Literal["warped", "plain"] = "warped"
    n_restarts: int = 4
    refit_every: int = 10
    n_refit_restarts: int = 2
    refit_clock: Literal["observations", "trials"] = "observations"
    fit_rows: Literal["observed", "policy", "all"] = "observed"
    initial_theta: tuple[float, float, float] | None = None


@checks_keywords
@dataclass(frozen=True, repr=False)
class Initial(Value):
    """The suggestions before the model is used.

    Parameters
    ----------
    n : int, optional
        How many. Default None: twice the number of parameters (of columns of candidates), but from 4 to 10.
    how : {"quasi_random", "uniform", "uncertainty"}, default "quasi_random"
        Spread evenly over the space, or independent. "uncertainty": each point is where the variance of the model,
        given the points before it, is largest (uncertainty sampling, Kandasamy et al. 2017, proposition 2). Use it with
        given hyperparameters, because they cannot be fitted before there are values.
    """

    n: int | None = None
    _: KW_ONLY
    how: Literal["quasi_random", "uniform", "uncertainty"] = "quasi_random"

    @classmethod
    def from_argument(cls, given: Any, name: str) -> "Initial":
        """Return the value itself, or the value that a number or None represents."""
        if isinstance(given, cls):
            return given
        number = whole_number(given)
        if given is not None and (number is None or number < 0):
            raise InvalidSetting(f"{name}={given!r} is not usable: pass an integer >= 0, Initial(…) or None")
        return cls(number)
