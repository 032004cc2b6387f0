//! The points that are suggested before the model chooses.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::error::{Error, Result};
use crate::gp::GaussianProcess;
use crate::ledger::{State, TrialNumber, View};
use crate::maximize::constrained::Allowed;
use crate::problem::Member;
use crate::random::Call;
use crate::strategy::Query;
use crate::strategy::bayes::BayesOpt;
use crate::strategy::bayes::choose::design::{Design, initial_design, most_uncertain, standing};
use crate::strategy::bayes::choose::unlike_contexts::unlike_contexts;
use crate::strategy::bayes::model::outcome_model::OutcomeModel;
use crate::strategy::bayes::settings::DesignMethod;

impl BayesOpt {
    /// A point of the initial design, or `None` if the model should choose the point. Before the model has data, the
    /// result is always a point.
    pub(super) fn initial_point(
        &self,
        log: View,
        query: Query,
        call: &mut Call,
    ) -> Result<Option<Member>> {
        let number = log.n_trials();
        let is_front = |model: &&OutcomeModel| model.bounds.is_none();
        let mut further = self.others.iter().filter(is_front);
        let knows_all = further.all(|model| model.view(log.log).n_observed() > 0);
        let informed =
            (log.n_observed() > 0 && knows_all) || self.settings.pending().floor().is_some();
        let design = self.design(log, query);
        let domain = query.searched(&self.domain);
        if informed && log.n_chosen() >= design.n {
            return Ok(None);
        }
        let excluded = self.repeats(query).excluded(log, query, true);
        if informed && self.repeats(query).covers_domain(&excluded) {
            return Ok(None);
        }
        let place = match design.next_place(log, query, &excluded)? {
            Some(place) => place,
            None if informed => return Ok(None),
            // Take a point after the first n.
            None => number.max(design.n),
        };
        if design.how == DesignMethod::Uncertainty {
            let allowed = Allowed {
                excluded: &excluded,
                feasible: query.feasible_members(),
                pool: self.pool.as_ref(),
            };
            let before = self.objective.training.encode(log, &standing(log));
            match most_uncertain(self.prior()?, before.view(), (domain, query), allowed, call) {
                // Suggesting never fails for numerical reasons. If the model fails, the point is random.
                Err(Error::NotPositiveDefinite { .. }) => {}
                found => return found.map(Some),
            }
        }
        let in_order = design.takes_points_in_order();
        let is_left = |p: &Member| !excluded.contains(domain, &p.x);
        let Some(pool) = &self.pool else {
            let designed = design.points.get(place).filter(|_| in_order).cloned();
            let designed = designed.filter(is_left);
            return Ok(Some(designed.unwrap_or_else(|| {
                let (x, index) = excluded.sample_left(domain, call.rng);
                Member::new(x, index)
            })));
        };
        let points = pool.points();
        let designed = points.rows().into_iter().nth(place);
        let designed = designed.filter(|_| in_order);
        let designed = designed.map(|row| Member::new(row.to_vec(), None));
        match designed.filter(is_left) {
            Some(point) => Ok(Some(point)),
            // The pool is empty, so let the model choose: the model may contain an observed feasible point that is not
            // in the pool.
            None if informed && points.is_empty() => Ok(None),
            None => {
                let feasible = query.feasible_members();
                let x = pool.sample_left(domain, feasible, &excluded, call)?;
                Ok(Some(Member::new(x, None)))
            }
        }
    }

    /// The initial design. Each suggested point whose trial failed before the first success is replaced, because the
    /// trial may have failed for a reason that does not depend on its point, and the model would start without data.
    fn design<'a>(&'a self, log: View, query: Query<'a>) -> Design<'a> {
        let failed = |number: &TrialNumber| log.of(*number).state() == State::Failed;
        let ended = self.objective.training.fold.ended.iter().copied();
        let failed: HashSet<TrialNumber> = ended.take_while(failed).collect();
        let is_chosen = |number: &&TrialNumber| log.of(**number).is_chosen();
        let n_failed = failed.iter().filter(is_chosen).count();
        let how = self.settings.initial.how;
        let domain = query.searched(&self.domain);
        let training = &self.objective.training;
        let context_fit = training.fit().filter(|_| !query.context.is_empty());
        Design {
            domain,
            columns: &self.columns,
            how,
            n: match self.n_initial {
                0 => 0,
                n => n + n_failed,
            },
            points: match query.within {
                None => Cow::Borrowed(&self.design),
                Some(_) => {
                    // The points have the random numbers of the unrestricted design.
                    let mut rng = self.pool_rng.clone();
                    Cow::Owned(initial_design(domain, self.n_initial, how, &mut rng))
                }
            },
            failed,
            pool: self.pool.as_ref(),
            kernel: context_fit.map(|fit| {
                let kernel = fit.theta.kernel(fit.family);
                kernel.with_categories(&self.columns.categories)
            }),
            unlike: match log.n_chosen() < self.n_initial {
                true => unlike_contexts(training, &self.columns, log, query.context),
                false => Vec::new(),
            },
        }
    }

    /// The model before any result is observed. θ is given, or is the mode of the priors.
    fn prior(&self) -> Result<GaussianProcess> {
        let gp = &self.settings.surrogate;
        let family = gp.fit_settings(&self.columns).family;
        let prior = GaussianProcess::new(family, &gp.first_theta(&self.columns))?;
        Ok(prior.with_categories(&self.columns.categories))
    }
}
