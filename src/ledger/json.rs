//! Writing and reading of events as JSON.

use std::fmt;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};

use crate::error::{Error, Result};

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
    // An event is {"Kind": {…}}. serde would also accept a list of the fields. The names of kinds do not contain
    // colons.
    let fields = text.split_once(':').map(|(_, fields)| fields.trim_start());
    if fields.is_none_or(|fields| !fields.starts_with('{')) {
        return Err(Error::Corrupt(
            "an event is an object {kind: {field: value, …}}".to_string(),
        ));
    }
    Ok(serde_json::from_str(text)?)
}

/// Whether a text is a JSON object. serde_json refuses objects with more than 127 levels of nesting.
pub(super) fn is_object(text: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(text).is_ok()
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
    use crate::ledger::{Event, Failure, Observation};
    use crate::problem::Point;
    use proptest::prelude::*;

    fn number() -> impl Strategy<Value = f64> {
        prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO
    }

    fn observed(number: usize, value: f64, now: f64) -> Event {
        Event::Observed {
            number,
            observation: Observation::new(value, None),
            now,
            at: None,
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
            let run = full.then(|| point.clone());
            let error = text.clone().map(|message| Failure {
                kind: message.clone(), traceback: full.then(|| message.clone()), message,
            });
            let full_observation = Observation {
                cost: or, duration: or, point: run, attrs: text.clone(), ..Observation::new(x, or)
            };
            for event in [
                Event::Observed { number: n, observation: full_observation.clone(), now: -x, at: or },
                Event::Amended { number: n, observation: full_observation.clone(), at: or },
                Event::Failed { number: n, now: x, error, duration: Some(x), attrs: text.clone(), at: None },
                Event::Abandoned { number: n, now: x, at: None },
                Event::Withdrawn { number: n, reason: text.clone(), now: x, at: or },
                Event::Enqueued { point: point.clone(), given: None, fidelity: or, attrs: text.clone(), at: None },
                Event::Revised {
                    definition: text.clone().unwrap_or_default(), fill: text.clone(), map: None, keep: text.clone(),
                    constrained: full, at: or,
                },
                Event::Added {
                    point: point.clone(), context: vec![x], fidelity: or, observation: full.then_some(full_observation),
                    now: x, at: or, attrs: text.clone(),
                },
                Event::Suggested {
                    point, context: vec![], fidelity: or, now: 0.1, expires_at: or, queued: full, note: text.clone(),
                    attrs: text, at: None },
            ] {
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
                    let written: serde_json::Value = serde_json::from_str(&text).unwrap();
                    let facts = &written["Observed"];
                    let number = facts["number"].as_u64().map(|n| n as usize);
                    prop_assert_eq!(other.trial_number(9), number);
                    let value = facts["observation"]["reading"]["value"].as_f64().unwrap();
                    let expected = observed(number.unwrap(), value, facts["now"].as_f64().unwrap());
                    prop_assert_eq!(other, expected);
                }
            }
        }
    }

    #[test]
    fn absent_fields_are_left_out() {
        let event = Event::Added {
            point: Point::Numbers(vec![Some(0.5), None]),
            context: vec![],
            fidelity: None,
            observation: None,
            now: 1.0,
            at: None,
            attrs: None,
        };
        let text = event.to_json().unwrap();
        assert_eq!(
            text,
            r#"{"Added":{"context":[],"now":1.0,"point":{"numbers":[0.5,null]}}}"#
        );
    }

    #[test]
    fn unknown_fields_and_wrong_types_are_refused() {
        for text in [
            r#"{"Failed":{"number":0,"now":1.0,"extra":1}}"#,
            r#"{"Failed":{"number":-1,"now":1.0}}"#,
            r#"{"Failed":{"number":0,"now":null}}"#,
            r#"{"Observed":{"number":0,"observation":{"reading":{"value":1e999}},"now":1.0}}"#,
            r#"{"Observed":{"number":0,"observation":{"reading":{"value":1.0},"extra":1},"now":1.0}}"#,
            r#"{"Observed":{"number":0,"observation":{"reading":{"value":1.0,"extra":1}},"now":1.0}}"#,
            r#"{"Observed":{"number":0,"observation":{"reading":[1.0,null]},"now":1.0}}"#,
            r#"{"Observed":{"number":0,"observation":{"reading":{}},"now":1.0}}"#,
            r#"{"Observed":{"number":0,"observation":[{"value":1.0},null,null,null,null],"now":1.0}}"#,
            r#"{"Observed":{"number":0,"observation":{},"now":1.0}}"#,
            r#"{"Observed":{"number":0,"now":1.0}}"#,
            r#"{"Enqueued":{"point":{"numbers":[0.5],"extra":1}}}"#,
            r#"{"Enqueued":{"point":{"numbers":[0.5],"candidate":1}}}"#,
            r#"{"Enqueued":{"point":{"candidate":-1}}}"#,
            r#"{"Observed":[0,0.5,null,null,1.0]}"#,
            r#"{"Enqueued":{"point":[0.5]}}"#,
            r#"{"Observed":{"number":0,"observation":{"reading":{"value":0.5},"point":[0.5]},"now":1.0}}"#,
            r#"{"Observed":{"number":0,"observation":{"reading":{"value":0.5},"point":{"numbers":0.5}},"now":1.0}}"#,
            r#"{"Observed":{"number":0,"observation":{"reading":{"value":0.5}},"now":1.0,"number":1}}"#,
            r#"{"Failed":{"number":0,"now":1.0,"error":"ValueError"}}"#,
            r#"{"Failed":{"number":0,"now":1.0,"error":["ValueError","bad",null]}}"#,
            r#"{"Failed":{"number":0,"now":1.0,"error":{"type":"ValueError"}}}"#,
            r#"{"Failed":{"number":0,"now":1.0,"error":{"type":"E","message":"","line":1}}}"#,
            r#"{"Failed":{"number":0,"now":1.0,"attrs":{"a":1}}}"#,
            r#"{"Exploded":{}}"#,
            r#"{"Revised":{"definition":{},"constrained":false}}"#,
            r#"{"Revised":{"definition":"{}","fill":{},"constrained":false}}"#,
            r#"{"Revised":{"definition":"{}"}}"#,
            "[]",
        ] {
            assert!(Event::from_json(text).is_err(), "{text}");
        }
    }
}
