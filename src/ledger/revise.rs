//! The change to another problem. Trials keep their numbers, states and values. A trial whose point the new problem lacks
//! is *left out*: strategies ignore the trial, and its delay still counts.

use std::sync::Arc;

use crate::error::{Error, Result, refuse};
use crate::ledger::event::{Event, TrialNumber};
use crate::ledger::trial::{Problems, Revised};
use crate::ledger::{Ledger, Queued};
use crate::problem::{Point, Position, Problem};

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
    /// `trials` has an entry for each trial, and `queue` for each enqueued point that has not been suggested. If the
    /// strategy stays the same (`same_strategy`) and the encoded problem, points and values are equal, the notes of
    /// earlier events stay valid.
    pub(crate) fn revise(
        &mut self,
        problem: Arc<Problem>,
        event: &Event,
        trials: Vec<RevisedTrial>,
        queue: Vec<Point>,
        same_strategy: bool,
    ) -> Result<()> {
        let (n, n_queued) = (self.trials.len(), self.queued().len());
        if trials.len() != n || queue.len() != n_queued || problem.clock != self.problem.clock {
            return Err(mismatch());
        }
        let parts = self.revised_parts(&problem, |part, problem| {
            part.revise(problem, event, trials.clone(), queue.clone(), same_strategy)
        })?;
        let values: Vec<Option<f64>> = (0..n).map(|number| self.value(number)).collect();
        let flipped = problem.direction != self.problem.direction;
        let before = std::mem::replace(&mut self.problem, problem.clone());
        let rows_before = std::mem::take(&mut self.rows);
        let indices_before: Vec<Option<u32>> =
            self.trials.iter().map(|trial| trial.index).collect();
        let earlier = std::mem::take(&mut self.revised);
        let here = self.n_revisions() + 1;
        let runs = earlier.iter().map(|revised| revised.run.clone());
        let runs: Vec<Option<Point>> = runs.collect();
        self.widths = problem.widths();
        for (number, given) in trials.into_iter().enumerate() {
            let old = earlier.get(number).cloned();
            let old = old.unwrap_or(Revised {
                problems: Problems::all(here - 1),
                ..Revised::default()
            });
            self.revise_trial(number, given, old, values[number], flipped)?;
        }
        for (queued, point) in self.enqueued[self.n_dequeued..].iter_mut().zip(queue) {
            problem.check_point(&point)?;
            problem.check_fidelity(queued.fidelity)?;
            *queued = Queued {
                point,
                given: None,
                ..queued.clone()
            };
        }
        self.recount();
        let bits = |rows: &[f64]| rows.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        let same = same_strategy
            && is_encoded_as(&before, &problem)
            && bits(&rows_before) == bits(&self.rows)
            && self
                .trials
                .iter()
                .map(|trial| trial.index)
                .eq(indices_before);
        if same {
            let runs = runs.into_iter().chain(std::iter::repeat(None));
            let known = self.revised.iter_mut().zip(runs);
            known.for_each(|(revised, run)| revised.run = run);
        } else {
            self.notes_from = self.len();
            let left_out = self
                .trials
                .iter()
                .enumerate()
                .filter(|(_, trial)| trial.left_out);
            self.shown_from = left_out.map(|(number, _)| (number, u32::MAX)).collect();
        }
        self.set_parts(parts);
        self.revisions.push(self.len());
        self.times.push(event.at().unwrap_or(f64::NAN));
        self.events.push(event);
        Ok(())
    }

    /// Converts one trial, whose row is the next one.
    fn revise_trial(
        &mut self,
        number: TrialNumber,
        given: RevisedTrial,
        old: Revised,
        value: Option<f64>,
        flipped: bool,
    ) -> Result<()> {
        let (problem, here) = (self.problem.clone(), self.n_revisions() + 1);
        let is_left_out = given.left_out.is_some();
        let last = |is_here: bool, before: usize| if is_here { here } else { before };
        let problems = Problems {
            start: last(given.start.is_some(), old.problems.start),
            run: last(given.run.is_some(), old.problems.run),
            context: last(given.context.is_some(), old.problems.context),
            fidelity: last(given.has_fidelity, old.problems.fidelity),
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
        let (steps, last) = (problem.curve.map(|curve| curve.steps), trial.curve().last());
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
        let point = match has_run {
            true => given.run.clone(),
            false => given.start.clone(),
        };
        let (width, context_width) = self.widths;
        match (is_left_out, &point) {
            (false, Some(point)) => {
                self.rows.extend(problem.encode(point)?);
                trial.index = point.index().map(|index| index as u32);
                trial.position = problem.position(point);
            }
            (true, _) => {
                self.rows.extend(std::iter::repeat_n(f64::NAN, width));
                trial.index = None;
                trial.position = Position::Outside;
            }
            (false, None) => return Err(mismatch()),
        }
        match &given.context {
            Some(context) => {
                problem.check_context(context)?;
                self.rows.extend(problem.encode_context(context));
            }
            None if is_left_out => self
                .rows
                .extend(std::iter::repeat_n(f64::NAN, context_width)),
            None => return Err(mismatch()),
        }
        trial.left_out = is_left_out;
        trial.value = value
            .filter(|_| !is_left_out)
            .map(|y| problem.direction.oriented(y));
        if given.has_fidelity
            && trial.details.as_ref().and_then(|details| details.fidelity) != fidelity
        {
            trial.details.get_or_insert_default().fidelity = fidelity;
        }
        let run = given.run.filter(|_| has_run).map(Point::unsigned_zeros);
        if let Some(run) = &run {
            trial.reported_mut().run = Some(run.clone());
        }
        if flipped {
            trial.flip_withdrawn();
        }
        if flipped
            && let Some(curve) = trial
                .details
                .as_mut()
                .and_then(|details| details.curve.as_mut())
        {
            curve
                .reports
                .iter_mut()
                .for_each(|report| report.1 = report.1.map(|y| -y));
        }
        self.revised.push(Revised {
            start: given.start.or(old.start),
            context: given.context.or(old.context),
            problems,
            left_out: given.left_out,
            run,
            value: value.filter(|_| is_left_out),
        });
        Ok(())
    }
}

/// The error for points that do not belong to the trials or to the problem.
fn mismatch() -> Error {
    Error::Corrupt("the points of a revision are not those of the trials".to_string())
}

/// Whether strategies see the same problem.
fn is_encoded_as(before: &Problem, after: &Problem) -> bool {
    before.domain() == after.domain()
        && before.context_coordinates() == after.context_coordinates()
        && before.descriptors() == after.descriptors()
        && before.fidelity == after.fidelity
        && before.curve == after.curve
        && before.direction == after.direction
}
