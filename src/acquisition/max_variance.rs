//! The posterior variance as an acquisition, which is pure exploration.

use super::{Moments, OfMoments};

/// The acquisition sigma².
#[derive(Debug, Clone)]
pub struct MaxVariance;

impl OfMoments for MaxVariance {
    // a = sigma²
    fn value(&self, at: Moments) -> f64 {
        at.variance
    }

    // ∂a/∂sigma = 2 sigma
    fn value_and_derivatives(&self, at: Moments) -> (f64, f64, f64) {
        (at.variance, 0.0, 2.0 * at.std())
    }
}
