//! The model of one outcome.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::Result;
use crate::gp::contiguous;
use crate::ledger::{Ledger, View};
use crate::problem::Outcome;
use crate::random::Call;
use crate::strategy::bayes::acquisitions::rule::TailKind;
use crate::strategy::bayes::columns::Columns;
use crate::strategy::bayes::model::expense::fit_expense;
use crate::strategy::bayes::model::fit_hyperparameters::fit_hyperparameters;
use crate::strategy::bayes::model::fit_purpose::FitPurpose;
use crate::strategy::bayes::model::inside::choose_inside;
use crate::strategy::bayes::model::note::Fit;
use crate::strategy::bayes::model::success::fit_success;
use crate::strategy::bayes::model::training_set::TrainingSet;
use crate::strategy::bayes::settings::Settings;
use crate::strategy::bayes::settings::surrogate::{GP, PriorMean};
use crate::strategy::model_based::Surrogate;
use crate::strategy::{Query, Setup};

/// The model of one outcome: its rows with their posterior, its bounds, and its fits.
pub struct OutcomeModel {
    /// The position of the outcome. `None` is the objective of a problem without declared outcomes.
    pub outcome: Option<usize>,
    /// The bounds of the oriented value, if the outcome has bounds. A missing bound is infinite.
    pub bounds: Option<(f64, f64)>,
    pub training: TrainingSet,
    /// The last fits that are not logged, each with the length of the log at the time of the fit.
    kept_fits: BTreeMap<FitPurpose, (usize, Arc<Fit>)>,
}

impl OutcomeModel {
    /// The model of the objective. `settings` are oriented.
    pub fn of_objective(setup: &Setup, settings: &Settings, columns: &Columns) -> Self {
        let outcome = setup.outcomes.iter().position(Outcome::is_objective);
        let bounds = outcome.and_then(|outcome| oriented_bounds(&setup.outcomes[outcome]));
        Self::new(outcome, bounds, settings.clone(), columns)
    }

    /// The models of all outcomes with bounds and of the further objectives of a front, with the surrogate of the
    /// objective. An objective with bounds has a second model here, because a search uses the posterior of the objective
    /// under another condition.
    pub fn of_others(setup: &Setup, settings: &Settings, columns: &Columns) -> Vec<Self> {
        let first = setup.outcomes.iter().position(Outcome::is_objective);
        let model = |(position, outcome): (usize, &Outcome)| {
            let bounds = oriented_bounds(outcome);
            let is_first = Some(position) == first;
            if bounds.is_none() && (is_first || !outcome.is_objective()) {
                return None;
            }
            let mut surrogate = settings.surrogate.clone();
            // A given mean is in units of the objective.
            if !is_first && matches!(surrogate.mean, PriorMean::Number(_)) {
                surrogate.mean = GP::default().mean;
            }
            let settings = Settings {
                surrogate,
                ..Settings::default()
            };
            let settings = settings.oriented(outcome.direction());
            Some(Self::new(Some(position), bounds, settings, columns))
        };
        setup
            .outcomes
            .iter()
            .enumerate()
            .filter_map(model)
            .collect()
    }

    fn new(
        outcome: Option<usize>,
        bounds: Option<(f64, f64)>,
        settings: Settings,
        columns: &Columns,
    ) -> Self {
        Self {
            outcome,
            bounds,
            training: TrainingSet::new(settings, columns),
            kept_fits: BTreeMap::new(),
        }
    }

    /// The view of the outcome.
    pub fn view<'a>(&self, log: &'a Ledger) -> View<'a> {
        match self.outcome {
            Some(outcome) => log.outcome(outcome),
            None => log.objective(),
        }
    }

    /// Updates the rows with the events since the last call.
    pub fn catch_up(&mut self, log: &Ledger) -> Result<()> {
        self.training.catch_up(self.view(log))
    }

    /// Undoes the effects of suggestions that were dropped from the end of the log.
    pub fn rewind(&mut self, log: &Ledger) {
        let view = self.view(log);
        self.training.fold.rewind(view);
    }

    /// Fits θ if a fit is due for this purpose, and uses the fit from now on, or until the next event if the fit is not
    /// logged. A suggestion also chooses the window if a choice is due. Returns the fit, or `None` if the last fit
    /// stays in use. `failures` has the rows of the model of success, if they are not the rows of this model.
    pub fn fit_for(
        &mut self,
        purpose: FitPurpose,
        columns: &Columns,
        failures: Option<&mut TrainingSet>,
        log: &Ledger,
        query: Query,
        call: &mut Call,
    ) -> Result<Option<Arc<Fit>>> {
        let view = self.view(log);
        let training = &mut self.training;
        let kept = self.kept_fits.remove(&purpose);
        let kept = kept.filter(|(len, fit)| purpose.keeps(*len, fit.rows, training, view));
        let is_kept = kept.is_some();
        let mut fit = match kept {
            Some((_, fit)) => Some(fit),
            None if purpose.is_due(training, failures.as_deref(), view, call.stop)? => {
                let mut fit = fit_hyperparameters(columns, training, view, query, call)?;
                let (rows, failed) = match failures.as_deref() {
                    Some(failures) => (failures, log.success()),
                    None => (&*training, view),
                };
                fit.success = fit_success(columns, rows, failed, call)?;
                fit.expense = fit_expense(columns, training, view, query, call)?;
                Some(Arc::new(fit))
            }
            None => None,
        };
        if purpose.is_logged()
            && let Some(window) = training.new_window(view, query, call.stop)?
        {
            fit = fit.or_else(|| training.fit().cloned().map(Arc::new));
            if let Some(fit) = &mut fit {
                let fit = Arc::make_mut(fit);
                fit.window = Some(window);
                // A note needs a number of rows even if θ is given.
                fit.rows = fit.rows.or(Some(0));
            }
        }
        let Some(mut fit) = fit else {
            return Ok(None);
        };
        self.adopt(purpose, &fit, log);
        if let Some(failures) = failures {
            use_fit(failures, purpose, &fit, view);
        }
        if let (false, Some(bounds)) = (is_kept, self.bounds) {
            let training = &mut self.training;
            let inside = choose_inside(training, bounds, columns, view, query, call)?;
            Arc::make_mut(&mut fit).inside = inside;
            training.fold.complete(fit.clone());
        }
        if !purpose.is_logged() {
            self.kept_fits.insert(purpose, (view.len(), fit.clone()));
        }
        Ok(Some(fit))
    }

    /// Uses a fit from now on, or until the next event if the fit is not logged.
    pub fn adopt(&mut self, purpose: FitPurpose, fit: &Arc<Fit>, log: &Ledger) {
        let view = self.view(log);
        use_fit(&mut self.training, purpose, fit, view);
    }

    /// The posterior for predictions; see
    /// [`ModelBased::surrogate`](crate::strategy::model_based::ModelBased::surrogate).
    pub fn surrogate(
        &mut self,
        columns: &Columns,
        failures: Option<&mut TrainingSet>,
        log: &Ledger,
        (query, pending): (Query, bool),
        call: &mut Call,
    ) -> Result<Option<Surrogate<'_>>> {
        self.fit_for(FitPurpose::Predict, columns, failures, log, query, call)?;
        let view = self.view(log);
        let values = self.training.row_values(view).into_iter();
        let rows = self.training.encode(view, &self.training.fold.rows);
        let Some(posterior) = self.training.posterior(view, query, call.stop)? else {
            return Ok(None);
        };
        let posterior = posterior.condition(match pending {
            true => &TailKind::Policy,
            false => &TailKind::Nothing,
        })?;
        let (units, contexts) = (posterior.targets.units, posterior.contexts);
        let slopes = values.zip(rows.rows()).filter_map(|(value, row)| {
            let units = contexts.units(units, contiguous(row));
            Some(units.log_slope(value.value()?))
        });
        Ok(Some(Surrogate {
            log_slope: slopes.sum(),
            rows: posterior.rows,
            gp: posterior.gp,
            units,
            contexts,
        }))
    }
}

fn use_fit(training: &mut TrainingSet, purpose: FitPurpose, fit: &Arc<Fit>, log: View) {
    let (fold, number) = (&mut training.fold, log.n_trials());
    match purpose.is_logged() {
        true => fold.adopt(fit.clone(), number),
        false => fold.preview(fit.clone(), number),
    }
}

fn oriented_bounds(outcome: &Outcome) -> Option<(f64, f64)> {
    Some(outcome.bounds()?.oriented(outcome.direction()))
}
