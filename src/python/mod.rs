//! The Python module `belated._core`, one file per class. Each method converts its arguments, releases the GIL, calls
//! the core and converts the result.

mod acquisition;
mod constraints;
mod curves;
mod delays;
mod domain;
mod durations;
mod errors;
mod gaussian_process;
mod interrupt;
mod optimizer;
mod problem;
mod settings;
mod trial;

use ndarray::{Array1, Array2};
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::error::{Error, Result};
use crate::numerics::threads;

type Vector<'py> = Bound<'py, PyArray1<f64>>;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::register(module)?;
    module.add_class::<problem::Problem>()?;
    module.add_class::<problem::Parameter>()?;
    module.add_class::<problem::Space>()?;
    module.add_class::<problem::Candidates>()?;
    module.add_class::<domain::Domain>()?;
    module.add_class::<optimizer::Optimizer>()?;
    module.add_class::<trial::Observation>()?;
    module.add_class::<trial::Action>()?;
    module.add_class::<trial::Draft>()?;
    module.add_class::<trial::TrialRecord>()?;
    module.add_class::<gaussian_process::GaussianProcess>()?;
    module.add_class::<acquisition::Acquisition>()?;
    module.add_class::<delays::DelayDistribution>()?;
    module.add_class::<curves::CurveModel>()?;
    module.add_class::<durations::DurationModel>()?;
    module.add_function(wrap_pyfunction!(trial::facts_of, module)?)?;
    module.add_function(wrap_pyfunction!(trial::point_of, module)?)?;
    module.add_function(wrap_pyfunction!(trial::revision_event, module)?)?;
    module.add_function(wrap_pyfunction!(trial::revision_of, module)?)?;
    module.add_function(wrap_pyfunction!(trial::without_note, module)?)?;
    module.add_function(wrap_pyfunction!(trial::without_time, module)?)?;
    module.add_function(wrap_pyfunction!(settings::defaults, module)?)?;
    module.add_function(wrap_pyfunction!(add_busy_workers, module)?)?;
    Ok(())
}

/// Adds `change` to the number of busy workers, for each of which the optimizers of this process leave a processor
/// free.
#[pyfunction]
fn add_busy_workers(change: isize) {
    threads::add_busy_workers(change);
}

/// Returns a copy, which other threads cannot change while the GIL is released.
fn owned1(array: PyReadonlyArray1<'_, f64>) -> Array1<f64> {
    array.as_array().to_owned()
}

fn owned2(array: PyReadonlyArray2<'_, f64>) -> Array2<f64> {
    let array = array.as_array();
    // ndarray does not accept the strides of an empty numpy array.
    if array.is_empty() {
        return Array2::zeros(array.raw_dim());
    }
    array.as_standard_layout().into_owned()
}

fn check_finite<'a>(name: &str, mut values: impl Iterator<Item = &'a f64>) -> Result<()> {
    match values.find(|v| !v.is_finite()) {
        None => Ok(()),
        Some(bad) => Err(Error::InvalidPoint(format!(
            "{name} contains {bad}; all its entries must be finite"
        ))),
    }
}
