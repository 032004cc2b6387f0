//! The append-only log of events, and the states of trials that are computed from the log. This module does not depend
//! on models.
//!
//! * [`event`]: the events; [`json`]: events as text; [`entry`]: events as the log stores them; [`apply`]: the update
//!   of the state by an event
//! * [`rules`]: the validity of events
//! * [`trial`]: the current state of a trial; [`queries`]: queries about single trials
//!
//! The events are the whole state of the optimizer. A trial accepts a value in every state. Accepted events are never
//! removed, except that [`Ledger::truncate`] removes drafts of suggestions.
//!
//! Events are in the user's units and sign. The log encodes points and contexts as columns, and orients values so that
//! larger values are better. Strategies read the encoded data.
//!
//! The point and context of a trial are stored as a row in each of two arrays. The first array is in the user's units,
//! and the second array contains the encoded columns. Each row contains the point where the trial was run. If the trial
//! was started at another point, the trial also stores its start point.

mod apply;
mod entry;
pub mod event;
mod events;
mod json;
mod queries;
mod rules;
mod trial;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

pub use entry::Entry;
pub use event::{Action, Again, Event, Failure, Observation, TrialNumber};
pub use trial::{State, Trial};

use trial::Ranking;

use crate::error::{Error, Result};
use crate::problem::{Clock, Member, Point, Problem};

/// An enqueued point.
#[derive(Debug, Clone, PartialEq)]
pub struct Queued {
    /// The enqueued point, which a later suggestion uses.
    pub point: Point,
    /// The fidelity in the user's units. If the fidelity is None, the request for a suggestion determines the fidelity.
    pub fidelity: Option<f64>,
    /// The user's attributes of the trial, as a JSON object.
    pub attrs: Option<String>,
}

/// The log of events and the state of its trials.
///
/// [`Ledger::trial`] returns an error if a trial number does not exist. All other methods that take a trial number
/// panic.
#[derive(Debug, Clone)]
pub struct Ledger {
    problem: Arc<Problem>,
    /// The number of columns in an encoded point, and the number of columns in a context.
    widths: (usize, usize),
    /// The number of searched parameters in a point, and the number of parameters in a context.
    n_numbers: (usize, usize),
    entries: Vec<Entry>,
    /// The wall-clock time of each entry. A time that is not known is NaN.
    times: Vec<f64>,
    trials: Vec<Trial>,
    /// The encoded rows of all trials. Each row is the point followed by the context.
    rows: Vec<f64>,
    /// The same rows in the user's units. Inactive parameters are NaN.
    numbers: Vec<f64>,
    pending: BTreeSet<TrialNumber>,
    enqueued: Vec<Queued>,
    /// The number of enqueued points that have been suggested.
    n_dequeued: usize,
    n_suggested: usize,
    n_observed: usize,
    ranking: Ranking,
}

impl Ledger {
    /// Creates an empty log of trials of this problem.
    pub(crate) fn new(problem: Arc<Problem>) -> Self {
        Self {
            widths: problem.widths(),
            n_numbers: problem.n_numbers(),
            problem,
            entries: Vec::new(),
            times: Vec::new(),
            trials: Vec::new(),
            rows: Vec::new(),
            numbers: Vec::new(),
            pending: BTreeSet::new(),
            enqueued: Vec::new(),
            n_dequeued: 0,
            n_suggested: 0,
            n_observed: 0,
            ranking: Ranking::default(),
        }
    }

    /// Reserves capacity for `n_events` further events. Half of the events are expected to start trials.
    pub(crate) fn reserve(&mut self, n_events: usize) {
        let n_trials = n_events / 2;
        self.entries.reserve(n_events);
        self.times.reserve(n_events);
        self.trials.reserve(n_trials);
        self.rows
            .reserve(n_trials * (self.widths.0 + self.widths.1));
        self.numbers
            .reserve(n_trials * (self.n_numbers.0 + self.n_numbers.1));
    }

    /// The problem of these trials.
    pub fn problem(&self) -> &Arc<Problem> {
        &self.problem
    }

    /// The number of columns in an encoded point, and the number of columns in a context.
    pub(crate) fn widths(&self) -> (usize, usize) {
        self.widths
    }

    /// The number of events.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no event has been logged.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All events of the log, in the order in which they were logged.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// All trials, by number.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// The wall-clock time of event number i, if known.
    pub(crate) fn time(&self, i: usize) -> Option<f64> {
        Some(self.times[i]).filter(|time| !time.is_nan())
    }

    /// The wall-clock time when a trial was suggested or added, if known.
    pub(crate) fn started_at(&self, number: TrialNumber) -> Option<f64> {
        self.time(self.trials[number].started_by as usize)
    }

    /// The wall-clock time when the state of a trial last became observed, failed or abandoned, if known.
    pub(crate) fn finished_at(&self, number: TrialNumber) -> Option<f64> {
        let trial = &self.trials[number];
        trial.ended_at()?;
        self.time(trial.ended_by as usize)
    }

    /// Returns the trial with this number, or [`Error::UnknownTrial`].
    pub fn trial(&self, number: TrialNumber) -> Result<&Trial> {
        self.trials.get(number).ok_or(Error::UnknownTrial {
            number,
            known: self.trials.len(),
        })
    }

    /// The row of a trial for a model. The row contains the encoded point where the trial was run, followed by the
    /// context.
    pub(crate) fn row(&self, number: TrialNumber) -> &[f64] {
        let width = self.widths.0 + self.widths.1;
        &self.rows[number * width..(number + 1) * width]
    }

    /// The encoded point where a trial was run.
    pub(crate) fn x(&self, number: TrialNumber) -> &[f64] {
        &self.row(number)[..self.widths.0]
    }

    /// The encoded context of a trial.
    pub(crate) fn context(&self, number: TrialNumber) -> &[f64] {
        &self.row(number)[self.widths.0..]
    }

    /// The point where a trial was run. The point is the start point, unless a different point was reported.
    pub fn point(&self, number: TrialNumber) -> Point {
        if let Some(index) = self.trials[number].index {
            return Point::Candidate(index as usize);
        }
        let (point, _) = self.numbers_of(number).split_at(self.n_numbers.0);
        let active = |number: &f64| Some(*number).filter(|number| !number.is_nan());
        Point::Numbers(point.iter().map(active).collect())
    }

    /// The encoded point where a trial was run, and the row number of the point if the domain is a list of candidates.
    pub(crate) fn member(&self, number: TrialNumber) -> Member {
        let index = self.trials[number].index;
        Member::new(self.x(number).to_vec(), index.map(|index| index as usize))
    }

    /// The context of a trial, with one number for each searched parameter.
    pub fn context_numbers(&self, number: TrialNumber) -> &[f64] {
        &self.numbers_of(number)[self.n_numbers.0..]
    }

    fn numbers_of(&self, number: TrialNumber) -> &[f64] {
        let n = self.n_numbers.0 + self.n_numbers.1;
        &self.numbers[number * n..(number + 1) * n]
    }

    /// The value of a trial, with the user's sign.
    pub fn value(&self, number: TrialNumber) -> Option<f64> {
        let value = self.trials[number].value;
        value.map(|value| self.problem.direction.oriented(value))
    }

    /// The point where a trial was suggested or added.
    pub fn started_point(&self, number: TrialNumber) -> Point {
        let started = self.trials[number].started().cloned();
        started.unwrap_or_else(|| self.point(number))
    }

    /// The encoded point where a trial was suggested or added.
    pub(crate) fn started_x(&self, number: TrialNumber) -> Result<Cow<'_, [f64]>> {
        Ok(match self.trials[number].started() {
            None => Cow::Borrowed(self.x(number)),
            Some(point) => Cow::Owned(self.problem.encode(point)?),
        })
    }

    /// The point where a trial was run, if such a point was reported.
    pub(crate) fn run_point(&self, number: TrialNumber) -> Option<Point> {
        let moved = self.trials[number].started().is_some();
        moved.then(|| self.point(number))
    }

    /// The numbers of the pending trials, in ascending order.
    pub fn pending(&self) -> &BTreeSet<TrialNumber> {
        &self.pending
    }

    /// Trials that were abandoned after the last value or failure. Strategies do not suggest the points of such
    /// abandoned trials again before the next value or failure.
    pub(crate) fn recently_abandoned(&self) -> Vec<TrialNumber> {
        let mut numbers = Vec::new();
        for entry in self.entries.iter().rev() {
            match entry {
                Entry::Abandoned { number, .. } => numbers.push(*number as TrialNumber),
                Entry::Suggested { .. }
                | Entry::Enqueued { .. }
                | Entry::Reported { .. }
                | Entry::Added { value: None, .. } => {}
                Entry::Added { .. }
                | Entry::Observed { .. }
                | Entry::Amended { .. }
                | Entry::Failed { .. }
                | Entry::Stopped { .. } => break,
            }
        }
        numbers
    }

    /// The number of trials with a value.
    pub fn n_observed(&self) -> usize {
        self.n_observed
    }

    /// The trial with the largest value at the highest fidelity observed. Of equal values, the trial with the smallest
    /// number is returned.
    pub fn best(&self) -> Option<TrialNumber> {
        self.ranking.best()
    }

    /// The enqueued points that have not been suggested yet.
    pub fn queued(&self) -> &[Queued] {
        &self.enqueued[self.n_dequeued..]
    }

    /// The first point of the queue.
    pub(crate) fn next_queued(&self) -> Option<&Queued> {
        self.enqueued.get(self.n_dequeued)
    }

    /// Returns the time on the optimizer's clock, for a wall-clock time in seconds. Depending on the clock, the result
    /// is the number of suggestions so far, or the wall-clock time.
    pub(crate) fn now(&self, time: Option<f64>) -> Result<f64> {
        match (self.problem.clock, time) {
            (Clock::Iterations, None) => Ok(self.n_suggested as f64),
            (Clock::Iterations, Some(time)) if time.is_finite() => Ok(self.n_suggested as f64),
            (Clock::Seconds, Some(time)) if time.is_finite() => Ok(time),
            (clock, time) => Err(Error::InvalidTime {
                got: time.unwrap_or(f64::NAN),
                expected: match clock {
                    Clock::Seconds => "clock=\"seconds\" needs a finite number of seconds",
                    Clock::Iterations => "times are finite numbers of seconds",
                },
            }),
        }
    }

    /// Returns the events from number `start` on.
    pub(crate) fn events(&self, start: usize) -> impl Iterator<Item = Event> + '_ {
        (start..self.len()).map(|i| self.event(i))
    }

    /// Appends an event. An event that is not valid after the events of this log is refused.
    pub(crate) fn append(&mut self, event: Event) -> Result<()> {
        self.check_event(&event)?;
        self.push(event)
    }

    /// Appends an event that [`Ledger::validate`] returned.
    pub(crate) fn push(&mut self, event: Event) -> Result<()> {
        debug_assert_eq!(self.check_event(&event), Ok(()));
        if u32::try_from(self.len() + 1).is_err() {
            return Err(Error::Corrupt("the log is full: 2^32 events".to_string()));
        }
        let at = event.at().unwrap_or(f64::NAN);
        let entry = self.apply(event)?;
        self.times.push(at);
        self.entries.push(entry);
        Ok(())
    }

    /// Removes suggestions from the end of the log until the log has `len` events.
    ///
    /// Only drafts of an interrupted batch are removed. The removal stops at an event that is not a suggestion.
    pub(crate) fn truncate(&mut self, len: usize) {
        while self.len() > len
            && let Some(Entry::Suggested { queued, .. }) = self.entries.last()
        {
            self.n_dequeued -= usize::from(*queued);
            self.n_suggested -= 1;
            self.entries.pop();
            self.times.pop();
            self.trials.pop();
            self.rows
                .truncate(self.trials.len() * (self.widths.0 + self.widths.1));
            self.numbers
                .truncate(self.trials.len() * (self.n_numbers.0 + self.n_numbers.1));
            self.pending.remove(&self.trials.len());
        }
    }
}

#[cfg(test)]
mod tests;
