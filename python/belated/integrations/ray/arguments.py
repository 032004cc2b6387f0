"""Checks of the arguments of a `BelatedSearch`, and of the optimizer that it creates."""

from typing import Any

from belated._core import InvalidSetting
from belated.optimizers.optimizer import Optimizer
from belated.short_repr import short_repr
from belated.space.space import Space

# Modes of Tune and their directions.
DIRECTIONS = {"max": "maximize", "min": "minimize"}


def check_metric(metric: Any, mode: Any) -> None:
    """Refuse several metrics or modes. Refuse a metric that is not a name, and modes except "max" and "min"."""
    for name, given in (("metric", metric), ("mode", mode)):
        if isinstance(given, (list, tuple)):
            raise InvalidSetting(f"{name}={short_repr(given)}: belated optimises one metric: pass its name")
    if metric is not None and not isinstance(metric, str):
        raise InvalidSetting(f"metric={short_repr(metric)} is not usable: pass the name of a metric")
    if mode not in (None, "max", "min"):
        raise InvalidSetting(f"mode={short_repr(mode)} is not usable: pass 'max' or 'min'")


def check_optimizer(optimizer: Any, direction: str, space: Space) -> None:
    """Refuse an optimizer with another space or direction, or an optimizer that trials of Tune cannot serve."""
    settings = optimizer.get_params(deep=False)
    if settings["direction"] != direction:
        raise InvalidSetting(f"optimizer has direction={settings['direction']!r}: use the given direction")
    if optimizer.domain_ != space:
        raise InvalidSetting("optimizer does not search the given space: pass the argument space to it")
    for name in ("context", "fidelity"):
        if settings[name] is not None:
            raise InvalidSetting(f"optimizer has a {name}, which trials of Tune do not have: leave it out")


def check_made(made: Any) -> Optimizer:
    """Return the result of the user's function if it is an optimizer; otherwise raise an error."""
    if not isinstance(made, Optimizer):
        raise InvalidSetting(f"optimizer returned {short_repr(made)}, which is not an optimizer of belated")
    return made
