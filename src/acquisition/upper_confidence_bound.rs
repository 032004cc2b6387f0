//! The upper confidence bound, the mean plus a multiple of the standard deviation.

use super::{Moments, OfMoments};

/// The acquisition mu + multiplier·sqrt(sigma² + noise). `noise` is a variance, and is often 0.
#[derive(Debug, Clone)]
pub struct UpperConfidenceBound {
    pub multiplier: f64,
    pub noise: f64,
}

impl OfMoments for UpperConfidenceBound {
    // a = mu + multiplier·sqrt(sigma² + noise)
    fn value(&self, at: Moments) -> f64 {
        at.mean + self.multiplier * (at.variance + self.noise).sqrt()
    }

    // ∂a/∂sigma = multiplier·sigma / sqrt(sigma² + noise)
    fn value_and_derivatives(&self, at: Moments) -> (f64, f64, f64) {
        let predictive = super::floored_std(at.variance + self.noise);
        let value = at.mean + self.multiplier * predictive;
        (value, 1.0, self.multiplier * at.std() / predictive)
    }
}
