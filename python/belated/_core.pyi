"""The compiled core: optimizers and Gaussian processes on arrays.

Events and trials are in the user's units. Models take points as rows of float64 in *encoded* coordinates, shape
(n, width), see ``belated.space``.
``now`` is the time on the optimizer's clock: seconds for ``clock="seconds"``, and None for
``clock="iterations"``, where the core itself counts the suggestions started.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, final

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
    "defaults",
    "point_of",
    "without_note",
    "Problem",
    "Parameter",
    "Space",
    "Candidates",
    "Domain",
    "Optimizer",
    "Action",
    "TrialRecord",
    "GaussianProcess",
    "Acquisition",
]
__version__: str

class BelatedError(Exception):
    """Base class of all exceptions that belated raises."""

class InvalidSpace(BelatedError, ValueError):
    """A search space, candidate set or context space that cannot be searched."""

class InvalidSetting(BelatedError, ValueError):
    """An optimizer setting outside its documented range, or two settings that contradict each other."""

class InvalidValue(BelatedError, ValueError):
    """A value that is not finite, or an invalid ``std``, ``cost`` or ``duration``. Nothing was changed."""

class InvalidPoint(BelatedError, ValueError):
    """A point (or the parameters of one) that does not belong to the space."""

class InvalidContext(BelatedError, ValueError):
    """A context that is missing, undeclared or outside its space."""

class InvalidFidelity(BelatedError, ValueError):
    """A fidelity that is not declared, is outside its range, or is not the trial's. Nothing was changed."""

class UnknownTrial(BelatedError, KeyError):
    """A trial number that does not exist in this optimizer."""

class AlreadyObserved(BelatedError, ValueError):
    """A trial that already has a value; another value needs ``amend=True`` or ``replicate=True``."""

class NumericalError(BelatedError, ArithmeticError):
    """A covariance matrix that could not be factorised, even with jitter."""

class HorizonReached(BelatedError, RuntimeError):
    """A suggestion beyond the horizon of the optimizer. Nothing was changed."""

class BelatedWarning(UserWarning):
    """A warning about a likely mistake, or about an error that did not stop the optimizer."""

def defaults() -> str:
    """All values of settings by the names of their classes, with their defaults, as JSON."""

def point_of(event: str) -> _Place | None:
    """The point in an event as JSON; None if it has none."""

def without_note(event: str) -> str:
    """A suggested event as JSON without the note of its strategy."""

@final
class Parameter:
    """A parameter of any kind, whose values are numbers: the value itself, or the place of a choice, from 0.

    A parameter with one value is a constant and has no columns."""

    @staticmethod
    def real(low: float, high: float, log: bool, step: float | None) -> Parameter:
        """Real numbers from low to high, in steps if `step` is given. Raises InvalidSpace."""

    @staticmethod
    def integer(low: float, high: float, log: bool, step: float | None) -> Parameter:
        """Integers from low to high, in steps if `step` is given. Raises InvalidSpace."""

    @staticmethod
    def ordinal(labels: list[str]) -> Parameter:
        """Ordered values, known by their labels."""

    @staticmethod
    def categorical(labels: list[str]) -> Parameter:
        """Choices without an order, known by their labels."""

    @property
    def width(self) -> int:
        """Number of encoded columns."""

    @property
    def n_levels(self) -> int | None:
        """Number of values; None if continuous."""

    @property
    def expected(self) -> str:
        """The values that the parameter may have, for messages."""

    def checked(self, number: float) -> float | None:
        """The value that a number stands for except for rounding; None if there is none."""

    def level(self, number: float) -> int:
        """The place of a value among all values, from 0."""

    def member(self, level: int) -> float:
        """The value at this place."""

    def encode(self, number: float) -> NDArray[np.float64]:
        """The columns of a value, shape (width,)."""

    def decode(self, columns: Sequence[float] | NDArray[np.float64]) -> float:
        """The value nearest to columns of shape (width,)."""

# Takes points, each with the numbers of all parameters; returns whether each satisfies the constraints, shape (m,).
_Feasible: TypeAlias = Callable[[list[list[float | None]]], NDArray[np.bool_]]

# A point: one number for each searched parameter, None where inactive; for candidates the row number.
_Place: TypeAlias = list[float | None] | int

@final
class Problem:
    """The points, contexts and fidelities of an optimizer, and which values are better."""

    def __new__(
        cls,
        members: Space | Candidates,
        context: Space | None = None,
        fidelity: tuple[Parameter, float | None, tuple[float, float, float] | None] | None = None,
        minimize: bool = False,
        seconds: bool = False,
    ) -> Problem:
        """`fidelity` has the range, a bound on the bias, and (base, exponent, full) of the cost."""

@final
class Space:
    """Named parameters and their conditions. A point is a list of numbers, one for each parameter; None stands for a
    parameter that is not given or inactive."""

    def __new__(cls, declared: list[tuple[str, Parameter, list[tuple[str, list[int]]]]], is_context: bool) -> Space:
        """The name of each parameter, the parameter, and the levels of other parameters at which it is active."""

    @property
    def width(self) -> int:
        """Number of encoded columns of a point."""

    @property
    def searched(self) -> list[int]:
        """The numbers of the parameters that are not constants."""

    def domain(self) -> Domain:
        """The set of encoded points."""

    def active(self, numbers: list[float | None]) -> list[bool]:
        """Whether each parameter is active; a parameter is inactive if one of its parents is not given."""

    def check_given(self, given: list[bool], unknown: list[str]) -> None:
        """Refuse missing and unknown names, unless there are conditions."""

    def check_known(self, unknown: list[str]) -> None:
        """Refuse names that are not in the space."""

    def complete(self, numbers: list[float | None], unknown: list[str]) -> list[float | None]:
        """The numbers with constants filled in. Raises InvalidPoint (InvalidContext) for missing, unknown or inactive
        parameters."""

    def encode(self, numbers: list[float | None]) -> NDArray[np.float64]:
        """The columns of a complete point."""

    def only_searched(self, numbers: list[float | None]) -> list[float | None]:
        """The numbers of the searched parameters among the numbers of all."""

    def decode(self, columns: list[float]) -> list[float | None]:
        """The numbers of the point nearest to these columns."""

    def numbers(self, record: TrialRecord) -> list[float | None]:
        """The numbers of the point where a trial was started."""

    def spread(self, searched: Sequence[float | None]) -> list[float | None]:
        """The numbers of all parameters from the numbers of the searched ones."""

@final
class Candidates:
    """A list of candidates in the user's units, whose columns are scaled to [0, 1]."""

    def __new__(cls, points: NDArray[np.float64]) -> Candidates:
        """The rows of a (N, d) array. Raises InvalidSpace."""

    def domain(self) -> Domain:
        """The set of encoded candidates."""

    def encode(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The columns of rows, shape (n, d)."""

    def find(self, row: NDArray[np.float64]) -> int | None:
        """The index of the first candidate that equals this row."""

@final
class Domain:
    """The set that suggestions come from."""

    @staticmethod
    def candidates(points: NDArray[np.float64]) -> Domain:
        """A finite domain: the rows of a (N, d) array."""

    @property
    def width(self) -> int:
        """Number of encoded columns of a point."""

class _Report(Protocol):
    """The facts reported with a value: `belated.optimizers.log.Report`."""

    @property
    def std(self) -> float | None: ...
    @property
    def cost(self) -> float | None: ...
    @property
    def duration(self) -> float | None: ...
    @property
    def place(self) -> _Place | None:
        """The point where the trial was run; None if it is the point where it was started."""

    @property
    def attrs(self) -> str | None:
        """A JSON object."""

@final
class Action:
    """A report about a trial; it is checked when it is recorded."""

    @staticmethod
    def observe(number: int, value: float, report: _Report | None, amend: bool, replicate: bool) -> Action:
        """A value. If the trial has another value: raise an error, replace it (`amend`), or add another trial at the
        same point (`replicate`)."""

    @staticmethod
    def fail(number: int, error: tuple[str, str, str | None] | None, attrs: str | None) -> Action:
        """A crash; ``error`` is (type, message, traceback)."""

    @staticmethod
    def abandon(number: int) -> Action: ...
    @staticmethod
    def add(
        place: _Place,
        context: list[float] | None,
        value: float | None,
        report: _Report | None,
        fidelity: float | None = None,
    ) -> Action:
        """A trial that was not suggested. Without a value, only the report's attrs are kept."""

    @staticmethod
    def enqueue(place: _Place, fidelity: float | None = None) -> Action: ...

@final
class TrialRecord:
    """One trial as the log knows it, in the user's units."""

    @property
    def number(self) -> int: ...
    @property
    def place(self) -> _Place:
        """Where it was suggested or added."""

    @property
    def run(self) -> _Place | None:
        """Where it was run; None if no other point was reported."""

    @property
    def context(self) -> list[float]:
        """One number for each searched parameter."""

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
        """JSON objects, each merged over the earlier ones."""

    @property
    def error(self) -> tuple[str, str, str | None] | None:
        """(type, message, traceback) of the last failure that had an error."""

    @property
    def note(self) -> str | None:
        """The note of the strategy that suggested it."""

    @property
    def suggested(self) -> bool:
        """Whether the optimizer suggested it; False if it was added."""

    @property
    def suggested_at(self) -> float: ...
    @property
    def observed_at(self) -> float | None: ...
    @property
    def ended_at(self) -> float | None:
        """The last time when it was observed, failed or abandoned."""

    @property
    def expires_at(self) -> float | None:
        """Wall-clock seconds when its lease ends."""

@final
class Optimizer:
    """A log of trials and the strategy that proposes the next one.

    ``strategy`` is a JSON object ``{"kind": "BayesOpt", …}`` with the settings that ``defaults`` lists. A context has
    one number for each searched parameter; a fidelity is a number in the user's units."""

    def __new__(cls, problem: Problem, seed: int, strategy: str) -> Optimizer: ...
    def suggest(
        self,
        n: int,
        context: list[float] | None,
        now: float | None,
        feasible: _Feasible | None = None,
        fidelity: float | None = None,
    ) -> list[int]:
        """Start n trials; their numbers. Either all n are logged or none. If ``fidelity`` is None, the strategy chooses
        it.

        ``feasible`` is called in this thread, and must not use this optimizer. Enqueued points are not checked."""

    def propose(
        self,
        n: int,
        context: list[float] | None,
        now: float | None,
        wall_time: float | None = None,
        expires_after: float | None = None,
        feasible: _Feasible | None = None,
        fidelity: float | None = None,
    ) -> list[str]:
        """The events, as JSON, that would start n trials; nothing is logged until they are passed to ``extend``.

        ``wall_time`` is the current time for leases in seconds, ``expires_after`` the length of new leases."""

    def next_fidelity(self, now: float | None, feasible: _Feasible | None) -> float | None:
        """The fidelity of the next suggestion; None at full fidelity. Nothing is logged."""

    def queued(self) -> list[_Place]:
        """The enqueued points that are not suggested yet."""

    def was_enqueued(self, number: int) -> bool:
        """Whether the point of a trial came from the queue."""

    def is_report_of(self, event: str, concerned: int | None, action: Action) -> bool:
        """Whether an event logged the value, std, cost and place of this observation; the event concerns trial
        `concerned`."""

    def validate(self, action: Action, now: float | None) -> tuple[str, int | None] | None:
        """The event that ``record`` would log, as JSON, and the number of the trial that it starts or concerns; None if
        nothing would change. Nothing is logged."""

    def record(self, action: Action, now: float | None) -> int | None:
        """Log an action; the number of the trial that it starts or concerns.

        None for an enqueued point, and if nothing changes."""

    def extend(self, events: Sequence[str]) -> list[int | None]:
        """Log events of this process or another one; each is checked, and the events before an invalid one stay.

        For each the number of the trial that it starts or concerns; None for an enqueued point."""

    def replace(self, events: Sequence[str]) -> list[int | None]:
        """Replace the whole log by these events; if one is invalid, keep the log. The numbers are as in `extend`."""

    def events(self, start: int, end: int | None = None) -> list[str]:
        """The events from number ``start`` up to, but not including, number ``end``, as JSON; by default to the end of
        the log."""

    def n_events(self) -> int: ...
    def recommend(
        self,
        context: list[float] | None,
        now: float | None,
        feasible: _Feasible | None = None,
    ) -> tuple[_Place, float, float] | None:
        """(place, posterior mean, posterior std) of the best posterior mean.

        None while nothing is observed."""

    def surrogate(
        self, now: float | None, pending: bool, wall_time: float | None = None
    ) -> tuple[GaussianProcess, float, float, float] | None:
        """(model, mean, scale, log slope): the posterior of the targets over (x, context) rows.

        A target of 0 is the prior mean of f. Targets are in units of scale; if bad values are compressed, this is the
        unit of good values. The log slope is Σ log d target/dy over the observed values.

        With ``pending`` it includes the rows that the pending policy adds, as for the next suggestion.
        None while nothing has been fitted."""

    def predict(
        self, points: NDArray[np.float64], now: float | None, pending: bool, wall_time: float | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Posterior mean and standard deviation of f at (x, context) rows; None if there is no posterior."""

    def acquisition(
        self,
        points: NDArray[np.float64],
        context: list[float] | None,
        now: float | None,
        wall_time: float | None = None,
        feasible: _Feasible | None = None,
    ) -> NDArray[np.float64] | None:
        """The acquisition that the next suggestion would maximise, at points (n, width) and in units of f.

        None without a model, and while nothing is observed."""

    def leave_one_out(
        self, now: float | None, wall_time: float | None = None
    ) -> tuple[list[int], NDArray[np.float64], NDArray[np.float64]] | None:
        """(trial numbers, mean, std) of the value of each row of the model, predicted from all the others.

        The std includes the noise. None without a model, and while nothing is observed."""

    def status(self) -> str | None:
        """The status of a strategy that works in rounds, as JSON; None for other strategies."""

    def now(self, now: float | None) -> float:
        """The time on the optimizer's clock."""

    def trial(self, number: int) -> TrialRecord: ...
    def numbers(self, state: str | None) -> list[int]:
        """Trial numbers in a state ("pending", "observed", "failed", "abandoned"), or all of them."""

    def best(self) -> int | None:
        """Number of the trial with the largest value at the highest fidelity observed."""

    def __len__(self) -> int: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(data: bytes) -> Optimizer: ...

@final
class GaussianProcess:
    """A Gaussian process with zero prior mean and fixed hyperparameters until ``optimize``.

    ``kernel`` is "matern52" (None), "matern32", "matern12", "squared_exponential" or "linear"; ``lengthscale`` a number
    (None is 1) or one per column;
    ``variance`` the signal variance; ``noise`` the noise *variance*."""

    def __new__(
        cls,
        kernel: str | None = None,
        lengthscale: float | Sequence[float] | NDArray[np.float64] | None = None,
        variance: float = 1.0,
        noise: float = 1e-6,
    ) -> GaussianProcess: ...
    def fit(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> None:
        """Condition on the rows of x (n, d) and targets y (n,), in place of the earlier rows."""

    def append(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> None:
        """Condition on further rows at O(n²) each."""

    def predict(self, z: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Posterior mean and standard deviation of f (without noise) at the rows of z."""

    def predict_gradient(self, z: NDArray[np.float64]) -> tuple[float, float, NDArray[np.float64], NDArray[np.float64]]:
        """(mean, std, d mean / dz, d std / dz) at one point z (d,)."""

    def sample(self, z: NDArray[np.float64], n: int, seed: int) -> NDArray[np.float64]:
        """n exact joint draws of f at the rows of z, as a (n, N) array."""

    def log_marginal_likelihood(self) -> float: ...
    def log_marginal_likelihood_gradient(self) -> NDArray[np.float64]:
        """With respect to (log lengthscales…, log variance, log noise)."""

    def optimize(self, n_restarts: int = 8, seed: int = 0, priors: bool = True) -> None:
        """Set the hyperparameters to the best of several L-BFGS-B runs on the evidence (with the priors: MAP)."""

    @property
    def kernel(self) -> str: ...
    @property
    def lengthscale(self) -> NDArray[np.float64]: ...
    @property
    def variance(self) -> float: ...
    @property
    def noise(self) -> float: ...
    @property
    def jitter(self) -> float:
        """The jitter added to the diagonal so that the factorisation succeeded."""

    @property
    def x(self) -> NDArray[np.float64]: ...
    @property
    def y(self) -> NDArray[np.float64]:
        """Targets of the rows; for rows that are hallucinated, the posterior mean."""

    @property
    def n_observed(self) -> int:
        """The number of rows with data; the rows after them belong to pending trials."""

@final
class Acquisition:
    """An acquisition on a fixed posterior: call it on the rows of an array."""

    @staticmethod
    def upper_confidence_bound(gp: GaussianProcess, nu: float) -> Acquisition: ...
    @staticmethod
    def log_expected_improvement(gp: GaussianProcess, incumbent: float) -> Acquisition: ...
    @staticmethod
    def thompson(gp: GaussianProcess, nu: float = 1.0, n_features: int = 1024, seed: int = 0) -> Acquisition: ...
    def __call__(self, z: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def gradient(self, z: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]: ...
    def maximize(self, domain: Domain, seed: int = 0) -> tuple[NDArray[np.float64], int | None, float]:
        """(point, candidate index or None, value) of the largest value found on the domain."""
