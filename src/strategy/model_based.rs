//! Access to the posterior of strategies that have a posterior.

use ndarray::ArrayView2;

use crate::error::Result;
use crate::gp::GaussianProcess;
use crate::ledger::{Ledger, TrialNumber};
use crate::random::Call;
use crate::strategy::query::Query;
use crate::strategy::units::Units;

/// The posterior of f, which a strategy with a model computes from the log.
///
/// The rows of `gp` are encoded points ([`Problem::encode`](crate::Problem::encode)) followed by encoded contexts
/// ([`Problem::encode_context`](crate::Problem::encode_context)). Its values are targets, which `units` converts.
/// Larger targets are better, also in a minimisation.
pub struct Surrogate<'a> {
    /// The posterior of the targets.
    pub gp: &'a GaussianProcess,
    /// The trial of each observed row.
    pub(crate) rows: &'a [TrialNumber],
    /// The conversion between targets and values of f.
    pub units: Units,
    /// The log density of the observed values minus the log density of their targets, which is Σ log d target/dy.
    pub(crate) log_slope: f64,
}

/// A strategy that has a posterior.
pub trait ModelBased {
    /// The posterior over (x, context) rows, after `catch_up` with this log. The result is `None` before the first
    /// observation.
    ///
    /// With `pending`, the result is the posterior that the next suggestion would use.
    fn surrogate(
        &mut self,
        log: &Ledger,
        query: Query,
        pending: bool,
        call: &mut Call,
    ) -> Result<Option<Surrogate<'_>>>;

    /// The acquisition of the next suggestion at the rows of `points`, in units of f. The result is `None` before the
    /// first observation. `rng` is the generator of the next suggestion. `rewind` undoes the changes of the fold.
    fn acquisition(
        &mut self,
        log: &Ledger,
        query: Query,
        points: ArrayView2<f64>,
        call: &mut Call,
    ) -> Result<Option<Vec<f64>>>;
}
