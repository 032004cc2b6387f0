"""The open studies of a server: one object for each study, which one thread at a time uses."""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from belated.errors import InvalidSetting, StoreError
from belated.optimizers.actions import Records
from belated.optimizers.problem import Problem
from belated.optimizers.request import Carrier, Request
from belated.optimizers.tables.reports import Reported, numbers_of
from belated.serve.problems import OtherStudy, StudyExists, TrialChanged, UnknownStudy
from belated.store import Store, open_store
from belated.study.definition import optimizer_from
from belated.study.shared_log import Read
from belated.study.study import Study, check_key, checked_author
from belated.warn import warn

T = TypeVar("T")

#: Maximum number of open studies without a running call. The least recently used study is closed first.
MAX_OPEN = 64

#: Maximum work of a definition that a client sends: the number of columns, times the number of outcomes, times the
#: settings below divided by their units. On one processor the first 20 suggestions then take at most about two seconds.
MOST_WORK = 1000

# Settings that increase the work, each with the value up to which it does not count. The work depends on the square of
# the effort. Some acquisitions take ten times as long as others.
_UNITS = {
    "Search.effort": 1,
    "Search.direct": 100,
    "Search.multistart": 10,
    "Integrate.n": 32,
    "ThompsonSampling.n_features": 1024,
    "GP.n_restarts": 4,
    "GP.n_refit_restarts": 2,
    "Initial.n": 1000,
    "BayesOpt.initial": 1000,
    "BPEDelay.n_points": 2500,
}
_TIMES = dict.fromkeys(("thompson", "ThompsonSampling", "max_variance", "MaxVariance", "ucb_pe", "UCBPE"), 10)
_TIMES |= dict.fromkeys(("aegis", "AEGiS", "local_penalization", "LocalPenalization", "playbook", "PLAyBOOK"), 10)


@dataclass
class Sent:
    """The parts of a request that are not arguments of the study's method."""

    #: The time on the study's clock. None stands for the time of this machine.
    now: float | None = None
    #: The revision in which the arguments are read. None stands for the present revision.
    revision: int | None = None
    by: str | None = None
    key: str | None = None
    #: The number of events that the client has read, and the trials that must not have changed since then.
    expected: int | None = None
    numbers: Sequence[int] = ()
    #: The digest of a table, of which the request writes the values with its key.
    table: str | None = None


_SENT: ContextVar[Sent] = ContextVar("sent", default=Sent())  # noqa: B039


class ServedStudy(Study):
    """A study whose callers give their name, a key, and the revision in which their arguments are read."""

    def _n_read(self) -> int | None:
        return _SENT.get().revision

    def _author(self) -> str | None:
        return _SENT.get().by

    @property
    def _key(self) -> str | None:  # type: ignore[override]
        return _SENT.get().key

    def _start_trials(self, request: Request, *, key: str | None = None, **options: Any) -> list[int]:
        if key is not None:
            self.sync()
            self._check_key_of("suggest", key)
        return super()._start_trials(request, key=key, **options)

    def _record_from(
        self,
        read: Read,
        revision: int | None,
        call: tuple[str, str, str] | None = None,
        notice: Callable[[str], None] = warn,
        *,
        fits: bool = False,
    ) -> list[int | None]:
        sent = _SENT.get()
        if sent.table is not None and sent.key is not None:
            call = ("table", sent.key, sent.table)

        def checked(problem: Problem, records: Records, carrier: Carrier | None) -> list[Any]:
            if call is not None:
                self._check_key_of(*call[:2])
            if sent.expected is not None:
                self._check_unchanged_since(sent.expected, sent.numbers)
            return read(problem, records, carrier)

        numbers = super()._record_from(checked, revision, call, notice, fits=fits)
        # Later calls of this request see the trials as the first call has left them.
        sent.expected = sent.key = sent.table = None
        return numbers

    def _observe_table(self, table: Any, *options: Any) -> Reported:
        _SENT.get().numbers = numbers_of(table)
        return super()._observe_table(table, *options)

    def _check_key_of(self, call: str, key: str) -> None:
        """Refuse a key of another call. Without a server, keys of suggestions and of reports may be equal."""
        others = [each for each in self._log.calls_with(key) if each != call]
        if others:
            raise InvalidSetting(f"key={key!r} belongs to a call of {others[0]}: use another key for another call")

    def _check_unchanged_since(self, expected: int, numbers: Sequence[int]) -> None:
        history = self._log.history
        numbers = [number for number in numbers if number < len(self._log)]
        changed = [number for number in numbers if history.last(number) >= expected]
        if expected > self._log.n_events():
            changed = list(numbers)
        if changed:
            raise TrialChanged(self.name, expected, changed)


def clock() -> float:
    """Return the time in the request, in seconds; by default, the time of this machine."""
    now = _SENT.get().now
    return time.time() if now is None else now


@contextmanager
def at(study: Study, sent: Sent) -> Iterator[None]:
    """Return a context in which the study's methods get these parts of a request."""
    if sent.now is not None and study.clock != "seconds":
        raise InvalidSetting(f"now={sent.now!r} is given but not used: study {study.name!r} has clock='iterations'")
    if sent.by is not None:
        checked_author(sent.by)
    if sent.key is not None:
        check_key(sent.key)
    token = _SENT.set(sent)
    try:
        yield
    finally:
        _SENT.reset(token)


class _Open:
    """A study that is open, or will be opened."""

    def __init__(self) -> None:
        # Requests for one study wait here in the order of arrival, without holding a thread.
        self.turn = anyio.CapacityLimiter(1)
        self.study: Study | None = None
        self.n_calls = 0


class OpenStudies:
    """The studies of a store. A study is opened at the first request for this study."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._turn: anyio.CapacityLimiter | None = None
        self._has_studies = False

    async def call(self, name: str, work: Callable[[Study], T], study_id: int | None = None) -> T:
        """Call `work` in a thread with the study of this name, and return the result.

        Raises
        ------
        UnknownStudy
            The study does not exist.
        OtherStudy
            The study has another id than `study_id`.
        """
        return await self._in_turn(name, lambda entry: work(self._loaded(name, entry, study_id)))

    async def create(self, name: str, definition: dict[str, Any], work: Callable[[Study], T]) -> tuple[bool, T]:
        """Return whether the study is new (False if it existed with an equal definition), and the result of `work`.

        Raises
        ------
        InvalidSetting
            The definition does not define an optimizer.
        StudyExists
            A study of this name has another definition.
        """

        def create(entry: _Open) -> tuple[bool, T]:
            optimizer = read_definition(definition)
            self.read_names()  # raises an error if the store is gone, instead of creating it again
            # If another process creates the study in the meantime, both answers say that the study was created,
            # although it exists only once.
            found = self._store.header(name) is not None
            try:
                study = ServedStudy(name, self._store.url, optimizer, time=clock)
            except InvalidSetting as error:
                if not found:
                    raise
                raise StudyExists(str(error)) from None
            if entry.study is None or entry.study._log.id != study._log.id:
                entry.study = study
            self._has_studies = True
            return not found, work(study)

        return await self._in_turn(name, create)

    async def names(self) -> list[str]:
        """Return the names of all studies, the oldest first. Raise StoreError if they cannot be read."""
        self._turn = self._turn or anyio.CapacityLimiter(1)
        names: list[str] = await anyio.to_thread.run_sync(self.read_names, limiter=self._turn)
        if any(not isinstance(name, str) for name in names):  # SQLite stores any value in any column
            raise StoreError("the name of a study is damaged: restore a copy of the store")
        return names

    def close(self) -> None:
        """Close all studies and their connections."""
        self._open.clear()

    def read_names(self) -> list[str]:
        """Return the names of all studies, in this thread. Raise StoreError if the store cannot be read."""
        try:
            names = self._store.names()
        except StoreError:
            # Before any study has been created, the table or the file is missing. Every name is then unknown.
            if self._has_studies or self._store.header("study") is not None:
                raise
            return []
        self._has_studies = self._has_studies or bool(names)
        return names

    def _loaded(self, name: str, entry: _Open, study_id: int | None) -> Study:
        if entry.study is not None and study_id not in (None, entry.study._log.id):
            found = self._store.header(name)
            if found is None or found.id != entry.study._log.id:
                entry.study = None  # another process has deleted it
        if entry.study is None:
            # Each study has a store object with its own connection, so that studies do not wait for each other.
            store = open_store(self._store.url)
            if store.header(name) is None:
                self.read_names()  # raises StoreError if the whole store is gone
                raise UnknownStudy(f"there is no study {name!r}: GET /v1/studies lists the studies")
            entry.study = ServedStudy.load(name, store, time=clock)
            self._has_studies = True
        if study_id not in (None, entry.study._log.id):
            raise OtherStudy(
                f"study {name!r} has the id {entry.study._log.id}, not {study_id}: it was deleted and created again"
            )
        return entry.study

    async def _in_turn(self, name: str, work: Callable[[_Open], T]) -> T:
        entry = self._open.setdefault(name, _Open())
        self._open.move_to_end(name)
        entry.n_calls += 1

        def call() -> T:
            try:
                return work(entry)
            except StoreError:
                # Opening the store again may solve the problem.
                entry.study = None
                raise

        try:
            answer: T = await anyio.to_thread.run_sync(call, limiter=entry.turn)
            return answer
        finally:
            entry.n_calls -= 1
            if entry.study is None and not entry.n_calls and self._open.get(name) is entry:
                del self._open[name]
            self._close_surplus()

    def _close_surplus(self) -> None:
        # A study with a running call stays open. If a second object were opened, calls would not be made in the order
        # of arrival.
        surplus = max(0, len(self._open) - MAX_OPEN)
        for name in [name for name, entry in self._open.items() if not entry.n_calls][:surplus]:
            del self._open[name]


def read_definition(definition: dict[str, Any]) -> Any:
    """Return the optimizer of a definition that a client sent. Raise InvalidSetting if the definition is invalid."""
    problem, strategy = definition.get("problem"), definition.get("strategy")
    known = set(definition) <= {"problem", "strategy", "stopping", "seed"}
    if not (known and isinstance(problem, dict) and isinstance(strategy, dict)):
        raise InvalidSetting(
            'definition is not usable: pass {"problem": {"space": [{"name": "x", "kind": "Real", "low": 0, "high": '
            '1}]}, "strategy": {"kind": "BayesOpt"}}, and "stopping" and "seed" if needed; omitted entries have their '
            "defaults"
        )
    if "constraints" in problem:
        raise InvalidSetting("definition has constraints, which are functions: create such a study in Python")
    work = (_n_columns(problem) + _linear_work(problem)) * max(1, _length(problem, "outcomes")) * _work(strategy)
    if work > MOST_WORK:
        raise InvalidSetting(
            f"definition needs {work:,.0f} units of work, and a server accepts {MOST_WORK:,}: pass fewer parameters or "
            "candidates, or smaller settings of the search and the model, or create the study in Python"
        )
    try:
        return optimizer_from(definition, clock)
    except StoreError as error:
        raise InvalidSetting(str(error)) from None


def _n_columns(problem: dict[str, Any]) -> float:
    """Return the number of columns of the domain, weighted by the time that the search takes for them."""
    parts = [problem.get(name) for name in ("space", "context", "candidates")]
    sizes = [_size(each) for part in parts if isinstance(part, list) for each in part if isinstance(each, dict)]
    return max(1, sum(sizes), _length(parts[2], "rows") / 100)


def _linear_work(problem: dict[str, Any]) -> float:
    """Return the work of linear constraints, in columns: they are met in each combination of active parameters."""
    linear = problem.get("linear")
    constraints = [each for each in linear if isinstance(each, dict)] if isinstance(linear, list) else []
    work = 0.0
    # Quadratic programs over all columns are solved for steps, or for several constraints.
    if len(constraints) > 3 or any(each.get("step") is not None for each in constraints):
        work += 9 * _n_columns(problem)
    for each in constraints:
        n_terms = max(_length(each, "names"), _length(each, "coefficients"))
        work += n_terms * (3 if each.get("step") is None else 16)
    space = problem.get("space")
    dimensions = [each for each in space if isinstance(each, dict)] if work and isinstance(space, list) else []
    if any(each.get("when") for each in dimensions):
        for each in dimensions:
            work *= max(1, _length(each, "choices"))
    return work


def _size(dimension: dict[str, Any]) -> int:
    kind, has_step = str(dimension.get("kind")), dimension.get("step") is not None
    size = 16 if has_step else {"Real": 1, "Ordinal": 10, "Categorical": 4}.get(kind, 16)
    return max(size, 4 if dimension.get("when") else 1, _length(dimension, "choices"))


def _length(data: Any, name: str) -> int:
    found = data.get(name) if isinstance(data, dict) else None
    return len(found) if isinstance(found, list) else 0


def _work(data: Any) -> float:
    """Return the factor by which settings increase the work."""
    if isinstance(data, str):
        return _TIMES.get(data, 1)
    work = 1.0
    for name, value in data.items() if isinstance(data, dict) else ():
        numbers = [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, (int, float))]
        if numbers and (unit := _UNITS.get(f"{data.get('kind')}.{name}")):
            factor = max(1, min(max(numbers), 10**9) / unit)
            work *= factor * factor if name == "effort" else factor
        work *= _work(value)
    return work
