//! Events as the log stores them. The data from the start of a trial are stored in the trial and its row.

use crate::ledger::Ledger;
use crate::ledger::Queued;
use crate::ledger::event::{Event, Failure, Report};

/// An event, for strategies to fold.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    Suggested {
        number: u32,
        queued: bool,
    },
    Added {
        number: u32,
        value: Option<f64>,
        report: Option<Box<Report>>,
    },
    /// The point has index `position` among all enqueued points.
    Enqueued {
        position: u32,
    },
    Observed {
        number: u32,
        value: f64,
        report: Option<Box<Report>>,
        now: f64,
    },
    Amended {
        number: u32,
        value: f64,
        report: Option<Box<Report>>,
    },
    Failed {
        number: u32,
        now: f64,
        fault: Option<Box<Fault>>,
    },
    Abandoned {
        number: u32,
        now: f64,
    },
}

/// Optional data of a failure.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fault {
    pub error: Option<Failure>,
    pub attrs: Option<String>,
}

impl Ledger {
    /// Event number i, equal to the event that was appended.
    pub fn event(&self, i: usize) -> Event {
        let full = |report: &Option<Box<Report>>| report.as_deref().cloned().unwrap_or_default();
        match &self.entries[i] {
            Entry::Suggested { number, queued } => {
                let number = *number as usize;
                let trial = &self.trials[number];
                Event::Suggested {
                    point: self.started_point(number),
                    context: self.context(number).to_vec(),
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
                    context: self.context(number).to_vec(),
                    fidelity: trial.fidelity(),
                    value: *value,
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
                    value: *value,
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
                    value: *value,
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
