//! Exact joint draws at finitely many points, from the posterior or, with a stored factor, from the prior.

use ndarray::{Array2, ArrayView1, ArrayView2, Axis, concatenate, s};
use rand_distr::{Distribution, StandardNormal};

use crate::error::Result;
use crate::gp::kernel::Kernel;
use crate::gp::{GaussianProcess, as_row};
use crate::numerics::cholesky::multiply_transposed;
use crate::numerics::growing_cholesky::GrowingCholesky;
use crate::random::Rng;

/// n independent standard normal numbers.
pub(crate) fn standard_normal(n: usize, rng: &mut Rng) -> Vec<f64> {
    (0..n).map(|_| StandardNormal.sample(rng)).collect()
}

impl GaussianProcess {
    /// Returns n exact joint samples (n, N) of f at the rows of `points` (N, d). The cost is O(N³).
    pub(crate) fn sample(
        &self,
        points: ArrayView2<f64>,
        n: usize,
        rng: &mut Rng,
    ) -> Result<Array2<f64>> {
        let count = points.nrows();
        let mean = self.mean(points);
        let mut v = Array2::zeros((count, self.len()));
        self.kernel()
            .cross(points, self.scaled_rows(), v.view_mut());
        self.factor().forward_substitution(v.view_mut());
        let mut covariance = self.kernel().gram(points);
        // Rounding errors of the covariance are proportional to the prior variance, even where f is almost known.
        let scale = covariance.diag().sum() / count as f64;
        if !self.is_empty() {
            let mut explained = Array2::zeros((count, count));
            multiply_transposed(v.view(), v.view(), explained.view_mut());
            covariance -= &explained;
        }
        let mut root = GrowingCholesky::new();
        root.extend_scaled(Array2::zeros((count, 0)).view(), covariance, scale)?;
        let mut out = Array2::zeros((n, count));
        for mut row in out.rows_mut() {
            let deviation = root.multiply(&standard_normal(count, rng));
            for i in 0..count {
                row[i] = mean[i] + deviation[i];
            }
        }
        Ok(out)
    }

    /// Returns L⁻¹ (g + ε), for prior values g (n,) at all rows and new noise ε_i ~ N(0, λ_i).
    pub(crate) fn whitened_prior(&self, prior: &[f64], rng: &mut Rng) -> Vec<f64> {
        let noise = standard_normal(self.len(), rng).into_iter();
        let noise = noise.zip(self.row_noise()).map(|(e, v)| v.sqrt() * e);
        let mut row = as_row(prior.iter().zip(noise).map(|(g, e)| g + e).collect());
        self.factor().forward_substitution(row.view_mut());
        row.into_raw_vec_and_offset().0
    }
}

/// Exact joint draws from the prior at a growing set of points. With the stored factor of the covariance matrix, a draw
/// costs one product of a matrix and a vector.
#[derive(Debug, Clone)]
pub struct PriorFactor {
    kernel: Kernel,
    points: Array2<f64>,
    root: GrowingCholesky,
}

impl PriorFactor {
    /// Factorises the covariance matrix of `points` (N, d). The cost is O(N³).
    pub fn new(kernel: &Kernel, points: Array2<f64>) -> Result<Self> {
        let mut root = GrowingCholesky::new();
        root.extend(
            Array2::zeros((points.nrows(), 0)).view(),
            kernel.gram(points.view()),
        )?;
        Ok(Self {
            kernel: kernel.clone(),
            points,
            root,
        })
    }

    /// Returns `previous` if its factor is valid for these points, and otherwise a new factor. The factor is valid if
    /// the kernel is stationary and unchanged, and only columns that are constant over the points have changed, such as
    /// a context. A reused factor equals a new factor bit for bit.
    pub fn reuse(previous: Option<Self>, kernel: &Kernel, points: Array2<f64>) -> Result<Self> {
        match previous {
            Some(mut previous)
                if previous.kernel == *kernel
                    && kernel.family.is_stationary()
                    && previous.len() >= points.nrows()
                    && same_differences(
                        previous.points.slice(s![..points.nrows(), ..]),
                        points.view(),
                    ) =>
            {
                previous.root.truncate(points.nrows());
                previous.points = points;
                Ok(previous)
            }
            _ => Self::new(kernel, points),
        }
    }

    /// Appends points.
    pub fn include(&mut self, more: ArrayView2<f64>) -> Result<()> {
        let mut cross = Array2::zeros((more.nrows(), self.points.nrows()));
        let scaled = self.kernel.scale(self.points.view());
        self.kernel.cross(more, &scaled, cross.view_mut());
        self.root.extend(cross.view(), self.kernel.gram(more))?;
        self.points = concatenate(Axis(0), &[self.points.view(), more]).expect("widths agree");
        Ok(())
    }

    /// Keeps the first n points.
    pub fn truncate(&mut self, n: usize) {
        self.root.truncate(n);
        self.points = self.points.slice(s![..n, ..]).to_owned();
    }

    /// The number of points N.
    pub fn len(&self) -> usize {
        self.points.nrows()
    }

    /// Returns one joint draw of the values at all points, in the order of the points.
    pub fn draw(&self, rng: &mut Rng) -> Vec<f64> {
        self.root.multiply(&standard_normal(self.len(), rng))
    }
}

/// Whether differences between rows are the same in both arrays: each column is equal or constant in both.
fn same_differences(a: ArrayView2<f64>, b: ArrayView2<f64>) -> bool {
    let constant = |column: ArrayView1<f64>| column.iter().all(|x| *x == column[0]);
    a.dim() == b.dim()
        && a.columns()
            .into_iter()
            .zip(b.columns())
            .all(|(a, b)| a == b || constant(a) && constant(b))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::gp::kernel::KernelFamily;
    use crate::gp::tests::{model, wave};
    use rand::SeedableRng;

    /// Checks that the means and covariances of many draws agree with the posterior, within 5 standard errors.
    pub(crate) fn check_moments(
        draws: &[Vec<f64>],
        mean: &[f64],
        covariance: &Array2<f64>,
        slack: f64,
    ) {
        let n = draws.len() as f64;
        for i in 0..mean.len() {
            let m = draws.iter().map(|f| f[i]).sum::<f64>() / n;
            let tolerance = 5.0 * (covariance[[i, i]] / n).sqrt() + slack;
            assert!((m - mean[i]).abs() < tolerance, "{m} {}", mean[i]);
            for j in 0..mean.len() {
                let c = draws
                    .iter()
                    .map(|f| (f[i] - mean[i]) * (f[j] - mean[j]))
                    .sum::<f64>()
                    / n;
                let spread = (2.0 * covariance[[i, i]] * covariance[[j, j]] / n).sqrt();
                assert!((c - covariance[[i, j]]).abs() < 5.0 * spread + slack);
            }
        }
    }

    pub(crate) fn posterior(gp: &GaussianProcess, z: ArrayView2<f64>) -> (Vec<f64>, Array2<f64>) {
        let mut v = Array2::zeros((z.nrows(), gp.len()));
        gp.kernel().cross(z, gp.scaled_rows(), v.view_mut());
        gp.factor().forward_substitution(v.view_mut());
        (gp.mean(z), gp.kernel().gram(z) - v.dot(&v.t()))
    }

    #[test]
    fn exact_draws_have_the_moments_of_the_posterior() {
        let mut rng = Rng::seed_from_u64(5);
        let gp = model(KernelFamily::Matern52, 6);
        let z = wave(4, 2, 7.7);
        let (mean, covariance) = posterior(&gp, z.view());
        let draws = gp.sample(z.view(), 20_000, &mut rng).unwrap();
        let draws: Vec<_> = draws.rows().into_iter().map(|r| r.to_vec()).collect();
        check_moments(&draws, &mean, &covariance, 1e-6);
    }

    #[test]
    fn prior_draws_at_appended_points_have_the_kernel_as_covariance() {
        let mut rng = Rng::seed_from_u64(8);
        let kernel = model(KernelFamily::Matern52, 1).kernel().clone();
        let z = wave(5, 2, 2.2);
        let mut prior =
            PriorFactor::new(&kernel, z.slice(ndarray::s![..3, ..]).to_owned()).unwrap();
        prior.include(z.slice(ndarray::s![3.., ..])).unwrap();
        let draws: Vec<_> = (0..20_000).map(|_| prior.draw(&mut rng)).collect();
        check_moments(&draws, &[0.0; 5], &kernel.gram(z.view()), 1e-6);
    }

    /// n points whose last column is the context.
    fn in_context(context: f64, n: usize) -> Array2<f64> {
        let mut points = wave(n, 2, 2.2);
        points.column_mut(1).fill(context);
        points
    }

    #[test]
    fn a_reused_factor_for_another_context_equals_a_new_factor() {
        for family in KernelFamily::ALL {
            let kernel = model(family, 1).kernel().clone();
            let elsewhere = wave(3, 2, 7.1);
            let mut first = PriorFactor::new(&kernel, in_context(0.3, 40)).unwrap();
            first.include(elsewhere.view()).unwrap();
            let mut reused =
                PriorFactor::reuse(Some(first), &kernel, in_context(-1.7, 40)).unwrap();
            let mut new = PriorFactor::new(&kernel, in_context(-1.7, 40)).unwrap();
            assert_eq!(reused.points, new.points);
            for factor in [&mut reused, &mut new] {
                factor.include(elsewhere.view()).unwrap();
            }
            let draw = |factor: &PriorFactor| factor.draw(&mut Rng::seed_from_u64(3));
            assert_eq!(draw(&reused), draw(&new), "{family:?}");
        }
    }

    #[test]
    fn a_factor_of_another_kernel_or_other_points_is_not_reused() {
        let kernel = model(KernelFamily::Matern52, 1).kernel().clone();
        let mut longer = kernel.clone();
        longer.lengthscale[0] *= 2.0;
        for (kernel, points) in [
            (&longer, in_context(0.3, 6)),
            (&kernel, wave(6, 2, 9.9)),
            (&kernel, in_context(0.3, 7)),
        ] {
            let previous = PriorFactor::new(
                &model(KernelFamily::Matern52, 1).kernel().clone(),
                in_context(0.3, 6),
            )
            .unwrap();
            let reused = PriorFactor::reuse(Some(previous), kernel, points.clone()).unwrap();
            let new = PriorFactor::new(kernel, points).unwrap();
            let draw = |factor: &PriorFactor| factor.draw(&mut Rng::seed_from_u64(3));
            assert_eq!(draw(&reused), draw(&new));
        }
    }
}
