"""Copies and unpickled copies of values equal the values, and give the same results."""

import copy
import pickle

import numpy as np
import pytest

import belated as bl
from belated import functions
from belated import simulate as sim
from belated.optimizers.report import TrialError
from belated.run.objective import Evaluation
from tests.unit.optimizers.definitions import BOX, REQUIRED

ROUTES = [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))]


def double(fidelity):
    return 2.0 * fidelity


def delays():
    opt = bl.RandomSearch(BOX, seed=0)
    for trial in opt.suggest(6)[:4]:
        trial.observe(0.5)
    return opt.delays_


def rows_of(space):
    rows = np.random.default_rng(0).random((5, space.width))
    return repr([space.decode(row) for row in rows])


def drawn(distribution):
    return distribution.sample(np.random.default_rng(1), 5).tolist(), distribution.draw(np.random.default_rng(1), None)


def value_at(function):
    params = bl.RandomSearch(function.space, seed=0).suggest().params
    return (function(params, 0.3), function.cost(0.3)) if hasattr(function, "cost") else function(params)


def hash_of(value):
    try:
        return hash(value)
    except TypeError:
        return None


def facts(result):
    return [repr(trial) for trial in result.trials], result.best_params_, result.stop_reason


OBJECTS = [
    [16],
    {"a": 1, "b": [2]},
    ([1], 2),
    bytearray(b"ab"),
    double,
    float("nan"),
    (1, float("nan")),
    {"a": [float("nan")]},
    None,
    2.5,
]
CONDITIONS = {
    "c": ["u", "v"],
    "x": bl.Real(1e-3, 1.0, log=True, when={"c": "u"}),
    "n": bl.Integer(0, 9, when={"c": "v"}),
}
NESTED = {"model": bl.Choice({"svm": {"C": bl.Real(1e-2, 1e2, log=True)}, "tree": {"depth": (1, 9)}}), "folds": (2, 5)}

SETTINGS = [bl.GP, bl.UCB, bl.LogEI, bl.ThompsonSampling, bl.Censor, bl.Hallucinate, bl.Ignore, bl.Integrate, bl.Liar]
SETTINGS += [bl.Initial, bl.Search, bl.papers.MaxVariance, bl.papers.Nearest, bl.papers.Theory, bl.papers.UCBPE]
SETTINGS += [bl.papers.AEGiS, bl.papers.LocalPenalization, bl.papers.PLAyBOOK]

#: For each value, a function of the value whose result is equal for copies.
VALUES = [
    *((kind(), repr) for kind in SETTINGS),
    (bl.Censor(-1.0), repr),
    (bl.UCB(theory=bl.papers.Theory(delta=0.5)), repr),
    (bl.GP(lengthscale=np.array([0.5, 1])), repr),
    (bl.Curve(9, value="best"), repr),
    (bl.ASHA(), repr),
    (bl.MedianStopping(), repr),
    (bl.ModelStopping(), repr),
    (bl.Real(1e-4, 1.0, log=True), repr),
    (bl.Integer(1, 64, log=True), repr),
    (bl.Ordinal([16, 32], when={"kernel": "poly"}), repr),
    *((kind(OBJECTS), lambda each: [each.level(value) for value in OBJECTS]) for kind in (bl.Categorical, bl.Ordinal)),
    (bl.Choice(NESTED["model"].options), repr),
    *((bl.Space(space), rows_of) for space in (BOX, CONDITIONS, NESTED)),
    (bl.Fidelity(100, 7000, log=True, cost=bl.PowerCost(0.1, full=2), bias=0.5), lambda each: each.encode(500)),
    (bl.Fidelity(0, 1, cost=double), lambda each: each.cost(0.5)),
    (bl.PowerCost(0.1, 2), repr),
    (delays(), lambda each: (each.mean(), each.n_pending)),
    *(
        (each, drawn)
        for each in (
            sim.Constant(3.0),
            sim.Poisson(2.0),
            sim.Geometric(4.0),
            sim.Uniform(0.0, 2.0),
            sim.HalfNormal(),
            sim.Exponential(2.0),
            sim.Pareto(),
        )
    ),
    *((each, value_at) for each in vars(functions).values() if hasattr(each, "optimum") and not isinstance(each, type)),
    (bl.NoImprovement(3), repr),
    (bl.ValueReached(0.5), repr),
    (bl.RunningTrial(3, {"x": 0.5}, {"a": 1}), repr),
    (Evaluation(1.0, std=0.5, cost=2.0, attrs={"a": [1]}), repr),
    (TrialError("ValueError", "no such\nkernel", None), str),
    (bl.maximize(lambda params: params["x"], {"x": (0.0, 1.0)}, n_trials=4, seed=0), facts),
    *(
        (cls(BOX, seed=0, **REQUIRED.get(name, {})).suggest(), repr)
        for name, cls in sorted(bl.Optimizer.registry.items())
        if cls.__module__.startswith("belated.")
    ),
]
# Values that are not compared by value.
NOT_COMPARED = (bl.NoImprovement, bl.ValueReached, bl.Result, functions.Function, functions.MultiFidelityFunction)


@pytest.mark.parametrize(("value", "use"), VALUES, ids=lambda each: type(each).__name__)
def test_copies_equal_the_value(value, use):
    for route in ROUTES:
        other = route(value)
        assert type(other) is type(value) and repr(other) == repr(value) and use(other) == use(value)
        if not isinstance(value, NOT_COMPARED):
            assert other == value and hash_of(other) == hash_of(value)
