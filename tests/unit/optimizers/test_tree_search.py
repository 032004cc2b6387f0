"""Tree search through the Python interface: results, errors, and the attributes that show the trees."""

import math

import numpy as np
import pytest

import belated as bl

SPACE = {"x": (-1.0, 2.0), "y": (-2.0, 1.0)}


def sphere(params):
    return (params["x"] - 0.4) ** 2 + (params["y"] + 0.3) ** 2


def run(optimizer, n, f, delay=0):
    """Run n trials. Each result arrives `delay` suggestions late."""
    waiting = []
    for _ in range(n):
        waiting.append(optimizer.suggest())
        if len(waiting) > delay:
            trial = waiting.pop(0)
            trial.observe(f(trial.params))
    for trial in waiting:
        trial.observe(f(trial.params))
    return optimizer


@pytest.mark.parametrize(
    ("bound", "delay"),
    [
        ("ducb1", 50),
        ("ducbv", 0),
        ("ducbv", 50),
        (bl.papers.DUCB1Sigma(noise_std=0.1), 50),
        (bl.papers.DUCBV(b=1.0), 0),
    ],
    ids=repr,
)
def test_minimum_is_found_with_and_without_delay(bound, delay):
    searches = [bl.TreeSearch(SPACE, bound=bound, direction="minimize", seed=seed) for seed in range(7)]
    best = [run(search, 1000, sphere, delay).best_value_ for search in searches]
    # The median of the best value among 1,000 random points is 0.0024.
    assert np.median(best) < 5e-4


def test_minimizing_is_maximizing_the_negative():
    low = run(bl.TreeSearch(SPACE, direction="minimize", seed=3), 300, sphere, 7)
    high = run(bl.TreeSearch(SPACE, seed=3), 300, lambda p: -sphere(p), 7)
    assert [t.params for t in low.trials] == [t.params for t in high.trials]
    assert low.recommend() == high.recommend()


def test_the_unit_of_the_values_does_not_change_suggestions():
    # Settings are estimated from the values. Scaling by a power of two does not round values, so it must not change
    # suggestions.
    plain = run(bl.TreeSearch(SPACE, seed=3), 400, lambda p: -sphere(p))
    scaled = run(bl.TreeSearch(SPACE, seed=3), 400, lambda p: -sphere(p) * 1024.0)
    assert [t.params for t in scaled.trials] == [t.params for t in plain.trials]
    assert scaled.trees_[0].nu == 1024.0 * plain.trees_[0].nu and scaled.best_value_ == 1024.0 * plain.best_value_


def test_the_front_is_used_only_if_no_setting_is_given():
    def points(**arguments):
        return [t.params for t in run(bl.TreeSearch(SPACE, seed=5, **arguments), 60, lambda p: -sphere(p)).trials]

    # In two dimensions rho is 0.5 by default. By default the front is not used if rho is given.
    assert points() == points(front=True) == points(rho=0.5, front=True)
    assert points(rho=0.5) == points(front=False) != points()


def test_the_better_half_of_an_interval_is_searched_first():
    # The search visits the centres of cells of [0, 1]: 1/2, then 1/4 and 3/4, then either 1/8 and 3/8 or 5/8 and 7/8,
    # depending on which half is better.
    optimizer = bl.TreeSearch({"x": (0.0, 1.0)}, sample="centre", bound=bl.papers.DUCBV(b=0.0), nu=1e-6, seed=0)
    run(optimizer, 5, lambda p: p["x"])
    visited = [t.params["x"] for t in optimizer.trials]
    assert visited[0] == 0.5 and set(visited[1:3]) == {0.25, 0.75} and set(visited[3:]) == {0.625, 0.875}


def test_trees_are_shown_and_several_share_the_trials():
    optimizer = bl.TreeSearch(SPACE, rho=[0.9, 0.7, 0.5], nu=1.0, seed=0)
    run(optimizer, 200, lambda p: -sphere(p))
    trees = optimizer.trees_
    assert [tree.rho for tree in trees] == [0.9, 0.7, 0.5] and {tree.nu for tree in trees} == {1.0}
    # The trees take turns and visit one cell in each turn; there are more turns than trials.
    assert all(tree.n_cells > 200 / 3 for tree in trees) and sum(tree.n_cells for tree in trees) > 200
    assert trees[0].depth <= trees[2].depth <= 200
    one = run(bl.TreeSearch(SPACE, seed=0), 50, lambda p: -sphere(p)).trees_
    assert len(one) == 1 and one[0].n_cells == 50 and math.log2(51) - 1 <= one[0].depth < 50


def test_rho_for_a_horizon_follows_poo():
    # N = ceil(D/2 log(T/log T)) with D = log 2/log(1/rho). For T = 1,000 and rho = 0.95, N is 34, and the values range
    # from 0.95 to 0.95^34.
    optimizer = bl.TreeSearch(SPACE, horizon=1000, seed=0)
    rhos = [tree.rho for tree in optimizer.trees_]
    expected = [0.95 ** (34 / (34 - i)) for i in range(34)]
    np.testing.assert_allclose(rhos, expected, rtol=1e-12)
    assert [tree.rho for tree in bl.TreeSearch(SPACE, horizon=1, rho=0.9).trees_] == [0.9]
    run(optimizer, 300, lambda p: -sphere(p))
    assert optimizer.best_value_ > -0.05


def test_every_kind_of_parameter_is_halved_to_single_values():
    space = {
        "n": (1, 4),
        "lr": bl.Real(1e-4, 1.0, log=True),
        "layers": bl.Ordinal([16, 32, 64]),
        "kernel": ["rbf", "poly", "linear"],
        "degree": bl.Integer(2, 3, when={"kernel": "poly"}),
    }

    def f(p):
        bonus = p.get("degree", 0) if p["kernel"] == "poly" else 0
        return -abs(math.log10(p["lr"]) + 2) - abs(p["n"] - 3) - (p["layers"] != 32) + bonus

    optimizer = run(bl.TreeSearch(space, seed=0), 1500, f, 20)
    best = optimizer.best_params_
    assert (best["n"], best["layers"], best["kernel"], best["degree"]) == (3, 32, "poly", 3)
    assert abs(math.log10(best["lr"]) + 2) < 0.05


def test_cells_of_one_value_in_flight_are_not_suggested_while_others_are_left():
    optimizer = bl.TreeSearch({"n": (1, 4)}, seed=0)
    run(optimizer, 30, lambda p: float(p["n"]))
    trials = optimizer.suggest(n=4)
    assert sorted(t.params["n"] for t in trials) == [1, 2, 3, 4]


def regret(optimizer, n, f, fails):
    """Return the smallest value of f in n trials, and the share of trials that failed."""
    smallest, n_failed = math.inf, 0
    for _ in range(n):
        trial = optimizer.suggest()
        u = np.array(list(trial.params.values()))
        if fails(u):
            trial.fail()
            n_failed += 1
        else:
            trial.observe(-f(u))
            smallest = min(smallest, f(u))
    return smallest, n_failed / n


def box(d):
    return {f"x{i}": (0.0, 1.0) for i in range(d)}


def distance(u):
    return float(((u - 0.6) ** 2).sum())


@pytest.mark.parametrize("name", ["default", "HOO", "PCTS-DUCBV", "POO"])
def test_optimum_is_found_after_one_failure_near_it(name):
    lost = 0
    for seed in range(10):
        space = {"x": (0.0, 1.0)}
        needed = {"nu": 1.0, "rho": 0.5, "bound__b" if name == "PCTS-DUCBV" else "bound__range": 1.0}
        needed |= {"horizon": 200} if name == "POO" else {}
        optimizer = (
            bl.TreeSearch(space, seed=seed) if name == "default" else bl.algorithm(name, space, seed=seed, **needed)
        )
        accidents = iter([True])
        fails = lambda u: abs(u[0] - 0.3) < 0.15 and next(accidents, False)  # noqa: B023, E731
        lost += regret(optimizer, 200, lambda u: (u[0] - 0.3) ** 2, fails)[0] > 1e-3
    assert lost == 0


@pytest.mark.parametrize(
    ("fails", "volume"),
    [
        (lambda u: u[0] > 0.8, 0.2),
        (lambda u: ((u - 0.75) ** 2).sum() < 0.0225, 0.07),
        (lambda u: u[0] < 0.5, 0.5),
    ],
    ids=["strip", "disc", "half"],
)
def test_optimum_beside_a_failing_region_is_found_with_few_failures(fails, volume):
    runs = [regret(bl.TreeSearch(box(2), seed=seed), 800, distance, fails) for seed in range(10)]
    regrets, shares = np.array(runs).T
    # The best value among 800 random points is 4e-4.
    assert (regrets > 1e-4).sum() <= 1 and np.median(regrets) < 1e-6
    # Some trials are in the failing region, but random points would be there more often.
    assert 0.005 < np.mean(shares) < 0.8 * volume


@pytest.mark.parametrize(("d", "decades"), [(2, 2.0), (6, 0.5)])
def test_random_failures_increase_the_regret_only_moderately(d, decades):
    def median(share):
        runs = []
        for seed in range(6):
            rng = np.random.default_rng(seed)
            runs.append(regret(bl.TreeSearch(box(d), seed=seed), 800, distance, lambda u: rng.random() < share)[0])  # noqa: B023
        return np.log10(np.median(runs))

    # If 30 % of 800 trials fail, 560 trials remain. `decades` is the effect of having fewer trials: in two dimensions
    # and without failures, log10 of the regret is larger by 1.4 after 560 trials than after 800 trials.
    assert median(0.3) < median(0.0) + decades


def test_a_choice_that_failed_is_tried_again():
    for seed in range(12):
        optimizer = bl.TreeSearch({"n": (1, 8)}, seed=seed)
        failures = iter([True, True])
        for _ in range(120):
            trial = optimizer.suggest()
            n = trial.params["n"]
            if n == 6 and next(failures, False):
                trial.fail()
            else:
                trial.observe(-abs(n - 6.0))
        assert optimizer.best_params_ == {"n": 6}


def test_search_covers_the_box_while_every_trial_fails():
    optimizer = bl.TreeSearch(box(2), seed=0)
    for _ in range(200):
        optimizer.suggest().fail()
    failed = np.array([list(trial.params.values()) for trial in optimizer.trials])
    # Every sixteenth of the box was tried. On average, each sixteenth contains 12 of 200 random points.
    counts = np.histogram2d(*failed.T, bins=4, range=[[0, 1], [0, 1]])[0]
    assert counts.min() >= 4


def test_a_late_value_replaces_a_failure():
    def search(result):
        optimizer = bl.TreeSearch({"x": (0.0, 1.0)}, sample="centre", nu=0.1, seed=0)
        for _ in range(60):
            trial = optimizer.suggest()
            if trial.params["x"] > 0.5:
                result(trial)
            else:
                trial.observe(trial.params["x"])
        return [t.params["x"] for t in optimizer.trials]

    late = search(lambda trial: (trial.fail(), trial.observe(0.0)))
    assert late == search(lambda trial: trial.observe(0.0)) != search(bl.Trial.fail)


def test_value_belongs_to_the_cell_where_the_trial_was_run():
    optimizer = bl.TreeSearch({"x": (0.0, 1.0)}, nu=1e-3, bound=bl.papers.DUCBV(b=0.0), seed=0)
    for _ in range(40):
        trial = optimizer.suggest()
        # Every suggestion is run at the mirrored point, and f increases with x.
        x = 1.0 - trial.params["x"]
        optimizer.observe(trial, x, params={"x": x})
    later = [t.params["x"] for t in optimizer.trials[20:]]
    assert np.median(later) > 0.5


@pytest.mark.parametrize(
    "option, message",
    [
        ({"rho": 1.0}, "rho"),
        ({"rho": 0.0}, "rho"),
        ({"rho": [0.5, 1.5]}, "rho"),
        ({"rho": [0.5, 0.7], "horizon": 10}, "rho"),
        ({"rho": "small"}, "rho"),
        ({"nu": 0.0}, "nu"),
        ({"nu": -1.0}, "nu"),
        ({"nu": math.nan}, "nu"),
        ({"horizon": 0}, "horizon"),
        ({"horizon": -5}, "horizon"),
        ({"bound": "ucb"}, "bound"),
        ({"bound": bl.papers.DUCB1(range=0.0)}, "range"),
        ({"bound": bl.papers.DUCBV(b=-1.0)}, "b=-1"),
        ({"bound": "ducb1_sigma"}, "noise_std"),
        ({"bound": bl.papers.DUCB1Sigma(noise_std=-0.1)}, "noise_std"),
        ({"sample": "corner"}, "sample"),
        ({"recommendation": "best"}, "recommendation"),
        ({"refresh": "never"}, "refresh"),
        ({"front": "always"}, "front"),
        ({"front": 1}, "front"),
        ({"context": {"age": (0.0, 1.0)}}, "context"),
    ],
    ids=str,
)
def test_the_error_for_an_unusable_setting_names_it(option, message):
    with pytest.raises(bl.errors.InvalidSetting, match=message):
        bl.TreeSearch(SPACE, **option)


def test_candidates_are_refused():
    with pytest.raises(bl.errors.InvalidSetting, match="TreeSearch does not support candidates"):
        bl.TreeSearch(candidates=[[0.0], [1.0]])


def test_only_tree_search_has_trees():
    for optimizer, name in ((bl.RandomSearch(SPACE), "trees_"), (bl.TreeSearch(SPACE), "rounds_")):
        with pytest.raises(AttributeError, match=f"object has no attribute '{name}'"):
            getattr(optimizer, name)


def test_fidelity_increases_as_cells_shrink():
    fidelity = bl.Fidelity(0.0, 1.0, cost=bl.PowerCost(0.1, exponent=2.0), bias=1.0)
    optimizer = bl.TreeSearch(SPACE, fidelity=fidelity, nu=1.0, rho=0.7, seed=0)
    for _ in range(300):
        trial = optimizer.suggest()
        trial.observe(-sphere(trial.params) - 0.3 * (1.0 - trial.fidelity))
    z = np.array([t.fidelity for t in optimizer.trials])
    # A cell of depth h is queried at z = 1 - nu rho^h/C.
    np.testing.assert_allclose(z[:3], [1e-3, 0.3, 0.3], rtol=1e-12)
    assert z[-50:].mean() > 0.8 and optimizer.trees_[0].depth > 6


def test_the_bias_is_estimated_from_two_trials_at_the_centre():
    optimizer = bl.TreeSearch(SPACE, fidelity=bl.Fidelity(0.0, 1.0), nu=0.6, rho=0.7, seed=0)
    first, second = optimizer.suggest(n=2)
    assert first.params == second.params == {"x": 0.5, "y": -0.5}
    assert (first.fidelity, second.fidelity) == (0.8, 0.2)
    # Until bias and nu are known, trials are full evaluations.
    assert optimizer.suggest().fidelity == 1.0
    first.observe(1.0)
    second.observe(0.4)
    # By the paper C = sqrt(2)·0.6/0.6, and a cell of depth h is evaluated at z = 1 - nu rho^h/C.
    depth = 1
    trial = optimizer.suggest()
    expected = {1.0 - 0.6 * 0.7**depth / math.sqrt(2.0) for depth in range(1, 4)}
    assert min(abs(trial.fidelity - z) for z in expected) < 1e-12, depth
