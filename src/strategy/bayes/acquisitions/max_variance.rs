//! Pure exploration.

use serde::{Deserialize, Serialize};

use crate::acquisition::{Acquisition as Formula, MaxVariance as Variance};
use crate::error::Result;
use crate::random::Rng;
use crate::strategy::bayes::acquisitions::box_search::{BoxSearch, Multistart};
use crate::strategy::bayes::acquisitions::rule::{Maximand, Rule, Situation};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MaxVariance {
    pub multistart: Option<Multistart>,
    pub direct: Option<usize>,
    pub effort: f64,
}

impl Default for MaxVariance {
    fn default() -> Self {
        Self {
            multistart: None,
            direct: None,
            effort: 1.0,
        }
    }
}

impl Rule for MaxVariance {
    fn maximand(&self, _situation: Situation, _rng: &mut Rng) -> Result<Maximand> {
        Ok(Maximand::Formula(Formula::MaxVariance(Variance)))
    }

    fn search(&self) -> BoxSearch {
        BoxSearch {
            multistart: self.multistart,
            direct: self.direct,
            effort: self.effort,
        }
    }
}
