"""The replay of Kandasamy et al. 2017: runs, stored results, numbers of evaluations, table and figure."""

from __future__ import annotations

import json

import numpy as np
import pytest

import belated as bl
from belated import cli
from belated.replays import asyts
from belated.replays.runner import Options, kept_map
from belated.study.definition import definition_of

SMALL = asyts.Setting("branin", "half-normal", "asyTS")


def run(duration=3, **changes):
    return asyts.run_task(SMALL._replace(**changes), 0, Options(iterations=duration))


def test_a_run_starts_with_the_best_initial_point_and_never_gets_worse():
    curves = {}
    for method in ("asyRAND", "synTS", "asyTS"):
        found = run(method=method)
        curves[method] = np.array(found["regret"])
        assert curves[method].shape == (asyts.N_READINGS + 1,)
        assert (np.diff(curves[method]) <= 0).all() and curves[method][-1] > 0
    # All methods of a run have the same initial points.
    assert len({curve[0] for curve in curves.values()}) == 1
    again = run()
    assert np.array_equal(again["regret"], curves["asyTS"]) and again["n_evaluations"] > 4


def test_synchronous_workers_wait_and_evaluate_less():
    n = {method: run(method=method, duration=40)["n_evaluations"] for method in ("synRAND", "asyRAND")}
    # The largest of M = 4 half-normal times with mean 1 is 1.8 on average.
    assert n["asyRAND"] == pytest.approx(160, rel=0.15) and n["synRAND"] == pytest.approx(160 / 1.83, rel=0.15)


def test_evaluations_are_counted_one_by_one():
    lengths = set()
    for method in asyts.SEQUENTIAL:
        found = run(function="park1", times="evaluations", method=method, duration=1)
        lengths.add(len(found["regret"]))
        assert found["n_evaluations"] == 10
    assert lengths == {11}


def test_methods_have_the_settings_of_the_paper_or_its_code():
    function = asyts.FUNCTIONS["hartmann6"]
    for method in asyts.METHODS:
        plain, code = (asyts.optimizer(method, function, 0, n_trials=385, faithful=f) for f in (False, True))
        if method.endswith("RAND"):
            assert type(plain) is type(code) is bl.RandomSearch
            continue
        assert definition_of(plain) == definition_of(bl.algorithm(method, function.space, seed=0))
        searched = asyts.optimizer(method, function, 0, n_trials=385, faithful=False, direct=True)
        assert searched.search.direct == asyts.N_DIRECT and plain._settings()["search"].direct is None
        assert code.search.multistart == (4905, 0) and code.surrogate.refit_every == 27
        assert getattr(code.acquisition, "beta", 1.0) == ("kandasamy_code" if "UCB" in method else 1.0)
    assert [asyts.n_scored(d, j) for d, j in ((2, 50), (6, 10**6), (18, 775))] == [2000, 7905, 6959]
    assert [asyts.n_initial(asyts.FUNCTIONS[name]) for name in ("branin", "hartmann18")] == [12, 25]


def test_initial_points_lie_in_the_box():
    function = asyts.FUNCTIONS["branin"]
    points = asyts.initial_points(function, 200, np.random.default_rng(0))
    x = np.array([list(point.values()) for point in points])
    assert x.min(axis=0) == pytest.approx([-5, 0], abs=0.3) and x.max(axis=0) == pytest.approx([10, 15], abs=0.3)


def square(number):
    return {"square": number**2, "nothing": float("nan")}


def test_stored_results_are_not_computed_again(tmp_path):
    tasks = {f"n{number}": number for number in range(4)}
    made = kept_map(square, tasks, tmp_path / "new" / "folder", 0, "squares")
    assert made["n3"] == {"square": 9, "nothing": None}
    kept = tmp_path / "new" / "folder"
    assert sorted(file.name for file in kept.iterdir()) == [f"n{number}.json" for number in range(4)]
    (kept / "n1.json").write_text('{"square": "kept"}')
    (kept / "n2.json").unlink()
    (kept / "n2.123.part").write_text("half of it")
    again = kept_map(square, tasks, kept, 0, "squares")
    assert again == made | {"n1": {"square": "kept"}}
    assert kept_map(square, {"n1": 1}, None, 0, "squares")["n1"]["square"] == 1
    (kept / "n3.json").write_text("{")
    with pytest.raises(bl.errors.InvalidSetting, match="n3.json does not contain a stored result .* delete it"):
        kept_map(square, tasks, kept, 0, "squares")


def described(function, finals):
    return [
        {"function": function, "times": asyts.COUNTED, "method": method, "final": np.array(final)}
        for method, final in finals.items()
    ]


def test_counts_use_paired_differences():
    better = {"asyRAND": [3.0, 4.0, 5.0], "synTS": [1.0, 2.0, 3.0], "asyTS": [0.9, 2.1, 2.9]}
    # In every run of `worse`, the regret of asyTS is smaller than the regret of asyRAND and larger than the regret of
    # synTS.
    worse = {"asyRAND": [3.0, 4.0, 5.0], "synTS": [1.0, 2.0, 3.0], "asyTS": [1.2, 2.2, 3.3]}
    found = asyts.counts(described("branin", better) + described("park1", worse) + described("park2", {"synTS": [1.0]}))
    assert list(found["functions"]) == ["branin", "park1"]
    assert (found["beats_random"], found["no_worse_than_synTS"]) == (2, 1)
    assert found["functions"]["park1"]["difference_to_synTS"] == pytest.approx(0.7 / 3)
    # The table of a single run does not contain comparisons that need a standard error.
    one = asyts.counts(described("branin", {method: values[:1] for method, values in better.items()}))
    assert (one["beats_random"], one["no_worse_than_synTS"]) == (1, None)


def test_verdicts_are_about_asyts_in_a_panel_and_about_equal_numbers_of_evaluations():
    pytest.importorskip("scipy")
    rng = np.random.default_rng(0)
    luck, signs = rng.normal(0, 5, 20), rng.permutation([-1.0, 1.0] * 10)
    worse = {"synRAND": 1.0, "asyEI": 0.5, "asyHTS": -0.5}
    settings = [
        {"function": "branin", "times": "uniform", "method": name, "final": luck + worse.get(name, 0.0) + 0.1 * signs}
        for name in asyts.METHODS
    ]
    settings += [
        {
            "function": "hartmann6",
            "times": "evaluations",
            "method": name,
            "regret_after": {"10": luck + k, "30": luck + 0.1 * k * signs},
        }
        for k, name in enumerate(asyts.SEQUENTIAL)
    ]
    found = asyts.against_rivals({"settings": settings})
    panel = "branin, d = 2, M = 4, uniform"
    decided = {tuple(each.values())[:3]: each["verdict"] for each in found if each["verdict"] != "undecided"}
    assert len(found) == 9 + 6 and decided == {
        (panel, "asyTS", "synRAND"): "better",
        (panel, "asyTS", "asyEI"): "better",
        (panel, "asyTS", "asyHTS"): "worse",
        ("hartmann6, 10 evaluations", "seqTS", "synTS"): "better",
        ("hartmann6, 10 evaluations", "seqTS", "asyTS"): "better",
        ("hartmann6, 10 evaluations", "synTS", "asyTS"): "better",
    }


def test_the_replay_end_to_end(tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(asyts, "QUICK_FUNCTIONS", ("branin",))
    arguments = ["replay", "asyts", "--quick", "--runs", "1", "--iterations", "1", "--workers", "0"]
    files = ["--json", str(tmp_path / "a.json"), "--plot", str(tmp_path / "a.png"), "--keep", str(tmp_path / "kept")]
    assert cli.main([*arguments, *files]) == cli.DONE
    first = capsys.readouterr().out
    assert "branin, d = 2, M = 4, uniform" in first and "asyTS - synTS" in first and "one run cannot tell" in first
    report = json.loads((tmp_path / "a.json").read_text())
    assert (report["runs"], report["duration"], report["faithful"]) == (1, 1, False)
    by_panel = {(s["function"], s["times"], s["method"]) for s in report["settings"]}
    assert by_panel == set(asyts.every_setting(asyts.QUICK_FUNCTIONS))
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert len(list((tmp_path / "kept").iterdir())) == len(report["settings"])
    # The complete result is stored.
    assert cli.main([*arguments, *files]) == cli.DONE
    assert capsys.readouterr().out == first


def test_a_panel_whose_methods_reach_the_maximum_shows_when_they_do():
    pytest.importorskip("matplotlib")
    readings = np.arange(asyts.N_READINGS + 1)
    reached = {method: 6 + k for k, method in enumerate(asyts.METHODS)}
    settings = [
        {"function": "park1", "times": "half-normal", "method": method, "curve_mean": 5.0 * (readings < at)}
        for method, at in reached.items()
    ]
    settings += [
        {"function": name, "times": times, "method": method, "curve_mean": 2.0 / (1 + readings)}
        for name, times, methods in [
            ("hartmann6", "evaluations", asyts.SEQUENTIAL),
            ("branin", "uniform", asyts.METHODS),
        ]
        for method in methods
    ]
    for setting in settings:
        setting["curve_stderr"] = np.zeros(len(readings))
    made = asyts.figure({"duration": 30, "settings": settings})
    branin, park1 = made.axes[1:3]
    assert branin.get_yscale() == "log" and park1.get_yscale() == "symlog"
    low, high = park1.get_ylim()
    assert low < 0 < 5.0 < high and park1.get_xlim() == (0.0, 2 * max(reached.values()) * 0.5)


def test_options_of_this_replay_are_refused_elsewhere(capsys):
    pytest.importorskip("sklearn")
    for option in (["--quick"], ["--keep", "folder"]):
        assert cli.main(["replay", "lr", *option]) == cli.FAILED
        assert f"{option[0]} is not an option of the replay lr" in capsys.readouterr().err


def test_every_panel_and_count_is_run_in_full():
    settings = asyts.every_setting(tuple(asyts.FUNCTIONS))
    assert {function for function, times, _ in settings if times == asyts.COUNTED} == set(asyts.FUNCTIONS)
    assert set(asyts.PANELS) <= {each[:2] for each in settings}
    assert {times for _, times in asyts.PANELS} == set(asyts.TIMES)
    assert all(law.mean == pytest.approx(1.0) for law in asyts.TIMES.values())


def test_numbers_of_workers_have_the_evaluations_of_table_1():
    def n_evaluations(method, workers):
        setting = asyts.WorkersSetting("hartmann3", asyts.WORKERS_TIMES, method, workers)
        return asyts.run_with_workers(setting, 0, Options(iterations=60))["n_evaluations"]

    for workers in (1, 4, 16):
        assert n_evaluations("asyRAND", workers) == pytest.approx(60 * workers, rel=0.2)
    # Table 1 for exponential times: M T / (1 + 1/2 + ... + 1/M).
    harmonic = sum(1 / k for k in range(1, 17))
    assert n_evaluations("synRAND", 16) == pytest.approx(60 * 16 / harmonic, rel=0.2)


def test_all_numbers_of_workers_have_the_same_initial_points(monkeypatch):
    monkeypatch.setattr(asyts, "N_EVALUATIONS", 3)
    first = set()
    for workers in (1, 2, 32):
        method = "seqTS" if workers == 1 else "asyTS"
        found = asyts.run_with_workers(
            asyts.WorkersSetting("branin", "evaluations", method, workers), 0, Options(iterations=2)
        )
        assert len(found["regret"]) == 4 and found["n_evaluations"] == 3
        first.add(found["regret"][0])
    assert len(first) == 1


def test_the_replay_of_workers_end_to_end(tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(asyts, "COMPARED_WORKERS", (1, 2, 4))
    monkeypatch.setattr(asyts, "WORKERS_FUNCTIONS", ("branin",))
    monkeypatch.setattr(asyts, "N_EVALUATIONS", 4)
    monkeypatch.setattr(asyts, "TABLED_EVALUATIONS", (2, 4))
    arguments = ["replay", "asyts-workers", "--runs", "2", "--iterations", "1", "--workers", "0"]
    files = ["--json", str(tmp_path / "a.json"), "--plot", str(tmp_path / "a.png")]
    assert cli.main([*arguments, *files]) == cli.DONE
    shown = capsys.readouterr().out
    assert "branin: simple regret after n evaluations" in shown and "M = 4" in shown
    report = json.loads((tmp_path / "a.json").read_text())
    methods = {(each["times"], each["method"], each["workers"]) for each in report["settings"]}
    timed = {("seqTS", 1), ("synTS", 2), ("asyTS", 2), ("synTS", 4), ("asyTS", 4)}
    assert {each[1:] for each in methods if each[0] == "evaluations"} == timed
    assert {each[1:] for each in methods if each[0] == "exponential"} == timed | {("asyRAND", m) for m in (1, 2, 4)}
    pairs = [tuple(each.values())[1:7] for each in report["verdicts"]]
    assert len(pairs) == len(set(pairs)) == 18
    assert ("exponential", "-1", "asyTS", 2, "asyTS", 1) in pairs
    assert ("evaluations", "2", "synTS", 4, "seqTS", 1) in pairs
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
