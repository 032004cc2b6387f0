"""Bayesian optimisation."""

from dataclasses import KW_ONLY, InitVar, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from belated._core import InvalidSetting
from belated.optimizers import settings
from belated.optimizers.optimizer import Optimizer
from belated.space.arguments import as_timedelta


@dataclass(eq=False, repr=False)
class BayesOpt(Optimizer, strategy="BayesOpt", lacks=("fidelity",)):
    """Bayesian optimisation with a Gaussian process that accounts for pending trials.

    The model uses the values of finished trials and the curves of running and stopped trials.

    Parameters
    ----------
    space, context, candidates, constraints, clock, direction, seed, time, curve, stopping, outcomes
        As for `RandomSearch`.
    acquisition : LogEI, UCB, ThompsonSampling, MaxVariance, UCBPE, AEGiS or str, default "log_ei"
        The function that is maximised to choose a point. A string ("log_ei", "ucb", "thompson", "max_variance",
        "ucb_pe" or "aegis") denotes the value of this name with its defaults.
    pending : Integrate, Hallucinate, Ignore, Censor, Liar, Nearest, LocalPenalization, PLAyBOOK or str, optional
        How the model treats trials that do not have a result yet. A string ("integrate", "hallucinate", "ignore",
        "censor", "liar", "nearest", "local_penalization" or "playbook") denotes the value of this name with its
        defaults. Default None: `Integrate` with `LogEI`, `Hallucinate` with other acquisitions.
        ``get_params()["pending"]`` returns this argument; the attribute `pending` is the list of pending trials, as for
        every optimizer.
    surrogate : GP or str, default "gp"
        The model of f.
    initial : Initial or int, optional
        The suggestions before the model is used; a number n means ``Initial(n)``. Default None: ``Initial()``, which
        suggests twice as many points as there are parameters, but at least 4 and at most 10.
    window : float, timedelta or "auto", optional
        The result of a pending trial is expected for at most this time, in units of the clock; a timedelta requires
        ``clock="seconds"``. Twice the expected delay is a good choice. A window that is too large is safe, but a window
        that is too small is harmful. "auto", which requires `Censor`, is the time within which 99.5 % of the results
        arrive, estimated from the delays so far; see `window_`. Default None: results are expected without a time
        limit. Once 20 results have arrived, a number below the 25 % quantile of their delays gives a `BelatedWarning`.
    search : Search, optional
        The search for the maximum of the acquisition. Default None: ``Search()``.
    repeats : bool, default True
        Whether a point may be suggested again while others have not been observed. Pass False if every candidate is a
        sample that exists once: a point that was observed or has failed is then suggested again only after all points
        have been (with contexts, all in this context). The argument is for candidates and spaces without continuous
        parameters; elsewhere it has no effect.

    Raises
    ------
    InvalidSpace
        The space, the candidates or the context cannot be searched.
    InvalidSetting
        Another argument is invalid.

    Notes
    -----
    If parameters depend on a category (``when=``), its choices with the same active parameters are a branch. After the
    initial points, a point of an open branch is suggested if the branch has fewer than 0.6 n c / C trials, where n is
    the number of trials in all open branches, and c of their C choices belong to this branch. The branch of the best
    value is open. Another branch is open if at most half of its results are failures, stopped trials or values beyond a
    bound, and if it has fewer than two values or y1 + 3 (y1 - y2) is at least the best value, where y1 and y2 are its
    two largest values (Robson and Whitlock 1964). The rule does not apply to a category that depends on other
    parameters. It is not used with a context, several objectives, or constraints that are functions.

    With several objectives, the acquisition is the logarithm of the expected improvement of the hypervolume (Daulton et
    al. 2021; Ament et al. 2023). It is averaged over fantasies of all objectives at the trials of which any outcome is
    missing, so a trial of which one objective is known counts with its value. The acquisition is `LogEI` and the policy
    for pending trials is `Integrate`; the other acquisitions and policies are refused.

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
    acquisition: settings.Acquisition | settings.AcquisitionName = "log_ei"
    if TYPE_CHECKING:  # the attribute `pending` is the list of pending trials
        pending: InitVar[settings.PendingPolicy | settings.PendingName | None] = None
    else:
        pending: settings.PendingPolicy | settings.PendingName | None = None
    surrogate: settings.GP | Literal["gp"] = "gp"
    initial: settings.Initial | int | None = None
    window: float | timedelta | Literal["auto"] | None = None
    search: settings.Search | None = None
    repeats: bool = True

    _has_model = True

    def _settings(self) -> dict[str, Any]:
        if isinstance(as_timedelta(self.window), timedelta) and self.clock == "iterations":
            raise InvalidSetting(f"window={self.window!r} needs clock='seconds': pass it, or a number of suggestions")
        return super()._settings()


# Remove the default of the argument `pending`, because it hides the property `pending` of the base class.
del BayesOpt.pending
