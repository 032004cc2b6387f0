//! Input warping: a Kumaraswamy distribution function maps each column before distances are computed (Snoek et al.
//! 2014).
//!
//! Notation: w(u) = 1 − (1 − u^a)^b, a monotone map of [0, 1] onto itself. Outside [0, 1], w(u) = u.

use serde::{Deserialize, Serialize};

/// The smallest distance from the ends of [0, 1] at which slopes are computed, because they may be 0 or infinite at the
/// ends.
const MIN_FROM_END: f64 = 1e-6;

/// The exponents a and b of w, both 1 for the identity.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Kumaraswamy(pub f64, pub f64);

impl Kumaraswamy {
    pub const IDENTITY: Self = Self(1.0, 1.0);

    /// Whether the exponents are finite and above 0.
    pub fn is_valid(self) -> bool {
        [self.0, self.1].iter().all(|e| *e > 0.0 && e.is_finite())
    }

    /// w(u). Measurements beyond a bound have u outside [0, 1], where w continues with slope 1: w(u) = u.
    fn value(self, u: f64) -> f64 {
        let Self(a, b) = self;
        match (0.0..=1.0).contains(&u) {
            true => 1.0 - (1.0 - u.powf(a)).powf(b),
            false => u,
        }
    }

    /// The slope dw/du, which is 1 outside [0, 1].
    fn slope(self, u: f64) -> f64 {
        let Self(a, b) = self;
        if !(0.0..=1.0).contains(&u) {
            return 1.0;
        }
        let u = u.clamp(MIN_FROM_END, 1.0 - MIN_FROM_END);
        a * b * u.powf(a - 1.0) * (1.0 - u.powf(a)).powf(b - 1.0)
    }
}

/// The map of each column, or an empty list if all maps are the identity.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InputWarp(Vec<Kumaraswamy>);

impl InputWarp {
    /// An input warp with one map for each column.
    pub fn new(maps: Vec<Kumaraswamy>) -> Self {
        match maps.iter().all(|map| *map == Kumaraswamy::IDENTITY) {
            true => Self::default(),
            false => Self(maps),
        }
    }

    /// Whether all maps are the identity.
    pub fn is_identity(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the maps are valid for `width` columns.
    pub fn is_valid(&self, width: usize) -> bool {
        let fits = self.is_identity() || self.0.len() == width;
        fits && self.0.iter().all(|map| map.is_valid())
    }

    /// The map of column d.
    pub fn map(&self, d: usize) -> Kumaraswamy {
        self.0.get(d).copied().unwrap_or(Kumaraswamy::IDENTITY)
    }

    /// w_d(u).
    pub fn value(&self, u: f64, d: usize) -> f64 {
        match self.map(d) {
            Kumaraswamy::IDENTITY => u,
            map => map.value(u),
        }
    }

    /// The slope dw_d/du.
    pub fn slope(&self, u: f64, d: usize) -> f64 {
        match self.map(d) {
            Kumaraswamy::IDENTITY => 1.0,
            map => map.slope(u),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn maps_are_monotone_and_their_slopes_equal_finite_differences(
            a in 0.25..4.0f64, b in 0.25..4.0f64, u in 0.01..0.98f64, step in 0.001..0.01f64,
        ) {
            let warp = InputWarp::new(vec![Kumaraswamy::IDENTITY, Kumaraswamy(a, b)]);
            prop_assert_eq!((warp.value(u, 0), warp.slope(u, 0)), (u, 1.0));
            prop_assert!(warp.value(u, 1) < warp.value(u + step, 1));
            prop_assert_eq!((warp.value(0.0, 1), warp.value(1.0, 1)), (0.0, 1.0));
            let h = 1e-6;
            let difference = (warp.value(u + h, 1) - warp.value(u - h, 1)) / (2.0 * h);
            prop_assert!((warp.slope(u, 1) - difference).abs() < 1e-5 * difference.max(1.0));
        }
    }

    #[test]
    fn maps_continue_with_slope_one_beyond_the_bounds() {
        let warp = InputWarp::new(vec![Kumaraswamy(4.0, 0.25)]);
        for u in [-2.0, -1e-9, 1.0 + 1e-9, 1.2, 50.0] {
            assert_eq!((warp.value(u, 0), warp.slope(u, 0)), (u, 1.0));
        }
    }

    /// The distribution functions of Beta(a, 1) and Beta(1, b) are maps with one exponent.
    #[test]
    fn maps_with_one_exponent_are_powers() {
        let warp = InputWarp::new(vec![Kumaraswamy(4.0, 1.0), Kumaraswamy(1.0, 0.25)]);
        for i in 0..=10 {
            let u = 0.1 * f64::from(i);
            assert!((warp.value(u, 0) - u.powi(4)).abs() < 1e-14);
            let power = 1.0 - (1.0 - u).max(0.0).sqrt().sqrt();
            assert!((warp.value(u, 1) - power).abs() < 1e-14);
        }
        assert!(warp.slope(1.0, 1).is_finite() && warp.slope(0.0, 0) > 0.0);
    }

    #[test]
    fn identity_maps_are_dropped() {
        assert!(InputWarp::new(vec![Kumaraswamy::IDENTITY; 3]).is_identity());
        let warp = InputWarp::new(vec![Kumaraswamy(2.0, 1.0), Kumaraswamy::IDENTITY]);
        assert!(warp.is_valid(2) && !warp.is_valid(3) && InputWarp::default().is_valid(3));
        assert!(!InputWarp::new(vec![Kumaraswamy(f64::INFINITY, 1.0)]).is_valid(1));
        assert!(!InputWarp::new(vec![Kumaraswamy(1.0, 0.0)]).is_valid(1));
    }
}
