//! The window that is chosen from the delays, if the setting is "auto": a quantile of the delays of results that arrive.
//!
//! The window is chosen when the model chooses a point, and chosen again when the number of arrivals has grown by a
//! quarter. The note of the trial stores the window, so reading a log does not repeat the choice. Until enough results
//! have arrived, the window has no end.

use serde::{Deserialize, Serialize};

use crate::delays::fit::Options;
use crate::delays::records::Resolution;
use crate::delays::{DelayDistribution, Outcome};
use crate::error::{Result, Stop};
use crate::ledger::{Ledger, State, Trial, TrialNumber};
use crate::problem::Clock;
use crate::strategy::Query;

/// The number of arrivals that a choice needs.
const MIN_ARRIVALS: usize = 10;

/// The share of arriving results that the window includes. With smaller shares, the regret of GP-UCB-SDF was larger,
/// and much larger below 0.95 (docs/sdf_synthetic.md).
const SHARE: f64 = 0.995;

/// The longest age in a fit of the delays, which needs finite ages.
const MAX_AGE: f64 = 1e300;

/// A window, and the number of arrivals when it was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChosenWindow {
    pub length: f64,
    pub arrivals: usize,
}

/// Chooses a window, if a choice is due. `last` is the last choice.
pub fn choose_window(
    last: Option<ChosenWindow>,
    log: &Ledger,
    query: Query,
    stop: &mut Stop,
) -> Result<Option<ChosenWindow>> {
    let suggested = || log.trials().iter().filter(|trial| trial.suggested);
    let arrivals = suggested().filter(|t| t.state == State::Observed).count();
    if arrivals < MIN_ARRIVALS || last.is_some_and(|last| 4 * arrivals < 5 * last.arrivals) {
        return Ok(None);
    }
    let outcomes: Vec<Outcome> = suggested().map(outcome).collect();
    let resolution = match log.problem().clock {
        Clock::Iterations => Resolution::Iterations,
        Clock::Seconds => Resolution::Exact,
    };
    let ages = ages(log, query);
    let delays = DelayDistribution::fit(&ages, &outcomes, resolution, &Options::default(), stop)?;
    let Ok(delays) = delays else {
        return Ok(None);
    };
    // Only the median of the posterior is used, so the level of the interval is arbitrary.
    let length = delays.quantile(SHARE, 0.5)?.value;
    Ok(Some(ChosenWindow {
        length: length.max(f64::MIN_POSITIVE),
        arrivals,
    }))
}

fn outcome(trial: &Trial) -> Outcome {
    match trial.state {
        State::Observed => Outcome::Arrived,
        State::Failed => Outcome::Failed,
        State::Pending | State::Abandoned | State::Stopped => Outcome::Censored,
    }
}

/// The ages of the suggested trials when they ended, or now. A pending trial whose lease has ended counts as if it were
/// abandoned at the end of the lease.
fn ages(log: &Ledger, query: Query) -> Vec<f64> {
    let wall_time = query.wall_time.unwrap_or(f64::NEG_INFINITY);
    let numbers = (0..log.trials().len()).filter(|&number| log.trials()[number].suggested);
    let mut started: Vec<f64> = numbers.clone().filter_map(|n| log.started_at(n)).collect();
    started.sort_unstable_by(f64::total_cmp);
    // The reading of the clock at the end of a lease. If the clock counts iterations, this is the number of suggestions
    // before, and at least 1 after the suggestion of the trial.
    let at_end_of_lease = |lease: f64, trial: &Trial| match log.problem().clock {
        Clock::Seconds => lease.max(trial.suggested_at),
        Clock::Iterations => {
            let before = started.partition_point(|at| *at <= lease) as f64;
            before.max(trial.suggested_at + 1.0)
        }
    };
    let age = |number: TrialNumber| {
        let trial = &log.trials()[number];
        let lapsed = trial.expires_at().filter(|lease| *lease < wall_time);
        let end = match (trial.ended_at(), lapsed) {
            (Some(end), _) => end,
            (None, Some(lease)) => at_end_of_lease(lease, trial).min(query.now),
            (None, None) => query.now,
        };
        (end - trial.suggested_at).clamp(0.0, MAX_AGE)
    };
    numbers.map(age).collect()
}
