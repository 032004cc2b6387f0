"""The methods of studies that concern the whole study: list, copy and delete studies, and attributes of a study."""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from belated._core import Action, TrialRecord
from belated.errors import InvalidPoint, InvalidSetting, InvalidValue, StoreError
from belated.optimizers.constraints import Constraint
from belated.optimizers.life_cycle import LifeCycle
from belated.optimizers.log import Observation
from belated.optimizers.optimizer import Optimizer
from belated.optimizers.problem import SpaceLike
from belated.optimizers.report import attrs_as_json, merged_attrs, usable_attrs
from belated.optimizers.trial import utc
from belated.short_repr import short_repr
from belated.space.space import Space
from belated.store import Header, Store, open_store
from belated.store.checksums import header, read_header
from belated.study.definition import definition_of, optimizer_from
from belated.study.shared_log import SharedLog
from belated.warn import warn

S = TypeVar("S", bound="ManagedStudy")
T = TypeVar("T")

# A warning contains at most this many numbers of trials.
_NUMBERS_SHOWN = 10


@dataclass(frozen=True)
class StudySummary:
    """A summary of a stored study, from `Study.list`."""

    #: The name of the study.
    name: str
    #: The class of the optimizer.
    optimizer: str
    #: "maximize" or "minimize".
    direction: str
    #: The number of trials in all states, and the number for each state that occurs.
    n_trials: int
    n_by_state: dict[str, int]
    #: The best value and its params; None before the first value.
    best_value: float | None
    best_params: Any
    #: The attributes of the study.
    attrs: dict[str, Any]
    #: When the study was created, and when its last event was written (UTC).
    created_at: datetime | None
    last_event_at: datetime | None


class ManagedStudy(LifeCycle[SharedLog]):
    """The base class of `Study`, with the methods that concern the whole study."""

    name: str
    _store: Store
    if TYPE_CHECKING:

        def __init__(
            self,
            name: str,
            store: Store,
            optimizer: Optimizer | None = None,
            time: Callable[[], float] | None = None,
            *,
            constraints: Sequence[Constraint] | None = None,
        ) -> None: ...

        @classmethod
        def _create(
            cls,
            name: str,
            store: Store,
            optimizer: Optimizer,
            time: Callable[[], float] | None,
            attrs: Mapping[str, Any] | None = None,
        ) -> int | None: ...

    @classmethod
    def list(cls, store: "str | os.PathLike[str] | Store") -> "list[StudySummary]":
        """Return a summary of each study in a store, the oldest first. Each study is read completely.

        Parameters
        ----------
        store : str or path
            The store; see `Study`.

        Raises
        ------
        StoreError
            The store does not exist or cannot be read, or a study is damaged.

        Examples
        --------
        >>> import belated as bl, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> store = f"sqlite:///{folder.name}/dose.db"
        >>> study = bl.Study("first", store, bl.RandomSearch({"dose": (0.0, 1.0)}, seed=0))
        >>> study.suggest().observe(0.5)
        >>> trial = study.suggest()
        >>> [(each.name, each.n_by_state, each.best_value) for each in bl.Study.list(store)]
        [('first', {'observed': 1, 'pending': 1}, 0.5)]
        """
        opened = open_store(store)
        found = [unless_deleted(opened, name, lambda name: _summary(cls(name, opened))) for name in opened.names()]
        return [each for each in found if each is not None]

    @classmethod
    def delete(cls, name: str, store: "str | os.PathLike[str] | Store") -> None:
        """Delete a study with all its trials from a store. The deletion cannot be undone.

        A process that has opened the study gets `StoreError` at its next call. Calls that are being written are
        completed first.

        Parameters
        ----------
        name : str
            The name of the study.
        store : str or path
            The store; see `Study`.

        Raises
        ------
        StoreError
            The study does not exist, or the store cannot be written.

        Examples
        --------
        >>> import belated as bl, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> store = f"sqlite:///{folder.name}/dose.db"
        >>> study = bl.Study("first", store, bl.RandomSearch({"dose": (0.0, 1.0)}, seed=0))
        >>> bl.Study.delete("first", store)
        >>> bl.Study.list(store)
        []
        """
        opened = open_store(store)
        found = opened.header(name) if _is_printable(name) else None
        if found is None or not opened.delete(found.id):
            raise StoreError(f"there is no study {short_repr(name)} in {opened.url}, which has {opened.names()}")

    def copy(
        self: S, name: str, space: "SpaceLike | None" = None, store: "str | os.PathLike[str] | Store | None" = None
    ) -> S:
        """Create a study that begins with the trials of this study, perhaps with another space.

        This study is unchanged. The new study has its settings and attributes. Finished trials are copied with their
        values, std, cost, duration, errors, attrs, curves, and the times of starts and ends, at the points that were
        run. They count as added trials: estimates of delays leave them out. Pending trials, enqueued points and the
        times of reports are not copied.

        Parameters
        ----------
        name : str
            The name of the new study.
        space : mapping, optional
            The space of the new study. Trials whose point does not belong to this space are left out, with a
            `BelatedWarning` that counts them. A point belongs to the space if it has a value in range for each
            parameter that is not a constant, and if each parameter that the space lacks was a constant. Default None:
            the same space.
        store : str or path, optional
            The store of the new study; see `Study`. Default None: the store of this study.

        Returns
        -------
        Study

        Raises
        ------
        InvalidSetting
            A study of this name already exists; or this study has constraints, and was opened without them.
        InvalidSpace
            The space is invalid, or this study has candidates.

        Examples
        --------
        >>> import belated as bl
        >>> from belated.store.memory import MemoryStore
        >>> study = bl.Study("narrow", MemoryStore(), bl.RandomSearch({"dose": (0.0, 1.0)}, seed=0))
        >>> trials = study.add([{"dose": 0.2}, {"dose": 0.7}], [1.0, 2.0])
        >>> wide = study.copy("wide", {"dose": (0.0, 5.0), "unit": "mg"})
        >>> [trial.params for trial in wide.trials]
        [{'dose': 0.2, 'unit': 'mg'}, {'dose': 0.7, 'unit': 'mg'}]
        """
        target = self._store if store is None else open_store(store)
        exists = f"study {short_repr(name)} exists already in {target.url}: pass another name"
        if _is_printable(name) and target.header(name) is not None:
            raise InvalidSetting(exists)
        self._constraints_for("copy")  # raises an error if the constraints are missing
        log, mine = self._current_log(), self._optimizer
        made = optimizer_from(definition_of(mine), mine.time, mine.constraints)
        if space is not None:
            made.set_params(space=space)
        left_out: dict[str, list[int]] = {"pending": [], "outside": []}
        for number in log.numbers(None):
            record = log.trial(number)
            if record.state == "pending":
                left_out["pending"].append(number)
            elif not _add(made, record, mine):
                left_out["outside"].append(number)
        if self._create(name, target, made, made.time, self.attrs) is None:
            raise InvalidSetting(exists)
        copied = type(self)(name, target, time=made.time, constraints=mine.constraints)
        reasons = {"outside": "do not belong to the space", "pending": "are pending"}
        found = [f"{_numbers(left_out[key])} {reason}" for key, reason in reasons.items() if left_out[key]]
        if found:
            warn(f"study {name!r} has {copied.n_trials} of the {len(log)} trials of {self.name!r}: {'; '.join(found)}")
        return copied

    @property
    def attrs(self) -> dict[str, Any]:
        """A copy of the attributes of the study, read from the store; see `set_attrs`."""
        found: dict[str, Any] = read_header(self._header()).get("attrs", {})
        return found

    def set_attrs(self, attrs: Mapping[str, Any]) -> None:
        """Store data about the study, for example the version of a data set.

        Parameters
        ----------
        attrs : mapping
            Keys are strings. Values are None, booleans, finite numbers, strings, and lists and dicts of these. New
            entries replace earlier entries with the same key, including entries of other processes.

        Raises
        ------
        InvalidValue
            The attrs are not JSON data. The study is unchanged.
        StoreError
            The store cannot be written, or the study was deleted.

        Examples
        --------
        >>> import belated as bl
        >>> from belated.store.memory import MemoryStore
        >>> study = bl.Study("dose", MemoryStore(), bl.RandomSearch({"dose": (0.0, 1.0)}, seed=0))
        >>> study.set_attrs({"data": "v3", "cells": [4, 5]})
        >>> study.set_attrs({"data": "v4"})
        >>> study.attrs
        {'data': 'v4', 'cells': [4, 5]}
        """
        data, problem = usable_attrs(attrs)
        if problem:
            raise InvalidValue(f"{problem} (nothing was changed)")
        while data:
            old = self._header()
            definition = read_header(old)
            definition["attrs"] = definition.get("attrs", {}) | data
            definition["revision"] = definition.get("revision", 0) + 1
            if self._store.replace_header(old, header(old.id, old.name, definition, old.at)):
                return

    def _header(self) -> Header:
        found = self._store.header(self.name)
        if found is None or found.id != self._log.id:
            raise StoreError(f"study {self.name!r} was deleted from {self._store.url}")
        return found


def unless_deleted(store: Store, name: str, read: Callable[[str], T]) -> T | None:
    """Call a function that reads the study of this name. Return None if another process deletes it meanwhile."""
    while (found := store.header(name)) is not None:
        try:
            return read(name)
        except StoreError:
            now = store.header(name)
            if now is not None and now.id == found.id:
                raise
    return None


def _summary(study: ManagedStudy) -> StudySummary:
    stored, log, best = study._header(), study._log, study.best_trial_
    last = study._store.events(log.id, max(log.n_events() - 1, 0))
    return StudySummary(
        study.name,
        study._strategy_name,
        study.direction,
        study.n_trials,
        dict(Counter(trial.state for trial in study.trials)),
        None if best is None else best.value,
        None if best is None else best.params_run,
        read_header(stored).get("attrs", {}),
        utc(stored.at),
        utc(last[-1].at if last else stored.at),
    )


def _add(made: Optimizer, record: TrialRecord, source: Optimizer) -> bool:
    """Add a finished trial of `source` in its present state. Return False if its point does not belong to the space."""
    place = record.place if record.run is None else record.run
    old, new = source.domain, made.domain
    if isinstance(old, Space) and isinstance(new, Space):
        values = old.named_at(place)
        try:
            place = new.locate({key: value for key, value in values.items() if key in new or old[key].width})
        except InvalidPoint:
            return False
    log, end = made._log, record.finished_at
    attrs = attrs_as_json(merged_attrs(record.attrs))
    number = log.record(
        Action.add(place, list(record.context) or None, None, record.fidelity, attrs), record.started_at
    )
    assert number is not None  # the trial is new
    for step, value in record.curve:
        # The record does not have the times of reports. With equal times, they do not forecast durations.
        log.record(Action.report(number, step, value, record.attempt), record.started_at)
    if record.value is not None:
        observation = Observation(record.value, record.std, record.cost, record.duration)
        log.record(Action.observe(number, observation, False, False), end)
    elif record.state == "failed":
        log.record(Action.fail(number, record.error, None, record.duration), end)
    elif record.state == "abandoned":
        log.record(Action.abandon(number), end)
    else:
        log.record(Action.stop(number), end)
    return True


def _is_printable(name: object) -> bool:
    return isinstance(name, str) and name.isprintable()


def _numbers(numbers: "list[int]") -> str:
    """Return a count of trials and their numbers, for a warning."""
    shown = ", ".join(map(str, numbers[:_NUMBERS_SHOWN])) + (", …" if len(numbers) > _NUMBERS_SHOWN else "")
    return f"{len(numbers)} ({'number' if len(numbers) == 1 else 'numbers'} {shown})"
