//! Known constraints, given by a Python function that takes a list of points and returns whether each point is
//! feasible.

use std::cell::RefCell;

use ndarray::ArrayView2;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::error::{Error, Result, Stop, refuse};
use crate::maximize::feasible::Feasible;
use crate::problem::{Members, Problem};
use crate::python::interrupt::detached;

thread_local! {
    /// The addresses of the optimizers whose constraints this thread is calling, while it holds the locks of these
    /// optimizers.
    static CALLING: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// The entry of an optimizer in the list of this thread. Dropping this value removes the entry.
struct Calling;

impl Calling {
    fn of(optimizer: usize) -> Self {
        CALLING.with_borrow_mut(|calling| calling.push(optimizer));
        Self
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        CALLING.with_borrow_mut(Vec::pop);
    }
}

/// Returns an error if this thread is calling the constraints of the optimizer. Waiting for the lock of the optimizer
/// would then never end.
pub fn check_not_calling(optimizer: usize) -> Result<()> {
    match CALLING.with_borrow(|calling| calling.contains(&optimizer)) {
        false => Ok(()),
        true => Err(refuse(
            "constraints",
            "a function that uses the optimizer it constrains",
            "use only the params",
        )),
    }
}

/// Runs a computation with the GIL released. Each call of the constraints takes the GIL again. Exceptions that the
/// constraints raise are passed on unchanged.
pub fn detached_with<T: Send>(
    py: Python<'_>,
    optimizer: usize,
    problem: &Problem,
    constraints: Option<Py<PyAny>>,
    compute: impl FnOnce(Feasible, &mut Stop) -> Result<T> + Send,
) -> PyResult<T> {
    let mut raised: Option<PyErr> = None;
    let outcome = detached(py, |stop| match &constraints {
        None => compute(Feasible::EVERYWHERE, stop),
        Some(function) => {
            let error = RefCell::new(None);
            let check = |rows: ArrayView2<f64>| {
                let _calling = Calling::of(optimizer);
                Python::attach(|py| call(py, problem, function, rows)).map_err(|raised| {
                    *error.borrow_mut() = Some(raised);
                    Error::Interrupted
                })
            };
            let result = compute(Feasible::by(&check), stop);
            raised = error.into_inner();
            result
        }
    });
    match raised {
        Some(error) => Err(error),
        None => outcome,
    }
}

/// Whether the points of these encoded rows satisfy the constraints. The constraints receive the numbers of all
/// parameters.
fn call(
    py: Python<'_>,
    problem: &Problem,
    function: &Py<PyAny>,
    rows: ArrayView2<f64>,
) -> PyResult<Vec<bool>> {
    let Members::Space(space) = &problem.members else {
        return Ok(vec![true; rows.nrows()]); // candidates do not support constraints
    };
    let points: Vec<Vec<Option<f64>>> = rows
        .outer_iter()
        .map(|row| space.decode(&row.to_vec()))
        .collect();
    let answers = function.call1(py, (points,))?;
    let answers: PyReadonlyArray1<'_, bool> = answers.extract(py)?;
    Ok(answers.as_array().to_vec())
}
