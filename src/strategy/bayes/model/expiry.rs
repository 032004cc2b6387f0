//! The expiry of trials. A pending trial no longer counts as arriving when its lease or its window has passed.
//! Depending on the settings, a value that arrives later is discarded.

use crate::ledger::{State, Trial};
use crate::strategy::Query;
use crate::strategy::bayes::settings::Settings;

/// Whether the model discards the value of this trial and uses the floor. For a pending trial, call this function only
/// after the window of the trial has passed.
pub fn discarded(trial: &Trial, settings: &Settings) -> bool {
    settings.pending().discards_late()
        && trial.suggested
        && match trial.delay() {
            Some(delay) => delay > settings.window_or_infinite(),
            None => trial.state == State::Pending,
        }
}

/// Whether a pending trial still counts as arriving. A trial counts as arriving until its window has passed or its
/// lease, if any, has ended.
pub fn is_arriving(trial: &Trial, query: Query, settings: &Settings) -> bool {
    let lease_expired = trial
        .expires_at()
        .zip(query.wall_time)
        .is_some_and(|(at, now)| now > at);
    let window_passed = query.now - trial.suggested_at > settings.window_or_infinite();
    !lease_expired && !window_passed
}
