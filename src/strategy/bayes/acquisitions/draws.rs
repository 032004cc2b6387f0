//! The settings of draws from the posterior.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DrawMethod {
    Pathwise,
    WeightSpace,
}

/// The settings of a draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draws {
    /// The method for draws that cannot be exact. Such draws use `n_features` random features.
    pub method: DrawMethod,
    pub n_features: usize,
    /// Whether, under `Censor`, the deviation of a draw from the posterior mean is multiplied by nu_t.
    pub widen: bool,
}
