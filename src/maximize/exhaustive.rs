//! Exhaustive search of finite domains: every member is scored.

use ndarray::{Array2, ArrayView1, ArrayView2, Axis};
use rand::RngExt;

use super::argmax::Argmax;
use super::excluded::Excluded;
use crate::domain::Objective;
use crate::domain::{Domain, Product, columns};
use crate::error::{Result, Stop, check};
use crate::random::Rng;

/// Rows scored between two checks of `stop`.
pub(super) const BLOCK: usize = 256;

/// If there are at most this many combinations of the discrete coordinates, all are scored or are among the starting
/// points.
pub(super) const MAX_COMBINATIONS: u64 = 1000;

/// The best row that is not skipped; exact ties are broken uniformly at random; `None` if every value is NaN.
pub(super) fn best_row(
    objective: &mut dyn Objective,
    points: ArrayView2<f64>,
    skip: &dyn Fn(ArrayView1<f64>) -> bool,
    rng: &mut Rng,
    stop: &mut Stop,
) -> Result<Option<Argmax>> {
    let mut values = [0.0; BLOCK];
    let mut best: Option<(usize, f64)> = None;
    let mut n_ties = 0;
    for (block, rows) in points.axis_chunks_iter(Axis(0), BLOCK).enumerate() {
        check(stop)?;
        let values = &mut values[..rows.nrows()];
        objective.values(rows, values);
        for (i, &value) in values.iter().enumerate() {
            let ahead = best.map_or(!value.is_nan(), |(_, most)| value > most);
            let tied = best.is_some_and(|(_, most)| value == most);
            if !(ahead || tied) || skip(rows.row(i)) {
                continue;
            }
            // Reservoir sampling: the m-th tie replaces the current one with probability 1/m.
            n_ties = if ahead { 1 } else { n_ties + 1 };
            if ahead || rng.random_range(0..n_ties) == 0 {
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

/// The best of all members of a box without continuous coordinates.
pub(super) fn best_combination(
    objective: &mut dyn Objective,
    domain: &Domain,
    product: &Product,
    excluded: &Excluded,
    rng: &mut Rng,
    stop: &mut Stop,
) -> Result<Option<Argmax>> {
    let all = combinations(product, domain.width());
    let skip = |x: ArrayView1<f64>| {
        x.to_slice()
            .is_some_and(|x| excluded.contains_member(product, x))
    };
    let best = best_row(objective, all.view(), &skip, rng, stop)?;
    Ok(best.map(|best| Argmax {
        index: None,
        ..best
    }))
}

/// Every combination of the active discrete coordinates, one per row; columns of active continuous coordinates are 0.
pub(crate) fn combinations(product: &Product, width: usize) -> Array2<f64> {
    let mut points = Array2::zeros((product.combinations() as usize, width));
    let mut x = vec![0.0; width];
    for (coordinate, at) in columns(product) {
        coordinate.write(0, &mut x[at]);
    }
    product.hold_inactive(&mut x);
    for mut row in points.outer_iter_mut() {
        row.assign(&ArrayView1::from(&x));
        product.next_combination(&mut x);
    }
    points
}
