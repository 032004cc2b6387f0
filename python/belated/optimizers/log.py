"""The interface of a log, which `_core.Optimizer` and the shared log of studies both have."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from belated._core import Action, GaussianProcess, TrialRecord
from belated.space.space import Place

Array = NDArray[np.float64]

# Takes points, each with the numbers of all parameters; returns, for each, whether it satisfies the constraints.
Feasible = Callable[[list[list[float | None]]], NDArray[np.bool_]]


class Report(NamedTuple):
    """The facts that may come with a value, in the core's terms."""

    std: float | None = None
    cost: float | None = None
    duration: float | None = None
    # The point that was really run; None if it is the point where the trial was started.
    place: Place | None = None
    # The user's attributes, as JSON.
    attrs: str | None = None


class Log(Protocol):
    """A log of trials and the strategy that proposes the next one, in the core's terms."""

    def record(self, action: Action, now: float | None) -> int | None:
        """Log an action; return the number of the trial that it starts or concerns, None if nothing is logged."""

    def recommend(
        self, context: list[float] | None, now: float | None, feasible: Feasible | None = None
    ) -> tuple[Place, float, float] | None:
        """Return (place, mean, std) of the best posterior mean; None while nothing is observed."""

    def predict(self, points: Array, now: float | None, pending: bool) -> tuple[Array, Array] | None:
        """Return posterior mean and standard deviation of f; None while nothing is observed."""

    def acquisition(
        self, points: Array, context: list[float] | None, now: float | None, *, feasible: Feasible | None = None
    ) -> Array | None:
        """Return the acquisition of the next suggestion; None while nothing is observed."""

    def surrogate(self, now: float | None, pending: bool) -> tuple[GaussianProcess, float, float, float] | None:
        """Return (model, mean, scale, log slope), as in the core; None while nothing is observed."""

    def leave_one_out(self, now: float | None) -> tuple[list[int], Array, Array] | None:
        """Return (trial numbers, mean, std), each value predicted from all others; None while nothing is observed."""

    def now(self, now: float | None) -> float:
        """The time on the optimizer's clock."""

    def trial(self, number: int) -> TrialRecord:
        """Return a trial in its present state."""

    def numbers(self, state: str | None) -> list[int]:
        """The numbers of the trials in a state, or of all."""

    def best(self) -> int | None:
        """The number of the trial with the largest value at the highest fidelity observed."""

    def n_events(self) -> int:
        """The length of the log."""

    def __len__(self) -> int:
        """The number of trials."""
