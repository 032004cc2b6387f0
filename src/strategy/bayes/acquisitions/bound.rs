//! The multiplier of sigma in upper confidence bounds and in widened draws.
//! [`crate::strategy::bayes::choose::multiplier`] adds the term that accounts for delays.
//!
//! Notation follows Verma et al. 2022: beta_t is the multiplier before the term for delays is added, and B_y is the
//! bound on |y| in the units of the model.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::strategy::checks::{NOT_NEGATIVE, check, is_not_negative};
use crate::strategy::theory::Theory;

/// The multiplier of sigma in upper confidence bounds, before the term for delays is added.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(
    rename_all = "snake_case",
    expecting = "expected a number, \"kandasamy\", \"kandasamy_code\" or \"theory\" for beta"
)]
pub enum Beta {
    /// sqrt(beta_j) with beta_j = 0.2·d·log(2j + 1), where j is the number of trials so far (Kandasamy et al. 2017).
    Kandasamy,
    /// The multiplier in the code of Kandasamy et al., which is sqrt(beta_j) with beta_j = 5·d·log(2dj + 1).
    KandasamyCode,
    /// B_f + R·sqrt(2(gamma_{j−1} + 1 + log(1/δ))) (Chowdhury & Gopalan 2017, theorem 2). Under `Censor`, the
    /// multiplier for bounds is B_f + (R + B_y)·sqrt(2(gamma_{j−1} + 1 + log(2/δ))). For draws, log(4/δ) replaces
    /// log(2/δ) (Verma et al. 2022, theorems 1 and 2).
    ///
    /// All quantities are in the units of the model. R is sqrt(λ), and gamma is the greedy upper bound of
    /// [`crate::strategy::bayes::choose::information`].
    Theory,
    /// The multiplier is the same at every step. Verma et al. 2022 use 1.
    #[serde(untagged)]
    Constant(f64),
}

/// The settings that determine the multiplier of sigma.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    pub beta: Beta,
    pub constants: Theory,
    pub predictive_std: bool,
    /// Whether all points of a batch use the same j, which then does not count trials in flight.
    pub per_batch: bool,
    /// Whether the multiplier widens draws (true) or scales sigma in a bound (false).
    pub draws: bool,
}

impl Bound {
    /// Returns an error if a setting is invalid.
    pub fn check(&self) -> Result<()> {
        if let Beta::Constant(beta) = self.beta {
            let holds = is_not_negative(beta);
            check(holds, "acquisition.beta", beta, NOT_NEGATIVE)?;
        }
        let lambda = self.constants.regularization;
        let got = lambda.unwrap_or(f64::NAN);
        let expected = "it is for BPEDelay; give surrogate=bl.GP(noise_std=…) instead";
        check(lambda.is_none(), "theory.regularization", got, expected)?;
        self.constants.check()
    }

    /// Whether the multiplier depends on the information gain.
    pub fn is_theory(self) -> bool {
        self.beta == Beta::Theory
    }

    /// Sets B_y from the targets observed so far, unless B_y is given.
    pub fn for_targets(mut self, targets: &[f64]) -> Self {
        let largest = targets.iter().map(|y| y.abs()).reduce(f64::max);
        let default = largest.filter(|_| self.is_theory()).unwrap_or(1.0);
        self.constants.value_bound.get_or_insert(default);
        self
    }

    /// beta_t for trial j = 1, 2, … in d dimensions. Only the schedule `Theory` uses gamma, λ and B_y. B_y is `None` if
    /// trials are not censored.
    pub fn multiplier(
        self,
        d: usize,
        j: usize,
        gamma: f64,
        noise: f64,
        value_bound: Option<f64>,
    ) -> f64 {
        match self.beta {
            Beta::Constant(beta) => beta,
            Beta::Kandasamy => (0.2 * d as f64 * (2.0 * j as f64 + 1.0).ln()).sqrt(),
            Beta::KandasamyCode => {
                let d = d as f64;
                (5.0 * d * (2.0 * d * j as f64 + 1.0).ln()).sqrt()
            }
            Beta::Theory => {
                let (b_y, events) = match (value_bound, self.draws) {
                    (None, _) => (0.0, 1.0),
                    (Some(b_y), false) => (b_y, 2.0),
                    (Some(b_y), true) => (b_y, 4.0),
                };
                let information = gamma + 1.0 + (events / self.constants.delta).ln();
                let rkhs_bound = self.constants.rkhs_bound.unwrap_or(1.0);
                rkhs_bound + (noise.sqrt() + b_y) * (2.0 * information).sqrt()
            }
        }
    }
}
