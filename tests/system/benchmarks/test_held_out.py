"""The tables of the page of comparisons and the captions of the front picture follow from the committed runs."""

import importlib
import json
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]
pandas = pytest.importorskip("pandas")


@pytest.fixture
def held_out(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("held_out")


@pytest.fixture
def page():
    text = (ROOT / "benchmarks" / "data" / "measurements" / "compared.json").read_text(encoding="utf-8")
    return json.loads(text)["tables"]


def numbers(cell):
    return [float(number) for number in re.findall(r"-?\d+\.?\d*", cell.replace("−", "-"))]


@pytest.mark.parametrize("group", ["unseen", "held_out"])
def test_scores_and_summary_follow_from_the_committed_runs(held_out, page, group):
    runs = pandas.read_json(held_out.runs_of(group), lines=True)
    scores = runs.pivot(index=["setting", "seed"], columns="optimizer", values="score")
    for row, setting in zip(page[group]["rows"], held_out.SETTINGS[group], strict=True):
        table = scores.loc[setting]
        means, errors, counts = table.mean(), table.sem(), table.count()
        for cell, name in zip(row[1:], held_out.OPTIMIZERS, strict=True):
            if cell == "–":
                assert counts.get(name, 0) < 2
            else:
                assert numbers(cell) == pytest.approx([means[name], errors[name], counts[name]], abs=5.1e-3)
        shown = table[[name for name in counts.index if counts[name] >= 2]]
        for cell, name in zip(row[1:], held_out.OPTIMIZERS, strict=True):
            worse = shown.drop(columns=name, errors="ignore").rsub(table[name], axis=0)
            assert ("**" in cell) == (cell != "–" and not (worse.mean() > 2 * worse.sem()).any())
    labels = {label: name for name, label in held_out.OPTIMIZERS.items()}
    for row in page[f"{group}-summary"]["rows"]:
        pairs = (scores["belated"] - scores[labels[row[0]]]).dropna().groupby("setting").agg(["mean", "sem", "count"])
        pairs = pairs[pairs["count"] >= 2]
        mean, error = pairs["mean"].mean(), np.linalg.norm(pairs["sem"]) / len(pairs)
        assert numbers(row[1]) == pytest.approx([mean, error], abs=5.1e-3) and int(row[2]) == len(pairs)
        better, worse = (pairs["mean"] < -2 * pairs["sem"]).sum(), (pairs["mean"] > 2 * pairs["sem"]).sum()
        assert row[3] == f"{better} / {len(pairs) - better - worse} / {worse}"


def test_the_readme_states_the_summary(page):
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    for name, *stated in re.findall(r"(\w+) \((\d+) wins?, (\d+) ties?, (\d+) loss(?:es)?\)", text):
        assert " / ".join(stated) in [row[3] for row in page["unseen-summary"]["rows"] if row[0] == name]
    assert len(re.findall(r"wins?, \d+ ties?", text)) == 3


def test_the_captions_of_the_front_picture_follow_from_its_runs(page):
    data = json.loads((ROOT / "benchmarks" / "data" / "front_picture.json").read_text(encoding="utf-8"))
    idle, results, scores = {}, {}, {}
    for mode in ("synchronous", "asynchronous"):
        found = data[mode]
        idle[mode], results[mode] = round(100 * np.mean(found["idle"])), round(np.mean(found["results"]))
        scores[mode] = np.log10(found["regret"]).mean(axis=1)
        # Four workers are busy for as long as the trials of the first seed run.
        busy = sum(min(end, data["horizon"]) - start for start, end in found["trials"])
        assert 1 - busy / (4 * data["horizon"]) == pytest.approx(found["idle"][0], abs=1e-3)
    difference = scores["asynchronous"] - scores["synchronous"]
    assert difference.mean() < -4 * difference.std(ddof=1) / np.sqrt(20)  # "are closer to the optimum"
    assert 1.9 < data["horizon"] / 3600 < 2.1 and idle["asynchronous"] == 0  # "two hours", "never idle"
    for name in ("README.md", "docs/index.md"):
        text = " ".join((ROOT / name).read_text(encoding="utf-8").split())
        assert f"idle {idle['synchronous']} % of the time" in text and "two hours" in text
        stated = re.findall(r"finish (\d+) trainings instead of (\d+)", text)
        assert stated in ([], [(str(results["asynchronous"]), str(results["synchronous"]))])
    for row, mode in zip(page["asynchronous"]["rows"], scores, strict=False):
        assert row[:3] == [mode, f"{idle[mode]} %", str(results[mode])]


def test_optima_of_the_added_problems_are_reached(held_out):
    optimize = pytest.importorskip("scipy.optimize")
    problems = importlib.import_module("problems")
    for function in (problems.CAMEL, problems.SHEKEL, problems.COSINES8):
        box = [(each.low, each.high) for each in function.space.values()]

        def negated(x, function=function):
            return -function.formula(x)

        rng = np.random.default_rng(0)
        starts = rng.uniform(*np.transpose(box), size=(40, len(box)))
        starts[0] = 0.0 if function is problems.COSINES8 else starts[0]  # its grid of local maxima is dense
        values = [-optimize.minimize(negated, start, bounds=box, tol=1e-12).fun for start in starts]
        assert max(values) == pytest.approx(function.optimum, abs=1e-4)
        assert max(values) <= function.optimum + 1e-9


def test_optima_of_the_unseen_problems_are_reached_and_not_exceeded(held_out):
    optimize = pytest.importorskip("scipy.optimize")
    problems = importlib.import_module("problems")
    found = {}
    for name, setting in problems.UNSEEN.items():
        function = setting.problem(0)
        dimensions = list(function.space.values())
        low = [0 if hasattr(each, "choices") else each.low for each in dimensions]
        high = [len(each.choices) - 1 if hasattr(each, "choices") else each.high for each in dimensions]
        whole = [not isinstance(each, problems.functions.Real) for each in dimensions]

        def negated(x, function=function, dimensions=dimensions, whole=whole):
            point = [int(round(u)) if is_whole else u for u, is_whole in zip(x, whole, strict=True)]
            return -function.formula(
                [each.choices[u] if hasattr(each, "choices") else u for u, each in zip(point, dimensions, strict=True)]
            )

        box = list(zip(low, high, strict=True))
        found[name] = -optimize.differential_evolution(
            negated, box, rng=1, tol=1e-8, popsize=40, maxiter=300, integrality=whole, polish=not any(whole)
        ).fun
        assert found[name] <= function.optimum + 1e-9, name
    assert found == pytest.approx({name: s.problem(0).optimum for name, s in problems.UNSEEN.items()}, abs=2e-3)
