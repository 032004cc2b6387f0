"""The bounds of theorems agree with direct evaluations of the quantities that they bound."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import belated as bl
from belated._core import GaussianProcess
from tests.ids import without_address
from tests.unit.optimizers.test_theory import GRID, SIGNAL, kernel, posterior

THEORY = bl.papers.Theory(rkhs_bound=2.0, noise_bound=0.1, value_bound=1.5, delta=0.2)


def test_the_regret_bound_is_the_formula_of_the_paper():
    """At lambda = 1 and signal_std = 1, the divisors are 1 and C1² = 2/log 2."""
    t, gamma, m, rho = 50_000, 6.0, 7, 0.8
    c1 = math.sqrt(2 / math.log(2))
    beta = 2.0 + 1.6 * math.sqrt(2 * (gamma + math.log(2 / 0.2)))
    printed = 2 / rho * (c1 * beta * math.sqrt(t * gamma) + m * 1.5 * c1**2 * gamma)
    assert bl.papers.regret_bound(t, gamma, theory=THEORY, noise_std=1.0, window=m, arrival=rho) == pytest.approx(
        printed, rel=1e-12
    )


def printed_for_draws(t, gamma, m, rho, n_points):
    """Return the last line of Eq. 23, which follows from theorem 3 and is printed for lambda > 1."""
    b_f, r, b_y, delta, p = 2.0, 0.1, 1.5, 0.2, 1 / (4 * math.e * math.sqrt(math.pi))
    c1 = math.sqrt(2 / math.log(2))
    beta = b_f + (r + b_y) * math.sqrt(2 * (gamma + math.log(4 / delta)))
    nu = b_y * m + beta  # sigma <= 1
    c = nu * (1 + math.sqrt(2 * math.log(n_points * t**2)))
    first = 11 / (rho * p) * (1 + math.sqrt(2 * math.log(n_points * t**2)))
    first *= c1 * beta * math.sqrt(t * gamma) + m * b_y * c1**2 * gamma
    return first + (4 * b_f + 11 * c) / (rho * p) * math.sqrt(2 * t * math.log(2 / delta)) + b_f * math.pi**2 / 3


def test_the_bound_for_draws_is_the_formula_of_the_paper():
    t, gamma, m, rho, n_points = 10**12, 6.0, 7, 0.8, 300
    bound = bl.papers.regret_bound(
        t, gamma, theory=THEORY, noise_std=1.0, window=m, arrival=rho, algorithm="GP-TS-SDF", n_points=n_points
    )
    # The trivial bound of the first four trials is 2 min(B_f, B_y) = 3 for each.
    assert bound == pytest.approx(printed_for_draws(t, gamma, m, rho, n_points) + 12, rel=1e-12)


def test_the_proof_for_draws_needs_five_trials():
    """Lemma 5 uses 2/(p - 1/t²) <= 10/p."""
    p = 1 / (4 * math.e * math.sqrt(math.pi))
    assert [0 < 2 / (p - 1 / t**2) <= 10 / p for t in (4, 5, 6, 100)] == [False, True, True, True]


@pytest.mark.parametrize("algorithm", ["GP-UCB-SDF", "GP-TS-SDF"])
@pytest.mark.parametrize("t", [1, 30, 10**12])
def test_the_regret_bound_is_at_most_the_trivial_bound(algorithm, t):
    settings = {"noise_std": 0.5, "window": 3, "signal_std": 0.6, "algorithm": algorithm, "n_points": 10}
    bound = bl.papers.regret_bound(t, 5.0, theory=THEORY, **settings)
    trivial = 2 * min(2.0 * 0.6, 1.5) * t
    assert (bound == pytest.approx(trivial, rel=1e-12)) == (t < 10**12) and bound <= trivial


@pytest.mark.parametrize("algorithm", ["GP-UCB-SDF", "GP-TS-SDF"])
@pytest.mark.parametrize("scale", [0.01, 0.3, 20.0])
def test_the_regret_bound_is_in_units_of_f(scale, algorithm):
    """If f and its noise are multiplied by a number, its norm for the kernel of the model does not change."""
    settings = {"window": 4, "arrival": 0.7, "signal_std": 1.3, "noise_std": 0.2, "algorithm": algorithm, "n_points": 9}
    bound = bl.papers.regret_bound(10**12, 9.0, theory=THEORY, **settings)
    scaled = bl.papers.Theory(rkhs_bound=2.0, noise_bound=0.1 * scale, value_bound=1.5 * scale, delta=0.2)
    settings |= {name: scale * settings[name] for name in ("signal_std", "noise_std")}
    assert bl.papers.regret_bound(10**12, 9.0, theory=scaled, **settings) == pytest.approx(scale * bound, rel=1e-12)


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
    assert bound == 40 * 2 * min(2.0 * SIGNAL, 1.5) or total <= bound


@pytest.mark.parametrize(
    "wrong", [{"n_trials": 0}, {"information": -1.0}, {"noise_std": 0.0}, {"window": math.inf}, {"arrival": 1.5}]
)
def test_numbers_out_of_range_are_refused(wrong):
    settings = {"n_trials": 9, "information": 2.0, "theory": THEORY, "noise_std": 0.1, "window": 3}
    with pytest.raises(bl.errors.InvalidSetting, match=next(iter(wrong))):
        bl.papers.regret_bound(**settings | wrong)
    with pytest.raises(bl.errors.InvalidSetting, match="theory.value_bound=None is not usable: pass a finite number"):
        bl.papers.regret_bound(**settings | {"theory": bl.papers.Theory(rkhs_bound=1.0, noise_bound=0.1)})


# Information. `numpy` computes 1/2 log det, and small sets are enumerated.

SE = bl.GP(kernel="squared_exponential", lengthscale=0.3, signal_std=1.4, noise_std=0.5)
X = np.random.default_rng(0).random((7, 2))


def se(a, b):
    return 1.4**2 * np.exp(-0.5 * ((a[:, None] - b[None]) ** 2).sum(2) / 0.3**2)


def dense_information(x):
    return 0.5 * np.log(np.linalg.eigvalsh(se(x, x)) / 0.25 + 1).sum()


@pytest.mark.parametrize("kernel", [(SE,), (se, 0.5)], ids=["GP", "function"])
def test_the_information_is_that_of_the_eigenvalues(kernel):
    assert bl.papers.information_gain(X, *kernel) == pytest.approx(dense_information(X), rel=1e-10)
    # The chain rule: I(A, B) = I(A) + I(B | A).
    further = bl.papers.information_gain(X[3:], *kernel, given=X[:3])
    assert bl.papers.information_gain(X[:3], *kernel) + further == pytest.approx(dense_information(X), rel=1e-10)
    eigenvalues = np.linalg.eigvalsh(se(X, X)) / 0.25
    dimension = bl.papers.effective_dimension(X, *kernel)
    assert dimension == pytest.approx((eigenvalues / (1 + eigenvalues)).sum(), rel=1e-10)
    assert dimension <= 2 * dense_information(X)


def test_limits_of_the_information():
    """n far points have n/2 log(1 + k/lambda), n equal points 1/2 log(1 + n k/lambda)."""
    far, equal = np.arange(5.0) * 100, np.zeros(5)
    ratio = 1.4**2 / 0.25
    assert bl.papers.information_gain(far, SE) == pytest.approx(2.5 * math.log(1 + ratio), rel=1e-12)
    assert bl.papers.information_gain(equal, SE) == pytest.approx(0.5 * math.log(1 + 5 * ratio), rel=1e-12)
    assert bl.papers.effective_dimension(far, SE) == pytest.approx(5 * ratio / (1 + ratio), rel=1e-12)
    # With much noise, d is k/lambda and I is half of it, so d <= I does not hold.
    noisy = bl.papers.effective_dimension([0.0], SE, 1e3), bl.papers.information_gain([0.0], SE, 1e3)
    assert noisy[0] == pytest.approx(2 * noisy[1], rel=1e-5)


@pytest.mark.parametrize("name", ["matern52", "matern32", "matern12", "squared_exponential", "linear"])
def test_each_kernel_of_the_model_has_its_information(name):
    """The model's standard deviations give the same information, by the chain rule."""
    total = 0.0
    for j, x in enumerate(X):
        gp = GaussianProcess(name, [0.3, 0.6], 1.3**2, 0.2**2)
        if j:
            gp.fit(X[:j], np.zeros(j))
            std = gp.predict(x[None])[1][0]
        else:
            std = 1.3 * (math.hypot(1.0, *(x / [0.3, 0.6])) if name == "linear" else 1.0)
        total += 0.5 * math.log1p((std / 0.2) ** 2)
    model = bl.GP(kernel=name, lengthscale=[0.3, 0.6], signal_std=1.3, noise_std=0.2)
    assert bl.papers.information_gain(X, model) == pytest.approx(total, rel=1e-6)


@pytest.mark.parametrize("given", [None, X[:2]])
@pytest.mark.parametrize("t", [1, 2, 4, 6])
def test_the_largest_information_is_bounded(t, given):
    """The maximum over all multisets of t of five points is at most the bound, which is at most its limit."""
    points = X[2:]
    known = 0.0 if given is None else dense_information(given)

    def information(rows):
        rows = points[list(rows)]
        return dense_information(rows if given is None else np.concatenate([given, rows])) - known

    exact = max(map(information, itertools.combinations_with_replacement(range(len(points)), t)))
    bound = bl.papers.largest_information_gain(points, t, SE, given=given)
    assert exact <= bound * (1 + 1e-12) and bound <= exact / (1 - math.exp(-1)) * (1 + 1e-12)
    if t == 1:
        assert bound == pytest.approx(exact, rel=1e-10)


def test_the_information_of_far_points_is_exact_while_they_suffice():
    far = np.arange(6.0) * 100
    assert bl.papers.largest_information_gain(far, 6, SE) == pytest.approx(dense_far(6), rel=1e-12)
    assert bl.papers.largest_information_gain(far, 0, SE) == 0.0


def dense_far(n):
    return n / 2 * math.log(1 + 1.4**2 / 0.25)


def test_the_bound_on_the_bayes_regret_is_the_formula_of_the_paper():
    """Theorem 9 and Eq. 4-5 of Kandasamy et al. 2017; one worker is corollary 12."""
    n, d, a, b, eta, psi, pending = 200, 3, 1.5, 4.0, 0.3, 30.0, 0.7
    beta = 4 * (d + 1) * math.log(n) + 2 * d * math.log(d * a * b * math.sqrt(math.pi))
    c1, c2 = math.pi**2 / 6 + math.sqrt(2 * math.pi) / 12, 2 / math.log(1 + eta**-2)
    xi = math.exp(2 * pending)  # I <= log(xi)/2
    settings = {"noise_std": eta, "n_dimensions": d, "slopes": (a, b)}
    for information, factor in ((0.0, 1.0), (pending, xi)):
        bound = bl.papers.simple_regret_bound(n, psi, pending_information=information, **settings)
        assert bound == pytest.approx(c1 / n + math.sqrt(c2 * factor * beta * psi / n), rel=1e-12)
    # On a grid, beta_n = 2 log(n² |nu_n|) has the number of its points, (n² d a b sqrt(pi))^d.
    points = (n**2 * d * a * b * math.sqrt(math.pi)) ** d
    finite = bl.papers.simple_regret_bound(n, psi, noise_std=eta, n_points=points)
    whole = bl.papers.simple_regret_bound(n, psi, **settings)
    assert whole - finite == pytest.approx(math.pi**2 / 6 / n, rel=1e-9)
    # The unit of f.
    scaled = settings | {"noise_std": 10 * eta, "slopes": (a, 10 * b), "signal_std": 10.0}
    assert bl.papers.simple_regret_bound(n, psi, **scaled) == pytest.approx(10 * whole, rel=1e-12)


def test_the_bayes_regret_of_thompson_sampling_is_below_its_bound():
    """asyTS on a finite domain with the prior of its model: two workers, results one suggestion late."""
    x = np.linspace(0, 1, 12)[:, None]
    model = bl.GP(kernel="squared_exponential", lengthscale=0.2, signal_std=1.0, noise_std=0.3, mean=0.0, targets="raw")
    root = np.linalg.cholesky(np.exp(-0.5 * ((x - x.T) / 0.2) ** 2) + 1e-9 * np.eye(12))
    n, regrets = 40, []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        f = root @ rng.standard_normal(12)
        optimizer = bl.algorithm("asyTS", candidates=x, surrogate=model, initial=0, seed=seed)
        trials = [optimizer.suggest()]
        for _ in range(n):
            trials.append(optimizer.suggest())
            trial = trials[-2]
            trial.observe(f[trial.index] + 0.3 * rng.standard_normal())
        regrets.append(f.max() - max(f[trial.index] for trial in trials[:n]))
    information = bl.papers.largest_information_gain(x, n, model)
    pending = bl.papers.largest_information_gain(x, 1, model)
    settings = {"noise_std": 0.3, "n_points": 12, "pending_information": pending}
    assert np.mean(regrets) <= bl.papers.simple_regret_bound(n, information, **settings)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1.0, math.nan]], SE), "points"),
        (("text", SE), "points"),
        (([], SE), "points"),
        (([1.0], bl.GP()), "give it lengthscale, signal_std, another kernel"),
        (([1.0], bl.GP(kernel="linear", lengthscale=1.0, signal_std=1.0)), "noise_std=None"),
        (([1.0], se), "noise_std=None"),
        (([1.0], "matern52", 0.1), "pass a function or bl.GP"),
        (([1.0, 2.0], lambda a, b: np.ones(3), 0.1), r"shape \(3,\)"),
        (([1.0, 2.0], lambda a, b: np.full((2, 2), np.nan), 0.1), "not finite"),
    ],
    ids=without_address,
)
def test_points_and_kernels_that_are_not_usable_are_refused(arguments, message):
    for function in (bl.papers.information_gain, bl.papers.effective_dimension):
        with pytest.raises(bl.errors.InvalidSetting, match=message):
            function(*arguments)
    points, *rest = arguments
    with pytest.raises(bl.errors.InvalidSetting, match="points|kernel|noise_std"):
        bl.papers.largest_information_gain(points, 3, *rest)


def test_domains_of_bounds_are_required():
    with pytest.raises(bl.errors.InvalidSetting, match="n_points=None"):
        bl.papers.simple_regret_bound(10, 2.0, noise_std=0.1)
    settings = {"theory": THEORY, "noise_std": 0.1, "window": 3}
    for wrong in ({"algorithm": "GP-TS-SDF"}, {"algorithm": "GP-UCB"}):
        with pytest.raises(bl.errors.InvalidSetting, match="n_points=None|algorithm='GP-UCB'"):
            bl.papers.regret_bound(10, 2.0, **settings, **wrong)


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
