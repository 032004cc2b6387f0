"""The budget of a run: the costs of its trials, and the declared costs of the running ones."""

import math

from belated.optimizers.optimizer import Optimizer
from belated.optimizers.trial import Trial
from belated.space.fidelity import Fidelity, PowerCost
from belated.study.study import Study


class Budget:
    """The sum that a run may spend; a trial costs its reported cost, else the declared cost of its fidelity, else 1."""

    def __init__(self, optimizer: Optimizer | Study, limit: float) -> None:
        self._optimizer = optimizer
        self._fidelity = optimizer._problem.fidelity
        self._limit = limit
        # Sums of costs such as 0.1 may be off by rounding.
        self._slack = 1e-9 * limit
        self._spent = 0.0
        # The declared costs of running trials, by number.
        self._declared: dict[int, float] = {}

    def has_room(self, trial: Trial | None = None) -> bool:
        """Whether the declared cost of a trial (by default the next one) fits, in addition to all running trials."""
        left = self._limit - self._spent - math.fsum(self._declared.values())
        if left <= self._slack:
            return False
        if left + self._slack >= self._highest_cost():
            return True
        if self._fidelity is None:
            return False
        return left + self._slack >= (self._next_cost() if trial is None else declared_cost(self._fidelity, trial))

    def start(self, trial: Trial) -> None:
        """Reserve the declared cost of a trial."""
        self._declared[trial.number] = declared_cost(self._fidelity, trial)

    def end(self, trial: Trial) -> None:
        """Charge a trial that has ended."""
        declared, reported = self._declared.pop(trial.number), trial.cost
        self._spent += declared if reported is None else reported

    def _highest_cost(self) -> float:
        """Return an upper bound on the declared cost of any trial."""
        if self._fidelity is None or self._fidelity.cost is None:
            return 1.0
        return self._fidelity.cost.full if isinstance(self._fidelity.cost, PowerCost) else math.inf

    def _next_cost(self) -> float:
        """Return the declared cost of the trial that would be suggested now."""
        assert self._fidelity is not None
        fidelity = self._optimizer._problem.fidelity_of(self._optimizer._next_fidelity())
        return self._fidelity.cost_of(fidelity)


def declared_cost(fidelity: Fidelity | None, trial: Trial) -> float:
    """Return the declared cost of a trial; 1 if none is declared."""
    return 1.0 if fidelity is None else fidelity.cost_of(trial.fidelity)
