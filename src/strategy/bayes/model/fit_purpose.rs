//! The purposes for which hyperparameters are fitted, with the rules of each purpose.

use crate::error::{Result, Stop};
use crate::ledger::Ledger;
use crate::strategy::bayes::model::training_set::TrainingSet;

/// The purpose of a fit.
///
/// | purpose | a fit is due | a fit is kept | rows |
/// |---|---|---|---|
/// | `Suggest` | if the last fit is outdated, or rows have been added that it predicts badly | in the log | of the model |
/// | `Predict` | if a fit is missing or outdated | until the log grows | of the model |
/// | `Decide` | if a fit is missing, since all points were chosen elsewhere | until rows have been added | of the model |
/// | `Durations` | always | until the log grows | trials that have ended |
///
/// A first fit, and a fit that starts again ([`fit_hyperparameters`](super::fit_hyperparameters)), has `n_restarts`
/// starts. All other fits have `n_refit_restarts`, the fits to durations included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FitPurpose {
    Suggest,
    Predict,
    Decide,
    Durations,
}

impl FitPurpose {
    /// Whether the note of a suggestion stores the fit. Other fits are kept in memory, and suggestions ignore them.
    pub fn is_logged(self) -> bool {
        self == FitPurpose::Suggest
    }

    /// Whether a fit is due if a fit is not kept.
    pub fn is_due(self, training: &mut TrainingSet, log: &Ledger, stop: &mut Stop) -> Result<bool> {
        Ok(match self {
            FitPurpose::Suggest => {
                training.is_outdated(log, stop)?
                    || (training.has_grown(log) && !training.predicts_later_rows(log, stop)?)
            }
            FitPurpose::Predict => {
                log.n_observed() > 0
                    && (training.fit().is_none() || training.is_outdated(log, stop)?)
            }
            FitPurpose::Decide => log.n_observed() > 0 && training.fit().is_none(),
            FitPurpose::Durations => true,
        })
    }

    /// Whether a fit to `rows` rows, which was made when the log had `len` events, is still used.
    pub fn keeps(
        self,
        len: usize,
        rows: Option<usize>,
        training: &TrainingSet,
        log: &Ledger,
    ) -> bool {
        match self {
            FitPurpose::Suggest => false,
            FitPurpose::Predict | FitPurpose::Durations => len == log.len(),
            FitPurpose::Decide => {
                training.fit().is_none()
                    && !training.has_grown_since(rows, training.fold.rows.len(), log)
            }
        }
    }
}
