//! The trait of strategies that are made from their settings.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::Result;
use crate::random::Rng;
use crate::strategy::{Setup, Strategy};

/// A strategy that is made from its settings.
pub trait FromSettings: Strategy + Sized + 'static {
    type Settings: Default + Serialize + DeserializeOwned;

    /// Makes the strategy. `rng` is used for draws that are made once, such as an initial design.
    fn new(setup: &Setup, settings: Self::Settings, rng: &mut Rng) -> Result<Self>;

    /// The structured values of the settings, each with its defaults.
    fn values() -> Vec<Value> {
        Vec::new()
    }
}

/// A value of settings as JSON.
pub fn as_json(value: impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}
