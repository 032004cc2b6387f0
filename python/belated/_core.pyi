"""The compiled core: optimizers and Gaussian processes on arrays.

Events and trials are in the user's units. Models take points as rows of float64 in *encoded* coordinates, shape
(n, width); see ``belated.space``.

``time`` is the wall-clock time in seconds since 1970, or None if it is not known. ``clock="seconds"`` requires it.
"""

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "__version__",
    "BelatedError",
    "InvalidSpace",
    "InvalidSetting",
    "InvalidValue",
    "InvalidPoint",
    "InvalidContext",
    "InvalidFidelity",
    "UnknownTrial",
    "AlreadyObserved",
    "NumericalError",
    "HorizonReached",
    "BelatedWarning",
    "add_busy_workers",
    "defaults",
    "facts_of",
    "point_of",
    "revision_event",
    "revision_of",
    "without_note",
    "without_time",
    "Problem",
    "Parameter",
    "Space",
    "Candidates",
    "Domain",
    "Draft",
    "Optimizer",
    "Observation",
    "Action",
    "TrialRecord",
    "GaussianProcess",
    "Acquisition",
    "CurveModel",
    "DelayDistribution",
    "DurationModel",
]
__version__: str

class BelatedError(Exception):
    """Base class of all exceptions that belated raises."""

class InvalidSpace(BelatedError, ValueError):
    """A search space, candidate set or context space that cannot be searched."""

class InvalidSetting(BelatedError, ValueError):
    """An optimizer setting outside its documented range, or two settings that contradict each other."""

class InvalidValue(BelatedError, ValueError):
    """A value that is not finite, or an invalid ``std``, ``cost`` or ``duration``. The optimizer is unchanged."""

class InvalidPoint(BelatedError, ValueError):
    """A point, or a dict of parameters, that does not belong to the space."""

class InvalidContext(BelatedError, ValueError):
    """A context that is missing, undeclared or outside its space."""

class InvalidFidelity(BelatedError, ValueError):
    """A fidelity that is undeclared, is outside its range, or differs from the fidelity of the trial. The optimizer is
    unchanged."""

class UnknownTrial(BelatedError, KeyError):
    """A trial number that does not exist in this optimizer."""

class AlreadyObserved(BelatedError, ValueError):
    """A report on a trial that already has a value. A different value needs ``amend=True`` or ``replicate=True``."""

class NumericalError(BelatedError, ArithmeticError):
    """A covariance matrix that could not be factorised, even with jitter."""

class HorizonReached(BelatedError, RuntimeError):
    """A suggestion beyond the horizon of the optimizer. The optimizer is unchanged."""

class BelatedWarning(UserWarning):
    """A warning about a likely mistake, or about an error that did not stop the optimizer."""

def add_busy_workers(change: int) -> None:
    """Add to the number of workers for which the optimizers of this process leave processors free.

    A negative number of workers is subtracted. The number is not used if ``BELATED_NUM_THREADS`` is set.
    """

def defaults() -> str:
    """All strategies and settings with their defaults, as JSON. The keys are the names of the Python classes."""

# The author of an event; what it did; the positions of outcomes, with what happened to each, its value and its std; a
# step and its value; a remark, a reason or the message of an error; and the positions of confirmed outcomes.
_EventFacts: TypeAlias = tuple[
    str | None,
    Literal["suggested", "added", "enqueued", "reported", "resulted", "revised", "noted"],
    list[
        tuple[int, Literal["new", "amended", "failed", "abandoned", "stopped", "withdrawn"], float | None, float | None]
    ],
    tuple[int, float | None] | None,
    str | None,
    list[int],
]

def facts_of(event: str) -> _EventFacts:
    """The facts of an event (as JSON), for the history of its trial."""

def point_of(event: str) -> _Place | None:
    """The point in an event (as JSON), or None if the event does not contain a point."""

def revision_event(
    definition: str,
    fill: str | None,
    map: str | None,
    keep: str | None,
    constrained: bool,
    refused: list[int],
    time: float | None,
    now: float,
    by: str | None = None,
) -> str:
    """The event of a revision, as JSON. The definition and the next three arguments are JSON."""

def revision_of(event: str) -> tuple[str, str | None, str | None, str | None, bool, list[int]] | None:
    """The arguments of `revision_event`, without the times, or None if the event is not a revision."""

def without_time(event: str) -> str:
    """The event without its wall-clock time."""

def without_note(event: str) -> str:
    """The event of a suggestion, as JSON, without the note of the strategy."""

@final
class Parameter:
    """A parameter of any kind.

    A value is represented by a number: the value itself, or the position of a choice in its list, from 0. A parameter
    with one value is a constant and does not have columns."""

    @staticmethod
    def real(low: float, high: float, log: bool, step: float | None) -> Parameter:
        """Real numbers from low to high, in steps if `step` is given. Raises InvalidSpace."""

    @staticmethod
    def integer(low: float, high: float, log: bool, step: float | None) -> Parameter:
        """Integers from low to high, in steps if `step` is given. Raises InvalidSpace."""

    @staticmethod
    def ordinal(labels: list[str]) -> Parameter:
        """Ordered values with these labels."""

    @staticmethod
    def categorical(labels: list[str]) -> Parameter:
        """Choices without an order, with these labels."""

    @staticmethod
    def described(labels: list[str], vectors: list[list[float]]) -> Parameter:
        """Choices without an order, each with a vector of descriptors."""

    def offered(self, numbers: list[float]) -> Parameter:
        """This parameter, of which only these values are suggested. Raises InvalidSpace."""

    @property
    def width(self) -> int:
        """Number of encoded columns."""

    @property
    def n_levels(self) -> int | None:
        """Number of values, or None if the parameter is continuous."""

    @property
    def expected(self) -> str:
        """The values that the parameter may have, for messages."""

    def checked(self, number: float) -> float | None:
        """The value that equals a number up to rounding, or None if the number is not a value of the parameter."""

    def known(self, number: float) -> float | None:
        """As `checked`, also for values that are not offered."""

    @property
    def expected_measured(self) -> str:
        """The numbers of measurements, for messages."""

    def measured(self, number: float) -> float | None:
        """The number of a measurement, which may lie beyond a bound or between steps; None if it is not usable."""

    def level(self, number: float) -> int:
        """The position of a value among all values, from 0."""

    def member(self, level: int) -> float:
        """The value at this position."""

    def encode(self, number: float) -> NDArray[np.float64]:
        """The columns of a value, shape (width,)."""

    def decode(self, columns: Sequence[float] | NDArray[np.float64]) -> float:
        """The value nearest to columns of shape (width,)."""

# The constraints. The function takes m points, each with the numbers of all parameters. It returns whether each point
# is feasible, as an array of shape (m,).
_Feasible: TypeAlias = Callable[[list[list[float | None]]], NDArray[np.bool_]]

# A point: one number for each searched parameter (None if inactive), or the row number of a candidate.
_Place: TypeAlias = list[float | None] | int

@final
class Problem:
    """The points, contexts and fidelities of an optimizer, and whether smaller values are better."""

    def __new__(
        cls,
        members: Space | Candidates,
        context: Space | None = None,
        fidelity: tuple[Parameter, float | None, tuple[float, float, float] | None] | None = None,
        minimize: bool = False,
        seconds: bool = False,
        curve: tuple[int, bool] | None = None,
        outcomes: list[tuple[str, str, float | None, float | None, tuple[float, float] | None]] = ...,
    ) -> Problem:
        """Create a problem. `fidelity` has a range, a bound on the bias, and (base, exponent, full) of the cost.
        `curve` is (last step, whether the best value counts). Each outcome has a name, "minimize", "maximize", "within"
        or "record", and a lower and an upper bound."""

@final
class Space:
    """Named parameters and their conditions.

    A point is a list with one number for each parameter. None stands for a missing or inactive parameter."""

    def __new__(
        cls,
        declared: list[tuple[str, Parameter, list[tuple[str, list[int]]]]],
        is_context: bool,
        linear: list[tuple[list[tuple[str, float]], float | None, float | None, float | None, float, bool]] = ...,
    ) -> Space:
        """Create a space. Each entry of `declared` has the name, the declaration and the conditions of a parameter.

        A condition names another parameter, and has the levels of that parameter at which the condition holds. Each
        entry of `linear` has the terms, the lower and the upper bound of a constraint, the step and the tolerance of a
        mixture, and whether nonzero parameters are counted; the terms of a count have the numbers that stand for
        zero."""

    @property
    def redundant(self) -> list[str]:
        """The formulas of the linear constraints that hold wherever the others hold."""

    def check_part(self, searched: list[float | None]) -> None:
        """Raise an error if no point has these numbers of the searched parameters; None stands for any number."""

    def check_linear(self, searched: list[float | None]) -> None:
        """Raise an error if the numbers of the searched parameters violate a linear constraint."""

    @property
    def width(self) -> int:
        """Number of encoded columns of a point."""

    @property
    def searched(self) -> list[int]:
        """The positions of the parameters that are not constants."""

    def domain(self) -> Domain:
        """The set of encoded points."""

    def active(self, numbers: list[float | None]) -> list[bool]:
        """Whether each parameter is active. A parameter is inactive if one of its parents is not given."""

    def check_known(self, unknown: list[str]) -> None:
        """Refuse names that are not in the space."""

    def complete(self, numbers: list[float | None], unknown: list[str]) -> list[float | None]:
        """The numbers of a point, including the constants. Raises InvalidPoint (or InvalidContext for a context) for
        missing, unknown or inactive parameters."""

    def encode(self, numbers: list[float | None]) -> NDArray[np.float64]:
        """The columns of a complete point."""

    def only_searched(self, numbers: list[float | None]) -> list[float | None]:
        """The numbers of the searched parameters, from the numbers of all parameters."""

    def decode(self, columns: list[float]) -> list[float | None]:
        """The numbers of the point that is nearest to the given columns."""

    def numbers(self, record: TrialRecord) -> list[float | None]:
        """The numbers of the parameters at the point where a trial was started."""

    def spread(self, searched: Sequence[float | None]) -> list[float | None]:
        """The numbers of all parameters, from the numbers of the searched parameters."""

@final
class Candidates:
    """A list of candidates in the user's units. Encoding a candidate scales each column of numbers to [0, 1].

    If the columns have names, a column may be a category, and NaN is a gap."""

    def __new__(
        cls, points: NDArray[np.float64], columns: list[tuple[str, Parameter | None]] | None = None
    ) -> Candidates:
        """Create a list of candidates from the rows of a (N, d) array. Raises InvalidSpace.

        Each entry of `columns` has the name of a column and its category; None for numbers."""

    @property
    def width(self) -> int:
        """Number of encoded columns of a point."""

    def far_rows(self) -> list[tuple[int, int, tuple[float, float]]]:
        """The rows whose numbers are far from the others: row and column, and the range of the other numbers."""

    def domain(self) -> Domain:
        """The set of encoded candidates."""

    def encode(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The encoded columns of rows, shape (n, width)."""

    def check_known(self, unknown: list[str]) -> None:
        """Refuse names that are not the name of a column."""

    def complete(self, numbers: list[float | None], unknown: list[str]) -> list[float | None]:
        """The numbers of a point. Refuses unknown names, and None in a column without gaps."""

    def find(self, row: list[float]) -> int | None:
        """The index of the first candidate that equals this row."""

@final
class Domain:
    """The set of encoded points that can be suggested."""

    @staticmethod
    def candidates(points: NDArray[np.float64]) -> Domain:
        """A finite domain: the rows of a (N, d) array."""

    @property
    def width(self) -> int:
        """Number of encoded columns of a point."""

@final
class Observation:
    """Observed values of outcomes, and the data that may be reported with them.

    `values` has the position, the value and the std of each outcome. A number is the value of the only outcome.
    `point` is the point where the trial was run; None means the point where the trial was started. `attrs` are the
    user's attributes, as a JSON object. `marks` has the positions and the expected intervals of marked values; None
    means that the model judges the values. `what` is the trial or the added point, for messages about the numbers.
    """

    def __new__(
        cls,
        values: float | Sequence[tuple[int, float, float | None]],
        cost: float | None = None,
        duration: float | None = None,
        point: _Place | None = None,
        attrs: str | None = None,
        *,
        marks: Sequence[tuple[int, float, float]] | None = None,
        what: str = "the trial",
    ) -> Observation: ...

@final
class Action:
    """A report on a trial. The report is checked when it is recorded."""

    @staticmethod
    def observe(number: int, observation: Observation, amend: bool, replicate: bool) -> Action:
        """Observed values of outcomes. Either all are logged, or none.

        Without declared outcomes, a trial has one outcome, at position 0. By default, a
        different value for an observed outcome is an error. With `amend`, the new value replaces the old value. With
        `replicate`, the values are added as a new trial at the same point."""

    @staticmethod
    def fail(
        number: int,
        error: tuple[str, str, str | None] | None,
        attrs: str | None,
        duration: float | None = None,
        outcome: int | None = None,
    ) -> Action:
        """A failure of one outcome, or of the trial. ``error`` is (type, message, traceback)."""

    @staticmethod
    def abandon(number: int, outcome: int | None = None) -> Action: ...
    @staticmethod
    def report(number: int, step: int, value: float, attempt: int = 0) -> Action:
        """The value of the curve at a step, or NaN for a step that failed."""

    @staticmethod
    def stop(number: int) -> Action:
        """The end of an evaluation before the last step of its curve."""

    @staticmethod
    def withdraw(number: int, reason: str | None = None, outcome: int | None = None) -> Action:
        """The result of an observed, failed or stopped outcome or trial was wrong and is taken back."""

    @staticmethod
    def note(number: int, attrs: str | None = None, remark: str | None = None) -> Action:
        """Attributes and a remark, without a result."""

    @staticmethod
    def acknowledge(number: int) -> Action:
        """A report had no effect; the event keeps its key."""

    @staticmethod
    def confirm(number: int, outcome: int | None = None) -> Action:
        """Marked values of a trial are right."""

    @staticmethod
    def add(
        place: _Place,
        context: list[float] | None,
        observation: Observation | None,
        fidelity: float | None = None,
        attrs: str | None = None,
    ) -> Action:
        """A trial that the optimizer did not suggest."""

    @staticmethod
    def enqueue(place: _Place, fidelity: float | None = None, partial: bool = False) -> Action:
        """If ``partial``, the numbers that are None are chosen at the suggestion."""

@final
class Draft:
    """An event that was checked, and is not logged yet."""

    @property
    def text(self) -> str:
        """The event as JSON, as stores keep it."""

    @property
    def marks(self) -> list[tuple[int, float, float, float]]:
        """The marked values: the position of the outcome, the value, and the interval in which it was expected."""

    @property
    def number(self) -> int | None:
        """The number of the trial of the event."""

    def with_attrs(self, attrs: str) -> Draft:
        """The same suggestion with attributes of its trial, as JSON."""

    def with_author(self, by: str) -> Draft:
        """The same event with its author."""

@final
class TrialRecord:
    """The record of a trial in the log, in the user's units."""

    @property
    def number(self) -> int: ...
    @property
    def place(self) -> _Place:
        """The point where the trial was suggested or added."""

    @property
    def run(self) -> _Place | None:
        """The point where the trial was run, or None if a run point was not reported."""

    @property
    def outside(self) -> bool:
        """Whether the trial was run beyond a bound or at a row that is not a candidate."""

    @property
    def context(self) -> list[float]:
        """One number for each searched parameter."""

    @property
    def curve(self) -> list[tuple[int, float]]:
        """The reported steps in ascending order, with their values. The value of a failed step is NaN."""

    @property
    def remarks(self) -> list[tuple[str, float | None, str | None]]:
        """The remarks in order of arrival, their wall-clock times and their authors."""

    @property
    def marks(self) -> list[tuple[int, float, float]]:
        """The outcomes whose values are marked, each with the interval in which the value was expected."""

    @property
    def attempt(self) -> int:
        """The attempt that reported last."""

    @property
    def ended_early(self) -> str | None:
        """How the curve ended before its last step: "stopped", "diverged" or None."""

    @property
    def left_out(self) -> str | None:
        """Why a revision left the trial out, or None."""

    @property
    def era(self) -> int:
        """The era of ``place``: the number of revisions before it."""

    @property
    def era_of_run(self) -> int:
        """The era of ``run``."""

    @property
    def era_of_context(self) -> int:
        """The era of ``context``."""

    @property
    def era_of_fidelity(self) -> int:
        """The era of ``fidelity``."""

    @property
    def outcomes(
        self,
    ) -> list[
        tuple[
            str,
            float | None,
            float | None,
            float | None,
            float | None,
            tuple[str, float | None, str | None, float | None] | None,
        ]
    ]:
        """For each declared outcome: its state, value and std, the time of its arrival on the clock, the wall-clock
        time when it got its state, and its last withdrawn result."""

    @property
    def state(self) -> str: ...
    @property
    def value(self) -> float | None: ...
    @property
    def std(self) -> float | None: ...
    @property
    def cost(self) -> float | None: ...
    @property
    def duration(self) -> float | None: ...
    @property
    def fidelity(self) -> float | None: ...
    @property
    def attrs(self) -> list[str]:
        """JSON objects. Entries of later objects override entries of earlier objects."""

    @property
    def error(self) -> tuple[str, str, str | None] | None:
        """(type, message, traceback) of the last failure that was reported with an error."""

    @property
    def withdrawal(self) -> tuple[str, float | None, str | None, float | None] | None:
        """(state before the withdrawal, value, reason, wall-clock time) of the last withdrawn result."""

    @property
    def note(self) -> str | None:
        """The note of the strategy that suggested the trial."""

    @property
    def suggested(self) -> bool:
        """Whether the optimizer suggested the trial. False if the trial was added."""

    @property
    def queued(self) -> bool:
        """Whether the point came from the queue."""

    @property
    def suggested_at(self) -> float: ...
    @property
    def observed_at(self) -> float | None: ...
    @property
    def ended_at(self) -> float | None:
        """The time when the trial was last observed, failed, abandoned or stopped."""

    @property
    def started_at(self) -> float | None:
        """The wall-clock time of ``suggested_at``, if known."""

    @property
    def finished_at(self) -> float | None:
        """The wall-clock time of ``ended_at``, if known."""

    @property
    def started_by(self) -> str | None:
        """The author of the event that started the trial, if known."""

    @property
    def finished_by(self) -> str | None:
        """The author of the event that ended the trial, if known."""

    @property
    def expires_at(self) -> float | None:
        """The wall-clock time in seconds when the lease ends."""

@final
class Optimizer:
    """A log of trials and the strategy that proposes the next trial.

    ``strategy`` is a JSON object ``{"kind": "BayesOpt", …}`` with the settings that ``defaults`` lists. ``stopping`` is
    the rule that stops trials, ``{"kind": "ASHA", …}``, or None. A context has one number for each searched parameter.
    A fidelity is a number in the user's units."""

    def __new__(cls, problem: Problem, seed: int, strategy: str, stopping: str | None = None) -> Optimizer: ...
    def suggest(
        self,
        n: int,
        context: list[float] | None,
        time: float | None,
        feasible: _Feasible | None = None,
        fidelity: float | None = None,
        limit: tuple[Literal["time", "cost"], float] | None = None,
        fixed: list[tuple[float, float] | list[float] | None] | list[int] | None = None,
        shared: list[int] | list[list[int]] | None = None,
    ) -> list[int]:
        """Start n trials and return their numbers. If an error occurs, the log is unchanged.

        If ``fidelity`` is None, the strategy chooses the fidelity. ``feasible`` is called in this thread, and must not
        use this optimizer. Enqueued points are not checked. ``fixed`` has the allowed values of each searched
        parameter, as (low, high) or as a list, or the numbers of the allowed candidates. ``shared`` has the positions
        of parameters that have one value in all trials, or lists of candidates that have the shared values in common.
        """

    def propose(
        self,
        n: int,
        context: list[float] | None,
        time: float | None,
        expires_after: float | None = None,
        feasible: _Feasible | None = None,
        fidelity: float | None = None,
        limit: tuple[Literal["time", "cost"], float] | None = None,
        fixed: list[tuple[float, float] | list[float] | None] | list[int] | None = None,
        shared: list[int] | list[list[int]] | None = None,
    ) -> list[Draft]:
        """Return the events that would start n trials. ``commit`` logs the events.

        ``expires_after`` is the lease of each trial in seconds."""

    def next_fidelity(self, time: float | None, feasible: _Feasible | None) -> float | None:
        """The fidelity of the next suggestion, or None for full fidelity. The log is unchanged."""

    def queued(self) -> list[tuple[_Place, bool]]:
        """The enqueued points that have not been suggested yet, and whether each is partial."""

    def validate(self, action: Action, time: float | None, fits: bool = False) -> Draft | None:
        """The event that ``record`` would log. ``commit`` logs the event.

        None if the action would have no effect. The log is unchanged. If ``fits``, the model that marks values is
        fitted if necessary."""

    def commit(self, drafts: Sequence[Draft]) -> list[int | None]:
        """Log events that this core drafted, and return the number of the trial of each. Only a draft for another place
        in the log is checked again."""

    def record(
        self,
        action: Action,
        time: float | None,
        notice: Callable[[int, tuple[int, float, float, float]], object] | None = None,
    ) -> int | None:
        """Log an action and return the number of its trial.

        The result is None for an enqueued point, or if the action has no effect. ``notice`` is called with the number
        of the trial and each marked value, as in ``Draft.marks``."""

    def expected(
        self, number: int, outcome: int | None, time: float | None, fits: bool = False
    ) -> tuple[float, float] | None:
        """The interval in which a value of an outcome of a trial without this value is expected.

        None if too little is known. If ``fits``, the model is fitted if necessary."""

    def extend(self, events: Sequence[str]) -> list[int | None]:
        """Check and log events of any process. If an event is invalid, the events before it are still logged.

        The result contains one entry per event: the number of its trial, or None for an enqueued point. The call stops
        before the event of a revision."""

    def revise(
        self,
        problem: Problem,
        strategy: str,
        stopping: str | None,
        event: str,
        trials: Sequence[tuple[_Place | None, _Place | None, list[float] | None, float | None, bool, str | None]],
        queue: Sequence[tuple[_Place, bool]],
        only_check: bool,
    ) -> None:
        """Replace the problem, the strategy and the rule that stops trials, and log the event of the revision.

        ``trials`` has an entry for each trial: the point of the start, the point of the run, the context, the fidelity,
        whether the new problem has the fidelity, and why the trial is left out. ``queue`` is as
        ``queued`` returns it. With ``only_check``, the optimizer is unchanged."""

    def last_revision(self) -> int:
        """The number of the event of the last revision, or 0."""

    def replace(self, events: Sequence[str]) -> list[int | None]:
        """Replace the log by these events, with the problem before the first revision. If an event is invalid, the log
        is unchanged.

        The result is as in `extend`."""

    def events(self, start: int, end: int | None = None) -> list[str]:
        """The events from number ``start`` to number ``end`` (exclusive), as JSON. By default, ``end`` is the end of
        the log."""

    def n_events(self) -> int: ...
    def recommend(
        self,
        context: list[float] | None,
        time: float | None,
        feasible: _Feasible | None = None,
        n: int = 1,
        fixed: list[tuple[float, float] | list[float] | None] | list[int] | None = None,
    ) -> list[tuple[_Place, float, float]]:
        """Up to n distinct recommended points, and the posterior mean and standard deviation of f, as
        (place, mean, std). The best point is the first.

        The list is empty before the first observation."""

    def surrogate(
        self, time: float | None, pending: bool, outcome: int | None = None
    ) -> tuple[GaussianProcess, float, float, float] | None:
        """The posterior of the targets over (x, context) rows, as (model, mean, scale, log slope).

        A target of 0 stands for ``mean``, the prior mean of f. Targets are in units of ``scale``. If bad values are
        compressed, ``scale`` is the unit of good values. The log slope is Σ log d target/dy over the observed values.

        If ``pending`` is true, the posterior includes the rows that the pending policy adds for the next suggestion.
        ``outcome`` is the position of a declared outcome; None means the objective. The result is None before the first
        fit."""

    def predict(
        self, points: NDArray[np.float64], time: float | None, pending: bool, outcome: int | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """The posterior mean and standard deviation of f at (x, context) rows.

        The result is None if the strategy does not have a fitted model."""

    def acquisition(
        self,
        points: NDArray[np.float64],
        context: list[float] | None,
        time: float | None,
        feasible: _Feasible | None = None,
    ) -> NDArray[np.float64] | None:
        """The values, in units of f, that the acquisition of the next suggestion has at points (n, width).

        The result is None before the first observation, or if the strategy does not have a model."""

    def forecast_value(self, number: int, time: float | None) -> tuple[float, float] | None:
        """Return the mean and std of the value at the last step of a running or stopped trial.

        The result is None if the curve has no usable report, or if the strategy does not have a model."""

    def feasibility(self, points: NDArray[np.float64], time: float | None) -> NDArray[np.float64] | None:
        """The probability that all outcomes lie within their bounds at (x, context) rows.

        The result is None if the strategy does not have a model."""

    def leave_one_out(
        self, time: float | None, outcome: int | None = None
    ) -> tuple[list[int], NDArray[np.float64], NDArray[np.float64]] | None:
        """Predict the value of each row of the model from all other rows. Return (trial numbers, mean, std).

        The std includes the noise. The result is None before the first observation, or if the strategy does not have a
        model."""

    def durations(self, time: float | None) -> DurationModel | None:
        """The model of durations. ``time`` determines the ages of running trials.

        The result is None if fewer than two positive durations are known, or if the strategy does not have a model."""

    def status(self, time: float | None) -> str | None:
        """The state of the strategy (rounds or trees) as JSON, or None if the strategy does not have a state.

        ``time`` determines the ages of running trials.
        """

    def now(self, time: float | None) -> float:
        """The time on the optimizer's clock."""

    def trial(self, number: int) -> TrialRecord: ...
    def numbers(self, state: str | None) -> list[int]:
        """The numbers of the trials in a state ("pending", "observed", "failed", "abandoned", "stopped" or
        "withdrawn"), or of all trials."""

    def values(self, outcome: int | None = None) -> NDArray[np.float64]:
        """The values of all trials, in the user's sign: of the outcome at a position, or of the trials. NaN stands for
        a missing value."""

    def parameter(self, position: int) -> NDArray[np.float64]:
        """The numbers of a declared parameter at the points where the trials were run. NaN stands for a point without
        it."""

    def numbers_by(self, author: str) -> list[int]:
        """The numbers of the trials that an author started or ended."""

    def traits(self) -> list[NDArray[np.uint8]]:
        """Facts about all trials: the position of the state in the list of states; whether a value is marked, an
        outcome has failed, and the trial has reported steps; whether it lies outside the domain or is left out; and
        whether its value may be the best."""

    def ending(self, number: int, time: float | None) -> Action | None:
        """The action that ends the evaluation of a trial after its last report, or None if the trial continues: a
        failure if the curve diverged, or a stop by the rule ``stopping``. The log is unchanged."""

    def delays(
        self, time: float | None, outcome: int | None = None, in_wall_time: bool = False
    ) -> tuple[float, DelayDistribution, dict[int, float]]:
        """The time on the clock, the delay distribution of the suggested trials, and the age of each suggested trial in
        flight by its number; all in wall-clock time if ``in_wall_time`` is True, which needs a time.

        A trial whose lease has ended counts as if it were abandoned at the end of the lease. If the clock counts
        seconds, the distribution is fitted anew after an event, and when the time that has passed since the last event
        has grown by a tenth of the median delay."""

    def arrivals(self, in_wall_time: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The starts and ends of the suggested trials that were observed, on the clock or in wall-clock time.

        A time that is not known is NaN."""

    def lateness(self, time: float) -> tuple[DelayDistribution, list[int]]:
        """The distribution of the delays of suggested trials in wall-clock time, and the numbers of late trials: the
        pending trials that are late, and the observed trials that were late when their result arrived.

        A trial with a lease is late from the end of the lease on. A suggested trial without a lease is late if its age
        exceeds the 95 % quantile of the delays of trials that arrive."""

    def window(self) -> float | None:
        """The time for which a pending trial counts as arriving, on the clock, or None without a limit."""

    def best(self, outside: bool = False) -> int | None:
        """The number of the trial with the best value at the highest fidelity observed. If `outside` is false, trials
        that were run outside the domain are left out."""

    def best_first(self) -> list[int]:
        """The numbers of the trials that `best` may return, by decreasing fidelity and with the best value first."""

    def pareto(self, excluded: Sequence[int]) -> list[int]:
        """The numbers of the trials that no other trial dominates, except for the excluded trials; empty without a
        front."""

    def hypervolume(self, numbers: Sequence[int], reference: Sequence[float]) -> float:
        """The hypervolume of these trials above a reference, which has a value for each objective."""

    def reference(self, numbers: Sequence[int]) -> list[float | None]:
        """The declared or computed reference of each objective for the hypervolume of these trials, which must be a
        front; None if it was not declared and there are no trials."""

    def contradiction(self, numbers: Sequence[int]) -> tuple[int | None, int, int] | None:
        """The first of these trials whose exact value differs from another exact value at the same point: the position
        of the outcome, if outcomes are declared, the number of the other trial, and of the trial."""

    def __len__(self) -> int: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(data: bytes) -> Optimizer: ...

@final
class GaussianProcess:
    """A Gaussian process with zero prior mean. The hyperparameters are fixed until ``optimize`` is called.

    ``kernel`` is "matern52" (the default), "matern32", "matern12", "squared_exponential" or "linear". ``lengthscale``
    is one number (by default 1), or one number per column. ``variance`` is the signal variance, and ``noise`` is the
    noise *variance*."""

    def __new__(
        cls,
        kernel: str | None = None,
        lengthscale: float | Sequence[float] | NDArray[np.float64] | None = None,
        variance: float = 1.0,
        noise: float = 1e-6,
    ) -> GaussianProcess: ...
    def fit(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> None:
        """Condition on the rows of x (n, d) and targets y (n,). These data replace all earlier data."""

    def predict(self, z: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Posterior mean and standard deviation of f (without noise) at the rows of z."""

    def sample(self, z: NDArray[np.float64], n: int, seed: int) -> NDArray[np.float64]:
        """Draw n exact joint samples of f at the rows of z (N, d), as a (n, N) array."""

    def log_marginal_likelihood(self) -> float: ...
    def optimize(self, n_restarts: int = 8, seed: int = 0, priors: bool = True) -> None:
        """Fit the hyperparameters by maximum likelihood, or by MAP if ``priors`` is true, in several L-BFGS-B runs."""

    @property
    def kernel(self) -> str: ...
    @property
    def lengthscale(self) -> NDArray[np.float64]: ...
    @property
    def descriptor_lengthscale(self) -> NDArray[np.float64]: ...
    @property
    def variance(self) -> float: ...
    @property
    def noise(self) -> float: ...
    @property
    def x(self) -> NDArray[np.float64]: ...
    @property
    def y(self) -> NDArray[np.float64]:
        """The targets of the rows. The target of a hallucinated row is the posterior mean at this row."""

    @property
    def n_observed(self) -> int:
        """The number of observed rows. The rows after the observed rows belong to pending trials."""

@final
class Acquisition:
    """An acquisition on a fixed posterior. A call evaluates the acquisition at the rows of an array."""

    @staticmethod
    def upper_confidence_bound(gp: GaussianProcess, nu: float) -> Acquisition: ...
    @staticmethod
    def log_expected_improvement(gp: GaussianProcess, incumbent: float) -> Acquisition: ...
    @staticmethod
    def thompson(gp: GaussianProcess, nu: float = 1.0, n_features: int = 1024, seed: int = 0) -> Acquisition: ...
    def __call__(self, z: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def gradient(self, z: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]: ...
    def maximize(self, domain: Domain, seed: int = 0) -> tuple[NDArray[np.float64], int | None, float]:
        """The maximum that the search finds on the domain, as (point, candidate index or None, value)."""

@final
class CurveModel:
    """A model of learning curves, fitted to the curves of ended trials.

    The value of a trial at step t is h + m(t) + g(t) + ε(t), where m is a mean curve, g is a Gaussian process and
    ε ~ N(0, σ²). At the last step m and g are 0.

    Parameters
    ----------
    steps : list of int
        The k steps at which trials report, ascending from 1 or more. The last entry is the last step of a trial.
    ended : array of shape (n, k)
        The reports of the trials; NaN without a report. Trials without a report at the last step are ignored.

    Raises
    ------
    ValueError
        If the steps are not ascending, or if the number of columns is not the number of steps.

    Notes
    -----
    With fewer than five curves there is no model: all pseudo-observations, and ``noise``, are None.
    """

    def __new__(cls, steps: list[int], ended: NDArray[np.float64]) -> CurveModel: ...
    @property
    def noise(self) -> float | None:
        """The variance σ² of the noise of a value that the warp does not change."""

    @property
    def warp(self) -> tuple[float, float] | None:
        """The knee and the width of the transformation of the values, or None if the values are not transformed."""

    def pseudo_observation(self, values: NDArray[np.float64]) -> tuple[float, float] | None:
        """Return the pseudo-observation of h from the reports (k,) of a trial: a value and the variance of its error.

        NaN is not a report. The result is None without a usable report before the last step, or with a report at the
        last step."""

@final
class DelayDistribution:
    """The distribution of delays, with the probabilities that a trial arrives, fails or never ends.

    Families of distributions (exponential, Weibull, log-normal and log-logistic) are fitted to the trials and averaged.
    The order of the trials does not matter.

    Parameters
    ----------
    ages : array of shape (n,)
        The delay of each trial that arrived or failed, and the age of each other trial.
    outcomes : array of shape (n,)
        0 for a trial in flight or an abandoned trial, 1 for a trial that arrived, 2 for a failed trial.
    clock : {"seconds", "iterations"}
        On the clock of iterations, ages are whole numbers. A result that arrives before the next suggestion has
        delay 1, so a trial in flight at age k may still arrive with delay k.
    resolution : float, optional
        The delays in seconds are multiples of this number. By default they are exact.
    families : list of str, optional
        The families: "exponential", "weibull", "log-normal" and "log-logistic". On the clock of iterations,
        "exponential" is the geometric distribution. The default is all four.
    priors : bool
        Whether weak priors are used. Few arrivals need priors.
    cure : bool
        Whether some trials may never end.

    Notes
    -----
    Forecasts are tuples (value, low, high, extrapolated), where (low, high) is a central interval of probability
    ``level``. ``extrapolated`` is true if the forecast depends on the distribution beyond the largest age of a trial.
    Without an arrival, all forecasts are None and ``unknown`` is the reason.
    """

    def __new__(
        cls,
        ages: NDArray[np.float64],
        outcomes: NDArray[np.int64],
        *,
        clock: str = "seconds",
        resolution: float | None = None,
        families: list[str] | None = None,
        priors: bool = True,
        cure: bool = True,
    ) -> DelayDistribution: ...
    @property
    def unknown(self) -> str | None:
        """The reason for which the distribution is unknown, or None."""

    @property
    def follow_up(self) -> float | None:
        """The largest age of a trial."""

    @property
    def fits(self) -> list[tuple[str, float, float, float, float, list[float]]]:
        """The fitted families as (name, weight, log-likelihood, location, spread, probabilities).

        The log of a delay is location + spread · Z. The probabilities belong to an arrival, a failure, and neither.
        """

    @property
    def counts(self) -> list[int]:
        """The numbers of trials that are in flight or abandoned, that arrived, and that failed."""

    def records(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The arguments ``ages`` and ``outcomes``."""

    def incidence(self) -> list[NDArray[np.float64]] | None:
        """The Kaplan–Meier and Aalen–Johansen estimates, up to the last arrival.

        Returns the distinct times of arrivals and failures, the probability that a trial has neither arrived nor failed
        and its variance, and the probability that a trial has arrived and its variance."""

    def arrival_probability(
        self, age: float, within: float, level: float = 0.8
    ) -> tuple[float, float, float, bool] | None:
        """The probability that a trial in flight at ``age`` arrives within a further time ``within``."""

    def failure_probability(
        self, age: float, within: float, level: float = 0.8
    ) -> tuple[float, float, float, bool] | None:
        """The probability that a trial in flight at ``age`` fails within a further time ``within``."""

    def arrives_ever(self, age: float = 0.0, level: float = 0.8) -> tuple[float, float, float, bool] | None:
        """The probability that a trial in flight at ``age`` ever arrives."""

    def remaining(self, age: float = 0.0, level: float = 0.8) -> tuple[float, float, float, bool] | None:
        """The median time until the arrival of a trial in flight at ``age``, if it arrives."""

    def quantile(self, q: float, level: float = 0.8) -> tuple[float, float, float, bool] | None:
        """The quantile ``q`` of the delays of trials that arrive."""

    def mean(self, level: float = 0.8) -> tuple[float, float, float, bool] | None:
        """The mean delay of trials that arrive. The mean is infinite for some log-logistic distributions."""

    def count(
        self, ages: NDArray[np.float64], within: float, level: float = 0.8
    ) -> tuple[float, float, float, bool] | None:
        """The number of arrivals within a further time ``within`` among trials in flight at ``ages``.

        The probability of the interval, whose ends are included, is as close to ``level`` as possible."""

    def count_distribution(self, ages: NDArray[np.float64], within: float) -> NDArray[np.float64] | None:
        """The probabilities of 0, 1, … arrivals within a further time ``within`` among trials in flight at ``ages``."""

@final
class DurationModel:
    """The model of durations at one time: the log duration of a trial is normal, and its mean depends on the point."""

    @property
    def numbers(self) -> list[int]:
        """The trials whose duration is known, in the order in which they ended."""

    @property
    def log_durations(self) -> NDArray[np.float64]:
        """The log duration of each of these trials. A duration of 0 counts as a tenth of the smallest positive one."""

    @property
    def explained(self) -> float:
        """The share of the variance of log durations that the model explains, from 0 to 1."""

    def predict(self, points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The mean and standard deviation of the log duration of a new trial at each (x, context) row."""

    def left_out(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The mean and standard deviation of the log duration of each trial in ``numbers``, by cross-validation.

        The trials are split into at most ten parts, and each part is predicted from the other parts."""
