//! The curves of ended trials on a grid of steps, in standardised units, with the mean removed.

use std::collections::BTreeMap;

use ndarray::{Array2, ArrayViewMut1};

use super::{Curve, MIN_CURVES};
use crate::numerics::cholesky::{dot, factor_in_place, gram};
use crate::numerics::order::quartiles;
use crate::numerics::simd::substitute_forward;
use crate::numerics::warp::Warp;

/// The largest number of steps of the grid of a model.
pub const MAX_STEPS: usize = 63;

/// Differences at a step are clipped at this number of ranges outside the quartiles, where a range is the interquartile
/// range plus [`SMALLEST_RANGE`]. So one diverging training does not determine the covariance.
const REACH: f64 = 5.0;

/// The addition to the interquartile range of the differences at a step, in standardised units.
const SMALLEST_RANGE: f64 = 0.1;

/// The standard deviation of the prior of the slope c(t), whose mean is 1. With few curves, slopes that are estimated
/// freely make forecasts worse.
const SLOPE_STD: f64 = 0.25;

/// A bound on absolute values in standardised units, which only prevents overflow.
const LARGEST: f64 = 1e12;

/// Standardised values are (t(y) − centre)/scale, where t is the identity or a warp.
#[derive(Clone, Copy)]
pub struct Units {
    pub centre: f64,
    pub scale: f64,
    pub warp: Option<Warp>,
}

impl Units {
    /// Returns the median and the interquartile range of the last values. If the range is not larger than rounding
    /// errors, the mean absolute deviation replaces the range.
    fn of(finals: &[f64], curves: &[&Curve], warp: Option<Warp>) -> Self {
        let n = finals.len() as f64;
        let warped = |y: f64| warp.map_or(y, |warp| warp.apply(y));
        let finals: Vec<f64> = finals.iter().copied().map(warped).collect();
        let [low, centre, high] = quartiles(finals.clone());
        let sizes = |values: &mut dyn Iterator<Item = f64>| {
            quartiles(values.map(f64::abs).filter(|y| y.is_finite()).collect())[1]
        };
        let all = &mut curves
            .iter()
            .flat_map(|curve| curve.iter().map(|(_, y)| warped(*y)));
        let rounding = 1e-9 * sizes(all).max(sizes(&mut finals.iter().copied()));
        let deviation = finals.iter().map(|y| (y - centre).abs() / n).sum();
        let choices = [high - low, deviation];
        let scale = choices.into_iter().find(|&s| s > rounding && s.is_normal());
        let scale = scale.unwrap_or(if rounding.is_normal() { rounding } else { 1.0 });
        Self {
            centre,
            scale,
            warp,
        }
    }

    pub fn standardized(&self, y: f64) -> f64 {
        let y = self.warp.map_or(y, |warp| warp.apply(y));
        (y / self.scale - self.centre / self.scale).clamp(-LARGEST, LARGEST)
    }

    pub fn restored(&self, z: f64) -> f64 {
        let t = self.centre + self.scale * z;
        self.warp.map_or(t, |warp| warp.invert(t))
    }

    /// The change of a reported value per unit of the standardised value, at the value y.
    pub fn unit_at(&self, y: f64) -> f64 {
        let log_slope = self.warp.map_or(0.0, |warp| warp.log_slope(y));
        self.scale * (-log_slope).exp()
    }
}

/// The residuals of a linear regression of the values y_i(t) of n ended curves on their last values y_i(T), at k steps.
pub struct Table {
    pub units: Units,
    /// The steps, ascending (k,).
    pub steps: Vec<u32>,
    /// c(t) (k,).
    pub slope: Vec<f64>,
    /// m(t) (k,).
    pub mean: Vec<f64>,
    /// y_i(t) − y_i(T), or NaN without a report (n, k).
    differences: Array2<f64>,
    /// y_i(t) − c(t)·y_i(T) − m(t) (n, k).
    pub residuals: Array2<f64>,
    /// The sum over the curves of the covariance of the residuals of missing values (k, k).
    hidden: Array2<f64>,
    /// y_i(T), clipped (n,).
    pub lasts: Vec<f64>,
    /// The sum of the log of the slope of the warp over the values of the table. A missing value counts as the mean over
    /// the other values of the curve.
    pub log_slopes: f64,
}

impl Table {
    /// Returns `None` with too few curves.
    ///
    /// The steps of the table are the steps that at least half of the curves report. If there are more than `most`, a
    /// subset with logarithmic spacing is used.
    pub fn of(ended: &[&Curve], last_step: u32, warp: Option<Warp>, most: usize) -> Option<Self> {
        let curves: Vec<(&Curve, f64)> = complete_curves(ended, last_step).collect();
        let (curves, finals): (Vec<&Curve>, Vec<f64>) = curves.into_iter().unzip();
        let steps = grid(&curves, last_step, most);
        let rows: Vec<(Vec<f64>, f64)> = curves
            .iter()
            .zip(&finals)
            .map(|(curve, last)| (on_grid(curve, &steps), *last))
            .filter(|(row, _)| row.iter().any(|y| y.is_finite()))
            .collect();
        if rows.len() < MIN_CURVES {
            return None;
        }
        let units = Units::of(&finals, &curves, warp);
        let differences = Array2::from_shape_fn((rows.len(), steps.len()), |(i, j)| {
            units.standardized(rows[i].0[j]) - units.standardized(rows[i].1)
        });
        let lasts = rows.iter().map(|(_, last)| units.standardized(*last));
        let lasts: Vec<f64> = lasts.map(|y| y.clamp(-REACH, REACH)).collect();
        let mut residuals = differences.clone();
        let columns = residuals.columns_mut().into_iter();
        let (slope, mean) = columns.map(|column| regress(column, &lasts)).unzip();
        let logs: Vec<f64> = steps.iter().map(|&t| f64::from(t).ln()).collect();
        for row in residuals.rows_mut() {
            fill(row, &logs, f64::from(last_step).ln());
        }
        let log_slope = |y: f64| warp.map_or(0.0, |warp| warp.log_slope(y));
        let of_curve = |(row, last): &(Vec<f64>, f64)| {
            let known = row.iter().filter(|y| y.is_finite());
            let mean = known.clone().map(|y| log_slope(*y)).sum::<f64>() / known.count() as f64;
            log_slope(*last) + row.len() as f64 * mean
        };
        let log_slopes = rows.iter().map(of_curve).sum();
        let k = steps.len();
        Some(Self {
            units,
            steps,
            slope,
            mean,
            differences,
            residuals,
            hidden: Array2::zeros((k, k)),
            lasts,
            log_slopes,
        })
    }

    /// Whether a report is missing.
    pub fn has_gaps(&self) -> bool {
        self.differences.iter().any(|d| d.is_nan())
    }

    /// Replaces the missing values by their means given the other values of the curve, for residuals with this
    /// covariance, and computes the regression again. Without this step, the mean curve of each step would come from
    /// other curves, and interpolated residuals would hide a part of the noise.
    pub fn impute(&mut self, covariance: &Array2<f64>) {
        let mut completed = self.differences.clone();
        self.hidden.fill(0.0);
        let rows = completed.rows_mut().into_iter().zip(self.residuals.rows());
        for ((mut row, residuals), last) in rows.zip(&self.lasts) {
            let mut known = residuals.to_owned();
            known.zip_mut_with(&row, |r, d| {
                if d.is_nan() {
                    *r = f64::NAN;
                }
            });
            if known.iter().all(|r| !r.is_nan()) {
                continue;
            }
            impute_row(known.view_mut(), covariance, &mut self.hidden);
            for j in 0..row.len() {
                if row[j].is_nan() {
                    row[j] = known[j] + self.mean[j] + (self.slope[j] - 1.0) * last;
                }
            }
        }
        let columns = completed.columns_mut().into_iter();
        (self.slope, self.mean) = columns.map(|column| regress(column, &self.lasts)).unzip();
        self.residuals = completed;
    }

    /// S = (1/n) Σ_i r_i r_iᵀ for the residuals r_i (k, k), plus the covariance of the missing residuals.
    pub fn moments(&self) -> Array2<f64> {
        (gram(self.residuals.view()) + &self.hidden) / self.residuals.nrows() as f64
    }
}

/// The curves with a report at the last step and an earlier report, with their last values.
pub fn complete_curves<'a>(
    ended: &'a [&'a Curve],
    last_step: u32,
) -> impl Iterator<Item = (&'a Curve, f64)> {
    ended.iter().filter_map(move |curve| {
        let reports = || curve.iter().filter(|(_, value)| value.is_finite());
        let last = reports().find(|(step, _)| *step == last_step)?;
        let is_curve = reports().any(|(step, _)| (1..last_step).contains(step));
        is_curve.then_some((*curve, last.1))
    })
}

/// Returns the steps of the grid.
pub fn grid(curves: &[&Curve], last_step: u32, most: usize) -> Vec<u32> {
    let mut counts = BTreeMap::new();
    for (step, value) in curves.iter().flat_map(|curve| curve.iter()) {
        if value.is_finite() && (1..last_step).contains(step) {
            *counts.entry(*step).or_insert(0) += 1;
        }
    }
    counts.retain(|_, count| 2 * *count >= curves.len());
    let mut steps: Vec<u32> = counts.into_keys().collect();
    if steps.len() > most {
        let [first, last] = [steps[0], steps[steps.len() - 1]].map(|t| f64::from(t).ln());
        let interval = (last - first) / (most - 1) as f64;
        let near = |j: usize| {
            let target = (first + interval * j as f64).exp();
            let above = steps.partition_point(|&t| f64::from(t) < target);
            let pair = [above.saturating_sub(1), above.min(steps.len() - 1)].map(|i| steps[i]);
            let [low, high] = pair.map(|t| (f64::from(t) - target).abs());
            pair[usize::from(high <= low)]
        };
        let mut chosen: Vec<u32> = (0..most).map(near).collect();
        chosen.dedup();
        steps = chosen;
    }
    steps
}

/// Returns the values at the steps, or NaN at steps without a report.
fn on_grid(curve: &Curve, steps: &[u32]) -> Vec<f64> {
    let mut reports = curve.iter().peekable();
    let value = |&step: &u32| {
        while reports.next_if(|(t, _)| *t < step).is_some() {}
        let found = reports.next_if(|(t, _)| *t == step);
        found.map_or(f64::NAN, |&(_, value)| value)
    };
    steps.iter().map(value).collect()
}

/// Clips the differences d = y(t) − y(T) at a step, replaces them by the residuals y(t) − c·y(T) − m, and returns c and
/// m. NaN stays NaN.
///
/// c is the slope of the regression of y(t) on y(T), with the prior c ~ N(1, SLOPE_STD²): c − 1 = Σ d·x / (Σ x² +
/// s²/SLOPE_STD²), where x is y(T) about its mean, and s² is the variance of the residuals without the prior.
fn regress(mut column: ArrayViewMut1<f64>, lasts: &[f64]) -> (f64, f64) {
    let known: Vec<f64> = column.iter().copied().filter(|d| !d.is_nan()).collect();
    let n = known.len() as f64;
    let [low, _, high] = quartiles(known);
    let reach = REACH * (high - low + SMALLEST_RANGE);
    column.mapv_inplace(|d| d.clamp(low - reach, high + reach));
    let known = || column.iter().zip(lasts).filter(|(d, _)| !d.is_nan());
    let mean = known().map(|(d, _)| d).sum::<f64>() / n;
    let mean_last = known().map(|(_, y)| y).sum::<f64>() / n;
    let squares: f64 = known().map(|(_, y)| (y - mean_last).powi(2)).sum();
    let products: f64 = known().map(|(d, y)| d * (y - mean_last)).sum();
    let plain = if squares > 0.0 {
        products / squares
    } else {
        0.0
    };
    let rests = known().map(|(d, y)| (d - mean - plain * (y - mean_last)).powi(2));
    // A slope of exactly 0 would have no precision.
    let variance = (rests.sum::<f64>() / (n - 2.0).max(1.0)).max(1e-12);
    let weight = squares + variance / SLOPE_STD.powi(2);
    let slope = products / weight;
    for (d, y) in column.iter_mut().zip(lasts) {
        *d -= mean + slope * (y - mean_last);
    }
    (1.0 + slope, mean - slope * mean_last)
}

/// Replaces NaN in the residuals r of a curve, r ~ N(0, K), by the means given the other residuals, and adds the
/// covariance of the missing residuals given the others.
fn impute_row(mut row: ArrayViewMut1<f64>, covariance: &Array2<f64>, added: &mut Array2<f64>) {
    let (missing, known): (Vec<usize>, Vec<usize>) = (0..row.len()).partition(|&i| row[i].is_nan());
    let block = |(i, j)| covariance[[known[i], known[j]]];
    let mut factor = Array2::from_shape_fn((known.len(), known.len()), block);
    // The kernel contains noise, so K is positive definite up to rounding errors. If these errors matter, the curves are
    // degenerate, and their missing residuals count as 0.
    if factor_in_place(&mut factor).is_err() {
        row.mapv_inplace(|r| if r.is_nan() { 0.0 } else { r });
        return;
    }
    let columns = factor.as_slice().expect("the factor is contiguous");
    let solved = |mut v: Vec<f64>| {
        substitute_forward(columns, known.len(), &mut v);
        v
    };
    let r = solved(known.iter().map(|&i| row[i]).collect());
    let to_known = |&i: &usize| solved(known.iter().map(|&j| covariance[[i, j]]).collect());
    let crosses: Vec<Vec<f64>> = missing.iter().map(to_known).collect();
    for (&i, cross) in missing.iter().zip(&crosses) {
        row[i] = dot(cross, &r);
        for (&j, other) in missing.iter().zip(&crosses) {
            added[[i, j]] += covariance[[i, j]] - dot(cross, other);
        }
    }
}

/// Replaces NaN in the residuals of a curve by interpolation over the log of the step: towards 0 at the last step, and
/// constant before the first report.
pub fn fill(mut row: ArrayViewMut1<f64>, logs: &[f64], end: f64) {
    let (mut right, mut at) = (0.0, end);
    let mut missing = row.len();
    for j in (0..row.len()).rev() {
        if row[j].is_nan() {
            continue;
        }
        for i in j + 1..missing {
            row[i] = row[j] + (right - row[j]) * (logs[i] - logs[j]) / (at - logs[j]);
        }
        (right, at, missing) = (row[j], logs[j], j);
    }
    for i in 0..missing {
        row[i] = right;
    }
}
