//! Forecasts for a trial: probabilities and times, averaged over the draws.

use super::DelayDistribution;
use super::draws::Draw;
use crate::error::{Result, refuse};

/// A forecast with a central interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    pub value: f64,
    pub low: f64,
    pub high: f64,
    /// Whether the forecast depends on the distribution beyond the largest age of a record.
    pub extrapolated: bool,
}

/// How a forecast is computed from the values of the draws.
enum Average {
    Mean,
    Median,
}

impl DelayDistribution {
    /// The probability that a trial in flight at `age` a arrives within a further time `within` h: π_A (G_A(a + h) −
    /// G_A(a))/S(a).
    pub fn arrival_probability(&self, age: f64, within: f64, level: f64) -> Result<Forecast> {
        self.probability(age, within, level, |draw, a, b| {
            draw.ends(a, draw.arrives.later(a) - draw.arrives.later(b))
        })
    }

    /// The probability that a trial in flight at `age` fails within a further time `within`.
    pub fn failure_probability(&self, age: f64, within: f64, level: f64) -> Result<Forecast> {
        self.probability(age, within, level, |draw, a, b| {
            draw.ends(a, draw.fails.later(a) - draw.fails.later(b))
        })
    }

    fn probability(
        &self,
        age: f64,
        within: f64,
        level: f64,
        value: impl Fn(&Draw, f64, f64) -> f64,
    ) -> Result<Forecast> {
        check_time("age", age)?;
        check_time("within", within)?;
        let (a, b) = (self.elapsed(age), self.elapsed(age + within));
        let beyond = within > 0.0 && age + within > self.follow_up;
        self.average(Average::Mean, level, beyond, |draw| value(draw, a, b))
    }

    /// The probability that a trial in flight at `age` a ever arrives: π_A (1 − G_A(a))/S(a).
    pub fn arrives_ever(&self, age: f64, level: f64) -> Result<Forecast> {
        check_time("age", age)?;
        let a = self.elapsed(age);
        self.average(Average::Mean, level, self.tail_matters(age), |draw| {
            draw.ends(a, draw.arrives.later(a))
        })
    }

    /// The median time until arrival, for a trial that is in flight at `age` and will arrive.
    pub fn remaining(&self, age: f64, level: f64) -> Result<Forecast> {
        check_time("age", age)?;
        let a = self.elapsed(age);
        let mut forecast = self.average(Average::Median, level, false, |draw| {
            let law = &draw.arrives;
            let delay = self.delay(law.time(law.family.median_beyond(law.z(a).max(-700.0))));
            (delay - age).max(0.0)
        })?;
        forecast.extrapolated = age + forecast.value > self.follow_up;
        Ok(forecast)
    }

    /// The quantile of the delay of trials that arrive.
    pub fn quantile(&self, q: f64, level: f64) -> Result<Forecast> {
        check_share("q", q)?;
        let mut forecast = self.average(Average::Median, level, false, |draw| {
            let law = &draw.arrives;
            self.delay(law.time(law.family.quantile(q)))
        })?;
        forecast.extrapolated = forecast.value > self.follow_up;
        Ok(forecast)
    }

    /// The mean delay of trials that arrive. The mean is infinite if most draws have an infinite mean.
    pub fn mean(&self, level: f64) -> Result<Forecast> {
        // On the clock of iterations, delays are rounded up by half an iteration on average.
        let shift = self.resolution.delay(0.5) - 0.5;
        self.average(Average::Median, level, self.tail_matters(0.0), |draw| {
            let law = &draw.arrives;
            let mean = law.location.exp() * law.family.mean(law.spread);
            shift + mean * self.scale
        })
    }

    /// Converts an age to the time that has passed, in units of the scale.
    pub(super) fn elapsed(&self, age: f64) -> f64 {
        self.resolution.elapsed(age) / self.scale
    }

    /// Converts a time in units of the scale to a delay on the clock.
    fn delay(&self, t: f64) -> f64 {
        self.resolution.delay((t * self.scale).min(f64::MAX))
    }

    /// Whether more than 1 % of the arrivals after `age` come after the follow-up.
    fn tail_matters(&self, age: f64) -> bool {
        let (a, end) = (self.elapsed(age), self.elapsed(self.follow_up));
        let share = |t: f64| -> f64 {
            let later = self.draws.iter().map(|d| d.weight * d.arrives.later(t));
            later.sum()
        };
        share(end) >= 0.01 * share(a)
    }

    fn average(
        &self,
        average: Average,
        level: f64,
        extrapolated: bool,
        value: impl Fn(&Draw) -> f64,
    ) -> Result<Forecast> {
        check_share("level", level)?;
        let mut values: Vec<(f64, f64)> = self.draws.iter().map(|d| (value(d), d.weight)).collect();
        values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let quantile = |q: f64| {
            let mut below = 0.0;
            for &(value, weight) in &values {
                below += weight;
                if below >= q {
                    return value;
                }
            }
            values.last().map_or(0.0, |v| v.0)
        };
        Ok(Forecast {
            value: match average {
                Average::Mean => values.iter().map(|(v, w)| v * w).sum(),
                Average::Median => quantile(0.5),
            },
            low: quantile(0.5 - 0.5 * level),
            high: quantile(0.5 + 0.5 * level),
            extrapolated,
        })
    }
}

impl Draw {
    /// Divides the probability of an event after t by S(t).
    pub(super) fn ends(&self, t: f64, probability: f64) -> f64 {
        let silent = self.never + self.arrives.later(t) + self.fails.later(t);
        // Without trials that never end, S underflows at ages far above all delays.
        if silent > 0.0 {
            (probability / silent).clamp(0.0, 1.0)
        } else {
            0.0
        }
    }
}

pub(super) fn check_time(name: &'static str, time: f64) -> Result<()> {
    match time >= 0.0 && time.is_finite() {
        true => Ok(()),
        false => Err(refuse(name, time, "give a finite number of 0 or above")),
    }
}

pub(super) fn check_share(name: &'static str, share: f64) -> Result<()> {
    match share > 0.0 && share < 1.0 {
        true => Ok(()),
        false => Err(refuse(name, share, "give a number between 0 and 1")),
    }
}
