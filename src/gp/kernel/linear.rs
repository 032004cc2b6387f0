//! The linear kernel: κ = 1 + x̃ᵀx̃'.

use crate::numerics::simd::multiversion;

/// The limit of |x̃|, which ensures that products are finite.
pub(super) const MAX_SCALED: f64 = 1e100;

/// Replaces x̃ᵀx̃' by k. The slope of k is σ_f² everywhere.
#[multiversion(targets = "simd")]
pub(super) fn values(signal_variance: f64, products: &mut [f64]) {
    for k in products {
        *k = signal_variance * (1.0 + *k);
    }
}
