//! The expiry of trials. A pending trial no longer counts as arriving when its lease or its window has passed.
//! Depending on the settings, a value that arrives later is discarded.

use crate::ledger::{State, Trial};
use crate::strategy::Query;
use crate::strategy::bayes::settings::Settings;

/// Whether the model discards the value of a trial with this window and uses the floor. For a pending trial, call this
/// function only after the window of the trial has passed.
pub fn discarded(trial: &Trial, settings: &Settings, window: Option<f64>) -> bool {
    settings.pending().discards_late()
        && trial.suggested
        && match trial.delay() {
            Some(delay) => is_beyond(delay, window),
            None => trial.state == State::Pending,
        }
}

/// Whether a pending trial still counts as arriving. A trial counts as arriving until its window has passed or its
/// lease, if any, has ended.
pub fn is_arriving(trial: &Trial, query: Query, window: Option<f64>) -> bool {
    let lease_expired = trial
        .expires_at()
        .zip(query.wall_time)
        .is_some_and(|(at, now)| now > at);
    !lease_expired && !is_beyond(query.now - trial.suggested_at, window)
}

/// Whether an age is beyond the window. A trial whose age equals the window may still arrive.
pub fn is_beyond(age: f64, window: Option<f64>) -> bool {
    window.is_some_and(|m| age > m)
}
