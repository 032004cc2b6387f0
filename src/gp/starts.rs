//! The starts of the searches for θ.
//!
//! Notation: p = (log ℓ…, log σ_f², log λ).

use std::ops::ControlFlow;

use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use super::evidence::Evidence;
use super::fit_settings::{Draws, FitSettings};
use super::priors::{kind, priors};
use super::search::{End, PARALLEL_FROM, Problem};
use crate::error::{Result, Stop, check};
use crate::numerics::threads::parallel_map;
use crate::random::Rng;

/// From this number of rows on, starts are evaluated one at a time, because each evaluation of the evidence uses all
/// threads and much memory.
const ONE_AT_A_TIME_FROM: usize = 700;

/// A large λ that is tried as a start, for noisy data.
const MUCH_NOISE: f64 = 0.05;

/// Typical ranges of ℓ, σ_f² and λ, for data of unit scale in a unit cube.
const USUAL: [(f64, f64); 3] = [(0.05, 5.0), (0.3, 3.0), (1e-5, 1.0)];

impl FitSettings {
    /// Draws a random start, from the priors if there are priors.
    pub(super) fn random_start(&self, rng: &mut Rng) -> Vec<f64> {
        let n = self.n_lengthscales();
        let priors = priors(self.dimensions);
        (0..n + 2)
            .map(|i| {
                let kind = kind(i, n);
                if self.priors {
                    let (mean, std) = priors[kind];
                    let unit = if i < n { self.spreads[i] } else { 1.0 };
                    let u: f64 = StandardNormal.sample(rng);
                    unit.ln() + mean + std.min(1.0) * u
                } else if self.draws == Draws::Wide {
                    let (low, high) = USUAL[kind];
                    rng.random_range(low.ln()..high.ln())
                } else {
                    let u: f64 = StandardNormal.sample(rng);
                    u.exp().ln_1p().ln()
                }
            })
            .collect()
    }
}

impl Problem<'_, '_> {
    /// Raises the λ of each start if this raises the evidence. Returns the starts, and minus the log evidence of each
    /// start.
    ///
    /// A fit to few rows often ends with a small λ. The derivative d log p(y) / d log λ is proportional to λ. Therefore
    /// a search on many rows needs many steps to raise a small λ.
    pub(super) fn with_more_noise(
        &self,
        starts: Vec<Vec<f64>>,
        stop: &mut Stop,
    ) -> Result<Vec<End>> {
        let last = self.bounds.0.len() - 1;
        let (low, high) = (self.bounds.0[last], self.bounds.1[last]);
        let mut trials = Vec::with_capacity(2 * starts.len());
        for (i, start) in starts.iter().enumerate() {
            trials.push((i, start.clone()));
            let log_noise = start[last].max(MUCH_NOISE.ln()).max(low).min(high);
            if log_noise != start[last] {
                let mut noisy = start.clone();
                noisy[last] = log_noise;
                trials.push((i, noisy));
            }
        }
        let mut better: Vec<End> = starts.into_iter().map(|p| (p, f64::INFINITY)).collect();
        let mut keep = |i: usize, p: Vec<f64>, value: f64| {
            if value < better[i].1 {
                better[i] = (p, value);
            }
        };
        if (PARALLEL_FROM..ONE_AT_A_TIME_FROM).contains(&self.data.y.len()) {
            let values = parallel_map(trials, true, |(i, p)| {
                let value = self.value(&p, &mut || false);
                (i, p, value)
            });
            values
                .into_iter()
                .for_each(|(i, p, value)| keep(i, p, value));
        } else {
            for (i, p) in trials {
                let value = self.value(&p, &mut || stop() == ControlFlow::Break(()));
                check(stop)?;
                keep(i, p, value);
            }
        }
        check(stop)?;
        Ok(better)
    }

    /// Minus the log evidence (times prior) at p.
    pub(super) fn value(&self, p: &[f64], cancelled: &mut dyn FnMut() -> bool) -> f64 {
        let theta = self.settings.decode(p);
        let kernel = theta
            .kernel(self.settings.family)
            .with_categories(&self.settings.categories);
        let value = Evidence::new(self.data).value(&kernel, theta.noise_variance, cancelled);
        -value - self.settings.add_priors(p, &mut vec![0.0; p.len()])
    }
}
