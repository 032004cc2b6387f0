//! What can happen to trials, as data: everything else is folded from a list of these.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::gp::Hyperparameters;
use crate::gp::kernel::KernelFamily;

/// Trials are numbered from 0 in the order in which they were suggested or added.
pub type TrialNumber = usize;

/// What time is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Clock {
    /// Suggestions started. A result seen before the next suggestion has delay 1.
    Iterations,
    /// Seconds, now by the caller.
    Seconds,
}

/// A fit made for a suggestion: the kernel, θ and the number of rows that it was made for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fitted {
    pub family: KernelFamily,
    pub theta: Hyperparameters,
    pub rows: usize,
    /// The unit of the targets it was made for: standard deviations that come with values are counted in it.
    pub scale: f64,
}

/// A place: encoded coordinates, and the row number where the domain is a list of candidates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    pub x: Vec<f64>,
    pub index: Option<usize>,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Event {
    /// A trial was started, at a point that the strategy proposed or (`queued`) that was first in the queue.
    Suggested {
        point: Point,
        context: Vec<f64>,
        now: f64,
        fitted: Option<Fitted>,
        queued: bool,
        /// Wall-clock seconds after which the trial no longer counts as arriving.
        #[serde(default)]
        expires_at: Option<f64>,
    },
    /// A trial that was started elsewhere, with its value if that is known.
    Added {
        point: Point,
        context: Vec<f64>,
        value: Option<f64>,
        #[serde(default)]
        std: Option<f64>,
        now: f64,
    },
    /// A point to be suggested next.
    Enqueued {
        point: Point,
    },
    Observed {
        number: TrialNumber,
        value: f64,
        /// The standard deviation of its noise, where that is known.
        #[serde(default)]
        std: Option<f64>,
        now: f64,
    },
    /// An observed value was replaced.
    Amended {
        number: TrialNumber,
        value: f64,
        #[serde(default)]
        std: Option<f64>,
    },
    Failed {
        number: TrialNumber,
        now: f64,
    },
    Abandoned {
        number: TrialNumber,
        now: f64,
    },
}

impl Event {
    /// As one line of JSON. Numbers are written so that they are read back to the same bits.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| Error::Corrupt(error.to_string()))
    }

    /// From JSON; refuses anything that is not exactly an event.
    pub fn from_json(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|error| Error::Corrupt(error.to_string()))
    }
}

/// What a caller wants recorded; the log says whether it may be, and as which event.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// A value. The same value again changes nothing; another one needs `amend`.
    Observe {
        number: TrialNumber,
        value: f64,
        std: Option<f64>,
        amend: bool,
    },
    /// The trial crashed: the model keeps its point, at the worst observed value.
    Fail { number: TrialNumber },
    /// Nobody waits for the trial any more: the model forgets its point.
    Abandon { number: TrialNumber },
    /// A trial that was started elsewhere.
    Add {
        point: Point,
        context: Vec<f64>,
        value: Option<f64>,
        std: Option<f64>,
    },
    /// A point to be suggested next.
    Enqueue { point: Point },
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn json_keeps_every_bit(x in prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO, number: usize) {
            for event in [
                Event::Observed { number, value: x, std: Some(x), now: -x },
                Event::Suggested {
                    point: Point { x: vec![x, 1.0], index: Some(number) },
                    context: vec![],
                    now: 0.1,
                    fitted: Some(Fitted {
                        family: KernelFamily::Matern32,
                        theta: Hyperparameters { lengthscale: vec![x], signal_variance: x, noise_variance: 1e-300 },
                        rows: 3,
                        scale: 1.0,
                    }),
                    queued: false,
                    expires_at: Some(x),
                },
            ] {
                let again = Event::from_json(&event.to_json().unwrap()).unwrap();
                prop_assert_eq!(again, event);
            }
        }

        #[test]
        fn other_text_is_refused(text in ".*") {
            prop_assert!(matches!(Event::from_json(&text), Err(Error::Corrupt(_)) | Ok(_)));
        }
    }

    #[test]
    fn unknown_fields_and_wrong_types_are_refused() {
        for text in [
            r#"{"Failed":{"number":0,"now":1.0,"extra":1}}"#,
            r#"{"Failed":{"number":-1,"now":1.0}}"#,
            r#"{"Failed":{"number":0,"now":null}}"#,
            r#"{"Observed":{"number":0,"value":1e999,"now":1.0}}"#,
            r#"{"Exploded":{}}"#,
            "[]",
        ] {
            assert!(Event::from_json(text).is_err(), "{text}");
        }
    }
}
