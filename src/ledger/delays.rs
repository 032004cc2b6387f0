//! The delays of suggested trials, whether leases and windows have passed, and which trials are late.
//!
//! Times are on the optimizer's clock, unless they are called wall-clock times. A lease ends at a wall-clock time.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::delays::records::Resolution;
use crate::delays::{DelayDistribution, Delays, Ending};
use crate::error::Result;
use crate::ledger::{State, Trial, TrialNumber, View, Viewed};
use crate::numerics::order::median;
use crate::problem::Clock;

/// The longest age in a fit of the delays, which needs finite ages.
const MAX_AGE: f64 = 1e300;

/// The time after which the delays for forecasts are updated, as a share of the median delay.
const REFIT_AFTER: f64 = 0.1;

/// A trial without a lease is late if its age exceeds this quantile of the delays of trials that arrive.
const LATE: f64 = 0.95;

/// The level of the interval of a quantile. The quantile itself does not depend on the level.
const LEVEL: f64 = 0.8;

/// Whether an age is beyond the window. A trial whose age equals the window may still arrive.
pub fn is_beyond(age: f64, window: Option<f64>) -> bool {
    window.is_some_and(|m| age > m)
}

impl Trial {
    /// Whether the lease, if any, has ended at a wall-clock time.
    fn has_lapsed(&self, wall_time: Option<f64>) -> bool {
        let lease = self.expires_at().zip(wall_time);
        lease.is_some_and(|(end, now)| now > end)
    }

    /// Whether a pending trial still counts as arriving. A trial counts as arriving until its window has passed or its
    /// lease, if any, has ended.
    pub(crate) fn is_arriving(
        &self,
        now: f64,
        wall_time: Option<f64>,
        window: Option<f64>,
    ) -> bool {
        !self.has_lapsed(wall_time) && !is_beyond(now - self.suggested_at, window)
    }
}

/// The delays of a log that were computed last.
pub struct LastDelays {
    /// The numbers of events and of trials in flight.
    log: (usize, usize),
    /// The result of `View::steps`.
    steps: (f64, f64),
    time: f64,
    pub delays: Arc<Delays>,
}

impl<'a> View<'a> {
    fn suggested(self) -> impl Iterator<Item = Viewed<'a>> {
        self.trials().filter(|trial| trial.suggested)
    }

    /// The start and the end of a trial, on the optimizer's clock or in wall-clock time. The end of a pending trial is its
    /// start. A time that is not known is NaN.
    fn span(self, trial: &Viewed, in_wall_time: bool) -> (f64, f64) {
        let wall_time = |event: u32| self.log.times[event as usize];
        match in_wall_time {
            true => (wall_time(trial.started_by), wall_time(trial.ended_by())),
            false => (trial.suggested_at, trial.last_time()),
        }
    }

    /// The starts and ends of the suggested trials that were observed, on the optimizer's clock or in wall-clock time. A
    /// time that is not known is NaN.
    pub(crate) fn arrivals(self, in_wall_time: bool) -> (Vec<f64>, Vec<f64>) {
        let arrived = self
            .suggested()
            .filter(|trial| trial.outcome() == State::Observed);
        arrived.map(|trial| self.span(&trial, in_wall_time)).unzip()
    }

    /// The ages of the suggested trials in flight, without trials whose lease has ended.
    pub(crate) fn in_flight(self, now: f64, wall_time: Option<f64>) -> BTreeMap<TrialNumber, f64> {
        let mut ages = BTreeMap::new();
        for number in self.all_pending() {
            let trial = self.of(number);
            if trial.suggested && !trial.has_lapsed(wall_time) {
                ages.insert(number, age(&trial, now));
            }
        }
        ages
    }

    /// The wall-clock ages of the suggested trials in flight, without trials whose lease has ended or whose start is not
    /// known.
    pub(crate) fn in_flight_in_wall_time(self, now: f64) -> BTreeMap<TrialNumber, f64> {
        let in_flight = self.in_flight(0.0, Some(now)).into_keys();
        let aged = in_flight.map(|number| (number, now - self.span(&self.of(number), true).0));
        let known = aged.filter(|(_, age)| !age.is_nan());
        known
            .map(|(number, age)| (number, age.clamp(0.0, MAX_AGE)))
            .collect()
    }

    /// The delay of each suggested trial that has ended, and the age of each other suggested trial. A pending trial whose
    /// lease has ended counts as if it were abandoned at the end of the lease.
    pub(crate) fn delays(self, now: f64, wall_time: Option<f64>) -> Delays {
        let starts = self
            .suggested()
            .map(|trial| self.log.times[trial.started_by as usize]);
        let mut started: Vec<f64> = starts.collect();
        started.sort_by(f64::total_cmp);
        // The reading of the clock at the end of a lease. If the clock counts iterations, the reading is the number of
        // suggestions before the end of the lease, and at least 1 more than at the suggestion of the trial.
        let reading = |lease: f64, start: f64| match self.log.problem.clock {
            Clock::Seconds => lease.max(start),
            Clock::Iterations => {
                (started.partition_point(|at| *at <= lease) as f64).max(start + 1.0)
            }
        };
        let record = |trial: Viewed| {
            let lapsed = trial.expires_at().filter(|_| trial.has_lapsed(wall_time));
            let until = lapsed.map_or(now, |lease| reading(lease, trial.suggested_at).min(now));
            let (end, ending) = match trial.outcome() {
                State::Observed => (trial.last_time(), Ending::Arrived),
                State::Failed => (trial.last_time(), Ending::Failed),
                State::Pending => (until, Ending::Censored),
                _ => (trial.last_time(), Ending::Censored),
            };
            (age(&trial, end), ending)
        };
        let (ages, endings) = self.suggested().map(record).unzip();
        let resolution = match self.log.problem.clock {
            Clock::Iterations => Resolution::Iterations,
            Clock::Seconds => Resolution::Exact,
        };
        Delays::new(ages, endings, resolution)
    }

    /// The delays for forecasts. If the clock counts seconds, the ages of trials in flight grow between events. To fit
    /// the delays once per step instead of once per call, the ages are taken at the start of the current step of time
    /// (see `View::steps`).
    pub(crate) fn delays_in_steps(
        self,
        last: Option<LastDelays>,
        now: f64,
        wall_time: Option<f64>,
    ) -> LastDelays {
        let log = (self.len(), self.in_flight(now, wall_time).len());
        let last = last.filter(|last| last.log == log);
        let steps = last.as_ref().map(|last| last.steps);
        let (latest, step) = steps.unwrap_or_else(|| self.steps());
        let passed = (now - latest).max(0.0);
        let time = match step > 0.0 && step < f64::INFINITY {
            // The quotient is a whole number up to rounding.
            true => now.min(latest + step * ((passed - passed % step) / step).round()),
            false => now,
        };
        let last = last.filter(|last| last.time == time);
        last.unwrap_or_else(|| LastDelays {
            log,
            steps: (latest, step),
            time,
            delays: Arc::new(self.delays(time, wall_time)),
        })
    }

    /// The latest time at which a trial was suggested or ended, and the length of the steps of time that start there.
    /// The length is 0 if time is not divided into steps.
    fn steps(self) -> (f64, f64) {
        let mut latest = f64::NEG_INFINITY;
        let mut delays = Vec::new();
        for trial in self.suggested() {
            latest = latest.max(trial.suggested_at).max(trial.last_time());
            delays.extend(trial.observed_at().map(|end| age(&trial, end)));
        }
        match (self.log.problem.clock, delays.is_empty()) {
            (Clock::Seconds, false) => (latest, REFIT_AFTER * median(&delays)),
            _ => (latest, 0.0),
        }
    }

    /// The delays of whole trials in wall-clock time, as in [`View::delays`]. Trials whose times are not known are left
    /// out. If all results of a trial were withdrawn, the trial arrived if at least one of them had arrived.
    pub(crate) fn wall_delays(self, now: f64) -> Delays {
        let record = |number: TrialNumber| {
            let trial = self.of(number);
            let (start, end) = self.span(&trial, true);
            let end = match trial.state() {
                State::Pending => trial.expires_at().map_or(now, |lease| lease.min(now)),
                _ => end,
            };
            let age = (end - start).clamp(0.0, MAX_AGE);
            let known = trial.suggested && !age.is_nan();
            known.then(|| (age, self.wall_ending(number)))
        };
        let records = (0..self.log.n_trials()).filter_map(record);
        let (ages, endings) = records.unzip();
        Delays::new(ages, endings, Resolution::Exact)
    }

    fn wall_ending(self, number: TrialNumber) -> Ending {
        let trial = self.of(number);
        let results = self.log.results(number);
        let withdrawn = results.filter_map(|it| it.withdrawals().last().map(|last| last.outcome));
        let of_results = withdrawn.filter(|_| trial.state() == State::Withdrawn);
        let states: Vec<State> = of_results.chain([trial.outcome()]).collect();
        match (
            states.contains(&State::Observed),
            states.contains(&State::Failed),
        ) {
            (true, _) => Ending::Arrived,
            (false, true) => Ending::Failed,
            (false, false) => Ending::Censored,
        }
    }

    /// The pending trials that are late at a wall-clock time, and the observed trials that were late when their result
    /// arrived. A trial with a lease is late from the end of the lease on. A suggested trial without a lease is late if
    /// its age exceeds the 95 % quantile of the delays of trials that arrive. `delays` is the distribution of
    /// [`View::wall_delays`], if known.
    pub(crate) fn late(
        self,
        now: f64,
        delays: Option<&DelayDistribution>,
    ) -> Result<Vec<TrialNumber>> {
        let limit = delays
            .map(|known| known.quantile(LATE, LEVEL))
            .transpose()?;
        let is_late = |number: &TrialNumber| {
            let trial = self.of(*number);
            let (start, end) = self.span(&trial, true);
            let until = match trial.state() {
                State::Pending => now,
                State::Observed => end,
                _ => return false,
            };
            // Times that are not known are NaN, and a comparison with NaN is false.
            match trial.expires_at() {
                Some(lease) => lease <= until,
                None => trial.suggested && limit.is_some_and(|limit| until - start > limit.value),
            }
        };
        Ok((0..self.log.n_trials()).filter(is_late).collect())
    }
}

/// The age of a trial at a time. Negative ages, which occur if a clock was set back, are replaced by 0.
fn age(trial: &Trial, time: f64) -> f64 {
    (time - trial.suggested_at).clamp(0.0, MAX_AGE)
}
