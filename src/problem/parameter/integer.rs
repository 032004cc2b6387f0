//! Integers in a range, optionally in steps, on a linear or logarithmic axis. [`Coordinate`] computes the columns for
//! both axes.

use serde::{Deserialize, Serialize};

use super::range::{self, ONE_VALUE, Range, column, is_on_axis, refuse};
use super::{Coordinate, Kind};
use crate::error::{Error, Result};

/// Larger measurements are refused, because floats do not represent all larger integers.
const LARGEST_MEASURED: f64 = (1u64 << 53) as f64;

/// Bounds beyond this absolute value are refused, because different integers could be encoded as the same float.
const LARGEST: f64 = (1u64 << 40) as f64;

/// An integer parameter in {low, low + step, …, high}.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Range", into = "Range")]
pub struct Integer {
    low: i64,
    high: i64,
    log: bool,
    step: Option<i64>,
}

impl Integer {
    /// Creates an integer parameter. Refuses bounds that are in the wrong order or beyond ±2^40, a logarithmic axis
    /// below 1, and a step that is not a positive integer or leaves only one value. On a logarithmic axis, `low` must
    /// be a multiple of the step.
    pub fn new(low: f64, high: f64, log: bool, step: Option<f64>) -> Result<Self> {
        let call = match step {
            None => format!("Integer({low}, {high})"),
            Some(step) => format!("Integer({low}, {high}, step={step})"),
        };
        if low.fract() != 0.0 || high.fract() != 0.0 {
            let why = "is not usable: both bounds must be integers; use Real for real bounds";
            return refuse(&call, why);
        }
        if !(low.abs() <= LARGEST && high.abs() <= LARGEST) {
            let why = "is not usable: bounds must lie within ±2**40; use Real and round";
            return refuse(&call, why);
        }
        range::check((low, high, log, step), &call)?;
        if step.is_some_and(|step| step.fract() != 0.0) {
            let why =
                "is not usable: step must be an integer, as the bounds are; use Real for others";
            return refuse(&call, why);
        }
        if step.is_some_and(|step| step > high - low) {
            return refuse(&call, ONE_VALUE);
        }
        Ok(Self {
            low: low as i64,
            high: high as i64,
            log,
            step: step.map(|step| step as i64),
        })
    }

    fn step(&self) -> i64 {
        self.step.unwrap_or(1)
    }

    /// The index of a value, or of the last value below an integer in the range.
    fn index(&self, number: f64) -> u64 {
        ((number as i64 - self.low) / self.step()) as u64
    }

    /// The column of an integer that is not a value.
    fn column(&self, number: f64) -> f64 {
        let last = self.high - (self.high - self.low) % self.step();
        column(number, (self.low as f64, last as f64), self.log)
    }
}

impl TryFrom<Range> for Integer {
    type Error = Error;

    fn try_from((low, high, log, step): Range) -> Result<Self> {
        Self::new(low, high, log, step)
    }
}

impl From<Integer> for Range {
    fn from(integer: Integer) -> Self {
        let step = integer.step.map(|step| step as f64);
        (integer.low as f64, integer.high as f64, integer.log, step)
    }
}

impl Kind for Integer {
    fn coordinate(&self) -> Coordinate {
        let Self { low, high, log, .. } = *self;
        match self.step {
            None => Coordinate::Integer { low, high, log },
            Some(step) => {
                let n = ((high - low) / step) as u64 + 1;
                match log {
                    true => Coordinate::multiples(low / step, n),
                    false => Coordinate::numbered(n),
                }
            }
        }
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
        (in_range && self.member(self.index(number)) == number).then_some(number + 0.0)
    }

    fn measured(&self, number: f64) -> Option<f64> {
        let elsewhere = || {
            let is_usable = self.low < self.high
                && number.fract() == 0.0
                && number.abs() <= LARGEST_MEASURED
                && is_on_axis(number, self.log);
            is_usable.then_some(number + 0.0)
        };
        self.checked(number).or_else(elsewhere)
    }

    fn expected_measured(&self) -> String {
        match (self.low == self.high, self.log) {
            (true, _) => self.expected(),
            (_, true) => "an integer from 1 to 2**53, since the scale is logarithmic".to_string(),
            (_, false) => "an integer within ±2**53".to_string(),
        }
    }

    fn is_beyond(&self, number: f64) -> bool {
        !(self.low as f64..=self.high as f64).contains(&number)
    }

    fn level(&self, number: f64) -> u64 {
        match self.checked(number) {
            Some(_) => self.index(number),
            None => self.coordinate().index(&[self.column(number)]),
        }
    }

    fn encode(&self, number: f64, columns: &mut [f64]) {
        columns[0] = match self.checked(number) {
            Some(_) => self.coordinate().position(self.index(number)),
            None => self.column(number),
        };
    }

    fn member(&self, level: u64) -> f64 {
        (self.low + level as i64 * self.step()) as f64
    }

    fn label(&self, number: f64) -> String {
        format!("{number}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(integer: &Integer, number: f64) -> f64 {
        let mut columns = [f64::NAN];
        integer.encode(number, &mut columns);
        columns[0]
    }

    #[test]
    fn integers_beyond_bounds_and_between_steps_continue_the_axis() {
        let plain = Integer::new(1.0, 5.0, false, None).unwrap();
        assert_eq!(
            [0.0, 3.0, 9.0].map(|number| column(&plain, number)),
            [-0.25, 0.5, 2.0]
        );
        assert_eq!(
            [-7.0, 3.0, 9.0].map(|number| plain.level(number)),
            [0, 2, 4]
        );
        assert_eq!(
            [-7.0, 0.5, 1e300].map(|number| plain.measured(number)),
            [Some(-7.0), None, None]
        );
        // The last value is 96, so 100 is between steps, with a column above 1.
        let steps = Integer::new(16.0, 100.0, false, Some(16.0)).unwrap();
        assert_eq!(
            [16.0, 40.0, 96.0].map(|number| column(&steps, number)),
            [0.0, 0.3, 1.0]
        );
        assert_eq!(column(&steps, 100.0), 1.05);
        assert_eq!(
            [15.0, 100.0, 101.0].map(|number| steps.is_beyond(number)),
            [true, false, true]
        );
        assert_eq!(
            [39.0, 41.0, 500.0].map(|number| steps.level(number)),
            [1, 2, 5]
        );
        let log = Integer::new(1.0, 100.0, true, None).unwrap();
        assert!((column(&log, 1000.0) - 1.5).abs() < 1e-12);
        assert_eq!(
            [0.0, -3.0, 1000.0].map(|number| log.measured(number)),
            [None, None, Some(1000.0)]
        );
        let constant = Integer::new(4.0, 4.0, false, None).unwrap();
        assert_eq!(
            (constant.measured(4.0), constant.measured(5.0)),
            (Some(4.0), None)
        );
    }
}
