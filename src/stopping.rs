//! Rules that end evaluations before the last step of their learning curves.
//!
//! Values are oriented so that larger values are better. The value of a trial at a step is the value that the declared
//! curve has after this step: the last reported value, or the best reported value.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::ledger::{Action, Failure, State, TrialNumber, View, Viewed};
use crate::numerics::order::median;
use crate::problem::{Curve, CurveValue};
use crate::strategy::checks::check;
use crate::strategy::model_based::Forecast;

/// A trial ends if less than this share of its expected improvement per step is left. With a share of 1, almost every
/// trial would end by chance, because the improvement is examined after each step.
const SHARE: f64 = 1.0 / 3.0;

/// The gaps and the range of finished curves are known from this number of them on.
const MIN_CURVES: usize = 5;

/// A curve has diverged if this number of its last reports are NaN.
const MIN_MISSING: usize = 3;

/// A curve has diverged only if the number of NaN at its end exceeds this multiple of the longest gap of a curve. A curve
/// may have NaN at steps without a value, such as epochs without a validation.
const MULTIPLE_OF_GAP: usize = 4;

/// A value is implausible if it is worse than all finished curves by more than this multiple of their range, and of
/// their largest absolute value.
const MULTIPLE_OF_RANGE: f64 = 100.0;

/// The kind of error of a trial whose curve diverged.
pub(crate) const DIVERGED: &str = "CurveDiverged";

/// A rule.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", deny_unknown_fields)]
pub enum Stopping {
    /// Asynchronous successive halving in the variant that stops trials (Li et al. 2020, section 3.2; Syne Tune calls
    /// the variant "stopping"). At each of the rungs `min_step`, `min_step`·η, `min_step`·η², …, a trial continues if
    /// its value is among the max(1, ⌊n/η⌋) best of the n values at this rung so far.
    #[serde(rename = "ASHA")]
    Halving {
        /// η.
        reduction: f64,
        /// The first rung.
        min_step: u64,
    },
    /// A trial is stopped if its best value so far is below the median of the values that the trials with a result had at
    /// the same step (Golovin et al. 2017, section 3.2.1, with values in place of running averages).
    #[serde(rename = "MedianStopping")]
    Median {
        /// Trials are stopped only if at least this number of trials has a result and a value at the step.
        min_trials: usize,
        /// The first step at which a trial may be stopped.
        min_step: u64,
    },
    /// A trial is stopped if its curve has made it much less promising, according to the model of the strategy. Let t
    /// of the T steps be done. The trial is stopped if EI/(T − t)^power given its curve is less than a third of
    /// EI/T^power without its curve. Trials are not stopped before a model of curves has been fitted, and not after
    /// T/2, where little would be saved, and complete curves show how curves end.
    #[serde(rename = "ModelStopping")]
    Model {
        /// Expected improvements are divided by a number of steps to this power.
        power: f64,
    },
}

impl Stopping {
    /// The rules with their defaults, which the classes of the Python package have too.
    pub fn defaults() -> [Self; 3] {
        [
            Stopping::Halving {
                reduction: 3.0,
                min_step: 1,
            },
            Stopping::Median {
                min_trials: 5,
                min_step: 1,
            },
            Stopping::Model { power: 1.0 },
        ]
    }

    /// Reads a rule from JSON.
    pub fn from_json(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|error| Error::InvalidDefinition {
            got: text.to_string(),
            expected: error.to_string(),
        })
    }

    /// Returns an error if a field is out of its range.
    pub(crate) fn check(&self) -> Result<()> {
        let check_step = |first| {
            let expected = "give an integer of 1 or above";
            check(first >= 1, "stopping.min_step", first, expected)
        };
        match *self {
            Stopping::Halving {
                reduction,
                min_step,
            } => {
                // If the reduction were closer to 1, the number of rungs would not be bounded.
                let expected = "give a number of 1.01 or above";
                check(reduction >= 1.01, "stopping.reduction", reduction, expected)?;
                check_step(min_step)
            }
            Stopping::Median { min_step, .. } => check_step(min_step),
            Stopping::Model { power } => {
                let holds = (0.0..=10.0).contains(&power);
                check(holds, "stopping.power", power, "give a number from 0 to 10")
            }
        }
    }

    /// Whether the rule needs the forecast of a trial after its last report.
    pub(crate) fn needs_forecast(&self, log: View, number: TrialNumber) -> Result<bool> {
        let running = running(log, number)?;
        let is_early = running.is_some_and(|(curve, step)| step <= curve.steps / 2);
        Ok(is_early && matches!(self, Stopping::Model { .. }))
    }

    /// Whether the evaluation of a pending trial should end after its last report. `forecast` is the forecast of the trial,
    /// if the rule needs it.
    pub(crate) fn stops(
        &self,
        log: View,
        number: TrialNumber,
        forecast: Option<Forecast>,
    ) -> Result<bool> {
        let Some((declared, step)) = running(log, number)? else {
            return Ok(false);
        };
        let trial = log.trial(number)?;
        Ok(match *self {
            Stopping::Halving {
                reduction,
                min_step,
            } => {
                let before = trial.curve().rev().nth(1).map_or(0, |report| report.0);
                let Some(rung) = last_rung(before, step, reduction, min_step) else {
                    return Ok(false);
                };
                let mut values: Vec<f64> = log
                    .trials()
                    .filter(|other| other.state() != State::Withdrawn)
                    .filter(|other| other.curve().next_back().is_some_and(|last| last.0 >= rung))
                    .map(|other| value_at(other, rung, declared.value))
                    .collect();
                values.sort_unstable_by(|a, b| b.total_cmp(a));
                let n_kept = (values.len() as f64 / reduction).floor().max(1.0) as usize;
                value_at(trial, rung, declared.value) < values[n_kept - 1]
            }
            Stopping::Median {
                min_trials,
                min_step,
            } => {
                let ended = log.trials().filter(|other| {
                    other.state() == State::Observed
                        && other.curve().next().is_some_and(|first| first.0 <= step)
                });
                let values: Vec<f64> = ended
                    .map(|other| value_at(other, step, declared.value))
                    .collect();
                if u64::from(step) < min_step || values.len() < min_trials.max(1) {
                    return Ok(false);
                }
                value_at(trial, step, CurveValue::Best) < median(&values)
            }
            Stopping::Model { power } => {
                let left = f64::from(declared.steps - step) / f64::from(declared.steps);
                forecast.is_some_and(|forecast| {
                    let lost = forecast.log_improvement - forecast.log_improvement_before;
                    lost < SHARE.ln() + power * left.ln()
                })
            }
        })
    }
}

/// The failure of a running trial whose curve has diverged: its last reports are NaN or implausible. `None` for other
/// trials, and if the value of a trial is the best value of its curve, which later reports do not make worse.
pub(crate) fn divergence(log: View, number: TrialNumber) -> Result<Option<Action>> {
    let trial = log.trial(number)?;
    let declared = running(log, number)?.map(|(curve, _)| curve.value);
    if declared != Some(CurveValue::Last) {
        return Ok(None);
    }
    let finished = || {
        let observed = log
            .trials()
            .filter(|other| other.state() == State::Observed);
        observed.filter(|other| other.curve().any(|report| report.1.is_some()))
    };
    let reports = trial.curve();
    let mut latest = reports.clone().rev();
    let n_missing = latest
        .clone()
        .take_while(|report| report.1.is_none())
        .count();
    let message = if n_missing >= MIN_MISSING {
        let had_values = n_missing < reports.len() || finished().nth(MIN_CURVES - 1).is_some();
        let gap = finished().chain([trial]).map(longest_gap).max();
        let has_diverged = had_values && Some(n_missing) > gap.map(|gap| MULTIPLE_OF_GAP * gap);
        has_diverged.then(|| format!("the last {n_missing} reports are NaN"))
    } else if let (Some((last, Some(other))), Some((before, Some(one)))) =
        (latest.next(), latest.next())
    {
        let value = one.max(other);
        let is_below_of = |bound: Option<f64>| bound.map(|bound| value < bound);
        // The bound of all curves is below the bound of the first curves, which is computed without reading all curves.
        let is_below = is_below_of(lowest_plausible(finished().take(MIN_CURVES))) != Some(false)
            && is_below_of(lowest_plausible(finished())) == Some(true);
        is_below.then(|| {
            format!(
                "the reports at steps {before} and {last} are far worse than all finished curves"
            )
        })
    } else {
        None
    };
    Ok(message.map(|message| Action::Fail {
        outcome: None,
        number,
        error: Some(Failure {
            kind: DIVERGED.to_string(),
            message,
            traceback: None,
        }),
        duration: None,
        attrs: None,
    }))
}

/// The largest number of consecutive NaN in a curve that a value follows.
fn longest_gap(trial: Viewed) -> usize {
    let (mut longest, mut gap) = (0, 0);
    for report in trial.curve() {
        match report.1 {
            None => gap += 1,
            Some(_) => (longest, gap) = (longest.max(gap), 0),
        }
    }
    longest
}

/// The lowest value that is plausible, given the finished curves. `None` if there are too few, or if all of their values
/// are 0: other values then have no scale.
fn lowest_plausible<'a>(finished: impl Iterator<Item = Viewed<'a>>) -> Option<f64> {
    let (mut low, mut high, mut n) = (f64::INFINITY, f64::NEG_INFINITY, 0);
    for trial in finished {
        for value in trial.curve().filter_map(|report| report.1) {
            (low, high) = (low.min(value), high.max(value));
        }
        n += 1;
    }
    let scale = (high - low).max(low.abs()).max(high.abs());
    (n >= MIN_CURVES && scale > 0.0).then_some(low - MULTIPLE_OF_RANGE * scale)
}

/// The declared curve and the last reported step of a running trial. `None` if the curve has reached its last step.
fn running(log: View, number: TrialNumber) -> Result<Option<(Curve, u32)>> {
    let trial = log.trial(number)?;
    let last = log.curve().zip(trial.curve().next_back());
    let found = last.map(|(curve, report)| (curve, report.0));
    Ok(found.filter(|(curve, step)| trial.state() == State::Pending && *step < curve.steps))
}

/// The last of the rungs first, first·η, first·η², … that is above `before` and at most `step`.
fn last_rung(before: u32, step: u32, reduction: f64, first: u64) -> Option<u32> {
    let mut rung = first as f64;
    let mut found = None;
    while rung.round() <= f64::from(step) {
        if rung.round() > f64::from(before) {
            found = Some(rung.round() as u32);
        }
        rung *= reduction;
    }
    found
}

/// The value of a trial after a step, or −∞ if the trial did not report a number.
fn value_at(trial: Viewed, step: u32, value: CurveValue) -> f64 {
    let known = trial
        .curve()
        .take_while(|report| report.0 <= step)
        .filter_map(|report| report.1);
    match value {
        CurveValue::Best => known.fold(f64::NEG_INFINITY, f64::max),
        CurveValue::Last => known.last().unwrap_or(f64::NEG_INFINITY),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ledger::{Action, Ledger, Observation};
    use crate::problem::{Clock, Problem};

    fn log(value: CurveValue) -> Ledger {
        let cube = Problem::unit_cube(1, 0, Clock::Iterations).unwrap();
        let curve = Some(Curve { steps: 27, value });
        Ledger::new(Arc::new(Problem { curve, ..cube }))
    }

    fn act(log: &mut Ledger, action: Action) {
        if let Some(event) = log.validate(action, 0.0, None).unwrap() {
            log.push(event).unwrap();
        }
    }

    /// Adds a pending trial with a curve that starts at step 1.
    fn add(log: &mut Ledger, values: &[f64]) -> TrialNumber {
        let number = log.n_trials();
        act(
            log,
            Action::add(
                crate::problem::Point::Numbers(vec![Some(0.5)]),
                vec![],
                None,
                None,
            ),
        );
        for (step, &value) in (1..).zip(values) {
            act(
                log,
                Action::Report {
                    number,
                    step,
                    value,
                    attempt: 0,
                },
            );
        }
        number
    }

    #[test]
    fn halving_keeps_the_best_third_at_each_rung() {
        let rule =
            Stopping::from_json(r#"{"kind": "ASHA", "reduction": 3, "min_step": 1}"#).unwrap();
        let mut log = log(CurveValue::Last);
        let mut stopped = Vec::new();
        for value in [1.0, 0.0, 2.0, 1.5, 1.9, 1.95, 1.96] {
            let number = add(&mut log, &[value]);
            stopped.push(rule.stops(log.view(), number, None).unwrap());
        }
        assert_eq!(stopped, [false, true, false, true, true, false, false]);
        // Trials are not stopped between rungs, and NaN is the worst value at a rung.
        let number = add(&mut log, &[3.0, -9.0]);
        assert!(!rule.stops(log.view(), number, None).unwrap());
        let number = add(&mut log, &[f64::NAN]);
        assert!(rule.stops(log.view(), number, None).unwrap());
    }

    #[test]
    fn fields_outside_their_ranges_are_refused() {
        let name = |text: &str| match Stopping::from_json(text).unwrap().check() {
            Err(Error::InvalidSetting { name, .. }) => name,
            _ => "",
        };
        for (text, wrong) in [
            (r#"{"kind": "ASHA", "reduction": 1.01, "min_step": 1}"#, ""),
            (
                r#"{"kind": "ASHA", "reduction": 1.009, "min_step": 1}"#,
                "stopping.reduction",
            ),
            (
                r#"{"kind": "ASHA", "reduction": 3, "min_step": 0}"#,
                "stopping.min_step",
            ),
            (
                r#"{"kind": "MedianStopping", "min_trials": 0, "min_step": 1}"#,
                "",
            ),
            (
                r#"{"kind": "MedianStopping", "min_trials": 5, "min_step": 0}"#,
                "stopping.min_step",
            ),
            (r#"{"kind": "ModelStopping", "power": 10}"#, ""),
            (
                r#"{"kind": "ModelStopping", "power": 10.1}"#,
                "stopping.power",
            ),
            (
                r#"{"kind": "ModelStopping", "power": -0.1}"#,
                "stopping.power",
            ),
        ] {
            assert_eq!(name(text), wrong, "{text}");
        }
    }

    #[test]
    fn rungs_are_powers_of_the_reduction() {
        assert_eq!(last_rung(0, 1, 3.0, 1), Some(1));
        assert_eq!(last_rung(1, 2, 3.0, 1), None);
        assert_eq!(last_rung(2, 10, 3.0, 1), Some(9));
        assert_eq!(last_rung(0, 27, 3.0, 2), Some(18));
    }

    #[test]
    fn the_median_of_ended_trials_is_the_bound() {
        let text = r#"{"kind": "MedianStopping", "min_trials": 3, "min_step": 2}"#;
        let rule = Stopping::from_json(text).unwrap();
        let mut log = log(CurveValue::Last);
        for value in [1.0, 2.0, 3.0] {
            let early = add(&mut log, &[0.0, 0.0]);
            assert!(!rule.stops(log.view(), early, None).unwrap());
            let number = add(&mut log, &[0.0, value]);
            let (observation, again) =
                (Observation::new(value, None), crate::ledger::Again::Refuse);
            act(
                &mut log,
                Action::Observe {
                    number,
                    observation,
                    again,
                },
            );
        }
        for (values, stops) in [
            (&[0.0, 1.9][..], true),
            (&[0.0, 2.0], false),
            (&[2.5, 1.0], false),
            (&[0.0], false),
        ] {
            let number = add(&mut log, values);
            assert_eq!(
                rule.stops(log.view(), number, None).unwrap(),
                stops,
                "{values:?}"
            );
        }
    }

    #[test]
    fn a_curve_diverges_only_on_the_scale_of_finished_curves() {
        let diverged = |finished: &[f64], running: &[f64]| {
            let mut log = log(CurveValue::Last);
            for &value in finished {
                let number = add(&mut log, &[value; 27]);
                let (observation, again) =
                    (Observation::new(value, None), crate::ledger::Again::Refuse);
                act(
                    &mut log,
                    Action::Observe {
                        number,
                        observation,
                        again,
                    },
                );
            }
            let number = add(&mut log, running);
            divergence(log.view(), number).unwrap().is_some()
        };
        for zero in [0.0, -0.0] {
            assert!(!diverged(&[zero; 5], &[-0.001; 4]));
            assert!(!diverged(&[zero; 7], &[-1e300; 4]));
        }
        // Other constants have a scale, and so have zeros with one other curve, which may come last.
        for (value, worse, plausible) in [(1.0, -100.0, -98.0), (-1e-9, -2e-7, -1e-7)] {
            assert!(diverged(&[value; 5], &[worse; 2]));
            assert!(!diverged(&[value; 5], &[plausible; 2]));
        }
        assert!(diverged(&[0.0, 0.0, 0.0, 0.0, 0.0, 1.0], &[-101.0; 2]));
        assert!(!diverged(&[0.0, 0.0, 0.0, 0.0, 0.0, 1.0], &[-99.0; 2]));
        assert!(!diverged(&[1.0; 4], &[-1e9; 2]));
    }

    #[test]
    fn only_pending_trials_before_the_last_step_are_stopped() {
        let rule = Stopping::Halving {
            reduction: 2.0,
            min_step: 27,
        };
        let mut log = log(CurveValue::Best);
        for value in [3.0, 2.0, 1.0] {
            let number = add(&mut log, &[value; 27]);
            assert!(!rule.stops(log.view(), number, None).unwrap());
        }
    }
}
