"""Tests of the curves of running and stopped trials in the model of `BayesOpt`, and of the rule "model"."""

import math
import warnings

import numpy as np
import pytest

import belated as bl

STEPS = 20
SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def value(params, step):
    """A curve that rises to the value at the last step, at a rate that depends on x."""
    end = -((params["x"] - 0.3) ** 2) - (params["y"] - 0.6) ** 2
    return end - (1 - step / STEPS) * math.exp(-0.1 * step * (1 + params["x"]))


def bayes(**arguments):
    return bl.BayesOpt(SPACE, seed=3, **({"curve": bl.Curve(STEPS)} | arguments))


def run(optimizer, n_trials, workers=3, each_event=lambda: None):
    """Evaluate trials with several workers, which take turns step by step."""
    running, n_started = [], 0
    while running or n_started < n_trials:
        while len(running) < workers and n_started < n_trials:
            running.append((optimizer.suggest(), 1))
            n_started += 1
            each_event()
        trial, step = running.pop(0)
        trial.report(value(trial.params, step), step)
        if step == STEPS:
            trial.observe(value(trial.params, step))
        elif not trial.should_stop():
            running.append((trial, step + 1))
        each_event()
    return optimizer


def test_the_model_stops_trials_and_finds_the_optimum():
    n_stopped = []
    for seed in range(4):
        optimizer = run(bl.BayesOpt(SPACE, curve=bl.Curve(STEPS), seed=seed), 40)
        assert optimizer._rule == bl.ModelStopping()
        states = [trial.state for trial in optimizer.trials]
        assert set(states) == {"observed", "stopped"}
        n_stopped.append(states.count("stopped"))
        stopped_at = [max(trial.curve) for trial in optimizer.trials if trial.state == "stopped"]
        assert max(stopped_at) <= STEPS // 2
        assert optimizer.best_value_ > -1e-3
        # Before five curves have ended, no trial is stopped.
        ends = [trial.number for trial in optimizer.trials if trial.state == "observed"]
        assert {trial.number for trial in optimizer.trials[:5]} <= set(ends)
    assert np.mean(n_stopped) >= 10


def test_minimisation_mirrors_maximisation():
    one, other = bayes(), bayes(direction="minimize")
    for _ in range(30):
        trials = one.suggest(), other.suggest()
        assert trials[0].params == trials[1].params
        for step in range(1, STEPS + 1):
            y = value(trials[0].params, step)
            trials[0].report(y, step)
            trials[1].report(-y, step)
            stops = [trial.should_stop() for trial in trials]
            assert stops[0] == stops[1]
            if stops[0]:
                break
        else:
            trials[0].observe(y)
            trials[1].observe(-y)


def test_asking_whether_to_stop_does_not_change_suggestions():
    one, other = bayes(stopping=None), bayes(stopping="model")
    for _ in range(12):
        trials = one.suggest(), other.suggest()
        assert trials[0].params == trials[1].params
        for step in range(1, STEPS + 1):
            for trial in trials:
                trial.report(value(trial.params, step), step)
            other._log.ending(trials[1].number, None)
        for trial in trials:
            trial.observe(value(trial.params, STEPS))


def test_the_order_of_reports_does_not_matter():
    params = []
    for order in [range(1, 6), range(5, 0, -1)]:
        optimizer = run(bayes(), 12)
        running = optimizer.suggest()
        for step in order:
            running.report(value(running.params, step), step)
        optimizer.stop(optimizer.suggest())
        params.append(optimizer.suggest().params)
    assert params[0] == params[1]


def test_the_curve_of_a_stopped_trial_informs_the_model():
    optimizer = run(bayes(stopping=None), 10)
    point = {"x": 0.9, "y": 0.05}
    (before,), (std_before,) = optimizer.predict([point])
    trial = optimizer.add(point)
    for step in range(1, 16):
        trial.report(value(point, step), step)
    optimizer.stop(trial)
    (after,), (std_after,) = optimizer.predict([point])
    end = value(point, STEPS)
    assert abs(after - end) < abs(before - end)
    assert std_after < std_before
    assert optimizer.best_trial_.number != trial.number


def test_a_curve_without_reports_or_with_failed_steps_says_nothing():
    optimizer = run(bayes(stopping=None), 10)
    trial = optimizer.suggest()
    expected = optimizer.predict([{"x": 0.5, "y": 0.5}])
    trial.report(math.nan, 1)
    optimizer.stop(trial)
    found = optimizer.predict([{"x": 0.5, "y": 0.5}])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)
    optimizer.suggest()


@pytest.mark.parametrize("pending", ["integrate", "hallucinate", "liar", "nearest", "ignore", "censor"])
def test_every_policy_for_pending_trials_accepts_curves(pending):
    optimizer = run(bayes(pending=pending), 15)
    trials = optimizer.suggest(n=3)
    for step in range(1, 8):
        trials[1].report(value(trials[1].params, step), step)
    assert optimizer.suggest().params not in [trial.params for trial in trials]


@pytest.mark.parametrize("y", [0.0, 1e300, -1e-300])
def test_constant_reports_and_values_are_accepted(y):
    optimizer = bayes()
    for _ in range(12):
        trial = optimizer.suggest()
        for step in range(1, STEPS + 1):
            trial.report(y, step)
            if trial.should_stop():
                break
        else:
            trial.observe(y)
    assert math.isfinite(optimizer.suggest().params["x"])


@pytest.mark.parametrize("diverged", [1e300, -1e300, 1e15])
@pytest.mark.parametrize(("n_ended", "last"), [(2, STEPS), (8, 3), (8, STEPS)])
def test_suggestions_use_the_model_if_a_curve_diverges(diverged, n_ended, last):
    """A running and a stopped trial report a value that overflows in the model's units."""
    opt = bayes(initial=1, pending="hallucinate")
    run(opt, n_ended)
    running, stopped = opt.suggest(n=2)
    for trial, step in ((running, last), (stopped, 3)):
        trial.report(diverged, step)
    opt.stop(stopped)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(4):
            trial = opt.suggest()
            trial.observe(value(trial.params, STEPS))
        mean, std = opt.predict([running.params, stopped.params, {"x": 0.3, "y": 0.6}])
    assert np.isfinite(mean).all() and np.isfinite(std).all()


def test_the_rule_needs_a_model():
    with pytest.raises(bl.errors.InvalidSetting, match="RandomSearch has none"):
        bl.RandomSearch(SPACE, curve=bl.Curve(STEPS), stopping="model")
    assert bl.RandomSearch(SPACE, curve=bl.Curve(STEPS))._rule is None
    assert bl.BayesOpt(SPACE)._rule is None
    for power in [-0.1, math.nan, 11]:
        with pytest.raises(bl.errors.InvalidSetting, match="power"):
            bl.BayesOpt(SPACE, curve=bl.Curve(STEPS), stopping=bl.ModelStopping(power))


def test_without_steps_that_are_left_the_curve_decides_alone():
    # With power 0, a trial is stopped as soon as its curve lowers the expected improvement.
    n_stopped = []
    for power in [0.0, 1.0, 5.0]:
        optimizer = run(bayes(stopping=bl.ModelStopping(power)), 30)
        n_stopped.append(sum(trial.state == "stopped" for trial in optimizer.trials))
    assert n_stopped[0] > n_stopped[2]


def test_forecasts_of_running_and_stopped_trials():
    optimizer = run(bayes(stopping=None), 12)
    with pytest.raises(bl.errors.InvalidSetting):
        bl.RandomSearch(SPACE, seed=0, curve=bl.Curve(3)).predict_final(0)
    errors = []
    for x in np.linspace(0.05, 0.95, 10):
        point = {"x": x, "y": 1 - x}
        trial = optimizer.add(point)
        assert optimizer.predict_final(trial) is None
        for step in range(1, 11):
            trial.report(value(point, step), step)
        mean, std = optimizer.predict_final(trial)
        errors.append((mean - value(point, STEPS)) / std)
        optimizer.stop(trial)
        # The curve is now a row of the model. The forecast is the same up to the effect of the hyperparameters.
        stopped_mean, stopped_std = optimizer.predict_final(trial)
        assert abs(stopped_mean - mean) < 0.5 * std and 0.5 < stopped_std / std < 2
    assert np.abs(errors).max() < 3
    assert optimizer.predict_final(0) is None


def test_forecasts_contain_the_noise_of_the_last_value():
    # Values are mostly noise, so earlier reports carry little information about the last value.
    rng = np.random.default_rng(1)

    def curve(params):
        return 0.3 * params["x"] + rng.normal(0, 1, STEPS)

    optimizer = bl.BayesOpt(SPACE, curve=bl.Curve(STEPS), stopping=None, seed=0)
    for x, y in rng.random((40, 2)):
        trial = optimizer.add({"x": x, "y": y})
        for step, reported in enumerate(curve(trial.params), 1):
            trial.report(reported, step)
        trial.observe(reported)
    inside = []
    for x, y in rng.random((100, 2)):
        trial = optimizer.add({"x": x, "y": y})
        values = curve(trial.params)
        for step, reported in enumerate(values[: STEPS // 2], 1):
            trial.report(reported, step)
        mean, std = optimizer.predict_final(trial)
        inside.append(abs(values[-1] - mean) < 1.28 * std)
        trial.abandon()
    # 80 values are expected inside, with a standard deviation of 4; without the noise of the last value, 59 were
    # inside.
    assert 68 <= sum(inside) <= 92
