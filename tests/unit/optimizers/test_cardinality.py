"""Bounds of the number of nonzero parameters, weighted sums of integers, and functions that few points satisfy."""

import itertools
import json
import pickle

import numpy as np
import pytest
from scipy import stats

import belated as bl
from belated import errors
from belated.errors import InvalidPoint, InvalidSpace
from belated.papers import UCBPE, MaxVariance
from belated.store.memory import MemoryStore
from belated.study.definition import definition_of, optimizer_from

NAMES = [f"x{k}" for k in range(40)]
FEW = NAMES[:5]
KINDS = {
    "booleans": [False, True],
    "booleans that start with True": [True, False],
    "integers": (0, 10),
    "integers of both signs": (-3, 3),
    "steps": bl.Real(0.0, 1.0, step=0.25),
    "choices": bl.Categorical([7, 0, "z"]),
    "ordered choices": bl.Ordinal([0, 16, 64]),
}


def n_nonzero(params, names=None):
    return sum(params[name] != 0 for name in names or params)


def value(params):
    """The sum of weights of the nonzero parameters, with a bonus for a pair."""
    weights = np.sin(np.arange(len(params)))
    chosen = np.array([value != 0 for value in params.values()])
    return float(weights @ chosen + chosen[2] * chosen[3])


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("bounds", [{"at_most": 3}, {"equals": 2}, {"at_least": 1, "at_most": 4}])
def test_points_have_the_number_of_nonzero_parameters(kind, bounds):
    low, high = (bounds.get(name, bounds.get("equals", 0)) for name in ("at_least", "at_most"))
    for make in (bl.RandomSearch, bl.BayesOpt):
        constraint = bl.Cardinality(NAMES[:12], **bounds)
        optimizer = make(dict.fromkeys(NAMES[:12], kind) | {"T": (0.0, 1.0)}, constraints=[constraint], seed=0)
        for _ in range(3):
            for trial in optimizer.suggest(n=5):
                assert low <= n_nonzero(trial.params, NAMES[:12]) <= high
                if trial.number % 3:
                    trial.observe(value(trial.params))
        assert low <= n_nonzero(optimizer.recommend(), NAMES[:12]) <= high


@pytest.mark.parametrize(
    ("kind", "constraint", "holds"),
    [
        ([False, True], bl.Cardinality(FEW, at_most=2), lambda v: sum(v) <= 2),
        ((0, 2), bl.Cardinality(FEW, at_most=2), lambda v: np.count_nonzero(v) <= 2),
        ((-1, 1), bl.Cardinality(FEW, equals=3), lambda v: np.count_nonzero(v) == 3),
        (
            (0, 2),
            bl.Linear(dict(zip(FEW, [1, 2, 3, 1, -1], strict=True)), at_most=4),
            lambda v: v @ [1, 2, 3, 1, -1] <= 4,
        ),
        ((1, 3), bl.Linear(dict.fromkeys(FEW, 0.5), at_least=5.5), lambda v: sum(v) >= 11),
        ((0, 3), bl.Linear(dict.fromkeys(FEW, 2), equals=8), lambda v: sum(v) == 4),
    ],
)
def test_random_points_are_uniform(kind, constraint, holds):
    choices = kind if isinstance(kind, list) else range(kind[0], kind[1] + 1)
    expected = [each for each in itertools.product(choices, repeat=5) if holds(np.array(each))]
    optimizer = bl.RandomSearch(dict.fromkeys(FEW, kind), constraints=[constraint], seed=0)
    everything = [tuple(trial.params.values()) for trial in optimizer.suggest(n=len(expected))]
    assert sorted(everything) == sorted(expected)
    found = []
    for seed in range(15 * len(expected)) if len(expected) < 60 else ():
        one = bl.RandomSearch(dict.fromkeys(FEW, kind), constraints=[constraint], seed=seed)
        found.append(tuple(one.suggest().params.values()))
    if found:
        counts = np.unique(np.array(found), axis=0, return_counts=True)[1]
        assert len(counts) == len(expected) and stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"acquisition": bl.ThompsonSampling()},
        {"acquisition": bl.UCB(), "pending": bl.Hallucinate()},
        {"acquisition": MaxVariance()},
        {"acquisition": UCBPE()},
        {"acquisition": bl.UCB(), "pending": bl.Liar("min")},
        {"acquisition": bl.ThompsonSampling(), "pending": bl.Ignore()},
        {"initial": bl.Initial(4, how="uncertainty")},
    ],
)
@pytest.mark.parametrize("kind", ["booleans", "integers"])
def test_every_strategy_keeps_the_constraint_in_batches(arguments, kind):
    constraints = [bl.Cardinality(NAMES, at_most=5)]
    optimizer = bl.BayesOpt(dict.fromkeys(NAMES, KINDS[kind]), constraints=constraints, seed=0, **arguments)
    for _ in range(4):
        for trial in optimizer.suggest(n=8):
            assert n_nonzero(trial.params) <= 5
            if trial.number % 2:
                trial.observe(value(trial.params))
    assert n_nonzero(optimizer.recommend()) <= 5


@pytest.mark.parametrize(
    "arguments",
    [
        {"space": dict.fromkeys(NAMES, [True, False]), "constraints": [lambda p: sum(p.values()) <= 5]},
        {"space": dict.fromkeys(NAMES, (0, 1)), "constraints": [lambda p: sum(p.values()) <= 5]},
        {"space": dict.fromkeys(NAMES, (0.0, 1.0)), "constraints": [lambda p: sum(p.values()) <= 5]},
        {"space": dict.fromkeys(NAMES, (0, 1)), "constraints": [bl.Linear(dict.fromkeys(NAMES, 1), at_most=5)]},
    ],
)
@pytest.mark.parametrize("make", [bl.BayesOpt, bl.RandomSearch])
def test_sums_that_no_uniform_point_satisfies_are_suggested(make, arguments):
    optimizer = make(**arguments, seed=0)
    found = []
    for _ in range(3):
        for trial in optimizer.suggest(n=4):
            assert sum(trial.params.values()) <= 5
            found.append(tuple(trial.params.values()))
            trial.observe(value(trial.params))
    assert len({*found}) > 9


def test_mixture_with_few_parts():
    parts = dict.fromkeys("abcdef", (0.0, 1.0))
    constraints = [bl.Mixture([*parts], step=0.1), bl.Cardinality([*parts], at_most=3, at_least=2)]
    target = dict(zip(parts, [0.5, 0.0, 0.3, 0.2, 0.0, 0.0], strict=True))
    optimizer = bl.BayesOpt(parts, constraints=constraints, seed=0, direction="minimize")
    for _ in range(40):
        trial = optimizer.suggest()
        assert abs(sum(trial.params.values()) - 1) < 1e-9 and 2 <= n_nonzero(trial.params) <= 3
        trial.observe(sum((trial.params[name] - target[name]) ** 2 for name in parts))
    assert optimizer.best_value_ < 0.03


def test_two_constraints_share_parameters():
    costs = dict(zip(FEW, [3, 5, 2, 4, 1], strict=True))
    constraints = [
        bl.Cardinality(FEW, at_most=3),
        bl.Linear(costs, at_most=20),
        bl.Linear({"x0": 1, "x1": -1}, equals=0),
    ]
    optimizer = bl.RandomSearch(dict.fromkeys(FEW, (0, 6)), constraints=constraints, seed=0)
    for trial in optimizer.suggest(n=200):
        p = trial.params
        assert n_nonzero(p) <= 3 and sum(costs[name] * p[name] for name in FEW) <= 20 and p["x0"] == p["x1"]


def test_optimum_is_found_by_exchanges():
    # 76,904,685 points with 8 of 40 parameters. The maximum has the eight largest weights.
    optimizer = bl.BayesOpt(
        dict.fromkeys(NAMES, [False, True]),
        constraints=[bl.Cardinality(NAMES, equals=8)],
        surrogate=bl.GP(kernel="linear"),
        initial=bl.Initial(0),
        seed=0,
    )
    weights = np.random.default_rng(0).normal(size=40)
    rows = bl.RandomSearch(optimizer.domain, constraints=[bl.Cardinality(NAMES, equals=8)], seed=1).suggest(n=120)
    f = lambda params: float(weights @ [*params.values()])  # noqa: E731
    optimizer.add([trial.params for trial in rows], [f(trial.params) for trial in rows])
    for _ in range(3):
        trial = optimizer.suggest()
        trial.observe(f(trial.params))
    assert optimizer.best_value_ > np.sort(weights)[-8:].sum() - 0.3


# Points of users.


@pytest.fixture(params=[bl.BayesOpt, bl.RandomSearch])
def optimizer(request):
    return request.param(dict.fromkeys(FEW, [True, False]), constraints=[bl.Cardinality(FEW, equals=2)], seed=0)


def test_fixed_and_enqueued_values_keep_the_constraint(optimizer):
    for fixed in ({"x0": True}, {"x0": True, "x1": True}, {"x0": False, "x2": [True, False]}, {"x4": [True]}):
        for trial in optimizer.suggest(n=2, fixed=fixed):
            assert n_nonzero(trial.params) == 2
            for name, allowed in fixed.items():
                assert trial.params[name] in (allowed if isinstance(allowed, list) else [allowed])
            trial.observe(value(trial.params))
    optimizer.enqueue({"x3": True, "x4": True})
    assert optimizer.suggest().params == dict(zip(FEW, [False, False, False, True, True], strict=True))
    for shared in (["x0"], ["x0", "x1"]):
        batch = [trial.params for trial in optimizer.suggest(n=3, shared=shared)]
        assert all(n_nonzero(params) == 2 for params in batch)
        assert len({tuple(params[name] for name in shared) for params in batch}) == 1


def test_contradictions_are_refused_and_measurements_are_accepted(optimizer):
    three = dict(zip(FEW, [True, True, True, False, False], strict=True))
    for call in (
        lambda: optimizer.suggest(fixed={"x0": True, "x1": True, "x2": True}),
        lambda: optimizer.suggest(fixed=three),
        lambda: optimizer.enqueue(three),
        lambda: optimizer.enqueue({"x0": True, "x1": True, "x2": True}),
    ):
        with pytest.raises(InvalidPoint, match="nonzero"):
            call()
    assert not optimizer.trials
    trial = optimizer.add(three, 1.0)
    assert trial.outside and trial.params == three


def test_ranges_of_integers_keep_the_constraint():
    optimizer = bl.BayesOpt(dict.fromkeys(FEW, (-4, 4)), constraints=[bl.Cardinality(FEW, at_most=2)], seed=0)
    for trial in optimizer.suggest(n=6, fixed={"x0": (1, 3), "x1": (-2, 1), "x2": [0, 4]}):
        params = trial.params
        assert n_nonzero(params) <= 2 and 1 <= params["x0"] <= 3 and -2 <= params["x1"] <= 1 and params["x2"] in (0, 4)
    with pytest.raises(InvalidPoint):
        optimizer.suggest(fixed={"x0": (1, 4), "x1": (-4, -1), "x2": [1, 2]})


# Definitions.


def test_definitions_copies_and_studies_keep_the_constraint():
    space = dict.fromkeys(FEW, [False, True]) | {"on": True, "off": 0}
    constraint = bl.Cardinality([*space], at_most=3, at_least=2)
    first = bl.BayesOpt(space, constraints=[constraint], seed=3)
    data = json.loads(json.dumps(definition_of(first)))
    assert data["problem"]["linear"] == [
        {"kind": "Cardinality", "names": [*space], "at_most": 3, "at_least": 2},
    ]
    copies = [optimizer_from(data, None), pickle.loads(pickle.dumps(first))]
    expected = [trial.params for trial in first.suggest(n=12)]
    assert all(2 <= n_nonzero(params) <= 3 for params in expected)
    for copy in copies:
        assert [trial.params for trial in copy.suggest(n=12)] == expected
    store = MemoryStore()
    study = bl.Study("recipes", store=store, optimizer=bl.BayesOpt(space, constraints=[constraint], seed=3))
    assert study.suggest().params == expected[0]
    loaded = bl.Study.load("recipes", store=store)
    assert loaded.suggest().params == expected[1]
    loaded.revise(constraints=[bl.Cardinality(FEW, at_most=1)])
    for trial in study.suggest(n=5):
        assert n_nonzero(trial.params, FEW) <= 1
    assert eval(repr(constraint), {"Cardinality": bl.Cardinality}) == constraint
    assert len({constraint, bl.Cardinality([*space], at_most=3, at_least=2)}) == 1


def test_constants_count():
    space = dict.fromkeys(FEW, (0, 3)) | {"a": 1, "b": True, "c": 0, "d": "word"}
    optimizer = bl.RandomSearch(space, constraints=[bl.Cardinality([*space], equals=4)], seed=0)
    for trial in optimizer.suggest(n=20):
        assert n_nonzero(trial.params, FEW) == 1


@pytest.mark.parametrize(
    ("space", "constraint", "part"),
    [
        ({"a": (0, 1), "b": (0.0, 1.0)}, lambda: bl.Cardinality("ab", at_most=1), "list of names"),
        ({"a": (0, 1), "b": (0.0, 1.0)}, lambda: bl.Cardinality(["a", "a"], at_most=1), "different names"),
        ({"a": (0, 1), "b": (0, 1)}, lambda: bl.Cardinality(["a", "b"]), "pass equals"),
        ({"a": (0, 1), "b": (0, 1)}, lambda: bl.Cardinality(["a", "b"], equals=1, at_most=1), "pass equals"),
        ({"a": (0, 1), "b": (0, 1)}, lambda: bl.Cardinality(["a", "b"], at_most=1.5), "at_most"),
        ({"a": (0, 1), "b": (0, 1)}, lambda: bl.Cardinality(["a", "b"], at_most=-1), "at_most"),
        ({"a": (0, 1), "b": (0, 1)}, lambda: bl.Cardinality(["a", "c"], at_most=1), '"c", which is not searched'),
        ({"a": (0, 1), "b": (0.0, 1.0)}, lambda: bl.Cardinality(["a", "b"], at_most=1), "a Real with a step"),
        ({"a": (0, 1), "b": (1, 2)}, lambda: bl.Cardinality(["a", "b"], at_most=1), "'b', which cannot be 0"),
        ({"a": (0, 1), "b": ["x", "y"]}, lambda: bl.Cardinality(["a", "b"], at_most=1), "'b', which cannot be 0"),
        ({"a": (0, 1), "b": (0, 1)}, lambda: bl.Cardinality(["a", "b"], at_least=3), "cannot hold"),
        ({"a": (0, 1), "b": (0, 1), "c": 5}, lambda: bl.Cardinality(["a", "c"], equals=0), "cannot hold"),
        (
            {"a": (0, 1), "b": bl.Integer(0, 5, when={"a": 1})},
            lambda: bl.Cardinality(["a", "b"], at_most=1),
            "when= of another",
        ),
        ({"a": (0, 1), "b": (0.0, 1.0)}, lambda: bl.Linear({"a": 1, "b": 1}, at_most=1), 'give "b" a step'),
        ({"a": (0, 10**7), "b": (0, 1)}, lambda: bl.Linear({"a": 1, "b": 1}, at_most=1), "too many points"),
        ({"a": (0, 9), "b": (0, 9)}, lambda: bl.Linear({"a": 1, "b": np.pi}, at_most=9), "too many points"),
        ({"a": (0, 9), "b": (0, 9)}, lambda: bl.Linear({"a": 2, "b": 4}, equals=5), "cannot hold"),
        (
            {f"x{k}": (0, 1) for k in range(2040)},
            lambda: bl.Cardinality([f"x{k}" for k in range(2040)], at_most=244),
            "too many points",
        ),
        ({"a": ["x", "y"], "b": (0, 9)}, lambda: bl.Linear({"a": 2, "b": 4}, equals=5), "which is not a Real or"),
    ],
)
def test_unusable_constraints_are_refused(space, constraint, part):
    with pytest.raises(InvalidSpace) as caught:
        bl.RandomSearch(space, constraints=[constraint()])
    assert part in str(caught.value) and "\n" not in str(caught.value)


def test_contradictions_name_the_constraints():
    constraints = [bl.Cardinality(["x0", "x1", "x2"], at_most=1), bl.Linear({"x1": 1, "x2": 1}, at_least=9)]
    with pytest.raises(InvalidSpace, match=r"nonzero\(x0, x1, x2\) <= 1 and x1 \+ x2 >= 9.0 contradict"):
        bl.RandomSearch(dict.fromkeys(FEW, (0, 8)), constraints=constraints)


def test_redundant_constraints_give_a_warning():
    for constraint in (bl.Cardinality(FEW, at_most=5), bl.Linear(dict.fromkeys(FEW, 1), at_most=40)):
        with pytest.warns(bl.BelatedWarning, match="can be left out"):
            bl.RandomSearch(dict.fromkeys(FEW, (0, 8)), constraints=[constraint])


@pytest.mark.parametrize("search", ["multistart", "direct"])
def test_searches_without_linear_constraints_refuse(search):
    with pytest.raises(errors.BelatedError):
        bl.BayesOpt(
            dict.fromkeys(FEW, (0, 8)),
            constraints=[bl.Cardinality(FEW, at_most=2)],
            search=bl.Search(how=search),
            seed=0,
        ).suggest(n=12)


@pytest.mark.parametrize("bounds", [{"at_least": 1.0}, {"at_most": 0.9999999}, {"at_most": 1.0}])
def test_sums_of_inexact_coefficients_are_as_exact_as_their_check(bounds):
    constraint = bl.Linear({"a": 0.3333333, "b": 0.3333333}, **bounds)
    optimizer = bl.RandomSearch({"a": (0, 9), "b": (0, 9)}, constraints=[constraint], seed=0)
    for trial in optimizer.suggest(n=60):
        total = 0.3333333 * (trial.params["a"] + trial.params["b"])
        assert bounds.get("at_least", 0.0) - 1e-7 <= total <= bounds.get("at_most", 6.0) + 1e-7
