"""Warnings about windows and leases that are short compared with the delays so far."""

import warnings
from datetime import timedelta

import pytest

import belated as bl

BOX = {"x": (0.0, 1.0)}


def found(call):
    """Return the warnings of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(each.message) for each in caught]


def with_delays(source, delays, advance=lambda: None, **lease):
    """Report n results with these delays, in suggestions or in seconds of the clock, one after the other."""

    def report():
        for delay in delays:
            trial = source.suggest(**lease)
            for _ in range(delay):
                advance()
            trial.observe(0.5)

    return found(report)


@pytest.mark.parametrize(("window", "expected"), [(9.9, 0), (2.0, 1), (timedelta(seconds=2), 1)])
@pytest.mark.parametrize("stored", [False, True])
def test_a_window_below_the_quartile_gives_one_warning(window, expected, stored, tmp_path):
    now = [0.0]
    opt = bl.BayesOpt(BOX, window=window, clock="seconds", time=lambda: now[0], initial=50, seed=0)
    source = bl.Study("s", f"sqlite:///{tmp_path}/s.db", opt) if stored else opt

    def advance():
        now[0] += 1.0

    # The quantiles 25 % and 95 % are 4 and 10.
    assert with_delays(source, [4] * 10 + [10] * 9, advance) == []
    messages = with_delays(source, [10, 10, 10, 10], advance)
    assert len(messages) == expected
    for message in messages:
        assert message.startswith("window=2 is below the 25% quantile of the delays so far, 4 s,")
        assert "set window=10 or more" in message


def test_delays_are_counted_on_the_clock_and_added_trials_do_not_count():
    opt = bl.BayesOpt(BOX, window=2, initial=60, seed=0)
    opt.add([{"x": i / 40} for i in range(40)], [0.0] * 40)
    trials = []

    def report():
        for _ in range(25):
            trials.append(opt.suggest())
            if len(trials) > 5:
                trials[-6].observe(0.5)

    messages = found(report)
    # After the 25th suggestion, 20 results have arrived, each after 6 suggestions. The next suggestion checks.
    assert messages == []
    [message] = found(opt.suggest)
    assert "quantile of the delays so far, 6 suggestions" in message
    assert found(opt.suggest) == []


@pytest.mark.parametrize("clock", ["iterations", "seconds"])
def test_a_lease_below_the_median_gives_one_warning(clock, tmp_path):
    """Leases and delays are compared in seconds, also if the clock counts iterations."""
    now = [0.0]
    opt = bl.RandomSearch(BOX, clock=clock, seed=0)
    study = bl.Study("s", f"sqlite:///{tmp_path}/s.db", opt, time=lambda: now[0])

    def advance():
        now[0] += 1.0

    assert with_delays(study, [2] * 5 + [8] * 18, advance) == []
    [message] = found(lambda: study.suggest(expires_after=5))
    assert message.startswith("expires_after=5 is below the 50% quantile of the delays so far, 8 s,")
    assert "set expires_after=8 or more" in message
    assert found(lambda: study.suggest(expires_after=5)) == []
    other = bl.Study("s", f"sqlite:///{tmp_path}/s.db", time=lambda: now[0])
    assert found(lambda: other.suggest(expires_after=8)) == []


def test_auto_and_missing_windows_do_not_give_warnings():
    for window in ("auto", None):
        opt = bl.BayesOpt(BOX, pending="censor", window=window, initial=60, seed=0)
        assert with_delays(opt, [1] * 30) == []
