"""Studies: an optimizer whose log is kept in a store, for many processes and for longer than any of them lives."""

import html
import os
import secrets
import threading
import time as clocks
import weakref
from collections.abc import Callable, Mapping
from reprlib import repr as short_repr
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from belated import _core
from belated._core import AlreadyObserved, InvalidSetting, UnknownTrial
from belated.space.arguments import finite, whole_number
from belated.optimizers.life_cycle import Optimizer
from belated.study.shared_log import SharedLog
from belated.store import Store, StoreError, open_store
from belated.store.checksums import header, read_header, with_checksum
from belated.study.definition import definition_of, differences, optimizer_from
from belated.optimizers.trial import Trial

_LONGEST_NAME = 1000


class Study:
    """An optimizer whose log is kept in a store: it outlives the process, and many processes can share it.

    Suggesting and reporting work as with an optimizer, and a report is safe once the call returns. Any process
    may report on any trial; whatever arrives is accepted: late, twice, in any order, after `fail` or a lease.
    Every method takes in first what others wrote; a `Trial` shows what its study knew when that was last done.

    Parameters
    ----------
    name : str
        Which study of the store.
    store : str or path
        ``"sqlite:///file.db"`` (``sqlite:////`` for an absolute path). The file may hold several studies and serve
        many processes of one machine, but must not lie on a network file system.
    optimizer : Optimizer, optional
        Needed to create the study, with the trials it has. Where the study exists, leave it out, or pass an equal one.
    time : callable, optional
        A function that returns seconds, default `time.time`: for time stamps, leases and ``clock="seconds"``.

    Raises
    ------
    StoreError
        The store cannot be read or written, or is damaged; there is no such study and `optimizer` is None.
    InvalidSetting
        The study exists with other settings than `optimizer` has; the message names them.

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
    ) -> None:
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
            raise InvalidSetting(f"name={short_repr(name)} is not usable: pass a printable string")
        if optimizer is not None and not isinstance(optimizer, Optimizer):
            raise InvalidSetting(f"optimizer={short_repr(optimizer)} is not usable: pass an optimizer of belated")
        if time is None and optimizer is not None:
            time = optimizer.time
        if time is not None and not callable(time):
            raise InvalidSetting(f"time={short_repr(time)} is not usable: pass a function that returns seconds")
        self.name = name
        self._time = time
        self._wall = _seconds(time or clocks.time)
        self._store = open_store(store)
        self._open(optimizer)
        _OPEN.add(self)

    @classmethod
    def load(
        cls, name: str, store: "str | os.PathLike[str] | Store", time: Callable[[], float] | None = None
    ) -> "Study":
        """Open a study that exists.

        Raises
        ------
        StoreError
            There is none of this name, or it cannot be read.
        """
        return cls(name, store, time=time)

    def _open(self, given: Optimizer | None) -> None:
        found = self._store.header(self.name)
        created = False
        while found is None:
            if given is None:
                raise StoreError(f"there is no study {self.name!r} in {self._store.url}: pass optimizer= to create it")
            # Drawn at random, so that no event of one study passes for one of another.
            new, at = secrets.randbits(48), self._wall()
            records = [with_checksum(new, seq, None, at, body) for seq, body in enumerate(given._core.events(0))]
            created = self._store.create(header(new, self.name, definition_of(given), at), records)
            found = self._store.header(self.name)
        definition = read_header(found)
        if given is not None and not created:
            self._compare(definition, given)
        # Tells trials of this study, in whichever process, from those of any other.
        self.token = f"study {found.id}"
        self._optimizer = optimizer_from(definition, self._wall)
        self._log = SharedLog(self._optimizer._core, self._store, self.name, found.id, self._wall)
        # From here on all that the optimizer writes goes to the store first.
        self._optimizer._core = self._log  # type: ignore[assignment]
        self.sync()

    def _compare(self, definition: Mapping[str, Any], given: Optimizer) -> None:
        different = differences(definition, given)
        if different:
            raise InvalidSetting(
                f"study {self.name!r} exists with other settings: {'; '.join(different)}; "
                "leave optimizer out to go on with the study, or choose another name"
            )
        if given.n_trials:
            raise InvalidSetting(
                f"study {self.name!r} exists, and the optimizer given has trials of its own: "
                "pass one without, and add them with study.add"
            )

    def sync(self) -> int:
        """Take in what other processes wrote, as every method does; the number of events that were new."""
        return self._log.sync()

    def _number(self, trial: Trial | int) -> int:
        """A trial's number, which the log is searched for if it is news."""
        if isinstance(trial, Trial):
            if trial._optimizer.token != self.token:
                raise UnknownTrial(f"{trial!r} belongs to another study or optimizer: report to the one it came from")
            trial = trial.number
        number = whole_number(trial)
        with self._log.lock:
            if number is not None and number >= len(self._log):
                self.sync()
            return self._optimizer._number_of(trial)

    def _own(self, trial: Trial) -> Trial:
        """A trial of the optimizer as one of this study, which has all that a trial asks for."""
        return Trial(self, trial.number)  # type: ignore[arg-type]

    # What trials ask for.

    def record_of(self, trial: Trial) -> _core.TrialRecord:
        """What the log knows about a trial, in the core's terms."""
        with self._log.lock:
            return self._optimizer.record_of(trial)

    def point_of(self, trial: Trial) -> Any:
        """A trial's params, or its row for candidates."""
        with self._log.lock:
            return self._optimizer.point_of(trial)

    def context_of(self, trial: Trial) -> dict[str, Any] | None:
        """A trial's context by name, None where none was declared."""
        with self._log.lock:
            return self._optimizer.context_of(trial)

    def value_of(self, trial: Trial) -> float | None:
        """A trial's value, None until there is one."""
        with self._log.lock:
            return self._optimizer.value_of(trial)

    # The life cycle.

    @overload
    def suggest(
        self,
        n: None = None,
        context: Mapping[str, Any] | None = None,
        *,
        key: str | None = None,
        expires_after: float | None = None,
    ) -> Trial: ...
    @overload
    def suggest(
        self,
        n: int,
        context: Mapping[str, Any] | None = None,
        *,
        key: str | None = None,
        expires_after: float | None = None,
    ) -> list[Trial]: ...
    def suggest(
        self,
        n: int | None = None,
        context: Mapping[str, Any] | None = None,
        *,
        key: str | None = None,
        expires_after: float | None = None,
    ) -> Trial | list[Trial]:
        """Start a trial, or n at once; see `Optimizer.suggest`.

        Parameters
        ----------
        key : str, optional
            A name for this request: asked again with it, as after a crash, the same trials are returned.
        expires_after : float, optional
            Seconds after which the model no longer counts on the trial's result. It is accepted all the same.
        """
        wanted = 1 if n is None else whole_number(n)
        if wanted is None or wanted < 0:
            raise InvalidSetting(f"n={short_repr(n)} is not usable: pass an integer >= 0, or None for one trial")
        _check_key(key)
        lease = None if expires_after is None else finite(expires_after)
        if expires_after is not None and (lease is None or lease < 0):
            raise InvalidSetting(f"expires_after={short_repr(expires_after)} is not usable: pass seconds >= 0, or None")
        encoded = self._optimizer._encode_context(context)
        numbers = self._log.suggest(wanted, encoded, self._optimizer._now, key, lease) if wanted else []
        trials = [self._own(self._optimizer.trial(number)) for number in numbers]
        return trials[0] if n is None else trials

    def observe(
        self,
        trial: Trial | int,
        value: float,
        amend: bool = False,
        *,
        std: float | None = None,
        replicate: bool = False,
        key: str | None = None,
    ) -> None:
        """Report a trial's value: at any time, in any order, from any process; see `Optimizer.observe`.

        Parameters
        ----------
        amend : bool, default False
            Replace a value that is there already.
        std : float, optional
            The standard deviation of this value's noise, where it is known.
        replicate : bool, default False
            Where there is a value already, record another measurement of the same point, as a trial of its own.
        key : str, optional
            A name for this report: a second one with it changes nothing.
        """
        _check_key(key)
        if amend and replicate:
            raise InvalidSetting("amend and replicate exclude each other: a value is replaced, or another one added")
        number = self._number(trial)
        oriented = self._optimizer._check_value(value, f"trial {number}")
        deviation = self._optimizer._check_std(std, f"trial {number}")
        now = self._optimizer._now()
        if replicate:
            return self._log.replicate(number, oriented, now, key, deviation)
        try:
            self._log.observe(number, oriented, now, bool(amend), deviation, key)
        except AlreadyObserved:
            raise AlreadyObserved(
                f"trial {number} has the value {self._optimizer.trial(number).value!r} already, and now "
                f"value={value!r}; pass amend=True to replace it, or replicate=True to keep both"
            ) from None

    def fail(self, trial: Trial | int) -> None:
        """Report that a trial crashed; see `Optimizer.fail`."""
        self._optimizer.fail(self._number(trial))

    def abandon(self, trial: Trial | int) -> None:
        """Give a trial up; see `Optimizer.abandon`."""
        self._optimizer.abandon(self._number(trial))

    def add(self, params: Any, value: Any = None, context: Any = None, *, std: Any = None) -> Any:
        """Add trials that were not suggested, all of them or none; see `Optimizer.add`."""
        with self._log.writing():
            added = self._optimizer.add(params, value, context, std=std)
        return [self._own(trial) for trial in added] if isinstance(added, list) else self._own(added)

    def enqueue(self, params: Any) -> None:
        """Have these points suggested next, by whichever process asks; see `Optimizer.enqueue`."""
        with self._log.writing():
            self._optimizer.enqueue(params)

    # What is known.

    def trial(self, number: int) -> Trial:
        """The trial with this number; UnknownTrial if there is none."""
        return self._own(self._optimizer.trial(self._number(number)))

    def _synced(self) -> Optimizer:
        self.sync()
        return self._optimizer

    @property
    def optimizer(self) -> dict[str, Any]:
        """The settings of the study's optimizer, as `Optimizer.get_params` gives them."""
        return self._optimizer.get_params()

    @property
    def store(self) -> str:
        """The URL of the store."""
        return self._store.url

    @property
    def n_trials(self) -> int:
        """Number of trials, whatever their state."""
        return self._synced().n_trials

    @property
    def trials(self) -> list[Trial]:
        """All trials, by number."""
        return [self._own(trial) for trial in self._synced().trials]

    @property
    def pending_(self) -> list[Trial]:
        """The trials without a result so far."""
        return [self._own(trial) for trial in self._synced().pending_]

    @property
    def best_trial_(self) -> Trial | None:
        """The trial with the best observed value; None before the first."""
        best = self._synced().best_trial_
        return None if best is None else self._own(best)

    @property
    def best_params_(self) -> Any:
        """The params (the row, for candidates) of the best observed value; None before the first."""
        return self._synced().best_params_

    @property
    def best_value_(self) -> float | None:
        """The best observed value; None before the first."""
        return self._synced().best_value_

    def recommend(self, context: Mapping[str, Any] | None = None) -> Any:
        """The point to use in the end; see `Optimizer.recommend`."""
        return self._synced().recommend(context)

    def predict(
        self, params: Any = None, context: Mapping[str, Any] | None = None, *, pending: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The model's mean and standard deviation of f; see `BayesOpt.predict`."""
        optimizer = self._synced()
        if not hasattr(optimizer, "predict"):
            raise InvalidSetting(f"{type(optimizer).__name__} has no model to predict with")
        mean, std = optimizer.predict(params, context, pending=pending)
        return mean, std

    def trials_dataframe(self) -> Any:
        """All trials as a pandas DataFrame; see `Optimizer.trials_dataframe`."""
        return self._synced().trials_dataframe()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings of the study's optimizer; `deep` changes nothing."""
        return self._optimizer.get_params()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self._store.url, None, self._time)

    def __repr__(self) -> str:
        return f"Study({self.name!r}, {self.store!r}, {self._optimizer!r})"

    def _repr_html_(self) -> str:
        return f"<p>Study {html.escape(repr(self.name))}</p>{self._synced()._repr_html_()}"

    def _after_fork(self) -> None:
        # If another thread was at work here, the core is in the middle of something; the store is not.
        idle = self._log.lock.acquire(blocking=False)
        self._log.lock = threading.RLock()
        self._log._draft = None
        if not idle:
            self._open(None)


def _seconds(time: Callable[[], float]) -> Callable[[], float]:
    """`time`, with an error where it gives no time."""

    def checked() -> float:
        now = finite(time())
        if now is None:
            raise InvalidSetting("time() did not return a finite number of seconds")
        return now

    return checked


def _check_key(key: str | None) -> None:
    if key is not None and not (isinstance(key, str) and 0 < len(key) <= _LONGEST_NAME and key.isprintable()):
        raise InvalidSetting(f"key={short_repr(key)} is not usable: pass a printable string, or None")


_OPEN: "weakref.WeakSet[Study]" = weakref.WeakSet()


def _after_fork() -> None:
    for study in list(_OPEN):
        study._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
