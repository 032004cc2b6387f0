"""Store a small run beside each table of a replay's page, and find tables that are older than the present decisions.

    python benchmarks/replay_samples.py store asyts.quick sdf_results.given    # after these tables were made
    python benchmarks/replay_samples.py check

The tables of data/replays/ come from runs of minutes to hours. A sample is the digest of one run of a few iterations of
the same command, rounded to five digits, with the processor that made it: results are equal bit for bit on one machine
only. If the digest of a new run differs on the same processor, the decisions of the replay have changed since its table
was made, and the table has to be made again. ``check`` also lists the runs that have no sample, whose tables are older
than the samples.
"""

import argparse
import contextlib
import hashlib
import io
import json
import math
import os
import platform
import warnings
from pathlib import Path
from typing import Any

from page_tables import DATA, write

from belated import cli
from belated.replays.runner import Options

#: Iterations of a sample. A replay with rounds needs more, and one with many workers fewer.
ITERATIONS, OTHER = 12, {"bpe": 120, "asyts": 3}
#: The environment variable that names the folder of a command with --data.
FOLDER = "BELATED_DATA"
#: Entries of reports that depend on the time that a run takes.
TIMED = ("seconds", "seconds_per_run", "seconds_per_suggestion", "with_decisions")


def digest_of(command: str) -> str:
    """Return the digest of one short run of a command."""
    words = command.removeprefix("belated ").replace("--keep DIR", "").split()
    given = cli.parser().parse_args([os.environ[FOLDER] if word == "DIR" else word for word in words])
    replay = given.name
    made = {key: getattr(given, key) for key in ("seed", "data", "faithful", "given", "quick")}
    options = Options(runs=1, iterations=OTHER.get(replay.name, ITERATIONS), workers=0, **made)
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        report = replay.run(options)
    return hashlib.sha256(json.dumps(rounded(report), sort_keys=True).encode()).hexdigest()[:16]


def rounded(value: Any) -> Any:
    """Return a report without times and without the version, and with rounded numbers."""
    if isinstance(value, dict):
        return {str(key): rounded(each) for key, each in value.items() if key not in (*TIMED, "belated")}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [rounded(each) for each in value]
    return float(f"{value:.5g}") if isinstance(value, float) and math.isfinite(value) else str(value)


def processor() -> str:
    """Return the name of this machine's processor."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def runs() -> dict[str, dict[str, Any]]:
    """Return page.run → the run, of all pages of replays."""
    pages = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(DATA.glob("replays/*.json"))}
    return {f"{page}.{name}": run for page, found in pages.items() for name, run in found["runs"].items()}


def store(names: list[str]) -> None:
    """Store the samples of these runs."""
    for name in names:
        page, _, run = name.partition(".")
        file = DATA / "replays" / f"{page}.json"
        found = json.loads(file.read_text(encoding="utf-8"))
        entry = found["runs"][run]
        entry["sample"] = {"digest": digest_of(entry["command"]), "processor": processor()}
        write(file, found)


def check() -> int:
    """Print the runs whose sample differs, and the runs without a sample. Return the number of the former."""
    n_different = 0
    for name, run in runs().items():
        sample = run.get("sample")
        if sample is None:
            print(f"{name}: no sample; its table is of commit {run['commit']}")
        elif sample["processor"] != processor():
            print(f"{name}: the sample is of another processor, {sample['processor']}")
        elif "--data" in run["command"] and FOLDER not in os.environ:
            print(f"{name}: needs the folder of its data in {FOLDER}")
        elif digest_of(run["command"]) != sample["digest"]:
            n_different += 1
            print(f"{name}: decisions have changed since commit {run['commit']}: make its table again")
    return n_different


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["store", "check"])
    parser.add_argument("names", nargs="*", metavar="PAGE.RUN")
    given = parser.parse_args()
    if given.what == "store":
        store(given.names)
        return 0
    return check()


if __name__ == "__main__":
    raise SystemExit(main())
