//! The logarithm of expected improvement.

use serde::{Deserialize, Serialize};

use crate::acquisition::{Acquisition as Formula, LogExpectedImprovement};
use crate::error::Result;
use crate::random::Rng;
use crate::strategy::bayes::acquisitions::incumbents::{
    incumbent, largest_feasible, noisy_expected_improvement,
};
use crate::strategy::bayes::acquisitions::rule::{Maximand, Rule, Situation};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogEI {
    /// The incumbent. This setting is ignored if improvement is averaged over outcomes.
    pub incumbent: Incumbent,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Incumbent {
    /// The largest posterior mean at an observed point.
    #[default]
    PosteriorMean,
    /// The largest observed value, including noise (Kandasamy et al. 2017).
    BestValue,
}

impl Rule for LogEI {
    fn maximand(&self, situation: Situation, rng: &mut Rng) -> Result<Maximand> {
        let (gp, query) = (situation.gp, situation.query);
        Ok(Maximand::Formula(match situation.n_outcomes {
            Some(n) => noisy_expected_improvement(gp, situation.tail, n, query, rng)?,
            None => Formula::LogExpectedImprovement(LogExpectedImprovement {
                incumbent: match self.incumbent {
                    Incumbent::PosteriorMean => incumbent(gp, query)?,
                    Incumbent::BestValue => largest_feasible(gp, situation.targets, query)?,
                },
            }),
        }))
    }

    fn averages_outcomes(&self) -> bool {
        true
    }

    fn is_logarithm(&self) -> bool {
        true
    }
}
