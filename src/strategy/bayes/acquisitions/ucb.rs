//! An upper confidence bound.

use serde::{Deserialize, Serialize};

use crate::acquisition::{Acquisition as Formula, UpperConfidenceBound};
use crate::error::Result;
use crate::random::Rng;
use crate::strategy::bayes::acquisitions::bound::{Beta, Bound};
use crate::strategy::bayes::acquisitions::box_search::{BoxSearch, Multistart};
use crate::strategy::bayes::acquisitions::rule::{Maximand, Rule, Situation};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UCB {
    pub beta: Beta,
    /// The settings of `Beta::Theory`. B_f is a bound on the norm of f in the space of the kernel. δ is the probability
    /// that the bound fails.
    pub rkhs_bound: f64,
    pub delta: f64,
    /// B_y, in the units of the model. `None` means the default of [`Bound`].
    pub value_bound: Option<f64>,
    /// Whether sigma includes the noise.
    pub predictive_std: bool,
    /// Whether all points of a batch use the beta of the first point of the batch.
    pub per_batch: bool,
    pub multistart: Option<Multistart>,
    pub direct: Option<usize>,
    pub effort: f64,
}

impl Default for UCB {
    fn default() -> Self {
        Self {
            beta: Beta::Constant(2.0),
            rkhs_bound: 1.0,
            delta: 0.1,
            value_bound: None,
            predictive_std: false,
            per_batch: false,
            multistart: None,
            direct: None,
            effort: 1.0,
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

    fn search(&self) -> BoxSearch {
        BoxSearch {
            multistart: self.multistart,
            direct: self.direct,
            effort: self.effort,
        }
    }

    fn bound(&self) -> Option<Bound> {
        Some(Bound {
            beta: self.beta,
            rkhs_bound: self.rkhs_bound,
            delta: self.delta,
            value_bound: self.value_bound,
            predictive_std: self.predictive_std,
            per_batch: self.per_batch,
            draws: false,
        })
    }
}
