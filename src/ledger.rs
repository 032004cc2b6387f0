//! The append-only log of what happened to trials, and the views that are folded from it.
//!
//! Everything the optimizer knows follows from the events; nothing is ever removed, and a value that
//! arrives is always accepted, whatever became of its trial meanwhile.

use std::collections::{BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::gp::Hyperparameters;

/// Trials are numbered from 0 in the order in which they were suggested or added.
pub type TrialNumber = usize;

/// What time is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Clock {
    /// Suggestions started. A result seen before the next suggestion has delay 1.
    Iterations,
    /// Seconds, told by the caller.
    Seconds,
}

/// A fit made for a suggestion: θ and the number of rows that it was made for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fitted {
    pub theta: Hyperparameters,
    pub rows: usize,
}

/// A place: encoded coordinates, and the row number where the domain is a list of candidates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    pub x: Vec<f64>,
    pub index: Option<usize>,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// A trial was started, at a point that the strategy proposed or (`queued`) that was first in the queue.
    Suggested {
        point: Point,
        context: Vec<f64>,
        now: f64,
        fitted: Option<Fitted>,
        queued: bool,
    },
    /// A trial that was started elsewhere, with its value if that is known.
    Added {
        point: Point,
        context: Vec<f64>,
        value: Option<f64>,
        now: f64,
    },
    /// A point to be suggested next.
    Enqueued {
        point: Point,
    },
    Observed {
        number: TrialNumber,
        value: f64,
        now: f64,
    },
    /// An observed value was replaced.
    Amended {
        number: TrialNumber,
        value: f64,
    },
    Failed {
        number: TrialNumber,
        now: f64,
    },
    Abandoned {
        number: TrialNumber,
        now: f64,
    },
}

/// Where a trial is in its life; `Observed` can be reached from everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Pending,
    Observed,
    Failed,
    Abandoned,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            State::Pending => "pending",
            State::Observed => "observed",
            State::Failed => "failed",
            State::Abandoned => "abandoned",
        }
    }
}

/// A trial as the log tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    pub point: Point,
    pub context: Vec<f64>,
    pub state: State,
    pub value: Option<f64>,
    /// On the clock; for an added trial, when it was added.
    pub suggested_at: f64,
    pub observed_at: Option<f64>,
    /// Whether this optimizer suggested it, as against added.
    pub suggested: bool,
}

impl Trial {
    /// Time from suggestion to observation.
    pub fn delay(&self) -> Option<f64> {
        self.observed_at.map(|at| at - self.suggested_at)
    }

    /// Point and context: a row of the model.
    pub fn row(&self) -> impl Iterator<Item = f64> + '_ {
        self.point.x.iter().chain(&self.context).copied()
    }
}

/// The log and its views.
#[derive(Debug, Clone)]
pub struct Ledger {
    clock: Clock,
    events: Vec<Event>,
    trials: Vec<Trial>,
    pending: BTreeSet<TrialNumber>,
    queue: VecDeque<Point>,
    n_suggested: usize,
    n_observed: usize,
    best: Option<TrialNumber>,
}

impl Ledger {
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            events: Vec::new(),
            trials: Vec::new(),
            pending: BTreeSet::new(),
            queue: VecDeque::new(),
            n_suggested: 0,
            n_observed: 0,
            best: None,
        }
    }

    /// The ledger that these events lead to; refuses events that could not have happened.
    pub fn replay(clock: Clock, events: Vec<Event>) -> Result<Self> {
        let mut ledger = Self::new(clock);
        for event in events {
            let number = match &event {
                Event::Observed { number, .. }
                | Event::Amended { number, .. }
                | Event::Failed { number, .. }
                | Event::Abandoned { number, .. } => Some(*number),
                Event::Suggested { .. } | Event::Added { .. } | Event::Enqueued { .. } => None,
            };
            if let Some(number) = number {
                ledger.trial(number)?;
            }
            ledger.apply(event);
        }
        Ok(ledger)
    }

    pub fn clock(&self) -> Clock {
        self.clock
    }

    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// All trials, by number.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    pub fn trial(&self, number: TrialNumber) -> Result<&Trial> {
        self.trials.get(number).ok_or(Error::UnknownTrial {
            number,
            known: self.trials.len(),
        })
    }

    /// Numbers of the pending trials, smallest first.
    pub fn pending(&self) -> &BTreeSet<TrialNumber> {
        &self.pending
    }

    pub fn n_observed(&self) -> usize {
        self.n_observed
    }

    /// The trial of the largest value, the one of the smallest number among equals.
    pub fn best(&self) -> Option<TrialNumber> {
        self.best
    }

    /// The point that was enqueued first and not suggested yet.
    pub fn next_queued(&self) -> Option<&Point> {
        self.queue.front()
    }

    /// The time: suggestions started so far, or the caller's seconds.
    pub fn now(&self, told: Option<f64>) -> Result<f64> {
        match (self.clock, told) {
            (Clock::Iterations, _) => Ok(self.n_suggested as f64),
            (Clock::Seconds, Some(now)) if now.is_finite() => Ok(now),
            (Clock::Seconds, told) => Err(Error::InvalidTime {
                got: told.unwrap_or(f64::NAN),
                expected: "clock=\"seconds\" needs a finite number of seconds",
            }),
        }
    }

    /// Starts a trial.
    pub fn suggest(
        &mut self,
        point: Point,
        context: Vec<f64>,
        now: f64,
        fitted: Option<Fitted>,
        queued: bool,
    ) -> TrialNumber {
        self.apply(Event::Suggested {
            point,
            context,
            now,
            fitted,
            queued,
        });
        self.trials.len() - 1
    }

    /// Takes up a trial that was started elsewhere.
    pub fn add(
        &mut self,
        point: Point,
        context: Vec<f64>,
        value: Option<f64>,
        now: f64,
    ) -> Result<TrialNumber> {
        let number = self.trials.len();
        if let Some(value) = value {
            finite(number, value)?;
        }
        self.apply(Event::Added {
            point,
            context,
            value,
            now,
        });
        Ok(number)
    }

    pub fn enqueue(&mut self, point: Point) {
        self.apply(Event::Enqueued { point });
    }

    /// Records a value. The same value again changes nothing; another one needs `amend`.
    pub fn observe(
        &mut self,
        number: TrialNumber,
        value: f64,
        now: f64,
        amend: bool,
    ) -> Result<()> {
        let known = self.trial(number)?.value;
        finite(number, value)?;
        match known {
            None => self.apply(Event::Observed { number, value, now }),
            Some(known) if known == value => {}
            Some(_) if amend => self.apply(Event::Amended { number, value }),
            Some(known) => {
                return Err(Error::AlreadyObserved {
                    number,
                    value: known,
                });
            }
        }
        Ok(())
    }

    /// Records that a trial crashed: the model keeps its point, at the worst observed value.
    pub fn fail(&mut self, number: TrialNumber, now: f64) -> Result<()> {
        self.resolve(number, State::Failed, Event::Failed { number, now })
    }

    /// Records that nobody waits for a trial any more: the model forgets its point.
    pub fn abandon(&mut self, number: TrialNumber, now: f64) -> Result<()> {
        self.resolve(number, State::Abandoned, Event::Abandoned { number, now })
    }

    fn resolve(&mut self, number: TrialNumber, state: State, event: Event) -> Result<()> {
        let trial = self.trial(number)?;
        if let Some(value) = trial.value {
            return Err(Error::AlreadyObserved { number, value });
        }
        if trial.state != state {
            self.apply(event);
        }
        Ok(())
    }

    /// The fold: the one place where the views change.
    fn apply(&mut self, event: Event) {
        match &event {
            Event::Suggested {
                point,
                context,
                now,
                queued,
                ..
            } => {
                if *queued {
                    self.queue.pop_front();
                }
                self.n_suggested += 1;
                self.start(point.clone(), context.clone(), *now, true);
            }
            Event::Added {
                point,
                context,
                value,
                now,
            } => {
                let number = self.start(point.clone(), context.clone(), *now, false);
                if let Some(value) = value {
                    self.set_value(number, *value, *now);
                }
            }
            Event::Enqueued { point } => self.queue.push_back(point.clone()),
            Event::Observed { number, value, now } => self.set_value(*number, *value, *now),
            Event::Amended { number, value } => {
                self.trials[*number].value = Some(*value);
                self.best = self.best_of_all();
            }
            Event::Failed { number, .. } => self.leave_pending(*number, State::Failed),
            Event::Abandoned { number, .. } => self.leave_pending(*number, State::Abandoned),
        }
        self.events.push(event);
    }

    fn start(&mut self, point: Point, context: Vec<f64>, now: f64, suggested: bool) -> TrialNumber {
        let number = self.trials.len();
        self.trials.push(Trial {
            point,
            context,
            state: State::Pending,
            value: None,
            suggested_at: now,
            observed_at: None,
            suggested,
        });
        self.pending.insert(number);
        number
    }

    fn set_value(&mut self, number: TrialNumber, value: f64, now: f64) {
        self.leave_pending(number, State::Observed);
        let trial = &mut self.trials[number];
        trial.value = Some(value);
        trial.observed_at = Some(now);
        self.n_observed += 1;
        // The smallest number of equals, whatever the order they arrive in.
        let beaten = |best: TrialNumber| {
            let top = self.trials[best].value;
            top < Some(value) || (top == Some(value) && number < best)
        };
        if self.best.is_none_or(beaten) {
            self.best = Some(number);
        }
    }

    fn leave_pending(&mut self, number: TrialNumber, state: State) {
        self.pending.remove(&number);
        self.trials[number].state = state;
    }

    fn best_of_all(&self) -> Option<TrialNumber> {
        let mut best: Option<(TrialNumber, f64)> = None;
        for (number, trial) in self.trials.iter().enumerate() {
            if let Some(value) = trial.value
                && best.is_none_or(|(_, top)| value > top)
            {
                best = Some((number, value));
            }
        }
        best.map(|(number, _)| number)
    }
}

fn finite(number: TrialNumber, value: f64) -> Result<()> {
    if value.is_finite() {
        Ok(())
    } else {
        Err(Error::InvalidValue { number, got: value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn started(clock: Clock, n: usize) -> Ledger {
        let mut ledger = Ledger::new(clock);
        for k in 0..n {
            let now = ledger.now(Some(10.0 * k as f64)).unwrap();
            ledger.suggest(point(k as f64), vec![], now, None, false);
        }
        ledger
    }

    fn point(x: f64) -> Point {
        Point {
            x: vec![x],
            index: None,
        }
    }

    #[test]
    fn a_value_is_accepted_from_every_state() {
        let mut ledger = started(Clock::Iterations, 3);
        ledger.fail(1, 3.0).unwrap();
        ledger.abandon(2, 3.0).unwrap();
        for number in 0..3 {
            ledger.observe(number, number as f64, 3.0, false).unwrap();
            assert_eq!(ledger.trial(number).unwrap().state, State::Observed);
        }
        assert_eq!(ledger.best(), Some(2));
        assert!(ledger.pending().is_empty());
    }

    #[test]
    fn delays_count_suggestions_or_seconds() {
        let mut ledger = started(Clock::Iterations, 5);
        ledger
            .observe(4, 0.5, ledger.now(None).unwrap(), false)
            .unwrap();
        ledger
            .observe(1, 0.5, ledger.now(None).unwrap(), false)
            .unwrap();
        assert_eq!(ledger.trial(4).unwrap().delay(), Some(1.0));
        assert_eq!(ledger.trial(1).unwrap().delay(), Some(4.0));
        let mut ledger = started(Clock::Seconds, 2);
        ledger.observe(1, 0.5, 99.5, false).unwrap();
        assert_eq!(ledger.trial(1).unwrap().delay(), Some(89.5));
        assert!(matches!(ledger.now(None), Err(Error::InvalidTime { .. })));
    }

    #[test]
    fn refusals_leave_the_ledger_as_it_was() {
        let mut ledger = started(Clock::Iterations, 2);
        ledger.observe(0, 1.0, 2.0, false).unwrap();
        let before = ledger.events().to_vec();
        ledger.observe(0, 1.0, 7.0, false).unwrap(); // the same again: nothing happens
        for (result, expected) in [
            (
                ledger.observe(0, 2.0, 2.0, false),
                Error::AlreadyObserved {
                    number: 0,
                    value: 1.0,
                },
            ),
            (
                ledger.fail(0, 2.0),
                Error::AlreadyObserved {
                    number: 0,
                    value: 1.0,
                },
            ),
            (
                ledger.observe(1, f64::INFINITY, 2.0, false),
                Error::InvalidValue {
                    number: 1,
                    got: f64::INFINITY,
                },
            ),
            (
                ledger.abandon(2, 2.0),
                Error::UnknownTrial {
                    number: 2,
                    known: 2,
                },
            ),
        ] {
            assert_eq!(result, Err(expected));
        }
        assert!(ledger.add(point(0.0), vec![], Some(f64::NAN), 2.0).is_err());
        assert_eq!(ledger.events(), before);
        assert_eq!(ledger.trial(1).unwrap().state, State::Pending);
    }

    #[test]
    fn amending_the_best_value_finds_the_new_best() {
        let mut ledger = started(Clock::Iterations, 3);
        for (number, value) in [(0, 1.0), (1, 3.0), (2, 2.0)] {
            ledger.observe(number, value, 3.0, false).unwrap();
        }
        ledger.observe(1, 0.0, 3.0, true).unwrap();
        assert_eq!(ledger.best(), Some(2));
    }

    proptest! {
        /// State = log: replaying the events gives the same views, and every trial is in exactly one state.
        #[test]
        fn replaying_the_log_gives_the_same_ledger(steps in prop::collection::vec((0u8..6, 0usize..12, -3i8..3), 0..80)) {
            let mut ledger = Ledger::new(Clock::Iterations);
            for (kind, number, value) in steps {
                let now = ledger.now(None).unwrap();
                match kind {
                    0 => ledger.enqueue(point(value.into())),
                    1 => { ledger.observe(number, value.into(), now, value < 0).ok(); }
                    2 => { ledger.fail(number, now).ok(); }
                    3 => { ledger.abandon(number, now).ok(); }
                    4 => { ledger.add(point(value.into()), vec![], (value > 0).then_some(value.into()), now).unwrap(); }
                    _ => {
                        let queued = ledger.next_queued().cloned();
                        let (is_queued, at) = (queued.is_some(), queued.unwrap_or(point(0.5)));
                        ledger.suggest(at, vec![], now, None, is_queued);
                    }
                }
            }
            let again = Ledger::replay(Clock::Iterations, ledger.events().to_vec()).unwrap();
            prop_assert_eq!(again.trials(), ledger.trials());
            prop_assert_eq!(again.best(), ledger.best());
            prop_assert_eq!(again.best(), again.best_of_all());
            prop_assert_eq!(again.next_queued(), ledger.next_queued());
            prop_assert_eq!(again.pending(), ledger.pending());
            for (number, trial) in ledger.trials().iter().enumerate() {
                prop_assert_eq!(trial.state == State::Pending, ledger.pending().contains(&number));
                prop_assert_eq!(trial.state == State::Observed, trial.value.is_some());
            }
        }
    }

    #[test]
    fn events_about_unknown_trials_are_refused() {
        let events = vec![Event::Failed {
            number: 0,
            now: 0.0,
        }];
        assert!(Ledger::replay(Clock::Iterations, events).is_err());
    }
}
