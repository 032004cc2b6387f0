//! The defaults of every setting.

use pyo3::prelude::*;
use serde_json::Value;

use crate::strategy::registry;

/// Returns all strategies and settings with their defaults as JSON. The keys are the names of the Python classes.
#[pyfunction]
pub fn defaults() -> String {
    Value::Object(registry::defaults()).to_string()
}
