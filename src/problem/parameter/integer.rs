//! Integers in a range, optionally in steps, on a linear or logarithmic axis. [`Coordinate`] computes the columns for
//! both axes.

use super::{Kind, numbered};
use crate::domain::Coordinate;
use crate::error::{Error, Result};

/// The largest absolute value of a bound. Up to this value, different integers of a linear or logarithmic range have
/// different columns.
const LARGEST: f64 = (1u64 << 40) as f64;

/// An integer parameter in {low, low + step, …, high}.
#[derive(Clone, Debug, PartialEq)]
pub struct Integer {
    low: i64,
    high: i64,
    step: Option<i64>,
    coordinate: Coordinate,
}

impl Integer {
    /// Creates an integer parameter. Refuses bounds that are in the wrong order or beyond ±2^40, and a logarithmic axis
    /// below 1. Refuses a step that is not a positive integer, leaves one value only, or comes with a logarithmic axis.
    pub fn new(low: f64, high: f64, log: bool, step: Option<f64>) -> Result<Self> {
        let call = match step {
            None => format!("Integer({low}, {high})"),
            Some(step) => format!("Integer({low}, {high}, step={step})"),
        };
        let refuse = |why: &str| Err(Error::InvalidSpace(format!("{call} {why}")));
        if low.fract() != 0.0 || high.fract() != 0.0 {
            return refuse("is not usable: both bounds must be integers; use Real for real bounds");
        }
        if !(low.abs() <= LARGEST && high.abs() <= LARGEST) {
            return refuse("is not usable: bounds must lie within ±2**40; use Real and round");
        }
        if low > high {
            return refuse("is empty: low must not be greater than high; swap them");
        }
        if log && low < 1.0 {
            return refuse(
                "has log=True: a logarithmic scale needs low > 0; raise low or drop log",
            );
        }
        let (low, high) = (low as i64, high as i64);
        let Some(step) = step else {
            let coordinate = Coordinate::Integer { low, high, log };
            return Ok(Self {
                low,
                high,
                step: None,
                coordinate,
            });
        };
        if !(step > 0.0 && step.is_finite()) {
            return refuse("is not usable: step must be a positive number, or None for no step");
        }
        if step.fract() != 0.0 {
            return refuse(
                "is not usable: step must be an integer, as the bounds are; use Real for others",
            );
        }
        if log {
            return refuse("is not usable: steps are even on a linear scale; drop log or step");
        }
        if step > (high - low) as f64 {
            return refuse(
                "has one value: make step at most high - low, or write a constant as its value",
            );
        }
        let step = step as i64;
        Ok(Self {
            low,
            high,
            step: Some(step),
            coordinate: numbered(((high - low) / step) as u64 + 1),
        })
    }

    /// The arguments of the constructor.
    pub(crate) fn declared(&self) -> (f64, f64, bool, Option<f64>) {
        let log = matches!(self.coordinate, Coordinate::Integer { log: true, .. });
        let step = self.step.map(|step| step as f64);
        (self.low as f64, self.high as f64, log, step)
    }
}

impl Kind for Integer {
    fn coordinate(&self) -> &Coordinate {
        &self.coordinate
    }

    fn expected(&self) -> String {
        let (low, high) = (self.low, self.high);
        match self.step {
            None => format!("an integer in [{low}, {high}]"),
            Some(step) => format!("an integer in [{low}, {high}] in steps of {step} from {low}"),
        }
    }

    fn checked(&self, number: f64) -> Option<f64> {
        let in_range = (self.low as f64..=self.high as f64).contains(&number);
        (in_range && number.fract() == 0.0 && self.member(self.level(number)) == number)
            .then_some(number + 0.0)
    }

    fn level(&self, number: f64) -> u64 {
        ((number as i64 - self.low) / self.step.unwrap_or(1)) as u64
    }

    fn member(&self, level: u64) -> f64 {
        (self.low + level as i64 * self.step.unwrap_or(1)) as f64
    }

    fn label(&self, number: f64) -> String {
        format!("{number}")
    }
}
