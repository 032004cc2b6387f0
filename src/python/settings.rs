//! The defaults of every setting.

use pyo3::prelude::*;

use crate::error::Error;
use crate::python::errors::raise;
use crate::strategy::registry;

/// Returns all strategies and settings with their defaults as JSON. The keys are the names of their Python classes.
#[pyfunction]
pub fn defaults(py: Python<'_>) -> PyResult<String> {
    serde_json::to_string(&registry::defaults())
        .map_err(|error| raise(py, Error::Corrupt(error.to_string())))
}
