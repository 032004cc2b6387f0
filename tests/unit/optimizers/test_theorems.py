"""The bounds of theorems agree with direct evaluations of the quantities that they bound."""

import itertools
import math
from fractions import Fraction

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


# H of Table 3 of Wang et al. 2022, max{H : Σ_{h ≤ H} min(cost(h), λ(1)) ≤ Λ}. The table replaces the minimum by the
# mean of its arguments. While the cap λ(1) is inactive, the sums have closed forms, in which 2Λ − λ(1) becomes Λ.

BUDGETS = [0.0, 0.05, 0.3, 1.0, 7.0, 123.4, 5000.0]


def by_fractions(budget, cost, full):
    """Add the costs one by one, without rounding."""
    total, h = Fraction(0), 0
    while (total := total + min(Fraction(cost(h + 1)), Fraction(full))) <= Fraction(budget):
        h += 1
    return h


@pytest.mark.parametrize("budget", BUDGETS[:-1])
@pytest.mark.parametrize(
    "cost", [lambda h: h / 8, lambda h: 0.25 + 0 * h, lambda h: 1 / h**0.5, lambda h: 2.0**h / 64], ids=range(4)
)
@pytest.mark.parametrize("full", [0.5, 1.0, 64.0])
def test_levels_within_a_budget_are_counted(budget, cost, full):
    assert bl.papers.levels_within(budget, cost, full_cost=full) == by_fractions(budget, cost, full)


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("beta", [0.02, 0.3, 0.9])
def test_levels_equal_the_closed_forms_where_the_cap_is_inactive(budget, beta):
    levels = lambda cost: bl.papers.levels_within(budget, cost, full_cost=1e300)  # noqa: E731
    # β H(H + 1)/2 ≤ Λ, and β H ≤ Λ
    assert levels(lambda h: beta * h) == math.floor((math.sqrt(1 + 8 * budget / beta) - 1) / 2 + 1e-9)
    assert levels(lambda h: beta + 0 * h) == math.floor(budget / beta + 1e-9)
    # Σ β^−h = (β^−H − 1)/(1 − β)
    assert levels(lambda h: beta**-h) == math.floor(math.log(1 + (1 - beta) * budget) / math.log(1 / beta) + 1e-9)
    # The integral of h^−β bounds the sum from both sides: ((H + 1)^(1−β) − 1)/(1 − β) ≤ Σ ≤ (H^(1−β) − β)/(1 − β)
    if beta < 0.5:
        at_least = (beta + (1 - beta) * budget) ** (1 / (1 - beta)) if budget >= 1 else 0
        at_most = (1 + (1 - beta) * budget) ** (1 / (1 - beta))
        assert math.floor(at_least + 1e-9) <= levels(lambda h: h**-beta) <= at_most


def test_the_cap_costs_as_much_as_full_evaluations():
    """Levels 1 to 20 cost 0.05 h, and all deeper levels cost 1."""
    for extra in (0, 1, 300):
        assert bl.papers.levels_within(10.5 + extra, lambda h: 0.05 * h) == 20 + extra


def test_levels_of_a_search_are_those_of_its_fidelities():
    """The function accepts the cost of a fidelity at z_h = 1 - nu rho^h/C."""
    cost = bl.PowerCost(0.05, 3)
    levels = bl.papers.levels_within(10.0, lambda h: [cost.at(z) for z in 1 - 0.5 * 0.9**h])
    sums = itertools.accumulate(cost.at(1 - 0.5 * 0.9**h) for h in itertools.count(1))
    assert levels == sum(1 for _ in itertools.takewhile(lambda total: total <= 10.0, sums))


def test_budgets_and_costs_out_of_range_are_refused():
    for wrong, arguments in (
        ("budget", (-1.0, lambda h: h)),
        ("cost", (1.0, lambda h: -h)),
        ("cost", (1.0, lambda h: h * math.nan)),
    ):
        with pytest.raises(bl.errors.InvalidSetting, match=wrong):
            bl.papers.levels_within(*arguments)
    with pytest.raises(bl.errors.InvalidSetting, match="full_cost"):
        bl.papers.levels_within(1.0, lambda h: h, full_cost=0.0)
    # The sum of h^-2 is below 2.
    with pytest.raises(bl.errors.InvalidSetting, match="10,000,000 levels fit into it"):
        bl.papers.levels_within(2.0, lambda h: h**-2.0)
