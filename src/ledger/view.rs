//! Views: the log as a strategy reads it. A view shows whole trials, one outcome of each trial, or where trials succeed.
//!
//! In a view, larger values are better. A strategy reads the *changes* of a view event by event, and otherwise only data
//! of trials that results do not change.

use std::cmp::Ordering;
use std::ops::Deref;

use crate::error::Result;
use crate::ledger::event::{
    Event, Failure, Happened, Mark, Reading, TrialNumber, What, split_notes,
};
use crate::ledger::results::{Column, Entry, Withdrawal};
use crate::ledger::{Ledger, State, Trial};
use crate::problem::{Curve, Direction, Point};

/// A view of the log, whose other data are read from `log`.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The log.
    pub log: &'a Ledger,
    of: Of,
    /// The column that the view shows, and the column that has the values.
    column: usize,
    valued: Option<usize>,
    direction: Direction,
    curve: Option<Curve>,
}

/// What a view shows.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Of {
    /// Whole trials, with the value of the objective.
    Trial,
    Outcome,
    Success,
}

/// A trial in a view.
#[derive(Debug, Clone, Copy)]
pub struct Viewed<'a> {
    trial: &'a Trial,
    entry: Entry<'a>,
    /// The result from which the value and its std are read, which may differ from `entry`.
    valued: Option<Entry<'a>>,
    direction: Direction,
    has_curve: bool,
}

/// The change of one trial by one event, in a view.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub number: TrialNumber,
    pub effect: Effect,
}

/// The effect of an event on its trial, as of that event. Later events do not alter it.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// The trial was started. A trial that was added may have a value from the start.
    Started {
        /// Whether this optimizer suggested the trial. False if the trial was added.
        suggested: bool,
        /// The note of the strategy that proposed the point.
        note: Option<String>,
        reading: Option<Reading>,
    },
    /// The trial has this value from now on, which may replace an earlier value.
    Valued {
        reading: Reading,
        /// The point where the trial was run, if it was reported with the value.
        run: Option<Point>,
    },
    Failed,
    /// The evaluation was ended early. The learning curve is still used.
    Stopped,
    /// The trial lacks a value, and its result is no longer expected.
    Dropped,
    /// The value, the failure or the curve of the trial was taken back.
    Withdrawn,
    /// The point where the trial was run has changed, and the result has not.
    Moved,
    /// The learning curve has another step, or another outcome of the trial has changed.
    Reported,
}

impl Ledger {
    /// The view of whole trials. The value of a trial is the value of its objective.
    pub fn view(&self) -> View<'_> {
        self.view_of(Of::Trial, self.trial_column())
    }

    /// The view that a model of the objective reads, or of the first objective of a front. Without an objective, it is the
    /// view of whole trials.
    pub(crate) fn objective(&self) -> View<'_> {
        self.objective_column()
            .or_else(|| self.problem.first_objective())
            .map_or(self.view(), |outcome| self.outcome(outcome))
    }

    /// The view that a model of an outcome reads.
    pub(crate) fn outcome(&self, outcome: usize) -> View<'_> {
        self.view_of(Of::Outcome, outcome)
    }

    /// The view that a model of success reads: a trial failed as soon as any of its outcomes failed.
    pub(crate) fn success(&self) -> View<'_> {
        match self.n_outcomes() {
            1 => self.objective(),
            n => self.view_of(Of::Success, n + 1),
        }
    }

    fn view_of(&self, of: Of, column: usize) -> View<'_> {
        let objective = self.objective_column();
        let outcome = Some(column).filter(|_| of == Of::Outcome);
        let has_curve = match of {
            Of::Trial => true,
            Of::Outcome => outcome == objective,
            Of::Success => false,
        };
        View {
            log: self,
            of,
            column,
            valued: match of {
                Of::Trial => objective,
                Of::Outcome => outcome,
                Of::Success => None,
            },
            direction: self.problem.direction_of(outcome),
            curve: self.problem.curve.filter(|_| has_curve),
        }
    }
}

impl<'a> View<'a> {
    fn column(self) -> &'a Column {
        &self.log.columns[self.column]
    }

    /// The declared learning curve of the values.
    pub fn curve(self) -> Option<Curve> {
        self.curve
    }

    /// The trial with this number.
    pub fn of(self, number: TrialNumber) -> Viewed<'a> {
        Viewed {
            trial: &self.log.trials[number],
            entry: self.log.entry(number, self.column),
            valued: self.valued.map(|column| self.log.entry(number, column)),
            direction: self.direction,
            has_curve: self.curve.is_some(),
        }
    }

    /// The trial with this number, or an error if it does not exist.
    pub fn trial(self, number: TrialNumber) -> Result<Viewed<'a>> {
        self.log.trial(number).map(|_| self.of(number))
    }

    /// All trials, by number.
    pub fn trials(self) -> impl Iterator<Item = Viewed<'a>> + Clone {
        (0..self.log.trials.len()).map(move |number| self.of(number))
    }

    /// The numbers of the pending trials, in ascending order, without the trials that a revision left out.
    pub fn pending(self) -> impl Iterator<Item = TrialNumber> + 'a {
        let placed = move |number: &TrialNumber| !self.log.trials[*number].left_out;
        self.all_pending().filter(placed)
    }

    /// The numbers of all pending trials, in ascending order.
    pub(crate) fn all_pending(self) -> impl Iterator<Item = TrialNumber> + 'a {
        let pending = move |number: &TrialNumber| self.of(*number).state() == State::Pending;
        // Success may be unknown in a trial without a missing result.
        let (all, missing) = match self.of {
            Of::Success => (0..self.n_trials(), None),
            Of::Trial | Of::Outcome => (0..0, Some(&self.log.pending)),
        };
        all.chain(missing.into_iter().flatten().copied())
            .filter(pending)
    }

    /// The number of trials with a value, without the trials that a revision left out.
    pub fn n_observed(self) -> usize {
        self.valued
            .map_or(0, |column| self.log.columns[column].n_observed)
    }

    /// Whether any outcome of a trial was observed or failed.
    pub(crate) fn has_result(self, number: TrialNumber) -> bool {
        let mut results = self.log.results(number);
        results.any(|it| matches!(it.state(), State::Observed | State::Failed))
    }

    /// The trials that were abandoned after the last value or failure, latest first. Strategies do not suggest the
    /// points of these trials again before the next value or failure.
    pub(crate) fn recently_abandoned(self) -> Vec<TrialNumber> {
        let placed = |number: &TrialNumber| !self.log.trials[*number].left_out;
        let abandoned = self.column().abandoned.iter().rev().copied();
        abandoned.filter(placed).collect()
    }

    /// The wall-clock time when the state of a trial last became observed, failed, abandoned or stopped, if known.
    pub(crate) fn finished_at(self, number: TrialNumber) -> Option<f64> {
        self.log.time(self.last_event(number)?)
    }

    /// Who caused the event that ended a trial, if known.
    pub(crate) fn finished_by(self, number: TrialNumber) -> Option<String> {
        self.log.author(self.last_event(number)?)
    }

    /// The number of the event that ended a trial.
    fn last_event(self, number: TrialNumber) -> Option<usize> {
        let trial = self.of(number);
        trial.ended_at()?;
        Some(trial.ended_by() as usize)
    }

    /// Whether the result that a trial reported in event number i was withdrawn later.
    pub(crate) fn is_withdrawn_later(self, number: TrialNumber, i: usize) -> bool {
        let last = self.of(number).withdrawals().last();
        last.is_some_and(|withdrawal| withdrawal.by as usize > i)
    }

    /// The changes by event number i.
    pub(crate) fn changes(self, i: usize) -> impl Iterator<Item = Change> {
        let [first, second] = self.changes_by(i);
        first.into_iter().chain(second)
    }

    fn changes_by(self, i: usize) -> [Option<Change>; 2] {
        let event = self.log.event(i);
        // The number of a started trial is the number of trials before its event.
        let before = |trial: &Trial| (trial.started_by as usize) < i;
        let number = match &event.what {
            What::Suggested(_) | What::Added(_) => Some(self.log.trials.partition_point(before)),
            _ => event.trial_number(0),
        };
        let Some(number) = number else {
            return [None, None];
        };
        let from = self.column().shown_from.get(&number);
        let change = |effect: Effect| Change { number, effect };
        match from.map(|from| i.cmp(&(*from as usize))) {
            Some(Ordering::Less) => [None, None],
            Some(Ordering::Equal) => {
                // The strategy does not know the trial yet.
                let reading = self
                    .effects(i, number, event)
                    .into_iter()
                    .flatten()
                    .find_map(|effect| match effect {
                        Effect::Started { reading, .. } => reading,
                        Effect::Valued { reading, .. } => Some(reading),
                        _ => None,
                    });
                let started = Effect::Started {
                    suggested: false,
                    note: None,
                    reading,
                };
                [Some(change(started)), None]
            }
            _ => self.effects(i, number, event).map(|it| it.map(change)),
        }
    }

    fn effects(self, i: usize, number: TrialNumber, event: Event) -> [Option<Effect>; 2] {
        let log = self.log;
        let position = log.position_at(i, self.column());
        let started = |suggested, note, reading| Effect::Started {
            suggested,
            note,
            reading,
        };
        let oriented = |reading: Reading| Reading {
            value: self.direction.oriented(reading.value),
            ..reading
        };
        match (event.what, self.of) {
            (What::Enqueued(_) | What::Revised(_) | What::Noted(_), _) => [None, None],
            (What::Suggested(it), _) => {
                let note = it
                    .note
                    .filter(|_| log.era_at(i) >= self.column().notes_from);
                let is_split = self.of != Of::Trial && !log.is_plain_at(i);
                let note = note.and_then(|note| match (position, is_split) {
                    (Some(position), true) => split_notes(&note).ok()?.into_iter().nth(position)?,
                    _ => Some(note),
                });
                [Some(started(true, note, None)), None]
            }
            (What::Added(_), Of::Trial) if !log.is_plain_at(i) => {
                [Some(started(false, None, None)), None]
            }
            (What::Added(_), Of::Success) => {
                [Some(started(false, None, None)), self.of_success(i).next()]
            }
            (What::Added(it), _) => {
                let known = it.results.iter();
                let mut known = known.filter(|(at, _)| Some(*at as usize) == position);
                let reading = known.next().map(|(_, reading)| oriented(*reading));
                let dropped = reading.is_none() && !it.awaited;
                [
                    Some(started(false, None, reading)),
                    dropped.then_some(Effect::Dropped),
                ]
            }
            (What::Reported(_), _) => [self.curve.map(|_| Effect::Reported), None],
            (What::Resulted(it), Of::Success) => {
                let moved = it.data().point.as_ref().map(|_| Effect::Moved);
                let mut effects = moved.into_iter().chain(self.of_success(i));
                [effects.next(), effects.next()]
            }
            (What::Resulted(it), _) => {
                let mut own = it.results.iter();
                let own = own.find(|(at, _)| Some(*at as usize) == position);
                let run = it.data.and_then(|data| data.point);
                let valued = |reading: &Reading| Effect::Valued {
                    reading: oriented(*reading),
                    run: run.clone().map(|point| log.present_point(i, number, point)),
                };
                let effect = own.map(|(_, happened)| match happened {
                    Happened::New(reading) | Happened::Amended(reading) => valued(reading),
                    Happened::Failed => Effect::Failed,
                    Happened::Abandoned => Effect::Dropped,
                    Happened::Stopped => Effect::Stopped,
                    Happened::Withdrawn { .. } => Effect::Withdrawn,
                });
                let other = match self.of {
                    Of::Trial => Some(Effect::Reported),
                    _ => run.is_some().then_some(Effect::Moved),
                };
                [effect.or(other), None]
            }
        }
    }

    /// The changes of success by event number i.
    fn of_success(self, i: usize) -> impl Iterator<Item = Effect> {
        let all = &self.log.success_changes;
        let first = all.partition_point(|change| (change.event as usize) < i);
        let own = all[first..].iter();
        let own = own.take_while(move |change| change.event as usize == i);
        own.map(move |change| match change.state {
            State::Observed => Effect::Valued {
                reading: Reading::default(),
                run: None,
            },
            State::Failed => Effect::Failed,
            _ => Effect::Withdrawn,
        })
    }
}

impl Deref for View<'_> {
    type Target = Ledger;

    fn deref(&self) -> &Ledger {
        self.log
    }
}

impl<'a> Viewed<'a> {
    /// The state of the result.
    pub fn state(self) -> State {
        self.entry.state()
    }

    /// The value, oriented so that larger values are better. A trial that is left out does not have a value.
    pub fn value(self) -> Option<f64> {
        let value = self.valued.filter(|_| !self.trial.left_out)?.value()?;
        Some(self.direction.oriented(value))
    }

    /// The value in the user's sign. A trial that is left out has its value.
    pub(crate) fn reported_value(self) -> Option<f64> {
        self.valued?.value()
    }

    /// The error of a failed result, if reported.
    pub(crate) fn failure(self) -> Option<&'a Failure> {
        self.entry.error()
    }

    /// The standard deviation of the noise of the value, if reported.
    pub fn std(self) -> Option<f64> {
        self.valued?.std()
    }

    /// The mark of the value, if nobody has confirmed the value. Only warnings and tables read marks.
    pub(crate) fn mark(self) -> Option<Mark> {
        self.valued?.mark()
    }

    /// The state or, if the result was withdrawn, the state before the withdrawal. Delays and durations use the outcome,
    /// because the result has arrived.
    pub(crate) fn outcome(self) -> State {
        self.entry.outcome()
    }

    /// Whether the result was withdrawn. Another result may be awaited.
    pub(crate) fn is_withdrawn(self) -> bool {
        self.state() != self.outcome()
    }

    /// The time when the state last became another state than pending, on the optimizer's clock.
    pub(crate) fn ended_at(self) -> Option<f64> {
        (self.entry.state() != State::Pending).then(|| self.entry.ended_at())
    }

    /// The latest time at which the trial started or ended.
    pub(super) fn last_time(self) -> f64 {
        self.entry.ended_at()
    }

    /// The number of the event that last changed the state from pending to another state.
    pub(crate) fn ended_by(self) -> u32 {
        self.entry.stored.ended_by
    }

    /// Whether the models leave the trial out, because it was abandoned or withdrawn.
    pub(crate) fn is_dropped(self) -> bool {
        self.entry.state().is_dropped()
    }

    /// The results that were taken back, in order.
    pub(crate) fn withdrawals(self) -> &'a [Withdrawal] {
        self.entry.withdrawals()
    }

    /// The time of the observation, on the optimizer's clock. For a withdrawn value, this is the time of its arrival.
    pub fn observed_at(self) -> Option<f64> {
        (self.outcome() == State::Observed).then(|| self.entry.ended_at())
    }

    /// The time from suggestion to observation.
    pub fn delay(self) -> Option<f64> {
        self.observed_at().map(|at| at - self.trial.suggested_at)
    }

    /// The reported steps of the learning curve in ascending order, with oriented values. The value of a failed step is
    /// None.
    pub fn curve(
        self,
    ) -> impl DoubleEndedIterator<Item = (u32, Option<f64>)> + ExactSizeIterator + Clone + use<'a>
    {
        let reports = match self.has_curve {
            true => self.trial.reports(),
            false => &[],
        };
        let direction = self.direction;
        let oriented = move |y: Option<f64>| y.map(|y| direction.oriented(y));
        reports.iter().map(move |&(step, y)| (step, oriented(y)))
    }
}

impl Deref for Viewed<'_> {
    type Target = Trial;

    fn deref(&self) -> &Trial {
        self.trial
    }
}
