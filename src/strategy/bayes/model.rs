//! The log folded into the rows of a model, and the factor kept over them.
//!
//! Everything here follows from the log. After a restart the rows of the last refit are factorised at once and
//! the later ones appended singly, as they were the first time: the same bits, and no refit.

use std::collections::BTreeMap;

use ndarray::Array2;

use crate::error::{Result, Stop, check};
use crate::gp::kernel::KernelFamily;
use crate::gp::{GaussianProcess, Hyperparameters};
use crate::ledger::{Event, Fitted, Ledger, Trial, TrialNumber};
use crate::strategy::Query;
use crate::strategy::bayes::pending::{Levels, Target};
use crate::strategy::bayes::settings::{Late, Settings};
use crate::strategy::bayes::targets::Targets;

/// Which factor this is: what is kept over one stays valid within it, while rows are appended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Version {
    generation: u64,
    /// Rows that were factorised at once; the later ones were appended singly.
    pub base: usize,
}

/// Bounds on noise variances that come with values, in the model's units: below and above a factor loses its digits.
const MIN_NOISE: f64 = 1e-10;
const MAX_NOISE: f64 = 1e12;

/// Trials as rows, θ, and the posterior over them.
pub struct Model {
    settings: Settings,
    width: usize,
    /// Events of the log that have been folded in, and the trials they started.
    cursor: usize,
    started: usize,
    /// Trials that are rows, in the order of the factor.
    rows: Vec<TrialNumber>,
    /// The standard deviation of each row's noise, in units of f, where it is known.
    stds: Vec<Option<f64>>,
    /// Trials that would be discarded after their window, with the time they were suggested.
    waiting: BTreeMap<TrialNumber, f64>,
    /// Whether a row was taken out since the last suggestion: then all rows are factorised anew.
    reordered: bool,
    family: KernelFamily,
    theta: Option<Hyperparameters>,
    /// The unit of the targets that θ was fitted to.
    scale: f64,
    /// Rows that θ was fitted to.
    fitted_rows: Option<usize>,
    /// Rows that are factorised at once; later ones are appended singly.
    base: usize,
    /// Counts the factors built anew.
    generation: u64,
    posterior: Option<GaussianProcess>,
    /// Rows of the posterior that were factorised at once.
    posterior_base: usize,
}

/// Gives the rows their targets, which move to the prior mean where that is estimated.
pub fn set_targets(
    gp: &mut GaussianProcess,
    targets: &mut Targets,
    settings: &Settings,
) -> Result<()> {
    if settings.estimates_mean(gp.kernel().width()) {
        let mean = gp.set_targets_about_mean(&targets.values)?;
        if (targets.center + mean * targets.scale).is_finite() {
            targets.move_center(mean);
            return Ok(());
        }
    }
    gp.set_targets(&targets.values)
}

impl Model {
    pub fn new(settings: Settings, width: usize) -> Self {
        let fit = settings.fit_settings();
        let (family, theta) = (fit.family, fit.given());
        Self {
            settings,
            width,
            cursor: 0,
            started: 0,
            rows: Vec::new(),
            stds: Vec::new(),
            waiting: BTreeMap::new(),
            reordered: false,
            family,
            theta,
            scale: 1.0,
            fitted_rows: None,
            base: 0,
            generation: 0,
            posterior: None,
            posterior_base: 0,
        }
    }

    /// The kernel, as chosen last.
    pub fn family(&self) -> KernelFamily {
        self.family
    }

    pub fn theta(&self) -> Option<&Hyperparameters> {
        self.theta.as_ref()
    }

    pub fn n_rows(&self) -> usize {
        self.rows.len()
    }

    /// The trial of each row.
    pub fn rows(&self) -> &[TrialNumber] {
        &self.rows
    }

    /// Folds in the events since the last time.
    pub fn catch_up(&mut self, log: &Ledger) {
        for event in &log.events()[self.cursor..] {
            self.cursor += 1;
            match event {
                Event::Suggested { now, fitted, .. } => {
                    self.before_suggestion(*now);
                    if let Some(fitted) = fitted {
                        self.adopt(fitted);
                    }
                    if self.settings.late == Late::Discard {
                        self.waiting.insert(self.started, *now);
                    }
                    self.started += 1;
                }
                Event::Added { value, std, .. } => {
                    if value.is_some() {
                        self.set_row(self.started, *std);
                    }
                    self.started += 1;
                }
                Event::Observed { number, std, .. } | Event::Amended { number, std, .. } => {
                    self.waiting.remove(number);
                    let discarded = self.discarded(&log.trials()[*number]);
                    self.set_row(*number, std.filter(|_| !discarded));
                }
                Event::Failed { number, .. } => {
                    self.waiting.remove(number);
                    self.set_row(*number, None);
                }
                Event::Abandoned { number, .. } => {
                    self.waiting.remove(number);
                    if let Some(row) = self.rows.iter().position(|r| r == number) {
                        self.rows.remove(row);
                        self.stds.remove(row);
                        self.reordered = true;
                        self.invalidate();
                    }
                }
                Event::Enqueued { .. } => {}
            }
        }
    }

    /// Makes a trial a row, or gives its row another noise: then all rows are factorised anew.
    fn set_row(&mut self, number: TrialNumber, std: Option<f64>) {
        match self.rows.iter().position(|row| *row == number) {
            None => {
                self.rows.push(number);
                self.stds.push(std);
            }
            Some(row) if self.stds[row] != std => {
                self.stds[row] = std;
                self.reordered = true;
                self.invalidate();
            }
            Some(_) => {}
        }
    }

    /// The noise variance of each row where it is known, for targets in this unit.
    pub fn row_noise(&self, scale: f64) -> Vec<Option<f64>> {
        let variance = |std: f64| (std / scale).powi(2).clamp(MIN_NOISE, MAX_NOISE);
        self.stds.iter().map(|std| std.map(variance)).collect()
    }

    /// What a suggestion at time `now` settles: trials past their window become rows for good, where values
    /// that late are discarded; and after a removal the rows of this moment are the new base.
    pub fn before_suggestion(&mut self, now: f64) {
        let window = self.settings.window_or_infinite();
        let window_passed = |suggested_at: &f64| now - suggested_at > window;
        let mut late: Vec<TrialNumber> = Vec::new();
        self.waiting.retain(|number, suggested_at| {
            let stays = !window_passed(suggested_at);
            if !stays {
                late.push(*number);
            }
            stays
        });
        for number in late {
            self.set_row(number, None);
        }
        if self.reordered {
            self.base = self.rows.len();
            self.reordered = false;
            // A look at the model since the removal may have left a factor over other rows than these.
            self.invalidate();
        }
    }

    /// Takes over θ of a fit, own or another's.
    pub fn adopt(&mut self, fitted: &Fitted) {
        if self.family == fitted.family
            && self.theta.as_ref() == Some(&fitted.theta)
            && self.fitted_rows == Some(fitted.rows)
        {
            return;
        }
        self.family = fitted.family;
        self.theta = Some(fitted.theta.clone());
        self.scale = fitted.scale;
        self.fitted_rows = Some(fitted.rows);
        self.base = fitted.rows.min(self.rows.len());
        self.invalidate();
    }

    /// Whether θ should be fitted before the next suggestion.
    pub fn refit_due(&self, log: &Ledger) -> bool {
        self.settings.fits()
            && self
                .settings
                .refit_due(self.fitted_rows, self.rows.len(), log.trials().len())
    }

    /// Targets of the rows.
    pub fn targets(&self, log: &Ledger) -> Targets {
        let trials = self.rows.iter().map(|&number| {
            let trial = &log.trials()[number];
            (trial, self.discarded(trial))
        });
        Targets::of(trials, &self.settings)
    }

    /// Whether the model goes on taking the trial for the floor, whatever its value.
    fn discarded(&self, trial: &Trial) -> bool {
        self.settings.late == Late::Discard
            && trial.suggested
            && trial
                .delay()
                .map_or(trial.state == crate::ledger::State::Pending, |delay| {
                    delay > self.settings.window_or_infinite()
                })
    }

    /// Encoded rows of points and contexts.
    pub fn encode(&self, log: &Ledger, numbers: &[TrialNumber]) -> Array2<f64> {
        let values = numbers
            .iter()
            .flat_map(|&number| log.trials()[number].row())
            .collect();
        Array2::from_shape_vec((numbers.len(), self.width), values)
            .expect("every trial has the width that it was checked for")
    }

    /// Pending trials that the policy keeps in the model, and what it takes them for.
    pub fn tail(
        &self,
        log: &Ledger,
        query: Query,
        levels: Levels,
    ) -> (Vec<TrialNumber>, Vec<Target>) {
        let window = self.settings.window_or_infinite();
        log.pending()
            .iter()
            .filter(|number| !self.rows.contains(number))
            .filter_map(|&number| {
                let trial = &log.trials()[number];
                let expired = trial
                    .expires_at
                    .zip(query.wall)
                    .is_some_and(|(at, now)| now > at);
                let window_passed = expired || query.now - trial.suggested_at > window;
                let target = self.settings.pending.target(window_passed, levels)?;
                Some((number, target))
            })
            .unzip()
    }

    /// Brings the posterior of the rows up to date, with these targets, which move to the prior mean where that is
    /// estimated. False before any θ.
    ///
    /// The noise that came with values is counted in the unit of the last fit. Without fits the unit is today's, and
    /// as that moves with every value, all rows are factorised each time.
    pub fn update_posterior(
        &mut self,
        log: &Ledger,
        targets: &mut Targets,
        stop: &mut Stop,
    ) -> Result<bool> {
        let Some(theta) = &self.theta else {
            return Ok(false);
        };
        // With `reordered` a base is yet to be settled by a suggestion: nothing may be kept until then.
        let fits = self.settings.fits();
        let keeps = !self.reordered && (fits || self.stds.iter().all(Option::is_none));
        let base = if keeps { self.base } else { self.rows.len() };
        let noise = self.row_noise(if fits { self.scale } else { targets.scale });
        let posterior = match self.posterior.take() {
            Some(posterior) if keeps => posterior,
            _ => {
                let mut posterior = GaussianProcess::new(self.family, theta)?;
                let rows = self.encode(log, &self.rows[..base]);
                posterior.append_noisy_rows(rows.view(), &noise[..base])?;
                self.generation += 1;
                posterior
            }
        };
        let posterior = self.posterior.insert(posterior);
        for i in posterior.n_observed()..self.rows.len() {
            check(stop)?;
            let row: Vec<f64> = log.trials()[self.rows[i]].row().collect();
            posterior.append_noisy_rows(crate::gp::as_row(row).view(), &noise[i..=i])?;
        }
        self.posterior_base = base;
        set_targets(posterior, targets, &self.settings)?;
        Ok(true)
    }

    /// The posterior as `update_posterior` left it.
    pub fn posterior(&mut self) -> Option<(&mut GaussianProcess, Version)> {
        let version = Version {
            generation: self.generation,
            base: self.posterior_base,
        };
        Some((self.posterior.as_mut()?, version))
    }

    /// Gives the factor's memory back: it can be had again from the rows, bit for bit.
    pub fn drop_factor(&mut self) {
        self.posterior = None;
    }

    fn invalidate(&mut self) {
        self.posterior = None;
    }
}
