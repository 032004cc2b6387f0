"""Check that a fault at any write or fsync of a call leaves the event complete or missing.

Usage: python campaigns/syscalls.py. The program needs strace. At the N-th write, fsync, truncation or unlink of the
store's files, strace kills the process or lets the call fail with EIO. N is 1, 2, … until the call succeeds. After each
fault, the event table must contain the earlier events, and the new event either completely or not at all. The next
process repeats the call. The repeated call must succeed, and the event of the call must not be written twice. The
program prints JSON.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import harness

import belated as bl

SYSCALLS = ["write", "pwrite64", "fsync", "fdatasync", "ftruncate", "unlink"]
FAULTS = {"KILL": "signal=KILL", "EIO": "error=EIO"}


def missing():
    """Return the reason why this program cannot run on this machine, or None."""
    if shutil.which("strace") is None:
        return "strace is not installed: its package is named strace (apt-get install strace)"
    tried = subprocess.run(["strace", "-e", "inject=fsync:error=EIO", "true"], capture_output=True, text=True)
    return None if tried.returncode == 0 else f"strace cannot trace here: {tried.stderr.strip()[-200:]}"


def call(what, path):
    """Make the tested call in this process; return the outcome of the call."""
    try:
        study = bl.Study.load("study", harness.url(path))
        if what == "suggest":
            study.suggest(key="the call")
        else:
            study.observe(0, 0.5)
        outcome = "done"
    except bl.errors.StoreError:
        outcome = "StoreError"
    except Exception as error:
        outcome = f"{type(error).__name__}: {error}"
    return outcome


def call_again(what, path):
    """Repeat the call in the next process, where it must succeed."""
    sys.exit(call(what, path) != "done")


def attempt(what, path, injection):
    """Make the call in a separate process, with a fault; return (exit code, outcome, errors)."""
    arguments = [sys.executable, __file__, "--call", what, str(path)]
    trace = ["strace", "-f", "-qq", "-o", f"{path}.trace", "-e", f"trace={injection.split(':')[0]}"]
    paths = [part for file in [*harness.files(path), path.parent] for part in ("-P", str(file))]
    arguments = [*trace, *paths, "-e", f"inject={injection}", *arguments]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
    outcome = json.loads(done.stdout) if done.stdout.strip() else None
    return done.returncode, outcome, done.stderr


def examine(what, path, before, failures, label, outcome):
    """Check the store after the fault, and check that the next process can continue."""
    if outcome not in (None, "done", "StoreError"):
        failures.note(f"{label}: {outcome}")
    try:
        left = harness.rows(path)
        if left[: len(before)] != before or len(left) > len(before) + 1:
            failures.note(f"{label}: {len(before)} events before, {len(left)} after")
        if outcome == "done" and len(left) != len(before) + 1:
            failures.note(f"{label}: acknowledged, but not stored")
        next_one = harness.processes().Process(target=call_again, args=(what, path))
        next_one.start()
        next_one.join()
        if next_one.exitcode != 0:
            failures.note(f"{label}: the next process ended with {next_one.exitcode}")
        after = harness.rows(path)
        if len(after) != len(before) + 1 or (len(left) > len(before) and after != left):
            failures.note(f"{label}: {len(before)} events before, {len(after)} after it was repeated")
        for problem in harness.audit(path):
            failures.note(f"{label}: {problem}")
    except Exception as error:
        failures.note(f"{label}: {type(error).__name__}: {error}")


def run(most=1000, limit=None):
    """Return all results; `most` limits the number of faults for each kind of syscall."""
    reason = missing()
    if reason is not None:
        return {"failures": 1, "first_failures": [reason]}
    failures, deadline, counts, completed = harness.Failures(), harness.Deadline(limit), {}, True
    with harness.folder() as folder:
        base, path = Path(folder) / "base.db", Path(folder) / "store.db"
        study = harness.random_study(base)
        study.suggest(n=3)
        study.observe(1, 0.25)
        harness.close(study)
        del study
        before = harness.rows(base)
        for what in ("suggest", "observe"):
            for fault, injected in FAULTS.items():
                for syscall in SYSCALLS:
                    for nth in range(1, most + 1):
                        if deadline.over():
                            completed = False
                            break
                        harness.copy_store(base, path)
                        code, outcome, stderr = attempt(what, path, f"{syscall}:{injected}:when={nth}")
                        hit = "INJECTED" in Path(f"{path}.trace").read_text() or code in (-9, 137)
                        label = f"{fault} at {syscall} {nth} of {what}"
                        if not hit and outcome != "done":
                            failures.note(f"{label}: {outcome} without a fault: {stderr[-300:]}")
                        if not hit:
                            break
                        counts[f"{what} {fault} {syscall}"] = nth
                        examine(what, path, before, failures, label, outcome)
    return {"completed": completed, "faults": sum(counts.values()), "by_call": counts, **failures.figures()}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--call"]:
        print(json.dumps(call(sys.argv[2], sys.argv[3])))
        sys.exit()
    if missing() is not None:
        sys.exit(missing())
    sys.exit(harness.main(__doc__, run, most=1000))
