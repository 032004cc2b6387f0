//! The defaults of every setting.

use pyo3::prelude::*;

use crate::error::Error;
use crate::python::errors::raise;
use crate::strategy::registry;

/// All strategies and settings by the names of their Python classes, with their defaults, as JSON.
#[pyfunction]
pub fn defaults(py: Python<'_>) -> PyResult<String> {
    serde_json::to_string(&registry::defaults())
        .map_err(|error| raise(py, Error::Corrupt(error.to_string())))
}
