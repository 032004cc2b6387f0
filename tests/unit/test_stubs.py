"""The stub file agrees with the compiled core."""

import subprocess
import sys

import pytest


def test_stub_matches_the_binary(tmp_path):
    pytest.importorskip("mypy")
    # mypy runs in an empty folder. In this folder, mypy uses the installed package and does not read the repository's
    # configuration.
    run = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "belated._core"], cwd=tmp_path, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr
