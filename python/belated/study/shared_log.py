"""The log that processes share: what an optimizer's core is to it, with a store between."""

import json
import threading
import time as clocks
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from belated import _core
from belated._core import BelatedError, InvalidSetting
from belated.store import Store, StoreError
from belated.store.checksums import verified, with_checksum
from belated.store.interface import Record

# A proposal quicker than this is made again within the write lock: letting go of the lock would take longer.
_QUICK = 0.002

# How often a slow proposal is made again without the lock, because others wrote meanwhile.
_ATTEMPTS = 3

# How the events begin that start a trial.
_STARTS = ('{"Suggested"', '{"Added"')


class SharedLog:
    """What `_core.Optimizer` is to an optimizer, with a store between: the log there is the truth.

    The core here holds a prefix of it. Whatever is written is drafted with the whole log at hand and the
    store's write lock held, and comes to the core once it is committed.
    """

    def __init__(self, core: _core.Optimizer, store: Store, name: str, id: int, wall: Callable[[], float]) -> None:
        self.core = core
        self.store = store
        self.name = name
        self.id = id
        self.wall = wall
        self.lock = threading.RLock()
        self._draft: list[tuple[str, str | None]] | None = None
        # What calls with a key wrote: (call, key) → (trial number, event).
        self._keyed: dict[tuple[str, str], list[tuple[int, str]]] = {}

    # Reading and writing the store.

    def sync(self) -> int:
        """Take in what others wrote; the number of events that were new."""
        with self.lock:
            return self._take_in(self.store.events(self.name, self.core.n_events()))

    def _take_in(self, records: list[Record]) -> int:
        if records:
            known = self.core.n_events()
            self._extend(verified(self.name, self.id, known, records))
        return len(records)

    def _extend(self, records: list[Record]) -> None:
        number = len(self.core)
        keys = [None if record.key is None else record.key.split(":", 2) for record in records]
        if any(key is not None and len(key) != 3 for key in keys):
            raise StoreError(f"study {self.name!r} has an event with a key that no call can have had")
        try:
            self.core.extend([record.body for record in records])
        except BelatedError as error:
            raise StoreError(f"study {self.name!r} has an event that cannot have happened: {error}") from error
        for record, names in zip(records, keys, strict=True):
            if names is not None:
                call, _, key = names
                self._keyed.setdefault((call, key), []).append((number, record.body))
            number += record.body.startswith(_STARTS)

    @contextmanager
    def writing(self) -> Iterator[list[tuple[str, str | None]]]:
        """The write lock and a core that is up to date; the events put into the list are committed at the end."""
        with self.lock:
            if self._draft is not None:
                yield self._draft
                return
            records = []
            try:
                with self.store.writing(self.name) as log:
                    self._take_in(log.events(self.core.n_events()))
                    self._draft = []
                    yield self._draft
                    if self._draft:
                        at, start = self.wall(), self.core.n_events()
                        for seq, (body, key) in enumerate(self._draft, start):
                            records.append(with_checksum(self.id, seq, key, at, body))
                        log.append(records)
            finally:
                self._draft = None
            # Committed. Should this be interrupted, the next sync finds them.
            if records:
                self._extend(records)

    def keyed(self, call: str, key: str | None) -> list[tuple[int, str]]:
        """(trial number, event) of what an earlier call with this key wrote."""
        return [] if key is None else self._keyed.get((call, key), [])

    # The methods of `_core.Optimizer` that write, and what they lack there.

    def suggest(
        self,
        n: int,
        context: NDArray[np.float64] | None,
        now: Callable[[], float | None],
        key: str | None,
        expires_after: float | None,
    ) -> list[int]:
        """Start n trials, or find those that the key started; their numbers."""

        def proposal() -> list[str]:
            return self.core.propose(n, context, now(), self.wall(), expires_after)

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
                with self.writing() as draft:
                    if self.keyed("suggest", key):
                        break
                    if self.core.n_events() != made_for:
                        if attempt < _ATTEMPTS and not quick:
                            continue
                        events = proposal()
                    first = len(self.core)
                    names = [None if key is None else f"suggest:{i}:{key}" for i in range(n)]
                    draft.extend(zip(events, names, strict=True))
                return list(range(first, first + n))
            return self._earlier(n, context, key)

    def _earlier(self, n: int, context: NDArray[np.float64] | None, key: str | None) -> list[int]:
        """The trials that a key started, if it was for the same request."""
        found = self.keyed("suggest", key)
        wanted = [] if context is None else context.tolist()
        if len(found) != n or any(json.loads(event)["Suggested"]["context"] != wanted for _, event in found):
            raise InvalidSetting(f"key={key!r} started {len(found)} trials before, in a request other than this one")
        return [number for number, _ in found]

    def observe(
        self,
        number: int,
        value: float,
        now: float | None,
        amend: bool,
        std: float | None = None,
        key: str | None = None,
    ) -> None:
        with self.writing() as draft:
            if not self._observed_with(key, number, value, std):
                self._log(draft, self.core.draft_observe(number, value, now, amend, std), key)

    def replicate(self, number: int, value: float, now: float | None, key: str | None, std: float | None) -> None:
        """A value for the point of a trial: the trial's own, or where it has one, that of a trial of its own."""
        with self.writing() as draft:
            trial = self.core.trial(number)
            if self._observed_with(key, number, value, std):
                return
            if trial.value is None:
                event = self.core.draft_observe(number, value, now, False, std)
            else:
                context = trial.context if trial.context.size else None
                event = self.core.draft_add(trial.point, trial.index, context, value, now, std)
            self._log(draft, event, key)

    def _observed_with(self, key: str | None, number: int, value: float, std: float | None) -> bool:
        """Whether a call with this key was carried out before."""
        for other, event in self.keyed("observe", key):
            [(kind, facts)] = json.loads(event).items()
            point = self.core.trial(number).point
            same = facts["point"]["x"] == point.tolist() if kind == "Added" else facts["number"] == number
            if not same or (facts["value"], facts.get("std")) != (value, std):
                raise InvalidSetting(
                    f"key={key!r} reported another value, or for another trial, before (trial {other})"
                )
            return True
        return False

    @staticmethod
    def _log(draft: list[tuple[str, str | None]], event: str | None, key: str | None = None) -> None:
        if event is not None:
            draft.append((event, None if key is None else f"observe:0:{key}"))

    def fail(self, number: int, now: float | None) -> None:
        with self.writing() as draft:
            self._log(draft, self.core.draft_fail(number, now))

    def abandon(self, number: int, now: float | None) -> None:
        with self.writing() as draft:
            self._log(draft, self.core.draft_abandon(number, now))

    def add(
        self,
        point: NDArray[np.float64],
        index: int | None,
        context: NDArray[np.float64] | None,
        value: float | None,
        now: float | None,
        std: float | None = None,
    ) -> int:
        with self.writing() as draft:
            number = len(self.core) + len(draft)
            self._log(draft, self.core.draft_add(point, index, context, value, now, std))
            return number

    def enqueue(self, point: NDArray[np.float64], index: int | None) -> None:
        with self.writing() as draft:
            self._log(draft, self.core.draft_enqueue(point, index))

    # Those that only read.

    def surrogate(self, now: float | None, pending: bool) -> tuple[_core.GaussianProcess, float, float] | None:
        return self.core.surrogate(now, pending, self.wall())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.core, name)

    def __len__(self) -> int:
        return len(self.core)
