//! The declaration of a range of numbers, and the checks that all ranges share.

use crate::error::{Error, Result};

/// The arguments `(low, high, log, step)` of the constructors of `Real` and `Integer`.
pub type Range = (f64, f64, bool, Option<f64>);

/// The error message if the step is so large that the range has one value.
pub(super) const ONE_VALUE: &str =
    "has one value: make step at most high - low, or write a constant as its value";

/// Refuses bounds in the wrong order, a logarithmic scale whose `low` is not positive or not a multiple of the step,
/// and a step that is not positive. `call` is the declaration as text.
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
    if log && step.is_some_and(|step| first_multiple(low, step).is_none()) {
        let why = "is not usable: with log=True, low must be a multiple of step, from 1 to 2**30 times step; change low, or drop log or step";
        return refuse(call, why);
    }
    Ok(())
}

/// Returns low / step, if this is an integer from 1 to 2^30, up to rounding. On a logarithmic axis, the members k·step
/// have the same distances as the integers k.
pub(super) fn first_multiple(low: f64, step: f64) -> Option<i64> {
    let first = (low / step).round();
    let is_multiple = (low / step - first).abs() <= 1e-6;
    (is_multiple && (1.0..=(1u64 << 30) as f64).contains(&first)).then_some(first as i64)
}

/// The error of a range.
pub(super) fn refuse<T>(call: &str, why: &str) -> Result<T> {
    Err(Error::InvalidSpace(format!("{call} {why}")))
}
