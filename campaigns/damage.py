"""Check that a damaged file gives the right data or StoreError: python campaigns/damage.py.

Each case makes a copy of a store with two studies and damages the copy at one position. There are four kinds of damage:
a flipped bit anywhere, a flipped bit in SQLite's structure (headers and cell pointers of pages), a truncated file, and
a page that is zeroed or exchanged. A process with a time limit then opens the studies and calls their methods. Each
call must give exactly the stored data, or raise StoreError. `export --salvage` must return only events that were
stored, unchanged. The program counts how many of the events with an intact record are returned. Finally, the program
damages the write-ahead log that killed writers leave next to the file. SQLite ignores everything in this log after the
first damaged byte, so the study may be in an earlier state. The program prints JSON.
"""

import json
import random
import resource
import sqlite3
import struct
import sys
import time
import traceback
from contextlib import closing
from pathlib import Path

import harness

import belated as bl

STUDIES = ["random", "bayes"]
HANG = 60.0  # seconds
MEMORY = 8 << 30  # bytes of address space
# In a record, the body comes after this number of bytes (header 9, number 1, version 1, time 8) plus the 6 or 8 bytes
# of the study's id.
BEFORE = 19
KINDS = ["bit"] * 4 + ["structure"] * 3 + ["cut"] * 2 + ["page"]


def make(path):
    """Write the undamaged store; return its open studies."""
    random_search = harness.random_study(path, "random")
    bayes_opt = harness.bayes_study(path, "bayes", initial=4)
    for study in (random_search, bayes_opt):
        for trial in study.suggest(n=12):
            if trial.number % 3:
                study.observe(trial, harness.objective(trial.params))
        study.fail(0)
        study.abandon(3)
        study.suggest()
    return random_search, bayes_opt


def damaged(data, chance, log):
    """Return a damaged copy of the data, and a description of the damage. In a write-ahead log, which does not have the
    structure of a database file, the flipped bit may be in any byte."""
    data = bytearray(data)
    if log:
        place = chance.randrange(len(data))
        if chance.random() < 0.3:
            return bytes(data[:place]), f"cut to {place} bytes"
        data[place] ^= 1 << chance.randrange(8)
        return bytes(data), f"bit of byte {place}"
    size = struct.unpack(">H", data[16:18])[0]
    size = 65536 if size == 1 else size
    kind = chance.choice(KINDS)
    place = chance.randrange(len(data))
    if kind == "structure":
        page = chance.randrange(len(data) // size)
        place = min(len(data) - 1, page * size + (0 if page else chance.choice([0, 100])) + chance.randrange(64))
    if kind in ("bit", "structure"):
        bit = chance.randrange(8)
        data[place] ^= 1 << bit
        return bytes(data), f"{kind} {bit} of byte {place}"
    if kind == "cut":
        place = chance.choice([place, place // size * size])
        return bytes(data[:place]), f"cut to {place} bytes"
    one, other = (chance.randrange(len(data) // size) * size for _ in range(2))
    if chance.random() < 0.5:
        data[one : one + size] = bytes(size)
        return bytes(data), f"page at {one} zeroed"
    data[one : one + size], data[other : other + size] = data[other : other + size], data[one : one + size]
    return bytes(data), f"pages at {one} and {other} exchanged"


def use(path, truth, name, bodies):
    """Open a damaged study, read it and write to it. Return "right" or "earlier" for a study in the right or an earlier
    state, "StoreError" if this error is raised, or a description of any other error."""
    try:
        study = bl.Study.load(name, harness.url(path))
        seen = harness.state(study)
        if seen != truth[name]:
            here = [body for study, _, _, body in harness.rows(path) if study == name]
            if here == bodies[: len(here)]:
                return "earlier"
            strange = [trial for trial in seen if trial not in truth[name]]
            return f"wrong data: {len(truth[name])} trials stored, {len(seen)} seen, {strange[:2]}"
        pending = [number for number, _, state, _ in truth[name] if state == "pending"]
        study.observe(pending[0], 0.5)
        study.suggest()
        seen = harness.state(bl.Study.load(name, harness.url(path)))
        expected = list(truth[name])
        number, params, _, _ = expected[pending[0]]
        expected[pending[0]] = (number, params, "observed", 0.5)
        if seen[:-1] != expected:
            return "wrong data after writing"
        return "right"
    except bl.errors.StoreError:
        return "StoreError"
    except Exception:
        return traceback.format_exc(limit=-3)


def salvage(path):
    """Return the events of `export --salvage`, as (study id, sequence number, body)."""
    code, out, err = harness.command("export", "--salvage", harness.url(path))
    if code not in (0, 1):
        raise RuntimeError(f"exit code {code}: {err}")
    lines = [json.loads(line) for line in out.splitlines()]
    return [(line["id"], line["seq"], line["event"]) for line in lines if "seq" in line]


def cases(path, base, seed, numbers, results):
    """Examine several damaged copies. Report (number, damage, result) before and after each copy is examined."""
    data, log, truth, stored, records = base
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.stderr = open("/dev/null", "w")  # noqa: SIM115  # stderr would contain thousands of warnings
    for number in numbers:
        chance = random.Random(f"{seed} {number}")
        broken, what = damaged(log or data, chance, log=bool(log))
        results.put((number, what, None))
        for file in harness.files(path):
            file.unlink(missing_ok=True)
        both = (data, broken) if log else (broken, b"")
        for file, content in zip((path, path.with_name(f"{path.name}-wal")), both, strict=True):
            if content:
                file.write_bytes(content)
        path.touch()
        returned, trouble = [], None
        try:
            returned = salvage(path)
        except Exception:
            trouble = traceback.format_exc(limit=-3)
        wrong = [event for event in returned if json.loads(stored.get(event[:2], "null")) != event[2]]
        intact = {event for event, record in records.items() if record in both[0] or record in both[1]}
        saved = intact & {event[:2] for event in returned}
        same = path.read_bytes() == both[0]
        verdicts = []
        for name in STUDIES:
            bodies = [body for (study, _), body in stored.items() if study == truth[name][0]]
            verdicts.append(use(path, {name: truth[name][1]}, name, bodies))
        results.put((number, what, (verdicts, len(intact), len(saved), wrong, trouble, same)))


def prepared(base, logged):
    """Return the bytes of a store, the bytes of its write-ahead log, (id, state) of each study, and the body and record
    of each event."""
    studies = make(base)
    if not logged:
        harness.close(*studies)
    truth = {study.name: (study._log.id, harness.state(study)) for study in studies}
    with closing(sqlite3.connect(base)) as connection:
        rows = connection.execute("SELECT study, seq, body, checksum FROM events ORDER BY study, seq").fetchall()
    if not logged:
        harness.close(*studies)
    log = base.with_name(f"{base.name}-wal")
    log = log.read_bytes() if logged and log.exists() else b""
    stored = {(study, seq): body for study, seq, body, _ in rows}
    data = base.read_bytes()
    records = {}
    for study, seq, body, checksum in rows:
        # A record consists of the header, the columns before the body, the body, and the checksum.
        text = body.encode() + checksum
        at = (log or data).index(text)
        before = BEFORE + (8 if study >= 1 << 47 else 6)
        records[study, seq] = (log or data)[at - before : at + len(text)]
    return data, log, truth, stored, records


def run(damages=10_000, logs=1000, workers=2, seed=0, limit=None):
    """Return the results for two kinds of files: a damaged file that is not in use, and a file whose writers were
    killed and whose write-ahead log is damaged."""
    with harness.folder(memory=True) as folder:
        result = {"file": campaign(Path(folder), damages, False, workers, seed, limit)}
    if logs:
        with harness.folder(memory=True) as folder:
            result["log"] = campaign(Path(folder), logs, True, workers, seed, limit)
    return result


def campaign(folder, damages, logged, workers, seed, limit):
    """Examine many damaged copies and return the results."""
    failures, deadline, context = harness.Failures(), harness.Deadline(limit), harness.processes()
    outcomes = {"right": 0, "StoreError": 0} | ({"earlier": 0} if logged else {})
    kinds, finished, saved, intact = {}, 0, 0, 0
    base = prepared(folder / "base.db", logged)
    queues = [list(range(slot, damages, workers)) for slot in range(workers)]
    crowd = [None] * workers

    def start(slot):
        results = context.SimpleQueue()
        arguments = (folder / f"{slot}.db", base, seed, queues[slot], results)
        process = context.Process(target=cases, args=arguments, daemon=True)
        process.start()
        crowd[slot] = [process, results, time.monotonic(), "the start"]

    for slot in range(workers):
        start(slot)
    while any(crowd) and not deadline.over():
        for slot, entry in enumerate(crowd):
            if entry is None:
                continue
            process, results, since, last = entry
            if not results.empty():
                number, what, report = results.get()
                entry[2:] = [time.monotonic(), (number, what)]
                if report is None:
                    continue
                queues[slot] = queues[slot][queues[slot].index(number) + 1 :]
                finished += 1
                verdicts, left, found, wrong, trouble, same = report
                kinds[what.split()[0]] = kinds.get(what.split()[0], 0) + 1
                for name, verdict in zip(STUDIES, verdicts, strict=True):
                    if verdict in outcomes:
                        outcomes[verdict] += 1
                    else:
                        failures.note(f"{number}, {what}, {name}: {verdict}")
                if wrong:
                    failures.note(f"{number}, {what}: salvage returned {wrong[0]}")
                if trouble:
                    failures.note(f"{number}, {what}: salvage: {trouble}")
                if not same:
                    failures.note(f"{number}, {what}: salvage changed the file")
                saved, intact = saved + found, intact + left
                if not queues[slot]:
                    process.join()
                    crowd[slot] = None
            elif not process.is_alive() or time.monotonic() - since > HANG:
                hung = process.is_alive()
                process.kill()
                process.join()
                failures.note(f"{last}: {'hung' if hung else f'ended with {process.exitcode}'}")
                if isinstance(last, tuple) and last[0] in queues[slot]:
                    queues[slot] = queues[slot][queues[slot].index(last[0]) + 1 :]
                crowd[slot] = None
                if queues[slot]:
                    start(slot)
        time.sleep(0.0005)
    for entry in filter(None, crowd):
        entry[0].kill()
        entry[0].join()
    return {
        "damages": finished,
        "of_kind": kinds,
        "bytes": len(base[1] or base[0]),
        "events": len(base[3]),
        "openings": outcomes,
        "intact_events": intact,
        "salvaged_events": saved,
        **failures.figures(),
    }


if __name__ == "__main__":
    sys.exit(harness.main(__doc__, run, damages=10_000, logs=1000, workers=2, seed=0))
