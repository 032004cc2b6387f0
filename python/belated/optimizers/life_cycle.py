"""The life cycle of trials from suggestion to result, which optimizers and studies share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from belated._core import Action, AlreadyObserved, InvalidSetting, InvalidValue, UnknownTrial
from belated.optimizers import curve_reports
from belated.optimizers.actions import Facts, added_actions, check_same_fidelity, enqueued_actions, observation_of
from belated.optimizers.constraints import Constraints
from belated.optimizers.log import Log
from belated.optimizers.problem import Problem
from belated.optimizers.read_access import ReadAccess
from belated.optimizers.report import attrs_as_json, check_amount, error_facts
from belated.optimizers.short_limits import check_window
from belated.optimizers.table import add_trials_table, is_trials_table
from belated.optimizers.trial import Trial, trials_html
from belated.short_repr import short_repr
from belated.space.arguments import checks_arguments, whole_number

if TYPE_CHECKING:
    from belated.optimizers.optimizer import Optimizer

AnyLog = TypeVar("AnyLog", bound=Log)


class LifeCycle(ReadAccess, Generic[AnyLog]):
    """The base class of optimizers and studies, with the methods that start trials and report their results.

    A subclass sets the attributes below, and overrides the members that depend on the log.
    """

    _problem: Problem
    _log: AnyLog
    # A token that identifies the trials of this optimizer or study. Copies have the same token.
    _token: str
    if TYPE_CHECKING:  # the annotations of optimizers are resolved, and `Optimizer` is not defined here
        # The optimizer itself, or the optimizer of the study.
        _optimizer: Optimizer

    @property
    def _source(self) -> LifeCycle[AnyLog]:
        return self

    @property
    def _strategy_name(self) -> str:
        """The name of the optimizer's class, for messages."""
        return self._problem.owner

    # Members that a subclass may override.

    def _current_log(self) -> Log:
        """Read all events that other processes have written, and return the log."""
        return self._log

    def _constraints_for(self, call: str) -> Constraints | None:
        """Return the constraints on the params, or None; `call` is the name of the calling method, for messages."""
        return self._optimizer._constraints

    def _record_all(self, actions: Sequence[Action]) -> list[int | None]:
        """Log actions that were already checked, and return the number of the trial of each action.

        Either all actions are logged, or none of them.
        """
        time = self._problem.wall_time()
        return [self._log.record(action, time) for action in actions]

    # The life cycle.

    @checks_arguments
    def observe(
        self,
        trial: Trial | int,
        value: float,
        *,
        std: float | None = None,
        cost: float | None = None,
        duration: float | timedelta | None = None,
        params: Any = None,
        attrs: Mapping[str, Any] | None = None,
        fidelity: float | None = None,
        amend: bool = False,
        replicate: bool = False,
    ) -> None:
        """Report the value of a trial.

        Values may be reported at any time and in any order, also after `fail` or `abandon`.

        Parameters
        ----------
        trial : Trial or int
            The trial or its number.
        value : float
            A finite real number (or a 0-d array).
        std : float, optional
            The standard deviation of the noise of this value, if you know it. If the value is a mean over n
            repetitions, pass the standard deviation of one repetition divided by sqrt(n). The model uses this number
            unchanged. For values that are reported without a std, the model fits the noise.
        cost : float, optional
            The cost of the evaluation, >= 0, in any unit. The cost is stored with the trial and charged to the budget
            of a run. The model of f does not use the cost, and ``LogEI(per="cost")`` does.
        duration : float or timedelta, optional
            The duration of the evaluation, for `durations_` and ``LogEI(per="time")``; a number is in seconds.
        params : mapping; for candidates an index or a row; optional
            The point that was evaluated, if it differs from the suggested point. The model uses the value at the
            evaluated point, and `best_params_` returns this point. `Trial.params` remains the suggested point, and
            `Trial.params_run` is the evaluated point.
        attrs : mapping, optional
            Further data to store with the trial. Keys are strings. Values are None, booleans, finite numbers, strings,
            and lists and dicts of these. New entries replace earlier entries with the same key. Other data never
            prevent a report: with a warning, NaN and infinite numbers become None, and other objects become text.
        fidelity : int or float, optional
            The fidelity of the evaluation. An error is raised if this fidelity differs from the fidelity of the trial.
            Use `add` to report a value at another fidelity.
        amend : bool, default False
            Replace an earlier value and its std. The cost, the duration and the evaluated point change only if they are
            passed again.
        replicate : bool, default False
            If the trial already has a value, record the new value as another trial at the same point (or at `params`).

        Raises
        ------
        InvalidValue
            The value is NaN, inf, complex, a bool, a str, or an array with an axis; or a std, cost or duration is
            negative. The trial stays unchanged.
        InvalidPoint
            The params do not belong to the space or the candidates.
        InvalidFidelity
            The fidelity differs from the fidelity of the trial.
        UnknownTrial
            A trial with this number does not exist, or the trial belongs to another optimizer.
        AlreadyObserved
            The trial has a different value, and neither amend nor replicate is True. This error is not raised if a
            report is a repetition: the value and the given std, cost, duration and params are the same as before. A
            repetition does not change the trial, and its attrs are ignored.
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
        facts = (std, cost, duration, params, attrs)
        self._observe(trial, value, facts, fidelity, (amend, replicate), self._log.record)

    def _start(
        self,
        n: int | None,
        context: Any,
        fidelity: Any,
        start: Callable[[int, list[float] | None, float | None], list[int]],
    ) -> Trial | list[Trial]:
        """Check the arguments of `suggest`, and call `start` to start the trials."""
        wanted = 1 if n is None else whole_number(n)
        if wanted is None or not 0 <= wanted < 2**32:
            raise InvalidSetting(
                f"n={short_repr(n)} is not usable: pass an integer from 0 to 2**32 - 1, or None for one trial"
            )
        numbers, checked = self._problem.context_numbers(context), self._problem.check_fidelity(fidelity)
        trials = [Trial(self, number) for number in (start(wanted, numbers, checked) if wanted else [])]
        check_window(self)
        return trials[0] if n is None else trials

    def _observe(
        self,
        trial: Trial | int,
        value: float,
        facts: Facts,
        fidelity: float | None,
        flags: tuple[bool, bool],
        record: Callable[[Action, float], Any],
    ) -> None:
        """Check the arguments of `observe`, and call `record` to log the value and the other data of the report.

        `flags` has the arguments amend and replicate.
        """
        amend, replicate = bool(flags[0]), bool(flags[1])
        if amend and replicate:
            raise InvalidSetting("amend and replicate exclude each other: a value is replaced, or another one added")
        number = self._number_of(trial)
        std, cost, duration, params, _ = facts
        if fidelity is not None:
            check_same_fidelity(self._problem, number, fidelity, self._current_log().trial(number).fidelity)
        started = None if params is None else self._current_log().trial(number)
        observation = observation_of(self._problem, number, started, value, facts)
        try:
            record(Action.observe(number, observation, amend, replicate), self._problem.wall_time())
        except AlreadyObserved:
            # The message of the core does not contain the reported value.
            given = {"std": std, "cost": cost, "duration": duration, "params": params}
            others = "".join(f", {name}={short_repr(fact)}" for name, fact in given.items() if fact is not None)
            raise AlreadyObserved(
                f"trial {number} has the value {Trial(self, number).value!r} already, and now value={value!r}{others}; "
                "pass amend=True to replace it, or replicate=True to keep both"
            ) from None

    @checks_arguments
    def fail(
        self,
        trial: Trial | int,
        *,
        error: BaseException | str | None = None,
        duration: float | timedelta | None = None,
        attrs: Mapping[str, Any] | None = None,
    ) -> None:
        """Report that the evaluation of a trial failed; later suggestions avoid the point.

        If the trial has already failed, the call only adds an error or a duration that the trial does not have yet.

        Parameters
        ----------
        trial : Trial or int
            The trial or its number.
        error : exception or str, optional
            The cause of the failure. `Trial.error` stores the type, the message and the last 8 kB of the traceback. If
            the message is longer than 2 kB, only the beginning and the end of the message are stored.
        duration : float or timedelta, optional
            The time that the evaluation took until it failed; a number is in seconds.
        attrs : mapping, optional
            Further data to store with the trial; see `observe`.

        Raises
        ------
        UnknownTrial
            A trial with this number does not exist, or the trial belongs to another optimizer.
        AlreadyObserved
            The trial has a value.
        InvalidValue
            The error is neither an exception nor a string, or the duration is negative or not finite.

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
        seconds = check_amount("duration", duration, f"trial {number}")
        self._resolve(Action.fail(number, facts, text, seconds), number, "fail")

    def abandon(self, trial: Trial | int) -> None:
        """Abandon a trial. The trial does not count as a failure, and the model leaves it out.

        The point is not suggested again until a value or a failure of another trial has been reported.

        Raises
        ------
        UnknownTrial
            A trial with this number does not exist, or the trial belongs to another optimizer.
        AlreadyObserved
            The trial has a value.
        """
        number = self._number_of(trial)
        self._resolve(Action.abandon(number), number, "be abandoned")

    @checks_arguments
    def report(self, trial: Trial | int, value: float, step: int, *, attempt: int | None = None) -> None:
        """Report the value of a step of the learning curve of a trial.

        Reports may come late, in any order and repeatedly, and in every state of the trial. A report renews the lease
        of the trial.

        Parameters
        ----------
        trial : Trial or int
            The trial or its number.
        value : float
            A finite number, or NaN for a step that failed.
        step : int
            The step, from 1 to the last step of the declared `Curve`.
        attempt : int, optional
            The number of the attempt, counted from 0, if the evaluation was started again. The first report of a new
            attempt replaces the curve from its step on. Later reports of earlier attempts have no effect. Default
            None: the attempt that reported last.

        Raises
        ------
        InvalidValue
            A curve was not declared, the step is not in the curve, or the value is not a number or infinite.
        UnknownTrial
            A trial with this number does not exist, or the trial belongs to another optimizer.
        AlreadyObserved
            The attempt reported another value at this step.

        Examples
        --------
        >>> import belated as bl
        >>> optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, curve=bl.Curve(3), seed=0)
        >>> trial = optimizer.suggest()
        >>> optimizer.report(trial, 0.5, 1)
        >>> optimizer.report(trial, 0.75, 2)
        >>> trial.curve
        {1: 0.5, 2: 0.75}
        """
        curve_reports.report(self, self._number_of(trial), step, value, attempt)

    def should_stop(self, trial: Trial | int) -> bool:
        """Return True if the evaluation of a trial should end before the last step of its curve.

        The rule `stopping` of the optimizer decides after each report. If the rule stops the trial, the trial gets the
        state "stopped", and later calls return True, in every process of a study.

        Raises
        ------
        UnknownTrial
            A trial with this number does not exist, or the trial belongs to another optimizer.
        """
        return curve_reports.should_stop(self, self._number_of(trial))

    def stop(self, trial: Trial | int) -> None:
        """Stop a trial before the last step of its curve. The trial counts as a trial of a run, and has no value.

        Raises
        ------
        UnknownTrial
            A trial with this number does not exist, or the trial belongs to another optimizer.
        AlreadyObserved
            The trial has a value.
        """
        number = self._number_of(trial)
        self._resolve(Action.stop(number), number, "be stopped")

    def _resolve(self, action: Action, number: int, verb: str) -> None:
        try:
            self._log.record(action, self._problem.wall_time())
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
        duration: Any = None,
        attrs: Any = None,
        fidelity: Any = None,
    ) -> Any:
        """Add trials that were not suggested: earlier data, or points that you chose.

        Parameters
        ----------
        params : mapping, row or index; or a list of these; or DataFrame or array
            In a space: a dict of values by name, a list of dicts, a DataFrame with a column for each name, or an array
            as for `predict`. Only constants may be left out. For candidates: an index, a row, or several rows of shape
            (n, d). If `value` is a list, a list of numbers is a list of indices. A table of trials from
            `trials_dataframe` may be passed instead of points, also if the table was read from a CSV file. Other
            arguments are not allowed together with a table. Each trial is added with its state, at the point that was
            evaluated. The times in the table are not used: all trials are recorded at the current time.
        value : float or sequence of float, optional
            The observed value of each point. A trial without a value (None) is pending.
        context : mapping, list of mappings or DataFrame, optional
            If a context was declared: a single context for all points, or one context for each point.
        std : float or sequence of float, optional
            The standard deviation of the noise: one number for all values, or one number for each value; see `observe`.
        cost : float or sequence of float, optional
            The cost of an evaluation: one number for all trials, or one number for each trial. A cost is stored only
            together with a value.
        duration : float, timedelta or sequence of these, optional
            The time that an evaluation took: one duration for all trials, or one for each trial; a number is in
            seconds. A duration is stored only together with a value.
        attrs : mapping or sequence of mappings, optional
            Further data to store: the same data for all trials, or data for each trial; see `observe`.
        fidelity : int, float or sequence of these, optional
            The fidelity in your units: one fidelity for all trials, or one for each trial. None means the highest
            fidelity.

        Returns
        -------
        Trial or list of Trial
            One trial for each point; a list if the points were passed as a list.

        Raises
        ------
        InvalidPoint, InvalidValue, InvalidContext, InvalidFidelity
            An argument is invalid. The optimizer is unchanged.

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
            if any(each is not None for each in (value, context, std, cost, duration, attrs, fidelity)):
                raise InvalidValue("params is a table of trials, which has values and contexts: pass it alone")
            return add_trials_table(self, params)
        facts = {"std": std, "cost": cost, "duration": duration, "attrs": attrs, "fidelity": fidelity}
        actions, several = added_actions(self._problem, params, value, context, facts)
        numbers = self._record_all(actions)
        trials = [Trial(self, number) for number in numbers if number is not None]  # all numbers are given
        return trials if several else trials[0]

    @checks_arguments
    def enqueue(self, params: Any, *, fidelity: Any = None) -> None:
        """Add points to a queue; the next suggestions are these points, in this order.

        Parameters
        ----------
        params : mapping, row or index; or a list of these; or DataFrame or array
            As for `add`, but in a space any parameters may be left out. Their values are drawn when this method is
            called, uniformly at random among the values that satisfy the constraints. The draw depends on the seed and
            on the number of events so far.
        fidelity : int, float or sequence of these, optional
            The fidelity in your units: one fidelity for all trials, or one for each trial. None means the fidelity that
            is passed to `suggest`, or the highest fidelity if `suggest` is called without a fidelity.

        Raises
        ------
        InvalidPoint
            A point does not belong to the space or the candidates, or violates a constraint. The queue is unchanged.
        InvalidFidelity
            The fidelity was not declared, or is out of its range. The queue is unchanged.

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
        seed = [self._optimizer.seed_, self._current_log().n_events()]
        self._record_all(enqueued_actions(self._problem, constraints, params, fidelity, seed))

    def _number_of(self, trial: Trial | int) -> int:
        if isinstance(trial, Trial):
            other = trial._owner
            if other is self:
                return trial.number  # this optimizer started the trial
            # If a trial was pickled in another process, it belongs to a copy of this optimizer.
            is_own = (
                other._token == self._token
                and trial.number < len(self._log)
                and other._log.trial(trial.number).place == self._log.trial(trial.number).place
            )
            if not is_own:
                raise UnknownTrial(f"{trial!r} belongs to another study or optimizer: report it there")
            return trial.number
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
        return trials_html(self._strategy_name, self.trials, len(self._log.numbers("pending")), self.best_trial_)
