//! The fits of θ.

use std::sync::Arc;

use crate::error::Result;
use crate::ledger::View;
use crate::random::Call;
use crate::strategy::Query;
use crate::strategy::bayes::BayesOpt;
use crate::strategy::bayes::model::expense::fit_expense;
use crate::strategy::bayes::model::fit_hyperparameters::fit_hyperparameters;
use crate::strategy::bayes::model::fit_purpose::FitPurpose;
use crate::strategy::bayes::model::inside::choose_inside;
use crate::strategy::bayes::model::note::Fit;
use crate::strategy::bayes::model::success::fit_success;

impl BayesOpt {
    /// Fits θ of the objective and of all outcomes with bounds, as [`BayesOpt::fit_for`] does. `log` is the view of the
    /// objective. The new fits are appended to `fitted` with the positions of their outcomes.
    pub(super) fn fit_all(
        &mut self,
        purpose: FitPurpose,
        log: View,
        query: Query,
        fitted: &mut Vec<(usize, Arc<Fit>)>,
        call: &mut Call,
    ) -> Result<()> {
        let objective = self.fit_for(purpose, log, query, call)?;
        for each in &mut self.bounded {
            let part = log.log.outcome(each.outcome);
            let fit = each.fit_for(purpose, objective.as_ref(), part, query, call)?;
            fitted.extend(fit.map(|fit| (each.outcome, fit)));
        }
        let position = log.log.problem().objective().unwrap_or(0);
        fitted.extend(objective.map(|fit| (position, fit)));
        Ok(())
    }

    /// Fits θ if a fit is due for this purpose, and uses the fit from now on, or until the next event if the fit is not
    /// logged. A suggestion also chooses the window if a choice is due. Returns the fit, or `None` if the last fit
    /// stays in use.
    pub(super) fn fit_for(
        &mut self,
        purpose: FitPurpose,
        log: View,
        query: Query,
        call: &mut Call,
    ) -> Result<Option<Arc<Fit>>> {
        let (settings, columns, training) = (&self.settings, &self.columns, &mut self.training);
        let kept = self.kept_fits.remove(&purpose);
        let kept = kept.filter(|(len, fit)| purpose.keeps(*len, fit.rows, training, log));
        let is_kept = kept.is_some();
        let mut fit = match kept {
            Some((_, fit)) => Some(fit),
            None if purpose.is_due(training, self.failures.as_ref(), log, call.stop)? => {
                let mut fit = fit_hyperparameters(settings, columns, training, log, query, call)?;
                let (failures, failed) = match &self.failures {
                    Some(failures) => (failures, log.log.success()),
                    None => (&*training, log),
                };
                fit.success = fit_success(settings, columns, failures, failed, call)?;
                fit.expense = fit_expense(settings, columns, training, log, query, call)?;
                Some(Arc::new(fit))
            }
            None => None,
        };
        if purpose.is_logged()
            && let Some(window) = training.new_window(log, query, call.stop)?
        {
            fit = fit.or_else(|| training.fit().cloned().map(Arc::new));
            if let Some(fit) = &mut fit {
                let fit = Arc::make_mut(fit);
                fit.window = Some(window);
                // A note needs a number of rows even if θ is given.
                fit.rows = fit.rows.or(Some(0));
            }
        }
        let is_new = fit.is_some() && !is_kept;
        let number = log.n_trials();
        match &fit {
            None => {}
            Some(fit) if purpose.is_logged() => {
                training.fold.adopt(fit.clone(), number);
                if let Some(failures) = &mut self.failures {
                    failures.fold.adopt(fit.clone(), number);
                }
            }
            Some(fit) => {
                training.fold.preview(fit.clone(), number);
                if let Some(failures) = &mut self.failures {
                    failures.fold.preview(fit.clone(), number);
                }
            }
        }
        if let (true, Some(fit), Some(bounds)) = (is_new, &mut fit, self.bounds) {
            let inside = choose_inside(training, bounds, settings, columns, log, query, call)?;
            Arc::make_mut(fit).inside = inside;
            training.fold.complete(fit.clone());
        }
        if let (false, Some(fit)) = (purpose.is_logged(), &fit) {
            self.kept_fits.insert(purpose, (log.len(), fit.clone()));
        }
        Ok(fit)
    }
}
