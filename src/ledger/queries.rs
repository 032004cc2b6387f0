//! Queries about single trials of the log.

use crate::error::{Error, Result};
use crate::ledger::event::{Mark, TrialNumber};
use crate::ledger::results::Entry;
use crate::ledger::trial::Eras;
use crate::ledger::{Ledger, State, View};
use crate::problem::Point;

/// Facts about a trial, which lists of trials are filtered by.
pub(crate) struct Traits {
    pub state: State,
    pub is_marked: bool,
    /// Whether any outcome has failed.
    pub has_failed: bool,
    pub has_curve: bool,
    /// Whether the trial was run outside the domain, or a revision left it out.
    pub is_outside: bool,
    /// Whether its value may be the best value.
    pub counts: bool,
}

impl Ledger {
    /// The number of trials whose points the strategy chose, without added and enqueued trials, and without trials that a
    /// revision left out.
    pub(crate) fn n_chosen(&self) -> usize {
        let revised = self.trials[..self.revised.len()].iter();
        let left_out = revised.filter(|trial| trial.left_out && trial.is_chosen());
        self.n_suggested - self.n_dequeued - left_out.count()
    }

    /// The number of the event of the last revision, or 0 without a revision.
    pub fn last_revision(&self) -> usize {
        self.revisions.last().copied().unwrap_or(0)
    }

    /// Why a trial is left out, or None if strategies use the trial.
    pub fn left_out(&self, number: TrialNumber) -> Option<&str> {
        let trial = &self.trials[number];
        trial
            .left_out
            .then(|| self.revised[number].left_out.as_deref().unwrap_or_default())
    }

    /// The eras of the parts of a trial.
    pub(crate) fn eras(&self, number: TrialNumber) -> Eras {
        let revised = self.revised.get(number);
        revised.map_or(Eras::all(self.era()), |it| it.eras)
    }

    /// Whether the present problem has the context and the fidelity of a trial.
    pub(super) fn has_situation(&self, number: TrialNumber) -> bool {
        let (eras, here) = (self.eras(number), self.era());
        eras.context == here && eras.fidelity == here
    }

    /// Whether the point where a trial was run is this point of the present problem.
    pub(super) fn was_run_at(&self, number: TrialNumber, point: &Point) -> bool {
        let eras = self.eras(number);
        let era = match self.trials[number].run() {
            Some(_) => eras.run,
            None => eras.start,
        };
        era == self.era() && self.point(number) == *point
    }

    /// The point, the context and the fidelity of a replicate of a trial. `run` is the point where the replicate was run,
    /// if it was reported. Returns an error if the present problem lacks one of them.
    pub(super) fn replicated(
        &self,
        number: TrialNumber,
        run: Option<Point>,
    ) -> Result<(Point, Vec<f64>, Option<f64>)> {
        let advice = match (self.has_situation(number), &run) {
            (false, _) => Some("add the value as a new trial"),
            (true, None) => Some("pass params= of the present problem"),
            (true, Some(_)) => None,
        };
        if let (Some(reason), Some(advice)) = (self.left_out(number), advice) {
            return Err(Error::InvalidPoint(format!(
                "trial {number} is left out of the revised problem ({reason}): {advice}"
            )));
        }
        let point = run.unwrap_or_else(|| self.point(number));
        let fidelity = self.trials[number].fidelity();
        Ok((point, self.context_numbers(number), fidelity))
    }

    /// The value of an outcome of a trial, in the user's sign.
    pub(crate) fn value_of(&self, number: TrialNumber, outcome: usize) -> Option<f64> {
        self.entry(number, outcome).value()
    }

    /// The marks of the values of a trial that nobody has confirmed.
    pub(crate) fn marks(&self, number: TrialNumber) -> Vec<Mark> {
        self.results(number).filter_map(Entry::mark).collect()
    }

    /// The number of a declared parameter, or of a column of candidates, at the point where a trial was run. None if the
    /// point lacks it.
    pub(crate) fn number_at(&self, number: TrialNumber, parameter: usize) -> Option<f64> {
        let trial = Some(&self.trials[number]).filter(|trial| !trial.left_out)?;
        self.problem
            .number_at(parameter, self.x(number), trial.index)
    }

    /// Whether a trial was started or ended by this author.
    pub(crate) fn is_by(&self, number: TrialNumber, author: &str) -> bool {
        let authors = [self.started_by(number), self.view().finished_by(number)];
        authors.iter().flatten().any(|name| name == author)
    }

    /// Facts about each trial, which lists of trials are filtered by.
    pub(crate) fn traits(&self) -> Vec<Traits> {
        let objective = self.objective();
        let counted = |number: TrialNumber| {
            let trial = objective.of(number);
            let counts =
                !trial.is_outside() && (!self.has_outcomes() || self.is_within_bounds(number));
            trial.value().filter(|_| counts).map(|_| trial.z())
        };
        let all = 0..self.trials.len();
        let highest = all.clone().filter_map(counted).fold(0.0, f64::max);
        let traits = |number: TrialNumber| Traits {
            state: self.view().of(number).state(),
            is_marked: self.results(number).any(|it| it.mark().is_some()),
            has_failed: self.results(number).any(|it| it.state() == State::Failed),
            has_curve: !self.trials[number].reports().is_empty(),
            is_outside: self.trials[number].is_outside() || self.trials[number].left_out,
            counts: counted(number).is_some_and(|z| z == highest),
        };
        all.map(traits).collect()
    }

    /// The reported steps of a trial and their values, in the user's sign. The value of a failed step is NaN.
    pub(crate) fn reports(&self, number: TrialNumber) -> Vec<(u32, f64)> {
        let reports = self.trials[number].reports().iter();
        reports
            .map(|&(step, y)| (step, y.unwrap_or(f64::NAN)))
            .collect()
    }

    /// The first of some trials whose exact value differs from another exact value at the same point, in the same context
    /// and at the same fidelity: the outcome, if outcomes are declared, the other trial and the trial. A value with a
    /// standard deviation of 0 is exact.
    pub(crate) fn contradiction(
        &self,
        numbers: &[TrialNumber],
    ) -> Option<(Option<usize>, TrialNumber, TrialNumber)> {
        (0..self.n_outcomes()).find_map(|outcome| {
            let view = self.outcome(outcome);
            numbers.iter().find_map(|&number| {
                let value = exact_value(view, number)?;
                let mut others = 0..self.trials.len();
                let other = others.find(|&other| {
                    self.is_run_alike(number, other)
                        && exact_value(view, other).is_some_and(|exact| exact != value)
                })?;
                let outcome = Some(outcome).filter(|_| self.has_outcomes());
                Some((outcome, other, number))
            })
        })
    }

    /// Whether two trials were run at the same point, in the same context and at the same fidelity.
    fn is_run_alike(&self, a: TrialNumber, b: TrialNumber) -> bool {
        let rows = self.row(a).iter().zip(self.row(b));
        rows.into_iter().all(|(x, y)| x.total_cmp(y).is_eq())
            && self.trials[a].index == self.trials[b].index
            && self.trials[a].fidelity() == self.trials[b].fidelity()
    }
}

/// The value of a trial, if it was reported with a standard deviation of 0 and strategies see it.
fn exact_value(view: View, number: TrialNumber) -> Option<f64> {
    let trial = view.trial(number).ok()?;
    let is_exact = trial.state() == State::Observed && trial.std() == Some(0.0);
    trial.value().filter(|_| is_exact)
}
