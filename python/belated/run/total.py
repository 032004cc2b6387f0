"""Start trials until an optimizer has a total number of trials.

No thread or process can start a trial between the count of the trials and the suggestion.
"""

import os
import threading
from collections.abc import Collection

from belated.optimizers.optimizer import Optimizer
from belated.optimizers.request import Request
from belated.optimizers.trial import Trial
from belated.study.study import Study
from belated.warn import warn

# Runs that share an optimizer hold this lock when they suggest. Runs that share a study hold the lock of the store.
_lock = threading.Lock()


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Total:
    """A limit on the number of suggested trials in all runs of an optimizer or study; abandoned trials do not count."""

    def __init__(self, optimizer: Optimizer | Study, limit: int) -> None:
        self.optimizer = optimizer
        self.limit = limit
        # The suggested trials that were pending when this object was created.
        self._pending = self._pending_now()
        # How many trials were read so far, and which of them were suggested (their numbers). Each trial is read only
        # once, so the time of a suggestion does not depend on the length of the log.
        self._n_read = 0
        self._suggested: set[int] = set()

    def _pending_now(self) -> list[int]:
        log = self.optimizer._current_log()
        records = ((number, log.trial(number)) for number in log.numbers("pending"))
        # If an outcome is known, the trial was evaluated.
        return [number for number, each in records if each.suggested and all(y is None for _, y, *_ in each.outcomes)]

    def warn_pending(self, own: Collection[int]) -> None:
        """Warn about trials that count in the total, but were pending before the run and are still pending after it.

        `own` contains the numbers of the trials of the run, which do not cause a warning.
        """
        if self._left() > 0:
            return
        numbers = sorted(set(self._pending).intersection(self._pending_now()).difference(own))
        if numbers:
            warn(
                "these trials were pending before this run and still are, and "
                f"n_trials_total={self.limit} counts them: {', '.join(map(str, numbers))}; if the process that "
                "evaluated them has ended, pass retry_pending=True, or abandon them"
            )

    def left(self) -> int:
        """Return the number of further trials that may be suggested."""
        if isinstance(self.optimizer, Study):
            self.optimizer.sync()
        return self._left()

    def _left(self) -> int:
        """Return the number of further trials without reading the store; this may be called with the lock held."""
        n_suggested, abandoned = self._n_suggested(), self.optimizer._log.numbers("abandoned")
        return self.limit - n_suggested + len(self._suggested.intersection(abandoned))

    def _n_suggested(self) -> int:
        log = self.optimizer._log
        new = range(self._n_read, len(log))  # other threads may start further trials meanwhile
        self._suggested.update(number for number in new if log.trial(number).suggested)
        self._n_read = new.stop
        return len(self._suggested)

    def _may_start(self) -> bool:
        """Return whether the total is not reached; this may be called with the lock held."""
        # There may be many abandoned trials, so read abandoned trials only if necessary.
        return self._n_suggested() < self.limit or self._left() > 0

    def suggest(self, request: Request) -> Trial | None:
        """Start a trial; return None if the total is reached."""
        if not isinstance(self.optimizer, Study):
            with _lock:
                if not self._may_start():
                    return None
                return Trial(self.optimizer, self.optimizer._start_trials(request)[0])
        self.optimizer.sync()
        if not self._may_start():
            return None
        # The store's lock is held from the count to the suggestion.
        numbers = self.optimizer._start_trials(request, may_start=self._may_start)
        return Trial(self.optimizer, numbers[0]) if numbers else None
