"""Suggestions of the algorithms for several workers, compared with dense solves.

Notation: mu and s are the posterior mean and standard deviation given the observed values. sigma is the standard
deviation given the points in flight as well. beta_j multiplies sigma. Points are in the unit square and equal their
encodings.
"""

import math

import numpy as np
import pytest

import belated as bl
from tests.unit.optimizers.dense_posterior import DensePosterior
from tests.unit.optimizers.problem import raw_gp, unit_square

LENGTHSCALE, VARIANCE, NOISE = 0.25, 1.0, 0.01
GIVEN = raw_gp(LENGTHSCALE, VARIANCE, NOISE)
SQUARE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def optimizer(rows, seed=0, **arguments):
    return bl.BayesOpt(candidates=rows, **{"surrogate": GIVEN, "initial": 0, "seed": seed} | arguments)


def with_values(rows, n, seed, **arguments):
    """Return an optimizer with n observed values, the indices of the observed points, and the values."""
    rng = np.random.default_rng(100 + seed)
    tried, y = rng.choice(np.arange(2, len(rows)), size=n, replace=False), rng.normal(size=n)
    opt = optimizer(rows, **arguments)
    opt.add(rows[tried], y)
    return opt, tried, y


def in_the_box(x, y, **arguments):
    opt = bl.BayesOpt(SQUARE, surrogate=GIVEN, initial=0, **arguments)
    opt.add([dict(zip(SQUARE, row, strict=True)) for row in x], y)
    return opt


def posterior(rows, tried, y, in_flight=()):
    """mu and s, and sigma."""
    observed = DensePosterior(rows[tried], y, LENGTHSCALE, VARIANCE, NOISE)
    every = [*tried, *in_flight]
    hallucinated = DensePosterior(rows[every], np.zeros(len(every)), LENGTHSCALE, VARIANCE, NOISE)
    variances = np.maximum(observed.variances(rows), 0), np.maximum(hallucinated.variances(rows), 0)
    return observed.mean(rows), *map(np.sqrt, variances)


def schedule(j, d=2):
    return math.sqrt(0.2 * d * math.log(2 * j + 1))


def schedule_of_the_code(j, d=2):
    return math.sqrt(5 * d * math.log(2 * d * j + 1))


# Schedules.


@pytest.mark.parametrize(("beta", "expected"), [("kandasamy", schedule), ("kandasamy_code", schedule_of_the_code)])
def test_beta_grows_with_the_trials_by_its_schedule(beta, expected):
    differ = 0
    for seed in range(10):
        rows = unit_square(seed)
        opt, tried, y = with_values(rows, 8, seed, acquisition=bl.UCB(beta), pending=bl.Hallucinate(repeats=True))
        in_flight = []
        for j in range(9, 14):
            mean, _, sigma = posterior(rows, tried, y, in_flight)
            bound = mean + expected(j) * sigma
            in_flight.append(opt.suggest().index)
            assert bound[in_flight[-1]] >= bound.max() - 1e-9
            other = mean + expected(3 * j) * sigma
            differ += bound.max() - bound[other.argmax()] > 1e-9
    # The test detects errors in beta: with beta for three times as many trials, other points would be suggested.
    assert differ >= 3


@pytest.mark.parametrize("per_batch", [False, True])
def test_per_batch_gives_all_points_of_a_batch_the_same_beta(per_batch):
    differ = 0
    for seed in range(20):
        rows = unit_square(seed, n=120)
        acquisition = bl.UCB("kandasamy_code", per_batch=per_batch)
        opt, tried, y = with_values(rows, 3, seed, acquisition=acquisition, pending=bl.Hallucinate(repeats=True))
        in_flight = []
        for trial in opt.suggest(n=5):
            mean, _, sigma = posterior(rows, tried, y, in_flight)
            j = 4 if per_batch else 4 + len(in_flight)
            bound, other = mean + schedule_of_the_code(j) * sigma, mean + schedule_of_the_code(8 - j + 4) * sigma
            in_flight.append(trial.index)
            assert bound[trial.index] >= bound.max() - 1e-9
            differ += bound.max() - bound[other.argmax()] > 1e-9
    assert differ >= 3


# GP-UCB-PE.


def region(mean, s, beta):
    return mean + 2 * beta * s > (mean - beta * s).max()


@pytest.mark.parametrize("beta", [0.3, "kandasamy"])
def test_a_batch_explores_where_the_maximum_may_be(beta):
    inside, elsewhere = [], 0
    for seed in range(12):
        rows = unit_square(seed, n=120)
        opt, tried, y = with_values(
            rows, 12, seed, acquisition=bl.papers.UCBPE(beta), pending=bl.Hallucinate(repeats=True)
        )
        width = schedule(13) if beta == "kandasamy" else beta
        mean, s, _ = posterior(rows, tried, y)
        where = region(mean, s, width)
        inside.append(where.mean())
        first, *others = (trial.index for trial in opt.suggest(n=5))
        bound = mean + width * s
        assert bound[first] >= bound.max() - 1e-9
        for i, chosen in enumerate(others):
            _, _, sigma = posterior(rows, tried, y, [first, *others[:i]])
            assert where[chosen] and sigma[chosen] >= sigma[where].max() - 1e-9
            elsewhere += not where[sigma.argmax()]
    # The region covers only part of the domain, and the point with the largest variance is often outside the region.
    assert 0.02 < np.mean(inside) < 0.98 and elsewhere >= 3


@pytest.mark.parametrize("search", [{}, {"direct": 2000}], ids=str)
def test_a_box_is_explored_like_candidates(search):
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 16)] * 2), axis=-1).reshape(-1, 2)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x, y = rng.random((10, 2)), rng.normal(size=10)
        opt = in_the_box(x, y, acquisition=bl.papers.UCBPE(0.3), search=bl.Search(**search), seed=seed)
        batch = np.array([list(trial.params.values()) for trial in opt.suggest(n=4)])
        for i in range(1, 4):
            rows = np.vstack([x, batch, grid])
            mean, s, sigma = posterior(rows, np.arange(10), y, 10 + np.arange(i))
            where = region(mean, s, 0.3)
            # The tolerance covers the error of the grid and the error of the search for the lower bound.
            assert mean[10 + i] + 0.6 * s[10 + i] > (mean - 0.3 * s).max() - 1e-6
            assert sigma[10 + i] >= sigma[14:][where[14:]].max() - 0.02


def test_exploration_needs_hallucinated_values():
    for pending in ("ignore", "censor", "liar", "nearest", "integrate", bl.Ignore()):
        with pytest.raises(bl.errors.InvalidSetting, match=r'acquisition="ucb_pe" explores .* give "hallucinate"'):
            bl.BayesOpt(SQUARE, acquisition="ucb_pe", pending=pending)
    assert bl.BayesOpt(SQUARE, acquisition="ucb_pe", pending="hallucinate", seed=0).suggest().number == 0


def test_acquisition_at_agrees_with_the_exploration_of_a_batch():
    rows = unit_square(5)
    opt, tried, y = with_values(rows, 10, 5, acquisition=bl.papers.UCBPE(0.3))
    mean, s, _ = posterior(rows, tried, y)
    assert opt.acquisition_at() == pytest.approx(mean + 0.3 * s, abs=1e-9)
    chosen = opt.suggest().index
    _, _, sigma = posterior(rows, tried, y, [chosen])
    margin = mean + 0.6 * s - (mean - 0.3 * s).max()
    assert opt.acquisition_at() == pytest.approx(np.where(margin > 0, sigma**2, margin), abs=1e-8)


# The initial design.


@pytest.mark.parametrize("arrive", [False, True])
def test_uncertainty_sampling_takes_the_largest_variance_given_earlier_points(arrive):
    for seed in range(6):
        rows = unit_square(seed)
        opt = optimizer(rows, seed, initial=bl.Initial(8, how="uncertainty"))
        before = []
        for _ in range(8):
            trial = opt.suggest()
            if before:
                tried = DensePosterior(rows[before], np.zeros(len(before)), LENGTHSCALE, VARIANCE, NOISE)
                variance = tried.variances(rows)
                free = np.setdiff1d(np.arange(len(rows)), before)
                assert variance[trial.index] >= variance[free].max() - 1e-9
            before.append(trial.index)
            if arrive:
                trial.observe(float(len(before)) ** 2)
        # The ninth point is chosen by the model if values have been observed.
        assert opt.suggest().number == 8


def test_uncertainty_sampling_fills_a_box_and_counts_contexts():
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 21)] * 2), axis=-1).reshape(-1, 2)
    opt = bl.BayesOpt(SQUARE, surrogate=GIVEN, initial=bl.Initial(6, how="uncertainty"), seed=3)
    x = np.array([list(trial.params.values()) for trial in opt.suggest(n=6)])
    for i in range(1, 6):
        dense = DensePosterior(x[:i], np.zeros(i), LENGTHSCALE, VARIANCE, NOISE)
        assert dense.variances(x[i : i + 1])[0] >= dense.variances(grid).max() - 1e-6
    space, context, initial = {"x": (0.0, 1.0)}, {"z": (0.0, 1.0)}, bl.Initial(2, how="uncertainty")
    opt = bl.BayesOpt(space, context=context, surrogate=GIVEN, initial=initial, seed=0)
    near, other = (opt.suggest(context={"z": z}).params["x"] for z in (0.0, 0.05))
    assert abs(near - other) > 0.3
    opt.enqueue({"x": 0.5})
    assert opt.suggest(context={"z": 1.0}).params == {"x": 0.5}


def test_uncertainty_sampling_continues_without_values_and_satisfies_constraints():
    def below(params):
        return params["x"] + params["y"] <= 1

    how = bl.Initial(3, how="uncertainty")
    opt = bl.BayesOpt(SQUARE, initial=how, constraints=[below], surrogate=GIVEN, seed=0)
    points = [trial.params for trial in opt.suggest(n=9)]
    assert all(below(params) for params in points)
    distances = [math.dist(a.values(), b.values()) for i, a in enumerate(points) for b in points[:i]]
    assert min(distances) > 0.15
    for space in (SQUARE, {"n": (1, 3), "c": ["a", "b"]}):
        assert len(bl.BayesOpt(space, initial=how, seed=0).suggest(n=6)) == 6


# DIRECT.


def test_direct_is_deterministic_and_finds_the_maximum():
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 21)] * 2), axis=-1).reshape(-1, 2)
    rng = np.random.default_rng(2)
    x, y = rng.random((12, 2)), rng.normal(size=12)
    found = []
    for seed in range(3):
        opt = in_the_box(x, y, acquisition=bl.UCB(1.0), search=bl.Search(direct=3000), pending="ignore", seed=seed)
        found.append(list(opt.suggest().params.values()))
    assert found[0] == found[1] == found[2]
    mean, s, _ = posterior(np.vstack([x, found[:1], grid]), np.arange(12), y)
    bound = mean + s
    assert bound[12] >= bound[13:].max() - 1e-3


def test_direct_searches_every_kind_of_space():
    space = {
        "kernel": ["rbf", "poly"],
        "degree": bl.Integer(2, 5, when={"kernel": "poly"}),
        "C": bl.Real(1e-3, 1e3, log=True),
        "n": bl.Ordinal([16, 32, 64]),
    }
    for acquisition in ("log_ei", "thompson", "max_variance"):
        opt = bl.BayesOpt(space, acquisition=acquisition, search=bl.Search(direct=200), initial=4, seed=0)
        for k in range(9):
            trial = opt.suggest()
            assert ("degree" in trial.params) == (trial.params["kernel"] == "poly")
            trial.observe(-abs(math.log10(trial.params["C"])) - k % 2)


def test_direct_is_refused_where_it_cannot_search():
    with pytest.raises(bl.errors.InvalidSetting, match="search.direct=10 is not usable: it is for boxes"):
        bl.BayesOpt(candidates=np.eye(3), search=bl.Search(direct=10))
    with pytest.raises(bl.errors.InvalidSetting, match="search.direct=10 is not usable: one search is enough"):
        bl.BayesOpt(SQUARE, search=bl.Search(direct=10, multistart=(10, 1)))


# Names of algorithms.


def test_algorithms_have_the_model_of_their_paper():
    for name in ("seqTS", "synTS", "asyTS", "asyHTS", "asyUCB", "asyHUCB", "asyEI", "synBUCB", "synUCBPE"):
        opt = bl.algorithm(name, SQUARE)
        gp = opt.surrogate
        assert (gp.kernel, gp.mean, gp.ard, gp.refit_every) == ("squared_exponential", "median", True, 25)
        assert opt.initial.how == "uniform" and getattr(opt.acquisition, "beta", None) in (None, 1.0, "kandasamy")
    assert bl.algorithm("synBUCB", SQUARE).acquisition.per_batch
    assert bl.algorithm("asyEI", SQUARE).acquisition == bl.LogEI(incumbent="best_value")
    assert bl.algorithm("asyUCB", SQUARE, acquisition__beta="kandasamy_code").acquisition.beta == "kandasamy_code"
