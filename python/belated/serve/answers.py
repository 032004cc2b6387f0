"""Information about a study, as JSON data for answers. All functions of this module run in a study's thread."""

import time
from bisect import bisect_left
from typing import Any, get_args

from belated._core import NumericalError
from belated.optimizers.marks import marked_of
from belated.optimizers.outcomes import is_within_bounds, missing
from belated.optimizers.report import merged_attrs
from belated.optimizers.tables.table import row_at
from belated.optimizers.trial import Trial
from belated.serve.messages import Page, State
from belated.serve.problems import as_json
from belated.space.arguments import finite
from belated.space.space import Space
from belated.study.study import Study

#: A page of trials ends after this number of bytes of JSON, even if the request allows more trials.
LARGEST_PAGE = 4 << 20

#: The model of a study with more values is not used, because other requests for the study would wait too long.
MOST_VALUES = 1000

# : For the same reason, importance is not computed for more parameters than this.
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
    """Return the requested trials of a study in the order of their numbers."""
    # The answer contains the number of the last event that it includes, so the store must still have all events up to
    # this number after a crash.
    study._log.sync_to_disk()
    log = study._log
    numbers = log.numbers(page.state)
    if page.since > 0:
        wanted = set(numbers)
        numbers = [number for number in log.history.changed(page.since) if number in wanted]
    first = bisect_left(numbers, page.start)
    trials: list[dict[str, Any]] = []
    size = 0
    for number in numbers[first : first + page.limit]:
        trial = _trial(study, number)
        size += len(as_json(trial))
        if trials and size > LARGEST_PAGE:
            break
        trials.append(trial)
    rest = numbers[first + len(trials) :]
    return {"trials": trials, "next": rest[0] if rest else None, "events": log.n_events()}


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
    lease = record.expires_at
    if lease is not None and study.clock == "seconds":
        # Clients may give the times of the study's clock, so count the lease from the start by the server's clock.
        lease = started_at + (lease - record.suggested_at)
    outcomes = study._problem.outcomes
    return data | {
        "outcomes": {
            name: {"state": facts[0], "value": facts[1], "std": facts[2], "withdrawal": _withdrawal(facts[5])}
            for name, facts in zip(outcomes, record.outcomes, strict=True)
        },
        "missing": missing(outcomes, record),
        "within_bounds": is_within_bounds(outcomes, record),
        "lease_ends_at": lease,
        "lease_ended": record.state == "pending" and lease is not None and time.time() > lease,
        "context": None if contexts is None else contexts.params_at(list(record.context)),
        "fidelity": study._problem_of(record.era_of_fidelity).fidelity_of(record.fidelity),
        "attrs": merged_attrs(record.attrs),
        "remarks": [{"text": text, "at": at, "by": by} for text, at, by in record.remarks],
        "warnings": [
            {"number": number, "outcome": each.outcome, "text": each.text, "low": each.low, "high": each.high}
            for each in marked_of(outcomes, record)
        ],
        "curve": [(each, finite(value)) for each, value in record.curve if step in (None, each)],
        "left_out": record.left_out,
        "forbidden": study._why_forbidden(record),
        "error": record.error and dict(zip(("type", "message", "traceback"), record.error, strict=True)),
        "withdrawal": _withdrawal(record.withdrawal),
        "delay": None if record.observed_at is None else finite(record.observed_at - record.suggested_at),
        "started_at": started_at,
        "changed_at": changed_at,
    }


def _withdrawal(found: tuple[Any, ...] | None) -> dict[str, Any] | None:
    return None if found is None else dict(zip(("state", "value", "reason", "at"), found, strict=True))
