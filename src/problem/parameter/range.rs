//! The declaration of a range of numbers, and the checks that all ranges share.

use crate::error::{Error, Result};

/// The arguments `(low, high, log, step)` of the constructors of `Real` and `Integer`. `step` is None if the range does
/// not have steps.
pub type Range = (f64, f64, bool, Option<f64>);

/// The error message if the step is so large that the range has one value.
pub(super) const ONE_VALUE: &str =
    "has one value: make step at most high - low, or write a constant as its value";

/// Refuses bounds in the wrong order, and a logarithmic scale from 0 or below. Refuses a step that is not positive, or
/// is combined with a logarithmic scale. `call` is the declaration as text.
pub(super) fn check((low, high, log, step): Range, call: &str) -> Result<()> {
    if low > high {
        return refuse(
            call,
            "is empty: low must not be greater than high; swap them",
        );
    }
    if log && low <= 0.0 {
        let why = "has log=True: a logarithmic scale needs low > 0; raise low or drop log";
        return refuse(call, why);
    }
    if step.is_some_and(|step| !(step > 0.0 && step.is_finite())) {
        let why = "is not usable: step must be a positive number, or None for no step";
        return refuse(call, why);
    }
    if log && step.is_some() {
        let why = "is not usable: steps are even on a linear scale; drop log or step";
        return refuse(call, why);
    }
    Ok(())
}

/// The error of a range.
pub(super) fn refuse<T>(call: &str, why: &str) -> Result<T> {
    Err(Error::InvalidSpace(format!("{call} {why}")))
}
