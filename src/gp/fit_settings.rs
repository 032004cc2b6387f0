//! The settings for fitting the hyperparameters, and the parametrisation p of θ.
//!
//! Notation: p = (log ℓ…, log ℓ₁…, log σ_f², log λ), and d is the number of columns. Columns of the same group share
//! one entry log ℓ of p. ℓ₁ is the lengthscale of descriptors.

use super::Hyperparameters;
use super::evidence::Evidence;
use super::kernel::{Category, InputWarp, Kernel, KernelFamily};
use super::priors::{self, kind};

/// Bounds on ℓ, σ_f² and λ. The bounds are wide enough to be inactive for data of unit scale in a unit cube. A column
/// that does not influence f needs an ℓ far above 1e3 if the values of f are accurate to 1e-4 of their range.
const BOUNDS: [(f64, f64); 3] = [(1e-3, 1e6), (1e-6, 1e6), (1e-8, 1e4)];

/// The settings of a fit.
#[derive(Debug, Clone, PartialEq)]
pub struct FitSettings {
    pub family: KernelFamily,
    /// The group of each column, 0, 1, …. Columns of the same group have the same lengthscale.
    pub groups: Vec<usize>,
    /// The columns of each category, which share a group.
    pub categories: Vec<Category>,
    /// The group of ℓ₁ for each category with descriptors, 0, 1, …. The list is empty if descriptors are not used.
    pub descriptor_groups: Vec<usize>,
    /// Given hyperparameters. Each `None` is fitted.
    pub lengthscale: Option<Vec<f64>>,
    pub signal_variance: Option<f64>,
    pub noise_variance: Option<f64>,
    /// Whether the fit is maximum a posteriori (true) or maximum likelihood (false).
    pub priors: bool,
    /// The number of local searches. The first search starts from `start`. The other searches start from random draws.
    pub n_restarts: usize,
    /// The distribution of the random starts if there are no priors.
    pub draws: Draws,
    /// The number of named parameters, which is the dimension d of the priors. A parameter may have several columns.
    pub dimensions: usize,
    /// The unit of the lengthscale prior for each group: the typical distance between random points in the columns of
    /// the group. For one column with uniform points on [0, 1], the unit is 1.
    pub spreads: Vec<f64>,
    /// The input warp w that the search uses. At first, the search uses the input warp of the start.
    pub input_warp: InputWarp,
    /// The columns that may be warped.
    pub warpable: Vec<usize>,
}

/// The distribution from which random starts are drawn if there are no priors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Draws {
    /// The softplus of a standard normal number, as in GPy. All entries of a draw are of order one.
    Unit,
    /// Log-uniform on typical ranges. The draws include short lengthscales without noise and long lengthscales with
    /// much noise.
    Wide,
}

impl FitSettings {
    /// The settings for fitting all hyperparameters with priors. Each group of columns is assumed to be one parameter
    /// of the space, so `dimensions` is the number of groups.
    pub fn new(family: KernelFamily, groups: Vec<usize>, n_restarts: usize) -> Self {
        let n_groups = groups.iter().max().map_or(0, |last| last + 1);
        Self {
            family,
            groups,
            categories: Vec::new(),
            descriptor_groups: Vec::new(),
            lengthscale: None,
            signal_variance: None,
            noise_variance: None,
            priors: true,
            n_restarts,
            draws: Draws::Unit,
            dimensions: n_groups,
            spreads: vec![1.0; n_groups],
            input_warp: InputWarp::default(),
            warpable: Vec::new(),
        }
    }

    /// θ, if all hyperparameters are given.
    pub fn given(&self) -> Option<Hyperparameters> {
        Some(Hyperparameters::new(
            self.lengthscale.clone()?,
            self.signal_variance?,
            self.noise_variance?,
        ))
    }

    /// θ before any data. Hyperparameters that the settings give have the given values. Each remaining hyperparameter
    /// has the mode of its prior.
    pub fn prior_mode(&self) -> Hyperparameters {
        let [lengthscale, signal_variance, noise_variance] = priors::modes(self.dimensions);
        let per_column = |&k: &usize| lengthscale * self.spreads[k];
        let lengthscale = self.lengthscale.clone();
        Hyperparameters::new(
            lengthscale.unwrap_or_else(|| self.groups.iter().map(per_column).collect()),
            self.signal_variance.unwrap_or(signal_variance),
            self.noise_variance.unwrap_or(noise_variance),
        )
    }

    /// The number of groups of columns, without the groups of descriptors.
    fn n_groups(&self) -> usize {
        self.groups.iter().max().map_or(0, |last| last + 1)
    }

    /// The number of groups, each of which has one lengthscale.
    pub(super) fn n_lengthscales(&self) -> usize {
        let of_descriptors = self.descriptor_groups.iter().max();
        self.n_groups() + of_descriptors.map_or(0, |last| last + 1)
    }

    /// The parametrisation p of θ. Variances that the settings give replace the variances of θ.
    pub(super) fn encode(&self, theta: &Hyperparameters) -> Vec<f64> {
        let mut p = vec![0.0; self.n_lengthscales()];
        for (&group, l) in self.groups.iter().zip(&theta.lengthscale) {
            p[group] = l.ln();
        }
        let first = self.n_groups();
        for (&group, l) in self
            .descriptor_groups
            .iter()
            .zip(&theta.descriptor_lengthscale)
        {
            p[first + group] = l.ln();
        }
        let signal_variance = self.signal_variance.unwrap_or(theta.signal_variance);
        let noise_variance = self.noise_variance.unwrap_or(theta.noise_variance);
        p.extend([signal_variance.ln(), noise_variance.ln()]);
        p
    }

    /// The θ with parametrisation p.
    pub(super) fn decode(&self, p: &[f64]) -> Hyperparameters {
        let (lengthscale, rest) = p.split_at(p.len() - 2);
        Hyperparameters {
            lengthscale: self.groups.iter().map(|&k| lengthscale[k].exp()).collect(),
            signal_variance: rest[0].exp(),
            noise_variance: rest[1].exp(),
            descriptor_lengthscale: self
                .descriptor_groups
                .iter()
                .map(|k| lengthscale[self.n_groups() + k].exp())
                .collect(),
            input_warp: self.input_warp.clone(),
        }
    }

    /// The lower and upper bounds of p. If a hyperparameter is given, both of its bounds equal the given value.
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

    /// Returns the log evidence at p. With priors, the log prior is added to the log evidence.
    pub(super) fn value(
        &self,
        evidence: &mut Evidence,
        p: &[f64],
        cancelled: &mut dyn FnMut() -> bool,
    ) -> f64 {
        let theta = self.decode(p);
        let value = evidence.value(&self.kernel(&theta), theta.noise_variance, cancelled);
        value + self.add_priors(p, &mut vec![0.0; p.len()])
    }

    /// Writes the gradient of [`Self::value`] with respect to p. The last call of [`Self::value`] must have been made
    /// with the same arguments. Returns false if `cancelled` returns true.
    pub(super) fn gradient(
        &self,
        evidence: &mut Evidence,
        p: &[f64],
        gradient: &mut [f64],
        cancelled: &mut dyn FnMut() -> bool,
    ) -> bool {
        let (d, theta) = (self.groups.len(), self.decode(p));
        let m = self.descriptor_groups.len();
        let mut by_theta = vec![0.0; d + m + 2];
        let kernel = self.kernel(&theta);
        let complete = evidence.gradient(&kernel, theta.noise_variance, &mut by_theta, cancelled);
        gradient.fill(0.0);
        let n_lengthscales = p.len() - 2;
        for (&group, g) in self.groups.iter().zip(&by_theta) {
            gradient[group] += g;
        }
        for (&group, g) in self.descriptor_groups.iter().zip(&by_theta[d..]) {
            gradient[self.n_groups() + group] += g;
        }
        gradient[n_lengthscales..].copy_from_slice(&by_theta[d + m..]);
        self.add_priors(p, gradient);
        complete
    }

    /// Returns the value and writes the gradient, as `value` and `gradient` do. The value is −∞ if `cancelled` returns
    /// true.
    pub(super) fn value_and_gradient(
        &self,
        evidence: &mut Evidence,
        p: &[f64],
        gradient: &mut [f64],
        cancelled: &mut dyn FnMut() -> bool,
    ) -> f64 {
        gradient.fill(0.0);
        let value = self.value(evidence, p, cancelled);
        if value == f64::NEG_INFINITY || !self.gradient(evidence, p, gradient, cancelled) {
            return f64::NEG_INFINITY;
        }
        value
    }

    /// Returns the log prior density, or 0 without priors. Adds the gradient of the log prior density to `gradient`.
    pub(super) fn add_priors(&self, p: &[f64], gradient: &mut [f64]) -> f64 {
        if self.priors {
            priors::add_log_density(p, self.dimensions, &self.spreads, gradient)
        } else {
            0.0
        }
    }
}
