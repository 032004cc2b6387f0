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
    /// B_f + R/√λ·sqrt(2(I + log(1/δ))) (Chowdhury & Gopalan 2017, theorem 2). Under `Censor`, the multiplier for bounds
    /// is B_f + (R + B_y)/√λ·sqrt(2(I + log(2/δ))). Draws need twice the number in each logarithm (Chowdhury &
    /// Gopalan 2017, theorem 4; Verma et al. 2022, theorem 3).
    ///
    /// λ is the noise variance of the model, and I = ½ log det(1 + K/λ) is the information of the rows. The papers print
    /// the bound for λ = 1 + 2/T only, with the maximum information gain plus 1 in place of I. Here λ > 0. The proof
    /// (docs/equations.md) uses sigma = √λ·|φ|_{V⁻¹} with V = ΦᵀΦ + λ; the noise and the censoring each contribute at
    /// most |Φᵀε|_{V⁻¹} ≤ R·sqrt(2(I + log(1/δ))), divided by √λ.
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

    /// Whether the multiplier is the schedule of the theorems.
    pub fn is_theory(self) -> bool {
        self.beta == Beta::Theory
    }

    /// beta_t for trial j = 1, 2, … in d dimensions. Only the schedule `Theory` uses the information I, λ and B_y. B_y is
    /// `None` if trials are not censored.
    pub fn multiplier(
        self,
        d: usize,
        j: usize,
        information: f64,
        lambda: f64,
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
                    (None, false) => (0.0, 1.0),
                    (None, true) => (0.0, 2.0),
                    (Some(b_y), false) => (b_y, 2.0),
                    (Some(b_y), true) => (b_y, 4.0),
                };
                let given = |bound: Option<f64>| bound.expect("the settings were checked");
                let b_f = given(self.constants.rkhs_bound);
                let r = given(self.constants.noise_bound);
                let exponent = information + (events / self.constants.delta).ln();
                b_f + (r + b_y) / lambda.sqrt() * (2.0 * exponent).sqrt()
            }
        }
    }
}
