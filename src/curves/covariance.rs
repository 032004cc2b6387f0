//! The kernel of the residuals of curves. The hyperparameters of the kernel maximise the evidence.
//!
//! The evidence assumes that the slope c of the parent module is 1.

use std::f64::consts::PI;

use ndarray::{Array2, ArrayView2};

use crate::error::{Result, Stop, check};
use crate::numerics::cholesky::{LowerFactor, factor_in_place, multiply_transposed};
use crate::numerics::lbfgsb::{Scaling, Tolerance, minimize_scaled};

/// The positions of the hyperparameters in θ, the vector of their logs.
const AMPLITUDE: usize = 0;
const ALPHA: usize = 1;
const BETA: usize = 2;
const SIGMA: usize = 3;
pub const P: usize = 4;

/// The standard deviation of the normal prior on the log of each hyperparameter, with the start of the search as mean.
/// The prior on the amplitude is flat.
const PRIOR: [f64; P] = [f64::INFINITY, 2.0, 2.0, 2.0];

/// A variance that is added to σ² (in standardised units), so that equal curves do not determine the last value
/// exactly.
const SMALLEST_NOISE: f64 = 1e-6;

const TOLERANCE: Tolerance = Tolerance {
    projected_gradient: 1e-3,
    relative_reduction: 1e-7,
    max_iterations: 60,
};

/// The covariance K_θ of g(t) + ε(t) at steps before T:
///
/// > K_θ(s, t) = a·(k(s, t) − k(s, T)·k(t, T)/k(T, T)) + σ²·1\[s = t\],  k(s, t) = β^α/(s + t + β)^α
///
/// The kernel k is "freeze-thaw": a mixture of exponential decays e^(−λt), λ ~ Gamma(α, β) (Swersky, Snoek and Adams
/// 2014, section 3.1). Curves drawn from k converge to 0 at infinity; the second term conditions these curves on g(T) =
/// 0.
pub struct Kernel {
    /// The steps and T, in units of the first step.
    pub times: Vec<f64>,
    pub theta: [f64; P],
}

impl Kernel {
    /// Maximises the evidence of n curves times the prior, where `moments` is S, the mean over the curves of
    /// d_i(s)·d_i(t) with d_i(t) = y_i(t) − y_i(T). The search starts at θ of a similar fit, if one is given.
    pub fn fit(
        steps: &[u32],
        last_step: u32,
        moments: ArrayView2<f64>,
        n: f64,
        similar: Option<&Self>,
        stop: &mut Stop,
    ) -> Result<Self> {
        check(stop)?;
        let unit = f64::from(steps[0]);
        let times = steps.iter().chain([&last_step]);
        let times: Vec<f64> = times.map(|&t| f64::from(t) / unit).collect();
        let largest = moments.diag().iter().copied().fold(1e-4, f64::max);
        let start = [
            largest.ln(),
            0.0,
            3f64.ln(),
            0.5 * largest.ln() + 0.1f64.ln(),
        ];
        let bounds = |below: [f64; P]| -> Vec<f64> {
            let pairs = start.iter().zip(&below);
            pairs.map(|(centre, offset)| centre + offset).collect()
        };
        let low = bounds([-7.0, -3.0, -4.0, -7.0]);
        let high = bounds([5.0, 2.0, 5.0, 2.0]);
        let mut first = similar.map_or(start, |similar| similar.theta);
        for i in 0..P {
            first[i] = first[i].clamp(low[i], high[i]);
        }
        let mut kernel = Self {
            times,
            theta: first,
        };
        let mut objective = |theta: &[f64], gradient: &mut [f64]| {
            kernel.theta.copy_from_slice(theta);
            let mut value = -kernel.log_evidence(moments, n, gradient);
            for i in 0..P {
                let z = (theta[i] - start[i]) / PRIOR[i];
                value += 0.5 * z * z;
                gradient[i] = z / PRIOR[i] - gradient[i];
            }
            value
        };
        let (found, _) = minimize_scaled(
            &mut objective,
            &first,
            &low,
            &high,
            &TOLERANCE,
            Scaling {
                units: &[],
                first_step: 1.0,
            },
        );
        kernel.theta.copy_from_slice(&found);
        Ok(kernel)
    }

    /// Returns K_θ (k, k).
    pub fn covariance(&self) -> Array2<f64> {
        let [mut k, ..] = self.smooth_part();
        let noise = self.noise();
        k.diag_mut().mapv_inplace(|d| d + noise);
        k
    }

    /// Returns σ².
    pub fn noise(&self) -> f64 {
        self.theta[SIGMA].exp().powi(2) + SMALLEST_NOISE
    }

    /// Returns the log evidence −n/2·(log|2πC| + tr(C⁻¹S)) of the differences d_i(t) = y_i(t) − y_i(T) of n curves with
    /// moments S, and writes its derivatives. C = K_θ + σ²·11ᵀ contains the noise of the last values. The evidence is 0
    /// (its log −∞) if C is not positive definite because of rounding.
    ///
    /// The evidence of the differences is the evidence of the curves with a flat prior on h_i. The derivative with
    /// respect to θ_i is −n/2·Σ (C⁻¹ − C⁻¹SC⁻¹) ∘ ∂C/∂θ_i.
    pub fn log_evidence(&self, moments: ArrayView2<f64>, n: f64, gradient: &mut [f64]) -> f64 {
        let [smooth, by_alpha, by_beta] = self.smooth_part();
        let noise = self.noise();
        let mut factor = &smooth + noise;
        factor.diag_mut().mapv_inplace(|d| d + noise);
        if factor_in_place(&mut factor).is_err() {
            gradient.fill(0.0);
            return f64::NEG_INFINITY;
        }
        let k = factor.nrows();
        let mut inverse = Array2::zeros((k, k));
        LowerFactor::of(&factor).invert_half(&mut inverse);
        for i in 0..k {
            for j in 0..i {
                inverse[[i, j]] = inverse[[j, i]];
            }
        }
        let [mut half, mut solved] = [Array2::zeros((k, k)), Array2::zeros((k, k))];
        multiply_transposed(inverse.view(), moments, half.view_mut());
        multiply_transposed(half.view(), inverse.view(), solved.view_mut());
        let weights = &inverse - &solved;
        let derivative = |of: &Array2<f64>| -0.5 * n * (&weights * of).sum();
        gradient[AMPLITUDE] = derivative(&smooth);
        gradient[ALPHA] = derivative(&by_alpha);
        gradient[BETA] = derivative(&by_beta);
        gradient[SIGMA] =
            -n * (weights.diag().sum() + weights.sum()) * self.theta[SIGMA].exp().powi(2);
        let log_determinant = 2.0 * factor.diag().iter().map(|d| d.ln()).sum::<f64>();
        -0.5 * n * (k as f64 * (2.0 * PI).ln() + log_determinant + half.diag().sum())
    }

    /// Returns the covariance of g and its derivatives with respect to log α and log β (k, k).
    fn smooth_part(&self) -> [Array2<f64>; 3] {
        let [amplitude, alpha, beta, _] = self.theta.map(f64::exp);
        // k(s, t) and the derivatives of its log.
        let freeze_thaw = |s: f64, t: f64| {
            let log = alpha * (self.theta[BETA] - (s + t + beta).ln());
            [log.exp(), log, alpha * (s + t) / (s + t + beta)]
        };
        let (times, end) = self.times.split_at(self.times.len() - 1);
        let end = end[0];
        let k = times.len();
        let to_end: Vec<[f64; 3]> = times.iter().map(|&t| freeze_thaw(t, end)).collect();
        let at_end = freeze_thaw(end, end);
        let mut parts = [(); 3].map(|()| Array2::zeros((k, k)));
        for i in 0..k {
            for j in 0..=i {
                let here = freeze_thaw(times[i], times[j]);
                let known = to_end[i][0] * to_end[j][0] / at_end[0];
                let values = [0, 1, 2].map(|q| match q {
                    0 => here[0] - known,
                    _ => here[0] * here[q] - known * (to_end[i][q] + to_end[j][q] - at_end[q]),
                });
                for (part, value) in parts.iter_mut().zip(values) {
                    part[[i, j]] = amplitude * value;
                    part[[j, i]] = amplitude * value;
                }
            }
        }
        parts
    }
}
