//! `Domain`: boxes and candidate sets.

use std::sync::Arc;

use numpy::PyReadonlyArray2;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::domain::{Coordinate, Domain as Core};
use crate::python::errors::raise;
use crate::python::owned2;

/// The set that suggestions come from.
#[pyclass(frozen, module = "belated._core")]
pub struct Domain {
    pub core: Arc<Core>,
}

#[pymethods]
impl Domain {
    #[staticmethod]
    #[pyo3(name = "box")]
    fn of_box(py: Python<'_>, coordinates: Vec<Bound<'_, PyTuple>>) -> PyResult<Self> {
        let coordinates = coordinates
            .iter()
            .map(coordinate)
            .collect::<PyResult<Vec<_>>>()?;
        let core = Core::new_box(coordinates).map_err(|error| raise(py, error))?;
        Ok(Self {
            core: Arc::new(core),
        })
    }

    #[staticmethod]
    fn candidates(py: Python<'_>, points: PyReadonlyArray2<'_, f64>) -> PyResult<Self> {
        let core = Core::candidates(owned2(points)).map_err(|error| raise(py, error))?;
        Ok(Self {
            core: Arc::new(core),
        })
    }

    #[getter]
    fn width(&self) -> usize {
        self.core.width()
    }
}

fn coordinate(tuple: &Bound<'_, PyTuple>) -> PyResult<Coordinate> {
    let kind: String = tuple.get_item(0)?.extract()?;
    match (kind.as_str(), tuple.len()) {
        ("continuous", 1) => Ok(Coordinate::Continuous),
        ("integer", 4) => Ok(Coordinate::Integer {
            low: tuple.get_item(1)?.extract()?,
            high: tuple.get_item(2)?.extract()?,
            log: tuple.get_item(3)?.extract()?,
        }),
        ("categorical", 2) => Ok(Coordinate::Categorical {
            n: tuple.get_item(1)?.extract()?,
        }),
        _ => Err(PyTypeError::new_err(format!(
            "coordinate {tuple} is not one of (\"continuous\",), (\"integer\", low, high, log), (\"categorical\", k)"
        ))),
    }
}
