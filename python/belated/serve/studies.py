"""The open studies of a server: one object for each study, which one thread at a time uses."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from belated.errors import InvalidSetting, StoreError
from belated.serve.problems import OtherStudy, StudyExists, UnknownStudy
from belated.store import Store, open_store
from belated.study.definition import optimizer_from
from belated.study.shared_log import MarkedValue
from belated.study.study import Sent, Study, check_key, checked_author

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


# The time in the request, in seconds on the study's clock. None stands for the time of this machine.
_NOW: ContextVar[float | None] = ContextVar("now", default=None)


class ServedStudy(Study):
    """A study whose answers have the marked values and the refused cells, of which other studies warn."""

    def _warn_of_mark(self, number: int, mark: MarkedValue) -> None:
        pass

    def _warn_of_refused(self, text: str) -> None:
        pass


def clock() -> float:
    """Return the time in the request, in seconds; by default, the time of this machine."""
    now = _NOW.get()
    return time.time() if now is None else now


@contextmanager
def at(study: Study, now: float | None, by: str | None, sent: Sent) -> Iterator[Study]:
    """Return a context with the study at a time, for an author and what a client sent besides the arguments."""
    if now is not None and study.clock != "seconds":
        raise InvalidSetting(f"now={now!r} is given but not used: study {study.name!r} has clock='iterations'")
    if by is not None:
        checked_author(by)
    check_key(sent.key)
    token = _NOW.set(now)
    try:
        yield study._with(_user=by, _sent=sent)
    finally:
        _NOW.reset(token)


class Share:
    """A part of the time that calls may take: after a call, the next one waits until the part is kept."""

    def __init__(self, part: float) -> None:
        self._pause = 1 / part - 1
        self._free_at = -math.inf
        self.n_calls = 0

    def is_free(self) -> bool:
        """Return whether a call may begin now."""
        return self.n_calls == 0 and self.pause() <= 0.0

    def pause(self) -> float:
        """Return the seconds until the part of the time allows a call."""
        return self._free_at - time.monotonic()

    @contextmanager
    def used(self) -> Iterator[None]:
        """Return a context whose time is used by a call."""
        self.n_calls += 1
        start = time.monotonic()
        try:
            yield
        finally:
            now = time.monotonic()
            self._free_at = max(now, self._free_at) + self._pause * (now - start)
            self.n_calls -= 1


@dataclass(frozen=True)
class Estimate:
    """A call that takes long, and is made beside the turn of its study and in a share of the time."""

    #: The name under which the last answer is kept; None if the call is made for each request.
    name: str | None
    work: Callable[[Study], bytes]
    #: Return what the answer depends on. If it returns None, the call is short and is made in the turn.
    version: Callable[[Study], Any]
    #: Whether the call uses the model, of which it then has a copy, because other calls wait while a model is fitted.
    uses_model: bool = True


#: The parts of the time in which models, and charts, are computed for all clients together.
MODELS, CHARTS = 0.05, 0.02

#: The seconds that a request waits for a new estimate.
LONGEST_WAIT = 1.0


class _Open:
    """A study that is open, or will be opened."""

    def __init__(self) -> None:
        # Requests for one study wait here in the order of arrival, without holding a thread.
        self.turn = anyio.CapacityLimiter(1)
        self.study: Study | None = None
        self.n_calls = 0
        # The copy of the study whose model is used beside the turn, and the last estimates with their versions.
        self.copy: Study | None = None
        self.estimates: dict[str, tuple[Any, bytes]] = {}


class OpenStudies:
    """The studies of a store. A study is opened at the first request for this study."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._turn: anyio.CapacityLimiter | None = None
        self._has_studies = False
        self._shares = {True: Share(MODELS), False: Share(CHARTS)}
        self._turns: dict[bool, anyio.CapacityLimiter] = {}

    async def call(self, name: str, work: Callable[[Study], T], study_id: int | None = None) -> T:
        """Call `work` in a thread with the study of this name, and return the result.

        Raises
        ------
        UnknownStudy
            The study does not exist.
        OtherStudy
            The study has another id than `study_id`.
        """

        def call(entry: _Open) -> T:
            try:
                return work(self._loaded(name, entry, study_id))
            except StoreError:
                # Another process may have deleted the study during this request.
                known, entry.study = entry.study, None
                self._check_stored(name, None if known is None else known._log.id)
                raise

        return await self._in_turn(name, call)

    async def estimate(self, name: str, asked: Estimate, study_id: int | None = None, may_wait: bool = True) -> bytes:
        """Return an estimate: a new one if the study has changed and the share of the time allows it (within
        `LONGEST_WAIT`, if the request may wait), else the last.

        The first estimate of a study does not wait for the share.
        """

        def look(study: Study) -> tuple[Study, Any, bytes]:
            version = asked.version(study)
            return study, version, asked.work(study) if version is None else b""

        study, version, found = await self.call(name, look, study_id)
        if version is None:
            return found
        entry = self._open.setdefault(name, _Open())
        share, version = self._shares[asked.uses_model], (study._log.id, version)

        def known() -> bytes | None:
            last = None if asked.name is None else entry.estimates.get(asked.name)
            is_usable = last is not None and last[0][0] == study._log.id and (last[0] == version or not share.is_free())
            return last[1] if last is not None and is_usable else None

        def compute() -> bytes:
            found = known()  # another request may have computed it
            if found is None:
                try:
                    with share.used():
                        found = asked.work(self._copy_of(study, entry) if asked.uses_model else study)
                except StoreError:
                    entry.copy = None
                    raise
                if asked.name is not None:
                    entry.estimates[asked.name] = version, found
            return found

        turn = self._turns.setdefault(asked.uses_model, anyio.CapacityLimiter(1))
        last = known()
        is_old = last is not None and entry.estimates[asked.name or ""][0] != version
        if may_wait and is_old and share.n_calls == 0 and 0.0 < (pause := share.pause()) < LONGEST_WAIT:
            await anyio.sleep(pause)
            return await self.estimate(name, asked, study_id, may_wait=False)  # the study may have changed
        return await anyio.to_thread.run_sync(compute, limiter=turn) if last is None else last

    def _copy_of(self, study: Study, entry: _Open) -> Study:
        if entry.copy is None or entry.copy._log.id != study._log.id:
            entry.copy = ServedStudy.load(study.name, open_store(self._store.url), time=clock)
            _check_id(study.name, entry.copy._log.id, study._log.id)
        return entry.copy

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

    def _check_stored(self, name: str, study_id: int | None) -> None:
        """Raise an error if the store lacks the study of this name, or if it has another id than `study_id`."""
        found = self._store.header(name)
        if found is None:
            self.read_names()  # raises StoreError if the whole store is gone
            raise UnknownStudy(f"there is no study {name!r}: GET /v1/studies lists the studies")
        _check_id(name, found.id, study_id)

    def _loaded(self, name: str, entry: _Open, study_id: int | None) -> Study:
        # Another process may have deleted an open study, and created it again with the id of the request.
        if entry.study is None or study_id not in (None, entry.study._log.id):
            self._check_stored(name, study_id)
            # Each study has a store object with its own connection, so that studies do not wait for each other.
            entry.study = ServedStudy.load(name, open_store(self._store.url), time=clock)
            self._has_studies = True
            _check_id(name, entry.study._log.id, study_id)
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
                entry.study = entry.copy = None
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


def _check_id(name: str, found: int, wanted: int | None) -> None:
    if wanted not in (None, found):
        raise OtherStudy(f"study {name!r} has the id {found}, not {wanted}: it was deleted and created again")


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
