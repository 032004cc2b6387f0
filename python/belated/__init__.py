"""Black-box optimisation when results come late, out of order, or never."""

from belated import optimizers, plotting
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
from belated.optimizers import *  # noqa: F403
from belated.optimizers import settings
from belated.optimizers.settings import *  # noqa: F403
from belated.run import NoImprovement, Result, RunError, RunningTrial, StopRun, ValueReached, maximize, minimize
from belated.space import Categorical, Integer, Ordinal, Real, Space
from belated.store import StoreError
from belated.study.study import Study

__all__ = [
    "AlreadyObserved",
    "BelatedError",
    "BelatedWarning",
    "Categorical",
    "Integer",
    "InvalidContext",
    "InvalidPoint",
    "InvalidSetting",
    "InvalidSpace",
    "InvalidValue",
    "NoImprovement",
    "NumericalError",
    "Ordinal",
    "Real",
    "Result",
    "RunError",
    "RunningTrial",
    "Space",
    "StopRun",
    "StoreError",
    "Study",
    "UnknownTrial",
    "ValueReached",
    "__version__",
    "maximize",
    "minimize",
    "plotting",
]
__all__ += optimizers.__all__
__all__ += settings.__all__
