"""A timedelta may be passed wherever a time in seconds is."""

from datetime import timedelta

import numpy as np
import pandas as pd
import pytest

import belated as bl
from belated.study.definition import definition_of

BOX = {"x": (0.0, 1.0)}
HOUR = timedelta(hours=1)


def test_durations():
    opt = bl.RandomSearch(BOX, seed=0)
    first, second, third = opt.suggest(n=3)
    first.observe(1.0, duration=HOUR)
    opt.observe(second, 1.0, duration=HOUR)
    third.fail(duration=HOUR)
    added = opt.add([{"x": 0.1}, {"x": 0.2}], [1.0, 2.0], duration=[HOUR, 60.0])
    assert [trial.duration for trial in [first, second, third, *added]] == [3600.0] * 4 + [60.0]
    for name in ("std", "cost"):
        with pytest.raises(bl.errors.InvalidValue, match=name):
            opt.add({"x": 0.3}, 1.0, **{name: HOUR})


def test_leases_and_timeouts(tmp_path):
    study = bl.Study("s", tmp_path / "s.db", bl.RandomSearch(BOX, seed=0), time=lambda: 100.0)
    assert study.suggest(expires_after=HOUR).expires_at == 3700.0
    result = bl.maximize(lambda params: 1.0, BOX, seed=0, timeout=timedelta(milliseconds=50))
    assert result.stop_reason == "timeout"


def test_windows(tmp_path):
    opt = bl.BayesOpt(BOX, pending="censor", window=HOUR, clock="seconds", seed=0)
    assert opt.window_ == 3600.0 and opt.get_params()["window"] is HOUR
    assert definition_of(opt) == definition_of(bl.BayesOpt(BOX, pending="censor", window=3600, clock="seconds", seed=0))
    study = bl.Study("s", tmp_path / "s.db", opt)
    assert study.window_ == bl.Study.load("s", tmp_path / "s.db").window_ == 3600.0
    with pytest.raises(bl.errors.InvalidSetting, match=r"^window=.*timedelta.* needs clock='seconds'"):
        bl.BayesOpt(BOX, window=HOUR)
    assert opt.set_params(window=20.0).window_ == 20.0


@pytest.mark.parametrize("hour", [np.timedelta64(1, "h"), np.timedelta64(3600 * 10**9, "ns"), pd.Timedelta(hours=1)])
def test_timedeltas_of_numpy_and_pandas(tmp_path, hour):
    opt = bl.BayesOpt(BOX, pending="censor", window=hour, clock="seconds", seed=0, time=lambda: 100.0)
    assert opt.window_ == 3600.0
    opt.add([{"x": 0.1}, {"x": 0.2}], [1.0, 2.0], duration=[hour, hour])
    first, second = opt.suggest(n=2)
    first.observe(1.0, duration=hour)
    assert [trial.duration for trial in opt.trials] == [3600.0] * 3 + [None]
    assert opt.forecast(by=hour) == opt.forecast(by=HOUR)
    assert opt.delays_.arrival_probability(second, hour) == opt.delays_.arrival_probability(second, HOUR)
    study = bl.Study("s", tmp_path / "s.db", bl.RandomSearch(BOX, seed=0), time=lambda: 100.0)
    assert study.suggest(expires_after=hour).expires_at == 3700.0
    assert study.forecast(by=hour) == study.forecast(by=HOUR)
    assert bl.minimize(lambda params: 1.0, BOX, seed=0, n_trials=1, timeout=hour).stop_reason == "n_trials"
    with pytest.raises(bl.errors.InvalidSetting, match="needs clock='seconds'"):
        bl.BayesOpt(BOX, window=hour)


@pytest.mark.parametrize("wrong", [np.timedelta64(3), np.timedelta64(1, "M"), np.timedelta64("NaT"), pd.NaT])
def test_timedeltas_without_a_length_are_refused(wrong):
    opt = bl.RandomSearch(BOX, seed=0, clock="seconds")
    with pytest.raises(bl.errors.InvalidValue, match="^by="):
        opt.forecast(by=wrong)
    if not pd.isna(wrong):  # a gap
        with pytest.raises(bl.errors.InvalidValue, match="duration"):
            opt.suggest().observe(1.0, duration=wrong)
