"""A trial: a numbered point, its state, and the methods that report its result."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, Protocol

from numpy.typing import NDArray

from belated._core import TrialRecord
from belated.optimizers.log import Log
from belated.optimizers.marks import marked_of
from belated.optimizers.outcomes import OutcomeRecord, outcome_records
from belated.optimizers.problem import Problem
from belated.optimizers.report import Remark, TrialError, Withdrawal, headline, merged_attrs
from belated.space.space import Place, Space


def rounded(value: Any) -> str:
    """Return a repr in which floats have four digits."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {rounded(each)}" for key, each in value.items()) + "}"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(rounded, value)) + ("," if len(value) == 1 else "") + ")"
    return f"{value:.4g}" if isinstance(value, float) else repr(value)


def html_table(
    head: Sequence[str], rows: Iterable[Sequence[Any]], marked: Collection[int] = (), right: Collection[int] = ()
) -> str:
    """Return an HTML table. The rows at the places `marked` are bold; the columns `right` have the class ``number``.

    Strings are shown as they are, floats with four digits, and other values by their repr. All text is escaped.
    """
    import html

    def line(cells: Sequence[Any], tag: str, style: str = "") -> str:
        texts = (html.escape(cell if isinstance(cell, str) else rounded(cell)) for cell in cells)
        starts = (f'{tag} class="number"' if i in right else tag for i in range(len(cells)))
        shown = (f"<{start}>{text}</{tag}>" for start, text in zip(starts, texts, strict=True))
        return f"<tr{style}>{''.join(shown)}</tr>"

    bold = ' style="font-weight: bold"'
    body = "".join(line(row, "td", bold if i in marked else "") for i, row in enumerate(rows))
    return f"<table><thead>{line(head, 'th')}</thead><tbody>{body}</tbody></table>"


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def utc(seconds: float | None) -> datetime | None:
    """Convert seconds since 1970 to a time. Return None for None, and for times outside the years 1 to 9999."""
    try:
        return None if seconds is None else _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return None


class Owner(Protocol):
    """The members of an optimizer or study that its trials use."""

    _token: str

    @property
    def _problem(self) -> Problem: ...
    @property
    def _log(self) -> Log: ...
    def _problem_of(self, number: int) -> Problem: ...
    def _why_forbidden(self, record: TrialRecord) -> str | None: ...
    def observe(self, *args: Any, **kwargs: Any) -> None: ...
    def fail(self, *args: Any, **kwargs: Any) -> None: ...
    def report(self, *args: Any, **kwargs: Any) -> None: ...
    def should_stop(self, trial: Trial) -> bool: ...
    def stop(self, trial: Trial) -> None: ...
    def abandon(self, trial: Trial, *, outcome: str | None) -> None: ...
    def withdraw(self, trial: Trial, *, reason: str | None, outcome: str | None) -> None: ...
    def note(self, trial: Trial, remark: str | None, *, attrs: Mapping[str, Any] | None) -> None: ...


class Trial:
    """A trial of an optimizer.

    The methods ``suggest`` and ``add`` and the attribute ``trials`` return trials. A trial is a view: each access to an
    attribute reads the optimizer's log, so attributes are always up to date. Two trials are equal if they have the same
    number in the same optimizer. A pickled trial contains its optimizer. Therefore send only `params` (or `x`) and
    `number` to a worker, and report the value to the optimizer that suggested the trial.

    Examples
    --------
    >>> import belated as bl
    >>> optimizer = bl.RandomSearch({"lr": bl.Real(1e-4, 1, log=True)}, seed=0)
    >>> trial = optimizer.suggest()
    >>> trial.state, trial.value, list(trial.params)
    ('pending', None, ['lr'])
    >>> trial.observe(0.25)
    >>> trial.state, trial.value
    ('observed', 0.25)
    """

    __slots__ = ("_owner", "number")

    def __init__(self, owner: Owner, number: int) -> None:
        self._owner = owner
        #: The trial's number, counted from 0.
        self.number = number

    @property
    def _record(self) -> TrialRecord:
        """The core's record of the trial."""
        return self._owner._log.trial(self.number)

    @property
    def params(self) -> dict[str, Any] | Any:
        """The suggested values by name; for candidates without names, the row of shape (d,)."""
        record = self._record
        return self._owner._problem_of(record.era).domain.params_of(record)

    @property
    def params_run(self) -> dict[str, Any] | Any:
        """The point that was run, in the form of `params`. It equals `params` unless a different point was reported."""
        record = self._record
        if record.run is None:
            return self.params
        return self._owner._problem_of(record.era_of_run).domain.params_at(record.run)

    @property
    def outside(self) -> bool:
        """Whether the trial lies beyond a bound, or at a point that is not a candidate.

        The model uses its value, but `best_trial_` ignores it.
        """
        return self._record.outside

    @property
    def x(self) -> NDArray[Any] | None:
        """The candidate's row, shape (d,), as it was given; None in a space."""
        point = self.params
        return None if isinstance(point, dict) else point

    @property
    def index(self) -> int | None:
        """The candidate's row number; None in a space, and for a point that is not a candidate."""
        record = self._record
        return self._present_index(record.place, record.era)

    @property
    def index_run(self) -> int | None:
        """The row number of the candidate that was run. It equals `index` unless a different point was reported.

        It is None in a space, and for a point that is not a candidate.
        """
        record = self._record
        return self.index if record.run is None else self._present_index(record.run, record.era_of_run)

    def _present_index(self, place: Place, problem: int) -> int | None:
        # A row number of an earlier problem may be the number of another row now.
        is_present = self._owner._problem_of(problem) is self._owner._problem
        return place if isinstance(place, int) and is_present else None

    @property
    def context(self) -> dict[str, Any] | None:
        """The context of the suggestion; None if contexts were not declared."""
        record = self._record
        contexts = self._owner._problem_of(record.era_of_context).context_space
        return None if contexts is None else contexts.params_at(list(record.context))

    @property
    def fidelity(self) -> Any:
        """The fidelity of the trial, in the units of the declared `Fidelity`; None if a fidelity was not declared."""
        record = self._record
        return self._owner._problem_of(record.era_of_fidelity).fidelity_of(record.fidelity)

    @property
    def state(self) -> str:
        """``"pending"``, ``"observed"``, ``"failed"``, ``"abandoned"``, ``"stopped"`` or ``"withdrawn"``."""
        return self._record.state

    @property
    def left_out(self) -> str | None:
        """Why a revision of the study left the trial out; None if the trial is used. See `Study.revise`."""
        return self._record.left_out

    @property
    def value(self) -> float | None:
        """The observed value; None before it is reported, and after it was withdrawn.

        If outcomes were declared, it is the value of the objective; None with several objectives, see `values`.
        """
        return self._record.value

    @property
    def outcomes(self) -> dict[str, OutcomeRecord]:
        """The state of each declared outcome, by name; empty if outcomes were not declared."""
        return outcome_records(self._owner._problem.outcomes, self._record, utc)

    @property
    def values(self) -> dict[str, float]:
        """The observed values of the declared outcomes, by name."""
        return {name: each.value for name, each in self.outcomes.items() if each.value is not None}

    @property
    def missing(self) -> list[str]:
        """The names of the declared outcomes that have not arrived."""
        return [name for name, each in self.outcomes.items() if each.state == "pending"]

    @property
    def curve(self) -> dict[int, float]:
        """The reported steps of the learning curve in ascending order, with their values."""
        return dict(self._record.curve)

    @property
    def std(self) -> float | None:
        """The standard deviation of the value's noise; None if it was not reported."""
        return self._record.std

    @property
    def cost(self) -> float | None:
        """The cost of the evaluation; None if it was not reported."""
        return self._record.cost

    @property
    def duration(self) -> float | None:
        """The duration of the evaluation in seconds; None if it was not reported."""
        return self._record.duration

    @property
    def attrs(self) -> dict[str, Any]:
        """A copy of the reported attributes; for each key, the value that was reported last."""
        return merged_attrs(self._record.attrs)

    @property
    def remarks(self) -> list[Remark]:
        """The remarks about the trial in order of arrival, each with `text`, `at` and `by`; see `Optimizer.note`."""
        return [Remark(text, utc(at), by) for text, at, by in self._record.remarks]

    @property
    def marks(self) -> dict[str | None, tuple[float, float]]:
        """The values that are far from what the model expected, and the interval in which each was expected.

        The keys are the names of outcomes; without declared outcomes, the key is None. A mark is set when the value is
        reported, and stays until the value is amended, withdrawn or confirmed; see `Optimizer.confirm`. Suggestions do
        not depend on marks.
        """
        outcomes = self._owner._problem.outcomes
        return {each.outcome: (each.low, each.high) for each in marked_of(outcomes, self._record)}

    @property
    def error(self) -> TrialError | None:
        """The last reported error; None if the trial has not failed, or if an error was not reported."""
        error = self._record.error
        return None if error is None else TrialError(*error)

    @property
    def withdrawal(self) -> Withdrawal | None:
        """The last withdrawn result: its `state`, `value`, `reason` and time `at`; None if nothing was withdrawn.

        If outcomes were declared, `outcomes` has the withdrawn result of each outcome.
        """
        withdrawal = self._record.withdrawal
        return None if withdrawal is None else Withdrawal(*withdrawal[:3], utc(withdrawal[3]))

    @property
    def suggested_at(self) -> float:
        """The time of the suggestion on the optimizer's clock, in seconds or in suggestions started."""
        return self._record.suggested_at

    @property
    def observed_at(self) -> float | None:
        """The time of the observation on the optimizer's clock; None before the observation."""
        return self._record.observed_at

    @property
    def ended_at(self) -> float | None:
        """The optimizer's time when the trial last ended, with or without a value; None while it is pending."""
        return self._record.ended_at

    @property
    def started_at(self) -> datetime | None:
        """The wall-clock time of the suggestion (UTC); None if it is not known."""
        return utc(self._record.started_at)

    @property
    def finished_at(self) -> datetime | None:
        """The wall-clock time of `ended_at` (UTC); None while pending, or if it is not known."""
        return utc(self._record.finished_at)

    @property
    def started_by(self) -> str | None:
        """Who suggested or added the trial; None if it is not known. See `Study.as_user`."""
        return self._record.started_by

    @property
    def finished_by(self) -> str | None:
        """Who reported the result that ended the trial; None while pending, or if it is not known.

        A later amendment, withdrawal or confirmation does not change it; the exported log has the author of each event.
        """
        return self._record.finished_by

    @property
    def expires_at(self) -> float | None:
        """The end of the trial's lease, in seconds of the wall clock; None without a lease. See `Study.suggest`."""
        return self._record.expires_at

    @property
    def delay(self) -> float | None:
        """The time from suggestion to observation, in seconds or suggestions started; None before the observation."""
        record = self._record
        return None if record.observed_at is None else record.observed_at - record.suggested_at

    def observe(
        self,
        value: float | Mapping[str, float | None],
        *,
        std: float | Mapping[str, float | None] | None = None,
        cost: float | None = None,
        duration: float | timedelta | None = None,
        params: Any = None,
        attrs: Mapping[str, Any] | None = None,
        fidelity: float | None = None,
        amend: bool = False,
        replicate: bool = False,
    ) -> None:
        """Report the value; see `Optimizer.observe`."""
        facts: dict[str, Any] = {"std": std, "cost": cost, "duration": duration, "params": params, "attrs": attrs}
        self._owner.observe(self, value, **facts, fidelity=fidelity, amend=amend, replicate=replicate)

    def fail(
        self,
        *,
        error: BaseException | str | None = None,
        duration: float | timedelta | None = None,
        attrs: Mapping[str, Any] | None = None,
        outcome: str | None = None,
    ) -> None:
        """Report that the evaluation failed; see `Optimizer.fail`."""
        self._owner.fail(self, error=error, duration=duration, attrs=attrs, outcome=outcome)

    def report(self, value: float, step: int, *, attempt: int | None = None) -> None:
        """Report a step of the learning curve; see `Optimizer.report`."""
        self._owner.report(self, value, step, attempt=attempt)

    def should_stop(self) -> bool:
        """Return True if the evaluation should end before the last step; see `Optimizer.should_stop`."""
        return self._owner.should_stop(self)

    def stop(self) -> None:
        """Stop the trial before the last step of its curve; see `Optimizer.stop`."""
        self._owner.stop(self)

    def abandon(self, *, outcome: str | None = None) -> None:
        """Leave the trial out of the model; see `Optimizer.abandon`."""
        self._owner.abandon(self, outcome=outcome)

    def withdraw(self, *, reason: str | None = None, outcome: str | None = None) -> None:
        """Take back the value or the failure; see `Optimizer.withdraw`."""
        self._owner.withdraw(self, reason=reason, outcome=outcome)

    def note(self, remark: str | None = None, *, attrs: Mapping[str, Any] | None = None) -> None:
        """Store a remark or attributes; see `Optimizer.note`."""
        self._owner.note(self, remark, attrs=attrs)

    def _facts(self) -> dict[str, Any]:
        """Return the data to show, in the order to show them; data that are None are left out."""
        record, x, error, withdrawn = self._record, self.x, self.error, self.withdrawal
        point = {"params": self.params} if x is None else {"index": self.index, "x": x}
        if record.run is not None:
            index = self.index_run
            point |= {"params_run": self.params_run} if index is None else {"index_run": index}
        facts = {
            "number": self.number,
            **point,
            "context": self.context,
            "fidelity": self.fidelity,
            "state": record.state,
            "outside": record.outside or None,
            "value": None if record.outcomes else record.value,
            "std": None if record.outcomes else record.std,
            "values": self.values or None,
            "missing": self.missing or None,
            "error": None if error is None else headline(error),
            "withdrawn_value": None if withdrawn is None else withdrawn.value,
            "withdrawn_reason": None if withdrawn is None else withdrawn.reason,
            "attrs": self.attrs or None,
            "remarks": [remark.text for remark in self.remarks] or None,
            "left_out": record.left_out,
            "forbidden": self._owner._why_forbidden(record) if record.left_out is None else None,
        }
        return {name: fact for name, fact in facts.items() if fact is not None}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trial):
            return NotImplemented
        return self.number == other.number and self._owner._token == other._owner._token

    def __hash__(self) -> int:
        return hash((self._owner._token, self.number))

    def __repr__(self) -> str:
        return f"Trial({', '.join(f'{name}={fact!r}' for name, fact in self._facts().items())})"

    def _repr_html_(self) -> str:
        more = {"cost": self.cost, "duration": self.duration, "delay": self.delay}
        rows: list[tuple[str, Any]] = []
        for name, fact in (self._facts() | {name: fact for name, fact in more.items() if fact is not None}).items():
            # A mapping has a row for each entry.
            entries = fact.items() if isinstance(fact, dict) else [("", fact)]
            rows += [(f"{name} {key}".rstrip(), each) for key, each in entries]
        return html_table(["Trial", ""], rows)


# Number of rows in the table that notebooks show for an optimizer or study.
_ROWS_SHOWN = 10


def trials_html(name: str, problem: Problem, trials: Sequence[Trial], n_pending: int, best: Sequence[Trial]) -> str:
    """Return an HTML table of the last trials with a caption; the latest trial comes first.

    `best` is the best trial, or the trials of the front; they are bold. Each parameter, each name of the context and
    each outcome has a column. Best trials that are older than the last trials are the last rows; of a front, the latest
    of them.
    """
    import html

    shown = list(reversed(trials[-_ROWS_SHOWN:]))
    older = [trial for trial in reversed(best) if trial not in shown]
    shown += older[:_ROWS_SHOWN]
    names = list(problem.domain) if isinstance(problem.domain, Space) else ["index"]
    of_contexts, outcomes = list(problem.context_space or ()), list(problem.outcomes)
    mark = "front" if problem.front else "best"
    rows = []
    for trial in shown:
        domain = trial._owner._problem_of(trial._record.era).domain
        point = domain.flat(trial.params) if isinstance(domain, Space) else {"index": trial.index}
        error, contexts = trial.error, trial._owner._problem_of(trial._record.era_of_context).context_space
        context = {} if contexts is None else contexts.flat(trial.context or {})
        state = f"{trial.state}, {mark}" if trial in best else trial.state
        values = [_shown(each) for each in trial.outcomes.values()] if outcomes else [trial.value]
        facts = ["" if fact is None else fact for fact in (*values, error and headline(error))]
        of_trial = [point.get(key, "") for key in names] + [context.get(key, "") for key in of_contexts]
        rows.append([trial.number, *of_trial, state, *facts])
    caption = f"{name}: {summary(problem, len(trials), n_pending, best)}"
    head = ["number", *names, *of_contexts, "state", *(outcomes or ["value"]), "error"]
    marked = [i for i, trial in enumerate(shown) if trial in best]
    return f"<p>{html.escape(caption)}</p>{html_table(head, rows, marked)}"


def summary(problem: Problem, n_trials: int, n_pending: int, best: Sequence[Trial]) -> str:
    """Return the numbers of trials, and the best value or the size of the front."""
    found = front_text(len(best)) if problem.front else f"best {rounded(best[0].value) if best else None}"
    return f"{n_trials} trials, {n_pending} pending, {found}"


def front_text(n: int) -> str:
    """Return the number of trials in a front as text."""
    return f"front of {n} trial{'' if n == 1 else 's'}"


def _shown(outcome: OutcomeRecord) -> float | str:
    """Return the value of an outcome, or its state."""
    if outcome.value is not None:
        return outcome.value
    return "missing" if outcome.state == "pending" else outcome.state
