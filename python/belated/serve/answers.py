"""Information about a study, as JSON data for answers. All functions of this module run in a study's thread."""

import time
from bisect import bisect_left
from typing import Any, get_args

import numpy as np

from belated._core import BelatedError, InvalidSetting, NumericalError, TrialRecord, facts_of
from belated.optimizers.actions import actions_of
from belated.optimizers.marks import Marked, marked_of, marked_values
from belated.optimizers.outcomes import is_within_bounds, missing, position
from belated.optimizers.report import merged_attrs
from belated.optimizers.request import Facts, ObserveArguments, Submission
from belated.optimizers.tables.cells import readings_of
from belated.optimizers.tables.files import table_of_rows
from belated.optimizers.tables.table import row_at
from belated.optimizers.trial import Trial
from belated.serve.messages import Page, State, Table
from belated.serve.problems import as_json
from belated.space.arguments import finite
from belated.space.space import Space
from belated.study.commands import text_columns
from belated.study.study import Sent, Study

#: A page of trials ends after this number of bytes of JSON, even if the request allows more trials.
LARGEST_PAGE = 4 << 20

#: The model of a study with more values is not used, because other requests for the study would wait too long.
MOST_VALUES = 1000

#: Maximum number of attributes that a summary of a table has of each trial. The page's worklist has as many.
MOST_WELLS = 6

#: For the same reason, importance is not computed for more parameters than this.
MOST_PARAMS = 200


def study_as_data(study: Study) -> dict[str, Any]:
    """Return a study in the form of `messages.StudyAnswer`."""
    log, problem = study._current_log(), study._problem
    best = log.best()
    nesting = problem.domain.nesting if isinstance(problem.domain, Space) else None
    return {
        "name": study.name,
        "study_id": log.id,
        "optimizer": study._strategy_name,
        "direction": problem.direction,
        "clock": problem.clock,
        "now": time.time(),
        "revision": len(log.stages),
        "events": log.n_events(),
        "trials": len(log),
        "counts": {state: len(log.numbers(state)) for state in get_args(State)},
        "best": None if best is None else _trial(study, best),
        "pareto": study._numbers_in_front(),
        "parameters": list(problem.domain) if isinstance(problem.domain, Space) else None,
        "outcomes": [
            dict(zip(("name", "goal", "low", "high"), (name, *goal.core), strict=True))
            for name, goal in problem.outcomes.items()
        ],
        "choices": None if nesting is None else sorted(nesting.choices),
    }


def definition_as_data(study: Study) -> dict[str, Any]:
    """Return a study's definition as it is stored, after the last revision."""
    study.sync()
    study._header()  # raises an error if the study was deleted
    stored = study._log.stages[-1].definition
    return {name: part for name, part in stored.items() if name not in ("attrs", "revision")}


def best_as_data(study: Study) -> dict[str, Any]:
    """Return the best trial of a study, or the numbers of the trials in its front."""
    best = study._current_log().best()
    return {"trial": None if best is None else _trial(study, best), "pareto": study._numbers_in_front()}


def forecast_as_data(study: Study) -> dict[str, Any]:
    """Return the forecast for the trials of a study that are in flight."""
    delays = study.delays_
    forecast = delays.forecast()
    names = ("n_pending", "by", "expected", "low", "high", "never", "unknown")
    return {"now": delays.now} | {name: getattr(forecast, name) for name in names}


def finals_as_data(study: Study) -> dict[str, Any]:
    """Return the forecasts of the values of running trials at the last step of their curves."""
    log, problem = study._current_log(), study._problem
    if problem.curve is None:
        return {"step": None, "finals": [], "unknown": "the study has no learning curves"}
    unknown, found = _no_model(study), {}
    numbers = [number for number in log.numbers("pending") if log.trial(number).curve] if unknown is None else []
    try:
        found = {number: log.forecast_value(number, problem.wall_time()) for number in numbers}
    except NumericalError as error:
        unknown = str(error)
    finals = [{"number": number, "mean": each[0], "std": each[1]} for number, each in found.items() if each]
    return {"step": problem.curve.steps, "finals": finals, "unknown": unknown}


def importance_as_data(study: Study) -> dict[str, Any]:
    """Return the importance of each parameter, or why it is not known."""
    log, domain, contexts = study._current_log(), study._problem.domain, study._problem.context_space
    unknown, context, importance = _no_model(study), None, []
    if not isinstance(domain, Space):
        unknown = "the study has candidates and no parameters"
    elif len(domain) > MOST_PARAMS:
        unknown = f"the study has more than {MOST_PARAMS} parameters, whose importance would take long"
    elif study._problem.front:
        unknown = "the study has several objectives"
    elif unknown is None:
        best = log.best()
        if contexts is not None and best is not None:
            context = contexts.params_at(list(log.trial(best).context))
        try:
            names, quantiles = study._effect_intervals(context, "importance")
        except NumericalError as error:
            unknown = str(error)
        else:
            named = [(name, *each) for name, each in zip(names, quantiles.T.tolist(), strict=True)]
            named.sort(key=lambda each: -each[2])
            importance = [dict(zip(("name", "low", "middle", "high"), each, strict=True)) for each in named]
    return {"importance": importance, "context": context, "unknown": unknown}


def _no_model(study: Study) -> str | None:
    """Return why a request does not use the model of a study; None if it does."""
    log = study._current_log()
    n_values = len(log.numbers("observed"))
    if study._problem.outcomes:
        n_values = sum(log.trial(number).value is not None for number in log.numbers(None))
    if not study._has_model:
        return f"{study._strategy_name} has no model"
    if n_values == 0:
        return "no trial has a value"
    if n_values > MOST_VALUES:
        return f"the study has more than {MOST_VALUES:,} values, and its model would take long"
    return None


def trial_as_data(study: Study, number: int, step: int | None = None) -> dict[str, Any]:
    """Return the trial with this number, with one step of its curve if this step is given.

    Raise UnknownTrial if the trial does not exist.
    """
    study.sync()
    return _trial(study, study._number_of(number), step)


def trials_as_data(study: Study, trials: list[Trial]) -> dict[str, Any]:
    """Return trials that were started."""
    log = study._log
    started = [_trial(study, trial.number) for trial in trials]
    return {"study_id": log.id, "revision": len(log.stages), "trials": started}


def page_as_data(study: Study, page: Page) -> dict[str, Any]:
    """Return the requested trials of a study in the requested order."""
    # The answer contains the number of the last event that it includes, so the store must still have all events up to
    # this number after a crash.
    study._log.sync_to_disk()
    log = study._log
    numbers = log.numbers(page.state)
    if page.since > 0:
        wanted = set(numbers)
        numbers = [number for number in log.history.changed(page.since) if number in wanted]
    if page.marked:
        marked = set(log.core.marked())
        numbers = [number for number in numbers if number in marked]
    if page.late or page.forbidden:
        wanted = set(numbers)
        numbers = [number for number in log.numbers("pending") if number in wanted]
    if page.late:
        numbers = [number for number in numbers if _is_late(study, log.trial(number))]
    if page.forbidden:
        numbers = [number for number in numbers if study._why_forbidden(log.trial(number)) is not None]
    numbers = numbers[bisect_left(numbers, page.start) :]
    keys = None if page.sort == "number" else _keys(study, page)
    if keys is not None:
        numbers = _sorted(numbers, keys, page)
    elif page.descending or page.after is not None or page.outcome is not None:
        raise InvalidSetting('descending, after and outcome are for another order: pass sort="value" or "changed"')
    trials: list[dict[str, Any]] = []
    size = 0
    for number in numbers[: page.limit]:
        trial = _trial(study, number)
        size += len(as_json(trial))
        if trials and size > LARGEST_PAGE:
            break
        trials.append(trial)
    rest = numbers[len(trials) :]
    found: dict[str, Any] = {
        "trials": trials,
        "next": None,
        "after": None,
        "total": len(numbers),
        "events": log.n_events(),
    }
    if rest and keys is None:
        found["next"] = rest[0]
    elif rest and keys is not None:
        last = trials[-1]["number"]
        found["after"] = {"number": last, "value": keys[last]}
    return found


def _keys(study: Study, page: Page) -> list[float | None]:
    """Return what the trials are sorted by."""
    log, outcomes = study._log, study._problem.outcomes
    if page.sort == "changed":
        return [float(log.history.last(number)) for number in range(len(log))]
    return log.core.values(None if page.outcome is None else position(outcomes, page.outcome))


def _sorted(numbers: list[int], keys: list[float | None], page: Page) -> list[int]:
    """Return the trials after `page.after`, by their keys. Trials without a key are the last."""
    sign = -1.0 if page.descending else 1.0
    of_keys = np.array([np.inf if key is None else sign * key for key in keys])
    found = np.array(numbers, dtype=int)
    if page.after is not None:
        last = np.inf if page.after_value is None else sign * page.after_value
        key = of_keys[found]
        found = found[(key > last) | ((key == last) & (found > page.after))]
    ordered: list[int] = found[np.lexsort((found, of_keys[found]))].tolist()
    return ordered


def _lease_end(study: Study, record: TrialRecord) -> float | None:
    """Return when the lease of a trial ends, in seconds since 1970."""
    lease = record.expires_at
    if lease is None or study.clock != "seconds":
        return lease
    # Clients may give the times of the study's clock, so count the lease from the start by the server's clock.
    return study._log.history.written(record.number)[0] + (lease - record.suggested_at)


def _is_late(study: Study, record: TrialRecord) -> bool:
    lease = _lease_end(study, record)
    return record.state == "pending" and lease is not None and time.time() > lease


def _trial(study: Study, number: int, step: int | None = None) -> dict[str, Any]:
    record = study._log.trial(number)
    problem = study._problem_of(record.era)
    domain, contexts = problem.domain, study._problem_of(record.era_of_context).context_space
    started_at, changed_at = study._log.history.written(number)
    data: dict[str, Any] = dict.fromkeys(("params", "params_run", "index", "index_run", "x", "x_run"))
    if isinstance(domain, Space):
        data["params"] = domain.params_of(record)
        of_run = study._problem_of(record.era_of_run).domain
        data["params_run"] = None if record.run is None else of_run.params_at(record.run)
        # A row number of an earlier problem may belong to another row now.
        data["index"] = record.place if isinstance(record.place, int) and problem is study._problem else None
    else:
        data["x"] = domain.params_of(record).tolist()
        place = row_at(problem, study._problem, record.place)
        data["index"] = place if isinstance(place, int) else None
        if record.run is not None:
            run = row_at(study._problem_of(record.era_of_run), study._problem, record.run)
            data["x_run" if isinstance(run, list) else "index_run"] = run
    # These entries have the same form in the record and in the answer.
    names = ("number", "state", "value", "std", "cost", "duration", "suggested_at", "observed_at", "ended_at")
    data |= {name: getattr(record, name) for name in (*names, "expires_at", "outside", "started_by", "finished_by")}
    lease = _lease_end(study, record)
    outcomes = study._problem.outcomes
    return data | {
        "outcomes": {
            name: {"state": facts[0], "value": facts[1], "std": facts[2], "withdrawal": _withdrawal(facts[5])}
            for name, facts in zip(outcomes, record.outcomes, strict=True)
        },
        "missing": missing(outcomes, record),
        "within_bounds": is_within_bounds(outcomes, record),
        "lease_ends_at": lease,
        "lease_ended": _is_late(study, record),
        "context": None if contexts is None else contexts.params_at(list(record.context)),
        "fidelity": study._problem_of(record.era_of_fidelity).fidelity_of(record.fidelity),
        "attrs": merged_attrs(record.attrs),
        "remarks": [{"text": text, "at": at, "by": by} for text, at, by in record.remarks],
        "warnings": list(map(_warning, marked_of(outcomes, record))),
        "curve": [(each, finite(value)) for each, value in record.curve if step in (None, each)],
        "left_out": record.left_out,
        "forbidden": study._why_forbidden(record),
        "error": record.error and dict(zip(("type", "message", "traceback"), record.error, strict=True)),
        "withdrawal": _withdrawal(record.withdrawal),
        "delay": None if record.observed_at is None else finite(record.observed_at - record.suggested_at),
        "started_at": started_at,
        "changed_at": changed_at,
        "event": study._log.history.last(number) + 1,
    }


def _warning(mark: Marked) -> dict[str, Any]:
    return {name: getattr(mark, name) for name in ("number", "outcome", "text", "low", "high")}


def history_as_data(study: Study, number: int) -> dict[str, Any]:
    """Return the events of a trial."""
    study.sync()
    number = study._number_of(number)
    log, values, events = study._log, dict[str | None, float | None](), []
    for event in log.history.events_of(number):
        by, what, happened, step, text, confirmed = facts_of(log.events(event, event + 1)[0])
        outcomes = list(log.stages[log.history.n_revisions(event)].problem.outcomes)
        # In a study with outcomes, the position after the outcomes stands for the whole trial.
        names = [*outcomes, None]
        results = []
        for i, kind, value, std in happened:
            name = names[i]
            results.append({"outcome": name, "what": kind, "value": value, "std": std, "replaced": values.get(name)})
            values[name] = value
        is_failure = any(each["what"] == "failed" for each in results)
        events.append(
            {
                "event": event + 1,
                "at": log.history.written_at(event),
                "by": by,
                "what": what,
                "results": results,
                "step": None if step is None else step[0],
                "value": None if step is None else step[1],
                "remark": text if what == "noted" else None,
                "reason": None if what == "noted" or is_failure else text,
                "error": text if is_failure else None,
                "confirmed": [names[i] for i in confirmed],
            }
        )
    return {"number": number, "events": events}


def check_as_data(study: Study, number: int, text: str, outcome: str | None) -> dict[str, Any]:
    """Return the number in a text, and the warning that it would get as a value of a trial."""
    log, problem = study._current_log(), study._problem
    number = study._number_of(number)
    if problem.outcomes or outcome is not None:
        position(problem.outcomes, outcome)  # raises an error if the outcome was not declared
    readings, reason = readings_of(text)
    marks: list[Marked] = []
    unknown = _no_model(study)
    if reason is None:
        value: Any = readings[0] if outcome is None else {outcome: readings[0]}
        report = Submission("observe", number, None, ObserveArguments(value, Facts(), amend=True))
        try:
            for action in actions_of(report, problem, log.core):
                draft = log.validate(action, problem.wall_time(), unknown is None)
                marks = marked_values(problem.outcomes, number, [] if draft is None else draft.marks)
        except BelatedError as error:
            reason = str(error).removesuffix(" (nothing was changed)")
    return {
        "value": readings[0] if reason is None else None,
        "readings": readings,
        "reason": reason,
        "mark": _warning(marks[0]) if marks else None,
        "unknown": unknown,
    }


def table_as_data(study: Study, body: Table) -> dict[str, Any]:
    """Report the values of a table, and return a summary."""
    # If an earlier request with this key has written the values, return a summary that finds them unchanged.
    is_repeated = study._is_repeated("table")
    rows = [body.columns, *([_cell(cell) for cell in row] for row in body.rows)]
    table = table_of_rows(rows, "the table", body.decimal, text_columns(study))
    summary = study.observe(table, body.value, amend=body.amend, moved=body.moved, dry_run=body.dry_run)
    if is_repeated:
        summary = study._with(_sent=Sent()).observe(table, body.value, moved=body.moved, dry_run=True)
    names = ("new", "corrected", "unchanged", "empty", "moved", "noted", "ignored")
    return {name: getattr(summary, name) for name in names} | {
        "changes": [each._asdict() | {"attrs": _wells(study, each.number)} for each in summary.changes],
        "refused": [_plain(each._asdict()) for each in summary.refused],
        "marked": list(map(_warning, summary.marked)),
        "text": str(summary),
        "events": study._log.n_events(),
    }


def _wells(study: Study, number: int) -> dict[str, Any]:
    """Return the first short attributes of a trial, by which a person finds it."""
    found: dict[str, Any] = {}
    for name, each in merged_attrs(study._log.trial(number).attrs).items():
        if len(found) < MOST_WELLS and (type(each) in (int, float) or (isinstance(each, str) and len(each) <= 40)):
            found[name] = each
    return found


def _cell(cell: Any) -> Any:
    return None if isinstance(cell, str) and not cell.strip() else cell


def _plain(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the facts about a refused cell as JSON data."""
    known = (str, bool, int, float, type(None))
    return {name: each if isinstance(each, known) else str(each) for name, each in facts.items()}


def _withdrawal(found: tuple[Any, ...] | None) -> dict[str, Any] | None:
    return None if found is None else dict(zip(("state", "value", "reason", "at"), found, strict=True))
