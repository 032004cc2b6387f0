"""The trials of a study that are out, as a table and as a page to print."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from belated._core import DelayDistribution, TrialRecord
from belated.optimizers.log import Log
from belated.optimizers.outcomes import missing
from belated.optimizers.problem import Problem
from belated.optimizers.tables.table import REMARKS, imported_pandas, trial_columns
from belated.optimizers.trial import html_table, utc
from belated.short_repr import printable

_STYLE = """
body { font: 10pt sans-serif; margin: 1cm; }
table { border-collapse: collapse; width: 100%; }
th, td { border: 0.5pt solid black; padding: 4pt; text-align: left; }
thead { display: table-header-group; }
tr { break-inside: avoid; }
td:nth-last-child(-n+FILLED) { min-width: 3cm; }
@page { size: A4 landscape; margin: 1cm; }
@media print { body { margin: 0; } }
"""


class Source(NamedTuple):
    """The study of a worklist: its name, its id, and the number of its events."""

    study: str
    study_id: str
    as_of: int


class Due(NamedTuple):
    """When the result of a trial is due, in seconds since 1970."""

    at: float | None
    source: str | None


def worklist(
    source: Source, log: Log, problem: Problem, problem_of: Callable[[int], Problem], forbidden: Mapping[int, str]
) -> Any:
    """Return the pending trials as a DataFrame, for `Study.worklist`.

    `problem_of` returns the problem after a number of revisions, and `forbidden` has the reasons for forbidden trials.
    """
    pandas = imported_pandas("worklist")
    now = problem.wall_time()
    out = [log.trial(number) for number in log.numbers("pending")]
    delays, late = log.lateness(now)
    found = sorted(
        ((record, due_of(record, delays, now)) for record in out),
        key=lambda each: (each[1].at is None, each[1].at or 0.0, each[0].number),
    )
    columns = trial_columns(problem, [record for record, _ in found], None, False, problem_of)
    kept: dict[str, Any] = {"study": [source.study] * len(found), "study_id": [source.study_id] * len(found)}
    kept |= {"number": columns["number"], "as_of": [source.as_of] * len(found)}
    kept |= {name: columns[name] for name in columns if name == "index"}
    kept |= {name: cells for name, cells in columns.items() if name.startswith(("params_", "context_", "x_"))}
    kept |= {name: cells for name, cells in columns.items() if name == "fidelity" or name.startswith("attrs_")}
    if problem.outcomes:
        kept["missing"] = [", ".join(missing(problem.outcomes, record)) for record, _ in found]
    kept["since_utc"] = pandas.to_datetime([moment(record.started_at) for record, _ in found])
    kept["due_utc"] = pandas.to_datetime([moment(due.at) for _, due in found])
    kept["due_from"] = [due.source for _, due in found]
    kept["late"] = [record.number in late for record, _ in found]
    kept["forbidden"] = [forbidden.get(record.number, "") for record, _ in found]
    # The columns to fill in come last.
    if problem.outcomes:
        kept |= {f"outcome_{name}": columns[f"outcome_{name}"] for name in problem.outcomes}
    else:
        kept["value"] = [None] * len(found)
    kept[REMARKS] = [None] * len(found)
    return pandas.DataFrame(kept)


def worklist_page(
    source: Source, log: Log, problem: Problem, problem_of: Callable[[int], Problem], forbidden: Mapping[int, str]
) -> str:
    """Return the page for `Study.worklist_html`."""
    table = worklist(source, log, problem, problem_of, forbidden).drop(columns=["study", "study_id", "as_of"])
    table["late"] = ["late" if late else "" for late in table["late"]]
    if not any(table["forbidden"]):
        table = table.drop(columns="forbidden")
    names = [printable(name_of(column)) for column in table.columns]
    head = [
        {"since_utc": "since (UTC)", "due_utc": "due (UTC)", "due_from": "due by"}.get(each, each) for each in names
    ]
    rows = list(zip(*(map(_printed, table[column]) for column in table.columns), strict=True))
    written = moment(problem.wall_time())
    n_forbidden = sum(map(bool, table["forbidden"])) if "forbidden" in table else 0
    warning = f", {n_forbidden} of them forbidden: do not run these" if n_forbidden else ""
    caption = f"{len(rows)} trials are out{warning}; written on {_printed(written)} UTC, as of event {source.as_of}"
    body = f"<h1>{html.escape(source.study)}</h1><p>{caption}</p>{html_table(head, rows)}"
    n_filled = max(len(problem.outcomes), 1) + 1
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(source.study)}</title>'
        f"<style>{_STYLE.replace('FILLED', str(n_filled))}</style></head><body>{body}</body></html>"
    )


def name_of(column: str) -> str:
    for prefix in ("params_", "context_", "attrs_", "outcome_"):
        if column.startswith(prefix):
            return column.removeprefix(prefix)
    return column


def due_of(record: TrialRecord, delays: DelayDistribution, now: float) -> Due:
    if record.expires_at is not None:
        return Due(record.expires_at, "lease")
    if not record.suggested or record.started_at is None:
        return Due(None, None)
    remaining = delays.remaining(max(now - record.started_at, 0.0))
    return Due(None, None) if remaining is None else Due(now + remaining[0], "delays")


def moment(seconds: float | None) -> datetime | None:
    """Return a time in UTC, without a time zone, rounded to seconds."""
    time = utc(seconds)
    return None if time is None else (time + timedelta(seconds=0.5)).replace(microsecond=0, tzinfo=None)


def _printed(cell: Any) -> str:
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, datetime):
        return f"{cell:%Y-%m-%d %H:%M}"
    return f"{cell:.6g}" if isinstance(cell, float) else printable(str(cell))
