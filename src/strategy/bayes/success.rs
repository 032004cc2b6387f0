//! The chance that a trial succeeds, from the trials that were observed and those that failed: its model, and its fit.
//!
//! The model is a Gaussian process of labels, 1 for observed and −1 for failed trials, about a prior mean of 1:
//! see [`crate::acquisition::log_success_probability`].

use ndarray::Array2;

use crate::acquisition::{Acquisition, LogSuccessProbability, Scorer, ShortfallOfSuccess};
use crate::error::{Result, Stop, check};
use crate::gp::GaussianProcess;
use crate::gp::fit::{Draws, FitSettings, fit};
use crate::gp::kernel::{InputWarp, KernelFamily};
use crate::ledger::{Ledger, State, TrialNumber};
use crate::random::Rng;
use crate::strategy::Query;
use crate::strategy::bayes::BayesOpt;
use crate::strategy::bayes::candidates::SolvedCandidates;
use crate::strategy::bayes::columns::Columns;
use crate::strategy::bayes::note::SuccessFit;
use crate::strategy::bayes::search::solved;
use crate::strategy::bayes::settings::{self, Settings};
use crate::strategy::bayes::training_set::{TrainingSet, Version};

const SIGNAL_VARIANCE: f64 = 1.0;

/// No lengthscale is shorter. Labels jump at the border of a failing region, where points crowd; what follows the jump
/// closely forgets the rest of the region, and it is suggested once more.
const MIN_LENGTHSCALE: f64 = 0.5;

/// A single failure may be an accident: with as much noise as signal it makes success as likely as not at its point. The
/// more there are, the more each says about where it is.
fn noise_variance(n_failed: usize) -> f64 {
    SIGNAL_VARIANCE / n_failed as f64
}

/// The weight of the penalty where P < ½, for an acquisition of unit scale: a label that is short by a thousandth
/// outweighs any difference of the acquisition.
const PENALTY: f64 = 1e3;

/// The model of failures, kept between suggestions: the rows of its fit are factorised at once, later ones singly.
pub(super) struct Success {
    gp: GaussianProcess,
    rows: Vec<TrialNumber>,
    /// The training set's, as of the rows' points.
    n_moves: usize,
    version: Version,
    candidates: Option<SolvedCandidates>,
}

/// What is fitted: the lengthscales.
fn fit_settings(columns: &Columns, n_failed: usize, n_restarts: usize) -> FitSettings {
    FitSettings {
        family: KernelFamily::Matern52,
        groups: columns.dimension.clone(),
        categories: columns.categories.clone(),
        lengthscale: None,
        signal_variance: Some(SIGNAL_VARIANCE),
        noise_variance: Some(noise_variance(n_failed)),
        priors: true,
        n_restarts,
        draws: Draws::Unit,
        dimensions: columns.dimensions,
        spreads: columns.spreads.clone(),
        input_warp: InputWarp::default(),
        warpable: Vec::new(),
    }
}

fn at_least(lengthscale: Vec<f64>) -> Vec<f64> {
    let lengthscale = lengthscale.into_iter();
    lengthscale.map(|l| l.max(MIN_LENGTHSCALE)).collect()
}

/// The labels of trials, less their prior mean.
fn labels(log: &Ledger, numbers: &[TrialNumber]) -> Vec<f64> {
    let label = |number: &TrialNumber| match log.trials()[*number].state {
        State::Failed => -2.0,
        _ => 0.0,
    };
    numbers.iter().map(label).collect()
}

impl BayesOpt {
    /// The lengthscales of the model of failures, where there is one.
    pub(super) fn fit_success(
        &self,
        log: &Ledger,
        rng: &mut Rng,
        stop: &mut Stop,
    ) -> Result<Option<SuccessFit>> {
        let n_failed = self.training.n_failed(log);
        if n_failed == 0 {
            return Ok(None);
        }
        let gp = self.settings.gp();
        let last = self.training.fit().and_then(|fit| fit.success.as_ref());
        let n_restarts = match last {
            Some(_) => gp.n_refit_restarts,
            None => gp.n_restarts,
        };
        let settings = fit_settings(&self.columns, n_failed, n_restarts);
        let mut start = settings.prior_mode();
        if let Some(last) = last {
            start.lengthscale.clone_from(&last.lengthscale);
        }
        let rows = self.training.ended();
        let x = self.training.encode(log, rows);
        let theta = fit(x.view(), &labels(log, rows), &start, &settings, rng, stop)?;
        Ok(Some(SuccessFit {
            lengthscale: at_least(theta.lengthscale),
            rows: rows.len(),
        }))
    }
}

impl Success {
    /// The model of failures for this log, from what was kept of it; None where there is none.
    pub(super) fn update<'a>(
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
        let rows = training.ended();
        let base = fit.map_or(0, |fit| fit.rows).min(rows.len());
        let generation = kept.as_ref().map_or(0, |kept| kept.version.generation);
        let is_same = |kept: &Self| {
            kept.gp.hyperparameters() == theta
                && kept.version.base == base
                && kept.n_moves == training.n_moves()
                && rows.starts_with(&kept.rows)
        };
        let mut success = match kept.take() {
            Some(kept) if is_same(&kept) => kept,
            _ => {
                let mut gp = GaussianProcess::new(KernelFamily::Matern52, &theta)?
                    .with_categories(&columns.categories);
                gp.append_rows(training.encode(log, &rows[..base]).view())?;
                Self {
                    gp,
                    rows: rows[..base].to_vec(),
                    n_moves: training.n_moves(),
                    version: Version {
                        generation: generation + 1,
                        base,
                    },
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
        success.gp.set_targets(&labels(log, rows))?;
        Ok(Some(kept.insert(success)))
    }

}

/// The model of success, and what it adds to the acquisition.
pub(super) struct Addition<'a> {
    model: &'a mut Success,
    formula: Acquisition,
}

impl<'a> Addition<'a> {
    /// log P for a log of a positive acquisition: then the sum is that of their product.
    pub(super) fn log_probability(model: &'a mut Success) -> Self {
        let formula = Acquisition::LogSuccessProbability(LogSuccessProbability);
        Self { model, formula }
    }

    /// A penalty where P < ½, for bounds, means, draws and variances of the posterior `gp` of f.
    pub(super) fn penalty(model: &'a mut Success, gp: &GaussianProcess, nu: f64) -> Self {
        let variance = gp.hyperparameters().signal_variance;
        let unit = variance.max(variance.sqrt()) * (1.0 + nu.abs());
        // No product with a shortfall may be NaN.
        let weight = (PENALTY * unit).min(1e300);
        let formula = Acquisition::ShortfallOfSuccess(ShortfallOfSuccess { weight });
        Self { model, formula }
    }

    /// What suits the acquisition of these settings.
    pub(super) fn to(
        model: &'a mut Success,
        settings: &Settings,
        gp: &GaussianProcess,
        nu: f64,
    ) -> Self {
        match settings.acquisition {
            settings::Acquisition::LogEI(_) => Self::log_probability(model),
            _ => Self::penalty(model, gp, nu),
        }
    }

    /// Whether what is added to the acquisition excludes a point.
    pub(super) fn excludes(&self, added: f64) -> bool {
        matches!(self.formula, Acquisition::ShortfallOfSuccess(_)) && added < 0.0
    }

    /// Rows of the model.
    pub(super) fn n_rows(&self) -> usize {
        self.model.gp.len()
    }

    /// As an objective.
    pub(super) fn scorer<'b>(&'b self, context: &'b [f64]) -> Scorer<'b> {
        Scorer::new(&self.model.gp, &self.formula, context)
    }

    /// Of candidates.
    pub(super) fn of_candidates(
        &mut self,
        list: &Array2<f64>,
        query: Query,
        stop: &mut Stop,
    ) -> Result<Vec<f64>> {
        let (version, gp) = (self.model.version, &self.model.gp);
        let solved = solved(&mut self.model.candidates, list, query, version, gp, stop)?;
        Ok(solved.score(gp, &self.formula))
    }
}

#[cfg(test)]
mod tests;
