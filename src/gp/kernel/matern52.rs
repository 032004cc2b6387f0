//! Matérn ν = 5/2: κ = (1 + √5 r + 5r²/3) exp(−√5 r).

use super::{Stationary, capped, student_factor};
use crate::numerics::simd::multiversion;
use crate::numerics::special::exp_nonpositive;

pub(super) const FAMILY: Stationary = Stationary {
    values,
    values_and_slopes,
    spectral_factor: |rng| student_factor(5.0, rng),
    squared_lipschitz: Some(5.0 / 3.0),
};

#[multiversion(targets = "simd")]
fn values(signal_variance: f64, r2: &mut [f64]) {
    for k in r2 {
        let a = capped((5.0 * *k).sqrt());
        *k = signal_variance * (1.0 + a + a * a / 3.0) * exp_nonpositive(-a);
    }
}

#[multiversion(targets = "simd")]
fn values_and_slopes(signal_variance: f64, r2: &mut [f64], slopes: &mut [f64]) {
    for (k, g) in r2.iter_mut().zip(slopes) {
        let a = capped((5.0 * *k).sqrt());
        let e = signal_variance * exp_nonpositive(-a);
        *k = (1.0 + a + a * a / 3.0) * e;
        // dk/d(r²) = −(5/6) σ_f² (1 + √5 r) exp(−√5 r). Unlike (dk/dr)/(2r), this formula is finite at r = 0.
        *g = -5.0 / 6.0 * (1.0 + a) * e;
    }
}
