//! The curves of ended trials on a grid of steps, in standardised units, with the mean removed.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use ndarray::{Array2, ArrayViewMut1};

use super::{Curve, MIN_CURVES};

/// The largest number of steps of the grid.
const MAX_STEPS: usize = 63;

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

/// Standardised values are (y − centre)/scale.
#[derive(Clone, Copy)]
pub struct Units {
    pub centre: f64,
    pub scale: f64,
}

impl Units {
    /// Returns the median and the interquartile range of the last values. If the range is not larger than rounding
    /// errors, the mean absolute deviation replaces the range.
    fn of(finals: &[f64], curves: &[&Curve]) -> Self {
        let n = finals.len() as f64;
        let [low, centre, high] = quartiles(finals.to_vec());
        let sizes = |values: &mut dyn Iterator<Item = f64>| {
            quartiles(values.map(f64::abs).filter(|y| y.is_finite()).collect())[1]
        };
        let all = &mut curves
            .iter()
            .flat_map(|curve| curve.iter().map(|(_, y)| *y));
        let rounding = 1e-9 * sizes(all).max(sizes(&mut finals.iter().copied()));
        let deviation = finals.iter().map(|y| (y - centre).abs() / n).sum();
        let choices = [high - low, deviation];
        let scale = choices.into_iter().find(|&s| s > rounding && s.is_normal());
        let scale = scale.unwrap_or(if rounding.is_normal() { rounding } else { 1.0 });
        Self { centre, scale }
    }

    pub fn standardized(&self, y: f64) -> f64 {
        (y / self.scale - self.centre / self.scale).clamp(-LARGEST, LARGEST)
    }

    pub fn restored(&self, z: f64) -> f64 {
        self.centre + self.scale * z
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
    /// y_i(t) − c(t)·y_i(T) − m(t) (n, k).
    pub residuals: Array2<f64>,
}

impl Table {
    /// Returns `None` with too few curves.
    ///
    /// The steps of the table are the steps that at least half of the curves report. If there are too many, a subset with
    /// logarithmic spacing is used.
    pub fn of<C: Borrow<Curve>>(ended: &[C], last_step: u32) -> Option<Self> {
        let (mut curves, mut finals) = (Vec::new(), Vec::new());
        for curve in ended.iter().map(Borrow::borrow) {
            let reports = || curve.iter().filter(|(_, value)| value.is_finite());
            let last = reports().find(|(step, _)| *step == last_step);
            if let Some(&(_, value)) = last
                && reports().any(|(step, _)| (1..last_step).contains(step))
            {
                curves.push(curve);
                finals.push(value);
            }
        }
        let steps = grid(&curves, last_step);
        let rows: Vec<(Vec<f64>, f64)> = curves
            .iter()
            .zip(&finals)
            .map(|(curve, last)| (on_grid(curve, &steps), *last))
            .filter(|(row, _)| row.iter().any(|y| y.is_finite()))
            .collect();
        if rows.len() < MIN_CURVES {
            return None;
        }
        let units = Units::of(&finals, &curves);
        let mut residuals = Array2::from_shape_fn((rows.len(), steps.len()), |(i, j)| {
            units.standardized(rows[i].0[j]) - units.standardized(rows[i].1)
        });
        let lasts: Vec<f64> = rows
            .iter()
            .map(|(_, last)| units.standardized(*last))
            .collect();
        let lasts: Vec<f64> = lasts.iter().map(|y| y.clamp(-REACH, REACH)).collect();
        let columns = residuals.columns_mut().into_iter();
        let (slope, mean) = columns.map(|column| regress(column, &lasts)).unzip();
        let logs: Vec<f64> = steps.iter().map(|&t| f64::from(t).ln()).collect();
        for row in residuals.rows_mut() {
            fill(row, &logs, f64::from(last_step).ln());
        }
        Some(Self {
            units,
            steps,
            slope,
            mean,
            residuals,
        })
    }
}

/// Returns the steps of the grid.
fn grid(curves: &[&Curve], last_step: u32) -> Vec<u32> {
    let mut counts = BTreeMap::new();
    for (step, value) in curves.iter().flat_map(|curve| curve.iter()) {
        if value.is_finite() && (1..last_step).contains(step) {
            *counts.entry(*step).or_insert(0) += 1;
        }
    }
    counts.retain(|_, count| 2 * *count >= curves.len());
    let mut steps: Vec<u32> = counts.into_keys().collect();
    if steps.len() > MAX_STEPS {
        let [first, last] = [steps[0], steps[steps.len() - 1]].map(|t| f64::from(t).ln());
        let interval = (last - first) / (MAX_STEPS - 1) as f64;
        let near = |j: usize| {
            let target = (first + interval * j as f64).exp();
            let above = steps.partition_point(|&t| f64::from(t) < target);
            let pair = [above.saturating_sub(1), above.min(steps.len() - 1)].map(|i| steps[i]);
            let [low, high] = pair.map(|t| (f64::from(t) - target).abs());
            pair[usize::from(high <= low)]
        };
        let mut chosen: Vec<u32> = (0..MAX_STEPS).map(near).collect();
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
    let variance = rests.sum::<f64>() / (n - 2.0).max(1.0);
    let weight = squares + variance / SLOPE_STD.powi(2);
    let slope = if weight > 0.0 { products / weight } else { 0.0 };
    for (d, y) in column.iter_mut().zip(lasts) {
        *d -= mean + slope * (y - mean_last);
    }
    (1.0 + slope, mean - slope * mean_last)
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

/// Returns the quartiles of the values, with linear interpolation; zeros without values.
fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    if values.is_empty() {
        return [0.0; 3];
    }
    values.sort_by(f64::total_cmp);
    [0.25, 0.5, 0.75].map(|q| {
        let position = q * (values.len() - 1) as f64;
        let (i, part) = (position.floor() as usize, position.fract());
        let next = values[(i + 1).min(values.len() - 1)];
        values[i] * (1.0 - part) + next * part
    })
}
