"""The program that compares optimizers: the program's clocks agree with their definitions and with `belated.simulate`,
and the files and tables that it writes are correct."""

import importlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from belated import RandomSearch
from belated.simulate import Poisson, Uniform, simulate, simulate_workers

pytest.importorskip("scipy")

_FOLDER = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def compare(monkeypatch):
    monkeypatch.syspath_prepend(_FOLDER)
    module = importlib.import_module("compare")
    short = {"hartmann3-poisson10": 14, "branin-uniform": 10}
    monkeypatch.setattr(
        module, "SETTINGS", {name: replace(module.SETTINGS[name], n_evaluations=n) for name, n in short.items()}
    )
    return module


def test_on_the_iteration_clock_a_run_equals_simulate(compare):
    setting = compare.SETTINGS["hartmann3-poisson10"]
    function = setting.problem(3)
    ours = compare.run_one(compare.peers.make("random", function.space, 3), function, setting, 3)
    theirs = simulate(RandomSearch(function.space, seed=3), function, 14, Poisson(10), noise=0.2, seed=3)
    np.testing.assert_array_equal(ours.arrivals, theirs.arrivals)
    np.testing.assert_array_equal(ours.values, theirs.values)
    np.testing.assert_allclose(ours.observed, theirs.observed, rtol=1e-15)


def test_with_workers_a_run_equals_simulate_workers(compare):
    setting = compare.SETTINGS["branin-uniform"]
    function = setting.problem(3)
    ours = compare.run_one(compare.peers.make("random", function.space, 3), function, setting, 3)
    optimizer = RandomSearch(function.space, seed=3)
    theirs = simulate_workers(optimizer, function, workers=4, times=Uniform(), n_trials=13, noise=0.2, seed=3)
    np.testing.assert_array_equal(ours.started, theirs.started)
    np.testing.assert_array_equal(ours.arrivals, theirs.arrivals)
    np.testing.assert_array_equal(ours.values, theirs.values)
    np.testing.assert_allclose(ours.observed, theirs.observed, rtol=1e-15)


def test_durations_change_at_half_of_the_horizon(compare):
    setting = importlib.import_module("durations").SETTINGS["branin-change"]
    function = setting.problem(3)
    told = {}

    class Peer:
        def __init__(self):
            self.optimizer = RandomSearch(function.space, seed=3)

        def suggest(self):
            trial = self.optimizer.suggest()
            return trial, trial.params

        def observe(self, trial, value, duration):
            told[trial.number] = duration

    history = compare.run_one(Peer(), function, setting, 3)
    low, high = function.space["x1"].low, function.space["x1"].high
    u = np.array([(point["x1"] - low) / (high - low) for point in history.points])
    early = history.started < setting.horizon / 2
    assert 10 < early.sum() < len(early) - 10
    np.testing.assert_allclose(history.delays, 10 ** np.where(early, u, 1 - u), rtol=1e-12)
    assert told == {i: history.delays[i] for i in told} and len(told) > 50


@pytest.mark.parametrize("name", ["hartmann3-poisson10", "branin-uniform"])
def test_regret_counts_arrived_results_and_never_rises(compare, name):
    record = compare.measure("random", name, 1)
    assert np.all(np.diff(record["regret"]) <= 0)

    setting = compare.SETTINGS[name]
    function = setting.problem(1)
    history = compare.run_one(compare.peers.make("random", function.space, 1), function, setting, 1)
    at = compare.readings(setting, history.arrivals)
    known = [history.values[history.arrivals <= now] for now in at]
    np.testing.assert_allclose(record["regret"], [function.optimum - v.max() for v in known], rtol=1e-5)
    assert record["score"] == pytest.approx(np.mean(np.log10(record["regret"])), abs=1e-4)
    assert len(at) == 10 if setting.workers else at[0] == history.arrivals.min()


def test_every_problem_has_values_below_its_optimum(compare):
    problems = importlib.import_module("problems")
    for name, setting in problems.SETTINGS.items():
        function = setting.problem(0)
        values = [function(trial.params) for trial in RandomSearch(function.space, seed=0).suggest(n=200)]
        assert max(values) < function.optimum, name


@pytest.mark.parametrize(
    ("name", "x"),
    [
        ("ackley10-uniform", [0.0] * 10),
        ("levy16-uniform", [1.0] * 16),
        ("styblinski-student", [-2.903534] * 5),
        ("mixed-uniform", ["b", "disc", 7, 0.3, 0.7, 0.7]),
    ],
)
def test_problems_have_their_optimum_at_the_stated_point(compare, name, x):
    problems = importlib.import_module("problems")
    function = problems.SETTINGS[name].problem(0)
    assert function(dict(zip(function.space, x, strict=True))) == pytest.approx(function.optimum, abs=1e-9)


def test_problems_of_many_dimensions_have_their_optimum_at_the_stated_point(compare):
    dimension = importlib.import_module("dimension")
    for d in (20, 50, 100):
        rosenbrock = dimension.SETTINGS[f"rosenbrock-{d}"].problem(0)
        hartmann6 = dimension.SETTINGS[f"hartmann6-of-{d}"].problem(0)
        assert len(rosenbrock.space) == len(hartmann6.space) == d
        assert rosenbrock(dict.fromkeys(rosenbrock.space, 1.0)) == rosenbrock.optimum == 0

        at = [0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573]
        rest = np.random.default_rng(d).random(d - 6)
        params = dict(zip(hartmann6.space, [*at, *rest], strict=True))
        assert hartmann6(params) == pytest.approx(hartmann6.optimum, abs=1e-9)


def test_rosenbrock_equals_scipys(compare):
    optimize = pytest.importorskip("scipy.optimize")
    function = importlib.import_module("dimension").SETTINGS["rosenbrock-50"].problem(0)
    for trial in RandomSearch(function.space, seed=0).suggest(n=20):
        assert function(trial.params) == pytest.approx(-optimize.rosen(list(trial.params.values())), rel=1e-12)


def test_the_scales_of_the_regression_equal_an_anisotropic_kernel(compare):
    gaussian_process = pytest.importorskip("sklearn.gaussian_process")
    svm = pytest.importorskip("sklearn.svm")
    dimension = importlib.import_module("dimension")
    function = dimension.SETTINGS["svr-digits-67"].problem(0)
    train, target, validation, truth = dimension._digits()
    for trial in RandomSearch(function.space, seed=0).suggest(n=3):
        *scales, c, epsilon, gamma = trial.params.values()
        kernel = gaussian_process.kernels.RBF(1 / (np.sqrt(2 * gamma) * np.array(scales)))
        model = svm.SVR(kernel="precomputed", C=c, epsilon=epsilon).fit(kernel(train), target)
        errors = model.predict(kernel(validation, train)) - truth
        assert function(trial.params) == pytest.approx(-np.sqrt(np.mean(errors**2)), rel=1e-6)


def test_one_at_a_time_cma_is_a_loop_of_pycma(compare):
    cma = pytest.importorskip("cma")
    function = importlib.import_module("dimension").SETTINGS["rosenbrock-20"].problem(0)

    peer = compare.peers.make("cma", function.space, 4)
    ours = []
    for _ in range(40):  # three full generations of 12 points, and some points of a fourth generation
        number, params = peer.suggest()
        peer.observe(number, function(params))
        ours.append(params)

    # pycma draws from numpy's global generator, so the two loops must run one after the other.
    strategy = cma.CMAEvolutionStrategy([0.5] * 20, 0.25, {"bounds": [0, 1], "seed": 5, "verbose": -9})
    theirs = []
    while len(theirs) < 40:
        points = strategy.ask()
        asked = [peer.space.decode(point) for point in points]
        strategy.tell(points, [-function(params) for params in asked])
        theirs += asked
    assert ours == theirs[:40]


@pytest.mark.parametrize("workers", [4, 9])  # a generation has 6 trials
def test_cma_accepts_late_and_unordered_results(compare, workers):
    pytest.importorskip("cma")
    setting = replace(compare.SETTINGS["branin-uniform"], n_evaluations=60, workers=workers)
    function = setting.problem(0)
    peer = compare.peers.make("cma", function.space, 0)
    compare.run_one(peer, function, setting, 0)
    generations = peer.strategy.countiter
    assert peer.strategy.countevals == 6 * generations <= 60
    assert (6 + workers - 1) * (generations + 1) > 60  # the other workers are busy when a generation ends
    assert len(peer.points) == 59 + workers
    assert np.min(peer.points) >= 0 and np.max(peer.points) <= 1


def test_peers_for_boxes_refuse_other_spaces(compare):
    pytest.importorskip("cma")
    with pytest.raises(compare.peers.Unavailable, match="a=.* is not a Real: this adapter of CMA-ES"):
        compare.peers.make("cma", {"a": [1, 2, 3]}, 0)


def test_botorch_begins_with_the_given_number_of_points(compare, monkeypatch):
    torch = pytest.importorskip("torch")
    function = compare.SETTINGS["branin-uniform"].problem(0)
    middle = torch.full((2,), 0.5, dtype=torch.double)
    monkeypatch.setattr(compare.peers.BoTorch, "_propose", lambda peer: middle)
    for settings, n_initial in (("", 5), (':{"initial": 3}', 3)):
        peer = compare.peers.make(f"botorch{settings}", function.space, 0)
        for _ in range(6):
            number, params = peer.suggest()
            peer.observe(number, function(params))
        expected = torch.quasirandom.SobolEngine(2, scramble=True, seed=0).draw(n_initial, dtype=torch.double)
        assert torch.equal(torch.stack(peer.points), torch.cat([expected, middle.expand(6 - n_initial, 2)]))


def test_analytic_logei_of_botorch_refuses_pending_points(compare):
    pytest.importorskip("torch")
    peer = compare.peers.make('botorch:{"analytic": true}', compare.SETTINGS["branin-uniform"].problem(0).space, 0)
    peer.suggest()
    with pytest.raises(compare.peers.Unavailable, match="knows no points that are out"):
        peer.suggest()


def test_all_optimizers_get_the_same_delays_and_noise_for_a_seed(compare):
    setting = compare.SETTINGS["branin-uniform"]
    function = setting.problem(0)
    one, other = (
        compare.run_one(compare.peers.make(text, function.space, 0), function, setting, 0)
        for text in ("belated", "random")
    )
    np.testing.assert_array_equal(one.arrivals, other.arrivals)
    np.testing.assert_allclose(one.observed - one.values, other.observed - other.values, atol=1e-12)
    assert one.points != other.points


def test_a_line_that_another_process_is_writing_is_skipped(compare, tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text('{"seed": 0}\n{"seed": 1}\n{"see')
    assert compare.read([path, tmp_path / "missing.jsonl"]) == [{"seed": 0}, {"seed": 1}]


def test_a_stopped_run_continues_and_is_shown(compare, tmp_path, capsys):
    out = tmp_path / "results.jsonl"
    command = ["run", "--settings", *compare.SETTINGS, "--out", str(out), "--optimizers", "random"]
    assert compare.main([*command, "--seeds", "0"]) == 0
    before = out.read_text()
    tuned = 'tuned=belated:{"acquisition": "ucb"}'
    assert compare.main([*command, "belated-algorithm:GP-UCB", tuned, "--seeds", "0:2"]) == 0
    assert out.read_text().startswith(before)
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert len({compare.key(record) for record in records}) == len(records) == 12

    capsys.readouterr()
    compare.main(["table", str(out), "--settings", *compare.SETTINGS, "--against", "random"])
    lines = capsys.readouterr().out.splitlines()
    row = next(line.split(" | ") for line in lines if line.startswith("| branin-uniform"))
    mean = {
        label: np.mean([r["score"] for r in records if (r["setting"], r["optimizer"]) == ("branin-uniform", label)])
        for label in ("random", "tuned")
    }
    assert row[1] == "2" and row[2].startswith(f"{mean['random']:.3f} ±")
    assert f"({mean['tuned'] - mean['random']:+.3f} ±" in row[4]

    pytest.importorskip("matplotlib")
    compare.main(["draw", str(out), "--settings", *compare.SETTINGS, "--out", str(tmp_path / "figure.png")])
    assert (tmp_path / "figure.png").stat().st_size > 0


def test_optimizers_that_cannot_run_are_not_recorded(compare, tmp_path, capsys):
    out = tmp_path / "results.jsonl"
    with pytest.raises(compare.peers.Unavailable, match="'nobody' is not an optimizer"):
        compare.main(["run", "--settings", "branin-uniform", "--out", str(out), "--optimizers", "nobody"])
    wrong = 'belated:{"acquisition": "luck"}'
    assert compare.main(
        ["run", "--settings", "branin-uniform", "--seeds", "0", "--out", str(out), "--optimizers", wrong]
    )
    assert "luck" in capsys.readouterr().err and not out.exists()
