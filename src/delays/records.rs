//! The records of trials, sorted by age, with equal records grouped.

use crate::error::{Error, Result, refuse};

/// The end of a trial at its age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// The result arrived. The age is the delay.
    Arrived,
    /// The trial failed.
    Failed,
    /// The trial is in flight, or was abandoned or cancelled. A result would have come later.
    Censored,
}

/// The reason for which a delay distribution is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// There are no trials.
    NoRecords,
    /// No trial has arrived.
    NoArrivals,
}

impl Unknown {
    pub fn reason(self) -> &'static str {
        match self {
            Unknown::NoRecords => "there are no trials",
            Unknown::NoArrivals => "no trial has arrived",
        }
    }
}

/// How ages are recorded from the continuous time t. Fits to rounded ages use the probabilities of intervals, so the
/// likelihoods of discrete and continuous distributions are comparable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Resolution {
    /// Ages are exact. A delay of 0 means an interval from 0 to the smallest positive delay.
    Exact,
    /// Delays d are rounded to multiples of this number Δ: t is in [d − Δ/2, d + Δ/2].
    Rounded(f64),
    /// Ages are whole numbers of iterations, from 1. A result that arrives before the next suggestion has delay 1, so a
    /// delay k means that t is in [k − 1, k). A trial in flight at age k may still arrive with delay k: t ≥ k − 1. With
    /// an exponential t, the delay is geometric.
    Iterations,
}

impl Resolution {
    /// Returns the time t that has certainly passed at an age.
    pub fn elapsed(self, age: f64) -> f64 {
        match self {
            Resolution::Exact | Resolution::Rounded(_) => age,
            Resolution::Iterations => (age - 1.0).max(0.0),
        }
    }

    /// Returns the delay that is recorded for an event at time t.
    pub fn delay(self, t: f64) -> f64 {
        match self {
            Resolution::Exact | Resolution::Rounded(_) => t,
            Resolution::Iterations => t.floor() + 1.0,
        }
    }

    fn interval(self, delay: f64, smallest: f64) -> (f64, f64) {
        match self {
            Resolution::Exact if delay == 0.0 => (0.0, smallest),
            Resolution::Exact => (delay, delay),
            Resolution::Rounded(step) => ((delay - 0.5 * step).max(0.0), delay + 0.5 * step),
            Resolution::Iterations => (self.elapsed(delay), self.elapsed(delay) + 1.0),
        }
    }
}

/// Grouped delays of one ending. `low` and `high` are log(t/scale) at the ends of intervals. They are equal for exact
/// delays.
#[derive(Default)]
pub struct Cells {
    pub low: Vec<f64>,
    pub high: Vec<f64>,
    pub weight: Vec<f64>,
}

impl Cells {
    fn push(&mut self, low: f64, high: f64, weight: f64) {
        self.low.push(low);
        self.high.push(high);
        self.weight.push(weight);
    }

    /// Returns every k-th cell with k times its weight, such that about `size` cells remain.
    fn sample(&self, size: usize) -> Self {
        let k = (self.len() / size).max(1);
        let mut sample = Self::default();
        for i in (k / 2..self.len()).step_by(k) {
            sample.push(self.low[i], self.high[i], self.weight[i] * k as f64);
        }
        sample
    }

    pub fn len(&self) -> usize {
        self.weight.len()
    }

    pub fn total(&self) -> f64 {
        self.weight.iter().sum()
    }
}

/// The data of a fit. Trials in flight with an elapsed time of 0 have the likelihood 1 and are left out of `censored`.
pub struct Records {
    /// Groups of equal records (age, ending, number of records), sorted.
    pub groups: Vec<(f64, Ending, f64)>,
    pub resolution: Resolution,
    pub arrived: Cells,
    pub failed: Cells,
    pub censored: Cells,
    /// The unit of time: the median of the delays above 0.
    pub scale: f64,
    pub follow_up: f64,
    /// The share of the arrivals so far whose delay exceeds the age of a censored trial. The share is averaged over the
    /// censored trials, each weighted by the share of the other arrivals.
    pub early: f64,
    /// Σ log t over exact delays. A density of t is a density of log t divided by t.
    pub log_jacobian: f64,
}

impl Records {
    /// Sorts, groups and standardises records. Returns a reason if there is nothing to fit.
    pub fn new(
        ages: &[f64],
        endings: &[Ending],
        resolution: Resolution,
    ) -> Result<std::result::Result<Self, Unknown>> {
        check(ages, endings.len(), resolution)?;
        let mut sorted: Vec<(f64, Ending)> =
            ages.iter().copied().zip(endings.iter().copied()).collect();
        // Adding 0 replaces −0.
        sorted.iter_mut().for_each(|record| record.0 += 0.0);
        sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut groups: Vec<(f64, Ending, f64)> = Vec::new();
        for (age, ending) in sorted {
            match groups.last_mut() {
                Some(last) if last.0 == age && last.1 == ending => last.2 += 1.0,
                _ => groups.push((age, ending, 1.0)),
            }
        }
        let Some(&(follow_up, _, _)) = groups.last() else {
            return Ok(Err(Unknown::NoRecords));
        };
        let Some(scale) = median_delay(&groups, resolution) else {
            return Ok(Err(Unknown::NoArrivals));
        };
        let ends = groups.iter().filter(|g| g.1 != Ending::Censored);
        let smallest = ends.map(|g| g.0).find(|&d| d > 0.0).unwrap_or(scale);
        let mut records = Self {
            resolution,
            arrived: Cells::default(),
            failed: Cells::default(),
            censored: Cells::default(),
            scale,
            follow_up,
            early: 0.0,
            log_jacobian: 0.0,
            groups: Vec::new(),
        };
        for &(age, ending, weight) in &groups {
            let cells = match ending {
                Ending::Censored => {
                    let x = (resolution.elapsed(age) / scale).ln();
                    if x > f64::NEG_INFINITY {
                        records.censored.push(x, x, weight);
                    }
                    continue;
                }
                Ending::Arrived => &mut records.arrived,
                Ending::Failed => &mut records.failed,
            };
            let (low, high) = resolution.interval(age, smallest);
            cells.push((low / scale).ln(), (high / scale).ln(), weight);
            if low == high {
                records.log_jacobian += weight * low.ln();
            }
        }
        records.groups = groups;
        Ok(Ok(records))
    }

    /// Returns a sample with about `size` cells per ending, or None if the records are few.
    pub fn sample(&self, size: usize) -> Option<Self> {
        let all = [&self.arrived, &self.failed, &self.censored];
        if all.iter().all(|cells| cells.len() < 2 * size) {
            return None;
        }
        let [arrived, failed, censored] = all.map(|cells| cells.sample(size));
        Some(Self {
            groups: Vec::new(),
            arrived,
            failed,
            censored,
            ..*self
        })
    }
}

fn check(ages: &[f64], n_outcomes: usize, resolution: Resolution) -> Result<()> {
    if ages.len() != n_outcomes {
        return Err(Error::Shape(format!(
            "{} ages for {n_outcomes} outcomes; give one outcome per age",
            ages.len()
        )));
    }
    if let Resolution::Rounded(step) = resolution
        && !(step > 0.0 && step.is_finite())
    {
        return Err(refuse("resolution", step, "give a finite number above 0"));
    }
    if let Some(&bad) = ages.iter().find(|a| !(**a >= 0.0 && a.is_finite())) {
        return Err(refuse("ages", bad, "give finite numbers of 0 or above"));
    }
    if resolution == Resolution::Iterations
        && let Some(&bad) = ages.iter().find(|a| a.fract() != 0.0)
    {
        return Err(refuse("ages", bad, "give whole numbers of iterations"));
    }
    Ok(())
}

/// Returns the median of the delays of arrivals above 0, or None without arrivals. If all delays are 0, the unit of
/// time is the smallest age above 0, or 1.
fn median_delay(groups: &[(f64, Ending, f64)], resolution: Resolution) -> Option<f64> {
    let mut delays = groups.iter().filter(|g| g.1 == Ending::Arrived).peekable();
    delays.peek()?;
    let least = match resolution {
        Resolution::Iterations => 1.0,
        Resolution::Exact | Resolution::Rounded(_) => 0.0,
    };
    let delays: Vec<(f64, f64)> = delays
        .map(|g| (g.0.max(least), g.2))
        .filter(|g| g.0 > 0.0)
        .collect();
    let half = 0.5 * delays.iter().map(|g| g.1).sum::<f64>();
    let mut below = 0.0;
    for (delay, weight) in delays {
        below += weight;
        if below >= half {
            return Some(delay);
        }
    }
    let positive = groups.iter().map(|g| g.0).find(|&a| a > 0.0);
    Some(positive.unwrap_or(1.0))
}
