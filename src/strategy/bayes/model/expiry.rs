//! The expiry of trials. After its lease or window, a trial no longer counts as arriving, and its value may be
//! discarded.

use crate::ledger::{State, Trial};
use crate::strategy::Query;
use crate::strategy::bayes::settings::Settings;

/// Whether the trial stays at the floor in the model even if it has a value.
pub fn discarded(trial: &Trial, settings: &Settings) -> bool {
    settings.pending().discards_late()
        && trial.suggested
        && match trial.delay() {
            Some(delay) => delay > settings.window_or_infinite(),
            None => trial.state == State::Pending,
        }
}

/// Whether a pending trial still counts as arriving. It counts until its window has passed or its lease, if any, has
/// ended.
pub fn is_arriving(trial: &Trial, query: Query, settings: &Settings) -> bool {
    let lease_expired = trial
        .expires_at()
        .zip(query.wall_time)
        .is_some_and(|(at, now)| now > at);
    let window_passed = query.now - trial.suggested_at > settings.window_or_infinite();
    !lease_expired && !window_passed
}
