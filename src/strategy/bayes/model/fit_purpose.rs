//! The purposes for which hyperparameters are fitted, with the rules of each purpose.

use crate::error::{Result, Stop, unless_numerical};
use crate::ledger::View;
use crate::strategy::bayes::model::training_set::TrainingSet;

/// The values after a fit contradict θ if their log density, given the earlier rows, is lower than expected by this
/// number of nats plus twice the standard deviation.
const MAX_LOSS: f64 = 5.0;

/// If the last fit used at least this number of rows, a scheduled fit may wait.
const MANY_ROWS: usize = 150;

/// The purpose of a fit.
///
/// | purpose | a fit is due | a fit is kept | rows |
/// |---|---|---|---|
/// | `Suggest` | if the last fit is outdated, or the rows have grown (`GP::refit_due`: by a tenth, at most `refit_every`, at least a twentieth) and the fit does not predict the later rows | in the log | of the model |
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

    /// Whether a fit is due if no kept fit can be used.
    pub fn is_due(self, training: &mut TrainingSet, log: View, stop: &mut Stop) -> Result<bool> {
        Ok(match self {
            FitPurpose::Suggest => {
                is_outdated(training, log, stop)?
                    || (has_grown(training, log) && !predicts_later_rows(training, log, stop)?)
            }
            FitPurpose::Predict => {
                log.n_observed() > 0
                    && (training.fit().is_none() || is_outdated(training, log, stop)?)
            }
            FitPurpose::Decide => log.n_observed() > 0 && training.fit().is_none(),
            FitPurpose::Durations => true,
        })
    }

    /// Whether a fit to `rows` rows, which was made when the view had `len` events, is still used.
    pub fn keeps(self, len: usize, rows: Option<usize>, training: &TrainingSet, log: View) -> bool {
        match self {
            FitPurpose::Suggest => false,
            FitPurpose::Predict | FitPurpose::Durations => len == log.n_events(),
            FitPurpose::Decide => {
                training.fit().is_none()
                    && !has_grown_since(training, rows, training.fold.rows.len(), log)
            }
        }
    }
}

/// Whether the last fit used many rows and predicts the later rows well, so that a fit can wait.
///
/// The later rows were predicted well if the mean of their squared whitened targets z² agrees with 1. If θ is
/// correct, z is standard normal, and the standard deviation of a mean over m rows is sqrt(2/m).
fn predicts_later_rows(training: &mut TrainingSet, log: View, stop: &mut Stop) -> Result<bool> {
    let fitted = training.fit().filter(|fit| fit.success.is_none());
    let Some(first) = fitted.and_then(|fit| fit.rows) else {
        return Ok(false);
    };
    let rows = training.fold.rows.len();
    if !training.settings.surrogate.keeps_units() || first < MANY_ROWS || 4 * rows >= 5 * first {
        return Ok(false);
    }
    let squares = training.later_squares(first, log, stop)?;
    let m = squares.len() as f64;
    let mean_square = squares.iter().sum::<f64>() / m;
    Ok((mean_square - 1.0).abs() < 2.0 * (2.0 / m).sqrt())
}

/// Whether the number of rows or trials has grown enough since the last fit that a fit is due.
fn has_grown(training: &TrainingSet, log: View) -> bool {
    // Failures count like observations, although failed trials are rows of the model of success and not of the
    // model of f.
    let (fitted, rows) = (
        training.fit(),
        training.fold.rows.len().max(training.fold.ended.len()),
    );
    let fitted = fitted.and_then(|fit| match &fit.success {
        Some(success) => Some(success.rows),
        None => fit.rows,
    });
    has_grown_since(training, fitted, rows, log)
}

/// Whether a fit is due for this number of rows, if the last fit had `fitted` rows.
fn has_grown_since(training: &TrainingSet, fitted: Option<usize>, rows: usize, log: View) -> bool {
    let gp = &training.settings.surrogate;
    gp.fits() && gp.refit_due(fitted, rows, log.n_trials())
}

/// Whether the last fit no longer describes the data. There are three possible reasons: the units computed from the
/// current values differ from the units of the fit, values that were in the fit have been revised, or later values
/// contradict the fit.
pub fn is_outdated(training: &mut TrainingSet, log: View, stop: &mut Stop) -> Result<bool> {
    let Some(fit) = training.fold.fit.clone() else {
        return Ok(false);
    };
    if !training.settings.surrogate.keeps_units() {
        return Ok(false);
    }
    let today = training.warped_targets(log, fit.units.warp).units;
    if training.fold.revised || today.differ_from(&fit.units) {
        return Ok(true);
    }
    let first = fit.rows.unwrap_or(0);
    if first >= training.fold.rows.len() {
        return Ok(false);
    }
    let Some(squares) = unless_numerical(training.later_squares(first, log, stop))? else {
        return Ok(true);
    };
    let losses = squares.iter().map(|square| 0.5 * (square - 1.0));
    // If z is standard normal, ½(z² − 1) has mean 0 and variance ½.
    let most = MAX_LOSS + 2.0 * (0.5 * squares.len() as f64).sqrt();
    Ok(losses.sum::<f64>() > most)
}
