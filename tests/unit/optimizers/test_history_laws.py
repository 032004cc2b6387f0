"""Laws that the model satisfies after a history: order of arrival, pending policies, late and failed trials."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.optimizers.definitions import BOX, ROWS
from tests.unit.optimizers.histories import FULL, few, make, policies

GIVEN = {"surrogate__kernel": "matern52", "surrogate__lengthscale": 0.4, "initial": 1}
GIVEN |= {"surrogate__signal_std": 1.0, "surrogate__noise_std": 0.1}


def predictions(opt, pending):
    model, center, scale, _ = opt._log.surrogate(None, pending)
    mean, std = model.predict(np.random.default_rng(0).random((10, model.lengthscale.size)))
    return np.concatenate([center + scale * mean, scale * std])


def same(a, b, tolerance):
    return np.abs(a - b).max() <= tolerance * max(1, np.abs(b).max())


@few
@given(
    n=st.integers(1, 40),
    seed=st.integers(0, 10**6),
    pending=st.sampled_from(["ignore", "hallucinate", "censor"]),
    targets=st.sampled_from(["standardized", "raw"]),
)
def test_given_theta_the_order_of_arrival_does_not_matter(n, seed, pending, targets):
    rng = np.random.default_rng(seed)
    points = rng.integers(len(ROWS), size=n)
    values = rng.normal(size=n)
    fates = ["observe", "observe", "fail", "abandon", "fail, then abandon", "abandon, then observe", "none"]
    fates = rng.choice(fates, n)

    def arrive(order, suggest_between):
        opt = make(candidates=ROWS, pending=pending, surrogate__targets=targets, seed=0, acquisition="ucb", **GIVEN)
        opt.add(points, [None] * n)
        extra = []
        for i in order:
            for what in fates[i].split(", then "):
                if what != "none":
                    getattr(opt, what)(i, *([values[i]] if what == "observe" else []))
            if suggest_between:  # each suggestion extends the Cholesky factor and is abandoned at once
                extra.append(opt.suggest())
                extra[-1].abandon()
        return opt

    first = arrive(range(n), False)
    for order in (range(n)[::-1], rng.permutation(n)):
        for suggest_between in (False, True):
            other = arrive(order, suggest_between)
            for with_pending in (False, True):
                assert same(predictions(other, with_pending), predictions(first, with_pending), 1e-9)


@pytest.mark.parametrize("space", [{"space": BOX}, {"candidates": ROWS}], ids=["box", "candidates"])
@pytest.mark.parametrize("theta", [{}, GIVEN], ids=["fitted", "given"])
def test_hallucinations_reduce_the_std_without_changing_the_mean(space, theta):
    for seed in range(50 if FULL else 5):
        opt = make(**space, pending="hallucinate", seed=seed, surrogate__n_restarts=1, **theta)
        rng = np.random.default_rng(seed)
        for _ in range(15):
            opt.suggest().observe(rng.normal())
        opt.suggest(n=5)
        without, with_ = (np.split(predictions(opt, pending), 2) for pending in (False, True))
        assert same(with_[0], without[0], 1e-9)
        assert (with_[1] <= without[1] + 1e-12).all() and with_[1].sum() < without[1].sum()


@pytest.mark.parametrize("space", [{"space": BOX}, {"candidates": ROWS}], ids=["box", "candidates"])
@pytest.mark.parametrize("acquisition", ["ucb", "log_ei", "thompson"])
@pytest.mark.parametrize("theta", [{"surrogate__n_restarts": 1}, GIVEN], ids=["fitted", "given"])
def test_without_delay_all_policies_are_equal(space, acquisition, theta):
    # Targets are not standardised, because each policy would standardise them differently. There is no window, so nu_t
    # is a sum over pending trials.
    for seed in range(20 if FULL else 2):
        records = []
        failures = seed % 2 == 0
        repeats = {"pending__repeats": True}
        for arguments in (
            {"pending": "ignore"},
            {"pending": "hallucinate"} | repeats,
            {"pending": "hallucinate", "window": 3} | repeats,
            {"pending": "censor"} | repeats,
            {"pending": "censor", "pending__floor": -5.0} | repeats,
        ):
            opt = make(**space, acquisition=acquisition, surrogate__targets="raw", seed=seed, **theta, **arguments)
            rng = np.random.default_rng(seed)
            for k in range(25):
                trial = opt.suggest()
                # The first trial must not fail, because policies with a floor already use a target for it.
                trial.fail() if failures and k and rng.random() < 0.1 else trial.observe(rng.normal())
            records.append([opt._log.trial(i).place for i in range(25)])
        assert all(record == records[0] for record in records)


@policies
@pytest.mark.parametrize("targets", ["standardized", "raw"])
@pytest.mark.parametrize("fate", ["fail", "abandon", "fail, then abandon", "abandon, then fail", "window passes"])
def test_a_late_value_is_used_from_every_state(pending, targets, fate):
    """Afterwards the model equals the model of a second optimizer that received the late value at once."""
    opt, twin = (
        make(space=BOX, pending=pending, window=4, surrogate__targets=targets, seed=0, **GIVEN) for _ in range(2)
    )
    rng = np.random.default_rng(0)
    for _ in range(6):
        trial, value = opt.suggest(), rng.normal()
        trial.observe(value)
        twin.add(trial.params, value)
    missing = opt.suggest()
    without = predictions(opt, False)
    if fate == "window passes":
        for _ in range(6):  # afterwards the trial's window has passed
            trial, value = opt.suggest(), rng.normal()
            trial.observe(value)
            twin.add(trial.params, value)
    else:
        for what in fate.split(", then "):
            getattr(missing, what)()
            opt.suggest().abandon()  # the model already contains the value
    missing.observe(2.5)
    twin.add(missing.params, 2.5)
    assert missing.state == "observed" and missing.value == 2.5 and opt.best_trial_ == missing
    assert not same(predictions(opt, False), without, 1e-3)
    for with_pending in (False, True):
        assert same(predictions(opt, with_pending), predictions(twin, with_pending), 1e-9)


def test_late_discard_keeps_late_values_without_using_them():
    arguments = {
        "pending": "censor",
        "window": 2,
        "pending__floor": -1.0,
        "surrogate__targets": "raw",
        "seed": 0,
        **GIVEN,
    }
    opt, twin = (make(space=BOX, pending__late=late, **arguments) for late in ("discard", "accept"))
    for _ in range(5):
        trial = opt.suggest()
        twin.enqueue(trial.params)
        twin.suggest()
        for one in (opt, twin):
            if trial.number != 1:
                one.observe(trial.number, 0.1 * trial.number)
    assert same(predictions(opt, True), predictions(twin, True), 1e-9)
    for one in (opt, twin):
        one.observe(1, 7.0)
        assert one.best_value_ == 7.0
    # In `opt` the target of trial 1 stays the floor; in `twin` the target is the value.
    model = opt._log.surrogate(None, False)[0]
    assert sorted(np.round(model.y, 9)) == [-1.0, 0.0, 0.2, 0.3, 0.4]
    assert 7.0 in np.round(twin._log.surrogate(None, False)[0].y, 9)
