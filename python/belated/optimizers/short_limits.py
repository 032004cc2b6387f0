"""Warnings about a window or a lease that ends before many results arrive."""

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from belated.space.arguments import finite
from belated.warn import warn

if TYPE_CHECKING:
    from belated.optimizers.life_cycle import LifeCycle

# The number of results that a check needs.
_MIN_ARRIVALS = 20


# The number of events from which on each limit of an optimizer or study is checked; None after the check.
_DUE: WeakKeyDictionary["LifeCycle[Any]", dict[str, int | None]] = WeakKeyDictionary()


def check_window(source: "LifeCycle[Any]") -> None:
    """Warn once if the window is below the 25 % quantile of the delays."""
    optimizer = source._optimizer
    # `getattr` with a default would reach `__getattr__`, which looks for similar names, at every suggestion.
    given = vars(optimizer).get("window")
    window = None if given is None else finite(given)
    if window is not None:
        unit = "suggestions" if optimizer.clock == "iterations" else "s"
        _check(source, "window", window, 0.25, unit)


def check_lease(source: "LifeCycle[Any]", lease: float) -> None:
    """Warn once if the lease is below the median delay, in seconds."""
    _check(source, "expires_after", lease, 0.5, "s")


def _check(source: "LifeCycle[Any]", name: str, limit: float, share: float, unit: str) -> None:
    log, checks = source._log, _DUE.setdefault(source, {})
    n_events, due = log.n_events(), checks.get(name, _MIN_ARRIVALS)
    if due is None or n_events < due:
        return
    starts, ends = log.arrivals(in_wall_time=name == "expires_after")
    # Each further delay needs a further event.
    missing = _MIN_ARRIVALS - len(starts)
    checks[name] = n_events + missing if missing > 0 else None
    if missing > 0:
        return
    delays = np.maximum(ends - starts, 0.0)
    known = delays[~np.isnan(delays)]
    if not known.size:  # the log does not have the times
        return
    quantile, enough = np.quantile(known, [share, 0.95])
    if limit < quantile:
        warn(
            f"{name}={limit:g} is below the {share:.0%} quantile of the delays so far, {quantile:.3g} {unit}, so most "
            f"results come later; set {name}={enough:.3g} or more, which includes 95% of the results so far"
        )
