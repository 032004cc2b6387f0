//! The model of success, which predicts the probability that a trial succeeds. The model is fitted to the observed and
//! the failed trials.
//!
//! The model is a Gaussian process of labels with a prior mean of 1. Labels are positive for observed trials and
//! negative for failed trials (see [`crate::strategy::bayes::acquisitions::log_success_probability`]). If failures are
//! scattered among successes, the model averages over the failures. If failures lie together, the model finds the
//! border of the failing region ([`Failures`]).

use ndarray::ArrayView2;

use crate::error::{Result, Stop, check};
use crate::gp::GaussianProcess;
use crate::gp::fit::{FitSettings, fit};
use crate::gp::kernel::KernelFamily;
use crate::ledger::{Ledger, State, TrialNumber};
use crate::random::Call;
use crate::strategy::bayes::columns::Columns;
use crate::strategy::bayes::model::candidates::SolvedCandidates;
use crate::strategy::bayes::model::note::SuccessFit;
use crate::strategy::bayes::model::training_set::{TrainingSet, Version};
use crate::strategy::bayes::settings::Settings;

const SIGNAL_VARIANCE: f64 = 1.0;

/// The shortest lengthscale. Many points lie near the border of a failing region, where the labels jump. A model with a
/// shorter lengthscale would follow the jump closely and predict success in the interior of the region. Points in the
/// interior would then be suggested again.
const MIN_LENGTHSCALE: f64 = 0.5;

/// The arrangement of failed trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Failures {
    /// Failures lie among successes, so the failures may be accidents. `Scattered` is also used if there are too few
    /// failures to decide.
    Scattered,
    /// Failures lie near each other, and form a region with a border.
    Together,
}

/// Failures lie together if the share of isolated failures is at most this number. A failure is isolated if it is
/// nearer to a success than to any other failure. The share is (isolated failures + 1) / failures. If a fifth of all
/// trials fail by accident, four out of five failures are isolated.
const MAX_ISOLATED: f64 = 0.4;

/// The label of failures that lie together. With this label, P decreases on the way from a success to a failure, and
/// reaches ½ within the first quarter of the way. The search may choose points up to the distance at which P = ½, and
/// about a quarter of these points fail. With the label −1, about half of these points would fail.
const LABEL_IN_REGION: f64 = -4.25;

/// The noise variance of labels if failures lie together. The noise variance is small, because a trial in the failing
/// region always fails.
const NOISE_IN_REGION: f64 = 1e-4;

impl Failures {
    /// The arrangement of the failed rows.
    fn of(rows: ArrayView2<f64>, labels: &[f64]) -> Self {
        let failed: Vec<usize> = (0..labels.len()).filter(|&i| labels[i] < 0.0).collect();
        let is_isolated = |i: usize| {
            let (mut failure, mut success) = (f64::INFINITY, f64::INFINITY);
            for (j, row) in rows.rows().into_iter().enumerate() {
                let nearest = match labels[j] < 0.0 {
                    true => &mut failure,
                    false => &mut success,
                };
                if j != i {
                    let squares = row.iter().zip(rows.row(i)).map(|(a, b)| (a - b) * (a - b));
                    *nearest = nearest.min(squares.sum());
                }
            }
            success <= failure
        };
        let n_isolated = failed.iter().filter(|&&i| is_isolated(i)).count() as f64;
        let n_failed = failed.len();
        match n_isolated + 1.0 <= MAX_ISOLATED * n_failed as f64 {
            true => Self::Together,
            false => Self::Scattered,
        }
    }

    /// The kernel. For a failing region, the kernel is Matern 3/2. With this kernel, the predictions can change quickly
    /// at the border, and the model still predicts failures behind the border.
    fn family(self) -> KernelFamily {
        match self {
            Self::Scattered => KernelFamily::Matern52,
            Self::Together => KernelFamily::Matern32,
        }
    }

    /// The noise variance. If only one trial has failed, the failure may be an accident. For a single failure, the
    /// noise variance equals the signal variance, so that P = ½ at the point of the failure. The noise variance
    /// decreases with the number of failures.
    fn noise_variance(self, n_failed: usize) -> f64 {
        match self {
            Self::Scattered => SIGNAL_VARIANCE / n_failed as f64,
            Self::Together => NOISE_IN_REGION,
        }
    }

    /// The label of a failed trial.
    fn label(self) -> f64 {
        match self {
            Self::Scattered => -1.0,
            Self::Together => LABEL_IN_REGION,
        }
    }
}

/// The model of success, which is kept between suggestions. The rows of the last fit are factorised together, and later
/// rows are appended one by one.
pub struct Success {
    pub gp: GaussianProcess,
    rows: Vec<TrialNumber>,
    /// The value of the training set's counter `n_moves` when the points of the rows were read.
    n_moves: usize,
    pub version: Version,
    pub failures: Failures,
    pub candidates: Option<SolvedCandidates>,
}

/// The settings for fitting the model of success. Only the lengthscales are fitted.
fn fit_settings(columns: &Columns, n_failed: usize, n_restarts: usize) -> FitSettings {
    FitSettings {
        signal_variance: Some(SIGNAL_VARIANCE),
        noise_variance: Some(Failures::Scattered.noise_variance(n_failed)),
        ..columns.fit_settings(KernelFamily::Matern52, n_restarts)
    }
}

fn at_least(lengthscale: Vec<f64>) -> Vec<f64> {
    let lengthscale = lengthscale.into_iter();
    lengthscale.map(|l| l.max(MIN_LENGTHSCALE)).collect()
}

/// Returns the label of each trial minus the prior mean. `failed` is the label of a failed trial.
fn labels(log: &Ledger, numbers: &[TrialNumber], failed: f64) -> Vec<f64> {
    let label = |number: &TrialNumber| match log.trials()[*number].state {
        State::Failed => failed - 1.0,
        _ => 0.0,
    };
    numbers.iter().map(label).collect()
}

/// Fits the lengthscales of the model of success. Returns `None` if this strategy does not use a model of success.
pub fn fit_success(
    settings: &Settings,
    columns: &Columns,
    training: &TrainingSet,
    log: &Ledger,
    call: &mut Call,
) -> Result<Option<SuccessFit>> {
    let n_failed = training.n_failed(log);
    if n_failed == 0 {
        return Ok(None);
    }
    let gp = settings.gp();
    let last = training.fit().and_then(|fit| fit.success.as_ref());
    let n_restarts = match last {
        Some(_) => gp.n_refit_restarts,
        None => gp.n_restarts,
    };
    let fitted = fit_settings(columns, n_failed, n_restarts);
    let mut start = fitted.prior_mode();
    if let Some(last) = last {
        start.lengthscale.clone_from(&last.lengthscale);
    }
    let rows = &training.fold.ended;
    let x = training.encode(log, rows);
    let labels = labels(log, rows, Failures::Scattered.label());
    let theta = fit(x.view(), &labels, &start, &fitted, call)?;
    Ok(Some(SuccessFit {
        lengthscale: at_least(theta.lengthscale),
        rows: rows.len(),
    }))
}

impl Success {
    /// Updates the `kept` model of success for this log and returns it. Returns `None` if this strategy does not use a
    /// model of success.
    pub fn update<'a>(
        kept: &'a mut Option<Self>,
        training: &TrainingSet,
        columns: &Columns,
        log: &Ledger,
        stop: &mut Stop,
    ) -> Result<Option<&'a mut Self>> {
        let n_failed = training.n_failed(log);
        if n_failed == 0 {
            *kept = None;
            return Ok(None);
        }
        let fit = training.fit().and_then(|fit| fit.success.as_ref());
        let mut theta = fit_settings(columns, n_failed, 1).prior_mode();
        theta.lengthscale = match fit {
            Some(fit) => fit.lengthscale.clone(),
            None => at_least(theta.lengthscale),
        };
        let rows = &training.fold.ended;
        let failures = Failures::of(
            training.encode(log, rows).view(),
            &labels(log, rows, Failures::Scattered.label()),
        );
        theta.noise_variance = failures.noise_variance(n_failed);
        let base = fit.map_or(0, |fit| fit.rows).min(rows.len());
        let generation = kept.as_ref().map_or(0, |kept| kept.version.generation);
        let is_same = |kept: &Self| {
            kept.failures == failures
                && kept.gp.hyperparameters() == theta
                && kept.version.base == base
                && kept.n_moves == training.fold.n_moves
                && rows.starts_with(&kept.rows)
        };
        let mut success = match kept.take() {
            Some(kept) if is_same(&kept) => kept,
            _ => {
                let mut gp = GaussianProcess::new(failures.family(), &theta)?
                    .with_categories(&columns.categories);
                gp.append_rows(training.encode(log, &rows[..base]).view())?;
                Self {
                    gp,
                    rows: rows[..base].to_vec(),
                    n_moves: training.fold.n_moves,
                    version: Version {
                        generation: generation + 1,
                        base,
                    },
                    failures,
                    candidates: None,
                }
            }
        };
        for &number in &rows[success.rows.len()..] {
            check(stop)?;
            let row = training.encode(log, &[number]);
            success.gp.append_rows(row.view())?;
            success.rows.push(number);
        }
        let labels = labels(log, rows, failures.label());
        success.gp.set_targets(&labels)?;
        Ok(Some(kept.insert(success)))
    }
}

#[cfg(test)]
mod tests;
