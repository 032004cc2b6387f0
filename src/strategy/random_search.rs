//! Uniformly random points: the simplest strategy, and the pattern for the others.

use std::sync::Arc;

use crate::domain::Domain;
use crate::error::{Result, Stop};
use crate::ledger::Ledger;
use crate::random::Rng;
use crate::strategy::{Proposal, Query, Strategy, uniform_point};

/// Draws every point uniformly from the domain, whatever has been observed.
pub struct RandomSearch {
    domain: Arc<Domain>,
}

impl RandomSearch {
    pub fn new(domain: Arc<Domain>) -> Self {
        Self { domain }
    }
}

impl Strategy for RandomSearch {
    fn propose(
        &mut self,
        _log: &Ledger,
        _query: Query,
        rng: &mut Rng,
        _stop: &mut Stop,
    ) -> Result<Proposal> {
        Ok(Proposal {
            point: uniform_point(&self.domain, rng),
            fitted: None,
            warning: None,
        })
    }
}
