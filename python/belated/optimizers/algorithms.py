"""The literature's names for algorithms, and the settings that they stand for."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from belated._core import InvalidSetting
from belated.optimizers.life_cycle import Optimizer, SpaceLike
from belated.optimizers.bayes import BayesOpt
from belated.optimizers.random_search import RandomSearch

_VERMA = "Verma, Dai & Low 2022, Bayesian optimization under stochastic delayed feedback"
_KANDASAMY = "Kandasamy et al. 2017, Asynchronous parallel Bayesian optimisation via Thompson sampling"
_SRINIVAS = "Srinivas et al. 2010, Gaussian process optimization in the bandit setting"
_DESAUTELS = "Desautels, Krause & Burdick 2014, Parallelizing exploration-exploitation tradeoffs"
_JONES = "Jones, Schonlau & Welch 1998, Efficient global optimization of expensive black-box functions"


@dataclass(frozen=True)
class _Algorithm:
    """An optimizer, the settings that make it this algorithm, and those its paper merely uses."""

    paper: str
    optimizer: type[Optimizer] = BayesOpt
    essence: Mapping[str, Any] = field(default_factory=dict)
    habits: Mapping[str, Any] = field(default_factory=dict)


def _gaussian(paper: str, acquisition: str, pending: str, **habits: Any) -> _Algorithm:
    return _Algorithm(paper, BayesOpt, {"acquisition": acquisition, "pending": pending}, habits)


# The experiments of Verma et al. give all their methods the same kernel, and UCB the width beta_t = 1.
_ALGORITHMS = {
    "GP-UCB-SDF": _gaussian(_VERMA, "ucb", "censor", kernel="squared_exponential", beta=1.0),
    "GP-TS-SDF": _gaussian(_VERMA, "thompson", "censor", kernel="squared_exponential", beta=1.0),
    "GP-UCB": _gaussian(_SRINIVAS, "ucb", "ignore", kernel="squared_exponential", beta=1.0),
    "asy-TS": _gaussian(_KANDASAMY, "thompson", "ignore", kernel="squared_exponential"),
    "GP-BUCB": _gaussian(_DESAUTELS, "ucb", "hallucinate", kernel="squared_exponential", beta=1.0),
    "GP-BTS": _gaussian(_VERMA, "thompson", "hallucinate", kernel="squared_exponential"),
    "GP-EI": _gaussian(_JONES, "log_ei", "ignore"),
    "asyRAND": _Algorithm(_KANDASAMY, RandomSearch),
}


def algorithms() -> dict[str, str]:
    """The names that `algorithm` knows, each with the paper to cite.

    Examples
    --------
    >>> import belated as bl
    >>> "GP-UCB-SDF" in bl.algorithms()
    True
    """
    return {name: known.paper for name, known in _ALGORITHMS.items()}


def algorithm(name: str, space: SpaceLike | None = None, **kwargs: Any) -> Optimizer:
    """An optimizer by its name in the literature.

    Parameters
    ----------
    name : str
        One of `algorithms`.
    space : mapping, optional
        The search space; or pass ``candidates=``.
    **kwargs
        Further arguments of the optimizer, such as window and seed. They may replace what the paper happens
        to use (its kernel, say), but not what makes the algorithm: acquisition and pending.

    Returns
    -------
    Optimizer

    Raises
    ------
    InvalidSetting
        An unknown name, an unknown argument, or one that would make it another algorithm.

    Examples
    --------
    >>> import belated as bl
    >>> bl.algorithm("GP-EI", {"x": (0.0, 1.0)}, seed=0)
    BayesOpt(space={'x': (0.0, 1.0)}, seed=0, pending='ignore')
    """
    known = _ALGORITHMS.get(name) if isinstance(name, str) else None
    if known is None:
        raise InvalidSetting(f"name={name!r} is not an algorithm: {_suggestion(str(name))}")
    for setting, value in known.essence.items():
        if kwargs.get(setting, value) != value:
            raise InvalidSetting(
                f"{setting}={kwargs[setting]!r} would not be {name}, which has {value!r}: "
                f"leave it out, or use {known.optimizer.__name__}"
            )
    arguments = [each.name for each in fields(known.optimizer)]
    unknown = [argument for argument in kwargs if argument not in arguments]
    if unknown:
        raise InvalidSetting(f"{unknown} are no arguments of {name}: it has {arguments}")
    return known.optimizer(space, **{**known.habits, **known.essence, **kwargs})


def _suggestion(name: str) -> str:
    by_lower = {known.lower(): known for known in _ALGORITHMS}
    near = [by_lower[match] for match in difflib.get_close_matches(name.lower(), by_lower, n=3)]
    return f"did you mean {' or '.join(near)}?" if near else f"pass one of {list(_ALGORITHMS)}"
