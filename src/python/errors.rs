//! The errors of the core as Python exceptions. Each class also inherits from the builtin exception that a Python
//! user expects.

use pyo3::exceptions::{
    PyArithmeticError, PyException, PyKeyError, PyRuntimeError, PyUserWarning, PyValueError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyType};

use crate::error::Error;

/// The exception classes by name, created once per interpreter.
static EXCEPTIONS: PyOnceLock<Py<PyDict>> = PyOnceLock::new();

fn exceptions(py: Python<'_>) -> PyResult<&Bound<'_, PyDict>> {
    let all = EXCEPTIONS.get_or_try_init(py, || {
        let base = class(
            py,
            "BelatedError",
            "Base class of all exceptions that belated raises.",
            (py.get_type::<PyException>(),),
        )?;
        let warning = class(
            py,
            "BelatedWarning",
            "A warning about a likely mistake, or about an error that did not stop the optimizer.",
            (py.get_type::<PyUserWarning>(),),
        )?;
        let all = PyDict::new(py);
        all.set_item("BelatedError", &base)?;
        all.set_item("BelatedWarning", warning)?;
        let value_error = &py.get_type::<PyValueError>();
        for (name, builtin, doc) in [
            (
                "InvalidSpace",
                value_error,
                "A search space, candidate set or context space that cannot be searched.",
            ),
            (
                "InvalidSetting",
                value_error,
                "An optimizer setting outside its documented range, or two settings that contradict each other.",
            ),
            (
                "InvalidValue",
                value_error,
                "A value that is not finite, or an invalid ``std``, ``cost`` or ``duration``. Nothing was changed.",
            ),
            (
                "InvalidPoint",
                value_error,
                "A point (or the parameters of one) that does not belong to the space.",
            ),
            (
                "InvalidContext",
                value_error,
                "A context that is missing, undeclared or outside its space.",
            ),
            (
                "InvalidFidelity",
                value_error,
                "A fidelity that is not declared, is outside its range, or is not the trial's. Nothing was changed.",
            ),
            (
                "UnknownTrial",
                &py.get_type::<PyKeyError>(),
                "A trial number that does not exist in this optimizer.",
            ),
            (
                "AlreadyObserved",
                value_error,
                "A trial that already has a value; another value needs ``amend=True`` or ``replicate=True``.",
            ),
            (
                "NumericalError",
                &py.get_type::<PyArithmeticError>(),
                "A covariance matrix that could not be factorised, even with jitter.",
            ),
            (
                "HorizonReached",
                &py.get_type::<PyRuntimeError>(),
                "A suggestion beyond the horizon of the optimizer. Nothing was changed.",
            ),
        ] {
            all.set_item(name, class(py, name, doc, (&base, builtin))?)?;
        }
        PyResult::Ok(all.unbind())
    })?;
    Ok(all.bind(py))
}

/// The exception class of this name.
fn named<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    let found = exceptions(py)?.as_any().get_item(name)?;
    Ok(found.cast_into()?)
}

/// Creates an exception class of the module `belated`, with these bases.
fn class<'py>(
    py: Python<'py>,
    name: &str,
    doc: &str,
    bases: impl IntoPyObject<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let body = PyDict::new(py);
    body.set_item("__doc__", doc)?;
    body.set_item("__module__", "belated")?;
    // Use the `__str__` of Exception, because KeyError would print the message in quotes.
    let exception = py.get_type::<PyException>();
    body.set_item("__str__", exception.getattr("__str__")?)?;
    py.get_type::<PyType>().call1((name, bases, body))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for (name, class) in exceptions(module.py())? {
        module.add(name.cast::<PyString>()?, class)?;
    }
    Ok(())
}

/// The exception for an error of the core.
impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        let name = match &error {
            Error::InvalidSpace(_) | Error::NoFeasiblePoint { .. } => "InvalidSpace",
            Error::InvalidSetting { .. }
            | Error::InvalidDefinition { .. }
            | Error::InvalidTime { .. }
            | Error::Unsupported { .. } => "InvalidSetting",
            Error::InvalidValue { .. }
            | Error::NoCurve { .. }
            | Error::NotWithdrawable { .. }
            | Error::InvalidAttrs(_) => "InvalidValue",
            Error::InvalidPoint(_) | Error::Shape(_) => "InvalidPoint",
            Error::InvalidContext(_) => "InvalidContext",
            Error::InvalidFidelity(_) => "InvalidFidelity",
            Error::UnknownTrial { .. } => "UnknownTrial",
            Error::AlreadyObserved { .. }
            | Error::OutcomeAlreadyObserved { .. }
            | Error::RunElsewhere { .. }
            | Error::AlreadyReported { .. } => "AlreadyObserved",
            Error::NotPositiveDefinite { .. } | Error::Overflow { .. } => "NumericalError",
            Error::HorizonReached { .. } => "HorizonReached",
            Error::Corrupt(_) | Error::UnknownFormat { .. } => "BelatedError",
            Error::Interrupted => return PyRuntimeError::new_err(error.to_string()),
        };
        Python::attach(|py| match named(py, name) {
            Ok(class) => PyErr::from_type(class, error.to_string()),
            Err(raised) => raised,
        })
    }
}

/// Emits a warning of the class `BelatedWarning`.
pub fn warn(py: Python<'_>, message: &str) -> PyResult<()> {
    let message = std::ffi::CString::new(message)?;
    PyErr::warn(py, named(py, "BelatedWarning")?.as_any(), &message, 2)
}
