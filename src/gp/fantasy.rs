//! Posteriors that differ only in what the pending trials turn out to be.
//!
//! Notation: L z = y over all rows, the tail last. With z of the tail standard normal, y of the tail is a joint draw from
//! what the model expects of it, noise included. Fantasy i has z_i and α_i = L⁻ᵀz_i, and the mean k(x, X) α_i; the
//! variance is the same for all, as it does not depend on values.

use ndarray::{Array2, ArrayView2, Axis, s};

use super::{BLOCK, GaussianProcess};
use crate::error::{Error, Result};
use crate::kernel::add_multiple;
use crate::linalg::{dot, multiply_transposed};

/// Several outcomes of the tail.
#[derive(Debug, Clone)]
pub struct Fantasies {
    /// z, one row per fantasy: (m, n).
    z: Array2<f64>,
    /// α likewise.
    alpha: Array2<f64>,
}

impl GaussianProcess {
    /// Fantasies with these z of the tail, one row each: (m, rows of the tail).
    pub fn fantasies(&self, tail: ArrayView2<f64>) -> Result<Fantasies> {
        let (m, n, observed) = (tail.nrows(), self.len(), self.n_observed());
        if tail.ncols() != n - observed {
            return Err(Error::Shape(format!(
                "fantasies of {} values for a tail of {} rows",
                tail.ncols(),
                n - observed
            )));
        }
        let mut z = Array2::zeros((m, n));
        for (mut row, tail) in z.rows_mut().into_iter().zip(tail.rows()) {
            let known = self.half_solved_targets()[..observed].iter();
            row.iter_mut()
                .zip(known.chain(tail))
                .for_each(|(z, v)| *z = *v);
        }
        let mut alpha = z.clone();
        self.factor().back_solve(alpha.view_mut());
        Ok(Fantasies { z, alpha })
    }
}

impl Fantasies {
    pub fn len(&self) -> usize {
        self.z.nrows()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// z, one row per fantasy.
    pub fn half_solved_targets(&self) -> ArrayView2<'_, f64> {
        self.z.view()
    }

    /// Posterior means at the rows of `points`, one column per fantasy, and variances.
    pub fn predict(
        &self,
        gp: &GaussianProcess,
        points: ArrayView2<f64>,
    ) -> (Array2<f64>, Vec<f64>) {
        let mut means = Array2::zeros((points.nrows(), self.len()));
        let mut done = 0;
        let variance = gp.predict_with(points, &mut |k| {
            let block = means.slice_mut(s![done..done + k.nrows(), ..]);
            multiply_transposed(k, self.alpha.view(), block);
            done += k.nrows();
        });
        (means, variance)
    }

    /// Posterior means at the rows of `points`, one column per fantasy.
    pub fn means(&self, gp: &GaussianProcess, points: ArrayView2<f64>) -> Array2<f64> {
        let mut out = Array2::zeros((points.nrows(), self.len()));
        let mut block = Array2::zeros((BLOCK.min(points.nrows()), gp.len()));
        for (chunk, out) in points
            .axis_chunks_iter(Axis(0), BLOCK)
            .zip(out.axis_chunks_iter_mut(Axis(0), BLOCK))
        {
            let mut k = block.slice_mut(s![..chunk.nrows(), ..]);
            gp.kernel().cross(chunk, gp.scaled_rows(), k.view_mut());
            multiply_transposed(k.view(), self.alpha.view(), out);
        }
        out
    }

    /// Posterior means at the point that has these covariances with the rows.
    pub fn means_at(&self, k: &[f64], out: &mut [f64]) {
        for (out, alpha) in out.iter_mut().zip(self.alpha.rows()) {
            *out = alpha.to_slice().map_or(f64::NAN, |alpha| dot(alpha, k));
        }
    }

    /// Σ_i weight_i α_i.
    pub fn blend(&self, weights: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        for (weight, alpha) in weights.iter().zip(self.alpha.rows()) {
            if let Some(alpha) = alpha.to_slice() {
                add_multiple(*weight, alpha, out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{model, wave};
    use crate::kernel::KernelShape;
    use crate::pending::Target;

    #[test]
    fn a_fantasy_is_the_posterior_that_its_values_would_give() {
        for shape in KernelShape::ALL {
            let (tail, points) = (wave(3, 2, 8.8), wave(300, 2, 3.3));
            let mut gp = model(shape, 12);
            gp.set_tail(tail.view(), &[Target::PosteriorMean; 3])
                .unwrap();
            let z = ndarray::arr2(&[[0.3, -1.2, 0.4], [2.0, 0.1, -0.7]]);
            let fantasies = gp.fantasies(z.view()).unwrap();
            let means = fantasies.means(&gp, points.view());
            for i in 0..2 {
                let y = gp.factor().multiply(fantasies.z.row(i).as_slice().unwrap());
                let mut other = model(shape, 12);
                let values: Vec<_> = y[12..].iter().map(|y| Target::Value(*y)).collect();
                other.set_tail(tail.view(), &values).unwrap();
                for (a, b) in means.column(i).iter().zip(other.mean(points.view())) {
                    assert!((a - b).abs() < 1e-9 * b.abs().max(1.0), "{a} {b}");
                }
            }
            assert!(gp.fantasies(wave(2, 4, 1.0).view()).is_err());
        }
    }
}
