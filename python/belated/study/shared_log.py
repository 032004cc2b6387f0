"""The log that processes share: what a core is to an optimizer, with a store between."""

import json
import threading
import time as clocks
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from belated import _core
from belated._core import BelatedError, GaussianProcess, InvalidSetting
from belated.optimizers.log import Array
from belated.store import Store, StoreError
from belated.store.checksums import verified, with_checksum
from belated.store.interface import Record

# A proposal quicker than this, in seconds, is made again within the write lock: releasing it would take longer.
_QUICK = 0.002

# How often a slow proposal is made again without the lock, because others wrote meanwhile.
_ATTEMPTS = 3


class SharedLog:
    """What a core is to an optimizer, with a store between: the log there is the truth.

    The core here holds a prefix of it. Whatever is written is validated against the whole log with the store's write
    lock held, and is applied to the core once it is committed.
    """

    def __init__(self, core: _core.Optimizer, store: Store, name: str, id: int, wall_time: Callable[[], float]) -> None:
        self.core = core
        self.store = store
        self.name = name
        self.id = id
        self.wall_time = wall_time
        self.lock = threading.RLock()
        # (event, key) of what the writer in charge is about to commit; None while there is none.
        self.uncommitted: list[tuple[str, str | None]] | None = None
        # What calls with a key wrote: (call, key) → (number of the trial concerned, event).
        self._keyed: dict[tuple[str, str], list[tuple[int | None, str]]] = {}

    # Reading and writing the store.

    def sync(self) -> int:
        """Apply what others wrote; the number of events that were new."""
        with self.lock:
            return self._apply_new(self.store.events(self.name, self.core.n_events()))

    def _apply_new(self, records: list[Record]) -> int:
        if records:
            known = self.core.n_events()
            self._apply(verified(self.name, self.id, known, records))
        return len(records)

    def _apply(self, records: list[Record]) -> None:
        keys = [None if record.key is None else record.key.split(":", 2) for record in records]
        if any(key is not None and len(key) != 3 for key in keys):
            raise StoreError(f"study {self.name!r} has an event with a key that no call can have had")
        try:
            numbers = self.core.extend([record.body for record in records])
        except BelatedError as error:
            raise StoreError(f"study {self.name!r} has an event that cannot have happened: {error}") from error
        for record, number, names in zip(records, numbers, keys, strict=True):
            if names is not None:
                call, _, key = names
                self._keyed.setdefault((call, key), []).append((number, record.body))

    @contextmanager
    def writing(self) -> Iterator[list[tuple[str, str | None]]]:
        """The write lock and a core that is up to date; the events put into the list are committed at the end."""
        with self.lock:
            if self.uncommitted is not None:
                yield self.uncommitted
                return
            records = []
            try:
                with self.store.writing(self.name) as log:
                    self._apply_new(log.events(self.core.n_events()))
                    self.uncommitted = []
                    yield self.uncommitted
                    if self.uncommitted:
                        at, start = self.wall_time(), self.core.n_events()
                        for seq, (body, key) in enumerate(self.uncommitted, start):
                            records.append(with_checksum(self.id, seq, key, at, body))
                        log.append(records)
            finally:
                self.uncommitted = None
            # Committed. Should this be interrupted, the next sync finds them.
            if records:
                self._apply(records)

    def keyed(self, call: str, key: str | None) -> list[tuple[int | None, str]]:
        """(number of the trial concerned, event) of what an earlier call with this key wrote."""
        return [] if key is None else self._keyed.get((call, key), [])

    # The methods of a core that write, some with more arguments.

    def suggest(
        self,
        n: int,
        context: Array | None,
        now: Callable[[], float | None],
        key: str | None,
        expires_after: float | None,
    ) -> list[int]:
        """Start n trials, or find those that the key started; their numbers."""

        def proposal() -> list[str]:
            return self.core.propose(n, context, now(), self.wall_time(), expires_after)

        with self.lock:
            for attempt in range(_ATTEMPTS + 1):
                events: list[str] = []
                made_for, quick = -1, True
                if attempt < _ATTEMPTS:
                    self.sync()
                    if self.keyed("suggest", key):
                        break
                    made_for, start = self.core.n_events(), clocks.perf_counter()
                    events = proposal()
                    quick = clocks.perf_counter() - start < _QUICK
                with self.writing() as uncommitted:
                    if self.keyed("suggest", key):
                        break
                    if self.core.n_events() != made_for:
                        if attempt < _ATTEMPTS and not quick:
                            continue
                        events = proposal()
                    first = len(self.core)
                    names = [None if key is None else f"suggest:{i}:{key}" for i in range(n)]
                    uncommitted.extend(zip(events, names, strict=True))
                return list(range(first, first + n))
            return self._earlier(n, context, key)

    def _earlier(self, n: int, context: Array | None, key: str | None) -> list[int]:
        """The trials that a key started, if it was for the same request."""
        numbers = [number for number, _ in self.keyed("suggest", key) if number is not None]
        wanted = np.zeros(0) if context is None else context
        if len(numbers) != n or not all(np.array_equal(self.core.trial(i).context, wanted) for i in numbers):
            raise InvalidSetting(f"key={key!r} started {len(numbers)} trials before, in a request other than this one")
        return numbers

    def observe(
        self,
        number: int,
        value: float,
        now: float | None,
        amend: bool,
        std: float | None = None,
        key: str | None = None,
    ) -> None:
        """Log a value, unless a call with this key did."""
        with self.writing() as uncommitted:
            if not self._observed_with(key, number, value, std):
                self._log(uncommitted, self.core.validate_observe(number, value, now, amend, std), key)

    def replicate(self, number: int, value: float, now: float | None, key: str | None, std: float | None) -> None:
        """A value for the point of a trial: the trial's own, or where it has one, that of a trial of its own."""
        with self.writing() as uncommitted:
            trial = self.core.trial(number)
            if self._observed_with(key, number, value, std):
                return
            event: str | None
            if trial.value is None:
                event = self.core.validate_observe(number, value, now, False, std)
            else:
                context = trial.context if trial.context.size else None
                event = self.core.validate_add(trial.point, trial.index, trial.given, context, value, now, std)
            self._log(uncommitted, event, key)

    def _observed_with(self, key: str | None, number: int, value: float, std: float | None) -> bool:
        """Whether a call with this key was carried out before."""
        for other, event in self.keyed("observe", key):
            # Not the trial's value of today: it may have been amended since.
            [(kind, facts)] = json.loads(event).items()
            same = other == number
            if kind == "Added" and other is not None:
                same = np.array_equal(self.core.trial(other).point, self.core.trial(number).point)
            if not same or (facts["value"], facts.get("std")) != (value, std):
                raise InvalidSetting(
                    f"key={key!r} reported another value, or for another trial, before (trial {other})"
                )
            return True
        return False

    @staticmethod
    def _log(uncommitted: list[tuple[str, str | None]], event: str | None, key: str | None = None) -> None:
        if event is not None:
            uncommitted.append((event, None if key is None else f"observe:0:{key}"))

    def fail(self, number: int, now: float | None) -> None:
        """Log that a trial crashed."""
        with self.writing() as uncommitted:
            self._log(uncommitted, self.core.validate_fail(number, now))

    def abandon(self, number: int, now: float | None) -> None:
        """Log that a trial was given up."""
        with self.writing() as uncommitted:
            self._log(uncommitted, self.core.validate_abandon(number, now))

    def add(
        self,
        point: Array,
        index: int | None,
        given: list[float] | None,
        context: Array | None,
        value: float | None,
        now: float | None,
        std: float | None = None,
    ) -> int:
        """Log a trial that was not suggested; its number."""
        with self.writing() as uncommitted:
            number = len(self.core) + len(uncommitted)  # only trials are logged several at once
            self._log(uncommitted, self.core.validate_add(point, index, given, context, value, now, std))
            return number

    def enqueue(self, point: Array, index: int | None, given: list[float] | None) -> None:
        """Log a point that is to be suggested next."""
        with self.writing() as uncommitted:
            self._log(uncommitted, self.core.validate_enqueue(point, index, given))

    # Those that only read.

    def recommend(self, context: Array | None, now: float | None) -> tuple[Array, int | None, float, float] | None:
        """(point, candidate index, mean, std) of the best posterior mean; None while nothing is observed."""
        return self.core.recommend(context, now)

    def predict(self, points: Array, now: float | None, pending: bool) -> tuple[Array, Array] | None:
        """Posterior mean and standard deviation of f; None while nothing is observed."""
        return self.core.predict(points, now, pending, self.wall_time())

    def surrogate(self, now: float | None, pending: bool) -> tuple[GaussianProcess, float, float] | None:
        """(model, center, scale); None while nothing is fitted."""
        return self.core.surrogate(now, pending, self.wall_time())

    def acquisition(self, points: Array, context: Array | None, now: float | None) -> Array | None:
        """The acquisition of the next suggestion; None while nothing is observed."""
        return self.core.acquisition(points, context, now, self.wall_time())

    def leave_one_out(self, now: float | None) -> tuple[list[int], Array, Array] | None:
        """(trial numbers, mean, std) of values predicted from all others; None while nothing is observed."""
        return self.core.leave_one_out(now, self.wall_time())

    def now(self, now: float | None) -> float:
        """The time on the study's clock."""
        return self.core.now(now)

    def trial(self, number: int) -> _core.TrialRecord:
        """What is known of a trial."""
        with self.lock:
            return self.core.trial(number)

    def numbers(self, state: str | None) -> list[int]:
        """The numbers of the trials in a state, or of all."""
        return self.core.numbers(state)

    def best(self) -> int | None:
        """The number of the trial with the largest value."""
        return self.core.best()

    def events(self, start: int) -> list[str]:
        """The log from event number `start` on, as JSON."""
        return self.core.events(start)

    def n_events(self) -> int:
        """The length of the log."""
        return self.core.n_events()

    def __len__(self) -> int:
        return len(self.core)
