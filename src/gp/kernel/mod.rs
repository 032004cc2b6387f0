//! Covariance functions k = σ_f²·κ with one lengthscale per column.
//!
//! Notation: x̃ = w(x)/ℓ with the input warp w, which is the identity by default. The argument q is |x̃ − x̃'|² = r²
//! for stationary families, and x̃ᵀx̃' for the linear family. The signal variance is σ_f², the correlation is κ(q), and
//! the slope is g = dk/dq.
//!
//! * [`covariance`]: blocks of k, and derivatives of k with respect to points and lengthscales; [`points`]: scaled and
//!   transposed points
//! * [`category`]: one-hot groups of columns, and the descriptors of their choices
//! * [`input_warp`]: maps that are applied to the columns before scaling
//! * one file per family: k and g as functions of q, and the spectral density. A new family needs a file, a variant of
//!   [`KernelFamily`], and a line in each of the lists below.

mod category;
mod covariance;
mod input_warp;
mod linear;
mod matern12;
mod matern32;
mod matern52;
mod points;
mod squared_exponential;
#[cfg(test)]
mod tests;

use rand_distr::{ChiSquared, Distribution};
use serde::{Deserialize, Serialize};

use crate::random::Rng;

pub use category::{Category, Descriptors, n_described};
pub use covariance::Kernel;
pub use input_warp::{InputWarp, Kumaraswamy};
pub use points::ScaledPoints;

/// The correlation κ of a covariance function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KernelFamily {
    /// κ = exp(−r²/2), also called RBF.
    SquaredExponential,
    /// κ = (1 + √5 r + 5r²/3) exp(−√5 r).
    Matern52,
    /// κ = (1 + √3 r) exp(−√3 r).
    Matern32,
    /// κ = exp(−r), also called Ornstein–Uhlenbeck.
    Matern12,
    /// κ = 1 + x̃ᵀx̃': linear functions of x plus a constant.
    Linear,
}

impl KernelFamily {
    /// The names of all families, for messages.
    pub const NAMES: &str =
        "\"matern12\", \"matern32\", \"matern52\", \"squared_exponential\" or \"linear\"";

    /// The name in settings and in notes of the log.
    pub fn name(self) -> String {
        let name = serde_json::to_value(self).unwrap_or_default();
        name.as_str().unwrap_or_default().to_string()
    }

    /// The family of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        serde_json::from_value(name.into()).ok()
    }

    /// Whether k depends only on x − x'.
    pub fn is_stationary(self) -> bool {
        self.stationary().is_some()
    }

    /// The squared Lipschitz constant of functions with RKHS norm 1, for distances in lengthscales: −2 dκ/dq at q = 0
    /// for a stationary family. `None` if functions in the RKHS are not Lipschitz continuous.
    pub fn squared_lipschitz(self) -> Option<f64> {
        self.stationary()
            .map_or(Some(1.0), |family| family.squared_lipschitz)
    }

    fn stationary(self) -> Option<Stationary> {
        match self {
            KernelFamily::SquaredExponential => Some(squared_exponential::FAMILY),
            KernelFamily::Matern52 => Some(matern52::FAMILY),
            KernelFamily::Matern32 => Some(matern32::FAMILY),
            KernelFamily::Matern12 => Some(matern12::FAMILY),
            KernelFamily::Linear => None,
        }
    }
}

/// The formulas of a stationary family. The first argument of `values` and `values_and_slopes` is σ_f².
struct Stationary {
    /// Replaces r² by k.
    values: fn(f64, &mut [f64]),
    /// Replaces r² by k, and writes g = dk/d(r²).
    values_and_slopes: fn(f64, &mut [f64], &mut [f64]),
    /// Draws a random factor a such that ω = a·N(0, 1)/ℓ has the spectral density of κ, that is, E cos(ωᵀ(x − x')) = κ.
    spectral_factor: fn(&mut Rng) -> f64,
    /// See [`KernelFamily::squared_lipschitz`].
    squared_lipschitz: Option<f64>,
}

/// The spectral factor of Matérn ν is sqrt(2ν/χ²), where χ² has 2ν degrees of freedom. Then ω has a Student t
/// distribution (Rasmussen & Williams 2006, eq. 4.15).
fn student_factor(degrees: f64, rng: &mut Rng) -> f64 {
    let chi_squared = ChiSquared::new(degrees)
        .expect("degrees of freedom are a positive number")
        .sample(rng);
    (degrees / chi_squared).sqrt()
}

/// Limits a multiple of r to a value at which exp(−a) is 0, because the product of an infinite a and exp(−a) = 0 would
/// be NaN.
#[inline(always)]
fn capped(a: f64) -> f64 {
    if a > 1e3 { 1e3 } else { a }
}
