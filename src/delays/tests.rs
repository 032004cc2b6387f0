//! Tests of the delay distribution: likelihoods, families, fits and the Aalen–Johansen estimate.

mod forecasts;

use std::ops::ControlFlow;

use rand::{RngExt, SeedableRng};

use super::family::Family;
use super::fit::{Options, fit_families};
use super::incidence::Incidence;
use super::likelihood::{FAILS, NEVER, P, negative_log};
use super::records::{Records, Resolution};
use super::{DelayDistribution, Ending};
use crate::random::Rng;
use Ending::{Arrived, Censored, Failed};

fn fit_with(
    ages: &[f64],
    outcomes: &[Ending],
    resolution: Resolution,
    options: &Options,
) -> DelayDistribution {
    let stop = &mut || ControlFlow::Continue(());
    DelayDistribution::fit(ages, outcomes, resolution, options, stop)
        .unwrap()
        .unwrap_or_else(|unknown| panic!("{unknown:?}"))
}

fn fit(ages: &[f64], outcomes: &[Ending]) -> DelayDistribution {
    fit_with(ages, outcomes, Resolution::Exact, &Options::default())
}

/// Log-normal delays, exponential failures, and trials that never end, observed up to random ages.
fn simulate(n: usize, seed: u64) -> (Vec<f64>, Vec<Ending>) {
    let mut rng = Rng::seed_from_u64(seed);
    let mut uniform = || rng.random_range(1e-9..1.0);
    let mut trial = || {
        let (kind, u, age) = (uniform(), uniform(), 300.0 * uniform());
        let (end, outcome) = match kind {
            k if k < 0.6 => ((3.0 + 0.8 * Family::LogNormal.quantile(u)).exp(), Arrived),
            k if k < 0.75 => (-15.0 * f64::ln(u), Failed),
            _ => (f64::INFINITY, Censored),
        };
        if end <= age {
            (end, outcome)
        } else {
            (age, Censored)
        }
    };
    (0..n).map(|_| trial()).unzip()
}

fn records(n: usize, resolution: Resolution) -> Records {
    let (ages, outcomes) = simulate(n, 7);
    let ages: Vec<f64> = match resolution {
        Resolution::Exact => ages,
        Resolution::Rounded(step) => ages.iter().map(|a| (a / step).round() * step).collect(),
        Resolution::Iterations => ages.iter().map(|a| a.floor() + 1.0).collect(),
    };
    Records::new(&ages, &outcomes, resolution)
        .unwrap()
        .unwrap_or_else(|unknown| panic!("{unknown:?}"))
}

const RESOLUTIONS: [Resolution; 3] = [
    Resolution::Exact,
    Resolution::Rounded(5.0),
    Resolution::Iterations,
];

#[test]
fn gradients_and_hessians_are_finite_differences() {
    let free: Vec<usize> = (0..P).collect();
    for resolution in RESOLUTIONS {
        let mut records = records(60, resolution);
        records.early = 0.3;
        for family in Family::ALL {
            for theta in [
                [0.1, -0.3, -0.5, -1.0, -0.4, 0.2],
                [1.2, 0.6, -3.0, 0.3, 0.5, -0.7],
            ] {
                let at = negative_log(&records, family, &theta, &free, true);
                for i in 0..P {
                    let step = 1e-5;
                    let moved = |by: f64| {
                        let mut theta = theta;
                        theta[i] += by;
                        negative_log(&records, family, &theta, &free, true)
                    };
                    let (up, down) = (moved(step), moved(-step));
                    let slope = (up.value - down.value) / (2.0 * step);
                    let close = |a: f64, b: f64| (a - b).abs() < 1e-6 * (1.0 + b.abs()) * 60.0;
                    assert!(
                        close(at.gradient[i], slope),
                        "{family:?} {resolution:?} {i}"
                    );
                    for j in 0..P {
                        let curvature = (up.gradient[j] - down.gradient[j]) / (2.0 * step);
                        assert!(
                            close(at.hessian[i][j], curvature),
                            "{family:?} {resolution:?} {i} {j}: {} {curvature}",
                            at.hessian[i][j]
                        );
                    }
                }
            }
        }
    }
}

/// The definition, as sums of the logarithms of probabilities.
#[test]
fn likelihood_equals_its_definition() {
    let (ages, outcomes) = simulate(40, 3);
    let Ok(records) = Records::new(&ages, &outcomes, Resolution::Exact).unwrap() else {
        panic!("there are arrivals");
    };
    let (mu, sigma, rate_location, rate_spread) = (0.3, 0.7, -0.2, 1.1);
    let (never, fails) = (0.25, 0.2);
    let arrives: f64 = 1.0 - never - fails;
    let theta = [
        mu,
        f64::ln(sigma),
        f64::ln(never / arrives),
        f64::ln(fails / arrives),
        rate_location,
        f64::ln(rate_spread),
    ];
    let expected: f64 = ages
        .iter()
        .zip(&outcomes)
        .map(|(age, outcome)| {
            let t = age / records.scale;
            let (alpha, beta) = (f64::exp(mu), 1.0 / sigma);
            let logistic = (t / alpha).powf(beta);
            let (shape, scale) = (1.0 / rate_spread, f64::exp(rate_location));
            let weibull = (t / scale).powf(shape);
            match outcome {
                Arrived => {
                    (arrives * beta / t * logistic / (1.0 + logistic).powi(2) / records.scale).ln()
                }
                Failed => (fails * shape / t * weibull * (-weibull).exp() / records.scale).ln(),
                Censored => (never + arrives / (1.0 + logistic) + fails * (-weibull).exp()).ln(),
            }
        })
        .sum();
    let value = negative_log(&records, Family::LogLogistic, &theta, &[], false).value;
    assert!(
        (-value - records.log_jacobian - expected).abs() < 1e-9,
        "{value} {expected}"
    );
}

#[test]
fn families_are_consistent() {
    for family in Family::ALL {
        for z in [-30.0, -4.0, -0.7, 0.0, 0.4, 3.0] {
            let at = family.distribution(z);
            let (log_density, first, _) = family.log_density(z);
            assert!((at.below + at.above - 1.0).abs() < 1e-15);
            assert!((at.density - log_density.exp()).abs() <= 1e-13 * at.density);
            assert!((at.slope - first * at.density).abs() <= 1e-12 * at.density);
            if at.below > 1e-200 && at.above > 1e-9 {
                assert!(
                    (family.quantile(at.below) - z).abs() < 1e-6,
                    "{family:?} {z}"
                );
            }
            let median = family.distribution(family.median_beyond(z)).above;
            assert!(
                (median / (0.5 * at.above) - 1.0).abs() < 1e-9,
                "{family:?} {z}"
            );
        }
        // The mean and the variance of Z, and the mean of e^(σ Z), by integration over quantiles.
        let n = 400_000;
        let z = |i: usize| family.quantile((i as f64 + 0.5) / n as f64);
        let average = |f: &dyn Fn(f64) -> f64| (0..n).map(|i| f(z(i))).sum::<f64>() / n as f64;
        let mean = average(&|z| z);
        let variance = average(&|z| (z - mean).powi(2));
        assert!((variance.sqrt() / family.std() - 1.0).abs() < 1e-3);
        assert!((average(&|z| (0.4 * z).exp()) / family.mean(0.4) - 1.0).abs() < 1e-3);
    }
    assert_eq!(Family::LogLogistic.mean(1.0), f64::INFINITY);
    // 1 − F underflows beyond z = 38.
    let far = Family::LogNormal.median_beyond(50.0);
    assert!(far > 50.0 && far < 50.02);
}

/// The variance as a double sum, and the survival as a product over all trials at risk.
#[test]
fn incidence_equals_its_definition() {
    let (ages, outcomes) = simulate(200, 11);
    let ages: Vec<f64> = ages.iter().map(|a| (a / 4.0).ceil()).collect();
    let estimate = fit(&ages, &outcomes);
    let estimate = estimate.incidence();
    let count = |t: f64, outcome: Ending| {
        let here = ages
            .iter()
            .zip(&outcomes)
            .filter(|(a, o)| **a == t && **o == outcome);
        here.count() as f64
    };
    let at_risk = |t: f64| ages.iter().filter(|a| **a >= t).count() as f64;
    let times = &estimate.times;
    let last = ages.iter().zip(&outcomes).filter(|(_, o)| **o == Arrived);
    assert_eq!(
        times.last(),
        last.map(|(a, _)| a).max_by(|a, b| a.total_cmp(b))
    );
    let (mut survival, mut arrived, mut before) = (1.0, Vec::new(), Vec::new());
    let mut total = 0.0;
    for (j, &t) in times.iter().enumerate() {
        before.push(survival);
        let (a, n) = (count(t, Arrived), at_risk(t));
        let d = a + count(t, Failed);
        total += survival * a / n;
        survival *= 1.0 - d / n;
        arrived.push(total);
        assert!((estimate.survival[j] - survival).abs() < 1e-13);
        assert!((estimate.arrived[j] - total).abs() < 1e-13);
        let (mut greenwood, mut variance) = (0.0, 0.0);
        for (i, &s) in times[..=j].iter().enumerate() {
            let (a, n) = (count(s, Arrived), at_risk(s));
            let d = a + count(s, Failed);
            let rest = total - arrived[i];
            greenwood += d / (n * (n - d));
            variance += rest * rest * d / (n * (n - d))
                + before[i] * before[i] * a * (n - a) / (n * n * n)
                - 2.0 * rest * before[i] * a / (n * n);
        }
        let expected = survival * survival * greenwood;
        assert!((estimate.survival_variance[j] - expected).abs() < 1e-13);
        assert!((estimate.arrived_variance[j] - variance).abs() < 1e-13);
    }
}

/// Four trials arrive at 1, 2, 3 and 4.
#[test]
fn records_are_early_if_censored_trials_are_younger_than_delays() {
    let early = |silent: &[f64], resolution: Resolution| {
        let mut ages = vec![1.0, 2.0, 3.0, 4.0];
        let mut outcomes = vec![Arrived; 4];
        ages.extend(silent);
        outcomes.resize(ages.len(), Censored);
        let Ok(records) = Records::new(&ages, &outcomes, resolution).unwrap() else {
            panic!("there are arrivals");
        };
        Incidence::of(&records).early(&records)
    };
    for resolution in [Resolution::Exact, Resolution::Iterations] {
        assert_eq!(early(&[], resolution), 0.0);
        assert_eq!(early(&[9.0, 9.0], resolution), 0.0);
        assert_eq!(early(&[9.0, 0.0, 0.0], resolution), 0.0);
    }
    // On the clock of iterations, the trial of age 4 may arrive with delay 4: 5, 4, 3 and 1 trials are exposed, and the
    // arrivals have the shares 1/5, 1/5, 1/5 and 2/5.
    assert!(early(&[4.0], Resolution::Exact).abs() < 1e-12);
    assert!((early(&[4.0], Resolution::Iterations) - 0.4).abs() < 1e-12);
}

#[test]
fn exponential_delays_on_the_clock_of_iterations_are_geometric() {
    // The delays 1, 1, 2, 3 and a trial of age 4 in flight: 4 arrivals in 1 + 1 + 2 + 3 + 3 attempts.
    let ages = [3.0, 1.0, 4.0, 1.0, 2.0];
    let outcomes = [Arrived, Arrived, Censored, Arrived, Arrived];
    let options = Options {
        families: vec![Family::Exponential],
        priors: false,
        cure: false,
    };
    let fitted = fit_with(&ages, &outcomes, Resolution::Iterations, &options);
    let (location, _) = fitted.location_and_spread(&fitted.fits()[0]);
    let p = -(-(-location).exp()).exp_m1();
    assert!((p - 0.4).abs() < 1e-6, "{p}");
    let expected = 4.0 * f64::ln(0.4) + 6.0 * f64::ln(0.6);
    assert!((fitted.fits()[0].log_likelihood - expected).abs() < 1e-9);
}

#[test]
fn likelihoods_at_a_fine_resolution_approach_densities() {
    let (ages, outcomes) = simulate(80, 5);
    let options = Options {
        priors: false,
        ..Options::default()
    };
    let exact = fit_with(&ages, &outcomes, Resolution::Exact, &options);
    let step = 1e-4;
    let fine = fit_with(&ages, &outcomes, Resolution::Rounded(step), &options);
    let ended = outcomes.iter().filter(|o| **o != Censored).count() as f64;
    for (a, b) in exact.fits().iter().zip(fine.fits()) {
        let difference = b.log_likelihood - ended * f64::ln(step) - a.log_likelihood;
        assert!(difference.abs() < 1e-5, "{:?} {difference}", a.family);
    }
}

#[test]
fn a_large_fit_is_a_maximum() {
    let records = records(20_000, Resolution::Exact);
    let stop = &mut || ControlFlow::Continue(());
    for fit in fit_families(&records, &Options::default(), stop).unwrap() {
        for &i in &fit.free {
            let step = (fit.minimum.gradient[i] / fit.minimum.hessian[i][i]).abs();
            assert!(step < 1e-6, "{:?} {i} {step}", fit.family);
        }
        if fit.family == Family::LogNormal {
            assert!(fit.weight > 0.99);
            let sum = 1.0 + fit.theta[NEVER].exp() + fit.theta[FAILS].exp();
            assert!((1.0 / sum - 0.6).abs() < 0.02);
        }
    }
}
