"""`recommend` returns the best observed value of exact values, and the largest lower bound of noisy values."""

import warnings

import numpy as np
import pytest

import belated as bl

SQUARE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def points(n, seed=0):
    return [{"x": float(x), "y": float(y)} for x, y in np.random.default_rng(seed).random((n, 2))]


def jump(x, y):
    """The best values are next to the line x + y = 0.95, where the function jumps down."""
    return -((x - 0.7) ** 2) - (y - 0.2) ** 2 - 5 * (x + y > 0.95)


def bounds(opt, params, context=None):
    """Return mean − 2 std, or −(mean + 2 std) if the function is minimised."""
    mean, std = opt.predict(params, context=context)
    return (mean if opt.direction == "maximize" else -mean) - 2 * std


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("how", ["noise_std", "std"])
def test_exact_values_recommend_the_best_observed_points_in_order(how, direction):
    sign = 1 if direction == "maximize" else -1
    given = {"surrogate": bl.GP(noise_std=0.0)} if how == "noise_std" else {}
    opt = bl.BayesOpt(SQUARE, seed=0, direction=direction, **given)
    data = points(30)
    values = [sign * jump(**params) for params in data]
    opt.add(data, values, std=0.0 if how == "std" else None)
    opt.add(data[:3], values[:3], std=0.0 if how == "std" else None)  # repeated points count once
    order = np.argsort([-sign * value for value in values], kind="stable")
    assert opt.recommend() == opt.best_params_ == data[order[0]]
    assert opt.recommend(n=1) == [data[order[0]]]
    assert opt.recommend(n=7) == [data[i] for i in order[:7]]
    assert opt.recommend(n=100) == [data[i] for i in order]


def test_exact_values_of_a_search_recommend_the_best_observed_point():
    opt = bl.BayesOpt(SQUARE, seed=2, surrogate=bl.GP(noise_std=0.0))
    for number in range(40):
        trial = opt.suggest()
        trial.observe(jump(**trial.params))
        if number % 5 == 4:
            assert opt.recommend() == opt.best_params_


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("declared", [True, False])
def test_noisy_values_recommend_the_largest_lower_bound(declared, direction):
    rng = np.random.default_rng(1)
    data = points(25, seed=3)
    std = 10 ** rng.uniform(-2, 0, 25) if declared else np.full(25, 0.5)
    values = [jump(**params) + s * rng.standard_normal() for params, s in zip(data, std, strict=True)]
    sign = 1 if direction == "maximize" else -1
    theta = bl.GP() if declared else bl.GP(noise_std=0.5)
    opt = bl.BayesOpt(SQUARE, seed=0, direction=direction, surrogate=theta)
    opt.add(data, [sign * value for value in values], std=list(std) if declared else None)
    found = opt.recommend(n=100)
    assert opt.recommend() == found[0]
    by_bound = bounds(opt, found)
    assert np.all(np.diff(by_bound) <= 1e-12)
    assert by_bound[0] >= bounds(opt, data).max() - 1e-12
    # The points are the observed points and the maximiser of the bound.
    (other,) = [params for params in found if params not in data]
    assert len(found) == 26
    grid = [{"x": x, "y": y} for x in np.linspace(0, 1, 41) for y in np.linspace(0, 1, 41)]
    assert bounds(opt, other) >= bounds(opt, grid).max() - 1e-6


@pytest.mark.parametrize("context", ["a", "b", "c"])
def test_a_context_recommends_the_largest_lower_bound_in_this_context(context):
    level, place = {"a": 0.0, "b": 5.0, "c": -4.0}, {"a": 0.2, "b": 0.5, "c": 0.8}
    opt = bl.BayesOpt(SQUARE, context={"c": bl.Categorical(["a", "b", "c"])}, seed=0, surrogate=bl.GP(noise_std=0.0))
    data = points(24, seed=5)
    for number, params in enumerate(data):
        c = "aab"[number % 3]  # the context c was never tried
        opt.add(params, level[c] - (params["x"] - place[c]) ** 2 - (params["y"] - 0.5) ** 2, context={"c": c})
    query = {"c": context}
    found = opt.recommend(query, n=50)
    by_bound = bounds(opt, found, query)
    assert opt.recommend(query) == found[0] and np.all(np.diff(by_bound) <= 1e-9)
    assert by_bound[0] >= bounds(opt, data, query).max() - 1e-9
    assert len(found) in (24, 25)


def test_failed_points_are_not_recommended():
    rows = np.linspace(0, 1, 21)[:, None]
    opt = bl.BayesOpt(candidates=rows, seed=0, surrogate=bl.GP(noise_std=0.1, lengthscale=0.5, signal_std=1.0))
    for i in (0, 4, 8, 12, 14, 17, 18, 19):
        opt.add(i, 1.0 - abs(rows[i, 0] - 0.8))
    assert opt.recommend().tolist() == rows[16].tolist()  # the maximiser of the bound, which is not observed
    opt.enqueue(16)
    opt.fail(opt.suggest())
    assert rows[16].tolist() not in [row.tolist() for row in opt.recommend(n=20)]


def test_infeasible_points_are_not_recommended():
    opt = bl.BayesOpt(SQUARE, seed=0, constraints=[lambda p: p["x"] < 0.5], surrogate=bl.GP(noise_std=0.0))
    data = points(12)
    values = [params["x"] for params in data]
    opt.add(data, values)
    left = [params for params in data if params["x"] < 0.5]
    assert opt.recommend(n=12) == sorted(left, key=lambda params: -params["x"])
    infeasible = [params for params in data if params["x"] >= 0.5]
    alone = bl.BayesOpt(SQUARE, seed=0, constraints=[lambda p: p["x"] < 0.5], surrogate=bl.GP(noise_std=0.0))
    alone.add(infeasible, [params["x"] for params in infeasible])
    assert alone.recommend()["x"] < 0.5


def test_points_of_discarded_trials_are_not_observed_values():
    exact = bl.GP(noise_std=0.0)
    opt = bl.BayesOpt({"x": (0.0, 1.0)}, seed=0, pending=bl.Censor(late="discard"), window=2, surrogate=exact)
    late = opt.suggest()
    others = []
    for _ in range(6):
        others.append(opt.suggest())
        others[-1].observe(others[-1].params["x"] - 2.0)
    late.observe(9.0)  # after the window, so the value is discarded
    assert opt.best_params_ == late.params
    assert opt.recommend() == max((trial.params for trial in others), key=lambda params: params["x"])


@pytest.mark.parametrize(
    "make",
    [
        lambda: bl.RandomSearch(SQUARE, seed=0),
        lambda: bl.TreeSearch(SQUARE, seed=0),
        lambda: bl.BPEDelay(
            candidates=np.random.default_rng(0).random((30, 2)), horizon=40, lengthscale=0.3, noise_std=0.1, seed=0
        ),
    ],
)
def test_other_strategies_return_n_distinct_points(make):
    opt = make()
    for _ in range(12):
        trial = opt.suggest()
        x = list(trial.params.values()) if isinstance(trial.params, dict) else trial.x
        trial.observe(-float(np.sum(np.square(np.asarray(x) - 0.4))))
    found = opt.recommend(n=4)
    keys = [str(params) for params in found]
    assert len(set(keys)) == len(keys) == 4 and keys[0] == str(opt.recommend())
    if isinstance(opt, bl.RandomSearch):
        best = sorted(opt.trials, key=lambda trial: -trial.value)
        assert found == [trial.params for trial in best[:4]]


def test_random_search_recommends_a_point_of_the_context():
    opt = bl.RandomSearch({"x": (0.0, 1.0)}, context={"c": bl.Categorical(["a", "b", "d"])}, seed=0)
    opt.add([{"x": 0.1}, {"x": 0.5}, {"x": 0.9}], [1.0, 2.0, 9.0], context=[{"c": "a"}, {"c": "a"}, {"c": "b"}])
    assert opt.recommend({"c": "a"}, n=5) == [{"x": 0.5}, {"x": 0.1}]
    assert opt.recommend({"c": "d"}) == {"x": 0.9}


@pytest.mark.parametrize("n", [0, -1, 1.5, "2", True, 2**40])
def test_a_wrong_n_is_refused_by_name(n):
    opt = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
    opt.suggest().observe(1.0)
    with pytest.raises(bl.errors.InvalidSetting, match="n="):
        opt.recommend(n=n)


def test_the_largest_n_returns_all_points_under_constraints():
    opt = bl.BayesOpt(SQUARE, seed=0, constraints=[lambda p: p["x"] < 0.5], surrogate=bl.GP(noise_std=0.0))
    data = points(20)
    opt.add(data, [float(i) for i in range(20)])
    assert opt.recommend(n=2**32 - 1) == [p for p in data[::-1] if p["x"] < 0.5]


@pytest.mark.parametrize(("probability", "warns"), [(0.89, True), (0.9, False), (0.91, False)])
def test_a_probability_of_the_bounds_below_90_percent_gives_a_warning(probability, warns, monkeypatch):
    opt = bl.BayesOpt(SQUARE, outcomes={"loss": "minimize", "heat": bl.AtMost(1.0)}, seed=0)
    for i, point in enumerate(points(4)):
        opt.add(point, {"loss": float(i), "heat": 0.5})
    monkeypatch.setattr(type(opt), "predict_feasible", lambda *_: np.array([probability]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        opt.recommend()
    assert any("0.9 or more" in str(each.message) for each in caught) == warns


@pytest.mark.parametrize("context", [None, {"z": ["p", "q"]}])
def test_random_search_recommends_the_best_trial_within_the_bounds(context):
    outcomes = {"a": "minimize", "b": bl.AtMost(1.0)}
    optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, context=context, outcomes=outcomes, seed=0)
    here = {} if context is None else {"context": {"z": "p"}}
    for x, a, b in [(0.9, 0.0, 9.0), (0.3, 0.5, 2.0)]:
        optimizer.add({"x": x}, {"a": a, "b": b}, **here)
    assert optimizer.recommend(**here) == {"x": 0.3}  # the smallest violation
    for x, a, b in [(0.1, 2.0, 0.5), (0.2, 1.0, 1.0)]:
        optimizer.add({"x": x}, {"a": a, "b": b}, **here)
    assert optimizer.best_params_ == optimizer.recommend(**here) == {"x": 0.2}
    optimizer.add({"x": 0.4}, {"a": 0.0}, **here)
    assert optimizer.recommend(n=4, **here) == [{"x": 0.2}, {"x": 0.1}]


@pytest.mark.parametrize(("failed", "observed"), [("a", {}), ("b", {}), ("b", {"a": -9.0})])
def test_a_point_where_an_outcome_failed_is_not_recommended(failed, observed):
    outcomes = {"a": "minimize", "b": bl.AtMost(1.0)}
    candidates = {"x": [float(i) for i in range(10)]}
    optimizer = bl.BayesOpt(candidates=candidates, initial=3, outcomes=outcomes, seed=0)
    for x, a in [(5.0, -0.2), (0.0, 37.0), (3.0, 9.0), (7.0, 0.2)]:
        optimizer.add({"x": x}, {"a": a, "b": x / 10})
    trial = optimizer.add({"x": 4.0})
    if observed:
        trial.observe(observed)
    trial.fail(outcome=failed)
    assert {"x": 4.0} not in optimizer.recommend(n=10)


def test_a_context_without_trials_recommends_a_measured_point_if_no_point_probably_lies_within_the_bounds():
    outcomes = {"a": "minimize", "b": bl.AtMost(-50.0)}
    optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, context={"z": ["p", "q"]}, outcomes=outcomes, initial=2, seed=0)
    for i in range(6):
        optimizer.add({"x": i / 5}, {"a": i / 5, "b": (i - 2.0) ** 2}, context={"z": "p"})
    with pytest.warns(bl.BelatedWarning, match="within their bounds"):
        assert optimizer.recommend({"z": "q"}) in [{"x": i / 5} for i in range(6)]
