"""Points that would not give new information are not suggested: points with an exact value, and points that were just
abandoned."""

from collections import Counter

import numpy as np
import pytest

import belated as bl

SQUARE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def quadratic(x, y):
    return -((x - 0.3) ** 2 + (y - 0.7) ** 2)


def suggested(opt, n, f=quadratic, std=None):
    """Suggest n points, observe each of them at once, and return the points."""
    points = []
    for _ in range(n):
        trial = opt.suggest()
        points.append(list(trial.params.values()))
        trial.observe(f(**trial.params), std=std)
    return np.array(points)


def least_distance(points):
    """Return the smallest distance between two points; the distance is the largest difference of a coordinate."""
    apart = np.abs(points[:, None] - points[None]).max(axis=-1)
    return apart[np.triu_indices(len(points), 1)].min()


@pytest.mark.parametrize("acquisition", ["log_ei", "ucb", "thompson"])
@pytest.mark.parametrize("declared", ["noise_std", "std", "fitted"])
def test_exact_values_are_not_observed_again(acquisition, declared):
    surrogate = bl.GP(noise_std=0.0) if declared == "noise_std" else "gp"
    opt = bl.BayesOpt(SQUARE, acquisition=acquisition, surrogate=surrogate, seed=1)
    points = suggested(opt, 45, std=0.0 if declared == "std" else None)
    assert least_distance(points) > 1e-9
    assert max(quadratic(*point) for point in points) > -1e-6  # the maximum is found


def test_exact_values_are_not_observed_again_under_constraints():
    opt = bl.BayesOpt(SQUARE, constraints=[lambda p: p["x"] + p["y"] <= 0.8], surrogate=bl.GP(noise_std=0.0), seed=1)
    points = suggested(opt, 40)
    assert least_distance(points) > 1e-9 and (points.sum(axis=1) <= 0.8).all()
    assert max(quadratic(*point) for point in points) > -0.02 - 1e-4  # the maximum 0 is at (0.2, 0.6)


def test_values_with_noise_may_be_observed_again():
    """The rule applies only to exact values: with noise the model may repeat the best point any number of times."""
    runs = []
    for surrogate in ("gp", bl.GP(noise_std=0.3)):
        noise = np.random.default_rng(0)
        opt = bl.BayesOpt({"x": (0.0, 1.0)}, surrogate=surrogate, acquisition="ucb", seed=0)
        runs.append(suggested(opt, 30, lambda x, noise=noise: x + 0.1 * noise.standard_normal()))
    assert any((points == 1.0).sum() > 1 for points in runs)


@pytest.mark.parametrize("acquisition", ["log_ei", "ucb", "max_variance"])
def test_an_abandoned_point_is_not_suggested_before_the_next_result(acquisition):
    rng = np.random.default_rng(0)
    space = {**SQUARE, "z": (0.0, 1.0)}
    opt = bl.BayesOpt(space, acquisition=acquisition, surrogate=bl.GP(noise_std=0.1), seed=0)
    data = rng.random((12, 3))
    opt.add(
        [dict(zip(space, row, strict=True)) for row in data.tolist()],
        [quadratic(x, y) + 0.1 * rng.standard_normal() for x, y, _ in data],
    )
    abandoned = []
    for _ in range(6):
        trial = opt.suggest()
        assert all(max(abs(trial.params[k] - other[k]) for k in space) > 1e-3 for other in abandoned)
        abandoned.append(trial.params)
        trial.abandon()


def test_an_abandoned_point_of_a_finite_domain_is_not_suggested_before_the_next_result():
    for opt in (
        bl.BayesOpt({"k": bl.Integer(0, 9), "c": ["p", "q"]}, seed=0),
        bl.BayesOpt(candidates=np.linspace(0, 1, 20).reshape(-1, 1), seed=0),
    ):
        points = []
        for trial in opt.suggest(6):
            trial.observe(0.1 * trial.number)
        while len(points) < 5:
            trial = opt.suggest()
            points.append(trial.index if trial.x is not None else tuple(trial.params.values()))
            trial.abandon()
        assert len(set(points)) == 5


def test_random_search_continues_under_constraints_that_draws_rarely_satisfy():
    for seed in range(2):
        opt = bl.RandomSearch(SQUARE, constraints=[lambda p: abs(p["x"] - p["y"]) < 2e-4], seed=seed)
        assert all(abs(trial.params["x"] - trial.params["y"]) < 2e-4 for trial in opt.suggest(30))


@pytest.mark.parametrize("failed", [{6}, {5, 6, 7}])
def test_after_a_failure_a_corner_is_not_suggested_again_and_again(failed):
    optimizer = bl.BayesOpt({"x": (0.0, 1.0), "y": (0.0, 1.0)}, direction="minimize", seed=0)
    times = Counter()
    for i in range(30):
        trial = optimizer.suggest()
        times[tuple(trial.params.values())] += 1
        if i in failed:
            trial.fail()
        else:
            trial.observe(sum(trial.params.values()))
    # A second equal value shows that values are exact.
    assert optimizer.best_value_ == 0.0
    assert max(times.values()) <= 4


@pytest.mark.parametrize("declared", ["noise_std", "std"])
def test_after_a_failure_equal_values_with_a_declared_noise_are_not_exact(declared):
    def largest(fails):
        surrogate = bl.GP(noise_std=0.1) if declared == "noise_std" else "gp"
        optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, surrogate=surrogate, acquisition="ucb", seed=2)
        rng = np.random.default_rng(2)
        if fails:
            optimizer.add({"x": 0.02}).fail()
        for _ in range(30):
            trial = optimizer.suggest()
            noisy = min(trial.params["x"] + 0.1 * rng.standard_normal(), 1.0)
            trial.observe(round(noisy, 1), std=0.1 if declared == "std" else None)
        return Counter(trial.params["x"] for trial in optimizer.trials)[1.0]

    assert largest(fails=False) >= 20 and largest(fails=True) >= 20


ROWS = [{"carbon": a, "conc": x} for a in ("glc", "xyl", "gly") for x in (10, 20, 40, 80)]


@pytest.mark.parametrize("pending", [None, "ignore"])
@pytest.mark.parametrize(
    "domain", [{"candidates": ROWS}, {"space": {"carbon": ["glc", "xyl", "gly"], "conc": bl.Ordinal([10, 20, 40, 80])}}]
)
def test_a_candidate_that_exists_once_is_not_suggested_again(domain, pending):
    acquisition = "log_ei" if pending is None else "ucb"
    opt = bl.BayesOpt(**domain, repeats=False, acquisition=acquisition, pending=pending, seed=1)
    rng, seen = np.random.default_rng(0), []
    for i in range(6):
        for trial in opt.suggest(n=2):
            seen.append((trial.params["carbon"], trial.params["conc"]))
            if i == 3:
                trial.fail()
            else:
                trial.observe((trial.params["carbon"] == "gly") + rng.normal())
    assert len(set(seen)) == len(ROWS)
    assert tuple(opt.suggest().params.values()) in seen


def test_repeats_is_stored_with_a_study_and_can_be_revised(tmp_path):
    study = bl.Study("s", f"sqlite:///{tmp_path}/s.db", bl.BayesOpt(candidates=ROWS, repeats=False, seed=0))
    assert bl.Study.load("s", f"sqlite:///{tmp_path}/s.db").optimizer.repeats is False
    study.revise(repeats=True)
    assert study.optimizer.get_params()["repeats"] is True
    with pytest.raises(bl.errors.InvalidSetting, match="repeats"):
        bl.BayesOpt(candidates=ROWS, repeats="no")
