//! Matérn ν = 3/2: κ = (1 + √3 r) exp(−√3 r).

use super::{Stationary, capped, student_factor};
use crate::numerics::simd::multiversion;
use crate::numerics::special::exp_nonpositive;

pub(super) const FAMILY: Stationary = Stationary {
    values,
    values_and_slopes,
    spectral_factor: |rng| student_factor(3.0, rng),
    squared_lipschitz: Some(3.0),
};

#[multiversion(targets = "simd")]
fn values(signal_variance: f64, r2: &mut [f64]) {
    for k in r2 {
        let a = capped((3.0 * *k).sqrt());
        *k = signal_variance * (1.0 + a) * exp_nonpositive(-a);
    }
}

#[multiversion(targets = "simd")]
fn values_and_slopes(signal_variance: f64, r2: &mut [f64], slopes: &mut [f64]) {
    for (k, g) in r2.iter_mut().zip(slopes) {
        let a = capped((3.0 * *k).sqrt());
        let e = signal_variance * exp_nonpositive(-a);
        *k = (1.0 + a) * e;
        // dk/d(r²) = −(3/2) σ_f² exp(−√3 r)
        *g = -1.5 * e;
    }
}
