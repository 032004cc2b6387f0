//! The trait of strategies that are made from settings.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

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
