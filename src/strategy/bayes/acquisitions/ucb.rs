//! An upper confidence bound.

use serde::{Deserialize, Serialize};

use crate::acquisition::{Acquisition as Formula, UpperConfidenceBound};
use crate::error::Result;
use crate::random::Rng;
use crate::strategy::bayes::acquisitions::bound::{Beta, Bound};
use crate::strategy::bayes::acquisitions::rule::{Maximand, Rule, Situation};
use crate::strategy::theory::Theory;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UCB {
    pub beta: Beta,
    pub theory: Theory,
    /// Whether sigma includes the noise.
    pub predictive_std: bool,
    /// Whether all points of a batch use the beta of the first point of the batch.
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
    fn maximand(&self, situation: Situation, _rng: &mut Rng) -> Result<Maximand> {
        let noise = if self.predictive_std {
            situation.gp.noise_variance()
        } else {
            0.0
        };
        let multiplier = situation.nu;
        let formula = UpperConfidenceBound { multiplier, noise };
        Ok(Maximand::Formula(Formula::UpperConfidenceBound(formula)))
    }

    fn bound(&self) -> Option<Bound> {
        Some(Bound {
            beta: self.beta,
            constants: *self.theory.constants(),
            predictive_std: self.predictive_std,
            per_batch: self.per_batch,
            draws: false,
        })
    }
}
