//! An upper confidence bound, which is the mean plus a multiple of the standard deviation.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::random::Rng;
use crate::strategy::bayes::acquisitions::bound::{Beta, Bound};
use crate::strategy::bayes::acquisitions::formula::{Moments, OfMoments, floored_std};
use crate::strategy::bayes::acquisitions::rule::{Maximand, Rule, Situation};
use crate::strategy::from_settings::tagged;
use crate::strategy::theory::Theory;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UCB {
    pub beta: Beta,
    #[serde(deserialize_with = "tagged")]
    pub theory: Theory,
    /// Whether sigma includes the noise.
    pub predictive_std: bool,
    /// Whether all points of a batch use the beta that was computed for the first point.
    pub per_batch: bool,
}

impl Default for UCB {
    fn default() -> Self {
        Self {
            beta: Beta::Constant(2.0),
            theory: Theory::default(),
            predictive_std: false,
            per_batch: false,
        }
    }
}

impl Rule for UCB {
    fn maximand(&self, situation: Situation, _rng: &mut Rng) -> Result<Maximand<'static>> {
        let noise = if self.predictive_std {
            situation.gp.noise_variance()
        } else {
            0.0
        };
        let multiplier = situation.nu;
        let formula = UpperConfidenceBound { multiplier, noise };
        Ok(Maximand::Formula(Box::new(formula)))
    }

    fn bound(&self) -> Option<Bound> {
        Some(Bound {
            beta: self.beta,
            constants: self.theory,
            predictive_std: self.predictive_std,
            per_batch: self.per_batch,
            draws: false,
        })
    }
}

/// The acquisition mu + multiplier·sqrt(sigma² + noise). `noise` is a variance. If sigma does not include the noise,
/// `noise` is 0.
#[derive(Debug, Clone)]
pub struct UpperConfidenceBound {
    pub multiplier: f64,
    pub noise: f64,
}

impl OfMoments for UpperConfidenceBound {
    fn in_units_of_f(&self, value: f64, _scale: f64, value_of: &dyn Fn(f64) -> f64) -> f64 {
        value_of(value)
    }

    // a = mu + multiplier·sqrt(sigma² + noise)
    fn value(&self, at: Moments) -> f64 {
        at.mean + self.multiplier * (at.variance + self.noise).sqrt()
    }

    // ∂a/∂sigma = multiplier·sigma / sqrt(sigma² + noise)
    fn value_and_derivatives(&self, at: Moments) -> (f64, f64, f64) {
        let predictive = floored_std(at.variance + self.noise);
        let value = at.mean + self.multiplier * predictive;
        (value, 1.0, self.multiplier * at.std() / predictive)
    }
}
