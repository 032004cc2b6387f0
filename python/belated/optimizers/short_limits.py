"""Warnings about a window or a lease that ends before many results arrive."""

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from belated.optimizers.log import Array, Log
from belated.space.arguments import finite
from belated.warn import warn

if TYPE_CHECKING:
    from belated.optimizers.life_cycle import LifeCycle

# The number of results that a check needs.
_MIN_ARRIVALS = 20

# For each optimizer or study, the number of events from which on a limit is checked; None after the check.
_NEXT: WeakKeyDictionary["LifeCycle[Any]", dict[str, int | None]] = WeakKeyDictionary()


def check_window(source: "LifeCycle[Any]") -> None:
    """Warn once if the window is below the 25 % quantile of the delays."""
    optimizer = source._optimizer
    window = finite(getattr(optimizer, "window", None))
    if window is not None:
        unit = "suggestions" if optimizer.clock == "iterations" else "s"
        _check(source, "window", window, 0.25, unit)


def check_lease(source: "LifeCycle[Any]", lease: float) -> None:
    """Warn once if the lease is below the median delay, in seconds."""
    _check(source, "expires_after", lease, 0.5, "s")


def _check(source: "LifeCycle[Any]", name: str, limit: float, share: float, unit: str) -> None:
    nexts = _NEXT.setdefault(source, {})
    log = source._log
    n_events, due = log.n_events(), nexts.get(name, _MIN_ARRIVALS)
    if due is None or n_events < due:
        return
    delays = _delays(log, wall=name == "expires_after")
    # Each further delay needs a further event.
    missing = _MIN_ARRIVALS - len(delays)
    nexts[name] = n_events + missing if missing > 0 else None
    if missing > 0:
        return
    quantile, enough = np.quantile(delays, [share, 0.95])
    if limit < quantile:
        warn(
            f"{name}={limit:g} is below the {share:.0%} quantile of the delays so far, {quantile:.3g} {unit}, so most "
            f"results come later; set {name}={enough:.3g} or more, which includes 95% of the results so far"
        )


def _delays(log: Log, wall: bool) -> Array:
    """Return the delays of the suggested trials that were observed, on the optimizer's clock or in seconds."""
    records = [record for record in map(log.trial, log.numbers("observed")) if record.suggested]
    times = [
        (each.started_at, each.finished_at) if wall else (each.suggested_at, each.ended_at) for each in records
    ]
    return np.array([end - start for start, end in times if start is not None and end is not None], dtype=float)
