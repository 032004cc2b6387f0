//! The posterior, the acquisition and its terms, which are prepared for a suggestion.

use ndarray::Array2;

use crate::error::{Error, Result};
use crate::gp::GaussianProcess;
use crate::ledger::View;
use crate::problem::Domain;
use crate::random::Call;
use crate::strategy::Query;
use crate::strategy::bayes::BayesOpt;
use crate::strategy::bayes::acquisitions::incumbents::{largest_feasible, without};
use crate::strategy::bayes::acquisitions::rule::{Maximand, Rule, Situation};
use crate::strategy::bayes::choose::multiplier::{multiplier, recent_trials};
use crate::strategy::bayes::choose::search::{Scope, Search};
use crate::strategy::bayes::model::candidates::SolvedCandidates;
use crate::strategy::bayes::model::expense::ExpenseTerm;
use crate::strategy::bayes::model::outcome_model::bounded_sets;
use crate::strategy::bayes::model::success::Success;
use crate::strategy::bayes::model::training_set::ConditionedPosterior;
use crate::strategy::bayes::settings::pending::Penalizer;
use crate::strategy::bayes::terms::bounds::{BoundedOutcome, InFlight};
use crate::strategy::bayes::terms::local_penalty::{LocalPenalty, log_above_minimum};
use crate::strategy::bayes::terms::success::SuccessTerm;
use crate::strategy::bayes::terms::{Term, Terms};

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
        let (settings, columns, domain) = (&self.settings, &self.columns, &*self.domain);
        let (rule, pending) = (settings.acquisition.rule(), settings.pending());
        let training = &mut self.objective.training;
        let recent = recent_trials(log, query, settings, training.window());
        let recent = training.encode(log, &recent);
        let arriving = |penalizer| {
            (
                penalizer,
                training.encode(log, &training.arriving(log, query)),
            )
        };
        let penalizer = pending.penalizer().map(arriving);
        let (kept, failures) = (&mut self.success, self.failures.as_ref());
        let mut success = Success::of(kept, failures, training, columns, log, call.stop)?;
        let kept = &mut self.expense;
        let expense = ExpenseTerm::update(kept, columns, training, log, query, call.stop)?;
        let in_flight = InFlight::of(training, log, query);
        let posterior = training.posterior(log, query, call.stop)?;
        let posterior = posterior.ok_or(Error::NotPositiveDefinite {
            pivot: 0,
            jitter: 0.0,
        })?;
        let nu = |gp: &GaussianProcess| match rule.bound() {
            None => 1.0,
            Some(bound) => multiplier(gp, self.d, log, &recent, bound, settings),
        };
        let scope = Scope {
            domain: query.searched(domain),
            full: domain,
            settings,
            pool: self.pool.as_ref(),
        };
        let mut lower_bound = None;
        if rule.traits().explores && !posterior.tail.trials.is_empty() {
            // The lower bound is computed only from the observed rows.
            let gp = &*posterior.gp;
            let mut search = Search::new(scope, &posterior, log, query, call)?;
            search.nu = nu(gp);
            let penalty = success.as_deref_mut();
            let penalty = penalty.map(|success| SuccessTerm::penalty(success, gp, search.nu));
            lower_bound = Some(search.largest_lower_bound(gp, penalty)?);
        }
        let bounded = bounded_sets(&mut self.bounded);
        let bounded = BoundedOutcome::all(bounded, log, query, call.stop)?;
        let n_outcomes = pending.n_outcomes();
        // If the acquisition is averaged over outcomes of pending trials, it contains the bounds.
        let contains_bounds = rule.traits().averages_outcomes && !bounded.is_empty();
        let n_averaged = n_outcomes.filter(|_| contains_bounds);
        let tail = match (n_averaged, in_flight) {
            (Some(_), Some(in_flight)) => {
                BoundedOutcome::tail(&bounded, &posterior, &in_flight, (log, query))?
            }
            _ => rule.tail(&posterior.gp, &posterior.unranked, n_outcomes, query)?,
        };
        let mut posterior = posterior.condition(&tail)?;
        if n_averaged.is_none() && !bounded.is_empty() {
            leave_out_outside(&mut posterior, log);
        }
        let nu = nu(&posterior.gp);
        let situation = Situation {
            gp: &posterior.gp,
            targets: &posterior.targets.values,
            unranked: &posterior.unranked,
            pending: &posterior.tail.targets,
            n_outcomes,
            nu,
            lower_bound,
            query,
        };
        let (mut maximand, bounds) = match n_averaged {
            Some(n) => {
                let maximand = BoundedOutcome::maximand(bounded, situation, n, log, call.rng)?;
                (maximand, Vec::new())
            }
            None => {
                let maximand = rule.maximand(situation, call.rng)?;
                let bounds = BoundedOutcome::terms(bounded, settings, &posterior.gp, nu);
                (maximand, bounds)
            }
        };
        let mut terms: Terms = Vec::new();
        if let Some(success) = success {
            let term = SuccessTerm::to(success, settings, &posterior.gp, nu);
            terms.push(Box::new(term));
        }
        terms.extend(expense.map(|term| Box::new(term) as Box<dyn Term>));
        if let Some(penalizer) = penalizer {
            let (penalty, penalized) =
                penalized(maximand, rule, penalizer, &posterior, (domain, query), call)?;
            maximand = penalized;
            terms.push(Box::new(penalty));
        }
        terms.extend(
            bounds
                .into_iter()
                .map(|term| Box::new(term) as Box<dyn Term>),
        );
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

/// Adds the rows of the trials outside the bounds to the rows that are not incumbents, unless no incumbent would be left.
fn leave_out_outside(posterior: &mut ConditionedPosterior, log: View) {
    let is_outside = |row: &usize| !log.log.is_within_bounds(posterior.rows[*row]);
    let outside: Vec<usize> = (0..posterior.rows.len()).filter(is_outside).collect();
    let mut unranked = [outside, posterior.unranked.clone()].concat();
    unranked.sort_unstable();
    unranked.dedup();
    if unranked.len() < posterior.rows.len() {
        posterior.unranked = unranked;
    }
}

/// The penalties near the rows of arriving trials, and the logarithm of the acquisition, to which they are added.
fn penalized<'a>(
    maximand: Maximand<'a>,
    rule: &dyn Rule,
    (penalizer, arriving): (Penalizer, Array2<f64>),
    posterior: &ConditionedPosterior,
    (domain, query): (&Domain, Query),
    call: &mut Call,
) -> Result<(LocalPenalty, Maximand<'a>)> {
    let gp = &*posterior.gp;
    let observed = without(posterior.targets.values.clone(), &posterior.unranked);
    let best = largest_feasible(gp, &observed, query)?;
    let penalty = LocalPenalty::new(penalizer, gp, arriving.view(), best, domain, call)?;
    let maximand = match maximand {
        Maximand::Formula(bound) if !rule.traits().is_logarithm => {
            Maximand::Formula(log_above_minimum(bound, gp, domain, call)?)
        }
        logarithm => logarithm,
    };
    Ok((penalty, maximand))
}
