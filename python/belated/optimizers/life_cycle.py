"""The life cycle of trials, from suggestion to result: the same for optimizers and studies."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from reprlib import repr as short_repr
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from belated._core import AlreadyObserved, InvalidSetting, InvalidValue, UnknownTrial
from belated.optimizers.log import Array, Log, Record
from belated.optimizers.problem import Problem
from belated.optimizers.read_access import ReadAccess
from belated.optimizers.tables import add_trials_table, is_trials_table
from belated.optimizers.trial import Trial, html_table
from belated.space.arguments import is_list, whole_number

AnyLog = TypeVar("AnyLog", bound=Log)

_ROWS_SHOWN = 10


class LifeCycle(ReadAccess, Generic[AnyLog]):
    """Trials from suggestion to result, on a log that a subclass provides.

    A subclass sets `_problem`, `_log` and `_token`, and overrides what its log needs.
    """

    _problem: Problem
    _log: AnyLog
    # Tells trials of this optimizer or study, and of its copies, from those of any other.
    _token: str

    @property
    def _source(self) -> "LifeCycle[AnyLog]":
        return self

    # What a subclass may have otherwise.

    @property
    def _strategy_name(self) -> str:
        """The class of the optimizer, for messages."""
        return type(self).__name__

    @property
    def _has_model(self) -> bool:
        """Whether there is a posterior to predict with."""
        return False

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings by name."""
        raise NotImplementedError

    def _start_trials(self, n: int, context: Array | None) -> list[int]:
        """Start n > 0 trials; their numbers."""
        raise NotImplementedError

    def _current_log(self) -> Log:
        """The log, up to date."""
        return self._log

    def _at_once(self) -> AbstractContextManager[Any]:
        """All that is logged within becomes visible at once, or none of it."""
        return nullcontext()

    def _knows(self, trial: Trial) -> bool:
        """Whether a trial comes from here."""
        return trial._owner._token == self._token

    def _record_of(self, trial: Trial) -> Record:
        """What the log knows about a trial, in the core's terms."""
        return self._log.trial(trial.number)

    # What trials ask for.

    def _point_of(self, trial: Trial) -> Any:
        """A trial's params, or its row for candidates."""
        record = self._record_of(trial)
        return self._problem.domain.decode(record.point, record.index, record.given)

    def _context_of(self, trial: Trial) -> dict[str, Any] | None:
        """A trial's context by name, None where none was declared."""
        contexts = self._problem.context_space
        return None if contexts is None else contexts.decode(self._record_of(trial).context)

    def _value_of(self, trial: Trial) -> float | None:
        """A trial's value, None until there is one."""
        value = self._record_of(trial).value
        return None if value is None else self._problem.oriented(value)

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
        return self._start(n, context, self._start_trials)

    def observe(self, trial: Trial | int, value: float, *, amend: bool = False, std: float | None = None) -> None:
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

        def record(number: int, value: float, now: float | None, std: float | None) -> None:
            self._log.observe(number, value, now, bool(amend), std)

        self._observe(trial, value, std, record, "pass amend=True to replace it")

    def _start(
        self, n: int | None, context: Any, start: Callable[[int, Array | None], list[int]]
    ) -> Trial | list[Trial]:
        """Have trials started, one or several as `suggest` was asked for."""
        wanted = 1 if n is None else whole_number(n)
        if wanted is None or wanted < 0:
            raise InvalidSetting(f"n={short_repr(n)} is not usable: pass an integer >= 0, or None for one trial")
        encoded = self._encode_context(context)
        trials = [Trial(self, number) for number in (start(wanted, encoded) if wanted else [])]
        return trials[0] if n is None else trials

    def _observe(
        self,
        trial: Trial | int,
        value: float,
        std: float | None,
        record: Callable[[int, float, float | None, float | None], None],
        remedy: str,
    ) -> None:
        """Check a value and hand (number, oriented value, now, std) on; `remedy` is for where there is one already."""
        number = self._number_of(trial)
        oriented = self._problem.check_value(value, f"trial {number}")
        deviation = self._problem.check_std(std, f"trial {number}")
        try:
            record(number, oriented, self._problem.now(), deviation)
        except AlreadyObserved:
            # Raised anew, because the core knows values in its own orientation only.
            raise AlreadyObserved(
                f"trial {number} has the value {self._value_of(Trial(self, number))!r} already, and now "
                f"value={value!r}; {remedy}"
            ) from None

    def fail(self, trial: Trial | int) -> None:
        """Report that a trial crashed: the model takes its point for worse than the worst observed.

        Raises
        ------
        UnknownTrial
            A number never given out, or a trial of another optimizer.
        AlreadyObserved
            The trial has a value.
        """
        self._resolve(trial, self._log.fail, "fail")

    def abandon(self, trial: Trial | int) -> None:
        """Give a trial up without a verdict on its point: the model drops it.

        Raises
        ------
        UnknownTrial
            A number never given out, or a trial of another optimizer.
        AlreadyObserved
            The trial has a value.
        """
        self._resolve(trial, self._log.abandon, "be abandoned")

    def _resolve(self, trial: Trial | int, resolve: Callable[[int, float | None], None], verb: str) -> None:
        number = self._number_of(trial)
        try:
            resolve(number, self._problem.now())
        except AlreadyObserved:
            value = self._value_of(Trial(self, number))
            raise AlreadyObserved(f"trial {number} has the value {value!r} already and cannot {verb}") from None

    def add(self, params: Any, value: Any = None, context: Any = None, *, std: Any = None) -> Any:
        """Add trials that were not suggested: earlier data, or points of one's own.

        Parameters
        ----------
        params : mapping, row or index; or a list of these; or DataFrame
            In a space: values by name, a list of such, or a DataFrame with a column for each name.
            For candidates: an index or a row; rows of shape (n, d), or, where `value` is a list too, indices.
            Or a table of trials alone, as `trials_dataframe` makes it, also when it comes back from a CSV file: each
            trial is added in the state that it has there, where it was really run, at the time of now.
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
        if is_trials_table(params):
            if value is not None or context is not None or std is not None:
                raise InvalidValue("params is a table of trials, which has values and contexts: pass it alone")
            return add_trials_table(self, params)
        problem = self._problem
        several = problem.domain.holds_several(params, listed=is_list(value))
        points = problem.domain.split(params) if several else [params]
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
        contexts = problem.contexts(context, len(points))
        located = [problem.domain.locate(point) for point in points]
        encoded = [self._encode_context(one) for one in contexts]
        names = [f"params[{i}]" if several else "params" for i in range(len(points))]
        oriented = [None if y is None else problem.check_value(y, name) for y, name in zip(values, names, strict=True)]
        deviations = [problem.check_std(sd, name) for sd, name in zip(stds, names, strict=True)]
        now = problem.now()
        with self._at_once():
            trials = [
                Trial(self, self._log.add(place.point, place.index, place.given, z, y, now, None if y is None else sd))
                for place, z, y, sd in zip(located, encoded, oriented, deviations, strict=True)
            ]
        return trials if several else trials[0]

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
        domain = self._problem.domain
        points = domain.split(params) if domain.holds_several(params) else [params]
        located = [domain.locate(point) for point in points]
        with self._at_once():
            for place in located:
                self._log.enqueue(place.point, place.index, place.given)

    def _encode_context(self, context: Any) -> NDArray[np.float64] | None:
        return self._problem.encode_context(context, self._strategy_name)

    def _number_of(self, trial: Trial | int) -> int:
        if isinstance(trial, Trial):
            if not self._knows(trial):
                raise UnknownTrial(f"{trial!r} belongs to another study or optimizer: report to the one it came from")
            trial = trial.number
        known = len(self._log)
        number = whole_number(trial)
        if number is None or not 0 <= number < known:
            raise UnknownTrial(
                f"trial {short_repr(trial)} is unknown: there are {known} trials, numbered from 0; "
                "pass a trial that suggest or add returned, or its number"
            )
        return number

    def _repr_html_(self) -> str:
        trials = self.trials
        rows = []
        for trial in reversed(trials[-_ROWS_SHOWN:]):
            facts = (trial.params or trial.index, trial.context, trial.state, trial.value)
            rows.append([trial.number] + ["" if fact is None else fact for fact in facts])
        n_pending = len(self._log.numbers("pending"))
        caption = f"{self._strategy_name}: {len(trials)} trials, {n_pending} pending, best {self.best_value_}"
        return f"<p>{caption}</p>" + html_table(["number", "point", "context", "state", "value"], rows)
