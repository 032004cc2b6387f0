//! The log folded into the rows of a model, and the factor kept over them.
//!
//! Everything here follows from the log. After a restart the rows of the last refit are factorised at once and
//! the later ones appended singly, as they were the first time: the same bits, and no refit.

use std::collections::BTreeMap;

use ndarray::Array2;

use crate::bayes::settings::{Late, Settings};
use crate::bayes::targets::Targets;
use crate::error::{Result, Stop, check};
use crate::gp::{GaussianProcess, Hyperparameters};
use crate::ledger::{Event, Fitted, Ledger, Trial, TrialNumber};
use crate::pending::{Levels, Target};
use crate::strategy::Query;

/// Which factor this is: what is kept over one stays valid within it, while rows are appended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Version {
    generation: u64,
    /// Rows that were factorised at once; the later ones were appended singly.
    pub base: usize,
}

/// Trials as rows, θ, and the posterior over them.
pub struct Model {
    settings: Settings,
    width: usize,
    /// Events of the log that have been folded in, and the trials they started.
    cursor: usize,
    started: usize,
    /// Trials that are rows, in the order of the factor.
    rows: Vec<TrialNumber>,
    /// Trials that would be discarded after their window, with the time they were suggested.
    waiting: BTreeMap<TrialNumber, f64>,
    /// Whether a row was taken out since the last suggestion: then all rows are factorised anew.
    reordered: bool,
    theta: Option<Hyperparameters>,
    /// Rows that θ was fitted to.
    fitted_rows: Option<usize>,
    /// Rows that are factorised at once; later ones are appended singly.
    base: usize,
    /// Counts the factors built anew.
    generation: u64,
    posterior: Option<GaussianProcess>,
}

impl Model {
    pub fn new(settings: Settings, width: usize) -> Self {
        let theta = settings.fit_settings().given();
        Self {
            settings,
            width,
            cursor: 0,
            started: 0,
            rows: Vec::new(),
            waiting: BTreeMap::new(),
            reordered: false,
            theta,
            fitted_rows: None,
            base: 0,
            generation: 0,
            posterior: None,
        }
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
                Event::Added { value, .. } => {
                    if value.is_some() {
                        self.rows.push(self.started);
                    }
                    self.started += 1;
                }
                Event::Observed { number, .. } | Event::Failed { number, .. } => {
                    self.waiting.remove(number);
                    if !self.rows.contains(number) {
                        self.rows.push(*number);
                    }
                }
                Event::Abandoned { number, .. } => {
                    self.waiting.remove(number);
                    if let Some(row) = self.rows.iter().position(|r| r == number) {
                        self.rows.remove(row);
                        self.reordered = true;
                        self.invalidate();
                    }
                }
                Event::Amended { .. } | Event::Enqueued { .. } => {}
            }
        }
    }

    /// What a suggestion at time `now` settles: trials past their window become rows for good, where values
    /// that late are discarded; and after a removal the rows of this moment are the new base.
    pub fn before_suggestion(&mut self, now: f64) {
        let window = self.settings.window_or_infinite();
        let lapsed = |suggested_at: &f64| now - suggested_at > window;
        let mut late: Vec<TrialNumber> = Vec::new();
        self.waiting.retain(|number, suggested_at| {
            let stays = !lapsed(suggested_at);
            if !stays {
                late.push(*number);
            }
            stays
        });
        self.rows.extend(
            late.iter()
                .filter(|n| !self.rows.contains(n))
                .collect::<Vec<_>>(),
        );
        if self.reordered {
            self.base = self.rows.len();
            self.reordered = false;
            // A look at the model since the removal may have left a factor over other rows than these.
            self.invalidate();
        }
    }

    /// Takes over θ of a fit, own or another's.
    pub fn adopt(&mut self, fitted: &Fitted) {
        if self.theta.as_ref() == Some(&fitted.theta) && self.fitted_rows == Some(fitted.rows) {
            return;
        }
        self.theta = Some(fitted.theta.clone());
        self.fitted_rows = Some(fitted.rows);
        self.base = fitted.rows.min(self.rows.len());
        self.invalidate();
    }

    /// Whether θ should be fitted before the next suggestion.
    pub fn refit_due(&self, log: &Ledger) -> bool {
        self.settings.fit_settings().given().is_none()
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
                let lapsed = expired || query.now - trial.suggested_at > window;
                let target = self.settings.pending.target(lapsed, levels)?;
                Some((number, target))
            })
            .unzip()
    }

    /// The posterior of the rows with these targets, its factor brought up to date. None before any θ.
    pub fn posterior(
        &mut self,
        log: &Ledger,
        targets: &[f64],
        stop: &mut Stop,
    ) -> Result<Option<(&mut GaussianProcess, Version)>> {
        let Some(theta) = &self.theta else {
            return Ok(None);
        };
        // With `reordered` a base is yet to be settled by a suggestion: nothing may be kept until then.
        let base = if self.reordered {
            self.rows.len()
        } else {
            self.base
        };
        let posterior = match self.posterior.take() {
            Some(posterior) if !self.reordered => posterior,
            _ => {
                let mut posterior = GaussianProcess::new(self.settings.kernel, theta)?;
                posterior.append_rows(self.encode(log, &self.rows[..base]).view())?;
                self.generation += 1;
                posterior
            }
        };
        let posterior = self.posterior.insert(posterior);
        for i in posterior.n_observed()..self.rows.len() {
            check(stop)?;
            let row: Vec<f64> = log.trials()[self.rows[i]].row().collect();
            posterior.append_rows(crate::gp::as_row(row).view())?;
        }
        posterior.set_targets(targets)?;
        let version = Version {
            generation: self.generation,
            base,
        };
        Ok(Some((posterior, version)))
    }

    fn invalidate(&mut self) {
        self.posterior = None;
    }
}
