//! The posterior, the acquisition and its terms, which are prepared for a suggestion.

use ndarray::Array2;

use crate::error::{Error, Result};
use crate::gp::GaussianProcess;
use crate::ledger::View;
use crate::random::Call;
use crate::strategy::Query;
use crate::strategy::bayes::BayesOpt;
use crate::strategy::bayes::acquisitions::incumbents::{largest_feasible, without};
use crate::strategy::bayes::acquisitions::rule::{Maximand, Rule, Situation};
use crate::strategy::bayes::choose::multiplier::{multiplier, recent_trials};
use crate::strategy::bayes::choose::search::{Scope, Search};
use crate::strategy::bayes::model::candidates::SolvedCandidates;
use crate::strategy::bayes::model::expense::ExpenseTerm;
use crate::strategy::bayes::model::success::Success;
use crate::strategy::bayes::model::training_set::{ConditionedPosterior, Posterior};
use crate::strategy::bayes::settings::pending::Penalizer;
use crate::strategy::bayes::terms::bounds::{BoundTerm, BoundedOutcome, InFlight};
use crate::strategy::bayes::terms::front::{Front, bounded_and_objectives};
use crate::strategy::bayes::terms::local_penalty::{LocalPenalty, log_above_minimum};
use crate::strategy::bayes::terms::success::SuccessTerm;
use crate::strategy::bayes::terms::{Term, Terms};

/// Without a fit, there is no model.
const NO_MODEL: Error = Error::NotPositiveDefinite {
    pivot: 0,
    jitter: 0.0,
};

/// The data from which the next point is chosen.
pub(super) struct Prepared<'a> {
    pub(super) posterior: ConditionedPosterior<'a>,
    pub(super) nu: f64,
    pub(super) maximand: Maximand<'a>,
    pub(super) terms: Terms<'a>,
    pub(super) scope: Scope<'a>,
    pub(super) candidates: &'a mut Option<SolvedCandidates>,
}

impl BayesOpt {
    /// Prepares the posterior, including the pending trials, and the acquisition for a suggestion.
    pub(super) fn prepare<'a>(
        &'a mut self,
        log: View<'a>,
        query: Query<'a>,
        call: &mut Call,
    ) -> Result<Prepared<'a>> {
        let (settings, columns) = (&self.settings, &self.columns);
        let training = &mut self.objective.training;
        let scope = Scope {
            domain: query.searched(&self.domain),
            full: &self.domain,
            settings,
            pool: self.pool.as_ref(),
        };
        let task = Task { scope, log, query };
        let recent = recent_trials(log, query, settings, training.window());
        let recent = training.encode(log, &recent);
        let penalizer = settings.pending().penalizer();
        let penalizer =
            penalizer.map(|it| (it, training.encode(log, &training.arriving(log, query))));
        let (kept, failures) = (&mut self.success, self.failures.as_ref());
        let mut success = Success::of(kept, failures, training, columns, log, call.stop)?;
        let kept = &mut self.expense;
        let expense = ExpenseTerm::update(kept, columns, training, log, query, call.stop)?;
        let in_flight = InFlight::of(training, log, query);
        let posterior = training.posterior(log, query, call.stop)?.ok_or(NO_MODEL)?;
        let nu = |gp: &GaussianProcess| match task.rule().bound() {
            None => 1.0,
            Some(bound) => multiplier(gp, self.d, log, &recent, bound, settings),
        };
        let lower_bound = task.lower_bound(&posterior, success.as_deref_mut(), &nu, call)?;
        let (others, stop) = (&mut self.others, &mut *call.stop);
        let (bounded, objectives) = bounded_and_objectives(others, log, query, stop)?;
        let front = match objectives.is_empty() {
            true => None,
            false => Some(Front::new(&posterior, objectives, &bounded, (log, query))?),
        };
        // An acquisition that is averaged over fantasies of pending trials contains the bounds and the objectives, if
        // there are any.
        let has_others = !bounded.is_empty() || front.is_some();
        let can_contain = task.rule().traits().averages_fantasies && has_others;
        let n_averaged = settings.pending().n_fantasies().filter(|_| can_contain);
        let in_flight = in_flight.filter(|_| n_averaged.is_some());
        let posterior = task.condition(posterior, &bounded, front.as_ref(), in_flight)?;
        let nu = nu(&posterior.gp);
        let situation = task.situation(&posterior, nu, lower_bound);
        let (maximand, bounds) = task.maximand(bounded, front, n_averaged, situation, call)?;
        let (maximand, penalty) = task.penalized(maximand, penalizer, &posterior, call)?;
        let success = success.map(|it| SuccessTerm::to(it, settings, &posterior.gp, nu));
        let mut terms: Terms = success.into_iter().map(boxed).collect();
        terms.extend(expense.map(boxed));
        terms.extend(penalty.map(boxed));
        terms.extend(bounds.into_iter().map(boxed));
        Ok(Prepared {
            posterior,
            nu,
            maximand,
            terms,
            scope,
            candidates: &mut self.candidates,
        })
    }
}

fn boxed<'a>(term: impl Term + 'a) -> Box<dyn Term + 'a> {
    Box::new(term)
}

/// A search for which the posterior and the acquisition are prepared.
#[derive(Clone, Copy)]
struct Task<'a> {
    scope: Scope<'a>,
    log: View<'a>,
    query: Query<'a>,
}

impl<'a> Task<'a> {
    fn rule(&self) -> &'a dyn Rule {
        self.scope.settings.acquisition.rule()
    }

    /// A lower bound on the maximum of f, computed from the observed rows, for an acquisition that explores while trials
    /// are in flight.
    fn lower_bound(
        &self,
        posterior: &Posterior,
        success: Option<&mut Success>,
        nu: &dyn Fn(&GaussianProcess) -> f64,
        call: &mut Call,
    ) -> Result<Option<f64>> {
        if !self.rule().traits().explores || posterior.tail.trials.is_empty() {
            return Ok(None);
        }
        let gp = &*posterior.gp;
        let mut search = Search::new(self.scope, posterior, self.log, self.query, call)?;
        search.nu = nu(gp);
        let penalty = success.map(|success| SuccessTerm::penalty(success, gp, search.nu));
        search.largest_lower_bound(gp, penalty).map(Some)
    }

    /// Conditions the posterior on the tail of the acquisition. If the acquisition contains the bounds, `in_flight` are
    /// the trials of which any outcome is missing. Otherwise trials outside the bounds are not incumbents, unless no
    /// incumbent would be left.
    fn condition<'b>(
        &self,
        posterior: Posterior<'b>,
        bounded: &[BoundedOutcome],
        front: Option<&Front>,
        in_flight: Option<InFlight>,
    ) -> Result<ConditionedPosterior<'b>> {
        let (log, query) = (self.log, self.query);
        if let Some(in_flight) = in_flight {
            let tail = match front {
                Some(front) => front.tail(&posterior, bounded, &in_flight, log),
                None => BoundedOutcome::tail(bounded, &posterior, &in_flight, (log, query))?,
            };
            return posterior.condition(&tail);
        }
        let n_fantasies = self.scope.settings.pending().n_fantasies();
        let tail = self
            .rule()
            .tail(&posterior.gp, &posterior.unranked, n_fantasies, query)?;
        let mut posterior = posterior.condition(&tail)?;
        if !bounded.is_empty() {
            let is_outside = |row: &usize| !log.log.is_within_bounds(posterior.rows[*row]);
            let outside: Vec<usize> = (0..posterior.rows.len()).filter(is_outside).collect();
            let mut unranked = [outside, posterior.unranked.clone()].concat();
            unranked.sort_unstable();
            unranked.dedup();
            if unranked.len() < posterior.rows.len() {
                posterior.unranked = unranked;
            }
        }
        Ok(posterior)
    }

    fn situation<'b>(
        &self,
        posterior: &'b ConditionedPosterior<'b>,
        nu: f64,
        lower_bound: Option<f64>,
    ) -> Situation<'b>
    where
        'a: 'b,
    {
        Situation {
            gp: &posterior.gp,
            targets: &posterior.targets.values,
            unranked: &posterior.unranked,
            pending: &posterior.tail.targets,
            n_fantasies: self.scope.settings.pending().n_fantasies(),
            nu,
            lower_bound,
            query: self.query,
        }
    }

    /// The function to maximise, and the terms of the bounds that it does not contain.
    fn maximand<'b>(
        &self,
        bounded: Vec<BoundedOutcome<'b>>,
        front: Option<Front<'b>>,
        n_averaged: Option<usize>,
        situation: Situation,
        call: &mut Call,
    ) -> Result<(Maximand<'b>, Vec<BoundTerm<'b>>)> {
        let (log, settings) = (self.log, self.scope.settings);
        let (gp, nu) = (situation.gp, situation.nu);
        if let Some(n) = n_averaged {
            let maximand = match front {
                Some(front) => front.maximand(bounded, situation, n, log, call.rng)?,
                None => BoundedOutcome::maximand(bounded, situation, n, log, call.rng)?,
            };
            return Ok((maximand, Vec::new()));
        }
        let maximand = self.rule().maximand(situation, call.rng)?;
        Ok((maximand, BoundedOutcome::terms(bounded, settings, gp, nu)))
    }

    /// The penalties near the rows of arriving trials, and the logarithm of the acquisition, to which they are added.
    fn penalized(
        &self,
        maximand: Maximand<'a>,
        penalizer: Option<(Penalizer, Array2<f64>)>,
        posterior: &ConditionedPosterior,
        call: &mut Call,
    ) -> Result<(Maximand<'a>, Option<LocalPenalty>)> {
        let Some((penalizer, arriving)) = penalizer else {
            return Ok((maximand, None));
        };
        let (gp, domain) = (&*posterior.gp, self.scope.full);
        let observed = without(posterior.targets.values.clone(), &posterior.unranked);
        let best = largest_feasible(gp, &observed, self.query)?;
        let penalty = LocalPenalty::new(penalizer, gp, arriving.view(), best, domain, call)?;
        let maximand = match maximand {
            Maximand::Formula(bound) if !self.rule().traits().is_logarithm => {
                Maximand::Formula(log_above_minimum(bound, gp, domain, call)?)
            }
            logarithm => logarithm,
        };
        Ok((maximand, Some(penalty)))
    }
}
