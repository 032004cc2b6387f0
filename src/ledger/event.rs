//! The events of trials. All other state is computed from a list of events.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::ledger::json;
use crate::problem::{Fixed, Held, Point};

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

/// The values of outcomes that are reported together, in the user's units, and the data of the report.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observation {
    /// The outcomes, and their values with their noise.
    pub readings: Vec<(u32, Reading)>,
    /// The data, without an error, without a reason and without marks.
    pub data: Data,
    /// The marks of new values, for values that were judged before. None if the optimizer judges the values.
    pub marks: Option<Vec<Mark>>,
}

impl Observation {
    /// Creates an observation of the outcome at position 0 that has only a value and the standard deviation of the noise.
    pub fn new(value: f64, std: Option<f64>) -> Self {
        Self {
            readings: vec![(0, Reading { value, std })],
            ..Self::default()
        }
    }
}

#[cfg(test)]
impl Observation {
    pub(crate) fn with(self, data: Data) -> Self {
        Self { data, ..self }
    }

    /// This observation, made at another point than the point of the start.
    pub(crate) fn run_at(mut self, point: Point) -> Self {
        self.data.point = Some(point);
        self
    }
}

/// One event, in the user's units. A context has one number for each searched parameter, and values have the user's
/// sign.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// The wall-clock time in seconds since 1970 (UTC), or None if the time is not known.
    #[serde(default)]
    pub at: Option<f64>,
    /// Who caused the event, if the caller said so. Decisions do not read it.
    #[serde(default)]
    pub by: Option<String>,
    /// The time on the optimizer's clock.
    pub now: f64,
    /// What happened.
    pub what: What,
}

/// An enqueued point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queued {
    /// The given numbers of the point that a later suggestion uses, or a candidate.
    pub point: Point,
    /// Whether only a part of the numbers was given. The others are chosen at the suggestion.
    #[serde(default)]
    pub partial: bool,
    /// The fidelity in the user's units. If the fidelity is None, the request for a suggestion determines the fidelity.
    #[serde(default)]
    pub fidelity: Option<f64>,
    /// The user's attributes of the trial, as a JSON object.
    #[serde(default)]
    pub attrs: Option<String>,
}

impl Queued {
    /// The fixed values together with the given numbers, or None if the whole point was given.
    pub(crate) fn completion(&self, fixed: Option<&Fixed>) -> Option<Fixed> {
        let Point::Numbers(numbers) = &self.point else {
            return None;
        };
        let fixed = match fixed {
            Some(Fixed::Parameters(held)) if held.len() == numbers.len() => held.clone(),
            _ => vec![None; numbers.len()],
        };
        let held = numbers
            .iter()
            .zip(fixed)
            .map(|(number, fixed)| match number {
                Some(number) => Some(Held::Values(vec![*number])),
                None => fixed,
            });
        self.partial.then(|| Fixed::Parameters(held.collect()))
    }

    /// Whether the given numbers agree with the fixed values.
    pub(crate) fn fits(&self, fixed: &Fixed) -> bool {
        let (Fixed::Parameters(held), Point::Numbers(numbers)) = (fixed, &self.point) else {
            return false;
        };
        held.iter().zip(numbers).all(|both| match both {
            (Some(Held::Values(values)), Some(number)) => values.contains(number),
            (Some(Held::Range(low, high)), Some(number)) => (*low..=*high).contains(number),
            (None, _) | (_, None) => true,
        })
    }
}

/// What happened. An outcome is given by its position in the declaration. Without declared outcomes, a trial has one
/// outcome, at position 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum What {
    /// A trial was started.
    #[serde(deserialize_with = "json::named")]
    Suggested(Suggested),
    /// A trial that was started outside this optimizer was added.
    #[serde(deserialize_with = "json::named")]
    Added(Added),
    /// A point was enqueued, which will be suggested before the strategy proposes a further point.
    #[serde(deserialize_with = "json::named")]
    Enqueued(Queued),
    /// A step of the learning curve of a trial was reported.
    #[serde(deserialize_with = "json::named")]
    Reported(Step),
    /// Results of a trial arrived, ended or were taken back.
    #[serde(deserialize_with = "json::named")]
    Resulted(Resulted),
    /// The problem and the settings of the strategy were replaced.
    #[serde(deserialize_with = "json::named")]
    Revised(Revision),
    /// Something was noted about a trial. Decisions do not read notes.
    #[serde(deserialize_with = "json::named")]
    Noted(Noted),
}

/// The start of a trial at a suggested point. If `queued` is true, the trial uses the first enqueued point. If `queued`
/// is false, the strategy proposed the point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suggested {
    /// The point.
    pub point: Point,
    /// The context.
    pub context: Vec<f64>,
    /// The fidelity in the user's units.
    #[serde(default)]
    pub fidelity: Option<f64>,
    /// The wall-clock time in seconds when the lease of the trial ends.
    #[serde(default)]
    pub expires_at: Option<f64>,
    /// Whether the point came from the queue.
    pub queued: bool,
    /// Text that the strategy wrote, and that only the strategy reads.
    #[serde(default)]
    pub note: Option<String>,
    /// The user's attributes, as JSON.
    #[serde(default)]
    pub attrs: Option<String>,
}

/// The start of a trial at a point that the caller chose, with the values that are known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Added {
    /// The point.
    pub point: Point,
    /// The context.
    pub context: Vec<f64>,
    /// The fidelity in the user's units.
    #[serde(default)]
    pub fidelity: Option<f64>,
    /// The user's attributes, as JSON.
    #[serde(default)]
    pub attrs: Option<String>,
    /// The outcomes whose values are known.
    pub results: Vec<(u32, Reading)>,
    /// Whether the other outcomes are expected.
    pub awaited: bool,
    /// The data that were reported with the values, if any. Few events have data, so they have a box.
    #[serde(default, deserialize_with = "json::named_if_any")]
    pub data: Option<Box<Data>>,
}

/// A step of the learning curve. A value of None means that the step failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The trial.
    pub trial: TrialNumber,
    /// The step, from 1 to the last step of the declared curve.
    pub step: u32,
    /// The value of the curve.
    #[serde(default)]
    pub value: Option<f64>,
    /// The number of the attempt, counted from 0. Each start of the evaluation is an attempt.
    pub attempt: u32,
}

/// Attributes, a remark or a confirmation of a trial, without a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Noted {
    /// The trial.
    pub trial: TrialNumber,
    /// The user's attributes, as JSON. They replace earlier attributes of the same names.
    #[serde(default)]
    pub attrs: Option<String>,
    /// A text, which is added to the earlier remarks of the trial.
    #[serde(default)]
    pub remark: Option<String>,
    /// The outcomes whose values are right although they are marked.
    #[serde(default)]
    pub confirms: Option<Vec<u32>>,
}

/// A mark of a value that lies outside the interval in which it was expected. The model that expected the value had not
/// read it. Models and decisions do not read marks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// The outcome.
    pub outcome: u32,
    /// The smallest expected value.
    pub low: f64,
    /// The largest expected value.
    pub high: f64,
}

/// The results that one report changed. Each outcome that the report concerns is listed once: a failure of the trial
/// names the outcomes that fail, and a new point names the values that now belong to this point. If outcomes are
/// declared, a report about the whole trial also lists the trial, at the position after the outcomes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resulted {
    /// The trial.
    pub trial: TrialNumber,
    /// The outcomes, and what happened to the result of each.
    pub results: Vec<(u32, Happened)>,
    /// The data that were reported together, if any.
    #[serde(default, deserialize_with = "json::named_if_any")]
    pub data: Option<Box<Data>>,
}

/// What happened to the result of an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Happened {
    /// The value arrived.
    #[serde(deserialize_with = "json::named")]
    New(Reading),
    /// The value or its noise was replaced, or belongs to another point.
    #[serde(deserialize_with = "json::named")]
    Amended(Reading),
    /// The evaluation ended without a value.
    Failed,
    /// The value is no longer expected.
    Abandoned,
    /// The evaluation was ended before the last step of its curve. The curve is still used.
    Stopped,
    /// The value, the failure or the curve was taken back. If `awaited`, another value is expected.
    Withdrawn {
        /// Whether another value is expected.
        awaited: bool,
    },
}

/// The data of a report, which belong to the trial. If a field is None, the trial keeps the earlier datum.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// The cost of the evaluation in any unit, finite and not negative.
    #[serde(default)]
    pub cost: Option<f64>,
    /// The duration of the evaluation in seconds.
    #[serde(default)]
    pub duration: Option<f64>,
    /// The point where the trial was run. If None, it is the point where the trial was started.
    #[serde(default)]
    pub point: Option<Point>,
    /// The user's attributes, as JSON.
    #[serde(default)]
    pub attrs: Option<String>,
    /// The error of a failure.
    #[serde(default, deserialize_with = "json::named_if_any")]
    pub error: Option<Failure>,
    /// The reason of a withdrawal.
    #[serde(default)]
    pub reason: Option<String>,
    /// The marks of new values.
    #[serde(default)]
    pub marks: Option<Vec<Mark>>,
}

/// A revision. Trials keep their numbers, states and values. All texts are JSON that the caller wrote, and that only
/// the caller reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revision {
    /// The new problem and settings.
    pub definition: String,
    /// The values of earlier trials for parameters that are new.
    #[serde(default)]
    pub fill: Option<String>,
    /// The values that are renamed.
    #[serde(default)]
    pub map: Option<String>,
    /// The values of removed parameters that belong to the new problem.
    #[serde(default)]
    pub keep: Option<String>,
    /// Whether the constraints were replaced, too. Events do not contain the functions.
    pub constrained: bool,
    /// The pending trials that the functions among the constraints refuse, for processes without the functions.
    #[serde(default)]
    pub refused: Vec<TrialNumber>,
}

/// The data of a report without data.
static NO_DATA: Data = Data {
    cost: None,
    duration: None,
    point: None,
    attrs: None,
    error: None,
    reason: None,
    marks: None,
};

impl Data {
    /// These data, if there are any.
    pub(crate) fn boxed(self) -> Option<Box<Data>> {
        (self != NO_DATA).then(|| Box::new(self))
    }
}

impl Added {
    pub(crate) fn data(&self) -> &Data {
        self.data.as_deref().unwrap_or(&NO_DATA)
    }
}

impl Resulted {
    /// The values that are reported for the first time, or that are amended.
    pub(crate) fn readings(&self) -> Vec<(u32, Reading)> {
        let readings = self.results.iter();
        readings
            .filter_map(|(outcome, it)| Some((*outcome, it.reading()?)))
            .collect()
    }

    pub(crate) fn data(&self) -> &Data {
        self.data.as_deref().unwrap_or(&NO_DATA)
    }
}

impl Happened {
    /// The value that the outcome has after the event.
    pub(crate) fn reading(self) -> Option<Reading> {
        match self {
            Happened::New(reading) | Happened::Amended(reading) => Some(reading),
            _ => None,
        }
    }
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
        match &self.what {
            What::Suggested(_) | What::Added(_) => Some(n_trials),
            What::Reported(it) => Some(it.trial),
            What::Resulted(it) => Some(it.trial),
            What::Noted(it) => Some(it.trial),
            What::Enqueued(_) | What::Revised(_) => None,
        }
    }

    /// The values of outcomes that this event reports, in the user's sign.
    pub(crate) fn readings(&self) -> Vec<(u32, Reading)> {
        match &self.what {
            What::Added(it) => it.results.clone(),
            What::Resulted(it) => it.readings(),
            _ => Vec::new(),
        }
    }

    /// The marks of the values that this event reports.
    pub(crate) fn marks(&self) -> &[Mark] {
        let data = match &self.what {
            What::Added(it) => it.data(),
            What::Resulted(it) => it.data(),
            _ => &NO_DATA,
        };
        data.marks.as_deref().unwrap_or_default()
    }

    /// Adds marks to the values that this event reports.
    pub(crate) fn mark(&mut self, marks: Vec<Mark>) {
        if let (false, What::Added(Added { data, .. }) | What::Resulted(Resulted { data, .. })) =
            (marks.is_empty(), &mut self.what)
        {
            data.get_or_insert_default().marks = Some(marks);
        }
    }

    /// Returns the point that this event contains, if any: a start point, an enqueued point or a run point.
    pub(crate) fn point(&self) -> Option<&Point> {
        match &self.what {
            What::Suggested(it) => Some(&it.point),
            What::Added(it) => Some(&it.point),
            What::Enqueued(it) => Some(&it.point),
            What::Resulted(it) => it.data().point.as_ref(),
            What::Reported(_) | What::Revised(_) | What::Noted(_) => None,
        }
    }

    /// The fidelity of a started trial or of an enqueued point, in the user's units.
    pub(crate) fn fidelity(&self) -> Option<f64> {
        match &self.what {
            What::Suggested(it) => it.fidelity,
            What::Added(it) => it.fidelity,
            What::Enqueued(it) => it.fidelity,
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

/// A request of the caller. The log checks the request and converts it to an event. An outcome is given by its position
/// in the declaration. Without declared outcomes, a trial has one outcome, at position 0.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Values of a trial have arrived. All of them are logged, or none. Trials in every state accept values.
    Observe {
        /// The trial.
        number: TrialNumber,
        /// The values and their data.
        observation: Observation,
        /// The rule for outcomes that already have a value.
        again: Again,
    },
    /// The trial crashed. The model of success counts the point of the trial as a failure.
    Fail {
        /// The trial.
        number: TrialNumber,
        /// The outcome that failed, or None for all missing outcomes.
        outcome: Option<usize>,
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
        /// The outcome that is no longer expected, or None for all missing outcomes.
        outcome: Option<usize>,
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
        /// The outcome that is wrong, or None for all outcomes with a result.
        outcome: Option<usize>,
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
        /// The values that are known, and their data. The other outcomes are missing.
        observation: Observation,
        /// The user's attributes, as JSON.
        attrs: Option<String>,
    },
    /// A point that will be suggested before the strategy proposes a further point.
    Enqueue(Queued),
    /// Attributes or a remark of a trial. Attributes that are known have no effect, and neither has the last remark.
    Note(Noted),
    /// A report had no effect, and its caller gave it a key. The event keeps the key, so that a repetition has no effect
    /// later, either.
    Acknowledge {
        /// The trial.
        number: TrialNumber,
    },
    /// Marked values of a trial are right. Values without a mark are not changed.
    Confirm {
        /// The trial.
        number: TrialNumber,
        /// The outcome whose value is right, or None for all outcomes.
        outcome: Option<usize>,
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
            outcome: None,
            reason: None,
        }
    }

    /// Creates an abandonment of all missing outcomes.
    pub fn abandon(number: TrialNumber) -> Self {
        Action::Abandon {
            number,
            outcome: None,
        }
    }

    /// Creates a failure without an error message.
    pub fn fail(number: TrialNumber) -> Self {
        Action::Fail {
            number,
            outcome: None,
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
            observation: value
                .map(|value| Observation::new(value, std))
                .unwrap_or_default(),
            attrs: None,
        }
    }

    /// Creates an enqueued point without a fidelity.
    pub fn enqueue(point: Point) -> Self {
        Action::Enqueue(Queued {
            point,
            partial: false,
            fidelity: None,
            attrs: None,
        })
    }
}

/// The note of a suggestion, from the notes of the models of the outcomes. None if no model wrote a note.
pub(crate) fn join_notes(notes: &[Option<String>]) -> Option<String> {
    let any = notes.iter().any(Option::is_some);
    any.then(|| serde_json::json!(notes).to_string())
}

/// The notes of the models of the outcomes, from the note of a suggestion.
pub(crate) fn split_notes(note: &str) -> Result<Vec<Option<String>>> {
    serde_json::from_str(note).map_err(|error| {
        Error::Corrupt(format!("the note {note:?} is not a list of notes: {error}"))
    })
}
