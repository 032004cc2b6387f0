//! The arguments of a proposal.

use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

use crate::maximize::feasible::Feasible;
use crate::problem::{Domain, Member, Restriction};

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
    /// The members that may be proposed, or None if all members may be proposed.
    pub within: Option<Within<'a>>,
    /// The limit on time or cost that ends the run, if any.
    pub limit: Option<Limit>,
}

/// A restriction of the members that may be proposed. The model does not depend on it.
#[derive(Debug, Clone, Copy)]
pub struct Within<'a> {
    pub restriction: &'a Restriction,
    /// The constraints on rows of the restricted domain.
    pub feasible: Feasible<'a>,
}

impl<'a> Query<'a> {
    /// Calls a function with the query under a restriction.
    pub fn under<T>(self, restriction: &Restriction, ask: impl FnOnce(Query) -> T) -> T {
        let lifted = |rows: ArrayView2<f64>| {
            let rows = restriction.lift_rows(rows);
            self.feasible.of_rows(rows.view())
        };
        let feasible = match self.feasible.is_constrained() {
            true => Feasible::by(&lifted),
            false => self.feasible,
        };
        let within = Some(Within {
            restriction,
            feasible,
        });
        ask(Query { within, ..self })
    }

    /// The domain that is searched, given the domain of the problem. A proposed point is a member of this domain.
    pub fn searched<'d>(self, domain: &'d Domain) -> &'d Domain
    where
        'a: 'd,
    {
        self.within
            .map_or(domain, |within| within.restriction.domain())
    }

    /// The constraints on rows of the searched domain.
    pub fn feasible_members(self) -> Feasible<'a> {
        self.within.map_or(self.feasible, |within| within.feasible)
    }

    /// The restriction, if any.
    pub fn restriction(self) -> Option<&'a Restriction> {
        self.within.map(|within| within.restriction)
    }

    /// Whether a member of the domain of the problem may be proposed.
    pub fn allows(self, member: &Member) -> bool {
        self.within.is_none() || self.lower(&member.x, member.index).is_some()
    }

    /// The row of the domain of the problem for a row of the searched domain.
    pub fn lift(self, x: &[f64]) -> Vec<f64> {
        self.restriction()
            .map_or_else(|| x.to_vec(), |restriction| restriction.lift(x))
    }

    /// The row and the row number in the searched domain, or None if a point cannot be proposed.
    pub fn lower(self, x: &[f64], index: Option<usize>) -> Option<(Vec<f64>, Option<usize>)> {
        match self.restriction() {
            None => Some((x.to_vec(), index)),
            Some(restriction) => restriction.lower(x, index),
        }
    }
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
