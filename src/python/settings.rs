//! The defaults of every setting.

use pyo3::prelude::*;
use serde_json::{Map, Value, json};

use crate::stopping::Stopping;
use crate::strategy::registry;

/// Returns all strategies, settings and stopping rules with their defaults as JSON. The keys are the names of the Python
/// classes.
#[pyfunction]
pub fn defaults() -> String {
    let mut all: Map<String, Value> = registry::defaults();
    for rule in Stopping::defaults() {
        let rule = json!(rule);
        all.insert(rule["kind"].as_str().unwrap_or_default().to_string(), rule);
    }
    Value::Object(all).to_string()
}
