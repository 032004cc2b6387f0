"""The budget of a run, which is reduced by the costs of finished trials and the declared costs of running trials."""

import math

from belated.optimizers.optimizer import Optimizer
from belated.optimizers.trial import Trial
from belated.space.fidelity import Fidelity, PowerCost
from belated.study.study import Study


class Budget:
    """The total cost that the trials of a run may have.

    The cost of a trial is its reported cost. If a cost is not reported, the cost is the declared cost of the trial's
    fidelity, or 1.
    """

    def __init__(self, optimizer: Optimizer | Study, limit: float) -> None:
        self._optimizer = optimizer
        self._limit = limit
        # A tolerance for rounding errors, which occur in sums of costs such as 0.1.
        self._slack = 1e-9 * limit
        self._spent = 0.0
        # The declared costs of the running trials, by trial number.
        self._declared: dict[int, float] = {}

    @property
    def _fidelity(self) -> Fidelity | None:
        """The declared fidelity, which a revision of a study may change."""
        return self._optimizer._problem.fidelity

    def has_room(self, trial: Trial | None = None) -> bool:
        """Return whether the rest of the budget covers the declared cost of a trial (default: of the next suggestion).

        The declared costs of running trials are subtracted from the rest of the budget.
        """
        left = self._limit - self._spent - math.fsum(self._declared.values())
        if left <= self._slack:
            return False
        if left + self._slack >= self._highest_cost():
            return True
        if self._fidelity is None:
            return False
        return left + self._slack >= (self._next_cost() if trial is None else declared_cost(self._fidelity, trial))

    @property
    def used(self) -> float:
        """The share of the budget that ended trials have used, from 0 to 1."""
        return min(self._spent / self._limit, 1.0)

    def start(self, trial: Trial) -> None:
        """Reserve the declared cost of a trial."""
        self._declared[trial.number] = declared_cost(self._fidelity, trial)

    def end(self, trial: Trial) -> None:
        """Charge the cost of a trial that has ended."""
        del self._declared[trial.number]
        self._spent += charged_cost(self._fidelity, trial)

    def _highest_cost(self) -> float:
        """Return an upper bound on the declared cost of any trial."""
        cost = None if self._fidelity is None else self._fidelity.cost
        if cost is None:
            return 1.0
        return cost.full if isinstance(cost, PowerCost) else math.inf

    def _next_cost(self) -> float:
        """Return the declared cost of the next suggestion."""
        level = self._optimizer._next_fidelity()  # reads the revisions of other processes
        problem = self._optimizer._problem
        return 1.0 if problem.fidelity is None else problem.fidelity.cost_of(problem.fidelity_of(level))


def declared_cost(fidelity: Fidelity | None, trial: Trial) -> float:
    """Return the declared cost of a trial; 1 without a declared cost."""
    return 1.0 if fidelity is None else fidelity.cost_of(trial.fidelity)


def charged_cost(fidelity: Fidelity | None, trial: Trial) -> float:
    """Return the reported cost of a trial that has ended, or its declared cost if a cost was not reported."""
    return declared_cost(fidelity, trial) if trial.cost is None else trial.cost
