"""Failed trials: the chance of success beside the improvement, suggestions that avoid failing regions, and copies."""

import pickle

import numpy as np
import pytest
from scipy.special import log_ndtr

import belated as bl
from tests.optimizers.dense_posterior import DensePosterior

SQUARE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
GIVEN = bl.GP(kernel="matern52", lengthscale=0.3, signal_std=1.0, noise_std=0.1)
GRID = np.random.default_rng(4).random((50, 2))


def value(x, y):
    """Its maximum, at (0.6, 0.4), lies beside the half of the square where trials fail."""
    return -((x - 0.6) ** 2) - (y - 0.4) ** 2


def report(trial, value_=value, fails=lambda x, y: x > 0.65):
    x, y = trial.params["x"], trial.params["y"]
    trial.fail() if fails(x, y) else trial.observe(value_(x, y))


def states(opt):
    return [trial.state for trial in opt.trials]


def test_the_logarithm_of_the_chance_of_success_is_added():
    """Between a twin that knows the observed trials alone and one that knows the failures, too, by a dense solve."""
    opt, twin = (bl.BayesOpt(SQUARE, surrogate=GIVEN, pending="hallucinate", initial=0, seed=0) for _ in range(2))
    rng = np.random.default_rng(1)
    points = rng.random((12, 2))
    for x, y in points:
        opt.add({"x": x, "y": y}, None if x > 0.5 else value(x, y))
        if x > 0.5:
            opt.fail(opt.n_trials - 1)
        else:
            twin.add({"x": x, "y": y}, value(x, y))
    assert 3 <= states(opt).count("failed") <= 9
    assert np.array_equal(opt.predict(GRID), twin.predict(GRID))
    lengthscale = 0.5  # the shortest; the mode of the prior is 0.29
    labels = np.where(points[:, 0] > 0.5, -1.0, 1.0)
    dense = DensePosterior(points, labels - 1, lengthscale, 1.0, 1 / np.count_nonzero(labels < 0))
    expected = log_ndtr((1 + dense.mean(GRID)) / np.sqrt(dense.variances(GRID) + 0.01))
    assert opt.acquisition_at(GRID) - twin.acquisition_at(GRID) == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert opt.surrogate_.n_observed == twin.surrogate_.n_observed == twin.n_trials


@pytest.mark.parametrize("arguments", [{"space": SQUARE}, {"candidates": np.random.default_rng(0).random((400, 2))}])
def test_suggestions_avoid_where_trials_fail(arguments):
    late, best = 0, []
    for seed in range(3):
        opt = bl.BayesOpt(seed=seed, **arguments)
        for _ in range(60):
            trial = opt.suggest()
            x, y = trial.params.values() if trial.x is None else trial.x
            trial.fail() if x > 0.65 else trial.observe(value(x, y))
        late += states(opt)[40:].count("failed")
        best.append(opt.best_value_)
        assert opt.recommend()["x" if "space" in arguments else 0] < 0.68
    assert late <= 0.1 * 60
    assert max(best) <= 0 and min(best) > -2e-3


def test_a_single_failure_is_no_wall():
    """The best point has failed once, by accident; the search comes back to it, and close."""
    opt = bl.BayesOpt(SQUARE, seed=0)
    opt.add({"x": 0.6, "y": 0.4})
    opt.fail(0)
    for _ in range(30):
        report(opt.suggest(), fails=lambda x, y: False)
    assert opt.best_value_ > -1e-3


def test_where_failures_count_as_a_value():
    """Under `Censor`, and where that is asked for; as for the algorithms of the literature."""
    for pending in ("censor", "ignore"):
        model, impute = (
            bl.BayesOpt(SQUARE, acquisition=bl.LogEI(failures=failures), pending=pending, seed=0)
            for failures in ("model", "impute")
        )
        for _ in range(14):
            for opt in (model, impute):
                report(opt.suggest())
        assert states(impute).count("failed") > 1
        same = [trial.params for trial in model.trials] == [trial.params for trial in impute.trials]
        assert same == (pending == "censor")
        assert impute.surrogate_.n_observed == 14
    for name in ("GP-EI", "asyEI"):
        assert bl.algorithm(name, SQUARE).acquisition.failures == "impute"


def test_failures_alone_change_nothing_of_the_initial_design():
    failing, plain = (bl.BayesOpt(SQUARE, seed=0, initial=6) for _ in range(2))
    for _ in range(6):
        failing.suggest().fail()
        plain.suggest()
    assert [trial.params for trial in failing.trials] == [trial.params for trial in plain.trials]
    # And it goes on while nothing is known.
    failing.suggest().fail()
    assert states(failing) == ["failed"] * 7 and failing.best_value_ is None


@pytest.mark.parametrize(
    "arguments",
    [
        {"space": SQUARE},
        {"space": SQUARE | {"c": ["a", "b", "d"]}, "context": {"z": (0.0, 1.0)}},
        {"candidates": np.random.default_rng(0).random((60, 2))},
    ],
    ids=["box", "category and context", "candidates"],
)
def test_copies_go_on_bit_for_bit(arguments):
    """With failures that are given up, or turn out to have a value, and with trials in flight."""
    context = {"z": 0.5} if "context" in arguments else None
    opt = bl.BayesOpt(seed=2, **arguments)
    rng = np.random.default_rng(0)
    for k in range(26):
        trial = opt.suggest(context=context)
        copy = pickle.loads(pickle.dumps(opt)) if k % 5 == 0 else None
        what = rng.integers(5)
        for one in (opt, copy):
            if one is None:
                continue
            one.fail(trial.number) if what < 2 else one.observe(trial.number, float(np.sin(k)))
            if what == 1 and k > 6:
                one.abandon(trial.number)
            if what == 0 and k % 3 == 0:
                one.observe(trial.number, 0.5)
        if copy is not None:
            following = [one.suggest(3, context=context) for one in (opt, copy)]
            first, second = ([trial.params if trial.x is None else trial.index for trial in each] for each in following)
            assert first == second
            assert copy._log.to_bytes() == opt._log.to_bytes()
    assert any("success" in (opt._log.trial(number).note or "") for number in opt._log.numbers(None))
