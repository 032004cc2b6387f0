"""Suggestions satisfy known constraints and find good points. Infeasible points and invalid constraints raise
errors."""

import copy
import json
import math
import pickle
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import belated as bl
from tests.unit.optimizers.constrained import CUBE, MIXED, SPACES, below_one, in_ring, value

KINDS = [bl.RandomSearch, bl.BayesOpt]
both = pytest.mark.parametrize("kind", KINDS)


def make(kind, space, constraints, **arguments):
    return kind(space, constraints=constraints, seed=1, **arguments)


def satisfied(params, constraints):
    return all(function(params) for function in constraints)


def run(optimizer, n, batch=4, lag=2):
    """Suggest n batches and observe each batch `lag` batches later; return the suggested params."""
    batches = []
    for _ in range(n):
        batches.append(optimizer.suggest(batch))
        if len(batches) > lag:
            for trial in batches[-1 - lag]:
                trial.observe(value(trial.params))
    return [trial.params for trials in batches for trial in trials]


# Suggestions.


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"acquisition": "ucb", "pending": "hallucinate"},
        {"acquisition": "ucb", "pending": "censor", "window": 10},
        {"acquisition": bl.ThompsonSampling(n_features=64)},
        {"initial": bl.Initial(8, how="uniform"), "surrogate": bl.GP(noise_std=0.0)},
    ],
    ids=lambda arguments: "-".join(map(str, arguments.values())) or "default",
)
def test_suggestions_of_bayesopt_satisfy_the_constraints(name, arguments):
    space, constraints = SPACES[name]
    optimizer = make(bl.BayesOpt, space, constraints, **arguments)
    suggested = run(optimizer, 8)
    assert len(suggested) == 32 and all(satisfied(params, constraints) for params in suggested)
    assert satisfied(optimizer.recommend(), constraints)
    assert len({json.dumps(params) for params in suggested}) > 24  # all suggestions differ


@pytest.mark.parametrize("name", SPACES)
def test_random_search_is_uniform_over_the_feasible_points(name):
    space, constraints = SPACES[name]
    suggested = [trial.params for trial in make(bl.RandomSearch, space, constraints).suggest(400)]
    assert all(satisfied(params, constraints) for params in suggested)
    # The mean of each parameter agrees with the mean that rejection sampling gives.
    free = [trial.params for trial in bl.RandomSearch(space, seed=2).suggest(20_000)]
    free = [params for params in free if satisfied(params, constraints)]
    for name in space:
        if not isinstance(free[0][name], str):
            here, there = (np.array([p[name] for p in each], dtype=float) for each in (suggested, free))
            error = math.hypot(here.std() / math.sqrt(len(here)), there.std() / math.sqrt(len(there)))
            assert abs(here.mean() - there.mean()) < 5 * error


DIMENSIONS = st.sampled_from([(0.0, 1.0), (0, 1), (0, 7), bl.Real(1e-3, 1.0, log=True), ["a", "b", "c"]])


@settings(max_examples=20)
@given(st.lists(DIMENSIONS, min_size=1, max_size=4), st.floats(0.0, 3.0), st.integers(0, 9), st.sampled_from(KINDS))
def test_suggestions_satisfy_any_bound_in_any_space(dimensions, bound, seed, kind):
    def within(params):
        return sum(1.0 if v == "a" else 0.0 if isinstance(v, str) else float(v) for v in params.values()) <= bound

    optimizer = kind({f"x{i}": each for i, each in enumerate(dimensions)}, constraints=[within], seed=seed)
    optimizer.add(dict(bl.RandomSearch(optimizer.space, seed=seed).suggest().params), 1.0)
    try:
        for _ in range(3):
            for trial in optimizer.suggest(3):
                assert within(trial.params)
                trial.observe(value(trial.params))
        assert within(optimizer.recommend())
    except bl.errors.InvalidSpace:
        # The search for a feasible point makes 10,000 tries. If 0.003 of the points are feasible, one search in 10^13
        # fails.
        free = bl.RandomSearch(optimizer.space, seed=seed + 1).suggest(20_000)
        assert sum(within(trial.params) for trial in free) / len(free) < 0.005


def quadratic(params):
    """A function whose maximum is at (0.7, 0.7, 0.7). Under the constraint, the maximum is at (1/3, 1/3, 1/3)."""
    return -sum((params[name] - 0.7) ** 2 for name in "abc")


def skewed(params):
    """A function whose constrained maximum is on the plane of the constraint, with the third coordinate 0."""
    return 2 * params["a"] + params["b"] - (params["a"] - 0.2) ** 2 * 5 - params["c"] ** 2


def on_the_ring(params):
    """A function that increases towards the upper right corner."""
    return 2 * params["x"] + params["y"] - 0.5 * params["x"] ** 2


def feasible_grid(space, constraints):
    axes = [np.linspace(*ends, 41 if len(space) == 3 else 301) for ends in space.values()]
    rows = np.stack(np.meshgrid(*axes), -1).reshape(-1, len(space)).tolist()
    grid = [dict(zip(space, row, strict=True)) for row in rows]
    return [params for params in grid if satisfied(params, constraints)]


problems = pytest.mark.parametrize("f, name", [(quadratic, "simplex"), (skewed, "simplex"), (on_the_ring, "ring")])


@problems
def test_the_recommendation_is_the_feasible_point_with_the_largest_lower_bound(f, name):
    space, constraints = SPACES[name]
    theta = bl.GP(kernel="squared_exponential", lengthscale=0.7, signal_std=1.0, noise_std=0.05)
    optimizer = make(bl.BayesOpt, space, constraints, surrogate=theta)
    data = [trial.params for trial in bl.RandomSearch(space, seed=4).suggest(60)]
    optimizer.add(data, [f(params) for params in data])
    recommended = optimizer.recommend()
    assert satisfied(recommended, constraints)
    means, stds = optimizer.predict(feasible_grid(space, constraints))
    mean, std = optimizer.predict([recommended])
    assert mean[0] - 2 * std[0] > (means - 2 * stds).max() - 1e-3 * np.ptp(means)


@problems
@pytest.mark.parametrize("acquisition", ["log_ei", "ucb"])
def test_the_optimum_on_the_boundary_is_found(f, name, acquisition):
    space, constraints = SPACES[name]
    optimizer = make(bl.BayesOpt, space, constraints, acquisition=acquisition)
    for _ in range(25):
        trial = optimizer.suggest()
        trial.observe(f(trial.params))
    feasible = [f(params) for params in feasible_grid(space, constraints)]
    regret = max(feasible) - optimizer.best_value_
    assert regret < 0.01 * (max(feasible) - np.mean(feasible))


def only_three(params):
    return params["n"] + params["m"] == 2


def test_every_member_of_a_small_space_is_suggested_once_and_then_again():
    optimizer = make(bl.BayesOpt, {"n": (0, 9), "m": (0, 9)}, [only_three], surrogate=bl.GP(noise_std=0.0))
    suggested = []
    for _ in range(5):
        trial = optimizer.suggest()
        suggested.append((trial.params["n"], trial.params["m"]))
        trial.observe(float(trial.params["n"]))
    assert set(suggested[:3]) == {(0, 2), (1, 1), (2, 0)}
    assert set(suggested) == set(suggested[:3])


def tiny(params):
    return max(abs(params[name] - 0.123) for name in "abc") < 1e-3


def test_error_names_the_number_of_infeasible_points_tried():
    for kind in KINDS:
        optimizer = make(kind, CUBE, [tiny])
        with pytest.raises(bl.errors.InvalidSpace, match="none of 20000 points"):
            optimizer.suggest(2)
        assert optimizer.n_trials == 0
    small = make(bl.BayesOpt, {"n": (0, 9)}, [lambda p: p["n"] > 9])
    with pytest.raises(bl.errors.InvalidSpace, match="none of 10 points"):
        small.suggest()


def test_an_observed_feasible_point_is_enough_to_start_from():
    optimizer = make(bl.BayesOpt, CUBE, [tiny])
    optimizer.add({"a": 0.123, "b": 0.123, "c": 0.123}, 1.0)
    for _ in range(3):
        trial = optimizer.suggest()
        assert tiny(trial.params)
        trial.observe(quadratic(trial.params))


# Observed, added and enqueued points.


@both
def test_add_accepts_infeasible_points_and_recommend_excludes_them(kind):
    optimizer = make(kind, CUBE, [below_one])
    violator, good = {"a": 0.9, "b": 0.9, "c": 0.9}, {"a": 0.1, "b": 0.2, "c": 0.3}
    assert optimizer.add(violator).state == "pending"
    optimizer.add(violator, 100.0)
    if kind is bl.RandomSearch:
        with pytest.raises(bl.errors.NotFitted, match="satisfy the constraints"):
            optimizer.recommend()
    optimizer.add(good, 1.0)
    assert optimizer.best_params_ == good and below_one(optimizer.recommend())
    assert optimizer.best_trial(outside=True).params == violator
    for _ in range(3):
        trial = optimizer.suggest()
        assert below_one(trial.params)
        trial.observe(1.0)


def half(params):
    return params["a"] <= 0.5


@both
def test_enqueued_infeasible_points_are_refused_with_number_name_and_params(kind):
    optimizer = make(kind, CUBE, [below_one, half])
    good, bad = {"a": 0.5, "b": 0.25, "c": 0.25}, {"a": 0.6, "b": 0.0, "c": 0.0}
    with pytest.raises(
        bl.errors.InvalidPoint, match=r"params=\{'a': 0.6.*constraints\[1\] \(half\).*add with its value"
    ):
        optimizer.enqueue(bad)
    with pytest.raises(bl.errors.InvalidPoint, match=r"params\[1\]="):
        optimizer.enqueue([good, bad])
    optimizer.enqueue(good)
    first, second = optimizer.suggest(2)
    assert first.params == good and second.params != good and optimizer.n_trials == 2


# Invalid functions.


def raising(params):
    return params["a"] < 1 / 0


def answers_one(params):
    return 1


def answers_array(params):
    return np.array([True])


@both
def test_an_exception_in_a_constraint_names_the_params_and_leaves_the_optimizer_unchanged(kind):
    optimizer = make(kind, CUBE, [below_one, raising])
    before = pickle.dumps(optimizer)
    for call in (
        optimizer.suggest,
        lambda: optimizer.suggest(3),
        lambda: optimizer.enqueue({"a": 0.1, "b": 0.1, "c": 0.1}),
    ):
        with pytest.raises(
            bl.errors.InvalidSetting,
            match=r"constraints\[1\] \(raising\) raised ZeroDivisionError.*params=\{'a': 0\.\d",
        ) as caught:
            call()
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert pickle.dumps(optimizer) == before


@both
@pytest.mark.parametrize("function", [answers_one, answers_array, lambda p: None])
def test_a_constraint_must_return_true_or_false(kind, function):
    with pytest.raises(
        bl.errors.InvalidSetting, match=r"constraints\[0\].* returned .* for params=.*return True or False"
    ):
        make(kind, CUBE, [function]).suggest()
    trial = make(kind, CUBE, [lambda p: np.bool_(p["a"] < 0.5)]).suggest()
    assert trial.params["a"] < 0.5


def test_an_exception_during_a_batch_discards_the_batch():
    calls = []

    def limited(params):
        calls.append(params)
        if len(calls) == limit:
            raise RuntimeError("enough")
        return below_one(params)

    limit = 0
    optimizer, twin = (make(bl.BayesOpt, CUBE, [limited]) for _ in range(2))
    for each in (optimizer, twin):
        run(each, 3)
    state = pickle.dumps(optimizer._log)
    for more in (1, 50, 300):
        calls.clear()
        limit = more
        with pytest.raises(bl.errors.InvalidSetting, match="enough"):
            optimizer.suggest(4)
        limit = 0
        assert pickle.dumps(optimizer._log) == state
    assert [t.params for t in optimizer.suggest(4)] == [t.params for t in twin.suggest(4)]


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals reach the main thread")
def test_an_interrupt_in_a_constraint_is_raised_and_leaves_the_optimizer_unchanged():
    optimizer = make(bl.BayesOpt, CUBE, [interrupted])
    with pytest.raises(KeyboardInterrupt):
        optimizer.suggest(2)
    assert optimizer.n_trials == 0


def interrupted(params):
    signal.raise_signal(signal.SIGINT)
    return True


@both
def test_a_constraint_that_uses_its_optimizer_raises_an_error(kind):
    for use in (lambda o: o.best_value_, lambda o: o.suggest(), lambda o: o.n_trials, pickle.dumps):
        made = []
        optimizer = make(kind, CUBE, [lambda p, use=use, made=made: use(made[0]) is None])
        made.append(optimizer)
        with pytest.raises(bl.errors.InvalidSetting, match="use only the params"):
            optimizer.suggest()
    # A constraint may call another optimizer.
    other = make(kind, CUBE, [below_one])
    optimizer = make(kind, CUBE, [lambda p: other.n_trials == 0])
    assert optimizer.suggest().number == 0


def test_constraints_are_called_in_the_thread_that_suggests():
    threads = set()

    def noting(params):
        threads.add(threading.get_ident())
        return below_one(params)

    optimizer = make(bl.BayesOpt, CUBE, [noting])
    run(optimizer, 4)
    assert threads == {threading.get_ident()}


@both
def test_threads_share_a_constrained_optimizer(kind):
    optimizer = make(kind, CUBE, [below_one])
    with ThreadPoolExecutor(4) as pool:
        trials = list(pool.map(lambda _: optimizer.suggest(), range(16)))
    assert {trial.number for trial in trials} == set(range(16))
    assert all(below_one(trial.params) for trial in trials)


# The argument `constraints`.


@both
def test_invalid_constraints_are_refused(kind):
    for argument, part in (
        (below_one, "pass a list"),
        ("a + b <= 1", "pass a list"),
        ([below_one, "a + b <= 1"], r"constraints\[1\]='a \+ b <= 1'"),
        ([True], r"constraints\[0\]=True"),
    ):
        with pytest.raises(bl.errors.InvalidSetting, match=part):
            make(kind, CUBE, argument)
    with pytest.raises(bl.errors.InvalidSetting, match="leave out the rows"):
        kind(candidates=np.eye(3), constraints=[below_one])
    if kind is bl.BayesOpt:
        with pytest.raises(bl.errors.InvalidSetting, match="search=.*multistart"):
            make(kind, CUBE, [below_one], search=bl.Search(multistart=(10, 2)))
        with pytest.raises(bl.errors.InvalidSetting, match="search=.*direct=10.* does not support constraints"):
            make(kind, CUBE, [below_one], search=bl.Search(direct=10))


@both
def test_an_empty_list_of_constraints_equals_none(kind):
    without, empty = make(kind, MIXED, None), make(kind, MIXED, [])
    assert run(without, 4) == run(empty, 4)


@both
def test_constraints_are_parameters_of_the_optimizer(kind):
    constraints = [below_one]
    optimizer = make(kind, CUBE, constraints)
    assert optimizer.get_params()["constraints"] is constraints
    assert "constraints=[<function below_one" in repr(optimizer)
    clone = kind(**optimizer.get_params(deep=False))
    assert run(clone, 3) == run(optimizer, 3)
    changed = make(kind, CUBE, None).set_params(constraints=constraints)
    assert run(changed, 3) == run(make(kind, CUBE, constraints), 3)


def test_maximize_takes_constraints():
    result = bl.maximize(quadratic, CUBE, n_trials=12, constraints=[below_one], seed=0)
    assert all(below_one(trial.params) for trial in result.trials)


# Reproducibility.


@both
def test_functions_that_cannot_be_pickled_are_named(kind):
    optimizer = make(kind, CUBE, [below_one, lambda p: p["a"] < 0.9])
    optimizer.suggest(2)
    with pytest.raises(
        bl.errors.InvalidSetting, match=r"constraints\[1\] \(<lambda>\) cannot be pickled.*top level of a module"
    ):
        pickle.dumps(optimizer)
    assert copy.deepcopy(optimizer).suggest().params == optimizer.suggest().params


def test_constraints_with_contexts():
    optimizer = make(bl.BayesOpt, {"x": (-1.0, 1.0), "y": (-1.0, 1.0)}, [in_ring], context={"t": (0.0, 1.0)})
    for k in range(12):
        trial = optimizer.suggest(context={"t": k / 12})
        assert in_ring(trial.params)
        trial.observe(trial.params["x"] * trial.context["t"])
    assert in_ring(optimizer.recommend(context={"t": 0.5}))


def in_disc(params):
    return (params["x"] - 0.7) ** 2 + (params["y"] - 0.6) ** 2 < 0.04


def test_random_feasible_points_do_not_have_a_much_larger_acquisition():
    """The acquisition also has large values outside the feasible disc, and has narrow maxima on the boundary of the
    disc."""
    theta = bl.GP(kernel="squared_exponential", lengthscale=0.25, signal_std=1.0, noise_std=0.05)
    gaps = []
    for seed in range(16):
        x, y = np.random.default_rng(seed).random((2, 20_000))
        within = in_disc({"x": x, "y": y})
        inside = [{"x": a, "y": b} for a, b in zip(x[within].tolist(), y[within].tolist(), strict=True)][:2000]
        optimizer = bl.BayesOpt({"x": (0.0, 1.0), "y": (0.0, 1.0)}, constraints=[in_disc], surrogate=theta, seed=seed)
        optimizer.add(inside[:10], [math.sin(5 * p["x"]) + math.sin(5 * p["y"] + 1) for p in inside[:10]])
        optimizer.suggest(3)
        suggested = copy.deepcopy(optimizer).suggest()
        best = optimizer.acquisition_at(inside).max()
        gaps.append(optimizer.acquisition_at([suggested.params])[0] - best)
    assert sum(gap < -0.5 for gap in gaps) <= 1, sorted(gaps)
