//! Cells: parts of one coordinate that can be halved and sampled.

use super::Coordinate;
use super::coordinate::clip;

/// A part of one coordinate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell {
    /// The part low ≤ u < high of a continuous coordinate, or low ≤ u ≤ 1 if high = 1.
    Interval(f64, f64),
    /// The part of a discrete coordinate with the indices from first to last (inclusive).
    Range(u64, u64),
}

impl Coordinate {
    /// The cell that contains the whole coordinate.
    pub fn whole(&self) -> Cell {
        match self.levels() {
            None => Cell::Interval(0.0, 1.0),
            Some(levels) => Cell::Range(0, levels - 1),
        }
    }

    /// Returns the two halves of a cell, or None if the cell cannot be halved. A logarithmic integer is halved on its
    /// logarithmic axis.
    pub fn split(&self, cell: Cell) -> Option<(Cell, Cell)> {
        match cell {
            Cell::Interval(low, high) => {
                let middle = low + (high - low) / 2.0;
                let halves = (Cell::Interval(low, middle), Cell::Interval(middle, high));
                (low < middle && middle < high).then_some(halves)
            }
            Cell::Range(first, last) if first == last => None,
            Cell::Range(first, last) => {
                let middle = match self.first_of_log() {
                    Some(_) => {
                        let u = (self.position(first) + self.position(last)) / 2.0;
                        self.index(&[u]).clamp(first, last - 1)
                    }
                    None => first + (last - first) / 2,
                };
                Some((Cell::Range(first, middle), Cell::Range(middle + 1, last)))
            }
        }
    }

    /// The probability of a cell under the uniform (with `log`, log-uniform) distribution.
    pub fn share(&self, cell: Cell) -> f64 {
        let (first, last) = match cell {
            Cell::Interval(low, high) => return high - low,
            Cell::Range(first, last) => (first, last),
        };
        let levels = self.levels().unwrap_or(1);
        match self.first_of_log() {
            Some(low) => {
                let (bottom, top) = log_ends(low, 0, levels - 1);
                let (below, above) = log_ends(low, first, last);
                (above - below) / (top - bottom)
            }
            None => (last - first + 1) as f64 / levels as f64,
        }
    }

    /// Writes to `columns` the member at the quantile u ∈ [0, 1] of a distribution on the cell: uniform, or log-uniform with
    /// `log`.
    pub fn write_within(&self, cell: Cell, u: f64, columns: &mut [f64]) {
        let u = clip(u);
        match (cell, self.first_of_log()) {
            (Cell::Interval(low, high), _) => {
                let drawn = low + u * (high - low);
                // The upper end belongs to the next cell.
                columns[0] = match high < 1.0 && drawn >= high {
                    true => high.next_down().max(low),
                    false => drawn,
                };
            }
            (Cell::Range(first, last), Some(low)) => {
                let (bottom, top) = log_ends(low, first, last);
                let drawn = libm::exp(bottom + u * (top - bottom)).round();
                let index = (drawn - low as f64).max(0.0) as u64;
                self.write(index.clamp(first, last), columns);
            }
            (Cell::Range(first, last), None) => {
                let index = first + (u * (last - first + 1) as f64) as u64;
                self.write(index.min(last), columns);
            }
        }
    }

    /// The first integer of a logarithmic axis.
    fn first_of_log(&self) -> Option<i64> {
        match *self {
            Coordinate::Integer { low, log, .. } => log.then_some(low),
            _ => None,
        }
    }
}

/// Returns the logarithms of the lower end of member `first` and of the upper end of member `last`, on a logarithmic
/// axis that starts at `low`. Every integer i, the first and the last included, has the interval [i − ½, i + ½].
fn log_ends(low: i64, first: u64, last: u64) -> (f64, f64) {
    let level = |index: u64| low.wrapping_add_unsigned(index) as f64;
    (libm::log(level(first) - 0.5), libm::log(level(last) + 0.5))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn integer(low: i64, high: i64, log: bool) -> Coordinate {
        Coordinate::Integer { low, high, log }
    }

    fn ends(cell: Cell) -> (f64, f64) {
        match cell {
            Cell::Interval(low, high) => (low, high),
            Cell::Range(first, last) => (first as f64, last as f64),
        }
    }

    /// Whether the member with these columns belongs to the cell.
    fn holds(coordinate: &Coordinate, cell: Cell, columns: &[f64]) -> bool {
        match cell {
            Cell::Interval(low, high) => {
                low <= columns[0] && (columns[0] < high || (high == 1.0 && columns[0] == 1.0))
            }
            Cell::Range(first, last) => (first..=last).contains(&coordinate.index(columns)),
        }
    }

    proptest! {
        #[test]
        fn halves_partition_a_cell_down_to_single_members(
            kind in 0..4usize, low in 1..1000i64, n in 0..100_000i64, turns: u64, u in 0.0..=1.0f64,
        ) {
            let coordinate = [
                Coordinate::Continuous,
                integer(-low, n, false),
                integer(low, low + n, true),
                Coordinate::Categorical { n: low as usize },
            ][kind];
            let mut cell = coordinate.whole();
            let mut columns = vec![0.0; coordinate.width()];
            for depth in 0..64 {
                coordinate.write_within(cell, u, &mut columns);
                prop_assert!(holds(&coordinate, cell, &columns));
                let Some((a, b)) = coordinate.split(cell) else {
                    break;
                };
                // Every member of the cell is in exactly one half. The halves are adjacent, and their outer ends are
                // the ends of the cell.
                let gap = if kind == 0 { 0.0 } else { 1.0 };
                prop_assert_eq!((ends(a).0, ends(b).1), ends(cell));
                prop_assert_eq!(ends(a).1 + gap, ends(b).0);
                prop_assert_ne!(holds(&coordinate, a, &columns), holds(&coordinate, b, &columns));
                cell = if turns >> depth & 1 == 0 { a } else { b };
            }
            if let Cell::Range(first, last) = cell {
                prop_assert_eq!(first, last);
            }
        }
    }

    #[test]
    fn a_logarithmic_integer_is_halved_on_its_logarithmic_axis() {
        let coordinate = integer(1, 10_000, true);
        let halves = coordinate.split(coordinate.whole());
        let expected = (Cell::Range(0, 99), Cell::Range(100, 9999));
        assert_eq!(halves, Some(expected));
    }

    #[test]
    fn a_single_value_and_an_interval_of_one_ulp_are_not_split() {
        let single = Cell::Range(3, 3);
        assert_eq!(integer(0, 9, false).split(single), None);
        let ulp = Cell::Interval(0.5, 0.5f64.next_up());
        assert_eq!(Coordinate::Continuous.split(ulp), None);
    }
}
