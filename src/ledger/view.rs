//! Views: the log as a strategy reads it. A view shows whole trials, one outcome of each trial, or where trials succeed.

use std::ops::Deref;

use crate::error::Result;
use crate::ledger::{Ledger, State, Trial, TrialNumber};

/// A view of the log. Data of whole trials are read from `log`.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The log.
    pub log: &'a Ledger,
    part: &'a Ledger,
}

/// A trial in a view.
#[derive(Debug, Clone, Copy)]
pub struct Viewed<'a>(&'a Trial);

impl Ledger {
    /// The view of whole trials. The value of a trial is the value of its objective.
    pub fn view(&self) -> View<'_> {
        self.view_of(self)
    }

    /// The view that a model of the objective reads.
    pub(crate) fn objective(&self) -> View<'_> {
        self.view_of(self.of_objective())
    }

    /// The view that a model of an outcome reads.
    pub(crate) fn outcome(&self, outcome: usize) -> View<'_> {
        self.view_of(self.of_outcome(outcome))
    }

    /// The view that a model of success reads: a trial failed as soon as any of its outcomes failed.
    pub(crate) fn success(&self) -> View<'_> {
        self.view_of(self.of_failures().unwrap_or(self.of_objective()))
    }

    fn view_of<'a>(&'a self, part: &'a Ledger) -> View<'a> {
        View { log: self, part }
    }

    /// The number of trials.
    pub(crate) fn n_trials(&self) -> usize {
        self.trials.len()
    }
}

impl<'a> View<'a> {
    /// The trial with this number.
    pub fn of(self, number: TrialNumber) -> Viewed<'a> {
        Viewed(&self.part.trials[number])
    }

    /// The trial with this number, or an error if it does not exist.
    pub fn trial(self, number: TrialNumber) -> Result<Viewed<'a>> {
        self.part.trial(number).map(Viewed)
    }

    /// All trials, by number.
    pub fn trials(self) -> impl Iterator<Item = Viewed<'a>> + Clone {
        self.part.trials.iter().map(Viewed)
    }
}

impl Deref for View<'_> {
    type Target = Ledger;

    fn deref(&self) -> &Ledger {
        self.part
    }
}

impl Viewed<'_> {
    /// The state of the result.
    pub fn state(self) -> State {
        self.0.state
    }

    /// The value, oriented so that larger values are better.
    pub fn value(self) -> Option<f64> {
        self.0.value
    }
}

impl Deref for Viewed<'_> {
    type Target = Trial;

    fn deref(&self) -> &Trial {
        self.0
    }
}
