"""The budget of a run, with the costs of finished trials and the declared costs of running trials."""

import math

from belated.optimizers.optimizer import Optimizer
from belated.optimizers.trial import Trial
from belated.space.fidelity import Fidelity, PowerCost
from belated.study.study import Study


class Budget:
    """The total cost that the trials of a run may have.

    The cost of a trial is its reported cost. Without a report, it is the declared cost of its fidelity, or 1.
    """

    def __init__(self, optimizer: Optimizer | Study, limit: float) -> None:
        self._optimizer = optimizer
        self._fidelity = optimizer._problem.fidelity
        self._limit = limit
        # A tolerance for rounding errors in sums of costs such as 0.1.
        self._slack = 1e-9 * limit
        self._spent = 0.0
        # The declared costs of the running trials, by trial number.
        self._declared: dict[int, float] = {}

    def has_room(self, trial: Trial | None = None) -> bool:
        """Return whether the rest of the budget covers the declared cost of a trial, by default of the next suggestion.

        The declared costs of running trials are subtracted from the rest.
        """
        left = self._limit - self._spent - math.fsum(self._declared.values())
        if left <= self._slack:
            return False
        left += self._slack
        # The next suggestion is asked for its fidelity only if its cost can exceed the rest.
        if self._fidelity is None or self._fidelity.cost is None:
            return left >= 1.0
        if isinstance(self._fidelity.cost, PowerCost) and left >= self._fidelity.cost.full:
            return True
        if trial is not None:
            return left >= declared_cost(self._fidelity, trial)
        return left >= self._fidelity.cost_of(self._fidelity.from_number(self._optimizer._next_fidelity()))

    def start(self, trial: Trial) -> None:
        """Reserve the declared cost of a trial."""
        self._declared[trial.number] = declared_cost(self._fidelity, trial)

    def end(self, trial: Trial) -> None:
        """Charge the cost of a trial that has ended."""
        declared, reported = self._declared.pop(trial.number), trial.cost
        self._spent += declared if reported is None else reported


def declared_cost(fidelity: Fidelity | None, trial: Trial) -> float:
    """Return the declared cost of a trial; 1 without a declared cost."""
    return 1.0 if fidelity is None else fidelity.cost_of(trial.fidelity)
