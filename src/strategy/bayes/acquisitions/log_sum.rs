//! The logarithm of a sum of positive terms, over fantasies or boxes, and the terms of expected improvements.
//!
//! Notation: mu_i is the mean of term i and f*_i its incumbent; sigma is the standard deviation; u_i = (mu_i −
//! f*_i)/sigma; h, φ, Φ and R are as in [`super::log_ei`].

use multiversion::multiversion;

use super::log_inside::{FRAC_1_SQRT_2_PI, LIMIT};
use crate::numerics::cholesky::sum;
use crate::numerics::special::{exp_nonpositive, mills_ratio};

/// The terms of a sum: term i equals factor_i·exp(exponent_i).
pub(super) struct Terms<'a> {
    pub(super) factors: &'a mut [f64],
    pub(super) exponents: &'a mut [f64],
}

impl Terms<'_> {
    /// Returns log (1/m) Σ_i term_i, and overwrites each factor with the share of its term in the sum.
    pub(super) fn log_mean(&mut self) -> f64 {
        let m = self.factors.len() as f64;
        let reference = self
            .exponents
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max);
        scale(self.factors, self.exponents, reference);
        // Products of very small factors may round to 0.
        let total = sum(self.factors).max(f64::MIN_POSITIVE);
        self.factors.iter_mut().for_each(|share| *share /= total);
        reference + (total / m).ln()
    }
}

/// Computes factor_i *= exp(exponent_i − reference).
#[multiversion(targets = "simd")]
fn scale(factors: &mut [f64], exponents: &[f64], reference: f64) {
    for (factor, exponent) in factors.iter_mut().zip(exponents) {
        *factor *= exp_nonpositive(exponent - reference);
    }
}

/// Sets the factors and exponents to h(u_i). Overwrites the means with the derivatives of log sigma h(u_i) with respect
/// to the means, multiplied by sigma, and `by_std` with the derivatives with respect to sigma, multiplied by sigma.
///
/// For a = |u| and R = R(a): Φ(−a) = φ R and h(−a) = φ (1 − a R); for u > 0, Φ(a) = 1 − Φ(−a) and h(a) = a + h(−a).
/// d(sigma h)/d mu = Φ and d(sigma h)/d sigma = φ.
#[multiversion(targets = "simd")]
pub(super) fn improve(
    means: &mut [f64],
    incumbents: &[f64],
    precision: f64,
    by_std: &mut [f64],
    terms: &mut Terms,
) {
    let m = means.len();
    let (incumbents, by_std) = (&incumbents[..m], &mut by_std[..m]);
    let (factors, exponents) = (&mut terms.factors[..m], &mut terms.exponents[..m]);
    for i in 0..m {
        let u = (means[i] - incumbents[i]) * precision;
        let a = if u.abs() < LIMIT { u.abs() } else { LIMIT };
        let lead = if u < 1e150 { u } else { 1e150 };
        let is_positive = u > 0.0;
        let (ratio, rest) = mills_ratio(a);
        let density = FRAC_1_SQRT_2_PI
            * if is_positive {
                exp_nonpositive(-0.5 * a * a)
            } else {
                1.0
            };
        let h = density * rest + if is_positive { lead } else { 0.0 };
        let below = density * ratio;
        let cdf = if is_positive { 1.0 - below } else { below };
        factors[i] = h;
        exponents[i] = if is_positive { 0.0 } else { -0.5 * a * a };
        means[i] = cdf / h;
        by_std[i] = density / h;
    }
}
