"""The result of a run, with its trials and its optimizer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from belated.optimizers.optimizer import Optimizer
from belated.optimizers.trial import Trial, html_table, trials_html
from belated.optimizers.trials import Reading
from belated.run.budget import charged_cost
from belated.short_repr import short_repr
from belated.study.study import Study

StopReason: TypeAlias = Literal["n_trials", "timeout", "budget", "interrupted", "stopped", "error"]


@dataclass(frozen=True, eq=False, repr=False)
class Result(Reading):
    """The result of a run.

    A result has the members of an optimizer that read trials and the model. Each access reads the current state of the
    optimizer, so values that are reported after the run are included. The members `trials`, `n_trials`, `pending`,
    `n_pending`, `n_failed` and `trials_dataframe` refer to the trials of the run. The other members (`best_value_`,
    `recommend`, `predict`, …) refer to all trials of the optimizer.

    Attributes
    ----------
    optimizer : Optimizer or Study
        The optimizer of the run. To continue the search, call its `suggest` and `observe`, or pass it to another run.
    trials : list of Trial
        The trials that the run started or restarted, in this order and in any state.
    stop_reason : {"n_trials", "timeout", "budget", "interrupted", "stopped", "error"}
        The reason for the end of the run. "n_trials": all trials have ended. "timeout": the timeout was reached.
        "budget": the budget is spent. "interrupted": Ctrl-C was pressed. "stopped": a callback raised `StopRun`.
        "error": another exception was raised.
    seconds : float
        The duration of the run.
    per : {"trial", "time", "cost"} or None
        `LogEI` maximised the improvement per unit of this resource; None for other acquisitions and optimizers. If both
        a timeout and a budget could end the run, it is the resource of which the larger share was used.
    """

    optimizer: Optimizer | Study
    _trials: list[Trial]
    stop_reason: StopReason
    seconds: float
    per: Literal["trial", "time", "cost"] | None = None

    @property
    def _source(self) -> Optimizer | Study:
        return self.optimizer

    def _numbers(self, state: str | None) -> list[int]:
        return [trial.number for trial in self._trials if state is None or trial.state == state]

    @property
    def n_trials(self) -> int:
        """Number of trials of the run in any state."""
        return len(self._trials)

    @property
    def n_failed(self) -> int:
        """Number of trials of the run that failed."""
        return len(self._numbers("failed"))

    @property
    def n_pending(self) -> int:
        """Number of trials of the run that are pending."""
        return len(self._numbers("pending"))

    @property
    def cost(self) -> float:
        """Total cost of the observed, failed and stopped trials of the run, computed as for a budget.

        Trials of which only some outcomes are known also count.
        The cost of a trial is its reported cost. If a cost is not reported, the cost is the declared cost of the
        trial's fidelity, or 1.
        """
        ended = [trial for trial in self._trials if trial.state in ("observed", "failed", "stopped") or trial.values]
        return math.fsum(charged_cost(self.optimizer._problem.fidelity, trial) for trial in ended)

    def _facts(self) -> dict[str, Any]:
        best: dict[str, Any]
        if self._source._current_problem().front:
            best = {"pareto_": [trial.number for trial in self.pareto_]}
        else:
            best = {"best_value_": self.best_value_, "best_params_": self.best_params_}
        names = ("n_failed", "n_pending", "stop_reason")
        return {"n_trials": self.n_trials} | best | {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        # A front may have hundreds of trials.
        shown = {name: short_repr(fact) if name == "pareto_" else repr(fact) for name, fact in self._facts().items()}
        facts = [f"{name}={fact}" for name, fact in shown.items()]
        return f"Result({', '.join(facts)}, seconds={self.seconds:.3g})"

    def _repr_html_(self) -> str:
        facts = self._facts() | {"seconds": f"{self.seconds:.3g}"}
        best = self._best_trials()
        table = trials_html("Run", self._source._problem, self.trials, self.n_pending, best)
        return html_table(["Result", ""], facts.items()) + table
