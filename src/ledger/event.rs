//! What can happen to trials, as data: everything else is folded from a list of these.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::ledger::json;

/// Trials are numbered from 0 in the order in which they were suggested or added.
pub type TrialNumber = usize;

/// What time is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Suggestions started. A result seen before the next suggestion has delay 1.
    Iterations,
    /// Seconds, given by the caller.
    Seconds,
}

/// Encoded coordinates, and the row number where the domain is a list of candidates.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    pub x: Vec<f64>,
    #[serde(default)]
    pub index: Option<usize>,
    /// The coordinates as the user gave them, one number for each named parameter; their meaning is the caller's.
    #[serde(default)]
    pub given: Option<Vec<f64>>,
}

impl Point {
    pub fn new(x: Vec<f64>, index: Option<usize>) -> Self {
        Self {
            x,
            index,
            given: None,
        }
    }
}

/// Why a trial failed, in the words of whoever ran it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// The kind of error, such as the name of an exception; empty where there is none.
    #[serde(rename = "type")]
    pub kind: String,
    pub message: String,
    #[serde(default)]
    pub traceback: Option<String>,
}

/// One thing that happened. All `now` are on the optimizer's clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Event {
    /// A trial was started, at a point that the strategy proposed or (`queued`) that was first in the queue.
    Suggested {
        #[serde(deserialize_with = "json::named")]
        point: Point,
        context: Vec<f64>,
        #[serde(default)]
        fidelity: Option<f64>,
        now: f64,
        /// Wall-clock seconds after which the trial no longer counts as arriving.
        #[serde(default)]
        expires_at: Option<f64>,
        queued: bool,
        /// What only the strategy that wrote it reads.
        #[serde(default)]
        note: Option<String>,
        /// The user's attributes, as JSON.
        #[serde(default)]
        attrs: Option<String>,
    },
    /// A trial that was started elsewhere, with its value if that is known.
    Added {
        #[serde(deserialize_with = "json::named")]
        point: Point,
        context: Vec<f64>,
        #[serde(default)]
        fidelity: Option<f64>,
        value: Option<f64>,
        /// The standard deviation of the value's noise, where that is known.
        #[serde(default)]
        std: Option<f64>,
        #[serde(default)]
        cost: Option<f64>,
        /// Seconds that the evaluation took.
        #[serde(default)]
        duration: Option<f64>,
        now: f64,
        #[serde(default)]
        attrs: Option<String>,
    },
    /// A point to be suggested next.
    Enqueued {
        #[serde(deserialize_with = "json::named")]
        point: Point,
        #[serde(default)]
        fidelity: Option<f64>,
        #[serde(default)]
        attrs: Option<String>,
    },
    Observed {
        number: TrialNumber,
        value: f64,
        #[serde(default)]
        std: Option<f64>,
        #[serde(default)]
        cost: Option<f64>,
        #[serde(default)]
        duration: Option<f64>,
        /// Where the trial was really run; None where it was started.
        #[serde(default, deserialize_with = "json::named_if_any")]
        point: Option<Point>,
        #[serde(default)]
        attrs: Option<String>,
        now: f64,
    },
    /// An observed value was replaced, with all that came with it; but without a point the earlier one stays.
    Amended {
        number: TrialNumber,
        value: f64,
        #[serde(default)]
        std: Option<f64>,
        #[serde(default)]
        cost: Option<f64>,
        #[serde(default)]
        duration: Option<f64>,
        #[serde(default, deserialize_with = "json::named_if_any")]
        point: Option<Point>,
        #[serde(default)]
        attrs: Option<String>,
    },
    Failed {
        number: TrialNumber,
        now: f64,
        #[serde(default, deserialize_with = "json::named_if_any")]
        error: Option<Failure>,
        #[serde(default)]
        attrs: Option<String>,
    },
    Abandoned {
        number: TrialNumber,
        now: f64,
    },
}

impl Event {
    /// As one line of JSON without absent fields. Numbers are written so that they are read back to the same bits.
    pub fn to_json(&self) -> Result<String> {
        json::write(self)
    }

    /// From JSON; refuses anything that is not exactly an event.
    pub fn from_json(text: &str) -> Result<Self> {
        json::read(text)
    }

    /// The number of the trial that it starts or concerns, for a log of `n_trials`; None for an enqueued point.
    pub fn trial_number(&self, n_trials: usize) -> Option<TrialNumber> {
        match self {
            Event::Suggested { .. } | Event::Added { .. } => Some(n_trials),
            Event::Enqueued { .. } => None,
            Event::Observed { number, .. }
            | Event::Amended { number, .. }
            | Event::Failed { number, .. }
            | Event::Abandoned { number, .. } => Some(*number),
        }
    }

    /// The point that it brings: where a trial starts, or where it was really run.
    pub fn point(&self) -> Option<&Point> {
        match self {
            Event::Suggested { point, .. }
            | Event::Added { point, .. }
            | Event::Enqueued { point, .. } => Some(point),
            Event::Observed { point, .. } | Event::Amended { point, .. } => point.as_ref(),
            Event::Failed { .. } | Event::Abandoned { .. } => None,
        }
    }

    /// The fidelity of the trial that it starts, or that an enqueued point is to have.
    pub fn fidelity(&self) -> Option<f64> {
        match self {
            Event::Suggested { fidelity, .. }
            | Event::Added { fidelity, .. }
            | Event::Enqueued { fidelity, .. } => *fidelity,
            _ => None,
        }
    }

    /// The context of the trial that it starts.
    pub fn context(&self) -> Option<&[f64]> {
        match self {
            Event::Suggested { context, .. } | Event::Added { context, .. } => Some(context),
            _ => None,
        }
    }
}

/// What may come with a value.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    pub std: Option<f64>,
    pub cost: Option<f64>,
    /// Seconds that the evaluation took.
    pub duration: Option<f64>,
    /// Where the trial was really run; None where it was started.
    pub point: Option<Point>,
    /// The user's attributes, as JSON.
    pub attrs: Option<String>,
}

impl Report {
    /// A value's noise alone.
    pub fn with_std(std: Option<f64>) -> Self {
        Self {
            std,
            ..Self::default()
        }
    }

    /// None where there is nothing to keep.
    pub(super) fn boxed(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

/// What another value means for a trial that has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// An error; the same value again changes nothing.
    Refuse,
    /// It replaces the value.
    Amend,
    /// It is another measurement of the point, as a trial of its own.
    Replicate,
}

/// What a caller wants recorded; the log decides whether it may be, and as which event.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    Observe {
        number: TrialNumber,
        value: f64,
        report: Report,
        again: Again,
    },
    /// The trial crashed: a model keeps its point, as one where that happens.
    Fail {
        number: TrialNumber,
        error: Option<Failure>,
        attrs: Option<String>,
    },
    /// Nobody waits for the trial any more: the model drops its point.
    Abandon { number: TrialNumber },
    /// A trial that was started elsewhere, at `point`; that of the report is not used.
    Add {
        point: Point,
        context: Vec<f64>,
        fidelity: Option<f64>,
        value: Option<f64>,
        report: Report,
    },
    /// A point to be suggested next.
    Enqueue {
        point: Point,
        fidelity: Option<f64>,
        attrs: Option<String>,
    },
}

impl Action {
    pub fn observe(number: TrialNumber, value: f64, std: Option<f64>, amend: bool) -> Self {
        Action::Observe {
            number,
            value,
            report: Report::with_std(std),
            again: if amend { Again::Amend } else { Again::Refuse },
        }
    }

    pub fn fail(number: TrialNumber) -> Self {
        Action::Fail {
            number,
            error: None,
            attrs: None,
        }
    }

    pub fn add(point: Point, context: Vec<f64>, value: Option<f64>, std: Option<f64>) -> Self {
        Action::Add {
            point,
            context,
            fidelity: None,
            value,
            report: Report::with_std(std),
        }
    }

    pub fn enqueue(point: Point) -> Self {
        Action::Enqueue {
            point,
            fidelity: None,
            attrs: None,
        }
    }
}
