"""The replays of Wang et al. 2022: their functions, delays and comparisons, and small replays end to end."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

import belated as bl
from belated import replays
from belated.replays import pcts, pcts_fidelity, wang
from belated.replays.runner import Options, execute
from belated.replays.wang import PROBLEMS

DATA = Path(os.environ["BELATED_DATA"]) if "BELATED_DATA" in os.environ else None
needs_data = pytest.mark.skipif(
    DATA is None or not (DATA / wang.DATA_FILE).is_file(), reason=f"BELATED_DATA names no folder with {wang.DATA_FILE}"
)
every_problem = pytest.mark.parametrize("name", PROBLEMS)


@every_problem
def test_the_unit_cube_is_the_domain(name):
    problem = PROBLEMS[name]
    points = np.random.default_rng(0).random((5, problem.d))
    low, high = np.array([(each.low, each.high) for each in problem.function.space.values()]).T
    for z in (0.2, 1.0):
        expected = problem.function(low + (high - low) * points, z)
        np.testing.assert_allclose([problem.value(x, z) for x in points], expected, rtol=1e-12)


@every_problem
def test_the_programs_function_equals_the_full_one_at_full_fidelity(name):
    """The function of the authors' program equals the full function at z = 0 for CurrinExp, and at z = 1 for all other
    problems."""
    problem = PROBLEMS[name]
    full = 0.0 if name == "CurrinExp" else 1.0
    f = wang.program_value(problem)
    for x in np.random.default_rng(1).random((20, problem.d)):
        assert f(x, full) == pytest.approx(min(problem.value(x), problem.optimum if name != "Branin" else np.inf))
        assert abs(f(x, 1 - full) - problem.value(x)) > 0


@every_problem
def test_the_optimum_of_the_paper_agrees_in_its_printed_digits(name):
    problem = PROBLEMS[name]
    tolerance = {"Borehole": 0.06, "CurrinExp": 4e-5}.get(name, 3e-6)
    assert problem.function.optimum == pytest.approx(problem.optimum, abs=tolerance)


@pytest.mark.parametrize("kind", ["Gaussian", "Laplace"])
def test_noise_has_its_variance(kind):
    draw = wang.noise(kind, 0.05, np.random.default_rng(0))
    draws = np.array([draw() for _ in range(40_000)])
    assert draws.var() == pytest.approx(0.05, rel=0.05) and abs(draws.mean()) < 0.005
    kurtosis = np.mean(draws**4) / draws.var() ** 2
    assert kurtosis == pytest.approx(3.0 if kind == "Gaussian" else 6.0, rel=0.15)
    assert wang.noise("none", 0.05, np.random.default_rng(0)) is None


@needs_data
def test_the_published_medians_are_read():
    found = wang.published(DATA)
    assert len(found) == 110
    assert {function for _, function, _ in found} == set(PROBLEMS)
    assert {algorithm for _, _, algorithm in found} == {*wang.TREES, *pcts.RIVALS}
    assert found["constant", "Borehole", "PCTS+DUCBV"] == {"max": 308.3696046, "median": 305.8342653, "std": 2.99}


def test_published_values_are_omitted_without_the_file(tmp_path):
    assert wang.published(tmp_path) == {} == wang.published(None)


def test_a_cell_of_the_table_has_the_better_algorithm():
    known = {
        ("constant", "Hartmann3", "PCTS+DUCB1-sigma"): {"max": 3.85, "median": 3.84, "std": 0.5},
        ("constant", "Hartmann3", "PCTS+DUCBV"): {"max": 3.86, "median": 3.85278, "std": 0.001},
    }

    def described(low, high):
        pairs = (("PCTS+DUCB1-sigma", low), ("PCTS+DUCBV", high))
        return [
            {
                "delays": "constant",
                "function": "Hartmann3",
                "algorithm": name,
                "median": median,
                "values": [median] * 10,
            }
            for name, median in pairs
        ]

    (row,) = pcts.cells(described(3.0, 3.8508), known)["as the scripts, measure full"]
    assert row["published"] == pytest.approx(0.01) and row["allowed"] == pytest.approx(0.012)
    assert row["regret"] == pytest.approx(3.86278 - 3.8508) and row["verdict"] == "within"
    (row,) = pcts.cells(described(3.8506, 3.0), known)["as the scripts, measure full"]
    assert row["verdict"] == "not within"


def test_readings_are_the_last_values_before_them():
    curve = wang.at_readings(np.array([10.0, 35.0]), np.array([1.0, 2.0]), 60.0)
    assert len(curve) == wang.N_READINGS + 1
    assert np.isnan(curve[9]) and curve[10] == curve[34] == 1.0 and curve[35] == curve[60] == 2.0


@pytest.mark.parametrize("faithful", [False, True])
@pytest.mark.parametrize("replay", ["pcts", "pcts-sr", "pcts-noise"])
def test_a_small_replay_prints_its_table_and_writes_its_files(replay, faithful, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    pytest.importorskip("scipy")
    options = Options(
        runs=1,
        iterations=100 if replay == "pcts-sr" else 40,
        workers=0,
        quick=True,
        faithful=faithful,
        json=tmp_path / "numbers.json",
        plot=tmp_path / "figure.png",
        data=DATA,
    )
    execute(replays.found()[replay], options)
    printed = capsys.readouterr().out
    assert "Hartmann3" in printed and "Branin" in printed
    numbers = json.loads(options.json.read_text(encoding="utf-8"))
    assert numbers["runs"] == 1 and numbers["faithful"] is faithful
    assert len({each["algorithm"] for each in numbers["settings"]}) >= 2
    assert options.plot.stat().st_size > 0


def test_runs_are_kept_and_are_the_same_again(tmp_path):
    options = Options(runs=1, iterations=40, workers=0, quick=True, faithful=True, keep=tmp_path)
    replay = replays.found()["pcts"]
    first = replay.run(options)
    kept = sorted(tmp_path.glob("*.json"))
    # On Branin, DUCBV also has another constant.
    assert len(kept) == 2 * (len(pcts.QUICK_FUNCTIONS) * len(pcts.algorithms(True)) + 1)
    again = replay.run(options)
    assert [each["median"] for each in again["settings"]] == [each["median"] for each in first["settings"]]


@pytest.mark.parametrize("algorithm", ["PCTS+DUCB1-sigma", "PCTS+DUCBV"])
def test_the_papers_search_starts_one_evaluation_a_unit(algorithm):
    problem = PROBLEMS["Branin"]
    noise = wang.noise("Gaussian", problem.variance, np.random.default_rng(0))
    curve, n = wang.paper_search(problem, algorithm, "constant", 100, noise, 0.2, np.random.default_rng(1))
    assert n == 97 and curve[-1] <= problem.function.optimum


def test_the_curve_of_the_papers_search_has_the_results_of_shorter_searches():
    """A search that ends earlier recommends what the longer search recommends at that time."""
    problem, arguments = PROBLEMS["Hartmann3"], ("PCTS+DUCBV", "constant")
    curve, _ = wang.paper_search(problem, *arguments, 120, None, 0.1, np.random.default_rng(3))
    # Readings are 2 units apart, and the first result arrives at time 4.
    assert np.isnan(curve[:2]).all() and len(set(curve[2:])) > 2
    for end in (40, 60, 100):
        shorter, _ = wang.paper_search(problem, *arguments, end, None, 0.1, np.random.default_rng(3))
        # The shorter search ends with the results of the time end - 1.
        assert shorter[-1] in curve[[end // 2 - 1, end // 2]]


def test_each_algorithm_of_the_figure_has_a_style_and_bars():
    pytest.importorskip("matplotlib")
    names = pcts.algorithms(False)
    curves = np.cumsum(np.random.default_rng(0).random((3, wang.N_READINGS + 1)), axis=1)
    regret = wang.curve_regret(100.0, curves)
    shown = [{"algorithm": name, "curve_regret": regret} for name in names]
    made = wang.regret_figure({"a": shown, "b": shown[::-1]}, 600, 2)
    first, second = ({each.get_label(): each for each in ax.containers} for ax in made.axes)
    styles = {}
    for name in names:
        line, caps, (bars,) = first[name]
        assert np.array_equal(line.get_ydata(), 100.0 - np.median(curves, axis=0))
        lows, highs = np.transpose([segment[:, 1] for segment in bars.get_segments()])
        assert set(lows) <= set(regret[0]) and set(highs) <= set(regret[2]) and len(lows) >= 5
        styles[name] = (line.get_color(), line.get_linestyle(), line.get_marker())
        other = second[name][0]
        assert styles[name] == (other.get_color(), other.get_linestyle(), other.get_marker())
    assert len(set(styles.values())) == len({marker for *_, marker in styles.values()}) == 11
    assert [text.get_text() for text in made.legends[0].get_texts()] == list(names)
    assert all(ax.get_legend() is None for ax in made.axes)


def test_unsupported_options_are_refused():
    with pytest.raises(bl.errors.InvalidSetting, match="--keep is not an option of the replay pcts-sr"):
        execute(replays.found()["pcts-sr"], Options(keep=Path("x")))


def test_the_seed_of_a_replay_without_chance_is_refused():
    with pytest.raises(bl.errors.InvalidSetting, match="--seed has no effect on pcts-sr --faithful"):
        execute(replays.found()["pcts-sr"], Options(faithful=True, seed=1))
    for function in pcts.QUICK_FUNCTIONS:
        for algorithm in (pcts.PCTS, *pcts.SR):
            setting = pcts.RejectsSetting(function, algorithm)
            found = [pcts.run_rejects(setting, 0, Options(iterations=60, faithful=True, seed=seed)) for seed in (0, 1)]
            assert found[0]["value"] == found[1]["value"]


@needs_data
@pytest.mark.parametrize("name", ["Hartmann6", "CurrinExp", "Branin"])
def test_the_published_maximum_of_mfpoo_is_a_value_at_the_fidelity_of_its_node(name):
    known = wang.published(DATA)["constant", name, "MFPOO+UCB1-sigma"]
    setting = pcts.Setting("constant", name, "MFPOO+UCB1-sigma" + pcts.AS_TABLES)
    found = pcts.run_task(setting, 0, Options(iterations=wang.DURATION, faithful=True))
    assert round(found["node_value"], 6) == known["max"] != round(found["value"], 6)


def test_the_search_with_fidelities_costs_less_and_recommends_full_values(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    options = Options(iterations=60)
    costs = {}
    for evaluates in (pcts_fidelity.OWN, pcts_fidelity.FULL):
        setting = pcts_fidelity.Setting("Hartmann3", "constant", "DUCBV", evaluates)
        found = pcts_fidelity.run_task(setting, 0, options)
        costs[evaluates] = found["cost"]
        # The first result arrives at time 4. Readings are 1 unit apart.
        assert np.isnan(found["curve"][:4]).all() and not np.isnan(found["curve"][4:]).any()
        assert found["value"] == found["curve"][-1] <= PROBLEMS["Hartmann3"].function.optimum
    assert costs[pcts_fidelity.OWN] < costs[pcts_fidelity.FULL] == pytest.approx(60)
    small = Options(runs=1, iterations=30, workers=0, plot=tmp_path / "figure.png")
    execute(replays.found()["pcts-fidelity"], small)
    printed = capsys.readouterr().out
    assert "Borehole, geometric, DUCBV" in printed and "constant, random" in printed
    assert small.plot.stat().st_size > 0


def test_the_cost_of_a_fidelity_has_the_papers_formula():
    for name, exponent in pcts_fidelity.EXPONENTS.items():
        cost = PROBLEMS[name].function.cost
        declared = bl.PowerCost(cost(0.0) / cost(1.0), exponent)
        assert [declared.at(z) * cost(1.0) for z in (0.25, 0.5)] == pytest.approx([cost(0.25), cost(0.5)])
