//! One type that contains all acquisitions.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::strategy::bayes::acquisitions::log_ei::LogEI;
use crate::strategy::bayes::acquisitions::max_variance::MaxVariance;
use crate::strategy::bayes::acquisitions::rule::Rule;
use crate::strategy::bayes::acquisitions::thompson_sampling::ThompsonSampling;
use crate::strategy::bayes::acquisitions::ucb::UCB;
use crate::strategy::bayes::acquisitions::ucb_pe::UCBPE;

/// The function that is maximised to choose a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", deny_unknown_fields)]
pub enum Acquisition {
    LogEI(LogEI),
    UCB(UCB),
    ThompsonSampling(ThompsonSampling),
    /// Pure exploration.
    MaxVariance(MaxVariance),
    /// GP-UCB-PE. It is an upper confidence bound if all trials have ended. While trials are in flight, it is pure
    /// exploration of the region that may contain the maximum.
    UCBPE(UCBPE),
}

impl Default for Acquisition {
    fn default() -> Self {
        Acquisition::LogEI(LogEI::default())
    }
}

impl Acquisition {
    /// Every acquisition with its defaults.
    pub fn defaults() -> Vec<Self> {
        vec![
            Acquisition::LogEI(LogEI::default()),
            Acquisition::UCB(UCB::default()),
            Acquisition::ThompsonSampling(ThompsonSampling::default()),
            Acquisition::MaxVariance(MaxVariance::default()),
            Acquisition::UCBPE(UCBPE::default()),
        ]
    }

    /// The acquisition as a [`Rule`].
    pub fn rule(&self) -> &dyn Rule {
        match self {
            Acquisition::LogEI(rule) => rule,
            Acquisition::UCB(rule) => rule,
            Acquisition::ThompsonSampling(rule) => rule,
            Acquisition::MaxVariance(rule) => rule,
            Acquisition::UCBPE(rule) => rule,
        }
    }

    /// Returns an error if a setting is invalid.
    pub fn check(&self, candidates: bool) -> Result<()> {
        let rule = self.rule();
        if let Some(bound) = rule.bound() {
            bound.check()?;
        }
        rule.check(candidates)
    }
}
