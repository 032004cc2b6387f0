//! Upper confidence bounds on the mean of f over a cell, computed from all observations in the subtree of the cell
//! (Wang et al. 2022).

use crate::strategy::tree::moments::Moments;
use crate::strategy::tree::settings::Bound;

/// Quantities that all bounds of an instance use, and that are not updated after every trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frozen {
    /// log t, or log t⁺, where t⁺ is the next power of two.
    pub log_t: f64,
    /// The best value minus the median of all values, the unit of constants that are not given in units of f.
    pub scale: f64,
}

/// The default of b, as a multiple of the scale. Experiments: docs/tree_search_figures.md.
const B_SHARE: f64 = 0.3;

impl Bound {
    /// Whether a constant of the bound is computed from the observed values.
    pub fn needs_scale(self) -> bool {
        match self {
            Bound::DUCB1(bound) => bound.range.is_none(),
            Bound::DUCB1Sigma(_) => false,
            Bound::DUCBV(bound) => bound.b.is_none(),
        }
    }

    /// The upper bound U. There must be at least one observation.
    pub fn upper(self, moments: Moments, frozen: Frozen) -> f64 {
        let Frozen { log_t, scale } = frozen;
        let Moments { count, mean, m2 } = moments;
        let s = f64::from(count);
        let bonus = match self {
            // DUCB1: R·√(2 log t/s), for values in a range R.
            Bound::DUCB1(bound) => {
                let range = bound.range.unwrap_or(scale);
                range * (2.0 * log_t / s).sqrt()
            }
            // DUCB1σ: √(2 σ² log t/s).
            Bound::DUCB1Sigma(bound) => {
                let sigma = bound.noise_std.unwrap_or(0.0);
                sigma * (2.0 * log_t / s).sqrt()
            }
            // DUCBV: √(2 v log t/s) + 3 b log t/s, where s·v is the sum of squared deviations.
            Bound::DUCBV(bound) => {
                let b = bound.b.unwrap_or(B_SHARE * scale);
                ((2.0 * m2 * log_t).sqrt() + 3.0 * b * log_t) / s
            }
        };
        mean + bonus
    }
}

/// p⁺, an upper confidence bound on the rate of success: the upper limit of Wilson's score interval (1927) for two
/// standard deviations.
pub fn success_bound(n_values: u32, n_failed: u32) -> f64 {
    if n_failed == 0 {
        return 1.0;
    }
    const Z2: f64 = 4.0;
    let (failed, n) = (
        f64::from(n_failed),
        f64::from(n_values) + f64::from(n_failed),
    );
    let rate = f64::from(n_values) / n;
    let spread = (Z2 * rate * failed / (n * n) + Z2 * Z2 / (4.0 * n * n)).sqrt();
    (rate + Z2 / (2.0 * n) + spread) / (1.0 + Z2 / n)
}

/// The next power of two t⁺, which replaces t in log t until t exceeds t⁺.
pub fn next_power(t: u64) -> u64 {
    t.max(1).next_power_of_two()
}

/// The best of these values minus their median, or `None` if the difference is 0 or not finite.
pub fn scale_of(values: &mut [f64]) -> Option<f64> {
    let n = values.len();
    let best = values.iter().copied().reduce(f64::max)?;
    let (_, median, _) = values.select_nth_unstable_by(n / 2, f64::total_cmp);
    let scale = best - *median;
    (scale > 0.0 && scale.is_finite()).then_some(scale)
}
