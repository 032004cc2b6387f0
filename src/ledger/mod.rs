//! The append-only log of events, and the states of trials that are computed from the log. This module does not depend
//! on models.
//!
//! * [`event`]: the events; [`json`]: events as text; [`events`]: events as bytes, the form in which the log stores them
//! * [`rules`]: the validity of events; [`apply`]: the effects of an event on trials; [`revise`]: the change to another
//!   problem
//! * [`trial`]: trials and the ranking of their values; [`results`]: the table of results; [`outcomes`]: bounds of
//!   outcomes; [`front`]: the trials that no other trial dominates; [`queries`]: queries about single trials
//! * [`view`]: the log as strategies read it; [`delays`]: delays, leases and windows
//!
//! The events are the whole state of the optimizer. A trial accepts a value in every state. Accepted events are never
//! removed, except that [`Ledger::truncate`] removes suggestions from the end of the log, after an error or if they were
//! only proposed.
//!
//! Each trial has one result for each outcome. A plain optimizer is the case of one outcome without a name.
//!
//! Events are in the user's units and sign. The log encodes points and contexts as columns, and views orient values so
//! that larger values are better. Strategies read the encoded data.
//!
//! The encoded point and context of a trial are a row of an array. This point is the point where the trial was run. The
//! event that started the trial contains the start point and the context in the user's units.

mod apply;
pub mod delays;
pub mod event;
mod events;
pub mod front;
mod json;
mod outcomes;
mod queries;
mod results;
pub mod revise;
mod rules;
mod trial;
mod view;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use event::{
    Action, Again, Data, Event, Failure, Happened, Mark, Noted, Observation, Queued, Reading,
    Revision, Suggested, TrialNumber, What,
};
#[cfg(test)]
pub(crate) use event::{Added, Resulted, Step};
pub(crate) use event::{join_notes, split_notes};
pub use trial::{State, Trial};
pub(crate) use view::{Change, Effect};
pub use view::{View, Viewed};

use events::Events;
use results::{Column, Entry, OfSuccess, Results};
use trial::{Ranking, Revised};

use crate::error::{Error, Result};
use crate::problem::fidelity::TOLERANCE;
use crate::problem::{Clock, Member, Point, Position, Problem};

/// The data that are given at the start of a trial, in the user's units.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Start {
    pub point: Point,
    /// The context, with one number for each searched parameter.
    pub context: Vec<f64>,
    /// The note of the strategy that proposed the point.
    pub note: Option<String>,
    /// The user's attributes, as a JSON object.
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
    events: Events,
    /// The wall-clock time of each event. A time that is not known is NaN.
    times: Vec<f64>,
    /// Who caused the events, by their numbers.
    authors: BTreeMap<usize, String>,
    trials: Vec<Trial>,
    results: Results,
    /// The trials with a missing result, with those that a revision left out.
    pending: BTreeSet<TrialNumber>,
    /// A column for each outcome. If outcomes are declared, a column for whole trials follows. If there are several
    /// outcomes, a column for success follows.
    columns: Vec<Column>,
    /// The changes of success, if there are several outcomes.
    success_changes: Vec<OfSuccess>,
    /// The encoded rows of all trials. Each row is the point followed by the context.
    rows: Vec<f64>,
    enqueued: Vec<Queued>,
    /// The number of enqueued points that have been suggested.
    n_dequeued: usize,
    n_suggested: usize,
    /// The ranking of the values, if no outcomes are declared.
    ranking: Ranking,
    /// The numbers of the events that revised the problem. Each begins an era.
    revisions: Vec<usize>,
    /// The trials that existed at the last revision.
    revised: Vec<Revised>,
    /// The number of the last event that withdrew a result.
    last_withdrawal: Option<usize>,
}

impl Ledger {
    /// Creates an empty log of trials of this problem.
    pub(crate) fn new(problem: Arc<Problem>) -> Self {
        let columns = columns_of(&problem);
        Self {
            widths: problem.widths(),
            events: Events::default(),
            times: Vec::new(),
            authors: BTreeMap::new(),
            trials: Vec::new(),
            results: Results::new(columns.len()),
            pending: BTreeSet::new(),
            columns,
            success_changes: Vec::new(),
            rows: Vec::new(),
            enqueued: Vec::new(),
            n_dequeued: 0,
            n_suggested: 0,
            ranking: Ranking::default(),
            revisions: Vec::new(),
            revised: Vec::new(),
            last_withdrawal: None,
            problem,
        }
    }

    /// Whether outcomes are declared.
    pub(super) fn has_outcomes(&self) -> bool {
        !self.problem.outcomes.is_empty()
    }

    /// The number of outcomes of a trial. Without declared outcomes, a trial has one outcome.
    pub(super) fn n_outcomes(&self) -> usize {
        self.problem.outcomes.len().max(1)
    }

    /// The column of the objective, if there is one.
    pub(super) fn objective_column(&self) -> Option<usize> {
        match self.has_outcomes() {
            true => self.problem.objective(),
            false => Some(0),
        }
    }

    /// The column of whole trials.
    fn trial_column(&self) -> usize {
        self.problem.outcomes.len()
    }

    /// The result of a trial in a column.
    fn entry(&self, number: TrialNumber, column: usize) -> Entry<'_> {
        self.results.entry(number, column)
    }

    /// The results of the outcomes of a trial.
    fn results(
        &self,
        number: TrialNumber,
    ) -> impl ExactSizeIterator<Item = Entry<'_>> + Clone + '_ {
        (0..self.n_outcomes()).map(move |outcome| self.entry(number, outcome))
    }

    /// The position of an outcome when event number i was logged.
    fn position_at(&self, i: usize, column: &Column) -> Option<usize> {
        column.positions.get(self.era_at(i)).copied().flatten()
    }

    /// Whether no outcomes were declared when event number i was logged. Then the position of the trial is 0; otherwise it
    /// follows the positions of the outcomes.
    fn is_plain_at(&self, i: usize) -> bool {
        self.position_at(i, &self.columns[self.trial_column()]) == Some(0)
    }

    /// The number of trials.
    pub(crate) fn n_trials(&self) -> usize {
        self.trials.len()
    }

    /// Reserves capacity for `n_events` further events of `n_bytes`. Half of the events are expected to start trials.
    pub(crate) fn reserve(&mut self, n_events: usize, n_bytes: usize) {
        let n_trials = n_events / 2;
        self.events.reserve(n_events, n_bytes);
        self.times.reserve(n_events);
        self.trials.reserve(n_trials);
        self.results.reserve(n_trials, n_events);
        self.rows
            .reserve(n_trials * (self.widths.0 + self.widths.1));
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
        self.events.len()
    }

    /// Whether no event has been logged.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The present era. An era is the events under one version of the problem: a revision begins the next one. Eras are
    /// numbered from 0, so the present era is the number of revisions.
    pub fn era(&self) -> usize {
        self.revisions.len()
    }

    /// The era in which event number i was logged. The event of a revision belongs to the era before.
    fn era_at(&self, i: usize) -> usize {
        self.revisions.partition_point(|revision| *revision < i)
    }

    /// All trials, by number.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// The wall-clock time of event number i, if known.
    pub(crate) fn time(&self, i: usize) -> Option<f64> {
        Some(self.times[i]).filter(|time| !time.is_nan())
    }

    /// Who caused event number i, if known.
    pub(crate) fn author(&self, i: usize) -> Option<String> {
        self.authors.get(&i).cloned()
    }

    /// The wall-clock time when a trial was suggested or added, if known.
    pub(crate) fn started_at(&self, number: TrialNumber) -> Option<f64> {
        self.time(self.trials[number].started_by as usize)
    }

    /// Who suggested or added a trial, if known.
    pub(crate) fn started_by(&self, number: TrialNumber) -> Option<String> {
        self.author(self.trials[number].started_by as usize)
    }

    /// Returns the trial with this number, or [`Error::UnknownTrial`].
    pub fn trial(&self, number: TrialNumber) -> Result<&Trial> {
        self.trials.get(number).ok_or(Error::UnknownTrial {
            number,
            known: self.trials.len(),
        })
    }

    /// The row of a trial for a model: the encoded point where the trial was run, followed by the encoded context.
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

    /// The point where a trial was run: the reported point or, if none was reported, the start point.
    pub fn point(&self, number: TrialNumber) -> Point {
        let run = self.run_point(number);
        run.unwrap_or_else(|| self.started_point(number))
    }

    /// The encoded point where a trial was run, and the row number of the point if the domain is a list of candidates.
    pub(crate) fn member(&self, number: TrialNumber) -> Member {
        let index = self.trials[number].index;
        Member::new(self.x(number).to_vec(), index.map(|index| index as usize))
    }

    /// The data that were given at the start of a trial.
    pub(crate) fn start(&self, number: TrialNumber) -> Start {
        let event = self.event(self.trials[number].started_by as usize);
        let (point, context, note, attrs) = match event.what {
            What::Suggested(it) => (it.point, it.context, it.note, it.attrs),
            What::Added(it) => (it.point, it.context, None, it.attrs),
            event => unreachable!("{event:?} starts a trial"),
        };
        let revised = self.revised.get(number);
        let point = revised.and_then(|it| it.start.clone()).unwrap_or(point);
        let mut context = revised.and_then(|it| it.context.clone()).unwrap_or(context);
        context.iter_mut().for_each(|number| *number += 0.0);
        Start {
            point: point.unsigned_zeros(),
            context,
            note,
            attrs,
        }
    }

    /// The context of a trial in the last problem that has it, with one number for each searched parameter.
    pub fn context_numbers(&self, number: TrialNumber) -> Vec<f64> {
        self.start(number).context
    }

    /// The value of a trial, with the user's sign.
    pub fn value(&self, number: TrialNumber) -> Option<f64> {
        self.entry(number, self.objective_column()?).value()
    }

    /// The point where a trial was suggested or added, in the last problem that has it.
    pub fn started_point(&self, number: TrialNumber) -> Point {
        self.start(number).point
    }

    /// Whether the present problem has the point where a trial was suggested or added.
    fn has_start(&self, number: TrialNumber) -> bool {
        self.eras(number).start == self.era()
    }

    /// The point where a trial was suggested or added. If the present problem lacks this point, the result is the point
    /// where the trial was run.
    pub(crate) fn started_here(&self, number: TrialNumber) -> Point {
        match self.has_start(number) {
            true => self.started_point(number),
            false => self.point(number),
        }
    }

    /// As [`Ledger::started_here`], encoded.
    pub(crate) fn started_x(&self, number: TrialNumber) -> Result<Cow<'_, [f64]>> {
        Ok(match self.trials[number].run() {
            Some(_) if self.has_start(number) => {
                Cow::Owned(self.problem.encode(&self.started_point(number))?)
            }
            _ => Cow::Borrowed(self.x(number)),
        })
    }

    /// The point where a trial was run, if such a point was reported.
    pub(crate) fn run_point(&self, number: TrialNumber) -> Option<Point> {
        self.trials[number].run().cloned()
    }

    /// The point of an event at which a trial was run, in the present problem. If the event is older than the problem, the
    /// result is the last point that was reported for the earlier problem.
    fn present_point(&self, event: usize, number: TrialNumber, point: Point) -> Point {
        let notes_from = self.columns[self.trial_column()].notes_from;
        let is_earlier = self.era_at(event) < notes_from;
        let revised = self.revised.get(number).filter(|_| is_earlier);
        revised.and_then(|it| it.run.clone()).unwrap_or(point)
    }

    /// The note of the strategy that proposed a trial.
    pub(crate) fn note(&self, number: TrialNumber) -> Option<String> {
        self.start(number).note
    }

    /// The user's attributes of a trial as JSON objects. Entries of later objects override entries of earlier objects.
    pub fn attrs(&self, number: TrialNumber) -> Vec<String> {
        let started = self.start(number).attrs.into_iter();
        let reported = self.trials[number].reported_attrs();
        started.chain(reported.iter().cloned()).collect()
    }

    /// Whether the attributes of a trial contain these attributes, a JSON object.
    pub(crate) fn has_attrs(&self, number: TrialNumber, attrs: &str) -> bool {
        let mut known = serde_json::Map::new();
        for text in self.attrs(number) {
            known.extend(json::object(&text).unwrap_or_default());
        }
        let mut given = json::object(attrs).unwrap_or_default().into_iter();
        given.all(|(name, value)| known.get(&name) == Some(&value))
    }

    /// The remarks about a trial in order of arrival, each with the wall-clock time and the author, if known.
    pub(crate) fn remarks(
        &self,
        number: TrialNumber,
    ) -> Vec<(String, Option<f64>, Option<String>)> {
        let remarks = self.trials[number].remarks().iter();
        let dated = remarks.map(|(event, text)| {
            let event = *event as usize;
            (text.clone(), self.time(event), self.author(event))
        });
        dated.collect()
    }

    /// The number of the last event that withdrew a result, if any.
    pub(crate) fn last_withdrawal(&self) -> Option<usize> {
        self.last_withdrawal
    }

    /// The trial with the largest value at the highest fidelity observed. Of equal values, the trial with the smallest
    /// number is returned. Trials that were run outside the domain are left out.
    pub fn best(&self) -> Option<TrialNumber> {
        match self.has_outcomes() {
            true => self.best_among(|trial| !trial.is_outside()),
            false => self.ranking.best(),
        }
    }

    /// The trials that [`Ledger::best`] may return if the best trials do not count: by decreasing fidelity, the best
    /// value first.
    pub fn best_first(&self) -> Vec<TrialNumber> {
        let objective = self.objective();
        let counts = |number: TrialNumber| {
            let trial = objective.of(number);
            let inside = !self.has_outcomes() || self.is_within_bounds(number);
            let value = trial.value().filter(|_| inside && !trial.is_outside())?;
            Some((trial.z(), value + 0.0, number)) // −0.0 and 0.0 are equal values
        };
        let mut found: Vec<_> = (0..self.trials.len()).filter_map(counts).collect();
        let order = |a: &(f64, f64, TrialNumber), b: &(f64, f64, TrialNumber)| {
            let by_value = || b.1.total_cmp(&a.1).then_with(|| a.2.cmp(&b.2));
            b.0.total_cmp(&a.0).then_with(by_value)
        };
        found.sort_by(order);
        found.into_iter().map(|(.., number)| number).collect()
    }

    /// The best trial, as [`Ledger::best`] returns it, among all trials with a value.
    pub fn best_anywhere(&self) -> Option<TrialNumber> {
        self.best_among(|_| true)
    }

    /// The trial with the best objective at the highest fidelity, among the trials that count and whose outcomes with
    /// bounds have values within their bounds.
    fn best_among(&self, counts: impl Fn(&Trial) -> bool) -> Option<TrialNumber> {
        let objective = self
            .objective_column()
            .map(|outcome| self.outcome(outcome))?;
        let found = objective
            .trials()
            .enumerate()
            .filter_map(|(number, trial)| {
                let value = trial.value()?;
                let holds = counts(&trial) && self.is_within_bounds(number);
                holds.then_some((trial.z(), value + 0.0, number)) // −0.0 and 0.0 are equal values
            });
        let found: Vec<(f64, f64, TrialNumber)> = found.collect();
        let highest = found.iter().map(|(z, ..)| *z).fold(0.0, f64::max);
        let best = found
            .into_iter()
            .filter(|(z, ..)| *z >= highest - TOLERANCE);
        let order = |a: &(f64, f64, usize), b: &(f64, f64, usize)| {
            a.1.total_cmp(&b.1).then_with(|| b.2.cmp(&a.2))
        };
        best.max_by(order).map(|(.., number)| number)
    }

    /// The first trial that was run at this encoded point between steps, or None for other points.
    pub(crate) fn between_steps(&self, x: &[f64]) -> Option<TrialNumber> {
        let is_there = |number: &TrialNumber| {
            self.trials[*number].position == Position::Between && self.x(*number) == x
        };
        (0..self.trials.len()).find(is_there)
    }

    /// The encoded member of the domain that a trial tried, and its row number among candidates: the point where the
    /// trial was run or, if this point is not a member, the point where the trial was started. None if neither is a
    /// member.
    pub(crate) fn tried(&self, number: TrialNumber) -> Option<(Cow<'_, [f64]>, Option<usize>)> {
        let trial = &self.trials[number];
        if trial.left_out {
            return None;
        }
        if trial.position == Position::Member {
            let index = trial.index.map(|index| index as usize);
            return Some((Cow::Borrowed(self.x(number)), index));
        }
        if !self.has_start(number) {
            return None; // the problem lacks the point where the trial was started
        }
        let started = self.started_point(number);
        let is_member = self.problem.position(&started) == Position::Member;
        let x = self.problem.encode(&started).ok().filter(|_| is_member)?;
        Some((Cow::Owned(x), started.index()))
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

    /// Returns event number i. The returned event equals the event that was appended.
    pub(crate) fn event(&self, i: usize) -> Event {
        self.events.get(i)
    }

    /// Returns the events from number `start` on.
    pub(crate) fn events(&self, start: usize) -> impl Iterator<Item = Event> + '_ {
        (start..self.len()).map(|i| self.event(i))
    }

    /// All events as bytes, one after another.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.events.bytes()
    }

    /// Appends an event, or returns an error if the event is not valid after the events of this log.
    pub(crate) fn append(&mut self, event: Event) -> Result<()> {
        self.check(&event)?;
        self.push(event)
    }

    /// As [`Ledger::append`], for an event whose bytes are known.
    pub(crate) fn append_written(&mut self, event: &Event, written: &[u8]) -> Result<()> {
        self.check(event)?;
        self.enter(event)?;
        self.events.push_written(written);
        Ok(())
    }

    /// Appends an event that [`Ledger::validate`] returned.
    pub(crate) fn push(&mut self, event: Event) -> Result<()> {
        debug_assert_eq!(self.check(&event), Ok(()));
        self.enter(&event)?;
        self.events.push(&event);
        Ok(())
    }

    /// Applies an event that is stored next.
    fn enter(&mut self, event: &Event) -> Result<()> {
        if u32::try_from(self.len() + 1).is_err() {
            return Err(Error::Corrupt("the log is full: 2^32 events".to_string()));
        }
        self.apply(event)?;
        self.note_times(event);
        Ok(())
    }

    fn note_times(&mut self, event: &Event) {
        let by = event.by.iter().map(|by| (self.times.len(), by.clone()));
        self.authors.extend(by);
        self.times.push(event.at.unwrap_or(f64::NAN));
        self.results.times.push(event.now);
    }

    /// Computes the counts, sets and ranking from the trials.
    fn recount(&mut self) {
        for column in 0..self.columns.len() {
            let numbers = 0..self.trials.len();
            let has_value = |number: &usize| {
                self.entry(*number, column).value().is_some() && !self.trials[*number].left_out
            };
            self.columns[column].n_observed = numbers.filter(has_value).count();
        }
        let (numbers, column) = (0..self.trials.len(), self.trial_column());
        let is_pending = |number: &usize| self.entry(*number, column).state() == State::Pending;
        self.pending = numbers.filter(is_pending).collect();
        self.rank();
    }

    /// The oriented value of a trial that the ranking compares, and its fidelity.
    fn ranked(&self, number: TrialNumber) -> Option<(f64, f64)> {
        let trial = &self.trials[number];
        let counts = !self.has_outcomes() && !trial.left_out && !trial.is_outside();
        let value = self.value(number).filter(|_| counts)?;
        Some((self.problem.direction.oriented(value), trial.z()))
    }

    /// Ranks the values, if no outcomes are declared.
    fn rank(&mut self) {
        self.ranking = Ranking::of(self.trials.len(), |number| self.ranked(number));
    }

    /// Updates the ranking after a trial got a value or, with `is_withdrawn`, lost its value.
    fn rank_value(&mut self, number: TrialNumber, is_withdrawn: bool) {
        let mut ranking = std::mem::take(&mut self.ranking);
        match is_withdrawn {
            true => {
                let z = self.trials[number].z();
                ranking.withdraw(z, self.trials.len(), |number| self.ranked(number));
            }
            false => ranking.insert(number, |number| self.ranked(number)),
        }
        self.ranking = ranking;
    }

    /// Removes suggestions from the end of the log until the log has `len` events.
    ///
    /// The removal stops at an event that is not a suggestion, so only drafts of an interrupted batch are removed.
    pub(crate) fn truncate(&mut self, len: usize) {
        while self.len() > len
            && let What::Suggested(Suggested { queued, .. }) = self.event(self.len() - 1).what
        {
            self.n_dequeued -= usize::from(queued);
            self.n_suggested -= 1;
            self.events.pop();
            self.times.pop();
            self.results.pop();
            self.trials.pop();
            let n = self.trials.len();
            self.rows.truncate(n * (self.widths.0 + self.widths.1));
            self.pending.remove(&n);
        }
    }
}

/// The columns of an empty log.
fn columns_of(problem: &Problem) -> Vec<Column> {
    let column = |position: Option<usize>| Column {
        positions: vec![position],
        ..Column::default()
    };
    let n = problem.outcomes.len();
    let mut columns: Vec<Column> = (0..n.max(1)).map(|i| column(Some(i))).collect();
    columns.extend((n > 0).then(|| column(Some(n))));
    columns.extend((n > 1).then(|| column(problem.first_objective().or(Some(0)))));
    columns
}

#[cfg(test)]
mod tests;
