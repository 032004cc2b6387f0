"""Candidates of a search with cross-validation: choose the next fit, and report mean scores to the optimizer.

A *candidate* is a trial of the optimizer. A *fit* is a candidate on one split of the data.
"""

import math
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from belated._core import BelatedError
from belated.integrations.distributions import DistributionSpace
from belated.optimizers.optimizer import Optimizer
from belated.optimizers.tree import TreeSearch
from belated.optimizers.trial import Trial
from belated.study.study import Study
from belated.warn import warn

# The result of scikit-learn's `_fit_and_score` for one fit: the scores, the times, and the error if the fit failed.
FitResult: TypeAlias = dict[str, Any]
# The metric to maximise, the metrics of a front, or None if scores are not named.
Objective: TypeAlias = str | list[str] | None


class Fit(NamedTuple):
    """A fit, identified by the number of its candidate and the number of its split."""

    candidate: int
    split: int


@dataclass
class Candidate:
    """A candidate: its trial, the values of its parameters, and the results of the finished splits."""

    trial: Trial
    values: dict[str, Any]
    results: dict[int, FitResult]
    # The index of the space from which the candidate was chosen.
    space: int
    # If the search has a resource: the resource of the results.
    n_resources: int = 0


class SearchedSpace(NamedTuple):
    """A space, the optimizer that chooses candidates from it, and their number."""

    optimizer: Optimizer | Study
    space: DistributionSpace
    n_candidates: int


@dataclass
class Candidates:
    """Candidates in the order in which they were chosen.

    Parameters
    ----------
    spaces : sequence of SearchedSpace
        All candidates of a space are chosen before the candidates of the next space. The optimizers maximise the mean
        score over the splits.
    splits : sequence of (train, test)
        The indices of the samples of each split.
    deadline : float
        After this time, in seconds on the clock `time.monotonic`, candidates are not chosen. The first candidate is
        always chosen.
    made : list
        The candidates that were chosen so far.
    """

    spaces: Sequence[SearchedSpace]
    splits: Sequence[tuple[Any, Any]]
    deadline: float
    made: list[Candidate] = field(default_factory=list)
    _waiting: deque[Fit] = field(default_factory=deque)
    # The index of the space from which candidates are chosen, and the points that were chosen from it.
    _space: int = 0
    _chosen: list[Any] = field(default_factory=list)

    @property
    def n_iter(self) -> int:
        """The number of candidates of all spaces."""
        return sum(each.n_candidates for each in self.spaces)

    def next_candidate(self) -> int | None:
        """Choose the next candidate and return its number, or None if the search is over."""
        if self.made and time.monotonic() >= self.deadline:
            return None
        while self._space < len(self.spaces):
            optimizer, space, n_candidates = self.spaces[self._space]
            trial = self._new_trial(optimizer) if len(self._chosen) < n_candidates else None
            if trial is not None:
                self._chosen.append(trial._record.place)
                self.made.append(Candidate(trial, space.values(trial.params), {}, self._space))
                return len(self.made) - 1
            if len(self._chosen) < n_candidates:
                warn_few_points(len(self._chosen), n_candidates)
            self._space, self._chosen = self._space + 1, []
        return None

    def _new_trial(self, optimizer: Optimizer | Study) -> Trial | None:
        """Return a trial at a point that was not chosen before, or None if all points were chosen."""
        # An abandoned point is suggested again only after another result, or if all points were chosen or abandoned.
        for _ in range(len(self._chosen) + 1):
            trial = optimizer.suggest()
            # Repetitions are part of the algorithms for trees.
            if isinstance(optimizer._optimizer, TreeSearch) or trial._record.place not in self._chosen:
                return trial
            trial.abandon()
        return None

    def next_fit(self) -> Fit | None:
        """Return the next fit, or None if the search is over. If no fit is left, start a new candidate."""
        if not self._waiting:
            number = self.next_candidate()
            if number is None:
                return None
            self._waiting.extend(Fit(number, split) for split in range(len(self.splits)))
        return self._waiting.popleft()

    def take(self, fit: Fit, result: FitResult, objective: Objective) -> None:
        """Record the result of a fit. `objective` has the metrics to maximise, or is None if scores are not named."""
        candidate = self.made[fit.candidate]
        candidate.results[fit.split] = result
        if len(candidate.results) == len(self.splits):
            _report(candidate.trial, [candidate.results[each] for each in range(len(self.splits))], objective)

    def take_all(self, number: int, results: Sequence[FitResult], n_resources: int, objective: Objective) -> None:
        """Record the results of all splits of a candidate whose scores have been reported as a learning curve."""
        candidate = self.made[number]
        candidate.results, candidate.n_resources = dict(enumerate(results)), n_resources
        if candidate.trial._record.ended_early is None:
            _report(candidate.trial, results, objective)

    def results(self) -> list[FitResult]:
        """Return the results of all fits, ordered by split and then by candidate."""
        return [candidate.results[split] for candidate in self.made for split in range(len(self.splits))]

    def abandon_unfinished(self) -> None:
        """Abandon the trials of unfinished candidates, which would otherwise stay pending in a study."""
        for candidate in self.made:
            if len(candidate.results) < len(self.splits):
                # This code runs while another error is handled.
                with suppress(BelatedError):
                    candidate.trial.abandon()


def warn_few_points(n_points: int, n_candidates: int) -> None:
    """Warn that a space has fewer points than the candidates that were asked for."""
    warn(f"the space has {n_points} points, fewer than the {n_candidates} candidates: each point is evaluated once")


def _report(trial: Trial, results: Sequence[FitResult], objective: Objective) -> None:
    """Report the mean scores or the failure of a candidate to the optimizer; other metrics become attrs."""
    duration = sum(result["fit_time"] + result["score_time"] for result in results)
    names = objective if isinstance(objective, list) else [objective]
    values = {name: mean_score(results, name) for name in names}
    finite = {name: value for name, value in values.items() if math.isfinite(value)}
    if finite:
        scores = results[0]["test_scores"]
        others = [name for name in scores if name not in names] if isinstance(scores, dict) else []
        means = {name: mean_score(results, name) for name in others}
        attrs = {name: mean for name, mean in means.items() if math.isfinite(mean)}
        value: Any = finite if isinstance(objective, list) else finite[objective]
        trial.observe(value, duration=duration, attrs=attrs or None)
    if len(finite) < len(names):
        errors = [result["fit_error"] for result in results if result["fit_error"]]
        mean = next(value for name, value in values.items() if name not in finite)
        last_line = errors[0].strip().splitlines()[-1] if errors else f"its mean score is {mean}"
        trial.fail(error=last_line)


def mean_score(results: Sequence[FitResult], objective: str | None) -> float:
    """Return the mean of a metric over the splits. `objective` is None if scores are not named."""
    return float(np.mean([_score(result, objective) for result in results]))


def _score(result: FitResult, objective: str | None) -> float:
    scores = result["test_scores"]
    # If scoring is a function, a failed fit has a single number instead of a dict of metrics.
    return float(scores[objective] if isinstance(scores, dict) else scores)
