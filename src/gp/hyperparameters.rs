//! The hyperparameters θ of a posterior.

use serde::{Deserialize, Serialize};

use crate::error::{Result, refuse};
use crate::gp::kernel::{InputWarp, Kernel, KernelFamily};

/// The largest noise variance at which data count as noiseless. At this limit, the noise standard deviation is a
/// thousandth of the unit of the targets, and the errors of the model are larger than the noise.
pub(crate) const NOISELESS: f64 = 1e-6;

/// Whether the data count as noiseless.
pub(super) fn is_noiseless(noise_variance: f64) -> bool {
    noise_variance <= NOISELESS
}

/// The hyperparameters θ: all fitted parameters of a posterior.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hyperparameters {
    /// ℓ, with one lengthscale per column.
    pub lengthscale: Vec<f64>,
    /// The signal variance σ_f².
    pub signal_variance: f64,
    /// The noise variance λ.
    pub noise_variance: f64,
    /// ℓ₁, with one lengthscale per category with descriptors. The list is empty if descriptors are not used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub descriptor_lengthscale: Vec<f64>,
    /// The input warp w. By default, the input warp is the identity.
    #[serde(default, skip_serializing_if = "InputWarp::is_identity")]
    pub input_warp: InputWarp,
}

impl Hyperparameters {
    /// Hyperparameters with the identity as the input warp.
    pub fn new(lengthscale: Vec<f64>, signal_variance: f64, noise_variance: f64) -> Self {
        Self {
            lengthscale,
            signal_variance,
            noise_variance,
            descriptor_lengthscale: Vec::new(),
            input_warp: InputWarp::default(),
        }
    }

    /// The kernel of a family with these hyperparameters.
    pub fn kernel(&self, family: KernelFamily) -> Kernel {
        Kernel {
            family,
            lengthscale: self.lengthscale.clone(),
            signal_variance: self.signal_variance,
            input_warp: self.input_warp.clone(),
            categories: Vec::new(),
            descriptor_lengthscale: self.descriptor_lengthscale.clone(),
        }
    }

    /// ℓ and ℓ₁.
    fn all_lengthscales(&self) -> impl Iterator<Item = &f64> {
        self.lengthscale.iter().chain(&self.descriptor_lengthscale)
    }

    /// Returns an error if a value is invalid.
    pub(super) fn check(&self) -> Result<()> {
        let positive = |value: f64| value > 0.0 && value.is_finite();
        let invalid = |name, got: String, expected| Err(refuse(name, got, expected));
        if self.lengthscale.is_empty() {
            let expected = "give one for every column, or a single number";
            return invalid("lengthscale", "[]".to_string(), expected);
        }
        let expected = "give a finite number above 0";
        if let Some(bad) = self.all_lengthscales().find(|l| !positive(**l)) {
            return invalid("lengthscale", bad.to_string(), expected);
        }
        if !positive(self.signal_variance) {
            return invalid("variance", self.signal_variance.to_string(), expected);
        }
        if !(self.noise_variance >= 0.0 && self.noise_variance.is_finite()) {
            let expected = "give a finite variance, 0 or above";
            return invalid("noise", self.noise_variance.to_string(), expected);
        }
        Ok(())
    }
}
