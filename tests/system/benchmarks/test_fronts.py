"""Comparisons of optimizers of several objectives: delays and noise are paired, scores agree with an independent
computation, and every optimizer gets the losses and directions of the problem."""

import importlib
import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import belated as bl

pytest.importorskip("scipy")

_FOLDER = Path(__file__).parents[3] / "benchmarks"
_TORCH = find_spec("torch") is not None
_SAMPLERS = [
    "optuna-tpe",
    "optuna-nsga2",
    pytest.param("optuna-gp", marks=pytest.mark.skipif(not _TORCH, reason="torch")),
]


@pytest.fixture
def fronts(monkeypatch):
    monkeypatch.syspath_prepend(_FOLDER)
    return importlib.import_module("fronts")


@pytest.fixture
def table(fronts, monkeypatch):
    """A table of 12 rows with one outcome that is maximised and one that is minimised."""
    rng = np.random.default_rng(4)
    columns = {"gain": rng.random(12), "cost": rng.random(12)}
    space = {"a": bl.Ordinal([1, 2, 3, 4]), "b": bl.Categorical(["x", "y", "z"])}
    directions = {"gain": "maximize", "cost": "minimize"}
    stored = {"tiny": {"reference": {"gain": -0.1, "cost": 1.1}, "best": 1.44}}
    monkeypatch.setattr(fronts.front_problems, "_stored", lambda: stored)
    return fronts.front_problems.FrontRows("tiny", space, columns, directions=directions)


class Recorder:
    """Chooses random points, and records when each part arrives."""

    def __init__(self, problem, seed, settings=""):
        self.search = bl.RandomSearch(problem.space, seed=seed)
        self.told, self.n_suggested = [], 0

    def suggest(self):
        self.n_suggested += 1
        return self.search.suggest().params

    def tell(self, number, values):
        self.told.append((number, self.n_suggested, values))


class Called:
    """Counts the calls of a function."""

    def __init__(self, function):
        self.function, self.count = function, 0

    def __call__(self, *arguments):
        self.count += 1
        return self.function(*arguments)


@pytest.mark.parametrize("slow, means", [("none", [2, 2, 2]), ("first", [20, 2, 2])])
def test_delays_and_noise(fronts, slow, means):
    problem = fronts.front_problems.OPEN["dtlz2-3"]()
    draws = [fronts.outcomes.draws(problem, seed, slow) for seed in range(20)]
    delays = np.array([arrivals for arrivals, _ in draws]) - np.arange(100)[:, None] - 8
    assert delays.min() >= 0
    np.testing.assert_allclose(delays.mean(axis=(0, 1)), means, atol=4 * np.sqrt(20 / 2000))
    found = []
    for seed in (1, 2):
        recorder = Recorder(problem, seed)
        true, _, _ = fronts.outcomes.run_one(recorder, problem, slow, 0.05, 7)
        parts = {(number, name): value for number, _, values in recorder.told for name, value in values.items()}
        assert len(parts) == 300
        noise = {key: (each - true[key[1]][key[0]]) / problem.spread[key[1]] for key, each in parts.items()}
        found.append((noise, [(number, n, sorted(values)) for number, n, values in recorder.told]))
    assert found[0][0] == pytest.approx(found[1][0], abs=1e-9) and found[0][1] == found[1][1]
    assert np.std(list(found[0][0].values())) == pytest.approx(0.05, rel=0.15)


def test_shares_of_a_hand_made_run(fronts, table):
    found = {"gain": np.array([0.4, 0.9, 0.2, 0.5]), "cost": np.array([0.6, 1.0, 0.1, 2.0])}
    complete = np.array([9, 12, 12, 8])
    # Trial 3 costs more than the reference. Trials 1 and 2 are complete together.
    single = 0.5 * 0.5
    union = single + (0.9 - 0.4) * (1.1 - 1.0) + 0.3 * (0.6 - 0.1)
    expected = np.array([0.0, single, union, union]) / 1.44
    np.testing.assert_allclose(fronts.shares(table, found, complete), expected)


@pytest.mark.skipif(not find_spec("optuna"), reason="needs optuna")
@pytest.mark.parametrize("kind", _SAMPLERS)
def test_samplers_get_whole_trials_and_directions(fronts, table, monkeypatch, kind):
    monkeypatch.setattr(table, "n_trials", 16)
    peer = fronts.front_peers.PEERS[kind](table, 0, "")
    true, _, _ = fronts.outcomes.run_one(peer, table, "first", 0.0, 0)
    assert [direction.name for direction in peer.study.directions] == ["MAXIMIZE", "MINIMIZE"]
    np.testing.assert_allclose([trial.values for trial in peer.study.trials], np.column_stack(list(true.values())))


def test_ten_observed_trials_are_recommended(fronts):
    problem = fronts.front_problems.OPEN["branin-currin"]()
    peer = fronts.front_peers.Random(problem, 3, "")
    true, _, _ = fronts.outcomes.run_one(peer, problem, "none", 0.0, 0)
    losses, chosen = problem.losses(true), peer.recommend(10)
    best = fronts.front_problems.most_volume(losses, problem.reference_losses, 10)
    assert [problem(params) for params in chosen] == [{name: values[i] for name, values in true.items()} for i in best]
    # Ten random trials have less hypervolume.
    at = {name: [problem(params)[name] for params in chosen] for name in problem.outcomes}
    assert problem.volume(at) > problem.volume({name: values[:10] for name, values in true.items()})


@pytest.mark.skipif(not find_spec("botorch"), reason="needs botorch")
@pytest.mark.parametrize("name", ["branin-currin", "dtlz2-3", None])
def test_botorch_proposes_points_from_partial_observations(fronts, table, monkeypatch, name):
    problem = table
    if name is not None:
        monkeypatch.undo()
        problem = importlib.import_module("front_problems").OPEN[name]()
    monkeypatch.setattr(problem, "n_trials", 20)
    settings = json.dumps({"num_restarts": 2, "raw_samples": 32}) if name else ""
    peer = fronts.front_peers.botorch(problem, 0, settings)
    monkeypatch.setattr(peer, "_acquisition", called := Called(peer._acquisition))
    found, _, _ = fronts.outcomes.run_one(peer, problem, "none", 0.05, 0)
    assert called.count > 0 and len(found[problem.outcomes[0]]) == 20


@pytest.mark.skipif(not hasattr(bl.BayesOpt, "pareto_"), reason="needs several objectives")
@pytest.mark.parametrize("kind", ["belated", "belated-free", "belated-whole"])
def test_belated_observes_each_outcome(fronts, monkeypatch, kind):
    problem = fronts.front_problems.OPEN["branin-currin"]()
    monkeypatch.setattr(problem, "n_trials", 20)
    peer = fronts.front_peers.PEERS[kind](problem, 0, "")
    fronts.outcomes.run_one(peer, problem, "first", 0.05, 0)
    assert not any(trial.missing for trial in peer.trials)
    assert 1 <= len(peer.recommend(10)) <= 10


def test_references_are_the_bounds_of_the_objectives(fronts):
    goal = fronts.front_peers.Belated._goal
    assert goal("minimize", 1.5).at_most == 1.5 and goal("maximize", 1.5).at_least == 1.5
    assert fronts.front_peers.BelatedFree._goal("maximize", 1.5) == "maximize"


def test_runs_continue_and_are_shown(fronts, tmp_path, capsys):
    out = tmp_path / "runs.jsonl"
    given = ["run", "--peers", "random", "other=random", "--problems", "dtlz2-2", "dtlz2-3", "--settings", "first/0.05"]
    assert not fronts.main([*given, "--seeds", "0:2", "--out", str(out)])
    assert not fronts.main([*given, "--seeds", "0:3", "--out", str(out)])
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert len({(r["setting"], r["optimizer"], r["seed"]) for r in records}) == len(records) == 2 * 2 * 3
    for record in records:
        assert record["score"] == pytest.approx(np.log10(1.001 - np.array(record["share"])).mean(), abs=1e-5)
        assert (np.diff(record["share"]) >= 0).all() and len(record["share"]) == 100
        assert 1 - record["missed"] <= record["share"][-1] + 1e-6  # without noise in the true values, a subset
    fronts.main(["show", str(out), "--against", "random"])
    shown = capsys.readouterr().out
    assert "| dtlz2-3 | +0.000 ± 0.000 |" in shown and "| dtlz2-3/first/0.05 | 3 |" in shown


def test_clear_differences_are_marked(fronts):
    rng = np.random.default_rng(0)
    paired = {name: list(shift + rng.normal(size=12)) for name, shift in {"a": 5.0, "b": 0.0, "c": -5.0}.items()}
    assert fronts._verdicts(paired) == {"a": "worse", "c": "better"}


def test_held_out_problems_run_only_on_request(fronts):
    with pytest.raises(SystemExit):
        fronts.main(["run", "--peers", "random", "--problems", *fronts.front_problems.HELD_OUT])
