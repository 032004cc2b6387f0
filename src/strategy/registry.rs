//! Every strategy by its name: settings in JSON → a strategy. A new strategy is one line here.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::random::Rng;
use crate::strategy::bayes::BayesOpt;
use crate::strategy::random_search::{self, RandomSearch};
use crate::strategy::{Setup, Strategy};

/// Makes a strategy from its settings; the generator is there for what is drawn once, such as an initial design.
type Make = fn(Value, &Setup, &mut Rng) -> Result<Box<dyn Strategy>>;

/// Python class → how it is made.
const STRATEGIES: &[(&str, Make)] = &[
    ("RandomSearch", |settings, setup, _| {
        read::<random_search::Settings>(settings)?;
        Ok(Box::new(RandomSearch::new(setup)))
    }),
    ("BayesOpt", |settings, setup, rng| {
        Ok(Box::new(BayesOpt::new(setup, read(settings)?, rng)?))
    }),
];

/// The strategy that `{"kind": name, …settings}` describes. One that cannot do what the setup asks for is refused.
pub fn make(definition: &Value, setup: &Setup, rng: &mut Rng) -> Result<Box<dyn Strategy>> {
    let mut settings = definition.as_object().cloned().unwrap_or_default();
    let kind = match settings.remove("kind") {
        Some(Value::String(kind)) => kind,
        other => return Err(unknown(&format!("{other:?}"))),
    };
    let (name, make) = STRATEGIES
        .iter()
        .find(|(name, _)| *name == kind)
        .ok_or_else(|| unknown(&kind))?;
    let strategy = make(Value::Object(settings), setup, rng)?;
    strategy.supports().check(name, setup)?;
    Ok(strategy)
}

/// `{"kind": name, …settings}`.
pub fn definition(kind: &str, settings: impl serde::Serialize) -> Value {
    let mut fields = Map::from_iter([("kind".to_string(), Value::from(kind))]);
    if let Ok(Value::Object(settings)) = serde_json::to_value(settings) {
        fields.extend(settings);
    }
    Value::Object(fields)
}

fn unknown(kind: &str) -> Error {
    Error::InvalidSetting {
        name: "strategy",
        got: kind.to_string(),
        expected: "this belated knows no strategy of this kind",
    }
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
    use crate::domain::{Coordinate, Domain};
    use crate::ledger::Clock;
    use rand::SeedableRng;
    use serde_json::json;

    #[test]
    fn definitions_that_make_no_strategy_are_refused() {
        let setup = Setup {
            domain: Domain::new_box(vec![Coordinate::Continuous])
                .unwrap()
                .into(),
            context: vec![],
            clock: Clock::Iterations,
        };
        let made = |definition: Value| make(&definition, &setup, &mut Rng::seed_from_u64(0));
        for good in [
            json!({"kind": "RandomSearch"}),
            json!({"kind": "BayesOpt"}),
            json!({"kind": "BayesOpt", "acquisition": {"kind": "UCB", "beta": "theory"}, "pending": null}),
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
