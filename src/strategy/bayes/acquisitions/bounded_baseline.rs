//! Baseline points where other outcomes must lie inside bounds: the observed points that may be the best points inside
//! all bounds.
//!
//! Notation: mu and sigma are the posterior mean and standard deviation of f; P(x) is the probability that all bounded
//! outcomes lie inside their bounds at x.

use ndarray::{Array2, ArrayView2, Axis, s};

use super::formula::{Moments, OfMoments};
use super::incumbents::{feasible_rows, is_here, means_at};
use super::log_inside::LogProbabilityInside;
use super::log_noisy_expected_improvement::MAX_BASELINE;
use crate::error::Result;
use crate::gp::GaussianProcess;
use crate::numerics::order::best_first;
use crate::strategy::Query;

/// The largest number of observed points among which the baseline points are found. P needs a solve of every bounded
/// outcome at each of the points whose means lie inside all bounds.
const MAX_EXAMINED: usize = 4 * MAX_BASELINE;

/// A point with a smaller P cannot be the best point.
const NEGLIGIBLE: f64 = 0.01;

/// A bounded outcome: its posterior given the observed rows, and its bounds in the units of its targets.
#[derive(Clone, Copy)]
pub struct BoundedPosterior<'a> {
    pub gp: &'a GaussianProcess,
    pub low: f64,
    pub high: f64,
}

impl BoundedPosterior<'_> {
    /// How far a mean lies outside the bounds, in prior standard deviations.
    fn shortfall(&self, mean: f64) -> f64 {
        let std = self.gp.hyperparameters().signal_variance.sqrt();
        (self.low - mean).max(mean - self.high).max(0.0) / std
    }
}

/// Returns log P at the rows of `points`.
pub fn log_probabilities_inside(bounds: &[BoundedPosterior], points: ArrayView2<f64>) -> Vec<f64> {
    let mut sums = vec![0.0; points.nrows()];
    for &BoundedPosterior { gp, low, high } in bounds {
        let (mean, variance) = gp.predict(points);
        let log_inside = LogProbabilityInside { low, high };
        for (sum, (mean, variance)) in sums.iter_mut().zip(mean.into_iter().zip(variance)) {
            *sum += log_inside.value(Moments { mean, variance });
        }
    }
    sums
}

/// The baseline points of [`super::log_noisy_expected_improvement::baseline_points`] with bounds. The points with P ≥ ½
/// are first, and the points of both parts are sorted by mu.
///
/// Let l be mu − 2 sigma at the point with the largest mu among the points with P ≥ ½. A point may be the best point if
/// P is not negligible, and mu + 2 sigma is at least l. Without a point with P ≥ ½, the points with the largest P are
/// the baseline.
pub fn bounded_baseline_points(
    gp: &GaussianProcess,
    unranked: &[usize],
    bounds: &[BoundedPosterior],
    query: Query,
) -> Result<Array2<f64>> {
    let here = is_here(gp, query.context);
    let points = gp.rows().slice_move(s![..here.len(), ..]);
    let mean = means_at(gp, points);
    let mut shortfall = vec![0.0; mean.len()];
    for outcome in bounds {
        let means = means_at(outcome.gp, points);
        for (sum, mean) in shortfall.iter_mut().zip(means) {
            *sum += outcome.shortfall(mean);
        }
    }
    let mut order = best_first(&mean);
    order.retain(|row| here[*row] && !unranked.contains(row));
    // P ≥ ½ only if all means lie inside the bounds, so these points are first.
    let is_inside = |row: &usize| shortfall[*row] == 0.0;
    match order.iter().any(is_inside) {
        true => order.sort_by_key(|row| !is_inside(row)),
        false => order.sort_by(|&i, &j| shortfall[i].total_cmp(&shortfall[j])),
    }
    let order = feasible_rows(gp, &order, MAX_EXAMINED, query)?;
    let (inside, mut outside): (Vec<usize>, Vec<usize>) = order.into_iter().partition(is_inside);
    outside.truncate(MAX_BASELINE);
    let (mut likely, mut unlikely) = (Vec::new(), Vec::new());
    let mut sort = |rows: &[usize]| {
        let log_p = log_probabilities_inside(bounds, points.select(Axis(0), rows).view());
        for (&row, log_p) in rows.iter().zip(log_p) {
            if log_p >= 0.5_f64.ln() {
                likely.push(row);
            } else if log_p >= NEGLIGIBLE.ln() {
                unlikely.push((row, log_p));
            }
        }
        likely.len()
    };
    for rows in inside.chunks(MAX_BASELINE) {
        if sort(rows) >= MAX_BASELINE {
            break;
        }
    }
    sort(&outside);
    likely.truncate(MAX_BASELINE);
    if likely.is_empty() {
        unlikely.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    } else {
        unlikely.sort_by(|(i, _), (j, _)| mean[*j].total_cmp(&mean[*i]));
    }

    let mut kept = likely;
    let n_likely = kept.len();
    kept.extend(unlikely.into_iter().map(|(row, _)| row));
    kept.truncate(MAX_BASELINE);
    let (mean, variance) = gp.predict(points.select(Axis(0), &kept).view());
    if n_likely > 0 {
        let lower_of_best = mean[0] - 2.0 * variance[0].sqrt();
        let upper = |i: usize| mean[i] + 2.0 * variance[i].sqrt();
        let rows = kept.into_iter().enumerate();
        kept = rows
            .filter(|&(i, _)| upper(i) >= lower_of_best)
            .map(|(_, row)| row)
            .collect();
    }
    Ok(points.select(Axis(0), &kept))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gp::as_row;
    use crate::gp::kernel::KernelFamily;
    use crate::gp::tests::model;
    use crate::maximize::feasible::Feasible;
    use crate::strategy::bayes::acquisitions::log_noisy_expected_improvement::baseline_points;
    use crate::strategy::bayes::acquisitions::tests::{on_the_left, outcome, query};

    const INFINITY: f64 = f64::INFINITY;

    fn points(found: Array2<f64>) -> Vec<Vec<f64>> {
        found.rows().into_iter().map(|x| x.to_vec()).collect()
    }

    /// mu, sigma, P and the point of every row of f, computed row by row.
    fn moments(
        gp: &GaussianProcess,
        g: &GaussianProcess,
        high: f64,
    ) -> Vec<(f64, f64, f64, Vec<f64>)> {
        let of_row = |x: ndarray::ArrayView1<f64>| {
            let x = as_row(x.to_vec());
            let (mean, variance) = gp.predict(x.view());
            let (g_mean, g_variance) = g.predict(x.view());
            let u = (high - g_mean[0]) / g_variance[0].sqrt();
            let p = 0.5 * libm::erfc(-u / std::f64::consts::SQRT_2);
            (
                mean[0],
                variance[0].sqrt(),
                p,
                x.into_raw_vec_and_offset().0,
            )
        };
        gp.rows().rows().into_iter().map(of_row).collect()
    }

    #[test]
    fn points_that_may_be_the_best_inside_are_the_baseline() {
        let (gp, g) = (model(KernelFamily::Matern52, 15), outcome(9));
        let mut n_unlikely = 0;
        for (high, constrained) in [
            (0.0, false),
            (0.0, true),
            (-0.4, false),
            (0.3, false),
            (0.5, false),
        ] {
            let bounds = BoundedPosterior {
                gp: &g,
                low: -INFINITY,
                high,
            };
            let feasible = match constrained {
                true => Feasible::by(&on_the_left),
                false => Feasible::EVERYWHERE,
            };
            let mut rows = moments(&gp, &g, high);
            rows.retain(|(.., x)| !constrained || x[0] < 0.0);
            rows.sort_by(|a, b| b.0.total_cmp(&a.0));
            let best = rows.iter().find(|(_, _, p, _)| *p >= 0.5).unwrap();
            let lower = best.0 - 2.0 * best.1;
            rows.retain(|(mean, std, p, _)| *p >= 0.01 && mean + 2.0 * std >= lower);
            rows.sort_by_key(|(_, _, p, _)| *p < 0.5);
            n_unlikely += rows.iter().filter(|(_, _, p, _)| *p < 0.5).count();
            let expected: Vec<_> = rows.into_iter().map(|(.., x)| x).collect();
            let found = bounded_baseline_points(&gp, &[], &[bounds], query(feasible)).unwrap();
            assert_eq!(points(found), expected);
        }
        assert!(n_unlikely > 0);
    }

    #[test]
    fn the_most_probable_points_are_the_baseline_if_no_point_is_probably_inside() {
        let (gp, g) = (model(KernelFamily::Matern52, 15), outcome(9));
        // Just below the smallest mean.
        let means = g.mean(gp.rows());
        let high = means.into_iter().fold(INFINITY, f64::min) - 0.01;
        let bounds = BoundedPosterior {
            gp: &g,
            low: -INFINITY,
            high,
        };
        let mut rows = moments(&gp, &g, high);
        rows.retain(|(_, _, p, _)| *p >= 0.01);
        assert!(!rows.is_empty() && rows.iter().all(|(_, _, p, _)| *p < 0.5));
        rows.sort_by(|a, b| b.2.total_cmp(&a.2));
        let expected: Vec<_> = rows.into_iter().map(|(.., x)| x).collect();
        let here = query(Feasible::EVERYWHERE);
        let found = bounded_baseline_points(&gp, &[], &[bounds], here).unwrap();
        assert_eq!(points(found), expected);
        // Outside the bounds everywhere, there is no baseline.
        let never = BoundedPosterior {
            high: -50.0,
            ..bounds
        };
        let found = bounded_baseline_points(&gp, &[], &[never], here).unwrap();
        assert_eq!(found.nrows(), 0);
    }

    #[test]
    fn bounds_that_are_always_met_do_not_change_the_baseline() {
        let (gp, g) = (model(KernelFamily::Matern52, 60), outcome(9));
        let always = BoundedPosterior {
            gp: &g,
            low: -50.0,
            high: INFINITY,
        };
        for feasible in [Feasible::EVERYWHERE, Feasible::by(&on_the_left)] {
            for context in [&[][..], &[0.3]] {
                let here = Query {
                    context,
                    ..query(feasible)
                };
                for unranked in [&[][..], &[3, 14]] {
                    let expected = baseline_points(&gp, unranked, here).unwrap();
                    for bounds in [&[][..], &[always]] {
                        let found = bounded_baseline_points(&gp, unranked, bounds, here).unwrap();
                        assert_eq!(found, expected);
                    }
                }
            }
        }
    }
}
