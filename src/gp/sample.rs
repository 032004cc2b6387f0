//! Draws from a posterior: exact on finitely many points, pathwise or in feature space as functions.
//!
//! Pathwise (Matheron's rule; Wilson et al. 2020): with g a draw from the prior and ε ~ N(0, λ) at the rows X,
//! mu(x) + ν·(g(x) − k(x, X) A⁻¹ (g(X) + ε)) is a draw from GP(mu, ν²·Σ). On finitely many points g is exact; on a
//! box g is a sum of spectral features, and only the prior part of the draw is approximate.

use ndarray::{Array2, ArrayView1, ArrayView2, Axis, concatenate, s};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use super::{GaussianProcess, as_row};
use crate::domain::Rng;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::linalg::{GrowingCholesky, dot, gram, multiply_transposed};

/// n standard normal numbers.
pub(crate) fn standard_normal(n: usize, rng: &mut Rng) -> Vec<f64> {
    (0..n).map(|_| StandardNormal.sample(rng)).collect()
}

impl GaussianProcess {
    /// n exact joint draws of f at the rows of `points` (N, d), as rows of an (n, N) array: O(N³).
    pub fn sample(&self, points: ArrayView2<f64>, n: usize, rng: &mut Rng) -> Result<Array2<f64>> {
        let count = points.nrows();
        let mean = self.mean(points);
        let mut v = Array2::zeros((count, self.len()));
        self.kernel()
            .cross(points, self.scaled_rows(), v.view_mut());
        self.factor().half_solve(v.view_mut());
        let mut covariance = self.kernel().gram(points);
        if !self.is_empty() {
            let mut explained = Array2::zeros((count, count));
            multiply_transposed(v.view(), v.view(), explained.view_mut());
            covariance -= &explained;
        }
        let mut root = GrowingCholesky::new();
        root.extend(Array2::zeros((count, 0)).view(), covariance.view())?;
        let mut out = Array2::zeros((n, count));
        for mut row in out.rows_mut() {
            let deviation = root.multiply(&standard_normal(count, rng));
            for i in 0..count {
                row[i] = mean[i] + deviation[i];
            }
        }
        Ok(out)
    }

    /// L⁻¹ (g + ε) for prior values g at all rows and fresh noise ε ~ N(0, λ).
    pub(crate) fn half_solved_prior(&self, prior: &[f64], rng: &mut Rng) -> Vec<f64> {
        let noise = standard_normal(self.len(), rng);
        let sd = self.noise().sqrt();
        let noisy = prior.iter().zip(noise).map(|(g, e)| g + sd * e).collect();
        let mut row = as_row(noisy);
        self.factor().half_solve(row.view_mut());
        row.into_raw_vec_and_offset().0
    }
}

/// Exact joint draws from the prior at a set of points that may grow: the factor is kept, a draw is one product.
#[derive(Debug, Clone)]
pub struct PriorFactor {
    kernel: Kernel,
    points: Array2<f64>,
    root: GrowingCholesky,
}

impl PriorFactor {
    pub fn new(kernel: &Kernel, points: Array2<f64>) -> Result<Self> {
        let mut root = GrowingCholesky::new();
        root.extend(
            Array2::zeros((points.nrows(), 0)).view(),
            kernel.gram(points.view()).view(),
        )?;
        Ok(Self {
            kernel: kernel.clone(),
            points,
            root,
        })
    }

    /// Adds further points after those there are.
    pub fn include(&mut self, more: ArrayView2<f64>) -> Result<()> {
        let mut cross = Array2::zeros((more.nrows(), self.points.nrows()));
        let scaled = self.kernel.scale(self.points.view());
        self.kernel.cross(more, &scaled, cross.view_mut());
        self.root
            .extend(cross.view(), self.kernel.gram(more).view())?;
        self.points = concatenate(Axis(0), &[self.points.view(), more]).expect("widths agree");
        Ok(())
    }

    /// Forgets all points but the first n.
    pub fn truncate(&mut self, n: usize) {
        self.root.truncate(n);
        self.points = self.points.slice(s![..n, ..]).to_owned();
    }

    pub fn len(&self) -> usize {
        self.points.nrows()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One joint draw at all points, in their order.
    pub fn draw(&self, rng: &mut Rng) -> Vec<f64> {
        self.root.multiply(&standard_normal(self.len(), rng))
    }
}

/// Random Fourier features: φ_i(x) = sqrt(2/M)·cos(ω_iᵀx + b_i), E φ(x)ᵀφ(x') = κ (Rahimi & Recht 2007).
#[derive(Debug, Clone)]
struct Features {
    /// ω, one row per feature.
    omega: Array2<f64>,
    b: Vec<f64>,
}

impl Features {
    fn draw(kernel: &Kernel, n: usize, rng: &mut Rng) -> Self {
        let mut omega = Array2::zeros((n, kernel.width()));
        for mut row in omega.rows_mut() {
            row.assign(&ArrayView1::from(&kernel.spectral_draw(rng)));
        }
        let b = (0..n)
            .map(|_| rng.random_range(0.0..2.0 * std::f64::consts::PI))
            .collect();
        Self { omega, b }
    }

    /// ω_iᵀx + b_i of feature i.
    fn phase(&self, i: usize, x: &[f64]) -> f64 {
        let omega = self.omega.row(i);
        self.b[i] + omega.iter().zip(x).map(|(w, x)| w * x).sum::<f64>()
    }

    fn amplitude(&self) -> f64 {
        (2.0 / self.b.len() as f64).sqrt()
    }
}

/// A draw from a posterior as a function of x, on a box.
#[derive(Debug, Clone)]
pub struct Path {
    features: Features,
    /// Weights of the features.
    w: Vec<f64>,
    form: Form,
}

#[derive(Debug, Clone)]
enum Form {
    /// ν·g(x) + k(x, X)·(α − ν A⁻¹(g(X) + ε)), with g(x) = φ(x)ᵀw; the coefficients of k(x, X).
    Pathwise { coefficients: Vec<f64>, nu: f64 },
    /// Bayesian linear regression in features φ(x)/|φ(x)|, scaled to the prior variance v.
    WeightSpace { scale: f64 },
}

impl Path {
    /// A draw from GP(mu, ν²·Σ) by Matheron's rule with n spectral features.
    pub fn pathwise(gp: &GaussianProcess, nu: f64, n: usize, rng: &mut Rng) -> Self {
        let features = Features::draw(gp.kernel(), n, rng);
        let amplitude = gp.kernel().variance.sqrt() * features.amplitude();
        let w: Vec<f64> = standard_normal(n, rng)
            .iter()
            .map(|w| amplitude * w)
            .collect();
        let prior: Vec<f64> = gp
            .rows()
            .rows()
            .into_iter()
            .map(|x| {
                let x = x.to_vec();
                (0..n).map(|i| w[i] * features.phase(i, &x).cos()).sum()
            })
            .collect();
        let mut c = as_row(gp.half_solved_prior(&prior, rng));
        gp.factor().back_solve(c.view_mut());
        let coefficients = gp
            .alpha()
            .iter()
            .zip(c.row(0))
            .map(|(a, c)| a - nu * c)
            .collect();
        Self {
            features,
            w,
            form: Form::Pathwise { coefficients, nu },
        }
    }

    /// A draw of the weights of n normalised features given the rows' targets y:
    /// with Σ = ΦᵀΦ + λI, w ~ N(Σ⁻¹Φᵀy, λΣ⁻¹). What the code of Verma et al. 2022 draws.
    pub fn weight_space(gp: &GaussianProcess, n: usize, rng: &mut Rng) -> Result<Self> {
        let features = Features::draw(gp.kernel(), n, rng);
        let mut path = Self {
            features,
            w: Vec::new(),
            form: Form::WeightSpace {
                scale: gp.kernel().variance.sqrt(),
            },
        };
        let mut phi = Array2::zeros((gp.len(), n));
        for (x, mut row) in gp.rows().rows().into_iter().zip(phi.rows_mut()) {
            let scale = path.normalised(&x.to_vec(), |i, value| row[i] = value);
            row *= scale;
        }
        let mut sigma = gram(phi.view());
        sigma.diag_mut().iter_mut().for_each(|s| *s += gp.noise());
        let mut root = GrowingCholesky::new();
        root.extend(Array2::zeros((n, 0)).view(), sigma.view())?;
        // w = L⁻ᵀ(L⁻¹ Φᵀy + sqrt(λ) ξ)
        let mut w = as_row(phi.t().dot(&ArrayView1::from(&gp.targets())).to_vec());
        root.half_solve(w.view_mut());
        let sd = gp.noise().sqrt();
        for (w, xi) in w.iter_mut().zip(standard_normal(n, rng)) {
            *w += sd * xi;
        }
        root.back_solve(w.view_mut());
        path.w = w.into_raw_vec_and_offset().0;
        Ok(path)
    }

    /// The draw at x; `k` has room for one number per row of the model.
    pub fn value(&self, gp: &GaussianProcess, x: &[f64], k: &mut [f64]) -> f64 {
        match &self.form {
            Form::Pathwise { coefficients, nu } => {
                gp.kernel().row(x, gp.scaled_rows(), k);
                let g: f64 = (0..self.w.len())
                    .map(|i| self.w[i] * self.features.phase(i, x).cos())
                    .sum();
                nu * g + dot(k, coefficients)
            }
            Form::WeightSpace { .. } => {
                let mut sum = 0.0;
                let scale = self.normalised(x, |i, value| sum += self.w[i] * value);
                scale * sum
            }
        }
    }

    /// The draw at x and its gradient; `k` and `slope` have room for one number per row of the model.
    pub fn value_and_gradient(
        &self,
        gp: &GaussianProcess,
        x: &[f64],
        k: &mut [f64],
        slope: &mut [f64],
        gradient: &mut [f64],
    ) -> f64 {
        match &self.form {
            Form::Pathwise { coefficients, nu } => {
                let points = gp.scaled_rows();
                gp.kernel().row_with_slope(x, points, k, slope);
                gp.kernel()
                    .contract_gradient(x, points, slope, coefficients, gradient);
                let mut g = 0.0;
                for i in 0..self.w.len() {
                    let (sin, cos) = self.features.phase(i, x).sin_cos();
                    g += self.w[i] * cos;
                    for (slope, omega) in gradient.iter_mut().zip(self.features.omega.row(i)) {
                        *slope -= nu * self.w[i] * sin * omega;
                    }
                }
                nu * g + dot(k, coefficients)
            }
            // With c_i = cos(ω_iᵀx + b_i), q = |c| and p = wᵀc: f = s·p/q and ∇f = s·(∇p/q − p·∇q/q²).
            Form::WeightSpace { scale } => {
                let d = gradient.len();
                let (mut p, mut q2) = (0.0, 0.0);
                let (mut dp, mut dq2) = (vec![0.0; d], vec![0.0; d]);
                for i in 0..self.w.len() {
                    let (sin, cos) = self.features.phase(i, x).sin_cos();
                    p += self.w[i] * cos;
                    q2 += cos * cos;
                    for (k, omega) in self.features.omega.row(i).iter().enumerate() {
                        dp[k] -= self.w[i] * sin * omega;
                        dq2[k] -= 2.0 * cos * sin * omega;
                    }
                }
                let q = q2.sqrt();
                for k in 0..d {
                    gradient[k] = scale * (dp[k] / q - p * dq2[k] / (2.0 * q2 * q));
                }
                scale * p / q
            }
        }
    }

    /// Visits cos(ω_iᵀx + b_i) for every i; the factor that turns them into normalised features.
    fn normalised(&self, x: &[f64], mut visit: impl FnMut(usize, f64)) -> f64 {
        let mut squares = 0.0;
        for i in 0..self.features.b.len() {
            let cos = self.features.phase(i, x).cos();
            squares += cos * cos;
            visit(i, cos);
        }
        match &self.form {
            Form::WeightSpace { scale } => scale / squares.sqrt(),
            Form::Pathwise { .. } => self.features.amplitude(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{model, wave};
    use super::*;
    use crate::kernel::KernelShape;
    use rand::SeedableRng;

    /// Means and covariances over many draws, against the posterior: 5 standard errors.
    fn check_moments(draws: &[Vec<f64>], mean: &[f64], covariance: &Array2<f64>, slack: f64) {
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

    fn posterior(gp: &GaussianProcess, z: ArrayView2<f64>) -> (Vec<f64>, Array2<f64>) {
        let mut v = Array2::zeros((z.nrows(), gp.len()));
        gp.kernel().cross(z, gp.scaled_rows(), v.view_mut());
        gp.factor().half_solve(v.view_mut());
        (gp.mean(z), gp.kernel().gram(z) - v.dot(&v.t()))
    }

    #[test]
    fn exact_draws_have_the_posterior_s_moments() {
        let mut rng = Rng::seed_from_u64(5);
        let gp = model(KernelShape::Matern52, 6);
        let z = wave(4, 2, 7.7);
        let (mean, covariance) = posterior(&gp, z.view());
        let draws = gp.sample(z.view(), 20_000, &mut rng).unwrap();
        let draws: Vec<_> = draws.rows().into_iter().map(|r| r.to_vec()).collect();
        check_moments(&draws, &mean, &covariance, 1e-6);
    }

    #[test]
    fn pathwise_draws_have_the_posterior_s_moments() {
        let mut rng = Rng::seed_from_u64(6);
        for nu in [1.0, 2.0] {
            let gp = model(KernelShape::SquaredExponential, 6);
            let z = wave(4, 2, 7.7);
            let (mean, covariance) = posterior(&gp, z.view());
            let mut k = vec![0.0; gp.len()];
            let draws: Vec<Vec<f64>> = (0..4000)
                .map(|_| {
                    let path = Path::pathwise(&gp, nu, 200, &mut rng);
                    z.rows()
                        .into_iter()
                        .map(|x| path.value(&gp, &x.to_vec(), &mut k))
                        .collect()
                })
                .collect();
            check_moments(&draws, &mean, &(covariance * nu * nu), 1e-3);
        }
    }

    #[test]
    fn prior_draws_extended_have_the_kernel_as_covariance() {
        let mut rng = Rng::seed_from_u64(8);
        let kernel = model(KernelShape::Matern52, 1).kernel().clone();
        let z = wave(5, 2, 2.2);
        let mut prior =
            PriorFactor::new(&kernel, z.slice(ndarray::s![..3, ..]).to_owned()).unwrap();
        prior.include(z.slice(ndarray::s![3.., ..])).unwrap();
        let draws: Vec<_> = (0..20_000).map(|_| prior.draw(&mut rng)).collect();
        check_moments(&draws, &[0.0; 5], &kernel.gram(z.view()), 1e-6);
    }

    #[test]
    fn gradients_of_paths_are_finite_differences() {
        let mut rng = Rng::seed_from_u64(9);
        let gp = model(KernelShape::Matern52, 8);
        let (mut k, mut slope, mut gradient) = (vec![0.0; 8], vec![0.0; 8], vec![0.0; 2]);
        for path in [
            Path::pathwise(&gp, 1.4, 64, &mut rng),
            Path::weight_space(&gp, 64, &mut rng).unwrap(),
        ] {
            let x = [0.3, -0.2];
            let value = path.value_and_gradient(&gp, &x, &mut k, &mut slope, &mut gradient);
            assert!((value - path.value(&gp, &x, &mut k)).abs() < 1e-12);
            for d in 0..2 {
                let mut at = |h: f64| {
                    let mut x = x;
                    x[d] += h;
                    path.value(&gp, &x, &mut k)
                };
                assert!((gradient[d] - (at(1e-5) - at(-1e-5)) / 2e-5).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn weight_space_draws_fit_dense_data() {
        // With many features and rows the regression's mean comes near the posterior's.
        let mut rng = Rng::seed_from_u64(10);
        let gp = model(KernelShape::SquaredExponential, 40);
        let z = wave(5, 2, 0.9);
        let mut k = vec![0.0; gp.len()];
        let mean = gp.mean(z.view());
        let n = 300;
        let mut sums = [0.0; 5];
        for _ in 0..n {
            let path = Path::weight_space(&gp, 200, &mut rng).unwrap();
            for (sum, x) in sums.iter_mut().zip(z.rows()) {
                *sum += path.value(&gp, &x.to_vec(), &mut k) / n as f64;
            }
        }
        for (sum, mean) in sums.iter().zip(mean) {
            assert!((sum - mean).abs() < 0.1, "{sum} {mean}");
        }
    }
}
