//! Random search. Points are uniformly random. In finite domains, they are drawn without replacement.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::Domain;
use crate::domain::Member;
use crate::error::{Error, Result, Stop, check};
use crate::ledger::{Ledger, State};
use crate::maximize::excluded::Excluded;
use crate::maximize::feasible::Pool;
use crate::random::Rng;
use crate::strategy::from_settings::FromSettings;
use crate::strategy::{Proposal, Query, Setup, Strategy, Supports};

/// Random search has no settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {}

/// The largest domain in which points are drawn without replacement. In larger domains, repeated points are rare, and
/// avoiding repeated points is expensive.
const MAX_MEMBERS: u64 = 100_000;

/// Random search on a domain. In a finite domain, points are drawn from the members that have not been tried.
pub struct RandomSearch {
    domain: Arc<Domain>,
    /// The random generator of the pool.
    pool_rng: Rng,
    /// The pool of feasible points. It is computed at the first suggestion under constraints.
    pool: Option<Pool>,
    /// The default fidelity of trials. It is 1 if a fidelity is declared, and `None` otherwise.
    fidelity: Option<f64>,
}

impl FromSettings for RandomSearch {
    type Settings = Settings;

    fn from_settings(setup: &Setup, _settings: Settings, rng: &mut Rng) -> Result<Self> {
        Ok(Self {
            pool_rng: rng.clone(),
            pool: None,
            domain: setup.domain.clone(),
            fidelity: setup.fidelity.as_ref().map(|_| 1.0),
        })
    }
}

impl RandomSearch {
    /// The points of the trials in this context. The result is empty if the domain is too large to draw without
    /// replacement. An abandoned point counts as tried until the next result arrives.
    fn tried(&self, log: &Ledger, query: Query) -> Excluded {
        if !self.domain.is_finite() || self.domain.combinations() > MAX_MEMBERS {
            return Excluded::default();
        }
        let trials = log.trials().iter().enumerate();
        let tried = trials.filter(|(_, trial)| trial.state != State::Abandoned);
        let tried = tried
            .map(|(number, _)| number)
            .chain(log.recently_abandoned());
        let points = tried
            .filter(|&number| log.context(number) == query.context)
            .map(|number| {
                let index = log.trials()[number].index;
                (log.x(number), index.map(|i| i as usize))
            });
        Excluded::new(&self.domain, points)
    }

    /// A random feasible point. It is a draw, a point of the pool, or the point of an earlier trial.
    fn feasible_point(
        &mut self,
        log: &Ledger,
        query: Query,
        excluded: &Excluded,
        rng: &mut Rng,
        stop: &mut Stop,
    ) -> Result<Vec<f64>> {
        let (domain, feasible) = (&self.domain, query.feasible);
        let pool = match &mut self.pool {
            Some(pool) => pool,
            pool => {
                let mut own = self.pool_rng.clone();
                pool.insert(Pool::new(domain, feasible, &mut own, stop)?)
            }
        };
        let found = pool.sample_left(domain, feasible, excluded, rng, stop);
        if let Err(Error::NoFeasiblePoint { .. }) = found {
            for number in (0..log.trials().len()).rev() {
                check(stop)?;
                if feasible.holds(log.x(number))? {
                    return Ok(log.x(number).to_vec());
                }
            }
        }
        found
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
        log: &Ledger,
        query: Query,
        rng: &mut Rng,
        stop: &mut Stop,
    ) -> Result<Proposal> {
        let tried = self.tried(log, query);
        let point = if query.feasible.is_constrained() {
            let x = self.feasible_point(log, query, &tried, rng, stop)?;
            Member::new(x, None)
        } else {
            let (x, index) = tried.sample_left(&self.domain, rng);
            Member::new(x, index)
        };
        Ok(Proposal {
            fidelity: query.fidelity.or(self.fidelity),
            ..Proposal::at(point)
        })
    }
}
