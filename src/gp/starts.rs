//! The starts of the searches for θ.
//!
//! Notation: p = (log ℓ…, log σ_f², log λ).

use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use super::evidence::Evidence;
use super::fit_settings::{Draws, FitSettings};
use super::priors::{kind, priors};
use super::search::Problem;
use crate::random::Rng;

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
    /// Minus the log evidence (times prior) at p.
    pub(super) fn value(&self, p: &[f64], cancelled: &mut dyn FnMut() -> bool) -> f64 {
        -self
            .settings
            .value(&mut Evidence::new(self.data), p, cancelled)
    }
}
