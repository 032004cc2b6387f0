"""The pages of docs/ agree with the results in benchmarks/data/replays/ and benchmarks/data/measurements/."""

import gzip
import importlib.util
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from belated import cli, replays
from tests.system.docs.pages import DOCS

_SCRIPT = Path(__file__).parents[3] / "benchmarks" / "page_tables.py"
pytestmark = pytest.mark.skipif(
    not (DOCS.exists() and _SCRIPT.exists()), reason="the installed package comes without its pages"
)


def loaded():
    """Return the script as a module."""
    spec = importlib.util.spec_from_file_location("page_tables", _SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def script():
    return loaded()


NAMES = list(loaded().read()) if _SCRIPT.exists() else []
MEASUREMENTS = [name for name in NAMES if "runs" not in loaded().read()[name]]


@pytest.mark.parametrize("name", NAMES)
def test_tables_of_a_page_are_written_from_its_results(name, script):
    pages = script.read()
    assert script.written(name, pages) == script.text_of(name)
    on_the_page = [match[2] for match in script.TABLE.finditer(script.text_of(name))]
    assert sorted(on_the_page) == sorted(script.tables(name, pages))


@pytest.mark.parametrize("name", NAMES)
def test_the_text_cites_only_numbers_of_the_tables(name, script):
    assert script.unknown_numbers(name, script.read()) == set()


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(MEASUREMENTS)))
def test_each_result_has_a_run_with_its_command_commit_and_seeds(name, script, tmp_path):
    page = script.read()[name]
    for run in page["runs"].values():
        assert set(run) - {"note", "sample"} == {"command", "commit", "seeds", "counts", "minutes"}
        assert re.fullmatch(r"[0-9a-f]{8}", run["commit"]) and run["seeds"]
        program, *arguments = shlex.split(run["command"].replace("DIR", str(tmp_path)))
        assert program == "belated"
        assert cli.parser().parse_args(arguments).name in replays.found().values()
    cited = {row["run"] for row in page["results"]} | {run for each in page["tables"].values() for run in each["runs"]}
    assert cited == set(page["runs"])


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_each_table_of_measurements_has_a_program_and_a_commit(name, script):
    for table in script.read()[name]["tables"].values():
        assert re.fullmatch(r"[0-9a-f]{8}", table["commit"])
        for command in filter(None, table["command"].split("; ")):
            program = re.fullmatch(r"python (-m )?(\S+).*", command)[2].removesuffix(".py").replace(".", "/")
            assert (script.ROOT / f"{program}.py").is_file()


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_figures_with_an_error_are_in_the_tables(page, script):
    sections = re.split(r"^(?=## )", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    without = [section for section in sections if not script.TABLE.search(section)]
    assert re.findall(r".*\d ± \d.*", "".join(without)) == []


def test_every_replay_has_a_result(script):
    pages = [page for name, page in script.read().items() if name not in MEASUREMENTS]
    commands = {run["command"].split()[2] for page in pages for run in page["runs"].values()}
    assert commands == set(replays.found())


def test_a_changed_number_is_found(script, monkeypatch):
    page = {"results": [], "runs": {}, "settings": ["3"], "tables": {"a": {"header": ["x"], "rows": [["7.5"]]}}}
    pages = {"asyts": page}
    text = "## A\n\n7.5 on 3 and -7.5 in Figure 9.\n\n<!-- table: a -->\n\n"
    text += "| x |\n| --- |\n| 7.5 |\n\n<!-- end of table -->\n"
    monkeypatch.setattr(script, "text_of", lambda name: text)
    assert script.written("asyts", pages) == text and script.unknown_numbers("asyts", pages) == set()
    monkeypatch.setattr(script, "text_of", lambda name: text.replace("7.5", "8.5"))
    assert script.written("asyts", pages) != text.replace("7.5", "8.5")
    assert script.unknown_numbers("asyts", pages) == {"8.5"}


def test_counts_of_the_tables_of_pcts_follow_from_its_cells(script):
    page = script.read()["pcts"]
    *rows, medians, within, undecided = page["tables"]["regret"]["rows"]
    counted = {key: [0] * (len(within) - 3) for key in ("median", "within", "undecided")}
    for _, published, allowed, *cells in rows:
        assert float(published) <= float(allowed)
        for k, cell in enumerate(cells):
            is_below = float(cell.strip("*").split(" ")[0]) <= float(allowed)  # the median, before its quartiles
            is_within, is_undecided = cell.startswith("**"), re.match(r"\*[^*]", cell) is not None
            assert is_undecided or is_within == is_below
            for key, value in zip(counted, (is_below, is_within, is_undecided), strict=True):
                counted[key][k] += value
    for last, numbers in zip((medians, within, undecided), counted.values(), strict=True):
        assert [cell.strip("*") for cell in last[3:]] == [f"{n} of {len(rows)}" for n in numbers]
    ours = " ".join(result["ours"] for result in page["results"])
    assert re.findall(r"in (\d+) (?:of 10|by node)", ours) == [str(n) for n in counted["median"]]
    stated = " ".join(result["verdict"] for result in page["results"])
    assert re.findall(r"cells (\d+) within|by node values (\d+)", stated) == [
        (str(n), "") if k in (0, 1, 3) else ("", str(n)) for k, n in enumerate(counted["within"])
    ]
    found = re.findall(r"(\d+) undecided|values \d+, \d+ and (\d+)", stated)
    assert [int(one or other) for one, other in found] == counted["undecided"]


def test_differences_from_the_standard_acquisition_are_bold_if_they_have_a_verdict(script):
    page = script.read()["riegler"]
    for tag, results in (("exact", page["results"][:7]), ("noisy", page["results"][7:])):
        rows = page["tables"][f"paired_{tag}"]["rows"]
        for k, result in enumerate(results, 1):
            decided = {row[0] for row in rows if row[k].startswith("**")}
            verdict = result["verdict"].partition("; undecided")[0]
            assert {row[0] for row in rows if re.search(rf"\b{row[0]}\b", verdict)} == decided


def test_counts_of_verdicts_on_tree_searches_follow_from_their_tables(script):
    pages = script.read()
    tables, results = pages["pcts_noise"]["tables"], pages["pcts_noise"]["results"]
    for delays, result in zip(("constant", "geometric"), results, strict=False):
        rows = tables[f"{delays}_verdicts"]["rows"]
        found = [verdict for _, *cells in rows for cell in cells for verdict in cell.split(" / ")]
        stated = re.search(r"in (\d+) comparisons better in (\d+), worse in (\d+), undecided in (\d+)", result["ours"])
        counted = [len(found), *(found.count(each) for each in ("better", "worse", "undecided"))]
        assert [int(each) for each in stated.groups()] == counted
    heights = [cell for row in pages["pcts"]["tables"]["heights"]["rows"] for cell in (row[3], row[6])]
    assert f"deeper in {heights.count('deeper')} of {len(heights)}" in pages["pcts"]["results"][-1]["ours"]


def test_counts_of_verdicts_on_tuning_follow_from_their_table(script):
    page = script.read()["pcts_tuning"]
    table, stated = page["tables"]["verdicts"], {result["run"]: result for result in page["results"]}
    for k, name in enumerate(table["runs"], 1):
        found = [row[k] for row in table["rows"]]
        better, worse, n = found.count("better"), found.count("worse"), len(found)
        assert f"better in {better} of {n}, worse in {worse}, else undecided" in stated[name]["verdict"]
        assert f"better in {better} of {n} comparisons, worse in {worse}" in stated[name]["ours"]


def test_the_cost_of_delays_of_bpe_follows_from_its_regrets(script):
    page = script.read()["bpe"]
    rows = {row[0]: [float(cell.split(" ")[0]) for cell in row[1:]] for row in page["tables"]["regret"]["rows"]}
    (ours,) = [
        result["ours"] for result in page["results"] if result["figure"] == "Vakili 3" and result["run"] == "bpe"
    ]
    found = []
    for column in (1, 3):  # f1 and f2 at step 1000
        at = {mean: rows[f"BPE-Delay, λ = {mean}"][column] for mean in (0, 25, 50)}
        found += [(at[mean] - at[0]) / mean for mean in (25, 50)]
    stated = [float(number) for number in re.findall(r"\d\.\d", ours)]
    assert found == pytest.approx(stated, abs=0.06)


def test_comparisons_on_tables_follow_from_the_committed_runs(script):
    data = script.ROOT / "benchmarks" / "data"
    scores = {}
    for file in ("tables_belated", "tables_peers"):
        for line in gzip.decompress((data / f"{file}.jsonl.gz").read_bytes()).splitlines():
            run = json.loads(line)
            scores.setdefault((run["setting"], run["optimizer"]), {})[run["seed"]] = run["score"]
    found = {}  # (is a table of scikit-learn, other optimizer, setting) → number, mean, standard error of differences
    for (setting, other), theirs in scores.items():
        ours = scores[setting, "belated"]
        differences = [ours[seed] - score for seed, score in theirs.items() if seed in ours]
        error = np.std(differences, ddof=1) / len(differences) ** 0.5 if len(differences) > 1 else 0.0
        is_sklearn = (data / f"{setting}.npz").exists()
        found[is_sklearn, other, setting] = len(differences), np.mean(differences), error
    labels = {"optuna-gp": "GPSampler", "optuna-tpe": "TPE", "botorch": "BoTorch", "random": "random"}
    tables = script.read()["compared"]["tables"]
    for other, label in labels.items():
        (row,) = [row for row in tables["tables"]["rows"] if row[0].endswith(label)]
        for is_sklearn, cell in zip((False, True), row[1:3], strict=True):
            if cell:
                group = [result for key, result in found.items() if key[:2] == (is_sklearn, other)]
                counts, means, errors = zip(*group, strict=True)
                mean, *error = re.findall(r"-?\d\.\d+", cell.replace("−", "-"))
                assert float(mean) == pytest.approx(np.mean(means), abs=6e-4)
                assert float([*error, 0.0][0]) == pytest.approx(np.linalg.norm(errors) / len(errors), abs=6e-4)
                assert int(re.search(r"\((\d+)", cell)[1]) in {counts[0], sum(counts)}
    weaker = {}
    for (_, other, setting), (count, mean, error) in sorted(found.items(), key=lambda item: item[1][1]):
        if count > 1 and mean > 0:
            weaker[f"`{setting}`"] = [labels[other], str(count)], f"{mean:.3f} ± {error:.3f}"
    assert {row[0]: (re.findall(r"\w+", row[1])[:2], row[2]) for row in tables["weaker"]["rows"]} == weaker


def test_scores_of_other_optimizers_of_curves_follow_from_the_committed_runs(script):
    data = script.ROOT / "benchmarks" / "data"
    scores = {}
    for line in (data / "curve_rivals.jsonl").read_text(encoding="utf-8").splitlines():
        run = json.loads(line)
        is_table = (data / f"curves-{run['family']}.npz").exists()
        scores.setdefault((run["policy"], is_table), {}).setdefault(run["family"], []).append(run["score"])
    rows = script.read()["curve_figures"]["tables"]["policies"]["rows"]
    rows = {re.match(r"\w*", row[0])[0].lower(): row for row in rows}
    for (policy, is_table), families in scores.items():
        mean, *error = map(float, re.findall(r"-?\d\.\d+", rows[policy][1 if is_table else 2].replace("−", "-")))
        assert mean == pytest.approx(np.mean([np.mean(each) for each in families.values()]), abs=6e-3)
        if error:
            errors = [np.std(each, ddof=1) / len(each) ** 0.5 for each in families.values()]
            assert error[0] == pytest.approx(np.linalg.norm(errors) / len(errors), abs=6e-3)
