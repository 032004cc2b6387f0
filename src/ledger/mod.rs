//! The append-only log of what happened to trials, and the views that are folded from it; it knows no model.
//!
//! * [`event`]: what can happen, as data
//! * [`rules`]: what may happen
//! * [`views`]: what became of a trial
//!
//! Everything the optimizer knows follows from the events; nothing that was accepted is ever removed, and a value
//! that arrives is always accepted, whatever became of its trial meanwhile. Drafts of suggestions alone can be taken
//! back, by [`Ledger::truncate`].
//!
//! A trial's point and context are kept once, as a row of one array; the log itself keeps what an event adds.

pub mod event;
mod rules;
mod views;

use std::collections::BTreeSet;

pub use event::{Action, Clock, Event, Point, TrialNumber};
pub use views::{State, Trial};

use views::{Details, Ranking};

use crate::error::{Error, Result};

/// An event as the log keeps it, for strategies to fold: what its trial started with stands in the trial and its row.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    Suggested {
        number: u32,
        queued: bool,
    },
    Added {
        number: u32,
        value: Option<f64>,
        noise: Option<Box<Noise>>,
    },
    /// The point is number `position` of all that were ever enqueued.
    Enqueued {
        position: u32,
    },
    Observed {
        number: u32,
        value: f64,
        noise: Option<Box<Noise>>,
        now: f64,
    },
    Amended {
        number: u32,
        value: f64,
        noise: Option<Box<Noise>>,
    },
    Failed {
        number: u32,
        now: f64,
        error: Option<Box<str>>,
    },
    Abandoned {
        number: u32,
        now: f64,
    },
}

/// What may come with a value.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Noise {
    pub std: Option<f64>,
    pub cost: Option<f64>,
}

/// A point that waits to be suggested.
#[derive(Debug, Clone, PartialEq)]
pub struct Queued {
    pub point: Point,
    pub fidelity: Option<f64>,
    pub attrs: Option<String>,
}

/// The log and its views.
#[derive(Debug, Clone)]
pub struct Ledger {
    clock: Clock,
    /// Columns of an encoded point, and of a context.
    widths: (usize, usize),
    entries: Vec<Entry>,
    trials: Vec<Trial>,
    /// Point, then context of every trial.
    rows: Vec<f64>,
    pending: BTreeSet<TrialNumber>,
    enqueued: Vec<Queued>,
    /// How many of these were suggested.
    n_dequeued: usize,
    n_suggested: usize,
    n_observed: usize,
    ranking: Ranking,
}

impl Ledger {
    /// An empty log of points and contexts with so many columns.
    pub fn new(clock: Clock, width: usize, context_width: usize) -> Self {
        Self {
            clock,
            widths: (width, context_width),
            entries: Vec::new(),
            trials: Vec::new(),
            rows: Vec::new(),
            pending: BTreeSet::new(),
            enqueued: Vec::new(),
            n_dequeued: 0,
            n_suggested: 0,
            n_observed: 0,
            ranking: Ranking::default(),
        }
    }

    /// Makes room for so many further events, half of which start trials, as a rule.
    pub fn reserve(&mut self, n_events: usize) {
        let n_trials = n_events / 2;
        self.entries.reserve(n_events);
        self.trials.reserve(n_trials);
        self.rows
            .reserve(n_trials * (self.widths.0 + self.widths.1));
    }

    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Columns of an encoded point, and of a context.
    pub fn widths(&self) -> (usize, usize) {
        self.widths
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The log, from its first event on.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What became of the trials, by number.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    pub fn trial(&self, number: TrialNumber) -> Result<&Trial> {
        self.trials.get(number).ok_or(Error::UnknownTrial {
            number,
            known: self.trials.len(),
        })
    }

    /// Encoded point and context of a trial: a row of the model.
    pub fn row(&self, number: TrialNumber) -> &[f64] {
        let width = self.widths.0 + self.widths.1;
        &self.rows[number * width..(number + 1) * width]
    }

    /// The encoded point of a trial.
    pub fn x(&self, number: TrialNumber) -> &[f64] {
        &self.row(number)[..self.widths.0]
    }

    /// The encoded context of a trial.
    pub fn context(&self, number: TrialNumber) -> &[f64] {
        &self.row(number)[self.widths.0..]
    }

    /// The point of a trial, with what belongs to it.
    pub fn point(&self, number: TrialNumber) -> Point {
        let trial = &self.trials[number];
        Point {
            x: self.x(number).to_vec(),
            index: trial.index.map(|index| index as usize),
            given: trial.given().map(<[f64]>::to_vec),
        }
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
        self.ranking.best()
    }

    /// What was enqueued first and not suggested yet.
    pub fn next_queued(&self) -> Option<&Queued> {
        self.enqueued.get(self.n_dequeued)
    }

    /// Whether anything was ever enqueued.
    pub fn has_enqueued(&self) -> bool {
        !self.enqueued.is_empty()
    }

    /// The time: suggestions started so far, or the caller's seconds.
    pub fn now(&self, seconds: Option<f64>) -> Result<f64> {
        match (self.clock, seconds) {
            (Clock::Iterations, _) => Ok(self.n_suggested as f64),
            (Clock::Seconds, Some(now)) if now.is_finite() => Ok(now),
            (Clock::Seconds, now) => Err(Error::InvalidTime {
                got: now.unwrap_or(f64::NAN),
                expected: "clock=\"seconds\" needs a finite number of seconds",
            }),
        }
    }

    /// Event number i, as it was appended.
    pub fn event(&self, i: usize) -> Event {
        let noise = |noise: &Option<Box<Noise>>| noise.as_deref().cloned().unwrap_or_default();
        match &self.entries[i] {
            Entry::Suggested { number, queued } => {
                let number = *number as usize;
                let trial = &self.trials[number];
                Event::Suggested {
                    point: self.point(number),
                    context: self.context(number).to_vec(),
                    fidelity: trial.fidelity(),
                    now: trial.suggested_at,
                    expires_at: trial.expires_at(),
                    queued: *queued,
                    note: trial.note().map(str::to_string),
                    attrs: trial.attrs().map(str::to_string),
                }
            }
            Entry::Added {
                number,
                value,
                noise: report,
            } => {
                let number = *number as usize;
                let trial = &self.trials[number];
                let Noise { std, cost } = noise(report);
                Event::Added {
                    point: self.point(number),
                    context: self.context(number).to_vec(),
                    fidelity: trial.fidelity(),
                    value: *value,
                    std,
                    cost,
                    now: trial.suggested_at,
                    attrs: trial.attrs().map(str::to_string),
                }
            }
            Entry::Enqueued { position } => {
                let Queued {
                    point,
                    fidelity,
                    attrs,
                } = self.enqueued[*position as usize].clone();
                Event::Enqueued {
                    point,
                    fidelity,
                    attrs,
                }
            }
            Entry::Observed {
                number,
                value,
                noise: report,
                now,
            } => {
                let Noise { std, cost } = noise(report);
                Event::Observed {
                    number: *number as usize,
                    value: *value,
                    std,
                    cost,
                    now: *now,
                }
            }
            Entry::Amended {
                number,
                value,
                noise: report,
            } => {
                let Noise { std, cost } = noise(report);
                Event::Amended {
                    number: *number as usize,
                    value: *value,
                    std,
                    cost,
                }
            }
            Entry::Failed { number, now, error } => Event::Failed {
                number: *number as usize,
                now: *now,
                error: error.as_deref().map(str::to_string),
            },
            Entry::Abandoned { number, now } => Event::Abandoned {
                number: *number as usize,
                now: *now,
            },
        }
    }

    /// Events from number `start` on.
    pub fn events(&self, start: usize) -> impl Iterator<Item = Event> + '_ {
        (start..self.len()).map(|i| self.event(i))
    }

    /// Appends an event; refuses one that could not have happened.
    pub fn append(&mut self, event: Event) -> Result<()> {
        if !self.allows(&event)? {
            return Err(Error::Corrupt(format!(
                "event {} of the log could not have happened: {event:?}",
                self.len()
            )));
        }
        if u32::try_from(self.trials.len().max(self.enqueued.len()) + 1).is_err() {
            return Err(Error::Corrupt("the log is full: 2^32 trials".to_string()));
        }
        let entry = self.apply(event);
        self.entries.push(entry);
        Ok(())
    }

    /// Takes back the suggestions that end the log, until it has `len` events.
    ///
    /// Only drafts of a batch that was cut short are taken back; other events end the log for good.
    pub fn truncate(&mut self, len: usize) {
        while self.len() > len
            && let Some(Entry::Suggested { queued, .. }) = self.entries.last()
        {
            self.n_dequeued -= usize::from(*queued);
            self.n_suggested -= 1;
            self.entries.pop();
            self.trials.pop();
            self.rows
                .truncate(self.trials.len() * (self.widths.0 + self.widths.1));
            self.pending.remove(&self.trials.len());
        }
    }

    /// The fold: the one place where the views change.
    fn apply(&mut self, event: Event) -> Entry {
        match event {
            Event::Suggested {
                point,
                context,
                fidelity,
                now,
                expires_at,
                queued,
                note,
                attrs,
            } => {
                self.n_dequeued += usize::from(queued);
                self.n_suggested += 1;
                let details = Details {
                    fidelity,
                    expires_at,
                    note,
                    attrs,
                    ..Details::default()
                };
                let number = self.start(point, &context, now, true, details);
                Entry::Suggested { number, queued }
            }
            Event::Added {
                point,
                context,
                fidelity,
                value,
                std,
                cost,
                now,
                attrs,
            } => {
                let details = Details {
                    fidelity,
                    attrs,
                    ..Details::default()
                };
                let number = self.start(point, &context, now, false, details);
                if let Some(value) = value {
                    self.set_value(number, value, std, cost, now);
                }
                Entry::Added {
                    number,
                    value,
                    noise: boxed(std, cost),
                }
            }
            Event::Enqueued {
                point,
                fidelity,
                attrs,
            } => {
                self.enqueued.push(Queued {
                    point,
                    fidelity,
                    attrs,
                });
                Entry::Enqueued {
                    position: self.enqueued.len() as u32 - 1,
                }
            }
            Event::Observed {
                number,
                value,
                std,
                cost,
                now,
            } => {
                let number = number as u32;
                self.set_value(number, value, std, cost, now);
                Entry::Observed {
                    number,
                    value,
                    noise: boxed(std, cost),
                    now,
                }
            }
            Event::Amended {
                number,
                value,
                std,
                cost,
            } => {
                self.trials[number].value = Some(value);
                self.trials[number].set_report(std, cost);
                self.rank(number, value);
                Entry::Amended {
                    number: number as u32,
                    value,
                    noise: boxed(std, cost),
                }
            }
            Event::Failed { number, now, error } => {
                self.leave_pending(number, State::Failed);
                self.trials[number].set_error(error.clone());
                Entry::Failed {
                    number: number as u32,
                    now,
                    error: error.map(String::into_boxed_str),
                }
            }
            Event::Abandoned { number, now } => {
                self.leave_pending(number, State::Abandoned);
                Entry::Abandoned {
                    number: number as u32,
                    now,
                }
            }
        }
    }

    fn start(
        &mut self,
        point: Point,
        context: &[f64],
        now: f64,
        suggested: bool,
        details: Details,
    ) -> u32 {
        let number = self.trials.len();
        self.rows.extend_from_slice(&point.x);
        self.rows.extend_from_slice(context);
        let details = Details {
            given: point.given,
            ..details
        };
        self.trials.push(Trial {
            state: State::Pending,
            suggested,
            index: point.index.map(|index| index as u32),
            value: None,
            suggested_at: now,
            observed_at: None,
            details: details.boxed(),
        });
        self.pending.insert(number);
        number as u32
    }

    fn set_value(
        &mut self,
        number: u32,
        value: f64,
        std: Option<f64>,
        cost: Option<f64>,
        now: f64,
    ) {
        let number = number as usize;
        self.leave_pending(number, State::Observed);
        let trial = &mut self.trials[number];
        trial.value = Some(value);
        trial.observed_at = Some(now);
        trial.set_report(std, cost);
        self.n_observed += 1;
        self.rank(number, value);
    }

    fn rank(&mut self, number: TrialNumber, value: f64) {
        let trials = &self.trials;
        self.ranking
            .insert(number, value, |number| trials[number].value);
    }

    fn leave_pending(&mut self, number: TrialNumber, state: State) {
        self.pending.remove(&number);
        self.trials[number].state = state;
    }
}

/// None where there is nothing to keep.
fn boxed(std: Option<f64>, cost: Option<f64>) -> Option<Box<Noise>> {
    let noise = Noise { std, cost };
    (noise != Noise::default()).then(|| Box::new(noise))
}

#[cfg(test)]
mod tests;
