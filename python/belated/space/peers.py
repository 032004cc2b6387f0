"""Dimensions of other packages and their equivalents in belated.

The dimensions are recognised by the module and name of their class. Their packages are not imported.
"""

import math
from typing import Any

from belated.space.dimensions import Categorical, Integer, Real

_PACKAGES = ("optuna", "skopt", "ray", "hyperopt", "scipy")


def equivalent(given: Any) -> str | None:
    """Return the equivalent of another package's dimension as source code, or None for other objects."""
    package = type(given).__module__.partition(".")[0]
    if package not in _PACKAGES:
        return None
    readers = {"optuna": _optuna, "skopt": _skopt, "ray": _ray, "hyperopt": _hyperopt, "scipy": _scipy}
    try:
        found = readers[package](given)
    except Exception:  # other versions of the package may have other attributes; then return general advice
        found = None
    return f"bl.{found!r}" if found is not None else "bl.Real, bl.Integer or bl.Categorical of the same values"


def _optuna(given: Any) -> Any:
    if hasattr(given, "choices"):
        return Categorical(list(given.choices))
    log, step = bool(getattr(given, "log", False)), getattr(given, "step", None)
    if "Int" in type(given).__name__:
        return Integer(given.low, given.high, log=log, step=None if step == 1 else step)
    return Real(given.low, given.high, log=log, step=step)


def _skopt(given: Any) -> Any:
    if hasattr(given, "categories"):
        return Categorical(list(given.categories))
    kind = Integer if type(given).__name__ == "Integer" else Real
    return kind(given.low, given.high, log=given.prior == "log-uniform")


def _ray(given: Any) -> Any:
    if hasattr(given, "categories"):
        return Categorical(list(given.categories))
    sampler = given.get_sampler()
    step = getattr(sampler, "q", None)
    log = "Log" in type(getattr(sampler, "sampler", sampler)).__name__
    if type(given).__name__ == "Integer":
        # In Ray the upper bound is excluded unless the domain has a step.
        return Integer(given.lower, given.upper if step else given.upper - 1, log=log, step=step)
    return Real(given.lower, given.upper, log=log, step=step)


def _hyperopt(given: Any) -> Any:
    """Return the equivalent of a Hyperopt graph, from the node that draws the value; other nodes contain this node."""
    nodes = [given]
    while nodes:
        node = nodes.pop(0)
        arguments = [each.obj for each in node.pos_args if hasattr(each, "obj")]
        if node.name in ("uniform", "quniform"):
            low, high = arguments[:2]
            return Real(low, high, step=arguments[2] if node.name == "quniform" else None)
        if node.name in ("loguniform", "qloguniform"):
            low, high = (float(f"{math.exp(bound):.12g}") for bound in arguments[:2])
            return Real(low, high, log=True)
        if node.name == "randint":
            low, high = arguments if len(arguments) == 2 else (0, arguments[0])
            return Integer(low, high - 1)
        if node.name == "switch":
            return Categorical([each.obj for each in node.pos_args[1:]])
        nodes += node.pos_args
    return None


def _scipy(given: Any) -> Any:
    low, high = (bound.item() if hasattr(bound, "item") else bound for bound in given.support())
    if given.dist.name == "randint":
        return Integer(int(low), int(high))
    return Real(low, high, log=given.dist.name in ("loguniform", "reciprocal"))
