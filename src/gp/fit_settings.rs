//! What a fit of the hyperparameters searches, and how.
//!
//! Notation: p = (log ℓ…, log σ_f², log λ), d columns; columns of one group share an entry of the first part of p.

use std::ops::Range;

use super::Hyperparameters;
use super::evidence::Evidence;
use super::kernel::{InputWarp, Kernel, KernelFamily};
use super::priors::{self, kind};
use super::starts::Draws;

/// Bounds on ℓ, σ_f² and λ, wide enough never to matter to data of unit scale in a unit cube. What f ignores needs an ℓ far
/// above 1e3 once f is known to 1e-4 of its range.
const BOUNDS: [(f64, f64); 3] = [(1e-3, 1e6), (1e-6, 1e6), (1e-8, 1e4)];

/// What is fitted, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct FitSettings {
    pub family: KernelFamily,
    /// The group of each column, 0, 1, …: columns of one group have the same lengthscale.
    pub groups: Vec<usize>,
    /// The columns of categories, each of which are of one group.
    pub categories: Vec<Range<usize>>,
    /// Parts of θ that are given, not fitted.
    pub lengthscale: Option<Vec<f64>>,
    pub signal_variance: Option<f64>,
    pub noise_variance: Option<f64>,
    /// Maximum a posteriori instead of maximum likelihood.
    pub priors: bool,
    /// Local searches: the first from `start`, the others from random draws.
    pub n_restarts: usize,
    /// The distribution of these where there are no priors.
    pub draws: Draws,
    /// d of the priors: named parameters, of which one may have several columns.
    pub dimensions: usize,
    /// What the prior of each group's lengthscale is in units of: how far apart random points are in its columns, 1 if
    /// these are uniform on [0, 1].
    pub spreads: Vec<f64>,
    /// w, under which θ is searched: that of the start, until the data choose another one.
    pub input_warp: InputWarp,
    /// The columns that may be warped.
    pub warpable: Vec<usize>,
}

impl FitSettings {
    /// θ, if all of it is given.
    pub fn given(&self) -> Option<Hyperparameters> {
        Some(Hyperparameters {
            lengthscale: self.lengthscale.clone()?,
            signal_variance: self.signal_variance?,
            noise_variance: self.noise_variance?,
            input_warp: InputWarp::default(),
        })
    }

    /// θ before any data: the modes of the priors where it is not given.
    pub fn prior_mode(&self) -> Hyperparameters {
        let [lengthscale, signal_variance, noise_variance] = priors::modes(self.dimensions);
        Hyperparameters {
            lengthscale: self.lengthscale.clone().unwrap_or_else(|| {
                let groups = self.groups.iter();
                groups.map(|&k| lengthscale * self.spreads[k]).collect()
            }),
            signal_variance: self.signal_variance.unwrap_or(signal_variance),
            noise_variance: self.noise_variance.unwrap_or(noise_variance),
            input_warp: InputWarp::default(),
        }
    }

    /// The number of groups.
    pub(super) fn n_lengthscales(&self) -> usize {
        self.groups.iter().max().map_or(0, |last| last + 1)
    }

    /// p of θ, with given variances in place of those of θ.
    pub(super) fn encode(&self, theta: &Hyperparameters) -> Vec<f64> {
        let mut p = vec![0.0; self.n_lengthscales()];
        for (&group, l) in self.groups.iter().zip(&theta.lengthscale) {
            p[group] = l.ln();
        }
        let signal_variance = self.signal_variance.unwrap_or(theta.signal_variance);
        let noise_variance = self.noise_variance.unwrap_or(theta.noise_variance);
        p.extend([signal_variance.ln(), noise_variance.ln()]);
        p
    }

    /// θ of p.
    pub(super) fn decode(&self, p: &[f64]) -> Hyperparameters {
        let (lengthscale, rest) = p.split_at(p.len() - 2);
        Hyperparameters {
            lengthscale: self.groups.iter().map(|&k| lengthscale[k].exp()).collect(),
            signal_variance: rest[0].exp(),
            noise_variance: rest[1].exp(),
            input_warp: self.input_warp.clone(),
        }
    }

    /// Lower and upper bounds of p; a given part has both at its value.
    pub(super) fn bounds(&self, start: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let n = self.n_lengthscales();
        let free = [
            &self.lengthscale.as_ref().map(|_| ()),
            &self.signal_variance.map(|_| ()),
            &self.noise_variance.map(|_| ()),
        ]
        .map(Option::is_none);
        let side = |pick: fn((f64, f64)) -> f64| -> Vec<f64> {
            (0..n + 2)
                .map(|i| {
                    let kind = kind(i, n);
                    if free[kind] {
                        pick(BOUNDS[kind]).ln()
                    } else {
                        start[i]
                    }
                })
                .collect()
        };
        (side(|b| b.0), side(|b| b.1))
    }

    /// The kernel of θ.
    pub(super) fn kernel(&self, theta: &Hyperparameters) -> Kernel {
        theta.kernel(self.family).with_categories(&self.categories)
    }

    /// The log evidence, with the log prior if there is one, and its gradient with respect to p.
    pub(super) fn value_and_gradient(
        &self,
        evidence: &mut Evidence,
        p: &[f64],
        gradient: &mut [f64],
        cancelled: &mut dyn FnMut() -> bool,
    ) -> f64 {
        let (d, theta) = (self.groups.len(), self.decode(p));
        let mut by_theta = vec![0.0; d + 2];
        let kernel = self.kernel(&theta);
        let value =
            evidence.value_and_gradient(&kernel, theta.noise_variance, &mut by_theta, cancelled);
        gradient.fill(0.0);
        let n_lengthscales = p.len() - 2;
        for (&group, g) in self.groups.iter().zip(&by_theta) {
            gradient[group] += g;
        }
        gradient[n_lengthscales..].copy_from_slice(&by_theta[d..]);
        value + self.add_priors(p, gradient)
    }

    /// The log prior density if there are priors, its gradient added to `gradient`.
    pub(super) fn add_priors(&self, p: &[f64], gradient: &mut [f64]) -> f64 {
        if self.priors {
            priors::add_log_density(p, self.dimensions, &self.spreads, gradient)
        } else {
            0.0
        }
    }
}
