//! Moves of a single coordinate: to other levels, or to both ends if it is continuous.

use ndarray::Array2;

use super::default_search::Search;
use crate::domain::{Coordinate, columns};
use crate::error::{Error, Result};

/// A sweep tries every level of an integer up to this many, beyond that steps of ±1, ±2, ±4, …
const FEW_LEVELS: u64 = 16;

/// Whether it is an integer of more than a few levels.
pub(super) fn is_large(coordinate: &Coordinate) -> bool {
    matches!(coordinate, Coordinate::Integer { .. }) && coordinate.levels() > Some(FEW_LEVELS)
}

impl Search<'_, '_> {
    /// Take the best move of a single coordinate, if it improves; all moves are scored in one batch.
    pub fn sweep(&mut self, x: &mut [f64], value: &mut f64) -> Result<bool> {
        let mut moves: Vec<f64> = Vec::new();
        let mut y = x.to_vec();
        let active = self.product.active(x);
        for (i, (coordinate, at)) in columns(self.product).enumerate() {
            if active.as_ref().is_some_and(|active| !active[i]) {
                continue;
            }
            if let Some(levels) = coordinate.levels() {
                for index in other_levels(coordinate, levels, coordinate.index(&x[at.clone()])) {
                    coordinate.write(index, &mut y[at.clone()]);
                    if self.product.is_parent(i) {
                        // What is active now starts in the middle, or from its first choice.
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
                    moves.extend_from_slice(&y);
                }
            }
            y[at.clone()].copy_from_slice(&x[at]);
        }
        let width = x.len();
        let moves = Array2::from_shape_vec((moves.len() / width, width), moves)
            .map_err(|e| Error::Shape(e.to_string()))?;
        let values = self.score(moves.view())?;
        let mut improved = false;
        for (row, v) in moves.outer_iter().zip(values) {
            if v > *value + 1e-9 * self.scale {
                x.iter_mut().zip(row).for_each(|(x, y)| *x = *y);
                *value = v;
                improved = true;
            }
        }
        Ok(improved)
    }
}

/// The levels that a sweep tries from level `index`.
fn other_levels(coordinate: &Coordinate, levels: u64, index: u64) -> Vec<u64> {
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
