"""``window="auto"``: the window is a quantile of the delays so far, and depends only on the log."""

import json

import numpy as np
import pytest

import belated as bl
from tests.clock import Clock

BOX = {"x": (0.0, 1.0)}
GIVEN = bl.GP(kernel="matern52", lengthscale=0.2, signal_std=1.0, noise_std=0.1, targets="raw", mean="zero")
SURROGATES = {"fitted": bl.GP(n_restarts=1), "given": GIVEN}
surrogates = pytest.mark.parametrize("surrogate", SURROGATES)
clocks = pytest.mark.parametrize("clock", ["iterations", "seconds"])


def make(surrogate="given", clock="iterations", **arguments):
    arguments = {"pending": bl.Censor(0.0, late="discard"), "window": "auto", "initial": 2, "seed": 0} | arguments
    arguments.setdefault("time", Clock() if clock == "seconds" else None)
    return bl.BayesOpt(BOX, acquisition="ucb", surrogate=SURROGATES[surrogate], clock=clock, **arguments)


def f(trial):
    return float(1.0 + np.sin(6 * trial.params["x"]))


def step(source, clock, lost=0.1):
    """Suggest a trial, and observe the trials whose delay has passed. The delays depend on the trial numbers."""
    trial = source.suggest()
    if clock is not None:
        clock.now += 1.0
    for pending in source.pending:
        u = np.random.default_rng(pending.number).random(2)
        if u[0] >= lost and len(source.trials) - pending.number > -4.0 * np.log(u[1]):
            source.observe(pending, f(pending))
    return trial


def choices(opt):
    """Return (number of the trial, number of arrivals, window) of each choice in the log."""
    notes = [(t.number, t._record.note) for t in opt.trials]
    windows = [(number, json.loads(note).get("window")) for number, note in notes if note]
    found = [(number, window["arrivals"], window["length"]) for number, window in windows if window]
    return [each for each, last in zip(found, [None, *found], strict=False) if last is None or each[1:] != last[1:]]


@surrogates
@clocks
def test_the_window_is_the_quantile_of_the_delays_at_each_choice(surrogate, clock):
    opt = make(surrogate, clock)
    known = []
    for _ in range(60):
        delays = opt.delays_
        step(opt, opt.time)
        if len(choices(opt)) > len(known):
            known = choices(opt)
            number, arrivals, length = known[-1]
            assert number == len(opt.trials) - 1 and arrivals == delays.n_arrived
            assert length == delays.quantile(0.995).estimate
        assert opt.window_ == (known[-1][2] if known else None)
    numbers, arrivals, _ = zip(*known, strict=True)
    assert 10 <= arrivals[0] <= 14 and len(known) > 3
    assert all(later >= 1.25 * earlier for earlier, later in zip(arrivals, arrivals[1:], strict=False))


@clocks
def test_a_lease_that_has_ended_censors_the_delay(clock, tmp_path):
    time = Clock()
    study = bl.Study("s", f"sqlite:///{tmp_path}/s.db", make(clock=clock, time=time))
    for _ in range(15):
        first, _ = study.suggest(2, expires_after=2.5)
        time.now += 1.0
        study.observe(first, 1.0)
    assert study.window_ is not None
    # The next choice is due: 19 results have arrived.
    for trial in study.pending[:7]:
        study.observe(trial, 1.0)
    quantile = study.delays_.quantile(0.995)
    study.suggest()
    assert study.window_ == quantile.estimate


@surrogates
def test_a_trial_keeps_the_window_of_its_suggestion(surrogate):
    """All delays are 1 when the window is chosen. The window applies to later trials, but not to a trial that was
    suggested earlier."""
    opt = make(surrogate, "seconds")
    early = opt.suggest()
    for _ in range(12):
        trial = opt.suggest()
        opt.time.now += 1.0
        trial.observe(1.0)
    late = opt.suggest()
    assert early.number < choices(opt)[0][0] <= late.number and 1.0 <= opt.window_ < 5.0
    opt.time.now += 30.0
    opt.suggest()
    rows = opt.surrogate_.n_observed
    assert rows == 13  # the row of `late` is at the floor; `early` has no window
    early.observe(2.0)
    late.observe(2.0)
    assert opt.surrogate_.n_observed == rows + 1


def test_fixed_windows_equal_auto_before_the_first_choice():
    """Before the first choice, all trials are in the window, as with a window that is longer than the run."""
    auto, long = make(initial=0), make(initial=0, window=1e6)
    for _ in range(9):
        assert step(auto, None).params == step(long, None).params
    assert auto.window_ is None and long.window_ == 1e6


@pytest.mark.parametrize("pending", ["hallucinate", "ignore", "liar", "nearest", None])
def test_other_policies_refuse_auto(pending):
    with pytest.raises(bl.errors.InvalidSetting, match="window=auto.*censor"):
        bl.BayesOpt(BOX, acquisition="ucb", pending=pending, window="auto")
    with pytest.raises(bl.errors.InvalidSetting, match="'auto'"):
        bl.BayesOpt(BOX, pending="censor", window="automatic")


def test_the_algorithms_take_auto():
    for name in ("GP-UCB-SDF", "GP-TS-SDF"):
        assert bl.algorithm(name, BOX, window="auto", seed=0).window_ is None
    with pytest.raises(bl.errors.InvalidSetting, match='window is missing.*"auto"'):
        bl.algorithm("GP-UCB-SDF", BOX)
    with pytest.raises(bl.errors.InvalidSetting, match="window"):
        bl.RandomSearch(BOX, window="auto")
