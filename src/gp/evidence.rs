//! The log evidence log p(y | X, θ) of fixed data, and its gradient. All evaluations reuse one workspace.
//!
//! Notation: A = K(X, X) + Λ = L Lᵀ, and the diagonal of Λ contains the noise variances. Let z = L⁻¹y, α = A⁻¹y and W =
//! α αᵀ − A⁻¹. Then ∂ log p(y) / ∂p = ½ tr(W ∂A/∂p) (Rasmussen & Williams 2006, eq. 5.9).

use std::ops::Range;

use ndarray::{Array2, ArrayView2, Axis};

use super::{RowNoise, as_row, contiguous};
use crate::gp::kernel::{Kernel, ScaledPoints};
use crate::numerics::cholesky::{LowerFactor, factor_in_place};
use crate::numerics::growing_cholesky::tiny_pivot;
use crate::numerics::simd::{difference_to_multiple, dot, multiply};
use crate::numerics::threads::parallel_map;

/// The smallest log Bayes factor, in nats, for which a kernel replaces the earlier kernels in the list, or a transform
/// replaces the identity. Evidence of this size is called strong by Kass & Raftery 1995.
pub(super) const MIN_LOG_BAYES_FACTOR: f64 = 3.0;

/// The number of rows in a strip, the unit of work for a thread. The sums of the strips are added in the order of the
/// rows, so that the result does not depend on the number of threads.
const STRIP: usize = 64;

/// The smallest number of rows for which several threads share the strips.
const THREADS_FROM: usize = 300;

/// The data to which θ is fitted.
#[derive(Debug, Clone, Copy)]
pub struct Data<'a> {
    /// Rows (n, d).
    pub x: ArrayView2<'a, f64>,
    /// Targets (n,).
    pub y: &'a [f64],
    /// The noise variance of each row. The slice is empty if all rows have noise variance λ.
    pub noise: &'a [RowNoise],
    /// If true, the prior mean is a constant m ~ N(0, 1), and m is set to its best value for each θ. If false, the
    /// prior mean is 0.
    pub about_mean: bool,
}

impl Data<'_> {
    /// The noise variance of a row.
    pub(super) fn row_noise(&self, row: usize) -> RowNoise {
        self.noise.get(row).copied().unwrap_or_default()
    }
}

/// The evidence of fixed data as a function of θ. The workspace consists of two matrices; only one triangle of each
/// matrix is used.
pub struct Evidence<'d> {
    data: Data<'d>,
    factor: Array2<f64>,
    inverse: Array2<f64>,
    /// z = L⁻¹(y − m) of the last value, as an array with one row.
    z: Array2<f64>,
}

impl<'d> Evidence<'d> {
    /// Allocates the workspace for these data.
    pub fn new(data: Data<'d>) -> Self {
        let n = data.y.len();
        Self {
            data,
            factor: Array2::zeros((n, n)),
            inverse: Array2::zeros((0, 0)),
            z: Array2::zeros((1, 0)),
        }
    }

    /// log p(y). The value is −∞ if A cannot be factorised without jitter or if `cancelled` returns true.
    pub fn value(
        &mut self,
        kernel: &Kernel,
        noise_variance: f64,
        cancelled: &mut dyn FnMut() -> bool,
    ) -> f64 {
        let points = kernel.scale(self.data.x);
        match self.factorise(kernel, noise_variance, &points, cancelled) {
            Some((z, mean)) => {
                self.z = z;
                self.value_of(mean)
            }
            None => f64::NEG_INFINITY,
        }
    }

    /// Writes the derivatives of log p(y) with respect to log ℓ (one per column), log ℓ₁, log σ_f² and log λ to
    /// `gradient`. The arguments must be the arguments of the last call of [`Self::value`], whose result was finite.
    /// Returns false if `cancelled` returns true.
    ///
    /// All matrices are symmetric. Therefore sums run over j ≥ i, and entries off the diagonal count twice. Computing
    /// rows of K is cheap, so the gradient recomputes the rows.
    pub fn gradient(
        &mut self,
        kernel: &Kernel,
        noise_variance: f64,
        gradient: &mut [f64],
        cancelled: &mut dyn FnMut() -> bool,
    ) -> bool {
        gradient.fill(0.0);
        let points = kernel.scale(self.data.x);
        let mut alpha = self.z.clone();
        LowerFactor::of(&self.factor).backward_substitution(alpha.view_mut());
        let alpha = contiguous(alpha.row(0));
        let n = alpha.len();
        if self.inverse.nrows() != n {
            self.inverse = Array2::zeros((n, n));
        }
        if cancelled() {
            return false;
        }
        LowerFactor::of(&self.factor).invert_half(&mut self.inverse);
        if cancelled() {
            return false;
        }
        let gradient_sums = GradientSums {
            data: self.data,
            kernel,
            noise_variance,
            points: &points,
            alpha,
            inverse: &self.inverse,
        };
        let strips = (0..n).step_by(STRIP).collect();
        let parts = parallel_map(strips, n >= THREADS_FROM, |first: usize| {
            gradient_sums.over(first..n.min(first + STRIP))
        });
        for part in parts {
            gradient.iter_mut().zip(part).for_each(|(g, p)| *g += p);
        }
        true
    }

    /// Writes L to the workspace. Returns z = L⁻¹(y − m), as an array with one row, and the mean m. Returns `None` if A
    /// cannot be factorised without jitter or if `cancelled` returns true.
    ///
    /// A matrix that needs jitter or has a tiny pivot is rejected. Jitter, and the rounding error of a tiny pivot, act
    /// as noise. If such matrices were accepted, a θ with far too little noise would often have the largest evidence.
    ///
    /// The mean m maximises the evidence for this θ. Therefore the derivatives with respect to θ are the partial
    /// derivatives at fixed m.
    fn factorise(
        &mut self,
        kernel: &Kernel,
        noise_variance: f64,
        points: &ScaledPoints,
        cancelled: &mut dyn FnMut() -> bool,
    ) -> Option<(Array2<f64>, f64)> {
        let data = self.data;
        let n = data.y.len();
        let rows = data.x.rows().into_iter();
        let prior = rows.map(|x| kernel.prior_variance(x)).sum::<f64>() / n as f64;
        let noise = (0..n).map(|i| data.row_noise(i).variance(noise_variance));
        let scale = prior + noise.fold(f64::INFINITY, f64::min);
        let strips = self.factor.axis_chunks_iter_mut(Axis(0), STRIP);
        let strips = (0..n).step_by(STRIP).zip(strips).collect();
        parallel_map(strips, n >= THREADS_FROM, |(first, mut strip)| {
            for (i, mut row) in (first..).zip(strip.rows_mut()) {
                let row = row.as_slice_mut().expect("rows of a whole array");
                let x = contiguous(data.x.row(i));
                kernel.row_from(x, points, i, &mut row[i..]);
                row[i] += data.row_noise(i).variance(noise_variance);
            }
        });
        if cancelled() || factor_in_place(&mut self.factor).is_err() || cancelled() {
            return None;
        }
        if tiny_pivot(&self.factor, scale).is_some() {
            return None;
        }
        let factor = LowerFactor::of(&self.factor);
        let mut z = as_row(data.y.to_vec());
        factor.forward_substitution(z.view_mut());
        let mut mean = 0.0;
        if data.about_mean {
            // m = 1ᵀA⁻¹y / (1 + 1ᵀA⁻¹1) is computed from e = L⁻¹1.
            let mut e = as_row(vec![1.0; n]);
            factor.forward_substitution(e.view_mut());
            let (e_row, z_row) = (contiguous(e.row(0)), contiguous(z.row(0)));
            mean = dot(e_row, z_row) / (1.0 + dot(e_row, e_row));
            z.scaled_add(-mean, &e);
        }
        Some((z, mean))
    }

    /// log p(y) = −½ |z|² − ½ log det A − ½ n log 2π (Rasmussen & Williams 2006, eq. 2.30), plus −½ m² for the prior of
    /// m.
    fn value_of(&self, mean: f64) -> f64 {
        let z = contiguous(self.z.row(0));
        let half_log_det: f64 = self.factor.diag().iter().map(|l| l.ln()).sum();
        let log_two_pi = (2.0 * std::f64::consts::PI).ln();
        -0.5 * dot(z, z) - half_log_det - 0.5 * z.len() as f64 * log_two_pi - 0.5 * mean * mean
    }
}

/// The quantities from which the derivatives of the log evidence are computed.
struct GradientSums<'a, 'd> {
    data: Data<'d>,
    kernel: &'a Kernel,
    noise_variance: f64,
    points: &'a ScaledPoints,
    alpha: &'a [f64],
    inverse: &'a Array2<f64>,
}

impl GradientSums<'_, '_> {
    /// Returns the terms of the gradient, summed over these rows.
    fn over(&self, rows: Range<usize>) -> Vec<f64> {
        let n = self.data.x.nrows();
        let d = self.kernel.width() + self.kernel.descriptor_lengthscale.len();
        let mut sums = vec![0.0; d + 2];
        let length = n - rows.start;
        let (mut k, mut slope, mut w) = (vec![0.0; length], vec![0.0; length], vec![0.0; length]);
        for i in rows {
            let (k, slope, w) = (&mut k[..n - i], &mut slope[..n - i], &mut w[..n - i]);
            let x = contiguous(self.data.x.row(i));
            self.kernel.row_with_slope_from(x, self.points, i, k, slope);
            // −W_ij = A⁻¹_ij − α_i α_j. An entry on the diagonal has half the weight of an entry off the diagonal.
            let inverse = &contiguous(self.inverse.row(i))[i..];
            difference_to_multiple(inverse, self.alpha[i], &self.alpha[i..], w);
            w[0] *= 0.5;
            // Add ½ W_ij dK_ij/d log σ_f², where dK/d log σ_f² = K. If the noise depends on λ, also add ½ W_ii λ.
            sums[d] -= dot(w, k);
            if matches!(self.data.row_noise(i), RowNoise::Added(_)) {
                sums[d + 1] -= self.noise_variance * w[0];
            }
            multiply(slope, w);
            self.kernel
                .add_lengthscale_sums(x, self.points, i, w, &mut sums[..d]);
        }
        sums
    }
}
