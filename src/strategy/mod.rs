//! The trait [`Strategy`], whose implementations propose the next trial. This module also contains the arguments and
//! results of the methods of the trait.
//!
//! * [`registry`]: all strategies by name; [`from_settings`]: the trait for making a strategy from settings in JSON
//! * [`checks`]: checks of settings; [`theory`]: the constants of the theorems
//! * [`random_search`]: uniformly random points
//! * [`bayes`]: Bayesian optimisation with a Gaussian process
//! * [`elimination`]: rounds of pure exploration with elimination
//! * [`tree`]: optimistic search of a tree of cells
//!
//! [`query`] contains the arguments of a proposal. [`model_based`] contains the trait of strategies that have a
//! posterior. The targets of the posterior have [`units`] and a [`warp`].
//!
//! A strategy reads the log event by event and updates a state, which is called *folding* the log. The strategy
//! computes a proposal from the state.

pub mod bayes;
pub mod checks;
pub mod elimination;
pub mod from_settings;
pub mod model_based;
pub mod query;
pub mod random_search;
pub mod registry;
pub mod theory;
pub mod tree;
pub mod units;

pub use query::{Limit, Query, Resource};

use std::collections::HashSet;
use std::sync::Arc;

use ndarray::ArrayView1;
use serde_json::Value;

use crate::error::{Error, Result, Stop, check};
use crate::ledger::{TrialNumber, View};
use crate::maximize::excluded::key_of_row;
use crate::numerics::order::best_first;
use crate::problem::fidelity::TOLERANCE;
use crate::problem::{
    Clock, Coordinate, Direction, Domain, Fidelity, Member, Outcome, Problem, Product,
};
use crate::random::{Call, Rng};
use crate::strategy::model_based::ModelBased;

/// The problem for which a strategy is made.
#[derive(Debug, Clone)]
pub struct Setup {
    pub domain: Arc<Domain>,
    /// The coordinates of the context. The list is empty if a context is not declared.
    pub context: Vec<Coordinate>,
    /// The descriptors of choices: the first column of each parameter whose choices have descriptors, and the vectors
    /// of its choices. The columns of a context follow the columns of a point.
    pub descriptors: Vec<(usize, Vec<Vec<f64>>)>,
    /// The declared fidelity, if any.
    pub fidelity: Option<Fidelity>,
    pub clock: Clock,
    /// The direction of the optimisation. Strategies always maximise. A strategy uses the direction to convert settings
    /// that are in units of f.
    pub direction: Direction,
    /// The declared outcomes.
    pub outcomes: Vec<Outcome>,
}

impl Setup {
    /// The setup of a problem.
    pub fn of(problem: &Problem) -> Self {
        Self {
            domain: problem.domain().clone(),
            context: problem.context_coordinates().to_vec(),
            descriptors: problem.descriptors(),
            fidelity: problem.fidelity.clone(),
            clock: problem.clock,
            direction: problem.direction,
            outcomes: problem.outcomes.clone(),
        }
    }
}

/// The proposed next trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// A member of the searched domain.
    pub point: Member,
    /// The fidelity in [0, 1], where 1 is a full evaluation. The value is `None` if a fidelity is not declared.
    pub fidelity: Option<f64>,
    /// The note that the log stores with the suggestion. The strategy reads the note when it folds the suggestion.
    /// Other results of the computation are not stored in the log.
    pub note: Option<String>,
    /// A warning for the user.
    pub warning: Option<String>,
}

impl Proposal {
    /// Creates a proposal that consists of a point only.
    pub fn at(point: Member) -> Self {
        Self {
            point,
            fidelity: None,
            note: None,
            warning: None,
        }
    }
}

/// The point that is recommended for use after the search.
#[derive(Debug, Clone, PartialEq)]
pub struct Recommendation {
    pub point: Member,
    pub mean: f64,
    pub std: f64,
}

/// The features that a strategy supports. Other features are refused when the optimizer is constructed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Supports {
    pub contexts: bool,
    pub candidates: bool,
    /// Whether conditional parameters are supported.
    pub conditions: bool,
    /// Whether linear constraints are supported.
    pub linear: bool,
    /// Whether trials below full fidelity are supported.
    pub fidelity: bool,
    /// Whether the members that may be proposed can be restricted for one proposal.
    pub restrictions: bool,
    /// Whether a trial may have several outcomes.
    pub outcomes: bool,
}

impl Supports {
    pub const EVERYTHING: Supports = Supports {
        contexts: true,
        candidates: true,
        conditions: true,
        linear: true,
        fidelity: true,
        restrictions: true,
        outcomes: true,
    };

    /// Returns an error if the setup has a feature that the strategy of this name does not support.
    pub fn check(self, strategy: &'static str, setup: &Setup) -> Result<()> {
        let candidates = matches!(*setup.domain, Domain::Candidates(_));
        let product = setup.domain.product();
        let conditions = product.is_some_and(Product::is_conditional);
        let linear = product.is_some_and(|product| product.linear().is_some());
        for (supported, asked, what) in [
            (self.contexts, !setup.context.is_empty(), "a context"),
            (self.candidates, candidates, "candidates"),
            (
                self.conditions,
                conditions,
                "conditional parameters (when=)",
            ),
            (self.linear, linear, "linear constraints"),
            (self.fidelity, setup.fidelity.is_some(), "a fidelity"),
            (self.outcomes, !setup.outcomes.is_empty(), "outcomes"),
        ] {
            if asked && !supported {
                return Err(Error::Unsupported { strategy, what });
            }
        }
        Ok(())
    }
}

/// A strategy chooses the next point. The choice depends only on the log, the settings and the random stream.
///
/// Two strategies with the same settings, log and random stream propose exactly the same point. Between calls, a
/// strategy stores only state that is computed from the log, and caches that do not change results.
pub trait Strategy: Send {
    /// The supported features.
    fn supports(&self) -> Supports;

    /// Updates the state with the new events of the log.
    fn catch_up(&mut self, log: View) -> Result<()>;

    /// Restores the state that belongs to a truncated log, as if the removed events had never been folded.
    fn rewind(&mut self, log: View);

    /// Proposes the next point. `catch_up` must have been called with this log. This method may update caches, but does
    /// not change other state.
    fn propose(&mut self, log: View, query: Query, call: &mut Call) -> Result<Proposal>;

    /// Returns an error if the strategy cannot go on with the trials of this log, whose problem was revised.
    fn check_revised(&self, _log: View) -> Result<()> {
        Ok(())
    }

    /// Returns an error if this strategy cannot have written this note. The log ends before the suggestion to which the
    /// note belongs.
    fn check_note(&mut self, _log: View, note: &str) -> Result<()> {
        Err(Error::Corrupt(format!(
            "the note {note:?} is not valid: this strategy writes no notes"
        )))
    }

    /// The recommended points: up to `n` distinct points, best first. `catch_up` must have been called with this log.
    /// The default implementation returns the points with the best values.
    fn recommend(
        &mut self,
        log: View,
        query: Query,
        n: usize,
        call: &mut Call,
    ) -> Result<Vec<Recommendation>> {
        match log.log.problem().front() {
            Some(_) => best_of_front(log, query, n, call.stop),
            None => best_by_value(log, query, n, call.stop),
        }
    }

    /// The status of a strategy that works in rounds, as JSON. `catch_up` must have been called with this log.
    fn status(&mut self, _log: View, _now: f64, _stop: &mut Stop) -> Result<Option<Value>> {
        Ok(None)
    }

    /// Access to the posterior, or `None` if the strategy does not have a model.
    fn model_based(&mut self) -> Option<&mut dyn ModelBased> {
        None
    }
}

/// Up to `n` distinct feasible points with the largest values, best first. Only trials within all bounds, and trials in
/// the context of the query, are considered, if there are such trials with a value. Only one fidelity is considered: the
/// highest fidelity at which a trial is feasible.
pub(crate) fn best_by_value(
    log: View,
    query: Query,
    n: usize,
    stop: &mut Stop,
) -> Result<Vec<Recommendation>> {
    let values = log.trials().enumerate();
    let values = values.filter(|(_, trial)| !trial.is_outside());
    let values = values.filter(|(number, _)| query.allows(&log.member(*number)));
    let values = values.filter_map(|(number, trial)| Some((trial.value()? + 0.0, number)));
    let mut left: Vec<(f64, TrialNumber)> = values.collect();
    let is_here = |&(_, number): &(f64, TrialNumber)| log.context(number) == query.context;
    if left.iter().any(is_here) {
        left.retain(is_here);
    }
    // If no trial lies within all bounds, the trials with the smallest violations come first.
    let violations = log.log.violations();
    let holds = |&(_, number): &(f64, TrialNumber)| violations[number] == 0.0;
    if left.iter().any(holds) {
        left.retain(holds);
    }
    left.sort_by(|a, b| {
        let by_violation = violations[a.1].total_cmp(&violations[b.1]);
        by_violation.then_with(|| b.0.total_cmp(&a.0))
    });
    let z = |&(_, number): &(f64, TrialNumber)| log.of(number).z();
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    while found.is_empty()
        && let Some(highest) = left.iter().map(z).max_by(f64::total_cmp)
    {
        let (order, lower) = left.iter().partition(|each| z(each) >= highest - TOLERANCE);
        left = lower;
        let order: Vec<(f64, TrialNumber)> = order;
        for (value, number) in order {
            check(stop)?;
            let point = log.member(number);
            if found.len() < n
                && seen.insert(key_of_row(ArrayView1::from(&point.x)))
                && query.feasible.holds(&point.x)?
            {
                found.push(Recommendation {
                    point,
                    mean: value,
                    std: f64::NAN,
                });
            }
        }
    }
    Ok(found)
}

/// Up to `n` distinct feasible points of the front of the observed values. Each increases the hypervolume of the points
/// before it by as much as possible. Before a trial has values of all objectives and lies within all bounds, the points
/// are chosen by their violations and the first objective.
fn best_of_front(
    log: View,
    query: Query,
    n: usize,
    stop: &mut Stop,
) -> Result<Vec<Recommendation>> {
    let mut excluded = Vec::new();
    let mut left = loop {
        check(stop)?;
        let numbers = log.log.pareto(&excluded);
        let mut violating = Vec::new();
        for &number in &numbers {
            let point = log.member(number);
            let is_here = log.context(number) == query.context && query.allows(&point);
            if !(is_here && query.feasible.holds(&point.x)?) {
                violating.push(number);
            }
        }
        if violating.is_empty() {
            break numbers;
        }
        // Without these trials, other trials may be in the front.
        excluded.extend(violating);
    };
    if left.is_empty() {
        let mut found = best_by_value(log.log.objective(), query, n, stop)?;
        found.iter_mut().for_each(|each| each.mean = f64::NAN);
        return Ok(found);
    }
    let reference = log.log.reference(&left).into_iter().flatten();
    let reference: Vec<f64> = reference.collect();
    let (mut found, mut chosen) = (Vec::new(), Vec::new());
    while found.len() < n && !left.is_empty() {
        let with = |number: TrialNumber| [&chosen[..], &[number]].concat();
        let volumes: Vec<f64> = left
            .iter()
            .map(|&number| log.log.hypervolume(&with(number), &reference))
            .collect();
        let number = left.remove(best_first(&volumes)[0]);
        left.retain(|other| log.x(*other) != log.x(number));
        chosen.push(number);
        found.push(Recommendation {
            point: log.member(number),
            mean: f64::NAN,
            std: f64::NAN,
        });
    }
    Ok(found)
}

/// Draws a uniformly random point of a domain.
pub(crate) fn uniform_point(domain: &Domain, rng: &mut Rng) -> Member {
    let (x, index) = domain.sample_uniform(rng);
    Member::new(x, index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_features_are_refused_by_name_and_supported_features_are_accepted() {
        let plain = Setup {
            domain: Domain::new_box(vec![Coordinate::Continuous])
                .unwrap()
                .into(),
            context: vec![],
            descriptors: vec![],
            fidelity: None,
            clock: Clock::Iterations,
            direction: Direction::Maximize,
            outcomes: vec![],
        };
        let with_context = Setup {
            context: vec![Coordinate::Continuous],
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
        for (supports, setup, refused) in [
            (Supports::EVERYTHING, &plain, None),
            (Supports::EVERYTHING, &with_context, None),
            (Supports::EVERYTHING, &with_fidelity, None),
            (without_fidelity, &plain, None),
            (without_fidelity, &with_fidelity, Some("a fidelity")),
            (without_contexts, &plain, None),
            (without_contexts, &with_context, Some("a context")),
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
