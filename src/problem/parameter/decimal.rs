//! Evenly spaced numbers low, low + step, low + 2 step, …. Each number is the float nearest to the exact decimal sum. A
//! bound or step of 0.1 means exactly 1/10.

/// Sums have this number of exact digits, and then `STICKY` digits that only show whether a nonzero digit follows.
const DIGITS: i32 = 32;
const STICKY: i32 = 3;

/// The members low + k·step up to high.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Steps {
    low: f64,
    step: f64,
    /// The numbers `low` and `step` in units of 10^unit.
    low_units: i128,
    step_units: i128,
    unit: i32,
    last: u64,
}

impl Steps {
    /// Creates the members from low to high. Requires low ≤ high. `step` must be positive, and at least the distance
    /// between neighbouring floats at low and at high.
    pub fn new(low: f64, high: f64, step: f64) -> Self {
        let decimals = [low, high, step].map(Decimal::new);
        let leading = decimals.iter().map(Decimal::leading).max().unwrap_or(0);
        let lowest = decimals.iter().map(|each| each.exponent).min().unwrap_or(0);
        let unit = lowest.max(leading - DIGITS) - STICKY;
        let [low_units, high_units, step_units] = decimals.map(|each| each.units(unit));
        let last = (high_units - low_units).div_euclid(step_units.max(1));
        Self {
            low,
            step,
            low_units,
            step_units,
            unit,
            last: u64::try_from(last).unwrap_or(u64::MAX),
        }
    }

    pub fn step(&self) -> f64 {
        self.step
    }

    /// The index of the last member that is at most high.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Returns low + k·step, rounded once.
    pub fn member(&self, k: u64) -> f64 {
        if k == 0 {
            return self.low;
        }
        let sum = self.low_units + i128::from(k) * self.step_units;
        format!("{sum}e{}", self.unit).parse().unwrap_or(f64::NAN)
    }

    /// Returns the index of the member nearest to a value, or None if the value is not a finite number near the range.
    pub fn nearest(&self, value: f64) -> Option<u64> {
        let guess = match (value - self.low) / self.step {
            ratio if ratio.is_finite() => ratio.round(),
            _ => (value / self.step - self.low / self.step).round(),
        };
        if !(-0.5..=self.last as f64 + 0.5).contains(&guess) {
            return None;
        }
        // The quotient may be off by one.
        let guess = guess as u64;
        let near = guess.saturating_sub(1)..=(guess + 1).min(self.last);
        near.min_by(|a, b| {
            let distance = |k: &u64| (self.member(*k) - value).abs();
            distance(a).total_cmp(&distance(b))
        })
    }
}

/// The shortest decimal of a float, mantissa · 10^exponent.
struct Decimal {
    mantissa: i128,
    exponent: i32,
}

impl Decimal {
    fn new(x: f64) -> Self {
        let text = format!("{x:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let n_decimals = digits.split_once('.').map_or(0, |(_, after)| after.len());
        let exponent: i32 = exponent.parse().unwrap_or(0);
        Self {
            mantissa: digits.replace('.', "").parse().unwrap_or(0),
            exponent: exponent - n_decimals as i32,
        }
    }

    /// The exponent of the decimal place before the first digit.
    fn leading(&self) -> i32 {
        match self.mantissa {
            0 => i32::MIN / 2,
            m => self.exponent + m.unsigned_abs().ilog10() as i32 + 1,
        }
    }

    /// Returns the number in units of 10^unit. Digits below 10^(unit + `STICKY`) count as one unit, which suffices to
    /// round sums correctly.
    fn units(&self, unit: i32) -> i128 {
        let shift = self.exponent - unit;
        if self.mantissa == 0 {
            return 0;
        }
        if shift >= 0 {
            return self.mantissa * 10i128.pow(shift as u32);
        }
        let cut = 10i128.checked_pow((STICKY - shift) as u32);
        let whole = cut.map_or(0, |cut| self.mantissa / cut) * 10i128.pow(STICKY as u32);
        whole + self.mantissa.signum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_rounded_once() {
        let steps = Steps::new(0.0, 1.0, 0.1);
        let members: Vec<f64> = (0..=steps.last()).map(|k| steps.member(k)).collect();
        assert_eq!(
            members,
            [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
        );
        // Decimals of very different magnitude.
        let steps = Steps::new(1e-300, 1.0, 0.1);
        assert_eq!(
            (steps.last(), steps.member(0), steps.member(3)),
            (9, 1e-300, 0.3)
        );
        let steps = Steps::new(-1e300, 1e300, 1e299);
        assert_eq!(
            (steps.last(), steps.member(20), steps.member(10)),
            (20, 1e300, 0.0)
        );
        let steps = Steps::new(1e-308, 5e-308, 1e-308);
        assert_eq!((steps.last(), steps.member(4)), (4, 5e-308));
    }
}
