//! The registry of strategies, which makes a strategy from a name in [`STRATEGIES`] and settings in JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::{Error, Result, refuse};
use crate::random::Rng;
use crate::strategy::bayes::BayesOpt;
use crate::strategy::elimination::BPEDelay;
use crate::strategy::from_settings::{FromSettings, as_json};
use crate::strategy::random_search::RandomSearch;
use crate::strategy::tree::TreeSearch;
use crate::strategy::{Setup, Strategy};

/// An entry of the registry.
struct Entry {
    name: &'static str,
    make: fn(Value, &Setup, &mut Rng) -> Result<Box<dyn Strategy>>,
    defaults: fn() -> Value,
    values: fn() -> Vec<Value>,
}

/// All strategies, by the names of their Python classes.
const STRATEGIES: &[Entry] = &[
    Entry::of::<RandomSearch>("RandomSearch"),
    Entry::of::<BayesOpt>("BayesOpt"),
    Entry::of::<BPEDelay>("BPEDelay"),
    Entry::of::<TreeSearch>("TreeSearch"),
];

impl Entry {
    /// The entry of strategy `T`. `name` is the name of the Python class.
    const fn of<T: FromSettings>(name: &'static str) -> Self {
        Self {
            name,
            make: |settings, setup, rng| Ok(Box::new(T::new(setup, read(settings)?, rng)?)),
            defaults: || as_json(T::Settings::default()),
            values: T::values,
        }
    }
}

/// The name of the strategy of a definition, for messages.
pub fn name_of(definition: &Value) -> &'static str {
    let kind = definition.get("kind").and_then(Value::as_str);
    let entry = STRATEGIES.iter().find(|entry| Some(entry.name) == kind);
    entry.map_or("this strategy", |entry| entry.name)
}

/// Makes the strategy from `{"kind": name, …settings}`. Returns an error if the setup has an unsupported feature.
pub fn make(definition: &Value, setup: &Setup, rng: &mut Rng) -> Result<Box<dyn Strategy>> {
    let mut settings = definition.as_object().cloned().unwrap_or_default();
    let kind = match settings.remove("kind") {
        Some(Value::String(kind)) => kind,
        other => return Err(unknown(&format!("{other:?}"))),
    };
    let entry = STRATEGIES
        .iter()
        .find(|entry| entry.name == kind)
        .ok_or_else(|| unknown(&kind))?;
    let strategy = (entry.make)(Value::Object(settings), setup, rng)?;
    strategy.supports().check(entry.name, setup)?;
    Ok(strategy)
}

/// The definition `{"kind": name, …settings}` of a strategy.
pub fn definition(kind: &str, settings: impl Serialize) -> Value {
    let mut fields = Map::from_iter([("kind".to_string(), Value::from(kind))]);
    if let Value::Object(settings) = as_json(settings) {
        fields.extend(settings);
    }
    Value::Object(fields)
}

/// All strategies, and the structured values of their settings, by kind, with the default in every field.
pub fn defaults() -> Map<String, Value> {
    let strategies = STRATEGIES
        .iter()
        .map(|entry| definition(entry.name, (entry.defaults)()));
    let values = STRATEGIES.iter().flat_map(|entry| (entry.values)());
    strategies
        .chain(values)
        .filter_map(|value| Some((value.get("kind")?.as_str()?.to_string(), value)))
        .collect()
}

fn unknown(kind: &str) -> Error {
    refuse(
        "strategy",
        kind,
        "this version of belated has no strategy of this kind",
    )
}

fn read<T: DeserializeOwned>(settings: Value) -> Result<T> {
    let text = settings.to_string();
    serde_json::from_value(settings).map_err(|error| Error::InvalidDefinition {
        got: text,
        expected: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Clock, Coordinate, Direction, Domain};
    use rand::SeedableRng;
    use serde_json::json;

    #[test]
    fn invalid_definitions_are_refused() {
        let setup = Setup {
            domain: Domain::new_box(vec![Coordinate::Continuous])
                .unwrap()
                .into(),
            context: vec![],
            descriptors: vec![],
            fidelity: None,
            clock: Clock::Iterations,
            direction: Direction::Maximize,
            outcomes: vec![],
        };
        let made = |definition: Value| make(&definition, &setup, &mut Rng::seed_from_u64(0));
        for good in [
            json!({"kind": "RandomSearch"}),
            json!({"kind": "BayesOpt"}),
            json!({"kind": "BayesOpt", "acquisition": {"kind": "UCB", "beta": "kandasamy"}, "pending": null}),
            json!({"kind": "BayesOpt", "surrogate": {"kind": "GP", "lengthscale": [0.5], "mean": 1.5}}),
        ] {
            assert!(made(good.clone()).is_ok(), "{good}");
        }
        for bad in [
            json!(null),
            json!({}),
            json!({"kind": 7}),
            json!({"kind": "Unknown"}),
            json!({"kind": "RandomSearch", "window": 3.0}),
            json!({"kind": "BayesOpt", "windows": 3.0}),
            json!({"kind": "BayesOpt", "acquisition": {"kind": "UCB", "betta": 1.0}}),
            json!({"kind": "BayesOpt", "acquisition": {"kind": "UCB", "beta": "wide"}}),
            json!({"kind": "BayesOpt", "surrogate": {"kind": "GP", "ard": 1}}),
            json!({"kind": "BayesOpt", "surrogate": {"kind": "GP", "kernel": "rbf"}}),
        ] {
            assert!(made(bad.clone()).is_err(), "{bad}");
        }
    }
}
