//! When θ is fitted: for suggestions, whose notes store the fit, and for predictions.

use std::sync::Arc;

use crate::error::Result;
use crate::ledger::Ledger;
use crate::random::Call;
use crate::strategy::Query;
use crate::strategy::bayes::BayesOpt;
use crate::strategy::bayes::model::fit_hyperparameters::fit_hyperparameters;
use crate::strategy::bayes::model::note::Fit;

impl BayesOpt {
    /// Fits θ to the current rows.
    pub(super) fn refit(&mut self, log: &Ledger, query: Query, call: &mut Call) -> Result<Fit> {
        let (settings, columns) = (&self.settings, &self.columns);
        fit_hyperparameters(settings, columns, &mut self.training, log, query, call)
    }

    /// Fits θ and chooses the window, if these are due. Returns the new fit, which is used from now on.
    pub(super) fn fit_if_due(
        &mut self,
        log: &Ledger,
        query: Query,
        call: &mut Call,
    ) -> Result<Option<Arc<Fit>>> {
        let mut fit = match self.training.refit_due(log, call.stop)? {
            true => Some(self.refit(log, query, call)?),
            false => None,
        };
        if let Some(window) = self.training.new_window(log, query, call.stop)? {
            fit = fit.or(self.training.fit().cloned());
            if let Some(fit) = &mut fit {
                fit.window = Some(window);
                // A note has a number of rows, also if θ is given.
                fit.rows = fit.rows.or(Some(0));
            }
        }
        let fit = fit.map(Arc::new);
        if let Some(fit) = &fit {
            self.training.fold.adopt(fit.clone(), log.trials().len());
        }
        Ok(fit)
    }

    /// Fits θ for decisions about running trials, if no suggestion has fitted θ. All points were then chosen elsewhere. The
    /// fit is only cached, and is repeated when the number of rows has grown as between the fits of suggestions.
    pub(super) fn fit_for_decisions(
        &mut self,
        log: &Ledger,
        query: Query,
        call: &mut Call,
    ) -> Result<()> {
        if self.training.fit().is_some() || log.n_observed() == 0 {
            return Ok(());
        }
        let rows = self.training.fold.rows.len();
        let is_due = |fit: &Arc<Fit>| {
            let gp = self.settings.gp();
            gp.refit_due(fit.rows, rows, log.trials().len())
        };
        let fit = match self.decision_fit.take().filter(|fit| !is_due(fit)) {
            Some(fit) => fit,
            None => Arc::new(self.refit(log, query, call)?),
        };
        self.decision_fit = Some(fit.clone());
        self.training.fold.preview(fit, log.trials().len());
        Ok(())
    }

    /// Fits θ for predictions. If there are no observations, or if the last fit still describes the data, this method
    /// does nothing. The fit is only cached: the next suggestion fits θ again and logs the new fit.
    pub(super) fn preview_fit(
        &mut self,
        log: &Ledger,
        query: Query,
        call: &mut Call,
    ) -> Result<()> {
        let fit = match self.preview.take() {
            Some((len, fit)) if len == log.len() => fit,
            _ => {
                let fitted = self.training.fit().is_some();
                if log.n_observed() == 0
                    || (fitted && !self.training.is_outdated(log, call.stop)?)
                {
                    return Ok(());
                }
                Arc::new(self.refit(log, query, call)?)
            }
        };
        self.preview = Some((log.len(), fit.clone()));
        self.training.fold.preview(fit, log.trials().len());
        Ok(())
    }
}
