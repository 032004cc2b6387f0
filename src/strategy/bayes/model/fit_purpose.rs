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

    /// Whether a fit is due if no kept fit can be used. `failures` has the rows of the model of success, if they differ
    /// from the rows of `training`.
    pub fn is_due(
        self,
        training: &mut TrainingSet,
        failures: Option<&TrainingSet>,
        log: View,
        stop: &mut Stop,
    ) -> Result<bool> {
        // Results that were fitted by the model of success have been revised.
        let is_revised = failures.is_some_and(|failures| {
            failures.fold.revised && failures.fit().is_some_and(|fit| fit.success.is_some())
        });
        Ok(match self {
            FitPurpose::Suggest => {
                is_revised
                    || is_outdated(training, log, stop)?
                    || (has_grown(training, failures, log)
                        && !predicts_later_rows(training, log, stop)?)
            }
            FitPurpose::Predict => {
                log.n_observed() > 0
                    && (training.fit().is_none() || is_revised || is_outdated(training, log, stop)?)
            }
            FitPurpose::Decide => log.n_observed() > 0 && training.fit().is_none(),
            FitPurpose::Durations => true,
        })
    }

    /// Whether a fit to `rows` rows, which was made when the log had `len` events, is still used. The models of success
    /// and of expenses read events that do not concern the view.
    pub fn keeps(self, len: usize, rows: Option<usize>, training: &TrainingSet, log: View) -> bool {
        match self {
            FitPurpose::Suggest => false,
            FitPurpose::Predict | FitPurpose::Durations => len == log.len(),
            FitPurpose::Decide => {
                training.fit().is_none()
                    && !has_grown_since(training, rows, training.fold.rows.len(), log)
            }
        }
    }
}

/// Whether the last fit used many rows and predicts the later rows well, so that a fit can wait. A fit does not wait if
/// the rows have grown by a quarter, or if the fit has a model of success.
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
fn has_grown(training: &TrainingSet, failures: Option<&TrainingSet>, log: View) -> bool {
    // Failures count like observations, although failed trials are rows of the model of success and not of the
    // model of f.
    let rows = training.fold.rows.len().max(training.fold.ended.len());
    let fit = training.fit();
    let fitted = fit.and_then(|fit| fit.rows);
    let success = fit.and_then(|fit| Some(fit.success.as_ref()?.rows));
    match (failures, success) {
        (None, success) => has_grown_since(training, success.or(fitted), rows, log),
        (Some(_), None) => has_grown_since(training, fitted, rows, log),
        (Some(failures), success) => {
            has_grown_since(training, fitted, training.fold.rows.len(), log)
                || has_grown_since(training, success, failures.fold.ended.len(), log)
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::ControlFlow;
    use std::sync::Arc;

    use crate::gp::kernel::KernelFamily;
    use crate::ledger::{Action, Ledger};
    use crate::problem::{Clock, Direction, Goal, Interval, Outcome, Point, Problem};
    use crate::random::Rng;
    use crate::strategy::bayes::BayesOpt;
    use crate::strategy::bayes::model::note::{Fit, SuccessFit};
    use crate::strategy::bayes::settings::Settings;
    use crate::strategy::from_settings::FromSettings;
    use crate::strategy::{Setup, Strategy};
    use rand::SeedableRng;

    fn act(log: &mut Ledger, action: Action) {
        let event = log.validate(action, 0.0, None).unwrap().unwrap();
        log.append(event).unwrap();
    }

    /// A log of 24 trials with an objective and another outcome.
    fn started() -> Ledger {
        let objective = Goal::Objective(Direction::Minimize, Interval::default());
        let goals = [objective, Goal::Within(Interval::default())];
        let outcome = |(i, goal): (usize, Goal)| Outcome {
            name: i.to_string(),
            goal,
            plausible: crate::problem::Interval::default(),
        };
        let outcomes = goals.into_iter().enumerate().map(outcome).collect();
        let cube = Problem::unit_cube(1, 0, Clock::Iterations).unwrap();
        let mut log = Ledger::new(Arc::new(cube.with_outcomes(outcomes).unwrap()));
        for number in 0..24 {
            let point = Point::at(&[number as f64 / 24.0]);
            act(&mut log, Action::add(point, vec![], None, None));
        }
        log
    }

    /// Observes objectives and fails the other outcome in the trials with these numbers.
    fn end(log: &mut Ledger, observed: std::ops::Range<usize>, failed: std::ops::Range<usize>) {
        for number in observed {
            act(log, Action::observe(number, 0.5, None, false));
        }
        for number in failed {
            act(
                log,
                Action::Fail {
                    number,
                    outcome: Some(1),
                    error: None,
                    duration: None,
                    attrs: None,
                },
            );
        }
    }

    /// A strategy whose models were fitted to the log.
    fn fitted(log: &Ledger) -> BayesOpt {
        let (setup, rng) = (Setup::of(log.problem()), &mut Rng::seed_from_u64(0));
        let mut bayes = BayesOpt::new(&setup, Settings::default(), rng).unwrap();
        bayes.catch_up(log.view()).unwrap();
        let success = SuccessFit {
            lengthscale: vec![0.5],
            rows: bayes.failures.as_ref().unwrap().fold.ended.len(),
            evidence: None,
        };
        let theta = Settings::default().surrogate.first_theta(&bayes.columns);
        let fit = Arc::new(Fit {
            rows: Some(bayes.objective.training.fold.rows.len()),
            units: bayes
                .objective
                .training
                .warped_targets(log.objective(), None)
                .units,
            success: Some(success),
            ..Fit::given(KernelFamily::Matern52, theta)
        });
        bayes
            .objective
            .training
            .fold
            .adopt(fit.clone(), log.n_trials());
        let failures = bayes.failures.as_mut().unwrap();
        failures.fold.adopt(fit, log.n_trials());
        bayes
    }

    /// With several outcomes, the models of the objective and of success compare their rows with the rows of their own
    /// fits.
    #[test]
    fn a_fit_is_due_if_the_rows_of_either_model_have_grown() {
        // The numbers of observed objectives and of failures at the fit, and later.
        for ((observed, failed), (later, later_failed), due) in [
            ((4, 20), (4, 20), false),
            ((4, 20), (14, 20), true),
            ((14, 14), (14, 24), true),
            ((20, 4), (20, 24), true),
        ] {
            let mut log = started();
            end(&mut log, 0..observed, 0..failed);
            let mut bayes = fitted(&log);
            end(&mut log, observed..later, failed..later_failed);
            bayes.catch_up(log.view()).unwrap();
            let found = has_grown(
                &bayes.objective.training,
                bayes.failures.as_ref(),
                log.objective(),
            );
            assert_eq!(found, due, "{observed} {failed} {later} {later_failed}");
        }
    }

    #[test]
    fn a_fit_is_due_if_a_failure_of_the_fit_was_withdrawn() {
        let mut log = started();
        end(&mut log, 0..6, 0..12);
        let mut bayes = fitted(&log);
        let mut is_due = |log: &Ledger| {
            bayes.catch_up(log.view()).unwrap();
            let mut go_on = || ControlFlow::Continue(());
            let (training, failures) = (&mut bayes.objective.training, bayes.failures.as_ref());
            [FitPurpose::Suggest, FitPurpose::Predict].map(|purpose| {
                let is_due = purpose.is_due(training, failures, log.objective(), &mut go_on);
                is_due.unwrap()
            })
        };
        assert_eq!(is_due(&log), [false; 2]);
        act(
            &mut log,
            Action::Withdraw {
                number: 9,
                outcome: Some(1),
                reason: None,
            },
        );
        assert_eq!(is_due(&log), [true; 2]);
    }
}
