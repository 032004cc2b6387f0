"""Reports that contradict or correct an earlier report, and reports that raise an error and leave the optimizer
unchanged."""

import math

import numpy as np
import pytest

import belated as bl
from tests.unit.optimizers.definitions import success

SURROGATE = bl.GP(kernel="matern52", lengthscale=0.3, signal_std=1.0, noise_std=0.1)


def optimizer(**arguments):
    return bl.BayesOpt({"x": (0.0, 1.0)}, initial=0, seed=0, surrogate=SURROGATE, **arguments)


def history(final, between, **arguments):
    """Return an optimizer with four values, and a trial with these reports. With `between`, a suggestion is made
    between two reports."""
    opt = optimizer(**arguments)
    opt.add([{"x": x} for x in (0.1, 0.4, 0.7, 0.9)], [1.0, -2.0, 3.0, 0.5])
    opt.enqueue({"x": 0.2})
    trial = opt.suggest()
    for report in final:
        getattr(trial, report)()
        if between:
            opt.suggest().abandon()
    return opt, trial


POINTS = [{"x": i / 10} for i in range(11)]

policies = pytest.mark.parametrize(
    "arguments",
    [{}, {"acquisition": "ucb", "pending": "hallucinate"}]
    + [{"acquisition": "ucb", "pending": bl.Censor(-5.0, late=late), "window": 2.0} for late in ("accept", "discard")],
    ids=lambda arguments: "-".join(str(value) for value in arguments.values()) or "default",
)


@policies
@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("pending", [False, True])
def test_a_failed_trial_that_is_abandoned_leaves_the_model(arguments, between, pending):
    opt, trial = history(["fail", "abandon"], between, **arguments)
    assert trial.state == "abandoned"
    never, other = history(["abandon"], between, **arguments)
    assert other.state == "abandoned"
    for ours, theirs in zip(opt.predict(POINTS, pending=pending), never.predict(POINTS, pending=pending), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    # The model does not contain data at the point of the trial.
    assert opt.surrogate_.n_observed == 4


@policies
def test_a_failed_trial_counts_until_it_is_abandoned(arguments):
    opt, trial = history(["fail"], False, **arguments)
    # Failures have a separate model, which affects the choice of points but not the model of f.
    assert opt.surrogate_.n_observed == 4 and trial.state == "failed"
    if not arguments:
        never, _ = history(["abandon"], False)
        lost = never.acquisition_at(POINTS) - opt.acquisition_at(POINTS)
        points = np.array([[each["x"]] for each in POINTS])
        x = np.array([[0.1], [0.4], [0.7], [0.9], [0.2]])
        expected = -success(x, [False] * 4 + [True], points).log_term
        np.testing.assert_allclose(lost, expected, rtol=1e-6, atol=1e-9)
        assert (lost >= 0).all() and lost.max() > 0.05


def test_an_abandoned_trial_may_still_be_reported_as_failed():
    opt, trial = history(["abandon", "fail"], True, pending="hallucinate")
    never, _ = history(["abandon"], True, pending="hallucinate")
    assert trial.state == "failed"
    lost = never.acquisition_at(POINTS) - opt.acquisition_at(POINTS)
    assert (lost >= 0).all() and lost.max() > 0.05


def test_a_value_after_fail_and_abandon_is_accepted():
    opt, trial = history(["fail", "abandon"], True)
    trial.observe(2.0)
    model, center, scale, _ = opt._log.surrogate(None, False)
    assert trial.state == "observed" and model.n_observed == 5
    assert center + scale * model.y[-1] == pytest.approx(2.0, abs=1e-6)


@pytest.mark.parametrize("bad", [-0.1, math.inf, "0.1"])
@pytest.mark.parametrize("kind", ["optimizer", "study"])
def test_points_are_added_with_all_of_their_stds_or_not_at_all(tmp_path, kind, bad):
    opt = optimizer()
    if kind == "study":
        opt = bl.Study("s", f"sqlite:///{tmp_path / 'studies.db'}", opt)
    points = [{"x": 0.1}, {"x": 0.2}, {"x": 0.3}]
    for stds in ([0.1, bad, 0.1], [None, None, bad], [bad, 0.1, 0.1]):
        with pytest.raises(bl.errors.InvalidValue, match="std"):
            opt.add(points, [1.0, 2.0, 3.0], std=stds)
        assert opt.n_trials == 0
    opt.add(points, [1.0, 2.0, 3.0], std=[0.1, None, 0.3])
    assert [trial.std for trial in opt.trials] == [0.1, None, 0.3]
