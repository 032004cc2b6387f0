//! Families of delays. The log of the delay is μ + σ Z, where Z has a fixed distribution F with density f.
//!
//! * exponential and Weibull (shape 1/σ): F(z) = 1 − exp(−e^z); σ = 1 for the exponential family
//! * log-normal: F = Φ; log-logistic (shape 1/σ): F(z) = 1/(1 + e^−z)

use std::f64::consts::{FRAC_1_SQRT_2, LN_2, PI};

use crate::numerics::special::{log_cdf, normal_quantile};

/// A family of distributions of delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Exponential,
    Weibull,
    LogNormal,
    LogLogistic,
}

/// F, 1 − F, f and f' at a point.
pub struct Distribution {
    pub below: f64,
    pub above: f64,
    pub density: f64,
    pub slope: f64,
}

impl Family {
    pub const ALL: [Family; 4] = [
        Family::Exponential,
        Family::Weibull,
        Family::LogNormal,
        Family::LogLogistic,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Family::Exponential => "exponential",
            Family::Weibull => "weibull",
            Family::LogNormal => "log-normal",
            Family::LogLogistic => "log-logistic",
        }
    }

    /// The standard deviation of Z.
    pub fn std(self) -> f64 {
        match self {
            Family::Exponential | Family::Weibull => PI / 6f64.sqrt(),
            Family::LogNormal => 1.0,
            Family::LogLogistic => PI / 3f64.sqrt(),
        }
    }

    /// Returns log f(z) and its first two derivatives.
    #[inline(always)]
    pub fn log_density(self, z: f64) -> (f64, f64, f64) {
        match self {
            Family::Exponential | Family::Weibull => {
                let e = z.exp();
                (z - e, 1.0 - e, -e)
            }
            Family::LogNormal => (-0.5 * z * z - 0.5 * (2.0 * PI).ln(), -z, -1.0),
            Family::LogLogistic => {
                // With u = e^−|z|, e^z/(1 + e^z)² = u/(1 + u)².
                let u = (-z.abs()).exp();
                let small = u / (1.0 + u);
                let slope = 1.0 - 2.0 * small;
                (
                    -z.abs() - 2.0 * u.ln_1p(),
                    if z > 0.0 { -slope } else { slope },
                    -2.0 * small * (1.0 - small),
                )
            }
        }
    }

    #[inline(always)]
    pub fn distribution(self, z: f64) -> Distribution {
        // At ±700, F is 0 or 1 and z f is 0, up to 1e-300.
        let z = z.clamp(-700.0, 700.0);
        match self {
            Family::Exponential | Family::Weibull => {
                let e = z.exp();
                let density = (z - e).exp();
                Distribution {
                    below: -(-e).exp_m1(),
                    above: (-e).exp(),
                    density,
                    slope: density * (1.0 - e),
                }
            }
            Family::LogNormal => {
                let density = (-0.5 * z * z).exp() / (2.0 * PI).sqrt();
                Distribution {
                    below: 0.5 * libm::erfc(-z * FRAC_1_SQRT_2),
                    above: 0.5 * libm::erfc(z * FRAC_1_SQRT_2),
                    density,
                    slope: -z * density,
                }
            }
            Family::LogLogistic => {
                let u = (-z.abs()).exp();
                let (small, large) = (u / (1.0 + u), 1.0 / (1.0 + u));
                let (below, above) = if z > 0.0 {
                    (large, small)
                } else {
                    (small, large)
                };
                let density = small * large;
                Distribution {
                    below,
                    above,
                    density,
                    slope: density * (above - below),
                }
            }
        }
    }

    /// Returns the quantile z of F.
    pub fn quantile(self, q: f64) -> f64 {
        match self {
            Family::Exponential | Family::Weibull => (-(-q).ln_1p()).ln(),
            Family::LogNormal => normal_quantile(q),
            Family::LogLogistic => q.ln() - (-q).ln_1p(),
        }
    }

    /// Returns the z' with 1 − F(z') = (1 − F(z))/2: the median of Z, given that Z > z.
    pub fn median_beyond(self, z: f64) -> f64 {
        match self {
            // e^z' = e^z + log 2.
            Family::Exponential | Family::Weibull if z > 0.0 => z + (LN_2 * (-z).exp()).ln_1p(),
            Family::Exponential | Family::Weibull => (z.exp() + LN_2).ln(),
            // e^z' = 1 + 2 e^z.
            Family::LogLogistic if z > 0.0 => z + (2.0 + (-z).exp()).ln(),
            Family::LogLogistic => (2.0 * z.exp()).ln_1p(),
            // Newton's method on log(1 − F), which is concave: every iterate after the first is right of the root.
            Family::LogNormal => {
                let target = log_cdf(-z).0 - LN_2;
                let mut root = z.max(0.0);
                for _ in 0..20 {
                    let (value, slope) = log_cdf(-root);
                    let step = (value - target) / slope;
                    root += step;
                    if step.abs() < 1e-12 * (1.0 + root.abs()) {
                        break;
                    }
                }
                root
            }
        }
    }

    /// Returns E[e^(σ Z)], which is infinite for log-logistic delays with σ ≥ 1.
    pub fn mean(self, sigma: f64) -> f64 {
        match self {
            Family::Exponential | Family::Weibull => libm::tgamma(1.0 + sigma),
            Family::LogNormal => (0.5 * sigma * sigma).exp(),
            Family::LogLogistic if sigma < 1.0 => PI * sigma / (PI * sigma).sin(),
            Family::LogLogistic => f64::INFINITY,
        }
    }
}
