"""The compiled core: optimizers and Gaussian processes on arrays.

Points are rows of float64 in *encoded* coordinates (see ``belated.space``); everything here maximises.
``now`` is the time on the optimizer's clock: seconds for ``clock="seconds"``, and None for
``clock="iterations"``, where the core itself counts the suggestions started.
"""

from collections.abc import Sequence
from typing import final

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
    "UnknownTrial",
    "AlreadyObserved",
    "NumericalError",
    "BelatedWarning",
    "defaults",
    "Domain",
    "Optimizer",
    "TrialRecord",
    "GaussianProcess",
    "Acquisition",
]
__version__: str

class BelatedError(Exception):
    """Base class of every error that belated raises on purpose."""

class InvalidSpace(BelatedError, ValueError):
    """A search space, candidate set or context space that cannot be searched."""

class InvalidSetting(BelatedError, ValueError):
    """An optimizer setting outside its documented range, or two that contradict each other."""

class InvalidValue(BelatedError, ValueError):
    """An observed value that is not one finite real number. The trial stays pending."""

class InvalidPoint(BelatedError, ValueError):
    """A point (or the parameters of one) that does not belong to the space."""

class InvalidContext(BelatedError, ValueError):
    """A context that is missing, undeclared or outside its space."""

class UnknownTrial(BelatedError, KeyError):
    """A trial number that this optimizer never gave out."""

class AlreadyObserved(BelatedError, ValueError):
    """A trial that has a value already; another value needs ``amend=True``."""

class NumericalError(BelatedError, ArithmeticError):
    """A covariance matrix that could not be factorised, even with jitter."""

class BelatedWarning(UserWarning):
    """Something went wrong that did not stop the optimizer."""

def defaults() -> str:
    """Every value that optimizers are set up with, by its class's name, with all its defaults, as JSON."""

@final
class Domain:
    """The set that suggestions come from."""

    @staticmethod
    def box(coordinates: str) -> Domain:
        """A box. A JSON list, one entry a coordinate: ``{"kind": "Continuous"}`` in [0, 1];
        ``{"kind": "Integer", "low": 1, "high": 5, "log": false}``, a grid in [0, 1];
        ``{"kind": "Categorical", "n": 3}``, one-hot over n columns."""

    @staticmethod
    def candidates(points: NDArray[np.float64]) -> Domain:
        """A finite domain: the rows of a (N, d) array."""

    @property
    def width(self) -> int:
        """Number of encoded columns of a point."""

@final
class TrialRecord:
    """One trial as the log knows it."""

    @property
    def number(self) -> int: ...
    @property
    def point(self) -> NDArray[np.float64]: ...
    @property
    def index(self) -> int | None: ...
    @property
    def given(self) -> list[float] | None:
        """The coordinates as the user gave them, one number for each named parameter."""

    @property
    def context(self) -> NDArray[np.float64]: ...
    @property
    def state(self) -> str: ...
    @property
    def value(self) -> float | None: ...
    @property
    def std(self) -> float | None: ...
    @property
    def cost(self) -> float | None: ...
    @property
    def fidelity(self) -> float | None: ...
    @property
    def attrs(self) -> str | None: ...
    @property
    def note(self) -> str | None:
        """What the strategy that suggested it wrote down."""

    @property
    def suggested_at(self) -> float: ...
    @property
    def observed_at(self) -> float | None: ...

@final
class Optimizer:
    """A log of trials and the strategy that proposes the next one.

    ``definition`` is a JSON object: ``context`` (coordinates as for ``Domain.box``), ``clock``, ``seed`` and
    ``strategy`` (``{"kind": "BayesOpt", …}`` with the settings that ``defaults`` lists)."""

    def __new__(cls, domain: Domain, definition: str) -> Optimizer: ...
    def suggest(self, n: int, context: NDArray[np.float64] | None, now: float | None) -> list[int]:
        """Start n trials; their numbers. Either all n are logged or none."""

    def propose(
        self,
        n: int,
        context: NDArray[np.float64] | None,
        now: float | None,
        wall_time: float | None = None,
        expires_after: float | None = None,
    ) -> list[str]:
        """The events, as JSON, that would start n trials; nothing is logged until they come back by ``extend``.

        ``wall_time`` is the time in seconds by which leases are judged, ``expires_after`` the length of new ones."""

    def validate_observe(
        self, number: int, value: float, now: float | None, amend: bool, std: float | None = None
    ) -> str | None:
        """The event that ``observe`` would log, as JSON; None where it would change nothing. Nothing is logged."""

    def validate_fail(self, number: int, now: float | None) -> str | None: ...
    def validate_abandon(self, number: int, now: float | None) -> str | None: ...
    def validate_add(
        self,
        point: NDArray[np.float64],
        index: int | None,
        given: Sequence[float] | None,
        context: NDArray[np.float64] | None,
        value: float | None,
        now: float | None,
        std: float | None = None,
    ) -> str | None: ...
    def validate_enqueue(
        self, point: NDArray[np.float64], index: int | None, given: Sequence[float] | None
    ) -> str | None: ...
    def extend(self, events: Sequence[str]) -> list[int | None]:
        """Log events, own or another's; each is checked, and those before a bad one stay.

        For each the number of the trial that it starts or concerns; None for an enqueued point."""

    def events(self, start: int) -> list[str]:
        """The log from event number ``start`` on, as JSON."""

    def n_events(self) -> int: ...
    def observe(self, number: int, value: float, now: float | None, amend: bool, std: float | None = None) -> None: ...
    def fail(self, number: int, now: float | None) -> None: ...
    def abandon(self, number: int, now: float | None) -> None: ...
    def add(
        self,
        point: NDArray[np.float64],
        index: int | None,
        given: Sequence[float] | None,
        context: NDArray[np.float64] | None,
        value: float | None,
        now: float | None,
        std: float | None = None,
    ) -> int: ...
    def enqueue(self, point: NDArray[np.float64], index: int | None, given: Sequence[float] | None) -> None: ...
    def recommend(
        self, context: NDArray[np.float64] | None, now: float | None
    ) -> tuple[NDArray[np.float64], int | None, float, float] | None:
        """(point, candidate index or None, posterior mean, posterior std) of the best posterior mean.

        None while nothing is observed."""

    def surrogate(
        self, now: float | None, pending: bool, wall_time: float | None = None
    ) -> tuple[GaussianProcess, float, float] | None:
        """(model, center, scale): the posterior of (f - center) / scale over (x, context) rows.

        With ``pending`` the rows that the pending policy adds are in it, as the next suggestion would see them.
        None while nothing has been fitted."""

    def predict(
        self, points: NDArray[np.float64], now: float | None, pending: bool, wall_time: float | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Posterior mean and standard deviation of f at (x, context) rows; None where there is no posterior."""

    def acquisition(
        self,
        points: NDArray[np.float64],
        context: NDArray[np.float64] | None,
        now: float | None,
        wall_time: float | None = None,
    ) -> NDArray[np.float64] | None:
        """The acquisition that the next suggestion would maximise, at points (n, width) and in units of f.

        None without a model, and while nothing is observed."""

    def leave_one_out(
        self, now: float | None, wall_time: float | None = None
    ) -> tuple[list[int], NDArray[np.float64], NDArray[np.float64]] | None:
        """(trial numbers, mean, std) of the value of each row of the model, predicted from all the others.

        The std includes the noise. None without a model, and while nothing is observed."""

    def now(self, now: float | None) -> float:
        """The time on the optimizer's clock."""

    def trial(self, number: int) -> TrialRecord: ...
    def numbers(self, state: str | None) -> list[int]:
        """Trial numbers in a state ("pending", "observed", "failed", "abandoned"), or all of them."""

    def best(self) -> int | None:
        """Number of the trial with the largest observed value."""

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
        """Condition on the rows of x (n, d) and targets y (n,), replacing what was there."""

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
        """What had to be added to the diagonal for the factorisation to succeed."""

    @property
    def x(self) -> NDArray[np.float64]: ...
    @property
    def y(self) -> NDArray[np.float64]:
        """Targets of the rows; for rows that are hallucinated, the posterior mean."""

    @property
    def n_observed(self) -> int:
        """Rows that hold data; those after them stand for pending trials."""

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
