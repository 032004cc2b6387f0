//! The targets of the model. This module computes the center and the scale of the targets, and the targets of discarded
//! trials.
//!
//! A target is (t(y) − center)/scale, where t is the identity or a [`Warp`]. The prior mean of the model is 0, so the
//! center is the prior mean of t(f). A fit chooses the center and the scale, which are the units of the targets. The
//! units do not change until the next fit, because θ depends on the units.

use crate::curves::PseudoObservation;
use crate::gp::Target;
use crate::numerics::order::median;
use crate::numerics::warp::Warp;
use crate::strategy::bayes::model::context_units::ContextUnits;
use crate::strategy::bayes::settings::Settings;
use crate::strategy::bayes::settings::pending::Levels;
use crate::strategy::bayes::settings::surrogate::{MIN_NOISE, PriorMean, TargetScale};
use crate::strategy::units::Units;

/// The largest noise variance of a value, in the units of the model. A larger noise variance would make the factor
/// inaccurate.
pub const MAX_NOISE: f64 = 1e12;

/// The largest absolute target of a pseudo-observation, relative to the largest absolute target of an observed value.
/// Only observed values determine the units, so without this bound the target of a diverging curve could overflow.
const MAX_PSEUDO: f64 = 100.0;

/// The value of a row, in units of f.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RowValue {
    Observed {
        value: f64,
        /// The standard deviation of the noise, if it was declared.
        std: Option<f64>,
    },
    /// The trial was stopped. The pseudo-observation is missing if its curve lacks usable reports.
    Stopped(Option<PseudoObservation>),
    /// The window of the trial has passed.
    Discarded,
}

impl RowValue {
    /// The value in comparable units, for a row with this encoded context.
    pub fn comparable(self, contexts: &ContextUnits, row: &[f64]) -> Self {
        match self {
            Self::Observed { value, std } if !contexts.are_equal() => {
                let here = contexts.of(row);
                Self::Observed {
                    value: here.comparable(value),
                    std: std.map(|std| std / here.scale),
                }
            }
            Self::Stopped(pseudo) => {
                Self::Stopped(pseudo.map(|pseudo| contexts.comparable_pseudo(pseudo, row)))
            }
            value => value,
        }
    }
}

impl RowValue {
    /// The observed or pseudo-observed value, if any.
    pub fn value(self) -> Option<f64> {
        match self {
            RowValue::Observed { value, .. } => Some(value),
            RowValue::Stopped(pseudo) => pseudo.map(|pseudo| pseudo.value),
            RowValue::Discarded => None,
        }
    }
}

/// The targets of rows, and the units of the targets.
#[derive(Debug, Clone, PartialEq)]
pub struct Targets {
    pub values: Vec<f64>,
    pub units: Units,
    pub levels: Levels,
    /// The largest absolute target of a pseudo-observation.
    pub bound: f64,
}

impl Targets {
    /// Computes the targets of rows. The units are computed from the observed values under a warp.
    pub fn of(rows: &[RowValue], settings: &Settings, warp: Option<Warp>) -> Self {
        let warped = |y: f64| warp.map_or(y, |warp| warp.apply(y));
        let (mut observed, mut stds) = (Vec::new(), Vec::new());
        for row in rows {
            if let RowValue::Observed { value, std } = *row {
                let slope = warp.map_or(1.0, |warp| warp.log_slope(value).exp());
                observed.push(warped(value));
                stds.push(std.unwrap_or(0.0) * slope);
            }
        }
        let worst = observed.iter().copied().reduce(f64::min);
        let floor = settings.pending().floor().map(warped).or(worst);
        let floor = floor.unwrap_or(0.0);
        let (center, scale) = center_and_scale(&observed, &stds, floor, settings, &warped);
        let units = Units {
            center,
            scale,
            warp,
        };
        Self::in_units(rows, settings, units)
    }

    /// Computes the targets of rows in the given units. The target of a discarded trial is the floor; the target of a
    /// stopped trial is its pseudo-observed value, or the prior mean.
    pub fn in_units(rows: &[RowValue], settings: &Settings, units: Units) -> Self {
        let observed = rows.iter().filter_map(|row| match *row {
            RowValue::Observed { value, .. } => Some(value),
            RowValue::Stopped(_) | RowValue::Discarded => None,
        });
        let values: Vec<f64> = observed.collect();
        let bound = MAX_PSEUDO
            * values
                .iter()
                .map(|y| units.target(*y).abs())
                .fold(1.0, f64::max);
        let lie = settings.pending().lie(&values);
        let worst = values.into_iter().reduce(f64::min);
        let target = |y: f64| units.target(y);
        let floor = settings.pending().floor().or(worst);
        // Before the first value has arrived, the floor is 0 in units of f.
        let floor = floor.map_or(-units.center / units.scale, target);
        let values = rows
            .iter()
            .map(|row| match *row {
                RowValue::Observed { value, .. } => target(value),
                RowValue::Stopped(pseudo) => {
                    pseudo.map_or(0.0, |pseudo| target(pseudo.value).clamp(-bound, bound))
                }
                RowValue::Discarded => floor,
            })
            .collect();
        Self {
            values,
            units,
            levels: Levels {
                floor,
                lie: lie.map_or(0.0, target),
            },
            bound,
        }
    }
}

impl Targets {
    /// The target of a pending trial with a pseudo-observation.
    pub fn pseudo_observed(&self, pseudo: PseudoObservation) -> Target {
        let std = pseudo.variance.sqrt();
        Target::PseudoObserved {
            value: self
                .units
                .target(pseudo.value)
                .clamp(-self.bound, self.bound),
            variance: variance_of_target(self.units, pseudo.value, std).max(MIN_NOISE),
        }
    }

    /// Shifts the targets so that `mean`, in the current units, becomes the new prior mean.
    pub fn move_center(&mut self, mean: f64) {
        self.units.center += mean * self.units.scale;
        self.values.iter_mut().for_each(|y| *y -= mean);
        self.levels.floor -= mean;
        self.levels.lie -= mean;
    }
}

/// The variance of the target of a value with this standard deviation. It is at most [`MAX_NOISE`].
pub fn variance_of_target(units: Units, value: f64, std: f64) -> f64 {
    units.std_of_target(value, std).powi(2).min(MAX_NOISE)
}

/// Computes the prior mean and the unit of the model. The observed values are already warped. For each value, `stds`
/// contains the standard deviation of the noise, or 0 if the standard deviation is unknown.
fn center_and_scale(
    observed: &[f64],
    stds: &[f64],
    floor: f64,
    settings: &Settings,
    warped: &dyn Fn(f64) -> f64,
) -> (f64, f64) {
    let pending = settings.pending();
    let gp = &settings.surrogate;
    let (mut center, scale) = if gp.targets == TargetScale::Raw {
        (0.0, 1.0)
    } else {
        standardized(observed, stds, pending.is_censor().then_some(floor))
    };
    match gp.mean {
        PriorMean::Number(mean) => center = warped(mean),
        PriorMean::Median if !observed.is_empty() => center = median(observed),
        _ => {}
    }
    if gp.targets == TargetScale::Raw {
        return (center, scale);
    }
    let assumed = pending.assumed_value(floor).map(warped);
    // If a value is extremely far from the prior mean, rounding would remove differences of one unit, so the unit is
    // enlarged. The distances are computed from halved numbers, because differences of halved numbers do not overflow.
    let half_reach = observed
        .iter()
        .chain(&assumed)
        .map(|y| (0.5 * y - 0.5 * center).abs())
        .fold(0.0, f64::max);
    if half_reach > 1e12 * scale {
        (center, half_reach)
    } else {
        (center, scale)
    }
}

/// Returns the mean and standard deviation of f, estimated from the observed values. If a floor is given, return the
/// floor and the largest distance of a value from the floor instead.
fn standardized(observed: &[f64], stds: &[f64], floor: Option<f64>) -> (f64, f64) {
    let largest = observed
        .iter()
        .chain(&floor)
        .fold(0.0, |m: f64, y| m.max(y.abs()));
    if observed.is_empty() || largest == 0.0 {
        return (floor.unwrap_or(0.0), 1.0);
    }
    match floor {
        // The moments are computed from y / max|y|, to avoid overflow and underflow.
        None => {
            let n = observed.len() as f64;
            let mean = observed.iter().map(|y| y / largest).sum::<f64>() / n;
            let squares = observed.iter().map(|y| (y / largest - mean).powi(2));
            let variance = squares.sum::<f64>() / n;
            let (mean, spread) = match stds.iter().any(|std| *std > 0.0) {
                true => without_noise(observed, stds, largest, (mean, variance.sqrt())),
                false => (mean, variance.sqrt()),
            };
            (mean * largest, usable_scale(spread, largest))
        }
        // The unit is the largest distance of a value from the floor. If the unit were the spread of the observed
        // values, the floor could be tens of units below the values, for example if f is an accuracy.
        Some(floor) => {
            let reach = observed
                .iter()
                .map(|y| (y / largest - floor / largest).abs())
                .fold(0.0, f64::max);
            (floor, usable_scale(reach, largest))
        }
    }
}

/// Estimates the mean and the standard deviation S of f from noisy values. σ is the standard deviation of the noise of
/// a value. The mean and S are divided by the largest absolute value.
///
/// Let c be the mean of the values y with weights 1/(S² + σ²). S solves Σ (y − c)²/(S² + σ²) = n, so a value that is
/// mostly noise has little weight. S is at least the smallest σ: if the unit were smaller than every σ, all values
/// would be mostly noise. S is at most the `plain` standard deviation. If all values with σ = 0 are equal, σ = 0 is not
/// used as the lower bound, because S could then be 0.
fn without_noise(observed: &[f64], stds: &[f64], largest: f64, plain: (f64, f64)) -> (f64, f64) {
    let values = || {
        observed
            .iter()
            .zip(stds)
            .map(|(y, std)| (y / largest, std / largest))
    };
    let about = |s: f64| {
        let weight = |std: f64| 1.0 / (s * s + std * std);
        let total: f64 = values().map(|(_, std)| weight(std)).sum();
        let mean = values().map(|(y, std)| y * weight(std)).sum::<f64>() / total;
        let squares = values().map(|(y, std)| (y - mean).powi(2) * weight(std));
        (mean, squares.sum::<f64>())
    };
    let exact = || values().filter(|(_, std)| *std == 0.0).map(|(y, _)| y);
    let exact_differ = exact()
        .zip(exact().skip(1))
        .any(|(one, other)| one != other);
    let bounds = stds.iter().filter(|std| exact_differ || **std > 0.0);
    let least = bounds.copied().fold(f64::INFINITY, f64::min) / largest;
    // Between these bounds, squares do not overflow or underflow, and the sum of the weights is finite and positive.
    let (mut low, mut high) = (least.max(1e-12), plain.1.min(1e100));
    if low >= high {
        return plain;
    }
    // The sum Σ (y − c)²/(S² + σ²) decreases as S increases. At the plain standard deviation, the sum is at most n. A
    // relative precision of 1/1000 is sufficient for a unit.
    while high > 1.001 * low {
        let middle = (low * high).sqrt();
        if about(middle).1 > observed.len() as f64 {
            low = middle;
        } else {
            high = middle;
        }
    }
    (about(high).0, high)
}

/// Returns the unit spread·largest. If the values are equal up to rounding errors, the unit is the largest absolute
/// value.
fn usable_scale(spread: f64, largest: f64) -> f64 {
    let scale = spread * largest;
    if spread > 1e-12 && scale.is_normal() {
        scale
    } else if largest.is_normal() {
        largest
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests;
