"""Information gains, and the bounds on regret that the theorems of papers give before a run."""

import math
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from belated._core import GaussianProcess, InvalidSetting
from belated.optimizers.settings import GP, Theory
from belated.short_repr import short_repr
from belated.space.arguments import finite


def _number(name: str, given: object, least: float, largest: float = math.inf, *, or_least: bool = False) -> float:
    """Return a finite number above `least` (or equal to it, with `or_least`) and up to `largest`."""
    number = finite(given)
    if number is None or not (least <= number if or_least else least < number) or number > largest:
        least_number = f"{least:g} or above" if or_least else f"above {least:g}"
        up_to = "" if largest == math.inf else f", at most {largest:g}"
        raise InvalidSetting(f"{name}={short_repr(given)} is not usable: pass a finite number {least_number}{up_to}")
    return number


# A kernel: a function that returns the matrix of k(a_i, b_j) for the rows of a and b, or a `GP` with given
# hyperparameters.
Kernel: TypeAlias = GP | Callable[[NDArray[np.float64], NDArray[np.float64]], ArrayLike]


def _rows(name: str, given: ArrayLike) -> NDArray[np.float64]:
    """Return points as an array of shape (n, d)."""
    try:
        x = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        x = np.empty(0)
    x = x.reshape(-1, 1) if x.ndim == 1 else x
    if x.ndim != 2 or not x.size or not np.isfinite(x).all():
        raise InvalidSetting(f"{name}={short_repr(given)} is not usable: pass one row of finite numbers for each point")
    return x


def _noise_variance(kernel: Kernel, noise_std: float | None) -> float:
    """Check the kernel, and return lambda."""
    if isinstance(kernel, GP):
        missing = [name for name in ("lengthscale", "signal_std") if getattr(kernel, name) is None]
        missing += ["another kernel"] if kernel.kernel == "auto" else []
        if missing:
            raise InvalidSetting(f"kernel={kernel} does not define a covariance: give it {', '.join(missing)}")
        noise_std = kernel.noise_std if noise_std is None else noise_std
    elif not callable(kernel):
        raise InvalidSetting(f"kernel={short_repr(kernel)} is not usable: pass a function or bl.GP(…)")
    return _number("noise_std", noise_std, 0.0) ** 2


def _covariances(kernel: Kernel, a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the matrix of k(a_i, b_j)."""
    if isinstance(kernel, GP):
        return np.stack([_covariances_with(kernel, a, row) for row in b], axis=1)
    found = np.asarray(kernel(a, b), dtype=float)
    if found.shape != (len(a), len(b)) or not np.isfinite(found).all():
        raise InvalidSetting(
            f"kernel={short_repr(kernel)} is not usable: for rows a and b, it returned an array of shape {found.shape} "
            f"or numbers that are not finite; return k(a_i, b_j) for all pairs, of shape {(len(a), len(b))}"
        )
    return found


def _covariances_with(model: GP, a: NDArray[np.float64], p: NDArray[np.float64]) -> NDArray[np.float64]:
    # Given the value 1 at p with the noise variance s, the mean at x is k(x, p)/(k(p, p) + s), and 1 minus the mean at
    # p is s/(k(p, p) + s).
    s = float(model.signal_std or 0.0) ** 2
    gp = GaussianProcess(model.kernel, model.lengthscale, s, s)
    gp.fit(p[None], np.ones(1))
    at_p, *means = gp.predict(np.concatenate([p[None], a]))[0]
    return np.asarray(means, dtype=float) * (s / (1.0 - float(at_p)))


def information_gain(
    points: ArrayLike, kernel: Kernel, noise_std: float | None = None, *, given: ArrayLike | None = None
) -> float:
    """Return the information that values at points give about f, 1/2 log det(1 + K/lambda).

    K is the kernel matrix of the points, and lambda is ``noise_std**2``. The information is I(y; f) of Vakili et al.
    (2023), section 2. Its largest value for T points is the maximum information gain; see `largest_information_gain`.

    Parameters
    ----------
    points : array of shape (n, d)
        The points. A point may occur more than once.
    kernel : callable or GP
        A function ``kernel(a, b)`` that returns the matrix of the covariances of f between the rows of a and b, or a
        `GP` with given ``kernel``, ``lengthscale`` and ``signal_std``. The lengthscale is in units of the points.
    noise_std : float, optional
        The standard deviation of the noise in the model. Default None: the ``noise_std`` of a `GP`.
    given : array of shape (m, d), optional
        Points at which values are known already. The result is then the further information of the points, I(y_points;
        f | y_given).

    Returns
    -------
    float
        The information, in nats.

    Raises
    ------
    InvalidSetting
        The points, the kernel or the noise are not usable.

    Examples
    --------
    >>> import belated as bl
    >>> model = bl.GP(kernel="matern52", lengthscale=0.2, signal_std=1.0, noise_std=0.1)
    >>> round(bl.papers.information_gain([0.1, 0.5, 0.9], model), 2)
    6.9
    """
    x, lambda_ = _rows("points", points), _noise_variance(kernel, noise_std)
    if given is not None:
        known = _rows("given", given)
        both = information_gain(np.concatenate([known, x]), kernel, noise_std)
        return both - information_gain(known, kernel, noise_std)
    return 0.5 * float(np.linalg.slogdet(np.eye(len(x)) + _covariances(kernel, x, x) / lambda_)[1])


def effective_dimension(points: ArrayLike, kernel: Kernel, noise_std: float | None = None) -> float:
    """Return the effective dimension of points, tr(K (K + lambda)^-1) (Vakili et al. 2023, equation 1).

    The effective dimension d is the sum of e/(1 + e) over the eigenvalues e of K/lambda, and the information gain I is
    the sum of log(1 + e)/2. Therefore d is at most 2 I. The paper prints d <= I, which does not hold for small e.

    Parameters
    ----------
    points, kernel, noise_std
        As for `information_gain`.

    Returns
    -------
    float
        The effective dimension, from 0 to the number of points.

    Raises
    ------
    InvalidSetting
        The points, the kernel or the noise are not usable.

    Examples
    --------
    >>> import belated as bl
    >>> model = bl.GP(kernel="matern52", lengthscale=0.2, signal_std=1.0, noise_std=0.1)
    >>> round(bl.papers.effective_dimension([0.1, 0.5, 0.9], model), 2)
    2.97
    """
    x, lambda_ = _rows("points", points), _noise_variance(kernel, noise_std)
    k = _covariances(kernel, x, x) / lambda_
    return float(np.trace(np.linalg.solve(np.eye(len(x)) + k, k)))


def largest_information_gain(
    points: ArrayLike,
    n_trials: int,
    kernel: Kernel,
    noise_std: float | None = None,
    *,
    given: ArrayLike | None = None,
) -> float:
    """Return an upper bound on the maximum information gain of a number of trials at points of a finite set.

    The maximum information gain is the largest `information_gain` of T points, which may coincide (Vakili et al. 2023,
    equation 2; gamma_T of Verma et al. 2022, Psi_n of Kandasamy et al. 2017). It enters the bounds `regret_bound` and
    `simple_regret_bound`. To find it is a combinatorial problem. The points are therefore chosen one by one, each with
    the largest variance. The information is monotone and submodular, so the maximum is at most the information of these
    points divided by 1 - 1/e, and at most the information of the first j of these points plus T times the information
    that the next point adds, for each j (Nemhauser, Wolsey and Fisher 1978). The result is the least of these bounds.

    Parameters
    ----------
    points : array of shape (N, d)
        The finite domain.
    n_trials : int
        T, the number of trials.
    kernel, noise_std, given
        As for `information_gain`. With ``n_trials=M - 1`` for M workers, and the initial points as ``given``, the
        result bounds the information of the pending trials, log(xi_M)/2 of Kandasamy et al. (2017), equation 4.

    Returns
    -------
    float
        The bound, in nats.

    Raises
    ------
    InvalidSetting
        The points, the number, the kernel or the noise are not usable.

    Examples
    --------
    >>> import belated as bl
    >>> import numpy as np
    >>> model = bl.GP(kernel="squared_exponential", lengthscale=0.2, signal_std=1.0, noise_std=0.5)
    >>> round(bl.papers.largest_information_gain(np.linspace(0, 1, 50), 20, model), 1)
    9.2
    """
    t = int(_number("n_trials", n_trials, 0.0, or_least=True))
    x, lambda_ = _rows("points", points), _noise_variance(kernel, noise_std)
    n_points = len(x)
    x = x if given is None else np.concatenate([x, _rows("given", given)])
    n_given = len(x) - n_points
    variance = np.array([_covariances(kernel, row, row)[0, 0] for row in x[:, None]]) / lambda_
    columns = np.zeros((len(x), n_given + t))  # of the Cholesky factor of 1 + K/lambda

    def choose(i: int, column: int) -> float:
        """Condition on a value at row i, and return the information that the value adds."""
        nonlocal variance
        gain = 0.5 * math.log1p(variance[i])
        covariance = _covariances(kernel, x, x[[i]])[:, 0] / lambda_ - columns[:, :column] @ columns[i, :column]
        columns[:, column] = covariance / math.sqrt(1.0 + variance[i])
        variance = np.maximum(variance - columns[:, column] ** 2, 0.0)
        return gain

    for j in range(n_given):
        choose(n_points + j, j)
    information, least = 0.0, 0.0 if t == 0 else math.inf
    for j in range(t):
        i = int(variance[:n_points].argmax())
        least = min(least, information + t * 0.5 * math.log1p(variance[i]))
        information += choose(i, n_given + j)
    return min(least, information / (1.0 - math.exp(-1.0)))


def regret_bound(
    n_trials: int,
    information: float,
    *,
    theory: Theory,
    noise_std: float,
    window: float,
    arrival: float = 1.0,
    signal_std: float = 1.0,
    algorithm: Literal["GP-UCB-SDF", "GP-TS-SDF"] = "GP-UCB-SDF",
    n_points: int | None = None,
) -> float:
    """Return the bound on the cumulative regret of GP-UCB-SDF or GP-TS-SDF (Verma et al. 2022, theorems 2 and 3).

    With probability 1 - ``theory.delta``, the sum of f(x*) - f(x_t) over the first T trials of `BayesOpt` with
    ``UCB("theory")`` and `Censor` is at most 2/arrival (C beta sqrt(T gamma) + window C² gamma B_y/lambda), where
    lambda is ``noise_std**2``, beta = B_f + (R + B_y) sqrt(2 (gamma + log(2/delta))/lambda), C² = 2 signal_std²/log(1 +
    signal_std²/lambda), and gamma is the information. The paper prints the bound for lambda > 1 and signal_std = 1,
    with 1 in place of the divisors lambda. The cumulative regret divided by T bounds the simple regret.

    For `ThompsonSampling` in place of `UCB`, the bound is the last line of equation 23 of the paper, in which beta has
    log(4/delta). With p = 1/(4 e sqrt(pi)) and w = 1 + sqrt(2 log(n_points T²)), the first term is multiplied by 11
    w/(2 p), and the second term is (4 B_f + 11 w (beta + window B_y/lambda)) sqrt(2 T log(2/delta))/(arrival p) + B_f
    pi²/3 for signal_std = 1. The proof needs 1/t² <= 4 p/5, so the trivial bound of the first four trials is added.

    The trivial bound is T times the largest possible difference of two values of f, 2 min(B_f signal_std, B_y). It is
    the result where it is smaller.

    Parameters
    ----------
    n_trials : int
        T, the number of trials.
    information : float
        An upper bound on the maximum information gain of T points, for example `largest_information_gain`.
    theory : Theory
        ``rkhs_bound`` (B_f), ``noise_bound`` (R), ``value_bound`` (B_y) and delta, all required.
    noise_std : float
        The standard deviation of the noise in the model.
    window : float
        The window m, the number of suggestions within which a result counts.
    arrival : float, default 1.0
        The probability that a result arrives within the window.
    signal_std : float, default 1.0
        The standard deviation of f in the model, or the largest one if it differs between points.
    algorithm : {"GP-UCB-SDF", "GP-TS-SDF"}, default "GP-UCB-SDF"
        Whether the points maximise an upper confidence bound or draws of f.
    n_points : int, optional
        The number of points of the domain. GP-TS-SDF requires it.

    Returns
    -------
    float
        The bound, in units of f.

    Raises
    ------
    InvalidSetting
        A number is out of its range, or a constant of `theory` is missing.

    Examples
    --------
    >>> import belated as bl
    >>> theory = bl.papers.Theory(rkhs_bound=1.0, noise_bound=0.1, value_bound=1.0)
    >>> settings = {"theory": theory, "noise_std": 0.5, "window": 10, "arrival": 0.9}
    >>> [round(bl.papers.regret_bound(n, 8.0, **settings) / n, 3) for n in (100, 10_000, 1_000_000)]
    [2.0, 0.881, 0.08]
    """
    given = (theory.rkhs_bound, theory.noise_bound, theory.value_bound)
    names = ("rkhs_bound", "noise_bound", "value_bound")
    b_f, r, b_y = (_number(f"theory.{name}", x, 0.0, or_least=True) for name, x in zip(names, given, strict=True))
    delta = _number("theory.delta", theory.delta, 0.0, 1.0)
    t = _number("n_trials", n_trials, 1.0, or_least=True)
    gamma = _number("information", information, 0.0, or_least=True)
    lambda_ = _number("noise_std", noise_std, 0.0) ** 2
    m = _number("window", window, 0.0, or_least=True)
    rho = _number("arrival", arrival, 0.0, 1.0)
    variance = _number("signal_std", signal_std, 0.0) ** 2
    c_squared = 2.0 * variance / math.log1p(variance / lambda_)
    is_draw = algorithm == "GP-TS-SDF"
    if not is_draw and algorithm != "GP-UCB-SDF":
        raise InvalidSetting(f"algorithm={short_repr(algorithm)} is not usable: pass 'GP-UCB-SDF' or 'GP-TS-SDF'")
    trivial = 2.0 * min(b_f * math.sqrt(variance), b_y)
    beta = b_f + (r + b_y) * math.sqrt(2.0 * (gamma + math.log((4.0 if is_draw else 2.0) / delta)) / lambda_)
    # Σ nu_t sigma_{t-1}(x_t) is at most this sum.
    total = math.sqrt(c_squared * t * gamma) * beta + m * c_squared * gamma * b_y / lambda_
    if not is_draw:
        return min(2.0 / rho * total, trivial * t)
    p = 1.0 / (4.0 * math.e * math.sqrt(math.pi))
    wide = 1.0 + math.sqrt(2.0 * math.log(_number("n_points", n_points, 1.0, or_least=True) * t**2))
    sigma = math.sqrt(variance)
    step = sigma * (4.0 * b_f + 11.0 * wide * (beta + m * sigma * b_y / lambda_)) / (rho * p)
    bound = 11.0 / (rho * p) * wide * total + step * math.sqrt(2.0 * t * math.log(2.0 / delta))
    return min(bound + sigma * b_f * math.pi**2 / 3.0 + 4.0 * trivial, trivial * t)


def simple_regret_bound(
    n_trials: int,
    information: float,
    *,
    noise_std: float,
    signal_std: float = 1.0,
    pending_information: float = 0.0,
    n_points: int | None = None,
    n_dimensions: int | None = None,
    slopes: tuple[float, float] | None = None,
) -> float:
    """Return the bound on the Bayes simple regret of seqTS, synTS and asyTS (Kandasamy et al. 2017, theorem 9).

    f is drawn from the model, whose kernel, zero mean and noise are known. The expectation of f(x*) - max f(x_j) after
    n trials is at most C_1/n + sqrt(C_2 xi_M beta_n Psi_n/n). Psi_n is the information, C_2 = 2/log(1 + 1/lambda) for
    the noise variance lambda, xi_M = exp(2 pending_information) as in equation 4, C_1 = pi²/6 + sqrt(2 pi)/12, and
    beta_n = 4 (d + 1) log n + 2 d log(d a b sqrt(pi)) as in equation 5. For a finite domain of N points, the same proof
    without its grid gives C_1 = sqrt(2 pi)/12 and beta_n = 2 log(n² N). The result with time (theorem 3) is this bound
    at the number of evaluations that end within the time.

    Parameters
    ----------
    n_trials : int
        n, the number of completed trials.
    information : float
        An upper bound on the maximum information gain of n points, for example `largest_information_gain`.
    noise_std : float
        The standard deviation of the noise.
    signal_std : float, default 1.0
        The standard deviation of f, or the largest one if it differs between points. The paper prints the bound for
        1, and other values are the same bound in another unit.
    pending_information : float, default 0.0
        An upper bound on the information of the at most M - 1 pending trials of M workers, given the completed ones.
        0: one worker.
    n_points : int, optional
        The number of points, for a finite domain.
    n_dimensions : int, optional
        d, for the unit cube.
    slopes : tuple of (a, b), optional
        Constants of assumption 6, for the unit cube: for each dimension, the largest slope of f exceeds J with a
        probability of at most a exp(-(J/b)²).

    Returns
    -------
    float
        The bound, in units of f.

    Raises
    ------
    InvalidSetting
        A number is out of its range, or the domain is not given.

    Examples
    --------
    >>> import belated as bl
    >>> import numpy as np
    >>> x = np.linspace(0, 1, 50)
    >>> model = bl.GP(kernel="squared_exponential", lengthscale=0.2, signal_std=1.0, noise_std=0.5)
    >>> gain = bl.papers.largest_information_gain(x, 1000, model)
    >>> pending = bl.papers.largest_information_gain(x, 3, model)
    >>> settings = {"noise_std": 0.5, "n_points": 50}
    >>> round(bl.papers.simple_regret_bound(1000, gain, **settings), 2)
    1.02
    >>> round(bl.papers.simple_regret_bound(1000, gain, pending_information=pending, **settings), 1)
    11.4
    """
    n = _number("n_trials", n_trials, 1.0, or_least=True)
    psi = _number("information", information, 0.0, or_least=True)
    unit = _number("signal_std", signal_std, 0.0)
    lambda_ = (_number("noise_std", noise_std, 0.0) / unit) ** 2
    xi = math.exp(2.0 * _number("pending_information", pending_information, 0.0, or_least=True))
    c_1 = math.sqrt(2.0 * math.pi) / 12.0
    if n_points is not None:
        beta = 2.0 * math.log(n**2 * _number("n_points", n_points, 1.0, or_least=True))
    elif n_dimensions is not None and slopes is not None:
        d = _number("n_dimensions", n_dimensions, 1.0, or_least=True)
        a, b = (_number("slopes", each, 0.0) for each in slopes)
        # A grid has at least one point along each dimension.
        beta = 4.0 * (d + 1.0) * math.log(n) + 2.0 * d * math.log(max(d * a * b / unit * math.sqrt(math.pi), 1.0))
        c_1 += math.pi**2 / 6.0
    else:
        raise InvalidSetting("n_points=None is not usable: pass the number of points, or n_dimensions and slopes")
    return unit * (c_1 / n + math.sqrt(2.0 / math.log1p(1.0 / lambda_) * xi * beta * psi / n))


# The number of levels after which `levels_within` gives up.
_MOST_LEVELS = 10_000_000


def levels_within(budget: float, cost: Callable[[Any], Any], *, full_cost: float = 1.0) -> int:
    """Return H of Wang et al. (2022), Table 3: the number of levels of a tree whose evaluations fit into a budget.

    H is the largest number for which the costs of the levels h = 1, …, H, min(cost(h), full_cost), add up to at most
    the budget. A tree search with a fidelity makes at least H + 1 evaluations with this budget (Lemma 2 of the paper),
    so H takes the place of the number of evaluations in the bounds on its regret. The closed forms of the paper's table
    bound the minimum by the mean of its arguments, and are not used.

    Parameters
    ----------
    budget : float
        The total cost, in the unit of the costs.
    cost : callable
        Returns the costs of an array of levels. The models of the table are ``lambda h: beta * h`` (linear),
        ``lambda h: beta + 0 * h`` (constant), ``lambda h: h**-beta`` (polynomial) and ``lambda h: beta**-h``
        (exponential).
    full_cost : float, default 1.0
        The cost of an evaluation at the highest fidelity.

    Returns
    -------
    int
        The number of levels.

    Raises
    ------
    InvalidSetting
        A number is out of its range, a cost is negative or NaN, or 10,000,000 levels fit into the budget.

    Examples
    --------
    >>> from belated.papers import levels_within
    >>> levels_within(6.0, lambda h: 0.1 * h)  # 0.1 + 0.2 + … + 1 = 5.5, and deeper levels cost 1
    10
    """
    left = _number("budget", budget, 0.0, or_least=True)
    full = _number("full_cost", full_cost, 0.0)
    slack = 1e-9 * left  # so that rounding errors of the sum do not remove the last level
    start = 1
    while start <= _MOST_LEVELS:
        # The levels from `start` to twice `start`, but at least a thousand.
        h = np.arange(start, start + max(start, 1000), dtype=float)
        with np.errstate(over="ignore"):
            costs = np.broadcast_to(np.asarray(cost(h), dtype=float), h.shape)
        if not (costs >= 0).all():
            raise InvalidSetting(f"cost={short_repr(cost)} is not usable: pass a function whose values are numbers ≥ 0")
        total = np.cumsum(np.minimum(costs, full))
        if total[-1] > left + slack:
            return start - 1 + int(np.searchsorted(total, left + slack, side="right"))
        left -= float(total[-1])
        start += len(h)
    raise InvalidSetting(
        f"budget={short_repr(budget)} is not usable: {_MOST_LEVELS:,} levels fit into it; pass a smaller budget"
    )
