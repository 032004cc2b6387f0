//! The posterior given observed rows and a tail of pending rows, and the predictions of the posterior.
//!
//! Notation: the rows of X (n, d) are the points, λ is the noise variance, A = K(X, X) + λI = L Lᵀ, z = L⁻¹y and α =
//! A⁻¹y. For a point x, k = k(X, x) and v = L⁻¹k.
//!
//! mu(x) = kᵀα = vᵀz,  var(x) = k(x, x) − |v|²  (Rasmussen & Williams 2006, eqs. 2.25–2.26).

use std::ops::ControlFlow;

use ndarray::{Array2, ArrayView1, ArrayView2, Axis, s};

use crate::error::{Error, Result};
use crate::gp::Hyperparameters;
use crate::gp::kernel::{Category, Kernel, KernelFamily, ScaledPoints};
use crate::gp::solved_tail::SolvedTail;
use crate::numerics::cholesky::subtract_gram_of_rows;
use crate::numerics::growing_cholesky::{GrowingCholesky, slices};
use crate::numerics::simd::{add_multiple, dot};

/// The number of test points in a block, so that a block and its triangular solve fit in the cache.
pub(crate) const BLOCK: usize = 256;

/// The noise variance of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RowNoise {
    /// A known variance.
    Known(f64),
    /// The noise variance λ of the model, plus this variance.
    Added(f64),
}

impl Default for RowNoise {
    fn default() -> Self {
        RowNoise::Added(0.0)
    }
}

impl RowNoise {
    /// The variance for this λ.
    pub(crate) fn variance(self, lambda: f64) -> f64 {
        match self {
            RowNoise::Known(variance) => variance,
            RowNoise::Added(variance) => lambda + variance,
        }
    }
}

/// A Gaussian-process posterior. The observed rows are in order of arrival, and the tail of pending rows follows.
#[derive(Debug, Clone)]
pub struct GaussianProcess {
    kernel: Kernel,
    noise_variance: f64,
    rows: Array2<f64>,
    scaled: ScaledPoints,
    /// The noise variance of each row. The default is λ.
    row_noise: Vec<f64>,
    factor: GrowingCholesky,
    n_observed: usize,
    pub(super) z: Vec<f64>,
    pub(super) alpha: Vec<f64>,
    pub(super) solved_tail: SolvedTail,
}

impl GaussianProcess {
    /// A posterior without rows, which is the prior.
    pub(crate) fn new(family: KernelFamily, theta: &Hyperparameters) -> Result<Self> {
        theta.check()?;
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
            solved_tail: SolvedTail::default(),
        })
    }

    /// Sets the columns of categories. The posterior must not have rows yet.
    pub(crate) fn with_categories(mut self, categories: &[Category]) -> Self {
        self.kernel = self.kernel.with_categories(categories);
        self
    }

    /// The hyperparameters θ.
    pub(crate) fn hyperparameters(&self) -> Hyperparameters {
        Hyperparameters {
            lengthscale: self.kernel.lengthscale.clone(),
            signal_variance: self.kernel.signal_variance,
            noise_variance: self.noise_variance,
            descriptor_lengthscale: self.kernel.descriptor_lengthscale.clone(),
            input_warp: self.kernel.input_warp.clone(),
        }
    }

    /// The kernel of θ.
    pub(crate) fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The noise variance λ.
    pub(crate) fn noise_variance(&self) -> f64 {
        self.noise_variance
    }

    /// All rows, including the tail.
    pub(crate) fn rows(&self) -> ArrayView2<'_, f64> {
        self.rows.view()
    }

    /// The number of observed rows, which precede the rows of pending trials.
    pub(crate) fn n_observed(&self) -> usize {
        self.n_observed
    }

    /// The number of rows, including the tail.
    pub(crate) fn len(&self) -> usize {
        self.factor.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The factor L of all rows, including the tail.
    pub(crate) fn factor(&self) -> &GrowingCholesky {
        &self.factor
    }

    /// z = L⁻¹y. The entries of z at hallucinated rows are 0.
    pub(crate) fn whitened_targets(&self) -> &[f64] {
        &self.z
    }

    /// The noise variance of each row, including the tail.
    pub(crate) fn row_noise(&self) -> &[f64] {
        &self.row_noise
    }

    /// Appends observed rows (m, d) as one block. Call `set_targets` afterwards.
    pub(crate) fn append_rows(&mut self, x: ArrayView2<f64>) -> Result<()> {
        self.append_noisy_rows(x, &vec![RowNoise::default(); x.nrows()])
    }

    /// Appends observed rows as `append_rows` does, and sets their noise variances.
    pub(crate) fn append_noisy_rows(
        &mut self,
        x: ArrayView2<f64>,
        noise: &[RowNoise],
    ) -> Result<()> {
        if noise.len() != x.nrows() {
            return Err(Error::Shape(format!(
                "{} noise variances for {} rows; give one for each",
                noise.len(),
                x.nrows()
            )));
        }
        let noise: Vec<f64> = noise
            .iter()
            .map(|noise| noise.variance(self.noise_variance))
            .collect();
        self.extend(x, &noise)?;
        self.n_observed = self.len();
        Ok(())
    }

    /// Sets the targets (n_observed,) of the observed rows. The cost is O(n²).
    pub(crate) fn set_targets(&mut self, y: &[f64]) -> Result<()> {
        if y.len() != self.n_observed {
            return Err(Error::Shape(format!(
                "{} targets for {} rows; give one target per row",
                y.len(),
                self.n_observed
            )));
        }
        let mut z = as_row(y.to_vec());
        self.factor.forward_substitution(z.view_mut());
        self.z = z.into_raw_vec_and_offset().0;
        self.update_alpha();
        self.check_range(y.iter().copied())
    }

    /// Sets the targets as `set_targets` does, minus an estimated constant mean, whose prior is N(0, 1). Returns the
    /// estimated mean m = 1ᵀA⁻¹y / (1 + 1ᵀA⁻¹1).
    pub(crate) fn set_targets_about_mean(&mut self, y: &[f64]) -> Result<f64> {
        self.set_targets(y)?;
        let mut e = vec![1.0; y.len()];
        self.factor.forward_substitution_vector(&mut e);
        let mean = dot(&e, &self.z) / (1.0 + dot(&e, &e));
        add_multiple(-mean, &e, &mut self.z);
        self.update_alpha();
        Ok(mean)
    }

    /// The targets y = L z of all rows. The target of a hallucinated row is the posterior mean; all other targets are
    /// as given.
    pub(crate) fn targets(&self) -> Vec<f64> {
        self.factor.multiply(&self.z)
    }

    /// Posterior means and variances, both (N,), at the rows of `points` (N, d), in the units of the targets. The
    /// variances do not include the noise.
    ///
    /// Let K = k(X, X) and k = k(X, x), and let Λ be the diagonal matrix of the noise variances. The mean is
    /// kᵀ(K + Λ)⁻¹y, and the variance is k(x, x) − kᵀ(K + Λ)⁻¹k (Rasmussen & Williams 2006, eqs. 2.25 and 2.26).
    pub fn predict(&self, points: ArrayView2<f64>) -> (Vec<f64>, Vec<f64>) {
        let mut mean = Vec::with_capacity(points.nrows());
        let variance = self.predict_with(points, &mut |v| {
            mean.extend(v.rows().into_iter().map(|v| dot_row(v, &self.z)));
        });
        (mean, variance)
    }

    /// Returns posterior variances at the rows of `points`. Calls `each_block` for each block of points, and passes the
    /// vectors v of the points as the rows of an array.
    pub(crate) fn predict_with(
        &self,
        points: ArrayView2<f64>,
        each_block: &mut dyn FnMut(ArrayView2<f64>),
    ) -> Vec<f64> {
        let n = points.nrows();
        let mut variance = Vec::with_capacity(n);
        let mut block = Array2::zeros((BLOCK.min(n.max(1)), self.len()));
        for chunk in points.axis_chunks_iter(Axis(0), BLOCK) {
            let mut v = block.slice_mut(s![..chunk.nrows(), ..]);
            self.kernel.cross(chunk, &self.scaled, v.view_mut());
            self.factor.forward_substitution(v.view_mut());
            each_block(v.view());
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

    /// Posterior means (N,) at the rows of `points`. The cost is O(n) for each point.
    pub(crate) fn mean(&self, points: ArrayView2<f64>) -> Vec<f64> {
        let mut k = vec![0.0; self.len()];
        let mut point = vec![0.0; self.kernel.width()];
        let row = |row: ArrayView1<f64>| {
            point.iter_mut().zip(row).for_each(|(p, x)| *p = *x);
            self.kernel.row(&point, &self.scaled, &mut k);
            dot(&k, &self.alpha)
        };
        points.rows().into_iter().map(row).collect()
    }

    /// Posterior mean at one point. The cost is O(n). The workspace stores the vectors that `gradient` needs if
    /// `by_variance` is 0.
    pub(crate) fn mean_at(&self, x: &[f64], workspace: &mut Workspace) -> f64 {
        let Workspace { v, slope, .. } = workspace;
        v.resize(self.len(), 0.0);
        slope.resize(self.len(), 0.0);
        self.kernel.row_with_slope(x, &self.scaled, v, slope);
        dot(v, &self.alpha)
    }

    /// Posterior means (n,) at all rows, including the tail. The cost is O(n²), without evaluations of the kernel.
    ///
    /// Let Λ be the diagonal matrix of the noise variances and jitters. Then Kα = y − Λα, because (K + Λ)α = y.
    pub(crate) fn means_at_rows(&self) -> Vec<f64> {
        let noise = self.row_noise.iter().zip(self.factor.jitters());
        let terms = self.targets().into_iter().zip(noise).zip(&self.alpha);
        terms
            .map(|((y, (noise, jitter)), alpha)| y - (noise + jitter) * alpha)
            .collect()
    }

    /// Posterior mean and variance at one point. The workspace stores the vectors that `gradient` needs.
    pub(crate) fn predict_at(&self, x: &[f64], workspace: &mut Workspace) -> (f64, f64) {
        let Workspace { v, slope, .. } = workspace;
        v.resize(self.len(), 0.0);
        slope.resize(self.len(), 0.0);
        self.kernel.row_with_slope(x, &self.scaled, v, slope);
        self.factor.forward_substitution_vector(v);
        let prior = self.kernel.prior_variance(ArrayView1::from(x));
        (dot(v, &self.z), variance_left(prior, ArrayView1::from(&*v)))
    }

    /// Writes by_mean·∇mu + by_variance·∇var + Σ_i by_tail_i ∇v_i to `gradient`, at the point of the last `predict_at`.
    /// The v_i are the last entries of v, which belong to the tail.
    ///
    /// ∇mu = Σ_j α_j ∇k(x, x_j) and ∇v = L⁻¹∇k. Therefore the sum is Σ_j c_j ∇k(x, x_j) + by_variance·∇k(x, x) with
    /// c = by_mean·α + L⁻ᵀ((0, by_tail) − 2 by_variance·v). Computing the gradient in this form takes one triangular
    /// solve and one sum.
    pub(crate) fn gradient(
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
    pub(crate) fn log_marginal_likelihood(&self) -> f64 {
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
        self.check_width(x)?;
        let mut cross = Array2::zeros((x.nrows(), self.len()));
        self.kernel.cross(x, &self.scaled, cross.view_mut());
        let mut block = self.kernel.gram(x);
        // The jitter is in units of the prior variance, so a row with large noise does not raise the jitter.
        let prior = block.diag().sum() / x.nrows() as f64;
        let scale = prior + noise.iter().copied().fold(f64::INFINITY, f64::min);
        let diagonal = block.diag_mut().into_iter().zip(noise);
        diagonal.for_each(|(k, noise)| *k += noise);
        self.factor.extend_scaled(cross.view(), block, scale)?;
        self.record_rows(x, noise);
        Ok(())
    }

    /// Appends a tail: the noiseless rows of `baseline` (m, d), followed by the rows of `pending` (p, d) with the given
    /// noise variance. Numbers that were computed for the last tail are reused.
    pub(super) fn append_tail(
        &mut self,
        baseline: ArrayView2<f64>,
        pending: ArrayView2<f64>,
        noise: f64,
    ) -> Result<()> {
        self.check_width(pending)?;
        let solved = &mut self.solved_tail;
        solved.update(pending, &self.kernel, &self.scaled, &self.factor)?;
        self.extend(baseline, &vec![0.0; baseline.nrows()])?;
        self.extend_by_solved(pending, noise)
    }

    /// Appends the rows of the solved tail.
    fn extend_by_solved(&mut self, pending: ArrayView2<f64>, noise: f64) -> Result<()> {
        if pending.nrows() == 0 {
            return Ok(());
        }
        let (p, n) = (pending.nrows(), self.len());
        let mut l21 = Array2::zeros((p, n));
        let mut rows = slices(l21.view_mut());
        let solutions = self.solved_tail.solutions().iter();
        for ((row, v), x) in rows.iter_mut().zip(solutions).zip(pending.rows()) {
            row[..v.len()].copy_from_slice(v);
            let rest = &mut row[v.len()..];
            self.kernel
                .row_from(contiguous(x), &self.scaled, v.len(), rest);
        }
        let mut go_on = || ControlFlow::Continue(());
        self.factor
            .forward_substitution_singly(self.n_observed, &mut rows, &mut go_on)?;
        let (mut schur, first) = self.solved_tail.covariances();
        let prior = pending
            .rows()
            .into_iter()
            .map(|x| self.kernel.prior_variance(x));
        let scale = prior.sum::<f64>() / p as f64 + noise;
        schur.diag_mut().iter_mut().for_each(|k| *k += noise);
        if first < n {
            subtract_gram_of_rows(l21.slice(s![.., first..]), schur.view_mut());
        }
        self.factor.extend_solved(l21.view(), schur, scale)?;
        self.record_rows(pending, &vec![noise; p]);
        Ok(())
    }

    fn check_width(&self, x: ArrayView2<f64>) -> Result<()> {
        if x.ncols() == self.kernel.width() {
            return Ok(());
        }
        Err(Error::Shape(format!(
            "points of {} columns for a kernel of {}",
            x.ncols(),
            self.kernel.width()
        )))
    }

    fn record_rows(&mut self, x: ArrayView2<f64>, noise: &[f64]) {
        self.scaled.append(&self.kernel, x);
        self.rows.append(Axis(0), x).expect("widths agree");
        self.row_noise.extend(noise);
    }

    /// Drops the tail. `alpha` is α of the observed rows alone.
    pub(super) fn drop_tail(&mut self, alpha: Vec<f64>) {
        self.factor.truncate(self.n_observed);
        self.scaled.truncate(self.n_observed);
        self.row_noise.truncate(self.n_observed);
        self.z.truncate(self.n_observed);
        self.alpha = alpha;
        let width = self.rows.ncols();
        let (mut values, _) = std::mem::take(&mut self.rows).into_raw_vec_and_offset();
        values.truncate(self.n_observed * width);
        self.rows =
            Array2::from_shape_vec((self.n_observed, width), values).expect("whole rows were kept");
    }

    /// Returns an error if predictions for `targets` could overflow. Let K be the largest k(x, x) over all rows x. Then
    /// |k_i| ≤ K and |v_i| ≤ √K, so means are finite if K·Σ|α| and √K·Σ|z| are finite. An additional factor of 2 leaves
    /// a margin for rounding errors.
    pub(super) fn check_range(&self, targets: impl Iterator<Item = f64>) -> Result<()> {
        let size = |weights: &[f64]| weights.iter().map(|w| w.abs()).sum::<f64>();
        let rows = self.rows.rows().into_iter();
        let largest_prior = rows
            .map(|x| self.kernel.prior_variance(x))
            .fold(0.0, f64::max);
        let (by_alpha, by_z) = (size(&self.alpha), size(&self.z));
        let (by_alpha, by_z) = (largest_prior * by_alpha, largest_prior.sqrt() * by_z);
        if (2.0 * by_alpha).is_finite() && (2.0 * by_z).is_finite() {
            return Ok(());
        }
        let largest = targets.fold(0.0, |m: f64, y| m.max(y.abs()));
        Err(Error::Overflow { largest })
    }

    pub(super) fn update_alpha(&mut self) {
        let mut alpha = as_row(self.z.clone());
        self.factor.backward_substitution(alpha.view_mut());
        self.alpha = alpha.into_raw_vec_and_offset().0;
    }
}

/// The vectors that `predict_at` stores for `gradient`: v, the slopes dk/dq, and the weights c, all (n,).
#[derive(Debug, Default)]
pub struct Workspace {
    v: Vec<f64>,
    slope: Vec<f64>,
    c: Vec<f64>,
}

impl Workspace {
    /// v at the point of the last `predict_at`.
    pub fn whitened(&self) -> &[f64] {
        &self.v
    }
}

/// The posterior variance k(x, x) − |v|², or 0 if rounding makes the difference negative.
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
