//! The append-only log of what happened to trials, and the views that are folded from it.
//!
//! Everything the optimizer knows follows from the events; nothing is ever removed, and a value that
//! arrives is always accepted, whatever became of its trial meanwhile.

mod event;

use std::collections::{BTreeSet, VecDeque};

pub use event::{Action, Clock, Event, Fitted, Point, TrialNumber};

use crate::error::{Error, Result};

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
    /// The standard deviation of the value's noise, where it came with it.
    pub std: Option<f64>,
    /// On the clock; for an added trial, when it was added.
    pub suggested_at: f64,
    pub observed_at: Option<f64>,
    /// Whether this optimizer suggested it, as against added.
    pub suggested: bool,
    /// Wall-clock seconds after which it no longer counts as arriving.
    pub expires_at: Option<f64>,
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
            ledger.append(event)?;
        }
        Ok(ledger)
    }

    /// Appends an event; refuses one that could not have happened.
    pub fn append(&mut self, event: Event) -> Result<()> {
        if !self.allows(&event)? {
            return Err(Error::Corrupt(format!(
                "event {} of the log could not have happened: {event:?}",
                self.events.len()
            )));
        }
        self.apply(event);
        Ok(())
    }

    fn allows(&self, event: &Event) -> Result<bool> {
        let has_value = |number: &TrialNumber| Ok(self.trial(*number)?.value.is_some());
        Ok(match event {
            Event::Suggested {
                now,
                queued,
                expires_at,
                ..
            } => {
                now.is_finite()
                    && expires_at.is_none_or(f64::is_finite)
                    && (!queued || self.next_queued().is_some())
            }
            Event::Added {
                value, std, now, ..
            } => {
                now.is_finite()
                    && value.is_none_or(f64::is_finite)
                    && std.is_none_or(|s| is_deviation(s) && value.is_some())
            }
            Event::Enqueued { .. } => true,
            Event::Observed {
                number,
                value,
                std,
                now,
            } => {
                value.is_finite()
                    && std.is_none_or(is_deviation)
                    && now.is_finite()
                    && !has_value(number)?
            }
            Event::Amended { number, value, std } => {
                value.is_finite() && std.is_none_or(is_deviation) && has_value(number)?
            }
            Event::Failed { number, now } | Event::Abandoned { number, now } => {
                now.is_finite() && !has_value(number)?
            }
        })
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
    pub fn now(&self, now: Option<f64>) -> Result<f64> {
        match (self.clock, now) {
            (Clock::Iterations, _) => Ok(self.n_suggested as f64),
            (Clock::Seconds, Some(now)) if now.is_finite() => Ok(now),
            (Clock::Seconds, now) => Err(Error::InvalidTime {
                got: now.unwrap_or(f64::NAN),
                expected: "clock=\"seconds\" needs a finite number of seconds",
            }),
        }
    }

    /// The event that an action amounts to; None where it changes nothing.
    pub fn draft(&self, action: Action, now: f64) -> Result<Option<Event>> {
        Ok(match action {
            Action::Observe {
                number,
                value,
                std,
                amend,
            } => {
                let trial = self.trial(number)?;
                finite(number, value)?;
                deviation(number, std)?;
                match trial.value {
                    None => Some(Event::Observed {
                        number,
                        value,
                        std,
                        now,
                    }),
                    Some(known) if known == value && (std.is_none() || std == trial.std) => None,
                    Some(_) if amend => Some(Event::Amended { number, value, std }),
                    Some(value) => return Err(Error::AlreadyObserved { number, value }),
                }
            }
            Action::Fail { number } => {
                let failed = self.unobserved(number)? == State::Failed;
                (!failed).then_some(Event::Failed { number, now })
            }
            Action::Abandon { number } => {
                let abandoned = self.unobserved(number)? == State::Abandoned;
                (!abandoned).then_some(Event::Abandoned { number, now })
            }
            Action::Add {
                point,
                context,
                value,
                std,
            } => {
                let std = std.filter(|_| value.is_some());
                if let Some(value) = value {
                    finite(self.trials.len(), value)?;
                }
                deviation(self.trials.len(), std)?;
                Some(Event::Added {
                    point,
                    context,
                    value,
                    std,
                    now,
                })
            }
            Action::Enqueue { point } => Some(Event::Enqueued { point }),
        })
    }

    /// The state of a trial that has no value.
    fn unobserved(&self, number: TrialNumber) -> Result<State> {
        let trial = self.trial(number)?;
        match trial.value {
            Some(value) => Err(Error::AlreadyObserved { number, value }),
            None => Ok(trial.state),
        }
    }

    /// The fold: the one place where the views change.
    fn apply(&mut self, event: Event) {
        match &event {
            Event::Suggested {
                point,
                context,
                now,
                queued,
                expires_at,
                ..
            } => {
                if *queued {
                    self.queue.pop_front();
                }
                self.n_suggested += 1;
                let number = self.start(point.clone(), context.clone(), *now, true);
                self.trials[number].expires_at = *expires_at;
            }
            Event::Added {
                point,
                context,
                value,
                std,
                now,
            } => {
                let number = self.start(point.clone(), context.clone(), *now, false);
                if let Some(value) = value {
                    self.set_value(number, *value, *std, *now);
                }
            }
            Event::Enqueued { point } => self.queue.push_back(point.clone()),
            Event::Observed {
                number,
                value,
                std,
                now,
            } => self.set_value(*number, *value, *std, *now),
            Event::Amended { number, value, std } => {
                self.trials[*number].value = Some(*value);
                self.trials[*number].std = *std;
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
            std: None,
            suggested_at: now,
            observed_at: None,
            suggested,
            expires_at: None,
        });
        self.pending.insert(number);
        number
    }

    fn set_value(&mut self, number: TrialNumber, value: f64, std: Option<f64>, now: f64) {
        self.leave_pending(number, State::Observed);
        let trial = &mut self.trials[number];
        trial.value = Some(value);
        trial.std = std;
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

fn is_deviation(std: f64) -> bool {
    std >= 0.0 && std.is_finite()
}

fn deviation(number: TrialNumber, std: Option<f64>) -> Result<()> {
    match std {
        Some(got) if !is_deviation(got) => Err(Error::InvalidDeviation { number, got }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Logs an action, as the optimizer does.
    fn act(ledger: &mut Ledger, action: Action, now: f64) -> Result<()> {
        ledger
            .draft(action, now)?
            .map_or(Ok(()), |event| ledger.append(event))
    }

    fn observe(
        ledger: &mut Ledger,
        number: usize,
        value: f64,
        now: f64,
        amend: bool,
    ) -> Result<()> {
        let action = Action::Observe {
            number,
            value,
            std: None,
            amend,
        };
        act(ledger, action, now)
    }

    fn suggest(ledger: &mut Ledger, point: Point, now: f64, queued: bool) {
        let event = Event::Suggested {
            point,
            context: vec![],
            now,
            fitted: None,
            queued,
            expires_at: None,
        };
        ledger.append(event).unwrap();
    }

    fn started(clock: Clock, n: usize) -> Ledger {
        let mut ledger = Ledger::new(clock);
        for k in 0..n {
            let now = ledger.now(Some(10.0 * k as f64)).unwrap();
            suggest(&mut ledger, point(k as f64), now, false);
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
        act(&mut ledger, Action::Fail { number: 1 }, 3.0).unwrap();
        act(&mut ledger, Action::Abandon { number: 2 }, 3.0).unwrap();
        for number in 0..3 {
            observe(&mut ledger, number, number as f64, 3.0, false).unwrap();
            assert_eq!(ledger.trial(number).unwrap().state, State::Observed);
        }
        assert_eq!(ledger.best(), Some(2));
        assert!(ledger.pending().is_empty());
    }

    #[test]
    fn delays_count_suggestions_or_seconds() {
        let mut ledger = started(Clock::Iterations, 5);
        observe(&mut ledger, 4, 0.5, 5.0, false).unwrap();
        observe(&mut ledger, 1, 0.5, 5.0, false).unwrap();
        assert_eq!(ledger.trial(4).unwrap().delay(), Some(1.0));
        assert_eq!(ledger.trial(1).unwrap().delay(), Some(4.0));
        let mut ledger = started(Clock::Seconds, 2);
        observe(&mut ledger, 1, 0.5, 99.5, false).unwrap();
        assert_eq!(ledger.trial(1).unwrap().delay(), Some(89.5));
        assert!(matches!(ledger.now(None), Err(Error::InvalidTime { .. })));
    }

    #[test]
    fn refusals_leave_the_ledger_as_it_was() {
        let mut ledger = started(Clock::Iterations, 2);
        observe(&mut ledger, 0, 1.0, 2.0, false).unwrap();
        let before = ledger.events().to_vec();
        observe(&mut ledger, 0, 1.0, 7.0, false).unwrap(); // the same again: nothing happens
        for (result, expected) in [
            (
                observe(&mut ledger, 0, 2.0, 2.0, false),
                Error::AlreadyObserved {
                    number: 0,
                    value: 1.0,
                },
            ),
            (
                act(&mut ledger, Action::Fail { number: 0 }, 2.0),
                Error::AlreadyObserved {
                    number: 0,
                    value: 1.0,
                },
            ),
            (
                observe(&mut ledger, 1, f64::INFINITY, 2.0, false),
                Error::InvalidValue {
                    number: 1,
                    got: f64::INFINITY,
                },
            ),
            (
                act(&mut ledger, Action::Abandon { number: 2 }, 2.0),
                Error::UnknownTrial {
                    number: 2,
                    known: 2,
                },
            ),
        ] {
            assert_eq!(result, Err(expected));
        }
        assert!(
            act(
                &mut ledger,
                Action::Add {
                    point: point(0.0),
                    context: vec![],
                    value: Some(f64::NAN),
                    std: None,
                },
                2.0
            )
            .is_err()
        );
        assert_eq!(ledger.events(), before);
        assert_eq!(ledger.trial(1).unwrap().state, State::Pending);
    }

    #[test]
    fn amending_the_best_value_finds_the_new_best() {
        let mut ledger = started(Clock::Iterations, 3);
        for (number, value) in [(0, 1.0), (1, 3.0), (2, 2.0)] {
            observe(&mut ledger, number, value, 3.0, false).unwrap();
        }
        observe(&mut ledger, 1, 0.0, 3.0, true).unwrap();
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
                    0 => act(&mut ledger, Action::Enqueue { point: point(value.into()) }, now).unwrap(),
                    1 => { observe(&mut ledger, number, value.into(), now, value < 0).ok(); }
                    2 => { act(&mut ledger, Action::Fail { number }, now).ok(); }
                    3 => { act(&mut ledger, Action::Abandon { number }, now).ok(); }
                    4 => { act(&mut ledger, Action::Add { point: point(value.into()), context: vec![], value: (value > 0).then_some(value.into()), std: None }, now).unwrap(); }
                    _ => {
                        let queued = ledger.next_queued().cloned();
                        let (is_queued, at) = (queued.is_some(), queued.unwrap_or(point(0.5)));
                        suggest(&mut ledger, at, now, is_queued);
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
    fn events_that_could_not_have_happened_are_refused() {
        let value = |number, value| Event::Observed {
            number,
            value,
            std: None,
            now: 2.0,
        };
        let mut ledger = started(Clock::Iterations, 2);
        observe(&mut ledger, 0, 1.0, 2.0, false).unwrap();
        let possible = ledger.events().to_vec();
        let replayed = |event| {
            let events = [possible.clone(), vec![event]].concat();
            Ledger::replay(Clock::Iterations, events).map(|_| ())
        };
        assert_eq!(replayed(value(1, 1.0)), Ok(()));
        for event in [
            value(0, 2.0),
            value(1, f64::NAN),
            Event::Amended {
                number: 1,
                value: 1.0,
                std: None,
            },
            Event::Amended {
                number: 0,
                value: 1.0,
                std: Some(-1.0),
            },
            Event::Observed {
                number: 1,
                value: 1.0,
                std: Some(f64::INFINITY),
                now: 2.0,
            },
            Event::Failed {
                number: 0,
                now: 2.0,
            },
            Event::Suggested {
                point: point(0.0),
                context: vec![],
                now: 2.0,
                fitted: None,
                queued: true,
                expires_at: None,
            },
            Event::Added {
                point: point(0.0),
                context: vec![],
                value: None,
                std: None,
                now: f64::INFINITY,
            },
            Event::Added {
                point: point(0.0),
                context: vec![],
                value: None,
                std: Some(1.0),
                now: 2.0,
            },
        ] {
            assert!(matches!(replayed(event), Err(Error::Corrupt(_))));
        }
        assert!(matches!(
            replayed(value(2, 1.0)),
            Err(Error::UnknownTrial { .. })
        ));
    }
}
