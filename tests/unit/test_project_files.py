"""Files of the repository agree with the package: versions, and licenses of the crates whose code is in a wheel."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import belated

ROOT = Path(__file__).parents[2]
LICENSES = ROOT / "THIRD_PARTY_LICENSES"

needs_repository = pytest.mark.skipif(not LICENSES.exists(), reason="the files of the repository are not here")


@needs_repository
def test_licensed_versions_are_locked():
    """The test does not run cargo, so it also finds an old version without a network."""
    lock = (ROOT / "Cargo.lock").read_text(encoding="utf-8")
    locked = set(re.findall(r'^name = "(.+)"\nversion = "(.+)"$', lock, flags=re.MULTILINE))
    listed = set(re.findall(r"^(\S+) (\S+): .+; .+$", LICENSES.read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert {("faer", version) for name, version in locked if name == "faer"} <= listed
    assert listed <= locked


@needs_repository
def test_licenses_are_up_to_date():
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed")
    check = [sys.executable, ROOT / "scripts" / "third_party_licenses.py", "--check"]
    checked = subprocess.run(check, capture_output=True, text=True, timeout=300)
    if checked.returncode == 2:
        pytest.skip(f"cargo could not download the sources of the crates: {checked.stderr[-300:]}")
    assert checked.returncode == 0, checked.stderr


@needs_repository
def test_files_name_the_version_of_the_package():
    versions = {
        "CITATION.cff": r"^version: (.+)$",
        "CHANGELOG.md": r"^## \[(\d.+)\]",
    }
    for name, pattern in versions.items():
        found = re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert found and found[1] == belated.__version__, name
