"""Plots with a time axis: trials in lanes, and delays. The tests read the artists of plots and their data."""

from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import CensoredData, ecdf

import belated as bl
from belated import plotting
from belated._core import Action
from belated.plotting.delays import arrived_within
from belated.plotting.trials import lanes_of
from tests.unit.plotting.searches import drawn, labels, late

pytest.importorskip("matplotlib").use("Agg")


@pytest.mark.parametrize(
    ("seconds", "unit", "last"), [(20.0, "seconds", 20.0), (600.0, "minutes", 10.0), (36000.0, "hours", 10.0)]
)
def test_times_have_the_unit_of_their_range(seconds, unit, last):
    now = [0.0]
    search = bl.RandomSearch({"x": (0.0, 1.0)}, time=lambda: now[0], seed=0)
    trial = search.suggest()
    now[0] = seconds
    trial.observe(1.0)
    ax = plotting.plot_trials(search)
    assert (ax.get_xlabel(), drawn(ax)["observed"].get_xdata()) == (f"Time ({unit})", [last])
    ax = plotting.plot_delays(search)
    assert (ax.get_xlabel(), drawn(ax)["ended (1)"].get_xdata()[-1]) == (f"Delay ({unit})", last)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9))))
def test_there_are_as_many_lanes_as_simultaneous_trials(spans):
    spans = sorted((start, start + length) for start, length in spans)
    lanes = lanes_of(spans)
    for lane in set(lanes):
        own = [span for span, each in zip(spans, lanes, strict=True) if each == lane]
        assert all(one[1] <= other[0] for one, other in zip(own, own[1:], strict=False))
    # A trial that ends at the moment of its start must be drawn in a separate row at this moment.
    at_once = max((sum(s <= t < e for s, e in spans) for t in range(30)), default=0)
    assert set(lanes) == set(range(1, len(set(lanes)) + 1))
    assert at_once <= max(lanes, default=0) <= at_once + any(s == e for s, e in spans)


def test_trials_are_bars_from_suggestion_to_end_in_lanes(opt):
    ax = plotting.plot_trials(opt, clock="iterations")
    assert labels(ax) == ("Time (suggestions started)", "Trials in flight")
    bars = [bar for container in ax.containers for bar in container]
    spans = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in bars)
    assert spans == sorted((trial.suggested_at, trial.ended_at or 14) for trial in opt.trials)
    ends = {label: len(line.get_xdata()) for label, line in drawn(ax).items()}
    # The delays in wall-clock time vary, so any observed or pending trial may be late.
    assert sum(ends.values()) == 14 and (ends["failed"], ends["abandoned"]) == (1, 1)
    assert ends["observed"] <= 9 and ends.get("pending", 0) <= 3
    assert max(bar.get_y() + bar.get_height() / 2 for bar in bars) == 4
    assert "pending" not in ends or set(drawn(ax)["pending"].get_xdata()) == {14}


def fates(ax):
    return {label: len(line.get_xdata()) for label, line in drawn(ax).items()}


def test_trials_are_late_from_the_end_of_their_lease_on(tmp_path):
    now = [0.0]
    plain = bl.RandomSearch({"x": (0.0, 1.0)}, clock="seconds", time=lambda: now[0], seed=0)
    study = bl.Study("s", f"sqlite:///{tmp_path}/s.db", plain)
    study.suggest(4, expires_after=5.0)
    study.observe(0, 1.0)
    now[0] = 9.0
    study.observe(1, 1.0)
    study.suggest(expires_after=5.0)
    ax = plotting.plot_trials(study)
    assert fates(ax) == {"observed": 1, "late": 3, "pending": 1}
    # Bars of trials without a value are hatched.
    hatches = [bar.get_hatch() for container in ax.containers for bar in container]
    assert sorted(str(hatch or "") for hatch in hatches) == ["", "", "///", "///", "///"]


@pytest.mark.parametrize("clock", ["iterations", "seconds"])
def test_trials_are_late_beyond_the_delays_and_windows_do_not_matter(clock):
    now = [0.0]
    settings = {"pending": "censor", "window": 0.5, "clock": clock, "time": lambda: now[0], "seed": 0}
    opt = bl.BayesOpt({"x": (0.0, 1.0)}, **settings)
    slow, lost = opt.suggest(n=2)
    for _ in range(30):
        trial = opt.suggest()
        now[0] += 100.0
        trial.observe(trial.params["x"])
    opt.suggest()
    now[0] += 50.0
    slow.observe(0.0)
    assert lost.number in opt._log.lateness(now[0])[1]
    assert fates(plotting.plot_trials(opt)) == {"observed": 30, "late": 2, "pending": 1}


# Delays.


@given(st.lists(st.integers(1, 8), min_size=1, max_size=12), st.lists(st.integers(1, 9), max_size=8))
def test_delays_are_kaplan_meier_estimates(known, ages):
    at, arrived, error = arrived_within(known, ages)
    reference = ecdf(CensoredData.right_censored(known + ages, [False] * len(known) + [True] * len(ages)))
    steps = reference.cdf.quantiles.tolist()
    for t, share in zip(at, arrived, strict=True):
        place = bisect_right(steps, t)
        expected = reference.cdf.probabilities[place - 1] if place else 0.0
        assert share == pytest.approx(expected)
    if 0 < arrived[1] < 1:
        z = 0.6744897501960817  # half of a normal distribution is within ± z standard deviations
        low = reference.cdf.confidence_interval(confidence_level=0.5).low.probabilities
        expected = (arrived[1] - low[steps.index(at[1])]) / z
        if low[steps.index(at[1])] > 0:
            assert error[1] == pytest.approx(expected)


def test_delays_with_trials_in_flight(opt):
    ax = plotting.plot_delays(opt, clock="iterations")
    assert labels(ax) == ("Delay (suggestions started)", "Share of trials ended")
    lines = drawn(ax)
    # Ten trials ended after 4 suggestions, the abandoned trial is censored after 4, and three pending trials have the
    # ages 1, 2 and 3.
    assert lines["ended (10)"].get_xydata().tolist()[:2] == [[0, 0], [4, pytest.approx(10 / 11)]]
    assert sorted(lines["in flight (4)"].get_xdata()) == [1, 2, 3, 4]
    assert "window" not in lines
    windowed = late(bl.BayesOpt({"x": (0.0, 1.0), "C": (0.1, 1.0)}, pending="censor", window=7.0, seed=0), n=5)
    assert drawn(plotting.plot_delays(windowed, clock="iterations"))["window"].get_xdata() == [7.0, 7.0]


def test_the_axis_of_delays_ends_before_trials_that_are_much_older():
    now = [0.0]
    opt = bl.RandomSearch({"x": (0.0, 1.0)}, time=lambda: now[0], seed=0)
    lost = opt.suggest(n=2)
    for delay in (20.0, 40.0, 30.0):
        trial = opt.suggest()
        now[0] += delay
        trial.observe(1.0)
    ax = plotting.plot_delays(opt)
    assert ax.get_xlim()[1] >= 90.0 and sorted(drawn(ax)["in flight (2)"].get_xdata()) == [90.0, 90.0]
    now[0] = 7200.0
    opt.suggest()
    now[0] = 7210.0
    ax = plotting.plot_delays(opt)
    lines = drawn(ax)
    assert all(trial.state == "pending" for trial in lost)
    assert ax.get_xlabel() == "Delay (seconds)" and ax.get_xlim() == (0.0, 60.0)
    assert lines["in flight (1)"].get_xdata() == [10.0]
    older = lines["in flight, older (2): up to\n120 minutes"]
    assert older.get_xdata() == [60.0] and older.get_marker() == ">" and not older.get_clip_on()
    assert lines["ended (3)"].get_xdata()[:4].tolist() == [0.0, 20.0, 30.0, 40.0]


def test_the_fitted_distribution_is_drawn_if_the_axis_has_the_clock_of_the_search():
    opt = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
    for _ in range(200):
        first, second = opt.suggest(n=2)  # the delays are 2 and 1
        opt.observe(first, 1.0)
        opt.observe(second, 1.0)
    at, share = drawn(plotting.plot_delays(opt, clock="iterations"))["fitted"].get_data()
    assert at.tolist() == [0, 1, 2]
    assert share == pytest.approx([0, 0.5, 1], abs=0.1)
    assert "fitted" not in drawn(plotting.plot_delays(opt))
    assert "fitted" not in drawn(plotting.plot_delays(bl.RandomSearch({"x": (0.0, 1.0)}), clock="iterations"))


def test_times_are_seconds_by_default_and_unknown_times_are_left_out():
    now = [100.0]
    opt = bl.RandomSearch({"x": (0.0, 1.0)}, time=lambda: now[0], seed=0)
    for time, number in ((100.0, None), (103.0, None), (107.0, 0), (108.0, None)):
        now[0] = time
        if number is None:
            opt.suggest()
        else:
            opt.observe(number, 1.0)
    opt._log.record(Action.add([0.5], None, None), None)  # trials of another library, whose times are not known
    now[0] = 110.0
    bars = [bar for container in plotting.plot_trials(opt).containers for bar in container]
    spans = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in bars)
    assert spans == [(0.0, 7.0), (3.0, 10.0), (8.0, 10.0)]
    ax = plotting.plot_delays(opt)
    assert labels(ax) == ("Delay (seconds)", "Share of trials ended")
    assert sorted(drawn(ax)["in flight (2)"].get_xdata()) == [2.0, 7.0]
    assert drawn(ax)["ended (1)"].get_xdata()[1] == 7.0
    seconds = bl.RandomSearch({"x": (0.0, 1.0)}, clock="seconds", seed=0)
    for plot in (plotting.plot_trials, plotting.plot_delays):
        for search, clock in ((opt, "hours"), (seconds, "iterations")):
            with pytest.raises(bl.errors.InvalidSetting, match="clock"):
                plot(search, clock=clock)


# The model.
