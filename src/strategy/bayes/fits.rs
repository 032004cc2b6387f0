//! The fits of θ.

use std::sync::Arc;

use crate::error::Result;
use crate::ledger::Ledger;
use crate::random::Call;
use crate::strategy::Query;
use crate::strategy::bayes::BayesOpt;
use crate::strategy::bayes::model::fit_purpose::FitPurpose;
use crate::strategy::bayes::model::note::Fit;

impl BayesOpt {
    /// Fits θ of the objective and of all outcomes with bounds, if fits are due for this purpose. Each new fit is
    /// appended to `fitted` immediately, with the position of its outcome.
    pub(super) fn fit_all(
        &mut self,
        purpose: FitPurpose,
        log: &Ledger,
        query: Query,
        fitted: &mut Vec<(usize, Arc<Fit>)>,
        call: &mut Call,
    ) -> Result<()> {
        let objective = self.fit_objective(purpose, log, query, call)?;
        let position = self.objective.outcome.unwrap_or(0);
        fitted.extend(objective.iter().map(|fit| (position, fit.clone())));
        for model in &mut self.others {
            // The model of the objective chooses the hyperparameters for both.
            if model.outcome == self.objective.outcome {
                if let Some(fit) = &objective {
                    model.adopt(purpose, fit, log);
                }
                continue;
            }
            let fit = model.fit_for(purpose, &self.columns, None, log, query, call)?;
            fitted.extend(model.outcome.zip(fit));
        }
        Ok(())
    }

    /// Fits θ of the objective if a fit is due for this purpose.
    pub(super) fn fit_objective(
        &mut self,
        purpose: FitPurpose,
        log: &Ledger,
        query: Query,
        call: &mut Call,
    ) -> Result<Option<Arc<Fit>>> {
        let (model, failures) = (&mut self.objective, self.failures.as_mut());
        model.fit_for(purpose, &self.columns, failures, log, query, call)
    }
}
