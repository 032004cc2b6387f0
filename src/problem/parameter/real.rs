//! Real numbers in a range, optionally in steps, on a linear or logarithmic axis.
//!
//! Notation: u is the column, t a difference of logarithms.

use serde::{Deserialize, Serialize};

use super::decimal::Steps;
use super::range::{self, ONE_VALUE, Range, column, first_multiple, is_on_axis, log_ratio, refuse};
use super::{Coordinate, Kind};
use crate::error::{Error, Result};

/// More steps are refused, because different members could be encoded as the same float.
const MAX_STEPS: u64 = 1 << 40;

/// A real parameter in [low, high].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Range", into = "Range")]
pub struct Real {
    low: f64,
    high: f64,
    log: bool,
    steps: Option<Steps>,
}

impl Real {
    /// The range [0, 1].
    pub(crate) const UNIT: Self = Self {
        low: 0.0,
        high: 1.0,
        log: false,
        steps: None,
    };

    /// Creates a real parameter. Refuses bounds that are not finite or are in the wrong order, a logarithmic axis that
    /// starts at 0 or below, and a step that is not positive or leaves one value or too many values. On a logarithmic
    /// axis, `low` must be a multiple of the step.
    pub fn new(low: f64, high: f64, log: bool, step: Option<f64>) -> Result<Self> {
        let call = match step {
            None => format!("Real({low:?}, {high:?})"),
            Some(step) => format!("Real({low:?}, {high:?}, step={step:?})"),
        };
        if !(low.is_finite() && high.is_finite()) {
            let why = "is not usable: both bounds must be finite real numbers";
            return refuse(&call, why);
        }
        range::check((low, high, log, step), &call)?;
        let is_fine = |step: &f64| *step >= ulp(low.abs().max(high.abs()));
        // Adding 0 turns −0 into 0.
        let (low, high) = (low + 0.0, high + 0.0);
        let steps = step.filter(is_fine).map(|step| Steps::new(low, high, step));
        match steps.as_ref().map(Steps::last) {
            Some(0) => refuse(&call, ONE_VALUE),
            None | Some(..=MAX_STEPS) if steps.is_some() == step.is_some() => Ok(Self {
                low,
                high,
                log,
                steps,
            }),
            _ => refuse(
                &call,
                "has too many values to be told apart: leave step out",
            ),
        }
    }
}

impl Real {
    /// Returns the index of the step that equals this number up to rounding.
    fn step_of(&self, steps: &Steps, number: f64) -> Option<u64> {
        let nearest = steps.nearest(number)?;
        let rounding = (1e-9 * steps.step()).max(4.0 * ulp(self.low.abs().max(self.high.abs())));
        let distance = (number - steps.member(nearest)).abs();
        (distance <= rounding.min(steps.step() / 4.0)).then_some(nearest)
    }

    /// The bounds of a linear axis. Without a step, None for a Real with steps or one value. With a step, the upper
    /// bound is the last value; None if the axis has other steps.
    pub(crate) fn linear_range(&self, step: Option<f64>) -> Option<(f64, f64)> {
        let real = match (step, &self.steps) {
            _ if self.log || self.low == self.high => return None,
            (None, None) => return Some((self.low, self.high)),
            (Some(step), _) => self.with_step(step).ok()?,
            (None, Some(_)) => return None,
        };
        let last = real
            .steps
            .as_ref()
            .map(|steps| steps.member(steps.last()))?;
        Some((self.low, last))
    }

    /// The same axis with steps. Refuses an axis with other steps.
    pub(crate) fn with_step(&self, step: f64) -> Result<Self> {
        match &self.steps {
            Some(steps) if steps.step() != step => {
                refuse("Real", "has another step: leave out one of them")
            }
            _ => Self::new(self.low, self.high, self.log, Some(step)),
        }
    }
}

impl TryFrom<Range> for Real {
    type Error = Error;

    fn try_from((low, high, log, step): Range) -> Result<Self> {
        Self::new(low, high, log, step)
    }
}

impl From<Real> for Range {
    fn from(real: Real) -> Self {
        (
            real.low,
            real.high,
            real.log,
            real.steps.map(|steps| steps.step()),
        )
    }
}

impl Kind for Real {
    fn coordinate(&self) -> Coordinate {
        match &self.steps {
            Some(steps) => {
                let first = first_multiple(self.low, steps.step()).filter(|_| self.log);
                match first {
                    Some(first) => Coordinate::multiples(first, steps.last() + 1),
                    None => Coordinate::numbered(steps.last() + 1),
                }
            }
            None if self.low == self.high => Coordinate::numbered(1),
            None => Coordinate::Continuous,
        }
    }

    fn expected(&self) -> String {
        match &self.steps {
            None => format!("a real number in [{:?}, {:?}]", self.low, self.high),
            Some(steps) => format!(
                "one of {:?}, {:?}, …, {:?} (in steps of {:?})",
                self.low,
                steps.member(1),
                steps.member(steps.last()),
                steps.step()
            ),
        }
    }

    fn checked(&self, number: f64) -> Option<f64> {
        match &self.steps {
            Some(steps) => self.step_of(steps, number).map(|k| steps.member(k)),
            None => (self.low..=self.high)
                .contains(&number)
                .then_some(number + 0.0),
        }
    }

    fn measured(&self, number: f64) -> Option<f64> {
        let elsewhere = || {
            let varies = self.coordinate().levels() != Some(1);
            (varies && is_on_axis(number, self.log)).then_some(number + 0.0)
        };
        self.checked(number).or_else(elsewhere)
    }

    fn expected_measured(&self) -> String {
        match (self.coordinate().levels(), self.log) {
            (Some(1), _) => self.expected(),
            (_, true) => "a finite number > 0, since the scale is logarithmic".to_string(),
            (_, false) => "a finite number".to_string(),
        }
    }

    fn is_beyond(&self, number: f64) -> bool {
        range::is_beyond(number, (self.low, self.high), self.log)
    }

    fn level(&self, number: f64) -> u64 {
        let Some(steps) = &self.steps else {
            return 0;
        };
        let nearest = || {
            let u = column(number, (self.low, steps.member(steps.last())), self.log);
            self.coordinate().index(&[u])
        };
        self.step_of(steps, number).unwrap_or_else(nearest)
    }

    fn member(&self, level: u64) -> f64 {
        self.steps
            .as_ref()
            .map_or(self.low, |steps| steps.member(level))
    }

    fn label(&self, number: f64) -> String {
        format!("{number:?}")
    }

    /// The column u is exactly 0.0 at low and 1.0 at high.
    fn encode(&self, number: f64, columns: &mut [f64]) {
        let (low, high) = (self.low, self.high);
        let coordinate = self.coordinate();
        columns[0] = match &self.steps {
            Some(steps) => match self.step_of(steps, number) {
                Some(k) => coordinate.position(k),
                None => column(number, (low, steps.member(steps.last())), self.log),
            },
            None if coordinate != Coordinate::Continuous => coordinate.position(0),
            None => {
                let u = column(number, (low, high), self.log);
                match (low..=high).contains(&number) {
                    true => u.clamp(0.0, 1.0),
                    false => u,
                }
            }
        };
    }

    /// The result is always in [low, high] and exact at both ends.
    fn decode(&self, columns: &[f64]) -> f64 {
        if self.coordinate() != Coordinate::Continuous {
            return self.member(self.coordinate().index(columns));
        }
        let (u, low, high) = (columns[0], self.low, self.high);
        if u <= 0.0 {
            return low;
        }
        if u >= 1.0 {
            return high;
        }
        let span = high - low;
        let value = if self.log {
            let span = log_ratio(high, low);
            // Start from the nearer end, because the rounding error grows with the distance.
            match u < 0.5 {
                true => times_exp(low, u * span),
                false => times_exp(high, (u - 1.0) * span),
            }
        } else if !span.is_finite() {
            low * (1.0 - u) + high * u
        } else if u < 0.5 {
            low + u * span
        } else {
            high - (1.0 - u) * span
        };
        value.clamp(low, high)
    }
}

/// The distance to the next larger float.
fn ulp(x: f64) -> f64 {
    x.next_up() - x
}

/// Returns value · exp(t). The product is computed in two steps if exp(t) is outside the range of normal floats.
fn times_exp(value: f64, t: f64) -> f64 {
    if t.abs() < 700.0 {
        return value * libm::exp(t);
    }
    let root = libm::exp(t / 2.0);
    value * root * root
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn column(real: &Real, number: f64) -> f64 {
        let mut columns = [f64::NAN];
        real.encode(number, &mut columns);
        columns[0]
    }

    /// Random bounds of any magnitude, with low < high.
    fn bounds() -> impl Strategy<Value = (f64, f64)> {
        let number = (-9.99..9.99f64, -300..300i32).prop_map(|(m, e)| m * 10f64.powi(e));
        (number.clone(), number)
            .prop_filter_map("equal", |(a, b)| (a != b).then_some((a.min(b), a.max(b))))
    }

    proptest! {
        #[test]
        fn a_column_is_decoded_and_encoded_to_itself((low, high) in bounds(), u in 0.0..=1.0f64, log: bool) {
            let (low, high) = if log { (low.abs().min(high.abs()), low.abs().max(high.abs())) } else { (low, high) };
            // A range that is narrow relative to its magnitude contains fewer floats than the interval [0, 1].
            let is_wide = if log { high >= 3.0 * low } else { high - low >= low.abs().max(high.abs()) / 2.0 };
            prop_assume!(low < high && is_wide);
            let real = Real::new(low, high, log, None).unwrap();
            let number = real.decode(&[u]);
            prop_assert!((low..=high).contains(&number));
            prop_assert!((column(&real, number) - u).abs() <= 4.0 * f64::EPSILON);
            prop_assert_eq!((real.decode(&[0.0]), real.decode(&[1.0])), (low, high));
            prop_assert_eq!((column(&real, low), column(&real, high)), (0.0, 1.0));
        }

        #[test]
        fn steps_on_a_logarithmic_axis_are_separate_values(k in 1..5000i64, n in 1..5000i64, step in 1..999i32, part in 0.0..=1.0f64) {
            let thousandths = |k: i64| format!("{}e-3", k * i64::from(step)).parse::<f64>().unwrap();
            let real = Real::new(thousandths(k), thousandths(k + n), true, Some(thousandths(1))).unwrap();
            let i = k + (part * n as f64) as i64;
            let value = thousandths(i);
            let u = (i as f64 / k as f64).ln() / ((k + n) as f64 / k as f64).ln();
            prop_assert!((column(&real, value) - u).abs() <= 1e-9);
            prop_assert_eq!(real.checked(value), Some(value));
            prop_assert_eq!(real.decode(&[column(&real, value)]), value);
            prop_assert_eq!((real.decode(&[0.0]), real.decode(&[1.0])), (thousandths(k), thousandths(k + n)));
        }

        #[test]
        fn every_step_is_a_separate_value(low in -1000..1000i32, step in 1..999i32, n in 1..5000u64, part in 0.0..1.0f64) {
            let thousandths = |k: i64| format!("{k}e-3").parse::<f64>().unwrap();
            let high = i64::from(low) + i64::from(step) * n as i64;
            let real = Real::new(thousandths(low.into()), thousandths(high), false, Some(thousandths(step.into()))).unwrap();
            let k = (part * (n + 1) as f64) as u64;
            let value = thousandths(i64::from(low) + i64::from(step) * k as i64);
            prop_assert_eq!(real.coordinate().levels(), Some(n + 1));
            prop_assert_eq!(real.member(k), value);
            prop_assert_eq!(real.level(value), k);
            prop_assert_eq!(real.checked(value), Some(value));
            prop_assert_eq!(real.decode(&[column(&real, value)]), value);
            let sum = real.low + k as f64 * thousandths(step.into());
            prop_assert_eq!(real.checked(sum), Some(value));
        }
    }

    proptest! {
        /// The column of a measurement is on the line (or logarithm) through the columns of the two bounds.
        #[test]
        fn measurements_continue_the_axis(
            low in 0.1..10.0f64, span in 0.5..10.0f64, to in -3.0..3.0f64, log: bool, n in prop::option::of(2..9u8),
        ) {
            // On a logarithmic axis, low is a multiple of the step.
            let step = n.map(|n| if log { low / f64::from(n) } else { span / f64::from(n) });
            let high = low + span;
            let real = Real::new(low, high, log, step);
            prop_assume!(real.is_ok()); // the step may exceed the range
            let real = real.unwrap();
            let last = real.coordinate().levels().map_or(high, |n| real.member(n - 1));
            let number = if log { low * to.exp() } else { low + to * span };
            prop_assert_eq!(real.measured(number), Some(real.checked(number).unwrap_or(number)));
            let expected = match log {
                true => (number / low).ln() / (last / low).ln(),
                false => (number - low) / (last - low),
            };
            prop_assert!((column(&real, number) - expected).abs() <= 1e-9 * expected.abs().max(1.0));
            prop_assert_eq!(real.is_beyond(number), number < low * (1.0 - 1e-9) || number > high * (1.0 + 1e-9));
            if step.is_some() {
                // The level is the nearest one, as for the columns.
                prop_assert_eq!(real.member(real.level(number)), real.decode(&[column(&real, number)]));
            }
        }
    }

    #[test]
    fn numbers_without_a_place_on_the_axis_are_not_measurements() {
        let [linear, log] = [false, true].map(|log| Real::new(1.0, 2.0, log, None).unwrap());
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(
                (linear.measured(number), log.measured(number)),
                (None, None)
            );
        }
        assert_eq!(
            (linear.measured(-1.0), log.measured(-1.0), log.measured(0.0)),
            (Some(-1.0), None, None)
        );
        let constant = Real::new(3.0, 3.0, false, None).unwrap();
        assert_eq!(
            (constant.measured(3.0), constant.measured(3.1)),
            (Some(3.0), None)
        );
        // A bound that is missed by rounding is not beyond the bound.
        assert!(!linear.is_beyond(2.0f64.next_up()) && !log.is_beyond(1.0f64.next_down()));
        // Columns stay finite.
        let narrow = Real::new(0.0, 1e-300, false, None).unwrap();
        assert_eq!((column(&narrow, 1.0), column(&narrow, -1e300)), (1e6, -1e6));
        let wide = Real::new(-1e308, 1e308, false, None).unwrap();
        assert!((column(&wide, f64::MAX) - 1.4).abs() < 0.01);
    }

    #[test]
    fn ranges_without_members_are_refused() {
        for (low, high, log, step, part) in [
            (1.0, 0.0, false, None, "swap them"),
            (0.0, f64::NAN, false, None, "finite"),
            (0.0, 1.0, true, None, "low > 0"),
            (0.0, 1.0, false, Some(0.0), "positive"),
            (0.0, 1.0, false, Some(1.5), "one value"),
            (0.25, 2.0, true, Some(0.5), "multiple of step"),
            (1e-12, 10.0, true, Some(1.0), "multiple of step"),
            (1e6, 2e6, true, Some(1e-7), "2**30 times step"),
            (0.0, 1.0, false, Some(1e-18), "too many"),
            (0.0, 1.0, false, Some(1e-14), "too many"),
        ] {
            let text = Real::new(low, high, log, step).unwrap_err().to_string();
            assert!(text.contains(part), "{text}");
        }
    }
}
