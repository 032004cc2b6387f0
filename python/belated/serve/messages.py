"""The content of requests and answers as JSON: the schemas of the API's description.

Requests that have unknown fields, or values of wrong types, are refused. `belated.serve.answers` makes the answers.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from belated.optimizers.problem import LATEST
from belated.study.study import LONGEST_AUTHOR, LONGEST_NAME

State = Literal["pending", "observed", "failed", "abandoned", "stopped", "withdrawn"]
Role = Literal["read", "report", "work", "all"]

Amount = Annotated[float, Field(ge=0)]
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]

#: If a request has more errors, only their number is described, because each description takes several microseconds.
MOST_ERRORS = 1000


class Request(BaseModel):
    """The body of a request."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="wrap")
    @classmethod
    def _with_few_errors(cls, data: Any, handler: Callable[[Any], Any]) -> Any:
        try:
            return handler(data)
        except ValidationError as error:
            if error.error_count() <= MOST_ERRORS:
                raise
            text = f"{error.error_count():,} fields or values are unknown or of a wrong type"
        raise ValueError(text)


class Timed(Request):
    """A request that may contain the current time, its author and a key."""

    now: Annotated[float, Field(ge=-LATEST, le=LATEST)] | None = Field(
        default=None,
        description="The time in seconds, for a study with clock='seconds'. Default: the server's time. Leases and "
        "delays use this clock, so either all clients of a study must give the time, or none. `started_at` and "
        "`changed_at` always use the server's clock.",
    )
    by: Annotated[str, Field(min_length=1, max_length=LONGEST_AUTHOR)] | None = Field(
        default=None,
        description="Who makes this request, a printable name to keep with its events. If the token has a name, this "
        "is the author, and another name is refused.",
    )
    key: Name | None = Field(
        default=None,
        description="A name for this request, printable and unique in the study, such as a UUID. Repeating the request "
        "with this key, for example after a lost answer, changes nothing; the answer has the present state.",
    )


EXPECTED: Any = Field(
    default=None,
    description="The number of events of the study that the client has read: `event` of the trial, or `events` of an "
    "answer about the study. If the trial has changed since then, the answer is 409 with the trial as it is.",
)
Expected = Annotated[int, Field(ge=0)]


class Revised(Timed):
    """A request whose names and values belong to a revision of the problem."""

    revision: Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description="The number of the problem in which the names, values and indices of this request are read, from "
        "`revision` of an earlier answer. If the study was revised since, they are carried to the present problem. "
        "Default: the present problem.",
    )


class Suggest(Revised):
    """Start trials."""

    n: Annotated[int, Field(ge=1, le=100)] = Field(default=1, description="The number of trials.")
    context: dict[str, Any] | None = Field(default=None, description="Values by name, if the study has contexts.")
    fidelity: float | None = Field(default=None, description="The fidelity of the trials, if the study has fidelities.")
    fixed: dict[str, Any] | None = Field(
        default=None,
        description="Values that all of these trials have, by name: a value, a list of allowed values, or a range of a "
        "number as {low, high}. For candidates, the names are column numbers.",
    )
    shared: list[str] | None = Field(
        default=None, description="Names of parameters that have one value in all of these trials."
    )
    expires_after: Annotated[float, Field(ge=0, le=LATEST)] | None = Field(
        default=None,
        description="A lease: the seconds after which the model no longer expects the result, which is still "
        "accepted at any time.",
    )
    attrs: dict[str, Any] | list[dict[str, Any] | None] | None = Field(
        default=None, description="Data to store with the trials, such as wells: for all trials, or a list with each."
    )


class Observe(Revised):
    """Report the value of a trial, or values of its outcomes."""

    value: float | dict[str, float | None] = Field(
        description="One finite number; if the study has outcomes, an object of those that have arrived, by "
        "name, in which null is missing."
    )
    std: Amount | dict[str, Amount | None] | None = Field(
        default=None,
        description="The standard deviation of the noise of all given values, or an object of those of outcomes, by "
        "name.",
    )
    cost: Amount | None = Field(default=None, description="The cost of the evaluation, in any unit.")
    duration: Amount | None = Field(default=None, description="The seconds that the evaluation took.")
    params: dict[str, Any] | list[float] | int | None = Field(
        default=None, description="The point that was run, if it differs from the suggested point."
    )
    attrs: dict[str, Any] | None = Field(default=None, description="Anything else to keep with the trial.")
    fidelity: float | None = Field(default=None, description="The fidelity of the trial, as a check.")
    amend: bool = Field(default=False, description="Replace the value that the trial already has.")
    check: bool = Field(
        default=False,
        description="Compare the value with the model's prediction, even if the model must be fitted first. A value "
        "far from the prediction is stored with a warning.",
    )
    replicate: bool = Field(
        default=False,
        description="If the trial already has a value, record the new value as a separate trial at the same point.",
    )
    expected: Expected | None = EXPECTED


OutcomeName = Annotated[
    str | None, Field(description="Only this outcome, if the study has outcomes. Default: see the request.")
]


class Fail(Revised):
    """Report that a trial crashed: all outcomes that are missing, or one outcome."""

    outcome: OutcomeName = None
    error: str | None = Field(default=None, description="The error; the middle of a text above 2 kB is left out.")
    duration: Amount | None = Field(default=None, description="The seconds that the evaluation took until it failed.")
    attrs: dict[str, Any] | None = Field(default=None, description="Anything else to keep with the trial.")
    expected: Expected | None = EXPECTED


class Abandon(Revised):
    """Abandon a trial without judging its point: all outcomes that are missing, or one outcome."""

    outcome: OutcomeName = None
    expected: Expected | None = EXPECTED


class OfSeveral(Timed):
    """A request that changes several trials: all of them or, after an error, none."""

    numbers: Annotated[list[Annotated[int, Field(ge=0)]], Field(max_length=1000)] = Field(
        description="The numbers of the trials."
    )


class AbandonAll(Abandon, OfSeveral):
    """Abandon several trials: all of them or, after an error, none."""


class Confirm(Revised):
    """State that marked values of a trial are right: all of them, or the value of one outcome."""

    outcome: OutcomeName = None
    expected: Expected | None = EXPECTED


class Withdraw(Revised):
    """Take back the value or the failure of a trial: all outcomes that have a result, or one outcome."""

    outcome: OutcomeName = None
    reason: str | None = Field(default=None, description="The reason; the middle of a text above 2 kB is left out.")
    expected: Expected | None = EXPECTED


class WithdrawAll(Withdraw, OfSeveral):
    """Take back the values or the failures of several trials: of all of them or, after an error, of none."""


class Note(Revised):
    """Store a remark or attributes of a trial, at any time."""

    remark: str | None = Field(default=None, description="A text, which is added to the remarks of the trial.")
    attrs: dict[str, Any] | None = Field(default=None, description="Anything else to keep with the trial.")
    expected: Expected | None = EXPECTED


class Report(Revised):
    """Report the value of a step of a trial's learning curve."""

    step: Annotated[int, Field(ge=1)] = Field(description="The step, up to the last step of the study's curve.")
    value: float | None = Field(description="The value; null for a step that failed.")
    attempt: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="The number of the attempt, from 0, if the evaluation was started again."
    )
    expected: Expected | None = EXPECTED


class Stop(Timed):
    """Stop a trial before the last step of its curve."""

    expected: Expected | None = EXPECTED


class Add(Revised):
    """Add a trial at a point that the study did not suggest."""

    params: dict[str, Any] | list[float] | int = Field(
        description="The point; for candidates also a row number, or a row without names."
    )
    value: float | dict[str, float | None] | None = Field(
        default=None, description="As for `observe`. Without a value, the trial is pending."
    )
    std: Amount | dict[str, Amount | None] | None = Field(default=None, description="As for `observe`.")
    cost: Amount | None = Field(default=None, description="The cost of the evaluation, in any unit.")
    duration: Amount | None = Field(default=None, description="The seconds that the evaluation took.")
    context: dict[str, Any] | None = Field(default=None, description="Values by name, if the study has contexts.")
    fidelity: float | None = Field(default=None, description="The fidelity; by default, the highest.")
    attrs: dict[str, Any] | None = Field(default=None, description="Anything else to keep with the trial.")


Cell = str | float | int | bool | None

#: Maximum numbers of columns, rows and cells of a table.
MOST_COLUMNS, MOST_ROWS, MOST_CELLS = 1000, 20_000, 500_000


class Table(Timed):
    """Report the values of a table, such as a worklist that was filled in: each to the trial of its row.

    Cells that contradict the study are listed and not stored; the others are stored, all at once.
    """

    columns: Annotated[list[str], Field(max_length=MOST_COLUMNS)] = Field(
        description="The names of the columns; `number` has the numbers of the trials."
    )
    rows: Annotated[list[list[Cell]], Field(max_length=MOST_ROWS)] = Field(
        description="The cells of each row. Texts are read like those of a file. Missing cells at the end are empty."
    )
    dry_run: bool = Field(default=False, description="Only return the summary, and change nothing.")
    value: str | None = Field(default=None, description="The column with the values, if it has another name.")
    amend: bool | list[Annotated[int, Field(ge=0)]] = Field(
        default=False,
        description="Replace earlier values unless they changed after the table was written; or the trials whose "
        "values are replaced in any case.",
    )
    moved: bool = Field(default=False, description="Many rows were run at other points than suggested.")
    decimal: Literal[",", "."] | None = Field(
        default=None, description="The decimal separator, if the cells do not show it."
    )
    expected: Expected | None = EXPECTED

    @model_validator(mode="after")
    def _has_bounded_size(self) -> "Table":
        # An empty row also becomes a row of the table.
        if len(self.rows) * len(self.columns) > MOST_CELLS or sum(map(len, self.rows)) > MOST_CELLS:
            raise ValueError(f"a table has at most {MOST_CELLS:,} cells: leave out columns, or send less rows at once")
        return self


class Check(Request):
    """Read a text as the value of a trial, and compare it with the model's prediction."""

    text: Annotated[str, Field(max_length=100)] = Field(description="The text that a person typed.")
    outcome: OutcomeName = None


class Create(Request):
    """Create a study."""

    name: Name = Field(description="A printable name.")
    definition: dict[str, Any] = Field(
        description="The definition of the optimizer, as `belated study export` prints it. Arguments that are left out "
        "have their defaults.",
        examples=[
            {
                "problem": {"space": [{"name": "x", "kind": "Real", "low": 0.0, "high": 1.0}]},
                "strategy": {"kind": "BayesOpt"},
            }
        ],
    )


def without_underscores(given: Any) -> Any:
    """Refuse the underscores that pydantic accepts in the text of a number."""
    if isinstance(given, str) and "_" in given:
        raise ValueError("write the number without underscores")
    return given


#: The validation of a number in a path or a query.
PLAIN = BeforeValidator(without_underscores)

StudyId = Annotated[
    int, PLAIN, Field(ge=0, description="The `study_id` of the study; the answer is 409 if it differs.")
]


class FromQuery(BaseModel):
    """The query of a request."""

    model_config = ConfigDict(extra="forbid")


class OfStudy(FromQuery):
    """The query of a request that concerns a study."""

    study_id: StudyId | None = None


class Page(OfStudy):
    """A request for some of the trials of a study."""

    state: State | None = Field(default=None, description="Only trials in this state.")
    start: Annotated[int, PLAIN, Field(ge=0)] = Field(default=0, description="Only trials with at least this number.")
    limit: Annotated[int, PLAIN, Field(ge=1, le=1000)] = Field(
        default=100, description="The maximum number of trials; fewer if their JSON exceeds 4 MiB: see `next`."
    )
    since: Annotated[int, PLAIN, Field(ge=0)] = Field(
        default=0,
        description="Only trials that changed in events from this number on; pass `events` of an earlier answer.",
    )
    numbers: Annotated[str, Field(pattern="^[0-9]{1,15}(,[0-9]{1,15})*$", max_length=16000)] | None = Field(
        default=None, description="Only trials with these numbers, which are separated by commas."
    )
    by: Name | None = Field(default=None, description="Only trials that were started or ended by this author.")
    worklist: bool = Field(default=False, description="Only pending trials and trials with `warnings`.")
    ended: bool = Field(default=False, description="Only trials that are not pending.")
    failed: bool = Field(default=False, description="Only trials of which any outcome has failed.")
    curve: bool = Field(default=False, description="Only trials with reported steps.")
    late: bool = Field(default=False, description="Only pending trials whose lease has ended.")
    forbidden: bool = Field(default=False, description="Only pending trials that must not be run any longer.")
    marked: bool = Field(default=False, description="Only trials with `warnings`.")
    sort: Annotated[str, Field(pattern=r"^(number|value|changed|state|(params|context|attrs)\..+)$")] = Field(
        default="number",
        description="The order: `number`, `value`, `changed`, `state` (what needs attention first), or a column such "
        "as `params.x`, `context.x` or `attrs.well`. Trials without a value are the last, and equal ones by number.",
    )
    outcome: OutcomeName = None
    descending: bool = Field(default=False, description="The largest value, or the last change, first.")
    after: Annotated[int, PLAIN, Field(ge=0)] | None = Field(
        default=None,
        description="For another order than by number: only trials after this one; with `after_value`, from `after` of "
        "an earlier answer. Trials that changed in the meantime may be missing, or come twice: compare `events`.",
    )
    after_value: Annotated[float, PLAIN, Field(allow_inf_nan=False)] | None = Field(
        default=None,
        description="The value of this trial in the earlier answer; left out if it had none. An order by `state`, "
        "context or attrs uses the present one of the trial.",
    )


class Chart(OfStudy):
    """A request for the points of a chart."""

    order: Literal["changed", "number"] = Field(default="changed", description="The order of the points.")
    outcome: OutcomeName = None


class StudiesPage(FromQuery):
    """A request for some of the studies."""

    start: Annotated[int, PLAIN] = Field(
        default=0, ge=0, description="Only studies from this position on, the oldest first."
    )
    limit: Annotated[int, PLAIN] = Field(
        default=100, ge=1, le=1000, description="The maximum number of studies: see `next`."
    )


class Moment(OfStudy):
    """A request for a forecast at a time."""

    now: Annotated[float, PLAIN, Field(ge=-LATEST, le=LATEST, allow_inf_nan=False)] | None = Field(
        default=None,
        description="The time in seconds, for a study with clock='seconds' whose clients give it. Default: the "
        "server's time.",
    )


class TrialErrorAnswer(BaseModel):
    """Why a trial failed."""

    type: str
    message: str
    traceback: str | None


class WithdrawalAnswer(BaseModel):
    """A result that was taken back."""

    state: Literal["observed", "failed", "stopped"] = Field(description="The state before the withdrawal.")
    value: float | None
    reason: str | None
    at: float | None = Field(description="The time of the withdrawal, in seconds since 1970.")


class RemarkAnswer(BaseModel):
    """A remark about a trial."""

    text: str
    at: float | None = Field(description="The time of the remark, in seconds since 1970.")
    by: str | None = Field(description="The author, if the request named one.")


class WarningAnswer(BaseModel):
    """A value that lies far outside the interval in which it was expected, and that nobody has confirmed."""

    number: int = Field(description="The number of the trial.")
    outcome: str | None = Field(description="Null if the study has no outcomes.")
    text: str
    low: float = Field(description="The smallest expected value.")
    high: float = Field(description="The largest expected value.")


class CheckAnswer(BaseModel):
    """The value in a text."""

    value: float | None = Field(description="Null if the text is not a number, or may be several.")
    readings: list[float] = Field(description="The numbers that the text may be.")
    reason: str | None = Field(description="Why the text is not one number, or why the number is refused.")
    mark: WarningAnswer | None = Field(description="The warning that the value would get.")
    unknown: str | None = Field(description="Why it is not known whether the value would get a warning.")


class OutcomeAnswer(BaseModel):
    """The current state of an outcome of a trial."""

    state: State = Field(description='"pending" if the outcome is missing.')
    value: float | None
    std: float | None
    withdrawal: WithdrawalAnswer | None = Field(description="The last result that was taken back.")


class TrialAnswer(BaseModel):
    """The current state of a trial. Fields for candidates, contexts or fidelities are null in a study without them."""

    number: int
    params: dict[str, Any] | None = Field(description="Values by name; null for candidates without names.")
    index: int | None = Field(description="The candidate's row number; null in a space.")
    x: list[Any] | None = Field(description="The row of a candidate without names; null in a space.")
    params_run: dict[str, Any] | None = Field(
        description="In a space: the point that was run, if it differs from the suggested point."
    )
    index_run: int | None = Field(description="The candidate that was run, if it is not the suggested one.")
    x_run: list[float] | None = Field(description="The point that was run, if it is not a candidate.")
    outside: bool = Field(
        description="Whether the trial was run beyond a bound, or at a point that is not a candidate."
    )
    context: dict[str, Any] | None
    fidelity: float | None
    state: State
    value: float | None = Field(description="If the study has outcomes: the value of the objective.")
    std: float | None
    outcomes: dict[str, OutcomeAnswer] = Field(description="By name; empty if the study has no outcomes.")
    missing: list[str] = Field(description="The names of the outcomes that have not arrived.")
    within_bounds: bool = Field(description="Whether all outcomes with bounds have values within them.")
    cost: float | None
    duration: float | None
    attrs: dict[str, Any]
    remarks: list[RemarkAnswer] = Field(description="In order of arrival.")
    warnings: list[WarningAnswer] = Field(description="The marked values of the trial.")
    error: TrialErrorAnswer | None
    left_out: str | None = Field(description="Why a revision of the study left the trial out; else null.")
    forbidden: str | None = Field(description="Why the pending trial must not be run any longer; else null.")
    withdrawal: WithdrawalAnswer | None = Field(description="The last result that was taken back.")
    curve: list[tuple[int, float | None]] = Field(
        description="The reported steps and their values; null for a step that failed. The answer to a report has only "
        "the step of the report."
    )
    suggested_at: float = Field(description="On the study's clock, as the next two.")
    observed_at: float | None
    ended_at: float | None
    delay: float | None = Field(
        description="From suggestion to observation, on the study's clock; null also if the difference is infinite."
    )
    expires_at: float | None = Field(
        description="When its lease ends: on the study's clock if that counts seconds, else in seconds since 1970."
    )
    lease_ends_at: float | None = Field(description="The end of its lease, by the same clock as `started_at`.")
    lease_ended: bool = Field(description="Whether the trial is pending and its lease has ended.")
    started_at: float = Field(
        description="The start, in seconds since 1970 by the server's clock, never a given `now`."
    )
    changed_at: float = Field(description="The time of the last event, by the same clock as `started_at`.")
    event: int = Field(description="The number of events of the study after the last event of the trial: `expected`.")
    started_by: str | None = Field(description="Who started the trial, if the request named its author.")
    finished_by: str | None = Field(description="Who reported the result, if the request named its author.")


class ResultAnswer(BaseModel):
    """What an event did to the result of an outcome."""

    outcome: str | None = Field(description="Null if the study has no outcomes, or for the whole trial.")
    what: Literal["new", "amended", "failed", "abandoned", "stopped", "withdrawn"]
    value: float | None
    std: float | None
    replaced: float | None = Field(description="The value that the outcome had before.")


class EventAnswer(BaseModel):
    """An event of a trial."""

    event: int = Field(description="The number of events of the study after this event.")
    at: float = Field(description="When the event was written, in seconds since 1970.")
    by: str | None = Field(description="Its author, if the request named one.")
    what: Literal["suggested", "added", "reported", "resulted", "noted"]
    results: list[ResultAnswer]
    step: int | None = Field(description="The reported step of the curve.")
    value: float | None = Field(description="The value of the step; null for a step that failed.")
    remark: str | None
    reason: str | None = Field(description="The reason of a withdrawal.")
    error: str | None = Field(description="The message of a failure.")
    confirmed: list[str | None] = Field(description="The outcomes whose values were confirmed.")


class HistoryAnswer(BaseModel):
    """The events of a trial, the oldest first."""

    number: int
    events: list[EventAnswer]


class RefusedAnswer(BaseModel):
    """A cell that was not stored."""

    row: int = Field(description="The line of the row, where the names of the columns are line 1.")
    number: int | None
    column: str
    cell: Cell
    stored: Any = Field(description="What the trial has.")
    reason: str


class ChangedAnswer(BaseModel):
    """A value that is stored."""

    number: int
    outcome: str | None
    value: float | Literal["failed", "abandoned"]
    stored: float | None = Field(description="The value that it replaces.")
    attrs: dict[str, float | str] = Field(description="Short attributes of the trial, such as its well.")


Part = tuple[int, str | None]


class TableAnswer(BaseModel):
    """What a table changed, or would change. A part is the number of a trial and the name of an outcome, or null."""

    new: list[Part] = Field(description="The parts with a first value or a failure.")
    corrected: list[Part] = Field(description="The parts whose value was replaced.")
    changes: list[ChangedAnswer] = Field(description="The values of these parts.")
    unchanged: list[Part] = Field(description="The parts that have the value already.")
    empty: list[int] = Field(description="The trials whose rows have no values.")
    moved: list[int] = Field(description="The trials that were run at another point than the suggested point.")
    noted: list[int] = Field(description="The trials that got remarks or attributes.")
    refused: list[RefusedAnswer]
    marked: list[WarningAnswer]
    ignored: list[str] = Field(description="The columns that were not read.")
    text: str = Field(description="The summary as lines of text.")
    events: int = Field(description="The number of events of the study: `expected` of the next request.")


class Trials(BaseModel):
    """Trials that were started or changed."""

    study_id: int = Field(description="The id of the study, for the reports of these trials.")
    revision: int = Field(description="The number of the present problem, for the reports of these trials.")
    trials: list[TrialAnswer]


class TrialKey(BaseModel):
    """The place of a trial in an order."""

    number: int = Field(description="`after` of the next request.")
    value: float | None = Field(description="`after_value` of the next request.")


class TrialsPage(BaseModel):
    """A page of the trials of a study."""

    trials: list[TrialAnswer]
    next: int | None = Field(
        description="`start` of the request for the next page; null on the last page, and in another order."
    )
    after: TrialKey | None = Field(
        description="In another order than by number: the last trial of this page, for the request of the next page; "
        "null on the last page."
    )
    total: int = Field(description="The number of trials on all pages from this request on.")
    events: int = Field(description="The number of events of the study, for `since`.")


class ChartAnswer(BaseModel):
    """The values of a study, thinned to at most 2,000 points, as columns of equal length."""

    events: int = Field(description="The number of events that the points include.")
    outcome: str | None = Field(description="The outcome that is shown; null if the study has no outcomes.")
    low: float | None = Field(description="The lower bound of the outcome.")
    high: float | None = Field(description="The upper bound of the outcome.")
    total: int = Field(description="The number of values; those that are left out are neither extreme nor marked.")
    n_best: int = Field(description="The number of values that were the best so far.")
    order: Literal["changed", "number"]
    started_at: float | None = Field(description="When the first trial started, in seconds since 1970.")
    ended_at: float | None = Field(description="When a trial last changed.")
    number: list[int]
    value: list[float]
    changed_at: list[float]
    kind: list[Literal[0, 1, 2]] = Field(description="1: beyond a bound or left out; 2: marked; 0: other values.")
    best: list[bool] = Field(description="Whether the value was the best so far, in this order.")


_PARETO = "The numbers of the trials that no other trial dominates; null unless there are several objectives."


class Best(BaseModel):
    """The trial with the best value, or the front of several objectives."""

    trial: TrialAnswer | None = Field(description="Null before the first value, and with several objectives.")
    pareto: list[int] | None = Field(description=_PARETO)


class ForecastAnswer(BaseModel):
    """How many results of the trials in flight arrive within the median delay."""

    n_pending: int = Field(description="The number of trials in flight.")
    now: float = Field(description="The time of the forecast by the study's clock.")
    by: float | None = Field(description="The end of the forecast by the study's clock; null without a result so far.")
    expected: float | None = Field(description="The expected number of results; null without a result so far.")
    low: float | None = Field(description="The lower end of a central 80 % interval of the number.")
    high: float | None = Field(description="The upper end of this interval.")
    never: float | None = Field(description="The expected number of trials in flight whose results never arrive.")
    unknown: str | None = Field(description="Why there is no forecast.")


class Final(BaseModel):
    """A forecast of the value of a running trial at the last step of its learning curve."""

    number: int = Field(description="The trial's number.")
    mean: float
    std: float = Field(description="The standard deviation, with observation noise.")


class FinalsAnswer(BaseModel):
    """Forecasts of the values of running trials at the last step of their learning curves."""

    step: int | None = Field(description="The last step; null if the study has no learning curves.")
    finals: list[Final] = Field(description="Trials without a forecast are left out.")
    unknown: str | None = Field(description="Why there are no forecasts.")


class Importance(BaseModel):
    """The total effect of a parameter: its share of the variance of the model. The sum over parameters may exceed 1."""

    name: str = Field(description="The parameter's name.")
    low: float = Field(description="The 5 % quantile over draws of the model.")
    middle: float = Field(description="The median.")
    high: float = Field(description="The 95 % quantile.")


class ImportanceAnswer(BaseModel):
    """The importance of each parameter."""

    importance: list[Importance] = Field(description="The most important parameter first, without constants.")
    context: dict[str, Any] | None = Field(description="The context of the best trial, at which the model is used.")
    unknown: str | None = Field(description="Why the importance is not known.")


class Counts(BaseModel):
    """Numbers of trials by state."""

    pending: int
    observed: int
    failed: int
    abandoned: int
    stopped: int
    withdrawn: int


class UserAnswer(BaseModel):
    """The user of the token."""

    name: str | None = Field(description="The name of the user; null for a token without a user name.")
    role: Role


class Goal(BaseModel):
    """A declared outcome."""

    name: str
    goal: Literal["maximize", "minimize", "within", "record"]
    low: float | None
    high: float | None


class StudyName(BaseModel):
    """A study of the store."""

    name: str


class StudyNames(BaseModel):
    """A page of the studies of the store, the oldest first."""

    studies: list[StudyName]
    next: int | None = Field(description="`start` of the request for the next page; null on the last page.")


class StudyAnswer(BaseModel):
    """The current state of a study."""

    name: str
    study_id: int = Field(description="Drawn at random: a study that is deleted and created again gets another id.")
    optimizer: str = Field(description="The class of the optimizer.")
    direction: Literal["maximize", "minimize"]
    clock: Literal["iterations", "seconds"]
    now: float = Field(description="The server's time, in seconds since 1970.")
    revision: int = Field(description="The number of the present problem: 1, and one more after each revision.")
    events: int = Field(description="The number of events in the log.")
    trials: int = Field(description="The number of trials in all states.")
    counts: Counts
    best: TrialAnswer | None
    pareto: list[int] | None = Field(description=_PARETO)
    parameters: list[str] | None = Field(description="The names of the parameters; null for candidates without names.")
    outcomes: list[Goal] = Field(description="Empty if the study has no outcomes.")
    steps: int | None = Field(description="The last step of learning curves; null if the study has none.")
    choices: list[str] | None = Field(
        description="The choices between groups of parameters, with names joined by dots; null if params are flat."
    )


class DefinitionAnswer(BaseModel):
    """The definition of a study."""

    problem: dict[str, Any] = Field(description="The space or the candidates, and the direction.")
    strategy: dict[str, Any] = Field(description="The class of the optimizer, and its settings.")
    stopping: dict[str, Any] | None = Field(description="The rule that stops trials; null without a rule.")
    seed: int


class Problem(BaseModel):
    """The description of a problem."""

    title: str
    status: int
    detail: str = Field(description="The problem, and what to send instead.")
    error: str | None = Field(default=None, description="The class of the error, if belated raised it.")
    # The description has this schema at each status, so it does not contain the schema of trials.
    trials: list[dict[str, Any]] | None = Field(
        default=None,
        description="After a conflict: the trials as they are, as `TrialAnswer`. If trials have changed, only those.",
    )
