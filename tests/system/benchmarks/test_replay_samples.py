"""Samples of replays: a table whose decisions have changed since it was made is found."""

import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("scipy")
pytest.importorskip("tqdm")
sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
import replay_samples

sys.path.pop(0)
STORED = {name: run for name, run in replay_samples.runs().items() if "sample" in run}


@pytest.mark.parametrize("name", STORED)
def test_tables_were_made_by_the_present_decisions(name):
    run, here = STORED[name], replay_samples.processor()
    if run["sample"]["processor"] != here:
        pytest.skip(f"the sample was made on {run['sample']['processor']}, and this is {here}")
    if "--data" in run["command"] and replay_samples.FOLDER not in os.environ:
        pytest.skip(f"{replay_samples.FOLDER} does not name the folder of the data")
    assert replay_samples.digest_of(run["command"]) == run["sample"]["digest"], (
        f"the decisions of `{run['command']}` have changed since commit {run['commit']}: make its tables again, then "
        f"python benchmarks/replay_samples.py store {name}"
    )


def test_another_seed_has_another_digest():
    command = "belated replay sdf-synthetic --given"
    assert replay_samples.digest_of(command) == replay_samples.digest_of(command)
    assert replay_samples.digest_of(command) != replay_samples.digest_of(f"{command} --seed 1")


def test_times_do_not_count_and_numbers_are_rounded():
    report = {"seconds": 1.0, "belated": "0.1.0", "regret": [0.123456789, float("nan"), 3], "with_decisions": [0.5]}
    assert replay_samples.rounded(report) == {"regret": [0.12346, "nan", "3"]}
