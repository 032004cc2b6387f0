"""A damaged file gives the right data or StoreError: python tests/faults/damage.py.

A store of two studies is damaged in one place, as often as asked: a bit flipped anywhere, a bit flipped where SQLite
keeps its structure (headers and cell pointers of pages), a cut, a page zeroed or exchanged with another. A process
with a time limit then opens the studies and uses them: it must see exactly what was stored, or get StoreError.
`export --salvage` must return only events that were stored, as they were; counted is how many of those whose record the damage
left whole it returns. Prints JSON.
"""

import json
import random
import resource
import struct
import sys
import time
import traceback
from pathlib import Path

import harness

import belated as bl

STUDIES = ["random", "bayes"]
HANG = 60.0  # seconds
MEMORY = 8 << 30  # bytes of address space
BEFORE, BEHIND = 24, 16  # bytes of a record before and behind its body
KINDS = ["bit"] * 4 + ["structure"] * 3 + ["cut"] * 2 + ["page"]


def make(path):
    """The store before the damage."""
    random_search = harness.random_study(path, "random")
    bayes_opt = harness.bayes_study(path, "bayes", n_initial=4)
    for study in (random_search, bayes_opt):
        for trial in study.suggest(n=12):
            if trial.number % 3:
                study.observe(trial, harness.objective(trial.params))
        study.fail(0)
        study.abandon(3)
        study.suggest()
    harness.close(random_search, bayes_opt)


def damaged(data, chance):
    """The data with one damage, and what it was."""
    data = bytearray(data)
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


def use(path, truth, name):
    """Open a study of a damaged store, read and write; 'right' or 'StoreError', anything else is a failure."""
    try:
        study = bl.Study.load(name, harness.url(path))
        seen = harness.state(study)
        if seen != truth[name]:
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
    except bl.StoreError:
        return "StoreError"
    except Exception:
        return traceback.format_exc(limit=-3)


def salvage(path):
    """The events that `export --salvage` returns, as (study id, sequence number, body)."""
    code, out, err = harness.command("export", "--salvage", harness.url(path))
    if code not in (0, 1):
        raise RuntimeError(f"exit code {code}: {err}")
    lines = [json.loads(line) for line in out.splitlines()]
    return [(line["id"], line["seq"], line["event"]) for line in lines if "seq" in line]


def cases(path, data, truth, stored, whole, seed, numbers, results):
    """Examine some damages; reports (number, damage, verdicts, returned, wrong, intact) for each, before and after."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.stderr = open("/dev/null", "w")  # noqa: SIM115  # warnings about the damage, thousands of them
    for number in numbers:
        chance = random.Random(f"{seed} {number}")
        broken, what = damaged(data, chance)
        results.put((number, what, None))
        for file in harness.files(path):
            file.unlink(missing_ok=True)
        Path(path).write_bytes(broken)
        try:
            returned = salvage(path)
            trouble = None
        except Exception:
            returned, trouble = [], traceback.format_exc(limit=-3)
        wrong = [event for event in returned if json.loads(stored.get(event[:2], "null")) != event[2]]
        intact = sum(record in broken for record in whole)
        same = Path(path).read_bytes() == broken
        verdicts = [use(path, truth, name) for name in STUDIES]
        results.put((number, what, (verdicts, len(returned), wrong, intact, trouble, same)))


def run(damages=10_000, workers=2, seed=0, limit=None):
    """The figures."""
    failures, deadline, context = harness.Failures(), harness.Deadline(limit), harness.processes()
    outcomes = {"right": 0, "StoreError": 0}
    kinds, finished, returned, intact = {}, 0, 0, 0
    with harness.folder(memory=True) as folder:
        base = Path(folder) / "base.db"
        make(base)
        opened = {name: bl.Study.load(name, harness.url(base)) for name in STUDIES}
        truth = {name: harness.state(study) for name, study in opened.items()}
        harness.close(*opened.values())
        ids = {name: study._log.id for name, study in opened.items()}
        stored = {(ids[name], seq): body for name, seq, _, body in harness.rows(base)}
        data = base.read_bytes()
        # A record is its body, the header and columns before it, and the checksum behind it.
        starts = {event: data.index(body.encode()) for event, body in stored.items()}
        whole = [data[at - BEFORE : at + len(stored[event]) + BEHIND] for event, at in starts.items()]
        queues = [list(range(slot, damages, workers)) for slot in range(workers)]
        crowd = [None] * workers

        def start(slot):
            results = context.SimpleQueue()
            arguments = (Path(folder) / f"{slot}.db", data, truth, stored, whole, seed, queues[slot], results)
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
                    verdicts, found, wrong, left, trouble, same = report
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
                    returned, intact = returned + min(found, left), intact + left
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
        "file": len(data),
        "events": len(stored),
        "openings": outcomes,
        "intact_events": intact,
        "salvaged_events": returned,
        **failures.figures(),
    }


if __name__ == "__main__":
    sys.exit(harness.main(__doc__, run, damages=10_000, workers=2, seed=0))
