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

/// The largest absolute value of a column. A measurement that is farther from the range has this column.
pub const MAX_COLUMN: f64 = 1e6;

/// A number beyond a bound by at most this share of the range counts as the bound.
const ROUNDING: f64 = 1e-9;

/// Whether a number beyond the bounds or between two steps can be encoded: the number is finite and, on a logarithmic
/// axis, positive.
pub(super) fn is_on_axis(number: f64, log: bool) -> bool {
    number.is_finite() && (number > 0.0 || !log)
}

/// Whether a number lies beyond the bounds by more than rounding.
pub(super) fn is_beyond(number: f64, (low, high): (f64, f64), log: bool) -> bool {
    let slack = |end: f64| match log {
        true => ROUNDING * end,
        false => (ROUNDING * (high / 2.0 - low / 2.0)).max(4.0 * (end.abs().next_up() - end.abs())),
    };
    number < low - slack(low) || number > high + slack(high)
}

/// The column of a number: 0 at `low`, 1 at `high`, and beyond [0, 1] outside this range.
pub(super) fn column(number: f64, (low, high): (f64, f64), log: bool) -> f64 {
    let u = if log {
        match number < low {
            true => -log_ratio(low, number) / log_ratio(high, low),
            false => log_ratio(number, low) / log_ratio(high, low),
        }
    } else if (high - low).is_finite() && (number - low).is_finite() {
        (number - low) / (high - low)
    } else {
        (number / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0)
    };
    u.clamp(-MAX_COLUMN, MAX_COLUMN)
}

/// Returns ln(a / b) for a ≥ b > 0. The result is accurate even if the quotient is close to 1 or overflows.
pub(super) fn log_ratio(a: f64, b: f64) -> f64 {
    if a <= 2.0 * b {
        return libm::log1p((a - b) / b);
    }
    let quotient = a / b;
    match quotient.is_finite() {
        true => libm::log(quotient),
        false => libm::log(a) - libm::log(b),
    }
}

/// The error of a range.
pub(super) fn refuse<T>(call: &str, why: &str) -> Result<T> {
    Err(Error::InvalidSpace(format!("{call} {why}")))
}
