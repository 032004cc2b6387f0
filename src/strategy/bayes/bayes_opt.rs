//! Bayesian optimisation with pending trials. To make a suggestion, the strategy reads the new events of the log,
//! refits the model if a fit is due, and maximises an acquisition.
//!
//! Notation follows Verma et al. 2022: nu_t is the multiplier of sigma.

use std::sync::Arc;

use serde_json::Value;

use crate::error::{Error, Result, Stop, check};
use crate::gp::{NOISELESS, as_row};
use crate::ledger::{TrialNumber, View, join_notes, split_notes};
use crate::maximize::excluded::Excluded;
use crate::maximize::feasible::Pool;
use crate::problem::{Domain, Member, Restriction};
use crate::random::{Call, Rng};
use crate::strategy::bayes::acquisitions::Acquisition;
use crate::strategy::bayes::acquisitions::rule::{Maximand, TailKind};
use crate::strategy::bayes::choose::branches::branches_below_minimum;
use crate::strategy::bayes::choose::design::initial_design;
use crate::strategy::bayes::choose::measured::Measured;
use crate::strategy::bayes::choose::recommendation::{
    MULTIPLIER, PROBABLE, best_measured, recommended,
};
use crate::strategy::bayes::choose::recommended_front::{FrontOfMeans, recommended_front};
use crate::strategy::bayes::choose::repeats::{Repeats, has_few_members};
use crate::strategy::bayes::choose::search::{MEAN, Scope, Search};
use crate::strategy::bayes::columns::Columns;
use crate::strategy::bayes::model::candidates::{SolvedCandidates, can_be_kept};
use crate::strategy::bayes::model::expense::missing::missing;
use crate::strategy::bayes::model::fit_purpose::FitPurpose;
use crate::strategy::bayes::model::kept_process::KeptProcess;
use crate::strategy::bayes::model::note::{ExpenseFit, Fit};
use crate::strategy::bayes::model::outcome_model::OutcomeModel;
use crate::strategy::bayes::model::success::Success;
use crate::strategy::bayes::model::targets::RowValue;
use crate::strategy::bayes::model::training_set::TrainingSet;
use crate::strategy::bayes::settings::pending::Pending;
use crate::strategy::bayes::settings::search;
use crate::strategy::bayes::settings::surrogate::GP;
use crate::strategy::bayes::settings::{Initial, Settings};
use crate::strategy::bayes::terms::bounds::{BoundedOutcome, expected_violations};
use crate::strategy::bayes::terms::front::{Front, bounded_and_objectives};
use crate::strategy::bayes::terms::success::SuccessTerm;
use crate::strategy::from_settings::{FromSettings, as_json};
use crate::strategy::model_based::ModelBased;
use crate::strategy::theory::Theory;
use crate::strategy::{Proposal, Query, Recommendation, Setup, Strategy, Supports, uniform_point};

const EXHAUSTED: &str = "every point has been observed without noise: a point with one of the best posterior means is \
                         suggested again; stop here, or add points to the space";

const EXHAUSTED_WITHIN: &str = "every point with these fixed values has been observed without noise: a point with one \
                                of the best posterior means is suggested again; fix other values";

/// The strategy, with the settings and the state that is kept between suggestions.
pub struct BayesOpt {
    pub(super) domain: Arc<Domain>,
    pub(super) settings: Settings,
    /// The columns of a point and its context.
    pub(super) columns: Columns,
    /// The number of parameters. A parameter may have several columns.
    pub(super) d: usize,
    /// The initial points, followed by more points for trials that start before the first observation.
    pub(super) design: Vec<Member>,
    pub(super) n_initial: usize,
    /// The random generator of the pool. The initial points come from the same random stream.
    pub(super) pool_rng: Rng,
    /// The pool of feasible points, which is computed at the first suggestion under constraints.
    pub(super) pool: Option<Pool>,
    /// The restriction of the members in the pool.
    pool_within: Option<Restriction>,
    pub(super) objective: OutcomeModel,
    /// The models of the outcomes with bounds and of the further objectives of a front, in the order of the outcomes.
    pub(super) others: Vec<OutcomeModel>,
    /// If there are several outcomes: the trials that succeeded and failed, for the model of success. A trial failed if
    /// any of its outcomes failed.
    pub(super) failures: Option<TrainingSet>,
    /// The model of success, if any trial has failed.
    pub(super) success: Option<Success>,
    /// The residuals of the model of durations or costs, if choices depend on durations or costs.
    pub(super) expense: Option<KeptProcess>,
    /// Whether the warning of missing durations or costs has been given.
    warned_of_missing: bool,
    pub(super) candidates: Option<SolvedCandidates>,
    /// The length of the log at the last fit of durations that was made only for predictions, and this fit.
    pub(super) duration_fit: Option<(usize, Option<ExpenseFit>)>,
    /// Whether the domain has few members. Equal candidates count as one member.
    pub(super) has_few_members: bool,
}

impl BayesOpt {
    /// Prepares all training sets for a suggestion.
    pub(super) fn before_suggestion(&mut self, now: f64) {
        self.objective.training.before_suggestion(now);
        for each in &mut self.others {
            each.training.before_suggestion(now);
        }
        if let Some(training) = &mut self.failures {
            training.before_suggestion(now);
        }
    }

    /// The note of a suggestion, from the new fits of the models.
    fn note(&self, log: View, fitted: &[(usize, Arc<Fit>)]) -> Result<Option<String>> {
        let problem = log.log.problem();
        let n_outcomes = problem.outcomes.len();
        let mut notes = vec![None; n_outcomes.max(1)];
        for (outcome, fit) in fitted {
            let mut fit = Fit::clone(fit);
            let is_first = *outcome == self.objective.outcome.unwrap_or(0);
            if let (true, Some(its)) = (is_first, &mut fit.success) {
                its.evidence = self.success.as_ref().map(|success| success.evidence);
            }
            notes[*outcome] = Some(fit.to_note()?);
        }
        Ok(match n_outcomes {
            0 => notes.pop().flatten(),
            _ => join_notes(&notes),
        })
    }

    /// The rules that exclude points from suggestions.
    pub(super) fn repeats<'a>(&'a self, query: Query<'a>) -> Repeats<'a> {
        let domain = query.searched(&self.domain);
        Repeats {
            domain,
            settings: &self.settings,
            training: &self.objective.training,
            pool: self.pool.as_ref(),
            has_few_members: match query.within {
                None => self.has_few_members,
                Some(_) => has_few_members(domain),
            },
        }
    }

    /// Creates the pool if there are constraints, and deletes the pool otherwise.
    pub(super) fn update_pool(&mut self, query: Query, stop: &mut Stop) -> Result<()> {
        if self.pool_within.as_ref() != query.restriction() {
            self.pool = None;
            self.pool_within = query.restriction().cloned();
        }
        if !query.feasible.is_constrained() {
            self.pool = None;
        } else if self.pool.is_none() {
            let mut rng = self.pool_rng.clone();
            self.pool = Some(Pool::new(
                query.searched(&self.domain),
                query.feasible_members(),
                &mut Call::new(&mut rng, stop),
            )?);
        }
        Ok(())
    }

    /// The point that the model proposes. The model must have data. If the hyperparameters are refitted, the fit is
    /// written to `fitted` immediately, with the position of its outcome.
    fn point_by_model(
        &mut self,
        log: View,
        query: Query,
        fitted: &mut Vec<(usize, Arc<Fit>)>,
        call: &mut Call,
    ) -> Result<(Member, Option<String>)> {
        self.fit_all(FitPurpose::Suggest, log.log, query, fitted, call)?;
        check(call.stop)?;
        let repeats = self.repeats(query);
        let mut excluded = repeats.excluded(log, query, false);
        let exhausted = repeats.is_exhausted(log, query, &excluded);
        let is_news = exhausted && !repeats.repeats_already(log, query);
        let exhaustion = match query.within {
            None => EXHAUSTED,
            Some(_) => EXHAUSTED_WITHIN,
        };
        let warning = is_news.then(|| exhaustion.to_string());
        if exhausted {
            excluded = repeats.excluded_if_exhausted(log, query);
        }
        let prepared = self.prepare(log, query, call)?;
        let (posterior, scope, kept) = (prepared.posterior, prepared.scope, prepared.candidates);
        let (mut maximand, mut terms) = (prepared.maximand, prepared.terms);
        if exhausted {
            maximand = Maximand::Formula(Box::new(MEAN));
            terms.retain(|term| term.constrains());
        }
        let mut search = Search {
            excluded,
            nu: prepared.nu,
            ..Search::new(scope, &posterior, log, query, call)?
        };
        let n = posterior.gp.len() + terms.iter().map(|term| term.n_rows()).sum::<usize>();
        let draws = matches!(maximand, Maximand::Draw(_));
        let point = match scope.full {
            Domain::Candidates(list) if can_be_kept(list, n, draws) => {
                search.candidates(kept, list, &posterior, maximand, terms)?
            }
            _ => search.functions(&posterior, maximand, terms)?,
        };
        Ok((point, warning))
    }

    /// The restriction to branches that have too few trials. None with a context or several objectives, for which a branch
    /// does not have a single best value, and with constraints that are functions, which may exclude a branch.
    fn branches_below_minimum(&self, log: View, query: Query) -> Option<Restriction> {
        let is_front = self.others.iter().any(|model| model.bounds.is_none());
        let is_compared = query.context.is_empty() && !is_front;
        let applies = is_compared && !query.feasible.is_constrained();
        applies.then(|| branches_below_minimum(&self.domain, log, query))?
    }

    /// The warning of missing durations or costs, which is given once.
    fn warning_of_missing(&mut self, log: View) -> Option<String> {
        if self.warned_of_missing {
            return None;
        }
        let warning = missing(&self.settings, &self.objective.training, log);
        self.warned_of_missing = warning.is_some();
        warning
    }
}

impl FromSettings for BayesOpt {
    type Settings = Settings;

    /// Creates a strategy that has not yet read a log. `rng` generates the initial points.
    fn new(setup: &Setup, settings: Settings, rng: &mut Rng) -> Result<Self> {
        let domain = setup.domain.clone();
        let columns = Columns::of(&domain, &setup.context).described(&setup.descriptors);
        settings.check(
            columns.width(),
            matches!(domain.as_ref(), Domain::Candidates(_)),
        )?;
        settings.check_setup(setup)?;
        settings.check_outcomes(setup)?;
        let others = OutcomeModel::of_others(setup, &settings, &columns);
        let settings = settings.oriented(setup.direction);
        let design = &settings.initial;
        let d = domain.dimensions();
        let n_initial = design.n_points(d);
        Ok(Self {
            has_few_members: has_few_members(&domain),
            pool_rng: rng.clone(),
            pool: None,
            pool_within: None,
            design: initial_design(&domain, n_initial, design.how, rng),
            n_initial,
            objective: OutcomeModel::of_objective(setup, &settings, &columns),
            failures: (setup.outcomes.len() > 1)
                .then(|| TrainingSet::new(settings.clone(), &columns)),
            others,
            settings,
            domain,
            columns,
            d,
            success: None,
            expense: None,
            warned_of_missing: false,
            candidates: None,
            duration_fit: None,
        })
    }

    fn values() -> Vec<Value> {
        let acquisitions = Acquisition::defaults().into_iter().map(as_json);
        let policies = Pending::defaults().into_iter().map(as_json);
        let others = [
            as_json(GP::default()),
            as_json(Initial::default()),
            as_json(search::Search::default()),
            as_json(Theory::default()),
        ];
        acquisitions.chain(policies).chain(others).collect()
    }
}

impl Strategy for BayesOpt {
    fn supports(&self) -> Supports {
        Supports {
            fidelity: false,
            ..Supports::EVERYTHING
        }
    }

    fn catch_up(&mut self, log: View) -> Result<()> {
        let log = log.log;
        self.objective.catch_up(log)?;
        for each in &mut self.others {
            each.catch_up(log)?;
        }
        if let Some(training) = &mut self.failures {
            training.catch_up(log.success())?;
        }
        Ok(())
    }

    fn rewind(&mut self, log: View) {
        let log = log.log;
        self.objective.rewind(log);
        for each in &mut self.others {
            each.rewind(log);
        }
        if let Some(training) = &mut self.failures {
            training.fold.rewind(log.success());
        }
    }

    fn propose(&mut self, log: View, query: Query, call: &mut Call) -> Result<Proposal> {
        let log = log.log.objective();
        self.before_suggestion(query.now);
        self.update_pool(query, call.stop)?;
        if let Some(point) = self.initial_point(log, query, call)? {
            return Ok(Proposal::at(point));
        }
        let mut fitted = Vec::new();
        let found = match self.branches_below_minimum(log, query) {
            None => self.point_by_model(log, query, &mut fitted, call),
            Some(branch) => query.under(&branch, |within| {
                let (point, _) = self.point_by_model(log, within, &mut fitted, call)?;
                let lifted = branch.lift_member(point);
                debug_assert!(query.allows(&lifted));
                let x = match query.restriction() {
                    None => lifted.x,
                    Some(own) => own.nearest(&lifted.x),
                };
                Ok((Member::new(x, None), None))
            }),
        };
        let (point, warning) = match found {
            Ok(found) => found,
            // Suggesting never fails for numerical reasons.
            Err(error) if error.is_numerical() => (
                match &self.pool {
                    None => uniform_point(query.searched(&self.domain), call.rng),
                    Some(pool) => {
                        let (domain, any) = (query.searched(&self.domain), Excluded::default());
                        let feasible = query.feasible_members();
                        let x = pool.sample_left(domain, feasible, &any, call)?;
                        Member::new(x, None)
                    }
                },
                Some(format!("a random point is suggested, because {error}")),
            ),
            Err(error) => return Err(error),
        };
        let warning = warning.or_else(|| self.warning_of_missing(log));
        Ok(Proposal {
            note: self.note(log, &fitted)?,
            warning,
            ..Proposal::at(point)
        })
    }

    fn check_note(&mut self, log: View, note: &str) -> Result<()> {
        let n_trials = log.n_trials();
        let n_outcomes = log.problem().outcomes.len();
        if n_outcomes == 0 {
            return Fit::check_note(note, n_trials, &self.columns);
        }
        let notes = split_notes(note)?;
        if notes.len() != n_outcomes {
            return Err(Error::Corrupt(format!(
                "the note {note:?} has {} notes for {n_outcomes} outcomes",
                notes.len(),
            )));
        }
        let mut notes = notes.iter().flatten();
        notes.try_for_each(|note| Fit::check_note(note, n_trials, &self.columns))
    }

    fn recommend(
        &mut self,
        log: View,
        query: Query,
        n: usize,
        call: &mut Call,
    ) -> Result<Vec<Recommendation>> {
        let log = log.log.objective();
        if log.n_observed() == 0 {
            return Ok(Vec::new());
        }
        self.update_pool(query, call.stop)?;
        // The fit is kept between calls. The fit draws from a copy of the stream, so that the search finds the same
        // points whether or not the fit is already known.
        let mut rng = call.rng.clone();
        let fit_call = &mut Call::new(&mut rng, call.stop);
        self.fit_all(
            FitPurpose::Predict,
            log.log,
            query,
            &mut Vec::new(),
            fit_call,
        )?;
        let (failures, training) = (self.failures.as_ref(), &self.objective.training);
        let (kept, columns) = (&mut self.success, &self.columns);
        let success = Success::of(kept, failures, training, columns, log, call.stop)?;
        let values = self.objective.training.row_values(log);
        let is_outside = |row: usize| log.of(self.objective.training.fold.rows[row]).is_outside();
        let is_observed =
            |&row: &usize| matches!(values[row], RowValue::Observed { .. }) && !is_outside(row);
        let rows = &self.objective.training.fold.rows;
        let is_allowed = |&row: &usize| query.allows(&log.member(rows[row]));
        let observed: Vec<usize> = (0..values.len())
            .filter(is_observed)
            .filter(is_allowed)
            .collect();
        let Some(posterior) = self.objective.training.posterior(log, query, call.stop)? else {
            return Ok(Vec::new());
        };
        let (gp, units) = (&*posterior.gp, posterior.units(query.context));
        // Exclude failing regions from the search by a penalty, because failures do not change the posterior mean.
        let success = success.filter(|success| success.excludes);
        let penalty = success.map(|success| SuccessTerm::penalty(success, gp, MULTIPLIER));
        let measured =
            (!self.others.is_empty()).then(|| Measured::of(&self.others, log.log, &self.domain));
        let (others, stop) = (&mut self.others, &mut *call.stop);
        let (bounded, objectives) = bounded_and_objectives(others, log, query, stop)?;
        let front = match objectives.is_empty() {
            true => None,
            false => Some(Front::new(&posterior, objectives, &bounded, (log, query))?),
        };
        let probable = PROBABLE.powf(1.0 / bounded.len().max(1) as f64);
        let bounds = BoundedOutcome::at_least(bounded, probable, gp, MULTIPLIER);
        let scope = Scope {
            domain: query.searched(&self.domain),
            full: &self.domain,
            settings: &self.settings,
            pool: self.pool.as_ref(),
        };
        if let Some(front) = front {
            let first = posterior.condition(&TailKind::Nothing)?;
            let gp = &first.gp;
            let front = FrontOfMeans::new(front, &first, (log, query), call.rng)?;
            let terms = (penalty.as_ref(), &bounds[..], measured.as_ref());
            let mut search = Search::new(scope, &first, log, query, call)?;
            let mut found = recommended_front(&mut search, gp, front, terms, n)?;
            if found.is_empty() {
                // No point probably lies within the bounds, or increases the hypervolume.
                let exact = observed.iter().all(|&row| gp.row_noise()[row] <= NOISELESS);
                let numbers: Vec<_> = observed.iter().map(|&row| first.rows[row]).collect();
                let violations = log.log.violations();
                let violations = |numbers: &[TrialNumber], _: &mut Stop| {
                    Ok(numbers.iter().map(|&number| violations[number]).collect())
                };
                found = best_measured(&mut search, gp, &numbers, exact, violations, n)?;
            }
            let point = |point: Member| Recommendation {
                point,
                mean: f64::NAN,
                std: f64::NAN,
            };
            return Ok(found.into_iter().map(point).collect());
        }
        let mut search = Search::new(scope, &posterior, log, query, call)?;
        let mut points = recommended(
            &mut search,
            &posterior,
            &observed,
            penalty.as_ref(),
            (&bounds, measured.as_ref()),
            n,
        )?;
        if points.is_empty() && !log.log.problem().outcomes.is_empty() {
            drop(bounds);
            let exact = observed.iter().all(|&row| gp.row_noise()[row] <= NOISELESS);
            let numbers: Vec<_> = observed.iter().map(|&row| posterior.rows[row]).collect();
            let bounded = &mut self.others;
            let violations = |numbers: &[TrialNumber], stop: &mut Stop| {
                expected_violations(bounded, numbers, (log, query), stop)
            };
            points = best_measured(&mut search, gp, &numbers, exact, violations, n)?;
        }
        let recommendation = |point: Member| {
            let row = [point.x.as_slice(), query.context].concat();
            let (mean, variance) = gp.predict(as_row(row).view());
            let (mean, std) = units.moments(mean[0], variance[0].sqrt());
            Recommendation { point, mean, std }
        };
        Ok(points.into_iter().map(recommendation).collect())
    }

    fn model_based(&mut self) -> Option<&mut dyn ModelBased> {
        Some(self)
    }
}

#[cfg(test)]
pub(in crate::strategy::bayes) mod tests;
