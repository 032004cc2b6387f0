"""The methods with which tree search is compared. Each method agrees with a theorem or with a published property of the
method."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from belated._core import GaussianProcess
from belated.replays import rivals, rivals_bayesian
from belated.replays.reference_tree import UCBV, Evaluations, UCB1Sigma, run_instance, run_poo
from belated.replays.rivals import Batches, TimeIsUp, WaitAndAct, wait_and_act
from belated.replays.rivals_bayesian import CoKriging
from belated.replays.wang import PROBLEMS


def clock(f, n, delay=1.0, noise=None):
    """The evaluations of an algorithm that waits for each value, until n values have arrived."""
    return WaitAndAct(f, itertools.repeat(delay), n * delay, noise)


def bump(x, z=1.0):
    """A function with maximum 0 at 0.3. At a lower fidelity the values of the function are lower, by an amount that
    depends on the point."""
    return float(-np.sum((x - 0.3) ** 2) - 0.1 * (1 - z) * (1 + x[0]))


def cost(z):
    return 0.1 + z**2


# Wait and act.


def test_the_next_evaluation_starts_when_the_last_has_arrived():
    evaluate = WaitAndAct(lambda x, z: float(x[0]), iter([4.0, 1.0, 2.0, 5.0]), 11.0)
    for x in (0.1, 0.2, 0.3):
        assert evaluate(np.array([x])) == x
    with pytest.raises(TimeIsUp):
        evaluate(np.array([0.4]))
    assert evaluate.times == [4.0, 5.0, 7.0] and evaluate.values == [0.1, 0.2, 0.3] and evaluate.now == 7.0


def test_waiting_for_geometric_delays_leaves_one_evaluation_in_ten_units():
    rng = np.random.default_rng(0)
    n = []
    for _ in range(50):
        evaluate = WaitAndAct(lambda x, z: 0.0, iter(rng.geometric(0.1, 1000).astype(float)), 600.0)
        with pytest.raises(TimeIsUp):
            while True:
                evaluate(np.zeros(1))
        n.append(len(evaluate.values))
    # The delays have mean 10 and standard deviation sqrt(90). By renewal theory, the mean number of evaluations in 50
    # runs is 60 ± 0.8.
    assert np.mean(n) == pytest.approx(60.0, abs=3.0)


def test_the_recommendation_is_the_best_at_the_highest_fidelity():
    evaluate = clock(lambda x, z: float(x[0]), 10)
    for x, z in ((0.9, 0.5), (0.2, 1.0), (0.95, 0.5), (0.1, 1.0), (0.4, 1.0)):
        evaluate(np.array([x]), z)
    assert [float(x[0]) for x in evaluate.recommendations()] == [0.9, 0.2, 0.2, 0.2, 0.4]


def test_a_model_may_recommend_an_untried_point():
    evaluate = clock(lambda x, z: float(x[0]), 10)
    evaluate(np.array([0.9]))
    evaluate(np.array([0.2]))
    evaluate.recommend(np.array([0.5]))
    evaluate(np.array([0.95]))
    assert [float(x[0]) for x in evaluate.recommendations()] == [0.9, 0.5, 0.5]


def test_noise_is_added_to_observed_values():
    evaluate = clock(lambda x, z: 1.0, 3, noise=iter([0.5, -0.5]).__next__)
    assert [evaluate(np.zeros(1)), evaluate(np.zeros(1))] == [1.5, 0.5]


# Bayesian optimisation.


@pytest.mark.parametrize(
    ("rival", "settings"),
    [
        (rivals_bayesian.gp_ucb, {}),
        (rivals_bayesian.gp_ei, {}),
        (rivals_bayesian.mf_gp_ucb, {"cost": cost}),
        (rivals_bayesian.boca, {"cost": cost}),
        (rivals_bayesian.mf_sko, {"cost": cost}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_maximum_of_a_bump_is_found(rival, settings):
    pytest.importorskip("scipy")
    evaluate = wait_and_act(rival, clock(bump, 30), 2, np.random.default_rng(0), **settings)
    assert len(evaluate.values) == 30
    assert bump(evaluate.recommendations()[-1]) > -0.02
    assert all(np.all((x >= 0) & (x <= 1)) for x in evaluate.points)


def test_the_posterior_is_in_the_units_of_the_values():
    x = np.random.default_rng(1).random((25, 1))
    models = [rivals_bayesian.Posterior(np.random.default_rng(2)) for _ in range(2)]
    for row in x:
        value = math.sin(4 * row[0])
        models[0].add(row, value)
        models[1].add(row, 1000.0 + 5.0 * value)
    points = np.linspace(0, 1, 9)[:, None]
    (mean, std), (scaled_mean, scaled_std) = (model.at(points) for model in models)
    np.testing.assert_allclose(scaled_mean, 1000.0 + 5.0 * mean, rtol=0, atol=1e-6)
    np.testing.assert_allclose(scaled_std, 5.0 * std, rtol=1e-6)
    np.testing.assert_allclose(models[0].at(x)[0], np.sin(4 * x[:, 0]), rtol=0, atol=1e-2)


def test_mf_gp_ucb_uses_only_the_given_fidelities_and_increases_them():
    evaluate = wait_and_act(rivals_bayesian.mf_gp_ucb, clock(bump, 45), 1, np.random.default_rng(0), cost=cost)
    assert set(evaluate.fidelities) <= {0.333, 0.667, 1.0}
    assert evaluate.fidelities[:4] == [0.333, 0.333, 0.667, 1.0]
    later = evaluate.fidelities[4:]
    # The search starts at the lowest fidelity, and moves to the highest fidelity once f is known at the lower
    # fidelities.
    assert later[0] == 0.333 and 1.0 in later


def test_boca_begins_with_cheap_fidelities_and_ends_with_the_full_fidelity():
    problem = PROBLEMS["Hartmann3"]
    made = clock(problem.value, 60)
    evaluate = wait_and_act(rivals_bayesian.boca, made, problem.d, np.random.default_rng(0), cost=problem.function.cost)
    chosen = evaluate.fidelities[2 * problem.d :]
    assert np.mean(chosen[:10]) < 0.5 and np.all(np.array(chosen[-10:]) == 1.0)


def co_kriging(levels, theta, rng, n=12):
    model = CoKriging(levels)
    model.theta = np.log(theta)
    model.fitted_to = 10**6  # these calls remain in flight
    for i in range(n):
        model.add(rng.random(2), i % levels, float(rng.normal()))
    return model


def test_co_kriging_of_one_level_is_a_gaussian_process():
    rng = np.random.default_rng(0)
    model = co_kriging(1, [0.4, 1.3, 0.02], rng)
    gp = GaussianProcess("squared_exponential", 0.4, 1.3, 0.02)
    gp.fit(np.array(model.x), (np.array(model.y) - model.mean) / model.scale)
    points = rng.random((7, 2))
    mean, std = gp.predict(points)
    ours = model.at(points, 0)
    np.testing.assert_allclose(ours[0], model.mean + model.scale * mean, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(ours[1], model.scale * std, rtol=1e-5)


def test_co_kriging_adds_independent_increments():
    """The posterior agrees with draws of f_0, δ_1, δ_2 from their joint distribution."""
    model = co_kriging(3, [0.4, 1.0, 0.3, 0.2, 0.05], np.random.default_rng(3), n=6)
    points = np.random.default_rng(4).random((4, 2))
    rows = np.vstack([model.x, points])
    squares = np.sum((rows[:, None] - rows[None]) ** 2, axis=2)
    root = np.linalg.cholesky(np.exp(-0.5 * squares / 0.4**2) + 1e-10 * np.eye(len(rows)))
    draws = np.random.default_rng(5).standard_normal((3, 200_000, len(rows))) @ root.T
    f = np.cumsum(np.sqrt([1.0, 0.3, 0.2])[:, None, None] * draws, axis=0)
    level = np.array([*model.level, 2, 1, 0, 2])
    at_level = f[level, :, np.arange(len(rows))]
    expected = at_level @ at_level.T / 200_000
    np.testing.assert_allclose(model.covariance(rows, level, rows, level), expected, atol=0.02)


def test_higher_levels_correlate_more_with_the_highest():
    model = co_kriging(3, [0.4, 1.0, 0.3, 0.2, 1e-6], np.random.default_rng(6), n=4)
    far = np.array([[3.0, 3.0]])
    found = [float(model.correlation(far, level)[0]) for level in range(3)]
    # Far from all values the correlation equals the correlation under the prior, sqrt(σ_0² + … + σ_l²)/sqrt(Σ σ²).
    assert found == pytest.approx([math.sqrt(1 / 1.5), math.sqrt(1.3 / 1.5), 1.0], abs=1e-4)


def test_expected_improvement_is_the_mean_of_draws():
    draws = np.random.default_rng(0).standard_normal(400_000)
    for mean, std in ((0.3, 0.5), (-1.0, 1.0)):
        ours = rivals_bayesian.expected_improvement(np.array([mean]), np.array([std]), 0.2)[0]
        assert ours == pytest.approx(np.maximum(mean + std * draws - 0.2, 0).mean(), rel=0.02)


def test_mf_sko_uses_lower_fidelities_where_they_are_cheap():
    pytest.importorskip("scipy")
    costs = (lambda z: 0.01 + z**8, lambda z: 1.0)
    cheap, dear = (
        wait_and_act(rivals_bayesian.mf_sko, clock(bump, 20), 1, np.random.default_rng(0), cost=cost) for cost in costs
    )
    assert np.mean(cheap.fidelities[4:]) < np.mean(dear.fidelities[4:])


# Gradient methods.


def test_the_gradient_is_exact_for_a_linear_function():
    slope = np.array([1.0, -2.0, 0.5])
    x = np.array([0.2, 0.3, 0.4])
    values = [float(slope @ point) for point in rivals.query_points(x, 0.02)]
    np.testing.assert_allclose(rivals.gradient_at(values, 0.02), slope)


def test_ascent_reaches_the_maximum_of_a_concave_function():
    evaluate = wait_and_act(rivals.ogd, clock(bump, 400), 3, np.random.default_rng(0))
    assert bump(evaluate.recommendations()[-1]) > -0.01
    assert len(evaluate.values) == 400


def test_dbgd_with_tiny_delays_is_ogd():
    """If each value arrives at the end of its slot, DBGD evaluates the same points as OGD."""
    waiting = wait_and_act(rivals.ogd, clock(bump, 300), 2, np.random.default_rng(3))
    delayed = WaitAndAct(bump, itertools.repeat(1.0), 300.0)
    wait_and_act(rivals.dbgd, delayed, 2, np.random.default_rng(3))
    np.testing.assert_array_equal(np.array(delayed.points), np.array(waiting.points)[: len(delayed.points)])
    assert delayed.times == [1.0 + k for k in range(300)]


def test_dbgd_starts_one_evaluation_a_unit_and_uses_late_gradients():
    delayed = WaitAndAct(bump, itertools.repeat(20.0), 600.0)
    wait_and_act(rivals.dbgd, delayed, 2, np.random.default_rng(3))
    assert len(delayed.times) == 581 and max(delayed.times) == 600.0 and delayed.times == sorted(delayed.times)
    assert bump(delayed.recommendations()[-1]) > -0.01
    # The first gradient is known at time 21, so all evaluations before this time are at the same point.
    first = np.array(delayed.points)[:18:3]
    assert np.all(first == first[0])


# Rejection of cells.


def test_batches_take_the_time_of_their_workers():
    evaluate = Batches(lambda x, z: float(x[0]), itertools.repeat(4.0), 100.0, workers=3)
    assert evaluate([np.array([float(k)]) for k in range(7)]) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert evaluate.now == 12.0 and evaluate.n == 7
    with pytest.raises(TimeIsUp):
        evaluate([np.zeros(1)] * 100)
    assert evaluate.now == 12.0


def test_cells_with_the_maximum_are_never_rejected():
    calls = []

    def evaluate(points):
        calls.append(len(points))
        return [-abs(float(x[0]) - 0.3) for x in points]

    found = list(itertools.islice(rivals.rejecting_cells(evaluate, 1), 4))
    assert calls[:2] == [int(0.5 * math.log(10)), 2 * int(0.5 * math.log(40) * 16)]
    # The expected point is the centre of the cell with side 2^−l that contains 0.3, or of another cell whose centre is
    # equally near.
    for level, x in enumerate(found):
        assert abs(x[0] - 0.3) <= 0.5**level


# Trees without delay (Sen et al. 2018).


@pytest.mark.parametrize("width", [UCB1Sigma(0.01), UCBV(1.0)])
def test_mfhoo_evaluates_small_cells_at_a_higher_fidelity(width):
    asked = []

    def f(x, z):
        asked.append((x.copy(), z))
        return bump(x, z)

    made = Evaluations(f, 2, itertools.repeat(1.0), fidelity=True)
    made.c = 0.2
    found = run_instance(made, 0.2, 0.8, width, 200.0, np.random.default_rng(0), "wait")
    levels = {max(1 - 0.8**h, 1e-3) for h in range(found.height)}
    assert all(min(abs(z - level) for level in levels) < 1e-12 for _, z in asked)
    assert bump(found.points[-1]) > -0.01


def test_mfpoo_shares_evaluations():
    made = Evaluations(bump, 2, itertools.repeat(4.0))
    found = run_poo(made, UCB1Sigma(0.01), 600.0, 4.0, np.random.default_rng(0), at_most=3, act="wait")
    assert made.n < sum(each.n_nodes for each in found)
    assert max(bump(each.points[-1]) for each in found) > -0.01
