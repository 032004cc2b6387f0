//! The terms of outcomes with bounds.

use ndarray::{Array2, Axis, concatenate};

use crate::error::{Result, Stop};
use crate::gp::GaussianProcess;
use crate::ledger::{TrialNumber, View};
use crate::problem::Objective;
use crate::random::Rng;
use crate::strategy::Query;
use crate::strategy::bayes::acquisitions::bounded_baseline::{
    BoundedPosterior, bounded_baseline_points,
};
use crate::strategy::bayes::acquisitions::formula::{Formula, Scorer};
use crate::strategy::bayes::acquisitions::log_constrained_improvement::{
    BoundedSituation, LogConstrainedImprovement,
};
use crate::strategy::bayes::acquisitions::log_ei::log_improvement;
use crate::strategy::bayes::acquisitions::log_inside::{LogProbabilityInside, ShortfallOfInside};
use crate::strategy::bayes::acquisitions::rule::{Maximand, Situation, TailKind};
use crate::strategy::bayes::model::outcome_model::OutcomeModel;
use crate::strategy::bayes::model::training_set::{Observed, Posterior, TrainingSet};
use crate::strategy::bayes::settings::Settings;
use crate::strategy::bayes::terms::Term;
use crate::strategy::bayes::terms::success::penalty_weight;

/// The least probability that all outcomes lie within their bounds at points that acquisitions without a logarithm
/// choose.
const LEAST: f64 = 0.5;

/// The trials of which any modelled outcome is missing and arriving, and their rows.
pub struct InFlight {
    trials: Vec<TrialNumber>,
    rows: Array2<f64>,
}

impl InFlight {
    /// Returns None if no outcomes are declared.
    pub fn of(training: &TrainingSet, log: View, query: Query) -> Option<Self> {
        if log.log.problem().outcomes.is_empty() {
            return None;
        }
        let mut trials = training.arriving(log.log.view(), query);
        trials.retain(|number| log.log.is_awaited(*number));
        Some(Self {
            rows: training.encode(log, &trials),
            trials,
        })
    }

    /// The rows of the trials of which the objective is not missing.
    pub fn elsewhere(&self, objective: &Posterior) -> Array2<f64> {
        let is_elsewhere = |&i: &usize| !objective.tail.trials.contains(&self.trials[i]);
        let elsewhere: Vec<usize> = (0..self.trials.len()).filter(is_elsewhere).collect();
        self.rows.select(Axis(0), &elsewhere)
    }
}

/// The process that predicts whether an outcome lies within its bounds, and its bounds in the units of the targets.
pub struct BoundedOutcome<'a> {
    gp: Observed<'a>,
    inside: LogProbabilityInside,
}

impl<'a> BoundedOutcome<'a> {
    /// The posteriors of all outcomes with bounds that have values.
    pub fn all(
        models: &'a mut [OutcomeModel],
        log: View,
        query: Query,
        stop: &mut Stop,
    ) -> Result<Vec<Self>> {
        let mut found = Vec::new();
        for model in models {
            found.extend(Self::of(model, log, query, stop)?);
        }
        Ok(found)
    }

    /// The posterior of an outcome, if it has bounds and values.
    pub fn of(
        model: &'a mut OutcomeModel,
        log: View,
        query: Query,
        stop: &mut Stop,
    ) -> Result<Option<Self>> {
        let log = model.view(log.log);
        match model.bounds {
            Some(bounds) if log.n_observed() > 0 => {
                let found = model.training.inside(bounds, log, query, stop)?;
                Ok(found.map(|(gp, inside)| Self { gp, inside }))
            }
            _ => Ok(None),
        }
    }

    /// The posteriors given the observed rows, with the bounds.
    pub fn posteriors<'b>(bounded: &'b [Self]) -> Vec<BoundedPosterior<'b>> {
        let posterior = |outcome: &'b Self| BoundedPosterior {
            gp: &outcome.gp,
            low: outcome.inside.low,
            high: outcome.inside.high,
        };
        bounded.iter().map(posterior).collect()
    }

    /// The tail of the objective: the baseline points, the points where only other outcomes are missing, and the points
    /// where the objective is missing. If no point within all bounds is known, there are no baseline points.
    pub fn tail(
        bounded: &[Self],
        objective: &Posterior,
        in_flight: &InFlight,
        (log, query): (View, Query),
    ) -> Result<TailKind> {
        let gp = &*objective.gp;
        let bounds = Self::posteriors(bounded);
        let baseline = match knows_feasible(log) {
            true => bounded_baseline_points(gp, &objective.unranked, &bounds, query)?,
            false => Array2::zeros((0, gp.kernel().width())),
        };
        let baseline = concatenate![Axis(0), baseline, in_flight.elsewhere(objective)];
        Ok(TailKind::Noiseless { baseline })
    }

    /// Conditions the posteriors on noiseless rows at these points.
    pub fn situations(
        bounded: Vec<Self>,
        points: &Array2<f64>,
    ) -> Result<Vec<BoundedSituation<'a>>> {
        let situation = |outcome: Self| {
            let LogProbabilityInside { low, high } = outcome.inside;
            Ok(BoundedSituation {
                gp: outcome.gp.condition(points.view())?,
                low,
                high,
            })
        };
        bounded.into_iter().map(situation).collect()
    }

    /// The acquisition within all bounds, averaged over n fantasies of pending trials. Before a point within all bounds is
    /// known, it is the probability that a point is the first one.
    pub fn maximand(
        bounded: Vec<Self>,
        situation: Situation,
        n: usize,
        log: View,
        rng: &mut Rng,
    ) -> Result<Maximand<'a>> {
        let bounds = Self::situations(bounded, &situation.gp.tail().to_owned())?;
        let formula = match knows_feasible(log) {
            true => LogConstrainedImprovement::draw(situation, bounds, n, rng)?,
            false => LogConstrainedImprovement::draw_first_inside(bounds, n, situation.query, rng)?,
        };
        Ok(Maximand::Formula(Box::new(formula)))
    }

    /// The terms that the outcomes add to an acquisition.
    pub fn terms(
        bounded: Vec<Self>,
        settings: &Settings,
        gp: &GaussianProcess,
        nu: f64,
    ) -> Vec<BoundTerm<'a>> {
        if !settings.maximizes_logarithm() {
            return Self::at_least(bounded, LEAST, gp, nu);
        }
        Self::log_probabilities(bounded)
    }

    /// The terms log P(within the bounds).
    pub fn log_probabilities(bounded: Vec<Self>) -> Vec<BoundTerm<'a>> {
        let term = |outcome: Self| BoundTerm {
            gp: outcome.gp,
            formula: Box::new(outcome.inside),
        };
        bounded.into_iter().map(term).collect()
    }

    /// The terms that keep a search for the largest bound on f where every outcome lies within its bounds with this
    /// probability. `gp` is the process of f.
    pub fn at_least(
        bounded: Vec<Self>,
        probability: f64,
        gp: &GaussianProcess,
        nu: f64,
    ) -> Vec<BoundTerm<'a>> {
        let term = |outcome: Self| BoundTerm {
            gp: outcome.gp,
            formula: Box::new(ShortfallOfInside {
                bounds: outcome.inside,
                least_probability: probability,
                weight: penalty_weight(gp, nu),
            }),
        };
        bounded.into_iter().map(term).collect()
    }
}

/// A term that an outcome with bounds adds to an acquisition.
pub struct BoundTerm<'a> {
    gp: Observed<'a>,
    formula: Box<dyn Formula>,
}

impl BoundTerm<'_> {
    /// The term as an objective.
    pub fn scorer<'b>(&'b self, context: &'b [f64]) -> Box<dyn Objective + 'b> {
        let gp: &GaussianProcess = &self.gp;
        Box::new(Scorer::new(gp, self.formula.as_ref(), context))
    }
}

impl Term for BoundTerm<'_> {
    fn scorer<'b>(&'b mut self, context: &'b [f64]) -> Box<dyn Objective + 'b> {
        BoundTerm::scorer(self, context)
    }

    fn constrains(&self) -> bool {
        true
    }
}

/// For each of these trials: the sum over the outcomes of the expected distance of f from its bounds, in units of the
/// targets. If the outcome is censored or has labels, or if its value is exact, this is the distance of
/// the value.
pub fn expected_violations(
    models: &mut [OutcomeModel],
    numbers: &[TrialNumber],
    (log, query): (View, Query),
    stop: &mut Stop,
) -> Result<Vec<f64>> {
    let mut sums = vec![0.0; numbers.len()];
    for model in models {
        let part = model.view(log.log);
        let (Some(bounds), training) = (model.bounds, &mut model.training) else {
            continue;
        };
        let trusts_values = training.fit().is_some_and(|fit| fit.inside.is_some());
        let rows = training.encode(part, numbers);
        let Some(posterior) = training.posterior(part, query, stop)? else {
            continue;
        };
        let here = |i: usize| posterior.units(&rows.row(i).to_vec());
        let (means, variances) = posterior.gp.predict(rows.view());
        for (i, (mean, variance)) in means.into_iter().zip(variances).enumerate() {
            let (trial, units) = (part.of(numbers[i]), here(i));
            let LogProbabilityInside { low, high } = LogProbabilityInside::of(bounds, units);
            let exact = trusts_values || trial.std() == Some(0.0);
            let (mean, std) = match trial.value().filter(|_| exact) {
                Some(value) => (units.target(value), 0.0),
                None => (mean, variance.sqrt()),
            };
            sums[i] += expected_excess(low - mean, std) + expected_excess(mean - high, std);
        }
    }
    Ok(sums)
}

/// E max(0, g) of a normal g with this mean and standard deviation.
fn expected_excess(mean: f64, std: f64) -> f64 {
    match std > 0.0 && mean.is_finite() {
        true => std * log_improvement(mean / std).0.exp(),
        false => mean.max(0.0),
    }
}

/// Whether a trial is known whose outcomes lie within all bounds.
pub fn knows_feasible(View { log, .. }: View) -> bool {
    (0..log.n_trials()).any(|number| log.is_within_bounds(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::special::normal_quantile;

    #[test]
    fn an_expected_excess_is_the_mean_over_the_normal_distribution() {
        for (mean, std) in [
            (0.3, 0.5),
            (-0.7, 0.4),
            (-2.0, 1.5),
            (1.0, 0.0),
            (-1.0, 0.0),
        ] {
            let n = 200_000;
            let quantile = |i: i32| normal_quantile((f64::from(i) + 0.5) / f64::from(n));
            let sum: f64 = (0..n).map(|i| (mean + std * quantile(i)).max(0.0)).sum();
            let found = expected_excess(mean, std);
            assert!((found - sum / f64::from(n)).abs() < 1e-4, "{mean} {std}");
        }
        assert_eq!(expected_excess(f64::NEG_INFINITY, 1.0), 0.0);
    }
}
