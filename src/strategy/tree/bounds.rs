//! Upper confidence bounds on the mean of f over a cell, of all observations in its subtree (Wang et al. 2022).

use crate::strategy::tree::moments::Moments;
use crate::strategy::tree::settings::Bound;

/// What all bounds of an instance share until they are refreshed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frozen {
    /// log t, or log t⁺ of the next power of two.
    pub log_t: f64,
    /// How far the best value was above the median: the unit of what is not given in units of f.
    pub scale: f64,
}

/// b in units of the scale, where it is not given. Measured, see docs/tree_search.md.
const B_SHARE: f64 = 0.3;

impl Bound {
    /// Whether it has a constant that follows from the values observed.
    pub fn needs_scale(self) -> bool {
        match self {
            Bound::DUCB1(bound) => bound.range.is_none(),
            Bound::DUCB1Sigma(_) => false,
            Bound::DUCBV(bound) => bound.b.is_none(),
        }
    }

    /// U, for at least one observation.
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

/// The next power of two at which log t is frozen.
pub fn next_power(t: u64) -> u64 {
    t.max(1).next_power_of_two()
}

/// How far the best of these values is above their median; 1 where that says nothing.
pub fn scale_of(values: &mut [f64]) -> f64 {
    let n = values.len();
    if n < 2 {
        return 1.0;
    }
    let best = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (_, median, _) = values.select_nth_unstable_by(n / 2, f64::total_cmp);
    let scale = best - *median;
    match scale > 0.0 && scale.is_finite() {
        true => scale,
        false => 1.0,
    }
}
