//! Incumbents. The improvement of a point is measured relative to an incumbent.
//!
//! A point that was observed in another context has not been observed in this context. Such a point is an incumbent
//! with its lower bound mu − 2 sigma, which is close to f(x) only where f is nearly known in this context.
//!
//! Notation: mu and sigma are the posterior mean and standard deviation of the noise-free value f(x). f* is an
//! incumbent: the improvement at a point is max(0, f − f*).

use ndarray::{Array2, ArrayView2, Axis, s};

use crate::error::Result;
use crate::gp::GaussianProcess;
use crate::numerics::order::best_first;
use crate::strategy::Query;

/// The multiplier of sigma in the lower bound at a point that was observed in another context.
pub(super) const MARGIN: f64 = 2.0;

/// The largest number of points of other contexts that are incumbents.
const MAX_ELSEWHERE: usize = 16;

/// Returns the first `count` rows of `order` whose points satisfy the constraints. If all points violate the
/// constraints, returns the first `count` rows of `order`, because improvement needs an incumbent.
pub fn feasible_rows(
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

/// The incumbent f*: the largest posterior mean at the points observed in the context of the query, or the largest lower
/// bound in this context at a point observed in another context. The points of the `unranked` rows are left out. Without
/// observed points, f* is the prior mean.
pub fn incumbent(gp: &GaussianProcess, unranked: &[usize], query: Query) -> Result<f64> {
    let mut values = gp.means_at_rows();
    values.truncate(gp.n_observed());
    let here = is_here(gp, query.context);
    let elsewhere = (0..values.len()).filter(|&row| !here[row]);
    values = without(values, &[elsewhere.collect(), unranked.to_vec()].concat());
    let (rows, points) = best_elsewhere(gp, unranked, query, |_| true)?;
    let (mean, variance) = gp.predict(points.view());
    for ((row, mean), variance) in rows.into_iter().zip(mean).zip(variance) {
        values[row] = mean - MARGIN * variance.sqrt();
    }
    largest_feasible(gp, &values, query)
}

/// Whether the context of each observed row is this context.
pub fn is_here(gp: &GaussianProcess, context: &[f64]) -> Vec<bool> {
    let (observed, width) = (s![..gp.n_observed(), ..], gp.rows().ncols());
    let rows = gp.rows().slice_move(observed);
    let contexts = rows.slice_move(s![.., width - context.len()..]);
    let contexts = contexts.rows().into_iter();
    contexts.map(|row| row.iter().eq(context)).collect()
}

/// The rows of other contexts with the largest posterior means in the context of the query, without the `unranked` rows,
/// and their points in this context. Only points that `admits` accepts are returned.
pub(super) fn best_elsewhere(
    gp: &GaussianProcess,
    unranked: &[usize],
    query: Query,
    admits: impl Fn(usize) -> bool,
) -> Result<(Vec<usize>, Array2<f64>)> {
    let here = is_here(gp, query.context);
    let is_elsewhere = |row: &usize| !here[*row] && !unranked.contains(row) && admits(*row);
    let rows: Vec<usize> = (0..here.len()).filter(is_elsewhere).collect();
    if rows.is_empty() {
        return Ok((rows, Array2::zeros((0, gp.rows().ncols()))));
    }
    let points = rows_in_context(gp.rows().select(Axis(0), &rows).view(), query.context);
    let order = best_first(&gp.mean(points.view()));
    let order: Vec<usize> = order.into_iter().map(|i| rows[i]).collect();
    let rows = feasible_rows(gp, &order, MAX_ELSEWHERE, query)?;
    let points = rows_in_context(gp.rows().select(Axis(0), &rows).view(), query.context);
    Ok((rows, points))
}

/// Replaces the values of these rows by −∞, so that they are not the largest.
pub fn without(mut values: Vec<f64>, rows: &[usize]) -> Vec<f64> {
    for &row in rows {
        values[row] = f64::NEG_INFINITY;
    }
    values
}

/// The posterior means at points, which may be the observed rows. In this case, evaluations of the kernel are not needed.
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
    use crate::gp::Hyperparameters;
    use crate::gp::kernel::KernelFamily;
    use crate::gp::tests::{model, wave};
    use crate::maximize::feasible::Feasible;
    use crate::strategy::bayes::acquisitions::log_noisy_expected_improvement::baseline_points;
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

    /// A model of rows whose second column is the context: 0 or 1.
    fn two_contexts() -> GaussianProcess {
        let mut rows = wave(14, 2, 0.4);
        for (i, mut row) in rows.rows_mut().into_iter().enumerate() {
            row[1] = f64::from(i % 3 == 0);
        }
        let theta = Hyperparameters::new(vec![0.5, 1.5], 1.0, 1e-4);
        let mut gp = GaussianProcess::new(KernelFamily::Matern52, &theta).unwrap();
        gp.append_rows(rows.view()).unwrap();
        let y: Vec<f64> = rows
            .rows()
            .into_iter()
            .map(|row| row[1] - (row[0] - 0.3).powi(2))
            .collect();
        gp.set_targets(&y).unwrap();
        gp
    }

    #[test]
    fn points_of_other_contexts_are_incumbents_with_their_lower_bounds() {
        let gp = two_contexts();
        for context in [0.0, 1.0, 0.4] {
            for unranked in [&[][..], &[3, 4]] {
                let mut expected = f64::NEG_INFINITY;
                for (i, row) in gp.rows().rows().into_iter().enumerate() {
                    let (mean, variance) = gp.predict(ndarray::arr2(&[[row[0], context]]).view());
                    let margin = match row[1] == context {
                        true => 0.0,
                        false => 2.0 * variance[0].sqrt(),
                    };
                    if !unranked.contains(&i) {
                        expected = expected.max(mean[0] - margin);
                    }
                }
                let here = Query {
                    context: &[context],
                    ..query(Feasible::EVERYWHERE)
                };
                let found = incumbent(&gp, unranked, here).unwrap();
                assert!(
                    (found - expected).abs() < 1e-9,
                    "{context} {found} {expected}"
                );
            }
        }
    }

    #[test]
    fn only_points_of_this_context_are_baseline_points() {
        let gp = two_contexts();
        for (context, n) in [(0.0, 9), (1.0, 5), (0.4, 0)] {
            let here = Query {
                context: &[context],
                ..query(Feasible::EVERYWHERE)
            };
            let points = baseline_points(&gp, &[], here).unwrap();
            assert!(points.nrows() <= n && (points.nrows() > 0) == (n > 0));
            assert!(points.column(1).iter().all(|c| *c == context));
            let (rows, elsewhere) = best_elsewhere(&gp, &[], here, |_| true).unwrap();
            assert_eq!(rows.len(), 14 - n);
            assert!(elsewhere.column(1).iter().all(|c| *c == context));
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
