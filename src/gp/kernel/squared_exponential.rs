//! The squared exponential: κ = exp(−r²/2).

use super::Stationary;
use crate::numerics::simd::multiversion;
use crate::numerics::special::exp_nonpositive;

pub(super) const FAMILY: Stationary = Stationary {
    values,
    values_and_slopes,
    spectral_factor: |_| 1.0, // Gaussian (Rasmussen & Williams 2006, eq. 4.10)
    squared_lipschitz: Some(1.0),
};

#[multiversion(targets = "simd")]
fn values(signal_variance: f64, r2: &mut [f64]) {
    for k in r2 {
        *k = signal_variance * exp_nonpositive(-0.5 * *k);
    }
}

#[multiversion(targets = "simd")]
fn values_and_slopes(signal_variance: f64, r2: &mut [f64], slopes: &mut [f64]) {
    for (k, g) in r2.iter_mut().zip(slopes) {
        *k = signal_variance * exp_nonpositive(-0.5 * *k);
        // dk/d(r²) = −k/2
        *g = -0.5 * *k;
    }
}
