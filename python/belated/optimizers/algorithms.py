"""Names of algorithms in the literature, and the settings of each algorithm."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from belated._core import InvalidSetting
from belated.optimizers.bayes import BayesOpt
from belated.optimizers.bpe import BPEDelay
from belated.optimizers.optimizer import Optimizer, with_nested
from belated.optimizers.problem import SpaceLike
from belated.optimizers.random_search import RandomSearch
from belated.optimizers.tree import TreeSearch
from belated.optimizers.values import family_of
from belated.short_repr import short_repr
from belated.space.arguments import arguments_of, unknown_argument

_VERMA = "Verma, Dai & Low 2022, Bayesian optimization under stochastic delayed feedback"
_KANDASAMY = "Kandasamy et al. 2017, Asynchronous parallel Bayesian optimisation via Thompson sampling"
_SRINIVAS = "Srinivas et al. 2010, Gaussian process optimization in the bandit setting"
_DESAUTELS = "Desautels, Krause & Burdick 2014, Parallelizing exploration-exploitation tradeoffs"
_CHOWDHURY = "Chowdhury & Gopalan 2019, On batch Bayesian optimization"
_CONTAL = "Contal et al. 2013, Parallel Gaussian process optimization with upper confidence bound and pure exploration"
_VAKILI = "Vakili, Ahmed, Bernacchia & Pike-Burke 2023, Delayed feedback in kernel bandits"
_LI = "Li & Scarlett 2022, Gaussian process bandit optimization with few batches"
_WANG = "Wang et al. 2022, Procrastinated tree search"
_BUBECK = "Bubeck, Munos, Stoltz & Szepesvari 2011, X-armed bandits"
_GRILL = "Grill, Valko & Munos 2015, Black-box optimization of noisy functions with unknown smoothness"
_SEN = "Sen, Kandasamy & Shakkottai 2018, Multi-fidelity black-box optimization with hierarchical partitions"
_GONZALEZ = "González, Dai, Hennig & Lawrence 2016, Batch Bayesian optimization via local penalization"
_ALVI = "Alvi et al. 2019, Asynchronous batch Bayesian optimisation with improved local penalisation"
_DE_ATH = "De Ath, Everson & Fieldsend 2021, Asynchronous epsilon-greedy Bayesian optimisation"
_JONES = "Jones, Schonlau & Welch 1998, Efficient global optimization of expensive black-box functions"


_SMOOTHNESS = (
    "f varies by at most nu*rho**h in a cell of depth h{largest}; nu=1, rho=0.95 in Wang et al. 2022, nu=2*L*sqrt(d), "
    "rho=0.5**(1/d) for a slope of at most L in the unit cube (Bubeck et al. 2011)"
)
# Arguments that some algorithms require, each with its meaning.
_NEEDED = {
    "window": 'a trial stays at the floor if its result comes later; pass twice the expected delay, or "auto"',
    "fidelity": "large cells are evaluated at low fidelity; pass bl.Fidelity(low, high, cost=…)",
    "nu": _SMOOTHNESS,
    "rho": _SMOOTHNESS,
    "bound__range": "the width of the range of the values, 1 in the papers",
    "bound__b": "a bound on the values, which are at least 0; 5 in Wang et al. 2022",
    "bound__noise_std": "the standard deviation of the noise, in units of f",
    "horizon": "the number of values of rho follows from the total number of trials; pass this number",
}


class _Algorithm(NamedTuple):
    """An algorithm of a paper: its optimizer, the settings that define it, and the paper's other settings."""

    paper: str
    optimizer: type[Optimizer] = BayesOpt
    # Argument → string: the settings that define the algorithm, which the user cannot replace.
    essence: Mapping[str, str] = {}
    # Nested name → value: the other settings of the paper, which the user can replace by arguments of `algorithm`.
    defaults: Mapping[str, Any] = {}
    # The required arguments, as keys of `_NEEDED`.
    needs: tuple[str, ...] = ()


# The papers rescale the values, but do not warp the parameters.
_RESCALED = {"surrogate__targets": "standardized", "surrogate__inputs": "plain"}


def _bayes_opt(paper: str, acquisition: str, pending: str, *defaults: Mapping[str, Any]) -> _Algorithm:
    merged = _RESCALED | {name: value for each in defaults for name, value in each.items()}
    needs = ("window",) if _DISCARD in defaults else ()
    return _Algorithm(paper, BayesOpt, {"acquisition": acquisition, "pending": pending}, merged, needs)


# The constant of each bound of a tree search. In the theorems, this constant, nu and rho do not depend on the observed
# values. Shares of these values shrink while the search stays at a local maximum.
_CONSTANTS = {"ducb1": "bound__range", "ducb1_sigma": "bound__noise_std", "ducbv": "bound__b"}


def _tree(paper: str, bound: str, *needs: str) -> _Algorithm:
    # In the papers, every suggestion is chosen by the upper bounds.
    needs = ("nu", "rho", _CONSTANTS[bound], *needs)
    return _Algorithm(paper, TreeSearch, {"bound": bound}, {"front": False}, needs)


# The experiments of Verma et al. use the same kernel for all methods, and beta_t = 1 for UCB. If a result arrives after
# the window, the value of the trial remains the floor: y~_{s,t} = y_s 1{d_s <= min(m, t - s)}.
_SE = {"surrogate__kernel": "squared_exponential"}
_BETA = {"acquisition__beta": 1.0}
_DISCARD = {"pending__late": "discard"}
# The papers allow an algorithm to choose a point that is already in flight.
_REPEATS = {"pending__repeats": True}
# The experiments of Kandasamy et al. use the same model for all methods (appendix C.1). The initial points are random
# (the paper does not give their number), the prior mean is the median, and the model is fitted every 25 iterations. UCB
# has beta_j = 0.2 d log(2j + 1). The names "syn…" and "asy…" fix the pending policy; the caller decides whether the run
# is synchronous.
_WORKERS = _SE | {"surrogate__mean": "median", "surrogate__refit_every": 25, "initial__how": "uniform"}
_SCHEDULE = {"acquisition__beta": "kandasamy"}
# Searching for the maximum of a draw with a quarter of the default effort takes a third of the time: 10 ms at n = 360
# and d = 6.
_QUICK = {"search__effort": 0.25}

# The settings in the experiments of Vakili et al., in whose code bounds are sqrt(6) standard deviations wide.
_BPE = {"kernel": "squared_exponential", "beta": math.sqrt(6.0), "theory__delta": 0.01}
_EI = {"acquisition__incumbent": "best_value"}
# Local penalties are defined for any positive acquisition; the bound is the default of both names.
_PENALIZED = _RESCALED | {"surrogate__kernel": "matern52", "acquisition": "ucb"}

_ALGORITHMS = {
    "GP-UCB-SDF": _bayes_opt(_VERMA, "ucb", "censor", _SE, _BETA, _DISCARD, _REPEATS),
    "GP-TS-SDF": _bayes_opt(_VERMA, "thompson", "censor", _SE, _BETA, _DISCARD, _REPEATS),
    "GP-UCB": _bayes_opt(_SRINIVAS, "ucb", "ignore", _SE, _BETA),
    "asy-TS": _bayes_opt(_KANDASAMY, "thompson", "ignore", _SE),
    "GP-BUCB": _bayes_opt(_DESAUTELS, "ucb", "hallucinate", _SE, _BETA, _REPEATS),
    "GP-BTS": _bayes_opt(_CHOWDHURY, "thompson", "hallucinate", _SE, _REPEATS),
    "GP-EI": _bayes_opt(_JONES, "log_ei", "ignore", _EI),
    "seqTS": _bayes_opt(_KANDASAMY, "thompson", "ignore", _WORKERS, _QUICK),
    "synTS": _bayes_opt(_KANDASAMY, "thompson", "ignore", _WORKERS, _QUICK),
    "asyTS": _bayes_opt(_KANDASAMY, "thompson", "ignore", _WORKERS, _QUICK),
    "asyHTS": _bayes_opt(_KANDASAMY, "thompson", "hallucinate", _WORKERS, _QUICK, _REPEATS),
    "asyUCB": _bayes_opt(_KANDASAMY, "ucb", "ignore", _WORKERS, _SCHEDULE),
    "asyHUCB": _bayes_opt(_KANDASAMY, "ucb", "hallucinate", _WORKERS, _SCHEDULE, _REPEATS),
    "asyEI": _bayes_opt(_KANDASAMY, "log_ei", "ignore", _WORKERS, _EI),
    "synBUCB": _bayes_opt(
        _DESAUTELS, "ucb", "hallucinate", _WORKERS, _SCHEDULE, {"acquisition__per_batch": True}, _REPEATS
    ),
    "synUCBPE": _bayes_opt(_CONTAL, "ucb_pe", "hallucinate", _WORKERS, _SCHEDULE, _REPEATS),
    "LP": _Algorithm(_GONZALEZ, BayesOpt, {"pending": "local_penalization"}, _PENALIZED),
    "PLAyBOOK": _Algorithm(_ALVI, BayesOpt, {"pending": "playbook"}, _PENALIZED),
    "AEGiS": _bayes_opt(_DE_ATH, "aegis", "ignore", {"surrogate__kernel": "matern52"}),
    "asyRAND": _Algorithm(_KANDASAMY, RandomSearch),
    "synRAND": _Algorithm(_KANDASAMY, RandomSearch),
    "BPE-Delay": _Algorithm(_VAKILI, BPEDelay, defaults=_BPE),
    "BPE": _Algorithm(_LI, BPEDelay, {"delay": "none"}, _BPE),
    "PCTS-DUCB1": _tree(_WANG, "ducb1"),
    "PCTS-DUCB1-sigma": _tree(_WANG, "ducb1_sigma"),
    "PCTS-DUCBV": _tree(_WANG, "ducbv"),
    "HOO": _tree(_BUBECK, "ducb1"),
    "POO": _tree(_GRILL, "ducb1", "horizon"),
    "MFHOO": _tree(_SEN, "ducb1", "fidelity"),
    "MFPOO": _tree(_SEN, "ducb1", "fidelity", "horizon"),
    "MFPOO-UCB1-sigma": _tree(_SEN, "ducb1_sigma", "fidelity", "horizon"),
    "MFPOO-UCBV": _tree(_SEN, "ducbv", "fidelity", "horizon"),
}


def _is_missing(argument: str, given: Mapping[str, Any]) -> bool:
    """Return whether a required argument is not given, neither by its name nor as a field of a setting."""
    setting, _, field = argument.partition("__")
    if argument in given:
        return given[argument] is None
    return not field or getattr(given.get(setting), field, None) is None


def _advice(name: str, known: _Algorithm, missing: Sequence[str]) -> str:
    """Return the message that names all missing arguments, with the values of the papers."""
    largest = " (several values of rho are tried, and these are the largest)" if "horizon" in known.needs else ""
    meanings: dict[str, list[str]] = {}
    for argument in missing:
        meanings.setdefault(_NEEDED[argument].format(largest=largest), []).append(argument)
    described = "; ".join(f"{' and '.join(names)}: {meaning}" for meaning, names in meanings.items())
    are, them = ("is", "it") if len(missing) == 1 else ("are", "them")
    return f"{', '.join(missing)} {are} missing: {name} requires {them}. {described}"


def algorithms() -> dict[str, str]:
    """Return a dict from each name that `algorithm` accepts to the paper to cite.

    Examples
    --------
    >>> import belated as bl
    >>> "GP-UCB-SDF" in bl.algorithms()
    True
    """
    return {name: known.paper for name, known in _ALGORITHMS.items()}


def algorithm(name: str, space: SpaceLike | None = None, **kwargs: Any) -> Optimizer:
    """Return an optimizer by its name in the literature.

    Parameters
    ----------
    name : str
        A key of `algorithms()`, in upper or lower case.
    space : mapping, optional
        The search space. Pass ``candidates=`` instead to search a finite set.
    **kwargs
        Further arguments of the optimizer, such as window and seed, and nested names of fields, such as
        ``acquisition__beta=2.0``. These arguments replace settings of the algorithm's paper, for example the kernel, or
        the rule that values which arrive after the window are discarded. The kind of acquisition and the kind of
        pending policy define the algorithm and cannot be replaced. A whole value, such as ``surrogate=bl.GP()``,
        replaces all settings of the paper for this argument.

    Returns
    -------
    Optimizer

    Raises
    ------
    InvalidSetting
        The name or an argument is unknown, an argument contradicts the definition of the algorithm, or a required
        argument is missing. For example, GP-UCB-SDF requires a window, and HOO requires nu, rho and ``bound__range``.

    Examples
    --------
    >>> import belated as bl
    >>> bl.algorithm("GP-EI", {"x": (0.0, 1.0)}, seed=0).acquisition
    LogEI(incumbent='best_value')
    """
    by_lower = {known.lower(): known for known in _ALGORITHMS}
    known = _ALGORITHMS.get(by_lower.get(str(name).lower(), ""))
    if known is None:
        from belated.hints import method_advice

        near = [by_lower[match] for match in difflib.get_close_matches(str(name).lower(), by_lower, n=3)]
        similar = f"did you mean {' or '.join(near)}?" if near else f"pass one of {list(_ALGORITHMS)}"
        raise InvalidSetting(f"name={short_repr(name)} is not an algorithm: {method_advice(name) or similar}")
    made = known.optimizer
    for argument, given in kwargs.items():
        if argument.partition("__")[0] not in {*arguments_of(made, private=True), *made._lacks}:
            raise unknown_argument(argument, given, f"an argument of {name}", made, nested=True)
    if kwargs.get("outcomes") is not None:
        raise InvalidSetting(f"{name} is defined for one value: leave outcomes out, or use BayesOpt")
    for argument, kind in known.essence.items():
        given, wanted = kwargs.get(argument, kind), family_of(made, argument).shorthand[kind]
        if given != kind and type(given) is not wanted:
            raise InvalidSetting(
                f"{argument}={short_repr(given)} differs from {name}, which has {kind!r}: "
                f"leave it out, or use {made.__name__}"
            )
    missing = [argument for argument in known.needs if _is_missing(argument, kwargs)]
    if missing:
        raise InvalidSetting(_advice(name, known, missing))
    # If the user passes a whole value for an argument, the paper's settings for this argument are not used.
    whole = {argument for argument, given in kwargs.items() if not isinstance(given, str)}
    defaults = {path: value for path, value in known.defaults.items() if path.partition("__")[0] not in whole}
    return made(**with_nested(made, {"space": space}, {**known.essence, **defaults, **kwargs}))
