//! The trait of strategies that have a posterior, and access to this posterior.

use ndarray::ArrayView2;

use crate::error::{Result, Stop};
use crate::gp::{Conditioned, GaussianProcess};
use crate::ledger::{TrialNumber, View};
use crate::random::Call;
use crate::strategy::bayes::model::context_units::ContextUnits;
use crate::strategy::query::Query;
use crate::strategy::units::{Units, UnitsHere};

/// The posterior of f, which a strategy with a model computes from the log.
///
/// The rows of `gp` are encoded points ([`Problem::encode`](crate::Problem::encode)) followed by encoded contexts
/// ([`Problem::encode_context`](crate::Problem::encode_context)). The values of `gp` are targets, and `units` converts
/// targets to values of f. Larger targets are better, even if f is minimised.
pub struct Surrogate<'a> {
    /// The posterior of the targets. The rows of pending trials, if asked for, are its tail.
    pub gp: Conditioned<&'a mut GaussianProcess>,
    /// The trial of each observed row.
    pub(crate) rows: &'a [TrialNumber],
    /// The conversion between targets and values of f that are comparable between contexts.
    pub units: Units,
    /// The units of f in each context.
    pub(crate) contexts: ContextUnits,
    /// The log density of the observed values minus the log density of their targets, which is Σ log d target/dy.
    pub(crate) log_slope: f64,
}

impl Surrogate<'_> {
    /// The conversion between targets and values of f in the context of an encoded row.
    pub fn units_at(&self, row: &[f64]) -> UnitsHere {
        self.contexts.units(self.units, row)
    }

    /// The conversion between targets and values of f in the mean of the contexts.
    pub fn mean_units(&self) -> UnitsHere {
        UnitsHere {
            here: self.contexts.mean(),
            units: self.units,
        }
    }
}

/// The model of the durations of all trials that have ended.
pub struct Durations {
    /// The trials whose duration is known, in the order in which they ended.
    pub numbers: Vec<TrialNumber>,
    /// The log duration of each of these trials. A duration of 0 counts as a tenth of the smallest positive duration.
    pub log_durations: Vec<f64>,
    /// The share of the variance of log durations that the model explains, from 0 to 1.
    pub explained: f64,
    /// Returns the means and standard deviations of the log duration of a new trial at each row. The rows contain a
    /// point and a context.
    pub predict: Box<Predict>,
    /// The means and standard deviations of the log durations of the trials in `numbers`, by cross-validation: the
    /// trials are split into at most ten parts, and each part is predicted from the other parts. The hyperparameters are
    /// fitted to all trials.
    pub left_out: Moments,
}

/// Means and standard deviations.
pub type Moments = (Vec<f64>, Vec<f64>);

/// A function of rows that returns moments.
pub type Predict = dyn Fn(ArrayView2<f64>, &mut Stop) -> Result<Moments> + Send + Sync;

/// A forecast of a running or stopped trial, given its curve and the values and curves of all trials that have ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// The mean and standard deviation of the value at the last step of the curve, in units of f.
    pub value: (f64, f64),
    /// The logarithm of the expected improvement, up to a constant.
    pub log_improvement: f64,
    /// The logarithm of the expected improvement without the curve of the trial, up to the same constant.
    pub log_improvement_before: f64,
}

/// A value that is reported now.
#[derive(Debug, Clone, Copy)]
pub struct Further<'a> {
    /// The position of the outcome. Without declared outcomes, it is 0.
    pub outcome: usize,
    /// The trial, if the value replaces its earlier value.
    pub replaces: Option<TrialNumber>,
    /// The encoded point, followed by the encoded context.
    pub row: &'a [f64],
    /// The standard deviation of its noise, if known.
    pub std: Option<f64>,
}

/// A strategy that has a posterior.
pub trait ModelBased {
    /// The posterior, whose rows contain a point and a context. `catch_up` must have been called with this log. The
    /// result is `None` before the first observation.
    ///
    /// If `pending` is true, the posterior includes the pending trials, as in the next suggestion. `outcome` is the
    /// position of a declared outcome; None means the objective.
    fn surrogate(
        &mut self,
        log: View,
        query: Query,
        pending: bool,
        outcome: Option<usize>,
        call: &mut Call,
    ) -> Result<Option<Surrogate<'_>>>;

    /// The acquisition that the next suggestion would maximise, evaluated at the rows of `points`. The values are in
    /// units of f. The result is `None` before the first observation. `rng` is the random generator of the next
    /// suggestion. This method changes the state of the strategy. Calling `rewind` undoes the change.
    fn acquisition(
        &mut self,
        log: View,
        query: Query,
        points: ArrayView2<f64>,
        call: &mut Call,
    ) -> Result<Option<Vec<f64>>>;

    /// The logarithm of the probability that all outcomes lie within their bounds, at rows with a point and a context.
    /// `catch_up` must have been called with this log.
    fn log_feasibility(
        &mut self,
        log: View,
        query: Query,
        rows: ArrayView2<f64>,
        call: &mut Call,
    ) -> Result<Vec<f64>>;

    /// The forecast of a running or stopped trial, or `None` if its curve lacks usable reports. `catch_up` must have been called
    /// with this log.
    fn forecast(
        &mut self,
        log: View,
        number: TrialNumber,
        query: Query,
        call: &mut Call,
    ) -> Result<Option<Forecast>>;

    /// The interval in which a further value of an outcome is expected, in the user's units and sign, or `None` if too
    /// little is known. `catch_up` must have been called with this log.
    ///
    /// If `fits` is false, the model is used only if it needs neither a fit nor a new factor of many rows.
    fn expected(
        &mut self,
        _log: View,
        _further: Further,
        _query: Query,
        _fits: bool,
        _call: &mut Call,
    ) -> Result<Option<(f64, f64)>> {
        Ok(None)
    }

    /// The time for which a pending trial counts as arriving, on the clock, or `None` without a limit. `catch_up` must have
    /// been called.
    fn window(&self) -> Option<f64>;

    /// The model of durations, or `None` if fewer than two positive durations are known. The model does not depend on
    /// how points are chosen. `catch_up` must have been called with this log.
    fn durations(&mut self, log: View, query: Query, call: &mut Call) -> Result<Option<Durations>>;
}
