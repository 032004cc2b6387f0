//! Uniformly random points: the simplest strategy, and the pattern for the others.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::Domain;
use crate::error::{Error, Result, Stop};
use crate::ledger::{Ledger, Point};
use crate::maximize::excluded::Excluded;
use crate::maximize::feasible::{MAX_TRIES, sample};
use crate::random::Rng;
use crate::strategy::registry::FromSettings;
use crate::strategy::{Proposal, Query, Setup, Strategy, Supports, uniform_point};

/// There is nothing to choose.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {}

/// Draws every point uniformly from the domain, whatever has been observed.
pub struct RandomSearch {
    domain: Arc<Domain>,
    /// That of trials for which none is asked: full, where one is declared.
    fidelity: Option<f64>,
}

impl FromSettings for RandomSearch {
    type Settings = Settings;

    fn from_settings(setup: &Setup, _settings: Settings, _rng: &mut Rng) -> Result<Self> {
        Ok(Self {
            domain: setup.domain.clone(),
            fidelity: setup.fidelity.as_ref().map(|_| 1.0),
        })
    }
}

impl Strategy for RandomSearch {
    fn supports(&self) -> Supports {
        Supports::EVERYTHING
    }

    fn catch_up(&mut self, _log: &Ledger) -> Result<()> {
        Ok(())
    }

    fn rewind(&mut self, _log: &Ledger) {}

    fn propose(
        &mut self,
        _log: &Ledger,
        query: Query,
        rng: &mut Rng,
        stop: &mut Stop,
    ) -> Result<Proposal> {
        let point = if query.feasible.is_constrained() {
            let any = Excluded::default();
            let x = sample(&self.domain, query.feasible, &any, rng, stop)?
                .ok_or(Error::NoFeasiblePoint { tried: MAX_TRIES })?;
            Point::new(x, None)
        } else {
            uniform_point(&self.domain, rng)
        };
        Ok(Proposal {
            fidelity: query.fidelity.or(self.fidelity),
            ..Proposal::at(point)
        })
    }
}
