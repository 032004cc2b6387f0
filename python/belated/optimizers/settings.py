"""The values that configure optimizers: acquisitions, pending policies, the surrogate, the search and others.

A test compares the defaults of these values with the defaults in the core.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, TypeAlias

from belated.optimizers.values import Value, private
from belated.space.arguments import whole_number

# The strings that stand for values with default fields.
AcquisitionName: TypeAlias = Literal["log_ei", "ucb", "thompson", "max_variance", "ucb_pe", "aegis"]
PendingName: TypeAlias = Literal[
    "integrate", "hallucinate", "ignore", "censor", "liar", "nearest", "local_penalization", "playbook"
]

# The names of kernels.
KernelName: TypeAlias = Literal["matern52", "matern32", "matern12", "squared_exponential", "linear"]

# The constants of theorems, and the search.


@dataclass(frozen=True, repr=False)
class Theory(Value):
    """The constants of the theorems that bound the regret of an algorithm.

    Parameters
    ----------
    rkhs_bound : float, optional
        B_f: a bound on the norm of f - mean in the reproducing kernel Hilbert space of the kernel k that the model
        uses. The norm of a function sum a_i k(., x_i) is the square root of sum a_i a_j k(x_i, x_j), where k includes
        the signal variance: for a kernel ``signal_std**2 * k1``, the norm is the norm for k1 divided by
        ``signal_std``. ``beta="theory"`` requires it.
    noise_bound : float, optional
        R: the noise is R-sub-Gaussian. R is the standard deviation of Gaussian noise, or the largest absolute value of
        bounded noise, in units of f. `BayesOpt` requires it with ``beta="theory"``; `BPEDelay` uses its ``noise_std``
        instead.
    delta : float, default 0.1
        The bounds hold with probability 1 - delta.
    value_bound : float, optional
        B_y of Verma et al. (2022), for `Censor`: a bound on the distance of values, including their noise, from the
        prior mean, in the model's units. With `Censor` the prior mean is by default the floor. ``beta="theory"``
        requires it with `Censor`. Default None: 1 for any other beta, as in the experiments of Verma et al.
    regularization : float, optional
        λ of Vakili et al. (2023), for `BPEDelay`: the standard deviation of the noise that the model assumes. Default
        None: the standard deviation of the noise.
    """

    _: KW_ONLY
    rkhs_bound: float | None = None
    noise_bound: float | None = None
    delta: float = 0.1
    value_bound: float | None = None
    regularization: float | None = None


@dataclass(frozen=True, repr=False)
class Search(Value):
    """The search for the maximum of the acquisition in a space.

    Parameters
    ----------
    effort : float, default 1.0
        The effort of the search, from 0.01 to 100. The time is proportional to the effort.
    """

    effort: float = 1.0
    _: KW_ONLY
    # (n_raw, n_starts): score n_raw uniform points, and run L-BFGS-B from n_starts further points.
    multistart: tuple[int, int] | None = private(None)
    # Use DIRECT (dividing rectangles) with about this number of evaluations. DIRECT does not use gradients.
    direct: int | None = private(None)


# Acquisitions.


@dataclass(frozen=True, repr=False)
class Acquisition(Value, argument=True):
    """The function that is maximised: `LogEI`, `UCB`, `ThompsonSampling`, `MaxVariance`, `UCBPE` or `AEGiS`."""


@dataclass(frozen=True, repr=False)
class LogEI(Acquisition, name="log_ei"):
    """Acquisition: the logarithm of the expected improvement over the best posterior mean.

    With the pending policy `Integrate`, the expected improvement is averaged over the possible values of pending trials
    and of the best observed points (noisy expected improvement).

    Parameters
    ----------
    incumbent : {"posterior_mean", "best_value"}, default "posterior_mean"
        With pending policies other than `Integrate`, improvement is measured from the largest posterior mean at an
        observed point, or from the largest observed value, which includes noise.
    per : {"auto", "trial", "time", "cost"}, default "auto"
        The resource per unit of which improvement is maximised. With "time" and "cost", the expected improvement is
        divided by a power of the expected duration or cost d(x), which is learnt from reported durations or costs:
        log EI(x) - c E[log d(x)] is maximised, where c = power s^2/(s^2 + 0.7^2), and s^2 is the part of the variance
        of log d that the model explains. While fewer than two durations or costs have been reported, c is 0; if ten
        trials have ended and "time" or "cost" was passed, a suggestion then gives a warning. "auto" is "time" in a run
        that only ``timeout`` ends, "cost" in a run that only ``budget`` ends, and "trial" otherwise; if both can end
        the run, the limit of which the larger share has been used decides. `Result.per` is the resource that was used.
        Durations in real time differ from run to run, so the seed does not determine the trials of a run with "time".
    power : float or "cooled", default 1.0
        The factor in c, from 0 to 10. "cooled" is the share of ``timeout`` or ``budget`` that is
        left, and falls from 1 to 0 during a run (Lee et al. 2020).
    """

    _: KW_ONLY
    incumbent: Literal["posterior_mean", "best_value"] = "posterior_mean"
    per: Literal["auto", "trial", "time", "cost"] = "auto"
    power: float | Literal["cooled"] = 1.0


@dataclass(frozen=True, repr=False)
class UCB(Acquisition, name="ucb"):
    """Acquisition: the upper confidence bound, which is the posterior mean plus a multiple of the standard deviation.

    With the pending policy `Censor`, the multiple is beta plus a sum of standard deviations (GP-UCB-SDF). The standard
    deviations are taken at the points of all trials that were suggested within the window, whether their results have
    arrived or not. Without a window, only pending trials count. With ``window="auto"``, all trials count until the
    first window is chosen. With ``beta="theory"``, only pending trials within the window count.

    Parameters
    ----------
    beta : float, "kandasamy", "kandasamy_code" or "theory", default 2.0
        Multiplies the standard deviation. Optuna and BoTorch multiply by the square root of their beta, so their 4.0
        corresponds to 2.0 here. "kandasamy" is sqrt(0.2 d log(2j + 1)) at suggestion j in d dimensions (Kandasamy et
        al. 2017). "kandasamy_code" is sqrt(5 d log(2 d j + 1)), the formula in the code of Kandasamy et al. "theory" is
        a confidence bound, see the notes.
    theory : Theory, default Theory()
        The constants of "theory". With `Censor`, the sum of the standard deviations is multiplied by ``value_bound``,
        for any beta.

    Notes
    -----
    With ``beta="theory"``, ``|mu(x) - f(x)| <= beta sigma(x)`` holds at all points and all suggestions together with
    probability 1 - delta. Let lambda be ``noise_std**2``, K the kernel matrix of the rows of the model, and I = 1/2 log
    det(1 + K/lambda) their information. Then beta = B_f + R sqrt(2 (I + log(1/delta))/lambda). With `Censor`, the bound
    is ``|mu(x) - rho f(x)| <= nu sigma(x)``, where f is measured from the floor, rho is the probability that a result
    arrives within the window, and nu = B_f + (R + B_y) sqrt(2 (I + log(2/delta))/lambda) + (B_y/lambda) S, where S is
    the sum of sigma over the trials that are pending within the window. The page of equations derives the bounds from
    Verma et al. (2022), theorem 1. The paper prints them without lambda, because it assumes lambda > 1.

    "theory" requires ``rkhs_bound`` and ``noise_bound``, a kernel whose hyperparameters are given, raw targets, and
    ``pending="ignore"`` or "censor". With "censor", it also requires ``value_bound``, a floor that equals the mean of
    the model and, with a window, ``late="discard"``. Other policies assume values at pending points. These values
    shrink sigma before a result arrives, and no useful bound is known for them. `UCBPE` is an exception: its bounds use
    observed values only. The bounds assume that no trial is stopped by its curve and, with `Censor`, that no values are
    added: added values are not delayed.

    The bounds are far too wide for practice. In 20 simulated runs of 40 suggestions, with one parameter and lambda =
    0.01, the last nu was 8 without delays, and 144 with `Censor` and delays (medians). The largest errors were 0.42 and
    0.16 of the bounds.
    """

    beta: float | Literal["kandasamy", "kandasamy_code", "theory"] = 2.0
    _: KW_ONLY
    theory: Theory = Theory()
    # Whether the standard deviations that `Censor` adds to beta include the noise.
    predictive_std: bool = private(False)
    # Whether trials in flight are not counted in j. All points of a batch then have the same beta.
    per_batch: bool = private(False)


@dataclass(frozen=True, repr=False)
class ThompsonSampling(Acquisition, name="thompson"):
    """Acquisition: a draw of f from the posterior; the maximum of the draw is suggested.

    Parameters
    ----------
    beta : float, "kandasamy", "kandasamy_code" or "theory", default 1.0
        With the pending policy `Censor`, the deviation of a draw from the mean is multiplied by nu (GP-TS-SDF). nu is
        beta plus the same sum of standard deviations as in `UCB`. The strings denote the same formulas as in `UCB`.
        Pending policies other than `Censor` do not use beta.
    n_features : int, default 1024
        If an exact draw is impossible, the draw is a sum of this number of random features.
    theory : Theory, default Theory()
        As in `UCB`.
    """

    beta: float | Literal["kandasamy", "kandasamy_code", "theory"] = 1.0
    _: KW_ONLY
    n_features: int = 1024
    theory: Theory = Theory()
    # How functions are drawn if an exact draw is impossible: by Matheron's rule, or by drawing the weights of the
    # random features. The second method is only for spaces.
    draws: Literal["pathwise", "weight_space"] = private("pathwise")
    # Whether deviations are multiplied by nu with `Censor`.
    widen: bool = private(True)
    # Whether the standard deviations that are added to beta in nu include the noise.
    predictive_std: bool = private(False)


@dataclass(frozen=True, repr=False)
class MaxVariance(Acquisition, name="max_variance"):
    """Acquisition: the posterior variance, for pure exploration."""


@dataclass(frozen=True, repr=False)
class UCBPE(Acquisition, name="ucb_pe"):
    """Acquisition GP-UCB-PE: an upper confidence bound, followed by pure exploration (Contal et al. 2013).

    A point that is suggested while no trial is in flight is the first point of a batch; it has the largest upper bound.
    The later points of the batch explore the region in which the maximum may be, {x : mu(x) + 2 beta sigma(x) > max mu
    - beta sigma}. Each of these points has the largest standard deviation s in this region. The mean mu and the
    standard deviation sigma depend only on observed values. The standard deviation s also depends on the points in
    flight; therefore `UCBPE` requires `Hallucinate`. `UCBPE` is made for synchronous batches. If results arrive one by
    one, `UCBPE` only explores.

    Parameters
    ----------
    beta : float, "kandasamy", "kandasamy_code" or "theory", default 2.0
        As in `UCB`, but j counts the trials before the batch. All points of a batch therefore have the same beta.
    theory : Theory, default Theory()
        As in `UCB`.

    Examples
    --------
    >>> import belated as bl
    >>> optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, acquisition=bl.papers.UCBPE("kandasamy"), initial=4, seed=0)
    >>> for _ in range(3):
    ...     for trial in optimizer.suggest(n=4):
    ...         trial.observe(-((trial.params["x"] - 0.3) ** 2))
    >>> abs(optimizer.best_params_["x"] - 0.3) < 0.1
    True
    """

    beta: float | Literal["kandasamy", "kandasamy_code", "theory"] = 2.0
    _: KW_ONLY
    theory: Theory = Theory()


@dataclass(frozen=True, repr=False)
class AEGiS(Acquisition, name="aegis"):
    """Acquisition AEGiS: usually the maximum of the posterior mean, otherwise a random choice (De Ath et al. 2021).

    Let epsilon = 1 / sqrt(max(d, 4)) for d parameters. With probability 1 - 2 epsilon, the point has the largest
    posterior mean. With probability epsilon, the point maximises a draw of f from the posterior. With probability
    epsilon, the point is a random point of the Pareto set of mean and standard deviation: no other point has a larger
    mean and a larger standard deviation. For d <= 4 the mean is therefore never maximised. Every parameter must be a
    `Real` without ``step``, without ``when`` and without a context. In the paper, pending trials are left out of the
    model (`Ignore`).
    """


# Pending policies: how the model treats trials that do not have a result yet.


@dataclass(frozen=True, repr=False)
class PendingPolicy(Value, argument=True):
    """A pending policy, which defines how the model treats trials that do not have a result yet.

    The policies are `Integrate`, `Hallucinate`, `Ignore`, `Censor`, `Liar`, `Nearest`, `LocalPenalization` and
    `PLAyBOOK`.
    """


@dataclass(frozen=True, repr=False)
class Integrate(PendingPolicy, name="integrate"):
    """Pending policy: `LogEI` is averaged over possible values of the pending trials.

    Parameters
    ----------
    n : int, default 32
        The number of possible values, which are quasi-random draws from the posterior.
    """

    n: int = 32


@dataclass(frozen=True, repr=False)
class Hallucinate(PendingPolicy, name="hallucinate"):
    """Pending policy: the value of a pending trial is assumed to be the predicted mean.

    The trial then reduces the uncertainty, but does not change the mean.
    """

    # Whether a point in flight may be suggested again before all points of a finite domain were tried.
    repeats: bool = private(False)


@dataclass(frozen=True, repr=False)
class Ignore(PendingPolicy, name="ignore"):
    """Pending policy: pending trials are left out of the model."""


@dataclass(frozen=True, repr=False)
class Censor(PendingPolicy, name="censor"):
    """Pending policy: the value of a pending trial is assumed to be the floor (GP-UCB-SDF, GP-TS-SDF).

    Parameters
    ----------
    floor : float, optional
        The smallest value of f (if f is minimised, the largest value), in units of f. Default None: the worst observed
        value.
    late : {"accept", "discard"}, default "accept"
        "accept": a value that is reported after the window is used. "discard": the trial keeps the floor as its value;
        this requires a window.
    """

    floor: float | None = None
    _: KW_ONLY
    late: Literal["accept", "discard"] = "accept"
    # As for `Hallucinate`.
    repeats: bool = private(False)


@dataclass(frozen=True, repr=False)
class Liar(PendingPolicy, name="liar"):
    """Pending policy: all pending trials are assumed to have the same value (the constant liar).

    Parameters
    ----------
    value : {"min", "mean", "max"} or float, default "mean"
        The assumed value: the smallest, mean or largest observed value, or a number in units of f.
    """

    value: float | Literal["min", "mean", "max"] = "mean"


@dataclass(frozen=True, repr=False)
class Nearest(PendingPolicy, name="nearest"):
    """Pending policy: a pending trial is assumed to have the mean of the predictions at the nearest observed points.

    Parameters
    ----------
    k : int, default 3
        The number of nearest points.
    """

    k: int = 3


@dataclass(frozen=True, repr=False)
class LocalPenalization(PendingPolicy, name="local_penalization"):
    """Pending policy: the acquisition is multiplied by a penalty near each pending trial (González et al. 2016).

    Pending trials are left out of the model. If the slope of f is at most L, the maximum of f has a distance of at
    least r = (M - f(x_j)) / L from a pending point x_j, where M is the best observed value. The penalty at x is the
    probability that this distance is at most the distance of x from x_j. L is the largest slope of the posterior mean,
    and distances are between encoded points. The acquisition must be `LogEI` or `UCB`; from `UCB`, the smallest value
    in the space is subtracted. Every parameter must be a `Real` without ``step``, without ``when`` and without a
    context.
    """


@dataclass(frozen=True, repr=False)
class PLAyBOOK(PendingPolicy, name="playbook"):
    """Pending policy PLAyBOOK-HL: the acquisition is multiplied by a hard penalty near each pending trial.

    As `LocalPenalization`, but the penalty increases about linearly with the distance from the pending point x_j, from
    0 to 1 at the distance (abs(M - mu) + sigma) / L. Here mu and sigma are the posterior mean and standard deviation at
    x_j, and L is the largest slope of the posterior mean within a lengthscale of x_j (Alvi et al. 2019).
    """


# The surrogate and the initial design.


@dataclass(frozen=True, repr=False)
class GP(Value, argument=True, name="gp"):
    """A Gaussian process, the model of f.

    Hyperparameters that are not given are fitted: they maximise the posterior density under priors that scale with
    dimension. Lengthscales refer to *encoded* columns, which are in [0, 1]; see `Space`. The *unit of the targets* is
    the unit of f for raw targets. For other targets, this unit is about the standard deviation of the observed values.

    If some evaluations diverge, or some losses are 1e6, the differences between good values are small compared with
    their distance from the bad values. Robust targets are therefore a monotone transformation of the values, which may
    compress the values that are worse than the median k. If f is maximised, a value y < k becomes k - w log(1 + (k -
    y)/w); if f is minimised, the transformation is mirrored. The width w is chosen from three widths. A transformation
    is used only if it explains the values clearly better: it has to increase the evidence, which includes the slope of
    the transformation, by 3 nats. Extremely bad values are treated as equal. Predictions are transformed back: if a
    transformation is used, `predict` and `recommend` use the median of f. The ``std`` that `predict` returns is then
    the width of the central 95 % interval of f divided by 2 · 1.96. The transformation and the unit of the targets
    remain the same until the next fit. If an outlier arrives or a wrong value is corrected, the next fit comes earlier.

    Parameters
    ----------
    kernel : {"auto", "matern52", "matern32", "matern12", "squared_exponential", "linear"}, default "auto"
        "auto" is "matern52", or "matern32" if a parameter is discrete. At each fit, "auto" changes to
        "squared_exponential" if this kernel explains the observations clearly better.
    ard : bool, default True
        True: one lengthscale for each dimension (a `Categorical` is one dimension). False: the same lengthscale for all
        dimensions.
    lengthscale : float or list of float, optional
        Lengthscale in encoded units: a single number; or a list with one number for each column, first the columns of
        the point and then the columns of the context. Default None: fitted.
    signal_std : float, optional
        Standard deviation of f around its mean, in the unit of the targets. Default None: fitted.
    noise_std : float, optional
        Standard deviation of the observations' noise, in the unit of the targets; 0 means exact values. If a value is
        reported with a ``std``, this ``std`` is used for the value instead. Default None: fitted.
    mean : {"auto", "estimated", "zero", "median"} or float, default "auto"
        Prior mean of f; a number is in units of f. "zero" is 0 after rescaling: the mean of the observed values, or the
        floor if the pending policy is `Censor`. "estimated" is a constant that is fitted together with the
        hyperparameters; with `Censor` and for raw targets, "estimated" equals "zero". "auto" is "estimated" in five or
        more dimensions, and "zero" in fewer dimensions.
    priors : bool, default True
        Whether hyperparameters are fitted with priors. If False, they are fitted by maximum likelihood.
    targets : {"robust", "standardized", "raw"}, default "robust"
        How values are transformed for the model. "robust": values are rescaled, and a long tail of bad values is
        compressed. (`Censor` does not compress, because its targets are distances from the floor.) "standardized":
        values are rescaled. "raw": values are unchanged.
    inputs : {"warped", "plain"}, default "warped"
        How real parameters, and integers with many values, are transformed for the model. "warped": a transformation
        stretches the range of a parameter near one of its bounds, if this explains the values clearly better. An
        example of such a parameter is a learning rate without ``log=True``. The transformations are Kumaraswamy's
        distribution functions, as in Snoek et al. 2014. At most 20 parameters are transformed. "plain": parameters are
        unchanged.
    n_restarts : int, default 4
        Number of starting points of the first fit.
    refit_every : int, default 10
        The model is fitted again after this number of new observations, or after 5 % new observations if these are
        more. While it has few observations, it is fitted more often. From 150 observations on, the next fit is
        postponed while the model predicts the values observed since the last fit well.
    """

    _: KW_ONLY
    kernel: Literal["auto"] | KernelName = "auto"
    ard: bool = True
    lengthscale: float | Sequence[float] | None = None
    signal_std: float | None = None
    noise_std: float | None = None
    mean: float | Literal["auto", "estimated", "zero", "median"] = "auto"
    priors: bool = True
    targets: Literal["robust", "standardized", "raw"] = "robust"
    inputs: Literal["warped", "plain"] = "warped"
    n_restarts: int = 4
    refit_every: int = 10
    # Number of starting points of every fit after the first. By default: the result of the last fit, and the first of
    # the starting points that a first fit has.
    n_refit_restarts: int = private(2)
    # "trials": fit whenever refit_every divides the number of trials.
    refit_clock: Literal["observations", "trials"] = private("observations")
    # The rows that the model is fitted to. "observed": rows with values. "policy": also the rows to which `Censor`
    # assigns the floor. "all": every row.
    fit_rows: Literal["observed", "policy", "all"] = private("observed")
    # The first fit starts from this (lengthscale, signal_std, noise_std); None: from the mode of the priors.
    initial_theta: tuple[float, float, float] | None = private(None)


@dataclass(frozen=True, repr=False)
class Initial(Value):
    """The suggestions before the model is used.

    Parameters
    ----------
    n : int, optional
        The number of points. Default None: twice the number of parameters (for candidates, twice the number of
        columns), but at least 4 and at most 10.
    how : {"quasi_random", "uniform", "uncertainty"}, default "quasi_random"
        "quasi_random": points spread evenly over the space. "uniform": independent random points. "uncertainty": each
        point maximises the variance of the model given the previous points (uncertainty sampling, Kandasamy et al.
        2017, proposition 2). With "uncertainty", pass hyperparameters to the model, because they cannot be fitted
        before the first value.

    Notes
    -----
    Each added or enqueued point covers the nearest initial point, and covered points are not suggested. Forty earlier
    results from a corner of the space therefore replace one point, and results that are spread over the space replace
    most points. Points in other contexts than the suggestion do not count. Pending and failed trials count, and
    abandoned trials do not. If points are drawn one by one ("uncertainty", or "uniform" with constraints), as many
    points are left out as points of a quasi-random design would be covered.
    """

    n: int | None = None
    _: KW_ONLY
    how: Literal["quasi_random", "uniform", "uncertainty"] = "quasi_random"

    @classmethod
    def denoted(cls, given: Any) -> Any:
        """Return the given value, or the value that a number denotes; None for other arguments."""
        number = whole_number(given)
        return super().denoted(given) if number is None or number < 0 else cls(number)
