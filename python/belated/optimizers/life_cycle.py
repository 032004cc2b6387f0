"""The life cycle of trials, from suggestion to result: the same for optimizers and studies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar, overload

import numpy as np

from belated._core import Action, AlreadyObserved, InvalidSetting, InvalidValue, TrialRecord, UnknownTrial
from belated.optimizers.additions import added_actions, check_same_fidelity, enqueued_actions
from belated.optimizers.constraints import Constraints
from belated.optimizers.from_table import add_trials_table, is_trials_table
from belated.optimizers.log import Log, Report
from belated.optimizers.names import checks_arguments
from belated.optimizers.observations import in_words, report_of
from belated.optimizers.problem import Problem
from belated.optimizers.read_access import ReadAccess
from belated.optimizers.report import attrs_as_json, error_facts
from belated.optimizers.trial import Trial, trials_html
from belated.short_repr import short_repr
from belated.space.arguments import whole_number

AnyLog = TypeVar("AnyLog", bound=Log)


class LifeCycle(ReadAccess, Generic[AnyLog]):
    """The life cycle of trials from suggestion to result; the subclass provides the log.

    A subclass sets `_problem`, `_log` and `_token`, and overrides the members that its log needs.
    """

    _problem: Problem
    _log: AnyLog
    # Identifies the trials of this optimizer or study, and of its copies.
    _token: str

    @property
    def _source(self) -> LifeCycle[AnyLog]:
        return self

    # Members that a subclass may override.

    @property
    def _strategy_name(self) -> str:
        """The class of the optimizer, for messages."""
        return type(self).__name__

    @property
    def _has_model(self) -> bool:
        """Whether there is a posterior to predict with."""
        return False

    @property
    def _seed(self) -> int:
        """The seed of the optimizer, given or drawn."""
        raise NotImplementedError

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings by name."""
        raise NotImplementedError

    def _start_trials(self, n: int, context: list[float] | None, fidelity: float | None) -> list[int]:
        """Start n > 0 trials and return their numbers. If no fidelity is given, the strategy chooses it."""
        raise NotImplementedError

    def _next_fidelity(self) -> float | None:
        """The fidelity of the next trial that `suggest` would start without a context; nothing is logged."""
        raise NotImplementedError

    def _constraints_for(self, call: str) -> Constraints | None:
        """The constraints that points must satisfy, or None; `call` is the method that needs them, for messages."""
        raise NotImplementedError

    def _current_log(self) -> Log:
        """Return the log, up to date."""
        return self._log

    def _record_all(self, actions: Sequence[Action], now: float | None) -> list[int | None]:
        """Log checked actions, all of them or none; return the number of the trial that each action concerns."""
        return [self._log.record(action, now) for action in actions]

    def _knows(self, trial: Trial) -> bool:
        """Whether the trial was started here."""
        return trial._owner._token == self._token

    def _record_of(self, trial: Trial) -> TrialRecord:
        """Return the log's record of a trial, in the core's terms."""
        return self._log.trial(trial.number)

    # The life cycle.

    @overload
    def suggest(
        self, n: None = None, context: Mapping[str, Any] | None = None, *, fidelity: float | None = None
    ) -> Trial: ...
    @overload
    def suggest(
        self, n: int, context: Mapping[str, Any] | None = None, *, fidelity: float | None = None
    ) -> list[Trial]: ...
    @checks_arguments
    def suggest(
        self, n: int | None = None, context: Mapping[str, Any] | None = None, *, fidelity: float | None = None
    ) -> Trial | list[Trial]:
        """Start a trial, or n at once, without waiting for pending ones.

        Parameters
        ----------
        n : int, optional
            How many; None gives one `Trial`, a number a list.
        context : mapping, optional
            Values by name: required if a context was declared, refused otherwise.
        fidelity : int or float, optional
            The fidelity of the trial in your units, if a fidelity was declared. Default None: the optimizer chooses it.
            An enqueued point with a fidelity keeps it.

        Returns
        -------
        Trial or list of Trial

        Raises
        ------
        InvalidContext
            The context is missing, was not declared, or is out of its space.
        InvalidFidelity
            The fidelity was not declared, or is out of its range.
        InvalidSetting
            n is not an integer >= 0; or a constraint raises, or returns something other than True or False.
        InvalidSpace
            The search found no point that satisfies the constraints.

        Examples
        --------
        >>> import belated as bl
        >>> optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
        >>> [trial.number for trial in optimizer.suggest(n=3)]
        [0, 1, 2]
        """
        return self._start(n, context, fidelity, self._start_trials)

    @checks_arguments
    def observe(
        self,
        trial: Trial | int,
        value: float,
        *,
        std: float | None = None,
        cost: float | None = None,
        duration: float | None = None,
        params: Any = None,
        attrs: Mapping[str, Any] | None = None,
        fidelity: float | None = None,
        amend: bool = False,
        replicate: bool = False,
    ) -> None:
        """Report a trial's value: at any time, in any order, and also after `fail` or `abandon`.

        Parameters
        ----------
        trial : Trial or int
            The trial or its number.
        value : float
            One finite real number (or a 0-d array).
        std : float, optional
            The standard deviation of this value's noise, if you know it. For a mean over n repetitions it is the
            standard deviation of one repetition divided by sqrt(n). The model uses it unchanged, and fits the noise of
            the other values.
        cost : float, optional
            The cost of the evaluation, >= 0, in any unit. It is kept, but no model uses it; a run with a budget charges
            it.
        duration : float, optional
            The duration of the evaluation in seconds.
        params : mapping; for candidates an index or a row; optional
            The point that was really run, if it is not the suggested one. The model learns the value at that point, and
            `best_params_` names it. `Trial.params` stays the suggestion, and `Trial.params_run` is the point that was
            run.
        attrs : mapping, optional
            Anything else to keep with the trial. Keys are strings; values are None, booleans, finite numbers, strings,
            and lists and dicts of these. They are merged over the attrs that the trial already has.
        fidelity : int or float, optional
            The fidelity of the trial, as a check. A value at another fidelity belongs to another trial (see `add`).
        amend : bool, default False
            Replace an earlier value and its std. Cost, duration and the point that was run change only if they are
            given again.
        replicate : bool, default False
            If there is already a value, record another measurement of the same point (or of `params`) as another trial.

        Raises
        ------
        InvalidValue
            The value is NaN, inf, complex, a bool, a str, or has an axis; a std, cost or duration is below 0; or attrs
            are not JSON data. The trial stays unchanged.
        InvalidPoint
            The params do not belong to the space or the candidates.
        InvalidFidelity
            The fidelity is not the trial's.
        UnknownTrial
            The number was never given out, or the trial belongs to another optimizer.
        AlreadyObserved
            The trial has another value, and neither amend nor replicate is True. A repeated report (with the same
            value, and the same std, cost, duration and params if they are given) changes nothing, and its attrs are not
            kept.
        InvalidSetting
            Both amend and replicate are True.

        Examples
        --------
        >>> import belated as bl
        >>> optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, direction="minimize", seed=0)
        >>> first, second = optimizer.suggest(n=2)
        >>> optimizer.observe(second, 0.5, params={"x": 0.25}, attrs={"operator": "Ada"})
        >>> optimizer.observe(0, 0.75)
        >>> optimizer.best_value_, optimizer.best_params_
        (0.5, {'x': 0.25})
        >>> second.attrs
        {'operator': 'Ada'}
        """
        self._observe(trial, value, (std, cost, duration, params, attrs), fidelity, amend, replicate)

    def _start(
        self,
        n: int | None,
        context: Any,
        fidelity: Any,
        start: Callable[[int, list[float] | None, float | None], list[int]],
    ) -> Trial | list[Trial]:
        """Start one trial or several, depending on the arguments of `suggest`."""
        wanted = 1 if n is None else whole_number(n)
        if wanted is None or not 0 <= wanted < 2**32:
            raise InvalidSetting(
                f"n={short_repr(n)} is not usable: pass an integer from 0 to 2**32 - 1, or None for one trial"
            )
        numbers = self._context_numbers(context)
        checked = self._problem.check_fidelity(fidelity, self._strategy_name)
        trials = [Trial(self, number) for number in (start(wanted, numbers, checked) if wanted else [])]
        return trials[0] if n is None else trials

    def _observe(
        self,
        trial: Trial | int,
        value: float,
        facts: tuple[float | None, float | None, float | None, Any, Mapping[str, Any] | None],
        fidelity: float | None,
        amend: bool,
        replicate: bool,
        key: str | None = None,
    ) -> None:
        """Check a value and the other arguments of `observe`, and log them."""
        if amend and replicate:
            raise InvalidSetting("amend and replicate exclude each other: a value is replaced, or another one added")
        number = self._number_of(trial)
        if fidelity is not None:
            known = self._current_log().trial(number).fidelity
            check_same_fidelity(self._problem, self._strategy_name, number, fidelity, known)
        checked = self._problem.check_value(value, f"trial {number}")
        std, cost, duration, params, _ = facts
        started = None if params is None else self._current_log().trial(number)
        report = report_of(self._problem, number, started, *facts)
        try:
            self._log_value(number, checked, report, bool(amend), bool(replicate), key)
        except AlreadyObserved:
            # The core's error does not name the reported value.
            raise AlreadyObserved(
                f"trial {number} has the value {Trial(self, number).value!r} already, and now "
                f"value={value!r}{in_words(std=std, cost=cost, duration=duration, params=params)}; "
                "pass amend=True to replace it, or replicate=True to keep both"
            ) from None

    def _log_value(
        self, number: int, value: float, report: Report | None, amend: bool, replicate: bool, key: str | None
    ) -> None:
        """Log a checked value; only studies have keys."""
        self._log.record(Action.observe(number, value, report, amend, replicate), self._problem.now())

    @checks_arguments
    def fail(
        self,
        trial: Trial | int,
        *,
        error: BaseException | str | None = None,
        attrs: Mapping[str, Any] | None = None,
    ) -> None:
        """Report that a trial crashed: suggestions avoid such points.

        A trial that has already failed does not change, except that a missing error is added.

        Parameters
        ----------
        trial : Trial or int
            The trial or its number.
        error : exception or str, optional
            The cause of the failure. It is kept as `Trial.error`: the type, 2 kB of the message (the beginning and the
            end of a longer one), and the last 8 kB of the traceback.
        attrs : mapping, optional
            Anything else to keep with the trial; see `observe`.

        Raises
        ------
        UnknownTrial
            The number was never given out, or the trial belongs to another optimizer.
        AlreadyObserved
            The trial has a value.
        InvalidValue
            The error is neither an exception nor a string, or attrs are not JSON data.

        Examples
        --------
        >>> import belated as bl
        >>> optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
        >>> trial = optimizer.suggest()
        >>> try:
        ...     value = 1 / 0
        ... except ZeroDivisionError as error:
        ...     optimizer.fail(trial, error=error)
        >>> trial.state, str(trial.error)
        ('failed', 'ZeroDivisionError: division by zero')
        """
        facts, text = error_facts(error), attrs_as_json(attrs)
        number = self._number_of(trial)
        self._resolve(Action.fail(number, facts, text), number, "fail")

    def abandon(self, trial: Trial | int) -> None:
        """Abandon a trial without judging its point; the model leaves it out.

        Its point is not suggested again before another value or failure has been reported.

        Raises
        ------
        UnknownTrial
            The number was never given out, or the trial belongs to another optimizer.
        AlreadyObserved
            The trial has a value.
        """
        number = self._number_of(trial)
        self._resolve(Action.abandon(number), number, "be abandoned")

    def _resolve(self, action: Action, number: int, verb: str) -> None:
        try:
            self._log.record(action, self._problem.now())
        except AlreadyObserved:
            value = Trial(self, number).value
            raise AlreadyObserved(f"trial {number} has the value {value!r} already and cannot {verb}") from None

    @checks_arguments
    def add(
        self,
        params: Any,
        value: Any = None,
        context: Any = None,
        *,
        std: Any = None,
        cost: Any = None,
        attrs: Any = None,
        fidelity: Any = None,
    ) -> Any:
        """Add trials that were not suggested: earlier data, or points that you chose.

        Parameters
        ----------
        params : mapping, row or index; or a list of these; or DataFrame or array
            In a space: values by name, a list of such, a DataFrame with a column for each name, or an array as for
            `predict`. Constants may be left out, other names may not (`enqueue` allows it).
            For candidates: an index or a row; rows of shape (n, d), or, if `value` is a list too, indices.
            Or a table of trials from `trials_dataframe`, also one read from a CSV file; other arguments are then not
            allowed. Each trial is added in its state, at the point that was run, at the present time.
        value : float or sequence of float, optional
            The observed value of each point. None, also within the sequence: the trial is pending.
        context : mapping, list of mappings or DataFrame, optional
            If a context was declared: one for all points, or one for each.
        std : float or sequence of float, optional
            The standard deviation of the noise of each value, or of all; see `observe`.
        cost : float or sequence of float, optional
            The cost of each evaluation, or of all; it is kept only with a value.
        attrs : mapping or sequence of mappings, optional
            Anything else to keep with each trial, or with all; see `observe`.
        fidelity : int, float or sequence of these, optional
            The fidelity of each trial, or of all, in your units. None, also within the sequence: the highest.

        Returns
        -------
        Trial or list of Trial
            One trial for each point; a list if the points came as a list.

        Raises
        ------
        InvalidPoint, InvalidValue, InvalidContext, InvalidFidelity
            An argument is invalid; nothing is added then.

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
            if any(each is not None for each in (value, context, std, cost, attrs, fidelity)):
                raise InvalidValue("params is a table of trials, which has values and contexts: pass it alone")
            return add_trials_table(self, params)
        facts = {"std": std, "cost": cost, "attrs": attrs, "fidelity": fidelity}
        actions, several = added_actions(self._problem, self._strategy_name, params, value, context, facts)
        now = self._problem.now()
        numbers = self._record_all(actions, now)
        trials = [Trial(self, number) for number in numbers if number is not None]  # an added trial has a number
        return trials if several else trials[0]

    @checks_arguments
    def enqueue(self, params: Any, *, fidelity: Any = None) -> None:
        """Suggest these points next, in this order, before the optimizer's own points.

        Parameters
        ----------
        params : mapping, row or index; or a list of these; or DataFrame or array
            As for `add`, but names of a space may be missing. Their values are drawn now, uniformly at random among the
            values that satisfy the constraints; the draw depends on the seed and on the number of events so far.
        fidelity : int, float or sequence of these, optional
            The fidelity of each trial, or of all, in your units. None, also within the sequence: the argument of
            `suggest`, or the highest if it has none.

        Raises
        ------
        InvalidPoint
            A point does not belong to the space or the candidates, or violates a constraint; nothing is enqueued then.
        InvalidFidelity
            The fidelity was not declared, or is out of its range; nothing is enqueued then.

        Examples
        --------
        >>> import belated as bl
        >>> optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
        >>> optimizer.enqueue({"x": 0.5})
        >>> optimizer.suggest().params
        {'x': 0.5}

        Only the number of layers is given, and the other parameters are drawn:

        >>> optimizer = bl.RandomSearch({"layers": (1, 4), "lr": bl.Real(1e-4, 1, log=True)}, seed=0)
        >>> optimizer.enqueue([{"layers": 1}, {"layers": 4}])
        >>> [trial.params["layers"] for trial in optimizer.suggest(n=2)]
        [1, 4]
        """
        constraints = self._constraints_for("enqueue")
        seed = [self._seed, self._current_log().n_events()]
        actions = enqueued_actions(self._problem, self._strategy_name, constraints, params, fidelity, seed)
        self._record_all(actions, None)

    def _context_numbers(self, context: Any) -> list[float] | None:
        if context is None and self._problem.context_space is None:  # the most frequent case
            return None
        return self._problem.context_numbers(context, self._strategy_name)

    def _number_of(self, trial: Trial | int) -> int:
        if isinstance(trial, Trial):
            if trial._owner is self:
                return trial.number  # which this optimizer started
            if not self._knows(trial):
                raise UnknownTrial(f"{trial!r} belongs to another study or optimizer: report it there")
            trial = trial.number
        known = len(self._log)
        number = whole_number(trial)
        if number is None and not isinstance(trial, str) and (isinstance(trial, Mapping) or np.ndim(trial)):
            raise UnknownTrial(
                f"trial={short_repr(trial)} is not a trial: pass one that suggest or add returned, or its number; "
                "add(params, value) takes params"
            )
        if number is None or not 0 <= number < known:
            raise UnknownTrial(
                f"trial {short_repr(trial)} is unknown: there are {known} trials, numbered from 0; "
                "pass a trial that suggest or add returned, or its number"
            )
        return number

    def _repr_html_(self) -> str:
        return trials_html(self._strategy_name, self.trials, len(self._log.numbers("pending")), self.best_value_)
