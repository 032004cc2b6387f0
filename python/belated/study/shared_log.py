"""A log that processes share. It has the methods of a core and keeps its events in a store."""

import itertools
import math
import threading
import time as clocks
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TypeAlias, TypeVar

from belated import _core
from belated._core import Action, BelatedError, GaussianProcess, InvalidSetting
from belated.optimizers.log import Array, Feasible
from belated.space.space import Place
from belated.store import Store, StoreError
from belated.store.checksums import verified, with_checksum
from belated.store.interface import EventsGone, NotWritten, Record
from belated.study.history import History
from belated.warn import logger

T = TypeVar("T")

# The events to write, each with its key.
Events: TypeAlias = list[tuple[str, str | None]]

LOGGER = logger()

# A proposal that takes less than this number of seconds is repeated while the write lock is held. Releasing the lock
# would take longer.
_QUICK = 0.002

# How often a slow proposal is repeated without the lock, if other processes write in the meantime.
_ATTEMPTS = 3

# How often a call is repeated if the connection is lost before the call writes, while other processes write.
_LOST_CONNECTIONS = 20

# If the last read was more than this number of seconds ago, the log is read before the write lock is taken. Reading
# many events with the lock held would keep other processes from writing.
_LONG_AGO = 1.0


class SharedLog:
    """The log of a study: a core whose events are kept in a store. The stored log is authoritative.

    The core has the first events of the stored log. Events are validated against the whole log while the store's write
    lock is held. They are applied to the core after they are committed.
    """

    def __init__(self, core: _core.Optimizer, store: Store, name: str, id: int) -> None:
        self.core = core
        self.store = store
        self.name = name
        self.id = id
        self.history = History()
        self.lock = threading.RLock()
        # The events that the present writer will commit, each with its key; None outside a write.
        self.uncommitted: Events | None = None
        # The number of events recorded here, and the checksum of the last event.
        self._n_applied = core.n_events()
        self._last: bytes | None = None
        # The number and the checksum of the last event that is known to be on disk.
        self._synced: tuple[int, bytes] | None = None
        # The number of times the whole log was read again, and the time of the last read by the monotonic clock.
        self._readings = 0
        self._read_at = -math.inf
        # A function that returns whether trials may be started. It is called with the write lock held. None: they
        # always may.
        self.may_start: Callable[[], bool] | None = None
        # The events written by calls with a key: "call:i:key" → the number of the event. The dict has only strings and
        # integers, which the garbage collector does not visit. With other objects, all processes of a study would have
        # long pauses of the collector after the same number of events. These pauses would follow one another while the
        # lock is held.
        self._keyed: dict[str, int] = {}

    # Reading from the store and writing to it.

    def sync(self) -> int:
        """Apply the events that other processes wrote; return the number of new events."""
        with self.lock:
            return self._apply_new(partial(self.store.events, self.name))

    def _apply_new(self, read_from: Callable[[int], list[Record]]) -> int:
        """Apply the new events; `read_from` reads the events from a number on. Return the number of new events."""
        known = self.core.n_events()
        if self._n_applied != known:
            # The last call was interrupted after the core had changed and before this object had recorded the change.
            return self._read_anew(read_from)
        try:
            # The last known event is read again, to check that the store still has it.
            records = read_from(max(known - 1, 0))
            if known and (not records or records[0].checksum != self._last):
                there = "another event in place of" if records else "no longer event"
                raise EventsGone(
                    f"study {self.name!r} in {self.store.url} has {there} number {known - 1}, which this process has "
                    "read: it was replaced by another copy; open the study again"
                )
        except EventsGone as gone:
            self._check_that_only_unsynced(read_from, gone)
            LOGGER.info("study %r is read anew: its last events were gone after a crash of the server", self.name)
            return self._read_anew(read_from)
        self._read_at = clocks.monotonic()
        if known:
            records = records[1:]
        if records:
            self.apply(verified(self.name, self.id, known, records))
        return len(records)

    def _check_that_only_unsynced(self, read_from: Callable[[int], list[Record]], gone: EventsGone) -> None:
        """Raise EventsGone if the store has lost events that were on disk."""
        if not self.store.shows_unsynced:
            raise gone
        if self._synced is not None:
            number, checksum = self._synced
            found = read_from(number)
            if not found or found[0].checksum != checksum:
                raise gone

    def _read_anew(self, read_from: Callable[[int], list[Record]]) -> int:
        """Replace the known events by the whole log of the store; return the length of the log."""
        records = verified(self.name, self.id, 0, read_from(0))
        numbers = self._written_to(self.core.replace, records)
        self._keyed.clear()
        self.history = History()
        self._n_applied = 0
        self._readings += 1
        self._note(records, numbers)
        return len(records)

    def apply(self, records: list[Record]) -> None:
        """Append verified events to the known events."""
        self._note(records, self._written_to(self.core.extend, records))

    def _written_to(self, write: Callable[[list[str]], list[int | None]], records: list[Record]) -> list[int | None]:
        if any(record.key is not None and len(record.key.split(":", 2)) != 3 for record in records):
            raise StoreError(f"study {self.name!r} has an event with a key that no call can have had")
        try:
            return write([record.body for record in records])
        except BelatedError as error:
            raise StoreError(f"study {self.name!r} has an event that cannot have happened: {error}") from error

    def _note(self, records: list[Record], numbers: list[int | None]) -> None:
        """Record data about events that the core does not keep."""
        self.history.note(records, numbers)
        self._keyed.update((record.key, record.seq) for record in records if record.key is not None)
        if records:
            self._last = records[-1].checksum
        self._n_applied += len(records)

    def _state(self) -> tuple[int, int]:
        """Return numbers that change whenever an event is applied or removed."""
        return self._readings, self.core.n_events()

    def _write(self, action: Callable[[Events], T]) -> T:
        """Call an action with the write lock and an up-to-date core; commit the events that the action appends.

        A nested call leaves the commit to the outer call.
        """
        with self.lock:
            if self.uncommitted is not None:
                return action(self.uncommitted)
            if clocks.monotonic() - self._read_at > _LONG_AGO:
                self.sync()
            records = []
            transaction = self.store.writing(self.name)
            try:
                with transaction as log:
                    self._apply_new(log.events)
                    self.uncommitted = []
                    result = action(self.uncommitted)
                    if self.uncommitted:
                        # The machine's clock gives this time, even if the user passed another clock for the study.
                        at, start = clocks.time(), self.core.n_events()
                        for seq, (body, key) in enumerate(self.uncommitted, start):
                            records.append(with_checksum(self.id, seq, key, at, body))
                        log.append(records)
            except BaseException as error:
                # Without this, an interrupt just before the `with` statement is entered or left would keep the
                # transaction open.
                transaction.__exit__(type(error), error, error.__traceback__)
                raise
            finally:
                self.uncommitted = None
            # The events are committed. If this step is interrupted, the next sync reads them.
            if records:
                self._synced = records[-1].seq, records[-1].checksum
                self.apply(records)
            return result

    def _until_written(self, call: Callable[[], T]) -> T:
        """Make a call that writes. Repeat the call if it wrote nothing because the connection was lost.

        Afterwards, all events of other processes that the call depends on are on disk, too.
        """
        with self.lock:
            for _ in range(_LOST_CONNECTIONS):
                with suppress(NotWritten):
                    done = call()
                    if self._is_on_disk():
                        return done
            done = call()
            if not self._is_on_disk():
                raise self._crashes_again()
            return done

    def _crashes_again(self) -> StoreError:
        return StoreError(f"the server of {self.store.url} crashes again and again: call again once it runs")

    def sync_to_disk(self) -> int:
        """Sync, then wait until the events that were read are on disk, so that a crash cannot undo them."""
        with self.lock:
            for _ in range(_LOST_CONNECTIONS):
                n_new = self.sync()
                if self._is_on_disk():
                    return n_new
            raise self._crashes_again()

    def _is_on_disk(self) -> bool:
        """Wait until all known events are on disk. If events were gone, read the log again and return False."""
        last = self.core.n_events() - 1
        if not self.store.shows_unsynced or last < 0 or (self._synced is not None and self._synced[0] == last):
            return True
        checksum, readings = self._last, self._readings
        self.store.flush(self.name)
        # The server may have crashed in the meantime.
        self.sync()
        if checksum is not None and self._readings == readings:
            self._synced = last, checksum
        return self._readings == readings

    @contextmanager
    def suggesting_while(self, may_start: Callable[[], bool]) -> Iterator[None]:
        """Return a context in which `suggest` starts trials only if `may_start` holds for the whole log then."""
        with self.lock:
            self.may_start = may_start
            try:
                yield
            finally:
                self.may_start = None

    def keyed(self, call: str, key: str | None) -> list[tuple[int | None, str]]:
        """Return (number of the trial, event) for each event that an earlier call with this key wrote."""
        found: list[tuple[int | None, str]] = []
        if key is None:
            return found
        for i in itertools.count():
            event = self._keyed.get(_stored_key(call, i, key))
            if event is None:
                break
            [body] = self.core.events(event, event + 1)
            found.append((self.history.concerned(event), body))
        return found

    # The methods of a core that write. Some of them have more arguments here.

    def suggest(
        self,
        n: int,
        context: list[float] | None,
        time: Callable[[], float],
        key: str | None,
        expires_after: float | None,
        feasible: Feasible | None = None,
        fidelity: float | None = None,
    ) -> list[int]:
        """Start n trials, or find the trials of the key. Return their numbers, or [] if `may_start` returns False."""

        def proposal() -> list[str]:
            return self.core.propose(n, context, time(), expires_after, feasible, fidelity)

        def start(events: list[str], made_for: tuple[int, int], again: bool, uncommitted: Events) -> list[int] | None:
            """Return the numbers of the trials, or None if others wrote after a proposal that is not repeated."""
            if self.keyed("suggest", key):
                return self._earlier(n, context, fidelity, key)
            if self.may_start is not None and not self.may_start():
                return []
            if self._state() != made_for:
                if not again:
                    return None
                events = proposal()
            first = len(self.core)
            names = [None if key is None else _stored_key("suggest", i, key) for i in range(n)]
            uncommitted.extend(zip(events, names, strict=True))
            return list(range(first, first + n))

        def attempts() -> list[int]:
            for _ in range(_ATTEMPTS):
                self.sync()
                if self.keyed("suggest", key):
                    return self._earlier(n, context, fidelity, key)
                made_for, begin = self._state(), clocks.perf_counter()
                events = proposal()
                quick = clocks.perf_counter() - begin < _QUICK
                started = self._write(partial(start, events, made_for, quick))
                if started is not None:
                    return started
            started = self._write(partial(start, [], (-1, -1), True))
            assert started is not None  # the last attempt makes the proposal again with the lock
            return started

        return self._until_written(attempts)

    def _earlier(self, n: int, context: list[float] | None, fidelity: float | None, key: str | None) -> list[int]:
        """Return the trials that a key started, if the key was used for the same request."""
        numbers = [number for number, _ in self.keyed("suggest", key) if number is not None]
        same = len(numbers) == n and all(self.core.trial(i).context == (context or []) for i in numbers)
        if fidelity is not None:
            # Enqueued points may have another fidelity.
            same = same and all(self.core.was_enqueued(i) or self.core.trial(i).fidelity == fidelity for i in numbers)
        if not same:
            raise InvalidSetting(f"key={key!r} started {len(numbers)} trials before, in a request other than this one")
        return numbers

    def record(self, action: Action, time: float | None) -> int | None:
        """Log an action. Return the number of the trial that it starts or changes, or None if nothing is logged."""
        return self._until_written(lambda: self._record(action, time, None))

    def record_all(self, actions: Sequence[Action], time: float | None) -> list[int | None]:
        """Log either all actions or none."""

        def record() -> list[int | None]:
            return self._write(lambda _: [self._record(action, time, None) for action in actions])

        return self._until_written(record)

    def _record(self, action: Action, time: float | None, key: str | None) -> int | None:
        def write(uncommitted: Events) -> int | None:
            valid = self.core.validate(action, time)
            if valid is None:
                return None
            event, number = valid
            # If a call has several actions, all of them are new trials or enqueued points.
            number = None if number is None else number + len(uncommitted)
            uncommitted.append((event, None if key is None else _stored_key("observe", 0, key)))
            return number

        return self._write(write)

    def observe(self, action: Action, time: float, key: str | None) -> None:
        """Log an observation, unless an earlier call with this key logged it."""

        def observe(_: Events) -> None:
            if not self._observed_with(key, action):
                self._record(action, time, key)

        self._until_written(lambda: self._write(observe))

    def _observed_with(self, key: str | None, action: Action) -> bool:
        """Return whether an earlier call with this key was carried out."""
        for other, event in self.keyed("observe", key):
            if not self.core.is_report_of(event, other, action):
                raise InvalidSetting(
                    f"key={key!r} reported another value, std, cost or params, or for another trial, before "
                    f"(trial {other}): use another key for another report"
                )
            return True
        return False

    # The methods of a core that only read.

    def recommend(
        self, context: list[float] | None, time: float | None, feasible: Feasible | None = None
    ) -> tuple[Place, float, float] | None:
        """Return (place, mean, std) of the point with the best posterior mean, or None before the first observation."""
        return self.core.recommend(context, time, feasible)

    def predict(self, points: Array, time: float | None, pending: bool) -> tuple[Array, Array] | None:
        """Return the posterior mean and standard deviation of f, or None before the first observation."""
        return self.core.predict(points, time, pending)

    def surrogate(self, time: float | None, pending: bool) -> tuple[GaussianProcess, float, float, float] | None:
        """Return (model, mean, scale, log slope), as the core does, or None before the first fit."""
        return self.core.surrogate(time, pending)

    def acquisition(
        self, points: Array, context: list[float] | None, time: float | None, *, feasible: Feasible | None = None
    ) -> Array | None:
        """Return the acquisition of the next suggestion, or None before the first observation."""
        return self.core.acquisition(points, context, time, feasible)

    def leave_one_out(self, time: float | None) -> tuple[list[int], Array, Array] | None:
        """Return (trial numbers, mean, std), each value predicted from all others. None before any observation."""
        return self.core.leave_one_out(time)

    def now(self, time: float | None) -> float:
        """Return the time on the study's clock."""
        return self.core.now(time)

    def trial(self, number: int) -> _core.TrialRecord:
        """Return a trial in its present state."""
        with self.lock:
            return self.core.trial(number)

    def numbers(self, state: str | None) -> list[int]:
        """Return the numbers of the trials in a state, or of all trials."""
        return self.core.numbers(state)

    def best(self) -> int | None:
        """Return the number of the trial with the largest value."""
        return self.core.best()

    def events(self, start: int) -> list[str]:
        """Return the log from event number `start` on, as JSON."""
        return self.core.events(start)

    def n_events(self) -> int:
        """Return the length of the log."""
        return self.core.n_events()

    def __len__(self) -> int:
        return len(self.core)


def _stored_key(call: str, i: int, key: str) -> str:
    """Return the stored key of the i-th event of a call with a key."""
    return f"{call}:{i}:{key}"
