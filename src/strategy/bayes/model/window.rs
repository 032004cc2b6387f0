//! The window that is chosen from the delays, if the setting is "auto": a quantile of the delays of results that arrive.
//!
//! The window is chosen when the model chooses a point, and chosen again when the number of arrivals has grown by a
//! quarter. The note of the trial stores the window, so reading a log does not repeat the choice. Until enough results
//! have arrived, the window has no end.

use serde::{Deserialize, Serialize};

use crate::delays::fit::Options;
use crate::error::{Result, Stop};
use crate::ledger::{State, View, Viewed};
use crate::strategy::Query;

/// The number of arrivals that a choice needs.
const MIN_ARRIVALS: usize = 10;

/// The share of arriving results that the window includes. With smaller shares, the regret of GP-UCB-SDF was larger,
/// and much larger below 0.95 (docs/sdf_synthetic.md).
const SHARE: f64 = 0.995;

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
    log: View,
    query: Query,
    stop: &mut Stop,
) -> Result<Option<ChosenWindow>> {
    let arrived = |trial: &Viewed| trial.suggested && trial.outcome() == State::Observed;
    let arrivals = log.trials().filter(arrived).count();
    if arrivals < MIN_ARRIVALS || last.is_some_and(|last| 4 * arrivals < 5 * last.arrivals) {
        return Ok(None);
    }
    let delays = log.delays(query.now, query.wall_time);
    let fitted = delays.distribution(&Options::default(), stop)?;
    let Ok(delays) = &*fitted else {
        return Ok(None);
    };
    // Only the median of the posterior is used, so the level of the interval is arbitrary.
    let length = delays.quantile(SHARE, 0.5)?.value;
    Ok(Some(ChosenWindow {
        length: length.max(f64::MIN_POSITIVE),
        arrivals,
    }))
}
