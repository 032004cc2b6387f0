//! The points that are recommended for use after the search.
//!
//! * If all values are exact and a context is not declared, the observed points with the best values are recommended.
//! * Otherwise the point of the domain with the largest lower bound mu − 2 sigma is recommended. If several points are
//!   wanted, the observed points follow, in the order of their bounds. Every point is combined with the context of the
//!   query.
//!
//! If an outcome equals its bound or jumps, points that were not measured are recommended only if no measured point is
//! known to lie within the bounds.
//!
//! Points that violate a constraint, and points where failure is more likely than success, are left out. Points where
//! all trials failed are also left out.
//!
//! Notation: mu and sigma are the posterior mean and standard deviation of the noise-free value f(x). A value is exact
//! if the variance of its noise is negligible.

use std::collections::HashSet;

use ndarray::{Array2, ArrayView1};

use crate::error::{Result, Stop};
use crate::gp::{GaussianProcess, NOISELESS};
use crate::ledger::{State, TrialNumber, View};
use crate::maximize::excluded::{Excluded, Key, key_of_row};
use crate::numerics::order::best_first;
use crate::problem::{Member, Position};
use crate::strategy::bayes::choose::measured::Measured;
use crate::strategy::bayes::choose::search::Search;
use crate::strategy::bayes::model::candidates::in_context;
use crate::strategy::bayes::model::training_set::Posterior;
use crate::strategy::bayes::terms::bounds::BoundTerm;
use crate::strategy::bayes::terms::success::SuccessTerm;

/// The multiplier of sigma in the lower bound. In `benchmarks/recommend.py`, the multipliers 1 and 2 have the same regret
/// without contexts. With contexts, and for exact values whose noise is fitted, 2 is better.
pub const MULTIPLIER: f64 = 2.0;

/// The least probability that all outcomes lie within their bounds at a recommended point, if there is such a point.
pub const PROBABLE: f64 = 0.9;

/// Returns up to `n` distinct points, best first. `observed` contains the rows with an observed value, and `failures`
/// is the penalty where failure is more likely than success. `bounds` are the penalties where an outcome probably lies
/// outside its bounds, and `measured` are the points where outcomes were measured. If there are bounds and no point
/// probably lies within them, the result is empty.
pub fn recommended(
    search: &mut Search,
    posterior: &Posterior,
    observed: &[usize],
    failures: Option<&SuccessTerm>,
    (bounds, measured): (&[BoundTerm], Option<&Measured>),
    n: usize,
) -> Result<Vec<Member>> {
    let penalties = (failures, bounds, measured);
    let (gp, log, query) = (&*posterior.gp, search.log, search.query);
    let mut numbers: Vec<TrialNumber> = observed.iter().map(|&row| posterior.rows[row]).collect();
    numbers.sort_unstable();
    let failed = failed_points(search);
    // Another outcome may have failed where the objective was observed.
    let failed_keys: HashSet<Key> = failed.iter().map(key).collect();
    let has_failed = |point: &Member| failed_keys.contains(&key(point));
    let succeeded = |number: &TrialNumber| !has_failed(&log.member(*number));
    if numbers.iter().any(succeeded) {
        numbers.retain(succeeded);
    }
    let mut points: Vec<Member> = numbers.iter().map(|&number| log.member(number)).collect();
    let exact = observed.iter().all(|&row| gp.row_noise()[row] <= NOISELESS);
    if exact && query.context.is_empty() {
        let values = values_of(log, &numbers);
        let found = best(search, &points, &values, penalties, n)?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    let failed = failed.iter();
    let failed: Vec<_> = failed
        .filter_map(|point| query.lower(&point.x, point.index))
        .collect();
    search.excluded = Excluded::new(
        search.scope.domain,
        failed.iter().map(|(x, index)| (&x[..], *index)),
    );
    let rows = points
        .iter()
        .map(|point| [point.x.as_slice(), query.context].concat());
    if !measured.is_some_and(|measured| measured.suffices(rows)) {
        let maximizer = match query.restriction() {
            None => search.best_bounded(gp, MULTIPLIER, failures, bounds)?,
            Some(restriction) => match restriction.single() {
                Some(only) => only,
                None => {
                    let found = search.best_bounded(gp, MULTIPLIER, failures, bounds)?;
                    restriction.lift_member(found)
                }
            },
        };
        // If every point failed and the pending policy discards every value, the largest bound over all points remains.
        if points.is_empty() || !has_failed(&maximizer) {
            points.push(maximizer);
        }
    }
    let lower = lower_bounds(gp, &points, query.context);
    let found = best(search, &points, &lower, penalties, n)?;
    if !found.is_empty() {
        return Ok(found);
    }
    if bounds.is_empty() || (numbers.is_empty() && query.within.is_some()) {
        // If failure is more likely than success everywhere, the best points do not depend on the model of success.
        return best(search, &points, &lower, (None, &[], measured), n);
    }
    Ok(Vec::new())
}

/// Returns up to `n` distinct points of these trials if no point probably lies within all bounds: the trials whose values
/// lie within them, in the order of mu − 2 sigma, or in the order of the values if they are `exact`. If there are none,
/// the trials with the smallest expected violations. Only trials in the context of the query are considered, if there
/// are any.
pub fn best_measured(
    search: &mut Search,
    gp: &GaussianProcess,
    numbers: &[TrialNumber],
    exact: bool,
    violations: impl FnOnce(&[TrialNumber], &mut Stop) -> Result<Vec<f64>>,
    n: usize,
) -> Result<Vec<Member>> {
    let (log, context) = (search.log, search.query.context);
    let here = |number: &TrialNumber| log.context(*number) == context;
    let mut numbers = numbers.to_vec();
    if numbers.iter().any(here) {
        numbers.retain(here);
    }
    let holding = numbers.iter().copied();
    let holding: Vec<_> = holding.filter(|it| log.log.is_within_bounds(*it)).collect();
    let members = |numbers: &[TrialNumber]| -> Vec<Member> {
        numbers.iter().map(|&number| log.member(number)).collect()
    };
    let points = members(&holding);
    let scores = match exact {
        true => values_of(log, &holding),
        false => lower_bounds(gp, &points, context),
    };
    let found = best(search, &points, &scores, (None, &[], None), n)?;
    if !found.is_empty() {
        return Ok(found);
    }
    let scores = violations(&numbers, search.call.stop)?;
    let scores: Vec<f64> = scores.iter().map(|sum| -sum).collect();
    best(search, &members(&numbers), &scores, (None, &[], None), n)
}

/// Returns up to `n` distinct points with the largest scores, best first. Points that violate a constraint, and points
/// with a penalty, are left out.
fn best(
    search: &Search,
    points: &[Member],
    scores: &[f64],
    terms: (Option<&SuccessTerm>, &[BoundTerm], Option<&Measured>),
    n: usize,
) -> Result<Vec<Member>> {
    let rows = matrix(points);
    let penalties = penalties_at(search, points, terms);
    let mut seen = HashSet::new();
    let mut order = best_first(scores);
    order.retain(|&i| penalties[i] >= 0.0 && seen.insert(key(&points[i])));
    let found = search.query.feasible.first(n, &order, rows.view())?;
    Ok(found.into_iter().map(|i| points[i].clone()).collect())
}

/// The sum of the penalties at every point: 0 where failure is not more likely than success and every outcome lies
/// within its bounds with the least probability, and negative elsewhere. Measured values decide where there are any.
pub(super) fn penalties_at(
    search: &Search,
    points: &[Member],
    (failures, bounds, measured): (Option<&SuccessTerm>, &[BoundTerm], Option<&Measured>),
) -> Vec<f64> {
    let (rows, context) = (matrix(points), search.query.context);
    let mut sums = vec![0.0; points.len()];
    let mut penalties = vec![0.0; points.len()];
    let bounds = bounds.iter().map(|bound| bound.scorer(context));
    for mut term in bounds {
        term.values(rows.view(), &mut penalties);
        let both = sums.iter_mut().zip(&penalties);
        both.for_each(|(sum, penalty)| *sum += penalty);
    }
    if let Some(measured) = measured {
        for (sum, row) in sums.iter_mut().zip(rows.rows()) {
            let row: Vec<f64> = row.iter().chain(context).copied().collect();
            *sum = match measured.exactly_inside(&row) {
                _ if measured.violates(&row) => f64::NEG_INFINITY,
                Some(true) => 0.0,
                _ => *sum,
            };
        }
    }
    if let Some(mut term) = failures.map(|failures| failures.scorer(context)) {
        term.values(rows.view(), &mut penalties);
        let both = sums.iter_mut().zip(&penalties);
        both.for_each(|(sum, penalty)| *sum += penalty);
    }
    sums
}

/// The points where every ended trial failed, at least one of them in the context of the query.
fn failed_points(search: &Search) -> Vec<Member> {
    let (log, context) = (search.log.log.success(), search.query.context);
    let numbers = || 0..log.n_trials();
    let is_observed = |&number: &TrialNumber| log.of(number).state() == State::Observed;
    let is_failed = |&number: &TrialNumber| {
        let trial = log.of(number);
        trial.state() == State::Failed
            && trial.position == Position::Member
            && log.context(number) == context
    };
    let observed: HashSet<Key> = numbers()
        .filter(is_observed)
        .map(|number| key(&log.member(number)))
        .collect();
    let failed = numbers().filter(is_failed).map(|number| log.member(number));
    failed
        .filter(|point| !observed.contains(&key(point)))
        .collect()
}

/// The values of these trials.
fn values_of(log: View, numbers: &[TrialNumber]) -> Vec<f64> {
    let value = |&number: &TrialNumber| log.of(number).value().unwrap_or(f64::NAN);
    numbers.iter().map(value).collect()
}

/// Returns mu − 2 sigma at every point in a context.
fn lower_bounds(gp: &GaussianProcess, points: &[Member], context: &[f64]) -> Vec<f64> {
    let (mean, variance) = gp.predict(in_context(&matrix(points), context).view());
    let moments = mean.into_iter().zip(variance);
    moments
        .map(|(mu, variance)| mu - MULTIPLIER * variance.sqrt())
        .collect()
}

/// The points as the rows of a matrix.
fn matrix(points: &[Member]) -> Array2<f64> {
    let width = points.first().map_or(0, |point| point.x.len());
    let mut rows = Array2::zeros((points.len(), width));
    for (mut row, point) in rows.rows_mut().into_iter().zip(points) {
        row.assign(&ArrayView1::from(&point.x));
    }
    rows
}

/// The key of a point. Equal points have equal keys.
fn key(point: &Member) -> Key {
    key_of_row(ArrayView1::from(&point.x))
}
