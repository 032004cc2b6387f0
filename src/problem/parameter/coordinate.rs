//! One coordinate of a box: its columns, and its members if it is discrete.
//!
//! Notation: the members of a discrete coordinate are numbered 0, 1, …, levels − 1; the number is the *index*
//! (i − low for the integer i). u is an entry of a continuous or integer column.

/// One coordinate of a box. Every kind of parameter ensures that different members are encoded as different columns.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// The coordinate of n ordered members.
    pub(super) fn numbered(n: u64) -> Self {
        Coordinate::Integer {
            low: 0,
            high: n as i64 - 1,
            log: false,
        }
    }

    /// The logarithmic coordinate of the n members k·step with k = first, first + 1, ….
    pub(super) fn multiples(first: i64, n: u64) -> Self {
        Coordinate::Integer {
            low: first,
            high: first + n as i64 - 1,
            log: true,
        }
    }

    /// The number of members without an order, or None if the members have an order.
    pub fn choices(&self) -> Option<u64> {
        match self {
            Coordinate::Categorical { n } => Some(*n as u64),
            _ => None,
        }
    }

    /// Whether the members have an order.
    pub fn is_ordered(&self) -> bool {
        self.choices().is_none()
    }

    /// The number of encoded columns.
    pub fn width(&self) -> usize {
        match self {
            Coordinate::Categorical { n } => *n,
            _ => 1,
        }
    }

    /// The value of the columns while the coordinate is inactive.
    pub fn inactive(&self) -> f64 {
        match self {
            Coordinate::Categorical { .. } => 0.0,
            _ => 0.5,
        }
    }

    /// The number of members; `None` if continuous.
    pub fn levels(&self) -> Option<u64> {
        match self {
            Coordinate::Continuous => None,
            Coordinate::Integer { low, high, .. } => Some((high - low + 1) as u64),
            Coordinate::Categorical { n } => Some(*n as u64),
        }
    }

    /// The first integer of a logarithmic axis and the logarithms of the two ends, or None if the axis is linear.
    fn log_axis(&self) -> Option<(i64, f64, f64)> {
        let Coordinate::Integer { low, high, log } = *self else {
            return None;
        };
        let is_log = log && low < high;
        is_log.then(|| (low, libm::log(low as f64), libm::log(high as f64)))
    }

    /// The encoded column, in [0, 1], of member `index` of an integer. The column is exactly 0.0 and 1.0 at the ends.
    /// If low = high, the column is 0.0.
    pub fn position(&self, index: u64) -> f64 {
        match (self.log_axis(), self.levels()) {
            (Some((low, bottom, top)), _) => {
                (libm::log((low as u64 + index) as f64) - bottom) / (top - bottom)
            }
            (None, Some(n @ 2..)) => index as f64 / (n - 1) as f64,
            _ => 0.0,
        }
    }

    /// The index of the member nearest to these columns. In a one-hot group, the first of the largest entries.
    pub fn index(&self, columns: &[f64]) -> u64 {
        let last = match self {
            Coordinate::Continuous => return 0,
            Coordinate::Integer { low, high, .. } => (high - low) as u64,
            Coordinate::Categorical { .. } => {
                let mut best = 0;
                for (i, v) in columns.iter().enumerate() {
                    if *v > columns[best] || columns[best].is_nan() {
                        best = i;
                    }
                }
                return best as u64;
            }
        };
        let u = clip(columns[0]);
        let Some((low, bottom, top)) = self.log_axis() else {
            return (u * last as f64).round() as u64;
        };
        let level = libm::exp(bottom + u * (top - bottom));
        let below = ((level - low as f64).max(0.0) as u64).min(last);
        let above = (below + 1).min(last);
        // Distances are on the logarithmic axis, where √(i(i+1)) is half way between i and i + 1.
        let distance = |index| (self.position(index) - u).abs();
        match distance(above) < distance(below) {
            true => above,
            false => below,
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

    /// Replaces the columns by the columns of the nearest member.
    pub fn snap(&self, columns: &mut [f64]) {
        match self {
            Coordinate::Continuous => columns[0] = clip(columns[0]),
            _ => self.write(self.index(columns), columns),
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
    use super::*;
    use proptest::prelude::*;

    fn integer(low: i64, high: i64, log: bool) -> Coordinate {
        Coordinate::Integer { low, high, log }
    }

    proptest! {
        #[test]
        fn every_integer_is_decoded_from_its_column(low in 1..1_000_000i64, n in 1..(1i64 << 39), part in 0.0..=1.0f64, log: bool) {
            let c = integer(low, low + n, log);
            let index = (part * n as f64) as u64;
            prop_assert_eq!(c.index(&[c.position(index)]), index);
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
        for i in 1..4u64 {
            let quantile = ((i as f64 + 0.5) / 0.5).ln() / 9f64.ln();
            let mut u = [0.0];
            c.write_within(c.whole(), quantile - 1e-9, &mut u);
            assert_eq!(c.index(&u), i - 1);
            c.write_within(c.whole(), quantile + 1e-9, &mut u);
            assert_eq!(c.index(&u), i);
        }
    }
}
