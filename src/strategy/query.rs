//! The arguments of a proposal.

use serde::{Deserialize, Serialize};

use crate::maximize::feasible::Feasible;

/// The request for a proposal.
#[derive(Debug, Clone, Copy, Default)]
pub struct Query<'a> {
    /// The current time on the clock of the ledger.
    pub now: f64,
    /// The current wall-clock time in seconds, which is needed only if leases are used.
    pub wall_time: Option<f64>,
    /// The encoded context. The slice is empty if a context is not declared.
    pub context: &'a [f64],
    /// The requested fidelity in [0, 1], or `None` if the strategy chooses it.
    pub fidelity: Option<f64>,
    /// The constraints that the point must satisfy.
    pub feasible: Feasible<'a>,
    /// The limit on time or cost that ends the run, if any.
    pub limit: Option<Limit>,
}

/// What an evaluation uses up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// The duration of the evaluation.
    Time,
    /// The cost of the evaluation.
    Cost,
}

/// The limit that ends the run for which a trial is suggested.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    pub of: Resource,
    /// The share of the limit that has been used, from 0 to 1.
    pub used: f64,
}
