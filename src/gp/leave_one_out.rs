//! Leave-one-out predictions. Each observed target is predicted from all other targets, with fixed θ.
//!
//! Notation as in [`crate::gp::posterior`]: A = K(X, X) + diag(λ_i) = L Lᵀ, α = A⁻¹y.

use ndarray::{Array2, s};

use crate::error::{Result, Stop, check};
use crate::gp::{BLOCK, GaussianProcess, contiguous, dot_row};

impl GaussianProcess {
    /// Returns the mean and variance of each target given all other targets and θ. Both arrays have shape (n,). The
    /// variances include the noise. The posterior must not have a tail.
    ///
    /// mu_i = y_i − α_i/[A⁻¹]_ii, var_i = 1/[A⁻¹]_ii (Rasmussen & Williams 2006, eq. 5.12). The cost is O(n³).
    pub(crate) fn leave_one_out(&self, stop: &mut Stop) -> Result<(Vec<f64>, Vec<f64>)> {
        let n = self.len();
        let mut mean = self.targets();
        let mut variance = Vec::with_capacity(n);
        for start in (0..n).step_by(BLOCK) {
            check(stop)?;
            // [A⁻¹]_ii = |L⁻¹e_i|². The rows of the block are the unit vectors e_i.
            let end = (start + BLOCK).min(n);
            let mut block = Array2::zeros((end - start, n));
            block.slice_mut(s![.., start..end]).diag_mut().fill(1.0);
            self.factor().forward_substitution(block.view_mut());
            let squares = block.rows().into_iter().map(|v| dot_row(v, contiguous(v)));
            variance.extend(squares.map(f64::recip));
        }
        for ((mean, variance), alpha) in mean.iter_mut().zip(&variance).zip(self.alpha()) {
            *mean -= alpha * variance;
        }
        Ok((mean, variance))
    }
}
