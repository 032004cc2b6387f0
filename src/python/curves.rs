//! The Python class `CurveModel`, on numpy arrays.

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::curves::CurveModel as Core;
use crate::error::{Error, Result, refuse};
use crate::python::interrupt::detached;
use crate::python::{owned1, owned2};

/// A model of learning curves, fitted to the curves of ended trials.
#[pyclass(frozen, module = "belated._core")]
pub struct CurveModel {
    core: Option<Core>,
    steps: Vec<u32>,
}

/// Returns the reports of a curve. NaN stands for a missing report.
fn curve<'a>(steps: &[u32], values: impl Iterator<Item = &'a f64>) -> Vec<(u32, f64)> {
    steps.iter().copied().zip(values.copied()).collect()
}

fn check_length(name: &str, got: usize, steps: &[u32]) -> Result<()> {
    if got == steps.len() {
        return Ok(());
    }
    Err(Error::Shape(format!(
        "{name} has {got} values per curve, but there are {} steps; give one value per step, NaN without a report",
        steps.len()
    )))
}

#[pymethods]
impl CurveModel {
    #[new]
    fn new(py: Python<'_>, steps: Vec<u32>, ended: PyReadonlyArray2<'_, f64>) -> PyResult<Self> {
        let ended = owned2(ended);
        check_length("ended", ended.ncols(), &steps)?;
        if steps.is_empty() || steps[0] == 0 || !steps.is_sorted_by(|s, t| s < t) {
            return Err(refuse(
                "steps",
                format!("{steps:?}"),
                "give ascending whole numbers from 1",
            )
            .into());
        }
        let core = detached(py, |stop| {
            let rows = ended.rows().into_iter();
            let curves: Vec<Vec<(u32, f64)>> = rows.map(|row| curve(&steps, row.iter())).collect();
            Core::fit(&curves, steps[steps.len() - 1], stop)
        })?;
        Ok(Self { core, steps })
    }

    #[getter]
    fn noise(&self) -> Option<f64> {
        self.core.as_ref().map(Core::noise)
    }

    /// The knee and the width of the warp, or None without a warp.
    #[getter]
    fn warp(&self) -> Option<(f64, f64)> {
        let warp = self.core.as_ref().and_then(Core::warp)?;
        Some((warp.knee, warp.width))
    }

    fn pseudo_observation(
        &self,
        values: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<Option<(f64, f64)>> {
        let values = owned1(values);
        check_length("values", values.len(), &self.steps)?;
        let found = |core: &Core| core.pseudo_observation(&curve(&self.steps, values.iter()));
        let found = self.core.as_ref().and_then(found);
        Ok(found.map(|found| (found.value, found.variance)))
    }
}
