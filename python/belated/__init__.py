"""Black-box optimisation when results come late, out of order, or never."""

from typing import TYPE_CHECKING, Any

from belated import optimizers
from belated._core import (
    AlreadyObserved,
    BelatedError,
    BelatedWarning,
    HorizonReached,
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

if TYPE_CHECKING:
    from belated import plotting

__all__ = [
    "AlreadyObserved",
    "BelatedError",
    "BelatedWarning",
    "Categorical",
    "HorizonReached",
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


def __getattr__(name: str) -> Any:
    # Plots are imported when one is drawn.
    if name == "plotting":
        import belated.plotting

        return belated.plotting
    raise AttributeError(f"module 'belated' has no attribute {name!r}")
