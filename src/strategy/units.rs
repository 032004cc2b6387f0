//! The units of the targets of a model, and the conversion between values and targets.
//!
//! A target is (t(y) − center)/scale, where t is the identity or a [`Warp`].

use crate::gp::group_units::GroupUnits;
use crate::numerics::warp::Warp;

/// The units of targets. In this module, larger values of f are better. If the user minimises f, the sign of the user's
/// values has already been changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Units {
    /// The value of t(f) that has target 0.
    pub center: f64,
    /// The difference between two values of t(f) whose targets differ by 1. The scale is positive.
    pub scale: f64,
    pub(crate) warp: Option<Warp>,
}

/// If the prior mean changes by more than this amount, in units of the targets, θ is no longer valid. The amount is
/// half of the prior standard deviation of f.
const MAX_MOVE: f64 = 0.5;

/// If the scale changes by more than this factor, θ is no longer valid. A factor of 2 changes log σ_f² by log 4 = 1.4,
/// which is 1.4 standard deviations of the N(0, 1) prior of log σ_f².
const MAX_FACTOR: f64 = 2.0;

/// The interval of this many standard deviations on both sides of the mean contains 95 % of a normal distribution.
const NORMAL: f64 = 1.96;

impl Units {
    /// The target of a value.
    pub(crate) fn target(&self, y: f64) -> f64 {
        let t = self.warp.map_or(y, |warp| warp.apply(y));
        // Divide before subtracting, because t − center may overflow if both are large.
        t / self.scale - self.center / self.scale
    }

    /// Whether these units differ so much from the `fitted` units that θ is no longer valid.
    pub(crate) fn differ_from(&self, fitted: &Units) -> bool {
        let moved = (self.center / fitted.scale - fitted.center / fitted.scale).abs();
        let factor = self.scale / fitted.scale;
        let factors = 1.0 / MAX_FACTOR..=MAX_FACTOR;
        moved.is_nan() || moved > MAX_MOVE || !factors.contains(&factor)
    }

    /// Whether the targets of two values differ by more than the largest allowed change of the prior mean.
    pub(crate) fn are_apart(&self, one: f64, other: f64) -> bool {
        (self.target(one) - self.target(other)).abs() > MAX_MOVE
    }

    /// The value of f that has this target.
    pub fn value(&self, target: f64) -> f64 {
        let t = self.center + self.scale * target;
        self.warp.map_or(t, |warp| warp.invert(t))
    }

    /// The mean and standard deviation of f, given the mean and standard deviation of the target. Under a warp, f is
    /// not normally distributed, so the mean is replaced by the median. The standard deviation is replaced by the
    /// larger distance from the median to an end of the central 95 % interval of f, divided by 1.96. For a normal
    /// distribution, this quotient is the standard deviation. Therefore the median ± 1.96 std contains the interval.
    /// Half of the width of the interval would leave out part of the longer tail.
    pub fn moments(&self, mean: f64, std: f64) -> (f64, f64) {
        match self.warp {
            None => (self.value(mean), self.scale * std),
            Some(_) => {
                let [low, high] = [-NORMAL, NORMAL].map(|z| self.value(mean + z * std));
                let median = self.value(mean);
                (median, (high - median).max(median - low) / NORMAL)
            }
        }
    }

    /// log d target/dy.
    pub(crate) fn log_slope(&self, y: f64) -> f64 {
        self.warp.map_or(0.0, |warp| warp.log_slope(y)) - self.scale.ln()
    }

    /// Converts `std`, the standard deviation of the noise of y, to units of the targets.
    pub(crate) fn std_of_target(&self, y: f64, std: f64) -> f64 {
        let slope = self.warp.map_or(1.0, |warp| warp.log_slope(y).exp());
        std / self.scale * slope
    }
}

/// The conversion between targets and values of f in one context.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnitsHere {
    /// The units of f in this context.
    pub(crate) here: GroupUnits,
    /// The units of the comparable values.
    pub(crate) units: Units,
}

impl UnitsHere {
    /// The target of a value.
    pub(crate) fn target(&self, y: f64) -> f64 {
        self.units.target(self.here.comparable(y))
    }

    /// The value of f that has this target.
    pub fn value(&self, target: f64) -> f64 {
        self.here.value(self.units.value(target))
    }

    /// The difference between two values of t(f) whose targets differ by 1.
    pub fn scale(&self) -> f64 {
        self.here.scale * self.units.scale
    }

    /// The mean and standard deviation of f, as in [`Units::moments`].
    pub fn moments(&self, mean: f64, std: f64) -> (f64, f64) {
        let (mean, std) = self.units.moments(mean, std);
        (self.here.value(mean), self.here.scale * std)
    }

    /// log d target/dy at the comparable value z of y.
    pub(crate) fn log_slope(&self, z: f64) -> f64 {
        self.units.log_slope(z) - self.here.scale.ln()
    }
}
