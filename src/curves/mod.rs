//! A model of learning curves, which turns the first reports of a trial into a pseudo-observation of its value.
//!
//! * [`table`]: the curves of ended trials on a grid of steps; [`covariance`]: the covariance of a curve and its fit
//! * [`warps`]: the units of the values
//!
//! The value of trial i at step t = 1…T is
//!
//! > y_i(t) = c(t)·h_i + m(t) + g_i(t) + ε_i(t),  h_i = f(x_i) + u_i,  ε_i(t) ~ N(0, σ²),
//!
//! where f is a function of the point, and u_i differs between trainings at the same point. c(T) = 1 and m(T) = g_i(T)
//! = 0, so h_i is the value at the last step without noise. m is a mean curve, K is the covariance of g + ε, and c is
//! small at steps whose values do not depend on h. Let r = y − m at the steps that trial i has reported, and restrict K
//! and c to these steps. Then the reports carry the same information about h_i as one observation f̂ ~ N(h_i, 1/p), the
//! pseudo-observation (generalised least squares):
//!
//! > f̂ = cᵀK⁻¹r / p,  p = cᵀK⁻¹c.
//!
//! The likelihood of the reports is N(f̂; h_i, 1/p) times a factor that does not depend on h_i. So for every Gaussian
//! process f, one observation per trial gives the same posterior of f as all reports. c, m and K are estimated by a
//! regression of the values y_i(t) of ended trials on their last values y_i(T). The model is "freeze-thaw" (Swersky,
//! Snoek and Adams 2014, arXiv 1406.3896) with a mean curve, an end at step T, and an empirical covariance.

mod covariance;
mod table;
mod warps;

#[cfg(test)]
mod tests;

use std::borrow::Borrow;

use ndarray::{Array2, ArrayView2};

use crate::error::{Result, Stop, check};
use crate::numerics::cholesky::{dot, factor_in_place};
use crate::numerics::simd::substitute_forward;
use crate::numerics::warp::Warp;
use covariance::Kernel;
use table::{MAX_STEPS, Table, Units};

/// The smallest number of ended curves with which a model is fitted.
const MIN_CURVES: usize = 5;

/// The weight of the fitted kernel in the covariance K, as a number of curves.
const KERNEL_WEIGHT: f64 = 20.0;

/// The number of steps of expectation and maximisation if reports are missing. Without these steps, interpolation
/// would hide a part of the noise.
const ROUNDS: usize = 4;

/// With n ended curves, variances are multiplied by 1 + UNCERTAINTY/n, because c, m and K are estimates.
pub const UNCERTAINTY: f64 = 20.0;

/// The reports of a trial: pairs (step, value), sorted by step. Steps count from 1. Values that are not finite are
/// ignored.
pub type Curve = [(u32, f64)];

/// A pseudo-observation of h, the value at the last step without noise. `value` equals h plus a normal error of
/// variance `variance`. All fields are in the units of the reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PseudoObservation {
    pub value: f64,
    pub variance: f64,
    /// σ², the variance of y(T) about h, near this value.
    pub noise: f64,
}

/// The mean curve m and the covariance K, on a grid of steps before the last.
pub struct CurveModel {
    last_step: u32,
    units: Units,
    /// The steps of the grid, ascending (k,).
    steps: Vec<u32>,
    /// c on the grid (k,).
    slope: Vec<f64>,
    /// m on the grid (k,).
    mean: Vec<f64>,
    /// K (k, k).
    covariance: Array2<f64>,
    /// The Cholesky factor of K.
    factor: Array2<f64>,
    /// The factor 1 + UNCERTAINTY/n.
    inflation: f64,
    /// σ² in standardised units.
    noise: f64,
}

impl CurveModel {
    /// Fits the model to the curves of ended trials.
    ///
    /// A trial has ended if it has a report at `last_step`; other curves are ignored. The result is `None` if fewer
    /// than five ended curves have an earlier report, or if no earlier step has a report from half of these curves.
    ///
    /// K = (n·S + w·K_θ)/(n + w) with w = 20 is a compromise of two estimates. S = (1/n) Σ_i r_i r_iᵀ, for the
    /// residuals r_i of the regression, does not assume a form of the curves, but has rank at most n and contains the
    /// noise of the last values. K_θ is a kernel whose four hyperparameters θ maximise the evidence, see
    /// [`covariance`].
    pub fn fit<C: Borrow<Curve>>(
        ended: &[C],
        last_step: u32,
        stop: &mut Stop,
    ) -> Result<Option<Self>> {
        check(stop)?;
        let ended: Vec<&Curve> = ended.iter().map(Borrow::borrow).collect();
        let (warp, similar) = warps::choose(&ended, last_step, stop)?;
        let Some(mut table) = Table::of(&ended, last_step, warp, MAX_STEPS) else {
            return Ok(None);
        };
        let n = table.residuals.nrows() as f64;
        let mut estimate = |table: &Table, similar: Option<&Kernel>| {
            let moments = table.moments();
            let kernel = Kernel::fit(&table.steps, last_step, moments.view(), n, similar, stop)?;
            let weighted = moments * n + kernel.covariance() * KERNEL_WEIGHT;
            Result::Ok((kernel, weighted / (n + KERNEL_WEIGHT)))
        };
        let (mut kernel, mut covariance) = estimate(&table, similar.as_ref())?;
        if table.has_gaps() {
            for _ in 0..ROUNDS {
                table.impute(&covariance);
                (kernel, covariance) = estimate(&table, Some(&kernel))?;
            }
        }
        let mut factor = covariance.clone();
        if factor_in_place(&mut factor).is_err() {
            return Ok(None);
        }
        Ok(Some(Self {
            last_step,
            units: table.units,
            steps: table.steps,
            slope: table.slope,
            mean: table.mean,
            covariance,
            factor,
            inflation: 1.0 + UNCERTAINTY / n,
            noise: kernel.noise(),
        }))
    }

    /// Returns σ², the variance of the last value y(T) about h, in the squared units of the reports, for values that
    /// the warp does not change.
    pub fn noise(&self) -> f64 {
        self.noise * self.units.scale * self.units.scale
    }

    /// Returns the warp of the values, if there is one.
    pub fn warp(&self) -> Option<Warp> {
        self.units.warp
    }

    /// Returns the pseudo-observation of h from a curve. The result is `None` if the curve lacks a report on the grid,
    /// or has a report at the last step, which is its value.
    ///
    /// The variance is (1 + 20/n)/p.
    pub fn pseudo_observation(&self, curve: &Curve) -> Option<PseudoObservation> {
        let (mut reported, mut r) = (Vec::new(), Vec::new());
        let mut position = 0;
        for &(step, value) in curve.iter().filter(|(_, value)| value.is_finite()) {
            if step >= self.last_step {
                return None;
            }
            while self.steps.get(position).is_some_and(|&s| s < step) {
                position += 1;
            }
            if self.steps.get(position) == Some(&step) {
                reported.push(position);
                r.push(self.units.standardized(value) - self.mean[position]);
            }
        }
        let k = reported.len();
        let (estimate, precision) = if reported.last()? + 1 == k {
            // The first k rows of the factor are the factor of the first k rows of K.
            estimate(self.factor.view(), self.slope[..k].to_vec(), r)
        } else {
            let block = |(i, j)| self.covariance[[reported[i], reported[j]]];
            let mut factor = Array2::from_shape_fn((k, k), block);
            factor_in_place(&mut factor).ok()?;
            let slope = reported.iter().map(|&i| self.slope[i]).collect();
            estimate(factor.view(), slope, r)
        };
        let value = self.units.restored(estimate);
        let unit = self.units.unit_at(value).powi(2);
        let found = PseudoObservation {
            value,
            variance: self.inflation / precision * unit,
            noise: self.noise * unit,
        };
        (found.value.is_finite() && found.variance.is_normal()).then_some(found)
    }
}

/// Returns cᵀK⁻¹r / p and p = cᵀK⁻¹c. The first rows and columns of `factor` are the factor of K.
fn estimate(factor: ArrayView2<f64>, mut c: Vec<f64>, mut r: Vec<f64>) -> (f64, f64) {
    let stride = factor.ncols();
    let columns = factor.to_slice().expect("the factor is contiguous");
    substitute_forward(columns, stride, &mut c);
    substitute_forward(columns, stride, &mut r);
    let precision = dot(&c, &c);
    (dot(&c, &r) / precision, precision)
}
