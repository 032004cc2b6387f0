//! Draws from a posterior as functions on a box, for Thompson sampling.
//!
//! Pathwise (Matheron's rule; Wilson et al. 2020): with g a draw from the prior and ε ~ N(0, λ) at the rows X,
//! mu(x) + ν·(g(x) − k(x, X) A⁻¹ (g(X) + ε)) is a draw from GP(mu, ν²·Σ). Here g is a sum of M spectral features, so
//! that only the prior part of the draw is approximate. c and s below are the cosines and sines of ω_iᵀx + b_i.

use multiversion::multiversion;
use ndarray::{Array2, ArrayView1};
use rand::RngExt;

use super::exact::standard_normal;
use crate::error::{Result, Stop, check};
use crate::gp::kernel::{Kernel, add_multiple};
use crate::gp::{GaussianProcess, as_row};
use crate::numerics::cholesky::{GrowingCholesky, dot, gram};
use crate::numerics::special::sine_and_cosine;
use crate::random::Rng;

/// Features with E φ(x)ᵀφ(x') = κ: sqrt(2/M)·cos(ω_iᵀx + b_i) at random (Rahimi & Recht 2007), or, for the linear
/// kernel, exactly 1 and the coordinates of x̃.
#[derive(Debug, Clone)]
struct Features {
    /// ω, one column per feature: (d, M).
    omega: Array2<f64>,
    b: Vec<f64>,
    /// Whether the features are the phases ω_iᵀx + b_i themselves.
    linear: bool,
}

impl Features {
    /// n features, or as many as there are.
    fn draw(kernel: &Kernel, n: usize, rng: &mut Rng) -> Self {
        let mut omega = Array2::zeros((kernel.width(), n));
        for mut column in omega.columns_mut() {
            let Some(draw) = kernel.spectral_draw(rng) else {
                return Self::linear(kernel);
            };
            column.assign(&ArrayView1::from(&draw));
        }
        let b = (0..n)
            .map(|_| rng.random_range(0.0..2.0 * std::f64::consts::PI))
            .collect();
        Self {
            omega,
            b,
            linear: false,
        }
    }

    fn linear(kernel: &Kernel) -> Self {
        let d = kernel.width();
        let mut omega = Array2::zeros((d, d + 1));
        for (k, l) in kernel.lengthscale.iter().enumerate() {
            omega[[k, k]] = 1.0 / l;
        }
        let mut b = vec![0.0; d + 1];
        b[d] = 1.0;
        Self {
            omega,
            b,
            linear: true,
        }
    }

    fn len(&self) -> usize {
        self.b.len()
    }

    fn amplitude(&self) -> f64 {
        if self.linear {
            1.0
        } else {
            (2.0 / self.len() as f64).sqrt()
        }
    }

    /// Row d of ω.
    fn omega(&self, d: usize) -> &[f64] {
        let n = self.len();
        self.omega
            .as_slice()
            .map_or(&[], |all| &all[d * n..(d + 1) * n])
    }

    /// s and c at x; of linear features c, the feature, and s, minus its derivative.
    fn evaluate(&self, x: &[f64], sines: &mut [f64], cosines: &mut [f64]) {
        cosines.copy_from_slice(&self.b);
        for (d, x) in x.iter().enumerate() {
            add_multiple(*x, self.omega(d), cosines);
        }
        if self.linear {
            sines.fill(-1.0);
        } else {
            sines_and_cosines(sines, cosines);
        }
    }
}

/// Phases come in and cosines go out in `cosines`.
#[multiversion(targets(
    "x86_64+avx512f+avx512dq+avx512vl+avx2+fma",
    "x86_64+avx2+fma",
    "aarch64+neon"
))]
fn sines_and_cosines(sines: &mut [f64], cosines: &mut [f64]) {
    for (s, c) in sines.iter_mut().zip(cosines) {
        (*s, *c) = sine_and_cosine(*c);
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

/// Buffers that evaluations of a path reuse.
#[derive(Debug, Default)]
pub struct Workspace {
    k: Vec<f64>,
    slope: Vec<f64>,
    sines: Vec<f64>,
    cosines: Vec<f64>,
    by_mean: Vec<f64>,
    by_norm: Vec<f64>,
}

impl Workspace {
    fn resize(&mut self, n: usize, features: usize) {
        self.k.resize(n, 0.0);
        self.slope.resize(n, 0.0);
        for buffer in [
            &mut self.sines,
            &mut self.cosines,
            &mut self.by_mean,
            &mut self.by_norm,
        ] {
            buffer.resize(features, 0.0);
        }
    }
}

impl Path {
    /// A draw from GP(mu, ν²·Σ) by Matheron's rule with n spectral features.
    pub fn pathwise(
        gp: &GaussianProcess,
        nu: f64,
        n: usize,
        rng: &mut Rng,
        stop: &mut Stop,
    ) -> Result<Self> {
        let features = Features::draw(gp.kernel(), n, rng);
        let n = features.len();
        let amplitude = gp.kernel().signal_variance.sqrt() * features.amplitude();
        let mut w = standard_normal(n, rng);
        w.iter_mut().for_each(|w| *w *= amplitude);
        let (mut sines, mut cosines) = (vec![0.0; n], vec![0.0; n]);
        let mut prior = Vec::with_capacity(gp.len());
        for x in gp.rows().rows() {
            check(stop)?;
            features.evaluate(&x.to_vec(), &mut sines, &mut cosines);
            prior.push(dot(&w, &cosines));
        }
        let mut c = as_row(gp.whitened_prior(&prior, rng));
        gp.factor().backward_substitution(c.view_mut());
        let coefficients = gp
            .alpha()
            .iter()
            .zip(c.row(0))
            .map(|(a, c)| a - nu * c)
            .collect();
        Ok(Self {
            features,
            w,
            form: Form::Pathwise { coefficients, nu },
        })
    }

    /// A draw of the weights of n normalised features given the rows' targets y:
    /// with Σ = ΦᵀΦ + λI, w ~ N(Σ⁻¹Φᵀy, λΣ⁻¹). What the code of Verma et al. 2022 draws.
    /// A row whose noise is λ_i counts sqrt(λ/λ_i) times.
    pub fn weight_space(
        gp: &GaussianProcess,
        n: usize,
        rng: &mut Rng,
        stop: &mut Stop,
    ) -> Result<Self> {
        let features = Features::draw(gp.kernel(), n, rng);
        let n = features.len();
        let scale = gp.kernel().signal_variance.sqrt();
        let mut phi = Array2::zeros((gp.len(), n));
        let (mut sines, mut cosines) = (vec![0.0; n], vec![0.0; n]);
        for (x, mut row) in gp.rows().rows().into_iter().zip(phi.rows_mut()) {
            check(stop)?;
            features.evaluate(&x.to_vec(), &mut sines, &mut cosines);
            row.assign(&ArrayView1::from(&cosines));
            row *= scale / dot(&cosines, &cosines).sqrt();
        }
        let counts = gp
            .row_noise()
            .iter()
            .map(|v| (gp.noise_variance() / v).sqrt());
        let mut y = gp.targets();
        for ((mut row, y), count) in phi.rows_mut().into_iter().zip(&mut y).zip(counts) {
            row *= count;
            *y *= count;
        }
        let mut sigma = gram(phi.view());
        sigma
            .diag_mut()
            .iter_mut()
            .for_each(|s| *s += gp.noise_variance());
        let mut root = GrowingCholesky::new();
        root.extend(Array2::zeros((n, 0)).view(), sigma)?;
        // w = L⁻ᵀ(L⁻¹ Φᵀy + sqrt(λ) ξ)
        let mut w = as_row(phi.t().dot(&ArrayView1::from(&y)).to_vec());
        root.forward_substitution(w.view_mut());
        let sd = gp.noise_variance().sqrt();
        for (w, xi) in w.iter_mut().zip(standard_normal(n, rng)) {
            *w += sd * xi;
        }
        root.backward_substitution(w.view_mut());
        Ok(Self {
            features,
            w: w.into_raw_vec_and_offset().0,
            form: Form::WeightSpace { scale },
        })
    }

    /// The draw at x.
    pub fn value(&self, gp: &GaussianProcess, x: &[f64], workspace: &mut Workspace) -> f64 {
        workspace.resize(gp.len(), self.features.len());
        let Workspace {
            k, sines, cosines, ..
        } = workspace;
        self.features.evaluate(x, sines, cosines);
        match &self.form {
            Form::Pathwise { coefficients, nu } => {
                gp.kernel().row(x, gp.scaled_rows(), k);
                nu * dot(&self.w, cosines) + dot(k, coefficients)
            }
            Form::WeightSpace { scale } => {
                scale * dot(&self.w, cosines) / dot(cosines, cosines).sqrt()
            }
        }
    }

    /// The draw at x and its gradient.
    pub fn value_and_gradient(
        &self,
        gp: &GaussianProcess,
        x: &[f64],
        workspace: &mut Workspace,
        gradient: &mut [f64],
    ) -> f64 {
        workspace.resize(gp.len(), self.features.len());
        let Workspace {
            k,
            slope,
            sines,
            cosines,
            by_mean,
            by_norm,
        } = workspace;
        self.features.evaluate(x, sines, cosines);
        // ∇(wᵀc) = −Σ_i w_i s_i ω_i
        for ((t, w), s) in by_mean.iter_mut().zip(&self.w).zip(sines.iter()) {
            *t = -w * s;
        }
        let p = dot(&self.w, cosines);
        match &self.form {
            Form::Pathwise { coefficients, nu } => {
                let points = gp.scaled_rows();
                gp.kernel().row_with_slope(x, points, k, slope);
                gp.kernel()
                    .contract_gradient(x, points, slope, coefficients, gradient);
                for (d, g) in gradient.iter_mut().enumerate() {
                    *g += nu * dot(self.features.omega(d), by_mean);
                }
                nu * p + dot(k, coefficients)
            }
            // With q = |c| and p = wᵀc: f = s·p/q and ∇f = s·(∇p/q − p·∇q²/(2q³)), ∇q² = −2 Σ_i c_i s_i ω_i.
            Form::WeightSpace { scale } => {
                for ((t, c), s) in by_norm.iter_mut().zip(cosines.iter()).zip(sines.iter()) {
                    *t = -2.0 * c * s;
                }
                let q2 = dot(cosines, cosines);
                let q = q2.sqrt();
                for (d, g) in gradient.iter_mut().enumerate() {
                    let omega = self.features.omega(d);
                    let (dp, dq2) = (dot(omega, by_mean), dot(omega, by_norm));
                    *g = scale * (dp / q - p * dq2 / (2.0 * q2 * q));
                }
                scale * p / q
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::exact::tests::{check_moments, posterior};
    use super::*;
    use crate::gp::kernel::KernelFamily;
    use crate::gp::tests::{model, wave};
    use rand::SeedableRng;
    use std::ops::ControlFlow;

    fn go_on() -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    #[test]
    fn pathwise_draws_have_the_posterior_s_moments() {
        let mut rng = Rng::seed_from_u64(6);
        for nu in [1.0, 2.0] {
            let gp = model(KernelFamily::SquaredExponential, 6);
            let z = wave(4, 2, 7.7);
            let (mean, covariance) = posterior(&gp, z.view());
            let mut workspace = Workspace::default();
            let draws: Vec<Vec<f64>> = (0..4000)
                .map(|_| {
                    let path = Path::pathwise(&gp, nu, 200, &mut rng, &mut go_on).unwrap();
                    z.rows()
                        .into_iter()
                        .map(|x| path.value(&gp, &x.to_vec(), &mut workspace))
                        .collect()
                })
                .collect();
            check_moments(&draws, &mean, &(covariance * nu * nu), 1e-3);
        }
    }

    #[test]
    fn gradients_of_paths_are_finite_differences() {
        let mut rng = Rng::seed_from_u64(9);
        let gp = model(KernelFamily::Matern52, 8);
        let (mut workspace, mut gradient) = (Workspace::default(), vec![0.0; 2]);
        for path in [
            Path::pathwise(&gp, 1.4, 64, &mut rng, &mut go_on).unwrap(),
            Path::weight_space(&gp, 64, &mut rng, &mut go_on).unwrap(),
        ] {
            let x = [0.3, -0.2];
            let value = path.value_and_gradient(&gp, &x, &mut workspace, &mut gradient);
            assert!((value - path.value(&gp, &x, &mut workspace)).abs() < 1e-12);
            for d in 0..2 {
                let mut at = |h: f64| {
                    let mut x = x;
                    x[d] += h;
                    path.value(&gp, &x, &mut workspace)
                };
                assert!((gradient[d] - (at(1e-5) - at(-1e-5)) / 2e-5).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn weight_space_draws_fit_dense_data() {
        // With many features and rows the regression's mean comes near the posterior's.
        let mut rng = Rng::seed_from_u64(10);
        let gp = model(KernelFamily::SquaredExponential, 40);
        let z = wave(5, 2, 0.9);
        let mut workspace = Workspace::default();
        let mean = gp.mean(z.view());
        let n = 300;
        let mut sums = [0.0; 5];
        for _ in 0..n {
            let path = Path::weight_space(&gp, 200, &mut rng, &mut go_on).unwrap();
            for (sum, x) in sums.iter_mut().zip(z.rows()) {
                *sum += path.value(&gp, &x.to_vec(), &mut workspace) / n as f64;
            }
        }
        for (sum, mean) in sums.iter().zip(mean) {
            assert!((sum - mean).abs() < 0.1, "{sum} {mean}");
        }
    }
}
