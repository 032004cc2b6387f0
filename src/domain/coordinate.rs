//! One coordinate of a box: its columns, and its members if it is discrete.
//!
//! Notation: the members of a discrete coordinate are numbered 0, 1, …, levels − 1; the number is the *index*
//! (i − low for the integer i). u is an entry of a continuous or integer column.

/// Indices up to this value are exact in a double, and can be recovered after the division by (high − low).
const MAX_INDEX: u64 = 1 << 52;

/// The largest logarithmic integer. Up to it the logarithms of neighbouring integers differ by much more than the
/// rounding error.
const MAX_LOG_INTEGER: i64 = 1 << 40;

/// The largest difference of an entry of a member from the exact entry.
pub(super) const TOLERANCE: f64 = 1e-9;

/// One coordinate of a box. [`super::Domain::new_box`] refuses coordinates without members.
#[derive(Clone, Debug, PartialEq)]
pub enum Coordinate {
    Continuous,
    Integer {
        low: i64,
        high: i64,
        /// Whether the axis is logarithmic.
        log: bool,
    },
    /// n choices without an order.
    Categorical {
        n: usize,
    },
}

impl Coordinate {
    /// The number of encoded columns.
    pub fn width(&self) -> usize {
        match self {
            Coordinate::Categorical { n } => *n,
            _ => 1,
        }
    }

    /// The value of its columns while it is inactive.
    pub(crate) fn inactive(&self) -> f64 {
        match self {
            Coordinate::Categorical { .. } => 0.0,
            _ => 0.5,
        }
    }

    /// The number of members; `None` if continuous.
    pub fn levels(&self) -> Option<u64> {
        match self {
            Coordinate::Continuous => None,
            Coordinate::Integer { low, high, .. } => Some(high.abs_diff(*low) + 1),
            Coordinate::Categorical { n } => Some(*n as u64),
        }
    }

    /// The encoded column, in [0, 1], of member `index` of an integer. It is exactly 0.0 and 1.0 at the ends; if low
    /// = high, it is 0.0.
    pub fn position(&self, index: u64) -> f64 {
        match self {
            Coordinate::Integer { low, high, .. } if low == high => 0.0,
            Coordinate::Integer {
                low,
                high,
                log: true,
            } => {
                let (bottom, top) = (libm::log(*low as f64), libm::log(*high as f64));
                (libm::log((*low as u64 + index) as f64) - bottom) / (top - bottom)
            }
            Coordinate::Integer { low, high, .. } => index as f64 / high.abs_diff(*low) as f64,
            _ => index as f64,
        }
    }

    /// The index of the member nearest to these columns; for a one-hot group, the first of its largest entries.
    pub fn index(&self, columns: &[f64]) -> u64 {
        match self {
            Coordinate::Continuous => 0,
            Coordinate::Integer { low, high, .. } if low == high => 0,
            Coordinate::Integer { low, high, log } => {
                let (u, last) = (clip(columns[0]), high.abs_diff(*low));
                if !log {
                    return (u * last as f64).round() as u64;
                }
                let (bottom, top) = (libm::log(*low as f64), libm::log(*high as f64));
                let level = libm::exp(bottom + u * (top - bottom));
                let below = ((level - *low as f64).max(0.0) as u64).min(last);
                let above = (below + 1).min(last);
                // Distances are on the logarithmic axis, where √(i(i+1)) is half way between i and i + 1.
                let distance = |index| (self.position(index) - u).abs();
                if distance(above) < distance(below) {
                    above
                } else {
                    below
                }
            }
            Coordinate::Categorical { .. } => {
                let mut best = 0;
                for (i, v) in columns.iter().enumerate() {
                    if *v > columns[best] || columns[best].is_nan() {
                        best = i;
                    }
                }
                best as u64
            }
        }
    }

    /// The integer that these columns encode; for a categorical, the number of the choice.
    pub fn level(&self, columns: &[f64]) -> i64 {
        match self {
            Coordinate::Integer { low, .. } => low.wrapping_add_unsigned(self.index(columns)),
            _ => self.index(columns) as i64,
        }
    }

    /// Writes member `index` of a discrete coordinate into its columns.
    pub fn write(&self, index: u64, columns: &mut [f64]) {
        match self {
            Coordinate::Continuous => {}
            Coordinate::Integer { .. } => columns[0] = self.position(index),
            Coordinate::Categorical { .. } => {
                columns.fill(0.0);
                columns[index as usize] = 1.0;
            }
        }
    }

    /// Writes the member at the quantile u ∈ [0, 1] of the uniform (with `log`, log-uniform) distribution.
    pub(super) fn write_quantile(&self, u: f64, columns: &mut [f64]) {
        self.write_within(self.whole(), u, columns);
    }

    /// An error if the coordinate has no members or too many.
    pub(super) fn check(&self) -> std::result::Result<(), String> {
        match *self {
            Coordinate::Continuous => Ok(()),
            Coordinate::Integer { low, high, .. } if low > high => Err(format!(
                "an integer from {low} to {high} has no members; swap low and high"
            )),
            Coordinate::Integer { low, log: true, .. } if low < 1 => Err(format!(
                "a logarithmic integer must start at 1 or above, got low={low}; raise low or drop log"
            )),
            Coordinate::Integer { low, high, .. } if high.abs_diff(low) > MAX_INDEX => {
                Err(format!(
                    "the integers from {low} to {high} are more than 2^52; use a continuous coordinate"
                ))
            }
            Coordinate::Integer {
                low,
                high,
                log: true,
            } if high > MAX_LOG_INTEGER => Err(format!(
                "a logarithmic integer from {low} to {high} goes beyond 2^40; use a continuous coordinate"
            )),
            Coordinate::Categorical { n: 0 } => {
                Err("a categorical without choices has no members; name at least one".into())
            }
            _ => Ok(()),
        }
    }
}

/// u clipped to [0, 1]; NaN becomes 0.5, and −0.0 becomes 0.0.
pub(super) fn clip(u: f64) -> f64 {
    if u.is_nan() {
        0.5
    } else {
        u.clamp(0.0, 1.0) + 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::integer;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_integer_is_decoded_from_its_column(low in 1..1_000_000i64, n in 1..(1i64 << 39), part in 0.0..=1.0f64, log: bool) {
            let c = integer(low, low + n, log);
            let index = (part * n as f64) as u64;
            prop_assert_eq!(c.index(&[c.position(index)]), index);
            prop_assert_eq!(c.level(&[c.position(index)]), low + index as i64);
            prop_assert_eq!((c.position(0), c.position(n as u64)), (0.0, 1.0));
        }
    }

    #[test]
    fn the_ends_of_the_widest_ranges_are_exact() {
        for c in [
            integer(i64::MIN, i64::MIN + (1 << 52), false),
            integer(1, 1 << 40, true),
        ] {
            let last = c.levels().unwrap() - 1;
            for index in [0, 1, last - 1, last] {
                assert_eq!(c.index(&[c.position(index)]), index);
            }
            assert_eq!((c.position(0), c.position(last)), (0.0, 1.0));
        }
        assert_eq!(integer(7, 7, true).position(0), 0.0);
    }

    #[test]
    fn quantiles_of_a_logarithmic_integer_change_half_way_between_members() {
        // Member i has the interval [i − ½, i + ½], so its cumulative probability is ln((i + ½)/(low − ½)) / ln((high
        // + ½)/(low − ½)).
        let c = integer(1, 4, true);
        for i in 1..4 {
            let quantile = ((f64::from(i) + 0.5) / 0.5).ln() / 9f64.ln();
            let mut u = [0.0];
            c.write_quantile(quantile - 1e-9, &mut u);
            assert_eq!(c.level(&u), i64::from(i));
            c.write_quantile(quantile + 1e-9, &mut u);
            assert_eq!(c.level(&u), i64::from(i) + 1);
        }
    }
}
