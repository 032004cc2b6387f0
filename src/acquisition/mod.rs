//! What a point is worth: acquisitions on a posterior, their values over blocks and their gradients.
//!
//! Notation: mu and sigma the posterior mean and standard deviation at x, nu the width of the upper bound,
//! f* the incumbent, u = (mu − f*)/sigma; φ and Φ the standard normal density and distribution.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use multiversion::multiversion;
use ndarray::{Array2, ArrayView2, Axis, s};

use crate::numerics::special::{exp_nonpositive, mills_ratio};

use crate::gp::draw::path::{self, Path};
use crate::gp::fantasies::Fantasies;
use crate::gp::{BLOCK, GaussianProcess, Workspace};
use crate::maximize::Objective;
use crate::numerics::cholesky::sum;

/// The formula that is maximised.
#[derive(Debug, Clone)]
pub enum Acquisition {
    /// mu + nu·sigma, with `noise` (a variance, often 0) inside sigma.
    UpperConfidenceBound { nu: f64, noise: f64 },
    /// log E max(0, f − f*) (Ament et al. 2023).
    LogExpectedImprovement { incumbent: f64 },
    /// The log of the mean over fantasies of E max(0, f − f*), f* being that of the fantasy.
    LogNoisyExpectedImprovement {
        fantasies: Fantasies,
        incumbents: Vec<f64>,
    },
    /// sigma², which is largest where least is known.
    MaxVariance,
    /// A draw from the posterior.
    Thompson(Box<Path>),
}

impl Acquisition {
    /// How much a search of a box should spend on it, as a part of the default, with n rows.
    ///
    /// A draw is rough, and cheap at O(n) a point. The others are smooth, and cost O(n²), with many rows out of cache.
    pub fn effort(&self, n: usize) -> f64 {
        match self {
            Acquisition::Thompson(_) => (1200.0 / n as f64).clamp(0.4, 2.0),
            _ => (300.0 / n as f64).clamp(0.1, 0.4),
        }
    }

    /// The value at a point of posterior mean mu and variance var; NaN where it is no function of these.
    pub fn of_moments(&self, mean: f64, variance: f64) -> f64 {
        match self {
            Acquisition::UpperConfidenceBound { nu, noise } => {
                mean + nu * (variance + noise).sqrt()
            }
            Acquisition::LogExpectedImprovement { incumbent } => {
                let sigma = floored_sigma(variance);
                sigma.ln() + log_improvement((mean - incumbent) / sigma).0
            }
            Acquisition::MaxVariance => variance,
            Acquisition::LogNoisyExpectedImprovement { .. } | Acquisition::Thompson(_) => f64::NAN,
        }
    }
}

/// log (1/m) Σ_i sigma h(u_i) with u_i = (mu_i − f*_i)/sigma, and its derivative by sigma. The means are
/// overwritten by the derivatives by them; `scratch` is a buffer.
///
/// With r = max −u_i²/2 over u_i < 0, or 0, everything is counted in units of exp(r). For a = |u| and Mills' ratio R,
/// Φ(−a) = φ R and h(−a) = φ (1 − a R); on the other side Φ(a) = 1 − Φ(−a) and h(a) = a + h(−a).
/// d(sigma h)/d sigma = φ.
pub fn log_noisy_ei(
    means: &mut [f64],
    variance: f64,
    incumbents: &[f64],
    scratch: &mut Vec<f64>,
) -> (f64, f64) {
    let (m, sigma) = (means.len(), floored_sigma(variance));
    let leads = means.iter().zip(incumbents).map(|(m, f)| m - f);
    // Beyond, squares would overflow.
    let reference = (leads.fold(f64::MIN, f64::max) / sigma).clamp(-1e150, 0.0);
    let reference = -0.5 * reference * reference;
    scratch.resize(2 * m, 0.0);
    let (improvements, densities) = scratch.split_at_mut(m);
    improve(
        means,
        incumbents,
        1.0 / sigma,
        reference,
        improvements,
        densities,
    );
    let total = sum(improvements);
    let value = sigma.ln() + reference + (total / m as f64).ln();
    let slope = 1.0 / (sigma * total);
    means.iter_mut().for_each(|m| *m *= slope);
    (value, sum(densities) * slope)
}

/// h(u_i) and φ(u_i) in units of exp(reference), and Φ(u_i) in place of the means.
#[multiversion(targets(
    "x86_64+avx512f+avx512dq+avx512vl+avx2+fma",
    "x86_64+avx2+fma",
    "aarch64+neon"
))]
fn improve(
    means: &mut [f64],
    incumbents: &[f64],
    precision: f64,
    reference: f64,
    improvements: &mut [f64],
    densities: &mut [f64],
) {
    const FRAC_1_SQRT_2_PI: f64 = 0.398_942_280_401_432_7;
    let ends = improvements.iter_mut().zip(densities);
    for (((mean, incumbent), h), phi) in means
        .iter_mut()
        .zip(incumbents)
        .zip(ends)
        .map(|(start, (h, phi))| ((start, h), phi))
    {
        let u = (*mean - incumbent) * precision;
        let a = if u.abs() < 1e150 { u.abs() } else { 1e150 };
        let (ratio, rest) = mills_ratio(a);
        let density = FRAC_1_SQRT_2_PI * exp_nonpositive(-0.5 * a * a - reference);
        let below = density * ratio;
        *phi = density;
        *h = density * rest + if u > 0.0 { u } else { 0.0 };
        *mean = if u > 0.0 { 1.0 - below } else { below };
    }
}

/// sigma, kept away from 0: log-EI there is −∞, which has no slope to climb.
fn floored_sigma(variance: f64) -> f64 {
    variance.max(1e-24).sqrt()
}

/// log h(u) and its derivative Φ(u)/h(u), with h(u) = φ(u) + u Φ(u) = E max(0, u + N(0, 1)).
///
/// For u < −1 the two terms of h cancel; with Mills' ratio R = Φ(u)/φ(u), h(u) = φ(u)(1 + u R).
pub fn log_improvement(u: f64) -> (f64, f64) {
    let log_density = -0.5 * u * u - 0.5 * (2.0 * PI).ln();
    if u > -1.0 {
        let cdf = 0.5 * libm::erfc(-u * FRAC_1_SQRT_2);
        let h = log_density.exp() + u * cdf;
        (h.ln(), cdf / h)
    } else {
        let (ratio, rest) = mills_ratio(-u);
        (log_density + rest.ln(), ratio / rest)
    }
}

/// An acquisition on a posterior, in one context: what is maximised over a domain.
pub struct Scorer<'a> {
    gp: &'a GaussianProcess,
    acquisition: &'a Acquisition,
    /// Context columns that follow those of x in a row of the model.
    context: &'a [f64],
    rows: Array2<f64>,
    point: Vec<f64>,
    gradient: Vec<f64>,
    workspace: Workspace,
    path_workspace: path::Workspace,
    /// Means under fantasies, then their weights in the gradient; the weights of v at the tail.
    means: Vec<f64>,
    by_tail: Vec<f64>,
    scratch: Vec<f64>,
}

impl<'a> Scorer<'a> {
    pub fn new(gp: &'a GaussianProcess, acquisition: &'a Acquisition, context: &'a [f64]) -> Self {
        let d = gp.kernel().width();
        let mut point = vec![0.0; d];
        point[d - context.len()..].copy_from_slice(context);
        Self {
            gp,
            acquisition,
            context,
            rows: Array2::zeros((0, d)),
            point,
            gradient: vec![0.0; d],
            workspace: Workspace::default(),
            path_workspace: path::Workspace::default(),
            means: Vec::new(),
            scratch: Vec::new(),
            by_tail: Vec::new(),
        }
    }

    fn set_point(&mut self, x: impl IntoIterator<Item = f64>) {
        self.point.iter_mut().zip(x).for_each(|(p, x)| *p = x);
    }
}

impl Objective for Scorer<'_> {
    fn values(&mut self, points: ArrayView2<f64>, out: &mut [f64]) {
        if let Acquisition::Thompson(path) = self.acquisition {
            for (x, value) in points.rows().into_iter().zip(out) {
                self.set_point(x.iter().copied());
                *value = path.value(self.gp, &self.point, &mut self.path_workspace);
            }
            return;
        }
        let d = points.ncols();
        if self.rows.nrows() < points.nrows().min(BLOCK) {
            let n = points.nrows().min(BLOCK);
            self.rows = Array2::zeros((n, d + self.context.len()));
            for (k, z) in self.context.iter().enumerate() {
                self.rows.column_mut(d + k).fill(*z);
            }
        }
        for (chunk, out) in points
            .axis_chunks_iter(Axis(0), BLOCK)
            .zip(out.chunks_mut(BLOCK))
        {
            let m = chunk.nrows();
            self.rows.slice_mut(s![..m, ..d]).assign(&chunk);
            if let Acquisition::LogNoisyExpectedImprovement {
                fantasies,
                incumbents,
            } = self.acquisition
            {
                let rows = self.rows.slice(s![..m, ..]);
                let (mut means, variance) = fantasies.predict(self.gp, rows);
                for (i, mut means) in means.rows_mut().into_iter().enumerate() {
                    out[i] = means.as_slice_mut().map_or(f64::NAN, |means| {
                        log_noisy_ei(means, variance[i], incumbents, &mut self.scratch).0
                    });
                }
                continue;
            }
            let (mean, variance) = self.gp.predict(self.rows.slice(s![..m, ..]));
            for i in 0..m {
                out[i] = self.acquisition.of_moments(mean[i], variance[i]);
            }
        }
    }

    fn value_and_gradient(&mut self, x: &[f64], gradient: &mut [f64]) -> f64 {
        self.set_point(x.iter().copied());
        let d = x.len();
        if let Acquisition::Thompson(path) = self.acquisition {
            let value = path.value_and_gradient(
                self.gp,
                &self.point,
                &mut self.path_workspace,
                &mut self.gradient,
            );
            gradient.copy_from_slice(&self.gradient[..d]);
            return value;
        }
        let (mean, variance) = self.gp.predict_at(&self.point, &mut self.workspace);
        let sigma = floored_sigma(variance);
        self.by_tail.clear();
        let (value, by_mean, by_sigma) = match self.acquisition {
            Acquisition::UpperConfidenceBound { nu, noise } => {
                let predictive = (variance + noise).max(1e-24).sqrt();
                // d sqrt(var + noise) / d sigma
                (mean + nu * predictive, 1.0, nu * sigma / predictive)
            }
            Acquisition::LogExpectedImprovement { incumbent } => {
                let u = (mean - incumbent) / sigma;
                // ∇ log EI = ∇sigma/sigma + h'/h·(∇mu − u ∇sigma)/sigma
                let (log_h, slope) = log_improvement(u);
                let value = sigma.ln() + log_h;
                (value, slope / sigma, (1.0 - slope * u) / sigma)
            }
            Acquisition::LogNoisyExpectedImprovement {
                fantasies,
                incumbents,
            } => {
                self.means.resize(fantasies.len(), 0.0);
                fantasies.means_at(mean, self.workspace.whitened(), &mut self.means);
                let (value, by_sigma) =
                    log_noisy_ei(&mut self.means, variance, incumbents, &mut self.scratch);
                fantasies.blend(&self.means, &mut self.by_tail);
                (value, sum(&self.means), by_sigma)
            }
            Acquisition::MaxVariance => (variance, 0.0, 2.0 * sigma),
            Acquisition::Thompson(_) => unreachable!("handled above"),
        };
        // ∇sigma = ∇var / (2 sigma)
        self.gp.gradient(
            &self.point,
            by_mean,
            by_sigma / (2.0 * sigma),
            &self.by_tail,
            &mut self.workspace,
            &mut self.gradient,
        );
        gradient.copy_from_slice(&self.gradient[..d]);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gp::Target;
    use crate::gp::kernel::KernelFamily;
    use crate::gp::tests::{model, wave};
    use crate::random::Rng;
    use rand::SeedableRng;

    #[test]
    fn log_improvement_matches_high_precision_values() {
        // log(φ(u) + u Φ(u)), computed with 60 digits.
        for (u, expected) in LOG_IMPROVEMENT {
            let (value, _) = log_improvement(u);
            assert!(
                (value - expected).abs() <= 1e-10 * expected.abs().max(1.0),
                "{u}: {value} {expected}"
            );
        }
    }

    const LOG_IMPROVEMENT: [(f64, f64); 8] = [
        (5.0, 1.6094379231264314),
        (0.5, -0.3598276837450638),
        (-0.9, -2.2982829894596517),
        (-1.1, -2.679178382476053),
        (-5.0, -16.74430116266099),
        (-20.0, -206.9178385094251),
        (-38.0, -730.1961834021137),
        (-100.0, -5010.12957880025),
    ];

    #[test]
    fn integrated_improvement_matches_high_precision_values() {
        // log (1/3) Σ sigma h(u_i), computed with 80 digits.
        for (means, incumbents, sigma, expected) in [
            (
                [0.3, -0.2, 1.1],
                [0.5, 0.6, 0.1],
                0.7,
                -0.868_471_402_894_072_6,
            ),
            (
                [-3.0, -9.0, -2.5],
                [0.0, 1.0, 0.5],
                0.4,
                -34.445_850_185_517_02,
            ),
            (
                [-3.0, -30.0, -20.0],
                [0.0, 1.0, 0.5],
                0.01,
                -45_018.030_319_289_21,
            ),
            (
                [5.0, 4.0, 3.5],
                [0.0, 1.0, 9.0],
                0.01,
                0.980_829_253_011_721_2,
            ),
        ] {
            let value = log_noisy_ei(&mut means.clone(), sigma * sigma, &incumbents, &mut vec![]).0;
            assert!((value / expected - 1.0).abs() < 1e-12, "{value} {expected}");
        }
        for mean in [-1e300, -1e8, 1e300] {
            let mut means = [mean; 3];
            let (value, slope) = log_noisy_ei(&mut means, 1e-4, &[0.0; 3], &mut vec![]);
            assert!(value.is_finite() && slope.is_finite() && means[0].is_finite());
        }
    }

    #[test]
    fn integrated_over_one_outcome_it_is_that_outcome_s() {
        for i in 0..1200 {
            let (mean, sigma) = (0.05 * i as f64 - 40.0, 0.7);
            let mut means = vec![mean; 11];
            let (value, by_sigma) =
                log_noisy_ei(&mut means, sigma * sigma, &[0.4; 11], &mut vec![]);
            let u = (mean - 0.4) / sigma;
            let (log_h, slope) = log_improvement(u);
            assert!(
                (value - sigma.ln() - log_h).abs() < 1e-12 * value.abs().max(1.0),
                "{u}"
            );
            let by_mean: f64 = means.iter().sum();
            assert!((by_mean * sigma / slope - 1.0).abs() < 1e-10, "{u}");
            let expected = (1.0 - slope * u) / sigma;
            // Here both terms are large and nearly equal.
            assert!(
                (by_sigma - expected).abs() < 1e-9 * (slope * u).abs().max(1.0),
                "{u}"
            );
        }
    }

    #[test]
    fn log_improvement_has_its_derivative_everywhere() {
        for i in 0..2000 {
            let u = -60.0 + 0.0333 * i as f64;
            let h = 1e-6 * u.abs().max(1.0);
            let slope = (log_improvement(u + h).0 - log_improvement(u - h).0) / (2.0 * h);
            let derivative = log_improvement(u).1;
            assert!(
                (slope - derivative).abs() < 1e-5 * derivative.abs().max(1e-3),
                "{u}"
            );
        }
    }

    #[test]
    fn gradients_are_finite_differences() {
        let gp = model(KernelFamily::Matern52, 15);
        let mut rng = Rng::seed_from_u64(1);
        let mut with_tail = model(KernelFamily::Matern52, 15);
        with_tail
            .set_tail(wave(2, 2, 5.0).view(), &[Target::PosteriorMean; 2])
            .unwrap();
        let fantasies = with_tail.fantasies(wave(5, 2, 0.3)).unwrap();
        let acquisitions = [
            Acquisition::MaxVariance,
            Acquisition::LogNoisyExpectedImprovement {
                fantasies,
                incumbents: vec![1.0, 2.0, 0.5, 9.0, 1.4],
            },
            Acquisition::UpperConfidenceBound {
                nu: 2.0,
                noise: 0.0,
            },
            Acquisition::UpperConfidenceBound {
                nu: 0.7,
                noise: 0.1,
            },
            Acquisition::LogExpectedImprovement { incumbent: 1.0 },
            Acquisition::LogExpectedImprovement { incumbent: 9.0 },
            Acquisition::Thompson(Box::new(
                Path::pathwise(&gp, 1.0, 64, &mut rng, &mut || {
                    std::ops::ControlFlow::Continue(())
                })
                .unwrap(),
            )),
        ];
        for acquisition in &acquisitions {
            for context in [vec![], vec![0.2]] {
                let gp = match acquisition {
                    Acquisition::LogNoisyExpectedImprovement { .. } => &with_tail,
                    _ => &gp,
                };
                let mut scorer = Scorer::new(gp, acquisition, &context);
                let x = [0.13, -0.41];
                let x = &x[..2 - context.len()];
                let mut gradient = vec![0.0; x.len()];
                let value = scorer.value_and_gradient(x, &mut gradient);
                let mut at = |x: &[f64]| {
                    let mut out = [0.0];
                    scorer.values(ArrayView2::from_shape((1, x.len()), x).unwrap(), &mut out);
                    out[0]
                };
                assert!((value - at(x)).abs() < 1e-9 * value.abs().max(1.0));
                for d in 0..x.len() {
                    let (mut up, mut down) = (x.to_vec(), x.to_vec());
                    up[d] += 1e-5;
                    down[d] -= 1e-5;
                    let slope = (at(&up) - at(&down)) / 2e-5;
                    assert!((gradient[d] - slope).abs() < 1e-4 * slope.abs().max(1.0));
                }
            }
        }
    }

    #[test]
    fn expected_improvement_is_the_mean_over_draws() {
        let gp = model(KernelFamily::Matern52, 6);
        let z = wave(1, 2, 30.0);
        let (mean, variance) = gp.predict(z.view());
        let incumbent = mean[0] - 0.2;
        let mut rng = Rng::seed_from_u64(2);
        let n = 200_000;
        let draws = gp.sample(z.view(), n, &mut rng).unwrap();
        let improvement = draws.iter().map(|f| (f - incumbent).max(0.0)).sum::<f64>() / n as f64;
        let log_ei =
            Acquisition::LogExpectedImprovement { incumbent }.of_moments(mean[0], variance[0]);
        assert!((log_ei.exp() / improvement - 1.0).abs() < 0.02);
    }
}
