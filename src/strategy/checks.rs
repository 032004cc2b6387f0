//! Checks of settings. Errors contain the public name of the setting.

use crate::error::Result;
pub(super) use crate::error::refuse;

/// The largest count that is allowed in settings. Larger counts are refused, because memory would run out.
pub const MAX_COUNT: usize = 1_000_000;

const COUNT: &str = "give a number of 1 or above, and no more than 1,000,000";
pub(super) const COUNT_OR_NONE: &str = "give a number from 0 to 1,000,000";
pub(super) const POSITIVE: &str = "give a finite number above 0";
pub(super) const NOT_NEGATIVE: &str = "give a finite number, 0 or above";
pub(super) const VALUE_OF_F: &str = "give a finite value of f";

pub(crate) fn check(
    holds: bool,
    name: &'static str,
    got: impl ToString,
    expected: &'static str,
) -> Result<()> {
    match holds {
        true => Ok(()),
        false => Err(refuse(name, got, expected)),
    }
}

/// Checks an optional number. If the number is given, it must be finite and satisfy the condition.
pub(super) fn check_given(
    value: Option<f64>,
    name: &'static str,
    holds: impl Fn(f64) -> bool,
    expected: &'static str,
) -> Result<()> {
    value.map_or(Ok(()), |x| {
        check(x.is_finite() && holds(x), name, x, expected)
    })
}

pub(super) fn check_count(name: &'static str, count: usize) -> Result<()> {
    check((1..=MAX_COUNT).contains(&count), name, count, COUNT)
}

pub(super) fn is_positive(x: f64) -> bool {
    x > 0.0 && x.is_finite()
}

pub(super) fn is_not_negative(x: f64) -> bool {
    x >= 0.0 && x.is_finite()
}

/// Whether the standard deviation `x` and the variance x² are finite and above 0.
pub(super) fn is_std(x: f64) -> bool {
    x > 0.0 && is_positive(x * x)
}
