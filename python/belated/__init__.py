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
from belated.algorithms import algorithm, algorithms
from belated.dimensions import Categorical, Integer, Real
from belated.evaluation import RunError
from belated.lifecycle import NotFitted, Optimizer
from belated.optimizers import BayesOpt, RandomSearch
from belated.run import Result, StopRun, maximize, minimize
from belated.space import Space
from belated.store import StoreError
from belated.study import Study
from belated.trial import Trial

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
