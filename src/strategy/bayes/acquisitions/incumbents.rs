//! Incumbents. The improvement of a point is measured relative to an incumbent.
//!
//! Notation: mu and sigma are the posterior mean and standard deviation of the noise-free value f(x). f* is an
//! incumbent: the improvement at a point is max(0, f − f*).

use std::borrow::BorrowMut;

use ndarray::{Array2, ArrayView1, ArrayView2, Axis};

use crate::error::Result;
use crate::gp::fantasies::Fantasies;
use crate::gp::{Conditioned, GaussianProcess, TailStatement};
use crate::numerics::order::best_first;
use crate::numerics::special::normal_quantile;
use crate::problem::unit_sequence;
use crate::random::Rng;
use crate::strategy::Query;
use crate::strategy::bayes::acquisitions::log_noisy_expected_improvement::LogNoisyExpectedImprovement;
use crate::strategy::bayes::acquisitions::rule::Situation;

/// The largest number of baseline points.
const MAX_BASELINE: usize = 16;

/// Returns the first `count` rows of `order` whose points satisfy the constraints. If all points violate the
/// constraints, returns the first `count` rows of `order`, because improvement needs an incumbent.
fn feasible_rows(
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
/// the context of the query. The points of the `stopped` rows are left out. Without observed points, f* is the prior
/// mean.
pub fn incumbent(gp: &GaussianProcess, stopped: &[usize], query: Query) -> Result<f64> {
    let observed = gp.rows().slice_move(ndarray::s![..gp.n_observed(), ..]);
    let points = rows_in_context(observed, query.context);
    let means = means_at(gp, points.view());
    largest_feasible(gp, &without(means, stopped), query)
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
fn means_at(gp: &GaussianProcess, points: ArrayView2<f64>) -> Vec<f64> {
    let n = gp.n_observed();
    if points != gp.rows().slice_move(ndarray::s![..n, ..]) {
        return gp.mean(points);
    }
    let mut means = gp.means_at_rows();
    means.truncate(n);
    means
}

/// Copies the rows, and replaces the context of every row by `context`.
fn rows_in_context(rows: ArrayView2<f64>, context: &[f64]) -> Array2<f64> {
    let mut points = rows.to_owned();
    let first = points.ncols() - context.len();
    for (k, c) in context.iter().enumerate() {
        points.column_mut(first + k).fill(*c);
    }
    points
}

/// Noisy expected improvement. The improvement is averaged over n quasi-random draws of f at the baseline points and at
/// the pending points, which are the noiseless rows of the tail. The incumbent of a draw is the largest value in the
/// draw.
///
/// A statement about the value of a pending trial is an observation of f whose noise variance is larger by λ.
pub fn noisy_expected_improvement(
    situation: Situation,
    n: usize,
    rng: &mut Rng,
) -> Result<LogNoisyExpectedImprovement> {
    let Situation { gp, query, .. } = situation;
    let tail = gp.tail();
    let n_baseline = tail.nrows() - situation.n_pending;
    let about_f = |statement: &TailStatement| TailStatement {
        row: n_baseline + statement.row,
        variance: statement.variance + gp.noise_variance(),
        ..*statement
    };
    let statements: Vec<_> = situation.statements.iter().map(about_f).collect();
    let uniform = unit_sequence(n, tail.nrows(), rng);
    let normal = |u: f64| normal_quantile(u.clamp(1e-12, 1.0 - 1e-12));
    let mut draws = uniform.mapv(normal);
    gp.condition_draws(&mut draws, &statements)?;
    let fantasies = gp.fantasies(draws)?;
    // An incumbent is the value of a point in the context of the query, because the best point would be used in this
    // context.
    let in_context = rows_in_context(tail, query.context);
    let values = values(gp, &fantasies, in_context.view());
    let largest = |draw: ArrayView1<f64>| draw.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Ok(LogNoisyExpectedImprovement {
        incumbents: values.rows().into_iter().map(largest).collect(),
        fantasies,
    })
}

/// The posterior means (m fantasies, p) at the rows of `points` (p, d), which are the rows of the tail in a context. Only
/// the points that differ from their rows of the tail need solves.
fn values<G: BorrowMut<GaussianProcess>>(
    gp: &Conditioned<G>,
    fantasies: &Fantasies,
    points: ArrayView2<f64>,
) -> Array2<f64> {
    let mut values = fantasies.means_at_tail(gp);
    let moved: Vec<usize> = (0..points.nrows())
        .filter(|&i| gp.tail().row(i) != points.row(i))
        .collect();
    let (means, _) = fantasies.predict(gp, points.select(Axis(0), &moved).view());
    for (&i, means) in moved.iter().zip(means.rows()) {
        values.column_mut(i).assign(&means);
    }
    values
}

/// The baseline points, which are the observed points that may be the best points in this context. The points are
/// sorted by mu. The points of the `stopped` rows are left out.
///
/// Let l be mu − 2 sigma at the point with the largest mu. A point may be the best point if mu + 2 sigma at this point
/// is at least l.
pub fn baseline_points(
    gp: &GaussianProcess,
    stopped: &[usize],
    query: Query,
) -> Result<Array2<f64>> {
    let observed = gp.rows().slice_move(ndarray::s![..gp.n_observed(), ..]);
    let points = rows_in_context(observed, query.context);
    let mean = without(means_at(gp, points.view()), stopped);
    let mut order = best_first(&mean);
    order.truncate(mean.len() - stopped.len());
    let order = feasible_rows(gp, &order, MAX_BASELINE, query)?;
    let (mean, variance) = gp.predict(points.select(Axis(0), &order).view());
    let upper = |i: usize| mean[i] + 2.0 * variance[i].sqrt();
    let lower_of_best = mean
        .first()
        .map_or(0.0, |best| best - 2.0 * variance[0].sqrt());
    let kept: Vec<usize> = (0..order.len())
        .filter(|&i| upper(i) >= lower_of_best)
        .map(|i| order[i])
        .collect();
    Ok(points.select(Axis(0), &kept))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gp::kernel::KernelFamily;
    use crate::gp::tests::{model, wave};
    use crate::maximize::feasible::Feasible;
    use rand::SeedableRng;

    fn query(feasible: Feasible) -> Query {
        Query {
            now: 0.0,
            wall_time: None,
            context: &[],
            fidelity: None,
            feasible,
            limit: None,
        }
    }

    fn on_the_left(points: ArrayView2<f64>) -> Result<Vec<bool>> {
        Ok(points.rows().into_iter().map(|x| x[0] < 0.0).collect())
    }

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
    fn baseline_points_are_the_possibly_best_points_in_order_of_their_means() {
        let gp = model(KernelFamily::Matern52, 15);
        for constrained in [false, true] {
            let feasible = match constrained {
                true => Feasible::by(&on_the_left),
                false => Feasible::EVERYWHERE,
            };
            let mut expected = Vec::new();
            for x in gp.rows().rows() {
                let (mean, variance) = gp.predict(x.insert_axis(Axis(0)));
                if !constrained || x[0] < 0.0 {
                    expected.push((mean[0], variance[0].sqrt(), x.to_vec()));
                }
            }
            expected.sort_by(|a, b| b.0.total_cmp(&a.0));
            let lower = expected[0].0 - 2.0 * expected[0].1;
            expected.retain(|(mean, std, _)| mean + 2.0 * std >= lower);
            let points = baseline_points(&gp, &[], query(feasible)).unwrap();
            let points: Vec<_> = points.rows().into_iter().map(|x| x.to_vec()).collect();
            let expected: Vec<_> = expected.into_iter().map(|(_, _, x)| x).collect();
            assert_eq!(points, expected);
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

    #[test]
    fn values_of_fantasies_equal_predictions_in_every_context() {
        let tail = wave(4, 2, 5.0);
        let (baseline, pending) = tail.view().split_at(Axis(0), 2);
        let gp = model(KernelFamily::Matern52, 15);
        let gp = Conditioned::on_noiseless(gp, baseline, pending).unwrap();
        let fantasies = gp.fantasies(wave(6, 4, 2.2)).unwrap();
        // The second context equals the context of one row.
        for context in [vec![], vec![tail[[2, 1]]]] {
            let points = rows_in_context(tail.view(), &context);
            let (expected, _) = fantasies.predict(&gp, points.view());
            let values = values(&gp, &fantasies, points.view());
            assert!((values - expected.t()).iter().all(|e| e.abs() < 1e-9));
        }
    }

    #[test]
    fn incumbents_of_noisy_improvement_are_draws_of_the_largest_value() {
        // The only row has mean m and variance v. A pending point is far from this row, and has the prior mean 0 and
        // the prior variance 1.3.
        let n = 4096;
        for tail in [0, 1] {
            let mut gp = model(KernelFamily::Matern52, 1);
            let (mean, variance) = gp.predict(wave(1, 2, 0.4).view());
            let (m, v) = (mean[0], variance[0]);
            let far = Array2::from_elem((tail, 2), 500.0);
            let mut rng = Rng::seed_from_u64(1);
            let query = query(Feasible::EVERYWHERE);
            let baseline = baseline_points(&gp, &[], query).unwrap();
            let situation = Situation {
                gp: &Conditioned::on_noiseless(&mut gp, baseline.view(), far.view()).unwrap(),
                targets: &[],
                stopped: &[],
                n_pending: tail,
                statements: &[],
                n_outcomes: Some(n),
                nu: 1.0,
                lower_bound: None,
                query,
            };
            let noisy = noisy_expected_improvement(situation, n, &mut rng).unwrap();
            assert_eq!(noisy.incumbents.len(), n);
            let average = |f: &dyn Fn(f64) -> f64| {
                noisy.incumbents.iter().map(|y| f(*y)).sum::<f64>() / n as f64
            };
            let (first, second) = (average(&|y| y), average(&|y| y * y));
            // The expected values of max and max² for two independent normal variables, with a² = v + 1.3 and α = m/a
            // (Clark 1961).
            let (expected_first, expected_second) = match tail {
                0 => (m, v + m * m),
                _ => {
                    let a = (v + 1.3).sqrt();
                    let alpha = m / a;
                    let cdf = 0.5 * libm::erfc(-alpha / std::f64::consts::SQRT_2);
                    let density = (-0.5 * alpha * alpha).exp() / std::f64::consts::TAU.sqrt();
                    let second = (m * m + v) * cdf + 1.3 * (1.0 - cdf) + m * a * density;
                    (m * cdf + a * density, second)
                }
            };
            assert!(
                (first - expected_first).abs() < 0.01,
                "{first} {expected_first}"
            );
            assert!(
                (second - expected_second).abs() < 0.03,
                "{second} {expected_second}"
            );
        }
    }
}
