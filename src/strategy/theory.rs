//! The constants in the theorems that bound regrets. All strategies use this type.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::strategy::checks::{NOT_NEGATIVE, check, check_given, is_std};

/// The constants in the theorems.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", deny_unknown_fields, default)]
pub struct Theory {
    /// B_f, a bound on the norm of f minus the prior mean in the space of the kernel, which includes the signal
    /// variance. `beta="theory"` needs it.
    pub rkhs_bound: Option<f64>,
    /// R, where the noise is R-sub-Gaussian, in units of f. `BayesOpt` needs it with `beta="theory"`. BPE-Delay uses
    /// the standard deviation of the noise instead.
    pub noise_bound: Option<f64>,
    /// δ, the probability that a bound fails.
    pub delta: f64,
    /// B_y, a bound on |y| in the units of the model. Only `Censor` uses B_y, and needs it with `beta="theory"`. With
    /// any other `beta`, `None` means 1, as in the experiments of Verma et al. 2022.
    pub value_bound: Option<f64>,
    /// λ of BPE-Delay, where the regularised kernel matrix is K + λ²I. If `regularization` is `None`, λ is the standard
    /// deviation of the noise.
    pub regularization: Option<f64>,
}

impl Default for Theory {
    fn default() -> Self {
        Self {
            rkhs_bound: None,
            noise_bound: None,
            delta: 0.1,
            value_bound: None,
            regularization: None,
        }
    }
}

impl Theory {
    /// Returns an error if a constant is invalid.
    pub fn check(&self) -> Result<()> {
        let (name, bound) = ("theory.rkhs_bound", self.rkhs_bound);
        check_given(bound, name, |x| x >= 0.0, NOT_NEGATIVE)?;
        let (name, bound) = ("theory.noise_bound", self.noise_bound);
        check_given(bound, name, |x| x >= 0.0, NOT_NEGATIVE)?;
        let delta = self.delta;
        let holds = delta > 0.0 && delta < 1.0;
        let expected = "give a number between 0 and 1";
        check(holds, "theory.delta", delta, expected)?;
        let expected = "give a number above 0, or None";
        let (name, bound) = ("theory.value_bound", self.value_bound);
        check_given(bound, name, |x| x > 0.0, expected)?;
        let expected = "give a standard deviation above 0, or None to use noise_std";
        let (name, lambda) = ("theory.regularization", self.regularization);
        check_given(lambda, name, is_std, expected)
    }
}
