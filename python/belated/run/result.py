"""The result of a run: the trials that it started, and the best of all that its optimizer has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from belated.optimizers.names import AttributeHints
from belated.optimizers.optimizer import Optimizer
from belated.optimizers.trial import Trial, html_table
from belated.study.study import Study

StopReason: TypeAlias = Literal["n_trials", "timeout", "interrupted", "stopped", "error"]


@dataclass(frozen=True, eq=False, repr=False)
class Result(AttributeHints):
    """The result of a run. It reads the optimizer, and so includes values that are reported to it later.

    Attributes
    ----------
    optimizer : Optimizer or Study
        To continue with, by `suggest` and `observe` or in another run.
    trials : list of Trial
        Those that the run started, in this order, whatever their state.
    stop_reason : {"n_trials", "timeout", "interrupted", "stopped", "error"}
        What ended it: all trials were done, the time was up, Ctrl-C, a callback, or an error.
    seconds : float
        How long it took.
    """

    optimizer: Optimizer | Study
    trials: list[Trial]
    stop_reason: StopReason
    seconds: float

    @property
    def best_trial_(self) -> Trial | None:
        """The trial with the best observed value, of all that the optimizer has; None before the first."""
        return self.optimizer.best_trial_

    @property
    def best_params_(self) -> Any:
        """The params (the row, for candidates) of the best observed value; None before the first."""
        return self.optimizer.best_params_

    @property
    def best_value_(self) -> float | None:
        """The best observed value; None before the first."""
        return self.optimizer.best_value_

    @property
    def n_failed_(self) -> int:
        """Number of the run's trials that failed."""
        return sum(trial.state == "failed" for trial in self.trials)

    @property
    def n_pending_(self) -> int:
        """Number of the run's trials that have no result so far, such as those that still ran at the timeout."""
        return sum(trial.state == "pending" for trial in self.trials)

    def recommend(self) -> Any:
        """The point of best posterior mean, to use where values are noisy; see `Optimizer.recommend`."""
        return self.optimizer.recommend()

    def _facts(self) -> dict[str, Any]:
        names = ("best_value_", "best_params_", "n_failed_", "n_pending_", "stop_reason")
        return {"n_trials": len(self.trials)} | {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        facts = [f"{name}={fact!r}" for name, fact in self._facts().items()]
        return f"Result({', '.join(facts)}, seconds={self.seconds:.3g})"

    def _repr_html_(self) -> str:
        return html_table(["Result", ""], (self._facts() | {"seconds": f"{self.seconds:.3g}"}).items())
