"""Unknown argument names: what to write instead."""

import dataclasses
import difflib
import inspect
from collections.abc import Iterator
from typing import Any

# Names that other packages and the first edition have, and what they are called here: an argument, or a field of a
# value. These are for hints only.
_ELSEWHERE = {
    # scikit-learn, scikit-optimize, BayesianOptimization, Optuna, Ax, BoTorch
    "random_state": "seed",
    "rng": "seed",
    "random_seed": "seed",
    "bounds": "space",
    "pbounds": "space",
    "dimensions": "space",
    "search_space": "space",
    "parameters": "space",
    "choices": "candidates",
    "maximize": "direction",
    "minimize": "direction",
    "mode": "direction",
    "acq_func": "acquisition",
    "acq": "acquisition",
    "acquisition_function": "acquisition",
    "utility_function": "acquisition",
    "sampler": "acquisition",
    "x_pending": "pending",
    "base_estimator": "surrogate",
    "estimator": "surrogate",
    "model": "surrogate",
    "gp": "surrogate",
    "n_initial_points": "initial",
    "n_startup_trials": "initial",
    "num_initialization_trials": "initial",
    "init_points": "initial",
    "initial_point_generator": "Initial.how",
    "kappa": "UCB.beta",
    "length_scale": "GP.lengthscale",
    "alpha": "GP.noise_std",
    "noise_level": "GP.noise_std",
    "outputscale": "GP.signal_std",
    "n_restarts_optimizer": "GP.n_restarts",
    "normalize_y": "GP.targets",
    "num_fantasies": "Integrate.n",
    # The first edition.
    "noise": "GP.noise_std",
    "variance": "GP.signal_std",
    "n_initial": "initial",
    "lie": "Liar.value",
    "n_nearest": "Nearest.k",
    "n_fantasies": "Integrate.n",
    "thompson": "ThompsonSampling.draws",
    "scale_draws": "ThompsonSampling.widen",
    "maximizer": "LogEI.multistart",
    "n_raw": "LogEI.multistart",
    "n_starts": "LogEI.multistart",
}


def family_of(cls: type, argument: str) -> Any:
    """The base of the values that an argument takes, None where it takes plain ones."""
    # Not found: a class that is no dataclass, or has no such argument.
    fields = {field.name: field for field in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else {}
    return fields[argument].metadata.get("takes") if argument in fields else None


def _nested(cls: type) -> Iterator[tuple[str, str, str]]:
    """(argument, class of its value, field) for all fields of all values that arguments of a class take."""
    for argument in inspect.signature(cls).parameters:
        family = family_of(cls, argument)
        if family is not None:
            for kind in family.shorthand.values() or (family,):
                for field in inspect.signature(kind).parameters:
                    yield argument, kind.__name__, field


def advice_on(name: str, cls: type, *, nested: bool = False) -> str:
    """What to write in place of an unknown argument of a class; `nested` is for calls that take ``argument__field``."""
    known = list(inspect.signature(cls).parameters)
    near = nearest_argument(name, cls, nested=nested)
    return f"did you mean {near}?" if near else f"it has {', '.join(known) or 'no arguments'}"


def nearest_argument(name: str, cls: type, *, nested: bool = False) -> str | None:
    """The argument of a class, or the field of its value, that an unknown name may have stood for."""
    known, fields = list(inspect.signature(cls).parameters), list(_nested(cls))
    argument, _, field = name.partition("__")
    if field and argument in known:
        known, name = [], field
        fields = [each for each in fields if each[0] == argument]
    for wanted in (_ELSEWHERE.get(name.lower()), name):
        if wanted in known:
            return wanted
        if wanted is not None:
            kind, _, own = wanted.rpartition(".")
            if kind == cls.__name__:
                return own
            for each in fields:
                if each[2] == own and kind in ("", each[1]):
                    return _written(*each, nested)
    near = difflib.get_close_matches(name, known + [field for _, _, field in fields], n=1)
    if not near or near[0] in known:
        return near[0] if near else None
    return _written(*next(each for each in fields if each[2] == near[0]), nested)


def _written(argument: str, kind: str, field: str, nested: bool) -> str:
    return f"{argument}__{field}" if nested else f"{argument}=bl.{kind}({field}=…)"
