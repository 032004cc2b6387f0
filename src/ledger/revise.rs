//! The change to another problem. Trials keep their numbers, states and values. A trial whose point the new problem lacks
//! is *left out*: strategies ignore the trial, and its delay still counts.

use std::sync::Arc;

use crate::error::{Error, Result, refuse};
use crate::ledger::event::{Event, TrialNumber};
use crate::ledger::results::{Column, OfSuccess, Source};
use crate::ledger::trial::{Eras, Revised};
use crate::ledger::{Effect, Ledger, Queued, State};
use crate::problem::{Curve, Direction, Outcome, Point, Position, Problem};

/// A trial in the new problem. The caller converts the points, because the caller knows the values for which the
/// numbers of a point stand. Each part that the new problem lacks stays as it was in an earlier problem.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RevisedTrial {
    /// The point of the start, if the new problem has it.
    pub start: Option<Point>,
    /// The point where the trial was run, if it was reported and the new problem has it.
    pub run: Option<Point>,
    /// The context, if the new problem has it.
    pub context: Option<Vec<f64>>,
    /// The fidelity in units of the new problem.
    pub fidelity: Option<f64>,
    /// Whether the new problem has the fidelity of the trial.
    pub has_fidelity: bool,
    /// Why the trial is left out. None if the trial is not left out.
    pub left_out: Option<String>,
}

impl Ledger {
    /// Changes the problem, and logs the revision. If an error is returned, the ledger must not be used any longer.
    ///
    /// `trials` has an entry for each trial. `queue` has a pair for each enqueued point that has not been suggested: the
    /// point, and whether it is partial. If the strategy stays the same (`same_strategy`) and the encoded problem, points
    /// and values are equal, the notes of earlier events stay valid.
    pub(crate) fn revise(
        &mut self,
        problem: Arc<Problem>,
        event: &Event,
        trials: Vec<RevisedTrial>,
        queue: Vec<(Point, bool)>,
        same_strategy: bool,
    ) -> Result<()> {
        let (n, n_queued) = (self.trials.len(), self.queued().len());
        if trials.len() != n || queue.len() != n_queued || problem.clock != self.problem.clock {
            return Err(mismatch());
        }
        if problem.outcomes.is_empty() && self.has_outcomes() {
            return Err(refuse(
                "outcomes",
                "None",
                "a revision keeps outcomes; declare those that are still measured",
            ));
        }
        if problem.front().is_some() && !self.has_outcomes() && !self.trials.is_empty() {
            return Err(refuse(
                "outcomes",
                "several objectives",
                "the values of the trials do not have a name: first revise to outcomes with one objective, which gets \
                 these values, and then add the others",
            ));
        }
        let before = std::mem::replace(&mut self.problem, problem.clone());
        let rows_before = std::mem::take(&mut self.rows);
        let indices_before: Vec<Option<u32>> =
            self.trials.iter().map(|trial| trial.index).collect();
        let earlier = std::mem::take(&mut self.revised);
        let here = self.era() + 1;
        let runs = earlier.iter().map(|revised| revised.run.clone());
        let runs: Vec<Option<Point>> = runs.collect();
        self.widths = problem.widths();
        for (number, given) in trials.into_iter().enumerate() {
            let old = earlier.get(number).cloned();
            let old = old.unwrap_or(Revised {
                eras: Eras::all(here - 1),
                ..Revised::default()
            });
            self.revise_trial(number, given, old)?;
        }
        for (i, (point, partial)) in queue.into_iter().enumerate() {
            let queued = Queued {
                point,
                partial,
                ..self.queued()[i].clone()
            };
            self.check_queued(&queued)?;
            self.enqueued[self.n_dequeued + i] = queued;
        }
        let bits = |rows: &[f64]| rows.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        let indices = self.trials.iter().map(|trial| trial.index);
        let same = same_strategy
            && bits(&rows_before) == bits(&self.rows)
            && indices.eq(indices_before)
            && is_encoded_as(&before, &problem);
        let is_read_as = before.direction == problem.direction && before.curve == problem.curve;
        if same && is_read_as {
            let runs = runs.into_iter().chain(std::iter::repeat(None));
            let known = self.revised.iter_mut().zip(runs);
            known.for_each(|(revised, run)| revised.run = run);
        }
        self.revise_columns(&before, same);
        self.recount();
        self.revisions.push(self.len());
        self.note_times(event);
        self.events.push(event);
        Ok(())
    }

    /// Converts one trial, whose row is the next one.
    fn revise_trial(
        &mut self,
        number: TrialNumber,
        given: RevisedTrial,
        old: Revised,
    ) -> Result<()> {
        let (problem, here) = (self.problem.clone(), self.era() + 1);
        let is_left_out = given.left_out.is_some();
        let last = |is_here: bool, before: usize| if is_here { here } else { before };
        let eras = Eras {
            start: last(given.start.is_some(), old.eras.start),
            run: last(given.run.is_some(), old.eras.run),
            context: last(given.context.is_some(), old.eras.context),
            fidelity: last(given.has_fidelity, old.eras.fidelity),
        };
        for point in given.start.iter().chain(&given.run) {
            problem.check_measured(point)?;
        }
        if given.has_fidelity {
            problem.check_fidelity(given.fidelity)?;
        } else if !is_left_out {
            return Err(mismatch());
        }
        let fidelity = self.at_fidelity(given.fidelity);
        let trial = &mut self.trials[number];
        let (steps, last) = (
            problem.curve.map(|curve| curve.steps),
            trial.reports().last(),
        );
        if let (Some(steps), Some((last, _))) = (steps, last)
            && steps < *last
        {
            return Err(refuse(
                "curve",
                format!("{steps} steps, and trial {number} reported step {last}"),
                "give a curve that has all reported steps",
            ));
        }
        let has_run = trial.run().is_some();
        self.place(number, &given)?;
        let trial = &mut self.trials[number];
        trial.left_out = is_left_out;
        if given.has_fidelity
            && trial.details.as_ref().and_then(|details| details.fidelity) != fidelity
        {
            trial.details.get_or_insert_default().fidelity = fidelity;
        }
        let run = given.run.filter(|_| has_run).map(Point::unsigned_zeros);
        if let Some(run) = &run {
            trial.reported_mut().run = Some(run.clone());
        }
        self.revised.push(Revised {
            start: given.start.or(old.start),
            context: given.context.or(old.context),
            eras,
            left_out: given.left_out,
            run,
        });
        Ok(())
    }

    /// Adds the row of a trial in the new problem. A trial that is left out has a row of NaN.
    fn place(&mut self, number: TrialNumber, given: &RevisedTrial) -> Result<()> {
        let problem = &self.problem;
        let trial = &mut self.trials[number];
        if given.left_out.is_some() {
            let (width, context_width) = self.widths;
            let missing = std::iter::repeat_n(f64::NAN, width);
            self.rows.extend(missing);
            trial.index = None;
            trial.position = Position::Outside;
            match &given.context {
                Some(context) => {
                    problem.check_context(context)?;
                    self.rows.extend(problem.encode_context(context));
                }
                None => self
                    .rows
                    .extend(std::iter::repeat_n(f64::NAN, context_width)),
            }
            return Ok(());
        }
        let point = match trial.run() {
            Some(_) => &given.run,
            None => &given.start,
        };
        let (point, context) = point
            .as_ref()
            .zip(given.context.as_ref())
            .ok_or_else(mismatch)?;
        problem.check_context(context)?;
        self.rows.extend(problem.encode(point)?);
        self.rows.extend(problem.encode_context(context));
        trial.index = point.index().map(|index| index as u32);
        trial.position = problem.position(point);
        Ok(())
    }

    /// Replaces the columns of results. `same`: whether the strategy, the encoded points and the candidates are equal.
    fn revise_columns(&mut self, before: &Problem, same: bool) {
        let problem = self.problem.clone();
        let (was_plain, had_success) = (before.outcomes.is_empty(), before.outcomes.len() > 1);
        let sources = sources(before, &problem);
        let revised = sources.iter().enumerate();
        let revised = revised.map(|(i, source)| self.revised_column(i, *source, before, same));
        let columns: Vec<Column> = revised.collect();
        let valued = match was_plain {
            true => Some(0),
            false => before.objective(),
        };
        let value = |number| self.entry(number, valued?).value();
        let values: Vec<Option<f64>> = (0..self.trials.len()).map(value).collect();
        self.results.revise(&sources, before.outcomes.len());
        self.columns = columns;
        if !had_success && problem.outcomes.len() > 1 {
            self.success_changes = self.changes_as_success(problem.first_objective().unwrap_or(0));
        }
        if self.has_outcomes() {
            let column = self.trial_column();
            for (number, value) in values.into_iter().enumerate() {
                let ended_at = self.entry(number, column).ended_at();
                self.settle(number, value, None);
                if self.entry(number, column).stored.ended_by as usize == self.len() {
                    self.results.extra_mut(number, column).ended_at = Some(ended_at);
                }
            }
        }
    }

    /// Column i of the new problem, from the column `source`.
    fn revised_column(
        &self,
        i: usize,
        (source, is_known): Source,
        before: &Problem,
        same: bool,
    ) -> Column {
        let problem = &self.problem;
        let is_trial = !problem.outcomes.is_empty() && i == problem.outcomes.len();
        let is_success = i > problem.outcomes.len();
        let mut column = self.columns[source].clone();
        if !is_known {
            column.positions.iter_mut().for_each(|it| *it = None);
        }
        column.positions.push(match is_success {
            true => Some(problem.first_objective().unwrap_or(0)),
            false => Some(i),
        });
        let read_as = |problem: &Problem, outcome: usize| match () {
            () if is_trial => (problem.direction, problem.curve),
            () if is_success => read_as(problem, 0),
            () => read_as(problem, outcome),
        };
        if !is_known || !same || read_as(before, source) != read_as(problem, i) {
            column.notes_from = self.era() + 1;
            // Strategies do not see the results of another outcome.
            let is_hidden = |number: &TrialNumber| !is_known || self.trials[*number].left_out;
            let hidden = (0..self.trials.len()).filter(is_hidden);
            column.shown_from = hidden.map(|number| (number, u32::MAX)).collect();
        }
        column
    }

    /// The changes of success of the events so far, if the trials had only this outcome.
    fn changes_as_success(&self, outcome: usize) -> Vec<OfSuccess> {
        let mut found = Vec::new();
        for i in 0..self.len() {
            for change in self.outcome(outcome).changes(i) {
                let state = match change.effect {
                    Effect::Started {
                        reading: Some(_), ..
                    }
                    | Effect::Valued { .. } => State::Observed,
                    Effect::Failed => State::Failed,
                    Effect::Withdrawn => State::Withdrawn,
                    _ => continue,
                };
                let event = i as u32;
                found.push(OfSuccess { event, state });
            }
        }
        found
    }
}

/// The source of each column of a new problem.
///
/// Outcomes are found again by their names, and a value without a name becomes the objective. A new outcome is missing
/// in pending trials, and abandoned in the others.
fn sources(before: &Problem, after: &Problem) -> Vec<Source> {
    if after.outcomes.is_empty() {
        return vec![(0, true)];
    }
    let trials = before.outcomes.len();
    let source = |outcome: &Outcome| {
        let mut names = before.outcomes.iter();
        let known = match trials {
            0 => outcome.is_objective().then_some(0),
            _ => names.position(|it| it.name == outcome.name),
        };
        (known.unwrap_or(0), known.is_some())
    };
    let mut sources: Vec<Source> = after.outcomes.iter().map(source).collect();
    let objective = sources[after.first_objective().unwrap_or(0)];
    let n = sources.len();
    sources.push((trials, true));
    sources.extend((n > 1).then_some(match trials > 1 {
        true => (trials + 1, true),
        false => objective,
    }));
    sources
}

/// The error for points that do not belong to the trials or to the problem.
fn mismatch() -> Error {
    Error::Corrupt("the points of a revision do not belong to its trials".to_string())
}

/// Whether strategies see the same points.
fn is_encoded_as(before: &Problem, after: &Problem) -> bool {
    before.domain() == after.domain()
        && before.context_coordinates() == after.context_coordinates()
        && before.descriptors() == after.descriptors()
        && before.fidelity == after.fidelity
}

/// The direction and the curve with which strategies see an outcome.
fn read_as(problem: &Problem, outcome: usize) -> (Direction, Option<Curve>) {
    let is_objective = problem.outcomes.is_empty() || Some(outcome) == problem.objective();
    let curve = problem.curve.filter(|_| is_objective);
    (problem.direction_of(Some(outcome)), curve)
}
