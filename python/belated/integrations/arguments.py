"""Checks of arguments that several integrations share, and checks of the optimizers that users' functions return."""

from collections.abc import Sequence
from typing import Any

from belated._core import InvalidSetting
from belated.optimizers.optimizer import Optimizer
from belated.short_repr import short_repr
from belated.space.space import Space

# Advice for messages: the values that an integration accepts as its argument `optimizer`.
ADVICE = (
    "pass an optimizer's class, or a function that returns one, called as "
    "optimizer(space, direction=direction, seed=seed)"
)
# Modes of Tune and their directions.
DIRECTIONS = {"max": "maximize", "min": "minimize"}


def check_optimizer(
    made: Any,
    space: Space,
    direction: str,
    advice: str,
    *,
    users: str,
    kinds: tuple[type, ...] = (Optimizer,),
    refused: Sequence[str] = ("context", "fidelity", "outcomes"),
) -> None:
    """Raise InvalidSetting unless a user's function returned an optimizer for this space and direction.

    Parameters
    ----------
    advice : str
        Text for the message, which says how the function is called and what it should return.
    users : str
        Text for the message, which names the objects that do not have the `refused` settings.
    """
    if not isinstance(made, kinds):
        raise InvalidSetting(f"optimizer returned {short_repr(made)}: {advice}")
    settings = made.get_params(deep=False)  # type: ignore[attr-defined]
    if settings["direction"] != direction:
        raise InvalidSetting(
            f"optimizer has direction={settings['direction']!r}, and values are {direction}d: use the given direction, "
            "or leave direction out"
        )
    if made.domain != space:  # type: ignore[attr-defined]
        raise InvalidSetting("optimizer does not search the given space: pass the argument space to it")
    for name in refused:
        if settings.get(name) is not None:
            what = name if name == "outcomes" else f"a {name}"
            raise InvalidSetting(f"optimizer has {what}, which {users} do not have: leave {name} out")


def check_metric(metric: Any, mode: Any) -> None:
    """Refuse several metrics or modes. Refuse a metric that is not a name, and modes except "max" and "min"."""
    for name, given in (("metric", metric), ("mode", mode)):
        if isinstance(given, (list, tuple)):
            raise InvalidSetting(f"{name}={short_repr(given)}: belated optimises one metric: pass its name")
    if metric is not None and not isinstance(metric, str):
        raise InvalidSetting(f"metric={short_repr(metric)} is not usable: pass the name of a metric")
    if mode not in (None, *DIRECTIONS):
        raise InvalidSetting(f"mode={short_repr(mode)} is not usable: pass 'max' or 'min'")
