//! The state of the training set, computed from the log event by event. Changes made by suggestions can be undone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::error::Result;
use crate::ledger::delays::is_beyond;
use crate::ledger::{Change, Effect, Reading, State, TrialNumber, View, Viewed};
use crate::strategy::bayes::model::note::Fit;
use crate::strategy::bayes::settings::Settings;
use crate::strategy::units::Units;

/// The state that is computed from the log.
#[derive(Debug, Default)]
pub struct Fold {
    /// The number of events that have been processed.
    pub(super) cursor: usize,
    /// The trials that are rows of the model, in the order of the rows of the factor.
    pub rows: Vec<TrialNumber>,
    /// The standard deviation of the noise of each row, in units of f, or `None` if unknown.
    pub(super) stds: Vec<Option<f64>>,
    /// The value of each row, or `None` if the trial was stopped or its window has passed.
    pub(super) values: Vec<Option<f64>>,
    /// The observed and failed trials, in the order in which they ended. If a trial ended several times, the first time
    /// counts.
    pub ended: Vec<TrialNumber>,
    /// The same trials as a set.
    pub(super) ended_set: BTreeSet<TrialNumber>,
    /// Pending trials whose values will be discarded if the values arrive after the window. For each trial, the map
    /// contains the time of the suggestion and the window.
    pub(super) waiting: BTreeMap<TrialNumber, (f64, Option<f64>)>,
    /// Whether a row of the `base` was removed, or any row was changed, since the last suggestion. After such a change,
    /// all rows are factorised together.
    pub(super) reordered: bool,
    /// The number of times that the point of an ended trial was corrected to the point that was actually run.
    pub n_moves: usize,
    /// The number of times that the value or the curve of an ended trial may have changed.
    pub n_revisions: usize,
    /// The windows that were chosen from delays, each with the number of the first trial that has the window.
    pub(super) windows: Vec<(TrialNumber, f64)>,
    /// The last fit of θ.
    pub fit: Option<Arc<Fit>>,
    /// Whether any row of the last fit has been removed since the fit, or has a new value or a new point.
    pub revised: bool,
    /// The number of rows that are factorised together. Later rows are appended one by one.
    pub(super) base: usize,
    /// One checkpoint for each suggestion at the end of the processed log, and possibly one for a proposal that is not
    /// logged.
    pub(super) checkpoints: Vec<Checkpoint>,
}

/// The fields that a suggestion may change, with their values before the suggestion.
#[derive(Debug)]
pub(super) struct Checkpoint {
    cursor: usize,
    n_rows: usize,
    n_windows: usize,
    reordered: bool,
    fit: Option<Arc<Fit>>,
    revised: bool,
    base: usize,
    /// The trials that the suggestion removed from `waiting`.
    stopped_waiting: Vec<(TrialNumber, (f64, Option<f64>))>,
    /// The trial that the suggestion added to `waiting`.
    started_waiting: Option<TrialNumber>,
}

impl Fold {
    /// Updates the state with the events since the last call.
    pub(super) fn catch_up(&mut self, log: View, settings: &Settings) -> Result<()> {
        self.rewind(log);
        while self.cursor < log.len() {
            for change in log.changes(self.cursor) {
                self.fold(change, log, settings)?;
            }
            self.cursor += 1;
        }
        Ok(())
    }

    fn fold(&mut self, change: Change, log: View, settings: &Settings) -> Result<()> {
        let number = change.number;
        if let Effect::Started {
            suggested: true,
            note,
            ..
        } = &change.effect
        {
            return self.fold_suggestion(log, number, note.as_deref(), settings);
        }
        self.checkpoints.clear();
        match change.effect {
            Effect::Started { reading, .. } => {
                if let Some(Reading { value, std }) = reading {
                    self.add_ended(number);
                    self.set_row(number, Some(value), std);
                }
            }
            Effect::Moved => self.move_row(number),
            Effect::Reported => self.n_revisions += usize::from(self.ended_set.contains(&number)),
            Effect::Valued { reading, run } => {
                self.waiting.remove(&number);
                if run.is_some() {
                    self.move_row(number);
                }
                self.add_ended(number);
                let window = self.window_of(number, settings);
                let discarded = discarded(log.of(number), settings, window);
                let reading = Some(reading).filter(|_| !discarded);
                let std = reading.and_then(|reading| reading.std);
                self.set_row(number, reading.map(|reading| reading.value), std);
            }
            Effect::Failed => {
                self.waiting.remove(&number);
                self.add_ended(number);
                // A failed trial does not have a value of f. If the window of the trial had passed, the trial was a row
                // at the floor, and this row is removed.
                self.remove_row(number);
            }
            Effect::Dropped | Effect::Withdrawn => {
                self.waiting.remove(&number);
                self.revised |= self.was_fitted_as_ended(number);
                self.remove_ended(number);
                self.remove_row(number);
            }
            Effect::Stopped => {
                self.waiting.remove(&number);
                self.remove_ended(number);
                self.set_row(number, None, None);
            }
        }
        Ok(())
    }

    fn fold_suggestion(
        &mut self,
        log: View,
        number: TrialNumber,
        note: Option<&str>,
        settings: &Settings,
    ) -> Result<()> {
        let trial = log.of(number);
        let fit = note.map(Fit::from_note).transpose()?;
        self.before_suggestion(trial.suggested_at);
        if let Some(fit) = fit {
            self.adopt(Arc::new(fit), number);
        }
        if settings.pending().discards_late() {
            let window = self.window_of(number, settings);
            self.waiting.insert(number, (trial.suggested_at, window));
            if let Some(checkpoint) = self.checkpoints.last_mut() {
                checkpoint.started_waiting = Some(number);
            }
        }
        Ok(())
    }

    /// Undoes all changes by events beyond the end of the log, and by a proposal that was not logged.
    pub fn rewind(&mut self, log: View) {
        // A checkpoint at the cursor belongs to a proposal whose suggestion has not been processed.
        let cursor = self.cursor;
        while let Some(checkpoint) = self
            .checkpoints
            .pop_if(|last| last.cursor >= log.len().min(cursor))
        {
            self.restore(checkpoint);
        }
    }

    /// Prepares a suggestion at time `now`. If late values are discarded, trials whose window has passed become rows
    /// permanently. If `reordered`, all current rows are then factorised together. `rewind` undoes
    /// both changes.
    pub(super) fn before_suggestion(&mut self, now: f64) {
        let mut checkpoint = self.checkpoint();
        self.waiting.retain(|number, (suggested_at, window)| {
            let stays = !is_beyond(now - *suggested_at, *window);
            if !stays {
                let waited = (*number, (*suggested_at, *window));
                checkpoint.stopped_waiting.push(waited);
            }
            stays
        });
        for (number, _) in &checkpoint.stopped_waiting {
            self.set_row(*number, None, None);
        }
        if self.reordered {
            self.base = self.rows.len();
            self.reordered = false;
        }
        self.checkpoints.push(checkpoint);
    }

    /// The window of a trial, which is the window that was in force when the trial was suggested.
    pub fn window_of(&self, number: TrialNumber, settings: &Settings) -> Option<f64> {
        let n = self.windows.partition_point(|(first, _)| *first <= number);
        settings.window(n.checked_sub(1).map(|i| self.windows[i].1))
    }

    /// Uses a fit, which another process may have made, from now on. `number` is the number of the next trial.
    pub fn adopt(&mut self, fit: Arc<Fit>, number: TrialNumber) {
        if let Some(window) = fit.window {
            self.windows.push((number, window.length));
        }
        let known = self.fit.as_ref().filter(|known| known.rows.is_some());
        if known != Some(&fit) {
            self.base = fit.rows.unwrap_or(0).min(self.rows.len());
            self.fit = Some(fit);
        }
        self.revised = false;
    }

    /// Replaces the fit in use, whose θ and rows stay the same.
    pub fn complete(&mut self, fit: Arc<Fit>) {
        self.fit = Some(fit);
    }

    /// Uses a fit that is not logged, until the next `catch_up`.
    pub fn preview(&mut self, fit: Arc<Fit>, number: TrialNumber) {
        self.checkpoints.push(self.checkpoint());
        self.adopt(fit, number);
    }

    /// Adds a row for a trial. If the row exists, its value and noise are updated. If the noise changes, all rows will
    /// be factorised again.
    fn set_row(&mut self, number: TrialNumber, value: Option<f64>, std: Option<f64>) {
        let Some(row) = self.rows.iter().position(|row| *row == number) else {
            self.rows.push(number);
            self.stds.push(std);
            self.values.push(value);
            return;
        };
        if self.stds[row] != std {
            self.stds[row] = std;
            self.reordered = true;
        }
        let units = self.fitted_units(row);
        self.revised |= match (self.values[row], value) {
            // The values of f may not be in the units of the fit, whose contexts may have different units.
            (Some(old), Some(new))
                if self.fit.as_ref().is_some_and(|it| !it.contexts.is_empty()) =>
            {
                units.is_some() && old != new
            }
            (Some(old), Some(new)) => units.is_some_and(|units| units.are_apart(old, new)),
            (old, new) => units.is_some() && old != new,
        };
        self.values[row] = value;
    }

    /// The units of the last fit, or `None` if this row was not in the fit.
    fn fitted_units(&self, row: usize) -> Option<Units> {
        let fit = self.fit.as_ref().filter(|fit| Some(row) < fit.rows)?;
        Some(fit.units)
    }

    /// Records that the point of a trial has changed.
    fn move_row(&mut self, number: TrialNumber) {
        // A trial whose window has passed is a row, even if the trial has not ended.
        if self.rows.contains(&number) || self.ended_set.contains(&number) {
            self.n_moves += 1;
        }
        if let Some(row) = self.rows.iter().position(|row| *row == number) {
            self.reordered = true;
            self.revised |= self.fitted_units(row).is_some();
        }
    }

    fn add_ended(&mut self, number: TrialNumber) {
        match self.ended_set.insert(number) {
            true => self.ended.push(number),
            false => self.n_revisions += 1,
        }
    }

    fn remove_ended(&mut self, number: TrialNumber) {
        if self.ended_set.remove(&number) {
            self.ended.retain(|ended| *ended != number);
            self.n_revisions += 1;
        }
    }

    /// Whether the model of success was fitted to the result of this trial in the last fit.
    fn was_fitted_as_ended(&self, number: TrialNumber) -> bool {
        let fit = self.fit.as_ref().and_then(|fit| fit.success.as_ref());
        let place = self.ended.iter().position(|ended| *ended == number);
        fit.zip(place).is_some_and(|(fit, place)| place < fit.rows)
    }

    fn remove_row(&mut self, number: TrialNumber) {
        if let Some(row) = self.rows.iter().position(|row| *row == number) {
            self.revised |= self.fitted_units(row).is_some();
            self.rows.remove(row);
            self.stds.remove(row);
            self.values.remove(row);
            // Rows that were not factorised together are appended one by one again.
            self.reordered |= row < self.base;
        }
    }

    fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            cursor: self.cursor,
            n_rows: self.rows.len(),
            n_windows: self.windows.len(),
            reordered: self.reordered,
            fit: self.fit.clone(),
            revised: self.revised,
            base: self.base,
            stopped_waiting: Vec::new(),
            started_waiting: None,
        }
    }

    fn restore(&mut self, checkpoint: Checkpoint) {
        self.cursor = checkpoint.cursor;
        self.rows.truncate(checkpoint.n_rows);
        self.windows.truncate(checkpoint.n_windows);
        self.stds.truncate(checkpoint.n_rows);
        self.values.truncate(checkpoint.n_rows);
        self.reordered = checkpoint.reordered;
        self.fit = checkpoint.fit;
        self.revised = checkpoint.revised;
        self.base = checkpoint.base;
        if let Some(number) = checkpoint.started_waiting {
            self.waiting.remove(&number);
        }
        self.waiting.extend(checkpoint.stopped_waiting);
    }
}

/// Whether the model discards the value of a trial with this window and uses the floor. For a pending trial, call this
/// function only after the window of the trial has passed.
pub fn discarded(trial: Viewed, settings: &Settings, window: Option<f64>) -> bool {
    settings.pending().discards_late()
        && trial.suggested
        && match trial.delay() {
            Some(delay) => is_beyond(delay, window),
            None => trial.state() == State::Pending,
        }
}
