//! Matérn ν = 1/2: κ = exp(−r).

use super::{Stationary, capped, student_factor};
use crate::numerics::simd::multiversion;
use crate::numerics::special::exp_nonpositive;

pub(super) const FAMILY: Stationary = Stationary {
    values,
    values_and_slopes,
    spectral_factor: |rng| student_factor(1.0, rng),
    squared_lipschitz: None,
};

#[multiversion(targets = "simd")]
fn values(signal_variance: f64, r2: &mut [f64]) {
    for k in r2 {
        *k = signal_variance * exp_nonpositive(-capped(k.sqrt()));
    }
}

#[multiversion(targets = "simd")]
fn values_and_slopes(signal_variance: f64, r2: &mut [f64], slopes: &mut [f64]) {
    for (k, g) in r2.iter_mut().zip(slopes) {
        let r = capped(k.sqrt());
        *k = signal_variance * exp_nonpositive(-r);
        // dk/d(r²) = −k/(2r). At r = 0, k is not differentiable and g is multiplied by 0, so g must be finite.
        *g = -0.5 * *k / if r > 1e-30 { r } else { 1e-30 };
    }
}
