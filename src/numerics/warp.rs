//! A monotone transformation of values that shortens a long tail of bad values.
//!
//! Notation: y is a value of f, t(y) is its transform, k is the knee, and w is the width.
//!
//! For y ≥ k, t(y) = y. For y < k, t(y) = k − w log(1 + (k − y)/w). For y < k, the slope of t is 1/(1 + (k − y)/w),
//! which is between 0 and 1. Therefore good values do not change, bad values move closer together, and the order of the
//! values is kept. Values that are extremely far below the knee are called diverging. A diverging value is replaced by
//! the worst value that does not diverge, because a loss of 1e12 is not more informative than a loss of 1e6.

use serde::{Deserialize, Serialize};

/// The widths w that are compared, in units of the distance between the median and the upper quartile. With the largest
/// width, mainly values far below the median change. With the smallest width, all values below the median change.
const WIDTHS: [f64; 3] = [4.0, 1.0, 0.25];

/// A value diverges if the value is below the knee by more than this number, in the same units as the widths. A
/// distance of 16 was too small: ordinary values of smooth functions counted as diverging, because optimizers evaluate
/// mostly good points.
const DIVERGING: f64 = 100.0;

/// The smallest distance between the knee and the limit that replaces diverging values, in the same units as the
/// widths.
const LEAST_LIMIT: f64 = 16.0;

/// A warp is considered only if there are at least this many values. Fewer values do not show a tail.
const MIN_VALUES: usize = 5;

/// The transformation, in units of f.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Warp {
    pub knee: f64,
    pub width: f64,
    /// Values below this value diverge.
    pub diverging: f64,
    /// The limit, which replaces diverging values.
    pub limit: f64,
}

impl Warp {
    /// Proposes transformations that may suit these weighted values. Values above the weighted median do not change.
    pub fn proposals(values: &[f64], weights: &[f64]) -> Vec<Self> {
        let mut sorted: Vec<_> = values.iter().copied().zip(weights).collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let n = sorted.len();
        if n < MIN_VALUES {
            return Vec::new();
        }
        let total: f64 = weights.iter().sum();
        let quantile = |share: f64| {
            let mut sum = 0.0;
            let reached = |(_, weight): &&(f64, &f64)| {
                sum += **weight;
                sum > share * total
            };
            sorted
                .iter()
                .find(reached)
                .map_or(sorted[n - 1].0, |it| it.0)
        };
        let knee = quantile(0.5);
        // If the median equals the upper quartile, use the distance between the median and the best value instead.
        let spread = [quantile(0.75), sorted[n - 1].0]
            .map(|upper| upper - knee)
            .into_iter()
            .find(|spread| *spread > 0.0);
        let proposals = spread.into_iter().flat_map(|s| {
            let diverging = knee - DIVERGING * s;
            let worst = sorted.iter().map(|it| it.0).find(|y| *y >= diverging);
            let limit = worst.unwrap_or(knee).min(knee - LEAST_LIMIT * s);
            WIDTHS.map(|c| Self {
                knee,
                width: c * s,
                diverging,
                limit,
            })
        });
        proposals.filter(Self::is_valid).collect()
    }

    /// Whether the parameters are valid, so that a note may contain this warp.
    pub fn is_valid(&self) -> bool {
        self.knee.is_finite()
            && self.width.is_normal()
            && self.width > 0.0
            && self.diverging.is_finite()
            && self.diverging <= self.limit
            && self.limit < self.knee
    }

    /// Whether another warp has about the same width and knee.
    pub fn is_near(&self, other: &Self) -> bool {
        let factor = self.width.max(other.width) / self.width.min(other.width);
        factor <= 1.5 && (self.knee - other.knee).abs() <= 0.5 * self.width
    }

    /// (k − y)/w below the knee, and 0 otherwise. The difference k − y is computed from halved numbers, because the
    /// difference of halved numbers does not overflow.
    fn excess(&self, y: f64) -> f64 {
        let excess = (0.5 * self.knee - 0.5 * y) / self.width * 2.0;
        excess.clamp(0.0, f64::MAX)
    }

    /// The transform t(y).
    pub fn apply(&self, y: f64) -> f64 {
        let excess = self.excess(if y < self.diverging { self.limit } else { y });
        if excess > 0.0 {
            self.knee - self.width * excess.ln_1p()
        } else {
            y
        }
    }

    /// log dt/dy. The slope at a diverging value is computed as if the value did not diverge. Otherwise, a
    /// transformation that makes several values equal would have an infinite advantage over other transformations.
    pub fn log_slope(&self, y: f64) -> f64 {
        -self.excess(y).ln_1p()
    }

    /// Returns the value y whose transform is t. The result is at least the value below which values diverge.
    pub fn invert(&self, t: f64) -> f64 {
        let excess = (self.knee - t) / self.width;
        if excess > 0.0 {
            (self.knee - self.width * excess.exp_m1()).max(self.diverging)
        } else {
            t
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_warp_keeps_the_order_and_is_inverted(
            knee in -10.0..10.0f64, width in 0.01..10.0f64, mut y in prop::collection::vec(-1e4..1e2f64, 2..9),
        ) {
            let (diverging, limit) = (knee - 100.0 * width, knee - 50.0 * width);
            let warp = Warp { knee, width, diverging, limit };
            y.retain(|y| !(diverging..limit).contains(y));
            y.sort_by(f64::total_cmp);
            for pair in y.windows(2) {
                prop_assert!(warp.apply(pair[0]) <= warp.apply(pair[1]));
            }
            for y in y {
                let back = warp.invert(warp.apply(y));
                prop_assert!((back - y.max(limit)).abs() < 1e-9 * (y.abs() + 20.0), "{y} {back}");
                if y < limit {
                    continue;
                }
                let h = 1e-4 * width;
                let slope = (warp.apply(y + h) - warp.apply(y - h)) / (2.0 * h);
                if (y - knee).abs() > 2.0 * h {
                    prop_assert!((slope.ln() - warp.log_slope(y)).abs() < 1e-3, "{slope}");
                }
            }
        }
    }

    #[test]
    fn extreme_values_stay_finite() {
        for (knee, width) in [(0.0, 1e-300), (1e300, 1.0), (-1e300, 1e300)] {
            let warp = Warp {
                knee,
                width,
                diverging: f64::MIN,
                limit: f64::MIN,
            };
            for y in [f64::MIN, -1.0, 0.0, f64::MAX] {
                assert!(warp.apply(y).is_finite() && warp.log_slope(y).is_finite());
                assert!(warp.invert(warp.apply(y)).is_finite());
            }
            assert!(warp.invert(f64::MIN).is_finite());
        }
    }

    #[test]
    fn the_knee_of_proposals_is_the_median_and_their_widths_come_from_better_values() {
        let values: Vec<f64> = (0..9).map(f64::from).collect();
        let found = Warp::proposals(&values, &[1.0; 9]);
        let widths: Vec<_> = found.iter().map(|w| (w.knee, w.width)).collect();
        assert_eq!(widths, [(4.0, 8.0), (4.0, 2.0), (4.0, 0.5)]);
        // The following cases are tested: more than half of the values are equal, all values are equal, and there are
        // too few values.
        assert_eq!(
            Warp::proposals(&[0.0, 1.0, 1.0, 1.0, 1.0, 3.0], &[1.0; 6])[1].width,
            2.0
        );
        assert!(Warp::proposals(&[1.0; 9], &[1.0; 9]).is_empty());
        assert!(Warp::proposals(&[1.0, 2.0, 3.0, 4.0], &[1.0; 4]).is_empty());
    }

    #[test]
    fn proposals_for_extreme_values_are_finite() {
        for largest in [1e300, 1e306, 1e307, f64::MAX] {
            let values = [-largest, 0.0, 0.0, 0.0, 0.0, largest];
            for warp in Warp::proposals(&values, &[1.0; 6]) {
                let text = serde_json::to_string(&warp).unwrap();
                assert_eq!(warp, serde_json::from_str(&text).unwrap(), "{text}");
            }
        }
    }

    #[test]
    fn diverging_values_count_as_the_worst_value_that_does_not_diverge() {
        for (least, diverging, limit) in [
            (0.0, -196.0, -28.0),
            (-90.0, -196.0, -90.0),
            (-1e9, -196.0, -28.0),
        ] {
            let mut values: Vec<f64> = (0..9).map(f64::from).collect();
            values[0] = least;
            let warp = Warp::proposals(&values, &[1.0; 9])[0];
            assert_eq!((warp.diverging, warp.limit), (diverging, limit));
            assert_eq!(warp.apply(-1e12), warp.apply(limit));
            assert!((warp.invert(warp.apply(-100.0)) + 100.0).abs() < 1e-9);
        }
    }
}
