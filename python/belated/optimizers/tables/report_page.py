"""A page about a search to print: the best trial, what came, what is out, what changed, pictures and all trials."""

from __future__ import annotations

import base64
import html
import io
import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from importlib import import_module
from importlib.resources import files
from string import Template
from typing import Any

from belated._core import InvalidSetting, TrialRecord
from belated.optimizers.marks import marked_of
from belated.optimizers.outcomes import Minimize, Outcomes, bounds_of, is_beyond, missing, objectives
from belated.optimizers.tables.table import run_prefix, trial_columns
from belated.optimizers.tables.worklist import due_of, moment, name_of
from belated.optimizers.trial import front_text, html_table
from belated.short_repr import printable, short_repr
from belated.space.arguments import as_timedelta, whole_number
from belated.space.dimensions import Real
from belated.space.space import Space

# Columns of `trials_dataframe` that the page lacks, those that are notes, and the names of others. The last columns are
# those with another name.
_HIDDEN = ("suggested_at", "observed_at", "delay", "outside", "pareto")
_NOTES = ("error", "remarks", "left_out", "withdrawn_", "attrs_")
_HEADS = {"started_at": "started", "started_by": "started by", "finished_at": "ended", "finished_by": "by"}

# More columns of a point become one, a longer text is cut, a number with more digits after the point has an exponent,
# and at most this number of parameters is drawn.
_NUMBER = re.compile(r"[-+]?[\d.]+(e[-+]\d+)?|\d{4}-\d\d-\d\d \d\d:\d\d")
_MOST_COLUMNS, _LONGEST, _MOST_DIGITS, _MOST_DRAWN = 10, 300, 6, 4


def report_page(search: Any, since: Any) -> str:
    """Return the page for `Optimizer.report_html`."""
    best, log = [trial.number for trial in search._best_trials()], search._current_log()
    problem, now, n_events = search._problem, search._problem.wall_time(), log.n_events()
    period = _period(since, n_events, now)
    came, changes, n_started = _happened(search, log.events(0, n_events), *period[:2])
    records = [log.trial(number) for number in log.numbers(None)]
    delays, late = log.lateness(now)
    marked = [each for record in records for each in marked_of(problem.outcomes, record)]
    forbidden = [[str(it.number), why] for it in records if (why := search._why_forbidden(it)) is not None]

    def known(record: TrialRecord) -> dict[str, float]:
        values = zip(problem.outcomes, record.outcomes, strict=True)
        return {name: value for name, (_, value, *_) in values if value is not None}

    pending = {record.number for record in records if record.state == "pending"}
    flags = {
        "front" if problem.front else "best": {*best},
        "moved": {record.number for record in records if record.run is not None},
        "outside the space": {record.number for record in records if record.outside},
        "beyond a bound": {record.number for record in records if is_beyond(problem.outcomes, known(record))},
        "late": pending.intersection(late),
        "forbidden": {int(number) for number, _ in forbidden},
        "marked": {each.number for each in marked},
    }

    def table(numbers: Sequence[int], more: dict[str, list[str]]) -> str:
        shown = [records[number] for number in numbers]
        states = [", ".join([it.state, *(name for name in flags if it.number in flags[name])]) for it in shown]
        columns = _columns(search, shown, {"state": states} | more)
        bold = [i for i, number in enumerate(numbers) if number in best and len(shown) > len(best)]
        return _table(
            [_HEADS.get(name, name_of(name)) for name in columns], list(zip(*columns.values(), strict=True)), bold
        )

    due = {number: due_of(records[number], delays, now) for number in pending}
    out = sorted(due, key=lambda number: (due[number].at is None, due[number].at or 0.0, number))
    starts = [records[number].started_at for number in out]
    ages = ["" if start is None else f"{(now - start) / 86400:.1f}" for start in starts]
    dues = {
        "due": [_shown(moment(due[number].at)) for number in out],
        "due from": [due[number].source or "" for number in out],
    }
    forecast = search._delays_of(None, True).forecast(timedelta(days=7))
    uncounted = len(out) - forecast.n_pending
    latest = sorted(came, key=lambda number: (came[number] or 0.0, number), reverse=True)
    counts = Counter(record.state for record in records)
    goals = ", ".join(f"{name} ({_goal(problem.outcomes, name)})" for name, goal in problem.outcomes.items())
    n_new = sum(number in came for number in best)
    functions = [] if search._constraints is not None else list(getattr(search, "_stored_constraints", ()))
    caution = f". The functions of the constraints {functions} were not passed, so violations are not recognised"
    texts = {
        "title": str(vars(search).get("name", search._strategy_name)),
        "written": f"{_shown(moment(now))}, as of event {n_events}",
        "goal": f"{search._strategy_name}, {goals or f'{problem.direction} the value'}",
        "counts": ", ".join([f"{len(records)} trials", *(f"{n} {state}" for state, n in counts.items())])
        + caution * bool(functions),
        "since": period[2],
        "news": f"{n_started} trials started, {len(came)} have new results, {len(changes)} changes; "
        + (f"{n_new} of the front are new" if problem.front else f"the best trial is {'' if n_new else 'not '}new"),
        "best_title": front_text(len(best)).capitalize() if problem.front else "Best trial",
        "forecast": f"{forecast}" + (f"; {uncounted} more were added, or their lease has ended" if uncounted else ""),
    }
    tables = {
        "best": table(best, {}),
        "came": table(latest, {}),
        "out": table(out, {"age (days)": ages, **dues}),
        "marked": _table(["marked values"], [[each.text] for each in marked]),
        "forbidden": _table(["trial", "do not run, because"], forbidden),
        "changes": _table(["time", "by", "trial", "change"], changes),
        "trials": table(range(len(records)), {}),
        "pictures": _pictures(search, search.trial((*best, len(records) - 1)[0]).context if records else None),
    }
    page = Template(files(__package__).joinpath("report_page.html").read_text(encoding="utf-8"))
    return page.substitute({name: html.escape(printable(text)) for name, text in texts.items()} | tables)


def _period(since: Any, n_events: int, now: float) -> tuple[int, float, str]:
    """Return the number and the time of the first events of a period, and its beginning as text."""
    first, given, start = whole_number(since), as_timedelta(since), math.nan
    if first is not None and 0 <= first <= n_events:
        return first, -math.inf, f"event {first}"
    with suppress(ValueError, OverflowError, OSError):  # of datetimes such as pandas.NaT and datetime.min
        if isinstance(given, (datetime, timedelta)):
            start = given.timestamp() if isinstance(given, datetime) else now - given.total_seconds()
    if not start <= now:
        raise InvalidSetting(
            f"since={short_repr(since)} is not usable: pass a datetime or a timedelta before now, or a number of "
            f"events from 0 to {n_events}"
        )
    return 0, start, _shown(moment(start)) or "the beginning"


def _goal(outcomes: Outcomes, name: str) -> str:
    """Return the goal of an outcome in words."""
    low, high = bounds_of(outcomes, name)
    texts = []
    if name in objectives(outcomes):
        texts.append("minimized" if isinstance(outcomes[name], Minimize) else "maximized")
    texts += [f"at least {_shown(low)}"] if low is not None else []
    texts += [f"at most {_shown(high)}"] if high is not None else []
    return ", ".join(texts) or "recorded"


def _happened(
    search: Any, events: Sequence[str], first: int, start: float
) -> tuple[dict[int, float | None], list[list[str]], int]:
    """Return when results came, by trial; the rows of changes; and the number of trials that started, in a period."""
    came: dict[int, float | None] = {}
    values: dict[Any, float | None] = {}
    changes, n_started, n_trials, era = [], 0, 0, 0
    for i, text in enumerate(events):
        event = json.loads(text)
        [(kind, what)] = event["what"].items()
        at, number, has_result = event.get("at"), what.get("trial"), False
        is_new = i >= first and (-math.inf if at is None else at) >= start
        found = [f"remark: {what['remark']}"] if what.get("remark") else []
        found += ["marked values were confirmed"] if what.get("confirms") else []
        if kind in ("Suggested", "Added"):
            number, n_trials, n_started = n_trials, n_trials + 1, n_started + is_new
        elif kind == "Revised":
            era += 1
            found = [f"revision {era + 1}: {search._revision_text(era) or 'nothing changed'}"]
        names: list[Any] = [*search._problem_of(era).outcomes] or [None]
        for position, given in what.get("results", ()):
            if position < len(names):  # the last position is the trial as a whole
                name, result = names[position], {"New": given} if kind == "Added" else given
                happened = result if isinstance(result, str) else next(iter(result))
                old, value = values.get((number, name)), None if happened == result else result[happened].get("value")
                values[number, name] = value
                has_result |= happened in ("New", "Failed", "Stopped")
                if happened in ("Amended", "Withdrawn", "Abandoned"):
                    to = f" to {_shown(value)}" if value is not None and value != old else ""
                    found.append(f"{name or 'value'} {_shown(old)} {happened.lower()}{to}".replace("  ", " "))
        found += [f"reason: {what['data']['reason']}"] if found and "reason" in what.get("data", ()) else []
        if is_new and has_result:
            came[number] = at
        if is_new and found:
            row = [_shown(moment(at)), event.get("by") or "", "" if number is None else str(number), "; ".join(found)]
            changes.append(row)
    return came, changes, n_started


def _columns(search: Any, records: Sequence[TrialRecord], more: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the columns of trials by their names; `more` has further columns."""
    domain, contexts = search._problem.domain, search._problem.context_space
    found = trial_columns(search._problem, records, None, False, search._problem_of) | more
    found["missing"] = [", ".join(missing(search._problem.outcomes, record)) for record in records]
    found["remarks"] = ["; ".join(text for text, *_ in record.remarks) for record in records]
    prefix = f"params_{run_prefix(domain)}" if isinstance(domain, Space) else ""
    for name in domain if isinstance(domain, Space) else ():
        if (run := found.pop(f"{prefix}{name}", None)) is not None:
            both = zip(found[f"params_{name}"], run, records, strict=True)
            found[f"params_{name}"] = [a if record.run is None else b for a, b, record in both]
    for prefix, space in (("params_", domain), ("context_", contexts)):
        for name, dimension in space.items() if isinstance(space, Space) else ():
            found[f"{prefix}{name}"] = [_shown(cell, dimension) for cell in found[f"{prefix}{name}"]]
    points = [name for name in found if name.startswith("params_")]
    notes = [name for name in found if name.startswith(_NOTES)]
    for title, names in {"point": points if len(points) > _MOST_COLUMNS else [], "notes": notes}.items():
        cells = [
            [
                text and f"{name_of(name)}: {text[:_LONGEST]}{'…' * (len(text) > _LONGEST)}"
                for text in map(_shown, found.pop(name))
            ]
            for name in names
        ]
        found[title] = ["; ".join(filter(None, row)) for row in zip(*cells, strict=True)] or [""] * len(records)
    hidden = {*_HIDDEN, *(("value", "std") if search._problem.outcomes else ())}
    shown = sorted(found.keys() - hidden, key=lambda name: (name == "notes", name in _HEADS, [*found].index(name)))
    return {name: list(map(_shown, found[name])) for name in shown}


def _shown(cell: Any, dimension: Any = None) -> str:
    """Return a cell as text. A number has the digits of a thousandth of the range of its parameter, or five digits."""
    if isinstance(cell, datetime):
        return f"{cell:%Y-%m-%d %H:%M}"
    if not isinstance(cell, float):
        return "" if cell is None else printable(" ".join(str(cell).split()))
    digits = _MOST_DIGITS + 1
    if isinstance(dimension, Real) and not dimension.log and dimension.step is None and dimension.high > dimension.low:
        digits = 3 - math.floor(math.log10(dimension.high - dimension.low))
    return (
        f"{cell:.{4 if dimension else 5}g}"
        if digits > _MOST_DIGITS
        else f"{round(cell, digits) + 0.0:.{max(digits, 0)}f}"
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], bold: Sequence[int] = ()) -> str:
    """Return a table without its empty columns, in which numbers are aligned to the right."""
    columns = {i: list(map(_shown, column)) for i, column in enumerate(zip(*rows, strict=True)) if any(column)}
    told = [[cell for cell in cells if re.search(r"\d", cell)] for cells in columns.values()]
    right = [j for j, cells in enumerate(told) if cells and all(map(_NUMBER.fullmatch, cells))]
    body = zip(*columns.values(), strict=True)
    return html_table([_shown(head[i]) for i in columns], body, bold, right) if rows else "<p>None.</p>"


def _pictures(search: Any, context: Any) -> str:
    """Return four figures. They do not use pyplot, so that neither a window nor a notebook shows them."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return "<p>The pictures are left out, because matplotlib is not installed: pip install matplotlib.</p>"
    plotting = import_module("belated.plotting")  # which imports optimizers
    front, domain = search._problem.front, search.domain
    options: Any = {"context": context, "outcome": front[0] if front else None}

    def draw_slices(figure: Any) -> None:
        names = [name for name, each in domain.items() if each.width] if isinstance(domain, Space) else []
        if search._has_model and len(names) > _MOST_DRAWN:
            names = plotting.figures.by_importance(search, names, **options, caller="report_html")
        names = names[:_MOST_DRAWN]
        axes = figure.subplots(1 + (len(names) > 2), 1 + (len(names) > 1), sharey=True, squeeze=False).ravel()
        for unused in axes[len(names) :]:
            unused.remove()
        made = plotting.plot_slice(search, names or None, axes[: len(names)], **options)
        if (legend := made[-1].get_legend()) is not None:
            legend.remove()
            plotting.figures.add_legend(made, below=True)

    second: Any = ("Delays", lambda figure: plotting.plot_delays(search, figure.subplots()))
    if front:
        second = ("Front", lambda figure: plotting.plot_pareto(search, figure.subplots(1, 2 * len(front) - 3)))
    found = ""
    for title, draw in (
        ("Results so far", lambda figure: plotting.plot_convergence(search, figure.subplots())),
        second,
        ("Values against parameters", draw_slices),
        ("Importance of parameters", lambda figure: plotting.plot_importance(search, figure.subplots(), **options)),
    ):
        figure, file = Figure(figsize=(7.0, 5.0), layout="constrained"), io.BytesIO()
        try:
            draw(figure)
            figure.savefig(file, format="png", dpi=130)
            content = f'<img alt="{title}" src="data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}">'
        except Exception as error:  # the page is written without this picture
            content = f"<p>Not drawn: {html.escape(_shown(str(error))[:_LONGEST])}</p>"
        found += f"<figure><figcaption>{title}</figcaption>{content}</figure>"
    return found
