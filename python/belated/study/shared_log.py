"""A log that processes share. The log has the methods of a core and keeps its events in a store."""

import json
import math
import os
import re
import threading
import time as clocks
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

from belated import _core
from belated._core import Action, BelatedError, Draft
from belated.errors import InvalidPoint, InvalidSetting, StoreError, TrialChanged, UnknownTrial
from belated.optimizers.actions import Records
from belated.optimizers.constraints import Constraint, Function, checked_functions
from belated.optimizers.log import Feasible, Limit
from belated.optimizers.optimizer import Optimizer
from belated.optimizers.problem import Problem
from belated.optimizers.request import Carrier, ReadRequest, Request
from belated.optimizers.values import as_data
from belated.store import Store
from belated.store.checksums import verified, with_checksum
from belated.store.interface import EventsGone, NotWritten, Record
from belated.study.definition import optimizer_from
from belated.study.history import History
from belated.study.revisions import Revision, Stage, StageCarrier, converted
from belated.warn import logger

T = TypeVar("T")

# The events to write, each with its key in the store, or None. The event of a revision is a text.
Events: TypeAlias = list[tuple[Draft | str, str | None]]

# The position of an outcome, its value, and the interval in which the value was expected.
MarkedValue: TypeAlias = tuple[int, float, float, float]

# A function that reads the arguments of a call; see `belated.optimizers.actions.actions_of`.
Read: TypeAlias = Callable[[Problem, Records, Carrier | None], list[Action]]

#: The names of the calls that may have a key.
CALLS: tuple[str, ...] = ("suggest", "observe", "enqueue", "fail", "abandon", "report", "stop", "note", "confirm")
CALLS += ("withdraw", "add", "table")

#: The parts of the stored key of an event: the name of the call, the number of the event within the call, the digest of
#: the call, and the key that the caller passed.
KEY_PARTS = re.compile(rf"({'|'.join(CALLS)}):([0-9]{{1,10}})(?:-([0-9a-f]{{16}}))?:(.+)", flags=re.DOTALL)

LOGGER = logger()


class Call(NamedTuple):
    """A call that writes: its key, and what its caller has read."""

    #: The name of the call, one of `CALLS`.
    name: str
    #: The trials that the call concerns.
    numbers: Sequence[int] = ()
    #: The key that the caller passed, and the digest of the arguments.
    key: str | None = None
    digest: str | None = None
    #: Whether no call of another name may have the key.
    is_unique: bool = False
    #: The number of events that the caller has read, since which the trials must not have changed.
    expected: int | None = None

    def stored_key(self, i: int) -> str | None:
        """Return the stored key of the i-th event of this call, or None without a key."""
        return None if self.key is None else f"{self.name}:{i}-{self.digest}:{self.key}"


#: A call without a key whose caller has read nothing; it is checked against no trial.
PLAIN_CALL = Call("")

# An outdated proposal that took less than this number of seconds is repeated while the write lock is held, because
# releasing the lock and taking it again would take longer.
_QUICK = 0.002

# A slow proposal that is outdated, because other processes wrote during it, is repeated without the lock. Attempt
# number `_ATTEMPTS` may be repeated with the lock.
_ATTEMPTS = 3

# If the connection is lost before a call writes, and other processes write in the meantime, the call is made at most
# this number of times.
_LOST_CONNECTIONS = 21

# If the last read was more than this number of seconds ago, read the log before taking the write lock: reading many
# events while the lock is held would keep other processes from writing.
_LONG_AGO = 1.0


class SharedLog:
    """The log of a study: a core whose events are kept in a store. The stored log is authoritative.

    The core has the first events of the stored log. Events are validated against the whole log while the store's write
    lock is held. Events are applied to the core after they are committed.
    """

    def __init__(self, stage: Stage, store: Store, name: str, id: int, until: int | None = None) -> None:
        core = stage.optimizer._log
        self.core = core
        #: The optimizers with which the study was created and revised. Each uses this log's core.
        self.stages = [stage]
        # The log ends before revision number `until`; by default, it does not end.
        self._until = until
        self._is_over = False
        # The last revision of this object, its stage, and the trials and enqueued points in the new problem.
        self._prepared: tuple[str, Stage, tuple[Any, Any]] | None = None
        # The event of the last revision, and the functions that this process passed for the problem after an event.
        self._revised: str | None = None
        self._bound: tuple[str | None, Sequence[Constraint] | None] = (None, None)
        self.store = store
        self.name = name
        self.id = id
        self.history = History()
        self.lock = threading.RLock()
        # The process in which the log was last asked whether it was idle at the fork, and the answer.
        self._forked = os.getpid(), True
        # The number of events that this object has recorded, and the checksum of the last of these events.
        self._n_applied = core.n_events()
        self._last: bytes | None = None
        # The number and the checksum of the last event that is known to be on disk.
        self._synced: tuple[int, bytes] | None = None
        # The number of times that the whole log was read again, and the monotonic time of the last read of events.
        self._readings = 0
        self._read_at = -math.inf
        # The events written by calls with a key: "call:i:key" → the number of the event. The dict has only strings and
        # integers, which the garbage collector does not visit. Visiting other objects would take long and would happen
        # in every process after the same number of events, often while a process holds the write lock, so that the
        # others wait.
        self._keyed: dict[str, int] = {}
        # The digests of these calls: "call:key" → the digest of the request or submission.
        self._digests: dict[str, str] = {}
        # The methods of a core that only read.
        self.recommend, self.predict, self.acquisition = core.recommend, core.predict, core.acquisition
        self.surrogate, self.leave_one_out, self.durations = core.surrogate, core.leave_one_out, core.durations
        self.now, self.numbers, self.best, self.ending = core.now, core.numbers, core.best, core.ending
        self.best_first, self.pareto = core.best_first, core.pareto
        self.hypervolume, self.reference = core.hypervolume, core.reference
        self.validate, self.expected, self.feasibility = core.validate, core.expected, core.feasibility
        self.events, self.n_events, self.forecast_value = core.events, core.n_events, core.forecast_value
        self.delays, self.arrivals, self.lateness = core.delays, core.arrivals, core.lateness
        self.next_fidelity, self.status, self.window = core.next_fidelity, core.status, core.window
        self.contradiction = core.contradiction

    def was_idle_at_fork(self) -> bool:
        """Return, in a forked child, whether no thread was using the log. All studies with this log get one answer."""
        if self._forked[0] != os.getpid():
            self._forked = os.getpid(), self.lock.acquire(blocking=False)
            self.lock = threading.RLock()
        return self._forked[1]

    # Reading from the store and writing to it.

    def sync(self) -> int:
        """Apply the events that other processes wrote; return the number of new events."""
        with self.lock:
            return self._apply_new(partial(self.store.events, self.id))

    def _apply_new(self, read_from: Callable[[int], list[Record]]) -> int:
        """Apply the new events and return their number. `read_from` reads the events from a given number on."""
        if self._is_over:
            return 0
        known = self.core.n_events()
        if self._n_applied != known:
            # The last call was interrupted after the core had changed and before this object had recorded the change.
            return self._read_anew(read_from)
        try:
            # Read the last known event again, to check that the store still has this event.
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
        return self.core.n_events() - known

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
        del self.stages[1:]
        self._revised = None
        self._keyed.clear()
        self._digests.clear()
        self.history = History()
        self._n_applied = 0
        self._readings += 1
        self._note(records[: len(numbers)], numbers)
        self.apply(records[len(numbers) :])
        return self.core.n_events()

    def apply(self, records: list[Record]) -> None:
        """Append verified events to the known events."""
        while records and not self._is_over:
            numbers = self._written_to(self.core.extend, records)
            self._note(records[: len(numbers)], numbers)
            records = records[len(numbers) :]
            if records:  # the core stops before a revision
                if self._until is not None and len(self.stages) >= self._until:
                    self._is_over = True
                else:
                    self._apply_revision(records[0])
                records = records[1:]

    def set_constraints(self, functions: Sequence[Constraint], number: int) -> None:
        """Set the functions among the constraints, unless they were replaced after revision `number`."""
        with self.lock:
            if not functions or any(stage.is_constrained for stage in self.stages[number:]):
                return
            last = self.stages[-1]
            optimizer = optimizer_from(last.definition, last.optimizer.time, functions)
            vars(optimizer)["_log"] = self.core
            self.stages[-1] = replace(last, optimizer=optimizer)
            self._bound = self._revised, functions

    def functions(self) -> tuple[Sequence[Function], int]:
        """Return the functions among the constraints, and the number of the revision to which they belong."""
        with self.lock:
            return checked_functions(self.optimizer.constraints), len(self.stages)

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer in force."""
        return self.stages[-1].optimizer

    def _apply_revision(self, record: Record) -> None:
        """Change the core to the problem of a revision."""
        prepared, self._prepared = self._prepared, None
        try:
            if prepared is None or prepared[0] != record.body:
                revision = Revision.from_event(record.body)
                if revision is None:
                    raise StoreError(f"event {record.seq} of study {self.name!r} is not a revision")
                functions = self._bound[1] if record.body == self._bound[0] else None
                stage = self.stages[-1].after(revision, len(self.core), functions)
                prepared = record.body, stage, self._converted(stage)
            _, stage, found = prepared
            # Threads that read a trial find its problem by the number of the stage.
            self.stages.append(stage)
            try:
                self._revise_core(stage, record.body, found)
            except BaseException:
                self.stages.pop()
                raise
        except (BelatedError, ValueError, KeyError, TypeError) as error:
            raise StoreError(f"study {self.name!r} has a revision that cannot have happened: {error}") from error
        vars(stage.optimizer)["_log"] = self.core
        self._revised = record.body
        self._note([record], [None])
        self.history.note_revision()

    def _converted(self, stage: Stage) -> tuple[Any, Any]:
        stages, core = [*self.stages, stage], self.core
        found: tuple[Any, Any] = converted(stages, core, core.numbers(None), core.queued())
        return found

    def _revise_core(self, stage: Stage, body: str, found: tuple[Any, Any], only_check: bool = False) -> None:
        optimizer = stage.optimizer
        rule = None if optimizer._rule is None else json.dumps(as_data(optimizer._rule))
        strategy = json.dumps(optimizer._strategy_data())
        self.core.revise(stage.problem.core, strategy, rule, body, *found, only_check)

    def revise(self, prepare: Callable[[], tuple[str, Stage]]) -> None:
        """Log a revision. `prepare` returns its event and the next stage; it is called with the write lock held."""

        def write(events: Events) -> None:
            body, stage = prepare()
            found = self._converted(stage)
            for place, is_partial in found[1]:
                if stage.optimizer._constraints is not None and not is_partial:
                    stage.optimizer._constraints.check(place, "an enqueued point")
            self._revise_core(stage, body, found, only_check=True)
            self._prepared = body, stage, found
            self._bound = body, stage.optimizer.constraints
            events.append((body, None))

        self._until_on_disk(lambda: self._write(write))

    def carrier(self, revision: int | None) -> StageCarrier | None:
        """Return what carries arguments from an earlier problem to the present one; None for the present problem."""
        n = len(self.stages)
        if revision is not None and not 1 <= revision <= n:
            raise InvalidSetting(f"revision={revision}, and study {self.name!r} has {n}: pass one of these")
        return None if revision in (None, n) else StageCarrier(self.stages, revision - 1)

    def at(self, n_events: int) -> "SharedLog":
        """Return a log for reading that ends after a number of events."""
        first = self.stages[0]
        stage = Stage(optimizer_from(first.definition, first.optimizer.time), first.definition)
        earlier = SharedLog(stage, self.store, self.name, self.id)
        bodies = self.core.events(0)[:n_events]
        earlier.apply([with_checksum(self.id, seq, None, 0.0, body) for seq, body in enumerate(bodies)])
        return earlier

    def _written_to(self, write: Callable[[list[str]], list[int | None]], records: list[Record]) -> list[int | None]:
        for record in records:
            if record.key is not None and KEY_PARTS.fullmatch(record.key) is None:
                raise StoreError(f"study {self.name!r} has an event with a key that no call can have had")
        try:
            return write([record.body for record in records])
        except BelatedError as error:
            raise StoreError(f"study {self.name!r} has an event that cannot have happened: {error}") from error

    def _note(self, records: list[Record], numbers: list[int | None]) -> None:
        """Record the data about events that the core does not store."""
        self.history.note(records, numbers)
        for record in records:
            if record.key is not None and (parts := KEY_PARTS.fullmatch(record.key)):
                call, i, digest, key = parts.groups()
                self._keyed[f"{call}:{i}:{key}"] = record.seq
                self._digests[f"{call}:{key}"] = digest or ""
        if records:
            self._last = records[-1].checksum
        self._n_applied += len(records)

    def _state(self) -> tuple[int, int]:
        """Return numbers that change whenever an event is applied or removed."""
        return self._readings, self.core.n_events()

    def _write(self, action: Callable[[Events], T], by: str | None = None) -> T:
        """Call an action with the write lock and an up-to-date core; commit the events that the action appends.

        `by` is the author of drafted events.
        """
        if self._until is not None:
            raise InvalidSetting(
                f"revision {self._until} of study {self.name!r} is only for reading: open it without revision="
            )
        with self.lock:
            if clocks.monotonic() - self._read_at > _LONG_AGO:
                self.sync()
            events: Events = []
            records: list[Record] = []
            transaction = self.store.writing(self.id)
            try:
                with transaction as log:
                    self._apply_new(log.events)
                    result = action(events)
                    # The machine's clock gives this time, even if the user passed another clock for the study.
                    at = clocks.time()
                    if by is not None:
                        events = [(it if isinstance(it, str) else it.with_author(by), key) for it, key in events]
                    for seq, (event, key) in enumerate(events, self.core.n_events()):
                        body = event if isinstance(event, str) else event.text
                        records.append(with_checksum(self.id, seq, key, at, body))
                    if records:
                        log.append(records)
            except BaseException as error:
                # Without this call, an interrupt just before the `with` statement is entered or left would keep the
                # transaction open.
                transaction.__exit__(type(error), error, error.__traceback__)
                raise
            # The events are committed. If this step is interrupted, the next sync reads them.
            if records:
                self._synced = records[-1].seq, records[-1].checksum
                drafts = [event for event, _ in events if not isinstance(event, str)]
                if drafts:
                    self._note(records, self._written_to(lambda _: self.core.commit(drafts), records))
                else:
                    self.apply(records)
            return result

    def _until_on_disk(self, call: Callable[[], T]) -> T:
        """Make a call that reads or writes. Repeat the call if it wrote nothing because the connection was lost.

        When the call returns, the events of other processes on which the call depends are on disk, too.
        """
        with self.lock:
            for attempt in range(1, _LOST_CONNECTIONS + 1):
                try:
                    done = call()
                    if self._is_on_disk():
                        return done
                except NotWritten:
                    if attempt == _LOST_CONNECTIONS:
                        raise
            raise StoreError(f"the server of {self.store.url} crashes again and again: call again once it runs")

    def sync_to_disk(self) -> int:
        """Apply new events, then wait until these events are on disk, so that a crash cannot undo them."""
        return self._until_on_disk(self.sync)

    def _is_on_disk(self) -> bool:
        """Wait until all known events are on disk. If some events are gone, read the log again and return False."""
        last = self.core.n_events() - 1
        if not self.store.shows_unsynced or last < 0 or (self._synced is not None and self._synced[0] == last):
            return True
        checksum, readings = self._last, self._readings
        self.store.flush(self.id)
        # The server may have crashed in the meantime.
        self.sync()
        if checksum is not None and self._readings == readings:
            self._synced = last, checksum
        return self._readings == readings

    # Methods that write to the log. Some have further arguments, which the core's methods of the same name lack.

    def suggest(
        self,
        request: Request,
        constraints: Callable[[], Feasible | None],
        call: Call = Call("suggest"),  # noqa: B008
        may_start: Callable[[], bool] | None = None,
        limit: Limit | None = None,
        attrs: Sequence[str | None] = (),
        by: str | None = None,
    ) -> list[int]:
        """Start trials, or find the trials of an earlier call with the same key; return the numbers of the trials.

        The request is read in the present problem, and `constraints` returns the constraints of this problem.
        `may_start` is called with the write lock held. If it returns False, return []. `attrs` has the attributes of
        the trials as JSON, and `by` is the author of the events.
        """
        n = request.n
        known: tuple[int, tuple[ReadRequest, Feasible | None, StageCarrier | None]] | None = None

        def read() -> tuple[ReadRequest, Feasible | None, StageCarrier | None]:
            """Return the request and the constraints in the present problem, and what carried the request."""
            nonlocal known
            if known is None or known[0] != len(self.stages):
                carrier = self.carrier(request.revision)
                present = request if carrier is None else carrier.request(request)
                known = len(self.stages), (present.read_in(self.stages[-1].problem), constraints(), carrier)
            return known[1]

        def proposal() -> list[Draft]:
            (context, fidelity, fixed, shared), feasible, carrier = read()
            time, lease = self.stages[-1].problem.wall_time(), request.expires_after
            try:
                return self.core.propose(n, context, time, lease, feasible, fidelity, limit, fixed, shared)
            except InvalidPoint as error:
                if carrier is None or fixed is None:
                    raise
                raise carrier.refusal(error) from None

        def start(proposed: list[Draft], made_for: tuple[int, int], again: bool, events: Events) -> list[int] | None:
            """Return the numbers of the trials. Return None if the proposal is outdated and is not repeated here."""
            earlier = self._earlier(call)
            if earlier:
                return [number for number in earlier if number is not None]
            if may_start is not None and not may_start():
                return []
            if self._state() != made_for:
                if not again:
                    return None
                proposed = proposal()
            first = len(self.core)
            for i, text in enumerate(attrs):
                if text is not None:
                    proposed[i] = proposed[i].with_attrs(text)
            events.extend((event, call.stored_key(i)) for i, event in enumerate(proposed))
            return list(range(first, first + n))

        def attempts() -> list[int]:
            n_attempts, started = 0, None
            while started is None:
                self.sync()
                earlier = self._earlier(call)
                if earlier:
                    return [number for number in earlier if number is not None]
                n_attempts += 1
                made_for, begin = self._state(), clocks.perf_counter()
                proposed = proposal()
                again = clocks.perf_counter() - begin < _QUICK or n_attempts == _ATTEMPTS
                started = self._write(partial(start, proposed, made_for, again), by)
            return started

        return self._until_on_disk(attempts)

    def _earlier(self, call: Call) -> list[int | None]:
        """Return the trials of the events of an earlier call with the same key, or [].

        Raise an error if the key belongs to another call.
        """
        name, key, numbers = call.name, call.key, list[int | None]()
        if key is None:
            return numbers
        others = [each for each in self.calls_with(key) if each != name] if call.is_unique else []
        if others:
            raise InvalidSetting(f"key={key!r} belongs to a call of {others[0]}: use another key for another call")
        if f"{name}:{key}" not in self._digests:
            return numbers
        while (event := self._keyed.get(f"{name}:{len(numbers)}:{key}")) is not None:
            numbers.append(self.history.concerned(event))
        if self._digests[f"{name}:{key}"] != call.digest:
            used = {
                "suggest": f"started {len(numbers)} trials before, in a request other than this one",
                "observe": "reported another value, std, cost or params, or for another trial, before "
                f"(trial {numbers[0]}): use another key for another report",
                "enqueue": f"enqueued {len(numbers)} other points before: use another key for other points",
            }
            other = f"belongs to another call of {name} (trial {numbers[0]}): use another key for another call"
            raise InvalidSetting(f"key={key!r} {used.get(name, other)}")
        return numbers

    def _check_unchanged(self, numbers: Sequence[int], expected: int) -> None:
        """Raise TrialChanged if one of these trials has changed since a caller has read `expected` events."""
        changed = sorted({number for number in numbers if number < len(self.core)})
        n_events, found = self.n_events(), f"the study has only {self.n_events()} events"
        if expected <= n_events:
            changed = [number for number in changed if self.history.last(number) >= expected]
            shown = ", ".join(map(str, changed[:10])) + (", …" if len(changed) > 10 else "")
            found = f"{'trial' if len(changed) == 1 else 'trials'} {shown} of study {self.name!r} changed since then"
        if changed:
            error = TrialChanged(
                f"expected={expected}, and {found}: look at the present state, and pass the number of events that "
                "it has (nothing was changed)"
            )
            error.numbers = changed
            raise error

    def calls_with(self, key: str) -> list[str]:
        """Return the names of the calls that had a key."""
        return [call for call in CALLS if f"{call}:{key}" in self._digests]

    def submit(
        self,
        read: Read,
        revision: int | None,
        call: Call = Call("observe"),  # noqa: B008
        fits: bool = False,
        by: str | None = None,
    ) -> tuple[list[int | None], Mapping[str, int], list[tuple[int, MarkedValue]]]:
        """Log either all actions that `read` returns or none, unless an earlier call with the same key logged them.

        A call with a key that has no effect is logged, too, so that a repetition has no effect later. If `fits`, the
        model that marks values is fitted if necessary. `by` is the author of the events. `read` is called with the
        write lock held. It gets the problem in which the arguments of the call are read, and what carries them to the
        present problem.

        Returns
        -------
        list
            The number of the trial that each action starts or changes. It is None if nothing is logged. For an earlier
            call with the same key: the numbers of the trials of its events.
        dict
            The outcomes whose values were left out, with the numbers of the revisions that removed them.
        list
            The number of the trial of each marked value, and the value with its mark.
        """

        def write(events: Events) -> tuple[list[int | None], Mapping[str, int], list[tuple[int, MarkedValue]]]:
            if earlier := self._earlier(call):
                return earlier, {}, []
            if call.expected is not None:
                self._check_unchanged(call.numbers, call.expected)
            carrier = self.carrier(revision)
            problem = self.stages[-1 if carrier is None or revision is None else revision - 1].problem
            actions = read(problem, self.core, carrier)
            time = problem.wall_time()
            marked: list[tuple[int, MarkedValue]] = []
            numbers = [self._record(each, time, call, events, fits, marked) for each in actions]
            if call.key is not None and call.numbers and not events:
                known = min(call.numbers)
                if known >= len(self.core):
                    raise UnknownTrial(f"study {self.name!r} has none of the trials of this call")
                self._record(Action.acknowledge(known), time, call, events, False, marked)
            return numbers, {} if carrier is None else carrier.removed, marked

        return self._until_on_disk(lambda: self._write(write, by))

    def _record(
        self,
        action: Action,
        time: float | None,
        call: Call,
        events: Events,
        fits: bool,
        marked: list[tuple[int, MarkedValue]],
    ) -> int | None:
        """Validate an action, append its event, and add its marked values; return the number of its trial."""
        draft = self.core.validate(action, time, fits)
        if draft is None:
            return None
        # If a call starts several trials, their numbers follow one another.
        number = draft.number + len(events) if draft.number == len(self.core) else draft.number
        events.append((draft, None if call.key is None else call.stored_key(len(events))))
        if draft.marks and number is not None:
            marked.extend((number, mark) for mark in draft.marks)
        return number

    def trial(self, number: int) -> _core.TrialRecord:
        """Return a trial in its present state."""
        with self.lock:
            return self.core.trial(number)

    def __len__(self) -> int:
        return len(self.core)
