"""Results of other contexts help in a new context, whatever the level and the scale of f in the other contexts."""

import math
import pickle

import numpy as np
import pytest

import belated as bl

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
LOTS = {"lot": ["a", "b", "c"]}


def loss(params):
    return (params["x"] - 0.3) ** 2 + 2 * (params["y"] - 0.6) ** 2 + 0.1 * np.sin(9 * params["x"])


def random_points(n, seed=0):
    return [{"x": a, "y": b} for a, b in np.random.default_rng(seed).random((n, 2)).tolist()]


def filled(level, scale, n=25, **arguments):
    """Return an optimizer that knows n results of lot a and eight of lot b."""
    opt = bl.BayesOpt(SPACE, context=LOTS, seed=0, direction="minimize", **arguments)
    for lot, points in [("a", random_points(n)), ("b", random_points(8, seed=1))]:
        in_units = (level, scale) if lot == "b" else (0.0, 1.0)
        values = [in_units[0] + in_units[1] * loss(point) for point in points]
        opt.add(points, values, context=[{"lot": lot}] * len(points))
    return opt


@pytest.mark.parametrize("level, scale", [(-30.0, 1.0), (0.0, 10.0), (200.0, 0.3)])
def test_predictions_are_in_the_units_of_the_context(level, scale):
    opt = filled(level, scale)
    points = random_points(20, seed=2)
    true = np.array([loss(point) for point in points])
    for lot, (offset, factor) in {"a": (0.0, 1.0), "b": (level, scale)}.items():
        mean, std = opt.predict(points, context={"lot": lot})
        errors = (mean - offset) / factor - true
        assert np.sqrt((errors**2).mean()) < 0.1 * true.std()
        assert (std / factor).max() < true.std()
    numbers, left_out, _ = opt._leave_one_out(None, "plot_predictions")
    values = np.array([opt.trials[number].value for number in numbers])
    assert np.abs(left_out - values).max() < 0.1 * np.ptp(values)
    assert opt.recommend(context={"lot": "b"}) == pytest.approx(opt.recommend(context={"lot": "a"}), abs=0.05)


@pytest.mark.parametrize("level, scale", [(0.0, 1.0), (-30.0, 1.0), (5.0, 10.0)])
def test_a_reloaded_optimizer_continues_as_the_live_optimizer(level, scale):
    opt = filled(level, scale)
    rng = np.random.default_rng(0)
    for k in range(12):
        lot = "cb"[k % 2]
        context = {"lot": lot}
        other = pickle.loads(pickle.dumps(opt))
        trial = opt.suggest(context=context)
        assert other.suggest(context=context).params == trial.params
        assert other.predict(trial.params, context=context) == opt.predict(trial.params, context=context)
        shift = level if lot == "b" else -level
        trial.observe(shift + (scale if lot == "b" else 1.0) * loss(trial.params) + 0.01 * rng.standard_normal())


def test_the_best_point_of_another_context_is_tried():
    opt = bl.BayesOpt(SPACE, context=LOTS, seed=0, direction="minimize")
    points = random_points(60)
    opt.add(points, [loss(point) for point in points], context=[{"lot": "a"}] * 60)
    best = min(map(loss, points))
    found = []
    for _ in range(6):
        trial = opt.suggest(context={"lot": "b"})
        found.append(loss(trial.params))
        trial.observe(found[-1] - 40.0)
    # Without the results of lot a, the first six points are initial points.
    assert min(found) < best + 0.01


@pytest.mark.parametrize("declared", [{"age": (0.0, 1.0)}, LOTS])
def test_known_results_of_other_contexts_complete_the_initial_design(declared):
    rng = np.random.default_rng(0)
    opt = bl.BayesOpt(SPACE, context=declared, seed=0, direction="minimize")
    for point in random_points(80):
        context = {"age": rng.random()} if "age" in declared else {"lot": "ab"[rng.integers(2)]}
        opt.add(point, loss(point), context=context)
    context = {"age": 0.5} if "age" in declared else {"lot": "c"}
    assert loss(opt.suggest(context=context).params) < 0.1


def test_bounds_are_in_the_units_of_the_outcome_in_every_context():
    outcomes = {"error": "minimize", "heat": bl.AtMost(0.2)}
    opt = bl.BayesOpt(SPACE, context=LOTS, outcomes=outcomes, seed=0)
    shift = {"a": 0.0, "b": 30.0}  # where heat is shifted, it is never within its bound
    for lot in "ab":
        points = random_points(20, seed=ord(lot))
        rows = [{"error": loss(point), "heat": loss(point) + shift[lot]} for point in points]
        opt.add(points, rows, context=[{"lot": lot}] * 20)
    points = random_points(30, seed=5)
    within = np.array([loss(point) <= 0.2 for point in points])
    found = {lot: np.array(opt.predict_feasible(points, context={"lot": lot})) for lot in "ab"}
    assert ((found["a"] > 0.5) == within).mean() > 0.9
    assert found["b"].max() < 0.01


@pytest.mark.parametrize("level, scale, noise", [(3.0, 1.0, 0.0), (0.0, 10.0, 0.05), (1.0, 5.0, 0.05)])
def test_the_probability_inside_is_the_share_of_the_predictive_law_in_the_units_of_the_context(level, scale, noise):
    outcomes = {"error": "minimize", "heat": bl.AtMost(1.5)}
    opt = bl.BayesOpt(SPACE, context=LOTS, outcomes=outcomes, seed=0)
    rng = np.random.default_rng(1)
    units = {"a": (0.0, 1.0), "b": (level, scale)}
    for lot, n in [("a", 25), ("b", 10)]:
        points = random_points(n, seed=ord(lot))
        heats = [units[lot][0] + units[lot][1] * (3 * loss(p) + noise * rng.standard_normal()) for p in points]
        rows = [{"error": loss(point), "heat": heat} for point, heat in zip(points, heats, strict=True)]
        opt.add(points, rows, context=[{"lot": lot}] * n)
    points = random_points(60, seed=7)
    for lot, (offset, factor) in units.items():
        found = np.array(opt.predict_feasible(points, context={"lot": lot}))
        mean, std = opt.predict(points, context={"lot": lot}, outcome="heat")
        law = [0.5 * math.erfc((m - 1.5) / s / math.sqrt(2)) for m, s in zip(mean, std, strict=True)]
        np.testing.assert_allclose(found, law, atol=1e-6)
        within = np.array([offset + factor * 3 * loss(point) <= 1.5 for point in points])
        assert ((found - within) ** 2).mean() < 0.06


def test_offsets_of_two_categorical_contexts_add_up():
    levels = {"lot": {"a": 0.0, "b": 40.0}, "device": {"p": 0.0, "q": -15.0}}
    contexts = {name: list(of_choice) for name, of_choice in levels.items()}
    opt = bl.BayesOpt(SPACE, context=contexts, seed=0, direction="minimize")
    for seed, pair in enumerate([("a", "p"), ("a", "q"), ("b", "q")]):
        context = dict(zip(levels, pair, strict=True))
        shift = sum(levels[name][choice] for name, choice in context.items())
        points = random_points(15, seed=seed)
        opt.add(points, [shift + loss(point) for point in points], context=[context] * 15)
    points = random_points(20, seed=9)
    true = np.array([loss(point) for point in points])
    mean, _ = opt.predict(points, context={"lot": "b", "device": "p"})
    # No trial has this pair of contexts, so its level is the sum of the offsets, which is not exact.
    assert np.abs(mean - mean.mean() - true + true.mean()).max() < 0.1
    assert abs(mean.mean() - true.mean() - 40.0) < 2.0
    assert loss(opt.suggest(context={"lot": "b", "device": "p"}).params) < 0.1


def constant(point):
    return 0.0


@pytest.mark.parametrize("of_other", [constant, loss])
@pytest.mark.parametrize("n", [1, 20])
def test_few_or_constant_values_in_another_context_do_not_matter(of_other, n):
    opt = bl.BayesOpt(SPACE, context=LOTS, seed=0, direction="minimize")
    points = random_points(n)
    opt.add(points, [5.0 + of_other(point) for point in points], context=[{"lot": "a"}] * n)
    found = []
    for _ in range(14):
        trial = opt.suggest(context={"lot": "b"})
        found.append(loss(trial.params))
        trial.observe(found[-1])
    best = min(loss(point) for point in random_points(20_000, seed=3))
    assert min(found) < best + 0.02
    assert len({tuple(trial.params.values()) for trial in opt.trials}) == len(opt.trials)


def mirrored_loss(point):
    return loss({"x": 1.0 - point["x"], "y": 1.0 - point["y"]})


def suggested_in_b(optimizer, n):
    points = []
    for _ in range(n):
        trial = optimizer.suggest(context={"lot": "b"})
        points.append(trial.params)
        trial.observe(loss(trial.params))
    return points


def initial_points_in_b(optimizer):
    """Return the number of points of the initial design among the first five points."""
    alone = bl.BayesOpt(SPACE, context=LOTS, seed=0, direction="minimize")
    initial = suggested_in_b(alone, 5)
    return sum(point in initial for point in suggested_in_b(optimizer, 5))


def with_other_contexts(of_other, level, others):
    opt = bl.BayesOpt(SPACE, context=LOTS, seed=0, direction="minimize")
    for lot in others:
        points = random_points(40, seed=ord(lot))
        opt.add(points, [level + of_other(point) for point in points], context=[{"lot": lot}] * 40)
    return opt


@pytest.mark.parametrize("others", ["a", "ac"])
@pytest.mark.parametrize("level", [0.0, 5.0])
def test_the_initial_design_is_resumed_if_other_contexts_do_not_predict_the_first_values(others, level):
    opt = with_other_contexts(mirrored_loss, level, others)
    assert initial_points_in_b(opt) >= 2
    best = min(loss(point) for point in random_points(20_000, seed=3))
    assert min(map(loss, suggested_in_b(opt, 9))) < best + 0.02


@pytest.mark.parametrize("others", ["a", "ac"])
@pytest.mark.parametrize(("level", "n"), [(0.0, 0), (5.0, 1)])
def test_the_initial_design_is_not_resumed_if_other_contexts_predict_the_values_but_for_their_level(others, level, n):
    assert initial_points_in_b(with_other_contexts(loss, level, others)) <= n
