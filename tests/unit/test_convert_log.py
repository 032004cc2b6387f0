"""`scripts/convert_log.py` converts exports of the format before.

The data are the exports of 100 random histories, what the earlier version answered for them, and calls with a key that
it had logged.
"""

import contextlib
import functools
import importlib.util
import json
import lzma
import re
import subprocess
import sys
from pathlib import Path

import pytest

import belated as bl
from belated.cli import main

SCRIPT = Path(__file__).parents[2] / "scripts" / "convert_log.py"
HISTORIES = json.loads(lzma.decompress((Path(__file__).parent / "data" / "exports_of_format_8.json.xz").read_bytes()))

TIMES = ("observed_at", "ended_at", "finished_at", "delay")


@functools.cache
def script():
    spec = importlib.util.spec_from_file_location("convert_log", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["convert_log"] = module
    spec.loader.exec_module(module)
    return module


def plain(found):
    """Return data as JSON data."""
    if isinstance(found, dict):
        return {str(name): plain(each) for name, each in found.items()}
    if isinstance(found, (list, tuple)):
        return [plain(each) for each in found]
    if hasattr(found, "tolist"):
        return plain(found.tolist())
    return found if found is None or isinstance(found, (str, int, float)) else str(found)


def facts(trial):
    """Return all data of a trial that are not empty.

    The earlier version kept the noise of a withdrawn value, so the noise is compared only if there is a value.
    """
    names = [name for name, each in vars(bl.Trial).items() if isinstance(each, property) and name[0] != "_"]
    found = {name: plain(getattr(trial, name)) for name in names}
    return without_noise({name: fact for name, fact in found.items() if fact not in (None, [], {}, False)})


def without_noise(found):
    return {name: fact for name, fact in found.items() if name != "std" or "value" in found}


def without_arrivals(found):
    """Return facts without the times of observations: the earlier version forgot the arrival of a withdrawn value that
    is awaited again."""
    outcomes = {name: re.sub("observed_at=[^,]+", "", text) for name, text in found.get("outcomes", {}).items()}
    return found | ({"outcomes": outcomes} if outcomes else {})


def withdrawn_trials(lines):
    """Return the numbers of the trials that an old export withdraws, as a whole or an outcome."""
    found = set()
    for line in lines[1:]:
        event = json.loads(line)["event"]
        event = event["OfOutcome"]["event"] if "OfOutcome" in event else event
        if "Withdrawn" in event:
            found.add(event["Withdrawn"]["number"])
    return found


def best(study):
    with contextlib.suppress(bl.BelatedError):
        return study.best_trial_ and study.best_trial_.number


def imported(lines, folder):
    """Convert and import an export; return the study."""
    (folder / "new.jsonl").write_text("".join(script().converted(lines)), encoding="utf-8")
    url = f"sqlite:///{folder / 'new.db'}"
    assert main(["study", "import", str(folder / "new.jsonl"), url]) == 0
    return bl.Study.load("s", url)


@pytest.mark.parametrize("number", range(len(HISTORIES)))
def test_trials_of_converted_exports_are_equal(number, tmp_path):
    history = HISTORIES[number]
    study = imported(history["export"], tmp_path)
    assert study.n_trials == len(history["trials"])
    withdrawn = withdrawn_trials(history["export"])
    for trial, old in zip(study.trials, history["trials"], strict=True):
        # The earlier version moved the end of a trial that stayed withdrawn to later withdrawals and revisions.
        skipped = TIMES if trial.number in withdrawn and trial.outcomes else ()
        found, old = facts(trial), without_noise(old)
        if trial.number in withdrawn:
            found, old = without_arrivals(found), without_arrivals(old)
        assert {name: found.get(name) for name in found.keys() | old.keys() if name not in skipped} == {
            name: old.get(name) for name in found.keys() | old.keys() if name not in skipped
        }
    assert best(study) == history["best"]
    assert [trial.number for trial in study.pending] == history["pending"]
    n_events = study._log.n_events()
    for method, arguments in history["again"]:
        getattr(study, method)(**arguments)
    assert study._log.n_events() == n_events


def test_the_script_writes_an_export_and_refuses_other_formats(tmp_path):
    old, new, again = (tmp_path / f"{name}.jsonl" for name in ("old", "new", "again"))
    old.write_text("\n".join(HISTORIES[0]["export"]) + "\n", encoding="utf-8")
    assert subprocess.run([sys.executable, SCRIPT, old, new]).returncode == 0
    assert main(["study", "import", str(new), f"sqlite:///{tmp_path / 'new.db'}"]) == 0
    refused = subprocess.run([sys.executable, SCRIPT, new, again], capture_output=True, text=True)
    assert refused.returncode == 1 and "line 1 is not a line of an export in format 8, 10 or 11" in refused.stderr
    old.write_text(old.read_text(encoding="utf-8").replace('"at": 1', '"at": 2'), encoding="utf-8")
    changed = subprocess.run([sys.executable, SCRIPT, old, again], capture_output=True, text=True)
    assert changed.returncode == 1 and "line 1 was changed" in changed.stderr
    with pytest.raises(SystemExit, match="line 3 is not after"):
        script().converted(HISTORIES[0]["export"][:2] + HISTORIES[0]["export"][3:])
    with pytest.raises(SystemExit, match="the file was cut off"):
        script().converted(HISTORIES[0]["export"][:-1])
    assert not again.exists()
