//! The Python class `DurationModel`, on numpy arrays.

use numpy::{IntoPyArray, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::python::interrupt::detached;
use crate::python::{Vector, owned2};
use crate::strategy::model_based::Durations;

/// The model of durations, which does not change after it is created.
#[pyclass(frozen, module = "belated._core")]
pub struct DurationModel {
    pub core: Durations,
}

/// Means and standard deviations.
type Moments<'py> = (Vector<'py>, Vector<'py>);

#[pymethods]
impl DurationModel {
    #[getter]
    fn numbers(&self) -> Vec<usize> {
        self.core.numbers.clone()
    }

    #[getter]
    fn log_durations<'py>(&self, py: Python<'py>) -> Vector<'py> {
        self.core.log_durations.clone().into_pyarray(py)
    }

    #[getter]
    fn explained(&self) -> f64 {
        self.core.explained
    }

    fn predict<'py>(
        &self,
        py: Python<'py>,
        points: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Moments<'py>> {
        let points = owned2(points);
        let (mean, std) = detached(py, |stop| (self.core.predict)(points.view(), stop))?;
        Ok((mean.into_pyarray(py), std.into_pyarray(py)))
    }

    fn left_out<'py>(&self, py: Python<'py>) -> Moments<'py> {
        let (mean, std) = self.core.left_out.clone();
        (mean.into_pyarray(py), std.into_pyarray(py))
    }
}
