"""The log of an optimizer, derived from a study of Optuna.

Optuna's study is authoritative. The log is derived from the trials of the study, and is rebuilt when the trials
contradict it. A trial of Optuna does not contain all data of the log. The missing data are stored in a system attribute
of the trial when its point is suggested. The first item of this attribute is the event of belated's log: the point, and
the hyperparameters if they were fitted for this point. The second item is the trial number in the log for which the
point was proposed. The third item is the list of trials that did not have a result at that time. This list determines
an order of events on which all processes agree without comparing clocks:

* trials start in the order of their numbers;
* the result of a trial comes before the first later suggestion that used it; results that the same suggestion used come
  in the order of trial numbers.

A pruned trial is observed with an estimate of its final value. The attributes of the trial mark this value as imputed.
Estimates depend on all completed trials of the study. Each new result may therefore change the estimates; the log is
then rebuilt.

If the optimizer declares a curve, the log has the reports of all trials, and a pruned trial is stopped instead. The
system attribute then also has the number of reports of each trial without a result. The reports of a trial come before
the first later suggestion that used them, and before its end.

If trials have constraints, each constraint is an outcome of the optimizer, whose value must be at most 0. Each of
several objectives is an outcome, too. A note does not depend on the outcomes, so that trials that were suggested before
the first constraint was known stay suggested.

A finished trial of Optuna cannot change. A user attribute of the study therefore records that a trial was withdrawn,
and the number of trials at that time. The withdrawal comes before the start of the next trial.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from time import monotonic
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from belated import _core
from belated._core import Action, BelatedError, InvalidPoint
from belated.integrations.optuna_pruned import Curve, Stop, impute
from belated.optimizers.imported import ImportedTrial
from belated.optimizers.optimizer import Optimizer
from belated.optimizers.optuna_outcomes import (
    OptunaResult,
    constraint_values,
    error_of,
    further_values,
    result_beside_curve,
    results_of,
)
from belated.optimizers.outcomes import objectives
from belated.optimizers.report import as_number
from belated.space.space import Space
from belated.study.definition import definition_of
from belated.study.from_optuna import Withdrawn
from belated.study.optuna_reports import NO_REPORTS, Reports, log_reports, reports_of, shift_of

# The system attribute of a trial that records how it was suggested.
NOTE = "belated:suggested"

# The format of the attribute and of belated's events.
_FORMAT = 3

# A trial that lacks a point this number of seconds after it was first seen is not expected to get a point.
_SAMPLED_WITHIN = 60.0

# A step of the log: its kind and its arguments. New steps are compared with the steps that were derived earlier.
Step: TypeAlias = tuple[Any, ...]


class Start(NamedTuple):
    """The start of a trial, and its outcome."""

    number: int
    step: Step
    outcome: OptunaResult
    ended: float | None
    # The numbers of the trials that did not have a result when this trial was suggested; None if belated did not
    # suggest it.
    pending: frozenset[int] | None
    # The trial number in the log for which the point was proposed; None if belated did not suggest this trial.
    place: int | None
    # The data from which the final value of a pruned trial is estimated. None if the trial was not pruned, or if its
    # final value cannot be estimated.
    stop: Stop | None
    # The reports of the trial; none if the optimizer does not declare a curve.
    reports: Reports = NO_REPORTS
    # For each trial in `pending`: the number of its reports that were known when this trial was suggested.
    reported: Mapping[int, int] = MappingProxyType({})
    # The values of the outcomes after the first: further objectives and constraints. A missing value is None.
    others: tuple[float | None, ...] = ()


class OptunaLog:
    """The log that an optimizer would have if it had run the trials of an Optuna study.

    Parameters
    ----------
    optimizer : Optimizer
        The optimizer whose definition the log has. The trials are added to the log and not to this optimizer.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        assert isinstance(optimizer.domain, Space)
        self.space = optimizer.domain
        whole = definition_of(optimizer, complete=False)
        whole["problem"].pop("outcomes", None)
        del whole["stopping"]  # the default rule depends on the outcomes, and a sampler does not stop trials
        definition = json.dumps([_FORMAT, whole], sort_keys=True)
        # If the definition of the optimizer has changed, earlier notes belong to another model.
        self.definition = hashlib.sha256(definition.encode()).hexdigest()[:16]
        # The outcomes are the objectives, in Optuna's order, and the constraints. The first outcome is an objective.
        self._objectives = objectives(optimizer._problem.outcomes)
        self._others = list(optimizer._problem.outcomes)[1:]
        #: The withdrawn trials of the study, by number.
        self.withdrawn: dict[int, Withdrawn] = {}
        self._core = optimizer._new_core()
        self._steps: list[Step] = []
        # Finished trials do not change: number → (trial, start of the trial).
        self._finished: dict[int, tuple[Any, Start | None]] = {}
        # Times at which this process first saw a trial without a point: (number, start time on the trial's machine) →
        # seconds. The clocks of two machines are never compared.
        self._first_seen: dict[tuple[int, datetime | None], float] = {}

    def suggest(self, trial: Any, trials: Sequence[Any], stale_before: datetime | None) -> tuple[dict[str, Any], Any]:
        """Return a point for a trial, and the note to store with the trial.

        `trials` are the trials of the study. Running trials that started before `stale_before` do not count as pending.
        """
        others = [each for each in trials if each.number != trial.number]
        self._follow(self._derive(others, stale_before))
        # Other processes will suggest points for these trials. Draft these points in the same way, so that this trial
        # gets a different point.
        n_drafts = self._count_drafts(trial, others, stale_before)
        starts = [start for each in others if (start := self._start_of(each)) is not None]
        place, event = self._log_for(trial, others, stale_before)._choose(n_drafts, starts)
        pending = [each for each in others if each.state.name == "RUNNING" and not _is_stale(each, stale_before)]
        numbers = [each.number for each in pending]
        told = {"number": trial.number, "place": place, "pending": numbers, "event": event}
        if self.optimizer.curve is not None:
            told["reported"] = [len(each.intermediate_values) for each in pending]
        return self._params(event), {"definition": self.definition} | told

    def _log_for(self, trial: Any, others: Sequence[Any], stale_before: datetime | None) -> "OptunaLog":
        """Return the log from which a trial's point is chosen: this log, or a log of the trials with smaller numbers.

        A log of the trials with smaller numbers proposes a point for this trial and for each trial with a larger
        number. If the proposals for trials with larger numbers equal the points that these trials already have, this
        trial's proposal was reserved for it. Otherwise new results may have changed the proposals, and this trial's
        proposal may equal a point that is being evaluated. This log contains all points that are being evaluated.
        """
        ahead = [start for each in others if each.number > trial.number and (start := self._start_of(each)) is not None]
        places = [start.place for start in ahead if start.place is not None]
        if not ahead or len(places) < len(ahead):
            return self
        earlier = OptunaLog(self.optimizer)
        earlier._finished, earlier.withdrawn = self._finished, self.withdrawn
        earlier._follow(earlier._derive([each for each in others if each.number < trial.number], stale_before))
        first = len(earlier._core)
        proposed = [_point(event) for event in earlier._propose(max(places) - first + 1)]
        reserved = all(
            place >= first and proposed[place - first] == _point(start.step[1])
            for place, start in zip(places, ahead, strict=True)
        )
        return earlier if reserved else self

    def _choose(self, n_drafts: int, starts: Sequence[Start]) -> tuple[int, str]:
        """Return the number in the log and the event of the next trial, after `n_drafts` trials of other processes.

        The number may already be taken if a smaller number was reserved for a trial that never got a point.
        """
        first = len(self._core)
        taken = {
            (each.place, _point(each.step[1])) for each in starts if each.place is not None and each.place >= first
        }
        place = first + n_drafts
        while True:
            *_, event = self._propose(place - first + 1)
            if (place, _point(event)) not in taken:
                return place, event
            place += 1

    def _propose(self, n: int) -> list[str]:
        """Return the events of the next n trials, as one batch."""
        time, feasible = self.optimizer._problem.wall_time(), self.optimizer._constraints
        return [draft.text for draft in self._core.propose(n, None, time, feasible=feasible)]

    def _params(self, event: str) -> dict[str, Any]:
        """Return the point that an event suggests."""
        return self.space.params_at(list(_point(event)))

    def _count_drafts(self, trial: Any, others: Sequence[Any], stale_before: datetime | None) -> int:
        """Count the trials that have smaller numbers, started recently, and do not have a point yet.

        A trial with only some of its parameters also counts, because the database may be read during a write.
        """
        now = monotonic()
        n = 0
        for each in others:
            if each.state.name == "RUNNING" and self._start_of(each) is None:
                # The number alone does not identify a trial, because a sampler may serve several studies.
                age = now - self._first_seen.setdefault((each.number, each.datetime_start), now)
                n += each.number < trial.number and age < _SAMPLED_WITHIN and not _is_stale(each, stale_before)
        return n

    # Conversion of trials to steps of the log.

    def _derive(self, trials: Sequence[Any], stale_before: datetime | None) -> list[Step]:
        steps: list[Step] = []
        places: dict[int, int] = {}  # number in Optuna → number in the log
        starts: dict[int, Start] = {}
        waiting: dict[int, Start] = {}  # trials that have ended in Optuna but not yet in the log
        started = [(trial, start) for trial in trials if (start := self._start_of(trial)) is not None]
        imputed = self._impute(started)
        shift = shift_of(self.optimizer.curve, ((start.number, start.reports) for _, start in started))
        logged: Counter[int] = Counter()  # number in Optuna → number of reports in the log

        def report(start: Start, n: int | None = None) -> None:
            new = start.reports[logged[start.number] : n]
            if new:
                logged[start.number] += len(new)
                steps.append(("reported", places[start.number], shift, new, None))

        def end(ended: Iterable[Start]) -> None:
            for start in ended:
                del waiting[start.number]
                report(start)
                state, value, detail = start.outcome
                if start.stop is not None:
                    value = imputed[start.number]
                    detail = json.dumps({"imputed": True, "step": start.stop.step, "reported": start.stop.value})
                if self._others:
                    measured = (start.others, (state, value, detail))
                    steps.append(("outcomes", places[start.number], *measured, start.ended))
                else:
                    steps.append((state, places[start.number], value, detail, start.ended))

        left = dict(self.withdrawn)

        def withdraw(before: float) -> None:
            for number in [number for number, each in left.items() if each.before <= before and number in places]:
                if number in waiting:
                    end([waiting[number]])
                each = left.pop(number)
                steps.append(("withdrawn", places[number], each.reason, each.at))

        for trial, start in started:
            withdraw(trial.number)
            if start.pending is not None:
                end([each for number, each in waiting.items() if number not in start.pending])
                for number, n in start.reported.items():
                    if number in places:
                        report(starts[number], n)
            places[start.number], starts[start.number] = len(places), start
            steps.append(start.step)
            if start.outcome.state != "pending":
                waiting[start.number] = start
            elif _is_stale(trial, stale_before):
                nothing = (None,) * len(self._others)
                waiting[start.number] = start._replace(outcome=OptunaResult("abandoned"), others=nothing)
        end(list(waiting.values()))
        for _, start in started:
            report(start)
        withdraw(math.inf)
        return steps

    def _impute(self, started: Sequence[tuple[Any, Start]]) -> dict[int, float]:
        """Return a dict from the number of each pruned trial to the value with which the trial is observed."""
        stops = {start.number: start.stop for _, start in started if start.stop is not None}
        if not stops:
            return {}
        curves = [
            Curve(trial.intermediate_values, start.outcome.value)
            for trial, start in started
            if start.outcome.value is not None and start.stop is None and start.number not in self.withdrawn
        ]
        return impute(stops, curves, minimize=self.optimizer.direction == "minimize")

    def _start_of(self, trial: Any) -> Start | None:
        """Return the start of a trial; None if it has not started, or if its point is unknown or not in the space."""
        if trial.state.name == "WAITING":  # if a trial is run again, its parameters are already known
            return None
        known = self._finished.get(trial.number)
        if known is not None and known[0] is trial:
            return known[1]
        start = self._read(trial)
        if trial.state.is_finished():
            self._finished[trial.number] = (trial, start)
        return start

    def _read(self, trial: Any) -> Start | None:
        ended = self._on_clock(trial.datetime_complete)
        outcome, stop, reports = result_beside_curve(trial, not self._others), None, NO_REPORTS
        known_values: dict[str, float | None] = {}
        if trial.state.is_finished():
            known_values |= constraint_values(trial.system_attrs)
            known_values |= zip(self._objectives[1:], further_values(trial, len(self._objectives)), strict=True)
        others = tuple(map(known_values.get, self._others))
        if self.optimizer.curve is not None:
            reports = reports_of(trial)
        elif outcome.state == "stopped" and len(self._objectives) > 1:
            outcome = OptunaResult("failed")
        elif outcome.state == "stopped":
            reported = trial.intermediate_values
            stop = Stop(reported, max(reported), reported[max(reported)])
            outcome = OptunaResult("observed", stop.value)
        params = {name: trial.params[name] for name in self.space if name in trial.params}
        note = trial.system_attrs.get(NOTE, {})
        # If Optuna copies a trial, for example to run a failed trial again, the copy has the note of the original
        # trial.
        if note.get("definition") == self.definition and note.get("number") == trial.number:
            suggested = self._params(note["event"])
            # The trial may have been run at a point that differs from the suggestion, for example if part of the point
            # was enqueued. The point that was run is used.
            if all(suggested[name] == value for name, value in params.items()):
                step: Step = ("suggested", note["event"])
                known = dict(zip(note["pending"], note.get("reported", ()), strict=False))
                pending = frozenset(note["pending"])
                facts = (pending, note["place"], stop, reports, known, others)
                return Start(trial.number, step, outcome, ended, *facts)
        try:
            place = self.space.locate(params)
        except InvalidPoint:
            return None
        added: Step = ("added", tuple(place), self._on_clock(trial.datetime_start))
        return Start(trial.number, added, outcome, ended, None, None, stop, reports, others=others)

    def _on_clock(self, at: datetime | None) -> float | None:
        return None if at is None or self.optimizer.clock == "iterations" else at.timestamp()

    # Conversion of steps to the core's log.

    def _follow(self, steps: list[Step]) -> None:
        """Make the core's log equal to these steps."""
        n_same = len(self._steps)
        if steps[:n_same] != self._steps:
            self._core, n_same = self.optimizer._new_core(), 0
        # If an error interrupts this loop, the next call starts from the beginning.
        self._steps = [("unknown",)]
        for step in steps[n_same:]:
            self._log(step)
        self._steps = steps

    def _log(self, step: Step) -> None:
        kind = step[0]
        if kind == "suggested":
            try:
                self._core.extend([step[1]])
            except BelatedError:
                # The note was written for an order of events that differs from the order of these steps.
                self._core.extend([_core.without_note(step[1])])
            return
        time = step[-1]
        if time is None and self.optimizer.clock == "seconds":
            time = self.optimizer._problem.wall_time()
        if kind == "added":
            self._core.record(Action.add(list(step[1]), None, None), time)
            return
        if kind == "reported":
            log_reports(self._core, step[1], step[2], step[3], time)
            return
        if kind == "withdrawn":
            self.log_withdrawal(step[1], step[2], time)
            return
        if kind == "outcomes":
            _, number, others, (state, value, detail), _ = step
        else:
            (state, number, value, detail, _), others = step, ()
        outcome = OptunaResult(state, None if value is None else as_number("value", value, f"trial {number}"), detail)
        ended = ImportedTrial(
            results_of(outcome, others, time),
            bool(self._others),
            error=error_of(outcome, others),
            attrs=detail if state == "observed" else None,
            what=f"trial {number}",
        )
        for action, _ in ended.actions(number):
            self._core.record(action, time)

    def log_withdrawal(self, number: int, reason: str | None, time: float | None) -> None:
        """Log that the result of a trial was taken back; `number` is the number in the log."""
        self._core.record(Action.withdraw(number, reason), time)


def _is_stale(trial: Any, stale_before: datetime | None) -> bool:
    return (
        stale_before is not None
        and trial.state.name == "RUNNING"
        and trial.datetime_start is not None
        and bool(trial.datetime_start < stale_before)
    )


def _point(event: str) -> tuple[float | None, ...]:
    """Return the numbers of the point that an event suggests."""
    place = _core.point_of(event)
    return () if place is None or isinstance(place, int) else tuple(place)
