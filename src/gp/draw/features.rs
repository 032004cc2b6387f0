//! Random features of a kernel, whose weighted sums are approximate draws from the prior.
//!
//! Notation: the M features are φ_i(x) = a·c_i with amplitude a; c_i and s_i are the cosine and the sine of the phase
//! ω_iᵀw(x) + b_i, where w is the input warp.

use ndarray::{Array2, ArrayView1};
use rand::RngExt;

use crate::gp::kernel::{InputWarp, Kernel};
use crate::numerics::simd::{add_multiple, dot, multiversion};
use crate::numerics::special::sine_and_cosine;
use crate::random::Rng;

/// Features with E φ(x)ᵀφ(x') = κ. For stationary kernels, the features are sqrt(2/M)·cos(ω_iᵀw(x) + b_i) with random
/// ω_i and b_i (Rahimi & Recht 2007). For the linear kernel, the features are the coordinates of x̃ and the constant 1,
/// and the equation is exact.
#[derive(Debug, Clone)]
pub(super) struct Features {
    /// The frequencies ω (d, M), with one column per feature.
    omega: Array2<f64>,
    b: Vec<f64>,
    /// The input warp w of the kernel.
    input_warp: InputWarp,
    /// Whether the kernel is linear. For the linear kernel, the features are the phases instead of their cosines.
    linear: bool,
}

impl Features {
    /// Draws n random features, or creates the d + 1 features of the linear kernel.
    pub(super) fn draw(kernel: &Kernel, n: usize, rng: &mut Rng) -> Self {
        let mut omega = Array2::zeros((kernel.width(), n));
        for mut column in omega.columns_mut() {
            let Some(draw) = kernel.spectral_draw(rng) else {
                return Self::linear(kernel);
            };
            column.assign(&ArrayView1::from(&draw));
        }
        let b = (0..n)
            .map(|_| rng.random_range(0.0..2.0 * std::f64::consts::PI))
            .collect();
        Self {
            omega,
            b,
            input_warp: kernel.input_warp.clone(),
            linear: false,
        }
    }

    fn linear(kernel: &Kernel) -> Self {
        let d = kernel.width();
        let mut omega = Array2::zeros((d, d + 1));
        for (k, l) in kernel.lengthscale.iter().enumerate() {
            omega[[k, k]] = 1.0 / l;
        }
        let mut b = vec![0.0; d + 1];
        b[d] = 1.0;
        Self {
            omega,
            b,
            input_warp: InputWarp::default(),
            linear: true,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.b.len()
    }

    pub(super) fn amplitude(&self) -> f64 {
        if self.linear {
            1.0
        } else {
            (2.0 / self.len() as f64).sqrt()
        }
    }

    /// Σ_i weight_i·d(ω_iᵀw(x))/dx_d.
    pub(super) fn contract_phases(&self, x: &[f64], d: usize, weight: &[f64]) -> f64 {
        self.input_warp.slope(x[d], d) * dot(self.omega(d), weight)
    }

    /// Row d of ω.
    fn omega(&self, d: usize) -> &[f64] {
        let n = self.len();
        self.omega
            .as_slice()
            .map_or(&[], |all| &all[d * n..(d + 1) * n])
    }

    /// Writes the sines s and the cosines c of the phases at x. For linear features, c are the phases and s is −1,
    /// minus the derivative of c with respect to the phase.
    pub(super) fn evaluate(&self, x: &[f64], sines: &mut [f64], cosines: &mut [f64]) {
        cosines.copy_from_slice(&self.b);
        // Skip zeros, because most columns of categories are 0.
        for (d, x) in x.iter().enumerate().filter(|(_, x)| **x != 0.0) {
            add_multiple(self.input_warp.value(*x, d), self.omega(d), cosines);
        }
        if self.linear {
            sines.fill(-1.0);
        } else {
            sines_and_cosines(sines, cosines);
        }
    }
}

/// Replaces phases by their cosines, and writes the sines of the phases to `sines`.
#[multiversion(targets = "simd")]
fn sines_and_cosines(sines: &mut [f64], cosines: &mut [f64]) {
    for (s, c) in sines.iter_mut().zip(cosines) {
        (*s, *c) = sine_and_cosine(*c);
    }
}
