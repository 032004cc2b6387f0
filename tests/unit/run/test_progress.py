"""The progress bar of a run."""

import io
import sys
import threading
from types import SimpleNamespace

import pytest

import belated as bl
from belated.run.progress import Progress
from tests.unit.run.runs import SECONDS, SPACE, by_params, f


def test_progress(capsys):
    pytest.importorskip("tqdm")
    with pytest.warns(bl.BelatedWarning):
        best = bl.maximize(by_params, SPACE, n_trials=12, progress=True, seed=0)
    shown = capsys.readouterr().err
    assert "12/12" in shown and f"best={best.best_value_:.3g}" in shown and f"failed={best.n_failed}" in shown
    bl.maximize(f, SPACE, n_trials=3, progress=False)
    bl.maximize(f, SPACE, n_trials=3)
    assert capsys.readouterr().err == ""  # standard error is not a terminal


class Bar:
    """A replacement for tqdm that records its calls."""

    def __init__(self, total, unit):
        self.total, self.unit, self.shown, self.drawn, self.n, self.closed = total, unit, [], [], 0, False

    def set_postfix(self, facts, refresh):
        self.shown.append(dict(facts))
        self.drawn.append(refresh)

    def update(self, n):
        self.n += n

    def close(self):
        self.closed = True


@pytest.fixture
def bars(monkeypatch):
    made = []
    pytest.importorskip("tqdm")
    monkeypatch.setattr("tqdm.auto.tqdm", lambda **arguments: made.append(Bar(**arguments)) or made[-1])
    return made


def test_progress_shows_best_value_counts_and_remaining_seconds(bars):
    with pytest.warns(bl.BelatedWarning):
        best = bl.maximize(by_params, SPACE, n_trials=12, progress=True, seed=0, timeout=SECONDS, n_workers=4)
    [bar] = bars
    assert bar.total == bar.n == 12 and bar.closed
    assert {facts["in_flight"] for facts in bar.shown} == {0, 1, 2, 3, 4}
    assert bar.shown[-1]["best"] == best.best_value_ and bar.shown[-1]["failed"] == best.n_failed
    assert all(0 < int(facts["left"].rstrip("s")) <= SECONDS for facts in bar.shown)


def test_progress_ticks_while_f_runs(bars, monkeypatch):
    monkeypatch.setattr("belated.run.evaluations._MAX_WAIT", 0.01)
    ticks = threading.Event()

    def slow(params):
        while len(bars[0].shown) < 3:
            ticks.wait(0.005)
        return 1.0

    bl.maximize(slow, SPACE, n_trials=1, n_workers=2, progress=True)
    assert [facts["in_flight"] for facts in bars[0].shown[:3]] == [1, 1, 1] and "left" not in bars[0].shown[-1]


def test_progress_counts_the_remaining_trials_of_a_total(bars):
    opt = bl.RandomSearch(SPACE)
    bl.maximize(f, optimizer=opt, n_trials=4, progress=False)
    for arguments, total in (
        ({"n_trials_total": 9}, 5),
        ({"n_trials_total": 9}, 0),
        ({"n_trials_total": 3}, 0),
        ({"n_trials_total": 20, "n_trials": 2}, 2),
        ({"n_trials_total": 13, "n_trials": 5}, 2),
        ({"timeout": 1e-9}, None),
    ):
        bl.maximize(f, optimizer=opt, progress=True, **arguments)
        assert bars[-1].total == total


def test_progress_without_tqdm(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    opt = bl.BayesOpt(SPACE)
    with pytest.raises(ImportError, match=r"belated\[progress\]"):
        bl.maximize(f, optimizer=opt, n_trials=3, progress=True)
    assert opt.n_trials == 0
    assert bl.maximize(f, optimizer=opt, n_trials=3).stop_reason == "n_trials"


def test_a_tick_updates_only_the_remaining_seconds(bars, monkeypatch):
    monkeypatch.setattr("belated.run.evaluations._MAX_WAIT", 0.01)
    ticks = threading.Event()

    def second_is_slow(params):
        while bars[0].n == 1 and len(bars[0].shown) < 4:
            ticks.wait(0.005)
        return 1.0

    bl.maximize(second_is_slow, SPACE, n_trials=2, progress=True, timeout=SECONDS)
    [bar] = bars
    first, *between, last = bar.shown
    assert first["best"] == 1.0 and first["in_flight"] == 1 and len(between) >= 3 and last["in_flight"] == 0
    assert all(facts["best"] == 1.0 and facts["in_flight"] == 1 and "failed" not in facts for facts in between)
    assert all(0 < int(facts["left"].removesuffix("s")) <= SECONDS for facts in bar.shown)
    # tqdm draws the bar at updates with new trials; at any other update, the run must request a redraw.
    assert bar.drawn == [False, *[True] * len(between), False] and bar.unit == "trial"


@pytest.mark.parametrize(
    ("clock", "every", "shows"), [("seconds", 0.0, True), ("seconds", 60.0, False), ("iterations", 0.0, False)]
)
def test_a_long_run_in_seconds_shows_a_forecast(bars, monkeypatch, clock, every, shows):
    monkeypatch.setattr("belated.run.evaluations._FORECAST_EVERY", every)
    now = [0.0]
    opt = bl.RandomSearch(SPACE, clock=clock, time=lambda: now[0], seed=0)
    forecasts = []

    def hours(params):
        now[0] += 3600.0
        return 1.0

    def remember(optimizer, trial):
        forecast = optimizer.forecast()
        forecasts.append(f"{forecast.expected:.0f} in {(forecast.by - now[0]) / 60:.0f}min")

    opt.suggest()  # this trial is in flight during the whole run
    bl.maximize(hours, optimizer=opt, n_trials=3, progress=True, callbacks=[remember])
    found = [facts.get("arriving") for facts in bars[0].shown]
    assert found == (forecasts if shows else [None] * 3)


def test_the_remaining_seconds_are_never_negative():
    bar = Bar(None, "trial")
    progress = Progress(bar)
    progress.update(left=2.6, best=None, failed=None, in_flight=0)
    progress.update(done=2, left=-3.0)
    progress.update(in_flight=1)
    assert bar.shown == [{"in_flight": 0, "left": "3s"}, {"in_flight": 0, "left": "0s"}, {"in_flight": 1}]
    assert bar.drawn == [True, False, True] and bar.n == 2


@pytest.mark.parametrize(
    ("terminal", "notebook", "expected"),
    [(True, None, True), (False, None, False), (None, None, False), (False, "kernel", True), (False, "shell", False)],
)
def test_a_bar_is_shown_by_default_in_terminals_and_notebooks(bars, monkeypatch, terminal, notebook, expected):
    errors = None if terminal is None else io.StringIO()
    if errors is not None:
        errors.isatty = lambda: terminal
    shell = SimpleNamespace(**({"kernel": 1} if notebook == "kernel" else {}))
    # IPython may have been imported in a process without an IPython shell.
    ipython = SimpleNamespace(get_ipython=lambda: None if notebook is None else shell)
    monkeypatch.setattr(sys, "stderr", errors)
    for module in (ipython, None) if notebook is None else (ipython,):
        monkeypatch.setitem(sys.modules, "IPython", module)
        bars.clear()
        bl.maximize(f, SPACE, n_trials=2)
        assert len(bars) == expected
        bl.maximize(f, SPACE, n_trials=2, progress=not expected)
        assert len(bars) == 1


@pytest.mark.parametrize("progress", [1, "yes"])
def test_other_values_of_progress_are_refused(progress):
    opt = bl.RandomSearch(SPACE)
    with pytest.raises(bl.errors.InvalidSetting, match="progress=.*pass True or False or None"):
        bl.maximize(f, optimizer=opt, n_trials=2, progress=progress)
    assert opt.n_trials == 0


def test_a_bar_is_closed_however_the_run_ends(bars):
    def fails(optimizer, trial):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        bl.maximize(f, SPACE, n_trials=2, progress=True, callbacks=[fails])
    assert bars[0].closed and bars[0].n == 1
