//! Gaussian-process regression over observed rows and a tail of pending ones.
//!
//! Notation: X (n, d) one row per point, λ the noise variance, A = K(X, X) + λI = L Lᵀ, z = L⁻¹y, α = A⁻¹y.
//!
//! mu(x) = k(x, X) α,  var(x) = k(x, x) − |L⁻¹ k(X, x)|²  (Rasmussen & Williams 2006, eqs. 2.25–2.26).
//!
//! * [`evidence`]: log p(y | X, θ) and its gradient; [`fit`]: priors on it, and its maximisation
//! * [`draw`]: exact draws at points, and draws as functions; [`kernel`]: covariance functions
//! * [`tail`]: rows of pending trials; [`fantasies`]: what pending trials may turn out to be

pub mod draw;
pub mod evidence;
pub mod fantasies;
pub mod fit;
pub mod kernel;
pub mod tail;

use ndarray::{Array2, ArrayView1, ArrayView2, Axis, s};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::gp::kernel::{Kernel, KernelFamily, ScaledPoints, add_multiple};
use crate::numerics::cholesky::{GrowingCholesky, dot};

/// Test points are handled in blocks of this many, so that a block and its solve stay in cache.
pub(crate) const BLOCK: usize = 256;

/// θ: everything that is fitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hyperparameters {
    /// ℓ, one per column.
    pub lengthscale: Vec<f64>,
    /// s², the signal variance.
    pub signal_variance: f64,
    /// λ, the noise variance.
    pub noise_variance: f64,
}

impl Hyperparameters {
    pub fn kernel(&self, family: KernelFamily) -> Kernel {
        Kernel {
            family,
            lengthscale: self.lengthscale.clone(),
            signal_variance: self.signal_variance,
        }
    }
}

/// A posterior: observed rows in the order of their arrival, then the pending tail.
#[derive(Debug, Clone)]
pub struct GaussianProcess {
    kernel: Kernel,
    noise_variance: f64,
    rows: Array2<f64>,
    scaled: ScaledPoints,
    /// The noise variance of each row: λ, unless another one was given with it.
    row_noise: Vec<f64>,
    factor: GrowingCholesky,
    n_observed: usize,
    z: Vec<f64>,
    alpha: Vec<f64>,
}

impl GaussianProcess {
    /// A posterior without rows: the prior.
    pub fn new(family: KernelFamily, theta: &Hyperparameters) -> Result<Self> {
        let positive = |v: f64| v > 0.0 && v.is_finite();
        let complaint = |name, got: f64| Error::InvalidSetting {
            name,
            got: got.to_string(),
            expected: "give a finite number above 0",
        };
        if theta.lengthscale.is_empty() {
            return Err(Error::InvalidSetting {
                name: "lengthscale",
                got: "[]".to_string(),
                expected: "give one for every column, or a single number",
            });
        }
        if let Some(&bad) = theta.lengthscale.iter().find(|l| !positive(**l)) {
            return Err(complaint("lengthscale", bad));
        }
        if !positive(theta.signal_variance) {
            return Err(complaint("variance", theta.signal_variance));
        }
        if !(theta.noise_variance >= 0.0 && theta.noise_variance.is_finite()) {
            return Err(Error::InvalidSetting {
                name: "noise",
                got: theta.noise_variance.to_string(),
                expected: "give a finite variance, 0 or above",
            });
        }
        let kernel = theta.kernel(family);
        Ok(Self {
            rows: Array2::zeros((0, kernel.width())),
            kernel,
            noise_variance: theta.noise_variance,
            scaled: ScaledPoints::default(),
            row_noise: Vec::new(),
            factor: GrowingCholesky::new(),
            n_observed: 0,
            z: Vec::new(),
            alpha: Vec::new(),
        })
    }

    pub fn hyperparameters(&self) -> Hyperparameters {
        Hyperparameters {
            lengthscale: self.kernel.lengthscale.clone(),
            signal_variance: self.kernel.signal_variance,
            noise_variance: self.noise_variance,
        }
    }

    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// λ.
    pub fn noise_variance(&self) -> f64 {
        self.noise_variance
    }

    /// All rows, tail included.
    pub fn rows(&self) -> ArrayView2<'_, f64> {
        self.rows.view()
    }

    /// Rows that hold data; those after them stand for pending trials.
    pub fn n_observed(&self) -> usize {
        self.n_observed
    }

    /// All rows, tail included.
    pub fn len(&self) -> usize {
        self.factor.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn factor(&self) -> &GrowingCholesky {
        &self.factor
    }

    /// z = L⁻¹y, 0 at hallucinated rows.
    pub fn whitened_targets(&self) -> &[f64] {
        &self.z
    }

    /// The noise variance of each row, tail included.
    pub fn row_noise(&self) -> &[f64] {
        &self.row_noise
    }

    /// Appends observed rows as one block, and drops the tail. Their targets come with `set_targets`.
    pub fn append_rows(&mut self, x: ArrayView2<f64>) -> Result<()> {
        self.append_noisy_rows(x, &vec![None; x.nrows()])
    }

    /// As `append_rows`, with the noise variance of rows where it is known; λ for the others.
    pub fn append_noisy_rows(&mut self, x: ArrayView2<f64>, noise: &[Option<f64>]) -> Result<()> {
        if noise.len() != x.nrows() {
            return Err(Error::Shape(format!(
                "{} noise variances for {} rows; give one for each",
                noise.len(),
                x.nrows()
            )));
        }
        self.drop_tail();
        let noise: Vec<f64> = noise
            .iter()
            .map(|v| v.unwrap_or(self.noise_variance))
            .collect();
        self.extend(x, &noise)?;
        self.n_observed = self.len();
        Ok(())
    }

    /// Gives the observed rows their targets (n_observed,), and drops the tail: O(n²).
    pub fn set_targets(&mut self, y: &[f64]) -> Result<()> {
        if y.len() != self.n_observed {
            return Err(Error::Shape(format!(
                "{} targets for {} rows; give one target per row",
                y.len(),
                self.n_observed
            )));
        }
        self.drop_tail();
        let mut z = as_row(y.to_vec());
        self.factor.forward_substitution(z.view_mut());
        self.z = z.into_raw_vec_and_offset().0;
        self.update_alpha();
        self.check_range(y.iter().copied())
    }

    /// As `set_targets`, about a constant of prior N(0, 1) that is estimated and returned: mu = 1ᵀA⁻¹y / (1 + 1ᵀA⁻¹1).
    pub fn set_targets_about_mean(&mut self, y: &[f64]) -> Result<f64> {
        self.set_targets(y)?;
        let mut e = vec![1.0; y.len()];
        self.factor.forward_substitution_vector(&mut e);
        let mean = dot(&e, &self.z) / (1.0 + dot(&e, &e));
        add_multiple(-mean, &e, &mut self.z);
        self.update_alpha();
        Ok(mean)
    }

    /// y = L z of all rows: the targets given, and the posterior mean at hallucinated rows.
    pub fn targets(&self) -> Vec<f64> {
        self.factor.multiply(&self.z)
    }

    /// Posterior mean and variance of f, without noise, at the rows of `points`.
    pub fn predict(&self, points: ArrayView2<f64>) -> (Vec<f64>, Vec<f64>) {
        let mut mean = Vec::with_capacity(points.nrows());
        let variance = self.predict_with(points, &mut |v| {
            mean.extend(v.rows().into_iter().map(|v| dot_row(v, &self.z)));
        });
        (mean, variance)
    }

    /// Posterior variances at the rows of `points`; `look` is shown their v = L⁻¹k(X, x), block by block. Means are vᵀz.
    pub(crate) fn predict_with(
        &self,
        points: ArrayView2<f64>,
        look: &mut dyn FnMut(ArrayView2<f64>),
    ) -> Vec<f64> {
        let n = points.nrows();
        let mut variance = Vec::with_capacity(n);
        let mut block = Array2::zeros((BLOCK.min(n.max(1)), self.len()));
        for chunk in points.axis_chunks_iter(Axis(0), BLOCK) {
            let mut v = block.slice_mut(s![..chunk.nrows(), ..]);
            self.kernel.cross(chunk, &self.scaled, v.view_mut());
            self.factor.forward_substitution(v.view_mut());
            look(v.view());
            let prior = chunk
                .rows()
                .into_iter()
                .map(|x| self.kernel.prior_variance(x));
            variance.extend(
                prior
                    .zip(v.rows())
                    .map(|(prior, v)| variance_left(prior, v)),
            );
        }
        variance
    }

    /// Posterior mean alone, at the rows of `points`: O(n) each.
    pub fn mean(&self, points: ArrayView2<f64>) -> Vec<f64> {
        let mut k = vec![0.0; self.len()];
        let mut z = vec![0.0; self.kernel.width()];
        let row = |row: ArrayView1<f64>| {
            z.iter_mut().zip(row).for_each(|(z, v)| *z = *v);
            self.kernel.row(&z, &self.scaled, &mut k);
            dot(&k, &self.alpha)
        };
        points.rows().into_iter().map(row).collect()
    }

    /// Posterior mean and variance at one point; the workspace keeps what `gradient` needs.
    pub fn predict_at(&self, x: &[f64], workspace: &mut Workspace) -> (f64, f64) {
        let Workspace { v, slope, .. } = workspace;
        v.resize(self.len(), 0.0);
        slope.resize(self.len(), 0.0);
        self.kernel.row_with_slope(x, &self.scaled, v, slope);
        self.factor.forward_substitution_vector(v);
        let prior = self.kernel.prior_variance(ArrayView1::from(x));
        (dot(v, &self.z), variance_left(prior, ArrayView1::from(&*v)))
    }

    /// by_mean·∇mu + by_variance·∇var + Σ_i by_tail_i ∇v_i at the point of the last `predict_at`, v_i being the entries
    /// of v = L⁻¹k(X, x) at the last rows.
    ///
    /// With ∇mu = Σ_j α_j ∇k(x, x_j) and ∇v = L⁻¹∇k, all of it is Σ_j c_j ∇k(x, x_j) + by_variance·∇k(x, x) with
    /// c = by_mean·α + L⁻ᵀ((0, by_tail) − 2 by_variance·v): one solve, one sum.
    pub fn gradient(
        &self,
        x: &[f64],
        by_mean: f64,
        by_variance: f64,
        by_tail: &[f64],
        workspace: &mut Workspace,
        out: &mut [f64],
    ) {
        let Workspace { v, slope, c } = workspace;
        c.clear();
        if by_variance == 0.0 && by_tail.is_empty() {
            c.extend(self.alpha.iter().map(|a| by_mean * a));
        } else {
            c.extend(v.iter().map(|v| -2.0 * by_variance * v));
            let first = c.len() - by_tail.len();
            c[first..]
                .iter_mut()
                .zip(by_tail)
                .for_each(|(c, w)| *c += w);
            self.factor.backward_substitution_vector(c);
            add_multiple(by_mean, &self.alpha, c);
        }
        self.kernel
            .contract_gradient(x, &self.scaled, slope, c, out);
        self.kernel.add_prior_gradient(x, by_variance, out);
    }

    /// log p(y | X, θ) of all rows (Rasmussen & Williams 2006, eq. 2.30).
    pub fn log_marginal_likelihood(&self) -> f64 {
        let n = self.len() as f64;
        -0.5 * dot(&self.z, &self.z)
            - 0.5 * self.factor.log_det()
            - 0.5 * n * (2.0 * std::f64::consts::PI).ln()
    }

    pub(crate) fn scaled_rows(&self) -> &ScaledPoints {
        &self.scaled
    }

    pub(crate) fn alpha(&self) -> &[f64] {
        &self.alpha
    }

    fn extend(&mut self, x: ArrayView2<f64>, noise: &[f64]) -> Result<()> {
        if x.ncols() != self.kernel.width() {
            return Err(Error::Shape(format!(
                "points of {} columns for a kernel of {}",
                x.ncols(),
                self.kernel.width()
            )));
        }
        let mut cross = Array2::zeros((x.nrows(), self.len()));
        self.kernel.cross(x, &self.scaled, cross.view_mut());
        let mut block = self.kernel.gram(x);
        let diagonal = block.diag_mut().into_iter().zip(noise);
        diagonal.for_each(|(k, noise)| *k += noise);
        self.factor.extend(cross.view(), block)?;
        self.kernel.append_scaled(&mut self.scaled, x);
        self.rows.append(Axis(0), x).expect("widths agree");
        self.row_noise.extend(noise);
        Ok(())
    }

    fn drop_tail(&mut self) {
        self.factor.truncate(self.n_observed);
        self.scaled.truncate(self.n_observed);
        self.row_noise.truncate(self.n_observed);
        if self.rows.nrows() > self.n_observed {
            let width = self.rows.ncols();
            let (mut values, _) = std::mem::take(&mut self.rows).into_raw_vec_and_offset();
            values.truncate(self.n_observed * width);
            self.rows = Array2::from_shape_vec((self.n_observed, width), values)
                .expect("whole rows were kept");
            self.z.truncate(self.n_observed);
            self.update_alpha();
        }
    }

    /// Refuses `targets` that overflow. With |k| ≤ v and |L⁻¹k| ≤ √v, means are finite where v·Σ|α| and √v·Σ|z| are;
    /// for the linear kernel v is the largest k(x, x) of a row.
    fn check_range(&self, targets: impl Iterator<Item = f64>) -> Result<()> {
        let size = |weights: &[f64]| weights.iter().map(|w| w.abs()).sum::<f64>();
        let rows = self.rows.rows().into_iter();
        let v = rows
            .map(|x| self.kernel.prior_variance(x))
            .fold(0.0, f64::max);
        if (v * size(&self.alpha)).is_finite() && (v.sqrt() * size(&self.z)).is_finite() {
            return Ok(());
        }
        let largest = targets.fold(0.0, |m: f64, y| m.max(y.abs()));
        Err(Error::Overflow { largest })
    }

    fn update_alpha(&mut self) {
        if self.z.len() != self.factor.len() {
            return; // rows still wait for their targets
        }
        let mut alpha = as_row(self.z.clone());
        self.factor.backward_substitution(alpha.view_mut());
        self.alpha = alpha.into_raw_vec_and_offset().0;
    }
}

/// What `predict_at` leaves for `gradient`, and buffers, all as long as there are rows.
#[derive(Debug, Default)]
pub struct Workspace {
    v: Vec<f64>,
    slope: Vec<f64>,
    c: Vec<f64>,
}

impl Workspace {
    /// v = L⁻¹k(X, x) at the point of the last `predict_at`.
    pub fn whitened(&self) -> &[f64] {
        &self.v
    }
}

/// k(x, x) − |v|², never below 0: rounding may take it there.
pub(crate) fn variance_left(prior: f64, v: ArrayView1<f64>) -> f64 {
    let v = contiguous(v);
    (prior - dot(v, v)).max(0.0)
}

pub(crate) fn as_row(values: Vec<f64>) -> Array2<f64> {
    Array2::from_shape_vec((1, values.len()), values).expect("one row holds all values")
}

pub(crate) fn dot_row(a: ArrayView1<f64>, b: &[f64]) -> f64 {
    dot(contiguous(a), b)
}

pub(crate) fn contiguous<'a>(row: ArrayView1<'a, f64>) -> &'a [f64] {
    row.to_slice().expect("blocks have contiguous rows")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::gp::tail::Target;

    #[test]
    fn targets_that_overflow_are_refused_and_large_ones_are_not() {
        let theta = Hyperparameters {
            lengthscale: vec![0.7, 1.1],
            signal_variance: 1.0,
            noise_variance: 1e-6,
        };
        let rows = ndarray::arr2(&[[0.1, 0.2], [0.1, 0.2], [0.9, 0.3]]);
        let mut gp = GaussianProcess::new(KernelFamily::Matern52, &theta).unwrap();
        gp.append_rows(rows.view()).unwrap();
        let refused = gp.set_targets(&[1e305, -1e305, 1.0]);
        assert_eq!(refused, Err(Error::Overflow { largest: 1e305 }));
        gp.set_targets(&[1e300, -1e300, 1e-300]).unwrap();
        assert!(gp.mean(rows.view()).iter().all(|m| m.is_finite()));
        let refused = gp.set_tail(rows.view(), &[Target::Value(f64::MIN); 3]);
        assert_eq!(refused, Err(Error::Overflow { largest: f64::MAX }));
    }

    pub(crate) fn wave(n: usize, d: usize, seed: f64) -> Array2<f64> {
        Array2::from_shape_fn((n, d), |(i, k)| {
            (((i * 7 + k * 13) as f64 + seed) * 1.618).sin()
        })
    }

    pub(crate) fn model(family: KernelFamily, n: usize) -> GaussianProcess {
        let theta = Hyperparameters {
            lengthscale: vec![0.7, 1.1],
            signal_variance: 1.3,
            noise_variance: 0.01,
        };
        let mut gp = GaussianProcess::new(family, &theta).unwrap();
        let x = wave(n, 2, 0.4);
        gp.append_rows(x.view()).unwrap();
        let y: Vec<f64> = x.rows().into_iter().map(|r| r[0] * 2.0 - r[1]).collect();
        gp.set_targets(&y).unwrap();
        gp
    }

    #[test]
    fn hallucinated_rows_leave_the_mean_and_shrink_the_variance() {
        for family in KernelFamily::ALL {
            let mut gp = model(family, 20);
            let z = wave(9, 2, 3.3);
            let (mean, variance) = gp.predict(z.view());
            let tail = wave(3, 2, 8.8);
            gp.set_tail(tail.view(), &[Target::PosteriorMean; 3])
                .unwrap();
            let (mean_after, variance_after) = gp.predict(z.view());
            for i in 0..9 {
                assert!((mean[i] - mean_after[i]).abs() < 1e-10);
                assert!(variance_after[i] <= variance[i] + 1e-12);
            }
            assert!(variance_after.iter().sum::<f64>() < variance.iter().sum::<f64>());
            let tail_means = gp.targets();
            assert!((tail_means[20] - gp.mean(tail.view())[0]).abs() < 1e-9);
        }
    }

    #[test]
    fn nearest_means_are_those_of_a_search_through_all_rows() {
        let mut gp = model(KernelFamily::Matern52, 20);
        let tail = wave(4, 2, 8.8);
        let (rows, mean) = (gp.rows().to_owned(), gp.mean(gp.rows()));
        for k in [1, 3, 20, 99] {
            gp.set_tail(tail.view(), &[Target::NearestMean(k); 4])
                .unwrap();
            let tail_means = gp.targets();
            for (i, x) in tail.rows().into_iter().enumerate() {
                let distance =
                    |j: usize| ((rows[[j, 0]] - x[0]) / 0.7).hypot((rows[[j, 1]] - x[1]) / 1.1);
                let mut order: Vec<usize> = (0..20).collect();
                order.sort_by(|&a, &b| distance(a).total_cmp(&distance(b)));
                let expected =
                    order[..k.min(20)].iter().map(|&j| mean[j]).sum::<f64>() / k.min(20) as f64;
                assert!((tail_means[20 + i] - expected).abs() < 1e-9);
            }
        }
        let mut empty =
            GaussianProcess::new(KernelFamily::Matern52, &gp.hyperparameters()).unwrap();
        empty.set_targets(&[]).unwrap();
        empty
            .set_tail(tail.view(), &[Target::NearestMean(2); 4])
            .unwrap();
        assert_eq!(empty.mean(tail.view()), [0.0; 4]);
    }

    #[test]
    fn a_tail_of_values_is_data_and_goes_away_again() {
        let mut gp = model(KernelFamily::Matern52, 15);
        let (x, z) = (wave(2, 2, 5.0), wave(4, 2, 9.0));
        let before = gp.predict(z.view());
        gp.set_tail(x.view(), &[Target::Value(-1.0), Target::Value(0.5)])
            .unwrap();
        let with_tail = gp.predict(z.view());
        let mut other = model(KernelFamily::Matern52, 15);
        let mut y = other.targets();
        other.append_rows(x.view()).unwrap();
        y.extend([-1.0, 0.5]);
        other.set_targets(&y).unwrap();
        let as_data = other.predict(z.view());
        for i in 0..4 {
            assert!((with_tail.0[i] - as_data.0[i]).abs() < 1e-10);
            assert!((with_tail.1[i] - as_data.1[i]).abs() < 1e-10);
        }
        gp.set_tail(Array2::zeros((0, 2)).view(), &[]).unwrap();
        assert_eq!(gp.predict(z.view()), before);
    }

    #[test]
    fn gradients_are_finite_differences() {
        for family in KernelFamily::ALL {
            let gp = model(family, 12);
            let x = [0.21, -0.33];
            let mut workspace = Workspace::default();
            let (mean, variance) = gp.predict_at(&x, &mut workspace);
            let at = |x: &[f64]| {
                let (m, v) = gp.predict(as_row(x.to_vec()).view());
                (m[0], v[0])
            };
            assert!((mean - at(&x).0).abs() < 1e-12 && (variance - at(&x).1).abs() < 1e-12);
            for (by_mean, by_variance, by_tail) in [
                (1.0, 0.0, vec![]),
                (0.0, 1.0, vec![]),
                (0.7, -0.3, vec![]),
                (0.2, 0.4, vec![1.0, -2.0, 0.5]),
            ] {
                let mut gradient = [0.0; 2];
                gp.predict_at(&x, &mut workspace);
                gp.gradient(
                    &x,
                    by_mean,
                    by_variance,
                    &by_tail,
                    &mut workspace,
                    &mut gradient,
                );
                let mut weighted = |x: &[f64]| {
                    let (mean, variance) = gp.predict_at(x, &mut workspace);
                    let tail: f64 = by_tail
                        .iter()
                        .zip(&workspace.whitened()[9..])
                        .map(|(w, v)| w * v)
                        .sum();
                    by_mean * mean + by_variance * variance + tail
                };
                for d in 0..2 {
                    let h = 1e-5;
                    let (mut up, mut down) = (x, x);
                    up[d] += h;
                    down[d] -= h;
                    let slope = (weighted(&up) - weighted(&down)) / (2.0 * h);
                    assert!((gradient[d] - slope).abs() < 1e-6);
                }
            }
        }
    }

    /// A constant of prior N(0, 1) is a kernel that is 1 everywhere.
    #[test]
    fn an_estimated_mean_is_a_constant_covariance() {
        for family in KernelFamily::ALL {
            let mut gp = model(family, 12);
            let y: Vec<f64> = gp.targets().iter().map(|y| y + 3.0).collect();
            let mut a = gp.kernel().gram(gp.rows()) + 1.0;
            a.diag_mut()
                .iter_mut()
                .for_each(|a| *a += gp.noise_variance());
            let mut factor = GrowingCholesky::new();
            factor.extend(Array2::zeros((12, 0)).view(), a).unwrap();
            let mut alpha = y.clone();
            factor.forward_substitution_vector(&mut alpha);
            factor.backward_substitution_vector(&mut alpha);
            let z = wave(4, 2, 0.9);
            let mut k = Array2::zeros((4, 12));
            gp.kernel().cross(z.view(), &gp.scaled, k.view_mut());
            let mean = gp.set_targets_about_mean(&y).unwrap();
            for (own, k) in gp.mean(z.view()).iter().zip((k + 1.0).rows()) {
                let expected = dot_row(k, &alpha);
                assert!((own + mean - expected).abs() < 1e-9 * expected.abs().max(1.0));
            }
        }
    }

    #[test]
    fn bad_hyperparameters_are_refused() {
        for (lengthscale, signal_variance, noise_variance) in [
            (0.0, 1.0, 1.0),
            (f64::NAN, 1.0, 1.0),
            (1.0, -1.0, 1.0),
            (1.0, 1.0, -1.0),
            (1.0, 1.0, f64::INFINITY),
        ] {
            let theta = Hyperparameters {
                lengthscale: vec![lengthscale],
                signal_variance,
                noise_variance,
            };
            assert!(matches!(
                GaussianProcess::new(KernelFamily::Matern52, &theta),
                Err(Error::InvalidSetting { .. })
            ));
        }
    }
}
