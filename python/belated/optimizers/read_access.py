"""The members that read trials and the model; optimizers, studies and results of runs share them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from belated._core import GaussianProcess
from belated.errors import InvalidSetting, NotFitted
from belated.optimizers.delays import Delays, Forecast, Overdue, delays_of, forecast_of
from belated.optimizers.durations import Durations, durations_of
from belated.optimizers.importance import total_effects
from belated.optimizers.log import Array, Log
from belated.optimizers.surrogate import Surrogate, surrogate_of
from belated.optimizers.table import trials_dataframe
from belated.optimizers.trial import Trial
from belated.short_repr import short_repr
from belated.space.arguments import checks_arguments, whole_number
from belated.space.candidates import Candidates
from belated.space.space import ContextSpace, Space

if TYPE_CHECKING:
    from belated.optimizers.life_cycle import LifeCycle

T = TypeVar("T")


class ReadAccess(ABC):
    """The members that read trials and the model without changing them; the subclass defines `_source`."""

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
            if name.endswith("_"):
                # Studies and results of runs also have the special attributes of their optimizer, such as rounds_.
                optimizer = self._source._optimizer
                if optimizer is not self and isinstance(getattr(type(optimizer), name, None), property):
                    self._source._current_log()
                    return getattr(optimizer, name)
            from belated.hints import attribute_advice

            known = {each for each in [*dir(cls), *vars(self)] if not each.startswith("_")}
            raise AttributeError(message + attribute_advice(name, known))

    @property
    @abstractmethod
    def _source(self) -> LifeCycle[Any]:
        """The optimizer or study to read."""

    def _numbers(self, state: str | None) -> list[int]:
        """Return the numbers of the trials in a state, or of all trials if `state` is None."""
        return self._source._current_log().numbers(state)

    # The problem.

    @property
    def domain(self) -> Space | Candidates:
        """The search space, or the candidates."""
        return self._source._problem.domain

    @property
    def context_space(self) -> ContextSpace | None:
        """The space of contexts; None if contexts were not declared."""
        return self._source._problem.context_space

    @property
    def direction(self) -> Literal["maximize", "minimize"]:
        """Whether f is maximized or minimized."""
        return self._source._problem.direction

    @property
    def clock(self) -> Literal["iterations", "seconds"]:
        """The unit of times and delays."""
        return self._source._problem.clock

    # Trials.

    def trial(self, number: int) -> Trial:
        """Return the trial with this number; raise UnknownTrial if it does not exist."""
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
        """The trial with the best observed value at the highest observed fidelity; None before the first value."""
        number = self._source._current_log().best()
        return None if number is None else Trial(self._source, number)

    @property
    def best_params_(self) -> Any:
        """The params with the best observed value (for candidates, the row); None before the first value.

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

    def trials_dataframe(self, *, delays: bool = False, curves: bool = False) -> Any:
        """Return all trials as a pandas DataFrame, one row for each trial.

        The first columns are number, state, value, std, cost, duration, suggested_at, observed_at, delay, error (as
        ``"type: message"``) and, if a fidelity was declared, fidelity. The next columns are ``params_…``, one for each
        name. For candidates, the column ``index`` has the row number in the array. If a trial was run at a point that
        differs from the suggested point, there are also columns ``params_run_…`` (for candidates, ``index_run``). The
        last columns are ``context_…`` for each name of the context and ``attrs_…`` for each key of the attrs. If a
        trial does not have some of these data, the cell contains a missing value. If a space has both ``x`` and
        ``run_x``, the column of ``run_x`` is ``params_run_x``, and the columns of the points that were run are
        ``params_run__…``.

        To read trials from a file that ``trials_dataframe().to_csv(file, index=False)`` wrote, use
        ``add(pandas.read_csv(file))``.

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
        log = self._source._current_log()
        records = [log.trial(number) for number in self._numbers(None)]
        return trials_dataframe(self._source._problem, records, self.delays_ if delays else None, curves)

    # Delays.

    @property
    def delays_(self) -> Delays:
        """The distribution of delays, estimated from all suggested trials up to now."""
        return delays_of(self._source)

    def forecast(self, by: float | datetime | timedelta | None = None) -> Forecast:
        """Return how many results of the trials in flight arrive up to a time. Added trials are left out.

        Parameters
        ----------
        by : float, datetime or timedelta, optional
            A time on the optimizer's clock. If the clock is "seconds", also a datetime, or a timedelta from now.
            Default None: the median delay from now.

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
        return forecast_of(self._source, by)

    def overdue(self) -> list[Overdue]:
        """Return the trials in flight that are late and whose results probably never arrive.

        The age of such a trial exceeds the 95 % quantile of the delays of trials that arrive, and the 98 % interval of
        the probability that its result arrives lies below 1/2. The trials are sorted by this probability; the least
        likely result comes first. The list is empty before the first result. Early in a study and with few results, it
        is often empty, because long delays and lost trials look the same.

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
        return [Overdue(Trial(self._source, number), age, arrives) for number, age, arrives in self.delays_.overdue()]

    # The model.

    @checks_arguments
    def recommend(self, context: Mapping[str, Any] | None = None, *, n: int | None = None) -> Any:
        """Return the point to use after the search, or a list of the n best points.

        `BayesOpt` returns the best observed point if all values are exact: their noise is declared to be zero, or the
        fitted noise is at its lower bound. With noise or a context, it returns the point with the largest lower bound
        ``mean - 2 * std`` of `predict` (the smallest ``mean + 2 * std`` if f is minimised). If a list is returned, the
        observed points follow. Points that violate a constraint or where a trial probably fails are left out.
        `RandomSearch` returns the best observed point. If a fidelity was declared, the highest fidelity counts.

        Parameters
        ----------
        context : mapping, optional
            The context for which a point is recommended, if a context was declared.
        n : int, optional
            The number of distinct points in the list, best first. The list is shorter if there are fewer points among
            which to choose. If n is None, a single point is returned.

        Returns
        -------
        dict or ndarray, or list of these
            Params by name; for candidates the row, shape (d,).

        Raises
        ------
        NotFitted
            No trial has been observed yet.
        InvalidContext
            The context is missing, was not declared, or is out of its space.
        InvalidSetting
            n is not an integer >= 1.
        """
        wanted = 1 if n is None else whole_number(n)
        if wanted is None or not 1 <= wanted < 2**32:
            raise InvalidSetting(f"n={short_repr(n)} is not usable: pass an integer from 1 to 2**32 - 1, or None")
        source = self._source
        numbers = source._problem.context_numbers(context)
        constraints = source._constraints_for("recommend")
        found = source._current_log().recommend(numbers, source._problem.wall_time(), feasible=constraints, n=wanted)
        if not found:
            where = "" if constraints is None else " whose params satisfy the constraints"
            raise NotFitted(f"recommend needs values: observe at least one trial{where} first")
        points = [source._problem.domain.params_at(place) for place, _, _ in found]
        return points[0] if n is None else points

    def predict(
        self, params: Any = None, context: Mapping[str, Any] | None = None, *, pending: bool = False
    ) -> tuple[Any, ...]:
        """Return the model's mean and standard deviation of f, in your units.

        Parameters
        ----------
        params : mapping, list of mappings, DataFrame or array (n, d); for candidates rows (n, d) or indices (n,)
            One or several points at which to predict. The columns of an array are the parameters in the order of the
            space; an array is not allowed if a parameter is a `Categorical`. For candidates, None means all candidates.
        context : mapping, optional
            A single context for all points, if a context was declared.
        pending : bool, default False
            If True, the model takes trials without a result into account, as the pending policy defines and as the next
            suggestion does.

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
            No trial has been observed yet.
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
        points = problem.with_context(problem.domain.points(params), context)
        return problem.as_given(params, *_fitted("predict", log.predict(points, problem.wall_time(), bool(pending))))

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
            low for exploration, the number is minus the amount by which the bound is too low.

        Raises
        ------
        NotFitted
            No trial has been observed yet.
        InvalidSetting
            The optimizer does not have a model; or the acquisition is `ThompsonSampling`, which maximises a new draw at
            each suggestion.
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

        Raises
        ------
        NotFitted
            No trial has been observed yet.
        InvalidSetting
            The optimizer does not have a model, for example `RandomSearch`.
        """
        return surrogate_of(self._source._problem, *self._fitted("surrogate_"))

    def importances(self, context: Mapping[str, Any] | None = None) -> dict[str, float]:
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

        Returns
        -------
        dict
            The importances by name, the largest first. Their sum is 1. Constants are left out.

        Raises
        ------
        NotFitted
            Fewer than two different values have been observed, or the model does not depend on any parameter.
        InvalidSetting
            The search does not have a model, or has candidates.
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
        names, effects = total_effects(self, context, "importances")
        log = self._source._current_log()
        medians, n_values = np.median(effects, axis=0), len({log.trial(i).value for i in log.numbers("observed")})
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
        return durations_of(self._source._problem, self._model_log("durations_"))

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

    def _fitted(self, what: str) -> tuple[GaussianProcess, float, float, float]:
        """Return (model, mean, scale, log slope) of the core; `what` is the name of the caller, for messages."""
        return _fitted(what, self._model_log(what).surrogate(self._source._problem.wall_time(), False))

    def _leave_one_out(self) -> tuple[list[int], Array, Array]:
        """Return the trial numbers of the model's rows, and the means and stds of leave-one-out predictions."""
        log = self._model_log("leave-one-out")
        return _fitted("leave-one-out", log.leave_one_out(self._source._problem.wall_time()))

    def _model_log(self, what: str) -> Log:
        """Return the log; raise InvalidSetting if the source does not have a model."""
        source = self._source
        if not source._optimizer._has_model:
            raise InvalidSetting(f"{what} needs a model, and {source._strategy_name} has none: use BayesOpt")
        return source._current_log()


def _fitted(what: str, found: T | None) -> T:
    """Return a result of the model. The result is None before the first observed value; then raise NotFitted."""
    if found is None:
        raise NotFitted(f"{what} needs values: observe at least one trial first")
    return found
