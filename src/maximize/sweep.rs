//! A sweep tries changes of single coordinates, to other levels (discrete) or to both ends (continuous), exchanges
//! between two parts of a lattice, and then combinations of the discrete changes.

use std::collections::HashSet;

use ndarray::Array2;

use super::scoring::Search;
use crate::error::{Error, Result};
use crate::problem::{Coordinate, columns};

/// A sweep tries every level of an integer with at most this many levels, and otherwise steps of ±1, ±2, ±4, ….
const FEW_LEVELS: u64 = 16;

/// Whether the coordinate is an integer with more than `FEW_LEVELS` levels.
pub(super) fn is_large(coordinate: &Coordinate) -> bool {
    coordinate.is_ordered() && coordinate.levels() > Some(FEW_LEVELS)
}

impl Search<'_, '_> {
    /// Applies the best change of a single coordinate, and then the best combination of changes of other discrete
    /// coordinates, each only if a(x) increases. Single changes are scored in one batch, and combinations in a second
    /// batch. Returns whether a(x) has increased.
    pub fn sweep(&mut self, x: &mut [f64], value: &mut f64) -> Result<bool> {
        let (mut moves, mut moved) = (Vec::new(), Vec::new());
        let mut y = x.to_vec();
        let linear = self.product.linear();
        for (i, coordinate, at) in self.product.active_columns(x) {
            let before = moves.len();
            if linear.is_some_and(|linear| linear.lattice_of(at.start).is_some()) {
                continue;
            }
            if let Some(levels) = coordinate.levels() {
                for index in other_levels(coordinate, levels, coordinate.index(&x[at.clone()])) {
                    coordinate.write(index, &mut y[at.clone()]);
                    if self.product.is_parent(i) {
                        // Coordinates that become active are set to the middle, or to the first choice.
                        self.product.snap(&mut y);
                        moves.extend_from_slice(&y);
                        y.copy_from_slice(x);
                    } else {
                        moves.extend_from_slice(&y);
                    }
                }
            } else {
                for end in [0.0, 1.0] {
                    y[at.start] = end;
                    if linear.is_some_and(|linear| linear.is_constrained(at.start)) {
                        self.product.snap(&mut y);
                        moves.extend_from_slice(&y);
                        y.copy_from_slice(x);
                    } else {
                        moves.extend_from_slice(&y);
                    }
                }
            }
            y[at.clone()].copy_from_slice(&x[at]);
            moved.resize(moved.len() + (moves.len() - before) / x.len(), i);
        }
        let n_single = moved.len();
        for lattice in linear.iter().flat_map(|linear| &linear.lattices) {
            lattice.exchanges(x, |y| moves.extend_from_slice(y));
        }
        let moves = as_rows(moves, x.len())?;
        let values = self.score(moves.view())?;
        let least = 1e-9 * self.scale;
        let (start, mut best) = (*value, None);
        for (k, &v) in values.iter().enumerate() {
            if v > *value + least {
                (best, *value) = (Some(k), v);
            }
        }
        let Some(best) = best else {
            return Ok(false);
        };
        x.iter_mut().zip(moves.row(best)).for_each(|(x, y)| *x = *y);
        let mut better: Vec<usize> = (0..n_single)
            .filter(|&k| values[k] > start + least)
            .collect();
        better.sort_by(|&k, &l| values[l].total_cmp(&values[k]));
        // Keep the best change of each coordinate.
        let mut seen: HashSet<usize> = moved.get(best).copied().into_iter().collect();
        better.retain(|&k| seen.insert(moved[k]));
        self.apply_together(x, value, &better, &moves, &moved)?;
        Ok(true)
    }

    /// Tries the first change of `order`, the first two together, and so on, and applies the best of these combinations
    /// if it increases a(x).
    fn apply_together(
        &mut self,
        x: &mut [f64],
        value: &mut f64,
        order: &[usize],
        moves: &Array2<f64>,
        moved: &[usize],
    ) -> Result<()> {
        let spans: Vec<_> = columns(self.product).collect();
        let (mut together, mut y) = (Vec::new(), x.to_vec());
        for &k in order {
            let (coordinate, at) = &spans[moved[k]];
            if coordinate.levels().is_some() {
                let own = moves.row(k);
                y[at.clone()]
                    .iter_mut()
                    .zip(own.iter().skip(at.start))
                    .for_each(|(y, v)| *y = *v);
                self.product.snap(&mut y);
                together.extend_from_slice(&y);
            }
        }
        let together = as_rows(together, x.len())?;
        let values = self.score(together.view())?;
        for (row, v) in together.outer_iter().zip(values) {
            if v > *value {
                x.iter_mut().zip(row).for_each(|(x, y)| *x = *y);
                *value = v;
            }
        }
        Ok(())
    }
}

/// The levels that a sweep tries from level `index`.
pub(super) fn other_levels(coordinate: &Coordinate, levels: u64, index: u64) -> Vec<u64> {
    if is_large(coordinate) {
        (0..u64::BITS)
            .map(|bit| 1 << bit)
            .take_while(|&step| step < levels)
            .flat_map(|step| [index.checked_sub(step), Some(index + step)])
            .flatten()
            .filter(|&other| other < levels)
            .collect()
    } else {
        (0..levels).filter(|&other| other != index).collect()
    }
}

/// Returns an array (N, width) of consecutive rows.
pub(crate) fn as_rows(entries: Vec<f64>, width: usize) -> Result<Array2<f64>> {
    Array2::from_shape_vec((entries.len() / width, width), entries)
        .map_err(|error| Error::Shape(error.to_string()))
}
