"""The rounds of BPE-Delay, in one process and in several processes: eliminations, estimated delays, and errors."""

import json
import math
import os
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import belated as bl
from belated.simulate import Poisson, simulate
from tests.clock import Clock
from tests.contract.optimizers import strategies
from tests.contract.store.memory import MemoryStore
from tests.ids import without_address
from tests.unit.optimizers import dense_bpe
from tests.unit.optimizers.dense_bpe import KERNEL, SE, X, make, play, rkhs_function

FULL = os.environ.get("BELATED_FULL") == "1"


def refusal(call):
    with pytest.raises(bl.errors.InvalidSetting) as caught:
        call()
    return str(caught.value)


# The next tests check the elimination at the end of a round.


def test_points_are_eliminated_once_for_each_round():
    f, _ = rkhs_function(np.random.default_rng(0))
    opt = make(60, delay=bl.papers.SubExponential(3))
    trials = play(opt, 12, f, late=3)
    assert opt.round_ == 2 and len(opt.surviving_) < len(X)
    others = [pickle.loads(pickle.dumps(opt)) for _ in range(4)]
    others[3].withdraw([0, 1, 2])
    others[0].observe(0, 1e6, amend=True)
    others[0].observe(3, -1e6, amend=True)
    others[1].abandon(10)
    others[2].fail(9)
    others[2].observe(9, 1e6)
    others[2].observe(1, 1e6, replicate=True)
    assert trials[9].state == "pending"
    expected = opt.surviving_
    following = [trial.index for trial in opt.suggest(n=10)]
    for other in others:
        assert_array_equal(other.surviving_, expected)
        assert [trial.index for trial in other.suggest(n=10)] == following
        assert_array_equal(pickle.loads(pickle.dumps(other)).surviving_, expected)


def test_results_before_the_end_of_a_round_count():
    f, _ = rkhs_function(np.random.default_rng(0))
    base = make(60)
    trials = base.suggest(n=8)
    for trial in trials:
        trial.observe(f[trial.index])
    amended, failed, withdrawn = (pickle.loads(pickle.dumps(base)) for _ in range(3))
    best = int(np.argmax([f[trial.index] for trial in trials]))
    amended.observe(best, -3.0, amend=True)
    failed.add(int(base.trials[best].index), -3.0)
    withdrawn.withdraw(best)
    # In `missing`, the value of this trial never arrived.
    missing = make(60)
    for trial in missing.suggest(n=8):
        if trial.number != best:
            trial.observe(f[trial.index])
    for opt in (base, amended, failed, withdrawn, missing):
        opt.suggest()
    assert_array_equal(base.surviving_, failed.surviving_)
    assert_array_equal(withdrawn.surviving_, missing.surviving_)
    assert not np.array_equal(base.surviving_, withdrawn.surviving_)
    assert not np.array_equal(base.surviving_, amended.surviving_)


def test_added_and_enqueued_trials_do_not_count_in_rounds():
    f, _ = rkhs_function(np.random.default_rng(1))
    plain, other = make(60), make(60)
    rng = np.random.default_rng(5)
    while plain.n_trials < 60:
        if rng.random() < 0.3:
            other.add(int(rng.integers(60)), float(rng.normal()))
        if rng.random() < 0.3:
            other.enqueue(int(rng.integers(60)))
            queued = other.suggest()
            if rng.random() < 0.5:
                queued.observe(5.0)
        one = plain.suggest()
        # The two optimizers number their trials differently, so ties are broken by different random streams, and the
        # suggested points differ. The rounds still have equal numbers of suggestions, and the bounds ignore the
        # enqueued trials.
        two = other.suggest()
        assert (plain.round_, [r.n_suggested for r in plain.rounds_]) == (
            other.round_,
            [r.n_suggested for r in other.rounds_],
        )
        one.observe(f[one.index])
        two.observe(f[two.index])
        assert [r.n_arrived for r in plain.rounds_] == [r.n_arrived for r in other.rounds_]
    assert other.n_trials > 80
    with pytest.raises(bl.errors.HorizonReached):
        other.suggest()
    other.enqueue(3)
    assert other.suggest().index == 3


# Estimated delays.


def test_rounds_without_delays_equal_the_rounds_of_bpe():
    f, _ = rkhs_function(np.random.default_rng(0))
    known, estimated = make(60), make(60, delay="estimated")
    for opt in (known, estimated):
        play(opt, 60, f)
    assert [t.index for t in known.trials] == [t.index for t in estimated.trials]
    assert [r.n_suggested for r in known.rounds_] == [r.n_suggested for r in estimated.rounds_]


def test_notes_have_the_estimates_that_end_the_round():
    f, _ = rkhs_function(np.random.default_rng(0))
    table = {tuple(row): value for row, value in zip(X, f, strict=True)}
    opt = make(400, delay="estimated", theory=bl.papers.Theory(delta=0.05))
    simulate(opt, lambda x: table[tuple(x)], 400, Poisson(20), noise=0.05, seed=3)
    notes = [json.loads(opt._log.trial(number).note or "null") for number in range(400)]
    begun = {number: note for number, note in enumerate(notes) if note is not None}
    assert [note["round"] for note in begun.values()] == [1, 2, 3] and notes[0]["delay"] is None
    for earlier, later, q in zip(list(begun), list(begun)[1:], dense_bpe.explored(400, 2), strict=False):
        delay = notes[later]["delay"]
        assert delay["mean"] == pytest.approx(19, abs=2.5)  # a result before the next suggestion has delay 0
        log = math.log(3 * 400 / 0.05)
        bound = delay["mean"] + max(delay["xi"] * math.sqrt(2 * log), 2 * delay["b"] * log)
        assert later - earlier == math.ceil(q + bound)
        # The exact Chernoff bound is about 49. A few delays do not determine the tail of the distribution.
        assert 33 < bound < 65
    assert [each.delay is None for each in opt.rounds_] == [False, False, False]


def test_a_round_needs_a_first_result_but_not_lost_results():
    opt = make(100, delay="estimated")
    trials = opt.suggest(n=30)
    assert opt.round_ == 1 and opt.rounds_[0].length is None and opt.rounds_[0].delay is None
    # Half of all results never arrive, and the others arrive after five suggestions.
    while opt.round_ == 1 and opt.n_trials < 100:
        trials.append(opt.suggest())
        if trials[-6].number % 2:
            trials[-6].observe(0.1 * trials[-6].index)
    assert 31 < opt.n_trials < 45
    assert opt.rounds_[0].delay[0] < 6


# The next tests check rounds that end within a batch, in a study, or in a copy of the optimizer.


ARGUMENTS = st.fixed_dictionaries(
    {
        "delay": st.sampled_from(["none", "estimated", bl.papers.SubExponential(2, xi=1, b=0.2)]),
        "keep_rounds": st.booleans(),
        "beta": st.sampled_from([0.5, 2.0]),
        "seed": st.integers(0, 99),
    }
)


def small(arguments):
    """Rounds end after 5, 15, 28, … suggestions. The domain is the contract tests' list of candidates."""
    kernel = {"lengthscale": 0.4, "noise_std": 0.3}
    return bl.BPEDelay(**strategies.DOMAINS["candidates"], horizon=24, **kernel, **arguments)


@pytest.mark.usefixtures("fixed_time")
@given(ARGUMENTS, st.integers(0, 23), st.integers(1, 24))
@settings(max_examples=200 if FULL else 25, deadline=None)
def test_a_batch_equals_single_suggestions_and_a_cancelled_batch_has_no_effect(arguments, before, n):
    opt = small(arguments)
    for number in range(before):
        trial = opt.suggest()
        if number % 3:
            trial.observe(float(trial.x[0]))
    other = strategies.twin_of(opt)
    status, n = opt._log.status(None), min(n, 24 - before)
    events = opt._log.propose(n, None, opt._problem.wall_time())
    with pytest.raises(bl.errors.HorizonReached):
        opt.suggest(n=25 - before)
    assert opt._log.status(None) == status and opt.n_trials == before
    opt.suggest(n=n)
    for _ in range(n):
        other.suggest()
    assert opt._log.events(0) == other._log.events(0)
    assert opt._log.events(0)[-n:] == [event.text for event in events]
    assert opt._log.status(None) == other._log.status(None) == strategies.replayed(opt)._log.status(None)


# The next tests check rounds on the clock in seconds.


def in_seconds(horizon, **arguments):
    time = Clock()
    return time, make(horizon, clock="seconds", time=time, **arguments)


@pytest.mark.parametrize("delay", [bl.papers.SubExponential(4.0), bl.papers.SubExponential(3.0, xi=1.0, b=0.2), "none"])
def test_a_round_in_seconds_ends_when_the_bound_on_delays_has_passed(delay):
    """The rounds begin as an independent program says, for random times between suggestions."""
    horizon, rng = 80, np.random.default_rng(0)
    time, opt = in_seconds(horizon, delay=delay, theory=bl.papers.Theory(delta=0.1))
    delay = bl.papers.SubExponential() if delay == "none" else delay
    log = math.log(3 * horizon / 0.1)
    wait = delay.mean + max(delay.xi * math.sqrt(2 * log), 2 * delay.b * log)
    q, begun, starts = math.ceil(math.sqrt(horizon)), 1, []
    for number in range(horizon):
        time.now += rng.exponential(0.4)
        if len(starts) >= q and time.now - starts[q - 1] >= wait:
            q, begun, starts = math.ceil(math.sqrt(horizon * q)), begun + 1, []
        starts.append(time.now)
        opt.suggest().observe(float(rng.normal()))
        assert (opt.round_, opt.rounds_[-1 if wait else begun - 1].n_suggested) == (begun, len(starts)), number
    assert begun >= 2
    with pytest.raises(bl.errors.HorizonReached):
        opt.suggest()


def test_one_suggestion_per_second_gives_the_rounds_of_the_clock_in_iterations():
    """A result that arrives before the next suggestion has the delay 0 in iterations, and up to 1 in seconds."""
    f, _ = rkhs_function(np.random.default_rng(0))
    runs = []
    for clock in ("iterations", "seconds"):
        time, mean = Clock(), 5 + (clock == "seconds")
        more = {"clock": clock, "time": time} if clock == "seconds" else {}
        opt, points = make(60, delay=bl.papers.SubExponential(mean), **more), []
        for t in range(60):
            time.now = float(t)
            if t >= 5:
                opt.observe(t - 5, f[opt.trial(t - 5).index])
            points.append(opt.suggest().index)
        runs.append((points, [each.n_suggested for each in opt.rounds_], list(opt.surviving_)))
    assert runs[0] == runs[1]


def test_delays_in_seconds_are_estimated():
    time, opt = in_seconds(60, delay="estimated")
    for t in range(40):
        time.now = 0.5 * t
        if t >= 6:
            opt.observe(t - 6, 0.0)
        opt.suggest()
    # All delays are 3 s. The first round has 8 suggestions, and ends 3 s after the last of them.
    assert opt.rounds_[0].delay == (3.0, 0.0, 0.0)
    assert opt.rounds_[0].length == 8 + 3 / 0.5 - 1
    assert opt.rounds_[-1].length is None


# The next tests check errors, and problems that must not end a search.


@pytest.mark.parametrize(
    "name, arguments",
    [
        ("horizon=None", {"horizon": None}),
        ("horizon=0", {"horizon": 0}),
        ("horizon=60 is not usable: the first round alone is longer", {"delay": bl.papers.SubExponential(60)}),
        ("lengthscale=None", {"lengthscale": None}),
        ("lengthscale=", {"lengthscale": [0.1, 0.1]}),
        ("lengthscale=", {"lengthscale": -1.0}),
        ("noise_std=None", {"noise_std": None}),
        ("noise_std=", {"noise_std": -0.1}),
        ("signal_std=", {"signal_std": 0.0}),
        ("kernel=", {"kernel": "auto"}),
        ("beta=", {"beta": -1.0}),
        ("beta='theorem'", {"beta": "theorem"}),
        ("rkhs_bound=None", {"beta": "theory"}),
        ("theory.rkhs_bound=", {"theory": bl.papers.Theory(rkhs_bound=-1.0)}),
        ("theory.delta=", {"theory": bl.papers.Theory(delta=0.0)}),
        ("theory.value_bound=", {"theory": bl.papers.Theory(value_bound=1.0)}),
        ("theory=3 is not usable: pass Theory(…) or None", {"theory": 3}),
        ("n_points=0", {"n_points": 0}),
        ("delay=", {"delay": 5}),
        ("delay=", {"delay": "known"}),
        ("delay.xi=-1", {"delay": bl.papers.SubExponential(1, xi=-1)}),
        ("context", {"context": {"age": (0.0, 1.0)}}),
        ("constraints", {"constraints": [lambda p: True]}),
    ],
    ids=without_address,
)
def test_refusals_name_the_argument(name, arguments):
    message = refusal(lambda: make(**arguments))
    assert name in message
    # Both the constructor and `set_params` raise an error.
    opt = make()
    before = opt.get_params()
    assert name in refusal(lambda: opt.set_params(**arguments))
    assert opt.get_params() == before and opt.suggest().number == 0


def test_kernels_too_rough_for_theorem_6_2_are_refused_only_on_boxes():
    arguments = KERNEL | {
        "kernel": "matern12",
        "beta": "theory",
        "theory": bl.papers.Theory(rkhs_bound=1.0),
        "horizon": 60,
    }
    assert "Theorem 6.2" in refusal(lambda: bl.BPEDelay({"x": (0.0, 1.0)}, **arguments))
    bl.BPEDelay(candidates=X, **arguments)
    bl.BPEDelay({"n": (1, 9)}, **arguments)
    bl.BPEDelay({"x": (0.0, 1.0)}, **(arguments | {"beta": 2.0}))
    assert "SubExponential" in refusal(lambda: make(delay="exponential"))


def test_overflowing_bounds_do_not_eliminate_points():
    opt = make(60)
    for trial in opt.suggest(n=8):
        trial.observe(1.7e308 * (-1) ** trial.number)
    with pytest.warns(bl.BelatedWarning, match="round 1 eliminates nothing, because"):
        opt.suggest()
    assert opt.round_ == 2 and len(opt.surviving_) == len(X)
    assert_array_equal(strategies.replayed(opt).surviving_, opt.surviving_)


def test_all_candidates_survive_without_results():
    opt = make(60)
    opt.suggest(n=60)
    assert len(opt.surviving_) == len(X) and opt.round_ == 3


def test_only_optimizers_with_rounds_show_them():
    for what in ("round_", "rounds_", "surviving_"):
        assert not hasattr(bl.RandomSearch({"x": (0.0, 1.0)}), what)
    opt = make(60, delay=bl.papers.SubExponential(3))
    assert (opt.round_, len(opt.surviving_)) == (1, 60)
    assert [r.n_surviving for r in opt.rounds_] == [None] * len(opt.rounds_)
    study = bl.Study("s", MemoryStore("here"), opt)
    study.suggest(n=13)
    assert (study.optimizer.round_, study.optimizer.rounds_[1].n_suggested) == (2, 2)
    f, _ = rkhs_function(np.random.default_rng(0))
    result = bl.maximize(lambda x: f[round(59 * float(x[0]))], optimizer=make(60), n_trials=60)
    assert result.optimizer.round_ == 3 and sum(r.n_suggested for r in result.optimizer.rounds_) == 60
    assert f[round(59 * float(result.recommend()[0]))] > f.max() - 0.1


def test_bpe_refuses_a_delay_model():
    arguments = {"horizon": 50, "lengthscale": 0.1, "noise_std": 0.1}
    opt = bl.algorithm("BPE", candidates=X, **arguments)
    assert opt.delay == "none" and opt.kernel == SE and opt.beta == math.sqrt(6)
    for other in ("estimated", bl.papers.SubExponential(5)):
        assert "differs from BPE" in refusal(
            lambda other=other: bl.algorithm("BPE", candidates=X, delay=other, **arguments)
        )
    assert bl.algorithm("BPE-Delay", candidates=X, delay=bl.papers.SubExponential(5), **arguments).delay.mean == 5


def test_a_point_that_failed_is_tried_again_later_each_time():
    """One candidate always fails. Within a round, a failed point stays active and is evaluated again after 2
    suggestions, then after 4, then after 8."""
    opt = bl.BPEDelay(candidates=X[::6], horizon=4000, lengthscale=0.15, noise_std=0.05, seed=0, delay="none")
    tries = []
    while opt.n_trials < 60:
        trial = opt.suggest()
        if trial.index == 4:
            tries.append(trial.number)
            trial.fail()
        else:
            trial.observe(0.0)
    assert opt.round_ == 1 and 4 in opt.surviving_
    assert (np.diff(tries)[:4] >= [2, 4, 8, 16]).all() and len(tries) > 4
