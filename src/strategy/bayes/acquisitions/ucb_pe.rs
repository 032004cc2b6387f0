//! GP-UCB-PE. It is an upper confidence bound if all trials have ended. While trials are in flight, it is pure
//! exploration of the region that may contain the maximum.

use serde::{Deserialize, Serialize};

use crate::acquisition::{Acquisition as Formula, PureExploration, UpperConfidenceBound};
use crate::error::Result;
use crate::random::Rng;
use crate::strategy::bayes::acquisitions::bound::{Beta, Bound};
use crate::strategy::bayes::acquisitions::rule::{Maximand, Rule, Situation};
use crate::strategy::theory::Theory;

/// GP-UCB-PE (Contal et al. 2013). All points of a batch use the beta of the first point of the batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UCBPE {
    pub beta: Beta,
    pub theory: Theory,
}

impl Default for UCBPE {
    fn default() -> Self {
        Self {
            beta: Beta::Constant(2.0),
            theory: Theory::default(),
        }
    }
}

impl Rule for UCBPE {
    fn maximand(&self, situation: Situation, _rng: &mut Rng) -> Result<Maximand> {
        let multiplier = situation.nu;
        Ok(Maximand::Formula(match situation.lower_bound {
            None => Formula::UpperConfidenceBound(UpperConfidenceBound {
                multiplier,
                noise: 0.0,
            }),
            Some(lower_bound) => Formula::PureExploration(PureExploration {
                multiplier,
                lower_bound,
            }),
        }))
    }

    fn bound(&self) -> Option<Bound> {
        Some(Bound {
            beta: self.beta,
            constants: *self.theory.constants(),
            predictive_std: false,
            per_batch: true,
            draws: false,
        })
    }

    fn explores(&self) -> bool {
        true
    }
}
