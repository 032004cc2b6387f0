"""The progress bar of a run."""

import sys
import threading

import pytest

import belated as bl
from tests.run.runs import SECONDS, SPACE, by_params, f


def test_progress(capsys):
    pytest.importorskip("tqdm")
    with pytest.warns(bl.BelatedWarning):
        best = bl.maximize(by_params, SPACE, n_trials=12, progress=True, seed=0)
    shown = capsys.readouterr().err
    assert "12/12" in shown and f"best={best.best_value_:.3g}" in shown and f"failed={best.n_failed_}" in shown
    bl.maximize(f, SPACE, n_trials=3, progress=False)
    bl.maximize(f, SPACE, n_trials=3)
    assert capsys.readouterr().err == ""  # which is no terminal


class Bar:
    """What a bar of tqdm is told."""

    def __init__(self, total, unit):
        self.total, self.shown, self.n, self.closed = total, [], 0, False

    def set_postfix(self, facts, refresh):
        self.shown.append(dict(facts))

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


def test_progress_shows_best_in_flight_failed_and_seconds_to_go(bars):
    with pytest.warns(bl.BelatedWarning):
        best = bl.maximize(by_params, SPACE, n_trials=12, progress=True, seed=0, timeout=SECONDS, n_workers=4)
    [bar] = bars
    assert bar.total == bar.n == 12 and bar.closed
    assert {facts["in_flight"] for facts in bar.shown} == {0, 1, 2, 3, 4}
    assert bar.shown[-1]["best"] == best.best_value_ and bar.shown[-1]["failed"] == best.n_failed_
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


def test_progress_counts_what_is_left_of_a_total(bars):
    opt = bl.RandomSearch(SPACE)
    bl.maximize(f, optimizer=opt, n_trials=4, progress=False)
    for arguments, total in (({"n_trials_total": 9}, 5), ({"n_trials_total": 9}, 0), ({"timeout": 1e-9}, None)):
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
