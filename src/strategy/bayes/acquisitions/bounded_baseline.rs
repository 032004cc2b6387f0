//! Baseline points where other outcomes must lie inside bounds: the observed points that may be the best points inside
//! all bounds.
//!
//! Notation: mu and sigma are the posterior mean and standard deviation of f; P(x) is the probability that all bounded
//! outcomes lie inside their bounds at x.

use ndarray::{Array2, ArrayView2, Axis, s};

use super::formula::{Moments, OfMoments};
use super::incumbents::{feasible_rows, means_at, rows_in_context, without};
use super::log_inside::LogProbabilityInside;
use super::log_noisy_expected_improvement::MAX_BASELINE;
use crate::error::Result;
use crate::gp::GaussianProcess;
use crate::numerics::order::best_first;
use crate::strategy::Query;

/// The largest number of observed points for which P is computed. Each needs a solve of every bounded outcome.
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
    let observed = gp.rows().slice_move(s![..gp.n_observed(), ..]);
    let points = rows_in_context(observed, query.context);
    let mean = without(means_at(gp, points.view()), unranked);
    // A point has P ≥ ½ only if all means lie inside the bounds, so these points are examined first.
    let mut shortfall = vec![0.0; mean.len()];
    for outcome in bounds {
        let means = outcome.gp.mean(points.view());
        for (sum, mean) in shortfall.iter_mut().zip(means) {
            *sum += outcome.shortfall(mean);
        }
    }
    let mut order = best_first(&mean);
    order.truncate(mean.len() - unranked.len());
    match order.iter().any(|&row| shortfall[row] == 0.0) {
        true => order.sort_by_key(|&row| shortfall[row] > 0.0),
        false => order.sort_by(|&i, &j| shortfall[i].total_cmp(&shortfall[j])),
    }
    let order = feasible_rows(gp, &order, MAX_EXAMINED, query)?;
    let examined = points.select(Axis(0), &order);
    let log_p = log_probabilities_inside(bounds, examined.view());
    let (mean, variance) = gp.predict(examined.view());

    let is_likely = |&i: &usize| log_p[i] >= 0.5_f64.ln();
    let by_mean = best_first(&mean).into_iter();
    let possible = by_mean.filter(|&i| log_p[i] >= NEGLIGIBLE.ln());
    let (mut kept, mut unlikely): (Vec<usize>, Vec<usize>) = possible.partition(is_likely);
    let upper = |i: usize| mean[i] + 2.0 * variance[i].sqrt();
    if let Some(&best) = kept.first() {
        let lower_of_best = mean[best] - 2.0 * variance[best].sqrt();
        kept.retain(|&i| upper(i) >= lower_of_best);
        unlikely.retain(|&i| upper(i) >= lower_of_best);
    } else {
        unlikely.sort_by(|&i, &j| log_p[j].total_cmp(&log_p[i]));
    }
    kept.append(&mut unlikely);
    kept.truncate(MAX_BASELINE);
    Ok(examined.select(Axis(0), &kept))
}
