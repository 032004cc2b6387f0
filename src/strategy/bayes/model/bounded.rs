//! The models of the outcomes that have bounds. Each reads the log of its outcome.

use std::sync::Arc;

use crate::error::Result;
use crate::ledger::Ledger;
use crate::problem::{Interval, Outcome};
use crate::random::{Call, Rng};
use crate::strategy::bayes::BayesOpt;
use crate::strategy::bayes::model::fit_purpose::FitPurpose;
use crate::strategy::bayes::model::note::Fit;
use crate::strategy::bayes::settings::Settings;
use crate::strategy::bayes::settings::surrogate::{GP, PriorMean};
use crate::strategy::from_settings::FromSettings;
use crate::strategy::{Query, Setup};

/// The model of an outcome that has bounds.
pub struct Bounded {
    /// The position of the outcome.
    pub outcome: usize,
    /// The bounds of the oriented value. A missing bound is infinite.
    pub bounds: (f64, f64),
    /// Whether this is the objective, which has bounds, too. The model of the objective chooses its hyperparameters.
    pub is_objective: bool,
    pub model: BayesOpt,
}

impl Bounded {
    /// The models of all outcomes with bounds, with the surrogate of the objective.
    pub fn of_setup(setup: &Setup, settings: &Settings, rng: &Rng) -> Result<Vec<Self>> {
        let bounded = setup.outcomes.iter().enumerate();
        let bounded = bounded.filter_map(|(i, outcome)| Some((i, outcome, outcome.bounds()?)));
        let model = |(outcome, declared, bounds): (usize, &Outcome, Interval)| {
            let is_objective = declared.is_objective();
            let surrogate = match (is_objective, settings.surrogate.mean) {
                // The mean is in units of the objective.
                (false, PriorMean::Number(_)) => GP {
                    mean: GP::default().mean,
                    ..settings.surrogate.clone()
                },
                _ => settings.surrogate.clone(),
            };
            let setup = Setup {
                direction: declared.direction(),
                outcomes: Vec::new(),
                ..setup.clone()
            };
            let settings = Settings {
                surrogate,
                ..Settings::default()
            };
            Ok(Self {
                outcome,
                bounds: bounds.oriented(declared.direction()),
                is_objective,
                model: BayesOpt::new(&setup, settings, &mut rng.clone())?,
            })
        };
        bounded.map(model).collect()
    }

    /// Fits the hyperparameters if a fit is due for this purpose. `objective` is the new fit of the objective.
    pub fn fit_for(
        &mut self,
        purpose: FitPurpose,
        objective: Option<&Arc<Fit>>,
        log: &Ledger,
        query: Query,
        call: &mut Call,
    ) -> Result<Option<Arc<Fit>>> {
        if !self.is_objective {
            return self.model.fit_for(purpose, log, query, call);
        }
        let (fold, number) = (&mut self.model.training.fold, log.trials().len());
        match objective {
            Some(fit) if purpose.is_logged() => fold.adopt(fit.clone(), number),
            Some(fit) => fold.preview(fit.clone(), number),
            None => {}
        }
        Ok(None)
    }
}
