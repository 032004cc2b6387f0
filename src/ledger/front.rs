//! The front of several objectives: the trials that no other trial dominates, and their hypervolume.
//!
//! Shapes: points (n, M) for n trials and M objectives, oriented so that larger values are better; reference (M,).

use ndarray::Array2;

use crate::ledger::Ledger;
use crate::ledger::event::TrialNumber;
use crate::numerics::hypervolume::{hypervolume, non_dominated};
use crate::problem::fidelity::TOLERANCE;

/// The distance of a computed reference from the worst value of the front, in units of a range of values.
pub const BELOW_NADIR: f64 = 0.1;

impl Ledger {
    /// The trials that no other trial dominates, by number; empty without a front. Trials with equal values do not
    /// dominate each other. A trial counts if all its objectives have values, its outcomes with bounds have values within
    /// their bounds, it was run inside the domain and at the highest fidelity observed, and it is not excluded.
    pub fn pareto(&self, excluded: &[TrialNumber]) -> Vec<TrialNumber> {
        let Some(front) = self.problem.front() else {
            return Vec::new();
        };
        let first = self.outcome(front[0]);
        let counts = |number: &TrialNumber| {
            !excluded.contains(number)
                && !first.of(*number).is_outside()
                && self.is_within_bounds(*number)
        };
        let numbers = (0..self.trials.len()).filter(counts);
        let found = numbers.filter_map(|number| {
            let point: Option<Vec<f64>> = self.oriented(number, &front).collect();
            Some((number, first.of(number).z(), point?))
        });
        let found: Vec<(TrialNumber, f64, Vec<f64>)> = found.collect();
        let highest = found.iter().map(|(_, z, _)| *z).fold(0.0, f64::max);
        let found: Vec<_> = found
            .iter()
            .filter(|(_, z, _)| *z >= highest - TOLERANCE)
            .collect();
        let points = Array2::from_shape_fn((found.len(), front.len()), |(i, m)| found[i].2[m]);
        let kept = non_dominated(points.view()).into_iter();
        kept.map(|i| found[i].0).collect()
    }

    /// The hypervolume of some trials above a reference, which has a value for each objective. Both are in the user's
    /// units. Trials without a value of an objective do not count.
    pub fn hypervolume(&self, numbers: &[TrialNumber], reference: &[f64]) -> f64 {
        let front = self.problem.front().unwrap_or_default();
        if reference.len() != front.len() || front.is_empty() {
            return 0.0;
        }
        let points = numbers
            .iter()
            .filter_map(|&number| self.oriented(number, &front).collect::<Option<Vec<f64>>>());
        let points: Vec<Vec<f64>> = points.collect();
        let points = Array2::from_shape_fn((points.len(), front.len()), |(i, m)| points[i][m]);
        let directions = front.iter().map(|&i| self.problem.outcomes[i].direction());
        let oriented = directions
            .zip(reference)
            .map(|(direction, r)| direction.oriented(*r));
        hypervolume(points.view(), &oriented.collect::<Vec<f64>>())
    }

    /// The reference of each objective for the hypervolume of these trials, which form a front. Without a declared
    /// reference, it is the worst value of these trials, moved by a tenth of their range. If their values are equal, the
    /// range of all observed values of the objective is used instead, or 1 if these are equal, too. It is None if it was
    /// not declared and there are no trials.
    pub fn reference(&self, numbers: &[TrialNumber]) -> Vec<Option<f64>> {
        let front = self.problem.front().unwrap_or_default();
        let of = |outcome: usize| {
            let declared = &self.problem.outcomes[outcome];
            let values = || {
                let of_front = numbers.iter();
                of_front.filter_map(|&number| self.outcome(outcome).of(number).value())
            };
            declared.reference().or_else(|| {
                let worst = values().reduce(f64::min)?;
                let observed = self.outcome(outcome).trials().filter_map(|it| it.value());
                let ranges = [range_of(values()), range_of(observed)];
                let range = ranges.into_iter().find(|range| *range > 0.0).unwrap_or(1.0);
                Some(declared.direction().oriented(worst - BELOW_NADIR * range))
            })
        };
        front.into_iter().map(of).collect()
    }

    /// The oriented values of the objectives of a trial.
    fn oriented<'a>(
        &'a self,
        number: TrialNumber,
        front: &'a [usize],
    ) -> impl Iterator<Item = Option<f64>> + 'a {
        front
            .iter()
            .map(move |&outcome| self.outcome(outcome).of(number).value())
    }
}

/// The difference of the largest and the smallest value.
fn range_of(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let (low, high) = (values.clone().reduce(f64::min), values.reduce(f64::max));
    low.zip(high).map_or(0.0, |(low, high)| high - low)
}
