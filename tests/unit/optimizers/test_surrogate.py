"""`surrogate_`: the fitted model, in the units of the parameters and of f."""

import math
import pickle

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import belated as bl
from tests.unit.optimizers.dense_posterior import DensePosterior
from tests.unit.optimizers.problem import ROWS

SPACE = {
    "x": bl.Real(-5.0, 5.0),
    "c": bl.Real(1e-2, 1e2, log=True),
    "n": bl.Integer(1, 11),
    "k": bl.Categorical(["a", None]),
}
GIVEN = {"kernel": "matern52", "lengthscale": 0.3, "signal_std": 2.0, "noise_std": 0.5, "mean": 1.0, "targets": "raw"}


def filled(n=12, scale=1.0, **settings):
    opt = bl.BayesOpt(SPACE, seed=0, **settings)
    for i, trial in enumerate(opt.suggest(n)):
        trial.observe(scale * np.sin(trial.params["x"] + i % 3))
    return opt


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_given_hyperparameters_are_returned_in_the_units_of_the_parameters(direction):
    opt = filled(surrogate=bl.GP(**GIVEN), direction=direction)
    found = opt.surrogate_
    assert found.lengthscales == pytest.approx({"x": 3.0, "c": 1.2, "n": 3.0, "k": 0.3})
    assert (found.kernel, found.n_observed) == ("matern52", 12)
    assert (found.signal_std, found.noise_std, found.mean) == pytest.approx((2.0, 0.5, 1.0))
    encoded = np.array([opt.domain.encode(trial.params) for trial in opt.trials])
    values = np.array([trial.value for trial in opt.trials])
    dense = DensePosterior(encoded, values - 1.0, 0.3, 4.0, 0.25)
    assert found.log_evidence == pytest.approx(multivariate_normal(np.ones(12), dense.a).logpdf(values))


def test_a_context_has_lengthscales_by_name_too():
    opt = bl.BayesOpt({"x": (0.0, 1.0)}, context={"age": (0, 90)}, surrogate=bl.GP(**GIVEN), seed=0)
    opt.add({"x": 0.5}, 1.0, context={"age": 30})
    assert opt.surrogate_.lengthscales == pytest.approx({"x": 0.3, "age": 27.0})


def test_candidates_have_lengthscales_by_column():
    opt = bl.BayesOpt(candidates=np.hstack([ROWS, np.ones((12, 1))]), surrogate=bl.GP(**GIVEN), seed=0)
    opt.add(3, 1.0)
    assert opt.surrogate_.lengthscales == pytest.approx({"x0": 3.3, "x1": 0.6, "x2": 0.3})


def test_choices_with_separate_lengthscales_have_them_by_name():
    given = GIVEN | {"lengthscale": [0.3, 0.7]}
    opt = bl.BayesOpt({"k": ["a", None]}, surrogate=bl.GP(**given), seed=0)
    opt.add({"k": "a"}, 1.0)
    assert opt.surrogate_.lengthscales == {"k": {"a": 0.3, None: 0.7}}


@pytest.mark.parametrize("choices", [[[1], [2]], [1, True]])
def test_choices_that_cannot_be_keys_have_lengthscales_in_their_order(choices):
    given = GIVEN | {"lengthscale": [0.3, 0.7]}
    opt = bl.BayesOpt({"k": bl.Categorical(choices)}, surrogate=bl.GP(**given), seed=0)
    opt.add({"k": choices[0]}, 1.0)
    assert opt.surrogate_.lengthscales == {"k": (0.3, 0.7)}


def test_a_fitted_category_has_one_lengthscale_for_all_its_choices():
    assert isinstance(filled().surrogate_.lengthscales["k"], float)


def test_fitted_hyperparameters_follow_the_unit_of_f():
    """If all values are multiplied by four, only the unit of the model changes, and the density of each value is
    divided by four."""
    one, four = filled().surrogate_, filled(scale=4.0).surrogate_
    assert four.lengthscales == one.lengthscales
    for name in ("signal_std", "noise_std", "mean"):
        assert getattr(four, name) == pytest.approx(4 * getattr(one, name))
    assert four.log_evidence == pytest.approx(one.log_evidence - 12 * np.log(4))


def test_reading_the_surrogate_has_no_side_effects(tmp_path):
    opt = filled()
    study = bl.Study("s", f"sqlite:///{tmp_path}/s.db", filled())
    before = pickle.dumps(opt)
    assert study.surrogate_ == opt.surrogate_
    assert pickle.dumps(opt) == before
    with pytest.raises(AttributeError):
        opt.surrogate_.mean = 0.0


def test_repr_of_the_surrogate():
    found = filled(surrogate=bl.GP(**GIVEN)).surrogate_
    assert repr(found).startswith("Surrogate(kernel='matern52', lengthscales={'x': 3, 'c': 1.2, 'n': 3, 'k': 0.3}, ")
    page = found._repr_html_()
    assert "<td>lengthscale of c</td><td>1.2</td>" in page and "<td>n_observed</td><td>12</td>" in page


def test_the_surrogate_needs_values_and_a_model():
    opt = bl.BayesOpt(SPACE, seed=0)
    opt.suggest(3)
    with pytest.raises(bl.errors.NotFitted):
        _ = opt.surrogate_
    with pytest.raises(bl.errors.InvalidSetting):
        _ = bl.RandomSearch(SPACE).surrogate_


def test_lengthscales_of_ordinals_are_in_steps_and_constants_have_none():
    space = {"w": bl.Ordinal([16, 32, 64]), "d": bl.Integer(1, 5, when={"w": 64}), "s": bl.Real(0, 2, step=0.5), "c": 7}
    opt = bl.BayesOpt(space, surrogate=bl.GP(**GIVEN), seed=0)
    opt.add({"w": 32, "s": 0.5, "c": 7}, 1.0)
    assert opt.surrogate_.lengthscales == pytest.approx({"w": 0.6, "d": 1.2, "s": 0.6})


@pytest.mark.parametrize("seed", [16, 25, 32])
def test_a_fit_does_not_use_rounding_errors_as_noise(seed):
    # A linear function with such small noise cannot explain the values, but with a large signal variance the rounding
    # errors of the covariance matrix exceed the noise and could explain them.
    rng = np.random.default_rng(seed)
    space = {"x": (0.0, 1.0), "y": (0.0, 1.0), "n": (0, 3)}
    surrogate = bl.GP(kernel="linear", noise_std=math.sqrt(1e-3), targets="raw")
    opt = bl.BayesOpt(space, surrogate=surrogate, acquisition="ucb", initial=0, seed=0)
    x, y, n = rng.random(12), rng.random(12).round(), rng.integers(0, 4, 12)
    opt.add([{"x": a, "y": b, "n": c} for a, b, c in zip(x, y, n, strict=True)], list(3 * rng.normal(size=12)))
    opt.suggest()
    model = opt._log.surrogate(opt._problem.wall_time(), False)[0]
    assert model.variance < 1e3
