"""Outcomes that equal their bounds or jump over them, and measured values at bounds."""

import pickle

import numpy as np
import pytest

import belated as bl

SQUARE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def load(p):
    return 4 * p["x"] + p["y"]


def error(p):
    return (p["x"] - 0.9) ** 2 + (p["y"] - 0.2) ** 2


# Each outcome allows the points where the load is at most 2.
TOUCHED = {
    "clipped": (lambda p: max(0.0, load(p) - 2), bl.AtMost(0.0)),
    "yield": (lambda p: min(100.0, 140 - 20 * load(p)), bl.AtLeast(100.0)),
    "count": (lambda p: float(np.ceil(load(p))), bl.AtMost(2)),
    "flag": (lambda p: float(load(p) <= 2), bl.AtLeast(1)),
    "between": (lambda p: float(np.ceil(load(p))), bl.Between(0, 2)),
}


def run(outcomes, measure, n, seed=0, space=SQUARE):
    optimizer = bl.BayesOpt(space, outcomes=outcomes, seed=seed)
    for _ in range(n):
        trial = optimizer.suggest()
        trial.observe(measure(trial.params))
    return optimizer


@pytest.mark.parametrize("name", TOUCHED)
def test_points_at_a_bound_are_allowed(name):
    measure, bound = TOUCHED[name]
    optimizer = run({"error": "minimize", "g": bound}, lambda p: {"error": error(p), "g": measure(p)}, 25)
    # The best allowed point is on the line 4x + y = 2, where the error is about 0.18.
    grid = [{"x": x, "y": y} for x in np.linspace(0, 1, 201) for y in np.linspace(0, 1, 201)]
    best = min(error(p) for p in grid if load(p) <= 2)
    assert optimizer.best_value_ < best + 0.02
    assert error(optimizer.recommend()) < best + 0.02
    holds = [trial.params for trial in optimizer.trials if load(trial.params) <= 2]
    violates = [trial.params for trial in optimizer.trials if load(trial.params) > 2]
    assert min(optimizer.predict_feasible(holds)) > 0.5
    assert not violates or max(optimizer.predict_feasible(violates)) < 0.5


def test_an_outcome_that_always_equals_its_bound_holds():
    optimizer = run({"error": "minimize", "g": bl.AtMost(3.0)}, lambda p: {"error": error(p), "g": 3.0}, 15)
    assert min(optimizer.predict_feasible([trial.params for trial in optimizer.trials])) > 0.9
    assert optimizer.best_value_ < 1e-2


def test_the_objective_may_equal_its_own_bound():
    def measure(p):
        return min(1.0, 1.4 - load(p) / 5)

    outcomes = {"yield": bl.Maximize(at_least=1.0)}
    optimizer = run(outcomes, lambda p: {"yield": measure(p)}, 12)
    inside = [trial.params for trial in optimizer.trials if measure(trial.params) >= 1]
    assert inside and min(optimizer.predict_feasible(inside)) > 0.5


@pytest.mark.parametrize("seed", [0, 2])
def test_a_point_that_was_measured_to_violate_is_not_recommended(seed):
    def memory(p):
        return float(p["x"] > 0.5) + 0.3 * p["y"]

    outcomes = {"error": "minimize", "memory": bl.AtMost(0.7)}
    optimizer = bl.BayesOpt(SQUARE, outcomes=outcomes, seed=seed)
    for i in range(30):
        trial = optimizer.suggest()
        trial.observe({"error": error(trial.params), "memory": memory(trial.params)})
        if i > 8 and optimizer.best_value_ is not None:
            recommended = optimizer.recommend()
            measured = [other.params for other in optimizer.trials if other.values["memory"] > 0.7]
            assert recommended not in measured


def test_an_exact_violation_excludes_its_point_and_its_surroundings():
    optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, outcomes={"f": "minimize", "g": bl.AtMost(1.0)}, seed=0)
    for x in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        optimizer.add({"x": x}, {"f": (x - 0.5) ** 2, "g": 0.0}, std={"f": 0.1, "g": 0.0})
    optimizer.add({"x": 0.5}, {"f": 0.0, "g": 1.0 + 1e-9}, std={"f": 0.1, "g": 0.0})
    assert optimizer.predict_feasible({"x": 0.5}) == 0
    assert optimizer.predict_feasible({"x": 0.4}) == 1
    assert abs(optimizer.recommend()["x"] - 0.5) > 1e-6


@pytest.mark.parametrize("seed", [7, 9])
def test_the_smallest_violation_is_recommended_if_no_bound_holds(seed):
    def purity(p):
        return 0.8 - ((p["t"] - 60) / 60) ** 2 * 0.5

    rng = np.random.default_rng(seed)
    optimizer = bl.BayesOpt({"t": (20.0, 120.0)}, outcomes={"yield": "maximize", "purity": bl.AtLeast(0.95)}, seed=seed)
    for _ in range(12):
        trial = optimizer.suggest()
        t = trial.params["t"]
        trial.observe({"yield": t / 2 + rng.normal(), "purity": purity(trial.params) + 0.01 * rng.normal()})
    recommended = optimizer.recommend()
    assert recommended in [trial.params for trial in optimizer.trials]
    assert purity(recommended) > max(purity(trial.params) for trial in optimizer.trials) - 0.05


def test_the_best_measured_trial_is_recommended_if_no_point_is_probable():
    optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, outcomes={"f": "minimize", "g": bl.AtMost(0.0)}, seed=0)
    rng = np.random.default_rng(0)
    for x in np.linspace(0, 1, 8):
        optimizer.add({"x": x}, {"f": x, "g": float(rng.normal())}, std={"f": 0.0, "g": 1.0})
    holding = [trial for trial in optimizer.trials if trial.values["g"] <= 0]
    if max(optimizer.predict_feasible([{"x": x} for x in np.linspace(0, 1, 101)])) < 0.9:
        assert optimizer.recommend() in [trial.params for trial in holding]


@pytest.mark.parametrize("name", TOUCHED)
def test_suggestions_are_the_same_after_reloading(name):
    measure, bound = TOUCHED[name]
    optimizer = run({"error": "minimize", "g": bound}, lambda p: {"error": error(p), "g": measure(p)}, 14)
    for _ in range(3):
        copy = pickle.loads(pickle.dumps(optimizer))
        assert copy.recommend() == optimizer.recommend()
        trial, other = optimizer.suggest(), copy.suggest()
        assert trial.params == other.params
        trial.observe({"error": error(trial.params), "g": measure(trial.params)})


def test_the_best_trial_satisfies_constraints_that_are_functions(tmp_path):
    for constraint in (lambda p: p["x"] + p["y"] <= 1, bl.Linear({"x": 1, "y": 1}, at_most=1.0)):
        optimizer = bl.BayesOpt(SQUARE, direction="maximize", constraints=[constraint], seed=0)
        for x, y in ((0.9, 0.9), (0.2, 0.2), (0.2, 0.7), (0.6, 0.1)):
            optimizer.add({"x": x, "y": y}, x + y)
        assert optimizer.best_params_ == {"x": 0.2, "y": 0.7}
        assert optimizer.best_trial(outside=True).params_run == {"x": 0.9, "y": 0.9}


@pytest.mark.parametrize("name", ["clipped", "yield", "flag"])
def test_measured_points_are_recommended_next_to_a_bound_that_is_touched(name):
    measure, bound = TOUCHED[name]
    for seed in range(3):
        optimizer = bl.BayesOpt(SQUARE, outcomes={"error": "minimize", "g": bound}, seed=seed)
        for i in range(20):
            trial = optimizer.suggest()
            trial.observe({"error": error(trial.params), "g": measure(trial.params)})
            if i % 5 == 4:
                recommended = optimizer.recommend()
                assert load(recommended) <= 2
                assert error(recommended) <= optimizer.best_value_ + 0.01


def test_no_value_is_exact_if_noise_is_declared():
    rng = np.random.default_rng(0)
    optimizer = bl.BayesOpt(SQUARE, outcomes={"error": "minimize", "g": bl.AtMost(0.0)}, seed=0)
    for _ in range(20):
        trial = optimizer.suggest()
        g = max(0.0, load(trial.params) - 2 + 0.5 * rng.normal())
        trial.observe({"error": error(trial.params), "g": g}, std={"error": 0.0, "g": 0.5})
    holds = [trial.params for trial in optimizer.trials if trial.values["g"] == 0]
    assert holds and max(optimizer.predict_feasible(holds)) < 1


def test_violations_of_one_of_three_outcomes_are_avoided():
    outcomes = {"error": "minimize", "g": bl.AtMost(0.0), "h": bl.AtLeast(1), "k": bl.AtMost(5)}

    def measure(p):
        h, k = float(p["y"] <= 0.5), float(round(5 * p["x"]))
        return {"error": error(p), "g": max(0.0, load(p) - 2), "h": h, "k": k}

    optimizer = run(outcomes, measure, 25)
    recommended = measure(optimizer.recommend())
    assert recommended["g"] == 0 and recommended["h"] == 1 and recommended["k"] <= 5
    assert recommended["error"] <= optimizer.best_value_ + 0.01
