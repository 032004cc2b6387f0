"""Contexts: given with every call where they are declared, refused elsewhere, and used by the model."""

import numpy as np
import pandas as pd
import pytest

import belated as bl
from tests.optimizers.problem import BOX, both


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
            with pytest.raises(bl.InvalidContext, match="context"):
                ask(context)
    assert opt.n_trials == 1
    contexts = [{"age": 1.0, "ward": "a"}, {"age": 2.0, "ward": "b"}]
    points = [{"x": 0.0, "n": 1}, {"x": 1.0, "n": 2}]
    assert [trial.context for trial in opt.add(points, [0.0, 1.0], context=contexts)] == contexts
    assert [trial.context for trial in opt.add(points, context=pd.DataFrame(contexts))] == contexts
    assert [trial.context for trial in opt.add(points, context=contexts[0])] == [contexts[0]] * 2
    with pytest.raises(bl.InvalidContext, match="1 entries for 2 points"):
        opt.add(points, context=contexts[:1])


@both
def test_an_undeclared_context(kind):
    opt = kind(BOX, seed=0)
    with pytest.raises(bl.InvalidContext, match="not declared"):
        opt.suggest(context={"age": 1.0})
    with pytest.raises(bl.InvalidContext, match="not declared"):
        opt.add({"x": 0.0, "n": 1}, context={"age": 1.0})
    assert opt.n_trials == 0


def test_the_model_learns_across_contexts():
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
