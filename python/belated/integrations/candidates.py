"""The candidates of a search with cross-validation: what is fitted next, and what the optimizer is told of the scores.

A *candidate* is a trial of the optimizer; a *fit* is a candidate on one split of the data.
"""

import math
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from belated._core import BelatedError
from belated.integrations.distributions import DistributionSpace
from belated.optimizers.optimizer import Optimizer
from belated.optimizers.trial import Trial
from belated.study.study import Study

# What scikit-learn's `_fit_and_score` returns of one fit: scores, times, the error if there was one.
Outcome: TypeAlias = dict[str, Any]


class Fit(NamedTuple):
    """A fit, by the numbers of its candidate and of its split."""

    candidate: int
    split: int


@dataclass
class Candidate:
    """One candidate: its trial, the parameters' values, and the outcomes of splits that are there."""

    trial: Trial
    values: dict[str, Any]
    outcomes: dict[int, Outcome]


class Candidates(Sequence[Candidate]):
    """Candidates in the order in which they were chosen.

    Parameters
    ----------
    optimizer : Optimizer or Study
        What chooses them, maximising the mean score over splits.
    space : DistributionSpace
        What turns params into values.
    n_iter : int
        How many to choose.
    n_splits : int
        The number of fits of each.
    deadline : float
        When to stop choosing, in seconds of `time.monotonic`; the first one is chosen in any case.
    """

    def __init__(
        self, optimizer: Optimizer | Study, space: DistributionSpace, n_iter: int, n_splits: int, deadline: float
    ) -> None:
        self._optimizer = optimizer
        self._space = space
        self.n_iter = n_iter
        self._n_splits = n_splits
        self._deadline = deadline
        self._candidates: list[Candidate] = []
        self._waiting: deque[Fit] = deque()

    def __len__(self) -> int:
        return len(self._candidates)

    def __getitem__(self, number: Any) -> Any:
        return self._candidates[number]

    def next_fit(self) -> Fit | None:
        """The fit to do next, of a new candidate if those so far have none left; None where the search is over."""
        if not self._waiting:
            number = len(self)
            if number == self.n_iter or (number and time.monotonic() >= self._deadline):
                return None
            trial = self._optimizer.suggest()
            self._candidates.append(Candidate(trial, self._space.values(trial.params), {}))
            self._waiting.extend(Fit(number, split) for split in range(self._n_splits))
        return self._waiting.popleft()

    def take(self, fit: Fit, outcome: Outcome, objective: str | None) -> None:
        """Take in what came of a fit; `objective` is the metric to maximise, None where scores have no names."""
        candidate = self._candidates[fit.candidate]
        candidate.outcomes[fit.split] = outcome
        if len(candidate.outcomes) == self._n_splits:
            _report(candidate.trial, [candidate.outcomes[each] for each in range(self._n_splits)], objective)

    def outcomes(self) -> list[Outcome]:
        """The outcomes of all fits, split by split, candidate by candidate."""
        return [candidate.outcomes[split] for candidate in self for split in range(self._n_splits)]

    def values(self) -> list[dict[str, Any]]:
        """The parameters of each candidate."""
        return [candidate.values for candidate in self]

    def abandon_unfinished(self) -> None:
        """Tell the optimizer, which may be a study that lives on, of candidates that will never have a score."""
        for candidate in self:
            if len(candidate.outcomes) < self._n_splits:
                # This runs where another error is on its way.
                with suppress(BelatedError):
                    candidate.trial.abandon()


def _report(trial: Trial, outcomes: Sequence[Outcome], objective: str | None) -> None:
    """Report the mean score of a candidate, or its failure, to the optimizer."""
    duration = sum(outcome["fit_time"] + outcome["score_time"] for outcome in outcomes)
    value = float(np.mean([_score(outcome, objective) for outcome in outcomes]))
    if math.isfinite(value):
        trial.observe(value, duration=duration)
        return
    errors = [outcome["fit_error"] for outcome in outcomes if outcome["fit_error"]]
    last_line = errors[0].strip().splitlines()[-1] if errors else f"its mean score is {value}"
    trial.fail(error=last_line)


def _score(outcome: Outcome, objective: str | None) -> float:
    scores = outcome["test_scores"]
    # Of a failed fit there is one number for all metrics, where scoring is a function.
    return float(scores[objective] if isinstance(scores, dict) else scores)
