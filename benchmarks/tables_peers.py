"""Runs of other optimizers on the tables, made once and stored in data/.

    python benchmarks/tables_peers.py run peers.jsonl     # takes hours; continues where it stopped
    python benchmarks/tables_peers.py pack peers.jsonl

The option --time makes the runs with equal time:

    python benchmarks/tables_peers.py run time_peers.jsonl --time
    python benchmarks/tables_peers.py pack time_peers.jsonl --time

The option --belated makes the runs of belated, which take minutes.

The runs do not include the held-out tables.
"""

import argparse
import gzip
import json
import os
import sys

if __name__ == "__main__":
    # As in compare.py. With one thread, the results do not depend on the number of processors.
    for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BELATED_NUM_THREADS"):
        os.environ.setdefault(_name, "1")

import compare  # noqa: E402
import tables  # noqa: E402

GP = 'optuna-gp=optuna-gp:{"deterministic_objective": false}'
TPE = 'optuna-tpe=optuna-tpe:{"multivariate": true}'
# Multivariate TPE needs the option `group` in conditional spaces.
TPE_CONDITIONAL = 'optuna-tpe=optuna-tpe:{"multivariate": true, "group": true}'
BOTORCH = "botorch=botorch-grid"

#: Each entry is (group of settings, optimizer, number of seeds). The cheapest runs come first.
RUNS = [
    ("tables", "random", 20),
    ("tables", TPE, 20),
    ("ours", "random", 20),
    ("ours", TPE_CONDITIONAL, 20),
    ("tables", GP, 20),
    ("ours", GP, 20),
    ("tables", BOTORCH, 5),
    ("ours", BOTORCH, 5),
]
TIME_RUNS = [
    ("tables-time", "random", 20),
    ("tables-time", TPE, 20),
    ("ours-time", "random", 20),
    ("ours-time", TPE_CONDITIONAL, 20),
    ("tables-time", GP, 20),
    ("ours-time", GP, 20),
]
BELATED_RUNS = [("tables", "belated", 20), ("ours", "belated", 20)]


def run(path, runs):
    """Make the runs that are not in the file yet; return whether any run failed."""
    failed = 0
    for settings, optimizer, n_seeds in runs:
        what = ["--settings", settings, "--optimizers", optimizer, "--seeds", f"0:{n_seeds}", "--out", path]
        failed += compare.main(["run", *what])
    return failed


def pack(path, packed):
    """Write the records to a file in data/, with four digits of the regrets."""
    records = {compare.key(record): record for record in compare.read([path])}
    lines = []
    for key in sorted(records):
        record = records[key] | {"regret": [float(f"{r:.4g}") for r in records[key]["regret"]]}
        lines.append(json.dumps(record, separators=(",", ":")))
    packed.write_bytes(gzip.compress("\n".join(lines).encode(), 9, mtime=0))
    print(f"{len(lines)} runs, {packed.stat().st_size} bytes")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["run", "pack"])
    parser.add_argument("path", help="the file of all records")
    parser.add_argument("--time", action="store_true", help="the runs with equal time")
    parser.add_argument("--belated", action="store_true", help="the runs of belated")
    arguments = parser.parse_args(argv)
    runs, packed = RUNS, tables.PEERS
    if arguments.time:
        runs, packed = TIME_RUNS, tables.TIME_PEERS
    elif arguments.belated:
        runs, packed = BELATED_RUNS, tables.BELATED
    return run(arguments.path, runs) if arguments.command == "run" else pack(arguments.path, packed)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
