//! Writing and reading of events as JSON.

use std::fmt;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};

use crate::error::Result;

/// Writes an event as one line of JSON without absent fields.
pub(super) fn write<T: Serialize>(event: &T) -> Result<String> {
    let mut value = serde_json::to_value(event)?;
    drop_nulls(&mut value);
    Ok(value.to_string())
}

/// Removes absent fields. In a list, null has a meaning: an inactive parameter.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(entries) => entries.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

pub(super) fn read<T: DeserializeOwned>(text: &str) -> Result<T> {
    let Named(event) = serde_json::from_str(text)?;
    Ok(event)
}

/// Whether a text is a JSON object. serde_json refuses objects with more than 127 levels of nesting.
pub(super) fn is_object(text: &str) -> bool {
    object(text).is_some()
}

/// Reads a JSON object, or returns `None` for another text.
pub(super) fn object(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(text).ok()
}

/// Reads a structure that must be an object in JSON. serde would also accept a list of its fields.
pub(super) fn named<'de, D, T>(deserializer: D) -> std::result::Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Named::deserialize(deserializer).map(|Named(structure)| structure)
}

/// Reads an optional structure as [`named`] does.
pub(super) fn named_if_any<'de, D, T>(deserializer: D) -> std::result::Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let structure = Option::deserialize(deserializer)?;
    Ok(structure.map(|Named(structure)| structure))
}

struct Named<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        // Saved optimizers store the fields without their names.
        match deserializer.is_human_readable() {
            true => deserializer.deserialize_map(Fields(PhantomData)),
            false => T::deserialize(deserializer),
        }
        .map(Named)
    }
}

struct Fields<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> std::result::Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::ledger::{
        Added, Data, Event, Failure, Happened, Mark, Noted, Queued, Reading, Resulted, Revision,
        Step, Suggested, What,
    };
    use crate::problem::Point;
    use proptest::prelude::*;

    fn number() -> impl Strategy<Value = f64> {
        prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO
    }

    fn observed(trial: usize, value: f64, now: f64) -> Event {
        let results = vec![(0, Happened::New(Reading { value, std: None }))];
        let data = None;
        Event {
            at: None,
            by: None,
            now,
            what: What::Resulted(Resulted {
                trial,
                results,
                data,
            }),
        }
    }

    proptest! {
        #[test]
        fn json_keeps_every_bit(
            x in number(), n: usize, full: bool, text in prop::option::of(".*"),
        ) {
            let or = full.then_some(x);
            let point = match full {
                true => Point::Candidate(n),
                false => Point::Numbers(vec![Some(x), None]),
            };
            let error = text.clone().map(|message| Failure {
                kind: message.clone(), traceback: full.then(|| message.clone()), message,
            });
            let reading = Reading { value: x, std: or };
            let data = Some(Box::new(Data {
                cost: or, duration: or, point: full.then(|| point.clone()), attrs: text.clone(), error, reason: text.clone(),
                marks: full.then(|| vec![Mark { outcome: 1, low: x, high: x }]),
            }));
            let results = vec![
                (0, Happened::New(reading)), (1, Happened::Amended(reading)), (2, Happened::Failed), (3, Happened::Abandoned),
                (4, Happened::Stopped), (u32::MAX, Happened::Withdrawn { awaited: full }),
            ];
            for what in [
                What::Resulted(Resulted { trial: n, results, data: data.clone() }),
                What::Reported(Step { trial: n, step: 3, value: or, attempt: 1 }),
                What::Enqueued(Queued { point: point.clone(), partial: false, fidelity: or, attrs: text.clone() }),
                What::Revised(Revision {
                    definition: text.clone().unwrap_or_default(), fill: text.clone(), map: None, keep: text.clone(),
                    constrained: full, refused: if full { vec![n] } else { vec![] },
                }),
                What::Noted(Noted { trial: n, attrs: text.clone(), remark: text.clone(), confirms: full.then(|| vec![0, 3]) }),
                What::Added(Added {
                    point: point.clone(), context: vec![x], fidelity: or, results: vec![(0, reading)], awaited: full, data,
                    attrs: text.clone(),
                }),
                What::Suggested(Suggested {
                    point, context: vec![], fidelity: or, expires_at: or, queued: full, note: text.clone(), attrs: text,
                }),
            ] {
                let event = Event { at: or, by: None, now: -x, what };
                let again = Event::from_json(&event.to_json().unwrap()).unwrap();
                prop_assert_eq!(again, event);
            }
        }

        /// A random text is refused.
        #[test]
        fn random_text_is_refused(text in ".*") {
            prop_assert!(matches!(Event::from_json(&text), Err(Error::Corrupt(_))));
        }

        #[test]
        fn a_damaged_event_is_refused_or_read_as_a_different_event(at: prop::sample::Index, with in "[ -~]") {
            let event = observed(3, 0.25, 7.0);
            let mut text = event.to_json().unwrap();
            let i = at.index(text.len());
            text.replace_range(i..=i, &with);
            match Event::from_json(&text) {
                Err(error) => prop_assert!(matches!(error, Error::Corrupt(_))),
                // If the change replaced one digit by another digit, the text can still be read.
                Ok(other) => {
                    let written: Value = serde_json::from_str(&text).unwrap();
                    let result = &written["what"]["Resulted"];
                    let number = result["trial"].as_u64().unwrap() as usize;
                    prop_assert_eq!(other.trial_number(9), Some(number));
                    let outcome = result["results"][0][0].as_u64().unwrap() as u32;
                    let value = result["results"][0][1]["New"]["value"].as_f64().unwrap();
                    let mut expected = observed(number, value, written["now"].as_f64().unwrap());
                    if let What::Resulted(it) = &mut expected.what {
                        it.results[0].0 = outcome;
                    }
                    prop_assert_eq!(other, expected);
                }
            }
        }
    }

    #[test]
    fn absent_fields_are_left_out() {
        let event = Event {
            at: None,
            by: None,
            now: 1.0,
            what: What::Enqueued(Queued {
                point: Point::Numbers(vec![Some(0.5), None]),
                partial: false,
                fidelity: None,
                attrs: None,
            }),
        };
        let text = event.to_json().unwrap();
        assert_eq!(
            text,
            r#"{"now":1.0,"what":{"Enqueued":{"partial":false,"point":{"numbers":[0.5,null]}}}}"#
        );
        assert_eq!(Event::from_json(&text).unwrap(), event);
    }

    #[test]
    fn unknown_and_wrong_fields_are_refused() {
        let good = observed(0, 1.0, 2.0).to_json().unwrap();
        assert!(Event::from_json(&good).is_ok());
        for (from, to) in [
            (r#""now":2.0"#, r#""now":"2.0""#),
            (r#""now":2.0,"#, ""),
            (r#""now":2.0"#, r#""now":2.0,"extra":1"#),
            (r#""now":2.0"#, r#""now":2.0,"now":2.0"#),
            (r#""trial":0"#, r#""trial":-1"#),
            (r#""trial":0"#, r#""trial":0,"extra":1"#),
            (r#""value":1.0"#, r#""value":1.0,"extra":1"#),
            (r#""value":1.0"#, r#""value":1e999"#),
            (r#"{"value":1.0}"#, "[1.0,null]"),
            (r#"{"value":1.0}"#, "{}"),
            (
                r#""trial":0"#,
                r#""trial":0,"data":[null,null,null,null,null,null,null]"#,
            ),
            (r#""trial":0"#, r#""trial":0,"data":{"point":[0.5]}"#),
            (
                r#""trial":0"#,
                r#""trial":0,"data":{"point":{"numbers":0.5}}"#,
            ),
            (r#""trial":0"#, r#""trial":0,"data":{"attrs":{"a":1}}"#),
            (r#""trial":0"#, r#""trial":0,"data":{"error":"ValueError"}"#),
            (
                r#""trial":0"#,
                r#""trial":0,"data":{"error":["ValueError","bad",null]}"#,
            ),
            (
                r#""trial":0"#,
                r#""trial":0,"data":{"error":{"type":"ValueError"}}"#,
            ),
            (r#""New""#, r#""Old""#),
            (r#""Resulted""#, r#""Exploded""#),
        ] {
            let text = good.replacen(from, to, 1);
            assert_ne!(text, good, "{from}");
            assert!(Event::from_json(&text).is_err(), "{text}");
        }
        for text in [
            "[]",
            r#"[null,1.0,{"Enqueued":{"point":{"numbers":[0.5]}}}]"#,
            r#"{"now":1.0,"what":{"Enqueued":[{"numbers":[0.5]},null,null,null]}}"#,
            r#"{"now":1.0,"what":{"Enqueued":{"point":{"numbers":[0.5],"candidate":1}}}}"#,
            r#"{"now":1.0,"what":{"Enqueued":{"point":{"candidate":-1}}}}"#,
            r#"{"now":1.0,"what":{"Revised":{"definition":{},"constrained":false}}}"#,
            r#"{"now":1.0,"what":{"Revised":{"definition":"{}"}}}"#,
        ] {
            assert!(Event::from_json(text).is_err(), "{text}");
        }
    }
}
