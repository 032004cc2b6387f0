"""Callbacks that end a run if results do not improve, or if a value is reached."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from belated._core import InvalidSetting
from belated.optimizers.outcomes import Record
from belated.optimizers.trial import Trial
from belated.optimizers.values import checked
from belated.short_repr import short_repr
from belated.space.arguments import whole_number

if TYPE_CHECKING:
    from belated.optimizers.optimizer import Optimizer
    from belated.study.study import Study


class StopRun(Exception):
    """An exception that callbacks raise to end the run; `maximize` then returns the result so far."""


class Stopper(ABC):
    """The base class of callbacks that end a run. It helps type checkers infer the type of a list of callbacks."""

    @abstractmethod
    def __call__(self, optimizer: Optimizer | Study, trial: Trial) -> None:
        """Raise `StopRun` to end the run after this trial."""


class NoImprovement(Stopper):
    """A callback that ends a run after n consecutive results that do not improve the best value.

    Failed trials do not count as results. A better value that another process of the study reports is also an
    improvement. Each run starts its own count. If outcomes were declared, the best value is the best value within the
    bounds, and a run in which no trial lies within the bounds ends after n results. Trials whose objective or bounded
    outcomes are missing do not count. With several objectives, a result is an improvement if it enters the front
    `pareto_` with values that no earlier trial of the front has.

    Parameters
    ----------
    n : int
        The number of results, at least 1.

    Raises
    ------
    InvalidSetting
        n is invalid.

    Examples
    --------
    >>> import belated as bl
    >>> result = bl.maximize(lambda p: 0.0, {"x": (0.0, 1.0)}, n_trials=100, callbacks=[bl.NoImprovement(5)], seed=0)
    >>> result.stop_reason, len(result.trials)
    ('stopped', 6)
    """

    def __init__(self, n: int) -> None:
        number = whole_number(n)
        if number is None or number < 1:
            raise InvalidSetting(f"n={short_repr(n)} is not usable: pass an integer >= 1")
        self.n = number
        # The best value, or the values in the front; None before the first result within the bounds.
        self._best: Any = None
        self._since = 0

    def __call__(self, optimizer: Optimizer | Study, trial: Trial) -> None:
        """Raise `StopRun` if this is the n-th consecutive result without an improvement."""
        best, problem = optimizer._best_trials(), optimizer._problem
        is_incomplete = any(not isinstance(problem.outcomes[name], Record) for name in trial.missing)
        values = [trial.values.get(name) for name in problem.front] or [trial.value]
        if None in values or is_incomplete:
            return
        first, before = self._best is None, self._best
        if problem.front:
            found = {tuple(values[name] for name in problem.front) for values in (each.values for each in best)}
            self._best = found or None
            improved = trial in best if first else bool(found - before)
        else:
            self._best = best[0].value if best else None
            improved = trial in best if first else self._best != before
        self._since = 0 if improved else self._since + 1
        if self._since >= self.n:
            raise StopRun(f"no improvement for {self.n} results")

    def __repr__(self) -> str:
        return f"NoImprovement({self.n})"


class ValueReached(Stopper):
    """A callback that ends a run when the best value is at least as good as `value`.

    The best value is `best_value_`. If a fidelity was declared, `best_value_` is the best value at the highest fidelity
    observed so far. With several objectives, write a callback that raises `StopRun` if `hypervolume` is large enough.

    Parameters
    ----------
    value : float
        A value in units of f. A run that maximizes ends when ``best_value_ >= value``; a run that minimizes ends when
        ``best_value_ <= value``.

    Raises
    ------
    InvalidSetting
        The value is not one finite number, or there are several objectives.

    Examples
    --------
    >>> import belated as bl
    >>> stop = bl.ValueReached(0.01)
    >>> result = bl.minimize(lambda p: p["x"] ** 2, {"x": (-1.0, 1.0)}, n_trials=100, callbacks=[stop], seed=0)
    >>> result.stop_reason, result.best_value_ <= 0.01
    ('stopped', True)
    """

    def __init__(self, value: float) -> None:
        self.value: float = checked(value, float, "value")

    def __call__(self, optimizer: Optimizer | Study, trial: Trial) -> None:
        """Raise `StopRun` if the best value is good enough."""
        self.check(optimizer)
        best = optimizer.best_value_
        sign = -1 if optimizer.direction == "minimize" else 1
        if best is not None and sign * best >= sign * self.value:
            raise StopRun(f"the value {best!r} reached {self.value!r}")

    def check(self, optimizer: Optimizer | Study) -> None:
        """Raise InvalidSetting if the optimizer has several objectives."""
        front = optimizer._problem.front
        if front:
            raise InvalidSetting(
                f"{self!r} needs one objective, and {front} are objectives: pass a callback that raises bl.StopRun "
                "when optimizer.hypervolume(reference) is large enough"
            )

    def __repr__(self) -> str:
        return f"ValueReached({self.value!r})"
