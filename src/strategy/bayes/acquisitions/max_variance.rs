//! Pure exploration.

use serde::{Deserialize, Serialize};

use crate::acquisition::{Acquisition as Formula, MaxVariance as Variance};
use crate::error::Result;
use crate::random::Rng;
use crate::strategy::bayes::acquisitions::rule::{Maximand, Rule, Situation};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MaxVariance {}

impl Rule for MaxVariance {
    fn maximand(&self, _situation: Situation, _rng: &mut Rng) -> Result<Maximand> {
        Ok(Maximand::Formula(Formula::MaxVariance(Variance)))
    }
}
