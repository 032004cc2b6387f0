"""Black-box optimisation when results come late, out of order, or never."""

from belated._core import (
    AlreadyObserved,
    BelatedError,
    BelatedWarning,
    InvalidContext,
    InvalidPoint,
    InvalidSetting,
    InvalidSpace,
    InvalidValue,
    NumericalError,
    UnknownTrial,
    __version__,
)
from belated.optimizers.algorithms import algorithm, algorithms
from belated.optimizers.bayes import BayesOpt
from belated.optimizers.life_cycle import NotFitted, Optimizer
from belated.optimizers.random_search import RandomSearch
from belated.optimizers.trial import Trial
from belated.run import Result, RunError, StopRun, maximize, minimize
from belated.space.dimensions import Categorical, Integer, Real
from belated.space.space import Space
from belated.store import StoreError
from belated.study.study import Study

__all__ = [
    "AlreadyObserved",
    "BayesOpt",
    "BelatedError",
    "BelatedWarning",
    "Categorical",
    "Integer",
    "InvalidContext",
    "InvalidPoint",
    "InvalidSetting",
    "InvalidSpace",
    "InvalidValue",
    "NotFitted",
    "NumericalError",
    "Optimizer",
    "RandomSearch",
    "Real",
    "Result",
    "RunError",
    "Space",
    "StopRun",
    "StoreError",
    "Study",
    "Trial",
    "UnknownTrial",
    "__version__",
    "algorithm",
    "algorithms",
    "maximize",
    "minimize",
]
