"""The bounds of theorems agree with direct evaluations of the quantities that they bound."""

import math

import numpy as np
import pytest

import belated as bl
from tests.unit.optimizers.test_theory import GRID, SIGNAL, kernel, posterior

THEORY = bl.papers.Theory(rkhs_bound=2.0, noise_bound=0.1, value_bound=1.5, delta=0.2)


def test_the_regret_bound_is_the_formula_of_the_paper():
    """At lambda = 1 and signal_std = 1, the divisors are 1 and C1² = 2/log 2."""
    t, gamma, m, rho = 50, 6.0, 7, 0.8
    c1 = math.sqrt(2 / math.log(2))
    beta = 2.0 + 1.6 * math.sqrt(2 * (gamma + math.log(2 / 0.2)))
    printed = 2 / rho * (c1 * beta * math.sqrt(t * gamma) + m * 1.5 * c1**2 * gamma)
    assert bl.papers.regret_bound(t, gamma, theory=THEORY, noise_std=1.0, window=m, arrival=rho) == pytest.approx(
        printed, rel=1e-12
    )


@pytest.mark.parametrize("scale", [0.01, 0.3, 20.0])
def test_the_regret_bound_is_in_units_of_f(scale):
    """If f and its noise are multiplied by a number, its norm for the kernel of the model does not change."""
    settings = {"window": 4, "arrival": 0.7, "signal_std": 1.3, "noise_std": 0.2}
    bound = bl.papers.regret_bound(60, 9.0, theory=THEORY, **settings)
    scaled = bl.papers.Theory(rkhs_bound=2.0, noise_bound=0.1 * scale, value_bound=1.5 * scale, delta=0.2)
    settings |= {name: scale * settings[name] for name in ("signal_std", "noise_std")}
    assert bl.papers.regret_bound(60, 9.0, theory=scaled, **settings) == pytest.approx(scale * bound, rel=1e-12)


@pytest.mark.parametrize("lambda_", [1.02, 0.01, 1e-4])
@pytest.mark.parametrize("m", [1, 6])
def test_the_regret_bound_exceeds_the_sum_that_it_bounds(lambda_, m):
    """The regret is at most 2/rho Σ nu_t sigma_{t-1}(x_t), where nu_t sums over the m last trials."""
    points = np.random.default_rng(m).integers(0, len(GRID), 40)
    total = 0.0
    for t in range(40):
        _, std, information = posterior(points[:t], np.zeros(t), lambda_)
        nu = 2.0 + 1.6 * math.sqrt(2 * (information + math.log(2 / 0.2)) / lambda_)
        nu += 1.5 / lambda_ * std[points[max(t - m, 0) : t]].sum()
        total += 2 / 0.8 * nu * std[points[t]]
    information = 0.5 * np.linalg.slogdet(np.eye(40) + kernel(GRID[points], GRID[points]) / lambda_)[1]
    settings = {"noise_std": math.sqrt(lambda_), "window": m, "arrival": 0.8, "signal_std": SIGNAL}
    bound = bl.papers.regret_bound(40, information, theory=THEORY, **settings)
    assert total <= bound


@pytest.mark.parametrize(
    "wrong", [{"n_trials": 0}, {"information": -1.0}, {"noise_std": 0.0}, {"window": math.inf}, {"arrival": 1.5}]
)
def test_numbers_out_of_range_are_refused(wrong):
    settings = {"n_trials": 9, "information": 2.0, "theory": THEORY, "noise_std": 0.1, "window": 3}
    with pytest.raises(bl.errors.InvalidSetting, match=next(iter(wrong))):
        bl.papers.regret_bound(**settings | wrong)
    with pytest.raises(bl.errors.InvalidSetting, match="theory.value_bound=None is not usable: pass a finite number"):
        bl.papers.regret_bound(**settings | {"theory": bl.papers.Theory(rkhs_bound=1.0, noise_bound=0.1)})
