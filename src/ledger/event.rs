//! The events of trials. All other state is computed from a list of events.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::ledger::json;
use crate::problem::Point;

/// The number of a trial. Trials are numbered from 0 in the order in which they were suggested or added.
pub type TrialNumber = usize;

/// The error of a failed trial, as its caller reported it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// The kind of error, such as the name of an exception. It is empty if not given.
    #[serde(rename = "type")]
    pub kind: String,
    /// The text of the error.
    pub message: String,
    /// The lines of the traceback.
    #[serde(default)]
    pub traceback: Option<String>,
}

/// One event, in the user's units. A context has one number for each searched parameter, and values have the user's
/// sign. Every `now` is a time on the optimizer's clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Event {
    /// A trial was started. If `queued`, its point is the first enqueued point. Otherwise the strategy proposed its
    /// point.
    Suggested {
        point: Point,
        context: Vec<f64>,
        #[serde(default)]
        fidelity: Option<f64>,
        now: f64,
        /// The wall-clock time in seconds when the lease of the trial ends.
        #[serde(default)]
        expires_at: Option<f64>,
        queued: bool,
        /// Text from the strategy, for later reading by the strategy.
        #[serde(default)]
        note: Option<String>,
        /// The user's attributes, as JSON.
        #[serde(default)]
        attrs: Option<String>,
    },
    /// A trial that was started outside this optimizer was added. Its value may be unknown.
    Added {
        point: Point,
        context: Vec<f64>,
        #[serde(default)]
        fidelity: Option<f64>,
        value: Option<f64>,
        /// The standard deviation of the noise of the value, if known.
        #[serde(default)]
        std: Option<f64>,
        #[serde(default)]
        cost: Option<f64>,
        /// The duration of the evaluation in seconds.
        #[serde(default)]
        duration: Option<f64>,
        now: f64,
        #[serde(default)]
        attrs: Option<String>,
    },
    /// A point that is suggested before the strategy proposes further points.
    Enqueued {
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
        /// The point where the trial was run. None means the point where the trial was started.
        #[serde(default)]
        point: Option<Point>,
        #[serde(default)]
        attrs: Option<String>,
        now: f64,
    },
    /// An observed value was replaced, together with its report. If the report lacks a point, the earlier point is
    /// kept.
    Amended {
        number: TrialNumber,
        value: f64,
        #[serde(default)]
        std: Option<f64>,
        #[serde(default)]
        cost: Option<f64>,
        #[serde(default)]
        duration: Option<f64>,
        #[serde(default)]
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
    /// Returns the event as one line of JSON without absent fields. Reading the line restores the bits of every number.
    pub fn to_json(&self) -> Result<String> {
        json::write(self)
    }

    /// Reads an event from JSON. Unknown fields and wrong types are refused.
    pub fn from_json(text: &str) -> Result<Self> {
        json::read(text)
    }

    /// Returns the number of the trial of this event in a log of `n_trials` trials, or None for an enqueued point.
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

    /// Returns the point in this event, at which a trial was started or run.
    pub fn point(&self) -> Option<&Point> {
        match self {
            Event::Suggested { point, .. }
            | Event::Added { point, .. }
            | Event::Enqueued { point, .. } => Some(point),
            Event::Observed { point, .. } | Event::Amended { point, .. } => point.as_ref(),
            Event::Failed { .. } | Event::Abandoned { .. } => None,
        }
    }

    /// The fidelity of a started trial or of an enqueued point, in the user's units.
    pub fn fidelity(&self) -> Option<f64> {
        match self {
            Event::Suggested { fidelity, .. }
            | Event::Added { fidelity, .. }
            | Event::Enqueued { fidelity, .. } => *fidelity,
            _ => None,
        }
    }

    /// The context of a started trial.
    pub fn context(&self) -> Option<&[f64]> {
        match self {
            Event::Suggested { context, .. } | Event::Added { context, .. } => Some(context),
            _ => None,
        }
    }
}

/// Optional data of an observed value.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// The standard deviation of the noise of the value.
    pub std: Option<f64>,
    /// The cost of the evaluation, a finite number of 0 or above in any unit.
    pub cost: Option<f64>,
    /// The duration of the evaluation in seconds.
    pub duration: Option<f64>,
    /// The point where the trial was run. None means the point where the trial was started.
    pub point: Option<Point>,
    /// The user's attributes, as JSON.
    pub attrs: Option<String>,
}

impl Report {
    /// Creates a report that has only the standard deviation of the noise.
    pub fn with_std(std: Option<f64>) -> Self {
        Self {
            std,
            ..Self::default()
        }
    }

    /// Returns the report in a box, or None if the report is empty.
    pub(super) fn boxed(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

/// The rule for a value that is reported for an observed trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// A different value is an error. The same value has no effect.
    Refuse,
    /// The new value replaces the old value.
    Amend,
    /// The value is another measurement of the point, logged as a new trial.
    Replicate,
}

/// A request of the caller. The log checks it and turns it into an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// The value of a trial has arrived. Trials in every state accept a value.
    Observe {
        /// The trial.
        number: TrialNumber,
        /// The value of f, a finite number in the user's units and sign.
        value: f64,
        /// Further data of the value.
        report: Report,
        /// The rule if the trial has a value.
        again: Again,
    },
    /// The trial crashed. The model of success uses its point as a failure.
    Fail {
        /// The trial.
        number: TrialNumber,
        /// The error, if known.
        error: Option<Failure>,
        /// The user's attributes, as JSON.
        attrs: Option<String>,
    },
    /// The result of the trial is no longer expected. Models ignore its point.
    Abandon {
        /// The trial.
        number: TrialNumber,
    },
    /// A trial was started outside this optimizer, at `point`. The point of the report is not used.
    Add {
        /// The point.
        point: Point,
        /// The context, with one number for each searched parameter. It is empty if the problem lacks a context.
        context: Vec<f64>,
        /// The fidelity in the user's units. None means a full evaluation.
        fidelity: Option<f64>,
        /// The value of f in the user's units and sign. If it is None, the trial is pending.
        value: Option<f64>,
        /// Further data of the value.
        report: Report,
    },
    /// A point that is suggested before the strategy proposes further points.
    Enqueue {
        /// The point.
        point: Point,
        /// The fidelity in the user's units. If it is None, the request determines the fidelity.
        fidelity: Option<f64>,
        /// The user's attributes, as JSON.
        attrs: Option<String>,
    },
}

impl Action {
    /// Creates the observation of a value with a noise standard deviation, without other data.
    pub fn observe(number: TrialNumber, value: f64, std: Option<f64>, amend: bool) -> Self {
        Action::Observe {
            number,
            value,
            report: Report::with_std(std),
            again: if amend { Again::Amend } else { Again::Refuse },
        }
    }

    /// Creates a failure without an error message.
    pub fn fail(number: TrialNumber) -> Self {
        Action::Fail {
            number,
            error: None,
            attrs: None,
        }
    }

    /// Creates an added trial at full fidelity, without other data.
    pub fn add(point: Point, context: Vec<f64>, value: Option<f64>, std: Option<f64>) -> Self {
        Action::Add {
            point,
            context,
            fidelity: None,
            value,
            report: Report::with_std(std),
        }
    }

    /// Creates an enqueued point without a fidelity.
    pub fn enqueue(point: Point) -> Self {
        Action::Enqueue {
            point,
            fidelity: None,
            attrs: None,
        }
    }
}
