"""Black-box optimisation when results come late, out of order, or never."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from belated import errors, papers
from belated._core import BelatedError, BelatedWarning, __version__
from belated.optimizers.algorithms import algorithm, algorithms
from belated.optimizers.bayes import BayesOpt
from belated.optimizers.bpe import BPEDelay
from belated.optimizers.curve import ASHA, Curve, MedianStopping, ModelStopping
from belated.optimizers.optimizer import Optimizer
from belated.optimizers.outcomes import AtLeast, AtMost, Between, Maximize, Minimize, Record
from belated.optimizers.random_search import RandomSearch
from belated.optimizers.settings import (
    GP,
    UCB,
    Censor,
    Hallucinate,
    Ignore,
    Initial,
    Integrate,
    Liar,
    LogEI,
    Search,
    ThompsonSampling,
)
from belated.optimizers.tree import TreeSearch
from belated.optimizers.trial import Trial
from belated.space import (
    Cardinality,
    Categorical,
    Choice,
    Fidelity,
    Integer,
    Linear,
    Mixture,
    Ordinal,
    Params,
    PowerCost,
    Real,
    Space,
)

if TYPE_CHECKING:
    from belated import plotting
    from belated.run import NoImprovement, Result, RunningTrial, StopRun, ValueReached
    from belated.run.maximize import maximize, minimize
    from belated.study.study import Study

__all__ = [
    "ASHA",
    "GP",
    "UCB",
    "AtLeast",
    "AtMost",
    "BPEDelay",
    "BayesOpt",
    "BelatedError",
    "BelatedWarning",
    "Between",
    "Cardinality",
    "Categorical",
    "Censor",
    "Choice",
    "Curve",
    "Fidelity",
    "Hallucinate",
    "Ignore",
    "Initial",
    "Integer",
    "Integrate",
    "Liar",
    "Linear",
    "LogEI",
    "Maximize",
    "MedianStopping",
    "Minimize",
    "Mixture",
    "ModelStopping",
    "NoImprovement",
    "Optimizer",
    "Ordinal",
    "Params",
    "PowerCost",
    "RandomSearch",
    "Real",
    "Record",
    "Result",
    "RunningTrial",
    "Search",
    "Space",
    "StopRun",
    "Study",
    "ThompsonSampling",
    "TreeSearch",
    "Trial",
    "ValueReached",
    "__version__",
    "algorithm",
    "algorithms",
    "errors",
    "maximize",
    "minimize",
    "papers",
    "plotting",
]


# These names are imported at first use. Their modules load large parts of the standard library; optimizers do not.
_OF_RUNS = ("NoImprovement", "Result", "RunningTrial", "StopRun", "ValueReached", "maximize", "minimize")
_LAZY = dict.fromkeys(_OF_RUNS, "belated.run") | {"Study": "belated.study"}


def __getattr__(name: str) -> Any:
    if name == "plotting":
        return import_module("belated.plotting")
    if name not in _LAZY:
        message = f"module 'belated' has no attribute {name!r}"
        if name.startswith("_"):
            raise AttributeError(message)
        for module in (errors, papers):
            if name in module.__all__:
                raise AttributeError(f"{message}: use {module.__name__}.{name}")
        from belated.hints import module_advice

        raise AttributeError(message + module_advice(name, __all__))
    found = globals()[name] = getattr(import_module(_LAZY[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
