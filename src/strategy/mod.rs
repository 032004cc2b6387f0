//! What proposes the next trial: the trait that every strategy implements, and what it takes and gives.

pub mod bayes;
pub mod random_search;

use crate::domain::Domain;
use crate::error::{Result, Stop};
use crate::gp::GaussianProcess;
use crate::ledger::{Fitted, Ledger, Point};
use crate::random::Rng;

/// Where the next trial should be, and what was learnt on the way.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    pub point: Point,
    /// Hyperparameters, if they were fitted for this proposal.
    pub fitted: Option<Fitted>,
    /// Something that did not stop the proposal but that the user should know.
    pub warning: Option<String>,
}

/// The point to use when the search is over.
#[derive(Debug, Clone, PartialEq)]
pub struct Recommendation {
    pub point: Point,
    pub mean: f64,
    pub std: f64,
}

/// The posterior of (f − center)/scale that a strategy works with.
#[derive(Debug, Clone)]
pub struct Surrogate {
    pub model: GaussianProcess,
    pub center: f64,
    pub scale: f64,
}

/// When and where a proposal is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// Time on the ledger's clock.
    pub now: f64,
    /// Seconds on the wall, where leases are given out.
    pub wall: Option<f64>,
    /// Encoded context, empty where none is declared.
    pub context: &'a [f64],
}

/// A rule that chooses the next point from the log alone.
///
/// A strategy may keep what it has computed, but nothing that does not follow from the log: two of them
/// with the same settings, log and random stream propose the same point, bit for bit.
pub trait Strategy: Send {
    fn propose(
        &mut self,
        log: &Ledger,
        query: Query,
        rng: &mut Rng,
        stop: &mut Stop,
    ) -> Result<Proposal>;

    /// The best point by what the strategy believes; the default knows nothing beyond the values.
    fn recommend(
        &mut self,
        log: &Ledger,
        _query: Query,
        _rng: &mut Rng,
        _stop: &mut Stop,
    ) -> Result<Option<Recommendation>> {
        Ok(log.best().map(|number| {
            let trial = &log.trials()[number];
            Recommendation {
                point: trial.point.clone(),
                mean: trial.value.unwrap_or(f64::NAN),
                std: f64::NAN,
            }
        }))
    }

    /// The model behind the proposals, if there is one and it has been fitted.
    fn surrogate(
        &mut self,
        _log: &Ledger,
        _query: Query,
        _pending: bool,
        _stop: &mut Stop,
    ) -> Result<Option<Surrogate>> {
        Ok(None)
    }
}

/// A uniformly random point of a domain.
pub(crate) fn uniform_point(domain: &Domain, rng: &mut Rng) -> Point {
    let (x, index) = domain.sample_uniform(rng);
    Point { x, index }
}
