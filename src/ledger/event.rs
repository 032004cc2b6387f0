//! What can happen to trials, as data: everything else is folded from a list of these.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

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

/// One thing that happened. All `now` are on the optimizer's clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Event {
    /// A trial was started, at a point that the strategy proposed or (`queued`) that was first in the queue.
    Suggested {
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
        now: f64,
        #[serde(default)]
        attrs: Option<String>,
    },
    /// A point to be suggested next.
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
        now: f64,
    },
    /// An observed value was replaced.
    Amended {
        number: TrialNumber,
        value: f64,
        #[serde(default)]
        std: Option<f64>,
        #[serde(default)]
        cost: Option<f64>,
    },
    Failed {
        number: TrialNumber,
        now: f64,
        /// What went wrong, in the caller's words.
        #[serde(default)]
        error: Option<String>,
    },
    Abandoned {
        number: TrialNumber,
        now: f64,
    },
}

impl Event {
    /// As one line of JSON without absent fields. Numbers are written so that they are read back to the same bits.
    pub fn to_json(&self) -> Result<String> {
        let corrupt = |error: serde_json::Error| Error::Corrupt(error.to_string());
        let mut value = serde_json::to_value(self).map_err(corrupt)?;
        drop_nulls(&mut value);
        serde_json::to_string(&value).map_err(corrupt)
    }

    /// From JSON; refuses anything that is not exactly an event.
    pub fn from_json(text: &str) -> Result<Self> {
        let corrupt = |error: serde_json::Error| Error::Corrupt(error.to_string());
        let value: serde_json::Value = serde_json::from_str(text).map_err(corrupt)?;
        // serde takes a list of fields for a structure, too.
        let mut facts = value
            .as_object()
            .into_iter()
            .flat_map(|kinds| kinds.values());
        if !facts.all(|facts| facts.is_object() && facts.get("point").is_none_or(|p| p.is_object()))
        {
            return Err(Error::Corrupt(format!(
                "{text} lists fields without their names"
            )));
        }
        serde_json::from_value(value).map_err(corrupt)
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
}

/// An added trial without a value has `"value": null`, which must stay.
fn drop_nulls(value: &mut serde_json::Value) {
    let serde_json::Value::Object(fields) = value else {
        return;
    };
    fields.retain(|name, value| !value.is_null() || name == "value");
    fields.values_mut().for_each(drop_nulls);
}

/// What a caller wants recorded; the log decides whether it may be, and as which event.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// A value. The same value again changes nothing; another one needs `amend`.
    Observe {
        number: TrialNumber,
        value: f64,
        std: Option<f64>,
        cost: Option<f64>,
        amend: bool,
    },
    /// The trial crashed: the model keeps its point, as worse than the worst observed.
    Fail {
        number: TrialNumber,
        error: Option<String>,
    },
    /// Nobody waits for the trial any more: the model drops its point.
    Abandon { number: TrialNumber },
    /// A trial that was started elsewhere.
    Add {
        point: Point,
        context: Vec<f64>,
        fidelity: Option<f64>,
        value: Option<f64>,
        std: Option<f64>,
        cost: Option<f64>,
        attrs: Option<String>,
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
        let cost = None;
        Action::Observe {
            number,
            value,
            std,
            cost,
            amend,
        }
    }

    pub fn fail(number: TrialNumber) -> Self {
        Action::Fail {
            number,
            error: None,
        }
    }

    pub fn add(point: Point, context: Vec<f64>, value: Option<f64>, std: Option<f64>) -> Self {
        Action::Add {
            point,
            context,
            fidelity: None,
            value,
            std,
            cost: None,
            attrs: None,
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number() -> impl Strategy<Value = f64> {
        prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO
    }

    proptest! {
        #[test]
        fn json_keeps_every_bit(
            x in number(), n: usize, full: bool, text in prop::option::of(".*"),
        ) {
            let or = full.then_some(x);
            let point = Point { x: vec![x, 1.0], index: full.then_some(n), given: full.then(|| vec![x]) };
            for event in [
                Event::Observed { number: n, value: x, std: or, cost: or, now: -x },
                Event::Amended { number: n, value: x, std: or, cost: or },
                Event::Failed { number: n, now: x, error: text.clone() },
                Event::Abandoned { number: n, now: x },
                Event::Enqueued { point: point.clone(), fidelity: or, attrs: text.clone() },
                Event::Added {
                    point: point.clone(), context: vec![x], fidelity: or, value: or, std: or, cost: or, now: x,
                    attrs: text.clone(),
                },
                Event::Suggested {
                    point, context: vec![], fidelity: or, now: 0.1, expires_at: or, queued: full, note: text.clone(),
                    attrs: text,
                },
            ] {
                let again = Event::from_json(&event.to_json().unwrap()).unwrap();
                prop_assert_eq!(again, event);
            }
        }

        /// Almost no text is an event; a text that is one must be the event that it is written as.
        #[test]
        fn other_text_is_refused(text in ".*") {
            prop_assert!(matches!(Event::from_json(&text), Err(Error::Corrupt(_))));
        }

        #[test]
        fn a_damaged_event_is_refused_or_another_event(at: prop::sample::Index, with in "[ -~]") {
            let event = Event::Observed { number: 3, value: 0.25, std: None, cost: None, now: 7.0 };
            let mut text = event.to_json().unwrap();
            let i = at.index(text.len());
            text.replace_range(i..=i, &with);
            match Event::from_json(&text) {
                Err(error) => prop_assert!(matches!(error, Error::Corrupt(_))),
                // A digit for a digit.
                Ok(other) => {
                    let written: serde_json::Value = serde_json::from_str(&text).unwrap();
                    let facts = &written["Observed"];
                    let number = facts["number"].as_u64().map(|n| n as usize);
                    prop_assert_eq!(other.trial_number(9), number);
                    let expected = Event::Observed {
                        number: number.unwrap(),
                        value: facts["value"].as_f64().unwrap(),
                        std: None,
                        cost: None,
                        now: facts["now"].as_f64().unwrap(),
                    };
                    prop_assert_eq!(other, expected);
                }
            }
        }
    }

    #[test]
    fn absent_fields_are_left_out_and_an_unknown_value_stands_as_null() {
        let event = Event::Added {
            point: Point::new(vec![0.5], None),
            context: vec![],
            fidelity: None,
            value: None,
            std: None,
            cost: None,
            now: 1.0,
            attrs: None,
        };
        let text = event.to_json().unwrap();
        assert_eq!(
            text,
            r#"{"Added":{"context":[],"now":1.0,"point":{"x":[0.5]},"value":null}}"#
        );
    }

    #[test]
    fn unknown_fields_and_wrong_types_are_refused() {
        for text in [
            r#"{"Failed":{"number":0,"now":1.0,"extra":1}}"#,
            r#"{"Failed":{"number":-1,"now":1.0}}"#,
            r#"{"Failed":{"number":0,"now":null}}"#,
            r#"{"Observed":{"number":0,"value":1e999,"now":1.0}}"#,
            r#"{"Enqueued":{"point":{"x":[0.5],"extra":1}}}"#,
            r#"{"Observed":[0,0.5,null,null,1.0]}"#,
            r#"{"Enqueued":{"point":[[0.5],null,null]}}"#,
            r#"{"Exploded":{}}"#,
            "[]",
        ] {
            assert!(Event::from_json(text).is_err(), "{text}");
        }
    }
}
