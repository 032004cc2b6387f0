"""The table "Ways to give up a trial" of docs/runs.md."""

import contextlib

import numpy as np
import pytest

import belated as bl
from tests.clock import Clock

HOUR = 3600.0
# The hyperparameters are fixed, so that optimizers with equal data have equal models.
FIXED = bl.GP(
    kernel="matern52",
    lengthscale=0.2,
    signal_std=1.0,
    noise_std=0.3,
    mean="zero",
    targets="standardized",
    inputs="plain",
)
GRID = np.linspace(0, 1, 21)


class Opened:
    """A study with ten observed trials and a failed one, whose trial at x = 0.5 was then given up."""

    def __init__(self, path, way, **settings):
        clock = Clock()
        limit = {"window": HOUR} if way == "window" else {}
        arguments = {"pending": "hallucinate", "acquisition": bl.UCB(0.0), "surrogate": FIXED} | limit | settings
        opt = bl.BayesOpt(
            candidates=GRID[:, None], clock="seconds", curve=bl.Curve(10), stopping=None, seed=0, **arguments
        )
        self.study = study = bl.Study("s", path / f"{way}.db", opt, time=clock)
        for i in (0, 4, 8, 9, 10, 11, 12, 16, 20, 10):
            clock.now += 10.0
            study.enqueue(i)
            study.suggest().observe(1.0 - abs(i - 10) / 10, duration=60.0 + i)
        study.enqueue(2)
        study.suggest().fail()
        self.number = None
        if way == "never":
            clock.now += 2 * HOUR
            return
        study.enqueue(10)
        trial = study.suggest(expires_after=HOUR if way == "lease" else None)
        self.number = trial.number
        clock.now += 2 * HOUR
        if way in ("fail", "abandon", "stop"):
            getattr(trial, way)()

    @property
    def trial(self):
        return self.study.trial(self.number)


WAYS = ["fail", "abandon", "stop", "lease", "window", "pending"]


@pytest.fixture
def opened(tmp_path):
    return lambda way, **settings: Opened(tmp_path, way, **settings)


@pytest.mark.parametrize(
    ("way", "state"), list(zip(WAYS, ["failed", "abandoned", "stopped", *["pending"] * 3], strict=True))
)
def test_states_and_late_values(opened, way, state):
    made = opened(way)
    assert made.trial.state == state and made.study.best_trial_.number != made.number
    made.trial.observe(5.0)
    assert made.trial.state == "observed" and made.study.best_value_ == 5.0


@pytest.mark.parametrize(("way", "is_blocked"), list(zip(WAYS, [True, True, False, False, False, True], strict=True)))
def test_blocked_points(opened, way, is_blocked):
    made = opened(way)
    assert (made.study.suggest().index != 10) == is_blocked
    if way == "abandon":
        made.study.add(20, 0.0)
        assert made.study.suggest().index == 10


@pytest.mark.parametrize("way", WAYS)
def test_models_of_f_and_of_success(opened, way):
    made, never = opened(way).study, opened("never").study
    (mean, std), (mean_without, std_without) = made.predict(pending=True), never.predict(pending=True)
    assert mean == pytest.approx(mean_without, abs=1e-9)
    assert np.allclose(std, std_without) == (way != "pending")
    if way != "pending":
        same = np.allclose(made.acquisition_at(), never.acquisition_at(), rtol=1e-9)
        assert same == (way != "fail")


def test_the_curve_of_a_stopped_trial_is_used(opened):
    def with_curve(way):
        made = opened("pending", window=2.5 * HOUR)
        for trial in made.study.trials[:9]:
            for step in range(1, 11):
                trial.report((trial.value or 0.0) + step / 10 - 1, step)
        if way == "stop":
            for step in range(1, 6):
                made.trial.report(3.0 + step / 10, step)
            made.trial.stop()
        return made.study.predict(10)[0]

    assert with_curve("stop") > 1.5


@pytest.mark.parametrize("way", ["lease", "window"])
def test_censor_assumes_the_floor(opened, way):
    made, never = (opened(each, pending=bl.Censor(floor=-9.0)).study for each in (way, "never"))
    assert made.predict(10, pending=True)[0] < never.predict(10, pending=True)[0] - 0.5


@pytest.mark.parametrize(
    ("way", "failed", "pending", "abandoned"),
    [("fail", 2, 0, 0), ("abandon", 1, 0, 1), ("stop", 1, 0, 1), ("lease", 1, 0, 1)]
    + [("window", 1, 1, 0), ("pending", 1, 1, 0)],
)
def test_delays(opened, way, failed, pending, abandoned):
    delays = opened(way).study.delays_
    assert (delays.n_failed, delays.n_pending, delays.n_abandoned) == (failed, pending, abandoned)


@pytest.mark.parametrize("way", WAYS)
def test_durations(opened, way):
    made, never = opened(way), opened("never").study
    before, after = never.durations_.predict(10).median, made.study.durations_.predict(10).median
    # A trial whose end is unknown took longer than its age.
    assert (after > 1.01 * before) == (way != "fail")
    assert made.study.durations_.n_known == never.durations_.n_known
    if way == "fail":
        made.trial.fail(duration=5.0)
        assert made.study.durations_.n_known == never.durations_.n_known + 1


@pytest.mark.parametrize("way", WAYS)
def test_totals(opened, way):
    study = opened(way).study
    n_before = study.n_trials
    with pytest.warns(bl.BelatedWarning) if study.pending else contextlib.nullcontext():
        result = bl.maximize(lambda params: 0.0, optimizer=study, n_trials_total=n_before + 1)
    assert result.n_trials == (2 if way == "abandon" else 1)
