"""Studies: optimizers whose log is kept in a store. Many processes can share a study; a study outlives them."""

import json
import math
import os
import time as clocks
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeGuard, TypeVar, overload

from belated._core import Action, BelatedError, TrialRecord
from belated.errors import InvalidPoint, InvalidSetting, InvalidValue, StoreError
from belated.optimizers.actions import Records, actions_of
from belated.optimizers.constraints import Constraints, check_picklable, checked_functions
from belated.optimizers.curve import Stopping
from belated.optimizers.imported import Result, of_record, result_of
from belated.optimizers.log import Limit
from belated.optimizers.optimizer import Optimizer, with_nested
from belated.optimizers.outcomes import position
from belated.optimizers.problem import LATEST, Problem, SpaceLike, seconds
from belated.optimizers.report import attrs_as_json, attrs_of_trials, merged_attrs, usable_attrs
from belated.optimizers.request import (
    Carrier,
    Facts,
    ObserveArguments,
    Request,
    StudySuggestOptions,
    Submission,
    number_of_trials,
)
from belated.optimizers.tables.files import write_worklist
from belated.optimizers.tables.reports import Sheet, check_table_options
from belated.optimizers.tables.worklist import Source, worklist, worklist_page
from belated.optimizers.trial import Trial, utc
from belated.optimizers.trials import CHECKS, Trials
from belated.optimizers.values import checked
from belated.short_repr import short_repr
from belated.space.arguments import checks_arguments, finite, in_seconds, is_table, name_of, whole_number
from belated.space.space import Space
from belated.store import Header, Store, open_store
from belated.store.checksums import header, read_header, with_checksum
from belated.store.forks import register_study
from belated.store.memory import MemoryStore
from belated.study.definition import definition_of, differences, optimizer_from
from belated.study.from_optuna import optimizer_with_trials
from belated.study.revisions import (
    Converted,
    Converter,
    Revision,
    Stage,
    check_feasible,
    checked_revision,
    parameters,
    removal_of,
    with_known,
)
from belated.study.shared_log import PLAIN_CALL, Call, Read, SharedLog
from belated.warn import warn

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")

# The longest key, in bytes of UTF-8. PostgreSQL's index takes rows of at most 2704 bytes, and a key is stored with the
# study's id and the call.
LONGEST_NAME = 2500

# The largest number of characters of the author of an event.
LONGEST_AUTHOR = 200

# The maximum number of trial numbers in a warning.
_NUMBERS_SHOWN = 10


class Sent(NamedTuple):
    """The parts of a call of a client that are not arguments of the study's method."""

    #: The number of the problem in which the arguments are read. None: the present problem.
    revision: int | None = None
    key: str | None = None
    #: The number of events that the client has read, since which the trials of the call must not have changed.
    expected: int | None = None
    #: The digest of the arguments, if the call reports a table.
    digest: str | None = None


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
    #: The best value and its params; None before the first value, and with several objectives.
    best_value: float | None
    best_params: Any
    #: The numbers of the trials in the front of several objectives; None if there are not several.
    pareto: list[int] | None
    #: The attributes of the study.
    attrs: dict[str, Any]
    #: When the study was created, and when its last event was written (UTC).
    created_at: datetime | None
    last_event_at: datetime | None


class _ReadOnly:
    """The log of `Study.optimizer`. Reading goes to the study, so every use of this log is an attempt to write."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, _: str) -> Any:
        raise self._refusal()

    def __len__(self) -> int:
        raise self._refusal()

    def _refusal(self) -> InvalidSetting:
        return InvalidSetting(
            f"this is the optimizer of study {self._name!r}, which is only for reading: call the method of the study"
        )


class Study(Trials[SharedLog]):
    """An optimizer whose log is kept in a store. A study outlives the process, and many processes can share a study.

    Suggesting and reporting work as with an optimizer. When the call that makes a report returns, the report is stored.
    Any process may report on any trial. A report is accepted even if it is late, repeated or out of order, or if it
    comes after `fail` or after the end of a lease. Every method first reads the events of other processes. A `Trial`
    shows the state of the trial when events were last read.

    Parameters
    ----------
    name : str
        The name of the study in the store.
    store : str or path
        ``"sqlite:///file.db"`` (``sqlite:////`` for an absolute path). The file may contain several studies, and many
        processes of one machine may use it. The file must not be on a network file system. Processes of many machines
        share ``"postgresql://user@host/database"``, which needs psycopg (``pip install 'belated[postgres]'``).
    optimizer : Optimizer, optional
        The optimizer of a new study. The new study starts with the optimizer's trials. If the study exists, leave this
        argument out or pass an equal optimizer.
    time : callable, optional
        A function that returns seconds, used for time stamps, leases and ``clock="seconds"``. Default None:
        `time.time`.
    constraints : list of callable, optional
        The functions among the constraints of an existing study, if there are any. A study stores `Linear`, `Mixture`
        and `Cardinality`, but only the number and the names of functions, so pass the same functions in the same order.
        If they are missing, `suggest`, `enqueue` and `recommend` raise an error. They are missing, too, after another
        process has replaced the constraints by `revise`: then load the study again with the new functions.

    Raises
    ------
    StoreError
        The store cannot be read or written, or is damaged; or the study does not exist and `optimizer` is None.
    InvalidSetting
        The study exists with other settings than `optimizer` (the message names the differences), the number or a
        name of the constraints is wrong, or the point of an earlier suggestion violates a constraint.

    Examples
    --------
    >>> import belated as bl, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = f"sqlite:///{folder.name}/dose.db"
    >>> study = bl.Study("dose-finding", store, bl.RandomSearch({"dose": (0.0, 1.0)}, seed=0))
    >>> number = study.suggest().number
    >>> later = bl.Study.load("dose-finding", store)          # in another process, on another day
    >>> later.observe(number, 0.7)
    >>> study.best_value_
    0.7
    """

    def __init__(
        self,
        name: str,
        store: "str | os.PathLike[str] | Store",
        optimizer: Optimizer | None = None,
        time: Callable[[], float] | None = None,
        *,
        constraints: Sequence[Any] | None = None,
    ) -> None:
        _check_printable(name)
        if optimizer is not None and not isinstance(optimizer, Optimizer):
            from belated.hints import optimizer_advice

            given = f"{short_repr(optimizer)} is not usable"
            raise InvalidSetting(f"optimizer={given}: pass an optimizer of belated{optimizer_advice(optimizer)}")
        if constraints is not None and optimizer is not None:
            raise InvalidSetting("constraints and optimizer are both given: pass constraints= to the optimizer")
        if time is None and optimizer is not None:
            time = optimizer.time
        if time is not None and not callable(time):
            raise InvalidSetting(f"time={short_repr(time)} is not usable: pass a function that returns seconds")
        self.name = name
        self._time = time
        self._functions = checked_functions(constraints if optimizer is None else optimizer.constraints)
        self._store = open_store(store)
        self._open(optimizer)
        register_study(self)

    # The author of the events that this object writes.
    _user: str | None = None

    # What a client sent besides the arguments; None for calls in Python.
    _sent: Sent | None = None

    # The number of the revision that is read. None: the present problem.
    _revision: int | None = None

    @classmethod
    def load(
        cls,
        name: str,
        store: "str | os.PathLike[str] | Store",
        time: Callable[[], float] | None = None,
        *,
        constraints: Sequence[Any] | None = None,
        revision: int | None = None,
    ) -> "Study":
        """Open an existing study; `constraints` are the constraints of its optimizer, if it has any.

        Parameters
        ----------
        name, store, time, constraints
            See `Study`.
        revision : int, optional
            Read the study with an earlier problem, as it was before `revise` replaced this problem. The first problem
            has the number 1. The returned study is only for reading. Default None: the present problem.

        Raises
        ------
        StoreError
            The study does not exist, or the store cannot be read.
        InvalidSetting
            The number or a name of the constraints is wrong, the point of an earlier suggestion violates a constraint,
            or the study does not have this revision.
        """
        if revision is None:
            return cls(name, store, time=time, constraints=constraints)
        number = whole_number(revision)
        if number is None or number < 1:
            raise InvalidSetting(f"revision={short_repr(revision)} is not usable: pass an integer from 1, or None")
        earlier = cls.__new__(cls)
        earlier._revision = number
        cls.__init__(earlier, name, store, None, time, constraints=constraints)
        return earlier

    @classmethod
    def from_optuna(
        cls,
        storage: Any,
        name: str,
        store: "str | os.PathLike[str] | Store | None" = None,
        optimizer: Optimizer | None = None,
        *,
        study_name: str | None = None,
    ) -> "Study":
        """Create a study with the trials of a study of Optuna, which stays unchanged.

        Parameters
        ----------
        storage : str or storage of Optuna
            The URL of Optuna's storage, or the storage itself.
        name : str
            The name of Optuna's study.
        store : str or path, optional
            The store of the new study; see `Study`. Default None: this process's memory.
        optimizer : Optimizer, optional
            An optimizer that has the same direction as Optuna's study, or the same two or three objectives, and does
            not have trials. The study gets a copy of this optimizer. The optimizer's space may leave parameters out.
            Default None: a `BayesOpt` whose space has Optuna's distributions. If only some of the completed trials have
            a parameter, and the value of another parameter determines which trials have it, the parameter gets a
            condition (``when=``).
        study_name : str, optional
            The name of the new study. Default None: `name`.

        Raises
        ------
        InvalidSetting
            The study of Optuna does not exist; it has more than three objectives; its directions differ from those of
            `optimizer`; a step is beyond the curve of `optimizer`; or the new study already exists.
        InvalidSpace
            A distribution cannot be searched; a parameter has several distributions; or a parameter occurs only in some
            trials, and no condition determines these trials.
        InvalidPoint
            The point of a completed trial does not belong to the space of `optimizer`.

        Notes
        -----
        Trials keep their order, but their numbers change if trials are left out. User attributes become ``attrs``. NaN
        and infinite numbers in user attributes become None, with a warning, because such numbers do not exist in JSON.
        Of the system attributes, only the constraints are read. Intermediate values are read if `optimizer` declares a
        curve; then they are the reports of the trials.

        ======== ===================================================================================================
        Optuna   belated
        ======== ===================================================================================================
        COMPLETE observed, with its time in seconds as ``duration``; failed if a constraint was violated or the value is
                 infinite
        FAIL     failed; left out if it failed before its point was chosen
        PRUNED   with a curve: stopped, or failed if its last report is missing or infinite; without a curve: abandoned,
                 because its value comes from fewer steps than the other values
        RUNNING  pending: report its value to the new study; left out if its point is not chosen yet
        WAITING  enqueued if a parameter of its point was given (see `Optimizer.enqueue`); else left out
        ======== ===================================================================================================

        If `optimizer` declares outcomes, the objective has Optuna's value. The values of constraints with names belong
        to the outcomes of these names, and those of other constraints to the other outcomes in their order. Optuna's
        constraints are at most 0, so the goal of these outcomes is ``bl.AtMost(0.0)``. A trial that violates a
        constraint is then observed, and the model of the constraint uses it. A constraint at infinity is a failed
        outcome. A constraint at -infinity, and a constraint that a completed or pruned trial lacks, is abandoned.

        Several objectives are outcomes. Without `optimizer`, they have the names of Optuna's metrics, or else
        "values_0", "values_1", …, and each constraint is an outcome, too. The objectives of `optimizer` have Optuna's
        values by the names of the metrics, or else in their order. An objective whose value is infinite has failed.

        With ``clock="seconds"``, trials start and end at the times in Optuna.

        Examples
        --------
        >>> import belated as bl, optuna
        >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
        >>> storage = optuna.storages.InMemoryStorage()
        >>> theirs = optuna.create_study(study_name="x", storage=storage)
        >>> theirs.optimize(lambda trial: trial.suggest_float("x", -5.0, 5.0) ** 2, n_trials=5)
        >>> study = bl.Study.from_optuna(storage, "x")
        >>> study.best_value_ == theirs.best_value
        True
        """
        target = open_store(MemoryStore() if store is None else store)
        new_name = name if study_name is None else study_name
        if target.header(new_name) is not None:
            raise InvalidSetting(f"study {new_name!r} exists already in {target.url}: pass another study_name")
        return cls(new_name, target, optimizer_with_trials(storage, name, optimizer))

    def _open(self, given: Optimizer | None) -> None:
        found = self._store.header(self.name)
        created: int | None = None
        while found is None:
            if given is None:
                there, advice = "none", "bl.Study(name, store, optimizer=…) creates one"
                with suppress(StoreError):  # the file may not exist yet
                    there = short_repr(self._store.names())
                    advice = self._store.lost_tables() or advice
                raise StoreError(f"there is no study {self.name!r} in {self._store.url}, which has {there}: {advice}")
            created = self._create(self.name, self._store, given, self._time)
            found = self._store.header(self.name)
        definition = read_header(found)
        is_new = found.id == created
        self._token = f"study {found.id}"
        stage = Stage(optimizer_from(definition, self._time), definition)
        self.seed_, self._has_model = stage.optimizer.seed_, stage.optimizer._has_model
        self._log = SharedLog(stage, self._store, self.name, found.id, self._revision)
        self.sync()
        n_revisions = len(self._log.stages)
        if self._revision is not None and n_revisions < self._revision:
            raise InvalidSetting(
                f"revision={self._revision}, and study {self.name!r} has {n_revisions}: pass one of these"
            )
        if given is not None and not is_new:
            self._compare(self._log.stages[-1].definition, given)
        names = [name_of(function) for function in self._functions]
        if names and names != list(self._stored_constraints):
            raise InvalidSetting(
                f"constraints has the functions {names}, and study {self.name!r} has {self._stored_constraints}"
                f"{self._since()}: pass the same ones in the same order, or replace them by study.revise(…)"
            )
        self._log.set_constraints(self._functions, 1 if is_new else n_revisions)
        if not is_new:
            self._check_suggested()

    # The optimizer in force, which `revise` replaces, here or in another process.

    @property
    def _optimizer(self) -> Optimizer:
        return self._log.optimizer

    @property
    def _problem(self) -> Problem:  # type: ignore[override]
        return self._log.stages[-1].optimizer._problem

    @property
    def _constraints(self) -> Constraints | None:  # type: ignore[override]
        return self._log.stages[-1].optimizer._constraints

    @property
    def _rule(self) -> Stopping | None:  # type: ignore[override]
        return self._log.optimizer._rule

    @property
    def _window(self) -> float | Literal["auto"] | None:  # type: ignore[override]
        return self._log.stages[-1].optimizer._window

    @property
    def _stored_constraints(self) -> Sequence[str]:
        stored: Sequence[str] = self._log.stages[-1].definition["problem"].get("constraints", ())
        return stored

    def _problem_of(self, number: int) -> Problem:
        return self._log.stages[number].problem

    def _revision_text(self, number: int) -> str:
        before, after = self._log.stages[number - 1 : number + 1]
        found, made = differences(before.definition, after.definition, "{} was {} and is {}"), after.revision
        given = {"fill": made.fill, "map": made.map, "keep": made.keep} if made is not None else {}
        return "; ".join([*found, *(f"{name}={short_repr(dict(each))}" for name, each in given.items() if each)])

    def _n_read(self) -> int | None:
        if self._sent is None:
            return len(self._log.stages)
        revision = self._sent.revision
        if revision is not None and revision > len(self._log.stages):
            self.sync()
            self._log.carrier(revision)  # raises an error if the study does not have this revision
        return revision

    @classmethod
    def _create(
        cls,
        name: str,
        store: Store,
        optimizer: Optimizer,
        time: Callable[[], float] | None,
        attrs: Mapping[str, Any] | None = None,
    ) -> int | None:
        """Create a study in one transaction; return its id, or None if a study of this name exists."""
        _check_printable(name)
        if not is_usable_name(name):
            raise InvalidSetting(
                f"name={short_repr(name)} has {len(name.encode())} bytes in UTF-8: pass a printable string of at most "
                f"{LONGEST_NAME} that is not '.' or '..', which URLs cannot contain"
            )
        # Draw the id at random, so that events of two studies cannot be confused.
        new, at = int.from_bytes(os.urandom(6), "big"), seconds(time or clocks.time)
        records = [with_checksum(new, seq, None, at, body) for seq, body in enumerate(optimizer._log.events(0))]
        definition = definition_of(optimizer) | ({"attrs": attrs, "revision": 1} if attrs else {})
        return new if store.create(header(new, name, definition, at), records) else None

    def _check_suggested(self) -> None:
        """Check that every point that was suggested since the last revision satisfies the given constraints.

        Points of the queue are left out: a partial point may lack values that satisfy the constraints.
        """
        constraints = self._constraints
        if constraints is None:
            return
        for number in range(self._log.stages[-1].first, len(self._log)):
            record = self._log.trial(number)
            if record.suggested and not record.queued:
                params = constraints.params_at(record.place)
                violated = constraints.first_violated(params)
                if violated is not None:
                    raise InvalidSetting(
                        f"trial {number} of study {self.name!r} was suggested, and violates "
                        f"{constraints.describe(violated)} with params={params!r}: pass the constraints that the study "
                        "was created with"
                    )

    def _compare(self, definition: Mapping[str, Any], given: Optimizer) -> None:
        different = differences(definition, definition_of(given) | {"seed": given.seed})
        if different:
            raise InvalidSetting(
                f"study {self.name!r} exists with other settings: {'; '.join(different)}; "
                "leave optimizer out to go on with the study, change it by study.revise(…), or choose another name"
            )
        if given.n_trials:
            raise InvalidSetting(
                f"study {self.name!r} exists, and the optimizer given has trials: "
                "pass one without, and add them with study.add"
            )

    # Differences between the log of a study and the log of an optimizer.

    def _constraints_for(self, call: str) -> Constraints | None:
        if self._stored_constraints and self._constraints is None:
            raise InvalidSetting(
                f"study {self.name!r} has constraints {self._stored_constraints}{self._since()}, which are not stored, "
                f"and {call} has to keep to them: open it with Study.load(…, constraints=[…])"
            )
        return self._constraints

    def _since(self) -> str:
        """Return the number of the revision that replaced the constraints as text; empty without such a revision."""
        numbers = [number for number, stage in enumerate(self._log.stages, 1) if stage.is_constrained]
        return f" since revision {numbers[-1]}" if numbers else ""

    def _start_trials(
        self,
        request: Request,
        *,
        key: str | None = None,
        may_start: Callable[[], bool] | None = None,
        limit: Limit | None = None,
        attrs: Sequence[str | None] = (),
    ) -> list[int]:
        """Start trials; see `SharedLog.suggest` for the other arguments."""
        constraints, by = partial(self._constraints_for, "suggest"), self._user
        call = self._call("suggest", (), lambda: request.digest(by), key)
        return self._log.suggest(request, constraints, call, may_start, limit, attrs, by)

    def _current_log(self) -> SharedLog:
        self.sync()
        return self._log

    def _submit(
        self,
        verb: str,
        trial: Any,
        given: tuple[Any, ...] = (),
        revision: int | None = None,
        key: str | None = None,
        notice: Callable[[str], None] = warn,
        fits: bool = False,
    ) -> list[int | None]:
        submission = Submission(verb, trial, revision, given)
        if key is None and self._sent is None:
            call = PLAIN_CALL
        else:
            numbers = [trial] if isinstance(trial, int) else trial or ()
            call = self._call(verb, numbers, lambda: submission.digest(self._user), key)
        return self._record_from(partial(self._read_submission, submission), revision, call, notice, fits=fits)

    def _call(self, name: str, numbers: Sequence[int], digest: Callable[[], str], key: str | None) -> Call:
        """Return a call with its key; a client has sent the key and other data besides the arguments."""
        sent = self._sent
        key, expected = (key, None) if sent is None else (sent.key, sent.expected)
        return Call(name, numbers, key, None if key is None else digest(), sent is not None, expected)

    def _is_repeated(self, name: str) -> bool:
        """Return whether an earlier call of this name has the key that a client sent."""
        key = None if self._sent is None else self._sent.key
        return key is not None and name in self._current_log().calls_with(key)

    def _read_submission(
        self, submission: Submission, problem: Problem, log: Records, carrier: Carrier | None
    ) -> list[Action]:
        try:
            return actions_of(submission, problem, log, carrier)
        except InvalidPoint:
            read = submission.revision
            if submission.verb != "observe" or read is None or not isinstance(submission.given[1].params, Mapping):
                raise
            # The evaluation may have started before this process read a revision.
            first = max(i for i, stage in enumerate(self._log.stages, 1) if stage.first <= submission.trial)
            for revision in range(read - 1, first - 1, -1):
                with suppress(BelatedError):
                    return actions_of(submission, self._problem_of(revision - 1), log, self._log.carrier(revision))
            raise

    def _record_from(
        self,
        read: Read,
        revision: int | None,
        call: Call = Call("observe"),  # noqa: B008
        notice: Callable[[str], None] = warn,
        *,
        fits: bool = False,
    ) -> list[int | None]:
        numbers, removed, marked = self._log.submit(read, revision, call, fits, self._user)
        if removed:
            notice(f"{removal_of(removed)} of study {self.name!r}: its value is not stored, and the others are")
        for number, mark in marked:
            self._warn_of_mark(number, mark)
        return numbers

    def _current_problem(self) -> Problem:
        self.sync()
        return self._problem

    def _number_of(self, trial: Trial | int) -> int:
        number = trial.number if isinstance(trial, Trial) else whole_number(trial)
        with self._log.lock:
            # If a trial is unknown here, another process may just have started it.
            if number is not None and number >= len(self._log):
                self.sync()
            return super()._number_of(trial)

    def as_user(self, name: str) -> "Study":
        """Return this study for a person or a machine, whose name is stored in the events that it writes.

        The names are in `Trial.started_by`, `Trial.finished_by` and `Trial.remarks`. Suggestions do not depend on them.

        Parameters
        ----------
        name : str
            A printable name of at most 200 characters.

        Returns
        -------
        Study
            It has the log and the trials of this study.

        Raises
        ------
        InvalidSetting
            The name is empty, too long or not printable.

        Examples
        --------
        >>> import belated as bl
        >>> from belated.store.memory import MemoryStore
        >>> study = bl.Study("dose", MemoryStore(), bl.RandomSearch({"dose": (0.0, 1.0)}, seed=0))
        >>> trial = study.suggest()
        >>> study.as_user("bench-2").observe(trial, 0.5)
        >>> trial.started_by, trial.finished_by
        (None, 'bench-2')
        """
        return self._with(_user=checked_author(name))

    def _with(self, **attributes: Any) -> "Study":
        """Return this study with other attributes of the object."""
        made: Study = object.__new__(type(self))
        vars(made).update(vars(self), **attributes)
        CHECKS[made] = CHECKS.setdefault(self, {})
        register_study(made)
        return made

    @checks_arguments
    def enqueue(self, params: Any, *, fidelity: Any = None, key: str | None = None) -> None:
        """Add points to a queue; see `Optimizer.enqueue`.

        Parameters
        ----------
        params, fidelity
            The points, and their fidelity.
        key : str, optional
            A name for this call. If the call is repeated with the same key, for example after a crash, nothing is
            added. All arguments must be the same as in the first call, otherwise `InvalidSetting` is raised.

        Examples
        --------
        >>> import belated as bl
        >>> from belated.store.memory import MemoryStore
        >>> study = bl.Study("dose", MemoryStore(), bl.RandomSearch({"dose": (0.0, 1.0)}, seed=0))
        >>> for _ in range(2):
        ...     study.enqueue({"dose": 0.5}, key="from the paper")
        >>> trials = study.suggest(2)
        >>> trials[0].params["dose"], trials[1].params["dose"] == 0.5
        (0.5, False)
        """
        revision = self._n_read()
        check_key(key)
        self._submit("enqueue", None, self._to_enqueue(params, fidelity), revision, key)

    def sync(self) -> int:
        """Read the events that other processes wrote; return their number. All other methods call this first."""
        return self._log.sync()

    # The life cycle.

    @overload
    def suggest(
        self, n: None = None, context: Mapping[str, Any] | None = None, **options: "Unpack[StudySuggestOptions]"
    ) -> Trial: ...
    @overload
    def suggest(
        self, n: int, context: Mapping[str, Any] | None = None, **options: "Unpack[StudySuggestOptions]"
    ) -> list[Trial]: ...
    @checks_arguments
    def suggest(
        self,
        n: int | None = None,
        context: Mapping[str, Any] | None = None,
        *,
        fidelity: float | None = None,
        fixed: Mapping[Any, Any] | None = None,
        shared: Sequence[Any] | None = None,
        attrs: Any = None,
        key: str | None = None,
        expires_after: float | timedelta | None = None,
    ) -> Trial | list[Trial]:
        """Start a trial, or n at once; see `Optimizer.suggest`.

        Parameters
        ----------
        fidelity : int or float, optional
            The fidelity of the trial, if the optimizer has a fidelity.
        fixed, shared : optional
            The values that the trials have, and the parameters that have one value in all of them.
        attrs : mapping or list of mappings, optional
            Data to store with the trials, such as wells; one mapping for all trials, or one for each.
        key : str, optional
            A name for this request. If a request is repeated with the same key, for example after a crash, the same
            trials are returned. The author and all arguments except expires_after and attrs must be the same as in the
            first request.
        expires_after : float or timedelta, optional
            The model counts the trial as pending for this time; a number is in seconds. A later result is still
            accepted. Once 20 results have arrived, a lease below their median delay gives a `BelatedWarning`.
        """
        revision = self._n_read()
        check_key(key)
        lease = None if expires_after is None else finite(in_seconds(expires_after))
        if expires_after is not None and (lease is None or not 0 <= lease <= LATEST):
            raise InvalidSetting(
                f"expires_after={short_repr(expires_after)} is not usable: pass seconds >= 0, at most {LATEST:g}, "
                "or None"
            )
        wanted = 1 if n is None else number_of_trials(n)
        request = Request(wanted, context, fidelity, fixed, shared, lease, revision)
        if not wanted:
            request.read_in(self._problem)  # checks the other arguments
        texts = attrs_of_trials(attrs, wanted)
        started = self._started(self._start_trials(request, key=key, attrs=texts) if wanted else [], n is None)
        if lease is not None:
            self._check_limit("expires_after", lease, 0.5)
        if key is not None and len(self._log.stages) > 1:  # the trials may have been started before a revision
            self._warn_of_forbidden({trial.number for trial in (started if isinstance(started, list) else [started])})
        return started

    def _warn_of_forbidden(self, among: Container[int]) -> None:
        """Warn of pending trials that are not allowed any longer."""
        found = [number for number in self.forbidden if number in among]
        if found:
            out = f"{_numbers(found)} of the {len(self.pending)} pending trials of study {self.name!r}"
            warn(f"{out} must not be run any longer: see forbidden, and abandon those that were not run")

    @checks_arguments
    def observe(
        self,
        trial: Any,
        value: Any = None,
        *,
        std: float | Mapping[str, float | None] | None = None,
        cost: float | None = None,
        duration: float | timedelta | None = None,
        params: Any = None,
        attrs: Mapping[str, Any] | None = None,
        fidelity: float | None = None,
        amend: bool | Sequence[int] = False,
        replicate: bool = False,
        key: str | None = None,
        check: bool = False,
        moved: bool = False,
        dry_run: bool = False,
        expected: int | None = None,
        on_error: Literal["raise", "skip"] = "skip",
    ) -> Any:
        """Report a trial's value at any time, in any order, from any process, or a table; see `Optimizer.observe`.

        Parameters
        ----------
        trial : Trial, int or DataFrame
            The trial or its number; or a worklist of this study that was filled in. Rows of other studies are refused.
        value : float or mapping
            The value; if outcomes were declared, a dict of the values that have arrived, by the names of the outcomes.
        std, cost, duration : float, optional
            The standard deviation of this value's noise, the cost of the evaluation, and its duration in seconds. std
            may be a dict by the names of the outcomes.
        params : mapping; for candidates also an index, or a row without names; optional
            The point that was run, if it differs from the suggested point.
        attrs : mapping, optional
            Other data to keep with the trial, as JSON.
        fidelity : int or float, optional
            The fidelity of the evaluation. An error is raised if this fidelity differs from the fidelity of the trial.
        amend : bool or list of int, default False
            Replace an earlier value. For a table, True refuses to replace values that changed after the table was
            written (column ``as_of``), and a list of numbers replaces the values of these trials in any case.
        replicate : bool, default False
            If the trial already has a value, record this value as another trial at the same point.
        key : str, optional
            A name for this report. A second report with the same key changes nothing. The author and all arguments
            except duration and attrs must be the same as in the first report, otherwise `InvalidSetting` is raised.
        check : bool, default False
            Compare the value with the model's prediction even if this process has not fitted the model yet, which may
            take seconds with many trials. A value far from the prediction is stored with a mark (`Trial.marks`) and a
            `BelatedWarning`. The values of a table are always compared.
        moved, dry_run, on_error
            For a table; see `Optimizer.observe`.
        expected : int, optional
            For a table: raise `TrialChanged` if a trial of the table has changed since the study had this number of
            events.

        Examples
        --------
        >>> import belated as bl
        >>> from belated.store.memory import MemoryStore
        >>> study = bl.Study("plate", MemoryStore(), bl.RandomSearch({"dose": (0.0, 1.0)}, seed=0))
        >>> trials = study.suggest(3)
        >>> table = study.worklist()                    # or pandas.read_csv, after it was filled in
        >>> table["value"] = [0.5, None, 0.75]
        >>> print(study.observe(table))
        2 new, 0 unchanged, 1 rows without values, 0 refused
        """
        revision = self._n_read()
        check_key(key)
        facts = Facts(std, cost, duration, params, attrs)
        if moved or dry_run or on_error != "skip" or type(trial) not in (Trial, int) or type(amend) is not bool:
            check_table_options(trial, facts, fidelity, amend, replicate, moved, dry_run, on_error)
            if is_table(trial):
                if key is not None:
                    raise InvalidSetting("key is for a single trial: a table that is read again changes nothing")
                return self._observe_table(trial, value, amend, moved, dry_run, on_error, expected)
        if expected is not None:
            raise InvalidSetting("expected is for tables: pass a pandas DataFrame")
        given = ObserveArguments(value, facts, fidelity, bool(amend), bool(replicate))
        return self._observe(
            self._number_of(trial),
            given,
            revision,
            key,
            warn,
            check if check is False else checked(check, bool, "check"),
        )

    def _call_of_table(self, numbers: Sequence[int], expected: Any) -> tuple[Call]:
        sent = self._sent
        if sent is not None:
            return (self._call("table", numbers, lambda: sent.digest or "", None),)
        since = whole_number(expected)
        if expected is not None and (since is None or since < 0):
            raise InvalidSetting(f"expected={short_repr(expected)} is not usable: pass a number of events of the study")
        return (Call("table", numbers, expected=since),)

    def _sheet(self, as_of: int | None, numbers: Sequence[int]) -> Sheet | None:
        log, problem_of = self._log, self._problem_of
        if as_of is not None and as_of > log.n_events():
            return None
        if as_of is None or not set(log.history.changed(as_of)).intersection(numbers):
            return Sheet(self._problem, problem_of, log.core, len(log), lambda: None)
        earlier = log.at(as_of)
        n = len(earlier.stages)
        return Sheet(
            earlier.stages[-1].problem,
            lambda number: earlier.stages[number].problem,
            earlier.core,
            len(earlier),
            lambda: log.carrier(n),
        )

    # Revisions of the problem.

    def revise(
        self,
        *,
        fill: Mapping[str, Any] | None = None,
        map: Mapping[str, Mapping[Any, Any]] | None = None,
        keep: Mapping[str, Any] | None = None,
        drop: bool = False,
        **arguments: Any,
    ) -> None:
        """Change the problem or the settings of the optimizer, and keep all trials.

        Parameters
        ----------
        fill : mapping, optional
            The value that the trials so far had for each parameter that is added, by name. For an outcome that is
            added: its value in the trials that lack it, as a number, a mapping by trial number, or a function of the
            trial that returns a number or None. These values are reported after the revision, all or none.
        map : mapping, optional
            For a parameter, the choices that are renamed: ``{"solvent": {"Water ": "water"}}``.
        keep : mapping, optional
            For each parameter that is removed, its value in the new problem; also a choice that is not offered any
            longer. Not needed for a parameter that has a single value, and for one that is inactive at all values of
            the new space.
        drop : bool, default False
            Whether to leave out the trials with a choice that the new space lacks, or with another value of a parameter
            that becomes a constant. By default, the model keeps these trials.
        **arguments
            The constructor arguments of the optimizer that change, such as ``space``, ``constraints``, ``candidates``
            or ``surrogate__kernel``. Other arguments stay. The seed, the clock and `time` cannot change.

        Raises
        ------
        InvalidSetting
            An argument is invalid; `fill` or `keep` misses a parameter; the constraints refuse every point; an enqueued
            point is not a point of the new problem; or the optimizer cannot be revised. The study is unchanged.
        InvalidSpace
            The space is invalid. The study is unchanged.

        Warns
        -----
        BelatedWarning
            Trials are left out.

        Notes
        -----
        Trials keep their numbers, states, values, keys, leases and attrs, and their delays still count. Pending trials
        accept values as before.

        A trial beyond a new bound, or at a row that is not a candidate any longer, counts as measured outside: the
        model uses the value at its point, `best_trial_` ignores it, and `Trial.outside` is True. Between two new steps,
        a trial is an ordinary observation. A trial with a choice that was removed, or with another value of a parameter
        that became a constant, counts as measured outside, too: the space keeps the values of trials and has the new
        ones as ``offered``, as in ``Categorical(["b", "c", "a"], offered=["b", "c"])``. It also keeps the parameters
        that are active only at such values, unless they are in `keep`.

        If the new problem cannot express a trial, the trial is *left out*: the model and `best_trial_` ignore it, and
        `Trial.left_out` is the reason. Examples are another value than `keep`, a value ≤ 0 on a logarithmic scale, a
        constant beyond the former bounds, and a context or fidelity out of range; also a choice that was removed, if
        the optimizer does not support fixed values or the new choices have other descriptors. If a trial that is left
        out is reported with `params` of the new problem, it is used again.

        The next suggestion fits the model again, unless the encoded points and the settings of the optimizer are equal.
        New constraints hold for later suggestions only. Other processes use the new problem as soon as they read the
        log. They need new constraints only to suggest, and get them by `load`, also if the names of the functions are
        the same. `load` reads earlier problems.

        Examples
        --------
        >>> import belated as bl
        >>> from belated.store.memory import MemoryStore
        >>> study = bl.Study("oven", MemoryStore(), bl.RandomSearch({"heat": (20.0, 120.0)}, seed=0))
        >>> trial = study.suggest()
        >>> study.revise(space={"heat": (20.0, 150.0), "time": (1.0, 24.0)}, fill={"time": 12.0})
        >>> trial.observe(0.5)
        >>> trial.params["time"]
        12.0
        """
        _check_revisable(arguments)
        checked(drop, bool, "drop")
        fill, of_outcomes = self._values_to_fill(fill, arguments)
        before, forbidden, outcomes = self.left_out, self.forbidden, [*self._problem.outcomes]
        known = [trial.values for trial in self.trials] if self._problem.outcomes else []
        self._log.revise(lambda: self._revise((fill, map, keep), arguments, drop))
        left_out = [number for number in self.left_out if number not in before]
        if left_out:
            found = f"{_numbers(left_out)} of the {self.n_trials} trials of study {self.name!r}"
            warn(f"{found} are left out of the new problem: see left_out")
        removed = {name for values in known for name in values} - {*self._problem.outcomes}
        for name in sorted(removed):
            n = sum(name in values for values in known)
            warn(f"the outcome {name!r} is removed from study {self.name!r} with its {n} values; the log keeps them")
        self._warn_of_forbidden(self.forbidden.keys() - forbidden.keys())
        self._fill_outcomes(of_outcomes)
        for name in self._problem.outcomes:
            n_lacking = 0 if name in outcomes else len(self.lacking(name))
            if n_lacking:
                warn(
                    f"{n_lacking} trials of study {self.name!r} lack a value of the new outcome {name!r}: see lacking, "
                    "and report the values by observe"
                )

    def _values_to_fill(
        self, fill: Mapping[str, Any] | None, arguments: Mapping[str, Any]
    ) -> tuple[Mapping[str, Any] | None, dict[str, dict[int, Any]]]:
        """Return the values of parameters, and the values of new outcomes by trial number."""
        outcomes = arguments.get("outcomes")
        if not isinstance(fill, Mapping) or not isinstance(outcomes, Mapping):
            return fill, {}
        names = outcomes.keys() - parameters(self._problem).keys()
        if isinstance(space := arguments.get("space"), Mapping):
            names -= space.keys()
        found: dict[str, dict[int, Any]] = {}
        for name in [name for name in fill if name in names]:
            given = fill[name]
            if isinstance(given, Mapping):
                values = {self._number_of(trial): value for trial, value in given.items()}
            elif callable(given):
                values = {trial.number: given(trial) for trial in self._without(name)}
            else:
                values = {trial.number: given for trial in self._without(name)}
            low, high = getattr(outcomes[name], "plausible", None) or (-math.inf, math.inf)
            found[name] = {number: value for number, value in values.items() if value is not None}
            for number, value in found[name].items():
                number_of_value = finite(value)
                if number_of_value is None or not low <= number_of_value <= high:
                    raise InvalidValue(
                        f"fill[{name!r}] has {short_repr(value)} for trial {number}: pass a finite number that is "
                        "plausible, or None (nothing was changed)"
                    )
        return {name: value for name, value in fill.items() if name not in found} or None, found

    def _without(self, outcome: str) -> list[Trial]:
        """Return the trials that are not pending, and have values but not of this outcome, which may be a new one."""
        ended = [trial for trial in self.trials if trial.state != "pending" and outcome not in trial.values]
        return [trial for trial in ended if trial.values or trial.value is not None]

    def _fill_outcomes(self, values: Mapping[str, Mapping[int, float]]) -> None:
        """Report values of new outcomes by trial number, in one transaction."""
        known = {name: {trial.number for trial in self.trials if name in trial.values} for name in values}
        given = {name: {n: v for n, v in each.items() if n not in known[name]} for name, each in values.items()}
        numbers = sorted({number for each in given.values() for number in each})
        reports = [
            (number, {name: each[number] for name, each in given.items() if number in each}) for number in numbers
        ]

        def read(problem: Problem, log: Records, carrier: Carrier | None) -> list[Action]:
            submissions = [
                Submission("observe", number, None, ObserveArguments(value, Facts())) for number, value in reports
            ]
            return [action for each in submissions for action in actions_of(each, problem, log, carrier)]

        if reports:
            self._record_from(read, None)

    def _revise(self, changes: tuple[Any, Any, Any], arguments: dict[str, Any], drop: bool) -> tuple[str, Stage]:
        """Return the event of a revision and the next stage; this is called with the write lock held."""
        made = self._revised(arguments, "revise", None if drop else changes)
        definition = json.loads(json.dumps(definition_of(made), allow_nan=False))
        has_trials = len(self._log) > 0 or len(self._log.core.queued()) > 0
        checked = checked_revision(self._problem, made._problem, changes, has_trials)
        revision = Revision(definition, *checked, "constraints" in arguments)
        if made._constraints is not None:
            stages = [*self._log.stages, Stage(made, definition, revision, len(self._log))]
            revision = replace(revision, refused=self._refused(Converter(stages), made._constraints))
        time = self._problem.wall_time()
        event = revision.to_event(time, self._log.now(time), self._user)
        return event, Stage(made, definition, revision, len(self._log))

    def _refused(self, converter: Converter, constraints: Constraints) -> list[int]:
        """Return the pending trials that constraints of the next problem refuse."""
        refused = []
        for number in self._log.numbers("pending"):
            place = converter.trial(self._log.trial(number))[0]
            if place is not None:
                try:
                    is_refused = constraints.first_violated(constraints.params_at(place)) is not None
                except InvalidSetting:  # a constraint has failed at this point
                    is_refused = True
                if is_refused:
                    refused.append(number)
        return refused

    def _revised(self, arguments: Mapping[str, Any], caller: str, changes: tuple[Any, Any, Any] | None) -> Optimizer:
        """Return an optimizer without trials, with the settings of the study and these arguments.

        Its space knows the values of trials that the new space does not offer, unless `changes` is None. `changes` are
        the arguments `fill`, `map` and `keep`.
        """
        old = self._optimizer
        if "constraints" not in arguments:
            self._constraints_for(caller)  # raises an error if the functions are missing
        given = old.get_params(deep=False) | {"seed": self.seed_}
        if arguments.get("outcomes") is not None:
            given.pop("direction", None)  # the goals of the new outcomes have directions
        made = type(old)(**with_nested(type(old), given, arguments))
        if type(made.domain) is not type(old.domain):
            raise InvalidSetting(
                f"{caller} cannot replace a space by candidates, candidates by a space, or an array of candidates by a "
                "table: create another study"
            )
        if changes is not None and isinstance(made.domain, Space):
            space = with_known(self._log.stages, self._log, made.domain, *changes[1:])
            if space is not made.domain:
                # The optimizer may refuse values that are not offered. Then the trials are left out.
                with suppress(BelatedError):
                    return self._revised({**arguments, "space": space}, caller, None)
        if made._constraints is not None:
            check_feasible(made)
        return made

    @property
    def revision(self) -> int:
        """The number of the problem: 1, and one more after each call of `revise`."""
        self.sync()
        return len(self._log.stages)

    @property
    def left_out(self) -> dict[int, str]:
        """The trials that `revise` left out, by number, each with the reason."""
        log = self._current_log()
        if len(log.stages) == 1:
            return {}
        reasons = ((number, log.trial(number).left_out) for number in log.numbers(None))
        return {number: reason for number, reason in reasons if reason is not None}

    @property
    def forbidden(self) -> dict[int, str]:
        """The pending trials that `revise` has forbidden since they were suggested, by number, each with the reason.

        A pending trial is forbidden if it lies beyond a bound, if it is not a candidate any longer, if a revision left
        it out, or if it violates a constraint. In a process without the functions among the constraints, the trials are
        those that the functions refused when they were passed to `revise`. A value of a forbidden trial is accepted.
        """
        log = self._current_log()
        if len(log.stages) == 1:
            return {}
        reasons = ((number, self._why_forbidden(log.trial(number))) for number in log.numbers("pending"))
        return {number: reason for number, reason in reasons if reason is not None}

    def _why_forbidden(self, record: TrialRecord) -> str | None:
        """Return why a pending trial is not allowed any longer; None if it is allowed or not pending."""
        if record.state != "pending" or len(self._log.stages) == 1:
            return None
        if record.left_out is not None:
            return record.left_out
        if record.outside:
            return "it is not a point of the present problem"
        if self._constraints is None:
            last = self._log.stages[-1].revision
            is_refused = last is not None and record.number in last.refused
            return "it violates a constraint that is a function" if is_refused else None
        try:
            violated = self._constraints.first_violated(self._constraints.params_at(record.place))
        except InvalidSetting as error:  # a constraint has failed at this point
            return str(error)
        return None if violated is None else f"it violates {self._constraints.describe(violated)}"

    def lacking(self, outcome: str) -> list[Trial]:
        """Return the trials that have a value of another outcome and none of this one, and do not await it.

        For example, earlier trials lack an outcome that `revise` has added.

        Raises
        ------
        InvalidValue
            The outcome was not declared.
        """
        i, log = position(self._problem.outcomes, outcome), self._current_log()
        records = ((number, log.trial(number).outcomes) for number in log.numbers(None))
        numbers = [
            number
            for number, known in records
            if known[i][0] == "abandoned" and any(facts[1] is not None for facts in known)
        ]
        return [Trial(self, number) for number in numbers]

    # Information about the study.

    @property
    def store(self) -> str:
        """The URL of the store."""
        return self._store.url

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer of the study, for its settings and the attributes of its class, such as `TreeSearch.trees_`.

        The returned optimizer shows the trials of the study. Its methods that write raise `InvalidSetting`: call them
        on the study.
        """
        self.sync()
        view: Optimizer = object.__new__(type(self._optimizer))
        vars(view).update(vars(self._optimizer), _study=self, _token=self._token, _log=_ReadOnly(self.name))
        return view

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings of the study's optimizer; see `Optimizer.get_params`."""
        self.sync()
        return self._optimizer.get_params(deep)

    def __reduce__(self) -> tuple[Any, ...]:
        if not self._store.opens_by_url:
            raise InvalidSetting(
                f"study {self.name!r} is kept in this process's memory and cannot be pickled: keep it in a store that "
                "has a URL, as 'sqlite:///file.db'"
            )
        functions, number = self._log.functions()
        check_picklable(functions)
        state = self._log.id, functions, number, self._user
        if self._revision is not None:
            load = partial(type(self).load, revision=self._revision)
            return load, (self.name, self._store.url, self._time), state
        return type(self), (self.name, self._store.url, None, self._time), state

    def __setstate__(self, state: tuple[int, Sequence[Any], int, str | None]) -> None:
        known, functions, number, self._user = state
        if self._log.id != known:
            raise StoreError(f"study {self.name!r} was deleted from {self._store.url}, and another has its name now")
        self._log.set_constraints(functions, number)

    def __repr__(self) -> str:
        forbidden = {}
        with suppress(BelatedError):  # a study that cannot be read has a repr, too
            forbidden = self.forbidden
        marked = f", {_numbers(list(forbidden))} forbidden" if forbidden else ""
        return f"Study({self.name!r}, {self.store!r}, {self._optimizer!r}{marked})"

    def _repr_html_(self) -> str:
        import html

        self.sync()
        return f"<p>Study {html.escape(repr(self.name))}</p>{super()._repr_html_()}"

    def _after_fork(self) -> None:
        # If another thread was using the study at the fork, the core may be in the middle of a change. The store is not
        # affected.
        if not self._log.was_idle_at_fork():
            self._header()  # raises an error if the study was deleted
            functions, number = self._log.functions()
            self._functions = ()
            self._open(None)
            self._log.set_constraints(functions, number)

    def worklist(self, path: "str | os.PathLike[str] | None" = None) -> Any:
        """Return the trials that are out as a pandas DataFrame: since when, and when their results are due.

        Parameters
        ----------
        path : str or path, optional
            The .csv or .xlsx file to which the table is also written. In the file, texts that a spreadsheet would
            execute as formulas are marked by an apostrophe.

        Returns
        -------
        DataFrame
            A row for each pending trial, the one that is due first on top. The columns are ``number``; ``params_…``
            (for candidates without names, ``index``); ``context_…`` and ``fidelity`` if they were declared; if outcomes
            were declared, ``outcome_…`` with the values that have arrived and ``missing`` with the names of the others;
            and

            * ``since_utc``: the time of the suggestion.
            * ``due_utc``: the end of the lease (``expires_after`` of `suggest`), or else the median of the forecast of
              the delay, given that the trial has not arrived yet. Missing for added trials, and before a result has
              arrived.
            * ``due_from``: "lease" or "delays".
            * ``forbidden``: why the trial must not be run any longer (see `forbidden`), or an empty text.
            * ``late``: whether the lease has ended or, without a lease, the age exceeds the 95 % quantile of the delays
              of trials that arrive.

            Times are in UTC, without a time zone, as Excel requires. The delays are measured in wall-clock time, on
            either clock.

        Raises
        ------
        ImportError
            pandas is not installed, or openpyxl for an Excel file.
        InvalidSetting
            The name of the file has another ending.

        Examples
        --------
        >>> import belated as bl
        >>> from belated.store.memory import MemoryStore
        >>> study = bl.Study("dose", MemoryStore(), bl.RandomSearch({"dose": (0.0, 1.0)}, seed=0))
        >>> first, second = study.suggest(2, expires_after=3600.0)
        >>> first.observe(0.5)
        >>> study.worklist()[["number", "due_from", "late"]].to_dict("records")
        [{'number': 1, 'due_from': 'lease', 'late': False}]
        """
        log = self._current_log()
        table = worklist(self._table_source(), log, self._problem, self._problem_of, self.forbidden)
        if path is not None:
            write_worklist(table, path)
        return table

    def _table_source(self) -> Source:
        return Source(self.name, self._study_id, self._log.n_events())

    @property
    def _study_id(self) -> str:
        # A spreadsheet does not read this text as a number.
        return f"id-{self._log.id:012x}"

    def worklist_html(self, path: "str | os.PathLike[str] | None" = None) -> str:
        """Return `worklist` as a page of HTML that is fit to be printed, with empty cells for values and remarks.

        If outcomes were declared, each has a column with the values that have arrived. Numbers have six digits.

        Parameters
        ----------
        path : str or path, optional
            The file to which the page is also written.

        Raises
        ------
        ImportError
            pandas is not installed.
        """
        log = self._current_log()
        page = worklist_page(self._table_source(), log, self._problem, self._problem_of, self.forbidden)
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(page)
        return page

    # The whole study.

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

        Warns
        -----
        BelatedWarning
            The store is probably a copy of an SQLite file without its write-ahead log.

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
        names = opened.names()
        lost = None if names else opened.lost_tables()
        if lost is not None:
            warn(f"store {opened.url}: {lost}")
        found = [unless_deleted(opened, name, lambda name: _summary(cls(name, opened))) for name in names]
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
        self,
        name: str,
        space: "SpaceLike | None" = None,
        store: "str | os.PathLike[str] | Store | None" = None,
        *,
        fill: Mapping[str, Any] | None = None,
        map: Mapping[str, Mapping[Any, Any]] | None = None,
        keep: Mapping[str, Any] | None = None,
        drop: bool = False,
        **arguments: Any,
    ) -> "Study":
        """Create a study that begins with the trials of this study, perhaps with another space or other settings.

        This study is unchanged. The new study has its settings and attributes. Finished trials are copied with their
        values, std, cost, duration, errors, attrs, curves, marks, the last withdrawal of each trial and outcome, and
        the times of starts and ends, at the points that were run. They count as added trials, which estimates of delays
        leave out. Pending trials, including those that miss only some outcomes of the new study, enqueued points and
        the times of reports are not copied. Copied trials lack outcomes that only the new study has: these are
        abandoned.

        Parameters
        ----------
        name : str
            The name of the new study.
        space : mapping, optional
            The space of the new study. Trials whose point does not belong to this space are left out, with a
            `BelatedWarning` that counts them. A point belongs to the space if it has a value in range for each
            parameter that is not a constant, and if each parameter that the space lacks was a constant. `fill` and
            `keep` add points. Trials outside the space of this study are copied, too, and trials with removed choices
            as in `revise`. Default None: the same space.
        store : str or path, optional
            The store of the new study; see `Study`. Default None: the store of this study.
        fill, map, keep, drop, **arguments
            See `revise`.

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
        _check_revisable(arguments)
        log = self._current_log()
        if space is not None:
            arguments["space"] = space
        checked(drop, bool, "drop")
        given = (fill, map, keep)
        made = self._revised(arguments, "copy", None if drop else given)
        changes = checked_revision(self._problem, made._problem, given, has_trials=False)
        definition = definition_of(made)
        stage = Stage(made, definition, Revision(definition, *changes, "constraints" in arguments))
        converter = Converter([*log.stages, stage], measured=False)
        left_out: dict[str, list[int]] = {"pending": [], "outside": []}
        reason: str | None = None
        for number in log.numbers(None):
            record = log.trial(number)
            results = _results_by_outcome(self._problem, made._problem, record)
            if "pending" in ([record.state] if results is None else [each.state for each in results]):
                left_out["pending"].append(number)
            elif not _add(made, record, results, found := converter.trial(record)):
                left_out["outside"].append(number)
                reason = reason or found[-1]
        if self._create(name, target, made, made.time, self.attrs) is None:
            raise InvalidSetting(exists)
        copied = type(self)(name, target, time=made.time, constraints=made.constraints)
        lacks = parameters(made._problem).keys() - parameters(self._problem).keys() - (fill or {}).keys()
        advice = f"; fill= gives {sorted(lacks)} a value" if lacks else ""
        why = {"outside": f"do not belong to the space ({reason}{advice})", "pending": "are pending"}
        counted = [f"{_numbers(left_out[key])} {each}" for key, each in why.items() if left_out[key]]
        if counted:
            warn(
                f"study {name!r} has {copied.n_trials} of the {len(log)} trials of {self.name!r}: {'; '.join(counted)}"
            )
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
        if self._revision is not None:
            raise InvalidSetting(f"revision {self._revision} of study {self.name!r} is only for reading")
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


def checked_author(name: object) -> str:
    """Return the name of the author of events, or raise InvalidSetting."""
    if not _is_printable(name) or len(name) > LONGEST_AUTHOR:
        raise InvalidSetting(
            f"name={short_repr(name)} is not usable: pass a printable string of at most {LONGEST_AUTHOR} characters"
        )
    return name


def is_usable_name(name: object) -> TypeGuard[str]:
    """Return whether a text can be the name of a new study, or the key of a call."""
    return _is_printable(name) and len(name.encode()) <= LONGEST_NAME and name not in (".", "..")


def _is_printable(name: object) -> TypeGuard[str]:
    return isinstance(name, str) and name != "" and name.isprintable()


def _check_printable(name: object) -> None:
    if not _is_printable(name):
        raise InvalidSetting(f"name={short_repr(name)} is not usable: pass a printable string")


def check_key(key: str | None) -> None:
    if key is not None and not is_usable_name(key):
        raise InvalidSetting(
            f"key={short_repr(key)} is not usable: pass a printable string of at most {LONGEST_NAME} bytes in UTF-8, "
            "or None"
        )


def _check_revisable(arguments: Mapping[str, Any]) -> None:
    for name in ("seed", "clock", "time"):
        if name in arguments:
            raise InvalidSetting(f"{name} cannot be revised: leave it out, or create another study")


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


def _summary(study: Study) -> StudySummary:
    stored, log, best = study._header(), study._log, study._best_trials()
    front = [trial.number for trial in best] if study._problem.front else None
    single = best[0] if best and front is None else None
    last = study._store.events(log.id, max(log.n_events() - 1, 0))
    return StudySummary(
        study.name,
        study._strategy_name,
        study.direction,
        study.n_trials,
        dict(Counter(trial.state for trial in study.trials)),
        None if single is None else single.value,
        None if single is None else single.params_run,
        front,
        read_header(stored).get("attrs", {}),
        utc(stored.at),
        utc(last[-1].at if last else stored.at),
    )


def _results_by_outcome(problem: Problem, new: Problem, record: TrialRecord) -> list[Result] | None:
    """Return the results of a trial for the outcomes of the new problem; None without outcomes.

    The results of finished trials lack the outcomes that the new problem adds.
    """
    if not new.outcomes:
        return None
    marks = {i: (low, high) for i, low, high in record.marks}
    facts = zip(problem.outcomes, record.outcomes, strict=True)
    known = {
        name: Result(state, value, std, at, withdrawal, marks.get(i))
        for i, (name, (state, value, std, _, at, withdrawal)) in enumerate(facts)
    }
    if not problem.outcomes and new.front:
        raise InvalidSetting(
            f"the values of the trials do not have a name, and {new.front} are objectives: first copy with one "
            "objective, which gets these values, and then add the others by revise"
        )
    if not problem.outcomes and new.objective is not None:
        # A value without a name becomes the objective.
        known = {new.objective: result_of(record)}
    return [known.get(name, Result("abandoned", at=record.finished_at)) for name in new.outcomes]


def _add(made: Optimizer, record: TrialRecord, results: Sequence[Result] | None, converted: Converted) -> bool:
    """Add a trial, whose point was converted. Return False if the point does not belong to the space.

    `results` has the result of each outcome of the new problem.
    """
    start, run, context, fidelity, _, reason = converted
    place = start if record.run is None else run
    if reason is not None or place is None:
        return False
    # A problem without curves does not have reports of trials from before the revision that removed its curve.
    trial = of_record(record, results, made._problem.curve is not None)
    added, rest = trial.adding(place, context or None, fidelity, attrs_as_json(merged_attrs(record.attrs)))
    number = made._log.record(added, record.started_at)
    assert number is not None  # the trial is new
    for action, at in rest(number):
        made._log.record(action, record.started_at if at is None else at)
    return True


def _numbers(numbers: list[int]) -> str:
    """Return a count of trials and their numbers, for a warning."""
    shown = ", ".join(map(str, numbers[:_NUMBERS_SHOWN])) + (", …" if len(numbers) > _NUMBERS_SHOWN else "")
    return f"{len(numbers)} ({'number' if len(numbers) == 1 else 'numbers'} {shown})"
