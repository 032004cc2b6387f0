//! Bounds of outcomes, and missing outcomes.

use crate::error::{Result, refuse};
use crate::ledger::event::TrialNumber;
use crate::ledger::{Ledger, State, View};
use crate::problem::{Goal, Outcome};

impl Ledger {
    /// The declared outcomes.
    fn outcomes(&self) -> &[Outcome] {
        &self.problem.outcomes
    }

    /// The view of an outcome, or an error if the position is not one of a declared outcome.
    pub(crate) fn declared(&self, outcome: usize) -> Result<View<'_>> {
        match outcome < self.outcomes().len() {
            true => Ok(self.outcome(outcome)),
            false => Err(refuse(
                "outcome",
                outcome.to_string(),
                "give the position of a declared outcome",
            )),
        }
    }

    /// Whether an outcome that affects suggestions is missing.
    pub(crate) fn is_awaited(&self, number: TrialNumber) -> bool {
        let mut results = self.outcomes().iter().zip(self.results(number));
        results.any(|(outcome, it)| it.state() == State::Pending && outcome.goal != Goal::Record)
    }

    /// Whether all outcomes with bounds have values within their bounds.
    pub(crate) fn is_within_bounds(&self, number: TrialNumber) -> bool {
        let mut results = self.outcomes().iter().zip(self.results(number));
        results.all(|(outcome, it)| match outcome.bounds() {
            Some(bounds) => it.value().is_some_and(|value| bounds.contains(value)),
            None => true,
        })
    }

    /// Whether a trial cannot be the best trial, because an outcome that affects suggestions failed, was
    /// stopped, or has a value beyond its bounds.
    pub(crate) fn is_ruled_out(&self, number: TrialNumber) -> bool {
        self.results(number).enumerate().any(|(i, it)| {
            let outcome = self.outcomes().get(i);
            if outcome.is_some_and(|outcome| outcome.goal == Goal::Record) {
                return false;
            }
            let bounds = outcome.and_then(Outcome::bounds);
            let is_beyond = |value| bounds.is_some_and(|bounds| !bounds.contains(value));
            matches!(it.state(), State::Failed | State::Stopped)
                || it.value().is_some_and(is_beyond)
        })
    }

    /// Whether an outcome has bounds.
    pub(crate) fn has_bounds(&self) -> bool {
        self.outcomes().iter().any(|it| it.bounds().is_some())
    }

    /// For each trial: the sum of the distances of its outcomes from their bounds, in units of the range of the
    /// observed values. It is 0 for a trial within all bounds, and positive if an outcome with bounds is not known.
    pub(crate) fn violations(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.trials.len()];
        for (i, outcome) in self.outcomes().iter().enumerate() {
            let Some(bounds) = outcome.bounds() else {
                continue;
            };
            let numbers = 0..self.trials.len();
            let values: Vec<Option<f64>> = numbers.map(|n| self.entry(n, i).value()).collect();
            let known = || values.iter().flatten().copied();
            let (low, high) = (known().reduce(f64::min), known().reduce(f64::max));
            let range = low
                .zip(high)
                .map_or(0.0, |(low, high)| 0.5 * high - 0.5 * low);
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum += match value {
                    Some(value) => bounds.distance(value) / range.max(f64::MIN_POSITIVE),
                    None => f64::MIN_POSITIVE,
                };
            }
        }
        sums
    }
}
