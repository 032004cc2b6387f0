"""Warnings about a window or a lease that ends before many results arrive."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from belated.optimizers.log import Array, Log
from belated.space.arguments import finite, in_seconds
from belated.warn import warn

if TYPE_CHECKING:
    from belated.optimizers.life_cycle import LifeCycle

# The number of results that a check needs.
_MIN_ARRIVALS = 20


@dataclass
class _Progress:
    """How far the checks of an optimizer or study are."""

    # The number of events from which on each limit is checked; None after the check.
    due: dict[str, int | None] = field(default_factory=dict)
    # The trials below this number are known; `suggested` has the numbers of the suggested trials among them.
    n_known: int = 0
    suggested: set[int] = field(default_factory=set)

    def arrived(self, log: Log) -> list[int]:
        """Return the numbers of the suggested trials that were observed. Each trial is read only once."""
        start, self.n_known = self.n_known, len(log)
        self.suggested.update(number for number in range(start, self.n_known) if log.trial(number).suggested)
        return sorted(self.suggested.intersection(log.numbers("observed")))


_PROGRESS: WeakKeyDictionary["LifeCycle[Any]", _Progress] = WeakKeyDictionary()


def check_window(source: "LifeCycle[Any]") -> None:
    """Warn once if the window is below the 25 % quantile of the delays."""
    optimizer = source._optimizer
    # `getattr` with a default would reach `__getattr__`, which looks for similar names, at every suggestion.
    given = vars(optimizer).get("window")
    window = None if given is None else finite(in_seconds(given))
    if window is not None:
        unit = "suggestions" if optimizer.clock == "iterations" else "s"
        _check(source, "window", window, 0.25, unit)


def check_lease(source: "LifeCycle[Any]", lease: float) -> None:
    """Warn once if the lease is below the median delay, in seconds."""
    _check(source, "expires_after", lease, 0.5, "s")


def _check(source: "LifeCycle[Any]", name: str, limit: float, share: float, unit: str) -> None:
    progress = _PROGRESS.setdefault(source, _Progress())
    log = source._log
    n_events, due = log.n_events(), progress.due.get(name, _MIN_ARRIVALS)
    if due is None or n_events < due:
        return
    arrived = progress.arrived(log)
    # Each further delay needs a further event.
    missing = _MIN_ARRIVALS - len(arrived)
    progress.due[name] = n_events + missing if missing > 0 else None
    if missing > 0:
        return
    delays = _delays(log, arrived, wall=name == "expires_after")
    if not delays.size:  # the log does not have the times
        return
    quantile, enough = np.quantile(delays, [share, 0.95])
    if limit < quantile:
        warn(
            f"{name}={limit:g} is below the {share:.0%} quantile of the delays so far, {quantile:.3g} {unit}, so most "
            f"results come later; set {name}={enough:.3g} or more, which includes 95% of the results so far"
        )


def _delays(log: Log, numbers: list[int], wall: bool) -> Array:
    """Return the delays of observed trials, on the optimizer's clock or in seconds."""
    records = map(log.trial, numbers)
    times = [
        (each.started_at, each.finished_at) if wall else (each.suggested_at, each.ended_at) for each in records
    ]
    return np.array([end - start for start, end in times if start is not None and end is not None], dtype=float)
