//! What proposes the next trial: the trait that every strategy implements, and what it takes and gives.
//!
//! * [`registry`]: from settings in JSON to a strategy of the list below, by its name
//! * [`random_search`]: uniformly random points
//! * [`bayes`]: Bayesian optimisation with a Gaussian process
//! * [`elimination`]: rounds of pure exploration, each over what the bounds of the one before left
//! * [`tree`]: optimistic search of a tree of cells
//!
//! A strategy is a fold and a proposal: it folds the log into whatever it keeps, and proposes a point from that.

pub mod bayes;
pub mod elimination;
pub mod random_search;
pub mod registry;
pub mod tree;

use std::sync::Arc;

use serde_json::Value;

use crate::domain::fidelity::TOLERANCE;
use crate::domain::{Coordinate, Domain, Fidelity};
use crate::error::{Error, Result, Stop, check};
use crate::ledger::{Clock, Ledger, Point, TrialNumber};
use crate::maximize::feasible::Feasible;
use crate::random::Rng;
use crate::strategy::registry::Entry;

/// Every strategy by the name of its Python class.
const STRATEGIES: &[Entry] = &[
    Entry::of::<random_search::RandomSearch>("RandomSearch"),
    Entry::of::<bayes::BayesOpt>("BayesOpt"),
    Entry::of::<elimination::BPEDelay>("BPEDelay"),
    Entry::of::<tree::TreeSearch>("TreeSearch"),
];

/// What a strategy is made for.
#[derive(Debug, Clone)]
pub struct Setup {
    pub domain: Arc<Domain>,
    /// Coordinates of the context, empty where none is declared.
    pub context: Vec<Coordinate>,
    /// What is known of cheaper evaluations, where trials may be such.
    pub fidelity: Option<Fidelity>,
    pub clock: Clock,
}

impl Setup {
    /// Encoded columns of a context.
    pub fn context_width(&self) -> usize {
        self.context.iter().map(Coordinate::width).sum()
    }
}

/// Where the next trial should be, and what the log should keep of how it was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    pub point: Point,
    /// In [0, 1], 1 a full evaluation; None where no fidelity is declared.
    pub fidelity: Option<f64>,
    /// What the strategy reads when it folds the event: nothing else that it learnt survives.
    pub note: Option<String>,
    /// Something that did not stop the proposal but that the user should know.
    pub warning: Option<String>,
}

impl Proposal {
    /// A point alone.
    pub fn at(point: Point) -> Self {
        Self {
            point,
            fidelity: None,
            note: None,
            warning: None,
        }
    }
}

/// The point to use when the search is over.
#[derive(Debug, Clone, PartialEq)]
pub struct Recommendation {
    pub point: Point,
    pub mean: f64,
    pub std: f64,
}

/// When and where a proposal is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// Time on the ledger's clock.
    pub now: f64,
    /// Seconds of the wall clock, where leases are given out.
    pub wall_time: Option<f64>,
    /// Encoded context, empty where none is declared.
    pub context: &'a [f64],
    /// The fidelity asked for, in [0, 1]; None leaves it to the strategy.
    pub fidelity: Option<f64>,
    /// The constraints that its point has to satisfy.
    pub feasible: Feasible<'a>,
}

/// What a strategy can do; asking for anything else is refused when the optimizer is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Supports {
    pub contexts: bool,
    pub candidates: bool,
    /// `clock="seconds"`.
    pub seconds: bool,
    /// Parameters that are active under conditions alone.
    pub conditions: bool,
    /// Trials at less than full fidelity.
    pub fidelity: bool,
}

impl Supports {
    pub const EVERYTHING: Supports = Supports {
        contexts: true,
        candidates: true,
        seconds: true,
        conditions: true,
        fidelity: true,
    };

    /// Refuses a setup that the strategy of this name cannot serve.
    pub fn check(self, strategy: &'static str, setup: &Setup) -> Result<()> {
        let candidates = matches!(*setup.domain, Domain::Candidates(_));
        let conditions = match setup.domain.as_ref() {
            Domain::Candidates(_) => false,
            Domain::Box(product) => product.is_conditional(),
        };
        for (supported, asked, what) in [
            (self.contexts, !setup.context.is_empty(), "a context"),
            (self.candidates, candidates, "candidates"),
            (
                self.seconds,
                setup.clock == Clock::Seconds,
                "clock=\"seconds\"",
            ),
            (
                self.conditions,
                conditions,
                "conditional parameters (when=)",
            ),
            (self.fidelity, setup.fidelity.is_some(), "a fidelity"),
        ] {
            if asked && !supported {
                return Err(Error::Unsupported { strategy, what });
            }
        }
        Ok(())
    }
}

/// A rule that chooses the next point from the log alone.
///
/// Two strategies with the same settings, log and random stream propose the same point, bit for bit. Whatever is
/// kept between calls follows from the log, or is a cache that changes no result.
pub trait Strategy: Send {
    /// What it can do.
    fn supports(&self) -> Supports;

    /// Folds the events since the last time.
    fn catch_up(&mut self, log: &Ledger) -> Result<()>;

    /// Drops what was folded beyond the end of a log that was truncated: as if it had never been there.
    fn rewind(&mut self, log: &Ledger);

    /// The next point, for a log that it has caught up with. Nothing that follows from the log changes.
    fn propose(
        &mut self,
        log: &Ledger,
        query: Query,
        rng: &mut Rng,
        stop: &mut Stop,
    ) -> Result<Proposal>;

    /// Refuses a note that this strategy cannot have written for the trial that comes next in the log.
    fn check_note(&mut self, _log: &Ledger, note: &str) -> Result<()> {
        Err(Error::Corrupt(format!(
            "the note {note:?} is not one of this strategy, which writes none"
        )))
    }

    /// The best point as the strategy sees it, for a log that it has caught up with; the default knows nothing
    /// beyond the values.
    fn recommend(
        &mut self,
        log: &Ledger,
        query: Query,
        _rng: &mut Rng,
        stop: &mut Stop,
    ) -> Result<Option<Recommendation>> {
        best_by_value(log, query.feasible, stop)
    }

    /// What can be looked at of a strategy that works in rounds, as JSON, for a log that it has caught up with.
    fn status(&mut self, _log: &Ledger, _stop: &mut Stop) -> Result<Option<Value>> {
        Ok(None)
    }

    /// Access to the posterior of strategies that have one.
    fn model_based(&mut self) -> Option<&mut dyn bayes::ModelBased> {
        None
    }
}

/// The point of the largest value at the highest fidelity observed, among those that satisfy the constraints.
pub(crate) fn best_by_value(
    log: &Ledger,
    feasible: Feasible,
    stop: &mut Stop,
) -> Result<Option<Recommendation>> {
    let best = match feasible.is_constrained() {
        false => log.best(),
        true => best_feasible(log, feasible, stop)?,
    };
    Ok(best.map(|number| Recommendation {
        point: log.point(number),
        mean: log.trials()[number].value.unwrap_or(f64::NAN),
        std: f64::NAN,
    }))
}

/// The trial of the largest value whose point satisfies the constraints; of the highest fidelity that has such a point.
fn best_feasible(log: &Ledger, feasible: Feasible, stop: &mut Stop) -> Result<Option<TrialNumber>> {
    let values = log.trials().iter().enumerate();
    let values = values.filter_map(|(number, trial)| Some((trial.value?, number)));
    let mut left: Vec<(f64, TrialNumber)> = values.collect();
    left.sort_by(|a, b| b.0.total_cmp(&a.0));
    let z = |&(_, number): &(f64, TrialNumber)| log.trials()[number].z();
    while let Some(highest) = left.iter().map(z).max_by(f64::total_cmp) {
        let (order, lower) = left.iter().partition(|each| z(each) >= highest - TOLERANCE);
        left = lower;
        let order: Vec<(f64, TrialNumber)> = order;
        for (_, number) in order {
            check(stop)?;
            if feasible.holds(log.x(number))? {
                return Ok(Some(number));
            }
        }
    }
    Ok(None)
}

/// A uniformly random point of a domain.
pub(crate) fn uniform_point(domain: &Domain, rng: &mut Rng) -> Point {
    let (x, index) = domain.sample_uniform(rng);
    Point::new(x, index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_strategy_does_not_support_is_refused_by_its_name_and_the_rest_is_not() {
        let plain = Setup {
            domain: Domain::new_box(vec![Coordinate::Continuous])
                .unwrap()
                .into(),
            context: vec![],
            fidelity: None,
            clock: Clock::Iterations,
        };
        let with_context = Setup {
            context: vec![Coordinate::Continuous],
            ..plain.clone()
        };
        let with_seconds = Setup {
            clock: Clock::Seconds,
            ..plain.clone()
        };
        let with_fidelity = Setup {
            fidelity: Some(Fidelity::default()),
            ..plain.clone()
        };
        let without_fidelity = Supports {
            fidelity: false,
            ..Supports::EVERYTHING
        };
        let without_contexts = Supports {
            contexts: false,
            ..Supports::EVERYTHING
        };
        let without_seconds = Supports {
            seconds: false,
            ..Supports::EVERYTHING
        };
        for (supports, setup, refused) in [
            (Supports::EVERYTHING, &plain, None),
            (Supports::EVERYTHING, &with_context, None),
            (Supports::EVERYTHING, &with_seconds, None),
            (Supports::EVERYTHING, &with_fidelity, None),
            (without_fidelity, &plain, None),
            (without_fidelity, &with_fidelity, Some("a fidelity")),
            (without_contexts, &plain, None),
            (without_contexts, &with_context, Some("a context")),
            (without_contexts, &with_seconds, None),
            (without_seconds, &plain, None),
            (without_seconds, &with_context, None),
            (without_seconds, &with_seconds, Some("clock=\"seconds\"")),
        ] {
            let expected = refused.map_or(Ok(()), |what| {
                Err(Error::Unsupported {
                    strategy: "Some",
                    what,
                })
            });
            assert_eq!(supports.check("Some", setup), expected);
        }
    }
}
