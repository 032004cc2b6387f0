//! The acquisition for pure exploration, which is the posterior variance.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::random::Rng;
use crate::strategy::bayes::acquisitions::formula::{Moments, OfMoments};
use crate::strategy::bayes::acquisitions::rule::{Maximand, Rule, Situation};

/// The acquisition sigma².
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MaxVariance {}

impl Rule for MaxVariance {
    fn maximand(&self, _situation: Situation, _rng: &mut Rng) -> Result<Maximand<'static>> {
        Ok(Maximand::Formula(Box::new(MaxVariance {})))
    }
}

impl OfMoments for MaxVariance {
    fn in_units_of_f(&self, value: f64, scale: f64, _value_of: &dyn Fn(f64) -> f64) -> f64 {
        scale * scale * value
    }

    // a = sigma²
    fn value(&self, at: Moments) -> f64 {
        at.variance
    }

    // ∂a/∂sigma = 2 sigma
    fn value_and_derivatives(&self, at: Moments) -> (f64, f64, f64) {
        (at.variance, 0.0, 2.0 * at.std())
    }
}
