//! The posterior variance at a set of points. When a row is added, the variance at every point is updated in O(n).
//!
//! Notation: x_1 … x_n are the rows of a round, λ is the noise variance, and K + λI = L Lᵀ. The entries of L⁻¹k(X, x)
//! are v_j(x). Then σ_n²(x) = k(x, x) − Σ_j v_j(x)², and L_ij = v_j(x_i) for j < i. For a new row x_n, compute its row
//! of L, and then v_n(x) = (k(x_n, x) − Σ_{j<n} L_nj v_j(x)) / L_nn at every point.

use ndarray::{Array2, ArrayView2, Axis};
use rand::RngExt;

use crate::error::{Result, Stop, check};
use crate::gp::kernel::{Kernel, ScaledPoints};
use crate::gp::{Hyperparameters, as_row};
use crate::ledger::TrialNumber;
use crate::numerics::growing_cholesky::GrowingCholesky;
use crate::numerics::simd::add_multiple;
use crate::random::Rng;

/// The rows, the points, and the value v_j(x) for every row j and every point x.
pub struct Exploration {
    kernel: Kernel,
    noise_variance: f64,
    points: ScaledPoints,
    prior: Vec<f64>,
    rows: ScaledPoints,
    trials: Vec<TrialNumber>,
    factor: GrowingCholesky,
    v: Vec<Vec<f64>>,
    variance: Vec<f64>,
}

impl Exploration {
    /// Creates the state before any row is added. The variance at `points` (N, d) is the prior variance.
    pub fn new(kernel: Kernel, theta: &Hyperparameters, points: ArrayView2<f64>) -> Self {
        let prior = points.rows().into_iter().map(|x| kernel.prior_variance(x));
        let prior: Vec<f64> = prior.collect();
        Self {
            points: kernel.scale(points),
            rows: ScaledPoints::default(),
            trials: Vec::new(),
            factor: GrowingCholesky::new(),
            v: Vec::new(),
            variance: prior.clone(),
            prior,
            noise_variance: theta.noise_variance,
            kernel,
        }
    }

    /// The trials to which the rows belong.
    pub fn trials(&self) -> &[TrialNumber] {
        &self.trials
    }

    /// Adds a row for the point of a trial.
    pub fn push(&mut self, trial: TrialNumber, x: &[f64], stop: &mut Stop) -> Result<()> {
        check(stop)?;
        let n = self.v.len();
        let row = as_row(x.to_vec());
        let mut cross = Array2::zeros((1, n));
        self.kernel.cross(row.view(), &self.rows, cross.view_mut());
        let prior = self.kernel.prior_variance(row.index_axis(Axis(0), 0));
        let diagonal = Array2::from_elem((1, 1), prior + self.noise_variance);
        self.factor.extend(cross.view(), diagonal)?;
        let mut v = vec![0.0; self.points.len()];
        self.kernel.row(x, &self.points, &mut v);
        for (j, earlier) in self.v.iter().enumerate() {
            add_multiple(-self.factor.at(n, j), earlier, &mut v);
        }
        let inverse = 1.0 / self.factor.at(n, n);
        for (v, variance) in v.iter_mut().zip(&mut self.variance) {
            *v *= inverse;
            *variance -= *v * *v;
        }
        self.rows.append(&self.kernel, row.view());
        self.trials.push(trial);
        self.v.push(v);
        Ok(())
    }

    /// Keeps the first n rows and removes the later rows. The variance is restored bit for bit.
    pub fn keep(&mut self, n: usize) {
        if n >= self.trials.len() {
            return;
        }
        self.trials.truncate(n);
        self.v.truncate(n);
        self.rows.truncate(n);
        self.factor.truncate(n);
        self.variance.copy_from_slice(&self.prior);
        for v in &self.v {
            for (variance, v) in self.variance.iter_mut().zip(v) {
                *variance -= v * v;
            }
        }
    }

    /// Returns the index of the point with the largest variance (Eq. 7). Exact ties are broken uniformly at random.
    pub fn most_uncertain(&self, rng: &mut Rng) -> usize {
        let (mut best, mut most, mut n_ties) = (0, f64::NEG_INFINITY, 0);
        for (i, &variance) in self.variance.iter().enumerate() {
            if variance < most || variance.is_nan() {
                continue;
            }
            // Reservoir sampling: the m-th tied point replaces the current point with probability 1/m.
            n_ties = if variance > most { 1 } else { n_ties + 1 };
            if n_ties == 1 || rng.random_range(0..n_ties) == 0 {
                (best, most) = (i, variance);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gp::GaussianProcess;
    use crate::gp::kernel::KernelFamily;
    use ndarray::s;
    use rand::SeedableRng;
    use std::ops::ControlFlow;

    #[test]
    fn the_variance_equals_the_posterior_variance_even_after_rows_are_dropped() {
        let mut rng = Rng::seed_from_u64(1);
        let points = Array2::from_shape_fn((40, 2), |_| rng.random::<f64>());
        let theta = Hyperparameters::new(vec![0.3, 0.5], 2.0, 1e-4);
        let stop: &mut Stop = &mut || ControlFlow::Continue(());
        for family in KernelFamily::ALL {
            let kernel = theta.kernel(family);
            let mut kept = Exploration::new(kernel.clone(), &theta, points.view());
            let mut variances = vec![kept.variance.clone()];
            for i in 0..12 {
                let x = points.row(3 * i % 10).to_vec();
                kept.push(i, &x, stop).unwrap();
                variances.push(kept.variance.clone());
            }
            let mut gp = GaussianProcess::new(family, &theta).unwrap();
            let rows: Vec<usize> = (0..12).map(|i| 3 * i % 10).collect();
            gp.append_rows(points.select(Axis(0), &rows).view())
                .unwrap();
            gp.set_targets(&[0.0; 12]).unwrap();
            let (_, expected) = gp.predict(points.slice(s![.., ..]));
            for (a, b) in kept.variance.iter().zip(expected) {
                assert!((a - b).abs() < 1e-10, "{family:?}: {a} {b}");
            }
            for n in [12, 7, 3, 0] {
                kept.keep(n);
                assert_eq!(kept.variance, variances[n]);
            }
        }
    }
}
