"""The interface of a log: `_core.Optimizer` has it, and so has the log that studies share."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from belated._core import Action, GaussianProcess, TrialRecord
from belated.space.space import Location

Array = NDArray[np.float64]

# For rows of encoded points, whether each satisfies the constraints.
Feasible = Callable[[Array], NDArray[np.bool_]]


class Report(NamedTuple):
    """What may come with a value, in the core's terms."""

    std: float | None = None
    cost: float | None = None
    duration: float | None = None
    # Where the trial was really run; None where it was started.
    place: Location | None = None
    # The user's attributes, as JSON.
    attrs: str | None = None


class Log(Protocol):
    """A log of trials and the strategy that proposes the next one, in the core's terms."""

    def record(self, action: Action, now: float | None) -> int | None:
        """Log an action; the number of the trial that it starts or concerns, None where nothing is logged."""

    def recommend(
        self, context: Array | None, now: float | None, feasible: Feasible | None = None
    ) -> tuple[Array, int | None, float, float] | None:
        """(point, candidate index, mean, std) of the best posterior mean; None while nothing is observed."""

    def predict(self, points: Array, now: float | None, pending: bool) -> tuple[Array, Array] | None:
        """Posterior mean and standard deviation of f; None while nothing is observed."""

    def acquisition(
        self, points: Array, context: Array | None, now: float | None, *, feasible: Feasible | None = None
    ) -> Array | None:
        """The acquisition of the next suggestion; None while nothing is observed."""

    def surrogate(self, now: float | None, pending: bool) -> tuple[GaussianProcess, float, float, float] | None:
        """(model, mean, scale, log slope), as the core has them; None while nothing is observed."""

    def leave_one_out(self, now: float | None) -> tuple[list[int], Array, Array] | None:
        """(trial numbers, mean, std) of values predicted from all others; None while nothing is observed."""

    def now(self, now: float | None) -> float:
        """The time on the optimizer's clock."""

    def trial(self, number: int) -> TrialRecord:
        """A trial as it stands."""

    def numbers(self, state: str | None) -> list[int]:
        """The numbers of the trials in a state, or of all."""

    def best(self) -> int | None:
        """The number of the trial with the largest value at the highest fidelity observed."""

    def n_events(self) -> int:
        """The length of the log."""

    def __len__(self) -> int:
        """The number of trials."""
