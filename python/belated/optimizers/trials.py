"""The base classes of optimizers, studies and results of runs: reading trials, and their life cycle."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from belated._core import (
    Action,
    AlreadyObserved,
    BelatedError,
    GaussianProcess,
    InvalidSetting,
    InvalidValue,
    TrialRecord,
    UnknownTrial,
)
from belated.errors import NotFitted, ObjectivesError
from belated.optimizers.actions import Records
from belated.optimizers.constraints import Constraints
from belated.optimizers.curve import Stopping
from belated.optimizers.delays import Delays, Forecast, Overdue
from belated.optimizers.durations import Durations, durations_of
from belated.optimizers.fixed import fixed_of
from belated.optimizers.hand_overs import n_hand_overs
from belated.optimizers.importance import can_be_zero, total_effects
from belated.optimizers.log import Array, Log
from belated.optimizers.marks import marked_values
from belated.optimizers.outcomes import bounds_of, has_bounds, position
from belated.optimizers.problem import Problem
from belated.optimizers.report import as_amount, as_text, attrs_as_json, error_facts
from belated.optimizers.request import Carrier, Facts, ObserveArguments
from belated.optimizers.surrogate import Surrogate, surrogate_of
from belated.optimizers.tables.files import write_csv, write_excel
from belated.optimizers.tables.report_page import report_page
from belated.optimizers.tables.reports import (
    Reported,
    Reports,
    Sheet,
    check_refused,
    check_table_options,
    numbers_of,
    rows_of_pending,
    times_of,
)
from belated.optimizers.tables.table import (
    Added,
    Row,
    Rows,
    TableReader,
    check_policies,
    facts_of_record,
    is_trials_table,
    trials_dataframe,
)
from belated.optimizers.trial import Trial, rounded, summary, trials_html
from belated.optimizers.values import checked
from belated.short_repr import short_repr
from belated.space.arguments import as_timedelta, checks_arguments, finite, is_list, is_table, whole_number
from belated.space.candidates import Candidates
from belated.space.space import ContextSpace, Space
from belated.warn import warn

T = TypeVar("T")
AnyLog = TypeVar("AnyLog", bound=Log)


class Reading(ABC):
    """The members that read trials and the model without changing them; the subclass defines `_source`.

    Optimizers, studies and results of runs share them.
    """

    # Hide this method from type checkers; otherwise they would allow any attribute.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            cls = type(self)
            if any(name in vars(base) for base in cls.__mro__):
                # The attribute exists, but its property raised an AttributeError. Raise the same error again.
                return object.__getattribute__(self, name)
            message = f"{cls.__name__!r} object has no attribute {name!r}"
            if name.startswith("_"):
                raise AttributeError(message)
            from belated.hints import attribute_advice

            known = {each for each in [*dir(cls), *vars(self)] if not each.startswith("_")}
            if "optimizer" in known and name in dir(type(self._source._optimizer)):
                raise AttributeError(f"{message}: use optimizer.{name}")
            raise AttributeError(message + attribute_advice(name, known))

    @property
    @abstractmethod
    def _source(self) -> Trials[Any]:
        """The optimizer or study to read."""

    def _numbers(self, state: str | None) -> list[int]:
        """Return the numbers of the trials in a state, or of all trials if `state` is None."""
        return self._source._current_log().numbers(state)

    def _records(self) -> list[TrialRecord]:
        """Return the records of all trials."""
        numbers, log = self._numbers(None), self._source._current_log()
        return [log.trial(number) for number in numbers]

    # The problem.

    @property
    def domain(self) -> Space | Candidates:
        """The search space, or the candidates."""
        return self._source._current_problem().domain

    @property
    def context_space(self) -> ContextSpace | None:
        """The space of contexts; None if contexts were not declared."""
        return self._source._current_problem().context_space

    @property
    def direction(self) -> Literal["maximize", "minimize"]:
        """Whether f is maximized or minimized; "maximize" for several objectives, whose goals have directions."""
        return self._source._current_problem().direction

    @property
    def clock(self) -> Literal["iterations", "seconds"]:
        """The unit of times and delays."""
        return self._source._problem.clock  # no revision changes the clock

    # Trials.

    def trial(self, number: int) -> Trial:
        """Return the trial with this number; raise UnknownTrial if it does not exist."""
        self._source._current_log()
        return Trial(self._source, self._source._number_of(number))

    @property
    def n_trials(self) -> int:
        """Number of trials in any state."""
        return len(self._source._current_log())

    @property
    def trials(self) -> list[Trial]:
        """All trials, by number."""
        return [Trial(self._source, number) for number in self._numbers(None)]

    @property
    def pending(self) -> list[Trial]:
        """The trials without a result."""
        return [Trial(self._source, number) for number in self._numbers("pending")]

    # `X | Any` means X or None. Users then need not check for None after an observation, and type checkers still report
    # a wrong attribute of X.

    @property
    def best_trial_(self) -> Trial | Any:
        """The trial with the best observed value at the highest observed fidelity; None before the first value.

        If outcomes were declared, only trials whose outcomes with bounds have values within their bounds count. Trials
        that violate constraints do not count. Constraints that are functions count where this object has them.

        Raises
        ------
        ObjectivesError
            There are several objectives: use `pareto_`.
        """
        return self.best_trial()

    def best_trial(self, *, outside: bool = False) -> Trial | Any:
        """Return the trial with the best observed value at the highest observed fidelity; None without values.

        Parameters
        ----------
        outside : bool, default False
            Whether trials that were run beyond a bound, or at a point that is not a candidate, count; see
            `Trial.outside`, or violate constraints that are functions. If False, the trial is `best_trial_`.

        Raises
        ------
        ObjectivesError
            There are several objectives: use `pareto_`.

        Examples
        --------
        >>> import belated as bl
        >>> optimizer = bl.BayesOpt({"temperature": (20.0, 120.0)}, seed=0)
        >>> trials = optimizer.add([{"temperature": 118.0}, {"temperature": 120.4}], [0.5, 0.75])
        >>> optimizer.best_value_, optimizer.best_trial(outside=True).value
        (0.5, 0.75)
        """
        log, constraints = self._source._current_log(), self._source._constraints
        front = self._source._problem.front
        if front:
            raise ObjectivesError(
                f"best_trial_, best_params_ and best_value_ need one objective, and {front} are objectives: use "
                "pareto_, the trials that no other trial dominates"
            )
        number = log.best(outside)
        if number is None or outside or constraints is None:
            return None if number is None else Trial(self._source, number)
        ordered = (Trial(self._source, i) for i in log.best_first())
        return next((trial for trial in ordered if constraints.first_violated(trial.params_run) is None), None)

    @property
    def best_params_(self) -> Any:
        """The params with the best observed value (for candidates without names, the row); None before the first value.

        If a fidelity was declared, only values at the highest observed fidelity count. If `observe` reported params
        that differ from the suggested params, the reported params are returned.
        """
        best = self.best_trial_
        return None if best is None else best.params_run

    @property
    def best_value_(self) -> float | Any:
        """The best observed value at the highest observed fidelity; None before the first value."""
        best = self.best_trial_
        return None if best is None else best.value

    @property
    def pareto_(self) -> list[Trial]:
        """The front of several objectives: the trials that no other trial dominates, by number.

        A trial dominates another if it is at least as good in all objectives and better in one. Trials whose values are
        equal are all in the list. Only trials count whose objectives have values and whose outcomes with bounds have
        values within their bounds. The reference of an objective is not a bound. As for `best_trial_`, trials that
        violate constraints or were run outside the domain do not count.

        Raises
        ------
        ObjectivesError
            There are not several objectives: use `best_trial_`.

        Examples
        --------
        >>> import belated as bl
        >>> optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, outcomes={"yield": "maximize", "cost": "minimize"})
        >>> results = [{"yield": 0.5, "cost": 3.0}, {"yield": 0.8, "cost": 5.0}, {"yield": 0.4, "cost": 4.0}]
        >>> trials = optimizer.add([{"x": 0.1}, {"x": 0.6}, {"x": 0.9}], results)
        >>> [trial.values for trial in optimizer.pareto_]
        [{'yield': 0.5, 'cost': 3.0}, {'yield': 0.8, 'cost': 5.0}]
        """
        return [Trial(self._source, number) for number in self._front("pareto_")]

    def _front(self, caller: str) -> list[int]:
        """Return the numbers of the trials of the front; `caller` is the name of the caller, for messages."""
        log, constraints = self._source._current_log(), self._source._constraints
        if not self._source._problem.front:
            raise ObjectivesError(f"{caller} needs several objectives, and this search has one: use best_trial_")
        excluded: list[int] = []
        while True:
            numbers = log.pareto(excluded)
            if constraints is None:
                return numbers
            points = {number: Trial(self._source, number).params_run for number in numbers}
            violating = [number for number, point in points.items() if constraints.first_violated(point) is not None]
            if not violating:
                return numbers
            # Without these trials, other trials may be in the front.
            excluded += violating

    def hypervolume(self, reference: Mapping[str, float] | None = None) -> float:
        """Return the hypervolume of `pareto_`: the volume of the values between it and the reference.

        The volume is a product of ranges in the units of the objectives. It is 0 if no trial is better than the
        reference in all objectives, and infinite if the product is too large for a float.

        Parameters
        ----------
        reference : mapping, optional
            The value of each objective, by name, from which results are worthless. For objectives without a value here,
            the reference is the declared bound, such as ``bl.Minimize(at_most=40.0)``. If it was not declared, it is
            computed from the front: it lies beyond the worst value in the front by a tenth of the range of the front in
            this objective. If this range is 0, the range of all observed values of the objective is used, or 1 if this
            is 0, too. Volumes can only be compared if their references are equal, so declare or pass the references to
            compare volumes over time.

        Raises
        ------
        ObjectivesError
            There are not several objectives.
        InvalidValue
            A name is not an objective, or a value is not a finite number.

        Examples
        --------
        >>> import belated as bl
        >>> optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, outcomes={"yield": "maximize", "cost": "minimize"})
        >>> results = [{"yield": 0.5, "cost": 3.0}, {"yield": 0.75, "cost": 5.0}]
        >>> trials = optimizer.add([{"x": 0.1}, {"x": 0.6}], results)
        >>> optimizer.hypervolume({"yield": 0.0, "cost": 7.0})
        2.5
        """
        numbers, names = self._front("hypervolume"), self._source._problem.front
        given = {} if reference is None else reference
        is_mapping = isinstance(given, Mapping) and all(name in names for name in given)
        values = {name: finite(value) for name, value in given.items()} if is_mapping else {}
        if not is_mapping or None in values.values():
            raise InvalidValue(
                f"reference={short_repr(reference)} is not usable: pass a dict of finite numbers for some of the "
                f"objectives {names}"
            )
        log = self._source._log
        found = [values.get(name, known) for name, known in zip(names, log.reference(numbers), strict=True)]
        complete = [value for value in found if value is not None]
        return log.hypervolume(numbers, complete) if numbers else 0.0

    def _best_trials(self) -> list[Trial]:
        """Return the trials of the front, or the best trial; the list is empty without values."""
        if self._source._current_problem().front:
            return self.pareto_
        best = self.best_trial_
        return [] if best is None else [best]

    def trials_dataframe(self, *, delays: bool = False, curves: bool = False) -> Any:
        """Return all trials as a pandas DataFrame, one row for each trial.

        The first columns are number, state, value, std, cost, duration, suggested_at, observed_at, delay, error (as
        ``"type: message"``), fidelity if it was declared, and outside if a trial lies outside (see `Trial.outside`).
        The next columns are ``params_…``, one for each name. For candidates without names, the column ``index`` has the
        row number in the array. If a trial was run at a point that differs from the suggested point, there are also
        columns ``params_run_…`` (without names, ``index_run``). Without names, the numbers of a point that is not a
        candidate are in the columns ``x_0``, ``x_1``, … (``x_run_0``, ``x_run_1``, … if it differs from the suggested
        candidate). The last columns are ``context_…`` for each name of the context and ``attrs_…`` for each key of the
        attrs. If a trial does not have some of these data, the cell contains a missing value. If a space has both ``x``
        and ``run_x``, the column of ``run_x`` is ``params_run_x``, and the columns of the points that were run are
        ``params_run__…``. If a result was withdrawn, the columns ``withdrawn_value`` and ``withdrawn_reason`` follow
        ``error``. If outcomes were declared, the next columns are, for each of them, ``outcome_…`` with the values and,
        if a trial has such data, ``std_…``, ``state_…`` (unless all are observed or pending), ``withdrawn_value_…`` and
        ``withdrawn_reason_…``; ``value`` and ``std`` belong to the objective. If there are several objectives, there is
        a column ``pareto`` in place of ``value`` and ``std``, which is True for the trials in `pareto_`. If
        `Study.revise` left trials out, the column ``left_out`` has the reasons.

        To write trials to a file that `add` reads, use `to_csv` or `to_excel`. Times are in UTC and have a time zone,
        which Excel does not store.

        Parameters
        ----------
        delays : bool, default False
            If True, there are three more columns after ``error``, which describe trials in flight at the current time:
            ``age``, the time since the suggestion; ``expected_remaining``, the median time until the result arrives,
            given that it arrives; and ``arrival_probability``, the probability that it ever arrives. Times are on the
            optimizer's clock. The cells of other trials are missing, and so are the forecasts before the first result;
            see `delays_`.
        curves : bool, default False
            If True, there is a column ``curve_1``, ``curve_2``, … for each reported step of the learning curves.

        Raises
        ------
        ImportError
            pandas is not installed.
        """
        delayed, records = self.delays_ if delays else None, self._records()
        front = self._numbers_in_front()
        return trials_dataframe(self._source._problem, records, delayed, curves, self._source._problem_of, front)

    def _numbers_in_front(self) -> list[int] | None:
        """Return the numbers of the trials of the front; None without a front."""
        return self._front("pareto_") if self._source._current_problem().front else None

    def to_csv(self, path: Any = None) -> str | None:
        """Write all trials to a CSV file in UTF-8, one row for each trial.

        To read the trials, use ``add(pandas.read_csv(path))``. The new trials have the same states, points, contexts,
        fidelities, values, std, outcomes, cost, durations and curves, and the texts of their attrs and errors. They are
        recorded at the current time, and a trial that was run at a point that differs from the suggested point is added
        at the point that was run.

        Parameters
        ----------
        path : str, path or file, optional
            The file. Default None: return the text.

        Returns
        -------
        str or None
            The text, if `path` is None.

        Raises
        ------
        ImportError
            pandas is not installed.

        Notes
        -----
        The columns are the same as in ``trials_dataframe(curves=True)``. A cell contains what is printed: the attr
        ``[1, 2]`` is read as a text, and `add` refuses the rows of choices that print alike (``"1"`` and ``1``). pandas
        may change the last digits of numbers. A text that a spreadsheet would execute as a formula starts with an
        apostrophe in the file. ``belated study export`` keeps all data of a study.

        Examples
        --------
        >>> import belated as bl, io, pandas
        >>> optimizer = bl.BayesOpt({"T": (20.0, 100.0), "lot": ["A", "B", None]}, seed=0)
        >>> optimizer.suggest().observe(0.25)
        >>> other = bl.BayesOpt(optimizer.domain, seed=1)
        >>> [trial] = other.add(pandas.read_csv(io.StringIO(optimizer.to_csv())))
        >>> trial.params["lot"] == optimizer.best_params_["lot"], trial.value
        (True, 0.25)
        """
        records = self._records()
        return write_csv(self._source._problem, records, path, self._source._problem_of, self._numbers_in_front())

    def to_excel(self, path: Any) -> None:
        """Write all trials to an Excel file (.xlsx), one row for each trial.

        To read the trials, use ``add(pandas.read_excel(path))``; see `to_csv`. Excel does not store time zones: the
        columns ``started_at_utc`` and ``finished_at_utc`` contain times in UTC without a time zone.

        Parameters
        ----------
        path : str, path or file
            The file. The name of the file ends with ``.xlsx``.

        Raises
        ------
        ImportError
            pandas or openpyxl is not installed (``pip install 'belated[excel]'``).
        InvalidValue
            A text of a trial has more than 32,767 characters: use `to_csv`.
        """
        records = self._records()
        write_excel(self._source._problem, records, path, self._source._problem_of, self._numbers_in_front())

    # Delays.

    @property
    def delays_(self) -> Delays:
        """The distribution of delays, estimated from all suggested trials up to now."""
        return self._delays_of(None)

    def _delays_of(self, outcome: str | None, wall_time: bool = False) -> Delays:
        """Return the distribution of the delays of an outcome; of whole trials for None.

        If `wall_time` is True, a clock that counts suggestions is replaced by the wall clock.
        """
        source = self._source
        log = source._current_log()
        problem = source._problem
        wall_time = wall_time and problem.clock == "iterations"
        found = log.delays(problem.wall_time(), source._position(outcome), wall_time)
        return Delays("seconds" if wall_time else problem.clock, *found)

    @property
    def window_(self) -> float | None:
        """The window that is in force, in units of the clock; None without a time limit.

        With ``window="auto"``, there is no limit until ten results have arrived. The window is then the 99.5 % quantile
        of the fitted delays of trials that arrive (see `delays_`), and is chosen again when the number of results has
        grown by a quarter. If late results are discarded, each trial keeps the window in force at its suggestion.
        """
        return self._source._current_log().window()

    @checks_arguments
    def forecast(self, by: float | datetime | timedelta | None = None, *, outcome: str | None = None) -> Forecast:
        """Return how many results of the trials in flight arrive up to a time. Added trials are left out.

        Parameters
        ----------
        by : float, datetime or timedelta, optional
            A time on the optimizer's clock; or a datetime, or a timedelta from now. If the clock counts suggestions,
            the delays in wall-clock time are used for a datetime and a timedelta. Default None: the median delay from
            now.
        outcome : str, optional
            The name of a declared outcome, whose values are counted. Default None: trials of which all outcomes are
            known.

        Returns
        -------
        Forecast
            `expected`, `low` and `high` (a central 80 % interval), `n_pending`, and `never`, the expected number of
            results that never arrive. `str` returns a sentence. Before the first result, the numbers are None, and
            `unknown` is the reason.

        Raises
        ------
        InvalidValue
            `by` is not a time on the clock, or has passed.

        Examples
        --------
        >>> import belated as bl
        >>> optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
        >>> trials = optimizer.suggest(n=8)
        >>> str(optimizer.forecast(by=20))
        '8 pending, no forecast: no trial has arrived'
        """
        forecast = self._delays_of(outcome, isinstance(as_timedelta(by), (datetime, timedelta))).forecast(by)
        if forecast.n_pending:
            self._source._check_hand_overs()
        return forecast

    @checks_arguments
    def overdue(self, *, outcome: str | None = None, wall_time: bool = False) -> list[Overdue]:
        """Return the trials in flight that are late and whose results probably never arrive.

        The age of such a trial, on the optimizer's clock, exceeds the 95 % quantile of the delays of trials that
        arrive, and the 98 % interval of the probability that its result arrives lies below 1/2. The trials are sorted
        by this probability; the least likely result comes first. The list is empty before the first result. Early in a
        study and with few results, it is often empty, because long delays and lost trials look the same.

        Parameters
        ----------
        outcome : str, optional
            The name of a declared outcome: the trials in which this outcome is late. Default None: the trials that are
            late as a whole; see `Trial.missing`.
        wall_time : bool, default False
            Whether ages and delays are in seconds of wall-clock time, also if the clock counts suggestions.

        Examples
        --------
        >>> import belated as bl
        >>> optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
        >>> lost = optimizer.suggest()
        >>> for _ in range(20):
        ...     optimizer.suggest().observe(0.5)
        >>> [(late.trial.number, late.age) for late in optimizer.overdue()]
        [(0, 21.0)]
        """
        found = self._delays_of(outcome, checked(wall_time, bool, "wall_time")).overdue()
        return [Overdue(Trial(self._source, number), age, arrives) for number, age, arrives in found]

    # The model.

    @checks_arguments
    def recommend(
        self,
        context: Mapping[str, Any] | None = None,
        *,
        n: int | None = None,
        fixed: Mapping[Any, Any] | None = None,
    ) -> Any:
        """Return the point to use after the search, or a list of the n best points.

        `BayesOpt` returns the best observed point if all values are exact: their noise is declared to be zero, or the
        fitted noise is at its lower bound. With noise or a context, it returns the point with the largest lower bound
        ``mean - 2 * std`` of `predict` (the smallest ``mean + 2 * std`` if f is minimised). In a list, the observed
        points follow this point, in the order of their bounds. Points that violate a constraint or where a trial
        probably fails are left out, and so are points where an outcome was measured outside its bounds, unless its
        noise is declared or repeated values differ. If an outcome equals its bound or jumps over it, an observed point
        is returned if exact values show that it lies within the bounds. If no point lies within the bounds with
        probability 0.9, `BayesOpt` returns the best trial within the bounds, or the trial with the smallest expected
        violation. `RandomSearch` returns the best observed point within the bounds, or the point with the smallest
        violation. If a fidelity was declared, f is the function at the highest fidelity.

        With several objectives, each point increases the hypervolume of the points before it by as much as possible:
        for `BayesOpt`, by the means of the model at observed trials and at other points that lie within the bounds with
        probability 0.9; for `RandomSearch`, by the values of the trials in `pareto_`. Points that do not increase the
        hypervolume are left out.

        Parameters
        ----------
        context : mapping, optional
            The context for which a point is recommended, if a context was declared.
        n : int, optional
            The number of distinct points in the list, best first. The list is shorter if there are fewer points among
            which to choose. If n is None, a single point is returned.
        fixed : mapping, optional
            The values of some parameters, as for `suggest`: a point with these values is recommended.

        Returns
        -------
        dict or ndarray, or list of these
            Params by name; for candidates without names the row, shape (d,).

        Raises
        ------
        NotFitted
            No trial has been observed yet.
        InvalidContext
            The context is missing, was not declared, or is out of its space.
        InvalidPoint
            A fixed name is unknown, its value is not in the space, or no point has all fixed values.
        InvalidSetting
            n is not an integer >= 1, or the optimizer does not support fixed values.
        """
        wanted = 1 if n is None else whole_number(n)
        if wanted is None or not 1 <= wanted < 2**32:
            raise InvalidSetting(f"n={short_repr(n)} is not usable: pass an integer from 1 to 2**32 - 1, or None")
        source = self._source
        log = source._current_log()
        numbers = source._problem.context_numbers(context)
        constraints = source._constraints_for("recommend")
        held = fixed_of(source._problem, fixed)
        found = log.recommend(numbers, source._problem.wall_time(), feasible=constraints, n=wanted, fixed=held)
        if not found:
            where = " with the fixed values" if fixed else ""
            where += "" if constraints is None else " whose params satisfy the constraints"
            front = source._problem.front
            of = f" of {front}" if front else ""
            where += " within the bounds" if front and has_bounds(source._problem.outcomes) else ""
            raise NotFitted(f"recommend needs values{of}: observe at least one trial{where} first")
        points = [source._problem.domain.params_at(place) for place, _, _ in found]
        if has_bounds(source._problem.outcomes) and source._has_model:
            unknown = source._unknown_bounded()
            if unknown:
                warn(f"{unknown} have bounds and no values, so the recommended point may violate them: observe them")
            probable = self.predict_feasible(points, context) if not unknown else [1.0]
            if min(probable) < _PROBABLE:
                warn(
                    f"the outcomes of the recommended point lie within their bounds with probability "
                    f"{min(probable):.2g}: no point was found where this probability is 0.9 or more; observe more "
                    "trials, or relax a bound"
                )
        return points[0] if n is None else points

    def predict(
        self,
        params: Any = None,
        context: Mapping[str, Any] | None = None,
        *,
        pending: bool = False,
        outcome: str | None = None,
    ) -> tuple[Any, ...]:
        """Return the model's mean and standard deviation of f, in your units.

        Parameters
        ----------
        params : mapping, list of mappings, DataFrame or array (n, d); for candidates also indices (n,)
            One or several points at which to predict, which may lie beyond bounds and between steps. The columns of an
            array are the parameters in the order of the space; an array is not allowed if a parameter is a
            `Categorical`. For candidates, None means all candidates.
        context : mapping, optional
            A single context for all points, if a context was declared.
        pending : bool, default False
            If True, the model takes trials without a result into account, as the pending policy defines and as the next
            suggestion does.
        outcome : str, optional
            The name of a declared outcome. Default None: the objective, if there is one.

        Returns
        -------
        mean, std : ndarray of shape (n,), or float for a single point
            Mean and standard deviation of f, without observation noise. If bad values are compressed (`GP`,
            ``targets="robust"``), the first array contains medians instead of means. The second array then contains the
            larger distance from the median to an end of the central 95 % interval, divided by 1.96. The median ± 1.96
            std therefore contains the interval.

        Raises
        ------
        NotFitted
            No trial has been observed yet, or the outcome does not have a value.
        InvalidSetting
            The optimizer does not have a model, for example `RandomSearch`.
        InvalidPoint, InvalidContext
            A point or context does not belong to its space.

        Examples
        --------
        >>> import belated as bl
        >>> optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, seed=0)
        >>> optimizer.add([{"x": 0.1}, {"x": 0.5}, {"x": 0.9}], [1.0, 2.0, 1.0])  # doctest: +ELLIPSIS
        [...]
        >>> mean, std = optimizer.predict({"x": 0.5})
        >>> round(mean, 1)
        2.0
        """
        log, problem = self._model_log("predict"), self._source._problem
        points = problem.with_context(problem.domain.points(params, measured=True), context)
        i = self._source._position_of_model(outcome)
        found = log.predict(points, problem.wall_time(), bool(pending), i)
        return problem.as_given(params, *_fitted("predict", found, outcome or problem.objective))

    def predict_feasible(self, params: Any = None, context: Mapping[str, Any] | None = None) -> Any:
        """Return the probability that all outcomes lie within their bounds.

        Outcomes are independent given the data, and bounds include their ends. Where exact values of all outcomes with
        bounds were measured, the probability is 0 or 1. A value is exact if its noise is declared to be 0 (``std=0``),
        or if it is not declared and seems to be negligible.

        Parameters
        ----------
        params, context
            As for `predict`.

        Returns
        -------
        ndarray of shape (n,), or float for a single point
            Probabilities of the values without observation noise. Without bounds, they are 1.

        Raises
        ------
        NotFitted
            An outcome with bounds does not have a value yet.
        InvalidSetting
            The optimizer does not have a model, for example `RandomSearch`.
        InvalidPoint, InvalidContext
            A point or context does not belong to its space.

        Examples
        --------
        >>> import belated as bl
        >>> outcomes = {"error": "minimize", "memory": bl.AtMost(4.0)}
        >>> optimizer = bl.BayesOpt({"size": (0.0, 8.0)}, outcomes=outcomes, seed=0)
        >>> sizes = [0.5, 2.0, 3.5, 6.5, 8.0]
        >>> trials = optimizer.add([{"size": x} for x in sizes], [{"error": 1 / (1 + x), "memory": x} for x in sizes])
        >>> optimizer.predict_feasible([{"size": 2.0}, {"size": 7.0}]).round(2)
        array([1., 0.])
        """
        log, problem = self._model_log("predict_feasible"), self._source._problem
        unknown = self._source._unknown_bounded()
        if unknown:
            raise NotFitted(f"predict_feasible needs values of {unknown}: observe each at least once first")
        points = problem.with_context(problem.domain.points(params, measured=True), context)
        return problem.as_given(params, _fitted("predict_feasible", log.feasibility(points, problem.wall_time())))[0]

    def acquisition_at(self, params: Any = None, context: Mapping[str, Any] | None = None) -> Any:
        """Return the acquisition that the next suggestion would maximise, with pending trials taken into account.

        The call does not change later suggestions. The acquisition is also computed for points that violate
        constraints, although such points are never suggested.

        Parameters
        ----------
        params, context
            As for `predict`.

        Returns
        -------
        ndarray of shape (n,), or float for a single point
            Larger numbers are better, also if f is minimised. If trials have failed and the evidence for a region of
            failures is strong, -inf marks points at which failure is more likely than success; such points are not
            suggested. `LogEI`: the logarithm of the expected improvement in units of f. If trials have failed, the
            logarithm of the probability that a trial at the point succeeds is added. `UCB`: the upper bound of f, or of
            -f if f is minimized. `MaxVariance`: the variance of f. `UCBPE`: if no trial is in flight, the same as for
            `UCB`. If trials are in flight, the number is the variance of f. However, at points whose upper bound is too
            low for exploration, the number is minus the amount by which the bound is too low. With `LocalPenalization`
            and `PLAyBOOK`: the logarithm of the expected improvement, or of the upper bound minus its smallest value in
            the space, plus the logarithms of the penalties.

        Raises
        ------
        NotFitted
            No trial has been observed yet.
        InvalidSetting
            The optimizer does not have a model; or the acquisition is `ThompsonSampling` or `AEGiS`, which maximises a
            new draw at each suggestion.
        InvalidPoint, InvalidContext
            A point or context does not belong to its space.

        Examples
        --------
        >>> import belated as bl
        >>> optimizer = bl.BayesOpt({"n": (1, 30)}, initial=2, seed=0)
        >>> optimizer.add([{"n": 3}, {"n": 10}, {"n": 25}, {"n": 29}], [1.0, 3.0, 2.0, 0.0])  # doctest: +ELLIPSIS
        [...]
        >>> grid = [{"n": n} for n in range(1, 31)]
        >>> best = grid[optimizer.acquisition_at(grid).argmax()]
        >>> best == optimizer.suggest().params
        True
        """
        log, problem = self._model_log("acquisition_at"), self._source._problem
        numbers, points = problem.context_numbers(context), problem.domain.points(params)
        constraints = self._source._constraints_for("acquisition_at")
        values = log.acquisition(points, numbers, problem.wall_time(), feasible=constraints)
        return problem.as_given(params, _fitted("acquisition_at", values))[0]

    @property
    def surrogate_(self) -> Surrogate:
        """The fitted model: lengthscales by name, standard deviations of signal and noise, and the evidence.

        With several objectives, it is the model of the first objective.

        Raises
        ------
        NotFitted
            No trial has been observed yet.
        InvalidSetting
            The optimizer does not have a model, for example `RandomSearch`.
        """
        log, problem = self._model_log("surrogate_"), self._source._problem
        first = problem.front[0] if problem.front else problem.objective
        return surrogate_of(problem, *_fitted("surrogate_", log.surrogate(problem.wall_time(), False), first))

    @checks_arguments
    def importances(self, context: Mapping[str, Any] | None = None, *, outcome: str | None = None) -> dict[str, float]:
        """Return the importance of each parameter: its share in the variance of f over the space.

        The importance is the total effect of the parameter, E[Var(f | all other parameters)] / Var(f), where params are
        drawn uniformly from the space (on the scales of the parameters). The total effect is computed for each of 100
        draws of f from the posterior; the importances are the medians, divided by their sum. A parameter does not have
        an effect at points where it is inactive. If bad values are compressed (`GP`, ``targets="robust"``), f has the
        compressed values. With few trials the importances are uncertain: `plot_importance` of `belated.plotting` shows
        the undivided medians with intervals.

        Parameters
        ----------
        context : mapping, optional
            The context at which the model is used, if a context was declared.
        outcome : str, optional
            The name of a declared outcome. Default None: the objective, if there is one.

        Returns
        -------
        dict
            The importances by name, the largest first. Their sum is 1. Constants are left out.

        Raises
        ------
        NotFitted
            Fewer than two different values have been observed, or the model does not depend on any parameter.
        InvalidSetting
            The search does not have a model, or has candidates without names.
        InvalidContext
            The context is missing, was not declared, or is out of its space.

        Examples
        --------
        >>> import belated as bl
        >>> optimizer = bl.BayesOpt({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=0)
        >>> for trial in optimizer.suggest(n=20):
        ...     trial.observe(3 * trial.params["x"] + trial.params["y"])
        >>> {name: round(share, 1) for name, share in optimizer.importances().items()}
        {'x': 0.9, 'y': 0.1}
        """
        names, effects = self._total_effects(context, "importances", outcome)
        log, i = self._source._current_log(), self._source._position(outcome)
        records = [log.trial(number) for number in log.numbers(None)]
        values = {record.value if i is None else record.outcomes[i][1] for record in records} - {None}
        medians, n_values = np.median(effects, axis=0), len(values)
        if n_values < 2 or not medians.sum() > 0:
            found = "a single value" if n_values < 2 else "values that do not depend on the parameters"
            raise NotFitted(f"importances needs different values, and the trials have {found}: observe more trials")
        shares = medians / medians.sum()
        return {names[i]: float(shares[i]) for i in np.argsort(-shares, kind="stable")}

    @property
    def durations_(self) -> Durations:
        """The model of the durations of trials, fitted to all durations up to now.

        Raises
        ------
        InvalidSetting
            The optimizer does not have a model, for example `RandomSearch`.
        """
        log = self._model_log("durations_")
        return durations_of(self._source._problem, log)

    def predict_final(self, trial: Trial | int) -> tuple[float, float] | None:
        """Return the mean and standard deviation of the value that a running or stopped trial has at its last step.

        The forecast uses the curve of the trial and the values and curves of the trials that have ended.

        Returns
        -------
        mean, std : float
            In your units, with observation noise. None if the trial is neither running nor stopped, if its curve has no
            usable report, or before five trials with a curve have finished.

        Raises
        ------
        UnknownTrial
            A trial with this number does not exist, or the trial belongs to another optimizer.
        InvalidSetting
            The optimizer does not have a model, for example `RandomSearch`.

        Examples
        --------
        >>> import belated as bl
        >>> optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, curve=bl.Curve(10), stopping=None, seed=0)
        >>> for trial in optimizer.suggest(n=6):
        ...     for step in range(1, 11):
        ...         trial.report(trial.params["x"] - 1 / step, step)
        ...     trial.observe(trial.params["x"] - 0.1)
        >>> running = optimizer.add({"x": 0.3})
        >>> running.report(-0.7, 1)
        >>> mean, std = optimizer.predict_final(running)
        >>> abs(mean - 0.2) < 0.1
        True
        """
        log = self._model_log("predict_final")
        return log.forecast_value(self._source._number_of(trial), self._source._problem.wall_time())

    def _total_effects(
        self, context: Mapping[str, Any] | None, caller: str, outcome: str | None = None
    ) -> tuple[list[str], Array]:
        """Return the names of all parameters except constants, and their total effects by draw, (draws, names).

        `caller` is the name of the caller, for messages.
        """
        if isinstance(self.domain, Candidates):
            raise InvalidSetting(
                f"{caller} needs a space of named parameters, and this search has candidates without names"
            )
        model, *_ = self._fitted(caller, outcome)
        space, problem = self.domain, self._source._problem
        assert isinstance(space, Space)
        return total_effects(space, lambda rows, n: model.sample(problem.with_context(rows, context), n, 0))

    def _effect_intervals(
        self, context: Mapping[str, Any] | None, caller: str, outcome: str | None = None
    ) -> tuple[list[str], Array]:
        """Return the names of all parameters except constants, and three rows: the 5 %, 50 % and 95 % quantiles of
        their total effects. The 5 % quantile is 0 if the parameter may be without effect."""
        names, effects = self._total_effects(context, caller, outcome)
        quantiles = np.quantile(effects, [0.05, 0.5, 0.95], axis=0)
        assert isinstance(self.domain, Space)
        quantiles[0, can_be_zero(self.domain, self._fitted(caller, outcome)[0])] = 0.0
        return names, quantiles

    def _fitted(self, what: str, outcome: str | None = None) -> tuple[GaussianProcess, float, float, float]:
        """Return (model, mean, scale, log slope) of the core; `what` is the name of the caller, for messages."""
        # Read the log first: another process may have reordered the outcomes.
        log, source = self._model_log(what), self._source
        found = log.surrogate(source._problem.wall_time(), False, source._position_of_model(outcome))
        return _fitted(what, found, outcome or source._problem.objective)

    def _leave_one_out(
        self, outcome: str | None = None, caller: str = "leave-one-out"
    ) -> tuple[list[int], Array, Array]:
        """Return the trial numbers of the model's rows, and the means and stds of leave-one-out predictions.

        `caller` is the name of the caller, for messages.
        """
        log, problem = self._model_log(caller), self._source._problem
        found = log.leave_one_out(problem.wall_time(), self._source._position_of_model(outcome))
        return _fitted(caller, found, outcome or problem.objective)

    def _model_log(self, what: str) -> Log:
        """Return the log; raise InvalidSetting if the source does not have a model."""
        source = self._source
        if not source._has_model:
            raise InvalidSetting(f"{what} needs a model, and {source._strategy_name} has none: use BayesOpt")
        return source._current_log()


class Trials(Reading, Generic[AnyLog]):
    """The base class of optimizers and studies, with the methods that start trials and report their results.

    A subclass sets the attributes below, and overrides the members that depend on the log.
    """

    _problem: Problem
    _log: AnyLog
    # A token that identifies the trials of this optimizer or study. Copies have the same token.
    _token: str
    #: The seed of all random numbers.
    seed_: int
    _constraints: Constraints | None
    # The rule that stops trials.
    _rule: Stopping | None
    # Whether the strategy has a model of f.
    _has_model: bool
    # The argument window in units of the clock, for optimizers that have it.
    _window: float | Literal["auto"] | None

    @property
    def _source(self) -> Trials[Any]:
        return self

    @property
    def _strategy_name(self) -> str:
        """The name of the optimizer's class, for messages."""
        return self._problem.owner

    # Members that a subclass may override.

    def _problem_of(self, number: int) -> Problem:
        """Return the problem after `number` revisions. Only studies can be revised."""
        return self._problem

    def _why_forbidden(self, record: TrialRecord) -> str | None:
        """Return why a pending trial is not allowed any longer. Only studies can be revised."""
        return None

    def _revision_text(self, number: int) -> str:
        """Return what revision `number` changed, counted from 1. Only studies can be revised."""
        return ""

    def _n_read(self) -> int | None:
        """Return the number of the problem in which the arguments of a call are read; None for the present problem."""
        return None

    def _current_log(self) -> Log:
        """Read all events that other processes have written, and return the log."""
        return self._log

    def _current_problem(self) -> Problem:
        """Return the problem. A study first reads the events of other processes, which may have revised it."""
        return self._problem

    def _constraints_for(self, call: str) -> Constraints | None:
        """Return the constraints on the params, or None; `call` is the name of the calling method, for messages."""
        return self._constraints

    @abstractmethod
    def _submit(
        self,
        verb: str,
        trial: Any,
        given: tuple[Any, ...] = (),
        revision: int | None = None,
        key: str | None = None,
        notice: Callable[[str], None] = warn,
    ) -> list[int | None]:
        """Log a submission and return the numbers of its trials. Either all its actions are logged, or none of them.

        The first four arguments are as in `Submission`. `notice` is called with a text about the values that could not
        be stored.
        """

    def _submit_one(self, verb: str, trial: Any, given: tuple[Any, ...] = (), *more: Any) -> None:
        """As `_submit`, for a verb of `READERS_OF_ONE`."""
        self._submit(verb, trial, given, *more)

    @abstractmethod
    def _record_from(
        self,
        read: Callable[[Problem, Records, Carrier | None], list[Action]],
        revision: int | None,
        *,
        fits: bool = False,
    ) -> list[int | None]:
        """Log the actions that a function reads, as `actions_of` does.

        If `fits`, the model that marks values far from what it expects is fitted if necessary.
        """

    def _next_fidelity(self) -> float | None:
        return self._current_log().next_fidelity(self._problem.wall_time(), self._constraints)

    # The life cycle.

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
        moved: bool = False,
        dry_run: bool = False,
        on_error: Literal["raise", "skip"] = "skip",
    ) -> Any:
        """Report the value of a trial, or values of its outcomes; or report the values in a table of trials.

        Values may be reported at any time and in any order, also after `fail`, `abandon` or `withdraw`.

        Parameters
        ----------
        trial : Trial, int or DataFrame
            The trial or its number; or a table with the column ``number``, such as a worklist that was filled in. See
            Notes.
        value : float or mapping
            A finite real number (or a 0-d array). If outcomes were declared, a dict of the values that have arrived, by
            the names of the outcomes; either all of them are logged or none. The others can be reported any day later.
            A value in the dict that is None or NaN is missing. For a table, the name of the column with the values, or
            a dict of the names of columns; by default, ``value`` or the names of the outcomes.
        std : float or mapping, optional
            The standard deviation of the noise of this value, if you know it; or a dict by the names of the outcomes.
            If the value is a mean over n repetitions, pass the standard deviation of one repetition divided by sqrt(n).
            The model uses this number unchanged. For values that are reported without a std, the model fits the noise.
            A std, cost or duration that is NaN counts as not given, with a warning. If two values at one point differ
            and both have the std 0, a warning names the trials.
        cost : float, optional
            The cost of the evaluation, >= 0, in any unit. The cost is stored with the trial and charged to the budget
            of a run. The model of f ignores the cost, but ``LogEI(per="cost")`` uses it.
        duration : float or timedelta, optional
            The duration of the evaluation, for `durations_` and ``LogEI(per="time")``; a number is in seconds.
        params : mapping; for candidates also an index, or a row without names; optional
            The point that was evaluated, if it differs from the suggested point. The model uses the value at the
            evaluated point, and `best_params_` returns this point. `Trial.params` remains the suggested point, and
            `Trial.params_run` is the evaluated point. Numbers may lie between steps. They may also lie beyond a bound,
            and a row need not be a candidate: the trial is then marked as `Trial.outside`, and only
            ``best_trial(outside=True)`` returns it.
        attrs : mapping, optional
            Further data to store with the trial. Keys are strings. Values are None, booleans, finite numbers, strings,
            and lists and dicts of these. New entries replace earlier entries with the same key. Other data never
            prevent a report: with a warning, NaN and infinite numbers become None, and other objects become text.
        fidelity : int or float, optional
            The fidelity of the evaluation. An error is raised if this fidelity differs from the fidelity of the trial.
            Use `add` to report a value at another fidelity.
        amend : bool or list of int, default False
            Replace an earlier value and its std, or restore a withdrawn value. The cost, the duration and the evaluated
            point change only if they are passed again. For a table, True replaces the values that have not changed
            since the table was written, and a list of numbers replaces the values of these trials in any case.
        replicate : bool, default False
            If the trial already has a value, record the new value as another trial at the same point (or at `params`).
        moved : bool, default False
            For a table: whether many of its trials were run at other points than suggested.
        dry_run : bool, default False
            For a table: return the summary, and store nothing.
        on_error : {"skip", "raise"}, default "skip"
            For a table: if cells are refused, store the other cells, with a `BelatedWarning`; or raise an error and
            store nothing.

        Returns
        -------
        None or Reported
            For a table, a summary: the lists `new`, `corrected`, `unchanged`, `empty`, `moved`, `noted`, `refused` and
            `ignored`.

        Raises
        ------
        InvalidValue
            The value is NaN, inf, complex, a bool, a str, or an array with an axis; or a std, cost or duration is
            negative. The trial stays unchanged.
        InvalidPoint
            The params have missing or unknown names, a value of another type, an unknown choice, or a number <= 0 on a
            logarithmic scale.
        InvalidFidelity
            The fidelity differs from the fidelity of the trial.
        UnknownTrial
            A trial with this number does not exist, or the trial belongs to another optimizer.
        AlreadyObserved
            The trial has a different value, and neither amend nor replicate is True. This error is not raised if a
            report is a repetition: the value and the given std, cost, duration and params are the same as before. A
            repetition does not change the trial, and its attrs are ignored. If the value was withdrawn, reporting the
            same value is a repetition, too.
        InvalidSetting
            Both amend and replicate are True, or an argument is for tables or for single values only.

        Notes
        -----
        Each cell of a table is judged alone. An empty cell has no effect, and so has a cell with the value that is
        stored or that the table had when it was written. Another value than the stored one is refused without `amend`.
        The cell of a parameter is unchanged if it shows the suggested number rounded to the digits in the cell, of
        which at least three count, and then the value belongs to the suggested point. Another number is where the trial
        was run. A row is refused if it has the point of another trial, as in a sheet whose cells were shifted, and so
        is a column that was sorted alone. The texts "failed" and "abandoned" in place of a value, or in a column
        ``state``, end the trial. The columns ``std``, ``cost``, ``duration``, ``attrs_…`` and ``remarks`` are read,
        too. All accepted cells are stored together.

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
        facts = Facts(std, cost, duration, params, attrs)
        if moved or dry_run or on_error != "skip" or type(trial) not in (Trial, int) or type(amend) is not bool:
            check_table_options(trial, facts, fidelity, amend, replicate, moved, dry_run, on_error)
            if is_table(trial):
                return self._observe_table(trial, value, amend, moved, dry_run, on_error)
        return self._observe(
            self._number_of(trial), ObserveArguments(value, facts, fidelity, bool(amend), bool(replicate))
        )

    def _started(self, numbers: Sequence[int], single: bool) -> Trial | list[Trial]:
        """Return the trials that `suggest` started, or one trial if `single`."""
        trials = [Trial(self, number) for number in numbers]
        window = self._window
        window = None if window is None else finite(window)
        if window is not None:
            self._check_limit("window", window, 0.25)
        return trials[0] if single else trials

    def _observe_table(
        self,
        table: Any,
        value: Any,
        amend: bool | Sequence[int],
        moved: bool,
        dry_run: bool,
        on_error: str,
        expected: Any = None,
    ) -> Reported:
        """Log the values of a table in one transaction; `expected` is the number of events that the caller has read."""
        numbers, times, warning = numbers_of(table), times_of(table), None
        forced = amend if isinstance(amend, bool) else [self._number_of(each) for each in amend]
        summary = Reported()

        def read(problem: Problem, records: Records, _: Carrier | None) -> list[Action]:
            nonlocal summary, warning
            sheets = {at: sheet for at in times if (sheet := self._sheet(at, numbers)) is not None}
            present = self._sheet(None, numbers)
            assert present is not None
            sheets = sheets or {None: present}
            reports = Reports(table, value, sheets, problem, records, self._study_id, forced, moved)
            actions, summary = reports.read()
            warning = check_refused(summary, on_error)
            return [] if dry_run else actions

        self._record_from(read, None, *self._call_of_table(numbers, expected), fits=True)
        if warning is not None:
            self._warn_of_refused(warning)
        return summary

    def _call_of_table(self, numbers: list[int], expected: Any) -> Sequence[Any]:
        """Return further arguments of `_record_from` for a table."""
        return ()

    def _warn_of_refused(self, text: str) -> None:
        """Warn of the cells of a table that were refused."""
        warn(text)

    @property
    def _study_id(self) -> str | None:
        """The id of a study, which its worklists contain."""
        return None

    def _sheet(self, as_of: int | None, numbers: Sequence[int]) -> Sheet | None:
        """Return trials as they were after a number of events (None: as they are); None if there were fewer events."""
        return Sheet(self._problem, self._problem_of, self._log, len(self._log), lambda: None)

    def _observe(self, number: int, given: ObserveArguments, *more: Any) -> None:
        """Log a report of values; see `_submit`."""
        try:
            self._submit_one("observe", number, given, *more)
        except AlreadyObserved:
            if self._problem.outcomes:
                raise
            # The message of the core does not contain the reported value.
            facts = given.facts._replace(attrs=None)._asdict()
            others = "".join(f", {name}={short_repr(fact)}" for name, fact in facts.items() if fact is not None)
            raise AlreadyObserved(
                f"trial {number} has the value {Trial(self, number).value!r} already, and now value={given.value!r}"
                f"{others}; pass amend=True to replace it, or replicate=True to keep both"
            ) from None
        std = given.facts.std
        if std is not None and (type(std) is not float or std == 0.0):
            self._warn_of_contradiction([number], given.replicate)

    def _warn_of_mark(self, number: int, mark: tuple[int, float, float, float]) -> None:
        """Warn of a value that lies far outside the interval in which it was expected."""
        for marked in marked_values(self._problem.outcomes, number, [mark]):
            warn(marked.text)

    def _warn_of_contradiction(self, numbers: Sequence[int], replicate: bool = False) -> None:
        """Warn if trials at the same point have different values that were reported as exact.

        `numbers` are the trials that were reported. With `replicate`, the last trial may be new.
        """
        problem = self._problem
        if problem.has_warned("contradiction"):
            return
        found = self._log.contradiction([*numbers, len(self._log) - 1] if replicate else numbers)
        if found is None:
            return
        outcome, first, second = found
        records = [self._log.trial(number) for number in sorted((first, second))]
        values = [each.value if outcome is None else each.outcomes[outcome][1] for each in records]
        name = "" if outcome is None else f" of {list(problem.outcomes)[outcome]!r}"
        problem.warn_once(
            "contradiction",
            f"trials {records[0].number} and {records[1].number} were run at the same point and have the values "
            f"{values[0]!r} and {values[1]!r}{name}, both with std=0.0, which means without noise: amend them without "
            "std, so that the noise is fitted, or with their std; or withdraw the wrong value",
        )

    @checks_arguments
    def fail(
        self,
        trial: Trial | int | Sequence[Trial | int],
        *,
        error: BaseException | str | None = None,
        duration: float | timedelta | None = None,
        attrs: Mapping[str, Any] | None = None,
        outcome: str | None = None,
    ) -> None:
        """Report that the evaluation of a trial failed; later suggestions avoid the point.

        If the trial has already failed, the call only adds an error or a duration that the trial does not have yet. If
        outcomes were declared, all outcomes that are missing fail, and observed values stay.

        Parameters
        ----------
        trial : Trial or int, or a list of these
            The trials. Either all trials of a list fail, or none of them.
        error : exception or str, optional
            The cause of the failure. `Trial.error` stores the type, the message and the last 8 kB of the traceback. If
            the message is longer than 2 kB, only the beginning and the end of the message are stored.
        duration : float or timedelta, optional
            The time that the evaluation took until it failed; a number is in seconds.
        attrs : mapping, optional
            Further data to store with the trial; see `observe`.
        outcome : str, optional
            The name of the outcome that failed, if outcomes were declared. Default None: all outcomes that are missing.

        Raises
        ------
        UnknownTrial
            A trial with this number does not exist, or the trial belongs to another optimizer.
        AlreadyObserved
            The trial has a value.
        InvalidValue
            The error is neither an exception nor a string, the duration is negative or not finite, or the outcome was
            not declared.

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
        revision = self._n_read()
        facts, text = error_facts(error), attrs_as_json(attrs)
        numbers = self._numbers_of(trial)
        what = f"trial {numbers[0]}" if numbers else "no trial"
        seconds = as_amount("duration", duration, what, self._problem.warn_once)
        self._resolve("fail", numbers, (facts, text, seconds, outcome), revision)

    def _unknown_bounded(self) -> list[str]:
        """Return the names of the outcomes that have bounds and no value in any trial."""
        log, outcomes = self._current_log(), self._problem.outcomes
        bounded = {i: name for i, name in enumerate(outcomes) if bounds_of(outcomes, name) != (None, None)}
        for number in log.numbers(None) if bounded else ():
            known = log.trial(number).outcomes
            bounded = {i: name for i, name in bounded.items() if known[i][1] is None}
            if not bounded:
                break
        return list(bounded.values())

    def _position(self, outcome: str | None) -> int | None:
        """Return the position of a declared outcome; None for the objective."""
        return None if outcome is None else position(self._problem.outcomes, outcome)

    def _position_of_model(self, outcome: str | None) -> int | None:
        """Return the position of an outcome whose model is read; None for the only objective."""
        front = self._problem.front
        if outcome is None and front:
            raise InvalidValue(f"outcome is missing, and {front} are objectives: pass the name of one outcome")
        return self._position(outcome)

    @checks_arguments
    def abandon(self, trial: Trial | int | Sequence[Trial | int], *, outcome: str | None = None) -> None:
        """Abandon a trial. The trial does not count as a failure, and the model leaves it out.

        The point is not suggested again until a value or a failure of another trial has been reported.

        Parameters
        ----------
        trial : Trial or int, or a list of these
            The trials. Either all trials of a list are abandoned, or none of them.
        outcome : str, optional
            The name of the outcome that is no longer expected, if outcomes were declared. Default None: all outcomes
            that are missing. Observed values stay.

        Raises
        ------
        UnknownTrial
            A trial with this number does not exist, or the trial belongs to another optimizer.
        AlreadyObserved
            The trial has a value.
        """
        revision = self._n_read()
        self._resolve("abandon", self._numbers_of(trial), (outcome,), revision)

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
            attempt replaces the curve from the reported step on. Later reports of earlier attempts have no effect.
            Default None: the attempt that reported last.

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
        revision = self._n_read()
        self._submit_one("report", self._number_of(trial), (value, step, attempt), revision)

    def should_stop(self, trial: Trial | int) -> bool:
        """Return True if the evaluation of a trial should end before the last step of its curve.

        The rule `stopping` of the optimizer decides after each report. If the rule stops the trial, the trial gets the
        state "stopped", and later calls return True, in every process of a study.

        A trial whose curve has diverged fails, and the type of its error is "CurveDiverged": at least its last three
        reports are NaN, or its last two reports are far worse than all finished curves. Without a rule, and for curves
        with ``value="best"``, this is not examined.

        Raises
        ------
        UnknownTrial
            A trial with this number does not exist, or the trial belongs to another optimizer.
        """
        number = self._number_of(trial)
        record = self._current_log().trial(number)
        if record.ended_early is not None:
            return True
        if self._rule is None:
            return False
        problem = self._problem
        action = self._log.ending(number, problem.wall_time())
        if action is None:
            return False

        def read(present: Problem, records: Records, carrier: Carrier | None) -> list[Action]:
            # Another process may have revised the problem in the meantime.
            found = action if present is problem else self._log.ending(number, present.wall_time())
            return [] if found is None else [found]

        try:
            return bool(self._record_from(read, None))
        except AlreadyObserved:  # another process has reported the value
            return False

    def stop(self, trial: Trial | int) -> None:
        """Stop a trial before the last step of its curve. The trial does not get a value, but counts as a trial of a
        run.

        Raises
        ------
        UnknownTrial
            A trial with this number does not exist, or the trial belongs to another optimizer.
        AlreadyObserved
            The trial has a value.
        """
        self._resolve("stop", [self._number_of(trial)])

    @checks_arguments
    def withdraw(
        self, trial: Trial | int | Sequence[Trial | int], *, reason: str | None = None, outcome: str | None = None
    ) -> None:
        """Take back the value or the failure of a trial, for example of a contaminated sample.

        The trial gets the state "withdrawn". The model, the best trial and the curves then leave it out, and its point
        may be suggested again. The log keeps the withdrawn value and the reason (`Trial.withdrawal`), and estimates of
        delays and durations keep the arrival of the result.

        Afterwards, `observe` accepts another value. A report that repeats the withdrawn value has no effect, so that a
        repeated report does not restore it; pass ``amend=True`` to restore the value.

        Parameters
        ----------
        trial : Trial or int, or a list of these
            The trials that are observed, failed or stopped. Either all trials of a list are withdrawn, or none of them.
        reason : str, optional
            The reason, which is stored with the trial. A text of more than 2 kB is shortened.
        outcome : str, optional
            The name of the outcome whose value or failure is taken back, if outcomes were declared. Default None: all
            outcomes that have a result. If other outcomes of the trial are missing, the withdrawn ones are missing
            again.

        Raises
        ------
        InvalidValue
            A trial is pending, abandoned or already withdrawn; or the reason is not a string. The optimizer is
            unchanged.
        UnknownTrial
            A trial with this number does not exist, or the trial belongs to another optimizer.

        Examples
        --------
        >>> import belated as bl
        >>> optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
        >>> first, second = optimizer.suggest(n=2)
        >>> optimizer.observe(first, 0.5)
        >>> optimizer.observe(second, 54.0)
        >>> optimizer.withdraw(second, reason="contaminated flask")
        >>> second.state, second.value, optimizer.best_value_
        ('withdrawn', None, 0.5)
        >>> optimizer.observe(second, 0.75)
        >>> optimizer.best_value_
        0.75
        """
        revision, text = self._n_read(), as_text("reason", reason)
        self._submit("withdraw", self._numbers_of(trial), (text, outcome), revision)

    def _numbers_of(self, trial: Trial | int | Sequence[Trial | int]) -> list[int]:
        """Return the numbers of a trial or of several trials, without repetitions."""
        given: Any = trial if is_list(trial) else [trial]
        return list(dict.fromkeys(map(self._number_of, given)))

    @checks_arguments
    def note(
        self,
        trial: Trial | int | Sequence[Trial | int],
        remark: str | None = None,
        *,
        attrs: Mapping[str, Any] | None = None,
    ) -> None:
        """Store a remark about a trial, or attributes, at any time and in every state of the trial.

        Suggestions do not depend on remarks and attributes.

        Parameters
        ----------
        trial : Trial or int, or a list of these
            The trials. Either all trials of a list get the remark and the attributes, or none of them.
        remark : str, optional
            A text, which is added to `Trial.remarks` with the time. A text that repeats the last remark is not added.
            A text of more than 2 kB is shortened.
        attrs : mapping, optional
            Further data to store with the trial; see `observe`. For each key, `Trial.attrs` has the value that was
            reported last.

        Raises
        ------
        InvalidValue
            The remark is not a string, or attrs is not a mapping. The optimizer is unchanged.
        UnknownTrial
            A trial with this number does not exist, or the trial belongs to another optimizer.

        Examples
        --------
        >>> import belated as bl
        >>> optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
        >>> trial = optimizer.suggest()
        >>> optimizer.note(trial, attrs={"well": "A1"})
        >>> optimizer.observe(trial, 0.5)
        >>> optimizer.note(trial, "cloudy")
        >>> trial.attrs, [remark.text for remark in trial.remarks]
        ({'well': 'A1'}, ['cloudy'])
        """
        revision, text = self._n_read(), as_text("remark", remark)
        self._submit("note", self._numbers_of(trial), (text, attrs_as_json(attrs)), revision)

    @checks_arguments
    def confirm(self, trial: Trial | int | Sequence[Trial | int], *, outcome: str | None = None) -> None:
        """State that marked values are right, which removes their marks; see `Trial.marks`.

        Suggestions do not depend on marks. A value without a mark stays as it is.

        Parameters
        ----------
        trial : Trial or int, or a list of these
            The trials. Either the values of all trials of a list are confirmed, or none of them.
        outcome : str, optional
            If outcomes were declared, the outcome whose value is right. By default, all values of the trials are.

        Raises
        ------
        InvalidValue
            The outcome was not declared.
        UnknownTrial
            A trial with this number does not exist, or the trial belongs to another optimizer.

        Examples
        --------
        >>> import warnings
        >>> import belated as bl
        >>> optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, seed=0)
        >>> for trial in optimizer.suggest(n=9):
        ...     trial.observe(0.5 + 0.1 * trial.params["x"])
        >>> trial = optimizer.suggest()
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     trial.observe(57.0)
        >>> len(caught), list(trial.marks)
        (1, [None])
        >>> optimizer.confirm(trial)
        >>> trial.value, trial.marks
        (57.0, {})
        """
        revision = self._n_read()
        self._submit("confirm", self._numbers_of(trial), (outcome,), revision)

    def _resolve(self, verb: str, numbers: list[int], given: tuple[Any, ...] = (), revision: int | None = None) -> None:
        """Log the ends of trials; see `_submit`."""
        try:
            if verb == "stop":
                self._submit_one(verb, numbers[0], given, revision)
            else:
                self._submit(verb, numbers, given, revision)
        except AlreadyObserved:
            outcome = given[-1] if given else None
            trials = [Trial(self, number) for number in numbers]
            has_value = [
                trial for trial in trials if (outcome in trial.values if outcome else trial.state == "observed")
            ]
            trial = has_value[0] if has_value else trials[0]
            known = f"values {trial.values}" if self._problem.outcomes else f"value {trial.value!r}"
            refused = {"fail": "fail", "abandon": "be abandoned", "stop": "be stopped"}[verb]
            raise AlreadyObserved(
                f"trial {trial.number} has the {known} already and cannot {refused}; withdraw takes the value back"
            ) from None

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
        missing: Literal["raise", "skip", "pending"] = "raise",
        on_error: Literal["raise", "skip"] = "raise",
        duplicates: Literal["warn", "skip"] = "warn",
    ) -> Any:
        """Add trials that were not suggested: earlier data, or points that you chose.

        Parameters
        ----------
        params : mapping, row or index; or a list of these; or DataFrame or array
            In a space: a dict of values by name, a list of dicts, a DataFrame with a column for each name, or an array
            as for `predict`. Only constants may be left out. For candidates: also an index, or rows of shape (n, d).
            As for `observe`, numbers may lie beyond a bound or between steps, and rows need not be candidates.
            If `value` is a list, a list of numbers is a list of indices. A DataFrame may also contain the values and
            the other data of the trials; see Notes.
        value : float, sequence of float, or str, optional
            The observed value of each point. A trial without a value (None) is pending. A string is the name of a
            column of the table. If outcomes were declared, a dict of values for each point, by the names of the
            outcomes; for a table, a dict of the names of columns.
        context : mapping, list of mappings or DataFrame, optional
            If a context was declared: a single context for all points, or one context for each point.
        std : float, sequence of float, or str, optional
            The standard deviation of the noise: one number for all values, one number for each value, or the name of a
            column; see `observe`.
        cost : float, sequence of float, or str, optional
            The cost of an evaluation: one number for all trials, one number for each trial, or the name of a column. A
            cost is stored only together with a value.
        duration : float, timedelta, sequence of these, or str, optional
            The time that an evaluation took: one duration for all trials, one for each trial, or the name of a column;
            a number is in seconds, and a column may have texts such as "0 days 00:01:30". A duration is stored only
            together with a value.
        attrs : mapping, sequence of mappings, or names of columns, optional
            Further data to store: the same data for all trials, data for each trial, or the columns with the data; see
            `observe`.
        fidelity : int, float, sequence of these, or str, optional
            The fidelity in your units: one fidelity for all trials, one for each trial, or the name of a column. None
            means the highest fidelity.
        missing : {"raise", "skip", "pending"}, default "raise"
            What happens to a row of a table whose value is missing: an error is raised, the row is left out, or the
            trial is pending.
        on_error : {"raise", "skip"}, default "raise"
            If a row of a table cannot be added, raise an error and add no row, or add all other rows.
        duplicates : {"warn", "skip"}, default "warn"
            What happens to a row of a table that equals an earlier trial in point, values and other data, because a
            table that has grown is added again: the row is added with a warning, or left out.

        Returns
        -------
        Trial, list of Trial, or Added
            One trial for each point; a list if the points were passed as a list. With ``on_error="skip"``, a named
            tuple: `trials` is the list of new trials, and `skipped` lists the rows that were not added. Each of these
            has a `row`, the label of the row in the index of the table, a `column` and a `reason`.

        Raises
        ------
        InvalidPoint, InvalidValue, InvalidContext, InvalidFidelity
            An argument is invalid. The optimizer is unchanged. If a table was passed, the message names the row and the
            column.

        Notes
        -----
        A DataFrame contains values if `value` names a column, or if it has a column ``value`` or ``state``. Its columns
        are the names of the parameters and of the context, or these names with the prefixes of `trials_dataframe`
        (``params_T``, ``context_lot``). Columns with other names of `trials_dataframe` have the same meaning as there:
        ``value``, ``std``, ``cost``, ``duration``, ``fidelity``, ``state``, ``error``, ``curve_1``, …, ``attrs_…``. If
        outcomes were declared, their values are in columns with their names, or in the columns ``outcome_…`` beside
        ``std_…`` and ``state_…``. An outcome whose cell is empty is missing.
        A table of Optuna's ``trials_dataframe`` is read, too: only its complete trials have values, and those that lack
        params are left out. Further columns are ignored, and so are numbers and times: all trials are recorded at the
        current time, with new numbers. Each trial is added with its state, at the point that was run. If a row has a
        value and the state is "pending" or missing, the trial is observed. A parameter without a column
        ``params_run_…`` was run as suggested. Files that `to_csv` and `to_excel` wrote are read by pandas.

        Examples
        --------
        >>> import belated as bl
        >>> optimizer = bl.RandomSearch({"x": (0.0, 1.0)})
        >>> optimizer.add({"x": 0.25}, 3.0)
        Trial(number=0, params={'x': 0.25}, state='observed', value=3.0)
        >>> len(optimizer.add([{"x": 0.5}, {"x": 0.75}], [4.0, None]))
        2

        A table with a wrong row:

        >>> import pandas
        >>> table = pandas.DataFrame({"x": [0.5, 0.75, 0.25], "yield": [61.0, "n.d.", 70.5], "day": ["Mo", "Mo", "Tu"]})
        >>> added = optimizer.add(table, value="yield", on_error="skip")
        >>> len(added.trials), [(each.row, each.column) for each in added.skipped]
        (2, [(1, 'yield')])
        """
        revision = self._n_read()
        check_policies(missing, on_error, duplicates, is_table(params))
        facts = {"std": std, "cost": cost, "duration": duration, "attrs": attrs, "fidelity": fidelity}
        if is_table(params):
            policies = (missing, on_error, duplicates)
            return self._add_table(params, value, context, facts, policies, revision)
        problem = self._problem if revision is None else self._problem_of(revision - 1)
        points = problem.domain.several(params, listed=is_list(value))
        numbers = self._submit("add", None, (params, points, value, context, facts), revision)
        trials = [Trial(self, number) for number in numbers if number is not None]  # all numbers are given
        if std is not None:
            self._warn_of_contradiction([trial.number for trial in trials])
        return trials[0] if points is None else trials

    def _add_table(
        self,
        table: Any,
        value: Any,
        context: Any,
        facts: Mapping[str, Any],
        policies: tuple[str, str, str],
        revision: int | None,
    ) -> Any:
        """Add the rows of a table, with the arguments of `add`."""
        missing, on_error, duplicates = policies
        given = {"value": value} | {name: each for name, each in facts.items() if name != "attrs"}
        attrs = facts["attrs"]
        lists = [each for each in given.values() if each is not None and not isinstance(each, str)]
        if is_trials_table(table) and (lists or context is not None or isinstance(attrs, Mapping)):
            raise InvalidValue(
                "params is a table of trials, which has values and contexts: pass it alone, or the names of its columns"
            )
        own = rows_of_pending(table, self._current_problem(), self._problem_of, self._log, self._study_id)
        if own:
            shown = ", ".join(map(short_repr, own[:_ROWS_SHOWN])) + (", …" if len(own) > _ROWS_SHOWN else "")
            raise InvalidValue(
                f"{len(own)} rows of the table are trials that are pending here (rows {shown}): report their values by "
                "observe(table), instead of adding them as other trials (nothing was changed)"
            )

        read: Rows | None = None
        known: Problem | None = None
        repeated: list[Any] | None = None

        def rows_in(problem: Problem, records: Records, carrier: Carrier | None) -> list[Row]:
            nonlocal read, known, repeated
            present = problem if carrier is None else carrier.problem
            if read is None or present is not known:
                reader = TableReader(problem, table, given, context, attrs, missing, carrier)
                read, known = reader.rows(on_error), present
                if repeated is None:
                    # Trials without values are repeated on purpose.
                    rows = [row for row in read.rows if row.has_value] if len(self._log) else []
                    earlier = {
                        facts_of_record(records.trial(number)) for number in range(len(self._log) if rows else 0)
                    }
                    repeated = [row.label for row in rows if row.facts() in earlier]
                if duplicates == "skip":
                    read = Rows([row for row in read.rows if row.label not in repeated], read.skipped)
            return read.rows

        def added(problem: Problem, records: Records, carrier: Any) -> list[Action]:
            return [row.add for row in rows_in(problem, records, carrier)]

        numbers = self._record_from(added, revision)
        trials = [Trial(self, number) for number in numbers if number is not None]  # all numbers are given
        skipped = [] if read is None else read.skipped

        def rest_of(rows: Sequence[Row]) -> list[list[Action]]:
            return [[each for each, _ in row.rest(trial.number)] for trial, row in zip(trials, rows, strict=True)]

        # An action may need the earlier actions of its trial: a withdrawal needs the result that is withdrawn.
        made_for, rest = read, [] if read is None else rest_of(read.rows)

        def later(step: int, problem: Problem, records: Records, carrier: Carrier | None) -> list[Action]:
            nonlocal made_for, rest
            rows = rows_in(problem, records, carrier)
            if read is not made_for:
                made_for, rest = read, rest_of(rows)
            return [actions[step] for actions in rest if step < len(actions)]

        for step in range(max(map(len, rest), default=0)):
            self._record_from(partial(later, step), revision)
        self._warn_of_contradiction([trial.number for trial in trials])
        if repeated:
            shown = ", ".join(map(short_repr, repeated[:_ROWS_SHOWN])) + (", …" if len(repeated) > _ROWS_SHOWN else "")
            done = (
                "are left out" if duplicates == "skip" else 'are added again: withdraw them, or pass duplicates="skip"'
            )
            warn(
                f"{len(repeated)} rows equal earlier trials in point, values and other data, and {done} (rows {shown})"
            )
        return Added(trials, skipped) if on_error == "skip" else trials

    @checks_arguments
    def enqueue(self, params: Any, *, fidelity: Any = None) -> None:
        """Add points to a queue; the next suggestions are these points, in this order.

        Parameters
        ----------
        params : mapping, row or index; or a list of these; or DataFrame or array
            As for `add`, but in a space any parameters may be left out. Their values are chosen when the point is
            suggested, as `suggest` chooses values with the given values fixed. `TreeSearch` draws them uniformly at
            random among the values that satisfy the constraints. If no such values are found, the suggested point
            violates the constraints, with a warning. Of named candidates, a row with the given values is drawn.
        fidelity : int, float or sequence of these, optional
            The fidelity in your units: one fidelity for all trials, or one for each trial. None means the fidelity that
            is passed to `suggest`, or the highest fidelity if `suggest` is called without a fidelity.

        Raises
        ------
        InvalidPoint
            A point does not belong to the space or the candidates, or violates a constraint; or no point of the space
            has the given values. The queue is unchanged.
        InvalidFidelity
            The fidelity was not declared, or is out of its range. The queue is unchanged.

        Examples
        --------
        >>> import belated as bl
        >>> optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
        >>> optimizer.enqueue({"x": 0.5})
        >>> optimizer.suggest().params
        {'x': 0.5}

        Only the number of layers is given, and the optimizer chooses the other parameters:

        >>> optimizer = bl.RandomSearch({"layers": (1, 4), "lr": bl.Real(1e-4, 1, log=True)}, seed=0)
        >>> optimizer.enqueue([{"layers": 1}, {"layers": 4}])
        >>> [trial.params["layers"] for trial in optimizer.suggest(n=2)]
        [1, 4]
        """

        self._submit("enqueue", None, self._to_enqueue(params, fidelity), self._n_read())

    def _to_enqueue(self, params: Any, fidelity: Any) -> tuple[Any, ...]:
        """Return the arguments of the submission that enqueues points."""

        def seed() -> list[int]:
            return [self.seed_, self._log.n_events()]

        return params, fidelity, lambda: self._constraints_for("enqueue"), seed

    def _check_limit(self, name: str, limit: float, share: float) -> None:
        """Warn once if a window or a lease is below the quantile `share` of the delays."""
        log, checks = self._log, CHECKS.setdefault(self, {})
        n_events, due = log.n_events(), checks.get(name, _MIN_ARRIVALS)
        if due is None or n_events < due:
            return
        is_lease = name == "expires_after"
        starts, ends = log.arrivals(in_wall_time=is_lease)
        # Check again when all missing delays may have arrived: each needs an event.
        missing = _MIN_ARRIVALS - len(starts)
        checks[name] = n_events + missing if missing > 0 else None
        if missing > 0:
            return
        delays = np.maximum(ends - starts, 0.0)
        known = delays[~np.isnan(delays)]
        if not known.size:  # the log does not have the times
            return
        quantile, enough = np.quantile(known, [share, 0.95])
        if limit < quantile:
            unit = "s" if is_lease or self.clock == "seconds" else "suggestions"
            warn(
                f"{name}={limit:g} is below the {share:.0%} quantile of the delays so far, {quantile:.3g} {unit}, so "
                f"most results come later; set {name}={enough:.3g} or more, which includes 95% of the results so far"
            )

    def _check_hand_overs(self) -> None:
        """Warn once if results are handed over together."""
        log, checks = self._log, CHECKS.setdefault(self, {})
        n_events, checked = log.n_events(), checks.get("hand-overs", 0)
        if self.clock == "seconds" and checked not in (None, n_events):
            number = n_hand_overs(*log.arrivals(in_wall_time=False))
            checks["hand-overs"] = None if number else n_events
            if number:
                warn(
                    f"the results came together at {number} times: forecasts assume that results come one by one, so "
                    "the intervals do not hold for times between such hand-overs"
                )

    def _number_of(self, trial: Trial | int) -> int:
        if isinstance(trial, Trial):
            other = trial._owner
            if other is self:
                return trial.number  # this optimizer started the trial
            # If a trial was pickled in another process, it belongs to a copy of this optimizer.
            is_own = other._token == self._token and trial.number < len(self._log)
            if is_own:
                mine, theirs = (each._log.trial(trial.number) for each in (self, other))
                # The other object may not have read a revision.
                is_own = mine.era != theirs.era or mine.place == theirs.place
            if not is_own:
                raise UnknownTrial(f"{trial!r} belongs to another study or optimizer: report it there")
            return trial.number
        known = len(self._log)
        if type(trial) is int and 0 <= trial < known:  # the most frequent case
            return trial
        number = whole_number(trial)
        if number is None and not isinstance(trial, str) and (isinstance(trial, Mapping | Sequence) or np.ndim(trial)):
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

    def report_html(
        self, path: str | os.PathLike[str] | None = None, since: datetime | timedelta | int = timedelta(days=7)
    ) -> str:
        """Return a page of HTML about the search that is fit to be printed, for example for a meeting.

        It has the best trial or the front, what came and what changed in a period, the trials that are out with a
        forecast, marked values, forbidden trials, four pictures (with matplotlib), and all trials. It does not load
        other files. Times are in UTC. The trials do not change.

        Parameters
        ----------
        path : str or path, optional
            The file to which the page is also written.
        since : datetime, timedelta or int, default timedelta(days=7)
            The beginning of the period: a time (local if it has no time zone), a duration before now, or a number of
            events, such as ``as_of`` in `Study.worklist`.

        Raises
        ------
        InvalidSetting
            `since` is not usable.
        """
        page = report_page(self._source, since)
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(page)
        return page

    def __str__(self) -> str:
        try:
            best = self._best_trials()
            text = summary(self._source._problem, self.n_trials, len(self.pending), best)
            if len(best) == 1 and not self._source._problem.front:
                text += f" (trial {best[0].number}, params={rounded(best[0].params_run)})"
        except BelatedError as error:  # for example, the study was deleted
            text = str(error)
        return f"{self!r}\n{text}"

    def _repr_html_(self) -> str:
        best = self._best_trials()
        return trials_html(self._strategy_name, self._problem, self.trials, len(self.pending), best)


def _fitted(what: str, found: T | None, outcome: str | None = None) -> T:
    """Return a result of the model. The result is None before the first observed value; then raise NotFitted."""
    if found is None:
        values = "values" if outcome is None else f"values of {outcome!r}"
        raise NotFitted(f"{what} needs {values}: observe at least one {'trial' if outcome is None else 'value'} first")
    return found


#: Each optimizer and study has a dict: the name of a check of delays → the number of events from which it is due, or
#: None if it is complete. For hand-overs, it is the number of events at the last check.
CHECKS: WeakKeyDictionary[Trials[Any], dict[str, int | None]] = WeakKeyDictionary()

# The least probability that the outcomes of a recommended point lie within their bounds, except for rounding errors.
_PROBABLE = 0.9 - 1e-6

# The maximum number of rows of a table in a message.
_ROWS_SHOWN = 10

# The number of results after which a window or a lease is checked.
_MIN_ARRIVALS = 20
