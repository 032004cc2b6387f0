//! The logarithm of expected improvement.

use serde::{Deserialize, Serialize};

use crate::acquisition::{Acquisition as Formula, LogExpectedImprovement};
use crate::error::Result;
use crate::random::Rng;
use crate::strategy::bayes::acquisitions::box_search::{BoxSearch, Multistart};
use crate::strategy::bayes::acquisitions::incumbents::{
    incumbent, largest_feasible, noisy_expected_improvement,
};
use crate::strategy::bayes::acquisitions::rule::{Maximand, Rule, Situation};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogEI {
    /// The incumbent. This setting is ignored if improvement is averaged over outcomes.
    pub incumbent: Incumbent,
    pub multistart: Option<Multistart>,
    /// The approximate number of points that DIRECT, a search from the literature, chooses in a box.
    pub direct: Option<usize>,
    /// The effort of the default search, as a multiple of its default effort.
    pub effort: f64,
}

impl Default for LogEI {
    fn default() -> Self {
        Self {
            incumbent: Incumbent::default(),
            multistart: None,
            direct: None,
            effort: 1.0,
        }
    }
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

    fn search(&self) -> BoxSearch {
        BoxSearch {
            multistart: self.multistart,
            direct: self.direct,
            effort: self.effort,
        }
    }

    fn averages_outcomes(&self) -> bool {
        true
    }

    fn is_logarithm(&self) -> bool {
        true
    }
}
