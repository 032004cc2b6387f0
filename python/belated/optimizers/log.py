"""The interface of a log, which `_core.Optimizer` and the shared log of studies implement."""

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from belated._core import Action, DelayDistribution, Draft, DurationModel, GaussianProcess, TrialRecord
from belated.optimizers.fixed import Fixed
from belated.space.space import Place

Array = NDArray[np.float64]

# A function that returns whether the constraints hold at each point. A point is a list of the numbers of all
# parameters.
Feasible = Callable[[list[list[float | None]]], NDArray[np.bool_]]


# The limit that ends a run, and the share of the limit that has been used, from 0 to 1.
Limit: TypeAlias = tuple[Literal["time", "cost"], float]


class Log(Protocol):
    """A log of trials, and the strategy that suggests the next trial. Data are in the form that the core takes."""

    def validate(self, action: Action, time: float | None) -> Draft | None:
        """Return the event of an action; None if the log would not change.

        Here and below, `time` is the wall-clock time in seconds.
        """

    def expected(
        self, number: int, outcome: int | None, time: float | None, fits: bool = False
    ) -> tuple[float, float] | None:
        """Return the interval in which a value of an outcome of a trial without this value is expected, or None.

        If `fits`, the model is fitted if necessary; otherwise, only a model that is at hand is used.
        """

    def recommend(
        self,
        context: list[float] | None,
        time: float | None,
        feasible: Feasible | None = None,
        n: int = 1,
        fixed: Fixed | None = None,
    ) -> list[tuple[Place, float, float]]:
        """Return (place, mean, std) for up to n distinct recommended points with the fixed values, best first."""

    def predict(
        self, points: Array, time: float | None, pending: bool, outcome: int | None = None
    ) -> tuple[Array, Array] | None:
        """Return the posterior mean and standard deviation of f; None before the first value."""

    def feasibility(self, points: Array, time: float | None) -> Array | None:
        """Return the probability that all outcomes lie within their bounds; None without a model."""

    def acquisition(
        self, points: Array, context: list[float] | None, time: float | None, *, feasible: Feasible | None = None
    ) -> Array | None:
        """Return the acquisition at these points, as the next suggestion uses it; None before the first value."""

    def surrogate(
        self, time: float | None, pending: bool, outcome: int | None = None
    ) -> tuple[GaussianProcess, float, float, float] | None:
        """Return (model, mean, scale, log slope), as in the core; None before the first value."""

    def forecast_value(self, number: int, time: float | None) -> tuple[float, float] | None:
        """Return the mean and std of the value at the last step of a running or stopped trial, or None."""

    def leave_one_out(self, time: float | None, outcome: int | None = None) -> tuple[list[int], Array, Array] | None:
        """Return (trial numbers, mean, std) of leave-one-out predictions; None before the first value."""

    def durations(self, time: float | None) -> DurationModel | None:
        """Return the model of durations; None if fewer than two positive durations are known."""

    def delays(
        self, time: float | None, outcome: int | None = None, in_wall_time: bool = False
    ) -> tuple[float, DelayDistribution, dict[int, float]]:
        """Return the time on the clock, the delay distribution, and the ages of the trials in flight by number.

        If `in_wall_time` is True, all times are wall-clock times.
        """

    def arrivals(self, in_wall_time: bool) -> tuple[Array, Array]:
        """Return the starts and ends of the suggested trials that were observed; a time that is not known is NaN."""

    def lateness(self, time: float) -> tuple[DelayDistribution, list[int]]:
        """Return the delay distribution in wall-clock time, and the numbers of the pending trials that are late and of
        the observed trials that were late when their result arrived."""

    def window(self) -> float | None:
        """Return the time for which a pending trial counts as arriving, on the clock; None without a limit."""

    def now(self, time: float | None) -> float:
        """Return the time on the optimizer's clock."""

    def trial(self, number: int) -> TrialRecord:
        """Return the record of a trial in its current state."""

    def numbers(self, state: str | None) -> list[int]:
        """Return the numbers of the trials in a state, or of all trials if `state` is None."""

    def ending(self, number: int, time: float | None) -> Action | None:
        """Return the action that ends the evaluation of a trial after its last report; None if the trial continues."""

    def next_fidelity(self, time: float | None, feasible: Feasible | None) -> float | None:
        """Return the fidelity of the next suggestion; None without fidelities."""

    def status(self, time: float | None) -> str | None:
        """Return the state of the strategy (rounds or trees) as JSON; None if the strategy does not have a state."""

    def best_first(self) -> list[int]:
        """Return the trials that `best` may return, by decreasing fidelity and with the best value first."""

    def best(self, outside: bool = False) -> int | None:
        """Return the number of the trial with the best value at the highest observed fidelity; None without values.

        Trials that were run outside the domain count only if `outside` is True.
        """

    def pareto(self, excluded: Sequence[int]) -> list[int]:
        """Return the numbers of the trials that no other trial dominates, except for the excluded trials."""

    def hypervolume(self, numbers: Sequence[int], reference: Sequence[float]) -> float:
        """Return the hypervolume of these trials above a reference, which has a value for each objective."""

    def reference(self, numbers: Sequence[int]) -> list[float | None]:
        """Return the declared or computed reference of each objective for the hypervolume of these trials, which must
        be a front; None if it was not declared and there are no trials."""

    def contradiction(self, numbers: Sequence[int]) -> tuple[int | None, int, int] | None:
        """Return the first of these trials whose exact value differs from another exact value at the same point: the
        position of the outcome, if outcomes are declared, and the numbers of both trials; None without such a trial."""

    def n_events(self) -> int:
        """Return the number of events in the log."""

    def events(self, start: int, end: int | None = None) -> list[str]:
        """Return the events from number `start` to number `end` (exclusive), as JSON."""

    def __len__(self) -> int:
        """Return the number of trials."""
