"""`acquisition_at` agrees with the formulas, has its maximum at the next suggestion, and does not have side effects."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import belated as bl
from tests.unit.optimizers.problem import BOX, ROWS, run

GRID = [{"k": k} for k in range(31)]
DATA = {30: 0.3, 6: -0.6, 20: 1.0, 23: -0.3, 8: -0.3, 13: -0.8, 11: 0.5, 2: -0.1}


def with_data(**settings):
    opt = bl.BayesOpt({"k": bl.Integer(0, 30)}, initial=0, seed=0, pending="hallucinate", **settings)
    opt.add([{"k": k} for k in DATA], [10 * value + 3 for value in DATA.values()])
    # The first suggestion fits. Until the next fit, all suggestions use the same hyperparameters.
    opt.suggest(2)
    return opt


@pytest.mark.parametrize("sign", [1, -1])
def test_values_are_the_formulas_in_units_of_f(sign):
    direction = "maximize" if sign > 0 else "minimize"
    for acquisition in (bl.LogEI(), bl.UCB(1.5), bl.papers.MaxVariance()):
        opt = with_data(acquisition=acquisition, direction=direction)
        mean, std = opt.predict(GRID, pending=True)
        mean = sign * mean
        best = max(mean[k] for k in DATA)
        u = (mean - best) / std
        # Below this value, the two terms of the expected improvement cancel almost completely.
        clear = u > -4 if isinstance(acquisition, bl.LogEI) else np.full(31, True)
        improvement = std * (u * norm.cdf(u) + norm.pdf(u))
        expected = {
            bl.LogEI: np.log(improvement[clear]),
            bl.UCB: mean + 1.5 * std,
            bl.papers.MaxVariance: std**2,
        }[type(acquisition)]
        assert clear.sum() > 5
        assert opt.acquisition_at(GRID)[clear] == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("settings", [{}, {"acquisition": "ucb"}, {"acquisition": "log_ei", "pending": "liar"}])
def test_the_next_suggestion_maximises_acquisition_at(settings):
    """The test checks optimizers with late results, before and between fits, and ignores candidates in flight."""
    x = np.random.default_rng(1).random((40, 2))
    opt = bl.BayesOpt(candidates=x, initial=3, seed=0, **settings)
    for trial in opt.suggest(4):
        trial.observe(float(-((trial.x - 0.4) ** 2).sum()))
    for _ in range(12):
        values = opt.acquisition_at()
        values[[trial.index for trial in opt.pending]] = -np.inf
        trial = opt.suggest()
        assert trial.index == values.argmax()
        if trial.number > 6:
            opt.observe(trial.number - 2, float(-((opt.trial(trial.number - 2).x - 0.4) ** 2).sum()))


CONSTANTS = bl.papers.Theory(rkhs_bound=1.0, noise_bound=0.1)
KNOWN = bl.GP(kernel="matern52", lengthscale=0.5, signal_std=3.0, noise_std=0.1, targets="raw")
POLICIES = [
    {},
    {"acquisition": "ucb", "pending": bl.Censor(floor=-3.0, late="discard"), "window": 3.0},
    {"acquisition": "max_variance", "surrogate": bl.GP(refit_every=1)},
    {"context": {"z": (0.0, 1.0)}, "acquisition": bl.UCB("theory", theory=CONSTANTS), "surrogate": KNOWN}
    | {"pending": "ignore"},
]


@pytest.mark.usefixtures("fixed_time")
@pytest.mark.parametrize("settings", POLICIES)
def test_acquisition_at_does_not_change_suggestions(settings):
    context = {"z": 0.5} if "context" in settings else None
    plain, watched = (bl.BayesOpt(BOX, seed=3, **settings) for _ in range(2))
    for i in range(14):
        if watched.best_value_ is not None:
            first = watched.acquisition_at({"x": 0.5, "n": 2}, context)
            assert np.array_equal(first, watched.acquisition_at({"x": 0.5, "n": 2}, context))
        one, other = plain.suggest(context=context), watched.suggest(context=context)
        assert one.params == other.params
        for opt in (plain, watched):
            if i % 4 == 3:
                opt.fail(i)
            elif i >= 5:
                opt.observe(i - 5, float(i % 7), amend=True) if opt.trial(i - 5).state == "pending" else None
    assert plain._log.to_bytes() == watched._log.to_bytes()


def test_one_point_or_several_in_any_form():
    opt = bl.BayesOpt(BOX, seed=0)
    run(opt, 12)
    # The points are far from incumbents, because near an incumbent the variance has few correct digits.
    points = [{"x": -0.25, "n": 3}, {"x": -0.5, "n": 8}]
    forms = [pd.DataFrame(points), pd.DataFrame(points)[["n", "x"]], np.array([[-0.25, 3], [-0.5, 8]])]
    expected = opt.acquisition_at(points), *opt.predict(points)
    for form in [*forms, tuple(points)]:
        assert np.array_equal([opt.acquisition_at(form), *opt.predict(form)], expected)
    forms[2] = forms[2][:1]
    for form in (points[0], pd.Series(points[0]), forms[2]):
        found = [opt.acquisition_at(form), *opt.predict(form)]
        assert [np.shape(each) for each in found] == [(1,) if form is forms[2] else ()] * 3
        assert all(type(each) is float for each in found) == (form is not forms[2])
        assert np.ravel(found) == pytest.approx([each[0] for each in expected], rel=1e-9)
    for nothing in ([], np.zeros((0, 2))):
        assert [len(each) for each in (opt.acquisition_at(nothing), *opt.predict(nothing))] == [0, 0, 0]


def test_one_candidate_has_one_prediction():
    rows = np.arange(8.0).reshape(4, 2)
    opt = bl.BayesOpt(candidates=rows, seed=0)
    opt.add([0, 1, 3], [0.0, 1.0, 3.0])
    whole = opt.predict()
    for single in (2, np.int64(2)):
        assert [float(each) for each in opt.predict(single)] == pytest.approx([each[2] for each in whole], rel=1e-9)
        assert all(isinstance(each, float) for each in opt.predict(single))
    assert [each.shape for each in (*opt.predict([2]), opt.acquisition_at([2]))] == [(1,)] * 3


def test_arrays_that_do_not_fit_are_refused():
    opt = bl.BayesOpt(BOX, seed=0)
    run(opt, 5)
    for array, hint in (
        (np.zeros(2), r"shape \(2,\): pass \(n, 2\) values, one column for each of \['x', 'n'\] \(x.reshape"),
        (np.zeros((3, 3)), r"shape \(3, 3\): pass \(n, 2\)"),
        (np.array([[0.0, 1.5]]), r"params\['n'\]=1.5 is not usable"),
        (np.array([[np.nan, 1.0]]), r"params\['x'\]=nan is not usable"),
    ):
        for read in (opt.predict, opt.acquisition_at):
            with pytest.raises(bl.errors.InvalidPoint, match=hint):
                read(array)
    opt = bl.BayesOpt({"x": (0.0, 1.0), "k": ["a", "b"]}, seed=0)
    opt.add({"x": 0.5, "k": "a"}, 1.0)
    with pytest.raises(bl.errors.InvalidPoint, match=r"an array, and \['k'\] have choices: pass a list of dicts"):
        opt.predict(np.zeros((1, 2)))


def test_nan_in_an_array_is_a_parameter_that_is_not_active():
    space = {"w": bl.Ordinal([1, 2, 4]), "d": bl.Integer(1, 5, when={"w": 4}), "x": (0.0, 1.0)}
    opt = bl.BayesOpt(space, seed=0)
    for trial in opt.suggest(8):
        trial.observe(trial.params["x"])
    points = [{"w": 2, "x": 0.5}, {"w": 4, "d": 3, "x": 0.5}]
    array = np.array([[2, np.nan, 0.5], [4, 3, 0.5]])
    assert np.array_equal(opt.predict(array), opt.predict(points))
    assert np.array_equal(opt.predict(pd.DataFrame(points)), opt.predict(points))
    assert np.array_equal(opt.acquisition_at(array), opt.acquisition_at(points))
    with pytest.raises(bl.errors.InvalidPoint, match=r"params\['d'\]=nan is not usable"):
        opt.predict(np.array([[4, np.nan, 0.5]]))


def test_acquisition_at_of_a_study_equals_its_optimizers(tmp_path):
    opts = [bl.BayesOpt(BOX, seed=0), bl.Study("s", f"sqlite:///{tmp_path}/s.db", bl.BayesOpt(BOX, seed=0))]
    for opt in opts:
        run(opt, 9)
    points = [{"x": x, "n": 4} for x in np.linspace(-1, 1, 9)]
    assert np.array_equal(*(opt.acquisition_at(points) for opt in opts))


def test_invalid_arguments_are_refused():
    opt = bl.BayesOpt(candidates=ROWS, seed=0)
    opt.suggest()
    with pytest.raises(bl.errors.NotFitted):
        opt.acquisition_at()
    with pytest.raises(bl.errors.InvalidSetting):
        bl.RandomSearch(BOX).acquisition_at({"x": 0.0, "n": 1})
    thompson = bl.BayesOpt(candidates=ROWS, acquisition="thompson", seed=0)
    thompson.add(1, 1.0)
    before = thompson._log.to_bytes()
    with pytest.raises(
        bl.errors.InvalidSetting, match="ThompsonSampling is not usable: it maximises a new draw at each"
    ):
        thompson.acquisition_at()
    assert thompson._log.to_bytes() == before
    opt = bl.BayesOpt(BOX, context={"z": (0.0, 1.0)}, seed=0)
    opt.add({"x": 0.0, "n": 1}, 1.0, context={"z": 0.5})
    with pytest.raises(bl.errors.InvalidContext, match="context is missing"):
        opt.acquisition_at({"x": 0.0, "n": 1})
    with pytest.raises(bl.errors.InvalidPoint, match="misses"):
        opt.acquisition_at({"x": 0.0}, {"z": 0.5})


@pytest.mark.parametrize("settings", [{}, {"pending": "hallucinate"}, {"acquisition": "ucb", "pending": "hallucinate"}])
def test_under_constraints_improvement_is_measured_from_feasible_points(settings):
    """The best value was observed at an infeasible point. The next suggestion is the best feasible point."""
    opt = bl.BayesOpt({"k": bl.Integer(0, 30)}, initial=0, seed=0, constraints=[lambda p: p["k"] <= 18], **settings)
    opt.add([{"k": k} for k in DATA], list(DATA.values()))
    opt.add({"k": 27}, 6.0)
    opt.suggest(2)
    free = [k for k in range(19) if k not in {trial.params["k"] for trial in opt.pending}]
    values = opt.acquisition_at(GRID)
    assert len(values) == len(GRID)
    assert opt.suggest().params["k"] == max(free, key=lambda k: values[k])
    if settings == {"pending": "hallucinate"}:
        mean, std = opt.predict(GRID, pending=True)
        best = max(mean[k] for k in DATA if k <= 18)
        u = (mean - best) / std
        expected = np.log(std * (u * norm.cdf(u) + norm.pdf(u)))
        assert opt.acquisition_at(GRID)[u > -4] == pytest.approx(expected[u > -4], rel=1e-6)
