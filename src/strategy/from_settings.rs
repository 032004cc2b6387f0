//! The trait of strategies that are made from settings.

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::error::Result;
use crate::random::Rng;
use crate::strategy::{Setup, Strategy};

/// A strategy that is made from settings.
pub trait FromSettings: Strategy + Sized + 'static {
    type Settings: Default + Serialize + DeserializeOwned;

    /// Makes the strategy. `rng` is used for random draws that are made only once, such as the initial design.
    fn new(setup: &Setup, settings: Self::Settings, rng: &mut Rng) -> Result<Self>;

    /// The structured values that the settings may contain, with the default in every field.
    fn values() -> Vec<Value> {
        Vec::new()
    }
}

/// Converts a value of the settings to JSON.
pub fn as_json(value: impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// Reads a value with the tag `kind` in JSON that can have only one kind.
pub fn tagged<'de, D: Deserializer<'de>, T: Default + Serialize + DeserializeOwned>(
    data: D,
) -> std::result::Result<T, D::Error> {
    let mut fields = Map::deserialize(data)?;
    let kind = fields.remove("kind");
    if kind.as_ref() != as_json(T::default()).get("kind") {
        return Err(Error::custom(format!("unknown kind {kind:?}")));
    }
    T::deserialize(Value::Object(fields)).map_err(Error::custom)
}
