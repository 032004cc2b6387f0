"""Check that a full disk raises StoreError and that events are not lost: python campaigns/disk_full.py.

The limit on the size of files (RLIMIT_FSIZE) simulates the full disk. For every size from `first` on, the program makes
one call on a copy of a store while files cannot grow beyond this size. The call must succeed or raise StoreError. After
the limit is lifted, the store must contain all earlier events, and the new event either completely or not at all.
Afterwards, the open study and a newly opened study must be able to append events. The program prints JSON.
"""

import resource
import signal
import sys
from pathlib import Path

import harness

import belated as bl


def limited(size, call):
    """Make a call while files cannot grow beyond `size` bytes. Return the exception that the call raised, or None."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        call()
    except Exception as error:
        return error
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    return None


def examine(path, study, before, error, more):
    """Check the study after the limit is lifted; yield the errors that are found."""
    if error is not None and not isinstance(error, bl.errors.StoreError):
        yield f"raised {type(error).__name__}: {error}"
    left = harness.rows(path)
    if left[: len(before)] != before or len(left) > len(before) + 1:
        yield f"{len(before)} events before, {len(left)} after"
    if error is None and len(left) != len(before) + 1:
        yield "acknowledged, but not stored"
    try:
        for _ in range(more):
            study.suggest()
        opened = bl.Study.load("study", harness.url(path))
        for _ in range(more):
            opened.suggest()
        study.observe(0, 0.75)
        grown = harness.rows(path)
        observed = sum("Resulted" in body for *_, body in grown) - sum("Resulted" in body for *_, body in left)
        if len(grown) != len(left) + 2 * more + observed or grown[: len(left)] != left or observed > 1:
            yield f"{len(left)} events, {2 * more} appended, {len(grown)} stored"
        if harness.state(opened) and (opened.sync(), harness.state(opened))[1] != harness.state(study):
            yield "two processes that opened the study see different trials"
    except Exception as later:
        yield f"afterwards: {type(later).__name__}: {later}"


def run(first=0, step=1, every=100, seed=0, limit=None):
    """Return the results. The check appends 100 events in every `every`-th case, and one event in the other cases."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    failures, deadline = harness.Failures(), harness.Deadline(limit)
    result = {}
    with harness.folder(memory=True) as folder:
        base, path = Path(folder) / "base.db", Path(folder) / "store.db"
        made = harness.random_study(base, seed=seed)
        made.suggest(n=20)
        made.observe(1, 0.25)
        harness.close(made)
        before = harness.rows(base)
        calls = {
            "suggest": lambda study: study.suggest(),
            "observe": lambda study: study.observe(0, 0.75),
            "open and observe": None,
        }
        for name, call in calls.items():
            size = base.stat().st_size
            outcomes = {"StoreError": 0, "done": 0}
            # The sizes go up to the size of the file plus two pages. If the call still fails, larger sizes follow until
            # the call succeeds.
            offset, cases, error = first, 0, None
            while (offset <= size + 8192 or error is not None) and not deadline.over():
                harness.copy_store(base, path)
                if call is None:
                    opened = []

                    def whole(opened=opened):
                        opened.append(bl.Study.load("study", harness.url(path)))
                        opened[0].observe(0, 0.75)

                    error = limited(offset, whole)
                    study = opened[0] if opened else bl.Study.load("study", harness.url(path))
                else:
                    study = bl.Study.load("study", harness.url(path))
                    error = limited(offset, lambda study=study, call=call: call(study))
                outcomes["done" if error is None else type(error).__name__] = (
                    outcomes.get("done" if error is None else type(error).__name__, 0) + 1
                )
                more = 100 if cases % every == 0 else 1
                for problem in examine(path, study, before, error, more):
                    failures.note(f"{name} at {offset} bytes: {problem}")
                harness.close(study)
                if cases % every == 0:
                    for problem in harness.audit(path) if cases % (20 * every) == 0 else ():
                        failures.note(f"{name} at {offset} bytes: {problem}")
                offset, cases = offset + step, cases + 1
            result[name] = {"file": size, "first": first, "last": offset - step, "step": step, "outcomes": outcomes}
    return {**result, **failures.figures()}


if __name__ == "__main__":
    sys.exit(harness.main(__doc__, run, first=0, step=1, every=100, seed=0))
