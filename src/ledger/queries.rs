//! Queries about single trials of the log.

use crate::error::{Error, Result};
use crate::ledger::Ledger;
use crate::ledger::event::TrialNumber;

impl Ledger {
    /// The number of trials whose points the strategy chose, without added and enqueued trials, and without trials that a
    /// revision left out.
    pub(crate) fn n_chosen(&self) -> usize {
        self.n_suggested - self.n_dequeued - self.n_chosen_left_out
    }

    /// Why a trial is left out, or None if strategies use the trial.
    pub fn left_out(&self, number: TrialNumber) -> Option<&str> {
        let trial = &self.trials[number];
        trial
            .left_out
            .then(|| self.revised[number].left_out.as_deref().unwrap_or_default())
    }

    /// The number of revisions before the problem to which the point where a trial was run belongs.
    pub fn problem_of_run(&self, number: TrialNumber) -> usize {
        let revised = self.revised.get(number);
        revised.map_or(self.n_revisions(), |revised| revised.run_problem)
    }

    /// Returns an error if the trial is left out.
    pub(super) fn check_placed(&self, number: TrialNumber) -> Result<()> {
        match self.left_out(number) {
            None => Ok(()),
            Some(reason) => Err(Error::InvalidPoint(format!(
                "trial {number} is left out of the revised problem ({reason}): pass params= of the present problem"
            ))),
        }
    }

    /// The reported steps of a trial and their values, in the user's sign. The value of a failed step is NaN.
    pub(crate) fn curve(&self, number: TrialNumber) -> Vec<(u32, f64)> {
        let oriented = |y: Option<f64>| y.map_or(f64::NAN, |y| self.problem.direction.oriented(y));
        let curve = self.trials[number].curve().iter();
        curve.map(|&(step, y)| (step, oriented(y))).collect()
    }
}
