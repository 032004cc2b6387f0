//! The posterior given the observed rows and a tail, which contains the rows of pending trials.
//!
//! Notation: L z = y, where y contains the targets of the observed rows, followed by the targets of the tail.

use std::borrow::BorrowMut;
use std::ops::Deref;

use ndarray::{Array2, ArrayView1, ArrayView2, s};

use super::{GaussianProcess, as_row};
use crate::error::{Error, Result};
use crate::numerics::cholesky::{LowerFactor, factor_in_place};

/// The target of a tail row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    /// A number in the units of the model.
    Value(f64),
    /// The posterior mean at the point.
    PosteriorMean,
    /// The mean of the posterior means at the k nearest observed points (Verma et al. 2022, footnote 3).
    NearestMean(usize),
    /// The posterior mean of the pending value given a pseudo-observation. `value` equals the pending value plus a
    /// normal error of variance `variance`. Rows with pseudo-observations come first in a tail.
    PseudoObserved { value: f64, variance: f64 },
}

/// A Gaussian process that is conditioned on a tail, which follows the observed rows. `G` owns or borrows the process.
///
/// The tail is appended to the factor of the process. Dropping the value drops the tail and restores the process bit for
/// bit. A conditioned process cannot be conditioned again.
#[derive(Debug)]
pub struct Conditioned<G: BorrowMut<GaussianProcess>> {
    gp: G,
    /// α of the observed rows alone.
    alpha: Vec<f64>,
}

impl<G: BorrowMut<GaussianProcess>> Deref for Conditioned<G> {
    type Target = GaussianProcess;

    fn deref(&self) -> &GaussianProcess {
        self.gp.borrow()
    }
}

impl<G: BorrowMut<GaussianProcess>> Drop for Conditioned<G> {
    fn drop(&mut self) {
        let alpha = std::mem::take(&mut self.alpha);
        self.gp.borrow_mut().drop_tail(alpha);
    }
}

impl<G: BorrowMut<GaussianProcess>> Conditioned<G> {
    /// Conditions on an empty tail.
    pub(crate) fn on_nothing(gp: G) -> Self {
        let alpha = gp.borrow().alpha.clone();
        Self { gp, alpha }
    }

    /// Conditions on the rows of `x` with these targets. A row with a value counts as an observation. A row at the
    /// posterior mean has z = 0, so it reduces the variance without changing the mean.
    pub(crate) fn on(gp: G, x: ArrayView2<f64>, targets: &[Target]) -> Result<Self> {
        if x.nrows() != targets.len() {
            return Err(Error::Shape(format!(
                "{} targets for a tail of {} rows",
                targets.len(),
                x.nrows()
            )));
        }
        let mut conditioned = Self::on_nothing(gp);
        if targets.is_empty() {
            return Ok(conditioned);
        }
        let gp = conditioned.gp.borrow_mut();
        let values = gp.resolved(x, targets);
        gp.append_tail(x.slice(s![..0, ..]), x, gp.noise_variance())?;
        let given = conditioned.given_pseudo_observations(targets)?;
        let gp = conditioned.gp.borrow_mut();
        let n = gp.n_observed();
        gp.z.extend(given.into_iter().flat_map(|given| given.mean));
        for (i, target) in (n..).zip(&values).skip(gp.z.len() - n) {
            // Row i of L z = y determines z_i.
            let z = match target {
                None => 0.0,
                Some(y) => {
                    let factor = gp.factor();
                    let known: f64 = (0..i).map(|j| factor.at(i, j) * gp.z[j]).sum();
                    (y - known) / factor.at(i, i)
                }
            };
            gp.z.push(z);
        }
        gp.update_alpha();
        gp.check_range(values.into_iter().flatten())?;
        Ok(conditioned)
    }

    /// Conditions on noiseless observations that equal the posterior mean. The rows are `baseline` (m, d), followed by
    /// `pending` (p, d).
    pub(crate) fn on_noiseless(
        gp: G,
        baseline: ArrayView2<f64>,
        pending: ArrayView2<f64>,
    ) -> Result<Self> {
        let mut conditioned = Self::on_nothing(gp);
        let gp = conditioned.gp.borrow_mut();
        gp.append_tail(baseline, pending, 0.0)?;
        // α = L⁻ᵀz is 0 at the tail and unchanged at the observed rows.
        gp.z.resize(gp.len(), 0.0);
        gp.alpha.resize(gp.len(), 0.0);
        Ok(conditioned)
    }

    /// A copy that owns its process.
    pub(crate) fn to_owned(&self) -> Conditioned<GaussianProcess> {
        Conditioned {
            gp: self.deref().clone(),
            alpha: self.alpha.clone(),
        }
    }

    /// The rows of the tail.
    pub(crate) fn tail(&self) -> ArrayView2<'_, f64> {
        self.rows().slice_move(s![self.n_observed().., ..])
    }

    /// Conditions standard normal draws of the entries of z for the tail (m draws, rows of the tail) on the
    /// pseudo-observations in `targets`, which are the targets of the last rows of the tail.
    pub(crate) fn condition_draws(
        &self,
        draws: &mut Array2<f64>,
        targets: &[Target],
    ) -> Result<()> {
        let Some(given) = self.given_pseudo_observations(targets)? else {
            return Ok(());
        };
        let mut part = draws.slice_mut(s![.., ..given.mean.len()]);
        let mut solved = part.to_owned();
        LowerFactor::of(&given.factor).backward_substitution(solved.view_mut());
        part.assign(&(solved + ArrayView1::from(&given.mean)));
        Ok(())
    }

    /// The distribution of the entries of z for the tail given the pseudo-observations in `targets`, which are the
    /// targets of the last rows of the tail. Entries after the last pseudo-observation are left out, because they do
    /// not depend on pseudo-observations. Without pseudo-observations, the result is `None`.
    ///
    /// The values of the tail are mu + B z, where mu is their posterior mean, B is a part of L, and z ~ N(0, I). The
    /// pseudo-observations are s = mu + B z + e with e ~ N(0, V). So the precision of z is G = I + BᵀV⁻¹B, and the mean
    /// is G⁻¹BᵀV⁻¹(s − mu). V is diagonal. Its entries are the variances of the pseudo-observations, plus λ minus the
    /// noise variance of the row, because a pending value has noise λ.
    fn given_pseudo_observations(&self, targets: &[Target]) -> Result<Option<TailDistribution>> {
        let first = self.len() - targets.len();
        let pseudo_observations = (first..)
            .zip(targets)
            .filter_map(|(i, target)| match *target {
                Target::PseudoObserved { value, variance } => Some((i, value, variance)),
                _ => None,
            });
        let n = self.n_observed();
        let Some((last, ..)) = pseudo_observations.clone().last() else {
            return Ok(None);
        };
        let factor = self.factor();
        let mut precision = Array2::eye(last + 1 - n);
        let mut mean = vec![0.0; last + 1 - n];
        for (i, value, variance) in pseudo_observations {
            let variance = variance + (self.noise_variance() - self.row_noise()[i]);
            let known: f64 = (0..n).map(|j| factor.at(i, j) * self.z[j]).sum();
            let row: Vec<f64> = (n..=i).map(|j| factor.at(i, j)).collect();
            for (j, b) in row.iter().enumerate() {
                let weight = b / variance;
                mean[j] += weight * (value - known);
                for (k, c) in row.iter().enumerate() {
                    precision[[j, k]] += weight * c;
                }
            }
        }
        factor_in_place(&mut precision)
            .map_err(|pivot| Error::NotPositiveDefinite { pivot, jitter: 0.0 })?;
        let mut solved = as_row(mean);
        let factor = LowerFactor::of(&precision);
        factor.forward_substitution(solved.view_mut());
        factor.backward_substitution(solved.view_mut());
        Ok(Some(TailDistribution {
            mean: solved.into_raw_vec_and_offset().0,
            factor: precision,
        }))
    }
}

impl GaussianProcess {
    /// The targets of a tail as numbers. `PosteriorMean` is replaced by the posterior mean.
    pub(crate) fn tail_means(&self, x: ArrayView2<f64>, targets: &[Target]) -> Vec<f64> {
        let resolved = self.resolved(x, targets).into_iter();
        let means = resolved.zip(self.mean(x));
        means.map(|(value, mean)| value.unwrap_or(mean)).collect()
    }

    /// Returns the targets of tail rows as numbers, computed from the observed rows alone. `None` means the posterior
    /// mean.
    fn resolved(&self, x: ArrayView2<f64>, targets: &[Target]) -> Vec<Option<f64>> {
        let mut observed = None;
        let targets = x.rows().into_iter().zip(targets);
        targets
            .map(|(x, target)| match *target {
                Target::PosteriorMean | Target::PseudoObserved { .. } => None,
                Target::Value(y) => Some(y),
                Target::NearestMean(k) => {
                    let means = observed.get_or_insert_with(|| self.mean(self.rows()));
                    Some(self.mean_of_nearest(k, x, means))
                }
            })
            .collect()
    }

    /// The mean of `values` (n_observed,) at the k observed rows nearest to x. Distances are computed after the input
    /// warp, in units of the lengthscales. Without observed rows, the result is 0, the prior mean.
    fn mean_of_nearest(&self, k: usize, x: ArrayView1<f64>, values: &[f64]) -> f64 {
        let distance = |row: ArrayView1<f64>| -> f64 {
            let kernel = self.kernel();
            let warped = |x: &f64, d: usize| kernel.input_warp.value(*x, d);
            let offsets = row.iter().zip(x).zip(&kernel.lengthscale).enumerate();
            let of_columns =
                offsets.map(|(d, ((a, b), l))| ((warped(a, d) - warped(b, d)) / l).powi(2));
            of_columns.sum::<f64>() + kernel.descriptor_distance(row, x)
        };
        let mut near: Vec<(f64, f64)> = self
            .rows()
            .rows()
            .into_iter()
            .map(distance)
            .zip(values.iter().copied())
            .collect();
        near.sort_by(|a, b| a.0.total_cmp(&b.0));
        near.truncate(k);
        near.iter()
            .map(|(_, value)| value / near.len() as f64)
            .sum()
    }
}

/// The normal distribution of the first entries of z for the tail, with precision G.
struct TailDistribution {
    mean: Vec<f64>,
    /// The Cholesky factor of G.
    factor: Array2<f64>,
}
