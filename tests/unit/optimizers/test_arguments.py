"""Arguments of optimizers can be read and set as in scikit-learn. If an argument is invalid, the error names the
argument."""

import math

import numpy as np
import pytest
from sklearn.base import clone

import belated as bl
from tests.ids import without_address
from tests.unit.optimizers.problem import BOX, ROWS, both, run


def test_arguments_are_readable_and_settable_as_in_sklearn():
    space = {"x": (0.0, 1.0)}
    opt = bl.BayesOpt(space, window=20, seed=0)
    assert opt.space is space and opt.window == 20 and opt.get_params()["window"] == 20
    assert opt.set_params(window=30, pending="censor") is opt
    assert opt.window == 30 and opt.pending == [] and opt.get_params()["pending"] == "censor" and opt.seed == 0
    assert clone(opt).get_params() == opt.get_params()
    with pytest.raises(bl.errors.InvalidSetting, match="windw=3 .*did you mean window"):
        opt.set_params(windw=3)
    with pytest.raises(bl.errors.InvalidSetting, match="pending"):
        opt.set_params(window=40, pending="nonsense")
    assert opt.window == 30
    with pytest.raises(bl.errors.InvalidSetting, match="set_params"):
        opt.window = 50
    opt.suggest()
    with pytest.raises(bl.errors.InvalidSetting, match="too late"):
        opt.set_params(window=40)
    assert opt.window == 30


def test_set_params_does_not_drop_enqueued_points():
    opt = bl.RandomSearch(BOX)
    opt.enqueue({"x": 0.0, "n": 1})
    with pytest.raises(bl.errors.InvalidSetting, match="too late"):
        opt.set_params(seed=3)


@both
@pytest.mark.parametrize(
    "arguments",
    [{}, {"space": BOX, "candidates": ROWS}, {"space": {}}, {"candidates": []}, {"space": ROWS}]
    + [{"space": BOX, "context": context} for context in ({}, {"x": (0.0, 1.0)}, 3)],
    ids=str,
)
def test_spaces_that_cannot_be_searched_are_refused(kind, arguments):
    with pytest.raises(bl.errors.InvalidSpace):
        kind(**arguments)


@both
@pytest.mark.parametrize(
    "argument",
    [{"seed": value} for value in (-1, 1.5, "0", True, 2**64, np.random.default_rng(0))]
    + [{"clock": "minutes"}, {"clock": None}, {"direction": "up"}, {"direction": ["maximize"]}]
    + [{"time": 3, "clock": "seconds"}, {"time": "now"}],
    ids=without_address,
)
def test_invalid_settings_of_every_optimizer_are_refused(kind, argument):
    with pytest.raises(bl.errors.InvalidSetting, match=next(iter(argument))):
        kind(BOX, **argument)


def refused(*fields, values):
    return [(field, value) for field in fields for value in values]


REFUSED = refused("acquisition", "pending", "surrogate", values=("nonsense", 3, bl.Initial()))
REFUSED += refused("initial", values=("nonsense", -1, 2.5, True, bl.GP()))
REFUSED += refused("window", values=(-1, 0, math.nan, math.inf, "20", True, [20]))
REFUSED += refused("Censor.late", "GP.kernel", "GP.refit_clock", "GP.fit_rows", values=("nonsense", 3, None))
REFUSED += refused("LogEI.incumbent", values=("nonsense", 3, None))
REFUSED += refused("Initial.how", "GP.targets", "ThompsonSampling.draws", values=("nonsense", 3))
REFUSED += refused("GP.mean", "UCB.beta", "ThompsonSampling.beta", "Liar.value", values=("nonsense", [1], None, True))
REFUSED += refused("Censor.floor", values=(math.nan, -math.inf, "0", 1j))
REFUSED += refused("GP.signal_std", "GP.noise_std", values=(-1.0, math.nan, "0.1"))
REFUSED += refused("GP.lengthscale", values=(0.0, -1.0, [1.0] * 3, [1.0, -1.0], [1.0, "a"], math.nan, "1", []))
REFUSED += refused("GP.refit_every", "Initial.n", "ThompsonSampling.n_features", values=(-1, 2.5, "3", True))
REFUSED += refused("Integrate.n", "Nearest.k", "GP.n_restarts", values=(-1, 2.5, "3", True))
REFUSED += refused("GP.ard", "GP.priors", "UCB.predictive_std", "ThompsonSampling.widen", values=(1, "yes", []))
REFUSED += refused("GP.initial_theta", values=(1.0, (1.0, 1.0), ("a", 1.0, 1.0), (0.0, 1.0, 1.0)))
REFUSED += refused("Search.multistart", values=(1, (1,), (1.5, 2), "default"))
REFUSED += refused("Search.direct", values=(-1, 0, 2.5, (10,), "default", True))
REFUSED += refused("Search.effort", values=(0, -1, 1e9, math.nan, "1", None))
REFUSED += refused("search", values=("nonsense", 3, bl.Initial()))
REFUSED += refused("UCB.theory", "UCBPE.theory", "ThompsonSampling.theory", values=("1", None, bl.Search()))
REFUSED += [
    (f"{kind}.theory", bl.papers.Theory(**wrong))
    for kind in ("UCB", "UCBPE")
    for wrong in ({"rkhs_bound": -1}, {"noise_bound": -1}, {"delta": 0}, {"value_bound": 0}, {"regularization": 1})
]
REFUSED += refused("UCB.per_batch", values=(1, "yes", None)) + refused("UCBPE.beta", values=(-1, "nonsense", None))
REFUSED += [("Censor.late", "discard")]
ARGUMENT_OF = {bl.GP: "surrogate", bl.Initial: "initial", bl.Search: "search"}
ARGUMENT_OF |= dict.fromkeys(
    (bl.LogEI, bl.UCB, bl.ThompsonSampling, bl.papers.MaxVariance, bl.papers.UCBPE), "acquisition"
)
ARGUMENT_OF |= dict.fromkeys(
    (bl.Integrate, bl.Hallucinate, bl.Ignore, bl.Censor, bl.Liar, bl.papers.Nearest), "pending"
)


@pytest.mark.parametrize("name, value", REFUSED, ids=str)
def test_invalid_settings_of_bayes_opt_are_refused(name, value):
    kind, _, field = name.rpartition(".")
    with pytest.raises(bl.errors.InvalidSetting, match=field):
        if kind:
            kind = getattr(bl.papers if kind in bl.papers.__all__ else bl, kind)
            bl.BayesOpt(BOX, **{ARGUMENT_OF[kind]: kind(**{field: value})})
        else:
            bl.BayesOpt(BOX, **{field: value})


def test_valid_settings_of_bayes_opt_are_accepted():
    opt = bl.BayesOpt(
        BOX,
        window=np.int64(20),
        acquisition=bl.UCB("kandasamy"),
        pending=bl.Censor(np.float32(-3)),
        surrogate=bl.GP(lengthscale=(0.5, 0.5), mean="median"),
        initial=4,
    )
    run(opt, 12)
    assert opt.window == 20


def test_the_base_class_cannot_be_instantiated():
    with pytest.raises(bl.errors.InvalidSetting, match="use BayesOpt"):
        bl.Optimizer(BOX)
