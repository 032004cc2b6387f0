"""If contexts are declared, every call requires a context, and the model uses the context. If contexts are not
declared, passing a context raises an error."""

import numpy as np
import pandas as pd
import pytest

import belated as bl
from tests.unit.optimizers.problem import BOX, both


@both
def test_contexts(kind):
    opt = kind(BOX, context={"age": (0.0, 100.0), "ward": ["a", "b"]}, seed=0)
    trial = opt.suggest(context={"ward": "b", "age": 25.0})
    assert trial.context == {"age": 25.0, "ward": "b"}
    for context in (None, {}, {"age": 25.0}, {"age": 101.0, "ward": "a"}, {"age": 1.0, "ward": "a", "x": 0.0}, 3):
        for ask in (
            lambda context: opt.suggest(context=context),
            lambda context: opt.add({"x": 0.0, "n": 1}, 1.0, context=context),
            lambda context: opt.recommend(context=context),
        ):
            with pytest.raises(bl.errors.InvalidContext, match="context"):
                ask(context)
    assert opt.n_trials == 1
    contexts = [{"age": 1.0, "ward": "a"}, {"age": 2.0, "ward": "b"}]
    points = [{"x": 0.0, "n": 1}, {"x": 1.0, "n": 2}]
    assert [trial.context for trial in opt.add(points, [0.0, 1.0], context=contexts)] == contexts
    assert [trial.context for trial in opt.add(points, context=pd.DataFrame(contexts))] == contexts
    assert [trial.context for trial in opt.add(points, context=contexts[0])] == [contexts[0]] * 2
    n_trials = opt.n_trials
    with pytest.raises(bl.errors.InvalidContext):
        opt.add(points, context=contexts[:1])
    assert opt.n_trials == n_trials


@both
def test_an_undeclared_context(kind):
    opt = kind(BOX, seed=0)
    with pytest.raises(bl.errors.InvalidContext, match="not declared"):
        opt.suggest(context={"age": 1.0})
    with pytest.raises(bl.errors.InvalidContext):
        opt.add({"x": 0.0, "n": 1}, context={"age": 1.0})
    assert opt.n_trials == 0


def test_results_in_one_context_improve_predictions_in_another():
    opt = bl.BayesOpt({"x": (0.0, 1.0)}, context={"z": (0.0, 1.0)}, seed=0)
    grid = np.linspace(0, 1, 6)
    points = [{"x": x} for x in grid for _ in grid]
    contexts = [{"z": z} for _ in grid for z in grid]
    values = [-((p["x"] - c["z"]) ** 2) for p, c in zip(points, contexts, strict=True)]
    opt.add(points, values, context=contexts)
    opt.suggest(context={"z": 0.5})
    for z in (0.1, 0.9):
        assert opt.recommend(context={"z": z})["x"] == pytest.approx(z, abs=0.15)
        mean, _ = opt.predict([{"x": 0.1}, {"x": 0.9}], context={"z": z})
        assert (mean[0] > mean[1]) == (z < 0.5)


GIVEN = bl.GP(kernel="matern52", lengthscale=0.2, signal_std=1.0, noise_std=0.1, mean="zero")
DOMAINS = {
    "box": {"space": BOX},
    "candidates": {"candidates": np.random.default_rng(0).random((60, 3))},
}


def pair(domain, **settings):
    """Return two optimizers; only the second has a context."""
    made = dict(DOMAINS[domain]) | {"surrogate": GIVEN, "seed": 3} | settings
    context = {"z": (0.0, 2.0), "ward": ["a", "b"]}
    return bl.BayesOpt(**made), bl.BayesOpt(**made, context=context)


def in_lockstep(plain, contextual, n_trials=14):
    """Run both optimizers, with results that are three suggestions late, and yield their trials."""
    context = {"z": 1.3, "ward": "b"}
    trials = []
    for _ in range(n_trials):
        if len(trials) > 3:
            for trial in trials[-4]:
                number = trial.number
                trial.observe(np.sin(7.0 * number) - 0.1 * number)
        trials.append((plain.suggest(), contextual.suggest(context=context)))
        yield trials[-1]


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"acquisition": "ucb", "pending": "hallucinate"},
        {"acquisition": bl.UCB("kandasamy"), "pending": "ignore"},
        {"acquisition": "ucb", "pending": bl.Censor(floor=-2.0), "window": 5},
        {"acquisition": "log_ei", "pending": "liar"},
        {"acquisition": "log_ei", "pending": "nearest"},
        {"acquisition": "max_variance"},
    ],
    ids=str,
)
def test_a_constant_context_does_not_change_suggestions_given_the_hyperparameters(domain, settings):
    for one, other in in_lockstep(*pair(domain, **settings)):
        assert one.index == other.index and (one.index is not None or one.params == other.params)


def test_a_constant_context_does_not_change_draws_on_candidates():
    for pending in ("ignore", "hallucinate", bl.Censor(floor=-2.0)):
        for one, other in in_lockstep(*pair("candidates", acquisition="thompson", pending=pending, window=5)):
            assert one.index == other.index


@pytest.mark.parametrize("pending", ["ignore", "hallucinate", "integrate", bl.Censor(floor=-2.0), "liar", "nearest"])
@pytest.mark.parametrize("domain", DOMAINS)
def test_a_constant_context_does_not_change_predictions_given_the_hyperparameters(domain, pending):
    plain, contextual = pair(domain, pending=pending)
    for _ in in_lockstep(plain, contextual):
        pass
    points = [trial.params if trial.index is None else trial.index for trial in plain.trials]
    context = {"z": 1.3, "ward": "b"}
    for with_pending in (False, True):
        expected = plain.predict(points, pending=with_pending)
        found = contextual.predict(points, context=context, pending=with_pending)
        np.testing.assert_allclose(found, expected, atol=1e-9)
    elsewhere = contextual.predict(points, context={"z": 0.0, "ward": "a"})
    assert not np.allclose(elsewhere, expected)
