//! The warning that the settings need durations or costs, but none was reported.

use crate::ledger::View;
use crate::strategy::Resource;
use crate::strategy::bayes::model::training_set::TrainingSet;
use crate::strategy::bayes::settings::Settings;

/// The number of ended trials without a duration or cost, from which the warning is given.
const MANY: usize = 10;

/// Returns the warning, or `None` if the setting does not need expenses, an expense is known, or few trials have ended.
pub fn missing(settings: &Settings, training: &TrainingSet, log: View) -> Option<String> {
    let resource = settings.acquisition.rule().asks_for()?;
    let ended = &training.fold.ended;
    let mut expenses = ended.iter().map(|&number| {
        let trial = log.of(number);
        match resource {
            Resource::Time => trial.duration(),
            Resource::Cost => trial.cost(),
        }
    });
    if ended.len() < MANY || expenses.any(|expense| expense.is_some()) {
        return None;
    }
    let (per, what, how) = match resource {
        Resource::Time => (
            "time",
            "duration",
            "report durations with observe(duration=) and fail(duration=), or use maximize, which measures them",
        ),
        Resource::Cost => (
            "cost",
            "cost",
            "report costs with observe(cost=), or return them from the function of maximize as {\"value\": y, \"cost\": c}",
        ),
    };
    let n = ended.len();
    Some(format!(
        "per=\"{per}\" has no effect yet, because none of {n} ended trials has a {what}: {how}"
    ))
}
