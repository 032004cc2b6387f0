"""The life cycle that all optimizers share: named parameters, directions and clocks around the core."""

import secrets
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, fields
from reprlib import repr as short_repr
from typing import Any, Literal, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from belated import _core
from belated._core import (
    AlreadyObserved,
    BelatedError,
    InvalidContext,
    InvalidSetting,
    InvalidSpace,
    InvalidValue,
    UnknownTrial,
)
from belated.space.arguments import finite, is_list, whole_number
from belated.space.space import Candidates, ContextSpace, Space
from belated.optimizers.trial import Trial, html_table

SpaceLike: TypeAlias = Mapping[str, Any] | Iterable[tuple[str, Any]]
Values = TypeVar("Values", float, NDArray[np.float64])

_ROWS_SHOWN = 10


class NotFitted(BelatedError, ValueError):
    """Something was asked of the model before it had values to learn from."""


@dataclass(eq=False, repr=False)
class Optimizer:
    """The life cycle that all optimizers share; use a subclass.

    Constructor arguments are readable under their names and fixed once there is a trial.
    Methods may be called from several threads. An optimizer can be pickled at any moment, with
    trials pending; the copy goes on exactly as the original would.
    """

    space: SpaceLike | None = None
    _: KW_ONLY
    candidates: ArrayLike | None = None
    context: SpaceLike | None = None
    clock: Literal["iterations", "seconds"] = "iterations"
    direction: Literal["maximize", "minimize"] = "maximize"
    seed: int | None = None
    time: Callable[[], float] | None = None

    def __post_init__(self) -> None:
        self._check_choice("clock", ("iterations", "seconds"))
        self._check_choice("direction", ("maximize", "minimize"))
        if self.time is not None and not callable(self.time):
            raise InvalidSetting(f"time={short_repr(self.time)} is not usable: pass a function that returns seconds")
        if self.time is not None and self.clock != "seconds":
            raise InvalidSetting("time is given but never asked: pass clock='seconds', or leave time out")
        if (self.space is None) == (self.candidates is None):
            given = "neither" if self.space is None else "both"
            raise InvalidSpace(f"{given} of space and candidates given: pass exactly one")
        self.domain_: Space | Candidates
        if self.space is not None:
            self.domain_ = Space(self.space)
        else:
            self.domain_ = Candidates(self.candidates)  # type: ignore[arg-type]  # not None, as just checked
        self.context_space_ = None if self.context is None else ContextSpace(self.context)
        if isinstance(self.domain_, Space) and self.context_space_ is not None:
            both = [name for name in self.context_space_ if name in self.domain_]
            if both:
                raise InvalidSpace(f"{both} stand in both space and context: give each name once")
        seed = secrets.randbits(63) if self.seed is None else whole_number(self.seed)
        if seed is None or not 0 <= seed < 2**64:
            raise InvalidSetting(f"seed={short_repr(self.seed)} is not usable: pass an integer from 0 to 2**64 - 1")
        self.seed_ = seed
        # Tells trials of this optimizer, and of its pickled copies, from those of any other.
        self.token = uuid.uuid4().hex
        self._queued = False
        self._core = self._start(self.domain_.domain(), self.context_space_.width if self.context_space_ else 0)

    def _check_choice(self, name: str, choices: tuple[str, ...]) -> None:
        value = getattr(self, name)
        if not isinstance(value, str) or value not in choices:
            raise InvalidSetting(f"{name}={short_repr(value)} is not usable: pass one of {list(choices)}")

    def _start(self, domain: _core.Domain, context_width: int) -> _core.Optimizer:
        raise InvalidSetting("Optimizer has no strategy of its own: use BayesOpt or RandomSearch")

    # The edge: what comes in is encoded and oriented here, what goes out decoded and oriented back.

    def _oriented(self, value: Values) -> Values:
        """Values of f in the core's orientation, or back: the core always maximises."""
        return -value if self.direction == "minimize" else value

    def _now(self) -> float | None:
        if self.clock == "iterations":
            return None
        now = finite((self.time or time.time)())
        if now is None:
            raise InvalidSetting("time() did not return a finite number of seconds")
        return now

    def _encode_context(self, context: Any) -> NDArray[np.float64] | None:
        if self.context_space_ is None:
            if context is not None:
                raise InvalidContext(
                    f"context={short_repr(context)} was not declared: pass its space as context= to "
                    f"{type(self).__name__}, or leave it out here"
                )
            return None
        if context is None:
            raise InvalidContext(f"context is missing: pass a dict with the names {list(self.context_space_)}")
        return self.context_space_.encode(context)

    def _number_of(self, trial: Trial | int) -> int:
        known = len(self._core)
        if isinstance(trial, Trial):
            if not self._knows(trial):
                raise UnknownTrial(f"{trial!r} belongs to another optimizer: report to the one that suggested it")
            return trial.number
        number = whole_number(trial)
        if number is None or not 0 <= number < known:
            raise UnknownTrial(
                f"trial {short_repr(trial)} is unknown: this optimizer has {known} trials, numbered from 0; "
                "pass a trial that suggest or add returned, or its number"
            )
        return number

    def _knows(self, trial: Trial) -> bool:
        other = trial._optimizer
        if other is self:
            return True
        # A trial that travelled to another process and back holds a copy of this optimizer.
        return (
            other.token == self.token
            and trial.number < len(self._core)
            and np.array_equal(other.record_of(trial).point, self._core.trial(trial.number).point)
        )

    def _check_value(self, value: Any, what: str) -> float:
        number = finite(value)
        if number is None:
            raise InvalidValue(
                f"value={short_repr(value)} for {what} is not one finite real number; "
                "pass a finite number, or report a crash with fail (nothing was changed)"
            )
        return self._oriented(number)

    def _check_std(self, std: Any, what: str) -> float | None:
        number = None if std is None else finite(std)
        if std is not None and (number is None or number < 0):
            raise InvalidValue(
                f"std={short_repr(std)} for {what} is not a finite number >= 0; pass the standard deviation of the "
                "value's noise, or leave it out (nothing was changed)"
            )
        return number

    def record_of(self, trial: Trial) -> _core.TrialRecord:
        """What the log knows about a trial of this optimizer, in the core's terms."""
        return self._core.trial(trial.number)

    def point_of(self, trial: Trial) -> Any:
        """A trial's params, or its row for candidates."""
        record = self.record_of(trial)
        return self.domain_.decode(record.point, record.index)

    def context_of(self, trial: Trial) -> dict[str, Any] | None:
        """A trial's context by name, None where none was declared."""
        return None if self.context_space_ is None else self.context_space_.decode(self.record_of(trial).context)

    def value_of(self, trial: Trial) -> float | None:
        """A trial's value, None until there is one."""
        value = self.record_of(trial).value
        return None if value is None else self._oriented(value)

    # The life cycle.

    @overload
    def suggest(self, n: None = None, context: Mapping[str, Any] | None = None) -> Trial: ...
    @overload
    def suggest(self, n: int, context: Mapping[str, Any] | None = None) -> list[Trial]: ...
    def suggest(self, n: int | None = None, context: Mapping[str, Any] | None = None) -> Trial | list[Trial]:
        """Start a trial, or n at once; never waits for pending ones.

        Parameters
        ----------
        n : int, optional
            How many; None gives one `Trial`, a number a list.
        context : mapping, optional
            Values by name, where a context was declared; it then must be given.

        Returns
        -------
        Trial or list of Trial

        Raises
        ------
        InvalidContext
            A context that is missing, was not declared, or is out of its space.
        InvalidSetting
            An n that is not an integer >= 0.

        Examples
        --------
        >>> import belated as bl
        >>> optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
        >>> [trial.number for trial in optimizer.suggest(n=3)]
        [0, 1, 2]
        """
        wanted = 1 if n is None else whole_number(n)
        if wanted is None or wanted < 0:
            raise InvalidSetting(f"n={short_repr(n)} is not usable: pass an integer >= 0, or None for one trial")
        encoded = self._encode_context(context)
        numbers = self._core.suggest(wanted, encoded, self._now()) if wanted else []
        trials = [Trial(self, number) for number in numbers]
        return trials[0] if n is None else trials

    def observe(self, trial: Trial | int, value: float, amend: bool = False, *, std: float | None = None) -> None:
        """Report a trial's value: at any time, in any order, also after `fail` or `abandon`.

        Parameters
        ----------
        trial : Trial or int
            The trial or its number.
        value : float
            One finite real number (a 0-d array will do).
        amend : bool, default False
            Replace a value that is there already.
        std : float, optional
            The standard deviation of this value's noise, where you know it (of a mean over n repetitions that of one
            divided by sqrt(n)). The model then takes it at its word, and fits the noise of the other values.

        Raises
        ------
        InvalidValue
            NaN, inf, complex, bool, str, or anything with an axis, or a std below 0; the trial stays as it was.
        UnknownTrial
            A number never given out, or a trial of another optimizer.
        AlreadyObserved
            Another value is there and amend is False. The same value again changes nothing.

        Examples
        --------
        >>> import belated as bl
        >>> optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, direction="minimize", seed=0)
        >>> first, second = optimizer.suggest(n=2)
        >>> optimizer.observe(second, 0.5)
        >>> optimizer.observe(0, 0.75)
        >>> optimizer.best_value_
        0.5
        """
        number = self._number_of(trial)
        oriented = self._check_value(value, f"trial {number}")
        deviation = self._check_std(std, f"trial {number}")
        try:
            self._core.observe(number, oriented, self._now(), bool(amend), deviation)
        except AlreadyObserved:
            # Said again here, because the core knows values in its own orientation only.
            raise AlreadyObserved(
                f"trial {number} has the value {self.trial(number).value!r} already, and now value={value!r}; "
                "pass amend=True to replace it"
            ) from None

    def fail(self, trial: Trial | int) -> None:
        """Report that a trial crashed: the model takes its point for as bad as the worst observed.

        Raises
        ------
        UnknownTrial
            A number never given out, or a trial of another optimizer.
        AlreadyObserved
            The trial has a value.
        """
        self._resolve(trial, self._core.fail, "fail")

    def abandon(self, trial: Trial | int) -> None:
        """Give a trial up without a verdict on its point: the model drops it.

        Raises
        ------
        UnknownTrial
            A number never given out, or a trial of another optimizer.
        AlreadyObserved
            The trial has a value.
        """
        self._resolve(trial, self._core.abandon, "be abandoned")

    def _resolve(self, trial: Trial | int, resolve: Callable[[int, float | None], None], verb: str) -> None:
        number = self._number_of(trial)
        try:
            resolve(number, self._now())
        except AlreadyObserved:
            value = self.trial(number).value
            raise AlreadyObserved(f"trial {number} has the value {value!r} already and cannot {verb}") from None

    def add(self, params: Any, value: Any = None, context: Any = None, *, std: Any = None) -> Any:
        """Add trials that were not suggested: earlier data, or points of one's own.

        Parameters
        ----------
        params : mapping, row or index; or a list of these; or DataFrame
            In a space: values by name, a list of such, or a DataFrame with a column for each name.
            For candidates: an index or a row; rows of shape (n, d), or, where `value` is a list too, indices.
        value : float or sequence of float, optional
            The observed value of each point. None, also within the sequence: the trial is pending.
        context : mapping, list of mappings or DataFrame, optional
            Where a context was declared: one for all points, or one for each.
        std : float or sequence of float, optional
            The standard deviation of the noise of each value, or of all; see `observe`.

        Returns
        -------
        Trial or list of Trial
            As many as there were points, and a list if they came as one.

        Raises
        ------
        InvalidPoint, InvalidValue, InvalidContext
            If anything at all is wrong, nothing is added.

        Examples
        --------
        >>> import belated as bl
        >>> optimizer = bl.RandomSearch({"x": (0.0, 1.0)})
        >>> optimizer.add({"x": 0.25}, 3.0)
        Trial(number=0, params={'x': 0.25}, state='observed', value=3.0)
        >>> len(optimizer.add([{"x": 0.5}, {"x": 0.75}], [4.0, None]))
        2
        """
        several = self.domain_.holds_several(params, listed=is_list(value))
        points = self.domain_.split(params) if several else [params]
        values = [value]
        if several:
            if value is not None and not is_list(value):
                raise InvalidValue(f"value={short_repr(value)} for {len(points)} points: pass one value for each")
            values = [None] * len(points) if value is None else list(value)
        if len(values) != len(points):
            raise InvalidValue(f"value has {len(values)} entries for {len(points)} points: pass one for each")
        stds = list(std) if is_list(std) else [std] * len(points)
        if len(stds) != len(points):
            count = f"std has {len(stds)} entries for {len(points)} points"
            raise InvalidValue(f"{count}: pass one for each, or one for all")
        contexts = self._split_context(context, len(points))
        located = [self.domain_.locate(point) for point in points]
        encoded = [self._encode_context(one) for one in contexts]
        names = [f"params[{i}]" if several else "params" for i in range(len(points))]
        oriented = [None if y is None else self._check_value(y, name) for y, name in zip(values, names, strict=True)]
        deviations = [self._check_std(sd, name) for sd, name in zip(stds, names, strict=True)]
        now = self._now()
        trials = [
            Trial(self, self._core.add(point, index, z, y, now, None if y is None else sd))
            for (point, index), z, y, sd in zip(located, encoded, oriented, deviations, strict=True)
        ]
        return trials if several else trials[0]

    def _split_context(self, context: Any, n: int) -> list[Any]:
        """One context for each of n points."""
        if self.context_space_ is None or not self.context_space_.holds_several(context):
            return [context] * n
        contexts = self.context_space_.split(context)
        if len(contexts) != n:
            raise InvalidContext(f"context has {len(contexts)} entries for {n} points: pass one for each, or one")
        return contexts

    def enqueue(self, params: Any) -> None:
        """Have these points suggested next, in this order, before any of the optimizer's own.

        Parameters
        ----------
        params : mapping, row or index; or a list of these; or DataFrame
            As for `add`.

        Raises
        ------
        InvalidPoint
            If any point does not belong to the space or the candidates; nothing is enqueued then.

        Examples
        --------
        >>> import belated as bl
        >>> optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
        >>> optimizer.enqueue({"x": 0.5})
        >>> optimizer.suggest().params
        {'x': 0.5}
        """
        points = self.domain_.split(params) if self.domain_.holds_several(params) else [params]
        located = [self.domain_.locate(point) for point in points]
        for point, index in located:
            self._core.enqueue(point, index)
            self._queued = True

    # What is known.

    def trial(self, number: int) -> Trial:
        """The trial with this number; UnknownTrial if there is none."""
        return Trial(self, self._number_of(number))

    @property
    def n_trials(self) -> int:
        """Number of trials, whatever their state."""
        return len(self._core)

    @property
    def trials(self) -> list[Trial]:
        """All trials, by number."""
        return [Trial(self, number) for number in self._core.numbers(None)]

    @property
    def pending_(self) -> list[Trial]:
        """The trials without a result so far."""
        return [Trial(self, number) for number in self._core.numbers("pending")]

    @property
    def best_trial_(self) -> Trial | None:
        """The trial with the best observed value; None before the first."""
        number = self._core.best()
        return None if number is None else Trial(self, number)

    @property
    def best_params_(self) -> Any:
        """The params (the row, for candidates) of the best observed value; None before the first."""
        best = self.best_trial_
        return None if best is None else self.point_of(best)

    @property
    def best_value_(self) -> float | None:
        """The best observed value; None before the first."""
        best = self.best_trial_
        return None if best is None else best.value

    def recommend(self, context: Mapping[str, Any] | None = None) -> Any:
        """The point to use in the end: the best by the model's mean, which sees through noise.

        Parameters
        ----------
        context : mapping, optional
            What to recommend for, where a context was declared.

        Returns
        -------
        dict or ndarray
            Params by name; for candidates the row, shape (d,).

        Raises
        ------
        NotFitted
            Nothing has been observed.
        InvalidContext
            A context that is missing, was not declared, or is out of its space.
        """
        encoded = self._encode_context(context)
        best = self._core.recommend(encoded, self._now())
        if best is None:
            raise NotFitted("recommend needs values: observe at least one trial first")
        point, index, _, _ = best
        return self.domain_.decode(point, index)

    def trials_dataframe(self) -> Any:
        """All trials as a pandas DataFrame, one row each.

        Columns: number, state, value, suggested_at, observed_at, delay; then ``params_…`` for each name
        (``index`` for candidates: join with the array by it), and ``context_…``.

        Raises
        ------
        ImportError
            pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise ImportError("trials_dataframe needs pandas: pip install pandas") from None
        facts = ["number", "state", "value", "suggested_at", "observed_at", "delay"]
        names = list(self.domain_) if isinstance(self.domain_, Space) else []
        contexts = list(self.context_space_ or ())
        rows = []
        for trial in self.trials:
            row = [getattr(trial, fact) for fact in facts]
            row += trial.params.values() if names else [trial.index]
            row += (trial.context or {}).values()
            rows.append(row)
        columns = facts + ([f"params_{name}" for name in names] or ["index"]) + [f"context_{name}" for name in contexts]
        return pandas.DataFrame(rows, columns=columns)

    # Settings, as in scikit-learn.

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor arguments by name; `deep` changes nothing."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self, **params: Any) -> "Optimizer":
        """Change constructor arguments, before the first trial.

        Raises
        ------
        InvalidSetting
            There are trials or enqueued points already, or an argument does not exist.
        """
        if self.n_trials or self._queued:
            raise InvalidSetting("set_params comes too late: there are trials already; make a new optimizer instead")
        arguments = self.get_params()
        unknown = [name for name in params if name not in arguments]
        if unknown:
            raise InvalidSetting(f"{unknown} are no arguments of {type(self).__name__}: it has {list(arguments)}")
        # All or nothing: a bad argument raises before anything of this optimizer is touched.
        vars(self).update(vars(type(self)(**(arguments | params))))
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        if "_core" in vars(self) and name in self.__dataclass_fields__:
            raise InvalidSetting(f"{name} cannot be assigned: use set_params, before the first trial")
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_core": self._core.to_bytes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state | {"_core": _core.Optimizer.from_bytes(state["_core"])})

    def __repr__(self) -> str:
        shown = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not (isinstance(value, type(field.default)) and value == field.default):
                shown[field.name] = self.domain_ if field.name == "candidates" else value
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    def _repr_html_(self) -> str:
        trials = self.trials
        rows = []
        for trial in reversed(trials[-_ROWS_SHOWN:]):
            facts = (trial.params or trial.index, trial.context, trial.state, trial.value)
            rows.append([trial.number] + ["" if fact is None else fact for fact in facts])
        caption = f"{type(self).__name__}: {len(trials)} trials, {len(self.pending_)} pending, best {self.best_value_}"
        return f"<p>{caption}</p>" + html_table(["number", "point", "context", "state", "value"], rows)
