//! The logarithm of the probability that a trial succeeds, and a penalty where a trial probably fails. The probability
//! is computed from a Gaussian process of labels. The label is 1 for an observed trial, and negative for a failed trial
//! (`FAILED` in [`crate::strategy::bayes::model::success`]). Fitting a Gaussian process to labels is called
//! least-squares classification (Rasmussen & Williams 2006, section 6.5).
//!
//! Notation: m is the prior mean of the labels; mu and sigma² are the posterior mean and variance of (label at x) − m;
//! u = (m + mu)/sqrt(sigma² + c); φ and Φ are the standard normal density and distribution.

use super::formula::{Moments, OfMoments};
use crate::numerics::special::log_cdf;

/// The constant c of a region without accidents. With this value of c, log P is at least about −910, even if many trials
/// near a point have failed: with the label −4.25 of failed trials, log Φ(−4.25/√c) = −908.
const MIN_VARIANCE: f64 = 0.01;

/// The constants with which P = Φ(u) follows from the process of labels.
#[derive(Debug, Clone, Copy)]
pub struct Labels {
    /// The prior mean m of the labels.
    pub mean: f64,
    /// The constant c.
    pub variance: f64,
}

impl Labels {
    /// A region without accidents. A trial far from all failures is expected to succeed, so the prior mean is 1.
    pub const CERTAIN: Self = Self {
        mean: 1.0,
        variance: MIN_VARIANCE,
    };

    /// Returns log P.
    pub fn log_probability(&self, at: Moments) -> f64 {
        log_cdf((self.mean + at.mean) / self.spread(at)).0
    }

    /// Returns sqrt(sigma² + c).
    fn spread(&self, at: Moments) -> f64 {
        (at.variance + self.variance).sqrt()
    }
}

/// The acquisition log(1 − s + s P), with a penalty added where P < ½. P = Φ(u) is the probability that the label is
/// positive, and s (`share`) is the share of the probability of success that depends on the point.
#[derive(Debug, Clone, Copy)]
pub struct LogSuccessProbability {
    pub share: f64,
    pub penalty: ShortfallOfSuccess,
}

impl OfMoments for LogSuccessProbability {
    fn in_units_of_f(&self, value: f64, _scale: f64, _value_of: &dyn Fn(f64) -> f64) -> f64 {
        value
    }

    fn value(&self, at: Moments) -> f64 {
        self.averaged(self.penalty.labels.log_probability(at)) + self.penalty.value(at)
    }

    // With t = s P/(1 − s + s P): ∂a/∂mu = t φ/Φ / spread,  ∂a/∂sigma = −t φ/Φ · u sigma / spread²
    fn value_and_derivatives(&self, at: Moments) -> (f64, f64, f64) {
        let labels = self.penalty.labels;
        let spread = labels.spread(at);
        let u = (labels.mean + at.mean) / spread;
        let (log_p, slope) = log_cdf(u);
        let value = self.averaged(log_p);
        let slope = slope * (self.share.ln() + log_p - value).exp();
        let by_std = -slope * u * at.std() / (spread * spread);
        let (penalty, by_mean, _) = self.penalty.value_and_derivatives(at);
        (value + penalty, slope / spread + by_mean, by_std)
    }
}

impl LogSuccessProbability {
    /// log(1 − s + s P). For s = 1, log P stays finite where P underflows.
    fn averaged(&self, log_p: f64) -> f64 {
        match self.share >= 1.0 {
            true => log_p,
            false => (self.share * log_p.exp_m1()).ln_1p(),
        }
    }
}

/// The penalty weight·min(0, m + mu), which is added to an acquisition. It is negative where failure is more likely
/// than success. If the weight is large and any point has P ≥ ½, the point with the largest sum has P ≥ ½. If P < ½
/// everywhere, the point with the largest mu has the largest sum. A small weight only lowers the score of points that
/// probably fail.
#[derive(Debug, Clone, Copy)]
pub struct ShortfallOfSuccess {
    pub weight: f64,
    pub labels: Labels,
}

/// The tolerance for comparing m + mu with 0. A rounding error does not cause a penalty where m + mu is zero.
const ROUNDING: f64 = 1e-9;

impl OfMoments for ShortfallOfSuccess {
    fn in_units_of_f(&self, value: f64, _scale: f64, _value_of: &dyn Fn(f64) -> f64) -> f64 {
        value
    }

    fn value(&self, at: Moments) -> f64 {
        self.weight * (self.labels.mean + at.mean + ROUNDING).min(0.0)
    }

    fn value_and_derivatives(&self, at: Moments) -> (f64, f64, f64) {
        let value = self.value(at);
        let slope = if value < 0.0 { self.weight } else { 0.0 };
        (value, slope, 0.0)
    }
}
