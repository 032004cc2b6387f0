//! Exhaustive search of finite domains.

use ndarray::{Array2, ArrayView1, ArrayView2, Axis};
use rand::RngExt;

use super::argmax::Argmax;
use crate::error::{Result, check};
use crate::problem::{Objective, Product};
use crate::random::Call;

/// The number of rows that are scored between two checks of `stop`.
pub(super) const BLOCK: usize = 256;

/// Up to this number, all combinations of the discrete coordinates are scored, or occur among the starting points.
pub(super) const MAX_COMBINATIONS: u64 = 1000;

/// The same limit for boxes with lattices.
const MAX_POINTS_OF_LATTICES: u64 = 100_000;

/// Whether a search scores every combination of the discrete coordinates.
pub(super) fn can_be_enumerated(product: &Product) -> bool {
    let has_lattice = product
        .linear()
        .is_some_and(|linear| !linear.lattices.is_empty());
    let most = if has_lattice {
        MAX_POINTS_OF_LATTICES
    } else {
        MAX_COMBINATIONS
    };
    product.combinations() <= most
}

/// Returns the best row that is not skipped, or `None` if every value is NaN. Ties are broken uniformly at random.
pub(super) fn best_row(
    objective: &mut dyn Objective,
    points: ArrayView2<f64>,
    skip: &dyn Fn(ArrayView1<f64>) -> bool,
    call: &mut Call,
) -> Result<Option<Argmax>> {
    let mut values = [0.0; BLOCK];
    let mut best: Option<(usize, f64)> = None;
    let mut n_ties = 0;
    for (block, rows) in points.axis_chunks_iter(Axis(0), BLOCK).enumerate() {
        check(call.stop)?;
        let values = &mut values[..rows.nrows()];
        objective.values(rows, values);
        for (i, &value) in values.iter().enumerate() {
            let ahead = best.map_or(!value.is_nan(), |(_, most)| value > most);
            let tied = best.is_some_and(|(_, most)| value == most);
            if !(ahead || tied) || skip(rows.row(i)) {
                continue;
            }
            // Reservoir sampling: the m-th of several equally good rows replaces the current row with probability 1/m.
            n_ties = if ahead { 1 } else { n_ties + 1 };
            if ahead || call.rng.random_range(0..n_ties) == 0 {
                best = Some((block * BLOCK + i, value));
            }
        }
    }
    Ok(best.map(|(index, value)| Argmax {
        point: points.row(index).to_vec(),
        index: Some(index),
        value,
    }))
}

/// Returns every combination of the active discrete coordinates, one per row, with 0 in active continuous columns.
pub(crate) fn combinations(product: &Product, width: usize) -> Array2<f64> {
    let mut points = Array2::zeros((product.combinations() as usize, width));
    let mut x = product.first_combination(width);
    for mut row in points.outer_iter_mut() {
        row.assign(&ArrayView1::from(&x));
        product.next_combination(&mut x);
    }
    points
}
