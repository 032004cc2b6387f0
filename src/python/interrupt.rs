//! Long computations with the GIL released. Ctrl-C can interrupt them.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::error::{Error, Result, Stop};

/// The interval between checks for signals. More frequent checks would slow computations down, because each check
/// acquires the GIL.
const INTERVAL: Duration = Duration::from_millis(20);

/// Runs a computation with the GIL released, until it ends or a signal handler raises an exception.
pub fn detached<T: Send>(
    py: Python<'_>,
    compute: impl FnOnce(&mut Stop) -> Result<T> + Send,
) -> PyResult<T> {
    let (result, raised) = py.detach(|| {
        let mut raised = None;
        let mut last = Instant::now();
        let mut stop = || {
            if last.elapsed() >= INTERVAL {
                last = Instant::now();
                // A daemon thread may still compute when the interpreter ends.
                if let Some(Err(error)) = Python::try_attach(|py| py.check_signals()) {
                    raised = Some(error);
                }
            }
            if raised.is_some() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let result = compute(&mut stop);
        (result, raised)
    });
    match (result, raised) {
        (Ok(done), None) => Ok(done),
        // If the signal came after the last check, the computation is complete, but the exception must still be
        // raised.
        (Ok(_), Some(raised)) | (Err(Error::Interrupted), Some(raised)) => Err(raised),
        (Err(error), _) => Err(error.into()),
    }
}
