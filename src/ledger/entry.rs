//! Events as the log stores them. Values are oriented so that larger values are better. Data given at the start of a
//! trial are stored in the trial and in its row.

use crate::ledger::event::{Failure, Observation};

/// An event, in the form that strategies read.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    Suggested {
        number: u32,
        queued: bool,
    },
    Added {
        number: u32,
        value: Option<f64>,
        /// The observation, if it contains more than the value.
        full: Option<Box<Observation>>,
    },
    /// A point was enqueued. `position` is the index of the point among all enqueued points.
    Enqueued {
        position: u32,
    },
    Observed {
        number: u32,
        value: f64,
        full: Option<Box<Observation>>,
        now: f64,
    },
    Amended {
        number: u32,
        value: f64,
        full: Option<Box<Observation>>,
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
    /// A step of a curve. The value of a failed step is None.
    Reported {
        number: u32,
        step: u32,
        attempt: u32,
        value: Option<f64>,
    },
    Stopped {
        number: u32,
        now: f64,
    },
}

/// Optional data of a failure.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fault {
    pub error: Option<Failure>,
    pub duration: Option<f64>,
    pub attrs: Option<String>,
}
