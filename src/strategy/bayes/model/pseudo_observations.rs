//! Pseudo-observations of the values of running and stopped trials, from their learning curves.
//!
//! The model of curves is fitted to the curves of observed trials, and fitted again after the number of these curves
//! has grown by an eighth. The model depends only on the log, so notes do not store it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::curves::{CurveModel, PseudoObservation};
use crate::error::Result;
use crate::ledger::{State, TrialNumber, View, Viewed};
use crate::problem::{Curve, CurveValue};

/// The model of curves, and its pseudo-observations of stopped trials.
#[derive(Default)]
pub struct PseudoObservations {
    /// The number of curves to which the model was fitted, and the number of changes of ended trials at the fit.
    fitted: (usize, usize),
    model: Option<CurveModel>,
    /// For each stopped trial, the attempt and the number of reports of its curve, and its pseudo-observation.
    kept: BTreeMap<TrialNumber, ((u32, usize), Option<PseudoObservation>)>,
}

impl PseudoObservations {
    /// Refits the model to the curves of the `ended` trials if this is due, and updates the pseudo-observations of
    /// the stopped trials among the `rows`. `n_revisions` counts changes of ended trials.
    pub fn catch_up(
        &mut self,
        log: View,
        ended: &[TrialNumber],
        n_revisions: usize,
        rows: &[TrialNumber],
    ) -> Result<()> {
        let Some(declared) = log.curve() else {
            return Ok(());
        };
        let with_curve = ended.iter().map(|&number| log.of(number));
        let with_curve =
            with_curve.filter(|trial| trial.value().is_some() && trial.curve().len() > 0);
        let count = fitted_count(with_curve.clone().count());
        if self.fitted != (count, n_revisions) {
            let curves: Vec<_> = with_curve
                .take(count)
                .map(|trial| complete_curve(trial, declared))
                .collect();
            let mut go_on = || ControlFlow::Continue(());
            self.model = CurveModel::fit(&curves, declared.steps, &mut go_on)?;
            self.fitted = (count, n_revisions);
            self.kept.clear();
        }
        for &number in rows {
            let trial = log.of(number);
            if trial.state() == State::Stopped {
                let length = (trial.attempt(), trial.curve().len());
                if self.kept.get(&number).is_none_or(|kept| kept.0 != length) {
                    self.kept.insert(number, (length, self.of(log, number)));
                }
            }
        }
        Ok(())
    }

    /// Whether there is a model.
    pub fn is_fitted(&self) -> bool {
        self.model.is_some()
    }

    /// The pseudo-observation of a stopped trial that is a row, or `None` if its curve lacks usable reports.
    pub fn of_row(&self, number: TrialNumber) -> Option<PseudoObservation> {
        self.kept.get(&number).and_then(|kept| kept.1)
    }

    /// The pseudo-observation of the value of a trial, in units of f, or `None` if its curve lacks usable reports. If
    /// the curve has a report at the last step, the result is this report, without noise.
    pub fn of(&self, log: View, number: TrialNumber) -> Option<PseudoObservation> {
        let declared = log.curve()?;
        let curve = finite_curve(log.of(number), declared);
        match curve.last()? {
            &(step, value) if step == declared.steps => Some(PseudoObservation {
                value,
                variance: 0.0,
                noise: 0.0,
            }),
            _ => self.model.as_ref()?.pseudo_observation(&curve),
        }
    }
}

/// The number of curves to which the model is fitted if n curves are known. The number grows in steps of at most n/8.
fn fitted_count(n: usize) -> usize {
    match n.checked_ilog2() {
        Some(log2) if log2 > 3 => n >> (log2 - 3) << (log2 - 3),
        _ => n,
    }
}

/// The reports of a trial that are numbers. If the best value counts, the curve is the running maximum.
fn finite_curve(trial: Viewed, declared: Curve) -> Vec<(u32, f64)> {
    let mut best = f64::NEG_INFINITY;
    let reports = trial.curve();
    reports
        .filter_map(|(step, value)| Some((step, value?)))
        .map(|(step, value)| {
            best = best.max(value);
            match declared.value {
                CurveValue::Last => (step, value),
                CurveValue::Best => (step, best),
            }
        })
        .collect()
}

/// The curve of an observed trial, with its value at the last step.
fn complete_curve(trial: Viewed, declared: Curve) -> Vec<(u32, f64)> {
    let mut curve = finite_curve(trial, declared);
    curve.retain(|(step, _)| *step < declared.steps);
    curve.extend(trial.value().map(|value| (declared.steps, value)));
    curve
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fits_become_rarer_as_curves_become_more() {
        let counts: Vec<usize> = (0..40).map(fitted_count).collect();
        assert_eq!(counts[..17], (0..17).collect::<Vec<_>>());
        assert_eq!(
            (counts[17], counts[19], counts[33], counts[39]),
            (16, 18, 32, 36)
        );
    }
}
