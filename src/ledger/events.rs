//! Reconstructs events from the entries and trials of the log.

use crate::ledger::entry::{Entry, Fault};
use crate::ledger::event::{Event, Observation};
use crate::ledger::{Ledger, Queued};

impl Ledger {
    /// Returns event number i. The returned event equals the event that was appended.
    pub(crate) fn event(&self, i: usize) -> Event {
        let at = self.time(i);
        let observed = |value: f64, full: &Option<Box<Observation>>| match full {
            Some(full) => full.as_ref().clone(),
            None => Observation::new(self.problem.direction.oriented(value), None),
        };
        match &self.entries[i] {
            Entry::Suggested { number, queued } => {
                let number = *number as usize;
                let trial = &self.trials[number];
                Event::Suggested {
                    point: self.started_point(number),
                    context: self.context_numbers(number).to_vec(),
                    fidelity: trial.fidelity(),
                    now: trial.suggested_at,
                    at,
                    expires_at: trial.first_lease(),
                    queued: *queued,
                    note: trial.note().map(str::to_string),
                    attrs: trial.started_attrs().map(str::to_string),
                }
            }
            Entry::Added {
                number,
                value,
                full,
            } => {
                let number = *number as usize;
                let trial = &self.trials[number];
                Event::Added {
                    point: self.started_point(number),
                    context: self.context_numbers(number).to_vec(),
                    fidelity: trial.fidelity(),
                    observation: value.map(|value| observed(value, full)),
                    now: trial.suggested_at,
                    at,
                    attrs: trial.started_attrs().map(str::to_string),
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
                    at,
                    attrs,
                }
            }
            Entry::Observed {
                number,
                value,
                full,
                now,
            } => Event::Observed {
                number: *number as usize,
                observation: observed(*value, full),
                now: *now,
                at,
            },
            Entry::Amended {
                number,
                value,
                full,
            } => Event::Amended {
                number: *number as usize,
                observation: observed(*value, full),
                at,
            },
            Entry::Failed { number, now, fault } => {
                let Fault {
                    error,
                    duration,
                    attrs,
                } = fault.as_deref().cloned().unwrap_or_default();
                Event::Failed {
                    number: *number as usize,
                    now: *now,
                    at,
                    error,
                    duration,
                    attrs,
                }
            }
            Entry::Abandoned { number, now } => Event::Abandoned {
                number: *number as usize,
                now: *now,
                at,
            },
            Entry::Reported {
                number,
                step,
                attempt,
                value,
            } => Event::Reported {
                number: *number as usize,
                step: *step,
                value: value.map(|y| self.problem.direction.oriented(y)),
                attempt: *attempt,
                at,
            },
            Entry::Stopped { number, now } => Event::Stopped {
                number: *number as usize,
                now: *now,
                at,
            },
        }
    }
}
