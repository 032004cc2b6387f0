"""Simulated runs on learning curves agree with a loop over time steps; families are read from files as described."""

import importlib
import math
from pathlib import Path

import numpy as np
import pytest

import belated as bl

_FOLDER = Path(__file__).parents[3] / "benchmarks"
_SPACE = {"a": bl.Ordinal([1, 2, 4, 8]), "kind": bl.Categorical(["x", "y", "z"])}


@pytest.fixture
def curves(monkeypatch):
    monkeypatch.syspath_prepend(_FOLDER)
    return importlib.import_module("curves")


def tiny(curves, declared="last", failing=0.0):
    rng = np.random.default_rng(3)
    values = rng.normal(size=(12, 3, 9)).cumsum(axis=-1)
    if failing:
        values[rng.random(values.shape) < failing] = np.nan
        values = np.where(np.isnan(values).cumsum(axis=-1) > 0, np.nan, values)
    return curves.Family("tiny", _SPACE, values, np.ones(12), declared)


class Stops:
    """A random search that stops trials by a random rule and records its calls. It may continue stopped trials."""

    def __init__(self, seed, continues=False):
        self.search, self.rng = bl.RandomSearch(_SPACE, seed=seed), np.random.default_rng(seed)
        self.continues = continues
        self.calls, self.stopped, self.n = [], [], 0

    def ask(self):
        if self.continues and self.stopped and self.rng.random() < 0.5:
            return self.stopped.pop(0)
        self.n += 1
        return self.search.suggest().params

    def report(self, trial, step, value):
        self.calls.append((trial, step, float(value)))
        stops = bool(self.rng.random() < 0.1)
        if stops and step < 9:
            self.stopped.append(trial)
        return stops

    def end(self, trial, value):
        self.calls.append((trial, "end", float(value)))


@pytest.mark.parametrize("declared", ["last", "best"])
@pytest.mark.parametrize("failing", [0.0, 0.05])
@pytest.mark.parametrize("continues", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_runs_agree_with_a_loop_over_steps(curves, declared, failing, continues, seed):
    family = tiny(curves, declared, failing)
    policy, other = Stops(seed, continues), Stops(seed, continues)
    run = curves.simulate_curves(policy, family, seed, workers=3, budget=10)
    rng = np.random.default_rng(seed)
    horizon = 10 * 9 // 3
    running, stopped, best, regret, trace, wins = [], {}, None, 1.0, [], {}

    def start():
        params = other.ask()
        if isinstance(params, int):
            running.append(stopped.pop(params))
            return
        seed_ = int(rng.random() * 3)
        running.append([other.n - 1, params, family.values[family.grid.find(params), seed_], 0])

    for _ in range(3):
        start()
    for _ in range(horizon):
        for job in sorted(running, key=lambda job: job[0]):
            number, params, curve, step = job
            job[3] = step = step + 1
            value = curve[step - 1]
            done = False
            if math.isnan(value):
                other.end(number, value)
                done = True
            else:
                done = other.report(number, step, value)
                if done or step == 9:
                    full = curve[-1] if declared == "last" else curve.max()
                    wins[number] = full > (-np.inf if best is None else best) + 2 * family.noise
                if step == 9:
                    done = True
                    value = curve[-1] if declared == "last" else max(curve)
                    other.end(number, value)
                    if best is None or value > best:
                        best = value
                        ends = family.values[family.grid.find(params)]
                        ends = ends[:, -1] if declared == "last" else ends.max(axis=1)
                        f = ends.mean() if np.isfinite(ends).all() else -np.inf
                        regret = (family.best - f) / (family.best - family.median)
            if done:
                running[:] = [j for j in running if j is not job]
                stopped[number] = job
                start()
        trace.append(regret)
    assert str(policy.calls) == str(other.calls)
    expected = [([1.0, *trace])[int(math.floor(horizon * k / 100 + 1e-9))] for k in range(1, 101)]
    np.testing.assert_allclose(run.regret, expected)
    assert len(run.ended()) == len(wins) and len(run.winners(family.noise)) == sum(wins.values())
    assert len(run.trials) == other.n


def test_a_worker_is_idle_if_the_policy_has_no_trial(curves):
    class Few(Stops):
        def ask(self):
            return super().ask() if self.n < 5 else None

    run = curves.simulate_curves(Few(0), tiny(curves), 0, workers=3, budget=30)
    assert len(run.trials) == 5 and max(trial.time for trial in run.trials) <= 18


class Halving:
    """Jobs of successive halving with 4, 2 and 1 configurations at 1, 2 and 9 steps; the last job comes twice."""

    def __init__(self, rivals, family):
        class Policy(rivals.Promotions):
            def _suggest(policy):
                if not self.jobs:
                    raise StopIteration
                key, fidelity = self.jobs.pop(0)
                return key, key, {"a": key, "kind": 0}, fidelity

            def _tell(policy, job, value):
                self.told.append((job, value))

        self.jobs = [(0, 0.4), (1, 1.0), (2, 1.3), (3, 1.0), (1, 2.1), (2, 2.1), (1, 9.0), (1, 9.0)]
        self.told, self.policy = [], Policy(family)


@pytest.mark.parametrize("declared", ["last", "best"])
def test_a_promoted_trial_takes_only_the_additional_steps(curves, declared):
    family = tiny(curves, declared)
    halving = Halving(importlib.import_module("rivals"), family)
    run = curves.simulate_curves(halving.policy, family, 0, workers=1, budget=9)
    assert [trial.n_steps for trial in run.trials] == [1, 9, 2, 1]
    assert max(trial.time for trial in run.trials) == 13
    rng = np.random.default_rng(0)
    seeds = [int(rng.random() * 3) for _ in range(4)]
    lines = [family.curve({"a": [1, 2, 4, 8][key], "kind": "x"}, seeds[key]) for key in range(4)]
    steps = [(0, 1), (1, 1), (2, 1), (3, 1), (1, 2), (2, 2), (1, 9), (1, 9)]
    expected = [lines[key][step - 1] if declared == "last" else max(lines[key][:step]) for key, step in steps]
    assert halving.told == list(zip([key for key, _ in steps], expected, strict=True))


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_an_epoch_of_the_small_network_is_a_step_along_the_gradient(curves, activation):
    network = importlib.import_module("small_network").SmallNetwork(3, 1.0, 0.0, 5, 1.0, activation, seed=0)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(5, 64)), rng.integers(10, size=5)

    def loss():
        logits = network.forward(x)[-1]
        logits = logits - logits.max(axis=1, keepdims=True)
        return -np.mean(logits[range(5), y] - np.log(np.exp(logits).sum(axis=1)))

    before = [weights.copy() for weights in network.weights]
    slopes = []
    for weights in network.weights:
        place = tuple(rng.integers(size) for size in weights.shape)
        weights[place] += 1e-6
        above = loss()
        weights[place] -= 2e-6
        slopes.append((place, (above - loss()) / 2e-6))
        weights[place] += 1e-6
    network.partial_fit(x, y)  # one batch, at the rate 1
    for old, new, (place, slope) in zip(before, network.weights, slopes, strict=True):
        assert old[place] - new[place] == pytest.approx(slope, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("name", ["mlp-digits", "boosting-diabetes", "network-digits"])
def test_a_table_contains_what_training_gives(curves, name):
    pytest.importorskip("sklearn")
    import curve_tables

    task, family = curve_tables.TASKS[name], curves.family(name)
    params = family.grid.params(77)
    found = curve_tables.curve(task, curve_tables.data_of(task), params, 2)
    np.testing.assert_allclose(family.curve(params, 2), found, atol=0.51 * task.quantum)


@pytest.mark.parametrize("name", ["mlp-digits", "boosting-diabetes"])
@pytest.mark.parametrize("n_ended", [30, 100])
def test_forecasts_of_the_core_are_as_good_as_the_prototype(curves, name, n_ended):
    pytest.importorskip("scipy")
    forecasts = importlib.import_module("curve_forecasts")

    def density(model):
        records = [forecasts.measure(model, name, n_ended, repeat) for repeat in range(5)]
        assert 0.6 < np.mean([record["coverage"] for record in records]) < 0.95
        return np.mean([record["density"] for record in records])

    assert density("curves+empirical+core") > density("curves+empirical+inflated10") - 0.15
