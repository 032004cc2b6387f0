//! How draws from the posterior are made.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DrawMethod {
    Pathwise,
    WeightSpace,
}

/// A draw to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draws {
    /// How it is made where it cannot be exact, and with how many random features.
    pub method: DrawMethod,
    pub n_features: usize,
    /// Whether it deviates nu_t times as far from the mean under `Censor`.
    pub widen: bool,
}
