"""Conversion of a record of a trial to the actions that give a log this trial.

`add` reads such records from the rows of a table, `Study.copy` from another study, and `Study.from_optuna`, the sampler
and the pruner from trials of Optuna.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple, TypeAlias

from belated._core import Action, Observation, TrialRecord
from belated.space.space import Place

# The state before a withdrawal, the withdrawn value, the reason, and the wall-clock time in seconds.
Withdrawn: TypeAlias = tuple[str, float | None, str | None, float | None]

# An action, and the wall-clock time in seconds at which it is logged.
Dated: TypeAlias = tuple[Action, float | None]


class Result(NamedTuple):
    """The state of an outcome, or of a trial without outcomes, since the wall-clock time `at`."""

    state: str
    value: float | None = None
    std: float | None = None
    at: float | None = None
    #: The last withdrawn result.
    withdrawal: Withdrawn | None = None
    #: The interval in which the value was expected, if the value is marked.
    mark: tuple[float, float] | None = None


class ImportedTrial(NamedTuple):
    """The results of a trial and its other data, as they are imported."""

    #: One result for each outcome, or a single one if outcomes are not declared.
    results: Sequence[Result]
    has_outcomes: bool = False
    #: The last withdrawal of the whole trial, if outcomes are declared.
    withdrawal: Withdrawn | None = None
    error: tuple[str, str, str | None] | None = None
    cost: float | None = None
    duration: float | None = None
    #: Attributes that are stored with the first value, as JSON.
    attrs: str | None = None
    curve: Sequence[tuple[int, float]] = ()
    attempt: int = 0
    started_at: float | None = None
    #: The remarks, with their wall-clock times in seconds and their authors.
    remarks: Sequence[tuple[str, float | None, str | None]] = ()
    #: Whether the results have the marks of the values. Otherwise, the model of the log judges the values.
    is_judged: bool = False
    #: The name of the trial, for messages.
    what: str = "this trial"

    def adding(
        self,
        place: Place,
        context: list[float] | None = None,
        fidelity: float | None = None,
        attrs: str | None = None,
    ) -> tuple[Action, Callable[[int], Iterator[Dated]]]:
        """Return the action that adds the trial, and a function from the trial's number to the other actions."""
        added, others = self._adding(place, context, fidelity, attrs)
        if not self.remarks:
            return added, others
        return added, lambda number: chain(others(number), self._notes(number))

    def _notes(self, number: int) -> Iterator[Dated]:
        return ((Action.note(number, remark=text), at) for text, at, _ in self.remarks)

    def _adding(
        self, place: Place, context: list[float] | None, fidelity: float | None, attrs: str | None
    ) -> tuple[Action, Callable[[int], Iterator[Dated]]]:
        """Return the actions without the remarks, as `adding` does."""
        results, started_at = self.results, self.started_at
        if len(results) == 1 and not self.has_outcomes and not self.curve:
            [(state, _, _, at, withdrawal, _)] = results  # the most frequent case
            if state == "observed" and withdrawal is None and at == started_at and self.error is None:
                observation = self._observation([0])
                return Action.add(place, context, observation, fidelity, attrs), _nothing
        plain = self.error is None or any(each.state == "failed" for each in results)
        plain = plain and all(each.withdrawal is None for each in results)
        times = {each.at for each in results if each.value is not None}
        # Values that arrived at the start are added with the trial, unless other results came before them.
        if not plain or times != {started_at}:
            return Action.add(place, context, None, fidelity, attrs), self.actions
        added = Action.add(place, context, self._observation(range(len(results))), fidelity, attrs)
        is_complete = not self.curve and all(each.state in ("observed", "pending") for each in results)
        return added, _nothing if is_complete else partial(self.actions, without_values=True)

    def actions(self, number: int, *, without_values: bool = False) -> Iterator[Dated]:
        """Yield the actions that give a trial of the log these results; each needs the actions before it.

        Parameters
        ----------
        number : int
            The number of the trial in the log.
        without_values : bool, default False
            Whether the trial was added with its values.
        """
        for step, value in self.curve:
            yield Action.report(number, step, value, self.attempt), self.started_at
        early = list(self._early_failure(number))
        yield from early
        rest = list(range(len(self.results)))
        withdrawn = [k for k in rest if self.results[k].withdrawal is not None]
        together = self._withdrawn_together()
        if together:
            yield from self._whole_withdrawal(number, withdrawn, together)
            left = [k for k in rest if self.results[k].state != "withdrawn"]
            yield from self._finals(number, left, are_missing=False)
            return
        # A stop ends all outcomes that are missing, so a stop that was withdrawn comes after the other results.
        stopped = [k for k in withdrawn if self._withdrawal(k)[0] == "stopped"]
        last = [k for k in withdrawn if self.results[k].state == "withdrawn" or k in stopped]
        # An outcome that is withdrawn while others are missing is missing again, and another result may come.
        for k in withdrawn:
            if k not in last:
                yield from self._earlier(number, k)
                yield self._withdraw(number, k)
        for k in last:
            if k not in stopped:
                yield from self._earlier(number, k)
        yield from self._finals(number, [k for k in rest if k not in last], without_values, are_missing=not early)
        for k in stopped:
            yield Action.stop(number), self.results[k].at
        for k in last:
            yield self._withdraw(number, k)
        yield from self._finals(number, [k for k in last if self.results[k].state != "withdrawn"], are_missing=False)

    def _withdrawn_together(self) -> list[int]:
        """Return the outcomes whose last withdrawal was the withdrawal of the whole trial."""
        whole = self.withdrawal
        if not self.has_outcomes or whole is None or any(each.state == "pending" for each in self.results):
            return []
        return [k for k, each in enumerate(self.results) if each.withdrawal and each.withdrawal[2:] == whole[2:]]

    def _whole_withdrawal(self, number: int, withdrawn: Sequence[int], together: Sequence[int]) -> Iterator[Dated]:
        """Yield the results that were withdrawn together, and their withdrawal, after which no outcome is missing."""
        _, _, reason, time = self._withdrawal(together[0])
        others = sorted((k for k in withdrawn if k not in together), key=lambda k: _time(self._withdrawal(k)[3]))
        before = [k for k in others if _time(self._withdrawal(k)[3]) <= _time(time)]
        for k in range(len(self.results)):
            if k not in together and k not in before:
                yield Action.abandon(number, k), self.results[k].at
        stopped = [k for k in together if self._withdrawal(k)[0] == "stopped"]
        for k in before:
            yield from self._earlier(number, k)
        if stopped:
            # Outcomes that were withdrawn before a stop are missing again, and the stop abandons them.
            yield from (self._withdraw(number, k) for k in before)
        for k in sorted(together, key=lambda k: k in stopped):
            yield from self._earlier(number, k)
        if not stopped:
            yield from (self._withdraw(number, k) for k in before)
        yield Action.withdraw(number, reason), time
        for k in others:
            if k not in before:
                yield from self._earlier(number, k)
                yield self._withdraw(number, k)

    def _finals(
        self, number: int, outcomes: Sequence[int], without_values: bool = False, *, are_missing: bool
    ) -> Iterator[Dated]:
        """Yield the actions that give outcomes their present states.

        If `are_missing`, the outcomes do not have earlier results, so that one action may end several of them.
        """
        results = self.results
        observed = [k for k in outcomes if results[k].value is not None]
        if not without_values:
            # Values that arrived together are one report. The first report has the data of the trial.
            for at in sorted({results[k].at for k in observed}, key=_time):
                arrived = self._observation([k for k in observed if results[k].at == at])
                yield Action.observe(number, arrived, True, False), at
        ended = [k for k in outcomes if results[k].state in ("failed", "abandoned")]
        # A stop ends all outcomes that are missing. It abandons the outcomes beside the stopped one.
        stopped = [k for k in outcomes if results[k].state == "stopped"]
        for k in stopped if are_missing else ():
            ended = [each for each in ended if results[each] != Result("abandoned", at=results[k].at)]
        kinds = {(results[k].state, results[k].at) for k in ended}
        if self.has_outcomes and are_missing and len(kinds) == 1 and len(observed) + len(ended) == len(results):
            yield self._end(number, ended[0], whole=True)
        else:
            for k in sorted(ended, key=lambda k: results[k].state != "failed"):
                if results[k].state == "abandoned" and self._fails_again(k):
                    yield self._fail(number, k), results[k].at
                yield self._end(number, k)
        for k in stopped:
            yield Action.stop(number), results[k].at

    def _end(self, number: int, k: int, whole: bool = False) -> Dated:
        result, outcome = self.results[k], None if whole else k
        action = self._fail(number, outcome) if result.state == "failed" else Action.abandon(number, outcome)
        return action, result.at

    def _early_failure(self, number: int) -> Iterator[Dated]:
        """Yield the failure that had the error of the trial, if another result has replaced this failure."""
        if self.error is None or any(
            self._fails_again(k) or (each.withdrawal is not None and each.withdrawal[0] == "failed")
            for k, each in enumerate(self.results)
        ):
            return
        # The outcome that fails must get its next result before the other outcomes are withdrawn.
        known = [k for k, each in enumerate(self.results) if each.state != "pending" or each.withdrawal is not None]
        known.sort(key=lambda k: (self.results[k].withdrawal is None, self._value_of(self.results[k]) is None))
        for k in known[:1]:
            yield self._fail(number, k), self.results[k].at

    def _fails_again(self, k: int) -> bool:
        """Return whether the last result is a failure, or needs one: a withdrawn result cannot be abandoned."""
        state, withdrawal = self.results[k].state, self.results[k].withdrawal
        is_missing = withdrawal is None or (self.has_outcomes and not self._withdrawn_together())
        return state == "failed" or (state == "abandoned" and not is_missing)

    def _earlier(self, number: int, k: int) -> Iterator[Dated]:
        """Yield the result that was withdrawn."""
        state, value, *_ = self._withdrawal(k)
        at = self.results[k].at
        if value is not None:
            # The trial keeps the std of its last value.
            std = self.results[k].std if self.results[k].value is None else None
            amounts = self.cost, self.duration
            observation = Observation([(k, value, std)], *amounts, marks=[] if self.is_judged else None, what=self.what)
            yield Action.observe(number, observation, True, False), at
        elif state == "stopped":
            yield Action.stop(number), at
        else:
            # A second failure with the same error would have no effect.
            again = any(map(self._fails_again, range(len(self.results))))
            yield Action.fail(number, None, None, None, k) if again else self._fail(number, k), at

    def _observation(self, outcomes: Sequence[int]) -> Observation:
        """Return the values of outcomes, with the data of the trial."""
        known = [(k, self.results[k]) for k in outcomes]
        values = [(k, each.value, each.std) for k, each in known if each.value is not None]
        marks = [(k, *each.mark) for k, each in known if each.mark is not None] if self.is_judged else None
        return Observation(values, self.cost, self.duration, None, self.attrs, marks=marks, what=self.what)

    def _fail(self, number: int, outcome: int | None) -> Action:
        measured = any(self._value_of(each) is not None for each in self.results)
        return Action.fail(number, self.error, None, None if measured else self.duration, outcome)

    def _withdraw(self, number: int, k: int) -> Dated:
        _, _, reason, at = self._withdrawal(k)
        return Action.withdraw(number, reason, k), at

    def _withdrawal(self, k: int) -> Withdrawn:
        found = self.results[k].withdrawal
        assert found is not None
        return found

    @staticmethod
    def _value_of(result: Result) -> float | None:
        """Return the value, or else the withdrawn value."""
        return result.value if result.value is not None or result.withdrawal is None else result.withdrawal[1]


def result_of(record: TrialRecord) -> Result:
    """Return the result of a trial without outcomes."""
    mark = next(((low, high) for _, low, high in record.marks), None)
    return Result(record.state, record.value, record.std, record.finished_at, record.withdrawal, mark)


def of_record(record: TrialRecord, results: Sequence[Result] | None, has_curve: bool) -> ImportedTrial:
    """Return a trial of another log; `results` has the result of each outcome, or is None without outcomes."""
    if results is None:
        single = result_of(record)
    return ImportedTrial(
        [single] if results is None else results,
        results is not None,
        record.withdrawal,
        record.error,
        record.cost,
        record.duration,
        # The record lacks the times of reports. Durations are not forecast from reports with equal times.
        curve=record.curve if has_curve else (),
        attempt=record.attempt,
        started_at=record.started_at,
        remarks=record.remarks,
        is_judged=True,
    )


def _nothing(number: int) -> Iterator[Dated]:
    return iter(())


def _time(at: float | None) -> float:
    return -math.inf if at is None else at
