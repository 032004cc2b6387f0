"""The log of `BelatedPruner`: the curves of the trials of an Optuna study, to which each call adds only new data."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from belated.integrations.optuna_log import OptunaLog, Start
from belated.optimizers.curve import Curve, Stopping
from belated.optimizers.optuna_outcomes import result_beside_curve
from belated.optimizers.random_search import RandomSearch
from belated.study.from_optuna import Withdrawn
from belated.study.optuna_reports import check_last_step, log_reports, reports_of


class _LogWithoutPoints(OptunaLog):
    """A log for rules that only compare values. All trials have the same point, so they may have any parameters."""

    def _read(self, trial: Any) -> Start:
        return Start(trial.number, ("added", (0.5,), None), result_beside_curve(trial), None, None, None, None)


class PrunerLog:
    """The curves of the trials of a study.

    The decisions of a rule do not depend on the order of the reports. Therefore the log is not rebuilt if reports or
    results arrive, unlike the log of the sampler.

    Parameters
    ----------
    log : OptunaLog
        An empty log.
    rule : Stopping
        The rule that stops trials.
    """

    def __init__(self, log: OptunaLog, rule: Stopping) -> None:
        assert log.optimizer.curve is not None
        self._log, self._curve, self._rule = log, log.optimizer.curve, rule
        self._shift = 0
        self._begin()

    @classmethod
    def without_points(cls, curve: Curve, direction: Any, rule: Stopping) -> "PrunerLog":
        """Return a log for a rule that only compares values."""
        optimizer = RandomSearch({"unused": (0.0, 1.0)}, direction=direction, seed=0, curve=curve)
        return cls(_LogWithoutPoints(optimizer), rule)

    def _begin(self) -> None:
        self._log._core = self._log.optimizer._new_core(self._rule)
        self._places: dict[int, int] = {}  # number in Optuna → number in the log
        self._ended: set[int] = set()
        self._stopped: set[int] = set()
        self._withdrawn: set[int] = set()
        self._known: defaultdict[int, set[int]] = defaultdict(set)  # number in Optuna → reported steps of Optuna

    def withdraw(self, withdrawn: dict[int, Withdrawn]) -> None:
        """Set the withdrawn trials of the study, whose curves the rule ignores."""
        self._log.withdrawn = withdrawn

    def stops(self, trial: Any, trials: Sequence[Any]) -> bool:
        """Return whether the rule stops a trial. `trials` are the trials of the study.

        The rule decides after each new report of the trial, because an objective may ask only after some reports. Once
        the rule has stopped the trial, all further calls return True.

        Raises
        ------
        InvalidSetting
            A trial has reported a step beyond the curve.
        """
        others = [each for each in trials if each.number not in self._ended and each.number != trial.number]
        # See `shift_of`.
        if not self._shift and any(0 in each.intermediate_values for each in (*others, trial)):
            self._shift = 1
            self._begin()
            return self.stops(trial, trials)
        for each in others:
            self._add(each)
        for number in self._ended.intersection(self._log.withdrawn) - self._withdrawn:
            withdrawn = self._log.withdrawn[number]
            self._log.log_withdrawal(self._places[number], withdrawn.reason, withdrawn.at)
            self._withdrawn.add(number)
        place = self._start(trial)
        if place is None:
            return False
        new, core = self._new_reports(trial), self._log._core
        if not new and core.ending(place, None):
            self._stopped.add(trial.number)
        for report in new:
            log_reports(core, place, self._shift, [report], None)
            if core.ending(place, None):
                self._stopped.add(trial.number)
        return trial.number in self._stopped

    def _start(self, trial: Any) -> int | None:
        """Return the number of a trial in the log, or None if its point is unknown."""
        place = self._places.get(trial.number)
        if place is None:
            start = self._log._start_of(trial)
            if start is not None:
                self._log._log(start.step)
                place = self._places[trial.number] = len(self._places)
        return place

    def _add(self, trial: Any) -> None:
        """Log the new data of a trial."""
        place = self._start(trial)
        if place is None:
            return
        log_reports(self._log._core, place, self._shift, self._new_reports(trial), None)
        if trial.state.is_finished():
            state, value, error = result_beside_curve(trial)
            self._log._log((state, place, value, error, self._log._on_clock(trial.datetime_complete)))
            self._ended.add(trial.number)

    def _new_reports(self, trial: Any) -> list[tuple[int, float | None]]:
        known = self._known[trial.number]
        if len(trial.intermediate_values) <= len(known):
            return []
        new = [report for report in reports_of(trial) if report[0] not in known]
        check_last_step(self._curve, self._shift, trial.number, new[-1][0])
        known.update(step for step, _ in new)
        return new
