"""Convert an export of studies in format 8, 10 or 11 to format 12: python scripts/convert_log.py OLD NEW

OLD is what ``belated study export`` of the earlier version printed, and ``belated study import`` of this version reads
NEW. Names, ids, definitions, attributes, times and keys are unchanged, and so are the digests in keys, because a digest
depends only on the arguments of a call. The events of one call with a key become one event, so later events may have
other numbers. An event whose time on the study's clock was not stored gets the time of the event before. The events of
formats 10 and 11 are unchanged.
"""

import argparse
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias

Fields: TypeAlias = dict[str, Any]

OLD, SAME, NEW = 8, (10, 11), 12
BODY = re.compile(r', "(definition|event)": ')
KEY = re.compile(r"observe:\d+(-.*)", flags=re.DOTALL)
DATA = ("cost", "duration", "point", "attrs")
CAN_BE_WITHDRAWN = ("Observed", "Failed", "Stopped")


@dataclass
class Result:
    """The result of one outcome in one trial."""

    state: str = "Pending"
    reading: dict[str, float] | None = None
    error: Fields | None = None
    has_withdrawn_failure: bool = False


def part(event: Fields, *names: str) -> Fields:
    """Return the fields of these names that are not absent."""
    return {name: event[name] for name in names if event.get(name) is not None}


def merged(first: Fields, second: Fields) -> Fields:
    """Return one event for two events of the same call. Results of the first event keep their kind."""
    one, other = (event["what"]["Resulted"] for event in (first, second))
    results = dict(map(tuple, one["results"]))
    for outcome, happened in other["results"]:
        (kind,) = results.get(outcome, happened)
        results[outcome] = {kind: next(iter(happened.values()))}
    report = one | {"results": [*map(list, results.items())], "data": other["data"] | one["data"]}
    return second | {"what": {"Resulted": report}}


class Converter:
    """Converts the events of one study.

    A method with the name of an event returns what happened in the new form, or None if the event has no effect.
    """

    def __init__(self, definition: Fields) -> None:
        self.trials: list[list[Result]] = []
        self.events: list[tuple[Fields, Fields]] = []
        self.n_read = 0
        self.now = 0.0
        self.declare(definition)

    def declare(self, definition: Fields) -> None:
        """Read the names of the outcomes, and the position of the objective."""
        outcomes = definition["problem"].get("outcomes") or []
        objectives = [i for i, (_, goal) in enumerate(outcomes) if goal["kind"] in ("Minimize", "Maximize")]
        self.names = [name for name, _ in outcomes]
        self.objective = (objectives[0] if len(objectives) == 1 else None) if outcomes else 0

    def add(self, facts: Fields, event: Fields) -> None:
        """Convert an event, whose line has these facts."""
        self.n_read += 1
        ((kind, inner),) = event.items()
        what = getattr(self, kind)(inner)
        for field in {"event", "added"} & set(inner):
            (inner,) = inner[field].values()
        self.now = inner.get("now", self.now)
        if what is None:
            return
        new = part(inner, "at") | {"now": self.now, "what": what}
        call = KEY.fullmatch(facts["key"] or "")
        if call:
            facts["key"] = f"observe:0{call[1]}"
        if call and self.events and self.events[-1][0]["key"] == facts["key"]:
            new = merged(self.events.pop()[1], new)
        self.events.append((facts, new))

    # Started trials and enqueued points.

    def Suggested(self, event: Fields) -> Fields:
        self.trials.append([Result() for _ in self.names or [""]])
        return {"Suggested": part(event, "point", "context", "fidelity", "expires_at", "queued", "note", "attrs")}

    def Added(self, event: Fields) -> Fields:
        observation = event.get("observation")
        return self.added(event, [] if observation is None else [(0, observation)], True)

    def AddedMeasured(self, event: Fields) -> Fields:
        return self.added(event["added"]["Added"], event["observations"], not event["complete"])

    def added(self, event: Fields, observations: Sequence[tuple[int, Fields]], awaited: bool) -> Fields:
        missing = "Pending" if awaited else "Abandoned"
        self.trials.append([Result(missing) for _ in self.names or [""]])
        data: Fields = {}
        for _, observation in observations:
            data = part(observation, *DATA) | data
        readings = [[outcome, observation["reading"]] for outcome, observation in observations]
        self.store(len(self.trials) - 1, [[outcome, {"New": reading}] for outcome, reading in readings], data)
        start = part(event, "point", "context", "fidelity", "attrs")
        return {"Added": start | {"results": readings, "awaited": awaited, "data": data}}

    def Enqueued(self, event: Fields) -> Fields:
        queued, given = part(event, "point", "fidelity", "attrs"), event.get("given")
        if given is not None:
            numbers = [each if i in given else None for i, each in enumerate(queued["point"]["numbers"])]
            queued["point"] = {"numbers": numbers}
        return {"Enqueued": queued | {"partial": given is not None}}

    # Results.

    def OfOutcome(self, event: Fields) -> Fields | None:
        ((kind, inner),) = event["event"].items()
        found: Fields | None = getattr(self, kind)(inner, event["outcome"])
        return found

    def Observed(self, event: Fields, outcome: int = 0, kind: str = "New") -> Fields | None:
        observation = event["observation"]
        results: list[Any] = [[outcome, {kind: observation["reading"]}]]
        if observation.get("point") is not None:
            # The other values of the trial belong to this point from now on.
            others = [(i, each) for i, each in enumerate(self.trials[event["number"]]) if i != outcome]
            results += [[i, {"Amended": each.reading}] for i, each in others if each.reading is not None]
        return self.resulted(event, results, part(observation, *DATA))

    def Amended(self, event: Fields, outcome: int = 0) -> Fields | None:
        return self.Observed(event, outcome, "Amended")

    def Failed(self, event: Fields, only: int | None = None) -> Fields | None:
        data = part(event, "error", "duration", "attrs")

        def is_news(it: Result) -> bool:
            news = it.state != "Failed" or ("error" in data and it.error is None) or "duration" in data
            repeats = it.has_withdrawn_failure and data.get("error") in (None, it.error)
            return news and not (it.state == "Withdrawn" and repeats)

        failed = [i for i in self.open(event, only) if is_news(self.trials[event["number"]][i])]
        return self.resulted(event, [[i, "Failed"] for i in failed], data, "Failed", only)

    def Abandoned(self, event: Fields, only: int | None = None) -> Fields | None:
        trial = self.trials[event["number"]]
        left = [i for i in self.open(event, only) if trial[i].state not in ("Abandoned", "Withdrawn")]
        return self.resulted(event, [[i, "Abandoned"] for i in left], {}, "Abandoned", only)

    def Stopped(self, event: Fields) -> Fields | None:
        trial = self.trials[event["number"]]
        results: list[Any] = [[i, "Stopped" if i == self.objective else "Abandoned"] for i in self.open(event, None)]
        changed = [[i, happened] for i, happened in results if trial[i].state != happened]
        return self.resulted(event, changed, {}, "Stopped")

    def Withdrawn(self, event: Fields, only: int | None = None) -> Fields | None:
        trial = self.trials[event["number"]]
        withdrawn = {"Withdrawn": {"awaited": any(each.state == "Pending" for each in trial)}}
        ended = [i for i, each in enumerate(trial) if only in (None, i) and each.state in CAN_BE_WITHDRAWN]
        return self.resulted(event, [[i, withdrawn] for i in ended], part(event, "reason"), withdrawn, only)

    def Reported(self, event: Fields) -> Fields:
        step = part(event, "step", "value")
        return {"Reported": {"trial": event["number"], "attempt": event.get("attempt", 0)} | step}

    def open(self, event: Fields, only: int | None) -> list[int]:
        """Return the outcomes that the end of a trial concerns: the missing ones, or all without a value."""
        trial = list(enumerate(self.trials[event["number"]]))
        missing = [i for i, each in trial if each.state == "Pending"]
        without_value = [i for i, each in trial if each.reading is None]
        return [only] if only is not None else missing or without_value

    def resulted(
        self, event: Fields, results: list[Any], data: Fields, whole: Any = None, only: int | None = None
    ) -> Fields | None:
        self.store(event["number"], results, data)
        if self.names and results and whole is not None and only is None:
            results = [*results, [len(self.names), whole]]
        return {"Resulted": {"trial": event["number"], "results": results, "data": data}} if results else None

    def store(self, number: int, results: list[Any], data: Fields) -> None:
        """Update the results of a trial."""
        trial = self.trials[number]
        for outcome, happened in results:
            it = trial[outcome]
            if isinstance(happened, str):
                it.state, it.error = happened, data.get("error", it.error)
            elif "Withdrawn" in happened:
                it.has_withdrawn_failure |= it.state == "Failed"
                it.state = "Pending" if happened["Withdrawn"]["awaited"] else "Withdrawn"
                it.reading = None
            else:
                it.state, (it.reading,) = "Observed", happened.values()

    # Revisions.

    def Revised(self, event: Fields) -> Fields:
        names = self.names
        self.declare(json.loads(event["definition"]))
        self.trials = [self.revised(names, trial) for trial in self.trials]
        return {"Revised": part(event, "definition", "fill", "map", "keep", "constrained")}

    def revised(self, names: list[str], trial: list[Result]) -> list[Result]:
        """Return the results of a trial. A value without a name becomes the objective."""
        if not self.names:
            return trial
        new = "Pending" if any(each.state == "Pending" for each in trial) else "Abandoned"
        found = []
        for i, name in enumerate(self.names):
            known = names.index(name) if name in names else 0 if not names and i == self.objective else None
            found.append(Result(new) if known is None else trial[known])
        return found


class Copy:
    """The events of one study, unchanged."""

    def __init__(self) -> None:
        self.events: list[tuple[Fields, Fields]] = []

    @property
    def n_read(self) -> int:
        return len(self.events)

    def add(self, facts: Fields, event: Fields) -> None:
        """Add an event, whose line has these facts."""
        self.events.append((facts, event))


def checksum(facts: Fields, version: int, body: str) -> str:
    """Return the checksum of a definition or an event, as docs/store_file.md states it."""
    text = json.dumps([facts["id"], facts["study"], body, facts["at"], version])
    if "seq" in facts:
        key = "" if facts["key"] is None else json.dumps(facts["key"])
        text = f"{facts['id']} {facts['seq']} {version} {facts['at']!r} {key}\n{body}"
    return blake2b(text.encode(), digest_size=16).hexdigest()


def line_of(facts: Fields, what: str, body: str) -> str:
    """Return a line of an export in the new format."""
    facts = facts | {"version": NEW, "checksum": checksum(facts, NEW, body)}
    return f'{json.dumps(facts)[:-1]}, "{what}": {body}}}\n'


def converted(lines: Iterable[str]) -> list[str]:
    """Return the lines of an export in the new format."""
    studies: dict[int, Converter | Copy] = {}
    headers: dict[int, tuple[Fields, str]] = {}
    for number, line in enumerate(filter(str.strip, lines), 1):
        found = BODY.search(line)
        facts = json.loads(f"{line[: found.start()]}}}") if found else {}
        if not found or facts["version"] not in (OLD, *SAME):
            raise SystemExit(f"line {number} is not a line of an export in format {OLD}, {SAME[0]} or {SAME[1]}")
        body = line.rstrip("\r\n")[found.end() : -1]
        if checksum(facts, facts["version"], body) != facts["checksum"]:
            raise SystemExit(f"line {number} was changed: export it again")
        if found[1] == "definition":
            headers[facts["id"]] = facts, body
            studies[facts["id"]] = Converter(json.loads(body)) if facts["version"] == OLD else Copy()
        elif facts["id"] in studies and facts["seq"] == studies[facts["id"]].n_read:
            studies[facts["id"]].add(facts, json.loads(body))
        else:
            raise SystemExit(f"line {number} is not after the definition and the earlier events of its study")
    written = []
    for study, (header, body) in headers.items():
        events, n_read = studies[study].events, studies[study].n_read
        if n_read < header["events"]:
            raise SystemExit(f"the file was cut off: it has {n_read} of {header['events']} events of a study")
        written.append(line_of(header | {"events": len(events)}, "definition", body))
        for seq, (facts, event) in enumerate(events):
            text = json.dumps(event, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
            written.append(line_of(facts | {"seq": seq}, "event", text))
    return written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", metavar="OLD", help="an export in format 8, 10 or 11")
    parser.add_argument("new", metavar="NEW", help="the file to write")
    arguments = parser.parse_args()
    with open(arguments.old, encoding="utf-8", newline="\n") as lines:
        found = converted(lines)
    Path(arguments.new).write_text("".join(found), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
