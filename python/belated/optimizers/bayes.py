"""The optimizers: what each is called, which settings it has, and how its core is made."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from reprlib import repr as short_repr
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from belated import _core
from belated._core import InvalidSetting
from belated.space.arguments import finite, is_list, whole_number
from belated.optimizers.life_cycle import NotFitted, Optimizer


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _switch(value: Any) -> bool | None:
    return bool(value) if isinstance(value, (bool, np.bool_)) else None


def _number_or_text(value: Any) -> float | str | None:
    return value if isinstance(value, str) else finite(value)


def _number_or_row(value: Any) -> float | NDArray[np.float64] | None:
    if not is_list(value):
        return finite(value)
    numbers = [finite(entry) for entry in value]
    return np.array([n for n in numbers if n is not None]) if numbers and None not in numbers else None


def _count(value: Any) -> int | None:
    number = whole_number(value)
    return number if number is not None and number >= 0 else None


def _theta(value: Any) -> tuple[float, ...] | None:
    if not is_list(value) or len(value) != 3:
        return None
    theta = tuple(number for number in map(finite, value) if number is not None)
    return theta if len(theta) == 3 else None


# What each setting of BayesOpt is converted by, and what to say where that gives None.
# Which strings and which ranges are allowed, the core knows and checks.
_SETTINGS: dict[str, tuple[Callable[[Any], Any], str]] = {
    **dict.fromkeys(
        ("acquisition", "pending", "late", "kernel", "refit_clock", "fit_rows", "initial")
        + ("targets", "thompson", "maximizer"),
        (_text, "a string"),
    ),
    **dict.fromkeys(
        ("window", "floor", "variance", "noise", "rkhs_bound", "delta"), (finite, "a finite number or None")
    ),
    **dict.fromkeys(("ard", "priors", "predictive_std", "scale_draws"), (_switch, "True or False")),
    **dict.fromkeys(
        ("n_initial", "n_restarts", "refit_every", "n_features", "n_raw", "n_starts", "n_nearest", "n_fantasies"),
        (_count, "an integer >= 0"),
    ),
    **dict.fromkeys(("beta", "mean", "lie"), (_number_or_text, "a finite number or a string")),
    "lengthscale": (_number_or_row, "a finite number, one for each encoded column, or None"),
    "initial_theta": (_theta, "(lengthscale, variance, noise) or None"),
}


@dataclass(eq=False, repr=False)
class BayesOpt(Optimizer):
    """Bayesian optimisation with a Gaussian process that knows which results are still to come.

    Parameters
    ----------
    space, candidates, context, clock, direction, seed, time
        As for `RandomSearch`.
    acquisition : {"log_ei", "ucb", "thompson", "max_variance"}
        What is maximised to choose a point: log expected improvement, the upper confidence bound, a posterior draw,
        or the posterior variance, which explores and does nothing else.
    pending : {"integrate", "hallucinate", "ignore", "censor", "liar", "nearest"}, optional
        What a trial without a result means to the model: all values it may take, over which "log_ei" is averaged
        (and over those of the points observed best, as these are known up to noise only); its predicted mean; nothing;
        the floor; one value for all (`lie`); or the mean of the predictions at the observed points nearest to it.
        None: "integrate" with "log_ei", "hallucinate" with the others.
    lie : {"mean", "min", "max"} or float
        For "liar": which of the observed values, or a value in your units.
    n_nearest : int
        For "nearest": how many points.
    n_fantasies : int
        For "integrate": how many values, spread evenly over what the model expects.
    window : float, optional
        How long a pending trial counts as arriving, in units of the clock; None: for ever.
        Twice the expected delay is a good choice; larger is safe, small is harmful.
    floor : float, optional
        For "censor": the worst value that f can take, in your units; None: the worst observed.
    late : {"accept", "discard"}
        Whether a value that comes after the window is used, or the trial stays at the floor for good
        ("discard" needs "censor" and a window).
    beta : float, "kandasamy" or "theory"
        Standard deviations above the mean in "ucb", and what draws are widened by under "censor". "kandasamy" is
        sqrt(0.2 d log(2j + 1)) at suggestion j. "theory" is B + R sqrt(2 (gamma + 1 + log(1/delta))), under "censor"
        B + (R + 1) sqrt(2 (gamma + 1 + log(2/delta))), in the model's units: B is `rkhs_bound`, R the noise's standard
        deviation and gamma the maximum information gain, bounded from above by what greedy choices gain. It holds with
        probability 1 - delta and is far too wide for practice.
    rkhs_bound, delta : float
        For ``beta="theory"``.
    kernel : {"auto", "matern52", "matern32", "matern12", "squared_exponential", "linear"}
        "auto" takes "matern52", or at fits where it explains the observations clearly better "squared_exponential".
    ard : bool
        One lengthscale for each encoded column, or one for all.
    lengthscale : float or sequence of shape (columns of x, then of context), optional
        In encoded units (see `Space`); None: fitted. The same goes for the next two.
    variance : float, optional
        Signal variance, in units of the targets.
    noise : float, optional
        Noise *variance*, in units of the targets.
    priors : bool
        Fit with priors that scale with dimension, or by maximum likelihood.
    n_restarts : int
        Starts of a fit besides the last result.
    refit_every : int
        Fit again after this many new observations: earlier while there are few, later (5 %) when there are many.
    refit_clock : {"observations", "trials"}
        "trials": fit whenever refit_every divides the number of trials instead.
    fit_rows : {"policy", "observed", "all"}
        Rows that are fitted to: those the pending policy calls for, those with values, or every row.
    initial_theta : tuple (lengthscale, variance, noise), optional
        Start of the first fit.
    n_initial : int, optional
        Suggestions before the model takes over; None lets the core choose by dimension.
    initial : {"quasi_random", "uniform"}
    mean : "auto", "estimated", "zero", "median" or float
        Prior mean, a number in your units. "zero", after rescaling: the mean of the observed, or the floor under
        "censor". "estimated": a constant fitted with the hyperparameters; as "zero" under "censor" and for raw targets.
        "auto": estimated from five encoded columns on, else zero.
    targets : {"standardized", "raw"}
        Whether values are rescaled before the model sees them.
    predictive_std : bool
        Count the noise in the standard deviations of the acquisition.
    scale_draws : bool
        Widen draws of "thompson" under "censor" as GP-TS-SDF prescribes.
    thompson : {"pathwise", "weight_space"}
        How functions are drawn; "weight_space" in a space only.
    n_features : int
        Random features of a draw.
    maximizer : {"default", "multistart"}
        How the acquisition is maximised in a space; "multistart" takes the best of n_raw uniform points and
        of L-BFGS-B runs from n_starts others.
    n_raw, n_starts : int, optional

    Raises
    ------
    InvalidSpace
        A space, candidates or context that cannot be searched.
    InvalidSetting
        Any other argument that is not usable.

    Examples
    --------
    >>> import belated as bl
    >>> optimizer = bl.BayesOpt({"x": (-2.0, 2.0)}, seed=0)
    >>> for _ in range(15):
    ...     trial = optimizer.suggest()
    ...     trial.observe(-((trial.params["x"] - 1) ** 2))
    >>> abs(optimizer.best_params_["x"] - 1) < 0.1
    True
    """

    _: KW_ONLY
    acquisition: Literal["log_ei", "ucb", "thompson", "max_variance"] = "log_ei"
    pending: Literal["integrate", "hallucinate", "ignore", "censor", "liar", "nearest"] | None = None
    lie: float | Literal["mean", "min", "max"] = "mean"
    n_nearest: int = 3
    n_fantasies: int = 32
    window: float | None = None
    floor: float | None = None
    late: Literal["accept", "discard"] = "accept"
    beta: float | Literal["kandasamy", "theory"] = 1.0
    rkhs_bound: float = 1.0
    delta: float = 0.1
    kernel: Literal["auto", "matern52", "matern32", "matern12", "squared_exponential", "linear"] = "auto"
    ard: bool = True
    lengthscale: float | Sequence[float] | NDArray[np.float64] | None = None
    variance: float | None = None
    noise: float | None = None
    priors: bool = True
    n_restarts: int = 4
    refit_every: int = 10
    refit_clock: Literal["observations", "trials"] = "observations"
    fit_rows: Literal["policy", "observed", "all"] = "policy"
    initial_theta: tuple[float, float, float] | None = None
    n_initial: int | None = None
    initial: Literal["quasi_random", "uniform"] = "quasi_random"
    mean: float | Literal["auto", "estimated", "zero", "median"] = "auto"
    targets: Literal["standardized", "raw"] = "standardized"
    predictive_std: bool = False
    scale_draws: bool = True
    thompson: Literal["pathwise", "weight_space"] = "pathwise"
    n_features: int = 1024
    maximizer: Literal["default", "multistart"] = "default"
    n_raw: int | None = None
    n_starts: int | None = None

    def _start(self, domain: _core.Domain, context_width: int) -> _core.Optimizer:
        settings: dict[str, Any] = {}
        for name, (convert, expected) in _SETTINGS.items():
            value = getattr(self, name)
            if value is not None:
                settings[name] = convert(value)
                if settings[name] is None:
                    raise InvalidSetting(f"{name}={short_repr(value)} is not usable: pass {expected}")
        # These are values of f, and so turn around with it.
        for name in ("floor", "mean", "lie"):
            if isinstance(settings.get(name), float):
                settings[name] = self._oriented(settings[name])
        if self.direction == "minimize":
            settings["lie"] = {"min": "max", "max": "min"}.get(settings["lie"], settings["lie"])
        return _core.Optimizer.bayes_opt(domain, context_width, self.clock, self.seed_, settings)

    def predict(
        self, params: Any = None, context: Mapping[str, Any] | None = None, *, pending: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The model's mean and standard deviation of f, in your units.

        Parameters
        ----------
        params : list of mappings or DataFrame; for candidates rows (n, d) or indices (n,)
            Where to predict; for candidates None means all of them.
        context : mapping, optional
            One context for all points, where a context was declared.
        pending : bool, default False
            Count what the pending policy makes of trials without a result, as the next suggestion would.

        Returns
        -------
        mean, std : ndarray of shape (n,)
            Without observation noise.

        Raises
        ------
        NotFitted
            Nothing has been fitted: it happens inside `suggest`, after the initial design.
        InvalidPoint, InvalidContext
            A point or context that does not belong to its space.
        """
        encoded = self._encode_context(context)
        points = self.domain_.points(params)
        surrogate = self._core.surrogate(self._now(), bool(pending))
        if surrogate is None:
            raise NotFitted("predict needs a model: observe the initial trials, then suggest once more")
        model, center, scale = surrogate
        if encoded is not None:
            points = np.hstack([points, np.tile(encoded, (len(points), 1))])
        mean, std = model.predict(points)
        return self._oriented(center + scale * mean), scale * std
