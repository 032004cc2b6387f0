"""Suggestions up to a total: counted and made in one step, over all threads and processes."""

import json
import os
import threading

from belated.optimizers.optimizer import Optimizer
from belated.optimizers.trial import Trial
from belated.study.study import Study

# Runs that share an optimizer suggest one after the other; those that share a study have its store's lock for it.
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
        # Of the events read so far: how many, the trials that they started, and the suggested ones among these.
        self._n_events = 0
        self._n_started = 0
        self._suggested: set[int] = set()

    def left(self) -> int:
        """How many more may be suggested now."""
        if isinstance(self.optimizer, Study):
            self.optimizer.sync()
        return self._left()

    def _left(self) -> int:
        """As of the events that are known here; also called with the study's lock held."""
        log = self.optimizer._log
        for event in log.events(self._n_events):
            self._n_events += 1
            kind = next(iter(json.loads(event)))
            if kind in ("Suggested", "Added"):
                if kind == "Suggested":
                    self._suggested.add(self._n_started)
                self._n_started += 1
        return self.limit - len(self._suggested.difference(log.numbers("abandoned")))

    def suggest(self) -> Trial | None:
        """Start a trial; None where the total is reached."""
        if isinstance(self.optimizer, Study):
            if self.left() <= 0:
                return None
            with self.optimizer._log.suggesting_while(lambda: self._left() > 0):
                trials = self.optimizer.suggest(1)
        else:
            with _lock:
                trials = self.optimizer.suggest(1) if self._left() > 0 else []
        return trials[0] if trials else None
