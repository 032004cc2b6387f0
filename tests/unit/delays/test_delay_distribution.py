"""The delay distribution agrees with lifelines, and its forecasts are accurate on simulated trials."""

import math

import numpy as np
import pytest

import belated as bl
from belated._core import DelayDistribution

CENSORED, ARRIVED, FAILED = 0, 1, 2

# Weekly numbers of arrests among 432 released prisoners, who were followed for 52 weeks (Rossi et al. 1980).
ROSSI = [1, 1, 1, 1, 1, 1, 1, 5, 2, 1, 2, 2, 1, 3, 2, 2, 3, 3, 2, 5, 2, 1, 1, 4, 3, 3]
ROSSI += [2, 2, 0, 2, 1, 2, 2, 2, 4, 3, 4, 1, 2, 4, 0, 2, 4, 2, 2, 4, 1, 2, 5, 3, 0, 4]

# The fits of lifelines 0.30.3 as (log-likelihood, location, spread).
ROSSI_FITS = {
    "exponential": (-701.977025993, math.log(173.76318376751396), 1.0),
    "weibull": (-696.624396948, math.log(123.67708708943374), 1 / 1.3651415090782515),
    "log-normal": (-697.910424838, 4.825071016729924, 1.3590986659238067),
    "log-logistic": (-696.674468693, math.log(104.98401908105672), 1 / 1.4653150280018008),
}


def rossi():
    weeks = np.repeat(np.arange(1.0, 53.0), ROSSI)
    ages = np.concatenate([weeks, np.full(432 - len(weeks), 52.0)])
    return ages, np.repeat([ARRIVED, CENSORED], [len(weeks), 432 - len(weeks)])


def check_fit(fit, log_likelihood, location, spread):
    _, _, value, fitted_location, fitted_spread, _ = fit
    assert value >= log_likelihood - 1e-9 * abs(log_likelihood)
    assert fitted_location == pytest.approx(location, abs=1e-4)
    assert fitted_spread == pytest.approx(spread, abs=1e-4)


def test_fits_agree_with_stored_fits():
    ages, outcomes = rossi()
    fits = DelayDistribution(ages, outcomes, priors=False, cure=False).fits
    assert [fit[0] for fit in fits] == list(ROSSI_FITS)
    for fit in fits:
        check_fit(fit, *ROSSI_FITS[fit[0]])
        assert fit[5] == [1.0, 0.0, 0.0]


def test_survival_agrees_with_proportions():
    ages, outcomes = rossi()
    # Without censoring before week 52, the estimate is a proportion with the variance p (1 − p)/n.
    times, survival, variance, arrived, arrived_variance = DelayDistribution(ages, outcomes).incidence()
    shares = np.array([np.mean((ages > time) | (outcomes == CENSORED)) for time in times])
    assert np.allclose(survival, shares, rtol=0, atol=1e-12)
    assert np.allclose(arrived, 1 - shares, rtol=0, atol=1e-12)
    assert np.allclose(variance, shares * (1 - shares) / 432, rtol=0, atol=1e-12)
    assert np.allclose(arrived_variance, variance, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "name, age, event",
    [
        ("lymph_node", "rectime", "censrec"),
        ("kidney_transplant", "time", "death"),
        ("gbsg2", "time", "cens"),
        ("rossi", "week", "arrest"),
        ("dd", "duration", "observed"),
    ],
)
def test_fits_agree_with_lifelines(name, age, event):
    lifelines = pytest.importorskip("lifelines")
    table = getattr(pytest.importorskip("lifelines.datasets"), f"load_{name}")()
    ages, outcomes = table[age].to_numpy(float), table[event].to_numpy(np.int64)
    distribution = DelayDistribution(ages, outcomes, priors=False, cure=False)
    fitters = {
        "exponential": (lifelines.ExponentialFitter, lambda f: (math.log(f.lambda_), 1.0)),
        "weibull": (lifelines.WeibullFitter, lambda f: (math.log(f.lambda_), 1 / f.rho_)),
        "log-normal": (lifelines.LogNormalFitter, lambda f: (f.mu_, f.sigma_)),
        "log-logistic": (lifelines.LogLogisticFitter, lambda f: (math.log(f.alpha_), 1 / f.beta_)),
    }
    cured = DelayDistribution(ages, outcomes, priors=False).fits
    for fit, mixture in zip(distribution.fits, cured, strict=True):
        fitter, parameters = fitters[fit[0]]
        other = fitter().fit(ages, outcomes)
        check_fit(fit, other.log_likelihood_, *parameters(other))
        # lifelines does not converge for all mixtures.
        unit = np.median(ages)
        try:
            other = lifelines.MixtureCureFitter(base_fitter=fitter()).fit(ages / unit, outcomes)
        except lifelines.exceptions.ConvergenceError:
            continue
        expected = other.log_likelihood_ - outcomes.sum() * math.log(unit)
        assert mixture[2] >= expected - 1e-9 * abs(expected)
        assert mixture[5][2] == pytest.approx(other.cured_fraction_, abs=1e-4)
    reference = lifelines.KaplanMeierFitter().fit(ages, outcomes)
    times, survival, variance, *_ = distribution.incidence()
    expected = reference.survival_function_.iloc[:, 0].loc[times].to_numpy()
    greenwood = reference._cumulative_sq_.loc[times].to_numpy().ravel()
    assert np.allclose(survival, expected, rtol=0, atol=1e-12)
    assert np.allclose(variance, expected**2 * greenwood, rtol=0, atol=1e-12)


def test_incidence_agrees_with_lifelines():
    lifelines = pytest.importorskip("lifelines")
    rng = np.random.default_rng(0)
    kind = rng.choice(3, 300, p=[0.2, 0.5, 0.3])
    delays = np.where(kind == ARRIVED, rng.lognormal(3, 0.7, 300), rng.exponential(15, 300))
    limits = rng.uniform(0, 80, 300)
    ages = np.where(kind == CENSORED, limits, np.minimum(delays, limits))
    outcomes = np.where(delays <= limits, kind, CENSORED)
    times, _, _, arrived, variance = DelayDistribution(ages, outcomes).incidence()
    reference = lifelines.AalenJohansenFitter(calculate_variance=True).fit(ages, outcomes, event_of_interest=ARRIVED)
    expected = reference.cumulative_density_.iloc[:, 0].loc[times].to_numpy()
    assert np.allclose(arrived, expected, rtol=0, atol=1e-12)
    assert np.allclose(variance, reference.variance_.loc[times].to_numpy().ravel(), rtol=0, atol=1e-12)


def test_estimates_have_small_bias():
    rng, errors = np.random.default_rng(0), []
    for _ in range(60):
        # 30 % of the trials never end, and 10 % fail.
        kind = rng.choice(3, 100, p=[0.3, 0.6, 0.1])
        delays = np.where(kind == ARRIVED, np.exp(3 + 0.7 * rng.standard_normal(100)), np.inf)
        delays = np.where(kind == FAILED, rng.exponential(10, 100), delays)
        outcomes = np.where(delays > 100, CENSORED, kind)
        fit = DelayDistribution(np.minimum(delays, 100), outcomes)
        errors.append(
            [
                fit.arrives_ever()[0] - 0.6,
                math.log(fit.quantile(0.5)[0]) - 3,
                math.log(fit.quantile(0.8)[0]) - (3 + 0.7 * 0.8416),
            ]
        )
    bound = np.array([0.03, 0.1, 0.1]) + 3 * np.std(errors, 0) / math.sqrt(60)
    assert np.all(np.abs(np.mean(errors, 0)) <= bound)


def test_counts_of_arrivals_are_calibrated():
    rng, transforms = np.random.default_rng(1), []
    for _ in range(150):
        delays = np.where(rng.random(60) < 0.8, 20 * rng.weibull(1.5, 60), np.inf)
        ages = rng.uniform(0, 60, 60)
        outcomes = np.where(delays <= ages, ARRIVED, CENSORED)
        flying = outcomes == CENSORED
        fit = DelayDistribution(np.minimum(delays, ages), outcomes)
        count = np.sum(delays[flying] <= ages[flying] + 10)
        probabilities = fit.count_distribution(ages[flying], 10.0)
        assert probabilities.sum() == pytest.approx(1)
        value, low, high, _ = fit.count(ages[flying], 10.0)
        assert value == pytest.approx(probabilities @ np.arange(len(probabilities)))
        assert low <= high
        transforms.append(probabilities[:count].sum() + rng.random() * probabilities[count])
    # The 1 % critical value of the Kolmogorov–Smirnov distance.
    ranks, ordered = np.arange(151) / 150, np.sort(transforms)
    distance = max(np.max(ranks[1:] - ordered), np.max(ordered - ranks[:-1]))
    assert distance < 1.63 / math.sqrt(150)


@pytest.mark.parametrize("clock", ["seconds", "iterations"])
def test_early_in_a_study_silence_is_not_read_as_loss(clock):
    # All trials arrive, 20 trials start per mean delay, and forecasts are made one mean delay after the start.
    rng, never, inside = np.random.default_rng(3), [], []
    while len(never) < 80:
        delays, ages = rng.exponential(20, 20), np.arange(20.0, 0, -1)
        delays = delays if clock == "seconds" else np.floor(delays) + 1
        done = delays <= ages if clock == "seconds" else delays < ages
        if not 3 <= done.sum() < 20:
            continue
        fit = DelayDistribution(np.where(done, delays, ages), np.where(done, ARRIVED, CENSORED), clock=clock)
        flying = ages[~done]
        never.append(np.mean([1 - fit.arrives_ever(age)[0] for age in flying]))
        low, high = fit.count(flying, 20.0)[1:3]
        later = delays[~done] <= flying + 20 if clock == "seconds" else delays[~done] < flying + 20
        inside.append(low <= later.sum() <= high)
    assert np.mean(never) < 0.3
    assert np.mean(inside) > 0.73


def test_after_six_mean_delays_lost_trials_are_recognised():
    rng, lost = np.random.default_rng(4), []
    for _ in range(40):
        ages = rng.uniform(0, 120, 120)
        delays = np.where(rng.random(120) < 0.5, rng.exponential(20, 120), np.inf)
        done = delays <= ages
        fit = DelayDistribution(np.where(done, delays, ages), np.where(done, ARRIVED, CENSORED))
        lost += [fit.arrives_ever(age)[0] < 0.2 for age in ages[np.isinf(delays) & (ages > 80)]]
    assert np.mean(lost) > 0.9


def test_new_suggestions_do_not_change_the_probability_of_older_trials_much():
    ages, outcomes = np.array([1.0, 2, 3, 4, 5, 30, 30, 30]), np.array([ARRIVED] * 5 + [CENSORED] * 3)
    new = DelayDistribution(np.append(ages, np.zeros(100)), np.append(outcomes, np.zeros(100, int)))
    assert new.arrives_ever(2.0)[0] == pytest.approx(DelayDistribution(ages, outcomes).arrives_ever(2.0)[0], abs=1e-9)


def test_forecasts_are_unknown_without_arrivals():
    distribution = DelayDistribution(np.array([3.0, 4.0]), np.array([CENSORED, FAILED]))
    assert distribution.unknown == "no trial has arrived"
    assert distribution.fits == []
    assert distribution.quantile(0.5) is None
    assert distribution.arrival_probability(1.0, 2.0) is None
    assert distribution.count(np.array([1.0]), 2.0) is None
    assert DelayDistribution(np.array([]), np.array([], int)).unknown == "there are no trials"
    assert DelayDistribution(np.array([3.0]), np.array([ARRIVED])).unknown is None


@pytest.mark.parametrize(
    "name, ages, outcomes, settings",
    [
        ("ages", [-1.0, 2.0], [1, 1], {}),
        ("ages", [1.5], [1], {"clock": "iterations"}),
        ("outcomes", [1.0], [3], {}),
        ("clock", [1.0], [1], {"clock": "days"}),
        ("resolution", [1.0], [1], {"resolution": -1.0}),
        ("resolution", [1.0], [1], {"resolution": 1.0, "clock": "iterations"}),
        ("families", [1.0], [1], {"families": ["gamma"]}),
    ],
)
def test_errors_name_the_argument(name, ages, outcomes, settings):
    with pytest.raises(bl.errors.InvalidSetting, match=f"^{name}="):
        DelayDistribution(np.array(ages), np.array(outcomes), **settings)


def test_iterations_round_delays_up():
    # All trials arrive in the third iteration.
    distribution = DelayDistribution(np.full(200, 3.0), np.full(200, ARRIVED), clock="iterations")
    assert distribution.quantile(0.5)[0] == 3
    assert distribution.mean()[0] == pytest.approx(3, abs=0.1)
    assert distribution.arrival_probability(1.0, 1.0)[0] < 0.1
    assert distribution.arrival_probability(1.0, 3.0)[0] > 0.9
