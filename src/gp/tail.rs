//! The tail, which contains the rows of pending trials after the observed rows. The tail is always replaced as a whole.
//!
//! Notation: L z = y, where y contains the targets of the observed rows, followed by the targets of the tail.

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
    /// The posterior mean of the pending value given a statement: an observation `value` of the pending value with
    /// normal error of this variance. Rows with statements come first in a tail.
    Stated { value: f64, variance: f64 },
}

/// A statement about the noisy value of a row of the tail: an observation with normal error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TailStatement {
    /// The index of the row in the tail.
    pub row: usize,
    pub value: f64,
    pub variance: f64,
}

impl GaussianProcess {
    /// Replaces the tail. A row with a value counts as an observation. A row at the posterior mean has z = 0. A row at
    /// the posterior mean reduces the variance and does not change the mean.
    pub(crate) fn set_tail(&mut self, x: ArrayView2<f64>, targets: &[Target]) -> Result<()> {
        if x.nrows() != targets.len() {
            return Err(Error::Shape(format!(
                "{} targets for a tail of {} rows",
                targets.len(),
                x.nrows()
            )));
        }
        self.drop_tail();
        if targets.is_empty() {
            return Ok(());
        }
        let statements = statements(targets);
        let targets = self.resolved(x, targets);
        self.replace_tail(x.slice(s![..0, ..]), x, self.noise_variance())?;
        if let Some(stated) = self.stated(&statements)? {
            self.z.extend(stated.mean);
        }
        for (i, target) in (self.n_observed()..).zip(&targets).skip(statements.len()) {
            // Row i of L z = y determines z_i.
            let z = match target {
                None => 0.0,
                Some(y) => {
                    let factor = self.factor();
                    let known: f64 = (0..i).map(|j| factor.at(i, j) * self.z[j]).sum();
                    (y - known) / factor.at(i, i)
                }
            };
            self.z.push(z);
        }
        self.update_alpha();
        self.check_range(targets.into_iter().flatten())
    }

    /// The targets of a tail as numbers. `PosteriorMean` is replaced by the posterior mean.
    pub(crate) fn tail_means(&self, x: ArrayView2<f64>, targets: &[Target]) -> Vec<f64> {
        let resolved = self.resolved(x, targets).into_iter();
        let means = resolved.zip(self.mean(x));
        means.map(|(value, mean)| value.unwrap_or(mean)).collect()
    }

    /// Replaces the tail by noiseless observations that equal the posterior mean. The rows are `baseline` (m, d),
    /// followed by `pending` (p, d).
    pub(crate) fn set_noiseless_tail(
        &mut self,
        baseline: ArrayView2<f64>,
        pending: ArrayView2<f64>,
    ) -> Result<()> {
        self.replace_tail(baseline, pending, 0.0)?;
        // α = L⁻ᵀz is 0 at the tail and unchanged at the observed rows.
        self.z.resize(self.len(), 0.0);
        self.alpha.resize(self.len(), 0.0);
        Ok(())
    }

    /// Replaces draws of the entries of z for the tail (m draws, rows of the tail), which are standard normal, by draws
    /// given statements.
    pub(crate) fn condition_draws(
        &self,
        draws: &mut Array2<f64>,
        statements: &[TailStatement],
    ) -> Result<()> {
        let Some(stated) = self.stated(statements)? else {
            return Ok(());
        };
        let mut part = draws.slice_mut(s![.., ..stated.mean.len()]);
        let mut solved = part.to_owned();
        LowerFactor::of(&stated.factor).backward_substitution(solved.view_mut());
        part.assign(&(solved + ArrayView1::from(&stated.mean)));
        Ok(())
    }

    /// The distribution of the entries of z for the tail given statements, up to the last row with a statement. The
    /// later entries do not depend on the statements. Without statements, the result is `None`.
    ///
    /// The values of the tail are mu + B z, where mu is their posterior mean, B is a part of L, and z ~ N(0, I). The
    /// statements are s = mu + B z + e with e ~ N(0, V). So the precision of z is G = I + BᵀV⁻¹B, and the mean is
    /// G⁻¹BᵀV⁻¹(s − mu).
    fn stated(&self, statements: &[TailStatement]) -> Result<Option<Stated>> {
        let Some(last) = statements.iter().map(|statement| statement.row).max() else {
            return Ok(None);
        };
        let (n, factor) = (self.n_observed(), self.factor());
        let mut precision = Array2::eye(last + 1);
        let mut mean = vec![0.0; last + 1];
        for statement in statements {
            let i = n + statement.row;
            let known: f64 = (0..n).map(|j| factor.at(i, j) * self.z[j]).sum();
            let row: Vec<f64> = (n..=i).map(|j| factor.at(i, j)).collect();
            for (j, b) in row.iter().enumerate() {
                let weight = b / statement.variance;
                mean[j] += weight * (statement.value - known);
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
        Ok(Some(Stated {
            mean: solved.into_raw_vec_and_offset().0,
            factor: precision,
        }))
    }

    /// Returns the targets of tail rows as numbers, computed from the observed rows alone. `None` means the posterior
    /// mean.
    fn resolved(&self, x: ArrayView2<f64>, targets: &[Target]) -> Vec<Option<f64>> {
        let mut observed = None;
        let targets = x.rows().into_iter().zip(targets);
        targets
            .map(|(x, target)| match *target {
                Target::PosteriorMean | Target::Stated { .. } => None,
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
            offsets
                .map(|(d, ((a, b), l))| ((warped(a, d) - warped(b, d)) / l).powi(2))
                .sum()
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

/// The statements of a tail.
pub(crate) fn statements(targets: &[Target]) -> Vec<TailStatement> {
    let stated = targets.iter().enumerate();
    stated
        .filter_map(|(row, target)| match *target {
            Target::Stated { value, variance } => Some(TailStatement {
                row,
                value,
                variance,
            }),
            _ => None,
        })
        .collect()
}

/// The normal distribution of the first entries of z for the tail, with precision G.
struct Stated {
    mean: Vec<f64>,
    /// The Cholesky factor of G.
    factor: Array2<f64>,
}
