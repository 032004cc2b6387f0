//! What a point is worth: acquisitions on a posterior, their values over blocks and their gradients.
//!
//! Notation: mu and sigma the posterior mean and standard deviation at x, nu the width of the upper bound,
//! f* the incumbent, u = (mu − f*)/sigma; φ and Φ the standard normal density and distribution.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use ndarray::{Array2, ArrayView2, Axis, s};

use crate::gp::fantasy::Fantasies;
use crate::gp::path::{self, Path};
use crate::gp::{BLOCK, GaussianProcess, Workspace};
use crate::maximize::Objective;

/// The formula that is maximised.
#[derive(Debug, Clone)]
pub enum Acquisition {
    /// mu + nu·sigma, with `noise` (a variance, often 0) inside sigma.
    UpperConfidenceBound { nu: f64, noise: f64 },
    /// log E max(0, f − f*) (Ament et al. 2023).
    LogExpectedImprovement { incumbent: f64 },
    /// The log of the mean over fantasies of E max(0, f − f*), f* being that of the fantasy.
    IntegratedLogExpectedImprovement {
        fantasies: Fantasies,
        incumbents: Vec<f64>,
    },
    /// sigma², which is largest where least is known.
    MaxVariance,
    /// A draw from the posterior.
    Thompson(Box<Path>),
}

impl Acquisition {
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
            Acquisition::IntegratedLogExpectedImprovement { .. } | Acquisition::Thompson(_) => {
                f64::NAN
            }
        }
    }
}

/// log (1/m) Σ_i sigma h(u_i) with u_i = (mu_i − f*_i)/sigma, and its derivative by sigma. The means are
/// overwritten by the derivatives by them.
pub fn integrated_log_ei(means: &mut [f64], variance: f64, incumbents: &[f64]) -> (f64, f64) {
    let sigma = floored_sigma(variance);
    let scores = |mean: &f64, incumbent: &f64| log_improvement((mean - incumbent) / sigma);
    let best = means.iter().zip(incumbents);
    let best = best.map(|(m, f)| scores(m, f).0).fold(f64::MIN, f64::max);
    let (mut total, mut by_sigma) = (0.0, 0.0);
    for (mean, incumbent) in means.iter_mut().zip(incumbents) {
        let u = (*mean - incumbent) / sigma;
        let (log_h, slope) = scores(mean, incumbent);
        // This fantasy's part of the sum, times exp(−best).
        let part = (log_h - best).exp();
        total += part;
        by_sigma += part * (1.0 - slope * u) / sigma;
        *mean = part * slope / sigma;
    }
    means.iter_mut().for_each(|m| *m /= total);
    let value = sigma.ln() + best + (total / incumbents.len() as f64).ln();
    (value, by_sigma / total)
}

/// sigma, kept away from 0: log-EI there is −∞, which has no slope to climb.
fn floored_sigma(variance: f64) -> f64 {
    variance.max(1e-24).sqrt()
}

/// log h(u) and its derivative Φ(u)/h(u), with h(u) = φ(u) + u Φ(u) = E max(0, u + N(0, 1)).
///
/// For u < −1 the two terms of h cancel. With r = Φ(u)/φ(u) = sqrt(π/2)·erfcx(−u/√2), h = φ(u)(1 + u r); far out
/// 1 + u r = 1/u² − 3/u⁴ + 15/u⁶ − …
pub fn log_improvement(u: f64) -> (f64, f64) {
    let log_density = -0.5 * u * u - 0.5 * (2.0 * PI).ln();
    if u > -1.0 {
        let cdf = 0.5 * libm::erfc(-u * FRAC_1_SQRT_2);
        let h = log_density.exp() + u * cdf;
        (h.ln(), cdf / h)
    } else {
        let ratio = (PI / 2.0).sqrt() * puruspe::erfcx(-u * FRAC_1_SQRT_2);
        let h_over_density = if u > -40.0 {
            1.0 + u * ratio
        } else {
            let v = 1.0 / (u * u);
            v * (1.0 - v * (3.0 - v * (15.0 - 105.0 * v)))
        };
        (log_density + h_over_density.ln(), ratio / h_over_density)
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
    /// Means under fantasies, then what weights them; Σ_i weight_i α_i.
    means: Vec<f64>,
    blended: Vec<f64>,
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
            blended: vec![0.0; gp.len()],
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
            let (mean, variance) = self.gp.predict(self.rows.slice(s![..m, ..]));
            if let Acquisition::IntegratedLogExpectedImprovement {
                fantasies,
                incumbents,
            } = self.acquisition
            {
                let mut means = fantasies.means(self.gp, self.rows.slice(s![..m, ..]));
                for (i, mut means) in means.rows_mut().into_iter().enumerate() {
                    out[i] = means.as_slice_mut().map_or(f64::NAN, |means| {
                        integrated_log_ei(means, variance[i], incumbents).0
                    });
                }
                continue;
            }
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
        let (mean, variance) = self.gp.predict_gradient(&self.point, &mut self.workspace);
        if let Acquisition::IntegratedLogExpectedImprovement {
            fantasies,
            incumbents,
        } = self.acquisition
        {
            self.means.resize(fantasies.len(), 0.0);
            fantasies.means_at(self.workspace.covariances(), &mut self.means);
            let (value, by_sigma) = integrated_log_ei(&mut self.means, variance, incumbents);
            // Σ_i weight_i ∇mu_i = Σ_j (Σ_i weight_i α_i)_j ∇k(x, x_j)
            fantasies.blend(&self.means, &mut self.blended);
            self.gp
                .mean_gradient_with(&self.point, &self.blended, &mut self.workspace);
            let sigma = floored_sigma(variance);
            for (k, g) in gradient.iter_mut().enumerate() {
                *g = self.workspace.mean_gradient[k]
                    + by_sigma * self.workspace.variance_gradient[k] / (2.0 * sigma);
            }
            return value;
        }
        let (d_mean, d_variance) = (
            &self.workspace.mean_gradient,
            &self.workspace.variance_gradient,
        );
        // Weights of ∇mu and ∇sigma in the gradient; ∇sigma = ∇var / (2 sigma).
        let (sigma, by_mean, by_sigma) = match self.acquisition {
            Acquisition::UpperConfidenceBound { nu, noise } => {
                ((variance + noise).max(1e-24).sqrt(), 1.0, *nu)
            }
            Acquisition::LogExpectedImprovement { incumbent } => {
                let sigma = floored_sigma(variance);
                let u = (mean - incumbent) / sigma;
                // ∇ log EI = ∇sigma/sigma + h'/h·(∇mu − u ∇sigma)/sigma
                let slope = log_improvement(u).1;
                (sigma, slope / sigma, (1.0 - slope * u) / sigma)
            }
            // ∇sigma² = 2 sigma ∇sigma
            Acquisition::MaxVariance => {
                let sigma = floored_sigma(variance);
                (sigma, 0.0, 2.0 * sigma)
            }
            Acquisition::IntegratedLogExpectedImprovement { .. } | Acquisition::Thompson(_) => {
                unreachable!("handled above")
            }
        };
        for k in 0..d {
            gradient[k] = by_mean * d_mean[k] + by_sigma * d_variance[k] / (2.0 * sigma);
        }
        self.acquisition.of_moments(mean, variance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Rng;
    use crate::gp::tests::{model, wave};
    use crate::kernel::KernelShape;
    use crate::pending::Target;
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
        let gp = model(KernelShape::Matern52, 15);
        let mut rng = Rng::seed_from_u64(1);
        let mut with_tail = model(KernelShape::Matern52, 15);
        with_tail
            .set_tail(wave(2, 2, 5.0).view(), &[Target::PosteriorMean; 2])
            .unwrap();
        let fantasies = with_tail.fantasies(wave(5, 2, 0.3).view()).unwrap();
        let acquisitions = [
            Acquisition::MaxVariance,
            Acquisition::IntegratedLogExpectedImprovement {
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
                    Acquisition::IntegratedLogExpectedImprovement { .. } => &with_tail,
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
        let gp = model(KernelShape::Matern52, 6);
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
