//! Forecasts of the number of arrivals.

use super::DelayDistribution;
use super::forecast::{Forecast, check_share, check_time};
use crate::error::{Result, Stop, check};

/// Probabilities below this number are dropped at both ends of the distribution of a count.
const NEGLIGIBLE: f64 = 1e-14;

impl DelayDistribution {
    /// Returns the probabilities that 0, 1, … of the trials in flight at `ages` arrive within a further time `within`.
    /// Given the parameters, the arrivals are independent, so the count is a sum of Bernoulli variables (Poisson
    /// binomial). The distribution is a mixture over the draws.
    pub fn count_distribution(
        &self,
        ages: &[f64],
        within: f64,
        stop: &mut Stop,
    ) -> Result<Vec<f64>> {
        check_time("within", within)?;
        for &age in ages {
            check_time("ages", age)?;
        }
        let spans: Vec<(f64, f64)> = ages
            .iter()
            .map(|&age| (self.elapsed(age), self.elapsed(age + within)))
            .collect();
        let mut mixture = vec![0.0; ages.len() + 1];
        let mut sum: Vec<f64> = Vec::new();
        for draw in &self.draws {
            check(stop)?;
            sum.clear();
            sum.push(1.0);
            let mut first = 0;
            for &(a, b) in &spans {
                let p = draw.ends(a, draw.arrives.later(a) - draw.arrives.later(b));
                sum.push(0.0);
                for k in (1..sum.len()).rev() {
                    sum[k] = sum[k] * (1.0 - p) + sum[k - 1] * p;
                }
                sum[0] *= 1.0 - p;
                while sum.len() > 1 && sum[sum.len() - 1] < NEGLIGIBLE {
                    sum.pop();
                }
                let dropped = sum.iter().take_while(|q| **q < NEGLIGIBLE).count();
                // Drop many entries at once, because each removal moves the remaining entries.
                if dropped > 32 {
                    sum.drain(..dropped);
                    first += dropped;
                }
            }
            for (total, p) in mixture[first..].iter_mut().zip(&sum) {
                *total += draw.weight * p;
            }
        }
        let total: f64 = mixture.iter().sum();
        mixture.iter_mut().for_each(|p| *p /= total);
        Ok(mixture)
    }

    /// Returns the expected number of arrivals, with the interval whose probability is closest to `level`.
    pub fn count(
        &self,
        ages: &[f64],
        within: f64,
        level: f64,
        stop: &mut Stop,
    ) -> Result<Forecast> {
        check_share("level", level)?;
        let probabilities = self.count_distribution(ages, within, stop)?;
        let oldest = ages.iter().copied().fold(0.0, f64::max);
        let (low, high) = central_interval(&probabilities, level);
        Ok(Forecast {
            value: probabilities
                .iter()
                .zip(0..)
                .map(|(p, k)| p * f64::from(k))
                .sum(),
            low: low as f64,
            high: high as f64,
            extrapolated: !ages.is_empty() && within > 0.0 && oldest + within > self.follow_up,
        })
    }
}

/// Returns an interval of a discrete distribution. An interval between two quantiles has at least the probability
/// `level`. The ends are moved inwards by one if this brings the probability closer to `level`.
fn central_interval(probabilities: &[f64], level: f64) -> (usize, usize) {
    let mut cumulative = vec![0.0];
    for p in probabilities {
        cumulative.push(cumulative[cumulative.len() - 1] + p);
    }
    let n = probabilities.len() - 1;
    let quantile = |q: f64| cumulative[1..].partition_point(|&c| c < q).min(n);
    let (low, high) = (quantile(0.5 - 0.5 * level), quantile(0.5 + 0.5 * level));
    let distance = |l: usize, h: usize| (cumulative[h + 1] - cumulative[l] - level).abs();
    let mut best = (low, high);
    for (l, h) in [
        (low + 1, high),
        (low, high.saturating_sub(1)),
        (low + 1, high.saturating_sub(1)),
    ] {
        if l <= h && distance(l, h) < distance(best.0, best.1) {
            best = (l, h);
        }
    }
    best
}
