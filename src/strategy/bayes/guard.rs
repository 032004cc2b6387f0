//! The interval in which a further value is expected. A value outside it is marked, because it may be a typing error.
//!
//! Larger values are better. With a fit, a value y is far out if it lies beyond the range of the values so far, and more
//! than K s σ from the mean μ of its prediction, in units of the targets. σ² is the variance of the prediction and of the
//! noise, s ≥ 1 corrects σ by the prediction errors of the earlier values ([`Predictive`]), and K depends on y:
//!
//! | y | K if y is worse | K if y is better |
//! |---|---|---|
//! | is beyond the range | 3.5 | 8 |
//! | is also less than a fifth of the smallest of the values, which have one sign | 2 | 4 |
//! | also has the other sign | 2 | 2.5 |
//!
//! In a front, optimizers also look for points where one objective is bad, so K of a better value holds on both sides.
//!
//! A better value lies beyond the range if it exceeds the range by a fiftieth of its width, because optimizers end with
//! many values that are a little better. K is multiplied by 1 + 4/n for n values. Better values need a larger K, because
//! optimizers look for them. A smaller K suffices for errors that seldom look like a value: a decimal point or a sign.
//! Without a fit, only the range is used, and it is extended by four times its width on each side. A single value that
//! is marked does not extend the range; several do, because they are seldom all wrong. Beside a single one, a value
//! outside the extended range is far out, too, unless the model predicts such values with little uncertainty.
//!
//! `benchmarks/typos.py` measures these numbers. No decision reads the interval.
//!
//! [`Predictive`]: crate::strategy::bayes::model::training_set::Predictive

use std::ops::Range;

use crate::error::Result;
use crate::ledger::View;
use crate::random::Call;
use crate::strategy::Query;
use crate::strategy::bayes::BayesOpt;
use crate::strategy::bayes::model::fit_purpose::FitPurpose;
use crate::strategy::bayes::model::training_set::{Predictive, TrainingSet};
use crate::strategy::model_based::Further;

/// The number of values without marks from which on further values are judged by the range, and by the model.
const MIN_VALUES: usize = 8;
const MIN_MODELLED: usize = 16;

/// K of a worse and of a better value.
const WORSE: f64 = 3.5;
const BETTER: f64 = 8.0;

/// The share of the smallest value, and K of a worse and of a better value that is smaller than this share.
const SMALL: f64 = 0.2;
const WORSE_SMALL: f64 = 2.0;
const BETTER_SMALL: f64 = 4.0;

/// K of a better value with the other sign.
const BETTER_SIGN: f64 = 2.5;

/// By this share of its width, the range is extended on the side of better values.
const ABOVE: f64 = 0.02;

/// K is multiplied by 1 + `FEW`/n.
const FEW: f64 = 4.0;

/// Without a fit, the range is extended by this multiple of its width on each side.
const EXTENDED: f64 = 4.0;

impl BayesOpt {
    /// The interval in which a further value is expected; see
    /// [`ModelBased::expected`](crate::strategy::model_based::ModelBased::expected).
    pub(super) fn expected_interval(
        &mut self,
        log: View,
        further: Further,
        query: Query,
        fits: bool,
        call: &mut Call,
    ) -> Result<Option<(f64, f64)>> {
        let Self {
            objective,
            others,
            failures,
            columns,
            ..
        } = self;
        let log = log.log;
        let position = (!log.problem().outcomes.is_empty()).then_some(further.outcome);
        let is_objective = objective.outcome == position;
        let model = match is_objective {
            true => Some(objective),
            false => others.iter_mut().find(|it| it.outcome == position),
        };
        let Some(model) = model else {
            return Ok(None);
        };
        let view = model.view(log);
        let Some(seen) = seen(&model.training, view, &columns.contexts, further) else {
            return Ok(None);
        };
        let predictive = match seen.n >= MIN_MODELLED {
            true => {
                if fits {
                    let failures = failures.as_mut().filter(|_| is_objective);
                    model.fit_for(FitPurpose::Predict, columns, failures, log, query, call)?;
                }
                model.training.predictive(view, further, fits, call.stop)?
            }
            false => None,
        };
        let extended = seen.extended();
        let (mut low, mut high) = extended;
        if let Some(found) = predictive {
            let is_explored = log
                .problem()
                .front()
                .is_some_and(|it| it.contains(&further.outcome));
            (low, high) = seen.interval(&found, is_explored);
            // Marked values that the model has seen make its intervals wide, unless it predicts values like them with
            // little uncertainty, because they were right.
            let [mean, above] = [0.0, 1.0].map(|k| found.units.value(found.mean + k * found.std));
            let is_like_others = extended.0 <= mean && mean <= extended.1;
            if seen.n_marks == 1 && (is_like_others || above - mean > extended.1 - extended.0) {
                (low, high) = (low.max(extended.0), high.min(extended.1));
            }
        }
        let direction = log.problem().direction_of(position);
        let (low, high) = (direction.oriented(low), direction.oriented(high));
        let finite = |bound: f64| bound.clamp(-f64::MAX, f64::MAX);
        let found = (finite(low.min(high)), finite(low.max(high)));
        Ok((!found.0.is_nan() && !found.1.is_nan()).then_some(found))
    }
}

/// The range of the values so far.
struct Seen {
    n: usize,
    n_marks: usize,
    least: f64,
    most: f64,
}

impl Seen {
    /// The interval outside which a value is far out, given its prediction. `is_explored`: whether suggestions also lead
    /// to bad values.
    fn interval(&self, predictive: &Predictive, is_explored: bool) -> (f64, f64) {
        let (worse, worse_small) = match is_explored {
            true => (BETTER, BETTER_SMALL),
            false => (WORSE, WORSE_SMALL),
        };
        let Self { n, least, most, .. } = *self;
        let factor = predictive.std * (1.0 + FEW / n as f64);
        let at = |k: f64| predictive.units.value(predictive.mean + k * factor);
        let (mut low, mut high) = (least.min(at(-worse)), most.max(at(BETTER)));
        if least > 0.0 {
            low = low.max((SMALL * least).min(at(-worse_small)));
        }
        if most < 0.0 {
            let small = (SMALL * most).max(at(BETTER_SMALL));
            let sign = at(BETTER_SIGN).max(0.0);
            high = high.min(small).min(sign);
        }
        (low, high.max(most + ABOVE * (most - least)))
    }

    /// The extended range. Values of one sign may have a long tail, so the range is also extended by its width on a
    /// logarithmic scale.
    fn extended(&self) -> (f64, f64) {
        let Self { least, most, .. } = *self;
        let by = EXTENDED * (most - least);
        let (low, high) = (least - by, most + by);
        match (least > 0.0, most < 0.0) {
            (true, _) => (low, high.max(most * (most / least))),
            (_, true) => (low.min(least * (least / most)), high),
            _ => (low, high),
        }
    }
}

/// The range of the other values in the context of a further value, if there are enough without marks that are not all equal.
fn seen(
    training: &TrainingSet,
    view: View,
    contexts: &[Range<usize>],
    further: Further,
) -> Option<Seen> {
    let mut seen = Seen {
        n: 0,
        n_marks: 0,
        least: f64::INFINITY,
        most: f64::NEG_INFINITY,
    };
    let mut marked = (f64::INFINITY, f64::NEG_INFINITY);
    for (&number, value) in training.fold.rows.iter().zip(training.known_values()) {
        let other = view.row(number);
        let is_alike = contexts
            .iter()
            .all(|it| other[it.clone()] == further.row[it.clone()]);
        let is_other = further.replaces != Some(number);
        let mark = view.of(number).mark();
        if let (true, false, Some(_)) = (is_alike, is_other, mark) {
            seen.n_marks += 1; // the fit has seen the value that is replaced
        }
        if let (true, Some(value)) = (is_alike && is_other, value) {
            match mark {
                Some(_) => {
                    seen.n_marks += 1;
                    marked = (marked.0.min(*value), marked.1.max(*value));
                }
                None => {
                    seen.n += 1;
                    seen.least = seen.least.min(*value);
                    seen.most = seen.most.max(*value);
                }
            }
        }
    }
    if seen.n_marks > 1 {
        seen.least = seen.least.min(marked.0);
        seen.most = seen.most.max(marked.1);
    }
    (seen.n >= MIN_VALUES && seen.least < seen.most).then_some(seen)
}
