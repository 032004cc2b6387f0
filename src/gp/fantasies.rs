//! Fantasies: posteriors that differ only in the values that are assumed for pending trials.
//!
//! Notation: L z = y, where y contains the targets of the observed rows, followed by the targets of the tail; v(x) =
//! L⁻¹k(X, x). If the entries of z for the tail are standard normal, the entries of y for the tail are a joint draw
//! from the predictive distribution of the pending values. Fantasy i adds δ_i to the entries of z for the tail, so its
//! posterior mean is mu_i(x) = mu(x) + v(x)ᵀ(0, δ_i). The posterior variance does not depend on the values, so all
//! fantasies have the same variance.

use std::borrow::BorrowMut;

use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2, s};

use super::{Conditioned, GaussianProcess, contiguous, dot_row};
use crate::error::{Error, Result};
use crate::numerics::cholesky::multiply_transposed;
use crate::numerics::simd::add_multiple;

/// Several fantasies. Each fantasy is stored as its δ.
#[derive(Debug, Clone)]
pub struct Fantasies {
    /// The vectors δ, with shape (m fantasies, rows of the tail).
    shifts: Array2<f64>,
}

impl<G: BorrowMut<GaussianProcess>> Conditioned<G> {
    /// Creates fantasies from the entries of z for the tail. `z` has shape (m fantasies, rows of the tail).
    pub(crate) fn fantasies(&self, z: Array2<f64>) -> Result<Fantasies> {
        let tail = &self.whitened_targets()[self.n_observed()..];
        if z.ncols() != tail.len() {
            return Err(Error::Shape(format!(
                "fantasies of {} values for a tail of {} rows",
                z.ncols(),
                tail.len()
            )));
        }
        Ok(Fantasies {
            shifts: z - ArrayView1::from(tail),
        })
    }
}

impl Fantasies {
    /// The number of fantasies m.
    pub fn len(&self) -> usize {
        self.shifts.nrows()
    }

    /// Writes the posterior means of N points under each fantasy to `out` (N, m). `mean` (N,) contains the posterior
    /// means of the points, and `v` contains the vectors v(x) of the points.
    pub fn means(&self, mean: &[f64], v: ArrayView2<f64>, mut out: ArrayViewMut2<f64>) {
        let tail = v.ncols() - self.shifts.ncols();
        multiply_transposed(v.slice(s![.., tail..]), self.shifts.view(), out.view_mut());
        for (mut row, mean) in out.rows_mut().into_iter().zip(mean) {
            row += *mean;
        }
    }

    /// Posterior means (N, m) and variances (N,) at the rows of `points`.
    pub fn predict(
        &self,
        gp: &GaussianProcess,
        points: ArrayView2<f64>,
    ) -> (Array2<f64>, Vec<f64>) {
        let z = gp.whitened_targets();
        let mut means = Array2::zeros((points.nrows(), self.len()));
        let (mut done, mut mean) = (0, Vec::new());
        let variance = gp.predict_with(points, &mut |v| {
            mean.clear();
            mean.extend(v.rows().into_iter().map(|v| dot_row(v, z)));
            let block = means.slice_mut(s![done..done + v.nrows(), ..]);
            self.means(&mean, v, block);
            done += v.nrows();
        });
        (means, variance)
    }

    /// Posterior means (m, p) at the p rows of the tail, computed from the rows of L without new solves.
    ///
    /// (K + Λ)α = y = L z, where Λ contains the noise variances and the jitter of the rows. So the mean at row i is
    /// (K α)_i = (L z)_i − Λ_ii α_i with α = L⁻ᵀz.
    pub fn means_at_tail<G>(&self, gp: &Conditioned<G>) -> Array2<f64>
    where
        G: BorrowMut<GaussianProcess>,
    {
        let mut means = Array2::zeros(self.shifts.dim());
        let (first, z) = (gp.n_observed(), gp.whitened_targets());
        if first == gp.len() {
            return means;
        }
        let block = gp.factor().trailing_factor(first);
        block.multiply(self.shifts.view(), means.view_mut());
        means += &ArrayView1::from(&gp.factor().multiply_from(first, z));
        let (noise, jitter) = (&gp.row_noise()[first..], &gp.factor().jitters()[first..]);
        let diagonal: Vec<f64> = noise.iter().zip(jitter).map(|(a, b)| a + b).collect();
        if diagonal.iter().any(|d| *d > 0.0) {
            let mut alpha = &self.shifts + &ArrayView1::from(&z[first..]);
            block.backward_substitution(alpha.view_mut());
            means -= &(alpha * ArrayView1::from(&diagonal));
        }
        means
    }

    /// The posterior means at one point, with one mean for each fantasy (see `means`).
    pub fn means_at(&self, mean: f64, v: &[f64], out: &mut [f64]) {
        let tail = &v[v.len() - self.shifts.ncols()..];
        for (out, shift) in out.iter_mut().zip(self.shifts.rows()) {
            *out = mean + dot_row(shift, tail);
        }
    }

    /// Writes Σ_i weight_i δ_i to `out`. This is the derivative of Σ_i weight_i mu_i with respect to the entries of v
    /// for the tail.
    pub fn blend(&self, weights: &[f64], out: &mut Vec<f64>) {
        out.clear();
        out.resize(self.shifts.ncols(), 0.0);
        for (weight, shift) in weights.iter().zip(self.shifts.rows()) {
            add_multiple(*weight, contiguous(shift), out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{model, wave};
    use crate::gp::kernel::KernelFamily;
    use crate::gp::{Conditioned, Target};
    use ndarray::Axis;

    #[test]
    fn means_at_the_tail_equal_predictions_at_its_points() {
        for family in KernelFamily::ALL {
            let mut points = wave(40, 2, 8.8);
            let z = wave(5, 40, 2.2);
            for repeats in [false, true] {
                if repeats {
                    let first = points.row(0).to_owned();
                    points.row_mut(7).assign(&first);
                }
                let gp = model(family, 12);
                let (baseline, pending) = points.view().split_at(Axis(0), 5);
                let values = &[Target::Value(0.8); 40];
                let noisy = Conditioned::on(gp.clone(), points.view(), values).unwrap();
                let noiseless = Conditioned::on_noiseless(gp, baseline, pending).unwrap();
                // Repeated points need jitter.
                assert!(!repeats || noiseless.factor().jitter() > 0.0);
                for gp in [noiseless, noisy] {
                    let fantasies = gp.fantasies(z.clone()).unwrap();
                    let (expected, _) = fantasies.predict(&gp, points.view());
                    let means = fantasies.means_at_tail(&gp);
                    // With a jitter of 1e-12, pivots are about 1e-6, so rounding errors of solves are 1e6 times larger.
                    let tolerance = match gp.factor().jitter() > 0.0 {
                        true => 1e-8,
                        false => 1e-9,
                    };
                    let error = (means - expected.t()).fold(0.0, |m: f64, e| m.max(e.abs()));
                    assert!(error < tolerance, "{family:?} {repeats} {error}");
                }
            }
        }
    }

    #[test]
    fn a_fantasy_equals_the_posterior_given_its_values() {
        for family in KernelFamily::ALL {
            let (tail, points) = (wave(3, 2, 8.8), wave(300, 2, 3.3));
            let targets = &[Target::PosteriorMean; 3];
            let gp = Conditioned::on(model(family, 12), tail.view(), targets).unwrap();
            let z = ndarray::arr2(&[[0.3, -1.2, 0.4], [2.0, 0.1, -0.7]]);
            let fantasies = gp.fantasies(z.clone()).unwrap();
            let (means, _) = fantasies.predict(&gp, points.view());
            for i in 0..2 {
                let mut all = gp.whitened_targets()[..12].to_vec();
                all.extend(z.row(i));
                let y = gp.factor().multiply(&all);
                let values: Vec<_> = y[12..].iter().map(|y| Target::Value(*y)).collect();
                let other = Conditioned::on(model(family, 12), tail.view(), &values).unwrap();
                for (a, b) in means.column(i).iter().zip(other.mean(points.view())) {
                    assert!((a - b).abs() < 1e-9 * b.abs().max(1.0), "{a} {b}");
                }
            }
            assert!(gp.fantasies(wave(2, 4, 1.0)).is_err());
        }
    }
}
