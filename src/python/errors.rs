//! The errors of the core as Python exceptions. Each class also inherits from the builtin exception that a Python
//! user expects.

use pyo3::exceptions::{
    PyArithmeticError, PyException, PyKeyError, PyRuntimeError, PyUserWarning, PyValueError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::error::Error;

/// The exception classes, created once per interpreter.
struct Exceptions {
    base: Py<PyType>,
    invalid_space: Py<PyType>,
    invalid_setting: Py<PyType>,
    invalid_value: Py<PyType>,
    invalid_point: Py<PyType>,
    invalid_context: Py<PyType>,
    invalid_fidelity: Py<PyType>,
    unknown_trial: Py<PyType>,
    already_observed: Py<PyType>,
    numerical: Py<PyType>,
    horizon_reached: Py<PyType>,
    warning: Py<PyType>,
}

static EXCEPTIONS: PyOnceLock<Exceptions> = PyOnceLock::new();

fn exceptions(py: Python<'_>) -> PyResult<&Exceptions> {
    EXCEPTIONS.get_or_try_init(py, || {
        let exception = py.get_type::<PyException>();
        let base = class(
            py,
            "BelatedError",
            "Base class of all exceptions that belated raises.",
            &[&exception],
        )?;
        let derived = |name, doc, other: &Bound<'_, PyType>| {
            class(py, name, doc, &[base.bind(py), other])
        };
        let value_error = &py.get_type::<PyValueError>();
        Ok(Exceptions {
            invalid_space: derived(
                "InvalidSpace",
                "A search space, candidate set or context space that cannot be searched.",
                value_error,
            )?,
            invalid_setting: derived(
                "InvalidSetting",
                "An optimizer setting outside its documented range, or two settings that contradict each other.",
                value_error,
            )?,
            invalid_value: derived(
                "InvalidValue",
                "A value that is not finite, or an invalid ``std``, ``cost`` or ``duration``. Nothing was changed.",
                value_error,
            )?,
            invalid_point: derived(
                "InvalidPoint",
                "A point (or the parameters of one) that does not belong to the space.",
                value_error,
            )?,
            invalid_context: derived(
                "InvalidContext",
                "A context that is missing, undeclared or outside its space.",
                value_error,
            )?,
            invalid_fidelity: derived(
                "InvalidFidelity",
                "A fidelity that is not declared, is outside its range, or is not the trial's. Nothing was changed.",
                value_error,
            )?,
            unknown_trial: derived(
                "UnknownTrial",
                "A trial number that does not exist in this optimizer.",
                &py.get_type::<PyKeyError>(),
            )?,
            already_observed: derived(
                "AlreadyObserved",
                "A trial that already has a value; another value needs ``amend=True`` or ``replicate=True``.",
                value_error,
            )?,
            numerical: derived(
                "NumericalError",
                "A covariance matrix that could not be factorised, even with jitter.",
                &py.get_type::<PyArithmeticError>(),
            )?,
            horizon_reached: derived(
                "HorizonReached",
                "A suggestion beyond the horizon of the optimizer. Nothing was changed.",
                &py.get_type::<PyRuntimeError>(),
            )?,
            warning: class(
                py,
                "BelatedWarning",
                "A warning about a likely mistake, or about an error that did not stop the optimizer.",
                &[&py.get_type::<PyUserWarning>()],
            )?,
            base,
        })
    })
}

/// Creates an exception class of the module `belated`, with these bases.
fn class(
    py: Python<'_>,
    name: &str,
    doc: &str,
    bases: &[&Bound<'_, PyType>],
) -> PyResult<Py<PyType>> {
    let body = PyDict::new(py);
    body.set_item("__doc__", doc)?;
    body.set_item("__module__", "belated")?;
    // Use the `__str__` of Exception, because KeyError would print the message in quotes.
    let exception = py.get_type::<PyException>();
    body.set_item("__str__", exception.getattr("__str__")?)?;
    let made = py
        .get_type::<PyType>()
        .call1((name, PyTuple::new(py, bases)?, body))?;
    Ok(made.cast_into::<PyType>()?.unbind())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let all = exceptions(module.py())?;
    for (name, class) in [
        ("BelatedError", &all.base),
        ("InvalidSpace", &all.invalid_space),
        ("InvalidSetting", &all.invalid_setting),
        ("InvalidValue", &all.invalid_value),
        ("InvalidPoint", &all.invalid_point),
        ("InvalidContext", &all.invalid_context),
        ("InvalidFidelity", &all.invalid_fidelity),
        ("UnknownTrial", &all.unknown_trial),
        ("AlreadyObserved", &all.already_observed),
        ("NumericalError", &all.numerical),
        ("HorizonReached", &all.horizon_reached),
        ("BelatedWarning", &all.warning),
    ] {
        module.add(name, class)?;
    }
    Ok(())
}

/// Returns the exception for an error of the core.
pub fn raise(py: Python<'_>, error: Error) -> PyErr {
    let all = match exceptions(py) {
        Ok(all) => all,
        Err(error) => return error,
    };
    let class = match &error {
        Error::InvalidSpace(_) | Error::NoFeasiblePoint { .. } => &all.invalid_space,
        Error::InvalidSetting { .. }
        | Error::InvalidDefinition { .. }
        | Error::InvalidTime { .. }
        | Error::Unsupported { .. } => &all.invalid_setting,
        Error::InvalidValue { .. }
        | Error::InvalidDeviation { .. }
        | Error::InvalidCost { .. }
        | Error::InvalidDuration { .. }
        | Error::InvalidAttrs(_) => &all.invalid_value,
        Error::InvalidPoint(_) | Error::Shape(_) => &all.invalid_point,
        Error::InvalidContext(_) => &all.invalid_context,
        Error::InvalidFidelity(_) => &all.invalid_fidelity,
        Error::UnknownTrial { .. } => &all.unknown_trial,
        Error::AlreadyObserved { .. } => &all.already_observed,
        Error::NotPositiveDefinite { .. } | Error::Overflow { .. } => &all.numerical,
        Error::HorizonReached { .. } => &all.horizon_reached,
        Error::Corrupt(_) | Error::UnknownFormat { .. } => &all.base,
        Error::Interrupted => return PyRuntimeError::new_err(error.to_string()),
    };
    PyErr::from_type(class.bind(py).clone(), error.to_string())
}

/// Emits a warning of the class `BelatedWarning`.
pub fn warn(py: Python<'_>, message: &str) -> PyResult<()> {
    let message = std::ffi::CString::new(message)?;
    PyErr::warn(py, exceptions(py)?.warning.bind(py), &message, 2)
}
