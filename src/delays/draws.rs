//! Draws from the posterior: for each family a normal distribution at the maximum (Laplace's approximation), with
//! importance weights.

use ndarray::Array2;

use super::family::Family;
use super::fit::{Fit, LOWER, Options, UPPER, factor, probabilities};
use super::likelihood::{FAIL_LOCATION, FAILURES, LOCATION, negative_log};
use super::records::Records;
use crate::error::{Result, Stop, check};
use crate::numerics::cholesky::LowerFactor;

/// The number of draws per family.
const N_DRAWS: usize = 64;

/// Families with a smaller weight do not take part in forecasts.
const SMALLEST_WEIGHT: f64 = 1e-3;

/// The largest number of groups of records for which importance weights are computed. With more records, the posterior
/// is close to normal.
const MAX_WEIGHTED: usize = 4096;

/// The factor by which draws with importance weights are wider than the normal approximation, because the posterior has
/// longer tails than the approximation.
const PROPOSAL: f64 = 1.4;

/// Deviations from the maximum are multiplied by √(1 + this number / number of arrivals). Without this factor, 80 %
/// intervals after 3 to 20 arrivals contain the truth in 72 to 79 % of the cases (benchmarks/delays.py), because no
/// family is exact.
const SMALL_SAMPLE: f64 = 4.0;

/// The delays of one ending, in units of the scale. The ending has probability `probability`, and the log of its
/// delay is `location` + `spread`·Z.
#[derive(Clone, Copy, Debug)]
pub struct Law {
    pub family: Family,
    pub probability: f64,
    pub location: f64,
    pub spread: f64,
}

impl Law {
    pub fn z(&self, t: f64) -> f64 {
        (t.ln() - self.location) / self.spread
    }

    pub fn time(&self, z: f64) -> f64 {
        (self.location + self.spread * z).exp().min(f64::MAX)
    }

    /// The probability that the trial has this ending, and has it later than t.
    pub fn later(&self, t: f64) -> f64 {
        self.probability * self.family.distribution(self.z(t)).above
    }
}

/// One draw of the parameters, with its weight. The weights of all draws add up to 1.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    pub weight: f64,
    pub arrives: Law,
    pub fails: Law,
    pub never: f64,
}

/// Returns the draws of all families.
pub fn draws(
    fits: &[Fit],
    records: &Records,
    options: &Options,
    stop: &mut Stop,
) -> Result<Vec<Draw>> {
    let mut draws = Vec::new();
    let mut kept = 0.0;
    for fit in fits.iter().filter(|fit| fit.weight >= SMALLEST_WEIGHT) {
        check(stop)?;
        draws.extend(draws_of(fit, records, options));
        kept += fit.weight;
    }
    draws.iter_mut().for_each(|draw| draw.weight /= kept);
    Ok(draws)
}

fn draws_of(fit: &Fit, records: &Records, options: &Options) -> Vec<Draw> {
    let d = fit.free.len();
    // The points are symmetric around the maximum. The plastic numbers g, g^(d + 1) = g + 1, give the lattice with
    // steps g^−i (Roberts 2018).
    let mut g: f64 = 2.0;
    for _ in 0..50 {
        g = (1.0 + g).powf(1.0 / (d as f64 + 1.0));
    }
    let mut standard = Array2::zeros((N_DRAWS, d));
    for k in 0..N_DRAWS / 2 {
        for i in 0..d {
            let u = (0.5 + (k as f64 + 1.0) * g.powi(-(i as i32 + 1))).fract();
            let z = Family::LogNormal.quantile(u.clamp(1e-9, 1.0 - 1e-9));
            standard[[2 * k, i]] = z;
            standard[[2 * k + 1, i]] = -z;
        }
    }
    let squares: Vec<f64> = standard.rows().into_iter().map(|r| r.dot(&r)).collect();
    let n_groups = records.arrived.len() + records.failed.len() + records.censored.len();
    let weighted = n_groups <= MAX_WEIGHTED;
    if weighted {
        standard *= PROPOSAL;
    }
    match &factor(&fit.minimum, &fit.free, &mut 0.0) {
        // If ξ has unit covariance, L⁻ᵀ ξ has the covariance H⁻¹.
        Some(l) => LowerFactor::of(l).backward_substitution(standard.view_mut()),
        None => standard.fill(0.0),
    }
    let widening = (1.0 + SMALL_SAMPLE / records.arrived.total()).sqrt();
    let mut log_weights = vec![0.0; N_DRAWS];
    let mut draws = Vec::new();
    for (k, row) in standard.rows().into_iter().enumerate() {
        let moved = |factor: f64| {
            let mut theta = fit.theta;
            for (&i, step) in fit.free.iter().zip(row) {
                theta[i] = (theta[i] + factor * step).clamp(2.0 * LOWER[i], 2.0 * UPPER[i]);
            }
            theta
        };
        if weighted {
            let (theta, free) = (moved(1.0), &fit.free);
            let at = negative_log(records, fit.family, &theta, free, options.priors).value;
            let log_ratio = fit.minimum.value - at + 0.5 * squares[k];
            log_weights[k] = match log_ratio.is_finite() {
                true => log_ratio,
                false => f64::NEG_INFINITY,
            };
        }
        let theta = moved(widening);
        let [arrives, fails, never] = probabilities(&theta);
        let law = |family, probability, location: usize| Law {
            family,
            probability,
            location: theta[location],
            spread: theta[location + 1].exp(),
        };
        draws.push(Draw {
            weight: 0.0,
            arrives: law(fit.family, arrives, LOCATION),
            fails: law(FAILURES, fails, FAIL_LOCATION),
            never,
        });
    }
    let largest = log_weights
        .iter()
        .copied()
        .fold(f64::NEG_INFINITY, f64::max);
    if largest > f64::NEG_INFINITY {
        log_weights
            .iter_mut()
            .for_each(|w| *w = (*w - largest).exp());
    } else {
        log_weights.fill(1.0);
    }
    let sum: f64 = log_weights.iter().sum();
    for (draw, weight) in draws.iter_mut().zip(log_weights) {
        draw.weight = fit.weight * weight / sum;
    }
    draws
}
