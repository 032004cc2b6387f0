//! The objectives of a front: the baseline points, the reference, and the acquisition.
//!
//! Notation: M is the number of objectives; mu_i and sigma_i are the posterior mean and standard deviation of objective
//! i; r is the reference, in the units of the targets of each objective.

use ndarray::{Array2, ArrayView2, Axis, concatenate};

use crate::error::{Result, Stop};
use crate::ledger::front::BELOW_NADIR;
use crate::ledger::{TrialNumber, View};
use crate::numerics::hypervolume::{contributions, non_dominated};
use crate::problem::Goal;
use crate::random::Rng;
use crate::strategy::Query;
use crate::strategy::bayes::acquisitions::bounded_baseline::log_probabilities_inside;
use crate::strategy::bayes::acquisitions::incumbents::{feasible_rows, is_here};
use crate::strategy::bayes::acquisitions::log_constrained_improvement::{
    BoundedSituation, LogConstrainedImprovement,
};
use crate::strategy::bayes::acquisitions::rule::{Maximand, Situation, TailKind};
use crate::strategy::bayes::model::outcome_model::OutcomeModel;
use crate::strategy::bayes::model::training_set::{Observed, Posterior};
use crate::strategy::bayes::terms::bounds::{BoundedOutcome, InFlight, knows_feasible};

/// The largest number of baseline points.
const MAX_BASELINE: usize = 128;

/// A point with a smaller probability of lying inside all bounds is not a baseline point.
const NEGLIGIBLE: f64 = 0.01;

/// The reference lies below the best value of its objective by at least this share of the range of the values. A
/// reference that no value reaches would make points with large uncertainty the best ones.
const BELOW_BEST: f64 = 0.1;

/// A smaller range, in the units of the targets, counts as 0.
const SMALLEST_RANGE: f64 = 1e-9;

/// A further objective of a front.
pub struct FrontObjective<'a> {
    /// The posterior given the observed rows.
    pub gp: Observed<'a>,
    scale: Scale,
}

/// The values of an objective, in the units of its targets.
#[derive(Clone, Copy)]
struct Scale {
    /// The position of the outcome.
    outcome: usize,
    /// The reference, if it was declared.
    reference: Option<f64>,
    least: f64,
    most: f64,
}

impl Scale {
    fn of(outcome: usize, posterior: &Posterior, (log, query): (View, Query)) -> Self {
        let problem = log.log.problem();
        let units = posterior.units(query.context);
        let reference = match problem.outcomes[outcome].goal {
            Goal::Front(direction, Some(bound)) => Some(units.target(direction.oriented(bound))),
            _ => None,
        };
        let targets = || posterior.targets.values.iter().copied();
        Self {
            outcome,
            reference,
            least: targets().fold(f64::INFINITY, f64::min),
            most: targets().fold(f64::NEG_INFINITY, f64::max),
        }
    }

    /// The reference, given the values of the front. A declared reference that no value reaches is replaced by one that
    /// the best value reaches.
    fn reference(&self, front: impl Iterator<Item = f64>) -> f64 {
        if let Some(reference) = self.reference {
            return reference.min(self.most - BELOW_BEST * (self.most - self.least));
        }
        let least = front.fold(f64::INFINITY, f64::min);
        let nadir = if least.is_finite() { least } else { self.least };
        // The range of all values, because a front that is short at first would stay short with a share of its own range:
        // longer fronts would be worthless.
        let range = self.most - self.least;
        nadir - BELOW_NADIR * if range > SMALLEST_RANGE { range } else { 1.0 }
    }
}

impl<'a> FrontObjective<'a> {
    /// The posterior of an objective, if it has values.
    fn of(
        model: &'a mut OutcomeModel,
        log: View,
        query: Query,
        stop: &mut Stop,
    ) -> Result<Option<Self>> {
        let log = model.view(log.log);
        let Some(outcome) = model.outcome.filter(|_| log.n_observed() > 0) else {
            return Ok(None);
        };
        let posterior = model.training.posterior(log, query, stop)?;
        Ok(posterior.map(|posterior| Self {
            scale: Scale::of(outcome, &posterior, (log, query)),
            gp: posterior.gp,
        }))
    }
}

/// The posteriors of all outcomes with bounds that have values, and of the further objectives of a front.
pub fn bounded_and_objectives<'a>(
    models: &'a mut [OutcomeModel],
    log: View,
    query: Query,
    stop: &mut Stop,
) -> Result<(Vec<BoundedOutcome<'a>>, Vec<FrontObjective<'a>>)> {
    let (mut bounded, mut objectives) = (Vec::new(), Vec::new());
    for model in models {
        match model.bounds {
            Some(_) => bounded.extend(BoundedOutcome::of(model, log, query, stop)?),
            None => objectives.extend(FrontObjective::of(model, log, query, stop)?),
        }
    }
    Ok((bounded, objectives))
}

/// The objectives of a front. The posterior of the first objective is passed to the methods.
pub struct Front<'a> {
    others: Vec<FrontObjective<'a>>,
    /// The mean of each objective at the baseline points (p, M), and the reference.
    pub means: Array2<f64>,
    pub reference: Vec<f64>,
    /// The points of the baseline, and their trials.
    baseline: Array2<f64>,
    pub trials: Vec<TrialNumber>,
}

impl<'a> Front<'a> {
    /// Computes the baseline points and the reference. `first` is the posterior of the first objective.
    ///
    /// A baseline point is a point whose objectives have all been observed in this context, unless another one is better
    /// in all objectives by 2 sigma of both: then it is dominated in nearly every fantasy.
    pub fn new(
        first: &Posterior,
        others: Vec<FrontObjective<'a>>,
        bounded: &[BoundedOutcome],
        (log, query): (View, Query),
    ) -> Result<Self> {
        let gp = &*first.gp;
        let here = is_here(gp, query.context);
        let is_known = |row: usize| {
            let number = first.rows[row];
            let mut outcomes = others.iter().map(|it| it.scale.outcome);
            outcomes.all(|outcome| log.log.value_of(number, outcome).is_some())
        };
        let is_ranked = |row: &usize| here[*row] && !first.unranked.contains(row) && is_known(*row);
        let rows: Vec<usize> = (0..here.len()).filter(is_ranked).collect();
        let rows = match rows.is_empty() {
            true => rows,
            false => feasible_rows(gp, &rows, rows.len(), query)?,
        };
        let points = gp.rows().select(Axis(0), &rows);
        let log_p = log_probabilities_inside(&BoundedOutcome::posteriors(bounded), points.view());
        let kept: Vec<usize> = (0..rows.len())
            .filter(|&k| log_p[k] >= NEGLIGIBLE.ln())
            .collect();
        let likely: Vec<bool> = kept.iter().map(|&k| log_p[k] >= 0.5_f64.ln()).collect();
        let points = points.select(Axis(0), &kept);
        let numbers: Vec<TrialNumber> = kept.iter().map(|&k| first.rows[rows[k]]).collect();

        let gps = || std::iter::once(gp).chain(others.iter().map(|it| &*it.gp));
        let n_objectives = others.len() + 1;
        let mut means = Array2::zeros((points.nrows(), n_objectives));
        let mut stds = means.clone();
        for (i, gp) in gps().enumerate() {
            let (mean, variance) = gp.predict(points.view());
            for (k, (mean, variance)) in mean.into_iter().zip(variance).enumerate() {
                means[[k, i]] = mean;
                stds[[k, i]] = variance.sqrt();
            }
        }
        let compared: Vec<usize> = match likely.contains(&true) {
            true => (0..likely.len()).filter(|k| likely[*k]).collect(),
            false => (0..likely.len()).collect(),
        };
        let ranked = means.select(Axis(0), &compared);
        let front = ranked.select(Axis(0), &non_dominated(ranked.view()));
        let scales = std::iter::once(Scale::of(
            log.log.problem().first_objective().unwrap_or(0),
            first,
            (log, query),
        ))
        .chain(others.iter().map(|it| it.scale));
        let reference: Vec<f64> = scales
            .enumerate()
            .map(|(i, scale)| scale.reference(front.column(i).iter().copied()))
            .collect();
        let kept = not_dominated_for_sure(means.view(), stds.view(), &compared);
        let kept = largest_contributions(kept, means.view(), &reference);
        Ok(Self {
            means: means.select(Axis(0), &kept),
            baseline: points.select(Axis(0), &kept),
            trials: kept.iter().map(|&k| numbers[k]).collect(),
            reference,
            others,
        })
    }

    /// The tail of the first objective: the baseline points, the points where only other outcomes are missing, and the
    /// points where the first objective is missing. Before a trial within all bounds is known, there are no baseline
    /// points.
    pub fn tail(
        &self,
        first: &Posterior,
        bounded: &[BoundedOutcome],
        in_flight: &InFlight,
        log: View,
    ) -> TailKind {
        let rows = in_flight.elsewhere(first);
        let baseline = match is_improved(bounded, log) {
            true => concatenate![Axis(0), self.baseline, rows],
            false => rows,
        };
        TailKind::Noiseless { baseline }
    }

    /// The acquisition within all bounds, averaged over n fantasies of pending trials. Before a trial within all bounds
    /// is known, it is the probability that a point is the first one.
    pub fn maximand(
        self,
        bounded: Vec<BoundedOutcome<'a>>,
        situation: Situation,
        n: usize,
        log: View,
        rng: &mut Rng,
    ) -> Result<Maximand<'a>> {
        let tail = situation.gp.tail().to_owned();
        let is_improved = is_improved(&bounded, log);
        let bounds = BoundedOutcome::situations(bounded, &tail)?;
        let formula = match is_improved {
            true => {
                let reference = self.reference.clone();
                let others = self.situations(&tail)?;
                LogConstrainedImprovement::draw_front(
                    situation, others, bounds, &reference, n, rng,
                )?
            }
            false => LogConstrainedImprovement::draw_first_inside(bounds, n, situation.query, rng)?,
        };
        Ok(Maximand::Formula(Box::new(formula)))
    }

    /// Conditions the further objectives on noiseless rows at these points.
    pub fn situations(self, points: &Array2<f64>) -> Result<Vec<BoundedSituation<'a>>> {
        let situation = |it: FrontObjective<'a>| {
            Ok(BoundedSituation {
                gp: it.gp.condition(points.view())?,
                low: f64::NEG_INFINITY,
                high: f64::INFINITY,
            })
        };
        self.others.into_iter().map(situation).collect()
    }
}

/// Whether the acquisition is the improvement of the front: a trial within all bounds is known, or no outcome with bounds
/// has values.
fn is_improved(bounded: &[BoundedOutcome], log: View) -> bool {
    bounded.is_empty() || knows_feasible(log)
}

/// The points that none of the compared points exceeds in all objectives by 2 sigma of both.
fn not_dominated_for_sure(
    means: ArrayView2<f64>,
    stds: ArrayView2<f64>,
    compared: &[usize],
) -> Vec<usize> {
    let exceeds = |k: usize, j: usize| {
        let pairs = means.row(k).into_iter().zip(stds.row(k));
        let others = means.row(j).into_iter().zip(stds.row(j));
        let mut all = pairs.zip(others);
        all.all(|((mu, s), (other, t))| mu - 2.0 * s > other + 2.0 * t)
    };
    let is_kept = |j: &usize| !compared.iter().any(|&k| exceeds(k, *j));
    (0..means.nrows()).filter(is_kept).collect()
}

/// The points that contribute most to the hypervolume of the means, if there are more than [`MAX_BASELINE`].
fn largest_contributions(
    mut kept: Vec<usize>,
    means: ArrayView2<f64>,
    reference: &[f64],
) -> Vec<usize> {
    if kept.len() > MAX_BASELINE {
        let by = contributions(means.select(Axis(0), &kept).view(), reference);
        let mut order: Vec<usize> = (0..kept.len()).collect();
        order.sort_by(|&i, &j| by[j].total_cmp(&by[i]));
        order.truncate(MAX_BASELINE);
        order.sort_unstable();
        kept = order.into_iter().map(|i| kept[i]).collect();
    }
    kept
}
