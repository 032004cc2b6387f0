"""Suggestions up to a total, counted and made in one step over all threads and processes."""

import json
import os
import threading
from collections.abc import Collection

from belated.optimizers.optimizer import Optimizer
from belated.optimizers.trial import Trial
from belated.study.study import Study
from belated.warn import warn

# Runs that share an optimizer suggest one after the other; runs that share a study use its store's lock instead.
_lock = threading.Lock()


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Total:
    """At most `limit` suggested trials that are not abandoned, over all runs of an optimizer or study."""

    def __init__(self, optimizer: Optimizer | Study, limit: int) -> None:
        self.optimizer = optimizer
        self.limit = limit
        # Suggested trials without a result when this object was made.
        self._pending = self._pending_now()
        # Number of events read so far, the trials that they started, and the suggested and the abandoned ones among
        # these trials. Each event is read once, so that a suggestion costs the same for a log of any length.
        self._n_events = 0
        self._n_started = 0
        self._suggested: set[int] = set()
        self._abandoned: set[int] = set()

    def _pending_now(self) -> list[int]:
        log = self.optimizer._current_log()
        return [number for number in log.numbers("pending") if log.trial(number).suggested]

    def warn_pending(self, own: Collection[int]) -> None:
        """Warn of trials that count in the total but were pending before the run and still are, except `own`."""
        if self._left() > 0:
            return
        numbers = sorted(set(self._pending).intersection(self._pending_now()).difference(own))
        if numbers:
            several = len(numbers) > 1
            warn(
                f"{'trials' if several else 'trial'} {', '.join(map(str, numbers))} "
                f"{'were' if several else 'was'} pending before this run and still {'are' if several else 'is'}, and "
                f"n_trials_total={self.limit} counts {'them' if several else 'it'}: if the process that evaluated "
                f"{'them' if several else 'it'} has ended, pass retry_pending=True, or abandon "
                f"{'them' if several else 'it'}"
            )

    def left(self) -> int:
        """Return how many more trials may be suggested now."""
        if isinstance(self.optimizer, Study):
            self.optimizer.sync()
        return self._left()

    def _left(self) -> int:
        """Return how many trials are left, by the events known here; also called with the study's lock held."""
        for event in self.optimizer._log.events(self._n_events):
            self._n_events += 1
            [(kind, facts)] = json.loads(event).items()
            if kind in ("Suggested", "Added"):
                if kind == "Suggested":
                    self._suggested.add(self._n_started)
                self._n_started += 1
            elif kind == "Abandoned" and facts["number"] in self._suggested:
                self._abandoned.add(facts["number"])
            elif kind in ("Observed", "Failed"):
                self._abandoned.discard(facts["number"])
        return self.limit - len(self._suggested) + len(self._abandoned)

    def suggest(self) -> Trial | None:
        """Start a trial; return None if the total is reached."""
        if isinstance(self.optimizer, Study):
            if self.left() <= 0:
                return None
            with self.optimizer._log.suggesting_while(lambda: self._left() > 0):
                trials = self.optimizer.suggest(1)
        else:
            with _lock:
                trials = self.optimizer.suggest(1) if self._left() > 0 else []
        return trials[0] if trials else None
