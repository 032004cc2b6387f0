//! The append-only log of events, and the states of trials that are computed from the log. This module does not depend
//! on models.
//!
//! * [`event`]: the events; [`json`]: events as text; [`events`]: events as bytes, the form in which the log stores them
//! * [`rules`]: the validity of events; [`apply`]: the effects of an event on trials and on strategies; [`revise`]: the
//!   change to another problem
//! * [`outcomes`]: trials with several outcomes
//! * [`trial`]: the current state of a trial; [`queries`]: queries about single trials; [`delays`]: delays, leases and
//!   windows
//!
//! The events are the whole state of the optimizer. A trial accepts a value in every state. Accepted events are never
//! removed, except that [`Ledger::truncate`] removes suggestions from the end of the log, after an error or if they were
//! only proposed.
//!
//! Events are in the user's units and sign. The log encodes points and contexts as columns, and orients values so that
//! larger values are better. Strategies read the encoded data.
//!
//! The encoded point and context of a trial are a row of an array. This point is the point where the trial was run. The
//! event that started the trial contains the start point and the context in the user's units.

mod apply;
pub mod delays;
pub mod event;
mod events;
mod json;
mod outcomes;
mod queries;
pub mod revise;
mod rules;
mod trial;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(crate) use apply::{Change, Effect};
pub use event::{Action, Again, Event, Failure, Observation, Reading, TrialNumber};
pub(crate) use outcomes::{join_notes, split_notes};
pub use trial::{State, Trial};

use events::Events;
use trial::{Ranking, Revised};

use crate::error::{Error, Result};
use crate::problem::fidelity::TOLERANCE;
use crate::problem::{Clock, Fixed, Held, Member, Point, Position, Problem};

/// An enqueued point.
#[derive(Debug, Clone, PartialEq)]
pub struct Queued {
    /// The enqueued point, which a later suggestion uses.
    pub point: Point,
    /// The searched parameters whose numbers the user gave, by their positions. None means that the whole point was
    /// given. Otherwise the strategy chooses the other numbers, if it can.
    pub given: Option<Vec<usize>>,
    /// The fidelity in the user's units. If the fidelity is None, the request for a suggestion determines the fidelity.
    pub fidelity: Option<f64>,
    /// The user's attributes of the trial, as a JSON object.
    pub attrs: Option<String>,
}

impl Queued {
    /// The fixed values together with the given numbers, or None if the whole point was given.
    pub(crate) fn completion(&self, fixed: Option<&Fixed>) -> Option<Fixed> {
        let (Some(given), Point::Numbers(numbers)) = (&self.given, &self.point) else {
            return None;
        };
        let mut held = match fixed {
            Some(Fixed::Parameters(held)) => held.clone(),
            _ => vec![None; numbers.len()],
        };
        for &k in given {
            held[k] = numbers[k].map(|number| Held::Values(vec![number]));
        }
        Some(Fixed::Parameters(held))
    }

    /// Whether the given numbers agree with the fixed values.
    pub(crate) fn fits(&self, fixed: &Fixed) -> bool {
        let (Fixed::Parameters(held), Point::Numbers(numbers)) = (fixed, &self.point) else {
            return false;
        };
        let mut given = self.given.iter().flatten();
        given.all(|&k| match (&held[k], numbers[k]) {
            (Some(Held::Values(values)), Some(number)) => values.contains(&number),
            (Some(Held::Range(low, high)), Some(number)) => (*low..=*high).contains(&number),
            (None, _) => true,
            (Some(_), None) => false,
        })
    }
}

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
    trials: Vec<Trial>,
    /// The encoded rows of all trials. Each row is the point followed by the context.
    rows: Vec<f64>,
    pending: BTreeSet<TrialNumber>,
    /// The trials that were abandoned after the last value or failure, earliest first.
    abandoned: Vec<TrialNumber>,
    enqueued: Vec<Queued>,
    /// The number of enqueued points that have been suggested.
    n_dequeued: usize,
    n_suggested: usize,
    n_observed: usize,
    ranking: Ranking,
    /// The numbers of the events that revised the problem.
    revisions: Vec<usize>,
    /// The trials that existed at the last revision.
    revised: Vec<Revised>,
    /// For each trial that a revision left out: the number of the first event that strategies see, or `u32::MAX`.
    shown_from: BTreeMap<TrialNumber, u32>,
    /// The pending trials that are left out.
    pending_left_out: BTreeSet<TrialNumber>,
    /// The number of trials that are left out and whose points the strategy chose.
    n_chosen_left_out: usize,
    /// Strategies read the notes of events from this number on. Earlier notes are about another problem.
    notes_from: usize,
    /// The number of the last event that withdrew a result.
    last_withdrawal: Option<usize>,
    /// One log for each declared outcome, in which a trial has only this outcome.
    parts: Vec<Ledger>,
    /// If there are several outcomes: a log in which a trial failed as soon as any of its outcomes failed.
    failures: Option<Box<Ledger>>,
}

impl Ledger {
    /// Creates an empty log of trials of this problem.
    pub(crate) fn new(problem: Arc<Problem>) -> Self {
        Self {
            widths: problem.widths(),
            events: Events::default(),
            times: Vec::new(),
            trials: Vec::new(),
            rows: Vec::new(),
            pending: BTreeSet::new(),
            abandoned: Vec::new(),
            enqueued: Vec::new(),
            n_dequeued: 0,
            n_suggested: 0,
            n_observed: 0,
            ranking: Ranking::default(),
            revisions: Vec::new(),
            revised: Vec::new(),
            shown_from: BTreeMap::new(),
            pending_left_out: BTreeSet::new(),
            n_chosen_left_out: 0,
            notes_from: 0,
            last_withdrawal: None,
            parts: Self::parts_of(&problem),
            failures: Self::failures_of(&problem),
            problem,
        }
    }

    /// Whether outcomes are declared.
    pub(super) fn has_outcomes(&self) -> bool {
        !self.parts.is_empty()
    }

    /// One log for each declared outcome.
    pub(crate) fn parts(&self) -> &[Ledger] {
        &self.parts
    }

    /// The log of the objective, if outcomes are declared and one of them is the objective.
    pub(crate) fn objective_part(&self) -> Option<&Ledger> {
        self.parts.get(self.problem().objective()?)
    }

    /// The log that a model of the objective reads.
    pub(crate) fn of_objective(&self) -> &Ledger {
        self.objective_part().unwrap_or(self)
    }

    /// The log that a model of an outcome reads.
    pub(crate) fn of_outcome(&self, outcome: usize) -> &Ledger {
        &self.parts[outcome]
    }

    /// The log that a model of success reads: a trial failed as soon as any of its outcomes failed.
    pub(crate) fn of_failures(&self) -> Option<&Ledger> {
        self.failures.as_deref()
    }

    /// Reserves capacity for `n_events` further events of `n_bytes`. Half of the events are expected to start trials.
    pub(crate) fn reserve(&mut self, n_events: usize, n_bytes: usize) {
        let n_trials = n_events / 2;
        self.events.reserve(n_events, n_bytes);
        self.times.reserve(n_events);
        self.trials.reserve(n_trials);
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

    /// The wall-clock time when the state of a trial last became observed, failed, abandoned or stopped, if known.
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
        let event = match self.event(self.trials[number].started_by as usize) {
            Event::AddedMeasured { added, .. } => *added,
            event => event,
        };
        let (point, context, note, attrs) = match event {
            Event::Suggested {
                point,
                context,
                note,
                attrs,
                ..
            } => (point, context, note, attrs),
            Event::Added {
                point,
                context,
                attrs,
                ..
            } => (point, context, None, attrs),
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
        let trial = &self.trials[number];
        if let Some(objective) = self.objective_part() {
            return objective.value(number);
        }
        match trial.left_out {
            true => self.revised[number].value,
            false => trial
                .value
                .map(|value| self.problem.direction.oriented(value)),
        }
    }

    /// The point where a trial was suggested or added, in the last problem that has it.
    pub fn started_point(&self, number: TrialNumber) -> Point {
        self.start(number).point
    }

    /// Whether the present problem has the point where a trial was suggested or added.
    fn has_start(&self, number: TrialNumber) -> bool {
        self.problems(number).start == self.n_revisions()
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

    /// The numbers of the pending trials, in ascending order, without the trials that a revision left out.
    pub fn pending(&self) -> &BTreeSet<TrialNumber> {
        &self.pending
    }

    /// The trials that were abandoned after the last value or failure, latest first. Strategies do not suggest the
    /// points of these trials again before the next value or failure.
    pub(crate) fn recently_abandoned(&self) -> Vec<TrialNumber> {
        let placed = |number: &TrialNumber| !self.trials[*number].left_out;
        self.abandoned
            .iter()
            .rev()
            .copied()
            .filter(placed)
            .collect()
    }

    /// The numbers of all pending trials, in ascending order.
    pub(crate) fn all_pending(&self) -> Vec<TrialNumber> {
        self.pending
            .union(&self.pending_left_out)
            .copied()
            .collect()
    }

    /// The number of times that the problem was revised.
    pub fn n_revisions(&self) -> usize {
        self.revisions.len()
    }

    /// The number of trials with a value, without the trials that a revision left out.
    pub fn n_observed(&self) -> usize {
        self.n_observed
    }

    /// The number of the last event that withdrew a result, if any.
    pub(crate) fn last_withdrawal(&self) -> Option<usize> {
        self.last_withdrawal
    }

    /// Whether the result that a trial reported in event number i was withdrawn later.
    pub(crate) fn is_withdrawn_later(&self, number: TrialNumber, i: usize) -> bool {
        let last = self.trials[number].withdrawals().last();
        last.is_some_and(|withdrawal| withdrawal.by as usize > i)
    }

    /// The trial with the largest value at the highest fidelity observed. Of equal values, the trial with the smallest
    /// number is returned. Trials that were run outside the domain are left out.
    pub fn best(&self) -> Option<TrialNumber> {
        match self.has_outcomes() {
            true => self.best_within_bounds(|trial| !trial.is_outside()),
            false => self.ranking.best(),
        }
    }

    /// The trials that [`Ledger::best`] may return if the best trials do not count: by decreasing fidelity, the best
    /// value first.
    pub fn best_first(&self) -> Vec<TrialNumber> {
        let values = self.of_objective();
        let counts = |number: TrialNumber| {
            let trial = &self.trials[number];
            let inside = !self.has_outcomes() || self.is_within_bounds(number);
            let value = values.trials[number]
                .value
                .filter(|_| inside && !trial.is_outside())?;
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
        if self.has_outcomes() {
            return self.best_within_bounds(|_| true);
        }
        let observed = || self.trials.iter().filter(|trial| trial.value.is_some());
        let highest = observed().map(Trial::z).fold(0.0, f64::max);
        let numbered = self.trials.iter().enumerate();
        let values = numbered.filter_map(|(number, trial)| {
            let value = trial.value.filter(|_| trial.z() >= highest - TOLERANCE)?;
            Some((value + 0.0, number)) // −0.0 and 0.0 are equal values
        });
        let order = |a: &(f64, TrialNumber), b: &(f64, TrialNumber)| {
            a.0.total_cmp(&b.0).then_with(|| b.1.cmp(&a.1))
        };
        values.max_by(order).map(|(_, number)| number)
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

    /// Refuses an event that is not valid after the events of the log.
    fn check(&self, event: &Event) -> Result<()> {
        match self.has_outcomes() {
            true => self.check_event(event, Self::allows_for_outcomes),
            false => self.check_event(event, Self::allows),
        }
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
        match self.has_outcomes() {
            true => self.apply_to_outcomes(event)?,
            false => self.apply(event)?,
        }
        self.times.push(event.at().unwrap_or(f64::NAN));
        Ok(())
    }

    /// Computes the counts, sets and ranking from the trials.
    fn recount(&mut self) {
        let left_out = |number: &TrialNumber| self.trials[*number].left_out;
        let (out, placed): (Vec<_>, Vec<_>) = self.all_pending().into_iter().partition(left_out);
        debug_assert!(
            out.iter()
                .chain(&placed)
                .all(|number| self.trials[*number].state == State::Pending)
        );
        self.pending = placed.into_iter().collect();
        self.pending_left_out = out.into_iter().collect();
        self.n_observed = self
            .trials
            .iter()
            .filter(|trial| trial.value.is_some())
            .count();
        let chosen_left_out = self
            .trials
            .iter()
            .filter(|trial| trial.left_out && trial.is_chosen());
        self.n_chosen_left_out = chosen_left_out.count();
        self.ranking = Ranking::default();
        for number in 0..self.trials.len() {
            self.ranking.insert(number, &self.trials);
        }
    }

    /// Removes suggestions from the end of the log until the log has `len` events.
    ///
    /// The removal stops at an event that is not a suggestion, so only drafts of an interrupted batch are removed.
    pub(crate) fn truncate(&mut self, len: usize) {
        while self.len() > len
            && let Event::Suggested { queued, .. } = self.event(self.len() - 1)
        {
            self.n_dequeued -= usize::from(queued);
            self.n_suggested -= 1;
            for part in self.parts.iter_mut().chain(self.failures.as_deref_mut()) {
                part.truncate(part.len() - 1);
            }
            self.events.pop();
            self.times.pop();
            self.trials.pop();
            self.rows
                .truncate(self.trials.len() * (self.widths.0 + self.widths.1));
            self.pending.remove(&self.trials.len());
        }
    }
}

#[cfg(test)]
mod tests;
