//! The events of trials. All other state is computed from a list of events.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::ledger::json;
use crate::problem::Point;

/// The number of a trial. Trials are numbered from 0 in the order in which they were suggested or added.
pub type TrialNumber = usize;

/// The error of a failed trial, as the caller reported it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// The kind of error, such as the name of an exception, or an empty string.
    #[serde(rename = "type")]
    pub kind: String,
    /// The text of the error.
    pub message: String,
    /// The lines of the traceback.
    #[serde(default)]
    pub traceback: Option<String>,
}

/// A value of f with its noise. In events, the value has the user's sign. In changes, larger values are better.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// The value of f, a finite number.
    pub value: f64,
    /// The standard deviation of the noise of the value, if known.
    #[serde(default)]
    pub std: Option<f64>,
}

/// A reading in the user's units, and the data that may be reported with the reading.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observation {
    /// The value and its noise.
    #[serde(deserialize_with = "json::named")]
    pub reading: Reading,
    /// The cost of the evaluation in any unit, finite and not negative.
    #[serde(default)]
    pub cost: Option<f64>,
    /// The duration of the evaluation in seconds.
    #[serde(default)]
    pub duration: Option<f64>,
    /// The point where the trial was run. None means the point where the trial was started.
    #[serde(default)]
    pub point: Option<Point>,
    /// The user's attributes, as JSON.
    #[serde(default)]
    pub attrs: Option<String>,
}

impl Observation {
    /// Creates an observation that has only a value and the standard deviation of the noise.
    pub fn new(value: f64, std: Option<f64>) -> Self {
        Self {
            reading: Reading { value, std },
            ..Self::default()
        }
    }
}

/// One event, in the user's units. A context has one number for each searched parameter, and values have the user's
/// sign. Every `now` is a time on the optimizer's clock. Every `at` is the wall-clock time in seconds since 1970 (UTC),
/// or None if the time is not known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Event {
    /// A trial was started. If `queued` is true, the trial uses the first enqueued point. If `queued` is false, the
    /// strategy proposed the point.
    Suggested {
        point: Point,
        context: Vec<f64>,
        #[serde(default)]
        fidelity: Option<f64>,
        now: f64,
        #[serde(default)]
        at: Option<f64>,
        /// The wall-clock time in seconds when the lease of the trial ends.
        #[serde(default)]
        expires_at: Option<f64>,
        queued: bool,
        /// Text that the strategy wrote, and that only the strategy reads.
        #[serde(default)]
        note: Option<String>,
        /// The user's attributes, as JSON.
        #[serde(default)]
        attrs: Option<String>,
    },
    /// A trial that was started outside this optimizer was added. The value of the added trial may be unknown.
    Added {
        point: Point,
        context: Vec<f64>,
        #[serde(default)]
        fidelity: Option<f64>,
        #[serde(default, deserialize_with = "json::named_if_any")]
        observation: Option<Observation>,
        now: f64,
        #[serde(default)]
        at: Option<f64>,
        #[serde(default)]
        attrs: Option<String>,
    },
    /// A point that will be suggested before the strategy proposes a further point.
    Enqueued {
        point: Point,
        /// The searched parameters whose numbers were given, by their positions. None means all.
        #[serde(default)]
        given: Option<Vec<usize>>,
        #[serde(default)]
        fidelity: Option<f64>,
        #[serde(default)]
        at: Option<f64>,
        #[serde(default)]
        attrs: Option<String>,
    },
    Observed {
        number: TrialNumber,
        #[serde(deserialize_with = "json::named")]
        observation: Observation,
        now: f64,
        #[serde(default)]
        at: Option<f64>,
    },
    /// An observed value was replaced, together with the noise of the value. If the observation does not have a cost, a
    /// duration or a point, the earlier cost, duration or point is kept.
    Amended {
        number: TrialNumber,
        #[serde(deserialize_with = "json::named")]
        observation: Observation,
        #[serde(default)]
        at: Option<f64>,
    },
    Failed {
        number: TrialNumber,
        now: f64,
        #[serde(default)]
        at: Option<f64>,
        #[serde(default, deserialize_with = "json::named_if_any")]
        error: Option<Failure>,
        /// The duration of the evaluation in seconds, until it failed.
        #[serde(default)]
        duration: Option<f64>,
        #[serde(default)]
        attrs: Option<String>,
    },
    Abandoned {
        number: TrialNumber,
        now: f64,
        #[serde(default)]
        at: Option<f64>,
    },
    /// The value of the learning curve of a trial at a step. None means that the step failed.
    Reported {
        number: TrialNumber,
        step: u32,
        #[serde(default)]
        value: Option<f64>,
        /// The number of the attempt, counted from 0. Each start of the evaluation is an attempt.
        #[serde(default)]
        attempt: u32,
        #[serde(default)]
        at: Option<f64>,
    },
    /// The evaluation was ended before the last step of its curve. The curve is still used.
    Stopped {
        number: TrialNumber,
        now: f64,
        #[serde(default)]
        at: Option<f64>,
    },
    /// The problem and the settings of the strategy were replaced. Trials keep their numbers, states and values. All
    /// texts are JSON that the caller wrote, and that only the caller reads.
    Revised {
        /// The new problem and settings.
        definition: String,
        /// The values of earlier trials for parameters that are new.
        #[serde(default)]
        fill: Option<String>,
        /// The values that are renamed.
        #[serde(default)]
        map: Option<String>,
        /// The values of removed parameters that belong to the new problem.
        #[serde(default)]
        keep: Option<String>,
        /// Whether the constraints were replaced, too. Events do not contain the functions.
        constrained: bool,
        #[serde(default)]
        at: Option<f64>,
    },
    /// The value, the failure or the curve of an ended trial was taken back.
    Withdrawn {
        number: TrialNumber,
        #[serde(default)]
        reason: Option<String>,
        now: f64,
        #[serde(default)]
        at: Option<f64>,
    },
    /// A trial with known outcomes was added.
    AddedMeasured {
        /// The event [`Event::Added`] without an observation.
        added: Box<Event>,
        /// The outcomes, by their positions in the declaration, and their values.
        observations: Vec<(u32, Observation)>,
        /// Whether the other outcomes are not expected.
        complete: bool,
    },
    /// An event of one outcome of a trial: observed, amended, failed, abandoned or withdrawn. Without this event, a
    /// failure and an abandonment concern all outcomes that are missing, and a withdrawal concerns all results.
    OfOutcome {
        /// The position of the outcome in the declaration.
        outcome: u32,
        event: Box<Event>,
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

    /// Returns the number of the trial that this event concerns, or None for an enqueued point and for a revision.
    /// Before this event, the log has `n_trials` trials.
    pub(crate) fn trial_number(&self, n_trials: usize) -> Option<TrialNumber> {
        match self {
            Event::Suggested { .. } | Event::Added { .. } | Event::AddedMeasured { .. } => {
                Some(n_trials)
            }
            Event::Enqueued { .. } | Event::Revised { .. } => None,
            Event::Observed { number, .. }
            | Event::Amended { number, .. }
            | Event::Failed { number, .. }
            | Event::Abandoned { number, .. }
            | Event::Reported { number, .. }
            | Event::Stopped { number, .. }
            | Event::Withdrawn { number, .. } => Some(*number),
            Event::OfOutcome { event, .. } => event.trial_number(n_trials),
        }
    }

    /// Removes the wall-clock time of the event.
    pub(crate) fn forget_time(&mut self) {
        match self {
            Event::Suggested { at, .. }
            | Event::Added { at, .. }
            | Event::Enqueued { at, .. }
            | Event::Observed { at, .. }
            | Event::Amended { at, .. }
            | Event::Failed { at, .. }
            | Event::Abandoned { at, .. }
            | Event::Reported { at, .. }
            | Event::Stopped { at, .. }
            | Event::Withdrawn { at, .. }
            | Event::Revised { at, .. } => *at = None,
            Event::OfOutcome { event, .. } => event.forget_time(),
            Event::AddedMeasured { added, .. } => added.forget_time(),
        }
    }

    /// Returns the wall-clock time of the event, if known.
    pub(crate) fn at(&self) -> Option<f64> {
        match self {
            Event::Suggested { at, .. }
            | Event::Added { at, .. }
            | Event::Enqueued { at, .. }
            | Event::Observed { at, .. }
            | Event::Amended { at, .. }
            | Event::Failed { at, .. }
            | Event::Abandoned { at, .. }
            | Event::Reported { at, .. }
            | Event::Stopped { at, .. }
            | Event::Withdrawn { at, .. }
            | Event::Revised { at, .. } => *at,
            Event::OfOutcome { event, .. } => event.at(),
            Event::AddedMeasured { added, .. } => added.at(),
        }
    }

    /// Returns the reported observation.
    pub(crate) fn observation(&self) -> Option<&Observation> {
        match self {
            Event::Observed { observation, .. } | Event::Amended { observation, .. } => {
                Some(observation)
            }
            Event::Added { observation, .. } => observation.as_ref(),
            Event::OfOutcome { event, .. } => event.observation(),
            _ => None,
        }
    }

    /// Returns the point that this event contains, if any: a start point, an enqueued point or a run point.
    pub(crate) fn point(&self) -> Option<&Point> {
        match self {
            Event::Suggested { point, .. }
            | Event::Added { point, .. }
            | Event::Enqueued { point, .. } => Some(point),
            Event::AddedMeasured { added, .. } => added.point(),
            _ => self.observation()?.point.as_ref(),
        }
    }

    /// The fidelity of a started trial or of an enqueued point, in the user's units.
    pub(crate) fn fidelity(&self) -> Option<f64> {
        match self {
            Event::Suggested { fidelity, .. }
            | Event::Added { fidelity, .. }
            | Event::Enqueued { fidelity, .. } => *fidelity,
            Event::AddedMeasured { added, .. } => added.fidelity(),
            _ => None,
        }
    }

    /// The context of a started trial.
    pub(crate) fn context(&self) -> Option<&[f64]> {
        match self {
            Event::Suggested { context, .. } | Event::Added { context, .. } => Some(context),
            Event::AddedMeasured { added, .. } => added.context(),
            _ => None,
        }
    }
}

/// The rule for a value that is reported for an observed trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// A different value is an error. The same value has no effect.
    Refuse,
    /// The new value replaces the old value.
    Amend,
    /// The value is a further measurement at the same point, and is logged as a new trial.
    Replicate,
}

/// A request of the caller. The log checks the request and converts it to an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// The value of a trial has arrived. Trials in every state accept a value.
    Observe {
        /// The trial.
        number: TrialNumber,
        /// The value with its data.
        observation: Observation,
        /// The rule that applies if the trial already has a value.
        again: Again,
    },
    /// The trial crashed. The model of success counts the point of the trial as a failure.
    Fail {
        /// The trial.
        number: TrialNumber,
        /// The error, if known.
        error: Option<Failure>,
        /// The duration of the evaluation in seconds, until it failed.
        duration: Option<f64>,
        /// The user's attributes, as JSON.
        attrs: Option<String>,
    },
    /// The result of the trial is no longer expected. Models ignore its point.
    Abandon {
        /// The trial.
        number: TrialNumber,
    },
    /// The value of the learning curve at a step. Trials in every state accept reports.
    Report {
        /// The trial.
        number: TrialNumber,
        /// The step, from 1 to the last step of the declared curve.
        step: u32,
        /// The value, or NaN for a step that failed.
        value: f64,
        /// The number of the attempt, counted from 0.
        attempt: u32,
    },
    /// The evaluation ends before the last step. Models use the curve.
    Stop {
        /// The trial.
        number: TrialNumber,
    },
    /// The value, the failure or the curve of an ended trial is wrong and is taken back. Models ignore the trial.
    Withdraw {
        /// The trial.
        number: TrialNumber,
        /// The reason, if known.
        reason: Option<String>,
    },
    /// A trial was started outside this optimizer, at `point`.
    Add {
        /// The point.
        point: Point,
        /// The context, with one number for each searched parameter. The list is empty if the problem does not have a
        /// context.
        context: Vec<f64>,
        /// The fidelity in the user's units. None means a full evaluation.
        fidelity: Option<f64>,
        /// The value with its data. If the observation is None, the trial is pending.
        observation: Option<Observation>,
        /// The user's attributes, as JSON.
        attrs: Option<String>,
    },
    /// Values of several outcomes of a trial have arrived. All of them are logged, or none.
    ObserveOutcomes {
        /// The trial.
        number: TrialNumber,
        /// The outcomes, by their positions in the declaration, and their values.
        observations: Vec<(usize, Observation)>,
        /// The rule for outcomes that have a value.
        again: Again,
    },
    /// An action on one outcome of a trial: [`Action::Fail`], [`Action::Abandon`] or [`Action::Withdraw`].
    OfOutcome {
        /// The position of the outcome in the declaration.
        outcome: usize,
        /// The action.
        action: Box<Action>,
    },
    /// A trial was started outside this optimizer, and values of its outcomes may be known.
    AddOutcomes {
        /// The action [`Action::Add`] without an observation.
        add: Box<Action>,
        /// The outcomes, by their positions in the declaration, and their values.
        observations: Vec<(usize, Observation)>,
    },
    /// A point that will be suggested before the strategy proposes a further point.
    Enqueue {
        /// The point.
        point: Point,
        /// The searched parameters whose numbers the user gave, by their positions in ascending order. The strategy
        /// chooses the other numbers when the point is suggested, if it can. None means that the whole point was
        /// given.
        given: Option<Vec<usize>>,
        /// The fidelity in the user's units. If the fidelity is None, the request for a suggestion determines the
        /// fidelity.
        fidelity: Option<f64>,
        /// The user's attributes, as JSON.
        attrs: Option<String>,
    },
}

impl Action {
    /// Creates a report that has only a value and the standard deviation of the noise.
    pub fn observe(number: TrialNumber, value: f64, std: Option<f64>, amend: bool) -> Self {
        Action::Observe {
            number,
            observation: Observation::new(value, std),
            again: if amend { Again::Amend } else { Again::Refuse },
        }
    }

    /// Creates a withdrawal without a reason.
    pub fn withdraw(number: TrialNumber) -> Self {
        Action::Withdraw {
            number,
            reason: None,
        }
    }

    /// Creates a failure without an error message.
    pub fn fail(number: TrialNumber) -> Self {
        Action::Fail {
            number,
            error: None,
            duration: None,
            attrs: None,
        }
    }

    /// Creates an added trial at full fidelity, without data besides these arguments.
    pub fn add(point: Point, context: Vec<f64>, value: Option<f64>, std: Option<f64>) -> Self {
        Action::Add {
            point,
            context,
            fidelity: None,
            observation: value.map(|value| Observation::new(value, std)),
            attrs: None,
        }
    }

    /// Creates an enqueued point without a fidelity.
    pub fn enqueue(point: Point) -> Self {
        Action::Enqueue {
            point,
            given: None,
            fidelity: None,
            attrs: None,
        }
    }
}
