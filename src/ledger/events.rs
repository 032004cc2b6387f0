//! Reconstruction of the events of the log from its entries and trials.

use crate::ledger::entry::{Entry, Fault};
use crate::ledger::event::{Event, Report};
use crate::ledger::{Ledger, Queued};

impl Ledger {
    /// Returns event number i. It equals the event that was appended.
    pub(crate) fn event(&self, i: usize) -> Event {
        let full = |report: &Option<Box<Report>>| report.as_deref().cloned().unwrap_or_default();
        let oriented = |value: f64| self.problem.direction.oriented(value);
        match &self.entries[i] {
            Entry::Suggested { number, queued } => {
                let number = *number as usize;
                let trial = &self.trials[number];
                Event::Suggested {
                    point: self.started_point(number),
                    context: self.context_numbers(number).to_vec(),
                    fidelity: trial.fidelity(),
                    now: trial.suggested_at,
                    expires_at: trial.expires_at(),
                    queued: *queued,
                    note: trial.note().map(str::to_string),
                    attrs: trial.started_attrs().map(str::to_string),
                }
            }
            Entry::Added {
                number,
                value,
                report,
            } => {
                let number = *number as usize;
                let trial = &self.trials[number];
                let report = full(report);
                Event::Added {
                    point: self.started_point(number),
                    context: self.context_numbers(number).to_vec(),
                    fidelity: trial.fidelity(),
                    value: value.map(oriented),
                    std: report.std,
                    cost: report.cost,
                    duration: report.duration,
                    now: trial.suggested_at,
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
                    attrs,
                }
            }
            Entry::Observed {
                number,
                value,
                report,
                now,
            } => {
                let report = full(report);
                Event::Observed {
                    number: *number as usize,
                    value: oriented(*value),
                    std: report.std,
                    cost: report.cost,
                    duration: report.duration,
                    point: report.point,
                    attrs: report.attrs,
                    now: *now,
                }
            }
            Entry::Amended {
                number,
                value,
                report,
            } => {
                let report = full(report);
                Event::Amended {
                    number: *number as usize,
                    value: oriented(*value),
                    std: report.std,
                    cost: report.cost,
                    duration: report.duration,
                    point: report.point,
                    attrs: report.attrs,
                }
            }
            Entry::Failed { number, now, fault } => {
                let Fault { error, attrs } = fault.as_deref().cloned().unwrap_or_default();
                Event::Failed {
                    number: *number as usize,
                    now: *now,
                    error,
                    attrs,
                }
            }
            Entry::Abandoned { number, now } => Event::Abandoned {
                number: *number as usize,
                now: *now,
            },
        }
    }
}
