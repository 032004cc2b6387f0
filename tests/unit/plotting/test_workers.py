"""The plot of workers; the tests read the artists."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import belated as bl
from belated import plotting
from belated.plotting.workers import workers_of
from belated.simulate import Exponential, Uniform, simulate, simulate_workers
from tests.clock import Clock
from tests.unit.plotting.searches import drawn

pytest.importorskip("matplotlib").use("Agg")
SPACE = {"x": (0.0, 1.0)}


def bars_of(ax):
    """Return the bars as (label, worker, start, end), ordered by worker and start."""
    found = []
    for container in ax.containers:
        for bar in container:
            row = round(bar.get_y() + bar.get_height() / 2)
            found.append((container.get_label(), row, bar.get_x(), bar.get_x() + bar.get_width()))
    return sorted(found, key=lambda bar: bar[1:])


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9))))
def test_the_number_of_workers_is_the_largest_number_of_concurrent_trials(spans):
    spans = sorted((start, start + length) for start, length in spans)
    workers = workers_of(spans)
    for worker in set(workers):
        own = [span for span, each in zip(spans, workers, strict=True) if each == worker]
        assert all(one[1] <= other[0] for one, other in zip(own, own[1:], strict=False))
    assert max(workers, default=0) == max((sum(s <= t < e for s, e in spans) for t in range(30)), default=0)


def test_a_trial_is_assigned_to_the_worker_that_became_free_last():
    assert workers_of([(0, 2), (0, 3), (1, 9), (3, 5), (4, 6), (9, 10)]) == [1, 2, 3, 2, 1, 3]


def test_bars_gaps_and_the_idle_share():
    now = [46.0]
    opt = bl.RandomSearch(SPACE, time=lambda: now[0], curve=bl.Curve(3), seed=0)
    opt.add({"x": 0.5}, 2.0)  # it does not have a duration
    now[0] = 50.0
    a, b = opt.suggest(n=2)
    now[0] = 54.0
    a.observe(1.0)
    now[0] = 56.0
    b.fail()
    c = opt.suggest()
    now[0] = 58.0
    d = opt.suggest()
    now[0] = 59.0
    c.report(1.0, 1)
    c.stop()
    now[0] = 60.0
    ax = plotting.plot_workers(opt)
    assert d.state == "pending"
    assert bars_of(ax) == [
        ("observed", 1, 4.0, 8.0),
        ("pending", 1, 12.0, 14.0),
        ("failed", 2, 4.0, 10.0),
        ("stopped", 2, 10.0, 13.0),
    ]
    # Of 2 * 10 seconds, 5 seconds are idle.
    assert ax.get_title() == "2 workers, idle 25 % of the time"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("Time (seconds)", "Worker")
    looks = {(bar.get_facecolor(), bar.get_hatch()) for container in ax.containers for bar in container}
    assert len({colour for colour, _ in looks}) == len({hatch for _, hatch in looks}) == 4
    ax = plotting.plot_workers(opt, clock="iterations")
    assert sorted(bar[2:] for bar in bars_of(ax)) == [(0, 2), (1, 2), (2, 4), (3, 4)]


def test_a_trial_that_is_started_again_counts_from_its_last_start(monkeypatch):
    now = Clock()
    opt = bl.RandomSearch(SPACE, time=now, seed=0)
    first, _ = opt.suggest(n=2)  # the program that asked for the trials is killed
    now.now = 100.0
    monkeypatch.setattr("belated.run.objective.perf_counter", now)

    def f(params, trial):
        now.now += 5.0
        if trial.number == 1:
            raise OSError
        return 1.0

    with pytest.warns(bl.BelatedWarning, match="trial 1 failed"):
        bl.maximize(f, optimizer=opt, n_trials_total=4, retry_pending=True)
    ax = plotting.plot_workers(opt)
    # Two trials were in flight at a time. Of 2 * 120 seconds, 220 seconds are idle.
    starts = [100.0, 105.0, 110.0, 115.0]
    assert sorted(bar[2:] for bar in bars_of(ax)) == [(start, start + 5.0) for start in starts]
    assert {bar[2] for bar in bars_of(ax) if bar[0] == "failed"} == {105.0}
    assert ax.get_title() == "2 workers, idle 92 % of the time"
    # The delay is counted from the suggestion.
    assert first.ended_at - first.suggested_at == 2 and len(drawn(plotting.plot_trials(opt))) > 0


def test_durations_do_not_move_starts_before_the_suggestion():
    now = Clock(50.0)
    opt = bl.RandomSearch(SPACE, time=now, seed=0)
    a, b = opt.suggest(n=2)
    now.now = 60.0
    a.observe(1.0, duration=30.0)
    b.observe(1.0, duration=4.0)
    assert bars_of(plotting.plot_workers(opt)) == [("observed", 1, 0.0, 10.0), ("observed", 2, 6.0, 10.0)]


@pytest.mark.parametrize("mode", ["asynchronous", "synchronous"])
def test_simulated_workers_are_found(mode):
    search = bl.RandomSearch(SPACE, clock="seconds", seed=0)
    history = simulate_workers(
        search, lambda p: p["x"], workers=3, times=Exponential(30.0), n_trials=24, mode=mode, seed=1
    )
    ax = plotting.plot_workers(history)
    bars = bars_of(ax)
    spans = sorted(zip(history.started / 60, history.arrivals / 60, strict=True))
    assert sorted(bar[2:] for bar in bars) == [pytest.approx(span) for span in spans]
    assert {row for _, row, _, _ in bars} == {1, 2, 3}
    idle = 1 - history.delays.sum() / (3 * history.arrivals.max())
    assert ax.get_title() == f"3 workers, idle {100 * idle:.0f} % of the time"
    for one, other in zip(bars, bars[1:], strict=False):
        if mode == "asynchronous" and one[1] == other[1]:
            assert one[3] == pytest.approx(other[2])  # a free worker has a new trial at once
    # The optimizer has the same times, and knows which trials were late.
    assert [bar[1:] for bar in bars_of(plotting.plot_workers(search))] == [
        (bar[1], *map(pytest.approx, bar[2:])) for bar in bars
    ]


def test_a_history_has_its_own_clock():
    history = simulate(bl.RandomSearch(SPACE, seed=0), lambda p: p["x"], 12, delay=Uniform(1, 4), seed=0)
    ax = plotting.plot_workers(history)
    assert ax.get_xlabel() == "Time (suggestions started)"
    assert sorted(bar[2] for bar in bars_of(ax)) == list(range(12))


def test_runs_have_as_many_rows_as_workers(tmp_path):
    def f(params):
        time.sleep(0.02)
        return params["x"]

    study = bl.Study("s", f"sqlite:///{tmp_path}/s.db", bl.RandomSearch(SPACE, seed=0))
    for settings in ({"space": SPACE, "seed": 0}, {"optimizer": study}):
        result = bl.maximize(f, **settings, n_trials=12, n_workers=3)
        bars = bars_of(plotting.plot_workers(result))
        assert len(bars) == 12 and {row for _, row, _, _ in bars} == {1, 2, 3}
    assert bars_of(plotting.plot_workers(study)) == bars


def test_the_axis_of_times_is_cut_if_pending_trials_are_much_older():
    now = [0.0]
    opt = bl.RandomSearch(SPACE, time=lambda: now[0], seed=0)
    opt.suggest()
    for _ in range(4):
        trial = opt.suggest()
        now[0] += 25.0
        trial.observe(1.0)
    for plot in (plotting.plot_workers, plotting.plot_trials):
        now[0] = 300.0
        ax = plot(opt)
        assert ax.get_xlabel() == "Time (minutes)" and ax.get_xlim()[1] >= 5.0
        now[0] = 36000.0
        ax = plot(opt)
        assert ax.get_xlabel() == "Time (seconds); the current time is 10 hours"
        assert ax.get_xlim()[1] == pytest.approx(110.0)
        assert max(bar[3] for bar in bars_of(ax)) >= 110.0
    assert drawn(ax)["late"].get_xdata() == [pytest.approx(110.0)]
    # One of two workers is idle after 100 seconds.
    assert plotting.plot_workers(opt).get_title() == "2 workers, idle 50 % of the time"
