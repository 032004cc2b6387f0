//! The Python class `Domain`: boxes and candidate sets.

use std::sync::Arc;

use numpy::PyReadonlyArray2;
use pyo3::prelude::*;

use crate::problem::Domain as Core;
use crate::python::owned2;

/// A search space: the set of points that can be suggested.
#[pyclass(frozen, module = "belated._core")]
pub struct Domain {
    pub core: Arc<Core>,
}

#[pymethods]
impl Domain {
    #[staticmethod]
    fn candidates(points: PyReadonlyArray2<'_, f64>) -> PyResult<Self> {
        let core = Arc::new(Core::candidates(owned2(points))?);
        Ok(Self { core })
    }

    #[getter]
    fn width(&self) -> usize {
        self.core.width()
    }
}
