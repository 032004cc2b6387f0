//! Incumbents. The improvement of a point is measured relative to an incumbent.
//!
//! Notation: mu and sigma are the posterior mean and standard deviation of the noise-free value f(x). f* is an
//! incumbent: the improvement at a point is max(0, f − f*).

use ndarray::{Array2, ArrayView2};

use crate::error::Result;
use crate::gp::GaussianProcess;
use crate::numerics::order::best_first;
use crate::strategy::Query;

/// Returns the first `count` rows of `order` whose points satisfy the constraints. If all points violate the
/// constraints, returns the first `count` rows of `order`, because improvement needs an incumbent.
pub(super) fn feasible_rows(
    gp: &GaussianProcess,
    order: &[usize],
    count: usize,
    query: Query,
) -> Result<Vec<usize>> {
    let width = gp.rows().ncols() - query.context.len();
    let points = gp.rows().slice_move(ndarray::s![.., ..width]);
    let found = query.feasible.first(count, order, points)?;
    Ok(match found.is_empty() {
        true => order[..order.len().min(count)].to_vec(),
        false => found,
    })
}

/// The largest entry of `values` among the points that satisfy the constraints. `values` has one entry per observed row
/// of the model. If `values` is empty, the result is the prior mean, because improvement needs an incumbent.
pub fn largest_feasible(gp: &GaussianProcess, values: &[f64], query: Query) -> Result<f64> {
    if !query.feasible.is_constrained() || values.is_empty() {
        return Ok(values.iter().copied().reduce(f64::max).unwrap_or(0.0));
    }
    Ok(values[feasible_rows(gp, &best_first(values), 1, query)?[0]])
}

/// The incumbent f*, which is the largest posterior mean at the observed points. Every observed point is combined with
/// the context of the query. The points of the `unranked` rows are left out. Without observed points, f* is the prior
/// mean.
pub fn incumbent(gp: &GaussianProcess, unranked: &[usize], query: Query) -> Result<f64> {
    let observed = gp.rows().slice_move(ndarray::s![..gp.n_observed(), ..]);
    let points = rows_in_context(observed, query.context);
    let means = means_at(gp, points.view());
    largest_feasible(gp, &without(means, unranked), query)
}

/// Replaces the values of these rows by −∞, so that they are not the largest.
pub fn without(mut values: Vec<f64>, rows: &[usize]) -> Vec<f64> {
    for &row in rows {
        values[row] = f64::NEG_INFINITY;
    }
    values
}

/// The posterior means at the observed rows in a context. Evaluations of the kernel are not needed if the context of all
/// rows is this context.
pub(super) fn means_at(gp: &GaussianProcess, points: ArrayView2<f64>) -> Vec<f64> {
    let n = gp.n_observed();
    if points != gp.rows().slice_move(ndarray::s![..n, ..]) {
        return gp.mean(points);
    }
    let mut means = gp.means_at_rows();
    means.truncate(n);
    means
}

/// Copies the rows, and replaces the context of every row by `context`.
pub(super) fn rows_in_context(rows: ArrayView2<f64>, context: &[f64]) -> Array2<f64> {
    let mut points = rows.to_owned();
    let first = points.ncols() - context.len();
    for (k, c) in context.iter().enumerate() {
        points.column_mut(first + k).fill(*c);
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gp::kernel::KernelFamily;
    use crate::gp::tests::{model, wave};
    use crate::maximize::feasible::Feasible;
    use crate::strategy::bayes::acquisitions::tests::{on_the_left, query};

    fn nowhere(points: ArrayView2<f64>) -> Result<Vec<bool>> {
        Ok(vec![false; points.nrows()])
    }

    #[test]
    fn rows_are_moved_to_a_context_of_several_columns() {
        let rows = wave(3, 4, 0.4);
        let moved = rows_in_context(rows.view(), &[7.0, 8.0]);
        for (row, moved) in rows.rows().into_iter().zip(moved.rows()) {
            assert_eq!(moved.to_vec(), [row[0], row[1], 7.0, 8.0]);
        }
    }

    #[test]
    fn improvement_is_measured_from_the_largest_feasible_value() {
        let gp = model(KernelFamily::Matern52, 15);
        let first = gp.rows().column(0).to_vec();
        // The values increase with x, and all values are below the prior mean.
        let values: Vec<f64> = first.iter().map(|x| x - 20.0).collect();
        let largest = |values: &[f64], feasible| largest_feasible(&gp, values, query(feasible));
        let everywhere = Feasible::EVERYWHERE;
        let best = first.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        assert_eq!(largest(&values, everywhere), Ok(best - 20.0));
        assert_eq!(largest(&[], everywhere), Ok(0.0));
        assert_eq!(largest(&[], Feasible::by(&on_the_left)), Ok(0.0));
        let left = first.iter().copied().filter(|x| *x < 0.0);
        let best_left = left.fold(f64::NEG_INFINITY, f64::max);
        let feasible = Feasible::by(&on_the_left);
        assert_eq!(largest(&values, feasible), Ok(best_left - 20.0));
        // If all observed points violate the constraints, the largest value is still used.
        let feasible = Feasible::by(&nowhere);
        assert_eq!(largest(&values, feasible), Ok(best - 20.0));
    }
}
