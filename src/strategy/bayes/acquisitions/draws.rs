//! Methods to draw from the posterior.

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
    /// The method and the number of random features, for draws that cannot be exact.
    pub method: DrawMethod,
    pub n_features: usize,
    /// Whether, under `Censor`, the draw deviates nu_t times as far from the mean.
    pub widen: bool,
}
