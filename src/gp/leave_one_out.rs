//! Leave-one-out predictions. Each observed target is predicted from all other targets, with fixed θ.
//!
//! Notation as in [`crate::gp::posterior`]: A = K(X, X) + diag(λ_i) = L Lᵀ, α = A⁻¹y.

use ndarray::{Array2, ArrayView2, s};

use crate::error::{Result, Stop, check};
use crate::gp::{BLOCK, GaussianProcess, contiguous, dot_row};
use crate::numerics::cholesky::dot;

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

    /// Returns the posterior mean and variance at a point (1, d) given all rows but row i. The cost is O(n²).
    ///
    /// With w = [A⁻¹k]_i, they are mu − w α_i/[A⁻¹]_ii and var + w²/[A⁻¹]_ii: the inverse of A without row and column i
    /// is a block of A⁻¹ minus a multiple of the outer product of its column i.
    pub(crate) fn predict_without(&self, point: ArrayView2<f64>, i: usize) -> (f64, f64) {
        let mut v = Vec::new();
        let variance = self.predict_with(point, &mut |block| v = block.row(0).to_vec());
        let mut e = vec![0.0; self.len()];
        e[i] = 1.0;
        self.factor().forward_substitution_vector(&mut e);
        let (w, a) = (dot(&e, &v), dot(&e, &e));
        let mean = dot(&v, self.whitened_targets());
        (mean - w * self.alpha()[i] / a, variance[0] + w * w / a)
    }
}

#[cfg(test)]
mod tests {
    use crate::gp::GaussianProcess;
    use crate::gp::kernel::KernelFamily;
    use crate::gp::tests::{model, wave};
    use ndarray::{Axis, s};
    use std::ops::ControlFlow;

    #[test]
    fn a_prediction_without_a_row_is_the_prediction_of_the_other_rows() {
        let all = model(KernelFamily::Matern52, 9);
        let (x, y) = (all.rows().to_owned(), all.targets());
        let point = wave(1, 2, 0.9);
        for i in 0..9 {
            let kept: Vec<usize> = (0..9).filter(|k| *k != i).collect();
            let mut others =
                GaussianProcess::new(KernelFamily::Matern52, &all.hyperparameters()).unwrap();
            others.append_rows(x.select(Axis(0), &kept).view()).unwrap();
            let targets: Vec<f64> = kept.iter().map(|k| y[*k]).collect();
            others.set_targets(&targets).unwrap();
            let (mean, variance) = others.predict(point.view());
            let found = all.predict_without(point.view(), i);
            assert!((found.0 - mean[0]).abs() < 1e-9);
            assert!((found.1 - variance[0]).abs() < 1e-9);
        }
        let (means, variances) = all
            .leave_one_out(&mut || ControlFlow::Continue(()))
            .unwrap();
        let (mean, variance) = all.predict_without(x.slice(s![2..3, ..]), 2);
        assert!((mean - means[2]).abs() < 1e-9);
        assert!((variance + all.noise_variance() - variances[2]).abs() < 1e-9);
    }
}
