//! The confidence bounds at the end of a round, and the elimination of points.
//!
//! mu~ and σ~ are the posterior mean and standard deviation given the observations of the round that have arrived. The
//! bounds for finite sets (Theorem 6.1) are mu~ ± β~ σ~ with β~ = C_k + σ/λ·√(2 log(4R|X|/δ)). The bounds for boxes
//! (Theorem 6.2) are mu~ ± (2/q_r + β~' (σ~ + 2/√q_r)). For Theorem 6.2, the paper prints u_r instead of q_r, and two
//! upper bounds instead of an upper and a lower bound. If β is a number, the bounds are mu~ ± β σ~ for finite sets and
//! for boxes.

use ndarray::{Array2, ArrayView2};

use crate::error::{Result, Stop, check};
use crate::gp::kernel::KernelFamily;
use crate::gp::{GaussianProcess, Hyperparameters, RowNoise};

/// The parameters of the bounds U, L = mu~ ± (slack + multiplier·σ~).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Width {
    pub multiplier: f64,
    pub slack: f64,
}

/// The constants in the multipliers of the theorems.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Confidence {
    /// The bound C_k on the norm of f − mean.
    pub rkhs_bound: f64,
    pub delta: f64,
    /// The number of rounds R.
    pub n_rounds: usize,
    /// σ, the standard deviation of the noise. `regularization` is λ, the standard deviation of the noise in the model.
    pub noise_std: f64,
    pub regularization: f64,
}

impl Confidence {
    /// Returns β(δ) = C_k + σ/λ·√(2 log(1/δ)) (Lemma 4.1). The argument `log` is log(1/δ).
    fn beta(&self, log: f64) -> f64 {
        self.rkhs_bound + self.noise_std / self.regularization * (2.0 * log).sqrt()
    }

    /// Returns the parameters of the bounds in Theorem 6.1, for |X| points.
    pub fn on_points(&self, n_points: usize) -> Width {
        let log = (4.0 * self.n_rounds as f64 * n_points as f64 / self.delta).ln();
        Width {
            multiplier: self.beta(log),
            slack: 0.0,
        }
    }

    /// Returns the parameters of the bounds in Theorem 6.2, for round r. The multiplier is β~' = β(δ'/2Γ) with δ' =
    /// δ/4R. A discretisation has Γ = c C~^d q_r^d points (Lemma 4.3). Here C~ = C_k + max(σ, k_max) √q_r/λ·√(2 log(4
    /// q_r/δ')).
    pub fn on_a_box(&self, cover: Cover, q: usize) -> Width {
        let q = q as f64;
        let delta = self.delta / (4.0 * self.n_rounds as f64);
        let largest = self.noise_std.max(cover.k_max) / self.regularization;
        let norm = self.rkhs_bound + largest * (q * 2.0 * (4.0 * q / delta).ln()).sqrt();
        let log_points = cover.log_c + cover.d as f64 * (norm * q).ln();
        let log = (2.0 / delta).ln() + log_points.max(0.0);
        let multiplier = self.beta(log);
        Width {
            multiplier,
            slack: 2.0 / q + multiplier * 2.0 / q.sqrt(),
        }
    }
}

/// The size of a discretisation of a box (Assumption 4.2). For a discretisation of c·C_k^d·t^d points, `|f(x) − f([x])|
/// ≤ 1/t`, where [x] is the point nearest to x.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cover {
    pub log_c: f64,
    /// The number of columns.
    pub d: usize,
    /// The largest k(x, x).
    pub k_max: f64,
}

impl Cover {
    /// Computes the cover of the unit cube. A cover does not exist if functions in the space of the kernel are not
    /// Lipschitz continuous.
    ///
    /// |f(x) − f(x')| ≤ C_k √(k(x,x) − 2k(x,x') + k(x',x')) ≤ C_k σ_f g |(x − x')/ℓ|, where g² is
    /// [`KernelFamily::squared_lipschitz`]. Cells of width 2ℓ_i/(C_k σ_f g √d t) in column i satisfy the assumption.
    pub fn of(family: KernelFamily, theta: &Hyperparameters) -> Option<Self> {
        let squared = family.squared_lipschitz()?;
        let d = theta.lengthscale.len();
        let slope = (theta.signal_variance * squared * d as f64).sqrt() / 2.0;
        let log_c = theta.lengthscale.iter().map(|l| (slope / l).ln()).sum();
        let farthest: f64 = theta.lengthscale.iter().map(|l| 1.0 / (l * l)).sum();
        let k_max = match family.is_stationary() {
            true => theta.signal_variance,
            false => theta.signal_variance * (1.0 + farthest),
        };
        Some(Self { log_c, d, k_max })
    }
}

/// The observations that have arrived by the end of a round.
#[derive(Debug, Clone)]
pub struct Arrived {
    /// The points (n, width).
    pub x: Array2<f64>,
    /// Noisy values of f − mean (n,).
    pub y: Vec<f64>,
    /// Noise variances (n,).
    pub noise: Vec<f64>,
}

/// Returns the indices of the points with U(x) ≥ max L. If all bounds are NaN, the result is empty.
pub fn surviving(
    family: KernelFamily,
    theta: &Hyperparameters,
    arrived: &Arrived,
    points: ArrayView2<f64>,
    width: Width,
    stop: &mut Stop,
) -> Result<Vec<usize>> {
    let (mean, variance) = posterior(family, theta, arrived, points, stop)?;
    let bounds = mean.iter().zip(&variance).map(|(mean, variance)| {
        let half = width.slack + width.multiplier * variance.sqrt();
        (mean - half, mean + half)
    });
    let bounds: Vec<(f64, f64)> = bounds.collect();
    let best = bounds
        .iter()
        .map(|(lower, _)| *lower)
        .fold(f64::NAN, f64::max);
    let upper = bounds.iter().map(|(_, upper)| *upper).enumerate();
    Ok(upper
        .filter(|(_, upper)| *upper >= best)
        .map(|(i, _)| i)
        .collect())
}

/// Returns mu~ and σ~² at the points. Both results have shape (N,).
pub fn posterior(
    family: KernelFamily,
    theta: &Hyperparameters,
    arrived: &Arrived,
    points: ArrayView2<f64>,
    stop: &mut Stop,
) -> Result<(Vec<f64>, Vec<f64>)> {
    check(stop)?;
    let mut gp = GaussianProcess::new(family, theta)?;
    let noise: Vec<RowNoise> = arrived.noise.iter().copied().map(RowNoise::Known).collect();
    gp.append_noisy_rows(arrived.x.view(), &noise)?;
    gp.set_targets(&arrived.y)?;
    check(stop)?;
    Ok(gp.predict(points))
}
