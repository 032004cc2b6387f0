//! Thompson sampling, which maximises a draw from the posterior.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::random::Rng;
use crate::strategy::bayes::acquisitions::bound::{Beta, Bound};
use crate::strategy::bayes::acquisitions::box_search::{BoxSearch, Multistart};
use crate::strategy::bayes::acquisitions::draws::{DrawMethod, Draws};
use crate::strategy::bayes::acquisitions::rule::{Maximand, Rule, Situation};
use crate::strategy::bayes::checks::{check, check_count};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ThompsonSampling {
    /// The part of the multiplier of draws under `Censor` that does not depend on delays.
    pub beta: Beta,
    /// The settings of `Beta::Theory`, as in [`crate::strategy::bayes::acquisitions::ucb::UCB`].
    pub rkhs_bound: f64,
    pub delta: f64,
    pub value_bound: Option<f64>,
    /// The method for draws that cannot be exact, and its number of random features.
    pub draws: DrawMethod,
    pub n_features: usize,
    /// Whether deviations of draws from the mean are multiplied by nu_t under `Censor`.
    pub widen: bool,
    /// Whether sigma in nu_t includes the noise.
    pub predictive_std: bool,
    pub multistart: Option<Multistart>,
    pub direct: Option<usize>,
    pub effort: f64,
}

impl Default for ThompsonSampling {
    fn default() -> Self {
        Self {
            beta: Beta::Constant(1.0),
            rkhs_bound: 1.0,
            delta: 0.1,
            value_bound: None,
            draws: DrawMethod::Pathwise,
            n_features: 1024,
            widen: true,
            predictive_std: false,
            multistart: None,
            direct: None,
            effort: 1.0,
        }
    }
}

impl Rule for ThompsonSampling {
    fn maximand(&self, _situation: Situation, _rng: &mut Rng) -> Result<Maximand> {
        Ok(Maximand::Draw(Draws {
            method: self.draws,
            n_features: self.n_features,
            widen: self.widen,
        }))
    }

    fn search(&self) -> BoxSearch {
        BoxSearch {
            multistart: self.multistart,
            direct: self.direct,
            effort: self.effort,
        }
    }

    fn check(&self, candidates: bool) -> Result<()> {
        check_count("acquisition.n_features", self.n_features)?;
        check(
            !candidates || self.draws == DrawMethod::Pathwise,
            "acquisition.draws",
            "weight_space",
            "draws on candidates are exact; weight-space draws are for boxes",
        )
    }

    fn bound(&self) -> Option<Bound> {
        Some(Bound {
            beta: self.beta,
            rkhs_bound: self.rkhs_bound,
            delta: self.delta,
            value_bound: self.value_bound,
            predictive_std: self.predictive_std,
            per_batch: false,
            draws: true,
        })
    }
}
