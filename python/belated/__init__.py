"""Black-box optimisation when results come late, out of order, or never."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from belated import optimizers
from belated._core import (
    AlreadyObserved,
    BelatedError,
    BelatedWarning,
    HorizonReached,
    InvalidContext,
    InvalidFidelity,
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
from belated.optimizers.curve import ASHA, Curve, MedianStopping, ModelStopping
from belated.optimizers.settings import *  # noqa: F403
from belated.space import Categorical, Choice, Fidelity, Integer, Ordinal, Params, PowerCost, Real, Space

if TYPE_CHECKING:
    from belated import plotting
    from belated.errors import RunError, StoreError
    from belated.run import NoImprovement, Result, RunningTrial, StopRun, ValueReached
    from belated.run.maximize import maximize, minimize
    from belated.study.study import Study

__all__ = [
    "ASHA",
    "AlreadyObserved",
    "BelatedError",
    "BelatedWarning",
    "Categorical",
    "Choice",
    "Curve",
    "Fidelity",
    "HorizonReached",
    "Integer",
    "InvalidContext",
    "InvalidFidelity",
    "InvalidPoint",
    "InvalidSetting",
    "InvalidSpace",
    "InvalidValue",
    "MedianStopping",
    "ModelStopping",
    "NoImprovement",
    "NumericalError",
    "Ordinal",
    "Params",
    "PowerCost",
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


# These names are imported at first use. Their modules load large parts of the standard library; optimizers do not.
_LAZY = {
    **dict.fromkeys(("NoImprovement", "Result", "RunError", "RunningTrial", "StopRun", "ValueReached"), "belated.run"),
    **dict.fromkeys(("maximize", "minimize"), "belated.run"),
    "Study": "belated.study",
    "StoreError": "belated.store",
}


def __getattr__(name: str) -> Any:
    if name == "plotting":
        return import_module("belated.plotting")
    if name not in _LAZY:
        message = f"module 'belated' has no attribute {name!r}"
        if name.startswith("_"):
            raise AttributeError(message)
        from belated.hints import module_advice

        raise AttributeError(message + module_advice(name, __all__))
    found = globals()[name] = getattr(import_module(_LAZY[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
